"""The Gram statistic: all that the data say about least squares.

S = sum_i w_i z_i z_i',  z = (x scale - shift, 1, y y_scale - y_shift). Scales are powers of two, so scaling is
exact; shifts keep sums of squares from cancelling. `twofold` sums carry some 100 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from certifit.data.cells import Cells
from certifit.data.columns import Array, Codes, Columns, Csr
from certifit.data.source import Block, Source
from certifit.data.user_input import refuse_nonfinite
from certifit.runtime import check_memory, check_work, core, memory_limit, n_threads, work_limit
from certifit.statistics import double_double as dd

NEAR_SHARE = 1e-3  # of a column's squares: squares about its mean below this share lose digits in float64
FAR_SHARE = 1e-6  # the same for ridge, whose condition tells of shares above it, and for spreads of the target
STILL_SHARE = 2.0**-94  # of a column's squares: squares about its mean below this share are rounding of twofold sums
CUBE_SECONDS = {
    False: 2e-10,
    True: 1e-9,
}  # of one core of 2024 to factor and invert, per cube of columns; twofold or not
ROUGH_SHARE = 1 / 16  # of a column's squares: squares about its mean below it are known to fewer digits than entries
NO_SPREAD = 1e-14  # of a column's mean square about its shift: a variance below it is rounding


@dataclass(frozen=True)
class Scaling:
    """Powers of two that bring columns, target and weights near 1, and shifts in those units."""

    scale: Array
    shift: Array
    y_scale: float
    y_shift: float
    weight_scale: float

    @staticmethod
    def of(source: Source, centred: bool, exact: bool, largest: ColumnSizes | None = None) -> Scaling:
        """From block 0, or from the largest entries of all rows when block 0 turned out to mislead.

        With an intercept columns are shifted by their mean; an exact statistic only where that loses no bit: a
        spread far below the mean puts x within [mean/2, 2 mean], where x - mean is exact.
        """
        block = counted(source.first_block())
        powers = (ColumnSizes.of(block) if largest is None else largest).powers()
        scale, y_scale = powers.columns, float(powers.target)
        shift, y_shift = np.zeros(len(scale)), 0.0
        if centred:
            shifts = core.column_shifts(_with_target(block), powers.of_all(block.y is not None), exact)
            y_shift = 0.0 if block.y is None else float(shifts[-1])
            shift = shifts[: len(scale)]
            if isinstance(block.X, Columns) or sp.issparse(block.X):
                shift[~_is_shifted(block.X)] = 0.0
        return Scaling(scale, shift, y_scale, y_shift, float(powers.weight))

    def of_state(self, coef: Array, intercept: float) -> tuple[Array, float]:
        """Weights and intercept for scaled columns and target. One that is not 0 stays one, however small."""
        return core.scaled_coef(np.ascontiguousarray(coef), self.scale, self.y_scale), intercept * self.y_scale

    def within(self, most: Array) -> Scaling:
        """The same with no column's scale above `most`, which a strong penalty on a column of 1e-150 asks for."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            powers = np.exp2(np.floor(np.log2(most / self.scale)))
        factor = np.where(powers < 1, powers, 1.0)
        return self if (factor == 1).all() else replace(self, scale=self.scale * factor, shift=self.shift * factor)


def scaled_weights(coef: Array, scale: Array, y_scale: float) -> Array:
    """coef / scale y_scale, powers of two, rounded once at most: coef / scale may be below the normal numbers."""
    return np.asarray(np.ldexp(coef, np.frexp(y_scale)[1] - np.frexp(scale)[1]))


