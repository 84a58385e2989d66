"""Rounds of boosting: the stump of the least weighted error, then more weight for the rows that it calls wrong."""

from __future__ import annotations

from certifit.data.user_input import refuse_nonfinite
from certifit.minimise.problem import Run
from certifit.minimise.steps import Steps
from certifit.models.adaboost.state import BoostTask, StumpVote
from certifit.runtime import FEWER_CLASSES, check_memory, core, n_threads


def boost(task: BoostTask) -> Run[StumpVote]:
    """The vote of a task. Rounds end early at a stump without error, or where none is better than chance."""
    codes, weight = task.scaled()
    steps = Steps(first=1)

    def tell(error: float, alpha: float, training_error: float) -> bool:
        steps.add(step_size=alpha, error=error, alpha=alpha, training_error=training_error)
        return steps.is_over

    what = f"AdaBoost of {task.n_classes:,} classes on {task.block.n_rows:,} rows"
    check_memory(8.0 * 2 * task.block.n_rows * task.n_classes, what, FEWER_CLASSES)
    stumps = core.boost_stumps(
        task.block.rows, codes, weight, task.n_classes, task.n_estimators, task.learning_rate, n_threads(), tell
    )
    if stumps is None:
        refuse_nonfinite(task.source)
        raise ValueError("X must be finite numbers.")
    return Run(StumpVote(**stumps), steps.rows, steps.reason)
