"""The duality gap of a loss of scores with a penalty and bounds, from one pass without a Hessian.

With W the sum of weights, any u in the domain of l* with sum_i w_i u_i = 0, and q = -sum_i w_i x_i u_i / W, the
objective exceeds its minimum by at most

    sum_i w_i [ l(y_i, z_i) + l*(y_i, u_i) - u_i z_i ] / W + sum_j [ h_j(w_j) + h*_j(q_j) - q_j w_j ]

and every bracket is >= 0. Offsets are part of z. The slopes u_i = l'(y_i, z_i) make the brackets of the rows 0; what
they lack is mended so that the price is known without another pass:

    u_i = t l'_i, 0 <= t <= 1    costs at most (1 - t) l(y_i, z_i): a bracket is convex in u, and at u = 0 it is
                                 l(y_i, z_i) - min l <= l(y_i, z_i), since losses are >= 0
    sum_i w_i u_i = 0            the slopes of the heavier sign are shrunk; q_j then moves by at most
                                 |sum_i w_i l'_i| / W times the largest |x_ij|

Columns without penalty and bounds ask for q_j = 0: there u = 0 is all that is tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from certifit.data.columns import Array
from certifit.mathematics.penalties import ElasticPenalty
from certifit.models.glm.concordance import score_ends
from certifit.models.glm.task import Evaluated, GlmTask
from certifit.models.lasso.certificate import Gap
from certifit.statistics.loss_sums import Oracle, careful_loss, oracle
from certifit.statistics.residual import MATRIX_ERROR, TINY, UNIT, is_exact_fit
from certifit.statistics.row_curvature import row_reach

MOST_TERMS = 1000  # of a score; where there may be more, the entries of the rows are looked at
CANCELLED = 1e-3  # of an objective: where rounding is more, it is summed with more care
VALUE_ERROR = 64 * UNIT  # of the value of a loss, relative to the terms that cancel in it


@dataclass(frozen=True)
class Base:
    """What an excess is relative to: at most the objective, or at an exact fit to rounding the null model's."""

    scale: float
    is_exact_fit: bool


