"""Rounds of boosting: a tree of the least weighted squared error, then less weight for the rows that it fits well."""

from __future__ import annotations

import numpy as np

from certifit.data.columns import Array
from certifit.minimise.problem import Run
from certifit.minimise.steps import Steps
from certifit.models.adaboost_r2.state import NODES, MedianTask, TreeMedian


def boost(task: MedianTask) -> Run[TreeMedian]:
    """The trees of a task. Rounds end early at an exact tree, and where the mean loss is no better than one half."""
    weight = np.asarray(task.rows.weight)
    trees: list[dict[str, Array]] = []
    errors: list[float] = []
    alphas: list[float] = []
    steps = Steps(first=1)
    for j in range(task.n_estimators):
        tree = task.tree(weight)
        losses, error = task.mean_loss(tree, weight)
        is_last = not 0 < error < 0.5
        if is_last and j > 0 and error > 0:
            break
        trees.append(tree)
        errors.append(error)
        alphas.append(task.alpha(error, j) if not (is_last and j > 0) else sum(alphas) or 1.0)
        steps.add(step_size=alphas[-1], error=error, alpha=alphas[-1])
        if is_last or steps.is_over:
            break
        weight = task.reweighted(weight, losses, alphas[-1])
    ends = np.cumsum([0, *(len(tree["left"]) for tree in trees)])
    nodes = {name: np.concatenate([tree[name] for tree in trees]) for name in NODES}
    nodes["values"] = nodes["values"] * task.y_unit
    state = TreeMedian(ends.astype(np.int64), **nodes, error=np.array(errors), alpha=np.array(alphas))
    return Run(state, steps.rows, "" if is_last else steps.reason)
