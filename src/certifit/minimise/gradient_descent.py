"""Gradient descent: x_(k+1) = x_k - step factor(k) gradient(x_k).

factor(k) is the schedule: the learning rate of iteration k = 1, 2, 3, ... as a multiple of the first step.

The largest and the smallest curvature at a point: the ends of the Hessian's spectrum, from products with it alone.

Lanczos: the Hessian seen in the space of v, H v, H^2 v, ... is a small tridiagonal matrix. Its end eigenvalues reach
those of the Hessian long before power iteration does, and are exact when the space is full.

Conjugate gradient for any smooth function; on a quadratic of d unknowns it ends in at most d steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from itertools import combinations
from typing import ClassVar

import numpy as np
from scipy.linalg import eigh_tridiagonal

from certifit.data.columns import Array
from certifit.minimise.line_search import first_length, search
from certifit.minimise.problem import Minimised, Point, Problem, Record, Stop, Walk, difference_product, norm

MOST_PRODUCTS = 300
EPS = float(np.finfo(float).eps)
SHOWN = 10  # printed digits of the largest stable step
ACCURACY = 1e-10  # relative to the largest curvature in size


def end_curvatures(problem: Problem, x: Array) -> tuple[float, float]:
    """(smallest, largest) eigenvalue of the Hessian at x; NaN where a product is not finite."""
    ends = _ends(problem, x)
    return ends.smallest, ends.largest


def largest_stable_step(problem: Problem, x: Array) -> float:
    """2 / largest curvature at x: gradient descent with a longer step moves away from a minimum there; inf if flat.

    Never above it: the curvature is taken at the upper end of what its error allows, the step cut to SHOWN digits.
    """
    problem = getattr(problem, "steepest", problem)
    ends = _ends(problem, x)
    if np.isnan(ends.largest):
        return np.nan
    if ends.largest <= 0:
        return np.inf
    size = max(abs(ends.smallest), ends.largest)
    doubt = ends.off + _product_error(problem, x, ends.direction) + 4 * problem.size * EPS * size
    return rounded_down(2 / (ends.largest + doubt), SHOWN) if np.isfinite(doubt) else np.nan


def rounded_down(value: float, digits: int) -> float:
    """The largest number of so many decimal digits that is not above a value > 0."""
    exact = Decimal(value)
    unit = Decimal(1).scaleb(exact.adjusted() + 1 - digits)
    return float(exact.quantize(unit, rounding=ROUND_DOWN))


@dataclass(frozen=True)
class _Ends:
    """Of the spectrum; off: how far `largest` is from an eigenvalue at most, direction: its vector."""

    smallest: float
    largest: float
    off: float
    direction: Array


def _product_error(problem: Problem, x: Array, v: Array) -> float:
    """How uncertain the Hessian times v is: by differences as much as products with other steps differ; else 0."""
    try:
        problem.hessian(x)
    except NotImplementedError:
        products = [difference_product(problem, x, v, times) for times in (1.0, 2.0, 4.0, 8.0)]
        inside = [product for product in products if np.isfinite(product).all()]
        return 4 * max((norm(a - b) for a, b in combinations(inside, 2)), default=np.nan)
    return 0.0


def _ends(problem: Problem, x: Array) -> _Ends:
    d = problem.size
    v = np.random.default_rng(0).normal(size=d)
    basis = [v / norm(v)]
    diagonal: list[float] = []
    beside: list[float] = []
    for k in range(min(d, MOST_PRODUCTS)):
        w = problem.product(x, basis[k])
        if not np.isfinite(w).all():
            return _Ends(np.nan, np.nan, np.nan, basis[0])
        diagonal.append(float(w @ basis[k]))
        for _ in range(2):  # twice: once leaves rounding that grows
            span = np.array(basis)
            w = w - span.T @ (span @ w)
        values, vectors = eigh_tridiagonal(diagonal, beside)
        left, size = norm(w), float(np.max(np.abs(values)))
        # |H u - value u| = left times the last entry of the small eigenvector
        off = left * np.maximum(np.abs(vectors[-1, 0]), np.abs(vectors[-1, -1]))
        if off <= ACCURACY * size or left <= ACCURACY * size:
            break
        beside.append(left)
        basis.append(w / left)
    ritz = np.array(basis[: len(values)]).T @ vectors[:, -1]
    return _Ends(float(values[0]), float(values[-1]), float(left * np.abs(vectors[-1, -1])), ritz)


RISES = 25  # rises in a row after which the largest stable step is measured
CHECKED_AGAIN = 4  # factor on the number of rises until it is measured again
FLATTER = 0.5  # share of the slope along the direction at which the line search ends


@dataclass(frozen=True)
class GradientDescent:
    """Steps along the negative gradient: the error shrinks by a constant factor, near 1 - 2 / condition, a step.

    step : float > 0, or None
        The learning rate. None searches a step along each gradient (strong Wolfe conditions).
    schedule : "constant", "inverse" (step / k), "inverse-root" (step / sqrt k), or a function of the iteration
        The factor of `step` at iteration 1, 2, 3, ... Only with a `step`.
    record : None or "weights"
        "weights" keeps the weights of every step.

    A fixed step must be below 2 / largest curvature of the objective. Where it is not, the run ends at the best point
    seen, and `reason` and `largest_step` give that bound as it is at that point, rounded down.
    """

    step: float | None = None
    schedule: str | Schedule = "constant"
    record: Record = None
    needs: ClassVar[frozenset[str]] = frozenset({"gradient"})

    def __post_init__(self) -> None:
        if self.step is not None and not 0 < self.step < np.inf:
            raise ValueError(f"step must be a number > 0, or None for a line search. Got {self.step!r}.")
        schedule_of(self.schedule)
        if self.step is None and self.schedule != "constant":
            raise ValueError(f"schedule={self.schedule!r} needs a step: the line search has none. Give step=.")

    def minimise(self, problem: Problem, start: Array, stop: Stop) -> Minimised:
        """Walk from `start` until `stop` says so."""
        walk = Walk(problem, start, stop, trusts_model=False, record=self.record)
        if self.step is None:
            return _with_line_search(walk)
        return _with_fixed_step(walk, self.step, schedule_of(self.schedule))


def _with_line_search(walk: Walk) -> Minimised:
    t, slope = first_length(walk.at) if not walk.is_over else 0.0, np.nan
    while not walk.is_over:
        direction = -walk.at.gradient
        now = float(walk.at.gradient @ direction)
        t = t if np.isnan(slope) else t * min(slope / now, 10.0)  # as much lower as the last step was
        step = search(walk.evaluate, walk.at, direction, t, FLATTER)
        if step.ended == "unbounded":
            walk.fall(direction, step.t * norm(direction), step.point.value)
        elif step.ended == "none":
            walk.stand_still(walk.decrement)
        else:
            t, slope = step.t, now
            walk.move(step.point, decrement_along(walk.at, step.point), step.t / walk.unit)
    return walk.result()


def decrement_along(before: Point, after: Point) -> float:
    """|g|^2 / (2 curvature along the last step): what a step of that curvature would gain; NaN where it is not > 0."""
    s, y = after.x - before.x, after.gradient - before.gradient
    length = norm(s)
    curvature = float(y @ (s / length)) / length if length > 0 else 0.0
    return float(after.gradient @ after.gradient) / (2 * curvature) if curvature > 0 else np.nan


def _with_fixed_step(walk: Walk, step: float, schedule: Schedule) -> Minimised:
    rises, limit, is_told = 0, RISES, False
    bound: float | None = None
    while not walk.is_over:
        now = step * factor_at(schedule, walk.iteration + 1)
        with np.errstate(over="ignore", invalid="ignore"):
            point = walk.evaluate(walk.at.x - now * walk.unit * walk.at.gradient)
        if not point.is_inside:
            bound = largest_stable_step(walk.problem, walk.best.x)
            walk.end(_diverged(now, bound, walk, "it left the numbers or the domain of the function"), False)
            is_told = True
            break
        rises = rises + 1 if point.value > walk.at.value else 0
        walk.move(point, decrement_along(walk.at, point), now)
        if rises >= limit and not walk.is_over:
            bound, limit, rises = largest_stable_step(walk.problem, walk.best.x), limit * CHECKED_AGAIN, 0
            if now >= bound:
                walk.end(_diverged(now, bound, walk, "the objective rises step by step"), False)
                is_told = True
    if walk.converged:
        return walk.result()
    if not is_told:  # out of iterations: too large a step, or too few of them?
        bound = largest_stable_step(walk.problem, walk.best.x)
        last = step * factor_at(schedule, max(walk.iteration, 1))
        walk.end(f"{walk.reason} {_judged(last, bound)}", False)
    return walk.result(bound)


def _diverged(step: float, bound: float, walk: Walk, sign: str) -> str:
    return (
        f"Gradient descent with step {step:.10g} diverges after {walk.iteration} iterations: {sign}. "
        f"{_judged(step, bound)}"
    )


def _judged(step: float, bound: float) -> str:
    """What the largest stable step says about a step."""
    if np.isnan(bound):
        return "The curvature could not be measured. Take a smaller step, or step=None."
    if step >= bound:
        return (
            f"The step must be below 2 / (largest curvature) = {bound:.10g}. Take at most half of that, "
            "or step=None for a line search."
        )
    return f"The step {step:.6g} is below the largest stable one, 2 / (largest curvature) = {bound:.10g}."


# ---- schedules -------------------------------------------------------------------------------------------------------

Schedule = Callable[[int], float]

SCHEDULES: dict[str, Schedule] = {
    "constant": lambda iteration: 1.0,
    "inverse": lambda iteration: 1.0 / iteration,
    "inverse-root": lambda iteration: float(1.0 / np.sqrt(iteration)),
}


def schedule_of(schedule: str | Schedule) -> Schedule:
    """A schedule by its name, or the user's own function of the iteration."""
    if callable(schedule):
        return schedule
    if schedule not in SCHEDULES:
        legal = ", ".join(map(repr, SCHEDULES))
        raise ValueError(f"schedule must be one of {legal}, or a function of the iteration. Got {schedule!r}.")
    return SCHEDULES[schedule]


