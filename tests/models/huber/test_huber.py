"""Huber regression: against its objective written out, against its peers, on rows where least squares fails."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from reference import huber_objective, own_huber_objective
from sklearn.exceptions import ConvergenceWarning

import certifit as cf
from certifit.data.source import Batches, Block, Memory
from certifit.mathematics.losses import Huber
from certifit.minimise.steps import COLUMNS
from certifit.models.huber.certificate import certify
from certifit.models.huber.model import HuberRegressor
from certifit.models.huber.solver import solve
from certifit.models.huber.task import HuberTask, HuberWeights, median_scale
from certifit.models.huber.wide import WideHuberTask
from tests.repetitions import some_of

RULES = ["joint", "mad", 1.0, 0.05, 50.0]


def rows(rng: np.random.Generator, n: int = 80, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, d)) + 2
    return X, X @ rng.normal(size=d) + rng.standard_t(1.5, size=n) + 3


@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("scale", RULES)
def test_the_fit_is_stationary_and_certified_at_rounding(rng, scale, alpha):
    X, y = rows(rng)
    model = HuberRegressor(alpha=alpha, scale=scale).fit(X, y)
    u = np.clip((y - model.predict(X)) / model.scale_, -model.delta, model.delta)
    unit = model.scale_ if scale != "joint" else 1.0
    slope = X.T @ u / len(y) * unit - alpha * model.coef_
    assert np.abs(slope).max() < 1e-11 * max(unit, 1.0)
    assert abs(u.sum()) < 1e-10
    if scale == "joint":
        assert np.mean(u * u) == pytest.approx(1.0, abs=1e-12)
    assert model.certificate_.value < 1e-13
    assert model.history_[-1]["gap"] <= 1e-15 * model.history_[-1]["objective"]
    assert tuple(model.history_[0]) == COLUMNS
    assert model.history_[-1]["objective"] == pytest.approx(own_huber_objective(model, X, y), rel=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("scale", ["joint", 1.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.slow
def test_the_certificate_is_never_below_the_true_excess(rng, scale, alpha, fit_intercept):
    X, y = rows(rng, 40, 3)
    weight = rng.integers(1, 4, size=40).astype(float)
    model = HuberRegressor(alpha=alpha, scale=scale, fit_intercept=fit_intercept).fit(X, y, weight)
    best = own_huber_objective(model, X, y, weight)
    task = HuberTask(Memory(X, y, weight), Huber(1.35), alpha, scale, fit_intercept)
    ratios = []
    for _ in range(some_of(150)):
        size = 10.0 ** rng.uniform(-7, 0.5)
        coef = model.coef_ + size * rng.normal(size=3)
        intercept = model.intercept_ + size * rng.normal() * fit_intercept
        s = model.scale_ * float(np.exp(size * rng.normal())) if scale == "joint" else model.scale_
        at = huber_objective(model, X, y, coef, intercept, s, weight)
        claimed = certify(task, HuberWeights(coef, intercept, s), 1e-8).value * at
        assert claimed >= (at - best) * (1 - 1e-9) - 1e-14 * best
        if at - best > 1e-10 * best:
            ratios.append(claimed / (at - best))
    assert np.median(ratios) < 3  # near, and not a bound for show


@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("scale", RULES)
@pytest.mark.slow
def test_a_nudged_solution_is_refused(rng, scale, alpha):
    X, y = rows(rng)
    model = HuberRegressor(alpha=alpha, scale=scale).fit(X, y)
    again = model.certify(X, y)
    assert again.holds and again.value <= 10 * model.certificate_.value
    for j in range(4):
        nudged = HuberRegressor(alpha=alpha, scale=scale).fit(X, y)
        nudged.coef_ = nudged.coef_.copy()
        nudged.coef_[j] += 1e-4 * abs(nudged.coef_[j])
        assert nudged.certify(X, y).value > 10 * model.certificate_.value + model.certificate_.rounding


def test_a_nudged_joint_scale_is_refused(rng):
    X, y = rows(rng)
    model = HuberRegressor().fit(X, y)
    model.scale_ *= 1 + 1e-3
    assert not model.certify(X, y).holds


def test_a_nudged_median_scale_is_refused_with_the_fit_that_goes_with_it(rng):
    X, y = rows(rng)
    model = HuberRegressor(scale="mad").fit(X, y)
    other = HuberRegressor(scale=model.scale_ * 1.001).fit(X, y)
    assert other.certificate_.holds
    model.coef_, model.intercept_, model.scale_ = other.coef_, other.intercept_, other.scale_
    assert not model.certify(X, y).holds  # the best fit at a scale that is not the median residual's


@pytest.mark.parametrize("scale", ["joint", 0.05])
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_a_fit_that_stops_early_says_by_how_much_the_objective_can_still_fall(rng, scale, alpha):
    X, y = rows(rng)
    best = HuberRegressor(alpha=alpha, scale=scale).fit(X, y)
    least = own_huber_objective(best, X, y)
    excesses = []
    for steps in (1, 2):
        with pytest.warns(ConvergenceWarning, match=r"NOT certified: the objective can be up to .* above its minimum"):
            early = HuberRegressor(alpha=alpha, scale=scale, max_iter=steps).fit(X, y)
        assert not early.certificate_.holds and "Converged" not in str(early.certificate_)
        at = own_huber_objective(early, X, y)
        excesses.append(at - least)
        assert 0 < at - least <= early.certificate_.value * at
    assert excesses[1] < excesses[0]


@pytest.mark.parametrize("alpha", [0.0, 0.05])
@pytest.mark.parametrize("delta", [1.35, 2.0])
def test_a_joint_scale_is_the_model_of_scikit_learn(rng, alpha, delta):
    sklearn = pytest.importorskip("sklearn.linear_model")
    X, y = rows(rng, 200, 5)
    weight = rng.integers(1, 4, size=200).astype(float)
    model = HuberRegressor(delta, alpha).fit(X, y, weight)
    # Its objective is 2 W times ours: alpha is on the scale of the sum. Below a slope of about 1e-5 the objective
    # changes by less than its rounding, and the line search may end in an error.
    peer = sklearn.HuberRegressor(epsilon=delta, alpha=alpha * weight.sum(), tol=1e-4, max_iter=100_000)
    peer.fit(X, y, weight)
    theirs = huber_objective(model, X, y, peer.coef_, peer.intercept_, peer.scale_, weight)
    ours = own_huber_objective(model, X, y, weight)
    assert ours <= theirs * (1 + 1e-14)
    assert theirs == pytest.approx(ours, rel=1e-9)
    # A slope of 1e-4 of a sum over 400 leaves a few digits fewer in the place than in the value.
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=2e-5)
    assert model.scale_ == pytest.approx(peer.scale_, rel=2e-5)
    started = sklearn.HuberRegressor(epsilon=delta, alpha=alpha * weight.sum(), tol=1e-4, warm_start=True)
    started.coef_, started.intercept_, started.scale_ = model.coef_.copy(), model.intercept_, model.scale_
    started.fit(X, y, weight)  # from our answer it does not move
    np.testing.assert_allclose(model.coef_, started.coef_, rtol=1e-6)
    assert model.scale_ == pytest.approx(started.scale_, rel=1e-6)


def test_a_median_scale_is_the_fixed_point_of_statsmodels(rng):
    sm = pytest.importorskip("statsmodels.api")
    X, y = rows(rng, 200, 5)
    model = HuberRegressor(scale="mad").fit(X, y)
    peer = sm.RLM(y, sm.add_constant(X), M=sm.robust.norms.HuberT(1.35)).fit(maxiter=1000, tol=1e-13)
    np.testing.assert_allclose([model.intercept_, *model.coef_], peer.params, rtol=1e-10)
    assert model.scale_ == pytest.approx(peer.scale, rel=1e-10)


def test_a_huge_delta_is_least_squares_and_a_small_scale_least_absolute_values(rng):
    X, y = rows(rng)
    for alpha in (0.0, 0.3):
        far = HuberRegressor(1e6, alpha, scale=1.0).fit(X, y)
        np.testing.assert_allclose(far.coef_, cf.Ridge(alpha).fit(X, y).coef_, rtol=1e-11)
    near = HuberRegressor(scale=1e-7).fit(X, y)
    r = y - near.predict(X)
    assert np.count_nonzero(np.abs(r) < 1e-6) >= 5  # it passes through as many rows as it has unknowns
    from scipy.optimize import linprog

    n, d = X.shape
    A = np.hstack([np.ones((n, 1)), X, np.eye(n), -np.eye(n)])
    best = linprog(
        np.r_[np.zeros(d + 1), np.ones(2 * n)], A_eq=A, b_eq=y, bounds=[(None, None)] * (d + 1) + [(0, None)] * 2 * n
    )
    assert np.abs(r).sum() == pytest.approx(best.fun, rel=1e-6)


@pytest.mark.parametrize("scale", ["joint", "mad", 1.0])
def test_weight_two_is_the_row_twice_and_weight_zero_no_row(rng, scale):
    X, y = rows(rng)
    times = rng.integers(0, 4, size=len(y))
    weighted = HuberRegressor(alpha=0.01, scale=scale).fit(X, y, times.astype(float))
    repeated = HuberRegressor(alpha=0.01, scale=scale).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9)
    assert weighted.scale_ == pytest.approx(repeated.scale_, rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_the_weighted_median_is_that_of_repeated_numbers(rng, n):
    r, times = rng.normal(size=n), rng.integers(0, 4, size=n)
    times[0] = 1
    expected = np.median(np.abs(np.repeat(r, times))) / 0.6744897501960817
    assert median_scale(r, times.astype(float)) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("scale", ["joint", "mad", 1.0])
def test_sparse_rows_and_batches_give_the_fit_of_dense_rows(rng, scale):
    X, y = rows(rng, 3000, 4)
    X[rng.uniform(size=X.shape) < 0.6] = 0
    dense = HuberRegressor(scale=scale).fit(X, y)
    sparse = HuberRegressor(scale=scale).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-10)

    def batches():
        for begin in range(0, len(y), 700):
            yield Block(X[begin : begin + 700], y[begin : begin + 700], None)

    streamed = HuberRegressor(scale=scale).fit(Batches(batches, [f"x{j}" for j in range(4)]))
    np.testing.assert_allclose(streamed.coef_, dense.coef_, rtol=1e-10)
    assert streamed.certificate_.holds and sparse.certificate_.holds


@pytest.mark.parametrize("scale", ["joint", "mad", 1.0])
@pytest.mark.slow
def test_a_scan_of_a_file_gives_the_fit_of_its_rows(rng, tmp_path, scale):
    X, y = rows(rng, 300, 3)
    weight = rng.integers(0, 3, size=300).astype(float)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y, w=weight)
    frame.to_parquet(tmp_path / "rows.parquet")
    scan = cf.scan_parquet(tmp_path / "rows.parquet", target="y", weight="w")
    streamed = HuberRegressor(alpha=0.01, scale=scale).fit(scan)
    direct = HuberRegressor(alpha=0.01, scale=scale).fit(frame[["a", "b", "c"]], y, weight)
    np.testing.assert_allclose(streamed.coef_, direct.coef_, rtol=1e-11)
    assert streamed.scale_ == pytest.approx(direct.scale_, rel=1e-11)
    assert streamed.certificate_.holds and streamed.certify(scan).holds and cf.verify(streamed, scan)
    np.testing.assert_allclose(streamed.predict(scan), direct.predict(frame[["a", "b", "c"]]), rtol=1e-10)


def test_tables_with_categories_are_encoded(rng):
    X, y = rows(rng, 200, 2)
    group = rng.choice(["a", "b", "c"], size=200)
    frame = pd.DataFrame({"x0": X[:, 0], "x1": X[:, 1], "group": group})
    y = y + 2 * (group == "b")
    model = HuberRegressor(encoder=cf.TableEncoder()).fit(frame, y)
    assert model.certificate_.holds
    assert model.certify(frame, y).holds
    assert len(model.predict(frame)) == 200


def test_a_basis_is_fitted_in(rng):
    x = np.linspace(-1, 1, 100)[:, None]
    y = 1 + 2 * x[:, 0] ** 2 + 0.01 * rng.normal(size=100)
    y[::10] += 5
    model = HuberRegressor(basis=cf.Polynomial(2), scale="mad").fit(x, y)
    assert model.monomials()["x0^2"] == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize("scale", ["joint", "mad", 1.0])
def test_redundant_columns_give_the_smallest_norm(rng, scale):
    X, y = rows(rng, 60, 3)
    alone = HuberRegressor(scale=scale).fit(X, y)
    both = HuberRegressor(scale=scale).fit(np.column_stack([X, X[:, 0], np.full(60, 5.0)]), y)
    assert both.rank_ == 3
    assert both.certificate_.holds and both.certificate_.dependent
    np.testing.assert_allclose(both.coef_[[0, 3]], alone.coef_[0] / 2, rtol=1e-8)
    assert abs(both.coef_[4]) < 1e-12


@pytest.mark.parametrize("scale", ["joint", "mad", 1.0])
@pytest.mark.parametrize("target", ["line", "constant", "zero", "one row"])
@pytest.mark.filterwarnings("ignore:.*NOT certified")
def test_exact_fits_are_certified(rng, scale, target):
    X = rng.normal(size=(60, 3))
    y = {
        "line": X @ [1.0, 2.0, 3.0] + 3,
        "constant": np.full(60, 7.0),
        "zero": np.zeros(60),
        "one row": np.full(60, 2.0),
    }[target]
    if target == "one row":
        X, y = X[:1], y[:1]
    model = HuberRegressor(scale=scale).fit(X, y)
    assert model.certificate_.holds == (target == "line" or scale != "joint")  # without a residual no scale is best
    np.testing.assert_allclose(model.predict(X), y, atol=1e-12)


def is_at_zero(model):
    """Whether the certificate says that the best scale is 0, which it does of fits proven to be best alone."""
    return not model.certificate_.holds and "best scale is 0" in model.certificate_.sentences()[0]


@pytest.mark.parametrize("share", [0.3, 0.42, 0.5, 0.6, 0.8, 0.95])
def test_the_best_scale_is_zero_where_there_are_multipliers_of_small_mean_square(share):
    """There are u_i = sign r_i where r_i is not 0, X'u = 0, |u_i| <= 1, mean u^2 <= 1 / delta^2, at the median fit."""
    from scipy.optimize import linprog

    rng = np.random.default_rng(int(100 * share))
    n = 120
    X = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    sides = rng.choice([1.0, 1.0, -1.0], n) if share < 0.55 else np.ones(n)
    y = np.where(rng.random(n) < share, 0.0, rng.lognormal(size=n) * sides)
    absolute = np.hstack([X, np.eye(n), -np.eye(n)])
    bounds = [(None, None)] * 3 + [(0, None)] * (2 * n)
    median = linprog(np.append(np.zeros(3), np.ones(2 * n)), A_eq=absolute, b_eq=y, bounds=bounds).x[:3]
    r = y - X @ median
    met = np.abs(r) < 1e-9
    u = np.sign(r)
    u[met] = np.linalg.lstsq(X[met].T, -X[~met].T @ u[~met], rcond=None)[0]
    is_witness = np.abs(u).max() <= 1 and np.allclose(X.T @ u, 0, atol=1e-8) and np.mean(u**2) <= 1 / 1.35**2
    model = HuberRegressor().fit(X[:, 1:], y)
    assert is_at_zero(model) == is_witness
    assert model.certificate_.holds != is_witness
    if is_witness:
        np.testing.assert_allclose([model.intercept_, *model.coef_], median, atol=1e-8)
        assert "quantile regression" in model.certificate_.sentences()[0]
    mad = HuberRegressor(scale="mad").fit(X[:, 1:], y)
    assert ("median of |r| is 0" in mad.certificate_.sentences()[0]) == (not mad.certificate_.holds)


