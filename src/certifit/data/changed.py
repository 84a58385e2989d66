"""Sources whose runs are changed as they are read: other columns, other weights, labels as codes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import (
    Batches,
    Block,
    Result,
    RowError,
    RowMap,
    Source,
    Statistic,
    block_rows,
    itself,
    tree_sum,
)


class Mapped(Source):
    """A source seen through a map, run by run; an array in memory is cut so that no mapped copy of all rows exists."""

    def __init__(self, inner: Source, row_map: RowMap) -> None:
        self.inner = inner
        self.row_map = row_map
        self.names = [str(name) for name in row_map.get_feature_names_out(inner.names)]
        self.named = inner.named
        self.target = inner.target
        self.n_features = len(self.names)
        self.block_rows = block_rows(self.n_features)

    @property
    def has_offset(self) -> bool:
        """Whether the rows have an offset."""
        return self.inner.has_offset

    def runs(self) -> Iterator[Block]:
        """Mapped runs."""
        return map(_Through(self.row_map, itself), self._cut().runs())

    def map(self, f: Callable[[Block], Result]) -> Iterable[Result]:
        """f of every mapped run, where the engine of the inner source has its rows."""
        return self._cut().map(_Through(self.row_map, f))

    def reduce(self, f: Callable[[Block], Statistic]) -> Statistic:
        """Sum of f over the mapped runs, summed where the engine of the inner source sums."""
        total: Statistic = self._cut().reduce(_Through(self.row_map, f))
        return total

    def _cut(self) -> Source:
        """The inner source in runs that suit the mapped columns: no mapped copy of all rows exists."""
        rows = min(self.rows_of_run(), self.inner.rows_of_run())  # a wide table mapped to few columns is held too
        return self.inner.resized(self.block_rows, max(self.block_rows, rows))


class Changed(Source):
    """A source with every run changed as it is read; the rows are the same."""

    def __init__(self, inner: Source) -> None:
        self.inner = inner
        self.names, self.named, self.target = inner.names, inner.named, inner.target
        self.n_features, self.block_rows, self.run_rows = inner.n_features, inner.block_rows, inner.run_rows
        self.is_table = inner.is_table

    def __getattr__(self, name: str) -> Any:
        """Facts of the inner source: n_rows, place, skipped, checksummed, notes."""
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property
    def has_offset(self) -> bool:
        """Whether the rows have an offset."""
        return self.inner.has_offset

    def then(self, f: Callable[[Block], Result]) -> Callable[[Block], Result]:
        """f of the changed run, as a function that can be sent to a worker."""
        raise NotImplementedError

    def runs(self) -> Iterator[Block]:
        """Changed runs."""
        return map(self.then(itself), self._cut().runs())

    def map(self, f: Callable[[Block], Result]) -> Iterable[Result]:
        """f of every run, where the engine of the inner source has its rows."""
        return self._cut().map(self.then(f))

    def reduce(self, f: Callable[[Block], Statistic]) -> Statistic:
        """Sum of f over the runs, summed where the engine of the inner source sums."""
        total: Statistic = self._cut().reduce(self.then(f))
        return total

    def rows_of_run(self) -> int:
        """Rows of a run that is not the last."""
        return self._cut().rows_of_run()

    def _cut(self) -> Source:
        return self.inner if self.run_rows is None else self.inner.resized(self.block_rows, self.run_rows)


class Weighted(Changed):
    """A source with other weights."""

    def __init__(self, inner: Source, times: Callable[[Block], Array]) -> None:
        super().__init__(inner)
        self.times = times

    def then(self, f: Callable[[Block], Result]) -> Callable[[Block], Result]:
        """f of the run with the other weights."""
        return _Reweighted(self.times, f)

    def target_column(self) -> Source:
        """The target alone, with the other weights."""
        return Weighted(self.inner.target_column(), self.times)

    def without_target(self) -> Source:
        """The same rows, their target not read."""
        return Weighted(self.inner.without_target(), self.times)

    def coded(self, classes: Array) -> Source:
        """The same rows with labels read as codes."""
        return Weighted(self.inner.coded(classes), self.times)


class Picked(Changed):
    """Some rows of a source, numbered anew from 0: the others are not seen by whatever reads it.

    flags: of every row of the inner source, whether it is one of them.
    """

    def __init__(self, inner: Source, flags: Array) -> None:
        super().__init__(inner)
        self.flags, self.run_rows = np.asarray(flags, dtype=bool), None
        self.n_rows = int(self.flags.sum())

    def runs(self) -> Iterator[Block]:
        """The rows in runs of their own numbers."""
        batches = Batches(self._parts, self.names, self.target, self.named)
        batches.block_rows, batches.run_rows = self.block_rows, self.run_rows
        return batches.runs()

    def map(self, f: Callable[[Block], Result]) -> Iterable[Result]:
        """f of every run."""
        return (f(run) for run in self.runs())

    def reduce(self, f: Callable[[Block], Statistic]) -> Statistic:
        """Sum of f over the runs, in a binary tree by run number."""
        return tree_sum(self.map(f))

    def rows_of_run(self) -> int:
        """Rows of a run that is not the last."""
        return Source.rows_of_run(self)

    def place(self, row: int) -> str:
        """Where a row stands in the data."""
        return str(self.inner.place(int(np.flatnonzero(self.flags)[row])))  # type: ignore[attr-defined]

    def select(self, columns: Any) -> Picked:
        """The same rows with only these columns."""
        return Picked(self.inner.select(columns), self.flags)  # type: ignore[attr-defined]

    def target_column(self) -> Source:
        """The target alone."""
        return Picked(self.inner.target_column(), self.flags)

    def without_target(self) -> Source:
        """The same rows, their target not read."""
        return Picked(self.inner.without_target(), self.flags)

    def coded(self, classes: Array) -> Source:
        """The same rows with labels read as codes."""
        return Picked(self.inner.coded(classes), self.flags)

    def held(self, most_bytes: int) -> Source:
        """The same rows, of a source in memory where it is small."""
        return Picked(self.inner.held(most_bytes), self.flags)

    def _parts(self) -> Iterator[Block]:
        for run in self.inner.runs():
            seen = self.flags[run.first_row : run.first_row + run.n_rows]
            if seen.any():
                yield run.where(seen)


class Coded(Changed):
    """A source whose y, labels that are numbers, is read as codes."""

    def __init__(self, inner: Source, classes: Array) -> None:
        super().__init__(inner)
        self.classes = classes.astype(np.float64)

    def then(self, f: Callable[[Block], Result]) -> Callable[[Block], Result]:
        """f of the run with codes."""
        return _Recoded(self.classes, f)


@dataclass(frozen=True)
class _Through:
    """f of the mapped run: a function that can be sent to a worker."""

    row_map: RowMap
    f: Callable[[Block], Any]

    def __call__(self, run: Block) -> Any:
        try:
            rows = self.row_map.apply(run.X)
        except RowError as error:
            raise error.moved(run.first_row) from None
        return self.f(replace(run, X=rows))


@dataclass(frozen=True)
class _Recoded:
    """f of the run with y as codes: a function that can be sent to a worker."""

    classes: Array
    f: Callable[[Block], Any]

    def __call__(self, run: Block) -> Any:
        if run.y is None:
            return self.f(run)
        places = np.searchsorted(self.classes, run.y).clip(max=len(self.classes) - 1)
        return self.f(replace(run, y=np.where(self.classes[places] == run.y, places, -1.0)))


@dataclass(frozen=True)
class _Reweighted:
    """f of the run with other weights: a function that can be sent to a worker."""

    times: Callable[[Block], Array]
    f: Callable[[Block], Any]

    def __call__(self, run: Block) -> Any:
        times = np.asarray(self.times(run), dtype=np.float64)
        return self.f(replace(run, weight=times if run.weight is None else times * run.weight))


class OneAgainstRest(Changed):
    """A source of codes with y 1 for one class and 0 for all others."""

    def __init__(self, inner: Source, code: int) -> None:
        super().__init__(inner)
        self.code = code

    def then(self, f: Callable[[Block], Result]) -> Callable[[Block], Result]:
        """f of the run with the one class against the rest."""
        return _OfOne(self.code, f)


@dataclass(frozen=True)
class _OfOne:
    """f of the run with y 1 for one code, else 0: a function that can be sent to a worker."""

    code: int
    f: Callable[[Block], Any]

    def __call__(self, run: Block) -> Any:
        return self.f(run if run.y is None else replace(run, y=(run.y == self.code).astype(np.float64)))
