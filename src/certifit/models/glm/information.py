"""From a fitted task to its inference: the passes over its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from certifit.data.columns import Array
from certifit.inference.glm import GlmInference, Kind, Multinomial
from certifit.mathematics.families.responses import Response, Tweedie
from certifit.models.glm.softmax_task import GlmOrSoftmaxTask, GlmState, SoftmaxTask, SoftmaxWeights
from certifit.models.glm.task import GlmTask
from certifit.models.least_squares.normal_equations import Weights
from certifit.runtime import one_blas_thread
from certifit.statistics import softmax as class_sums
from certifit.statistics.factor import Curvature
from certifit.statistics.glm_sums import Fit, fit_sums, likelihood_sum, sandwich_sums


def n_scores(task: GlmOrSoftmaxTask) -> int:
    """Scores that a table has rows of."""
    return task.n_classes - 1 if isinstance(task, SoftmaxTask) else 1


@one_blas_thread
def infer(task: GlmTask, state: Weights, family: Response, link: str) -> GlmInference | None:
    """The inference of a fit without a penalty; None where its columns do not determine single coefficients.

    One pass over the rows; with offsets some more over the target alone, for the null deviance.
    """
    fit = _fit(task, state)
    likelihood = None if isinstance(family, Tweedie) else partial(family.log_likelihood, dispersion=1.0)
    sums = fit_sums(task.source, fit, float(task.null_point[-1]), likelihood)
    curvature = Curvature(_own(task, sums.information))
    if curvature.n_flat or not np.isfinite(sums.half):
        return None
    inverse = _in_user_units(task, curvature.inverse)
    if not _is_covariance(inverse):
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


@one_blas_thread
def infer_classes(task: SoftmaxTask, state: SoftmaxWeights, names: Sequence[str]) -> GlmInference | None:
    """The same of more than two classes: log-odds of each against the first. names: of all coefficients."""
    point, total = task.to_point(state).reshape(task.shape), float(task.labels[0].sum())
    information = _information(task, point)
    curvature, deviance = Curvature(_own(task, information)), 2 * total * task.evaluate(point.ravel()).loss
    if curvature.n_flat or not np.isfinite(deviance):
        return None
    inverse = _in_user_units(task, curvature.inverse)
    if not _is_covariance(inverse):
        return None
    weights, first = state.relative_to(0), int(task.fit_intercept)
    return GlmInference(
        names=tuple(names),
        estimate=np.column_stack([weights.intercept[1:, None]] * first + [weights.coef[1:]]).ravel(),
        inverse=inverse,
        family=Multinomial(),
        link="logit",
        deviance=deviance,
        null_deviance=2 * total * task.null_value,
        pearson=class_sums.pearson(task.source, task.scaling, point),
        saturated=0.0,
        n_rows=float(task.labels[1]),
        sum_weight=total,
        mean_information=float(information[0, -1, 0, -1]),
        has_intercept=bool(task.fit_intercept),
        n_scores=task.n_classes - 1,
    )


def _is_covariance(inverse: Array) -> bool:
    return bool(np.isfinite(inverse).all() and (np.diagonal(inverse) > 0).all())


def with_likelihood(task: GlmOrSoftmaxTask, state: GlmState, fit: GlmInference) -> GlmInference:
    """The log-likelihood from the rows, where sums do not tell it: one pass."""
    if not fit.needs_rows:
        return fit
    assert isinstance(task, GlmTask) and isinstance(state, Weights) and isinstance(fit.family, Response)
    phi, weights = fit.likelihood_dispersion, fit.likelihood_weights
    likelihood = partial(fit.family.log_likelihood, dispersion=phi, weights=weights)
    return replace(fit, given_likelihood=likelihood_sum(task.source, _fit(task, state), likelihood))


@one_blas_thread
def robust(task: GlmOrSoftmaxTask, state: GlmState, fit: GlmInference, kind: Kind) -> GlmInference:
    """H^-1 (sum w l'^2 xx') H^-1, H the Hessian; HC1 times N / (N - p), as statsmodels has it: one pass."""
    bread, meat = _sandwich(task, state, fit.weights == "frequency")
    curvature = Curvature(bread)
    half = curvature.solve(meat)
    inner = curvature.solve(half.T)
    n_used = (fit.df_resid + len(fit.names)) / fit.n_scores
    factor = n_used / (n_used - len(fit.names)) if kind == "HC1" else 1.0
    covariance = _in_user_units(task, (inner + inner.T) / 2 * factor)
    return replace(fit, robust=covariance, kind=kind)


def _sandwich(task: GlmOrSoftmaxTask, state: GlmState, is_frequency: bool) -> tuple[Array, Array]:
    """The Hessian and the sum of squared slopes of the coefficients that are fitted."""
    if isinstance(task, SoftmaxTask):
        assert isinstance(state, SoftmaxWeights)
        point = task.to_point(state).reshape(task.shape)
        squares = class_sums.slope_squares(task.source, task.scaling, point, is_frequency)
        size, n_rows = task.n_classes - 1, task.shape[0]
        meat = np.zeros((size, n_rows, size, n_rows))
        for k, j, part in zip(*np.triu_indices(size), squares, strict=True):
            meat[k, :, j], meat[j, :, k] = part, part.T
        return _own(task, _information(task, point)), _own(task, meat)
    assert isinstance(state, Weights)
    bread, squares = sandwich_sums(task.source, _fit(task, state), is_frequency)
    return _own(task, bread), _own(task, squares)


def _information(task: SoftmaxTask, point: Array) -> Array:
    """sum w p_k ([k = l] - p_l) (x, 1)(x, 1)' of all classes but the first: scores x (columns + 1), twice."""
    parts = class_sums.pairs(task.source, task.scaling, point) / task.scaling.weight_scale
    n_rows, n_classes = task.shape
    whole = np.zeros((n_classes, n_rows, n_classes, n_rows))
    for k, j, part in zip(*np.triu_indices(n_classes, 1), parts, strict=True):
        whole[k, :, j], whole[j, :, k] = -part, -part
        whole[k, :, k] += part
        whole[j, :, j] += part
    return whole[1:, :, 1:]


def _fit(task: GlmTask, state: Weights) -> Fit:
    point = task.to_point(state)
    return Fit(task.loss, task.scaling, np.ascontiguousarray(point[:-1]), float(point[-1]))


def _own(task: GlmOrSoftmaxTask, matrix: Array) -> Array:
    """Without the rows of intercepts that are not fitted; of several scores as one matrix."""
    kept = slice(None) if task.fit_intercept else slice(-1)
    if matrix.ndim == 2:
        return matrix[kept, kept]
    blocks = matrix[:, kept, :, kept]
    return np.ascontiguousarray(blocks).reshape(blocks.shape[0] * blocks.shape[1], -1)


def _in_user_units(task: GlmOrSoftmaxTask, scaled: Array) -> Array:
    """T V T': coefficients are scale w, the intercept b - shift'w, and it comes first."""
    s, first = task.scaling, int(task.fit_intercept)
    size = len(s.scale) + first
    change: Array = np.zeros((size, size))
    change[first:, : len(s.scale)] = np.diag(s.scale)
    if first:
        change[0] = np.append(-s.shift, 1.0)
    change = np.kron(np.eye(n_scores(task)), change)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        covariance = change @ scaled @ change.T
    return np.asarray(covariance / 2 + covariance.T / 2)
