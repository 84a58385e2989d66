"""Arrow columns as the encoder reads them.

A column belongs to one family by its Arrow type: number, flag, text (dictionaries too), date, time, duration, empty
(Arrow's null type) or other.

Dates, times and durations as numbers: days since 1970-01-01, month, weekday, hour.

A date with a time zone is read as its local time.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from certifit.data.arrow import one_chunk, valid_bits
from certifit.data.columns import Array
from certifit.data.picked import FEW_ROWS, PickedTable

_TOGETHER = 4  # columns that are read in one piece


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


def numbers_together(table: pa.Table | pa.RecordBatch | PickedTable, names: list[str]) -> Array | None:
    """Columns of numbers as one array, rows x columns, which takes little time per column.

    None where they are few, rows are many, a column has gaps, is not of numbers, or is float32, a type that is kept.
    """
    if len(names) < _TOGETHER or table.num_rows > FEW_ROWS:
        return None
    if isinstance(table, PickedTable):
        table, keep = table.table, table.keep
    else:
        keep = None
    table = table if table.schema.names == names else table.select(names)
    batches = [table] if isinstance(table, pa.RecordBatch) else table.to_batches()
    batch = batches[0] if len(batches) == 1 else table.combine_chunks().to_batches()[0]
    if pa.float32() in batch.schema.types:
        return None
    try:
        every = np.asarray(batch.to_tensor(null_to_nan=True), dtype=np.float64)
        values = every if keep is None else every[keep]
    except (pa.ArrowException, TypeError):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        return values if np.isfinite(values.sum()) else None


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


def without_number(column: pa.Array, number: float) -> pa.Array:
    """The column with a gap in the place of a number; a column of another kind as it is."""
    if not (pt.is_integer(column.type) or pt.is_floating(column.type)):
        return column
    return pc.if_else(pc.equal(column, pa.scalar(number, column.type)), pa.scalar(None, column.type), column)


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


# family -> the numbers made of it
PARTS = {
    "date": ("days", "month", "weekday", "hour"),
    "time": ("hour",),
    "duration": ("days",),
}
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_MONDAY = 3  # 1970-01-01 was a Thursday


def date_parts(column: pa.Array, parts: tuple[str, ...]) -> dict[str, Array]:
    """The asked parts, float64, one per row; where the column is null they are of no meaning.

    days     days since 1970-01-01 with the time of day as a fraction (durations: their length)
    month    1 .. 12          weekday   0 (Monday) .. 6          hour   0 .. 24 with minutes as a fraction
    """
    ticks, per_day = _ticks(column)
    day, within_day = np.divmod(ticks, per_day) if per_day > 1 else (ticks, np.zeros_like(ticks))
    make = {
        "days": lambda: day + within_day / per_day,
        "month": lambda: day.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12 + 1.0,
        "weekday": lambda: (day + _MONDAY) % 7 + 0.0,
        "hour": lambda: within_day * 24 / per_day,
    }
    return {part: make[part]() for part in parts}


def _ticks(column: pa.Array) -> tuple[Array, int]:
    """(int64 count, counts a day)."""
    kind = column.type
    if pt.is_timestamp(kind) and kind.tz is not None:
        column = pc.local_timestamp(column)
    width, per_day = (pa.int64(), 86_400_000) if pt.is_date64(kind) else (pa.int32(), 1)
    if not pt.is_date(kind):
        per_day = 86_400 * _PER_SECOND[kind.unit]
        width = pa.int32() if pt.is_time32(kind) else pa.int64()
    counts = pc.fill_null(column.view(width), 0).to_numpy(zero_copy_only=False)
    return counts.astype(np.int64, copy=False), per_day
