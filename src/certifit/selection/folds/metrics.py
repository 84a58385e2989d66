"""Metrics of fits that were cross-validated; of scores, higher is better.

First scores that sums of squares determine, which need no row again; then scores that are means over rows; then metrics
of classes with approximate intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import special
from scipy.special import xlogy
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier

from certifit.data.columns import Array
from certifit.data.user_input import UserRows, UserTarget
from certifit.evaluation.metrics.auc_intervals import normal_quantile, student_quantile
from certifit.evaluation.metrics.intervals import Estimate, interval_words
from certifit.evaluation.metrics.ranking import (
    NO_PAIR,
    OUT_OF_FOLD,
    SHARED_ROWS,
    FoldPairs,
    fold_auc,
    fold_effects,
    fold_pairs,
    fold_roc,
)
from certifit.evaluation.metrics.rows import ScoredRows, scored_rows
from certifit.models.adapter import learner_of
from certifit.models.estimator import Regressor
from certifit.models.folds import RowMetric
from certifit.models.metric import Metric
from certifit.statistics.loss_sums import row_spread

if TYPE_CHECKING:
    from certifit.selection.folds.class_validation import ClassValidation


Scorer = Callable[..., float]  # of scikit-learn: (estimator, X, y, sample_weight=)
Scoring: TypeAlias = str | Scorer | Metric | None
"""scoring: a name that scikit-learn knows, a scorer or a metric of a model; None is the estimator's own score."""
UserGrid: TypeAlias = Mapping[str, Sequence[object]] | Sequence[Mapping[str, Sequence[object]]] | None
"""param_grid: values by parameter, or a list of such; None lets the model choose."""
Score = Callable[[Array, Array, Array], Array]  # (squares, total about the rows' own mean, sum of weights)


def _r2(squares: Array, total: Array, weight: Array) -> Array:
    """1 - squares / total; a constant target is 1 for an exact fit, else 0, as scikit-learn has it."""
    exact = np.where(squares > 0, 0.0, 1.0)
    return np.where(total > 0, 1.0 - np.divide(squares, total, out=np.ones_like(squares), where=total > 0), exact)


def _negative_mse(squares: Array, total: Array, weight: Array) -> Array:
    return -squares / weight


def _negative_rmse(squares: Array, total: Array, weight: Array) -> Array:
    return -np.sqrt(squares / weight)


SUFFICIENT: dict[str | None, Score] = {
    None: _r2,
    "r2": _r2,
    "neg_mean_squared_error": _negative_mse,
    "neg_root_mean_squared_error": _negative_rmse,
}


def own_scoring(estimator: BaseEstimator, scoring: Scoring) -> Scoring:
    """The score, or where none is named the one that the model has for that; None is its method `score`."""
    return estimator.default_scoring if scoring is None and learner_of(estimator).is_ours else scoring


def sufficient(scoring: Scoring) -> Score | None:
    """The score as a function of sums, or None where rows are needed."""
    return SUFFICIENT.get(scoring) if scoring is None or isinstance(scoring, str) else None


def row_scores(scoring: Scoring, squares: Array, y: Array, weight: Array) -> Array:
    """A number per row whose mean over the rows of a split leads to its score (`of_mean`), from squared errors.

    R2 of a row is 1 - e^2 / (mean square of y about its mean over the rows of the split).
    """
    if scoring not in (None, "r2"):
        return -squares
    total = np.asarray(row_spread(y, weight) / float(weight.sum()))
    return _r2(squares, np.broadcast_to(total, squares.shape), weight)


def of_mean(scoring: Scoring, mean: Any) -> Any:
    """The score of rows whose row scores have this mean: the mean itself, and its root for root mean squares."""
    return -np.sqrt(-np.asarray(mean)) if scoring == "neg_root_mean_squared_error" else mean


# ---- means over rows, from what was predicted: E y, or log p(k | x) --------------------------------------------------

LEAST_LOG = float(np.log(np.finfo(np.float64).eps))  # a logarithm of a probability counts as this, as in scikit-learn


def accuracies(codes: Array, log_proba: Array) -> Array:
    """1 where the most probable class is that of the row, else 0."""
    return np.asarray(log_proba.argmax(axis=1) == codes, dtype=np.float64)


def log_scores(codes: Array, log_proba: Array) -> Array:
    """log p(class of the row | x), at least log(2.2e-16)."""
    of_class = np.where(codes >= 0, log_proba[np.arange(len(codes)), codes.clip(min=0)], -np.inf)
    return np.maximum(of_class, LEAST_LOG)


def squared_errors(y: Array, mean: Array) -> Array:
    """(y - E y)^2."""
    return np.asarray(np.square(y - mean))


def absolute_errors(y: Array, mean: Array) -> Array:
    """|y - E y|."""
    return np.asarray(np.abs(y - mean))


