"""The truth about generalised linear models, logistic and softmax regression, in 300 bits and more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from flint import arb

from tests.hunt.generate import Problem
from tests.hunt.options import row_weights
from tests.hunt.references.convex import ZERO, Found
from tests.hunt.references.losses import LOSSES
from tests.hunt.references.numbers import set_bits
from tests.hunt.references.scores import Scores
from tests.hunt.references.softmax import Softmax
from tests.hunt.truth import LinearTruth, Verdict, penalty_units

MOST_BITS = 2000  # of the spreads of columns
REST = arb(10) ** -36  # of the objective of the fit: an infimum is known to this share of it, or better


class ScoreTruth(LinearTruth):
    """Of a loss of scores with L2, L1, factors and bounds."""

    def __init__(self, problem: Problem, model: Any) -> None:
        super().__init__(replace(problem, weights=row_weights(problem, model)), model)
        given, d = problem.parameters, self.n_columns
        self.is_separable = False
        factors = np.asarray(given.get("penalty_factors") or np.ones(d))
        share, alpha = arb(float(given.get("l1_ratio", 0.0))), arb(float(model.alpha_))
        set_bits(MOST_BITS)
        squares = [arb(unit) for unit in penalty_units(self.problem, bool(model.fit_intercept))]
        self.l1 = [alpha * arb(float(f)) * share * s.sqrt().mid() for f, s in zip(factors, squares, strict=True)]
        self.l2 = [alpha * arb(float(f)) * (1 - share) * s.mid() for f, s in zip(factors, squares, strict=True)]
        self.low, self.high = (np.broadcast_to(end, d) for end in given.get("bounds") or (-np.inf, np.inf))
        self.has_intercept = bool(model.fit_intercept)
        of = law_of(problem)
        self.laws = [of(arb(float(y))) for y in self.targets()]
        self.whole = self._scores(None)
        self.model = model
        self.at_fit = self.objective(model)

    def targets(self) -> Any:
        """Numbers; of labels, places among the classes."""
        y = self.problem.y
        assert y is not None
        return np.unique(y, return_inverse=True)[1] if "family" not in self.problem.parameters else y

    def _scores(self, columns: list[int] | None) -> Scores:
        rows = (self.problem.rows, self.laws, self.problem.weights)
        return Scores(*rows, self.has_intercept, self.l2, columns, offset_of(self.problem))

    def objective(self, model: Any) -> arb:
        """f at the state, the L1 penalty included."""
        coef = np.ravel(model.coef_)
        kinks = [p * abs(arb(float(w))) for p, w in zip(self.l1, coef, strict=True)]
        return (self.whole.value(self.whole.point(coef, np.ravel(model.intercept_)[0])) + sum(kinks, ZERO)).mid()

    def verdict(self, model: Any, certificate: Any) -> Verdict:
        """A state that no legal mean belongs to is infinitely far."""
        if not self.objective(model).is_finite():
            return Verdict(float("inf"))
        return super().verdict(model, certificate)

    def find_infimum(self, columns: list[int] | None) -> tuple[arb, bool]:
        """From the fit."""
        scores = self.whole if columns is None else self._scores(columns)
        walls = scores.walls(self.l1, self.low, self.high)
        start = scores.point(self.model.coef_, np.ravel(self.model.intercept_)[0])
        rest = REST * self.at_fit if self.at_fit.is_finite() else ZERO
        found: Found = scores.best(start, walls, rest)
        is_nothing = found.value <= rest or any(abs(x) > 2000 for x in scores.scores(found.v))
        self.is_separable = self.is_separable or is_nothing
        return found.value, found.is_converged

    def null(self) -> arb:
        """Of the best constant."""
        if not hasattr(self, "_null"):
            alone = self._scores([])
            self._null = alone.best([ZERO] * alone.size).value
        return self._null

    def reason(self, problem: Problem) -> str:
        """Separation first."""
        return "separation" if self.is_separable or "separable" in problem.tags else super().reason(problem)


def law_of(problem: Problem) -> Any:
    """The law of one target, by the model's parameters."""
    family = problem.parameters.get("family", "bernoulli")
    name, link = getattr(family, "name", family), problem.parameters.get("link")
    defaults = {"gaussian": "identity", "bernoulli": "logit", "binomial": "logit"}
    key = (name, link or defaults.get(name, "log"))
    given = {"negative-binomial": getattr(family, "alpha", 1.0), "tweedie": getattr(family, "power", 1.5)}
    return LOSSES[key](arb(float(given[name]))) if name in given else LOSSES[key]()


