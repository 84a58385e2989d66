"""The truth about Huber regression, in 300 bits and more."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from flint import arb

from tests.hunt.generate import Problem
from tests.hunt.references.convex import ZERO
from tests.hunt.references.huber import JointHuber, huber
from tests.hunt.references.numbers import set_bits
from tests.hunt.references.scores import Scores
from tests.hunt.score_truth import MOST_BITS, REST
from tests.hunt.truth import LinearTruth, Random, Verdict, penalty_units

SMALLEST_SCALE = arb(2) ** -58


class HuberTruth(LinearTruth):
    """At a scale given or found by the median; or of the joint problem, whose state has a scale of its own."""

    def __init__(self, problem: Problem, model: Any) -> None:
        super().__init__(problem, model)
        self.model, self.has_intercept = model, bool(model.fit_intercept)
        self.is_joint = problem.parameters.get("scale", "joint") == "joint"
        self.delta, self.scale = arb(float(model.delta)), arb(float(model.scale_))
        used = np.ones(len(problem.rows), dtype=bool) if problem.weights is None else problem.weights > 0
        self.y = [arb(float(y)) for y in problem.y[used]]
        size = float(np.abs(problem.y[used]).max(initial=0.0))
        self.unit = arb(2) ** (int(np.frexp(size)[1]) if size > 0 else 0)
        set_bits(MOST_BITS)
        self.units = [arb(unit).mid() for unit in penalty_units(problem, self.has_intercept)]
        self.whole = self._scores(None)
        self.at_fit = self.objective(model)

    def _scores(self, columns: list[int] | None) -> Scores:
        laws = [huber(arb(float(y)), self.delta, self.scale) for y in self.problem.y]
        pulls = [arb(float(self.model.alpha_)) * unit for unit in self.units]
        return Scores(self.problem.rows, laws, self.problem.weights, self.has_intercept, pulls, columns)

    def _joint(self, scores: Scores) -> JointHuber:
        return JointHuber(scores, self.y, self.delta, self.unit)

    def objective(self, model: Any) -> arb:
        """f at the state."""
        point = self.whole.point(model.coef_, model.intercept_)
        if not self.is_joint:
            return self.whole.value(point)
        return self._joint(self.whole).value([*point, arb(float(model.scale_)) / self.unit])

    def find_infimum(self, columns: list[int] | None) -> tuple[arb, bool]:
        """From the fit."""
        scores = self.whole if columns is None else self._scores(columns)
        return self._best(scores, scores.point(self.model.coef_, self.model.intercept_))

    def _best(self, scores: Scores, start: list[arb]) -> tuple[arb, bool]:
        rest = REST * self.at_fit if self.at_fit.is_finite() else ZERO
        if not self.is_joint:
            found = scores.best(start, None, rest)
        else:
            found = self._joint(scores).best([*start, self.scale / self.unit], rest)
        return found.value, found.is_converged

    def null(self) -> arb:
        """Of the best constant."""
        alone = self._scores([])
        return self._best(alone, [ZERO] * alone.size)[0]

    def verdict(self, model: Any, certificate: Any) -> Verdict:
        """At the smallest scale that a joint fit takes, 2^-60 of the target's size, nothing is left to improve."""
        if self.is_joint and certificate.is_exact_fit and self.objective(model) <= self.unit * SMALLEST_SCALE:
            return Verdict(0.0)
        return super().verdict(model, certificate)

    def states(self, model: Any, rng: Random, tol: float) -> Iterator[tuple[str, Any]]:
        """A nudge of the joint scale too."""
        yield from super().states(model, rng, tol)
        if self.is_joint:
            other = copy.copy(model)
            power = float(rng.uniform(-10, 0))
            other.scale_ = float(model.scale_) * (1 + 10.0**power)
            yield f"scale by 1e{power:.1f}", other
