"""Losses and their conjugates against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from certifit.mathematics.losses import Huber

SCALES = [1.0, 0.3, 7.0]
DELTAS = [1.35, 0.5]


def definition(r: np.ndarray, delta: float) -> np.ndarray:
    return np.where(np.abs(r) <= delta, r**2 / 2, delta * np.abs(r) - delta**2 / 2)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("delta", DELTAS)
def test_the_value_is_the_scaled_definition(rng, delta, scale):
    r = 5 * rng.normal(size=500)
    expected = scale * definition(r / scale, delta)
    np.testing.assert_allclose(Huber(delta).value(r, scale), expected, rtol=1e-13)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("delta", DELTAS)
def test_slopes_and_the_band_give_the_derivatives(rng, delta, scale):
    loss, step = Huber(delta), 1e-6
    r = 5 * rng.normal(size=500)
    r = r[np.abs(np.abs(r) - delta * scale) > 10 * step]  # the curvature jumps there
    slope = (loss.value(r + step, scale) - loss.value(r - step, scale)) / (2 * step)
    np.testing.assert_allclose(loss.slope(r, scale), slope, atol=1e-8)
    curvature = (loss.slope(r + step, scale) - loss.slope(r - step, scale)) / (2 * step)
    np.testing.assert_allclose(loss.is_near(r, scale) / scale, curvature, atol=1e-8)
    by_scale = (loss.value(r, scale + step) - loss.value(r, scale - step)) / (2 * step)
    np.testing.assert_allclose(-(loss.slope(r, scale) ** 2) / 2, by_scale, atol=1e-7)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("delta", DELTAS)
def test_the_conjugate_is_the_largest_difference(delta, scale):
    loss = Huber(delta)
    r = np.linspace(-30, 30, 60_001)
    for u in np.linspace(-delta, delta, 11):
        largest = (u * r - loss.value(r, scale)).max()
        assert loss.conjugate(np.array(u), scale) == pytest.approx(largest, abs=1e-5)
    assert loss.conjugate(np.array([1.01 * delta]), scale)[0] == np.inf


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("delta", DELTAS)
def test_the_excess_is_value_plus_conjugate_less_product_and_never_negative(rng, delta, scale):
    loss = Huber(delta)
    r, u = 5 * rng.normal(size=2000), rng.uniform(-delta, delta, size=2000)
    r[:100] = np.linspace(-2 * delta * scale, 2 * delta * scale, 100)
    expected = loss.value(r, scale) + loss.conjugate(u, scale) - u * r
    np.testing.assert_allclose(loss.excess(r, u, scale), expected, atol=1e-12)
    assert (loss.excess(r, u, scale) >= 0).all()
    assert (loss.excess(r, loss.slope(r, scale), scale) <= 1e-15 * np.abs(r)).all()


def test_an_excess_far_below_rounding_of_the_value_is_kept():
    loss = Huber(1.0)
    found = loss.excess(np.array([0.5]), np.array([0.5 - 1e-12]))
    assert found[0] == pytest.approx(5e-25, rel=1e-3)
