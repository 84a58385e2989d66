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
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from certifit.data.columns import Array, Numbers
from certifit.data.privacy import cell
from certifit.mathematics.families.links import Link, link_of


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
