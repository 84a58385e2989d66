"""Noise + bias^2 + variance against closed forms, and against errors measured on new data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LogisticRegression

import certifit as cf
from certifit.evaluation.bias_variance import bias_variance
from certifit.selection.folds.splits import Bootstrap

SIGMA = 0.3
N = 40


def f(x):
    return np.sin(3 * x[:, 0])


def sampler(seed):
    """A new data set of the same size."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (N, 1))
    return x, f(x) + SIGMA * rng.normal(size=N)


class FixedRows:
    """New targets at the same rows: the case with closed forms."""

    def __init__(self, X, truth):
        self.X, self.truth = X, truth

    def __call__(self, seed):
        return self.X, self.truth + SIGMA * np.random.default_rng(seed).normal(size=len(self.X))


class PowerFit(RegressorMixin, BaseEstimator):
    """The same polynomial by np.polyfit, where many fits are needed."""

    def __init__(self, degree=1):
        self.degree = degree

    def fit(self, X, y):
        self.coef_ = np.polyfit(X[:, 0], y, self.degree)
        return self

    def predict(self, X):
        return np.polyval(self.coef_, X[:, 0])


def polynomial(degree=1):
    return cf.LinearRegression(basis=cf.Polynomial(degree))


@pytest.fixture
def points(rng):
    return rng.uniform(-0.9, 0.9, (300, 1))


# ---- the parts ----


@pytest.mark.slow
def test_parts_of_ridge_are_those_of_the_closed_form(rng, seed):
    n, alpha = 30, 0.5
    X, Z = rng.normal(size=(n, 4)), rng.normal(size=(50, 4))
    w = rng.normal(size=4)
    model = cf.Ridge(alpha=alpha, fit_intercept=False)
    result = bias_variance(
        model, None, None, Z, Z @ w, sampler=FixedRows(X, X @ w), noise=SIGMA**2, n_resamples=400, random_state=seed
    )
    inverse = np.linalg.inv(X.T @ X + n * alpha * np.eye(4))
    bias = Z @ (inverse @ X.T @ X @ w - w)
    variance = SIGMA**2 * np.sum((Z @ inverse @ X.T) ** 2, axis=1)
    assert abs(result.bias_squared[0] - np.mean(bias**2)) < 5 * result.bias_standard_error[0]
    assert abs(result.variance[0] - variance.mean()) < 5 * result.variance_standard_error[0]
    # the allowance is small against what is measured, so a wrong formula fails
    assert result.bias_standard_error[0] < 0.03 * np.mean(bias**2)
    assert result.variance_standard_error[0] < 0.1 * variance.mean()
    spread = np.sqrt(2 / 399) * variance  # of a variance of 400 normal numbers
    assert np.abs((result.variance_at[0] - variance) / spread).max() < 5
    assert np.abs((result.mean_prediction[0] - Z @ w - bias) / np.sqrt(variance / 400)).max() < 5


@pytest.mark.slow
def test_variance_grows_and_bias_falls_with_the_degree(seed):
    x = np.linspace(-1, 1, N)[:, None]
    degrees = [1, 3, 5, 7]
    result = bias_variance(
        polynomial(), None, None, x, f, sampler=FixedRows(x, f(x)), n_resamples=150,
        param_name="basis__degree", param_range=degrees, random_state=seed,
    )  # fmt: skip
    hats = [np.vander(x[:, 0], degree + 1) @ np.linalg.pinv(np.vander(x[:, 0], degree + 1)) for degree in degrees]
    bias = [np.mean((hat @ f(x) - f(x)) ** 2) for hat in hats]
    variance = [SIGMA**2 * (degree + 1) / N for degree in degrees]  # mean leverage times sigma^2
    assert (np.abs(result.bias_squared - bias) < 5 * result.bias_standard_error).all()
    assert (np.abs(result.variance - variance) < 5 * result.variance_standard_error).all()
    assert (np.diff(result.variance) > 0).all()
    assert np.diff(result.bias_squared)[0] < 0 and result.bias_squared[-1] < 0.01 * result.bias_squared[0]


