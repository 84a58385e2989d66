"""Discriminant analysis of scikit-learn: its divisors, its scores and its covariances in the terms of ours.

Versions before 1.9 divide the covariances of QuadraticDiscriminantAnalysis by n_k - 1 and those behind the boundary of
LinearDiscriminantAnalysis(solver="svd") by n - classes; the largest likelihood divides by n_k and n. A solution that
was divided by less is brought to that first: the same fit in another unit is no fault.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from certifit.data.columns import Array
from certifit.data.user_input import UserRows
from certifit.models.discriminant.model import GaussianDiscriminant
from certifit.models.discriminant.task import GaussianState
from certifit.models.learner import Params
from certifit.models.peers.table import Peer, Sizes, refuse
from certifit.statistics.residual import TINY, UNIT

AGREE = 1e-8  # of the largest log-odds: how far scikit-learn's may be in a row from those of its own covariance
OF_STATE = "nats per row of the likelihood, and of every prior, mean and covariance, relative"


def _shrinkage(params: Params) -> float:
    refuse(params, covariance_estimator=None)
    shrinkage = params.get("shrinkage")  # of quadratic discriminants from scikit-learn 1.8 on
    if isinstance(shrinkage, str):
        raise ValueError("shrinkage='auto' is chosen from the rows. Give shrinkage the number that it chose.")
    return float(shrinkage or 0.0)


def _linear(params: Params, sizes: Sizes) -> BaseEstimator:
    if params["solver"] == "svd" and params["priors"] is not None:
        raise ValueError(
            "solver='svd' does not weigh the classes' covariances by the priors given, and no model here does so. Use "
            "solver='lsqr'."
        )
    return GaussianDiscriminant("shared", shrinkage=_shrinkage(params), priors=params["priors"])


def _quadratic(params: Params, sizes: Sizes) -> BaseEstimator:
    refuse(params, reg_param=0.0)
    return GaussianDiscriminant("class", shrinkage=_shrinkage(params), priors=params["priors"])


def _place_linear(model: BaseEstimator, ours: BaseEstimator, X: UserRows) -> None:
    """Priors, means, the covariance where it is stored (ours where it is not: then the boundary speaks for it)."""
    covariance, roots = ours.covariance_, ours.roots_
    if hasattr(model, "covariance_"):
        covariance = np.ascontiguousarray(model.covariance_, dtype=np.float64)
        roots = _root(covariance, ours.redundant_)[None]
    _write(model, ours, covariance, roots)
    state = GaussianState(ours.priors_, ours.means_, covariance, roots, ours.redundant_)
    # Of columns that repeat others many boundaries are one: the certificate is about the state, whose log-odds it has.
    agrees = _has_log_odds(model, state, np.asarray(X, dtype=np.float64), float(ours.data_["n_rows"]))
    ours.coef_, ours.intercept_ = state.boundary() if agrees else (model.coef_, model.intercept_)


def _has_log_odds(model: BaseEstimator, state: GaussianState, X: Array, n: float) -> bool:
    """Whether log-odds of the classes against the first are those of a state in every row, of one divisor."""
    centre, n_classes = state.priors @ state.means, len(state.priors)
    logs = np.log(state.priors[1:]) - np.log(state.priors[0])

    def slopes(coef: Array, intercept: Array) -> Array:
        # Log-odds about the centre, less those of the priors: of every row, then what is equal in all.
        C, c = (coef, intercept) if n_classes == 2 else (coef[1:] - coef[0], intercept[1:] - intercept[0])
        return np.vstack([(X - centre) @ C.T, C @ centre + c - logs])

    theirs, ours = slopes(np.asarray(model.coef_), np.asarray(model.intercept_)), slopes(*state.boundary())
    if model.solver == "svd":
        ratio = float(np.sum(theirs * ours)) / max(float(np.sum(np.square(ours))), TINY)
        theirs = theirs * _to_our_divisor(ratio, (n - n_classes) / n)
    terms = np.abs(state.means) @ np.abs(state.roots[0]).T  # of their intercepts, which are about 0
    rounding = 4 * UNIT * sum(state.means.shape) * float(np.square(terms).sum(axis=1).max())
    return bool((np.abs(theirs - ours) <= AGREE * max(1.0, float(np.abs(ours).max())) + rounding).all())


def _place_quadratic(model: BaseEstimator, ours: BaseEstimator, X: UserRows) -> None:
    """Priors, means, and covariances from their axes."""
    axes = zip(model.rotations_, model.scalings_, strict=True)
    covariances = np.array([(rotation * scaling) @ rotation.T for rotation, scaling in axes])
    for k, (best, n) in enumerate(zip(ours.covariance_, ours.class_count_, strict=True)):
        ratio = float(np.trace(covariances[k])) / max(float(np.trace(best)), TINY)
        covariances[k] *= _to_our_divisor(ratio, n / max(n - 1.0, 1.0))
    covariances = np.ascontiguousarray((covariances + covariances.transpose(0, 2, 1)) / 2)
    _write(model, ours, covariances, np.array([_root(covariance, ours.redundant_) for covariance in covariances]))


def _to_our_divisor(ratio: float, factor: float) -> float:
    """1 / factor where a solution is to ours rather as `factor` than as 1."""
    return 1.0 / factor if abs(ratio - factor) < abs(ratio - 1.0) else 1.0


def _root(covariance: Array, redundant: tuple[int, ...]) -> Array:
    """The lower triangle T with covariance^-1 = T'T on the span of the columns; 0 in those that repeat others."""
    used = np.ix_(*2 * [np.setdiff1d(np.arange(len(covariance)), redundant)])
    root = np.zeros_like(covariance)
    try:
        factor = np.linalg.cholesky(covariance[used])
    except np.linalg.LinAlgError as error:
        raise ValueError(
            "A covariance of this model is singular to rounding: columns repeat others. Leave them out and fit again."
        ) from error
    root[used] = np.tril(np.linalg.solve(factor, np.eye(len(factor))))
    return root


def _write(model: BaseEstimator, ours: BaseEstimator, covariance: Array, roots: Array) -> None:
    ours.priors_ = np.ascontiguousarray(model.priors_, dtype=np.float64)
    ours.means_ = np.ascontiguousarray(model.means_, dtype=np.float64)
    ours.covariance_, ours.roots_ = covariance, np.ascontiguousarray(roots)


LIKELIHOOD = "the likelihood of Gaussian classes, to be largest"
DISCRIMINANTS: dict[str, Peer] = {
    "LinearDiscriminantAnalysis": Peer(
        f"{LIKELIHOOD}, one covariance for all; a boundary of covariances divided by n - classes counts as that of n",
        _linear,
        None,
        _place_linear,
        f"({OF_STATE}; its log-odds are theirs to {AGREE:.0e} of the largest, in every row, but for rounding)",
    ),
    "QuadraticDiscriminantAnalysis": Peer(
        f"{LIKELIHOOD}, a covariance per class; those divided by n_k - 1 count as divided by n_k",
        _quadratic,
        None,
        _place_quadratic,
        f"({OF_STATE})",
    ),
}
