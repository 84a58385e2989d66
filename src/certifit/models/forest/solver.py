"""Growth of a forest."""

from __future__ import annotations

from certifit.minimise.problem import Run
from certifit.minimise.steps import Steps, is_watched
from certifit.models.forest.in_parts import grown_in_parts
from certifit.models.forest.state import ForestState, ForestTask
from certifit.models.trees.solver import UNLIMITED
from certifit.runtime import core, n_threads


def grow(task: ForestTask) -> Run[ForestState]:
    """A tree for every sample of the rows that is drawn."""
    settings, stops = task.settings, task.settings.stops
    steps = Steps(first=1)

    def tell(n_grown: int) -> bool:
        while len(steps.rows) < n_grown:
            steps.add()
        return steps.is_over

    max_depth = UNLIMITED if stops.max_depth is None else stops.max_depth
    if task.passed is not None:
        grown = grown_in_parts(task, max_depth, tell)
    else:
        grown = core.grow_forest(
            task.block.rows, *task.scaled(), task.n_classes, settings.n_estimators,
            settings.n_tried(task.source.n_features), settings.max_bins, max_depth, stops.min_samples_split,
            stops.min_samples_leaf, settings.random_state, task.columns.n_levels, n_threads(),
            tell if is_watched() else None,  # trees are told in order, some at a time: threads wait for one another
        )  # fmt: skip
    if grown is None:
        task.refuse()
    if not task.n_classes:
        grown["values"] = grown["values"] * task.y_unit
    grown["sets"] = grown["sets"].reshape(-1, 4)
    return Run(ForestState(**grown, n_levels=task.columns.n_levels), steps.rows, steps.reason)
