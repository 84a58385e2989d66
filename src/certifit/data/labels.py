"""Labels of any type as codes 0 .. K-1. Classes are sorted as `numpy.unique` sorts them.

A label is text, a whole number or a flag. A row of weight 0 is no row: a class that only such rows have is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from certifit.data.columns import Array
from certifit.data.source import Block, Source

NO_CLASS = -1.0  # the code of a row of weight 0 whose class no other row has
MOST_CLASSES = 100_000
_SMALL_RANGE = 1 << 20  # whole numbers within such a range are counted, not sorted


def coded(values: Array, weight: Array | None = None, known: Array | None = None) -> tuple[Array, Array]:
    """(classes, code of every row as float64) of labels in memory. known: the classes, where they are given."""
    values = _one_type(values)
    if values.dtype.kind == "f" and (values != np.floor(values)).any():
        raise ValueError(_continuous(values[values != np.floor(values)][0]))
    if values.dtype.kind not in "biufUTO":
        raise TypeError(f"Labels must be text, whole numbers or flags. Got y of dtype {values.dtype}.")
    classes, codes = _unique(values)
    if weight is not None:
        counted = np.bincount(codes, weights=weight > 0, minlength=len(classes)) > 0
        places = np.where(counted, np.cumsum(counted) - 1, int(NO_CLASS))
        classes, codes = classes[counted], places[codes]
    if known is not None:
        places = places_among(known, classes)
        return known, np.append(places, NO_CLASS)[codes].astype(np.float64)
    refuse_few(classes)
    return classes, codes.astype(np.float64)


def places_among(known: Array, classes: Array) -> Array:
    """The place of every class among the known ones, all of which must be."""
    places = {label: k for k, label in enumerate(known.tolist())}
    new = [label for label in classes.tolist() if label not in places]
    if new:
        raise ValueError(f"y has labels {new[:10]} that are not among the classes {known.tolist()[:10]}.")
    return np.array([places[label] for label in classes.tolist()], dtype=np.float64)


def refuse_few(classes: Array) -> None:
    """Refuse what is no classification."""
    if len(classes) < 2:
        shown = f"only {classes.tolist()[0]!r}" if len(classes) else "none"
        raise ValueError(f"y has {len(classes)} class ({shown}). A classifier needs rows of two classes or more.")
    if len(classes) > MOST_CLASSES:
        raise ValueError(f"y has {len(classes):,} classes, more than {MOST_CLASSES:,}. Is it a number on a scale?")


def refuse_missing(y: Any) -> None:
    """Refuse None and NaN among labels, naming the row."""
    values = np.asarray(y)
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


def _one_type(values: Array) -> Array:
    """Python objects as an array of their type."""
    if values.dtype.kind != "O":
        return values
    types = {type(value) for value in values.tolist()}
    numbers = all(issubclass(kind, int | float | np.number) for kind in types)
    if len(types) > 1 and not numbers and not all(issubclass(kind, str) for kind in types):
        names = " and ".join(sorted(kind.__name__ for kind in types))
        raise ValueError(f"Unknown label type: y mixes labels of types {names}. Convert them to one type.")
    found = np.array(values.tolist())
    if found.dtype.kind == "U":
        return values  # texts stay as they came, and so do predictions
    if found.dtype.kind not in "biuf" or found.ndim != 1:
        raise ValueError(f"Unknown label type: labels must be text, whole numbers or flags. Got {values[0]!r}.")
    return found


def _unique(values: Array) -> tuple[Array, Array]:
    if values.dtype.kind in "OUT":
        encoded = pa.array(values.tolist(), pa.large_string()).dictionary_encode()
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
    seen = np.bincount(away, minlength=high - low + 1) > 0
    classes = (np.flatnonzero(seen) + low).astype(values.dtype)
    return classes, (np.cumsum(seen) - 1)[away]


def _continuous(value: Any) -> str:
    return (
        f"Unknown label type: continuous. y holds {value}, a number on a scale; labels are text, whole numbers or "
        "flags. Use a regressor, or convert y."
    )


def with_codes(source: Source, known: Array | None = None) -> tuple[Source, Array]:
    """A scan whose target is read as codes, and the classes: one pass over the target alone, once a source."""
    column = source.target_column()
    found = source.remembered("labels", lambda: column.reduce(LabelSet.finder(column)))
    if known is not None:
        places_among(known, np.array(list(found.values)))
        return source.coded(known), known
    classes = found.classes()
    return source.coded(classes), classes


@dataclass(frozen=True)
class LabelSet:
    """The distinct labels of some rows."""

    values: frozenset[Any]

    @staticmethod
    def finder(column: Source) -> Callable[[Block], LabelSet]:
        """What finds the labels of a block of a `target_column`."""
        return _Finder(column.target, getattr(column, "place", "row {}".format))

    def classes(self) -> Array:
        """Sorted; two or more."""
        classes = np.unique(np.array(list(self.values))) if self.values else np.zeros(0)
        refuse_few(classes)
        return classes

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
        values = pc.unique(column).to_pylist()
        for value in values:
            if isinstance(value, float) and value != np.floor(value):
                raise ValueError(_continuous(value))
        return LabelSet(frozenset(values))


def label_column(column: Any, name: str, place: Callable[[int], str], first_row: int) -> pa.Array:
    """A target column in one piece, of text, numbers or flags, without a gap."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0)
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if pa.types.is_decimal(kind) or pa.types.is_float16(kind):
        column, kind = pc.cast(column, pa.float64()), pa.float64()
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if not (is_number or pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)):
        raise TypeError(f"Column {name!r} is {kind}, but labels must be text, whole numbers or flags.")
    is_bad = pc.is_null(column, nan_is_null=pa.types.is_floating(kind))
    if pc.any(is_bad).as_py():
        at = int(np.flatnonzero(is_bad.to_numpy(zero_copy_only=False))[0])
        raise ValueError(f"Label {name!r} is missing at {place(first_row + at)}. Remove such rows first.")
    return column