@dataclass(frozen=True)
class ColumnSizes:
    """Largest absolute entries of every column, of the target and of the weights."""

    columns: Array
    target: np.float64
    weight: np.float64

    @staticmethod
    def of(block: Block, columns: Array | None = None) -> ColumnSizes:
        """Of the rows of one block. columns: those of the columns, where they are known."""
        block = counted(block)
        if columns is not None and block.y is not None:
            target = core.column_sizes([("dense", block.y[:, None])])[0]
        else:
            sizes = core.column_sizes(_with_target(block))
            columns, target = (sizes, np.float64(0)) if block.y is None else (sizes[:-1], sizes[-1])
        weight = np.max(block.weight) if block.weight is not None and len(block.weight) else np.float64(1)
        return ColumnSizes(columns, target, weight)

    def of_all(self, has_target: bool) -> Array:
        """Those of the columns, then that of the target."""
        return np.append(self.columns, self.target) if has_target else np.ascontiguousarray(self.columns)

    def powers(self) -> ColumnSizes:
        """The powers of two that bring these sizes near 1."""
        powers = core.powers_of_two(np.append(self.columns, (self.target, self.weight)))
        return ColumnSizes(powers[:-2], powers[-2], powers[-1])

    def __add__(self, other: ColumnSizes) -> ColumnSizes:
        return ColumnSizes(
            np.maximum(self.columns, other.columns),
            np.maximum(self.target, other.target),
            np.maximum(self.weight, other.weight),
        )


@dataclass(frozen=True)
class ColumnRange:
    """Smallest and largest entry of every column."""

    lower: Array
    upper: Array

    @staticmethod
    def of(block: Block) -> ColumnRange:
        """Of the rows of one block."""
        if sp.issparse(block.X):
            raise TypeError("A polynomial basis needs dense rows. Got a sparse matrix: use X.toarray().")
        X = block.X.toarray() if isinstance(block.X, Columns) else block.X
        if block.weight is not None:  # a row of weight 0 is no row
            X = X[block.weight > 0]
        if not len(X):
            nowhere = np.full(block.X.shape[1], np.inf)
            return ColumnRange(nowhere, -nowhere)
        lower, upper = X.min(axis=0), X.max(axis=0)
        return ColumnRange(lower.astype(np.float64), upper.astype(np.float64))

    def __add__(self, other: ColumnRange) -> ColumnRange:
        return ColumnRange(np.minimum(self.lower, other.lower), np.maximum(self.upper, other.upper))


