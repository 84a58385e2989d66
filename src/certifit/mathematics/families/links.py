"""Links: what ties the score z of a row to the mean mu of its target.

The score is the link of the mean, z = g(mu); the mean is the response of the score, mu = h(z) = g^-1(z).

    identity         z = mu
    log              z = log mu
    logit            z = log(mu / (1 - mu))
    probit           z = Phi^-1(mu), Phi the standard normal distribution
    cloglog          z = log(-log(1 - mu))
    sqrt, inverse, inverse-squared, any power    z = mu^p, p = 1/2, -1, -2

For targets between 0 and 1 the logarithms of mu and of 1 - mu are what a likelihood is made of: log_mean and log_rest
give them with two derivatives by z, so that nothing is lost where mu rounds to 0 or 1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, expit, log_expit, log_ndtr, logit, ndtr, ndtri

from certifit.data.columns import Array


class Derivatives(NamedTuple):
    """A function of z and its first two derivatives."""

    value: Array
    slope: Array
    curvature: Array


class Link(ABC):
    """z = g(mu). scores, means: the open intervals that z and mu lie in."""

    name: str
    scores: tuple[float, float] = (-math.inf, math.inf)
    means: tuple[float, float] = (-math.inf, math.inf)

    @abstractmethod
    def score(self, mu: Array) -> Array:
        """g(mu); at the ends of the interval of means its limits."""

    @abstractmethod
    def mean(self, z: Array) -> Array:
        """h(z)."""

    @abstractmethod
    def slope(self, z: Array) -> Array:
        """dh/dz."""

    @abstractmethod
    def curvature(self, z: Array) -> Array:
        """d^2 h/dz^2."""

    def log_mean(self, z: Array) -> Derivatives:
        """log h and its derivatives h'/h and h''/h - (h'/h)^2."""
        mu = self.mean(z)
        ratio = self.slope(z) / mu
        return Derivatives(np.log(mu), ratio, self.curvature(z) / mu - np.square(ratio))

    def log_rest(self, z: Array) -> Derivatives:
        """log(1 - h) and its derivatives."""
        mu = self.mean(z)
        ratio = self.slope(z) / (1 - mu)
        return Derivatives(np.log1p(-mu), -ratio, -self.curvature(z) / (1 - mu) - np.square(ratio))


@dataclass(frozen=True)
class Identity(Link):
    """z = mu."""

    name = "identity"

    def score(self, mu: Array) -> Array:
        """The mean."""
        return np.asarray(mu, dtype=np.float64)

    def mean(self, z: Array) -> Array:
        """The score."""
        return np.asarray(z, dtype=np.float64)

    def slope(self, z: Array) -> Array:
        """1."""
        return np.ones_like(z, dtype=np.float64)

    def curvature(self, z: Array) -> Array:
        """0."""
        return np.zeros_like(z, dtype=np.float64)


@dataclass(frozen=True)
class Log(Link):
    """z = log mu."""

    name = "log"
    means = (0.0, math.inf)

    def score(self, mu: Array) -> Array:
        """log mu."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(mu))

    def mean(self, z: Array) -> Array:
        """e^z."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(z))

    def slope(self, z: Array) -> Array:
        """e^z."""
        return self.mean(z)

    def curvature(self, z: Array) -> Array:
        """e^z."""
        return self.mean(z)

    def log_mean(self, z: Array) -> Derivatives:
        """z, 1, 0."""
        return Derivatives(np.asarray(z, dtype=np.float64), np.ones_like(z), np.zeros_like(z))

    def log_rest(self, z: Array) -> Derivatives:
        """log(1 - e^z), z < 0: -r and -r (1 + r), r = 1 / (e^-z - 1)."""
        with np.errstate(over="ignore"):
            value = np.where(z > -math.log(2), np.log(-np.expm1(np.minimum(z, 0.0))), np.log1p(-np.exp(z)))
            r = 1 / np.expm1(-z)
        return Derivatives(value, -r, -r * (1 + r))


@dataclass(frozen=True)
class Logit(Link):
    """z = log(mu / (1 - mu))."""

    name = "logit"
    means = (0.0, 1.0)

    def score(self, mu: Array) -> Array:
        """log(mu / (1 - mu))."""
        return np.asarray(logit(mu))

    def mean(self, z: Array) -> Array:
        """1 / (1 + e^-z)."""
        return np.asarray(expit(z))

    def slope(self, z: Array) -> Array:
        """p (1 - p)."""
        return np.asarray(expit(z) * expit(-z))

    def curvature(self, z: Array) -> Array:
        """p (1 - p)(1 - 2p)."""
        return np.asarray(-self.slope(z) * np.tanh(z / 2))

    def log_mean(self, z: Array) -> Derivatives:
        """-log(1 + e^-z), 1 - p, -p (1 - p)."""
        return Derivatives(np.asarray(log_expit(z)), np.asarray(expit(-z)), -self.slope(z))

    def log_rest(self, z: Array) -> Derivatives:
        """-log(1 + e^z), -p, -p (1 - p)."""
        return Derivatives(np.asarray(log_expit(-z)), -np.asarray(expit(z)), -self.slope(z))


@dataclass(frozen=True)
class Probit(Link):
    """z = Phi^-1(mu)."""

    name = "probit"
    means = (0.0, 1.0)

    def score(self, mu: Array) -> Array:
        """Phi^-1(mu)."""
        return np.asarray(ndtri(mu))

    def mean(self, z: Array) -> Array:
        """Phi(z)."""
        return np.asarray(ndtr(z))

    def slope(self, z: Array) -> Array:
        """phi(z), the normal density."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(-np.square(z) / 2) / math.sqrt(2 * math.pi))

    def curvature(self, z: Array) -> Array:
        """-z phi(z)."""
        return np.asarray(-z * self.slope(z))

    def log_mean(self, z: Array) -> Derivatives:
        """log Phi, m = phi / Phi and -m (z + m); Phi(z) = e^(-z^2 / 2) erfcx(-z / sqrt 2) / 2."""
        m = math.sqrt(2 / math.pi) / erfcx(-np.asarray(z) / math.sqrt(2))
        return Derivatives(np.asarray(log_ndtr(z)), np.asarray(m), np.asarray(-m * _above_score(z, m)))

    def log_rest(self, z: Array) -> Derivatives:
        """The same at -z: 1 - Phi(z) = Phi(-z)."""
        value, slope, curvature = self.log_mean(-np.asarray(z))
        return Derivatives(value, -slope, curvature)


