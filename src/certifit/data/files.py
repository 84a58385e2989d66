"""Files as sources of rows, read in constant memory: CSV, Parquet, Arrow, JSON lines, Excel, svmlight.

A scan can be read any number of times, and refuses files that change in between.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from functools import partial
from os import PathLike
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from certifit.data.arrow import ArrowSource, rebatched
from certifit.data.formats.paths import complete, folder_keys, keyed, listed, without_log
from certifit.data.roles import Roles, features
from certifit.data.source import Batches, Block
from certifit.runtime import check_memory

AnyPath = str | PathLike[str]
Item = TypeVar("Item")

_BATCH_ROWS = 65_536
CSV_ENDINGS = (".csv", ".tsv", ".csv.gz", ".csv.zst", ".tsv.gz", ".tsv.zst")
PARQUET_ENDINGS = (".parquet", ".pq")
ARROW_ENDINGS = (".feather", ".arrow", ".ipc")
JSON_ENDINGS = (".jsonl", ".ndjson", ".jsonl.gz", ".jsonl.zst", ".ndjson.gz", ".ndjson.zst")
EXCEL_ENDINGS = (".xlsx", ".xlsm")
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
    encoding: str | None = "utf8",
    has_header: bool = True,
    missing_target: str = "error",
    group: str | None = None,
    offset: str | None = None,
    exposure: str | None = None,
) -> FileSource:
    """CSV to give to `fit` or `predict`: a file, a glob, a folder, a list; .gz and .zst too.

    target, weight: the columns that hold y and the sample weight. columns: the features; default all others.
    types: {column: "number", "text", "lower-case", "date", "flag", "decimal-comma", "day-first", "month-first",
    "month" or "time"}. Types that are not given are settled here by one look at all rows: a column of which more than
    9 in 10 filled cells are numbers (dates, flags) is one, and its other cells are errors; times of day (14:35), months
    (2026-01) and dates such as 20260131 if all are; else text. Numbers may have thousands set apart, a decimal comma, a
    currency or a %; `notes` says so, and which reading was taken where two suit every cell.
    missing: cells that mean no value, beside empty ones and NA, NaN, N/A, null.
    bad_rows: how many rows with too few or too many cells, or with a cell of another type, may be skipped and counted
    in `skipped`. delimiter: found from the header line by default. encoding: None takes UTF-8, what a mark at the start
    says, or, where bytes are neither, Windows-1252 with a note. has_header=False: columns are column1, column2, ...
    missing_target: "error", or "drop" to leave out rows without a target and note how many.
    group: the column whose equal values cross-validation keeps in one fold (a customer, a patient).
    offset: the column that is added to the score of a row. exposure: a column > 0 (time, people) whose log is added.
    Folders named place=north are read as a column `place`.
    """
    if not isinstance(bad_rows, int) or bad_rows < 0:
        raise ValueError(f"bad_rows must be a whole number >= 0. Got {bad_rows!r}.")
    paths = listed(path, CSV_ENDINGS)
    keys = folder_keys(path, paths)
    roles = Roles(target, weight, group, offset, exposure)

    def opened(texts: Mapping[str, Any]) -> tuple[Any, list[str]]:
        from certifit.data.formats.csv import CsvFiles

        header = texts[paths[0]].header
        chosen = features([*header, *keys[0]], roles, columns, repr(paths[0]))
        numbers = [name for name in (weight, offset, exposure) if name is not None and name not in keys[0]]
        read = [name for name in (*chosen, group, target) if name is not None and name not in keys[0]]
        in_files = {name: kind for name, kind in (types or {}).items() if name not in keys[0]}
        return CsvFiles(texts, read, numbers, in_files, bad_rows, target), chosen

    files, chosen = of_encoding(paths, opened, delimiter, encoding, tuple(missing), has_header)
    return _source(files, keys, roles, chosen, missing_target, types or {})


def of_encoding(
    paths: Sequence[str],
    opened: Callable[[Mapping[str, Any]], Item],
    delimiter: str | None,
    encoding: str | None,
    missing: tuple[str, ...],
    has_header: bool,
) -> Item:
    """`opened` of how each CSV file is written. encoding: None is tried as UTF-8, then as Windows-1252."""
    from certifit.data.formats.csv_text import Text, Undecodable

    def texts(name: str | None) -> dict[str, Text]:
        first = Text.of(paths[0], delimiter, name, missing, has_header)
        others = {path: Text.of(path, first.delimiter, name, missing, has_header) for path in paths[1:]}
        return {paths[0]: first, **others}

    try:
        return opened(texts(encoding))
    except Undecodable:
        if encoding is not None:
            raise
    for name in ("cp1252", "latin1"):
        try:
            read = texts(name)
            said = (
                f"{paths[0]!r} is not UTF-8 text and was read as {_ENCODINGS[name]}. If letters are wrong, pass "
                "encoding= of the program that wrote it, such as 'mac_roman' or 'cp1250'."
            )
            read[paths[0]] = replace(read[paths[0]], notes=(*read[paths[0]].notes, said))
            return opened(read)
        except Undecodable:
            continue
    raise ValueError(f"{paths[0]!r} is no text that is known. Pass encoding=, or save it as UTF-8.")


def csv_header(
    path: AnyPath | Sequence[AnyPath],
    delimiter: str | None = None,
    encoding: str | None = None,
    has_header: bool = True,
) -> list[str]:
    """The names of the columns of CSV files, those of folders last."""
    paths = listed(path, CSV_ENDINGS)
    header: Sequence[str] = of_encoding(
        paths[:1], lambda texts: texts[paths[0]].header, delimiter, encoding, (), has_header
    )
    return [*header, *folder_keys(path, paths[:1])[0]]


def parquet_header(path: AnyPath | Sequence[AnyPath]) -> pa.Schema:
    """Names and types of the columns of Parquet files, those of folders last."""
    from certifit.data.formats.parquet_and_arrow import parquet_schema

    paths = without_log(listed(path, PARQUET_ENDINGS))
    files = SimpleNamespace(paths=paths, schema=parquet_schema(paths))
    schema: pa.Schema = keyed(files, folder_keys(path, paths), {}).schema
    return schema


_ENCODINGS = {"cp1252": "Windows-1252 (latin-1)", "latin1": "latin-1"}


def _source(
    files: Any, keys: Sequence[Mapping[str, str | None]], roles: Roles, chosen: Sequence[str], missing_target: str,
    types: Mapping[str, Any],
) -> FileSource:  # fmt: skip
    if missing_target not in ("error", "drop"):
        raise ValueError(f"missing_target must be 'error' or 'drop'. Got {missing_target!r}.")
    files = keyed(files, keys, types)
    if missing_target == "drop":
        files = complete(files, roles.target)
    return FileSource(files, roles, chosen)


def scan_parquet(
    path: AnyPath | Sequence[AnyPath],
    target: str | None = None,
    weight: str | None = None,
    columns: Sequence[str] | None = None,
    *,
    types: Mapping[str, str] | None = None,
    texts: str = "keep",
    missing_target: str = "error",
    group: str | None = None,
    offset: str | None = None,
    exposure: str | None = None,
) -> FileSource:
    """Parquet to give to `fit` or `predict`: a file, a glob, a folder, a list. Only the footers are read here.

    target, weight: the columns that hold y and the sample weight. columns: the features; default all others.
    types: {column of text: "number", "lower-case", "date", "flag", "decimal-comma", "day-first", "month-first",
    "month" or "time"}, any column "text".
    texts: "keep", or "recognise" to read columns of text as dates or numbers where every filled cell is one, with a
    note. Whole numbers stay text: they may be codes. Columns of numbers are read as dates where all are like 20260131.
    missing_target: "error", or "drop" to leave out rows without a target (counted here) and note how many.
    group: the column whose equal values cross-validation keeps in one fold (a customer, a patient).
    offset: the column that is added to the score of a row. exposure: a column > 0 (time, people) whose log is added.
    Page checksums are verified on every pass; `checksummed` says whether the files have them.
    Folders named place=north are read as a column `place`; those of Delta, Iceberg and Hudi tables are refused.
    """
    from certifit.data.formats.parquet_and_arrow import ParquetFiles

    files = ParquetFiles(without_log(listed(path, PARQUET_ENDINGS)))
    roles = Roles(target, weight, group, offset, exposure)
    return _typed(path, files, roles, columns, types or {}, texts, missing_target)


def _typed(
    path: AnyPath | Sequence[AnyPath], files: Any, roles: Roles, columns: Sequence[str] | None,
    types: Mapping[str, str], texts: str, missing_target: str,
) -> FileSource:  # fmt: skip
    """Files that carry their types as a source."""
    if texts not in ("keep", "recognise"):
        raise ValueError(f"texts must be 'keep' or 'recognise'. Got {texts!r}.")
    keys = folder_keys(path, files.paths)
    chosen = features([*files.schema.names, *keys[0]], roles, columns, repr(files.paths[0]))
    if types or texts == "recognise":
        from certifit.data.formats.text_columns import read_texts

        in_all = set(files.schema.names)
        named = [name for name in dict.fromkeys([*chosen, *roles.columns()]) if name in in_all]
        in_files = {name: kind for name, kind in types.items() if name not in keys[0]}
        files = read_texts(files, named, in_files, texts == "recognise", roles.target)
    return _source(files, keys, roles, chosen, missing_target, types)


def scan_arrow(
    path: AnyPath | Sequence[AnyPath],
    target: str | None = None,
    weight: str | None = None,
    columns: Sequence[str] | None = None,
    *,
    types: Mapping[str, str] | None = None,
    texts: str = "keep",
    missing_target: str = "error",
    group: str | None = None,
    offset: str | None = None,
    exposure: str | None = None,
) -> FileSource:
    """Feather and Arrow (IPC) files to give to `fit` or `predict`; the arguments are those of `scan_parquet`."""
    from certifit.data.formats.parquet_and_arrow import ArrowFiles, open_arrow

    files = ArrowFiles(listed(path, ARROW_ENDINGS), open_arrow, "Feather or Arrow file")
    roles = Roles(target, weight, group, offset, exposure)
    return _typed(path, files, roles, columns, types or {}, texts, missing_target)


def scan_json(
    path: AnyPath | Sequence[AnyPath],
    target: str | None = None,
    weight: str | None = None,
    columns: Sequence[str] | None = None,
    *,
    types: Mapping[str, str] | None = None,
    texts: str = "keep",
    missing_target: str = "error",
    group: str | None = None,
    offset: str | None = None,
    exposure: str | None = None,
) -> FileSource:
    """JSON lines, one object per line, to give to `fit` or `predict`; the arguments are those of `scan_parquet`."""
    from certifit.data.formats.parquet_and_arrow import ArrowFiles, open_json

    files = ArrowFiles(listed(path, JSON_ENDINGS), open_json, "file of JSON lines")
    roles = Roles(target, weight, group, offset, exposure)
    return _typed(path, files, roles, columns, types or {}, texts, missing_target)


def scan_excel(
    path: AnyPath, target: str | None = None, weight: str | None = None, columns: Sequence[str] | None = None, *,
    sheet: str | int | None = None, **options: Any,
) -> FileSource:  # fmt: skip
    """A sheet of an Excel workbook (.xlsx) to give to `fit` or `predict`; needs openpyxl.

    sheet: its name, or its place from 0; default the first that holds a table, with a note where there are more. It is
    copied to a CSV file in a folder of its own, which goes with the source, and read as one: the other arguments are
    those of `scan_csv`.
    """
    from certifit.data.formats.excel import copied_sheet

    file = listed(path, EXCEL_ENDINGS)[0]
    folder = tempfile.TemporaryDirectory(prefix="certifit-")
    source = scan_csv(copied_sheet(file, sheet, folder.name), target, weight, columns, **options)
    source.folder = folder
    return source


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
    def is_text(self) -> bool:
        """Whether reading is parsing, which costs more than reading numbers as they are."""

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
        self.folder: Any = None  # of a copy that goes with the source

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

    @property
    def in_memory(self) -> bool:
        """Whether a pass reads no file."""
        return bool(getattr(self.files, "in_memory", False))

    @property
    def may_spill(self) -> bool:
        """Whether temporary files are allowed; those who read rows once said so."""
        return getattr(self.files, "may_spill", True) is True

    def kept(self, may_spill: bool = False) -> FileSource:
        """The same rows, parsed once: by the first pass, which keeps them in memory, or in a temporary file."""
        from certifit.data.kept import KeptFiles

        other = copy(self)
        if not isinstance(self.files, KeptFiles):
            other.files = KeptFiles(self.files, [*self.names, *self.view.roles.columns()], may_spill)
        return other

    def first_block(self) -> Block:
        """Rows of block 0; of files no more are read than it has."""
        return ArrowSource.first_block(self if self.in_memory else self.resized(self.block_rows, self.block_rows))

    def _tables(self, size: int) -> Iterator[pa.Table]:
        columns = [*self.names, *self.view.beside.columns()]
        if not self.in_memory:
            return ahead(rebatched(self.files.batches(columns, size), size))
        table: pa.Table = self.files.table(columns)  # type: ignore[attr-defined]  # of KeptFiles
        return (
            table.slice(begin, size) if size < table.num_rows else table for begin in range(0, table.num_rows, size)
        )

    def _features(self, table: pa.Table) -> pa.Table:
        is_whole = self.in_memory and table.num_rows == self.n_rows
        return self.files.table(self.names) if is_whole else super()._features(table)  # type: ignore[attr-defined]


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
