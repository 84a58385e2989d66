"""Least squares and ridge on the matrix of the rows, for fewer rows than columns.

K_ij = z_i'z_j with z_i = sqrt(w_i) (x_i - mean). The weights are w = sum_i a_i z_i with (K + sum_w alpha I) a = the
centred target; with alpha = 0 that is the solution of smallest norm. Standardised: z_ij is divided by the spread s_j of
its column, and s_j w_j replaces w_j.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from math import fsum
from typing import Self

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from certifit.data.columns import Array
from certifit.data.source import Block, Memory, Source, block_rows
from certifit.data.user_input import refuse_nonfinite
from certifit.models.least_squares.normal_equations import LARGEST_PENALTY, Weights, data_facts, refuse_overflow
from certifit.models.least_squares.task import LeastSquares
from certifit.runtime import core, memory_limit, n_threads
from certifit.statistics import double_double as dd
from certifit.statistics.factor import Factor, System, plain_factor, twofold_factor
from certifit.statistics.gram import ColumnSizes, Scaling, counted, refuse_no_weight
from certifit.statistics.inner_products import inner_products
from certifit.statistics.remainders import column_remainders
from certifit.statistics.residual import TINY, UNIT, Residual, residual, twofold_unit

PIECE = 2048  # columns that are centred at a time
TURNED_PIECE = 64  # columns that are copied at a time: both sides of a copy stay near the processor
MODERATE = 2.0**100
LEAST_BLOCK = 4096  # columns whose products are summed before sums are added, at least
NEAR = 0.25  # share of a row's squares that is left about the mean: below it products are summed about the mean
LARGEST_NULL_SPACE = 4_000_000  # most entries of a null space
COUNT_ABOVE = 256  # with fewer columns the d x d matrix is cheap, and a stream is not read just to count its rows


def least_squares_task(
    source: Source, alpha: float | None, fit_intercept: bool, standardize: bool = False
) -> LeastSquares | DualLeastSquares:
    """The task on columns, or on rows where they are fewer. alpha None means 1 / sum of weights."""
    if has_fewer_rows(source):
        return DualLeastSquares(source, alpha, fit_intercept, standardize)
    return LeastSquares(source, alpha, fit_intercept, standardize)


def has_fewer_rows(source: Source) -> bool:
    """Whether rows are fewer than columns."""
    counted = source.n_features > COUNT_ABOVE or isinstance(source, Memory)
    return counted and sum(stretch.n_rows for stretch in source.stretches()) < source.n_features


def is_moderate(scale: Array) -> bool:
    """Whether products of unscaled entries stay within float64."""
    return bool((scale > 1 / MODERATE).all() and (scale < MODERATE).all())


class Turned:
    """Dense rows, column by column, which every pass over few rows and many columns reads.

    Columns that lie one after another are read where they are, others copied once where memory allows it; the bits
    are the same. scale: powers of two, near enough to 1 that products of unscaled entries do not leave float64.
    """

    def __init__(self, turned: Array, scale: Array) -> None:
        self.scale, (self.n_columns, self.n_rows) = scale, turned.shape
        self.rows: list[tuple[str, Array]] = [("dense", turned)]
        self._block = max(block_rows(self.n_rows), LEAST_BLOCK)

    @staticmethod
    def of(turned: Array | None, scale: Array) -> Turned | None:
        """None for sparse rows and for scales far from 1."""
        powers = np.frexp(scale)[1]
        return None if turned is None or np.abs(powers).max(initial=0) > 400 else Turned(turned, scale)

    def gram(self, roots: Array) -> Array:
        """roots_i roots_k x_i'x_k of the scaled rows. The scale is that of all columns."""
        n, turned = self.n_rows, self.rows[0][1]
        unit, zeros = roots * self.scale[0], np.zeros(n)
        if is_moderate(self.scale):
            return np.asarray(inner_products(turned) * unit * unit[:, None])
        sums, _ = core.gram(self.rows, None, None, unit, zeros, 1.0, 0.0, 1.0, self._block, False, n_threads())
        return np.asarray(sums[:n, :n])

    def products(self, multipliers: Array) -> Array:
        """sum_i a_i x_i of the scaled rows."""
        return np.asarray(core.scores(self.rows, multipliers, 0.0, n_threads())) * self.scale

    def moved(self, weights: Array, multipliers: Array, less: Array) -> tuple[Array, dd.Pair]:
        """w = weights + (sum_i a_i x_i - less) of the scaled rows, of one scale for all columns, and x_i'w, twofold."""
        scale = float(self.scale[0])
        out, hi, lo = core.moved_fits(self.rows, multipliers, scale, less, weights, self._block, n_threads())
        return out, (hi[:-1], lo[:-1])

    def precise_products(self, multipliers: Array, less: Array, low: Array | None = None) -> Array:
        """sum_i a_i x_i - less of the scaled rows, rounded once. low: what the multipliers have beyond float64."""
        ones, threads = np.ones(self.n_rows), n_threads()
        left = core.residual_rows(self.rows, less / self.scale, ones, 1.0, multipliers, 0.0, threads, low)
        return -np.asarray(left) * self.scale

    def fits(self, weights: Array) -> dd.Pair:
        """x_i'w of the scaled rows, twofold: the core's sums of x r, at weights of 0, where r is the target."""
        ones, zeros, target = np.ones(self.n_rows), np.zeros(self.n_rows), weights * self.scale
        hi, lo, *_ = core.residual(self.rows, target, None, ones, 1.0, 1.0, zeros, 0.0, self._block, n_threads())
        return hi[:-1], lo[:-1]