@pytest.mark.slow
def test_the_three_parts_add_up_to_the_expected_error(points, rng, seed):
    degrees = [1, 3, 5]
    result = bias_variance(
        polynomial(), None, None, points, f, sampler=sampler, noise=SIGMA**2, n_resamples=200,
        param_name="basis__degree", param_range=degrees, random_state=seed,
    )  # fmt: skip
    for place, degree in enumerate(degrees):
        errors = []
        for draw in range(500):  # other training sets and other targets than the decomposition saw
            model = PowerFit(degree).fit(*sampler(10**9 + 1000 * seed + draw))
            y = f(points) + SIGMA * rng.normal(size=len(points))
            errors.append(np.mean((y - model.predict(points)) ** 2))
        own = np.hypot(result.bias_standard_error[place], result.variance_standard_error[place])
        chance = np.hypot(own, np.std(errors) / np.sqrt(len(errors)))
        assert abs(result.error[place] - np.mean(errors)) < 5 * chance
        assert chance < 0.15 * np.mean(errors)


def test_without_the_truth_the_parts_add_up_to_the_measured_error_exactly(points, rng):
    y = f(points) + SIGMA * rng.normal(size=len(points))
    result = bias_variance(polynomial(4), None, None, points, y_test=y, sampler=sampler, n_resamples=20)
    np.testing.assert_allclose(result.error, result.test_error, rtol=1e-12)
    assert result.noise is None
    assert result.bias_name == "bias^2 + noise"
    assert "cannot be told apart" in result.sentence


def test_noise_is_measured_where_truth_and_targets_are_known(points, rng):
    y = f(points) + SIGMA * rng.normal(size=len(points))
    result = bias_variance(polynomial(3), None, None, points, f(points), y, sampler=sampler, n_resamples=20)
    np.testing.assert_allclose(result.noise_at, (y - f(points)) ** 2)
    assert result.noise == pytest.approx(np.mean((y - f(points)) ** 2))
    # what is left is the product of bias and noise, which has mean 0
    left = -2 * np.mean((result.mean_prediction[0] - f(points)) * (y - f(points)))
    assert result.test_error[0] - result.error[0] == pytest.approx(left, abs=1e-12)


def test_few_draws_leave_no_bias_in_the_bias(points):
    truth_in_model = np.zeros(len(points))  # the model holds f* = 0, so its bias is 0

    def draw(seed):
        rng = np.random.default_rng(seed)
        return rng.uniform(-1, 1, (N, 1)), rng.normal(size=N)

    results = [
        bias_variance(PowerFit(), None, None, points, truth_in_model, sampler=draw, n_resamples=3, random_state=s)
        for s in range(150)
    ]
    bias = np.array([result.bias_squared[0] for result in results])
    variance = np.array([result.variance[0] for result in results])
    assert abs(bias.mean()) < 4 * bias.std() / np.sqrt(len(bias))
    assert variance.mean() / 3 > 4 * bias.std() / np.sqrt(len(bias))  # what (mean fit - f*)^2 alone would report


def test_variance_is_of_new_points_and_not_of_the_training_error(seed):
    """A fit through all its rows has no training error and much variance: it repeats the noise."""
    x = np.linspace(-1, 1, 6)[:, None]
    result = bias_variance(
        polynomial(5), None, None, x, f, sampler=FixedRows(x, f(x)), n_resamples=100, random_state=seed
    )
    assert abs(result.variance[0] - SIGMA**2) < 5 * result.variance_standard_error[0]
    assert abs(result.bias_squared[0]) < 5 * result.bias_standard_error[0] + 1e-12


def test_standard_errors_are_those_of_leaving_out_a_training_set(points):
    n, truth = 12, f(points)
    whole = bias_variance(polynomial(3), None, None, points, truth, sampler=sampler, n_resamples=n)
    seeds = []

    def remembered(seed):
        seeds.append(seed)
        return sampler(seed)

    bias_variance(polynomial(3), None, None, points, truth, sampler=remembered, n_resamples=n)
    predictions = np.array([polynomial(3).fit(*sampler(seed)).predict(points) for seed in seeds])
    np.testing.assert_allclose(whole.variance_at[0], predictions.var(axis=0, ddof=1))
    left = []
    for b in range(n):
        rest = np.delete(predictions, b, axis=0)
        variance = rest.var(axis=0, ddof=1)
        left.append((np.mean((rest.mean(axis=0) - truth) ** 2 - variance / (n - 1)), variance.mean()))
    errors = np.sqrt((n - 1) / n * np.sum((np.array(left) - np.mean(left, axis=0)) ** 2, axis=0))
    second = 2 * np.mean(np.cov(predictions.T) ** 2) / n**2
    np.testing.assert_allclose(whole.bias_standard_error[0], np.hypot(errors[0], np.sqrt(second)), rtol=1e-8)
    np.testing.assert_allclose(whole.variance_standard_error[0], errors[1], rtol=1e-8)


