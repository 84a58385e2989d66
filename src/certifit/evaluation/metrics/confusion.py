"""Counts of truth against prediction, and what is read off them.

    counts[i, j] = rows of class labels[i] predicted as labels[j]
    for a positive class:  TP = counts[+, +],  FN = the rest of its row,  FP = the rest of its column,  TN = the rest

    TPR = recall = TP / (TP + FN),  FPR = FP / (FP + TN),  precision = TP / (TP + FP)
    F_beta = (1 + beta^2) TP / ((1 + beta^2) TP + beta^2 FN + FP) = (1 + beta^2) P R / (beta^2 P + R)

Methods of ConfusionMatrix give nan for 0 / 0 and say so; the functions named as scikit-learn's have its
`zero_division`. Shares of unweighted counts carry a Clopper-Pearson interval.

Scores of predicted classes under scikit-learn's names, with its arguments and its `zero_division`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from certifit.data.columns import Array
from certifit.evaluation.metrics.intervals import (
    POOLED,
    WEIGHTED,
    Estimate,
    bootstrap,
    expanded_ends,
    percentile_ends,
    share,
)
from certifit.evaluation.metrics.rows import check_lengths, codes, column, in_order, row_weights

Score = Callable[["ConfusionMatrix"], float]
Average = Literal["micro", "macro", "weighted"]
NO_EXACT = "No interval: {} is not a share of rows. ConfusionMatrix.bootstrap gives an approximate one."
MOST_CLASSES = 5000  # 200 MB of counts
AVERAGES = ("micro", "macro", "weighted")


@dataclass(frozen=True, eq=False)
class ConfusionMatrix:
    """Rows counted by truth and prediction. Matrices add, so blocks, files and workers merge.

    `pooled=True` marks errors pooled over folds of cross-validation, which get no interval.

    >>> ConfusionMatrix.of(["cat", "dog", "dog", "cat"], ["cat", "dog", "cat", "cat"])
    ConfusionMatrix, truth in rows, prediction in columns:
         cat  dog
    cat    2    0
    dog    1    1
    >>> _.error()
    Estimate(0.25, 95 % interval [0.006309, 0.8059], Clopper-Pearson)
    """

    labels: tuple[Any, ...]
    counts: Array  # int64, or float64 when weighted
    weighted: bool = False
    pooled: bool = False

    @classmethod
    def of(
        cls, y_true: Any, y_pred: Any, sample_weight: Any = None, labels: Any = None, *, pooled: bool = False
    ) -> ConfusionMatrix:
        """Count rows. `labels`: the classes in the order wanted; each label of the rows must be one of them."""
        truth, prediction = column(y_true, "y_true"), column(y_pred, "y_pred")
        n_rows = check_lengths({"y_true": truth, "y_pred": prediction})
        weight = row_weights(sample_weight, n_rows)
        known, (i, j) = codes({"y_true": truth, "y_pred": prediction}, labels)
        if (size := len(known)) > MOST_CLASSES:
            raise ValueError(f"Got {size} distinct labels, limit {MOST_CLASSES}. Are these numbers to be regressed?")
        counts = np.bincount(i * size + j, weight, minlength=size * size).reshape(size, size)
        return cls(known, counts, weight is not None, pooled)

    def __add__(self, other: ConfusionMatrix) -> ConfusionMatrix:
        if not isinstance(other, ConfusionMatrix):
            return NotImplemented
        labels = self.labels if self.labels == other.labels else in_order({*self.labels, *other.labels})
        counts = self._spread(labels) + other._spread(labels)
        return ConfusionMatrix(labels, counts, self.weighted or other.weighted, self.pooled or other.pooled)

    def __radd__(self, other: Any) -> ConfusionMatrix:
        return self if other == 0 else NotImplemented  # sum() starts from 0

    @property
    def n(self) -> float:
        """Number of rows, or the sum of their weights."""
        return float(self.counts.sum())

    def accuracy(self, level: float = 0.95) -> Estimate:
        """Share of rows predicted right."""
        return share(np.trace(self.counts).item(), self.n, level, reason=self._reason())

    def error(self, level: float = 0.95) -> Estimate:
        """Share of rows predicted wrong: the held-out 0-1 risk."""
        return share(_off_diagonal(self.counts).sum().item(), self.n, level, reason=self._reason())

    def tpr(self, positive: Any = None, *, level: float = 0.95) -> Estimate:
        """TP / (TP + FN). `positive` is needed with more than two classes, else it is the second label."""
        return self.score("recall", self._classes(positive), level=level)

    def fpr(self, positive: Any = None, *, level: float = 0.95) -> Estimate:
        """FP / (FP + TN)."""
        return self.score("fpr", self._classes(positive), level=level)

    def precision(self, positive: Any = None, *, average: Average | None = None, level: float = 0.95) -> Estimate:
        """TP / (TP + FP) of the positive class, or the average over all classes."""
        return self.score("precision", self._classes(positive, average), average, level=level)

    def recall(self, positive: Any = None, *, average: Average | None = None, level: float = 0.95) -> Estimate:
        """TP / (TP + FN) of the positive class, or the average over all classes."""
        return self.score("recall", self._classes(positive, average), average, level=level)

    def f_beta(self, beta: float = 1.0, positive: Any = None, *, average: Average | None = None) -> Estimate:
        """(1 + beta^2) P R / (beta^2 P + R) of the positive class, or the average over all classes."""
        return self.score("F_beta", self._classes(positive, average), average, beta=beta)

    def balanced_accuracy(self, *, adjusted: bool = False) -> Estimate:
        """Mean recall of the K classes that have rows; adjusted: (mean - 1/K) / (1 - 1/K), 0 for guessing one class."""
        rows = self.counts.sum(axis=1)
        present = [label for label, n in zip(self.labels, rows, strict=True) if n > 0]
        chance = 1 / len(present) if adjusted else 0.0
        if chance == 1:
            return Estimate(math.nan, sentence="No value: adjusting for chance needs two classes in y_true.")
        value = (float(self.score("recall", present, "macro")) - chance) / (1 - chance)
        absent = [repr(label) for label, n in zip(self.labels, rows, strict=True) if n == 0]
        left_out = f" Left out, having no rows: {', '.join(absent)}." if absent else ""
        return Estimate(value, sentence=NO_EXACT.format("balanced accuracy") + left_out)

    def classes(self, level: float = 0.95) -> list[dict[str, Any]]:
        """One row per class: label, rows, precision, recall, fpr, F_beta (beta = 1)."""
        return [
            {"label": label, "rows": rows, **{name: self.score(name, [label], level=level) for name in RATIOS}}
            for label, rows in zip(self.labels, self.counts.sum(axis=1).tolist(), strict=True)
        ]

    def normalized(self, over: str) -> Array:
        """Shares of each "true" class (row), of each "pred" class (column), or of "all" rows; 0 for 0 / 0."""
        if over not in _AXES:
            raise ValueError(f"normalize must be 'true', 'pred', 'all' or None. Got {over!r}.")
        total = self.counts.sum(axis=_AXES[over], keepdims=True)
        return np.asarray(self.counts / np.where(total == 0, 1, total))

    def bootstrap(
        self, score: Score, *, n_resamples: int = 1000, level: float = 0.95, random_state: int = 0
    ) -> Estimate:
        """score(matrix) with the interval of resampled rows, drawn as counts: the cost does not grow with the rows.

        >>> matrix = ConfusionMatrix((0, 1), np.array([[50, 10], [5, 35]]))
        >>> matrix.bootstrap(lambda m: m.f_beta(1.0), n_resamples=200)
        Estimate(0.8235294117647058, 95 % interval [0.7227, 0.9041], bootstrap percentile, expanded)
        """
        if self._reason():
            return Estimate(score(self), level=level, sentence=self._reason())
        n, shares = int(self.n), (self.counts / self.n).ravel()

        def replicate(rng: np.random.Generator) -> float:
            return score(replace(self, counts=rng.multinomial(n, shares).reshape(self.counts.shape)))

        ends = expanded_ends(n, percentile_ends)
        name = "bootstrap percentile, expanded"
        return bootstrap(score(self), replicate, n_resamples, level, random_state, ends, name)

    def score(
        self,
        name: str,
        classes: Sequence[Any],
        average: str | None = None,
        *,
        beta: float = 1.0,
        zero_division: float = math.nan,
        level: float = 0.95,
    ) -> Estimate:
        """A ratio of `RATIOS` for one class, or averaged over classes; `zero_division` stands for 0 / 0."""
        top, bottom, rows = self._ratio(name, classes, beta)
        if average == "micro":
            top, bottom = top.sum(keepdims=True), bottom.sum(keepdims=True)
        undefined = bottom == 0
        word = _undefined_words(name, classes, undefined, zero_division, average) if undefined.any() else ""
        if len(bottom) == 1 and not word and name in _SHARES:
            return share(top[0].item(), bottom[0].item(), level, reason=self._reason())
        values = np.where(undefined, zero_division, top / np.where(undefined, 1, bottom))
        reason = self._reason() or NO_EXACT.format(f"{average or ''} {name}".strip())
        return Estimate(_mean(values, rows if average == "weighted" else None), level=level, sentence=word or reason)

    def _ratio(self, name: str, classes: Sequence[Any], beta: float) -> tuple[Array, Array, Array]:
        """(numerators, denominators, rows) of the classes; a class without rows has zeros."""
        labels = (*self.labels, *(label for label in classes if label not in self.labels))
        counts = self._spread(labels)
        at = [labels.index(label) for label in classes]
        tp, wrong, rows = np.diagonal(counts), _off_diagonal(counts), counts.sum(axis=1)
        negatives = np.array([np.delete(rows, i).sum() for i in at])
        top, bottom = RATIOS[name](tp[at], wrong.sum(axis=0)[at], wrong.sum(axis=1)[at], negatives, beta)
        return top, bottom, rows[at]

    def _spread(self, labels: tuple[Any, ...]) -> Array:
        if labels == self.labels:
            return self.counts
        at = [labels.index(label) for label in self.labels]
        out = np.zeros((len(labels), len(labels)), dtype=self.counts.dtype)
        out[np.ix_(at, at)] = self.counts
        return out

    def _classes(self, positive: Any, average: str | None = None) -> Sequence[Any]:
        if average is None and (positive in self.labels or (positive is None and len(self.labels) == 2)):
            return [self.labels[1] if positive is None else positive]
        if average in AVERAGES and positive is None:
            return self.labels
        legal = f"a positive class of {list(self.labels)} or an average of {list(AVERAGES)}"
        raise ValueError(f"Name {legal}. Got positive={positive!r}, average={average!r}.")

    def _reason(self) -> str:
        return POOLED if self.pooled else WEIGHTED if self.weighted else ""

    def __repr__(self) -> str:
        form = "{:.6g}".format if self.weighted else "{:d}".format
        cells = [["", *map(str, self.labels)]]
        cells += [[str(label), *map(form, row)] for label, row in zip(self.labels, self.counts.tolist(), strict=True)]
        first = max(len(row[0]) for row in cells)
        width = max(len(cell) for row in cells for cell in row[1:])
        lines = [row[0].ljust(first) + "".join("  " + cell.rjust(width) for cell in row[1:]) for row in cells]
        return "\n".join(["ConfusionMatrix, truth in rows, prediction in columns:", *lines])


# name -> (TP, FP, FN, FP + TN, beta) -> numerator, denominator
RATIOS: dict[str, Callable[[Array, Array, Array, Array, float], tuple[Array, Array]]] = {
    "precision": lambda tp, fp, fn, negatives, beta: (tp, tp + fp),
    "recall": lambda tp, fp, fn, negatives, beta: (tp, tp + fn),
    "fpr": lambda tp, fp, fn, negatives, beta: (fp, negatives),
    "F_beta": lambda tp, fp, fn, negatives, beta: _f_beta(tp, fp, fn, beta),
}
_SHARES = ("precision", "recall", "fpr")  # counts among rows that a fixed rule picks: binomial given their number
_EMPTY = {
    "precision": "no row was predicted as it",
    "recall": "it has no row",
    "fpr": "every row is of it",
    "F_beta": "it has no row and no prediction",
}
_AXES = {"true": 1, "pred": 0, "all": None}


def _off_diagonal(counts: Array) -> Array:
    return np.where(np.eye(len(counts), dtype=bool), 0, counts)


def _f_beta(tp: Array, fp: Array, fn: Array, beta: float) -> tuple[Array, Array]:
    if not beta >= 0:
        raise ValueError(f"beta must be >= 0. Got {beta}.")
    if math.isinf(beta):
        return tp, tp + fn
    square = beta * beta
    return (1 + square) * tp, square * (tp + fn) + (tp + fp)


def _undefined_words(name: str, classes: Sequence[Any], undefined: Array, value: float, average: str | None) -> str:
    named = [
        repr(label) for label, missing in zip(classes, np.broadcast_to(undefined, len(classes)), strict=True) if missing
    ]
    shown = ", ".join(named[:5]) + (", ..." if len(named) > 5 else "")
    left_out = average in ("macro", "weighted") and math.isnan(value)
    verdict = "left out of the average" if left_out else f"counted as {value:g}"
    return f"No interval: {name} of {shown} is 0 / 0 ({_EMPTY[name]}), {verdict}."


def _mean(values: Array, weight: Array | None) -> float:
    """Mean of the values that are not nan; their plain mean where all weights are 0."""
    defined = ~np.isnan(values)
    if not defined.any():
        return math.nan
    if weight is None or not weight[defined].sum() > 0:
        return float(np.mean(values[defined]))
    return float(np.average(values[defined], weights=weight[defined]))


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
