"""Sums of numbers that rows have, in the tree of all sums: any engine gives the same bits."""

from __future__ import annotations

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import tree_sum


def row_sums(values: Array, rows: Array, n_rows: int, block_rows: int) -> Array:
    """Sums along the last axis of the values of some rows of a run; rows: their places in it, ascending."""
    if not len(rows):
        return np.zeros(values.shape[:-1])
    ends = np.append(np.searchsorted(rows, np.arange(block_rows, n_rows, block_rows)), len(rows))
    starts = np.concatenate([[0], ends[:-1]])
    sums = np.add.reduceat(values, np.minimum(starts, len(rows) - 1), axis=-1)
    sums = np.where(ends > starts, sums, 0.0)  # a block without such rows
    return np.asarray(tree_sum(np.moveaxis(sums, -1, 0)))
