"""A loss of scores where a Hessian would be too large: its curvature row by row, and products with the Hessian.

Hessian = sum_i c_i (x_i, 1)(x_i, 1)' with c_i = w_i l''_i: a product needs the c_i, one number per row, and no loss.
Rows of CSR are read entry by entry; their blocks are large, for every block sums into a vector of all columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Array, Columns, Csr
from certifit.data.source import Block, Source, Statistic, is_sparse
from certifit.runtime import core, n_threads
from certifit.statistics.gram import Scaling

BLOCK_ROWS = 16384
PIECE_ROWS = 4096  # that are expanded at a time
DENSE_COLUMNS = 32  # CSR of so few columns is read as dense rows


class Loss(Protocol):
    """A loss of scores: its place in the compiled core, or None; a slope, and a curvature >= 0 to step by."""

    @property
    def code(self) -> int | None:
        """Place among the compiled losses; None: in Python."""

    @property
    def parameter(self) -> float:
        """Of the compiled formula."""

    def value(self, y: Array, z: Array) -> Array:
        """l(y, z)."""

    def slope(self, y: Array, z: Array) -> Array:
        """dl/dz."""

    def expected(self, y: Array, z: Array) -> Array:
        """A curvature >= 0."""


@dataclass(frozen=True)
class LossAt:
    """A loss at a point (weights of scaled, shifted columns, their intercept last), and how rows are read."""

    loss: Loss
    scaling: Scaling
    point: Array


@dataclass(frozen=True)
class RowSums:
    """sum_i w_i l_i, its gradient, and w_i l''_i of the rows in their order."""

    value: float
    gradient: Array
    curvatures: Array

    def __add__(self, other: RowSums) -> RowSums:
        curvatures = np.concatenate([self.curvatures, other.curvatures])
        return RowSums(self.value + other.value, self.gradient + other.gradient, curvatures)


def row_sums(source: Source, at: LossAt) -> RowSums:
    """One pass."""
    with np.errstate(over="ignore", invalid="ignore"):
        total: RowSums = _reduced(source, partial(_sums_of_stretch, at=at))
    return total


def product(source: Source, scaling: Scaling, curvatures: Array, direction: Array) -> Array:
    """The Hessian times a direction (of scaled columns, the intercept last): one pass."""
    f = partial(_product_of_stretch, scaling=scaling, curvatures=curvatures, direction=np.ascontiguousarray(direction))
    total: Array = _reduced(source, f)
    return total


def diagonal(source: Source, scaling: Scaling, curvatures: Array) -> Array:
    """The diagonal of the Hessian: one pass."""
    f = partial(_diagonal_of_stretch, scaling=scaling, curvatures=curvatures)
    total: Array = _reduced(source, f)
    return total


@dataclass(frozen=True)
class RowReach:
    """Most entries of a row, and the most that their products with weights can add up to, whatever the signs."""

    n_entries: int
    size: float

    def __add__(self, other: RowReach) -> RowReach:
        return RowReach(max(self.n_entries, other.n_entries), max(self.size, other.size))


def row_reach(source: Source, scaling: Scaling, weights: Array) -> RowReach:
    """What roundings of scores are relative to, for weights of scaled columns: one pass. Infinite for dense rows."""
    total: RowReach = source.reduce(partial(_reach_of_stretch, weights=np.abs(weights) * scaling.scale))
    shifts = np.abs(weights * scaling.shift)  # a term of every row
    return RowReach(total.n_entries + int(np.count_nonzero(shifts)), total.size + float(shifts.sum()))


def in_large_blocks(source: Source) -> Source:
    """The source in blocks that outweigh a vector of all columns, where rows are thin; else as it is."""
    thin = source.remembered("thin rows", lambda: is_thin(source.first_block()))
    return source.blocked(max(BLOCK_ROWS, source.block_rows)) if thin else source


def is_thin(stretch: Block) -> bool:
    """Whether rows are read entry by entry."""
    return bool(sp.issparse(stretch.X)) and stretch.X.shape[1] > DENSE_COLUMNS


def _reduced(source: Source, of_stretch: partial[Statistic]) -> Statistic:
    blocks = in_large_blocks(source)
    return blocks.reduce(partial(of_stretch, block_rows=blocks.block_rows))


def _sums_of_stretch(stretch: Block, at: LossAt, block_rows: int) -> RowSums:
    s, loss = at.scaling, at.loss
    if is_thin(stretch) and loss.code is not None:
        weights, how = np.ascontiguousarray(at.point[:-1]), (loss.code, loss.parameter, block_rows, n_threads())
        beside = (stretch.y, stretch.weight, stretch.offset, s.scale, s.weight_scale)
        return RowSums(*core.thin_oracle(stretch.rows, *beside, weights, float(at.point[-1]), *how))
    assert stretch.y is not None
    z = _scores(stretch, s, at.point) + (0.0 if stretch.offset is None else stretch.offset)
    weight = np.ones(stretch.n_rows) if stretch.weight is None else stretch.weight * s.weight_scale
    counted = weight > 0  # a row of weight 0 does not count, whatever its values are
    y, z, weight = stretch.y[counted], z[counted], weight[counted]
    slopes, curvatures = np.zeros(stretch.n_rows), np.zeros(stretch.n_rows)
    slopes[counted] = weight * loss.slope(y, z)
    curvatures[counted] = weight * loss.expected(y, z)
    return RowSums(float(weight @ loss.value(y, z)), _weighted(stretch, s, slopes, block_rows), curvatures)


def _product_of_stretch(
    stretch: Block, scaling: Scaling, curvatures: Array, direction: Array, block_rows: int
) -> Array:
    of_rows = np.ascontiguousarray(curvatures[stretch.first_row : stretch.first_row + stretch.n_rows])
    if is_thin(stretch):
        return np.asarray(core.thin_product(stretch.rows, of_rows, scaling.scale, direction, block_rows, n_threads()))
    slopes = np.where(of_rows > 0, of_rows * _scores(stretch, scaling, direction), 0.0)
    return _weighted(stretch, scaling, slopes, block_rows)


def _diagonal_of_stretch(stretch: Block, scaling: Scaling, curvatures: Array, block_rows: int) -> Array:
    of_rows = np.ascontiguousarray(curvatures[stretch.first_row : stretch.first_row + stretch.n_rows])
    if is_thin(stretch):
        return np.asarray(core.thin_diagonal(stretch.rows, of_rows, scaling.scale, block_rows, n_threads()))
    one_cell, shift = np.zeros(stretch.n_rows, dtype=np.int32), scaling.shift[None, :]
    weight, _, squares, *_ = core.cell_sums(
        stretch.rows, of_rows, one_cell, scaling.scale, shift, 1.0, True, None, block_rows, n_threads()
    )
    return np.append(squares[0], weight[0])


def _reach_of_stretch(stretch: Block, weights: Array) -> RowReach:
    X, counted = stretch.X, slice(None) if stretch.weight is None else stretch.weight > 0
    if isinstance(X, Columns) and is_sparse(X):
        entries, sizes = _reach_of_table(X, weights)
    elif is_thin(stretch):
        entries, sizes = int(np.diff(X.indptr).max(initial=0)), _sizes(X, weights)
    else:
        return RowReach(X.shape[1], np.inf)
    return RowReach(entries, float(np.max(sizes[counted], initial=0.0)))


def _sizes(X: sp.csr_array, weights: Array) -> Array:
    """sum_j |x_ij| weights_j of every row."""
    return np.asarray(sp.csr_array((np.abs(X.data), X.indices, X.indptr), shape=X.shape) @ weights)


def _reach_of_table(X: Columns, weights: Array) -> tuple[int, Array]:
    """The most entries of a row, and the sizes of all; columns that are not sparse are expanded some rows at a time."""
    entries, sizes = 0, np.zeros(X.shape[0])
    for begin in range(0, X.shape[0], PIECE_ROWS):
        piece, at, most = X.part(begin, begin + PIECE_ROWS), 0, 0
        for part in piece.segments:
            of_part, place = weights[at : at + part.n_columns], slice(begin, begin + piece.shape[0])
            if isinstance(part, Csr):
                most += int(np.diff(part.rows.indptr).max(initial=0))
                sizes[place] += _sizes(part.rows, of_part)
            else:
                most += part.n_columns
                sizes[place] += np.abs(part.dense(piece.shape[0])) @ of_part
            at += part.n_columns
        entries = max(entries, most)
    return entries, sizes


def _scores(stretch: Block, scaling: Scaling, point: Array) -> Array:
    """(x scale - shift, 1)'point of every row."""
    level = float(point[-1] - point[:-1] @ scaling.shift)
    return np.asarray(core.scores(stretch.rows, np.ascontiguousarray(point[:-1] * scaling.scale), level, n_threads()))


def _weighted(stretch: Block, scaling: Scaling, slopes: Array, block_rows: int) -> Array:
    """sum_i slope_i (x_i, 1); a slope of 0 is no row."""
    units = (scaling.scale, scaling.shift, 1.0)
    counted = (slopes != 0).astype(np.float64)
    gradient, *_ = core.weighted_sums(stretch.rows, slopes, None, counted, *units, block_rows, n_threads())
    return np.asarray(gradient[0])
