"""Rounds of boosting: a tree of the least weighted squared error, then less weight for the rows that it fits well."""

from __future__ import annotations

import numpy as np

from certifit.data.columns import Array
from certifit.minimise.problem import Run
from certifit.models.adaboost_r2.state import MedianTask, TreeMedian
from certifit.models.trees.task import refuse_infinite
from certifit.runtime import core, n_threads

_NODES = ("feature", "left", "threshold", "is_missing_left", "values")


def boost(task: MedianTask) -> Run[TreeMedian]:
    """The trees of a task. Rounds end early at an exact tree, and where the mean loss is no better than one half."""
    rows, y = task.rows, np.asarray(task.rows.y) / task.y_unit
    weight = np.asarray(task.rows.weight)
    trees: list[dict[str, Array]] = []
    errors: list[float] = []
    alphas: list[float] = []
    for j in range(task.n_estimators):
        tree = _tree(task, y, weight)
        walked = core.walk_tree(rows.rows, *(tree[name] for name in _NODES[:4]), None, None, False, n_threads())
        losses, largest = task.losses(tree["values"][walked[0]], y)
        error = float(weight @ losses) if largest > 0 else 0.0
        is_last = not 0 < error < 0.5
        if is_last and j > 0 and error > 0:
            break
        trees.append(tree)
        errors.append(error)
        alphas.append(task.alpha(error, j) if not (is_last and j > 0) else sum(alphas) or 1.0)
        if is_last:
            break
        weight = task.reweighted(weight, losses, alphas[-1])
    ends = np.cumsum([0, *(len(tree["left"]) for tree in trees)])
    nodes = {name: np.concatenate([tree[name] for tree in trees]) for name in _NODES}
    nodes["values"] = nodes["values"] * task.y_unit
    return Run(TreeMedian(ends.astype(np.int64), **nodes, error=np.array(errors), alpha=np.array(alphas)))


def _tree(task: MedianTask, y: Array, weight: Array) -> dict[str, Array]:
    """The tree of a round. Weights near 1 on average: none vanishes against another unit."""
    scaled = weight * len(weight)
    stops = (task.max_depth, 2, task.min_samples_leaf, 0.0)
    grown = core.grow_tree(task.rows.rows, y, scaled, "squared_error", 0, *stops, None, None, 0, None, n_threads())
    if grown is None:
        refuse_infinite(task.block, task.source.names)
        raise ValueError("y must be finite numbers.")
    return {name: grown[name][:, 0] if name == "values" else grown[name] for name in _NODES}
