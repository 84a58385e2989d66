"""Sources whose stretches are changed as they are read: other columns, other weights, labels as codes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa

from certifit.data.columns import Array
from certifit.data.parts import Arrays, PartPlan, Parts
from certifit.data.source import (
    Block,
    Result,
    RowError,
    RowMap,
    Source,
    Statistic,
    itself,
    recut,
)
from certifit.data.view import Target, code_places


class Mapped(Source):
    """A source seen through a map, stretch by stretch: no mapped copy of all rows exists, not even of an array."""

    def __init__(self, inner: Source, row_map: RowMap) -> None:
        self.inner = inner
        self.row_map = row_map
        self.named, self.target, self.view = inner.named, inner.target, inner.view
        self.is_local = inner.is_local
        self.set_names([str(name) for name in row_map.get_feature_names_out(inner.names)])

    @property
    def in_memory(self) -> bool:
        """Whether the rows that are mapped are."""
        return self.inner.in_memory

    @property
    def may_spill(self) -> bool:
        """Whether the inner source allows temporary files."""
        return self.inner.may_spill

    def reading(self, target: Target, classes: Array | None = None) -> Source:
        """The mapped rows with their target read in another way; the target alone needs no map."""
        inner = self.inner.reading(target, classes)
        return inner if target is Target.RAW else Mapped(inner, self.row_map)

    def stretches(self) -> Iterator[Block]:
        """Mapped stretches."""
        return map(_Through(self.row_map, itself), self._cut().stretches())

    def map(self, f: Callable[[Block], Result]) -> Iterable[Result]:
        """f of every mapped stretch, where the engine of the inner source has its rows."""
        return self._cut().map(_Through(self.row_map, f))

    def reduce(self, f: Callable[[Block], Statistic]) -> Statistic:
        """Sum of f over the mapped stretches, summed where the engine of the inner source sums."""
        total: Statistic = self._cut().reduce(_Through(self.row_map, f))
        return total

    def in_parts(self, f: Callable[[Block], Arrays | None], plan: PartPlan) -> Parts:
        """The rows that f makes of every mapped stretch, sorted and cut."""
        return self._cut().in_parts(_Through(self.row_map, f), plan)

    def first_block(self) -> Block:
        """Rows of block 0, mapped: no others are."""
        return through(self.row_map, itself)(self._cut().first_block())

    def rows_of_stretch(self) -> int:
        """As many as were asked for; else what suits the columns here and those of the inner source, held as well."""
        return self.stretch_rows or min(super().rows_of_stretch(), self.inner.rows_of_stretch())

    def _cut(self) -> Source:
        """The inner source in stretches that suit the mapped columns: no mapped copy of all rows exists."""
        return self.inner.resized(self.block_rows, max(self.block_rows, self.rows_of_stretch()))


class Wrapped(Source):
    """The rows of another source. Whatever is asked of the rows is asked of that source, and the answer wrapped."""

    def __init__(self, inner: Source) -> None:
        self.inner = inner
        self.names, self.named, self.target, self.view = inner.names, inner.named, inner.target, inner.view
        self.n_features, self.block_rows, self.stretch_rows = inner.n_features, inner.block_rows, inner.stretch_rows
        self.is_table, self.is_local, self.coarseness = inner.is_table, inner.is_local, inner.coarseness

    def __getattr__(self, name: str) -> Any:
        """Facts of the inner source: n_rows, place, skipped, checksummed, notes."""
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property
    def in_memory(self) -> bool:
        """Whether the rows of the inner source are."""
        return self.inner.in_memory

    @property
    def may_spill(self) -> bool:
        """Whether the inner source allows temporary files."""
        return self.inner.may_spill

    def over(self, inner: Source) -> Self:
        """The same wrapper of another source."""
        other = copy(self)
        Wrapped.__init__(other, inner)
        return other

    def reading(self, target: Target, classes: Array | None = None) -> Source:
        """The same rows with their target read in another way."""
        return self.over(self.inner.reading(target, classes))

    def select(self, columns: Sequence[str]) -> Source:
        """The same rows with only these columns."""
        return self.over(self.inner.select(columns))

    def narrow(self) -> Source:
        """The same rows with as few columns as can be read."""
        return self.over(self.inner.narrow())

    def kept(self, may_spill: bool = False) -> Source:
        """The same rows; those of files are parsed once."""
        return self.over(self.inner.kept(may_spill))

    def unkept(self) -> Source:
        """The same rows, encoded anew in every pass."""
        return self.over(self.inner.unkept())

    def rows_of_stretch(self) -> int:
        """Rows of a stretch that is not the last."""
        return self._cut().rows_of_stretch()

    def _cut(self) -> Source:
        return self.inner if self.stretch_rows is None else self.inner.resized(self.block_rows, self.stretch_rows)


class Changed(Wrapped):
    """A source with every stretch changed as it is read; the rows are the same."""

    def then(self, f: Callable[[Block], Result]) -> Callable[[Block], Result]:
        """f of the changed stretch, as a function that can be sent to a worker."""
        raise NotImplementedError

    def stretches(self) -> Iterator[Block]:
        """Changed stretches."""
        return map(self.then(itself), self._cut().stretches())

    def map(self, f: Callable[[Block], Result]) -> Iterable[Result]:
        """f of every stretch, where the engine of the inner source has its rows."""
        return self._cut().map(self.then(f))

    def reduce(self, f: Callable[[Block], Statistic]) -> Statistic:
        """Sum of f over the stretches, summed where the engine of the inner source sums."""
        total: Statistic = self._cut().reduce(self.then(f))
        return total

    def in_parts(self, f: Callable[[Block], Arrays | None], plan: PartPlan) -> Parts:
        """The rows that f makes of every changed stretch, sorted and cut."""
        return self._cut().in_parts(self.then(f), plan)


class Weighted(Changed):
    """A source with other weights. name: equal names have equal weights, and share surveys of their rows."""

    def __init__(self, inner: Source, times: Callable[[Block], Array], name: Hashable = None) -> None:
        super().__init__(inner)
        self.times, self.weights_name = times, name

    def surveyed(self, key: Any, make: Callable[[], Result]) -> Result:
        """A survey of all rows, found once per question and name."""
        if self.weights_name is None:
            return super().surveyed(key, make)
        return self.inner.remembered((self.weights_name, key), make)

    def then(self, f: Callable[[Block], Result]) -> Callable[[Block], Result]:
        """f of the stretch with the other weights."""
        return _Reweighted(self.times, f)


class Picked(Wrapped):
    """Some rows of a source, numbered anew from 0: the others are not seen by whatever reads it.

    flags: of every row of the inner source, whether it is one of them.
    """

    def __init__(self, inner: Source, flags: Array) -> None:
        super().__init__(inner)
        self.flags, self.stretch_rows = np.asarray(flags, dtype=bool), None
        self.n_rows = int(self.flags.sum())

    def stretches(self) -> Iterator[Block]:
        """The rows in stretches of their own numbers."""
        return recut(self._parts(), self.rows_of_stretch())

    def rows_of_stretch(self) -> int:
        """Rows of a stretch that is not the last."""
        return Source.rows_of_stretch(self)

    def place(self, row: int) -> str:
        """Where a row stands in the data."""
        return str(self.inner.place(int(np.flatnonzero(self.flags)[row])))  # type: ignore[attr-defined]

    def over(self, inner: Source) -> Self:
        """The same rows of another source, in stretches of its default size."""
        other = super().over(inner)
        other.stretch_rows = None
        return other

    def _parts(self) -> Iterator[Block]:
        for stretch in self.inner.stretches():
            picked = self.flags[stretch.first_row : stretch.first_row + stretch.n_rows]
            if picked.any():
                yield stretch.where(picked)


class FewerClasses(Changed):
    """A source of codes with only some of the classes; codes: those classes, sorted, coded 0, 1, ... in their order."""

    def __init__(self, inner: Source, codes: Array) -> None:
        super().__init__(inner)
        self.codes = codes

    def then(self, f: Callable[[Block], Result]) -> Callable[[Block], Result]:
        """f of the stretch with the codes of the classes that are left."""
        return _Recoded(self.codes, f)


def through(row_map: RowMap, f: Callable[[Block], Result]) -> Callable[[Block], Result]:
    """f of the mapped stretch."""
    return _Through(row_map, f)


@dataclass(frozen=True)
class _Through:
    """f of the mapped stretch: a function that can be sent to a worker."""

    row_map: RowMap
    f: Callable[[Block], Any]

    def __call__(self, stretch: Block) -> Any:
        try:
            rows = self.row_map.apply(stretch.X)
        except RowError as error:
            raise error.moved(stretch.first_row) from None
        return self.f(replace(stretch, X=rows))


@dataclass(frozen=True)
class _Recoded:
    """f of the stretch with y as places among some codes: a function that can be sent to a worker."""

    codes: Array
    f: Callable[[Block], Any]

    def __call__(self, stretch: Block) -> Any:
        return self.f(stretch if stretch.y is None else replace(stretch, y=code_places(stretch.y, self.codes)))


@dataclass(frozen=True)
class _Reweighted:
    """f of the stretch with other weights: a function that can be sent to a worker."""

    times: Callable[[Block], Array]
    f: Callable[[Block], Any]

    def __call__(self, stretch: Block) -> Any:
        times = np.asarray(self.times(stretch), dtype=np.float64)
        return self.f(replace(stretch, weight=times if stretch.weight is None else times * stretch.weight))


class OneAgainstRest(Changed):
    """A source of codes with y 1 for one class and 0 for all others."""

    def __init__(self, inner: Source, code: int) -> None:
        super().__init__(inner)
        self.code = code

    def then(self, f: Callable[[Block], Result]) -> Callable[[Block], Result]:
        """f of the stretch with the one class against the rest."""
        return _OfOne(self.code, f)


@dataclass(frozen=True)
class _OfOne:
    """f of the stretch with y 1 for one code, else 0: a function that can be sent to a worker."""

    code: int
    f: Callable[[Block], Any]

    def __call__(self, stretch: Block) -> Any:
        return self.f(stretch if stretch.y is None else replace(stretch, y=(stretch.y == self.code).astype(np.float64)))


@dataclass(frozen=True)
class ChosenColumns:
    """A map of rows to some of their columns."""

    names: tuple[str, ...]
    columns: tuple[int, ...]

    def apply(self, X: Any) -> Any:
        """Only these columns."""
        return X.select(list(self.names)) if isinstance(X, pa.Table | pa.RecordBatch) else X[:, list(self.columns)]

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Their names."""
        return np.array(self.names, dtype=object)


def chosen_columns(source: Source, names: Sequence[str]) -> Source:
    """The rows with only these columns; those of a table still need an encoder."""
    place = {name: column for column, name in enumerate(source.names)}
    chosen = source.through(ChosenColumns(tuple(names), tuple(place[name] for name in names)))
    chosen.is_table = source.is_table
    return chosen
