"""The certificate of lasso and elastic net: the duality gap, from the data and the weights alone.

With r the residuals, W the sum of weights and any u with sum_i w_i u_i = 0, q = X'u / W, the objective exceeds its
minimum by at most

    |r - u|^2 / (2 W) + sum_j [ h_j(w_j) + h*_j(q_j) - q_j w_j ]

and every bracket is >= 0, so nothing cancels. u is r made orthogonal to what must be (the intercept, unpenalised
columns) and scaled into the domain of h*.
"""

from __future__ import annotations

import numpy as np

from certifit.certificates.certificate import EXACT_FIT, Certificate
from certifit.data.columns import Array
from certifit.penalties import ElasticPenalty
from certifit.statistics.factor import System, plain_factor
from certifit.statistics.residual import Residual
from certifit.tasks.elastic import ElasticLeastSquares, WideElastic
from certifit.tasks.normal_equations import Weights

TWOFOLD_UNIT = 2.0**-100
ROUNDING_FLOOR = 1e-24  # squares of residuals below 1e-12 of the predictions' size are rounding
TINY = float(np.finfo(float).tiny)
Task = ElasticLeastSquares | WideElastic


def certify(task: Task, state: Weights, tolerance: float) -> Certificate:
    """How far the objective at the state can be above its minimum."""
    at = task.residual_at(state)
    gap, rounding, objective = duality_gap(task, state, at)
    scale = max(objective, EXACT_FIT * task.null_squares() / (2 * task.sum_weight), TINY)
    scale = max(scale, ROUNDING_FLOOR * at.magnitude / (2 * task.sum_weight))
    rank, condition = _active_rank(task, state)
    return Certificate(
        claim="relative excess of the objective",
        theorem="weak duality: the dual objective at any feasible point is a lower bound",
        value=gap / scale + rounding / scale + TINY,
        tolerance=tolerance,
        rounding=rounding / scale + TINY,
        rank=rank,
        n_columns=len(state.coef),
        condition=condition,
        names=tuple(["intercept"] * int(task.fit_intercept) + list(task.source.names)),
    )


def duality_gap(task: Task, state: Weights, at: Residual) -> tuple[float, float, float]:
    """Gap, what rounding may add, and the objective, all scaled."""
    total = task.sum_weight
    weights, _ = task.to_scaled(state)
    penalty = scaled_penalty(task)
    outside = np.maximum(weights - penalty.upper, penalty.lower - weights)
    if (outside > 0).any():
        return np.inf, 0.0, at.squares / (2 * total) + penalty.value(weights)
    level = at.gradient[0] / total if task.fit_intercept else 0.0
    q = at.gradient[1:] / total
    error = (at.rounding[1:] + TWOFOLD_UNIT * np.sqrt(at.magnitude) * task.norms) / total
    error += abs(level) * task.norms / np.sqrt(total)  # what taking the mean off the residuals may move
    q, moved = _orthogonal(task, penalty, q, total)
    share = _share(penalty, np.abs(q) + error)
    squares = max(at.squares / total - level * level, 0.0)
    apart = (1 - share) ** 2 * squares + (1 - (1 - share) ** 2) * moved + level * level
    brackets = _brackets(penalty, weights, share * q)
    reach = np.abs(weights) + np.abs(np.nan_to_num(penalty.maximiser(share * q), posinf=0.0, neginf=0.0))
    rounding = float(error @ reach) + 2.0**-50 * float(np.abs(q) @ reach)
    gap = apart / 2 + float(brackets.sum())
    return gap, rounding, at.squares / (2 * total) + penalty.value(weights)


def scaled_penalty(task: Task) -> ElasticPenalty:
    """The penalty on scaled weights, of the objective times y_scale^2."""
    p, s = task.strengths.penalty, task.scaling
    with np.errstate(over="ignore", under="ignore"):
        bounds = (bound * s.y_scale / s.scale for bound in (p.lower, p.upper))
        return ElasticPenalty(p.l1 * s.scale * s.y_scale, p.l2 * s.scale**2, *bounds)


def _brackets(penalty: ElasticPenalty, w: Array, q: Array) -> Array:
    """h_j(w_j) + h*_j(q_j) - q_j w_j >= 0."""
    own = penalty.l1 * np.abs(w) + penalty.l2 / 2 * w * w
    return np.maximum(own + penalty.conjugate(q) - q * w, 0.0)


def _orthogonal(task: Task, penalty: ElasticPenalty, q: Array, total: float) -> tuple[Array, float]:
    """q after the residuals are made orthogonal to unpenalised columns without bounds, and |change|^2 / W."""
    unpenalised = (penalty.l1 == 0) & (penalty.l2 == 0)
    free = np.flatnonzero(unpenalised & ~(np.isfinite(penalty.lower) & np.isfinite(penalty.upper)))
    if not len(free):
        return q, 0.0
    products = task.products(free) / total
    move, *_ = np.linalg.lstsq(products, q[free], rcond=None)
    others = np.setdiff1d(np.arange(len(q)), free)
    across = task.products(np.concatenate([free, others]))[len(free) :, : len(free)] / total
    q = q.copy()
    q[others] -= across @ move
    q[free] = 0.0
    return q, float(move @ products @ move)


def _share(penalty: ElasticPenalty, size: Array) -> float:
    """The largest multiple of q, at most 1, at which every conjugate is finite; size bounds |q|."""
    open_ended = (penalty.l2 == 0) & ~(np.isfinite(penalty.lower) & np.isfinite(penalty.upper))
    binding = open_ended & (size > penalty.l1) & (penalty.l1 > 0)
    return float(np.min(penalty.l1[binding] / size[binding], initial=1.0))


def _active_rank(task: Task, state: Weights) -> tuple[int, float]:
    """Number of columns with a weight, and the condition of those."""
    active = np.flatnonzero(state.coef)
    if not len(active) or len(active) > 2000:
        return len(active), 1.0 if not len(active) else np.inf
    products = task.products(active)
    norms = np.sqrt(np.maximum(np.diagonal(products), 0.0))
    factor = plain_factor(System.of(products, None, np.zeros(len(active)), norms))
    return len(active), np.inf if factor is None else factor.condition
