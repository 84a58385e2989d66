"""Growth of a tree: every node takes the split of the largest decrease, and is then never changed."""

from __future__ import annotations

import numpy as np

from certifit.minimise.problem import Run
from certifit.models.trees.pruning import pruned
from certifit.models.trees.state import TreeState
from certifit.models.trees.task import Stops, TreeTask, refuse_infinite
from certifit.runtime import core, n_threads

UNLIMITED = 2**40  # levels


def grow(task: TreeTask) -> Run[TreeState]:
    """The greedy tree of a task, stopped and pruned as it says."""
    stops = task.stops
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
    y, weight = task.scaled()
    stops, unit = task.stops, task.impurity_unit
    if np.isinf(unit):
        raise ValueError("Squares of y leave the range of float64. Multiply or divide y by a power of ten.")
    grown = core.grow_tree(
        task.block.rows,
        y,
        weight,
        task.criterion,
        task.n_classes,
        max_depth,
        int(stops.min_samples_split),
        int(stops.min_samples_leaf),
        float(stops.min_impurity_decrease) / unit,
        n_threads(),
    )
    if grown is None:
        refuse_infinite(task.block, task.source.names)
        raise ValueError("y must be finite numbers.")
    values = grown["values"] * (task.weight_unit if task.n_classes else task.y_unit)
    return TreeState(
        grown["feature"],
        grown["left"],
        grown["threshold"],
        grown["is_missing_left"],
        grown["weight"] * task.weight_unit,
        values if task.n_classes else values[:, 0],
        grown["impurity"] * unit,
        np.maximum(grown["decrease"], 0.0) * unit,
    )
