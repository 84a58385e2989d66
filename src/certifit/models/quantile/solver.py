"""Quantile regression: an interior point, then steps of the simplex method from the vertex nearest to it.

At a vertex the fit meets as many rows (and zeros of penalised weights) as it has columns, so it is solved to its
rounding floor. Where several fits are best, the one of the least sum of squares of residuals is taken: a rule that
knows neither the order of rows nor how often each is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse as sp

from certifit.data.columns import Array
from certifit.minimise.problem import Run
from certifit.minimise.steps import full_row, time_is_up
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.quantile.program import Program, chosen_rows, interior_point
from certifit.models.quantile.task import QuantileTask
from certifit.runtime import one_blas_thread

MOST_PIVOTS = 20  # most pivots per column; 200 are added
MET = 1e-11  # of a row's size: a residual below it is that of a row that the fit meets
AT_BORDER = 1e-9  # of a box: nearer to its border a dual weight counts as on it
OUTSIDE = 1e-9  # of a box: a dual weight further outside asks for a step
RIDGE = 1e-9  # of the mean squares of a column, so that a least sum of squares is unique
MOST_ROUNDS = 50  # most rounds of adding rows whose side a best fit must keep
REFINEMENTS = 3
NO_LOSS = 1e-10  # of the loss of the intercept alone: a loss below it is that of a fit that meets all rows
MOST_INTERPOLATED = 2000  # most rows that are interpolated
NOTHING = 1e-20  # of the target's size: a weight below it changes no prediction and is rounding


@one_blas_thread
def solve(task: QuantileTask, max_iter: int, start: Weights | None = None) -> Run[Weights]:
    """The best fit, its history, and why it did not converge. start: where the interior point method begins."""
    if not _varies(task) or not len(task.kept) + int(task.fit_intercept):
        level = float(task.y[0]) if task.fit_intercept else 0.0
        loss = task.loss(task.y - level) / (task.sum_weight * task.scaling.y_scale)
        best = full_row(1, objective=loss, dual=loss, gap=0.0)
        return Run(task.state(np.zeros(task.source.n_features), level), [best])
    problem = _Centred.of(task)
    program = problem.program
    z = _least_squares(program, task.weight, task.quantile) if start is None else problem.from_state(start)
    unit = task.sum_weight * task.scaling.y_scale
    inner = interior_point(program, np.zeros(program.n_columns), z, max_iter, unit)
    vertex = _vertex(program, inner.z, inner.freedom)
    z, rows = _least_squares_of_best(program, vertex, task.weight)
    weights, intercept = problem.settled(z, rows)
    if not time_is_up():
        weights, intercept = _of_less_rounding(task, weights, intercept)
    reason = inner.steps.reason or f"It stopped after {max_iter} steps. Raise max_iter."
    reason = "" if inner.is_converged or vertex.is_best else reason
    return Run(task.state(weights, intercept), inner.steps.rows, reason)


def _varies(task: QuantileTask) -> bool:
    """Whether the target is other than what the intercept alone gives."""
    return bool((task.y != (task.y[0] if task.fit_intercept else 0.0)).any())


@dataclass(frozen=True)
class _Centred:
    """The program of centred columns and target: no proof needs it, so rounding in it does no harm."""

    task: QuantileTask
    program: Program
    shift: Array
    level: float

    @staticmethod
    def of(task: QuantileTask) -> _Centred:
        """Sparse columns stay where they are."""
        level = float(task.weight @ task.y) / task.sum_weight if task.fit_intercept else 0.0
        shift = np.zeros(len(task.kept))
        if task.fit_intercept and not sp.issparse(task.X):
            shift = (task.weight @ task.X[:, task.kept]) / task.sum_weight
        return _Centred(task, task.program(shift, task.y - level), shift, level)

    def from_state(self, state: Weights) -> Array:
        """The vector of the program that a state in the user's units is."""
        at = self.task.at(state)
        weights = at.weights[self.task.kept]
        if not self.task.fit_intercept:
            return weights
        return np.append(weights, at.intercept + float(self.shift @ weights) - self.level)

    def settled(self, z: Array, rows: Array) -> tuple[Array, float]:
        """Weights and intercept of all columns that meet some rows of the program to the last bits."""
        task, d = self.task, len(self.task.kept)
        weights, intercept = np.zeros(task.source.n_features), 0.0
        weights[task.kept] = z[:d]
        data = rows[rows < self.program.n_rows]
        fixed = self.program.penalised[rows[rows >= self.program.n_rows] - self.program.n_rows]
        weights[task.kept[fixed]] = 0.0
        if task.fit_intercept:
            intercept = float(z[d]) + self.level - float(self.shift @ weights[task.kept])
        free = np.setdiff1d(np.arange(d), fixed)
        places = np.append(free, d) if task.fit_intercept else free
        matrix = self.program.dense_rows(data)[:, places]
        for _ in range(REFINEMENTS if matrix.size and not time_is_up() else 0):
            step = np.linalg.lstsq(matrix, task.point(weights, intercept).r[data], rcond=None)[0]
            weights[task.kept[free]] += step[: len(free)]
            if task.fit_intercept:
                intercept += float(step[-1] - self.shift[free] @ step[: len(free)])
        weights[np.abs(weights) < NOTHING * np.abs(task.y).max()] = 0.0
        return weights, intercept


