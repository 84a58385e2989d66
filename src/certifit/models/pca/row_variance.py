"""Principal components from the matrix of products of rows, for fewer rows than columns; all rows are gathered.

K = Z Z' / sum of weights, Z with rows sqrt(w_i) (x_i - mean) / scale. While the mean is no larger than some ten
standard deviations, rows are centred in the sums: K from products of the rows as they are, less what the mean adds,
and Z V = X V - 1 mean'V. Nothing is copied and sparse rows stay sparse. Else, and for twofold sums, ranges of columns
are centred one after the other.

Principal components where neither matrix can be held: the rows are known by products A V, one pass each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from certifit.data.columns import Array
from certifit.data.source import Block, Source, block_rows
from certifit.data.user_input import refuse_nonfinite
from certifit.models.pca.task import ENTRY, VarianceTask, are_constant, twofold_root
from certifit.runtime import core, in_order, n_threads
from certifit.statistics import double_double as dd
from certifit.statistics import products
from certifit.statistics.factor import DEPENDENT
from certifit.statistics.gram import ColumnSizes, Scaling, counted, refuse_no_weight
from certifit.statistics.residual import MATRIX_ERROR, UNIT

PIECE = 2048  # columns that are read at a time
FAR = 100.0  # ratio of squares about zero to squares about the mean beyond which rows are centred first
MOST_UNEVEN = 2.0**400  # largest ratio of units of dense columns that are read in place


class RowVariance(VarianceTask):
    """K, and directions Z'q for its eigenvectors q."""

    def __init__(self, source: Source, center: bool, standardize: bool, ddof: float) -> None:
        self.source, self.center, self.standardize, self.ddof = source, center, standardize, ddof
        rows = source.gather()
        self.n_rows = rows.n_rows
        self.block: Block = counted(rows)
        weight = np.ones(self.block.n_rows) if self.block.weight is None else self.block.weight
        weight = np.ldexp(weight, 1 - int(np.frexp(weight.max())[1]))
        self._sum = float(weight.sum())
        refuse_no_weight(self._sum)
        self.sum_weight = float(np.sum(np.ones(len(weight)) if self.block.weight is None else self.block.weight))
        self._check_weight()
        self._weight, self._roots = weight, np.sqrt(weight)
        self._set_columns()
        self._is_near = not self._is_uneven()
        if self._is_near:
            self._set_kernel(self._raw_kernel(), None)
        if not self._is_near or self._about_zero > FAR * self.total:
            self._leave_zero()
            self._set_kernel(*self._summed(twofold=False))
        self._refuse_range()

    @property
    def held(self) -> Array:
        """The matrix: K."""
        return self.kernel

    @property
    def is_refined(self) -> bool:
        """Whether sums are twofold."""
        return self.kernel_low is not None

    def refine(self) -> None:
        """The same from twofold sums of centred rows."""
        self._leave_zero()
        self._set_kernel(*self._summed(twofold=True))

    def product(self, directions: Array) -> Array:
        """A V = Z'(Z V) / sum of weights, from the rows: K takes no part."""
        if self.total == 0:  # rows that do not vary but for rounding
            return np.zeros(directions.shape)
        scores = np.zeros((self.block.n_rows, directions.shape[1]))
        for part in in_order(lambda at: self._scores(at, directions[at]), self._places()):
            scores += part
        return self._combined(scores) / self._sum

    def lifted(self, vectors: Array) -> Array:
        """Directions Z'q / |Z'q| for eigenvectors q over the rows, made orthonormal in their order."""
        columns = self._combined(vectors)
        if columns.shape[1] == 0:
            return columns
        if self.is_refined:
            return np.asarray(scipy.linalg.qr(columns, mode="economic")[0])
        # Orthogonal to many digits already: a Cholesky factor of their products makes them so to all.
        columns /= np.linalg.norm(columns, axis=0)
        upper = scipy.linalg.cholesky(columns.T @ columns)
        return np.asarray(scipy.linalg.solve_triangular(upper, columns.T, trans="T").T)

    def root(self) -> Array:
        """R with R'R = K, from twofold sums."""
        if self.kernel_low is None:
            raise ValueError("a root needs twofold sums")
        norms = np.sqrt(np.maximum(np.diagonal(self.kernel), 0.0) + self._about_zero / len(self.kernel))
        return twofold_root(self.kernel, self.kernel_low, norms)

    def _set_columns(self) -> None:
        """Means and scales of the columns, a range at a time; scaled columns are at most 2 in size."""
        sizes = list(in_order(lambda at: ColumnSizes.of(Block(self.block.X[:, at], None, None)), self._places()))
        powers = np.concatenate([part.powers().columns for part in sizes])
        constant = self._constant_columns()
        # A column of zeros, or a constant one about its mean, sets no unit.
        still = np.append(constant, np.flatnonzero(np.concatenate([part.columns for part in sizes]) == 0))
        varying = np.delete(powers, still)
        smallest = float(varying.min(initial=np.inf)) if len(varying) else 1.0
        self._power = powers if self.standardize else np.full(len(powers), smallest)
        self._power[constant] = 0.0
        moments = list(in_order(self._moments, self._places()))
        mean, sd, lost = (np.concatenate(part) for part in zip(*moments, strict=True))
        self._scale_error = float(lost.max(initial=0.0))
        if not np.isfinite(mean).all():
            refuse_nonfinite(self.source)
        in_powers = powers if self.standardize else np.ones(len(sd))
        self._times = self._standard_times(sd, in_powers)
        self.unit = 1.0 if self.standardize else 1.0 / smallest
        self.scale = np.ones(len(powers))
        if self.standardize:
            self._set_scale(sd, self._power)
        self._shift = mean if self.center else np.zeros(len(mean))
        self.mean = self._shift / np.where(self._power > 0, self._power, 1.0)
        self.mean[constant] = _row(self.block.X, 0)[constant]
        self._step = np.zeros(len(mean))
        self._about_zero = float(((self._shift * self._times) ** 2).sum())

    def _constant_columns(self) -> Array:
        """Columns that are one number other than 0 in every row, where rows are centred."""
        X = self.block.X
        if not self.center:
            return np.zeros(0, dtype=np.intp)
        first = _row(X, 0)
        alike = np.flatnonzero((first != 0) & (first == _row(X, self.block.n_rows - 1)))
        part = X[:, alike].toarray() if sp.issparse(X) else X[:, alike]
        return np.asarray(alike[(part == first[alike]).all(axis=0)])

    def _is_uneven(self) -> bool:
        """Whether dense columns cannot be read in place in one unit: squares would overflow, or count constant ones."""
        least, most = float(self._power.min()), float(self._power.max())
        return not sp.issparse(self.block.X) and not 0 < most <= MOST_UNEVEN * least

    def _leave_zero(self) -> None:
        """Rows are centred before they are multiplied, by the mean in float64 and by what it lacks of the rows' own."""
        self._is_near = False
        if self.center and not self._step.any():
            parts = in_order(lambda at: self._centred(at) @ self._roots / self._sum, self._places())
            self._step = np.concatenate(list(parts)) / self._times

    def _moments(self, at: slice) -> tuple[Array, Array, Array]:
        """Means of a range of columns, and standard deviations where they are asked for; scaled. Errors of variances.

        A column that varies by less than sums of its squares tell has an infinite one.
        """
        part, power = self.block.X[:, at], self._power[at]
        if not self.standardize:
            # C order: the order of BLAS's sums depends on the layout.
            dense = part if sp.issparse(part) else np.ascontiguousarray(part, dtype=np.float64)
            with np.errstate(over="ignore", invalid="ignore"):
                mean = ((self._weight * power.max()) @ dense) / self._sum
            return np.where(power > 0, mean, 0.0), np.ones(len(power)), np.zeros(len(power))
        z = self._transposed(at) * power[:, None]
        mean = z @ self._weight / self._sum
        z -= mean[:, None]
        step = z @ self._weight / self._sum  # what rounding left of the mean
        mean += step
        squares, varies = (z**2) @ self._weight / self._sum, np.ptp(z, axis=1) > 0
        sd = np.where(varies, np.sqrt(np.maximum(squares - step**2, 0.0)), 0.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            lost = np.where(varies, MATRIX_ERROR * squares / sd**2, 0.0)
        return mean, sd, np.where(np.isnan(lost), np.inf, lost)

    def _places(self) -> list[slice]:
        return [slice(begin, begin + PIECE) for begin in range(0, self.source.n_features, PIECE)]

    def _scores(self, at: slice, directions: Array) -> Array:
        """What a range of columns adds to Z V."""
        if not self._is_near:
            return np.asarray(self._centred(at).T @ directions)
        right = directions * self._times[at, None]
        raw = self._rows(at) @ (right * self._power[at, None])
        return np.asarray((raw - self._shift[at] @ right) * self._roots[:, None])

    def _combined(self, vectors: Array) -> Array:
        """Z'q for vectors q over the rows, in columns."""
        if not self._is_near:
            return np.concatenate(list(in_order(lambda at: self._centred(at) @ vectors, self._places())))
        q = vectors * self._roots[:, None]
        total = q.sum(axis=0)

        def part(at: slice) -> Array:
            raw = np.asarray(self._rows(at).T @ q) * self._power[at, None]
            return np.asarray((raw - self._shift[at, None] * total) * self._times[at, None])

        return np.concatenate(list(in_order(part, self._places())))

    def _rows(self, at: slice) -> Any:
        """A range of columns as BLAS takes them: in C order, because the order of its sums depends on the layout."""
        part = self.block.X[:, at]
        if sp.issparse(part):
            return part
        is_ready = self.block.X.flags.c_contiguous and part.dtype == np.float64
        return part if is_ready else np.array(part, dtype=np.float64, order="C")

    def _transposed(self, at: slice) -> Array:
        part = self.block.X[:, at]
        dense = part.toarray() if sp.issparse(part) else part
        return np.array(dense.T, dtype=np.float64, order="C")

    def _centred(self, at: slice) -> Array:
        """z' sqrt(w) for a range of columns: a row of it is a column of Z."""
        z = self._transposed(at)
        z *= self._power[at, None]
        z -= self._shift[at, None]
        z -= self._step[at, None]
        if self.standardize:
            z *= self._times[at, None]
        if self.block.weight is not None:
            z *= self._roots
        return z

    def _raw_kernel(self) -> Array:
        """sum of weights times K, from products of rows about zero: S - a 1' - 1 a' + c, a = S's own with the mean."""
        X, times, m = self.block.X, self._times * self._power, self._shift * self._times
        if sp.issparse(X):
            z = sp.csr_array((X.data * times[X.indices], X.indices, X.indptr), shape=X.shape)
            S, a = (z @ z.T).toarray(), z @ m
        else:
            S = self._summed_rows()
            parts = in_order(lambda at: self._rows(at) @ (times[at] * m[at]), self._places())
            a = sum(parts, np.zeros(len(S)))
        S = S - a[:, None] - a[None, :] + float(m @ m)
        return np.asarray((S + S.T) / 2 * self._roots[:, None] * self._roots[None, :])

    def _summed_rows(self) -> Array:
        """Products of the rows about zero, as the Gram matrix of the columns read in place."""
        n, power = self.block.n_rows, float(self._power.min())
        weight = (self._times * (self._power / power)) ** 2 if self.standardize else None
        X = self.block.X.T
        size = min(block_rows(n), PIECE)
        sums, _ = core.gram(
            [("dense", X)], None, weight, np.full(n, power), np.zeros(n), 1.0, 0.0, 1.0, size, False, n_threads()
        )
        return np.asarray(sums[:n, :n])

    def _summed(self, twofold: bool) -> tuple[Array, Array | None]:
        """sum of weights times K as the Gram matrix of centred, transposed rows, summed over ranges of columns."""
        n = self.block.n_rows
        arguments = (None, None, np.ones(n), np.zeros(n), 1.0, 0.0, 1.0, min(block_rows(n), PIECE), twofold)
        total: dd.Pair = (np.zeros((n + 1, n + 1)), np.zeros((n + 1, n + 1)))
        for z in in_order(self._centred, self._places()):
            sums, low = core.gram([("dense", z)], *arguments, n_threads())
            total = dd.add(total, (sums, low)) if twofold else (total[0] + sums, total[1])
        return total[0][:n, :n], total[1][:n, :n] if twofold else None

    def _set_kernel(self, sums: Array, low: Array | None) -> None:
        if not np.isfinite(sums).all():
            refuse_nonfinite(self.source)
        self.kernel = sums / self._sum
        self.kernel_low = None
        if low is not None:  # the quotient of a pair, in two steps
            product, error = dd.two_product(self.kernel, np.full_like(self.kernel, self._sum))
            self.kernel_low = ((sums - product) - error + low) / self._sum
        self.total = float(np.trace(self.kernel))
        about = self.total + (self._about_zero if self._is_near else 0.0)
        self.error = (MATRIX_ERROR if low is None else 16 * UNIT) * about
        self.error += self._scale_error * self.total
        # Rows are centred before they are multiplied: their roundings stay whatever the sums.
        share = max(16 * UNIT * np.sqrt(self.block.n_rows), DEPENDENT)
        self.noise = float(share * np.sqrt(max(self.total, 0.0)) + ENTRY * np.sqrt(self._about_zero))
        # Rows that do not vary; of standardised columns each that varies has variance 1, however little that is.
        if not self.standardize and self.total <= (self.block.n_rows * UNIT * ENTRY) ** 2 * self._about_zero:
            self.kernel, self.total, self.error = np.zeros_like(self.kernel), 0.0, 0.0
            self.kernel_low = None if low is None else np.zeros_like(low)


def _row(X: Any, i: int) -> Array:
    """One row in float64."""
    return np.asarray(X[[i]].toarray()[0] if sp.issparse(X) else X[i], dtype=np.float64)


class ProductVariance(VarianceTask):
    """A as a product with directions. Two numbers per column are all that is held."""

    def __init__(self, source: Source, center: bool, standardize: bool, ddof: float) -> None:
        self.source, self.center, self.standardize, self.ddof = source, center, standardize, ddof
        total, scaling, zero = self._moments(source, center)
        refuse_no_weight(total.weight)
        constant = self._constant_columns(total, scaling)
        constant_means = ((scaling.shift + total.sums / total.weight) / scaling.scale)[constant]
        total, scaling = _without(np.append(constant, zero), total, scaling)
        if center and self._is_far(total, scaling):
            scaling = replace(scaling, shift=scaling.shift + total.sums / total.weight)
            total = products.moments_about(source, scaling)
        self.n_rows, self._sum = total.n_rows, total.weight
        self.sum_weight = total.weight / scaling.weight_scale
        self._check_weight()
        step, about_shift = total.sums / total.weight, total.squares / total.weight
        mean = scaling.shift + step
        spread = np.maximum(about_shift - step**2, 0.0)
        about_zero = spread + mean**2
        if standardize and not center:  # standard deviations are about the mean all the same
            about_shift, spread = self._apart(scaling)
        spread[spread <= MATRIX_ERROR * about_shift] = 0.0
        powers = _powers(scaling)
        self._set_units(powers, spread)
        self._scaling = replace(scaling, shift=mean if self.center else np.zeros(len(mean)))
        self._lack = np.zeros(len(mean))  # what the rounded mean lacks of the rows' own, where rows are centred by it
        self.mean = self._scaling.shift / powers
        self.mean[constant] = constant_means
        squares = self._times**2
        self.total = float((spread if self.center else about_zero) @ squares)
        self._is_near = float((self._scaling.shift**2) @ squares) <= FAR * self.total
        self.error = MATRIX_ERROR * float((about_zero if self._is_near else about_shift) @ squares)
        if standardize:
            used = spread > 0
            self.error += MATRIX_ERROR * float((about_shift[used] / spread[used]).max(initial=0.0)) * self.total
            if not used.all() and not are_constant(source, np.flatnonzero(~used)).all():
                self.error = np.inf  # a column that varies by less than sums of its squares tell has no known scale
        if self.center and not self._is_near and self.total > 0:
            self._centre_exactly(squares)
        if self.center and self.total <= 2 * self.error and are_constant(source, np.arange(len(mean))).all():
            self.total = self.error = 0.0
        self.noise = float(np.sqrt(self.error))
        self._refuse_range()

    @staticmethod
    def _moments(source: Source, center: bool) -> tuple[products.ScaledMoments, Scaling, Array]:
        """Moments of the columns, and those that are 0 in every row: a pass for these only if some may be."""
        total, scaling = products.moments(source, centred=center)
        zero = np.flatnonzero((total.squares == 0) & (scaling.shift == 0))
        if not len(zero):
            return total, scaling, zero
        sizes: ColumnSizes = source.reduce(ColumnSizes.of)
        if sizes.columns[zero].any():  # their first rows are 0, so that squares of the others may have underflowed
            total, scaling = products.moments(source, center, sizes)
        return total, scaling, np.flatnonzero(sizes.columns == 0)

    def product(self, directions: Array) -> Array:
        """A V: one pass."""
        if self.total == 0:  # rows that do not vary but for rounding
            return np.zeros(directions.shape)
        columns = np.ascontiguousarray(directions)
        image = products.product(self.source, self._scaling, self._times, columns, self._is_near) / self._sum
        lack = self._lack * self._times
        return image - np.outer(lack, lack @ columns) if lack.any() else image

    def _apart(self, scaling: Scaling) -> tuple[Array, Array]:
        """Squares about a shift near the means, and about the means."""
        first, near = products.moments(self.source, centred=True)
        near = replace(near, shift=near.shift + first.sums / first.weight)
        total = products.moments_about(self.source, near)
        about = total.squares / total.weight * (scaling.scale / near.scale) ** 2
        step = total.sums / total.weight * (scaling.scale / near.scale)
        return about, np.maximum(about - step**2, 0.0)

    def _centre_exactly(self, squares: Array) -> None:
        """A pass about the mean as it is rounded: what it lacks, and variances that lose nothing to it."""
        total = products.moments_about(self.source, self._scaling)
        about = total.squares / total.weight
        self._lack = total.sums / total.weight
        self.total = float((about - self._lack**2) @ squares)
        self.error += MATRIX_ERROR * float(about @ squares)

    @property
    def is_refined(self) -> bool:
        """There are no better sums."""
        return True

    def refine(self) -> None:
        """Nothing is finer than it is."""

    @property
    def held(self) -> None:
        """There is no matrix."""
        return

    def _constant_columns(self, total: products.ScaledMoments, scaling: Scaling) -> Array:
        """Columns that are one number other than 0 in every row, where rows are centred: a pass only if some may be."""
        if not self.center:
            return np.zeros(0, dtype=np.intp)
        step, about_shift = total.sums / total.weight, total.squares / total.weight
        is_still = about_shift - step**2 <= MATRIX_ERROR * about_shift
        columns = np.flatnonzero(is_still & (scaling.shift + step != 0))
        return np.asarray(columns[are_constant(self.source, columns)]) if len(columns) else columns

    def _is_far(self, total: products.ScaledMoments, scaling: Scaling) -> bool:
        """Whether the shifts of the sums are so far from the means that variances cancel."""
        powers = _powers(scaling)
        times = 1.0 if self.standardize else _smallest(powers) / powers
        with np.errstate(under="ignore"):
            step = total.sums / total.weight * times
            return bool(step @ step > FAR * ((total.squares / total.weight * times**2).sum() - step @ step))

    def _set_units(self, powers: Array, spread: Array) -> None:
        if not self.standardize:
            self.scale, self.unit = np.ones(len(powers)), 1.0 / _smallest(powers)
            with np.errstate(under="ignore"):
                self._times = _smallest(powers) / powers
            return
        sd = np.sqrt(spread)
        self._times = self._standard_times(sd, powers)
        self._set_scale(sd, powers)
        self.unit = 1.0


def _without(columns: Array, total: products.ScaledMoments, scaling: Scaling) -> tuple[products.ScaledMoments, Scaling]:
    """Moments and scaling that make these columns 0 in every row: a constant one, centred, has no size and no unit."""
    is_left = np.ones(len(scaling.scale))
    is_left[columns] = 0.0
    scaling = replace(scaling, scale=scaling.scale * is_left, shift=scaling.shift * is_left)
    return replace(total, sums=total.sums * is_left, squares=total.squares * is_left), scaling


def _powers(scaling: Scaling) -> Array:
    """What columns are multiplied by; infinite for those that are made 0, which set no unit."""
    return np.where(scaling.scale > 0, scaling.scale, np.inf)


def _smallest(powers: Array) -> float:
    smallest = float(powers.min())
    return smallest if np.isfinite(smallest) else 1.0
