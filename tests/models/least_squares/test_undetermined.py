"""Redundant columns: coefficients that the data determine have p-values, the others are marked; in tables and files."""

from __future__ import annotations

import csv
import json

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from click.testing import CliRunner

import certifit as cf
from certifit.cli import main

pytestmark = pytest.mark.filterwarnings("ignore:The design matrix is rank-deficient")
NAMES = ["a", "b", "c", "d"]  # d = a + b


@pytest.fixture(scope="module")
def rows():
    q = np.random.default_rng(3)
    X = q.normal(size=(120, 3)).round(3)
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    return pd.DataFrame(X, columns=NAMES), 1 + X @ [0.5, -0.3, 0.4, 0.2] + 0.5 * q.normal(size=120)


def numbers(fit, places):
    return np.column_stack([fit.params, fit.bse, fit.tvalues, fit.pvalues])[places]


@pytest.mark.parametrize("robust", ["nonrobust", "HC1", "HC3"])
def test_least_squares_has_statsmodels_numbers_of_what_is_determined(rows, robust):
    X, y = rows
    model = cf.LinearRegression().fit(X, y)
    summary = model.summary(X, y, covariance=robust, law="t" if robust == "nonrobust" else "z")
    truth = sm.OLS(y, sm.add_constant(X)).fit(cov_type=robust)  # by a pseudo-inverse: all columns
    frame = summary.to_frame()
    assert list(frame.index) == ["intercept", *NAMES]
    is_determined = frame["coef"].notna().to_numpy()
    assert is_determined.tolist() == [True, False, False, True, False]
    assert frame.to_numpy()[is_determined, :4] == pytest.approx(numbers(truth, is_determined), rel=1e-8)
    assert frame.to_numpy()[is_determined, 0] == pytest.approx([model.intercept_, model.coef_[2]], rel=1e-12)
    assert np.isnan(frame.to_numpy()[~is_determined]).all()
    assert summary.inference.df_resid == truth.df_resid and summary.inference.r_squared == pytest.approx(truth.rsquared)


def test_the_table_says_which_coefficients_are_not_determined(rows):
    X, y = rows
    summary = cf.LinearRegression().fit(X, y).summary(X, y)
    shown = " ".join(str(summary).split())
    assert all(f" {name} not determined" in shown for name in ("a", "b", "d")) and "d = a + b" in shown
    assert " c not determined" not in shown
    found = summary.to_dict()["coefficients"]
    assert [row.get("determined", True) for row in found] == [True, False, False, True, False]
    assert found[1]["estimate"] is None and found[3]["p"] is not None


def test_what_a_relation_with_a_constant_leaves_open(rows):
    """u + v = 1 is a relation with the intercept, which is then one choice among many too."""
    X, y = rows
    u = (X["a"] > 0).astype(float)
    X = pd.DataFrame({"u": u, "v": 1 - u, "c": X["c"]})
    frame = cf.LinearRegression().fit(X, y).summary(X, y).to_frame()
    assert frame["coef"].isna().tolist() == [True, True, True, False]
    truth = sm.OLS(y, sm.add_constant(X, has_constant="add")).fit()
    assert frame.loc["c", "std err"] == pytest.approx(truth.bse["c"], rel=1e-8)


def test_a_generalised_linear_model_has_them_too(rows):
    X, y = rows
    counts = np.random.default_rng(0).poisson(np.exp(0.3 * y)).astype(float)
    summary = cf.GLM("poisson", "log").fit(X, counts).summary(X, counts)
    truth = sm.GLM(counts, sm.add_constant(X[["a", "b", "c"]]), family=sm.families.Poisson()).fit(tol=1e-12)
    frame = summary.to_frame()
    assert frame["coef"].isna().tolist() == [False, True, True, False, True]
    assert frame.to_numpy()[[0, 3], :4] == pytest.approx(numbers(truth, [0, 3]), rel=1e-6)


def test_other_ways_of_redundancy_stay(rows):
    X, y = rows
    model = cf.LinearRegression().fit(X, y)
    assert model.summary(X, y, redundant="drop").to_frame()["coef"].isna().tolist() == [False] * 4 + [True]
    with pytest.raises(ValueError, match="redundant, so single coefficients are not determined"):
        model.summary(X, y, redundant="refuse")
    with pytest.raises(ValueError, match=r"columns are redundant \(d = a \+ b\).*Pass the rows of the fit"):
        model.summary()


def test_coefficients_csv_and_report_have_the_p_values(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = rows
    X.assign(y=y).to_csv("d.csv", index=False)
    result = CliRunner().invoke(main, ["fit", "d.csv", "-t", "y", "-o", "out", "--model", "linear", "--cv", "3"])
    assert result.exit_code == 0, result.output
    table = {row["name"]: row for row in csv.DictReader((tmp_path / "out" / "coefficients.csv").open())}
    truth = sm.OLS(y, sm.add_constant(X)).fit()
    for name, key in (("c", "c"), ("intercept", "const")):
        assert float(table[name]["std_error"]) == pytest.approx(truth.bse[key], rel=1e-8)
        assert float(table[name]["p_value"]) == pytest.approx(truth.pvalues[key], rel=1e-6)
    assert [table[name]["p_value"] for name in ("a", "b", "d")] == ["", "", ""]
    report = json.loads((tmp_path / "out" / "report.json").read_text())["coefficients"]
    assert report["has_inference"] and not report["has_intervals"] and "a, b and d" in report["reason"]
    assert "do not determine the coefficients of a, b and d" in " ".join(result.output.split())


@pytest.mark.slow
def test_least_squares_is_preferred_only_where_p_values_follow(tmp_path, monkeypatch):
    """Gaps of several columns in the same rows: one mark, no relation, and the p-values that were promised."""
    monkeypatch.chdir(tmp_path)
    q = np.random.default_rng(0)
    frame = pd.DataFrame(q.normal(size=(300, 4)).round(3), columns=list("abcd"))
    y = frame.sum(axis=1) + q.normal(size=300)
    frame.loc[q.random(300) < 0.2, ["a", "b", "c"]] = np.nan
    frame.assign(y=y).to_csv("d.csv", index=False)
    result = CliRunner().invoke(main, ["fit", "d.csv", "-t", "y", "-o", "out", "--cv", "3"])
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["certificate"]["dependent"] == []
    names = [row["name"] for row in report["coefficients"]["rows"]]
    assert names == ["intercept", "a", "a, b, c missing", "b", "c", "d"]
    if report["validation"]["chosen"] == "least squares":
        assert all(row["p"] is not None for row in report["coefficients"]["rows"])
    assert "no p-values" not in result.output or "only it can have p-values" not in result.output
