"""float64 numbers as exact integers, rationals and 300-bit numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx, fmpq, fmpz

BITS = 320
ctx.prec = BITS


def set_bits(bits: int) -> int:
    """Bits of all 300-bit numbers from here on; at least BITS."""
    ctx.prec = max(BITS, bits)
    return int(ctx.prec)


def whole(values: Any) -> tuple[list[fmpz], int]:
    """Integers m_i and one exponent e with values_i = m_i 2^e, exactly."""
    mantissas, exponents = np.frexp(np.asarray(values, dtype=np.float64).ravel())
    integers = [int(m) for m in np.ldexp(mantissas, 53)]
    used = [int(e) - 53 for m, e in zip(integers, exponents, strict=True) if m]
    if not used:
        return [fmpz(0)] * len(integers), 0
    least = min(used)
    pairs = zip(integers, exponents, strict=True)
    return [fmpz(m << (int(e) - 53 - least)) if m else fmpz(0) for m, e in pairs], least


def rational(value: Any) -> fmpq:
    """A float64 number, exactly."""
    top, bottom = float(value).as_integer_ratio()
    return fmpq(top, bottom)


def power(exponent: int) -> fmpq:
    """2^exponent."""
    return fmpq(fmpz(1) << exponent) if exponent >= 0 else fmpq(1, fmpz(1) << -exponent)


def real(value: Any) -> arb:
    """A float64 number or a rational as a 300-bit number."""
    return arb(value) if isinstance(value, fmpq | arb) else arb(float(value))


def reals(values: Iterable[Any]) -> list[arb]:
    """One 300-bit number per value."""
    return [arb(float(value)) for value in values]


def middle(matrix: arb_mat) -> list[arb]:
    """Entries without their radii: a reference is a point, not a ball."""
    return list(matrix.mid().entries())


def as_float(value: Any) -> float:
    """The nearest float64, inf beyond its range; of rationals too."""
    if isinstance(value, fmpq):
        try:
            return int(value.p) / int(value.q)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if value.is_nan():
        return math.nan
    try:
        return float(arb(value).mid()) if value.is_finite() else math.inf
    except OverflowError:
        return math.inf


def ratio(part: Any, whole_: Any) -> float:
    """part / whole; 0 of 0 is 0, and a number above nothing is infinite."""
    if part == 0 or (isinstance(part, arb) and part.is_zero()):
        return 0.0
    if whole_ == 0 or (isinstance(whole_, arb) and whole_.is_zero()):
        return math.inf if part > 0 else 0.0
    return as_float(part / whole_)


def total(values: Sequence[Any]) -> Any:
    """Their sum, of exact numbers or 300-bit ones."""
    found = values[0]
    for value in values[1:]:
        found = found + value
    return found
