"""Robust covariance and the weights' conventions of real fits: formulas, statsmodels, sources, refusals."""

from __future__ import annotations

import doctest
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from chunks import batches, memory, random_cuts

import certifit as cf
from certifit.models.least_squares import robust_covariance as module
from certifit.models.least_squares import robust_covariance as robust_law

sm = pytest.importorskip("statsmodels.api")

TOLERANCE = 1e-8
KINDS = ["HC0", "HC1", "HC2", "HC3"]
EVERY = ["nonrobust", *KINDS]
NUMBERS = {
    "standard_errors": "bse",
    "t_values": "tvalues",
    "p_values": "pvalues",
    "f_statistic": "fvalue",
    "f_pvalue": "f_pvalue",
    "sigma2": "scale",
    "r_squared": "rsquared",
    "adjusted_r_squared": "rsquared_adj",
    "log_likelihood": "llf",
    "aic": "aic",
    "bic": "bic",
    "n_obs": "nobs",
    "df_resid": "df_resid",
}


def sample(rng: np.random.Generator, n_rows: int = 60) -> tuple[Any, Any, Any]:
    """Rows, a target whose noise grows with a column, weights."""
    X = rng.normal(size=(n_rows, 3)) + 2
    X[:, 2] += X[:, 0]
    y = X @ [1.0, -2.0, 0.5] + 1 + rng.normal(size=n_rows) * np.abs(X[:, 1])
    return X, y, rng.uniform(0.3, 2, n_rows)


def law_of(covariance: str) -> Any:
    """statsmodels' law: normal for a robust covariance."""
    return "t" if covariance == "nonrobust" else "z"


def design(X: Any, fit_intercept: bool) -> Any:
    return sm.add_constant(X, has_constant="add") if fit_intercept else X


def assert_agrees(fit: Any, theirs: Any, tolerance: float = TOLERANCE) -> None:
    for ours, name in NUMBERS.items():
        np.testing.assert_allclose(getattr(fit, ours), getattr(theirs, name), rtol=tolerance, err_msg=ours)
    np.testing.assert_allclose(fit.covariance, theirs.cov_params(), rtol=tolerance)
    for level in (0.5, 0.99):
        np.testing.assert_allclose(fit.confidence_interval(level), theirs.conf_int(1 - level), rtol=tolerance)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("covariance", KINDS)
def test_the_covariance_is_the_sandwich(rng, covariance, fit_intercept):
    X, y, _ = sample(rng)
    model = cf.LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    Z = design(X, fit_intercept)
    bread = np.linalg.inv(Z.T @ Z)
    e = y - Z @ np.linalg.lstsq(Z, y, rcond=None)[0]
    h = np.diagonal(Z @ bread @ Z.T)
    n, p = Z.shape
    square = {"HC0": e**2, "HC1": e**2 * n / (n - p), "HC2": e**2 / (1 - h), "HC3": e**2 / (1 - h) ** 2}
    expected = bread @ (Z.T * square[covariance]) @ Z @ bread
    found = model.summary(X, y, covariance=covariance).inference.covariance
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("covariance", EVERY)
def test_variance_weights_are_those_of_statsmodels(rng, covariance, fit_intercept):
    X, y, weight = sample(rng)
    model = cf.LinearRegression(fit_intercept=fit_intercept).fit(X, y, weight)
    theirs = sm.WLS(y, design(X, fit_intercept), weights=weight).fit(cov_type=covariance)
    fit = model.summary(X, y, weight, weights="variance", covariance=covariance, law=law_of(covariance)).inference
    assert_agrees(fit, theirs)
    assert fit.law == ("z" if theirs.use_t is False else "t")


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("covariance", EVERY)
def test_frequency_weight_two_is_the_row_twice(rng, covariance, fit_intercept):
    X, y, _ = sample(rng)
    weight = rng.integers(0, 4, len(y))  # weight 0 is no row
    again = np.repeat(np.arange(len(y)), weight)
    model = cf.LinearRegression(fit_intercept=fit_intercept).fit(X, y, weight)
    theirs = sm.OLS(y[again], design(X[again], fit_intercept)).fit(cov_type=covariance)
    assert_agrees(model.summary(X, y, weight, covariance=covariance, law=law_of(covariance)).inference, theirs)


