"""The families of targets, one class each; FAMILIES is the table of them. Formulas and conventions: response.py."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import betaln, gammaln, xlog1py, xlogy

from certifit.data.columns import Array, Numbers
from certifit.mathematics.families import deviances
from certifit.mathematics.families.deviances import log_series
from certifit.mathematics.families.links import Link, Power
from certifit.mathematics.families.response import Response

_HALF_LOG_2PI = math.log(2 * math.pi) / 2


@dataclass(frozen=True)
class Gaussian(Response):
    """y = mu + noise of variance phi."""

    name = "gaussian"
    means = (-math.inf, math.inf)
    links = ("identity", "log", "inverse", "sqrt")
    canonical = "identity"
    dispersion = None
    legal = "a finite number"
    instead = "Remove or mend the row."

    def variance(self, mu: Array) -> Array:
        """1."""
        return np.ones_like(mu)

    def variance_slope(self, mu: Array) -> Array:
        """0."""
        return np.zeros_like(mu)

    def half_deviance(self, y: Array, mu: Array) -> Array:
        """(y - mu)^2 / 2."""
        return deviances.squared(y, mu)

    def is_legal(self, y: Array) -> Array:
        """Finite numbers."""
        return np.isfinite(y)

    def log_density(self, y: Array, mu: Array, dispersion: Numbers = 1.0) -> Array:
        """-(y - mu)^2 / (2 phi) - log(2 pi phi) / 2."""
        return np.asarray(-self.half_deviance(y, mu) / dispersion - np.log(dispersion) / 2 - _HALF_LOG_2PI)


@dataclass(frozen=True)
class Bernoulli(Response):
    """y is 1 with chance mu, else 0; or a share, the mean of such targets."""

    name = "bernoulli"
    means = (0.0, 1.0)
    links = ("logit", "probit", "cloglog", "log", "identity")
    canonical = "logit"
    legal = "between 0 and 1"
    instead = "For counts use family='poisson', for two labels of another kind LogisticRegression."

    def variance(self, mu: Array) -> Array:
        """mu (1 - mu)."""
        return np.asarray(mu * (1 - mu))

    def variance_slope(self, mu: Array) -> Array:
        """1 - 2 mu."""
        return np.asarray(1 - 2 * mu)

    def half_deviance(self, y: Array, mu: Array) -> Array:
        """y log(y / mu) + (1 - y) log((1 - y) / (1 - mu))."""
        return deviances.bernoulli(y, mu)

    def is_legal(self, y: Array) -> Array:
        """0 <= y <= 1."""
        return np.asarray((y >= 0) & (y <= 1))

    def log_density(self, y: Array, mu: Array, dispersion: Numbers = 1.0) -> Array:
        """(y log mu + (1 - y) log(1 - mu)) / phi."""
        return np.asarray((xlogy(y, mu) + xlog1py(1 - y, -mu)) / dispersion)

    def start(self, y: Array) -> Array:
        """(y + 1/2) / 2."""
        return np.asarray((y + 0.5) / 2)


@dataclass(frozen=True)
class Binomial(Bernoulli):
    """y is the share of successes among as many trials as its weight says."""

    name = "binomial"

    def log_likelihood(
        self,
        y: Array,
        mu: Array,
        weight: Array | None = None,
        dispersion: float = 1.0,
        weights: str = "frequency",
    ) -> float:
        """Sum of log choose(w, w y) + w (y log mu + (1 - y) log(1 - mu)): what R's and statsmodels' binomial have."""
        ways = 0.0
        if weight is not None:
            ways = float(np.sum(gammaln(weight + 1) - gammaln(weight * y + 1) - gammaln(weight * (1 - y) + 1)))
        return ways / dispersion + super().log_likelihood(y, mu, weight, dispersion, weights)


@dataclass(frozen=True)
class Poisson(Response):
    """y counts what happens at a rate mu."""

    name = "poisson"
    links = ("log", "identity", "sqrt")
    canonical = "log"
    legal = ">= 0"
    instead = "For targets of any sign use family='gaussian'."

    def variance(self, mu: Array) -> Array:
        """mu."""
        return np.asarray(mu)

    def variance_slope(self, mu: Array) -> Array:
        """1."""
        return np.ones_like(mu)

    def half_deviance(self, y: Array, mu: Array) -> Array:
        """y log(y / mu) - y + mu."""
        return deviances.relative(y, mu)

    def is_legal(self, y: Array) -> Array:
        """0 <= y < inf."""
        return np.asarray((y >= 0) & np.isfinite(y))

    def log_density(self, y: Array, mu: Array, dispersion: Numbers = 1.0) -> Array:
        """(y log mu - mu - log y!) / phi."""
        return np.asarray((xlogy(y, mu) - mu - gammaln(y + 1)) / dispersion)

    def start(self, y: Array) -> Array:
        """y + 0.1."""
        return np.asarray(y + 0.1)


@dataclass(frozen=True)
class Gamma(Response):
    """y > 0 with standard deviations in proportion to the means: shape 1 / phi, scale mu phi."""

    name = "gamma"
    links = ("log", "inverse", "identity")
    canonical = "inverse"
    dispersion: ClassVar[float | None] = None
    legal = "> 0"
    instead = "Where 0 occurs use family='tweedie', for counts family='poisson'."

    def variance(self, mu: Array) -> Array:
        """mu^2."""
        return np.square(mu)

    def variance_slope(self, mu: Array) -> Array:
        """2 mu."""
        return np.asarray(2 * mu)

    def half_deviance(self, y: Array, mu: Array) -> Array:
        """y / mu - 1 - log(y / mu)."""
        return deviances.gamma(y, mu)

    def is_legal(self, y: Array) -> Array:
        """0 < y < inf."""
        return np.asarray((y > 0) & np.isfinite(y))

    def log_density(self, y: Array, mu: Array, dispersion: Numbers = 1.0) -> Array:
        """k log(k y / mu) - k y / mu - log y - log Gamma(k), k = 1 / phi."""
        k = 1 / np.asarray(dispersion, dtype=np.float64)
        ratio = y / mu
        return np.asarray(k * (np.log(k * ratio) - ratio) - np.log(y) - gammaln(k))


@dataclass(frozen=True)
class Exponential(Gamma):
    """y > 0 is the waiting time at a rate 1 / mu: the Gamma family with phi = 1."""

    name = "exponential"
    dispersion: ClassVar[float | None] = 1.0


@dataclass(frozen=True)
class InverseGaussian(Response):
    """y > 0 with variances in proportion to the cubes of the means."""

    name = "inverse-gaussian"
    links = ("log", "inverse-squared", "inverse", "identity")
    canonical = "inverse-squared"
    dispersion = None
    legal = "> 0"
    instead = "Where 0 occurs use family='tweedie', for counts family='poisson'."

    def variance(self, mu: Array) -> Array:
        """mu^3."""
        return np.asarray(np.power(mu, 3))

    def variance_slope(self, mu: Array) -> Array:
        """3 mu^2."""
        return np.asarray(3 * np.square(mu))

    def half_deviance(self, y: Array, mu: Array) -> Array:
        """(y - mu)^2 / (2 y mu^2)."""
        return deviances.inverse_gaussian(y, mu)

    def is_legal(self, y: Array) -> Array:
        """0 < y < inf."""
        return np.asarray((y > 0) & np.isfinite(y))

    def log_density(self, y: Array, mu: Array, dispersion: Numbers = 1.0) -> Array:
        """-(y - mu)^2 / (2 phi y mu^2) - log(2 pi phi y^3) / 2."""
        spread = np.log(dispersion) + 3 * np.log(y)
        return np.asarray(-self.half_deviance(y, mu) / dispersion - spread / 2 - _HALF_LOG_2PI)


@dataclass(frozen=True)
class Tweedie(Response):
    """y = 0 or y > 0: the sum of a Poisson number of Gamma amounts, as the claims of a year.

    Rates mu^(2-p) / (phi (2-p)), amounts of mean phi (2-p) mu^(p-1), variance phi mu^p, 1 < p < 2.
    """

    power: float = 1.5

    name = "tweedie"
    links = ("log", "identity")
    canonical = None
    dispersion = None
    legal = ">= 0"
    instead = "For targets of any sign use family='gaussian'."

    def __post_init__(self) -> None:
        if not 1 < self.power < 2:
            raise ValueError(
                f"power must lie between 1 and 2. Got {self.power!r}. Its limits are family='poisson' (1) and 'gamma' "
                "(2); power 0 is 'gaussian', power 3 'inverse-gaussian'."
            )

    @property
    def canonical_link(self) -> Link:
        """z = mu^(1-p)."""
        return Power(1 - self.power)

    def variance(self, mu: Array) -> Array:
        """mu^p."""
        return np.asarray(np.power(mu, self.power))

    def variance_slope(self, mu: Array) -> Array:
        """p mu^(p-1)."""
        return np.asarray(self.power * np.power(mu, self.power - 1))

    def half_deviance(self, y: Array, mu: Array) -> Array:
        """y^(2-p)/((1-p)(2-p)) - y mu^(1-p)/(1-p) + mu^(2-p)/(2-p)."""
        return deviances.tweedie(y, mu, self.power)

    def is_legal(self, y: Array) -> Array:
        """0 <= y < inf."""
        return np.asarray((y >= 0) & np.isfinite(y))

    def log_density(self, y: Array, mu: Array, dispersion: Numbers = 1.0) -> Array:
        """(y mu^(1-p)/(1-p) - mu^(2-p)/(2-p)) / phi + log(W / y), W the series `log_series`; W / y is 1 at y = 0."""
        p = self.power
        main = (y * np.power(mu, 1 - p) / (1 - p) - np.power(mu, 2 - p) / (2 - p)) / dispersion
        return np.asarray(main + log_series(y, dispersion, p))

    def start(self, y: Array) -> Array:
        """y + 0.1."""
        return np.asarray(y + 0.1)


@dataclass(frozen=True)
class NegativeBinomial(Response):
    """y counts, with more spread than Poisson's: a Poisson count whose rate is Gamma distributed, alpha > 0 known.

    alpha = 1 / theta of R's MASS; alpha -> 0 is Poisson.
    """

    alpha: float = 1.0

    name = "negative-binomial"
    links = ("log", "identity", "sqrt")
    canonical = None  # log(alpha mu / (1 + alpha mu))
    legal = ">= 0"
    instead = "For targets of any sign use family='gaussian'."

    def __post_init__(self) -> None:
        if not 0 < self.alpha < math.inf:
            raise ValueError(f"alpha must be > 0. Got {self.alpha!r}. For alpha = 0 use family='poisson'.")

    def variance(self, mu: Array) -> Array:
        """mu + alpha mu^2."""
        return np.asarray(mu * (1 + self.alpha * mu))

    def variance_slope(self, mu: Array) -> Array:
        """1 + 2 alpha mu."""
        return np.asarray(1 + 2 * self.alpha * mu)

    def half_deviance(self, y: Array, mu: Array) -> Array:
        """y log(y / mu) - (y + 1/alpha) log((1 + alpha y) / (1 + alpha mu))."""
        return deviances.negative_binomial(y, mu, self.alpha)

    def is_legal(self, y: Array) -> Array:
        """0 <= y < inf."""
        return np.asarray((y >= 0) & np.isfinite(y))

    def log_density(self, y: Array, mu: Array, dispersion: Numbers = 1.0) -> Array:
        """log[Gamma(y+k) / (Gamma(k) y!)] + y log(alpha mu / (1 + alpha mu)) - k log(1 + alpha mu), k = 1/alpha."""
        k = 1 / self.alpha
        # Gamma(y+k) / (Gamma(k) Gamma(y+1)) = 1 / ((y + k) B(k, y + 1)): the large parts do not cancel
        ways = -betaln(k, y + 1) - np.log(y + k)
        return np.asarray((ways - xlogy(y, 1 + k / mu) - k * np.log1p(self.alpha * mu)) / dispersion)

    def start(self, y: Array) -> Array:
        """y + 0.1."""
        return np.asarray(y + 0.1)


FAMILIES: dict[str, Response] = {
    family.name: family
    for family in (
        Gaussian(),
        Bernoulli(),
        Binomial(),
        Poisson(),
        Gamma(),
        Exponential(),
        InverseGaussian(),
        Tweedie(),
        NegativeBinomial(),
    )
}


def family_of(family: object) -> Response:
    """A family by its name, or as it is given."""
    if isinstance(family, Response):
        return family
    if family in ("multinomial", "categorical", "softmax"):
        raise ValueError(
            f"A GLM has one score per row. For the family {family!r} use LogisticRegression: one per class."
        )
    if not isinstance(family, str) or family not in FAMILIES:
        names = ", ".join(map(repr, FAMILIES))
        raise ValueError(f"family must be one of {names}, or a Response. Got {family!r}.")
    return FAMILIES[family]
