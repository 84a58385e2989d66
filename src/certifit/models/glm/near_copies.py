"""Fits without a penalty to columns that are nearly combinations of others, by what is left of these.

x_j = c_j + sum_k C_jk x_k + e_j: in the kept columns and the remainders e_j, scaled to size 1, the condition is
harmless where that of the columns is the square root of what float64 bears.
"""

from __future__ import annotations

import numpy as np

from certifit.data.columns import Array
from certifit.models.glm.concordance import related
from certifit.models.glm.inference import solved
from certifit.models.glm.l1_certificate import most_entries
from certifit.models.glm.points import point_of
from certifit.models.glm.softmax_task import GlmOrSoftmaxTask, GlmState
from certifit.models.start import AUTO
from certifit.statistics import double_double as dd
from certifit.statistics.remainders import LiteralBasis, literal_columns


@np.errstate(over="ignore", invalid="ignore")  # weights beyond float64 are none
def solved_by_remainders(task: GlmOrSoftmaxTask, state: GlmState, max_iter: int) -> GlmState | None:
    """The minimiser in the kept columns and the remainders, in weights of all columns; None where none is near."""
    if task.size > most_entries(task):
        return None
    point = task.from_user_units(np.atleast_2d(state.coef), np.atleast_1d(state.intercept))
    hessian = point_of(task, point, hessian=True).at.hessian
    near = None if hessian is None else related(task, np.zeros(task.source.n_features, dtype=bool), hessian)
    if near is None or not near.is_apart:
        return None
    rows = literal_columns(task.source, near.found.rounding_as_exact(), task.fit_intercept)
    if rows is None:
        return None
    state = solved(task.without_penalty(rows.source), AUTO, 0.0, max_iter).state
    scores = zip(np.atleast_2d(state.coef), np.atleast_1d(state.intercept), strict=True)
    coef, intercept = map(np.array, zip(*(_lifted(rows.basis, *one) for one in scores), strict=True))
    return task.state_of(coef, intercept) if np.isfinite(coef).all() and np.isfinite(intercept).all() else None


def _lifted(basis: LiteralBasis, coef: Array, intercept: float) -> tuple[Array, float]:
    """Weights of all columns with the scores of weights of a basis: the inverse of `LiteralBasis.converted`."""
    r = basis.remainders
    total: dd.Pair = (np.zeros(r.n_columns), np.zeros(r.n_columns))  # of the scaled columns
    total[0][r.kept] = coef[: len(r.kept)] / r.scale[r.kept]
    total[0][r.columns[basis.live]] = coef[len(r.kept) :] * basis.unit
    constant: dd.Pair = (np.asarray(intercept), np.zeros(()))
    for i in np.argsort(r.columns):
        less = tuple(-part[r.columns[i]] for part in total)
        total = dd.add(total, dd.multiply((r.times[0][i], r.times[1][i]), less))
        constant = dd.add(constant, dd.multiply((r.constants[0][i], r.constants[1][i]), less))
    return (total[0] + total[1]) * r.scale, float(constant[0] + constant[1])
