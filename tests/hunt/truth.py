"""What a claim is compared with. One class per kind of truth; all take a fitted model and give plain numbers."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flint import fmpq

from tests.hunt.generate import Problem
from tests.hunt.references.numbers import as_float, ratio, rational
from tests.hunt.references.quadratic import Kinked, Minimiser, Squares
from tests.hunt.references.spreads import root, variances

Random = np.random.Generator
EXACT_FIT = 1e-14
GROWTH = 10.0  # times the value stored: up to there `verify` passes, whatever the state
PRINTED = 1e-9  # a value is printed with two digits; the comparison itself is strict


@dataclass
class Verdict:
    """The truth about one certificate. true: what `value` must not be below; literal: the same for all weights.

    is_known: False where the reference found a legal point but not that it is the best; `true` is then too small.
    faults: sentences of the certificate that are false whatever its value. false_digits: one sentence each.
    """

    true: float
    literal: float | None = None
    is_known: bool = True
    faults: list[str] = field(default_factory=list)
    false_digits: list[str] = field(default_factory=list)


class Truth(ABC):
    """The truth about one problem; several states share it."""

    is_local = False

    @abstractmethod
    def verdict(self, model: Any, certificate: Any) -> Verdict:
        """The truth about a certificate of a state."""

    @abstractmethod
    def states(self, model: Any, rng: Random, tol: float) -> Iterator[tuple[str, Any]]:
        """Perturbed copies of the model."""

    def nudged(self, model: Any, rng: Random) -> Iterator[tuple[str, Any, float]]:
        """Copies with one coefficient 1e-4 off, and the true relative excess of each."""
        yield from ()

    def reason(self, problem: Problem) -> str:
        """The class that a refusal is counted in."""
        return problem.tags[0] if problem.tags else "plain"


def set_aside(certificate: Any) -> list[str]:
    """Names of the columns that a certificate calls redundant: what stands left of "=" in its relations."""
    return [str(relation).split(" = ", 1)[0] for relation in certificate.dependent]


def kept_columns(certificate: Any, n_columns: int) -> list[int]:
    """Places of the columns that are not set aside."""
    aside = set(set_aside(certificate))
    return [j for j in range(n_columns) if f"x{j}" not in aside]


def penalty_units(problem: Problem, centred: bool) -> list[fmpq]:
    """What squares of weights are multiplied by in a penalty: variances of the columns where they are standardised."""
    if not problem.parameters.get("standardize", False):
        return [fmpq(1)] * problem.rows.shape[1]
    return variances(problem.rows, problem.weights, centred)


class LinearTruth(Truth):
    """Of a model with coef_ and intercept_. Subclasses give objectives and infima as exact or 300-bit numbers."""

    def __init__(self, problem: Problem, model: Any) -> None:
        self.problem = problem
        self.n_columns = problem.rows.shape[1]
        self._infima: dict[tuple[int, ...] | None, tuple[Any, bool]] = {}

    @abstractmethod
    def objective(self, model: Any) -> Any:
        """At the state of the model."""

    @abstractmethod
    def find_infimum(self, columns: list[int] | None) -> tuple[Any, bool]:
        """The least value found over all legal weights, or over those of some columns; whether none is below."""

    @abstractmethod
    def null(self) -> Any:
        """The objective of the best constant, or of 0 without an intercept."""

    def infimum(self, columns: list[int] | None) -> tuple[Any, bool]:
        """The same, found once."""
        key = None if columns is None else tuple(columns)
        if key not in self._infima:
            self._infima[key] = self.find_infimum(columns)
        return self._infima[key]

    def verdict(self, model: Any, certificate: Any) -> Verdict:
        """Excesses relative to what the certificate says they are relative to."""
        objective = self.objective(model)
        literal = getattr(certificate, "literal", None)
        columns = None if literal is None else kept_columns(certificate, self.n_columns)
        best, is_known = self.infimum(columns)
        is_exact = bool(getattr(certificate, "is_exact_fit", False))
        below = self.null() if is_exact else objective
        found = Verdict(ratio(_positive(objective - best), below), is_known=is_known)
        if is_exact and ratio(objective, below) > EXACT_FIT * (1 + 1e-6):
            found.faults.append(f"called an exact fit at {ratio(objective, below):.2e} of the null model's objective")
        if literal is not None:
            found.literal = ratio(_positive(objective - self.infimum(None)[0]), below)
        found.false_digits = self.false_digits(model, certificate, columns)
        return found

    def relative(self, model: Any) -> float:
        """The relative excess over the infimum of all weights."""
        objective = self.objective(model)
        return ratio(_positive(objective - self.infimum(None)[0]), objective)

    def false_digits(self, model: Any, certificate: Any, columns: list[int] | None) -> list[str]:
        """Digits that the minimisers do not share."""
        return []

    def states(self, model: Any, rng: Random, tol: float) -> Iterator[tuple[str, Any]]:
        """Nudges of one entry, a sign swapped, and steps to an excess near tol."""
        flat = np.append(np.ravel(model.coef_), np.ravel(model.intercept_))
        size = np.where(flat == 0, 1.0, np.abs(flat))
        j = int(rng.integers(len(flat)))
        power = rng.uniform(-12, 0)
        yield f"entry {j} by 1e{power:.1f}", moved(model, flat + size * 10.0**power * (np.arange(len(flat)) == j))
        if flat[j] != 0 and rng.random() < 0.3:
            yield f"sign of entry {j}", moved(model, np.where(np.arange(len(flat)) == j, -flat, flat))
        direction = size * rng.normal(size=len(flat)) * (rng.random(len(flat)) < 0.7)
        aim = tol * rng.choice([0.05, 0.5, 0.95, 1.05, 3.0, 1e-6])
        near = self._near(model, flat, direction, aim)
        if near is not None:
            yield f"an excess near {aim:.1e}", near

    def _near(self, model: Any, flat: Any, direction: Any, aim: float) -> Any:
        """A step along a direction whose excess is about `aim`: squares, so two looks are enough."""
        share = 1e-5
        for _ in range(2):
            excess = self.relative(moved(model, flat + share * direction))
            if not 0 < excess < math.inf:
                return None
            share *= math.sqrt(aim / excess)
            if not 1e-18 < share < 1e3:
                return None
        return moved(model, flat + share * direction)

    def nudged(self, model: Any, rng: Random) -> Iterator[tuple[str, Any, float]]:
        """Two of the coefficients that are not 0."""
        flat = np.append(np.ravel(model.coef_), np.ravel(model.intercept_))
        places = np.flatnonzero(np.ravel(model.coef_))
        for j in rng.permutation(places)[:1]:
            near = moved(model, flat + 1e-4 * flat * (np.arange(len(flat)) == j))
            objective, null = self.objective(near), self.null()
            is_exact = ratio(objective, null) < EXACT_FIT
            excess = ratio(_positive(objective - self.infimum(None)[0]), null if is_exact else objective)
            if excess > GROWTH * self.relative(model):  # else `verify` must take it for the fit itself
                yield f"entry {j}", near, excess


def moved(model: Any, flat: Any) -> Any:
    """A copy of the model with these coefficients, then intercepts."""
    other = copy.copy(model)
    n = np.size(model.coef_)
    if not getattr(model, "fit_intercept", True):
        flat = np.append(flat[:n], np.ravel(model.intercept_))
    other.coef_ = np.ascontiguousarray(flat[:n].reshape(np.shape(model.coef_)))
    rest = flat[n:].reshape(np.shape(model.intercept_))
    other.intercept_ = rest if np.ndim(model.intercept_) else float(rest)
    return other


def _positive(value: Any) -> Any:
    return value if value > 0 else value * 0


class SquaresTruth(LinearTruth):
    """Least squares and ridge, in exact rationals."""

    def __init__(self, problem: Problem, model: Any) -> None:
        super().__init__(problem, model)
        has_intercept = bool(model.fit_intercept)
        alpha = rational(float(model.alpha_))
        pulls = [alpha * square for square in penalty_units(problem, has_intercept)]
        self.exact = Squares(problem.rows, problem.y, problem.weights, has_intercept, pulls)
        self._minimisers: dict[tuple[int, ...] | None, Minimiser] = {}

    def objective(self, model: Any) -> fmpq:
        """2 W P."""
        return self.exact.objective(self.exact.units(model.coef_, model.intercept_))

    def find_infimum(self, columns: list[int] | None) -> tuple[fmpq, bool]:
        """Of 2 W P."""
        return self._minimiser(columns).objective, True

    def null(self) -> fmpq:
        """Of 2 W P."""
        return self.exact.null

    def _minimiser(self, columns: list[int] | None) -> Minimiser:
        key = None if columns is None else tuple(columns)
        if key not in self._minimisers:
            self._minimisers[key] = self.exact.minimiser(columns)
        return self._minimisers[key]

    def false_digits(self, model: Any, certificate: Any, columns: list[int] | None) -> list[str]:
        """A digit of what minimisers do not share, or that the exact minimiser does not have."""
        if not any(certificate.digits):
            return []
        best = self._minimiser(columns)
        own = self.exact.units(model.coef_, model.intercept_)
        out = []
        for name, digits, x, z, is_shared in zip(
            certificate.names, certificate.digits, own, best.v, best.determined, strict=True
        ):
            if digits <= 0:
                continue
            if not is_shared:
                out.append(f"{name}: {digits:.1f} digits of what the data do not determine")
            elif abs(x - z) > rational(10.0**-digits) * rational(1 + 1e-6) * abs(x):
                true = -math.log10(max(as_float(abs(x - z) / abs(x)), 1e-300)) if x else 0.0
                out.append(f"{name}: {digits:.2f} digits claimed, {true:.2f} true")
        return out


class KinkedTruth(LinearTruth):
    """Lasso and elastic net with factors and bounds: an active set whose optimality is checked exactly."""

    def __init__(self, problem: Problem, model: Any) -> None:
        super().__init__(problem, model)
        given = problem.parameters
        factors = np.asarray(given.get("penalty_factors") or np.ones(self.n_columns))
        share = float(given.get("l1_ratio", 1.0)) if type(model).__name__ == "ElasticNet" else 1.0
        self.low, self.high = given.get("bounds") or (-np.inf, np.inf)
        alpha = float(model.alpha_)
        squares = penalty_units(problem, bool(model.fit_intercept))
        pairs = list(zip([rational(alpha) * rational(f) for f in factors], squares, strict=True))
        l1 = [strength * rational(share) * root(square) for strength, square in pairs]
        l2 = [strength * (1 - rational(share)) * square for strength, square in pairs]
        rows = (problem.rows, problem.y, problem.weights, bool(model.fit_intercept))
        self.exact = Kinked(*rows, l2, l1, bounds=(self.low, self.high))
        self.start = self.exact.units(model.coef_, model.intercept_)

    def objective(self, model: Any) -> fmpq:
        """2 W P."""
        return self.exact.objective(self.exact.units(model.coef_, model.intercept_))

    def find_infimum(self, columns: list[int] | None) -> tuple[fmpq, bool]:
        """Of 2 W P."""
        if columns is not None:
            raise NotImplementedError("the lasso sets no columns aside")
        found, is_proven = self.exact.best(self.start)
        return found.objective, is_proven

    def null(self) -> fmpq:
        """Of 2 W P."""
        return self.exact.null

    def states(self, model: Any, rng: Random, tol: float) -> Iterator[tuple[str, Any]]:
        """Within the bounds."""
        for label, other in super().states(model, rng, tol):
            other.coef_ = np.clip(other.coef_, self.low, self.high)
            yield label, other
