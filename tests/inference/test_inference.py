"""Inference against exact arithmetic, statsmodels' OLS and simulation; the summary in each of its forms."""

from __future__ import annotations

import doctest
import json
import math
import pickle
import sys
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats

from certifit.inference import least_squares as module
from certifit.inference import summary as table
from certifit.inference.least_squares import Inference

TOLERANCE = 1e-8


def design(X: np.ndarray, has_intercept: bool) -> np.ndarray:
    return np.column_stack([np.ones(len(X)), X]) if has_intercept else X


def fitted(
    X: np.ndarray,
    y: np.ndarray,
    has_intercept: bool = True,
    weight: np.ndarray | None = None,
    *,
    names: list[str] | None = None,
    exponent: int = 0,
) -> Inference:
    """The inputs of Inference by the formulas; y is in units of 2**exponent."""
    weight = np.ones(len(y)) if weight is None else weight
    Z = design(X, has_intercept)
    inverse = np.linalg.inv(Z.T @ (weight[:, None] * Z))
    estimate = np.linalg.lstsq(np.sqrt(weight)[:, None] * Z, np.sqrt(weight) * y, rcond=None)[0]
    residual = y - Z @ estimate
    spread = y - np.average(y, weights=weight) if has_intercept else y
    names = names or [f"x{j}" for j in range(X.shape[1])]
    return Inference(
        names=("intercept", *names) if has_intercept else tuple(names),
        estimate=np.ldexp(estimate, exponent),
        inverse=inverse,
        rss=float(weight @ residual**2),
        tss=float(weight @ spread**2),
        exponent=exponent,
        n_obs=float(weight.sum()),
        has_intercept=has_intercept,
    )


def sample(seed: int = 0, n_rows: int = 40, n_features: int = 3) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, n_features)) + 2.0
    return X, X @ np.arange(n_features) + 1.5 + random.normal(size=n_rows)


def statsmodels_fit(X: np.ndarray, y: np.ndarray, has_intercept: bool) -> Any:
    sm = pytest.importorskip("statsmodels.api")
    return sm.OLS(y, design(X, has_intercept)).fit()


def assert_agrees(ours: Inference, theirs: Any) -> None:
    pairs = {
        "estimate": theirs.params,
        "standard_errors": theirs.bse,
        "t_values": theirs.tvalues,
        "p_values": theirs.pvalues,
        "sigma2": theirs.scale,
        "sigma": math.sqrt(theirs.scale),
        "r_squared": theirs.rsquared,
        "adjusted_r_squared": theirs.rsquared_adj,
        "log_likelihood": theirs.llf,
        "aic": theirs.aic,
        "bic": theirs.bic,
        "f_statistic": theirs.fvalue,
        "f_pvalue": theirs.f_pvalue,
        "df_model": theirs.df_model,
        "df_resid": theirs.df_resid,
    }
    for name, expected in pairs.items():
        np.testing.assert_allclose(getattr(ours, name), expected, rtol=TOLERANCE, err_msg=name)
    for level in (0.5, 0.95, 0.999):
        ends = theirs.conf_int(alpha=1 - level)
        np.testing.assert_allclose(ours.confidence_interval(level), ends, rtol=TOLERANCE)


@pytest.mark.parametrize("has_intercept", [True, False])
@pytest.mark.parametrize("n_features", [1, 3, 8])
def test_every_number_agrees_with_statsmodels(has_intercept: bool, n_features: int) -> None:
    X, y = sample(n_features, 40, n_features)
    assert_agrees(fitted(X, y, has_intercept), statsmodels_fit(X, y, has_intercept))


@pytest.mark.parametrize("has_intercept", [True, False])
def test_weight_two_is_the_row_twice(has_intercept: bool) -> None:
    X, y = sample(5)
    weight = np.random.default_rng(6).integers(1, 4, len(y))
    again = np.repeat(np.arange(len(y)), weight)
    ours = fitted(X, y, has_intercept, weight.astype(float))
    assert_agrees(ours, statsmodels_fit(X[again], y[again], has_intercept))
    Z = design(X, has_intercept)
    repeated = fitted(X[again], y[again], has_intercept)
    mine, twice = (fit.interval(Z, Z @ fit.estimate) for fit in (ours, repeated))
    np.testing.assert_allclose(mine, twice, rtol=1e-12)


