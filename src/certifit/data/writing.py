"""Predictions written to a file, whole or not at all; and whether a place can be written to.

`refuse_unwritable` tries whether something can be written at a place: permissions do not tell of read-only disks.
"""

from __future__ import annotations

import contextlib
import csv as csv_text
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from certifit.data.columns import Array
from certifit.data.privacy import harmless, harmless_label, visible
from certifit.data.temporary import remove, temporary_in

AnyPath = str | PathLike[str]


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


def record_batch(columns: Sequence[Sequence[object] | Array], schema: pa.Schema) -> pa.RecordBatch:
    """Arrays as rows of a schema."""
    arrays = [pa.array(_plain_texts(column), kind) for column, kind in zip(columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _plain_texts(column: Sequence[object] | Array) -> Sequence[object] | Array:
    """Texts of NumPy as Python's: pyarrow before 20 makes no long texts of them."""
    return column.tolist() if isinstance(column, np.ndarray) and column.dtype.kind == "U" else column


def write_batches(batches: Iterable[pa.RecordBatch], path: AnyPath, schema: pa.Schema) -> int:
    """The same for rows of any schema."""
    n_rows = 0
    with whole_file(path) as file, _writer(os.fspath(path), file, schema) as write:
        for batch in batches:
            write(batch)
            n_rows += batch.num_rows
    return n_rows


@contextlib.contextmanager
def whole_file(path: AnyPath) -> Iterator[BinaryIO]:
    """A file to write that takes its name only when all is written; on any error nothing is left of it."""
    target = os.path.realpath(path)
    temporary = os.fspath(temporary_in(os.path.dirname(target), ".tmp"))
    try:
        if os.path.isdir(target):
            raise IsADirectoryError(f"{os.fspath(path)!r} is a folder. Give the name of a file.")
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        remove(temporary)
        if isinstance(error, OSError) and error.errno is not None and error.filename in (None, temporary):
            what = f"{os.fspath(path)!r} could not be written: {error.strerror}. What was there before is unchanged."
            raise OSError(error.errno, what) from error
        raise


@contextlib.contextmanager
def _writer(path: str, file: BinaryIO, schema: pa.Schema) -> Iterator[Callable[[pa.RecordBatch], None]]:
    if path.lower().endswith(".csv"):
        yield csv_writer(file, schema)
        return
    from pyarrow import parquet

    with parquet.ParquetWriter(file, schema, write_page_checksum=True) as writer:
        yield writer.write_batch


def csv_writer(file: BinaryIO, schema: pa.Schema) -> Callable[[pa.RecordBatch], None]:
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


def refuse_unwritable(place: Path) -> None:
    """Refuse a folder in which no file can be made, or one that cannot be made itself. Nothing is left behind."""
    whole = place.absolute()
    folder = next(part for part in (whole, *whole.parents) if os.path.exists(part))
    if not folder.is_dir():
        raise ValueError(f"{_quoted(folder)} is a file. Give the name of a folder.")
    missing = whole.relative_to(folder).parts
    if missing and os.path.lexists(folder / missing[0]):
        raise ValueError(f"{_quoted(folder / missing[0])} is a link to nothing. Choose another folder.")
    trial = temporary_in(folder)
    try:
        try:
            trial.mkdir()
            trial.joinpath(*missing).mkdir(parents=True, exist_ok=True)
        finally:
            remove(trial)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ValueError(f"{_quoted(folder)} cannot be written: {why}. Choose another folder.") from error


def _quoted(path: Path) -> str:
    return f"'{visible(path)}'"
