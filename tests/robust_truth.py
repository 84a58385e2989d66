"""The minimum of Huber's objective in some thousand bits: what a certificate is held against.

Newton's method on the rows inside the band with an exact line search, from the state that is judged. A vanishing share
of the matrix of all rows keeps its system definite, so redundant columns and columns that nearly are need no care.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from typing import Any

import flint
import numpy as np
from flint import arb, arb_mat

BITS = 2600
SHARE = 900  # bits: 2^-900 of the matrix of all rows is added to that of the band
MOST_STEPS = 150
SETTLED = arb(10) ** -45

Numbers = list[Any]


def exact(values: Any) -> Numbers:
    """Float64 numbers as they are."""
    return [arb(float(value)) for value in values]


def dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    """Sum of a_i b_i."""
    return sum((p * q for p, q in zip(a, b, strict=True)), arb(0)).mid()


class HuberTruth:
    """One problem; scale "joint" or a number."""

    def __init__(self, X: Any, y: Any, weight: Any, delta: float, alpha: float, joint: bool, intercept: bool) -> None:
        flint.ctx.prec = BITS
        X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
        weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
        seen = weight > 0
        self.rows = [[arb(1)] * intercept + exact(row) for row in X[seen]]
        self.y, self.weight = exact(y[seen]), exact(weight[seen])
        self.n_unknowns, self.offset, self.is_joint = X.shape[1] + intercept, int(intercept), joint
        self.total = dot(self.weight, [arb(1)] * len(self.y))
        self.delta, self.alpha = arb(float(delta)), arb(float(alpha))
        self.matrix = arb_mat(self.rows)
        squares = [dot(self.weight, [row[j] * row[j] for row in self.rows]) for j in range(self.n_unknowns)]
        self.squares = [square if square > 0 else arb(1) for square in squares]

    def objective(self, state: Numbers, scale: Any) -> Any:
        """What is minimised, over the scale where that is held."""
        value = self._value(self.residuals(state), state, scale) / self.total
        return (value + scale / 2).mid() if self.is_joint else value.mid()

    def minimum(self, state: Sequence[float], scale: float) -> Any:
        """The least objective, at the scale where that is held."""
        at, s = exact(state), arb(float(scale))
        if not self.is_joint:
            return self.objective(self._held(at, s), s)
        return self._joint(at, s)

    def null(self, scale: float) -> Any:
        """The objective of the best constant, or of 0 without an intercept."""
        other = HuberTruth.__new__(HuberTruth)
        other.__dict__ |= self.__dict__ | {"rows": [row[: self.offset] for row in self.rows]}
        other.n_unknowns, other.squares = self.offset, self.squares[: self.offset]
        if not self.offset:
            return self.objective([arb(0)] * self.n_unknowns, arb(float(scale)))
        other.matrix = arb_mat(other.rows)
        return other.minimum([float(np.median([float(y) for y in self.y]))], scale)

    def residuals(self, state: Numbers) -> Numbers:
        fitted = self.matrix * arb_mat([[value] for value in state])
        return [(y - fitted[i, 0]).mid() for i, y in enumerate(self.y)]

    def _pull(self, scale: Any) -> Numbers:
        pull = self.alpha * self.total / (1 if self.is_joint else scale)
        return [arb(0)] * self.offset + [pull.mid()] * (self.n_unknowns - self.offset)

    def _value(self, r: Numbers, state: Numbers, scale: Any) -> Any:
        edge = self.delta * scale
        losses = [x * x / (2 * scale) if abs(x) <= edge else self.delta * (abs(x) - edge / 2) for x in r]
        return dot(self.weight, losses) + dot(self._pull(scale), [x * x for x in state]) / 2

    def _slopes(self, r: Numbers, scale: Any) -> Numbers:
        edge = self.delta * scale
        return [self.delta if x > edge else -self.delta if x < -edge else (x / scale).mid() for x in r]

    def _held(self, state: Numbers, scale: Any) -> Numbers:
        pull = self._pull(scale)
        for _ in range(MOST_STEPS):
            r = self.residuals(state)
            weighted = [w * u for w, u in zip(self.weight, self._slopes(r, scale), strict=True)]
            slope = self.matrix.transpose() * arb_mat([[value] for value in weighted])
            slope = [(slope[j, 0] - pull[j] * state[j]).mid() for j in range(self.n_unknowns)]
            step = self._step(r, slope, scale, pull)
            decrement = dot(slope, step)
            if decrement <= self._value(r, state, scale) * arb(10) ** -60 or decrement <= arb(10) ** -400:
                return state
            t = self._line(r, state, step, scale, pull)
            state = [(value + t * change).mid() for value, change in zip(state, step, strict=True)]
        raise AssertionError("the reference did not settle")

    def _step(self, r: Numbers, slope: Numbers, scale: Any, pull: Numbers) -> Numbers:
        size, edge = self.n_unknowns, self.delta * scale
        near = [i for i in range(len(r)) if abs(r[i]) <= edge]
        matrix = arb_mat(size, size)
        if near:
            left = arb_mat([self.rows[i] for i in near])
            right = arb_mat([[self.weight[i] * value for value in self.rows[i]] for i in near])
            matrix = left.transpose() * right
        for j in range(size):
            matrix[j, j] += scale * pull[j] + arb(2) ** -SHARE * self.squares[j]
        units = [(1 / matrix[j, j].sqrt()).mid() for j in range(size)]
        scaled = arb_mat([[(matrix[j, k] * units[j] * units[k]).mid() for k in range(size)] for j in range(size)])
        solution = scaled.solve(arb_mat([[(scale * slope[j] * units[j]).mid()] for j in range(size)]))
        return [(solution[j, 0] * units[j]).mid() for j in range(size)]

    def _line(self, r: Numbers, state: Numbers, step: Numbers, scale: Any, pull: Numbers) -> Any:
        """The root of the slope along a step: it is linear between the places where rows enter or leave the band."""
        moved = self.matrix * arb_mat([[value] for value in step])
        change = [moved[i, 0].mid() for i in range(len(r))]
        edge = self.delta * scale

        def slope(t: Any) -> Any:
            u = self._slopes([(a - t * b).mid() for a, b in zip(r, change, strict=True)], scale)
            held = [(a + t * b) * b for a, b in zip(state, step, strict=True)]
            return (dot(pull, held) - dot([w * a for w, a in zip(self.weight, u, strict=True)], change)).mid()

        kinks = [((a + e) / b).mid() for a, b in zip(r, change, strict=True) if b != 0 for e in (edge, -edge)]
        kinks = sorted((t for t in kinks if t > 0), key=cmp_to_key(lambda a, b: -1 if a < b else int(a > b)))
        low, high = 0, len(kinks)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if slope(kinks[middle]) >= 0 else (middle + 1, high)
        begin = kinks[low - 1] if low else arb(0)
        end = kinks[low] if low < len(kinks) else begin + 1
        rise = slope(end) - slope(begin)
        return (begin - slope(begin) / rise * (end - begin)).mid() if rise > 0 else end

    def _joint(self, state: Numbers, scale: Any) -> Any:
        """The least over the scale: the root of mean u^2 - 1, which falls with the scale; or 0."""
        size = max(abs(float(y)) for y in self.y)
        least = arb(size) * arb(2) ** -300
        low = high = scale if scale > least else least
        state, above = self._excess(state, low)
        factor = arb(10) ** -12
        sign = above > 0
        below = above
        while (below > 0) == sign and (sign or low > least):
            factor = factor * 64 if factor < 10000 else factor
            if sign:
                low, above, high = high, below, (high * (1 + factor)).mid()
                state, below = self._excess(state, high)
            else:
                high, low = low, (low / (1 + factor)).mid()
                low = low if low > least else least
                above = below
                state, below = self._excess(state, low)
        if not sign:
            above, below = below, above
            if above < 0:
                return self.objective(state, low)
        for _ in range(300):
            if high - low <= high * SETTLED:
                break
            middle = (low + (high - low) * above / (above - below)).mid()
            if not low < middle < high:
                middle = ((low + high) / 2).mid()
            state, at = self._excess(state, middle)
            if abs(at) < SETTLED:
                high = middle
                break
            if at > 0:
                low, above, below = middle, at, below / 2
            else:
                high, below, above = middle, at, above / 2
        return self.objective(self._held(state, high), high)

    def _excess(self, state: Numbers, scale: Any) -> tuple[Numbers, Any]:
        state = self._held(state, scale)
        u = self._slopes(self.residuals(state), scale)
        return state, (dot(self.weight, [a * a for a in u]) / self.total - 1).mid()


def true_excess(model: Any, X: Any, y: Any, weight: Any = None) -> float:
    """(objective - minimum) / objective of a fitted model; relative to the null model's where that fit is exact."""
    truth = HuberTruth(X, y, weight, model.delta, model.alpha, model.scale == "joint", bool(model.fit_intercept))
    state = [model.intercept_] * truth.offset + list(model.coef_)
    objective = truth.objective(exact(state), arb(float(model.scale_)))
    least, null = truth.minimum(state, model.scale_), truth.null(model.scale_)
    scale = null if objective < arb(1e-14) * null else objective
    return float((objective - least) / scale) if scale > 0 else 0.0
