"""Scores along directions against the formula in exact arithmetic; both builds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from layouts import LAYOUTS, SPARSE, TYPES, core_rows

from certifit.data.columns import Bits, Codes, Columns, Number

SHAPES = [(1, 1, 1), (5, 3, 2), (70, 13, 5), (33, 40, 12), (40, 7, 17)]


def project(core: Any, rows: Any, scale: Any, shift: Any, directions: Any, threads: int = 2) -> Any:
    return core.project(rows, scale, shift, np.ascontiguousarray(directions), threads)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.slow
def test_a_score_is_the_sum_of_the_formula(core, rng, shape):
    n, d, k = shape
    X, shift, V = rng.normal(size=(n, d)), rng.normal(size=d), rng.normal(size=(d, k))
    scale = np.ldexp(1.0, rng.integers(-3, 4, size=d))
    found = project(core, core_rows(X), scale, shift, V)
    assert found.shape == (n, k)
    for i in range(n):
        for c in range(k):
            terms = [
                (Fraction(X[i, j]) * Fraction(scale[j]) - Fraction(shift[j])) * Fraction(V[j, c]) for j in range(d)
            ]
            size = sum(
                (abs(Fraction(X[i, j] * scale[j])) + abs(Fraction(shift[j]))) * abs(Fraction(V[j, c])) for j in range(d)
            )
            assert abs(Fraction(found[i, c]) - sum(terms)) <= Fraction((d + 3) * 2.0**-53) * size


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_and_threads_do_not_change_a_bit(core, rng, layout):
    X, shift, V = rng.normal(size=(9000, 6)), rng.normal(size=6), rng.normal(size=(6, 5))
    expected = project(core, core_rows(X), np.ones(6), shift, V, 1)
    for threads in (1, 2, 8):
        assert np.array_equal(project(core, core_rows(LAYOUTS[layout](X)), np.ones(6), shift, V, threads), expected)
    for begin, end in ((0, 1), (5, 8), (4090, 4100)):
        part = project(core, core_rows(np.ascontiguousarray(X[begin:end])), np.ones(6), shift, V)
        assert np.array_equal(part, expected[begin:end])


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_is_read(core, rng, dtype):
    X = rng.integers(0, 100, size=(50, 4))
    V, shift = rng.normal(size=(4, 3)), rng.normal(size=4)
    expected = project(core, core_rows(X.astype(float)), np.ones(4), shift, V)
    assert np.array_equal(project(core, core_rows(X.astype(dtype)), np.ones(4), shift, V), expected)


@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.parametrize("d", [6, 50])
def test_sparse_rows_have_the_scores_of_dense_ones(core, rng, kind, d):
    X = np.where(rng.random((80, d)) < 0.2, rng.normal(size=(80, d)).astype(np.float32), 0.0)
    V, shift = rng.normal(size=(d, 3)), rng.normal(size=d)
    scale = np.ldexp(1.0, rng.integers(-3, 4, size=d))
    dense = project(core, core_rows(X), scale, shift, V)
    assert np.allclose(project(core, core_rows(SPARSE[kind](X)), scale, shift, V), dense, rtol=1e-12, atol=1e-12)


def test_a_category_between_numbers_is_not_expanded(core, rng):
    n = 40
    codes = Codes(rng.integers(0, 3, size=n), np.array([-1, 0, 1], dtype=np.int32), 2)
    valid = Bits(np.packbits(rng.random(n) < 0.8, bitorder="little"))
    columns = Columns([Number(rng.normal(size=n)), codes, Number(rng.normal(size=n), valid, 0.5)], n)
    V, shift = rng.normal(size=(4, 3)), rng.normal(size=4)
    expected = (columns.toarray() - shift) @ V
    assert np.allclose(project(core, columns.core(), np.ones(4), shift, V), expected, rtol=1e-12, atol=1e-12)


def test_wrong_shapes_are_refused(core, rng):
    X = core_rows(rng.normal(size=(5, 3)))
    with pytest.raises(ValueError, match="directions"):
        project(core, X, np.ones(3), np.zeros(3), np.ones((4, 2)))
    with pytest.raises(ValueError, match="shift"):
        project(core, X, np.ones(3), np.zeros(2), np.ones((3, 2)))
