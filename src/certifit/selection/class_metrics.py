"""Metrics of classes that were predicted out of fold, with approximate intervals.

Errors of rows that were predicted by models that did not see them are nearly independent where one fold more or less
hardly changes a model (Bayle, Bayle, Janson and Mackey 2020); the intervals here are those of independent rows, and
their sentences say so. The AUC counts pairs of rows of one fold (`fold_ranking`). F1 and balanced accuracy have the
interval of the delta method: with shares p_ij of the rows of class i predicted as j and slopes g_ij of the metric,

    var = (sum_ij p_ij g_ij^2 - (sum_ij p_ij g_ij)^2) / n,

symmetric in log(value / (1 - value)), so it stays inside (0, 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from certifit.data.columns import Array
from certifit.evaluation.auc_intervals import normal_quantile
from certifit.evaluation.fold_ranking import (
    NO_PAIR,
    OUT_OF_FOLD,
    SHARED_ROWS,
    FoldPairs,
    fold_auc,
    fold_effects,
    fold_pairs,
    fold_roc,
)
from certifit.evaluation.intervals import Estimate, interval_words
from certifit.evaluation.ranked_area import student_quantile
from certifit.evaluation.scored_rows import ScoredRows, scored_rows

if TYPE_CHECKING:
    from certifit.selection.class_validation import ClassValidation

SEEN = "No interval: the model was fitted to these rows."
WEIGHTED = "No interval: the rows carry weights."
ONE_CLASS = "No value: the rows are of one class."
RANKS_NOTHING = "No interval: every row of a fold has the same probabilities, so rows are not ranked."


def resentenced(validation: ClassValidation, value: Any) -> Any:
    """An estimate that says what its interval is worth out of fold; anything else as it is."""
    if not isinstance(value, Estimate) or value.low is None:
        return value
    if validation.is_seen:
        return Estimate(value, level=value.level, sentence=SEEN)
    sentence = f"{interval_words(value.level, value.low, value.high)} ({value.method}): {OUT_OF_FOLD}."
    return Estimate(value, value.low, value.high, level=value.level, method=value.method, sentence=sentence)


def _accuracy(validation: ClassValidation, level: float) -> Estimate:
    value: Estimate = resentenced(validation, replace(validation.matrix, pooled=False).accuracy(level))
    return value


def _log_loss(validation: ClassValidation, level: float) -> Estimate:
    """Mean of -log p, +- z sd / sqrt(n)."""
    loss = validation.loss
    mean = math.ldexp(loss.mean, loss.exponent)
    if validation.weight is not None or loss.weight < 2:
        return Estimate(
            mean, level=level, sentence=WEIGHTED if validation.weight is not None else "No interval: one row."
        )
    error = math.ldexp(math.sqrt(loss.squares / (loss.weight - 1) / loss.weight), loss.exponent)
    half = normal_quantile(level) * error
    if not half > 0:
        return Estimate(mean, level=level, sentence="No interval: every row has the same loss.")
    return _between(validation, mean, max(mean - half, 0.0), mean + half, level, "normal")


def _f1(validation: ClassValidation, level: float) -> Estimate:
    """2 TP / (2 TP + FN + FP) of the second of two classes, or the mean over the classes."""
    counts = validation.matrix.counts / validation.matrix.counts.sum()
    both = counts.sum(axis=0) + counts.sum(axis=1)
    of = np.array([1]) if len(counts) == 2 else np.flatnonzero(both > 0)
    if not (both[of] > 0).all():
        return Estimate(math.nan, level=level, sentence="No value: no row is of the class or predicted as it.")
    f1 = 2 * np.diagonal(counts)[of] / both[of]
    slopes = np.zeros_like(counts)
    slopes[of, of] += 2 / both[of]
    slopes[of, :] -= (f1 / both[of])[:, None]
    slopes[:, of] -= f1 / both[of]
    return _by_slopes(validation, float(f1.mean()), counts, slopes / len(of), level)


def _balanced_accuracy(validation: ClassValidation, level: float) -> Estimate:
    """Mean recall of the classes that have rows."""
    counts = validation.matrix.counts / validation.matrix.counts.sum()
    rows = counts.sum(axis=1)
    of = np.flatnonzero(rows > 0)
    recall = np.diagonal(counts)[of] / rows[of]
    slopes = np.zeros_like(counts)
    slopes[of, of] += 1 / rows[of]
    slopes[of, :] -= (recall / rows[of])[:, None]
    return _by_slopes(validation, float(recall.mean()), counts, slopes / len(of), level)


def class_auc(validation: ClassValidation, code: int, level: float) -> Estimate:
    """Area of one class against the rest: pairs of one fold, each ranked by the model that saw neither row."""
    if validation.is_constant:
        return Estimate(0.5, level=level, sentence=RANKS_NOTHING)
    if not 0 < np.count_nonzero(validation.codes == code) < len(validation.codes):
        return Estimate(math.nan, level=level, sentence=ONE_CLASS)
    found = fold_auc(_scored(validation, code), _folds(validation), level)
    return Estimate(found, level=level, sentence=SEEN) if validation.is_seen else found


def class_roc(validation: ClassValidation, code: int) -> tuple[Array, Array]:
    """fpr and tpr of the mean of the folds' curves, whose area is `class_auc`; empty where no fold has both classes."""
    rows, folds = _scored(validation, code), _folds(validation)
    return fold_roc(rows, folds) if fold_pairs(rows, folds).pairs > 0 else (np.zeros(0), np.zeros(0))


