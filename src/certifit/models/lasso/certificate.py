"""The certificate of lasso and elastic net: the duality gap, from the data and the weights alone.

With r the residuals, W the sum of weights and any u with sum_i w_i u_i = 0, q = X'u / W, the objective exceeds its
minimum by at most

    |r - u|^2 / (2 W) + sum_j [ h_j(w_j) + h*_j(q_j) - q_j w_j ]

and every bracket is >= 0, so nothing cancels. u is r made orthogonal to what must be (the intercept, unpenalised
columns that no bound holds) and scaled into the domain of h*; or the same of the residuals after a Newton step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from certifit.data.columns import Array
from certifit.models.certificate import EXACT_FIT_CLAIM, Certificate, prediction_change
from certifit.models.lasso.task import LassoTask
from certifit.models.least_squares.normal_equations import Weights
from certifit.runtime import core
from certifit.statistics.factor import System, plain_factor, product_above_0
from certifit.statistics.residual import MATRIX_ERROR, TINY, Residual, is_exact_fit

SAFETY = 1e-14  # share added to a value for the last roundings
MOST_SETTLED = 3000  # most columns with a weight for which a second dual point is tried
MOST_ROUNDS = 10  # most rounds of finding the columns that u must be orthogonal to


@dataclass(frozen=True)
class Gap:
    """How far the objective can be above its minimum, what rounding may add, and what both are relative to."""

    value: float
    rounding: float
    objective: float
    scale: float
    is_exact_fit: bool = False  # scale is then the null model's objective
    is_lost: bool = False  # parts of it may have underflowed: nothing is proven

    @cached_property
    def relative(self) -> float:
        """The proven excess, relative; beside a scale of 0 all or nothing."""
        if self.scale == 0:
            return TINY if self.value + self.rounding == 0 else math.inf
        gap = float(self.value + self.rounding) / float(self.scale) * (1 + SAFETY) + TINY
        return gap if math.isfinite(self.scale) and not math.isnan(gap) else math.inf  # infinite where that overflows


@dataclass(frozen=True)
class _Dual:
    """u by its products q = X'u / W with the columns, each known to `error`, and its distance |r - u|^2 / W."""

    q: Array
    error: Array
    distance: float
    level: float  # the mean of the residuals, which is taken off them with an intercept
    level_error: float


@np.errstate(over="ignore", invalid="ignore")  # far states: what is infinite or not a number proves nothing
def duality_gap(task: LassoTask, state: Weights, enough: float = 0.0, floor: float | None = None) -> Gap:
    """The gap at a state, scaled. Further dual points are tried where those before prove less than `enough`, relative.

    The first is off by the errors of q, the second by their squares, at the price of products of columns: it is tried
    where the first proves less than `floor`, None meaning enough. The third is orthogonal to columns of which q is not
    known to a millionth of what the penalty may be: that costs next to nothing. The last is orthogonal to all columns:
    it proves what least squares proves, less the penalty, however small that is.
    """
    penalty, (weights, _) = task.penalty, task.to_scaled(state)
    value, beyond = penalty.value(weights), task.penalty_beyond(state)
    at = task.residual_at(state).settled(task.source, state.coef, state.intercept)
    gap = _nothing_proven(at, value + beyond, task.null_floor(), task.sum_weight)
    # The penalty at the state, and at a minimum, where it is at most the objective, are as right as its strengths.
    rounded = task.strength_error * (value + gap.objective)
    within = ((weights >= penalty.lower) & (weights <= penalty.upper)).all()
    if not within or not np.isfinite(gap.objective) or gap.is_lost:
        return gap
    if gap.objective == 0:
        return replace(gap, value=0.0)
    second = enough if floor is None else floor
    rough, every = (_settled, 1e-6, enough), (_residuals, 0.0, enough)
    for make, known, aim in ((_residuals, np.inf, 0.0), (_settled, np.inf, second), rough, every):
        if gap.relative <= aim:
            break
        dual = _dual(task, state, make(task, state), known)
        if dual is not None:
            brackets, rounding = penalty.gap(weights, dual.q, dual.error)
            # With the largest strengths cut the minimum is smaller, the objective by no more than what was cut.
            tightened = replace(gap, value=dual.distance / 2 + brackets + beyond, rounding=rounding + rounded)
            gap = tightened if tightened.relative < gap.relative else gap  # never a NaN
    return gap