@dataclass(frozen=True)
class ColumnLook:
    """Dense rows by column, and what a first reading tells of the columns; None where it does not.

    sizes: largest absolute entries. sums: sum_i w_i x_ij of the weights of the rows as they were given.
    """

    turned: Array | None
    sizes: Array | None = None
    sums: Array | None = None

    @staticmethod
    def of(X: Array, weight: Array) -> ColumnLook:
        """Of rows of any type."""
        if sp.issparse(X):
            return ColumnLook(None)
        is_plain = X.dtype == np.float64
        if is_plain and X.flags.f_contiguous:
            return ColumnLook(X.T, *core.look_at_columns(X.T, weight, n_threads()))
        if 8 * X.size > memory_limit():
            return ColumnLook(X.T)
        out = np.empty(X.shape[::-1])
        if is_plain and X.flags.c_contiguous:
            return ColumnLook(out, *core.turn(X, weight, out, n_threads()))
        for begin in range(0, len(out), TURNED_PIECE):
            out[begin : begin + TURNED_PIECE] = X[:, begin : begin + TURNED_PIECE].T
        return ColumnLook(out, *core.look_at_columns(out, weight, n_threads()))


class RowKernel:
    """All rows gathered, centred and scaled, and the matrix K of their products.

    units: spreads of the scaled columns where the penalty is one of standardised columns, else None.
    """

    units: Array | None = None
    is_near = False  # whether the mean of the rows is near 0 beside their spread

    def __init__(self, source: Source, fit_intercept: bool, standardize: bool = False) -> None:
        self.source = source
        self.fit_intercept, self.standardize = fit_intercept, standardize
        rows = self.all_rows = source.gather()
        self.n_rows = rows.n_rows
        self.block: Block = counted(rows)
        if self.block.y is None:
            raise ValueError("least squares needs a target")
        self.y: Array = self.block.y
        weight = np.ones(len(self.y)) if self.block.weight is None else self.block.weight
        seen = ColumnLook.of(self.block.X, weight)
        self.scaling = self._scaling(seen.sizes)
        self.weight: Array = weight * self.scaling.weight_scale
        self.sum_weight = float(self.weight.sum())
        refuse_no_weight(self.sum_weight)
        self.turned = Turned.of(seen.turned, self.scaling.scale)
        self.mean = self._mean(seen.sums)
        y_mean = float(self.weight @ self.y) * self.scaling.y_scale / self.sum_weight
        self.y_mean = y_mean if fit_intercept else 0.0
        if standardize:
            self.units = self.spreads_of(self.weight)
        self.kernel = self._summed_kernel(twofold=False)

    @property
    def roots(self) -> Array:
        """Square roots of the weights."""
        return np.sqrt(self.weight)

    def target(self) -> Array:
        """The centred target times the roots of the weights, scaled."""
        return np.asarray(self.roots * (self.y * self.scaling.y_scale - self.y_mean))

    def null_objective(self) -> float:
        """Squares about the best constant, or about 0 without an intercept, scaled: at most, after all roundings."""
        target, roots = self.target(), self.roots
        size = float(np.linalg.norm(roots * self.y * self.scaling.y_scale))
        off = float(roots @ target) / np.sqrt(self.sum_weight) if self.fit_intercept else 0.0  # of the rounded mean
        unit = (len(target) + 8) * 2.0**-53
        length = float(np.linalg.norm(target)) * (1 - unit) - unit * size
        return float(max(max(length, 0.0) ** 2 - (abs(off) + unit * size) ** 2, 0.0))

    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""
        y = self.y * self.scaling.y_scale
        mean = float(self.weight @ y) / self.sum_weight
        about = float(self.weight @ (y - mean) ** 2)
        return data_facts(self.n_rows, self.sum_weight, self.scaling, mean, about)

    def _scaling(self, columns: Array | None) -> Scaling:
        """One power of two for all columns: the smallest norm is meant in the user's units. One each to standardise."""
        sizes = ColumnSizes.of(self.block, columns)
        if not np.isfinite(sizes.columns).all():
            refuse_nonfinite(self.source)
        powers = sizes.powers()
        d = self.source.n_features
        scale = powers.columns if self.standardize else np.full(d, powers.columns.min())
        return Scaling(scale, np.zeros(d), float(powers.target), 0.0, float(powers.weight))

    def _mean(self, sums: Array | None) -> Array:
        """Of the scaled columns. sums: of columns and weights that are not scaled, where they are known."""
        if not self.fit_intercept:
            return np.zeros(self.source.n_features)
        scaling = self.scaling
        if sums is not None and is_moderate(scaling.scale) and is_moderate(np.array([scaling.weight_scale])):
            return np.asarray(sums * (scaling.scale * scaling.weight_scale) / self.sum_weight)
        if self.turned is not None:
            return self.turned.products(self.weight) / self.sum_weight
        if self.standardize:
            pieces = [self._scaled(at) @ self.weight for at in self._pieces()]
            return np.concatenate(pieces) / self.sum_weight
        X, scaled = self.block.X, self.weight * self.scaling.scale[0]
        pieces = []
        for begin in range(0, self.source.n_features, PIECE):  # other types are converted a piece at a time
            part = X[:, begin : begin + PIECE]
            # C order: the order of BLAS's sums depends on the layout.
            pieces.append(part.T @ scaled if sp.issparse(X) else scaled @ np.ascontiguousarray(part, dtype=np.float64))
        return np.concatenate(pieces) / self.sum_weight

    def spreads_of(self, weight: Array) -> Array:
        """Standard deviations of the scaled columns over rows of these weights; of what does not vary 1, unscaled."""
        counts, total = weight > 0, float(weight.sum())
        first = int(np.argmax(counts))
        spreads = []
        for at in self._pieces():
            z = self._scaled(at)
            z -= self.mean[at, None]
            if self.fit_intercept:
                z -= (z @ weight / total)[:, None]
            differs = z != (z[:, first, None] if self.fit_intercept else 0.0)
            varies = (differs & counts).any(axis=1)
            spreads.append(np.where(varies, np.sqrt(np.square(z, out=z) @ weight / total), self.scaling.scale[at]))
        return np.concatenate(spreads)

    def standardised_by(self, weight: Array) -> Self:
        """The same rows with columns standardised by those of these weights."""
        other = copy(self)
        other.units = self.spreads_of(weight)
        other.kernel = other._summed_kernel(twofold=False)
        return other

    def products(self) -> Array:
        """K without the weights of the rows."""
        return np.asarray(self.kernel[0] / np.outer(self.roots, self.roots))

    def _pieces(self) -> list[slice]:
        return [slice(begin, begin + PIECE) for begin in range(0, self.source.n_features, PIECE)]

    def _scaled(self, at: slice) -> Array:
        """A range of scaled columns: one row per column."""
        scale = self.scaling.scale[at, None]
        if self.turned is not None:
            return np.multiply(self.turned.rows[0][1][at], scale, order="C")
        part = self.block.X[:, at]
        dense = part.toarray() if sp.issparse(part) else part
        z = np.array(dense.T, dtype=np.float64, order="C")
        z *= scale
        return z

    def _centred(self, at: slice) -> Array:
        """z' for a range of columns: a row of it is a column of z."""
        z = self._scaled(at)
        z -= self.mean[at, None]
        if self.units is not None:
            z /= self.units[at, None]
        if self.block.weight is not None:
            z *= self.roots
        return z

    def _summed_kernel(self, twofold: bool) -> tuple[Array, Array | None]:
        """K, summed over ranges of columns: the Gram matrix of the transposed, centred rows."""
        if self.turned is not None and self.units is None and not twofold:
            kernel = self._centred_products(self.turned.gram(self.roots))
            if kernel is not None:
                return kernel, None
        n, d = self.block.n_rows, self.source.n_features
        ones, zeros, size = np.ones(n), np.zeros(n), block_rows(n)
        total: tuple[Array, Array] = (np.zeros((n + 1, n + 1)), np.zeros((n + 1, n + 1)))
        for begin in range(0, d, 2 * size):
            z = self._centred(slice(begin, begin + 2 * size))
            sums, low = core.gram([("dense", z)], None, None, ones, zeros, 1.0, 0.0, 1.0, size, twofold, n_threads())
            total = dd.add(total, (sums, low)) if twofold else (total[0] + sums, total[1])
        if not np.isfinite(total[0]).all():
            refuse_nonfinite(self.source)
        return total[0][:n, :n], total[1][:n, :n] if twofold else None

    def _centred_products(self, products: Array) -> Array | None:
        """K from products about 0, or None where that would lose digits."""
        self.is_near = True
        if not self.fit_intercept:
            return products
        roots = self.roots
        along = products @ roots / self.sum_weight  # z_i'mean, of z_i about 0
        along -= roots * (float(along @ roots) / self.sum_weight / 2)
        kernel = np.asarray(products - np.outer(along, roots) - np.outer(roots, along))
        self.is_near = bool((np.diagonal(kernel) >= NEAR * np.diagonal(products)).all())
        return kernel if self.is_near else None