@pytest.mark.parametrize("covariance", EVERY)
def test_variance_weights_know_no_unit_and_no_row_of_weight_zero(rng, covariance):
    X, y, weight = sample(rng)
    weight[::7] = 0
    seen = weight > 0
    theirs = sm.WLS(y[seen], design(X[seen], True), weights=weight[seen]).fit(cov_type=covariance)
    for unit in (1.0, 1e-3, 1e6):  # at 1e-3 the weights sum to less than the coefficients
        model = cf.LinearRegression().fit(X, y, weight * unit)
        fit = model.summary(X, y, weight * unit, weights="variance", covariance=covariance).inference
        np.testing.assert_allclose(fit.standard_errors, theirs.bse, rtol=TOLERANCE)
        np.testing.assert_allclose(fit.log_likelihood, theirs.llf, rtol=TOLERANCE)
        np.testing.assert_allclose(fit.f_statistic, theirs.fvalue, rtol=TOLERANCE)
        assert fit.df_resid == theirs.df_resid


def test_variance_weights_need_rows_only_for_the_likelihood(rng):
    X, y, weight = sample(rng)
    model = cf.LinearRegression().fit(X, y, weight)
    table = model.summary(weights="variance")
    theirs = sm.WLS(y, design(X, True), weights=weight).fit()
    np.testing.assert_allclose(table.inference.standard_errors, theirs.bse, rtol=TOLERANCE)
    np.testing.assert_allclose(table.inference.f_pvalue, theirs.f_pvalue, rtol=TOLERANCE)
    assert math.isnan(table.inference.aic) and "AIC and BIC need the rows' weights" in " ".join(str(table).split())


@pytest.mark.parametrize("weights", ["frequency", "variance"])
@pytest.mark.parametrize("covariance", KINDS)
def test_degrees_of_freedom_are_those_of_the_quadratic_form(rng, covariance, weights):
    """tr(MD)^2 / tr(MDMD) and the residuals' own, from whole matrices; the smaller counts."""
    X, y, _ = sample(rng, 25)
    weight = rng.integers(1, 4, len(y)).astype(float)
    model = cf.LinearRegression().fit(X, y, weight)
    fit = model.summary(X, y, weight, weights=weights, covariance=covariance).inference
    again = np.repeat(np.arange(len(y)), weight.astype(int)) if weights == "frequency" else np.arange(len(y))
    size = np.ones(len(again)) if weights == "frequency" else np.sqrt(weight)
    Z, t = design(X[again], True) * size[:, None], y[again] * size
    n, p = Z.shape
    hat = Z @ np.linalg.solve(Z.T @ Z, Z.T)
    pull = np.linalg.solve(Z.T @ Z, Z.T)
    e, M = t - hat @ t, np.eye(n) - hat
    power = {"HC0": 0, "HC1": 0, "HC2": 1, "HC3": 2}[covariance]
    factor = n / (n - p) if covariance == "HC1" else 1.0
    for j in range(p):
        d = pull[j] ** 2 / (1 - np.diagonal(hat)) ** power
        equal = np.trace(M @ np.diag(d)) ** 2 / np.trace(M @ np.diag(d) @ M @ np.diag(d))
        shown = 3 * np.sum(d * e**2) ** 2 / np.sum(d**2 * e**4) - 2
        assert fit.degrees_of_freedom[j] == pytest.approx(max(min(equal, shown), 1.0), rel=1e-8)
        bias = min(factor * np.trace(M @ np.diag(d)) / np.sum(pull[j] ** 2), 1.0)
        assert fit.own_law.bias[j] == pytest.approx(bias, rel=1e-8)


