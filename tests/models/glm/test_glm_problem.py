"""Claims about models of scores as functions of a vector: derivatives are right in any units; solvers end alike."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import certifit as cf
from certifit.data.source import Memory
from certifit.minimise.minimum import SOLVERS
from certifit.models.glm.softmax_task import SoftmaxTask
from certifit.models.glm.solver import ScoreProblem
from tests.glm_problem import drawn, task_of

SMOOTH = [name for name, solver in SOLVERS.items() if "rows" not in solver.needs]
STOCHASTIC = [name for name in SOLVERS if name not in SMOOTH]


def differences(f, x, h=1e-5):
    return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))])


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("in_user_units", [True, False])
def test_derivatives_are_those_of_the_objective_in_any_units(in_user_units, fit_intercept, rng):
    rows = drawn("poisson", rng, n=80)
    problem = ScoreProblem(task_of("poisson", rows, 0.1, fit_intercept), in_user_units)
    x = problem.start() + rng.normal(size=problem.size) / 30
    np.testing.assert_allclose(problem.from_point(problem.to_point(x)), x, rtol=1e-12, atol=1e-13)
    gradient = problem.value_gradient(x)[1]
    np.testing.assert_allclose(gradient, differences(lambda p: problem.value_gradient(p)[0], x), rtol=1e-5, atol=1e-6)
    matrix = differences(lambda p: problem.value_gradient(p)[1], x)
    np.testing.assert_allclose(problem.hessian(x), matrix, rtol=1e-4, atol=1e-5)


def test_in_the_users_units_x_is_the_weights_and_the_intercept(rng):
    rows = drawn("gamma", rng, n=80)
    task = task_of("gamma", rows, 0.1)
    problem = ScoreProblem(task, in_user_units=True)
    x = rng.normal(size=5) / 10
    state = task.to_state(problem.to_point(x))
    np.testing.assert_allclose(np.append(state.coef, state.intercept), x, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("in_user_units", [True, False])
def test_softmax_derivatives_are_those_of_the_objective(in_user_units, fit_intercept, rng):
    X = rng.normal(size=(60, 2)) + 3
    task = SoftmaxTask(Memory(X, rng.integers(0, 3, 60).astype(float)), 3, 0.1, fit_intercept)
    problem = ScoreProblem(task, in_user_units)
    x = problem.start() + rng.normal(size=problem.size) / 10
    x = (x.reshape(-1, 3) - x.reshape(-1, 3).mean(axis=1, keepdims=True)).ravel()  # of the kind that states are
    np.testing.assert_allclose(problem.from_point(problem.to_point(x)), x, rtol=1e-12, atol=1e-13)
    gradient = problem.value_gradient(x)[1]
    np.testing.assert_allclose(gradient, differences(lambda p: problem.value_gradient(p)[0], x), rtol=1e-5, atol=1e-7)
    way = x - 0.1
    way = (way.reshape(-1, 3) - way.reshape(-1, 3).mean(axis=1, keepdims=True)).ravel()
    slope = (problem.value_gradient(x + 1e-5 * way)[1] - problem.value_gradient(x - 1e-5 * way)[1]) / 2e-5
    np.testing.assert_allclose(problem.hessian(x) @ way, slope, rtol=1e-5, atol=1e-7)


@pytest.fixture
def standardised(rng):
    X = rng.normal(size=(400, 4))
    z = X @ [0.8, -0.5, 0.3, 0.0]
    return X, rng.random(400) < 1 / (1 + np.exp(-z)), rng.poisson(np.exp(z / 2)).astype(float)


@pytest.mark.parametrize("solver", [*SMOOTH, "coordinate-descent"])
def test_every_smooth_solver_ends_at_the_same_minimum(solver, standardised):
    X, labels, counts = standardised
    for model, y in ((cf.LogisticRegression(0.01), labels), (cf.PoissonRegressor(0.01), counts)):
        best = model.fit(X, y).coef_
        found = clone(model).set_params(solver=solver, tol=1e-12)
        np.testing.assert_allclose(found.fit(X, y).coef_, best, atol=1e-5)
        assert found.certificate_.holds
        assert {"iteration", "objective", "gap", "step", "seconds"} <= set(found.history_[-1])


@pytest.mark.parametrize("solver", STOCHASTIC)
def test_solvers_that_learn_row_by_row_come_near_it(solver, standardised):
    X, labels, _ = standardised
    model = cf.LogisticRegression(0.1, solver=solver).fit(X, labels)
    assert model.certificate_.holds
    assert model.certificate_.tolerance == 1e-3


@pytest.mark.parametrize("solver", SMOOTH)
def test_softmax_has_the_same_minimum_by_every_smooth_solver(solver, rng):
    X = rng.normal(size=(150, 2))
    y = rng.integers(0, 3, 150)
    best = cf.LogisticRegression(0.1).fit(X, y)
    found = cf.LogisticRegression(0.1, solver=solver, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(found.predict_proba(X), best.predict_proba(X), atol=1e-5)


def test_a_step_that_is_too_long_is_answered_with_the_largest_stable_one(standardised):
    X, labels, _ = standardised
    with pytest.warns(UserWarning, match="largest") as told:
        cf.LogisticRegression(0.01, solver=cf.GradientDescent(step=100.0)).fit(X, labels)
    assert "2 /" in str(told[0].message) or "stable" in str(told[0].message)


def test_what_a_solver_does_not_take_is_refused(standardised):
    X, labels, _ = standardised
    with pytest.raises(ValueError, match="solver='auto'"):
        cf.LogisticRegression(0.1, l1_ratio=1.0, solver="bfgs").fit(X, labels)
    with pytest.raises(ValueError, match="must be one of 'auto'"):
        cf.LogisticRegression(solver="simplex").fit(X, labels)