def test_a_joint_scale_falls_to_rounding_where_most_rows_lie_on_a_plane(rng):
    X = rng.normal(size=(60, 3))
    y = X @ [1.0, 2.0, 3.0]
    y[45:] += 10 * rng.normal(size=15)
    model = HuberRegressor().fit(X, y)
    assert is_at_zero(model) and model.scale_ < 1e-11
    np.testing.assert_allclose(model.coef_, [1.0, 2.0, 3.0], atol=1e-11)


def test_a_joint_scale_falls_to_rounding_on_a_tie_of_slopes():
    X = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]])
    model = HuberRegressor().fit(X, [2.0, 4.0, 6.0, 8.0, 100.0])
    assert is_at_zero(model)
    assert model.scale_ < 1e-9


# A median of residuals that are alpha times as large as y is not known from alpha 1e-8 on: there is no "mad" then.
@pytest.mark.parametrize(
    ("scale", "alpha"),
    [("mad", alpha) for alpha in (1.0, 0.1, 1e-4)]
    + [(scale, alpha) for scale in (1.0, "joint") for alpha in (1.0, 0.1, 1e-4, 1e-8)],
)
@pytest.mark.parametrize("shape", [(20, 50), (20, 19), (40, 30)])
@pytest.mark.slow
def test_about_as_many_columns_as_rows_are_fitted_and_certified(rng, shape, alpha, scale):
    # A joint scale falls to 0 for most of these: the fit is then that of least absolute values.
    X, y = rng.normal(size=shape), rng.standard_t(1.5, size=shape[0])
    model = HuberRegressor(alpha=alpha, scale=scale).fit(X, y)
    assert model.certificate_.value < 1e-7 or is_at_zero(model)
    if scale == "joint" and model.scale_ < 1e-9:
        r = y - model.predict(X)
        assert np.count_nonzero(np.abs(r) < 1e-8) > 0.45 * len(y)  # the others alone have mean square slope above 1