def test_many_rows_take_the_cheap_bound_and_its_law_is_the_normal_one(rng):
    X = rng.normal(size=(6000, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=6000)
    model = cf.LinearRegression().fit(X, y)
    ours, theirs = (model.summary(X, y, covariance="HC3", law=law).inference for law in ("t", "z"))
    assert (ours.degrees_of_freedom > 300).all() and np.isinf(theirs.degrees_of_freedom).all()
    np.testing.assert_allclose(ours.confidence_interval(), theirs.confidence_interval(), atol=1e-3)


def test_where_products_would_cost_too_much_the_bound_takes_their_place(rng, monkeypatch):
    X, y, _ = sample(rng)
    model = cf.LinearRegression().fit(X, y)
    exact = model.summary(X, y, covariance="HC3").inference.degrees_of_freedom
    monkeypatch.setattr(robust_law, "MOST_PRODUCTS", 0)
    bound = model.summary(X, y, covariance="HC3").inference.degrees_of_freedom
    assert (bound <= exact * (1 + 1e-9)).all() and (bound < exact).any()


@pytest.mark.slow
def test_intervals_cover_under_unequal_noise_where_the_normal_law_fails():
    """250 sets of 50 rows whose noise grows with a log-normal column: 95 % intervals of its coefficient by HC3."""
    covered = plain = 0
    for seed in range(250):
        rng = np.random.default_rng([5, seed])
        x = np.exp(rng.normal(size=50))
        X, y = x[:, None], x * rng.normal(size=50)
        fit = cf.LinearRegression().fit(X, y).summary(X, y, covariance="HC3").inference
        low, high = fit.confidence_interval()[1]
        covered += low <= 0 <= high
        plain += abs(fit.t_values[1]) <= 1.96
    assert covered >= 0.94 * 250 and plain <= 0.91 * 250


def test_few_rows_that_decide_have_no_interval_by_hc1():
    rng = np.random.default_rng(0)
    X = np.r_[np.zeros(18), np.ones(2)][:, None]  # two rows tell the coefficient
    y = rng.normal(size=20)
    model = cf.LinearRegression().fit(X, y)
    table = model.summary(X, y, covariance="HC1")
    assert math.isnan(table.inference.p_values[1]) and np.isnan(table.inference.confidence_interval()[1]).all()
    assert "Too few rows for the interval and the p-value of 'x0'" in " ".join(table.notes)
    assert np.isfinite(model.summary(X, y, covariance="HC3").inference.confidence_interval()).all()
    with pytest.raises(ValueError, match="law='z' is for the robust covariances"):
        model.summary(law="z")


CLASSICS = {"stackloss": "stack.loss", "hbk": "Y", "cars": "dist", "Animals": "brain", "phones": "calls"}


@pytest.mark.parametrize("covariance", EVERY)
@pytest.mark.parametrize("name", CLASSICS)
def test_classic_data_agree_with_statsmodels(shared_data, name, covariance):
    path = shared_data / "classics_small" / f"{name}.csv"
    if not path.exists():
        pytest.skip(f"shared/data/classics_small has no {name}.csv")
    frame = pd.read_csv(path).astype(float)
    X, y = frame.drop(columns=CLASSICS[name]), frame[CLASSICS[name]]
    fit = cf.LinearRegression().fit(X, y).summary(X, y, covariance=covariance, law=law_of(covariance)).inference
    assert_agrees(fit, sm.OLS(y, design(X, True)).fit(cov_type=covariance))


def exact_pulls(X: Any) -> tuple[list[list[Fraction]], list[list[Fraction]]]:
    """The rows (1, x_i), and A^-1 (1, x_i), without rounding."""
    rows = [[Fraction(1), *map(Fraction, row)] for row in X.tolist()]
    p = len(rows[0])
    table = [
        [sum(r[i] * r[j] for r in rows) for j in range(p)] + [Fraction(i == j) for j in range(p)] for i in range(p)
    ]
    for i in range(p):  # Gauss and Jordan
        table[i] = [value / table[i][i] for value in table[i]]
        for j in set(range(p)) - {i}:
            table[j] = [a - table[j][i] * b for a, b in zip(table[j], table[i], strict=True)]
    return rows, [[_dot(line[p:], row) for line in table] for row in rows]


def _dot(a: Any, b: Any) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def exact_leverages(X: Any) -> list[float]:
    """x_i'A^-1 x_i."""
    return [float(_dot(row, pull)) for row, pull in zip(*exact_pulls(X), strict=True)]


def exact_errors(X: Any, y: Any) -> list[float]:
    """Standard errors of HC3 without rounding: sum_i (e_i / (1 - h_i))^2 (A^-1 x_i)^2."""
    rows, pulls = exact_pulls(X)
    p = len(rows[0])
    target = list(map(Fraction, y.tolist()))
    estimate = [sum(pull[j] * t for pull, t in zip(pulls, target, strict=True)) for j in range(p)]
    squares = [Fraction(0)] * p
    for row, pull, t in zip(rows, pulls, target, strict=True):
        e, rest = t - _dot(row, estimate), 1 - _dot(row, pull)
        squares = [total + (e / rest * value) ** 2 for total, value in zip(squares, pull, strict=True)]
    return [math.sqrt(square) for square in squares]


@pytest.mark.parametrize("name", ["Longley", "Norris", "Pontius", "Wampler4", "Filip"])
def test_ill_conditioned_designs_keep_their_digits(nist, name):
    """Eight of them, but for what residuals lose to coefficients of 53 bits: 2^-53 |X||b|, 7e-7 of them in Filip."""
    X, y, _ = nist(name)
    model = cf.LinearRegression().fit(X, y)
    table = model.summary(X, y, covariance="HC3").inference
    sizes = np.abs(y) + np.abs(X) @ np.abs(model.coef_) + abs(model.intercept_)
    lost = 2.0**-53 * sizes.max() / math.sqrt(table.rss / len(y))
    np.testing.assert_allclose(table.standard_errors, exact_errors(X, y), rtol=1e-8 + 2 * lost)


@pytest.mark.parametrize("name", ["Longley", "Wampler4", "Filip"])
def test_leverages_do_not_feel_the_condition(nist, name):
    X, y, _ = nist(name)
    found = cf.LinearRegression().fit(X, y).influence(X, y).leverage
    np.testing.assert_allclose(found, exact_leverages(X), rtol=0, atol=1e-10)


def test_any_source_gives_the_same_table(rng, tmp_path: Path):
    X, y, weight = sample(rng, 500)
    X[:, 1] = np.where(X[:, 1] > 2, X[:, 1], 0)
    expected = cf.LinearRegression().fit(X, y, weight).summary(X, y, weight, covariance="HC3")
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    path = tmp_path / "rows.csv"
    frame.assign(y=y, w=weight).to_csv(path, index=False)
    scan = cf.scan_csv(str(path), target="y", weight="w")
    for rows in ((sp.csr_array(X), y, weight), (frame, y, weight), (X.astype(np.float32).astype(float), y, weight)):
        model = cf.LinearRegression().fit(*rows)
        fit = model.summary(*rows, covariance="HC3").inference
        np.testing.assert_allclose(fit.standard_errors, expected.inference.standard_errors, rtol=1e-6)
    fit = cf.LinearRegression().fit(scan).summary(scan, covariance="HC3").inference
    np.testing.assert_allclose(fit.covariance, expected.inference.covariance, rtol=1e-9)


def test_categories_and_bases_are_the_columns_that_the_model_weighs(rng):
    X, y, weight = sample(rng, 120)
    kind = rng.choice(["a", "b", "c"], len(y))
    frame = pd.DataFrame({"x": X[:, 0], "kind": kind})
    model = cf.LinearRegression(encoder=cf.TableEncoder()).fit(frame, y, weight)
    columns = [X[:, 0], *((kind == name.removeprefix("kind=")).astype(float) for name in model.column_names_[1:])]
    theirs = sm.WLS(y, design(np.column_stack(columns), True), weights=weight).fit(cov_type="HC2")
    assert_agrees(model.summary(frame, y, weight, weights="variance", covariance="HC2", law="z").inference, theirs)
    powers = cf.LinearRegression(basis=cf.Polynomial(3, form="powers")).fit(X[:, :1], y)
    columns = np.vander(X[:, 0], 4, increasing=True)
    theirs = sm.OLS(y, columns).fit(cov_type="HC3")
    assert_agrees(powers.summary(X[:, :1], y, covariance="HC3", law="z").inference, theirs)


@pytest.mark.parametrize("covariance", ["HC0", "HC3"])
def test_blocks_give_the_sum_of_the_whole_and_chunks_do_not_change_a_bit(rng, covariance):
    X, y, weight = sample(rng, 700)
    model = cf.LinearRegression().fit(X, y, weight)
    whole = model.summary(X, y, weight, covariance=covariance).inference.covariance
    found = set()
    for _ in range(3):
        cuts = random_cuts(rng, len(y))
        for source in (batches(X, y, weight, block_rows=16, cuts=cuts), memory(X, y, weight, block_rows=16)):
            fit = model.summary(source, covariance=covariance).inference
            np.testing.assert_allclose(fit.covariance, whole, rtol=1e-11)
            found.add(fit.covariance.tobytes())
    assert len(found) == 1


@pytest.mark.parametrize("factor", [1e-170, 1e-3, 1e200])
def test_huge_and_tiny_targets_only_change_the_unit(rng, factor):
    X, y, _ = sample(rng)
    plain = cf.LinearRegression().fit(X, y).summary(X, y, covariance="HC3").inference
    scaled = cf.LinearRegression().fit(X, y * factor).summary(X, y * factor, covariance="HC3").inference
    np.testing.assert_allclose(scaled.standard_errors, plain.standard_errors * factor, rtol=1e-9)
    np.testing.assert_allclose(scaled.t_values, plain.t_values, rtol=1e-9)
    np.testing.assert_allclose(scaled.f_statistic, plain.f_statistic, rtol=1e-9)


@pytest.mark.slow
def test_robust_intervals_cover_where_plain_ones_do_not() -> None:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(80, 1))
    hits = np.zeros(2)
    for _ in range(200):
        y = X[:, 0] + rng.normal(size=80) * X[:, 0] ** 2
        model = cf.LinearRegression().fit(X, y)
        for k, covariance in enumerate(("nonrobust", "HC3")):
            low, high = model.summary(X, y, covariance=covariance).inference.confidence_interval()[1]
            hits[k] += low <= 1 <= high
    assert hits[0] < 0.75 * 200 and hits[1] > 0.88 * 200


