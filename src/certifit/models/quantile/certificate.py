"""The certificate of quantile regression: the duality gap, from the data and the state alone.

For u with q - 1 <= u_i <= q, m = sum_i a_i u_i (x_i, 1), m = 0 for the intercept and |m_j| <= pull_j for every column,
no fit has a loss below sum_i a_i u_i y_i. So with r the residuals of the state its excess is at most

    sum_i a_i [ rho(r_i) - u_i r_i ]  +  sum_j [ pull_j |w_j| - m_j w_j ]

where every bracket is >= 0. u is that of the signs of r; on the rows that the state meets it solves m = 0. Float64 only
nears such a u: that an exact one lies near it is proven by an approximate inverse of the rows met, and how far the
exact one can be off is paid: by its product with the residuals, and by shrinking u into its box.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from certifit.data.columns import Array
from certifit.models.certificate import EXACT_FIT_CLAIM, Certificate
from certifit.models.least_squares.certificate import relations
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.quantile.program import Program, chosen_rows, interior_point
from certifit.models.quantile.task import Point, QuantileTask
from certifit.runtime import one_blas_thread
from certifit.statistics.residual import LEAST_SQUARES, TINY, UNIT, is_exact_fit, meets_every_row

MOST_STEPS = 200  # most steps of the interior point method
SAFETY = 1e-12  # share added to a gap for the last roundings
BOX = 4 * UNIT  # q - 1 is rounded: what shrinking u by as much costs
NEAR = 1e-7  # share of its box: a dual weight nearer to a side is on it
FAINT = 1e-12  # how freely the dual weights of rows that are not met move relative to those that are
CORRECTIONS = 2
MET = 8 * UNIT  # of a row's size, per column: residuals up to it are roundings of a state that meets the row
ENOUGH = 1e-13  # share of the objective: with a gap below it no further dual point is tried
NULL_SHARE = 1 - 1e-12  # factor on the null model's loss, for the roundings of its sums


@dataclass(frozen=True)
class Dual:
    """u of the rows, nearly feasible.

    rows: those whose u may still change. exact: as many columns, d standing for the intercept, whose m is then exactly
    `pulls`; the m of the others has to be within their pull.
    """

    u: Array
    rows: Array
    exact: Array
    pulls: Array


class Gap(NamedTuple):
    """At most the excess of a state, and the part of it that roundings may make."""

    value: float
    rounding: float


@np.errstate(all="ignore")  # far states: what is infinite or not a number proves nothing
@one_blas_thread
def certify(task: QuantileTask, state: Weights, tolerance: float) -> Certificate:
    """How far the objective at the state can be above its minimum."""
    at = task.at(state)
    loss, seen, beyond = task.loss(at.r), task.penalty(at.weights), task.penalty_beyond(state)
    penalty = seen + beyond
    most = (loss + float(task.weight @ at.error) + penalty) * (1 + SAFETY)
    least = max(loss - float(task.weight @ at.error) + max(seen, beyond), 0.0) * (1 - SAFETY)
    (gap, rounding), literal = _gap(task, at, most)
    # The penalty at the state, and at a minimum, where it is at most the objective, are as right as its strengths.
    rounded = task.strength_error * (penalty + most)
    # With pulls that are cut the minimum is smaller, the objective by no more than what was cut.
    gap, rounding = gap + rounded + beyond, rounding + rounded
    scale, is_exact = _relative_to(task, state, least, most)
    if scale < LEAST_SQUARES:  # losses underflow, with nothing larger that they are relative to
        gap, is_exact = np.inf, False
    value = max(gap, 0.0) * (1 + SAFETY) / scale + TINY  # below 0: what is left out of the columns helped the state
    return Certificate(
        claim=EXACT_FIT_CLAIM if is_exact else "relative excess of the objective",
        theorem="weak duality: the dual objective at any feasible point is a lower bound",
        value=value,
        tolerance=tolerance,
        rounding=min(rounding * (1 + SAFETY) / scale + TINY, value),
        rank=task.rank,
        n_columns=len(state.coef),
        condition=np.inf if task.columns is None else task.columns.factor.condition,
        dependent=() if task.columns is None else relations(task.columns),
        names=tuple(["intercept"] * int(task.fit_intercept) + list(task.source.names)),
        literal=None if literal is None else literal * (1 + SAFETY) / scale + TINY,
    )


def _relative_to(task: QuantileTask, state: Weights, least: float, most: float) -> tuple[float, bool]:
    """What an excess is relative to: the objective, or the null model's where this is an exact fit to rounding."""
    if most == 0 and meets_every_row(task.source, state.coef, state.intercept):
        return np.inf, True
    null = _null_loss(task) * NULL_SHARE
    return (null, True) if is_exact_fit(most, null) else (max(least, TINY), False)


