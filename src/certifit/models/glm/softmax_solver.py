"""L-BFGS for softmax regression, in the units of the columns' own matrix; Newton's method where the Hessian is small.

The Hessian at equal chances is (1/K) (I - 11'/K) x (X'X / n) + alpha I. Steps start from its inverse,

    M = (1 - 1/K) / K (x, 1)'(x, 1) / n + alpha I,   one factor for all classes,

and are corrected by the last changes of the gradient, so columns of unlike size and correlated ones cost no steps.
Of more columns, such as words, products with the Hessian take the place of M: Newton steps by conjugate gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from certifit.data.columns import Array
from certifit.data.source import is_sparse
from certifit.minimise.problem import Run
from certifit.minimise.steps import Steps, unreported
from certifit.models.gathered import GatheredRows, is_wide, row_count
from certifit.models.glm.newton import (
    ARMIJO,
    NOISE,
    Chord,
    Curved,
    descend,
    descend_by_products,
    first_lower,
    length,
    patience,
    sampled_rows,
)
from certifit.models.glm.softmax_task import SoftmaxTask, SoftmaxWeights
from certifit.runtime import one_blas_thread
from certifit.statistics.factor import Curvature, hold_intercepts
from certifit.statistics.moments import mean_squares
from certifit.statistics.softmax import columns_matrix, product

CHANGES = 30  # of the gradient that are remembered
MOST_COLUMNS = 1500  # of a matrix of columns that is worth its cost
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
    if task.shape[0] > MOST_COLUMNS:
        point = descend_by_products(WideSoftmax(task), tol, max_iter, steps, step_tol, point)
    elif task.size > SMALL:
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
        gap = gap_estimate(task, at.gradient, decrement)
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


class WideSoftmax:
    """A softmax regression of very many columns: value, gradient, products with the Hessian."""

    def __init__(self, task: SoftmaxTask) -> None:
        self.task = task

    def start(self) -> Array:
        """No weights; the intercepts of the classes' shares."""
        return self.task.start()

    def evaluate(self, point: Array) -> Curved:
        """One pass."""
        at = self.task.evaluate(point)
        return Curved(at.value, at.gradient, point)

    def product(self, at: Curved, direction: Array) -> Array:
        """The Hessian times a direction: one pass."""
        task, shape = self.task, self.task.shape
        total = product(task.source, task.scaling, at.curvatures.reshape(shape), direction.reshape(shape))
        along: Array = total.ravel() / task.sum_weight + task.pulls * direction
        if not task.fit_intercept:
            along[-task.n_classes :] = 0.0
        return along

    def diagonal(self, at: Curved) -> Array:
        """Of the Hessian where all chances are the classes' shares; 1 where nothing curves."""
        shares, l2 = self.task.shares, self.task.l2[:, None]
        entries = self._squares[:, None] * (shares * (1 - shares)) + l2
        return np.where(entries > 0, entries, 1.0).ravel()

    @cached_property
    def _squares(self) -> Array:
        return np.append(mean_squares(self.task.source, self.task.scaling), 1.0)

    def gap(self, at: Curved, units: Array) -> float:
        """What the duality gap is about; half the decrement by the diagonal where a column has no penalty."""
        with np.errstate(over="ignore"):
            return gap_estimate(self.task, at.gradient, float(np.sum(np.square(at.gradient) / units)))

    def finished(self, point: Array, at: Curved) -> Array:
        """The point: the proof finds the intercepts of its own."""
        return point


def gap_estimate(task: SoftmaxTask, gradient: Array, decrement: float) -> float:
    """|gradient|^2 / (2 alpha), what the duality gap is once the intercepts are best; half the decrement without.

    In the units of large columns a penalty may be 0 to float64: it counts as none.
    """
    if not (task.l2[:-1] > 0).all():
        return decrement / 2
    squares = np.square(gradient.reshape(task.shape))
    with np.errstate(over="ignore"):
        columns = float(np.sum(squares[:-1].sum(axis=1) / task.l2[:-1])) / 2
    shares = task.shares
    others = np.maximum(1 - shares, shares.min())  # of a share that is 1 to float64
    return columns + SURER * float(np.sum(squares[-1] / (shares * others))) / 2


def _first_inverse(task: SoftmaxTask) -> Callable[[Array], Array]:
    """M^-1 of every class."""
    matrix = (1 - 1 / task.n_classes) / task.n_classes * _columns_matrix(task)
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


# Paths of squares on rows that can be held, rotated into their span (models/glm/softmax_folds.py). A fit of a few rows
# takes less time as products of matrices than as passes of the task over a source.

MOST_TERMS = 5e9  # of the products of all rows, up to which their span is found sooner than products with a Hessian
FEW = 400  # entries of a point for which a Hessian is cheap
DONE, ROUNDING = 1e-14, 1e-16  # a fit ends where its decrement is so small, of the objective or at all
SHORTEST = 1e-12  # of a step
MOST_STEPS = 1000  # of one fit
FALLING = np.array([1e3, 1e2, 1e1, 1.0])  # times alpha: each fit begins at the one before


