"""Principal components: what is maximised, and the two matrices that hold it.

A = sum_i w_i z_i z_i' / sum_i w_i,  z = (x - mean) / scale,  mean 0 and scale 1 where they are not asked for.
k orthonormal directions V explain trace V'AV of trace A. With more rows than columns A itself is at hand
(`ColumnVariance`); else the matrix K_ij = sqrt(w_i w_j) z_i'z_j / sum of weights, which has the same non-zero
eigenvalues: K q = lambda q gives the direction Z'q / |Z'q| (`RowVariance`).

All sums are in units of `unit`, a power of two, so that no square of large or small values overflows or vanishes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from certifit.data.columns import Array
from certifit.data.gate import refuse_nonfinite
from certifit.data.source import Block, Source, block_rows
from certifit.runtime import core, n_threads
from certifit.statistics import twofold as tf
from certifit.statistics.factor import DEPENDENT, System
from certifit.statistics.gram import ColumnSizes, Gram, counted, gram, refuse_no_weight
from certifit.statistics.residual import MATRIX_ERROR, UNIT

PIECE = 2048  # columns centred at a time
LARGEST_COPY = 1 << 30  # bytes of centred rows that are kept between products


@dataclass(frozen=True)
class Directions:
    """A state: orthonormal directions (one a row), the variance along each, and what rows are centred and scaled by.

    All in the user's units. next_variance: the largest variance outside, where the solver knows it.
    """

    components: Array
    variances: Array
    mean: Array
    scale: Array
    next_variance: float | None = None


class VarianceTask:
    """What a solver and a certificate need of the rows; A is never asked for as such.

    total: trace of A. error: how far A as held can be from the rows' own, in the spectral norm.
    noise: standard deviations below this are rounding of the rows themselves.
    """

    source: Source
    center: bool
    standardize: bool
    ddof: float
    n_rows: int
    sum_weight: float  # the user's
    unit: float  # z as summed times this is in the user's units
    mean: Array  # the user's
    scale: Array
    total: float
    error: float
    noise: float

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.source.n_features

    @property
    def factor(self) -> float:
        """Variances in the user's units, and with the degrees of freedom asked for, are those of A times this."""
        with np.errstate(over="ignore", under="ignore"):
            square = float(np.float64(self.unit) ** 2)
        return square * (self.sum_weight / (self.sum_weight - self.ddof))

    def product(self, directions: Array) -> Array:
        """A V for directions in columns."""
        raise NotImplementedError

    def eigenvalues(self) -> Array | None:
        """All eigenvalues of A that can differ from 0, the largest first; None where there is no matrix."""
        raise NotImplementedError

    def _check_weight(self) -> None:
        if self.sum_weight - self.ddof > 0:
            return
        what = "1 sample" if self.n_rows == 1 else f"{self.n_rows} rows with a sum of weights of {self.sum_weight:g}"
        raise ValueError(
            f"Found {what}: variances are sums divided by the sum of weights less {self.ddof:g}. "
            "Give more rows, or ddof=0."
        )

    def _refuse_range(self) -> None:
        """Raise where the user's variances are beyond float64."""
        largest = self.factor * self.total
        if np.isfinite(largest) and (largest >= np.finfo(float).tiny or self.total == 0):
            return
        raise ValueError(
            f"The variances of X are too {'small' if np.isfinite(largest) else 'large'} for float64: values are about "
            f"{self.unit:.0e}. Multiply X by a power of ten, or use standardize=True."
        )


