"""The proof of an isotonic map: a duality gap, from the rows and the map alone.

    P(m) = sum_k a_k (y_k - m_k)^2 / 2   over   m_1 <= m_2 <= ... <= m_n,   k the distinct scores in ascending order

Multipliers l_k >= 0 of m_k <= m_k+1 with l_0 = l_n = 0 give a lower bound. With r_k = a_k (y_k - m_k) and
d_k = l_k - l_k-1 the gap is

    sum_k (d_k - r_k)^2 / (2 a_k)  +  sum_k l_k (m_k+1 - m_k),    both sums >= 0

With l_k = max(0, r_1 + ... + r_k) it is 0 of the best map; so it is with sums that begin anew where the map rises, and
the smaller one counts. The multipliers are the numbers that were computed, whatever rounding made of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.models.certificate import EXACT_FIT_CLAIM, Certificate
from certifit.models.trees.task import FAR_WEIGHTS, LEAST_WEIGHT
from certifit.statistics.residual import LEAST_SQUARES

CLAIM = "excess of the objective"
THEOREM = "duality gap of isotonic regression"
UNIT = 2.0**-53
LAST_BITS = 2.0**-44  # of the largest score: what another processor may change in scores
LEAST = 2.0**-100  # no value is a bare 0
EXACT_FIT = 1e-14  # share of the null model's objective below which a fit is exact to rounding


@dataclass(frozen=True)
class Steps:
    """A map of scores that never falls: its values at thresholds in ascending order, a straight line between them."""

    thresholds: Array
    values: Array

    def at(self, x: Array) -> Array:
        """The map at scores; beyond its ends it is constant."""
        last = len(self.thresholds) - 1
        right = np.clip(np.searchsorted(self.thresholds, x, side="left"), 0, last)
        left = np.where(self.thresholds[right] == x, right, np.maximum(right - 1, 0))
        x = np.clip(x, self.thresholds[0], self.thresholds[last])
        width = self.thresholds[right] / 2 - self.thresholds[left] / 2  # halves: no overflow
        share = np.where(width > 0, (x / 2 - self.thresholds[left] / 2) / np.where(width > 0, width, 1.0), 0.0)
        rise = self.values[right] - self.values[left]
        return np.asarray(self.values[left] + np.clip(share, 0.0, 1.0) * rise)


class IsotonicTask:
    """Rows of one column in memory: distinct scores, the mean target and the weight of each, in units of the largest.

    error: how far rounding may have moved a y_k; 0 where all rows of a score have one target.
    """

    def __init__(self, source: Source) -> None:
        block = source.gather()
        if block.y is None or source.n_features != 1:
            raise ValueError(f"An isotonic map is one of a single column with a target. Got {source.n_features}.")
        scores, y = np.asarray(block.X, dtype=np.float64).reshape(-1), np.asarray(block.y, dtype=np.float64)
        weight = np.ones(len(scores)) if block.weight is None else np.asarray(block.weight, dtype=np.float64)
        self.n_rows, self.sum_weight = len(scores), float(weight.sum())
        scores, y, weight = (of_rows[weight > 0] for of_rows in (scores, y, weight))
        weight = np.ldexp(weight, -int(np.frexp(weight.max())[1]))
        if weight.min() < LEAST_WEIGHT:
            raise ValueError(f"{FAR_WEIGHTS[0].upper()}{FAR_WEIGHTS[1:]}")
        self.x, first, places, counts = np.unique(scores, return_index=True, return_inverse=True, return_counts=True)
        is_pure = np.bincount(places, weights=y != y[first][places]) == 0
        self.is_pure = bool(is_pure.all())
        self.weight = np.bincount(places, weights=weight)
        self.y = np.where(is_pure, y[first], np.bincount(places, weights=weight * y) / self.weight)
        self.unit = 4 * UNIT * (counts + 4)  # relative, of sums over the rows of a score
        size = np.bincount(places, weights=weight * np.abs(y)) / self.weight
        self.error = np.where(is_pure, 0.0, self.unit * size)
        self.within = float((weight * (y - self.y[places]) ** 2).sum()) / 2  # no map of the score takes it away

    def facts(self) -> dict[str, float]:
        """Rows and their weight."""
        return {"n_rows": self.n_rows, "sum_weight": self.sum_weight}

    def objective(self, m: Array) -> float:
        """sum_i weight_i (y_i - m_i)^2 / 2 over all rows."""
        return self.within + float((self.weight * (self.y - m) ** 2).sum()) / 2


def certify(task: IsotonicTask, state: Steps, tol: float) -> Certificate:
    """The gap relative to the objective; infinite where the map falls somewhere."""
    m = state.at(task.x)
    if (np.diff(m) < 0).any() or (np.diff(state.values) < 0).any() or not np.isfinite(m).all():
        return Certificate(CLAIM, THEOREM, np.inf, tol, 0.0, advice="The map falls somewhere.")
    objective = task.objective(m)
    null = task.objective(np.full(len(m), np.average(task.y, weights=task.weight)))
    is_exact = objective < EXACT_FIT * null
    gap, rounding, moved = _gap(task, state, m)
    unit = (null if is_exact else objective) or 1.0
    if objective < LEAST_SQUARES and not is_exact and not (task.is_pure and (task.y == m).all()):
        gap = np.inf  # squares underflow, with nothing larger that they are relative to
    value, rounding = (gap + rounding) / unit + LEAST, (rounding + moved) / unit + LEAST
    return Certificate(EXACT_FIT_CLAIM if is_exact else CLAIM, THEOREM, value, tol, rounding)


def _gap(task: IsotonicTask, state: Steps, m: Array) -> tuple[float, float, float]:
    """The gap, what rounding may have taken from it, and what last bits of the scores would add to it."""
    rest = task.weight * (task.y - m)
    sums, rises = np.cumsum(rest), np.diff(m) > 0
    whole = np.append(np.maximum(sums[:-1], 0.0), 0.0)
    begins = np.append(0, np.flatnonzero(rises) + 1)
    before = np.append(0.0, sums)[begins][np.append(0, np.cumsum(rises))]
    anew = np.where(np.append(rises, True), 0.0, np.maximum(sums - before, 0.0))
    least, most = min((_bound(task, m, rest, multipliers) for multipliers in (whole, anew)), key=lambda pair: pair[1])
    distance = LAST_BITS * float(np.abs(task.x).max())
    step = np.maximum(*(np.abs(state.at(task.x + way * distance) - m) for way in (-1.0, 1.0)))
    moved = 2 * float(whole @ step) + 2 * float((task.weight * step**2).sum())
    return least, most - least, moved


def _bound(task: IsotonicTask, m: Array, rest: Array, multipliers: Array) -> tuple[float, float]:
    """The gap with these multipliers, and the same with all rounding against it."""
    steps = np.diff(multipliers, prepend=0.0)
    off = np.abs(steps - rest)
    error = task.unit * (np.abs(rest) + np.abs(steps)) + task.weight * task.error
    slack = float(multipliers[:-1] @ np.diff(m))
    gap = float((off * (off / task.weight)).sum()) / 2 + slack  # squares of light rows would vanish
    most = float(((off + error) * ((off + error) / task.weight)).sum()) / 2 + slack
    return gap, max(most * (1 + 8 * UNIT * (task.n_rows + 8)), gap)
