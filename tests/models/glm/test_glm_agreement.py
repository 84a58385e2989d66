"""Generalised linear models on real tables against scikit-learn, statsmodels and glum, both sides converged.

Objectives agree to 1e-10 (relative), coefficients to 1e-6, tables to 1e-8.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.linear_model as peers
import statsmodels.api as sm
from glm_tables import assert_same_table, peer
from sklearn.datasets import load_svmlight_file

import certifit as cf
from certifit.mathematics.families.responses import NegativeBinomial, Tweedie
from certifit.mathematics.losses.families import loss_of

S, L = sm.families, sm.families.links


def design(table: pd.DataFrame) -> Any:
    """Standardised numbers, an indicator a level but the first; columns that others determine are left out."""
    numbers = table.select_dtypes("number")
    levels = table.select_dtypes("category").apply(lambda column: column.cat.remove_unused_categories())
    wide = [(numbers - numbers.mean()) / numbers.std(), pd.get_dummies(levels, drop_first=True, dtype=float)]
    X = pd.concat(wide, axis=1).to_numpy(float)
    kept: list[int] = []
    for j in range(X.shape[1]):
        basis = np.column_stack([np.ones(len(X)), X[:, kept]])
        rest = X[:, j] - basis @ np.linalg.lstsq(basis, X[:, j])[0]
        if np.linalg.norm(rest) > 1e-8 * np.linalg.norm(X[:, j]) > 0:
            kept.append(j)
    return np.ascontiguousarray(X[:, kept])


@pytest.fixture(scope="module")
def adult(shared_data):
    table = pd.read_parquet(shared_data / "adult" / "adult.parquet").iloc[::6].dropna()
    kept = ["age", "education_num", "marital_status", "relationship", "race", "sex", "hours_per_week", "capital_loss"]
    return design(table[kept]), (table["income"] == ">50K").to_numpy(float)


@pytest.fixture(scope="module")
def german(shared_data):
    table = pd.read_parquet(shared_data / "german_credit" / "german_credit.parquet")
    return design(table.drop(columns="class")), (table["class"] == 2).to_numpy(float)


@pytest.fixture(scope="module")
def bikes(shared_data):
    table = pd.read_parquet(shared_data / "bike_sharing" / "bike_sharing.parquet").iloc[::2]
    kept = ["yr", "hr", "holiday", "weekday", "weathersit", "temp", "hum", "windspeed"]
    X = table[kept].astype({"hr": "category", "weekday": "category", "weathersit": "category"})
    return design(X), table["cnt"].to_numpy(float)


@pytest.fixture(scope="module")
def motor(shared_data):
    table = pd.read_parquet(shared_data / "fremtpl2" / "freq.parquet")
    return table.iloc[::20].reset_index(drop=True)


@pytest.fixture(scope="module")
def wine(shared_data):
    table = pd.read_parquet(shared_data / "wine_quality" / "wine_quality.parquet")
    return design(table.drop(columns="quality")), table["quality"].to_numpy(float)


def objective(
    family: Any, X: Any, y: Any, w: Any, b: float, alpha: float, weight: Any = None, offset: Any = 0
) -> float:
    z = X @ w + b + offset
    return float(np.average(loss_of(family).value(y, z), weights=weight) + alpha / 2 * w @ w)


def assert_agrees(ours: Any, other: Any, family: Any, X: Any, y: Any, alpha: float, **rows: Any) -> None:
    """Neither objective is lower by 1e-10, and the coefficients are the same."""
    w, b = np.ravel(ours.coef_), float(np.ravel(ours.intercept_)[0])
    v, c = np.ravel(other.coef_), float(np.ravel(other.intercept_)[0])
    own, theirs = objective(family, X, y, w, b, alpha, **rows), objective(family, X, y, v, c, alpha, **rows)
    assert ours.certificate_.holds
    assert own == pytest.approx(theirs, rel=1e-10)
    assert own <= theirs * (1 + 1e-14)
    assert np.allclose(w, v, rtol=1e-6, atol=1e-6 * np.abs(v).max())
    assert b == pytest.approx(c, rel=1e-6, abs=1e-6)


# ---- tables, against statsmodels ------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
@pytest.mark.parametrize("table", ["adult", "german"])
@pytest.mark.slow
def test_tables_of_shares_are_those_of_statsmodels(table, link, request):
    X, y = request.getfixturevalue(table)
    family = S.Binomial({"logit": L.Logit, "probit": L.Probit, "cloglog": L.CLogLog}[link]())
    model = cf.GLM("bernoulli", link).fit(X, y)
    assert model.certificate_.holds
    assert_same_table(model.summary().inference, peer(y, X, family))
    assert np.allclose(
        model.summary(X, y, covariance="HC0").inference.standard_errors, peer(y, X, family, "HC0").bse, rtol=1e-8
    )


def test_logistic_regression_of_labels_has_the_same_table(german):
    X, y = german
    labels = np.where(y > 0, "bad", "good")  # the second class in order is "good"
    model = cf.LogisticRegression(alpha=0).fit(X, labels)
    assert_same_table(model.summary().inference, peer(1 - y, X, S.Binomial()))


def test_counts_of_bicycles_have_the_table_of_statsmodels(bikes):
    X, y = bikes
    poisson = cf.GLM("poisson").fit(X, y)
    assert_same_table(poisson.summary().inference, peer(y, X, S.Poisson()))
    negative = cf.GLM(NegativeBinomial(0.3)).fit(X, y)
    assert_same_table(negative.summary().inference, peer(y, X, S.NegativeBinomial(alpha=0.3)))


RISK = ["Area", "VehPower", "VehAge", "DrivAge", "BonusMalus", "VehBrand", "VehGas", "Density"]


def test_claims_with_exposure_have_the_table_of_statsmodels(motor):
    X, y = design(motor[RISK]), motor["ClaimNb"].clip(upper=4).to_numpy(float)
    exposure = motor["Exposure"].clip(upper=1).to_numpy(float)
    model = cf.GLM("poisson").fit(X, y, exposure=exposure)
    assert_same_table(model.summary().inference, peer(y, X, S.Poisson(), exposure=exposure))
    assert model.predict(X, exposure=exposure).sum() == pytest.approx(y.sum(), rel=1e-10)


def test_amounts_of_claims_have_the_table_of_statsmodels(shared_data):
    table = pd.read_parquet(shared_data / "fremtpl2" / "freq.parquet")
    table = table[(table["NbSev"] > 0) & (table["ClaimAmount"] > 0)].iloc[::4]
    weight = table["NbSev"].to_numpy(float)
    X, y = design(table[RISK]), table["ClaimAmount"].clip(upper=1e5).to_numpy(float) / weight
    model = cf.GLM("gamma").fit(X, y, sample_weight=weight)
    rules: dict[str, Any] = {"convention": "statsmodels", "weights": "variance"}
    fit = model.summary(X, y, weight, **rules).inference
    assert_same_table(fit, peer(y, X, S.Gamma(L.Log()), var_weights=weight))


def test_pure_premiums_have_the_table_of_statsmodels(motor):
    rows = motor[(motor["ClaimAmount"] > 0) | (motor.index % 20 == 0)]
    X, y = design(rows[["VehPower", "VehAge", "DrivAge", "BonusMalus", "VehGas"]]), rows["ClaimAmount"].to_numpy(float)
    y = np.minimum(y, 1e5) / 1000
    model = cf.GLM(Tweedie(1.5)).fit(X, y)
    fit = model.summary(X, y, convention="statsmodels").inference
    assert_same_table(fit, peer(y, X, S.Tweedie(var_power=1.5, link=L.Log(), eql=False)))


def test_wine_has_the_table_of_statsmodels(wine):
    X, y = wine
    fit = cf.GLM("gaussian").fit(X, y).summary(convention="statsmodels").inference
    assert_same_table(fit, peer(y, X, S.Gaussian()))


# ---- penalties, against scikit-learn and glum -----------------------------------------------------------------------


@pytest.mark.parametrize("table", ["adult", "german"])
def test_logistic_regression_is_that_of_scikit_learn(table, request):
    X, y = request.getfixturevalue(table)
    for alpha in (None, 1e-3):
        ours = cf.LogisticRegression(alpha).fit(X, y)
        other = peers.LogisticRegression(C=1 / (ours.alpha_ * len(y)), solver="newton-cholesky", tol=1e-12)
        assert_agrees(ours, other.fit(X, y), "bernoulli", X, y, ours.alpha_)


@pytest.mark.parametrize("name", ["a9a/a9a", "w8a/w8a"])
def test_sparse_rows_are_fitted_as_scikit_learn_fits_them(name, shared_data):
    X, y = load_svmlight_file(str(shared_data / f"{name}.svm.gz"))
    ours = cf.LogisticRegression().fit(X, y)
    other = peers.LogisticRegression(solver="newton-cholesky", tol=1e-12).fit(X, y)
    assert_agrees(ours, other, "bernoulli", X, (y > 0).astype(float), 1 / len(y))


def test_counts_are_fitted_as_scikit_learn_and_glum_fit_them(bikes):
    glum = pytest.importorskip("glum")
    X, y = bikes
    for alpha in (1e-4, 0.1):
        ours = cf.PoissonRegressor(alpha).fit(X, y)
        other = peers.PoissonRegressor(alpha=alpha, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(X, y)
        assert_agrees(ours, other, "poisson", X, y, alpha)
        third = glum.GeneralizedLinearRegressor(family="poisson", alpha=alpha, gradient_tol=1e-12).fit(X, y)
        assert_agrees(ours, third, "poisson", X, y, alpha)


def test_weights_and_offsets_are_those_of_glum(motor):
    glum = pytest.importorskip("glum")
    X, y = design(motor[RISK]), motor["ClaimNb"].clip(upper=4).to_numpy(float)
    offset = np.log(motor["Exposure"].clip(upper=1).to_numpy(float))
    weight = 1.0 + (np.arange(len(y)) % 3)
    ours = cf.PoissonRegressor(1e-4).fit(X, y, weight, offset)
    other = glum.GeneralizedLinearRegressor(family="poisson", alpha=1e-4, gradient_tol=1e-12)
    other.fit(X, y, sample_weight=weight, offset=offset)
    assert_agrees(ours, other, "poisson", X, y, 1e-4, weight=weight, offset=offset)


def test_gamma_and_tweedie_are_those_of_scikit_learn(wine):
    X, y = wine
    ours = cf.GammaRegressor(0.01).fit(X, y)
    other = peers.GammaRegressor(alpha=0.01, solver="newton-cholesky", tol=1e-12).fit(X, y)
    assert_agrees(ours, other, "gamma", X, y, 0.01)
    ours = cf.GLM(Tweedie(1.3), alpha=0.01).fit(X, y)
    third = peers.TweedieRegressor(power=1.3, alpha=0.01, link="log", solver="newton-cholesky", tol=1e-12).fit(X, y)
    assert_agrees(ours, third, Tweedie(1.3), X, y, 0.01)
