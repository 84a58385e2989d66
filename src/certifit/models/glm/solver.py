"""Which solver a model of one score or several is fitted by.

Such a model as a smooth function of a vector, for the solvers that take any.

x is (weights, intercept where there is one), in the user's units: a step is then the course's, w -= step gradient.
Or in units in which every column has curvature 1 at the start, where conjugate gradients and quasi-Newton methods go
faster.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Generic, cast

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Memory
from certifit.minimise.gradient_descent import GradientDescent
from certifit.minimise.minimum import SOLVERS, solver_of
from certifit.minimise.problem import Problem, Run, Solver, Stop
from certifit.models.glm import l1_solver, newton, softmax_solver, user_penalty
from certifit.models.glm.concordance import Related, related
from certifit.models.glm.softmax_task import GlmOrSoftmaxTask, SoftmaxTask, SoftmaxWeights
from certifit.models.glm.some_columns import like
from certifit.models.glm.task import GlmTask, ScoreTask, StateT
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.start import AUTO
from certifit.statistics.factor import Curvature, plain_factor
from certifit.statistics.gram import gram
from certifit.statistics.remainders import column_system, some_columns

MOST_COLUMNS = 3000  # that a Hessian is made of
MOST_ENTRIES = 1500  # the same of several scores, whose Hessian has a part for every pair of them
STALE = 0.1  # an estimate of the gap that fell by this factor asks for a new Hessian


class ScoreProblem(Problem, Generic[StateT]):
    """The smooth part of a task. strengths: of the squares of the weights, in the user's units.

    Of several scores x is (columns, then an intercept where there is one) x scores, as one vector.
    """

    def __init__(self, task: ScoreTask[StateT], in_user_units: bool) -> None:
        self.task, self.n_scores = task, task.n_scores
        self.source, self.loss, self.fit_intercept = task.source, task.loss, task.fit_intercept
        self.size = task.size if task.fit_intercept else task.size - task.n_scores
        self.strengths = task.l2_strengths
        scale, shift = (part[:, None] for part in (self._user_units() if in_user_units else self._unit_curvature()))
        self._scale, self._shift = scale, shift
        self._curvature: Curvature | None = None
        self._last_gap, self._least = np.inf, np.inf
        self._n_flat = self.size  # the fewest flat directions of a Hessian so far

    def start(self) -> Array:
        """No weights; the intercepts that suit the targets."""
        return self.from_point(self.task.start())

    def from_state(self, state: StateT) -> Array:
        """The vector of weights and intercepts in the user's units."""
        return self.from_point(self.task.to_point(state))

    def to_point(self, x: Array) -> Array:
        """The point of the task: weights over the scale, and the intercepts of shifted columns."""
        at = x.reshape(-1, self.n_scores)
        point = np.zeros(self.task.shape)
        point[:-1] = at[: len(self._scale)] / self._scale
        if self.fit_intercept:
            point[-1] = at[-1] / self._unit + self._shift[:, 0] @ point[:-1]
        return point.ravel()

    def from_point(self, point: Array) -> Array:
        """Inverse of `to_point`."""
        at = point.reshape(self.task.shape)
        weights = at[:-1] * self._scale
        intercept = (at[-1] - self._shift[:, 0] @ at[:-1]) * self._unit
        return np.append(weights, intercept) if self.fit_intercept else weights.ravel()

    def value_gradient(self, x: Array) -> tuple[float, Array]:
        """The objective and its gradient: one pass."""
        at = self.task.evaluate(self.to_point(x))
        return at.value, self._from_gradient(at.gradient)

    @property
    def has_hessian(self) -> bool:
        """Whether one is not too large."""
        return self.task.size <= (MOST_COLUMNS if self.n_scores == 1 else MOST_ENTRIES)

    def hessian(self, x: Array) -> Array:
        """Its Hessian, where columns are not too many: one pass."""
        if not self.has_hessian:
            raise ValueError(
                f"A Hessian of {self.task.size} x {self.task.size} entries is too large. Use solver='auto', 'lbfgs', "
                "'conjugate-gradient' or 'gradient-descent'."
            )
        at = self.task.evaluate(self.to_point(x), hessian=True)
        assert at.hessian is not None
        half = np.array([self._from_gradient(row) for row in at.hessian])
        return np.array([self._from_gradient(row) for row in half.T])

    @property
    def steepest(self) -> Problem:
        """This problem with its loss as steep everywhere as it is anywhere, where that is not so at a point alone."""
        loss = getattr(self.loss, "steepest", self.loss)
        if loss is self.loss:
            return self
        other = copy(self)
        other.task = copy(self.task)
        other.task.loss = loss
        return other

    def _from_gradient(self, gradient: Array) -> Array:
        """The transpose of `to_point`, without its constant part."""
        at = gradient.reshape(self.task.shape)
        slopes = (at[:-1] + self._shift * at[-1] * self.fit_intercept) / self._scale
        return np.append(slopes, at[-1] / self._unit) if self.fit_intercept else slopes.ravel()

    def gap(self, x: Array, value: float, gradient: Array) -> float | None:
        """Half the Newton decrement, from a Hessian that is not far behind: an estimate. None of very many columns.

        Infinite where more directions are flat than at the start: nothing is known of what is left along them.
        """
        if not self.has_hessian:
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
        """Scales that give every column the curvature 1 at the start.

        Of very many columns and of several scores those of the task, which are near.
        """
        none = np.zeros(self.task.shape[0] - 1)
        self._unit = 1.0
        if self.task.size > MOST_COLUMNS or self.n_scores > 1:
            return np.ones(len(none)), none
        at = self.task.evaluate(self.task.start(), hessian=True)
        assert at.hessian is not None
        roots = np.sqrt(np.where(np.diagonal(at.hessian) > 0, np.diagonal(at.hessian), 1.0))
        self._unit = float(roots[-1])
        return roots[:-1], none


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
    task: ScoreTask[StateT],
    solver: str | Solver,
    tol: float,
    max_iter: int,
    step_tol: float = 0.0,
    start: StateT | None = None,
) -> Run[StateT]:
    """The minimiser by a solver, or by the one that suits the task."""
    stop = Stop(tol, step_tol, max_iter)
    if isinstance(task, GlmTask) and task.user_penalty is not None:
        return cast("Run[StateT]", user_penalty.solve(task, solver, stop, cast("Weights | None", start)))
    if is_own(solver) and (not task.is_smooth or solver == COORDINATE):
        return l1_solver.solve(task, max_iter, step_tol, start)
    if not task.is_smooth:
        raise ValueError(
            f"solver={solver!r} takes no L1 penalty and no bounds. Use solver='auto' or 'coordinate-descent'."
        )
    if is_own(solver) and start is None:
        return _own(task, stop)
    return _smooth(task, solver, stop, start)


