"""Losses of scores with an L1 penalty, bounds, or both: Newton's method with the penalty kept as it is.

A step goes to where the quadratic model of the loss plus the penalty is least; that minimum is found on the active
columns by direct solves, so the method ends at its rounding floor. The Hessian is that of one point for many steps:
what the passes tell of the curvature corrects it (BFGS), and it is renewed when steps no longer shrink fast.
"""

from __future__ import annotations

import numpy as np

from certifit.data.columns import Array
from certifit.runtime import one_blas_thread
from certifit.solvers.chord import ARMIJO, FLOOR, NOISE, ROUGH, RUNAWAY, SHORTEST, SLOW, SURE, Trace, sampled
from certifit.solvers.direct import Run
from certifit.tasks.generalised import Evaluated, GeneralisedLinear
from certifit.tasks.normal_equations import Weights
from certifit.tasks.quadratic import Kinks, minimiser, without_still

LEARNT = 1e-14  # relative to the objective: changes of the gradient tell of the curvature while steps lower it by more


@one_blas_thread
def solve(task: GeneralisedLinear, max_iter: int, step_tol: float = 0.0, start: Array | None = None) -> Run:
    """The minimiser of a task with an L1 penalty or bounds, to the rounding floor."""
    trace = Trace()
    point = sampled_start(task, max_iter) if start is None else start
    return Run(to_state(task, descend(task, point, max_iter, trace, step_tol)), trace.rows)


def to_state(task: GeneralisedLinear, point: Array) -> Weights:
    """In the user's units, within the bounds."""
    return task.strengths.within(task.to_state(point))


def sampled_start(task: GeneralisedLinear, max_iter: int) -> Array:
    """The fit to some rows where there are many; else no weights."""
    sample = sampled(task)
    if sample is None:
        return task.start()
    return descend(sample, sample.start(), max_iter, Trace(), enough=ROUGH)


def descend(
    task: GeneralisedLinear, point: Array, max_iter: int, trace: Trace, step_tol: float = 0.0, enough: float = FLOOR
) -> Array:
    """Steps from a point until what they lower the objective by is rounding, or `enough` relative to it."""
    kinks = Kinks.of(task.penalty)
    at = task.evaluate(point, hessian=True)
    if not np.isfinite(at.value):
        point = task.start()
        at = task.evaluate(point, hessian=True)
    last = np.inf  # what the step before promised
    slow = 0
    while len(trace.rows) < max_iter:
        if at.hessian is not None:
            matrix = without_still(at.hessian, task.scaling.shift)
        value = at.value + kinks.size(point)
        target = minimiser(matrix, at.gradient, point, value, kinks)
        step = target - point
        decrement = max(float(step @ matrix @ step), 0.0)
        trace.add(value, decrement / 2, float(np.linalg.norm(step)))
        rate = decrement / last if last > 0 else 1.0
        is_slow = rate > SLOW
        slow = slow + 1 if at.hessian is not None and is_slow else 0
        if slow >= RUNAWAY or (is_slow and at.hessian is not None and decrement <= NOISE * value):
            return point
        if decrement * (min(rate, 1.0) if last < np.inf else 1.0) <= enough * value:
            return target  # what is left after it is rounding
        found = _lower(task, kinks, point, at, target, hessian=is_slow)
        if found is None:
            return point  # no step descends: the floor of the objective
        move, change = found[0] - point, found[1].gradient - at.gradient
        if found[1].hessian is None and decrement > LEARNT * value:
            matrix = _learnt(matrix, move, change)
        point, at = found
        last = decrement
        if float(np.linalg.norm(move)) < step_tol:
            return point
    return point


def _lower(
    task: GeneralisedLinear, kinks: Kinks, point: Array, at: Evaluated, target: Array, hessian: bool
) -> tuple[Array, Evaluated] | None:
    """The first of the target, half the way, a quarter, ... that lowers the objective enough; None where none does."""
    length = 1.0
    value, fall = at.value + kinks.size(point), kinks.fall(at.gradient, point, target)
    while length >= SHORTEST:
        trial = target if length == 1.0 else point + length * (target - point)
        found = task.evaluate(trial, hessian)
        if found.value + kinks.size(trial) <= value - ARMIJO * length * fall + SURE * abs(value):
            return trial, found
        length /= 2
    return None


def _learnt(matrix: Array, move: Array, change: Array) -> Array:
    """The matrix that also explains what a move did to the gradient (BFGS)."""
    before = matrix @ move
    product, bent = float(move @ change), float(move @ before)
    if not (product > 0 and bent > 0):
        return matrix
    known = np.where(np.diagonal(matrix) > 0, change, 0.0)
    return matrix + np.outer(known, known) / product - np.outer(before, before) / bent