def factor_at(schedule: Schedule, iteration: int) -> float:
    """The factor at an iteration; a user's function must give a positive number."""
    factor = float(schedule(iteration))
    if not 0 < factor < np.inf:
        raise ValueError(f"schedule must give positive numbers. Got {factor} at iteration {iteration}.")
    return factor


NEARLY_EXACT = 0.1  # a search that is nearly exact: directions stay conjugate
LEAST = 0.01  # factor of the bound on how negative beta may be


@dataclass(frozen=True)
class ConjugateGradient:
    """d_(k+1) = -g_(k+1) + beta d_k, with the beta of Hager and Zhang; every direction points downhill.

    beta = (y - 2 d |y|^2 / (d'y))' g_(k+1) / (d'y),   y = g_(k+1) - g_k

    On a quadratic this is the linear method: each line search ends at the exact minimum along its direction.
    record="weights" keeps the weights of every step.
    """

    record: Record = None
    needs: ClassVar[frozenset[str]] = frozenset({"gradient"})

    def minimise(self, problem: Problem, start: Array, stop: Stop) -> Minimised:
        """Walk from `start` until `stop` says so."""
        walk = Walk(problem, start, stop, trusts_model=False, record=self.record)
        direction, is_steepest = -walk.at.gradient, True
        t = first_length(walk.at) if not walk.is_over else 0.0
        while not walk.is_over:
            step = search(walk.evaluate, walk.at, direction, t, NEARLY_EXACT, is_exact=True)
            if step.ended == "unbounded":
                walk.fall(direction, step.t * norm(direction), step.point.value)
            elif step.ended == "none":
                if is_steepest:
                    walk.stand_still(walk.decrement)
                direction, is_steepest = -walk.at.gradient, True
            else:
                before = walk.at
                slope = float(before.gradient @ direction)
                walk.move(step.point, decrement_along(before, step.point), step.t / walk.unit)
                direction = _next(direction, before.gradient, walk.at.gradient)
                is_steepest = False
                now = float(walk.at.gradient @ direction)
                t = step.t * min(slope / now, 10.0) if now < 0 else step.t
        return walk.result()


def _next(direction: Array, before: Array, after: Array) -> Array:
    y = after - before
    along = float(direction @ y)
    if not along > 0:
        return -after
    beta = float((y - direction * (2 * float(y @ y) / along)) @ after) / along
    lowest = -1 / (norm(direction) * min(LEAST * norm(before), norm(before)) or np.inf)
    return -after + max(beta, lowest) * direction
