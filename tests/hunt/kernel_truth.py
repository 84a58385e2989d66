"""The truth about kernel ridge regression: its equations in a thousand bits."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from flint import arb, arb_mat

from certifit import kernels as ks
from tests.hunt.generate import Problem, Random
from tests.hunt.references.numbers import middle, ratio, real, reals, set_bits, total
from tests.hunt.truth import EXACT_FIT, GROWTH, LinearTruth

BITS = 1000


def entry(kernel: ks.Kernel, x: list[arb], z: list[arb]) -> arb:
    """k(x, z) of a kernel that the hunt has."""
    if isinstance(kernel, ks.Gaussian):
        square = total([(a - b) * (a - b) for a, b in zip(x, z, strict=True)])
        return (-square / (2 * real(kernel.sigma) ** 2)).exp()
    product = total([a * b for a, b in zip(x, z, strict=True)])
    return product if isinstance(kernel, ks.Linear) else (real(kernel.c) + product) ** int(kernel.degree)


class KernelTruth(LinearTruth):
    """(G + alpha / s) c = y - b 1 with sum c = 0, s the shares of the weights."""

    def __init__(self, problem: Problem, model: Any) -> None:
        super().__init__(problem, model)
        set_bits(BITS)
        weights = np.ones(len(problem.rows)) if problem.weights is None else problem.weights
        used = np.flatnonzero(weights > 0)
        rows = [reals(problem.rows[i]) for i in used]
        mass = reals(weights[used])
        whole = total(mass)
        self.share = [a / whole for a in mass]
        self.y, self.alpha = reals(problem.y[used]), real(model.alpha_)
        self.has_intercept, self.n = bool(model.fit_intercept), len(used)
        self.G = arb_mat([[entry(model.kernel_, x, z) for z in rows] for x in rows])

    def _value(self, c: list[arb], b: arb) -> arb:
        fitted = list((self.G * arb_mat([[a] for a in c])).entries())
        errors = [y - b - f for y, f in zip(self.y, fitted, strict=True)]
        loss = total([s * e * e for s, e in zip(self.share, errors, strict=True)])
        return (loss + self.alpha * total([a * f for a, f in zip(c, fitted, strict=True)])) / 2

    def objective(self, model: Any) -> arb:
        """At the state."""
        return self._value(reals(model.dual_coef_), real(model.intercept_)).mid()

    def null(self) -> arb:
        """Of the best constant, or of 0."""
        mean = total([s * y for s, y in zip(self.share, self.y, strict=True)]) if self.has_intercept else arb(0)
        return (total([s * (y - mean) ** 2 for s, y in zip(self.share, self.y, strict=True)]) / 2).mid()

    def find_infimum(self, columns: list[int] | None) -> tuple[arb, bool]:
        """By one system of equations; where a thousand bits do not solve it, the best constant is a legal point."""
        n, border = self.n, int(self.has_intercept)
        A = arb_mat(n + border, n + border)
        for i in range(n):
            for j in range(n):
                A[i, j] = self.G[i, j]
            A[i, i] = A[i, i] + self.alpha / self.share[i]
            if border:
                A[i, n] = A[n, i] = arb(1)
        try:
            found = middle(A.solve(arb_mat([[y] for y in self.y] + [[arb(0)]] * border)))
        except ZeroDivisionError:
            return self.null(), False
        return self._value(found[:n], found[n] if border else arb(0)).mid(), True

    def states(self, model: Any, rng: Random, tol: float) -> Iterator[tuple[str, Any]]:
        """Nudges of one coefficient, and of all."""
        dual = model.dual_coef_
        size = np.where(dual == 0, 1.0, np.abs(dual))
        j, power = int(rng.integers(len(dual))), rng.uniform(-12, 0)
        yield f"entry {j} by 1e{power:.1f}", moved(model, dual + size * 10.0**power * (np.arange(len(dual)) == j))
        power = rng.uniform(-10, 0)
        yield f"all by 1e{power:.1f}", moved(model, dual + size * 10.0**power * rng.normal(size=len(dual)))

    def nudged(self, model: Any, rng: Random) -> Iterator[tuple[str, Any, float]]:
        """One of the coefficients that are not 0."""
        for j in rng.permutation(np.flatnonzero(model.dual_coef_))[:1]:
            near = moved(model, model.dual_coef_ * np.where(np.arange(len(model.dual_coef_)) == j, 1 + 1e-4, 1.0))
            objective, null = self.objective(near), self.null()
            is_exact = ratio(objective, null) < EXACT_FIT
            excess = ratio(objective - self.infimum(None)[0], null if is_exact else objective)
            if excess > GROWTH * self.relative(model):
                yield f"entry {j}", near, excess


def moved(model: Any, dual: Any) -> Any:
    """A copy of the model with these coefficients."""
    other = copy.copy(model)
    other.dual_coef_ = dual
    return other
