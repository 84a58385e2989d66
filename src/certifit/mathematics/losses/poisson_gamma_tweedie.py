"""Losses of counts and positive quantities with the log link: Poisson, Gamma, Tweedie, negative binomial.

The mean is e^z. The other losses of a score, and what they share: `scores.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, xlogy

from certifit.data.columns import Array
from certifit.mathematics.families.deviances import exponential_excess, shares
from certifit.mathematics.losses.scores import Logistic, ScoreLoss


@dataclass(frozen=True)
class PoissonLog(ScoreLoss):
    """l = y (e^u - 1 - u), u = z - log y; e^z for y = 0."""

    name = "the Poisson loss"
    code = 1
    concordance = 1.0  # l''' = l''
    has_conjugate = True
    legal = ">= 0"

    def value(self, y: Array, z: Array) -> Array:
        """y (e^u - 1 - u)."""
        with np.errstate(over="ignore", invalid="ignore"):
            counted = np.where(y > 0, y, 1.0)
            return np.where(y > 0, counted * exponential_excess(z - np.log(counted)), np.exp(z))

    def slope(self, y: Array, z: Array) -> Array:
        """e^z - y."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(z) - y)

    def curvature(self, y: Array, z: Array) -> Array:
        """e^z."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(z) + 0.0 * y)

    def mean(self, z: Array) -> Array:
        """e^z."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(z))

    def score(self, mean: float) -> float:
        """log mu."""
        return float(np.log(mean))

    def cancelled(self, mean: float) -> float:
        """e^z and y."""
        return abs(mean)

    def conjugate(self, y: Array, u: Array) -> Array:
        """m log m - y log y - u at m = y + u >= 0; infinite below."""
        m = y + u
        with np.errstate(invalid="ignore", divide="ignore"):
            inside = xlogy(m, m) - xlogy(y, y) - u
        return np.where(m >= 0, inside, np.inf)

    def is_legal(self, y: Array) -> Array:
        """y >= 0."""
        return np.asarray(y >= 0)


@dataclass(frozen=True)
class GammaLog(ScoreLoss):
    """l = e^u - 1 - u, u = log y - z."""

    name = "the Gamma loss"
    code = 2
    concordance = 1.0  # l''' = -l''
    has_conjugate = True
    legal = "> 0"

    def value(self, y: Array, z: Array) -> Array:
        """y e^-z - 1 - log(y e^-z)."""
        return exponential_excess(np.log(y) - z)

    def slope(self, y: Array, z: Array) -> Array:
        """1 - y e^-z."""
        with np.errstate(over="ignore"):
            return np.asarray(-np.expm1(np.log(y) - z))

    def curvature(self, y: Array, z: Array) -> Array:
        """y e^-z."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(np.log(y) - z))

    def mean(self, z: Array) -> Array:
        """e^z."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(z))

    def score(self, mean: float) -> float:
        """log mu."""
        return float(np.log(mean))

    def cancelled(self, mean: float) -> float:
        """1 and y e^-z."""
        return 1.0

    def conjugate(self, y: Array, u: Array) -> Array:
        """sup at t = log y - z = log(1 - u), u < 1: u log y - u log(1 - u) - (e^t - 1 - t)."""
        r = 1 - u
        with np.errstate(invalid="ignore", divide="ignore"):
            inside = u * np.log(y) - xlogy(u, r) - (r - 1 - np.log(r))
        return np.where(r > 0, inside, np.inf)

    def is_legal(self, y: Array) -> Array:
        """y > 0."""
        return np.asarray(y > 0)


@dataclass(frozen=True)
class TweedieLog(ScoreLoss):
    """l = y^(2-p)/((1-p)(2-p)) - y e^((1-p)z)/(1-p) + e^((2-p)z)/(2-p), the power p between 1 and 2."""

    power: float

    name = "the Tweedie loss"
    code = 4
    concordance = 1.0  # l'' = a e^(az) + b y e^(-bz), a, b < 1; l''' has a^2 and -b^2
    legal = ">= 0"

    @property
    def parameter(self) -> float:
        """The power."""
        return float(self.power)

    def value(self, y: Array, z: Array) -> Array:
        """y^a [(e^(au) - 1)/a + (e^(-bu) - 1)/b], u = z - log y, a = 2 - p, b = p - 1; e^(az)/a for y = 0."""
        a, b = 2 - self.power, self.power - 1
        with np.errstate(over="ignore", invalid="ignore"):
            counted = np.where(y > 0, y, 1.0)
            u = z - np.log(counted)
            deviance = np.power(counted, a) * (np.expm1(a * u) / a + np.expm1(-b * u) / b)
            return np.where(y > 0, np.maximum(deviance, 0.0), np.exp(a * z) / a)

    def slope(self, y: Array, z: Array) -> Array:
        """e^(az) - y e^(-bz)."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp((2 - self.power) * z) - y * np.exp((1 - self.power) * z))

    def curvature(self, y: Array, z: Array) -> Array:
        """a e^(az) + b y e^(-bz)."""
        a, b = 2 - self.power, self.power - 1
        with np.errstate(over="ignore"):
            return np.asarray(a * np.exp(a * z) + b * y * np.exp(-b * z))

    def mean(self, z: Array) -> Array:
        """e^z."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(z))

    def score(self, mean: float) -> float:
        """log mu."""
        return float(np.log(mean))

    def cancelled_in_value(self, mean: float) -> float:
        """y^a / (ab), e^(az) / a and y e^(-bz) / b, a = 2 - p, b = p - 1."""
        return self.cancelled(mean) / ((2 - self.power) * (self.power - 1))

    def is_legal(self, y: Array) -> Array:
        """y >= 0."""
        return np.asarray(y >= 0)


# ---- the negative binomial loss with the log link: the logistic loss of a share, at a shifted score ------------------

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
        complement = 1 / (1 + self.alpha * y)
        none = (np.maximum(t, 0.0) + np.log1p(np.exp(-np.abs(t)))) / self.alpha
        u = z - np.log(np.where(y > 0, y, 1.0))
        return np.where(y > 0, m * shares(q, complement, u), none)

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

    def cancelled(self, mean: float) -> float:
        """The formulas are of z + log alpha, which is rounded by its own size."""
        return (1 + abs(mean)) * max(1.0, abs(math.log(self.alpha)) / 2)

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
