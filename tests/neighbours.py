"""Mutual information in slow, obvious NumPy: all distances of all rows.

I = psi(n) + mean_i [psi(j_i) - psi(a_i) - psi(b_i)] with counts of the rows nearer than the k-th neighbour, row i
included. Classes are infinitely far from each other. A class with one row is left out.
"""

from __future__ import annotations

from fractions import Fraction
from math import log
from typing import Any

import numpy as np
from scipy.special import digamma

TIE = 2.0**-30  # distances that agree to this share are equal


def inside(distance: Any, kth: Any) -> Any:
    """Rows in the open ball, or those at no distance where the k-th neighbour is at none."""
    return distance < np.where(kth > 0, kth * (1 - TIE), np.finfo(float).smallest_subnormal)[:, None]


def of_two_numbers(x: Any, y: Any, k: int) -> float:
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    dx, dy = np.abs(x[:, None] - x), np.abs(y[:, None] - y) * (x.std() / y.std())
    both = np.maximum(dx, dy)
    kth = np.sort(both, axis=1)[:, k]  # the row itself comes first
    counts = [inside(distance, kth).sum(axis=1) for distance in (both, dx, dy)]
    return _mean(counts)


def of_number_and_class(x: Any, classes: Any, k: int) -> float:
    _, codes, sizes = np.unique(classes, return_inverse=True, return_counts=True)
    kept = sizes[codes] > 1
    x, codes = x[kept], codes[kept]
    if not len(x) or np.ptp(x) == 0:
        return 0.0
    dx = np.abs(x[:, None] - x)
    both = np.where(codes[:, None] == codes, dx, np.inf)
    kth = np.sort(both, axis=1)[np.arange(len(x)), np.minimum(k, sizes[codes] - 1)]
    counts = [inside(both, kth).sum(axis=1), inside(dx, kth).sum(axis=1), sizes[codes]]
    return _mean(counts)


def _mean(counts: list[Any]) -> float:
    joint, a, b = (digamma(count.astype(float)) for count in counts)
    return max(0.0, float(digamma(len(joint)) + np.mean(joint - a - b)))


def of_counts(x: Any, y: Any, weight: Any = None) -> float:
    """Sum of p(x, y) log(p(x, y) / (p(x) p(y))) with exact shares. x, y: lists of anything hashable."""
    weights = [Fraction(1)] * len(x) if weight is None else [Fraction(float(w)) for w in weight]
    total = sum(weights)
    joint: dict[Any, Fraction] = {}
    for pair, w in zip(zip(x, y, strict=True), weights, strict=True):
        joint[pair] = joint.get(pair, Fraction(0)) + w / total
    first: dict[Any, Fraction] = {}
    second: dict[Any, Fraction] = {}
    for (a, b), p in joint.items():
        first[a] = first.get(a, Fraction(0)) + p
        second[b] = second.get(b, Fraction(0)) + p
    return float(sum(float(p) * log(p / (first[a] * second[b])) for (a, b), p in joint.items() if p))
