"""SciPy by hand: pivoted QR for dense rows, normal equations for sparse ones."""

from typing import Any

import numpy as np

from ..problems import Data
from . import Solution, Solvers, installed

NAME = "scipy"


def version() -> str:
    return installed("scipy")


def solvers() -> Solvers:
    import scipy.linalg

    def lstsq(data: Data, driver: str) -> Solution:
        A: Any = np.column_stack([np.ones_like(data.y), data.X]) if data.fit_intercept else data.X
        w = scipy.linalg.lstsq(A, data.y, lapack_driver=driver)[0]
        return Solution(w[1:], float(w[0])) if data.fit_intercept else Solution(w, 0.0)

    def sparse(data: Data) -> Solution:
        X, y = data.X, data.y
        n_rows = X.shape[0]
        mean, level = X.mean(axis=0), y.mean()
        G = (X.T @ X).toarray() - n_rows * np.outer(mean, mean)
        G[np.diag_indices_from(G)] += data.alpha * n_rows
        coef = scipy.linalg.solve(G, X.T @ y - n_rows * level * mean, assume_a="pos")
        return Solution(coef, float(level - mean @ coef))

    return {
        "ols": {"lstsq(gelsy)": lambda data: lstsq(data, "gelsy")},
        "ridge_sparse": {"sparse X'X + solve": sparse},
    }
