"""Standard deviations of columns and targets that sums of squares do not tell: offsets cost them no digits.

A first pass finds the heaviest row, a second the mean about it, a third the squares about that mean. Differences from
the row are kept with their rounding, so nothing cancels, and a column that does not vary has squares of exactly 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp

from certifit.data.cells import ByRow
from certifit.data.columns import Array, dense_rows
from certifit.data.source import Block, Source
from certifit.statistics import twofold as tf
from certifit.statistics.cell_sums import cell_moments

SPREAD_ERROR = 2.0**-46  # relative error of a standard deviation: sums of squares that are half squares about the mean
MOST_ABOUT = 2.0  # squares about a shift this many times those about the mean are summed again
PIECE_ROWS = 4096

ValuesOf = Callable[[Block], Array]  # rows x columns


def column_spreads(source: Source, centred: bool) -> Array:
    """Standard deviation of every column, root mean square where not centred; 1 for one that does not vary."""
    moments = cell_moments(source, ByRow(1, 0))
    spreads = np.asarray(moments.spreads(centred)[0])
    if centred:
        rough = np.flatnonzero(moments.squares[0] > MOST_ABOUT * moments.scatter()[0])
        spreads[rough] = sharp_spreads(source, rough)
    return spreads


def sharp_spreads(source: Source, columns: Array) -> Array:
    """Standard deviations of some columns; 1 for one that does not vary."""
    return _sharp(source, partial(_taken, columns=columns)) if len(columns) else np.empty(0)


def sharp_target_spread(source: Source) -> float:
    """The standard deviation of the target; 1 where it does not vary."""
    return float(_sharp(source, _target)[0])


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
            apart, error = tf.two_sum(values_of(piece) / row.sizes, -row.values / row.sizes)
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
