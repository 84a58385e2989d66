"""find_zero: Newton for one equation and for many."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning

import certifit as cf

SCALAR = {
    "root of two": (lambda x: x**2 - 2, lambda x: 2 * x, 1.0, math.sqrt(2)),
    "cosine": (lambda x: math.cos(x) - x, lambda x: -math.sin(x) - 1, 1.0, 0.7390851332151607),
    "log": (lambda x: math.log(x) + x, lambda x: 1 / x + 1, 5.0, 0.5671432904097838),
    "arctan, far": (math.atan, lambda x: 1 / (1 + x * x), 20.0, 0.0),  # undamped Newton diverges from 1.4 on
    "exp": (lambda x: math.exp(x) - 1e-3, math.exp, -1.0, math.log(1e-3)),
    "Kepler": (lambda x: x - 0.9 * math.sin(x) - 1.0, lambda x: 1 - 0.9 * math.cos(x), 0.0, None),
}


def circle(x):
    return np.array([x[0] ** 2 + x[1] ** 2 - 1, x[0] - x[1]])


def circle_jacobian(x):
    return np.array([[2 * x[0], 2 * x[1]], [1.0, -1.0]])


@pytest.mark.parametrize("has_jacobian", [True, False])
@pytest.mark.parametrize("name", SCALAR)
def test_a_scalar_zero_is_found(name, has_jacobian):
    f, slope, x0, zero = SCALAR[name]
    found = cf.find_zero(f, x0, slope if has_jacobian else None)
    assert found.converged and isinstance(found.x, float)
    zero = optimize.brentq(f, -10, 10, xtol=1e-15) if zero is None else zero
    assert found.x == pytest.approx(zero, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("has_jacobian", [True, False])
def test_a_system_is_solved(has_jacobian):
    found = cf.find_zero(circle, [1.0, 0.2], circle_jacobian if has_jacobian else None)
    assert found.converged
    np.testing.assert_allclose(found.x, np.sqrt([0.5, 0.5]), rtol=1e-12)
    assert found.rank == 2 and "regular" in str(found)


def test_broydens_tridiagonal_system_of_fifty_is_solved_as_by_scipy():
    def f(x):
        left, right = np.append(0, x[:-1]), np.append(x[1:], 0)
        return (3 - 2 * x) * x - left - 2 * right + 1

    found = cf.find_zero(f, -np.ones(50))
    theirs = optimize.fsolve(f, -np.ones(50), xtol=1e-14)
    np.testing.assert_allclose(found.x, theirs, rtol=1e-10)


@pytest.mark.parametrize(
    "f, jacobian, x0, zero",
    [
        (SCALAR["root of two"][0], SCALAR["root of two"][1], 1.2, math.sqrt(2)),
        (circle, circle_jacobian, [0.8, 0.5], np.sqrt([0.5, 0.5])),
    ],
)
def test_digits_double_every_step(f, jacobian, x0, zero):
    """The next Newton step is the error: e_(k+1) / e_k^2 is the same at every step."""
    found = cf.find_zero(f, x0, jacobian)
    steps = [row["gap"] for row in found.history_]
    near = [(a, b) for a, b in pairwise(steps) if 1e-7 < a < 0.2 and b > 1e-15]
    constants = [b / a**2 for a, b in near]
    assert len(near) >= 2 and max(constants) / min(constants) < 2
    assert np.linalg.norm(np.asarray(found.x) - zero) < 1e-14


def test_a_double_zero_is_found_slowly():
    found = cf.find_zero(lambda x: (x - 1) ** 2, 3.0, lambda x: 2 * (x - 1))
    assert found.converged and abs(found.x - 1) < 1e-6
    steps = np.array([row["step"] for row in found.history_[2:12]])
    np.testing.assert_allclose(steps[1:] / steps[:-1], 0.5, rtol=1e-6)  # linear: the error halves


def test_a_singular_system_with_zeros_is_told_to_be_singular():
    found = cf.find_zero(lambda x: np.array([x[0] + x[1], 2 * x[0] + 2 * x[1]]), [1.0, 0.2])
    assert found.converged and found.rank == 1
    assert "singular to rounding (rank 1 of 2)" in str(found)
    np.testing.assert_allclose(found.x, [0.4, -0.4], atol=1e-9)  # the nearest of the zeros


def test_no_derivative_at_the_start_is_told():
    with pytest.warns(ConvergenceWarning, match="The Jacobian is zero there"):
        found = cf.find_zero(lambda x: x**2 - 1, 0.0, lambda x: 2 * x)
    assert not found.converged and found.rank == 0


def test_a_function_without_a_zero_is_told():
    with pytest.warns(ConvergenceWarning):
        found = cf.find_zero(lambda x: x**2 + 1, 1.5)
    assert not found.converged
    assert found.residual >= 1


def test_max_iter_is_kept_and_told():
    with pytest.warns(ConvergenceWarning, match="after 2 steps"):
        found = cf.find_zero(lambda x: x**2 - 2, 100.0, max_iter=2)
    assert len(found.history_) == 3


def test_a_wrong_jacobian_is_named():
    with pytest.raises(ValueError, match=r"jacobian is not the derivative of f: entry \[1, 0\] is 7"):
        cf.find_zero(circle, [1.0, 0.2], lambda x: np.array([[2 * x[0], 2 * x[1]], [7.0, -1.0]]))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"f": lambda x: np.zeros(3)}, "as many numbers as x has, 2. Got 3"),
        ({"f": lambda x: np.full(2, np.inf)}, "not finite at x0"),
        ({"jacobian": lambda x: np.zeros(3)}, "must give 2 x 2 numbers"),
        ({"tol": -1}, "tol must be a number >= 0"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1"),
    ],
)
def test_what_is_wrong_is_told(arguments, message):
    with pytest.raises(ValueError, match=message):
        cf.find_zero(**({"f": circle, "x0": [1.0, 0.2]} | arguments))


def test_the_way_is_drawn():
    pytest.importorskip("matplotlib").use("Agg")
    shown = cf.find_zero(lambda x: x**2 - 2, 1.0).plot()
    assert shown.ax_.get_yscale() == "log"


@pytest.mark.parametrize("f, x0", [(lambda x: (1e-200 * x) ** 2 - 0.0, 1.0), (lambda x: (1 + x) - 1, 1e-17)])
def test_a_value_that_underflows_is_not_called_exactly_zero(f, x0):
    zero = cf.find_zero(f, x0)
    assert zero.converged and zero.value == 0 and zero.x != 0
    assert zero.reason == "Converged: f(x), as float64 computes it, is 0."
