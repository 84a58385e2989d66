"""Sums over rows of z z'V, for a matrix of columns too large to hold, and the moments that z needs.

z = (x scale - shift) times. Blocks of global rows are summed in the tree of `Source.reduce`, so any chunking gives
the same bits. Sparse rows are shifted by a correction of the sums and stay sparse, unless shifts are far larger than
what they leave: then hardly an entry is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Array, Columns
from certifit.data.source import Block, Source, Statistic, tree_sum
from certifit.data.user_input import refuse_nonfinite
from certifit.runtime import in_order, one_blas_thread
from certifit.statistics.gram import ColumnSizes, Scaling, counted


@dataclass(frozen=True)
class ScaledMoments:
    """Sum of weights, of w z and of w z^2 for scaled, shifted columns, and the number of rows."""

    weight: float
    sums: Array
    squares: Array
    n_rows: int

    def __add__(self, other: ScaledMoments) -> ScaledMoments:
        return ScaledMoments(
            self.weight + other.weight,
            self.sums + other.sums,
            self.squares + other.squares,
            self.n_rows + other.n_rows,
        )


@dataclass(frozen=True)
class Product:
    """sum_i w_i z_i z_i'V."""

    sums: Array

    def __add__(self, other: Product) -> Product:
        return Product(self.sums + other.sums)


def moments(source: Source, centred: bool, largest: ColumnSizes | None = None) -> tuple[ScaledMoments, Scaling]:
    """The moments of all columns and the scaling they are in: one pass, a second one only if block 0 misled.

    largest: sizes of the columns where they are known; else those of block 0 are taken.
    """
    while True:
        scaling = Scaling.of(source, centred, False, largest)
        f = partial(_of_stretch, of_block=partial(_moments, scaling=scaling), block_rows=source.block_rows)
        with np.errstate(over="ignore", invalid="ignore"):
            total: ScaledMoments = source.reduce(f)
        if largest is not None or np.isfinite(total.squares).all():
            return total, scaling
        refuse_nonfinite(source)
        largest = source.reduce(ColumnSizes.of)


def moments_about(source: Source, scaling: Scaling) -> ScaledMoments:
    """The moments in a scaling that is known: one pass. Rows that are shifted are made dense, a block at a time."""
    of_block = partial(_moments, scaling=scaling)
    total: ScaledMoments = source.reduce(partial(_of_stretch, of_block=of_block, block_rows=source.block_rows))
    return total


def product(source: Source, scaling: Scaling, times: Array, directions: Array, is_near: bool) -> Array:
    """sum_i w_i z_i z_i'V for V in columns: one pass.

    is_near: shifts are not much larger than what they leave, so that the sums are shifted and not the rows.
    """
    of_block = partial(_product, scaling=scaling, times=times, directions=directions, is_near=is_near)
    total: Product = source.reduce(partial(_of_stretch, of_block=of_block, block_rows=source.block_rows))
    return total.sums


@one_blas_thread
def _of_stretch(stretch: Block, of_block: Callable[[Block], Statistic], block_rows: int) -> Statistic:
    return tree_sum(in_order(of_block, _blocks(stretch, block_rows)))


def _blocks(stretch: Block, block_rows: int) -> Iterator[Block]:
    for begin in range(0, stretch.n_rows, block_rows):
        yield stretch.part(begin, begin + block_rows)


def _moments(block: Block, scaling: Scaling) -> ScaledMoments:
    n_rows, block = block.n_rows, counted(block)
    weight = _weight(block, scaling)
    z = _scaled(block, scaling)
    squares = weight @ (z * z if isinstance(z, np.ndarray) else z.power(2))
    return ScaledMoments(float(weight.sum()), np.asarray(weight @ z), np.asarray(squares), n_rows)


def _product(block: Block, scaling: Scaling, times: Array, directions: Array, is_near: bool) -> Product:
    block = counted(block)
    weight = _weight(block, scaling)
    right = directions * times[:, None]
    if not is_near:
        z = _scaled(block, scaling)
        return Product((z.T @ ((z @ right) * weight[:, None])) * times[:, None])
    X = block.X if sp.issparse(block.X) else _plain(block)
    scores = X @ (right * scaling.scale[:, None]) - scaling.shift @ right
    scores *= weight[:, None]
    sums = (X.T @ scores) * scaling.scale[:, None] - scaling.shift[:, None] * scores.sum(axis=0)
    return Product(sums * times[:, None])


def _weight(block: Block, scaling: Scaling) -> Array:
    return np.ones(block.n_rows) if block.weight is None else block.weight * scaling.weight_scale


def _scaled(block: Block, scaling: Scaling) -> Array | sp.csr_array:
    """Rows times scale less shift. Sparse rows stay so where there is no shift."""
    if sp.issparse(block.X) and not scaling.shift.any():
        values = block.X.data.astype(np.float64) * scaling.scale[block.X.indices]
        return sp.csr_array((values, block.X.indices, block.X.indptr), shape=block.X.shape)
    z = np.array(_plain(block))
    z *= scaling.scale
    z -= scaling.shift
    return z


def _plain(block: Block) -> Array:
    """The rows as float64 in C order: the order of BLAS's sums depends on the layout."""
    X = block.X.toarray() if isinstance(block.X, Columns) or sp.issparse(block.X) else block.X
    return np.ascontiguousarray(X, dtype=np.float64)
