"""Principal components: what is maximised, and the two matrices that hold it.

A = sum_i w_i z_i z_i' / sum_i w_i,  z = (x - mean) / scale,  mean 0 and scale 1 where they are not asked for.
k orthonormal directions V explain trace V'AV of trace A. With more rows than columns A itself is at hand
(`ColumnVariance`); else the matrix K_ij = sqrt(w_i w_j) z_i'z_j / sum of weights, which has the same non-zero
eigenvalues: K q = lambda q gives the direction Z'q / |Z'q| (`RowVariance`).

All sums are in units of `unit`, a power of two, so that no square of large or small values overflows or vanishes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.data.columns import Array, dense_rows
from certifit.data.source import Block, Source
from certifit.runtime import core, n_threads
from certifit.statistics import double_double as dd
from certifit.statistics.class_moments import PIECE_ENTRIES
from certifit.statistics.factor import DEPENDENT, System
from certifit.statistics.gram import Gram, gram
from certifit.statistics.moments import refuse_small_spreads
from certifit.statistics.residual import MATRIX_ERROR, TWOFOLD_UNIT, UNIT

SHARP = 1e-8  # largest relative error of a variance from float64 sums
SHARP_TOTAL = 1e-11  # largest error of the matrix, relative to its trace
MOST_BLOCK_ROWS = 1 << 16
LARGEST_CONSTANT = 1e150  # of a column that is neither centred nor has a spread: sums of its squares are finite
TIE = 1e-6  # relative difference below which entries of a direction have the same size
ENTRY = 4 * UNIT  # rounding of the entries, relative to their size about zero


@dataclass(frozen=True)
class Directions:
    """A state: orthonormal directions (one per row), the variance along each, and what rows are centred and scaled by.

    All in the user's units.
    """

    components: Array
    variances: Array
    mean: Array
    scale: Array


def signs(V: Array) -> Array:
    """Signs that make the largest entry of every direction positive; of equal ones the first."""
    sizes = np.abs(V)
    first = np.argmax(sizes >= (1 - TIE) * sizes.max(axis=0), axis=0)
    return np.where(V[first, np.arange(V.shape[1])] < 0, -1.0, 1.0)


def turned(state: Directions) -> float:
    """2 where the largest entry of a direction is negative, or 0: how far it is from the one that a fit keeps."""
    return float((1 - signs(state.components.T)).max(initial=0.0))


class VarianceTask(ABC):
    """What a solver and a certificate need of the rows; A is never asked for as such.

    total: trace of A. error: how far A as held can be from the rows' own, in the spectral norm.
    noise: standard deviations below this are rounding: 2^-46 of the root of the total, and of the entries some units in
    their last places, so that an offset of the rows hides no variance that they have.
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
    _values: tuple[Array, Array] | None = None  # the matrix and its eigenvalues

    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""
        return {"n_rows": self.n_rows, "sum_weight": self.sum_weight}

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

    @property
    @abstractmethod
    def is_refined(self) -> bool:
        """Whether sums are as good as they get."""

    @abstractmethod
    def refine(self) -> None:
        """Twofold sums in place of float64 ones."""

    def refine_for(self, smallest: float) -> None:
        """Refine where float64 sums do not know a variance of this size to eight digits, in units of A."""
        is_sharp = self.error <= SHARP * smallest and self.error <= SHARP_TOTAL * self.total
        if not (is_sharp or self.is_refined or self.total == 0):
            self.refine()

    @abstractmethod
    def product(self, directions: Array) -> Array:
        """A V for directions in columns."""

    @property
    @abstractmethod
    def held(self) -> Array | None:
        """A matrix with the eigenvalues of A that can differ from 0; None where there is none."""

    def eigenvalues(self) -> Array | None:
        """All eigenvalues of the matrix, the largest first; None where there is no matrix."""
        matrix = self.held
        if matrix is None:
            return None
        if self._values is None or self._values[0] is not matrix:
            self._values = (matrix, np.linalg.eigvalsh(matrix)[::-1])
        return self._values[1]

    def _standard_times(self, sd: Array, powers: Array) -> Array:
        """What scaled columns are multiplied by where all are to have the spread 1.

        Constant ones stay as they are, and centred ones are 0 in any unit.
        """
        constant = np.ones(len(powers)) if self.center else 1.0 / powers
        times = np.where(sd > 0, 1.0 / np.where(sd > 0, sd, 1.0), constant)
        largest = float(times[sd == 0].max(initial=0.0))
        if largest > LARGEST_CONSTANT:
            raise ValueError(
                f"X has a column that does not vary, of some {largest:.0e}: its square is too large for float64. Leave "
                "it out, or use center=True."
            )
        return np.asarray(times)

    def _set_scale(self, sd: Array, powers: Array) -> None:
        """The user's standard deviations, of columns that were multiplied by powers; 1 for one that does not vary."""
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            self.scale = np.where(sd > 0, sd / powers, 1.0)
        refuse_small_spreads(self.scale, self.source.names)

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
        cancels = standardize and not (self._sure & (self._spread > 0)).all()  # standard deviations
        if cancels or self.total <= 2 * self.error > 0:
            self.refine()
        self._refuse_range()

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

    def root(self) -> Array:
        """R with R'R = A, from twofold sums: its singular values lose no digits to squaring."""
        d, S = self.gram.n_columns, self.gram
        if S.low is None:
            raise ValueError("a root needs twofold sums")
        order = np.concatenate([[d], np.arange(d)]) if self.center else np.arange(d)
        places = np.ix_(order, order)
        about_shift = np.sqrt(np.diagonal(S.sums)[:d])  # what sums are rounded relative to
        norms = about_shift if not self.center else np.concatenate([[np.sqrt(S.sum_weight)], about_shift])
        upper = twofold_root(S.sums[places], S.low[places], norms)
        first = int(self.center)  # eliminating the column of ones first centres the others
        times = np.where(self._constant, 0.0, self._times)
        return np.asarray(upper[first:, first:] * times / np.sqrt(S.sum_weight))

    def _set(self, statistic: Gram) -> None:
        self.gram = statistic
        s, d, W = statistic.scaling, statistic.n_columns, statistic.sum_weight
        self.n_rows = statistic.n_rows
        self.sum_weight = W / s.weight_scale
        self._check_weight()
        centred, low = _about_mean(statistic)
        about_shift = np.diagonal(statistic.sums)[:d].copy()
        # The low parts of a block are added in float64: roundings of one sign add up row by row.
        lost = 4 * max(TWOFOLD_UNIT, UNIT**2 * min(statistic.n_rows, MOST_BLOCK_ROWS))
        rounding = MATRIX_ERROR if low is None else lost
        about, within = about_shift, centred
        if self.standardize and not self.center:  # standard deviations are about the mean all the same
            apart = gram(self.source, centred=True, twofold=low is not None)
            about = np.diagonal(apart.sums)[:d] * (s.scale / apart.scaling.scale) ** 2
            within = _about_mean(apart)[0] * (s.scale / apart.scaling.scale) ** 2
        self._spread = np.maximum(np.diagonal(within), 0.0)
        # A constant column is shifted to 0 by its value, unless it is sparse: then sums of it leave their rounding.
        self._spread[self._spread <= (0.0 if low is None else rounding * about)] = 0.0
        self._sure = self._spread * 1e-8 >= rounding * about
        self._constant = self._constant_columns(about_shift)
        about_shift[self._constant] = 0.0
        self._set_units(s.scale)
        self.mean = np.zeros(d)
        if self.center:
            self.mean = (s.shift + statistic.sums[:d, d] / W) / s.scale
        matrix = centred if self.center else statistic.sums[:d, :d]
        with np.errstate(over="ignore", under="ignore"):  # of a spread whose square is below the normal numbers
            times = np.where(self._constant, 0.0, self._times)
            self.matrix = matrix * times[:, None] * times[None, :] / W
            self.error = rounding * float(about_shift @ self._times**2) / W
            entries = ENTRY * float(np.linalg.norm(statistic.norms * times)) / np.sqrt(W)
            size = float(about_shift @ self._times**2) / W
        self.total = float(np.trace(self.matrix))
        if low is not None and self.source.first_block().weight is not None:
            # Entries times the root of a weight are rounded before they are multiplied.
            self.error += 4 * UNIT * float(np.sqrt(size * max(self.total, 0.0)))
        self.noise = DEPENDENT * float(np.sqrt(max(self.total, 0.0))) + entries
        self.error += (16 * UNIT + self._scale_error(about, rounding)) * abs(self.total)
        if self.total <= 0:  # what is left of the matrix is rounding
            self.matrix, self.total = np.zeros((d, d)), 0.0
        if self._constant.all():
            self.error = 0.0

    def _constant_columns(self, about_shift: Array) -> Array:
        """Columns that are centred and do not vary: their entries have no rounding that hides what others vary.

        A constant column is shifted to 0 by its value. Of sparse columns, those are looked at whose sums tell nothing.
        """
        if not self.center:
            return np.zeros(len(about_shift), dtype=bool)
        is_constant = about_shift == 0
        unsure = np.flatnonzero((self._spread == 0) & ~is_constant)
        if len(unsure):
            is_constant[unsure] = are_constant(self.source, unsure)
        return np.asarray(is_constant)

    def _scale_error(self, about: Array, rounding: float) -> float:
        """Largest relative error of a variance that columns are divided by; entries by roots of weights are rounded."""
        if not self.standardize:
            return 0.0
        used = self._spread > 0
        if self.is_refined and not used.all() and not are_constant(self.source, np.flatnonzero(~used)).all():
            return float(np.inf)  # a column that varies, by less than sums of its squares tell
        cancelled = about[used] / self._spread[used]
        return float((rounding * cancelled + 4 * UNIT * np.sqrt(cancelled)).max(initial=0.0))

    def _set_units(self, powers: Array) -> None:
        """What the scaled columns are multiplied by to become z / unit."""
        if self.standardize:
            sd = np.sqrt(self._spread / self.gram.sum_weight)
            self._times = self._standard_times(sd, powers)
            self._set_scale(sd, powers)
            self.unit = 1.0
            return
        self.scale = np.ones(len(powers))
        used = (self.gram.norms > 0) & ~self._constant  # a column that does not vary has no size
        smallest = float(powers.min(where=used, initial=np.inf)) if used.any() else 1.0
        self.unit = 1.0 / smallest
        with np.errstate(under="ignore"):
            self._times = np.where(used, smallest / powers, 1.0)


