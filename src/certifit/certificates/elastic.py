"""The certificate of lasso and elastic net: the duality gap, from the data and the weights alone."""

from __future__ import annotations

import numpy as np

from certifit.certificates.certificate import EXACT_FIT_CLAIM, Certificate, prediction_change
from certifit.statistics.factor import System, plain_factor
from certifit.statistics.residual import TINY
from certifit.tasks.duality import duality_gap
from certifit.tasks.elastic import ElasticTask
from certifit.tasks.normal_equations import Weights

MOST_PROVEN = 400  # columns with a weight up to which a gap is brought to its floor, so that small nudges are seen
FLOOR = 1e-14  # a relative gap that is its floor
MOST_ACTIVE = 2000  # columns with a weight up to which their condition is told


def certify(task: ElasticTask, state: Weights, tolerance: float) -> Certificate:
    """How far the objective at the state can be above its minimum."""
    is_cheap = np.count_nonzero(state.coef) <= MOST_PROVEN
    gap = duality_gap(task, state, tolerance, FLOOR if is_cheap else tolerance)
    rank, condition = _active_rank(task, state)
    return Certificate(
        claim=EXACT_FIT_CLAIM if gap.is_exact_fit else "relative excess of the objective",
        theorem="weak duality: the dual objective at any feasible point is a lower bound",
        value=gap.relative,
        tolerance=tolerance,
        rounding=gap.rounding / gap.scale + TINY,
        rank=rank,
        n_columns=len(state.coef),
        condition=condition,
        names=tuple(["intercept"] * int(task.fit_intercept) + list(task.source.names)),
        prediction_change=prediction_change(2 * gap.relative * gap.scale, task.scaling.y_scale),
    )


def _active_rank(task: ElasticTask, state: Weights) -> tuple[int, float]:
    """Number of columns with a weight, and the condition of those."""
    active = np.flatnonzero(state.coef)
    if not len(active) or len(active) > MOST_ACTIVE:
        return len(active), 1.0 if not len(active) else np.inf
    products = task.products(active)
    norms = np.sqrt(np.maximum(np.diagonal(products), 0.0))
    factor = plain_factor(System.of(products, None, np.zeros(len(active)), norms))
    # An estimate by LAPACK, whose last bits depend on where the matrix lies in memory.
    return len(active), np.inf if factor is None else float(f"{factor.condition:.6g}")
