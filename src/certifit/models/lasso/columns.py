"""Lasso and elastic net on the columns themselves: where rows are fewer, or columns too many to multiply."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from certifit.data.by_column import csc
from certifit.data.columns import Array, Columns
from certifit.data.source import Block, Source
from certifit.data.user_input import refuse_nonfinite
from certifit.models.lasso.task import GramLasso, LassoTask, PenaltyUnits, Strengths, roots
from certifit.models.least_squares.dual import has_fewer_rows, is_moderate
from certifit.models.least_squares.normal_equations import Weights, data_facts
from certifit.runtime import core, n_threads
from certifit.statistics import double_double as dd
from certifit.statistics.gram import ColumnSizes, Scaling, counted, refuse_no_weight
from certifit.statistics.moments import column_spreads
from certifit.statistics.residual import UNIT, Residual, residual_by_column

STILL = 1e-24  # share of the square of a mean below which a variance is rounding
FULL = 0.5  # share of stored entries above which columns are faster, and centred more exactly, as dense ones
PIECE = 256  # columns that are read at a time
MOST_PRODUCTS = 5000  # most columns for which all products are summed


def elastic_task(source: Source, strengths: Strengths, fit_intercept: bool, standardize: bool) -> LassoTask:
    """The task on products of columns, or on the columns where rows are fewer or columns too many."""
    # Without a penalty no column is left out, so there is no working set of columns.
    is_by_column = works_on_columns(source) and (strengths.alpha > 0 or source.n_features > MOST_PRODUCTS)
    task = ColumnLasso if is_by_column else GramLasso
    return task(source, strengths, fit_intercept, standardize)


def works_on_columns(source: Source) -> bool:
    """Whether a fit gathers the columns instead of their products."""
    return source.n_features > MOST_PRODUCTS or has_fewer_rows(source)


class ColumnLasso(LassoTask):
    """The task on columns; it gathers all rows."""

    def __init__(self, source: Source, strengths: Strengths, fit_intercept: bool, standardize: bool) -> None:
        self.source, self.strengths = source, strengths
        self.fit_intercept, self.standardize = fit_intercept, standardize
        self.all_rows = source.gather()
        self.n_rows = self.all_rows.n_rows
        self.block: Block = counted(self.all_rows)
        if self.block.y is None:
            raise ValueError("least squares needs a target")
        weight = np.ones(self.block.n_rows) if self.block.weight is None else self.block.weight
        self._sums = self._column_sums(weight) if self._is_by_column else None
        self._sizes = ColumnSizes.of(self.block, None if self._sums is None else self._sums[0])
        self._scaling = self._one_scale()
        self._scaling = replace(self._scaling, shift=self._shifts())
        self.y = np.ascontiguousarray(self.block.y * self._scaling.y_scale)
        self.weight = np.ascontiguousarray(weight * self._scaling.weight_scale)
        self._sum_weight = float(self.weight.sum())
        refuse_no_weight(self._sum_weight)

    @property
    def scaling(self) -> Scaling:
        """The units of all sums."""
        return self._scaling

    @property
    def sum_weight(self) -> float:
        """Sum of weights, scaled."""
        return self._sum_weight

    @cached_property
    def means(self) -> Array:
        """Means of the scaled columns."""
        if not self._is_by_column:
            return np.asarray(self._scaled.T @ self.weight) / self._sum_weight
        return self._moments[0] / self._sum_weight

    @property
    def spreads(self) -> Array:
        """Standard deviations of the columns, or ones, in the user's units."""
        return self.units / self._scaling.scale if self.standardize else np.ones(len(self.units))

    @cached_property
    def penalty_units(self) -> PenaltyUnits:
        """The units of `columns` and `y`."""
        s = self._scaling
        return PenaltyUnits(s.scale / self.units, s.y_scale, 1.0 if self.standardize else float(s.scale[0]))

    @cached_property
    def columns(self) -> Any:
        """X over its units, by columns: Fortran order, or CSC."""
        X = self._scaled
        if not self.standardize:
            return X
        if sp.issparse(X):
            return sp.csc_array((X.data / np.repeat(self.units, np.diff(X.indptr)), X.indices, X.indptr), shape=X.shape)
        return X / self.units

    @cached_property
    def units(self) -> Array:
        """Standard deviations of the scaled columns, or ones."""
        if not self.standardize:
            return np.ones(self.source.n_features)
        return column_spreads(self.source, self.fit_intercept) * self._scaling.scale

    def spreads_of(self, weight: Array) -> Array:
        """Standard deviations of the scaled columns over rows of these weights, about 0 without an intercept."""
        X, share = self._scaled, weight / weight.sum()
        units = self._sizes.powers().columns / self._scaling.scale  # powers of two: squares stay in range
        mean = np.asarray(X.T @ share) * units * self.fit_intercept
        variance = _sparse_variance if sp.issparse(X) else _dense_variance
        squares = variance(X, units, mean, share)
        return np.where(squares > 0, roots(squares) / units, self._scaling.scale)

    @cached_property
    def _by_column(self) -> sp.csc_array:
        """Sparse rows by column: as the user gave them, where that is so."""
        return sp.csc_array(getattr(self.block.X, "by_column", self.block.X), dtype=np.float64)

    @cached_property
    def _scaled(self) -> Any:
        """X scaled, by columns; X itself where it lies so already."""
        X, size = self.block.X, self._scaling.scale[0]
        if isinstance(X, Columns) or (sp.issparse(X) and not self._is_by_column):
            X = X.toarray()
        if self._is_by_column:
            by_column = self._by_column if size == 1 else self._by_column * size
            shift = self._scaling.shift
            if not shift.any():
                return by_column
            moved = by_column.data - np.repeat(shift, np.diff(by_column.indptr))
            return sp.csc_array((moved, by_column.indices, by_column.indptr), shape=by_column.shape)
        by_column = np.asfortranarray(X, dtype=np.float64)
        return by_column if size == 1 else by_column * size

    @cached_property
    def norms(self) -> Array:
        """Norms of the scaled columns, or what their largest entries allow: they only bound roundings."""
        root = np.sqrt(self._sum_weight)
        if not self._is_by_column:
            return np.asarray(self._sizes.columns * self._scaling.scale * root)
        return np.asarray(np.sqrt(self._moments[1]) + np.abs(self._scaling.shift) * root)

    @cached_property
    def _is_by_column(self) -> bool:
        """Whether the columns are read as sparse ones."""
        X = self.block.X
        if not sp.issparse(X):
            return False
        return bool(getattr(X, "by_column", X).nnz <= FULL * X.shape[0] * X.shape[1])

    def _column_sums(self, weight: Array) -> tuple[Array, Array, Array]:
        """Largest sizes, weighted sums and weighted squares of the columns as they were given."""
        sizes, sums, squares = core.column_sums(csc(self._by_column), np.ascontiguousarray(weight), n_threads())
        return sizes, sums, squares

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        """Weighted sums and squares of the scaled columns."""
        s = self._scaling
        if self._sums is not None and s.scale[0] == 1 and s.weight_scale == 1 and not s.shift.any():
            return self._sums[1:]
        _, sums, squares = core.column_sums(csc(self._scaled), self.weight, n_threads())
        return sums, squares

    def _residual(self, weights: Array, intercept: float) -> Residual:
        if not self._is_by_column or self.block.y is None:
            return super()._residual(weights, intercept)
        return residual_by_column(self._by_column, self.block.y, self.block.weight, self._scaling, weights, intercept)

    def null_squares(self) -> float:
        """Squares of the model without weights, scaled."""
        mean = self._mean(self.y) if self.fit_intercept else 0.0
        return float(self.weight @ (self.y - mean) ** 2)

    def null_floor(self) -> float:
        """The same, at most, after all roundings."""
        unit = (len(self.y) + 8) * UNIT
        size = float(np.sqrt(self.weight @ self.y**2))
        return max(float(np.sqrt(self.null_squares())) * (1 - unit) - 2 * unit * size, 0.0) ** 2

    def across(self, columns: Array) -> Array:
        """Products of all columns with some, centred with an intercept, scaled."""
        return self._products(self._scaled, self.means, columns)

    def products(self, columns: Array) -> Array:
        """Products of some columns with each other."""
        return self._products(self._scaled[:, columns], self.means[columns], columns)

    def _products(self, left: Any, means: Array, columns: Array) -> Array:
        """Products of all columns of `left`, of these means, with some of X; sparse ones are not expanded."""
        right, mean = self._scaled[:, columns], self.means[columns]
        if not sp.issparse(right):
            # Products with a centred column are centred.
            centred = right - mean if self.fit_intercept else right
            return np.asarray(left.T @ (self.weight[:, None] * centred))
        weighted = sp.csc_array((right.data * self.weight[right.indices], right.indices, right.indptr), right.shape)
        products = np.asarray((left.T @ weighted).toarray())
        return products - self._sum_weight * np.outer(means, mean) if self.fit_intercept else products

    def to_scaled(self, state: Weights) -> tuple[Array, float]:
        """Weights and intercept for scaled columns and target."""
        return self._scaling.of_state(state.coef, state.intercept)

    def from_scaled(self, weights: Array, intercept: float, places: Array | None = None) -> Weights:
        """The state with these scaled weights, of all columns or of those at some places."""
        s, coef = self._scaling, np.zeros(self.source.n_features)
        where = slice(None) if places is None else places
        with np.errstate(over="ignore"):
            coef[where] = weights * s.scale[where] / s.y_scale
        if not np.isfinite(coef[where]).all():
            name = self.source.names[int(np.flatnonzero(~np.isfinite(coef))[0])]
            raise ValueError(
                f"The coefficient of feature {name!r} exceeds the largest float64: its values are too small. "
                "Multiply the column by 1e200 or so, or leave it out."
            )
        if s.shift.any():
            hi, lo = dd.dot(weights, np.ascontiguousarray(s.shift[where]))
            total, error = dd.two_sum(float(intercept), -hi)
            intercept = total + (error - lo)
        return self.strengths.within(Weights(coef, float(intercept) / s.y_scale))

    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""
        mean = self._mean(self.y)
        about = float(self.weight @ (self.y - mean) ** 2)
        return data_facts(self.n_rows, self._sum_weight, self._scaling, mean, about)

    def _mean(self, values: Array) -> float:
        return float(self.weight @ values) / self._sum_weight

    def _one_scale(self) -> Scaling:
        """One power of two for all columns, so that a penalty keeps its meaning."""
        if not np.isfinite(self._sizes.columns).all():
            refuse_nonfinite(self.source)
        powers, d = self._sizes.powers(), self.source.n_features
        size = float(np.min(powers.columns, initial=np.inf))
        if is_moderate(np.array(size)):  # squares are far from the ends of float64: no copy is needed
            size = 1.0
        return Scaling(np.full(d, size), np.zeros(d), float(powers.target), 0.0, float(powers.weight))

    def _shifts(self) -> Array:
        """Means of sparse columns without a zero, where subtracting them is exact; else 0: zeros stay unstored."""
        shift = np.zeros(self.source.n_features)
        if not (self.fit_intercept and self._is_by_column):
            return shift
        by_column, size = self._by_column, self._scaling.scale[0]
        for j in np.flatnonzero(np.diff(by_column.indptr) == self.block.n_rows):
            entries = by_column.data[by_column.indptr[j] : by_column.indptr[j + 1]] * size
            shift[j] = core.column_shifts([("dense", entries[:, None])], np.ones(1), True)[0]
        return shift


