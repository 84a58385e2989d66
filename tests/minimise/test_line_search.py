"""The line search: its step meets the strong Wolfe conditions wherever a step does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from certifit.minimise.line_search import DECREASE, search
from certifit.minimise.problem import Point

CURVES = {
    "parabola": (lambda t: (t - 1) ** 2, lambda t: 2 * (t - 1)),
    "far parabola": (lambda t: (t / 1e12 - 1) ** 2, lambda t: 2e-12 * (t / 1e12 - 1)),
    "near parabola": (lambda t: (t * 1e12 - 1) ** 2, lambda t: 2e12 * (t * 1e12 - 1)),
    "log": (lambda t: t - 3 * np.log1p(t), lambda t: 1 - 3 / (1 + t)),
    "edge": (lambda t: -t - 0.1 * np.log(1 - t), lambda t: -1 + 0.1 / (1 - t)),  # NaN from t = 1 on
    "wall": (lambda t: np.exp(50 * t) - 1e3 * t, lambda t: 50 * np.exp(50 * t) - 1e3),
    "waves": (lambda t: -t + 0.9 * np.sin(7 * t) + 0.01 * t**2, lambda t: -1 + 6.3 * np.cos(7 * t) + 0.02 * t),
    "quartic": (lambda t: (t - 2) ** 4, lambda t: 4 * (t - 2) ** 3),
    "flat": (lambda t: -np.tanh(t) + 1e-3 * t**2, lambda t: -1 / np.cosh(min(t, 300)) ** 2 + 2e-3 * t),
}


def line(value, slope):
    def evaluate(x):
        with np.errstate(all="ignore"):
            return Point(x, float(value(x[0])), np.array([float(slope(x[0]))]))

    return evaluate


@pytest.mark.parametrize("first", [1e-12, 1e-3, 1.0, 1e3, 1e12])
@pytest.mark.parametrize("curvature", [0.9, 0.1, 0.01])
@pytest.mark.parametrize("name", CURVES)
def test_the_step_meets_both_conditions(name, curvature, first):
    evaluate = line(*CURVES[name])
    at = evaluate(np.zeros(1))
    assume_falling = at.gradient[0] < 0
    direction = np.array([1.0]) if assume_falling else np.array([-1.0])
    found = search(evaluate, at, direction, first, curvature)
    assert found.ended == "step"
    start, slope = float(at.gradient @ direction), float(found.point.gradient @ direction)
    assert found.point.value <= at.value + DECREASE * found.t * start
    assert abs(slope) <= curvature * abs(start)


@settings(max_examples=150, deadline=None)
@given(
    least=st.floats(-8, 8), depth=st.floats(-8, 8), first=st.floats(-10, 10), offset=st.sampled_from([0.0, 1.0, -1e3])
)
def test_any_parabola_is_met_in_few_trials(least, depth, first, offset):
    """depth (t / m - 1)^2: the exact search ends at its minimum m."""
    m, size = 10.0**least, 10.0**depth
    assume(size > 1e-6 * abs(offset))
    calls = 0
    inner = line(lambda t: size * (t / m - 1) ** 2 + offset, lambda t: 2 * size / m * (t / m - 1))

    def evaluate(x):
        nonlocal calls
        calls += 1
        return inner(x)

    found = search(evaluate, inner(np.zeros(1)), np.ones(1), 10.0**first, 0.1, is_exact=True)
    assert found.ended == "step" and calls <= 14
    assert found.t == pytest.approx(m, rel=1e-4)


def test_uphill_is_refused():
    evaluate = line(*CURVES["parabola"])
    at = evaluate(np.zeros(1))
    assert search(evaluate, at, np.array([-1.0]), 1.0).ended == "none"


def test_where_values_differ_by_rounding_alone_the_slopes_decide():
    """1 + 1e-18 (t - 1)^2 is 1 in every digit; its slope still finds the minimum."""
    evaluate = line(lambda t: 1 + 1e-18 * (t - 1) ** 2, lambda t: 2e-18 * (t - 1))
    found = search(evaluate, evaluate(np.zeros(1)), np.ones(1), 1e-3, 0.01)
    assert found.ended == "step" and abs(found.t - 1) <= 0.01


@pytest.mark.parametrize("value, slope", [(lambda t: -t, lambda t: -1.0), (lambda t: -t - t**2, lambda t: -1 - 2 * t)])
@pytest.mark.parametrize("first", [1e-9, 1.0, 1e9])
def test_an_endless_fall_is_told(value, slope, first):
    evaluate = line(value, slope)
    assert search(evaluate, evaluate(np.zeros(1)), np.ones(1), first).ended == "unbounded"


def test_a_wrong_gradient_ends_without_a_step():
    evaluate = line(lambda t: t, lambda t: -1.0)
    assert search(evaluate, evaluate(np.zeros(1)), np.ones(1), 1.0).ended == "none"
