"""Means and scatter matrices of every class from one pass: the Gram statistic summed by label.

Moments of the rows about a state of Gaussian classes: what the state is off by, from the rows alone.

With z = x scale - m_k (m_k the state's mean, scaled), u = T_k z (T_k its root, S_k^-1 = T_k'T_k) and weights w that add
up to 1 in every class:

    step_k = sum w z,  spread_k = sum w z z',  lean_k = sum w u,  whitened_k = sum w u u'

At the closed form step = lean = 0, spread = S and whitened = I, whatever the condition of S: nothing cancels in these
sums. Columns that nearly repeat others cancel in u alone, which is twofold there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

import numpy as np

from certifit.data.cells import Cells
from certifit.data.columns import Array, dense_rows
from certifit.data.source import Block, Source
from certifit.runtime import FEWER_CLASSES, check_memory
from certifit.statistics import double_double as dd
from certifit.statistics.cell_sums import MOST_CANCELLED
from certifit.statistics.gram import STILL_SHARE, CellGrams, Gram, Scaling, cell_grams


@dataclass(frozen=True)
class ClassScatter:
    """Of every class: sum of weights, mean z, sum of w (z - mean)(z - mean)'; z = x scale - shift.

    total: the Gram statistic of all rows. resum: makes the same from twofold sums.
    Weights are in units of 1 / weight_scale.
    """

    weight: Array  # classes
    away: Array  # classes x columns: mean z
    scatter: Array  # classes x columns x columns
    low: Array | None  # its low part where sums are twofold
    total: Gram
    n_rows: Array
    resum: Callable[[], ClassScatter] | None = field(default=None, compare=False, repr=False)

    @property
    def scaling(self) -> Scaling:
        """Scales and shifts of z."""
        return self.total.scaling

    @property
    def means(self) -> Array:
        """Mean of every class in the user's units."""
        return (self.away + self.scaling.shift) / self.scaling.scale

    @property
    def weights(self) -> Array:
        """Sum of weights of every class in the user's units."""
        return self.weight / self.scaling.weight_scale

    @property
    def norms(self) -> Array:
        """Root mean squares of the scaled columns about 0: what rounding is relative to."""
        return np.asarray(self.total.norms / np.sqrt(self.total.sum_weight))

    def mean_of(self, shares: Array) -> tuple[Array, Array | None]:
        """sum_k shares_k scatter_k / weight_k, and its low part: shares of one class alone, or of all."""
        factors = np.divide(shares, self.weight, out=np.zeros(len(shares)), where=self.weight > 0)
        if self.low is None:
            return np.tensordot(factors, self.scatter, 1), None
        total: dd.Pair = (np.zeros(self.scatter.shape[1:]), np.zeros(self.scatter.shape[1:]))
        for k in np.flatnonzero(shares):
            times = (np.asarray(factors[k]), np.zeros(()))
            total = dd.add(total, dd.multiply((self.scatter[k], self.low[k]), times))
        return total

    def total_covariance(self) -> Array:
        """Of all rows, in the user's units."""
        weight, _, scatter, _ = about_mean(self.total)
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(scatter / weight / self.scaling.scale / self.scaling.scale[:, None])

    def is_cancelled(self) -> bool:
        """Whether class means lie so far from the shift that variances lose more than four digits."""
        d = self.away.shape[1]
        if self.low is not None or d == 0:
            return False
        variance = np.diagonal(self.scatter, axis1=1, axis2=2)
        return bool((self.weight[:, None] * self.away**2 > MOST_CANCELLED * variance).any())

    @staticmethod
    def of(grams: CellGrams, times: Array, resum: Callable[[], ClassScatter] | None = None) -> ClassScatter:
        """Of classes that are unions of cells: class k holds cell c times[k, c] times."""
        parts = [about_mean(grams.combined(cells)) for cells in times]
        weight, away, scatter = (np.array([part[i] for part in parts]) for i in range(3))
        low = None if grams.low is None else np.array([part[3] for part in parts])
        n_rows = (times > 0) @ grams.n_rows
        return ClassScatter(weight, away, scatter, low, grams.combined(times.sum(axis=0)), n_rows, resum)


def class_scatter(source: Source, cells: Cells, twofold: bool = False) -> ClassScatter:
    """Of the cells of a source: one pass."""
    check_memory(8.0 * cells.n_cells**2, f"A discriminant of {cells.n_cells:,} classes", FEWER_CLASSES)
    resum = None if twofold else partial(class_scatter, source, cells, twofold=True)
    return ClassScatter.of(class_grams(source, cells, twofold), np.eye(cells.n_cells), resum)