@pytest.mark.parametrize("has_intercept", [True, False])
@pytest.mark.parametrize("kind, theirs", [("confidence", "mean_ci"), ("prediction", "obs_ci")])
def test_intervals_agree_with_statsmodels(has_intercept: bool, kind: Any, theirs: str) -> None:
    X, y = sample(7)
    reference = statsmodels_fit(X, y, has_intercept)
    Z = design(sample(8)[0], has_intercept)
    for level in (0.8, 0.95):
        frame = reference.get_prediction(Z).summary_frame(alpha=1 - level)
        ours = fitted(X, y, has_intercept).interval(Z, Z @ reference.params, level, kind)
        np.testing.assert_allclose(ours, frame[[f"{theirs}_lower", f"{theirs}_upper"]], rtol=TOLERANCE)


@pytest.mark.parametrize("has_intercept", [True, False])
def test_variance_weights_agree_with_weighted_least_squares_of_statsmodels(has_intercept: bool) -> None:
    sm = pytest.importorskip("statsmodels.api")
    X, y = sample(12)
    weight = np.random.default_rng(13).uniform(0.01, 0.2, len(y))  # they sum to about 4: no count of rows
    ours = fitted(X, y, has_intercept, weight * 20)
    ours = replace(ours, inverse=ours.inverse * 20, rss=ours.rss / 20, tss=ours.tss / 20, n_obs=weight.sum() + 10)
    ours = replace(ours, n_obs=float(len(y)), sum_weight=float(weight.sum()), log_weight=float(np.log(weight).sum()))
    theirs = sm.WLS(y, design(X, has_intercept), weights=weight).fit()
    assert_agrees(ours, theirs)
    np.testing.assert_allclose(ours.covariance, theirs.cov_params(), rtol=TOLERANCE)
    Z = design(sample(8)[0], has_intercept)
    frame = theirs.get_prediction(Z).summary_frame()
    ends = ours.interval(Z, Z @ theirs.params, kind="confidence")
    np.testing.assert_allclose(ends, frame[["mean_ci_lower", "mean_ci_upper"]], rtol=TOLERANCE)


def test_variance_weights_without_the_rows_say_what_is_missing() -> None:
    X, y = sample(4)
    weight = np.random.default_rng(5).uniform(0.5, 2, len(y))
    fit = fitted(X, y, weight=weight).with_variance_weights(len(y))
    assert (fit.weights, fit.n_obs, fit.df_resid) == ("variance", 40.0, 36.0)
    assert math.isnan(fit.log_likelihood) and math.isnan(fit.aic) and math.isnan(fit.bic)
    summary = fit.summary("LinearRegression", "y")
    assert summary.to_dict()["aic"] is None and "nan" not in str(summary) and str(summary).count("undefined") == 3
    assert "weights='variance'" in str(summary) and "every row counts" in str(summary)
    with pytest.raises(ValueError, match="the number of rows is 4 and 4 coefficients"):
        fit.with_variance_weights(4)


def test_the_table_says_what_the_weights_mean() -> None:
    assert "weight 2 is the row twice" in str(fitted(*sample()).summary("LinearRegression", "y"))


@pytest.mark.parametrize("has_intercept", [True, False])
def test_variance_inflation_is_that_of_a_regression_on_the_other_columns(has_intercept: bool) -> None:
    X, y = sample(3, 60, 5)
    X[:, 4] += 3 * X[:, 1] - X[:, 2]
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    found = fitted(X, y, has_intercept, weight).variance_inflation()
    assert list(found) == [f"x{j}" for j in range(5)]
    for j, factor in enumerate(found.values()):
        others = fitted(np.delete(X, j, axis=1), X[:, j], has_intercept, weight)
        assert factor == pytest.approx(1 / (1 - others.r_squared), rel=TOLERANCE)
    assert fitted(X[:, :1], y).variance_inflation() == {"x0": pytest.approx(1, rel=1e-14)}
    assert fitted(X[:, :0], y).variance_inflation() == {}


