"""Losses l(y, z) of a score in balls, with their first two derivatives by z, and the objectives made of them.

One function per loss: (y, z) -> (l, l', l''), y a float64 number, z a ball. They are the formulas of
mathematics/losses and mathematics/families; only convex ones stand here, for a stationary point of others proves
nothing. `GlmProblem` is the objective: value, slope and curvature at any weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from certifit.exact import balls
from certifit.exact.balls import Ball, Matrix, ball
from certifit.mathematics.losses.families import ResponseLoss
from certifit.mathematics.losses.poisson_gamma_tweedie import GammaLog, NegativeBinomialLog, PoissonLog, TweedieLog
from certifit.mathematics.losses.scores import Logistic, Squared

Derivatives = tuple[Ball, Ball, Ball]
BallLoss = Callable[[float, Ball], Derivatives]


class NoExactForm(ValueError):
    """A model that no exact certificate is written for."""


def loss_in_balls(loss: Any) -> BallLoss:
    """The same loss in balls, or a refusal that says why there is none."""
    if not loss.is_convex:
        raise NoExactForm(
            f"The certificate of {loss.name} is local: the loss is not convex, so no minimum is proven to be the "
            "lowest. An exact proof is for convex losses."
        )
    written = _WRITTEN.get(type(loss))
    if written is not None:
        return written(loss)
    if isinstance(loss, ResponseLoss):
        pair = (loss.family.name, loss.link.name)
        if pair[0] in ("bernoulli", "binomial") and pair[1] in _CHANCES:
            return partial(_chance, *_CHANCES[pair[1]])
        if pair in _PAIRS:
            return _PAIRS[pair]
    raise NoExactForm(f"There is no exact certificate for {loss.name}.")


def legal_scores(loss: Any) -> tuple[float, float]:
    """The open interval of scores that the loss takes."""
    low, high = getattr(loss, "scores", (-math.inf, math.inf))
    return float(low), float(high)


def softplus(z: Ball) -> Ball:
    """log(1 + e^z), by the form whose exponential is small."""
    return z + (-z).exp().log1p() if z.mid() > 0 else z.exp().log1p()


def sigmoid(z: Ball) -> Ball:
    """1 / (1 + e^-z)."""
    return 1 / (1 + (-z).exp())


def x_log_x(x: Ball) -> Ball:
    """x log x, 0 at 0."""
    return ball(0) if x.is_zero() else x * x.log()


def squared(y: float, z: Ball) -> Derivatives:
    """(z - y)^2 / 2."""
    r = z - ball(y)
    return r * r / 2, r, ball(1)


def logistic(y: float, z: Ball) -> Derivatives:
    """log(1 + e^z) - y z, less the same at its least: the entropy of y."""
    share = ball(y)
    complement, p, q = 1 - share, sigmoid(z), sigmoid(-z)
    value = share * softplus(-z) + complement * softplus(z) + x_log_x(share) + x_log_x(complement)
    return value, complement * p - share * q, p * q


def poisson(y: float, z: Ball) -> Derivatives:
    """e^z - y - y (z - log y)."""
    mu, count = z.exp(), ball(y)
    value = mu if y == 0 else mu - count - count * (z - count.log())
    return value, mu - count, mu


def gamma(y: float, z: Ball) -> Derivatives:
    """e^u - 1 - u, u = log y - z."""
    u = ball(y).log() - z
    return u.expm1() - u, -u.expm1(), u.exp()


def tweedie(power: float, y: float, z: Ball) -> Derivatives:
    """e^(az)/a + y e^(-bz)/b - y^a/(ab), a = 2 - power, b = power - 1."""
    a, b = 2 - ball(power), ball(power) - 1
    up, down = (a * z).exp(), ball(y) * (-b * z).exp()
    constant = ball(0) if y == 0 else (a * ball(y).log()).exp() / (a * b)
    return up / a + down / b - constant, up - down, a * up + b * down


def negative_binomial(alpha: float, y: float, z: Ball) -> Derivatives:
    """m log(1 + e^t) - y t + y log(y/m) + k log(k/m), t = z + log alpha, k = 1/alpha, m = y + k."""
    count, k = ball(y), 1 / ball(alpha)
    m, t = count + k, z + ball(alpha).log()
    p, q = sigmoid(t), sigmoid(-t)
    constant = k * (k / m).log() + (ball(0) if y == 0 else count * (count / m).log())
    return count * softplus(-t) + k * softplus(t) + constant, k * p - count * q, m * p * q


def _chance(log_mean: Any, log_rest: Any, y: float, z: Ball) -> Derivatives:
    """-y log mu - (1 - y) log(1 - mu), less what y alone decides."""
    value, slope, curvature = ball(0), ball(0), ball(0)
    for share, logarithm in ((ball(y), log_mean), (1 - ball(y), log_rest)):
        if not share.is_zero():
            parts = logarithm(z)
            value += share * (share.log() - parts[0])
            slope -= share * parts[1]
            curvature -= share * parts[2]
    return value, slope, curvature


def _probit_mean(z: Ball) -> Derivatives:
    """log Phi, m = phi / Phi, -m (z + m)."""
    chance = (-z / ball(2).sqrt()).erfc() / 2
    m = (-z * z / 2).exp() / (2 * ball(1).pi()).sqrt() / chance
    return chance.log(), m, -m * (z + m)


def _probit_rest(z: Ball) -> Derivatives:
    value, slope, curvature = _probit_mean(-z)
    return value, -slope, curvature


def _cloglog_mean(z: Ball) -> Derivatives:
    """log(1 - e^-t), r = t / (e^t - 1), r (1 - t - r), t = e^z; e^t itself may be beyond all balls."""
    t = z.exp()
    complement, chance = (-t).exp(), -(-t).expm1()
    r = t * complement / chance
    return (-complement).log1p() if t > 1 else chance.log(), r, r * (1 - t - r)


def _cloglog_rest(z: Ball) -> Derivatives:
    t = z.exp()
    return -t, -t, -t


def _log_mean(z: Ball) -> Derivatives:
    return z, ball(1), ball(0)


def _log_rest(z: Ball) -> Derivatives:
    """log(1 - e^z), -r, -r (1 + r), r = 1 / (e^-z - 1)."""
    r = 1 / (-z).expm1()
    return (-z.expm1()).log(), -r, -r * (1 + r)


def _identity_mean(z: Ball) -> Derivatives:
    return z.log(), 1 / z, -1 / (z * z)


def _identity_rest(z: Ball) -> Derivatives:
    complement = 1 - z
    return complement.log(), -1 / complement, -1 / (complement * complement)


def _poisson_identity(y: float, z: Ball) -> Derivatives:
    """y log(y/z) - y + z."""
    count = ball(y)
    if y == 0:
        return z, ball(1), ball(0)
    return count * (count / z).log() - count + z, 1 - count / z, count / (z * z)


def _poisson_sqrt(y: float, z: Ball) -> Derivatives:
    """y log(y/z^2) - y + z^2."""
    count, mu = ball(y), z * z
    constant = ball(0) if y == 0 else count * (count / mu).log() - count
    return constant + mu, 2 * z - 2 * count / z, 2 + 2 * count / mu


def _gamma_inverse(y: float, z: Ball) -> Derivatives:
    """y z - 1 - log(y z)."""
    ratio = ball(y) * z
    return ratio - 1 - ratio.log(), ball(y) - 1 / z, 1 / (z * z)


def _gaussian_inverse_squared(y: float, z: Ball) -> Derivatives:
    """(y z - 2 sqrt z + 1/y) / 2."""
    root, target = z.sqrt(), ball(y)
    return (target * z - 2 * root + 1 / target) / 2, (target - 1 / root) / 2, 1 / (4 * root * z)


def _gaussian_inverse(y: float, z: Ball) -> Derivatives:
    """(y z - 1)^2 / (2 y)."""
    apart = ball(y) * z - 1
    return apart * apart / (2 * ball(y)), apart, ball(y)


_WRITTEN: dict[type, Callable[[Any], BallLoss]] = {
    Squared: lambda loss: squared,
    Logistic: lambda loss: logistic,
    PoissonLog: lambda loss: poisson,
    GammaLog: lambda loss: gamma,
    TweedieLog: lambda loss: partial(tweedie, loss.power),
    NegativeBinomialLog: lambda loss: partial(negative_binomial, loss.alpha),
}
_CHANCES = {
    "probit": (_probit_mean, _probit_rest),
    "cloglog": (_cloglog_mean, _cloglog_rest),
    "log": (_log_mean, _log_rest),
    "identity": (_identity_mean, _identity_rest),
}
_PAIRS: dict[tuple[str, str], BallLoss] = {
    ("poisson", "identity"): _poisson_identity,
    ("poisson", "sqrt"): _poisson_sqrt,
    ("gamma", "inverse"): _gamma_inverse,
    ("exponential", "inverse"): _gamma_inverse,
    ("inverse-gaussian", "inverse-squared"): _gaussian_inverse_squared,
    ("inverse-gaussian", "inverse"): _gaussian_inverse,
}


# ---- objectives ------------------------------------------------------------------------------------------------------
# P(theta) = sum_i share_i l(y_i, offset_i + a_i'theta) + sum_j l2_j/2 theta_j^2 + sum_j pull_j theta_j
#
# a_i are the columns with a weight, and 1 last where there is an intercept.


@dataclass(frozen=True)
class Evaluation:
    """The objective at a point: value, slopes by theta, and second derivatives where asked for."""

    value: Ball
    slope: list[Ball]
    hessian: Matrix | None


@dataclass
class GlmProblem:
    """A convex objective of weights in balls. scores: the open interval that the loss takes."""

    columns: Matrix
    y: Sequence[float]
    shares: list[Ball]
    offset: list[Ball] | None
    loss: BallLoss
    l2: list[Ball]
    pull: list[Ball]
    scores: tuple[float, float]
    _transposed: Any = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return len(self.l2)

    @property
    def transposed(self) -> Matrix:
        """Columns as rows."""
        if self._transposed is None:
            self._transposed = self.columns.transpose()
        return self._transposed

    def scores_at(self, theta: Sequence[Ball]) -> list[Ball]:
        """offset + a'theta of every row."""
        z = (self.columns * balls.column(theta)).entries() if self.size else [ball(0)] * len(self.shares)
        return z if self.offset is None else [a + b for a, b in zip(z, self.offset, strict=True)]

    def at(self, theta: Sequence[Ball], hessian: bool = False) -> Evaluation | None:
        """The objective at a point or, as balls, all over a box; None where a score may be illegal."""
        z = self.scores_at(theta)
        low, high = self.scores
        is_open = math.isinf(low) and math.isinf(high)
        if not is_open and not all(score > low and score < high for score in z):
            return None
        rows = [self.loss(y, score) for y, score in zip(self.y, z, strict=True)]
        value = balls.dot(self.shares, [row[0] for row in rows])
        value += sum((l2 * t * t / 2 + p * t for l2, p, t in zip(self.l2, self.pull, theta, strict=True)), ball(0))
        slope = self._sums([s * row[1] for s, row in zip(self.shares, rows, strict=True)])
        slope = [s + l2 * t + p for s, l2, p, t in zip(slope, self.l2, self.pull, theta, strict=True)]
        if not balls.is_finite([value, *slope]):
            return None
        matrix = self._hessian([s * row[2] for s, row in zip(self.shares, rows, strict=True)]) if hessian else None
        return Evaluation(value, slope, matrix)

    def _sums(self, rows: list[Ball]) -> list[Ball]:
        sums: list[Ball] = (self.transposed * balls.column(rows)).entries() if self.size else []
        return sums

    def _hessian(self, curvatures: list[Ball]) -> Matrix:
        return self.transposed * balls.scaled_rows(curvatures, self.columns) + balls.diagonal(self.l2)
