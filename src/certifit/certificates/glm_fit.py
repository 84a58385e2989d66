"""From a fitted task to inference: the passes over its rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from certifit.certificates.glm_inference import GlmInference, Kind
from certifit.data.columns import Array
from certifit.families.response import Response
from certifit.families.responses import Tweedie
from certifit.runtime import one_blas_thread
from certifit.statistics.curvature import Curvature
from certifit.statistics.fit_sums import Fit, fit_sums, likelihood_sum, null_score, sandwich_sums
from certifit.tasks.generalised import GeneralisedLinear
from certifit.tasks.normal_equations import Weights


@one_blas_thread
def infer(task: GeneralisedLinear, state: Weights, family: Response, link: str) -> GlmInference | None:
    """The inference of a fit without a penalty; None where its columns do not determine single coefficients.

    One pass over the rows; with offsets some more over the target alone, for the null deviance.
    """
    fit = _fit(task, state)
    likelihood = None if isinstance(family, Tweedie) else partial(family.log_likelihood, dispersion=1.0)
    sums = fit_sums(task.source, fit, _null(task), likelihood)
    curvature = Curvature(_own(task, sums.information))
    if curvature.n_flat or not np.isfinite(sums.half):
        return None
    inverse = _in_user_units(task, curvature.inverse)
    if not (np.isfinite(inverse).all() and (np.diagonal(inverse) > 0).all()):
        return None
    first = int(task.fit_intercept)
    return GlmInference(
        names=(*["intercept"] * first, *task.source.names),
        estimate=np.concatenate([[state.intercept] * first, state.coef]),
        inverse=inverse,
        family=family,
        link=link,
        deviance=2 * sums.half,
        null_deviance=2 * sums.null_half,
        pearson=sums.pearson,
        saturated=sums.saturated,
        n_rows=float(sums.n_rows),
        sum_weight=float(task.targets.weight),
        mean_information=float(sums.information[-1, -1]),
        has_intercept=bool(task.fit_intercept),
    )


def with_likelihood(task: GeneralisedLinear, state: Weights, fit: GlmInference) -> GlmInference:
    """The log-likelihood from the rows, where sums do not tell it: one pass."""
    if not fit.needs_rows:
        return fit
    phi, weights = fit.likelihood_dispersion, fit.likelihood_weights
    likelihood = partial(fit.family.log_likelihood, dispersion=phi, weights=weights)
    return replace(fit, given_likelihood=likelihood_sum(task.source, _fit(task, state), likelihood))


@one_blas_thread
def robust(task: GeneralisedLinear, state: Weights, fit: GlmInference, kind: Kind) -> GlmInference:
    """H^-1 (sum w l'^2 xx') H^-1, H the Hessian; HC1 times N / (N - p), as statsmodels has it: one pass."""
    bread, meat = sandwich_sums(task.source, _fit(task, state), fit.weights == "frequency")
    curvature = Curvature(_own(task, bread))
    half = curvature.solve(_own(task, meat))
    inner = curvature.solve(half.T)
    factor = fit.n_obs / fit.df_resid if kind == "HC1" else 1.0
    covariance = _in_user_units(task, (inner + inner.T) / 2 * factor)
    return replace(fit, robust=covariance, kind=kind)


def _fit(task: GeneralisedLinear, state: Weights) -> Fit:
    point = task.to_point(state)
    return Fit(task.loss, task.scaling, np.ascontiguousarray(point[:-1]), float(point[-1]))


def _null(task: GeneralisedLinear) -> float:
    """The score, but for the offset, of the model without columns."""
    if not task.fit_intercept:
        return 0.0
    start = float(task.loss.score(task.targets.mean))
    return null_score(task.source, task.loss, start) if task.largest_offset > 0 else start


def _own(task: GeneralisedLinear, matrix: Array) -> Array:
    """Without the row of an intercept that is not fitted."""
    return matrix if task.fit_intercept else matrix[:-1, :-1]


def _in_user_units(task: GeneralisedLinear, scaled: Array) -> Array:
    """T V T': coefficients are scale w, the intercept b - shift'w, and it comes first."""
    s, first = task.scaling, int(task.fit_intercept)
    change = np.zeros((len(scaled), len(scaled)))
    change[first:, : len(s.scale)] = np.diag(s.scale)
    if first:
        change[0] = np.append(-s.shift, 1.0)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        found = change @ scaled @ change.T
    return np.asarray((found + found.T) / 2)
