"""What an excess of Huber's objective is relative to, and a bound on the null model's objective."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.data.source import Block
from certifit.models.huber.task import HuberTask, Point, Rows
from certifit.statistics.residual import TINY, is_exact_fit

NULL_SHARE = 1 - 1e-9  # of a null model's bound, for the roundings of its sums
NULL_ERROR = 1e-12  # of its largest slope times sum_i w_i |r_i|: what the mean of its slopes may be off by


def relative_to(task: HuberTask, at: Point, is_met: bool, objective: float) -> tuple[float, bool]:
    """What an excess is relative to: the objective, or the null model's where this is an exact fit to rounding.

    is_met: a target that does not vary, and the null model itself, without a residual.
    """
    if is_met:
        # Of a held scale nothing is left: the objective is 0. A joint one has none that is best: it can always be less.
        return (max(objective, TINY), False) if task.is_joint else (np.inf, True)
    spread = np.asarray(task.spread if task.fit_intercept else task.target_size)
    # mean h(r) <= h(root mean r^2): with a joint scale the null objective is at most that at the scale `spread`.
    most = float(spread if task.is_joint else task.loss.value(spread, at.scale))
    if not is_exact_fit(objective, most):
        return max(objective, TINY), False
    null = _null_objective(task, at)
    return (null, True) if is_exact_fit(objective, null) else (max(objective, TINY), False)


def _null_objective(task: HuberTask, at: Point) -> float:
    """A lower bound of the best constant's objective: the dual at the slopes of residuals about the target's mean.

    mean u r - s/2 mean u^2 for u of mean 0 in the box; with a joint scale mean u r for u of mean square at most 1.
    """
    level, about = task.gram.target_moments()
    level = level if task.fit_intercept else 0.0
    wide = max(float(np.sqrt(about / task.gram.sum_weight)) if task.fit_intercept else task.target_size, at.scale)
    if not wide > 0:
        return 0.0
    rows, total = task.rows(), task.gram.sum_weight
    mean = 0.0
    if task.fit_intercept:
        mean = task.source.reduce(partial(_null_of_stretch, rows=rows, level=level, scale=wide, mean=0.0)).slope / total
    sums = task.source.reduce(partial(_null_of_stretch, rows=rows, level=level, scale=wide, mean=mean))
    share = min(task.loss.delta / max(sums.largest, TINY), 1.0)
    if task.is_joint:
        share = min(share, float(np.sqrt(total / max(sums.squares, TINY))))
    held = 0.0 if task.is_joint else share * at.scale * sums.squares / 2
    error = NULL_ERROR * (sums.largest + abs(mean)) * sums.distance  # a level that is off counts with sum_i w_i u_i
    return max(share * (sums.product - error - held) / total * NULL_SHARE, 0.0)


@dataclass(frozen=True)
class _NullSums:
    """sum_i w_i of u_i, of u_i r_i, of u_i^2 and of |r_i|, and max |u_i|, for residuals r of a constant."""

    slope: float
    product: float
    squares: float
    distance: float
    largest: float

    def __add__(self, other: _NullSums) -> _NullSums:
        sums = (self.slope + other.slope, self.product + other.product, self.squares + other.squares)
        return _NullSums(*sums, self.distance + other.distance, max(self.largest, other.largest))


def _null_of_stretch(stretch: Block, rows: Rows, level: float, scale: float, mean: float) -> _NullSums:
    weight = rows.weights(stretch)
    r = np.asarray(stretch.y) * rows.scaling.y_scale - level
    u = rows.loss.slope(r, scale) - mean
    largest = float(np.where(weight > 0, np.abs(u), 0.0).max(initial=0.0))
    squares, distance = float(weight @ np.square(u)), float(weight @ np.abs(r))
    return _NullSums(float(weight @ u), float(weight @ (u * r)), squares, distance, largest)
