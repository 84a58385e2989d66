"""Least squares with an L1 and L2 penalty and bounds on the weights.

minimise  sum_i w_i (y_i - b - x_i'w)^2 / (2 sum_i w_i) + h(w),   h = sum_j l1_j |w_j| + l2_j/2 w_j^2 on a box

On the Gram matrix of the columns, or on the columns themselves where rows are fewer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Array, Columns
from certifit.data.source import Block, Source
from certifit.penalties import ElasticPenalty
from certifit.statistics.gram import ColumnSizes, Gram, Scaling, counted, gram, refuse_no_weight
from certifit.statistics.residual import Residual, residual
from certifit.tasks.dual_least_squares import has_fewer_rows
from certifit.tasks.normal_equations import GramUnits, Weights, data_facts


@dataclass(frozen=True)
class Strengths:
    """alpha, the share of L1 in it, factors of single columns, and bounds, in the user's units."""

    alpha: float
    l1_ratio: float
    factors: Array
    lower: Array
    upper: Array

    @property
    def penalty(self) -> ElasticPenalty:
        """As strengths of single columns."""
        l1 = self.alpha * self.l1_ratio * self.factors
        l2 = self.alpha * (1 - self.l1_ratio) * self.factors
        return ElasticPenalty(l1, l2, self.lower, self.upper)

    def taken(self, columns: Array) -> Strengths:
        """Those of some columns."""
        rows = (part[columns] for part in (self.factors, self.lower, self.upper))
        return Strengths(self.alpha, self.l1_ratio, *rows)


def elastic_task(source: Source, strengths: Strengths, fit_intercept: bool) -> ElasticLeastSquares | WideElastic:
    """The task on columns' sums, or on rows where they are fewer."""
    task = WideElastic if has_fewer_rows(source) else ElasticLeastSquares
    return task(source, strengths, fit_intercept)


@dataclass(frozen=True)
class CommonUnits:
    """A Gram statistic centred, divided by the sum of weights, in units that all columns share.

    matrix = X'X / W, moment = X'y / W, square = y'y / W. A weight in these units is the user's times `weight`; an l1
    strength the user's times `l1`, an l2 strength times `l2`. Columns far smaller than the others may underflow to 0:
    no penalty of float64 size leaves them a weight.
    """

    matrix: Array
    moment: Array
    square: float
    weight: float
    l1: float
    l2: float
    columns: Array  # weights of scaled columns are those of these units times this

    @staticmethod
    def of(statistic: Gram, fit_intercept: bool) -> CommonUnits:
        """From the sums of all rows."""
        d, s, total = statistic.n_columns, statistic.scaling, statistic.sum_weight
        mean = statistic.sums[d, [*range(d), d + 1]] / total if fit_intercept else np.zeros(d + 1)
        at = np.concatenate([np.arange(d), [d + 1]])
        about = statistic.sums[np.ix_(at, at)] / total - np.outer(mean, mean)
        size = float(np.min(s.scale, initial=np.inf)) if d else 1.0
        with np.errstate(under="ignore"):
            unit = size / s.scale  # at most 1
            matrix = np.ascontiguousarray(about[:d, :d] * unit * unit[:, None])
            moment = np.ascontiguousarray(about[:d, d] * unit)
        square = max(float(about[d, d]), 0.0)
        return CommonUnits(matrix, moment, square, s.y_scale / size, s.y_scale * size, size * size, unit)

    def path_arguments(self, strengths: Strengths, alphas: Array) -> tuple[Array, float, Array, Array, Array]:
        """(alphas, ratio, factors, lower, upper) for the compiled solver."""
        l1, l2 = strengths.l1_ratio * self.l1, (1 - strengths.l1_ratio) * self.l2
        ratio = l1 / (l1 + l2)
        bounds = (np.ascontiguousarray(bound * self.weight) for bound in (strengths.lower, strengths.upper))
        return np.ascontiguousarray(alphas * (l1 + l2)), ratio, np.ascontiguousarray(strengths.factors), *bounds


