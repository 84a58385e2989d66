"""The order in which a pass visits the rows of a run.

Shuffled: rows are first put in the order of a hash of what stands in them, then permuted by the seed, the pass and the
run. So neither the order in which rows were given nor their storage changes a visit, and a row of weight 2 is visited
as the row given twice. Weights: visits are evenly spaced positions on the cumulative weight, one a unit of weight where
weights are whole numbers, else as many as there are rows with a weight; a row of weight 0 is no row.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.runtime import core, n_threads

MOST_VISITS = 1 << 27  # of a run: larger whole weights are spread over as many visits as there are rows
KEPT_ROWS = 1 << 25  # rows whose order by hash is kept from one pass to the next: 256 MB
_SHUFFLED_NUMBERS = 1 << 24  # of a run: 128 MB


def wide_runs(source: Source) -> Source:
    """The same rows in runs as large as may be held: rows are shuffled within a run, and runs come in order."""
    fitting = max(_SHUFFLED_NUMBERS // max(source.n_features, 1), 1)
    rows = max(source.rows_of_run(), 1 << (fitting.bit_length() - 1))
    return source.resized(source.block_rows, rows)


@dataclass
class RowOrder:
    """Visits to rows, pass by pass. by_content=False permutes rows as they stand, not in the order of their hashes."""

    shuffle: bool
    random_state: int
    by_content: bool = True
    _kept: dict[int, Array] = field(default_factory=dict)
    _n_kept: int = 0

    def visits(self, run: Block, n_pass: int, n_run: int) -> Array | None:
        """Row numbers of the run in the order of their visits; None: as they stand."""
        if not self.shuffle and run.weight is None:
            return None
        sorts = self.shuffle and self.by_content
        rows: Array = self._by_hash(run, n_run) if sorts else np.arange(run.n_rows)
        random = np.random.Generator(np.random.PCG64([self.random_state, n_pass, n_run]))
        start = random.random()  # drawn in any case: the permutation must not depend on whether there are weights
        if run.weight is not None:
            rows = rows[_positions(run.weight[rows], start)]
        return rows[random.permutation(len(rows))] if self.shuffle else rows

    def _by_hash(self, run: Block, n_run: int) -> Array:
        if n_run in self._kept:
            return self._kept[n_run]
        found: Array = np.argsort(core.row_hashes(run.rows, run.y, run.offset, n_threads()), kind="stable")
        if self._n_kept + len(found) <= KEPT_ROWS:
            self._kept[n_run] = found
            self._n_kept += len(found)
        return found


def _positions(weight: Array, start: float) -> Array:
    """Places of the visits: place i comes weight_i n_visits / sum(weight) times, rounded down or up."""
    ends = np.cumsum(weight)
    total, n_visits = float(ends[-1]) if len(ends) else 0.0, int(np.count_nonzero(weight))
    if n_visits == 0:
        return np.zeros(0, dtype=np.int64)
    if total <= MOST_VISITS and (weight == np.floor(weight)).all():
        n_visits, start = int(total), 0.5
    at = np.searchsorted(ends, (np.arange(n_visits) + start) * (total / n_visits), side="right")
    return np.asarray(np.minimum(at, np.flatnonzero(weight)[-1]))