def test_a_joint_scale_of_zero_is_least_absolute_values_with_a_penalty(rng):
    from scipy.optimize import minimize

    X, y = rng.normal(size=(20, 19)), rng.standard_t(1.5, size=20)
    model = HuberRegressor(alpha=0.05).fit(X, y)
    assert is_at_zero(model) and model.scale_ < 1e-9
    # The dual: the most of u'y / n - |X'u|^2 / (2 n^2 alpha) over |u| <= delta, sum u = 0.
    n = len(y)

    def dual(u):
        q = X.T @ u / n
        return -(u @ y / n - q @ q / (2 * 0.05)), -(y / n - X @ q / n / 0.05)

    constraint = {"type": "eq", "fun": lambda u: u.sum(), "jac": lambda u: np.ones(n)}
    options = {"ftol": 1e-14, "maxiter": 2000}
    best = minimize(
        dual, np.zeros(n), jac=True, bounds=[(-1.35, 1.35)] * n, constraints=constraint, method="SLSQP", options=options
    )
    primal = 1.35 * np.abs(y - model.predict(X)).mean() + 0.05 / 2 * model.coef_ @ model.coef_
    assert primal == pytest.approx(-best.fun, rel=1e-8)


@pytest.mark.parametrize("alpha", [0.1, 1e-3])
@pytest.mark.slow
def test_the_certificate_is_never_below_the_true_excess_where_the_scale_falls_to_zero(rng, alpha):
    X, y = rng.normal(size=(24, 20)), rng.standard_t(1.5, size=24)
    model = HuberRegressor(alpha=alpha).fit(X, y)
    assert is_at_zero(model) and model.scale_ < 1e-9
    task = HuberTask(Memory(X, y, None), Huber(1.35), alpha, "joint", True)
    best = own_huber_objective(model, X, y)
    for _ in range(some_of(50)):
        size = 10.0 ** rng.uniform(-12, 0)
        coef, intercept = model.coef_ + size * rng.normal(size=20), model.intercept_ + size * rng.normal()
        s = 10.0 ** rng.uniform(-16, 0)
        at = huber_objective(model, X, y, coef, intercept, s)
        claimed = certify(task, HuberWeights(coef, intercept, s), 1e-8).value * at
        assert claimed >= (at - best) * (1 - 1e-9) - 1e-12 * best


