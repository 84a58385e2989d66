"""L-BFGS for softmax regression, in the units of the columns' own matrix; Newton's method where it is small.

The Hessian at equal chances is (1/K) (I - 11'/K) x (X'X / n) + alpha I. Steps start from its inverse,

    M = (1 - 1/K) / K (x, 1)'(x, 1) / n + alpha I,   one factor for all classes,

and are corrected by the last changes of the gradient, so columns of unlike size and correlated ones cost no steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Memory
from certifit.minimise.problem import Run
from certifit.minimise.steps import Steps, unreported
from certifit.models.gathered import GatheredRows, is_wide
from certifit.models.glm.l1_solver import ProxNewton
from certifit.models.glm.newton import NOISE, Chord, descend, first_lower, length, patience, sampled_rows
from certifit.models.glm.softmax_task import SoftmaxTask, SoftmaxWeights
from certifit.models.glm.task import Evaluated, hold_intercepts
from certifit.models.lasso.task import Strengths
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
SHARE = 0.4  # of the tolerance that is asked of the estimated gap: the certificate adds roundings
SURER = 10.0  # curvature by an intercept can be so much less than that of the classes' shares


@np.errstate(over="ignore", invalid="ignore")  # a step that overflows has no objective, and is not taken
@one_blas_thread
def solve(task: SoftmaxTask, tol: float, max_iter: int, step_tol: float = 0.0) -> Run[SoftmaxWeights]:
    """The minimiser: small problems to the rounding floor, others until the gap is within the tolerance."""
    steps, start = Steps(), None
    if is_wide(task.source):
        with unreported():
            start = rotated_start(task)
    point = task.start() if start is None else start
    if task.size > SMALL:
        point = _by_gradients(task, point, tol, max_iter, steps, step_tol=step_tol)
    else:
        point = _by_gradients(task, point, tol, min(max_iter, MOST_ROUGH), steps, ROUGH)
        point = descend(task, point, max_iter, steps, step_tol, runaway=patience(task))
    return Run(task.to_state(point), steps.rows, steps.reason)


def _by_gradients(
    task: SoftmaxTask,
    point: Array,
    tol: float,
    max_iter: int,
    steps: Steps,
    rough: float = 0.0,
    step_tol: float = 0.0,
) -> Array:
    """L-BFGS steps until the gap is within the tolerance, or the decrement is rough relative to the objective."""
    chord = Chord(_first_inverse(task), CHANGES, is_rough=True)
    at = task.evaluate(point)
    while len(steps.rows) < max_iter and not steps.is_over:
        step = chord.solve(at.gradient)
        decrement = max(float(at.gradient @ step), 0.0)
        gap = gap_estimate(task, at, decrement)
        steps.add(at.value, gap, gradient_norm=length(at.gradient), step=length(step))
        is_done = decrement <= rough * at.value if rough else gap <= SHARE * tol * at.value
        if is_done or decrement <= NOISE * at.value:
            return point
        lower = first_lower(task, point, at, step, decrement)
        if lower is None:
            return point
        chord.learn(lower[0] - point, lower[1].gradient - at.gradient)
        moved = length(lower[0] - point)
        point, at = lower
        if moved < step_tol:
            return point
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


def _first_inverse(task: SoftmaxTask) -> Callable[[Array], Array]:
    """M^-1 of every class, or where there are many columns the inverse of its diagonal."""
    often = (1 - 1 / task.n_classes) / task.n_classes
    if task.shape[0] > MOST_COLUMNS:
        diagonal = often * np.append(mean_squares(task.source, task.scaling), 1.0) + task.l2
        units = np.where(diagonal > 0, diagonal, 1.0)[:, None]
        return lambda gradient: (gradient.reshape(task.shape) / units).ravel()
    matrix = often * _columns_matrix(task)
    matrix[np.diag_indices(len(matrix))] += task.l2
    if not task.fit_intercept:
        hold_intercepts(matrix, 1)
    inverse = Curvature(matrix).inverse
    return lambda gradient: (inverse @ gradient.reshape(task.shape)).ravel()


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


# Paths of penalties on rows that can be held, and more columns than rows.
#
# With z = (x - m) / s, m and s means and units of columns, and Z = U S V' their singular values, every optimum of an L2
# penalty is V a: a penalised weight outside the span of the rows only costs. So each training set is rotated once,
#
#     minimise over a, b:   sum_i w_i [log sum_k e^(t_ik) - t_iy] + alpha/2 |a|^2,   t_i = b + a'V'z_i,   sum_i w_i = 1
#
# and the fits of all alphas, each from the one before, have as many columns as there are rows at most.

DONE = 1e-14  # a fit of a path ends where its decrement is so small, relative to the objective
FEW = 400  # entries of a point for which fits of a path make a Hessian each
FALLING = np.array([1e3, 1e2, 1e1, 1.0])  # times alpha: each fit begins at the one before
MOST_STEPS = 1000  # of one fit


def path(task: SoftmaxTask, alphas: Array, max_iter: int) -> Iterator[SoftmaxWeights]:
    """The minimisers at falling alphas, each found from the one before."""
    point, kinked = task.start(), ProxNewton(task.start(), patience(task))
    for alpha in alphas:
        at = task.at_strength(float(alpha))
        if not at.is_smooth:
            kinked.descend(at, max_iter, Steps())
            point = kinked.point
        elif at.size > FEW:
            point = _by_gradients(at, point, 0.0, max_iter, Steps(), DONE)
        else:
            point = descend(at, point, max_iter, Steps(), enough=DONE, runaway=patience(at))
        yield at.to_state(point)


@dataclass(frozen=True)
class RotatedRows:
    """V'z of every row."""

    Z: Array
    V: Array
    centre: Array
    units: Array

    @staticmethod
    def of(X: Array, trained: Array, centre: Array, units: Array) -> RotatedRows | None:
        """In the span of the rows that are trained on; None where numbers leave float64."""
        with np.errstate(over="ignore", invalid="ignore"):
            Z = (X - centre) / units
        if not np.isfinite(Z).all():
            return None
        _, sizes, V = np.linalg.svd(Z[trained], full_matrices=False)
        V = V[sizes > np.finfo(np.float64).eps * sizes.max(initial=0.0)]
        return RotatedRows(Z @ V.T, V, centre, units)

    def task(self, codes: Array, weight: Array, n_classes: int, alpha: float, fit_intercept: bool) -> SoftmaxTask:
        """Softmax regression of the rows that have a weight."""
        trained = weight > 0
        source = Memory(self.Z[trained], codes[trained].astype(np.float64), weight[trained])
        return SoftmaxTask(source, n_classes, Strengths.plain(alpha, len(self.V)), fit_intercept)


@one_blas_thread
def rotated_start(task: SoftmaxTask) -> Array | None:
    """The point of a fit with more columns than rows, but for roundings; None where the rows cannot be held."""
    is_plain = task.is_smooth and task.alpha > 0 and bool((task.strengths.factors == 1).all())
    rows = GatheredRows.of(task.source) if is_plain and task.strengths.l1_ratio == 0 else None
    if rows is None:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        centre = rows.weight @ rows.X / rows.weight.sum() if task.fit_intercept else np.zeros(rows.X.shape[1])
    rotated = RotatedRows.of(rows.X, rows.weight > 0, centre, task.spreads)
    if rotated is None:
        return None
    alphas = task.alpha * FALLING
    small = rotated.task(rows.codes, rows.weight, task.n_classes, float(alphas[0]), task.fit_intercept)
    *_, state = path(small, alphas, MOST_STEPS)
    with np.errstate(over="ignore", invalid="ignore"):
        coef = state.coef @ rotated.V / task.spreads
        intercept = state.intercept - coef @ centre if task.fit_intercept else state.intercept
        start = task.to_point(SoftmaxWeights(coef, intercept))
    return start if np.isfinite(start).all() else None
