"""The truth about support vector machines: objectives in many bits, and the best that an active set finds.

Any function and intercept is legal, so the least objective found is never below the best: an excess over it is one
that no certificate may deny. Where the multipliers of that point meet all conditions it is the best itself.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from flint import arb, arb_mat

from certifit.mathematics.kernels import Linear
from tests.hunt.generate import Problem, Random
from tests.hunt.kernel_truth import gram
from tests.hunt.references.numbers import as_float, middle, ratio, real, reals, set_bits, total
from tests.hunt.truth import GROWTH, LinearTruth, Truth, Verdict

BITS = 600
MOST_CHANGES = 60
MET = 1e-60  # of the sizes in a condition: rounding of many bits
RIDGE = arb(10) ** -90  # of the largest k(x, x): makes the equations of dependent rows solvable, below MET
NEAR_MARGIN = 1e-3  # a slack so small starts as that of a row on the margin
FREE = 1e-9  # of a bound: a multiplier nearer to an end starts there
LACK = 1e-3  # of tol: what the multipliers that `verify` finds may lack


@dataclass
class Point:
    """Multipliers of the variables, f at the rows, the intercept and |f|^2."""

    a: list[arb]
    f: list[arb]
    b: arb
    norm: arb


class Machine:
    """xi_t = max(0, -sign_t (f(x_row) + b - target_t)), as the model has it; bound None: a hard margin."""

    def __init__(self, problem: Problem, model: Any) -> None:
        set_bits(BITS)
        weights = np.ones(len(problem.rows)) if problem.weights is None else problem.weights
        self.used = np.flatnonzero(weights > 0)
        self.G = gram(model.kernel_, problem.rows[self.used])
        self.has_intercept = bool(model.fit_intercept)
        is_classes = hasattr(model, "classes_")
        y = np.where(np.searchsorted(model.classes_, problem.y) == 1, 1.0, -1.0) if is_classes else problem.y
        y = reals(y[self.used])
        n = len(y)
        self.row = list(range(n)) if is_classes else [*range(n), *range(n)]
        self.sign = y if is_classes else [arb(1)] * n + [arb(-1)] * n
        epsilon = arb(0) if is_classes else real(model.epsilon)
        self.target = y if is_classes else [v - epsilon for v in y] + [v + epsilon for v in y]
        self.bound: list[arb] | None = None
        if model.alpha_ is not None:
            whole = total(reals(weights[self.used]))
            mass = reals(weights[self.used][self.row])
            self.bound = [m / whole / real(model.alpha_) for m in mass]

    def state(self, model: Any) -> tuple[list[arb], arb]:
        """c of the rows and b. The points of a model are rows of the fit."""
        c = np.zeros(int(self.used.max()) + 1)
        c[np.asarray(model.support_, dtype=int)] = np.ravel(model.dual_coef_)
        return reals(c[self.used]), real(np.ravel(model.intercept_)[0])

    def at(self, c: list[arb], b: arb, a: list[arb] | None = None) -> Point:
        """The point of these coefficients."""
        f = middle(self.G * arb_mat([[v] for v in c]))
        return Point(a or [], f, b, total([v * w for v, w in zip(c, f, strict=True)]).mid())

    def slack(self, t: int, at: Point) -> arb:
        """-sign (f + b - target)."""
        return (-self.sign[t] * (at.f[self.row[t]] + at.b - self.target[t])).mid()

    def objective(self, at: Point) -> arb:
        """|f|^2 / 2 + sum C xi: the model's over alpha."""
        assert self.bound is not None
        slacks = [self.slack(t, at) for t in range(len(self.row))]
        return (at.norm / 2 + total([c * max(v, arb(0)) for c, v in zip(self.bound, slacks, strict=True)])).mid()

    def points(self, start: list[arb]) -> Iterator[tuple[Point, bool]]:
        """Points that an active set passes, and whether all conditions of the best are met there."""
        kinds = [self._kind(t, a) for t, a in enumerate(start)]
        seen = set()
        for _ in range(MOST_CHANGES):
            if tuple(kinds) in seen:
                return
            seen.add(tuple(kinds))
            at = self._solved(kinds)
            if at is None:
                return
            changed = [self._changed(t, kinds[t], at) for t in range(len(kinds))]
            yield at, changed == kinds
            kinds = changed

    def _kind(self, t: int, a: arb) -> str:
        if self.bound is None:
            return "free" if a > 0 else "zero"
        return "zero" if a <= FREE * self.bound[t] else "full" if a >= (1 - FREE) * self.bound[t] else "free"

    def _changed(self, t: int, kind: str, at: Point) -> str:
        v, small = self.slack(t, at), MET * (abs(at.f[self.row[t]]) + abs(at.b) + abs(self.target[t]))
        if kind == "free":
            over = self.bound is not None and at.a[t] > self.bound[t]
            return "full" if over else "free" if at.a[t] >= 0 else "zero"
        return "free" if (v > small if kind == "zero" else v < -small) else kind

    def _solved(self, kinds: list[str]) -> Point | None:
        """Slacks of 0 for the free multipliers, and a sum of 0 where there is an intercept."""
        free = [t for t, kind in enumerate(kinds) if kind == "free"]
        fixed = [self.bound[t] if k == "full" else arb(0) for t, k in enumerate(kinds)] if self.bound else None
        fixed = fixed or [arb(0)] * len(kinds)
        size, border = len(free), int(self.has_intercept)
        pushed = self.at(self._coefficients(fixed), arb(0)).f
        if not size:
            return self._level(fixed, pushed)
        ridge = RIDGE * max(self.G[i, i] for i in range(self.G.nrows()))
        A, right = arb_mat(size + border, size + border), []
        for i, t in enumerate(free):
            for j, other in enumerate(free):
                A[i, j] = self.G[self.row[t], self.row[other]] * self.sign[other]
            A[i, i] += ridge * self.sign[t]
            if border:
                A[i, size], A[size, i] = arb(1), self.sign[t]
            right.append([self.target[t] - pushed[self.row[t]]])
        if border:
            right.append([-total([s * a for s, a in zip(self.sign, fixed, strict=True)])])
        try:
            found = middle(A.solve(arb_mat(right)))
        except ZeroDivisionError:
            return None
        for t, a in zip(free, found[:size], strict=True):
            fixed[t] = a
        return self.at(self._coefficients(fixed), found[size] if border else arb(0), fixed)

    def _level(self, fixed: list[arb], f: list[arb]) -> Point:
        """No multiplier is free: the best of the intercepts at which a slack is 0."""
        c = self._coefficients(fixed)
        levels = [target - f[i] for target, i in zip(self.target, self.row, strict=True)]
        if not self.has_intercept or self.bound is None:
            levels = [arb(0)]
        places = [self.at(c, level.mid(), fixed) for level in levels]
        return min(places, key=self.objective) if self.bound is not None else places[0]

    def _coefficients(self, a: list[arb]) -> list[arb]:
        c = [arb(0)] * self.G.nrows()
        for t, value in enumerate(a):
            c[self.row[t]] += self.sign[t] * value
        return c

    def multipliers(self, c: list[arb]) -> list[arb]:
        """What makes these coefficients."""
        return [max(s * c[i], arb(0)) for s, i in zip(self.sign, self.row, strict=True)]


