"""Quantile regression on gathered rows: what is minimised, its units, and residuals to some 100 bits.

    sum_i a_i rho(y_i - b - x_i'w) / W  +  alpha |w|_1,   rho(r) = q r if r >= 0 else (q - 1) r,   W = sum_i a_i

In scaled units, powers of two that bring columns, target and weights near 1, all of it is times W y_scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from certifit.data.columns import Array, Columns
from certifit.data.source import Block, Source
from certifit.data.user_input import refuse_nonfinite
from certifit.models.least_squares.normal_equations import Weights, data_facts, refuse_overflow
from certifit.models.least_squares.task import LeastSquares
from certifit.models.quantile.program import Matrix, Program
from certifit.runtime import check_memory, core, n_threads
from certifit.statistics import double_double as dd
from certifit.statistics.gram import ColumnSizes, Scaling, counted, refuse_no_weight
from certifit.statistics.moments import SPREAD_ERROR, column_spreads
from certifit.statistics.remainders import Remainders
from certifit.statistics.residual import TINY, TWOFOLD_UNIT, UNIT, twofold_unit

COPIES = 4  # copies of the rows in float64 that a fit needs at the same time
NEGLIGIBLE = 1e-13  # share of the rows' largest pull on a weight: a weaker penalty is left to the certificate
MOST_WIDE = 1000  # columns, of fewer rows, up to which all their products are summed
NO_RANK = 1e-11  # share of the largest pivot below which a pivot is 0


@dataclass(frozen=True)
class Point:
    """A state in scaled units: residuals to twofold precision, rounded, and the size of what they are made of.

    r is off by at most `error`; size_i = |y_i| + |x_i|'|w| + |b|.
    """

    weights: Array
    intercept: float
    r: Array
    error: Array
    size: Array


class QuantileTask:
    """All rows in memory; rows of weight 0 are no rows."""

    def __init__(
        self, source: Source, quantile: float, alpha: float, fit_intercept: bool, standardize: bool = False
    ) -> None:
        self.source, self.quantile, self.alpha = source, quantile, alpha
        self.fit_intercept, self.standardize = fit_intercept, standardize
        rows = source.gather()
        self.n_rows = rows.n_rows
        self.block: Block = counted(rows)
        if self.block.y is None:
            raise ValueError("QuantileRegressor needs a target.")
        n, d = self.block.n_rows, source.n_features
        entries = self.block.X.nnz if sp.issparse(self.block.X) else n * d
        check_memory(
            8.0 * (COPIES * entries + (d + 1) ** 2 * 3 + 20 * n), "Quantile regression on these rows", "Sample rows."
        )
        sizes = ColumnSizes.of(self.block)
        if not (np.isfinite(sizes.columns).all() and np.isfinite(sizes.target)):
            refuse_nonfinite(source)
        powers = sizes.powers()
        self.scaling = Scaling(powers.columns, np.zeros(d), float(powers.target), 0.0, float(powers.weight))
        weight = np.ones(n) if self.block.weight is None else np.asarray(self.block.weight, dtype=np.float64)
        self.weight: Array = weight * self.scaling.weight_scale
        self.sum_weight = float(self.weight.sum())
        refuse_no_weight(self.sum_weight)
        self.y: Array = np.asarray(self.block.y, dtype=np.float64) * self.scaling.y_scale

    @cached_property
    def X(self) -> Matrix:
        """The scaled rows, dense or CSR: exact, short of underflow."""
        X, scale = self.block.X, self.scaling.scale
        if sp.issparse(X):
            taken = sp.csr_array(X, dtype=np.float64, copy=True)
            taken.data *= scale[taken.indices]
            return taken
        return np.asarray(X.toarray() if isinstance(X, Columns) else X, dtype=np.float64) * scale

    @cached_property
    def pull(self) -> Array:
        """What the penalty takes per unit of every scaled weight, at most the largest float64."""
        with np.errstate(over="ignore"):
            pull = self.alpha * self.sum_weight * self._penalty_units()
        return np.minimum(pull, np.finfo(float).max)

    def _penalty_units(self) -> Array:
        """What makes a scaled weight one that the penalty counts: the scale, or the spread of the scaled column."""
        if not self.standardize:
            return self.scaling.scale
        return column_spreads(self.source, self.fit_intercept) * self.scaling.scale

    @property
    def strength_error(self) -> float:
        """How far the pulls can be off, relative."""
        return SPREAD_ERROR if self.standardize and self.alpha > 0 else 0.0

    @cached_property
    def reach(self) -> Array:
        """sum_i a_i |x_ij|: no dual point pulls a weight with more."""
        return np.asarray(self.weight @ abs(self.X) if not sp.issparse(self.X) else abs(self.X).T @ self.weight)

    @cached_property
    def is_penalised(self) -> bool:
        """Whether the penalty is one that arithmetic sees; each column then has a row of its own in the program."""
        return bool(self.alpha > 0 and (self.pull >= NEGLIGIBLE * self.reach).all())

    @cached_property
    def columns(self) -> LeastSquares | None:
        """The least-squares task of the same columns, which knows how they depend on each other; None for few rows."""
        is_wide = self.block.n_rows < self.source.n_features > MOST_WIDE
        if self.is_penalised or is_wide:
            return None
        return LeastSquares(self.source, 0.0, self.fit_intercept)

    @property
    def remainders(self) -> Remainders | None:
        """What is left of the columns that repeat others."""
        return None if self.columns is None else self.columns.remainders

    @cached_property
    def kept(self) -> Array:
        """Columns that may have a weight: without a penalty those that no others make redundant."""
        d, first = self.source.n_features, int(self.fit_intercept)
        if self.is_penalised or d == 0:
            return np.arange(d)
        if self.columns is not None:
            places = self.columns.factor.kept
            return np.sort(places[places >= first][: self.block.n_rows - first] - first)
        dense = self.X.toarray() if sp.issparse(self.X) else self.X
        centred = dense - dense.mean(axis=0) if first else dense
        _, triangle, order = scipy.linalg.qr(centred, mode="economic", pivoting=True)
        pivots = np.abs(np.diagonal(triangle))
        rank = int(np.count_nonzero(pivots > NO_RANK * pivots.max(initial=0.0)))
        return np.sort(order[: min(rank, self.block.n_rows - first)])

    @property
    def rank(self) -> int:
        """Number of columns that are not set aside."""
        return len(self.kept)

    def program(self, shift: Array, target: Array) -> Program:
        """The linear program of the kept columns, less a shift of each, with another target."""
        X = self.X if len(self.kept) == self.source.n_features else self.X[:, self.kept]
        if not sp.issparse(X):
            X = np.ascontiguousarray(X - shift) if shift.any() else np.ascontiguousarray(X)
        q, penalised = self.quantile, np.arange(len(self.kept) if self.is_penalised else 0)
        # No dual point pulls with more than the reach, so a box beyond it is never felt.
        box = np.minimum(self.pull, 2 * self.reach + 1e-300)[penalised]
        return Program(
            X,
            self.fit_intercept,
            penalised,
            np.concatenate([target, np.zeros(len(penalised))]),
            np.concatenate([(q - 1) * self.weight, -box]),
            np.concatenate([q * self.weight, box]),
        )

    def dense(self, rows: Array) -> Array:
        """Some scaled rows as a dense array."""
        taken = self.X[rows]
        return np.asarray(taken.toarray() if sp.issparse(taken) else taken)

    def at(self, state: Weights) -> Point:
        """Residuals at a state."""
        weights, intercept = self.scaling.of_state(state.coef, state.intercept)
        return self.point(weights, float(intercept))

    def point(self, weights: Array, intercept: float) -> Point:
        """Residuals at scaled weights."""
        hi, lo = dd.two_sum(self.y, -intercept)
        size = np.abs(self.y) + abs(intercept)
        by_column = sp.csc_array(self.X) if sp.issparse(self.X) else None
        for j in np.flatnonzero(weights):
            if by_column is None:
                rows: slice[None, None, None] | Array = slice(None)
                column = self.X[:, j]
            else:
                span = slice(by_column.indptr[j], by_column.indptr[j + 1])
                rows, column = by_column.indices[span], by_column.data[span]
            hi[rows], lo[rows] = dd.add((hi[rows], lo[rows]), dd.two_product(column, np.asarray(-weights[j])))
            size[rows] += np.abs(column * weights[j])
        count = np.count_nonzero(weights)  # a constant alone leaves residuals that are rounded once
        r = hi + lo
        return Point(weights, intercept, r, UNIT * np.abs(r) + 16 * count * (TWOFOLD_UNIT * size + TINY), size)

    def moments(self, u: Array) -> tuple[Array, Array]:
        """sum_i a_i u_i (x_i, 1), and bounds on what rounding adds to them."""
        s = self.scaling
        args = (self.block.rows, u, self.block.weight, s.scale, 1.0, s.weight_scale)
        hi, *_ = core.residual(*args, np.zeros(len(s.scale)), 0.0, self.source.block_rows, n_threads())
        size = np.append(self.reach, self.sum_weight)
        n = self.block.n_rows
        return hi, 2 * UNIT * np.abs(hi) + twofold_unit(n) * size + n * TINY

    def state(self, weights: Array, intercept: float) -> Weights:
        """A state in the user's units."""
        s = self.scaling
        with np.errstate(over="ignore"):
            coef = weights * s.scale / s.y_scale
        refuse_overflow(coef, s.scale, self.source.names)
        return Weights(coef, intercept / s.y_scale)

    def loss(self, r: Array) -> float:
        """sum_i a_i rho(r_i)."""
        return float(np.sum(self.weight * np.where(r > 0, self.quantile, self.quantile - 1) * r))

    def penalty(self, weights: Array) -> float:
        """The penalty of scaled weights."""
        return float(np.sum(self.pull * np.abs(weights)))

    def penalty_beyond(self, state: Weights) -> float:
        """At most what the penalty at a state is above that of its scaled weights: of pulls and weights beyond float64.

        Powers of two are put together before they meet a number.
        """
        weights, _ = self.scaling.of_state(state.coef, state.intercept)
        is_beyond = (self.pull >= np.finfo(float).max) | (np.abs(weights) < TINY)
        places = np.flatnonzero(is_beyond & (state.coef != 0))
        if self.alpha == 0 or not len(places):
            return 0.0
        spreads = column_spreads(self.source, self.fit_intercept) if self.standardize else np.ones(len(weights))
        factors = (self.alpha, self.sum_weight, self.scaling.y_scale, spreads[places], np.abs(state.coef[places]))
        shares, powers = zip(*(np.frexp(factor) for factor in factors), strict=True)
        with np.errstate(over="ignore"):
            return float(np.ldexp(np.prod(np.broadcast_arrays(*shares), axis=0), sum(powers)).sum())

    def null_space(self) -> tuple[Array | None, Array]:
        """Directions of the weights and of the intercept that change no prediction; None where they were not sought."""
        if self.columns is not None:
            return self.columns.null_space()
        d = self.source.n_features
        return (np.zeros((d, 0)), np.zeros(0)) if self.is_penalised or len(self.kept) == d else (None, np.zeros(0))

    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""
        mean = float(self.weight @ self.y) / self.sum_weight
        about = float(self.weight @ (self.y - mean) ** 2)
        return data_facts(self.n_rows, self.sum_weight, self.scaling, mean, about)
