"""Half deviances d(y, mu) / 2 >= 0 of a row: 0 at mu = y, and written so that nothing cancels near it.

All but the squared and the power ones are made of  y log(y / mu) - y + mu. `log_series` belongs to Tweedie's density.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, logsumexp

from certifit.data.columns import Array, Numbers

_NEAR = 0.1  # share of y: means closer to y than this are evaluated by the series
_FAR = 600.0  # largest u for which e^u is computed: it overflows beyond 709


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


def shares(q: Array, complement: Array, u: Array) -> Array:
    """q log(q / s) + (1 - q) log((1 - q) / (1 - s)), logit s = logit q + u; complement: 1 - q.

    log(1 + q (e^u - 1)) - q u, or the same of 1 - q and -u: that of the smaller share, unless e^|u| overflows. Of the
    larger share, which may be rounded to 1, log(1 - q + q e^u) - q u.
    """
    turned = np.where(q > 0.5, u > -_FAR, u > _FAR)
    share, rest, at = np.where(turned, complement, q), np.where(turned, q, complement), np.where(turned, -u, u)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        inside = np.where(at < -_FAR, np.log(rest + share * np.exp(at)), np.log1p(share * np.expm1(at)))
        return np.asarray(np.maximum(inside - share * at, 0.0))


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
    of_target, of_mean = 1 + alpha * y, 1 + alpha * mu
    apart = alpha * (mu - y) / of_target / of_mean
    both = relative(alpha * y / of_target, alpha * mu / of_mean, apart) + relative(1 / of_target, 1 / of_mean, -apart)
    return np.asarray((y + 1 / alpha) * both)


# ---- the series in Tweedie's density, 1 < p < 2: the chance of j amounts, summed over j ------------------------------
#     W(y) = sum over j >= 1 of  z^j / (j! Gamma(c j)),   c = (2-p) / (p-1),
#     log z = c log(y / (p-1)) - (1+c) log phi - log(2-p)
#
# Its terms rise to about j* = y^(2-p) / (phi (2-p)) and fall, like a Gaussian of variance j* / (1+c). Where that is
# wide, terms half a standard deviation apart are as good as all of them: a sum over a lattice of step h differs from
# the integral by exp(-2 pi^2 sd^2 / h^2) of it.

_WIDE = 12.0  # standard deviation above which the sum is taken on a lattice of half a standard deviation
_REACH = 9.5  # standard deviations to each side: e^-45 of the largest term
_MORE = 30  # terms added at the upper end, for the skewness of narrow sums
_ROWS = 2048  # rows that are evaluated at a time


def log_series(y: Array, dispersion: Numbers, power: float) -> Array:
    """log(W / y) of each row; 0 at y = 0, where the density is the chance of no amount."""
    y = np.asarray(y, dtype=np.float64)
    phi = np.broadcast_to(np.asarray(dispersion, dtype=np.float64), y.shape)
    logs = np.zeros_like(y)
    above = np.flatnonzero(y > 0)
    for first in range(0, len(above), _ROWS):
        rows = above[first : first + _ROWS]
        logs[rows] = _log_sum(y[rows], phi[rows], power) - np.log(y[rows])
    return logs


def _log_sum(y: Array, phi: Array, p: float) -> Array:
    c = (2 - p) / (p - 1)
    top = np.exp((2 - p) * np.log(y) - np.log(phi)) / (2 - p)
    spread = np.sqrt(top / (1 + c))
    step = np.where(spread > _WIDE, spread / 2, 1.0)
    low = np.where(spread > _WIDE, top - _REACH * spread, np.maximum(np.floor(top - _REACH * spread), 1.0))
    reach = top + _REACH * spread + np.where(spread > _WIDE, 0.0, _MORE)
    n_terms = int(np.ceil(np.max((reach - low) / step))) + 1
    j = low[:, None] + step[:, None] * np.arange(n_terms)
    log_z = c * np.log(y / (p - 1)) - (1 + c) * np.log(phi) - np.log(2 - p)
    terms = j * log_z[:, None] - gammaln(j + 1) - gammaln(c * j)
    return np.asarray(logsumexp(terms, axis=1) + np.log(step))
