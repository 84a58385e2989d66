"""How fast each solver is near its end: measured, not only claimed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from certifit.minimise.gradient_descent import GradientDescent
from certifit.minimise.newton import BFGS, LBFGS, Newton
from certifit.minimise.problem import Stop
from tests.minimise.smooth_functions import barrier, logistic, quadratic, rosenbrock, scalar


def errors(solver, problem, start, **stop):
    """|x_k - minimum|, step by step."""
    seen = [start]
    found = solver.minimise(problem, start, Stop(callback=lambda row, x: seen.append(x.copy()), **stop))
    return np.array([np.linalg.norm(x - problem.minimum) for x in seen]), found


@pytest.mark.parametrize(
    "problem, start",
    [
        (logistic(seed=1), np.zeros(8)),
        (logistic(seed=2), np.full(8, 0.2)),
        (rosenbrock(), np.array([1.05, 1.1])),
        (barrier(), np.array([0.7])),
    ],
)
def test_newton_doubles_the_digits_every_step(problem, start):
    """log e_(k+1) / log e_k -> 2 where e_k is small: e_(k+1) = c e_k^2."""
    error, _ = errors(Newton(), problem, start, tol=0.0, max_iter=30)
    near = [(a, b) for a, b in pairwise(error) if 1e-7 < a < 0.1 and b > 1e-14]
    constants = [b / a**2 for a, b in near]
    assert len(near) >= 2
    assert max(constants) / min(constants) < 3  # the same c at every step
    (a, b), (c, d) = near[-2:]
    assert np.log(d / c) / np.log(b / a) == pytest.approx(2, abs=0.25)


def test_newton_is_cubic_where_the_third_derivative_vanishes():
    """cosh at its minimum: e_(k+1) = e_k^3 / 3, better than promised."""
    error, _ = errors(Newton(), scalar(), np.array([2.3]), tol=0.0)
    np.testing.assert_allclose(error[2] / error[1] ** 3, 1 / 3, rtol=0.01)


def test_newton_takes_full_steps_near_the_end_so_one_step_ends_a_quadratic():
    problem = quadratic(8, 1e4)
    error, _ = errors(Newton(), problem, problem.start, max_iter=1)
    assert error[1] < 1e-9 * error[0]


def test_the_newton_decrement_in_the_trace_is_the_excess_near_the_end():
    problem = logistic()
    found = Newton().minimise(problem, problem.start, Stop(tol=0.0, max_iter=30))
    least = problem.value(problem.minimum)
    for row in found.trace:
        excess = row["objective"] - least
        if 1e-12 < excess < 1e-3:
            assert row["gap"] == pytest.approx(excess, rel=0.05)


def test_gradient_descent_is_linear_with_the_rate_of_the_theory():
    """At step 2 / (smallest + largest curvature): (condition - 1) / (condition + 1) a step."""
    problem = quadratic(2, 9.0)
    error, _ = errors(GradientDescent(step=2 / (1 + 9.0)), problem, problem.start, max_iter=60, tol=1e-14)
    ratios = error[21:41] / error[20:40]
    np.testing.assert_allclose(ratios, (9 - 1) / (9 + 1), rtol=1e-6)


@pytest.mark.parametrize("solver", [BFGS(), LBFGS()])
def test_quasi_newton_is_superlinear_and_gradient_descent_is_not(solver):
    problem = logistic(d=5)
    fast, _ = errors(solver, problem, problem.start, tol=1e-14, max_iter=200)
    slow, _ = errors(GradientDescent(), problem, problem.start, tol=1e-14, max_iter=200)
    rate = {}
    for name, error in (("fast", fast), ("slow", slow)):
        inside = error[(error > 1e-12) & (error < 1)]
        half = len(inside) // 2
        rate[name] = [(inside[b] / inside[a]) ** (1 / (b - a)) for a, b in ((0, half), (half, len(inside) - 1))]
    assert rate["fast"][1] < 0.8 * rate["fast"][0]  # faster the nearer
    assert rate["slow"][1] > 0.8 * rate["slow"][0]  # as slow as before
    assert len(fast) < len(slow) / 2


def test_the_better_solver_needs_fewer_steps():
    problem = logistic(n=500, d=15, alpha=1e-3)
    steps = {}
    for solver in (GradientDescent(), BFGS(), Newton()):
        found = solver.minimise(problem, problem.start, Stop(tol=1e-8, max_iter=10_000))
        assert found.converged
        steps[type(solver).__name__] = len(found.trace)
    assert steps["Newton"] < steps["BFGS"] < steps["GradientDescent"]
