"""The rows that a metric is given: columns of any kind as arrays, checked, with a row named in every error.

Rows with a score and one of two labels, checked and in the form that the compiled core takes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from certifit.data.columns import Array

_WHOLE = "iub"  # kinds of whole numbers
_WIDEST_RANGE = 65_536
_MANY_ROWS = 10_000  # whose texts Arrow finds apart faster than a loop


def column(values: Any, name: str) -> Array:
    """A list, array or Series as a 1-D array of one row at least, none of them missing."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask would be lost. Drop the masked rows.")
    for method in ("isna", "is_null"):  # pandas; polars and pyarrow
        if hasattr(values, method):
            _refuse_missing(np.asarray(getattr(values, method)()).reshape(-1), name)
    array = np.asarray(values)
    if array.dtype.kind in "US" and isinstance(values, list | tuple):
        array = np.asarray(values, dtype=object)  # NumPy would write numbers and nan among texts as texts
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must be 1-D, one value per row. Got shape {array.shape}.")
    if not len(array):
        raise ValueError(f"{name} is empty. One row is needed at least.")
    if array.dtype.kind == "O":
        _refuse_missing(np.fromiter(map(_is_missing, array), bool, len(array)), name)
    elif array.dtype.kind in "fcmM":
        _refuse_missing(np.isnat(array) if array.dtype.kind in "mM" else np.isnan(array), name)
    return array


def numbers(values: Any, name: str) -> Array:
    """Finite float64, one per row."""
    array = column(values, name)
    if array.dtype.kind not in "fiubO" or (array.dtype.kind == "O" and any(isinstance(v, str) for v in array)):
        raise TypeError(f"{name} must be numbers. Got {array.dtype} such as {array[0]!r}.")
    out = np.asarray(array, dtype=np.float64)
    if not np.isfinite(out).all():
        row = int(np.flatnonzero(~np.isfinite(out))[0])
        raise ValueError(f"{name} must be finite. Row {row} is {out[row]}.")
    return out


def row_weights(sample_weight: Any, n_rows: int) -> Array | None:
    """Weights >= 0, one per row and one of them positive; None stays None."""
    if sample_weight is None:
        return None
    weight = numbers(sample_weight, "sample_weight")
    if len(weight) != n_rows:
        raise ValueError(f"sample_weight has {len(weight)} rows but y_true has {n_rows}.")
    if (weight < 0).any():
        row = int(np.flatnonzero(weight < 0)[0])
        raise ValueError(f"sample_weight must be >= 0. Row {row} is {weight[row]:g}.")
    if not (weight > 0).any():
        raise ValueError("sample_weight is zero for every row: no row is left to score.")
    return weight


def check_lengths(columns: dict[str, Array]) -> int:
    """The one length of all columns."""
    (first, values), *others = columns.items()
    for name, other in others:
        if len(other) != len(values):
            raise ValueError(f"{name} has {len(other)} rows but {first} has {len(values)}.")
    return len(values)


def codes(columns: dict[str, Array], labels: Any = None) -> tuple[tuple[Any, ...], list[Array]]:
    """The classes, sorted or as given, and for each column the place of its rows among them."""
    if labels is None:
        known = in_order(set().union(*map(_distinct, columns.values())))
    else:
        known = tuple(_scalars(column(labels, "labels")))
    place = {label: i for i, label in enumerate(known)}
    if len(place) < len(known):
        raise ValueError(f"labels must be distinct. Got {list(known)}.")
    return known, [_places(name, values, place) for name, values in columns.items()]


def in_order(labels: set[Any]) -> tuple[Any, ...]:
    """Sorted classes."""
    try:
        return tuple(sorted(labels))
    except TypeError:
        kinds = ", ".join(sorted({type(label).__name__ for label in labels}))
        raise TypeError(f"Labels of types {kinds} have no order. Use one type in y_true and y_pred.") from None


