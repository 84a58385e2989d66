"""Rounds of boosting: a tree on slopes and curvatures, its leaves Newton steps, shrunk and added to the scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from certifit.data.columns import Array
from certifit.minimise.problem import Run
from certifit.minimise.steps import Steps
from certifit.models.boosting.losses import Pinball
from certifit.models.boosting.state import BoostingState
from certifit.models.boosting.task import BoostingTask
from certifit.runtime import FEWER_CLASSES, check_memory, core, n_threads

UNLIMITED = 2**29  # levels, leaves
NODE_ARRAYS = ("feature", "left", "threshold", "is_missing_left", "value", "weight", "gain")


def boost(task: BoostingTask, before: BoostingState | None = None) -> Run[BoostingState]:
    """All rounds, or those after the ones of an earlier state."""
    rows, settings = task.rows, task.settings
    if task.streamed is None and task.width > 1:
        what = f"Boosting of {task.width:,} classes on {rows.n_rows:,} rows"
        check_memory(8.0 * 5 * rows.n_rows * task.width, what, FEWER_CLASSES)
    start = task.start() if before is None else before.start / task.unit
    trees: list[dict[str, Array]] = []
    scores = start + rows.offset[:, None] + np.zeros((rows.n_rows, task.width))
    if before is not None:
        scores = task.scores_by(before) / task.unit + rows.offset[:, None]
    mean, held = _mean_losses(task)
    n_sets = 0 if before is None else len(before.sets)
    losses, held_out = ([], []) if before is None else (list(before.loss), list(before.held_out[: before.n_rounds]))
    steps = Steps(first=len(losses) + 1)
    _, slopes, curvatures = task.derivatives(scores)
    for number in range(0 if before is None else before.n_rounds, settings.n_estimators):
        drawn, columns = task.drawn(number)
        added = np.empty_like(scores)
        for k in range(task.width):
            tree, leaves = _tree(task, slopes[k], curvatures[k], drawn, columns, scores, n_sets)
            trees.append(tree)
            n_sets += len(tree["sets"])
            np.take(tree["value"], leaves, out=added[:, k], mode="clip")
        scores = scores + added
        row_losses, slopes, curvatures = task.derivatives(scores)
        losses.append(float(mean @ row_losses) * task.loss_unit)
        if settings.early_stopping:
            held_out.append(float(held @ row_losses) * task.loss_unit)
        steps.add(losses[-1], **({"held_out_loss": held_out[-1]} if held_out else {}))
        if steps.is_over or (held_out and len(held_out) - 1 - int(np.argmin(held_out)) >= settings.n_iter_no_change):
            break
    state = _state(task, start, trees, losses, held_out, before)
    if settings.early_stopping:
        state = replace(state.part(int(np.argmin(held_out)) + 1), held_out=state.held_out)
    return Run(state, steps.rows, steps.reason)


def _mean_losses(task: BoostingTask) -> tuple[Array, Array]:
    """What the losses of rows are multiplied by: for the mean of the rows trained on, and of those held out."""
    weight = task.rows.weight
    trained, held = np.where(task.trained, weight, 0.0), np.where(task.trained, 0.0, weight)
    return trained / trained.sum(), held / (held.sum() or 1.0)


def _tree(
    task: BoostingTask, g: Array, h: Array, drawn: Array, columns: Array, scores: Array, n_sets: int
) -> tuple[dict[str, Array], Array]:
    """One tree with thresholds and shrunk values, and the leaf of every distinct row. n_sets: of the trees before."""
    settings, rows = task.settings, task.rows
    grown = core.grow_newton(
        rows.codes, rows.by_column, rows.n_bins, rows.n_levels, np.ascontiguousarray(g), np.ascontiguousarray(h),
        rows.weight, drawn, columns,
        UNLIMITED if settings.max_depth is None else settings.max_depth,
        UNLIMITED if settings.max_leaf_nodes is None else settings.max_leaf_nodes,
        settings.min_samples_leaf, settings.l2, settings.growth == "leaf",
        None if settings.directions is None else np.array(settings.directions, dtype=np.int8), n_threads(),
    )  # fmt: skip
    left, leaves, value = grown["left"], grown["leaves"], grown["value"]
    threshold = np.zeros(len(left))
    for node in np.flatnonzero(left):
        column, bin_ = grown["feature"][node], grown["bin"][node]
        edges = rows.edges[column]
        threshold[node] = edges[bin_] if bin_ < len(edges) else np.inf
        if rows.n_levels is not None and rows.n_levels[column]:
            threshold[node] = bin_ + n_sets
    if isinstance(task.loss, Pinball):
        value = task.leaf_values(scores, leaves, len(left), (value, value), drawn)
    tree = {
        "feature": grown["feature"], "left": left, "threshold": threshold, "is_missing_left": grown["is_missing_left"],
        "value": value * settings.learning_rate, "weight": grown["weight"], "gain": grown["gain"],
        "sets": grown["sets"],
    }  # fmt: skip
    return tree, leaves


def _state(
    task: BoostingTask,
    start: Array,
    trees: list[dict[str, Array]],
    losses: list[float],
    held_out: list[float],
    before: BoostingState | None,
) -> BoostingState:
    unit = task.unit
    scale = {"value": unit, "weight": task.weight_unit, "gain": unit**2 * task.weight_unit}
    arrays = {
        name: np.concatenate([tree[name] for tree in trees]) * scale[name]
        if name in scale
        else np.concatenate([tree[name] for tree in trees])
        for name in NODE_ARRAYS
        if trees
    }
    ends = np.cumsum([0, *(len(tree["left"]) for tree in trees)])
    if before is not None:
        arrays = {
            name: np.concatenate([getattr(before, name), arrays[name]]) if trees else getattr(before, name)
            for name in NODE_ARRAYS
        }
        ends = np.concatenate([before.ends, before.ends[-1] + ends[1:]])
    sets = [np.zeros((0, 4), dtype=np.uint64) if before is None else before.sets, *(tree["sets"] for tree in trees)]
    return BoostingState(
        start=start * unit, ends=ends.astype(np.int64), loss=np.array(losses), held_out=np.array(held_out),
        sets=np.concatenate(sets), n_levels=task.rows.n_levels, **arrays,
    )  # fmt: skip
