"""Scores of predicted classes under scikit-learn's names, with its arguments and its `zero_division`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from certifit.data.columns import Array
from certifit.evaluation.metrics.confusion import AVERAGES, ConfusionMatrix
from certifit.evaluation.metrics.intervals import Estimate
from certifit.evaluation.metrics.rows import column


def confusion_matrix(
    y_true: Any, y_pred: Any, *, labels: Any = None, sample_weight: Any = None, normalize: str | None = None
) -> Array:
    """counts[i, j] = rows of class i predicted as class j, classes sorted or in the order of `labels`.

    `normalize` in {"true", "pred", "all", None} divides by the sums of rows, of columns or of all; 0 for 0 / 0.
    A label of a row that is not in `labels` is refused.

    >>> confusion_matrix([0, 1, 1, 0], [0, 1, 0, 0])
    array([[2, 0],
           [1, 1]])
    """
    matrix = ConfusionMatrix.of(y_true, y_pred, sample_weight, labels)
    return matrix.counts if normalize is None else matrix.normalized(normalize)


def accuracy_score(
    y_true: Any, y_pred: Any, *, normalize: bool = True, sample_weight: Any = None, level: float = 0.95
) -> Estimate:
    """Share of rows predicted right, with its interval; normalize=False: their number.

    >>> accuracy_score([0, 1, 1, 0], [0, 1, 0, 0])
    Estimate(0.75, 95 % interval [0.1941, 0.9937], Clopper-Pearson)
    """
    matrix = ConfusionMatrix.of(y_true, y_pred, sample_weight)
    if normalize:
        return matrix.accuracy(level)
    return Estimate(np.trace(matrix.counts).item(), level=level, sentence="No interval: a number of rows, not a share.")


def balanced_accuracy_score(y_true: Any, y_pred: Any, *, sample_weight: Any = None, adjusted: bool = False) -> Estimate:
    """Mean recall of the classes in y_true; adjusted: (mean - 1/K) / (1 - 1/K), 0 for guessing one class.

    >>> float(balanced_accuracy_score([0, 1, 1, 0], [0, 1, 0, 0]))
    0.75
    """
    matrix = ConfusionMatrix.of(y_true, y_pred, sample_weight)
    return matrix.balanced_accuracy(adjusted=adjusted)


def precision_score(
    y_true: Any,
    y_pred: Any,
    *,
    labels: Any = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    sample_weight: Any = None,
    zero_division: Any = "warn",
    level: float = 0.95,
) -> Any:
    """TP / (TP + FP), with its interval where it is a share of rows.

    >>> precision_score([0, 1, 1, 0], [0, 1, 1, 1])
    Estimate(0.6666666666666666, 95 % interval [0.0943, 0.9916], Clopper-Pearson)
    """
    matrix = ConfusionMatrix.of(y_true, y_pred, sample_weight)
    return _score(matrix, "precision", labels, pos_label, average, zero_division, level=level)


def recall_score(
    y_true: Any,
    y_pred: Any,
    *,
    labels: Any = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    sample_weight: Any = None,
    zero_division: Any = "warn",
    level: float = 0.95,
) -> Any:
    """TP / (TP + FN), with its interval where it is a share of rows.

    >>> recall_score(["a", "b", "c"], ["a", "b", "b"], average="macro")
    Estimate(0.6666666666666666, no interval)
    """
    matrix = ConfusionMatrix.of(y_true, y_pred, sample_weight)
    return _score(matrix, "recall", labels, pos_label, average, zero_division, level=level)


def fbeta_score(
    y_true: Any,
    y_pred: Any,
    *,
    beta: float,
    labels: Any = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    sample_weight: Any = None,
    zero_division: Any = "warn",
) -> Any:
    """(1 + beta^2) P R / (beta^2 P + R).

    average "binary" scores `pos_label`; "micro" adds the counts of the classes in `labels` (None: all), "macro" is
    the mean of their scores, "weighted" the mean by their rows, None an array of one score per class.
    zero_division (0, 1 or nan) stands for 0 / 0; "warn" is 0 with a warning.

    >>> float(fbeta_score([0, 1, 1, 0], [0, 1, 1, 1], beta=2))
    0.9090909090909091
    """
    matrix = ConfusionMatrix.of(y_true, y_pred, sample_weight)
    return _score(matrix, "F_beta", labels, pos_label, average, zero_division, beta=beta)


def f1_score(
    y_true: Any,
    y_pred: Any,
    *,
    labels: Any = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    sample_weight: Any = None,
    zero_division: Any = "warn",
) -> Any:
    """2 P R / (P + R): `fbeta_score` with beta 1.

    >>> float(f1_score([0, 1, 1, 0], [0, 1, 1, 1]))
    0.8
    """
    matrix = ConfusionMatrix.of(y_true, y_pred, sample_weight)
    return _score(matrix, "F_beta", labels, pos_label, average, zero_division)


def _score(
    matrix: ConfusionMatrix, name: str, labels: Any, pos_label: Any, average: str | None, zero: Any, **options: Any
) -> Any:
    if not (zero == "warn" or zero in (0, 1) or (isinstance(zero, float) and math.isnan(zero))):
        raise ValueError(f"zero_division must be 'warn', 0, 1 or nan. Got {zero!r}.")
    classes = _chosen(matrix, labels, pos_label, average)
    options["zero_division"] = 0.0 if zero == "warn" else float(zero)
    if average in AVERAGES:
        scores = [matrix.score(name, classes, average, **options)]
    else:
        scores = [matrix.score(name, [label], **options) for label in classes]
    undefined = {score.sentence for score in scores if "0 / 0" in score.sentence}
    for sentence in sorted(undefined) if zero == "warn" else ():
        warnings.warn(f"{sentence} zero_division chooses the value.", UndefinedMetricWarning, stacklevel=3)
    return np.array(scores) if average is None else scores[0]


def _chosen(matrix: ConfusionMatrix, labels: Any, pos_label: Any, average: str | None) -> Sequence[Any]:
    """The classes that are scored."""
    if average == "binary":
        if labels is not None:
            raise ValueError("labels chooses the classes of an average. With average='binary' use pos_label.")
        if len(matrix.labels) > 2:
            averages = "'macro', 'micro', 'weighted' or None"
            raise ValueError(f"Got {len(matrix.labels)} classes. average='binary' needs two; use {averages}.")
        if len(matrix.labels) == 2 and pos_label not in matrix.labels:
            raise ValueError(f"pos_label={pos_label!r} is not one of the classes {list(matrix.labels)}.")
        return [pos_label]
    if average is not None and average not in AVERAGES:
        raise ValueError(f"average must be 'binary', 'micro', 'macro', 'weighted' or None. Got {average!r}.")
    if pos_label not in (None, 1):
        raise ValueError(f"pos_label is for average='binary'. Got {pos_label!r} with average={average!r}.")
    return matrix.labels if labels is None else column(labels, "labels").tolist()
