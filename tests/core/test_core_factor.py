"""Twofold Cholesky and solve against exact arithmetic: Hilbert matrices, dependent columns; both builds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from reference import digits, hilbert, pair, rational, solve_exactly


def twofold(matrix: Any) -> tuple[Any, Any]:
    pairs = np.array([[pair(value) for value in row] for row in matrix])
    return np.ascontiguousarray(pairs[..., 0]), np.ascontiguousarray(pairs[..., 1])


def exactly(hi: Any, lo: Any) -> list[list[Fraction]]:
    return [[Fraction(a) + Fraction(b) for a, b in zip(*rows, strict=True)] for rows in zip(hi, lo, strict=True)]


# Condition of the Hilbert matrix of size n: 10^(1.5 n - 1.5). What 104 bits leave of 31 digits.
@pytest.mark.parametrize("n, least", [(2, 29), (4, 25), (6, 22), (8, 19), (10, 16), (12, 13), (14, 10)])
def test_hilbert_systems_keep_what_twofold_numbers_can(core, n, least):
    hi, lo = twofold(hilbert(n))
    matrix = exactly(hi, lo)  # the problem as given, roundings and all
    kept, _, (upper, low) = core.twofold_cholesky(hi, lo, np.zeros(n), 2)
    assert kept == list(range(n))
    right = np.ones((n, 1))
    x, x_low = core.twofold_solve(upper, low, right, np.zeros((n, 1)), 2)
    exact = solve_exactly(matrix, rational(np.ones(n)))
    for got, rest, true in zip(x[:, 0], x_low[:, 0], exact, strict=True):
        error = abs(Fraction(got) + Fraction(rest) - true) / abs(true)
        assert error == 0 or error < Fraction(10) ** -least


@pytest.mark.parametrize("n", [1, 5, 9])
def test_the_factor_times_itself_is_the_matrix(core, rng, n):
    Z = rng.integers(-9, 10, size=(3 * n, n)).astype(np.float64)
    matrix = Z.T @ Z
    _, _, (upper, low) = core.twofold_cholesky(matrix, np.zeros((n, n)), np.zeros(n), 1)
    assert not np.tril(upper, -1).any() and not np.tril(low, -1).any()
    U = exactly(upper, low)
    for j in range(n):
        for k in range(n):
            product = sum((U[i][j] * U[i][k] for i in range(n)), Fraction(0))
            assert abs(product - Fraction(matrix[j, k])) <= Fraction(2.0**-98) * Fraction(matrix.max())


def test_many_right_hand_sides_are_solved_at_once(core, rng):
    Z = rng.integers(-9, 10, size=(30, 7)).astype(np.float64)
    matrix, right = Z.T @ Z, rng.normal(size=(7, 11))
    _, _, upper = core.twofold_cholesky(matrix, np.zeros((7, 7)), np.zeros(7), 1)
    x, _ = core.twofold_solve(*upper, right, np.zeros((7, 11)), 1)
    for column in range(11):
        exact = solve_exactly(rational(matrix), rational(right[:, column]))
        assert min(digits(got, true, 17) for got, true in zip(x[:, column], exact, strict=True)) > 15.5


def test_a_column_in_the_span_of_those_before_it_is_left_out(core, rng):
    Z = rng.integers(-9, 10, size=(30, 4)).astype(np.float64)
    Z = np.column_stack([Z[:, 0], Z[:, 1], Z[:, 0] + 2 * Z[:, 1], Z[:, 2], Z[:, 3], Z[:, 2] - Z[:, 3]])
    matrix = Z.T @ Z
    kept, pivots, (upper, _) = core.twofold_cholesky(matrix, np.zeros((6, 6)), np.full(6, 1e-20), 1)
    assert kept == [0, 1, 3, 4]
    assert abs(pivots[[2, 5]]).max() < 1e-20 < pivots[[0, 1, 3, 4]].min()
    assert upper.shape == (4, 6)


def test_a_pivot_is_the_squared_distance_to_the_span(core, rng):
    Z = rng.normal(size=(40, 5))
    _, pivots, _ = core.twofold_cholesky(Z.T @ Z, np.zeros((5, 5)), np.zeros(5), 1)
    for j in range(5):
        _, (square,), *_ = np.linalg.lstsq(Z[:, :j], Z[:, j], rcond=None) if j else (0, [Z[:, 0] @ Z[:, 0]])
        assert pivots[j] == pytest.approx(square, rel=1e-10)


@pytest.mark.parametrize("n", [40, 300])  # 300: rows are updated by several threads
def test_the_number_of_threads_does_not_change_a_bit(core, rng, n):
    Z = rng.normal(size=(n + 50, n))
    matrix, low, floor = Z.T @ Z, 1e-17 * rng.normal(size=(n, n)), np.zeros(n)
    low += low.T
    one = core.twofold_cholesky(matrix, low, floor, 1)
    right = rng.normal(size=(n, 3))
    solved = core.twofold_solve(*one[2], right, np.zeros((n, 3)), 1)
    for n_threads in (2, 8):
        other = core.twofold_cholesky(matrix, low, floor, n_threads)
        assert other[0] == one[0]
        assert all(np.array_equal(a, b) for a, b in zip([one[1], *one[2]], [other[1], *other[2]], strict=True))
        again = core.twofold_solve(*one[2], right, np.zeros((n, 3)), n_threads)
        assert all(np.array_equal(a, b) for a, b in zip(solved, again, strict=True))


def test_a_matrix_of_no_columns_has_an_empty_factor(core):
    kept, pivots, (upper, _) = core.twofold_cholesky(np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0), 2)
    assert kept == [] and pivots.shape == (0,) and upper.shape == (0, 0)


@pytest.mark.parametrize("n, n_shifts", [(1, 1), (2, 3), (7, 8), (12, 19), (5, 0)])
def test_a_tridiagonal_system_is_solved_for_every_shift(core, rng, n, n_shifts):
    beside, right = rng.normal(size=n - 1), rng.normal(size=n)
    diagonal = 0.01 + np.append(np.abs(beside), 0.0) + np.append(0.0, np.abs(beside))
    shifts = np.abs(rng.normal(size=n_shifts))
    solutions, condition = core.shifted_solutions(diagonal, beside, right, shifts)
    assert solutions.shape == (n_shifts, n)
    conditions = [0.0]
    for shift, solution in zip(shifts, solutions, strict=True):
        matrix = np.diag(diagonal + shift) + np.diag(beside, 1) + np.diag(beside, -1)
        exact = np.array([float(x) for x in solve_exactly(rational(matrix), rational(right))])
        assert np.abs(solution - exact).max() <= 1e-12 * np.abs(exact).max()
        conditions.append(np.linalg.cond(matrix, 1))
    assert condition == pytest.approx(max(conditions), rel=1e-10)


def test_a_tridiagonal_matrix_that_is_not_positive_has_no_solutions(core):
    diagonal, ones = np.array([1.0, 2.0, 1.0]), np.ones(3)
    assert core.shifted_solutions(diagonal, np.array([1.0, 1.0]), ones, np.array([1.0])) is not None
    for wrong in (diagonal - 1, np.array([1.0, np.nan, 1.0]), np.array([1.0, np.inf, 1.0])):
        assert core.shifted_solutions(wrong, np.array([1.0, 1.0]), ones, np.array([1.0, 0.0])) is None