@dataclass(frozen=True)
class ScorePoint:
    """The sums at a point; reach: bounds on the entries of the columns that rounding is relative to."""

    task: GlmTask
    point: Array
    sums: Oracle
    at: Evaluated
    reach: Array

    @staticmethod
    def of(task: GlmTask, point: Array, hessian: bool) -> ScorePoint:
        """One pass. A loss that is not compiled tells its curvature only with a Hessian."""
        sums = task.sums(point, hessian or task.loss.code is None)
        reach = task.largest if sums.largest is None else sums.largest
        if sums.largest is None:  # such a pass takes the shift off its sums
            reach = reach + 2 * np.append(np.abs(task.scaling.shift), 0.0)
        return ScorePoint(task, point, sums, task.of_sums(sums, point), reach)

    @property
    def weights(self) -> Array:
        """Without the intercept."""
        return self.point[:-1]

    @property
    def objective(self) -> float:
        """Loss and penalty."""
        return self.at.value + float(self.task.penalty.l1 @ np.abs(self.weights))

    @cached_property
    def base(self) -> Base:
        """What an excess is relative to."""
        if not getattr(self.task.loss, "is_nonnegative", True):  # a loss of the user's own
            return Base(max(abs(self.objective), TINY), False)
        if not (np.isfinite(self.objective) and self.is_legal):
            return Base(np.inf, False)
        low, high = self.objective_bounds
        # What no null model exceeds comes first: it costs no pass.
        if is_exact_fit(low, self.task.most_null):
            null = null_objective(self.task)
            if is_exact_fit(high, null):
                return Base(null, True)
        return Base(max(low, TINY), False)

    @property
    def scale(self) -> float:
        """What an excess is relative to."""
        return self.base.scale

    @cached_property
    def objective_bounds(self) -> tuple[float, float]:
        """On the objective. Where terms cancel in it the losses are summed once more, in formulas where they do not."""
        error = self.objective_error
        if error <= CANCELLED * self.objective:
            return self.objective - error, self.objective + error
        low, high = careful_loss(self.task.source, self.task.at(self.point), self.score_error)
        penalty = self.penalty_value
        total = self.task.sum_weight
        return low / total + penalty * (1 - MATRIX_ERROR), high / total + penalty * (1 + MATRIX_ERROR)

    @property
    def penalty_value(self) -> float:
        """What the objective has beside the loss: as a difference of the two it would have the rounding of the loss."""
        squares = float(self.task.l2 * self.point @ self.point) / 2
        return squares + float(self.task.penalty.l1 @ np.abs(self.weights))

    @property
    def is_feasible(self) -> bool:
        """Within the bounds, with a finite objective."""
        penalty, w = self.task.penalty, self.weights
        return bool(((w >= penalty.lower) & (w <= penalty.upper)).all()) and bool(np.isfinite(self.objective))

    @property
    def slope(self) -> float:
        """Mean of |l'|."""
        return self.sums.slopes / self.task.sum_weight

    @property
    def curved(self) -> float:
        """Mean of l''."""
        return self.sums.curvatures / self.task.sum_weight

    @cached_property
    def is_legal(self) -> bool:
        """Whether the link takes every score whatever its rounding: one beyond the end of a link has no mean."""
        least, most = getattr(self.task.loss, "scores", (-np.inf, np.inf))
        if np.isinf(least) and np.isinf(most):
            return True
        low, high = score_ends(self.task, self.point) or (least, most)
        return bool(low - self.score_error >= least and high + self.score_error <= most)

    @cached_property
    def score_error(self) -> float:
        """Rounding of a score: a column without a weight adds none, and rows of many columns have few entries each."""
        count, size = int(np.count_nonzero(self.point)), float(self.reach @ np.abs(self.point))
        if count > MOST_TERMS:
            rows = row_reach(self.task.source, self.task.scaling, self.weights)
            if rows.size < size:
                count, size = rows.n_entries + 1, rows.size * (1 + 1e-6) + abs(float(self.point[-1]))
        return (count + 4) * UNIT * (size + self.task.largest_offset)

    @property
    def gradient_error(self) -> Array:
        """Rounding of the entries of the gradient."""
        slope, curved = self.slope, self.curved
        each = MATRIX_ERROR * slope + 8 * UNIT * (curved + self.task.loss.cancelled(self.task.targets.mean) + slope)
        rounding = 4 * UNIT * (np.abs(self.at.gradient) + self.task.l2 * np.abs(self.point))
        return np.asarray(self.reach * (each + self.score_error * curved) + rounding)

    @property
    def value_error(self) -> float:
        """Rounding of the mean loss in its terms of the size of y (1 + |z|), which cancel."""
        scores = float(self.reach @ np.abs(self.point)) + self.task.largest_offset
        return VALUE_ERROR * self.task.loss.cancelled(self.task.targets.mean) * (1 + scores)

    @property
    def most_loss(self) -> float:
        """At least the mean loss, which is >= 0 but for rounding."""
        return max(self.at.loss, 0.0) * (1 + MATRIX_ERROR) + self.value_error

    @property
    def objective_error(self) -> float:
        """Rounding of the objective."""
        return MATRIX_ERROR * abs(self.objective) + self.slope * self.score_error + self.value_error


NULL_ERRORS = (1e-9, 1e-6, 1e-3)  # of the best constant, relative to it and to 1


