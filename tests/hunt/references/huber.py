"""Huber regression in 300 bits and more.

    h(z) = z^2/2 if |z| <= delta else delta |z| - delta^2/2,   r_i = y_i - b - x_i'w
    at a scale s:   sum_i weight_i s^2 h(r_i / s) / W + alpha/2 |w|^2
    joint:          sum_i weight_i s h(r_i / s) / W + s/2 + alpha/2 |w|^2   over s > 0 too

Rows beyond the kink have no curvature. A tiny one in its place keeps Newton's matrix regular; the minimum is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flint import arb, arb_mat

from tests.hunt.references.convex import ZERO, Found, minimise
from tests.hunt.references.losses import Law, Triple
from tests.hunt.references.numbers import middle
from tests.hunt.references.scores import Scores

LITTLE = arb(2) ** -50
MOST_BARRIERS = 120


def huber(y: arb, delta: arb, scale: arb) -> Law:
    """s^2 h((y - z) / s) of the score z."""
    edge = delta * scale

    def law(z: arb) -> Triple:
        r = y - z
        if abs(r) <= edge:
            return r * r / 2, -r, arb(1)
        size = abs(r)
        return edge * size - edge * edge / 2, (-edge if r > 0 else edge), LITTLE * edge / size

    return law


class JointHuber:
    """The joint problem: v = (b, w, s)."""

    def __init__(self, scores: Scores, y: Sequence[arb], delta: arb, unit: arb) -> None:
        self.scores, self.y, self.delta = scores, list(y), delta
        self.size = scores.size + 1
        self.unit = unit  # of s: a power of two near the size of the target
        self.barrier = ZERO

    def _residuals(self, v: Sequence[arb]) -> list[arb]:
        fitted = self.scores.scores(v[:-1])
        return [y - z for y, z in zip(self.y, fitted, strict=True)]

    def value(self, v: list[arb]) -> arb:
        """f(v); infinite for s <= 0."""
        s = v[-1] * self.unit
        if not s > 0:
            return arb("inf")
        edge, total = self.delta * s, s / 2 + self.scores._pull(v[:-1])
        if self.barrier > 0:
            total -= self.barrier * v[-1].log()
        for w, r in zip(self.scores.weights, self._residuals(v), strict=True):
            size = abs(r)
            total += w * (r * r / (2 * s) if size <= edge else self.delta * size - self.delta * edge / 2)
        return total.mid()

    def slopes(self, v: list[arb]) -> tuple[list[arb], arb_mat]:
        """Gradient and Hessian, in units of s."""
        s, n = v[-1] * self.unit, len(self.y)
        edge, size = self.delta * s, self.size
        rows = (
            [[*row, ZERO] for row in _rows(self.scores.A.entries(), size - 1)]
            if size > 1
            else [[ZERO] for _ in range(n)]
        )
        slopes, of_scale, left = [], arb(1) / 2, []
        for i, (w, r) in enumerate(zip(self.scores.weights, self._residuals(v), strict=True)):
            if abs(r) <= edge:
                slopes.append(-w * r / s)
                of_scale -= w * r * r / (2 * s * s)
                # r^2 / (2 s) has the curvature (dr - r ds / s)^2 / s
                rows[i][-1] = r / s * self.unit
                left.append(w / s)
            else:
                slopes.append(-w * self.delta if r > 0 else w * self.delta)
                of_scale -= w * self.delta**2 / 2
                left.append(LITTLE * w * self.delta / abs(r))
        gradient = middle(self.scores.transposed * arb_mat(n, 1, slopes)) if size > 1 else []
        # dz moves r by -dz: the curvature in (z, s) is (dz + r ds / s)^2 / s
        A = arb_mat(rows)
        scaled = arb_mat([[c * e for e in row] for c, row in zip(left, rows, strict=True)])
        hessian = (A.transpose() * scaled).mid()
        gradient.append(of_scale * self.unit)
        if self.barrier > 0:
            gradient[-1] -= self.barrier / v[-1]
            hessian[size - 1, size - 1] += self.barrier / v[-1] ** 2
        for j, pull in enumerate(self.scores.l2):
            gradient[j] += pull * v[j]
            hessian[j, j] += pull
        return [g.mid() for g in gradient], hessian

    def best(self, start: Sequence[arb], rest: arb = ZERO) -> Found:
        """The minimum from a start; where that does not converge, as where the best scale is 0, by a barrier.

        At the minimum of f - m log s the slope of f is m / s in s and 0 else, so f is at most m above its infimum.
        """
        found = minimise(self, start, None, rest, steps=12)
        if found.is_converged:
            return found
        wide = max([abs(r) for r in self._residuals(start)], default=ZERO) / self.unit + arb(2) ** -60
        point = [*start[:-1], wide]
        self.barrier = self.value(point) / 8
        for _ in range(MOST_BARRIERS):
            inner = minimise(self, point, None, self.barrier / 10**6, steps=60)
            point = inner.v
            if not inner.is_converged:
                break
            if self.barrier <= rest + inner.value * arb(10) ** -40:
                break
            self.barrier /= 8
        last, self.barrier = self.barrier, ZERO
        value = self.value(point)
        is_best = inner.is_converged and last <= rest + value * arb(10) ** -40
        return Found(point, value, is_best) if is_best or value < found.value else found


def _rows(entries: list[Any], size: int) -> list[list[Any]]:
    return [entries[i : i + size] for i in range(0, len(entries), size)]
