"""The direct solver ends at the rounding floor of its state, whatever the condition; its trace says so."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from chunks import batches, memory
from reference import Exact, digits, minimum_norm, ridge, ridge_dual

import certifit as cf
from certifit.data.source import Memory
from certifit.minimise.steps import COLUMNS
from certifit.models.least_squares.dual import DualLeastSquares
from certifit.models.least_squares.solver import MAX_REFINEMENTS, solve
from certifit.models.least_squares.task import LeastSquares


def ill_conditioned(rng: np.random.Generator, spread: float, n: int = 15) -> tuple[Any, Any]:
    """Columns 0 and 2 differ by `spread`: the condition is about 1 / spread."""
    X = rng.normal(size=(n, 3))
    X[:, 2] = X[:, 0] + spread * X[:, 2]
    return X, X @ [1.0, -2.0, 0.5] + rng.normal(size=n)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("spread", [1.0, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10])
def test_every_coefficient_is_the_exact_one_to_its_last_bits(rng, spread, fit_intercept):
    X, y = ill_conditioned(rng, spread)
    run = solve(LeastSquares(Memory(X, y), 0.0, fit_intercept))
    exact = Exact(X, y, fit_intercept=fit_intercept).solution
    got = [run.state.intercept] * fit_intercept + list(run.state.coef)
    size = max(abs(v) for v in exact)
    unit = Fraction(max(2.0**-51, 2.0**-102 / spread**2))  # twofold sums under the square of the condition
    for value, true in zip(got, exact, strict=True):
        # A small coefficient beside large ones is known to the rounding of those.
        assert abs(Fraction(float(value)) - true) <= unit * max(abs(true), size / 8)


@pytest.mark.parametrize("spread", [1e-2, 1e-6])
def test_weights_and_penalties_reach_the_floor_too(rng, spread):
    X, y = ill_conditioned(rng, spread)
    weight = rng.integers(0, 4, size=15).astype(float)
    for alpha in (0.0, 1e-9, 0.5):
        state = solve(LeastSquares(Memory(X, y, weight), alpha, True)).state
        exact = Exact(X, y, weight, alpha).solution
        got = [state.intercept, *state.coef]
        assert min(digits(a, b, 17) for a, b in zip(got, exact, strict=True)) > 13.5


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-6, 0.3, 1e3])
@pytest.mark.parametrize("n, d", [(4, 9), (9, 4)])
def test_both_forms_of_ridge_are_the_same_solution(rng, n, d, alpha, fit_intercept):
    X, y = rng.normal(size=(n, d)) + 2, rng.normal(size=n) + 5
    expected = ridge(X, y, alpha, None, fit_intercept)
    assert ridge_dual(X, y, alpha, None, fit_intercept)[0] == pytest.approx(expected[0], rel=1e-6)
    for form in (LeastSquares, DualLeastSquares):
        state = solve(form(Memory(X, y), alpha, fit_intercept)).state
        exact = Exact(X, y, None, alpha, fit_intercept).solution
        got = [state.intercept] * fit_intercept + list(state.coef)
        assert min(digits(a, b, 17) for a, b in zip(got, exact, strict=True)) > 12
        assert state.coef == pytest.approx(expected[0], rel=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n, d", [(3, 7), (6, 7), (30, 40)])
def test_of_all_exact_fits_the_shortest_is_taken(rng, n, d, fit_intercept):
    X, y = rng.normal(size=(n, d)) + 1, rng.normal(size=n)
    state = solve(DualLeastSquares(Memory(X, y), 0.0, fit_intercept)).state
    coef, intercept = minimum_norm(X, y, None, fit_intercept)
    assert state.coef == pytest.approx(coef, rel=1e-7, abs=1e-10)
    assert state.intercept == pytest.approx(intercept, rel=1e-7, abs=1e-10)
    assert X @ state.coef + state.intercept == pytest.approx(y, abs=1e-12)


@pytest.mark.parametrize("powers", [2.0, 4.0, 8.0])
def test_few_rows_are_met_and_proven_whatever_their_weights(rng, powers):
    for n, d in [(5, 1000), (20, 100), (20, 1000)]:
        X, y, weight = rng.normal(size=(n, d)), rng.normal(size=n), 10.0 ** rng.uniform(-powers, powers, n)
        for last in (np.argmin(weight), np.argmax(weight)):
            at = np.append(np.delete(np.arange(n), last), last)
            model = cf.LinearRegression().fit(X[at], y[at], weight[at])
            assert model.certificate_.holds and model.certificate_.rank == n - 1
            assert model.predict(X) == pytest.approx(y, abs=1e-9)


@pytest.mark.parametrize("powers", [4.0, 8.0])
def test_a_light_copy_of_the_heaviest_of_few_rows_hides_no_relation(rng, powers):
    for first in (True, False):
        X, y = rng.normal(size=(6, 1000)) + 3, rng.normal(size=6)
        weight = 10.0 ** rng.uniform(-powers, 0, 6)
        heavy, light = (5, 0) if first else (0, 5)
        X[light], weight[heavy] = X[heavy], 10.0**powers
        model = cf.LinearRegression().fit(X, y, weight)
        assert model.certificate_.holds and model.certificate_.rank == 4


@pytest.mark.parametrize("weight", [1.0, 1e3, 1e8])
def test_pairs_about_a_row_in_the_middle_of_them_are_as_many_directions(rng, weight):
    half = rng.normal(size=(10, 50))
    X, y, weights = np.vstack([half, -half, np.zeros(50)]), rng.normal(size=21), np.append(np.ones(20), weight)
    model = cf.LinearRegression().fit(X, y, weights)
    assert model.certificate_.holds and model.certificate_.rank == 10
    coef, intercept = minimum_norm(X, y, weights, True)
    assert model.coef_ == pytest.approx(coef, abs=1e-8) and model.intercept_ == pytest.approx(intercept, abs=1e-8)


@pytest.mark.parametrize("ratio", [1.0, 1e4, 1e8])
def test_few_rows_with_columns_of_unlike_size_are_still_fitted(rng, ratio):
    X, y = rng.normal(size=(5, 9)) * np.where(np.arange(9) == 4, ratio, 1.0), rng.normal(size=5)
    state = solve(DualLeastSquares(Memory(X, y), 0.0, True)).state
    assert X @ state.coef + state.intercept == pytest.approx(y, abs=1e-9)


@pytest.mark.parametrize("columns", [[0, 1, 0], [0, 1, 2, 1, 0], [0, 0, 0]])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_of_all_minimisers_the_shortest_is_taken(rng, columns, fit_intercept):
    X = rng.integers(-9, 10, size=(20, 3))[:, columns].astype(float)
    y = rng.normal(size=20)
    state = solve(LeastSquares(Memory(X, y), 0.0, fit_intercept)).state
    assert state.coef == pytest.approx(minimum_norm(X, y, None, fit_intercept)[0], abs=1e-12)


def test_the_trace_has_a_row_an_iteration(rng):
    for form in (LeastSquares, DualLeastSquares):
        history = solve(form(Memory(*ill_conditioned(rng, 1e-5)), 0.01, True)).history
        assert 1 <= len(history) <= MAX_REFINEMENTS
        assert [row["iteration"] for row in history] == list(range(1, len(history) + 1))
        for row in history:
            assert tuple(row) == COLUMNS
            assert row["objective"] >= 0 and row["gap"] >= 0 and row["seconds"] >= 0


def test_the_objective_in_the_trace_is_half_the_mean_square(rng):
    X, y = ill_conditioned(rng, 1.0)
    exact = Exact(X, y)
    history = solve(LeastSquares(Memory(X * 1e30, y * 1e-30), 0.0, True)).history
    assert history[-1]["objective"] == pytest.approx(float(exact.minimum) / 30 * 1e-60, rel=1e-8, abs=0)


def test_a_stream_is_solved_to_the_same_bits(rng):
    X, y = ill_conditioned(rng, 1e-6, n=400)
    whole = solve(LeastSquares(memory(X, y, block_rows=4), 0.0, True)).state
    cut = solve(LeastSquares(batches(X, y, block_rows=4, cuts=[1, 77, 300]), 0.0, True)).state
    assert np.array_equal(whole.coef, cut.coef)
    assert whole.intercept == cut.intercept
