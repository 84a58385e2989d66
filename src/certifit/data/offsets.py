"""Offsets: what is added to the score b + x'w of a row, before any weight is fitted.

An exposure e > 0 (time at risk, people asked) adds log e: with a log link the mean is e exp(b + x'w), and y stays a
count. Offset and exposure add up.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number

import numpy as np
from numpy.typing import ArrayLike

from certifit.data.columns import Array, plain_numbers
from certifit.data.labels import is_missing
from certifit.data.privacy import cell


def checked_offset(offset: ArrayLike | None, exposure: ArrayLike | None, n_rows: int) -> Array | None:
    """offset + log exposure of rows in memory, one number per row each; None where neither is given."""
    row_offset = None if offset is None else _numbers(offset, "offset", n_rows)
    times = None if exposure is None else _numbers(exposure, "exposure", n_rows)
    if times is not None:
        refuse_no_exposure(times, "exposure", "row {}".format)
    return added(row_offset, times)


def added(offset: Array | None, exposure: Array | None) -> Array | None:
    """offset + log exposure; either may be None."""
    if exposure is None:
        return offset
    return np.log(exposure) if offset is None else offset + np.log(exposure)


def refuse_no_exposure(exposure: Array, name: str, place: Callable[[int], str]) -> None:
    """Refuse a row whose exposure is not above 0, saying where it stands."""
    if (exposure > 0).all():
        return
    at = int(np.flatnonzero(~(exposure > 0))[0])
    raise ValueError(f"{name} must be > 0. It is {cell(exposure[at])} at {place(at)}. Remove rows without exposure.")


def _numbers(values: ArrayLike, name: str, n_rows: int) -> Array:
    """One finite number per row as float64."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask would be lost. Drop the masked rows.")
    numbers = np.full(n_rows, values) if isinstance(values, Number) else np.asarray(values)
    if numbers.ndim != 1:
        raise ValueError(f"{name} must be 1-D, one number per row. Got {numbers.ndim} dimensions.")
    if len(numbers) != n_rows:
        raise ValueError(f"{name} has {len(numbers)} entries but X has {n_rows} rows.")
    if numbers.dtype.kind == "O":
        numbers = _of_objects(numbers, name)
    if numbers.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numbers. Got dtype {numbers.dtype}.")
    numbers = plain_numbers(numbers)
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise ValueError(f"{name} must be finite. It is {numbers[row]:g} at row {row}. Remove such rows.")
    return numbers


def _of_objects(values: Array, name: str) -> Array:
    """Python numbers as an array of numbers; what is missing becomes NaN."""
    items = values.tolist()
    for row, item in enumerate(items):
        if not is_missing(item) and (not isinstance(item, Number) or isinstance(item, complex)):
            raise TypeError(f"{name} must be numbers. It is {cell(repr(item))} at row {row}.")
    return np.array([np.nan if is_missing(item) else float(item) for item in items])
