"""Linear regression with Huber's loss: the sums over rows that its solver and its certificate need.

minimise   sum_i w_i s h(r_i / s) / W + pull/2 |w|^2 [+ s / 2, s > 0 free],   r_i = y_i - b - x_i'w,  W = sum_i w_i

A given scale s is held and pull = alpha / s: times s this is sum_i w_i s^2 h(r_i / s) / W + alpha/2 |w|^2.
A joint scale is one more unknown and pull = alpha. All sums are in the scaled units of the Gram statistic.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.mathematics.losses import Huber
from certifit.models.least_squares.dual import has_fewer_rows
from certifit.models.least_squares.normal_equations import LARGEST_PENALTY, Weights
from certifit.models.least_squares.task import LeastSquares
from certifit.runtime import core, n_threads
from certifit.statistics import double_double as dd
from certifit.statistics.factor import System, plain_factor, twofold_factor
from certifit.statistics.gram import Scaling, gram
from certifit.statistics.remainders import literal_columns
from certifit.statistics.residual import TINY, UNIT, twofold_unit

Rule = Literal["joint", "mad"] | float
SMALLEST_SCALE = 2.0**-44  # relative to the target's size: below it residuals are rounding
SMALLEST_BAND = 2.0**-36  # a scale that falls to 0 is followed as far as this: roundings are 2^-17 of it
NORMAL = 0.6744897501960817  # the median of |z| for a standard normal z
SMALLEST_CURVATURE = 1e-10  # smallest curvature of a band, relative to that of all rows
PLAIN_CURVATURE = 1e-6  # of a penalty relative to that of all rows: below it bands are summed in twofold precision
RIDGE = 1e-24  # share of the matrix of all rows, added to a band in twofold precision: keeps its factor definite
PLAIN_CONDITION = 1e6  # of the columns: beyond it bands are summed in twofold precision
LEAST_SIZE = 2.0**-700
MOST_COLUMNS = 4000  # of a system with fewer rows than columns, without a penalty


@dataclass(frozen=True)
class HuberWeights(Weights):
    """A state: weights, intercept, and the scale of the residuals, in the user's units."""

    scale: float


@dataclass(frozen=True)
class Point:
    """A state in scaled units, as the passes take it."""

    weights: Array
    intercept: float
    scale: float


@dataclass(frozen=True)
class Direction:
    """A step of (intercept of shifted columns, weights) and of the scale; decrement: twice the decrease it promises."""

    step: Array
    scale: float
    decrement: float


@dataclass(frozen=True)
class Slopes:
    """Sums of (x, 1) times numbers u of the rows, twofold, and sum_i w_i u_i^2, max |u_i|."""

    moments: dd.Pair
    squares: float
    largest: float

    def __add__(self, other: Slopes) -> Slopes:
        squares, largest = self.squares + other.squares, max(self.largest, other.largest)
        return Slopes(dd.add(self.moments, other.moments), squares, largest)


@dataclass(frozen=True)
class HuberSums:
    """At a state: sums of the loss, slopes, and near = sum over rows inside the band of w (x, 1, r/s)(x, 1, r/s)'."""

    loss: float
    residual_squares: float
    slopes: Slopes
    near: dd.Pair

    def __add__(self, other: HuberSums) -> HuberSums:
        return HuberSums(
            self.loss + other.loss,
            self.residual_squares + other.residual_squares,
            self.slopes + other.slopes,
            dd.add(self.near, other.near),
        )


