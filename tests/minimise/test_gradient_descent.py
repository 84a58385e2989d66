"""Gradient descent with a fixed step: the course's formula, its schedules, and what too large a step is told."""

from __future__ import annotations

import re

import numpy as np
import pytest

from certifit.minimise.gradient_descent import GradientDescent, end_curvatures, largest_stable_step, rounded_down
from certifit.minimise.problem import Stop
from tests.minimise.smooth_functions import Function, logistic, quadratic


@pytest.mark.parametrize(
    "schedule, factor",
    [
        ("constant", lambda k: 1.0),
        ("inverse", lambda k: 1 / k),
        ("inverse-root", lambda k: 1 / np.sqrt(k)),
        (lambda k: 0.9**k, lambda k: 0.9**k),
    ],
)
def test_every_step_is_that_of_the_formula(schedule, factor):
    problem = quadratic(4, 10)
    seen = []
    stop = Stop(tol=0.0, max_iter=25, callback=lambda row, x: seen.append(x.copy()))
    GradientDescent(step=0.05, schedule=schedule).minimise(problem, problem.start, stop)
    x = problem.start
    for k, shown in enumerate(seen, start=1):
        x = x - 0.05 * factor(k) * problem.gradient(x)
        np.testing.assert_allclose(shown, x, rtol=1e-13)
    assert len(seen) == 25


@pytest.mark.parametrize("has_hessian", [True, False])
@pytest.mark.parametrize("d, condition", [(1, 1.0), (3, 7.0), (10, 100.0), (40, 3000.0)])
def test_a_step_above_two_over_the_largest_curvature_diverges_and_is_told_the_bound(d, condition, has_hessian):
    problem = quadratic(d, condition)
    problem = problem if has_hessian else problem.without_hessian()
    largest = np.linalg.eigvalsh(quadratic(d, condition).hessian(problem.start))[-1]
    found = GradientDescent(step=1.01 * 2 / largest).minimise(problem, problem.start, Stop(max_iter=20_000))
    assert not found.converged and "diverges" in found.reason
    assert (1 - 1e-6) * 2 / largest < found.largest_step <= 2 / largest
    told = float(re.search(r"2 / \(largest curvature\) = ([\d.e+-]+)\. ", found.reason)[1])
    assert told == found.largest_step
    assert found.value <= problem.value(problem.start)  # the best point seen, not the last


@pytest.mark.parametrize("d, condition", [(1, 1.0), (3, 7.0), (10, 100.0)])
def test_a_step_just_below_the_bound_converges(d, condition):
    problem = quadratic(d, condition)
    largest = np.linalg.eigvalsh(problem.hessian(problem.start))[-1]
    found = GradientDescent(step=0.99 * 2 / largest).minimise(problem, problem.start, Stop(max_iter=20_000))
    assert found.converged and found.largest_step is None
    np.testing.assert_allclose(found.x, problem.minimum, atol=1e-5)


def test_a_step_at_the_bound_does_not_converge_and_is_told_so():
    problem = Function(lambda x: x[0] ** 2, lambda x: 2 * x, None, [3.0], [0.0])
    found = GradientDescent(step=1.0).minimise(problem, problem.start, Stop(max_iter=200))
    assert not found.converged
    assert 1 - 1e-9 < found.largest_step <= 1 and "must be below 2 / (largest" in found.reason


@pytest.mark.parametrize("step", [1e3, 1e30, 1e200])
def test_a_step_that_leaves_the_numbers_ends_at_the_best_point_seen(step):
    problem = quadratic(5, 10)
    found = GradientDescent(step=step).minimise(problem, problem.start, Stop())
    assert not found.converged and "diverges" in found.reason
    assert np.isfinite(found.x).all() and found.largest_step == pytest.approx(0.2, rel=1e-6)


