"""Dates, times and durations as numbers: days since 1970-01-01, month, weekday, hour.

A date with a time zone is read as its local time.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from certifit.data.columns import Array

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
