"""Boosted regression trees as arrays, end to end, and the rows that they are boosted on.

Tree j is nodes [ends_j, ends_j+1). Within a tree the children of a node are left and left + 1, and left is 0 at a leaf.
values: the weighted mean of y in every node, by the weights of the tree's round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from certifit.data.columns import Array, dense_rows
from certifit.data.source import Block, Source
from certifit.minimise.steps import full_row
from certifit.models.ensembles.draws import distinct_rows
from certifit.models.trees.state import Walked
from certifit.models.trees.task import LEAST_UNIT, GatheredRows, refuse_infinite
from certifit.runtime import core, n_threads

LOSSES: dict[str, Callable[[Array], Array]] = {
    "linear": lambda share: share,
    "square": np.square,
    "exponential": lambda share: -np.expm1(-share),
}
NODES = ("feature", "left", "threshold", "is_missing_left", "values")
LEAST_WEIGHT = 1e-250  # of a row, relative to the largest
BLOCK = 2**22  # predictions of all trees that are held at a time


@dataclass(frozen=True)
class TreeMedian:
    """alpha: the weight of every tree in the median; error: its mean loss in its round."""

    ends: Array
    feature: Array
    left: Array
    threshold: Array
    is_missing_left: Array
    values: Array
    error: Array
    alpha: Array

    @property
    def n_rounds(self) -> int:
        """Number of trees."""
        return len(self.alpha)

    def part(self, n_rounds: int) -> TreeMedian:
        """The trees of the first rounds."""
        n_rounds = min(n_rounds, self.n_rounds)
        end = int(self.ends[n_rounds])
        nodes = {
            name: getattr(self, name)[:end] for name in ("feature", "left", "threshold", "is_missing_left", "values")
        }
        return TreeMedian(self.ends[: n_rounds + 1], **nodes, error=self.error[:n_rounds], alpha=self.alpha[:n_rounds])

    def nodes(self, j: int) -> slice:
        """The nodes of tree j."""
        return slice(int(self.ends[j]), int(self.ends[j + 1]))

    def walk(self, block: Block, j: int, with_ranges: bool = False) -> Walked:
        """Rows of a block on their way through tree j."""
        nodes = self.nodes(j)
        arrays = (self.feature[nodes], self.left[nodes], self.threshold[nodes], self.is_missing_left[nodes])
        return Walked(*core.walk_tree(block.rows, *arrays, None, None, with_ranges, n_threads()))

    def answers(self, block: Block) -> tuple[Array, bool]:
        """Rows x trees: what every tree says; whether no value of the rows is infinite."""
        answers, is_finite = np.empty((block.X.shape[0], self.n_rounds)), True
        for j in range(self.n_rounds):
            walked = self.walk(block, j)
            answers[:, j] = self.values[self.nodes(j)][walked.leaves]
            is_finite &= walked.is_finite
        return answers, is_finite

    def median(self, answers: Array) -> Array:
        """The smallest answer at which the weights of answers no larger add up to half of all, row by row."""
        order = np.argsort(answers, axis=1, kind="stable")
        reached = np.cumsum(self.alpha[order], axis=1)
        place = (reached >= 0.5 * reached[:, -1:]).argmax(axis=1)
        rows = np.arange(len(answers))
        return np.asarray(answers[rows, order[rows, place]])

    def predict(self, columns: Block) -> tuple[Array, bool]:
        """The weighted median of every row, some rows at a time; whether no value of the rows is infinite."""
        answers, is_finite = self.answers(columns)
        step = max(1, BLOCK // max(1, self.n_rounds))
        parts = [self.median(answers[k : k + step]) for k in range(0, len(answers), step)]
        return np.concatenate([np.zeros(0), *parts]), is_finite

    def history(self) -> list[dict[str, float]]:
        """Every round: leaves of its tree, mean loss and weight."""
        leaves = [int(np.count_nonzero(self.left[self.nodes(j)] == 0)) for j in range(self.n_rounds)]
        return [
            {
                **full_row(j + 1, step_size=float(self.alpha[j])),
                "n_leaves": leaves[j],
                "error": float(self.error[j]),
                "alpha": float(self.alpha[j]),
            }
            for j in range(self.n_rounds)
        ]


class MedianTask(GatheredRows):
    """Distinct rows in the order of a hash of their values, and how they are boosted."""

    def __init__(
        self, source: Source, n_estimators: int, learning_rate: float, loss: str, max_depth: int, min_samples_leaf: int
    ) -> None:
        super().__init__(source, 0)
        self.n_estimators, self.learning_rate, self.loss = n_estimators, learning_rate, loss
        self.max_depth, self.min_samples_leaf = max_depth, min_samples_leaf
        if not LEAST_UNIT**0.5 <= self.y_unit <= LEAST_UNIT**-0.5:
            raise ValueError("Squares of y leave the range of float64. Multiply or divide y by a power of ten.")

    @cached_property
    def rows(self) -> Block:
        """Rows that are equal in every column and in y are one, with their weights added and 1 in all."""
        dense = dense_rows(self.block.X)
        distinct = distinct_rows(dense, self.y, self.weight)
        weight = distinct.weight / distinct.weight.sum()
        numbers = distinct.numbers
        return replace(self.block, X=np.ascontiguousarray(dense[numbers]), y=self.y[numbers], weight=weight)

    def tree(self, weight: Array) -> dict[str, Array]:
        """The tree of a round, greedy. Weights near 1 on average: none vanishes against another unit."""
        y, scaled = np.asarray(self.rows.y) / self.y_unit, weight * len(weight)
        stops = (self.max_depth, 2, self.min_samples_leaf, 0.0)
        grown = core.grow_tree(self.rows.rows, y, scaled, "squared_error", 0, *stops, None, None, 0, None, n_threads())
        if grown is None:
            refuse_infinite(self.block, self.source.names)
            raise ValueError("y must be finite numbers.")
        return {name: grown[name][:, 0] if name == "values" else grown[name] for name in NODES}

    def mean_loss(self, tree: dict[str, Array], weight: Array) -> tuple[Array, float]:
        """The loss of every row by a tree, and their mean by the weights of a round."""
        path = (tree[name] for name in NODES[:4])
        leaves = core.walk_tree(self.rows.rows, *path, None, None, False, n_threads())[0]
        losses, largest = self.losses(tree["values"][leaves], np.asarray(self.rows.y) / self.y_unit)
        return losses, float(weight @ losses) if largest > 0 else 0.0

    def losses(self, answers: Array, y: Array) -> tuple[Array, float]:
        """The loss of every row, from 0 to 1, and the largest residual."""
        residuals = np.abs(y - answers)
        largest = float(residuals.max(initial=0.0))
        return LOSSES[self.loss](residuals / largest if largest > 0 else residuals * 0.0), largest

    def alpha(self, error: float, round_number: int) -> float:
        """rate log((1 - error) / error); a first tree that is exact, or no better than chance, decides alone: 1."""
        if round_number == 0 and not 0 < error < 0.5:
            return 1.0
        return self.learning_rate * float(np.log((1 - error) / error)) if 0 < error < 1 else np.inf

    def reweighted(self, weight: Array, losses: Array, alpha: float) -> Array:
        """weight exp(-alpha (1 - loss)), adding up to 1. None falls to 0: a row stays a row."""
        changed = weight * np.exp(alpha * (losses - losses.max()))
        changed = np.maximum(changed, LEAST_WEIGHT * changed.max())
        return np.asarray(changed / changed.sum())
