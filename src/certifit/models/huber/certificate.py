"""The certificate of Huber regression: the duality gap, from the data and the state alone.

The loss s h(r / s) is the largest u r - s u^2 / 2 over |u| <= delta. So for any u in that box with sum_i w_i u_i = 0
(the intercept), and X'u = 0 without a penalty, the objective over W = sum_i w_i exceeds its minimum by at most

    sum_i w_i [ s h(r_i / s) + s u_i^2 / 2 - u_i r_i ] / W  +  sum_j (pull_j w_j - x_j'u)^2 / (2 pull_j)

and with a joint scale, if the mean of u^2 is at most 1, by s (1 - mean u^2) / 2 more. Every term is >= 0, so nothing
cancels. u: the slopes of the loss a few Newton steps on, projected on what must be orthogonal, shrunk into the box. Any
steps give a proof; those give a near one. Columns whose penalty is weak may be made orthogonal too: their part of the
penalty is then paid in full. What is left of columns that nearly are combinations of others counts as columns.
Beside fits without some columns, which u need not be orthogonal to, the weights w_j that the state gives these take
sum_j w_j x_j'u / W off the excess.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block
from certifit.models.certificate import EXACT_FIT_CLAIM, Certificate
from certifit.models.huber.null_model import relative_to
from certifit.models.huber.task import HuberSums, HuberTask, HuberWeights, Point, Rows, Slopes
from certifit.models.huber.wide import WideHuberTask
from certifit.models.least_squares.certificate import relations
from certifit.runtime import one_blas_thread
from certifit.statistics.factor import Factor, System, plain_factor, product_above_0
from certifit.statistics.remainders import column_factor
from certifit.statistics.residual import LEAST_SQUARES, MATRIX_ERROR, TINY, UNIT, meets_every_row

MOST_STEPS = 3  # of Newton's method from the state to a dual point
MOST_LIFTS = 3  # of u to the moments that the penalty asks for
SAFETY = 1e-12  # of a value, for the last roundings
NEGLIGIBLE = 1e-12  # penalties this small change neither the matrix nor the objective
WEAK = (1e-6, 1e-20)  # of the curvature of all rows: pulls below such a share are weak
PLAIN = 1e3  # condition up to which the errors of twofold sums are below all others
TIGHT = 1.5  # times the excess: a gap for which no further dual point is tried
GOOD = 1e-13  # of the objective: a gap for which no further dual point is tried
ENOUGH = 0.01  # of the gap that the tolerance allows: the same, for dual points of rotated rows
RESIDUAL_ERROR = 2.0**-100  # of the terms of a residual, in scaled units: it is summed in twofold precision
DRIFT_ERROR = 4 * UNIT  # of two objectives, for the roundings of their difference

CLAIMS = {
    True: "relative excess of the objective in weights, intercept and scale",
    False: "relative excess of the objective at the scale given",
}
NO_VARIATION = (
    "The target does not vary, so no scale is the best one: the objective falls with the scale, to 0 that no fit has. "
    "Give a scale, or take scale='mad'."
)
INSTEAD = 'Use quantile regression of the median, scale= a number or, for claims that are mostly 0, GLM("tweedie").'
ZERO = {
    "joint": "The best scale is 0, and this the fit of least absolute values: numbers u of the rows prove it, |u| <= "
    f"delta, mean square at most 1, X'u = 0 or the pull of the penalty. {INSTEAD}",
    "mad": f"The median of |r| is 0, so is the scale, and this the fit of least absolute values. {INSTEAD}",
}
MAD_CLAIM = "relative excess of the objective at the scale found, and its change to that of the median residual"


@dataclass(frozen=True)
class Dual:
    """A point of the dual: u = share (slope of the loss of this scale after the step, less a'lift)."""

    at: Point
    step: Array
    scale: float
    lift: Array
    share: float = 1.0

    def of_rows(self, stretch: Block, rows: Rows, r: Array) -> Array:
        """u of the rows of a stretch, whose residuals at the state are r."""
        moved = r - rows.products(stretch, self.step)
        u = rows.loss.slope(moved, self.scale)
        return self.share * (u - rows.products(stretch, self.lift) if self.lift.any() else u)


@dataclass(frozen=True)
class RowDual(Dual):
    """The same for any numbers of the rows, which are one stretch."""

    numbers: Array = field(default_factory=lambda: np.zeros(0))

    def of_rows(self, stretch: Block, rows: Rows, r: Array) -> Array:
        """u of the rows."""
        return self.share * (self.numbers - rows.products(stretch, self.lift))


@dataclass(frozen=True)
class Excess:
    """sum_i w_i of the brackets, and of |u_i - slope| |r_i|, which the roundings of r scale with."""

    brackets: float
    spread: float
    apart: float  # sum_i w_i (r_i - s u_i)^2

    def __add__(self, other: Excess) -> Excess:
        return Excess(self.brackets + other.brackets, self.spread + other.spread, self.apart + other.apart)


@dataclass(frozen=True)
class Largest:
    """The largest |a'step| of all rows."""

    value: float

    def __add__(self, other: Largest) -> Largest:
        return Largest(max(self.value, other.value))


@np.errstate(over="ignore", invalid="ignore")  # far states: what is infinite or not a number proves nothing
@one_blas_thread
def certify(task: HuberTask, state: HuberWeights, tolerance: float) -> Certificate:
    """How far the objective at the state can be above its minimum."""
    at = task.point(state)
    sums = task.sums_at(at)
    objective = task.objective(at, sums, task.is_joint)
    beyond = task.beyond_pull(state, at.scale)  # the minimum with a penalty cut for tiny columns is a lower bound
    is_met = bool(sums.loss == 0) and meets_every_row(task.source, state.coef, state.intercept)
    scale, is_exact = relative_to(task, at, is_met, objective + beyond)
    gap, rounding, literal = _bounds(task, state, at, sums, objective, ENOUGH * tolerance * scale)
    if scale < LEAST_SQUARES:  # losses underflow, with nothing larger that they are relative to
        gap, literal, is_exact = np.inf, None, False
    gap, literal = gap + beyond, None if literal is None else literal + beyond
    if literal is not None and literal + SAFETY * literal <= tolerance * scale:
        gap, rounding, literal = literal, 0.0, None  # over all weights, without a condition
    drift = _drift(task, state, at, objective)
    gap += drift + (TINY if state.coef.any() else 0.0)  # squares of small weights are lost, but they are not 0
    if is_exact:  # what is left of the residuals may be their rounding
        off = RESIDUAL_ERROR * (2 + abs(at.intercept) + 2 * float(np.abs(at.weights).sum()))
        rounding += off * min(float(np.sqrt(2 * objective * at.scale) + off) / at.scale, task.loss.delta)
    rounding = rounding / scale + SAFETY * gap / scale + TINY
    value, advice = gap / scale + rounding, NO_VARIATION if task.is_joint and is_met else ""
    if task.is_at_zero(at.scale) and not is_exact and value <= tolerance:  # the dual point is the witness
        value, advice = np.inf, ZERO[str(task.rule)]
    claim = MAD_CLAIM if task.rule == "mad" else CLAIMS[task.is_joint]
    return Certificate(
        claim=EXACT_FIT_CLAIM if is_exact else claim,
        theorem="weak duality: the dual objective at any feasible point is a lower bound",
        value=value,
        tolerance=tolerance,
        rounding=rounding,
        rank=task.rank,
        n_columns=len(state.coef),
        condition=task.factor.condition,
        dependent=relations(task),
        names=tuple(["intercept"] * int(task.fit_intercept) + list(task.source.names)),
        literal=None if literal is None else float((literal + drift) / scale) * (1 + SAFETY) + TINY,
        advice=advice,
    )


def _bounds(
    task: HuberTask, state: HuberWeights, at: Point, sums: HuberSums, objective: float, enough: float
) -> tuple[float, float, float | None]:
    """Gap, what rounding may add, and the gap over all weights where the first is over the kept columns alone."""
    if isinstance(task, WideHuberTask):
        return *_wide_gap(task, state, at, objective, enough), None
    remainders = task.remainders if _is_free(task) else None  # else the penalty's brackets are those of all columns
    if remainders is None or remainders.is_exact.all():
        return *duality_gap(task, at, sums, objective, _demands(task, at.scale))[:2], None
    wide = task.over_all_weights
    over_all = duality_gap(task, at, sums, objective, _weak_demands(task, at.scale))[:2]
    if wide is not None and wide.gram.scaling.y_scale == task.gram.scaling.y_scale:
        point = wide.point(wide.wider(state))
        gap, rounding, _ = duality_gap(wide, point, wide.sums_at(point), objective, _demands(wide, point.scale))
        penalty = float(task.pull(at.scale) @ np.square(at.weights)) / (2 * task.gram.sum_weight)
        over_all = min((gap + penalty, rounding), over_all, key=sum)
    if remainders.is_apart.any():
        return *over_all, None
    outside = tuple(int(j) for j in remainders.columns[~remainders.is_exact])
    restricted = duality_gap(task, at, sums, objective, _demands(task, at.scale, outside))[:2]
    return *min(restricted, over_all, key=sum), float(sum(over_all))  # fewer fits have no lower minimum


def _wide_gap(
    task: WideHuberTask, state: HuberWeights, at: Point, objective: float, enough: float
) -> tuple[float, float]:
    """Of fewer rows than columns: by the slopes at the state, or by a dual point of the rotated rows.

    Without a penalty by the dual point 0. enough: a gap for which no further dual point is tried.
    """
    best, pull, total = (objective, 0.0), task.pull(at.scale), task.gram.sum_weight
    constant = plain_factor(System.of(np.full((1, 1), total), None, np.zeros(1), np.full(1, np.sqrt(total))))
    if constant is None or not (pull > 0).all():
        return best
    nothing, places = np.zeros(len(at.weights) + 1), np.arange(int(task.fit_intercept))
    demands = Demands(np.zeros(len(at.weights), dtype=bool), constant, places)
    best = min(best, _gap_at(task, at, Dual(at, nothing, at.scale, nothing), demands)[:2], key=sum)
    if sum(best) <= GOOD * objective:
        return best
    small = task.rotated.task
    point = small.point(task.to_rotated(state))
    sums, rows = small.sums_at(point), small.rows()
    least = small.objective(point, sums, task.is_joint)
    *_, dual = duality_gap(small, point, sums, least, _demands(small, point.scale), enough)
    if dual is None:
        return best
    stretch = next(iter(small.source.stretches()))
    numbers = dual.of_rows(stretch, rows, rows.residuals(stretch, point))
    gap = _gap_at(task, at, RowDual(at, nothing, at.scale, nothing, numbers=numbers), demands)[:2]
    return min(best, gap, key=sum)


def duality_gap(
    task: HuberTask, at: Point, sums: HuberSums, objective: float, choices: Iterator[Demands], enough: float = 0.0
) -> tuple[float, float, Dual | None]:
    """Gap and what rounding may add, scaled, over the scale where that is held: the best of a few dual points."""
    best: tuple[float, float, Dual | None] = (objective, 0.0, None)  # the dual point 0
    enough = max(enough, GOOD * objective)
    gained = 0.0  # what the steps to the dual points take off the objective: no gap is below it
    duals: Iterable[Dual] = _duals(task, at, sums)
    for demands in choices:
        tried = []
        for dual in duals:
            tried.append(dual)
            gap = _gap_at(task, at, dual, demands)
            best = gap if sum(gap[:2]) < sum(best[:2]) else best  # never a NaN
            if sum(best[:2]) <= enough:
                return best
            if not isinstance(duals, list):
                gained = max(gained, objective - _objective_after(task, at, dual))
            if sum(best[:2]) <= TIGHT * gained:
                return best
        duals = tried  # the demands change none of the steps
    return best


def _objective_after(task: HuberTask, at: Point, dual: Dual) -> float:
    """The objective after the step to a dual point."""
    there = replace(at, scale=dual.scale if task.is_joint else at.scale)
    sums = task.sums_at(there, dual.step, with_near=False)
    return task.objective(replace(there, weights=at.weights + dual.step[1:]), sums, task.is_joint)


@dataclass(frozen=True)
class Demands:
    """Columns that u must be orthogonal to, in addition to the intercept: their penalty is then paid in full.

    factor: of (intercept, these columns), by places in (intercept, columns); lifted: u is brought to X'u = pull w
    on the others, which are free to be anything. outside: columns that the fits compared with do not use.
    """

    columns: Array
    factor: Factor
    places: Array
    lifted: bool = False
    outside: tuple[int, ...] = ()

    def to_remove(self, moments: Array) -> Array:
        """The step v whose a'v, taken off u, makes the demanded moments vanish."""
        out = np.zeros(len(moments))
        if len(self.places):
            out[self.places] = self.factor.solve(moments[self.places])
        return out


def _demands(task: HuberTask, scale: float, outside: tuple[int, ...] = ()) -> Iterator[Demands]:
    """All kept columns without a penalty, or with one that the matrix of all rows does not show; else weak demands."""
    d = task.gram.n_columns
    if _is_free(task):
        places = np.arange(1 - int(task.fit_intercept), d + 1)
        yield Demands(np.ones(d, dtype=bool), task.factor, places, outside=outside)
    yield from _weak_demands(task, scale)


def _weak_demands(task: HuberTask, scale: float) -> Iterator[Demands]:
    """The intercept alone, and with it the columns that a penalty holds but weakly: brackets divide by their pull."""
    offset, d, pull = int(task.fit_intercept), task.gram.n_columns, task.pull(scale)
    if task.strength == 0:
        return
    size = np.diagonal(task.gram.sums)[:d] / scale
    weak = [pull <= share * size for share in WEAK]
    for wanted in (np.zeros(d, dtype=bool), *(flags for flags in weak if flags.any())):
        columns, factor = _independent(task, wanted)
        if factor is None or not (pull[~columns] > 0).all():
            continue
        places = np.append([0] * offset, 1 + np.flatnonzero(columns)).astype(np.int64)
        for lifted in (False, True):
            yield Demands(columns, factor, places, lifted)


def _independent(task: HuberTask, columns: Array) -> tuple[Array, Factor | None]:
    """Those of some columns that no others before them make redundant, and their factor with the intercept.

    It is without a penalty; None where float64 sums do not bear it.
    """
    places = np.flatnonzero(columns)
    sums, offset = task.gram.taken(places), int(task.fit_intercept)
    if not len(places) + offset:
        return columns, task.factor  # nothing is demanded: it is not used
    if sums.low is not None:
        factor = column_factor(sums, task.fit_intercept)
        if not len(factor.dependent):
            return columns, factor
        kept = np.zeros_like(columns)
        kept[places[factor.kept[factor.kept >= offset] - offset]] = True
        return kept, column_factor(task.gram.taken(np.flatnonzero(kept)), task.fit_intercept)
    order = np.append([len(places)] * offset, np.arange(len(places))).astype(np.int64)
    norms = np.append([np.sqrt(sums.sum_weight)] * offset, sums.norms)
    return columns, plain_factor(System.of(sums.sums[np.ix_(order, order)], None, np.zeros(len(order)), norms))


def _duals(task: HuberTask, at: Point, sums: HuberSums) -> Iterator[Dual]:
    """The slopes some Newton steps on, in weights and scale, then in the weights alone; and from scales with a band.

    A joint scale that falls to 0 has hardly a band to step in.
    """
    if task.is_joint and at.scale >= task.smallest_scale:
        yield from _newton_duals(task, at, at.scale, sums, True)
    yield from _newton_duals(task, at, at.scale, sums, False)
    if at.scale < 4 * task.smallest_band:
        for scale in (task.smallest_band, task.smallest_scale):
            yield from _newton_duals(task, at, scale, task.sums_at(replace(at, scale=scale)), False)


def _newton_duals(task: HuberTask, at: Point, scale: float, sums: HuberSums, free: bool) -> Iterator[Dual]:
    """The slopes after every one of a few Newton steps from the state: steps that its float64 weights need not hold."""
    step = nothing = np.zeros(len(at.weights) + 1)
    for k in range(MOST_STEPS):
        here = replace(at, weights=at.weights + step[1:], scale=scale)
        way = task.newton_step(here, sums if k == 0 else task.sums_at(replace(at, scale=scale), step), 0.0, free)
        if not np.isfinite(way.step).all():
            return
        step = step + way.step
        scale = max(scale + way.scale, scale / 2)
        yield Dual(at, step, scale, nothing)


def _gap_at(task: HuberTask, at: Point, dual: Dual, demands: Demands) -> tuple[float, float, Dual]:
    """Gap, what rounding may add, and the dual point that was made of the one given: feasible but for rounding."""
    total, pull = task.gram.sum_weight, task.pull(at.scale)
    dual, slopes = _made_feasible(task, dual, demands, pull * at.weights)
    moments = task.moments(slopes)
    off, reach = _infeasibility(task, moments, slopes, demands)
    share = _share(task, slopes, off, reach)
    dual = replace(dual, share=share)
    excess = task.source.reduce(partial(_excess_of_stretch, rows=task.rows(), dual=dual))
    held = np.where(demands.columns, 0.0, pull)  # the minimum without the penalty of some columns is a lower bound
    paid = float((pull - held) @ np.square(at.weights)) / 2
    gap = excess.brackets + paid + _penalty_bracket(held, at.weights, share * moments[1:])
    squares = share**2 * slopes.squares
    if task.is_joint:
        gap += at.scale / 2 * max(total - squares, 0.0)
    # Both forms of the data term, with and without s u^2 / 2, move by no more than this.
    size = np.sqrt(excess.apart) + at.scale * np.sqrt(squares)
    rounding = size * off + at.scale / 2 * off * off
    rounding += 8 * UNIT * (excess.spread + np.sqrt(excess.apart * squares))  # r and u are rounded
    rounding += UNIT * at.scale * total * (16 if task.is_joint else 0)
    outside = np.array(demands.outside, dtype=np.int64)
    used, used_error = _used_outside(task, at, outside, share * moments[1:], off, slopes)
    gap, rounding = max(gap - used, 0.0), rounding + used_error
    unit = MATRIX_ERROR if task.standardize else UNIT  # of a pull: squares of spreads come from sums
    error = task.gram.norms * off + UNIT * np.abs(moments[1:]) + unit * pull * np.abs(at.weights)
    error = error + task.moment_error(slopes.squares)[1:]
    distance = np.abs(pull * at.weights - share * moments[1:])
    rounding += unit * paid
    rounding += float(np.sum(np.divide(error * (distance + error), held, where=held > 0, out=np.zeros_like(held))))
    return float(gap / total), float(rounding / total), dual


def _used_outside(
    task: HuberTask, at: Point, outside: Array, moments: Array, off: float, slopes: Slopes
) -> tuple[float, float]:
    """sum_j w_j x_j'u of the columns that the fits compared with do not use, and what its rounding may be."""
    if not len(outside):
        return 0.0, 0.0
    lengths = np.sqrt(np.diagonal(task.gram.sums)[outside])
    error = lengths * off + UNIT * np.abs(moments[outside]) + task.moment_error(slopes.squares)[1:][outside]
    used = at.weights[outside] * moments[outside]
    return float(used.sum()), float(np.abs(at.weights[outside]) @ error + UNIT * np.abs(used).sum())


def _made_feasible(task: HuberTask, dual: Dual, demands: Demands, goal: Array) -> tuple[Dual, Slopes]:
    """The dual with what is demanded taken off u, and brought to a goal of the other moments where they are lifted."""
    slopes = _slopes(task, dual)
    wanted = np.append(0.0, np.where(demands.columns, 0.0, goal))
    offset = 1 - int(task.fit_intercept)
    for _ in range(MOST_LIFTS if demands.lifted else 1):
        moments = task.moments(slopes)
        left = np.zeros(len(moments))
        if demands.lifted:
            left[offset:] = task.factor.solve((moments - wanted)[offset:])
        else:
            left = demands.to_remove(moments)
        if not left.any():
            break
        dual = replace(dual, lift=dual.lift + left)
        slopes = _slopes(task, dual)
    if demands.lifted:
        dual = replace(dual, lift=dual.lift + demands.to_remove(task.moments(slopes)))
        slopes = _slopes(task, dual)
    return dual, slopes


def _infeasibility(task: HuberTask, moments: Array, slopes: Slopes, demands: Demands) -> tuple[float, float]:
    """How far an exactly feasible point lies from u: in the norm of the rows, and at most in any row."""
    if not len(demands.places):
        return 0.0, 0.0
    remaining = demands.to_remove(moments)
    off = 2 * np.sqrt(product_above_0(remaining[demands.places], moments[demands.places]))
    reach = 2 * task.source.reduce(partial(_largest_of_stretch, rows=task.rows(), step=remaining)).value
    if demands.factor.condition <= PLAIN:
        return float(off * (1 + SAFETY) + UNIT * UNIT * np.sqrt(slopes.squares)), float(reach)
    # With e the errors of the moments the point is v = A^-1 e further: sqrt(e'|A^-1|e) in the norm of the rows. In any
    # row |a'v| is at most |a|'|A^-1|e, scaled columns being at most 4 in size, and at most that norm over sqrt(w).
    error = task.moment_error(slopes.squares)[demands.places]
    step = np.abs(demands.factor.inverse) @ error
    more = float(np.sqrt(product_above_0(error, step)))
    lightest = task.source.reduce(partial(_lightest_of_stretch, rows=task.rows())).value
    return float(off + more), float(reach + min(4 * step.sum(), more * lightest))


def _slopes(task: HuberTask, dual: Dual) -> Slopes:
    return task.source.reduce(partial(_slopes_of_stretch, rows=task.rows(), dual=dual))


def _slopes_of_stretch(stretch: Block, rows: Rows, dual: Dual) -> Slopes:
    return rows.slopes(stretch, dual.of_rows(stretch, rows, rows.residuals(stretch, dual.at)))


def _largest_of_stretch(stretch: Block, rows: Rows, step: Array) -> Largest:
    if not step.any():
        return Largest(0.0)
    size = np.where(rows.weights(stretch) > 0, np.abs(rows.products(stretch, step)), 0.0)
    return Largest(float(size.max(initial=0.0)))


def _lightest_of_stretch(stretch: Block, rows: Rows) -> Largest:
    """The largest 1 / sqrt(w) of rows of positive weight."""
    weight = rows.weights(stretch)
    return Largest(float(1 / np.sqrt(weight[weight > 0].min(initial=np.inf))))


def _excess_of_stretch(stretch: Block, rows: Rows, dual: Dual) -> Excess:
    loss, weight, scale = rows.loss, rows.weights(stretch), dual.at.scale
    r = rows.residuals(stretch, dual.at)
    u = dual.of_rows(stretch, rows, r)
    apart = np.abs(u - loss.slope(r, scale))
    brackets = loss.excess(r, u, scale)
    return Excess(
        float(weight @ brackets), float(weight @ (apart * np.abs(r))), float(weight @ np.square(r - scale * u))
    )


def _is_free(task: HuberTask) -> bool:
    """Whether there is no penalty, or one so small that the matrix of all rows does not show it."""
    offset = int(task.fit_intercept)
    kept = task.factor.kept[task.factor.kept >= offset] - offset
    penalty, size = task.penalty[kept], np.diagonal(task.gram.sums)[kept]
    with np.errstate(divide="ignore"):
        share = float(np.max(np.divide(penalty, size, where=penalty > 0, out=np.zeros(len(kept))), initial=0.0))
    return share * max(task.factor.condition, 1.0) ** 2 <= NEGLIGIBLE


def _share(task: HuberTask, slopes: Slopes, off: float, reach: float) -> float:
    """The largest multiple of u, at most 1, in the box and, with a joint scale, of mean square at most 1."""
    largest, delta = slopes.largest + reach, task.loss.delta
    share = delta / largest if largest > delta else 1.0
    if task.is_joint:
        length, most = float(np.sqrt(slopes.squares) + off), float(np.sqrt(task.gram.sum_weight))
        share = min(share, most / length if length > most else 1.0)
    return float(share) * (1 - 4 * UNIT)


def _penalty_bracket(pull: Array, weights: Array, moments: Array) -> float:
    """sum_j (pull_j w_j - m_j)^2 / (2 pull_j): 0 where nothing pulls, for there m_j = 0."""
    apart = pull * weights - moments
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.sum(np.where(pull > 0, apart * (apart / pull) / 2, 0.0)))


def _drift(task: HuberTask, state: HuberWeights, at: Point, objective: float) -> float:
    """How much the objective at the state changes from its scale to the median one, over the scale; else 0."""
    if task.rule != "mad":
        return 0.0
    other = replace(at, scale=task.median_scale(state))
    there = task.objective(other, task.sums_at(other, with_near=False), False) * (other.scale / at.scale)
    return abs(there - objective) + DRIFT_ERROR * (there + objective)
