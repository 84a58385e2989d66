"""Rows that trees read in passes: what is held of each is its target, its weight, its place and one byte per column.

Trees on bins ask of the rows which bins their values are in, which rows are equal, and in what order they are summed.
All three are known without the values, and are those of the same rows in memory, so the trees have the same bits.

hashes   of every row two hashes of its values and its target: the first orders the rows; where both, and the targets,
         are equal, the rows are equal
edges    of bins lie between values of the first 200,000 distinct rows, which one pass collects
codes    the bins of the distinct rows in their order, which one pass makes, where the rows are
ranks    of values among the thresholds of trees that are given: all that these trees ask of a row. A certificate leads
         rows through trees by them; it shares nothing with the search, not even its bins
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from certifit.data.columns import Array, dense_rows
from certifit.data.kept import byte_table
from certifit.data.parts import refuse_spill
from certifit.data.source import Block, Source
from certifit.models.trees.columns import ColumnRules, counted_levels
from certifit.runtime import check_memory, core, memory_limit, n_threads

SAMPLE_ROWS = 200_000  # that edges of bins lie between
MOST_EDGES = 254  # of a column whose codes are bytes; 255 is a missing value
BYTES_OF_HASHES = 64  # of a row while equal ones are looked for

Result = TypeVar("Result")


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
class _OfCounted(Generic[Result]):
    """f of the counted rows of a stretch, and their number; None of a stretch without any. Is sent to workers."""

    f: Callable[[Block], Result]
    n_classes: int

    def __call__(self, stretch: Block) -> tuple[int, Result | None]:
        block = counted_rows(stretch, self.n_classes)
        return block.n_rows, self.f(block) if block.n_rows else None


@dataclass(frozen=True)
class _Told:
    """What a pass learns of some rows."""

    first_row: int
    y: Array
    weight: Array | None
    offset: Array | None
    n_levels: Array | None
    hashes: tuple[Array, Array, bool]


def _hashes(block: Block, unit: float, centre: float) -> tuple[Array, Array, bool]:
    y = (np.ascontiguousarray(block.y, dtype=np.float64) - centre) / unit
    order, other, is_finite = core.hash_rows(rows_with_offset(block), y, n_threads())
    return order, other, bool(is_finite)


def _told(block: Block, rules: ColumnRules, names: list[str]) -> _Told:
    y, weight, offset = (
        None if values is None else np.asarray(values, dtype=np.float64)
        for values in (block.y, block.weight, block.offset)
    )
    if y is None:
        raise ValueError("A tree needs a target.")
    n_levels = counted_levels(block, rules, names).n_levels
    return _Told(block.first_row, y, weight, offset, n_levels, _hashes(block, 1.0, 0.0))


def _codes(block: Block, edges: list[Array], n_levels: Array | None) -> Array:
    codes: Array = core.bin_rows(block.rows, edges, n_levels, n_threads())
    return codes


def _picked(block: Block, places: dict[int, Array]) -> Block:
    """Some rows of a stretch, by its first row."""
    rows = block.where(places.get(block.first_row, np.zeros(0, dtype=np.int64)))
    return Block(dense_rows(rows.X).astype(np.float64, copy=False), rows.y, None, offset=rows.offset)


@dataclass(frozen=True)
class Distinct:
    """Distinct rows in the order of their hashes. first: the number of the first of the equal rows; y: in units."""

    first: Array
    y: Array
    weight: Array

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return len(self.first)


class StreamedRows:
    """Counted rows of a source that is read in passes. y, weight, offset: of all of them, in the order of the source.

    bytes_per_row: what a fit holds of a row beside its codes.
    """

    def __init__(self, source: Source, n_classes: int, rules: ColumnRules, bytes_per_row: int) -> None:
        self.source = source.unkept().resized(source.block_rows, source.rows_of_stretch())
        self.n_classes, self.bytes_per_row = n_classes, max(bytes_per_row, BYTES_OF_HASHES)
        told, n_rows = [], 0
        for n, stretch in self._numbered(partial(_told, rules=rules, names=list(source.names))):
            n_rows += n
            check_memory(
                n_rows * self.bytes_per_row, f"A fit of {n_rows:,} rows or more that are read in passes", "Sample rows."
            )
            if stretch is not None:
                told.append(stretch)
        if not told:
            raise ValueError("All weights are zero. A fit needs a row of positive weight.")
        self.y = np.concatenate([stretch.y for stretch in told])
        self.weight = _joined([stretch.weight for stretch in told])
        self.offset = _joined([stretch.offset for stretch in told])
        levels = [stretch.n_levels for stretch in told if stretch.n_levels is not None]
        self.n_levels: Array | None = np.max(levels, axis=0) if levels else None
        self._hashes: list[tuple[Array, Array, bool]] = [stretch.hashes for stretch in told]
        self._distinct: dict[tuple[float, float], Distinct] = {}
        ends = np.cumsum([0, *(len(stretch.y) for stretch in told)])
        self._begins = {stretch.first_row: int(end) for stretch, end in zip(told, ends, strict=False)}

    @property
    def n_rows(self) -> int:
        """Counted rows."""
        return len(self.y)

    def each(self, f: Callable[[Block], Result]) -> Iterator[Result]:
        """f of the counted rows of every stretch that has any, in order, computed where the rows are."""
        return (result for _, result in self._numbered(f) if result is not None)

    def _numbered(self, f: Callable[[Block], Result]) -> Iterator[tuple[int, Result | None]]:
        return iter(self.source.map(_OfCounted(f, self.n_classes)))

    def distinct(self, unit: float, weight_unit: float, centre: float) -> Distinct | None:
        """Distinct rows, of (y - centre) / unit; None where a value is infinite, or a target is not finite."""
        is_known = unit == 1.0 and centre == 0.0
        if (unit, centre) not in self._distinct:
            again = partial(_hashes, unit=unit, centre=centre)
            hashes = self._hashes if is_known and self._hashes else list(self.each(again))
            if not all(is_finite for _, _, is_finite in hashes):
                return None
            order, other = (np.concatenate([part[k] for part in hashes]) for k in (0, 1))
            self._hashes = []
            hashes.clear()  # joined: never two copies while equal rows are looked for
            weight = None if self.weight is None else self.weight / weight_unit
            y = (self.y - centre) / unit
            first, weights = core.merge_hashes(order, other, y, weight)
            self._distinct[unit, centre] = Distinct(first, y[first] + 0.0, weights)
        return self._distinct[unit, centre]

    def edges(self, distinct: Distinct, max_bins: int, n_levels: Array | None) -> list[Array]:
        """The edges of the bins of every column."""
        chosen = np.sort(distinct.first[:SAMPLE_ROWS]).astype(np.int64)
        cuts = np.searchsorted(chosen, [*self._begins.values(), self.n_rows])
        parted = enumerate(self._begins.items())
        places = {first_row: chosen[cuts[k] : cuts[k + 1]] - begin for k, (first_row, begin) in parted}
        parts = list(self.each(partial(_picked, places=places)))
        sample = Block(
            np.concatenate([part.X for part in parts]), None, None, offset=_joined([p.offset for p in parts])
        )
        y = np.concatenate([np.asarray(part.y, dtype=np.float64) for part in parts])
        if n_levels is not None and sample.offset is not None:
            n_levels = np.append(n_levels, np.uint8(0))
        found: list[Array] = core.bin_edges(rows_with_offset(sample), y, None, max_bins, n_levels, n_threads())
        return found[: self.source.n_features]

    def codes(self, distinct: Distinct, edges: list[Array], n_levels: Array | None) -> Array:
        """Bins of the distinct rows, row after row: 255 where a value is missing. In memory, or in a temporary file."""
        place = np.full(self.n_rows, -1, dtype=np.int64)
        place[distinct.first] = np.arange(distinct.n_rows)
        table = self.table(distinct.n_rows, self.source.n_features)
        begin = 0
        for part in self.each(partial(_codes, edges=edges, n_levels=n_levels)):
            places = place[begin : begin + len(part)]
            is_first = places >= 0
            table[places[is_first]] = part[is_first]
            begin += len(part)
        return table

    def table(self, n_rows: int, n_columns: int) -> Array:
        """A table of bytes, in memory where the budget has room for three of them beside the rows, else in a file."""
        room = memory_limit() - self.n_rows * self.bytes_per_row
        in_memory = 3 * n_rows * n_columns <= room
        if not in_memory:
            refuse_spill(n_rows * n_columns, self.source.may_spill)
        return byte_table(n_rows, n_columns, in_memory)

    def by_column(self, codes: Array) -> Array:
        """The same codes, a row per column."""
        n_rows, n_columns = codes.shape
        table = self.table(n_columns, n_rows)
        for begin in range(0, n_rows, 1 << 16):
            table[:, begin : begin + (1 << 16)] = codes[begin : begin + (1 << 16)].T
        return table


def _joined(parts: list[Array | None]) -> Array | None:
    arrays = [part for part in parts if part is not None]
    return np.concatenate(arrays) if arrays else None


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
