"""How far to go along a direction: the strong Wolfe conditions.

phi(t) = f(x + t d), slope(t) = phi'(t), slope(0) < 0. A step t is taken when

    phi(t) <= phi(0) + DECREASE t slope(0)       enough lower
    |slope(t)| <= curvature |slope(0)|           enough flatter

Where phi(t) and phi(0) differ by rounding alone the slopes decide. Between a step that is still steeply falling (low)
and one that is too high, too steeply rising or outside the domain (high) such a t always lies, so the bracket shrinks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from certifit.data.columns import Array
from certifit.minimise.problem import LOWEST, NOISE, Point, norm

DECREASE = 1e-4
MOST_TRIALS = 80
NARROW = 1e-9  # share of the step below which a bracket is not searched on
EDGE = 1e-3  # a trial keeps this share of the bracket from its ends
FURTHEST = 1e150  # a function that still falls steeply at this distance is unbounded below


@dataclass(frozen=True)
class Trial:
    """A step along the direction."""

    t: float
    point: Point
    slope: float


@dataclass(frozen=True)
class Found:
    """The step taken. ended: "step", "none" (nothing lowers the value) or "unbounded" (it falls without end)."""

    t: float
    point: Point
    ended: Literal["step", "none", "unbounded"] = "step"


def search(
    evaluate: Callable[[Array], Point],
    at: Point,
    direction: Array,
    first: float,
    curvature: float = 0.9,
    is_exact: bool = False,
) -> Found:
    """A step that meets the conditions, tried from `first` on.

    is_exact: one more trial where the slopes of the first two say the minimum is; on a quadratic it is there.
    """
    line = _Line(evaluate, at, direction, curvature)
    if not line.start.slope < 0:
        return Found(0.0, at, "none")
    t = first
    for _ in range(MOST_TRIALS):
        trial = line.tried(t)
        if trial.point.value == -np.inf or line.has_no_end(trial):
            return Found(t, trial.point, "unbounded")
        if line.is_taken(trial):
            return line.refined(trial) if is_exact else Found(t, trial.point)
        t = line.next(trial)
        if not line.moves(t) or line.is_narrow:
            break
    if line.low.t > 0 and line.low.point.value < at.value - NOISE * abs(at.value):
        return Found(line.low.t, line.low.point)
    return Found(0.0, at, "none")


class _Line:
    def __init__(self, evaluate: Callable[[Array], Point], at: Point, direction: Array, curvature: float) -> None:
        self.evaluate, self.direction, self.curvature = evaluate, direction, curvature
        self.size = norm(direction)
        self.start = self.low = Trial(0.0, at, float(at.gradient @ direction))
        self.high: Trial | None = None
        self.growth, self.outside = 10.0, 0
        self.widths: list[float] = []

    def tried(self, t: float) -> Trial:
        with np.errstate(over="ignore", invalid="ignore"):
            point = self.evaluate(self.start.point.x + t * self.direction)
            return Trial(t, point, float(point.gradient @ self.direction))

    def has_no_end(self, trial: Trial) -> bool:
        steep = trial.slope < self.curvature * self.start.slope and not self.is_high(trial)
        far = trial.t * self.size > FURTHEST or trial.point.value < LOWEST * max(1.0, abs(self.start.point.value))
        return trial.point.is_inside and steep and far and self.high is None

    def is_high(self, trial: Trial) -> bool:
        """Whether the value is not lower by enough; a difference within rounding is no reason."""
        now, value = self.start.point.value, trial.point.value
        if abs(value - now) <= NOISE * max(abs(now), abs(value)):
            return False
        return not value <= now + DECREASE * trial.t * self.start.slope

    def is_taken(self, trial: Trial) -> bool:
        flat = abs(trial.slope) <= self.curvature * abs(self.start.slope)
        return trial.point.is_inside and flat and not self.is_high(trial)

    def next(self, trial: Trial) -> float:
        """The next step to try after one that was not taken."""
        if not trial.point.is_inside:
            return self._back_inside(trial)
        self.outside = 0
        if self.is_high(trial) or trial.slope > 0:
            self.high = trial
        else:
            if self.high is None:
                return self._further(trial)
            self.low = trial
        return self._between()

    def _back_inside(self, trial: Trial) -> float:
        """Nearer to the last step inside, by 1/2, then 1/4, 1/16, ...: the edge may be many orders of size away."""
        self.high, self.outside = trial, self.outside + 1
        return self.low.t + (trial.t - self.low.t) * float(0.5 ** min(2 ** (self.outside - 1), 64))

    def _further(self, trial: Trial) -> float:
        """Where the slopes say the minimum is, at least twice and at most `growth` times as far."""
        apart = trial.slope - self.low.slope
        guess = trial.t - trial.slope * (trial.t - self.low.t) / apart if apart > 0 else np.inf
        furthest = trial.t * self.growth
        self.low, self.growth = trial, min(self.growth**2, 1e32)
        return float(min(max(guess, 2 * trial.t), furthest))

    def _between(self) -> float:
        """The zero of the slope by the secant, or the middle where the bracket does not halve in two trials."""
        low, high = self.low, self.high
        assert high is not None
        width = high.t - low.t
        self.widths.append(width)
        slow = len(self.widths) > 2 and width > 0.5 * self.widths[-3]
        if low.t > 0 and high.t > 1e3 * low.t:
            return float(np.sqrt(low.t) * np.sqrt(high.t))
        if slow or not high.point.is_inside or high.slope <= 0:
            return low.t + width / 2
        share = low.slope / (low.slope - high.slope)
        return float(low.t + width * min(max(share, EDGE), 1 - EDGE))

    def moves(self, t: float) -> bool:
        """Whether a step still changes x."""
        x = self.start.point.x
        return bool(np.isfinite(t) and t != self.low.t and (x + t * self.direction != x).any())

    @property
    def is_narrow(self) -> bool:
        """Whether the bracket holds no more than rounding: the slopes are not those of the values."""
        return self.high is not None and self.high.t - self.low.t <= NARROW * self.high.t

    def refined(self, trial: Trial) -> Found:
        apart = trial.slope - self.start.slope
        if apart > 0 and abs(trial.slope) > 1e-6 * abs(self.start.slope):
            exact = self.tried(-trial.t * self.start.slope / apart)
            if self.is_taken(exact) and abs(exact.slope) < abs(trial.slope):
                return Found(exact.t, exact.point)
        return Found(trial.t, trial.point)


def first_length(at: Point) -> float:
    """A cautious first step along -gradient: a hundredth of x, or of length 1 where x is 0."""
    size = norm(at.gradient)
    return (0.01 * norm(at.x) or 1.0) / size