class MarginTruth(LinearTruth):
    """SVC of two classes and SVR."""

    def __init__(self, problem: Problem, model: Any) -> None:
        super().__init__(problem, model)
        self.machine = Machine(problem, model)
        self.start = self.machine.state(model)

    def objective(self, model: Any) -> arb:
        """Over alpha."""
        return self.machine.objective(self.machine.at(*self.machine.state(model)))

    def null(self) -> arb:
        """Of the best constant, which is one of the targets."""
        machine = self.machine
        zero = [arb(0)] * machine.G.nrows()
        levels = machine.target if machine.has_intercept else [arb(0)]
        return min(machine.objective(machine.at(zero, level)) for level in levels)

    def find_infimum(self, columns: list[int] | None) -> tuple[arb, bool]:
        """The least that was met on the way, the fit and the best constant included."""
        machine = self.machine
        best = min(machine.objective(machine.at(*self.start)), self.null())
        for at, is_best in machine.points(machine.multipliers(self.start[0])):
            best = min(best, machine.objective(at))
            if is_best:
                return best, True
        return best, False

    def states(self, model: Any, rng: Random, tol: float) -> Iterator[tuple[str, Any]]:
        """Multipliers and intercepts nudged."""
        yield from nudged_states(model, rng)

    def nudged(self, model: Any, rng: Random) -> Iterator[tuple[str, Any, float]]:
        """None: a machine ends at its tolerance, not at the floor of rounding."""
        yield from ()


