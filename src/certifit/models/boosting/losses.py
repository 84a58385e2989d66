"""The losses that boosting takes steps on: those of generalised linear models, and two of the residual.

family            loss of a row at its score z                              start, prediction
gaussian          (y - z)^2 / 2                                             mean, z
poisson           half the deviance of the mean e^z                         log of the mean, e^z
gamma             half the deviance of the mean e^z                         log of the mean, e^z
tweedie           half the deviance of the mean e^z, power between 1 and 2   log of the mean, e^z
huber             Huber's loss of y - z, linear beyond delta                median, z
quantile          pinball loss of y - z                                     quantile, z

Huber's loss and the pinball loss have no curvature where it matters; 1 takes its place, which bounds Huber's, and
leaves of the pinball loss are quantiles of the residuals of their rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.mathematics.losses.poisson_gamma_tweedie import GammaLog, PoissonLog, TweedieLog
from certifit.mathematics.losses.scores import Huber, ScoreLoss, Squared

NEWTON_STEPS = 100  # most, to the best constant


class _OfResidual(ScoreLoss):
    """A loss of y - z whose curvature is taken to be 1."""

    legal = "a finite number"

    def curvature(self, y: Array, z: Array) -> Array:
        """1, in place of a curvature that vanishes."""
        return np.ones(np.broadcast(y, z).shape)

    def mean(self, z: Array) -> Array:
        """The score itself."""
        return z

    def score(self, mean: float) -> float:
        """The number itself."""
        return mean

    def is_legal(self, y: Array) -> Array:
        """Every finite number is."""
        return np.isfinite(y)


@dataclass(frozen=True)
class HuberOfResidual(_OfResidual):
    """Half of the square up to delta, linear beyond it."""

    delta: float = 1.35
    name = "huber"

    def value(self, y: Array, z: Array) -> Array:
        """Huber's loss of y - z."""
        return np.asarray(Huber(self.delta).value(y - z))

    def slope(self, y: Array, z: Array) -> Array:
        """Minus the residual, cut at delta."""
        return np.asarray(-np.clip(y - z, -self.delta, self.delta))


@dataclass(frozen=True)
class Pinball(_OfResidual):
    """quantile (y - z) above z, (1 - quantile) (z - y) below."""

    quantile: float = 0.5
    name = "quantile"

    def value(self, y: Array, z: Array) -> Array:
        """The pinball loss of y - z."""
        return np.maximum(self.quantile * (y - z), (self.quantile - 1) * (y - z))

    def slope(self, y: Array, z: Array) -> Array:
        """-quantile above z, 1 - quantile at and below it."""
        return np.where(y > z, -self.quantile, 1 - self.quantile)


@dataclass(frozen=True)
class Family:
    """A loss by its parameters. is_scaled: y may be divided by a unit. is_log: E y = e^z."""

    loss: Callable[[float, float, float], ScoreLoss]
    is_scaled: bool = False
    is_log: bool = False


FAMILIES = {
    "gaussian": Family(lambda quantile, delta, power: Squared(), is_scaled=True),
    "poisson": Family(lambda quantile, delta, power: PoissonLog(), is_log=True),
    "gamma": Family(lambda quantile, delta, power: GammaLog(), is_log=True),
    "tweedie": Family(lambda quantile, delta, power: TweedieLog(power), is_log=True),
    "huber": Family(lambda quantile, delta, power: HuberOfResidual(delta), is_scaled=True),
    "quantile": Family(lambda quantile, delta, power: Pinball(quantile), is_scaled=True),
}


def weighted_quantile(values: Array, weight: Array, share: float) -> float:
    """The least value at which the weight of the values up to it reaches a share of all weight."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weight[order])
    place = int(np.searchsorted(below, share * below[-1] * (1 - 1e-12)))
    return float(values[order[min(place, len(order) - 1)]])


def best_constant(loss: ScoreLoss, y: Array, weight: Array, offset: Array) -> float:
    """The number that minimises the loss where it is every row's score, in addition to its offset."""
    if isinstance(loss, Pinball):
        return weighted_quantile(y - offset, weight, loss.quantile)
    if isinstance(loss, HuberOfResidual):
        z = weighted_quantile(y - offset, weight, 0.5)
    else:
        z = loss.score(float(weight @ y / weight.sum())) - float(weight @ offset / weight.sum())
    for _ in range(NEWTON_STEPS):
        scores = z + offset
        step = float(weight @ loss.slope(y, scores)) / float(weight @ loss.curvature(y, scores))
        z -= float(np.clip(step, -1.0, 1.0)) if not isinstance(loss, Squared | HuberOfResidual) else step
        if abs(step) <= 1e-14 * (1 + abs(z)):
            break
    return z
