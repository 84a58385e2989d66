"""A state as a point of its task: what a pass tells of the objective there, and what rounding may hide of it.

Of one score per row, or of a score per class. Scores that move by m each move two of them apart by 2 m: for softmax M
is 2, and what bounds a row's curvature by its scores is that of half their differences.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from certifit.data.columns import Array
from certifit.models.glm.concordance import Decrement, score_ends
from certifit.models.glm.softmax_task import GlmOrSoftmaxTask, SoftmaxTask
from certifit.models.glm.task import Evaluated, GlmTask
from certifit.statistics.factor import Curvature, product_above_0
from certifit.statistics.loss_sums import LITTLE, Oracle, careful_loss, oracle
from certifit.statistics.residual import MATRIX_ERROR, TINY, UNIT, is_exact_fit
from certifit.statistics.row_curvature import row_reach

MOST_TERMS = 1000  # of a score; where there may be more, the entries of the rows are looked at
CANCELLED = 1e-3  # of an objective: where rounding is more, it is summed with more care
MOST_POWER = 700.0  # of e within float64
VALUE_ERROR = 64 * UNIT  # of the value of a loss, relative to the terms that cancel in it


@dataclass(frozen=True)
class Base:
    """What an excess is relative to: at most the objective, or at an exact fit to rounding the null model's."""

    scale: float
    is_exact_fit: bool

    @staticmethod
    def above(low: float) -> Base:
        """Of an objective that is at least so large. Beside one below the normal numbers any excess counts as all."""
        return Base(low if low >= TINY else 0.0, False)


class Point(ABC):
    """The smooth part of the objective at a point, and how far from it the true one may be.

    reach: bounds on the entries of the columns that rounding is relative to. common: what the state costs beside the
    point, which is about the mean of the classes.
    """

    task: GlmOrSoftmaxTask
    point: Array
    at: Evaluated
    reach: Array
    common: float = 0.0

    @property
    def weights(self) -> Array:
        """Without the intercepts."""
        return self.point[: -self.task.n_scores]

    @property
    def objective(self) -> float:
        """Loss and penalty."""
        return self.at.value + self.common + float(self.task.penalty.l1 @ np.abs(self.weights))

    @property
    @abstractmethod
    def base(self) -> Base:
        """What an excess is relative to."""

    @property
    def scale(self) -> float:
        """What an excess is relative to."""
        return self.base.scale

    @property
    def is_feasible(self) -> bool:
        """Within the bounds, with a finite objective."""
        penalty, w = self.task.penalty, self.weights
        return bool(((w >= penalty.lower) & (w <= penalty.upper)).all()) and bool(np.isfinite(self.objective))

    @property
    @abstractmethod
    def slope(self) -> float:
        """At least the mean of |l'|, summed over the scores."""

    @property
    @abstractmethod
    def curved(self) -> float:
        """At least the mean of l'' by one score."""

    @property
    @abstractmethod
    def score_error(self) -> float:
        """Rounding of a score."""

    @property
    @abstractmethod
    def gradient_error(self) -> Array:
        """Rounding of the entries of the gradient."""

    @property
    def value_error(self) -> float:
        """Rounding of the mean loss beside that of its sum and of the scores."""
        return 0.0

    @property
    def most_loss(self) -> float:
        """At least the mean loss, which is >= 0 but for rounding."""
        return (max(self.at.loss, 0.0) + self.moved_loss) * (1 + MATRIX_ERROR) + self.value_error

    @property
    @abstractmethod
    def moved_loss(self) -> float:
        """What scores that are off by their rounding may add to the mean loss, at most."""

    @property
    def objective_error(self) -> float:
        """Rounding of the objective."""
        return MATRIX_ERROR * abs(self.objective) + self.moved_loss + self.value_error


@dataclass(frozen=True)
class ScorePoint(Point):
    """Of one score per row, with the sums of the pass."""

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
        return Base.above(low)

    @cached_property
    def objective_bounds(self) -> tuple[float, float]:
        """On the objective. Where terms cancel in it the losses are summed once more, in formulas where they do not."""
        error = self.objective_error
        is_told = self.task.loss.concordance == 0 or self.score_error <= LITTLE
        if is_told and error <= CANCELLED * self.objective:
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
    def moved_loss(self) -> float:
        """|l'| m + l'' m^2 e^(M m), as far as M is known, be they too small for float64."""
        moved = self.score_error
        growth = 1 + _grown((self.task.loss.concordance or 0.0) * moved)
        return moved * (max(self.slope, TINY) + max(self.curved, TINY) * moved * growth)

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
        return VALUE_ERROR * self.task.loss.cancelled_in_value(self.task.targets.mean) * (1 + scores)


