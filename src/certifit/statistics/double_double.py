"""Double-double ("twofold") numbers: pairs hi + lo of float64 arrays, some 106 bits each; for small arrays.

The order of operations is that of the compiled core, so sums continued here keep the core's bits.

Chances from their logarithms in twofold precision, and how far they are from adding up to 1.

A logarithm rounded to float64 moves its chance by up to 2^-53 |log p|, relative. In a likelihood of many words per row
these roundings add up, word by word; what counts is the sum of all chances less 1.
"""

from __future__ import annotations

from itertools import product
from typing import TypeVar, overload

import numpy as np

from certifit.data.columns import Array
from certifit.runtime import core

Pair = tuple[Array, Array]
Numbers = TypeVar("Numbers", float, Array)


@overload
def two_sum(a: float, b: float) -> tuple[float, float]: ...
@overload
def two_sum(a: Array, b: Array | float) -> Pair: ...
def two_sum(a: Array | float, b: Array | float) -> tuple[Array | float, Array | float]:
    """hi + lo = a + b exactly."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: Numbers, b: Numbers) -> tuple[Numbers, Numbers]:
    """hi + lo = a b exactly, by Dekker's splitting."""
    p = a * b
    a_hi, a_lo = _split(a)
    b_hi, b_lo = _split(b)
    return p, ((a_hi * b_hi - p) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo


def add(a: tuple[Numbers, Numbers], b: tuple[Numbers, Numbers]) -> tuple[Numbers, Numbers]:
    """a + b."""
    s, e = two_sum(a[0], b[0])
    t, f = two_sum(a[1], b[1])
    s, e = _quick_two_sum(s, e + t)
    return _quick_two_sum(s, e + f)


def multiply(a: tuple[Numbers, Numbers], b: tuple[Numbers, Numbers]) -> tuple[Numbers, Numbers]:
    """a b."""
    p, e = two_product(a[0], b[0])
    return _quick_two_sum(p, e + (a[0] * b[1] + a[1] * b[0]))


def dot(a: Array, b: Array) -> tuple[float, float]:
    """Sum of a_j b_j as a pair."""
    hi, lo = core.twofold_dot(np.ascontiguousarray(a, np.float64), np.ascontiguousarray(b, np.float64))
    return hi, lo


def _quick_two_sum(a: Numbers, b: Numbers) -> tuple[Numbers, Numbers]:
    s = a + b
    return s, b - (s - a)


def _split(a: Numbers) -> tuple[Numbers, Numbers]:
    c = 134217729.0 * a  # 2^27 + 1
    hi = c - (c - a)
    return hi, a - hi


_LOG_2 = (float(np.log(2.0)), 2.3190468138462996e-17)  # hi + lo = log 2 to 1e-33
_HALVINGS = 8
_TERMS = 9
_MOST_STEPS = 2  # most units in the last place by which a logarithm is moved
_CHOICES = 6  # logarithms whose moves are chosen together
EXCESS_ERROR = 2.0**-94  # error of a sum of chances near 1


def twofold_exp(x: Array) -> Pair:
    """e^x for x <= 0, to some 2^-95, relative."""
    powers = np.rint(np.maximum(x, -1074.0) / _LOG_2[0])
    zero = np.zeros_like(powers)
    r = add((np.maximum(x, -800.0), zero), multiply((-powers, zero), (zero + _LOG_2[0], zero + _LOG_2[1])))
    r = (np.ldexp(r[0], -_HALVINGS), np.ldexp(r[1], -_HALVINGS))
    y = r  # e^r - 1 = r (1 + r/2 (1 + r/3 (...)))
    for i in range(_TERMS, 1, -1):
        share = _divided(r, float(i)) if i == _TERMS else multiply(_divided(r, float(i)), y)
        y = add((zero + 1.0, zero), share)
    y = multiply(r, y)
    for _ in range(_HALVINGS):  # (1 + y)^2 - 1
        y = add((2 * y[0], 2 * y[1]), multiply(y, y))
    hi, lo = add((zero + 1.0, zero), y)
    scale = powers.astype(np.int64)
    return np.ldexp(hi, scale), np.ldexp(lo, scale)


def excess(log_p: Array) -> Array:
    """sum_j p_j - 1 of every row of logarithms."""
    hi, lo = twofold_exp(log_p)
    while hi.shape[-1] > 1:
        odd = hi.shape[-1] % 2
        if odd:
            hi, lo = (np.concatenate([part, np.zeros((*part.shape[:-1], 1))], axis=-1) for part in (hi, lo))
        hi, lo = add((hi[..., ::2], lo[..., ::2]), (hi[..., 1::2], lo[..., 1::2]))
    ones = np.ones(hi.shape)
    return np.asarray(add((hi, lo), (-ones, np.zeros(hi.shape)))[0][..., 0])


def balanced(log_p: Array) -> Array:
    """The logarithms moved by a few units in their last places so that the chances add up to 1 to more digits."""
    return np.array([_balanced(row, over) for row, over in zip(log_p, excess(log_p), strict=True)])


def _balanced(row: Array, over: float) -> Array:
    """One unit of logarithm j moves the sum by p_j units: all moves of the few finest that reach `over` are tried."""
    row = row.copy()
    units = np.spacing(np.abs(row))
    gains = np.where(np.isfinite(row) & (row < 0), np.exp(row) * units, 0.0)
    order = np.argsort(gains, kind="stable")
    order = order[gains[order] > 0]
    if not len(order):
        return row
    reach = np.convolve(gains[order], np.ones(_CHOICES), mode="full")[_CHOICES - 1 :]  # of the next few, this one first
    first = int(np.argmax(_MOST_STEPS * reach >= abs(over)))
    chosen = order[min(first, max(len(order) - _CHOICES, 0)) :][:_CHOICES]
    choices = np.array(list(product(range(-_MOST_STEPS, _MOST_STEPS + 1), repeat=len(chosen))), dtype=np.float64)
    best = choices[np.argmin(np.abs(over - choices @ gains[chosen]))]
    row[chosen] -= best * units[chosen]
    return row


def _divided(a: Pair, by: float) -> Pair:
    """a / by."""
    quotient = a[0] / by
    product, error = two_product(quotient, np.full_like(quotient, by))
    return quotient, ((a[0] - product) - error + a[1]) / by