def _places(name: str, values: Array, place: dict[Any, int]) -> Array:
    if values.dtype.kind in _WHOLE and (offset := _offset(values)) is not None:
        lower, above = offset
        places = np.array([place.get(label, -1) for label in range(lower, lower + int(above.max()) + 1)])[above]
    elif (texts := _texts(values)) is not None:
        distinct, places_of_text = texts
        places = np.array([place.get(text, -1) for text in distinct], dtype=np.intp)[places_of_text]
    else:
        places = np.fromiter((place.get(label, -1) for label in _scalars(values)), np.intp, len(values))
    if places.min() < 0:
        row = int(np.argmin(places))
        label = _scalars(values[row : row + 1])[0]
        raise ValueError(f"Row {row} of {name} is {label!r}, which is not one of the labels {list(place)}.")
    return places


def _texts(values: Array) -> tuple[list[str], Array] | None:
    """Distinct texts, and for every row the place of its own among them; None of few rows, or not of texts alone."""
    if values.dtype.kind not in "UO" or len(values) < _MANY_ROWS:
        return None
    import pyarrow as pa

    try:
        texts = pa.array(values).dictionary_encode()
    except pa.ArrowException:  # labels of several types
        return None
    if not pa.types.is_string(texts.type.value_type) or texts.null_count:
        return None
    return texts.dictionary.to_pylist(), texts.indices.to_numpy()


def _distinct(values: Array) -> set[Any]:
    if (texts := _texts(values)) is not None:
        return set(texts[0])
    if values.dtype.kind not in _WHOLE or (offset := _offset(values)) is None:
        return set(_scalars(values))
    lower, above = offset
    return set(_scalars(np.flatnonzero(np.bincount(above)) + lower if values.dtype.kind != "b" else np.unique(values)))


def _offset(values: Array) -> tuple[int, Array] | None:
    """(smallest, values - smallest) of whole numbers that span little: they are counted without being sorted."""
    lower, upper = int(values.min()), int(values.max())
    if upper - lower > _WIDEST_RANGE or upper >= 2**63:
        return None
    return lower, values.astype(np.int64, copy=False) - lower


def _scalars(values: Array) -> list[Any]:
    return list(values) if values.dtype.kind in "mM" else values.tolist()


def _refuse_missing(missing: Array, name: str) -> None:
    if missing.any():
        raise ValueError(f"{name} has no value in row {int(np.argmax(missing))}. Remove such rows.")


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(operator.ne(value, value))
    except TypeError:  # pandas' NA equals nothing and differs from nothing
        return True


_EXACT = 2**53  # integers up to it are float64 numbers


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """scores: float32 or float64; labels: uint8, 1 for the positive class; weight: float64, or None.

    Rows of weight 0 are left out. Weights are scaled by a power of two, so that products of their sums are finite:
    shares do not change by it.
    """

    scores: Array
    labels: Array
    weight: Array | None
    pos_label: Any

    @property
    def n_positives(self) -> int:
        """Rows of the positive class."""
        return int(np.count_nonzero(self.labels))

    @property
    def n_negatives(self) -> int:
        """Rows of the other class."""
        return len(self.labels) - self.n_positives


def greater_label(values: tuple[Any, Any]) -> Any:
    """The positive class where none is named: the second of the two in order."""
    return values[1]


def plain_one(values: tuple[Any, Any]) -> Any:
    """1 of {0, 1} and {-1, 1}; other labels leave open which one is positive."""
    if values not in ((0, 1), (-1, 1)):
        raise ValueError(f"y_true has the labels {values[0]!r} and {values[1]!r}. Say which is positive: pos_label=...")
    return values[1]


def scored_rows(
    y_true: Any,
    y_score: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
    otherwise: Callable[[tuple[Any, Any]], Any] = greater_label,
) -> ScoredRows:
    """Checked rows. `otherwise` picks the positive label of the two where pos_label is None."""
    truth, scores = column(y_true, "y_true"), score_column(y_score, "y_score")
    check_lengths({"y_true": truth, "y_score": scores})
    weight = row_weights(sample_weight, len(truth))
    values = _two_labels(truth)
    if pos_label is not None and pos_label not in values:
        raise ValueError(f"pos_label must be {values[0]!r} or {values[1]!r}, the labels of y_true. Got {pos_label!r}.")
    positive = otherwise(values) if pos_label is None else pos_label
    labels = np.ascontiguousarray(truth == positive).view(np.uint8)
    if weight is not None:
        scores, labels, weight = _weighty(scores, labels, weight)
    return ScoredRows(scores, labels, weight, positive)