def _null_loss(task: QuantileTask) -> float:
    """The loss of the best constant, or of 0 without an intercept."""
    level = 0.0
    if task.fit_intercept:
        order = np.argsort(task.y, kind="stable")
        reached = np.cumsum(task.weight[order])
        place = int(np.searchsorted(reached, task.quantile * reached[-1]))
        level = float(task.y[order[min(place, len(order) - 1)]])
    return task.loss(task.y - level)


def _gap(task: QuantileTask, at: Point, most: float) -> tuple[Gap, float | None]:
    """The least gap of a few dual points; and over all weights, where that is one without redundant columns."""
    nothing = Gap(most, 0.0)  # u = 0
    best = nothing
    if np.isfinite(most) and len(task.kept) + int(task.fit_intercept):
        for dual in _duals(task, at):
            gap = _gap_at(task, at, dual, most)
            best = gap if gap.value < best.value else best
            if best.value <= ENOUGH * most:
                break
    left = task.remainders
    if len(task.kept) == task.source.n_features or (left is not None and left.is_exact.all()):
        return best, None
    return (best, most) if best.value < most and left is not None else (nothing, None)


def _duals(task: QuantileTask, at: Point) -> Iterator[Dual]:
    """From the rows that the state meets; then from a program of all rows."""
    program = task.program(np.zeros(len(task.kept)), at.r)
    yield _of_rows_met(task, at, program)
    target = program.target.copy()
    target[program.n_rows :] = -at.weights[program.penalised]
    every = program.part(np.ones(len(target), dtype=bool), target)
    yield _of_all_rows(task, every, np.zeros(every.n_columns))


def _of_rows_met(task: QuantileTask, at: Point, program: Program) -> Dual:
    """u by the signs of the residuals, and on the rows met so that m is what it must be.

    The sign of a weight fixes its m. Where more rows are met than there are columns, a program of the rows met and of
    the weights that are 0 finds u; any target will do.
    """
    n = program.n_rows
    weights = at.weights[task.kept]
    is_met = np.abs(at.r) <= MET * (np.count_nonzero(weights) + 2) * at.size
    u = np.where(at.r > 0, task.quantile, task.quantile - 1)
    is_free = np.concatenate([is_met, weights[program.penalised] == 0])
    freedom = np.concatenate([np.where(is_met, 1.0, FAINT / (1 + np.abs(at.r))), 2.0 * is_free[n:]])
    rows = chosen_rows(program, freedom)
    pulls = np.sign(at.weights) * task.pull if task.is_penalised else np.zeros(len(at.weights))
    if not np.isin(np.flatnonzero(is_met), rows).all():
        fixed = np.concatenate([task.weight * u, -pulls[program.penalised]])
        fixed[is_free] = 0.0
        target = np.random.default_rng(0).normal(size=int(is_free.sum()))
        part = program.part(is_free, target)
        v, freedom[is_free] = _near_vertex(part, -program.transposed(fixed))
        u[is_met] = (v / (part.upper - part.lower))[: part.n_rows]
        pulls[part.penalised] = -v[part.n_rows :]
        freedom[~is_free] = 0.0
        rows = chosen_rows(program, freedom)
    return _dual(task, program, u, rows, pulls)


def _of_all_rows(task: QuantileTask, program: Program, right: Array) -> Dual:
    """The dual point of a program of all rows."""
    v, freedom = _near_vertex(program, right)
    n = program.n_rows
    pulls = np.zeros(task.source.n_features)
    pulls[task.kept[program.penalised]] = -v[n:]
    return _dual(task, program, v[:n] / task.weight, chosen_rows(program, freedom), pulls)


def _near_vertex(program: Program, right: Array) -> tuple[Array, Array]:
    """v near a vertex, those near a side of their box on it; and how freely each moves."""
    interior = interior_point(program, right, np.zeros(program.n_columns), MOST_STEPS)
    width = program.upper - program.lower
    v = np.where(interior.v - program.lower <= NEAR * width, program.lower, interior.v)
    return np.where(program.upper - v <= NEAR * width, program.upper, v), interior.freedom


