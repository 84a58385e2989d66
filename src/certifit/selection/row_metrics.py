"""Numbers per row whose means over rows are scores, from what was predicted: E y, or log p(k | x). Higher is better."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import xlogy
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier

from certifit.data.columns import Array
from certifit.data.user_types import UserRows, UserTarget
from certifit.models.folds.hook import RowMetric
from certifit.selection.scoring import SUFFICIENT, Scoring, row_scores

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
        return np.asarray(2 * (xlogy(y, y / mean) - y + mean))


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
    if scoring is not None and not isinstance(scoring, str):
        return None
    if is_classes:
        return CLASS_SCORES.get(scoring)
    return squared_errors if scoring in OF_SQUARES else ROW_ERRORS.get(scoring or "")


PredictedScores = Callable[[Any, Any, Any, Array], dict[str, Array]]  # (model, X, y, weight) -> name -> 1 x rows


def predicted_scores(estimator: BaseEstimator, scoring: Scoring) -> PredictedScores | None:
    """What makes row scores from a fitted estimator; None where a score is no function of means over rows."""
    if scoring is None:
        method = getattr(type(estimator), "score", None)
        scoring = {ClassifierMixin.score: "accuracy", RegressorMixin.score: "r2"}.get(method)
    if not isinstance(scoring, str):
        return None
    if is_classifier(estimator):
        is_known = scoring == "accuracy" or (scoring == "neg_log_loss" and hasattr(estimator, "predict_proba"))
        return _OfClasses(scoring) if is_known else None
    return _OfNumbers(scoring) if scoring in SUFFICIENT or scoring in ROW_ERRORS else None


class _OfNumbers:
    """Row scores of predicted numbers. Can be sent to a worker."""

    def __init__(self, scoring: str) -> None:
        self.scoring = scoring

    def __call__(self, model: BaseEstimator, X: UserRows, y: UserTarget, weight: Array) -> dict[str, Array]:
        y, predicted = np.asarray(y, dtype=np.float64), np.asarray(model.predict(X), dtype=np.float64)
        if self.scoring in ROW_ERRORS:
            return {"score": -ROW_ERRORS[self.scoring](y, predicted)[None, :]}
        return {"score": row_scores(self.scoring, np.square(y - predicted)[None, :], y, weight)}


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