def _scored(validation: ClassValidation, code: int) -> ScoredRows:
    is_own = (validation.codes == code).astype(np.int64)
    return scored_rows(is_own, validation.log_odds(code), validation.weight)


def _folds(validation: ClassValidation) -> Array:
    return np.zeros(len(validation.codes), dtype=np.int64) if validation.fold is None else validation.fold


def _auc(validation: ClassValidation, level: float) -> Estimate:
    if len(validation.classes) > 2 and not validation.is_constant:
        return _mean_auc(validation, level)
    return class_auc(validation, 1, level)


def _mean_auc(validation: ClassValidation, level: float) -> Estimate:
    """Mean over the classes of the area of one against the rest, where folds hold both.

    A row moves the area of each class (`fold_effects`); its effects on all areas are averaged, so what they share is
    counted. The variance is SHARED_ROWS times the sum of squared effects.
    """
    n_rows, folds = len(validation.codes), _folds(validation)
    if len(np.unique(validation.codes)) < 2:
        return Estimate(math.nan, level=level, sentence=ONE_CLASS)
    areas: list[FoldPairs] = []
    effects = np.zeros(n_rows)
    fewest = n_rows
    for k in range(len(validation.classes)):
        size = int(np.count_nonzero(validation.codes == k))
        if not 0 < size < n_rows:
            continue
        rows = _scored(validation, k)
        found = fold_pairs(rows, folds)
        if found.pairs == 0:
            continue
        areas.append(found)
        fewest = min(fewest, size, n_rows - size)
        if validation.weight is None:
            effects += fold_effects(rows, folds, found)
    if not areas:
        return Estimate(math.nan, level=level, sentence=NO_PAIR.format(""))
    error = math.sqrt(SHARED_ROWS * n_rows / (n_rows - 1) * float(effects @ effects)) / len(areas)
    value = float(np.mean([each.auc for each in areas]))
    quantile = student_quantile(level, max(fewest - 1, 1))
    return _on_logit(validation, value, error, level, "DeLong within folds, mean of the classes", quantile)


def _by_slopes(validation: ClassValidation, value: float, shares: Array, slopes: Array, level: float) -> Estimate:
    first = float((shares * slopes).sum())
    variance = float((shares * slopes**2).sum()) - first**2
    return _on_logit(validation, value, math.sqrt(max(variance, 0.0) / validation.matrix.n), level, "delta method")


def _on_logit(
    validation: ClassValidation, value: float, error: float, level: float, method: str, quantile: float | None = None
) -> Estimate:
    """The interval that is symmetric in log(value / (1 - value)); quantile: of the normal law where none is given."""
    quantile = normal_quantile(level) if quantile is None else quantile
    if validation.weight is not None:
        return Estimate(value, level=level, sentence=WEIGHTED)
    if not (error > 0 and 0 < value < 1):
        return Estimate(
            value, level=level, sentence=f"No interval: the {method} needs errors, and there are none here."
        )
    centre, half = special.logit(value), quantile * error / (value * (1 - value))
    low, high = float(special.expit(centre - half)), float(special.expit(centre + half))
    return _between(validation, value, low, high, level, method)


def _between(validation: ClassValidation, value: float, low: float, high: float, level: float, method: str) -> Estimate:
    found: Estimate = resentenced(validation, Estimate(value, low, high, level=level, method=method))
    return found


METRICS: dict[str, Callable[[ClassValidation, float], Estimate]] = {
    "accuracy": _accuracy,
    "log_loss": _log_loss,
    "auc": _auc,
    "f1": _f1,
    "balanced_accuracy": _balanced_accuracy,
}
