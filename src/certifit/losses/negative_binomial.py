"""The negative binomial loss with the log link: the logistic loss of a share, at a shifted score."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from certifit.data.columns import Array
from certifit.families.deviances import shares
from certifit.losses.scores import Logistic, ScoreLoss

_LOGISTIC = Logistic()


@dataclass(frozen=True)
class NegativeBinomialLog(ScoreLoss):
    """l = y log(q / s) + (1/alpha) log((1 - q) / (1 - s)), odds q / (1 - q) = alpha y, s / (1 - s) = alpha e^z.

    It is m = y + 1/alpha times the logistic loss of the share q = y / m at the score z + log alpha.
    """

    alpha: float

    name = "the negative binomial loss"
    code = 5
    concordance = 1.0  # a multiple of the logistic loss, which has 1
    has_conjugate = True
    legal = ">= 0"

    @property
    def parameter(self) -> float:
        """alpha."""
        return float(self.alpha)

    def value(self, y: Array, z: Array) -> Array:
        """m [q log(q / s) + (1 - q) log((1 - q) / (1 - s))]; log(1 + alpha e^z) / alpha for y = 0."""
        m, q, t = self._as_share(y, z)
        rest = 1 / (1 + self.alpha * y)
        none = (np.maximum(t, 0.0) + np.log1p(np.exp(-np.abs(t)))) / self.alpha
        u = z - np.log(np.where(y > 0, y, 1.0))
        return np.where(y > 0, m * shares(q, rest, u), none)

    def slope(self, y: Array, z: Array) -> Array:
        """(mu - y) / (1 + alpha mu)."""
        at = z + math.log(self.alpha)
        return np.asarray(expit(at) / self.alpha - y * expit(-at))

    def curvature(self, y: Array, z: Array) -> Array:
        """m s (1 - s)."""
        m, q, at = self._as_share(y, z)
        return np.asarray(m * _LOGISTIC.curvature(q, at))

    def expected(self, y: Array, z: Array) -> Array:
        """mu / (1 + alpha mu)."""
        return np.asarray(expit(z + math.log(self.alpha)) / self.alpha + 0.0 * y)

    def mean(self, z: Array) -> Array:
        """e^z."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(z))

    def score(self, mean: float) -> float:
        """log mu."""
        return float(np.log(mean))

    def conjugate(self, y: Array, u: Array) -> Array:
        """m times that of the logistic loss at u / m, less u log alpha."""
        m, q, _ = self._as_share(y, u)
        return np.asarray(m * _LOGISTIC.conjugate(q, u / m) - u * math.log(self.alpha))

    def is_legal(self, y: Array) -> Array:
        """0 <= y < inf."""
        return np.asarray((y >= 0) & np.isfinite(y))

    def _as_share(self, y: Array, z: Array) -> tuple[Array, Array, Array]:
        m = y + 1 / self.alpha
        return np.asarray(m), np.asarray(y / m), np.asarray(z + math.log(self.alpha))
