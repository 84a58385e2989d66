"""Losses of scores with an L1 penalty or bounds: one alpha, or many with every answer the start of the next.

Many columns: the loss is minimised on a working set of them, to which those come whose slope exceeds their penalty.
"""

from __future__ import annotations

import numpy as np

from certifit.data.columns import Array
from certifit.runtime import one_blas_thread
from certifit.solvers.chord import FLOOR, Trace
from certifit.solvers.coordinate import INNER_SHARE, ElasticPath
from certifit.solvers.prox_newton import ProxNewton, sampled_start
from certifit.solvers.run import Run
from certifit.solvers.sparse_newton import SparseNewton
from certifit.tasks.generalised import GeneralisedLinear
from certifit.tasks.normal_equations import Weights
from certifit.tasks.quadratic import Kinks
from certifit.tasks.score_columns import SomeColumns

WIDE = 400  # columns above which a working set of them is fitted
FEWEST = 100  # columns that a working set takes in at once, at least
GROWTH = 4  # times the columns with a weight: most that enter at once
MOST_GRAM = 500  # columns of a set whose Hessian is made; larger sets of sparse columns go by coordinate descent
SHARP = 1e-11  # of a penalty: what coordinate descent may leave of a slope
NEARLY = 1e-2  # slopes that exceed their penalty by less, relative: the next fit goes to the floor
COARSE = 1e-6  # relative decrement that ends a fit to a working set before
SLACK = 1e-13  # relative: slopes that exceed their penalty by less are rounding


@one_blas_thread
def solve(task: GeneralisedLinear, max_iter: int, step_tol: float = 0.0) -> Run[Weights]:
    """The minimiser of a task with an L1 penalty or bounds, to the rounding floor."""
    trace = Trace()
    if is_wide(task):
        point = WorkingSet(task, task.start()).descend(task, max_iter, trace, FLOOR)
    else:
        newton = ProxNewton(sampled_start(task, max_iter))
        newton.descend(task, max_iter, trace, step_tol)
        point = newton.point
    return Run(to_state(task, point), trace.rows)


@one_blas_thread
def solve_path(task: GeneralisedLinear, alphas: Array, tol: float, max_iter: int) -> ElasticPath:
    """Solutions along alphas, any order."""
    order = np.argsort(-alphas, kind="stable")
    enough = max(INNER_SHARE * tol, FLOOR)
    wide = WorkingSet(task, task.start()) if is_wide(task) else None
    newton = ProxNewton(task.start())
    states, left, counts = [], [], []
    for alpha in alphas[order]:
        at, trace = task.at_strength(float(alpha)), Trace()
        if wide is not None:
            point = wide.descend(at, max_iter, trace, enough)
            left.append(wide.left)
        else:
            newton.descend(at, max_iter, trace, enough=enough)
            point = newton.point
            left.append(newton.left)
        states.append(to_state(at, point))
        counts.append(len(trace.rows))
    back = np.argsort(order)
    coef = np.array([state.coef for state in states]).reshape(len(alphas), task.source.n_features)
    intercept = np.array([state.intercept for state in states])
    names = tuple(task.source.names)
    return ElasticPath(alphas, coef[back], intercept[back], np.array(left)[back], names, np.array(counts)[back])


def alpha_max(task: GeneralisedLinear) -> float:
    """The least alpha at which every penalised weight is zero; infinite without an L1 penalty."""
    s, free = task.strengths, np.flatnonzero(task.strengths.factors == 0)
    point = task.start()
    if len(free) or (task.fit_intercept and task.largest_offset > 0):
        newton = ProxNewton(np.append(point[free], point[-1]))
        newton.descend(SomeColumns(task).taken(free, 0.0), 100, Trace())
        point[free], point[-1] = newton.point[:-1], newton.point[-1]
    slopes = -task.at_strength(0.0).evaluate(point).gradient[:-1] / task.scaling.scale
    can_move = np.where(slopes > 0, s.upper, s.lower) != 0
    if not s.l1_ratio > 0:
        return np.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.abs(slopes) / (s.l1_ratio * s.factors * task.spreads)
    return float(np.max(needed, initial=0.0, where=can_move & (s.factors > 0)))


def to_state(task: GeneralisedLinear, point: Array) -> Weights:
    """In the user's units, within the bounds."""
    return task.strengths.within(task.to_state(point))


def is_wide(task: GeneralisedLinear) -> bool:
    """Whether columns are many, and a penalty leaves most of them out."""
    return task.size > WIDE and bool((task.penalty.l1 > 0).any())


class WorkingSet:
    """A point of all columns, and those that it is changed in."""

    def __init__(self, task: GeneralisedLinear, point: Array) -> None:
        self.point = point
        self.left = np.inf
        self._columns = SomeColumns(task)

    def descend(self, task: GeneralisedLinear, max_iter: int, trace: Trace, enough: float) -> Array:
        """Fits to growing sets of columns, until no slope of the others exceeds its penalty."""
        kinks = Kinks.of(task.penalty)
        chosen, nearly = None, False
        while len(trace.rows) < max_iter:
            outside = _excess(task.evaluate(self.point).gradient, self.point, kinks)[:-1]
            if chosen is not None:
                outside[chosen] = 0.0
                if nearly and not outside.any():
                    break
                nearly = nearly or bool((outside <= NEARLY * kinks.l1[:-1]).all())
            chosen = self._enlarged(outside, kinks) | (chosen if chosen is not None and nearly else False)
            self._fit(task, np.flatnonzero(chosen), max_iter, trace, enough if nearly else max(enough, COARSE))
        return self.point

    def _enlarged(self, outside: Array, kinks: Kinks) -> Array:
        """The columns with a weight or without an l1 penalty, and those whose slopes exceed it most."""
        kept = (self.point[:-1] != 0) | (kinks.l1[:-1] == 0)
        most = FEWEST if not kept.any() else max(FEWEST, GROWTH * int(kept.sum()))
        entering = np.flatnonzero(outside)
        if len(entering) > most:
            entering = entering[np.argpartition(-outside[entering], most)[:most]]
        kept[entering] = True
        return np.asarray(kept)

    def _fit(self, task: GeneralisedLinear, columns: Array, max_iter: int, trace: Trace, enough: float) -> None:
        sparse = self._columns.sparse(columns, task.strengths.alpha) if len(columns) > MOST_GRAM else None
        if sparse is not None:
            found = SparseNewton(*sparse, np.append(self.point[columns], self.point[-1]))
            found.descend(max_iter, trace, max(enough**0.5, SHARP))
            self._put(columns, found.point)
            return
        small = self._columns.taken(columns, task.strengths.alpha)
        newton = ProxNewton(np.append(self.point[columns], self.point[-1]))
        newton.descend(small, max_iter, trace, enough=enough)
        self.left = newton.left
        self._put(columns, newton.point)

    def _put(self, columns: Array, own: Array) -> None:
        self.point = self.point.copy()
        self.point[columns], self.point[-1] = own[:-1], own[-1]


def _excess(gradient: Array, point: Array, kinks: Kinks) -> Array:
    """How much the slope of a column without a weight exceeds its penalty, the way its bounds allow."""
    end = np.where(gradient < 0, kinks.upper, kinks.lower)
    excess = np.abs(gradient) - kinks.l1 * (1 + SLACK)
    return np.where((point == 0) & (end != 0) & (excess > 0), excess, 0.0)
