"""Mercer's condition on points, and the feature map that a matrix of a kernel gives.

Points can only refute it: by a pair with k(x, z) != k(z, x), or by a vector c with c'Gc < 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from certifit.data.columns import Array
from certifit.mathematics.kernels.algebra import UNIT, Kernel
from certifit.mathematics.kernels.basic import Function
from certifit.runtime import one_blas_thread

ASYMMETRY = 2.0**-40  # of the larger of both, or of the root of k(x, x) k(z, z): a difference within it is rounding
NO_DIRECTION = 1e-13  # of the largest eigenvalue, per point: a direction of less is rounding


@dataclass(frozen=True)
class MercerTest:
    """What points say of a kernel; as a truth value, whether they leave it standing.

    smallest, largest: eigenvalues of the matrix; None where it is not symmetric. vector: c with c'Gc < 0, of length 1.
    pair: numbers of two points with k(x, z) != k(z, x).
    """

    n_points: int
    proof: str
    smallest: float | None = None
    largest: float | None = None
    vector: Array | None = None
    pair: tuple[int, int] | None = None
    values: tuple[float, ...] = ()  # the two numbers of the pair, or c'Gc

    def __bool__(self) -> bool:
        return self.vector is None and self.pair is None

    def __str__(self) -> str:
        if self.pair is not None:
            i, j = self.pair
            return (
                f"Not a Mercer kernel: it is not symmetric. k(x{i}, x{j}) = {self.values[0]:.6g} and k(x{j}, x{i}) = "
                f"{self.values[1]:.6g}."
            )
        if self.vector is not None:
            return f"Not a Mercer kernel: c'Gc = {self.values[0]:.3g} for c = {shown_vector(self.vector)}."
        return (
            f"Not refuted on these {self.n_points} points: the smallest eigenvalue is {self.smallest:.3g}, the largest "
            f"{self.largest:.3g}. {self.proof}"
        )


def shown_vector(c: Array, most: int = 5) -> str:
    """The entries of a vector that count most, by the numbers of their points."""
    order = np.argsort(-np.abs(c), kind="stable")[:most]
    shown = ", ".join(f"{c[i]:.3g} at row {i}" for i in order)
    return shown + (f" and {len(c) - most} smaller" if len(c) > most else "")


def is_mercer(kernel: Kernel | Callable[[Array, Array], ArrayLike], X: ArrayLike) -> MercerTest:
    """Whether the points X refute that a kernel is Mercer; the answer prints what was seen.

    kernel: a kernel, or a function of two arrays of points with f(X, Z)[i, j] = k(x_i, z_j).
    """
    points = np.ascontiguousarray(np.atleast_2d(np.asarray(X, dtype=np.float64)))
    resolved = (kernel if isinstance(kernel, Kernel) else Function(kernel)).resolved(points)
    K = resolved.matrix(points) if resolved.is_proven else resolved.matrix(points, points)
    return matrix_test(K, resolved.proof())


@one_blas_thread
def matrix_test(K: Array, proof: str = "", rounded: float = NO_DIRECTION) -> MercerTest:
    """The same of a matrix of values. rounded: share of the largest eigenvalue, per point, that rounding may make."""
    if not np.isfinite(K).all():
        i, j = (int(places[0]) for places in np.nonzero(~np.isfinite(K)))
        raise ValueError(f"The kernel of rows {i} and {j} is {K[i, j]}. A kernel must be finite.")
    roots = np.sqrt(np.abs(np.diagonal(K)))  # rounding of a small k(x, z) is that of numbers near k(x, x) and k(z, z)
    size = np.maximum(np.maximum(np.abs(K), np.abs(K.T)), np.outer(roots, roots))
    is_apart = np.abs(K - K.T) > max(ASYMMETRY, rounded) * size
    if is_apart.any():
        i, j = divmod(int(np.argmax(np.abs(K - K.T))), len(K))
        return MercerTest(len(K), proof, pair=(i, j), values=(float(K[i, j]), float(K[j, i])))
    G = (K + K.T) / 2
    # LAPACK's default for some eigenvalues ("evr") fails where entries of a kernel of far rows underflow.
    low, vectors = scipy.linalg.eigh(G, subset_by_index=[0, 0], driver="evx", check_finite=False)
    smallest, largest = float(low[0]), float(np.linalg.eigvalsh(G)[-1])
    c = vectors[:, 0]
    value = float(c @ (G @ c))
    noise = 4 * (len(c) + 4) * UNIT * float(np.abs(c) @ (np.abs(G) @ np.abs(c))) + rounded * len(c) * largest
    is_refuted = value < -noise
    vector, values = (c, (value,)) if is_refuted else (None, ())
    return MercerTest(len(K), proof, smallest, largest, vector, values=values)


class GramMap:
    """phi with phi(x)'phi(z) = k(x, z) on the points that it was made of: G = V L V', phi(z) = L^-1/2 V' k(X, z)."""

    def __init__(self, kernel: Kernel, X: ArrayLike) -> None:
        self.points: Array = np.ascontiguousarray(np.atleast_2d(np.asarray(X, dtype=np.float64)))
        self.kernel = kernel.resolved(self.points)
        G = self.kernel.matrix(self.points)
        test = matrix_test(G)
        if not test:
            raise ValueError(str(test))
        values, vectors = np.linalg.eigh(G)
        is_kept = values > NO_DIRECTION * len(G) * values[-1]
        self.roots: Array = np.sqrt(values[is_kept][::-1])
        self.vectors: Array = vectors[:, is_kept][:, ::-1]

    def __call__(self, X: ArrayLike) -> Array:
        """The features of points."""
        rows = np.ascontiguousarray(np.atleast_2d(np.asarray(X, dtype=np.float64)))
        return np.asarray(self.kernel.matrix(rows, self.points) @ (self.vectors / self.roots))


def products(X: ArrayLike) -> Array:
    """All d^2 products x_i x_j of the features of a row: the map of (x'z)^2."""
    rows = np.atleast_2d(np.asarray(X, dtype=np.float64))
    return np.asarray((rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1))


def powers(X: ArrayLike, degree: int = 3) -> Array:
    """Every feature to the powers 1 .. degree: phi(x) = (x, x^2, x^3)."""
    rows = np.atleast_2d(np.asarray(X, dtype=np.float64))
    return np.hstack([rows**p for p in range(1, degree + 1)])
