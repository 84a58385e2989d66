"""The passes at given weights against exact sums: residual statistic, residuals a row, scores; both builds."""

from __future__ import annotations

from fractions import Fraction
from operator import mul
from typing import Any

import numpy as np
import pytest
from layouts import LAYOUTS, SPARSE, TYPES, core_rows, integers
from reference import Exact, dot

from certifit.statistics.residual import twofold_unit

UNIT = 2.0**-53
SHAPES = [(1, 1), (6, 3), (67, 4), (130, 13), (200, 31)]


def summed(core: Any, X: Any, y: Any, weights: Any, intercept: float, weight: Any = None, **changed: Any) -> Any:
    given = {"scale": np.ones(X.shape[1]), "y_scale": 1.0, "weight_scale": 1.0, "weights": weights}
    given |= {"intercept": intercept, "block_rows": 32, "threads": 2} | changed
    return core.residual(core_rows(X), y, weight, *given.values())


def problem(rng: np.random.Generator, n_rows: int, n_columns: int) -> tuple[Any, ...]:
    """Rows and a state near an exact fit: every residual cancels to a few digits."""
    X, weights = rng.normal(size=(n_rows, n_columns)), rng.normal(size=n_columns)
    y = X @ weights + 0.3 + 1e-13 * rng.normal(size=n_rows)
    return X, y, weights, 0.3


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.slow
def test_the_gradient_has_a_hundred_bits_of_its_terms(core, rng, shape, weighted):
    X, y, weights, intercept = problem(rng, *shape)
    weight = rng.random(shape[0]) if weighted else None
    hi, lo = summed(core, X, y, weights, intercept, weight)[:2]
    exact = Exact(X, y, weight)
    r = exact.residuals([intercept, *weights])
    pulls = [w * e for w, e in zip(exact.weights, r, strict=True)]
    for j in range(shape[1] + 1):
        column = [row[(j + 1) % (shape[1] + 1)] for row in exact.rows]  # the sum of residuals comes last
        # Each residual is known to 2^-100 of its terms, of size about 10.
        size = sum(abs(w * a) for w, a in zip(exact.weights, column, strict=True)) * 10
        error = abs(Fraction(hi[j]) + Fraction(lo[j]) - dot(column, pulls))
        assert error <= Fraction(2.0**-96) * size


@pytest.mark.parametrize("weighted", [False, True])
def test_squares_and_magnitude_are_right_to_rounding(core, rng, weighted):
    X, y, weights, intercept = problem(rng, 150, 6)
    weight = rng.random(150) if weighted else None
    _, _, squares, _, magnitude = summed(core, X, y, weights, intercept, weight)
    exact = Exact(X, y, weight)
    r = exact.residuals([intercept, *weights])
    true = sum(w * e * e for w, e in zip(exact.weights, r, strict=True))
    assert abs(float(Fraction(squares) / true) - 1) < 4 * UNIT
    assert float(Fraction(magnitude) / exact.magnitude([intercept, *weights])) == pytest.approx(1, rel=1e-12)


