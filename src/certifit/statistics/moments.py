"""Means and variances of columns, and how those of two sets of rows become one.

Sums of the target and the weights alone: what a fit starts from, and what is remembered of the data.

Standard deviations of columns and targets that sums of squares do not tell: offsets cost them no digits.

A first pass finds the heaviest row, a second the mean about it, a third the squares about that mean. Differences from
the row are kept with their rounding, so nothing cancels, and a column that does not vary has squares of exactly 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp

from certifit.data.cells import ByRow
from certifit.data.columns import Array, Columns, dense_rows
from certifit.data.source import Block, Source, tree_sum
from certifit.runtime import core, n_threads
from certifit.statistics import double_double as dd
from certifit.statistics.cell_sums import cell_moments
from certifit.statistics.gram import Scaling, counted

_PIECE = 4096  # rows made dense at a time


@dataclass(frozen=True)
class Merge:
    """Two sets of rows as one: means and sums of products about them (Chan, Golub and LeVeque), nothing cancels.

    weight: of both sets. share: of the second in it. between: w_1 w_2 / (w_1 + w_2).
    """

    weight: Array
    share: Array
    between: Array

    @staticmethod
    def of(weight: Array | float, other: Array | float) -> Merge:
        """From the weights of both sets; a set of no weight changes nothing."""
        first, second = np.asarray(weight, dtype=np.float64), np.asarray(other, dtype=np.float64)
        total = np.asarray(first + second)
        share = np.divide(second, total, out=np.zeros_like(total), where=total > 0)
        return Merge(total, share, first * share)

    def mean(self, mean: Array | float, other: Array | float) -> Array:
        """The mean of all rows."""
        return np.asarray(mean + self.share * (other - np.asarray(mean)))

    def products(self, first: Array | float, second: Array | float, step: Array, other_step: Array) -> Array:
        """sum w (x - mean x)(y - mean y) of all rows; steps: from the first mean to the second, of x and of y."""
        return np.asarray(first + second + step * other_step * self.between)


@dataclass(frozen=True)
class ColumnMoments:
    """Sum of weights, mean of every column, and sum of w (x - mean)^2."""

    weight: float
    mean: Array
    squares: Array

    @staticmethod
    def of(block: Block) -> ColumnMoments:
        """Of the rows of one block."""
        block = counted(block)
        pieces = [_of_piece(block.part(begin, begin + _PIECE)) for begin in range(0, block.n_rows, _PIECE)]
        total = pieces[0]
        for piece in pieces[1:]:
            total = total + piece
        return total

    @property
    def variance(self) -> Array:
        """Of every column, with 1 / sum of weights."""
        return self.squares / self.weight

    def __add__(self, other: ColumnMoments) -> ColumnMoments:
        both, step = Merge.of(self.weight, other.weight), other.mean - self.mean
        squares = both.products(self.squares, other.squares, step, step)
        return ColumnMoments(float(both.weight), both.mean(self.mean, other.mean), squares)


def _of_piece(part: Block) -> ColumnMoments:
    X = part.X
    if isinstance(X, Columns) or sp.issparse(X):
        X = X.toarray()
    X = np.asarray(X, dtype=np.float64)
    weight = np.ones(len(X)) if part.weight is None else part.weight
    total = float(weight.sum())
    with np.errstate(over="ignore", invalid="ignore"):
        mean = weight @ X / total if total > 0 else np.zeros(X.shape[1])
        return ColumnMoments(total, mean, weight @ (X - mean) ** 2)


@dataclass(frozen=True)
class _Squares:
    weight: Array
    squares: Array

    def __add__(self, other: _Squares) -> _Squares:
        return _Squares(self.weight + other.weight, self.squares + other.squares)


def mean_squares(source: Source, scaling: Scaling) -> Array:
    """sum_i w_i z_i^2 / sum_i w_i of every scaled and shifted column z: one pass; thin rows entry by entry."""
    total = source.reduce(partial(_squares_of_stretch, scaling=scaling, block_rows=source.block_rows))
    return np.asarray(total.squares[0] / total.weight[0])


def _squares_of_stretch(stretch: Block, scaling: Scaling, block_rows: int) -> _Squares:
    one_cell, shift = np.zeros(stretch.n_rows, dtype=np.int32), scaling.shift[None, :]
    units = (scaling.scale, shift, scaling.weight_scale)
    weight, _, squares, *_ = core.cell_sums(
        stretch.rows, stretch.weight, one_cell, *units, True, None, block_rows, n_threads()
    )
    return _Squares(np.asarray(weight), np.asarray(squares))


@dataclass(frozen=True)
class TargetSums:
    """Number of rows that have a weight, sums of w, w y, w y^2 and w offset, and the ends of y."""

    n_rows: int
    weight: float
    first: float
    second: float
    low: float
    high: float
    offset: float = 0.0

    @property
    def mean_offset(self) -> float:
        """The mean offset: what scores have in addition to b + x'w."""
        return self.offset / self.weight

    @property
    def mean(self) -> float:
        """Of the target."""
        return self.first / self.weight

    @property
    def deviation(self) -> float:
        """Standard deviation of the target; infinite where its squares exceed float64."""
        if not np.isfinite(self.second):
            return float(np.inf)
        return float(np.sqrt(max(self.second / self.weight - self.mean * self.mean, 0.0)))

    def __add__(self, other: TargetSums) -> TargetSums:
        return TargetSums(
            self.n_rows + other.n_rows,
            self.weight + other.weight,
            self.first + other.first,
            self.second + other.second,
            min(self.low, other.low),
            max(self.high, other.high),
            self.offset + other.offset,
        )