class NamedTruth(ScoreTruth):
    """Of PoissonRegressor and GammaRegressor, whose family is their name."""

    def __init__(self, problem: Problem, model: Any) -> None:
        family = {"PoissonRegressor": "poisson", "GammaRegressor": "gamma"}[type(model).__name__]
        super().__init__(replace(problem, parameters=problem.parameters | {"family": family}), model)


def offset_of(problem: Problem) -> Any:
    """offset + log exposure of every row, a float64 number; None where there is neither."""
    if problem.exposure is None:
        return problem.offset
    return np.log(problem.exposure) + (0.0 if problem.offset is None else problem.offset)


class SoftmaxTruth(LinearTruth):
    """Of LogisticRegression with three classes or more."""

    def __init__(self, problem: Problem, model: Any) -> None:
        super().__init__(replace(problem, weights=row_weights(problem, model)), model)
        self.is_separable = False
        given, d = problem.parameters, self.n_columns
        self.model, self.alpha, self.has_intercept = model, float(model.alpha_), bool(model.fit_intercept)
        factors = [arb(float(f)) for f in given.get("penalty_factors") or np.ones(d)]
        share = arb(float(given.get("l1_ratio", 0.0)))
        squares = [arb(unit) for unit in penalty_units(self.problem, self.has_intercept)]
        self.units = [(f * (1 - share) * s).mid() for f, s in zip(factors, squares, strict=True)]
        self.l1 = [(arb(self.alpha) * share * f * s.sqrt()).mid() for f, s in zip(factors, squares, strict=True)]
        self.ends = [np.broadcast_to(end, d) for end in given.get("bounds") or (-np.inf, np.inf)]
        classes, self.codes = np.unique(problem.y, return_inverse=True)
        self.n_classes = len(classes)
        self.whole = self._softmax(None)
        self.at_fit = self.objective(model)

    def _softmax(self, columns: list[int] | None) -> Softmax:
        rows = (self.problem.rows, self.codes, self.n_classes, self.problem.weights)
        return Softmax(*rows, self.has_intercept, self.alpha, columns, self.units)

    def objective(self, model: Any) -> arb:
        """f at the state, the L1 penalty included."""
        kinks = [p * abs(arb(float(w))) for row in model.coef_ for p, w in zip(self.l1, row, strict=True)]
        return (self.whole.value(self.whole.point(model.coef_, model.intercept_)) + sum(kinks, ZERO)).mid()

    def find_infimum(self, columns: list[int] | None) -> tuple[arb, bool]:
        """From the fit."""
        softmax = self.whole if columns is None else self._softmax(columns)
        rest = REST * self.at_fit if self.at_fit.is_finite() else ZERO
        is_smooth = not any(self.l1) and all(np.isinf(end).all() for end in self.ends)
        walls = None if is_smooth else softmax.walls(self.l1, *self.ends)
        found = softmax.best(softmax.point(self.model.coef_, self.model.intercept_), rest, walls)
        is_nothing = found.value <= rest or any(abs(x) > 2000 for part in softmax._scores(found.v) for x in part)
        self.is_separable = self.is_separable or is_nothing
        return found.value, found.is_converged

    def null(self) -> arb:
        """Of the best constants."""
        alone = self._softmax([])
        return alone.best([ZERO] * alone.size).value

    def reason(self, problem: Problem) -> str:
        """Separation first."""
        return "separation" if self.is_separable or "separable" in problem.tags else super().reason(problem)
