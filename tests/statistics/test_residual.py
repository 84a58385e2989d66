"""The residual statistic against exact arithmetic; a small step without a pass equals a pass."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from chunks import batches, memory, random_cuts
from reference import Exact, dot, rational

from certifit.data.source import Memory
from certifit.runtime import core
from certifit.statistics.gram import Scaling, gram
from certifit.statistics.residual import Residual, residual


def plain(d: int, shift: Any = 0.0) -> Scaling:
    return Scaling(np.ones(d), np.broadcast_to(shift, d).astype(float), 1.0, 0.0, 1.0)


def near_fit(rng: np.random.Generator, n: int = 40, d: int = 3, noise: float = 1e-12) -> tuple[Any, ...]:
    X, w = rng.normal(size=(n, d)) + 3, rng.normal(size=d)
    return X, X @ w + 0.5 + noise * rng.normal(size=n), w, 0.5


@pytest.mark.parametrize("alpha", [0.0, 1e-9, 10.0])
def test_the_statistic_is_that_of_exact_arithmetic(rng, alpha):
    X, y, w, b = near_fit(rng)
    shift, penalty, weight = np.array([1.0, 2.0, 3.0]), np.full(3, alpha), rng.random(40)
    at = residual(Memory(X, y, weight), plain(3, shift), w, b, shift, penalty)
    exact = Exact(X, y, weight)
    r = exact.residuals([b, *w])
    pulls = [a * e for a, e in zip(exact.weights, r, strict=True)]
    columns = list(zip(*exact.rows, strict=True))
    true = [sum(pulls)]
    for j in range(3):
        moved = [a - Fraction(shift[j]) for a in columns[j + 1]]
        true.append(dot(moved, pulls) - Fraction(penalty[j]) * Fraction(w[j]))
    # One rounding of a result of some hundred bits.
    size = 100 * sum(exact.weights)
    for got, value in zip(at.gradient, true, strict=True):
        assert abs(Fraction(got) - value) <= Fraction(2.0**-53) * abs(value) + Fraction(2.0**-96) * size
    squares = sum(a * e * e for a, e in zip(exact.weights, r, strict=True))
    assert at.squares == pytest.approx(float(squares), rel=1e-14, abs=0)
    assert at.magnitude == pytest.approx(float(exact.magnitude([b, *w])), rel=1e-12, abs=0)


def test_rounding_bounds_the_error_of_the_gradient(rng):
    X, y, w, b = near_fit(rng)
    at = residual(Memory(X, y), plain(3), w, b, np.zeros(3), np.zeros(3))
    exact = Exact(X, y)
    r = exact.residuals([b, *w])
    for got, bound, column in zip(at.gradient, at.rounding, zip(*exact.rows, strict=True), strict=True):
        assert abs(Fraction(got) - dot(column, r)) <= Fraction(bound) * Fraction(1 + 1e-10)


@pytest.mark.parametrize("noise", [1e-13, 1e-9, 1.0])
@pytest.mark.parametrize("alpha", [0.0, 1e-3])
def test_a_moved_statistic_equals_the_summed_one(rng, alpha, noise):
    X, y, w, b = near_fit(rng, noise=noise)
    scaling = plain(3)
    penalty = np.full(3, alpha)
    sums = gram(Memory(X, y), centred=False)
    matrix = sums.sums / np.outer([*sums.scaling.scale, 1, sums.scaling.y_scale], [*sums.scaling.scale, 1, 1])
    matrix = np.ascontiguousarray(matrix[:4, :4])
    start = residual(Memory(X, y), scaling, w, b, np.zeros(3), penalty)
    state = np.array([b, *w]) + 1e-11 * rng.normal(size=4)
    at = (start.gradient, start.rounding, start.squares, start.magnitude)
    units = (scaling.scale, scaling.shift, scaling.y_scale)
    moved = core.moved_residual(*at, w, b, state[1:], state[0], matrix, penalty, *units, 1e-8, np.inf)
    assert moved is not None
    gradient, rounding, squares = moved
    summed = residual(Memory(X, y), scaling, state[1:], state[0], np.zeros(3), penalty)
    within = rounding + summed.rounding + 1e-28
    assert np.all(np.abs(gradient - summed.gradient) <= 2 * within)
    assert squares == pytest.approx(summed.squares, rel=1e-6, abs=0)
    far = core.moved_residual(*at, w, b, state[1:] + 1.0, state[0], matrix, penalty, *units, 1e-8, np.inf)
    assert far is None  # its rounding would be that of a step


@pytest.mark.parametrize("block_rows", [1, 4, 30])
def test_any_chunking_gives_the_same_bits(rng, block_rows):
    X, y, weight = rng.normal(size=(700, 4)), rng.normal(size=700), rng.random(700)
    w, zero = rng.normal(size=4), np.zeros(4)

    def at(source: Any) -> Residual:
        return residual(source, plain(4), w, 0.5, zero, zero)

    whole = at(memory(X, y, weight, block_rows=block_rows))
    cut = at(batches(X, y, weight, block_rows=block_rows, cuts=random_cuts(rng, 700)))
    assert np.array_equal(whole.gradient, cut.gradient)
    assert whole.squares == cut.squares
    assert whole.magnitude == cut.magnitude


def test_a_pull_and_a_gradient_that_cancel_leave_the_true_difference(rng):
    """At a minimum of ridge X'r = penalty w: rounded apart, they would leave nothing but rounding."""
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    exact = Exact(X, y, alpha=0.5, fit_intercept=False)
    w = np.array([float(v) for v in exact.solution])
    penalty = np.full(2, 15.0)
    at = residual(Memory(X, y), plain(2), w, 0.0, np.zeros(2), penalty)
    r = exact.residuals(w)
    for j, column in enumerate(zip(*exact.rows, strict=True)):
        true = dot(column, r) - 15 * rational(w)[j]
        assert at.gradient[1 + j] == pytest.approx(float(true), rel=1e-10, abs=0)
