"""The residual statistic at given weights, in twofold precision: what a refinement and a certificate need."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.sparse as sp

from certifit.data.by_column import csc
from certifit.data.columns import Array
from certifit.data.source import Block, Source, itself
from certifit.runtime import core, n_threads
from certifit.statistics import double_double as dd
from certifit.statistics.gram import Scaling
from certifit.statistics.moments import target_sums

UNIT = 2.0**-53
MATRIX_ERROR = (
    128 * UNIT
)  # relative error of an entry of a float64 Gram matrix: blocks of some thousand rows, then a tree
TWOFOLD_UNIT = 2.0**-100  # error of a twofold sum of few rows, relative to the sum of magnitudes
MOST_BLOCK_ROWS = 65536  # rows that are summed before sums are added
EXACT_FIT = 1e-14  # an objective below this share of the null model's is an exact fit to rounding
LEAST_SQUARES = 2.0**-830  # in scaled units: sums below it may have lost terms, or bits of them, to underflow
TINY = float(np.finfo(float).tiny)  # least positive bound, so that no bound is 0


def twofold_unit(n_rows: float) -> float:
    """Error of a twofold sum of rows, relative to the sum of magnitudes: low parts are added in float64 in a block."""
    return 2.0**-104 * float(max(16, min(n_rows, MOST_BLOCK_ROWS)))


def is_exact_fit(objective: float, null: float) -> bool:
    """Whether an objective is only rounding relative to the null model's; an excess is then relative to the latter."""
    return bool(objective < EXACT_FIT * null)


def meets_every_row(source: Source, coef: Array, intercept: float) -> bool:
    """Whether a state is the constant that the target is. Squares that add up to 0 do not say so: they underflow."""
    if coef.any():
        return False
    targets = target_sums(source)
    return bool(targets.low == targets.high == intercept)


@dataclass(frozen=True)
class Residual:
    """Sums over rows at weights w and intercept b, r = y - b - x'w, all scaled.

    gradient: sum_i w_i (1, x_i - shift) r_i, less the pull of a penalty; squares: sum_i w_i r_i^2;
    magnitude: sum_i w_i (|x_i|'|w| + |y_i|)^2, which rounding errors scale with;
    rounding: bound on the error of each entry of the gradient. is_met: all residuals are known to be 0.
    """

    gradient: Array
    squares: float
    magnitude: float
    rounding: Array
    unit: float = TWOFOLD_UNIT  # of the twofold sums
    is_met: bool = False

    @property
    def off(self) -> float:
        """Bound on the error of the root of the squares."""
        return 4 * self.unit * math.sqrt(self.magnitude)

    def settled(self, source: Source, coef: Array, intercept: float) -> Residual:
        """The same without errors where all residuals are 0, as all are of a target that is constant."""
        is_met = self.squares == 0 and meets_every_row(source, coef, intercept)
        return replace(self, magnitude=0.0, is_met=True) if is_met else self

    def is_lost(self, scale: float) -> bool:
        """Whether parts of the sums may have underflowed, with nothing larger that an excess is relative to."""
        return scale < LEAST_SQUARES and not self.is_met

    def raised(self, objective: float) -> float:
        """The most that an objective of these squares can be after all roundings."""
        root = math.sqrt(objective) + self.off
        return root * root * (1 + 16 * UNIT)

    def scale(self, objective: float, null: float) -> float:
        """What an excess is relative to: the objective, or the null model's where it is an exact fit to rounding."""
        if is_exact_fit(self.raised(objective), null):
            return null
        root = max(math.sqrt(objective) - self.off, 0.0)
        return max(root * root * (1 - 16 * UNIT), TINY)


@dataclass(frozen=True)
class _Sums:
    """What adds: the gradient for (x, 1) and the squares as pairs, and the magnitude."""

    gradient: dd.Pair
    squares: dd.Pair
    magnitude: float
    n_rows: int  # of the largest block

    def __add__(self, other: _Sums) -> _Sums:
        gradient, squares = dd.add(self.gradient, other.gradient), dd.add(self.squares, other.squares)
        return _Sums(gradient, squares, self.magnitude + other.magnitude, max(self.n_rows, other.n_rows))


Change = Callable[[Block], Block]


def residual(
    source: Source,
    scaling: Scaling,
    weights: Array,
    intercept: float,
    shift: Array,
    penalty: Array,
    of: Change = itself,
) -> Residual:
    """The statistic at scaled weights, about a shift of the columns: one pass.

    penalty: its diagonal, whose pull -penalty w is part of the gradient. At a minimum the two cancel, so they are
    added before anything is rounded. of: the stretches as they are to be seen.
    """
    sums = source.reduce(partial(_of_stretch, scaling, weights, intercept, source.block_rows, of))
    gradient = core.shifted_gradient(*sums.gradient, shift, penalty, weights)
    unit = twofold_unit(sums.n_rows)
    return Residual(gradient, float(sums.squares[0]), sums.magnitude, UNIT * np.abs(gradient), unit)


def residual_by_column(
    X: sp.csc_array, y: Array, weight: Array | None, scaling: Scaling, weights: Array, intercept: float
) -> Residual:
    """The statistic of rows in memory, read by sparse columns that all have one scale."""
    s = scaling
    hi, lo, squares, _, magnitude = core.column_residual(
        csc(X), y, weight, float(s.scale[0]), s.y_scale, s.weight_scale, weights, intercept, n_threads()
    )
    gradient = core.shifted_gradient(hi, lo, s.shift, np.zeros(len(weights)), weights)
    return Residual(gradient, float(squares), magnitude, UNIT * np.abs(gradient), twofold_unit(len(y)))


def _of_stretch(s: Scaling, weights: Array, intercept: float, block_rows: int, of: Change, stretch: Block) -> _Sums:
    stretch = of(stretch)
    hi, lo, squares, squares_low, magnitude = core.residual(
        stretch.rows,
        stretch.y,
        stretch.weight,
        s.scale,
        s.y_scale,
        s.weight_scale,
        weights,
        intercept,
        block_rows,
        n_threads(),
    )
    n_rows = min(stretch.n_rows, block_rows)
    return _Sums((hi, lo), (np.asarray(squares), np.asarray(squares_low)), magnitude, n_rows)