class ColumnVariance(VarianceTask):
    """A from the Gram statistic: one pass. `refine` makes a second one in twofold sums."""

    def __init__(self, source: Source, center: bool, standardize: bool, ddof: float) -> None:
        self.source, self.center, self.standardize, self.ddof = source, center, standardize, ddof
        self._set(gram(source, centred=center))
        if standardize and not (self._sure | (self._spread == 0)).all():  # standard deviations that cancel
            self.refine()

    @property
    def held(self) -> Array:
        """The matrix: A."""
        return self.matrix

    @property
    def is_refined(self) -> bool:
        """Whether sums are twofold."""
        return self.gram.low is not None

    def refine(self) -> None:
        """The same from twofold sums: a second pass."""
        self._set(gram(self.source, centred=self.center, twofold=True))

    def product(self, directions: Array) -> Array:
        """A V."""
        return np.asarray(self.matrix @ directions)

    def lifted(self, vectors: Array) -> Array:
        """Eigenvectors of the matrix as directions: they are."""
        return vectors

    def eigenvalues(self) -> Array:
        """All d of them."""
        return np.asarray(np.linalg.eigvalsh(self.matrix)[::-1])

    def root(self) -> Array:
        """R with R'R = A, from twofold sums: its singular values lose no digits to squaring."""
        d, S = self.gram.n_columns, self.gram
        if S.low is None:
            raise ValueError("a root needs twofold sums")
        order = np.concatenate([[d], np.arange(d)]) if self.center else np.arange(d)
        places = np.ix_(order, order)
        norms = S.norms if not self.center else np.concatenate([[np.sqrt(S.sum_weight)], S.norms])
        upper = _twofold_root(S.sums[places], S.low[places], norms)
        first = int(self.center)  # eliminating the column of ones first centres the others
        return np.asarray(upper[first:, first:] * self._times / np.sqrt(S.sum_weight))

    def _set(self, statistic: Gram) -> None:
        self.gram = statistic
        s, d, W = statistic.scaling, statistic.n_columns, statistic.sum_weight
        self.n_rows = statistic.n_rows
        self.sum_weight = W / s.weight_scale
        self._check_weight()
        centred, low = _about_mean(statistic)
        about_shift = np.diagonal(statistic.sums)[:d]
        rounding = MATRIX_ERROR if low is None else 16 * UNIT * UNIT
        self._spread = np.maximum(np.diagonal(centred), 0.0)
        self._spread[self._spread <= 4 * (DEPENDENT * statistic.norms) ** 2] = 0.0
        self._sure = self._spread * 1e-8 >= rounding * about_shift
        self._set_units(s.scale)
        self.mean = np.zeros(d)
        if self.center:
            self.mean = (s.shift + statistic.sums[:d, d] / W) / s.scale
        matrix = centred if self.center else statistic.sums[:d, :d]
        with np.errstate(under="ignore"):
            self.matrix = matrix * self._times[:, None] * self._times[None, :] / W
            self.error = rounding * float(about_shift @ self._times**2) / W
            self.noise = DEPENDENT * float(np.linalg.norm(statistic.norms * self._times)) / np.sqrt(W)
        self.total = float(np.trace(self.matrix))
        self.error += 16 * UNIT * self.total
        self._refuse_range()

    def _set_units(self, powers: Array) -> None:
        """What the scaled columns are multiplied by to become z / unit."""
        if self.standardize:
            sd = np.sqrt(self._spread / self.gram.sum_weight)
            self._times = np.where(sd > 0, 1.0 / np.where(sd > 0, sd, 1.0), 1.0)
            with np.errstate(over="ignore", under="ignore"):
                self.scale = np.where(sd > 0, sd / powers, 1.0)
            self.unit = 1.0
            return
        self.scale = np.ones(len(powers))
        self.unit = float(1.0 / powers.min())
        with np.errstate(under="ignore"):
            self._times = powers.min() / powers


