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
NARROW = 128  # columns up to which a large matrix is read as it is
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


def narrow_times(A: Array, V: Array, bounds: Array | None = None, is_on: Array | None = None) -> Array:
    """A V for few columns, both float64 or both float32; the core reads A as it is, where a BLAS would copy it first.

    bounds: of groups of rows of a square A; is_on: groups x columns, where a column of V is not 0 and its product is
    wanted. What a column's product is in other groups is not defined.
    """
    make = core.narrow_product_short if A.dtype == np.float32 else core.narrow_product
    if bounds is None or is_on is None:
        bounds, is_on = np.array([0, len(A)]), np.ones((1, V.shape[1]), dtype=np.uint8)
    product: Array = make(A, np.ascontiguousarray(V), bounds, np.ascontiguousarray(is_on, dtype=np.uint8), n_threads())
    return product


@one_blas_thread
def symmetric_times(G: Array, V: Array) -> Array:
    """G V of a symmetric matrix; one column by its lower half alone: half the memory is read."""
    if len(G) < TILE or V.shape[1] > NARROW:
        return multiply(G, V)
    if V.shape[1] > 1:
        return narrow_times(dense(G), dense(V))
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


def gaussian_sums(X: Array, Z: Array, c: Array) -> Array:
    """sum_j c_j exp(-|x_i - z_j|^2 / 2) in float32; `cpp/margin/gaussian_sums.hpp` says how far it can be off."""
    sums: Array = core.gaussian_sums(X, dense(Z), np.ascontiguousarray(c), n_threads())
    return sums


@one_blas_thread
def tiled(of_rows: Callable[[slice[int, int, None]], Array], n_rows: int, n_columns: int) -> Array:
    """Rows of a matrix, some at a time, one after the other."""
    out = np.empty((n_rows, n_columns))
    places = [slice(begin, min(begin + TILE, n_rows)) for begin in range(0, n_rows, TILE)]
    for place, rows in zip(places, in_order(of_rows, places), strict=True):
        out[place] = rows
    return out