def _above_score(z: Array, m: Array) -> Array:
    """z + m, m = phi / Phi, without cancelling far below 0.

    By Laplace's continued fraction m = x + 1 / (x + 2 / (x + 3 / ...)) at x = -z > 0.
    """
    z = np.asarray(z, dtype=np.float64)
    above = np.asarray(z + m)
    far = z < -3.0
    if far.any():
        x = -z[far]
        tail = x
        for k in range(60, 1, -1):
            tail = x + k / tail
        above[far] = 1 / tail
    return above


@dataclass(frozen=True)
class CLogLog(Link):
    """z = log(-log(1 - mu)): 1 - mu = exp(-e^z)."""

    name = "cloglog"
    means = (0.0, 1.0)

    def score(self, mu: Array) -> Array:
        """log(-log(1 - mu))."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(-np.log1p(-np.asarray(mu, dtype=np.float64))))

    def mean(self, z: Array) -> Array:
        """1 - exp(-e^z)."""
        with np.errstate(over="ignore"):
            return np.asarray(-np.expm1(-np.exp(z)))

    def slope(self, z: Array) -> Array:
        """t e^-t, t = e^z."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(z - np.exp(z)))

    def curvature(self, z: Array) -> Array:
        """t (1 - t) e^-t."""
        return np.asarray(self.slope(z) * (1 - np.exp(np.minimum(z, 50.0))))  # e^-t is 0 beyond

    def log_mean(self, z: Array) -> Derivatives:
        """log(1 - e^-t), r = t / (e^t - 1) and r (1 - t - r)."""
        t = np.exp(np.clip(z, -40.0, 50.0))
        with np.errstate(over="ignore", divide="ignore"):
            value = np.where(t < math.log(2), np.log(-np.expm1(-t)), np.log1p(-np.exp(-t)))
            r = t / np.expm1(t)
        # Below -40 log(1 - e^-t) = log t - t / 2 is z, and r is 1, to the last digit
        value, t = np.where(z < -40, z, value), np.exp(np.minimum(z, 50.0))
        return Derivatives(value, r, r * _below_line(t, r))

    def log_rest(self, z: Array) -> Derivatives:
        """-t, -t, -t."""
        with np.errstate(over="ignore"):
            t = np.exp(z)
        return Derivatives(-t, -t, -t)


def _below_line(t: Array, r: Array) -> Array:
    """1 - t - r, r = t / (e^t - 1): for small t by its series -t/2 - t^2/12 + t^4/720 - ... of Bernoulli numbers."""
    s = np.square(np.minimum(t, 0.5))
    series = np.zeros_like(s)
    for c in _BERNOULLI:
        series = c + s * series
    return np.where(t < 0.5, -t / 2 - s * series, 1 - t - r)


# B_2k / (2k)!, k = 7 .. 1
_BERNOULLI = (1 / 74724249600, -691 / 1307674368000, 1 / 47900160, -1 / 1209600, 1 / 30240, -1 / 720, 1 / 12)


@dataclass(frozen=True)
class Power(Link):
    """z = mu^p, p not 0, for means > 0."""

    exponent: float

    scores = (0.0, math.inf)
    means = (0.0, math.inf)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.exponent) and self.exponent != 0):
            raise ValueError(f"The exponent of a power link must be a number other than 0. Got {self.exponent!r}.")

    @property
    def name(self) -> str:  # type: ignore[override]  # a constant in other links
        """The name in LINKS, or power and its exponent."""
        return _POWERS.get(self.exponent, f"power({self.exponent:g})")

    def score(self, mu: Array) -> Array:
        """mu^p."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(np.power(np.asarray(mu, dtype=np.float64), self.exponent))

    def mean(self, z: Array) -> Array:
        """z^(1/p); NaN below 0."""
        z = np.asarray(z, dtype=np.float64)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return np.where(z >= 0, np.power(z, 1 / self.exponent), np.nan)

    def slope(self, z: Array) -> Array:
        """q z^(q-1), q = 1/p."""
        q = 1 / self.exponent
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return np.asarray(q * np.power(np.asarray(z, dtype=np.float64), q - 1))

    def curvature(self, z: Array) -> Array:
        """q (q - 1) z^(q-2)."""
        q = 1 / self.exponent
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return np.asarray(q * (q - 1) * np.power(np.asarray(z, dtype=np.float64), q - 2))


_POWERS = {0.5: "sqrt", -1.0: "inverse", -2.0: "inverse-squared"}
LINKS: dict[str, Link] = {
    link.name: link for link in (Identity(), Log(), Logit(), Probit(), CLogLog(), *(Power(p) for p in _POWERS))
}


def link_of(link: object) -> Link:
    """A link by its name, or as it is given."""
    if isinstance(link, Link):
        return link
    if not isinstance(link, str) or link not in LINKS:
        names = ", ".join(map(repr, LINKS))
        raise ValueError(f"link must be one of {names}, or a Link. Got {link!r}.")
    return LINKS[link]
