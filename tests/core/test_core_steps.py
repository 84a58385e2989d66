"""Newton steps with a penalty: where the quadratic model is least, dense by its matrix and sparse by its columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

D = 9


def problem(rng: np.random.Generator, n: int = 60) -> dict[str, Any]:
    X = np.where(rng.random((n, D)) < 0.5, rng.normal(size=(n, D)), 0.0)
    h = rng.uniform(0.1, 1.0, size=n) / n
    l1 = rng.uniform(0.0, 0.3, size=D)
    l1[0] = 0.0
    lower, upper = np.full(D, -np.inf), np.full(D, np.inf)
    lower[1], upper[2] = 0.0, 0.1
    w = np.where(rng.random(D) < 0.5, rng.normal(size=D), 0.0).clip(lower, upper)
    rows = np.column_stack([X, np.ones(n)])
    return {
        "X": X,
        "h": h,
        "H": np.ascontiguousarray((rows.T * h) @ rows),
        "g": rng.normal(size=D + 1) * 0.3,
        "w": w,
        "l1": l1,
        "l2": rng.uniform(0.0, 0.2, size=D),
        "lower": lower,
        "upper": upper,
    }


def broken(p: dict[str, Any], x: np.ndarray, start: np.ndarray, l2: np.ndarray) -> float:
    """The largest violation of the conditions of a minimum of the model."""
    slope = p["g"] + p["H"] @ (x - start) + np.append(l2 * x[:-1], 0.0)
    l1, lower, upper = np.append(p["l1"], 0.0), np.append(p["lower"], -np.inf), np.append(p["upper"], np.inf)
    assert ((x >= lower) & (x <= upper)).all()
    up = np.where(x < upper, -slope - np.where(x >= 0, l1, -l1), 0.0)
    down = np.where(x > lower, slope - np.where(x <= 0, l1, -l1), 0.0)
    return float(max(up.max(), down.max()))


def test_the_model_of_a_matrix_is_least_where_the_step_ends(core, rng):
    p = problem(rng)
    start = np.append(p["w"], 0.4)
    ends = (np.append(p["lower"], -np.inf), np.append(p["upper"], np.inf))
    found, _, status = core.gram_lasso_step(p["H"], p["g"], start, 1.0, np.append(p["l1"], 0.0), *ends, 1000, 2)
    assert status != 1
    assert broken(p, found, start, np.zeros(D)) <= 1e-14


def test_the_model_of_sparse_columns_is_least_where_descent_ends(core, rng):
    p = problem(rng)
    X = sp.csc_array(p["X"])
    columns = ("csc", X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32), X.shape[0])
    parts = (p["h"], p["g"], p["w"], p["l1"], p["l2"], p["lower"], p["upper"], np.ones(D))
    weights, moved, sweeps = core.weighted_lasso_step(columns, *parts, True, 1e-14, 100_000, 2)
    assert sweeps > 1
    start = np.append(p["w"], 0.0)
    assert broken(p, np.append(weights, moved), start, p["l2"]) <= 1e-12


def test_without_an_intercept_it_does_not_move(core, rng):
    p = problem(rng)
    X = sp.csc_array(p["X"])
    columns = ("csc", X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32), X.shape[0])
    parts = (p["h"], p["g"], p["w"], p["l1"], p["l2"], p["lower"], p["upper"], np.ones(D))
    weights, moved, _ = core.weighted_lasso_step(columns, *parts, False, 1e-14, 100_000, 2)
    p["H"][-1], p["H"][:, -1], p["g"][-1] = 0.0, 0.0, 0.0
    assert moved == 0.0
    assert broken(p, np.append(weights, 0.0), np.append(p["w"], 0.0), p["l2"]) <= 1e-12


def test_faults_of_the_caller_are_refused(core, rng):
    p = problem(rng)
    start, l1 = np.append(p["w"], 0.0), np.append(p["l1"], 0.0)
    ends = (np.append(p["lower"], -np.inf), np.append(p["upper"], np.inf))
    beyond = start.copy()
    beyond[2] = 5.0
    for matrix, at, square in ((p["H"][:, :-1].copy(), start, 1.0), (p["H"], beyond, 1.0), (p["H"], start, -1.0)):
        with pytest.raises(ValueError):
            core.gram_lasso_step(matrix, p["g"], at, square, l1, *ends, 10, 1)
    with pytest.raises(ValueError, match="rows"):
        columns = ("csc", np.ones(1), np.array([99], dtype=np.int32), np.array([0] + [1] * D, dtype=np.int32), 60)
        parts = (p["h"], p["g"], p["w"], p["l1"], p["l2"], p["lower"], p["upper"], np.ones(D))
        core.weighted_lasso_step(columns, *parts, True, 1e-14, 10, 1)
