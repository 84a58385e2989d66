"""Claims about the perceptron: its rule, its bound from any start, its end, and the proof that it has none."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Perceptron as Theirs

import certifit as cf

OVERLAPPING = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def apart(rng, n=300, d=4, gap=0.3):
    """Rows of two classes with a strip between them."""
    X = rng.normal(size=(4 * n, d))
    z = X @ np.linspace(-1, 1, d) + 0.2
    keep = np.flatnonzero(np.abs(z) > gap)[:n]
    return X[keep], (z[keep] > 0).astype(int)


def by_hand(X, y, delta=0.0, start=None, order=None, epochs=1000, fit_intercept=True):
    """The course's loop."""
    A = (2 * y - 1)[:, None] * (np.column_stack([X, np.ones(len(X))]) if fit_intercept else X)
    w = np.zeros(A.shape[1]) if start is None else np.array(start, dtype=float)
    total = 0
    for _ in range(epochs):
        mistakes = 0
        for i in range(len(A)) if order is None else order:
            if A[i] @ w <= delta:
                w, mistakes = w + A[i], mistakes + 1
        total += mistakes
        if mistakes == 0:
            break
    return w, total


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("delta", [0.0, 1.5])
def test_the_rule_is_the_courses_from_any_start_in_any_order(rng, delta, fit_intercept):
    X, y = apart(rng, gap=0.5 if fit_intercept else 1.0)
    if not fit_intercept:
        y = (X @ np.linspace(-1, 1, 4) > 0).astype(int)
    start = rng.integers(-9, 9, 4 + fit_intercept).astype(float)
    order = rng.permutation(len(X))
    w, total = by_hand(X, y, delta, start, order, fit_intercept=fit_intercept)
    model = cf.Perceptron(delta, start=start, order=order, fit_intercept=fit_intercept).fit(X, y)
    found = np.append(model.coef_, model.intercept_) if fit_intercept else model.coef_[0]
    np.testing.assert_allclose(found, w, rtol=1e-12, atol=1e-12)
    assert model.n_updates_ == total == sum(row["mistakes"] for row in model.history_)
    assert model.history_[-1]["mistakes"] == 0
    assert model.certificate_.holds, str(model.certificate_)
    assert (model.decision_function(X) * (2 * y - 1) > delta).all()


def test_updates_never_exceed_the_bound_of_the_separator_found_or_of_any_other(rng):
    for delta in (0.0, 0.3, 5.0):
        for scale in (0.0, 1.0, 30.0):
            X, y = apart(rng, n=60, gap=0.4)
            start = scale * rng.normal(size=5)
            model = cf.Perceptron(delta, start=start, max_iter=100_000).fit(X, y)
            assert model.n_updates_ <= model.certificate_.bound
            A = (2 * y - 1)[:, None] * np.column_stack([X, np.ones(len(X))])
            u = np.append(np.linspace(-1, 1, 4), 0.2)
            u /= np.linalg.norm(u)
            gamma, B, s, N = (A @ u).min(), (A**2).sum(axis=1).max() + 2 * delta, start @ u, start @ start
            root = np.sqrt((B - 2 * s * gamma) ** 2 + 4 * gamma**2 * (N - s**2))
            assert model.n_updates_ <= (B - 2 * s * gamma + root) / (2 * gamma**2)
            np.testing.assert_allclose(model.certificate_.radius, np.sqrt((A**2).sum(axis=1).max()), rtol=1e-14)
            w = np.append(model.coef_, model.intercept_)
            np.testing.assert_allclose(model.certificate_.margin, (A @ w).min() / np.linalg.norm(w), rtol=1e-10)


def test_two_near_points_take_hundreds_of_updates_under_the_augmented_bound_far_over_that_of_the_margin():
    X, y = np.array([[0.1], [0.05]]), [1, -1]
    model = cf.Perceptron().fit(X, y)
    svm_margin, radius = 0.025, 0.1
    assert 100 < model.n_updates_ < 1000
    assert model.n_updates_ > 10 * (radius / svm_margin) ** 2
    best = 0.05 / 2 / np.hypot(1, 0.075)  # the largest margin of the augmented examples
    assert model.n_updates_ <= (1 + radius**2) / best**2
    assert model.n_updates_ <= model.certificate_.bound
    assert round(model.certificate_.bound) == round((1 + radius**2) / best**2) == 1625
    assert round(model.certify(X, y, tight=False).bound) == 4_120_901


def test_classes_that_overlap_are_told_with_the_rows_that_prove_it(rng):
    X = rng.normal(size=(400, 3))
    y = np.where(X.sum(axis=1) + rng.normal(size=400) > 0, "b", "a")
    with pytest.warns(ConvergenceWarning, match="no weights separate the classes"):
        model = cf.Perceptron().fit(X, y)
    proof = model.certificate_
    assert not proof.holds
    assert 2 <= len(proof.rows) <= 3 + 2
    signs = np.where(y == "b", 1.0, -1.0)[list(proof.rows)]
    A = signs[:, None] * np.column_stack([X, np.ones(400)])[list(proof.rows)]
    m = np.array(proof.multipliers)
    assert (m > 0).all()
    assert np.abs(m @ A).max() <= 1e-12
    assert model.n_iter_ < model.max_iter  # no epochs after the proof


