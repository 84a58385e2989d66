"""Scores that sums of squares determine: no row is needed again. Higher is better."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from certifit.data.columns import Array

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


def own_scoring(estimator: Any, scoring: Any) -> Any:
    """The score, or where none is named the one that the model has for that; None is its method `score`."""
    return getattr(estimator, "default_scoring", None) if scoring is None else scoring


def sufficient(scoring: Any) -> Score | None:
    """The score as a function of sums, or None where rows are needed."""
    return SUFFICIENT.get(scoring) if scoring is None or isinstance(scoring, str) else None
