"""Decisions by cost. c_k is what it costs to predict another class for a row of class k.

Predicting j costs sum_{k != j} c_k p_k on average, which is least where c_j p_j is largest. Of two classes, the first
is predicted from the probability c_2 / (c_1 + c_2) on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array


def cheapest(proba: Array, costs: Array) -> Array:
    """The place of the class that costs least on average, for every row of probabilities; ties take the first.

    >>> cheapest(np.array([[0.2, 0.8], [0.1, 0.9]]), np.array([5.0, 1.0])).tolist()
    [0, 1]
    """
    return np.asarray((proba * costs).argmax(axis=1))


def threshold(costs: Array, place: int) -> float:
    """The probability of one of two classes from which on it is predicted.

    >>> threshold(np.array([5.0, 1.0]), 0).__round__(4)
    0.1667
    """
    return float(costs[1 - place] / costs.sum())


@dataclass(frozen=True)
class MeanCost:
    """The mean cost per row and its standard error, sd / sqrt(rows)."""

    value: float
    standard_error: float


def mean_cost(codes: Array, decided: Array, costs: Array, weight: Array | None = None) -> MeanCost:
    """Of rows whose classes are codes and for which `decided` were predicted. weight: of the rows; None: all 1."""
    paid = np.where(decided == codes, 0.0, costs[codes])
    w = np.ones(len(paid)) if weight is None else weight
    value = float(np.average(paid, weights=w))
    n = float(w.sum())
    variance = float(np.average((paid - value) ** 2, weights=w)) * n / max(n - 1, 1.0)
    return MeanCost(value, float(np.sqrt(variance / n)))
