"""Generalised linear models in 300 bits and more.

f(v) = sum_i weight_i l(y_i, z_i) / W + sum_j l2_j v_j^2 / 2,   z_i = offset_i + b + x_i'w,   v = (b, w)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import arb, arb_mat

from tests.hunt.references.convex import ZERO, Found, Walls, minimise
from tests.hunt.references.losses import Law
from tests.hunt.references.numbers import BITS, middle, reals, set_bits


def bits_for(X: Any, weights: Any) -> int:
    """Bits in which the smallest and the largest weight count both, twice over."""
    used = np.asarray(weights, dtype=np.float64)
    used = used[used > 0]
    spread = math.log2(used.max()) - math.log2(used.min()) if len(used) else 0.0
    return BITS + int(2 * spread)


class Scores:
    """The smooth part of a generalised linear model. Columns are scaled by powers of two to a size near 1."""

    def __init__(
        self, X: Any, laws: Sequence[Law], weights: Any, fit_intercept: bool, l2: Sequence[arb],
        columns: Sequence[int] | None = None, offset: Any = None,
    ) -> None:  # fmt: skip
        X = np.asarray(X, dtype=np.float64)
        n, d = X.shape
        columns = list(range(d)) if columns is None else list(columns)
        weights = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
        self.bits = set_bits(bits_for(X, weights))
        used = np.flatnonzero(weights > 0)
        self.columns, self.offset = columns, int(fit_intercept)
        self.size = len(columns) + self.offset
        sizes = np.abs(X[used][:, columns]).max(axis=0, initial=0.0)
        exponents = [0] * self.offset + [int(np.frexp(s)[1]) if s > 0 else 0 for s in sizes]
        self.units = [arb(2) ** e for e in exponents]
        rows = np.hstack([np.ones((n, self.offset)), X[:, columns]])[used]
        entries = [arb(float(x)) / unit for row in rows for x, unit in zip(row, self.units, strict=True)]
        self.A = arb_mat(len(used), self.size, entries)
        self.transposed = self.A.transpose()
        total = sum(reals(weights[used]), ZERO)
        self.weights = [(w / total).mid() for w in reals(weights[used])]
        self.laws = [laws[i] for i in used]
        self.added = [ZERO] * len(used) if offset is None else reals(np.asarray(offset)[used])
        pulls = [ZERO] * self.offset + [l2[j] for j in columns]
        self.l2 = [p / unit**2 for p, unit in zip(pulls, self.units, strict=True)]

    def point(self, coef: Any, intercept: Any) -> list[arb]:
        """A state in the units of the scaled columns."""
        values = [intercept] * self.offset + [np.ravel(coef)[j] for j in self.columns]
        return [arb(float(x)) * unit for x, unit in zip(values, self.units, strict=True)]

    def scores(self, v: Sequence[arb]) -> list[arb]:
        """z of every row."""
        if not self.size:
            return self.added
        return middle(self.A * arb_mat(self.size, 1, list(v)) + arb_mat(len(self.added), 1, self.added))

    def value(self, v: list[arb]) -> arb:
        """f(v)."""
        set_bits(self.bits)
        rows = [w * law(z)[0] for w, law, z in zip(self.weights, self.laws, self.scores(v), strict=True)]
        total = sum(rows, self._pull(v))
        # Powers of scores beyond all bits are balls about 0 that reach far: nothing is known there.
        return total.mid() if total.rad() <= 1 or total.rad() <= abs(total.mid()) else arb("inf")

    def _pull(self, v: Sequence[arb]) -> arb:
        return sum((p * x * x / 2 for p, x in zip(self.l2, v, strict=True) if p > 0), ZERO)

    def slopes(self, v: list[arb]) -> tuple[list[arb], arb_mat]:
        """Gradient and Hessian."""
        set_bits(self.bits)
        triples = [law(z) for law, z in zip(self.laws, self.scores(v), strict=True)]
        n = len(triples)
        slope = arb_mat(n, 1, [w * t[1] for w, t in zip(self.weights, triples, strict=True)]).mid()
        gradient = middle(self.transposed * slope)
        curved = [w * t[2] for w, t in zip(self.weights, triples, strict=True)]
        rows = zip(curved, _rows(self.A.entries(), self.size), strict=True)
        scaled = arb_mat(n, self.size, [c * e for c, row in rows for e in row])
        hessian = (self.transposed * scaled).mid()
        for j, pull in enumerate(self.l2):
            gradient[j] += pull * v[j]
            hessian[j, j] += pull
        return [g.mid() for g in gradient], hessian

    def walls(self, l1: Sequence[arb], low: Any, high: Any) -> Walls:
        """Kinks and bounds of single columns in these units."""
        units = self.units[self.offset :]
        kinks = [ZERO] * self.offset + [l1[j] / unit for j, unit in zip(self.columns, units, strict=True)]
        ends: list[list[arb | None]] = [[None] * self.offset, [None] * self.offset]
        for j, unit in zip(self.columns, self.units[self.offset :], strict=True):
            for end, out in zip((low[j], high[j]), ends, strict=True):
                out.append(arb(float(end)) * unit if np.isfinite(end) else None)
        return Walls(kinks, ends[0], ends[1])

    def best(self, start: Sequence[arb], walls: Walls | None = None, rest: arb = ZERO) -> Found:
        """The minimum from a start, or from 0 where 0 is better or the start does not converge."""
        if not self.size:
            return Found([], self.value([]), True)
        # A start far above 0 may lie where no number of bits tells a loss from rounding.
        is_far = not self.value(list(start)) <= self.value([ZERO] * self.size)
        found = minimise(self, [ZERO] * self.size if is_far else start, walls, rest)
        if found.is_converged:
            return found
        other = minimise(self, [ZERO] * self.size, walls, rest)
        return other if other.is_converged or not found.value < other.value else found


def _rows(entries: list[arb], size: int) -> list[list[arb]]:
    return [entries[i : i + size] for i in range(0, len(entries), size)]
