"""Networks: worked examples by hand, gradients, and the same bits for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import certifit as cf
from certifit.mathematics.families import NegativeBinomial, Tweedie
from certifit.modelfile.files import from_bytes, to_bytes
from certifit.models.network.about import LOSSES

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
BY_HAND = {
    "standardize": False,
    "alpha": 0.0,
    "max_iter": 1,
    "learning_rate": 1e-300,
    "dtype": "float64",
    "solver": "gradient-descent",
}


def test_the_chain_of_three_weights_has_the_gradients_of_the_notes():
    v, w1, w0, x, y = 0.7, -1.3, 2.1, 0.9, 0.4
    start = [[[w0]], [[w1]], [[v]]]
    model = cf.MLPRegressor(
        (1, 1), activation="identity", loss="full-squared", biases=False, output_bias=False, start=start, **BY_HAND
    ).fit([[x]], [y])
    found = model.backward([[x]], [y])
    error = 2 * (v * w1 * w0 * x - y)
    wanted = [error * v * w1 * x, error * v * w0 * x, error * w1 * w0 * x]
    assert [g.item() for g, _ in found.gradients] == pytest.approx(wanted, rel=1e-12)
    assert [s.item() for s in found.states] == pytest.approx([x, w0 * x, w1 * w0 * x, v * w1 * w0 * x])
    assert found.costates[-1].item() == pytest.approx(error)


def test_a_2_2_3_1_network_of_relu_by_hand():
    W1, W2, W3 = np.array([[1.0, -1], [0.5, 2]]), np.array([[1.0, 1], [-1, 2], [2, -3]]), np.array([[1.0, -2, 3]])
    x, y = np.array([2.0, 1.0]), 1.0
    h1 = np.maximum(W1 @ x, 0)  # (1, 3)
    h2 = np.maximum(W2 @ h1, 0)  # (4, 5, 0)
    z = W3 @ h2  # -6
    p3 = 2 * (z - y)
    p2 = W3.T @ p3
    q2 = p2 * (h2 > 0)
    p1 = W2.T @ q2
    q1 = p1 * (h1 > 0)
    model = cf.MLPRegressor(
        (2, 3), loss="full-squared", biases=False, output_bias=False, start=[W1, W2, W3], **BY_HAND
    ).fit([x], [y])
    found = model.backward([x], [y])
    assert z.tolist() == [-6.0] and [s.ravel().tolist() for s in found.states] == [
        x.tolist(),
        h1.tolist(),
        h2.tolist(),
        [-6.0],
    ]
    for (gradient, _), wanted in zip(
        found.gradients, (np.outer(q1, x), np.outer(q2, h1), np.outer(p3, h2)), strict=True
    ):
        assert np.array_equal(gradient, wanted)
    assert np.array_equal(found.costates[1][0], p1) and np.array_equal(found.costates[2][0], p2)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "identity", "relu", "leaky-relu"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_core_has_the_gradient_of_its_value(activation, loss):
    from certifit.data.source import Memory
    from certifit.models.network.formulas import backward, flat, forward
    from certifit.models.network.layout import Layout
    from certifit.models.network.losses import NetworkLoss
    from certifit.models.network.task import NetworkTask

    rng = np.random.default_rng(0)
    X, y, offset = rng.normal(size=(40, 3)), rng.gamma(2.0, size=40), rng.normal(size=40)
    y = y / y.max() if loss == "binomial" else y
    layout = Layout((3, 5, 4, 1), activation, 0.1, True, True)
    source = Memory(X, y, names=["a", "b", "c"], offset=offset)
    task = NetworkTask(source, layout, NetworkLoss(loss), "float64", alpha=0.1, units=None, standardize=False)
    point = layout.drawn(0, 0)
    value, gradient = task.value_gradient(point)
    states, by = forward(layout, point, X), NetworkLoss(loss)
    z = states[-1] + offset[:, None]
    slow = flat(backward(layout, point, states, by.slopes(y, z) / len(y))[1])
    slow = slow + np.where(layout.is_weight(), 0.1 * point, 0.0)
    again = by.values(y, z).mean() + task.penalty(point)
    assert value == pytest.approx(again, rel=1e-12)
    assert np.allclose(gradient, slow, rtol=1e-9, atol=1e-12)


def test_any_number_of_threads_gives_the_same_bits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 200))
    y = np.digitize(X[:, 0] + X[:, 1], [-1, 1])
    fits = []
    for n in (1, 3):
        with cf.threads(n):
            fits.append(cf.MLPClassifier((120, 60), max_iter=3).fit(X, y))
    assert np.array_equal(fits[0].parameters_, fits[1].parameters_)
    assert fits[0].history_[-1]["objective"] == fits[1].history_[-1]["objective"]


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.05 * rng.normal(size=n)


@pytest.mark.parametrize("solver", ["adam", "sgd", "gradient-descent", "lbfgs"])
@pytest.mark.slow
def test_every_solver_fits_a_curve(solver):
    X, y = rows()
    rate = {"adam": 0.01, "sgd": 0.02, "gradient-descent": 0.1}.get(solver, 1e-3)
    batch = 20 if solver == "sgd" else None
    model = cf.MLPRegressor(
        (30,), activation="tanh", solver=solver, learning_rate=rate, batch_size=batch, max_iter=400, least_fall=1e-7
    )
    model.fit(X, y)
    assert model.score(X, y) > 0.8 and model.certificate_.holds


def test_a_certificate_refuses_other_weights_and_other_rows():
    X, y = rows()
    model = cf.MLPRegressor((8,), max_iter=300, learning_rate=0.01).fit(X, y)
    assert model.certificate_.holds and model.certify(X, y).holds
    assert "a local claim" in model.certificate_.sentences()[1]
    assert not model.certify(X, y + 0.01).holds
    model.parameters_ = model.parameters_ * np.float32(1.001)
    assert not model.certify(X, y).holds


def test_a_certificate_refuses_a_wrong_gradient(monkeypatch):
    from certifit.models.network import certificate

    X, y = rows()
    model = cf.MLPRegressor((8,), activation="tanh", max_iter=300, learning_rate=0.01).fit(X, y)
    right = certificate._core_gradient

    def wrong(*arguments):
        value, gradient = right(*arguments)
        return value, gradient * 1.001

    monkeypatch.setattr(certificate, "_core_gradient", wrong)
    assert not model.certify(X, y).holds


def test_a_wider_weight_is_a_repeated_row_and_hashes_decide_the_order():
    X, y = rows(60)
    times = np.arange(60) % 3
    fits = [
        cf.MLPRegressor((8,), max_iter=30).fit(X, y, sample_weight=times),
        cf.MLPRegressor((8,), max_iter=30).fit(np.repeat(X, times, axis=0), np.repeat(y, times)),
    ]
    assert np.allclose(fits[0].predict(X), fits[1].predict(X), rtol=1e-3, atol=1e-3)


LINEAR = {"solver": "lbfgs", "dtype": "float64", "alpha": 0.1, "standardize": False, "least_fall": 1e-12}
FAMILIES = {
    "poisson": "poisson",
    "gamma": "gamma",
    "exponential": "exponential",
    "tweedie": Tweedie(1.5),
    "negative-binomial": NegativeBinomial(1.0),
    "binomial": "binomial",
}


@pytest.mark.parametrize("loss", FAMILIES)
def test_without_hidden_layers_it_is_the_generalised_linear_model_with_its_offset(loss):
    rng = np.random.default_rng(1)
    X, offset = rng.normal(size=(80, 2)), rng.normal(size=80)
    y = rng.poisson(2.0, size=80) + (1.0 if loss in ("gamma", "exponential") else 0.0)
    y = np.minimum(y / 4, 1.0) if loss == "binomial" else y
    link = "logit" if loss == "binomial" else "log"
    linear = cf.GLM(FAMILIES[loss], link, alpha=0.1).fit(X, y, offset=offset)
    network = cf.MLPRegressor((), loss=loss, **LINEAR).fit(X, y, offset=offset)
    assert network.certificate_.holds and network.certify(X, y, offset=offset).holds
    assert not network.certify(X, y).holds
    assert np.allclose(network.predict(X, offset=offset), linear.predict(X, offset=offset), rtol=1e-4)


def test_an_exposure_is_an_offset_and_predictions_without_it_are_rates():
    rng = np.random.default_rng(2)
    X, exposure = rng.normal(size=(200, 2)), rng.uniform(0.1, 2, size=200)
    y = rng.poisson(1e4 * exposure * np.exp(0.3 * X[:, 0]))
    models = [
        cf.MLPRegressor((8,), loss="poisson", max_iter=20).fit(X, y, exposure=exposure),
        cf.MLPRegressor((8,), loss="poisson", max_iter=20).fit(X, y, offset=np.log(exposure)),
    ]
    rates = models[0].predict(X)
    assert np.allclose(rates, models[1].predict(X), rtol=1e-5)
    assert np.allclose(models[0].predict(X, exposure=exposure), rates * exposure)
    assert abs(np.log(rates.mean() / 1e4)) < 0.3  # it starts at the mean rate, not at 1


def test_an_offset_of_a_squared_loss_is_taken_from_the_target():
    X, y = rows()
    offset = 10 * X[:, 0] + 1e3
    options = {"solver": "gradient-descent", "max_iter": 30, "dtype": "float64"}
    plain = cf.MLPRegressor((8,), **options).fit(X, y)
    moved = cf.MLPRegressor((8,), **options).fit(X, y + offset, offset=offset)
    assert np.allclose(moved.predict(X), plain.predict(X), atol=1e-9)
    assert np.allclose(moved.predict(X, offset=offset), plain.predict(X) + offset)


def test_targets_that_a_loss_does_not_know_are_named():
    X, y = rows(20)
    y = np.abs(y)
    y[7] = -1.0
    with pytest.raises(ValueError, match="Row 7 is -1"):
        cf.MLPRegressor((4,), loss="poisson").fit(X, y)


def test_the_weight_of_a_class_is_the_weight_of_its_rows():
    X, y = rows(200)
    labels = np.where(y > 1, "many", "few")
    factors = {"many": 3.0, "few": 1.0}
    by_class = cf.MLPClassifier((8,), max_iter=20, learning_rate=0.03, class_weight=factors).fit(X, labels)
    weight = np.where(labels == "many", 3.0, 1.0)
    by_row = cf.MLPClassifier((8,), max_iter=20, learning_rate=0.03).fit(X, labels, sample_weight=weight)
    assert np.array_equal(by_class.parameters_, by_row.parameters_) and by_class.certify(X, labels).holds
    balanced = cf.MLPClassifier((8,), max_iter=20, class_weight="balanced").fit(X, labels)
    assert balanced.class_weight_ @ [np.sum(labels == "few"), np.sum(labels == "many")] == pytest.approx(200)
    with pytest.raises(ValueError, match="needs all rows at once"):
        cf.MLPClassifier((8,), class_weight="balanced").partial_fit(X, labels, classes=["few", "many"])


def test_a_refitted_output_layer_is_never_worse_on_its_rows():
    X, y = rows()
    model = cf.MLPRegressor((20,), max_iter=20, polish=True, early_stopping=True).fit(X, y)
    plain = cf.MLPRegressor((20,), max_iter=20, early_stopping=True).fit(X, y)
    assert model.objective_ < plain.objective_ and model.certificate_.holds
    assert "refitted given the hidden features" in model.certificate_.sentences()[-1]


def test_an_output_layer_is_refitted_with_the_offsets_of_its_rows():
    rng = np.random.default_rng(3)
    X, exposure = rng.normal(size=(200, 2)), rng.uniform(0.1, 2, size=200)
    y = rng.poisson(20 * exposure * np.exp(np.sin(2 * X[:, 0])))
    fits = [
        cf.MLPRegressor((12,), loss="poisson", max_iter=20, polish=is_polished).fit(X, y, exposure=exposure)
        for is_polished in (False, True)
    ]
    assert fits[1].objective_ < fits[0].objective_ and fits[1].certificate_.holds


def test_the_best_of_several_starts_is_kept():
    X, y = rows(100)
    model = cf.MLPRegressor((4,), n_starts=3, max_iter=20).fit(X, y)
    assert len(set(model.starts_)) == 3 and model.objective_ == model.starts_.min()


def test_parts_are_passes_and_a_failure_leaves_the_model_as_it_was():
    X, y = rows()
    model = cf.MLPRegressor((8,), learning_rate=0.01).partial_fit(X, y)
    for _ in range(20):
        model.partial_fit(X, y)
    assert len(model.history_) == 21 and model.history_[-1]["objective"] < model.history_[0]["objective"]
    assert not model.certificate_.holds and model.certify(X, y).n_checked > 0
    before = model.predict(X)
    with pytest.raises(ValueError):
        model.partial_fit(np.full((3, 3), np.nan), np.zeros(3))
    assert np.array_equal(model.predict(X), before)
    model.fit(X, y)
    assert "_moments" not in vars(model)


def test_steps_too_large_are_named():
    X, y = rows()
    with pytest.raises(ValueError, match="smaller learning_rate"):
        cf.MLPRegressor((8,), solver="sgd", learning_rate=1e6, standardize=False).fit(100 * X, y)


def test_far_targets_do_not_cost_digits():
    X, y = rows()
    near, far = (
        cf.MLPRegressor((8,), solver="gradient-descent", max_iter=30, dtype="float64").fit(X, y + c) for c in (0.0, 1e6)
    )
    assert np.allclose(far.predict(X) - 1e6, near.predict(X), atol=1e-6)


def test_digits_are_learned_as_well_as_scikit_learn_learns_them():
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier as Theirs

    X, y = load_digits(return_X_y=True)
    X = X / 16
    options = {"hidden_layer_sizes": (40,), "max_iter": 40, "random_state": 0}
    ours = cf.MLPClassifier(standardize=False, **options).fit(X[:1200], y[:1200])
    theirs = Theirs(**options).fit(X[:1200], y[:1200])
    assert ours.score(X[1200:], y[1200:]) > theirs.score(X[1200:], y[1200:]) - 0.03


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_a_file_that_does_not_fit_into_memory_gives_the_same_bits(tmp_path, monkeypatch, loss):
    import pyarrow as pa
    import pyarrow.parquet as pq

    from certifit.models.network import task

    X, y = rows(3000)
    y, offset = np.floor(3 * np.abs(y)), 0.1 * X[:, 0]
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y, "by": offset})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=700)
    monkeypatch.setattr(task, "wide_stretches", lambda source: source.resized(64, 1024))  # three of these rows
    monkeypatch.setattr(task, "READ_NUMBERS", 3 * 256)  # a quarter of a stretch
    parts, read, convert = [], task.NetworkTask._part, task.NetworkTask._convert
    n_rows = []  # of blocks

    def counted(self, *arguments):
        parts.append(read(self, *arguments))
        return parts[-1]

    def measured(self, block, *arguments):
        n_rows.append(block.n_rows)
        return convert(self, block, *arguments)

    monkeypatch.setattr(task.NetworkTask, "_part", counted)
    monkeypatch.setattr(task.NetworkTask, "_convert", measured)
    options = {"hidden_layer_sizes": (8,), "max_iter": 3, "batch_size": 50, "early_stopping": True, "loss": loss}
    options["learning_rate"] = 0.02
    inside = cf.MLPRegressor(**options).fit(X, y, offset=offset)
    assert [len(part.y) for part in parts] == [1024, 1024, 952]  # kept
    parts.clear()
    n_rows.clear()
    with cf.memory(X.astype(np.float32).nbytes // 2):
        scan = cf.scan_parquet(tmp_path / "rows.parquet", target="y", offset="by")
        outside = cf.MLPRegressor(**options).fit(scan)
    assert len(parts) > 3 * 3  # read again in every epoch
    assert max(n_rows) == 256  # few at a time
    assert np.shares_memory(parts[0].X, parts[1].X)  # and one part at a time
    assert np.array_equal(inside.parameters_, outside.parameters_) and outside.certificate_.holds
    assert inside.certificate_ == outside.certificate_


@pytest.mark.slow
def test_more_rows_than_a_stretch_of_a_file_give_the_bits_of_an_array(tmp_path):
    # Rows are shuffled within stretches, so these must be of one size whatever rows come from.
    import pyarrow as pa
    import pyarrow.parquet as pq

    X = np.random.default_rng(0).normal(size=(20_000, 200))
    y = X[:, 0] - X[:, 1] ** 2
    columns = {f"x{j}": X[:, j] for j in range(200)}
    pq.write_table(pa.table(columns | {"y": y}), tmp_path / "rows.parquet")
    options = {"hidden_layer_sizes": (3,), "max_iter": 1}
    inside = cf.MLPRegressor(**options).fit(X, y)
    for limit in (1e9, 1e6):
        with cf.memory(limit):
            outside = cf.MLPRegressor(**options).fit(cf.scan_parquet(tmp_path / "rows.parquet", target="y"))
        assert np.array_equal(inside.parameters_, outside.parameters_)


def test_rows_of_float32_have_the_gradient_of_their_float64():
    from certifit.models.network.layout import Layout
    from certifit.models.network.task import gemm
    from certifit.runtime import core

    X, y = rows(300)
    layout = Layout((3, 8, 1), "relu", 0.0, True, True)
    short, point = np.ascontiguousarray(X, dtype=np.float32), layout.drawn(0, 0)
    fixed = (gemm("float64"), np.array(layout.sizes), True, True, "relu", 0.0, "huber", 0, 1.0, 1.0)
    value, gradient = core.network_gradient_of_short(*fixed, short, y, None, None, point, 2)
    same_value, same = core.network_gradient(*fixed, short.astype(np.float64), y, None, None, point, 1)
    assert value == same_value and np.array_equal(gradient, same)


def test_early_stopping_is_left_to_the_number_of_rows(monkeypatch):
    from certifit.models.network import base

    X, y = rows(400)
    options = {"hidden_layer_sizes": (8,), "max_iter": 4, "batch_size": 50}
    ends = {value: cf.MLPRegressor(early_stopping=value, **options).fit(X, y) for value in (False, True, "auto")}
    assert np.array_equal(ends["auto"].parameters_, ends[False].parameters_)
    monkeypatch.setattr(base, "ROWS_OF_EARLY_STOPPING", 400)
    many = cf.MLPRegressor(early_stopping="auto", **options).fit(X, y)
    assert np.array_equal(many.parameters_, ends[True].parameters_)
    with pytest.raises(ValueError, match="early_stopping must be True, False or 'auto'"):
        cf.MLPRegressor(early_stopping="never").fit(X, y)


@pytest.mark.parametrize("kind", ["number", "two", "three"])
def test_an_end_above_the_best_constant_is_not_certified_and_the_best_state_is_kept(kind):
    X, y = rows(300)
    targets = {"number": y, "two": y > 1, "three": np.digitize(y, [0.0, 2.0])}
    model = (cf.MLPRegressor if kind == "number" else cf.MLPClassifier)((20,), learning_rate=100.0, max_iter=30)
    with pytest.warns(ConvergenceWarning, match="diverged"):
        model.fit(X, targets[kind])
    assert not model.certificate_.holds and "smaller learning_rate" in model.certificate_.sentences()[0]
    assert model.objective_ < 0.5 * model.history_[-1]["objective"]
    assert not cf.verify(from_bytes(to_bytes(model)), X, targets[kind]).holds
    good = model.set_params(learning_rate=1e-2, max_iter=100).fit(X, targets[kind])
    assert good.certificate_.holds and not good.diverged_


def test_the_best_constant_has_the_least_objective_of_all_biases():
    from certifit.models.network.certificate import best_constant, objective

    X, y = rows(100)
    weight = np.arange(100) % 4 + 0.5
    for standardize in (True, False):
        fits = [cf.MLPRegressor((3,), loss=loss, standardize=standardize) for loss in ("squared", "poisson", "gamma")]
        targets = [y, np.floor(np.abs(y)), np.abs(y) + 0.1, y > 1, np.digitize(y, [0.0, 2.0])]
        fits += [cf.MLPClassifier((3,), standardize=standardize)] * 2
        for model, target in zip(fits, targets, strict=True):
            model.set_params(max_iter=1, dtype="float64").fit(X, target, sample_weight=weight)
            task, least = model._task_on(X, target, sample_weight=weight), np.inf
            point = np.zeros(task.layout.n_parameters)
            bias = task.layout.split(point)[-1][1]
            for shift in np.vstack([np.eye(len(bias)), -np.eye(len(bias))]):
                bias[:] = task.constant() + 1e-3 * shift
                least = min(least, objective(task, point)[0])
            assert best_constant(task) < least


def test_schedules_act_alone_and_defaults_are_those_of_the_page():
    X, y = rows(100)
    options = {"solver": "gradient-descent", "max_iter": 3, "dtype": "float64", "learning_rate": 0.1}
    steps = [cf.MLPRegressor((3,), schedule=schedule, **options).fit(X, y) for schedule in ("constant", "inverse-root")]
    by_hand = cf.MLPRegressor((3,), schedule="inverse-root", decay=1.0, **options).fit(X, y)  # an epoch is a step
    assert not np.array_equal(steps[0].parameters_, steps[1].parameters_)
    assert np.array_equal(by_hand.parameters_, steps[1].parameters_)
    assert cf.MLPRegressor().momentum == 0 and cf.MLPClassifier().early_stopping == "auto"
