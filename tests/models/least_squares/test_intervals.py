"""Summary and intervals of real fits against statsmodels; refusals with their reasons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from reference import standard_errors

import certifit as cf

TOLERANCE = 1e-8


def california(folder: Any) -> tuple[pd.DataFrame, pd.Series]:
    frame = pd.read_parquet(folder / "california_housing" / "california_housing.parquet")
    frame = frame.select_dtypes("number").dropna().astype(float)
    return frame.drop(columns="median_house_value"), frame["median_house_value"]


def wine(folder: Any) -> tuple[pd.DataFrame, pd.Series]:
    frame = pd.read_parquet(folder / "wine_quality" / "wine_quality.parquet").select_dtypes("number").astype(float)
    return frame.drop(columns="quality"), frame["quality"]


def longley(folder: Any) -> tuple[pd.DataFrame, pd.Series]:
    frame = pd.read_csv(folder / "nist" / "Longley.csv").astype(float)
    return frame.drop(columns="y"), frame["y"]


DATA = {"california_housing": california, "wine_quality": wine, "Longley": longley}


def design(X: pd.DataFrame, fit_intercept: bool) -> Any:
    return sm.add_constant(X) if fit_intercept else X


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", DATA)
def test_the_summary_is_that_of_statsmodels(shared_data, name, fit_intercept):
    X, y = DATA[name](shared_data)
    model = cf.LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    other = sm.OLS(y, design(X, fit_intercept)).fit()
    table = model.summary().to_dict()
    columns = {
        key: np.array([row[key] for row in table["coefficients"]]) for key in ("estimate", "standard_error", "t")
    }
    assert columns["estimate"] == pytest.approx(other.params.to_numpy(), rel=TOLERANCE)
    assert columns["standard_error"] == pytest.approx(other.bse.to_numpy(), rel=TOLERANCE)
    assert columns["t"] == pytest.approx(other.tvalues.to_numpy(), rel=TOLERANCE)
    p = np.array([row["p"] for row in table["coefficients"]])
    assert p == pytest.approx(other.pvalues.to_numpy(), rel=1e-5, abs=1e-12)
    for ours, theirs in (("lower", 0), ("upper", 1)):
        ends = [row[ours] for row in table["coefficients"]]
        assert ends == pytest.approx(other.conf_int().to_numpy()[:, theirs], rel=TOLERANCE * 10)
    for ours, theirs in (
        ("r_squared", "rsquared"), ("adjusted_r_squared", "rsquared_adj"), ("f_statistic", "fvalue"),
        ("log_likelihood", "llf"), ("aic", "aic"), ("bic", "bic"), ("df_resid", "df_resid"), ("n_obs", "nobs"),
    ):  # fmt: skip
        if ours in ("f_statistic", "r_squared", "adjusted_r_squared") and not fit_intercept:
            continue  # statsmodels looks for a constant among the columns; tested on Inference itself
        assert table[ours] == pytest.approx(getattr(other, theirs), rel=TOLERANCE)
    assert table["coefficients"][-1]["name"] == X.columns[-1]
    assert table["target"] == y.name


@pytest.mark.parametrize("name", DATA)
def test_intervals_are_those_of_statsmodels(shared_data, name):
    X, y = DATA[name](shared_data)
    model = cf.LinearRegression().fit(X, y)
    rows = X.iloc[:50]
    frame = sm.OLS(y, design(X, True)).fit().get_prediction(sm.add_constant(rows, has_constant="add"))
    for level in (0.5, 0.95, 0.999):
        table = frame.summary_frame(alpha=1 - level)
        for kind, ends in (
            ("confidence", ["mean_ci_lower", "mean_ci_upper"]),
            ("prediction", ["obs_ci_lower", "obs_ci_upper"]),
        ):
            got = model.predict_interval(rows, level, kind)
            assert got == pytest.approx(table[ends].to_numpy(), rel=TOLERANCE)


def test_longleys_errors_are_the_certified_ones(nist):
    X, y, certified = nist("Longley")
    model = cf.LinearRegression().fit(X, y)
    assert model.inference_.standard_errors == pytest.approx([float(v) for v in certified["std_err"]], rel=1e-11)
    assert model.inference_.sigma == pytest.approx(float(certified["resid_std"]), rel=1e-12)


def test_weights_are_counts_in_the_table(rng):
    X, y, weight = rng.normal(size=(40, 2)), rng.normal(size=40), rng.integers(1, 4, size=40)
    model = cf.LinearRegression().fit(X, y, weight)
    again = np.repeat(np.arange(40), weight)
    other = sm.OLS(y[again], sm.add_constant(X[again])).fit()
    assert model.inference_.standard_errors == pytest.approx(other.bse, rel=1e-10)
    assert model.inference_.p_values == pytest.approx(other.pvalues, rel=1e-9)
    assert model.inference_.log_likelihood == pytest.approx(other.llf, rel=1e-10)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_a_target_of_any_size_has_a_table(rng, scale):
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    one, other = cf.LinearRegression().fit(X, y).inference_, cf.LinearRegression().fit(X, y * scale).inference_
    assert other.standard_errors / scale == pytest.approx(one.standard_errors, rel=1e-12)
    assert other.t_values == pytest.approx(one.t_values, rel=1e-12)
    assert other.r_squared == pytest.approx(one.r_squared, rel=1e-12)


@pytest.mark.parametrize("spread", [1.0, 1e-3, 1e-6, 1e-8])
@pytest.mark.parametrize("noise", [1.0, 1e-6, 1e-9])
def test_errors_of_nearly_exact_and_nearly_singular_fits_are_right(rng, noise, spread):
    from reference import Exact

    X = rng.normal(size=(14, 3))
    X[:, 2] = X[:, 0] + spread * X[:, 2]
    y = X @ [1.0, 2.0, 3.0] + noise * rng.normal(size=14)
    errors = cf.LinearRegression().fit(X, y).inference_.standard_errors
    assert errors == pytest.approx(Exact(X, y).standard_errors, rel=1e-7, abs=0)


@pytest.mark.slow
def test_a_prediction_interval_covers_its_share(rng):
    hits = 0
    for _ in range(400):
        X, new = rng.normal(size=(12, 2)), rng.normal(size=(1, 2))
        model = cf.LinearRegression().fit(X, X @ [1.0, 2.0] + rng.normal(size=12))
        lower, upper = model.predict_interval(new, level=0.8)[0]
        hits += bool(lower <= new[0] @ [1.0, 2.0] + rng.normal() <= upper)
    assert 0.8 - 4 * 0.02 < hits / 400 < 0.8 + 4 * 0.02  # four standard errors


def test_intervals_take_every_storage_and_the_basis(rng):
    import scipy.sparse as sp

    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    model = cf.LinearRegression().fit(X, y)
    expected = model.predict_interval(X)
    assert model.predict_interval(sp.csr_array(X)) == pytest.approx(expected, rel=1e-12)
    assert model.predict_interval(np.asfortranarray(X)) == pytest.approx(expected, rel=1e-12)
    curve = cf.LinearRegression(basis=cf.Polynomial(2)).fit(X, y)
    powers = np.column_stack([X, X[:, 0] ** 2, X[:, 0] * X[:, 1], X[:, 1] ** 2])
    assert curve.predict_interval(X) == pytest.approx(cf.LinearRegression().fit(powers, y).predict_interval(powers))
    no_intercept = cf.LinearRegression(fit_intercept=False).fit(X, y)
    half = np.diff(no_intercept.predict_interval(np.zeros((1, 2)), kind="confidence"))
    assert half == pytest.approx(0, abs=1e-15)


def make(X: Any, model: Any, n: int = 30) -> Any:
    return model.fit(X[:n], np.random.default_rng(5).normal(size=len(X))[:n])


REFUSALS = {
    "a penalty": (lambda X: make(X, cf.Ridge(0.1)), "do not hold under a penalty.*LinearRegression"),
    "redundant columns": (lambda X: make(np.column_stack([X, X[:, 0]]), cf.LinearRegression()), "redundant.*x2 = x0"),
    "no freedom": (lambda X: make(X, cf.LinearRegression(), 3), "3 observations leave no residual degree.* 3 coef"),
    "fewer rows than columns": (lambda X: make(X.T, cf.LinearRegression()), "no residual degree|redundant|fewer"),
    "numbers too large": (lambda X: make(X * 1e300, cf.LinearRegression()), "leave the range of float64. Give columns"),
    "weights of a sum too small": (
        lambda X: cf.LinearRegression().fit(X, X[:, 0], np.full(30, 0.1)), "3 observations leave no residual degree"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_gives_its_reason(rng, name):
    build, words = REFUSALS[name]
    X = rng.normal(size=(30, 2))
    model = build(X)
    assert model.inference_ is None
    for call in (model.summary, lambda: model.predict_interval(np.zeros((1, model.n_features_in_)))):
        with pytest.raises(ValueError, match=words):
            call()


def test_level_and_kind_are_checked(rng):
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    model = cf.LinearRegression().fit(X, y)
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        model.predict_interval(X, level=95)
    with pytest.raises(ValueError, match="kind must be"):
        model.predict_interval(X, kind="mean")
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        model.summary(level=0)


def test_the_table_says_what_was_minimised_and_how_well(rng):
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    model = cf.LinearRegression().fit(X, y)
    text = str(model.summary())
    assert "minimised: sum_i weight_i" in text
    assert "Converged" in text
    errors = standard_errors(X, y)
    assert f"{errors[1]:.3f}" in text


def test_columns_too_near_dependence_get_no_interval_instead_of_a_wrong_one(nist):
    X, y, _ = nist("Filip")  # condition 8e9: the leverages that float64 gives are wrong in every digit
    model = cf.LinearRegression().fit(X, y)
    with pytest.raises(ValueError, match="too close to dependent"):
        model.predict_interval(X)
