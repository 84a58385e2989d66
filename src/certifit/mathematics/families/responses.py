"""Families of targets: what a generalised linear model takes its rows to be drawn from, given their mean mu.

    family             Var y / phi       half deviance d(y, mu) / 2                                phi        canonical
    gaussian           1                 (y - mu)^2 / 2                                            estimated  identity
    bernoulli          mu (1 - mu)       y log(y/mu) + (1-y) log((1-y)/(1-mu))                     1          logit
    binomial           mu (1 - mu)       as bernoulli, of y successes a trial; weights are trials  1          logit
    poisson            mu                y log(y/mu) - y + mu                                      1          log
    gamma              mu^2              y/mu - 1 - log(y/mu)                                      estimated  inverse
    exponential        mu^2              as gamma                                                  1          inverse
    inverse-gaussian   mu^3              (y - mu)^2 / (2 y mu^2)                                   estimated  inverse^2
    tweedie            mu^p, 1 < p < 2   y^(2-p)/((1-p)(2-p)) - y mu^(1-p)/(1-p) + mu^(2-p)/(2-p)  estimated  power 1-p
    negative-binomial  mu + alpha mu^2   y log(y/mu) - (y + 1/alpha) log((1+alpha y)/(1+alpha mu)) 1          none

phi is the dispersion. Log-likelihoods hold all constants, as those of R and of statsmodels do. Where phi is estimated
the two differ in the phi that they put in:

    R            deviance / sum of weights, but deviance / rows for the Gaussian; its AIC counts phi as a parameter
    statsmodels  Pearson's sum / (rows - parameters), but the mean squared residual for the Gaussian with the identity
                 link; its AIC does not count phi

Weights are frequencies (a weight of 2 is the row twice: sum of w log p), or variances (the row has phi / w: a mean of w
rows). They are the same where phi is known.

One class each; FAMILIES is the table of them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import betaln, gammaln, xlog1py, xlogy

from certifit.data.columns import Array, Numbers
from certifit.data.privacy import cell
from certifit.mathematics.families import deviances
from certifit.mathematics.families.deviances import log_series
from certifit.mathematics.families.links import Link, Power, link_of


class Response(ABC):
    """A family of targets, by its mean. means: the open interval that they lie in."""

    name: str
    means: tuple[float, float] = (0.0, math.inf)
    links: tuple[str, ...]  # the first is the one that is used where none is named
    canonical: str | None  # name of the link under which the score is the natural parameter
    dispersion: ClassVar[float | None] = 1.0  # None: estimated
    legal: str  # targets, in words
    instead: str  # for others

    @property
    def canonical_link(self) -> Link | None:
        """The link under which the score is the natural parameter, up to a constant factor."""
        return None if self.canonical is None else link_of(self.canonical)

    @property
    def default_link(self) -> Link:
        """The link that is used where none is named."""
        return link_of(self.links[0])

    def link(self, link: object = None) -> Link:
        """A link of this family by name; None: the default. A Link of the user's own is taken as it is."""
        if link is None:
            return self.default_link
        if isinstance(link, str) and link not in self.links:
            names = ", ".join(map(repr, self.links))
            raise ValueError(f"link of family {self.name!r} must be one of {names}, or a Link. Got {link!r}.")
        return link_of(link)

    @abstractmethod
    def variance(self, mu: Array) -> Array:
        """V(mu): the variance of a target is phi V."""

    @abstractmethod
    def variance_slope(self, mu: Array) -> Array:
        """dV/dmu."""

    @abstractmethod
    def half_deviance(self, y: Array, mu: Array) -> Array:
        """d(y, mu) / 2 >= 0."""

    @abstractmethod
    def is_legal(self, y: Array) -> Array:
        """Which targets are."""

    @abstractmethod
    def log_density(self, y: Array, mu: Array, dispersion: Numbers = 1.0) -> Array:
        """Logarithm of the density or chance of each target, all constants included; phi a number, or one per row."""

    def start(self, y: Array) -> Array:
        """Means near y that are legal: where an iteration may start."""
        return np.asarray(y, dtype=np.float64)

    def deviance(self, y: Array, mu: Array) -> Array:
        """The unit deviance d(y, mu) of each row."""
        return 2 * self.half_deviance(y, mu)

    def total_deviance(self, y: Array, mu: Array, weight: Array | None = None) -> float:
        """Sum of w d(y, mu)."""
        return _total(self.deviance(y, mu), weight)

    def null_deviance(self, y: Array, weight: Array | None = None) -> float:
        """The deviance of the best constant, which is the mean target in every family. Without offsets."""
        mean = float(np.average(y, weights=weight))
        return self.total_deviance(y, np.full_like(y, mean), weight)

    def pearson(self, y: Array, mu: Array, weight: Array | None = None) -> float:
        """Pearson's sum of w (y - mu)^2 / V(mu)."""
        return _total(np.square(y - mu) / self.variance(mu), weight)

    def log_likelihood(
        self,
        y: Array,
        mu: Array,
        weight: Array | None = None,
        dispersion: float = 1.0,
        weights: str = "frequency",
    ) -> float:
        """Sum of w log p(y; mu, phi), or with weights="variance" of log p(y; mu, phi / w), over rows with w > 0."""
        if weight is None:
            return float(np.sum(self.log_density(y, mu, dispersion)))
        if weights not in ("frequency", "variance"):
            raise ValueError(f'weights must be "frequency" or "variance". Got {weights!r}.')
        y, mu, weight = (part[weight > 0] for part in (y, mu, weight))
        if weights == "frequency":
            return float(np.sum(weight * self.log_density(y, mu, dispersion)))
        return float(np.sum(self.log_density(y, mu, dispersion / weight)))

    def check_target(self, y: Array, first_row: int = 0, name: str = "y") -> None:
        """Refuse a target that the family does not know, naming its row."""
        bad = np.flatnonzero(~self.is_legal(y))
        if len(bad):
            row = int(bad[0])
            raise ValueError(
                f"Family {self.name!r} needs {name} {self.legal}. Row {row + first_row} is {cell(y[row])}. "
                f"{self.instead}"
            )


def _total(rows: Array, weight: Array | None) -> float:
    return float(np.sum(rows if weight is None else np.where(weight > 0, rows, 0.0) * weight))


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
