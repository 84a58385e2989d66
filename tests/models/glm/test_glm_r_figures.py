"""Every figure of a summary beside those of R's glm() and lm(): r_figures/figures.R made them of rows.csv."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import certifit as cf

FOLDER = Path(__file__).parent / "r_figures"
FIGURES = json.loads((FOLDER / "figures.json").read_text(encoding="utf-8"))
ROWS = pd.read_csv(FOLDER / "rows.csv").assign(share=lambda rows: rows.wins / rows.trials)
GLMS = [case for case in FIGURES if case["family"] != "lm"]
LINEAR = [case for case in FIGURES if case["family"] == "lm"]

# R iterates until its deviance stands still, which at a minimum is long before the coefficients do, and its standard
# errors have the working weights of the step before the last.
OF_COEFFICIENTS = 1e-6  # of a standard error
OF_ERRORS = 1e-7  # relative
OF_SUMS = 1e-12  # relative


def name_of(case: dict[str, Any]) -> str:
    return f"{case['family']} {case['link']}, {case['rows']}"


def fitted(case: dict[str, Any], how: str) -> tuple[Any, dict[str, Any]]:
    """The model, and the arguments of summary() that R's call stands for."""
    quasi = case["family"].startswith("quasi-")
    weight = ROWS["trials"] if case["target"] == "share" else pd.Series(1.0, ROWS.index)
    if how in ("repeated", "counts"):
        weight = weight * ROWS["count"]
    if how == "weights":
        weight = weight * ROWS["weight"]
    rows: dict[str, Any] = {"sample_weight": weight.to_numpy(dtype=float)}
    if how == "offset":
        rows["offset"] = ROWS["offset"].to_numpy()
    model = cf.GLM(case["family"].removeprefix("quasi-"), case["link"], fit_intercept=how != "no intercept")
    X, y = ROWS[["x0", "x1"]].to_numpy(), ROWS[case["target"]].to_numpy(dtype=float)
    rules = {"weights": "frequency" if how in ("plain", "repeated") else "variance"}
    return model.fit(X, y, **rows), {"X": X, "y": y, **rows, **rules, "dispersion": "pearson" if quasi else None}


@pytest.mark.parametrize("case", GLMS, ids=name_of)
@pytest.mark.slow
def test_the_summary_is_that_of_r(case):
    """Repeated rows are frequency weights here; R's `weights` are variance weights, counts or not."""
    model, call = fitted(case, case["rows"])
    fit = model.summary(**call).inference
    errors = np.array(case["standard_errors"])
    assert fit.law == case["law"]
    assert np.abs(fit.estimate - case["coefficients"]).max() <= OF_COEFFICIENTS * errors.max()
    assert np.allclose(fit.standard_errors, errors, rtol=OF_ERRORS, atol=0)
    assert np.allclose(fit.t_values, case["statistics"], rtol=OF_ERRORS, atol=OF_COEFFICIENTS)
    assert np.allclose(fit.p_values, case["p_values"], rtol=1e-5, atol=0)
    assert (fit.df_resid, fit.df_null) == (case["df_residual"], case["df_null"])
    for name in ("deviance", "null_deviance"):
        assert getattr(fit, name) == pytest.approx(case[name], rel=OF_SUMS), name
    assert fit.pearson == pytest.approx(case["pearson"], rel=OF_ERRORS)
    assert fit.dispersion == pytest.approx(case["dispersion"], rel=OF_ERRORS)


def has_likelihood(case: dict[str, Any]) -> bool:
    """Quasi-families and Tweedie's have none in R, and it rounds weights of shares of successes to whole trials."""
    is_rounded = case["family"] in ("bernoulli", "binomial") and case["rows"] == "weights"
    return case["log_likelihood"] is not None and not is_rounded


@pytest.mark.parametrize("case", [case for case in GLMS if has_likelihood(case)], ids=name_of)
@pytest.mark.slow
def test_likelihood_and_information_criteria_are_those_of_r(case):
    model, call = fitted(case, case["rows"])
    fit = model.summary(**call).inference
    for name in ("log_likelihood", "aic", "bic"):
        assert getattr(fit, name) == pytest.approx(case[name], rel=OF_SUMS), name
    if not fit.needs_rows:
        stored = model.summary(weights=call["weights"]).inference
        assert stored.log_likelihood == fit.log_likelihood


@pytest.mark.parametrize("case", LINEAR, ids=name_of)
def test_least_squares_are_those_of_lm(case):
    """R counts the variance of the noise among the parameters of AIC and BIC, statsmodels and certifit do not."""
    X, y = ROWS[["x0", "x1"]].to_numpy(), ROWS["gaussian"].to_numpy()
    weight = {"plain": None, "repeated": ROWS["count"], "weights": ROWS["weight"]}[case["rows"]]
    rules = {"weights": "variance" if case["rows"] == "weights" else "frequency"}
    fit = cf.LinearRegression().fit(X, y, weight).summary(X, y, weight, **rules).inference
    for name in ("standard_errors", "p_values", "log_likelihood", "sigma", "r_squared", "f_statistic"):
        assert np.allclose(getattr(fit, name), case[name], rtol=1e-9, atol=0), name
    assert np.allclose(fit.estimate, case["coefficients"], rtol=1e-9, atol=0)
    assert fit.aic + 2 == pytest.approx(case["aic"], rel=1e-10)
    assert fit.bic + np.log(fit.n_obs) == pytest.approx(case["bic"], rel=1e-10)
