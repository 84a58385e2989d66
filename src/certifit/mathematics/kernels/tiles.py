"""Matrices of kernels and products of large matrices, on all threads, in tiles of a fixed shape.

The compiled core multiplies by the BLAS of SciPy (`scipy.linalg.cython_blas`), one thread per tile: the result has the
same bits for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.linalg.blas import dsymv

from certifit.data.columns import Array
from certifit.runtime import core, in_order, n_threads, one_blas_thread

TILE = 256  # rows of a tile that NumPy evaluates: a megabyte for a thousand columns
NARROW = (8, 100)  # columns that are faster as rows of the first factor, which the BLAS packs once
FORMS = ("linear", "polynomial", "gaussian")


@cache
def _gemm(name: str) -> object:
    from scipy.linalg import cython_blas

    capsules: dict[str, object] = cython_blas.__pyx_capi__
    return capsules[name]


def dense(X: Array) -> Array:
    """Rows as the core takes them: float64, one after the other."""
    return np.ascontiguousarray(X, dtype=np.float64)


@one_blas_thread
def multiply(A: Array, B: Array, *, transposed: bool = False) -> Array:
    """A B, or A' B; B may be a vector. Two matrices of float32 have a product of float32."""
    columns = B.reshape(len(B), -1)
    if A.dtype == np.float32 and B.dtype == np.float32:
        short = np.ascontiguousarray(columns)
        product: Array = core.multiply_short(_gemm("sgemm"), np.ascontiguousarray(A), short, transposed, n_threads())
    else:
        product = core.multiply(_gemm("dgemm"), dense(A), dense(columns), transposed, n_threads())
    return product.reshape(-1) if B.ndim == 1 else product


@one_blas_thread
def symmetric_times(G: Array, V: Array) -> Array:
    """G V of a symmetric matrix; one column by its lower half alone: half the memory is read. Some as (V'G)'."""
    if len(G) >= TILE and NARROW[0] <= V.shape[1] <= NARROW[1]:
        return np.ascontiguousarray(multiply(np.ascontiguousarray(V.T), G).T)
    if V.shape[1] != 1 or len(G) < TILE:
        return multiply(G, V)
    product: Array = dsymv(1.0, G.T, np.ascontiguousarray(V[:, 0]))
    return product[:, None]


@one_blas_thread
def form_matrix(form: tuple[str, float, int], X: Array, Z: Array, *, is_short: bool = False) -> Array:
    """The matrix of a kernel that the core has; symmetric to the bit where Z is X. is_short: rounded to float32."""
    make = core.kernel_matrix_short if is_short else core.kernel_matrix
    matrix: Array = make(_gemm("dgemm"), *form, X, Z, n_threads())
    return matrix


@one_blas_thread
def form_times(form: tuple[str, float, int], X: Array, Z: Array, V: Array) -> Array:
    """The matrix of a kernel that the core has times V; the matrix is not held."""
    product: Array = core.kernel_times(_gemm("dgemm"), *form, X, Z, dense(V), n_threads())
    return product


@one_blas_thread
def tiled(of_rows: Callable[[slice[int, int, None]], Array], n_rows: int, n_columns: int) -> Array:
    """Rows of a matrix, some at a time, one after the other."""
    out = np.empty((n_rows, n_columns))
    places = [slice(begin, min(begin + TILE, n_rows)) for begin in range(0, n_rows, TILE)]
    for place, rows in zip(places, in_order(of_rows, places), strict=True):
        out[place] = rows
    return out