def test_interval_in_blocks_equals_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = sample()
    fit, Z = fitted(X, y), design(X, True)
    whole = fit.interval(Z, Z @ fit.estimate)
    monkeypatch.setattr(module, "BLOCK_NUMBERS", 20)
    np.testing.assert_allclose(fit.interval(Z, Z @ fit.estimate), whole, rtol=1e-14)
    assert fit.interval(Z[:0], y[:0]).shape == (0, 2)
    assert fit.interval(Z.astype(np.float32), Z @ fit.estimate).dtype == np.float64


def exact_inverse(rows: list[list[Fraction]]) -> list[list[Fraction]]:
    """Inverse of Z'Z by Gauss and Jordan without rounding."""
    size = len(rows[0])
    table = [
        [sum((r[i] * r[j] for r in rows), Fraction(0)) for j in range(size)]
        + [Fraction(int(i == j)) for j in range(size)]
        for i in range(size)
    ]
    for i in range(size):
        table[i] = [value / table[i][i] for value in table[i]]
        for j in set(range(size)) - {i}:
            table[j] = [a - table[j][i] * b for a, b in zip(table[j], table[i], strict=True)]
    return [row[size:] for row in table]


def longley() -> np.ndarray:
    datasets = pytest.importorskip("statsmodels.datasets")
    return np.asarray(datasets.longley.load_pandas().exog, dtype=float)


@pytest.mark.parametrize("data", ["longley", "timestamps"])
def test_leverage_is_exact_for_columns_far_from_zero(data: str) -> None:
    times = 1.7e9 + np.arange(40.0)[:, None] ** 2
    X = longley() if data == "longley" else times
    rows = [[Fraction(1), *map(Fraction, row)] for row in X.tolist()]
    A = exact_inverse(rows)
    exact = [float(sum(a * A[i][j] * b for i, a in enumerate(r) for j, b in enumerate(r))) for r in rows]
    p, names = len(A), tuple(map(str, range(len(A))))
    inverse = np.array([[float(value) for value in row] for row in A])
    fit = Inference(names, np.zeros(p), inverse, float(len(X) - p), 100.0, 0, float(len(X)), True)
    ends = fit.interval(design(X, True), np.zeros(len(X)), 0.95, "confidence")
    quantile = stats.t.isf(0.025, len(X) - p)
    np.testing.assert_allclose((ends[:, 1] / quantile) ** 2, exact, rtol=TOLERANCE)


@pytest.mark.slow
def test_intervals_cover_as_often_as_they_say() -> None:
    random = np.random.default_rng(2024)
    X = random.uniform(-1, 1, size=(12, 2))
    truth, new = np.array([1.0, -2.0, 0.5]), np.array([[1.0, 0.8, -0.9]])
    trials, hits = 3000, np.zeros(5)
    for _ in range(trials):
        fit = fitted(X, design(X, True) @ truth + random.normal(size=12))
        low, high = fit.confidence_interval().T
        hits[:3] += (low <= truth) & (truth <= high)
        mean, prediction = new @ truth, new @ fit.estimate
        low, high = fit.interval(new, prediction, kind="confidence")[0]
        hits[3] += low <= mean[0] <= high
        low, high = fit.interval(new, prediction, kind="prediction")[0]
        hits[4] += low <= mean[0] + random.normal() <= high
    low, high = stats.binom.interval(0.9999, trials, 0.95)
    assert np.all((low <= hits) & (hits <= high)), hits / trials


def test_p_values_under_the_null_are_uniform() -> None:
    random = np.random.default_rng(11)
    X = random.normal(size=(9, 1))
    found = [fitted(X, random.normal(size=9)) for _ in range(1000)]
    assert stats.kstest([fit.p_values[1] for fit in found], "uniform").pvalue > 1e-4
    for fit in found[:20]:
        assert fit.f_statistic == pytest.approx(fit.t_values[1] ** 2, rel=1e-9)  # one column: F = t^2
        assert fit.f_pvalue == pytest.approx(fit.p_values[1], rel=1e-9)


