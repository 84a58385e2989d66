"""NumPy by hand: the normal equations, plain and in their fastest form by blocks, and lstsq.

The intercept is eliminated by centring X'X after the sum, X'X - n m m', so X is never copied. That loses
digits when means are large beside spreads; the quality columns show it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..problems import Data
from . import Solution, Solver, Solvers, installed

NAME = "numpy"
BLOCK = 8192


def version() -> str:
    return installed("numpy")


def solvers() -> Solvers:
    normal: dict[str, Solver] = {"X'X + solve": plain, "X'X + solve by blocks": by_blocks}
    return {"ols": {**normal, "lstsq": lstsq}, "ridge": normal, "ridge_wide": {"XX' + solve": dual}}


def plain(data: Data) -> Solution:
    X, y = data.X, data.y
    return from_sums(X.T @ X, X.T @ y, X.mean(axis=0), y.mean(), data)


def by_blocks(data: Data) -> Solution:
    """The Gram matrix of [X 1 y], block by block while the rows are in the cache: X is read once."""
    X, y = data.X, data.y
    n_rows, d = X.shape
    block = np.ones((min(BLOCK, n_rows), d + 2), dtype=X.dtype)
    G = np.zeros((d + 2, d + 2), dtype=X.dtype)
    for first in range(0, n_rows, BLOCK):
        rows = X[first : first + BLOCK]
        A = block[: len(rows)]
        A[:, :d] = rows
        A[:, d + 1] = y[first : first + BLOCK]
        G += A.T @ A
    return from_sums(G[:d, :d], G[:d, d + 1], G[:d, d] / n_rows, G[d, d + 1] / n_rows, data)


def from_sums(G: NDArray[Any], Xy: NDArray[Any], mean: NDArray[Any], level: float, data: Data) -> Solution:
    """Centre when there is an intercept, add the penalty, solve."""
    n_rows = data.X.shape[0]
    if not data.fit_intercept:
        mean, level = np.zeros_like(mean), 0.0
    G = G - n_rows * np.outer(mean, mean)
    G[np.diag_indices_from(G)] += data.alpha * n_rows
    coef = np.linalg.solve(G, Xy - n_rows * level * mean)
    return Solution(coef, float(level - mean @ coef))


def lstsq(data: Data) -> Solution:
    A = np.column_stack([np.ones_like(data.y), data.X]) if data.fit_intercept else data.X
    w = np.linalg.lstsq(A, data.y)[0]
    return Solution(w[1:], float(w[0])) if data.fit_intercept else Solution(w, 0.0)


def dual(data: Data) -> Solution:
    """(H X X' H + n alpha I) a = H y,  w = X'a: a sums to zero, so X itself needs no centring."""
    X, y = data.X, data.y
    K = X @ X.T
    K -= K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    K[np.diag_indices_from(K)] += data.alpha * X.shape[0]
    coef = X.T @ np.linalg.solve(K, y - y.mean())
    return Solution(coef, float(y.mean() - X.mean(axis=0) @ coef))
