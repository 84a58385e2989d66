"""The series in Tweedie's density, 1 < p < 2: the chance of j amounts, summed over j.

    W(y) = sum over j >= 1 of  z^j / (j! Gamma(c j)),   c = (2-p) / (p-1),
    log z = c log(y / (p-1)) - (1+c) log phi - log(2-p)

Its terms rise to about j* = y^(2-p) / (phi (2-p)) and fall, like a Gaussian of variance j* / (1+c). Where that is wide,
terms half a standard deviation apart are as good as all of them: a sum over a lattice of step h differs from the
integral by exp(-2 pi^2 sd^2 / h^2) of it.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, logsumexp

from certifit.data.columns import Array, Numbers

_WIDE = 12.0  # standard deviations from here on are summed on the lattice of half of one
_REACH = 9.5  # standard deviations to each side: e^-45 of the largest term
_MORE = 30  # terms beyond, for the skewness of narrow ones
_ROWS = 2048  # at a time


def log_series(y: Array, dispersion: Numbers, power: float) -> Array:
    """log(W / y) of each row; 0 at y = 0, where the density is the chance of no amount."""
    y = np.asarray(y, dtype=np.float64)
    phi = np.broadcast_to(np.asarray(dispersion, dtype=np.float64), y.shape)
    found = np.zeros_like(y)
    above = np.flatnonzero(y > 0)
    for first in range(0, len(above), _ROWS):
        rows = above[first : first + _ROWS]
        found[rows] = _log_sum(y[rows], phi[rows], power) - np.log(y[rows])
    return found


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
