"""Support vector machines of scikit-learn: C times a sum of losses, kernels by gamma, support vectors."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from sklearn.base import BaseEstimator

from certifit.data.columns import Array
from certifit.data.user_input import UserRows
from certifit.mathematics.kernels.basic import Gaussian, Linear, Polynomial
from certifit.mathematics.kernels.rules import Scaled
from certifit.models.kernel.base import UserKernel
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


def _kernel(params: Params, sizes: Sizes) -> UserKernel:
    """None is the Gaussian kernel of gamma="scale"; rows with weights have another variance here."""
    is_scaled = params["kernel"] == "rbf" and params["gamma"] == "scale"
    if is_scaled and sizes.variance is None and params.get("class_weight") is None:
        return None
    return kernel_of(_with_gamma(params, sizes), sizes)


def _svc(params: Params, sizes: Sizes) -> BaseEstimator:
    refuse_factors(params)
    refuse(params, break_ties=False)
    return SVC(_alpha(params, sizes), kernel=_kernel(params, sizes), class_weight=params["class_weight"])


def _svr(params: Params, sizes: Sizes) -> BaseEstimator:
    return SVR(_alpha(params, sizes), epsilon=params["epsilon"], kernel=_kernel(params, sizes))


def _linear_svc(params: Params, sizes: Sizes) -> BaseEstimator:
    refuse_factors(params)
    refuse(params, penalty="l2", multi_class="ovr")
    if params["fit_intercept"]:
        raise ValueError(
            "LinearSVC penalises the intercept, and no model here does. Add a column of ones (times intercept_scaling) "
            "to X and fit it with fit_intercept=False: the same weights."
        )
    return LinearSVC(_alpha(params, sizes), params["loss"], fit_intercept=False, class_weight=params["class_weight"])


def _support(model: BaseEstimator, ours: BaseEstimator, X: UserRows) -> None:
    """Support vectors, their multipliers times their signs, a column per machine, and the intercepts."""
    dual = model.dual_coef_.toarray() if hasattr(model.dual_coef_, "toarray") else model.dual_coef_
    intercepts = np.array(model.intercept_, dtype=np.float64).reshape(-1)
    columns = np.asarray(dual, dtype=np.float64).reshape(len(dual), -1).T
    if len(getattr(model, "classes_", (0, 1))) > 2:  # the first class of a pair is the positive one
        columns, intercepts = -_of_pairs(columns, np.asarray(model.n_support_)), -intercepts
    if model.kernel == "precomputed":
        every = np.zeros((len(ours.dual_coef_), columns.shape[1]))
        every[model.support_] = columns
        ours.dual_coef_ = every
    else:
        vectors = model.support_vectors_
        ours.X_fit_ = np.ascontiguousarray(vectors.toarray() if hasattr(vectors, "toarray") else vectors, dtype=float)
        ours.dual_coef_ = np.ascontiguousarray(columns)
    ours.intercepts_ = intercepts


def _of_pairs(columns: Array, n_support: Array) -> Array:
    """Coefficients of the machine of every two classes, of libsvm's, which holds those of a vector side by side.

    Vectors of a class are together. One of class i has its coefficients of the machines with the classes before i, then
    of those after.
    """
    of_class = np.repeat(np.arange(len(n_support)), n_support)
    pairs = list(combinations(range(len(n_support)), 2))
    dual = np.zeros((len(columns), len(pairs)))
    for p, (first, second) in enumerate(pairs):
        dual[of_class == first, p] = columns[of_class == first, second - 1]
        dual[of_class == second, p] = columns[of_class == second, first]
    return dual


def _weights(model: BaseEstimator, ours: BaseEstimator, X: UserRows) -> None:
    ours.coef_ = np.ascontiguousarray(model.coef_, dtype=np.float64)


def _strength_back(params: Params, sizes: Sizes) -> float:
    """C of an alpha; None is C = 1."""
    strength = 1.0 if params["alpha"] is None else float(params["alpha"]) * (sizes.sum_weight or math.nan)
    if math.isnan(strength):
        raise ValueError("C = 1 / (alpha n) depends on the number of rows, n. Give n_rows=, the sum of weights.")
    return 1.0 / strength


def _linear_back(params: Params, sizes: Sizes) -> dict[str, object]:
    refuse_factors(params)
    refuse(params, basis=None, encoder=None, standardize=False, fit_intercept=False)
    kept = {name: params[name] for name in ("loss", "fit_intercept", "class_weight")}
    return kept | {"C": _strength_back(params, sizes)}


def _kernel_back(params: Params) -> dict[str, object]:
    """kernel, gamma, degree and coef0 of a kernel."""
    kernel = params["kernel"]
    if isinstance(kernel, str) and kernel == "precomputed":
        return {"kernel": kernel}
    kernel = Gaussian() if kernel is None else kernel
    if isinstance(kernel, Gaussian) and (kernel.is_resolved or params.get("class_weight") is None):
        return {"kernel": "rbf", "gamma": 0.5 / kernel.width**2 if kernel.is_resolved else "scale"}
    if isinstance(kernel, Linear):
        return {"kernel": "linear"}
    factor, base = (kernel.factor, kernel.kernel) if isinstance(kernel, Scaled) else (1.0, kernel)
    if isinstance(base, Polynomial) and base.degree > 0:
        gamma = float(factor) ** (1 / base.degree)
        return {"kernel": "poly", "degree": int(base.degree), "gamma": gamma, "coef0": float(base.c) * gamma}
    raise ValueError(f"kernel={kernel!r} has no counterpart in scikit-learn's SVC and SVR.")


def _svc_back(params: Params, sizes: Sizes) -> dict[str, object]:
    refuse_factors(params)
    refuse(params, encoder=None, standardize=False, fit_intercept=True, multi_class="one-vs-one")
    kept = {"class_weight": params["class_weight"], "C": _strength_back(params, sizes)}
    return kept | _kernel_back(params)


def _svr_back(params: Params, sizes: Sizes) -> dict[str, object]:
    refuse(params, encoder=None, standardize=False, fit_intercept=True)
    return {"epsilon": params["epsilon"], "C": _strength_back(params, sizes)} | _kernel_back(params)


MARGINS: dict[str, Peer] = {
    "SVC": Peer("C sum_i max(0, 1 - y_i (b + f(x_i))) + |f|^2 / 2", _svc, _svc_back, _support),
    "SVR": Peer("C sum_i max(0, |y_i - b - f(x_i)| - epsilon) + |f|^2 / 2", _svr, _svr_back, _support),
    "LinearSVC": Peer("C sum_i max(0, 1 - y_i x_i'w)^p + |w|^2 / 2", _linear_svc, _linear_back, _weights),
}