def test_weights_that_repeat_are_an_endless_cycle():
    X = np.array([[0, 0], [1, 1], [0, 1], [1, 0]])
    with pytest.warns(ConvergenceWarning):
        model = cf.Perceptron().fit(X, [0, 0, 1, 1])
    first, last = model.cycle_
    assert first < last == model.n_iter_
    assert f"Epoch {last} ends with the weights of epoch {first}" in str(model.certificate_)
    assert len(model.certificate_.rows) == 4  # the four corners


def test_too_few_epochs_are_told_apart_from_classes_that_overlap(rng):
    X, y = apart(rng, gap=0.05)
    with pytest.warns(ConvergenceWarning, match="can be separated: raise max_iter"):
        cf.Perceptron(max_iter=1).fit(X, y)


def test_more_than_two_classes_are_sent_to_one_against_the_rest(rng):
    with pytest.raises(ValueError, match=r"OneVsRestClassifier\(Perceptron\(\)\)"):
        cf.Perceptron().fit(rng.normal(size=(9, 2)), np.arange(9) % 3)


def test_there_are_no_probabilities_and_no_weights():
    assert not hasattr(cf.Perceptron(), "predict_proba")
    with pytest.raises(TypeError, match="sample_weight"):
        cf.Perceptron().fit([[0.0], [1.0]], [0, 1], sample_weight=[1, 1])


@OVERLAPPING
def test_every_place_where_rows_live_gives_the_same_bits(rng, tmp_path):
    import dask.dataframe as dd

    X, y = apart(rng, n=200, gap=0.1)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pandas(frame), path, row_group_size=37)
    # A table's target may come in any order of its columns: the weights are those of the array.
    places = {
        "array": cf.Perceptron(0.1).fit(X, y),
        "parquet": cf.Perceptron(0.1).fit(cf.scan_parquet(str(path), target="y")),
        "dask": cf.Perceptron(0.1).fit(cf.from_dask(dd.from_pandas(frame, npartitions=3), target="y")),
        "fortran": cf.Perceptron(0.1).fit(np.asfortranarray(X), y),
    }
    for place, model in places.items():
        assert np.array_equal(model.coef_, places["array"].coef_), place
        assert model.intercept_ == places["array"].intercept_, place
        assert model.n_updates_ == places["array"].n_updates_, place
    scan = cf.scan_parquet(str(path), target="y")
    assert np.array_equal(places["parquet"].predict(scan), places["array"].predict(X))
    assert places["parquet"].score(scan) == 1.0
    assert places["parquet"].certify(scan).holds


def test_sparse_rows_and_basis_functions_are_learned(rng):
    X, y = apart(rng)
    assert cf.Perceptron().fit(sp.csr_array(X), y).score(sp.csr_array(X), y) == 1.0
    circle = rng.normal(size=(300, 2))
    radius = np.hypot(*circle.T)
    keep = np.abs(radius - 1) > 0.1
    inside = radius[keep] < 1
    model = cf.Perceptron(basis=cf.Polynomial(2), max_iter=10_000).fit(circle[keep], inside)
    assert model.certificate_.holds
    assert model.score(circle[keep], inside) == 1.0


def test_partial_fit_goes_on_and_says_that_rows_were_seen_once(rng):
    X, y = apart(rng)
    whole = cf.Perceptron(max_iter=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole.fit(X, y)
    parts = cf.Perceptron().partial_fit(X[:100], y[:100], classes=[0, 1])
    for rows in (slice(100, 300), slice(0, 300)):
        parts.partial_fit(X[rows], y[rows])
    assert np.array_equal(parts.coef_, whole.coef_)
    assert parts.n_updates_ == whole.n_updates_
    assert not parts.certificate_.holds
    assert str(parts.certificate_).startswith("not certified: rows were seen once")
    for _ in range(200):
        parts.partial_fit(X, y)
    assert parts.certify(X, y).holds


@OVERLAPPING
def test_shuffled_epochs_depend_on_the_seed_alone(rng):
    X, y = apart(rng)
    one, two, other = (cf.Perceptron(order="shuffled", random_state=seed).fit(X, y) for seed in (3, 3, 4))
    assert np.array_equal(one.coef_, two.coef_)
    assert not np.array_equal(one.coef_, other.coef_)
    assert one.certificate_.holds


def test_scikit_learn_makes_the_same_updates_in_the_same_order(rng):
    """Its labels are -1 and 1, its rule y (b + x'w) <= 0: the same weights after the same epochs."""
    X, y = apart(rng)
    ours = cf.Perceptron().fit(X, y)
    theirs = Theirs(shuffle=False, tol=None, max_iter=ours.n_iter_).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-10)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-10)


