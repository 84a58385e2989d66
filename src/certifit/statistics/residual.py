"""The residual statistic at given weights, in twofold precision: what a refinement and a certificate need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.data.source import Array, Block, Source
from certifit.runtime import core, n_threads
from certifit.statistics import twofold as tf
from certifit.statistics.gram import Scaling


@dataclass(frozen=True)
class Residual:
    """Sums over rows at weights w and intercept b, r = y - b - x'w, all scaled.

    gradient: sum_i w_i (x_i, 1) r_i as a pair; squares: sum_i w_i r_i^2;
    magnitude: sum_i w_i (|x_i|'|w| + |y_i|)^2, which rounding errors scale with.
    """

    gradient: tf.Pair
    squares: float
    magnitude: float

    def __add__(self, other: Residual) -> Residual:
        gradient = tf.add(self.gradient, other.gradient)
        return Residual(gradient, self.squares + other.squares, self.magnitude + other.magnitude)

    def about(self, shift: Array) -> Array:
        """Gradient for (1, x - shift): sum_i w_i r_i first, then sum_i w_i (x_i - shift) r_i."""
        hi, lo = self.gradient
        total = (np.broadcast_to(hi[-1], shift.shape), np.broadcast_to(lo[-1], shift.shape))
        moved = tf.multiply((-shift, np.zeros_like(shift)), total)
        columns, _ = tf.add((hi[:-1], lo[:-1]), moved)
        return np.concatenate([hi[-1:], columns])


def residual(source: Source, scaling: Scaling, weights: Array, intercept: float) -> Residual:
    """The statistic at scaled weights: one pass."""
    f = partial(_of_run, scaling=scaling, weights=weights, intercept=intercept, block_rows=source.block_rows)
    return source.reduce(f)


def _of_run(run: Block, scaling: Scaling, weights: Array, intercept: float, block_rows: int) -> Residual:
    s = scaling
    hi, lo, squares, magnitude = core.residual(
        run.rows, run.y, run.weight, s.scale, s.y_scale, s.weight_scale, weights, intercept, block_rows, n_threads()
    )
    return Residual((hi, lo), squares, magnitude)
