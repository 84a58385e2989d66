"""Scores of single rows from the predictions of any fitted estimator, for scores that are means over rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier

from certifit.data.columns import Array
from certifit.models.class_folds import LEAST_LOG
from certifit.models.mean_folds import ROW_ERRORS
from certifit.selection.scoring import SUFFICIENT, row_scores

PredictedScores = Callable[[Any, Any, Any, Array], dict[str, Array]]  # (model, X, y, weight) -> name -> 1 x rows


def predicted_scores(estimator: Any, scoring: Any) -> PredictedScores | None:
    """What makes row scores of this kind; None where a score is no function of means over rows."""
    if scoring is None:
        own = type(estimator).score if hasattr(type(estimator), "score") else None
        scoring = {ClassifierMixin.score: "accuracy", RegressorMixin.score: "r2"}.get(own)
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

    def __call__(self, model: Any, X: Any, y: Any, weight: Array) -> dict[str, Array]:
        y, predicted = np.asarray(y, dtype=np.float64), np.asarray(model.predict(X), dtype=np.float64)
        if self.scoring in ROW_ERRORS:
            return {"score": -ROW_ERRORS[self.scoring](y, predicted)[None, :]}
        return {"score": row_scores(self.scoring, np.square(y - predicted)[None, :], y, weight)}


class _OfClasses:
    """Row scores of predicted classes. Can be sent to a worker."""

    def __init__(self, scoring: str) -> None:
        self.scoring = scoring

    def __call__(self, model: Any, X: Any, y: Any, weight: Array) -> dict[str, Array]:
        y = np.asarray(y)
        is_right = np.asarray(np.asarray(model.predict(X)) == y, dtype=np.float64)[None, :]
        if self.scoring == "accuracy":
            return {"score": is_right, "accuracy": is_right}
        proba = np.asarray(model.predict_proba(X))
        places = np.searchsorted(model.classes_, y).clip(max=len(model.classes_) - 1)
        own = np.where(model.classes_[places] == y, proba[np.arange(len(y)), places], 0.0)
        with np.errstate(divide="ignore"):
            return {"score": np.maximum(np.log(own), LEAST_LOG)[None, :], "accuracy": is_right}
