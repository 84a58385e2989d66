"""Linear support vector machines: which method solves which machine, and what it reports.

Newton's method on squared slacks is semi-smooth: the second derivatives are those of the rows with slack, and once
these are the rows of the optimum one step is exact. Averaged SGD is the primal method of the textbook:

    theta = 0;  for t = 1, 2, ..., T:  w_t = theta / (alpha t);  draw a row i in proportion to its weight;
    where y_i x_i'w_t < 1:  theta += y_i x_i;   the result is the mean of w_1, ..., w_T

b takes no part in the steps: it is the best one for the mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg

from certifit.data.columns import Array
from certifit.models.linear_svm.dual import ENOUGH, ROUND, Told, dual_of, feasible, first_weights, solve_dual
from certifit.models.linear_svm.task import MOST_COLUMNS, LinearRun, LinearTask, best_intercept
from certifit.models.svm.solver import Recorder
from certifit.models.svm.task import Machine
from certifit.runtime import core, one_blas_thread
from certifit.statistics.residual import UNIT

AUTO, NEWTON, INTERIOR, COORDINATE, SGD = "auto", "newton", "interior-point", "coordinate", "sgd"
SOLVERS = {"hinge": (AUTO, INTERIOR, COORDINATE, SGD), "squared_hinge": (AUTO, NEWTON, COORDINATE)}
FEW_MOVED = 0.4  # of the rows: fewer that got slack or lost it are cheaper to add and to take away than all are to sum
LEAST_TRACE = 1e-4  # of the largest since all rows were summed: what was taken away left its rounding
MOST_PRODUCTS = 2000  # of a step by conjugate gradients
LEAST_SHARE, MOST_SHARE = 1e-10, 1e-2  # of the gradient, that such a step leaves
NOT_ENOUGH = "max_iter = {0:,} steps were not enough. Raise max_iter, or alpha, or standardise columns."


@dataclass(frozen=True)
class Limits:
    """tol; steps or epochs; the seed of the draws."""

    tol: float
    most: int
    seed: int


@one_blas_thread
@np.errstate(over="ignore", invalid="ignore")  # the certificate says so
def solve(task: LinearTask, solver: str, limits: Limits) -> LinearRun:
    """The optimum of every machine."""
    record = Recorder(task.alpha)
    weights, intercepts = [], []
    turned = _turned(task) if solver in (AUTO, NEWTON) and task.slack.is_squared else None
    for p, machine in enumerate(task.machines):
        record.machine = p + 1
        if solver == SGD:
            w, b = averaged_sgd(task, machine, limits, record)
        elif turned is not None:
            v, b = newton(turned.task, machine, limits, record)
            w = turned.directions @ v
            if not task.names_multipliers:
                task.witness[p] = machine.slack.slope(machine.bound, 1 - machine.sign * (task.scores(w) + b))
        elif machine.slack.is_squared and (solver == NEWTON or (solver == AUTO and task.n_columns <= MOST_COLUMNS)):
            w, b = newton(task, machine, limits, record)
        else:
            best = solve_dual(task, p, solver, limits.tol, limits.most, _teller(record))
            task.witness[p] = best.a
            w, b = best.w, best.b
        weights.append(w)
        intercepts.append(b)
    reason = record.steps.reason or _not_enough(task, len(record.steps.rows), limits.most)
    return LinearRun(task.told(weights, intercepts), record.steps.rows, reason)


def _not_enough(task: LinearTask, n_told: int, most: int) -> str:
    """Why there is no more: the steps, or the rounding of sums of the largest column."""
    if n_told * ROUND >= most:
        return NOT_ENOUGH.format(most)
    largest = task.names[int(np.argmax(task.column_squares(np.ones(task.n_points))[:-1]))]
    mend = "Raise alpha" if (task.scale != 1).any() else f"Use standardize=True: {largest!r} has the largest entries"
    return f"Rounding in float64 prevents more. {mend}."


@dataclass(frozen=True)
class _Turned:
    """The same machines on coordinates of the rows in an orthonormal basis of what they span: |w| stays."""

    task: LinearTask
    directions: Array  # (columns, rows)


def _turned(task: LinearTask) -> _Turned | None:
    """Where rows are fewer than columns, and few enough for factors: the best weights are sums of rows."""
    n_rows, n_columns = task.X.shape
    if isinstance(task.X, sp.csr_array) or n_rows >= n_columns or n_rows > MOST_COLUMNS:
        return None
    directions, coordinates = np.linalg.qr(task.X.T)
    if not (np.isfinite(coordinates).all() and np.isfinite(directions).all()):
        return None
    return _Turned(task.on(np.ascontiguousarray(coordinates.T)), directions)


def _teller(record: Recorder) -> Told:
    def told(objective: float, dual: float) -> bool:
        record.add(objective / record.unit, dual / record.unit, np.nan)
        return record.steps.is_over

    return told


def newton(task: LinearTask, machine: Machine, limits: Limits, record: Recorder) -> tuple[Array, float]:
    """Steps until the objective no longer falls, or cannot; of many columns until the gap is small."""
    w = first_weights(task, machine) if isinstance(task.X, sp.csr_array) else np.zeros(task.n_columns)
    z = task.scores(w)
    point = np.append(w, best_intercept(machine, z))
    z = z + point[-1]
    value = _value(machine, point, z)
    enough, dual = 0.0 if task.n_columns <= MOST_COLUMNS else ENOUGH * limits.tol, np.nan
    at, size = _Derivatives.of_no_row(task), 0.0
    for _ in range(limits.most):
        a = machine.slack.slope(machine.bound, 1 - machine.sign * z)
        # A whole step among the same rows with slack is exact.
        is_there = at.square is not None and size == 1 and np.array_equal(a > 0, at.a > 0)
        at = _Derivatives.of(task, machine, a, at)
        dual = at.dual(task, machine, value - float(point[:-1] @ point[:-1]) / 2)
        record.add(value, dual, np.nan)
        if record.steps.is_over:
            break
        gap = (value - dual) / value if value > 0 else 0.0
        if gap <= enough or is_there:
            break
        direction = _direction(task, machine, point, at, min(max(0.01 * gap, LEAST_SHARE), MOST_SHARE))
        along = task.scores(direction[:-1]) + direction[-1]
        fall = float((at.total - np.append(point[:-1], 0.0)) @ direction)
        size, new = _searched(machine, point, direction, z, along, fall)
        if not new < value:
            break
        point, z, value = point + size * direction, z + size * along, new
    w, b = point[:-1], 0.0
    if machine.has_intercept:
        z = task.scores(w)
        b = best_intercept(machine, z)
        value = _value(machine, np.append(w, b), z + b)
    record.add(value, dual, np.nan)
    return w, b


def _value(machine: Machine, point: Array, z: Array) -> float:
    w = point[:-1]
    return float(w @ w) / 2 + float(machine.slack.cost(machine.bound, 1 - machine.sign * z).sum())


@dataclass(frozen=True)
class _Derivatives:
    """Of the costs of a point: slopes a and curvatures of the rows, their sums over the rows, (x_i, 1) and its square.

    The square is left out where columns are too many for a factor. largest: the most that its trace was since all
    rows were summed.
    """

    a: Array
    curvatures: Array
    total: Array
    square: Array | None
    largest: float = 0.0

    @staticmethod
    def of_no_row(task: LinearTask) -> _Derivatives:
        """Where no row has slack."""
        none, side = np.zeros(task.n_points), task.n_columns + 1
        return _Derivatives(none, none, np.zeros(side), np.zeros((side, side)) if side <= MOST_COLUMNS + 1 else None)

    @staticmethod
    def of(task: LinearTask, machine: Machine, a: Array, before: _Derivatives) -> _Derivatives:
        """before: of the last step, whose square is that of most of the same rows."""
        curvatures = np.where(a > 0, 2 * machine.bound, 0.0)
        if task.n_columns > MOST_COLUMNS:
            return _Derivatives(a, curvatures, task.total(machine.sign * a), None)
        square = before.moved_to(task, curvatures)
        if square is not None:
            largest = max(before.largest, float(np.trace(square)))
            return _Derivatives(a, curvatures, task.total(machine.sign * a), square, largest)
        total, square = task.sums(machine.sign * a, curvatures)
        return _Derivatives(a, curvatures, total, square, float(np.trace(square)))

    def moved_to(self, task: LinearTask, curvatures: Array) -> Array | None:
        """The square after rows got slack or lost it, by these alone; None where they are many, or rounding is left."""
        change = curvatures - self.curvatures
        if self.square is None or np.count_nonzero(change) > FEW_MOVED * len(change):
            return None
        square = self.square
        for side in (1.0, -1.0):
            rows = np.flatnonzero(side * change > 0)
            if len(rows):
                square = square + side * task.square_of(rows, side * change[rows])
        return square if np.trace(square) > LEAST_TRACE * self.largest else None

    def dual(self, task: LinearTask, machine: Machine, costs: float) -> float:
        """The lower bound that the slopes are multipliers of. costs: of the slacks, half their products with them."""
        if not machine.has_intercept:
            return float(self.a.sum()) - costs - float(self.total[:-1] @ self.total[:-1]) / 2
        a = feasible(machine, self.a)
        return dual_of(machine, a, task.total(machine.sign * a)[:-1])


def _direction(task: LinearTask, machine: Machine, point: Array, at: _Derivatives, share: float) -> Array:
    """- H^-1 gradient; the intercept stays where there is none, or no row has slack.

    share: of the gradient, that conjugate gradients leave where columns are too many for a factor.
    """
    penalised = np.append(np.ones(task.n_columns), 0.0)
    has_intercept = machine.has_intercept and bool((at.a > 0).any())
    gradient, system = penalised * point - at.total, at.square
    if not has_intercept:
        gradient[-1] = 0.0
    if system is None:
        return _by_products(task, gradient, at.curvatures, has_intercept, share)
    system = system + np.diag(penalised)
    if not has_intercept:
        system[-1, :], system[:, -1], system[-1, -1] = 0.0, 0.0, 1.0
    try:
        factor = sl.cho_factor(system)
    except (np.linalg.LinAlgError, ValueError):
        return -gradient / max(float(np.abs(system).max(initial=0.0)), 1.0)
    step = sl.cho_solve(factor, -gradient)
    return np.asarray(step + sl.cho_solve(factor, -gradient - system @ step))


def _by_products(task: LinearTask, gradient: Array, curvatures: Array, has_intercept: bool, share: float) -> Array:
    """The same by conjugate gradients, of as many columns as there are, to a share of the gradient."""
    penalised = np.append(np.ones(task.n_columns), 0.0 if has_intercept else 1.0)
    flag = 1.0 if has_intercept else 0.0

    def product(v: Array) -> Array:
        v = np.asarray(v, dtype=np.float64).reshape(-1)
        out = task.total(curvatures * (task.scores(v[:-1]) + flag * v[-1]))
        out[-1] *= flag
        return np.asarray(out + penalised * v)

    n, diagonal = len(gradient), penalised + task.column_squares(curvatures)
    operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
    inverse = LinearOperator((n, n), matvec=lambda v: np.asarray(v).reshape(-1) / diagonal, dtype=np.float64)
    return np.asarray(cg(operator, -gradient, rtol=share, maxiter=MOST_PRODUCTS, M=inverse)[0])


def _searched(
    machine: Machine, point: Array, direction: Array, z: Array, along: Array, fall: float
) -> tuple[float, float]:
    """The longest of the steps 1, 1/2, ... after which the objective is lower, and the objective.

    fall: of the objective per size of a short step; where that is less than rounding no shorter one is tried.
    """
    value, size = _value(machine, point, z), 1.0
    while size == 1 or (size > 1e-12 and size * fall > UNIT * value):
        new = _value(machine, point + size * direction, z + size * along)
        if new < value:
            return size, new
        size /= 2
    return 0.0, value


def averaged_sgd(task: LinearTask, machine: Machine, limits: Limits, record: Recorder) -> tuple[Array, float]:
    """The mean of w_1, ..., w_T, and the best intercept for it. A row of the history after every n steps."""
    n, alpha = task.n_points, task.alpha
    ends = np.cumsum(machine.bound)
    rng = np.random.default_rng(limits.seed)
    theta, late, harmonic = np.zeros(task.n_columns), np.zeros(task.n_columns), 0.0
    w, b = theta, 0.0
    sign = np.ascontiguousarray(machine.sign)
    for number in range(limits.most):
        t = np.arange(number * n + 1, (number + 1) * n + 1, dtype=np.float64)
        order = np.searchsorted(ends, rng.random(n) * ends[-1], side="right")
        sums = harmonic + np.cumsum(1 / t)  # 1 + 1/2 + ... + 1/t
        rows = np.minimum(order, n - 1).astype(np.int64)
        theta, late = core.margin_steps(task.rows, sign, rows, 1 / (alpha * t), sums, theta, late)
        harmonic = float(sums[-1])
        w = (harmonic * theta - late) / (alpha * t[-1])
        z = task.scores(w)
        b = best_intercept(machine, z)
        record.add(_value(machine, np.append(w, b), z + b), np.nan, np.nan)
        if record.steps.is_over:
            break
    return w, b
