"""Half deviances d(y, mu) / 2 >= 0 of a row: 0 at mu = y, and written so that nothing cancels near it.

All but the squared and the power ones are made of  y log(y / mu) - y + mu.
"""

from __future__ import annotations

import numpy as np

from certifit.data.columns import Array

_NEAR = 0.1  # of y: closer means are taken by the series
_FAR = 600.0  # e^u has no more room beyond


def relative(y: Array, mu: Array, apart: Array | None = None) -> Array:
    """y log(y / mu) - y + mu = y (u - log(1 + u)), u = mu / y - 1; mu where y is 0. Poisson's half deviance.

    apart: mu - y, where that is known better than as the difference of the two.
    """
    y, mu = np.asarray(y, dtype=np.float64), np.asarray(mu, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        apart = mu - y if apart is None else apart
        far = np.where(y > 0, y * (np.log(y) - np.log(mu)), 0.0) + apart
        return np.maximum(np.where(np.abs(apart) < _NEAR * y, y * excess(apart / y), far), 0.0)


def excess(u: Array) -> Array:
    """u - log(1 + u) for small u, without cancellation: log(1 + u) = 2 (r + r^3/3 + r^5/5 + ...), r = u / (2 + u)."""
    r = u / (2 + u)
    s = r * r
    tail = 1 / 3 + s * (1 / 5 + s * (1 / 7 + s * (1 / 9 + s * (1 / 11 + s / 13))))
    return np.asarray(u * r - 2 * r * s * tail)


def exponential_excess(u: Array) -> Array:
    """e^u - 1 - u for any u; for small ones to rounding relative to u, no more."""
    with np.errstate(over="ignore"):
        return np.asarray(np.expm1(u) - u)


def shares(q: Array, rest: Array, u: Array) -> Array:
    """q log(q / s) + (1 - q) log((1 - q) / (1 - s)), logit s = logit q + u; rest: 1 - q.

    log(1 + q (e^u - 1)) - q u, or the same of 1 - q and -u: that of the smaller share, unless e^|u| overflows.
    """
    turned = np.where(q > 0.5, u > -_FAR, u > _FAR)
    own, at = np.where(turned, rest, q), np.where(turned, -u, u)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.maximum(np.log1p(own * np.expm1(at)) - own * at, 0.0))


def squared(y: Array, mu: Array) -> Array:
    """(y - mu)^2 / 2."""
    with np.errstate(over="ignore"):
        return np.asarray(np.square(y - mu) / 2)


def bernoulli(y: Array, mu: Array) -> Array:
    """y log(y / mu) + (1 - y) log((1 - y) / (1 - mu))."""
    return relative(y, mu) + relative(1 - y, 1 - mu, y - mu)


def gamma(y: Array, mu: Array) -> Array:
    """y / mu - 1 - log(y / mu)."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        return np.asarray(relative(mu, y) / mu)


def inverse_gaussian(y: Array, mu: Array) -> Array:
    """(y - mu)^2 / (2 y mu^2)."""
    with np.errstate(over="ignore", divide="ignore"):
        return np.asarray(np.square((y - mu) / mu) / (2 * y))


def tweedie(y: Array, mu: Array, power: float) -> Array:
    """y^(2-p) / ((1-p)(2-p)) - y mu^(1-p) / (1-p) + mu^(2-p) / (2-p), 1 < p < 2.

    It is y^a [(e^(a u) - 1) / a + (e^(-b u) - 1) / b], u = log(mu / y), a = 2 - p, b = p - 1; mu^a / a where y is 0.
    """
    a, b = 2 - power, power - 1
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        u = np.log(mu) - np.log(y)
        half = np.power(y, a) * (np.expm1(a * u) / a + np.expm1(-b * u) / b)
        return np.maximum(np.where(y > 0, half, np.power(mu, a) / a), 0.0)


def negative_binomial(y: Array, mu: Array, alpha: float) -> Array:
    """y log(y / mu) - (y + 1/alpha) log((1 + alpha y) / (1 + alpha mu)).

    It is (y + 1/alpha) times the Bernoulli one of q = alpha y / (1 + alpha y) and s = alpha mu / (1 + alpha mu).
    """
    own, other = 1 + alpha * y, 1 + alpha * mu
    apart = alpha * (mu - y) / own / other
    both = relative(alpha * y / own, alpha * mu / other, apart) + relative(1 / own, 1 / other, -apart)
    return np.asarray((y + 1 / alpha) * both)
