"""Files as sources of rows, read in constant memory: CSV, Parquet, svmlight; and predictions written to one.

A scan can be read any number of times, and refuses files that change in between.

`refuse_unwritable` tries whether something can be written at a place: permissions do not tell of read-only disks.
"""

from __future__ import annotations

import contextlib
import csv as csv_text
import io
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from certifit.data.arrow import ArrowSource, rebatched
from certifit.data.columns import Array
from certifit.data.formats.paths import listed
from certifit.data.privacy import harmless, harmless_label, visible
from certifit.data.roles import Roles, features
from certifit.data.source import Batches
from certifit.runtime import check_memory

AnyPath = str | PathLike[str]
Item = TypeVar("Item")

_BATCH_ROWS = 65_536
_COLUMN_BYTES = 160  # memory that every model needs per column: its name, and some ten numbers


def scan_csv(
    path: AnyPath | Sequence[AnyPath],
    target: str | None = None,
    weight: str | None = None,
    columns: Sequence[str] | None = None,
    *,
    types: Mapping[str, Any] | None = None,
    missing: Sequence[str] = (),
    bad_rows: int = 0,
    delimiter: str | None = None,
    encoding: str = "utf8",
    group: str | None = None,
    offset: str | None = None,
    exposure: str | None = None,
) -> FileSource:
    """CSV with a header line, to give to `fit` or `predict`: a file, a glob, a folder, a list; .gz and .zst too.

    target, weight: the columns that hold y and the sample weight. columns: the features; default all others.
    types: {column: "number", "text", "date" or "flag"}. Types that are not given are settled here by one look at all
    rows: a column of which more than 9 in 10 filled cells are numbers (dates, flags) is one, and its other cells are
    errors; else it is text. missing: cells that mean no value, beside empty ones and NA, NaN, N/A, null.
    bad_rows: how many rows with too few or too many cells, or with a cell of another type, may be skipped and counted
    in `skipped`. delimiter: found from the header line by default.
    group: the column whose equal values cross-validation keeps in one fold (a customer, a patient).
    offset: the column that is added to the score of a row. exposure: a column > 0 (time, people) whose log is added.
    """
    from certifit.data.formats.csv import CsvFiles, Text

    if not isinstance(bad_rows, int) or bad_rows < 0:
        raise ValueError(f"bad_rows must be a whole number >= 0. Got {bad_rows!r}.")
    paths = listed(path, (".csv", ".tsv", ".csv.gz", ".csv.zst", ".tsv.gz", ".tsv.zst"))
    text = Text.of(paths[0], delimiter, encoding, tuple(missing))
    roles = Roles(target, weight, group, offset, exposure)
    chosen = features(text.header, roles, columns, repr(paths[0]))
    numbers = [name for name in (weight, offset, exposure) if name is not None]
    read = [*chosen, *(name for name in (group, target) if name is not None)]
    return FileSource(CsvFiles(paths, text, read, numbers, types or {}, bad_rows), roles, chosen)


def scan_parquet(
    path: AnyPath | Sequence[AnyPath],
    target: str | None = None,
    weight: str | None = None,
    columns: Sequence[str] | None = None,
    *,
    group: str | None = None,
    offset: str | None = None,
    exposure: str | None = None,
) -> FileSource:
    """Parquet to give to `fit` or `predict`: a file, a glob, a folder, a list. Only the footers are read here.

    target, weight: the columns that hold y and the sample weight. columns: the features; default all others.
    group: the column whose equal values cross-validation keeps in one fold (a customer, a patient).
    offset: the column that is added to the score of a row. exposure: a column > 0 (time, people) whose log is added.
    Page checksums are verified on every pass; `checksummed` says whether the files have them.
    """
    from certifit.data.formats.parquet import ParquetFiles

    files = ParquetFiles(listed(path, (".parquet", ".pq")))
    roles = Roles(target, weight, group, offset, exposure)
    return FileSource(files, roles, features(files.schema.names, roles, columns, repr(files.paths[0])))


