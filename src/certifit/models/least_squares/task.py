"""Least squares with an optional ridge penalty, on the Gram matrix of the columns.

A task gives its solver and its certificate the same few things: a factor of the system's matrix, residuals at a
state, and the scales between the user's units and those of the sums.
"""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.models.least_squares.collinear import LiteralSystem
from certifit.models.least_squares.normal_equations import NormalEquations, Weights
from certifit.statistics import double_double as dd
from certifit.statistics.gram import gram
from certifit.statistics.moments import column_spreads
from certifit.statistics.remainders import Remainders, column_factor, remainders
from certifit.statistics.residual import MATRIX_ERROR, UNIT, Residual, residual, twofold_unit

SMALL_STEP = 1e-8  # relative to the size of predictions: beyond it a residual statistic is summed again
SMALL_CHANGE = 0.1  # relative to the size of residuals: beyond it their squares would be known to fewer digits
FAINT_SHARE = 2.0**-40  # of a column's squares: squares about its mean below it have lost digits of twofold sums


class LeastSquares(NormalEquations):
    """The task of rows that are at least as many as columns. alpha None means 1 / sum of weights."""

    def __init__(self, source: Source, alpha: float | None, fit_intercept: bool, standardize: bool = False) -> None:
        self.source = source
        self._last: tuple[Weights, Residual] | None = None
        summed = partial(gram, source, centred=fit_intercept)
        super().__init__(summed(), alpha, fit_intercept, partial(summed, twofold=True), source.names, standardize)

    @property
    def penalty_units(self) -> Array:
        """scale_j s_j. A column that varies by less than its sums tell has its spread from rows about one of them."""
        units = super().penalty_units
        if not self.standardize:
            return units
        squares = np.diagonal(self.gram.sums)[: self.gram.n_columns]
        about = self.gram.sum_weight * np.square(self.gram.spreads(self.fit_intercept))
        is_faint = about <= FAINT_SHARE * squares
        if not is_faint.any():
            return units
        return np.where(is_faint, self._spreads_about_a_row * self.gram.scaling.scale, units)

    @cached_property
    def _spreads_about_a_row(self) -> Array:
        return column_spreads(self.source, self.fit_intercept)

    def residual_at(self, state: Weights) -> Residual:
        """The residual statistic at a state: one pass over the rows, or none for a small step from the last."""
        if self._last is not None:
            old, last = self._last
            step, matrix = self._step(old, state), self._matrix()
            size = float(np.sqrt(np.diagonal(matrix)) @ np.abs(step))
            if size <= min(SMALL_STEP * np.sqrt(last.magnitude), SMALL_CHANGE * np.sqrt(last.squares)):
                return last.moved(step, matrix, self.penalty, self.to_scaled(old)[0])
        weights, intercept = self.to_scaled(state)
        s = self.gram.scaling
        at = self._without_noise(residual(self.source, s, weights, intercept, s.shift, self.penalty), weights)
        self._last = (state, at)
        return at

    def _without_noise(self, at: Residual, weights: Array) -> Residual:
        """Columns that are their shift in every row have no slope but the penalty's: what is summed is rounding."""
        still = np.flatnonzero(np.diagonal(self.gram.sums)[: self.gram.n_columns] == 0)
        if self.fit_intercept and len(still):
            at.gradient[1 + still] = -self.penalty[still] * weights[still]
            at.rounding[1 + still] = UNIT * np.abs(at.gradient[1 + still])
        return at

    @cached_property
    def remainders(self) -> Remainders | None:
        """What is left of the redundant columns, whatever the penalty; None where there are none."""
        if not len(self.factor.dependent):
            return None
        free = self.factor if self.alpha == 0 else column_factor(self.gram, self.fit_intercept)
        factor = free if len(free.dependent) else self.factor
        return remainders(self.source, factor, self.gram.scaling, self.fit_intercept)

    @cached_property
    def literal(self) -> LiteralSystem | None:
        """The system over all weights, with every column that differs from a combination of others as itself."""
        return None if self.remainders is None else self._in_basis(self.remainders)

    @cached_property
    def restricted(self) -> LiteralSystem | None:
        """The same with columns that are combinations but for the rounding of their entries taken for exact ones."""
        remainders = self.remainders
        if remainders is None or not remainders.is_rounding.any():
            return self.literal
        return self._in_basis(remainders.rounding_as_exact())

    def null_objective(self) -> float:
        """Squares about the best constant, or about 0 without an intercept, scaled: at most, after all roundings."""
        gram, d = self.gram, self.gram.n_columns
        zeros = np.zeros(gram.sums.shape)
        low, error = (zeros, MATRIX_ERROR) if gram.low is None else (gram.low, 32 * twofold_unit(gram.n_rows))

        def entry(i: int, j: int) -> dd.Pair:  # of (1, y - y_shift); without an intercept there is no shift
            return gram.sums[d + i, d + j], low[d + i, d + j]

        squares = entry(1, 1)
        if not self.fit_intercept:
            return float(squares[0]) * (1 - error)
        mean = np.asarray(gram.sums[d, d + 1] / gram.sum_weight)
        # squares - mean (2 total - mean W), less what the mean being off by a rounding costs
        nothing = np.zeros(())
        left = dd.add(entry(0, 1), dd.multiply(entry(0, 0), (-mean, nothing)))
        about = dd.add(squares, dd.multiply((-mean, nothing), dd.add(entry(0, 1), left)))
        off = float(left[0]) ** 2 / gram.sum_weight
        return max(float(about[0]) - 2 * off - 4 * error * float(squares[0]), 0.0)

    def in_own_units(self, squares: float, system: LiteralSystem) -> float:
        """Squares in the units of a system as squares in the units of this task: powers of two apart."""
        units, system_units = self.gram.scaling, system.gram.scaling
        return squares * (units.y_scale / system_units.y_scale) ** 2 * (units.weight_scale / system_units.weight_scale)

    def _in_basis(self, remainders: Remainders) -> LiteralSystem | None:
        return LiteralSystem.of(self.source, remainders, self.alpha, self.fit_intercept, self.spreads)

    def gradient(self, at: Residual) -> Array:
        """Minus the gradient of the scaled objective in the system's unknowns."""
        return at.gradient if self.fit_intercept else at.gradient[1:]

    def _matrix(self) -> Array:
        """sum_i w_i a_i a_i' for a = (1, x - shift), without the penalty."""
        d = self.gram.n_columns
        order = np.concatenate([[d], np.arange(d)])
        return np.asarray(self.gram.sums[np.ix_(order, order)])

    def _step(self, old: Weights, new: Weights) -> Array:
        """new - old for (intercept of shifted columns, weights), scaled: exact differences of near numbers."""
        s = self.gram.scaling
        weights = (new.coef - old.coef) / s.scale * s.y_scale
        intercept = (new.intercept - old.intercept) * s.y_scale + float(weights @ s.shift)
        return np.concatenate([[intercept], weights])