@dataclass(frozen=True)
class Rows:
    """How the passes read a stretch: units and loss."""

    scaling: Scaling
    loss: Huber
    block_rows: int

    def residuals(self, stretch: Block, at: Point) -> Array:
        """r_i, scaled, evaluated in twofold precision."""
        s = self.scaling
        weights = np.ascontiguousarray(at.weights)
        residuals = core.residual_rows(
            stretch.rows, stretch.y, s.scale, s.y_scale, weights, float(at.intercept), n_threads()
        )
        return np.asarray(residuals)

    def products(self, stretch: Block, step: Array) -> Array:
        """a_i'step for a = (1, x - shift)."""
        s = self.scaling
        weights = np.ascontiguousarray(step[1:])
        level = float(step[0] - step[1:] @ s.shift)
        nothing = np.zeros(stretch.n_rows)
        return -np.asarray(core.residual_rows(stretch.rows, nothing, s.scale, 1.0, weights, level, n_threads()))

    def weights(self, stretch: Block) -> Array:
        """Weights of the rows, scaled."""
        weight = np.ones(stretch.n_rows) if stretch.weight is None else stretch.weight
        return np.asarray(weight * self.scaling.weight_scale)

    def slopes(self, stretch: Block, u: Array) -> Slopes:
        """Sums of numbers u of the rows."""
        s = self.scaling
        weight, zeros = self.weights(stretch), np.zeros(len(s.scale))
        u = np.ascontiguousarray(u)
        hi, lo, *_ = core.residual(stretch.rows, u, weight, s.scale, 1.0, 1.0, zeros, 0.0, self.block_rows, n_threads())
        counted = np.where(weight > 0, np.abs(u), 0.0)
        return Slopes((hi, lo), float(weight @ np.square(u)), float(counted.max(initial=0.0)))

    def near(self, stretch: Block, z: Array, is_near: Array, twofold: bool) -> dd.Pair:
        """sum w (x - shift, 1, z)(x - shift, 1, z)' over the rows inside the band; the low part is 0 in float64."""
        s = self.scaling
        weight, target = self.weights(stretch) * is_near, np.where(is_near, z, 0.0)
        arguments = (s.scale, s.shift, 1.0, 0.0, 1.0, self.block_rows, twofold, n_threads())
        sums, low = core.gram(stretch.rows, target, weight, *arguments)
        return np.asarray(sums), np.zeros_like(sums) if low is None else np.asarray(low)