def _of_less_rounding(task: QuantileTask, weights: Array, intercept: float) -> tuple[Array, float]:
    """A fit that meets all rows has no loss but rounding: that of the smallest norm over all columns has less."""
    r, d = task.point(weights, intercept).r, task.source.n_features
    if task.is_penalised or task.loss(r) > NO_LOSS * task.loss(task.y - intercept) or len(r) > MOST_INTERPOLATED:
        return weights, intercept
    rows = np.column_stack([task.dense(np.arange(len(r))), np.full(len(r), float(task.fit_intercept))])
    other, level = np.zeros(d), 0.0
    for _ in range(REFINEMENTS + 1):
        step = np.linalg.lstsq(rows, task.point(other, level).r, rcond=None)[0]
        other, level = other + step[:d], level + float(step[d])
    return (other, level) if task.loss(task.point(other, level).r) < task.loss(r) else (weights, intercept)


def _least_squares(program: Program, weight: Array, quantile: float) -> Array:
    """Least squares, moved to the quantile of its residuals."""
    everywhere = np.concatenate([weight, np.zeros(len(program.penalised))])
    matrix = program.curvature(everywhere)
    matrix[np.diag_indices_from(matrix)] *= 1 + 1e-8
    matrix[np.diag_indices_from(matrix)] += 1e-300
    z: Array = scipy.linalg.lstsq(matrix, program.transposed(everywhere * program.target))[0]
    if program.has_intercept:
        r = program.target[: program.n_rows] - program.times(z)[: program.n_rows]
        order = np.argsort(r, kind="stable")
        reached = np.cumsum(weight[order])
        z[-1] += r[order[np.searchsorted(reached, quantile * reached[-1])]]
    return z


@dataclass(frozen=True)
class Vertex:
    """rows: those met, as many as columns; z solves them; v is the dual point that belongs to them."""

    rows: Array
    z: Array
    v: Array
    is_best: bool


