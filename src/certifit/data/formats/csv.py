"""CSV files: rows in constant memory, every fault with its line.

What the cells of a CSV column are, decided from the text of all of them.

A column is whole numbers, numbers, flags, dates or times if all its filled cells are; if more than 9 in 10 are, it is
that too and the others are bad cells; else it is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from certifit.data import privacy
from certifit.data.formats.csv_reader import (
    BadRow,
    Reader,
    Skipped,
    Text,
    last_number,
    line_of,
    short,
    undecodable_line,
)
from certifit.data.formats.paths import Unchanged, refused_memory
from certifit.data.roles import refuse_unknown

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


__all__ = ["CsvFiles", "Text"]


class CsvFiles:
    """Files of one header, in order. The look at all rows that settles the types is made once, here.

    numbers: columns beside the others that are numbers whatever their cells look like: weight, offset, exposure.
    """

    checksummed = False

    def __init__(
        self, paths: Sequence[str], text: Text, features: Sequence[str], numbers: Sequence[str],
        types: Mapping[str, Any], bad_rows: int,
    ) -> None:  # fmt: skip
        self.paths, self.text, self.numbers, self.bad_rows = list(paths), text, list(numbers), bad_rows
        wanted = [*features, *numbers]
        self.unchanged = Unchanged(self.paths)
        for path in self.paths[1:]:
            _same_header(path, Text.of(path, text.delimiter, text.encoding, ()).header, self.paths[0], text.header)
        for name in types:
            refuse_unknown(name, text.header, repr(self.paths[0]))
        fixed = {name: named_type(name, kind) for name, kind in types.items()}
        self.types = {name: fixed[name] for name in wanted if name in fixed}
        self.lenient: dict[str, CellType] = {}  # columns read as text, whose bad cells are bad rows
        self.cells: dict[str, str] = {}  # what an error says about all cells of a column
        self.bad: list[BadRow] = []
        self.rows: list[int] = []
        self.cut: list[str] = []  # files whose last line does not end
        self._survey([name for name in wanted if name not in fixed])
        self.schema = pa.schema([(name, self.types[name]) for name in wanted])
        self.n_rows = sum(self.rows)
        if not self.n_rows:
            raise ValueError(f"{self.paths[0]!r} has a header and no rows.")

    @property
    def skipped(self) -> int:
        """How many rows were skipped."""
        return len(self.bad)

    @property
    def notes(self) -> list[str]:
        """What a report should say."""
        notes = [f"{path!r} does not end with a line break: its last row may be cut." for path in self.cut]
        if self.bad:
            what = [f"{self._where(bad)}: {bad.what}" for bad in self.bad[:3]]
            plural = "row was" if len(self.bad) == 1 else "rows were"
            notes.append(f"{len(self.bad)} bad {plural} skipped. " + "; ".join(what) + ".")
        return notes

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """All rows of these columns. A column whose bad cells are skipped is always read, so rows stay the same."""
        types = self._read_as({name: self.types[name] for name in dict.fromkeys([*columns, *self.lenient])})
        schema = pa.schema([(name, self.types[name]) for name in columns])
        bad = Skipped(self.bad_rows)
        for path in self.paths:
            read = 0
            for batch in self._read(path, types, bad):
                kept = self._kept(batch, path, read, bad) if self.lenient else batch
                read += batch.num_rows
                if kept.num_rows:
                    yield kept.select(list(columns)).cast(schema)

    def place(self, row: int) -> str:
        """Where a row stands: its line."""
        for path, n_rows in zip(self.paths, self.rows, strict=True):
            if row < n_rows:
                number = _numbered(row, [bad.number for bad in self.bad if bad.path == path])
                return f"{line_of(path, number, self.text)} of {path!r}"
            row -= n_rows
        return f"row {row}"

    def _survey(self, unknown: list[str]) -> None:
        """Settle the types, then count rows and bad rows: one pass, more only where the first block misleads."""
        types, counts = {**self.types, **self._first_block(unknown)}, {}
        while True:
            try:
                counts = self._count(types, [name for name in unknown if types[name] == pa.string()])
                break
            except _BadCell as error:
                if error.column in unknown:
                    types |= dict.fromkeys(unknown, pa.string())
                elif not self.bad_rows or (kind := kind_of(types[error.column])) is None:
                    raise
                else:
                    self.lenient[error.column] = kind
        if self._decide(counts):
            self._count(self.types, [])

    def _first_block(self, unknown: list[str]) -> dict[str, pa.DataType]:
        path, known = self.paths[0], {name: pa.string() for name in self.types}
        try:
            with Reader(path, self.text, known, [*known, *unknown], Skipped(1 << 62)) as reader:
                types = {name: reader.schema.field(name).type for name in unknown}
        except UnicodeError as error:
            raise self._undecodable(path) from error
        except (pa.ArrowException, OSError) as error:
            raise self._explained(error, path, known, Skipped(0)) from error
        return {name: inferred(kind) for name, kind in types.items()}

    def _count(self, types: dict[str, pa.DataType], undecided: list[str]) -> dict[str, Counts]:
        """One pass: rows, bad rows, and what the cells of the undecided columns are."""
        self.types, self.rows, self.cut = types, [], []
        bad = Skipped(self.bad_rows)
        counts = {name: Counts() for name in undecided}
        for path in self.paths:
            read = kept = 0
            for batch in self._read(path, self._read_as(types), bad):
                for name, count in counts.items():
                    count.add(batch.column(name))
                kept += self._kept(batch, path, read, bad).num_rows
                read += batch.num_rows
            self.rows.append(kept)
        self.bad = bad.rows
        return counts

    def _decide(self, counts: dict[str, Counts]) -> bool:
        """Give columns read as text the type of their cells; whether any changed."""
        before = dict(self.types)
        for name, count in counts.items():
            kind, bad_cells = count.decide(must_be_number=name in self.numbers)
            self.types[name] = pa.string() if kind is None else kind.type
            if kind is not None and bad_cells:
                self.lenient[name] = kind
                self.cells[name] = f"{bad_cells:,} of {count.n_cells:,} cells of this column are not {kind.plural}"
        return self.types != before

    def _read_as(self, types: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
        return {name: pa.string() if name in self.lenient else kind for name, kind in types.items()}

    def _read(self, path: str, types: dict[str, pa.DataType], bad: Skipped) -> Iterator[pa.RecordBatch]:
        self.unchanged.check(path)
        try:
            with Reader(path, self.text, types, list(types), bad) as reader:
                yield from reader.batches()
                if not reader.ended:
                    line = line_of(path, last_number(path, self.text), self.text)
                    raise ValueError(
                        f"{path!r}: a quoted cell of the row at {line} is not closed before the end of the file. "
                        "The file is cut, or a quote is missing."
                    )
                if not reader.complete and path not in self.cut:
                    self.cut.append(path)
                self.unchanged.check(path, reader.file.digest)
        except UnicodeError as error:
            raise self._undecodable(path) from error
        except (pa.ArrowException, OSError) as error:
            raise self._explained(error, path, types, bad) from error

    def _kept(self, batch: pa.RecordBatch, path: str, read: int, bad: Skipped) -> pa.RecordBatch:
        """The batch without rows that hold a bad cell, its lenient columns converted."""
        wrong: dict[int, str] = {}  # row -> column
        for name, kind in self.lenient.items():
            for row in kind.mismatches(batch.column(name)):
                wrong.setdefault(row, name)
        before = [bad_row.number for bad_row in bad.rows if bad_row.path == path and not bad_row.parsed]
        for row in sorted(wrong):
            name = wrong[row]
            cell = short(batch.column(name)[row].as_py())
            what = f"column {name!r} is {cell}, not {self.lenient[name].article}"
            bad_row = BadRow(path, _numbered(read + row, before), what, parsed=True)
            if not bad.take(bad_row):
                raise ValueError(self._too_many(bad_row, self.cells.get(name, "")))
        if wrong:
            batch = batch.filter(pa.array([row not in wrong for row in range(batch.num_rows)]))
        for name, kind in self.lenient.items():
            at = batch.schema.get_field_index(name)
            batch = batch.set_column(at, name, kind.converted(batch.column(at)))
        return batch

    def _explained(self, error: Exception, path: str, types: Mapping[str, Any], bad: Skipped) -> Exception:
        """The error of the parser in words, with its line."""
        said = str(error)
        if isinstance(error, MemoryError):
            return refused_memory(path, error)
        if bad.refused is not None:
            return ValueError(self._too_many(bad.refused))
        if match := _CELL_ERROR.search(said):
            return self._bad_cell(path, types, int(match[1]), int(match[2] or 0), match[3])
        if "cannot infer number of columns" in said:
            return ValueError(f"{path!r} has a header and no rows.")
        if "straddl" in said or "out of sync" in said:
            line = line_of(path, last_number(path, self.text), self.text)
            return ValueError(
                f"{path!r}: a row near {line} is longer than {self.text.block:,} bytes. A quote may be missing."
            )
        return ValueError(f"{path!r} is cut or not a readable CSV file: {said.strip()}")

    def _undecodable(self, path: str) -> ValueError:
        line = undecodable_line(path, self.text)
        where = f"{path!r}" if line is None else f"{path!r}, line {line},"
        return ValueError(f"{where} has bytes that are not {self.text.encoding} text. {SAVE_AS_UTF8}")

    def _bad_cell(self, path: str, types: Mapping[str, Any], column: int, number: int, said: str) -> ValueError:
        name, where = self.text.header[column], f"{path!r}, {line_of(path, number, self.text)}"
        if "UTF8" in said:
            return ValueError(
                f"{where}: column {name!r} has bytes that are not {self.text.encoding} text. {SAVE_AS_UTF8}"
            )
        wrong = privacy.cell(said.removeprefix("invalid value "))
        what = f"column {name!r} is {wrong}, not {article(types.get(name))}"
        advice = f"Mend the file, name a sign for no value in missing=, or pass types={{{name!r}: 'text'}}."
        return _BadCell(f"{where}: {what}. {advice}", name)

    def _where(self, bad: BadRow) -> str:
        return f"{bad.path!r}, {line_of(bad.path, bad.number, self.text)}"

    def _too_many(self, bad: BadRow, about: str = "") -> str:
        more = f" {about}." if about else ""
        limit = f"bad_rows={self.bad_rows} are used up. " if self.bad_rows else ""
        advice = "Mend the file, or pass bad_rows= to skip that many such rows."
        if about:
            advice += " A sign for no value can be named in missing=, text in types={column: 'text'}."
        return f"{self._where(bad)}: {bad.what}.{more} {limit}{advice}"


SAVE_AS_UTF8 = "Save the file as UTF-8, or pass encoding=, such as 'latin1'."
_CELL_ERROR = re.compile(r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to [^:]+: (.*)", re.S)


class _BadCell(ValueError):
    """A cell of another type than its column."""

    def __init__(self, message: str, column: str) -> None:
        super().__init__(message)
        self.column = column


def _same_header(path: str, header: Sequence[str], first: str, expected: Sequence[str]) -> None:
    names, known = set(header), set(expected)
    missing = [name for name in expected if name not in names]
    extra = [name for name in header if name not in known]
    if missing or extra:
        what = f"lacks column {missing[0]!r}" if missing else f"has a column {extra[0]!r}"
        what = what if privacy.are_names([*header, *expected]) else "has another first line"
        raise ValueError(f"{path!r} {what}, unlike {first!r}. All files of a scan need the same header.")
    if list(header) != list(expected):
        raise ValueError(f"{path!r} has its columns in another order than {first!r}. Make the headers equal.")


def _numbered(row: int, skipped: Sequence[int]) -> int:
    """The number in its file of row `row`, counted from 0 without the skipped ones."""
    number = row + 2
    for skipped_row in sorted(skipped):
        number += skipped_row <= number
    return number
