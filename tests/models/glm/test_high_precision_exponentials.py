"""exp and ln by whole numbers against those of the decimal module, which rounds correctly."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext

import numpy as np
import pytest

from certifit.models.glm.high_precision_losses import ERROR, exponential, logarithm


@pytest.mark.parametrize("digits", [28, 80, 160, 640])
def test_both_are_within_their_error(digits: int) -> None:
    rng = np.random.default_rng(digits)
    with localcontext(Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN)) as context:
        for _ in range(30 if digits < 200 else 4):
            x = Decimal(rng.normal()) * Decimal(10) ** int(rng.integers(-30, 12)) / 3
            near_one = 1 + abs(x) * Decimal(10) ** -int(rng.integers(0, digits))
            positive = near_one * Decimal(10) ** int(rng.choice([0, 0, -400_000, 7]))
            power, log = exponential(x), logarithm(positive)
            context.prec = digits + 20
            unit = ERROR * Decimal(10) ** -digits
            assert abs(power / x.exp() - 1) <= unit * (1 + abs(x))
            assert abs(log - positive.ln()) <= unit * (1 + abs(log))
            context.prec = digits


def test_ends_are_those_of_the_decimal_module() -> None:
    with localcontext() as context:
        context.clear_traps()
        assert exponential(Decimal("-inf")) == 0 and exponential(Decimal(0)) == 1 and logarithm(Decimal(1)) == 0
        assert logarithm(Decimal(0)) == Decimal("-inf") and logarithm(Decimal(-1)).is_nan()
        assert exponential(Decimal("nan")).is_nan() and exponential(Decimal("1e30")) == Decimal("inf")