def test_the_table_prints_what_statsmodels_prints(rng):
    X, y, _ = sample(rng)
    ours = cf.LinearRegression().fit(X, y).summary(X, y, covariance="HC1", law="z")
    theirs = str(sm.OLS(y, design(X, True)).fit(cov_type="HC1").summary()).splitlines()
    lines = str(ours).splitlines()
    starts = [next(i for i, line in enumerate(table) if "P>|z|" in line) for table in (lines, theirs)]
    for i in range(2, 6):
        mine, other = (table[start + i].split() for table, start in zip((lines, theirs), starts, strict=True))
        assert mine[1:] == other[1:]
    for label in ("F-stat", "Prob (F", "Log-L", "Covariance Type"):
        ends = [next(x for x in table if label in x) for table in (lines, theirs)]
        if label == "Covariance Type":
            assert all(" HC1" in end for end in ends)
        else:
            assert ends[0].split()[-1] == ends[1].split()[-1]
    found = ours.to_dict()
    assert found["covariance"] == "HC1" and set(found["coefficients"][0]) >= {"z", "p", "standard_error"}
    assert "P&gt;|z|" in ours.to_html() and list(ours.to_frame().columns)[2] == "z"


def test_a_robust_table_without_rows_says_what_to_pass(rng):
    X, y, _ = sample(rng)
    model = cf.LinearRegression().fit(X, y)
    with pytest.raises(ValueError, match=r"'HC3' needs the rows, and a fitted model holds none.*summary\(X, y"):
        model.summary(covariance="HC3")
    with pytest.raises(ValueError, match="come with X"):
        model.summary(y=y)
    with pytest.raises(ValueError, match=r"covariance must be one of 'nonrobust', 'HC0'.* Got 'HC4'"):
        model.summary(X, y, covariance="HC4")
    with pytest.raises(ValueError, match=r"weights must be one of 'frequency', 'variance'. Got 'analytic'"):
        model.summary(weights="analytic")
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.summary(X, y, covariance="HC0", level=95)


