"""How far an objective with an L1 penalty or bounds can be above its minimum, of one score per row or of several.

First the duality gap (models/glm/duality.py), from one pass. Its rounding is first order, over the l1 penalty; where
that proves too little, self-concordance proves more. With g and H of the smooth part at a point w:

S holds the columns with a weight, those without l1 penalty and those whose slopes are near it; O the others, which
have no weight and slack_j = l1_j - |g_j| > 0. r = g + s on S, s the slope of the penalty and bounds that makes r least.
For any step d, lambda = |r|_(H_SS^-1):

    -g'd - change of penalty <= -r'd_S - sum_O slack_j |d_j|
    |r'd_S| <= lambda |d_S|_(H_SS) <= lambda ( |d|_H + sum_O sqrt(H_jj) |d_j| )

so where lambda sqrt(H_jj) <= slack_j on O, the objective falls by no more than lambda |d|_H less what curvature adds,
and the bound of models/glm/concordance.py holds. |x_i'd| <= |d|_H sqrt(W / (w_i l''_i)) gives its R; for softmax, p_ik
and p_il the least two chances of a row, its scores move apart by |x_i'(d_m - d_n)| <= |d|_H sqrt(W / w_i (1 / p_ik + 1
/ p_il)).

With several scores S has the columns with a weight of some class. Level are columns without squares, or with weak ones,
which are left out at their price: the objective does not curve along what all classes have in common. There the slopes
s of l1 and bounds are chosen so that their sum over the classes is 0. The slopes of the loss have no sum, so r = g + s
has none either, and what the classes have in common changes nothing in r'd.

A further proof starts from the point that a Newton step leads to: the minimum is at least the objective there less what
is proven there. The last, of one score per row, is a gap again, of a dual point whose products are all but exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block
from certifit.mathematics.losses.scores import ScoreLoss
from certifit.mathematics.penalties import Kinks, minimiser, without_still
from certifit.models.glm.concordance import WEAK, Decrement
from certifit.models.glm.duality import better, duality_gap, gap_of, levelled
from certifit.models.glm.points import Point, ScorePoint, decrement_of, point_of
from certifit.models.glm.softmax_task import GlmOrSoftmaxTask, SoftmaxTask
from certifit.models.glm.some_columns import SomeColumns
from certifit.models.glm.task import GlmTask
from certifit.models.lasso.certificate import Gap, newton_step
from certifit.models.least_squares.normal_equations import Weights
from certifit.runtime import core, n_threads
from certifit.statistics.factor import Curvature
from certifit.statistics.gram import Scaling
from certifit.statistics.loss_sums import with_slopes
from certifit.statistics.residual import MATRIX_ERROR, TINY, UNIT, residual
from certifit.statistics.softmax import scores_by_class

MOST_COLUMNS = 3000  # that a Hessian is made of
MOST_ENTRIES = 4000  # the same of several scores
WIDE = 400  # entries above which only some are gathered for a Hessian
WHOLE = 0.5  # share of the columns above which the Hessian of all is made, without gathering some
NEAR = 1e-6  # of l1: columns whose slack is less are looked at as those with a weight
MOST_ROUNDS = 3  # of finding those columns


@dataclass(frozen=True)
class Proof:
    """The gap, and the condition of the columns with a weight where that is known."""

    gap: Gap
    condition: float

    @property
    def is_exact_fit(self) -> bool:
        """Of the point whose gap this is: one with a Hessian may know its objective better than one without."""
        return self.gap.is_exact_fit


@dataclass(frozen=True)
class _Face:
    """A point, and some rows of it: their Hessian, and the slopes that the penalty and bounds leave."""

    at: Point
    rows: Array
    matrix: Array
    slopes: Array
    price: float  # of weak squares that are left out
    least: float  # of w_i l''_i / W


def most_entries(task: GlmOrSoftmaxTask) -> int:
    """Entries of a point for which a Hessian is made."""
    return MOST_COLUMNS if task.n_scores == 1 else MOST_ENTRIES


def prove(task: GlmOrSoftmaxTask, point: Array, tolerance: float) -> Proof:
    """How far the objective can be above its minimum. Later proofs are tried where earlier ones miss the tolerance."""
    at = point_of(task, point, hessian=False)
    gap = duality_gap(at, tolerance * at.scale)
    if task.loss.is_piecewise:  # a score beyond its kink by rounding: at most twice as much of a slope of 1
        gap = replace(gap, value=gap.value + 2 * at.score_error, rounding=gap.rounding + 2 * at.score_error)
    # Rounding enters the gap once and a proof by curvature squared, which refuses small changes of a weight: where few
    # columns take part it is made even if the gap is within the tolerance.
    enough = gap.relative <= tolerance and (task.size > WIDE and len(_near(at)) * task.n_scores > WIDE)
    if enough or not at.is_feasible or task.loss.concordance is None:
        return Proof(gap, _condition(task, point))
    face = _face(at, is_bonus=gap.relative <= tolerance)
    if face is None:
        return Proof(gap, np.inf)
    gap = better(gap, _by_curvature(face))
    if not gap.relative <= tolerance:
        gap = better(gap, _from_target(face))
    if not gap.relative <= tolerance and isinstance(face.at, ScorePoint) and face.at.sums.hessian is not None:
        gap = better(gap, _settled(face.at))
    return Proof(gap, Curvature(face.matrix).condition)


def estimate(task: GlmTask, point: Array) -> Proof:
    """What the curvature at the point tells, for losses that nothing is proven of."""
    at = point_of(task, point, hessian=False)
    face = _face(at) if at.is_feasible else None
    if face is None:
        return Proof(Gap(np.inf, 0.0, at.objective, 1.0), np.inf)
    decrement = _decrement(face)
    value = decrement.value * decrement.value / 2
    rounding = decrement.estimate() - value
    gap = Gap(value, rounding, at.objective, at.scale, at.base.is_exact_fit)
    return Proof(gap, Curvature(face.matrix).condition)


def _condition(task: GlmOrSoftmaxTask, point: Array) -> float:
    """Of the Hessian of the columns with a weight, at the last point that one was made at."""
    active = np.flatnonzero(point[: -task.n_scores])
    if not len(active):
        return 1.0
    if not isinstance(task, GlmTask):
        return np.inf
    if task.last_hessian is None and task.size <= WIDE:
        task.sums(point, hessian=True)
    if task.last_hessian is None:
        return np.inf
    return Curvature(task.last_hessian[np.ix_(active, active)]).condition


def _face(at: Point, is_bonus: bool = False) -> _Face | None:
    """The Hessian of the columns that matter; None where they are too many, where it or the slopes leave float64, or
    where no slopes of the penalty add up to 0.

    is_bonus: a gap is within the tolerance.
    """
    task, rows = at.task, _near(at)
    is_small = task.n_scores == 1 and task.size <= WIDE
    if is_small and (not is_bonus or len(rows) > WHOLE * task.size):  # knows the shifted columns better
        at = point_of(task, at.point, hessian=True)
    least = _least_curvature(at)
    for _ in range(MOST_ROUNDS):
        if len(rows) * task.n_scores > most_entries(task):
            return None
        matrix, is_level = _matrix(at, rows)
        rest = _slopes(at, is_level) if np.isfinite(matrix).all() and np.isfinite(at.at.gradient).all() else None
        if rest is None:
            return None
        face = _Face(at, rows, matrix, *rest, least)
        short = _too_short(face)
        if not short.any():
            return face
        rows = np.union1d(rows, np.flatnonzero(short))
    return face


def _near(at: Point) -> Array:
    """The rows of the point with a weight, without l1 penalty, or with slopes near it."""
    near = NEAR * np.append(at.task.penalty.l1, np.zeros(at.task.n_scores))
    return np.flatnonzero((_slack(at) <= near.reshape(at.task.shape)).any(axis=1))


def _matrix(at: Point, rows: Array) -> tuple[Array, Array]:
    """The Hessian of the smooth part at some rows of the point, and which rows of all are level."""
    task = at.task
    is_level = np.zeros(task.shape[0], dtype=bool)
    if at.at.hessian is not None:
        matrix = without_still(at.at.hessian, task.scaling.shift)
        return np.asarray(matrix[np.ix_(rows, rows)]), is_level
    columns = rows[rows < task.shape[0] - 1]
    part = np.append(columns, task.shape[0] - 1)
    point = at.point.reshape(task.shape)[part].ravel()
    if isinstance(task, SoftmaxTask):
        whole, weak = _level_hessian(SomeColumns(task).taken(columns, task.strengths.alpha), point)
        is_level[part[weak]] = True
    else:
        hessian = SomeColumns(task).taken(columns, task.strengths.alpha).evaluate(point, hessian=True).hessian
        assert hessian is not None
        whole = hessian
    size = len(rows) * task.n_scores
    return whole[:size, :size], is_level


def _level_hessian(task: SoftmaxTask, point: Array) -> tuple[Array, Array]:
    """The Hessian without weak squares, and which rows of the point those are: they are level.

    What is added to level columns along what classes have in common changes nothing: slopes have no part in it.
    """
    whole, at = task.curvature(point), np.arange(task.shape[0])
    curved = np.einsum("ikik->i", whole) / task.n_classes - task.l2
    weak = task.l2 <= WEAK * curved
    for k in range(task.n_classes):
        whole[at, k, at, k] -= np.where(weak, task.l2, 0.0)
    whole[at[weak], :, at[weak], :] += (curved[weak] / task.n_classes)[:, None, None]
    return whole.reshape(task.size, task.size), weak


def _least_curvature(at: Point) -> float:
    """The least w_i l''_i / W of all rows; of several scores by half the difference of any two."""
    task, unit = at.task, at.task.scaling.weight_scale
    error = 4 * (task.loss.concordance or 0.0) * at.score_error
    if isinstance(task, SoftmaxTask):
        f = partial(_least_of_classes, scaling=task.scaling, point=at.point.reshape(task.shape), unit=unit)
    else:
        f = partial(_least_of_run, loss=task.loss, state=task.to_state(at.point), unit=unit)
    least = min(task.source.map(f), default=np.inf) / task.sum_weight
    # Beyond float64 it bounds nothing.
    return least * (1 - 1e-6) * max(1 - error, 0.0) if least < np.inf else 0.0


def _least_of_run(run: Block, loss: ScoreLoss, state: Weights, unit: float) -> float:
    """The least w_i l''_i of a run."""
    z = core.scores(run.rows, state.coef, state.intercept, n_threads())
    z = z if run.offset is None else z + run.offset
    return _least_weighted(run, loss.curvature(np.asarray(run.y), z), unit)


def _least_of_classes(run: Block, scaling: Scaling, point: Array, unit: float) -> float:
    """The least 4 w / (1 / p + 1 / p') of a run, p and p' the least two chances of a row of weight w."""
    scores, _ = scores_by_class(run, scaling, point)
    scores -= scores.max(axis=1, keepdims=True)
    inverse = np.sort(np.exp(-scores), axis=1)[:, -2:].sum(axis=1) * np.exp(scores).sum(axis=1)
    return _least_weighted(run, 4 / inverse, unit)


def _least_weighted(run: Block, curved: Array, unit: float) -> float:
    """The least over the rows with a weight, times a unit that keeps the weights within float64."""
    weight = np.ones(len(curved)) if run.weight is None else run.weight
    return float((curved * (weight * unit))[weight > 0].min(initial=np.inf))


def _ends(at: Point) -> tuple[Array, Array]:
    """The least and the largest slope of l1 penalty and bounds, entry by entry."""
    kinks, x = Kinks.of(at.task.penalty, at.task.n_scores), at.point
    low = np.where(x <= kinks.lower, -np.inf, np.where(x > 0, kinks.l1, -kinks.l1))
    high = np.where(x >= kinks.upper, np.inf, np.where(x < 0, -kinks.l1, kinks.l1))
    return low.reshape(at.task.shape), high.reshape(at.task.shape)


def _slack(at: Point) -> Array:
    """How much slopes fall short of moving an entry: for those with a weight 0."""
    (low, high), slopes = _ends(at), -at.at.gradient.reshape(at.task.shape)
    slack = np.where(at.point.reshape(at.task.shape) == 0, np.minimum(slopes - low, high - slopes), 0.0)
    slack[-1] = 0.0 if at.task.fit_intercept else np.inf
    return slack


def _slopes(at: Point, is_level: Array) -> tuple[Array, float] | None:
    """g and the slopes of l1 and bounds that make it least, without a sum in level rows; the price of their squares.

    None where there are no such slopes.
    """
    (low, high), w = _ends(at), at.point.reshape(at.task.shape)
    pull = np.where(is_level, at.task.l2, 0.0)[:, None] * w
    gradient = at.at.gradient.reshape(at.task.shape) - pull
    slopes = np.clip(-gradient, low, high)
    for j in np.flatnonzero(is_level):
        over = math.fsum(slopes[j].tolist())
        room = slopes[j] - low[j] if over > 0 else high[j] - slopes[j]
        if np.isinf(room).any():
            slopes[j, int(np.argmax(room))] -= over
        elif room.sum() >= abs(over):
            slopes[j] -= over * (room / max(room.sum(), TINY))
        else:
            return None
    return gradient + slopes, float(np.sum(pull * w)) / 2 * (1 + MATRIX_ERROR)


def _decrement(face: _Face) -> Decrement:
    """lambda on the chosen rows, and R."""
    at, rows = face.at, face.rows
    concordance = at.task.loss.concordance or 0.0
    decrement = decrement_of(at, face.slopes[rows].ravel(), Curvature(face.matrix), concordance, rows)
    with np.errstate(divide="ignore"):
        reach = float(concordance / np.sqrt(face.least)) if concordance else 0.0
    is_whole = len(rows) == at.task.shape[0] - (not at.task.fit_intercept)  # |x_i'd| <= |x_i|_(H^-1) |d|_H then
    return replace(decrement, reach=min(reach, decrement.reach) if is_whole else reach)


def _too_short(face: _Face) -> Array:
    """Which of the other rows have less slack than the proof asks for."""
    at, decrement = face.at, _decrement(face)
    size = decrement.value + decrement.rounding
    if not np.isfinite(size):  # nothing is proven, whatever the rows
        return np.zeros(at.task.shape[0], dtype=bool)
    root = np.sqrt(at.curved * at.reach**2 * (1 + MATRIX_ERROR) + at.task.l2)[:, None]
    is_short = ~(_slack(at) - at.gradient_error.reshape(at.task.shape) >= size * root)
    short = np.asarray(is_short.any(axis=1))
    short[face.rows] = False
    return short


def _by_curvature(face: _Face) -> Gap:
    """The proof of self-concordance."""
    at, decrement = face.at, _decrement(face)
    excess = np.inf if not at.is_feasible or _too_short(face).any() else decrement.excess() + face.price
    if not np.isfinite(excess):
        return Gap(np.inf, 0.0, at.objective, at.scale)
    value = Decrement(decrement.value, 0.0, decrement.reach).excess() + face.price
    return Gap(value, excess - value, at.objective, at.scale, at.base.is_exact_fit)


def _settled(at: ScorePoint) -> Gap:
    """The gap of u_i = l'_i - l''_i x_i'd, l' the numbers that float64 tells, whose products are summed twofold.

    d makes the products what the penalty asks for. What rounds is the change by d alone, which is of the size of
    rounding itself: however weak the penalty is beside it, and however columns depend on each other.
    """
    task, total, none = at.task, at.task.sum_weight, np.zeros(at.task.size - 1)
    scaling, slopes = replace(task.scaling, y_scale=1.0), partial(with_slopes, task.at(at.point))
    sums = residual(task.source, scaling, none, 0.0, scaling.shift, none, slopes)
    gradient = np.roll(sums.gradient, -1) / total
    exact = replace(at, at=replace(at.at, gradient=gradient + task.l2 * at.point))
    left = _slopes(exact, np.zeros(task.size, dtype=bool))
    assert left is not None and at.sums.hessian is not None
    rows, matrix = _near(exact), at.sums.hessian[0] / total
    step = newton_step(matrix[np.ix_(rows, rows)], left[0].ravel()[rows])
    moved = float(at.reach[rows] @ np.abs(step))
    reach = at.reach + 2 * np.append(np.abs(scaling.shift), 0.0)  # of the columns as they are summed
    error = 2 * np.roll(sums.rounding, -1) / total + reach * sums.unit * math.sqrt(sums.magnitude / total)
    error += at.reach * (MATRIX_ERROR + len(rows) * UNIT) * at.curved * moved + 4 * UNIT * Kinks.of(task.penalty).l1
    gradient = gradient - matrix[:, rows] @ step
    off = at.curved * moved + float(at.gradient_error[-1])
    dual = levelled(at, gradient, error + UNIT * np.abs(gradient), off)
    nothing = Gap(np.inf, 0.0, at.objective, at.scale)
    return nothing if dual is None else gap_of(at, dual, 0.0, at.score_error + moved)


def _from_target(face: _Face) -> Gap:
    """The proof from the point that a Newton step leads to."""
    at, rows, shape = face.at, face.rows, face.at.task.shape
    kinks, target = Kinks.of(at.task.penalty, shape[1]), at.point.reshape(shape).copy()
    gradient, l1, lower, upper = (
        part.reshape(shape)[rows].ravel() for part in (at.at.gradient, kinks.l1, kinks.lower, kinks.upper)
    )
    least = minimiser(face.matrix, gradient, target[rows].ravel(), at.objective, Kinks(l1, lower, upper))
    target[rows] = least.reshape(-1, shape[1])
    there = point_of(at.task, target.ravel(), hessian=False)
    gap = duality_gap(there, 0.0)
    near = _face(there) if there.is_feasible else None
    if near is not None:
        gap = better(gap, _by_curvature(near))
    rounding = gap.rounding + at.objective_error + there.objective_error
    value = max(at.objective - there.objective, 0.0) + gap.value
    return Gap(value, rounding, at.objective, at.scale, at.base.is_exact_fit)
