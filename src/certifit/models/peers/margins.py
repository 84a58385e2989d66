"""Support vector machines of scikit-learn: C times a sum of losses, kernels by gamma, support vectors."""

from __future__ import annotations

import math

import numpy as np
from sklearn.base import BaseEstimator

from certifit.models.learner import Params
from certifit.models.linear_svm.model import LinearSVC
from certifit.models.peers.table import Peer, Sizes, kernel_of, refuse, refuse_factors
from certifit.models.svm.model import SVC
from certifit.models.svm.regression import SVR


def _alpha(params: Params, sizes: Sizes) -> float | None:
    return sizes.mean(1.0 / params["C"], "alpha = 1 / (C n)")


def _with_gamma(params: Params, sizes: Sizes) -> Params:
    """gamma as a number: "scale" is 1 / (columns times the variance of all values), "auto" 1 / columns."""
    gamma = params["gamma"]
    if gamma == "scale" and params["kernel"] in ("rbf", "poly"):
        if sizes.n_columns is None or sizes.variance is None:
            raise ValueError("gamma='scale' depends on the rows. Give gamma a number.")
        gamma = 1.0 / (sizes.n_columns * sizes.variance) if sizes.variance > 0 else 1.0
    return {**params, "gamma": None if isinstance(gamma, str) else gamma}


def _svc(params: Params, sizes: Sizes) -> BaseEstimator:
    refuse_factors(params)
    refuse(params, break_ties=False)
    kernel = kernel_of(_with_gamma(params, sizes), sizes)
    return SVC(_alpha(params, sizes), kernel=kernel, class_weight=params["class_weight"])


def _svr(params: Params, sizes: Sizes) -> BaseEstimator:
    kernel = kernel_of(_with_gamma(params, sizes), sizes)
    return SVR(_alpha(params, sizes), epsilon=params["epsilon"], kernel=kernel)


def _linear_svc(params: Params, sizes: Sizes) -> BaseEstimator:
    refuse_factors(params)
    refuse(params, penalty="l2", multi_class="ovr")
    if params["fit_intercept"]:
        raise ValueError(
            "LinearSVC penalises the intercept, and no model here does. Add a column of ones (times intercept_scaling) "
            "to X and fit it with fit_intercept=False: the same weights."
        )
    return LinearSVC(_alpha(params, sizes), params["loss"], fit_intercept=False, class_weight=params["class_weight"])


def _support(model: BaseEstimator, ours: BaseEstimator) -> None:
    """Support vectors of one machine, their multipliers times their signs, and its intercept."""
    if len(getattr(model, "classes_", (0, 1))) > 2:
        raise ValueError("An SVC of more than two classes is several machines. Audit it on the rows of two of them.")
    if model.kernel == "precomputed":
        dual = np.zeros((len(ours.dual_coef_), 1))
        dual[model.support_, 0] = np.ravel(model.dual_coef_)
        ours.dual_coef_ = dual
    else:
        vectors = model.support_vectors_
        ours.X_fit_ = np.ascontiguousarray(vectors.toarray() if hasattr(vectors, "toarray") else vectors, dtype=float)
        dual = model.dual_coef_.toarray() if hasattr(model.dual_coef_, "toarray") else model.dual_coef_
        ours.dual_coef_ = np.ascontiguousarray(dual.reshape(-1, 1), dtype=np.float64)
    ours.intercepts_ = np.asarray(model.intercept_, dtype=np.float64).reshape(1)


def _weights(model: BaseEstimator, ours: BaseEstimator) -> None:
    ours.coef_ = np.ascontiguousarray(model.coef_, dtype=np.float64)


def _linear_back(params: Params, sizes: Sizes) -> dict[str, object]:
    refuse(params, basis=None, encoder=None, standardize=False, fit_intercept=False)
    strength = 1.0 if params["alpha"] is None else float(params["alpha"]) * (sizes.sum_weight or math.nan)
    if math.isnan(strength):
        raise ValueError("C = 1 / (alpha n) depends on the number of rows, n. Give n_rows=, the sum of weights.")
    kept = {name: params[name] for name in ("loss", "fit_intercept", "class_weight")}
    return kept | {"C": 1.0 / strength}


MARGINS: dict[str, Peer] = {
    "SVC": Peer("C sum_i max(0, 1 - y_i (b + f(x_i))) + |f|^2 / 2", _svc, None, _support),
    "SVR": Peer("C sum_i max(0, |y_i - b - f(x_i)| - epsilon) + |f|^2 / 2", _svr, None, _support),
    "LinearSVC": Peer("C sum_i max(0, 1 - y_i x_i'w)^p + |w|^2 / 2", _linear_svc, _linear_back, _weights),
}
