"""Generalised linear models: a loss of scores, a penalty on weights.

minimise  sum_i w_i l(y_i, z_i) / sum_i w_i + sum_j l1_j |w_j| + l2_j/2 w_j^2,   z_i = offset_i + b + x_i'w
l1_j = alpha l1_ratio f_j s_j,   l2_j = alpha (1 - l1_ratio) f_j s_j^2,   s_j 1 or the standard deviation of a column

A point is (weights of scaled, shifted columns, their intercept last). Here the smooth part: loss and l2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Generic, Self, TypeVar

import numpy as np
from scipy.special import entr

from certifit.data.cells import Cells
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.data.user_input import refuse_nonfinite
from certifit.mathematics.losses.families import ResponseLoss
from certifit.mathematics.losses.scores import ScoreLoss
from certifit.mathematics.penalties import ElasticPenalty
from certifit.minimise.row_pass import RowLoss
from certifit.models.lasso.task import Strengths
from certifit.models.least_squares.normal_equations import LARGEST_PENALTY, Weights
from certifit.models.least_squares.task import LeastSquares
from certifit.statistics import double_double as dd
from certifit.statistics.factor import Curvature, hold_intercepts
from certifit.statistics.glm_sums import null_score
from certifit.statistics.gram import ColumnSizes, Scaling, refuse_no_weight
from certifit.statistics.loss_sums import At, Oracle, oracle, sums_of
from certifit.statistics.moments import TargetSums, column_spreads, target_sums
from certifit.statistics.remainders import some_columns

if TYPE_CHECKING:
    from certifit.models.glm.softmax_task import SoftmaxWeights
    from certifit.models.glm.user_penalty import UserPenalty

LABELS = 1e-15  # share of the weights: targets whose squares differ less from them are 0 or 1


@dataclass(frozen=True)
class Evaluated:
    """The smooth part of the objective at a point: value, gradient and, where asked for, Hessian; loss: without l2."""

    value: float
    gradient: Array
    hessian: Array | None
    loss: float


StateT = TypeVar("StateT", bound="Weights | SoftmaxWeights")


class ScoreTask(ABC, Generic[StateT]):
    """Columns in units near 1, and the penalty on the weights that one score or several have of them.

    A point of several scores is columns x scores, then an intercept per score, as one vector.
    """

    source: Source
    loss: RowLoss
    strengths: Strengths
    fit_intercept: bool
    scaling: Scaling
    standardize: bool = False
    n_scores: int = 1

    @property
    @abstractmethod
    def null_value(self) -> float:
        """The objective without weights."""

    @abstractmethod
    def start(self) -> Array:
        """No weights; the intercepts that suit the targets."""

    @abstractmethod
    def evaluate(self, point: Array, hessian: bool = False) -> Evaluated:
        """The smooth part of the objective at a point."""

    @abstractmethod
    def to_state(self, point: Array) -> StateT:
        """In the user's units, within the bounds."""

    @abstractmethod
    def to_point(self, state: StateT) -> Array:
        """Inverse of `to_state`."""

    @abstractmethod
    def state_of(self, coef: Array, intercept: Array) -> StateT:
        """Weights, scores x columns, and an intercept per score as a state."""

    @abstractmethod
    def without_penalty(self, source: Source) -> Self:
        """The same of other columns of the rows."""

    def centred(self, coef: Array, intercept: Array) -> tuple[Array, Array, float]:
        """Weights and intercepts without what changes no prediction, and what that costs: of one score nothing does."""
        return coef, intercept, 0.0

    @abstractmethod
    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""

    @abstractmethod
    def of_targets(self) -> dict[str, object]:
        """What a task on other columns of the same rows has in common with this one, by the names of attributes."""

    @property
    def shape(self) -> tuple[int, int]:
        """Of a point as a table."""
        return len(self.scaling.scale) + 1, self.n_scores

    @property
    def size(self) -> int:
        """Entries of a point."""
        return (len(self.scaling.scale) + 1) * self.n_scores

    @cached_property
    def largest(self) -> Array:
        """At least the largest entries of all rows, in size, of every scaled and shifted column, and 1."""
        sizes: ColumnSizes = self.source.reduce(ColumnSizes.of)
        return np.append(sizes.columns * self.scaling.scale + np.abs(self.scaling.shift), 1.0)

    def with_squares(self, loss: float, gradient: Array, hessian: Array | None, point: Array) -> Evaluated:
        """The smooth part of the objective from the mean loss and its derivatives, which are changed in place."""
        pulls = self.pulls
        with np.errstate(over="ignore", invalid="ignore"):
            pull = pulls * point
            gradient += pull
            value = loss + float(pull @ point) / 2
        if hessian is not None:
            hessian.flat[:: self.size + 1] += pulls
        if not self.fit_intercept:
            gradient[-self.n_scores :] = 0.0
            if hessian is not None:
                hold_intercepts(hessian, self.n_scores)
        return Evaluated(value, gradient, hessian, loss)

    def in_user_units(self, point: Array) -> tuple[Array, Array]:
        """Weights, scores x columns, and the intercept of every score."""
        at = point.reshape(self.shape)
        with np.errstate(over="ignore", under="ignore"):
            coef = at[:-1].T * self.scaling.scale
        coef[:, self.l2[:-1] >= LARGEST_PENALTY] = 0.0
        self.refuse_overflow(coef)
        intercept = np.zeros(self.n_scores)
        if self.fit_intercept:  # b = b' - sum_j w_j shift_j: large terms that cancel, so in twofold precision
            for k in range(self.n_scores):
                hi, lo = dd.dot(np.ascontiguousarray(at[:-1, k]), self.scaling.shift)
                total, rest = dd.two_sum(np.float64(at[-1, k]), np.float64(-hi))
                intercept[k] = float(total + (rest - lo))
        return coef, intercept

    def from_user_units(self, coef: Array, intercept: Array) -> Array:
        """Inverse of `in_user_units`."""
        at = np.empty(self.shape)
        at[:-1] = (coef / self.scaling.scale).T
        for k in range(self.n_scores):
            hi, lo = dd.dot(np.ascontiguousarray(at[:-1, k]), self.scaling.shift)
            at[-1, k] = float(np.float64(intercept[k]) + hi + lo)
        return at.ravel()

    def penalise(self, strengths: Strengths) -> None:
        """Take a penalty, before any pass; columns are near 1, or smaller where it would be beyond LARGEST_PENALTY."""
        s = self.strengths = strengths
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            square = np.sqrt(LARGEST_PENALTY / (s.alpha * (1 - s.l1_ratio) * s.factors))
            kink = LARGEST_PENALTY / (s.alpha * s.l1_ratio * s.factors)
            most = np.minimum(square, kink) / 2
            self.scaling = self.scaling.within(most / self.spreads if s.alpha > 0 else most)

    @cached_property
    def spreads(self) -> Array:
        """s_j, what a weight is multiplied by in the penalty; one pass where columns are standardised."""
        if not self.standardize:
            return np.ones(self.source.n_features)
        return column_spreads(self.source, self.fit_intercept)

    @property
    def l1_strengths(self) -> Array:
        """l1_j in the user's units."""
        s = self.strengths
        strengths = s.alpha * s.l1_ratio * s.factors
        return strengths * self.spreads if strengths.any() else strengths

    @property
    def l2_strengths(self) -> Array:
        """l2_j in the user's units."""
        s = self.strengths
        strengths = s.alpha * (1 - s.l1_ratio) * s.factors
        return strengths * self.spreads**2 if strengths.any() else strengths

    @cached_property
    def l2(self) -> Array:
        """Strength of the squares of a scaled column's weights, 0 for the intercept."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # no penalty in infinite units is none
            per_column = self.strengths.alpha * (1 - self.strengths.l1_ratio) * self.strengths.factors
            units = self.scaling.scale * self.spreads if per_column.any() else self.scaling.scale
            strength = np.minimum(per_column * units**2, LARGEST_PENALTY)
        return np.append(np.where(per_column > 0, strength, 0.0), 0.0)

    @cached_property
    def penalty(self) -> ElasticPenalty:
        """The penalty on scaled weights."""
        s, scale = self.strengths, self.scaling.scale
        with np.errstate(over="ignore", under="ignore"):
            l1 = np.minimum(self.l1_strengths * scale, LARGEST_PENALTY)
            parts = (l1, self.l2[:-1], s.lower / scale, s.upper / scale)
        return ElasticPenalty(*(np.repeat(part, self.n_scores) for part in parts))

    @property
    def pulls(self) -> Array:
        """l2 of the entries of a point."""
        return np.repeat(self.l2, self.n_scores)

    def at_strength(self, alpha: float) -> Self:
        """The same rows with another alpha."""
        other = copy(self)
        other.strengths = replace(self.strengths, alpha=alpha)
        for name in ("l2", "penalty"):
            other.__dict__.pop(name, None)
        return other

    @property
    def is_smooth(self) -> bool:
        """Whether there is neither an l1 penalty nor a bound."""
        s = self.strengths
        has_l1 = s.alpha * s.l1_ratio > 0 and bool(s.factors.any())
        return not has_l1 and bool(np.isinf(s.lower).all() and np.isinf(s.upper).all())

    @cached_property
    def columns(self) -> LeastSquares:
        """The columns as least squares sees them: which are combinations of others, and of which."""
        return LeastSquares(self.source, 0.0, self.fit_intercept)

    def columns_of(self, firm: Array) -> LeastSquares | None:
        """The columns without a penalty that counts as least squares sees them; None where all have one."""
        free = np.flatnonzero(~firm)
        if len(free) == len(firm):
            return self.columns
        rows = some_columns(self.source, free)
        return LeastSquares(rows, 0.0, self.fit_intercept) if len(free) else None

    @property
    def row_units(self) -> tuple[Array, Array, bool]:
        """What makes a row of the system of a row of X: scale, shift, and whether 1 is appended."""
        return self.scaling.scale, self.scaling.shift, self.fit_intercept

    def rescale(self) -> None:
        """Scales from all rows, where those of block 0 overflowed."""
        refuse_nonfinite(self.source)
        largest = self.source.reduce(ColumnSizes.of)
        self.scaling = Scaling.of(self.source, centred=self.fit_intercept, exact=False, largest=largest)
        self.penalise(self.strengths)
        for name in ("l2", "penalty", "largest"):
            self.__dict__.pop(name, None)

    def refuse_overflow(self, coef: Array) -> None:
        """Refuse a coefficient beyond float64."""
        if np.isfinite(coef).all():
            return
        j = int(np.flatnonzero(~np.isfinite(np.atleast_2d(coef)).all(axis=0))[0])
        raise ValueError(
            f"The coefficient of feature {self.source.names[j]!r} exceeds the largest float64: its values are about "
            f"{1.0 / self.scaling.scale[j]:.0e}. Multiply the column by 1e200 or so, or leave it out."
        )


class GlmTask(ScoreTask[Weights]):
    """What solver and certificate need of the rows. last_hessian: the last one made, of the loss, not divided."""

    loss: ScoreLoss
    last_hessian: Array | None = None
    user_penalty: UserPenalty | None = None  # a penalty of the user's own, in place of l1 and l2
    _last: tuple[Array, Oracle] | None = None

    def __init__(
        self, source: Source, loss: ScoreLoss, strengths: Strengths, fit_intercept: bool, standardize: bool = False
    ) -> None:
        self.source, self.loss, self.strengths, self.fit_intercept = source, loss, strengths, fit_intercept
        self.standardize = standardize
        self.scaling = Scaling.of(source, centred=fit_intercept, exact=False)
        self.penalise(strengths)

    @cached_property
    def targets(self) -> TargetSums:
        """Sums of the target."""
        sums = target_sums(self.source)
        refuse_no_weight(sums.weight)
        return sums

    def has_target(self) -> bool:
        """Whether an intercept alone has a finite best value on these rows."""
        t = self.targets
        return t.weight > 0 and np.isfinite(self.loss.score(t.mean)) if t.n_rows else False

    @cached_property
    def sum_weight(self) -> float:
        """Sum of weights, scaled."""
        return self.targets.weight * self.scaling.weight_scale

    def at(self, point: Array) -> At:
        """Where to evaluate the loss."""
        return At(self.loss, self.scaling, np.ascontiguousarray(point[:-1]), float(point[-1]))

    def sums(self, point: Array, hessian: bool = False, cells: Cells | None = None) -> Oracle:
        """Sums of the loss over the rows, not divided by the sum of weights. The last ones are remembered."""
        is_plain = not hessian and cells is None
        if is_plain and self._last is not None and np.array_equal(self._last[0], point):
            return self._last[1]
        total = oracle(self.source, self.at(point), hessian, cells)
        if not np.isfinite(total.value).all() and not point[:-1].any():
            self.rescale()
            total = oracle(self.source, self.at(point), hessian, cells)
        if total.largest is not None:
            self.__dict__["largest"] = total.largest
            self.last_hessian = None if total.hessian is None else total.hessian[0]
        if is_plain:
            self._last = (point.copy(), total)
        return total

    def evaluate(self, point: Array, hessian: bool = False) -> Evaluated:
        """The smooth part of the objective at a point: one pass."""
        return self.of_sums(self.sums(point, hessian), point)

    def of_sums(self, sums: Oracle, point: Array) -> Evaluated:
        """The smooth part of the objective from sums of the loss."""
        total = self.sum_weight
        with np.errstate(over="ignore", invalid="ignore"):
            loss = float(sums.value[0]) / total - self.own_part
            hessian = None if sums.hessian is None else sums.hessian[0] / total
            return self.with_squares(loss, sums.gradient[0] / total, hessian, point)

    @cached_property
    def null_value(self) -> float:
        """The objective without weights."""
        return self.evaluate(self.start()).value

    @cached_property
    def own_part(self) -> float:
        """Mean of what the targets alone decide, which a compiled loss leaves in: the entropy of shares."""
        t = self.targets
        if not self.loss.leaves_entropy or not t.n_rows:
            return 0.0
        # y = y^2 for 0 and 1
        if abs(t.first - t.second) <= LABELS * t.weight:
            return 0.0
        return float(self.source.reduce(_entropies)) / t.weight

    @cached_property
    def most_null(self) -> float:
        """At least the null model's objective without offsets: a deviance is convex in y, so largest at an end of y."""
        t = self.targets
        z = self.loss.score(t.mean) if self.fit_intercept else 0.0
        with np.errstate(all="ignore"):
            ends = self.loss.value(np.array([t.low, t.high]), np.full(2, z))
        return float(np.nanmax(np.append(ends, 1.0 if self.source.view.has_offset else 0.0)))

    @cached_property
    def null_point(self) -> Array:
        """The best constant, but for rounding; 0 without an intercept. Not finite where no constant is legal."""
        point = np.zeros(self.size)
        if self.fit_intercept:
            start = float(self.loss.score(self.targets.mean)) - self.targets.mean_offset
            has_offset = self.source.view.has_offset and np.isfinite(start)
            point[-1] = null_score(self.source, self.loss, start) if has_offset else start
        return point

    @cached_property
    def largest_offset(self) -> float:
        """Of all rows, in size."""
        return max(self.source.map(_largest_offset), default=0.0)

    def start(self) -> Array:
        """No weights; the intercept that the mean of the target has."""
        point, loss = np.zeros(self.size), self.loss
        if self.fit_intercept:
            point[-1] = loss.score(self.targets.mean) - self.targets.mean_offset
        low, high = getattr(loss, "scores", (-np.inf, np.inf))
        return point if np.isinf(low) and np.isinf(high) else self._legal_start(point)

    def _legal_start(self, point: Array) -> Array:
        """For links that do not take any score: the point, or weighted least squares of scores near the targets."""
        if np.isfinite(self.evaluate(point).value):
            return point
        assert isinstance(self.loss, ResponseLoss)  # no other loss has scores that are not legal
        f = partial(_working_sums, loss=self.loss, scaling=self.scaling, block_rows=self.source.block_rows)
        sums = self.source.reduce(f)
        free = slice(self.size - int(not self.fit_intercept))
        start = np.zeros(self.size)
        start[free] = Curvature(sums[free, free]).solve(np.ascontiguousarray(sums[free, -1]))
        if not np.isfinite(self.evaluate(start).value):
            raise ValueError(
                f"No start was found whose scores are all legal for {self.loss.name}. Use a link that takes any score, "
                "as link='log', or fit an intercept."
            )
        return start

    def to_state(self, point: Array) -> Weights:
        """In the user's units, within the bounds."""
        coef, intercept = self.in_user_units(point)
        return self.strengths.within(Weights(coef[0], float(intercept[0])))

    def to_point(self, state: Weights) -> Array:
        """Inverse of `to_state`."""
        return self.from_user_units(state.coef[None], np.array([state.intercept]))

    def state_of(self, coef: Array, intercept: Array) -> Weights:
        """Weights and an intercept."""
        return Weights(coef[0], float(intercept[0]))

    def without_penalty(self, source: Source) -> GlmTask:
        """The same of other columns of the rows."""
        return GlmTask(source, self.loss, Strengths.plain(0.0, source.n_features), self.fit_intercept)

    @property
    def n_rows(self) -> int:
        """That have a weight."""
        return self.targets.n_rows

    @property
    def null_intercepts(self) -> Array:
        """That of the null model, but for the spread of offsets."""
        return np.array([self.loss.score(self.targets.mean) - self.targets.mean_offset])

    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""
        t = self.targets
        return {"n_rows": t.n_rows, "sum_weight": t.weight, "target_mean": t.mean, "target_sd": t.deviation}

    def of_targets(self) -> dict[str, object]:
        """The loss and the sums of the target."""
        return {"loss": self.loss, "targets": self.targets}

    def rescale(self) -> None:
        """Scales from all rows."""
        self._last = None
        super().rescale()


def _working_sums(run: Block, loss: ResponseLoss, scaling: Scaling, block_rows: int) -> Array:
    """Sums of w W (x, 1)(x, 1)' and, as a last column, of w W (x, 1) times the score of a mean near the target."""
    y = np.asarray(run.y)
    z = loss.start(y)
    curvature = loss.expected(y, z)
    slopes = curvature * (z if run.offset is None else z - run.offset)
    right, matrix, _, _ = sums_of(run, scaling, slopes, curvature, block_rows, (None, 1))
    assert matrix is not None
    return np.column_stack([matrix[0], right[0]])


def _entropies(run: Block) -> float:
    y = np.asarray(run.y)
    weight = np.ones(run.n_rows) if run.weight is None else run.weight
    return float(weight @ (entr(y) + entr(1 - y)))


def _largest_offset(run: Block) -> float:
    return 0.0 if run.offset is None else float(np.abs(run.offset).max(initial=0.0))
