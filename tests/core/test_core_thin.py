"""Claims about the compiled passes over thin rows: they are the oracle, its Hessian's products and diagonal."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from test_core_oracle import POWER, formulas, targets

from certifit.data.source import Block

N, D = 1003, 60  # of test_core_oracle, and more columns than are read as dense ones


@pytest.fixture
def problem(rng):
    X = sp.csr_array(rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.1))
    weights, weight = rng.normal(size=D) / 3, rng.integers(0, 3, N).astype(float)
    return X, weights, 0.3, weight, rng.normal(size=N) / 10, 2.0 ** rng.integers(-3, 3, D)


def called(core, problem, y, loss, n=2):
    X, weights, b, weight, offset, scale = problem
    rows = Block(X, None, None).rows
    return core.thin_oracle(rows, y, weight, offset, scale, 1.0, weights, b, loss, POWER, 256, n)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("loss", range(5))
def test_sums_over_thin_rows_are_the_formulas(core, problem, rng, loss, index):
    X, weights, b, weight, offset, scale = problem
    X = sp.csr_array((X.data, X.indices.astype(index), X.indptr.astype(index)), shape=X.shape)
    problem = (X, *problem[1:])
    dense = np.column_stack([X.toarray() * scale, np.ones(N)])
    z = dense @ np.append(weights, b) + offset
    y = targets(loss, z, rng)
    value, slope, curvature = (weight * part for part in formulas(loss, y, z))
    found = called(core, problem, y, loss)
    np.testing.assert_allclose(found[0], value.sum(), rtol=1e-12)
    np.testing.assert_allclose(found[1], dense.T @ slope, rtol=1e-11, atol=1e-12 * np.abs(slope).sum())
    np.testing.assert_allclose(found[2], curvature, rtol=1e-11, atol=1e-14)
    way, rows = rng.normal(size=D + 1), Block(X, None, None).rows
    product = core.thin_product(rows, found[2], scale, way, 256, 2)
    np.testing.assert_allclose(product, dense.T @ (curvature * (dense @ way)), rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(core.thin_diagonal(rows, found[2], scale, 256, 2), curvature @ dense**2, rtol=1e-11)


def test_any_number_of_threads_gives_the_same_bits(core, problem, rng):
    y, way, rows = rng.integers(0, 2, N).astype(float), rng.normal(size=D + 1), Block(problem[0], None, None).rows
    one, many = (called(core, problem, y, 0, n) for n in (1, 7))
    assert one[0] == many[0]
    assert all(a.tobytes() == b.tobytes() for a, b in zip(one[1:], many[1:], strict=True))
    for f in (lambda n: core.thin_product(rows, one[2], problem[-1], way, 256, n),
              lambda n: core.thin_diagonal(rows, one[2], problem[-1], 256, n)):  # fmt: skip
        assert f(1).tobytes() == f(7).tobytes()


def test_rows_of_weight_0_may_hold_anything(core, problem, rng):
    X, weight, y = problem[0], problem[3], rng.integers(0, 2, N).astype(float)
    weight[5] = 0.0
    before = called(core, problem, y, 0)
    X.data[X.indptr[5] : X.indptr[6]] = np.nan
    y[5] = np.inf
    after = called(core, problem, y, 0)
    assert before[0] == after[0] and before[1].tobytes() == after[1].tobytes() and after[2][5] == 0


def test_dense_rows_are_refused(core, rng):
    rows = Block(rng.normal(size=(5, 2)), None, None).rows
    with pytest.raises(ValueError, match="takes no dense columns"):
        core.thin_diagonal(rows, np.ones(5), np.ones(2), 256, 1)