@pytest.mark.slow
def test_standard_errors_are_the_scatter_over_other_draws(points):
    for degree in (1, 5):  # much bias, and next to none
        results = [
            bias_variance(PowerFit(degree), None, None, points, f, sampler=sampler, n_resamples=40, random_state=s)
            for s in range(60)
        ]
        for part in ("bias", "variance"):
            values = [getattr(result, "bias_squared" if part == "bias" else part)[0] for result in results]
            claimed = np.median([getattr(result, f"{part}_standard_error")[0] for result in results])
            assert 0.5 < claimed / np.std(values) < 2


# ---- what is drawn ----


def test_bootstrap_sets_are_the_draws_of_bootstrap(points, seed):
    X, y = sampler(seed)
    result = bias_variance(polynomial(2), X, y, points, f, n_resamples=5, random_state=seed)
    draws = [rows for rows, _ in Bootstrap(5, random_state=seed).split(X)]
    predictions = np.array([polynomial(2).fit(X[rows], y[rows]).predict(points) for rows in draws])
    np.testing.assert_allclose(result.mean_prediction[0], predictions.mean(axis=0), rtol=1e-10)
    assert result.sampling == "bootstrap"
    assert "sampler=" in result.sentence


@pytest.mark.slow
def test_the_bootstrap_keeps_the_chance_of_its_one_data_set_in_the_bias(points):
    """Its mean fit is the fit to that data set: its bias^2 is bias^2 + variance on average, as its sentence says."""
    fresh = bias_variance(PowerFit(3), None, None, points, f, sampler=sampler, n_resamples=400)
    drawn = [
        bias_variance(PowerFit(3), *sampler(seed), points, f, n_resamples=30).bias_squared[0] for seed in range(100)
    ]
    expected = fresh.bias_squared[0] + fresh.variance[0]
    assert abs(np.mean(drawn) - expected) < 0.3 * expected
    assert np.mean(drawn) > 2 * fresh.bias_squared[0]


def test_all_models_see_the_same_training_sets(points):
    twice = bias_variance([polynomial(3), polynomial(3)], None, None, points, f, sampler=sampler, n_resamples=10)
    assert twice.variance[0] == twice.variance[1]
    assert (twice.mean_prediction[0] == twice.mean_prediction[1]).all()
    assert twice.complexity == [1, 2]


def test_jobs_and_random_state_decide_nothing_and_everything(points):
    one, two, other = (
        bias_variance(polynomial(3), *sampler(0), points, f, n_resamples=6, random_state=state, n_jobs=jobs)
        for state, jobs in ((0, None), (0, 2), (1, None))
    )
    assert (one.variance_at == two.variance_at).all()
    assert (one.variance_at != other.variance_at).any()


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, pd.DataFrame, pl.DataFrame, np.ndarray.tolist])
def test_rows_of_any_kind_are_drawn_alike(rng, kind):
    X, Z = rng.normal(size=(30, 3)), rng.normal(size=(7, 3))
    y, truth = X @ [1.0, 2.0, 3.0] + rng.normal(size=30), Z @ [1.0, 2.0, 3.0]
    expected = bias_variance(cf.LinearRegression(), X, y, Z, truth, n_resamples=5)
    result = bias_variance(cf.LinearRegression(), kind(X), y, kind(Z), truth, n_resamples=5)
    np.testing.assert_allclose(result.variance_at, expected.variance_at, rtol=1e-8)


def test_a_table_with_gaps_goes_through_its_encoder(rng):
    frame = pd.DataFrame({"a": rng.normal(size=60), "kind": rng.choice(["u", "v"], 60)})
    y = frame["a"] + (frame["kind"] == "u") + rng.normal(size=60)
    frame.loc[::4, "a"] = np.nan
    model = cf.LinearRegression(encoder=cf.TableEncoder())
    results = [bias_variance(model, table, y, table, y_test=y, n_resamples=5) for table in (frame, pa.table(frame))]
    assert results[0].variance[0] > 0
    np.testing.assert_array_equal(results[0].variance_at, results[1].variance_at)


# ---- refusals ----