class HuberTask(LeastSquares):
    """The task; it is also the least-squares task of the same rows, where the solver starts."""

    def __init__(
        self,
        source: Source,
        loss: Huber,
        strength: float,
        rule: Rule,
        fit_intercept: bool,
        standardize: bool = False,
    ) -> None:
        self.loss, self.strength, self.rule = loss, strength, rule
        if source.n_features > MOST_COLUMNS and has_fewer_rows(source):
            raise ValueError(
                f"HuberRegressor without a penalty, on fewer rows than columns that no weights meet, takes at most "
                f"{MOST_COLUMNS} columns. Got {source.n_features}. Use alpha > 0, or select columns first."
            )
        super().__init__(source, strength, fit_intercept, standardize)
        self._column_error = np.zeros(len(self.gram.norms))

    @cached_property
    def over_all_weights(self) -> HuberTask | None:
        """This task without a penalty, on rows of all columns and of what is left of the redundant ones.

        Its factor is of the kept columns and of what is left of the others: together they span what all columns span.
        None where no column is redundant, or where no such columns are well conditioned.
        """
        literal = None if self.remainders is None else literal_columns(self.source, self.remainders, self.fit_intercept)
        if literal is None:
            return None
        offset, d, n_live = int(self.fit_intercept), self.source.n_features, len(literal.basis.live)
        other = copy(self)
        other.forget()
        other.source = self.source.through(replace(literal.basis, is_beside=True))
        other.gram, other.strength = gram(other.source, self.fit_intercept, twofold=True), 0.0
        other._last = other._moved = None
        other.standardize = False  # there is no penalty
        kept = np.concatenate([np.arange(offset), offset + literal.remainders.kept, offset + d + np.arange(n_live)])
        units = np.ones(offset + d + n_live)
        units[kept] = literal.factor._units
        aside = np.setdiff1d(np.arange(len(units)), kept)
        nothing = np.zeros((len(aside), len(kept)))
        other.factor = replace(literal.factor, kept=kept, dependent=aside, relations=nothing, _units=units)
        scale, total = other.gram.scaling.scale[d:], other.gram.sum_weight
        error = 2 * UNIT * other.gram.norms[d:] + literal.basis.relative_error * scale * np.sqrt(total)
        other._column_error = np.concatenate([np.zeros(d), error])
        return other

    def wider(self, state: HuberWeights) -> HuberWeights:
        """A state of the columns as given as one of the columns of this task, where these are more."""
        return replace(state, coef=np.append(state.coef, np.zeros(self.gram.n_columns - len(state.coef))))

    def moment_error(self, squares: float) -> Array:
        """Bounds on the errors of `moments` of u with sum_i w_i u_i^2 = squares: of the sums, and of the columns."""
        error = twofold_unit(self.gram.n_rows) * self.gram.norms + self._column_error
        rounding = twofold_unit(self.gram.n_rows) * np.sqrt(self.gram.sum_weight)
        return np.asarray(np.sqrt(squares) * np.append(rounding, error))

    @property
    def is_joint(self) -> bool:
        """Whether the scale is an unknown."""
        return self.rule == "joint"

    @property
    def alpha(self) -> float:
        """The strength relative to least squares: that of a fixed scale; of a joint one, times the target's spread."""
        if not self.is_joint:
            return self.strength
        return self.strength * self.spread / self.gram.scaling.y_scale

    @property
    def smallest_scale(self) -> float:
        """Scales below this, in scaled units, cannot be distinguished from rounding."""
        return SMALLEST_SCALE * self.target_size

    @property
    def smallest_band(self) -> float:
        """The scale, in scaled units, at which the rows in its band determine a fit with scale 0."""
        return SMALLEST_BAND * self.target_size

    def is_at_zero(self, scale: float) -> bool:
        """Whether a scale that was found, in scaled units, fell as far as float64 can tell it from 0."""
        return scale <= {"joint": 4 * self.smallest_band, "mad": 2 * self.smallest_scale}.get(str(self.rule), 0.0)

    @property
    def target_size(self) -> float:
        """The root of the target's mean square, scaled; above 0."""
        mean, about = self.gram.target_moments()
        return max(float(np.sqrt(about / self.gram.sum_weight + mean * mean)), LEAST_SIZE)

    def pull(self, scale: float) -> Array:
        """W times the strength of the penalty on every scaled weight, at a scale in scaled units, kept finite.

        Powers of two are put together before they meet a number: the squares of scales alone overflow.
        """
        strength = self.strength * self.gram.sum_weight
        if strength == 0:
            return np.zeros(self.gram.n_columns)
        share, power = np.frexp(self._penalty_unit(scale))
        unit_shares, unit_powers = np.frexp(self.penalty_units)
        strengths = strength / share * np.square(2 * unit_shares)
        with np.errstate(over="ignore", under="ignore"):
            pulls = np.ldexp(strengths, 2 * (unit_powers - 1) - power)
            return np.asarray(np.minimum(pulls, LARGEST_PENALTY))

    def beyond_pull(self, state: HuberWeights, scale: float) -> float:
        """At most what the penalty adds to the objective above that of `pull`, where that was kept finite."""
        root = np.sqrt(self.strength) * np.sqrt(self.gram.sum_weight) / np.sqrt(self._penalty_unit(scale))
        return self._beyond(float(root), state) / (2 * self.gram.sum_weight)

    def _penalty_unit(self, scale: float) -> float:
        """What the strength is divided by: the penalty of a joint scale is not relative to it."""
        return self.gram.scaling.y_scale if self.is_joint else scale

    def point(self, state: HuberWeights) -> Point:
        """The state in scaled units."""
        weights, intercept = self.to_scaled(state)
        return Point(weights, intercept, state.scale * self.gram.scaling.y_scale)

    def located(self, state: Weights, scale: float) -> HuberWeights:
        """A state with a scale given in scaled units."""
        return HuberWeights(state.coef, state.intercept, max(float(scale / self.gram.scaling.y_scale), TINY))

    def rows(self) -> Rows:
        """How the passes read a stretch."""
        return Rows(self.gram.scaling, self.loss, self.source.block_rows)

    def sums_at(self, at: Point, step: Array | None = None, with_near: bool = True) -> HuberSums:
        """The sums at a state, or a step from it that float64 weights need not hold: one pass.

        with_near: the matrix of the rows inside the band too, which a Newton step needs.
        """
        twofold = (self.is_faint(at.scale) or self.is_hard) if with_near else None
        return self.source.reduce(partial(_sums_of_stretch, rows=self.rows(), at=at, twofold=twofold, step=step))

    def moments(self, slopes: Slopes) -> Array:
        """sum_i w_i (1, x_i - shift) u_i; the intercept's entry is 0 without one."""
        hi, lo = slopes.moments
        shift = self.gram.scaling.shift
        total = (np.broadcast_to(hi[-1], shift.shape), np.broadcast_to(lo[-1], shift.shape))
        columns = dd.add((hi[:-1], lo[:-1]), dd.multiply((-shift, np.zeros_like(shift)), total))
        return np.concatenate([hi[-1:] if self.fit_intercept else [0.0], columns[0]])

    def objective(self, at: Point, sums: HuberSums, free: bool) -> float:
        """What is minimised, over the scale where that is held; free: the scale is an unknown."""
        penalty = float(self.pull(at.scale) @ np.square(at.weights)) / 2
        return (sums.loss + penalty) / self.gram.sum_weight + (at.scale / 2 if free else 0.0)

    def newton_step(self, at: Point, sums: HuberSums, damping: float, free: bool) -> Direction:
        """(M + damping A)^-1 of minus the gradient, where A is the matrix of all rows and of the penalty.

        M = sum over the band of w a a' + s pull, with a = (1, x - shift, r/s), is s times the matrix of second
        derivatives.
        """
        offset, total = int(self.fit_intercept), self.gram.sum_weight
        slope = self.moments(sums.slopes)
        slope[1:] -= self.pull(at.scale) * at.weights
        push = (sums.slopes.squares - total) / 2
        is_held = not free or (at.scale <= 2 * self.smallest_scale and push < 0)
        slope = np.append(slope[1 - offset :], 0.0 if is_held else push)
        solve = self._plain_step
        if self.is_faint(at.scale):
            solve = self._twofold_step
        elif self.is_hard:
            solve = self._hard_step
        step = at.scale * solve(at, sums, damping, slope, is_held)
        whole = np.concatenate([np.zeros(1 - offset), step[:-1]])
        return Direction(whole, float(step[-1]), float(slope @ step))

    def is_faint(self, scale: float) -> bool:
        """Whether the penalty is so small relative to a band of this scale that float64 sums would lose it."""
        return self._faintness(scale) < PLAIN_CURVATURE

    @cached_property
    def is_hard(self) -> bool:
        """Whether the columns are so near each other that float64 sums of a band would lose their differences."""
        return self.gram.low is not None and self.factor.condition > PLAIN_CONDITION

    def _plain_step(self, at: Point, sums: HuberSums, damping: float, slope: Array, is_held: bool) -> Array:
        """By a factor; where a band nearly lacks a direction, in units where A is the identity.

        The matrix of any band has eigenvalues in [0, 1] there, and those near 0 are raised.
        """
        matrix = self._in_order(sums.near[0])
        places = np.arange(self.gram.n_columns) + int(self.fit_intercept)
        matrix[places, places] += self._scaled_pull(at.scale)
        size = len(slope) - int(is_held)
        lengths_of_all = np.append(self.unpenalised().diagonal() + self.diagonal(self.alpha), self.gram.sum_weight)[
            :size
        ]
        if not damping and (matrix.diagonal()[:size] > SMALLEST_CURVATURE * lengths_of_all).all():
            factor = plain_factor(System(matrix[:size, :size], None, np.sqrt(lengths_of_all)))
            if factor is not None:
                return np.append(factor.solve(slope[:size]), np.zeros(int(is_held)))
        units = np.zeros_like(matrix)
        root = self.factor.inverse_root()
        units[:-1, : root.shape[1]] = root
        units[-1, -1] = 0.0 if is_held else 1.0 / np.sqrt(self.gram.sum_weight)
        values, vectors = np.linalg.eigh(units.T @ matrix @ units)
        along = vectors.T @ (units.T @ slope)
        lengths = along / np.maximum(values + damping, min(SMALLEST_CURVATURE, self._faintness(at.scale) / 2))
        return np.asarray(units @ (vectors @ lengths))

    def _hard_step(self, at: Point, sums: HuberSums, damping: float, slope: Array, is_held: bool) -> Array:
        """By a twofold factor on the kept columns, plus a share of the matrix of all rows."""
        band, all_rows = self._band(sums), self._all_rows()
        share = damping + min(SMALLEST_CURVATURE, self._faintness(at.scale) / 2)
        matrix, low = dd.add(band, dd.multiply(all_rows, (np.asarray(share), np.zeros(()))))
        pull = np.zeros(len(slope))
        pull[int(self.fit_intercept) : -1] = self._scaled_pull(at.scale)
        places = np.append(self.factor.kept, [] if is_held else [len(slope) - 1]).astype(np.int64)
        taken = np.ix_(places, places)
        out = np.zeros(len(slope))
        system = System.of(matrix[taken], low[taken], pull[places], np.zeros(len(places)))
        out[places] = twofold_factor(system).solve(slope[places])
        return out

    def _all_rows(self) -> dd.Pair:
        """The matrix of all rows and of the penalty for the system's unknowns, the scale last."""
        order = self._order()
        size = len(order) + 1
        hi, lo = np.zeros((size, size)), np.zeros((size, size))
        places = np.ix_(order, order)
        hi[:-1, :-1] = self.gram.sums[places]
        lo[:-1, :-1] = 0.0 if self.gram.low is None else self.gram.low[places]
        extra = np.append(self.diagonal(self.alpha), self.gram.sum_weight)
        return dd.add((hi, lo), (np.diag(extra), np.zeros((size, size))))

    def _twofold_step(self, at: Point, sums: HuberSums, damping: float, slope: Array, is_held: bool) -> Array:
        """By a twofold factor: s pull may be 1e-20 of the band's entries."""
        matrix, low = self._band(sums)
        beside = np.append(self.unpenalised().diagonal() + self.diagonal(self.alpha), self.gram.sum_weight)
        extra = (damping + RIDGE) * beside
        extra[int(self.fit_intercept) : -1] += self._scaled_pull(at.scale)
        size = len(slope) - int(is_held)
        system = System.of(matrix[:size, :size], low[:size, :size], extra[:size], np.zeros(size))
        return np.append(twofold_factor(system).solve(slope[:size]), np.zeros(int(is_held)))

    def _band(self, sums: HuberSums) -> dd.Pair:
        """sums.near in the order of the system's unknowns, the scale last."""
        return self._in_order(sums.near[0]), self._in_order(sums.near[1])

    def _in_order(self, near: Array) -> Array:
        """A copy, rows and columns in the order of the system's unknowns."""
        d = self.gram.n_columns
        order = np.array([*[d] * int(self.fit_intercept), *range(d), d + 1])
        return np.asarray(near[order[:, None], order])

    def median_scale(self, state: Weights) -> float:
        """The median of |r| over its value for a standard normal, scaled; at least the smallest scale.

        That is a share of the root mean square of the target. Squares are summed here: those of the Gram statistic are
        about a shift that rows of little weight move, and cancel to ten digits.
        """
        at = Point(*self.to_scaled(state), 1.0)
        parts = list(self.source.map(partial(_residuals_of_stretch, rows=self.rows(), at=at)))
        r, weight = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
        target_size = math.sqrt(sum(part[2] for part in parts) / float(weight.sum()))
        return max(median_scale(r, weight), SMALLEST_SCALE * max(target_size, LEAST_SIZE))

    def _scaled_pull(self, scale: float) -> Array:
        """s pull, kept finite."""
        with np.errstate(over="ignore"):
            return np.asarray(np.minimum(scale * self.pull(scale), LARGEST_PENALTY))

    def _faintness(self, scale: float) -> float:
        """The least of s pull relative to the penalty of all rows; 1 without one."""
        penalised = self.penalty > 0
        if not penalised.any():
            return 1.0
        return float(np.min(self._scaled_pull(scale)[penalised] / self.penalty[penalised]))

    @property
    def spread(self) -> float:
        """The target's standard deviation, scaled; at least the smallest scale."""
        _, about = self.gram.target_moments()
        return max(float(np.sqrt(about / self.gram.sum_weight)), self.smallest_scale)


