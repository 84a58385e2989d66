"""Boosted trees as arrays, end to end: what a fit finds, and the scores of rows.

Tree t is nodes [ends_t, ends_t+1) and adds to score t mod K. Within a tree the children of a node are left and
left + 1, and left is 0 at a leaf.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block
from certifit.minimise.steps import full_row
from certifit.models.trees.contributions import WeightedTrees
from certifit.runtime import core, n_threads


@dataclass(frozen=True)
class RoundTrees:
    """Some trees as the core takes them: ends, what leads a row to its leaf, values."""

    arrays: tuple[Array | None, ...]


@dataclass(frozen=True)
class BoostingState:
    """start: the scores that trees are added to. value: what a leaf adds, learning rate and all; of other nodes too.

    weight: of the rows that a node was grown on. gain: what a split takes from the second-order model of the loss,
    twice. loss: of the training rows after every round; held_out: of the rows held out, where there are any, and of
    rounds after the best one too, which are not kept.
    """

    start: Array
    ends: Array
    feature: Array
    left: Array
    threshold: Array
    is_missing_left: Array
    value: Array
    weight: Array
    gain: Array
    loss: Array
    held_out: Array
    sets: Array = field(default_factory=lambda: np.zeros((0, 4), dtype=np.uint64))
    n_levels: Array | None = None

    @property
    def width(self) -> int:
        """Scores of a row."""
        return len(self.start)

    @property
    def n_rounds(self) -> int:
        """Rounds, of `width` trees each."""
        return (len(self.ends) - 1) // self.width

    def scores(self, columns: Block, first: int = 0, last: int | None = None) -> tuple[Array, bool]:
        """What the rounds [first, last) add, rows x width, and start to the first. Whether no value is infinite."""
        last = self.n_rounds if last is None else last
        added, is_finite = core.add_trees(
            columns.rows, self.ends, self.feature, self.left, self.threshold, self.is_missing_left,
            *self._levels, self.value, self.width, first * self.width, last * self.width, n_threads(),
        )  # fmt: skip
        return added + self.start if first == 0 else added, is_finite

    @property
    def _levels(self) -> tuple[Array | None, Array | None]:
        return self.n_levels, None if self.n_levels is None else self.sets

    def paths(self, tree: int) -> tuple[Array | None, ...]:
        """What leads a row to its leaf in a tree, as the core takes it."""
        nodes = slice(int(self.ends[tree]), int(self.ends[tree + 1]))
        parts = (self.feature[nodes], self.left[nodes], self.threshold[nodes], self.is_missing_left[nodes])
        return (*map(np.ascontiguousarray, parts), *self._levels)

    def rounds(self, first: int, last: int, unit: float) -> RoundTrees:
        """The trees [first, last), their values in units."""
        begin, end = int(self.ends[first]), int(self.ends[last])
        parts = (self.feature, self.left, self.threshold, self.is_missing_left)
        return RoundTrees(
            (
                self.ends[first : last + 1] - begin,
                *(np.ascontiguousarray(part[begin:end]) for part in parts),
                *self._levels,
                self.value[begin:end] / unit,
            )
        )

    def weighted_trees(self) -> WeightedTrees:
        """The trees with their weights, whose contributions add up."""
        return WeightedTrees(
            self.ends, self.feature, self.left, self.threshold, self.is_missing_left, *self._levels,
            self.weight, self.value[:, None], self.width,
        )  # fmt: skip

    def part(self, n_rounds: int) -> BoostingState:
        """The first rounds."""
        n_rounds = min(n_rounds, self.n_rounds)
        ends = self.ends[: n_rounds * self.width + 1]
        nodes = {
            name: getattr(self, name)[: ends[-1]]
            for name in ("feature", "left", "threshold", "is_missing_left", "value", "weight", "gain")
        }
        sets = self.sets
        if self.n_levels is not None:
            sets = sets[: np.count_nonzero(self.n_levels[nodes["feature"][nodes["left"] > 0]])]
        losses = {"loss": self.loss[:n_rounds], "held_out": self.held_out[:n_rounds]}
        return replace(self, ends=ends, sets=sets, **losses, **nodes)

    def importances(self, n_columns: int) -> Array:
        """The share of all gains that each column's splits brought; zeros without splits."""
        inner = self.left > 0
        gains = np.bincount(self.feature[inner], weights=self.gain[inner], minlength=n_columns)
        return np.asarray(gains / gains.sum()) if gains.sum() > 0 else np.zeros(n_columns)

    @cached_property
    def history(self) -> list[dict[str, float]]:
        """Every round: its losses and its leaves."""
        leaves = np.add.reduceat((self.left == 0).astype(np.int64), self.ends[:-1]) if self.n_rounds else np.zeros(0)
        rows = []
        for k in range(self.n_rounds):
            loss, n_leaves = float(self.loss[k]), int(leaves[k * self.width : (k + 1) * self.width].sum())
            held_out = {"held_out_loss": float(self.held_out[k])} if len(self.held_out) else {}
            rows.append(full_row(k + 1, objective=loss, loss=loss, **held_out, n_leaves=n_leaves))
        return rows
