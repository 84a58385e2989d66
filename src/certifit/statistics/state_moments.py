"""Moments of the rows about a state of Gaussian classes: what the state is off by, from the rows alone.

With z = x scale - m_k (m_k the state's mean, scaled), u = T_k z (T_k its root, S_k^-1 = T_k'T_k) and weights w that add
up to 1 in every class:

    step_k = sum w z,  spread_k = sum w z z',  lean_k = sum w u,  whitened_k = sum w u u'

At the closed form step = lean = 0, spread = S and whitened = I, whatever the condition of S: nothing cancels in these
sums. Columns that nearly repeat others cancel in u alone, which is twofold there.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from certifit.data.cells import Cells
from certifit.data.columns import Array, Columns
from certifit.data.source import Block, Source
from certifit.statistics import twofold as tf
from certifit.statistics.gram import Scaling

PIECE_ROWS = 1024
PIECE_ENTRIES = 1 << 22
LARGEST_DENOMINATOR = 1000
NEAR = 1e-9
LARGE_PRODUCT = 1e6  # terms of u this many times its size are added in twofold precision


@dataclass(frozen=True)
class StateMoments:
    """Sums of every class; spread and whitened hold squares alone where the roots are rows of numbers."""

    total: Array  # classes: 1 but for rounding
    step: Array  # classes x columns
    spread: Array
    lean: Array
    whitened: Array
    is_twofold: bool

    def __add__(self, other: StateMoments) -> StateMoments:
        return StateMoments(
            self.total + other.total,
            self.step + other.step,
            self.spread + other.spread,
            self.lean + other.lean,
            self.whitened + other.whitened,
            self.is_twofold,
        )


def state_moments(
    source: Source, cells: Cells, scaling: Scaling, weight: Array, means: Array, roots: Array, spreads: Array
) -> StateMoments:
    """One pass. means, roots (classes x rows x columns) and spreads (standard deviations) are scaled.

    weight: sum of the scaled weights of every class.
    """
    amplified = (np.abs(roots) * spreads[:, None, :]).sum(axis=2).max(initial=0.0)
    of_stretch = partial(
        _of_stretch, cells=cells, scaling=scaling, weight=weight, means=means, roots=roots,
        is_twofold=bool(roots.shape[1] > 1 and amplified > LARGE_PRODUCT),
    )  # fmt: skip
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        moments: StateMoments = source.reduce(of_stretch)
    return moments


def _of_stretch(
    stretch: Block, cells: Cells, scaling: Scaling, weight: Array, means: Array, roots: Array, is_twofold: bool
) -> StateMoments:
    d = means.shape[1]
    size = max(1, min(PIECE_ROWS, PIECE_ENTRIES // max(d, 1)))
    square = roots.shape[1] > 1
    K, shape = len(means), (d, d) if square else (d,)
    zero = np.zeros((K, d))
    total = StateMoments(np.zeros(K), zero, np.zeros((K, *shape)), zero, np.zeros((K, *shape)), is_twofold)
    for begin in range(0, stretch.n_rows, size):
        part = stretch.part(begin, begin + size)
        numbers = cells.of(part)
        x = dense_rows(part.X) * scaling.scale
        w = np.ones(part.n_rows) if part.weight is None else part.weight * scaling.weight_scale
        sums = [_of_class(x, w, numbers == k, weight[k], means[k], roots[k], is_twofold) for k in range(K)]
        a, b, c, e, f = (np.array(parts) for parts in zip(*sums, strict=True))
        total = total + StateMoments(a, b, c, e, f, is_twofold)
    return total


def _of_class(
    x: Array, w: Array, is_own: Array, whole: float, mean: Array, root: Array, is_twofold: bool
) -> tuple[Array, Array, Array, Array, Array]:
    is_own = is_own & (w > 0)
    share = (w[is_own] / whole)[:, None]
    hi, lo = tf.two_sum(x[is_own], -mean)
    if len(root) == 1:
        u = hi * root[0]
        return share.sum(), (share * hi).sum(axis=0), (share * hi * hi).sum(axis=0), *_squares(share, u)
    u = _twofold_product(hi, lo, root) if is_twofold else hi @ root.T
    return share.sum(), hi.T @ share[:, 0], (share * hi).T @ hi, u.T @ share[:, 0], (share * u).T @ u


def _squares(share: Array, u: Array) -> tuple[Array, Array]:
    return (share * u).sum(axis=0), (share * u * u).sum(axis=0)


def _twofold_product(hi: Array, lo: Array, root: Array) -> Array:
    """z T' for rows z = hi + lo and a lower triangle T."""
    total: tf.Pair = (np.zeros(hi.shape), np.zeros(hi.shape))
    for j in range(len(root)):
        used = slice(j, None)
        entries = root[None, used, j]
        term = tf.multiply((hi[:, j, None], lo[:, j, None]), (entries, np.zeros_like(entries)))
        total[0][:, used], total[1][:, used] = tf.add((total[0][:, used], total[1][:, used]), term)
    return total[0]