def test_tails_keep_their_digits() -> None:
    # Two degrees of freedom: P(|T| > t) = 1 - t / sqrt(2 + t^2) = 2 / (q (q + t)), q = sqrt(2 + t^2).
    for t in (1.0, 1e3, 1e8, 1e30):
        fit = Inference(("x",), np.array([t]), np.eye(1), 2.0, 2.0 + t * t, 0, 3.0, False)
        q = math.hypot(math.sqrt(2), t)
        assert fit.p_values[0] == pytest.approx(2 / q / (q + t), rel=1e-12)
    # Level 1 - 1e-12 with one degree of freedom: the quantile of Cauchy's law.
    fit = Inference(("x",), np.zeros(1), np.eye(1), 1.0, 1.0, 0, 2.0, False)
    level = 1 - 1e-12
    assert fit.confidence_interval(level)[0, 1] == pytest.approx(1 / math.tan(math.pi / 2 * (1 - level)))


@pytest.mark.parametrize("exponent", [1000, -1000, 3])
def test_huge_and_tiny_targets_scale_everything(exponent: int) -> None:
    X, y = sample(3)
    plain, scaled = fitted(X, y), fitted(X, y, exponent=exponent)
    shift = -len(y) * exponent * math.log(2)
    assert scaled.sigma == math.ldexp(plain.sigma, exponent)
    assert scaled.sigma2 == {1000: math.inf, -1000: 0.0, 3: plain.sigma2 * 64}[exponent]
    assert scaled.log_likelihood == pytest.approx(plain.log_likelihood + shift, rel=1e-12)
    np.testing.assert_array_equal(scaled.standard_errors, np.ldexp(plain.standard_errors, exponent))
    for name in ("t_values", "p_values", "r_squared", "f_statistic", "f_pvalue", "is_exact"):
        np.testing.assert_array_equal(getattr(scaled, name), getattr(plain, name), err_msg=name)
    Z = design(X, True)
    ends = scaled.interval(Z, np.ldexp(Z @ plain.estimate, exponent))
    np.testing.assert_allclose(np.ldexp(ends, -exponent), plain.interval(Z, Z @ plain.estimate), rtol=1e-12)
    assert "undefined" not in str(scaled.summary("LinearRegression", "y"))


def test_an_exact_fit_says_so() -> None:
    fit = Inference(("intercept", "x"), np.array([1.0, 2.0]), np.eye(2), 0.0, 20.0, 0, 5.0, True)
    assert fit.is_exact and fit.sigma == 0 and fit.r_squared == 1 and fit.adjusted_r_squared == 1
    assert np.all(fit.t_values == np.inf) and np.all(fit.p_values == 0)
    assert (fit.f_statistic, fit.f_pvalue, fit.log_likelihood) == (math.inf, 0.0, math.inf)
    assert (fit.aic, fit.bic) == (-math.inf, -math.inf)
    text = str(fit.summary("LinearRegression", "y"))
    assert "exact fit: residuals are zero to rounding" in text and "nan" not in text


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_fit_exact_to_rounding_says_so_and_a_good_fit_does_not(offset: float) -> None:
    x = np.arange(10.0)[:, None] / 3
    exact = fitted(x, offset + 0.1 * x[:, 0])
    assert exact.is_exact
    noise = 1e-8 * max(1.0, offset) * np.random.default_rng(0).normal(size=10)
    assert not fitted(x, offset + 0.1 * x[:, 0] + noise).is_exact


def test_a_constant_target_leaves_r_squared_undefined_and_says_so() -> None:
    fit = Inference(("intercept", "x"), np.array([3.0, 0.0]), np.eye(2), 0.0, 0.0, 0, 5.0, True)
    summary = fit.summary("LinearRegression", "y")
    assert math.isnan(fit.r_squared) and math.isnan(fit.f_statistic) and math.isnan(fit.t_values[1])
    assert fit.t_values[0] == math.inf
    assert "The target is constant" in str(summary) and "t is undefined" in str(summary)
    assert "nan" not in str(summary) and str(summary).count("undefined") >= 6
    assert summary.to_dict()["r_squared"] is None
    zero = Inference(("x",), np.zeros(1), np.eye(1), 0.0, 0.0, 0, 5.0, False)
    assert "The target is 0 in every row" in str(zero.summary("LinearRegression", "y"))