def codes_of(column: pa.Array, classes: Array) -> Array:
    """The code of every label as float64; NO_CLASS where it is none of the classes."""
    known = pa.array(classes.tolist()).cast(column.type) if len(column) else pa.array([], column.type)
    found = pc.index_in(column, value_set=known)
    return np.ascontiguousarray(pc.fill_null(found, int(NO_CLASS)).to_numpy(zero_copy_only=False), dtype=np.float64)


# ---- what a target is -----------------------------------------------------------------------------------------------

MOST_CODES = 20  # whole numbers of so few values may be classes


@dataclass(frozen=True)
class Task:
    """What a model of a target is to do: tell classes apart, or predict a quantity; and the sentence that says so."""

    is_classes: bool
    sentence: str


def task_of(source: Source) -> Task:
    """What the target of a scan asks for. Its column alone is read, and no further than the answer needs.

    Text, categories, flags, and two distinct whole numbers are classes; other numbers are a quantity. Text that is
    mostly numbers, of more than 20 values, is a quantity with a fault in it.
    """
    column = source.target_column()
    values: set[Any] = set()
    kind = "number"
    for run in column.runs():
        found = _column_of(run)
        kind = "text" if _is_text(found.type) else "flag" if pa.types.is_boolean(found.type) else kind
        values |= set(pc.unique(found.drop_null()).to_pylist())
        if kind != "number" or len(values) > MOST_CODES or any(_has_fraction(value) for value in values):
            break
    return _TASKS[kind](f"{column.target!r}", values)


def _task_of_text(name: str, values: set[Any]) -> Task:
    words = sorted(value for value in values if not _is_number(value))
    if len(values) > MOST_CODES and 2 * len(words) < len(values):
        shown = ", ".join(map(repr, words[:3])) + (", ..." if len(words) > 3 else "")
        return Task(False, f"{name} is numbers but for {shown}: taken as a quantity. Mend or remove those rows.")
    return Task(True, f"{name} is text: its values are classes.")


def _task_of_flags(name: str, values: set[Any]) -> Task:
    return Task(True, f"{name} is true or false: two classes.")


def _task_of_numbers(name: str, values: set[Any]) -> Task:
    if len(values) > MOST_CODES or any(_has_fraction(value) for value in values):
        return Task(False, f"{name} is a number on a scale: a quantity.")
    if len(values) == 2:
        first, second = (int(value) for value in sorted(values))
        return Task(True, f"{name} is {first} or {second}: two classes. If it is a quantity, say so: --task quantity.")
    if len(values) < 2:
        return Task(False, f"{name} has {len(values)} distinct value{'s' * (len(values) != 1)}.")
    shown = f"{name} has {len(values)} distinct whole numbers and is taken as a quantity."
    return Task(False, f"{shown} If they are classes, say so: --task classes.")


_TASKS: dict[str, Callable[[str, set[Any]], Task]] = {
    "text": _task_of_text,
    "flag": _task_of_flags,
    "number": _task_of_numbers,
}


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _has_fraction(value: Any) -> bool:
    """A number that is not whole; what is no number (a date) is none."""
    try:
        return not float(value).is_integer()
    except (TypeError, ValueError):
        return True


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def label_counts(source: Source) -> dict[Any, int]:
    """Rows of every label of a scan, labels sorted: one pass over the target alone, once a source."""
    column = source.target_column()
    found = source.remembered("label counts", lambda: column.reduce(_Tally.finder(column)))
    return {label: found.rows[label] for label in sorted(found.rows)}


@dataclass(frozen=True)
class _Tally:
    """Rows by label."""

    rows: dict[Any, int]

    @staticmethod
    def finder(column: Source) -> Callable[[Block], _Tally]:
        return _Teller(LabelSet.finder(column))

    def __add__(self, other: _Tally) -> _Tally:
        return _Tally(self.rows | {label: n + self.rows.get(label, 0) for label, n in other.rows.items()})


@dataclass(frozen=True)
class _Teller:
    """Rows by label of a block; labels are refused as a fit refuses them. Can be sent to a worker."""

    finder: Callable[[Block], LabelSet]

    def __call__(self, block: Block) -> _Tally:
        self.finder(block)
        counts = pc.value_counts(_column_of(block))
        return _Tally(dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)))


def _column_of(run: Block) -> pa.Array:
    """The target of a run of a `target_column`: text, flags or numbers; rows of weight 0 are none."""
    if isinstance(run.X, pa.Table):
        column = run.X.column(0).combine_chunks()
        column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    elif run.y is None:
        raise ValueError("The scan has no target. Use scan_csv(path, target='name of the column').")
    else:
        column = pa.array(run.y)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column if run.weight is None else column.filter(pa.array(run.weight > 0))
