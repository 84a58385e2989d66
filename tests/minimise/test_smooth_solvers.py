"""Every smooth solver finds the minimum, and says what it met where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certifit.minimise.gradient_descent import ConjugateGradient, GradientDescent
from certifit.minimise.minimum import SOLVERS, check_needs, name_of, solver_of
from certifit.minimise.newton import BFGS, LBFGS, Newton
from certifit.minimise.problem import Stop
from certifit.minimise.steps import COLUMNS
from tests.minimise.smooth_functions import FUNCTIONS, Function, barrier, double_well, logistic, quadratic, rosenbrock

SMOOTH = {name: solver for name, solver in SOLVERS.items() if "rows" not in solver.needs}
FIRST_ORDER = [name for name in SMOOTH if name != "newton"]
FAST = [name for name in SMOOTH if name != "gradient-descent"]


PAIRS = [(name, function) for name in SMOOTH for function in FUNCTIONS]
PAIRS.remove(("gradient-descent", "rosenbrock"))  # some ten thousand steps along the valley


@pytest.mark.parametrize("name, function", PAIRS)
def test_the_known_minimum_is_found(name, function):
    problem = FUNCTIONS[function]()
    found = SMOOTH[name].minimise(problem, problem.start, Stop(tol=1e-8, max_iter=5000))
    assert found.converged, found.reason
    np.testing.assert_allclose(found.x, problem.minimum, atol=2e-6)
    assert found.value == problem.value(found.x)
    np.testing.assert_array_equal(found.gradient, problem.gradient(found.x))


@pytest.mark.parametrize("solver", [ConjugateGradient(), BFGS(), LBFGS(memory=20), Newton()])
@pytest.mark.slow
def test_condition_numbers_of_a_million_are_met(solver):
    problem = quadratic(20, 1e6)
    found = solver.minimise(problem, problem.start, Stop(tol=1e-12, max_iter=20_000))
    excess = found.value - problem.value(problem.minimum)
    assert excess <= 1e-12 * abs(problem.value(problem.minimum))


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_the_unit_of_the_function_does_not_matter(name, scale):
    problem = quadratic(6, 30, scale=scale)
    found = SMOOTH[name].minimise(problem, problem.start, Stop(max_iter=5000))
    assert found.converged
    np.testing.assert_allclose(found.x, problem.minimum, rtol=1e-5)


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("scale", [1e-60, 1e-9, 1e9, 1e60])
def test_the_unit_of_x_does_not_matter(name, scale):
    plain = quadratic(6, 30)
    problem = Function(
        lambda x: plain.value(x / scale),
        lambda x: plain.gradient(x / scale) / scale,
        lambda x: plain.hessian(x / scale) / scale / scale,
        np.full(6, 0.3) * scale,
        plain.minimum * scale,
    )
    found = SMOOTH[name].minimise(problem, problem.start, Stop(max_iter=5000))
    assert found.converged
    np.testing.assert_allclose(found.x, problem.minimum, rtol=1e-5)


@pytest.mark.parametrize("name", SMOOTH)
def test_a_step_out_of_the_domain_is_turned_back(name):
    problem = barrier(1e-8)  # the first Newton step of log goes to 2e-8, the first gradient step far past it
    found = SMOOTH[name].minimise(problem, problem.start, Stop(max_iter=5000))
    assert found.converged
    assert abs(found.x[0] - 1) < 1e-4


@pytest.mark.parametrize("name", SMOOTH)
def test_the_trace_starts_at_the_start_and_ends_at_the_result(name):
    problem = logistic()
    found = SMOOTH[name].minimise(problem, problem.start, Stop(max_iter=5000))
    first, last = found.trace[0], found.trace[-1]
    assert [row["iteration"] for row in found.trace] == list(range(len(found.trace)))
    assert first["objective"] == problem.value(problem.start) and first["step"] == 0
    assert last["objective"] == found.value
    assert all(tuple(row) == COLUMNS for row in found.trace)
    assert (np.diff([row["seconds"] for row in found.trace]) >= 0).all()


@pytest.mark.parametrize("name", SMOOTH)
def test_objectives_never_rise_by_more_than_rounding(name):
    problem = rosenbrock(4)
    found = SMOOTH[name].minimise(problem, problem.start, Stop(max_iter=300))
    objectives = np.array([row["objective"] for row in found.trace])
    assert (np.diff(objectives) <= 1e-12 * np.abs(objectives[1:])).all()


@pytest.mark.parametrize("name", SMOOTH)
def test_a_known_gap_decides_when_to_stop(name):
    class Known(Function):
        def gap(self, x, value, gradient):
            return value - self.value(self.minimum)

    plain = quadratic(8, 50)
    problem = Known(plain.value, plain.gradient, plain.own_hessian, plain.start, plain.minimum)
    for tol in (1e-2, 1e-6):
        found = SMOOTH[name].minimise(problem, problem.start, Stop(tol=tol, max_iter=5000))
        assert found.converged and "gap" in found.reason
        *before, last = (row["gap"] / abs(row["objective"]) for row in found.trace[1:])
        assert last <= tol and all(gap > tol for gap in before)


@pytest.mark.parametrize("name", SMOOTH)
def test_a_function_without_end_is_told_with_its_direction(name):
    problem = Function(
        lambda x: x[1] ** 2 - 3 * x[0], lambda x: [-3.0, 2 * x[1]], lambda x: np.diag([0.0, 2.0]), [0.0, 0.0], [0, 0]
    )
    found = SMOOTH[name].minimise(problem, problem.start, Stop())
    assert not found.converged
    assert "unbounded below" in found.reason and "no minimum" in found.reason
    np.testing.assert_allclose(found.direction, [1.0, 0.0], atol=1e-12)


def test_a_fall_that_only_slows_down_is_hinted_at():
    """-log x has no minimum, and no end that numbers show."""
    problem = Function(lambda x: -np.log(x[0]), lambda x: -1 / x, lambda x: [[1 / x[0] ** 2]], [1.0], [np.inf])
    found = Newton().minimise(problem, problem.start, Stop(max_iter=40))
    assert not found.converged and "there may be no minimum" in found.reason


@pytest.mark.parametrize("name", FIRST_ORDER)
def test_a_start_at_the_minimum_is_the_end(name):
    problem = quadratic(3, 10)
    flat = Function(lambda x: 5.0, lambda x: np.zeros(3), None, problem.start, problem.start)
    found = SMOOTH[name].minimise(flat, flat.start, Stop())
    assert found.converged and len(found.trace) == 1


@pytest.mark.parametrize("name", SMOOTH)
def test_a_start_near_the_minimum_ends_at_the_rounding_and_not_at_max_iter(name):
    problem = logistic()
    found = SMOOTH[name].minimise(problem, problem.minimum + 1e-9, Stop(max_iter=20_000))
    assert "max_iter" not in found.reason
    np.testing.assert_allclose(found.x, problem.minimum, atol=1e-8)


def test_newton_leaves_a_saddle_and_falls_to_a_minimum():
    problem = double_well()
    found = Newton().minimise(problem, problem.start, Stop())
    assert found.converged
    np.testing.assert_allclose(np.abs(found.x), problem.minimum, atol=1e-8)


@pytest.mark.parametrize("start", [[0.0, 0.0], [0.0, 1e-12], [1e-9, -1e-9]])
def test_newton_started_at_a_saddle_leaves_it(start):
    found = Newton().minimise(double_well(), np.array(start), Stop())
    assert found.converged
    np.testing.assert_allclose(np.abs(found.x), double_well().minimum, atol=1e-7)


def test_newton_on_a_saddle_without_a_floor_says_so():
    problem = Function(lambda x: x[0] ** 2 - x[1] ** 2, lambda x: [2 * x[0], -2 * x[1]], None, [1.0, 0.0], [0, 0])
    problem.own_hessian = lambda x: np.diag([2.0, -2.0])
    found = Newton().minimise(problem, problem.start, Stop())
    assert "unbounded below" in found.reason
    np.testing.assert_allclose(np.abs(found.direction), [0, 1], atol=1e-8)


def test_newton_on_a_flat_valley_takes_the_shortest_way():
    """(x + y - 1)^2 has a line of minima; the nearest to (0, 0) is (1/2, 1/2)."""
    H = np.full((2, 2), 2.0)
    problem = Function(
        lambda x: (x.sum() - 1) ** 2, lambda x: np.full(2, 2 * (x.sum() - 1)), lambda x: H, [0, 0], [0.5, 0.5]
    )
    found = Newton().minimise(problem, problem.start, Stop())
    assert found.converged
    np.testing.assert_allclose(found.x, problem.minimum, atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 5, 12, 30])
def test_conjugate_gradient_ends_in_d_steps_on_a_quadratic(d):
    problem = quadratic(d, 20, seed=d)
    found = ConjugateGradient().minimise(problem, problem.start, Stop(tol=0.0, max_iter=d))
    np.testing.assert_allclose(found.x, problem.minimum, rtol=1e-7, atol=1e-7)


def test_conjugate_gradient_is_the_linear_method_on_a_quadratic():
    problem = quadratic(6, 50)
    A, b = problem.hessian(problem.start), -problem.gradient(np.zeros(6))
    x, r = np.zeros(6), b.copy()
    d, objectives = r.copy(), [0.0]
    for _ in range(4):
        step = (r @ r) / (d @ A @ d)
        x, after = x + step * d, r - step * A @ d
        d, r = after + (after @ after) / (r @ r) * d, after
        objectives.append(problem.value(x))
    found = ConjugateGradient().minimise(problem, problem.start, Stop(max_iter=4))
    np.testing.assert_allclose([row["objective"] for row in found.trace], objectives, rtol=1e-8)


def test_bfgs_learns_the_inverse_hessian_of_a_quadratic():
    """With a memory of all pairs L-BFGS makes the steps of BFGS from the same first guess."""
    problem = quadratic(4, 10)
    few, all_pairs = (LBFGS(memory).minimise(problem, problem.start, Stop(tol=1e-10)) for memory in (1, 100))
    assert all_pairs.converged and few.converged
    assert len(all_pairs.trace) < len(few.trace)


@pytest.mark.parametrize("solver", [GradientDescent(step=2.0), BFGS(), Newton()])
def test_step_tol_ends_a_run(solver):
    problem = logistic()
    found = solver.minimise(problem, problem.start, Stop(tol=0.0, step_tol=1e-3, max_iter=5000))
    assert found.converged and "step_tol" in found.reason
    *before, last = (row["step"] for row in found.trace[1:])
    assert last <= 1e-3 and all(step > 1e-3 for step in before)


@pytest.mark.parametrize("name", SMOOTH)
def test_max_iter_is_kept_and_told(name):
    problem = rosenbrock()
    found = SMOOTH[name].minimise(problem, problem.start, Stop(max_iter=3))
    assert not found.converged and len(found.trace) == 4
    assert "after 3 iterations (max_iter)" in found.reason


@pytest.mark.parametrize("name", SMOOTH)
def test_max_time_is_kept_and_told(name):
    problem = rosenbrock()
    found = SMOOTH[name].minimise(problem, problem.start, Stop(max_time=1e-9))
    assert not found.converged and len(found.trace) == 2 and "(max_time)" in found.reason


@pytest.mark.parametrize("name", SMOOTH)
def test_ctrl_c_goes_through(name):
    problem, calls = rosenbrock(), 0
    value = problem.value

    def interrupted(x):
        nonlocal calls
        calls += 1
        if calls == 5:
            raise KeyboardInterrupt
        return value(x)

    problem.value = interrupted
    with pytest.raises(KeyboardInterrupt):
        SMOOTH[name].minimise(problem, problem.start, Stop())
    assert calls == 5


@pytest.mark.parametrize("name", SMOOTH)
def test_a_callback_sees_every_row_and_can_stop(name):
    rows = []

    def seen(row, x):
        rows.append((dict(row), x.copy()))
        return row["iteration"] == 2

    problem = rosenbrock()
    found = SMOOTH[name].minimise(problem, problem.start, Stop(callback=seen))
    assert [row["iteration"] for row, _ in rows] == [1, 2] and "callback" in found.reason and not found.converged
    assert all(row["objective"] == problem.value(x) for row, x in rows)


def test_a_hessian_that_is_not_there_is_told():
    with pytest.raises(ValueError, match=r"'newton' needs a Hessian .* Give one, or use solver 'bfgs'"):
        Newton().minimise(rosenbrock().without_hessian(), np.zeros(2), Stop())


def test_the_table_tells_what_a_solver_lacks():
    check_needs(Newton(), {"gradient", "hessian"}, "a function")
    with pytest.raises(ValueError, match=r"'newton' needs a Hessian and 'hinge' has none. Use 'gradient-descent' or"):
        check_needs(Newton(), {"gradient"}, "'hinge'")
    assert name_of(LBFGS(memory=3)) == "lbfgs" and solver_of("bfgs") == BFGS()
    with pytest.raises(ValueError, match=r"must be one of 'gradient-descent', .* Got 'adam'"):
        solver_of("adam")
    with pytest.raises(TypeError, match="name or an instance"):
        solver_of(3)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Stop(tol=-1), "tol must be a number >= 0. Got -1"),
        (lambda: Stop(step_tol=np.nan), "step_tol must be a number >= 0"),
        (lambda: Stop(max_iter=2.5), "max_iter must be an integer >= 0. Got 2.5"),
        (lambda: Stop(max_time=0), "max_time must be a number of seconds > 0"),
        (lambda: LBFGS(memory=0), "memory must be an integer >= 1. Got 0"),
        (lambda: BFGS().minimise(rosenbrock(), np.zeros(3), Stop()), r"vector of 2 numbers. Got shape \(3,\)"),
        (lambda: BFGS().minimise(rosenbrock(), np.array([0, np.nan]), Stop()), "Entry 1 is not"),
        (lambda: BFGS().minimise(barrier(), np.array([-1.0]), Stop()), "is nan at the start"),
    ],
)
def test_what_is_wrong_is_told(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@settings(max_examples=60, deadline=None)
@given(
    d=st.integers(1, 8),
    seed=st.integers(0, 10_000),
    condition=st.floats(1, 1e4),
    scale=st.floats(-30, 30),
    name=st.sampled_from(FAST),
)
def test_any_convex_quadratic_is_minimised(d, seed, condition, scale, name):
    problem = quadratic(d, condition, seed, 10.0**scale)
    found = SMOOTH[name].minimise(problem, problem.start, Stop(max_iter=5000))
    excess = found.value - problem.value(problem.minimum)
    assert excess <= 1e-7 * abs(problem.value(problem.minimum))