def scan_svmlight(path: AnyPath, *, zero_based: bool = False, n_features: int | None = None) -> Batches:
    """Sparse rows of svmlight (libsvm) text, `label index:value index:value ...`; .gz too.

    zero_based: whether the first column is 0 in the file, not 1. n_features: the number of columns; default the
    largest index, found by one pass here. Comments after # are skipped and qid is ignored.
    """
    from certifit.data.formats.svmlight import SvmlightFile

    file = SvmlightFile(listed(path, (".svm", ".svmlight", ".libsvm"))[0], zero_based, n_features)
    what = f"A weight, a scale and a name for each of the {file.n_features:,} columns of {file.path!r}"
    check_memory(_COLUMN_BYTES * file.n_features, what, "Its largest index may be wrong; n_features= sets a limit.")
    return SvmlightSource(file, [f"x{j}" for j in range(file.n_features)])


class Files(Protocol):
    """What a format gives: the schema, and the rows again and again."""

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""

    @property
    def n_rows(self) -> int:
        """Rows of all files."""

    @property
    def skipped(self) -> int:
        """Bad rows left out."""

    @property
    def checksummed(self) -> bool:
        """Whether every page carries a checksum."""

    @property
    def notes(self) -> list[str]:
        """What a report should say about the files."""

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """All rows of these columns; batches of `size` rows where that is possible."""

    def place(self, row: int) -> str:
        """Where a row stands."""


class FileSource(ArrowSource):
    """Rows of files. Another thread reads the next stretch while this one is used.

    skipped: bad rows left out. checksummed: whether damage to the files is noticed. notes: sentences for a report.
    """

    def __init__(self, files: Files, roles: Roles, columns: Sequence[str]) -> None:
        open_batches = partial(files.batches, [*columns, *roles.columns()], _BATCH_ROWS)
        facts: dict[str, Any] = {"columns": list(columns), "place": files.place, "n_rows": files.n_rows}
        super().__init__(open_batches, files.schema, **roles.named(), **facts)
        self.files = files

    @property
    def skipped(self) -> int:
        """Bad rows that were skipped."""
        return self.files.skipped

    @property
    def checksummed(self) -> bool:
        """Whether every page carries a checksum, so that a damaged byte is noticed."""
        return self.files.checksummed

    @property
    def notes(self) -> list[str]:
        """Sentences for a report."""
        return self.files.notes

    def held(self, most_bytes: int) -> ArrowSource:
        """The same rows in memory where they take no more than so many bytes, else this scan."""
        batches: list[pa.RecordBatch] = []
        size = 0
        for table in self._tables(self.rows_of_stretch()):
            size += table.nbytes
            if size > most_bytes:
                return self
            batches += table.to_batches()
        if not batches:
            return self
        facts: dict[str, Any] = {
            "columns": self.names,
            "place": self.place,
            "n_rows": sum(batch.num_rows for batch in batches),
        }
        other = ArrowSource(batches.copy, batches[0].schema, **self.view.roles.named(), **facts)
        other.view = self.view
        return other

    def _tables(self, size: int) -> Iterator[pa.Table]:
        return ahead(rebatched(self.files.batches([*self.names, *self.view.beside.columns()], size), size))