@dataclass(frozen=True)
class _Range:
    """Smallest and largest entries of columns, over the rows that count."""

    least: Array
    most: Array

    @staticmethod
    def of(stretch: Block, columns: Array) -> _Range:
        least, most = np.full(len(columns), np.inf), np.full(len(columns), -np.inf)
        size = max(1, PIECE_ENTRIES // max(stretch.X.shape[1], 1))
        for begin in range(0, stretch.n_rows, size):
            part = stretch.part(begin, begin + size)
            rows = dense_rows(part.X)[:, columns]
            rows = rows if part.weight is None else rows[part.weight > 0]
            least = np.minimum(least, rows.min(axis=0, initial=np.inf))
            most = np.maximum(most, rows.max(axis=0, initial=-np.inf))
        return _Range(least, most)

    def __add__(self, other: _Range) -> _Range:
        return _Range(np.minimum(self.least, other.least), np.maximum(self.most, other.most))


def are_constant(source: Source, columns: Array) -> Array:
    """Whether no entry of a column differs from its others, over the rows that count: one pass."""
    ranges: _Range = source.reduce(partial(_Range.of, columns=columns))
    return np.asarray(ranges.least >= ranges.most)


def twofold_root(matrix: Array, low: Array, norms: Array) -> Array:
    """R with R'R = matrix + low, a row per column that is not dependent on those before it."""
    system = System(matrix, low, norms)
    u = system.units
    with np.errstate(over="ignore"):  # what is infinite is dependent
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
    left = dd.add((sums, low[:d, d]), dd.multiply((-first, np.zeros(d)), total))
    mean = dd.add((first, np.zeros(d)), (left[0] / S[d, d], np.zeros(d)))
    products = dd.multiply((-mean[0][:, None], -mean[1][:, None]), (sums[None, :], low[None, :d, d]))
    return dd.add((S[:d, :d], low[:d, :d]), products)


def few_rows(source: Source, most_columns: int) -> tuple[bool, int | None]:
    """Whether rows are fewer than columns, and their number where it was counted: for many columns alone."""
    if source.n_features <= most_columns:
        return False, None
    n_rows = sum(stretch.n_rows for stretch in source.stretches())
    return n_rows < source.n_features, n_rows
