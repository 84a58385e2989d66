"""L-BFGS for softmax regression, in the units of the columns' own matrix; Newton's method where it is small.

The Hessian at equal chances is (1/K) (I - 11'/K) x (X'X / n) + alpha I. Steps start from its inverse,

    M = (1 - 1/K) / K (x, 1)'(x, 1) / n + alpha I,   one factor for all classes,

and are corrected by the last changes of the gradient, so columns of unlike size and correlated ones cost no steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.minimise.gradient_descent import GradientDescent
from certifit.minimise.minimum import solver_of
from certifit.minimise.problem import Problem, Run, Stop
from certifit.minimise.steps import Steps
from certifit.models.glm import l1_solver
from certifit.models.glm.newton import ARMIJO, NOISE, RUNAWAY, SHORTEST, SURE, descend, sampled_rows
from certifit.models.glm.softmax_task import SoftmaxTask, SoftmaxWeights
from certifit.models.glm.task import Evaluated
from certifit.runtime import one_blas_thread
from certifit.statistics.factor import Curvature
from certifit.statistics.moments import mean_squares
from certifit.statistics.softmax import columns_matrix

CHANGES = 30  # of the gradient that are remembered
MOST_COLUMNS = 1500  # of a matrix of columns that is worth its cost; beyond, its diagonal
ROWS_A_COLUMN = 20  # of the sample that the matrix is made of
SMALL = 1500  # entries of a point for which Hessians are cheap
ROUGH = 1e-4  # relative decrement at which Newton's method takes over
MOST_ROUGH = 100  # steps before it does in any case
PATIENT = 60  # slow Newton steps that a penalty is given to end the growth of weights
SHARE = 0.4  # of the tolerance that is asked of the estimated gap: the certificate adds roundings
SURER = 10.0  # curvature by an intercept can be so much less than that of the classes' shares


class Changes:
    """The last moves of a point and what they did to the gradient: the two loops of L-BFGS over a first inverse."""

    def __init__(self, inverse: Array, shape: tuple[int, int]) -> None:
        self.inverse, self.shape = inverse, shape
        self._seen: list[tuple[Array, Array, float]] = []
        self._length = 1.0

    def first(self, gradient: Array) -> Array:
        """M^-1 of the gradient, class by class."""
        right = gradient.reshape(self.shape)
        solved = self.inverse @ right if self.inverse.ndim == 2 else self.inverse[:, None] * right
        return np.asarray(solved.ravel())

    def learn(self, move: Array, change: Array) -> None:
        """A move of the point and the change of the gradient."""
        product = float(move @ change)
        if product > 0:
            self._seen = [*self._seen, (move, change, product)][-CHANGES:]
            self._length = product / float(change @ self.first(change))

    def step(self, gradient: Array) -> Array:
        """The step down."""
        rest, shares = gradient.copy(), []
        for move, change, product in reversed(self._seen):
            shares.append(float(move @ rest) / product)
            rest -= shares[-1] * change
        step = self._length * self.first(rest)
        for (move, change, product), share in zip(self._seen, reversed(shares), strict=True):
            step += (share - float(change @ step) / product) * move
        return step


@np.errstate(over="ignore", invalid="ignore")  # a step that overflows has no objective, and is not taken
@one_blas_thread
def solve(task: SoftmaxTask, tol: float, max_iter: int, start: Array | None = None) -> Run[SoftmaxWeights]:
    """The minimiser: small problems to the rounding floor, others until the gap is within the tolerance."""
    steps, start = Steps(), task.start() if start is None else start
    if task.size > SMALL:
        point = _descend(task, start, tol, max_iter, steps)
    else:
        point = _descend(task, start, tol, min(max_iter, MOST_ROUGH), steps, ROUGH)
        is_held = bool((task.l2[:-1] > 0).all())  # a penalty ends the growth of weights, however small it is
        point = descend(task, point, max_iter, steps, runaway=PATIENT if is_held else RUNAWAY)
    return Run(task.to_state(point), steps.rows, steps.reason)


@np.errstate(over="ignore", invalid="ignore")
@one_blas_thread
def solve_kinked(
    task: SoftmaxTask, max_iter: int, step_tol: float = 0.0, start: SoftmaxWeights | None = None
) -> Run[SoftmaxWeights]:
    """The minimiser with an L1 penalty or bounds, to the rounding floor."""
    point, steps = task.start(), Steps()
    if start is not None:
        point = l1_solver.legal_start(task, start.coef, task.to_point(start))
    point = l1_solver.descend(task, point, max_iter, steps, step_tol, PATIENT)
    return Run(task.to_state(point), steps.rows, steps.reason)


def _descend(task: SoftmaxTask, point: Array, tol: float, max_iter: int, steps: Steps, rough: float = 0.0) -> Array:
    """L-BFGS steps until the gap is within the tolerance, or the decrement is rough relative to the objective."""
    changes = Changes(_first_inverse(task), task.shape)
    at = task.evaluate(point)
    while len(steps.rows) < max_iter and not steps.is_over:
        step = changes.step(at.gradient)
        decrement = max(float(at.gradient @ step), 0.0)
        gap = gap_estimate(task, at, decrement)
        size = float(np.linalg.norm(at.gradient))
        steps.add(at.value, gap, gradient_norm=size, step=float(np.linalg.norm(step)))
        is_done = decrement <= rough * at.value if rough else gap <= SHARE * tol * at.value
        if is_done or decrement <= NOISE * at.value:
            return point
        lower = _lower(task, point, at, step, decrement)
        if lower is None:
            return point
        changes.learn(lower[0] - point, lower[1].gradient - at.gradient)
        point, at = lower
    return point


def gap_estimate(task: SoftmaxTask, at: Evaluated, decrement: float) -> float:
    """|gradient|^2 / (2 alpha), what the duality gap is once the intercepts are best; half the decrement without.

    In the units of large columns a penalty may be 0 to float64: it counts as none.
    """
    if not (task.l2[:-1] > 0).all():
        return decrement / 2
    squares = np.square(at.gradient.reshape(task.shape))
    with np.errstate(over="ignore"):
        columns = float(np.sum(squares[:-1].sum(axis=1) / task.l2[:-1])) / 2
    return columns + SURER * float(np.sum(squares[-1] / (task.shares * (1 - task.shares)))) / 2


def _first_inverse(task: SoftmaxTask) -> Array:
    """M^-1, or where there are many columns the inverse of its diagonal."""
    n_classes = task.n_classes
    often = (1 - 1 / n_classes) / n_classes
    if task.shape[0] > MOST_COLUMNS:
        diagonal = often * np.append(mean_squares(task.source, task.scaling), 1.0) + task.l2
        return np.asarray(1 / np.where(diagonal > 0, diagonal, 1.0))
    matrix = often * _columns_matrix(task)
    matrix[np.diag_indices(len(matrix))] += task.l2
    if not task.fit_intercept:
        matrix[-1], matrix[:, -1] = 0.0, 0.0
        matrix[-1, -1] = 1.0
    return Curvature(matrix).inverse


def _columns_matrix(task: SoftmaxTask) -> Array:
    """From every so many-th row where rows are many: a few times as many rows as columns tell it well enough."""
    stride = task.labels[1] // (ROWS_A_COLUMN * task.shape[0])
    matrix = columns_matrix(sampled_rows(task.source, stride) if stride > 1 else task.source, task.scaling)
    if not np.isfinite(matrix).all():  # no row of the sample has a weight, or block 0 misled about the scales
        matrix = columns_matrix(task.source, task.scaling)
    if not np.isfinite(matrix).all():
        task.rescale()
        matrix = columns_matrix(task.source, task.scaling)
    return matrix


def _lower(
    task: SoftmaxTask, point: Array, at: Evaluated, step: Array, decrement: float
) -> tuple[Array, Evaluated] | None:
    """The first of point - step, point - step/2, ... that lowers the objective enough; None where none does."""
    length = 1.0
    while length >= SHORTEST:
        trial = point - length * step
        tried = task.evaluate(trial)
        if tried.value <= at.value - ARMIJO * length * decrement + SURE * abs(at.value):
            return trial, tried
        length /= 2
    return None


# Softmax regression as a smooth function of a vector, for the solvers that take any.

MOST_ENTRIES = 1500  # of a point for which a Hessian is taken


class ClassLoss:
    """-log p_y(z), p the softmax of the scores of a row; y is the code of its class."""

    smoothness = 0.5  # diag(p) - pp' has no larger eigenvalue: half of sum_ij p_i p_j (v_i - v_j)^2

    def slope(self, y: Array, z: Array) -> Array:
        """p - 1 at the class of the row."""
        chances = np.exp(z - z.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        chances[np.arange(len(y)), y.astype(np.int64)] -= 1.0
        return np.asarray(chances)


class SoftmaxProblem(Problem):
    """The objective in the user's units, or in those of the task; x is (columns + 1) x classes as one vector."""

    def __init__(self, task: SoftmaxTask, in_user_units: bool) -> None:
        self.task, self.size, self.n_scores = task, task.size, task.n_classes
        self.source, self.loss, self.fit_intercept = task.source, ClassLoss(), task.fit_intercept
        self.strengths = task.l2_strengths
        scale, shift = task.scaling.scale, task.scaling.shift
        self._least, self._n_flat = np.inf, self.size  # the least value so far, the fewest flat directions
        self._transform = np.eye(len(scale) + 1)
        if in_user_units:
            self._transform[:-1, :-1] = np.diag(1 / scale)
            self._transform[-1, :-1] = shift / scale

    def from_point(self, point: Array) -> Array:
        """Inverse of `to_point`."""
        return np.asarray(np.linalg.solve(self._transform, point.reshape(self.task.shape)).ravel())

    def to_point(self, x: Array) -> Array:
        """The point of the task."""
        return np.asarray((self._transform @ x.reshape(self.task.shape)).ravel())

    def value_gradient(self, x: Array) -> tuple[float, Array]:
        """The objective and its gradient: one pass."""
        at = self.task.evaluate(self.to_point(x))
        return at.value, np.asarray((self._transform.T @ at.gradient.reshape(self.task.shape)).ravel())

    def hessian(self, x: Array) -> Array:
        """Its Hessian, where it is not too large."""
        if self.size > MOST_ENTRIES:
            raise ValueError(
                f"A Hessian of {self.size} x {self.size} entries is too large. Use solver='auto', 'lbfgs' or "
                "'conjugate-gradient'."
            )
        whole = np.kron(self._transform, np.eye(self.task.n_classes))
        return np.asarray(whole.T @ self.task.hessian(self.to_point(x)) @ whole)

    def gap(self, x: Array, value: float, gradient: Array) -> float | None:
        """Half the Newton decrement where a Hessian is cheap: an estimate."""
        if self.size > MOST_ENTRIES:
            return None
        curvature = Curvature(self.hessian(x))
        self._least, self._n_flat = min(self._least, value), min(self._n_flat, curvature.n_flat)
        if curvature.n_flat > self._n_flat:
            return np.inf  # saturated: nothing is known of what is left along directions that are flat only here
        return max(float(gradient @ curvature.solve(gradient)) / 2, value - self._least)


def minimise(task: SoftmaxTask, solver: Any, stop: Stop, start: SoftmaxWeights | None = None) -> Run[SoftmaxWeights]:
    """The minimiser by a solver of any function."""
    chosen = solver_of(solver)
    problem = SoftmaxProblem(task, isinstance(chosen, GradientDescent) or "rows" in chosen.needs)
    begin = problem.from_point(task.start() if start is None else task.to_point(start))
    minimised = chosen.minimise(problem, begin, stop)
    reason, weights = "" if minimised.converged else minimised.reason, None
    if minimised.weights is not None:
        states = [task.to_state(problem.to_point(x)) for x in minimised.weights]
        weights = np.array([np.column_stack([state.coef, state.intercept]) for state in states])
    return Run(task.to_state(problem.to_point(minimised.x)), minimised.trace, reason, weights)
