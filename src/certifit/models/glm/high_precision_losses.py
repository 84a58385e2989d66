"""Losses of scores in long decimal numbers, for certificates that float64 has too few digits for.

Their exp and ln work by whole numbers: several times as fast as the decimal module's, which rounds correctly.

Both are within ERROR * 10^-digits * (1 + |x|) of the truth, relative for exp (x its argument) and absolute for ln (x
its value), in the digits of the context: |x| because the argument, or a sum with it, is rounded to these digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, getcontext
from functools import lru_cache
from typing import Any

from certifit.mathematics.losses.scores import ScoreLoss

ERROR = 30
FAR = Decimal(10) ** 15  # beyond: the whole number of logarithms of 10 would be no small one
HALVINGS = 16  # of the argument, before its series
GUARD = 40  # bits beyond those of the digits: squaring HALVINGS times doubles an error as often


@lru_cache(maxsize=16)
def _constants(digits: int) -> tuple[int, Decimal, Decimal, int, int]:
    """Bits of the whole numbers, ln 10, 2^bits, places behind the point of a power, 10^places."""
    bits, places = int(digits * math.log2(10)) + GUARD, digits + 3
    return bits, Decimal(10).ln(), Decimal(1 << bits), places, 10**places


def exponential(x: Decimal) -> Decimal:
    """e^x."""
    if not abs(x) < FAR:  # not a number too
        return x.exp()
    digits = getcontext().prec
    bits, log_of_ten, one, places, scale = _constants(digits)
    tens = int(x / log_of_ten)
    power = _power_of_small(int((x - tens * log_of_ten) * one), bits)
    return Decimal(power * scale >> bits).scaleb(tens - places) + 0


def _power_of_small(x: int, bits: int) -> int:
    """2^bits e^(x / 2^bits), |x / 2^bits| below 3."""
    small = x >> HALVINGS
    total = term = 1 << bits
    count = 0
    while term and term != -1:  # shifts round down: -1 stays -1
        count += 1
        term = (term * small >> bits) // count
        total += term
    for _ in range(HALVINGS):
        total = total * total >> bits
    return total


def logarithm(x: Decimal) -> Decimal:
    """ln x."""
    if not x > 0 or not x.is_finite():
        return x.ln()
    digits = getcontext().prec
    tens = x.adjusted()
    near = Decimal(math.log(float(x.scaleb(-tens))))
    if tens:
        near += tens * _constants(digits)[1]
    ratio = x * exponential(-near)
    step = (ratio - 1) / (ratio + 1)  # some 1e-16: ln x - near = 2 (step + step^3 / 3 + ...)
    square, term, total, odd = step * step, step, step, 1
    while term and term.adjusted() >= -digits:
        odd += 2
        term *= square
        total += term / odd
    return near + 2 * total


ZERO, ONE = Decimal(0), Decimal(1)
# z -> value, slope and curvature, and a bound on the terms that cancel in the value
LossOfScore = Callable[[Decimal], tuple[Decimal, Decimal, Decimal, Decimal]]
RowLoss = Callable[[Decimal], LossOfScore]  # of a target: what does not change with the score is computed once


def log_of_one_plus(e: Decimal) -> Decimal:
    """log(1 + e), e >= 0."""
    return e - e * e / 2 if e < Decimal("1e-30") else logarithm(1 + e)


def row_loss(loss: ScoreLoss) -> RowLoss | None:
    """Value, slope and curvature of a loss in decimals; None where they are not written here."""
    make = _ROW_LOSSES.get(type(loss).__name__)
    return None if make is None else make(loss)


def _logistic(y: Decimal) -> LossOfScore:
    of_target = y * logarithm(y) + (1 - y) * logarithm(1 - y) if 0 < y < 1 else ZERO

    def loss(z: Decimal) -> tuple[Decimal, Decimal, Decimal, Decimal]:
        log, p, rest = _logistic_parts(z)
        value = ((1 - y) * z if z > 0 else -y * z) + log
        return value + of_target, (1 - y) * p - y * rest, p * rest, ONE

    return loss


def _logistic_parts(z: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    """log(1 + e^-|z|), and 1 / (1 + e^-z) with what is left of 1."""
    small = exponential(-abs(z))
    near, far = 1 / (1 + small), small / (1 + small)
    return log_of_one_plus(small), *((near, far) if z > 0 else (far, near))


def _poisson(y: Decimal) -> LossOfScore:
    log = logarithm(y) if y > 0 else ZERO

    def loss(z: Decimal) -> tuple[Decimal, Decimal, Decimal, Decimal]:
        mu = exponential(z)
        return mu - y - y * (z - log), mu - y, mu, 2 * y * (1 + abs(z) + abs(log))

    return loss


def _gamma(y: Decimal) -> LossOfScore:
    log = logarithm(y)

    def loss(z: Decimal) -> tuple[Decimal, Decimal, Decimal, Decimal]:
        u = log - z
        ratio = exponential(u)
        return ratio - 1 - u, 1 - ratio, ratio, (1 + ratio) * (1 + abs(log) + abs(z))

    return loss


def _squared(y: Decimal) -> LossOfScore:
    def loss(z: Decimal) -> tuple[Decimal, Decimal, Decimal, Decimal]:
        return (z - y) * (z - y) / 2, z - y, ONE, abs(z - y) * (abs(z) + abs(y))

    return loss


def _tweedie(power: float) -> RowLoss:
    def of_target(y: Decimal) -> LossOfScore:
        a, b = 2 - Decimal(power), Decimal(power) - 1  # in the digits of the context that asks
        of_target_alone = exponential(a * logarithm(y)) / (a * b) if y > 0 else ZERO

        def loss(z: Decimal) -> tuple[Decimal, Decimal, Decimal, Decimal]:
            up, down = exponential(a * z), y * exponential(-b * z)
            return (
                up / a + down / b - of_target_alone,
                up - down,
                a * up + b * down,
                (up + down) * (1 + abs(z)) + 2 * of_target_alone,
            )

        return loss

    return of_target


def _negative_binomial(alpha: float) -> RowLoss:
    a = Decimal(alpha)

    def of_target(y: Decimal) -> LossOfScore:
        k, shift = 1 / a, logarithm(a)
        of_target_alone = y * logarithm(y / (y + k)) if y > 0 else ZERO
        far = k * logarithm(1 + a * y)

        def loss(z: Decimal) -> tuple[Decimal, Decimal, Decimal, Decimal]:
            t = z + shift
            log, s, rest = _logistic_parts(t)
            value = log + max(t, ZERO)  # log(1 + e^t)
            cancelled = (y + k) * (value + abs(z) + abs(shift)) + y * (abs(z) + abs(shift)) + abs(of_target_alone) + far
            return (y + k) * value - y * t + of_target_alone - far, k * s - y * rest, (y + k) * s * rest, cancelled

        return loss

    return of_target


_ROW_LOSSES: dict[str, Callable[[Any], RowLoss]] = {
    "Logistic": lambda loss: _logistic,
    "PoissonLog": lambda loss: _poisson,
    "GammaLog": lambda loss: _gamma,
    "Squared": lambda loss: _squared,
    "TweedieLog": lambda loss: _tweedie(loss.power),
    "NegativeBinomialLog": lambda loss: _negative_binomial(loss.alpha),
}
