"""Newton's method for losses of scores, at the price of few Hessians.

A fit to some rows gives a start; one Hessian of all rows there; then chord steps, whose passes need the gradient alone:

    point -= H^-1 gradient,   H renewed when the decrement gradient' H^-1 gradient no longer shrinks fast

What the passes tell of the curvature corrects H between renewals, as L-BFGS does.

A step that does not lower the objective enough is halved (Armijo), so that the method descends from any start.

Newton's method where a Hessian would be too large: its steps are solved for by conjugate gradients.

A step solves H s = g with the diagonal of H as preconditioner, as exactly as the distance to the minimum deserves:
|g - H s| <= eta |g|, eta = min(1/4, (|g| / |g_0|)^(1/2)), in the norm of the preconditioner. Products with H are passes
over the rows; the curvatures of the rows are kept, so no loss is evaluated in them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np

from certifit.data.columns import Array
from certifit.data.picked import rows_where
from certifit.data.source import Block, Memory, Source, join
from certifit.mathematics.penalties import NO_CURVATURE
from certifit.minimise.problem import Run
from certifit.minimise.steps import Steps, unreported
from certifit.models.glm.task import Evaluated, GlmTask, ScoreTask, StateT
from certifit.models.least_squares.normal_equations import Weights
from certifit.runtime import one_blas_thread
from certifit.statistics.factor import Curvature
from certifit.statistics.residual import EXACT_FIT
from certifit.statistics.row_curvature import LossAt, diagonal, product, row_sums

SHARE = 20  # every so many-th row, at most, is in the sample that gives the start
LEAST_SHARE = 4  # below it the sample is not worth its while
FEWEST = 40  # rows per column that the sample must have
SLOW = 0.05  # a decrement (a square) that shrinks by less renews the Hessian
RENEWED = 4  # steps, at most, that a new Hessian takes to the end; it costs one more pass per so many columns:
COLUMNS_OF_A_PASS = 16
FLOOR = 1e-24  # relative to the objective: a decrement below it is rounding
NOISE = 1e-18  # relative to the objective: a decrement that no longer shrinks is rounding
SURE = 1e-12  # relative to the objective: a smaller change cannot be seen in its value
ARMIJO = 1e-4
SHORTEST = 2.0**-40  # of a step
ROUGH = 1e-5  # relative decrement that ends the fit to the sample
FAR = 1e-2  # relative to the objective at the start: a larger decrement is that of a start far off
LOST = 0.1  # relative to the objective: a start with a larger decrement may be worse than none
RUNAWAY = 12  # Newton steps, one after the other, whose decrements shrink as slowly as these: weights grow without end
PATIENT = 60  # the same of several scores where a penalty ends that growth, however small it is
RUNS = 0.2  # a decrement that shrinks by less may be that of such weights: by e^-1 where a loss falls off as e^-z does


class Descends(Protocol):
    """A function to descend: where it starts, and its value, gradient and Hessian at a point."""

    @property
    def null_value(self) -> float:
        """The value at the start."""

    def start(self) -> Array:
        """The point to fall back on."""

    def evaluate(self, point: Array, hessian: bool = False) -> Evaluated:
        """At a point; the Hessian where it is asked for."""


class Chord:
    """The inverse of a first Hessian, corrected by the changes of the gradient seen since (the two loops of L-BFGS).

    most: changes that are remembered. is_rough: the inverse knows directions, and the last change tells how long a
    step is.
    """

    def __init__(self, inverse: Callable[[Array], Array], most: int | None = None, is_rough: bool = False) -> None:
        self._inverse, self._is_rough, self._length = inverse, is_rough, 1.0
        self._seen: deque[tuple[Array, Array, float]] = deque(maxlen=most)

    def learn(self, move: Array, change: Array) -> None:
        """A move of the point and what it did to the gradient."""
        curvature = float(move @ change)
        if curvature > 0:
            self._seen.append((move, change, curvature))
            if self._is_rough:
                self._length = curvature / float(change @ self._inverse(change))

    def solve(self, gradient: Array) -> Array:
        """The step."""
        rest, shares = gradient.copy(), []
        for move, change, curvature in reversed(self._seen):
            shares.append(float(move @ rest) / curvature)
            rest -= shares[-1] * change
        step = self._length * self._inverse(rest)
        for (move, change, curvature), share in zip(self._seen, reversed(shares), strict=True):
            step += (share - float(change @ step) / curvature) * move
        return step


def corrected(matrix: Array, move: Array, change: Array) -> Array:
    """A Hessian that also explains what a move did to the gradient (BFGS); entries without curvature keep none."""
    before = matrix @ move
    product, bent = float(move @ change), float(move @ before)
    if not (product > 0 and bent > 0):
        return matrix
    known = np.where(np.diagonal(matrix) > 0, change, 0.0)
    return np.asarray(matrix + np.outer(known, known) / product - np.outer(before, before) / bent)


def solve(task: GlmTask, max_iter: int, step_tol: float = 0.0) -> Run[Weights]:
    """The minimiser of a smooth task, to the rounding floor."""
    with unreported():
        start = sampled_start(task, max_iter)
    steps = Steps()
    point = descend(task, start, max_iter, steps, step_tol)
    return Run(task.to_state(point), steps.rows, steps.reason)


def _why_no_start(task: Descends, point: Array) -> str:
    """Why the objective is infinite at the start, in words."""
    if not np.isfinite(point).all():
        return (
            "The targets are equal in all rows that are fitted, such as those of a fold, and the intercept that suits "
            "them best is infinite. Use fewer folds, or more rows with other targets."
        )
    if isinstance(task, GlmTask) and task.source.view.has_offset:
        return (
            "The objective exceeds the largest float64 where the fit starts: an offset, an exposure or a target is too "
            "large or too small. Look for rows with such numbers."
        )
    return (
        "The objective exceeds the largest float64 where the fit starts: the targets are too large. Divide them by a "
        "power of ten."
    )


def descend(
    task: Descends,
    point: Array,
    max_iter: int,
    steps: Steps,
    step_tol: float = 0.0,
    enough: float = FLOOR,
    runaway: int = RUNAWAY,
) -> Array:
    """Chord steps from a point until the decrement is rounding, or `enough` relative to the objective.

    runaway: so many slow Newton steps, one after the other, end it.
    """
    at = task.evaluate(point, hessian=True)
    if not np.isfinite(at.value):
        point = task.start()
        at = task.evaluate(point, hessian=True)
        if not np.isfinite(at.value):
            raise ValueError(_why_no_start(task, point))
    last, first = np.inf, at.value  # the decrement of the step before; the objective at the start
    slow, falls = 0, True
    while len(steps.rows) < max_iter and not steps.reason:
        if at.hessian is not None:
            chord = Chord(Curvature(_held(task, at.hessian)).solve)
        step = chord.solve(at.gradient)
        decrement = max(float(at.gradient @ step), 0.0)
        steps.add(at.value, decrement / 2, gradient_norm=length(at.gradient), step=length(step))
        rate = decrement / last if last > 0 else 1.0
        is_slow = rate > SLOW or (at.hessian is None and _is_long(decrement, rate, enough * at.value, len(point)))
        slow = slow + 1 if at.hessian is not None and rate > RUNS and decrement <= FAR * first else 0
        if last == np.inf and is_lost(task, point, at.value, decrement):
            return descend(task, task.start(), max_iter, steps, step_tol, enough, runaway)
        # Where neither the objective nor the decrement of a Newton step falls, both are rounding.
        is_rounding = (is_slow and decrement <= NOISE * at.value) or (rate >= 1 and not falls)
        if slow >= runaway or (is_rounding and at.hessian is not None):
            return point
        if decrement * (min(rate, 1.0) if last < np.inf else 1.0) <= enough * at.value:
            return np.asarray(point - step)  # what is left after it is rounding
        lower = first_lower(task, point, at, step, decrement, hessian=is_slow)
        if lower is None:
            return point  # no step descends: the floor of the objective
        moved = length(lower[0] - point)
        chord.learn(lower[0] - point, lower[1].gradient - at.gradient)
        falls = lower[1].value < at.value
        point, at = lower
        last = decrement
        if moved < step_tol:
            return point
    return point


def _is_long(decrement: float, rate: float, floor: float, size: int) -> bool:
    """Whether steps at this rate to the floor take more passes than a new Hessian and the steps with it."""
    if not (0 < rate < 1 and decrement > floor > 0):
        return False
    return math.log(floor / decrement) / math.log(rate) > RENEWED + size / COLUMNS_OF_A_PASS


def patience(task: ScoreTask[StateT]) -> int:
    """The number of slow Newton steps, one after the other, that end a fit."""
    is_held = not task.is_smooth or bool((task.l2[:-1] > 0).all())
    return PATIENT if task.n_scores > 1 and is_held else RUNAWAY


def length(v: Array) -> float:
    """Of a vector in scaled units."""
    return math.sqrt(v @ v)


def _held(task: Descends, hessian: Array) -> Array:
    """A Hessian whose columns that do not vary, but for rounding, have a large entry: steps would follow that rounding.

    A penalty too weak to hold them is all that they have else.
    """
    if not isinstance(task, GlmTask):
        return hessian
    shift, curved = task.scaling.shift, hessian.diagonal() - task.l2
    still = np.flatnonzero((curved[:-1] <= NO_CURVATURE * curved[-1] * shift**2) & (task.l2[:-1] > 0))
    if not len(still):
        return hessian
    hessian = hessian.copy()
    hessian[still], hessian[:, still] = 0.0, 0.0
    hessian[still, still] = np.maximum(hessian[-1, -1] * shift[still] ** 2, task.l2[still])
    return hessian


def is_lost(task: Descends, point: Array, value: float, decrement: float) -> bool:
    """Whether a start is worse than none: a sample without an event in some category sends that weight far off."""
    if decrement <= LOST * value or np.array_equal(point, task.start()):
        return False
    return value > task.null_value


def first_lower(
    task: Descends, point: Array, at: Evaluated, step: Array, decrement: float, hessian: bool = False
) -> tuple[Array, Evaluated] | None:
    """The first of point - step, point - step/2, ... that lowers the objective enough; None where none does."""
    length = 1.0
    while length >= SHORTEST:
        trial = point - length * step
        if np.array_equal(trial, point):  # the step is below the rounding of the point
            return None
        tried = task.evaluate(trial, hessian)
        if tried.value <= at.value - ARMIJO * length * decrement + SURE * abs(at.value):
            return trial, tried
        # Near an exact fit values are roundings of the terms that cancel in them.
        if decrement <= EXACT_FIT * task.null_value and tried.value <= at.value + EXACT_FIT * task.null_value:
            return trial, tried
        length /= 2
    return None


def sampled_start(task: GlmTask, max_iter: int) -> Array:
    """The fit to every so many-th row, where rows are many; else no weights."""
    sample = sampled(task)
    if sample is None:
        return task.start()
    return descend(sample, sample.start(), max_iter, Steps(), enough=ROUGH)


def sampled(task: GlmTask) -> GlmTask | None:
    """The task on every so many-th row; None where rows are few, or those tell too little."""
    stride = min(SHARE, task.targets.n_rows // (FEWEST * task.size))
    if stride < LEAST_SHARE:
        return None
    rows = sampled_rows(task.source, stride)
    sample = GlmTask(rows, task.loss, task.strengths, task.fit_intercept, task.standardize)
    sample.scaling = task.scaling
    return sample if sample.has_target() else None


def sampled_rows(source: Source, stride: int) -> Memory:
    """The rows whose numbers are multiples of the stride, in memory."""
    return _joined(list(source.map(partial(_every, stride=stride))), source)


def _every(run: Block, stride: int) -> Block:
    """The rows whose numbers are multiples of the stride."""
    first = -run.first_row % stride
    if isinstance(run.X, np.ndarray):
        X = run.X[first::stride]
    else:
        X = rows_where(run.X, np.arange(run.n_rows) % stride == first)
    parts = (None if part is None else np.ascontiguousarray(part[first::stride]) for part in _beside(run))
    y, weight, offset = parts
    return replace(run, X=X, y=y, weight=weight, offset=offset, group=None)


def _beside(run: Block) -> tuple[Array | None, ...]:
    return run.y, run.weight, run.offset


def _joined(parts: list[Block], source: Source) -> Memory:
    return Memory.of(join(parts), source.names)


LARGEST_ETA = 0.25
MOST_PRODUCTS = 200  # of one step
STALE = 0.9  # an objective that fell to this share of what it was renews the preconditioner
INTERCEPT_STEPS = 5
INTERCEPT_FLOOR = 1e-14  # a smaller step is rounding
GAP_SHARE = 0.5  # of the tolerance that is asked of the estimated gap: the certificate adds roundings


@dataclass(frozen=True)
class Curved:
    """The objective at a point, with what products with its Hessian need: the curvatures of the rows, or the point."""

    value: float
    gradient: Array
    curvatures: Array


class HasProducts(Protocol):
    """A function of very many weights: value, gradient, and products with the Hessian instead of the Hessian."""

    def start(self) -> Array:
        """Where the steps begin."""

    def evaluate(self, point: Array) -> Curved:
        """One pass."""

    def product(self, at: Curved, direction: Array) -> Array:
        """The Hessian times a direction: one pass."""

    def diagonal(self, at: Curved) -> Array:
        """Of the Hessian, about; 1 where nothing curves."""

    def gap(self, at: Curved, units: Array) -> float:
        """About how far the objective is above its smallest value; units: the diagonal."""

    def finished(self, point: Array, at: Curved) -> Array:
        """The last point, made ready for a proof."""


class WideProblem:
    """A smooth generalised linear model of very many columns: value, gradient, products with the Hessian."""

    def __init__(self, task: GlmTask) -> None:
        self.task = task
        self.free = np.ones(task.size)  # 0 where nothing moves
        self.free[-1] = float(task.fit_intercept)

    def start(self) -> Array:
        """No weights."""
        return self.task.start()

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
        entries = (diagonal(task.source, task.scaling, at.curvatures) / task.sum_weight + task.l2) * self.free
        return np.where(entries > 0, entries, 1.0)

    def gap(self, at: Curved, units: Array) -> float:
        """sum_j g_j^2 / (2 l2_j): the duality gap once the intercept is best; by the diagonal where l2 is 0."""
        strength = np.where(self.task.l2 > 0, self.task.l2, units)
        with np.errstate(over="ignore"):
            return float(np.sum(np.square(at.gradient) / strength)) / 2

    def finished(self, point: Array, at: Curved) -> Array:
        """With the intercept at its own floor: a proof by duality is as good as the slopes' sum is near 0."""
        for _ in range(INTERCEPT_STEPS if self.task.fit_intercept else 0):
            curvature = float(at.curvatures.sum()) / self.task.sum_weight
            if not curvature > 0 or abs(at.gradient[-1]) <= INTERCEPT_FLOOR * curvature:
                break
            trial = point.copy()
            trial[-1] -= at.gradient[-1] / curvature
            tried = self.evaluate(trial)
            if not abs(tried.gradient[-1]) < abs(at.gradient[-1]):
                break
            point, at = trial, tried
        return point