@dataclass(frozen=True)
class Gram:
    """S in the order (columns, 1, target), the scaling it was summed in, and the number of rows."""

    sums: Array
    low: Array | None
    scaling: Scaling
    n_rows: int

    @property
    def n_columns(self) -> int:
        """Number of feature columns."""
        return len(self.scaling.scale)

    @cached_property
    def sum_weight(self) -> float:
        """Sum of weights, in units of 1 / weight_scale."""
        return float(self.sums[self.n_columns, self.n_columns])

    @cached_property
    def norms(self) -> Array:
        """Norms of the scaled columns about zero: what an entry's rounding is relative to."""
        d, c = self.n_columns, self.scaling.shift
        squares = self.sums.diagonal()[:d] + 2 * c * self.sums[:d, d] + c * c * self.sum_weight
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)))

    @property
    def y_unit(self) -> float:
        """Scaled squares of the target times this are in the user's units; 0 or infinite where float64 ends."""
        s = self.scaling
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            return float(np.float64(1.0) / (np.float64(s.y_scale) ** 2 * s.weight_scale))

    def target_moments(self) -> tuple[float, float]:
        """Mean of y and the sum of squares about it, both scaled: (mean y_scale, squares y_scale^2 weight_scale)."""
        d = self.n_columns
        mean = self.sums[d, d + 1] / self.sum_weight
        about = max(0.0, float(self._about_means(np.array([d + 1]))[0]))
        if self.low is not None and not about > STILL_SHARE * self.sums[d + 1, d + 1]:
            about = 0.0
        return float(mean + self.scaling.y_shift), about

    def is_target_far(self) -> bool:
        """Whether the mean of the target is so far from its shift that float64 sums lose digits of its spread."""
        d = self.n_columns
        return self.low is None and self.target_moments()[1] < FAR_SHARE * self.sums[d + 1, d + 1]

    def _about_means(self, at: Array) -> Array:
        """Sums of squares about the means of some columns."""
        d, total = self.n_columns, self.sum_weight
        squares, sums = self.sums[at, at], self.sums[d, at]
        if self.low is None:
            return np.asarray(squares - sums * (sums / total))
        mean = sums / total  # squares - mean (2 sums - mean W)
        pair, minus = (sums, self.low[d, at]), (-mean, np.zeros(len(at)))
        whole = (np.full(len(at), self.sums[d, d]), np.full(len(at), self.low[d, d]))
        left = dd.add(pair, dd.multiply(whole, minus))
        return np.asarray(dd.add((squares, self.low[at, at]), dd.multiply(minus, dd.add(pair, left)))[0])

    def spreads(self, centred: bool) -> Array:
        """Standard deviations of the scaled columns, root mean squares where not centred; 0 for what does not vary."""
        at = np.arange(self.n_columns)
        squares = self.sums[at, at]
        about = self._about_means(at) if centred else squares
        least = STILL_SHARE if centred and self.low is not None else NO_SPREAD
        return np.asarray(np.sqrt(np.where(about > least * squares, about, 0.0) / self.sum_weight))

    def has_rough_spreads(self) -> bool:
        """Whether float64 sums lose digits of a standard deviation: a mean far from the shift of its column."""
        d = self.n_columns
        squares, sums = np.diagonal(self.sums)[:d], self.sums[d, :d]
        return self.low is None and bool((squares - sums * (sums / self.sum_weight) < ROUGH_SHARE * squares).any())

    def taken(self, columns: Array) -> Gram:
        """The statistic of some of the columns."""
        d, s = self.n_columns, self.scaling
        at = np.concatenate([columns, [d, d + 1]])
        places = np.ix_(at, at)
        low = None if self.low is None else self.low[places]
        scaling = replace(s, scale=s.scale[columns], shift=s.shift[columns])
        return Gram(self.sums[places], low, scaling, self.n_rows)

    def is_far(self, least: float = NEAR_SHARE) -> bool:
        """Whether the mean of a column, or of the target, is so far from its shift that squares lose digits.

        least: share of the squares about the shift that those about the mean must have.
        """
        d = self.n_columns
        sums, squares = self.sums[d], self.sums.diagonal()
        about = squares - sums * (sums / self.sum_weight)
        about[d] = squares[d]  # the constant has no shift
        return bool((about < least * squares).any())

    def means(self) -> Array:
        """Means of (columns, target), scaled; 0 for the constant between them."""
        d, s = self.n_columns, self.scaling
        means = np.concatenate([s.shift, [0.0, s.y_shift]]) + self.sums[d] / self.sum_weight
        means[d] = 0.0
        return np.asarray(means)

    def about(self, means: Array) -> Gram:
        """The statistic about other shifts of (columns, 1, target), in float64, from twofold sums.

        A column whose squares about its shift are rounding of the sums, as of one that is constant, becomes exactly 0.
        """
        d, s = self.n_columns, self.scaling
        low = np.zeros_like(self.sums) if self.low is None else self.low
        move = dd.two_sum(means, -np.concatenate([s.shift, [0.0, s.y_shift]]))
        across, down = (move[0][None, :], move[1][None, :]), (move[0][:, None], move[1][:, None])
        # sum (z - m)(z - m)' = S - m s' - s m' + m m' W: each term as a pair
        minus = dd.multiply((-down[0], -down[1]), (self.sums[d][None, :], low[d][None, :]))
        square = dd.multiply(dd.multiply(down, across), (self.sums[d, d], low[d, d]))
        moved = dd.add(dd.add((self.sums, low), dd.add(minus, (minus[0].T, minus[1].T))), square)
        sums = moved[0] + moved[1]
        is_still = np.diagonal(sums) <= STILL_SHARE * np.diagonal(self.sums)
        is_still[d:] = False
        sums[is_still], sums[:, is_still] = 0.0, 0.0
        return Gram(sums, None, replace(s, shift=means[:d], y_shift=float(means[d + 1])), self.n_rows)

    def sheared(self, columns: Array, others: Array, times: Array) -> Gram:
        """The statistic after column j has been replaced by column j + times_j (column others_j), user's units.

        A column of which only rounding of twofold sums is left becomes exactly 0.
        """
        s = self.scaling
        with np.errstate(over="ignore", under="ignore"):
            t = times * s.scale[columns] / s.scale[others]
        shift = s.shift.copy()
        shift[columns] += t * s.shift[others]
        sums, low = self.sums.copy(), None if self.low is None else self.low.copy()
        if low is None:
            sums[:, columns] += sums[:, others] * t
            sums[columns] += sums[others] * t[:, None]
        else:
            for a, b in ((sums, low), (sums.T, low.T)):  # first the columns, then the rows of S
                more = dd.multiply((a[:, others], b[:, others]), (t, np.zeros_like(t)))
                a[:, columns], b[:, columns] = dd.add((a[:, columns], b[:, columns]), more)
            still = columns[np.diagonal(sums)[columns] <= STILL_SHARE * np.diagonal(self.sums)[columns]]
            for part in (sums, low):
                part[still], part[:, still] = 0.0, 0.0
        return Gram(sums, low, replace(s, shift=shift), self.n_rows)

    def __add__(self, other: Gram) -> Gram:
        n_rows = self.n_rows + other.n_rows
        if self.low is None or other.low is None:
            return Gram(self.sums + other.sums, None, self.scaling, n_rows)
        sums, low = dd.add((self.sums, self.low), (other.sums, other.low))
        return Gram(sums, low, self.scaling, n_rows)