def null_objective(task: GlmTask) -> float:
    """At most that of the best constant; 0 where none is legal, or known to be near the best: then no fit is exact.

    A constant is no further than t from the best one if the slopes at t below and above it have opposite signs, by
    more than rounding. A loss that is not convex has no such proof, and no certificate that is more than an estimate.
    """
    point = task.null_point
    if not np.isfinite(point[-1]):
        return 0.0
    off = 0.0
    if task.fit_intercept and task.source.view.has_offset and task.loss.is_convex:
        errors = (error * max(abs(point[-1]), 1.0) for error in NULL_ERRORS)
        off = next((t for t in errors if _is_between(task, float(point[-1]), t)), np.inf)
    value = careful_loss(task.source, task.at(point), off)[0] / task.sum_weight if np.isfinite(off) else 0.0
    return value if np.isfinite(value) else 0.0


def _is_between(task: GlmTask, constant: float, off: float) -> bool:
    """Whether the best constant is no further than `off` from this one."""
    below, above = (_constant_slope(task, at) for at in (constant - off, constant + off))
    return below[0] < -below[1] and above[0] > above[1]


def _constant_slope(task: GlmTask, constant: float) -> tuple[float, float]:
    """The slope of the loss along a constant, and its rounding."""
    point = np.append(np.zeros(task.size - 1), constant)
    sums = oracle(task.source, task.at(point), task.loss.code is None)
    at = ScorePoint(task, point, sums, task.of_sums(sums, point), np.append(np.zeros(task.size - 1), 1.0))
    return float(at.at.gradient[-1]), float(at.gradient_error[-1])


@dataclass(frozen=True)
class Dual:
    """u by its q, each known to `error`, and what the brackets of the rows add up to."""

    q: Array
    error: Array
    rows: float


def score_gap(at: ScorePoint) -> Gap:
    """The gap at a point."""
    if not at.is_feasible:
        return Gap(np.inf, 0.0, at.objective, 1.0)
    # u = 0: losses are not negative, but for rounding.
    nothing = Gap(max(at.objective, 0.0), at.objective_error, at.objective, at.scale, at.base.is_exact_fit)
    dual = _dual(at)
    if dual is None:
        return nothing
    value, rounding = dual_gap(at.task.penalty, at.weights, dual, at.most_loss)
    return better(nothing, Gap(value, rounding, at.objective, at.scale, at.base.is_exact_fit))


def dual_gap(penalty: ElasticPenalty, w: Array, dual: Dual, most_loss: float) -> tuple[float, float]:
    """The gap of weights and a dual point, scaled into the domains of penalties with l1; what rounding may add."""
    share = penalty.finite_share(dual.q, dual.error)
    brackets, rounding = penalty.gap(w, share * dual.q, share * dual.error)
    return share * dual.rows + (1 - share) * most_loss + brackets, rounding


def better(first: Gap, second: Gap) -> Gap:
    """The one that proves more."""
    return second if second.relative < first.relative else first  # never a NaN


def _dual(at: ScorePoint) -> Dual | None:
    """A feasible point but for the domains of penalties with l1; None where none is known."""
    return None if without_penalty(at.task.penalty).any() else dual_slopes(at)


def without_penalty(penalty: ElasticPenalty) -> Array:
    """Which weights neither a penalty nor a bound on both sides holds: those ask for q_j = 0."""
    is_open = np.isinf(penalty.upper) | np.isinf(penalty.lower)
    return np.asarray((penalty.l1 == 0) & (penalty.l2 == 0) & is_open)


def dual_slopes(at: ScorePoint) -> Dual | None:
    """The slopes of the losses, mended so that they add up to 0 with an intercept; None where they are too far off."""
    task = at.task
    gradient, error = at.sums.gradient[0] / task.sum_weight, at.gradient_error
    if not task.fit_intercept:
        return Dual(-gradient[:-1], error[:-1], 0.0)
    level = abs(float(gradient[-1])) + float(error[-1])
    heavier = (at.slope * (1 - MATRIX_ERROR) + abs(float(gradient[-1])) - float(error[-1])) / 2
    if not level <= heavier:
        return None
    return Dual(-gradient[:-1], error[:-1] + level * at.reach[:-1], level / max(heavier, TINY) * at.most_loss)
