"""minimize: a user's own function, its derivatives checked, and what is known of the answer in words."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning

import certifit as cf
from certifit.minimise.function import difference_jacobian
from tests.minimise.functions import CLASSICS
from tests.minimise.smooth_functions import complex_gradient, logistic

# The lowest value is taken at several places, or the place is flat: no method has to end where scipy does.
SEVERAL_PLACES = {"himmelblau", "powell_singular", "box", "styblinski_tang", "dixon_price"}
METHODS = ["conjugate-gradient", "bfgs", "lbfgs", "newton"]
PAIRS = [(name, method) for name in CLASSICS for method in METHODS]
PAIRS.remove(("powell_singular", "conjugate-gradient"))  # no curvature at the minimum: ten thousand steps


def peer(f, x0):
    """scipy's best of its own methods, run to the end with exact gradients."""
    options = {"gtol": 1e-12}
    runs = [
        optimize.minimize(lambda x: inside(f, x), x0, jac=complex_gradient(f), method="BFGS", options=options),
        optimize.minimize(lambda x: inside(f, x), x0, jac=complex_gradient(f), method="CG", options=options),
    ]
    return min(runs, key=lambda run: run.fun)


def inside(f, x):
    value = f(x)
    return value if np.isfinite(value) else np.inf


@pytest.mark.filterwarnings("ignore:.*encountered")  # scipy tries points outside the domain
@pytest.mark.parametrize("name, method", PAIRS)
@pytest.mark.slow
def test_scipy_finds_no_lower_value(name, method):
    f, x0 = CLASSICS[name]
    gradient = complex_gradient(f)
    hessian = (lambda x: difference_jacobian(gradient, x)) if method == "newton" else None
    found = cf.minimize(f, x0, method, gradient, hessian, tol=1e-10)
    assert found.converged
    theirs = peer(f, np.array(x0))
    assert found.value <= theirs.fun + 1e-10 * abs(theirs.fun) + 1e-16 * abs(f(np.array(x0)))
    if name not in SEVERAL_PLACES:
        np.testing.assert_allclose(found.x, theirs.x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", sorted(set(CLASSICS) - {"brown", "powell_singular"}))
def test_without_a_gradient_differences_do(name):
    f, x0 = CLASSICS[name]
    exact = cf.minimize(f, x0, gradient=complex_gradient(f))
    found = cf.minimize(f, x0)
    assert found.converged and found.by_differences and not exact.by_differences
    assert "central differences" in str(found) and "central differences" not in str(exact)
    assert found.value == pytest.approx(exact.value, rel=1e-8, abs=1e-10 * abs(f(np.array(x0))))


def test_auto_takes_newton_with_a_hessian_and_quasi_newton_without():
    f, g, H = (lambda x: x @ x), (lambda x: 2 * x), (lambda x: 2 * np.eye(len(x)))
    assert cf.minimize(f, [1.0, 2.0], gradient=g, hessian=H).method == "newton"
    assert cf.minimize(f, [1.0, 2.0], gradient=g).method == "bfgs"
    assert cf.minimize(f, np.ones(1001), gradient=g).method == "lbfgs"
    assert cf.minimize(f, [1.0, 2.0], cf.GradientDescent(step=0.1), g).method == "gradient-descent"


def test_a_number_goes_in_and_comes_out():
    found = cf.minimize(lambda x: x - math.log(x), 3.0, gradient=lambda x: 1 - 1 / x, hessian=lambda x: 1 / x**2)
    assert isinstance(found.x, float) and isinstance(found.gradient, float)
    assert found.x == pytest.approx(1, abs=1e-12)


def test_math_errors_outside_the_domain_turn_a_step_back():
    """math.log of a negative number raises, 1 / 0 raises, math.exp overflows: all mean outside."""
    f = lambda x: 1 / x - math.log(2 - x) + math.exp(800 * x - 1600) + math.sqrt(2 - x)  # noqa: E731
    found = cf.minimize(f, 1.99, tol=1e-6)
    assert found.converged and 0 < found.x < 2


def test_other_errors_of_the_function_come_through():
    with pytest.raises(ValueError, match="my own"):
        cf.minimize(lambda x: (_ for _ in ()).throw(ValueError("my own")), 1.0)


def test_a_matrix_goes_in_and_comes_out():
    M = np.arange(6.0).reshape(2, 3)
    found = cf.minimize(lambda A: np.sum((A - M) ** 2), np.zeros((2, 3)), gradient=lambda A: 2 * (A - M))
    assert found.x.shape == found.gradient.shape == (2, 3)
    np.testing.assert_allclose(found.x, M, atol=1e-7)


@pytest.mark.parametrize("wrong", [0, 3, 7])
def test_the_wrong_entry_of_a_gradient_is_named(wrong):
    problem = logistic()

    def gradient(w):
        g = problem.gradient(w).copy()
        g[wrong] *= 1.01
        return g

    with pytest.raises(ValueError, match=rf"gradient is not the derivative of f: entry {wrong} is .* differences of f"):
        cf.minimize(problem.value, np.full(8, 0.3), gradient=gradient)
    with pytest.warns(ConvergenceWarning):
        cf.minimize(problem.value, np.full(8, 0.3), gradient=lambda w: -problem.gradient(w), check=False)


@pytest.mark.parametrize("has_gradient", [True, False])
def test_the_wrong_entry_of_a_hessian_is_named(has_gradient):
    problem = logistic()

    def hessian(w):
        H = problem.hessian(w).copy()
        H[2, 5] += 0.05
        return H

    gradient = problem.gradient if has_gradient else None
    with pytest.raises(ValueError, match=r"hessian is not the derivative of .*gradient: entry \[2, 5\] is "):
        cf.minimize(problem.value, np.full(8, 0.3), gradient=gradient, hessian=hessian)


@pytest.mark.parametrize("name", CLASSICS)
def test_right_derivatives_pass_the_check(name):
    f, x0 = CLASSICS[name]
    gradient = complex_gradient(f)
    cf.minimize(f, x0, gradient=gradient, hessian=lambda x: difference_jacobian(gradient, x))


def test_newton_without_a_hessian_is_told():
    with pytest.raises(ValueError, match=r"Solver 'newton' needs a Hessian and this function has none\. Use "):
        cf.minimize(lambda x: x**2, 1.0, "newton")
    with pytest.raises(ValueError, match=r"Solver 'sgd' needs rows and this function has none\. Use "):
        cf.minimize(lambda x: x**2, 1.0, "sgd")


def test_a_saddle_is_not_passed_off_as_a_minimum():
    with pytest.warns(ConvergenceWarning, match="NOT a minimum"):
        found = cf.minimize(lambda x: x[0] ** 2 - x[1] ** 2 + x[1] ** 4, [1.0, 0.0], "bfgs")
    assert not found.converged and found.is_saddle and found.curvature == pytest.approx(-2, rel=1e-3)


def test_an_endless_fall_is_told():
    with pytest.warns(ConvergenceWarning, match="unbounded below: along the direction"):
        found = cf.minimize(lambda x: x[0] - 2 * x[1], [0.0, 0.0])
    np.testing.assert_allclose(found.direction, np.array([-1, 2]) / np.sqrt(5), atol=1e-6)


def test_divergence_warns_with_the_largest_stable_step():
    with pytest.warns(ConvergenceWarning, match=r"must be below 2 / \(largest curvature\) = 0.0999"):
        found = cf.minimize(lambda x: 10 * x[0] ** 2 + x[1] ** 2, [1.0, 1.0], cf.GradientDescent(step=0.11))
    assert 0.0999 < found.largest_step <= 0.1  # from values alone: differences of differences


def test_what_is_known_is_said():
    problem = logistic()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cf.minimize(problem.value, problem.start, gradient=problem.gradient, hessian=problem.hessian)
    assert "Local estimate, no proof" in str(found)
    assert found.curvature == pytest.approx(np.linalg.eigvalsh(problem.hessian(problem.minimum))[0], rel=1e-6)
    rough = cf.minimize(problem.value, problem.start, gradient=problem.gradient, hessian=problem.hessian, tol=1e-3)
    assert 0 <= rough.decrement <= 1e-3 * rough.value


def test_the_decrement_estimates_the_excess():
    problem = logistic()
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        found = cf.minimize(problem.value, problem.start, "newton", problem.gradient, problem.hessian, max_iter=4)
    excess = found.value - problem.value(problem.minimum)
    assert found.decrement == pytest.approx(excess, rel=0.05)


def test_a_valley_of_minima_is_said_to_be_one():
    found = cf.minimize(lambda x: (x[0] + x[1] - 1) ** 2, [0.0, 0.0], gradient=lambda x: np.full(2, 2 * (x.sum() - 1)))
    assert found.converged and "may not be unique" in str(found)


def test_a_callback_and_limits_work():
    rows, f = [], lambda x: x[0] ** 4 + x[1] ** 2
    with pytest.warns(ConvergenceWarning, match="callback"):
        cf.minimize(f, [3.0, 1.0], callback=lambda row, x: rows.append(x) or len(rows) == 3)
    assert len(rows) == 3
    with pytest.warns(ConvergenceWarning, match="max_time"):
        cf.minimize(f, [3.0, 1.0], max_time=1e-9)
    found = cf.minimize(f, [3.0, 1.0], tol=0, step_tol=0.1)
    assert "step_tol" in found.reason and found.history_[-1]["step"] <= 0.1


def test_the_function_never_sees_the_solvers_own_array():
    def spoiled(x):
        value = float(x @ x)
        x[:] = np.nan
        return value

    found = cf.minimize(spoiled, [1.0, 2.0])
    np.testing.assert_allclose(found.x, 0, atol=1e-6)


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"x0": "a"}, TypeError, "must be a number or an array of numbers"),
        ({"x0": [1j, 2.0]}, TypeError, "must be a number or an array of numbers"),
        ({"f": lambda x: None}, TypeError, "f must give numbers. Got None"),
        ({"f": lambda x: "much"}, TypeError, "f must give numbers. Got 'much'"),
        ({"x0": []}, ValueError, "at least one number"),
        ({"x0": [1.0, np.inf]}, ValueError, "Entry 1 is not"),
        ({"method": "adam"}, ValueError, "method must be one of 'auto', .*'newton', or an instance"),
        ({"method": 3}, TypeError, "name or an instance of a solver"),
        ({"gradient": lambda x: np.zeros(3)}, ValueError, r"gradient must give an array of shape \(2,\). Got \(3,\)"),
        ({"f": lambda x: x}, ValueError, r"f must give one number. Got shape \(2,\)"),
        ({"f": lambda x: np.nan}, ValueError, "The function is nan at the start"),
        ({"tol": -1}, ValueError, "tol must be a number >= 0"),
    ],
)
def test_what_is_wrong_is_told(arguments, error, message):
    with pytest.raises(error, match=message):
        cf.minimize(**({"f": lambda x: x @ x, "x0": [1.0, 2.0]} | arguments))
