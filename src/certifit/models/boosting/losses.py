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

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax

from certifit.data.columns import Array
from certifit.mathematics.losses.poisson_gamma_tweedie import GammaLog, PoissonLog, TweedieLog
from certifit.mathematics.losses.scores import Huber, ScoreLoss, Squared
from certifit.runtime import core, n_threads

NEWTON_STEPS = 100  # most, to the best constant
LOSS_BLOCK = 16384  # rows whose losses are summed at a time, as by the core


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


@dataclass(frozen=True)
class Scored:
    """Rows at their scores, rows x width. slopes, curvatures: times the rows' weights, one array per score.

    sums: of every LOSS_BLOCK rows, their weighted losses: of those trained on, and of the others.
    """

    scores: Array
    slopes: list[Array]
    curvatures: list[Array]
    sums: Array


@dataclass(frozen=True)
class RowsToScore:
    """Targets and weights, and whether each row is trained on; None: all are."""

    y: Array
    weight: Array
    trained: Array | None = None


def scored(
    loss: ScoreLoss | None, rows: RowsToScore, scores: Array, leaves: Sequence[Array] = (), values: Sequence[Array] = ()
) -> Scored:
    """Rows at scores that the values of their leaves were added to, one tree per score. loss: None of a softmax."""
    if loss is not None and loss.code is not None:
        leaf, value = (leaves[0], np.ascontiguousarray(values[0])) if leaves else (None, None)
        trained = None if rows.trained is None else rows.trained.view(np.uint8)
        moved, slope, curvature, sums = core.row_losses(
            loss.code, loss.parameter, rows.y, np.ascontiguousarray(scores[:, 0]), rows.weight, trained, leaf, value,
            n_threads(),
        )  # fmt: skip
        return Scored(moved[:, None] if leaves else scores, [slope], [curvature], sums)
    if leaves:
        scores = scores + np.column_stack([of_tree[leaf] for leaf, of_tree in zip(leaves, values, strict=True)])
    losses, slopes, curvatures = _derivatives(loss, rows.y, rows.weight, scores)
    starts = np.arange(0, len(rows.y), LOSS_BLOCK)
    of_trained, others = rows.weight * losses, np.zeros(len(losses))
    if rows.trained is not None:
        is_trained = rows.trained.astype(bool)
        of_trained, others = np.where(is_trained, of_trained, 0.0), np.where(is_trained, 0.0, of_trained)
    sums = np.column_stack([np.add.reduceat(part, starts) for part in (of_trained, others)])
    return Scored(scores, slopes, curvatures, sums)


def _derivatives(
    loss: ScoreLoss | None, y: Array, weight: Array, scores: Array
) -> tuple[Array, list[Array], list[Array]]:
    """The loss of every row; slopes and curvatures times its weight."""
    if loss is not None:
        z = scores[:, 0]
        return np.asarray(loss.value(y, z)), [weight * loss.slope(y, z)], [weight * loss.curvature(y, z)]
    logs = log_softmax(scores, axis=1)
    place = (np.arange(len(y)), y.astype(np.int64))
    chances = np.exp(logs)
    others = _chances_of_others(chances)
    curvature = weight[:, None] * (chances * others)
    of_others = others[place]
    value = np.where(of_others < 0.5, -np.log1p(-np.minimum(of_others, 0.5)), -logs[place])
    chances[place] = -of_others
    slope = weight[:, None] * chances
    columns = range(scores.shape[1])
    return (
        value,
        [np.ascontiguousarray(slope[:, k]) for k in columns],
        [np.ascontiguousarray(curvature[:, k]) for k in columns],
    )


def _chances_of_others(chances: Array) -> Array:
    """1 less the chance of every class, as sums of the others: right where a chance is 1 but for rounding."""
    others = np.zeros_like(chances)
    others[:, 1:] = np.cumsum(chances[:, :-1], axis=1)
    others[:, :-1] += np.cumsum(chances[:, :0:-1], axis=1)[:, ::-1]
    return others


def newton_constant(loss: ScoreLoss, z: float, sums: Callable[[float], tuple[float, float]]) -> float:
    """The number that minimises the loss where it is every row's score, in addition to its offset, from near it.

    sums: of weighted slopes and curvatures at a number.
    """
    for _ in range(NEWTON_STEPS):
        slope, curvature = sums(z)
        step = slope / curvature
        z -= float(np.clip(step, -1.0, 1.0)) if not isinstance(loss, Squared | HuberOfResidual) else step
        if abs(step) <= 1e-14 * (1 + abs(z)):
            break
    return z