class DualLeastSquares(RowKernel):
    """The task of fewer rows than columns; it gathers all rows."""

    def __init__(self, source: Source, alpha: float | None, fit_intercept: bool, standardize: bool = False) -> None:
        super().__init__(source, fit_intercept, standardize)
        self._alpha = alpha
        self._fitted: tuple[Array, dd.Pair] | None = None
        self.factor: Factor = self._factored()

    @property
    def alpha(self) -> float:
        """Strength of the penalty on the mean scale."""
        return self._alpha if self._alpha is not None else self.scaling.weight_scale / self.sum_weight

    @property
    def strength(self) -> float:
        """sum_w alpha in scaled units: what the penalty adds to the diagonal of K."""
        with np.errstate(over="ignore", under="ignore"):
            alpha = self.alpha
            unit = 1.0 if self.standardize else self.scaling.scale[0]
            strength = alpha * self.sum_weight * unit**2 if alpha > 0 else 0.0
            return float(min(strength, LARGEST_PENALTY))

    @property
    def penalty_units(self) -> Array:
        """What makes a scaled weight one that `strength` counts."""
        return np.ones(self.source.n_features) if self.units is None else self.units

    @property
    def penalty(self) -> Array:
        """The strength of the square of every scaled weight."""
        with np.errstate(under="ignore"):
            return np.asarray(self.strength * self.penalty_units**2)

    def penalty_beyond(self, state: Weights) -> float:
        """At most what the penalty at a state is above that of `strength`, where that was kept finite."""
        if self.strength < LARGEST_PENALTY:
            return 0.0
        with np.errstate(over="ignore"):
            root = np.sqrt(self.alpha) * np.sqrt(self.sum_weight) * self.scaling.y_scale
            counted = state.coef if self.units is None else state.coef * (self.units / self.scaling.scale)
            return float(min(np.sum((root * counted) ** 2), LARGEST_PENALTY))

    @property
    def rank(self) -> int:
        """Dimension of the span of the (centred) rows; under a penalty the number of rows, which bounds it."""
        return len(self.factor.kept)

    def residuals(self, state: Weights) -> Array:
        """r_i = y_i - b - x_i'w, scaled, evaluated in twofold precision."""
        if self.turned is not None:
            return self._twofold_residuals(self.turned, state)[0]
        weights, intercept = self.to_scaled(state)
        s, rows = self.scaling, self.block.rows
        return np.asarray(core.residual_rows(rows, self.y, s.scale, s.y_scale, weights, intercept, n_threads()))

    def _twofold_residuals(self, turned: Turned, state: Weights) -> dd.Pair:
        weights, intercept = self.to_scaled(state)
        if self._fitted is None or not np.array_equal(self._fitted[0], weights):
            self._fitted = weights, turned.fits(weights)
        hi, lo = self._fitted[1]
        return dd.add(dd.two_sum(self.y * self.scaling.y_scale, -intercept), (-hi, -lo))

    def residual_at(self, state: Weights) -> Residual:
        """The residual statistic at a state: one pass, and one where its residuals are not known."""
        weights, intercept = self.to_scaled(state)
        if self.turned is None:
            return residual(self.source, self.scaling, weights, intercept, self.mean, self.penalty)
        r = self._twofold_residuals(self.turned, state)
        slopes = dd.multiply((self.weight, np.zeros_like(self.weight)), r)
        pull = dd.two_product(self.penalty, weights)
        total, size = fsum(np.concatenate(slopes)), fsum(np.abs(slopes[0]))
        # Large parts cancel before the one rounding; what is left of the small parts is some u of them.
        columns = self.turned.precise_products(slopes[0], pull[0], slopes[1]) - pull[1]
        columns -= self.mean * total
        rounding = UNIT * (4 * np.abs(columns) + 2 * np.abs(self.mean * total)) + 4 * len(self.y) * UNIT**2 * size
        magnitude = float(self.weight @ (2 * fsum(np.abs(weights)) + np.abs(self.y) * self.scaling.y_scale) ** 2)
        unit = twofold_unit(max(self.n_rows, self.source.n_features))
        gradient, rounding = np.append(total, columns), np.append(UNIT * abs(total), rounding)
        return Residual(gradient, dd.dot(slopes[0], r[0])[0], magnitude, rounding, unit)

    def row_relations(self) -> Array:
        """Vectors n with n'X = 0 to the last bit, and n'1 = 0 with an intercept: what no fit can change.

        A relation among rows is one among the columns of the transposed rows.
        """
        X = self.block.X
        turned = X.T.tocsr() if sp.issparse(X) else X.T
        if self.fit_intercept:
            ones = np.ones((1, X.shape[0]))
            turned = sp.csr_array(sp.vstack([turned, ones])) if sp.issparse(X) else np.vstack([turned, ones])
        turned = turned.astype(np.float64, copy=False)
        remainders = column_remainders(Memory(turned, np.zeros(turned.shape[0])), False)
        if remainders is None:
            return np.zeros((0, X.shape[0]))
        exact = remainders.is_exact
        out = -remainders.times[0][exact] * remainders.scale[None, :]
        out[np.arange(len(out)), remainders.columns[exact]] = remainders.scale[remainders.columns[exact]]
        return np.asarray(out / np.abs(out).max(axis=1, initial=0.0)[:, None])

    def combine(self, multipliers: Array) -> Array:
        """sum_i a_i z_i: the weights that multipliers of the rows stand for, scaled, times `penalty_units`."""
        if self.turned is None:
            return np.concatenate([self._centred(at) @ multipliers for at in self._pieces()])
        of_rows = self.roots * multipliers
        about, turned = self.mean * fsum(of_rows), self.turned
        products = turned.products(of_rows) - about if self.is_near else turned.precise_products(of_rows, about)
        return products if self.units is None else products / self.units

    def moved(self, weights: Array, multipliers: Array) -> Array:
        """weights + sum_i a_i z_i, as `combine` gives it; where rows allow it x_i'w comes from the same pass."""
        if self.turned is None or self.units is not None or not self.is_near:
            return weights + self.combine(multipliers)
        of_rows = self.roots * multipliers
        weights, fits = self.turned.moved(weights, of_rows, self.mean * fsum(of_rows))
        self._fitted = weights, fits
        return weights

    def to_scaled(self, state: Weights) -> tuple[Array, float]:
        """Weights and intercept for scaled columns and target."""
        return self.scaling.of_state(state.coef, state.intercept)

    def from_scaled(self, weights: Array) -> Weights:
        """The state of weights as `combine` gives them, with the intercept that makes the residuals' mean zero."""
        s = self.scaling
        weights = weights if self.units is None else weights / self.units
        with np.errstate(over="ignore"):
            coef = weights * s.scale / s.y_scale if self.strength < LARGEST_PENALTY else np.zeros_like(weights)
        refuse_overflow(coef, s.scale, self.source.names)
        if not self.fit_intercept:
            return Weights(coef, 0.0)
        # The residuals themselves tell the intercept better than means of rows far from zero.
        first = Weights(coef, (self.y_mean - float(self.mean @ weights)) / s.y_scale)
        left = float(self.weight @ self.residuals(first)) / self.sum_weight
        return Weights(coef, first.intercept + left / s.y_scale)

    def null_space(self) -> tuple[Array | None, Array]:
        """A basis of the directions that no row sees, while it is small enough to keep."""
        d = self.source.n_features
        if self.strength > 0:
            return np.zeros((d, 0)), np.zeros(0)
        if d * (d - self.rank) > LARGEST_NULL_SPACE:
            return None, np.zeros(0)
        columns = self._centred(slice(0, d))[:, self.factor.kept]
        full, _, _ = scipy.linalg.qr(columns, mode="full", pivoting=True)
        directions = full[:, self.rank :]
        if self.units is not None:
            directions = directions * (self.scaling.scale / self.units)[:, None]
        return directions, -(self.mean / self.scaling.scale) @ directions

    def _factored(self) -> Factor:
        plain = plain_factor(self._system())
        if plain is not None:
            return plain
        self.kernel = self._summed_kernel(twofold=True)
        return twofold_factor(self._system(), self._order())

    def _order(self) -> Array | None:
        """Rows far from the mean first, the heaviest last: about the mean sum_i w_i z_i = 0, so that one is dependent.

        Rounding of a heavy z_i is more than a light row weighs: of such a row, or of one beside the heaviest and so
        near the mean, it would not be seen.
        """
        if not self.fit_intercept or self.block.weight is None or self.strength > 0:
            return None
        lengths = np.diagonal(self.kernel[0]) / np.maximum(self.weight, TINY)
        heaviest = int(np.argmax(self.weight))
        order = np.argsort(-lengths, kind="stable")
        return np.append(order[order != heaviest], heaviest)

    def _system(self) -> System:
        matrix, low = self.kernel
        mean = self.mean / self.penalty_units
        with np.errstate(over="ignore"):  # rows beside an infinite rounding are dependent
            # A mean is rounded beside what it is the mean of, even where that cancels.
            spread = float(np.trace(matrix)) / self.sum_weight if self.fit_intercept else 0.0
            norms = np.sqrt(np.maximum(np.diagonal(matrix), 0.0) + self.weight * (float(mean @ mean) + spread))
        return System.of(matrix, low, np.full(len(matrix), self.strength), norms)
