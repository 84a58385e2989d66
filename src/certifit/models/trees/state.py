"""A decision tree as arrays: what a fit finds, which parts of it are trees too, and how it reads in words.

Nodes stand level by level, siblings side by side: the children of a node are left and left + 1, and left is 0 at a
leaf. A tree cut off at a depth is therefore the beginning of the arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heappop, heappush
from typing import overload

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block
from certifit.minimise.steps import full_row
from certifit.models.trees.columns import levels_of
from certifit.runtime import core, n_threads


@dataclass(frozen=True)
class Walked:
    """The leaf of every row; per node the largest value that went left and the smallest that went right.

    is_finite: no value of the rows is infinite.
    """

    leaves: Array
    below: Array
    above: Array
    is_finite: bool


@dataclass(frozen=True)
class TreeState:
    """feature: the column that a node splits, -1 at a leaf. Rows with x <= threshold go left, the others right.

    is_missing_left: where missing values go. weight: of the rows in a node. values: the weight of every class, or the
    mean of y (one column). impurity: of the node. decrease: what the split takes from the impurity, times the node's
    share of all weight; 0 at a leaf. n_levels: of each column, 0 where it is
    no category; None: none is one. A node that splits a category sends the
    levels of the set of number `threshold` left; codes from n_levels on go where missing values go. sets: four words
    each, in the order of the nodes, a bit per level.
    """

    feature: Array
    left: Array
    threshold: Array
    is_missing_left: Array
    weight: Array
    values: Array
    impurity: Array
    decrease: Array
    sets: Array = field(default_factory=lambda: np.zeros((0, 4), dtype=np.uint64))
    n_levels: Array | None = None

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves among them."""
        return len(self.left)

    @property
    def is_leaf(self) -> Array:
        """Whether each node is a leaf."""
        return np.asarray(self.left == 0)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(np.count_nonzero(self.left == 0))

    @cached_property
    def parents(self) -> Array:
        """The parent of every node, -1 of the root."""
        parents = np.full(self.n_nodes, -1, dtype=np.int64)
        inner = np.flatnonzero(self.left)
        parents[self.left[inner]] = parents[self.left[inner] + 1] = inner
        return parents

    @cached_property
    def depths(self) -> Array:
        """The number of splits above every node. Levels follow each other, so each ends where its children begin."""
        depths = np.zeros(self.n_nodes, dtype=np.int64)
        begin, end, depth = 0, 1, 0
        while begin < self.n_nodes:
            depths[begin:end] = depth
            begin, end, depth = end, end + 2 * int(np.count_nonzero(self.left[begin:end])), depth + 1
        return depths

    def walk(self, block: Block, with_ranges: bool = False) -> Walked:
        """Rows of a block on their way to their leaves."""
        sets = None if self.n_levels is None else self.sets
        nodes = (self.feature, self.left, self.threshold, self.is_missing_left, self.n_levels, sets)
        return Walked(*core.walk_tree(block.rows, *nodes, with_ranges, n_threads()))

    @cached_property
    def is_of_levels(self) -> Array:
        """Whether each node splits a category."""
        if self.n_levels is None:
            return np.zeros(self.n_nodes, dtype=bool)
        return np.asarray((self.left > 0) & (self.n_levels[self.feature] != 0))

    def levels_left(self, node: int) -> list[int]:
        """The codes of the levels that a node of a category sends left."""
        return levels_of(self.sets[int(self.threshold[node])])

    def path_of(self, node: int) -> list[int]:
        """The nodes from the root to a node."""
        path = [node]
        while path[-1] > 0:
            path.append(int(self.parents[path[-1]]))
        return path[::-1]

    # Parts of the tree that are trees

    def with_leaves(self, becomes_leaf: Array) -> TreeState:
        """The tree in which these nodes are leaves."""
        is_kept = np.ones(self.n_nodes, dtype=bool)
        for depth in range(1, int(self.depths.max(initial=0)) + 1):
            level = np.flatnonzero(self.depths == depth)
            above = self.parents[level]
            is_kept[level] = is_kept[above] & ~becomes_leaf[above]
        kept = np.flatnonzero(is_kept)
        place = np.cumsum(is_kept) - 1
        is_inner = (self.left[kept] > 0) & ~becomes_leaf[kept]
        left = np.where(is_inner, place[self.left[kept]], 0).astype(np.int64)
        is_of_levels = is_inner & self.is_of_levels[kept]
        sets = self.sets[self.threshold[kept][is_of_levels].astype(np.int64)]
        threshold = np.where(is_inner, self.threshold[kept], 0.0)
        threshold[is_of_levels] = np.arange(len(sets))
        return replace(
            self,
            feature=np.where(is_inner, self.feature[kept], -1).astype(np.int64),
            left=left,
            threshold=threshold,
            is_missing_left=np.where(is_inner, self.is_missing_left[kept], 0).astype(np.uint8),
            weight=self.weight[kept],
            values=self.values[kept],
            impurity=self.impurity[kept],
            decrease=np.where(is_inner, self.decrease[kept], 0.0),
            sets=sets,
        )

    def cut_at(self, depth: int) -> TreeState:
        """The tree of at most so many levels of splits."""
        return self.with_leaves(self.depths >= depth)

    def best_first(self, most_leaves: int) -> TreeState:
        """The tree of so many leaves that splits the leaf of the largest decrease first; of equal ones the first."""
        is_split = np.zeros(self.n_nodes, dtype=bool)
        waiting: list[tuple[float, int]] = []
        self._offer(0, waiting)
        for _ in range(most_leaves - 1):
            if not waiting:
                break
            node = heappop(waiting)[1]
            is_split[node] = True
            for child in (int(self.left[node]), int(self.left[node]) + 1):
                self._offer(child, waiting)
        return self.with_leaves(~is_split)

    def _offer(self, node: int, waiting: list[tuple[float, int]]) -> None:
        if self.left[node]:
            heappush(waiting, (-float(self.decrease[node]), node))


Split = Mapping[str, float | str | tuple[int, ...]]


@dataclass(frozen=True)
class SplitHistory(Sequence[Split]):
    """Every split in the order of the nodes: its node, its column, its threshold and its decrease; made when asked."""

    tree: TreeState
    names: tuple[str, ...]

    def __len__(self) -> int:
        return self.tree.n_leaves - 1

    @overload
    def __getitem__(self, place: int) -> Split: ...
    @overload
    def __getitem__(self, place: slice) -> list[Split]: ...
    def __getitem__(self, place: int | slice) -> Split | list[Split]:
        if isinstance(place, slice):
            return [self[k] for k in range(*place.indices(len(self)))]
        node = int(np.flatnonzero(self.tree.left)[place])
        is_of_levels = bool(self.tree.is_of_levels[node])
        threshold = tuple(self.tree.levels_left(node)) if is_of_levels else float(self.tree.threshold[node])
        return {
            **full_row((place % len(self)) + 1),
            "node": node,
            "column": self.names[self.tree.feature[node]],
            "levels" if is_of_levels else "threshold": threshold,
            "decrease": float(self.tree.decrease[node]),
        }