class _Basis:
    """As many rows of the program as it has columns, and solves with them: penalty rows fix a weight each."""

    def __init__(self, program: Program, rows: Array) -> None:
        n = program.n_rows
        self.is_data = rows < n
        self.rows, self.fixed = rows, program.penalised[rows[~self.is_data] - n]
        self.free = np.setdiff1d(np.arange(program.n_columns), self.fixed)
        self.data = program.dense_rows(rows[self.is_data])
        self.factor = _lu(self.data[:, self.free]) if len(self.free) else None

    def primal(self, right: Array) -> Array:
        """z with A_rows z = right."""
        z = np.zeros(len(self.free) + len(self.fixed))
        z[self.fixed] = right[~self.is_data]
        if self.factor is not None:
            left = right[self.is_data] - self.data[:, self.fixed] @ z[self.fixed]
            z[self.free] = scipy.linalg.lu_solve(self.factor, left, check_finite=False)
        return z

    def dual(self, right: Array) -> Array:
        """v with A_rows'v = right."""
        v = np.zeros(len(self.rows))
        if self.factor is not None:
            v[self.is_data] = scipy.linalg.lu_solve(self.factor, right[self.free], trans=1, check_finite=False)
        v[~self.is_data] = right[self.fixed] - self.data[:, self.fixed].T @ v[self.is_data]
        return v


def _lu(matrix: Array) -> tuple[Array, Array]:
    """LAPACK's factor: of a singular matrix too, whose solutions are not finite."""
    lu, pivots, _ = scipy.linalg.lapack.dgetrf(matrix)
    return lu, pivots


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _vertex(program: Program, z: Array, freedom: Array) -> Vertex:
    """The best vertex, by the simplex method with long steps from the rows that an interior point nearly meets.

    Rows that are met without being in the basis are moved by a tiny amount, so that every step is one down.
    """
    width = program.upper - program.lower
    size = np.abs(program.target).max(initial=0.0) + np.abs(program.times(z)).max(initial=0.0)
    jitter = np.random.default_rng(0).uniform(1, 2, len(width)) * np.where(np.arange(len(width)) % 2, 1, -1)
    target = program.target.copy()
    start, basis = z, _Basis(program, chosen_rows(program, freedom))
    touched = np.zeros(len(width), dtype=bool)
    for _ in range(MOST_PIVOTS * program.n_columns + 200):
        z = basis.primal(target[basis.rows])
        if not np.isfinite(z).all():
            return Vertex(basis.rows, start, np.zeros(len(width)), False)
        r = target - program.times(z)
        r[basis.rows] = 0.0
        met = (np.abs(r) <= MET * size) & ~touched
        met[basis.rows] = False
        target[met] += (10 * MET * size) * jitter[met] - r[met]
        r[met], touched[met] = 10 * MET * size * jitter[met], True
        v = np.where(r > 0, program.upper, program.lower)
        v[basis.rows] = 0.0
        v[basis.rows] = basis.dual(-program.transposed(v))
        of_basis = v[basis.rows]
        above = np.maximum(of_basis - program.upper[basis.rows], program.lower[basis.rows] - of_basis)
        k = int(np.argmax(above / width[basis.rows]))
        if not above[k] > OUTSIDE * width[basis.rows[k]]:
            return Vertex(basis.rows, basis.primal(program.target[basis.rows]), v, True)
        entering = _entering(program, basis, r, width, k, 1.0 if of_basis[k] > 0 else -1.0, float(above[k]))
        if entering is None or time_is_up():
            break
        basis = _Basis(program, np.append(np.delete(basis.rows, k), entering))
    return Vertex(basis.rows, basis.primal(program.target[basis.rows]), v, False)


def _entering(program: Program, basis: _Basis, r: Array, width: Array, k: int, sign: float, slope: float) -> int | None:
    """The row that the fit meets where the loss is least, on the way on which row k of the basis is left."""
    unit = np.zeros(len(basis.rows))
    unit[k] = -sign
    rate = -program.times(basis.primal(unit))  # of the residuals
    rate[basis.rows] = 0.0
    ahead = np.flatnonzero(rate * r < 0)
    if not len(ahead):
        return None
    order = ahead[np.argsort(-r[ahead] / rate[ahead], kind="stable")]
    gained = np.cumsum(width[order] * np.abs(rate[order]))
    place = int(np.searchsorted(gained, slope))
    return int(order[min(place, len(order) - 1)])


