"""Newton's method where a Hessian would be too large: its steps are solved for by conjugate gradients.

A step solves H s = g with the diagonal of H as preconditioner, as exactly as the distance to the minimum deserves:
|g - H s| <= eta |g|, eta = min(1/4, (|g| / |g_0|)^(1/2)), in the norm of the preconditioner. Products with H are passes
over the rows; the curvatures of the rows are kept, so no loss is evaluated in them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.minimise.problem import Run
from certifit.minimise.steps import Steps
from certifit.models.glm.chord import ARMIJO, NOISE, SHORTEST, SURE
from certifit.models.glm.task import GlmTask
from certifit.models.least_squares.normal_equations import Weights
from certifit.runtime import one_blas_thread
from certifit.statistics.row_curvature import LossAt, diagonal, product, row_sums

LARGEST_ETA = 0.25
MOST_PRODUCTS = 200  # of one step
STALE = 0.9  # an objective that fell to this share of what it was renews the preconditioner
INTERCEPT_STEPS = 5
INTERCEPT_FLOOR = 1e-14  # a smaller step is rounding
SHARE = 0.5  # of the tolerance that is asked of the estimated gap: the certificate adds roundings


@dataclass(frozen=True)
class Curved:
    """The objective at a point, with the curvatures of the rows."""

    value: float
    gradient: Array
    curvatures: Array


class WideProblem:
    """A smooth generalised linear model of very many columns: value, gradient, products with the Hessian."""

    def __init__(self, task: GlmTask) -> None:
        self.task = task
        self.free = np.ones(task.size)  # 0 where nothing moves
        self.free[-1] = float(task.fit_intercept)

    def evaluate(self, point: Array) -> Curved:
        """One pass."""
        task = self.task
        sums = row_sums(task.source, LossAt(task.loss, task.scaling, point))
        with np.errstate(over="ignore", invalid="ignore"):
            pull = task.l2 * point
            gradient = (sums.gradient / task.sum_weight + pull) * self.free
            value = sums.value / task.sum_weight + float(pull @ point) / 2
        return Curved(value, gradient, sums.curvatures)

    def product(self, at: Curved, direction: Array) -> Array:
        """The Hessian times a direction: one pass."""
        task = self.task
        data = product(task.source, task.scaling, at.curvatures, direction) / task.sum_weight
        return np.asarray((data + task.l2 * direction) * self.free)

    def diagonal(self, at: Curved) -> Array:
        """Of the Hessian; 1 where nothing curves."""
        task = self.task
        found = (diagonal(task.source, task.scaling, at.curvatures) / task.sum_weight + task.l2) * self.free
        return np.where(found > 0, found, 1.0)

    def gap(self, at: Curved, units: Array) -> float:
        """sum_j g_j^2 / (2 l2_j): the duality gap once the intercept is best; by the diagonal where l2 is 0."""
        strength = np.where(self.task.l2 > 0, self.task.l2, units)
        with np.errstate(over="ignore"):
            return float(np.sum(np.square(at.gradient) / strength)) / 2


@one_blas_thread
def solve(task: GlmTask, tol: float, max_iter: int, step_tol: float = 0.0) -> Run[Weights]:
    """The minimiser of a smooth task, until the gap is within the tolerance."""
    problem, steps = WideProblem(task), Steps()
    point = task.start()
    at = problem.evaluate(point)
    first, units, known = np.inf, np.ones(task.size), np.inf
    while len(steps.rows) < max_iter and not steps.is_over:
        if not at.value > STALE * known:
            units, known = problem.diagonal(at), at.value
        size = float(np.sqrt(np.sum(np.square(at.gradient) / units)))
        first = size if first == np.inf else first
        gap = problem.gap(at, units)
        if gap <= SHARE * tol * at.value or size**2 <= NOISE * at.value:
            steps.add(at.value, gap, gradient_norm=float(np.linalg.norm(at.gradient)), step=0.0)
            break
        step = _newton_step(problem, at, units, min(LARGEST_ETA, float(np.sqrt(size / first))) * size)
        length = float(np.linalg.norm(step))
        steps.add(at.value, gap, gradient_norm=float(np.linalg.norm(at.gradient)), step=length)
        found = _lower(problem, point, at, step)
        if found is None:
            break
        length = float(np.linalg.norm(found[0] - point))
        point, at = found
        if length < step_tol:
            break
    return Run(task.to_state(_best_intercept(problem, point, at)), steps.rows, steps.reason)


def _best_intercept(problem: WideProblem, point: Array, at: Curved) -> Array:
    """The point with the intercept at its own floor: a proof by duality is as good as the slopes' sum is near 0."""
    for _ in range(INTERCEPT_STEPS if problem.task.fit_intercept else 0):
        curvature = float(at.curvatures.sum()) / problem.task.sum_weight
        if not curvature > 0 or abs(at.gradient[-1]) <= INTERCEPT_FLOOR * curvature:
            break
        trial = point.copy()
        trial[-1] -= at.gradient[-1] / curvature
        found = problem.evaluate(trial)
        if not abs(found.gradient[-1]) < abs(at.gradient[-1]):
            break
        point, at = trial, found
    return point


def _newton_step(problem: WideProblem, at: Curved, units: Array, enough: float) -> Array:
    """Conjugate gradients on H s = g from s = 0, until the residual is enough in the norm of the preconditioner."""
    step, rest = np.zeros_like(at.gradient), at.gradient.copy()
    ready = rest / units
    way, size = ready.copy(), float(rest @ ready)
    for _ in range(MOST_PRODUCTS):
        along = problem.product(at, way)
        curvature = float(way @ along)
        if not curvature > 0:  # no curvature along it: rounding
            break
        step += size / curvature * way
        rest -= size / curvature * along
        ready = rest / units
        before, size = size, float(rest @ ready)
        if size <= enough**2:
            break
        way = ready + size / before * way
    return step if step.any() else at.gradient / units


def _lower(problem: WideProblem, point: Array, at: Curved, step: Array) -> tuple[Array, Curved] | None:
    """The first of point - step, point - step/2, ... that lowers the objective enough; None where none does."""
    decrement, length = float(at.gradient @ step), 1.0
    while length >= SHORTEST:
        trial = point - length * step
        found = problem.evaluate(trial)
        if found.value <= at.value - ARMIJO * length * decrement + SURE * abs(at.value):
            return trial, found
        length /= 2
    return None