@dataclass(frozen=True)
class CellGrams:
    """S of every cell, all in one scaling: the Gram statistic of any union of cells is a sum of these."""

    sums: Array  # cells x D x D
    low: Array | None
    scaling: Scaling
    n_rows: Array

    def combined(self, times: Array) -> Gram:
        """The statistic of the rows that are in cell c times[c] times. Cells are added, never taken away."""
        n_rows = int(self.n_rows[times > 0].sum())
        if self.low is None:
            alone = np.flatnonzero(times)
            if len(alone) == 1 and times[alone[0]] == 1:
                return Gram(self.sums[alone[0]], None, self.scaling, n_rows)
            sums = times @ self.sums.reshape(len(times), -1)
            return Gram(sums.reshape(self.sums.shape[1:]), None, self.scaling, n_rows)
        total: dd.Pair = (np.zeros(self.sums.shape[1:]), np.zeros(self.sums.shape[1:]))
        for c in np.flatnonzero(times):
            cell = (self.sums[c], self.low[c])
            factor = (np.asarray(times[c]), np.zeros(()))
            total = dd.add(total, cell if times[c] == 1 else dd.multiply(cell, factor))
        return Gram(*total, self.scaling, n_rows)

    def __add__(self, other: CellGrams) -> CellGrams:
        n_rows = self.n_rows + other.n_rows
        if self.low is None or other.low is None:
            return CellGrams(self.sums + other.sums, None, self.scaling, n_rows)
        sums, low = dd.add((self.sums, self.low), (other.sums, other.low))
        return CellGrams(sums, low, self.scaling, n_rows)


def cell_grams(source: Source, cells: Cells, centred: bool, twofold: bool = False) -> CellGrams:
    """The Gram statistics of the cells of a source: one pass, as for `gram`."""
    check_square(source, twofold, cells.n_cells)
    total: CellGrams = summed(source, centred, twofold, partial(_of_cells, cells=cells))
    return total


@dataclass(frozen=True)
class GramSums:
    """What `gram` sums over every stretch of a source, for a pass that takes it along."""

    centred: bool

    def __call__(self, source: Source) -> Callable[[Block], Gram]:
        """The Gram statistic of a stretch, scales from block 0."""
        scaling = Scaling.of(source, self.centred, exact=False)
        return partial(_of_stretch, scaling=scaling, twofold=False, block_rows=source.block_rows)


def gram(source: Source, centred: bool, twofold: bool = False) -> Gram:
    """The Gram statistic of a source: one pass, a second one only if block 0 misled about the scales.

    No pass where another one has taken it along (`data/along.py`).
    """
    check_square(source, twofold)
    total: Gram | None = None if twofold else source.known(GramSums(centred))
    if total is None or not np.isfinite(total.sums).all():
        total = summed(source, centred, twofold, _of_stretch)
    refuse_no_weight(total.sum_weight)
    return total


