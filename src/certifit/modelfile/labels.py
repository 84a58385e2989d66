"""The labels of a classifier in a file: sorted, each its own, of the dtype that they had.

header          their dtype and number; of texts of a fixed width also that
classes         the labels, where they are numbers or flags (0, 1); whole numbers beyond int64 by their bits
text_ends.classes, texts.classes   the labels, where they are texts
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certifit.modelfile import texts
from certifit.modelfile.disk import ModelFileError
from certifit.modelfile.schema import brief, refuse_any
from certifit.models.record import COUNT, Array, Arrays, Check, Metadata, Spec, one_of

MOST_CLASSES = 100_000
MOST_LETTERS = 1 << 24  # of all labels at the width of the longest: 64 MB
OF = ".classes"
_WHOLE = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_REAL = ("float16", "float32", "float64")
_TEXT = ("object", "text")

LABELS: Mapping[str, Spec] = {
    "count": Check(
        f"an integer from 1 to {MOST_CLASSES}", lambda value: type(value) is int and 1 <= value <= MOST_CLASSES
    ),
    "dtype": one_of(*_WHOLE, *_REAL, *_TEXT),
    "width": COUNT,  # characters of a text; 0 of objects and numbers
}


def dump_labels(classes: NDArray[Any]) -> tuple[Metadata, Arrays]:
    """Metadata and arrays of the labels."""
    kind, width = _kind_of(classes)
    record = {"count": len(classes), "dtype": kind, "width": width}
    if kind in _TEXT:
        return record, texts.pack([str(label) for label in classes.tolist()], OF)
    if kind in _REAL:
        return record, {"classes": classes.astype(np.float64)}
    return record, {"classes": classes.view(np.int64) if kind == "uint64" else classes.astype(np.int64)}


def label_arrays(record: Metadata) -> dict[str, Array]:
    """The arrays that a checked record announces."""
    if record["dtype"] in _TEXT:
        return texts.text_arrays(OF, "K", "n_letters")
    return {"classes": Array(("K",), "float64" if record["dtype"] in _REAL else "int64")}


def build_labels(record: Metadata, arrays: Arrays) -> NDArray[Any]:
    """The labels of a checked record and arrays."""
    kind, width = record["dtype"], record["width"]
    if kind != "text":
        refuse_any({f"a width of {width} for labels of dtype {kind}": width})
    classes = _build_texts(kind, width, arrays) if kind in _TEXT else _build_numbers(kind, arrays["classes"])
    values = classes.tolist()
    refuse_any({"classes that are not sorted, or come twice": any(map(_is_not_below, values, values[1:]))})
    return classes


def _kind_of(classes: NDArray[Any]) -> tuple[str, int]:
    if classes.dtype.kind == "U":
        return "text", classes.dtype.itemsize // 4
    if classes.dtype == object and all(type(label) is str for label in classes):
        return "object", 0
    for name in (*_WHOLE, *_REAL):
        if classes.dtype == np.dtype(name):
            return name, 0
    raise ModelFileError(f"labels of dtype {brief(str(classes.dtype))} are no part of a model file. Convert y first.")


def _build_numbers(kind: str, numbers: NDArray[Any]) -> NDArray[Any]:
    if kind == "uint64":
        return numbers.view(np.uint64)
    with np.errstate(over="ignore"):
        classes = numbers.astype(kind)
    if not np.array_equal(classes.astype(numbers.dtype), numbers):
        raise ModelFileError(f"its classes are not numbers of dtype {kind}.")
    return classes


def _build_texts(kind: str, width: int, arrays: Arrays) -> NDArray[Any]:
    labels = texts.unpack(arrays, OF)
    if kind == "object":
        return np.array(labels, dtype=object)
    longest = max(1, *map(len, labels))
    if not longest <= width <= MOST_LETTERS // len(labels):
        raise ModelFileError(
            f"its {len(labels)} labels have {longest} characters and a width of {width}. A width is that of the "
            f"longest label or more, and {MOST_LETTERS // len(labels)} at most: give the labels as objects."
        )
    classes = np.array(labels, dtype=f"U{width}")
    if classes.tolist() != labels:
        raise ModelFileError("one of its labels ends in NUL, which text of a fixed width cannot say.")
    return classes


def _is_not_below(low: Any, high: Any) -> bool:
    return not low < high