@pytest.mark.parametrize("factor", [1e300, 1e-300])
@pytest.mark.parametrize("scale", ["joint", "mad", 1.0])
def test_units_do_not_matter(rng, scale, factor):
    X, y = rows(rng)
    plain = HuberRegressor(scale=scale).fit(X, y)
    scaled = HuberRegressor(scale=scale if scale != 1.0 else factor).fit(X, y * factor)
    np.testing.assert_allclose(scaled.coef_ / factor, plain.coef_, rtol=1e-11)
    both = HuberRegressor(scale=scale if scale != 1.0 else factor).fit(X * factor, y * factor)
    np.testing.assert_allclose(both.coef_, plain.coef_, rtol=1e-11)
    assert scaled.certificate_.holds and both.certificate_.holds


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"delta": 0.0}, "a finite number >= 1e-6. Got 0.0. Below it use a smaller scale"),
        ({"delta": 1.0}, "above 1 with scale='joint'"),
        ({"delta": 0.0, "scale": 1.0}, "a finite number >= 1e-6"),
        ({"delta": 10**400}, "delta must be a finite number"),
        ({"alpha": 10**5000}, "alpha must be a finite number"),
        ({"scale": 10**400}, "'joint', 'mad' or a number from"),
        ({"tol": 10**400}, "tol must be a finite number"),
        ({"scale": 5e-324}, "from 1e-300 to 1e300"),
        ({"max_iter": 2**70}, "from 1 to 1000000. Got a whole number of 71 bits"),
        ({"max_iter": -(10**6000)}, "from 1 to 1000000. Got a whole number of 19932 bits"),
        ({"delta": np.nan}, "delta must be a finite number"),
        ({"alpha": -1.0}, "alpha must be a finite number"),
        ({"scale": "huber"}, "'joint', 'mad' or a number"),
        ({"scale": 0.0}, "'joint', 'mad' or a number"),
        ({"max_iter": 0}, "max_iter must be a whole number"),
    ],
)
def test_illegal_parameters_are_refused_by_name(rng, parameters, message):
    X, y = rows(rng)
    with pytest.raises(ValueError, match=message):
        HuberRegressor(**parameters).fit(X, y)