def poisson_deviances(y: Array, mean: Array) -> Array:
    """2 (y log(y / E y) - y + E y)."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(np.isposinf(mean), np.inf, 2 * (xlogy(y, y / mean) - y + mean)))


def gamma_deviances(y: Array, mean: Array) -> Array:
    """2 (log(E y / y) + y / E y - 1)."""
    return np.asarray(2 * (np.log(mean / y) + y / mean - 1))


CLASS_SCORES: dict[str | None, RowMetric] = {None: accuracies, "accuracy": accuracies, "neg_log_loss": log_scores}
ROW_ERRORS: dict[str, RowMetric] = {
    "neg_mean_squared_error": squared_errors,
    "neg_mean_absolute_error": absolute_errors,
    "neg_mean_poisson_deviance": poisson_deviances,
    "neg_mean_gamma_deviance": gamma_deviances,
}
OF_SQUARES = ("r2", "neg_root_mean_squared_error")  # functions of the mean of squared errors and of the target


def row_metric(scoring: Scoring, is_classes: bool) -> RowMetric | None:
    """What a score is a function of the mean of; None where it is none, or the estimator's own score of numbers.

    Of numbers it is an error: lower is better.
    """
    if is_classes:
        return CLASS_SCORES.get(scoring) if scoring is None or isinstance(scoring, str) else None
    return squared_errors if scoring in OF_SQUARES else row_errors(scoring)


def row_errors(scoring: Scoring) -> RowMetric | None:
    """The errors of numbers whose mean is minus the score; None of other scores."""
    if isinstance(scoring, Metric):
        return scoring.errors
    return ROW_ERRORS.get(scoring) if isinstance(scoring, str) else None


PREDICTED = "predicted"  # name of the predicted numbers among the values of validation rows
PredictedScores = Callable[[Any, Any, Any, Array], dict[str, Array]]  # (model, X, y, weight) -> name -> 1 x rows


def predicted_scores(estimator: BaseEstimator, scoring: Scoring) -> PredictedScores | None:
    """What makes row scores from a fitted estimator; None where a score is no function of means over rows."""
    if scoring is None:
        method = getattr(type(estimator), "score", None)
        by_method = {ClassifierMixin.score: "accuracy", RegressorMixin.score: "r2", Regressor.score: "r2"}
        scoring = by_method.get(method)
    if is_classifier(estimator):
        is_known = scoring == "accuracy" or (scoring == "neg_log_loss" and hasattr(estimator, "predict_proba"))
        return _OfClasses(str(scoring)) if is_known else None
    return _OfNumbers(scoring) if sufficient(scoring) or row_errors(scoring) else None


class _OfNumbers:
    """Row scores of predicted numbers. Can be sent to a worker."""

    def __init__(self, scoring: Scoring) -> None:
        self.scoring = scoring

    def __call__(self, model: BaseEstimator, X: UserRows, y: UserTarget, weight: Array) -> dict[str, Array]:
        y, predicted = np.asarray(y, dtype=np.float64), np.asarray(model.predict(X), dtype=np.float64)
        if errors := row_errors(self.scoring):
            scores = -errors(y, predicted)[None, :]
        else:
            scores = row_scores(self.scoring, np.square(y - predicted)[None, :], y, weight)
        return {"score": scores, PREDICTED: predicted[None, :]}


class _OfClasses:
    """Row scores of predicted classes. Can be sent to a worker."""

    def __init__(self, scoring: str) -> None:
        self.scoring = scoring

    def __call__(self, model: BaseEstimator, X: UserRows, y: UserTarget, weight: Array) -> dict[str, Array]:
        y = np.asarray(y)
        is_right = np.asarray(np.asarray(model.predict(X)) == y, dtype=np.float64)[None, :]
        if self.scoring == "accuracy":
            return {"score": is_right, "accuracy": is_right}
        proba = np.asarray(model.predict_proba(X))
        places = np.searchsorted(model.classes_, y).clip(max=len(model.classes_) - 1)
        of_class = np.where(model.classes_[places] == y, proba[np.arange(len(y)), places], 0.0)
        with np.errstate(divide="ignore"):
            return {"score": np.maximum(np.log(of_class), LEAST_LOG)[None, :], "accuracy": is_right}


# ---- classes that were predicted out of fold -------------------------------------------------------------------------
# Errors of rows that were predicted by models that did not see them are nearly independent where one fold more or
# less hardly changes a model (Bayle, Bayle, Janson and Mackey 2020); the intervals here are those of independent
# rows, and their sentences say so. The AUC counts pairs of rows of one fold (`fold_ranking`). F1 and balanced
# accuracy have the interval of the delta method: with shares p_ij of the rows of class i predicted as j and slopes
# g_ij of the metric,
#
#     var = (sum_ij p_ij g_ij^2 - (sum_ij p_ij g_ij)^2) / n,
#
# symmetric in log(value / (1 - value)), so it stays inside (0, 1).

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
    area = fold_auc(_scored(validation, code), _folds(validation), level)
    return Estimate(area, level=level, sentence=SEEN) if validation.is_seen else area


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
        pairs = fold_pairs(rows, folds)
        if pairs.pairs == 0:
            continue
        areas.append(pairs)
        fewest = min(fewest, size, n_rows - size)
        if validation.weight is None:
            effects += fold_effects(rows, folds, pairs)
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
    estimate: Estimate = resentenced(validation, Estimate(value, low, high, level=level, method=method))
    return estimate


METRICS: dict[str, Callable[[ClassValidation, float], Estimate]] = {
    "accuracy": _accuracy,
    "log_loss": _log_loss,
    "auc": _auc,
    "f1": _f1,
    "balanced_accuracy": _balanced_accuracy,
}
