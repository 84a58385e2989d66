"""Arrow columns as the encoder reads them.

A column belongs to one family by its Arrow type: number, flag, text (dictionaries too), date, time, duration, empty
(Arrow's null type) or other.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from certifit.data.arrow import one_chunk, valid_bits
from certifit.data.columns import Array


def family(kind: pa.DataType) -> str:
    """The family of an Arrow type."""
    if pt.is_run_end_encoded(kind):
        return family(kind.value_type)
    if pt.is_dictionary(kind):
        return "other" if family(kind.value_type) in ("other", "empty") else "text"
    return next((name for name, belongs in _FAMILIES.items() if belongs(kind)), "other")


def is_text(kind: pa.DataType) -> bool:
    """Whether values are stored as text."""
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or _is_view(kind))


def _is_view(kind: pa.DataType) -> bool:
    return str(kind) == "string_view"


_FAMILIES = {
    "number": lambda t: pt.is_integer(t) or pt.is_floating(t) or pt.is_decimal(t),
    "flag": pt.is_boolean,
    "text": is_text,
    "date": lambda t: pt.is_date(t) or pt.is_timestamp(t),
    "time": pt.is_time,
    "duration": pt.is_duration,
    "empty": pt.is_null,
}


def plain(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column in one piece, runs and views of text spelled out."""
    array = one_chunk(column)
    if pt.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    return pc.cast(array, pa.large_string()) if _is_view(array.type) else array


def as_text(values: pa.Array) -> pa.Array:
    """The values of a dictionary as text."""
    return values if pt.is_string(values.type) else pc.cast(values, pa.string())


def whole_numbers(column: pa.Array, name: str) -> pa.Array:
    """Numbers that are codes of categories: integers, or floats without a fraction (NaN is missing)."""
    if pt.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    try:
        return column if pt.is_integer(column.type) else pc.cast(column, pa.int64())
    except pa.ArrowInvalid:
        raise TypeError(f"Column {name!r} is read as levels, but it holds numbers with a fraction.") from None


def valid_rows(column: pa.Array) -> Array | None:
    """Where there are values; None: everywhere."""
    bits = valid_bits(column)
    return None if bits is None else bits.to_bool(len(column))


def missing_rows(column: pa.Array) -> Array:
    """Where there is no value: nulls, nulls of a dictionary, and NaN."""
    if pt.is_dictionary(column.type) and column.dictionary.null_count:
        column = pc.take(column.dictionary, column.indices)
    missing = pc.is_null(column, nan_is_null=pt.is_floating(column.type))
    return np.asarray(missing.to_numpy(zero_copy_only=False))
