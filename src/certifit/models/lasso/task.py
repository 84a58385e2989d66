"""Least squares with an L1 and L2 penalty and bounds on the weights.

minimise  sum_i w_i (y_i - b - x_i'w)^2 / (2 sum_i w_i) + h(w),   h = sum_j l1_j |w_j| + l2_j/2 w_j^2 on a box

Here on the Gram matrix of the columns; models/lasso/columns.py works on the columns themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.mathematics.penalties import ElasticPenalty
from certifit.models.least_squares.normal_equations import LARGEST_PENALTY, GramUnits, Weights
from certifit.runtime import core
from certifit.statistics.gram import NO_SPREAD, STILL_SHARE, Gram, Scaling, centred_gram, gram
from certifit.statistics.moments import (
    MOST_ABOUT,
    SPREAD_ERROR,
    refuse_small_spreads,
    sharp_spreads,
)
from certifit.statistics.residual import MATRIX_ERROR, TINY, Residual, residual

if TYPE_CHECKING:
    from certifit.models.lasso.certificate import Gap

NORM_ERROR = 2.0**-40  # of a norm about 0: the root of what twofold sums of squares lose, and more


@dataclass(frozen=True)
class PenaltyUnits:
    """Columns are the user's times `columns`, the target is the user's times `y_scale`.

    An l1 strength is the user's times size y_scale, an l2 strength times size^2. size: the scale of columns all scaled
    alike, 1 of standardised ones.
    """

    columns: Array
    y_scale: float
    size: float


@dataclass(frozen=True)
class Strengths:
    """alpha, the share of L1 in it, factors of single columns, and bounds, in the user's units."""

    alpha: float
    l1_ratio: float
    factors: Array
    lower: Array
    upper: Array

    def penalty(self, spreads: Array) -> ElasticPenalty:
        """As strengths of single columns: l1 those of weights times spreads, l2 of their squares.

        spreads: times the scale of the columns for strengths on scaled ones.
        """
        with np.errstate(over="ignore", under="ignore"):
            l1 = self.alpha * self.l1_ratio * self.factors * spreads
            l2 = self.alpha * (1 - self.l1_ratio) * self.factors * spreads * spreads
        return ElasticPenalty(l1, l2, self.lower, self.upper)

    def scaled(self, alphas: Array, units: PenaltyUnits) -> tuple[Array, float, Array, Array, Array]:
        """(alphas, ratio, factors, lower, upper) for the columns and the target of some units.

        An l1 and an l2 strength scale differently, so their ratio changes.
        """
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            move = units.y_scale / units.columns  # 0 or infinite where weights of scaled columns are: no bound is moved
            lower, upper = (self.lower, self.upper) if self.is_free else self._moved_bounds(move)
            mixed = self._mixed(units)
            strengths = np.minimum(alphas * units.size * mixed, LARGEST_PENALTY)
        ratio = self.l1_ratio * units.y_scale / mixed
        if self.l1_ratio > 0:  # so small an l1 part changes no weight, but must not vanish
            ratio = max(ratio, TINY)
        return np.ascontiguousarray(strengths), ratio, np.ascontiguousarray(self.factors), lower, upper

    @staticmethod
    def plain(alpha: float, n_columns: int) -> Strengths:
        """Squares alone, alike for all columns."""
        free = np.full(n_columns, np.inf)
        return Strengths(alpha, 0.0, np.ones(n_columns), -free, free)

    @cached_property
    def is_free(self) -> bool:
        """Whether no column has a bound."""
        return bool((self.lower == -np.inf).all() and (self.upper == np.inf).all())

    def _moved_bounds(self, move: Array) -> Iterator[Array]:
        """Bounds times what weights are; 0 and infinity stay."""
        for bound in (self.lower, self.upper):
            is_same = (bound == 0) | np.isinf(bound)
            yield np.ascontiguousarray(np.where(is_same, bound, bound * move))

    def within(self, state: Weights) -> Weights:
        """The state without what rounding may have put beyond a bound."""
        if self.is_free:
            return state
        return Weights(np.clip(state.coef, self.lower, self.upper), state.intercept)

    def unscaled(self, alpha: float, units: PenaltyUnits) -> float:
        """The user's alpha of a scaled one."""
        return alpha / units.size / self._mixed(units)

    def _mixed(self, units: PenaltyUnits) -> float:
        return self.l1_ratio * units.y_scale + (1 - self.l1_ratio) * units.size