def _own(task: ScoreTask[StateT], stop: Stop) -> Run[StateT]:
    """On the columns that are no combinations of others, whose weights are 0."""
    near = _relations(task)
    if near is None:
        return _over_all(task, stop)
    kept = np.setdiff1d(np.arange(task.source.n_features), near.columns[~near.found.is_apart])
    small = like(cast("GlmTask", task), some_columns(task.source, kept), kept, task.strengths.alpha)
    run = _over_all(cast("ScoreTask[StateT]", small), stop)
    coef, intercept = np.zeros((task.n_scores, task.source.n_features)), np.atleast_1d(run.state.intercept)
    coef[:, kept] = np.atleast_2d(run.state.coef)
    return replace(run, state=task.state_of(coef, intercept))


def _relations(task: ScoreTask[StateT]) -> Related | None:
    """Columns without a penalty that are combinations of others; a relation of all rows is one of the first."""
    firm = task.l2[:-1] > 0
    if firm.all() or task.size > MOST_COLUMNS:
        return None
    first = Memory.of(some_columns(task.source, np.flatnonzero(~firm)).first_block())
    if plain_factor(column_system(gram(first, task.fit_intercept), task.fit_intercept)) is not None:
        return None
    near = related(cast("GlmOrSoftmaxTask", task), firm)
    return None if near is None or near.found.is_apart.all() else near


def _over_all(task: ScoreTask[StateT], stop: Stop) -> Run[StateT]:
    run: Run[SoftmaxWeights] | Run[Weights]
    if isinstance(task, SoftmaxTask):
        run = softmax_solver.solve(task, stop.tol, stop.max_iter, stop.step_tol)
    else:
        assert isinstance(task, GlmTask)
        is_wide = task.size > MOST_COLUMNS
        run = (
            newton.solve_by_products(task, stop.tol, stop.max_iter, stop.step_tol)
            if is_wide
            else newton.solve(task, stop.max_iter, stop.step_tol)
        )
    return cast("Run[StateT]", run)


def _smooth(task: ScoreTask[StateT], solver: str | Solver, stop: Stop, start: StateT | None) -> Run[StateT]:
    """By a solver of any function; from a start the one that suits the task is Newton's method, or L-BFGS."""
    is_chosen, chosen = not is_own(solver), solver_of("newton" if is_own(solver) else solver)
    in_user_units = is_chosen and (isinstance(chosen, GradientDescent) or "rows" in chosen.needs)
    problem = ScoreProblem(task, in_user_units)
    if not is_chosen:
        stop, chosen = (replace(stop, tol=newton.FLOOR), chosen) if problem.has_hessian else (stop, solver_of("lbfgs"))
        if start is not None and task.n_scores > 1:  # along what classes have in common Newton's steps are short
            start = task.to_state(task.to_point(start))
    begin = problem.start() if start is None else problem.from_state(start)
    minimised = chosen.minimise(problem, begin, stop)
    reason, weights = "" if minimised.converged else minimised.reason, None
    if minimised.weights is not None:
        points = map(problem.to_point, minimised.weights)
        states = [task.to_state(point) for point in points if np.isfinite(point).all()]  # up to where steps diverged
        coef, intercept = (np.array([getattr(state, part) for state in states]) for part in ("coef", "intercept"))
        weights = np.concatenate([coef, intercept[..., None]], axis=-1)
    return Run(task.to_state(problem.to_point(minimised.x)), minimised.trace, reason, weights)
