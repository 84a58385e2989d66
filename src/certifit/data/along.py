"""A sum over mapped rows that another pass takes along: a pass over a file costs more than its sums.

What a map makes of the rows may be known before the pass that decides it. Where that pass then decides otherwise, the
sum is forgotten, and made anew of what was decided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias

import numpy as np

from certifit.data.source import Adds, Block, Result, RowError, RowMap, Source, Statistic
from certifit.data.source_wrappers import Changed, Mapped, through

Sums: TypeAlias = Callable[[Source], Callable[[Block], Adds]]
"""What is summed over the stretches of a source."""


class TakesAlong(Changed):
    """A source whose first sum takes another along, that of its rows through a map.

    taken: that sum; None where no pass was made, or the map refused a row.
    """

    def __init__(self, inner: Source, row_map: RowMap, sums: Sums) -> None:
        super().__init__(inner)
        self.row_map, self.sums = row_map, sums
        self.taken: Adds | None = None
        self._is_over = False

    def then(self, f: Callable[[Block], Result]) -> Callable[[Block], Result]:
        """f: the rows are as they were."""
        return f

    def surveyed(self, key: object, make: Callable[[], Result]) -> Result:
        """A survey of all rows, known to the inner source."""
        return self.inner.surveyed(key, make)

    def reduce(self, f: Callable[[Block], Statistic]) -> Statistic:
        """Sum of f over the stretches; the first time with the sum over the mapped rows."""
        other = None if self._is_over else self._of_mapped()
        self._is_over = True
        if other is None:
            return super().reduce(f)
        both: _Sums[Statistic] = super().reduce(_Both(f, other))
        self.taken = both.second
        return both.first

    def _of_mapped(self) -> Callable[[Block], Adds] | None:
        """What is summed over a stretch; None where the map refuses block 0 or the mapped rows have other blocks."""
        mapped = Mapped(self.inner, self.row_map)
        if (mapped.block_rows, mapped.rows_of_stretch()) != (self.block_rows, self.rows_of_stretch()):
            return None
        try:
            return through(self.row_map, self.sums(mapped))
        except RowError:
            return None


@dataclass(frozen=True)
class _Sums(Generic[Statistic]):
    """Two sums as one; the second is None once the map has refused a row."""

    first: Statistic
    second: Adds | None

    def __add__(self, other: _Sums[Statistic]) -> _Sums[Statistic]:
        if self.second is None or other.second is None:
            return _Sums(self.first + other.first, None)
        with np.errstate(over="ignore", invalid="ignore"):  # sums beyond float64 are made again in other units
            return _Sums(self.first + other.first, self.second + other.second)


@dataclass(frozen=True)
class _Both(Generic[Statistic]):
    """Two functions of a stretch as one that can be sent to a worker."""

    f: Callable[[Block], Statistic]
    other: Callable[[Block], Adds]

    def __call__(self, stretch: Block) -> _Sums[Statistic]:
        first = self.f(stretch)
        try:
            return _Sums(first, self.other(stretch))
        except RowError:
            return _Sums(first, None)
