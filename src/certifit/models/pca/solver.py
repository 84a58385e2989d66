"""Principal directions: eigenvectors of the matrix at hand, or of products with it.

Eigenvalues of a float64 matrix are known to some 1e-14 of its trace. Where a wanted one is smaller than 1e8 times
that, sums are made twofold and the singular values of a twofold root R (R'R = matrix) take their place: squaring
then costs no digits.
"""

from __future__ import annotations

import time

import numpy as np
import scipy.linalg
from scipy.special import gammaln

from certifit.data.columns import Array
from certifit.minimise.problem import Run
from certifit.minimise.steps import Steps, closed_form_row
from certifit.models.pca.row_variance import ProductVariance, RowVariance
from certifit.models.pca.task import TIE, ColumnVariance, Directions, VarianceTask, signs
from certifit.runtime import one_blas_thread
from certifit.statistics.residual import UNIT

OVERSAMPLE = 10
LARGEST_BASIS = 1 << 28  # most bytes of the directions that products are made of
Wanted = float | str | None  # directions: a number of them, a share of the variance, "mle", or all that vary


@one_blas_thread
def solve(task: VarianceTask, wanted: Wanted, *, tolerance: float, max_iter: int, seed: int) -> Run[Directions]:
    """The directions of largest variance. wanted: None (all that vary), a number, a share of the variance, "mle"."""
    started, reason = time.perf_counter(), ""
    if isinstance(task, ProductVariance):
        assert wanted is not None
        values, vectors, steps = by_products(task, int(wanted), tolerance, max_iter, seed)
        history, reason = steps.rows, steps.reason
        values, count = np.where(np.sqrt(values) > _zero_level(task, values), values, 0.0), int(wanted)
    else:
        assert isinstance(task, ColumnVariance | RowVariance)
        values, vectors, count = _by_matrix(task, wanted)
        history = [closed_form_row(time.perf_counter() - started)]
    V = completed(vectors[:, :count], count)
    kept = np.zeros(count)
    kept[: len(values[:count])] = values[:count]
    components = np.ascontiguousarray(V.T * signs(V)[:, None])
    return Run(Directions(components, kept * task.factor, task.mean, task.scale), history, reason)


def _by_matrix(task: ColumnVariance | RowVariance, wanted: Wanted) -> tuple[Array, Array, int]:
    """Variances (the largest first, in units of A), directions in columns, and how many are wanted."""
    values, vectors = _eigen(task.held, wanted)
    level = _zero_level(task, values)
    count = choose_count(wanted, values, level, task)
    needed = len(values) if wanted is None or wanted == "mle" else min(count, len(values))
    task.refine_for(float(values[needed - 1]))
    if task.is_refined and task.total > 0:
        _, singular, right = np.linalg.svd(task.root(), full_matrices=False)  # SciPy's before 1.14 takes no empty root
        values, vectors = np.zeros(len(task.held)), right.T
        values[: len(singular)] = singular**2  # a dependent column has no row in the root
        level = _zero_level(task, values)
        count = choose_count(wanted, values, level, task)
    values = np.where(np.sqrt(values) > level, values, 0.0)
    rank = int(np.count_nonzero(values[:count]))
    return values, task.lifted(vectors[:, :rank]), count


