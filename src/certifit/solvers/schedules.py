"""Learning rates that change on the way: the factor of the first step at iteration 1, 2, 3, ..."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Schedule = Callable[[int], float]

SCHEDULES: dict[str, Schedule] = {
    "constant": lambda iteration: 1.0,
    "inverse": lambda iteration: 1.0 / iteration,
    "inverse-root": lambda iteration: float(1.0 / np.sqrt(iteration)),
}


def schedule_of(given: str | Schedule) -> Schedule:
    """A schedule by its name, or the user's own function of the iteration."""
    if callable(given):
        return given
    if given not in SCHEDULES:
        legal = ", ".join(map(repr, SCHEDULES))
        raise ValueError(f"schedule must be one of {legal}, or a function of the iteration. Got {given!r}.")
    return SCHEDULES[given]


def factor_at(schedule: Schedule, iteration: int) -> float:
    """The factor at an iteration; a user's function must give a positive number."""
    factor = float(schedule(iteration))
    if not 0 < factor < np.inf:
        raise ValueError(f"schedule must give positive numbers. Got {factor} at iteration {iteration}.")
    return factor