class LinearMarginTruth(LinearTruth):
    """LinearSVC of two classes: the hinge by its multipliers, squared slacks by Newton's method on rows with slack."""

    def __init__(self, problem: Problem, model: Any) -> None:
        super().__init__(problem, model)
        names = ("fit_intercept", "classes_", "alpha_")
        products = SimpleNamespace(kernel_=Linear(), **{name: getattr(model, name) for name in names})
        self.machine = Machine(problem, products)
        self.X = [reals(row) for row in problem.rows[self.machine.used]]
        self.is_squared = model.loss == "squared_hinge"
        self.start = self._state(model)

    def objective(self, model: Any) -> arb:
        """Over alpha."""
        return self._objective(*self._state(model))

    def null(self) -> arb:
        """Of the best constant: where a slack is 0, or where squared ones balance."""
        machine = self.machine
        assert machine.bound is not None
        zero = [arb(0)] * self.n_columns
        if not machine.has_intercept:
            return self._objective(zero, arb(0))
        pull = total([c * s for c, s in zip(machine.bound, machine.sign, strict=True)])
        levels = [(pull / total(machine.bound)).mid()] if self.is_squared else [arb(-1), arb(1)]
        return min(self._objective(zero, level) for level in levels)

    def find_infimum(self, columns: list[int] | None) -> tuple[arb, bool]:
        """The least that was met on the way, the fit and the best constant included."""
        best = min(self._objective(*self.start), self.null())
        for value, is_best in self._squared_points() if self.is_squared else self._hinge_points():
            best = min(best, value)
            if is_best:
                return best, True
        return best, False

    def nudged(self, model: Any, rng: Random) -> Iterator[tuple[str, Any, float]]:
        """Where more is added than the claim of a machine that ends at its tolerance allows."""
        claim = model.certificate_
        allowed = GROWTH * claim.value + claim.rounding + LACK * claim.tolerance
        yield from (nudge for nudge in super().nudged(model, rng) if nudge[2] > allowed)

    def _state(self, model: Any) -> tuple[list[arb], arb]:
        return reals(np.ravel(model.coef_)), real(np.ravel(model.intercept_)[0])

    def _slacks(self, w: list[arb], b: arb) -> list[arb]:
        """1 - y (b + x'w)."""
        scores = [total([b, *(v * x for v, x in zip(w, row, strict=True))]) for row in self.X]
        return [(1 - s * z).mid() for s, z in zip(self.machine.sign, scores, strict=True)]

    def _objective(self, w: list[arb], b: arb) -> arb:
        """|w|^2 / 2 + sum C xi, or C xi^2."""
        assert self.machine.bound is not None
        xi = [max(v, arb(0)) for v in self._slacks(w, b)]
        costs = [c * (v * v if self.is_squared else v) for c, v in zip(self.machine.bound, xi, strict=True)]
        return (total([v * v for v in w]) / 2 + total(costs)).mid()

    def _hinge_points(self) -> Iterator[tuple[arb, bool]]:
        """From multipliers at their bound for rows with slack, between for those near the margin."""
        assert self.machine.bound is not None
        slacks = self._slacks(*self.start)
        start = [
            c / 2 if abs(v) < NEAR_MARGIN else c if v > 0 else arb(0)
            for v, c in zip(slacks, self.machine.bound, strict=True)
        ]
        for at, is_best in self.machine.points(start):
            yield self.machine.objective(at), is_best

    def _squared_points(self) -> Iterator[tuple[arb, bool]]:
        """Minimisers for the rows with slack, until these are the rows with slack at their minimiser."""
        active = [v > 0 for v in self._slacks(*self.start)]
        for _ in range(MOST_CHANGES):
            point = self._minimiser(active)
            if point is None:
                return
            after = [v > 0 for v in self._slacks(*point)]
            yield self._objective(*point), after == active
            if after == active:
                return
            active = after

    def _minimiser(self, active: list[bool]) -> tuple[list[arb], arb] | None:
        """Of |w|^2 / 2 + sum C (1 - y (b + x'w))^2 over some rows; None without any."""
        machine, d = self.machine, self.n_columns
        assert machine.bound is not None
        size = d + int(machine.has_intercept)
        A, right = arb_mat(size, size), [arb(0)] * size
        for j in range(d):
            A[j, j] = arb(1)
        for i in (i for i, is_active in enumerate(active) if is_active):
            row = [*self.X[i], arb(1)][:size]
            for j in range(size):
                right[j] += 2 * machine.bound[i] * machine.sign[i] * row[j]
                for k in range(size):
                    A[j, k] += 2 * machine.bound[i] * row[j] * row[k]
        try:
            solved = middle(A.solve(arb_mat([[v] for v in right])))
        except ZeroDivisionError:
            return None
        return solved[:d], solved[d] if machine.has_intercept else arb(0)


