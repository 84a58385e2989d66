"""How a CSV file is written: its encoding, its delimiter, the lines above its header, its names; and its bytes.

A file whose first lines are not a plain header is read as if they were: `Bytes` puts a line of the names in the place
of comment lines, a title, a missing header or names with spaces about them. Its rows keep their numbers: the header
is row 1.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from threading import RLock
from time import monotonic, sleep
from typing import Any

import pyarrow as pa

from certifit.data.formats.no_csv import refuse_no_csv
from certifit.data.formats.paths import ShownAs, digested
from certifit.data.privacy import are_names, doubt
from certifit.data.roles import repeated_names

# Errors of a spreadsheet's formulas are no values either.
_ERRORS = ("#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!")
MISSING = ("", "NA", "N/A", "n/a", *_ERRORS, "NaN", "nan", "-nan", "-NaN", "null", "NULL")
BLOCK = 1 << 20  # bytes that are parsed at a time; more where a row is long
LARGEST_BLOCK = 1 << 28
LONGEST_LINE = 1 << 26  # bytes: a hole in a file, or zeros that were compressed, else fill the memory
ROWS_OF_BLOCK = 64  # a block costs the parser some microseconds per column: of 100,000 columns, much more than its rows
MOST_ABOVE = 100  # lines above a header
DELIMITERS = ",;\t|"
FIRST_RECORDS = 20  # that are looked at for a second header, and the fewest that tell one
FEWEST_RECORDS = 4
MOMENT, STEP = 0.2, 0.001  # seconds: how long a thread that may be reading is waited for, and between looks at it

# Marks of wide text, the longer first: its encoding, and that of text behind the mark.
_MARKS = {
    b"\xff\xfe\0\0": ("utf-32", "utf-32-le"),
    b"\0\0\xfe\xff": ("utf-32", "utf-32-be"),
    b"\xff\xfe": ("utf-16", "utf-16-le"),
    b"\xfe\xff": ("utf-16", "utf-16-be"),
}


class Undecodable(ValueError):
    """Bytes that are no text of the encoding."""


@dataclass(frozen=True)
class Text:
    """How the text is written. header: the names; top: how many lines they stand for, and the line in their place.

    above: lines before the header. has_header: False where its first row is a row. is_spaced: cells have spaces about
    them. notes: what a report should say.
    """

    delimiter: str
    encoding: str
    missing: tuple[str, ...]
    header: tuple[str, ...]
    above: int = 0
    has_header: bool = True
    is_spaced: bool = False
    top: tuple[int, str] | None = None
    notes: tuple[str, ...] = ()

    @property
    def block(self) -> int:
        """Bytes to parse at a time, of the length of the header: some rows of any number of columns."""
        wanted = ROWS_OF_BLOCK * sum(len(name) + 1 for name in self.header)
        return min(max(BLOCK, wanted), LARGEST_BLOCK)

    @staticmethod
    def of(
        path: str, delimiter: str | None, encoding: str | None, missing: tuple[str, ...], has_header: bool = True
    ) -> Text:
        """Read from the first lines of a file. encoding: None for UTF-8, or what a mark at the start says."""
        start, is_asked = _start(path), encoding is not None
        encoding = _settled_encoding(path, encoding, start)
        refuse_no_csv(path, start)
        if delimiter is not None and len(delimiter) != 1:
            raise ValueError(f"delimiter must be one character, such as ',' or ';'. Got {delimiter!r}.")
        try:
            text = _Top.of(path, delimiter, encoding, has_header).text(missing, has_header)
        except UnicodeError as error:
            raise Undecodable(f"{path!r} is not {encoding} text. Pass another encoding=, such as 'utf8'.") from error
        except (csv.Error, EOFError, OSError) as error:
            raise ValueError(f"{path!r} is not a readable CSV file: {error}.") from error
        if any("\udc80" <= letter <= "\udcff" for name in text.header for letter in name):
            raise Undecodable(f"{path!r}: the header is not {encoding} text. Pass encoding=, such as 'latin1'.")
        if repeated := repeated_names(text.header):
            told = f"named {', '.join(map(repr, repeated))}"
            named = told if are_names(text.header) else "of one name, if its first line is one of names"
            raise ValueError(f"{path!r} has more than one column {named}. Rename them.")
        if encoding in ("utf-16-le", "utf-16-be") and not is_asked:
            note = f"{path!r} was read as UTF-16 text without a byte order mark."
            text = replace(text, notes=(note, *text.notes))
        return text


@dataclass(frozen=True)
class _Top:
    """The first records of a file. lines: how many lines the header ends after; row: the record behind it.

    above: lines before the header, or before the second of two. note: what a report should say of two headers.
    """

    path: str
    encoding: str
    delimiter: str
    above: int
    lines: int
    first: list[str]
    row: list[str]
    is_comment: bool  # the header stands behind a #
    n_comments: int = 0
    note: str = ""
    has_row_names: bool = False  # the rows have a cell more in front, as R writes them

    @staticmethod
    def of(path: str, delimiter: str | None, encoding: str, has_header: bool = True) -> _Top:
        with lines(path, encoding) as opened:
            above, is_comment = _above(list(islice(opened, MOST_ABOVE + 3)), delimiter)
        with lines(path, encoding) as opened:
            for _ in range(above):
                next(opened)
            separator = delimiter or _sniffed(path, encoding, above)
            records, ends = _first_records(csv.reader(opened, delimiter=separator))
        if not records:
            raise ValueError(f"{path!r} is empty. A table begins with a line of column names.")
        row = records[1] if len(records) > 1 else []
        top = _Top(
            path, encoding, separator, above, above + ends[0], records[0], row, is_comment, above,
            has_row_names=has_header and _have_row_names(records),
        )  # fmt: skip
        if not (has_header and _are_two_headers(records)):
            return top
        names, note = _names_of_two(records[0], records[1])
        at = (above + ends[0], above + ends[1])
        note = note.format(path=path, first=at[0], second=at[1])
        return replace(top, above=at[0], lines=at[1], first=names, row=records[2], note=note)

    def text(self, missing: tuple[str, ...], has_header: bool) -> Text:
        """The names, and what stands in their place."""
        is_spaced = self.delimiter != " " and any(cell.startswith(" ") for cell in self.first[1:])
        written = [self.first[0].lstrip("# ") if self.is_comment else self.first[0], *self.first[1:]]
        names = [_bare(name) for name in written] if has_header else [""] * len(written)
        if has_header and len(self.row) == len(names) + 1 and not self.row[-1].strip():
            names.append("")  # a delimiter behind every row but the header
        elif self.has_row_names:
            names.insert(0, self._row_column)
        elif has_header and len(self.row) == len(names) - 1 and not names[-1]:
            names.pop()
        named = tuple(name or f"column{j}" for j, name in enumerate(names, 1))
        if has_header and not _are_names(written, self.row):
            doubt(named)
        is_plain = has_header and not self.above and list(named) == self.first
        line = self.delimiter.join('"' + name.replace('"', '""') + '"' for name in named) + "\n"
        top = None if is_plain else (self.lines if has_header else self.above, line)
        return Text(
            self.delimiter, self.encoding, missing, named, self.above, has_header, is_spaced, top,
            tuple(self._notes(has_header)),
        )  # fmt: skip

    @property
    def _row_column(self) -> str:
        """The name of the column in front of those of the header."""
        return next(name for name in ("row", "row name", "name of the row", "") if name not in self.first)

    def _notes(self, has_header: bool) -> Iterator[str]:
        if isinstance(self.path, ShownAs) and self.path.note:
            yield self.path.note
        if self.n_comments == 1:
            yield f"The first line of {self.path!r} is no row and was left out."
        elif self.n_comments:
            yield f"The first {self.n_comments} lines of {self.path!r} are no rows and were left out."
        if self.has_row_names:
            yield (
                f"The rows of {self.path!r} have one cell more than its header: the first one of each was read as its "
                f"name, column {self._row_column!r}."
            )
        if self.note:
            yield self.note
        if has_header and any(map(_is_number, self.first)):
            yield (
                f"The first line of {self.path!r} was read as the names of its columns, and one of them is a number. "
                "If it is a row: has_header=False."
            )


def _first_records(reader: Any) -> tuple[list[list[str]], list[int]]:
    """The first records that are not blank, and how many lines each of them ends after."""
    records: list[list[str]] = []
    ends: list[int] = []
    try:
        for record in reader:
            if record:
                records.append(record)
                ends.append(reader.line_num)
            if len(records) == FIRST_RECORDS:
                break
    except (csv.Error, OSError):  # a row that no pass can read, either
        if not records:
            raise
    return records, ends


def _have_row_names(records: Sequence[Sequence[str]]) -> bool:
    """Whether all rows have a filled cell more than the header, and not because a delimiter ends each of them."""
    n_cells = len(records[0]) + 1
    rows = records[1:]
    return len(rows) > 1 and all(len(row) == n_cells and row[0].strip() and row[-1].strip() for row in rows)


def _are_two_headers(records: Sequence[Sequence[str]]) -> bool:
    """Whether the second record is no row: it has words, and no number, in columns that hold numbers or dates below.

    Two words at least: one column alone may have a word for no value in its first row.
    """
    if len(records) < FEWEST_RECORDS:
        return False
    second, below = records[1], records[2:]
    if any(len(row) != len(second) for row in below):
        return False
    cells = [[row[j] for row in below if row[j].strip() not in MISSING] for j in range(len(second))]
    figures = [j for j, column in enumerate(cells) if column and all(map(_FIGURE.match, column))]
    words = [word for j in figures if (word := second[j].strip()) not in MISSING]
    return len(words) > 1 and all(not _FIGURE.match(word) and _WORD.search(word) for word in words)


def _names_of_two(first: Sequence[str], second: Sequence[str]) -> tuple[list[str], str]:
    """The names of a file with two headers: those of the line where each has its own, else both joined; and a note."""
    upper, lower = ([_bare(name) for name in names] for names in (first, second))
    if len(upper) == len(lower) and _are_own(upper) and not any(map(_FIGURE.match, upper)):
        return upper, UNITS
    if _are_own(lower):
        return lower, SECOND
    filled = [next((name for name in reversed(upper[: j + 1]) if name), "") for j in range(len(lower))]
    return [" ".join(filter(None, pair)) for pair in zip(filled, lower, strict=True)], JOINED


def _are_own(names: Sequence[str]) -> bool:
    """Whether every column has a name that no other one has."""
    return all(names) and not repeated_names(names)


_FIGURE = re.compile(r"[\s(+\-−$€£¥₹]*\.?\d")
_WORD = re.compile(r"[^\W\d_]|[%°€$£¥₹]")
UNITS = (
    "Line {second} of {path!r} holds words where the rows below it hold numbers or dates (units, or a second header): "
    "it was left out."
)
SECOND = "{path!r} has two headers: names of columns were read from line {second}, and line {first} was left out."
JOINED = "{path!r} has two headers: names of columns were joined from lines {first} and {second}."


def _bare(name: str) -> str:
    """Without spaces and quotes about it."""
    name = name.strip()
    return name[1:-1].strip() if len(name) > 1 and name[0] == name[-1] == '"' else name


def _above(first: Sequence[str], delimiter: str | None) -> tuple[int, bool]:
    """How many of the first lines are no header: comments, and a title without cells. And whether a # begins it."""
    at = 0
    while at < len(first) and (first[at].startswith("#") or not first[at].strip()):
        at += 1
    comments = [k for k in range(at) if first[k].startswith("#")]
    if at >= len(first):
        return 0, False
    if comments:
        last, cells = comments[-1], max((delimiter or DELIMITERS), key=first[at].count)
        is_row = any(_is_number(cell) for cell in first[at].split(cells))
        if is_row and first[last].count(cells) == first[at].count(cells) > 0:
            return last, True
    marks = delimiter or DELIMITERS
    below = [k for k in range(at + 1, len(first)) if first[k].strip(f"{marks}\r\n ")][:2]
    if len(below) == 2 and not any(first[at].strip(f"{marks}\r\n ").count(mark) for mark in marks):
        mark = max(marks, key=first[below[0]].count)
        names, row = (first[k].strip().split(mark) for k in below)
        if len(names) == len(row) > 1 and not any(map(_is_number, names)) and any(map(_is_number, row)):
            return below[0], False
    return (at if comments else 0), False


