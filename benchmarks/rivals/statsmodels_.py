"""statsmodels OLS: its default pinv, and QR. The fit includes what its inference needs."""

import numpy as np

from ..problems import Data
from . import Solution, Solver, Solvers, installed

NAME = "statsmodels"


def version() -> str:
    return installed("statsmodels")


def solvers() -> Solvers:
    from statsmodels.regression.linear_model import OLS

    def ols(method: str) -> Solver:
        def solve(data: Data) -> Solution:
            A = np.column_stack([np.ones_like(data.y), data.X]) if data.fit_intercept else data.X
            w = OLS(data.y, A).fit(method=method).params
            return Solution(w[1:], float(w[0])) if data.fit_intercept else Solution(w, 0.0)

        return solve

    return {"ols": {"OLS(pinv)": ols("pinv"), "OLS(qr)": ols("qr")}}
