"""The quadratic model of a smooth function at a point, with an L1 penalty and bounds: where it is least.

    g'(x - point) + (x - point)'H(x - point)/2 + sum_j l1_j |x_j|,   lower_j <= x_j <= upper_j

Solved on the active columns with their signs held, so the answer is exact to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.mathematics.penalties import ElasticPenalty
from certifit.runtime import core, n_threads

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
