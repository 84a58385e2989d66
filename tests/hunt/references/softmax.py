"""Softmax regression in 300 bits and more.

f(V) = sum_i weight_i [ log sum_k e^z_ik - z_iy ] / W + alpha/2 sum_jk u_j w_jk^2,   z_ik = b_k + x_i'w_k
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import arb, arb_mat

from tests.hunt.references.convex import MOST_STEPS, ZERO, Found, Walls, minimise
from tests.hunt.references.numbers import middle, reals, set_bits
from tests.hunt.references.scores import bits_for


class Softmax:
    """v holds, class by class, the intercept and the weights of the scaled columns."""

    def __init__(
        self, X: Any, codes: Any, n_classes: int, weights: Any, fit_intercept: bool, alpha: float,
        columns: Sequence[int] | None = None, penalty_units: Sequence[arb] | None = None,
    ) -> None:  # fmt: skip
        X = np.asarray(X, dtype=np.float64)
        n, d = X.shape
        self.columns = list(range(d)) if columns is None else list(columns)
        weights = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
        self.bits = set_bits(bits_for(X, weights))
        used = np.flatnonzero(weights > 0)
        self.offset, self.n_classes = int(fit_intercept), n_classes
        self.width = len(self.columns) + self.offset
        self.size = self.width * n_classes
        sizes = np.abs(X[used][:, self.columns]).max(axis=0, initial=0.0)
        self.units = [arb(2) ** (int(np.frexp(s)[1]) if s > 0 else 0) for s in [1.0] * self.offset + list(sizes)]
        rows = np.hstack([np.ones((n, self.offset)), X[:, self.columns]])[used]
        self.rows = [[arb(float(x)) / unit for x, unit in zip(row, self.units, strict=True)] for row in rows]
        self.A = arb_mat(self.rows) if self.width else arb_mat(len(used), 0)
        self.transposed = self.A.transpose()
        total = sum(reals(weights[used]), ZERO)
        self.weights = [(w / total).mid() for w in reals(weights[used])]
        self.codes = [int(codes[i]) for i in used]
        times = [arb(1)] * d if penalty_units is None else penalty_units
        strengths = [arb(float(alpha)) * times[j] for j in self.columns]
        own = [ZERO] * self.offset + [s / u**2 for s, u in zip(strengths, self.units[self.offset :], strict=True)]
        self.l2 = own * n_classes

    def point(self, coef: Any, intercept: Any) -> list[arb]:
        """A state in the units of the scaled columns."""
        out = []
        for weights, b in zip(coef, np.ravel(intercept), strict=True):
            values = [b] * self.offset + [weights[j] for j in self.columns]
            out += [arb(float(x)) * unit for x, unit in zip(values, self.units, strict=True)]
        return out

    def _scores(self, v: Sequence[arb]) -> list[list[arb]]:
        """One list per class."""
        p = self.width
        if not p:
            return [[ZERO] * len(self.weights)] * self.n_classes
        parts = [arb_mat(p, 1, list(v[k * p : (k + 1) * p])) for k in range(self.n_classes)]
        return [middle(self.A * part) for part in parts]

    def value(self, v: list[arb]) -> arb:
        """f(v)."""
        set_bits(self.bits)
        total = sum((p * x * x / 2 for p, x in zip(self.l2, v, strict=True) if p > 0), ZERO)
        for w, code, z in zip(self.weights, self.codes, zip(*self._scores(v), strict=True), strict=True):
            # log sum_k e^(z_k - z_y): 1 + the others, so that a small loss keeps its digits
            own = sum(((x - z[code]).exp() for k, x in enumerate(z) if k != code), ZERO)
            total += w * own.log1p()
        return total.mid()

    def slopes(self, v: list[arb]) -> tuple[list[arb], arb_mat]:
        """Gradient and Hessian."""
        K, p, n = self.n_classes, self.width, len(self.weights)
        chances = []
        for z in zip(*self._scores(v), strict=True):
            top = max(z)
            shares = [(x - top).exp() for x in z]
            whole = sum(shares, ZERO)
            chances.append([(s / whole).mid() for s in shares])
        gradient: list[arb] = []
        hessian = arb_mat(self.size, self.size)
        for k in range(K):
            off = [w * (c[k] - (1 if k == y else 0)) for w, c, y in zip(self.weights, chances, self.codes, strict=True)]
            gradient += middle(self.transposed * arb_mat(n, 1, off))
            for m in range(k, K):
                shares = [c[k] * (1 - c[k]) if k == m else -c[k] * c[m] for c in chances]
                curved = [w * share for w, share in zip(self.weights, shares, strict=True)]
                scaled = arb_mat([[c * e for e in row] for c, row in zip(curved, self.rows, strict=True)])
                block = (self.transposed * scaled).mid()
                for i in range(p):
                    for j in range(p):
                        hessian[k * p + i, m * p + j] = block[i, j]
                        hessian[m * p + j, k * p + i] = block[i, j]
        for j, pull in enumerate(self.l2):
            gradient[j] += pull * v[j]
            hessian[j, j] += pull
        return [g.mid() for g in gradient], hessian

    def walls(self, l1: Sequence[arb], low: Any, high: Any) -> Walls:
        """Kinks and bounds of single columns in these units, alike for all classes."""
        units = self.units[self.offset :]
        kinks = [ZERO] * self.offset + [l1[j] / unit for j, unit in zip(self.columns, units, strict=True)]
        ends: list[list[arb | None]] = [[None] * self.offset, [None] * self.offset]
        for j, unit in zip(self.columns, units, strict=True):
            for end, out in zip((low[j], high[j]), ends, strict=True):
                out.append(arb(float(end)) * unit if np.isfinite(end) else None)
        return Walls(kinks * self.n_classes, ends[0] * self.n_classes, ends[1] * self.n_classes)

    def best(self, start: Sequence[arb], rest: arb = ZERO, walls: Walls | None = None) -> Found:
        """The minimum from a start, or from 0 where 0 is better or the start does not converge."""
        if not self.size:
            return Found([], self.value([]), True)
        is_far = not self.value(list(start)) <= self.value([ZERO] * self.size)
        found = minimise(
            self, [ZERO] * self.size if is_far else start, walls, rest, steps=40 if walls is None else MOST_STEPS
        )
        if found.is_converged:
            return found
        other = minimise(self, [ZERO] * self.size, walls, rest, steps=60 if walls is None else MOST_STEPS)
        return other if other.is_converged or not found.value < other.value else found
