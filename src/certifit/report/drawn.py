"""A share of the rows, drawn by their numbers, so that the same ones are drawn on every engine; for printed ranges."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from certifit.data import columns as seg
from certifit.data.cells import mixed
from certifit.data.columns import Array

# Rows and numbers that are drawn.
MOST_ROWS, MOST_NUMBERS = 20_000, 4_000_000
_SEED = 21


def share_drawn(n_rows: int, n_columns: int) -> float:
    """The share of so many rows of so many numbers that is drawn."""
    return min(1.0, MOST_ROWS / max(n_rows, 1), MOST_NUMBERS / max(n_rows * n_columns, 1))


def drawn_rows(first_row: int, n_rows: int, weight: Array | None, share: float) -> Array:
    """Which rows of a block are drawn; those of weight 0 are not."""
    numbers = np.arange(first_row, first_row + n_rows, dtype=np.uint64)
    kept = (mixed(numbers, _SEED) >> np.uint64(11)) < np.uint64(share * 2.0**53)
    return kept if weight is None else kept & (weight > 0)


@dataclass
class Drawn:
    """Numbers of the drawn rows by place of their column, gaps left out, and their targets."""

    share: float = 1.0
    parts: dict[int, list[Array]] = field(default_factory=dict)
    targets: list[Array] = field(default_factory=list)

    def add(self, first_row: int, columns: Any, y: Array, weight: Array) -> None:
        """Draw from one block; columns: an array, CSR, or the segments of an encoded table."""
        kept = np.flatnonzero(drawn_rows(first_row, len(y), weight, self.share))
        self.targets.append(y[kept])
        if not isinstance(columns, seg.Columns):
            rows = columns[kept]
            self.add_rows(rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows))
            return
        place = 0
        for segment in columns.segments:
            if isinstance(segment, seg.Number) and not isinstance(segment.values, seg.Bits):
                there = kept if segment.valid is None else kept[segment.valid.to_bool(len(y))[kept]]
                self.parts.setdefault(place, []).append(np.asarray(segment.values[there], dtype=np.float64))
            place += segment.n_columns

    def add_rows(self, rows: Array) -> None:
        """Rows of numbers."""
        for place, values in enumerate(np.asarray(rows, dtype=np.float64).T):
            self.parts.setdefault(place, []).append(values)

    def values(self, place: int) -> Array:
        """Of one column."""
        return np.concatenate(self.parts.get(place, [np.zeros(0)]))

    @property
    def target(self) -> Array:
        """Targets of the drawn rows."""
        return np.concatenate([np.zeros(0), *self.targets])
