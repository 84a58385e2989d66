"""CSV files: rows in constant memory, every fault with its line.

One look at all rows settles how every column is read (`cell_types`); all passes read by it.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from certifit.data import privacy
from certifit.data.arrow import READING
from certifit.data.formats.cell_types import (
    COMMA,
    KINDS,
    OTHERWISE,
    POINT,
    CellType,
    Decision,
    Look,
    article,
    inferred,
    kind_of,
    named_type,
)
from certifit.data.formats.csv_reader import BadRow, Reader, Skipped, last_number, line_of, short, undecodable_line
from certifit.data.formats.csv_text import MISSING, Text, Undecodable
from certifit.data.formats.paths import Unchanged, refused_memory
from certifit.data.roles import refuse_unknown
from certifit.runtime import memory_limit

__all__ = ["CsvFiles", "Text", "holding_rows"]

_HOLDS: ContextVar[bool] = ContextVar("holds", default=False)


@contextmanager
def holding_rows() -> Iterator[None]:
    """Files opened inside hold the rows of the look, within the memory budget, for the first pass: it parses nothing.

    For those who make that pass at once.
    """
    token = _HOLDS.set(True)
    try:
        yield
    finally:
        _HOLDS.reset(token)


class CsvFiles:
    """Files of one header, in any order of its columns. The look that settles the types is made once, here.

    texts: how each file is written. numbers: columns beside the others that are numbers whatever their cells look like:
    weight, offset, exposure. target: months and whole numbers in it are no dates.
    """

    checksummed = False
    is_text = True

    def __init__(
        self, texts: Mapping[str, Text], features: Sequence[str], numbers: Sequence[str], types: Mapping[str, Any],
        bad_rows: int, target: str | None = None,
    ) -> None:  # fmt: skip
        self.paths, self.texts, self.numbers, self.bad_rows = list(texts), dict(texts), list(numbers), bad_rows
        self.target = target
        wanted = [*features, *numbers]
        self.unchanged = Unchanged(self.paths)
        header = texts[self.paths[0]].header
        for path in self.paths[1:]:
            _same_header(path, texts[path].header, self.paths[0], header)
        for name in types:
            refuse_unknown(name, header, repr(self.paths[0]))
        fixed = {name: named_type(name, kind) for name, kind in types.items() if name in wanted}
        self.lenient = {name: kind for name, kind in fixed.items() if isinstance(kind, CellType)}
        self.types = {name: kind.type if isinstance(kind, CellType) else kind for name, kind in fixed.items()}
        self.written: dict[str, CellType] = {}  # columns read as text and converted
        self.decisions: dict[str, Decision] = {}
        self.cells: dict[str, str] = {}  # what an error says about all cells of a column
        self.bad: list[BadRow] = []
        self.rows: list[int] = []
        self.cut: list[str] = []  # files whose last line does not end
        self.missing: dict[str, int] = {}  # empty cells of the columns that can be a target
        self._held: Held | None = None  # rows of the last look, until a pass has taken them
        self._survey([name for name in wanted if name not in fixed])
        self.schema = pa.schema([self._field(name) for name in wanted])
        if self._held is not None and (self.lenient or self.written or not self._held.cast(self.schema)):
            self._held = None  # the parser reads these cells in another way
        self.n_rows = sum(self.rows)
        if not self.n_rows:
            raise ValueError(f"{self.paths[0]!r} has a header and no rows.")

    def _field(self, name: str) -> pa.Field:
        """Name and type of a column, and the word for its reading where the type alone does not tell it."""
        kind = self.lenient.get(name) or self.written.get(name)
        word = "" if kind is None or kind.is_plain else kind.word
        return pa.field(name, self.types[name], metadata={READING: word} if word else None)

    @property
    def skipped(self) -> int:
        """How many rows were skipped."""
        return len(self.bad)

    @property
    def notes(self) -> list[str]:
        """What a report should say."""
        notes = [note for text in self.texts.values() for note in text.notes]
        notes += [f"{path!r} does not end with a line break: its last row may be cut." for path in self.cut]
        for name, decision in self.decisions.items():
            if decision.note:
                notes.append(f"Column {name!r} {decision.note.replace('COLUMN', repr(name))}.")
        zoned = [name for name, kind in self.types.items() if pa.types.is_timestamp(kind) and kind.tz]
        notes += [f"Column {name!r} {_IN_UTC}." for name in zoned]
        if self.bad:
            what = [f"{self._where(bad)}: {bad.what}" for bad in self.bad[:3]]
            plural = "row was" if len(self.bad) == 1 else "rows were"
            notes.append(f"{len(self.bad)} bad {plural} skipped. " + "; ".join(what) + ".")
        return notes

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """All rows of these columns. A column whose bad cells are skipped is always read, so rows stay the same."""
        types = self._read_as({name: self.types[name] for name in dict.fromkeys([*columns, *self.lenient])})
        schema = pa.schema([self.schema.field(name) for name in columns])
        held, self._held = self._held, None
        if held is not None:
            yield from (batch.select(list(columns)).cast(schema) for batch in held.taken())
            return
        bad = Skipped(self.bad_rows)
        for path in self.paths:
            read = 0
            with closing(self._read(path, types, bad)) as batches:
                for batch in batches:
                    kept = self._kept(batch, path, read, bad)
                    read += batch.num_rows
                    if kept.num_rows:
                        yield kept.select(list(columns)).cast(schema)

    def place(self, row: int) -> str:
        """Where a row stands: its line."""
        for path, n_rows in zip(self.paths, self.rows, strict=True):
            if row < n_rows:
                number = _numbered(row, [bad.number for bad in self.bad if bad.path == path])
                return f"{line_of(path, number, self.texts[path])} of {path!r}"
            row -= n_rows
        return f"row {row}"

    def _survey(self, unknown: list[str]) -> None:
        """Settle the types, then count rows and bad rows: one pass, more only where the first block misleads."""
        types = {**self.types, **self._first_block(unknown)}
        while True:
            try:
                looks = self._count(types, [name for name in unknown if types[name] == pa.string()])
                break
            except _BadCell as error:
                if error.column in unknown:
                    types |= dict.fromkeys(unknown, pa.string())
                elif types[error.column] in OTHERWISE and error.column not in self.lenient:
                    self.lenient[error.column] = self._otherwise(error.column, types)
                elif not self.bad_rows or (kind := kind_of(types[error.column])) is None:
                    raise
                else:
                    self.lenient[error.column] = kind
        self._decide(looks)
        if any(decision.kind is COMMA for decision in self.decisions.values()):
            self._look_again(
                [name for name in unknown if self.types[name] == pa.float64() and name not in self.written]
            )
        if self.lenient and unknown:
            self._count(self.types, [])

    def _otherwise(self, name: str, types: dict[str, pa.DataType]) -> CellType:
        """How the cells of a column are written that was asked for as numbers or dates, and is not written plainly."""
        look = self._count({**types, name: pa.string()}, [name])[name]
        look.count()
        return max(OTHERWISE[types[name]], key=lambda kind: look.of_kind[KINDS.index(kind)])

    def _first_block(self, unknown: list[str]) -> dict[str, pa.DataType]:
        path, known = self.paths[0], {name: pa.string() for name in self.types}
        if any(text.is_spaced for text in self.texts.values()):
            return dict.fromkeys(unknown, pa.string())
        try:
            with Reader(path, self.texts[path], known, [*known, *unknown], Skipped(1 << 62)) as reader:
                types = {name: reader.schema.field(name).type for name in unknown}
        except UnicodeError as error:
            raise self._undecodable(path) from error
        except (pa.ArrowException, OSError) as error:
            raise self._explained(error, path, known, Skipped(0)) from error
        return {name: inferred(kind) for name, kind in types.items()}

    def _count(self, types: dict[str, pa.DataType], undecided: list[str], in_doubt: bool = False) -> dict[str, Look]:
        """One pass: rows, bad rows, and what the cells of the undecided columns are."""
        self.types, self.rows, self.cut, self.missing = types, [], [], dict.fromkeys(types, 0)
        bad = Skipped(self.bad_rows)
        self._held = Held(memory_limit()) if _HOLDS.get() else None
        looks = {name: Look(in_doubt) for name in undecided}
        for path in self.paths:
            read = kept = 0
            with closing(self._read(path, self._read_as(types), bad)) as batches:
                for batch in batches:
                    for name, look in looks.items():
                        look.add(batch.column(name))
                    rows = self._kept(batch, path, read, bad)
                    for name in types:
                        self.missing[name] += rows.column(name).null_count
                    if self._held is not None and not self._held.add(rows):
                        self._held = None
                    kept += rows.num_rows
                    read += batch.num_rows
            self.rows.append(kept)
        self.bad = bad.rows
        return looks

    def _decide(self, looks: dict[str, Look], prefers_comma: bool | None = None) -> None:
        """Give columns read as text the type of their cells. prefers_comma: None where the columns themselves tell."""
        decide = {
            name: partial(look.decide, name in self.numbers, may_be_month=name != self.target)
            for name, look in looks.items()
        }
        if prefers_comma is None:
            sure = [decision for each in decide.values() if (decision := each()).rival is None]
            commas, points = (sum(decision.kind is kind for decision in sure) for kind in (COMMA, POINT))
            delimiter = self.texts[self.paths[0]].delimiter
            prefers_comma = commas > 0 or (delimiter == ";" and not points and pa.float64() not in self.types.values())
        for name, each in decide.items():
            decision = self.decisions[name] = each(prefers_comma)
            self._take(name, decision, looks[name].n_cells)

    def _take(self, name: str, decision: Decision, n_cells: int) -> None:
        kind = decision.kind
        self.types[name] = pa.string() if kind is None else kind.type
        if kind is None:
            return
        if decision.bad_cells:
            self.lenient[name] = kind
            self.cells[name] = f"{decision.bad_cells:,} of {n_cells:,} cells of this column are not {kind.plural}"
        elif not kind.is_plain or (self.is_spaced and kind.type != pa.null()):
            self.written[name] = kind

    def _look_again(self, names: list[str]) -> None:
        """Numbers with a point, in files whose other numbers have a decimal comma: 1.234 may be 1234."""
        if names:
            looks = self._count({**self.types, **dict.fromkeys(names, pa.string())}, names, in_doubt=True)
            self._decide(looks, prefers_comma=True)

    @property
    def is_spaced(self) -> bool:
        """Whether cells have spaces about them."""
        return any(text.is_spaced for text in self.texts.values())

    def _read_as(self, types: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
        as_text = self.is_spaced
        return {
            name: pa.string() if as_text or name in self.lenient or name in self.written else kind
            for name, kind in types.items()
        }

    def _read(self, path: str, types: dict[str, pa.DataType], bad: Skipped) -> Generator[pa.RecordBatch, None, None]:
        self.unchanged.check(path)
        try:
            with Reader(path, self.texts[path], types, list(types), bad) as reader:
                if self.is_spaced:
                    yield from map(self._trimmed, reader.batches())
                else:
                    yield from reader.batches()
                if not reader.ended:
                    line = line_of(path, last_number(path, self.texts[path]), self.texts[path])
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
                is_alone = list(wrong.values()).count(name) == 1
                raise ValueError(self._too_many(bad_row, self.cells.get(name, ""), is_alone))
        if wrong:
            batch = batch.filter(pa.array([row not in wrong for row in range(batch.num_rows)]))
        kinds = self.lenient | self.written
        if not kinds:
            return batch
        arrays = {  # a batch in which one column is replaced at a time would be made of all columns for each
            name: self._converted(name, kinds[name], column) if name in kinds else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        }
        return pa.RecordBatch.from_pydict(arrays)

    def _converted(self, name: str, kind: CellType, column: pa.Array) -> pa.Array:
        try:
            return kind.converted(column)
        except pa.ArrowInvalid as error:  # the 30th of February
            what = privacy.cell(str(error))
            raise ValueError(
                f"Column {name!r} has a cell that is not {kind.article}: {what}. Mend the file."
            ) from error

    def _trimmed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Text without the spaces and quotes about it; what then means no value is none."""
        none = pa.array([*MISSING, *self.texts[self.paths[0]].missing])
        columns = []
        for column in batch.columns:
            text = pc.replace_substring_regex(pc.utf8_trim_whitespace(column), '^"(.*)"$', r"\1")
            columns.append(pc.if_else(pc.is_in(text, value_set=none), pa.scalar(None, text.type), text))
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def _explained(self, error: Exception, path: str, types: Mapping[str, Any], bad: Skipped) -> Exception:
        """The error of the parser in words, with its line."""
        said = str(error)
        if isinstance(error, MemoryError):
            return refused_memory(path, error)
        if bad.refused is not None or "columns, got" in said:  # of a row that Arrow cannot decode nobody is told
            return self._undecodable(path) if bad.refused is None else ValueError(self._too_many(bad.refused))
        if match := _CELL_ERROR.search(said):
            return self._bad_cell(path, types, int(match[1]), int(match[2] or 0), match[3])
        if "cannot infer number of columns" in said:
            return ValueError(f"{path!r} has a header and no rows.")
        if "straddl" in said or "out of sync" in said:
            line = line_of(path, last_number(path, self.texts[path]), self.texts[path])
            return ValueError(
                f"{path!r}: a row near {line} is longer than {self.texts[path].block:,} bytes. A quote may be missing."
            )
        return ValueError(f"{path!r} is cut or not a readable CSV file: {said.strip()}")

    def _undecodable(self, path: str) -> ValueError:
        line = undecodable_line(path, self.texts[path])
        where = f"{path!r}" if line is None else f"{path!r}, line {line},"
        return Undecodable(f"{where} has bytes that are not {self.texts[path].encoding} text. {SAVE_AS_UTF8}")

    def _bad_cell(self, path: str, types: Mapping[str, Any], column: int, number: int, said: str) -> ValueError:
        name, where = self.texts[path].header[column], f"{path!r}, {line_of(path, number, self.texts[path])}"
        if "UTF8" in said:
            encoding = self.texts[path].encoding
            return Undecodable(f"{where}: column {name!r} has bytes that are not {encoding} text. {SAVE_AS_UTF8}")
        wrong = privacy.cell(said.removeprefix("invalid value "))
        what = f"column {name!r} is {wrong}, not {article(types.get(name))}"
        advice = f"Mend the file, name a sign for no value in missing=, or pass types={{{name!r}: 'text'}}."
        return _BadCell(f"{where}: {what}. {advice}", name)

    def _where(self, bad: BadRow) -> str:
        return f"{bad.path!r}, {line_of(bad.path, bad.number, self.texts[bad.path])}"

    def _too_many(self, bad: BadRow, about: str = "", is_alone: bool = True) -> str:
        """Why no more rows are skipped. is_alone: the rows near it are not bad in the same way."""
        more = f" {about}." if about else ""
        limit = f"bad_rows={self.bad_rows} are used up. " if self.bad_rows else ""
        advice = "Mend the file, or pass bad_rows= to skip that many such rows."
        if about:
            advice += " A sign for no value can be named in missing=, text in types={column: 'text'}."
        if bad.number == _FIRST_ROW and is_alone and not self.bad_rows:
            advice += (
                " If this line, the first below the names, holds units or a second header: bad_rows=1 leaves it out."
            )
        elif not self.bad_rows and (n_last := self._n_behind(bad)) <= _MOST_BELOW:
            advice += f" If a total or footnotes end the file: bad_rows={n_last} leaves them out."
        return f"{self._where(bad)}: {bad.what}.{more} {limit}{advice}"

    def _n_behind(self, bad: BadRow) -> int:
        """How many rows a file has from a bad one on."""
        return last_number(bad.path, self.texts[bad.path]) - bad.number + 1


