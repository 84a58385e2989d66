"""scikit-learn: the defaults, and Ridge with Cholesky, its fastest least squares.

scikit-learn's Ridge minimises |y - Xw - b|^2 + alpha |w|^2: its alpha is n times ours.
"""

from ..problems import Data
from . import Solution, Solver, Solvers, fitted, installed

NAME = "scikit-learn"


def version() -> str:
    return installed("scikit-learn")


def solvers() -> Solvers:
    from sklearn.linear_model import LinearRegression, Ridge

    def ols(data: Data) -> Solution:
        return fitted(LinearRegression(fit_intercept=data.fit_intercept), data)

    def ridge(solver: str, tol: float = 1e-4) -> Solver:
        def solve(data: Data) -> Solution:
            alpha = data.alpha * data.X.shape[0]
            model = Ridge(alpha=alpha, fit_intercept=data.fit_intercept, solver=solver, tol=tol)
            return fitted(model, data)

        return solve

    cholesky = {"Ridge(cholesky)": ridge("cholesky")}
    return {
        "ols": {"LinearRegression": ols, **cholesky},
        "ridge": cholesky,
        "ridge_wide": {**cholesky, "Ridge(svd)": ridge("svd")},
        "ridge_sparse": {"Ridge": ridge("auto"), "Ridge(tol=1e-10)": ridge("auto", tol=1e-10)},
    }
