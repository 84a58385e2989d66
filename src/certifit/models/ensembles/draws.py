"""Samples of rows that do not depend on the order of the rows, nor on copies in place of weights.

Rows that are equal in every column and in the target are one row with their weights added, and these are put in the
order of a hash of their values. There are as many draws as such rows, each with a chance in proportion to the weight:
neither copies in place of weights nor the unit of the weights change a sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Array

_STEP = 0x9E3779B97F4A7C15
_MOST = 2**64 - 1


@dataclass(frozen=True)
class DistinctRows:
    """numbers: of one row of each kind, in the order of the hash. weight: of its kind. kind: of every row, or -1."""

    numbers: Array
    weight: Array
    kind: Array

    @property
    def is_whole(self) -> bool:
        """Whether all weights are whole numbers."""
        return bool((self.weight == np.floor(self.weight)).all()) and self.weight.sum() < 2.0**53


_AT_ONCE = 1 << 15  # numbers that are hashed together


def distinct_rows(X: Any, y: Array, weight: Array | None) -> DistinctRows:
    """Rows of positive weight, equal ones merged."""
    counted = np.arange(len(y)) if weight is None else np.flatnonzero(weight > 0)
    first, second = (_hashes(X, y, seed)[counted] for seed in (0, 1))  # 128 bits: no two rows that differ share them
    order = np.lexsort((second, first))
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (np.diff(first[order]) != 0) | (np.diff(second[order]) != 0)
    places = np.cumsum(is_new) - 1
    mass = np.ones(len(order)) if weight is None else weight[counted][order]
    kind = np.full(len(y), -1, dtype=np.int64)
    kind[counted[order]] = places
    return DistinctRows(counted[order][is_new], np.bincount(places, weights=mass), kind)


def counts_of(rows: DistinctRows, share: float | int, with_replacement: bool, seed: int, number: int) -> Array:
    """How often each distinct row is in sample `number`. share: of the distinct rows, or how many draws.

    Without replacement a row is drawn after the others with a chance in proportion to its weight among those left.
    """
    total = len(rows.weight)
    n_draws = int(share) if isinstance(share, int | np.integer) else max(1, round(float(share) * total))
    if n_draws > total and not with_replacement:
        raise ValueError(f"max_samples is {n_draws}, and without replacement there are {total} distinct rows.")
    weight = rows.weight / rows.weight.max()
    if with_replacement:
        ends = np.cumsum(weight)
        places = np.searchsorted(ends, _uniform(seed, number, n_draws) * ends[-1], side="right")
        return np.bincount(np.minimum(places, len(ends) - 1), minlength=len(ends)).astype(np.float64)
    # The smallest of independent exponential times with the weights as rates.
    times = -np.log1p(-_uniform(seed, number, total)) / weight
    counts = np.zeros(total)
    counts[np.argsort(times, kind="stable")[:n_draws]] = 1.0
    return counts


def _uniform(seed: int, number: int, n: int) -> Array:
    """Numbers in [0, 1) that follow from the seed and the number of the sample, on every machine."""
    raw = np.random.Philox(key=(number << 64) | (seed & _MOST)).random_raw(n)
    return (raw >> np.uint64(11)) * 2.0**-53


def _hashes(X: Any, y: Array, seed: int) -> Array:
    """A hash of every row: a sum over its values that are not 0 of a hash of the place and the value."""
    total = _mixed(_bits(np.asarray(y, dtype=np.float64)) ^ np.uint64(_STEP * (seed + 1) & _MOST))
    if sp.issparse(X):
        entries = X.tocsr().astype(np.float64)
        entries.sum_duplicates()
        rows = np.repeat(np.arange(entries.shape[0]), np.diff(entries.indptr))
        np.add.at(total, rows, _term(entries.data, entries.indices, seed))
        return total
    X = X if hasattr(X, "iloc") else np.asarray(X)
    if isinstance(X, np.ndarray) and X.dtype.kind in "fiub":
        width = max(1, _AT_ONCE // max(len(X), 1))  # sums of 64 bits are the same in any order
        for begin in range(0, X.shape[1], width):
            places = np.arange(begin, min(begin + width, X.shape[1]))
            total = total + _term(X[:, places], places, seed).sum(axis=1, dtype=np.uint64)
        return total
    for j, column in enumerate(_columns(X)):
        total = total + _term(column, j, seed)
    return total


def _columns(X: Any) -> Iterator[Array]:
    """Columns as numbers; those of objects and texts as hashes of what they hold."""
    if hasattr(X, "iloc"):
        return (_as_numbers(X.iloc[:, j].to_numpy()) for j in range(X.shape[1]))
    return (_as_numbers(X[:, j]) for j in range(X.shape[1]))


def _as_numbers(column: Array) -> Array:
    if column.dtype.kind in "fiub":
        return column.astype(np.float64)
    from hashlib import blake2b

    levels, places = np.unique([repr(value) for value in column.tolist()], return_inverse=True)
    codes = [int.from_bytes(blake2b(text.encode(), digest_size=6).digest(), "little") for text in levels]
    return np.array(codes, dtype=np.float64)[places]


def _term(values: Array, place: Array | int, seed: int) -> Array:
    bits = _bits(np.asarray(values, dtype=np.float64))
    with np.errstate(over="ignore"):
        place = _mixed(np.atleast_1d(place).astype(np.uint64) * np.uint64(_STEP) + np.uint64(seed + 11))
        return np.where(bits == 0, np.uint64(0), _mixed(bits ^ place))


def _bits(values: Array) -> Array:
    """The bits of numbers; 0 and -0 are equal, and so are all missing values."""
    return np.where(np.isnan(values), np.nan, values + 0.0).astype(np.float64).view(np.uint64)


def _mixed(x: Array) -> Array:
    """The finaliser of SplitMix64."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(x ^ (x >> np.uint64(31)))