@one_blas_thread
def solve_by_products(task: GlmTask, tol: float, max_iter: int, step_tol: float = 0.0) -> Run[Weights]:
    """The minimiser of a smooth task, until the gap is within the tolerance."""
    steps = Steps()
    point = descend_by_products(WideProblem(task), tol, max_iter, steps, step_tol)
    return Run(task.to_state(point), steps.rows, steps.reason)


def descend_by_products(
    problem: HasProducts, tol: float, max_iter: int, steps: Steps, step_tol: float = 0.0, start: Array | None = None
) -> Array:
    """Newton's method whose steps are found by conjugate gradients, until the gap is within the tolerance."""
    point = problem.start() if start is None else start
    at = problem.evaluate(point)
    first, units, known = np.inf, np.ones(len(point)), np.inf
    while len(steps.rows) < max_iter and not steps.is_over:
        if not at.value > STALE * known:
            units, known = problem.diagonal(at), at.value
        size = float(np.sqrt(np.sum(np.square(at.gradient) / units)))
        first = size if first == np.inf else first
        gap = problem.gap(at, units)
        if gap <= GAP_SHARE * tol * at.value or size**2 <= NOISE * at.value:
            steps.add(at.value, gap, gradient_norm=float(np.linalg.norm(at.gradient)), step=0.0)
            break
        step = _newton_step(problem, at, units, min(LARGEST_ETA, float(np.sqrt(size / first))) * size)
        length = float(np.linalg.norm(step))
        steps.add(at.value, gap, gradient_norm=float(np.linalg.norm(at.gradient)), step=length)
        lower = _lower_by_products(problem, point, at, step)
        if lower is None:
            break
        length = float(np.linalg.norm(lower[0] - point))
        point, at = lower
        if length < step_tol:
            break
    return problem.finished(point, at)


def _newton_step(problem: HasProducts, at: Curved, units: Array, enough: float) -> Array:
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


def _lower_by_products(problem: HasProducts, point: Array, at: Curved, step: Array) -> tuple[Array, Curved] | None:
    """The first of point - step, point - step/2, ... that lowers the objective enough; None where none does."""
    decrement, length = float(at.gradient @ step), 1.0
    while length >= SHORTEST:
        trial = point - length * step
        tried = problem.evaluate(trial)
        if tried.value <= at.value - ARMIJO * length * decrement + SURE * abs(at.value):
            return trial, tried
        length /= 2
    return None
