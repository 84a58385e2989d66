"""Claims about the compiled pass of many folds: column k is the oracle of the rows that train it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from test_core_oracle import GAMMA, LOGISTIC, POISSON, POWER, SQUARED, TWEEDIE, D, N, formulas, targets

from certifit.data.source import Block

K, CELLS = 10, 6


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(N, D))
    weights, intercepts = rng.normal(size=(D, K)) / 3, rng.normal(size=K) / 5
    train, validation = (rng.integers(0, 3, (K, CELLS)).astype(float) for _ in range(2))
    cells = rng.integers(-1, CELLS, N).astype(np.int32)
    return X, weights, intercepts, cells, train, validation, rng.integers(0, 3, N).astype(float), rng.normal(size=N) / 9


def called(core, problem, y, loss, **options):
    X, weights, intercepts, cells, train, validation, weight, offset = problem
    d = X.shape[1]
    given = {"with_value": True, "block_rows": 256, "threads": 2} | options
    scale, shift = given.pop("scale", np.ones(d)), given.pop("shift", np.zeros(d))
    rows = given.pop("rows", Block(X, None, None).rows)
    fixed = (y, weight, offset, scale, shift, 1.0, weights, intercepts, cells, train, validation, loss, POWER)
    return core.fold_oracle(rows, *fixed, **given)


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", [LOGISTIC, POISSON, GAMMA, SQUARED, TWEEDIE])
def test_each_score_is_summed_over_its_own_rows(core, problem, rng, loss, is_sparse):
    X, weights, intercepts, cells, train, validation, weight, offset = problem
    if is_sparse:
        X, weights = np.hstack([X * (rng.random(X.shape) < 0.3)] * 6), np.tile(weights, (6, 1)) / 6
        problem = (sp.csr_array(X), weights, *problem[2:])
    z = X @ weights + intercepts + offset[:, None]
    y = targets(loss, z[:, 0], rng)
    value, slope, _ = formulas(loss, y[:, None], z)
    in_cell = np.where(cells >= 0, weight, 0.0)[:, None]
    trained, validated = in_cell * train[:, cells].T, in_cell * validation[:, cells].T
    ones = np.column_stack([X, np.ones(N)])
    found = called(core, problem, y, loss)
    np.testing.assert_allclose(found[0], (trained * value).sum(axis=0), rtol=1e-12)
    expected = ones.T @ (trained * slope)
    np.testing.assert_allclose(found[1], expected, rtol=1e-11, atol=1e-12 * np.abs(trained * slope).sum())
    np.testing.assert_allclose(found[2], (validated * value).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found[3], validated.sum(axis=0), rtol=1e-14)
    alone = called(core, problem, y, loss, with_value=False)
    assert alone[1].tobytes() == found[1].tobytes() and not alone[0].any()


def test_a_column_is_the_oracle_of_its_rows(core, problem, rng):
    X, weights, intercepts, cells, train, _, weight, offset = problem
    y = targets(LOGISTIC, X @ weights[:, 0], rng)
    scale, shift = 2.0 ** rng.integers(-3, 3, D), rng.normal(size=D)
    values, gradient, *_ = called(core, problem, y, LOGISTIC, scale=scale, shift=shift)
    for k in range(K):
        own = np.where(cells >= 0, weight * train[k, cells], 0.0)
        state = (1.0, weights[:, k].copy(), intercepts[k], LOGISTIC, POWER, True, 256, 1)
        value, g, *_ = core.oracle(Block(X, None, None).rows, y, own, offset, scale, shift, *state)
        np.testing.assert_allclose(values[k], value[0], rtol=1e-12)
        np.testing.assert_allclose(gradient[:, k], g[0], rtol=1e-11, atol=1e-10)


def test_any_number_of_threads_gives_the_same_bits(core, problem, rng):
    y = targets(POISSON, problem[0] @ problem[1][:, 0], rng)
    one, many = (called(core, problem, y, POISSON, threads=n) for n in (1, 7))
    assert [part.tobytes() for part in one] == [part.tobytes() for part in many]


def test_rows_that_count_nowhere_may_hold_anything(core, problem, rng):
    X, cells, weight = problem[0], problem[3], problem[6]
    y = targets(LOGISTIC, X @ problem[1][:, 0], rng)
    cells[5], weight[5], weight[6] = -1, 1.0, 0.0
    before = called(core, problem, y, LOGISTIC)
    X[6], y[6] = np.nan, np.inf
    y[5] = np.inf
    after = called(core, problem, y, LOGISTIC)
    assert [part.tobytes() for part in before] == [part.tobytes() for part in after]


def test_shapes_that_do_not_fit_are_refused(core, problem):
    X, weights, intercepts, cells, train, validation, weight, offset = problem
    with pytest.raises(ValueError, match="train has 9 entries, needs 10"):
        called(core, (X, weights, intercepts, cells, train[:9].copy(), validation, weight, offset), weight, LOGISTIC)
    with pytest.raises(ValueError, match="a cell is not below n_cells"):
        called(core, (X, weights, intercepts, cells + np.int32(9), train, validation, weight, offset), weight, LOGISTIC)
    with pytest.raises(ValueError, match="weights has 6 entries, needs 7"):
        called(core, (X, weights[:6].copy(), *problem[2:]), weight, LOGISTIC)