def score_column(values: Any, name: str) -> Array:
    """Scores as float32 or float64, a copy only where needed; infinities are legal, NaN is not."""
    shape = np.shape(values)
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(f"{name} has {shape[1]} columns. Pass the scores of one class: predict_proba(X)[:, 1].")
    scores = column(values, name)
    is_text = scores.dtype.kind == "O" and any(isinstance(value, str | bytes) for value in scores)
    if scores.dtype.kind not in "fiubO" or scores.dtype.itemsize > 8 or is_text:
        raise TypeError(f"{name} must be float32, float64 or whole numbers. Got {scores.dtype} such as {scores[0]!r}.")
    if scores.dtype.kind in "iu" and max(-int(scores.min()), int(scores.max())) > _EXACT:
        raise ValueError(f"{name} has whole numbers beyond 2^53, which float64 cannot tell apart. Rank them first.")
    single = scores.dtype.kind == "f" and scores.dtype.itemsize < 8
    try:
        scores = scores.astype(np.float32 if single else np.float64, copy=False)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be numbers. Got {scores.dtype} such as {scores[0]!r}.") from None
    readable = scores.flags.aligned and scores.strides[0] % scores.itemsize == 0
    return scores if readable else np.ascontiguousarray(scores)


def _two_labels(truth: Array) -> tuple[Any, Any]:
    """The two labels in order. Numbers are not sorted: only the extremes can be labels."""
    if truth.dtype.kind in "fiub":
        low, high = truth.min(), truth.max()
        is_label = truth == high
        is_label |= truth == low
        values = {low.item(), high.item()}
        if not is_label.all():
            row = int(np.argmin(is_label))
            _refuse_more(values | {truth[row].item()}, row)
    else:
        values = set()
        for row, value in enumerate(truth.tolist()):
            values.add(value)
            if len(values) > 2:
                _refuse_more(values, row)
    if len(values) == 1:
        raise ValueError(f"y_true has the label {values.pop()!r} only. Ranks need rows of both classes.")
    first, second = in_order(values)
    return first, second


def _refuse_more(values: set[Any], row: int) -> None:
    raise ValueError(
        f"y_true must have two labels. Row {row} has the third: {list(in_order(values))}. "
        "The truth comes before the scores; compare one class with the rest by y_true == label."
    )


def _weighty(scores: Array, labels: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Rows of positive weight, the greatest weight between 1/2 and 1."""
    kept = weight > 0
    if not kept.all():
        scores, labels, weight = scores[kept], np.ascontiguousarray(labels[kept]), weight[kept]
    if not 0 < int(np.count_nonzero(labels)) < len(labels):
        lost = "negative" if labels[0] else "positive"
        raise ValueError(f"Every {lost} row has weight 0. Ranks need rows of both classes.")
    _, exponent = np.frexp(weight.max())
    return scores, labels, np.ascontiguousarray(np.ldexp(weight, -int(exponent)))


def each_fold(rows: ScoredRows, folds: Any) -> Iterator[tuple[Array, ScoredRows]]:
    """Places and rows of every fold, in the order of the folds' labels; of one class or of both."""
    labels = column(folds, "folds")
    if len(labels) != len(rows.labels):
        raise ValueError(f"folds has {len(labels)} rows but the scores have {len(rows.labels)}.")
    place = _small_places(labels)
    order = np.argsort(place, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(place))])
    for begin, end in pairwise(ends):
        fold_rows = order[begin:end]
        weight = None if rows.weight is None else rows.weight[fold_rows]
        yield fold_rows, replace(rows, scores=rows.scores[fold_rows], labels=rows.labels[fold_rows], weight=weight)


def _small_places(values: Array) -> Array:
    """The place of every value among the sorted ones, in as few bytes as it takes: NumPy sorts those by counting."""
    if len(values) and values.dtype.kind in _WHOLE and (offset := _offset(values)) is not None:
        place = (np.cumsum(np.bincount(offset[1]) > 0) - 1)[offset[1]]
    else:
        place = np.unique(values, return_inverse=True)[1].ravel()
    return place.astype(np.min_scalar_type(int(place.max(initial=0))))