X0, Y0 = sampler(0)
Z0 = X0[:5]
REFUSED = {
    "classifier": ((LogisticRegression(), X0, Y0, Z0, f), {}, "is a classifier"),
    "no estimator": (("ridge", X0, Y0, Z0, f), {}, "must be a regressor"),
    "no estimators": (([], X0, Y0, Z0, f), {}, "list of estimators is empty"),
    "no points": ((polynomial(), X0, Y0), {}, "X_test is missing"),
    "no truth": ((polynomial(), X0, Y0, Z0), {}, "Give truth"),
    "no data": ((polynomial(), None, None, Z0, f), {}, "Give X and y to draw rows from, or a sampler"),
    "both": ((polynomial(), X0, Y0, Z0, f), {"sampler": sampler}, "Pass X=None and y=None"),
    "no function": ((polynomial(), None, None, Z0, f), {"sampler": 3}, "seed -> "),
    "no pair": ((polynomial(), None, None, Z0, f), {"sampler": lambda seed: X0}, "must return a pair"),
    "noise alone": ((polynomial(), X0, Y0, Z0), {"noise": 1.0, "y_test": Y0[:5]}, "noise needs truth"),
    "negative noise": ((polynomial(), X0, Y0, Z0, f), {"noise": -1.0}, "must be >= 0. Got -1"),
    "short truth": ((polynomial(), X0, Y0, Z0, [1.0]), {}, "truth has 1 rows but X_test has 5"),
    "short y": ((polynomial(), X0, Y0[:7], Z0, f), {}, "y has 7 rows but X has 40"),
    "few draws": ((polynomial(), X0, Y0, Z0, f), {"n_resamples": 2}, "n_resamples must be a whole number >= 3"),
    "unknown parameter": (
        (polynomial(), X0, Y0, Z0, f), {"param_name": "degree", "param_range": [1]},
        "has no parameter 'degree'. It has basis",
    ),
    "empty range": ((polynomial(), X0, Y0, Z0, f), {"param_name": "tol", "param_range": []}, "param_range is empty"),
    "half a range": ((polynomial(), X0, Y0, Z0, f), {"param_name": "tol"}, "go together"),
    "list and range": (
        ([polynomial()], X0, Y0, Z0, f), {"param_name": "tol", "param_range": [1e-8]}, "Use one of the two",
    ),
    "labels": (([polynomial()], X0, Y0, Z0, f), {"complexity": [1, 2]}, "2 entries for 1 estimators"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_with_a_reason(case):
    data, options, words = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=words):
        bias_variance(*data, **options)


def test_data_sets_of_several_sizes_are_refused():
    sizes = iter([10, 10, 11, *[10] * 10])

    def uneven(seed):
        n = next(sizes)
        return X0[:n], Y0[:n]

    with pytest.raises(ValueError, match=r"of one size\. Got 10 to 11 rows"):
        bias_variance(polynomial(), None, None, Z0, f, sampler=uneven, n_resamples=5)


@pytest.mark.parametrize("kind", [np.asarray, lambda X: pd.DataFrame(X, columns=["a", "b"])])
def test_nan_is_named_by_its_row_among_all_rows(rng, kind):
    X = rng.normal(size=(30, 2))
    X[17, 1] = np.nan
    with pytest.raises(ValueError, match=r"row 17, column '(x1|b)'"):
        bias_variance(cf.LinearRegression(), kind(X), np.zeros(30), np.zeros((3, 2)), np.zeros(3))


def test_a_scan_is_refused(tmp_path):
    pd.DataFrame({"x": X0[:, 0], "y": Y0}).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(TypeError, match="rows in memory"):
        bias_variance(polynomial(), cf.scan_csv(tmp_path / "rows.csv", target="y"), Y0, Z0, f)


# ---- what is shown ----


@pytest.fixture
def result(points):
    options = {"param_name": "basis__degree", "param_range": range(1, 6), "n_resamples": 30, "noise": SIGMA**2}
    return bias_variance(polynomial(), None, None, points, f, sampler=sampler, **options)


@pytest.mark.slow
def test_the_table_names_every_part(result):
    lines = str(result).splitlines()
    assert lines[0].split() == ["basis__degree", "noise", "bias^2", "variance", "error"]
    assert [float(cell) for cell in lines[3].split()] == pytest.approx(
        [3, SIGMA**2, result.bias_squared[2], result.variance[2], result.error[2]], rel=0.01
    )
    assert "drawn anew" in lines[6]
    assert "30 fresh training sets" in repr(result)