def _eigen(matrix: Array, wanted: Wanted) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors, the largest first; with a small number wanted, one more than that."""
    size = len(matrix)
    few = size > 200 and isinstance(wanted, int) and wanted < size // 4
    at = [size - wanted - 1, size - 1] if few and isinstance(wanted, int) else None
    values, vectors = scipy.linalg.eigh(matrix, subset_by_index=at, driver="evr") if few else np.linalg.eigh(matrix)
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1]


def _zero_level(task: VarianceTask, values: Array) -> float:
    """Standard deviations up to this are rounding."""
    return max(task.noise, 16 * UNIT * float(np.sqrt(len(values) * values[0])))


def choose_count(wanted: Wanted, values: Array, level: float, task: VarianceTask) -> int:
    """How many directions to keep."""
    rank = max(1, int(np.count_nonzero(np.sqrt(values) > level)))
    if wanted is None:
        return rank
    if wanted == "mle":
        return rank if rank < len(values) else most_likely_count(values, task.sum_weight)
    if isinstance(wanted, int):
        return wanted
    dropped = _tails(values[:rank])[1:]
    is_enough = dropped <= (1 - float(wanted)) * float(values[:rank].sum()) * (1 + 1e-12)
    return 1 + int(np.argmax(np.append(is_enough, True)))


def _tails(values: Array) -> Array:
    """sum of values_j over j >= i, for every i: the small ones first, so that none is lost."""
    return np.cumsum(values[::-1])[::-1]


def most_likely_count(variances: Array, n: float) -> int:
    """Minka's Bayesian choice (2000): the k in 1 .. d - 1 of largest log evidence, by Laplace's method.

    All variances are > 0: with some of 0 the evidence of the others' number is infinite.
    log p(k) = log p(U) - n/2 sum_{i<=k} log l_i - n (d-k)/2 log v + (m+k)/2 log 2 pi - log|A|/2 - k/2 log n,
    v the mean of the dropped variances, m = dk - k(k+1)/2.
    """
    d = len(variances)
    if d < 2:
        return 1
    k = np.arange(1, d)
    v = _tails(variances)[1:] / (d - k)
    dims = d - k + 1.0
    volume = -k * np.log(2.0) + np.cumsum(gammaln(dims / 2) - np.log(np.pi) * dims / 2)
    m = d * k - k * (k + 1) / 2
    evidence = volume - n / 2 * np.cumsum(np.log(variances))[:-1] - n * (d - k) / 2 * np.log(v)
    evidence += np.log(2 * np.pi) * (m + k) / 2 - k * np.log(n) / 2
    return int(k[np.argmax(evidence - _log_curvatures(variances, v) / 2 - m * np.log(n) / 2)])


def _log_curvatures(variances: Array, v: Array) -> Array:
    """sum_{i<=k} sum_{j>i} log((1/r_j - 1/r_i)(l_i - l_j)) for every k < d, r = l up to k and v_k beyond."""
    d = len(variances)
    i, j = np.triu_indices(d, 1)
    step = np.maximum(variances[i] - variances[j], 1e-15 * variances[i])  # equal ones have no logarithm
    both, first = np.zeros((d, d)), np.zeros((d, d))
    both[i, j] = np.log(step / (variances[i] * variances[j]))  # 1/l_j - 1/l_i
    first[i, j] = np.log(step)
    inside = np.cumsum(both.sum(axis=0))  # pairs i < j <= k
    out = np.cumsum(first.sum(axis=1))[:-1] + inside[:-1]
    for k in range(1, d):
        kept = variances[:k]
        step = np.maximum(kept - v[k - 1], 1e-15 * kept)
        out[k - 1] += (d - k) * float(np.log(step / (kept * v[k - 1])).sum())
    return np.asarray(out)


def by_products(task: VarianceTask, k: int, tolerance: float, max_iter: int, seed: int) -> tuple[Array, Array, Steps]:
    """Block Krylov iteration from random directions: a pass adds the residuals of the best directions so far."""
    steps, d = Steps(first=1), task.n_columns
    width = min(d, k + OVERSAMPLE)
    most = max(4 * width, min(12 * width, LARGEST_BASIS // (16 * d)))
    basis = _orthonormal(np.random.default_rng(seed).standard_normal((d, width)))
    image = task.product(basis)
    for iteration in range(1, max_iter + 1):
        inner = basis.T @ image
        values, turn = scipy.linalg.eigh((inner + inner.T) / 2)
        values, turn = np.maximum(values[::-1], 0.0), turn[:, ::-1]
        unit = float(
            np.ldexp(1.0, min(int(np.frexp(values[0])[1]), 1023))
        )  # squares of residuals in it stay within float64
        residuals = (image @ turn[:, :width] - basis @ (turn[:, :width] * values[:width])) / unit
        sizes = np.linalg.norm(residuals, axis=0)
        residual = float(sizes[:k].max() / max(values[0] / unit, np.finfo(float).tiny))
        steps.add(residual=residual)
        if residual <= tolerance / 10 or iteration == max_iter or steps.is_over:
            break
        if basis.shape[1] + width > most:
            basis, image = basis @ turn[:, : 2 * width], image @ turn[:, : 2 * width]
            turn = np.eye(basis.shape[1])
        new = _new_directions(basis, residuals[:, sizes > tolerance / 100 * (values[0] / unit)])
        if new.shape[1] == 0:
            break
        basis, image = np.hstack([basis, new]), np.hstack([image, task.product(new)])
    return values[: 2 * width], _orthonormal(basis @ turn[:, : 2 * width]), steps


def _new_directions(basis: Array, candidates: Array) -> Array:
    """What the candidates add to the basis, orthonormal."""
    room = basis.shape[0] - basis.shape[1]
    sizes = np.linalg.norm(candidates, axis=0)
    new = candidates[:, sizes > 0][:, :room] / sizes[sizes > 0][:room]
    for _ in range(2):
        new = _orthonormal(new - basis @ (basis.T @ new))
    kept = np.linalg.norm(basis.T @ new, axis=0) < 1e-8
    return np.asarray(new[:, kept])


def _orthonormal(columns: Array) -> Array:
    """The same span, each column in the span of those up to it."""
    return np.asarray(scipy.linalg.qr(columns, mode="economic")[0]) if columns.shape[1] else columns


def completed(V: Array, count: int) -> Array:
    """Orthonormal directions in which nothing varies added to V: unit vectors less what V holds of them."""
    for _ in range(count - V.shape[1]):
        left = 1.0 - (V**2).sum(axis=1)
        new = np.zeros(len(V))
        new[int(np.argmax(left > left.max() - TIE))] = 1.0
        for _ in range(2):
            new = new - V @ (V.T @ new)
            new /= np.linalg.norm(new)
        V = np.column_stack([V, new])
    return V
