"""Variances of columns in exact rationals, and their roots: what `standardize` multiplies the penalties by."""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import fmpq, fmpz

from tests.hunt.references.numbers import rational

ONE = fmpq(1)
ROOT_BITS = 2000


def variance(values: Any, weights: Any = None, centred: bool = True) -> fmpq:
    """Of the rows of positive weight, about their mean or about 0; 1 for what does not vary."""
    values = np.asarray(values, dtype=np.float64)
    weights = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)
    pairs = [(rational(w), rational(x)) for w, x in zip(weights, values, strict=True) if w > 0]
    whole = sum((w for w, _ in pairs), fmpq(0))
    mean = sum((w * x for w, x in pairs), fmpq(0)) / whole if centred else fmpq(0)
    return sum((w * (x - mean) ** 2 for w, x in pairs), fmpq(0)) / whole or ONE


def variances(X: Any, weights: Any = None, centred: bool = True) -> list[fmpq]:
    """One per column."""
    return [variance(column, weights, centred) for column in np.asarray(X, dtype=np.float64).T]


def root(square: fmpq) -> fmpq:
    """The square root to a relative error below 2^-ROOT_BITS."""
    # sqrt(p / q) = sqrt(p q 4^k) / (q 2^k)
    shift = fmpz(1) << ROOT_BITS
    return fmpq((square.p * square.q * shift * shift).isqrt(), square.q * shift)