def test_no_inference_of_least_squares_is_offered(rng):
    X, y = rows(rng)
    model = HuberRegressor().fit(X, y)
    with pytest.raises(ValueError, match="Huber"):
        model.summary()
    with pytest.raises(ValueError, match="Huber"):
        model.predict_interval(X)


def test_folds_are_refitted_by_cross_validation(rng):
    X, y = rows(rng)
    found = cf.CrossValidated(HuberRegressor(), cv=cf.Folds(4)).fit(X, y)
    assert np.isfinite(found.predict(X)).all()


def test_the_objective_is_stated(rng):
    X, y = rows(rng)
    assert "over w, b and s > 0" in HuberRegressor().objective
    assert "at s = mad" in HuberRegressor(scale="mad").objective
    model = HuberRegressor(scale="mad").fit(X, y)
    assert f"at s = {model.scale_:g}" in model.objective
    assert "scale found" in model.certificate_.claim


@pytest.mark.parametrize("scale", ["joint", "mad", 1.0])
@pytest.mark.parametrize("distance", [1e-14, 1e-15])
def test_a_near_copy_is_judged_in_columns_of_its_own(scale, distance):
    u, v, noise = np.random.default_rng(0).normal(size=(3, 30))
    model = cf.HuberRegressor(scale=scale).fit(np.c_[u, u + distance * v], u + noise)
    alone = cf.HuberRegressor(scale=scale).fit(u[:, None], u + noise)
    found = model.certificate_
    assert alone.certificate_.holds and found.n_columns == 2
    assert (found.value if found.literal is None else found.literal) > alone.certificate_.value


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("scale", ["mad", 1.0, "joint"])
def test_fewer_rows_than_columns_have_the_fit_and_the_bound_of_the_columns(rng, scale, standardize, fit_intercept):
    X, y = rng.normal(size=(8, 12)) * rng.uniform(0.5, 2, 12) + 3, rng.standard_t(2, size=8)
    weight = rng.integers(0, 4, size=8).astype(float)
    source = Memory(X, y, weight)
    for alpha in (1.0, 1e-3):
        model = HuberRegressor(alpha=alpha, scale=scale, standardize=standardize, fit_intercept=fit_intercept)
        model.fit(X, y, weight)
        assert isinstance(model._task(source), WideHuberTask)
        columns = HuberTask(source, Huber(1.35), alpha, scale, fit_intercept, standardize)
        by_columns = solve(columns, 100).state
        np.testing.assert_allclose(model.predict(X), X @ by_columns.coef + by_columns.intercept, rtol=1e-6, atol=1e-6)
        for size in (0.0, 1e-6, 1e-2):
            coef = model.coef_ + size * rng.normal(size=12)
            state = HuberWeights(coef, model.intercept_, model.scale_)
            mine, theirs = (certify(task, state, 1e-8).value for task in (model._task(source), columns))
            # Two proofs of one excess: none is below it, so neither is far below the other.
            assert mine <= 3 * theirs + 1e-9 and theirs <= 3 * mine + 1e-9


