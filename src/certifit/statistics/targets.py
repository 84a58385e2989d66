"""Sums of the target and the weights alone: what a fit starts from, and what is remembered of the data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block, Source, tree_sum


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