def _dense_variance(X: Array, units: Array, mean: Array, share: Array) -> Array:
    """Mean of (units x - mean)^2 of every column; 0 for one that is constant where rows count."""
    out = np.empty(X.shape[1])
    counts = share > 0
    for begin in range(0, X.shape[1], PIECE):
        at = slice(begin, begin + PIECE)
        part = X[counts, at] * units[at]
        out[at] = share[counts] @ (part - mean[at]) ** 2
        out[at][(part == part[:1]).all(axis=0) & (mean[at] != 0)] = 0.0
    return out


def _sparse_variance(X: sp.csr_array | sp.csc_array, units: Array, mean: Array, share: Array) -> Array:
    """The same of sparse columns; what is rounding relative to the mean is 0."""
    per_entry = np.diff(X.indptr)
    weight = share[X.indices]
    apart = weight * (X.data * np.repeat(units, per_entry) - np.repeat(mean, per_entry)) ** 2
    stored, squares = (
        np.bincount(np.repeat(np.arange(X.shape[1]), per_entry), values, X.shape[1]) for values in (weight, apart)
    )
    absent = np.where(per_entry < X.shape[0], np.maximum(1.0 - stored, 0.0), 0.0)
    variance = squares + absent * mean**2
    return np.where(variance > STILL * mean**2, variance, 0.0)
