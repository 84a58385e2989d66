"""Rows as trees read them: those that count, and ranks in place of values.

ranks    of values among the thresholds of trees that are given: all that these trees ask of a row. A certificate leads
         rows through trees by them; it shares nothing with the search, not even its bins
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block

SAMPLE_ROWS = 200_000  # that edges of bins lie between
MOST_EDGES = 254  # of a column whose codes are bytes; 255 is a missing value


def counted_rows(rows: Block, n_classes: int) -> Block:
    """Rows of positive weight that have a class."""
    is_counted = np.ones(rows.n_rows, dtype=bool) if rows.weight is None else np.asarray(rows.weight) > 0
    if n_classes:
        is_counted &= np.asarray(rows.y) >= 0
    return rows if is_counted.all() else rows.where(is_counted)


def rows_with_offset(block: Block) -> list[tuple[str, Array]]:
    """Rows as the core takes them, their offset the last column: rows of different offsets are different."""
    rows = list(block.rows)
    if block.offset is not None:
        rows.append(("dense", np.ascontiguousarray(block.offset, dtype=np.float64)[:, None]))
    return rows


@dataclass(frozen=True)
class Ranked:
    """Thresholds of trees as ranks: rows whose value has rank r go left at rank r or more."""

    edges: list[Array]
    threshold: Array


def ranked_thresholds(feature: Array, threshold: Array, is_number: Array, n_columns: int) -> Ranked | None:
    """The thresholds of every column, and each node's as a rank; None where a column has more than bytes can tell.

    is_number: whether a node asks for a threshold at all.
    """
    edges, ranks = [], threshold.copy()
    for column in range(n_columns):
        nodes = np.flatnonzero(is_number & (feature == column) & np.isfinite(threshold))
        edges.append(np.unique(threshold[nodes]))
        ranks[nodes] = np.searchsorted(edges[-1], threshold[nodes])
    return None if max(map(len, edges)) > MOST_EDGES else Ranked(edges, ranks)