def _nothing_proven(at: Residual, penalty: float, null_squares: float, total: float) -> Gap:
    """The objective at a state, at most, and what an excess is relative to: at least, after all roundings."""
    root, off = math.sqrt(at.squares), at.off
    most, least = (max(end, 0.0) * max(end, 0.0) / (2 * total) + penalty for end in (root + off, root - off))
    null = null_squares / (2 * total)
    is_exact = is_exact_fit(most, null) or at.is_met
    scale = null if is_exact else least
    is_lost = at.is_lost(scale)
    scale = max(scale, TINY) if math.isfinite(scale) else 1.0
    return Gap(np.inf, 0.0, most, scale, is_exact and not is_lost, is_lost)


def _residuals(task: LassoTask, state: Weights) -> _Dual:
    """The residuals less their mean."""
    at = task.residual_at(state)
    columns = (task.norms, task.norms_about, task.means, task.means_error)
    unit = at.unit * math.sqrt(at.magnitude)
    dual = core.centred_dual(at.gradient, at.rounding, unit, task.sum_weight, *columns, bool(task.fit_intercept))
    q, error, level, level_error = dual
    return _Dual(q, error, 0.0, level, level_error)


def _settled(task: LassoTask, state: Weights) -> _Dual:
    """The residuals of a Newton step on the weights that are free to move: q_j = l1_j sign w_j + l2_j w_j there."""
    start, penalty, total = _residuals(task, state), task.penalty, task.sum_weight
    weights, _ = task.to_scaled(state)
    places = np.flatnonzero((weights != 0) & (weights > penalty.lower) & (weights < penalty.upper))
    if not 0 < len(places) <= MOST_SETTLED:
        return start
    across, w = task.across(places) / total, weights[places]
    slope = start.q[places] - penalty.l1[places] * np.sign(w) - penalty.l2[places] * w
    move = newton_step(across[places], slope)
    q, error = start.q - across @ move, start.error + _loss(task, places, move)
    return _Dual(q, error, _square(task, places, move, across), start.level, start.level_error)


def _dual(task: LassoTask, state: Weights, start: _Dual, known: float) -> _Dual | None:
    """A feasible point made of one; None where none was found. known: as `_orthogonal` has it."""
    at, level = task.residual_at(state), start.level
    made = _orthogonal(task, state, start.q, start.error, known)
    if made is None:
        return None
    q, error, moved = made
    share = task.penalty.finite_share(q, error)
    squares = max(at.squares / task.sum_weight - level * level, 0.0)
    # r - share (r - level - moves), the level orthogonal to the rest
    moves = np.sqrt(start.distance) + np.sqrt(moved)
    distance = ((1 - share) * np.sqrt(squares) + share * moves) ** 2 + (abs(level) + start.level_error) ** 2
    return _Dual(share * q, share * error, float(distance), level, start.level_error)


def _loss(task: LassoTask, places: Array, move: Array) -> Array:
    """Rounding of (products of all columns with some) @ move."""
    size = float(task.norms[places] @ np.abs(move)) / task.sum_weight
    return (MATRIX_ERROR + len(places) * 2.0**-52) * size * task.norms


def _square(task: LassoTask, places: Array, move: Array, across: Array) -> float:
    """|move|^2 / W of a combination of columns, with its rounding."""
    rounding = float(_loss(task, places, move)[places] @ np.abs(move))
    return product_above_0(move @ across[places], move) + rounding


def _orthogonal(
    task: LassoTask, state: Weights, q: Array, error: Array, known: float
) -> tuple[Array, Array, float] | None:
    """q after the residuals are made orthogonal to the columns that demand it, its error, and |change|^2 / W.

    An unpenalised column without an upper bound demands q <= 0, one without a lower bound q >= 0; so does a column
    whose q is not `known` to a share of what the penalty may be, of 0 every column. None where that cannot be proven:
    the columns that demand it depend on each other as far as float64 sums can tell.
    """
    penalty = task.penalty
    if known == 0 and len(q) > MOST_SETTLED:
        return None
    pull = penalty.l1 + penalty.l2 * np.abs(task.to_scaled(state)[0])
    unpenalised = ((penalty.l1 == 0) & (penalty.l2 == 0)) | (error >= known * pull)
    if not unpenalised.any():
        return q, error, 0.0
    above, below = unpenalised & np.isinf(penalty.upper), unpenalised & np.isinf(penalty.lower)
    zeroed = above & below
    made: tuple[Array, Array, float] | None = (q, error, 0.0)
    for _ in range(MOST_ROUNDS):
        if zeroed.any():
            made = _projected(task, np.flatnonzero(zeroed), q, error)
        if made is None:
            return None
        violating = ((above & (made[0] + made[1] > 0)) | (below & (made[0] - made[1] < 0))) & ~zeroed
        if not violating.any():
            return made
        zeroed = zeroed | violating
    return None