def median_scale(r: Array, weight: Array) -> float:
    """The weighted median of |r| over its value for a standard normal; weight 2 is the row twice."""
    counted = weight > 0
    size, weight = np.abs(r[counted]), weight[counted]
    order = np.argsort(size, kind="stable")
    size, weight = size[order], weight[order]
    low, high = _middle(weight)
    return float((size[low] / 2 + size[high] / 2) / NORMAL)


def _middle(weight: Array) -> tuple[int, int]:
    """The first rows up to which the weights sum to at least half of all, and to more: equal but for an exact tie."""
    n = len(weight)
    if (weight == weight[0]).all():
        return (n - 1) // 2, min(n // 2, n - 1)
    reached = np.cumsum(weight)
    k = min(int(np.searchsorted(reached, reached[-1] / 2)), n - 1)
    # fsum rounds the exact sum once, so its sign is right.
    while k > 0 and _lead(weight, k - 1) >= 0:
        k -= 1
    while k < n - 1 and _lead(weight, k) < 0:
        k += 1
    return k, min(k + int(_lead(weight, k) == 0), n - 1)


def _lead(weight: Array, k: int) -> float:
    """The weights up to row k less those after it."""
    return math.fsum(np.concatenate([weight[: k + 1], -weight[k + 1 :]]))


def _sums_of_stretch(stretch: Block, rows: Rows, at: Point, twofold: bool | None, step: Array | None) -> HuberSums:
    """twofold: how the matrix of the band is summed; None: it is not."""
    loss, weight = rows.loss, rows.weights(stretch)
    r = rows.residuals(stretch, at)
    r = r if step is None else r - rows.products(stretch, step)
    u, near = loss.slope(r, at.scale), (np.zeros(0), np.zeros(0))
    if twofold is not None:
        near = rows.near(stretch, u, loss.is_near(r, at.scale), twofold)
    values, squares = float(weight @ loss.value(r, at.scale)), float(weight @ np.square(r))
    return HuberSums(values, squares, rows.slopes(stretch, u), near)


def _residuals_of_stretch(stretch: Block, rows: Rows, at: Point) -> tuple[Array, Array, float]:
    """Residuals and weights, scaled, and the sum of w y^2."""
    weight = rows.weights(stretch)
    squares = float(np.sum(weight * np.square(np.asarray(stretch.y) * rows.scaling.y_scale)))
    return rows.residuals(stretch, at), weight, squares
