"""NIST's linear sets: digits reached in memory and in blocks of seven rows, and digits claimed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chunks import batches, memory
from reference import digits

import certifit as cf

# set -> fewest digits of a coefficient, of a standard error. The floor is that of raw powers rounded to float64.
SETS = {
    "Norris": (13.5, 12.5),
    "Pontius": (13.0, 12.5),
    "NoInt1": (14.5, 14.0),
    "NoInt2": (14.5, 14.0),
    "Filip": (7.5, 6.0),
    "Longley": (14.0, 11.0),
    "Wampler1": (14.5, 8.0),
    "Wampler2": (13.0, 8.0),
    "Wampler3": (14.5, 12.0),
    "Wampler4": (14.5, 12.0),
    "Wampler5": (14.5, 12.0),
}
SOURCES = {
    "in memory": lambda X, y: memory(X, y, block_rows=4096),
    "in blocks of 7": lambda X, y: memory(X, y, block_rows=7),
    "in batches of 7": lambda X, y: batches(X, y, block_rows=1, cuts=range(7, len(y), 7)),
}


def fitted(nist: Any, name: str, source: str) -> tuple[Any, dict[str, Any]]:
    X, y, certified = nist(name)
    return cf.LinearRegression(fit_intercept=certified["intercept"]).fit(SOURCES[source](X, y)), certified


def estimates(model: Any) -> list[float]:
    return [model.intercept_] * model.fit_intercept + list(model.coef_)


def fewest(got: Any, exact: Any) -> float:
    return min(digits(value, true) for value, true in zip(got, exact, strict=True))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", SETS)
def test_coefficients_and_standard_errors_are_right(nist, name, source):
    model, certified = fitted(nist, name, source)
    least_estimate, least_error = SETS[name]
    assert fewest(estimates(model), certified["exact_estimate"]) >= least_estimate
    assert fewest(model.inference_.standard_errors, certified["exact_std_err"]) >= least_error
    assert model.certificate_.holds
    assert model.rank_ == len(model.coef_)


@pytest.mark.parametrize("source", SOURCES)
def test_the_mean_and_the_minimum_over_the_sets_are_above_the_targets(nist, source):
    reached = []
    for name in SETS:
        model, certified = fitted(nist, name, source)
        reached.append(fewest(estimates(model), certified["exact_estimate"]))
    assert np.mean(reached) >= 12.5
    assert min(reached) >= 7.5


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", SETS)
def test_no_digit_is_claimed_that_is_not_there(nist, name, source):
    model, certified = fitted(nist, name, source)
    for claimed, got, exact in zip(
        model.certificate_.digits, estimates(model), certified["exact_estimate"], strict=True
    ):
        assert claimed <= digits(got, exact)
    if name != "Filip":  # whose powers lost more before they came here
        assert min(model.certificate_.digits) >= 4


@pytest.mark.parametrize("name", SETS)
def test_the_quality_of_the_fit_is_the_certified_one(nist, name):
    model, certified = fitted(nist, name, "in memory")
    fit, least = model.inference_, SETS[name][1]
    assert fit.df_resid == certified["df_res"]
    for got, key in ((fit.sigma, "resid_std"), (fit.rss, "ss_res"), (fit.r_squared, "r_squared")):
        if float(certified[key]):
            assert digits(got, certified[key]) >= min(least, 12)


def polynomial(nist: Any, name: str) -> tuple[Any, Any, dict[str, Any]]:
    X, y, certified = nist(name)
    model = cf.LinearRegression(basis=cf.Polynomial(certified["degree_or_p"]))
    return model.fit(X[:, :1], y), list(model.monomials().values()), certified


# The coefficients of Wampler's powers are far smaller than the terms of the basis that make them up.
IN_BASIS = {"Filip": 12, "Wampler1": 10, "Wampler2": 12.5, "Wampler3": 10, "Wampler4": 9, "Wampler5": 7}


@pytest.mark.parametrize("name", IN_BASIS)
def test_a_polynomial_basis_reports_the_certified_powers(nist, name):
    _, monomials, certified = polynomial(nist, name)
    assert fewest(monomials, certified["exact_estimate"]) >= IN_BASIS[name]


def test_filip_in_its_basis_is_well_conditioned_and_its_fit_the_certified_one(nist):
    model, _, certified = polynomial(nist, "Filip")
    assert model.condition_ < 1e3
    assert min(model.certificate_.digits) > 8
    assert digits(model.inference_.rss, certified["exact_ss_res"]) > 10
    assert digits(model.inference_.sigma, certified["resid_std"]) > 10


@pytest.mark.parametrize("weighted", ["each row twice", "weight 2", "a third of weight 3"])
@pytest.mark.parametrize("name", ["Norris", "Filip", "Longley", "Wampler2"])
def test_weights_cost_no_digit(nist, name, weighted):
    X, y, certified = nist(name)
    rows, weight = np.arange(len(y)), None
    if weighted == "each row twice":
        rows = np.repeat(rows, 2)
    elif weighted == "weight 2":
        weight = np.full(len(y), 2.0)
    else:
        weight = np.full(len(y), 1 / 3)
    model = cf.LinearRegression(fit_intercept=certified["intercept"]).fit(X[rows], y[rows], weight)
    assert fewest(estimates(model), certified["exact_estimate"]) >= SETS[name][0] - 0.5
