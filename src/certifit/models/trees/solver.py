"""Growth of a tree: every node takes the split of the largest decrease, and is then never changed; or the best tree."""

from __future__ import annotations

import numpy as np

from certifit.data.columns import Array
from certifit.minimise.problem import Run
from certifit.models.trees.in_parts import grown_in_parts
from certifit.models.trees.optimal import Optimum
from certifit.models.trees.pruning import pruned
from certifit.models.trees.state import TreeState
from certifit.models.trees.task import Stops, TreeTask
from certifit.runtime import core, n_threads

UNLIMITED = 2**40  # levels


def grow(task: TreeTask) -> Run[TreeState]:
    """The tree of a task: greedy, stopped and pruned as it says, or the best one of its depth."""
    stops = task.stops
    if not task.is_greedy:
        return Run(measured(task, task.optimum(stops.max_depth or 0)))
    return Run(stopped(full_tree(task, UNLIMITED if stops.max_depth is None else stops.max_depth), stops))


def stopped(tree: TreeState, stops: Stops) -> TreeState:
    """The part of a tree that was grown deeper, with more leaves or unpruned: the tree that these stops give."""
    if stops.max_depth is not None and stops.max_depth < int(tree.depths.max()):
        tree = tree.cut_at(stops.max_depth)
    if stops.max_leaf_nodes is not None:
        tree = tree.best_first(stops.max_leaf_nodes)
    return pruned(tree, stops.ccp_alpha) if stops.ccp_alpha > 0 else tree


def full_tree(task: TreeTask, max_depth: int) -> TreeState:
    """The greedy tree of a task before it is pruned."""
    stops, splitting, unit = task.stops, task.splitting, task.impurity_unit
    least = float(stops.min_impurity_decrease) / unit
    if task.passed is not None:
        grown = grown_in_parts(task, max_depth, least)
    else:
        y, weight = task.scaled()
        max_bins = 0 if splitting.max_bins is None else int(splitting.max_bins)
        grown = core.grow_tree(
            task.block.rows, y, weight, task.criterion, task.n_classes, max_depth, int(stops.min_samples_split),
            int(stops.min_samples_leaf), least, splitting.columns.direction, splitting.columns.n_levels, max_bins,
            splitting.edges, n_threads(),
        )  # fmt: skip
    if grown is None:
        task.refuse()
    values = grown["values"] * (task.weight_unit if task.n_classes else task.y_unit) + task.y_centre
    return TreeState(
        grown["feature"],
        grown["left"],
        grown["threshold"],
        grown["is_missing_left"],
        grown["weight"] * task.weight_unit,
        values if task.n_classes else values[:, 0],
        grown["impurity"] * unit,
        np.maximum(grown["decrease"], 0.0) * unit,
        grown["sets"].reshape(-1, 4),
        splitting.columns.n_levels,
    )


def measured(task: TreeTask, best: Optimum) -> TreeState:
    """The best tree with the numbers of its nodes; thresholds are put halfway between the values of the node's rows."""
    n = len(best.left)
    zeros = np.zeros(n)
    shape = TreeState(
        best.feature, best.left, best.threshold, best.is_missing_left, zeros, np.zeros(n), zeros.copy(), zeros.copy()
    )
    walked = shape.walk(task.block, with_ranges=True)
    inner = np.flatnonzero(best.left)
    threshold = zeros.copy()
    for node in inner:
        low, high = walked.below[node], walked.above[node]
        middle = low / 2 + high / 2
        threshold[node] = np.inf if np.isinf(high) else middle if low <= middle < high else low
    weight, values, impurity = _nodes(task, shape, walked.leaves)
    worth = weight * impurity / weight[0]
    decrease = zeros.copy()
    decrease[inner] = worth[inner] - worth[best.left[inner]] - worth[best.left[inner] + 1]
    unit = task.impurity_unit
    return TreeState(
        best.feature,
        best.left,
        threshold,
        best.is_missing_left,
        weight * task.weight_unit,
        values * (task.weight_unit if task.n_classes else task.y_unit) + task.y_centre,
        impurity * unit,
        np.maximum(decrease, 0.0) * unit,
    )


def _nodes(task: TreeTask, shape: TreeState, leaves: Array) -> tuple[Array, Array, Array]:
    """Weight, values and impurity of every node, each from its own rows."""
    y, weight = task.scaled()
    mass = np.ones(len(y)) if weight is None else weight
    paths = {int(leaf): shape.path_of(int(leaf)) for leaf in np.flatnonzero(shape.left == 0)}
    below = [[leaf for leaf, path in paths.items() if node in path] for node in range(shape.n_nodes)]
    numbers = [_node(task, y[rows], mass[rows]) for rows in (np.isin(leaves, some) for some in below)]
    weights, values, impurities = zip(*numbers, strict=True)
    return np.array(weights), np.array(values), np.array(impurities)


def _node(task: TreeTask, y: Array, mass: Array) -> tuple[float, Array | float, float]:
    total = float(mass.sum())
    if task.n_classes:
        counts = np.bincount(y.astype(np.int64), weights=mass, minlength=task.n_classes)
        shares = counts / total
        if task.criterion == "gini":
            return total, counts, float(shares @ (1 - shares))
        return total, counts, float(-(shares @ np.log(np.where(shares > 0, shares, 1.0))))
    mean = y[0] + float(mass @ (y - y[0])) / total
    return total, mean, float(mass @ np.square(y - mean)) / total
