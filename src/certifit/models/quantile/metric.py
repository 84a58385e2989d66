"""The pinball loss as a metric.

    rho(r) = q r if r >= 0 else (q - 1) r,   r = y - prediction

Its mean is smallest for the quantile q of the targets, so it is what a model of that quantile is scored by.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.models.metric import Metric


@dataclass(frozen=True)
class PinballLoss(Metric):
    """Mean of rho over rows. quantile: q, above 0 and below 1."""

    quantile: float

    @property
    def name(self) -> str:
        """What it is called."""
        return f"mean pinball loss at {self.quantile:g}"

    @property
    def baseline(self) -> str:
        """The best constant."""
        return f"{self.quantile:g} quantile of y"

    def errors(self, y: Array, predicted: Array) -> Array:
        """rho(y - predicted) of every row."""
        r = y - predicted
        return np.asarray(np.maximum(self.quantile * r, (self.quantile - 1) * r))

    def constant(self, y: Array, weight: Array | None = None) -> float:
        """The smallest target that a share q of the weight does not exceed."""
        order = np.argsort(y, kind="stable")
        reached = np.cumsum(np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)[order])
        return float(y[order[min(np.searchsorted(reached, self.quantile * reached[-1]), len(y) - 1)]])
