"""Which solver a generalised linear model is fitted by."""

from __future__ import annotations

import numpy as np

from certifit.minimise.gradient_descent import GradientDescent
from certifit.minimise.minimum import SOLVERS, solver_of
from certifit.minimise.problem import Run, Solver, Stop
from certifit.models.glm import chord, newton_cg, own_penalty
from certifit.models.glm import l1_solver as score_path
from certifit.models.glm.problem import GlmProblem
from certifit.models.glm.task import GlmTask
from certifit.models.least_squares.normal_equations import Weights

AUTO = "auto"
COORDINATE = "coordinate-descent"  # on the quadratic model of a Newton step: what an L1 penalty and bounds need
MOST_COLUMNS = 3000  # that a Hessian is made of


def check_solver(solver: str | Solver) -> None:
    """Refuse what is no solver."""
    if isinstance(solver, str) and solver not in (AUTO, COORDINATE, *SOLVERS):
        names = ", ".join(map(repr, (AUTO, *SOLVERS, COORDINATE)))
        raise ValueError(f"solver must be one of {names}, or an instance of a solver. Got {solver!r}.")
    if not is_own(solver):
        solver_of(solver)


def is_own(solver: str | Solver) -> bool:
    """Whether a solver is one that knows the model, not one of any function."""
    return isinstance(solver, str) and solver in (AUTO, COORDINATE)


def is_stochastic(solver: str | Solver) -> bool:
    """Whether a solver learns row by row."""
    return not is_own(solver) and "rows" in solver_of(solver).needs


@np.errstate(over="ignore", invalid="ignore")  # a step that overflows has no objective, and is not taken
def solve(
    task: GlmTask, solver: str | Solver, tol: float, max_iter: int, step_tol: float, start: Weights | None = None
) -> Run[Weights]:
    """The minimiser by a solver, or by the one that suits the task."""
    if task.own is not None:
        return own_penalty.solve(task, solver, Stop(tol, step_tol, max_iter), start)
    if is_own(solver) and (not task.is_smooth or solver == COORDINATE):
        return score_path.solve(task, max_iter, step_tol, start)
    if is_own(solver) and start is not None:
        solver, tol = ("newton", chord.FLOOR) if task.size <= MOST_COLUMNS else ("lbfgs", tol)
    if is_own(solver):
        if task.size > MOST_COLUMNS:
            return newton_cg.solve(task, tol, max_iter, step_tol)
        return chord.solve(task, max_iter, step_tol)
    if not task.is_smooth:
        raise ValueError(
            f"solver={solver!r} takes no L1 penalty and no bounds. Use solver='auto' or 'coordinate-descent'."
        )
    return _smooth(task, solver_of(solver), Stop(tol, step_tol, max_iter), start)


def _smooth(task: GlmTask, solver: Solver, stop: Stop, start: Weights | None) -> Run[Weights]:
    in_user_units = isinstance(solver, GradientDescent) or "rows" in solver.needs
    problem = GlmProblem(task, in_user_units)
    begin = problem.start() if start is None else problem.from_state(start)
    found = solver.minimise(problem, begin, stop)
    reason, weights = "" if found.converged else found.reason, None
    if found.weights is not None:
        states = [task.to_state(problem.to_point(x)) for x in found.weights]
        weights = np.array([np.append(state.coef, state.intercept) for state in states])
    return Run(task.to_state(problem.to_point(found.x)), found.trace, reason, weights)