class ElasticLeastSquares(GramUnits):
    """The task of rows that are at least as many as columns."""

    def __init__(self, source: Source, strengths: Strengths, fit_intercept: bool) -> None:
        super().__init__(gram(source, centred=fit_intercept), fit_intercept, source.names)
        self.source = source
        self.strengths = strengths

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

    def null_squares(self) -> float:
        """Squares of the model without weights, scaled."""
        mean, about = self.gram.target_moments()
        return about if self.fit_intercept else about + mean**2 * self.sum_weight

    def residual_at(self, state: Weights) -> Residual:
        """The residual statistic at a state: one pass over the rows."""
        weights, intercept = self.to_scaled(state)
        return residual(self.source, self.scaling, weights, intercept, self.scaling.shift, np.zeros(len(weights)))

    def products(self, columns: Array) -> Array:
        """Products of some columns, centred with an intercept, scaled."""
        d = self.gram.n_columns
        sums = self.gram.sums[d, columns]
        matrix = self.gram.sums[np.ix_(columns, columns)]
        return matrix - np.outer(sums, sums) / self.sum_weight if self.fit_intercept else matrix

    def from_common(self, weights: Array, common: CommonUnits) -> Weights:
        """The state of weights in common units, with the intercept that makes the residuals' mean zero."""
        d, scaled = self.gram.n_columns, weights * common.columns
        if not self.fit_intercept:
            return self.from_solution(scaled)
        level = (self.gram.sums[d, d + 1] - self.gram.sums[d, :d] @ scaled) / self.sum_weight
        return self.from_solution(np.concatenate([[level], scaled]))


class WideElastic:
    """The task of fewer rows than columns; it gathers all rows by columns."""

    def __init__(self, source: Source, strengths: Strengths, fit_intercept: bool) -> None:
        self.source, self.strengths, self.fit_intercept = source, strengths, fit_intercept
        rows = source.gather()
        self.n_rows = rows.n_rows
        self.block: Block = counted(rows)
        if self.block.y is None:
            raise ValueError("least squares needs a target")
        sizes = ColumnSizes.of(self.block).powers()
        d = source.n_features
        size = float(np.min(sizes.columns, initial=np.inf))
        # One power of two for all columns, so that a penalty keeps its meaning.
        self.scaling = Scaling(np.full(d, size), np.zeros(d), float(sizes.target), 0.0, float(sizes.weight))
        self.y = np.ascontiguousarray(self.block.y * self.scaling.y_scale)
        weight = np.ones(len(self.y)) if self.block.weight is None else self.block.weight
        self.weight = np.ascontiguousarray(weight * self.scaling.weight_scale)
        self.sum_weight = float(self.weight.sum())
        refuse_no_weight(self.sum_weight)

    def columns(self) -> Array | sp.csc_array:
        """X scaled, by columns: Fortran order, or CSC."""
        X, size = self.block.X, self.scaling.scale[0]
        if isinstance(X, Columns):
            X = X.toarray()
        if sp.issparse(X):
            return sp.csc_array(X.astype(np.float64) * size)
        return np.asfortranarray(np.asarray(X, dtype=np.float64) * size)

    @property
    def norms(self) -> Array:
        """Norms of the scaled columns."""
        X = self.columns()
        squares = X.multiply(X).T @ self.weight if sp.issparse(X) else self.weight @ (X * X)
        return np.sqrt(np.asarray(squares))

    def null_squares(self) -> float:
        """Squares of the model without weights, scaled."""
        mean = float(self.weight @ self.y) / self.sum_weight if self.fit_intercept else 0.0
        return float(self.weight @ (self.y - mean) ** 2)

    def residual_at(self, state: Weights) -> Residual:
        """The residual statistic at a state: one pass over the rows."""
        weights, intercept = self.to_scaled(state)
        return residual(self.source, self.scaling, weights, intercept, self.scaling.shift, np.zeros(len(weights)))

    def products(self, columns: Array) -> Array:
        """Products of some columns, centred with an intercept, scaled."""
        X = self.columns()[:, columns]
        dense = X.toarray() if sp.issparse(X) else X
        if self.fit_intercept:
            dense = dense - self.weight @ dense / self.sum_weight
        return np.asarray(dense.T @ (self.weight[:, None] * dense))

    def to_scaled(self, state: Weights) -> tuple[Array, float]:
        """Weights and intercept for scaled columns and target."""
        s = self.scaling
        return state.coef / s.scale * s.y_scale, state.intercept * s.y_scale

    def from_scaled(self, weights: Array, intercept: float) -> Weights:
        """The state with these scaled weights."""
        s = self.scaling
        return Weights(weights * s.scale / s.y_scale, float(intercept) / s.y_scale)

    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""
        mean = float(self.weight @ self.y) / self.sum_weight
        about = float(self.weight @ (self.y - mean) ** 2)
        return data_facts(self.n_rows, self.sum_weight, self.scaling, mean, about)
