"""Bounds M with |l'''| <= M l'' for scores between two numbers, where no one M serves all scores.

A self-concordance bound looks at scores near those of the rows only: if the optimum that it proves lies no further away
than the interval that M was taken on, the proof stands. Each row is the pair's M on [low, high], with the argument:

    probit     y = 1: l = -log Phi, m = phi / Phi, l'' = m (z + m). V = 1 - l'' is the variance of a normal variable cut
               off above z, and dV/dz = m [(z + m)^2 - V] >= 0, so |l'''| = m [(z + m)^2 - V] <= (z + m) l''. z + m
               grows with z (by V > 0). y = 0 is the same at -z.
    cloglog    y = 0: l = t = e^z, so 1. y = 1: r = t / (e^t - 1), s = t + r - 1, l'' = r s, l''' / l'' = t/s - s - r.
               1 - t/2 <= r <= 1, so t/2 <= s <= t and -t <= 2 - s - r - 1 <= l''' / l'' <= 2 - s - r <= 1.
    log        y = 0: l = -log(1 - e^z), r = 1 / (e^-z - 1), l'' = r (1 + r), l''' / l'' = 1 + 2 r. y = 1: 0.
    powers     sums of -log z, 1/z^2 and the like: 2 / z, or less, which is largest at the low end.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from certifit.mathematics.families.links import LINKS

Bound = Callable[[float, float], float]


def _probit(low: float, high: float) -> float:
    furthest = max(-low, high)
    return furthest + float(LINKS["probit"].log_mean(np.array(furthest)).slope)


def _cloglog(low: float, high: float) -> float:
    return math.exp(high) if 0 < high < 700 else math.inf if high > 0 else 1.0


def _log_chance(low: float, high: float) -> float:
    return 1 + 2 / math.expm1(-high) if high < 0 else math.inf


def _chance(low: float, high: float) -> float:
    return 2 / min(low, 1 - high) if low > 0 and high < 1 else math.inf


def _inverse(low: float, high: float) -> float:
    return 2 / low if low > 0 else math.inf


CONCORDANCE: dict[tuple[str, str], Bound] = {
    ("bernoulli", "probit"): _probit,
    ("bernoulli", "cloglog"): _cloglog,
    ("bernoulli", "log"): _log_chance,
    ("bernoulli", "identity"): _chance,
    ("poisson", "identity"): _inverse,  # y / z^2
    ("poisson", "sqrt"): _inverse,  # 2 + 2 y / z^2
    ("gamma", "inverse"): _inverse,  # 1 / z^2
    ("inverse-gaussian", "inverse"): lambda low, high: 0.0 if low > 0 else math.inf,  # y
    ("inverse-gaussian", "inverse-squared"): _inverse,  # z^(-3/2) / 4: 1.5 / z
}
CONCORDANCE |= {("binomial", link): bound for (family, link), bound in CONCORDANCE.items() if family == "bernoulli"}
CONCORDANCE["exponential", "inverse"] = _inverse