class Held:
    """Rows of a look within a limit of bytes."""

    def __init__(self, limit: float) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.left = limit

    def add(self, batch: pa.RecordBatch) -> bool:
        """Hold the rows of a batch; whether there was room for them."""
        self.left -= batch.nbytes
        if batch.num_rows:
            self.batches.append(batch)
        return self.left >= 0

    def cast(self, schema: pa.Schema) -> bool:
        """Give columns that were looked at as text their types; whether that is what the parser would have read."""
        read = self.batches[0].schema if self.batches else schema
        others = [field for field in schema if read.field(field.name).type != field.type]
        if any(read.field(field.name).type != pa.string() or field.type not in _AS_PARSED for field in others):
            return False
        types = {field.name: field.type for field in others}
        try:
            for k, batch in enumerate(self.batches):
                named = zip(batch.schema.names, batch.columns, strict=True)
                arrays = {name: _parsed(column, types[name]) if name in types else column for name, column in named}
                self.batches[k] = pa.RecordBatch.from_pydict(arrays)
        except pa.ArrowInvalid:
            return False
        return True

    def taken(self) -> Iterator[pa.RecordBatch]:
        """The batches, each let go of as the next one is asked for."""
        while self.batches:
            yield self.batches.pop(0)


def _parsed(text: pa.Array, kind: pa.DataType) -> pa.Array:
    return pa.nulls(len(text)) if kind == pa.null() else text.cast(kind)


_AS_PARSED = (pa.int64(), pa.float64(), pa.null())  # types that a cast of text reads as the parser does
_FIRST_ROW = 2  # its number, counted from 1 with the header
_MOST_BELOW = 10  # lines below the rows of a table
_IN_UTC = "has times of time zones, read in UTC: so are its hours, weekdays and months"
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


def _numbered(row: int, skipped: Sequence[int]) -> int:
    """The number in its file of row `row`, counted from 0 without the skipped ones."""
    number = row + 2
    for skipped_row in sorted(skipped):
        number += skipped_row <= number
    return number