def test_rows_that_are_not_those_of_the_fit_are_refused(rng):
    X, y, weight = sample(rng)
    model = cf.LinearRegression().fit(X, y, weight)
    shuffled = rng.permutation(len(y))
    model.summary(X[shuffled], y[shuffled], weight[shuffled], covariance="HC0")
    wrong = [
        ((X[:-1], y[:-1], weight[:-1]), "n rows is 59, the fit had 60"),
        ((X, y, None), "sum weight is 60"),
        ((X, y + 1, weight), "target mean"),
        ((X, y[shuffled], weight), "target mean|target sd|not the best ones"),
        ((X[:, ::-1], y, weight), "the coefficients are not the best ones"),
        ((X[:, :2], y, weight), r"2 features, but \w+ is expecting 3"),
    ]
    for rows, words in wrong:
        with pytest.raises(ValueError, match=words):
            model.summary(*rows, covariance="HC0")


def test_penalties_and_redundant_columns_are_refused_with_the_reason(rng):
    X, y, _ = sample(rng)
    for covariance in ("nonrobust", "HC0"):
        with pytest.raises(ValueError, match=r"do not hold under a penalty.*Use LinearRegression"):
            cf.Ridge(0.1).fit(X, y).summary(X, y, covariance=covariance)
        redundant = np.column_stack([X, X[:, 0] - X[:, 1]])
        with pytest.raises(ValueError, match=r"redundant.*x3 = x0 - x1"):
            model = cf.LinearRegression().fit(redundant, y)
            model.summary(redundant, y, weights="variance", covariance=covariance, redundant="refuse")
    for weights in ("frequency", "variance"):
        with pytest.raises(ValueError, match="4 observations leave no residual degree of freedom"):
            cf.LinearRegression().fit(X[:4], y[:4]).summary(X[:4], y[:4], weights=weights)