def test_scaled_units_are_those_of_the_formula(core, rng):
    X, y, weights, intercept = problem(rng, 90, 5)
    scale, weight = 2.0 ** rng.integers(-30, 30, size=5), rng.random(90)
    plain = summed(core, X, y, weights, intercept, weight)
    scaled = summed(
        core, X / scale, y * 2.0**-40, weights, intercept, weight * 2.0**-20,
        scale=scale, y_scale=2.0**40, weight_scale=2.0**20,
    )  # fmt: skip
    for a, b in zip(plain, scaled, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", TYPES)
def test_the_storage_does_not_change_a_bit(core, rng, dtype, layout):
    X, y, weights = integers(rng, 130, 7), rng.normal(size=130), rng.normal(size=7)
    plain, other = (summed(core, Z, y, weights, 0.1) for Z in (X, LAYOUTS[layout](X.astype(dtype))))
    for a, b in zip(plain, other, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("n_columns, density", [(6, 0.4), (40, 0.05), (40, 0.5)])
@pytest.mark.parametrize("form", SPARSE)
def test_sparse_rows_give_the_sums_of_dense_rows(core, rng, form, n_columns, density):
    X, y = integers(rng, 150, n_columns, density), integers(rng, 150, 1)[:, 0]
    weights = rng.integers(-20, 20, size=n_columns).astype(np.float64)
    dense, sparse = (summed(core, Z, y, weights, 0.5) for Z in (X, SPARSE[form](X)))
    for a, b in zip(dense, sparse, strict=True):
        assert np.array_equal(a, b)  # whole numbers: exact either way


@pytest.mark.parametrize("form", ["dense", *SPARSE])
def test_residuals_of_rows_are_rounded_once(core, rng, form):
    X = integers(rng, 90, 40, 0.05)
    y, weights = rng.normal(size=90), rng.normal(size=40)
    rows = core_rows(X if form == "dense" else SPARSE[form](X))
    got = core.residual_rows(rows, y, np.ones(40), 1.0, weights, 0.25, 2)
    exact = Exact(X, y).residuals([0.25, *weights])
    assert got.tolist() == pytest.approx([float(r) for r in exact], rel=2 * UNIT, abs=1e-28)


@pytest.mark.parametrize("scale", [0.5, 2.0**-500])
def test_low_parts_of_weights_count_in_residuals(core, rng, scale):
    X, weights = rng.normal(size=(130, 7)), rng.normal(size=7) / scale
    y, low = X @ (weights * scale), weights * rng.normal(size=7) * 2.0**-53
    arguments = core_rows(X), y, np.full(7, scale), 1.0, weights, 0.0, 2
    moved = core.residual_rows(*arguments) - core.residual_rows(*arguments, low)
    assert moved == pytest.approx(X @ (low * scale), rel=1e-2, abs=1e-18)


@pytest.mark.parametrize("form", ["dense", "Fortran", *SPARSE])
def test_scores_are_the_sums_of_their_row(core, rng, form):
    X, weights = integers(rng, 300, 9, 0.5), rng.normal(size=9)
    rows = {"dense": X, "Fortran": np.asfortranarray(X)}.get(form)
    got = core.scores(core_rows(SPARSE[form](X) if rows is None else rows), weights, 0.5, 3)
    assert got == pytest.approx(X @ weights + 0.5, rel=1e-13, abs=1e-12)


@pytest.mark.parametrize("n_threads", [1, 2, 8])
def test_a_score_does_not_depend_on_the_rows_around_it(core, rng, n_threads):
    X, weights = rng.normal(size=(9000, 7)), rng.normal(size=7)
    all_rows = core.scores(core_rows(X), weights, 0.5, n_threads)
    for row in (0, 1, 63, 64, 4095, 4096, 8999):
        assert core.scores(core_rows(X[row : row + 1]), weights, 0.5, 1)[0] == all_rows[row]


@pytest.mark.parametrize("n_rows", [1, 3, 4, 63, 65, 500])
def test_rows_that_come_by_column_are_those_that_come_row_by_row(core, rng, n_rows):
    """Columns are turned four at a time where they lie side by side, and one by one where they do not."""
    X, weights = rng.integers(0, 100, size=(n_rows, 16)).astype(np.float64), rng.normal(size=16)
    X[:, :4] += 0.3
    valid = np.full(n_rows // 8 + 1, 255, dtype=np.uint8)
    turned = np.asfortranarray(X)
    numbers = [("number", turned[:, j], None, 0, 0.0) for j in range(16)]
    apart = [("number", np.ascontiguousarray(X[:, j]).astype(np.int32), None, 0, 0.0) for j in range(16)]
    with_gaps = [("number", turned[:, j], valid, 0, 0.0) for j in range(16)]
    expected = core.scores([("dense", X)], weights, 0.5, 1)
    for rows in (
        [("dense", turned)],
        numbers,
        [*numbers[:3], ("dense", turned[:, 3:9]), *numbers[9:]],
        [*numbers[:5], *apart[5:7], *with_gaps[7:9], ("dense", X[:, 9:13]), *numbers[13:]],
        [("dense", np.asfortranarray(X[::-1])[::-1][:, :2]), *numbers[2:]],
    ):
        assert np.array_equal(core.scores(rows, weights, 0.5, 2), expected)


@pytest.mark.parametrize("shape", [(130, 37), (4100, 5)])
def test_moved_weights_and_their_fits_have_the_bits_of_two_passes(core, rng, shape):
    n, d = shape
    X, multipliers, less, start = (rng.normal(size=size) for size in (shape, d, n, n))
    weights, hi, lo = core.moved_fits(core_rows(X), multipliers, 0.5, less, start, 4096, 2)
    assert np.array_equal(weights, start + (core.scores(core_rows(X), multipliers, 0.0, 1) * 0.5 - less))
    fits = summed(core, X, weights * 0.5, np.zeros(d), 0.0, block_rows=4096)
    assert np.array_equal(hi, fits[0]) and np.array_equal(lo, fits[1])


@pytest.mark.parametrize("shape", [(1, 1), (7, 70), (8, 64), (37, 133)])
def test_turned_rows_are_the_columns_and_have_their_sizes_and_sums(core, rng, shape):
    X, weights = rng.normal(size=shape), rng.normal(size=shape[0])
    X[-1, -1] = np.nan
    out = np.empty(shape[::-1])
    sizes, sums = core.turn(X, weights, out, 2)
    assert np.array_equal(out, X.T, equal_nan=True) and np.array_equal(sizes, np.abs(X).max(axis=0), equal_nan=True)
    assert sums == pytest.approx(weights @ X, rel=1e-13, abs=1e-13, nan_ok=True)
    for seen in (core.look_at_columns(out, weights, 2), core.turn(X, weights, out, 1)):
        assert np.array_equal(seen[0], sizes, equal_nan=True) and np.array_equal(seen[1], sums, equal_nan=True)
    assert not core.look_at_columns(out, None, 1)[1].any()
    for rows in (X, np.asfortranarray(X)):
        assert np.array_equal(core.column_sizes(core_rows(rows)), sizes, equal_nan=True)


@pytest.mark.parametrize("n_rows, n_columns", [(1, 1), (3, 5), (70, 13), (513, 4)])
def test_shifts_are_means_of_sums_in_the_order_of_the_rows(core, rng, n_rows, n_columns):
    X = rng.normal(size=(n_rows, n_columns)) + 100
    X[:, 0] = 7.3
    means = sum(X[1:] * 0.5, X[0] * 0.5) / n_rows
    means[0] = 7.3 * 0.5
    for rows in (X, np.asfortranarray(X), X[::-1].copy()[::-1], np.hstack([X, X])[:, :n_columns]):
        shifts = core.column_shifts(core_rows(rows), np.full(n_columns, 0.5), False)
        assert np.array_equal(shifts, means)
        assert np.array_equal(core.column_shifts(core_rows(rows), np.full(n_columns, 0.5), True), means)
    far = core.column_shifts(core_rows(np.vstack([X, -X])), np.ones(n_columns), True)
    assert not far.any()  # a spread above a quarter of the mean: x - mean would be rounded
    assert np.array_equal(core.column_sizes(core_rows(X[::-1])), X.max(axis=0))


WHOLE = 2**1100


def whole(x: float) -> int:
    """x times WHOLE, exactly."""
    above, below = x.as_integer_ratio()
    return above * (WHOLE // below)


def nasty(rng: np.random.Generator, case: str, n_columns: int) -> tuple[Any, ...]:
    """A block of 4,096 rows and some more, at a state near an exact fit."""
    X, weights = rng.normal(size=(4133, n_columns)), rng.normal(size=n_columns)
    if case == "scales":
        powers = 2.0 ** rng.integers(-40, 40, size=n_columns)
        X, weights = X * powers, weights / powers
    elif case == "outliers":
        X[rng.random(X.shape) < 0.01] *= 1e9
    elif case == "far rows":  # beyond what a grid is used for, beside rows that it is used for
        X[17], X[4000] = X[17] * 2.0**500, X[4000] * 2.0**-500
    elif case == "zeros":
        X[:, 0], X[:2000] = 0.0, 0.0
    elif case == "cancelling":
        X[:, 1], weights[:2] = X[:, 0] * (1 + 2.0**-40), (2.0**40, -(2.0**40))
    y = X @ weights + 0.3 + 1e-13 * rng.normal(size=len(X))
    return X, y, weights, 0.3


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("case", ["plain", "scales", "outliers", "far rows", "zeros", "cancelling"])
def test_sums_of_long_blocks_are_within_the_unit_that_certificates_count(core, rng, case, weighted):
    X, y, weights, intercept = nasty(rng, case, int(rng.integers(4, 7)))
    weight = rng.integers(0, 3, size=len(y)).astype(float) if weighted else None
    hi, lo, squares, _, magnitude = summed(core, X, y, weights, intercept, weight, block_rows=4096)
    w = [1] * len(y) if weight is None else [int(count) for count in weight]
    columns = [[whole(x) for x in column] for column in [*X.T.tolist(), [1.0] * len(y)]]
    slopes = [whole(v) for v in [*weights.tolist(), intercept]]
    rows = zip(*columns, strict=True)
    r = [whole(v) * WHOLE - sum(map(mul, slopes, row)) for v, row in zip(y.tolist(), rows, strict=True)]
    pulls = [count * residual for count, residual in zip(w, r, strict=True)]
    unit = Fraction(twofold_unit(4096)) * Fraction(float(np.sqrt(magnitude)) * (1 + 1e-12))
    for j, column in enumerate(columns):
        squared = Fraction(sum(count * x * x for count, x in zip(w, column, strict=True)), WHOLE**2)
        norm = Fraction(float(squared) ** 0.5 * (1 + 1e-12))
        true = Fraction(sum(map(mul, column, pulls)), WHOLE**3)
        assert abs(Fraction(hi[j]) + Fraction(lo[j]) - true) <= unit * norm
    root = float(Fraction(sum(map(mul, r, pulls)), WHOLE**4)) ** 0.5
    assert abs(squares**0.5 - root) <= 4 * float(unit) + 4 * UNIT * root


@pytest.mark.parametrize("layout", LAYOUTS)
def test_long_blocks_have_the_same_bits_for_any_threads_and_storage(core, rng, layout):
    X, y, weights, intercept = nasty(rng, "far rows" if layout == "Fortran order" else "outliers", 6)
    one = summed(core, X, y, weights, intercept, block_rows=4096, threads=1)
    other = summed(core, LAYOUTS[layout](X), y, weights, intercept, block_rows=4096, threads=8)
    for a, b in zip(one, other, strict=True):
        assert np.array_equal(a, b)