class RowVariance(VarianceTask):
    """K from all rows in memory, for fewer rows than columns."""

    def __init__(self, source: Source, center: bool, standardize: bool, ddof: float) -> None:
        self.source, self.center, self.standardize, self.ddof = source, center, standardize, ddof
        rows = source.gather()
        self.n_rows = rows.n_rows
        self.block: Block = counted(rows)
        sizes = ColumnSizes.of(self.block)
        if not np.isfinite(sizes.columns).all():
            refuse_nonfinite(source)
        self._powers = sizes.powers()
        weight = np.ones(self.block.n_rows) if self.block.weight is None else self.block.weight
        self._weight = weight * float(self._powers.weight)
        self._sum = float(self._weight.sum())
        refuse_no_weight(self._sum)
        self.sum_weight = self._sum / float(self._powers.weight)
        self._check_weight()
        self._set_columns()
        self._pieces: dict[int, Array] = {}
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
        """The same from twofold sums."""
        self._set_kernel(*self._summed(twofold=True))

    def product(self, directions: Array) -> Array:
        """A V = Z'(Z V) / sum of weights, from the rows: K takes no part."""
        scores = np.zeros((self.block.n_rows, directions.shape[1]))
        for at in self._places():
            scores += self._centred(at).T @ directions[at]
        return np.concatenate([self._centred(at) @ scores for at in self._places()]) / self._sum

    def lifted(self, vectors: Array) -> Array:
        """Directions Z'q / |Z'q| for eigenvectors q over the rows, made orthonormal in their order."""
        columns = np.concatenate([self._centred(at) @ vectors for at in self._places()])
        return np.asarray(scipy.linalg.qr(columns, mode="economic")[0]) if columns.shape[1] else columns

    def eigenvalues(self) -> Array:
        """Those of K."""
        return np.asarray(np.linalg.eigvalsh(self.kernel)[::-1])

    def root(self) -> Array:
        """R with R'R = K, from twofold sums."""
        if self.kernel_low is None:
            raise ValueError("a root needs twofold sums")
        norms = np.sqrt(np.maximum(np.diagonal(self.kernel), 0.0) + self._about_zero)
        return _twofold_root(self.kernel, self.kernel_low, norms)

    def _set_columns(self) -> None:
        """Means and scales of the columns, a piece at a time."""
        d, one = self.source.n_features, float(self._powers.columns.min())
        power = self._powers.columns if self.standardize else np.full(d, one)
        mean, sd = np.zeros(d), np.ones(d)
        for at in self._places():
            z = self._transposed(at) * power[at, None]
            mean[at] = z @ self._weight / self._sum
            if self.standardize:
                sd[at] = _deviations(z, mean[at], self._weight, self._sum)
        self.unit = 1.0 if self.standardize else 1.0 / one
        with np.errstate(over="ignore", under="ignore"):
            self.scale = np.where(sd > 0, sd / power, 1.0) if self.standardize else np.ones(d)
        self._shift = mean if self.center else np.zeros(d)
        self._power, self._times = power, np.where(sd > 0, 1.0 / np.where(sd > 0, sd, 1.0), 1.0)
        self.mean = self._shift / power
        self._about_zero = float(((self._shift * self._times) ** 2).sum()) / self._sum

    def _places(self) -> list[slice]:
        return [slice(begin, begin + PIECE) for begin in range(0, self.source.n_features, PIECE)]

    def _transposed(self, at: slice) -> Array:
        part = self.block.X[:, at]
        dense = part.toarray() if sp.issparse(part) else part
        return np.array(dense.T, dtype=np.float64, order="C")  # the order of BLAS's sums depends on the layout

    def _centred(self, at: slice) -> Array:
        """z' sqrt(w) for a range of columns: a row of it is a column of Z."""
        if at.start in self._pieces:
            return self._pieces[at.start]
        z = self._transposed(at)
        z *= self._power[at, None]
        z -= self._shift[at, None]
        if self.standardize:
            z *= self._times[at, None]
        if self.block.weight is not None:
            z *= np.sqrt(self._weight)
        if not sp.issparse(self.block.X) and 8 * self.block.n_rows * self.n_columns <= LARGEST_COPY:
            self._pieces[at.start] = z
        return z

    def _summed(self, twofold: bool) -> tuple[Array, Array | None]:
        """K as the Gram matrix of the transposed rows, summed over ranges of columns."""
        n = self.block.n_rows
        arguments = (None, None, np.ones(n), np.zeros(n), 1.0, 0.0, 1.0, min(block_rows(n), PIECE), twofold)
        total: tf.Pair = (np.zeros((n + 1, n + 1)), np.zeros((n + 1, n + 1)))
        for at in self._places():
            sums, low = core.gram([("dense", self._centred(at))], *arguments, n_threads())
            total = tf.add(total, (sums, low)) if twofold else (total[0] + sums, total[1])
        if not np.isfinite(total[0]).all():
            refuse_nonfinite(self.source)
        return total[0][:n, :n], total[1][:n, :n] if twofold else None

    def _set_kernel(self, sums: Array, low: Array | None) -> None:
        self.kernel = sums / self._sum
        # The quotient of a pair, in two steps.
        self.kernel_low = None
        if low is not None:
            product, rest = tf.two_product(self.kernel, np.full_like(self.kernel, self._sum))
            self.kernel_low = ((sums - product) - rest + low) / self._sum
        self.total = float(np.trace(self.kernel))
        plain = MATRIX_ERROR if low is None else 16 * UNIT
        self.error = plain * self.total
        # Rows are centred before they are multiplied: their roundings stay whatever the sums.
        self.noise = 16 * UNIT * float(np.sqrt((self._about_zero + self.total / self._sum) * self.block.n_rows))


def _twofold_root(matrix: Array, low: Array, norms: Array) -> Array:
    """R with R'R = matrix + low, a row a column that is not dependent on those before it."""
    system = System(matrix, low, norms)
    u = system.units
    arrays = system.scaled, low * u[:, None] * u[None, :], (DEPENDENT * norms * u) ** 2
    _, _, (upper, _) = core.twofold_cholesky(*(np.ascontiguousarray(a) for a in arrays), n_threads())
    return np.asarray(upper / u)


def _about_mean(statistic: Gram) -> tuple[Array, Array | None]:
    """sum_i w_i (x_i - mean)(x_i - mean)', scaled; with its low part where sums are twofold."""
    d, S, low = statistic.n_columns, statistic.sums, statistic.low
    sums = S[:d, d]
    if low is None:
        return S[:d, :d] - np.outer(sums, sums) / statistic.sum_weight, None
    total = (np.full(d, S[d, d]), np.full(d, low[d, d]))
    first = sums / S[d, d]
    left = tf.add((sums, low[:d, d]), tf.multiply((-first, np.zeros(d)), total))
    mean = tf.add((first, np.zeros(d)), (left[0] / S[d, d], np.zeros(d)))
    products = tf.multiply((-mean[0][:, None], -mean[1][:, None]), (sums[None, :], low[None, :d, d]))
    return tf.add((S[:d, :d], low[:d, :d]), products)


def _deviations(z: Array, mean: Array, weight: Array, total: float) -> Array:
    """Standard deviations of the rows of z; 0 where they are rounding of the mean."""
    size = np.abs(z).max(axis=1)
    squares = ((z - mean[:, None]) ** 2) @ weight / total
    sd = np.sqrt(squares)
    return np.where(sd > 8 * z.shape[1] * UNIT * size, sd, 0.0)


def few_rows(source: Source, most_columns: int) -> tuple[bool, int | None]:
    """Whether rows are fewer than columns, and their number where it was counted: for many columns alone."""
    if source.n_features <= most_columns:
        return False, None
    n_rows = sum(run.n_rows for run in source.runs())
    return n_rows < source.n_features, n_rows
