"""Losses of scores with an L1 penalty, bounds, or both: Newton's method with the penalty kept as it is.

A step goes to where the quadratic model of the loss plus the penalty is least; that minimum is found on the active
columns by direct solves, so the method ends at its rounding floor. The Hessian is that of one point for many steps:
what the passes tell of the curvature corrects it (BFGS), and it is renewed when steps no longer shrink fast.
"""

from __future__ import annotations

import numpy as np

from certifit.data.columns import Array
from certifit.solvers.chord import (
    ARMIJO,
    FAR,
    FLOOR,
    NOISE,
    ROUGH,
    RUNAWAY,
    SHORTEST,
    SLOW,
    SURE,
    Trace,
    is_lost,
    sampled,
)
from certifit.statistics.residual import TINY
from certifit.tasks.generalised import Evaluated, GeneralisedLinear
from certifit.tasks.quadratic import Kinks, minimiser, without_still

LUCK = 1e-4  # decrements that shrink by more promise no more for the step to come
LEARNT = 1e-14  # relative to the objective: changes of the gradient tell of the curvature while steps lower it by more


class ProxNewton:
    """A point, and what is known of the Hessian of the loss there; both serve the next task, with another alpha."""

    def __init__(self, point: Array) -> None:
        self.point = point
        self.left = np.inf  # relative to the objective: what the last step was expected to leave
        self._matrix: Array | None = None

    def descend(
        self, task: GeneralisedLinear, max_iter: int, trace: Trace, step_tol: float = 0.0, enough: float = FLOOR
    ) -> None:
        """Steps until what they lower the objective by is rounding, or `enough` relative to it."""
        kinks = Kinks.of(task.penalty)
        at = self._start(task)
        last, first = np.inf, np.inf  # the decrement of the step before; the objective at the start
        slow, falls = 0, True
        while len(trace.rows) < max_iter:
            matrix = self._model(task, at)
            value = at.value + kinks.size(self.point)
            target = minimiser(matrix, at.gradient, self.point, value, kinks)
            step = target - self.point
            decrement = max(float(step @ matrix @ step), 0.0)
            trace.add(value, decrement / 2, float(np.linalg.norm(step)))
            rate = decrement / last if last > 0 else 1.0
            is_slow = rate > SLOW
            self.left = decrement * (min(max(rate, LUCK), 1.0) if last < np.inf else 1.0) / max(value, TINY)
            first = value if last == np.inf else first
            slow = slow + 1 if at.hessian is not None and is_slow and decrement <= FAR * first else 0
            if last == np.inf and is_lost(task, self.point, value, decrement):
                self.point = task.start()
                at = task.evaluate(self.point, hessian=True)
                continue
            last = decrement
            # Where neither the objective nor the decrement of a Newton step falls, both are rounding.
            is_rounding = (is_slow and decrement <= NOISE * value) or (rate >= 1 and not falls)
            if slow >= RUNAWAY or (is_rounding and at.hessian is not None):
                return
            if self.left <= enough:
                self.point = target  # what is left after it is rounding
                return
            found = _lower(task, kinks, self.point, at, target, hessian=is_slow)
            if found is None:
                return  # no step descends: the floor of the objective
            move, change = found[0] - self.point, found[1].gradient - at.gradient
            if found[1].hessian is None and decrement > LEARNT * value:
                self._learn(matrix, move, change, task)
            falls = found[1].value + kinks.size(found[0]) < value
            self.point, at = found
            if float(np.linalg.norm(move)) < step_tol:
                return

    def _start(self, task: GeneralisedLinear) -> Evaluated:
        at = task.evaluate(self.point, hessian=self._matrix is None)
        if np.isfinite(at.value):
            return at
        self.point = task.start()
        return task.evaluate(self.point, hessian=True)

    def _model(self, task: GeneralisedLinear, at: Evaluated) -> Array:
        """The Hessian of the loss and the l2 penalty: a new one, or what is known of it."""
        ridge = np.diag(task.l2)
        if at.hessian is not None:
            self._matrix = without_still(at.hessian, task.scaling.shift) - ridge
        assert self._matrix is not None
        return np.asarray(self._matrix + ridge)

    def _learn(self, matrix: Array, move: Array, change: Array, task: GeneralisedLinear) -> None:
        """The matrix that also explains what a move did to the gradient (BFGS)."""
        before = matrix @ move
        product, bent = float(move @ change), float(move @ before)
        if product > 0 and bent > 0:
            known = np.where(np.diagonal(matrix) > 0, change, 0.0)
            learnt = matrix + np.outer(known, known) / product - np.outer(before, before) / bent
            self._matrix = learnt - np.diag(task.l2)


def sampled_start(task: GeneralisedLinear, max_iter: int) -> Array:
    """The fit to some rows where there are many; else no weights."""
    sample = sampled(task)
    if sample is None:
        return task.start()
    newton = ProxNewton(sample.start())
    newton.descend(sample, max_iter, Trace(), enough=ROUGH)
    return newton.point


def _lower(
    task: GeneralisedLinear, kinks: Kinks, point: Array, at: Evaluated, target: Array, hessian: bool
) -> tuple[Array, Evaluated] | None:
    """The first of the target, half the way, a quarter, ... that lowers the objective enough; None where none does."""
    length = 1.0
    value, fall = at.value + kinks.size(point), kinks.fall(at.gradient, point, target)
    while length >= SHORTEST:
        trial = target if length == 1.0 else point + length * (target - point)
        if np.array_equal(trial, point):  # the step is below the rounding of the point
            return None
        found = task.evaluate(trial, hessian)
        if found.value + kinks.size(trial) <= value - ARMIJO * length * fall + SURE * abs(value):
            return trial, found
        length /= 2
    return None