def class_grams(source: Source, cells: Cells, twofold: bool = False) -> CellGrams:
    """The Gram statistic of every cell of labels."""
    return cell_grams(source, cells, centred=True, twofold=twofold)


def about_mean(gram: Gram) -> tuple[float, Array, Array, Array | None]:
    """(weight, mean, scatter, its low part) of z.

    S - s m' - m s' + W m m' is the scatter about m; at the rounded mean it is the scatter about the mean to W ulp^2.
    Of a column whose scatter is rounding of twofold sums, as of one that is constant and not shifted, it is exactly 0.
    """
    d = gram.n_columns
    total, sums, squares = gram.sum_weight, gram.sums[:d, d], gram.sums[:d, :d]
    away = sums / total if total > 0 else np.zeros(d)
    if gram.low is None:
        return total, away, squares - sums[:, None] * away[None, :], None
    zero = np.zeros(d)
    mean = (away, zero)
    pair = (sums, gram.low[:d, d])
    cross = _outer(pair, mean)
    mass = dd.multiply(_outer(mean, mean), (np.asarray(total), np.asarray(gram.low[d, d])))
    out = dd.add((squares, gram.low[:d, :d]), (-cross[0], -cross[1]))
    out = dd.add(out, (-cross[0].T, -cross[1].T))
    scatter, low = dd.add(out, mass)
    is_still = np.diagonal(scatter) <= STILL_SHARE * np.diagonal(squares)
    for part in (scatter, low):
        part[is_still], part[:, is_still] = 0.0, 0.0
    return total, away, scatter, low


def _outer(a: dd.Pair, b: dd.Pair) -> dd.Pair:
    return dd.multiply((a[0][:, None], a[1][:, None]), (b[0][None, :], b[1][None, :]))


PIECE_ROWS = 1024
PIECE_ENTRIES = 1 << 22
LARGEST_DENOMINATOR = 1000
NEAR = 1e-9
LARGE_PRODUCT = 1e6  # terms of u this many times its size are added in twofold precision


@dataclass(frozen=True)
class StateMoments:
    """Sums of every class; spread and whitened hold squares alone where the roots are rows of numbers."""

    total: Array  # classes: 1 but for rounding
    step: Array  # classes x columns
    spread: Array
    lean: Array
    whitened: Array
    is_twofold: bool

    def __add__(self, other: StateMoments) -> StateMoments:
        return StateMoments(
            self.total + other.total,
            self.step + other.step,
            self.spread + other.spread,
            self.lean + other.lean,
            self.whitened + other.whitened,
            self.is_twofold,
        )


def state_moments(
    source: Source, cells: Cells, scaling: Scaling, weight: Array, means: Array, roots: Array, spreads: Array
) -> StateMoments:
    """One pass. means, roots (classes x rows x columns) and spreads (standard deviations) are scaled.

    weight: sum of the scaled weights of every class.
    """
    amplified = (np.abs(roots) * spreads[:, None, :]).sum(axis=2).max(initial=0.0)
    of_stretch = partial(
        _of_stretch, cells=cells, scaling=scaling, weight=weight, means=means, roots=roots,
        is_twofold=bool(roots.shape[1] > 1 and amplified > LARGE_PRODUCT),
    )  # fmt: skip
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        moments: StateMoments = source.reduce(of_stretch)
    return moments


