"""scikit-learn-intelex by its own classes; scikit-learn itself is not patched."""

from ..problems import Data
from . import Solution, Solvers, fitted, installed

NAME = "scikit-learn-intelex"


def version() -> str:
    return installed("scikit-learn-intelex")


def solvers() -> Solvers:
    from sklearnex.linear_model import LinearRegression, Ridge

    def ols(data: Data) -> Solution:
        return fitted(LinearRegression(fit_intercept=data.fit_intercept), data)

    def ridge(data: Data) -> Solution:
        model = Ridge(alpha=data.alpha * data.X.shape[0], fit_intercept=data.fit_intercept)
        return fitted(model, data)

    return {"ols": {"LinearRegression": ols}, "ridge": {"Ridge": ridge}}
