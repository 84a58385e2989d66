"""A vote of stumps, and the rows that it was boosted on.

Stump j calls a row left_j where x <= threshold_j, else right_j: codes of classes. alpha_j is its weight in the vote,
and error_j its weighted error, of weights that add up to 1, in the round that chose it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.minimise.steps import full_row
from certifit.models.trees.task import GatheredRows
from certifit.runtime import core, n_threads

LOG_LARGEST = math.log(np.finfo(np.float64).max)
Stump = tuple[int, float, int, int]  # column, threshold, class of the rows up to it, class of the others


@dataclass(frozen=True)
class StumpVote:
    """Arrays with an entry per round. training_error: of the vote after it, by the first weights."""

    feature: Array
    threshold: Array
    left: Array
    right: Array
    error: Array
    alpha: Array
    training_error: Array

    @property
    def n_rounds(self) -> int:
        """Number of stumps."""
        return len(self.alpha)

    def stumps(self) -> list[Stump]:
        """Every stump without its weight in the vote."""
        columns = (self.feature, self.threshold, self.left, self.right)
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def part(self, begin: int, end: int) -> StumpVote:
        """The stumps of rounds [begin, end)."""
        return StumpVote(**{field.name: getattr(self, field.name)[begin:end] for field in fields(self)})

    def votes(self, columns: Block, n_classes: int) -> tuple[Array, bool]:
        """Sums of the alphas for every class, rows x classes, and whether all values of the rows are finite."""
        stumps = (self.feature, self.threshold, self.left, self.right, self.alpha)
        votes, is_finite = core.vote_stumps(columns.rows, *stumps, n_classes, n_threads())
        return votes, is_finite

    def log_factors(self) -> Array:
        """log Z_j = log((1 - error) e^(-alpha/2) + error e^(alpha/2)) of two classes; minus infinity of no error."""
        with np.errstate(divide="ignore"):
            first, second = np.log1p(-self.error) - self.alpha / 2, np.log(self.error) + self.alpha / 2
        return np.where(self.error > 0, np.logaddexp(first, second), -np.inf)

    def bounds(self) -> Array:
        """On the training error after every round, of two classes; no more than float64 holds."""
        return np.asarray(np.exp(np.minimum(np.cumsum(self.log_factors()), LOG_LARGEST)))

    def history(self, names: list[str], n_classes: int) -> list[dict[str, float | str]]:
        """A row per round; the bound is known for two classes."""
        bounds = self.bounds() if n_classes == 2 else np.full(self.n_rounds, np.nan)
        return [
            {
                **full_row(j + 1, objective=float(bounds[j]), step_size=float(self.alpha[j])),
                "column": names[self.feature[j]],
                "threshold": float(self.threshold[j]),
                "error": float(self.error[j]),
                "alpha": float(self.alpha[j]),
                "training_error": float(self.training_error[j]),
                "bound": float(bounds[j]),
            }
            for j in range(self.n_rounds)
        ]


@dataclass(frozen=True)
class PolishedVote:
    """A vote over any stumps, and weights of the rows. The margins of the first are below every edge of the second.

    share: of every stump in the vote, 0 or more. weights: of every row of the fit, 0 or more.
    """

    stumps: tuple[Stump, ...]
    share: Array
    weights: Array


class BoostTask(GatheredRows):
    """Rows of classes, and how they are boosted."""

    def __init__(self, source: Source, n_classes: int, n_estimators: int, learning_rate: float) -> None:
        super().__init__(source, n_classes)
        self.n_estimators, self.learning_rate = n_estimators, learning_rate