class LassoTask(ABC):
    """What solver and certificate need of the rows, in scaled units; columns are centred with an intercept."""

    source: Source
    strengths: Strengths
    fit_intercept: bool
    standardize: bool
    _last: tuple[Weights, Residual] | None = None
    proven: tuple[tuple[Weights, float], Gap] | None = None  # of the last state and tolerance

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
    def norms_about(self) -> Array:
        """At least the norms of the columns about their shifts, which the roundings of `means` are relative to."""
        return self.norms

    @property
    @abstractmethod
    def means(self) -> Array:
        """Means of the columns, shifted and scaled."""

    @property
    def means_error(self) -> Array:
        """How far `means` can be off beyond their roundings."""
        return np.zeros(self.source.n_features)

    @property
    @abstractmethod
    def spreads(self) -> Array:
        """What a weight is multiplied by in the penalty, in the user's units."""

    @property
    def strength_error(self) -> float:
        """How far strengths of the penalty can be off, relative: those of squares have two spreads in them."""
        if not self.standardize:
            return 0.0
        return SPREAD_ERROR * (1.0 if self.strengths.l1_ratio == 1 else 2.0)

    @abstractmethod
    def null_squares(self) -> float:
        """Squares of the model without weights."""

    @abstractmethod
    def null_floor(self) -> float:
        """The same, at most, after all roundings: 0 for a target that may be constant."""

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
    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""

    def residual_at(self, state: Weights) -> Residual:
        """The residual statistic at a state: one pass over the rows, remembered."""
        if self._last is None or not self._last[0].is_same(state):
            self._last = (state, self._residual(*self.to_scaled(state)))
        return self._last[1]

    def _residual(self, weights: Array, intercept: float) -> Residual:
        none = np.zeros(len(weights))
        return residual(self.source, self.scaling, weights, intercept, self.scaling.shift, none)

    def penalty_beyond(self, state: Weights) -> float:
        """At most what the penalty at a state is above `penalty`, of columns where a strength was kept finite."""
        cut = (self.penalty.l1 >= LARGEST_PENALTY) | (self.penalty.l2 >= LARGEST_PENALTY)
        places = np.flatnonzero(cut & (state.coef != 0))
        if not len(places):
            return 0.0
        y_scale = self.scaling.y_scale
        with np.errstate(over="ignore", under="ignore"):
            p = self.strengths.penalty(self.spreads * np.abs(state.coef * y_scale))
            beyond = np.sum(p.l1[places]) * y_scale + np.sum(p.l2[places]) / 2
        return float(min(beyond, LARGEST_PENALTY))

    @cached_property
    def penalty(self) -> ElasticPenalty:
        """The penalty on scaled weights, of the objective times y_scale^2."""
        s = self.scaling
        with np.errstate(over="ignore", under="ignore"):
            p = self.strengths.penalty(self.spreads * s.scale)  # squares of 1e-180 would vanish
            lower, upper = (bound * s.y_scale / s.scale for bound in (p.lower, p.upper))
            l1 = np.minimum(p.l1 * s.y_scale, LARGEST_PENALTY)
            return ElasticPenalty(l1, np.minimum(p.l2, LARGEST_PENALTY), lower, upper)


@dataclass(frozen=True)
class CommonUnits:
    """A Gram statistic centred, divided by the sum of weights, in units that all columns share.

    matrix = X'X / W, moment = X'y / W, square = y'y / W. Columns are all scaled alike, or all standardised, so that
    penalties compare. Columns far smaller than the others may underflow to 0: no penalty of float64 size leaves them a
    weight.
    """

    matrix: Array
    moment: Array
    square: float
    units: PenaltyUnits
    shares: Array  # weights of scaled columns are those of these units times this

    @staticmethod
    def of(statistic: Gram, fit_intercept: bool, standardize: bool, spreads: Array | None = None) -> CommonUnits:
        """From the sums of all rows. spreads: of the columns, in the user's units; None: those of the sums."""
        d, s = statistic.n_columns, statistic.scaling
        products, with_target, variance = core.centred_products(
            np.ascontiguousarray(statistic.sums), bool(fit_intercept), NO_SPREAD
        )
        square = float(variance[d])
        if standardize:
            spreads = sum_spreads(s, variance[:d]) if spreads is None else spreads
            with np.errstate(over="ignore", under="ignore"):
                shares = np.where(variance[:d] == 0, 1.0, 1.0 / (spreads * s.scale))
            units = PenaltyUnits(1.0 / spreads, s.y_scale, 1.0)
        else:
            size = float(np.min(s.scale, initial=np.inf))
            units = PenaltyUnits(np.full(d, size), s.y_scale, size)
            shares = units.size / s.scale  # at most 1
        with np.errstate(under="ignore"):
            matrix, moment = products * shares * shares[:, None], with_target * shares
        return CommonUnits(matrix, moment, square, units, shares)

    def path_arguments(self, strengths: Strengths, alphas: Array) -> tuple[Array, float, Array, Array, Array]:
        """(alphas, ratio, factors, lower, upper) for the compiled solver."""
        return strengths.scaled(alphas, self.units)


