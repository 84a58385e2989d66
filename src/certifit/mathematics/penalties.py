"""Penalties on weights, and their conjugates: what a duality gap needs.

A penalty is a sum over columns; strengths and bounds are data, one per column.

The quadratic model of a smooth function at a point, with an L1 penalty and bounds: where it is least.

    g'(x - point) + (x - point)'H(x - point)/2 + sum_j l1_j |x_j|,   lower_j <= x_j <= upper_j

Solved on the active columns with their signs held, so the answer is exact to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.runtime import core, n_threads


@dataclass(frozen=True)
class ElasticPenalty:
    """h(w) = sum_j l1_j |w_j| + l2_j/2 w_j^2   on lower_j <= w_j <= upper_j, with lower_j <= 0 <= upper_j."""

    l1: Array
    l2: Array
    lower: Array
    upper: Array

    def value(self, w: Array) -> float:
        """h(w), bounds left aside."""
        return float(self.l1 @ np.abs(w) + (self.l2 * w) @ w / 2)

    def maximiser(self, q: Array) -> Array:
        """The w_j that attain h*_j(q_j) = sup_w q_j w - h_j(w); infinite where none does."""
        sign, size = np.sign(q), np.maximum(np.abs(q) - self.l1, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            far = np.where(size > 0, size / self.l2, 0.0)
        return np.asarray(np.clip(sign * far, self.lower, self.upper))

    def furthest(self, q: Array, error: Array) -> Array:
        """The largest |maximiser| within an error of q: h* is convex, so the error costs at most so much of it."""
        ends = np.abs(self.maximiser(q + error)), np.abs(self.maximiser(q - error))
        return np.asarray(np.maximum(*ends))

    def conjugate(self, q: Array) -> Array:
        """h*_j(q_j), column by column."""
        w = self.maximiser(q)
        size = np.maximum(np.abs(q) - self.l1, 0.0)
        with np.errstate(invalid="ignore"):
            values = size * np.abs(w) - (self.l2 / 2 * w) * w
        return np.where(size > 0, np.where(np.isinf(w), np.inf, values), 0.0)


MOST_ROUNDS = 1000
NO_CURVATURE = 1e-26  # of a column's squares before its shift was taken off: curvature below it is rounding


@dataclass(frozen=True)
class Kinks:
    """l1 and bounds of the entries of a point: those of the weights, none of the intercept."""

    l1: Array
    lower: Array
    upper: Array

    @staticmethod
    def of(penalty: ElasticPenalty) -> Kinks:
        """Of weights and then an intercept."""
        free = np.array([np.inf])
        lower, upper = np.concatenate([penalty.lower, -free]), np.concatenate([penalty.upper, free])
        return Kinks(np.append(penalty.l1, 0.0), lower, upper)

    def size(self, point: Array) -> float:
        """sum_j l1_j |x_j|."""
        return float(self.l1 @ np.abs(point))

    def signs(self, point: Array, target: Array) -> Array:
        """What (|target| - |point|) / (target - point) is, entry by entry, without cancelling where no sign changes."""
        step = target - point
        crosses = point * target < 0
        with np.errstate(divide="ignore", invalid="ignore"):
            across = np.where(crosses, (np.abs(target) - np.abs(point)) / step, 0.0)
        return np.where(crosses, across, np.sign(point + target))

    def fall(self, gradient: Array, point: Array, target: Array) -> float:
        """-(g'(target - point) + the change of the penalty): what the first order tells of the way to a target."""
        return -float((gradient + self.l1 * self.signs(point, target)) @ (target - point))


def minimiser(matrix: Array, gradient: Array, point: Array, value: float, kinks: Kinks) -> Array:
    """Where the model is least. Entries without curvature become 0; value: what rounding is relative to."""
    curved = np.diagonal(matrix) > 0
    start = np.where(curved, point, 0.0)
    weights, _, _ = core.gram_lasso_step(
        np.ascontiguousarray(matrix),
        np.ascontiguousarray(gradient),
        start,
        2 * max(value, 0.0),
        kinks.l1,
        kinks.lower,
        kinks.upper,
        MOST_ROUNDS,
        n_threads(),
    )
    return np.asarray(np.clip(weights, kinks.lower, kinks.upper))


def without_still(matrix: Array, shift: Array) -> Array:
    """A Hessian whose columns that do not vary, but for rounding, have no entries."""
    curved = np.diagonal(matrix)
    still = np.flatnonzero(curved[:-1] <= NO_CURVATURE * curved[-1] * shift**2)
    if len(still):
        matrix = matrix.copy()
        matrix[still], matrix[:, still] = 0.0, 0.0
    return matrix