def centred_gram(source: Source) -> Gram:
    """The Gram statistic about shifts near the means of all rows: one pass, a second one if block 0 misled about them.

    Columns stored by their entries that are not 0 cannot be shifted in a pass: they are after it, in twofold sums.
    """
    first = gram(source, centred=True)
    if not first.is_far():
        return first
    s, means = first.scaling, first.means()
    shift = np.where(_is_shifted(source.first_block().X), means[:-2], s.shift)
    scaling = replace(s, shift=shift, y_shift=float(means[-1]))
    f = partial(_of_stretch, scaling=scaling, twofold=True, block_rows=source.block_rows)
    again: Gram = source.reduce(f)
    return again.about(again.means())


def check_square(source: Source, twofold: bool = False, n_cells: int = 1) -> None:
    """Refuse a matrix of columns x columns beyond the limits of memory (a sum per thread) or work (to solve it)."""
    d = source.n_features
    n_bytes = 8.0 * (1 + twofold) * n_cells * (d + 2) ** 2 * (n_threads() + 1)
    seconds = n_cells * float(d) ** 3 * CUBE_SECONDS[twofold]
    if n_bytes <= memory_limit() and seconds <= 3600 * work_limit():
        return
    of_cells = f" for each of {n_cells:,} parts of the rows" if n_cells > 1 else ""
    what = f"A matrix of {d:,} x {d:,} columns{of_cells}"
    instead = "Use fewer columns (columns=, a lower degree, a feature filter such as Lasso)."
    check_memory(n_bytes, what, instead)
    check_work(seconds, what, instead)


def refuse_no_weight(sum_weight: float, what: str = "The rows") -> None:
    """Raise where no row has a weight."""
    if not sum_weight > 0:
        raise ValueError(f"{what} have no weight: the weight is zero in every row, so none is left.")


def summed(source: Source, centred: bool, twofold: bool, of_stretch: Callable[..., Any]) -> Any:
    """Sum of of_stretch(stretch, scaling=, twofold=, block_rows=), scales from block 0; again where those overflow."""
    largest = None
    for _ in range(2):
        scaling = Scaling.of(source, centred, twofold, largest)
        with np.errstate(over="ignore", invalid="ignore"):
            f = partial(of_stretch, scaling=scaling, twofold=twofold, block_rows=source.block_rows)
            total: Any = source.reduce(f)
        if largest is not None or np.isfinite(total.sums).all():
            return total
        refuse_nonfinite(source)
        largest = source.reduce(ColumnSizes.of)


def _of_stretch(stretch: Block, scaling: Scaling, twofold: bool, block_rows: int) -> Gram:
    sums, low = core.gram(*_arguments(stretch, scaling, twofold, block_rows))
    return Gram(sums, low, scaling, stretch.n_rows)


def _of_cells(stretch: Block, cells: Cells, scaling: Scaling, twofold: bool, block_rows: int) -> CellGrams:
    numbers = cells.of(stretch)
    sums, low = core.gram(*_arguments(stretch, scaling, twofold, block_rows), numbers, cells.n_cells)
    n_rows = np.bincount(numbers[numbers >= 0], minlength=cells.n_cells)
    return CellGrams(sums, low, scaling, n_rows)


def _arguments(stretch: Block, s: Scaling, twofold: bool, block_rows: int) -> tuple[Any, ...]:
    scales = (s.scale, s.shift, s.y_scale, s.y_shift, s.weight_scale)
    return stretch.rows, stretch.y, stretch.weight, *scales, block_rows, twofold, n_threads()


def counted(block: Block) -> Block:
    """The rows of positive weight: a row of weight 0 is no row. All rows where none has weight."""
    if block.weight is None or not 0 < np.count_nonzero(block.weight) < block.n_rows:
        return block
    return block.where(block.weight > 0)


def _with_target(block: Block) -> list[Any]:
    """The rows as the core reads them, the target as their last column."""
    return block.rows if block.y is None else [*block.rows, ("dense", block.y[:, None])]


def _is_shifted(X: Any) -> Array:
    """Columns that a pass can shift: those whose every entry is stored."""
    if not isinstance(X, Columns):
        return np.full(X.shape[1], not sp.issparse(X))
    return np.concatenate([np.full(part.n_columns, not isinstance(part, Codes | Csr)) for part in X.segments])
