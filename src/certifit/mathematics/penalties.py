"""Penalties on weights, and their conjugates: what a duality gap needs.

A penalty is a sum over columns; strengths and bounds are data, one per column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array


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
