"""Scores of a model of means on every split, from fits to all training sets at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import get_scorer

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.models.mean_folds import ROW_ERRORS, MeanModels, squared_errors
from certifit.runtime import one_blas_thread
from certifit.selection.baseline import MeanOfTarget
from certifit.selection.class_engine import Candidate, FoldScores
from certifit.selection.rows import Rows, reading_new_levels
from certifit.selection.scoring import row_scores, sufficient
from certifit.statistics.held_out import HeldOut

OF_SQUARES = ("r2", "neg_root_mean_squared_error")


@one_blas_thread
def mean_scores(
    estimator: Any,
    rows: Rows,
    rounds: Sequence[Splits],
    candidates: Sequence[Candidate],
    scoring: Any,
    with_training: bool = False,
    with_rows: bool = False,
) -> FoldScores | None:
    """Scores of all candidates and splits; None where each needs a refit. detail: the models."""
    if scoring is None or (with_training and not is_of_rows(scoring)):
        return None
    models = reading_new_levels(estimator, rows.source).mean_fold_models(rows.source, rounds, candidates)
    if models is None:
        return None
    scores = scores_of_means(models, len(candidates), scoring, with_training)
    return replace(scores, held_out=_held_out(models, scoring)) if with_rows and is_of_rows(scoring) else scores


def _held_out(models: MeanModels, scoring: str) -> list[HeldOut]:
    """Row scores of the validation rows of every split."""
    if scoring in ROW_ERRORS:
        found = models.held_out(ROW_ERRORS[scoring])
        return [replace(split, values={"score": -split.values["error"]}) for split in found]
    squared = models.held_out(squared_errors)
    return [
        replace(split, values={"score": row_scores(scoring, split.values["error"], split.y, split.weight)})
        for split in squared
    ]


def is_of_rows(scoring: Any) -> bool:
    """Whether a score is a function of means over rows, so that training rows have it too."""
    return isinstance(scoring, str) and (scoring in ROW_ERRORS or scoring in OF_SQUARES)


def scores_of_means(models: MeanModels, n_candidates: int, scoring: Any, with_training: bool = False) -> FoldScores:
    """Scores of models of every candidate and split."""
    if not is_of_rows(scoring):
        scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
        validation, weight = _scored(models, n_candidates, scorer)
        return FoldScores(None, validation, weight, "statistics", models)
    error = ROW_ERRORS.get(scoring, squared_errors)
    train, validation, weight = models.errors(error, with_training)
    if scoring in ROW_ERRORS:
        return FoldScores(None if train is None else -train, -validation, weight, "statistics", models)
    return _of_squares(models, scoring, train, validation, weight)


def _of_squares(models: MeanModels, scoring: str, train: Array | None, validation: Array, weight: Array) -> FoldScores:
    """R2 and the root of the mean square, whose totals come from the targets alone."""
    score = sufficient(scoring)
    if score is None:
        raise ValueError(f"{scoring!r} is no function of squares.")
    moments = MeanOfTarget().fold_path(models.source, models.rounds, [{}])
    held = score(validation * weight, moments.validation_total, weight)
    if train is not None:
        train = score(train * moments.train_weight, moments.train_total, moments.train_weight)
    return FoldScores(train, held, weight, "statistics", models)


def _scored(models: MeanModels, n_candidates: int, scorer: Any) -> tuple[Array, Array]:
    """Scores of any kind on the validation rows of every split, and the weight of those."""
    table, weights = [], []
    for c in range(n_candidates):
        found = list(models.validated(c))
        table.append([_score_of(scorer, *one) for one in found])
        weights = [float(len(y) if weight is None else weight.sum()) for y, _, weight in found]
    return np.array(table), np.array(weights)


def _score_of(scorer: Any, y: Array, mean: Array, weight: Array | None) -> float:
    options = {} if weight is None else {"sample_weight": weight}
    return float(scorer(Predicted(mean), np.zeros((len(y), 1)), y, **options))


class Predicted(RegressorMixin, BaseEstimator):
    """Predictions that are there already, for a scorer."""

    def __init__(self, predictions: Array) -> None:
        self.predictions = predictions

    def predict(self, X: Any) -> Array:
        """The predictions."""
        return self.predictions

    def __sklearn_is_fitted__(self) -> bool:
        return True