def target_sums(source: Source) -> TargetSums:
    """One pass over the target; blocks are summed in the tree of all sums, so that any engine gives the same bits."""
    total: TargetSums = source.reduce(partial(_of_stretch, block_rows=source.block_rows))
    return total


def _of_stretch(stretch: Block, block_rows: int) -> TargetSums:
    return tree_sum(
        _of_block(stretch, begin, begin + block_rows) for begin in range(0, max(stretch.n_rows, 1), block_rows)
    )


def _of_block(stretch: Block, begin: int, end: int) -> TargetSums:
    if stretch.y is None:
        raise ValueError("The rows carry no target.")
    y = stretch.y[begin:end]
    offset = None if stretch.offset is None else stretch.offset[begin:end]
    if stretch.weight is None:
        weight, n_rows, total = None, len(y), float(len(y))
    else:
        weight = stretch.weight[begin:end]
        counts = weight > 0
        y, weight, offset = y[counts], weight[counts], None if offset is None else offset[counts]
        n_rows, total = len(y), float(weight.sum())
    low, high = y.min(initial=np.inf), y.max(initial=-np.inf)
    with np.errstate(over="ignore", invalid="ignore"):  # sums beyond float64 are refused in words later
        weighted: Array = y if weight is None else y * weight
        added = 0.0 if offset is None else float((offset if weight is None else offset * weight).sum())
        return TargetSums(n_rows, total, float(weighted.sum()), float((weighted * y).sum()), low, high, added)


# ---- sums of one number per row, in the tree of all sums: any engine gives the same bits -----------------------------


def row_sums(values: Array, rows: Array, n_rows: int, block_rows: int) -> Array:
    """Sums along the last axis of the values of some rows of a stretch; rows: their places in it, ascending."""
    if not len(rows):
        return np.zeros(values.shape[:-1])
    ends = np.append(np.searchsorted(rows, np.arange(block_rows, n_rows, block_rows)), len(rows))
    starts = np.concatenate([[0], ends[:-1]])
    sums = np.add.reduceat(values, np.minimum(starts, len(rows) - 1), axis=-1)
    sums = np.where(ends > starts, sums, 0.0)  # a block without such rows
    return np.asarray(tree_sum(np.moveaxis(sums, -1, 0)))


SPREAD_ERROR = 2.0**-46  # relative error of a standard deviation: sums of squares that are half squares about the mean
MOST_ABOUT = 2.0  # squares about a shift this many times those about the mean are summed again
PIECE_ROWS = 4096

ValuesOf = Callable[[Block], Array]  # rows x columns


def column_spreads(source: Source, centred: bool) -> Array:
    """Standard deviation of every column, root mean square where not centred; 1 for one that does not vary."""
    return source.remembered(("spreads", centred), lambda: _column_spreads(source, centred))


def _column_spreads(source: Source, centred: bool) -> Array:
    moments = cell_moments(source, ByRow(1, 0))
    spreads = np.asarray(moments.spreads(centred)[0])
    if centred:
        rough = np.flatnonzero(moments.squares[0] > MOST_ABOUT * moments.scatter()[0])
        spreads[rough] = sharp_spreads(source, rough)
    refuse_small_spreads(spreads, source.names)
    return spreads