def _least_squares_of_best(program: Program, vertex: Vertex, weight: Array) -> tuple[Array, Array]:
    """Of all best fits that of the least sum of squares, and the rows it meets; nearly always the vertex alone is.

    The best fits are those that meet the rows whose v is inside its box, and keep the side of all others.
    """
    width = program.upper - program.lower
    inside = np.minimum(vertex.v - program.lower, program.upper - vertex.v) > AT_BORDER * width
    met = vertex.rows[inside[vertex.rows]]
    if len(met) == len(vertex.rows) or not vertex.is_best:
        return vertex.z, vertex.rows
    return _nearest(program, vertex, met, weight)


def _rows_of(program: Program, rows: Array) -> Array:
    """Some rows of A, dense."""
    n = program.n_rows
    out = np.zeros((len(rows), program.n_columns))
    is_data = rows < n
    out[is_data] = program.dense_rows(rows[is_data])
    out[np.flatnonzero(~is_data), program.penalised[rows[~is_data] - n]] = 1.0
    return out


def _nearest(program: Program, vertex: Vertex, met: Array, weight: Array) -> tuple[Array, Array]:
    """The point of the face of best fits that is nearest to least squares, in the sum of squares of predictions."""
    everywhere = np.concatenate([weight, np.zeros(len(program.penalised))])
    matrix = program.curvature(everywhere)
    matrix[np.diag_indices_from(matrix)] += RIDGE * np.diagonal(matrix) + 1e-300
    pull = program.transposed(everywhere * (program.target - program.times(vertex.z)))
    moves = scipy.linalg.null_space(_rows_of(program, met)) if len(met) else np.eye(program.n_columns)
    if not moves.shape[1]:
        return vertex.z, vertex.rows
    try:
        root = scipy.linalg.cholesky(moves.T @ matrix @ moves)
    except np.linalg.LinAlgError:  # rounding alone tells these moves apart; the vertex is as good a best fit
        return vertex.z, vertex.rows
    moves = scipy.linalg.solve_triangular(root, moves.T, trans=1).T  # the sum of squares is |t - aim|^2
    aim = moves.T @ pull
    side = np.where(vertex.v > 0, 1.0, -1.0)
    room = side * (program.target - program.times(vertex.z))
    room[vertex.rows] = 0.0
    held = vertex.rows[~np.isin(vertex.rows, met)]
    size = np.abs(program.target).max(initial=0.0)
    for _ in range(MOST_ROUNDS):
        limits = side[held][:, None] * (_rows_of(program, held) @ moves)  # limits t <= room
        t, active = _closest(limits, room[held], aim)
        left = room - side * program.times(moves @ t)
        left[met] = 0.0
        broken = np.flatnonzero(left < -MET * size)
        broken = broken[~np.isin(broken, held)]
        if not len(broken):
            return vertex.z + moves @ t, np.concatenate([met, held[active]])
        held = np.append(held, broken[np.argsort(left[broken])][: 2 * len(t) + 10])
    return vertex.z, vertex.rows


def _closest(limits: Array, room: Array, aim: Array) -> tuple[Array, Array]:
    """The point t nearest to `aim` with limits t <= room, and which limits hold it (Lawson and Hanson's LDP)."""
    lengths = np.linalg.norm(limits, axis=1)
    lengths[lengths == 0] = 1.0
    limits, room = limits / lengths[:, None], room / lengths
    unit = max(float(np.linalg.norm(aim)), 1e-300)
    matrix = np.vstack([-limits.T, (-(room - limits @ aim) / unit)[None]])
    right = np.append(np.zeros(len(aim)), 1.0)
    u, _ = scipy.optimize.nnls(matrix, right, maxiter=100 * (len(room) + 10))
    residual = matrix @ u - right
    if not abs(residual[-1]) > 1e-14:
        return np.zeros(len(aim)), np.ones(len(room), dtype=bool)
    return aim - unit * residual[:-1] / residual[-1], u > 1e-12 * max(float(u.max()), 1e-300)
