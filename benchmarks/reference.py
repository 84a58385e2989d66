"""The reference solution: as exact as float64 data allow, at any cost.

Tall: Householder QR of A = [1 X; 0 sqrt(n alpha) I] with columns scaled by powers of two, then refinement of
the augmented system  r + A w = b,  A'r = 0  with residuals in extended precision (Björck 1967).
Tall and ill conditioned: the normal equations in rational numbers, free of any rounding.
Wide: the dual  (H X X' H + n alpha I) a = H y,  w = X'H a,  with the same refinement; H removes the mean.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray

from .problems import Data

Array = NDArray[Any]
STEPS = 5
ILL_CONDITIONED = 1e3
MOST_PRODUCTS = 2e7  # of integers of any length, some 0.2 microseconds each


def solve(data: Data) -> tuple[NDArray[np.float64], float]:
    """(coef, intercept) of a problem with an intercept."""
    n_rows, n_features = data.X.shape
    return solve_wide(data) if n_features > n_rows else solve_tall(data)


def solve_tall(data: Data) -> tuple[NDArray[np.float64], float]:
    A, b = augmented(data)
    scale = np.exp2(-np.round(np.log2(np.linalg.norm(A, axis=0))))
    A *= scale
    Q, R = np.linalg.qr(A)
    if np.linalg.cond(R) > ILL_CONDITIONED and A.size * A.shape[1] <= MOST_PRODUCTS:
        return solve_exactly(data)
    w = np.zeros(A.shape[1], dtype=np.longdouble)
    r = np.zeros(A.shape[0], dtype=np.longdouble)
    for _ in range(STEPS):
        f, g = augmented_residual(A, b, w, r)
        h = scipy.linalg.solve_triangular(R, g, trans="T")
        d = Q.T @ f
        w += scipy.linalg.solve_triangular(R, d - h)
        r += f - Q @ (d - h)
    w *= scale
    return w[1:].astype(np.float64), float(w[0])


def augmented(data: Data) -> tuple[Array, Array]:
    X = data.X.toarray() if scipy.sparse.issparse(data.X) else data.X
    n_rows, n_features = X.shape
    extra = n_features if data.alpha > 0 else 0
    A = np.zeros((n_rows + extra, n_features + 1))
    A[:n_rows, 0] = 1
    A[:n_rows, 1:] = X
    if extra:
        np.fill_diagonal(A[n_rows:, 1:], np.sqrt(n_rows * data.alpha))
    return A, np.concatenate([data.y, np.zeros(extra)]).astype(np.float64)


def augmented_residual(A: Array, b: Array, w: Array, r: Array) -> tuple[Array, Array]:
    """f = b - r - A w and g = -A'r in extended precision, rounded to float64 at the end."""
    f = np.empty_like(b)
    g = np.zeros(A.shape[1], dtype=np.longdouble)
    step = 1 << 15
    for first in range(0, A.shape[0], step):
        rows = slice(first, first + step)
        block = A[rows].astype(np.longdouble)
        f[rows] = b[rows] - r[rows] - block @ w
        g -= block.T @ r[rows]
    return f, g.astype(np.float64)


def solve_exactly(data: Data) -> tuple[NDArray[np.float64], float]:
    """Normal equations of [1 X], every float64 taken as the rational number it is."""
    X = data.X.toarray() if scipy.sparse.issparse(data.X) else data.X
    n_rows = X.shape[0]
    columns = [integers(column) for column in [np.ones(n_rows), *X.T.astype(np.float64), data.y]]
    rows = []
    for i, (a, scale_a) in enumerate(columns[:-1]):
        row = [int(a @ b) * scale_a * scale_b for b, scale_b in columns]
        row[i] += Fraction(data.alpha) * n_rows if i else 0
        rows.append(row)
    w = eliminate(rows)
    return np.array([float(value) for value in w[1:]]), float(w[0])


def integers(column: Array) -> tuple[Array, Fraction]:
    """column = integers * scale, without rounding."""
    mantissa, exponent = np.frexp(column)
    exponent[mantissa == 0] = exponent.max()
    lowest = int(exponent.min())
    shifts = (exponent - lowest).tolist()
    whole = [int(m) << shift for m, shift in zip(np.ldexp(mantissa, 53).tolist(), shifts, strict=True)]
    return np.array(whole, dtype=object), Fraction(2) ** (lowest - 53)


def eliminate(rows: list[list[Fraction]]) -> list[Fraction]:
    """Solve G w = c for rows [G c] of a positive definite G."""
    for k, pivot in enumerate(rows):
        pivot[k:] = [value / pivot[k] for value in pivot[k:]]
        for row in rows[:k] + rows[k + 1 :]:
            factor = row[k]
            row[k:] = [value - factor * other for value, other in zip(row[k:], pivot[k:], strict=True)]
    return [row[-1] for row in rows]


def solve_wide(data: Data) -> tuple[NDArray[np.float64], float]:
    X = data.X.astype(np.longdouble)
    y = data.y.astype(np.longdouble)
    mean, level = X.mean(axis=0), y.mean()
    X -= mean
    y -= level
    ridge = data.alpha * X.shape[0]
    rounded = X.astype(np.float64)
    factor = scipy.linalg.cho_factor(rounded @ rounded.T + ridge * np.eye(X.shape[0]))
    a = np.zeros_like(y)
    for _ in range(STEPS):
        residual = y - X @ (X.T @ a) - ridge * a
        a += scipy.linalg.cho_solve(factor, residual.astype(np.float64))
    w = X.T @ a
    return w.astype(np.float64), float(level - mean @ w)
