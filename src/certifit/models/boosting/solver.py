"""Rounds of boosting: a tree on slopes and curvatures, its leaves Newton steps, shrunk and added to the scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from certifit.data.columns import Array
from certifit.minimise.problem import Run
from certifit.minimise.steps import Steps
from certifit.models.boosting.losses import Pinball
from certifit.models.boosting.rounds import Rounds, rounds_of
from certifit.models.boosting.state import BoostingState
from certifit.models.boosting.task import BoostingTask
from certifit.models.trees import passes
from certifit.runtime import FEWER_CLASSES, check_memory

NODE_ARRAYS = ("feature", "left", "threshold", "is_missing_left", "value", "weight", "gain")


def boost(task: BoostingTask, before: BoostingState | None = None) -> Run[BoostingState]:
    """All rounds, or those after the ones of an earlier state."""
    settings, rounds = task.settings, rounds_of(task, before)
    if task.width > 1:
        n_held = rounds.n_rows if task.passed is None else min(rounds.n_rows, passes.PART_ROWS)
        what = f"Boosting of {task.width:,} classes on {rounds.n_rows:,} rows"
        check_memory(8.0 * 5 * n_held * task.width, what, FEWER_CLASSES)
    start = rounds.start() if before is None else before.start / task.unit
    trees: list[dict[str, Array]] = []
    rounds.begin(start, before)
    n_sets = 0 if before is None else len(before.sets)
    losses, held_out = ([], []) if before is None else (list(before.loss), list(before.held_out[: before.n_rounds]))
    steps = Steps(first=len(losses) + 1)
    for number in range(0 if before is None else before.n_rounds, settings.n_estimators):
        rounds.draw(number)
        for k in range(task.width):
            trees.append(_tree(rounds, k, n_sets))
            n_sets += len(trees[-1]["sets"])
        loss, held = rounds.advance([tree["value"] for tree in trees[-task.width :]])
        losses.append(loss * task.loss_unit)
        if settings.early_stopping:
            held_out.append(held * task.loss_unit)
        steps.add(losses[-1], **({"held_out_loss": held_out[-1]} if held_out else {}))
        if steps.is_over or (held_out and len(held_out) - 1 - int(np.argmin(held_out)) >= settings.n_iter_no_change):
            break
    state = _state(task, rounds.n_levels, start, trees, losses, held_out, before)
    if settings.early_stopping:
        state = replace(state.part(int(np.argmin(held_out)) + 1), held_out=state.held_out)
    return Run(state, steps.rows, steps.reason)


def _tree(rounds: Rounds, k: int, n_sets: int) -> dict[str, Array]:
    """One tree with thresholds and shrunk values. n_sets: of the trees before."""
    grown = rounds.grow(k)
    left, value = grown["left"], grown["value"]
    threshold, inner = np.zeros(len(left)), np.flatnonzero(left)
    column, bins = grown["feature"][inner], grown["bin"][inner]
    threshold[inner] = rounds.thresholds[column, bins]
    if rounds.n_levels is not None:
        threshold[inner] = np.where(rounds.n_levels[column] > 0, bins + n_sets, threshold[inner])
    if isinstance(rounds.loss, Pinball):
        value = rounds.leaf_values(k, len(left), (value, value))
    return {
        "feature": grown["feature"], "left": left, "threshold": threshold, "is_missing_left": grown["is_missing_left"],
        "value": value * rounds.settings.learning_rate, "weight": grown["weight"], "gain": grown["gain"],
        "sets": grown["sets"],
    }  # fmt: skip


def _state(
    task: BoostingTask,
    n_levels: Array | None,
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
        sets=np.concatenate(sets), n_levels=n_levels, **arrays,
    )  # fmt: skip
