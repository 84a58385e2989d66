"""The certificate of a linear support vector machine: the duality gap, from the rows and the weights alone.

Feasible multipliers give a lower bound (`svm/certificate.py`). Of squared slacks the weights name them:
a_i = 2 C_i max(0, v_i), the best at the optimum. Of the hinge they do not, and of very many columns these are only as
good as the weights: there the dual is solved again, unless this task was solved already, and the multipliers are
whatever that gave. How they were found is no part of the proof.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from certifit.data.columns import Array
from certifit.models.linear_svm.dual import best_multipliers
from certifit.models.linear_svm.task import BLOCK_ROWS, LinearState, LinearTask
from certifit.models.svm.certificate import Judged, MarginCertificate, Outside, Values, joined, judge
from certifit.models.svm.task import Machine
from certifit.runtime import one_blas_thread
from certifit.statistics.residual import UNIT


@np.errstate(all="ignore")  # far states: what is infinite or not a number proves nothing
@one_blas_thread
def certify(task: LinearTask, state: LinearState, tolerance: float) -> MarginCertificate:
    """How far the objective of any of the machines can be above its least."""
    judged = [judge_machine(task, state, p, tolerance) for p in range(len(task.machines))]
    return joined(judged, [machine.null for machine in task.machines], tolerance)


def judge_machine(task: LinearTask, state: LinearState, p: int, tolerance: float) -> Judged:
    """What is proven of one machine."""
    machine = task.machines[p]
    w, b = task.seen(state, p)
    z = task.scores(w)
    v = 1 - machine.sign * (z + b)
    a = multipliers_of(task, p, v, tolerance)
    sizes, length = np.sqrt(task.squares), float(np.linalg.norm(w))
    moved = float(np.abs(state.coef[p]) @ np.abs(task.centre)) + abs(float(state.intercepts[p]))
    off = (task.most_entries + 16) * UNIT * (sizes * length + moved)
    at = Values(z, off, _square(w), sizes)
    apart = _apart(task, machine, w, a, sizes)
    if task.names_multipliers:  # by slacks that are rounded
        most = machine.slack.slope(machine.bound, v + off + 4 * UNIT * (np.abs(v) + 2)) - a
        apart = replace(apart, rounding=apart.rounding + float(most @ sizes), unbalanced=float(most.sum()))
    judged = judge(machine, a, apart, at, b)
    # What the multipliers of another solver than that of the fit lack is no change of the weights.
    return replace(judged, rounding=judged.rounding + task.left[p])


def multipliers_of(task: LinearTask, p: int, v: Array, tolerance: float) -> Array:
    """Multipliers for the bound: those that the weights name, or else those of the dual."""
    machine = task.machines[p]
    if task.names_multipliers:
        return machine.slack.slope(machine.bound, v)
    known = task.witness[p]
    if known is None:
        known, task.left[p] = best_multipliers(task, p, tolerance)
        task.witness[p] = known
    return known


def _square(w: Array) -> tuple[float, float]:
    """Bounds on |w|^2."""
    square, unit = float(w @ w), (len(w) + 8) * UNIT
    return square * (1 - unit), square * (1 + unit)


def _apart(task: LinearTask, machine: Machine, w: Array, a: Array, sizes: Array) -> Outside:
    """w - sum_i y_i a_i x_i."""
    total = task.sums(machine.sign * a)[0][:-1]
    unit = (min(len(a), BLOCK_ROWS) + len(a) / BLOCK_ROWS + 16) * UNIT
    size = float(np.linalg.norm(w)) + float(a @ sizes)
    rounding = unit * size * (1 + len(a) * UNIT)
    return Outside(float(np.linalg.norm(w - total)) * (1 + len(w) * UNIT) + rounding, rounding)
