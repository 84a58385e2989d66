"""Scores that sums of squares determine: no row is needed again. Higher is better."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

from certifit.data.columns import Array
from certifit.models.adapter import learner_of

Scorer = Callable[..., float]  # of scikit-learn: (estimator, X, y, sample_weight=)
Scoring: TypeAlias = str | Scorer | None
"""scoring: a name that scikit-learn knows, or a scorer; None is the estimator's own score."""
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
    centre = float(weight @ y) / float(weight.sum())
    total = np.asarray(float(weight @ (y - centre) ** 2) / float(weight.sum()) if len(y) > 1 else np.nan)
    return _r2(squares, np.broadcast_to(total, squares.shape), weight)


def of_mean(scoring: Scoring, mean: Any) -> Any:
    """The score of rows whose row scores have this mean: the mean itself, and its root for root mean squares."""
    return -np.sqrt(-np.asarray(mean)) if scoring == "neg_root_mean_squared_error" else mean
