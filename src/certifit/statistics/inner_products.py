"""A'A of few columns over many rows, by the BLAS of SciPy, one thread per block.

The bits are the same for any number of threads.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cython_blas

from certifit.data.columns import Array
from certifit.data.source import tree_sum
from certifit.runtime import core, n_threads, one_blas_thread

DSYRK: object = cython_blas.__pyx_capi__["dsyrk"]
BLOCK = 2048  # rows whose products are summed before sums are added, at least


@one_blas_thread
def inner_products(A: Array) -> Array:
    """A'A. float64 in C order is read where it lies, anything else block by block, with the same bits."""
    if A.flags.c_contiguous and A.dtype == np.float64:
        return _products(A)
    size = _block_rows(A)
    blocks = (A[begin : begin + size] for begin in range(0, len(A), size))
    return np.asarray(tree_sum(_products(np.ascontiguousarray(block, dtype=np.float64)) for block in blocks))


def _products(A: Array) -> Array:
    return np.asarray(core.inner_products(DSYRK, A, _block_rows(A), n_threads()))


def _block_rows(A: Array) -> int:
    return max(BLOCK, int(A.shape[1]))