@dataclass(frozen=True)
class ClassPoint(Point):
    """Of a score per class."""

    task: SoftmaxTask
    point: Array
    at: Evaluated
    reach: Array
    common: float = 0.0

    @cached_property
    def base(self) -> Base:
        """What an excess is relative to. A row's loss is a sum of terms >= 0 that do not cancel."""
        if not np.isfinite(self.objective):
            return Base(np.inf, False)
        if is_exact_fit(self.objective + self.objective_error, self.task.null_value):
            return Base(self.task.null_value, True)
        return Base.above(self.objective - self.objective_error)

    @property
    def slope(self) -> float:
        """2 (1 - p) in sum, and 1 - p is no more than the loss."""
        return 2 * min(1.0, self.objective)

    @property
    def curved(self) -> float:
        """p (1 - p) is 1/4 at most, and no more than a loss."""
        return min(0.25, self.most_loss)

    @cached_property
    def slopes_by_class(self) -> Array:
        """At least the means of |p - [own class]|: no more than a loss, and with intercepts about twice the share."""
        most, task = np.full(self.task.n_classes, min(1.0, self.most_loss)), self.task
        if not task.fit_intercept:
            return most
        return np.asarray(np.minimum(most, 2 * task.shares + np.abs(self.at.gradient[-task.n_classes :])))

    @cached_property
    def score_error(self) -> float:
        """Products and their sum are rounded."""
        weights = np.abs(self.point.reshape(self.task.shape)).max(axis=1)
        return (len(weights) + 4) * UNIT * float(self.reach @ weights)

    @cached_property
    def gradient_error(self) -> Array:
        """Of the sums over the rows, and of the penalty's."""
        error = np.outer(self.reach, self.slopes_by_class) * (4 * MATRIX_ERROR + self._growth)
        error[:-1] += 4 * UNIT * self.task.penalty.l1.reshape(-1, self.task.n_classes)
        point = self.point.reshape(self.task.shape)
        return np.asarray(error + 4 * UNIT * np.abs(self.task.l2[:, None] * point)).ravel()

    @property
    def most_loss(self) -> float:
        """At least the mean loss: its slope is 2 (1 - p) at most, no more than twice a loss."""
        return (self.at.loss + self.moved_loss) * (1 + MATRIX_ERROR)

    @property
    def moved_loss(self) -> float:
        """Scores that are off by m add 2 m at most, and to a small loss a factor e^2m, be it too small for float64."""
        return min(_grown(2 * self.score_error) * max(self.at.loss, TINY), 2 * self.score_error)

    @property
    def _growth(self) -> float:
        """What scores that are off by their rounding may add to a loss or to a slope, relative to it."""
        return _grown(min(2 * self.score_error, MOST_POWER))


def _grown(power: float) -> float:
    """e^power - 1."""
    return math.expm1(power) if power <= MOST_POWER else math.inf


def point_of(task: GlmOrSoftmaxTask, point: Array, hessian: bool, common: float = 0.0) -> Point:
    """What a pass tells of a point; with a Hessian of several scores another."""
    if isinstance(task, SoftmaxTask):
        return ClassPoint(task, point, task.evaluate(point, hessian), task.largest, common)
    return ScorePoint.of(task, point, hessian)


def decrement_of(here: Point, slopes: Array, curvature: Curvature, concordance: float, rows: Array) -> Decrement:
    """lambda and the cheap R, with what rounding may have hidden. slopes: of the rows of the point that may move."""
    task, loose = here.task, looseness(here, curvature, concordance)
    if curvature.n_flat or np.isinf(loose):
        return Decrement(np.inf, 0.0, np.inf)
    inverse = np.sqrt(np.maximum(np.diagonal(curvature.inverse), 0.0)).reshape(len(rows), task.n_scores)
    largest = (here.reach if task.fit_intercept else np.append(here.reach[:-1], 0.0))[rows]
    value = float(np.sqrt(product_above_0(slopes, curvature.solve(slopes))) * loose)
    error = np.where(largest[:, None] > 0, here.gradient_error.reshape(task.shape)[rows], 0.0)
    reach = concordance * float(np.max(largest @ inverse))
    return Decrement(value, float(error.ravel() @ inverse.ravel()) * loose, reach * loose)


def looseness(here: Point, curvature: Curvature, concordance: float) -> float:
    """What roundings of H may have made lengths in it too small by; infinite where they are not small.

    Entries of H are known to MATRIX_ERROR of the roots of its diagonal: a share of every quadratic form. A score that
    is off by e changes l'' by a factor e^(M e), two of softmax that are off by twice as much.
    """
    loose = curvature.size * MATRIX_ERROR * curvature.condition * curvature.condition
    loose += max(concordance, 1.0) * min(here.task.n_scores, 2) * here.score_error
    return float(1 / np.sqrt(1 - loose)) if loose < 0.5 else np.inf


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
