"""Labels of any type as codes 0 .. K-1. Classes are sorted as `numpy.unique` sorts them.

A label is text, a whole number or a flag. A row of weight 0 is no row: a class that only such rows have is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from certifit.data.columns import Array
from certifit.data.privacy import cell
from certifit.data.source import Block, Source
from certifit.data.view import NO_CLASS, Target

MOST_CLASSES = 100_000
MOST_LETTERS = 1 << 16  # of a label: every prediction may hold as many
_SMALL_RANGE = 1 << 20  # whole numbers within such a range are counted, not sorted


def coded(values: Array, weight: Array | None = None, known: Array | None = None) -> tuple[Array, Array]:
    """(classes, code of every row as float64) of labels in memory. known: the classes, where they are given."""
    values = one_type(values)
    if values.dtype.kind == "f":
        _refuse_floats(values)
    if values.dtype.kind not in "biufUTO":
        raise TypeError(f"Labels must be text, whole numbers or flags. Got y of dtype {values.dtype}.")
    classes, codes = _unique(values)
    if weight is not None:
        counted = np.bincount(codes, weights=weight > 0, minlength=len(classes)) > 0
        places = np.where(counted, np.cumsum(counted) - 1, int(NO_CLASS))
        classes, codes = classes[counted], places[codes]
    if known is not None:
        places = places_among(known, classes.tolist())
        return known, np.append(places, NO_CLASS)[codes].astype(np.float64)
    refuse_few(classes)
    return classes, codes.astype(np.float64)


def places_among(known: Array, labels: Sequence[Any]) -> Array:
    """The place of every label among the known classes, of which it must be one."""
    places = {label: k for k, label in enumerate(known.tolist())}
    new = [label for label in labels if label not in places]
    if new:
        shown, among = cell(str(new[:10])), cell(str(known.tolist()[:10]))
        raise ValueError(f"y has labels {shown} that are not among the classes {among}.")
    return np.array([places[label] for label in labels], dtype=np.float64)


def refuse_few(classes: Array) -> None:
    """Refuse what is no classification."""
    if len(classes) < 2:
        shown = f"only {classes.tolist()[0]!r}" if len(classes) else "none"
        raise ValueError(f"y has {len(classes)} class ({shown}). A classifier needs rows of two classes or more.")
    if len(classes) > MOST_CLASSES:
        raise ValueError(f"y has {len(classes):,} classes, more than {MOST_CLASSES:,}. Is it a number on a scale?")
    longest = max(len(label) for label in classes.tolist()) if classes.dtype.kind in "OU" else 0
    if longest > MOST_LETTERS:
        raise ValueError(
            f"y has a label of {longest:,} characters, more than {MOST_LETTERS:,}. Give labels short names."
        )


def read_labels(y: Any) -> Any:
    """Labels in memory as NumPy holds them without loss; a missing one is refused, naming its row.

    Whole numbers and flags of pandas and Arrow, which can be missing, would else become float64.
    """
    if isinstance(y, np.ma.MaskedArray):
        raise TypeError("y is a masked array, whose mask would be lost. Drop the masked rows.")
    values = np.asarray(y)
    _refuse_missing(values)
    if values.dtype.kind == "T":
        return values.astype(object)
    return y if isinstance(getattr(y, "dtype", values.dtype), np.dtype) else values


def _refuse_missing(values: Array) -> None:
    if values.ndim == 0 or values.dtype.kind not in "fO":
        return
    if values.dtype.kind == "f":
        rows = np.flatnonzero(np.isnan(values.reshape(len(values), -1)).any(axis=1))
    else:
        rows = np.array([i for i, value in enumerate(values.reshape(-1)) if is_missing(value)])
    if len(rows):
        raise ValueError(f"Input y contains NaN or a missing label: row {rows[0]}. Remove such rows.")


def is_missing(value: Any) -> bool:
    """None, NaN, and what pandas has for them."""
    return value is None or (isinstance(value, float) and math.isnan(value)) or type(value).__name__ in _MISSING


_MISSING = ("NAType", "NaTType")


def one_type(values: Array) -> Array:
    """Python objects as an array of their type."""
    if values.dtype.kind != "O":
        return values
    types = {type(value) for value in values.tolist()}
    numbers = all(issubclass(kind, int | float | np.number | np.bool_) for kind in types)
    if len(types) > 1 and not numbers and not all(issubclass(kind, str) for kind in types):
        names = " and ".join(sorted(kind.__name__ for kind in types))
        raise ValueError(f"Unknown label type: y mixes labels of types {names}. Convert them to one type.")
    converted = np.array(values.tolist())
    if converted.dtype.kind == "U":
        return values  # texts stay as they came, and so do predictions
    if converted.dtype.kind not in "biuf" or converted.ndim != 1:
        raise ValueError(
            "Unknown label type: labels must be text, whole numbers (of 64 bits) or flags. "
            f"Got {cell(repr(values[0]))}."
        )
    return converted


def _unique(values: Array) -> tuple[Array, Array]:
    if values.dtype.kind in "OUT":
        try:
            encoded = pa.array(values.tolist(), pa.large_string()).dictionary_encode()
        except UnicodeEncodeError as error:
            label = cell(repr(error.object))
            raise ValueError(f"Label {label} holds half a surrogate pair, which is no text.") from None
        names = np.array(encoded.dictionary.to_pylist(), dtype=object)
        order = np.argsort(names.astype(str), kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        classes = names[order] if values.dtype.kind == "O" else names[order].astype(values.dtype)
        return classes, place[encoded.indices.to_numpy()]
    if values.dtype.kind == "b":
        return _counted(values, values.view(np.uint8).astype(np.int64), 0, 1)
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    if max(abs(low), abs(high)) < 2.0**52 and high - low < _SMALL_RANGE and values.dtype.kind in "iuf":
        return _counted(values, values.astype(np.int64), int(low), int(high))
    classes, codes = np.unique(values, return_inverse=True)
    return classes, codes.astype(np.int64)


def _counted(values: Array, numbers: Array, low: int, high: int) -> tuple[Array, Array]:
    away = numbers - low
    occurs = np.bincount(away, minlength=high - low + 1) > 0
    classes = (np.flatnonzero(occurs) + low).astype(values.dtype)
    return classes, (np.cumsum(occurs) - 1)[away]


def _refuse_floats(values: Array) -> None:
    """Refuse fractions, and numbers so large that not every whole one is a float64: some may be equal now."""
    for value in values[values != np.floor(values)][:1]:
        raise ValueError(
            f"Unknown label type: continuous. y holds {cell(str(value))}, a number on a scale; labels are text, whole "
            "numbers or flags. Use a regressor, or convert y."
        )
    for value in values[np.abs(values.astype(np.float64)) > 2.0**53][:1]:
        raise ValueError(
            f"y holds {cell(value)}, too large a label for float64. Give labels as text or as 64-bit integers."
        )


def with_codes(source: Source, known: Array | None = None) -> tuple[Source, Array]:
    """A scan whose target is read as codes, and the classes: one pass over the target alone, once per source."""
    column = source.reading(Target.RAW)
    labels = source.remembered("labels", lambda: column.reduce(LabelSet.finder(column)))
    if known is not None:
        places_among(known, list(labels.values))
    classes = labels.classes() if known is None else known
    return source.reading(Target.CODES, classes), classes


@dataclass(frozen=True)
class LabelSet:
    """The distinct labels of some rows."""

    values: frozenset[Any]

    @staticmethod
    def finder(column: Source) -> Callable[[Block], LabelSet]:
        """What finds the labels of a block of a source that reads its target raw."""
        return _Finder(column.target, getattr(column, "place", "row {}".format))

    def classes(self) -> Array:
        """Sorted; two or more."""
        labels = sorted(self.values)
        classes = np.array(labels)
        refuse_few(classes)
        # NumPy's texts end at a NUL: those that have one stay Python's.
        return classes if classes.tolist() == labels else np.array(labels, dtype=object)

    def __add__(self, other: LabelSet) -> LabelSet:
        both = self.values | other.values
        if len(both) > MOST_CLASSES:
            raise ValueError(f"y has more than {MOST_CLASSES:,} classes. Is it a number on a scale?")
        return LabelSet(both)


@dataclass(frozen=True)
class _Finder:
    """The labels of a block. Can be sent to a worker."""

    name: str
    place: Callable[[int], str]

    def __call__(self, block: Block) -> LabelSet:
        if isinstance(block.X, pa.Table):
            column = label_column(block.X.column(0), self.name, self.place, block.first_row)
        elif block.y is None:
            raise ValueError("The scan has no target. Use scan_csv(path, target='name of the column').")
        else:
            column = pa.array(block.y)
        if block.weight is not None:
            column = column.filter(pa.array(block.weight > 0))
        values = pc.unique(column)
        if pa.types.is_floating(values.type):
            _refuse_floats(values.to_numpy(zero_copy_only=False))
            return LabelSet(frozenset(value + 0.0 for value in values.to_pylist()))  # -0.0 is 0.0
        return LabelSet(frozenset(values.to_pylist()))


def label_column(column: Any, name: str, place: Callable[[int], str], first_row: int) -> pa.Array:
    """A target column in one piece, of text, numbers or flags, without a gap."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0)
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    column, kind = _plain_type(column, kind)
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if not (is_number or pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)):
        held = f"dates or times ({kind})" if pa.types.is_temporal(kind) else str(kind)
        raise TypeError(
            f"Column {name!r} holds {held}, but labels must be text, whole numbers or flags. Make labels of "
            "them, such as the year of a date."
        )
    is_bad = pc.is_null(column, nan_is_null=pa.types.is_floating(kind))
    if pc.any(is_bad).as_py():
        at = int(np.flatnonzero(is_bad.to_numpy(zero_copy_only=False))[0])
        raise ValueError(f"Label {name!r} is missing at {place(first_row + at)}. Remove such rows first.")
    return column


