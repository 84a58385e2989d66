"""Kernel ridge: (B + alpha I) t = S (y - b 1), B = S G S, S the root of the shares, c = S t.

Few rows: a Cholesky factor. Many: conjugate gradients, preconditioned by a randomly pivoted Cholesky factor F of B
(Chen, Epperly, Tropp and Webber 2023) through (F F' + alpha I)^-1. The intercept makes sum c = 0: with u and v the
solutions for y and for 1, b = 1'u / 1'v. Landmarks: the same objective over functions of some rows alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg

from certifit.data.columns import Array
from certifit.mathematics.kernels.algebra import Kernel
from certifit.mathematics.kernels.tiles import multiply, narrow_times, symmetric_times
from certifit.minimise.problem import Run
from certifit.minimise.steps import Steps, time_is_up
from certifit.models.kernel.task import KernelRidgeTask, KernelState
from certifit.runtime import check_memory, one_blas_thread
from certifit.statistics.residual import TINY

DIRECT = 2500  # rows up to which the matrix is factored
REFINEMENTS = 4
PIVOTS = 200  # of a factor that are drawn at a time
MOST_RANK = 600  # of the factor that preconditions
AIM = 1e-11  # of the right-hand side: a residual that conjugate gradients go to
ENOUGH = 1e-10  # of the target: a residual that is not refined
ROUNDED = 1e-14  # of its largest entry: what is left of a pivot is rounding
STRIPE = 4096  # rows whose products with landmarks are summed at a time
MORE_LANDMARKS = "Raise n_landmarks, or tol to the gap of the exact model that is enough."
Solve = Callable[[Array], Array]  # (B + alpha I)^-1 of columns


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # what leaves float64 is refused at the end
@one_blas_thread
def solve(
    task: KernelRidgeTask, max_iter: int = 1000, seed: int = 0, start: tuple[Array, float] | None = None
) -> Run[KernelState]:
    """The optimum of a task, and its history. start: coefficients and intercept that conjugate gradients begin at."""
    is_direct = task.rows.n_points <= DIRECT or not task.rows.is_proven
    if start is not None and (is_direct or task.n_landmarks is not None or task.is_constant):
        raise ValueError(
            f"start needs conjugate gradients, which fit more than {DIRECT:,} rows of a proven kernel without "
            f"landmarks. This fit of {task.rows.n_points:,} rows is solved directly: leave start out."
        )
    if task.is_constant:
        return Run(task.state(task.rows.kept(), np.zeros(task.rows.n_points), float(task.y[0])))
    if task.n_landmarks is not None:
        return _on_landmarks(task, seed)
    trace = _Trace(task, first=1 if start is None else 0)
    apply = _factored(task) if is_direct else _iterated(task, max_iter, seed)
    root = np.sqrt(task.share)
    level = task.mean if task.fit_intercept else 0.0
    if start is None:
        right = [root * (task.y - level), root] if task.fit_intercept else [root * task.y] * 2
        solutions = apply(np.column_stack(right[: 1 + task.fit_intercept]))[:, [0, -1]]
        dual, shift = _balanced(root, solutions[:, 0], solutions[:, 1], 0.0, task.fit_intercept)
        intercept = level + shift
    else:
        solutions = np.column_stack([root, apply(root[:, None])[:, 0] if task.fit_intercept else root])
        dual, intercept = start
    for _ in range(REFINEMENTS + int(start is not None)):
        residual = trace.residual(dual, intercept)
        if residual is None or (not is_direct and trace.gap <= np.square(ENOUGH) * task.null):
            break
        solution = apply((root * residual)[:, None])[:, 0]
        step, shift = _balanced(root, solution, solutions[:, 1], float(dual.sum()), task.fit_intercept)
        dual, intercept = dual + step, intercept + shift
    if not trace.steps.rows:
        raise ValueError(
            f"Coefficients leave float64: alpha = {task.alpha:g} is too small for this kernel. Raise alpha."
        )
    dual, intercept = trace.best
    return Run(task.state(task.rows.kept(), dual, intercept), trace.steps.rows, trace.steps.reason)


def _balanced(root: Array, solution: Array, ones: Array, excess: float, fit_intercept: bool) -> tuple[Array, float]:
    """c and b of solutions for a right-hand side and for 1, so that the sum of c is -excess."""
    if not fit_intercept:
        return root * solution, 0.0
    shift = (root @ solution + excess) / (root @ ones)
    return root * (solution - shift * ones), float(shift)


class _Trace:
    """Residuals y - b - Gc - alpha c / s of the points tried, the best of them, and the history of the fit."""

    def __init__(self, task: KernelRidgeTask, first: int = 1) -> None:
        self.task, self.steps = task, Steps(first=first)
        self.best: tuple[Array, float] = (np.zeros(task.rows.n_points), 0.0)
        self.gap = np.inf

    def residual(self, dual: Array, intercept: float) -> Array | None:
        """The residual of a point; None where it is no better than the one before: rounding is all that is left."""
        task = self.task
        fitted = multiply(task.rows.matrix, dual)
        errors = task.y - intercept - fitted
        residual = errors - task.alpha * dual / task.share
        gap = float(task.share @ np.square(residual)) / 2
        if not gap < 0.25 * self.gap:
            return None
        self.best, self.gap = (dual, intercept), gap
        objective = float(task.share @ np.square(errors)) / 2 + task.alpha / 2 * float(dual @ fitted)
        unit = np.float64(task.y_scale) ** -2
        value, left = float(objective * unit), float(gap * unit)
        self.steps.add(value, left, dual=value - left)
        return None if self.steps.is_over else np.asarray(residual)


def _factored(task: KernelRidgeTask) -> Solve:
    """By a factor of the matrix; of one that is singular to rounding, or not positive, by its eigenvalues."""
    root = np.sqrt(task.share)
    matrix = task.rows.matrix * root[:, None] * root
    shifted = matrix.copy()
    shifted.flat[:: len(matrix) + 1] += task.alpha
    try:
        factor = scipy.linalg.cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        values, vectors = scipy.linalg.eigh(matrix, check_finite=False)
        if task.rows.is_proven or task.rows.tested:
            values = np.maximum(values, 0.0)
        inverse = 1.0 / (values + task.alpha)
        return lambda V: np.asarray(vectors @ (inverse[:, None] * (vectors.T @ V)))
    return lambda V: np.asarray(scipy.linalg.cho_solve(factor, V, check_finite=False))


def _iterated(task: KernelRidgeTask, max_iter: int, seed: int) -> Solve:
    """By conjugate gradients."""
    kernel, points, root = task.rows.kernel, task.rows.points, np.sqrt(task.share)
    assert kernel is not None
    _, F = pivoted_factor(kernel, points, root, min(MOST_RANK, len(points) // 4), seed)
    system = ConjugateGradients(task.rows.matrix, root, F, np.array([task.alpha]), AIM)
    return lambda V: system.solve(V, max_iter)


class ConjugateGradients:
    """(B + alpha_j I) t_j = r_j for several columns, B = S G S, each with its own alpha or all with one.

    Preconditioned by (F F' + alpha I)^-1 R = (R - F (F'F + alpha I)^-1 F'R) / alpha. is_centred: B stands between
    projections I - ss', and F and the right-hand sides are at right angles to s.
    """

    def __init__(self, G: Array, root: Array, F: Array, alphas: Array, aim: float, *, is_centred: bool = False) -> None:
        self.G, self.root, self.F, self.alphas, self.aim = G, root, F, alphas, aim
        self.F_transposed, self.is_centred = np.ascontiguousarray(F.T), is_centred
        inner = multiply(F, F, transposed=True)
        if len(alphas) == 1:
            inner.flat[:: len(inner) + 1] += alphas[0]
            self.factor = scipy.linalg.cho_factor(inner, lower=True, overwrite_a=True, check_finite=False)
        else:
            self.values, self.vectors = scipy.linalg.eigh(inner, check_finite=False)

    def _inner(self, V: Array, alphas: Array) -> Array:
        """(F'F + alpha I)^-1 V."""
        if len(self.alphas) == 1:
            return np.asarray(scipy.linalg.cho_solve(self.factor, V, check_finite=False))
        inverse = 1.0 / (np.maximum(self.values, 0.0)[:, None] + alphas)
        return np.asarray(self.vectors @ (inverse * (self.vectors.T @ V)))

    def _preconditioned(self, R: Array, alphas: Array) -> Array:
        inner = self._inner(narrow_times(self.F_transposed, R), alphas)
        return np.asarray((R - narrow_times(self.F, inner)) / alphas)

    def _times(self, V: Array, alphas: Array) -> Array:
        root = self.root[:, None]
        product = root * symmetric_times(self.G, root * V)
        if self.is_centred:
            product -= root * (self.root @ product)
        return np.asarray(product + alphas * V)

    def solve(self, right: Array, max_iter: int = 1000) -> Array:
        """Solutions for every column of the right-hand side, to `aim` of its size; columns leave as they are done."""
        X = np.zeros_like(right)
        left = np.flatnonzero(np.linalg.norm(right, axis=0) > 0)
        alphas = np.broadcast_to(self.alphas, right.shape[1])[left]
        aim = self.aim * np.linalg.norm(right[:, left], axis=0)
        R = right[:, left]
        P = self._preconditioned(R, alphas)
        before = np.einsum("ij,ij->j", R, P)
        for _ in range(max_iter if len(left) else 0):
            product = self._times(P, alphas)
            step = before / np.maximum(np.einsum("ij,ij->j", P, product), TINY)
            X[:, left] += step * P
            R = R - step * product
            on = np.linalg.norm(R, axis=0) > aim
            if not on.any() or time_is_up():
                break
            if not on.all():
                R, P, left, alphas, aim, before = R[:, on], P[:, on], left[on], alphas[on], aim[on], before[on]
            Z = self._preconditioned(R, alphas)
            after = np.einsum("ij,ij->j", R, Z)
            P, before = Z + after / np.maximum(before, TINY) * P, after
        return X


def pivoted_factor(kernel: Kernel, points: Array, root: Array, rank: int, seed: int) -> tuple[Array, Array]:
    """Numbers of rows and F with F F' near S G S: rows are drawn in proportion to what the rows before leave of them.

    Some rows are drawn at a time; of those the ones that repeat others are left out.
    """
    rng = np.random.default_rng(seed)
    left = np.square(root) * np.maximum(kernel.diagonal(points), 0.0)
    smallest = ROUNDED * float(left.max())
    F, chosen = np.zeros((len(points), rank)), np.zeros(0, dtype=np.int64)
    while len(chosen) < rank and (left > smallest).any():
        k = len(chosen)
        chance = np.where(left > smallest, left, 0.0)
        drawn = np.unique(rng.choice(len(points), size=min(PIVOTS, rank - k), p=chance / chance.sum()))
        columns = kernel.matrix(points, np.ascontiguousarray(points[drawn])) * root[:, None] * root[drawn]
        if k:
            columns -= multiply(np.ascontiguousarray(F[:, :k]), np.ascontiguousarray(F[drawn, :k].T))
        inner, kept = _independent(columns[drawn], left[drawn])
        new = scipy.linalg.solve_triangular(inner, columns[:, kept].T, lower=True, check_finite=False).T
        F[:, k : k + len(kept)] = new
        left = np.maximum(left - np.einsum("ij,ij->i", new, new), 0.0)
        left[drawn] = 0.0
        chosen = np.append(chosen, drawn[kept])
    return chosen, np.ascontiguousarray(F[:, : len(chosen)])


def _independent(matrix: Array, sizes: Array) -> tuple[Array, Array]:
    """The Cholesky factor of as many rows as do not repeat others, and their places."""
    lower, pivots, rank, _ = scipy.linalg.lapack.dpstrf(matrix, lower=1, tol=1e-10 * float(sizes.max()))
    return np.tril(lower[:rank, :rank]), pivots[:rank] - 1


def _on_landmarks(task: KernelRidgeTask, seed: int) -> Run[KernelState]:
    """The least of the objective over functions of landmarks: ridge on Phi = k(x, landmarks) L^-T, k(l, l) = LL'."""
    rows, m = task.rows, int(task.n_landmarks or 0)
    if rows.kernel is None:
        raise ValueError("n_landmarks needs a kernel that can be computed. Got kernel='precomputed'.")
    check_memory(8.0 * (rows.n_points * m + 3 * m * m), f"{m:,} landmarks of {rows.n_points:,} rows", "Use fewer.")
    chosen, _ = pivoted_factor(rows.kernel, rows.points, np.sqrt(task.share), m, seed)
    chosen = chosen if len(chosen) else np.zeros(1, dtype=int)  # k(x, x) is 0 in every row: f is 0 on any of them
    points = np.ascontiguousarray(rows.points[np.sort(chosen)])
    values, vectors = scipy.linalg.eigh(rows.kernel.matrix(points), check_finite=False)
    kept = values > len(points) * 2.0**-50 * values[-1]
    basis = vectors[:, kept] / np.sqrt(values[kept])  # features: k(x, landmarks) basis, orthonormal for the penalty
    mean, second, cross = _moments(task, points, basis)
    if task.fit_intercept:
        second, cross = second - np.outer(mean, mean), cross - mean * task.mean
    second.flat[:: len(second) + 1] += task.alpha
    weights = _ridge_weights(second, cross)
    intercept = task.mean - float(mean @ weights) if task.fit_intercept else 0.0
    return Run(task.state(points, basis @ weights, intercept), reason=MORE_LANDMARKS)


def _ridge_weights(matrix: Array, right: Array) -> Array:
    """What solves the normal equations; of least norm where the penalty is lost beside the squares of the features."""
    if not len(right):
        return right
    try:
        return np.asarray(scipy.linalg.solve(matrix, right, assume_a="pos", check_finite=False))
    except scipy.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(matrix, right)[0])


def _moments(task: KernelRidgeTask, points: Array, basis: Array) -> tuple[Array, Array, Array]:
    """Means of the features, of their products with each other and with the target; stripes of rows at a time."""
    kernel, size = task.rows.kernel, basis.shape[1]
    assert kernel is not None
    mean, second, cross = np.zeros(size), np.zeros((size, size)), np.zeros(size)
    for begin in range(0, task.rows.n_points, STRIPE):
        rows = slice(begin, begin + STRIPE)
        features = multiply(kernel.matrix(task.rows.points[rows], points), basis)
        weighted = features * task.share[rows][:, None]
        mean += weighted.sum(axis=0)
        cross += weighted.T @ task.y[rows]
        second += multiply(features, weighted, transposed=True)
    return mean, second, cross
