"""Tasks: which form is taken, units there and back, what a penalty means, directions that no row sees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chunks import batches
from reference import Exact, centred

from certifit.data.source import Memory
from certifit.models.least_squares.dual import COUNT_ABOVE, DualLeastSquares, least_squares_task
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.least_squares.task import LeastSquares

SCALES = {"ones": 1.0, "spread": np.array([1e-200, 1.0, 1e9, 1e200]), "large": 1e250, "small": 1e-250}


def rows(rng: np.random.Generator, n: int = 30, d: int = 4) -> tuple[Any, Any]:
    X = rng.normal(size=(n, d)) + rng.normal(size=d)
    return X, X @ rng.normal(size=d) + rng.normal(size=n)


@pytest.mark.parametrize("n, d, form", [(5, 5, LeastSquares), (6, 5, LeastSquares), (4, 5, DualLeastSquares)])
def test_fewer_rows_than_columns_take_the_matrix_of_the_rows(rng, n, d, form):
    assert type(least_squares_task(Memory(*rows(rng, n, d)), 0.0, True)) is form


def test_a_stream_is_counted_only_where_columns_are_many(rng):
    X, y = rows(rng, 6, 8)
    assert type(least_squares_task(batches(X, y, block_rows=4, cuts=[2]), 0.0, True)) is LeastSquares
    X, y = rows(rng, 6, COUNT_ABOVE + 1)
    assert type(least_squares_task(batches(X, y, block_rows=4, cuts=[2]), 0.0, True)) is DualLeastSquares


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_state_survives_the_way_to_the_system_and_back(rng, fit_intercept, scale):
    X, y = rows(rng)
    task = LeastSquares(Memory(X * SCALES[scale], y), 0.0, fit_intercept)
    state = Weights(rng.normal(size=4) / SCALES[scale], float(rng.normal()) * fit_intercept)
    back = task.from_solution(task.to_solution(state))
    assert np.array_equal(back.coef, state.coef)  # powers of two: exact
    assert back.intercept == pytest.approx(state.intercept, rel=1e-13, abs=1e-13)


def test_the_rest_of_a_solution_goes_into_the_intercept_before_it_is_rounded(rng):
    X = rng.normal(size=(30, 1)) + 1e9
    task = LeastSquares(Memory(X, X[:, 0] + 1), 0.0, True)
    solution = task.to_solution(Weights(np.array([1.0]), 1.0))
    moved = task.from_solution(solution, np.array([0.0, 1e-12]))
    assert moved.intercept - 1.0 == pytest.approx(-1e9 * 1e-12, rel=1e-3)


@pytest.mark.parametrize("form", [LeastSquares, DualLeastSquares])
@pytest.mark.parametrize("weighted", [False, True])
def test_alpha_none_is_one_over_the_sum_of_weights(rng, form, weighted):
    X, y = rows(rng, 4, 4)
    weight = np.array([2.0, 0.5, 0, 4]) if weighted else None
    task = form(Memory(X, y, weight), None, True)
    assert task.alpha == pytest.approx(1 / 6.5 if weighted else 1 / 4, rel=1e-15)


@pytest.mark.parametrize("form", [LeastSquares, DualLeastSquares])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_facts_are_those_of_the_target(rng, form, fit_intercept):
    X, y = rows(rng, 5, 4)
    weight = rng.random(5)
    facts = form(Memory(X, y * 1e3 + 7, weight), 0.0, fit_intercept).facts()
    y = y * 1e3 + 7
    mean = np.average(y, weights=weight)
    assert facts["n_rows"] == 5
    assert facts["sum_weight"] == pytest.approx(weight.sum())
    assert facts["target_mean"] == pytest.approx(mean)
    assert facts["target_sd"] == pytest.approx(np.sqrt(np.average((y - mean) ** 2, weights=weight)))


@pytest.mark.parametrize("alpha", [0.0, 0.7])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_both_forms_see_the_same_residuals_and_gradient(rng, fit_intercept, alpha):
    X, y = rows(rng, 8, 3)
    weight = rng.random(8)
    state = Weights(rng.normal(size=3), 0.5 * fit_intercept)
    exact = Exact(X, y, weight)
    r = [float(v) for v in exact.residuals([state.intercept, *state.coef])]
    Z, _, mean, _ = centred(X, y, weight, fit_intercept)
    expected = Z.T @ (np.sqrt(weight) * r) - weight.sum() * alpha * state.coef
    for form in (LeastSquares, DualLeastSquares):
        task = form(Memory(X, y, weight), alpha, fit_intercept)
        at = task.residual_at(state)
        s = task.scaling if form is DualLeastSquares else task.gram.scaling
        about = s.shift if form is LeastSquares else task.mean
        total = at.gradient[0] / s.y_scale / s.weight_scale
        columns = at.gradient[1:] / s.scale / s.y_scale / s.weight_scale
        columns = columns + (about / s.scale - mean) * total  # the same gradient, about the mean
        assert total == pytest.approx(weight @ r)
        assert columns == pytest.approx(expected, abs=1e-12)
        assert at.squares / s.y_scale**2 / s.weight_scale == pytest.approx(weight @ np.square(r))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n, d", [(20, 5), (4, 9)])
def test_null_directions_change_no_row(rng, n, d, fit_intercept):
    X = rng.integers(-9, 10, size=(n, d)).astype(float)
    X[:, 2] = 2 * X[:, 0] - X[:, 1]
    task = least_squares_task(Memory(X, rng.normal(size=n)), 0.0, fit_intercept)
    directions, intercepts = task.null_space()
    rank = np.linalg.matrix_rank(X - X.mean(axis=0) * fit_intercept)
    assert task.rank == rank
    assert directions.shape == (d, d - rank)
    assert np.abs(X @ directions + intercepts).max() < 1e-12
    assert np.linalg.matrix_rank(directions) == d - rank


def test_under_a_penalty_nothing_is_free(rng):
    X = np.ones((6, 2))
    for form in (LeastSquares, DualLeastSquares):
        directions, _ = form(Memory(X, np.arange(6.0)), 0.1, True).null_space()
        assert directions.shape == (2, 0)


def test_a_second_look_at_a_state_costs_no_pass(rng, monkeypatch):
    X, y = rows(rng)
    task = LeastSquares(Memory(X, y), 0.0, True)
    state = Weights(rng.normal(size=4), 0.1)
    first = task.residual_at(state)
    monkeypatch.setattr("certifit.models.least_squares.task.residual", None)
    near = Weights(state.coef * (1 + 1e-12), state.intercept)
    assert task.residual_at(state).squares == pytest.approx(first.squares)
    assert task.residual_at(near).squares == pytest.approx(first.squares)
    with pytest.raises(TypeError):
        task.residual_at(Weights(state.coef * 1.1, state.intercept))


def test_a_step_without_a_pass_is_as_right_as_it_says_whatever_the_offset(rng):
    for power in range(6, 14):
        offset, weight = 10.0**power, rng.normal()
        X, y = np.column_stack([offset + rng.integers(-5, 6, size=12), rng.normal(size=12)]), rng.normal(size=12)
        task, other = (LeastSquares(Memory(X, y), 0.0, True) for _ in range(2))
        state = Weights(np.array([weight, 1.0]), rng.normal() - offset * weight)
        near = weight * (1 + 1e-7 * rng.normal())
        moved = Weights(np.array([near, 1.0]), state.intercept - offset * (near - weight))
        task.residual_at(state)
        found, wanted = task.residual_at(moved), other.residual_at(moved)
        assert task._moved is not None
        error = found.unit * np.sqrt(found.magnitude) * np.append(np.sqrt(12), task.gram.norms)
        assert (np.abs(found.gradient - wanted.gradient) <= found.rounding + wanted.rounding + 2 * error).all()


def test_a_task_without_a_target_is_refused(rng):
    with pytest.raises(ValueError, match="target"):
        DualLeastSquares(Memory(rng.normal(size=(2, 3)), None), 0.0, True)