def _of_stretch(
    stretch: Block, cells: Cells, scaling: Scaling, weight: Array, means: Array, roots: Array, is_twofold: bool
) -> StateMoments:
    d = means.shape[1]
    size = max(1, min(PIECE_ROWS, PIECE_ENTRIES // max(d, 1)))
    square = roots.shape[1] > 1
    K, shape = len(means), (d, d) if square else (d,)
    zero = np.zeros((K, d))
    total = StateMoments(np.zeros(K), zero, np.zeros((K, *shape)), zero, np.zeros((K, *shape)), is_twofold)
    for begin in range(0, stretch.n_rows, size):
        part = stretch.part(begin, begin + size)
        numbers = cells.of(part)
        x = dense_rows(part.X) * scaling.scale
        w = np.ones(part.n_rows) if part.weight is None else part.weight * scaling.weight_scale
        sums = [_of_class(x, w, numbers == k, weight[k], means[k], roots[k], is_twofold) for k in range(K)]
        a, b, c, e, f = (np.array(parts) for parts in zip(*sums, strict=True))
        total = total + StateMoments(a, b, c, e, f, is_twofold)
    return total


def _of_class(
    x: Array, w: Array, is_own: Array, whole: float, mean: Array, root: Array, is_twofold: bool
) -> tuple[Array, Array, Array, Array, Array]:
    is_own = is_own & (w > 0)
    share = (w[is_own] / whole)[:, None]
    hi, lo = dd.two_sum(x[is_own], -mean)
    if len(root) == 1:
        u = hi * root[0]
        return share.sum(), (share * hi).sum(axis=0), (share * hi * hi).sum(axis=0), *_squares(share, u)
    u = _twofold_product(hi, lo, root) if is_twofold else hi @ root.T
    return share.sum(), hi.T @ share[:, 0], (share * hi).T @ hi, u.T @ share[:, 0], (share * u).T @ u


def _squares(share: Array, u: Array) -> tuple[Array, Array]:
    return (share * u).sum(axis=0), (share * u * u).sum(axis=0)


def _twofold_product(hi: Array, lo: Array, root: Array) -> Array:
    """z T' for rows z = hi + lo and a lower triangle T."""
    total: dd.Pair = (np.zeros(hi.shape), np.zeros(hi.shape))
    for j in range(len(root)):
        used = slice(j, None)
        entries = root[None, used, j]
        term = dd.multiply((hi[:, j, None], lo[:, j, None]), (entries, np.zeros_like(entries)))
        total[0][:, used], total[1][:, used] = dd.add((total[0][:, used], total[1][:, used]), term)
    return total[0]


@dataclass(frozen=True)
class Remainders:
    """Of columns that are combinations of others: the largest remainder of each, as a share of its rounding."""

    size: Array

    def __add__(self, other: Remainders) -> Remainders:
        return Remainders(np.maximum(self.size, other.size))


def remainders(source: Source, columns: Array, others: Array, times: Array) -> Array:
    """Largest |e_i| by what the rounding of the entries explains, of x_c = constant + times x_others + e in every row.

    e_i = (x_ic - x_0c) - times (x_i - x_0) in twofold precision; rounding of the entries, and of
    the numbers `times`, explains 2u of the magnitudes.
    0: the column is such a combination to the last bit; up to 1: to the rounding of its entries.
    """
    first = next(block for block in source.stretches() if (_own_rows(block)).any())
    start = dense_rows(first.where(_own_rows(first)).part(0, 1).X)[0]
    of_stretch = partial(_remainders, columns=columns, others=others, times=times, start=start)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        sums: Remainders = source.reduce(of_stretch)
    return sums.size


def plain_numbers(times: Array) -> Array:
    """Numbers as small fractions, or 0, where they are near one: relations made by hand have those."""
    fractions = np.array([float(Fraction(float(t)).limit_denominator(LARGEST_DENOMINATOR)) for t in times.ravel()])
    return np.where(np.abs(fractions.reshape(times.shape) - times) <= NEAR, fractions.reshape(times.shape), times)


def _own_rows(block: Block) -> Array:
    is_own = np.ones(block.n_rows, dtype=bool) if block.y is None else np.asarray(block.y >= 0)
    return is_own if block.weight is None else is_own & (block.weight > 0)


def _remainders(stretch: Block, columns: Array, others: Array, times: Array, start: Array) -> Remainders:
    size = max(1, min(PIECE_ROWS, PIECE_ENTRIES // max(len(start), 1)))
    total = np.zeros(len(columns))
    for begin in range(0, stretch.n_rows, size):
        part = stretch.part(begin, begin + size)
        x = dense_rows(part.X)[_own_rows(part)]
        for i, j in enumerate(columns):
            used = np.flatnonzero(times[i])
            left, sizes = dd.two_sum(x[:, j], -start[j]), np.abs(x[:, j]) + abs(start[j])
            for k, t in zip(others[used], times[i][used], strict=True):
                away = dd.two_sum(x[:, k], -start[k])
                factor = np.full(len(x), -t)
                left = dd.add(left, dd.multiply(away, (factor, np.zeros(len(x)))))
                sizes += abs(t) * (np.abs(x[:, k]) + abs(start[k]))
            allowed = 2.0**-52 * sizes
            shares = np.divide(np.abs(left[0]), allowed, out=np.zeros(len(x)), where=left[0] != 0)
            total[i] = max(total[i], shares.max(initial=0.0))
    return Remainders(total)
