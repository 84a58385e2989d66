"""Which solver a generalised linear model is fitted by.

A generalised linear model as a smooth function of a vector, for the solvers that take any.

x is (weights, intercept where there is one), in the user's units: a step is then the course's, w -= step gradient.
Or in units in which every column has curvature 1 at the start, where conjugate gradients and quasi-Newton methods go
faster.
"""

from __future__ import annotations

import numpy as np

from certifit.data.columns import Array
from certifit.minimise.gradient_descent import GradientDescent
from certifit.minimise.minimum import SOLVERS, solver_of
from certifit.minimise.problem import Problem, Run, Solver, Stop
from certifit.models.glm import l1_solver as score_path
from certifit.models.glm import newton, user_penalty
from certifit.models.glm.task import GlmTask
from certifit.models.least_squares.normal_equations import Weights
from certifit.statistics.factor import Curvature

MOST_COLUMNS = 3000  # that a Hessian is made of
STALE = 0.1  # an estimate of the gap that fell by this factor asks for a new Hessian


class GlmProblem(Problem):
    """The smooth part of a task. strengths: of the squares of the weights, in the user's units."""

    def __init__(self, task: GlmTask, in_user_units: bool) -> None:
        self.task = task
        self.source, self.loss, self.fit_intercept = task.source, task.loss, task.fit_intercept
        self.size = task.size if task.fit_intercept else task.size - 1
        self.strengths = task.l2_strengths
        self._scale, self._shift = self._user_units() if in_user_units else self._unit_curvature()
        self._curvature: Curvature | None = None
        self._last_gap, self._least = np.inf, np.inf
        self._n_flat = self.size  # the fewest flat directions of a Hessian so far

    def start(self) -> Array:
        """No weights; the intercept that the mean of the target has."""
        return self.from_point(self.task.start())

    def from_state(self, state: Weights) -> Array:
        """The vector of weights and an intercept in the user's units."""
        return self.from_point(self.task.to_point(state))

    def to_point(self, x: Array) -> Array:
        """The point of the task: weights over the scale, and the intercept of shifted columns."""
        weights = x[: len(self._scale)] / self._scale
        intercept = float(x[-1] / self._unit + self._shift @ weights) if self.fit_intercept else 0.0
        return np.append(weights, intercept)

    def from_point(self, point: Array) -> Array:
        """Inverse of `to_point`."""
        weights = point[:-1] * self._scale
        intercept = (point[-1] - self._shift @ point[:-1]) * self._unit
        return np.append(weights, intercept) if self.fit_intercept else weights

    def value_gradient(self, x: Array) -> tuple[float, Array]:
        """The objective and its gradient: one pass."""
        at = self.task.evaluate(self.to_point(x))
        return at.value, self._from_gradient(at.gradient)

    def hessian(self, x: Array) -> Array:
        """Its Hessian, where columns are not too many: one pass."""
        if self.task.size > MOST_COLUMNS:
            raise ValueError(
                f"A Hessian of {self.task.size} columns is too large. Use solver='auto', 'lbfgs', "
                "'conjugate-gradient' or 'gradient-descent'."
            )
        at = self.task.evaluate(self.to_point(x), hessian=True)
        assert at.hessian is not None
        half = np.array([self._from_gradient(row) for row in at.hessian])
        return np.array([self._from_gradient(row) for row in half.T])

    def _from_gradient(self, gradient: Array) -> Array:
        """The transpose of `to_point`, without its constant part."""
        slopes = (gradient[:-1] + self._shift * gradient[-1] * self.fit_intercept) / self._scale
        return np.append(slopes, gradient[-1] / self._unit) if self.fit_intercept else slopes

    def gap(self, x: Array, value: float, gradient: Array) -> float | None:
        """Half the Newton decrement, from a Hessian that is not far behind: an estimate. None of very many columns.

        Infinite where more directions are flat than at the start: nothing is known of what is left along them.
        """
        if self.task.size > MOST_COLUMNS:
            return None
        if self._curvature is None:
            self._refresh(x, gradient)
        assert self._curvature is not None
        decrement = self._half_decrement(gradient)
        if decrement < STALE * self._last_gap or np.isinf(decrement):
            self._refresh(x, gradient)
            decrement = self._half_decrement(gradient)
        self._least = min(self._least, value)
        return max(decrement, value - self._least)  # far up, where rows are saturated, a decrement tells little

    def _refresh(self, x: Array, gradient: Array) -> None:
        self._curvature = Curvature(self.hessian(x))
        self._n_flat = min(self._n_flat, self._curvature.n_flat)
        self._last_gap = self._half_decrement(gradient)

    def _half_decrement(self, gradient: Array) -> float:
        assert self._curvature is not None
        if self._curvature.n_flat > self._n_flat:
            return np.inf
        return max(float(gradient @ self._curvature.solve(gradient)), 0.0) / 2

    def _user_units(self) -> tuple[Array, Array]:
        """Scale and shift that make weights of the columns as they are."""
        self._unit = 1.0
        return self.task.scaling.scale, self.task.scaling.shift

    def _unit_curvature(self) -> tuple[Array, Array]:
        """Scales that give every column the curvature 1 at the start; of very many columns those of the task."""
        none = np.zeros(self.task.size - 1)
        self._unit = 1.0
        if self.task.size > MOST_COLUMNS:
            return np.ones(len(none)), none
        at = self.task.evaluate(self.task.start(), hessian=True)
        assert at.hessian is not None
        roots = np.sqrt(np.where(np.diagonal(at.hessian) > 0, np.diagonal(at.hessian), 1.0))
        self._unit = float(roots[-1])
        return roots[:-1], none


AUTO = "auto"
COORDINATE = "coordinate-descent"  # on the quadratic model of a Newton step: what an L1 penalty and bounds need


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
    if task.user_penalty is not None:
        return user_penalty.solve(task, solver, Stop(tol, step_tol, max_iter), start)
    if is_own(solver) and (not task.is_smooth or solver == COORDINATE):
        return score_path.solve(task, max_iter, step_tol, start)
    if is_own(solver) and start is not None:
        solver, tol = ("newton", newton.FLOOR) if task.size <= MOST_COLUMNS else ("lbfgs", tol)
    if is_own(solver):
        if task.size > MOST_COLUMNS:
            return newton.solve_by_products(task, tol, max_iter, step_tol)
        return newton.solve(task, max_iter, step_tol)
    if not task.is_smooth:
        raise ValueError(
            f"solver={solver!r} takes no L1 penalty and no bounds. Use solver='auto' or 'coordinate-descent'."
        )
    return _smooth(task, solver_of(solver), Stop(tol, step_tol, max_iter), start)


def _smooth(task: GlmTask, solver: Solver, stop: Stop, start: Weights | None) -> Run[Weights]:
    in_user_units = isinstance(solver, GradientDescent) or "rows" in solver.needs
    problem = GlmProblem(task, in_user_units)
    begin = problem.start() if start is None else problem.from_state(start)
    minimised = solver.minimise(problem, begin, stop)
    reason, weights = "" if minimised.converged else minimised.reason, None
    if minimised.weights is not None:
        states = [task.to_state(problem.to_point(x)) for x in minimised.weights]
        weights = np.array([np.append(state.coef, state.intercept) for state in states])
    return Run(task.to_state(problem.to_point(minimised.x)), minimised.trace, reason, weights)
