"""One pass over one CSV file, and where its rows stand.

pyarrow parses. It numbers the rows of a file from 1, the header, and skips blank lines; `line_of` turns such a number
into a line. A last row of too many cells is put behind the end of every file: it goes missing where the file ends
inside a quoted cell, which the parser accepts.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from certifit.data.formats.paths import digested
from certifit.data.privacy import are_names, cell, doubt
from certifit.data.roles import repeated_names

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "-NaN", "null", "NULL")
BLOCK = 1 << 20  # bytes that are parsed at a time; more where a row is long
LARGEST_BLOCK = 1 << 28
ROWS_OF_BLOCK = 64  # a block costs the parser some microseconds per column: of 100,000 columns, much more than its rows
END = "certifit: end of file"
# First bytes of files that are no text -> what they are, and what to do.
_NO_TEXT = {
    b"PAR1": "a Parquet file. Use scan_parquet.",
    b"PK\x03\x04": "a zip archive or an Excel workbook, not CSV. Unpack it, or save the sheet as CSV.",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook, not CSV. Save the sheet as CSV.",
    b"\x1f\x8b": "compressed (gzip), and its name hides it. Rename it to end in .csv.gz, or unpack it.",
    b"\x28\xb5\x2f\xfd": "compressed (zstd), and its name hides it. Rename it to end in .csv.zst, or unpack it.",
    b"BZh91AY&SY": "compressed (bzip2), and its name hides it. Rename it to end in .csv.bz2, or unpack it.",
    b"\xfd7zXZ\0": "compressed (xz). Unpack it.",
    b"ARROW1\0": "an Arrow or Feather file, not CSV. Give from_arrow its table, or save it as Parquet.",
    b"%PDF-": "a PDF document, not CSV.",
    b"SQLite format 3\0": "an SQLite database, not CSV. Export a table as CSV.",
}


# Marks of wide text, the longer first: its encoding, and that of text behind the mark.
_MARKS = {
    b"\xff\xfe\0\0": ("utf-32", "utf-32-le"),
    b"\0\0\xfe\xff": ("utf-32", "utf-32-be"),
    b"\xff\xfe": ("utf-16", "utf-16-le"),
    b"\xfe\xff": ("utf-16", "utf-16-be"),
}


@dataclass(frozen=True)
class Text:
    """How the text is written: delimiter, encoding, what a missing value looks like, and the header."""

    delimiter: str
    encoding: str
    missing: tuple[str, ...]
    header: tuple[str, ...]

    @property
    def block(self) -> int:
        """Bytes to parse at a time, of the length of the header: some rows of any number of columns."""
        wanted = ROWS_OF_BLOCK * sum(len(name) + 1 for name in self.header)
        return min(max(BLOCK, wanted), LARGEST_BLOCK)

    @staticmethod
    def of(path: str, delimiter: str | None, encoding: str, missing: tuple[str, ...]) -> Text:
        """Read from the first line of a file."""
        start = _start(path)
        _check_encoding(encoding)
        encoding = _known_encoding(path, encoding, start)
        for signature, advice in _NO_TEXT.items():
            if start.startswith(signature):
                raise ValueError(f"{path!r} is {advice}")
        if delimiter is not None and len(delimiter) != 1:
            raise ValueError(f"delimiter must be one character, such as ',' or ';'. Got {delimiter!r}.")
        try:
            separator = delimiter or _sniffed(path, encoding)
            rows = (row for row in csv.reader(_lines(path, encoding), delimiter=separator) if row)
            header = next(rows, None)
        except UnicodeError as error:
            raise ValueError(f"{path!r} is not {encoding} text. Pass another encoding=, such as 'utf8'.") from error
        except (csv.Error, EOFError, OSError) as error:
            raise ValueError(f"{path!r} is not a readable CSV file: {error}.") from error
        if header is None:
            raise ValueError(f"{path!r} is empty. A CSV file begins with a line of column names.")
        if any("\udc80" <= letter <= "\udcff" for name in header for letter in name):
            raise ValueError(f"{path!r}: the header is not {encoding} text. Pass encoding=, such as 'latin1'.")
        if not _are_names(header, rows):
            doubt(header)
        if repeated := repeated_names(header):
            named = f"named {repeated}" if are_names(header) else "of one name, if its first line is one of names"
            raise ValueError(f"{path!r} has more than one column {named}. Rename them.")
        return Text(separator, encoding, missing, tuple(header))


def _start(path: str) -> bytes:
    """The first bytes, unpacked."""
    with _opened(path) as file:
        try:
            return bytes(file.read(16))
        except OSError as error:  # "zlib inflate failed: incorrect header check": the name alone says it is packed
            advice = "Its name says that it is compressed: rename it if it is not."
            raise ValueError(f"{path!r} is not a readable CSV file: {error}. {advice}") from error


def _check_encoding(encoding: str) -> None:
    refusal = f"encoding must be one of text in lines, such as 'utf8' or 'latin1'. Got {encoding!r}."
    lines = "a,1\r\n" * 50
    try:
        coded, twice = lines.encode(encoding), (lines + lines).encode(encoding)
    except (
        LookupError,
        ValueError,
    ) as error:  # ValueError: a null byte in the name, or lines that 'idna' does not take
        raise ValueError(refusal) from error
    if not twice.startswith(coded) or coded.count(b"\n") != 50:  # 'punycode', 'unicode_escape'
        raise ValueError(refusal)


def _known_encoding(path: str, encoding: str, start: bytes) -> str:
    """The one name of UTF-8 with or without a mark, and of text whose mark tells the order of its bytes."""
    name = codecs.lookup(encoding).name
    marked = next((wide for mark, (wide, _) in _MARKS.items() if start.startswith(mark)), None)
    if name in ("utf-8", "utf-8-sig"):
        if marked is not None:
            raise ValueError(f"{path!r} is {marked.upper()} text. Pass encoding='{marked}', or save it as UTF-8.")
        return "utf8"
    if marked is not None and name.startswith(marked):
        return marked
    if name in ("utf-16", "utf-32"):
        advice = f"Pass encoding='{name}-le' or '{name}-be' if it is such text without a mark, or another one."
        raise ValueError(f"{path!r} does not begin with the byte order mark of {name} text. {advice}")
    return encoding


def _are_names(header: Sequence[str], rows: Iterator[Sequence[str]]) -> bool:
    """Whether the first line is surely one of names: none of them is a number, and a cell of the first row is."""
    try:
        return not any(map(_is_number, header)) and any(map(_is_number, next(rows, ())))
    except (csv.Error, OSError):  # a row that no pass can read, either
        return False


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class BadRow:
    """A row that is skipped, or ends a pass."""

    path: str
    number: int  # of the row in its file; the header is 1
    what: str
    parsed: bool = False  # it has the right number of cells, and a bad one


@dataclass
class Skipped:
    """Bad rows of one pass, up to a limit."""

    limit: int
    rows: list[BadRow] = field(default_factory=list)
    refused: BadRow | None = None

    def take(self, row: BadRow) -> bool:
        """Count a row; whether it may be skipped."""
        if len(self.rows) < self.limit:
            self.rows.append(row)
            return True
        self.refused = self.refused or row
        return False


class Reader:
    """One pass over one file."""

    def __init__(
        self, path: str, text: Text, types: Mapping[str, pa.DataType], columns: Sequence[str], bad: Skipped
    ) -> None:
        self.path, self.text, self.bad = path, text, bad
        self.ended = False
        self.file = _WithEnd(path, "\n" + text.delimiter * len(text.header) + END + "\n", text.encoding)
        convert = arrow_csv.ConvertOptions(
            column_types=dict(types), include_columns=list(columns), strings_can_be_null=True,
            null_values=[*MISSING, *text.missing],
        )  # fmt: skip
        parse = arrow_csv.ParseOptions(
            delimiter=text.delimiter, newlines_in_values=True, invalid_row_handler=self._invalid
        )
        # One thread: only then does an error carry the number of the row. It costs no time here.
        read = arrow_csv.ReadOptions(use_threads=False, block_size=text.block, encoding=text.encoding)
        self.arrow = arrow_csv.open_csv(self.file, read, parse, convert)
        self.schema = self.arrow.schema

    @property
    def complete(self) -> bool:
        """Whether the last line ends with a line break."""
        return self.file.is_complete

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows."""
        yield from self.arrow

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.arrow.close()
        self.file.close()

    def _invalid(self, row: Any) -> str:
        if row.actual_columns == len(self.text.header) + 1 and row.text.endswith(END):
            self.ended = True
            return "skip"
        cells = "1 cell" if row.actual_columns == 1 else f"{row.actual_columns} cells"
        what = f"{cells}, but the header has {row.expected_columns}: {short(row.text)}"
        return "skip" if self.bad.take(BadRow(self.path, row.number, what)) else "error"