@one_blas_thread
def rotated_start(task: SoftmaxTask) -> Array | None:
    """The point of a fit with more columns than rows, but for roundings; None where steps by products cost less."""
    is_plain = task.is_smooth and task.alpha > 0 and bool((task.strengths.factors == 1).all())
    is_plain = is_plain and task.strengths.l1_ratio == 0 and not is_sparse(task.source.first_block().X)
    is_quick = row_count(task.source) ** 2 * task.source.n_features <= MOST_TERMS
    rows = GatheredRows.of(task.source) if is_plain and is_quick else None
    if rows is None:
        return None
    trained = rows.weight > 0
    X, shares = rows.X[trained], rows.weight[trained] / rows.weight[trained].sum()
    with np.errstate(over="ignore", invalid="ignore"):
        centre = shares @ X if task.fit_intercept else np.zeros(X.shape[1])
        Z = (X - centre) / task.spreads
    if not np.isfinite(Z).all():
        return None
    V = np.linalg.svd(Z, full_matrices=False)[2]
    Z = np.column_stack([Z @ V.T, np.ones(len(Z))] if task.fit_intercept else [Z @ V.T])
    path = RotatedPath(Z, rows.codes[trained], shares, task.n_classes, task.fit_intercept)
    *_, point = path.fits(task.alpha * FALLING, MOST_STEPS)
    with np.errstate(over="ignore", invalid="ignore"):
        coef = point[: len(V)].T @ V / task.spreads
        intercept = point[-1] - coef @ centre if task.fit_intercept else np.zeros(task.n_classes)
        start = task.to_point(SoftmaxWeights(coef, intercept))
    return start if np.isfinite(start).all() else None


class RotatedPath:
    """Softmax fits of one training set along alphas. A point is columns x classes; the last column may be the 1."""

    def __init__(self, Z: Array, codes: Array, shares: Array, n_classes: int, has_intercept: bool) -> None:
        self.Z, self.codes, self.shares, self.n_classes = Z, codes, shares, n_classes
        self.shape = Z.shape[1], n_classes
        self.penalised = np.ones((Z.shape[1], 1))
        if has_intercept:
            self.penalised[-1] = 0.0
        self.has_intercept = has_intercept
        self._rows = np.arange(len(codes))

    def fits(self, alphas: Array, max_iter: int) -> Iterator[Array]:
        """The minimisers at falling alphas, each found from the one before."""
        point = np.zeros(self.shape[0] * self.n_classes)
        for alpha in alphas:
            point = self._minimised(point, float(alpha), max_iter)
            yield point.reshape(self.shape)

    def _minimised(self, point: Array, alpha: float, max_iter: int) -> Array:
        """Steps of the Hessian at the start (of many entries: at equal chances), corrected by what the gradient did."""
        value, gradient, chances = self._evaluated(point, alpha)
        steps = self._steps(chances, alpha)
        for _ in range(max_iter):
            step = steps.solve(gradient)
            decrement = float(gradient @ step)
            if not decrement > DONE * value + ROUNDING:
                break
            length = 1.0
            while length >= SHORTEST:
                trial = point - length * step
                tried = self._evaluated(trial, alpha)
                if tried[0] <= value - ARMIJO * length * decrement:
                    break
                length /= 2
            else:
                break
            steps.learn(trial - point, tried[1] - gradient)
            point, (value, gradient, chances) = trial, tried
        return point

    def _steps(self, chances: Array, alpha: float) -> Chord:
        n_columns, n_classes = self.shape
        if n_columns * n_classes <= FEW:
            root, fault = dpotrf(self._hessian(chances, alpha), lower=True, overwrite_a=True)
            if not fault:
                return Chord(lambda right: dpotrs(root, right, lower=True)[0], CHANGES)
        return self._equal_chances(alpha)

    def _evaluated(self, point: Array, alpha: float) -> tuple[float, Array, Array]:
        """The objective, its gradient, and the chances of the classes."""
        at = point.reshape(self.shape)
        scores = self.Z @ at
        scores -= scores.max(axis=1, keepdims=True)
        chances = np.exp(scores)
        sums = chances.sum(axis=1)
        losses = np.log(sums) - scores[self._rows, self.codes]
        chances /= sums[:, None]
        slopes = chances.copy()
        slopes[self._rows, self.codes] -= 1.0
        pull = alpha * self.penalised * at
        value = float(self.shares @ losses) + float(np.vdot(pull, at)) / 2
        return value, (self.Z.T @ (self.shares[:, None] * slopes) + pull).ravel(), chances

    def _hessian(self, chances: Array, alpha: float) -> Array:
        """Block (k, l) is sum w p_k (1_kl - p_l) z z'; intercepts common to all classes, of no gradient, are held."""
        n_columns, n_classes = self.shape
        whole = np.empty((n_columns, n_classes, n_columns, n_classes))
        for k in range(n_classes):
            weighted = self.Z.T * (self.shares * chances[:, k])
            for m in range(k, n_classes):
                whole[:, k, :, m] = weighted @ (self.Z * (float(k == m) - chances[:, m : m + 1]))
                whole[:, m, :, k] = whole[:, k, :, m]
        if self.has_intercept:
            whole[-1, :, -1, :] += 1.0 / n_classes**2
        matrix = whole.reshape(n_columns * n_classes, -1)
        matrix[np.diag_indices(len(matrix))] += alpha * np.repeat(self.penalised, n_classes)
        return matrix

    def _equal_chances(self, alpha: float) -> Chord:
        """The diagonal at equal chances: rotated columns are uncorrelated, but for weights of rows that differ."""
        often = (1 - 1 / self.n_classes) / self.n_classes
        diagonal = often * (self.shares @ np.square(self.Z)) + alpha * self.penalised[:, 0]
        units = diagonal[:, None]
        return Chord(lambda right: (right.reshape(self.shape) / units).ravel(), CHANGES, is_rough=True)