def _start(path: str) -> bytes:
    """The first bytes, unpacked."""
    with _opened(path) as file:
        try:
            return bytes(file.read(16))
        except OSError as error:  # "zlib inflate failed: incorrect header check": the name alone says it is packed
            advice = "Its name says that it is compressed: rename it if it is not."
            raise ValueError(f"{path!r} is not a readable CSV file: {error}. {advice}") from error


def _settled_encoding(path: str, encoding: str | None, start: bytes) -> str:
    if encoding is None:
        marked = (wide for mark, (wide, _) in _MARKS.items() if start.startswith(mark))
        return next(marked, _wide_without_mark(start) or "utf8")
    _check_encoding(encoding)
    return _known_encoding(path, encoding, start)


def _wide_without_mark(start: bytes) -> str:
    """UTF-16 whose first letters are of Latin script has a 0 in every second byte, and nowhere else."""
    for at, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros, letters = start[at::2], start[1 - at :: 2]
        if len(start) >= 4 and not any(zeros) and all(letters):
            return encoding
    return ""


def _check_encoding(encoding: str) -> None:
    refusal = f"encoding must be the name of one for text in lines, such as 'utf8' or 'latin1'. Got {encoding!r}."
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


def _are_names(header: Sequence[str], row: Sequence[str]) -> bool:
    """Whether the first line is surely one of names: none of them is a number, and a cell of the first row is."""
    return not any(map(_is_number, header)) and any(map(_is_number, row))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class Bytes(io.RawIOBase):
    """The bytes of a file, decompressed, its header in the place of its top, and a last line behind them."""

    def __init__(self, path: str, end: str, encoding: str, top: tuple[int, str] | None = None) -> None:
        super().__init__()
        self.path, self.inner = path, _opened(path)
        self.n_in_line = 0  # bytes of the line that is read
        self.end = end
        self.encoding = encoding  # of what is behind a mark
        self.top = top
        self.ready = b""  # bytes in front of those that are not read yet
        self.is_begun, self.last = False, b""
        self.is_over = False  # a reader was told that there is nothing more
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
        if not self.ready:
            if self.inner is None:
                self.is_over = True
                return 0
            data = self._next(len(buffer))
            if not self.is_begun:
                self.is_begun, data = True, self._begun(data, len(buffer))
            if not data:
                self.inner.close()
                self.inner, data = None, self.end.encode(self.encoding)
            self.ready = data
        n = min(len(buffer), len(self.ready))
        buffer[:n] = self.ready[:n]
        self.ready = self.ready[n:]
        return n

    def _next(self, size: int) -> bytes:
        data = bytes(self.inner.read(size))
        at = max(data.rfind(b"\n"), data.rfind(b"\r"))
        self.n_in_line = len(data) - at - 1 + (self.n_in_line if at < 0 else 0)
        if self.n_in_line > LONGEST_LINE:
            raise ValueError(f"{self.path!r} has a line longer than {LONGEST_LINE:,} bytes. Is it a table?")
        if data:
            self.last = (self.last + data[-4:])[-4:]
            self.digest = digested(data, self.digest)
        return data

    def _begun(self, data: bytes, size: int) -> bytes:
        """The first bytes: their mark is read, their top replaced."""
        marked = ((mark, order) for mark, (wide, order) in _MARKS.items() if wide == self.encoding)
        mark, self.encoding = next((row for row in marked if data.startswith(row[0])), (b"", self.encoding))
        if self.top is None:
            return data
        n_lines, header = self.top
        newline, at, begin = "\n".encode(self.encoding), len(mark), 0
        for _ in range(n_lines):
            begin = at
            while (end := _find(data, newline, begin)) < 0 and (more := self._next(max(size, 1))):
                data += more
            at = len(data) if end < 0 else end + len(newline)
        return mark + header.encode(self.encoding) + data[at:]

    def stop(self) -> None:
        """No bytes from here on, after a read that is under way."""
        with self.lock:
            if self.inner is not None:
                self.inner.close()
                self.inner = None

    def settle(self) -> None:
        """Stop, and let a thread that reads ahead notice it; for a moment, for it may have stopped before."""
        self.stop()
        latest = monotonic() + MOMENT
        while not self.is_over and monotonic() < latest:
            sleep(STEP)
        sleep(STEP)  # the thread lets go of what it had read

    def close(self) -> None:
        """Close the file, after a read that is under way."""
        self.stop()
        super().close()


def _find(data: bytes, newline: bytes, begin: int) -> int:
    """Where a line ends; of wide text only at whole characters."""
    at = data.find(newline, begin)
    while at >= 0 and (at - begin) % len(newline):
        at = data.find(newline, at + 1)
    return at


def _opened(path: str) -> Any:
    try:
        return pa.input_stream(path, compression="detect")
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path!r} could not be read: {getattr(error, 'strerror', None) or error}.") from error


def lines(path: str, encoding: str) -> io.TextIOWrapper:
    """The lines of a file as they are, bytes that are no text among them."""
    with_mark = "utf-8-sig" if encoding == "utf8" else encoding
    raw = io.BufferedReader(Bytes(path, "", encoding))
    return io.TextIOWrapper(raw, encoding=with_mark, errors="surrogateescape", newline="")


def _sniffed(path: str, encoding: str, above: int) -> str:
    """The delimiter that cuts the header into most cells."""
    with lines(path, encoding) as opened:
        first = next((line for line in islice(opened, above, None) if line.strip()), "")
    bare = re.sub(r'"[^"]*"', "", first)
    return max(DELIMITERS, key=bare.count)
