"""A'A of few columns over many rows: by the core up to some thousand columns, else by the BLAS of SciPy.

One thread per block: the bits are the same for any number of threads.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cython_blas

from certifit.data.columns import Array
from certifit.data.source import tree_sum
from certifit.runtime import build, core, n_threads, one_blas_thread

DSYRK: object = cython_blas.__pyx_capi__["dsyrk"]
BLOCK = 4096  # rows whose products are summed before sums are added, about
MOST_OWN = 1024 if build == "avx2" else 0  # columns up to which the products of the core take less time than the BLAS


@one_blas_thread
def inner_products(A: Array) -> Array:
    """A'A. float64 in C order is read where it lies, anything else block by block, with the same bits."""
    size = _block_rows(A)
    if A.flags.c_contiguous and A.dtype == np.float64:
        return _products(A, size)
    blocks = (A[begin : begin + size] for begin in range(0, len(A), size))
    return np.asarray(tree_sum(_products(np.ascontiguousarray(block, dtype=np.float64), size) for block in blocks))


def _products(A: Array, size: int) -> Array:
    n = A.shape[1]
    if n > MOST_OWN:
        return np.asarray(core.inner_products(DSYRK, A, size, n_threads()))
    ones, zeros = np.ones(n), np.zeros(n)
    sums, _ = core.gram([("dense", A)], None, None, ones, zeros, 1.0, 0.0, 1.0, size, False, n_threads())
    return np.asarray(sums[:n, :n])


def _block_rows(A: Array) -> int:
    """An even number of blocks, which two threads share."""
    n_blocks = max(2 * round(len(A) / (2 * BLOCK)), 1)
    return max(-(-len(A) // n_blocks), int(A.shape[1]))
