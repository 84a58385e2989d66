"""Redundant columns: found exactly where they are, named as a person would, and no prediction depends on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from reference import minimum_norm

import certifit as cf

INTERCEPT = (True, False)


def whole(rng: np.random.Generator, n: int = 40, d: int = 5) -> Any:
    """Columns of whole numbers, none of them constant."""
    return rng.integers(-20, 21, size=(n, d)).astype(float)


def fit(X: Any, fit_intercept: bool = True, weight: Any = None, **options: Any) -> Any:
    y = np.random.default_rng(1).normal(size=X.shape[0])
    return cf.LinearRegression(fit_intercept=fit_intercept, **options).fit(X, y, weight)


# A column made of the others -> the words for it, with an intercept and without.
RELATIONS = {
    "a copy": (lambda X: X[:, 2], "x5 = x2", "x5 = x2"),
    "a sum": (lambda X: X[:, 0] + 2 * X[:, 1], "x5 = x0 + 2 x1", "x5 = x0 + 2 x1"),
    "a difference": (lambda X: -X[:, 0] - 3 * X[:, 4], "x5 = -x0 - 3 x4", "x5 = -x0 - 3 x4"),
    "fractions": (lambda X: X[:, 0] / 4 - 0.375 * X[:, 3], "x5 = 1/4 x0 - 3/8 x3", "x5 = 1/4 x0 - 3/8 x3"),
    "thirds, rounded": (lambda X: X[:, 0] / 3 + X[:, 3] / 7, "x5 = 1/3 x0 + 1/7 x3", "x5 = 1/3 x0 + 1/7 x3"),
    "a constant beside": (lambda X: X[:, 1] + 7, "x5 = x1 + 7", None),
    "half a constant": (lambda X: 2 * X[:, 1] - 0.5, "x5 = 2 x1 - 1/2", None),
    "other units": (lambda X: 1.8 * X[:, 1] + 32, "x5 = 9/5 x1 + 32", None),
    "no small fraction": (lambda X: np.pi * X[:, 1], "x5 = 3.14159 x1", "x5 = 3.14159 x1"),
    "a constant": (lambda X: np.full(len(X), 7.0), "x5 = 7", None),
    "a constant with roundings": (lambda X: np.full(len(X), 0.1), "x5 = 1/10", None),
    "zeros": (lambda X: np.zeros(len(X)), "x5 = 0", "x5 = 0"),
    "far smaller units": (lambda X: X[:, 1] * 2.0**-200, "x5 = 6.22302e-61 x1", "x5 = 6.22302e-61 x1"),
    "all others": (lambda X: X.sum(axis=1), "x5 = x0 + x1 + x2 + x3 + x4", "x5 = x0 + x1 + x2 + x3 + x4"),
}


@pytest.mark.parametrize("fit_intercept", INTERCEPT)
@pytest.mark.parametrize("name", RELATIONS)
def test_a_relation_is_found_and_named_exactly(rng, name, fit_intercept):
    make, *words = RELATIONS[name]
    X = whole(rng)
    model = fit(np.column_stack([X, make(X)]), fit_intercept)
    expected = words[0] if fit_intercept else words[1]
    assert model.certificate_.dependent == (() if expected is None else (expected,))
    assert model.rank_ == (6 if expected is None else 5)
    assert model.certificate_.holds


def test_a_relation_carries_the_names_of_a_frame(rng):
    X = pd.DataFrame(whole(rng, d=3), columns=["net", "tax", "area"]).assign(gross=lambda f: f["net"] + f["tax"])
    assert fit(X).certificate_.dependent == ("gross = net + tax",)


def test_indicator_columns_of_all_levels_are_one_too_many(rng):
    X = np.eye(3)[rng.integers(0, 3, size=30)]
    assert fit(X).certificate_.dependent == ("x2 = -x0 - x1 + 1",)
    assert fit(X, fit_intercept=False).certificate_.dependent == ()


def test_every_relation_is_told(rng):
    X = whole(rng)
    X = np.column_stack([X, X[:, 0] + 2 * X[:, 1], X[:, 2] - X[:, 4] / 4 + 1, X[:, 0]])
    model = fit(X)
    assert model.certificate_.dependent == ("x5 = x0 + 2 x1", "x6 = x2 - 1/4 x4 + 1", "x7 = x0")
    assert model.rank_ == 5
    assert "3 columns are redundant (rank 5 of 8)" in str(model.certificate_)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_weights_and_sparse_rows_do_not_hide_a_relation(rng, sparse, weighted):
    X = np.where(rng.random((60, 5)) < 0.5, whole(rng, 60), 0.0)
    X = np.column_stack([X, X[:, 0] + 2 * X[:, 1]])
    weight = rng.random(60) * 3 if weighted else None
    assert fit(sp.csr_array(X) if sparse else X, weight=weight).certificate_.dependent == ("x5 = x0 + 2 x1",)


@pytest.mark.parametrize("shift", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("scale", [1.0, 2.0**-300, 2.0**300])
def test_units_and_origin_do_not_matter(rng, scale, shift):
    X = (whole(rng) + shift) * scale
    X = np.column_stack([X, X[:, 0] - 2 * X[:, 1]])
    assert fit(X).certificate_.dependent == ("x5 = x0 - 2 x1",)


# Wilkinson: a column off the span of the others by a relative amount. Above rounding it is a column of its own.
@pytest.mark.parametrize("fit_intercept", INTERCEPT)
@pytest.mark.parametrize("off, rank", [(1e-6, 6), (1e-8, 6), (1e-10, 6), (1e-12, 6), (1e-16, 5), (0.0, 5)])
def test_near_dependence_is_not_dependence(rng, off, rank, fit_intercept):
    X = rng.normal(size=(40, 5))
    model = fit(np.column_stack([X, X[:, 0] + X[:, 1] + off * rng.normal(size=40)]), fit_intercept)
    assert model.rank_ == rank
    assert model.certificate_.dependent == (() if rank == 6 else ("x5 = x0 + x1",))
    assert model.certificate_.holds


@pytest.mark.parametrize("off, rank", [(1e-10, 6), (1e-12, 6), (1e-16, 5)])
def test_near_dependence_far_from_zero_is_seen_too(rng, off, rank):
    X = rng.normal(size=(40, 5)) + 100
    assert fit(np.column_stack([X, (X[:, 0] + X[:, 1]) * (1 + off * rng.normal(size=40))])).rank_ == rank


def test_a_condition_number_warns_of_near_dependence(rng):
    X = rng.normal(size=(40, 3))
    for off in (1e-2, 1e-5, 1e-9):
        model = fit(np.column_stack([X, X[:, 0] + off * rng.normal(size=40)]))
        assert 0.1 / off < model.condition_ < 100 / off


@pytest.mark.parametrize("fit_intercept", INTERCEPT)
@pytest.mark.parametrize("shape", [(30, 4), (4, 9), (9, 9), (1, 3), (2, 2)])
def test_the_shortest_solution_is_that_of_the_pseudo_inverse(rng, shape, fit_intercept):
    X, y = whole(rng, *shape), rng.normal(size=shape[0])
    X = np.column_stack([X, X[:, 0] - X[:, 1], X[:, 0]])
    model = cf.LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    coef, intercept = minimum_norm(X, y, None, fit_intercept)
    assert model.coef_ == pytest.approx(coef, rel=1e-8, abs=1e-10)
    assert model.intercept_ == pytest.approx(intercept, rel=1e-8, abs=1e-9)
    assert model.rank_ == np.linalg.matrix_rank(X - X.mean(axis=0) * fit_intercept)
    assert model.certificate_.holds


@pytest.mark.parametrize("fit_intercept", INTERCEPT)
@pytest.mark.parametrize("shift", [0, 1000])
@pytest.mark.parametrize("shape", [(30, 4), (4, 9)])
def test_all_solutions_predict_the_same_and_the_null_space_is_all_there_is(rng, shape, shift, fit_intercept):
    X, y = whole(rng, *shape) + shift, rng.normal(size=shape[0])
    X = np.column_stack([X, X[:, 0] + 3 * X[:, 1] + 7 * fit_intercept])
    model = cf.LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    free = X.shape[1] - model.rank_
    assert model.null_space_.shape == (X.shape[1], free)
    assert np.linalg.matrix_rank(model.null_space_) == free
    assert np.abs(X @ model.null_space_ + model.null_intercept_).max() < 1e-14 * max(np.abs(X).max(), 1000)
    expected = model.predict(X)
    for _ in range(5):
        coef, intercept = model.solutions(rng.normal(size=X.shape[1]))
        assert X @ coef + intercept == pytest.approx(expected, abs=1e-9 if shift else 1e-10)
        assert np.linalg.norm(coef) >= np.linalg.norm(model.coef_) * (1 - 1e-12)
    assert np.array_equal(model.solutions(np.zeros(X.shape[1]))[0], model.coef_)


def test_solutions_are_those_of_the_pseudo_inverse(rng):
    """w(u) = X^+ y + (I - X^+ X) u."""
    X, y = whole(rng, 12, 4), rng.normal(size=12)
    X = np.column_stack([X, X[:, 0] - 2 * X[:, 1]])
    model, u, inverse = cf.LinearRegression(fit_intercept=False).fit(X, y), rng.normal(size=5), np.linalg.pinv(X)
    assert model.solutions(u)[0] == pytest.approx(inverse @ y + u - inverse @ (X @ u), abs=1e-11)
    full = cf.Ridge(0.1).fit(X, y)
    assert np.array_equal(full.solutions(u)[0], full.coef_)


def test_solutions_wants_one_number_per_column(rng):
    X = whole(rng)
    with pytest.raises(ValueError, match=rf"u must have {X.shape[1]} entries.*Got the shape \(2,\)"):
        fit(X).solutions([1.0, 2.0])


def test_a_null_space_too_large_to_keep_says_so(rng):
    X = rng.normal(size=(3, 2500))
    model = fit(X)
    assert model.null_space_ is None
    with pytest.raises(ValueError, match="2500 columns was not kept"):
        model.solutions(np.zeros(2500))


def test_a_polynomial_through_too_few_points_is_told(rng):
    x = np.array([[0.0], [1.0], [2.0]] * 5)
    model = fit(x, basis=cf.Polynomial(4))
    assert model.rank_ == 2
    assert len(model.certificate_.dependent) == 2


@pytest.mark.parametrize("fit_intercept", INTERCEPT)
def test_under_a_penalty_no_column_is_redundant(rng, fit_intercept):
    X = whole(rng)
    y = rng.normal(size=40)
    X = np.column_stack([X, X[:, 0]])
    model = cf.Ridge(0.1, fit_intercept=fit_intercept).fit(X, y)
    assert model.certificate_.dependent == ()
    assert model.coef_[0] == pytest.approx(model.coef_[5])
    assert model.null_space_.shape == (6, 0)
