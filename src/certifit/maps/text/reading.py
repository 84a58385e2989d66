"""Texts as the compiled core takes them: a list of str, or the bytes and offsets of an Arrow array."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from certifit.data.arrow import one_chunk
from certifit.data.columns import Array
from certifit.data.privacy import cell
from certifit.data.source import RowError

Texts = list[str] | tuple[Array, Array]  # (bytes, offsets): text i is bytes[offsets[i] : offsets[i + 1]]

_FILL = ". Fill it, leave the row out, or use missing='empty' to read it as a text without words."
_DECODE = "Decode bytes first: [text.decode('utf-8') for text in X]."


def n_texts(texts: Texts) -> int:
    """How many."""
    return len(texts) if isinstance(texts, list) else len(texts[1]) - 1


def read_texts(X: Any, missing: str = "error") -> Texts:
    """A list, 1-D array, Series or Arrow array of str, one text per row. Missing: refused, or "empty" texts."""
    if isinstance(X, str):
        raise ValueError(f"X must be texts, one per row. Got one str of {len(X):,} characters: use [text].")
    if isinstance(X, bytes | bytearray | memoryview):
        raise TypeError(f"X must be texts (str), one per row. Got bytes. {_DECODE}")
    if isinstance(X, pa.Table | pa.RecordBatch):
        raise TypeError("X must be one column of texts. Got a table. Give one column: table['name'].")
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple) and len(shape) != 1:
        raise ValueError(f"X must be 1-D, one text per row. Got shape {shape}. Give a column: X[:, 0], frame['name'].")
    if isinstance(X, pa.Array | pa.ChunkedArray):
        return arrow_texts(X, missing)
    dtype = getattr(X, "dtype", None)
    if isinstance(X, np.ndarray) and X.dtype.kind not in "OUST":
        _refuse_item(0, X[0] if len(X) else X.dtype)
    if not isinstance(X, np.ndarray) and str(dtype or object) not in ("object", str(object)):  # Arrow may hold it
        return arrow_texts(_of_series(X), missing)
    if isinstance(X, dict | set | frozenset) or not hasattr(X, "__iter__"):
        raise TypeError(f"X must be a list, array or Series of texts. Got {type(X).__name__}.")
    return _checked_list(X.tolist() if isinstance(X, np.ndarray) else list(X), missing)


def arrow_texts(column: pa.Array | pa.ChunkedArray, missing: str = "error") -> Texts:
    """The same of an Arrow column, in place where it is in one piece."""
    kind = column.type.value_type if pt.is_dictionary(column.type) else column.type
    if pt.is_binary(kind) or pt.is_large_binary(kind):
        raise TypeError(f"X must be texts. Got an Arrow array of {column.type}. Cast it to string first.")
    if not (pt.is_string(kind) or pt.is_large_string(kind) or str(kind) == "string_view" or pt.is_null(kind)):
        raise TypeError(f"X must be texts. Got an Arrow array of {column.type}.")
    if not len(column):
        return []
    is_split = isinstance(column, pa.ChunkedArray) and column.num_chunks > 1
    if is_split or not (pt.is_string(column.type) or pt.is_large_string(column.type)):
        column = pc.cast(column, pa.large_string())  # pieces of 2 GB in all do not fit one array of strings
    array = one_chunk(column)
    if array.null_count and missing == "empty":
        array = pc.fill_null(array, "")
    if array.null_count:
        raise RowError("The text is missing", int(np.argmax(array.is_null().to_numpy(zero_copy_only=False))), _FILL)
    _, offsets, data = array.buffers()
    width = np.dtype(np.int64 if pt.is_large_string(array.type) else np.int32)
    bounds = np.frombuffer(offsets, width, count=len(array) + 1, offset=array.offset * width.itemsize)
    return np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8), bounds


def refuse_invalid(row: int, rule: str) -> None:
    """Refuse the first text that is not valid Unicode, where there is one and the rule says so."""
    if row >= 0 and rule == "error":
        raise RowError(
            "The text is not valid Unicode (broken UTF-8, or half a surrogate pair)",
            row,
            ". Repair it, or use invalid='replace' to read such bytes as U+FFFD, which belongs to no word.",
        )


def _of_series(series: Any) -> pa.Array | pa.ChunkedArray:
    try:
        if hasattr(series, "__arrow_c_stream__"):
            return pa.chunked_array(series)
        return pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise TypeError(f"X must be texts. Got {type(series).__name__} of {series.dtype}: {error}") from None


def _checked_list(texts: list[Any], missing: str) -> list[str]:
    if set(map(type, texts)) <= {str}:
        return texts
    if missing == "empty":
        texts = ["" if _is_missing(text) else text for text in texts]
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            _refuse_item(row, text)
    return texts


def _is_missing(item: Any) -> bool:
    is_nan = isinstance(item, float) and bool(np.isnan(item))
    return item is None or is_nan or type(item).__name__ in ("NAType", "NaTType")


def _refuse_item(row: int, item: Any) -> NoReturn:
    if _is_missing(item):
        raise RowError(f"The text is missing ({item})", row, _FILL)
    if isinstance(item, bytes | bytearray):
        raise TypeError(f"X must be texts (str). Row {row} is bytes. {_DECODE}")
    shown = cell(str(item)[:40])
    raise TypeError(f"X must be texts (str). Row {row} is {type(item).__name__}: {shown}. Use str(...) first.")
