"""Pairs hi + lo of float64 arrays, some 106 bits per number: the few operations that small arrays need in Python.

The order of operations is that of the compiled core, so sums continued here keep the core's bits.
"""

from __future__ import annotations

from typing import overload

import numpy as np

from certifit.data.columns import Array

Pair = tuple[Array, Array]


@overload
def two_sum(a: float, b: float) -> tuple[float, float]: ...
@overload
def two_sum(a: Array, b: Array | float) -> Pair: ...
def two_sum(a: Array | float, b: Array | float) -> tuple[Array | float, Array | float]:
    """hi + lo = a + b exactly."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: Array, b: Array) -> Pair:
    """hi + lo = a b exactly, by Dekker's splitting."""
    p = a * b
    a_hi, a_lo = _split(a)
    b_hi, b_lo = _split(b)
    return p, ((a_hi * b_hi - p) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo


def add(a: Pair, b: Pair) -> Pair:
    """a + b."""
    s, e = two_sum(a[0], b[0])
    t, f = two_sum(a[1], b[1])
    s, e = _quick_two_sum(s, e + t)
    return _quick_two_sum(s, e + f)


def multiply(a: Pair, b: Pair) -> Pair:
    """a b."""
    p, e = two_product(a[0], b[0])
    return _quick_two_sum(p, e + (a[0] * b[1] + a[1] * b[0]))


def dot(a: Array, b: Array) -> tuple[float, float]:
    """Sum of a_j b_j as a pair."""
    total: Pair = (np.zeros(()), np.zeros(()))
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    counts = (a != 0) & (b != 0)  # weights and shifts of sparse columns are mostly 0; NaN counts
    products = two_product(a[counts], b[counts])
    for hi, lo in zip(*products, strict=True):
        total = add(total, (hi, lo))
    return float(total[0]), float(total[1])


def _quick_two_sum(a: Array, b: Array) -> Pair:
    s = a + b
    return s, b - (s - a)


def _split(a: Array) -> Pair:
    c = 134217729.0 * a  # 2^27 + 1
    hi = c - (c - a)
    return hi, a - hi
