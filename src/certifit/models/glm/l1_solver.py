"""Losses of scores with an L1 penalty or bounds: one alpha, or many with every answer the start of the next.

Many columns: the loss is minimised on a working set of them, to which those come whose slope exceeds their penalty.

Newton steps for a loss of scores on many sparse columns: each by coordinate descent on the quadratic model.

The columns lie in memory, so between two looks at all columns no pass over the rows is needed: the scores follow every
step, and a line search costs no more than the rows' losses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Array
from certifit.data.source import Block
from certifit.mathematics.penalties import Kinks, minimiser, without_still
from certifit.minimise.problem import Run
from certifit.minimise.steps import Steps, unreported
from certifit.models.glm.newton import (
    ARMIJO,
    FAR,
    FLOOR,
    NOISE,
    ROUGH,
    RUNAWAY,
    RUNS,
    SHORTEST,
    SLOW,
    SURE,
    corrected,
    is_lost,
    patience,
    sampled,
)
from certifit.models.glm.some_columns import SomeColumns
from certifit.models.glm.task import Evaluated, GlmTask, ScoreTask, StateT
from certifit.models.lasso.solver import INNER_SHARE, LassoPath
from certifit.runtime import core, n_threads, one_blas_thread
from certifit.statistics.residual import TINY

INNER = 0.05  # share of the violation that coordinate descent leaves
MOST_SWEEPS = 1000
IDLE = 3  # steps that do not lower the violation: what is left is rounding


class SparseNewton:
    """A task's rows, some columns of them by column, and the scores at a point of those."""

    def __init__(self, task: GlmTask, columns: sp.csc_array | sp.csr_array, rows: Block, point: Array) -> None:
        self.task, self.point = task, point
        X = sp.csc_array(columns, dtype=np.float64)
        scaled = X.data * np.repeat(task.scaling.scale, np.diff(X.indptr))
        self._X = sp.csc_array((scaled, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
        weight = np.ones(len(np.asarray(rows.y))) if rows.weight is None else rows.weight
        seen = weight > 0
        self._seen = None if seen.all() else seen
        self._y = np.asarray(rows.y)
        self._share = weight / weight.sum()
        self._z = np.asarray(self._X @ point[:-1]) + point[-1]
        if rows.offset is not None:
            self._z = self._z + rows.offset
        self._kinks = Kinks.of(task.penalty)
        l1 = self._kinks.l1[:-1]
        self._units = np.append(np.where(l1 > 0, l1, l1.max(initial=0.0) or 1.0), l1.max(initial=0.0) or 1.0)

    def descend(self, max_iter: int, steps: Steps, enough: float) -> None:
        """Steps until no slope is off by more than `enough` of its penalty."""
        least, idle = np.inf, 0
        while len(steps.rows) < max_iter and not steps.is_over:
            slopes, curvatures = self._derivatives()
            gradient = np.append(self._X.T @ slopes, slopes.sum() * self.task.fit_intercept)
            off = float((self._violations(gradient) / self._units).max())
            idle = idle + 1 if off >= 0.9 * least else 0
            least = min(least, off)
            if off <= enough or idle >= IDLE:
                return
            target = self._target(gradient, curvatures, max(INNER * off, enough / 4))
            size = float(np.linalg.norm(target - self.point))
            value = self._value(self.point, self._z)
            steps.add(value, off, step=size)
            if not self._step(target, gradient, value):
                return

    def _derivatives(self) -> tuple[Array, Array]:
        """Slopes and curvatures of the rows, times their shares."""
        pairs = []
        for f in (self.task.loss.slope, self.task.loss.curvature):
            each = f(self._y, self._z)
            pairs.append(self._share * (each if self._seen is None else np.where(self._seen, each, 0.0)))
        return pairs[0], pairs[1]

    def _violations(self, gradient: Array) -> Array:
        """How far the derivative of the objective is on the wrong side, entry by entry."""
        x, k = self.point, self._kinks
        g = gradient + self.task.l2 * x
        up = np.where(x < k.upper, -g - np.where(x >= 0, k.l1, -k.l1), 0.0)
        down = np.where(x > k.lower, g - np.where(x <= 0, k.l1, -k.l1), 0.0)
        return np.asarray(np.maximum(np.maximum(up, down), 0.0))

    def _target(self, gradient: Array, curvatures: Array, tol: float) -> Array:
        X, k, penalty = self._X, self._kinks, self.task.penalty
        weights, moved, _ = core.weighted_lasso_step(
            ("csc", X.data, X.indices, X.indptr, X.shape[0]),
            np.ascontiguousarray(curvatures),
            np.ascontiguousarray(gradient),
            np.ascontiguousarray(self.point[:-1]),
            np.ascontiguousarray(penalty.l1),
            np.ascontiguousarray(penalty.l2),
            np.ascontiguousarray(penalty.lower),
            np.ascontiguousarray(penalty.upper),
            np.ascontiguousarray(self._units[:-1]),
            self.task.fit_intercept,
            tol,
            MOST_SWEEPS,
            n_threads(),
        )
        return np.asarray(np.clip(np.append(weights, self.point[-1] + moved), k.lower, k.upper))

    def _value(self, point: Array, z: Array) -> float:
        """The objective."""
        with np.errstate(over="ignore", invalid="ignore"):
            each = self.task.loss.value(self._y, z)
            loss = float(self._share @ (each if self._seen is None else np.where(self._seen, each, 0.0)))
        return loss + self._kinks.size(point) + float(self.task.l2 @ point**2) / 2

    def _step(self, target: Array, gradient: Array, value: float) -> bool:
        """To the target, or so much of the way that the objective falls enough; False where none does."""
        step = target - self.point
        change = np.asarray(self._X @ step[:-1]) + step[-1]
        fall = self._kinks.fall(gradient + self.task.l2 * self.point, self.point, target)
        length = 1.0
        while length >= SHORTEST:
            trial, z = (
                (target, self._z + change) if length == 1.0 else (self.point + length * step, self._z + length * change)
            )
            if self._value(trial, z) <= value - ARMIJO * length * fall + SURE * abs(value):
                self.point, self._z = trial, z
                return True
            length /= 2
        return False


WIDE = 400  # columns above which a working set of them is fitted
FEWEST = 100  # columns that a working set takes in at once, at least
GROWTH = 4  # times the columns with a weight: most that enter at once
MOST_GRAM = 500  # columns of a set whose Hessian is made; larger sets of sparse columns go by coordinate descent
SHARP = 1e-11  # of a penalty: what coordinate descent may leave of a slope
NEARLY = 1e-2  # slopes that exceed their penalty by less, relative: the next fit goes to the floor
COARSE = 1e-6  # relative decrement that ends a fit to a working set before
SLACK = 1e-13  # relative: slopes that exceed their penalty by less are rounding


@one_blas_thread
def solve(task: ScoreTask[StateT], max_iter: int, step_tol: float = 0.0, start: StateT | None = None) -> Run[StateT]:
    """The minimiser of a task with an L1 penalty or bounds, to the rounding floor.

    A start is left for no weights where Newton's model of the loss says nothing there, and no weights are better.
    """
    steps, point = Steps(), task.start()
    if start is not None:
        point = legal_start(task, start)
    elif isinstance(task, GlmTask) and not is_wide(task):
        with unreported():
            point = sampled_start(task, max_iter)
    if is_wide(task):
        point = WorkingSet(task, point).descend(task, max_iter, steps, FLOOR)
    else:
        newton = ProxNewton(point, patience(task))
        newton.descend(task, max_iter, steps, step_tol)
        point = newton.point
    return Run(task.to_state(point), steps.rows, steps.reason)


def legal_start(task: ScoreTask[StateT], state: StateT) -> Array:
    """A start as a point, or what is wrong with it."""
    bounds, coef = task.strengths, np.atleast_2d(state.coef)
    outside = np.argwhere((coef < bounds.lower) | (coef > bounds.upper))
    if len(outside):
        k, j = (int(place) for place in outside[0])
        raise ValueError(
            f"start has {coef[k, j]:g} for {task.source.names[j]!r}, outside its bounds "
            f"{bounds.lower[j]:g} to {bounds.upper[j]:g}."
        )
    point = task.to_point(state)
    if not np.isfinite(task.evaluate(point).value):
        raise ValueError("The objective is not finite at start. Start where it is, as start='zero'.")
    return point


@one_blas_thread
def solve_path(task: ScoreTask[Any], alphas: Array, tol: float, max_iter: int) -> LassoPath:
    """Solutions along alphas, any order."""
    order = np.argsort(-alphas, kind="stable")
    enough = max(INNER_SHARE * tol, FLOOR)
    wide = WorkingSet(task, task.start()) if is_wide(task) else None
    newton = ProxNewton(task.start(), patience(task))
    states, left, counts = [], [], []
    for alpha in alphas[order]:
        at, steps = task.at_strength(float(alpha)), Steps()
        if wide is not None:
            point = wide.descend(at, max_iter, steps, enough)
            left.append(wide.left)
        else:
            newton.descend(at, max_iter, steps, enough=enough)
            point = newton.point
            left.append(newton.left)
        states.append(at.to_state(point))
        counts.append(len(steps.rows))
    back = np.argsort(order)
    of_scores = () if task.n_scores == 1 else (task.n_scores,)
    coef = np.array([state.coef for state in states]).reshape(len(alphas), *of_scores, task.source.n_features)
    intercept = np.array([state.intercept for state in states]).reshape(len(alphas), *of_scores)
    names = tuple(task.source.names)
    return LassoPath(alphas, coef[back], intercept[back], np.array(left)[back], names, np.array(counts)[back])


def alpha_max(task: ScoreTask[Any]) -> float:
    """The least alpha at which every penalised weight is zero; infinite without an L1 penalty."""
    s, free = task.strengths, np.flatnonzero(task.strengths.factors == 0)
    at = task.start().reshape(task.shape)
    if len(free) or (task.fit_intercept and isinstance(task, GlmTask) and task.largest_offset > 0):
        places = np.append(free, len(at) - 1)
        newton = ProxNewton(at[places].ravel(), patience(task))
        newton.descend(SomeColumns(task).taken(free, 0.0), 100, Steps())
        at[places] = newton.point.reshape(-1, task.n_scores)
    slopes = -task.at_strength(0.0).evaluate(at.ravel()).gradient.reshape(task.shape)[:-1]
    slopes /= task.scaling.scale[:, None]
    can_move = np.where(slopes > 0, s.upper[:, None], s.lower[:, None]) != 0
    if not s.l1_ratio > 0:
        return np.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.abs(slopes) / (s.l1_ratio * s.factors * task.spreads)[:, None]
    return float(np.max(needed, initial=0.0, where=can_move & (s.factors > 0)[:, None]))


def is_wide(task: ScoreTask[StateT]) -> bool:
    """Whether columns are many, and a penalty leaves most of them out."""
    return task.size > WIDE and bool((task.penalty.l1 > 0).any())


class WorkingSet:
    """A point of all columns, and those that it is changed in."""

    def __init__(self, task: ScoreTask[Any], point: Array) -> None:
        self.point = point
        self.left = np.inf
        self._columns = SomeColumns(task)

    def descend(self, task: ScoreTask[StateT], max_iter: int, steps: Steps, enough: float) -> Array:
        """Fits to growing sets of columns, until no slope of the others exceeds its penalty."""
        kinks = Kinks.of(task.penalty, task.n_scores)
        chosen, nearly = None, False
        while len(steps.rows) < max_iter and not steps.is_over:
            entries = _excess(task.evaluate(self.point).gradient, self.point, kinks)
            outside = entries.reshape(-1, task.n_scores)[:-1].max(axis=1)
            l1 = kinks.l1[:: task.n_scores][:-1]
            if chosen is not None:
                outside[chosen] = 0.0
                if nearly and not outside.any():
                    break
                nearly = nearly or bool((outside <= NEARLY * l1).all())
            chosen = self._enlarged(outside, l1) | (chosen if chosen is not None and nearly else False)
            self._fit(task, np.flatnonzero(chosen), max_iter, steps, enough if nearly else max(enough, COARSE))
        return self.point

    def _enlarged(self, outside: Array, l1: Array) -> Array:
        """The columns with a weight or without an l1 penalty, and those whose slopes exceed it most."""
        kept = self.point.reshape(len(l1) + 1, -1)[:-1].any(axis=1) | (l1 == 0)
        most = FEWEST if not kept.any() else max(FEWEST, GROWTH * int(kept.sum()))
        entering = np.flatnonzero(outside)
        if len(entering) > most:
            entering = entering[np.argpartition(-outside[entering], most)[:most]]
        kept[entering] = True
        return np.asarray(kept)

    def _fit(self, task: ScoreTask[StateT], columns: Array, max_iter: int, steps: Steps, enough: float) -> None:
        places = np.append(columns, len(task.scaling.scale))  # the intercepts are the last row
        begin = self.point.reshape(-1, task.n_scores)[places].ravel()
        sparse = self._columns.sparse(columns, task.strengths.alpha) if len(columns) > MOST_GRAM else None
        if sparse is not None:
            of_columns = SparseNewton(*sparse, begin)
            of_columns.descend(max_iter, steps, max(enough**0.5, SHARP))
            self._put(places, of_columns.point)
            return
        small = self._columns.taken(columns, task.strengths.alpha)
        newton = ProxNewton(begin)
        newton.descend(small, max_iter, steps, enough=enough)
        self.left = newton.left
        self._put(places, newton.point)

    def _put(self, places: Array, values: Array) -> None:
        n_scores = len(values) // len(places)
        whole = self.point.copy().reshape(-1, n_scores)
        whole[places] = values.reshape(-1, n_scores)
        self.point = whole.ravel()


def _excess(gradient: Array, point: Array, kinks: Kinks) -> Array:
    """How much the slope of a column without a weight exceeds its penalty, the way its bounds allow."""
    end = np.where(gradient < 0, kinks.upper, kinks.lower)
    excess = np.abs(gradient) - kinks.l1 * (1 + SLACK)
    return np.where((point == 0) & (end != 0) & (excess > 0), excess, 0.0)


# Losses of scores with an L1 penalty, bounds, or both: Newton's method with the penalty kept as it is.
#
# A step goes to where the quadratic model of the loss plus the penalty is least; that minimum is found on the active
# columns by direct solves, so the method ends at its rounding floor. The Hessian is that of one point for many steps:
# what the passes tell of the curvature corrects it (BFGS), and it is renewed when steps no longer shrink fast.

LUCK = 1e-4  # decrements that shrink by more promise no more for the step to come
LEARNT = 1e-14  # relative to the objective: changes of the gradient tell of the curvature while steps lower it by more


class ProxNewton:
    """A point, and what is known of the Hessian of the loss there; both serve the next task, with another alpha."""

    def __init__(self, point: Array, runaway: int = RUNAWAY) -> None:
        self.point, self._runaway = point, runaway
        self.left = np.inf  # relative to the objective: what the last step was expected to leave
        self._matrix: Array | None = None

    def descend(
        self, task: ScoreTask[StateT], max_iter: int, steps: Steps, step_tol: float = 0.0, enough: float = FLOOR
    ) -> None:
        """Steps until what they lower the objective by is rounding, or `enough` relative to it."""
        kinks = Kinks.of(task.penalty, task.n_scores)
        at = self._start(task)
        last, first = np.inf, np.inf  # the decrement of the step before; the objective at the start
        slow, falls = 0, True
        while len(steps.rows) < max_iter and not steps.is_over:
            matrix = self._model(task, at)
            value = at.value + kinks.size(self.point)
            target = minimiser(matrix, at.gradient, self.point, value, kinks)
            step = target - self.point
            decrement = max(float(step @ matrix @ step), 0.0)
            steps.add(value, decrement / 2, step=float(np.linalg.norm(step)))
            rate = decrement / last if last > 0 else 1.0
            is_slow = rate > SLOW
            self.left = decrement * (min(max(rate, LUCK), 1.0) if last < np.inf else 1.0) / max(value, TINY)
            first = value if last == np.inf else first
            slow = slow + 1 if at.hessian is not None and rate > RUNS and decrement <= FAR * first else 0
            if last == np.inf and is_lost(task, self.point, value, decrement):
                self.point = task.start()
                at = task.evaluate(self.point, hessian=True)
                continue
            last = decrement
            # Where neither the objective nor the decrement of a Newton step falls, both are rounding.
            is_rounding = (is_slow and decrement <= NOISE * value) or (rate >= 1 and not falls)
            if slow >= self._runaway or (is_rounding and at.hessian is not None):
                return
            if self.left <= enough:
                self.point = target  # what is left after it is rounding
                return
            lower = _lower(task, kinks, self.point, at, target, hessian=is_slow)
            if lower is None:
                return  # no step descends: the floor of the objective
            move, change = lower[0] - self.point, lower[1].gradient - at.gradient
            if lower[1].hessian is None and decrement > LEARNT * value:
                self._matrix = corrected(matrix, move, change) - np.diag(task.pulls)
            falls = lower[1].value + kinks.size(lower[0]) < value
            self.point, at = lower
            if float(np.linalg.norm(move)) < step_tol:
                return

    def _start(self, task: ScoreTask[StateT]) -> Evaluated:
        at = task.evaluate(self.point, hessian=self._matrix is None)
        if np.isfinite(at.value):
            return at
        self.point = task.start()
        return task.evaluate(self.point, hessian=True)

    def _model(self, task: ScoreTask[StateT], at: Evaluated) -> Array:
        """The Hessian of the loss and the l2 penalty: a new one, or what is known of it."""
        ridge = np.diag(task.pulls)
        if at.hessian is not None:
            self._matrix = without_still(at.hessian, task.scaling.shift, task.n_scores) - ridge
        assert self._matrix is not None
        return np.asarray(self._matrix + ridge)


def sampled_start(task: GlmTask, max_iter: int) -> Array:
    """The fit to some rows where there are many; else no weights."""
    sample = sampled(task)
    if sample is None:
        return task.start()
    newton = ProxNewton(sample.start())
    newton.descend(sample, max_iter, Steps(), enough=ROUGH)
    return newton.point


def _lower(
    task: ScoreTask[StateT], kinks: Kinks, point: Array, at: Evaluated, target: Array, hessian: bool
) -> tuple[Array, Evaluated] | None:
    """The first of the target, half the way, a quarter, ... that lowers the objective enough; None where none does."""
    length = 1.0
    value, fall = at.value + kinks.size(point), kinks.fall(at.gradient, point, target)
    while length >= SHORTEST:
        trial = target if length == 1.0 else point + length * (target - point)
        if np.array_equal(trial, point):  # the step is below the rounding of the point
            return None
        tried = task.evaluate(trial, hessian)
        if tried.value + kinks.size(trial) <= value - ARMIJO * length * fall + SURE * abs(value):
            return trial, tried
        length /= 2
    return None
