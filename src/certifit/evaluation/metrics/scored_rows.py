"""Rows with a score and one of two labels, checked and in the form that the compiled core takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.evaluation.metrics.rows import check_lengths, column, in_order, row_weights

_WHOLE = 2**53  # integers up to it are float64 numbers


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
    if scores.dtype.kind in "iu" and max(-int(scores.min()), int(scores.max())) > _WHOLE:
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
