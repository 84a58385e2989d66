"""A separator of wide margin for the perceptron's bound: the hard margin of the augmented examples.

    minimise |w|^2 / 2   subject to   w'a_i >= 1,   a_i = y_i (x_i, 1)

Any separator proves a bound, so nothing here need be trusted: the certificate measures the margin of what comes back.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cython_blas

from certifit.data.columns import Array
from certifit.models.kernel.task import dense_rows
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.perceptron.task import PerceptronTask, signs_of
from certifit.runtime import core, n_threads, one_blas_thread

MOST_NUMBERS = 100_000  # rows x columns: beyond it only where it is asked for
MOST_STEPS = 200_000
MOST_ROUNDS = 200
VIOLATION = 1e-9
WORKING_SET = 512


@one_blas_thread
def widest(task: PerceptronTask) -> Weights | None:
    """Weights of a margin near the largest; None where none are found."""
    block = task.source.gather()
    X, sign = dense_rows(block.X), signs_of(block)
    signed = sign[:, None] * (np.column_stack([X, np.ones(len(X))]) if task.fit_intercept else X)
    power = np.ldexp(1.0, -int(np.frexp(np.abs(signed).max(initial=0.0))[1]))
    A = np.ascontiguousarray(signed * power)
    with np.errstate(all="ignore"):
        w = A.T @ _multipliers(A)
        w = w / np.abs(w).max(initial=0.0)
    if not np.isfinite(w).all():
        return None
    return Weights(w[:-1].copy(), float(w[-1])) if task.fit_intercept else Weights(w, 0.0)


def _multipliers(A: Array) -> Array:
    """a >= 0 of the dual: maximise sum_i a_i - |sum_i a_i A_i|^2 / 2; sharpened on its support."""
    n, ones = len(A), np.ones(len(A))
    pool = core.margin_pool(cython_blas.__pyx_capi__["dgemm"], False, "linear", 0.0, 1, A, WORKING_SET)
    none, rows = np.zeros(0, dtype=np.uint32), np.arange(n, dtype=np.uint32)
    a = core.margin_solve(
        pool, rows, ones, ones, np.full(n, np.inf), np.zeros(n), np.zeros(n), none,
        False, VIOLATION, MOST_STEPS, MOST_ROUNDS, WORKING_SET, n_threads(),
    )[0]  # fmt: skip
    support = np.flatnonzero(a)
    if 0 < len(support) <= WORKING_SET:
        sharp = np.linalg.lstsq(A[support] @ A[support].T, np.ones(len(support)), rcond=None)[0]
        if np.isfinite(sharp).all() and (sharp >= 0).all():
            a = np.zeros(n)
            a[support] = sharp
    return np.asarray(a)
