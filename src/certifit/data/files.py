"""Files as sources of rows, read in constant memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from os import PathLike, fspath
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Batches, Block, Source


def scan_csv(
    path: str | PathLike[str],
    target: str | None = None,
    weight: str | None = None,
    columns: Sequence[str] | None = None,
) -> Source:
    """A numeric CSV file with a header line, to give to `fit` or `predict`. Nothing is read but the first rows.

    target, weight: names of the columns that hold y and the sample weight. columns: the features, in order;
    default all others. Every cell must be a number; an error names the line and the column.
    """
    import pyarrow as pa

    path = fspath(path)
    header = _header(path)
    wanted = [name for name in (target, weight) if name is not None]
    features = [name for name in header if name not in wanted] if columns is None else list(columns)
    for name in [*wanted, *features]:
        _refuse_unknown(name, header, path)
    if overlap := set(wanted) & set(features):
        raise ValueError(f"{sorted(overlap)} cannot be a feature and the target or weight at once.")
    if not features:
        raise ValueError(f"{path!r} has no feature columns beside {wanted}.")
    types = {name: pa.float64() for name in [*features, *wanted]}

    def open_batches() -> Iterator[Block]:
        first_row = 0
        for batch in _batches(path, header, types):
            block = _block(batch, features, target, weight, first_row, path)
            first_row += block.n_rows
            yield block

    return Batches(open_batches, features, target or "y")


def _header(path: str) -> list[str]:
    from pyarrow import ArrowInvalid
    from pyarrow import csv as arrow_csv

    try:
        with arrow_csv.open_csv(path, read_options=arrow_csv.ReadOptions(block_size=1 << 20)) as reader:
            names = list(reader.schema.names)
    except ArrowInvalid as error:
        raise ValueError(f"{path!r} is not a readable CSV file: {error}") from error
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"{path!r} has more than one column named {repeated}. Rename them.")
    return names


def _batches(path: str, header: list[str], types: dict[str, Any]) -> Iterator[Any]:
    from pyarrow import ArrowInvalid
    from pyarrow import csv as arrow_csv

    options = arrow_csv.ConvertOptions(column_types=types, include_columns=list(types), strings_can_be_null=False)
    # One thread: only then does an error carry the number of the row.
    read = arrow_csv.ReadOptions(use_threads=False, block_size=4 << 20)
    try:
        with arrow_csv.open_csv(path, read_options=read, convert_options=options) as reader:
            yield from reader
    except ArrowInvalid as error:
        # Arrow counts the columns of the file from 0.
        text = re.sub(r"column #(\d+)", lambda found: f"column {header[int(found[1])]!r}", str(error))
        raise ValueError(f"{path!r}: {text}. Every cell must be a number; line 1 is the header.") from error


def _block(batch: Any, features: list[str], target: str | None, weight: str | None, first_row: int, path: str) -> Block:
    n_rows = batch.num_rows
    columns = {name: _column(batch, name, first_row, path) for name in batch.schema.names}
    # Fortran order: one copy a column, and the core reads tiles of it column by column.
    X = np.empty((n_rows, len(features)), order="F")
    for j, name in enumerate(features):
        X[:, j] = columns[name]
    y = None if target is None else np.ascontiguousarray(columns[target])
    w = None if weight is None else np.ascontiguousarray(columns[weight])
    for named, values in ((target, y), (weight, w)):
        if values is not None and not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ValueError(f"{path!r}: column {named!r} has NaN or infinity in row {first_row + row}.")
    if w is not None and (w < 0).any():
        row = int(np.flatnonzero(w < 0)[0])
        raise ValueError(f"{path!r}: weight {weight!r} is negative in row {first_row + row}: {w[row]:g}.")
    return Block(X, y, w, first_row)


def _column(batch: Any, name: str, first_row: int, path: str) -> Array:
    column = batch.column(batch.schema.get_field_index(name))
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise ValueError(
            f"{path!r}: column {name!r} is empty in row {first_row + row} (line {first_row + row + 2}). "
            "Every cell must be a number: fill the gaps or leave the column out."
        )
    values: Array = column.to_numpy()
    return values


def _refuse_unknown(name: str, header: list[str], path: str) -> None:
    if name in header:
        return
    near = get_close_matches(name, header, n=3)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    shown = ", ".join(map(repr, header[:20])) + (", ..." if len(header) > 20 else "")
    raise ValueError(f"{path!r} has no column {name!r}.{hint} Its columns are {shown}.")
