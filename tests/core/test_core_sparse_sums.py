"""Sums of sparse columns that are read column by column, against exact ones; both builds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from certifit.data.by_column import csc
from certifit.statistics.residual import twofold_unit


def problem(rng: np.random.Generator, n_rows: int, n_columns: int) -> tuple[Any, ...]:
    """Columns, target, weights of rows, and a state that nearly meets every row."""
    X = sp.random(n_rows, n_columns, 0.3, format="csc", random_state=rng, data_rvs=lambda size: rng.normal(size=size))
    weights = rng.normal(size=n_columns) * (rng.random(n_columns) < 0.7)
    y = X @ weights + 0.3 + 1e-13 * rng.normal(size=n_rows)
    return X, y, rng.random(n_rows), weights


def residual(core: Any, X: Any, y: Any, weight: Any, weights: Any, threads: int = 2, scale: float = 1.0) -> Any:
    return core.column_residual(csc(X), y, weight, scale, 1.0, 1.0, weights, 0.3, threads)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (60, 7), (300, 20)])
def test_the_residual_statistic_has_a_hundred_bits_of_its_terms(core, rng, shape, weighted):
    X, y, row_weight, weights = problem(rng, *shape)
    hi, lo, squares, squares_low, magnitude = residual(core, X, y, row_weight if weighted else None, weights)
    rows, counts = X.toarray(), row_weight if weighted else np.ones(len(y))
    r = [
        Fraction(t) - Fraction(0.3) - sum(Fraction(x) * Fraction(w) for x, w in zip(row, weights, strict=True))
        for t, row in zip(y, rows, strict=True)
    ]
    sizes = np.abs(rows) @ np.abs(weights) + np.abs(y)
    for j, column in enumerate([*rows.T, np.ones(len(y))]):
        terms = zip(counts, column, r, strict=True)
        exact = sum(Fraction(w) * Fraction(x) * at for w, x, at in terms)
        size = float((counts * np.abs(column)) @ (sizes + 0.3))
        assert abs(Fraction(hi[j]) + Fraction(lo[j]) - exact) <= twofold_unit(len(y)) * size
    exact = sum(Fraction(w) * at * at for w, at in zip(counts, r, strict=True))
    assert abs(Fraction(squares) + Fraction(squares_low) - exact) <= 2.0**-90 * float(counts @ (sizes + 0.3) ** 2)
    assert magnitude == pytest.approx(counts @ sizes**2)


def test_it_is_that_of_rows(core, rng):
    X, y, weight, weights = problem(rng, 9_000, 5)
    by_row = sp.csr_array(X)
    rows = [("csr", by_row.data, by_row.indices, by_row.indptr, 5)]
    other = core.residual(rows, y, weight, np.full(5, 4.0), 1.0, 1.0, weights, 0.3, 4096, 2)
    *sums, magnitude = residual(core, X, y, weight, weights, scale=4.0)
    for one, two in zip(sums, other, strict=False):
        np.testing.assert_allclose(one, two, rtol=1e-15, atol=1e-22)
    assert magnitude == pytest.approx(other[-1], rel=1e-10)  # a bound, summed in float64


def test_any_number_of_threads_gives_the_same_bits(core, rng):
    X, y, weight, weights = problem(rng, 20_000, 150)
    first = residual(core, X, y, weight, weights, 1)
    for threads in (2, 8):
        other = residual(core, X, y, weight, weights, threads)
        assert all(np.array_equal(one, two) for one, two in zip(first, other, strict=True))


def test_sizes_sums_and_squares_are_those_of_the_columns(core, rng):
    X, _, weight, _ = problem(rng, 500, 90)
    sizes, sums, squares = core.column_sums(csc(X), weight, 2)
    rows = X.toarray()
    assert (sizes == np.abs(rows).max(axis=0)).all()
    np.testing.assert_allclose(sums, weight @ rows, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(squares, weight @ rows**2, rtol=1e-12)
    X.data[[0, X.indptr[40], -1]] = np.nan, np.inf, -np.inf
    sizes = core.column_sums(csc(X), weight, 2)[0]
    assert np.isnan(sizes[0]) and sizes[40] == sizes[-1] == np.inf and np.isfinite(sizes[1:40]).all()


def test_an_index_beyond_the_rows_is_refused(core, rng):
    X, y, weight, weights = problem(rng, 30, 4)
    X.indices[-1] = 30
    with pytest.raises(ValueError, match="indices"):
        residual(core, X, y, weight, weights)
    with pytest.raises(ValueError, match="indices"):
        core.column_sums(csc(X), weight, 1)
