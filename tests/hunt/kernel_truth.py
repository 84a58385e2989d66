"""The truth about models of kernels: equations, eigenvalues and sums of the matrix of the kernel in many bits."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
from flint import arb, arb_mat

from certifit import kernels as ks
from tests.hunt.class_truth import ComponentsTruth
from tests.hunt.generate import Problem, Random
from tests.hunt.references.moments import eigenvalues
from tests.hunt.references.numbers import as_float, middle, ratio, real, reals, set_bits, total
from tests.hunt.truth import EXACT_FIT, GROWTH, LinearTruth, Truth, Verdict

BITS = 1000
BITS_OF_EIGENVALUES = 400
STILL = 2.0**-30  # of the largest k(x, x): a variance below it may be called rounding
SAME = 1e-8  # of the target's mean square: how far the objective that is stated may be from the true one


def entry(kernel: ks.Kernel, x: list[arb], z: list[arb]) -> arb:
    """k(x, z) of a kernel that the hunt has."""
    if isinstance(kernel, ks.Gaussian):
        square = total([(a - b) * (a - b) for a, b in zip(x, z, strict=True)])
        return (-square / (2 * real(kernel.sigma) ** 2)).exp()
    product = total([a * b for a, b in zip(x, z, strict=True)])
    if isinstance(kernel, ks.Linear):
        return product
    # A product, not a power: python-flint has no number for the power of a ball about 0.
    return prod([real(kernel.c) + product] * int(kernel.degree), start=arb(1))


def gram(kernel: ks.Kernel, X: Any) -> arb_mat:
    """The matrix of the kernel."""
    rows = [reals(row) for row in X]
    return arb_mat([[entry(kernel, x, z) for z in rows] for x in rows])


class KernelTruth(LinearTruth):
    """(G + alpha / s) c = y - b 1 with sum c = 0, s the shares of the weights."""

    def __init__(self, problem: Problem, model: Any) -> None:
        super().__init__(problem, model)
        set_bits(BITS)
        weights = np.ones(len(problem.rows)) if problem.weights is None else problem.weights
        used = np.flatnonzero(weights > 0)
        mass = reals(weights[used])
        whole = total(mass)
        self.share = [a / whole for a in mass]
        self.y, self.alpha = reals(problem.y[used]), real(model.alpha_)
        self.has_intercept, self.n = bool(model.fit_intercept), len(used)
        self.G = gram(model.kernel_, problem.rows[used])

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


class KernelComponentsTruth(ComponentsTruth):
    """Kernel PCA: the claims of PCA on B = S P G P' S, S the roots of the shares, P = I - 1 s'."""

    directions = "eigenvectors_"

    def __init__(self, problem: Problem, model: Any) -> None:
        set_bits(BITS_OF_EIGENVALUES)
        self.problem = problem
        weights = np.ones(len(problem.rows)) if problem.weights is None else problem.weights
        used = np.flatnonzero(weights > 0)
        mass = reals(weights[used])
        whole, n = total(mass), len(used)
        share = [a / whole for a in mass]
        G = gram(model.kernel_, problem.rows[used])
        means = [total([share[j] * G[i, j] for j in range(n)]) for i in range(n)]
        level = total([s * m for s, m in zip(share, means, strict=True)])
        root = [s.sqrt() for s in share]
        self.B = arb_mat(
            [[root[i] * root[j] * (G[i, j] - means[i] - means[j] + level) for j in range(n)] for i in range(n)]
        ).mid()
        self.trace = total([self.B[i, i] for i in range(n)]).mid()
        self.values = eigenvalues(self.B)
        self.is_rounding = bool(self.trace <= max(G[i, i] for i in range(n)) * STILL)
        self.factor = arb(1)

    def product(self, V: arb_mat) -> arb_mat:
        """B V."""
        return (self.B * V).mid()

    def verdict(self, model: Any, certificate: Any) -> Verdict:
        """The directions are columns of eigenvectors_."""
        other = copy.copy(model)
        other.eigenvectors_ = model.eigenvectors_.T
        return super().verdict(other, certificate)

    def states(self, model: Any, rng: Random, tol: float) -> Iterator[tuple[str, Any]]:
        """Directions turned, a variance changed."""
        other = copy.copy(model)
        other.eigenvectors_ = model.eigenvectors_.T
        for label, near in super().states(other, rng, tol):
            near.eigenvectors_ = near.eigenvectors_.T
            yield label, near


class KernelStepsTruth(Truth):
    """Kernel LMS: the step as a share of 2 / the largest eigenvalue, or of 2 / the largest k(x, x); the objective."""

    def __init__(self, problem: Problem, model: Any) -> None:
        set_bits(BITS_OF_EIGENVALUES)
        self.G, self.y = gram(model.kernel_, problem.rows), reals(problem.y)
        n = len(self.y)
        is_batch = problem.parameters["updates"] == "batch"
        curvatures = eigenvalues(self.G) if is_batch else [self.G[i, i] for i in range(n)]
        self.largest = max(curvatures).mid()
        self.size = (total([y * y for y in self.y]) / (2 * n)).mid()

    def objective(self, model: Any) -> arb:
        """Mean of squared errors / 2."""
        fitted = list((self.G * arb_mat([[a] for a in reals(model.dual_coef_)])).entries())
        return (total([(y - f) ** 2 for y, f in zip(self.y, fitted, strict=True)]) / (2 * len(self.y))).mid()

    def verdict(self, model: Any, certificate: Any) -> Verdict:
        """The share, and whether the objectives that the certificate and the history state are true."""
        verdict = Verdict(as_float(real(model.step_) * self.largest / 2))
        objective = self.objective(model)
        for stated in (certificate.objective, model.history_[-1]["objective"]) if certificate.holds else ():
            apart = abs(real(stated) - objective)
            if apart > (self.size + objective) * SAME:
                verdict.faults.append(f"the objective is stated as {stated:.6g}, true {as_float(objective):.6g}")
        return verdict

    def states(self, model: Any, rng: Random, tol: float) -> Iterator[tuple[str, Any]]:
        """Nudges of one coefficient, of all, and steps about the largest stable one."""
        dual = model.dual_coef_
        size = np.where(dual == 0, 1.0, np.abs(dual))
        j, power = int(rng.integers(len(dual))), rng.uniform(-12, 0)
        yield f"entry {j} by 1e{power:.1f}", moved(model, dual + size * 10.0**power * (np.arange(len(dual)) == j))
        power = rng.uniform(-10, 0)
        yield f"all by 1e{power:.1f}", moved(model, dual + size * 10.0**power * rng.normal(size=len(dual)))
        other = copy.copy(model)
        edge = as_float(2 / self.largest) if self.largest > 0 else 1.0
        other.step_ = float(np.clip(edge * (1 + rng.choice([-1, 1]) * 10.0 ** rng.uniform(-16, 0)), 1e-300, 1e300))
        yield "a step about the largest", other


def moved(model: Any, dual: Any) -> Any:
    """A copy of the model with these coefficients."""
    other = copy.copy(model)
    other.dual_coef_ = dual
    return other
