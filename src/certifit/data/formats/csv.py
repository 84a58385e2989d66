"""CSV files: rows in constant memory, every fault with its line.

pyarrow parses. It numbers the rows of a file from 1, the header, and skips blank lines; `line_of` turns such a number
into a line. A last row of too many cells is put behind the end of every file: it goes missing where the file ends
inside a quoted cell, which the parser accepts.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from certifit.data.formats import csv_types
from certifit.data.formats.paths import Unchanged
from certifit.data.roles import refuse_unknown

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "-NaN", "null", "NULL")
_BLOCK = 1 << 20
_END = "certifit: end of file"


@dataclass(frozen=True)
class Text:
    """How the text is written: delimiter, encoding, what a missing value looks like, and the header."""

    delimiter: str
    encoding: str
    missing: tuple[str, ...]
    header: tuple[str, ...]

    @staticmethod
    def of(path: str, delimiter: str | None, encoding: str, missing: tuple[str, ...]) -> Text:
        """Read from the first line of a file."""
        with _opened(path) as file:
            start = file.read(4)
        if start[:2] in (b"\xff\xfe", b"\xfe\xff") and encoding == "utf8":
            raise ValueError(f"{path!r} is UTF-16 text. Save it as UTF-8.")
        if start[:4] == b"PAR1":
            raise ValueError(f"{path!r} is a Parquet file. Use scan_parquet.")
        if delimiter is not None and len(delimiter) != 1:
            raise ValueError(f"delimiter must be one character, such as ',' or ';'. Got {delimiter!r}.")
        try:
            found = delimiter or _sniffed(path, encoding)
            header = next((row for row in csv.reader(_lines(path, encoding), delimiter=found) if row), None)
        except (csv.Error, EOFError, OSError) as error:
            raise ValueError(f"{path!r} is not a readable CSV file: {error}.") from error
        if header is None:
            raise ValueError(f"{path!r} is empty. A CSV file begins with a line of column names.")
        if any("\udc80" <= letter <= "\udcff" for name in header for letter in name):
            raise ValueError(f"{path!r}: the header is not {encoding} text. Pass encoding=, such as 'latin1'.")
        repeated = sorted({name for name in header if header.count(name) > 1})
        if repeated:
            raise ValueError(f"{path!r} has more than one column named {repeated}. Rename them.")
        return Text(found, encoding, missing, tuple(header))


class CsvFiles:
    """Files of one header, in order. The look at all rows that settles the types is made once, here.

    numbers: columns beside the features that are numbers whatever their cells look like: the target, the weight.
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
        fixed = {name: csv_types.named_type(name, kind) for name, kind in types.items()}
        self.types = {name: fixed[name] for name in wanted if name in fixed}
        self.lenient: dict[str, csv_types.Kind] = {}  # columns read as text, whose bad cells are bad rows
        self.cells: dict[str, str] = {}  # what an error says about all cells of a column
        self.bad: list[_BadRow] = []
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
        bad = _Skipped(self.bad_rows)
        for path in self.paths:
            self.unchanged.check(path)
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
                return f"{_line(path, number, self.text)} of {path!r}"
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
                elif not self.bad_rows or (kind := csv_types.kind_of(types[error.column])) is None:
                    raise
                else:
                    self.lenient[error.column] = kind
        if self._decide(counts):
            self._count(self.types, [])

    def _first_block(self, unknown: list[str]) -> dict[str, pa.DataType]:
        path, known = self.paths[0], {name: pa.string() for name in self.types}
        try:
            with _Reader(path, self.text, known, [*known, *unknown], _Skipped(1 << 62)) as reader:
                found = {name: reader.schema.field(name).type for name in unknown}
        except (pa.ArrowException, OSError) as error:
            raise self._explained(error, path, known, _Skipped(0)) from error
        return {name: csv_types.inferred(kind) for name, kind in found.items()}

    def _count(self, types: dict[str, pa.DataType], undecided: list[str]) -> dict[str, csv_types.Counts]:
        """One pass: rows, bad rows, and what the cells of the undecided columns are."""
        self.types, self.rows, self.cut = types, [], []
        bad = _Skipped(self.bad_rows)
        counts = {name: csv_types.Counts() for name in undecided}
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

    def _decide(self, counts: dict[str, csv_types.Counts]) -> bool:
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

    def _read(self, path: str, types: dict[str, pa.DataType], bad: _Skipped) -> Iterator[pa.RecordBatch]:
        try:
            with _Reader(path, self.text, types, list(types), bad) as reader:
                yield from reader.batches()
                if not reader.ended:
                    line = _line(path, _last_number(path, self.text), self.text)
                    raise ValueError(
                        f"{path!r}: a quoted cell of the row at {line} is not closed before the end of the file. "
                        "The file is cut, or a quote is missing."
                    )
                if not reader.complete and path not in self.cut:
                    self.cut.append(path)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self._explained(error, path, types, bad) from error

    def _kept(self, batch: pa.RecordBatch, path: str, read: int, bad: _Skipped) -> pa.RecordBatch:
        """The batch without rows that hold a bad cell, its lenient columns converted."""
        wrong: dict[int, str] = {}  # row -> column
        for name, kind in self.lenient.items():
            for row in kind.mismatches(batch.column(name)):
                wrong.setdefault(row, name)
        before = [one.number for one in bad.rows if one.path == path and not one.parsed]
        for row in sorted(wrong):
            name = wrong[row]
            cell = _short(batch.column(name)[row].as_py())
            what = f"column {name!r} is {cell}, not {self.lenient[name].article}"
            one = _BadRow(path, _numbered(read + row, before), what, parsed=True)
            if not bad.take(one):
                raise ValueError(self._too_many(one, self.cells.get(name, "")))
        if wrong:
            batch = batch.filter(pa.array([row not in wrong for row in range(batch.num_rows)]))
        for name, kind in self.lenient.items():
            at = batch.schema.get_field_index(name)
            batch = batch.set_column(at, name, kind.converted(batch.column(at)))
        return batch

    def _explained(self, error: Exception, path: str, types: dict[str, Any], bad: _Skipped) -> Exception:
        """The error of the parser in words, with its line."""
        if bad.refused is not None:
            return ValueError(self._too_many(bad.refused))
        said = str(error)
        found = re.search(
            r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to ([\w\[\], ]+): (.*)", said, re.S
        )
        if found:
            column, number = self.text.header[int(found[1])], int(found[2] or 0)
            where = f"{path!r}, {_line(path, number, self.text)}"
            if "UTF8" in found[4]:
                advice = "Save the file as UTF-8, or pass encoding=, such as 'latin1'."
                return ValueError(
                    f"{where}: column {column!r} has bytes that are not {self.text.encoding} text. {advice}"
                )
            value = found[4].removeprefix("invalid value ")
            wants = csv_types.article(types.get(column))
            return _BadCell(
                f"{where}: column {column!r} is {value}, not {wants}. {_CELL_ADVICE.format(column)}", column
            )
        if isinstance(error, UnicodeDecodeError):
            return ValueError(f"{path!r} is not {self.text.encoding} text: {error.reason} at byte {error.start}.")
        if "cannot infer number of columns" in said:
            return ValueError(f"{path!r} has a header and no rows.")
        if "straddl" in said or "out of sync" in said:
            line = _line(path, _last_number(path, self.text), self.text)
            return ValueError(f"{path!r}: a row near {line} is longer than {_BLOCK:,} bytes. A quote may be missing.")
        return ValueError(f"{path!r} is cut or not a readable CSV file: {said.strip()}")

    def _where(self, bad: _BadRow) -> str:
        return f"{bad.path!r}, {_line(bad.path, bad.number, self.text)}"

    def _too_many(self, bad: _BadRow, about: str = "") -> str:
        more = f" {about}." if about else ""
        limit = f"bad_rows={self.bad_rows} are used up. " if self.bad_rows else ""
        advice = "Mend the file, or pass bad_rows= to skip that many such rows."
        if about:
            advice += " A sign for no value can be named in missing=, text in types={column: 'text'}."
        return f"{self._where(bad)}: {bad.what}.{more} {limit}{advice}"


