"""Claims about chord steps: they end at the minimum that plain Newton finds, at the price of few Hessians."""

from __future__ import annotations

import numpy as np
import pytest

import certifit as cf
from certifit.minimise.steps import Steps
from certifit.models.glm import newton
from certifit.statistics.factor import Curvature
from tests.glm_problem import LOSSES, Rows, drawn, task_of
from tests.reference import glm_newton


@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("name", LOSSES)
def test_the_minimum_is_that_of_plain_newton(name, alpha, rng):
    rows = drawn(name, rng)
    state = newton.solve(task_of(name, rows, alpha), 100).state
    coef, b = glm_newton(LOSSES[name], rows.X, rows.y, alpha, rows.weight, rows.offset)
    np.testing.assert_allclose(state.coef, coef, rtol=1e-9, atol=1e-11)
    assert state.intercept == pytest.approx(b, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("name", LOSSES)
def test_without_an_intercept_it_is_zero_and_the_gradient_vanishes(name, rng):
    rows = drawn(name, rng)
    task = task_of(name, rows, 0.01, fit_intercept=False)
    state = newton.solve(task, 100).state
    assert state.intercept == 0.0
    z = rows.offset + rows.X @ state.coef
    share = rows.weight / rows.weight.sum()
    gradient = rows.X.T @ (share * LOSSES[name].slope(rows.y, z)) + 0.01 * state.coef
    size = np.abs(rows.X).T @ (share * np.abs(LOSSES[name].slope(rows.y, z)))
    assert (np.abs(gradient) <= 1e-11 * size).all()


def test_a_sample_gives_the_start_where_rows_are_many_and_the_minimum_stays(rng):
    rows = drawn("logistic", rng, n=20_000)
    task = task_of("logistic", rows)
    start = newton.sampled_start(task, 100)
    assert start[:-1].any()
    few = drawn("logistic", rng, n=300)
    assert not newton.sampled_start(task_of("logistic", few), 100)[:-1].any()
    coef, _ = glm_newton(LOSSES["logistic"], rows.X, rows.y, 0.0, rows.weight, rows.offset)
    np.testing.assert_allclose(newton.solve(task, 100).state.coef, coef, rtol=1e-9)


def test_two_hessians_of_all_rows_are_enough_from_a_sample(rng, monkeypatch):
    rows = drawn("poisson", rng, n=40_000)
    task = task_of("poisson", rows)
    start = newton.sampled_start(task, 100)
    asked = []
    evaluate = task.evaluate
    monkeypatch.setattr(
        task, "evaluate", lambda point, hessian=False: asked.append(hessian) or evaluate(point, hessian)
    )
    newton.descend(task, start, 100, Steps())
    assert sum(asked) <= 2
    assert len(asked) <= 6


def test_the_objective_never_rises_and_the_trace_counts(rng):
    rows = drawn("gamma", rng)
    history = newton.solve(task_of("gamma", rows), 100).history
    objective = np.array([row["objective"] for row in history])
    assert (np.diff(objective) <= 1e-12 * objective[0]).all()
    assert [row["iteration"] for row in history] == list(range(len(history)))
    assert (np.diff([row["seconds"] for row in history]) >= 0).all()


def test_a_far_start_descends_where_plain_newton_would_overflow(rng):
    n = 200
    X = rng.normal(size=(n, 2)) * 3
    y = rng.poisson(np.exp(np.clip(X @ np.array([1.5, -1.0]), -20, 6))).astype(float)
    rows = Rows(X, y, np.ones(n), np.zeros(n))
    task = task_of("poisson", rows)
    point = newton.descend(task, np.array([-40.0, 40.0, 5.0]), 200, Steps())
    best = newton.solve(task, 100).state
    np.testing.assert_allclose(task.to_state(point).coef, best.coef, rtol=1e-8)


def test_step_tol_stops_on_a_short_step(rng):
    rows = drawn("logistic", rng)
    assert len(newton.solve(task_of("logistic", rows), 100, step_tol=1e-2).history) < len(
        newton.solve(task_of("logistic", rows), 100).history
    )


def test_weights_that_run_away_are_left_after_some_steps():
    X = np.arange(8.0)[:, None]
    rows = Rows(X, (X[:, 0] > 3).astype(float), np.ones(8), np.zeros(8))
    run = newton.solve(task_of("logistic", rows), 1000)
    assert len(run.history) < 100
    assert np.isfinite(run.state.coef).all()


def test_a_flat_direction_has_no_step():
    matrix = np.array([[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 5.0]])
    curvature = Curvature(matrix)
    assert curvature.n_flat == 1
    np.testing.assert_allclose(curvature.solve(np.array([1.0, 1.0, 1.0])), [0.25, 0.25, 0.2], rtol=1e-12)
    np.testing.assert_allclose(curvature.solve(np.array([1.0, -1.0, 0.0])), 0.0, atol=1e-12)


def test_curvature_solves_and_inverts(rng):
    A = rng.normal(size=(6, 6))
    matrix = A @ A.T * np.outer(np.geomspace(1e-3, 1e3, 6), np.geomspace(1e-3, 1e3, 6))
    curvature = Curvature(matrix)
    np.testing.assert_allclose(matrix @ curvature.solve(np.ones(6)), 1.0, rtol=1e-6)
    np.testing.assert_allclose(curvature.inverse @ matrix, np.eye(6), atol=1e-6)
    assert curvature.n_flat == 0


@pytest.mark.parametrize("options", [{}, {"alpha": 1e-3, "l1_ratio": 1.0}], ids=["free", "lasso"])
def test_a_sample_without_an_event_in_a_category_does_not_lead_astray(options, rng):
    """Every 20th row gives the start. There the category has none, its weight runs off, and back it is far."""
    at = np.arange(20_000) % 40
    X = np.column_stack([np.isin(at, [0, 10]), rng.normal(size=len(at))]).astype(float)
    y = rng.gamma(0.5, 2 * np.exp(1 + X[:, 1])) * (rng.random(len(at)) < 0.3)
    y[at == 0] = 0.0
    y[at == 10] *= 50.0
    model = cf.GLM(cf.families.Tweedie(power=1.7), **options).fit(X, y)
    assert model.history_[0]["objective"] > 1e4 * model.history_[-1]["objective"]  # the start was far off
    assert model.certificate_.holds


@pytest.mark.filterwarnings("ignore:NOT certified")
@pytest.mark.parametrize("y", [3.0, 2.0, 0.7])
@pytest.mark.parametrize("n", [1, 6])
@pytest.mark.parametrize("link", ["sqrt", "log"])
@pytest.mark.parametrize("penalty", [{}, {"alpha": 1.0, "l1_ratio": 1.0}])
def test_an_objective_that_is_all_rounding_ends_the_descent(penalty, link, n, y):
    X = np.arange(1.0, n + 1)[:, None]
    model = cf.GLM("poisson", link, **penalty).fit(X, np.full(n, y))
    assert len(model.history_) < 20
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-14)