def _plain_type(column: pa.Array, kind: pa.DataType) -> tuple[pa.Array, pa.DataType]:
    """Decimals, small floats and views of texts as types that all engines have."""
    wanted = {"halffloat": pa.float64(), "string_view": pa.large_string()}.get(str(kind))
    if pa.types.is_decimal(kind):
        is_whole = pc.all(pc.equal(pc.floor(column), column)).as_py()
        wanted = pa.int64() if is_whole else pa.float64()
    return (column, kind) if wanted is None else (pc.cast(column, wanted), wanted)


def codes_of(column: pa.Array, classes: Array) -> Array:
    """The code of every label as float64; NO_CLASS where it is none of the classes."""
    encoded = column.dictionary_encode()
    labels, places = encoded.dictionary.to_pylist(), {label: k for k, label in enumerate(classes.tolist())}
    if labels and isinstance(labels[0], str) != isinstance(classes.tolist()[0], str):
        shown, of_fit = cell(str(labels[:3])), cell(str(classes.tolist()[:3]))
        raise ValueError(f"Labels are {shown}, and those of the fit {of_fit}: text and numbers.")
    codes = np.array([places.get(label, NO_CLASS) for label in labels], dtype=np.float64)
    return np.asarray(codes[encoded.indices.to_numpy()])
