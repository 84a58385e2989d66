"""Kernel PCA: what is maximised, and the directions that do.

With shares s and phi the map of the kernel, A = sum_i s_i (phi(x_i) - m)(phi(x_i) - m)' has the non-zero eigenvalues of
B = S P G P' S, S the roots of the shares, P = I - 1 s': B v = l v gives the direction sum_i c_i phi(x_i) of length 1,
c = P' S v / sqrt(l), and the score c'(k(X, x) - G s) of a point x. Where few directions are wanted, only products with
B are made.
"""

from __future__ import annotations

import time
from functools import cached_property

import numpy as np
import scipy.linalg

from certifit.data.columns import Array
from certifit.mathematics.kernels.basic import Gaussian
from certifit.mathematics.kernels.tiles import multiply, symmetric_times
from certifit.minimise.problem import Run
from certifit.minimise.steps import full_row
from certifit.models.kernel.task import KernelRows
from certifit.models.pca.solver import by_products, completed
from certifit.models.pca.task import Directions, VarianceTask, signs
from certifit.runtime import one_blas_thread
from certifit.statistics.residual import TINY, UNIT

EXACT_UP_TO = 1000  # rows whose matrix has all its eigenvalues known
TERMS = 1024  # of a sum that are added before they join the others
HARDLY_APART = 0.99  # k(x, z) of all rows above it: the matrix is 1 but for a few digits
STILL = 2.0**-30  # of the largest k(x, x): no larger variance is called rounding


class KernelVariance(VarianceTask):
    """Rows in the feature space of a kernel; a direction is known by one number per row."""

    def __init__(self, rows: KernelRows) -> None:
        self.rows = rows
        self.center, self.standardize, self.ddof, self.unit = True, False, 0.0, 1.0
        self.n_rows, self.sum_weight = rows.n_rows, rows.sum_weight
        self.root: Array = np.sqrt(rows.share)
        n, sizes = rows.n_points, rows.sizes(rows.points)
        # |S E S| <= max |E_ij|, since the shares add up to 1; P doubles it on each side.
        entries = 0.0 if rows.kernel is None else rows.kernel.largest_error(rows.points)
        self.matrix, size = rows.matrix, float(rows.share @ np.square(sizes))
        if isinstance(rows.kernel, Gaussian) and self.matrix.min() > HARDLY_APART:  # what P takes off is not there
            self.matrix, entries = rows.kernel.less_one(rows.points)
            size = float(np.abs(self.matrix).max())
        self.means: Array = multiply(self.matrix, rows.share)  # of k(x_i, x) over the rows x
        self.level = float(rows.share @ self.means)
        diagonal = np.diagonal(self.matrix) - 2 * self.means + self.level
        self.total = float(rows.share @ np.maximum(diagonal, 0.0))
        summed = (min(n, TERMS) + n / TERMS + 16) * UNIT * size
        # Products of small rows keep no bits below the smallest normal number.
        self.error = 4 * entries + 4 * summed + (TINY if sizes.any() else 0.0)
        self.noise = float(np.sqrt(self.error))
        # Rows that do not vary; a rounding that is large beside k(x, x) says nothing of them.
        if self.total <= 2 * self.error <= STILL * float(np.square(sizes).max(initial=0.0)):
            self.total = self.error = 0.0  # `noise` still says what rounding is
        self.mean, self.scale = np.zeros(n), np.ones(n)

    @property
    def n_columns(self) -> int:
        """One number per row."""
        return self.rows.n_points

    def product(self, directions: Array) -> Array:
        """B V."""
        if self.total == 0:
            return np.zeros(directions.shape)
        V = self.root[:, None] * directions
        V = V - self.rows.share[:, None] * V.sum(axis=0)
        image = symmetric_times(self.matrix, V)
        return np.asarray(self.root[:, None] * (image - self.rows.share @ image))

    @cached_property
    def held(self) -> Array | None:
        """B of few rows."""
        if self.n_columns > EXACT_UP_TO:
            return None
        B = self.product(np.eye(self.n_columns))
        return np.asarray((B + B.T) / 2)

    @property
    def is_refined(self) -> bool:
        """There are no better sums."""
        return True

    def refine(self) -> None:
        """Nothing is finer than it is."""

    def coefficients(self, directions: Array, variances: Array) -> Array:
        """c of every direction, in columns; 0 where it has no variance."""
        with np.errstate(divide="ignore"):
            lengths = np.where(variances > 0, 1.0 / np.sqrt(variances), 0.0)
        c = self.root[:, None] * directions.T * lengths
        return np.asarray(c - self.rows.share[:, None] * c.sum(axis=0))


@one_blas_thread
def solve(task: KernelVariance, wanted: int | None, *, tolerance: float, max_iter: int, seed: int) -> Run[Directions]:
    """The directions of largest variance; wanted None: all that have one."""
    started, n = time.perf_counter(), task.n_columns
    if wanted is None or n <= EXACT_UP_TO or 10 * wanted > n:
        B = task.product(np.eye(n))
        at = None if wanted is None else [n - wanted, n - 1]
        values, vectors = scipy.linalg.eigh((B + B.T) / 2, subset_by_index=at, check_finite=False)
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        history, reason = [full_row(1, residual=0.0, seconds=time.perf_counter() - started)], ""
    else:
        values, vectors, steps = by_products(task, wanted, tolerance, max_iter, seed)
        history, reason = steps.rows, steps.reason
    level = max(task.error, 16 * n * UNIT * float(values[0]))
    values = np.where(values > level, values, 0.0)
    count = max(1, int(np.count_nonzero(values))) if wanted is None else wanted
    V = completed(vectors[:, : min(count, int(np.count_nonzero(values)))], count)
    components = np.ascontiguousarray(V.T * signs(V)[:, None])
    return Run(Directions(components, values[:count] * task.factor, task.mean, task.scale), history, reason)