def sum_spreads(s: Scaling, variances: Array) -> Array:
    """Spreads of the columns in the user's units, of scaled variances; 1 for one of 0."""
    return np.where(variances > 0, roots(variances) / s.scale, 1.0)


def roots(variances: Array) -> Array:
    """Standard deviations; 1 for what does not vary."""
    return np.sqrt(np.where(variances > 0, variances, 1.0))


class GramLasso(GramUnits, LassoTask):
    """The task on the Gram matrix of its columns."""

    def __init__(self, source: Source, strengths: Strengths, fit_intercept: bool, standardize: bool) -> None:
        statistic = centred_gram(source) if fit_intercept else gram(source, centred=False)
        super().__init__(statistic, fit_intercept, source.names)
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

    @property
    def norms_about(self) -> Array:
        """Norms about the shifts, raised by what twofold sums about other shifts may have hidden."""
        return np.asarray(np.sqrt(np.maximum(np.diagonal(self.gram.sums)[:-2], 0.0)) + NORM_ERROR * self.norms)

    @property
    def means(self) -> Array:
        """Means of the columns, shifted and scaled."""
        d = self.gram.n_columns
        return np.asarray(self.gram.sums[d, :d]) / self.sum_weight

    @property
    def means_error(self) -> Array:
        """Of columns that twofold sums take for constant, which may vary by as little as the root of their rounding."""
        d = self.gram.n_columns
        is_still = self.gram.sums.diagonal()[:d] == 0
        if not is_still.any():
            return np.zeros(d)
        return np.asarray(is_still * np.sqrt(STILL_SHARE) * self.norms / np.sqrt(self.sum_weight))

    @cached_property
    def common(self) -> CommonUnits:
        """The sums in units that penalties compare in."""
        return CommonUnits.of(self.gram, self.fit_intercept, self.standardize, self.spreads)

    @cached_property
    def spreads(self) -> Array:
        """Standard deviations of the columns, or ones, in the user's units; from the rows where sums lose digits."""
        d, g = self.gram.n_columns, self.gram
        if not self.standardize:
            return np.ones(d)
        squares, sums = np.diagonal(g.sums)[:d], g.sums[d, :d]
        about = squares - sums * (sums / g.sum_weight) if self.fit_intercept else squares
        spreads = sum_spreads(self.scaling, np.maximum(about, 0.0) / g.sum_weight)
        rough = (squares > MOST_ABOUT * about) & self.fit_intercept
        rough |= self.means_error > 0  # taken for constant, and may vary all the same
        spreads[rough] = sharp_spreads(self.source, np.flatnonzero(rough))
        refuse_small_spreads(spreads, self.names)
        return spreads

    def null_squares(self) -> float:
        """Squares of the model without weights, scaled."""
        mean, about = self.gram.target_moments()
        return about if self.fit_intercept else about + mean**2 * self.sum_weight

    def null_floor(self) -> float:
        """The same, at most, after all roundings."""
        d = self.gram.n_columns
        return max(self.null_squares() - 4 * MATRIX_ERROR * float(self.gram.sums[d + 1, d + 1]), 0.0)

    def across(self, columns: Array) -> Array:
        """Products of all columns with some, centred with an intercept, scaled."""
        d = self.gram.n_columns
        matrix = np.asarray(self.gram.sums[:d, columns])
        if not self.fit_intercept:
            return matrix
        sums = self.gram.sums[d, :d]
        return np.asarray(matrix - sums[:, None] * sums[columns] / self.sum_weight)

    def from_common(self, weights: Array) -> Weights:
        """The state of weights in common units, with the intercept that makes the residuals' mean zero."""
        d, scaled = self.gram.n_columns, weights * self.common.shares
        if not self.fit_intercept:
            return self.strengths.within(self.from_solution(scaled))
        level = (self.gram.sums[d, d + 1] - self.gram.sums[d, :d] @ scaled) / self.sum_weight
        return self.strengths.within(self.from_solution(np.concatenate([[level], scaled])))
