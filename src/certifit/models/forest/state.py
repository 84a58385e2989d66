"""A forest as arrays, its trees end to end, and what it is grown on.

Tree t is nodes [ends_t, ends_t+1). Within a tree the children of a node are left and left + 1, and left is 0 at a leaf.
values has a row per leaf, in the order of the nodes: shares of the classes, or the mean of y (one column).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.minimise.steps import full_row
from certifit.models.trees.columns import NO_RULES, ColumnRules
from certifit.models.trees.task import LEAST_UNIT, GatheredRows, Stops
from certifit.runtime import FEWER_CLASSES, check_memory, core, n_threads


@dataclass(frozen=True)
class ForestState:
    """gains: trees x columns, what the splits of each column took from the impurity, times the weight.

    n_levels: of columns that are categories, 0 of others; the threshold of a node that splits one is the number of the
    set of levels that go left. None, and no sets, where no column is one.
    """

    ends: Array
    feature: Array
    left: Array
    threshold: Array
    is_missing_left: Array
    values: Array
    gains: Array
    sets: Array = field(default_factory=lambda: np.zeros((0, 4), dtype=np.uint64))
    n_levels: Array | None = None

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.ends) - 1

    def paths(self) -> tuple[Array | None, ...]:
        """What leads rows to leaves, as the core takes it; the values there come next."""
        levels = (None, None) if self.n_levels is None else (self.n_levels, self.sets)
        return self.ends, self.feature, self.left, self.threshold, self.is_missing_left, *levels

    @property
    def is_of_levels(self) -> Array:
        """Whether each node splits a category."""
        if self.n_levels is None:
            return np.zeros(len(self.left), dtype=bool)
        return (self.left > 0) & (self.n_levels[np.maximum(self.feature, 0)] > 0)

    def history(self) -> list[dict[str, float]]:
        """Every tree: its leaves."""
        leaves = [int(np.count_nonzero(self.left[begin:end] == 0)) for begin, end in pairwise(self.ends.tolist())]
        return [full_row(t + 1, n_leaves=n_leaves) for t, n_leaves in enumerate(leaves)]

    def means(self, columns: Block) -> tuple[Array, bool]:
        """The mean over trees of the values of every row's leaves; whether no value of the rows is infinite."""
        means, is_finite = core.forest_means(columns.rows, *self.paths(), self.values, n_threads())
        return means, is_finite

    def importances(self) -> Array:
        """The mean over trees of the share of a tree's gains that each column brought."""
        totals = self.gains.sum(axis=1, keepdims=True)
        grown = totals[:, 0] > 0
        return np.asarray((self.gains[grown] / totals[grown]).mean(axis=0)) if grown.any() else self.gains[0] * 0.0


@dataclass(frozen=True)
class ForestSettings:
    """How trees are drawn and grown."""

    n_estimators: int
    max_features: str | float | int | None
    max_bins: int
    random_state: int
    stops: Stops
    columns: ColumnRules = NO_RULES

    def n_tried(self, n_columns: int) -> int:
        """Columns that a node tries."""
        asked = self.max_features
        if asked is None:
            return n_columns
        if isinstance(asked, str):
            return max(1, int(np.sqrt(n_columns) if asked == "sqrt" else np.log2(n_columns)))
        return min(int(asked), n_columns) if isinstance(asked, int | np.integer) else max(1, int(asked * n_columns))


class ForestTask(GatheredRows):
    """Rows, and how trees are drawn from them and grown."""

    def __init__(self, source: Source, settings: ForestSettings, n_classes: int = 0) -> None:
        super().__init__(source, n_classes, settings.columns, is_passed=True)
        self.settings = settings
        if self.passed is not None:
            self.passed.scale = self.scale
        elif n_classes:  # votes of every row
            what = f"A forest of {n_classes:,} classes on {self.n_rows:,} rows"
            check_memory(8.0 * self.n_rows * n_classes, what, FEWER_CLASSES)
        if not n_classes and not LEAST_UNIT**0.5 <= self.y_unit <= LEAST_UNIT**-0.5:
            raise ValueError("Squares of y leave the range of float64. Multiply or divide y by a power of ten.")

    @cached_property
    def edges(self) -> list[Array]:
        """The edges of the bins of every column."""
        n_levels, max_bins = self.columns.n_levels, self.settings.max_bins
        if self.passed is not None:
            edges_of_passes = self.passed.edges(max_bins, n_levels)
            return self.refuse() if edges_of_passes is None else edges_of_passes
        y, weight = self.scaled()
        edges: list[Array] | None = core.bin_edges(self.block.rows, y, weight, max_bins, n_levels, n_threads())
        return self.refuse() if edges is None else edges
