"""Exact certificates of scores with penalties and bounds: least squares, ridge, lasso, elastic net and every GLM.

P(w, b) = sum_i share_i l(y_i, offset_i + b + x_i'w) + sum_j l1_j |w_j| + l2_j/2 w_j^2,   lower_j <= w_j <= upper_j

Weights are free, or fixed at 0 or at a bound. |w_j| >= s_j w_j for a sign s_j, so with f the loss and l2,

    P(w) >= L - sum over fixed j of e_j |w_j - v_j|,   L = min over free weights of f + sum_j s_j l1_j w_j

where e_j is by how much the slope by w_j misses what a minimum asks for (0 but for rounding). Weights that are as good
as the state are bounded by the penalty, so the last sum is too: the infimum is enclosed whatever weights are free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.exact import balls
from certifit.exact.balls import Ball, ball, flint
from certifit.exact.losses import GlmProblem, legal_scores, loss_in_balls
from certifit.exact.minimum import Minimum, NoMinimum, descended, minimum
from certifit.exact.proof import PLAIN, Asked, Bounds, ExactProof, ExactRows, NoProof, nothing_proven, refined, relative

THEOREM = "a zero of the slope enclosed in balls (interval Newton), and convexity"
MOST_CHANGES = 500  # of the set of free weights
FLAT = (
    "no precision shows that a minimum exists: the objective falls on and on, or the best weights lie on the edge of "
    "what the link takes."
)
SEPARATED = (
    "there is no minimum: a combination of the columns has the right sign in every row, checked exactly, so that "
    "larger weights are better for ever. Use a penalty (alpha > 0)."
)


@dataclass(frozen=True)
class Penalty:
    """Strengths as the user gave them: float64 numbers. standardize: of weights times the spreads of their columns."""

    alpha: float
    l1_ratio: float
    factors: Array
    lower: Array
    upper: Array
    standardize: bool = False

    @staticmethod
    def ridge(alpha: float, n_columns: int, standardize: bool = False) -> Penalty:
        """The same strength of all squares, and no bounds."""
        ends = np.full(n_columns, np.inf)
        return Penalty(alpha, 0.0, np.ones(n_columns), -ends, ends, standardize)

    def strengths(self, rows: ExactRows, centred: bool) -> tuple[list[Ball], list[Ball]]:
        """l1_j and l2_j in balls."""
        alpha, ratio, factors = ball(self.alpha), ball(self.l1_ratio), balls.balls(self.factors.tolist())
        spreads = exact_spreads(rows, centred) if self.standardize else [ball(1)] * len(factors)
        l1 = [alpha * ratio * f * s for f, s in zip(factors, spreads, strict=True)]
        l2 = [alpha * (1 - ratio) * f * s * s for f, s in zip(factors, spreads, strict=True)]
        return l1, l2


def exact_spreads(rows: ExactRows, centred: bool) -> list[Ball]:
    """The standard deviation (root mean square where not centred) of every column; 1 for what does not vary."""
    return [_spread(column, rows.weight, centred) for column in rows.X.T]


def _spread(values: Array, weight: Array, centred: bool) -> Ball:
    """The standard deviation (root mean square where not centred); 1 for what does not vary."""
    if (values == values[0]).all() and (centred or values[0] == 0):
        return ball(1)
    entries, w = balls.balls(values.tolist()), balls.balls(weight.tolist())
    whole = balls.total(w)
    mean = balls.dot(w, entries) / whole if centred else ball(0)
    return (balls.dot(w, [(v - mean) * (v - mean) for v in entries]) / whole).sqrt()


class ScoreFit:
    """A stored state, the rows and the penalty."""

    def __init__(
        self,
        rows: ExactRows,
        loss: Any,
        penalty: Penalty,
        fit_intercept: bool,
        coef: Array,
        intercept: float,
        asked: Asked = PLAIN,
    ) -> None:
        self.rows, self.penalty, self.fit_intercept = rows, penalty, fit_intercept
        self.aside, self.claims_exact_fit = asked.aside, asked.claims_exact_fit
        self.loss, self.score_loss = loss_in_balls(loss), loss
        self.coef = np.asarray(coef, dtype=np.float64)
        self.intercept = float(intercept)
        self._independent: dict[tuple[int, ...], Array] = {}
        self._matrices: dict[tuple[int, ...], Any] = {}

    def proof(self) -> ExactProof:
        """The relative excess of the objective at the state, enclosed."""
        p = self.penalty
        if not ((self.coef >= p.lower) & (self.coef <= p.upper)).all():
            return nothing_proven(THEOREM, "a weight is beyond its bounds.")
        return refined(self.bounds, THEOREM, FLAT)

    def bounds(self) -> Bounds | None:
        """What the precision that is set proves."""
        self._set_strengths()
        objective = self._objective(self.coef.tolist(), ball(self.intercept))
        if objective is None:
            return None
        null = self._null()
        infimum = self._infimum(objective)
        if infimum is None:
            return None
        low, high, place = infimum
        ends = relative((objective - high, objective - low), objective, null, self.claims_exact_fit)
        return Bounds(*ends, errors=None if place is None else self._errors(place))

    def _set_strengths(self) -> None:
        weight = balls.balls(self.rows.weight.tolist())
        whole = balls.total(weight)
        self.shares = [w / whole for w in weight]
        self.l1, self.l2 = self.penalty.strengths(self.rows, self.fit_intercept)

    def _matrix(self, places: Sequence[int]) -> Any:
        """Some columns, and 1 where there is an intercept."""
        key = tuple(places)
        if key not in self._matrices:
            self._matrices.clear()
            self._matrices[key] = balls.matrix(self._columns(places))
        return self._matrices[key]

    def _columns(self, places: Sequence[int]) -> Array:
        ones = np.ones((self.rows.n_rows, int(self.fit_intercept)))
        return np.hstack([self.rows.X[:, list(places)], ones])

    def _problem(self, places: Sequence[int], pull: list[Ball], fixed: dict[int, float]) -> GlmProblem:
        """The objective of some weights and the intercept; the others are fixed."""
        extra = [ball(0)] * int(self.fit_intercept)
        return GlmProblem(
            columns=self._matrix(places),
            y=self.rows.y.tolist(),
            shares=self.shares,
            offset=self._offset(fixed),
            loss=self.loss,
            l2=[self.l2[j] for j in places] + extra,
            pull=pull + extra,
            scores=legal_scores(self.score_loss),
        )

    def _offset(self, fixed: dict[int, float]) -> list[Ball] | None:
        bound = {j: v for j, v in fixed.items() if v != 0}
        if not bound and not self.rows.offset.any():
            return None
        z = balls.balls(self.rows.offset.tolist())
        for j, v in bound.items():
            z = [a + ball(v) * x for a, x in zip(z, balls.balls(self.rows.X[:, j].tolist()), strict=True)]
        return z

    def _objective(self, weights: Sequence[Any], intercept: Ball) -> Ball | None:
        """P at some weights; None where a score is illegal."""
        used = [j for j, w in enumerate(weights) if w != 0]
        theta = [ball(weights[j]) for j in used]
        problem = self._problem(used, [ball(0)] * len(used), {})
        at = problem.at(theta + [intercept] * int(self.fit_intercept))
        if at is None:
            return None
        return at.value + sum((self.l1[j] * abs(t) for j, t in zip(used, theta, strict=True)), ball(0))

    def _null(self) -> Ball | None:
        """The least objective without weights, where an exact fit is claimed; None where no constant is best."""
        if not self.claims_exact_fit:
            return None
        problem = self._problem([], [], {})
        start = [ball(self._null_start())] * int(self.fit_intercept)
        lowest = minimum(problem, start)
        return lowest.value if isinstance(lowest, Minimum) else None

    def _null_start(self) -> float:
        with np.errstate(all="ignore"):
            shares = self.rows.weight / self.rows.weight.max()
            mean = float(np.average(self.rows.y, weights=shares))
            level = float(self.score_loss.score(mean)) - float(np.average(self.rows.offset, weights=shares))
        return level if np.isfinite(level) else 0.0

    def _infimum(self, objective: Ball) -> tuple[Ball, Ball, list[Ball] | None] | None:
        """Balls at most and at least the infimum, and of the place of it where that is one point of all weights."""
        face = Face(self)
        if not face.settle():
            return None
        lowest = minimum(face.problem(), face.theta)
        if isinstance(lowest, NoMinimum):
            return None
        missed = face.missed(lowest.place, objective)
        if missed is None:
            return None
        weights, intercept = face.feasible()
        high = self._objective(weights, intercept)
        if high is None:
            return None
        is_whole = face.is_whole and not self.aside
        place = [*lowest.place[len(face.free) :], *lowest.place[: len(face.free)]] if is_whole else None
        return lowest.value + face.constant() - missed, high, place

    def _errors(self, place: list[Ball]) -> tuple[float, ...]:
        """At least |w - w*| / |w| of every coefficient, the intercept first."""
        stored = [self.intercept] * int(self.fit_intercept) + self.coef.tolist()
        return tuple(
            0.0 if w == 0 else max(balls.below(abs(ball(w) - p) / abs(ball(w))), 0.0)
            for w, p in zip(stored, place, strict=True)
        )

    def is_separated(self, theta: list[Ball], places: Sequence[int]) -> bool:
        """Whether scores of these weights have the right sign in every row: y 1 above 0, y 0 below, no penalty."""
        names = ("logistic", "bernoulli", "binomial")
        is_chance = any(name in self.score_loss.name for name in names) and set(self.rows.y.tolist()) <= {0.0, 1.0}
        p = self.penalty
        if not is_chance or p.alpha > 0 or np.isfinite([p.lower, p.upper]).any() or self.rows.offset.any():
            return False
        z = (self._matrix(places) * balls.column(theta)).entries()
        return all(score > 0 if y == 1 else score < 0 for y, score in zip(self.rows.y.tolist(), z, strict=True))

    def independent(self, places: Sequence[int]) -> Array:
        """Which of these columns (and 1, the first) are independent, as places in (1, *places); exact."""
        key = tuple(places)
        if key not in self._independent:
            columns = self._columns(places)
            if self.fit_intercept:  # 1 first, so that it is kept
                columns = np.roll(columns, 1, axis=1)
            self._independent[key] = balls.independent_columns(columns)
        return self._independent[key]


class Face:
    """The free weights of a fit with their signs, and the values of the others. theta: free weights, intercept last."""

    def __init__(self, fit: ScoreFit) -> None:
        self.fit = fit
        self.fixed: dict[int, float] = {}
        self.free: list[int] = []
        p = fit.penalty
        for j, w in enumerate(fit.coef.tolist()):
            if j in fit.aside:
                continue
            at_bound = w != 0 and w in (p.lower[j], p.upper[j])
            at_zero = w == 0 and (self._has_kink(j) or 0.0 in (p.lower[j], p.upper[j]))
            if at_bound or at_zero:
                self.fixed[j] = w
            else:
                self.free.append(j)
        self.signs = {j: 1 if fit.coef[j] > 0 else -1 for j in self.free}
        self.theta = [ball(fit.coef[j]) for j in self.free] + [ball(fit.intercept)] * int(fit.fit_intercept)

    @property
    def is_whole(self) -> bool:
        """Whether all weights are free."""
        return not self.fixed and len(self.free) == len(self.fit.coef)

    def _has_kink(self, j: int) -> bool:
        return not self.fit.l1[j].is_zero()

    def problem(self) -> GlmProblem:
        """The objective of the free weights, its kinks replaced by their signs."""
        pull = [self.signs[j] * self.fit.l1[j] for j in self.free]
        return self.fit._problem(self.free, pull, self.fixed)

    def constant(self) -> Ball:
        """What the fixed weights add to the penalty."""
        fit = self.fit
        return sum(
            (fit.l1[j] * abs(ball(v)) + fit.l2[j] * ball(v) ** 2 / 2 for j, v in self.fixed.items() if v != 0), ball(0)
        )

    def feasible(self) -> tuple[list[Any], Ball]:
        """All weights near the minimum, within their bounds, and the intercept."""
        p = self.fit.penalty
        weights: list[Any] = [ball(0)] * len(self.fit.coef)
        for j, v in self.fixed.items():
            weights[j] = ball(v)
        for j, t in zip(self.free, self.theta, strict=False):
            weights[j] = t.mid().max(ball(p.lower[j])).min(ball(p.upper[j])) if self._is_bounded(j) else t.mid()
        return weights, self.theta[-1].mid() if self.fit.fit_intercept else ball(0)

    def _is_bounded(self, j: int) -> bool:
        return bool(np.isfinite(self.fit.penalty.lower[j]) or np.isfinite(self.fit.penalty.upper[j]))

    def settle(self) -> bool:
        """Find the free weights of the minimum; whether they were found.

        Where the way comes back to the same free weights, rounding alone asks for a change: `missed` bounds what it is.
        """
        seen: set[tuple[Any, ...]] = set()
        for _ in range(MOST_CHANGES):
            problem = self.problem()
            descent = descended(problem, self.theta) if problem.size else ([], None, [])
            if isinstance(descent, NoMinimum):
                if descent.reason == "far":
                    raise NoProof(SEPARATED if self.fit.is_separated(descent.place, self.free) else FLAT)
                if descent.reason != "singular" or not self._remove_dependent(descent.place):
                    return False
                continue
            if self._stop_at_kink(descent[0]):
                continue
            self.theta = descent[0]
            face = (*((j, self.signs[j]) for j in sorted(self.free)), *sorted(self.fixed.items()))
            if face in seen or not self._release(problem):
                return True
            seen.add(face)
        return False

    def _stop_at_kink(self, target: list[Ball]) -> bool:
        """Go towards the target as far as signs and bounds allow; fix the weight that stops the way."""
        share, stop = ball(1), None
        for place, j in enumerate(self.free):
            for limit in self._limits(j):
                ahead, behind = target[place] - limit, self.theta[place] - limit
                if (ahead * behind).mid() < 0 or (behind.mid() == 0 and self._is_beyond(j, limit, ahead)):
                    way = (behind / (behind - ahead)).mid()
                    if way < share.mid() or stop is None:
                        share, stop = way, (place, float(limit.mid()))
        if stop is None:
            return False
        self.theta = [(t + share * (g - t)).mid() for t, g in zip(self.theta, target, strict=True)]
        self._fix(*stop)
        return True

    def _limits(self, j: int) -> list[Ball]:
        """Places where the sign of a free weight, or its bounds, end."""
        p = self.fit.penalty
        ends = [ball(end) for end in (p.lower[j], p.upper[j]) if np.isfinite(end)]
        return [*ends, ball(0)] if self._has_kink(j) else ends

    def _is_beyond(self, j: int, limit: Ball, ahead: Ball) -> bool:
        """Whether a weight that starts at a limit would leave what its sign or its bounds allow."""
        p = self.fit.penalty
        if self._has_kink(j) and limit.is_zero():
            return bool((ahead * self.signs[j]).mid() < 0)
        return bool(ahead.mid() > 0) if float(limit.mid()) == p.upper[j] else bool(ahead.mid() < 0)

    def _fix(self, place: int, value: float) -> None:
        j = self.free.pop(place)
        self.theta.pop(place)
        self.fixed[j] = value

    def _release(self, problem: GlmProblem) -> bool:
        """Free the fixed weight whose slope asks most for it; whether there was one."""
        tiny = ball(2) ** (-flint().ctx.prec // 2)
        slopes = self._slopes(problem, self.theta)
        worst, most = None, ball(0)
        for j, slope in slopes.items():
            for sign, miss in self._misses(j, slope):
                scale = self.fit.l1[j] + tiny * abs(slope)
                if (miss - tiny * scale).mid() > 0 and (worst is None or miss.mid() > most.mid()):
                    worst, most = (j, sign), miss
        if worst is None:
            return False
        j, sign = worst
        value = self.fixed.pop(j)
        self.free.insert(0, j)
        self.signs[j] = sign if value == 0 else (1 if value > 0 else -1)
        self.theta.insert(0, ball(value))
        return True

    def _slopes(self, problem: GlmProblem, theta: list[Ball]) -> dict[int, Ball]:
        """Slopes of the loss and of l2 by the fixed weights."""
        if not self.fixed:
            return {}
        places = sorted(self.fixed)
        z = problem.scores_at(theta)
        rows = [s * self.fit.loss(y, score)[1] for s, y, score in zip(problem.shares, problem.y, z, strict=True)]
        sums = (balls.matrix(self.fit.rows.X[:, places]).transpose() * balls.column(rows)).entries()
        return {j: s + self.fit.l2[j] * ball(self.fixed[j]) for j, s in zip(places, sums, strict=True)}

    def _misses(self, j: int, slope: Ball) -> list[tuple[int, Ball]]:
        """(direction, by how much the objective falls that way) of a fixed weight; negative where it rises."""
        value, l1, p = self.fixed[j], self.fit.l1[j], self.fit.penalty
        ways = []
        if value < p.upper[j]:
            ways.append((1, -slope - (l1 if value >= 0 else -l1)))
        if value > p.lower[j]:
            ways.append((-1, slope - (l1 if value <= 0 else -l1)))
        return ways

    def missed(self, place: list[Ball], objective: Ball) -> Ball | None:
        """sum_j e_j |w_j - v_j| at most, over weights as good as the state; None where nothing bounds them."""
        lost = ball(0)
        for j, slope in self._slopes(self.problem(), place).items():
            e = balls.largest([balls.positive_part(miss) for _, miss in self._misses(j, slope)])
            if e.is_zero():
                continue
            reach = self._reach(j, objective)
            if reach is None:
                return None
            lost += balls.up_to(e * reach)
        return lost

    def _reach(self, j: int, objective: Ball) -> Ball | None:
        """How far a weight can be from where it is fixed in fits as good as the state."""
        p, size = self.fit.penalty, abs(ball(self.fixed[j]))
        if np.isfinite(p.lower[j]) and np.isfinite(p.upper[j]):
            return ball(p.upper[j]) - ball(p.lower[j])
        if self._has_kink(j):
            return objective / self.fit.l1[j] + size
        return None if self.fit.l2[j].is_zero() else (2 * objective / self.fit.l2[j]).sqrt() + size

    def _remove_dependent(self, theta: list[Ball]) -> bool:
        """Move along a relation among free columns until one of them is no longer needed; whether there was one.

        Only columns without l2 matter: the others curve the objective themselves.
        """
        self.theta = [t.mid() for t in theta]
        flat = [j for j in self.free if self.fit.l2[j].is_zero()]
        # Columns that can be dropped at once come last, so that relations are about them.
        flat.sort(key=lambda j: not self._limits(j))
        kept = self.fit.independent(flat).tolist()
        first = int(self.fit.fit_intercept)
        dependent = [j for k, j in enumerate(flat) if k + first not in kept]
        if not dependent:
            return False
        j = dependent[-1]
        if not self._limits(j):
            self._drop(j, [flat[k - first] for k in kept if k >= first])
            return True
        return self._walk(j, [flat[k - first] for k in kept if k >= first])

    def _relation(self, j: int, others: list[int]) -> list[Ball] | None:
        """c with x_j = sum_k c_k x_k + c_0, c_0 last."""
        wide = balls.matrix(self.fit._columns(others))
        down = wide.transpose()
        column = balls.column(balls.balls(self.fit.rows.X[:, j].tolist()))
        coefficients = balls.solved(down * wide, down * column)
        return None if coefficients is None else [c.mid() for c in coefficients.entries()]

    def _drop(self, j: int, others: list[int]) -> None:
        """Leave out a column without penalty and bounds: others say the same."""
        c = self._relation(j, others)
        place = self.free.index(j)
        value = self.theta[place]
        if c is not None:
            for k, part in zip(others, c, strict=False):
                at = self.free.index(k)
                self.theta[at] = (self.theta[at] + part * value).mid()
            if self.fit.fit_intercept:
                self.theta[-1] = (self.theta[-1] + c[-1] * value).mid()
        self.free.pop(place)
        self.theta.pop(place)

    def _walk(self, j: int, others: list[int]) -> bool:
        """Along x_j - sum_k c_k x_k = 0, downhill in the penalty, until a weight meets 0 or a bound: it is fixed."""
        c = self._relation(j, others)
        if c is None:
            return False
        way = dict(zip(others, [-part for part in c], strict=False)) | {j: ball(1)}
        slope = sum((self.signs[k] * self.fit.l1[k] * v for k, v in way.items()), ball(0))
        if slope.mid() > 0:
            way = {k: -v for k, v in way.items()}
        share, stop = None, None
        for k, v in way.items():
            at = self.free.index(k)
            for limit in self._limits(k):
                length = ((limit - self.theta[at]) / v).mid() if v.mid() != 0 else ball(-1)
                if length >= 0 and (share is None or length < share):
                    share, stop = length, (at, float(limit.mid()))
        if stop is None or share is None:
            return False
        for k, v in way.items():
            at = self.free.index(k)
            self.theta[at] = (self.theta[at] + share * v).mid()
        if self.fit.fit_intercept:
            constant = -c[-1] if way[j].mid() > 0 else c[-1]
            self.theta[-1] = (self.theta[-1] + share * constant).mid()
        self._fix(*stop)
        return True