@OVERLAPPING
def test_copies_predict_the_same_and_hold_no_rows(rng):
    X, y = apart(rng)
    model = cf.Perceptron().fit(X, y)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), clone(model).fit(X, y)):
        assert np.array_equal(other.decision_function(X), model.decision_function(X))
        assert other.certificate_ == model.certificate_
    large = cf.Perceptron().fit(np.tile(X, (20, 1)), np.tile(y, 20))
    assert len(pickle.dumps(large)) < len(pickle.dumps(model)) + 500


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"delta": -1.0}, "delta must be a finite number >= 0"),
        ({"order": "random"}, "order must be 'given', 'shuffled' or row numbers"),
        ({"order": [0.5]}, "order must be"),
        ({"order": np.array([0, 99])}, "order names row 99"),
        ({"start": [1.0]}, "start must be 3 finite numbers"),
        ({"max_iter": 0}, "max_iter must be a whole number >= 1"),
    ],
)
def test_what_is_not_legal_is_refused(given, word):
    with pytest.raises(ValueError, match=word):
        cf.Perceptron(**given).fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])


def test_a_scan_with_weights_is_refused_in_words(rng, tmp_path):
    X, y = apart(rng, n=50)
    path = tmp_path / "rows.parquet"
    pd.DataFrame(X, columns=list("abcd")).assign(y=y, w=1.0).to_parquet(path)
    with pytest.raises(ValueError, match="Perceptron takes no weights"):
        cf.Perceptron().fit(cf.scan_parquet(str(path), target="y", weight="w"))


@OVERLAPPING
def test_certificates_survive_as_plain_json_types():
    for labels in ([0, 0, 1, 1], [0, 1, 1, 1]):
        proof = cf.Perceptron().fit([[0, 0], [1, 1], [0, 1], [1, 0]], labels).certificate_
        assert type(proof).from_dict(proof.to_dict()) == proof


def exact_bound(square, delta, margin, start, end):
    """The theorem's bound in 60 digits, from its own equation."""
    from decimal import Decimal, localcontext

    with localcontext() as context:
        context.prec = 60
        w, u = ([Decimal(float(number)) for number in numbers] for numbers in (start, end))
        along = sum(a * b for a, b in zip(w, u, strict=True)) / sum(b * b for b in u).sqrt()
        across = sum(a * a for a in w) - along * along
        gamma = Decimal(margin)
        t = (Decimal(square) + 2 * Decimal(delta)) / gamma - 2 * along
        return float((t + (t * t + 4 * max(across, Decimal(0))).sqrt()) / (2 * gamma))


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1.0, 1e8, 1e150, 1e290])
def test_the_bound_on_updates_is_never_below_that_of_exact_arithmetic(rng, size):
    from certifit.models.perceptron.certificate import bound_on_updates

    for _ in range(20):
        end = rng.normal(size=4) * size
        near = end * (1 + 1e-9 * rng.normal(size=4))
        for start in (rng.normal(size=4) * size, near, -near, np.zeros(4)):
            facts = (float(rng.uniform(1, 9)), float(rng.random()), float(10 ** rng.uniform(-6, 0)))
            found = bound_on_updates(*facts, start, end) * (1 + 1e-12)
            assert exact_bound(*facts, start, end) <= found < np.inf


@OVERLAPPING
@pytest.mark.parametrize(
    ("start", "scale"), [(1e300, 1.0), (-1e300, 1.0), (1e300, 1e-150), (1e-300, 1e150), (5e-324, 1e150), (5e-324, 1.0)]
)
def test_a_start_far_from_1_is_verified(rng, tmp_path, start, scale):
    X, y = apart(rng, n=40)
    model = cf.Perceptron(start=[start] * 5, max_iter=30).fit(X * scale, y)
    cf.save(model, tmp_path / "m.certifit")
    result = cf.verify(tmp_path / "m.certifit", X * scale, y)
    assert bool(result) == model.certificate_.holds
    assert str(result) and result.sentences()


def test_a_start_that_no_row_can_be_weighed_with_is_refused_in_words(rng):
    X, y = apart(rng, n=40)
    with pytest.raises(ValueError, match="leave the range of float64"):
        cf.Perceptron(start=[1e300] * 5).fit(X * 1e150, y)


def test_a_file_that_states_the_margin_of_its_weights_is_verified_by_that_margin(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2)) * [20.0, 1.0]
    y = (X[:, 1] + 0.02 * X[:, 0] > 0).astype(int)
    model = cf.Perceptron().fit(X, y)
    loose = model.certify(X, y, tight=False)
    assert model.certificate_.value > 10 * loose.value  # the bound of the widest margin is far smaller
    assert cf.verify(model, X, y)
    model.certificate_ = loose
    cf.save(model, tmp_path / "old.certifit")
    found = cf.verify(tmp_path / "old.certifit", X, y)
    assert found
    assert found.certificate.margin == pytest.approx(loose.margin)
    assert not cf.verify(tmp_path / "old.certifit", X, 1 - y)
