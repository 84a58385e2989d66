"""certifit, with its defaults: the time includes the certificate."""

from typing import Any

from ..problems import Data
from . import Solution, Solvers, fitted, installed

NAME = "certifit"


def version() -> str:
    return installed("certifit")


def solvers() -> Solvers:
    import certifit as cf

    def certified(model: Any, data: Data) -> Solution:
        return fitted(model, data)._replace(certified=bool(model.certificate_.holds))

    def ols(data: Data) -> Solution:
        return certified(cf.LinearRegression(fit_intercept=data.fit_intercept), data)

    def ridge(data: Data) -> Solution:
        return certified(cf.Ridge(alpha=data.alpha, fit_intercept=data.fit_intercept), data)

    return {
        "ols": {"LinearRegression": ols},
        "ridge": {"Ridge": ridge},
        "ridge_wide": {"Ridge": ridge},
        "ridge_sparse": {"Ridge": ridge},
    }
