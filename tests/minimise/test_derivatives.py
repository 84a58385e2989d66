"""Claims about derivatives of a user's function: exact where a complex step is possible, else by differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

import certifit as cf


def test_a_complex_step_is_exact_to_rounding(rng):
    x = rng.normal(size=4)
    A = rng.normal(size=(4, 4))
    found = cf.derivatives(lambda v: np.exp(v @ A @ v / 10), x)
    value = np.exp(x @ A @ x / 10)
    slope = (A + A.T) @ x / 10
    assert found.method == "complex step" and found.value == pytest.approx(value)
    np.testing.assert_allclose(found.gradient, value * slope, rtol=1e-14)
    np.testing.assert_allclose(found.hessian, value * (np.outer(slope, slope) + (A + A.T) / 10), rtol=1e-7, atol=1e-9)
    assert found.jacobian is None


@pytest.mark.parametrize("f", [math.exp, lambda x: abs(x) ** 3, lambda x: np.real(x) ** 3 + 0 * x])
def test_what_takes_no_complex_numbers_or_is_not_analytic_goes_by_differences(f):
    found = cf.derivatives(f, -0.7)
    expected = (math.exp(-0.7), 3 * 0.49, -3 * 0.49)
    assert found.method == "central differences"
    assert min(abs(abs(found.gradient) - abs(slope)) for slope in expected) < 1e-8
    assert found.hessian.shape == (1, 1)


def test_a_vector_has_a_jacobian_and_an_array_keeps_its_shape():
    found = cf.derivatives(lambda x: np.array([x[0] * x[1], np.sin(x[0]), x[1] ** 3]), [2.0, 3.0])
    np.testing.assert_allclose(found.jacobian, [[3, 2], [np.cos(2), 0], [0, 27]], rtol=1e-14)
    assert found.gradient is None and found.hessian is None
    X = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(cf.derivatives(lambda Z: np.sum(Z**2), X).gradient, 2 * X, rtol=1e-14)


def test_the_point_and_the_function_are_checked():
    for x in ([], [np.nan]):
        with pytest.raises(ValueError, match="x must be finite numbers"):
            cf.derivatives(np.sum, x)
    with pytest.raises(ValueError, match="f is not finite at x"):
        cf.derivatives(np.log, -1.0)