def test_an_intercept_alone_has_no_f_statistic() -> None:
    X, y = sample(2)
    fit = fitted(X[:, :0], y)
    assert math.isnan(fit.f_statistic) and math.isnan(fit.f_pvalue)
    assert fit.r_squared == pytest.approx(0, abs=1e-15)
    expected = stats.t.interval(0.95, len(y) - 1, y.mean(), stats.sem(y))
    np.testing.assert_allclose(fit.confidence_interval()[0], expected, rtol=1e-12)
    ends = fit.interval(np.ones((1, 1)), fit.estimate, kind="confidence")
    np.testing.assert_allclose(ends[0], expected, rtol=1e-12)
    assert "no column besides the intercept" in str(fit.summary("LinearRegression", "y"))


def test_residuals_beyond_the_spread_are_said() -> None:
    fit = Inference(("intercept", "x"), np.array([1e8, 0.0]), np.eye(2), 2e-17, 1e-17, 0, 5.0, True)
    assert fit.r_squared == 0 and fit.f_statistic == 0 and fit.f_pvalue == 1
    assert "R-squared is set to 0" in str(fit.summary("LinearRegression", "y"))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"n_obs": 2.0}, "no residual degree of freedom: the rows' weights sum to 2 and 2 coefficients"),
        ({"n_obs": 1.0}, "no residual degree of freedom"),
        ({"n_obs": math.nan}, "no residual degree of freedom"),
        ({"rss": -1.0}, "Got rss -1.0"),
        ({"tss": math.nan}, "must be finite"),
        ({"estimate": np.array([1.0, math.nan])}, "must be finite"),
        ({"estimate": np.zeros(3)}, r"2 names need shapes \(2,\) and \(2, 2\). Got \(3,\)"),
        ({"inverse": np.diag([1.0, 0.0])}, "diagonal positive"),
        ({"inverse": np.diag([1.0, math.inf])}, "diagonal positive"),
    ],
)
def test_impossible_inputs_are_refused(changes: dict[str, Any], message: str) -> None:
    legal = Inference(("intercept", "x"), np.zeros(2), np.eye(2), 1.0, 2.0, 0, 5.0, True)
    with pytest.raises(ValueError, match=message):
        replace(legal, **changes)


def test_wrong_calls_are_refused() -> None:
    X, y = sample()
    fit, Z = fitted(X, y), design(X, True)
    for level in (0, 1, 95, -0.1, math.nan):
        with pytest.raises(ValueError, match=r"between 0 and 1, such as 0.95. Got"):
            fit.interval(Z, y, level)
        with pytest.raises(ValueError, match=r"between 0 and 1"):
            fit.summary("LinearRegression", "y", level)
    unknown: Any = "mean"
    with pytest.raises(ValueError, match=r"kind must be 'prediction' or 'confidence'\. Got 'mean'\."):
        fit.interval(Z, y, 0.95, unknown)
    for rows, predictions in ((X, y), (Z, y[:3]), (Z[0], y[:1]), (Z, y[:, None])):
        with pytest.raises(ValueError, match="an interval needs"):
            fit.interval(rows, predictions)
    singular = Inference(("a", "b"), np.ones(2), np.ones((2, 2)), 1.0, 2.0, 0, 9.0, False)
    with pytest.raises(ValueError, match="too close to dependent"):
        singular.interval(np.ones((1, 2)), np.ones(1))


def test_the_table_prints_the_numbers_statsmodels_prints() -> None:
    X, y = sample(9)
    X = X * [1.0, 1e-5, 1e6]
    for has_intercept in (True, False):
        ours = str(fitted(X, y, has_intercept).summary("LinearRegression", "y")).splitlines()
        theirs = str(statsmodels_fit(X, y, has_intercept).summary()).splitlines()
        starts = [next(i for i, line in enumerate(table) if "P>|t|" in line) for table in (ours, theirs)]
        for i in range(2, 2 + 3 + has_intercept):
            mine, other = (table[start + i].split() for table, start in zip((ours, theirs), starts, strict=True))
            assert mine[1:] == other[1:]
        labels = ("R-squared", "Adj. R", "F-stat", "Prob (F", "Log-L", "AIC", "BIC")
        for label in labels:
            ends = [next(x for x in table if f"  {label}" in x).split()[-1] for table in (ours, theirs)]
            assert ends[0] == ends[1], label


