"""The exact certificate of Huber's loss, at a given scale or with the scale as one more unknown.

given scale s:  P(w, b)    = sum_i share_i s h(r_i / s) + alpha / (2 s) |w|^2          (the objective over s)
joint scale:    P(w, b, s) = sum_i share_i s h(r_i / s) + s / 2 + alpha / 2 |w|^2

Both are convex with slopes that have kinks where |r_i| = delta s. Over a box that a row may cross its kink in, its
second derivative is the ball from 0 to that of the band, which holds all slopes between two points of the box.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.exact import balls
from certifit.exact.balls import Ball, ball
from certifit.exact.losses import Evaluation
from certifit.exact.minimum import Minimum, NoMinimum, minimum
from certifit.exact.penalised import Penalty
from certifit.exact.proof import PLAIN, Asked, Bounds, ExactProof, ExactRows, refined, relative
from certifit.models.huber.task import NORMAL, SMALLEST_SCALE

THEOREM = "a zero of the slope enclosed in balls (interval Newton), and convexity"
FLAT = "no precision shows where the minimum lies: too few residuals are inside the band, or the best scale is 0."

MOST_BITS = 3072  # where the band is empty no precision helps


@dataclass
class HuberProblem:
    """The objective of (weights, intercept, scale) in balls; the scale is one of them where it is free."""

    columns: Any
    y: list[Ball]
    shares: list[Ball]
    delta: Ball
    l2: list[Ball]  # strengths of the penalty, 0 for the intercept
    scale: Ball | None  # None: an unknown, the last
    _transposed: Any = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return len(self.l2) + int(self.scale is None)

    def at(self, theta: list[Ball], hessian: bool = False) -> Evaluation | None:
        """The objective; None where the scale may be 0."""
        weights = theta[: len(self.l2)]
        scale = theta[-1] if self.scale is None else self.scale
        if not scale > 0:
            return None
        z = [r / scale for r in self.residuals(weights)]
        rows = [_huber(score, self.delta) for score in z]
        pulls = self.l2 if self.scale is None else [strength / scale for strength in self.l2]
        value = scale * balls.dot(self.shares, [row[0] for row in rows])
        value += balls.total([pull * w * w for pull, w in zip(pulls, weights, strict=True)]) / 2
        slope = self._slope([row[1] for row in rows], weights, pulls)
        if self.scale is None:
            value += scale / 2
            slope.append((1 - balls.dot(self.shares, [row[1] * row[1] for row in rows])) / 2)
        if not balls.is_finite([value, *slope]):
            return None
        near = [s * row[2] / scale for s, row in zip(self.shares, rows, strict=True)]
        return Evaluation(value, slope, self._hessian(near, z, pulls) if hessian else None)

    def residuals(self, weights: list[Ball]) -> list[Ball]:
        """y - a'w of every row."""
        if not weights:
            return self.y
        scores = (self.columns * balls.column(weights)).entries()
        return [y - score for y, score in zip(self.y, scores, strict=True)]

    @property
    def transposed(self) -> Any:
        """Columns as rows."""
        if self._transposed is None:
            self._transposed = self.columns.transpose()
        return self._transposed

    def _slope(self, u: list[Ball], weights: list[Ball], pulls: list[Ball]) -> list[Ball]:
        if not weights:
            return []
        sums = (self.transposed * balls.column([s * v for s, v in zip(self.shares, u, strict=True)])).entries()
        return [pull * w - s for s, w, pull in zip(sums, weights, pulls, strict=True)]

    def _hessian(self, near: list[Ball], z: list[Ball], pulls: list[Ball]) -> Any:
        """sum over the band of share/s (a, z)(a, z)', z last where the scale is free."""
        size, n_weights = self.size, len(pulls)
        matrix = balls.flint().arb_mat(size, size)
        if n_weights:
            inner = self.transposed * balls.scaled_rows(near, self.columns)
            for i in range(n_weights):
                for j in range(n_weights):
                    matrix[i, j] = inner[i, j]
                matrix[i, i] += pulls[i]
        if self.scale is None:
            moved = [n * score for n, score in zip(near, z, strict=True)]
            edge = (self.transposed * balls.column(moved)).entries() if n_weights else []
            for i, entry in enumerate(edge):
                matrix[i, size - 1] = matrix[size - 1, i] = entry
            matrix[size - 1, size - 1] = balls.dot(moved, z)
        return matrix


