"""Multipliers of a linear machine with the hinge: coordinate descent, an interior point method, and a last step.

Coordinate descent moves one multiplier after the other towards its best, in a random order (the core's `dual_descent`).
The interior point method is that of `svm/interior.py`. Small machines end at rounding: the multipliers between their
bounds solve a linear system (`svm/polish.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Array
from certifit.minimise.steps import time_is_up
from certifit.models.linear_svm.task import LinearTask, best_intercept
from certifit.models.svm.interior import NEAR, CentralPath, Products, rounded
from certifit.models.svm.polish import MOST_FREE, polished
from certifit.models.svm.task import Machine
from certifit.runtime import core

FIRST_EPOCHS = {"dense": 20, "sparse": 200}  # of coordinate descent, before an interior point method is tried
MOST_EPOCHS = 2000
MOST_STEPS = 100  # of an interior point method
MOST_SIDE = 1000  # of its linear system
MOST_WORK = 5e10  # rows times the square of that
SMALL = 2000  # rows of machines that are solved to rounding
ENOUGH = 0.5  # of tol
CLOSE = 1e-3  # of tol, for an interior point method
SHARPENED = 3  # linear systems at the end
ROUND = 4  # visits per row between two looks at the gap
MOST_VISITS = 1 << 21  # of rows in one call, which `max_time` waits for

Told = Callable[[float, float], bool]  # objective, dual: True to stop


def _nobody(objective: float, dual: float) -> bool:
    return time_is_up()


@dataclass(frozen=True)
class Point:
    """Multipliers, their weights and the best intercept; objective and dual in units of alpha."""

    a: Array
    w: Array
    b: float
    objective: float
    dual: float

    @property
    def gap(self) -> float:
        """Relative to the objective."""
        return (self.objective - self.dual) / self.objective if self.objective > 0 else 0.0


def feasible(machine: Machine, a: Array) -> Array:
    """Multipliers that meet the intercept's constraint: those of the heavier class are scaled."""
    if not machine.has_intercept:
        return a
    above, below = (float(a[machine.sign == side].sum()) for side in (1.0, -1.0))
    least = min(above, below)
    return a * np.where(machine.sign > 0, least / above if above else 0.0, least / below if below else 0.0)


def dual_of(machine: Machine, a: Array, w: Array) -> float:
    """The lower bound of feasible multipliers, w = sum_i y_i a_i x_i."""
    return float(a.sum()) - float((machine.slack.met(machine.bound, a) * a).sum()) / 2 - float(w @ w) / 2


def point_of(task: LinearTask, machine: Machine, a: Array) -> Point:
    """What multipliers give."""
    a = feasible(machine, a)
    w = task.sums(machine.sign * a)[0][:-1]
    return with_weights(task, machine, Point(a, w, 0.0, np.inf, dual_of(machine, a, w)), w)


def provable(task: LinearTask, machine: Machine, point: Point) -> Point:
    """A point of squared slacks with the dual of the multipliers that its weights name, where these prove it."""
    if not task.names_multipliers:
        return point
    v = 1 - machine.sign * (task.scores(point.w) + point.b)
    return replace(point, dual=point_of(task, machine, machine.slack.slope(machine.bound, v)).dual)


def best_multipliers(task: LinearTask, p: int, tolerance: float) -> tuple[Array, float]:
    """Multipliers of a machine and their gap, well below the tolerance where that can be reached, in units of alpha."""
    best = solve_dual(task, p, "auto", tolerance, MOST_EPOCHS)
    return best.a, max(best.objective - best.dual, 0.0)


def has_small_system(task: LinearTask) -> bool:
    """Whether an interior point method is worth its linear systems."""
    side = min(task.n_columns, task.n_points)
    return side <= MOST_SIDE and task.n_points * float(side) ** 2 <= MOST_WORK


def solve_dual(task: LinearTask, p: int, method: str, tolerance: float, most: int, told: Told = _nobody) -> Point:
    """The optimum of a machine. most: epochs or steps."""
    machine = task.machines[p]
    can_step = not machine.slack.is_squared and has_small_system(task)
    is_small = task.n_points <= SMALL
    if method == "interior-point" or (method == "auto" and can_step and is_small):
        best = interior_point(task, machine, CLOSE * tolerance, min(most, MOST_STEPS), told)
        if method == "auto" and not best.gap <= tolerance / 2:
            best = better_of(best, descend(task, machine, ENOUGH * tolerance, most, told))
    else:
        kind = "sparse" if sp.issparse(task.X) else "dense"
        first = min(most, FIRST_EPOCHS[kind]) if method == "auto" and can_step else most
        best = descend(task, machine, ENOUGH * tolerance, first, told)
        is_close = best.gap <= tolerance / 2
        if is_close and not is_small:  # multipliers of coordinate descent are on their bounds
            return best
        if method == "auto" and can_step and not is_close and most > first:
            best = better_of(best, interior_point(task, machine, CLOSE * tolerance, MOST_STEPS, told))
    return best if machine.slack.is_squared else sharpened(task, machine, best, CLOSE * tolerance)