def test_a_step_too_large_for_logistic_regression_is_told_the_bound_at_the_best_point():
    problem = logistic()
    found = GradientDescent(step=1e3).minimise(problem, problem.start, Stop(max_iter=200))
    assert not found.converged
    largest = np.linalg.eigvalsh(problem.hessian(found.x))[-1]
    assert (1 - 1e-6) * 2 / largest < found.largest_step <= 2 / largest


def test_the_largest_stable_step_is_never_above_the_true_one(rng):
    """With a Hessian and with gradients alone; cut to ten digits."""
    for d in (1, 2, 3, 5, 8) * 8:
        curvatures = np.sort(10 ** rng.uniform(-3, 3, d))
        axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
        A = (axes * curvatures) @ axes.T
        x = rng.normal(size=d)
        for has_hessian in (True, False):
            H = (lambda x, A=A: A) if has_hessian else None
            problem = Function(lambda x, A=A: x @ A @ x / 2, lambda x, A=A: A @ x, H, x, np.zeros(d))
            found = largest_stable_step(problem, x)
            true = 2 / np.linalg.eigvalsh(A)[-1]
            assert (1 - 1e-6) * true < found <= true * (1 + 1e-14)
            assert found == float(f"{found:.10g}")
    assert rounded_down(0.19999999999, 3) == 0.199 and rounded_down(2.0, 3) == 2.0


def test_a_small_step_that_runs_out_of_iterations_is_told_that_it_is_stable():
    problem = quadratic(5, 10)
    found = GradientDescent(step=1e-4).minimise(problem, problem.start, Stop(max_iter=50))
    assert not found.converged and "is below the largest stable one" in found.reason


def test_out_of_the_domain_is_told():
    problem = Function(lambda x: x[0] - np.log(x[0]), lambda x: 1 - 1 / x, lambda x: [[1 / x[0] ** 2]], [0.5], [1.0])
    found = GradientDescent(step=5.0).minimise(problem, np.array([3.0]), Stop())
    assert not found.converged and "left the numbers or the domain" in found.reason


def test_with_a_decaying_step_the_first_may_be_too_large():
    problem = quadratic(4, 4)
    found = GradientDescent(step=0.75, schedule="inverse-root").minimise(problem, problem.start, Stop(max_iter=5000))
    assert found.converged


@pytest.mark.parametrize("has_hessian", [True, False])
@pytest.mark.parametrize("d", [1, 2, 7, 60, 150])
def test_end_curvatures_are_the_end_eigenvalues(d, has_hessian, rng):
    A = rng.normal(size=(d, d))
    A = A + A.T
    problem = Function(
        lambda x: x @ A @ x / 2, lambda x: A @ x, (lambda x: A) if has_hessian else None, np.ones(d), [0]
    )
    values = np.linalg.eigvalsh(A)
    np.testing.assert_allclose(end_curvatures(problem, np.ones(d)), values[[0, -1]], rtol=1e-8, atol=1e-8)


def test_where_nothing_curves_every_step_is_stable():
    flat = Function(lambda x: x.sum(), lambda x: np.ones(3), lambda x: np.zeros((3, 3)), np.zeros(3), np.zeros(3))
    assert largest_stable_step(flat, np.zeros(3)) == np.inf


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"step": 0}, "step must be a number > 0, or None"),
        ({"step": np.inf}, "step must be a number > 0, or None"),
        ({"step": 1, "schedule": "cosine"}, "schedule must be one of 'constant', 'inverse', 'inverse-root'"),
        ({"schedule": "inverse"}, "needs a step"),
    ],
)
def test_what_is_wrong_is_told(arguments, message):
    with pytest.raises(ValueError, match=message):
        GradientDescent(**arguments)


def test_a_schedule_that_gives_no_step_is_told():
    with pytest.raises(ValueError, match=r"must give positive numbers. Got -1.0 at iteration 2"):
        GradientDescent(0.1, lambda k: 3.0 - 2 * k).minimise(quadratic(2, 2), np.zeros(2), Stop())