@dataclass(frozen=True)
class Remainders:
    """Of columns that are combinations of others: the largest remainder of each, as a share of its rounding."""

    size: Array

    def __add__(self, other: Remainders) -> Remainders:
        return Remainders(np.maximum(self.size, other.size))


def remainders(source: Source, columns: Array, others: Array, times: Array) -> Array:
    """Largest |e_i| by what the rounding of the entries explains, of x_c = constant + times x_others + e in every row.

    e_i = (x_ic - x_0c) - times (x_i - x_0) in twofold precision; rounding of the entries, and of
    the numbers `times`, explains 2u of the magnitudes.
    0: the column is such a combination to the last bit; up to 1: to the rounding of its entries.
    """
    first = next(block for block in source.stretches() if (_own_rows(block)).any())
    start = dense_rows(first.where(_own_rows(first)).part(0, 1).X)[0]
    of_stretch = partial(_remainders, columns=columns, others=others, times=times, start=start)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        sums: Remainders = source.reduce(of_stretch)
    return sums.size


def plain_numbers(times: Array) -> Array:
    """Numbers as small fractions, or 0, where they are near one: relations made by hand have those."""
    fractions = np.array([float(Fraction(float(t)).limit_denominator(LARGEST_DENOMINATOR)) for t in times.ravel()])
    return np.where(np.abs(fractions.reshape(times.shape) - times) <= NEAR, fractions.reshape(times.shape), times)


def _own_rows(block: Block) -> Array:
    is_own = np.ones(block.n_rows, dtype=bool) if block.y is None else np.asarray(block.y >= 0)
    return is_own if block.weight is None else is_own & (block.weight > 0)


def _remainders(stretch: Block, columns: Array, others: Array, times: Array, start: Array) -> Remainders:
    size = max(1, min(PIECE_ROWS, PIECE_ENTRIES // max(len(start), 1)))
    total = np.zeros(len(columns))
    for begin in range(0, stretch.n_rows, size):
        part = stretch.part(begin, begin + size)
        x = dense_rows(part.X)[_own_rows(part)]
        for i, j in enumerate(columns):
            used = np.flatnonzero(times[i])
            left, sizes = tf.two_sum(x[:, j], -start[j]), np.abs(x[:, j]) + abs(start[j])
            for k, t in zip(others[used], times[i][used], strict=True):
                away = tf.two_sum(x[:, k], -start[k])
                factor = np.full(len(x), -t)
                left = tf.add(left, tf.multiply(away, (factor, np.zeros(len(x)))))
                sizes += abs(t) * (np.abs(x[:, k]) + abs(start[k]))
            allowed = 2.0**-52 * sizes
            shares = np.divide(np.abs(left[0]), allowed, out=np.zeros(len(x)), where=left[0] != 0)
            total[i] = max(total[i], shares.max(initial=0.0))
    return Remainders(total)


def dense_rows(X: Any) -> Array:
    """Rows as a float64 array."""
    if isinstance(X, Columns) or sp.issparse(X):
        X = X.toarray()
    return np.asarray(X, dtype=np.float64)