def test_steps_to_dual_points_are_taken_once_for_all_that_is_demanded_of_them(rng, monkeypatch):
    from certifit.models.huber import certificate

    X = rng.normal(size=(30, 90))
    y = X[:, 0] + rng.standard_t(2, size=30)
    model = cf.HuberRegressor(alpha=1e-4).fit(X, y)
    assert is_at_zero(model) and model.scale_ < 1e-9  # the rows are met: several dual points are looked at
    starts, own = [], certificate._newton_duals

    def counted(task, at, scale, sums, free):
        starts.append((scale, free))
        return own(task, at, scale, sums, free)

    monkeypatch.setattr(certificate, "_newton_duals", counted)
    task = HuberTask(Memory(X, y), Huber(1.35), 1e-4, "joint", True)
    at = task.point(HuberWeights(np.zeros(90), 0.0, 1.0))
    certificate.duality_gap(task, at, task.sums_at(at), 1.0, certificate._demands(task, at.scale))
    assert 0 < len(starts) == len(set(starts))


def test_many_columns_of_few_rows_are_fitted_and_rows_that_contradict_each_other_are_refused(rng):
    X, y = rng.normal(size=(30, 4500)), rng.standard_t(2, size=30)
    for alpha in (0.0, 1.0):
        model = HuberRegressor(alpha=alpha).fit(X, y)
        assert (model.certificate_.holds or is_at_zero(model)) and model.coef_.shape == (4500,)
    far = HuberRegressor(alpha=1.0).fit(X, 1e100 * y)
    assert far.certificate_.holds or is_at_zero(far)  # the best weights are 1e-100 of the target
    X[1], y[1] = X[0], y[0] + 1
    assert is_at_zero(HuberRegressor(alpha=1.0).fit(X, y))
    with pytest.raises(ValueError, match=r"at most 4000 columns\. Got 4500.*alpha > 0"):
        HuberRegressor().fit(X, y)
