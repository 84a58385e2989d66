"""Options that a problem of the hunt may have beside its rows: standardised columns, offsets, weights of classes.

They are drawn by a generator of their own, so that the rows of a case stay what they are whatever is added here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.hunt.generate import Array, Problem, Random, chance


def standardised(rng: Random, problem: Problem) -> None:
    """A penalty, or a shrinkage, in standard deviations of the columns."""
    if chance(rng, 0.3):
        problem.parameters["standardize"] = True
        problem.tags.append("standardised")


def class_weights(rng: Random, problem: Problem) -> None:
    """Weights of classes: none, "balanced", or from 1e-3 to 1e3."""
    if chance(rng, 0.1):
        problem.parameters["class_weight"] = "balanced"
        problem.tags.append("class weights")
    elif chance(rng, 0.15):
        factors = rng.choice([1e-3, 0.1, 0.7, 1.0, 2.0, 1e3], size=len(np.unique(problem.y)))
        problem.parameters["class_weight"] = {k: float(f) for k, f in enumerate(factors)}
        problem.tags.append("class weights")


def offset(rng: Random, problem: Problem) -> None:
    """What is added to the score of every row."""
    if not chance(rng, 0.2):
        return
    n, size = len(problem.rows), float(rng.choice([0.01, 1.0, 1.0, 5.0, 300.0]))
    kinds = [rng.normal(size=n), np.ones(n), rng.integers(-1, 2, size=n).astype(float), rng.exponential(size=n)]
    problem.offset = size * kinds[rng.integers(4)]
    problem.tags.append("offset of scores")


def exposure(rng: Random, problem: Problem) -> None:
    """Time at risk."""
    if chance(rng, 0.35):
        reach = float(rng.choice([0.5, 3.0, 12.0]))
        problem.exposure = np.asarray(10.0 ** rng.uniform(-reach, reach, size=len(problem.rows)))
        problem.tags.append("exposure")


def for_classes(rng: Random, problem: Problem) -> None:
    """Of logistic and softmax regression."""
    standardised(rng, problem)
    class_weights(rng, problem)


def for_two_classes(rng: Random, problem: Problem) -> None:
    """Of logistic regression, whose score may have an offset."""
    for_classes(rng, problem)
    offset(rng, problem)


def for_scores(rng: Random, problem: Problem) -> None:
    """Of generalised linear models."""
    standardised(rng, problem)
    offset(rng, problem)
    exposure(rng, problem)


def by_products(rng: Random, problem: Problem) -> None:
    """Principal components by the randomised solver."""
    if chance(rng, 0.25):
        most = min(problem.rows.shape)
        problem.parameters |= {"solver": "randomized", "n_components": int(rng.integers(1, most + 1))}
        problem.tags.append("by products")


def nothing(rng: Random, problem: Problem) -> None:
    """None."""


def row_weights(problem: Problem, model: Any) -> Array | None:
    """The weight of every row: its own times the factor of its class that the model states, a float64 number."""
    factors = getattr(model, "class_weight_", None)
    if factors is None:
        return problem.weights
    codes = np.searchsorted(model.classes_, problem.y)
    return np.asarray(factors[codes] if problem.weights is None else problem.weights * factors[codes])