def test_the_layout_is_a_rectangle_of_at_most_100_columns() -> None:
    X, y = sample(1, 600, 500)
    names = [f"column {j} of a table with long, long names" for j in range(500)]
    names[0], names[1] = "短い名前の列", "é" * 200
    text = str(fitted(X, y, names=names).summary("LinearRegression", "t" * 80, notes=["word " * 60]))
    lines = text.splitlines()
    widths = [table._width(line) for line in lines]
    assert max(widths) <= 100
    assert len([w for w in widths if w == max(widths)]) > 500
    assert sum("column" in line for line in lines) == 498 and "..." in text


def test_names_cannot_drive_the_terminal_or_the_page() -> None:
    X, y = sample()
    hostile = ["\x1b[2J\x1b[31mred", "a\nb\r\u202e\u200b\x07", "<script>alert(1)</script>&\udc80"]
    summary = fitted(X, y, names=hostile).summary(hostile[0], hostile[1], notes=hostile)
    text, page = str(summary), summary._repr_html_()
    for output in (text, page):
        assert all(c.isprintable() or c == "\n" for c in output)
        output.encode("utf-8")
    assert "\\x1b[2J\\x1b[31mred" in text and "a\\nb\\r\\u202e\\u200b\\x07" in text
    assert "<script>" not in page and "&lt;script&gt;alert(1)&lt;/script&gt;&amp;" in page
    assert [row["name"] for row in summary.to_dict()["coefficients"]][1:] == hostile


def test_the_html_is_well_formed() -> None:
    page = fitted(*sample(), names=["a<b", "c&d", "e"]).summary("LinearRegression", "y")._repr_html_()
    assert page == fitted(*sample(), names=["a<b", "c&d", "e"]).summary("LinearRegression", "y").to_html()
    rows = [len(row) for row in ElementTree.fromstring(f"<div>{page}</div>").iter("tr")]
    assert rows == [4] * 7 + [7] * 5


def test_to_dict_is_plain_and_complete() -> None:
    fit = fitted(*sample())
    summary = fit.summary("LinearRegression", "price", 0.9, ["one more"])
    found = json.loads(json.dumps(summary.to_dict(), allow_nan=False))
    assert (found["model"], found["target"], found["level"]) == ("LinearRegression", "price", 0.9)
    assert found["notes"][-1] == "one more"
    assert (found["covariance"], found["weights"]) == ("nonrobust", "frequency")
    assert found["f_pvalue"] == fit.f_pvalue and found["sigma2"] == fit.sigma2
    ends = [[row["lower"], row["upper"]] for row in found["coefficients"]]
    np.testing.assert_array_equal(ends, fit.confidence_interval(0.9))


def test_to_frame_has_a_row_a_coefficient_or_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    fit = fitted(*sample())
    frame = fit.summary("LinearRegression", "y").to_frame()
    assert list(frame.columns) == ["coef", "std err", "t", "P>|t|", "[0.025", "0.975]"]
    assert list(frame.index) == list(fit.names)
    np.testing.assert_array_equal(frame["P>|t|"], fit.p_values)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"certifit\[pandas\]"):
        fit.summary("LinearRegression", "y").to_frame()


def test_inference_holds_no_rows_and_survives_pickle() -> None:
    X, y = sample(0, 5000, 3)
    fit = fitted(X, y)
    fit.interval(design(X, True), y)
    stored = "names estimate inverse rss tss exponent n_obs has_intercept sum_weight log_weight"
    assert [field.name for field in fields(fit)] == stored.split()
    copy = pickle.dumps(fit)
    assert len(copy) < 3000
    assert str(pickle.loads(copy).summary("m", "y")) == str(fit.summary("m", "y"))


def test_the_examples_of_the_docstrings_hold() -> None:
    assert doctest.testmod(module).failed == 0
