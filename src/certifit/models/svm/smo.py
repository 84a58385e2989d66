"""Sequential minimal optimisation as textbooks have it: two multipliers at a time, each step exact.

The pair: of those whose sign a may rise the one of least F = f(x) - y, and of those whose sign a may fall the one with
the largest gain. Along sign_i a_i + sign_j a_j = constant the dual is a parabola:

    step = (F_j - F_i) / (K_ii + K_jj - 2 K_ij),    cut where a multiplier meets 0 or C

It ends when no pair is left with F_j > F_i by more than the gap allows.
"""

from __future__ import annotations

import numpy as np

from certifit.data.columns import Array
from certifit.models.svm.solver import ENOUGH, Progress, Recorder, Solved, intercept_of, measured, run_of, sharpen
from certifit.models.svm.task import Machine, MarginRun, MarginTask
from certifit.runtime import one_blas_thread

LEAST_CURVATURE = 1e-12  # of k(x, x): rows that are the same have none between them
FLOOR = 1e-12  # of a violation: below it is rounding
Pair = tuple[int, int, tuple[float, float]]  # places of two multipliers, and what they were


@one_blas_thread
def solve_by_pairs(task: MarginTask, tol: float, max_iter: int) -> MarginRun:
    """The optimum of every machine of a task, with every step in the history."""
    record = Recorder(task.alpha)
    solved = []
    for number, machine in enumerate(task.machines, start=1):
        record.machine = number
        solved.append(_machine(task, machine, tol, max_iter, record))
    return run_of(task, solved, record)


def _machine(task: MarginTask, machine: Machine, tol: float, max_iter: int, record: Recorder) -> Solved:
    K = task.rows.matrix[np.ix_(machine.row, machine.row)]
    places = np.flatnonzero(task.rows.seen)[machine.row]
    local = np.arange(len(machine.row))
    a, f, reason = np.zeros(len(local)), np.zeros(len(local)), ""
    for n_steps in range(max_iter + 1):
        gap, primal, violation = measured(machine, local, a, f)
        pair = None
        if gap > ENOUGH * tol * primal and violation > FLOOR and n_steps < max_iter and not record.steps.is_over:
            pair = step(machine, K, a, f)
            reason = "" if pair is not None else "Rounding in float64 prevents more."
        elif n_steps == max_iter:
            reason = f"max_iter = {max_iter:,} steps were not enough. Raise max_iter."
        record.add(primal, primal - gap, violation, **({} if pair is None else _told(pair, places, a)))
        if pair is None:
            break
    at = Progress(a, f)
    if not record.steps.is_over:
        sharpen(task, machine, machine.row.astype(np.int64), local, at, violation)
    return Solved(at.a, at.f, intercept_of(machine, local, at.a, at.f), reason)


def _told(pair: Pair, places: Array, a: Array) -> dict[str, float]:
    """The step for a reader: row numbers of the pair, and their multipliers before and after."""
    i, j, before = pair
    return {
        "first": int(places[i]),
        "second": int(places[j]),
        "first_before": before[0],
        "first_after": float(a[i]),
        "second_before": before[1],
        "second_after": float(a[j]),
    }


def step(machine: Machine, K: Array, a: Array, f: Array) -> Pair | None:
    """One step, in place; the pair and its multipliers before. None where no pair gains."""
    sign, F = machine.sign, f - machine.target
    can_grow, can_shrink = a < machine.bound, a > 0
    rises, falls = np.where(sign > 0, can_grow, can_shrink), np.where(sign > 0, can_shrink, can_grow)
    i = int(np.argmin(np.where(rises, F, np.inf)))
    least = LEAST_CURVATURE * (K[i, i] + np.diagonal(K))
    curvature = np.maximum(K[i, i] + np.diagonal(K) - 2 * K[i], np.maximum(least, 1e-300))
    apart = np.where(falls, F - F[i], 0.0)
    gain = np.where(apart > 0, apart**2 / curvature, 0.0)
    j = int(np.argmax(gain))
    if not gain[j] > 0:
        return None
    room_i = machine.bound[i] - a[i] if sign[i] > 0 else a[i]
    room_j = a[j] if sign[j] > 0 else machine.bound[j] - a[j]
    size = float(min(apart[j] / curvature[j], room_i, room_j))
    before = float(a[i]), float(a[j])
    a[i] = np.clip(a[i] + sign[i] * size, 0.0, machine.bound[i]) if size < room_i else (sign[i] > 0) * machine.bound[i]
    a[j] = np.clip(a[j] - sign[j] * size, 0.0, machine.bound[j]) if size < room_j else (sign[j] < 0) * machine.bound[j]
    f += sign[i] * (a[i] - before[0]) * K[i] + sign[j] * (a[j] - before[1]) * K[j]
    return i, j, before
