"""Losses of scores in long decimal numbers, for certificates that float64 has too few digits for."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from certifit.mathematics.losses.scores import ScoreLoss

ZERO, ONE = Decimal(0), Decimal(1)
# y, z -> value, slope and curvature, and a bound on the terms that cancel in the value
RowLoss = Callable[[Decimal, Decimal], tuple[Decimal, Decimal, Decimal, Decimal]]


def log_of_one_plus(e: Decimal) -> Decimal:
    """log(1 + e), e >= 0."""
    return e - e * e / 2 if e < Decimal("1e-30") else (1 + e).ln()


def row_loss(loss: ScoreLoss) -> RowLoss | None:
    """Value, slope and curvature of a loss in decimals; None where they are not written here."""
    make = _ROW_LOSSES.get(type(loss).__name__)
    return None if make is None else make(loss)


def _logistic(y: Decimal, z: Decimal) -> tuple[Decimal, Decimal, Decimal, Decimal]:
    small = (-abs(z)).exp()
    near, far = 1 / (1 + small), small / (1 + small)
    p, rest = (near, far) if z > 0 else (far, near)
    value = ((1 - y) * z if z > 0 else -y * z) + log_of_one_plus(small)
    if 0 < y < 1:
        value += y * y.ln() + (1 - y) * (1 - y).ln()
    return value, (1 - y) * p - y * rest, near * far, ONE


def _poisson(y: Decimal, z: Decimal) -> tuple[Decimal, Decimal, Decimal, Decimal]:
    mu, log = z.exp(), y.ln() if y > 0 else ZERO
    return mu - y - y * (z - log), mu - y, mu, 2 * y * (1 + abs(z) + abs(log))


def _gamma(y: Decimal, z: Decimal) -> tuple[Decimal, Decimal, Decimal, Decimal]:
    log = y.ln()
    u = log - z
    ratio = u.exp()
    return ratio - 1 - u, 1 - ratio, ratio, (1 + ratio) * (1 + abs(log) + abs(z))


def _squared(y: Decimal, z: Decimal) -> tuple[Decimal, Decimal, Decimal, Decimal]:
    return (z - y) * (z - y) / 2, z - y, ONE, abs(z - y) * (abs(z) + abs(y))


def _tweedie(power: float) -> RowLoss:
    a, b = 2 - Decimal(power), Decimal(power) - 1

    def loss(y: Decimal, z: Decimal) -> tuple[Decimal, Decimal, Decimal, Decimal]:
        up, down = (a * z).exp(), y * (-b * z).exp()
        own = (a * y.ln()).exp() / (a * b) if y > 0 else ZERO
        return up / a + down / b - own, up - down, a * up + b * down, (up + down) * (1 + abs(z)) + 2 * own

    return loss


def _negative_binomial(alpha: float) -> RowLoss:
    a = Decimal(alpha)

    def loss(y: Decimal, z: Decimal) -> tuple[Decimal, Decimal, Decimal, Decimal]:
        k, shift = 1 / a, a.ln()
        t = z + shift
        value, _, curved, _ = _logistic(ZERO, t)  # log(1 + e^t) and s (1 - s)
        s = 1 / (1 + (-t).exp())
        own = y * (y / (y + k)).ln() if y > 0 else ZERO
        whole = (y + k) * value - y * t + own - k * (1 + a * y).ln()
        cancelled = (y + k) * value + y * (abs(z) + abs(shift)) + abs(own) + k * (1 + a * y).ln()
        return whole, k * s - y * (1 - s), (y + k) * curved, cancelled + (y + k) * (abs(z) + abs(shift))

    return loss


_ROW_LOSSES: dict[str, Callable[[Any], RowLoss]] = {
    "Logistic": lambda loss: _logistic,
    "PoissonLog": lambda loss: _poisson,
    "GammaLog": lambda loss: _gamma,
    "Squared": lambda loss: _squared,
    "TweedieLog": lambda loss: _tweedie(loss.power),
    "NegativeBinomialLog": lambda loss: _negative_binomial(loss.alpha),
}
