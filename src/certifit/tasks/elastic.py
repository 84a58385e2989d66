"""Least squares with an L1 and L2 penalty and bounds on the weights.

minimise  sum_i w_i (y_i - b - x_i'w)^2 / (2 sum_i w_i) + h(w),   h = sum_j l1_j |w_j| + l2_j/2 w_j^2 on a box

Here on the Gram matrix of the columns; tasks/elastic_columns.py works on the columns themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.penalties import ElasticPenalty
from certifit.statistics.gram import Gram, Scaling, gram
from certifit.statistics.residual import Residual, residual
from certifit.tasks.normal_equations import LARGEST_PENALTY, GramUnits, Weights

NO_SPREAD = 1e-28  # a variance below it, of a column of size 1, is rounding


@dataclass(frozen=True)
class Strengths:
    """alpha, the share of L1 in it, factors of single columns, and bounds, in the user's units."""

    alpha: float
    l1_ratio: float
    factors: Array
    lower: Array
    upper: Array

    def penalty(self, spreads: Array) -> ElasticPenalty:
        """As strengths of single columns: those of weights times spreads."""
        with np.errstate(over="ignore", under="ignore"):
            l1 = self.alpha * self.l1_ratio * self.factors * spreads
            l2 = self.alpha * (1 - self.l1_ratio) * self.factors * spreads * spreads
        return ElasticPenalty(l1, l2, self.lower, self.upper)

    def scaled(
        self, alphas: Array, size: float, columns: Array, y_scale: float
    ) -> tuple[Array, float, Array, Array, Array]:
        """(alphas, ratio, factors, lower, upper) for columns times `columns` and a target times y_scale.

        size: what penalised weights are divided by. An l1 strength scales with size y_scale, an l2 strength with
        size^2, so their ratio changes.
        """
        with np.errstate(over="ignore", under="ignore"):
            lower, upper = (np.ascontiguousarray(bound * (y_scale / columns)) for bound in (self.lower, self.upper))
            strengths = np.minimum(alphas * size * self._unit(size, y_scale), LARGEST_PENALTY)
        ratio = self.l1_ratio * y_scale / self._unit(size, y_scale)
        return np.ascontiguousarray(strengths), ratio, np.ascontiguousarray(self.factors), lower, upper

    def within(self, state: Weights) -> Weights:
        """The state without what rounding may have put beyond a bound."""
        return Weights(np.clip(state.coef, self.lower, self.upper), state.intercept)

    def unscaled(self, alpha: float, size: float, y_scale: float) -> float:
        """The user's alpha of a scaled one."""
        return alpha / size / self._unit(size, y_scale)

    def _unit(self, size: float, y_scale: float) -> float:
        return self.l1_ratio * y_scale + (1 - self.l1_ratio) * size


class ElasticTask(ABC):
    """What solver and certificate need of the rows, in scaled units; columns are centred with an intercept."""

    source: Source
    strengths: Strengths
    fit_intercept: bool
    standardize: bool
    _last: tuple[Weights, Residual] | None = None

    @property
    @abstractmethod
    def scaling(self) -> Scaling:
        """The units of all sums."""

    @property
    @abstractmethod
    def sum_weight(self) -> float:
        """Sum of weights."""

    @property
    @abstractmethod
    def norms(self) -> Array:
        """At least the norms of the centred columns."""

    @property
    @abstractmethod
    def spreads(self) -> Array:
        """What a weight is multiplied by in the penalty, in the user's units."""

    @abstractmethod
    def null_squares(self) -> float:
        """Squares of the model without weights."""

    @abstractmethod
    def across(self, columns: Array) -> Array:
        """Products of all columns with some."""

    def products(self, columns: Array) -> Array:
        """Products of some columns with each other."""
        return self.across(columns)[columns]

    @abstractmethod
    def to_scaled(self, state: Weights) -> tuple[Array, float]:
        """Weights and intercept for scaled columns and target."""

    @abstractmethod
    def stepped(self, state: Weights, columns: Array, step: Array, level: float) -> Weights:
        """The state after a step of some scaled weights, residuals of mean `level` centred."""

    @abstractmethod
    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""

    def residual_at(self, state: Weights) -> Residual:
        """The residual statistic at a state: one pass over the rows, remembered."""
        if self._last is None or self._last[0] is not state:
            weights, intercept = self.to_scaled(state)
            none = np.zeros(len(weights))
            at = residual(self.source, self.scaling, weights, intercept, self.scaling.shift, none)
            self._last = (state, at)
        return self._last[1]

    @cached_property
    def penalty(self) -> ElasticPenalty:
        """The penalty on scaled weights, of the objective times y_scale^2."""
        p, s = self.strengths.penalty(self.spreads), self.scaling
        with np.errstate(over="ignore", under="ignore"):
            lower, upper = (bound * s.y_scale / s.scale for bound in (p.lower, p.upper))
            l1, l2 = p.l1 * s.scale * s.y_scale, p.l2 * s.scale * s.scale
            return ElasticPenalty(np.minimum(l1, LARGEST_PENALTY), np.minimum(l2, LARGEST_PENALTY), lower, upper)