def _huber(z: Ball, delta: Ball) -> tuple[Ball, Ball, Ball]:
    """h, h' and h'' at z; where z may be on either side of a kink, balls that hold both."""
    size = abs(z)
    if size <= delta:
        return z * z / 2, z, ball(1)
    far = (delta * size - delta * delta / 2, delta * z.sgn(), ball(0))
    if size > delta:
        return far
    cut = z.max(-delta).min(delta)
    near = z * z / 2
    return near.union(far[0]), cut, ball(0).union(ball(1))


class HuberFit:
    """A stored state of Huber regression, and its rows."""

    def __init__(self, rows: ExactRows, model: Any, asked: Asked = PLAIN) -> None:
        self.rows, self.aside, self.claims_exact_fit = rows, asked.aside, asked.claims_exact_fit
        self.delta = float(model.delta)
        self.penalty = Penalty.ridge(float(model.alpha_), rows.n_columns, bool(model.standardize))
        self.rule = str(model.scale) if isinstance(model.scale, str) else "given"
        self.fit_intercept = bool(model.fit_intercept)
        self.coef, self.intercept = np.asarray(model.coef_), float(model.intercept_)
        self.scale = float(model.scale_)
        self._kept: Array | None = None

    def proof(self) -> ExactProof:
        """The relative excess of the objective at the state, enclosed."""
        return refined(self.bounds, THEOREM, FLAT, MOST_BITS)

    def bounds(self) -> Bounds | None:
        """What the precision that is set proves."""
        weight = balls.balls(self.rows.weight.tolist())
        whole = balls.total(weight)
        self.shares, self.y = [w / whole for w in weight], balls.balls(self.rows.y.tolist())
        self.l2 = self.penalty.strengths(self.rows, self.fit_intercept)[1]
        every = list(range(self.rows.n_columns))
        state = [*balls.balls(self.coef.tolist()), *[ball(self.intercept)] * int(self.fit_intercept)]
        problem = self._problem(every)
        at = problem.at(state + [ball(self.scale)] * int(problem.scale is None))
        if at is None:
            return None
        lowest = self._minimum(state)
        drift = self._drift(problem, state, at.value)
        if isinstance(lowest, Minimum):
            gap = (at.value - lowest.value + drift,) * 2
        elif (
            self.claims_exact_fit
        ):  # an objective is never negative: that bounds what is rounding beside the null model
            gap = (ball(0), at.value + drift)
        else:
            return None
        return Bounds(*relative(gap, at.value, self._null(), self.claims_exact_fit))

    def _problem(self, places: list[int], scale: Ball | None = None) -> HuberProblem:
        ones = int(self.fit_intercept)
        columns = np.hstack([self.rows.X[:, places], np.ones((self.rows.n_rows, ones))])
        width = ball(self.scale) if scale is None else scale
        return HuberProblem(
            columns=balls.matrix(columns) if columns.shape[1] else None,
            y=self.y,
            shares=self.shares,
            delta=ball(self.delta),
            l2=[*(self.l2[j] for j in places), *[ball(0)] * ones],
            scale=None if self.rule == "joint" else width,
        )

    def _minimum(self, state: list[Ball]) -> Minimum | NoMinimum:
        """The minimum over all weights; of dependent columns without a penalty, over those that span the others."""
        places = [j for j in range(self.rows.n_columns) if j not in self.aside]
        if self._kept is None and not self.aside:
            lowest = self._minimum_on(places, state)
            if isinstance(lowest, Minimum) or lowest.reason != "singular" or self.penalty.alpha > 0:
                return lowest
        if self._kept is None:
            ones = np.ones((self.rows.n_rows, int(self.fit_intercept)))
            kept = balls.independent_columns(np.hstack([ones, self.rows.X[:, places]])) - ones.shape[1]
            self._kept = np.array([places[k] for k in kept if k >= 0], dtype=np.intp)
        kept_places: list[int] = [int(j) for j in self._kept]
        start = self._projected(kept_places, state)
        return NoMinimum("singular", state) if start is None else self._minimum_on(kept_places, start)

    def _minimum_on(self, places: list[int], start: list[Ball]) -> Minimum | NoMinimum:
        problem = self._problem(places)
        return minimum(problem, start + [ball(self.scale)] * int(problem.scale is None))

    def _projected(self, places: list[int], state: list[Ball]) -> list[Ball] | None:
        """Weights of some columns whose scores are nearest to those of the state."""
        ones = np.ones((self.rows.n_rows, int(self.fit_intercept)))
        wide = balls.matrix(np.hstack([self.rows.X[:, places], ones]))
        every = balls.matrix(np.hstack([self.rows.X, ones]))
        down = wide.transpose()
        projected = balls.solved(down * wide, down * (every * balls.column(state)))
        return None if projected is None else [t.mid() for t in projected.entries()]

    def _null(self) -> Ball | None:
        """At most the least objective without weights, where an exact fit is claimed; None where that may be 0.

        The dual at u = slopes of residuals about the mean, less their mean, in the box; with a joint scale of mean
        square 1 at most: sum_i share_i (u_i y_i - s u_i^2 / 2), without the last term where the scale is free.
        """
        if not self.claims_exact_fit or not (self.rows.y != self.rows.y[0]).any():
            return None
        level = balls.dot(self.shares, self.y) if self.fit_intercept else ball(0)
        r = [y - level for y in self.y]
        wide = balls.root(balls.dot(self.shares, [entry * entry for entry in r]))
        if self.rule != "joint":
            wide = wide.max(ball(self.scale))
        u = [_huber(entry / wide, ball(self.delta))[1] for entry in r]
        mean = balls.dot(self.shares, u) if self.fit_intercept else ball(0)
        u = [entry - mean for entry in u]
        squares = balls.dot(self.shares, [entry * entry for entry in u])
        share = (ball(self.delta) / balls.largest(abs(entry) for entry in u)).min(ball(1))
        if self.rule == "joint":
            share = share.min(1 / balls.root(squares))
        held = ball(0) if self.rule == "joint" else ball(self.scale) * share * squares / 2
        dual = share * (balls.dot([s * entry for s, entry in zip(self.shares, u, strict=True)], self.y) - held)
        return dual if dual > 0 else None

    def _drift(self, problem: HuberProblem, state: list[Ball], objective: Ball) -> Ball:
        """With the scale "mad", how much the objective at the state changes from its scale to the median one."""
        if self.rule != "mad":
            return ball(0)
        scale = self._median_scale(problem.residuals(state))
        at = self._problem(list(range(self.rows.n_columns)), scale).at(state)
        return abs(at.value * scale / ball(self.scale) - objective) if at is not None else objective

    def _median_scale(self, residuals: list[Ball]) -> Ball:
        """The weighted median of |r| over its value for a standard normal; at least the smallest scale."""
        sizes = [abs(r) for r in residuals]
        order = sorted(range(len(sizes)), key=lambda i: sizes[i].mid())
        half, reached = sum(map(Fraction, self.rows.weight.tolist()), Fraction(0)) / 2, Fraction(0)
        low = high = None
        for i in order:
            reached += Fraction(float(self.rows.weight[i]))
            low = i if low is None and reached >= half else low
            high = i if high is None and reached > half else high
        assert low is not None
        median = (sizes[low] + sizes[low if high is None else high]) / 2 / ball(NORMAL)
        target = balls.dot(self.shares, [y * y for y in self.y]).sqrt()
        return median.max(ball(SMALLEST_SCALE) * target)