def test_a_row_of_leverage_one_is_named(rng):
    X, y, _ = sample(rng)
    X[:, 1] = 0
    X[17, 1] = 1.0
    model = cf.LinearRegression().fit(X, y)
    assert model.summary(X, y, covariance="HC1").inference.kind == "HC1"
    for covariance in ("HC2", "HC3"):
        with pytest.raises(ValueError, match=rf"{covariance} does not exist: the fit passes through row 17 whatever"):
            model.summary(X, y, covariance=covariance)


def test_a_robust_covariance_gives_no_interval_of_a_new_row(rng):
    X, y, _ = sample(rng)
    fit = cf.LinearRegression().fit(X, y).summary(X, y, covariance="HC0").inference
    with pytest.raises(ValueError, match="says nothing about the noise of a new row"):
        fit.interval(design(X, True), y)


def test_a_singular_robust_covariance_leaves_f_undefined() -> None:
    X = np.array([[0.0], [0.0], [1.0], [1.0], [1.0]])
    y = np.array([0.0, 2.0, 5.0, 5.0, 5.0])
    table = cf.LinearRegression().fit(X, y).summary(X, y, covariance="HC0")
    assert table.inference.f_statistic == pytest.approx(16.0 / 0.5, rel=1e-9)  # one direction has variance: fine
    more = np.column_stack([X, [0, 0, 0, 1, 0]])
    table = cf.LinearRegression().fit(more, y).summary(more, y, covariance="HC0")
    assert "nan" not in str(table)


@pytest.mark.parametrize("covariance", ["HC0", "HC1"])
def test_a_row_that_the_fit_passes_through_is_named_where_errors_are_too_small(rng, covariance):
    X, y, _ = sample(rng)
    X[:, 1] = 0
    X[17, 1] = 1.0
    model = cf.LinearRegression().fit(X, y)
    table = model.summary(X, y, covariance=covariance)
    theirs = sm.OLS(y, design(X, True)).fit(cov_type=covariance)
    np.testing.assert_allclose(table.inference.standard_errors, theirs.bse, rtol=TOLERANCE)
    np.testing.assert_allclose(table.inference.f_statistic, theirs.fvalue, rtol=TOLERANCE)
    assert table.inference.standard_errors[2] < model.inference_.standard_errors[2] / 2  # its own noise is missing
    text = " ".join(str(table).split())
    assert "The fit passes through row 17 whatever the target there (leverage 1)" in text
    assert "leverage 1" not in str(model.summary(X, y))


def test_a_coefficient_that_only_rows_without_residual_tell_has_no_robust_error() -> None:
    X = np.array([[0.0, 0], [0, 0], [1, 0], [1, 0], [1, 1], [1, 1]])
    y = np.array([0.0, 2.0, 5.0, 5.0, 8.0, 8.0])
    table = cf.LinearRegression().fit(X, y).summary(X, y, covariance="HC0")
    np.testing.assert_array_equal(np.isnan(table.inference.standard_errors), [False, False, True])
    assert math.isnan(table.inference.p_values[2]) and math.isnan(table.inference.f_statistic)
    text = " ".join(str(table).split())
    assert "No robust standard error exists for 'x1': only rows that the fit passes through" in text
    assert "nan" not in text and table.to_dict()["coefficients"][2]["p"] is None


def test_noise_of_very_unequal_size_is_no_reason_to_refuse(rng):
    X = np.repeat([[0.0], [1.0]], 20, axis=0)
    y = np.concatenate([1e-4 * rng.normal(size=20), 5 + rng.normal(size=20)])
    found = cf.LinearRegression().fit(X, y).summary(X, y, covariance="HC0").inference
    theirs = sm.OLS(y, design(X, True)).fit(cov_type="HC0")
    np.testing.assert_allclose(found.standard_errors, theirs.bse, rtol=1e-6)
    np.testing.assert_allclose(found.f_statistic, theirs.fvalue, rtol=1e-6)


def test_the_examples_of_the_docstrings_hold() -> None:
    assert doctest.testmod(module).failed == 0
