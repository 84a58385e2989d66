"""glum: the normal family with the identity link. Its alpha is ours."""

from ..problems import Data
from . import Solution, Solver, Solvers, fitted, installed

NAME = "glum"


def version() -> str:
    return installed("glum")


def solvers() -> Solvers:
    from glum import GeneralizedLinearRegressor

    def normal(data: Data) -> Solution:
        model = GeneralizedLinearRegressor(
            family="normal", alpha=data.alpha, l1_ratio=0, fit_intercept=data.fit_intercept
        )
        return fitted(model, data)

    variants: dict[str, Solver] = {"GeneralizedLinearRegressor": normal}
    return {"ols": variants, "ridge": variants, "ridge_sparse": variants}
