"""Losses of a network's scores: names, the compiled formula, and the same in float64.

name                                        loss of a row at its score z, its offset included      prediction
squared, full-squared                       (y - z)^2 / 2, (y - z)^2                               z
huber                                       Huber's of width delta                                 z
poisson, gamma, exponential, tweedie,       half the deviance of the mean e^z                      e^z
inverse-gaussian, negative-binomial
binomial                                    -y log p - (1 - y) log(1 - p), p = sigmoid(z)          p
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logsumexp, softmax

from certifit.data.columns import Array
from certifit.mathematics.families import responses
from certifit.mathematics.families.responses import Response
from certifit.mathematics.losses.families import loss_of
from certifit.mathematics.losses.scores import ScoreLoss

OF_RESIDUALS = ("squared", "full-squared", "huber")
OF_CLASSES = ("logistic", "softmax")
FAMILIES: dict[str, Callable[[NetworkLoss], Response]] = {
    "squared": lambda loss: responses.Gaussian(),
    "full-squared": lambda loss: responses.Gaussian(),
    "logistic": lambda loss: responses.Bernoulli(),
    "poisson": lambda loss: responses.Poisson(),
    "gamma": lambda loss: responses.Gamma(),
    "exponential": lambda loss: responses.Exponential(),
    "inverse-gaussian": lambda loss: responses.InverseGaussian(),
    "tweedie": lambda loss: responses.Tweedie(loss.power),
    "negative-binomial": lambda loss: responses.NegativeBinomial(loss.overdispersion),
    "binomial": lambda loss: responses.Binomial(),
}
LINKS = {"squared": "identity", "full-squared": "identity", "logistic": "logit", "binomial": "logit"}  # others: log


@dataclass(frozen=True)
class NetworkLoss:
    """A loss by name. delta: of Huber's; power: of Tweedie's; overdispersion: of the negative binomial."""

    name: str
    delta: float = 1.35
    power: float = 1.5
    overdispersion: float = 1.0

    @property
    def family(self) -> Response:
        """The family of targets; Huber's and softmax have none."""
        return FAMILIES[self.name](self)

    @property
    def link(self) -> str:
        """The link of the family."""
        return LINKS.get(self.name, "log")

    @cached_property
    def formula(self) -> ScoreLoss:
        """The loss of one score, half the deviance of the family."""
        return loss_of(self.family, self.link)

    @property
    def scale(self) -> float:
        """The squared loss without its half is twice the formula."""
        return 2.0 if self.name == "full-squared" else 1.0

    @property
    def compiled(self) -> tuple[str, int, float, float]:
        """Kind, formula, parameter and scale, as the core takes them."""
        code = None if self.name in ("softmax", "huber") else self.formula.code
        if code is None:
            return self.name, 0, self.delta, self.scale
        return "score", code, self.formula.parameter, self.scale

    @property
    def is_squared(self) -> bool:
        """Whether targets may be centred and scaled: the loss is one of y - z."""
        return self.name in OF_RESIDUALS

    @property
    def is_of_mean(self) -> bool:
        """Whether scores give a mean by a link."""
        return self.name not in (*OF_RESIDUALS, *OF_CLASSES)

    def values(self, y: Array, z: Array) -> Array:
        """The loss of every row; z rows x outputs."""
        if self.name == "softmax":
            return np.asarray(logsumexp(z, axis=1) - z[np.arange(len(z)), y.astype(np.int64)])
        z = z[:, 0]
        if self.name == "huber":
            r = np.abs(z - y)
            return np.asarray(np.where(r <= self.delta, r * r / 2, self.delta * r - self.delta**2 / 2))
        if self.link == "logit":  # with the entropy of a share, as compiled
            return np.asarray(np.where(z > 0, (1 - y) * z, -y * z) + np.log1p(np.exp(-np.abs(z))))
        return np.asarray(self.scale * self.formula.value(y, z))

    def slopes(self, y: Array, z: Array) -> Array:
        """Derivatives by the scores, rows x outputs."""
        if self.name == "softmax":
            p = np.asarray(softmax(z, axis=1))
            p[np.arange(len(z)), y.astype(np.int64)] -= 1.0
            return p
        if self.name == "huber":
            return np.asarray(np.clip(z - y[:, None], -self.delta, self.delta))
        return np.asarray(self.scale * self.formula.slope(y, z[:, 0]))[:, None]

    def mean(self, z: Array) -> Array:
        """E y of a score."""
        return np.asarray(self.formula.mean(z)) if self.is_of_mean else z

    def check_target(self, y: Array, first_row: int) -> None:
        """Refuse targets that the loss does not know."""
        if self.is_of_mean:
            self.formula.check_target(y, first_row)
