"""A metric that belongs to a model: what it is scored by where the user names nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from sklearn.base import BaseEstimator

from certifit.data.columns import Array
from certifit.data.user_input import UserRows, UserTarget, UserWeights


class Metric(ABC):
    """A mean of errors over rows; lower is better. It is a scorer of scikit-learn: called, it gives minus that mean."""

    @property
    @abstractmethod
    def name(self) -> str:
        """As "mean pinball loss at 0.9"."""

    @property
    @abstractmethod
    def baseline(self) -> str:
        """What the constant of the smallest mean error is, as "0.9 quantile of y"."""

    @abstractmethod
    def errors(self, y: Array, predicted: Array) -> Array:
        """The error of every row."""

    @abstractmethod
    def constant(self, y: Array, weight: Array | None = None) -> float:
        """The number whose errors have the smallest mean."""

    def mean(self, y: Array, predicted: Array, weight: Array | None = None) -> float:
        """sum w error / sum w."""
        return float(np.average(self.errors(y, predicted), weights=weight))

    def __call__(
        self, estimator: BaseEstimator, X: UserRows, y: UserTarget, sample_weight: UserWeights = None
    ) -> float:
        """Minus the mean error of what a fitted estimator predicts for rows."""
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return -self.mean(np.asarray(y, dtype=np.float64), np.asarray(estimator.predict(X)), weight)
