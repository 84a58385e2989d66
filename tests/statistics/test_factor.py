"""Factors of Gram matrices: plain while float64 bears it, twofold beyond; dependent columns and their relations."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from reference import hilbert, pair, solve_exactly

from certifit.statistics.factor import PLAIN_CONDITION, System, plain_factor, twofold_factor


def system(Z: Any, penalty: float = 0.0) -> System:
    matrix = Z.T @ Z
    size = len(matrix)
    return System.of(matrix, np.zeros_like(matrix), np.full(size, penalty), np.sqrt(np.diagonal(matrix)))


def whole(rng: np.random.Generator, n_columns: int) -> Any:
    """Columns of small whole numbers: their Gram matrix is exact."""
    return rng.integers(-9, 10, size=(5 * n_columns, n_columns)).astype(np.float64)


@pytest.mark.parametrize("make", [plain_factor, twofold_factor])
def test_a_factor_solves_its_system(rng, make):
    given = system(whole(rng, 6))
    right = rng.normal(size=(6, 2))
    factor = make(given)
    assert given.matrix @ factor.solve(right) == pytest.approx(right, abs=1e-11)
    assert given.matrix @ factor.solve(right[:, 0]) == pytest.approx(right[:, 0], abs=1e-11)
    assert given.matrix @ factor.inverse == pytest.approx(np.eye(6), abs=1e-11)


@pytest.mark.parametrize("make", [plain_factor, twofold_factor])
def test_units_of_columns_do_not_matter(rng, make):
    Z, unit = whole(rng, 4), 2.0 ** np.array([300, -300, 0, 7])
    one, other = make(system(Z)), make(system(Z * unit))
    assert one.condition == other.condition
    assert np.array_equal(one.inverse, other.inverse * unit * unit[:, None])


def test_a_penalty_is_added_to_the_diagonal(rng):
    Z = whole(rng, 3)
    for make in (plain_factor, twofold_factor):
        inverse = make(system(Z, 2.5)).inverse
        assert inverse @ (Z.T @ Z + 2.5 * np.eye(3)) == pytest.approx(np.eye(3), abs=1e-12)


def test_a_small_penalty_survives_beside_a_large_diagonal():
    a, e = Fraction(2) ** 40, Fraction(2) ** -30
    given = System.of(np.full((2, 2), float(a)), np.zeros((2, 2)), np.full(2, float(e)), np.full(2, 2.0**20))
    factor = twofold_factor(given)
    assert factor.kept.tolist() == [0, 1]
    true = solve_exactly([[a + e, a], [a, a + e]], [Fraction(1), Fraction(0)])
    assert factor.solve(np.array([1.0, 0.0])) == pytest.approx([float(v) for v in true], rel=1e-8)


@pytest.mark.parametrize("n", range(2, 9))
def test_float64_gives_up_where_it_would_lose_eight_digits(n):
    pairs = np.array([[pair(v) for v in row] for row in hilbert(n)])
    hi, lo = np.ascontiguousarray(pairs[..., 0]), np.ascontiguousarray(pairs[..., 1])
    given = System.of(hi, lo, np.zeros(n), np.sqrt(np.diagonal(hi)))
    plain = plain_factor(given)
    true = np.sqrt(np.linalg.cond(hi, 1))
    assert (plain is None) == (true > 3 * PLAIN_CONDITION) or PLAIN_CONDITION / 3 < true < 3 * PLAIN_CONDITION
    exact = solve_exactly(hilbert(n), [Fraction(1)] + [Fraction(0)] * (n - 1))
    for factor in filter(None, (plain, twofold_factor(given))):
        got = factor.solve(np.eye(n)[0])
        assert got == pytest.approx([float(v) for v in exact], rel=1e-8)


def test_the_condition_is_that_of_the_design(rng):
    for spread in (1.0, 1e-2, 1e-5, 1e-9):
        Z = rng.normal(size=(60, 4))
        Z[:, 3] = Z[:, 0] + spread * Z[:, 3]
        matrix = Z.T @ Z
        given = system(Z)
        factor = plain_factor(given) or twofold_factor(given)
        unit = np.linalg.norm(Z, axis=0)
        if spread > 1e-7:  # beyond, the float64 matrix of this test is itself off
            true = np.linalg.cond(Z / unit)
            assert true / 10 < factor.condition < 10 * true
        assert matrix.shape == (4, 4)


def test_dependent_columns_are_set_aside_with_their_relation(rng):
    Z = whole(rng, 3)
    Z = np.column_stack([Z[:, 0], Z[:, 1], 3 * Z[:, 0] - Z[:, 1], Z[:, 2], np.zeros(15), Z[:, 2] / 4])
    factor = twofold_factor(system(Z))
    assert factor.kept.tolist() == [0, 1, 3]
    assert factor.dependent.tolist() == [2, 4, 5]
    assert factor.relations == pytest.approx(np.array([[3, -1, 0], [0, 0, 0], [0, 0, 0.25]]), abs=1e-14)
    solution = factor.solve(np.arange(6.0))
    assert not solution[factor.dependent].any()


def test_a_twofold_factor_needs_twofold_sums(rng):
    matrix = np.eye(2)
    with pytest.raises(ValueError, match="twofold"):
        twofold_factor(System.of(matrix, None, np.zeros(2), np.ones(2)))


def test_no_column_kept_is_a_factor_too():
    factor = twofold_factor(System.of(np.zeros((2, 2)), np.zeros((2, 2)), np.zeros(2), np.zeros(2)))
    assert factor.kept.tolist() == [] and factor.condition == 1.0
    assert not factor.solve(np.ones(2)).any()
