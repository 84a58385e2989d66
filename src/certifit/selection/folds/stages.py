"""Training sets that grow: every cell of rows is cut into stages, and a larger set holds the stages of a smaller one.

The stage of a row follows from its global number and a seed, so it is the same on every engine and takes no memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from certifit.data.cells import NO_CELL, ByRow, Cells, Listed, Splits, mixed
from certifit.data.columns import Array
from certifit.data.source import Block, Source

MOST_BYTES = 1 << 28  # of the sums of one pass; more sizes than fit take more passes
_ROUNDS = 6


@dataclass(frozen=True)
class Staged:
    """Cells cut into stages. A row's stage is the number of `limits` at or below its place in a random order.

    ByRow cells are each shuffled on their own and then interleaved, so that a limit takes equally many rows of every
    cell. Cells of groups are cut by one shuffle of all rows, equally only on average.
    """

    cells: Cells
    limits: Array
    n_places: int
    seed: int

    @property
    def n_stages(self) -> int:
        """Stages of a cell: one a limit, and one more for what lies beyond the last."""
        return len(self.limits) + int(self.limits[-1] < self.n_places)

    @property
    def n_cells(self) -> int:
        """Number of (cell, stage)."""
        return self.cells.n_cells * self.n_stages

    def of(self, block: Block) -> Array:
        """(cell, stage) of every row as one number."""
        cells = self.cells.of(block)
        rows = np.arange(block.first_row, block.first_row + block.n_rows, dtype=np.uint64)
        if isinstance(self.cells, ByRow):
            n = np.uint64(self.cells.n_cells)
            keys = mixed(np.arange(self.cells.n_cells, dtype=np.uint64), self.seed)
            places = shuffled(rows // n, self.n_places // self.cells.n_cells, keys[cells]) * n + cells.astype(np.uint64)
        else:
            places = shuffled(rows, self.n_places, mixed(np.zeros(1, dtype=np.uint64), self.seed))
        stages = np.searchsorted(self.limits, places.astype(np.int64), side="right")
        return np.where(cells < 0, NO_CELL, cells * self.n_stages + stages).astype(np.int32)

    def counts(self, source: Source, n_rows: int) -> Array:
        """Rows of every (cell, stage): a pass over the rows only where their groups are needed."""
        if isinstance(self.cells, ByRow):
            cell, n = np.arange(self.cells.n_cells)[:, None], self.cells.n_cells
            ends = np.append(self.limits, self.n_places)[: self.n_stages]
            below = -((cell - ends) // n)  # places p < end with p mod n = cell
            empty = Block(np.zeros((self.n_places - n_rows, 0)), None, None, n_rows)
            return np.asarray(np.diff(below, axis=1, prepend=0).ravel() - self._counted(empty))
        return np.asarray(sum(source.map(self._counted)))

    def _counted(self, block: Block) -> Array:
        cells = self.of(block)
        return np.bincount(cells[cells >= 0], minlength=self.n_cells)


@dataclass(frozen=True)
class Growth:
    """The splits of one pass. sizes: places of the sizes it holds, the smallest first; n_base: splits of each."""

    splits: Splits
    sizes: range
    n_base: int

    def n_rows(self, source: Source, total: int) -> Array:
        """Training rows, sizes x splits; a row that is drawn twice counts twice."""
        cells = self.splits.cells
        if isinstance(cells, Listed):
            counts = np.bincount(cells.cells[cells.cells >= 0], minlength=cells.n_cells)
        else:
            assert isinstance(cells, Staged)
            counts = cells.counts(source, total)
        return np.asarray(self.splits.train @ counts).reshape(len(self.sizes), self.n_base)


def growing(base: Splits, shares: Sequence[float], n_rows: int, n_columns: int, seed: int) -> list[Growth]:
    """The splits with training sets of all sizes, in as few passes as the memory of their sums allows.

    shares: parts of the training rows, increasing, at most 1.
    """
    if (same := np.flatnonzero(np.diff(np.rint(np.asarray(shares) * n_rows)) <= 0)).size:
        first, second = shares[same[0]], shares[same[0] + 1]
        raise ValueError(
            f"Sizes {first:.4g} and {second:.4g} of the training rows are the same rows: the data has only "
            f"{n_rows:,}. Use fewer train_sizes."
        )
    fitting = MOST_BYTES // (8 * (n_columns + 2) ** 2 * base.cells.n_cells)
    at_once = max(1, int(fitting) - 1)
    parts = [range(at, min(at + at_once, len(shares))) for at in range(0, len(shares), at_once)]
    return [_grown(base, np.asarray(shares[part.start : part.stop]), part, n_rows, seed) for part in parts]


def _grown(base: Splits, shares: Array, sizes: range, n_rows: int, seed: int) -> Growth:
    cut = (
        _cut_list(base.cells, shares, seed)
        if isinstance(base.cells, Listed)
        else _cut(base.cells, shares, n_rows, seed)
    )
    n_stages = cut.n_cells // base.cells.n_cells
    reached = np.arange(n_stages) <= np.arange(len(shares))[:, None]  # sizes x stages
    train = np.einsum("sc,jg->jscg", base.train, reached.astype(np.float64)).reshape(-1, cut.n_cells)
    validation = np.repeat(base.validation, n_stages, axis=1)
    return Growth(Splits(cut, train, np.tile(validation, (len(shares), 1))), sizes, base.n_splits)


def _cut(cells: Cells, shares: Array, n_rows: int, seed: int) -> Staged:
    n_places = -(-n_rows // cells.n_cells) * cells.n_cells if isinstance(cells, ByRow) else n_rows
    limits = np.maximum(1, np.rint(shares * n_places)).astype(np.int64)
    return Staged(cells, limits, n_places, seed)


def _cut_list(base: Listed, shares: Array, seed: int) -> Listed:
    """Stages by the rank of a row in a shuffle of its cell. Cells round in turn, so that their errors even out."""
    cells, n_rows = base.cells.astype(np.int64), len(base.cells)
    places = shuffled(np.arange(n_rows, dtype=np.uint64), n_rows, mixed(np.zeros(1, dtype=np.uint64), seed))
    order = np.lexsort((places, cells))
    inside = order[np.searchsorted(cells[order], 0) :]  # NO_CELL comes first
    counts = np.bincount(cells[inside], minlength=base.n_cells)
    cells_inside = cells[inside]
    ranks = np.arange(len(inside)) - (np.cumsum(counts) - counts)[cells_inside]
    n_stages = len(shares) + int(shares[-1] < 1)
    out = np.full(n_rows, NO_CELL, dtype=np.int32)
    out[inside] = cells_inside * n_stages + np.searchsorted(
        shares, (ranks + (cells_inside + 0.5) / base.n_cells) / counts[cells_inside], "right"
    )
    return Listed(base.n_cells * n_stages, out)


def shuffled(values: Array, size: int, keys: Array) -> Array:
    """A random permutation of 0 .. size - 1 at `values` (uint64), another one for every key.

    Rounds of a Feistel cipher on the bits of the next power of two. What falls beyond `size` goes round again.
    """
    high = np.uint64(max(1, (size - 1).bit_length() // 2))
    low = np.uint64(max(1, (size - 1).bit_length() - int(high)))
    keys = np.broadcast_to(keys, values.shape)
    out = _ciphered(values, keys, high, low)
    while (beyond := np.flatnonzero(out >= np.uint64(size))).size:
        out[beyond] = _ciphered(out[beyond], keys[beyond], high, low)
    return out


def _ciphered(values: Array, keys: Array, high: np.uint64, low: np.uint64) -> Array:
    left, right = values >> low, values & ((np.uint64(1) << low) - np.uint64(1))
    for turn in range(0, _ROUNDS, 2):
        left = left ^ (mixed(right ^ keys, turn) >> (np.uint64(64) - high))
        right = right ^ (mixed(left ^ keys, turn + 1) >> (np.uint64(64) - low))
    return np.asarray((left << low) | right)
