"""Variance inflation in the report, and ratios per standard deviation beside those per unit."""

import numpy as np
import pytest
from fits import FILES
from sklearn.linear_model import LinearRegression

import certifit as cf
from certifit.data.source import Memory
from certifit.report.context import build
from certifit.report.first_screen import questions
from certifit.report.page import render
from certifit.statistics.collinearity import correlations, variance_inflation


def columns(noise=0.3, n_rows=200):
    rng = np.random.default_rng(0)
    a = rng.normal(50, 10, n_rows)
    return np.column_stack([a, a + rng.normal(0, noise, n_rows), rng.normal(size=n_rows)]), rng.normal(size=n_rows)


def context_of(model, X, y):
    source = Memory(X, y, names=["a", "b", "c"])
    return build(model.fit(source), source, FILES | {"selection": None, "deciding": "d.csv"})


def test_variance_inflation_is_that_of_regressing_a_column_on_the_others():
    X, y = columns(noise=5.0)
    vif = variance_inflation(correlations(Memory(X, y)), [[0], [1], [2]])
    for j in range(3):
        others = np.delete(X, j, axis=1)
        assert vif[j] == pytest.approx(1 / (1 - LinearRegression().fit(others, X[:, j]).score(others, X[:, j])))


def test_levels_together_do_not_depend_on_the_reference():
    rng = np.random.default_rng(1)
    level = rng.integers(0, 3, 300)
    x = level + rng.normal(size=300)
    inflation = []
    for reference in range(3):
        flags = np.delete(np.eye(3)[level], reference, axis=1)
        R = correlations(Memory(np.column_stack([x, flags]), x))
        inflation.append(variance_inflation(R, [[0], [1, 2]]))
    np.testing.assert_allclose(inflation, inflation[:1] * 3)


def test_columns_that_determine_each_other_or_do_not_vary_have_none():
    X, y = columns()
    R = correlations(Memory(np.column_stack([X, X[:, 0] + X[:, 2]]), y))
    assert variance_inflation(R, [[0], [1], [2], [3]]) == [None] * 4
    still = correlations(Memory(np.column_stack([X[:, :2], np.ones(len(X))]), y))
    assert variance_inflation(still, [[2]]) == [None] and variance_inflation(still, [[0]])[0] > 100


def test_strong_inflation_is_the_warning_of_the_first_screen():
    X, y = columns()
    context = context_of(cf.LinearRegression(), X, y)
    assert {one["column"] for one in context["coefficients"]["collinear"]} == {"a", "b"}
    worry = questions(context)[-1]
    assert "variance inflation" in worry["answer"] and worry["kind"] == "warn"
    page = render(context)
    assert "Columns that are nearly alike" in page and "VIF" in page


def test_columns_that_differ_are_not_mentioned():
    X, y = columns(noise=30.0)
    context = context_of(cf.LinearRegression(), X, y)
    assert context["coefficients"]["collinear"] == []
    assert "nearly alike" not in render(context)


def test_odds_ratios_are_given_per_unit_and_per_standard_deviation():
    X, y = columns(noise=30.0)
    context = context_of(cf.LogisticRegression(alpha=0), X, (y > 0).astype(int))
    rows = context["coefficients"]["rows"]
    for j, row in enumerate(rows[1:]):
        assert row["ratio"] == pytest.approx(np.exp(row["estimate"]))
        assert row["step_ratio"] == pytest.approx(np.exp(row["estimate"] * X[:, j].std()))
    page = render(context)
    assert "Odds ratio per unit" in page and "per std. dev." in page
