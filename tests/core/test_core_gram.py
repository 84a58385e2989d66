"""S = sum_i w_i z_i z_i', z = (x scale - shift, 1, y y_scale - y_shift), against exact sums; both builds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from layouts import LAYOUTS, SPARSE, TYPES, core_rows, integers
from reference import rational

UNIT = 2.0**-53
SHAPES = [(1, 1), (7, 3), (61, 4), (130, 9), (257, 2)]


def exact_gram(X: Any, y: Any, weight: Any, scale: Any, shift: Any, y_scale: float, y_shift: float) -> Any:
    """S and, entry by entry, the sum of absolute terms."""
    size = X.shape[1] + 2
    sums = [[Fraction(0)] * size for _ in range(size)]
    sizes = [[Fraction(0)] * size for _ in range(size)]
    weights = rational(np.ones(len(y)) if weight is None else weight)
    for row, target, w in zip(rational(X), rational(y), weights, strict=True):
        z = [x * s - c for x, s, c in zip(row, rational(scale), rational(shift), strict=True)]
        z += [Fraction(1), target * Fraction(y_scale) - Fraction(y_shift)]
        for j in range(size):
            for k in range(size):
                sums[j][k] += w * z[j] * z[k]
                sizes[j][k] += abs(w * z[j] * z[k])
    return sums, sizes


def worst(got: Any, exact: Any) -> float:
    """Largest error of hi + lo, relative to the sum of absolute terms."""
    hi, lo = got
    lo = np.zeros_like(hi) if lo is None else lo
    sums, sizes = exact
    return max(
        float(abs(Fraction(hi[j, k]) + Fraction(lo[j, k]) - sums[j][k]) / (sizes[j][k] or 1))
        for j in range(len(hi))
        for k in range(len(hi))
    )


def summed(core: Any, X: Any, y: Any, weight: Any = None, twofold: bool = True, **changed: Any) -> Any:
    d = X.shape[1]
    given = {"scale": np.ones(d), "shift": np.zeros(d), "y_scale": 1.0, "y_shift": 0.0, "weight_scale": 1.0}
    given |= {"block_rows": 32, "twofold": twofold, "threads": 2} | changed
    return core.gram(core_rows(X), y, weight, *given.values())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.slow
def test_twofold_sums_have_a_hundred_bits(core, rng, shape):
    X, y = rng.normal(size=shape) * 10.0 ** rng.integers(-6, 7, size=shape[1]), rng.normal(size=shape[0])
    exact = exact_gram(X, y, None, np.ones(shape[1]), np.zeros(shape[1]), 1.0, 0.0)
    assert worst(summed(core, X, y), exact) < 2.0**-98


@pytest.mark.parametrize("shape", SHAPES)
def test_plain_sums_err_by_a_few_roundings(core, rng, shape):
    X, y = rng.normal(size=shape), rng.normal(size=shape[0])
    exact = exact_gram(X, y, None, np.ones(shape[1]), np.zeros(shape[1]), 1.0, 0.0)
    hi, lo = summed(core, X, y, twofold=False)
    assert lo is None
    assert worst((hi, None), exact) < 32 * UNIT


def test_cancelling_terms_do_not_hide_the_small_one(core):
    X = np.array([[2.0**60], [1.0], [-(2.0**60)]])
    y = np.array([2.0**60, 1.0, 2.0**60])  # 2^120 + 1 - 2^120
    hi, lo = summed(core, X, y)
    assert hi[0, 2] == 1.0
    assert lo[0, 2] == 0.0


def test_scales_and_shifts_are_those_of_the_formula(core, rng):
    X, y = integers(rng, 90, 5), integers(rng, 90, 1)[:, 0]
    scale, shift = 2.0 ** -np.arange(2.0, 7.0), np.arange(1.0, 6.0) / 4
    given = {"scale": scale, "shift": shift, "y_scale": 0.125, "y_shift": 0.75}
    exact = exact_gram(X, y, None, *given.values())
    assert worst(summed(core, X, y, **given), exact) == 0.0  # few bits: nothing to round
    assert worst(summed(core, X, y, twofold=False, **given), exact) == 0.0


def test_a_weight_multiplies_the_row(core, rng):
    X, y = rng.normal(size=(80, 3)), rng.normal(size=80)
    # The root of a weight goes into the row: exact for powers of four, one rounding an entry for others.
    for weight, bound in ((rng.choice([0.0, 0.25, 1, 4], size=80), 2.0**-98), (rng.random(80), 8 * UNIT)):
        exact = exact_gram(X, y, weight, np.ones(3), np.zeros(3), 1.0, 0.0)
        assert worst(summed(core, X, y, weight), exact) < bound


def test_the_scale_of_weights_is_taken_out(core, rng):
    X, y, weight = rng.normal(size=(40, 3)), rng.normal(size=40), rng.random(40)
    hi, _ = summed(core, X, y, weight)
    scaled, _ = summed(core, X, y, weight * 2.0**-600, weight_scale=2.0**600)
    assert np.array_equal(hi, scaled)


@pytest.mark.parametrize("twofold", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_does_not_change_a_bit(core, rng, layout, twofold):
    X, y = rng.normal(size=(150, 7)), rng.normal(size=150)
    plain, other = (summed(core, Z, y, twofold=twofold) for Z in (X, LAYOUTS[layout](X)))
    assert np.array_equal(plain[0], other[0])
    assert not twofold or np.array_equal(plain[1], other[1])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [*TYPES, "bool"])
def test_every_type_holds_the_same_numbers(core, rng, dtype, layout):
    X, y = integers(rng, 100, 5), rng.normal(size=100)
    X = (X > 50).astype(np.float64) if dtype == "bool" else X
    plain, other = summed(core, X, y), summed(core, LAYOUTS[layout](X.astype(dtype)), y)
    assert np.array_equal(plain[0], other[0])


@pytest.mark.parametrize("twofold", [False, True])
@pytest.mark.parametrize("n_columns, density", [(6, 0.4), (40, 0.05), (40, 0.5), (40, 0.0)])
@pytest.mark.parametrize("form", SPARSE)
def test_sparse_rows_give_the_sums_of_dense_rows(core, rng, form, n_columns, density, twofold):
    X, y = integers(rng, 200, n_columns, density), integers(rng, 200, 1)[:, 0]
    weight = rng.integers(0, 3, size=200) ** 2.0
    scale = 2.0 ** rng.integers(-3, 4, size=n_columns)
    dense, sparse = (summed(core, Z, y, weight, twofold, scale=scale, y_shift=3.0) for Z in (X, SPARSE[form](X)))
    assert np.array_equal(dense[0], sparse[0])  # whole numbers: exact either way


def test_rows_without_a_target_leave_its_column_out(core, rng):
    X = rng.normal(size=(50, 3))
    with_target, _ = summed(core, X, rng.normal(size=50))
    without, _ = summed(core, X, None)
    assert without.shape == (4, 4)
    assert np.array_equal(without, with_target[:4, :4])


def test_no_rows_sum_to_zero(core):
    hi, lo = summed(core, np.zeros((0, 3)), np.zeros(0))
    assert not hi.any() and not lo.any()


@pytest.mark.parametrize("layout", [*LAYOUTS, *SPARSE])
@pytest.mark.parametrize("twofold", [False, True])
def test_a_cell_is_summed_as_if_its_rows_stood_alone(core, rng, layout, twofold):
    X, y = integers(rng, 403, 40), rng.integers(-9, 9, size=403).astype(float)
    weight = rng.integers(0, 3, size=403).astype(float) ** 2  # roots that are exact
    cells = rng.integers(-1, 5, size=403).astype(np.int32)
    make = (LAYOUTS | SPARSE)[layout]
    hi, _ = summed(core, make(X), y, weight, twofold, block_rows=128, threads=2, cells=cells, n_cells=6)
    assert hi.shape == (6, 42, 42) and not hi[5].any()  # no row is in the last cell
    for cell in range(5):
        own = cells == cell
        alone, _ = summed(core, make(X[own]), y[own], weight[own], twofold)
        assert (hi[cell] == alone).all()  # integers: every sum is exact


@pytest.mark.parametrize("threads", [1, 3])
def test_cells_have_the_same_bits_for_any_number_of_threads(core, rng, threads):
    X, y = rng.normal(size=(5000, 11)), rng.normal(size=5000)
    cells = rng.integers(0, 7, size=5000).astype(np.int32)
    runs = [summed(core, X, y, None, False, block_rows=256, threads=t, cells=cells, n_cells=7) for t in (2, threads)]
    assert (runs[0][0] == runs[1][0]).all()


def test_one_cell_of_all_rows_has_the_bits_of_no_cells(core, rng):
    X, y = rng.normal(size=(3000, 7)), rng.normal(size=3000)
    plain, _ = summed(core, X, y, None, False, block_rows=1024)
    celled, _ = summed(core, X, y, None, False, block_rows=1024, threads=2, cells=np.zeros(3000, np.int32), n_cells=1)
    assert (plain == celled[0]).all()


@pytest.mark.parametrize(
    "cells, words", [(np.zeros(9, np.int32), "cells has 9"), (np.full(10, 3, np.int32), "not below")]
)
def test_cells_that_do_not_fit_the_rows_are_refused(core, rng, cells, words):
    with pytest.raises(ValueError, match=words):
        summed(core, rng.normal(size=(10, 2)), np.zeros(10), None, False, threads=1, cells=cells, n_cells=3)