def _projected(task: LassoTask, places: Array, q: Array, error: Array) -> tuple[Array, Array, float] | None:
    """The residuals orthogonal to some columns: all q, their errors, and |change|^2 / W; None where they depend.

    A computed combination of the columns is taken off; what is left of their q, at most `remaining`, is taken off
    exactly by one of length at most |remaining| / sqrt(least eigenvalue).
    """
    reach = task.norms / np.sqrt(task.sum_weight)
    across = task.across(places) / task.sum_weight
    units = np.sqrt(np.maximum(np.diagonal(across[places]), 0.0))
    if not (units > 0).all():
        return None
    values, vectors = np.linalg.eigh(across[places] / units / units[:, None])
    least = values[0] - MATRIX_ERROR * float(np.sum((reach[places] / units) ** 2))
    if not least > values[0] / 2:
        return None
    move = vectors @ ((vectors.T @ (q[places] / units)) / values) / units
    made, loss = q - across @ move, _loss(task, places, move)
    remaining = (np.abs(made[places]) + error[places] + loss[places]) / units
    off = float(np.sqrt(remaining @ remaining / least))
    loose = error + loss + off * reach
    made[places], loose[places] = 0.0, 0.0
    return made, loose, (np.sqrt(_square(task, places, move, across)) + off) ** 2


def newton_step(products: Array, slope: Array) -> Array:
    """A solution of products move = slope, without directions that rounding cannot tell from zero."""
    units = np.sqrt(np.maximum(np.diagonal(products), 0.0))
    units[units == 0] = 1.0
    inverse = np.linalg.pinv(products / units / units[:, None], rcond=1e-13, hermitian=True)
    return np.asarray(inverse @ (slope / units) / units)


# ---- the certificate -------------------------------------------------------------------------------------------------

MOST_PROVEN = 400  # columns with a weight up to which a gap is brought to its floor, so that small nudges are seen
FLOOR = 1e-14  # relative gap that only roundings are left of
MOST_ACTIVE = 2000  # most columns with a weight for which their condition is stated


def certify(task: LassoTask, state: Weights, tolerance: float) -> Certificate:
    """How far the objective at the state can be above its minimum."""
    gap = proven_gap(task, state, tolerance)
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
        advice="" if gap.relative <= tolerance or task.standardize else _advice(task),
    )


def _advice(task: LassoTask) -> str:
    """Which column is so large beside others that its penalty is lost in the rounding of its products."""
    strengths = task.penalty.l1 + task.penalty.l2  # of columns in units of their size
    least = int(np.argmin(np.where(strengths > 0, strengths, np.inf)))
    if not 0 < strengths[least] < 1e-6 * strengths.max():
        return ""
    return f"{task.source.names[least]!r} is so large that its penalty is lost in rounding: use standardize=True."


def proven_gap(task: LassoTask, state: Weights, tolerance: float) -> Gap:
    """The gap that the certificate of a state has, remembered by the task: the history of a fit has it too."""
    question = (state, tolerance)
    if task.proven is None or not (task.proven[0][0].is_same(state) and task.proven[0][1] == tolerance):
        is_cheap = np.count_nonzero(state.coef) <= MOST_PROVEN
        task.proven = question, duality_gap(task, state, tolerance, FLOOR if is_cheap else tolerance)
    return task.proven[1]


def _active_rank(task: LassoTask, state: Weights) -> tuple[int, float]:
    """Number of columns with a weight, and the condition of those."""
    active = np.flatnonzero(state.coef)
    if not len(active) or len(active) > MOST_ACTIVE:
        return len(active), 1.0 if not len(active) else np.inf
    products = task.products(active)
    norms = np.sqrt(np.maximum(np.diagonal(products), 0.0))
    factor = plain_factor(System(products, None, norms))
    # Of many columns an estimate by LAPACK, whose last bits depend on where the matrix lies in memory.
    return len(active), np.inf if factor is None else float(f"{factor.condition:.6g}")