class HardMarginTruth(Truth):
    """The shortfall of the margin against the widest that is found, and the margin that is stated."""

    def __init__(self, problem: Problem, model: Any) -> None:
        self.machine = Machine(problem, model)
        self.widest, self.is_known = self.margin(model), False
        for at, is_best in self.machine.points(self.machine.multipliers(self.machine.state(model)[0])):
            self.widest = max(self.widest, self._margin(at))
            if is_best:
                self.is_known = True
                return

    def margin(self, model: Any) -> arb:
        """The least y (f + b) over |f|."""
        return self._margin(self.machine.at(*self.machine.state(model)))

    def _margin(self, at: Point) -> arb:
        if not at.norm > 0:
            return arb(0)
        least = min(s * (f + at.b) for s, f in zip(self.machine.sign, at.f, strict=True))
        return max(least, arb(0)).mid() / at.norm.sqrt().mid()

    def verdict(self, model: Any, certificate: Any) -> Verdict:
        """1 - margin / the widest."""
        margin = self.margin(model)
        verdict = Verdict(max(ratio(self.widest - margin, self.widest), 0.0), is_known=self.is_known)
        if real(certificate.margin) > margin * (1 + real(1e-12)):
            verdict.faults.append(f"a margin of {certificate.margin:.6g} is stated, true {as_float(margin):.6g}")
        return verdict

    def states(self, model: Any, rng: Random, tol: float) -> Iterator[tuple[str, Any]]:
        """Multipliers and intercepts nudged."""
        yield from nudged_states(model, rng)


def nudged_states(model: Any, rng: Random) -> Iterator[tuple[str, Any]]:
    """One multiplier, all of them, a sign, the intercept."""
    dual = model.dual_coef_
    if not dual.size:
        return
    j, flat = int(rng.integers(dual.size)), np.ravel(dual)
    is_j = (np.arange(dual.size) == j).reshape(dual.shape)
    power = rng.uniform(-12, 0)
    yield f"multiplier {j} by 1e{power:.1f}", moved(model, np.where(is_j, dual * (1 + 10.0**power), dual))
    noise = rng.normal(size=dual.shape)
    yield f"all by 1e{power:.1f}", moved(model, dual * (1 + 10.0**power * noise))
    if flat[j] and rng.random() < 0.3:
        yield f"sign of multiplier {j}", moved(model, np.where(is_j, -dual, dual))
    if model.fit_intercept:
        size = np.maximum(np.abs(model.intercepts_), 1e-3)
        yield f"intercept by 1e{power:.1f}", moved(model, dual, model.intercepts_ + size * 10.0**power)


def moved(model: Any, dual: Any, intercepts: Any = None) -> Any:
    """A copy of the model with these multipliers."""
    other = copy.copy(model)
    other.dual_coef_ = np.ascontiguousarray(dual)
    if intercepts is not None:
        other.intercepts_ = intercepts
    return other
