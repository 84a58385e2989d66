"""Frames and arrays as Arrow tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from certifit.data.columns import Array

# What a column of Python objects that Arrow cannot hold becomes: no kind reads it, so it is set aside.
MIXED = pa.struct([pa.field("mixed Python objects", pa.null())])


def is_frame(X: Any) -> bool:
    """Whether X is a table with named columns rather than an array."""
    return _is_pandas(X) or isinstance(X, pa.RecordBatch) or hasattr(X, "__arrow_c_stream__")


def frame_table(X: Any) -> pa.Table:
    """A frame (pandas, polars, pyarrow, anything with an Arrow stream) as an Arrow table."""
    if _is_pandas(X):
        names = [str(name) for name in X.columns]
        return _table([_pandas_column(X.iloc[:, j]) for j in range(X.shape[1])], names)
    if isinstance(X, pa.RecordBatch):
        X = pa.Table.from_batches([X])
    try:
        table = X if isinstance(X, pa.Table) else pa.table(X)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise TypeError(f"X must be a table with named columns. Got {type(X).__name__}: {error}") from None
    refuse_repeated(table.column_names)
    return table


def array_table(X: Array) -> pa.Table:
    """The columns of a 2-D array as a table with columns x0, x1, ..."""
    return _table([_array_column(X[:, j]) for j in range(X.shape[1])], [f"x{j}" for j in range(X.shape[1])])


def refuse_repeated(names: Iterable[str]) -> None:
    """Refuse names that stand for more than one column."""
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise ValueError(f"X has more than one column named {', '.join(map(repr, repeated))}. Rename them.")


def _table(columns: Sequence[Any], names: list[str]) -> pa.Table:
    refuse_repeated(names)
    return pa.table(list(columns), names=names)


def _is_pandas(X: Any) -> bool:
    return hasattr(X, "iloc") and hasattr(X, "columns")


def _pandas_column(series: Any) -> pa.Array | pa.ChunkedArray:
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.nulls(len(series), MIXED)


def _array_column(values: Array) -> pa.Array:
    if values.dtype.kind == "f" and (values.dtype.itemsize > 8 or not values.dtype.isnative):
        values = values.astype(np.float64)
    elif values.dtype.kind in "iu" and not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    try:
        return pa.array(values.tolist(), from_pandas=True) if values.dtype.kind == "O" else pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.nulls(len(values), MIXED)