def descend(task: LinearTask, machine: Machine, enough: float, most: int, told: Told) -> Point:
    """Coordinate descent from multipliers of 0. most: visits per row, in passes over those that do not rest.

    The gap is that of the best multipliers and the best weights so far, which need not belong together. The mean of
    the weights of a round often is better than the last: multipliers on their way swing about their ends.
    """
    at = _Descent(task, machine)
    best = point_of(task, machine, at.a)
    n, visited = task.n_points, 0
    while visited < most * n:
        visited += at.go(min(ROUND * n, most * n - visited))
        point = point_of(task, machine, at.a)
        # Summed anew: what rounding took from many steps. An intercept's point has other multipliers.
        at.w = task.sums(at.sign * at.a)[0][:-1] if machine.has_intercept else point.w
        if task.names_multipliers:
            point = provable(task, machine, point)
            best = point if point.gap < best.gap else best
        else:
            best = better_of(best, better_of(point, with_weights(task, machine, point, at.mean)))
        is_told = told(alpha_units(task, best.objective), alpha_units(task, best.dual))
        if is_told or best.gap <= enough or at.worst == 0:
            break
    return best


def first_weights(task: LinearTask, machine: Machine) -> Array:
    """The mean weights of one pass over the rows: a start for other methods."""
    at = _Descent(task, machine)
    at.go(task.n_points)
    return np.asarray(at.mean)


class _Descent:
    """Multipliers on the way, their weights w, b = centre + ridge sum_i y_i a_i, and the passes that rows rest.

    mean, worst: the mean weights of the last round, and the largest violation that it met.
    """

    def __init__(self, task: LinearTask, machine: Machine) -> None:
        slack, bound, n = machine.slack, np.ascontiguousarray(machine.bound), task.n_points
        self.task, self.sign = task, np.ascontiguousarray(machine.sign)
        ridge = float(task.squares.mean()) if machine.has_intercept else 0.0
        self.parts = (self.sign, slack.most(bound), slack.diagonal(bound), task.squares, ridge)
        self.a, self.w, self.b = np.zeros(n), np.zeros(task.n_columns), 0.0
        self.rests = (np.ones(n, dtype=np.uint8), np.zeros(n, dtype=np.uint8))
        self.mean, self.worst, self.n_calls = self.w, np.inf, 0

    def go(self, n_visits: int) -> int:
        """One round of so many visits of single rows, or more to end a pass; how many there were."""
        visited, worst = 0, 0.0
        while visited < n_visits:
            state = (self.a, self.w, self.b, *self.rests, min(n_visits - visited, MOST_VISITS), self.n_calls)
            at, self.mean, met, n_met = core.dual_descent(self.task.rows, *self.parts, *state)
            self.a, self.w, self.b, *rests = at
            self.rests = (rests[0], rests[1])
            worst, visited, self.n_calls = max(worst, float(met)), visited + int(n_met), self.n_calls + 1
            if time_is_up():
                break
        self.worst = worst
        return visited


def with_weights(task: LinearTask, machine: Machine, point: Point, w: Array) -> Point:
    """The same multipliers beside other weights."""
    z = task.scores(w)
    b = best_intercept(machine, z)
    costs = float(machine.slack.cost(machine.bound, 1 - machine.sign * (z + b)).sum())
    return replace(point, w=w, b=b, objective=float(w @ w) / 2 + costs)


def better_of(one: Point, other: Point) -> Point:
    """The weights of the lower objective with the multipliers of the higher dual."""
    weights = other if other.objective < one.objective else one
    multipliers = other if other.dual > one.dual else one
    return replace(weights, a=multipliers.a, dual=multipliers.dual)


def alpha_units(task: LinearTask, value: float) -> float:
    """A value in units of alpha in those of the mean loss."""
    return task.alpha * value


def interior_point(task: LinearTask, machine: Machine, enough: float, most: int, told: Told) -> Point:
    """Steps along the central path of the hinge; its columns are as many as rows where there are fewer of these."""
    products = None if task.n_columns <= task.n_points else _among(task, np.arange(task.n_points))
    # Products beyond float64 have no eigenvalues.
    rows = task if products is None or not np.isfinite(products).all() else Products.of(products)
    path = CentralPath(rows, machine)
    best = point_of(task, machine, np.zeros_like(path.a))  # a start far from feasible has an objective without end
    for number in range(most):
        if not path.step():
            if number == 0:  # the start is all there is to tell
                told(alpha_units(task, best.objective), alpha_units(task, best.dual))
            break
        point = point_of(task, machine, path.a)
        if rows is task:  # rounded sums of multipliers are far from the weights where a column is large
            point = better_of(point, with_weights(task, machine, point, path.w[:-1]))
        is_better = point.gap < best.gap
        best = better_of(best, point)
        if told(alpha_units(task, best.objective), alpha_units(task, best.dual)) or best.gap <= enough:
            break
        if not is_better and path.is_at_end(best.objective):
            break
    return best


def sharpened(task: LinearTask, machine: Machine, start: Point, close: float) -> Point:
    """Multipliers on their bounds where they nearly are; those between by a linear system, where they are few.

    A gap up to `close` may grow.
    """
    every, point = np.arange(task.n_points), start
    for near in NEAR:
        a = rounded(machine, start.a, near)
        on_bounds = point_of(task, machine, a)
        point = on_bounds if point is start and on_bounds.gap <= max(close, start.gap) else point
        for _ in range(SHARPENED):
            if not 0 < int(((a > 0) & (a < machine.bound)).sum()) <= MOST_FREE:
                break
            f = task.scores(task.sums(machine.sign * a)[0][:-1])
            a = polished(machine, every, a, f, lambda rows: _among(task, rows))
            better = better_of(point, point_of(task, machine, a))
            if not better.gap < point.gap:
                break
            point = better
    return point


def _among(task: LinearTask, rows: Array) -> Array:
    """Products of some rows with each other."""
    X = task.X[rows]
    return np.asarray((X @ X.T).toarray() if isinstance(X, sp.csr_array) else X @ X.T)
