"""The best tree of a depth on a grid of thresholds, and the least loss that any such tree can have.

minimised:  share of the weight that is called wrong (classes),  mean of (y - mean of the leaf)^2 (numbers)
over:       all trees of at most so many levels whose thresholds are on the grid

Depth 2 is searched in full from tables of pairs of columns; depths 3 and 4 by branch and bound over the split of the
root, until the bound meets the best tree or the budget of nodes is spent. The bound holds at any moment. Sums of
numbers are rounded: the bound is reduced by what rounding may have added. The clock takes no part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from certifit.data.columns import Array
from certifit.runtime import check_memory, core, n_threads

if TYPE_CHECKING:
    from certifit.models.trees.task import TreeTask

DEEPEST = 4  # levels that are searched
BYTES_PER_CELL = 8 * 64**2  # of the table of a pair of columns, per class


@dataclass(frozen=True)
class SearchGrid:
    """Thresholds of a column: all midpoints of at most 64 different values, else so many quantiles. Budget of nodes."""

    n_thresholds: int = 32
    max_nodes: int = 5000


@dataclass(frozen=True)
class Optimum:
    """The best tree that was found, as arrays of nodes, and what is proven: no tree of the depth has less than lower.

    lower, upper: losses per unit of weight; rounding: of upper. n_thresholds: of all columns. is_closed: lower is upper
    but for rounding.
    """

    depth: int
    feature: Array
    left: Array
    threshold: Array
    is_missing_left: Array
    lower: float
    upper: float
    rounding: float
    n_nodes: int
    n_thresholds: int
    is_closed: bool


def best_tree(task: TreeTask, depth: int) -> Optimum:
    """Search the trees of a depth."""
    if not 1 <= depth <= DEEPEST:
        raise ValueError(
            f"The best tree is searched for at depths 1 to {DEEPEST}. Got {depth}. Set max_depth to one of these."
        )
    if task.criterion == "poisson":
        raise ValueError(
            "The best tree is one of squared error. Got criterion='poisson'. Use criterion='squared_error'."
        )
    y, weight = task.scaled()
    check_memory(
        float(task.block.n_rows) * task.source.n_features * 4 + float(BYTES_PER_CELL * max(task.n_classes, 2)),
        f"A search over trees on {task.block.n_rows:,} rows of {task.source.n_features:,} columns", "Sample rows.",
    )  # fmt: skip
    searched = core.best_tree(
        task.block.rows,
        y,
        weight,
        task.n_classes,
        depth,
        int(task.stops.min_samples_leaf),
        int(task.grid.n_thresholds),
        int(task.grid.max_nodes),
        n_threads(),
    )
    if searched is None:
        task.refuse()
    if not searched["is_in_range"]:
        raise ValueError(
            "Weights are too far apart: the least of them is lost in the rounding of their sum, nothing can be proven. "
            "Leave out rows of tiny weight, or use search='greedy'."
        )
    if math.isinf(searched["upper"]):
        raise ValueError(
            f"No tree has {task.stops.min_samples_leaf} distinct rows in every leaf: there are fewer. Lower "
            "min_samples_leaf."
        )
    total = len(y) if weight is None else float(np.sum(weight))
    unit = task.impurity_unit if task.criterion == "squared_error" else 1.0
    return Optimum(
        depth,
        searched["feature"],
        searched["left"],
        searched["threshold"],
        searched["is_missing_left"],
        _at_most(float(searched["lower"]), total) * unit,
        float(searched["upper"]) / total * unit,
        float(searched["rounding"]) / total * unit,
        int(searched["n_nodes"]),
        int(searched["n_thresholds"]),
        bool(searched["is_closed"]),
    )


def _at_most(lower: float, total: float) -> float:
    """The largest float64 that is not above lower / total."""
    share = lower / total
    return share if Fraction(share) * Fraction(total) <= Fraction(lower) else math.nextafter(share, 0.0)