@dataclass(frozen=True)
class CommonUnits:
    """A Gram statistic centred, divided by the sum of weights, in units that all columns share.

    matrix = X'X / W, moment = X'y / W, square = y'y / W. Columns are the user's times `columns`, the target is the
    user's times `y_scale`; the columns are all scaled by `size`, or all standardised, so that penalties compare.
    Columns far smaller than the others may underflow to 0: no penalty of float64 size leaves them a weight.
    """

    matrix: Array
    moment: Array
    square: float
    size: float
    columns: Array
    y_scale: float
    units: Array  # weights of scaled columns are those of these units times this

    @staticmethod
    def of(statistic: Gram, fit_intercept: bool, standardize: bool) -> CommonUnits:
        """From the sums of all rows."""
        d, s, total = statistic.n_columns, statistic.scaling, statistic.sum_weight
        mean = statistic.sums[d, [*range(d), d + 1]] / total if fit_intercept else np.zeros(d + 1)
        at = np.concatenate([np.arange(d), [d + 1]])
        about = statistic.sums[np.ix_(at, at)] / total - np.outer(mean, mean)
        size = 1.0 if standardize else float(np.min(s.scale, initial=np.inf))
        with np.errstate(under="ignore"):
            units = 1.0 / roots(np.diagonal(about)[:d]) if standardize else size / s.scale  # the latter at most 1
            matrix = np.ascontiguousarray(about[:d, :d] * units * units[:, None])
            moment = np.ascontiguousarray(about[:d, d] * units)
        square = max(float(about[d, d]), 0.0)
        return CommonUnits(matrix, moment, square, size, s.scale * units, s.y_scale, units)

    def path_arguments(self, strengths: Strengths, alphas: Array) -> tuple[Array, float, Array, Array, Array]:
        """(alphas, ratio, factors, lower, upper) for the compiled solver."""
        return strengths.scaled(alphas, self.size, self.columns, self.y_scale)


def roots(squares: Array) -> Array:
    """Standard deviations of columns; 1 for those that do not vary."""
    return np.sqrt(np.where(squares > NO_SPREAD, squares, 1.0))


class ElasticLeastSquares(GramUnits, ElasticTask):
    """The task on the Gram matrix of its columns."""

    def __init__(self, source: Source, strengths: Strengths, fit_intercept: bool, standardize: bool) -> None:
        super().__init__(gram(source, centred=fit_intercept), fit_intercept, source.names)
        self.source, self.strengths, self.standardize = source, strengths, standardize

    @property
    def scaling(self) -> Scaling:
        """The units of all sums."""
        return self.gram.scaling

    @property
    def sum_weight(self) -> float:
        """Sum of weights, scaled."""
        return self.gram.sum_weight

    @property
    def norms(self) -> Array:
        """Norms of the scaled columns."""
        return self.gram.norms

    @cached_property
    def common(self) -> CommonUnits:
        """The sums in units that penalties compare in."""
        return CommonUnits.of(self.gram, self.fit_intercept, self.standardize)

    @property
    def spreads(self) -> Array:
        """Standard deviations of the columns, or ones, in the user's units."""
        return 1.0 / self.common.columns if self.standardize else np.ones(self.gram.n_columns)

    def null_squares(self) -> float:
        """Squares of the model without weights, scaled."""
        mean, about = self.gram.target_moments()
        return about if self.fit_intercept else about + mean**2 * self.sum_weight

    def across(self, columns: Array) -> Array:
        """Products of all columns with some, centred with an intercept, scaled."""
        d = self.gram.n_columns
        matrix = np.asarray(self.gram.sums[:d, columns])
        if not self.fit_intercept:
            return matrix
        sums = self.gram.sums[d, :d]
        return matrix - np.outer(sums, sums[columns]) / self.sum_weight

    def from_common(self, weights: Array) -> Weights:
        """The state of weights in common units, with the intercept that makes the residuals' mean zero."""
        d, scaled = self.gram.n_columns, weights * self.common.units
        if not self.fit_intercept:
            return self.strengths.within(self.from_solution(scaled))
        level = (self.gram.sums[d, d + 1] - self.gram.sums[d, :d] @ scaled) / self.sum_weight
        return self.strengths.within(self.from_solution(np.concatenate([[level], scaled])))

    def stepped(self, state: Weights, columns: Array, step: Array, level: float) -> Weights:
        """The state after a step of some scaled weights, residuals of mean `level` centred."""
        solution, offset = self.to_solution(state), int(self.fit_intercept)
        change = np.zeros_like(solution)
        change[offset + columns] = step
        if offset:
            change[0] = level - float(self.gram.sums[self.gram.n_columns, columns] @ step) / self.sum_weight
        return self.strengths.within(self.from_solution(solution, change))
