"""Mutual information from tables that need not fit in memory.

One pass counts the pairs (level, target) of every column that can be discrete; the counts add. A second pass gathers
what needs nearest neighbours: the continuous columns, and with a continuous target all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from certifit.data.arrow import ArrowSource
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.maps.table.reading import family, plain
from certifit.runtime import check_memory
from certifit.selection.information.estimates import (
    MOST_FEW,
    Estimates,
    Kind,
    Scores,
    Target,
    declared,
    enough_rows,
    few_whole,
)
from certifit.statistics.cell_sums import JointCounts

MOST_PAIRS = 1_000_000  # different pairs (level, target) of a column
_NUMBERS = ("number", "date", "time", "duration")  # families that have an order


def frame_source(table: pa.Table, target: Target) -> ArrowSource:
    """A table with its target beside it; classes by their codes."""
    name = "y"
    while name in table.column_names:
        name += "_"
    return ArrowSource(
        table.append_column(name, pa.array(target.values.astype(np.float64))).to_batches,
        table.schema.append(pa.field(name, pa.float64())),
        name,
        n_rows=table.num_rows,
    )


def table_scores(source: Source, target: str, discrete_features: Any, n_neighbors: int) -> Scores:
    """Scores of the columns of a source of tables; target: "auto", "discrete" or "continuous"."""
    if not source.view.has_target:
        raise ValueError("The table has no target. Use scan_csv(path, target='name of the column').")
    marks = dict(zip(source.names, declared(discrete_features, source.names), strict=True))
    table = source.reduce(partial(TableCounts.of, marks=marks, target=target))
    kind = table.target_kind(target)
    kinds = {name: column.kind(table.n_rows) for name, column in table.columns.items()}
    _refuse_values(source, table, kinds)
    counts = {name: column.counts for name, column in table.columns.items() if kinds[name] == "discrete"}
    needed = [name for name in source.names if "continuous" in (kind, kinds[name])]
    scores = _gathered(source, table, needed, kinds).scores(kind, n_neighbors) if needed else {}
    scores |= {
        name: of_column.information()
        for name, of_column in counts.items()
        if of_column is not None and name not in scores
    }
    return Scores(
        scores=np.array([scores[name] for name in source.names]),
        kinds=list(kinds.values()),
        n_levels=[len(of_column.levels) if (of_column := counts.get(name)) is not None else 0 for name in source.names],
        target_kind=kind,
        class_sizes=table.class_sizes if kind == "discrete" else np.zeros(0, dtype=np.int64),
        n_rows=table.n_rows,
        has_gaps=any(table.columns[name].first_missing is not None for name in counts),
    )


@dataclass(frozen=True)
class ColumnCounts:
    """What one pass learns of a column."""

    name: str
    counts: JointCounts | None  # None: its numbers are not levels
    most_levels: int | None = None  # of numbers that may turn out to be levels
    first_missing: int | None = None  # global row number
    first_infinite: int | None = None

    def __add__(self, other: ColumnCounts) -> ColumnCounts:
        counts = None if self.counts is None or other.counts is None else self.counts + other.counts
        return ColumnCounts(
            self.name,
            self._limited(counts),
            self.most_levels,
            other.first_missing if self.first_missing is None else self.first_missing,
            other.first_infinite if self.first_infinite is None else self.first_infinite,
        )

    def _limited(self, counts: JointCounts | None) -> JointCounts | None:
        if counts is None or (self.most_levels is not None and _n_values(counts) > self.most_levels):
            return None
        if counts.n_pairs > MOST_PAIRS:
            raise ValueError(
                f"Column {self.name!r} has more than {MOST_PAIRS:,} different pairs of value and target. "
                "Leave it out with columns=[...], or group its values."
            )
        return counts

    def kind(self, n_rows: int) -> Kind:
        """Discrete or continuous, after all rows."""
        if self.counts is None:
            return "continuous"
        is_doubtful = self.most_levels is not None and not enough_rows(_n_values(self.counts), n_rows)
        return "continuous" if is_doubtful else "discrete"


@dataclass(frozen=True)
class TableCounts:
    """What one pass learns of a table. Rows of weight 0 are no rows."""

    n_rows: int
    lightest: float
    heaviest: float
    classes: Counter[float] | None  # rows of every value of the target; None: it is continuous
    columns: dict[str, ColumnCounts]
    most_classes: int | None  # with more the target is continuous

    @staticmethod
    def of(block: Block, marks: Mapping[str, bool | None], target: str) -> TableCounts:
        """Of the rows of one run."""
        block, rows = _used(block)
        assert block.y is not None
        has_classes = target == "discrete" or (target == "auto" and few_whole(block.y) is not None)
        y = block.y if has_classes else np.zeros(block.n_rows)
        values, sizes = np.unique(y, return_counts=True)
        columns = {
            name: _column_counts(name, plain(block.X.column(name)), mark, y, block.weight, rows)
            for name, mark in marks.items()
        }
        weights = np.ones(1) if block.weight is None or not block.n_rows else block.weight
        return TableCounts(
            block.n_rows,
            float(weights.min()),
            float(weights.max()),
            Counter(dict(zip(values.tolist(), sizes.tolist(), strict=True))) if has_classes else None,
            columns,
            MOST_FEW if target == "auto" else None,
        )

    def __add__(self, other: TableCounts) -> TableCounts:
        if not self.n_rows or not other.n_rows:
            return self if self.n_rows else other
        classes = None if self.classes is None or other.classes is None else self.classes + other.classes
        if classes is not None and self.most_classes is not None and len(classes) > self.most_classes:
            classes = None
        return TableCounts(
            self.n_rows + other.n_rows,
            min(self.lightest, other.lightest),
            max(self.heaviest, other.heaviest),
            classes,
            {name: column + other.columns[name] for name, column in self.columns.items()},
            self.most_classes,
        )

    @property
    def class_sizes(self) -> Array:
        """Rows of every class."""
        return np.array(list((self.classes or {}).values()), dtype=np.int64)

    def target_kind(self, asked: str) -> Kind:
        """Discrete or continuous, after all rows."""
        if self.n_rows < 2:
            raise ValueError(f"Found {self.n_rows} rows (n_samples={self.n_rows}). The filter needs at least 2.")
        if asked == "auto" and self.classes is not None and not enough_rows(len(self.classes), self.n_rows):
            return "continuous"
        return "continuous" if self.classes is None else "discrete"


def _used(block: Block) -> tuple[Block, Array]:
    """The rows of positive weight, and their global numbers."""
    rows = np.arange(block.first_row, block.first_row + block.n_rows)
    if block.weight is None or (block.weight > 0).all():
        return block, rows
    used = block.weight > 0
    return block.where(used), rows[used]


def _column_counts(
    name: str, column: pa.Array, mark: bool | None, y: Array, weight: Array | None, rows: Array
) -> ColumnCounts:
    kind = family(column.type)
    if kind == "other":
        raise TypeError(f"Column {name!r} is {column.type}, neither number, text, flag nor date. Leave it out.")
    if kind not in _NUMBERS:
        levels = as_levels(column)
        first = _first(rows, levels.is_null().to_numpy(zero_copy_only=False))
        return ColumnCounts(name, JointCounts.of(levels, y, weight), first_missing=first)
    x = as_numbers(column)
    is_missing, is_infinite = np.isnan(x), np.isinf(x)
    counted = mark is True or (mark is None and few_whole(x[~is_missing]) is not None)
    return ColumnCounts(
        name,
        JointCounts.of(as_levels(column), y, weight) if counted else None,
        most_levels=MOST_FEW if mark is None else None,
        first_missing=_first(rows, is_missing),
        first_infinite=_first(rows, is_infinite),
    )


def as_levels(column: pa.Array) -> pa.Array:
    """A column as values that can be counted; null where it is missing."""
    if pt.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pt.is_null(column.type):
        return pa.nulls(len(column), pa.int8())
    if pt.is_boolean(column.type):
        return pc.cast(column, pa.int8())
    if pt.is_floating(column.type) or pt.is_decimal(column.type):
        values = pc.add(pc.cast(column, pa.float64()), 0.0)  # -0 is 0
        return pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)
    return column


def as_numbers(column: pa.Array) -> Array:
    """A column of numbers, dates, times or durations as float64; NaN where it is missing."""
    if not (pt.is_integer(column.type) or pt.is_floating(column.type) or pt.is_decimal(column.type)):
        short = pt.is_date32(column.type) or pt.is_time32(column.type)
        column = pc.cast(column, pa.int32() if short else pa.int64())
    values: Array = pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values


@dataclass(frozen=True)
class _Reader:
    """Numbers and codes of a run: a function that can be sent to a worker."""

    numbers: list[str]
    levels: dict[str, pa.Array]

    def __call__(self, block: Block) -> tuple[Array, Array, Array]:
        block, _ = _used(block)
        assert block.y is not None
        numbers = [as_numbers(plain(block.X.column(name))) for name in self.numbers]
        codes = [
            pc.index_in(as_levels(plain(block.X.column(name))), value_set=levels).to_numpy(zero_copy_only=False)
            for name, levels in self.levels.items()
        ]
        shape = (-1, block.n_rows)
        return np.reshape(numbers, shape), np.reshape(np.array(codes, dtype=np.int32), shape), block.y


@dataclass(frozen=True)
class _Gathered:
    """Columns of all rows: numbers (float64), codes (int32), and the target."""

    reader: _Reader
    numbers: Array
    codes: Array
    y: Array

    def scores(self, kind: Kind, n_neighbors: int) -> dict[str, float]:
        """By the name of the column."""
        target = Target.of_classes(self.y) if kind == "discrete" else Target.of_numbers(self.y)
        estimates = Estimates(target, n_neighbors)
        scores: dict[str, float] = {}
        if self.reader.numbers:
            scores |= zip(self.reader.numbers, estimates.of_numbers(self.numbers).tolist(), strict=True)
        if self.reader.levels:
            n_levels = [len(levels) for levels in self.reader.levels.values()]
            scores |= zip(self.reader.levels, estimates.of_codes(self.codes, n_levels).tolist(), strict=True)
        return scores


def _gathered(source: Source, table: TableCounts, needed: Sequence[str], kinds: Mapping[str, Kind]) -> _Gathered:
    """A second pass; what cannot be done is refused before it."""
    _refuse_weights(table, needed)
    numbers = [name for name in needed if kinds[name] == "continuous"]
    counts = {name: table.columns[name].counts for name in needed if kinds[name] == "discrete"}
    levels = {name: of_column.levels for name, of_column in counts.items() if of_column is not None}
    n_rows = table.n_rows
    _refuse_size(n_rows, len(numbers), len(levels))
    whole = _Gathered(
        _Reader(numbers, levels),
        np.empty((len(numbers), n_rows)),
        np.empty((len(levels), n_rows), dtype=np.int32),
        np.empty(n_rows),
    )
    begin = 0
    for part_numbers, part_codes, part_y in source.map(whole.reader):
        rows = slice(begin, begin + len(part_y))
        whole.numbers[:, rows], whole.codes[:, rows], whole.y[rows] = part_numbers, part_codes, part_y
        begin += len(part_y)
    return whole


def _refuse_values(source: Source, table: TableCounts, kinds: Mapping[str, Kind]) -> None:
    place = getattr(source, "place", "row {}".format)
    for name, column in table.columns.items():
        if column.first_infinite is not None:
            raise ValueError(
                f"Column {name!r} is infinite at {place(column.first_infinite)}. Numbers must be finite; leave the "
                "value empty if it is not known."
            )
        if column.first_missing is not None and kinds[name] == "continuous":
            raise ValueError(
                f"Column {name!r} is continuous and empty or NaN at {place(column.first_missing)}. Fill it, leave it "
                "out, or name it in discrete_features: missing is then a level of its own."
            )


def _refuse_weights(table: TableCounts, needed: Sequence[str]) -> None:
    if table.lightest != table.heaviest:
        raise ValueError(
            f"Nearest neighbours take no weights, and these range from {table.lightest:g} to {table.heaviest:g}. "
            f"{needed[0]!r} needs neighbours, because it or the target is continuous. Leave the weight out, or say "
            "target='discrete' and discrete_features=True."
        )


def _refuse_size(n_rows: int, n_numbers: int, n_levels: int) -> None:
    check_memory(
        n_rows * (8 * n_numbers + 4 * n_levels + 8),
        f"The search for nearest neighbours in {n_numbers + n_levels} columns of {n_rows:,} rows",
        "Name fewer with columns=[...], sample rows, or say target='discrete' and discrete_features=True, which needs "
        "only counts.",
    )


def _n_values(counts: JointCounts) -> int:
    levels = counts.levels
    return len(levels) - int(levels.null_count)


def _first(rows: Array, where: Array) -> int | None:
    return int(rows[np.argmax(where)]) if where.any() else None