_CELL_ADVICE = "Mend the file, name a sign for no value in missing=, or pass types={{{0!r}: 'text'}}."


class _BadCell(ValueError):
    def __init__(self, message: str, column: str) -> None:
        super().__init__(message)
        self.column = column


@dataclass(frozen=True)
class _BadRow:
    path: str
    number: int  # of the row in its file; the header is 1
    what: str
    parsed: bool = False  # it has the right number of cells, and a bad one


@dataclass
class _Skipped:
    """Bad rows of one pass, up to a limit."""

    limit: int
    rows: list[_BadRow] = field(default_factory=list)
    refused: _BadRow | None = None

    def take(self, row: _BadRow) -> bool:
        if len(self.rows) < self.limit:
            self.rows.append(row)
            return True
        self.refused = self.refused or row
        return False


class _Reader:
    """One pass over one file."""

    def __init__(
        self, path: str, text: Text, types: Mapping[str, pa.DataType], columns: Sequence[str], bad: _Skipped
    ) -> None:
        self.path, self.text, self.bad = path, text, bad
        self.ended = False
        self.file = _WithEnd(path, "\n" + text.delimiter * len(text.header) + _END + "\n", text.encoding)
        convert = arrow_csv.ConvertOptions(
            column_types=dict(types), include_columns=list(columns), strings_can_be_null=True,
            null_values=[*MISSING, *text.missing],
        )  # fmt: skip
        parse = arrow_csv.ParseOptions(
            delimiter=text.delimiter, newlines_in_values=True, invalid_row_handler=self._invalid
        )
        # One thread: only then does an error carry the number of the row. It costs no time here.
        read = arrow_csv.ReadOptions(use_threads=False, block_size=_BLOCK, encoding=text.encoding)
        self.arrow = arrow_csv.open_csv(self.file, read, parse, convert)
        self.schema = self.arrow.schema

    @property
    def complete(self) -> bool:
        """Whether the last line ends with a line break."""
        return self.file.last in b"\r\n"

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from self.arrow

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.arrow.close()
        self.file.close()

    def _invalid(self, row: Any) -> str:
        if row.actual_columns == len(self.text.header) + 1 and row.text.endswith(_END):
            self.ended = True
            return "skip"
        cells = "1 cell" if row.actual_columns == 1 else f"{row.actual_columns} cells"
        what = f"{cells}, but the header has {row.expected_columns}: {_short(row.text)}"
        return "skip" if self.bad.take(_BadRow(self.path, row.number, what)) else "error"


