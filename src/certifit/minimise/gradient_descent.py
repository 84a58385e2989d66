"""Gradient descent: x_(k+1) = x_k - step factor(k) gradient(x_k).

factor(k) is the schedule: the learning rate of iteration k = 1, 2, 3, ... as a multiple of the first step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from certifit.data.columns import Array
from certifit.minimise.curvature import largest_stable_step
from certifit.minimise.line_search import first_length, search
from certifit.minimise.problem import Minimised, Problem, Record, Stop, norm
from certifit.minimise.walk import Point, Walk

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
