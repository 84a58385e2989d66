"""Which solver a generalised linear model is fitted by."""

from __future__ import annotations

from typing import Any

from certifit.solvers import chord, prox_newton
from certifit.solvers.direct import Run
from certifit.tasks.generalised import GeneralisedLinear

NAMES = ("auto",)


def check_solver(solver: Any) -> None:
    """Refuse what is no solver."""
    if solver not in NAMES:
        raise ValueError(f"solver must be one of {', '.join(NAMES)}. Got {solver!r}.")


def solve(task: GeneralisedLinear, solver: Any, tol: float, max_iter: int, step_tol: float) -> Run:
    """The minimiser by a solver, or by the one that suits the task."""
    if not task.is_smooth:
        return prox_newton.solve(task, max_iter, step_tol)
    return chord.solve(task, max_iter, step_tol)
