"""Losses l(y, z) of a score in balls, with their first two derivatives by z.

One function per loss: (y, z) -> (l, l', l''), y a float64 number, z a ball. They are the formulas of losses/ and
families/; only convex ones stand here, for a stationary point of others proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from certifit.exact.balls import Ball, ball
from certifit.losses.negative_binomial import NegativeBinomialLog
from certifit.losses.response import ResponseLoss
from certifit.losses.scores import GammaLog, Logistic, PoissonLog, Squared, TweedieLog

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
    rest, p, q = 1 - share, sigmoid(z), sigmoid(-z)
    value = share * softplus(-z) + rest * softplus(z) + x_log_x(share) + x_log_x(rest)
    return value, rest * p - share * q, p * q


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
    own = ball(0) if y == 0 else (a * ball(y).log()).exp() / (a * b)
    return up / a + down / b - own, up - down, a * up + b * down


def negative_binomial(alpha: float, y: float, z: Ball) -> Derivatives:
    """m log(1 + e^t) - y t + y log(y/m) + k log(k/m), t = z + log alpha, k = 1/alpha, m = y + k."""
    count, k = ball(y), 1 / ball(alpha)
    m, t = count + k, z + ball(alpha).log()
    p, q = sigmoid(t), sigmoid(-t)
    own = k * (k / m).log() + (ball(0) if y == 0 else count * (count / m).log())
    return count * softplus(-t) + k * softplus(t) + own, k * p - count * q, m * p * q


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
    """log(1 - e^-t), r = t / (e^t - 1), r (1 - t - r), t = e^z."""
    t = z.exp()
    r = t / t.expm1()
    return (-(-t).expm1()).log(), r, r * (1 - t - r)


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
    rest = 1 - z
    return rest.log(), -1 / rest, -1 / (rest * rest)


def _poisson_identity(y: float, z: Ball) -> Derivatives:
    """y log(y/z) - y + z."""
    count = ball(y)
    if y == 0:
        return z, ball(1), ball(0)
    return count * (count / z).log() - count + z, 1 - count / z, count / (z * z)


def _poisson_sqrt(y: float, z: Ball) -> Derivatives:
    """y log(y/z^2) - y + z^2."""
    count, mu = ball(y), z * z
    own = ball(0) if y == 0 else count * (count / mu).log() - count
    return own + mu, 2 * z - 2 * count / z, 2 + 2 * count / mu


def _gamma_inverse(y: float, z: Ball) -> Derivatives:
    """y z - 1 - log(y z)."""
    ratio = ball(y) * z
    return ratio - 1 - ratio.log(), ball(y) - 1 / z, 1 / (z * z)


def _gaussian_inverse_squared(y: float, z: Ball) -> Derivatives:
    """(y z - 2 sqrt z + 1/y) / 2."""
    root, own = z.sqrt(), ball(y)
    return (own * z - 2 * root + 1 / own) / 2, (own - 1 / root) / 2, 1 / (4 * root * z)


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
