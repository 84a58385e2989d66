"""What the cells of a CSV column are, decided from the text of all of them.

A column is whole numbers, numbers, flags, dates or times if all its filled cells are; if more than 9 in 10 are, it is
that too and the others are bad cells; else it is text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_MOST = 0.9


@dataclass(frozen=True)
class CellType:
    """A kind of cell: its Arrow type, the pattern of its text, its names in a sentence."""

    type: pa.DataType
    pattern: str
    article: str
    plural: str

    def matches(self, column: pa.Array) -> pa.Array:
        """One flag per cell; null where it is missing."""
        return pc.match_substring_regex(column, rf"^\s*(?:{self.pattern})\s*$")

    def mismatches(self, column: pa.Array) -> list[int]:
        """Rows whose cell is there and is not of this kind."""
        rows: list[int] = pc.indices_nonzero(pc.invert(self.matches(column)).fill_null(False)).to_pylist()
        return rows

    def converted(self, column: pa.Array) -> pa.Array:
        """The cells as values."""
        return pc.cast(pc.utf8_trim_whitespace(column), self.type)


_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?i:inf|infinity)"
_DATE = r"\d{4}-\d\d-\d\d"
_TIME = r"(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?"

# Every kind stands before the kinds that hold it.
KINDS = (
    CellType(pa.int64(), r"[+-]?\d{1,18}", "a whole number", "whole numbers"),
    CellType(pa.float64(), _NUMBER, "a number", "numbers"),
    CellType(pa.bool_(), r"true|True|TRUE|false|False|FALSE", "true or false", "true or false"),
    CellType(pa.date32(), _DATE, "a date", "dates"),
    CellType(pa.timestamp("us"), _DATE + _TIME, "a date and time", "dates"),
    CellType(pa.timestamp("us", "UTC"), _DATE + _TIME + "(?:Z|[+-]\\d\\d:?\\d\\d)", "a date and time", "dates"),
)

_NAMED = {
    "number": pa.float64(),
    "text": pa.string(),
    "date": pa.timestamp("us"),
    "flag": pa.bool_(),
}


def named_type(column: str, kind: Any) -> pa.DataType:
    """The Arrow type that a user's word means."""
    if isinstance(kind, pa.DataType):
        return kind
    if kind not in _NAMED:
        raise ValueError(f"types[{column!r}] must be one of {', '.join(map(repr, _NAMED))}. Got {kind!r}.")
    return _NAMED[kind]


def inferred(kind: pa.DataType) -> pa.DataType:
    """The type to read a column as whose first cells look like `kind`."""
    # Bytes that are not text are read as text, which fails with their line; times of day are levels.
    return pa.string() if pa.types.is_binary(kind) or pa.types.is_time(kind) else kind


def kind_of(type_: pa.DataType) -> CellType | None:
    """The kind of cells that a type reads; None where any text will do."""
    return next((kind for kind in KINDS if kind.type == type_), None)


def article(kind: pa.DataType | None) -> str:
    """A type in a sentence."""
    if kind is not None and kind == pa.null():
        return "empty like the cells before it"
    known = {column_type.type: column_type.article for column_type in reversed(KINDS)}
    if kind is not None and pa.types.is_temporal(kind):
        return "a date such as 2026-01-31"
    return known.get(kind, f"of type {kind}")


@dataclass
class Counts:
    """How many filled cells of a column are of each kind."""

    n_cells: int = 0
    of_kind: list[int] = field(default_factory=lambda: [0] * len(KINDS))

    def add(self, column: pa.Array) -> None:
        """Count the cells of a batch."""
        filled = len(column) - column.null_count
        self.n_cells += filled
        if filled == 0:
            return
        counted = pc.value_counts(column.drop_null())
        values, counts = counted.field(0), counted.field(1)
        for k, kind in enumerate(KINDS):
            hits = pc.sum(pc.if_else(kind.matches(values), counts, 0)).as_py() or 0
            self.of_kind[k] += hits
            if hits == filled:
                self._hold(k, filled)
                return

    def _hold(self, k: int, n: int) -> None:
        """Whole numbers are numbers, dates are times."""
        holder = {0: 1, 3: 4}.get(k)
        if holder is not None:
            self.of_kind[holder] += n

    def decide(self, must_be_number: bool = False) -> tuple[CellType | None, int]:
        """The kind and how many cells are not of it; None is text."""
        if self.n_cells == 0:
            return CellType(pa.null(), "", "empty", "empty"), 0
        best = max(range(len(KINDS)), key=lambda k: self.of_kind[k])  # the first of equals: the narrowest
        if self.of_kind[best] > _MOST * self.n_cells:
            return KINDS[best], self.n_cells - self.of_kind[best]
        return (KINDS[1], self.n_cells - self.of_kind[1]) if must_be_number else (None, 0)
