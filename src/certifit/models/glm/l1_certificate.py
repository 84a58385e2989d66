"""How far an objective with an L1 penalty or bounds can be above its minimum.

First the duality gap (models/glm/duality.py), from one pass. Its rounding is first order, over the l1 penalty; where
that proves too little, self-concordance proves more. With g and H of the smooth part at a point w:

S holds the columns with a weight, those without l1 penalty and those whose slopes are near it; O the others, which
have no weight and slack_j = l1_j - |g_j| > 0. r = g + s on S, s the slope of the penalty and bounds that makes r least.
For any step d, lambda = |r|_(H_SS^-1):

    -g'd - change of penalty <= -r'd_S - sum_O slack_j |d_j|
    |r'd_S| <= lambda |d_S|_(H_SS) <= lambda ( |d|_H + sum_O sqrt(H_jj) |d_j| )

so where lambda sqrt(H_jj) <= slack_j on O, the objective falls by no more than lambda |d|_H less what curvature adds,
and the bound of models/glm/concordance.py holds. |x_i'd| <= |d|_H sqrt(W / (w_i l''_i)) gives its R.

A last proof starts from the point that a Newton step leads to: the minimum is at least the objective there less what
is proven there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block
from certifit.mathematics.losses.scores import ScoreLoss
from certifit.mathematics.penalties import Kinks, minimiser, without_still
from certifit.models.glm.concordance import Decrement
from certifit.models.glm.duality import ScorePoint, better, score_gap
from certifit.models.glm.task import GlmTask, SomeColumns
from certifit.models.lasso.certificate import Gap
from certifit.models.least_squares.normal_equations import Weights
from certifit.runtime import core, n_threads
from certifit.statistics.factor import Curvature, product_above_0
from certifit.statistics.residual import MATRIX_ERROR

MOST_COLUMNS = 3000  # that a Hessian is made of
WIDE = 400  # columns above which only some are gathered for a Hessian
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
    """A point, and the Hessian of some of its entries."""

    at: ScorePoint
    places: Array
    matrix: Array
    least: float  # of w_i l''_i / W


def prove(task: GlmTask, point: Array, tolerance: float) -> Proof:
    """How far the objective can be above its minimum. Later proofs are tried where earlier ones miss the tolerance."""
    at = ScorePoint.of(task, point, hessian=False)
    gap = score_gap(at)
    if task.loss.is_piecewise:  # a score beyond its kink by rounding: at most twice as much of a slope of 1
        gap = replace(gap, value=gap.value + 2 * at.score_error, rounding=gap.rounding + 2 * at.score_error)
    # Rounding enters the gap once and a proof by curvature squared, which refuses small changes of a weight: where few
    # columns take part it is made even if the gap is within the tolerance.
    enough = gap.relative <= tolerance and (task.size > WIDE and len(_near(at)) > WIDE)
    if enough or not at.is_feasible or task.loss.concordance is None:
        return Proof(gap, _condition(task, point))
    face = _face(at, is_bonus=gap.relative <= tolerance)
    if face is None:
        return Proof(gap, np.inf)
    gap = better(gap, _by_curvature(face))
    if not gap.relative <= tolerance:
        gap = better(gap, _from_target(face))
    return Proof(gap, Curvature(face.matrix).condition)


def estimate(task: GlmTask, point: Array) -> Proof:
    """What the curvature at the point tells, for losses that nothing is proven of."""
    at = ScorePoint.of(task, point, hessian=False)
    face = _face(at) if at.is_feasible else None
    if face is None:
        return Proof(Gap(np.inf, 0.0, at.objective, 1.0), np.inf)
    decrement = _decrement(face)
    value = decrement.value**2 / 2
    rounding = (decrement.value + decrement.rounding) ** 2 / 2 - value
    gap = Gap(value, rounding, at.objective, at.scale, at.base.is_exact_fit)
    return Proof(gap, Curvature(face.matrix).condition)


def _condition(task: GlmTask, point: Array) -> float:
    """Of the Hessian of the columns with a weight, at the last point that one was made at."""
    active = np.flatnonzero(point[:-1])
    if not len(active):
        return 1.0
    if task.last_hessian is None and task.size <= WIDE:
        task.sums(point, hessian=True)
    if task.last_hessian is None:
        return np.inf
    return Curvature(task.last_hessian[np.ix_(active, active)]).condition


def _face(at: ScorePoint, is_bonus: bool = False) -> _Face | None:
    """The Hessian of the columns that matter; None where they are too many. is_bonus: a gap is within the tolerance."""
    task, places = at.task, _near(at)
    if task.size <= WIDE and (not is_bonus or len(places) > WHOLE * task.size):  # knows the shifted columns better
        at = ScorePoint.of(task, at.point, hessian=True)
    unit = task.scaling.weight_scale
    f = partial(_least_of_run, loss=task.loss, state=task.to_state(at.point), unit=unit)
    least = min(task.source.map(f), default=np.inf) / task.sum_weight
    least = least if least < np.inf else 0.0  # beyond float64 it bounds nothing
    for _ in range(MOST_ROUNDS):
        if len(places) > MOST_COLUMNS:
            return None
        face = _Face(at, places, _matrix(at, places), least)
        short = _too_short(face)
        if not short.any():
            return face
        places = np.union1d(places, np.flatnonzero(short))
    return face


def _near(at: ScorePoint) -> Array:
    """The entries with a weight, those without l1 penalty and those whose slopes are near it."""
    return np.flatnonzero(_slack(at) <= NEAR * np.append(at.task.penalty.l1, 0.0))


def _matrix(at: ScorePoint, places: Array) -> Array:
    """The Hessian of the smooth part at some entries of the point."""
    if at.at.hessian is not None:
        matrix = without_still(at.at.hessian, at.task.scaling.shift)
        return np.asarray(matrix[np.ix_(places, places)])
    columns = places[places < at.task.size - 1]
    small = SomeColumns(at.task).taken(columns, at.task.strengths.alpha)
    hessian = small.evaluate(np.append(at.point[columns], at.point[-1]), hessian=True).hessian
    assert hessian is not None
    return hessian[: len(places), : len(places)]


def _least_of_run(run: Block, loss: ScoreLoss, state: Weights, unit: float) -> float:
    """The least w_i l''_i of a run, over rows with a weight, times a unit that keeps the weights within float64."""
    z = core.scores(run.rows, state.coef, state.intercept, n_threads())
    z = z if run.offset is None else z + run.offset
    curved = loss.curvature(np.asarray(run.y), z)
    weight = np.ones(len(curved)) if run.weight is None else run.weight
    return float((curved * (weight * unit))[weight > 0].min(initial=np.inf)) * (1 - 1e-6)


def _directions(at: ScorePoint) -> tuple[Array, Array]:
    """At what rate the objective falls when an entry goes up, and down; -inf where a bound forbids it."""
    kinks, x, g = Kinks.of(at.task.penalty), at.point, at.at.gradient
    up = np.where(x < kinks.upper, -g - np.where(x >= 0, kinks.l1, -kinks.l1), -np.inf)
    down = np.where(x > kinks.lower, g - np.where(x <= 0, kinks.l1, -kinks.l1), -np.inf)
    if not at.task.fit_intercept:
        up[-1], down[-1] = -np.inf, -np.inf
    return up, down


def _slack(at: ScorePoint) -> Array:
    """How much slopes fall short of moving an entry: for those with a weight 0."""
    up, down = _directions(at)
    slack = np.where(at.point == 0, -np.maximum(up, down), 0.0)
    slack[-1] = 0.0 if at.task.fit_intercept else np.inf
    return slack


def _decrement(face: _Face) -> Decrement:
    """lambda on the chosen entries, and R."""
    at, places = face.at, face.places
    up, down = (rate[places] for rate in _directions(at))
    rest = np.where(up > np.maximum(down, 0.0), -up, np.maximum(down, 0.0))
    curvature = Curvature(face.matrix)
    loose = len(places) * MATRIX_ERROR * curvature.condition**2 + at.score_error
    if not loose < 0.5 or curvature.n_flat:
        return Decrement(np.inf, 0.0, np.inf)
    loose = 1 / np.sqrt(1 - loose)
    inverse = np.sqrt(np.maximum(np.diagonal(curvature.inverse), 0.0))
    value = float(np.sqrt(product_above_0(rest, curvature.solve(rest))) * loose)
    concordance = at.task.loss.concordance or 0.0
    with np.errstate(divide="ignore"):
        reach = concordance / np.sqrt(face.least) if concordance else 0.0
    if len(places) == at.task.size - (not at.task.fit_intercept):  # |x_i'd| <= |x_i|_(H^-1) |d|_H, H being whole
        reach = min(reach, concordance * float(at.reach[places] @ inverse) * loose)
    return Decrement(value, float(at.gradient_error[places] @ inverse) * loose, float(reach))


def _too_short(face: _Face) -> Array:
    """Which of the other entries have less slack than the proof asks for."""
    at, decrement = face.at, _decrement(face)
    size = decrement.value + decrement.rounding
    if not np.isfinite(size):  # nothing is proven, whatever the entries
        return np.zeros(at.task.size, dtype=bool)
    root = np.sqrt(at.curved * at.reach**2 * (1 + MATRIX_ERROR) + at.task.l2)
    short = ~(_slack(at) - at.gradient_error >= size * root)
    short[face.places] = False
    return np.asarray(short)


def _by_curvature(face: _Face) -> Gap:
    """The proof of self-concordance."""
    at, decrement = face.at, _decrement(face)
    excess = np.inf if not at.is_feasible or _too_short(face).any() else decrement.excess()
    if not np.isfinite(excess):
        return Gap(np.inf, 0.0, at.objective, at.scale)
    value = Decrement(decrement.value, 0.0, decrement.reach).excess()
    return Gap(value, excess - value, at.objective, at.scale, at.base.is_exact_fit)


def _from_target(face: _Face) -> Gap:
    """The proof from the point that a Newton step leads to."""
    at, places = face.at, face.places
    kinks = Kinks.of(at.task.penalty)
    face_kinks = Kinks(kinks.l1[places], kinks.lower[places], kinks.upper[places])
    target = at.point.copy()
    target[places] = minimiser(face.matrix, at.at.gradient[places], at.point[places], at.objective, face_kinks)
    there = ScorePoint.of(at.task, target, hessian=False)
    gap = score_gap(there)
    near = _face(there) if there.is_feasible else None
    if near is not None:
        gap = better(gap, _by_curvature(near))
    rounding = gap.rounding + at.objective_error + there.objective_error
    value = max(at.objective - there.objective, 0.0) + gap.value
    return Gap(value, rounding, at.objective, at.scale, at.base.is_exact_fit)
