"""Models of other libraries and how certifit has them, a row each: the only place that knows their parameters.

Every objective is brought to the unit of certifit, a mean loss + alpha times a penalty: scikit-learn's Ridge and Huber
penalise a sum (alpha / n here), LogisticRegression multiplies the sum of losses by C (alpha = 1 / (C n)).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from certifit.data.user_input import UserRows
from certifit.mathematics.kernels import Gaussian, Kernel, Linear, Polynomial
from certifit.models.glm.logistic import LogisticRegression
from certifit.models.glm.model import GLM, GammaRegressor, PoissonRegressor
from certifit.models.huber.model import HuberRegressor
from certifit.models.kernel.model import KernelRidge
from certifit.models.lasso.model import ElasticNet, Lasso
from certifit.models.learner import Params
from certifit.models.least_squares.model import LinearRegression, Ridge
from certifit.models.pca.model import PCA

Values = dict[str, object]  # parameters by name
DEPRECATED = "deprecated"  # what scikit-learn writes for a parameter that is not given


@dataclass(frozen=True)
class Sizes:
    """What a unit depends on: the sum of weights (the number of rows), columns, the variance of all values.

    None: not known.
    """

    sum_weight: float | None = None
    n_columns: int | None = None
    variance: float | None = None

    def mean(self, strength: float, name: str) -> float | None:
        """A strength beside a sum of losses as one beside their mean; None is that of strength 1, for any rows."""
        if strength in (0.0, 1.0):
            return 0.0 if strength == 0 else None
        if self.sum_weight is None:
            raise ValueError(f"{name} depends on the number of rows, n. Give n_rows=, the sum of weights.")
        return float(strength) / self.sum_weight


@dataclass(frozen=True)
class Peer:
    """A model of another library. objective: its own, in its own units. ours: its parameters -> the model here.

    theirs: our parameters and sizes -> its parameters, None where there is no way back.
    place: writes the solution of a fitted one into our fitted model, for the rows of its fit. unit: of the value of
    the certificate, in words.
    """

    objective: str
    ours: Callable[[Params, Sizes], BaseEstimator]
    theirs: Callable[[Params, Sizes], Values] | None
    place: Callable[[BaseEstimator, BaseEstimator, UserRows], None]
    unit: str = "(relative)"


def refuse(params: Params, **legal: object) -> None:
    """Raise for a parameter that changes what is minimised, and that no model here has."""
    for name, value in legal.items():
        if name in params and params[name] is not value and params[name] != value:
            raise ValueError(f"{name}={params[name]!r} has no counterpart in certifit. Legal: {name}={value!r}.")


def refuse_factors(params: Params) -> None:
    """Raise for weights of classes that change the sum of weights, which the unit of alpha here is of."""
    if not (params["class_weight"] is None or params["class_weight"] == "balanced"):
        raise ValueError(
            "class_weight as a dict changes the sum of weights, and with it the unit of alpha. Give the weights of the "
            "rows' classes as sample_weight instead, and class_weight=None."
        )


def _linear(model: BaseEstimator, ours: BaseEstimator, X: UserRows) -> None:
    """Coefficients and an intercept, in the shape that ours have."""
    ours.coef_ = np.ascontiguousarray(np.reshape(np.asarray(model.coef_, dtype=np.float64), ours.coef_.shape))
    intercept = np.asarray(getattr(model, "intercept_", 0.0), dtype=np.float64)
    is_number = np.ndim(ours.intercept_) == 0
    ours.intercept_ = float(np.ravel(intercept)[0]) if is_number else np.broadcast_to(intercept, ours.intercept_.shape)


def _with_scale(model: BaseEstimator, ours: BaseEstimator, X: UserRows) -> None:
    _linear(model, ours, X)
    ours.scale_ = float(model.scale_)


def _directions(model: BaseEstimator, ours: BaseEstimator, X: UserRows) -> None:
    for name in ("components_", "explained_variance_", "mean_"):
        setattr(ours, name, np.ascontiguousarray(getattr(model, name), dtype=np.float64))


def _dual(model: BaseEstimator, ours: BaseEstimator, X: UserRows) -> None:
    ours.dual_coef_ = np.asarray(model.dual_coef_, dtype=np.float64).reshape(-1)
    ours.intercept_ = 0.0


def _least_squares(params: Params, sizes: Sizes) -> BaseEstimator:
    refuse(params, positive=False)
    return LinearRegression(fit_intercept=params["fit_intercept"])


def _ridge(params: Params, sizes: Sizes) -> BaseEstimator:
    refuse(params, positive=False)
    return Ridge(sizes.mean(params["alpha"], "The alpha of Ridge"), fit_intercept=params["fit_intercept"])


def _bounds(params: Params) -> Params:
    return {"fit_intercept": params["fit_intercept"], **({"bounds": (0, np.inf)} if params["positive"] else {})}


def _lasso(params: Params, sizes: Sizes) -> BaseEstimator:
    return Lasso(params["alpha"], **_bounds(params))


def _elastic_net(params: Params, sizes: Sizes) -> BaseEstimator:
    return ElasticNet(params["alpha"], l1_ratio=params["l1_ratio"], **_bounds(params))


def _huber(params: Params, sizes: Sizes) -> BaseEstimator:
    alpha = sizes.mean(params["alpha"], "The alpha of HuberRegressor")
    if alpha is None:
        if sizes.sum_weight is None:
            raise ValueError("The alpha of HuberRegressor depends on the number of rows. Give n_rows=.")
        alpha = 1.0 / sizes.sum_weight
    return HuberRegressor(params["epsilon"], alpha, fit_intercept=params["fit_intercept"])


def _logistic(params: Params, sizes: Sizes) -> BaseEstimator:
    if params["solver"] == "liblinear" and params["fit_intercept"]:
        raise ValueError("solver='liblinear' penalises the intercept, and no model here does. Use solver='lbfgs'.")
    refuse_factors(params)
    penalty, ratio = params["penalty"], params["l1_ratio"] or 0.0
    ratio = {"l1": 1.0, "l2": 0.0, None: 0.0}.get(penalty, ratio)
    strength = 0.0 if penalty is None or math.isinf(params["C"]) else 1.0 / params["C"]
    alpha = sizes.mean(strength, "alpha = 1 / (C n)")
    return LogisticRegression(alpha, ratio, fit_intercept=params["fit_intercept"], class_weight=params["class_weight"])


def _counts(model: type[PoissonRegressor] | type[GammaRegressor]) -> Callable[[Params, Sizes], BaseEstimator]:
    return lambda params, sizes: model(params["alpha"], fit_intercept=params["fit_intercept"])


def _pca(params: Params, sizes: Sizes) -> BaseEstimator:
    return PCA(params["n_components"], whiten=params["whiten"])


def _kernel_ridge(params: Params, sizes: Sizes) -> BaseEstimator:
    refuse(params, kernel_params=None)
    alpha = sizes.mean(params["alpha"], "The alpha of KernelRidge")
    return KernelRidge(alpha, kernel=kernel_of(params, sizes), fit_intercept=False)


def kernel_of(params: Params, sizes: Sizes) -> Kernel | str:
    """gamma None is 1 / number of columns."""
    kind, gamma = params["kernel"], params["gamma"]
    if kind in ("linear", "precomputed"):
        return Linear() if kind == "linear" else "precomputed"
    if kind not in ("rbf", "poly", "polynomial"):
        raise ValueError(f"kernel={kind!r} has no counterpart in certifit. Legal: linear, rbf, poly, precomputed.")
    if gamma is None and sizes.n_columns is None:
        raise ValueError("gamma=None is 1 / number of columns. Give gamma a number.")
    gamma = 1.0 / (sizes.n_columns or 1) if gamma is None else float(gamma)
    if kind == "rbf":
        return Gaussian(math.sqrt(0.5 / gamma))
    return gamma ** int(params["degree"]) * Polynomial(int(params["degree"]), c=params["coef0"] / gamma)


# Parameters of ours that scikit-learn's models do not have, and their values that change nothing.
_ONLY_OURS = {"basis": None, "encoder": None, "standardize": False, "penalty_factors": None, "start": None}


def _back(*names: str, alpha: str | None = None) -> Callable[[Params, Sizes], Values]:
    """Parameters of the same name; alpha: what the strength beside a sum is called, None where it is beside a mean."""

    def theirs(params: Params, sizes: Sizes) -> Values:
        refuse(params, **_ONLY_OURS)
        params = {**params, "positive": _is_positive(params.get("bounds"))}
        kept = {name: params[name] for name in names}
        return kept if alpha is None else kept | {alpha: _of_sum(params["alpha"], sizes)}

    return theirs


def _is_positive(bounds: object) -> bool:
    if bounds is None:
        return False
    if not isinstance(bounds, tuple) or tuple(map(str, bounds)) not in {("0", "inf"), ("0.0", "inf")}:
        raise ValueError(f"bounds={bounds!r} has no counterpart in scikit-learn. Legal: None or (0, inf).")
    return True


def _of_sum(alpha: float | None, sizes: Sizes) -> float:
    """A strength beside a mean as one beside a sum; None is 1 / n."""
    if alpha is None or alpha == 0:
        return 1.0 if alpha is None else 0.0
    if sizes.sum_weight is None:
        raise ValueError("alpha beside a sum depends on the number of rows, n. Give n_rows=, the sum of weights.")
    return float(alpha) * sizes.sum_weight


def _huber_back(params: Params, sizes: Sizes) -> Values:
    refuse(params, **_ONLY_OURS, scale="joint")
    return {"epsilon": params["delta"], **_back("fit_intercept", alpha="alpha")(params, sizes)}


def _logistic_back(params: Params, sizes: Sizes) -> Values:
    refuse(params, **_ONLY_OURS, bounds=None)
    strength, ratio = _of_sum(params["alpha"], sizes), params["l1_ratio"]
    kept = {"C": math.inf if strength == 0 else 1.0 / strength, "l1_ratio": ratio}
    from sklearn.linear_model import LogisticRegression as Theirs

    if ratio and Theirs().penalty == "l2":  # before 1.8 a mix must be asked for
        kept["penalty"] = "elasticnet"
    return kept | _back("fit_intercept", "class_weight")(params, sizes) | ({"solver": "saga"} if ratio else {})


def _pca_back(params: Params, sizes: Sizes) -> Values:
    refuse(params, basis=None, encoder=None, standardize=False, center=True)
    return {name: params[name] for name in ("n_components", "whiten")}


SUM_OF_SQUARES = "sum_i (y_i - b - x_i'w)^2"
MEAN_OF_SQUARES = "sum_i (y_i - b - x_i'w)^2 / (2n)"
LOGISTIC = "C sum_i log-loss_i + penalty (|w|^2 / 2 for l2, |w|_1 for l1)"
SKLEARN: dict[str, Peer] = {
    "LinearRegression": Peer(SUM_OF_SQUARES, _least_squares, _back("fit_intercept"), _linear),
    "Ridge": Peer(f"{SUM_OF_SQUARES} + alpha |w|^2", _ridge, _back("fit_intercept", alpha="alpha"), _linear),
    "Lasso": Peer(f"{MEAN_OF_SQUARES} + alpha |w|_1", _lasso, _back("alpha", "fit_intercept", "positive"), _linear),
    "ElasticNet": Peer(
        f"{MEAN_OF_SQUARES} + alpha (l1_ratio |w|_1 + (1 - l1_ratio) |w|^2 / 2)",
        _elastic_net,
        _back("alpha", "l1_ratio", "fit_intercept", "positive"),
        _linear,
    ),
    "HuberRegressor": Peer("sum_i (s + s H(r_i / s)) + alpha |w|^2 over w, b, s", _huber, _huber_back, _with_scale),
    "LogisticRegression": Peer(LOGISTIC, _logistic, _logistic_back, _linear),
    "PoissonRegressor": Peer(
        "sum_i deviance_i / (2n) + alpha |w|^2 / 2", _counts(PoissonRegressor), _back("alpha", "fit_intercept"), _linear
    ),
    "GammaRegressor": Peer(
        "sum_i deviance_i / (2n) + alpha |w|^2 / 2", _counts(GammaRegressor), _back("alpha", "fit_intercept"), _linear
    ),
    "PCA": Peer("the variance of the scores, to be largest", _pca, _pca_back, _directions),
    "KernelRidge": Peer("|y - Kc|^2 + alpha c'Kc", _kernel_ridge, None, _dual),
}


def _of_parameters(model: BaseEstimator, ours: BaseEstimator, X: UserRows) -> None:
    """statsmodels: one coefficient per column, the constant among them."""
    ours.coef_ = np.asarray(model.params, dtype=np.float64).reshape(ours.coef_.shape)


def _statsmodels_glm(params: Params, sizes: Sizes) -> BaseEstimator:
    family, link = params["family"], params["link"]
    if family not in _FAMILIES or link not in _LINKS:
        raise ValueError(f"The family {family} with the link {link} has no counterpart in certifit.")
    return GLM(_FAMILIES[family], _LINKS[link], fit_intercept=False)


_FAMILIES = {"Poisson": "poisson", "Gaussian": "gaussian", "Binomial": "bernoulli", "Gamma": "gamma"}
_LINKS = {
    "Log": "log",
    "Identity": "identity",
    "Logit": "logit",
    "Probit": "probit",
    "CLogLog": "cloglog",
    "InversePower": "inverse",
}
STATSMODELS: dict[str, Peer] = {
    "OLS": Peer(
        "sum_i (y_i - x_i'w)^2", lambda params, sizes: LinearRegression(fit_intercept=False), None, _of_parameters
    ),
    "Logit": Peer(
        "the log-likelihood, to be largest",
        lambda params, sizes: LogisticRegression(0.0, fit_intercept=False),
        None,
        _of_parameters,
    ),
    "GLM": Peer("the log-likelihood, to be largest", _statsmodels_glm, None, _of_parameters),
}


def _glum(params: Params, sizes: Sizes) -> BaseEstimator:
    family, link = str(params["family"]).split(".")[-1], params["link"]
    refuse(params, P1="identity", P2="identity", lower_bounds=None, upper_bounds=None, A_ineq=None)
    names = {
        "poisson": "poisson",
        "normal": "gaussian",
        "gaussian": "gaussian",
        "gamma": "gamma",
        "binomial": "bernoulli",
    }
    if family not in names or link not in ("auto", "log", "logit", "identity"):
        raise ValueError(f"The family {family!r} with the link {link!r} has no counterpart in certifit.")
    default = {"poisson": "log", "gamma": "log", "binomial": "logit"}.get(family, "identity")
    alpha = 0.0 if params["alpha"] is None else float(params["alpha"])
    return GLM(
        names[family],
        default if link == "auto" else link,
        alpha,
        float(params["l1_ratio"]),
        fit_intercept=params["fit_intercept"],
    )


GLUM: dict[str, Peer] = {
    "GeneralizedLinearRegressor": Peer(
        "sum_i w_i deviance_i / (2 sum_i w_i) + alpha (l1_ratio |w|_1 + (1 - l1_ratio) |w|^2 / 2)", _glum, None, _linear
    )
}