def line_of(path: str, number: int, text: Text) -> str:
    """Where row `number` of a file begins: "line 17"."""
    line = None if number <= 0 else _records(path, text, number)[1]
    return f"row {number - 1} after the header" if line is None else f"line {line}"


def last_number(path: str, text: Text) -> int:
    """The number of the last row of a file."""
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


def undecodable_line(path: str, text: Text) -> int | None:
    """The first line that the encoding does not know; None where its lines are not told apart by a byte."""
    if text.encoding.lower().replace("_", "-").startswith(("utf-16", "utf-32")):
        return None
    with io.BufferedReader(_WithEnd(path, "", text.encoding)) as lines:
        for number, line in enumerate(lines, 1):
            try:
                line.decode(text.encoding)
            except UnicodeError:
                return number
    return None


def short(text: str) -> str:
    """Text of a file as an error shows it, where it may."""
    text = text.strip("\r\n")
    return cell(repr(text if len(text) <= 60 else text[:57] + "..."))


class _WithEnd(io.RawIOBase):
    """The bytes of a file, decompressed, and a last line behind them."""

    def __init__(self, path: str, end: str, encoding: str) -> None:
        super().__init__()
        self.inner = _opened(path)
        self.end = end
        self.encoding = encoding  # of what is behind a mark
        self.is_begun, self.last = False, b""
        self.digest = 0  # of what was read so far
        # A pass that ends early closes the file while Arrow's thread may be reading ahead: without the lock the system
        # gives the number of the closed file to the next one, and that thread takes a block of its bytes.
        self.lock = RLock()

    def readable(self) -> bool:
        """Yes."""
        return True

    @property
    def is_complete(self) -> bool:
        """Whether what was read ends with a line break, or is nothing."""
        return not self.last or any(self.last.endswith(end.encode(self.encoding)) for end in "\r\n")

    def readinto(self, buffer: Any) -> int:
        """The next bytes."""
        with self.lock:
            return self._read_into(buffer)

    def _read_into(self, buffer: Any) -> int:
        if self.inner is None:
            return 0
        data = self.inner.read(len(buffer))
        if not self.is_begun:
            self.is_begun = True
            marked = (
                order for mark, (wide, order) in _MARKS.items() if wide == self.encoding and data.startswith(mark)
            )
            self.encoding = next(marked, self.encoding)
        if data:
            self.last = (self.last + data[-4:])[-4:]
            self.digest = digested(data, self.digest)
        else:
            self.inner.close()
            self.inner, data = None, self.end.encode(self.encoding)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the file, after a read that is under way."""
        with self.lock:
            if self.inner is not None:
                self.inner.close()
                self.inner = None
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
