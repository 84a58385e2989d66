"""One pass over one CSV file, and where its rows stand.

pyarrow parses. It numbers the rows of a file from 1, the header, and skips blank lines; `line_of` turns such a number
into a line. A last row of too many cells is put behind the end of every file: it goes missing where the file ends
inside a quoted cell, which the parser accepts.
"""

from __future__ import annotations

import contextlib
import csv
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from time import monotonic, sleep

import pyarrow as pa
import pyarrow.csv as arrow_csv

from certifit.data.formats.csv_text import MISSING, MOMENT, STEP, Bytes, Text, lines
from certifit.data.privacy import cell

END = "certifit: end of file"


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
        self.file = Bytes(path, "\n" + text.delimiter * len(text.header) + END + "\n", text.encoding, text.top)
        convert = arrow_csv.ConvertOptions(
            column_types=dict(types), include_columns=list(columns), strings_can_be_null=True,
            null_values=[*MISSING, *text.missing],
        )  # fmt: skip
        parse = arrow_csv.ParseOptions(
            delimiter=text.delimiter, newlines_in_values=True, invalid_row_handler=self._invalid
        )
        self.holders = sys.getrefcount(self.file)  # those of this reader; one more is Arrow
        # One thread: only then does an error carry the number of the row. It costs no time here.
        read = arrow_csv.ReadOptions(use_threads=False, block_size=text.block, encoding=text.encoding)
        try:
            self.arrow = arrow_csv.open_csv(self.file, read, parse, convert)
        except BaseException:  # a bad cell in the first block; later blocks are being read
            self.file.settle()
            self.file.close()
            raise
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
        # Arrow reads ahead in a thread of its own. Left alone at an early end, it may be reading while the process
        # exits, which then never ends: the file ends here, and what Arrow has asked for is waited for.
        self.file.stop()
        with contextlib.suppress(pa.ArrowException, OSError, UnicodeError):
            for _ in self.arrow:
                pass
        if not self.file.is_over:  # after an error Arrow gives nothing more, and reads on
            self.file.settle()
        self.arrow.close()
        del self.arrow
        self._wait_for_arrow()
        self.file.close()

    def _wait_for_arrow(self) -> None:
        """Until Arrow's thread has let go of the file, for which it takes the interpreter's lock.

        A process that ends before that is aborted. For a moment only; mostly it is done already.
        """
        latest = monotonic() + MOMENT
        while sys.getrefcount(self.file) > self.holders and monotonic() < latest:
            sleep(STEP)

    def _invalid(self, row: arrow_csv.InvalidRow) -> str:
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
    count, line, begin = 0 if text.has_header else 1, None, text.above + 1
    try:
        with lines(path, text.encoding) as opened:
            reader = csv.reader(islice(opened, text.above, None), delimiter=text.delimiter)
            for cells in reader:
                if cells:
                    count, line = count + 1, begin
                    if count == number:
                        return count, line
                begin = text.above + reader.line_num + 1
    except (csv.Error, OSError, ValueError):
        return count + 1, begin
    return count, None if number is not None else line


def undecodable_line(path: str, text: Text) -> int | None:
    """The first line that the encoding does not know; None where its lines are not told apart by a byte."""
    if text.encoding.lower().replace("_", "-").startswith(("utf-16", "utf-32")):
        return None
    with io.BufferedReader(Bytes(path, "", text.encoding)) as opened:
        for number, line in enumerate(opened, 1):
            try:
                line.decode(text.encoding)
            except UnicodeError:
                return number
    return None


def short(text: str) -> str:
    """Text of a file as an error shows it, where it may."""
    text = text.strip("\r\n")
    return cell(repr(text if len(text) <= 60 else text[:57] + "..."))