class _WithEnd(io.RawIOBase):
    """The bytes of a file, decompressed, and a last line behind them."""

    def __init__(self, path: str, end: str, encoding: str) -> None:
        super().__init__()
        self.inner = _opened(path)
        self.end = end.encode(encoding)
        self.last = b"\n"

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.inner is None:
            return 0
        data = self.inner.read(len(buffer))
        if data:
            self.last = data[-1:]
        else:
            self.inner.close()
            self.inner, data = None, self.end
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if self.inner is not None:
            self.inner.close()
        super().close()


def _opened(path: str) -> Any:
    try:
        return pa.input_stream(path, compression="detect")
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path!r} could not be read: {getattr(error, 'strerror', None) or error}.") from error


def _lines(path: str, encoding: str) -> io.TextIOWrapper:
    with_mark = "utf-8-sig" if encoding == "utf8" else encoding
    raw = io.BufferedReader(_WithEnd(path, "", encoding))
    return io.TextIOWrapper(raw, encoding=with_mark, errors="surrogateescape", newline="")


def _sniffed(path: str, encoding: str) -> str:
    """The delimiter that parts the header into most cells."""
    with _lines(path, encoding) as lines:
        first = next((line for line in lines if line.strip()), "")
    bare = re.sub(r'"[^"]*"', "", first)
    return max(",;\t|", key=bare.count)


def _same_header(path: str, header: Sequence[str], first: str, expected: Sequence[str]) -> None:
    missing = [name for name in expected if name not in header]
    extra = [name for name in header if name not in expected]
    if missing or extra:
        what = f"lacks column {missing[0]!r}" if missing else f"has a column {extra[0]!r}"
        raise ValueError(f"{path!r} {what}, unlike {first!r}. All files of a scan need the same header.")
    if list(header) != list(expected):
        raise ValueError(f"{path!r} has its columns in another order than {first!r}. Make the headers equal.")


def _numbered(row: int, skipped: Sequence[int]) -> int:
    """The number in its file of row `row`, counted from 0 without the skipped ones."""
    number = row + 2
    for one in sorted(skipped):
        number += one <= number
    return number


def _line(path: str, number: int, text: Text) -> str:
    """Where row `number` of a file begins: "line 17"."""
    line = None if number <= 0 else _records(path, text, number)[1]
    return f"row {number - 1} after the header" if line is None else f"line {line}"


def _last_number(path: str, text: Text) -> int:
    return _records(path, text, None)[0]


def _records(path: str, text: Text, number: int | None) -> tuple[int, int | None]:
    """(number, first line) of row `number`, or of the last row."""
    count, line, begin = 0, None, 1
    try:
        with _lines(path, text.encoding) as lines:
            reader = csv.reader(lines, delimiter=text.delimiter)
            for cells in reader:
                if cells:
                    count, line = count + 1, begin
                    if count == number:
                        return count, line
                begin = reader.line_num + 1
    except (csv.Error, OSError, ValueError):
        return count + 1, begin
    return count, None if number is not None else line


def _short(text: str) -> str:
    text = text.strip("\r\n")
    return repr(text if len(text) <= 60 else text[:57] + "...")