class SvmlightSource(Batches):
    """Sparse rows of an svmlight file."""

    def __init__(self, file: Any, names: list[str]) -> None:
        super().__init__(file.blocks, names, named=False)
        self.file = file

    @property
    def notes(self) -> list[str]:
        """Sentences for a report."""
        notes: list[str] = self.file.notes
        return notes


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The items; another thread makes the next one while this one is used."""
    end = object()
    with contextlib.closing(items), ThreadPoolExecutor(1, thread_name_prefix="certifit-read") as pool:  # type: ignore[type-var]
        waiting = pool.submit(next, items, end)
        while (item := waiting.result()) is not end:
            waiting = pool.submit(next, items, end)
            yield item  # type: ignore[misc]


def write_predictions(
    batches: Iterable[Array],
    path: AnyPath,
    names: Sequence[str] = ("prediction",),
    kind: pa.DataType | None = None,
) -> int:
    """Write arrays of predictions to a Parquet file, or CSV if the name ends in .csv; return the number of rows.

    An array has one row per prediction, or one column per name. Constant memory. The file appears whole or not at all.
    kind: the Arrow type of predictions that are no float64.
    """
    kind = pa.float64() if kind is None else kind
    schema = pa.schema([(name, kind) for name in names])
    parts = (np.asarray(batch).reshape(-1, len(names)) for batch in batches)
    columns = ([part[:, j] for j in range(len(names))] for part in parts)
    return write_batches((record_batch(part, schema) for part in columns), path, schema)


def record_batch(columns: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch:
    """Arrays as rows of a schema."""
    arrays = [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def write_batches(batches: Iterable[pa.RecordBatch], path: AnyPath, schema: pa.Schema) -> int:
    """The same for rows of any schema."""
    n_rows = 0
    with whole_file(path) as file, _writer(os.fspath(path), file, schema) as write:
        for batch in batches:
            write(batch)
            n_rows += batch.num_rows
    return n_rows


@contextlib.contextmanager
def whole_file(path: AnyPath) -> Iterator[Any]:
    """A file to write that takes its name only when all is written; on any error nothing is left of it."""
    target = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(target), f".certifit-{secrets.token_hex(8)}.tmp")
    try:
        if os.path.isdir(target):
            raise IsADirectoryError(f"{os.fspath(path)!r} is a folder. Give the name of a file.")
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno is not None and error.filename in (None, temporary):
            what = f"{os.fspath(path)!r} could not be written: {error.strerror}. What was there before is unchanged."
            raise OSError(error.errno, what) from error
        raise


@contextlib.contextmanager
def _writer(path: str, file: Any, schema: pa.Schema) -> Iterator[Callable[[pa.RecordBatch], None]]:
    if path.lower().endswith(".csv"):
        yield csv_writer(file, schema)
        return
    from pyarrow import parquet

    with parquet.ParquetWriter(file, schema, write_page_checksum=True) as writer:
        yield writer.write_batch


def csv_writer(file: Any, schema: pa.Schema) -> Callable[[pa.RecordBatch], None]:
    """What writes rows to an open file as CSV, after a header; a number is the shortest text that reads back as it.

    Texts and names are those of `harmless`: a spreadsheet or a terminal shows them and runs nothing.
    """
    from pyarrow import csv

    head = io.StringIO()
    csv_text.writer(head, lineterminator="\n").writerow(map(harmless, schema.names))
    file.write(head.getvalue().encode())
    is_text = [pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in schema.types]
    options = csv.WriteOptions(include_header=False, quoting_style="needed" if any(is_text) else "none")

    def write(batch: pa.RecordBatch) -> None:
        text = io.BytesIO()
        columns = [_harmless(column) if of else column for column, of in zip(batch.columns, is_text, strict=True)]
        csv.write_csv(pa.RecordBatch.from_arrays(columns, schema=schema), text, options)
        file.write(text.getbuffer())

    return write


def _harmless(column: pa.Array) -> pa.Array:
    """Every text of a column made harmless, each different one once."""
    coded = column.dictionary_encode()
    return pa.array(map(harmless_label, coded.dictionary.to_pylist()), column.type).take(coded.indices)


TEMPORARY = ".certifit-"


def refuse_unwritable(place: Path) -> None:
    """Refuse a folder in which no file can be made, or one that cannot be made itself. Nothing is left behind."""
    whole = place.absolute()
    folder = next(part for part in (whole, *whole.parents) if os.path.exists(part))
    if not folder.is_dir():
        raise ValueError(f"{_quoted(folder)} is a file. Give the name of a folder.")
    missing = whole.relative_to(folder).parts
    if missing and os.path.lexists(folder / missing[0]):
        raise ValueError(f"{_quoted(folder / missing[0])} is a link to nothing. Choose another folder.")
    trial = folder / f"{TEMPORARY}{secrets.token_hex(6)}"
    try:
        trial.mkdir()
        try:
            trial.joinpath(*missing).mkdir(parents=True, exist_ok=True)
        finally:
            shutil.rmtree(trial, ignore_errors=True)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ValueError(f"{_quoted(folder)} cannot be written: {why}. Choose another folder.") from error


def _quoted(path: Path) -> str:
    return f"'{visible(path)}'"