def _dual(task: QuantileTask, program: Program, u: Array, rows: Array, pulls: Array) -> Dual:
    """u brought to the moments that it must have, by its values at some rows."""
    n, d = program.n_rows, len(task.kept)
    free = np.setdiff1d(np.arange(program.n_columns), program.penalised[rows[rows >= n] - n])
    exact = np.append(task.kept, task.source.n_features)[free] if task.fit_intercept else task.kept[free]
    dual = Dual(u.copy(), rows[rows < n], exact, np.append(pulls, 0.0)[exact])
    matrix = program.dense_rows(dual.rows)[:, free]
    if d + int(task.fit_intercept) == 0 or matrix.shape[0] != matrix.shape[1]:
        return dual
    for _ in range(CORRECTIONS):
        moments, _ = task.moments(dual.u)
        step = np.linalg.lstsq(matrix.T, moments[dual.exact] - dual.pulls, rcond=None)[0]
        dual.u[dual.rows] -= step / task.weight[dual.rows]
    return dual


def _gap_at(task: QuantileTask, at: Point, dual: Dual, most: float) -> Gap:
    """The gap with an exact dual point near `dual`; infinite where none is proven to be there."""
    moments, errors = task.moments(dual.u)
    off = _distance(task, dual, np.abs(moments[dual.exact] - dual.pulls) * (1 + 4 * UNIT) + errors[dual.exact])
    if off is None or not np.isfinite(off).all():
        return Gap(np.inf, 0.0)
    d, q, a = task.source.n_features, task.quantile, task.weight
    others = np.setdiff1d(np.arange(d), dual.exact)
    moved = np.asarray(abs(task.dense(dual.rows)[:, others]).T @ off)
    reached = np.abs(moments[others]) + errors[others] + moved
    share = 1 - BOX
    for bound, side in ((q, 1.0), (1 - q, -1.0)):
        u = side * dual.u
        u[dual.rows] += off / a[dual.rows]
        share = min(share, bound / float(u.max(initial=bound)))
    if task.is_penalised and len(others):
        share = min(share, float(np.min(task.pull[others] / np.maximum(reached, TINY))))
    brackets = a * (np.where(at.r > 0, q, q - 1) - dual.u) * at.r
    is_sure = (brackets == 0) & (np.abs(at.r) > at.error)
    rounding = float((a * at.error)[~is_sure].sum())
    rounding += float(off @ (np.abs(at.r) + at.error)[dual.rows])
    total = float(brackets.sum()) + rounding
    total += _penalty_brackets(task, at, dual, moments, others, errors[others] + moved)
    gap = max(share, 0.0) * total + (1 - max(share, 0.0)) * most + 4 * UNIT * most
    return Gap(gap, rounding + (BOX + 4 * UNIT) * most)


def _penalty_brackets(task: QuantileTask, at: Point, dual: Dual, moments: Array, others: Array, off: Array) -> float:
    """sum_j [ pull_j |w_j| - m_j w_j ], m_j known to within `off` where it is not exact."""
    d = len(at.weights)
    inner = dual.exact < d
    exact, w = dual.exact[inner], np.abs(at.weights)
    of_exact = (task.pull[exact] - dual.pulls[inner] * np.sign(at.weights[exact])) * w[exact]
    of_others = (task.pull[others] - moments[others] * np.sign(at.weights[others]) + off) * w[others]
    return float(of_exact.sum() + of_others.sum())


def _distance(task: QuantileTask, dual: Dual, missing: Array) -> Array | None:
    """How far a u at most is from one whose moments are exact, times the weights of its rows; None if none is proven.

    With B near the inverse of M' and rho = |I - B M'| < 1 every solution of M'v = e has |v| <= |B e| / (1 - rho).
    """
    columns = dual.exact
    if len(columns) != len(dual.rows):
        return None
    if not len(columns):
        return np.zeros(0)
    matrix = np.column_stack([task.dense(dual.rows), np.ones(len(dual.rows))])[:, columns]
    try:
        inverse = np.linalg.inv(matrix.T)
    except np.linalg.LinAlgError:
        return None
    unit = (len(columns) + 4) * UNIT
    product = np.abs(np.eye(len(columns)) - inverse @ matrix.T) + unit * (np.abs(inverse) @ np.abs(matrix.T) + 1)
    rho = float(product.sum(axis=1).max())
    if not rho < 0.5:
        return None
    size = np.abs(inverse) @ missing * (1 + unit)
    return np.asarray(size + rho / (1 - rho) * float(size.max()))