def refuse_small_spreads(spreads: Array, names: Sequence[str]) -> None:
    """Raise where a standard deviation is below the numbers that float64 holds in full."""
    small = np.flatnonzero(spreads < np.finfo(np.float64).tiny)
    if len(small):
        raise ValueError(
            f"The standard deviation of {names[int(small[0])]!r} is too small for float64: its data differ by less "
            "than 2e-308. Multiply it by 1e200 or so, or use standardize=False."
        )


def sharp_spreads(source: Source, columns: Array) -> Array:
    """Standard deviations of some columns; 1 for one that does not vary."""
    return _sharp(source, partial(_taken, columns=columns)) if len(columns) else np.empty(0)


def sharp_target_spread(source: Source) -> float:
    """The standard deviation of the target; 1 where it does not vary."""
    spread = _sharp(source, _target)
    refuse_small_spreads(spread, ["the target"])
    return float(spread[0])


def _sharp(source: Source, values_of: ValuesOf) -> Array:
    row: _Row = source.reduce(partial(_Row.of, values_of=values_of))
    zero = np.zeros(len(row.values))
    sums: _Sums = source.reduce(partial(_Sums.of, values_of=values_of, row=row, mean=zero))
    mean = sums.first / sums.weight
    about: _Sums = source.reduce(partial(_Sums.of, values_of=values_of, row=row, mean=mean))
    spreads = np.sqrt(about.second / about.weight) * row.sizes
    return np.asarray(np.where(sums.second > 0, spreads, 1.0))


def _taken(stretch: Block, columns: Array) -> Array:
    X = stretch.X
    if isinstance(X, Columns):
        return X.some(columns)
    return dense_rows(X[:, columns]) if sp.issparse(X) else dense_rows(X)[:, columns]


def _target(stretch: Block) -> Array:
    assert stretch.y is not None
    return np.asarray(stretch.y, dtype=np.float64)[:, None]


@dataclass(frozen=True)
class _Row:
    """The values of the heaviest row, the first of equals, and powers of two above the |values| of every column."""

    weight: float
    values: Array
    sizes: Array

    @staticmethod
    def of(stretch: Block, values_of: ValuesOf) -> _Row:
        weight = np.ones(stretch.n_rows) if stretch.weight is None else stretch.weight
        i = int(np.argmax(weight))
        sizes = np.zeros(0)
        for piece in _pieces(stretch):
            largest = np.abs(values_of(piece)).max(axis=0, initial=0.0)
            sizes = largest if not len(sizes) else np.maximum(sizes, largest)
        powers = np.where(sizes > 0, np.ldexp(1.0, np.clip(np.frexp(sizes)[1], -1021, 1022)), 1.0)
        return _Row(float(weight[i]), values_of(stretch.part(i, i + 1))[0], powers)

    def __add__(self, other: _Row) -> _Row:
        heavier = other if other.weight > self.weight else self
        return _Row(heavier.weight, heavier.values, np.maximum(self.sizes, other.sizes))


@dataclass(frozen=True)
class _Sums:
    """Sums of w, w z and w z^2, z = (value - that of the row) / size - mean; w relative to the heaviest."""

    weight: float
    first: Array
    second: Array

    @staticmethod
    def of(stretch: Block, values_of: ValuesOf, row: _Row, mean: Array) -> _Sums:
        total = _Sums(0.0, np.zeros(len(mean)), np.zeros(len(mean)))
        for piece in _pieces(stretch):
            weight = np.ones(piece.n_rows) if piece.weight is None else piece.weight / row.weight
            apart, error = dd.two_sum(values_of(piece) / row.sizes, -row.values / row.sizes)
            z = np.ascontiguousarray(((apart - mean) + error).T)
            wz = weight * z  # rows of an array are summed in pairs
            total = total + _Sums(float(weight.sum()), wz.sum(axis=1), (wz * z).sum(axis=1))
        return total

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(self.weight + other.weight, self.first + other.first, self.second + other.second)


def _pieces(stretch: Block) -> list[Block]:
    return [
        stretch.part(begin, min(begin + PIECE_ROWS, stretch.n_rows)) for begin in range(0, stretch.n_rows, PIECE_ROWS)
    ]
