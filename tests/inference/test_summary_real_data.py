"""Summary, influence and inflation of real fits against statsmodels: weights, scans, streams, no intercept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import certifit as cf

sm = pytest.importorskip("statsmodels.api")
outliers = pytest.importorskip("statsmodels.stats.outliers_influence")

TOLERANCE = 1e-8
EVERY = ["nonrobust", "HC0", "HC1", "HC2", "HC3"]
NUMBERS = {
    "estimate": "params",
    "standard_errors": "bse",
    "t_values": "tvalues",
    "sigma2": "scale",
    "r_squared": "rsquared",
    "adjusted_r_squared": "rsquared_adj",
    "log_likelihood": "llf",
    "aic": "aic",
    "bic": "bic",
    "n_obs": "nobs",
    "df_resid": "df_resid",
    "df_model": "df_model",
}
ROWS = {
    "leverage": lambda theirs: theirs.hat_matrix_diag,
    "standardised": lambda theirs: theirs.resid_studentized_internal,
    "studentised": lambda theirs: theirs.resid_studentized_external,
    "cooks_distance": lambda theirs: theirs.cooks_distance[0],
    "dffits": lambda theirs: theirs.dffits[0],
}


@pytest.fixture(scope="module")
def houses(shared_data: Path) -> tuple[Any, Any, Any]:
    """The numeric columns of Ames, the logarithm of the price, positive whole numbers as weights."""
    path = shared_data / "ames_housing" / "ames_housing.parquet"
    if not path.exists():
        pytest.skip("shared/data has no ames_housing")
    frame = pd.read_parquet(path).select_dtypes("number").astype(float)
    y = np.log10(frame.pop("Sale_Price"))
    return frame, y, np.random.default_rng(0).integers(1, 4, len(y))


def with_constant(X: Any, fit_intercept: bool) -> Any:
    return sm.add_constant(X, has_constant="add") if fit_intercept else X


def assert_agrees(fit: Any, theirs: Any) -> None:
    for ours, name in NUMBERS.items():
        np.testing.assert_allclose(getattr(fit, ours), getattr(theirs, name), rtol=TOLERANCE, err_msg=ours)
    # statsmodels inverts the covariance, and loses some digits: see the next test for ours.
    np.testing.assert_allclose(fit.f_statistic, theirs.fvalue, rtol=1e-7)
    # A p-value of 1e-300 has the relative error of its statistic times the square of the statistic.
    np.testing.assert_allclose(fit.p_values, theirs.pvalues, rtol=1e-6, atol=1e-290)
    np.testing.assert_allclose(fit.confidence_interval(0.9), theirs.conf_int(0.1), rtol=TOLERANCE)
    # A covariance near 0 is a difference: its error counts beside the two standard errors.
    size = np.outer(fit.standard_errors, fit.standard_errors)
    assert (np.abs(fit.covariance - np.asarray(theirs.cov_params())) <= TOLERANCE * size).all()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("covariance", EVERY)
@pytest.mark.parametrize("weights", ["none", "frequency", "variance"])
def test_houses_agree_with_statsmodels(houses, weights, covariance, fit_intercept):
    X, y, weight = houses
    scale = X.abs().max()  # statsmodels keeps more digits of columns near 1; t, F and the rest know no unit
    X = X / scale
    rows = (X, y) if weights == "none" else (X, y, weight)
    again = np.repeat(np.arange(len(y)), weight) if weights == "frequency" else np.arange(len(y))
    Z = with_constant(X, fit_intercept).iloc[again]
    theirs = sm.WLS(y.iloc[again], Z, weights=weight if weights == "variance" else 1.0).fit(cov_type=covariance)
    model = cf.LinearRegression(fit_intercept=fit_intercept).fit(*rows)
    convention = "frequency" if weights == "none" else weights
    law = "t" if covariance == "nonrobust" else "z"  # statsmodels'
    assert_agrees(model.summary(*rows, weights=convention, covariance=covariance, law=law).inference, theirs)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("covariance, power", [("HC0", 0), ("HC2", 1), ("HC3", 2)])
def test_the_joint_test_of_houses_is_that_of_orthogonal_columns(houses, covariance, power, fit_intercept):
    X, y, _ = houses
    model = cf.LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    Q, _ = np.linalg.qr(with_constant(X / X.abs().max(), fit_intercept).to_numpy())
    u = Q.T @ y.to_numpy()
    e, h = y.to_numpy() - Q @ u, (Q**2).sum(axis=1)
    meat = (Q * (e**2 / (1 - h) ** power)[:, None]).T @ Q
    first = int(fit_intercept)  # R is triangular: the coefficients besides the first are R_22^-1 u_2
    expected = u[first:] @ np.linalg.solve(meat[first:, first:], u[first:]) / X.shape[1]
    assert model.summary(X, y, covariance=covariance).inference.f_statistic == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weights", ["none", "frequency", "variance"])
def test_influence_and_inflation_of_houses_agree_with_statsmodels(houses, weights, fit_intercept):
    X, y, weight = (part[::30] for part in houses)  # statsmodels refits without every row
    X = X.iloc[:, 8:20]
    X = X / X.abs().max()
    Z = with_constant(X, fit_intercept).to_numpy()
    rows = (X, y) if weights == "none" else (X, y, weight)
    model = cf.LinearRegression(fit_intercept=fit_intercept).fit(*rows)
    found = model.influence(*rows, weights="frequency" if weights == "none" else weights)
    again = np.repeat(np.arange(len(y)), weight) if weights == "frequency" else np.arange(len(y))
    root = np.sqrt(weight) if weights == "variance" else np.ones(len(y))
    theirs = outliers.OLSInfluence(sm.OLS((y * root).to_numpy()[again], (Z * root[:, None])[again]).fit())
    for name, expected in ROWS.items():
        np.testing.assert_allclose(
            getattr(found, name)[again], expected(theirs), rtol=TOLERANCE, atol=1e-10, err_msg=name
        )
    design = (Z * np.sqrt(weight)[:, None]) if weights != "none" else Z
    if fit_intercept and weights == "none":  # statsmodels' factor centres nothing: the constant stands among the others
        expected = [outliers.variance_inflation_factor(design, j) for j in range(1, Z.shape[1])]
        np.testing.assert_allclose(list(model.variance_inflation().values()), expected, rtol=TOLERANCE)
    if not fit_intercept:
        expected = [1 / (1 - sm.OLS(design[:, j], np.delete(design, j, 1)).fit().rsquared) for j in (0, 4, 8)]
        np.testing.assert_allclose(np.array(list(model.variance_inflation().values()))[[0, 4, 8]], expected, rtol=1e-7)


@pytest.mark.parametrize("name, has_intercept", [("Longley", True), ("NoInt1", False), ("NoInt2", False)])
def test_nist_errors_are_the_certified_ones(nist, name, has_intercept):
    X, y, certified = nist(name)
    model = cf.LinearRegression(fit_intercept=has_intercept).fit(X, y)
    fit = model.summary().inference
    np.testing.assert_allclose(fit.standard_errors, [float(v) for v in certified["exact_std_err"]], rtol=1e-9)
    theirs = sm.OLS(y, with_constant(X / np.abs(X).max(axis=0), has_intercept)).fit()
    np.testing.assert_allclose(fit.t_values, theirs.tvalues, rtol=TOLERANCE)
    np.testing.assert_allclose(fit.f_statistic, theirs.fvalue, rtol=TOLERANCE)


def test_scans_and_streams_give_the_table_of_the_array(houses, tmp_path):
    X, y, weight = houses
    frame = X.assign(price=y, w=weight.astype(float))
    frame.to_csv(tmp_path / "houses.csv", index=False)
    frame.to_parquet(tmp_path / "houses.parquet", index=False, row_group_size=301)
    expected = cf.LinearRegression().fit(X, y, weight)
    table = expected.summary(X, y, weight, covariance="HC3", weights="variance").to_dict()
    influence = expected.influence(X, y, weight, most=20)
    scans = [
        cf.scan_csv(str(tmp_path / "houses.csv"), target="price", weight="w"),
        cf.scan_parquet(str(tmp_path / "houses.parquet"), target="price", weight="w"),
        cf.from_arrow(frame, target="price", weight="w"),
    ]
    polars = pytest.importorskip("polars")
    scans.append(cf.from_arrow(polars.from_pandas(frame), target="price", weight="w"))
    for scan in scans:
        model = cf.LinearRegression().fit(scan)
        found = model.summary(scan, covariance="HC3", weights="variance").to_dict()
        for ours, theirs in zip(found["coefficients"], table["coefficients"], strict=True):
            assert ours.pop("name") == theirs["name"]
            assert ours == pytest.approx({key: theirs[key] for key in ours}, rel=1e-8)
        assert found["aic"] == pytest.approx(table["aic"], rel=1e-12)
        most = model.influence(scan, most=20)
        assert most.row.tolist() == influence.row.tolist()
        np.testing.assert_allclose(most.cooks_distance, influence.cooks_distance, rtol=1e-9)


@pytest.mark.slow
def test_rows_of_a_scan_are_never_all_in_memory(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80_000, 60)).astype(np.float32), columns=[f"c{j}" for j in range(60)])
    frame["y"] = frame.sum(axis=1) + rng.normal(size=len(frame))
    frame.to_parquet(tmp_path / "rows.parquet", index=False, row_group_size=10_000)
    scan = cf.scan_parquet(str(tmp_path / "rows.parquet"), target="y")
    model = cf.LinearRegression().fit(scan)

    def refused(*_: Any) -> Any:
        raise AssertionError("all rows were gathered")

    monkeypatch.setattr("certifit.data.source.Source.gather", refused)
    longest = max(len(part) for part in model.influence_iter(scan))
    assert longest <= 65_536
    assert model.summary(scan, covariance="HC2").inference.n_obs == 80_000
    assert len(model.influence(scan, most=5)) == 5
