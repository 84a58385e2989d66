"""Huber regression by Newton's method on the rows inside the band |r| <= delta s.

The objective is piecewise quadratic for a fixed scale, so a full step from the right band ends at the minimum. Steps
are taken in the units of the least-squares factor, where the matrix of any band has eigenvalues in [0, 1]; a line
search over a grid of steps makes every one a descent.

Least absolute values with an L2 penalty, by interior points: where Huber's loss goes as its joint scale falls to 0.

minimise over v   delta sum_i w_i |t_i - a_i'v| + sum_j pull_j v_j^2 / 2,   a = (1, x - shift) or x

A residual is p - q with p, q >= 0; its multiplier u lies in [-delta, delta]. At the solution
pull v = sum_i w_i u_i a_i, p (delta - u) = 0 and q (delta + u) = 0; a step of Newton's method on these equations, with
mu in place of 0, needs one factor of a matrix of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from certifit.data.columns import Array, Columns
from certifit.data.source import Block
from certifit.minimise.problem import Run
from certifit.minimise.steps import Steps, unreported
from certifit.models.huber.task import Direction, HuberSums, HuberTask, HuberWeights, Point, Rows
from certifit.models.huber.wide import WideHuberTask
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.least_squares.solver import smallest_norm
from certifit.models.least_squares.solver import solve as least_squares
from certifit.runtime import one_blas_thread
from certifit.statistics.gram import counted

MAX_STEPS = 100
SMALL_GAP = 1e-13  # relative: below it the rows with residual 0 can be distinguished from the others
SHORT = 0.995  # share of the way to the nearest bound that a step takes
LEAST_PULL = 1e-30  # least pull, relative to the largest
FELT = 1e-200  # a largest pull on scaled columns below this is none: rows divided by it would leave float64
MOST_ROWS = 2000  # most rows: a factor of the matrix of their products is made some thirty times
MOST_ENTRIES = 40_000_000


@dataclass(frozen=True)
class Corner:
    """A solution, and the mean square of its multipliers: below 1 a joint scale is best at 0."""

    state: Weights
    mean_square: float


@dataclass(frozen=True)
class _Point:
    weights: Array
    intercept: float
    p: Array
    q: Array
    u: Array

    def moved(self, way: _Point, t: float) -> _Point:
        parts = (getattr(self, name) + t * getattr(way, name) for name in ("weights", "intercept", "p", "q", "u"))
        return _Point(*parts)

    def is_inside(self, delta: float) -> bool:
        """Whether every bound is kept by more than rounding."""
        room = np.concatenate([self.p, self.q, delta - np.abs(self.u)])
        return bool((room > 0).all() and np.isfinite(self.weights).all())

    def furthest(self, way: _Point, delta: float) -> float:
        """The largest step, at most 1, that stays inside all bounds."""
        room = np.concatenate([self.p, self.q, delta - self.u, delta + self.u])
        fall = -np.concatenate([way.p, way.q, -way.u, way.u])
        return float(np.min(room[fall > 0] / fall[fall > 0], initial=1.0 / SHORT)) * SHORT


class _Problem:
    def __init__(self, task: HuberTask) -> None:
        block, s = counted(task.source.gather()), task.gram.scaling
        X = block.X.toarray() if isinstance(block.X, Columns) or sp.issparse(block.X) else np.asarray(block.X)
        self.x = X * s.scale - s.shift
        self.target = np.asarray(block.y) * s.y_scale - s.y_shift
        self.weight = np.full(len(X), s.weight_scale) if block.weight is None else block.weight * s.weight_scale
        self.delta, self.has_intercept = task.loss.delta, task.fit_intercept
        pull = task.pull(1.0)
        self.pull = np.maximum(pull, LEAST_PULL * pull.max(initial=0.0))
        self.roots = np.sqrt(self.weight)
        self.kernel = (self.x / self.pull) @ self.x.T * self.roots[:, None] * self.roots

    def start(self, weights: Array, intercept: float) -> _Point:
        r = self.target - self.x @ weights - intercept
        more = np.abs(r).mean() + np.finfo(float).tiny
        return _Point(weights, intercept, np.maximum(r, 0) + more, np.maximum(-r, 0) + more, np.zeros(len(r)))

    def gap(self, at: _Point) -> float:
        """sum_i w_i of the products that must vanish."""
        return float(self.weight @ (at.p * (self.delta - at.u) + at.q * (self.delta + at.u)))

    def objective(self, at: _Point) -> float:
        r = self.target - self.x @ at.weights - at.intercept
        return float(self.delta * (self.weight @ np.abs(r)) + self.pull @ np.square(at.weights) / 2)

    def step(self, at: _Point, factor: tuple[Array, bool], mu_p: Array, mu_q: Array) -> _Point:
        """Newton's step towards products mu_p and mu_q."""
        under, over = self.delta - at.u, self.delta + at.u
        c_p, c_q = (mu_p - at.p * under) / under, (mu_q - at.q * over) / over
        g = self.target - self.x @ at.weights - at.intercept - at.p + at.q - c_p + c_q
        pulled = self.x.T @ (self.weight * at.u) - self.pull * at.weights
        right = self.roots * (g - self.x @ (pulled / self.pull))
        solution = scipy.linalg.cho_solve(factor, right)
        level = 0.0
        if self.has_intercept:
            ones = scipy.linalg.cho_solve(factor, self.roots)
            level = float((self.roots @ solution + self.weight @ at.u) / (self.roots @ ones))
            solution = solution - level * ones
        u = solution / self.roots
        weights = (pulled + self.x.T @ (self.weight * u)) / self.pull
        return _Point(weights, level, c_p + at.p / under * u, c_q - at.q / over * u, u)

    def factor(self, at: _Point) -> tuple[Array, bool]:
        h = at.p / (self.delta - at.u) + at.q / (self.delta + at.u)
        matrix = self.kernel + np.diag(h)
        matrix[np.diag_indices_from(matrix)] *= 1 + 2.0**-50
        factor: tuple[Array, bool] = scipy.linalg.cho_factor(matrix, lower=True, check_finite=False)
        return factor


def can_solve(task: HuberTask) -> bool:
    """Whether there is a penalty to speak of, and the matrix of products of rows may be held in memory."""
    n, d = task.gram.n_rows, task.gram.n_columns
    return n <= MOST_ROWS and n * d <= MOST_ENTRIES and bool(task.pull(1.0).max(initial=0.0) > FELT)


def solve_absolute(task: HuberTask, start: Weights) -> Corner:
    """The solution from a start, of a task that `can_solve`."""
    problem = _Problem(task)
    solution = task.to_solution(start)
    offset = int(task.fit_intercept)
    at = problem.start(solution[offset:], float(solution[0]) if offset else 0.0)
    total = 2 * float(problem.weight.sum())
    for _ in range(MAX_STEPS):
        gap = problem.gap(at)
        if gap <= SMALL_GAP * problem.objective(at):
            break
        try:
            factor, none = problem.factor(at), np.zeros(len(at.u))
        except np.linalg.LinAlgError:
            break  # at the end of float64: the Newton steps that follow are in twofold precision
        guess = problem.step(at, factor, none, none)
        t = at.furthest(guess, problem.delta)
        mu = gap / total * (problem.gap(at.moved(guess, t)) / gap) ** 3
        way = problem.step(at, factor, mu + guess.p * guess.u, mu - guess.q * guess.u)
        new = at.moved(way, at.furthest(way, problem.delta))
        if not new.is_inside(problem.delta):
            break  # a row is on its bound to rounding
        at = new
    whole = np.concatenate([[at.intercept] * offset, at.weights])
    mean_square = float(problem.weight @ np.square(at.u) / problem.weight.sum())
    return Corner(task.from_solution(whole), mean_square)


MAD_ROUNDS = 130
MAD_TURNS = 50  # most alternations of scale and fit before the scale is bracketed
MAD_TOL = 1e-14  # relative change of the scale at which it counts as settled
NEAR = 0.01  # relative change of the scale up to which secants are trusted
STEPS = 2.0 ** np.arange(6, -31, -1)  # step lengths that a line search tries
GOOD_STEP = 0.5  # a full step that halves the slope is taken without a search
NOISE = 1e-30  # a relative decrement below this is rounding
PATIENCE = ((1e-20, 0), (1e-15, 4))  # decrements that may be rounding, and steps without a smaller one
MOST_STUCK = 30
EXACT = 2.0**-164  # times the smallest band: of a fit without residuals, far below a rounding of the target
MOST_FALLS = 3  # steps cut short because the scale would fall too far
FALLS = 60  # most reductions of a scale between two joint steps
JOINT_TURNS = 10  # most alternations of joint steps and reductions: more only follow roundings
CLOSE = 1e-9  # relative distance to a scale that is known to be too small
SHRINK = 0.25  # a scale falls to no less than this share of itself in one step
FURTHEST = 8.0  # a fixed scale this much below the residuals' is approached from above


@dataclass(frozen=True)
class Line:
    """Values and slopes of the objective, times W, at several steps along a direction."""

    values: Array
    slopes: Array

    def __add__(self, other: Line) -> Line:
        return Line(self.values + other.values, self.slopes + other.slopes)


@one_blas_thread
def solve(task: HuberTask, max_iter: int) -> Run[HuberWeights]:
    """The minimiser; of all that predict the same, the one of smallest norm."""
    if isinstance(task, WideHuberTask):
        return _solve_rows(task, max_iter)
    with unreported():
        first = least_squares(task).state
    at = task.residual_at(first)
    spread = max(float(np.sqrt(at.squares / task.gram.sum_weight)), task.smallest_scale)
    trace = Trace(task)
    if task.is_joint:
        state, scale = _jointly(task, first, spread, max_iter, trace)
        scale = _least_scale(task, state, scale)
    elif task.rule == "mad":
        state, scale = _with_median_scale(task, first, max_iter, trace)
    else:
        scale = float(task.rule) * task.gram.scaling.y_scale
        state = _approached(task, first, spread, scale, max_iter, trace)
    if len(task.factor.dependent):
        state = smallest_norm(task, state)
    return Run(task.located(state, scale), trace.steps.rows, trace.steps.reason)


def _solve_rows(task: WideHuberTask, max_iter: int) -> Run[HuberWeights]:
    """Of fewer rows than columns: by the rotated rows, or without a penalty the weights that meet every row."""
    if task.strength > 0:
        run = solve(task.rotated.task, max_iter)
        return Run(task.from_rotated(run.state), run.history, run.reason)
    met = least_squares(task.dual)
    if task.is_joint:
        scale = _least_scale(task, met.state, task.smallest_band)
    elif task.rule == "mad":
        scale = task.median_scale(met.state)
    else:
        scale = float(task.rule) * task.gram.scaling.y_scale
    return Run(task.located(met.state, scale), met.history, met.reason)


class Trace:
    """One row per iteration, in the user's units; what is not known there is infinite or 0."""

    def __init__(self, task: HuberTask) -> None:
        self.steps = Steps(first=1)
        self._task = task

    @property
    def is_over(self) -> bool:
        """Whether the time is up, or a callback asked to stop."""
        return self.steps.is_over

    def add(self, objective: float, gap: float, step: float, scale: float) -> None:
        """A row; objective and gap are of the scaled objective over the scale."""
        y_scale = self._task.gram.scaling.y_scale
        with np.errstate(over="ignore", under="ignore"):
            unit = np.float64(1.0) / y_scale if self._task.is_joint else np.float64(scale) / y_scale / y_scale
            # The unit of squares of 1e163 is infinite, and 0 of it is 0.
            value, excess = (float(amount * unit) if amount > 0 else 0.0 for amount in (objective, gap))
            self.steps.add(value, excess, step_size=float(step), step=float(step))


def _with_median_scale(task: HuberTask, state: Weights, max_iter: int, trace: Trace) -> tuple[Weights, float]:
    """Scale and fit in turn, from least squares, until the scale does not change; the last fit is at the last scale.

    While the same rows are in the band and at the median, the median of the next fit is linear in the scale: a secant
    then ends the search.
    """
    scale, previous = task.median_scale(state), (np.inf, np.inf)
    lowest = task.smallest_scale / 2  # no median is below the smallest scale, which Gram sums know to ten digits
    low, high = lowest, np.inf
    off = 0.0
    for k in range(MAD_ROUNDS):
        state, *_ = _newton(task, state, scale, max_iter, trace, free=False)
        off = task.median_scale(state) - scale
        if abs(off) <= MAD_TOL * scale or trace.is_over:
            break
        if k == MAD_TURNS or not low <= scale <= high:  # there may be several such scales: one is between these
            low, high = lowest, np.inf
        low, high = (scale, high) if off > 0 else (low, scale)
        slope = (off - previous[1]) / (scale - previous[0]) if scale != previous[0] else np.inf
        step = -off / slope if np.isfinite(slope) and slope < 0 else off
        previous, scale = (scale, off), scale + float(step if abs(step) <= NEAR * scale else off)
        if k >= MAD_TURNS and (k % 2 or not low < scale < high) and high < np.inf:
            scale = float(np.sqrt(low) * np.sqrt(high))  # a cycle, or a crawl: the median is between these
    # The fit changes with the scale by as much, and its excess by the square of that: the scale is the last to move.
    return state, task.median_scale(state) if abs(off) <= NEAR * previous[0] else previous[0]


def _approached(task: HuberTask, state: Weights, spread: float, scale: float, max_iter: int, trace: Trace) -> Weights:
    """The fit at a fixed scale. Far below the residuals' it is near least absolute values: reached over larger ones."""
    # A delta below 1 makes the band as narrow as a smaller scale does.
    wide = min(task.loss.delta, 1.0)
    stage = spread / FURTHEST / wide
    while stage > FURTHEST * scale and stage * wide > task.smallest_scale and not trace.is_over:
        state, *_ = _newton(task, state, stage, max_iter, trace, free=False)
        stage /= FURTHEST
    return _newton(task, state, scale, max_iter, trace, free=False)[0]


def _jointly(task: HuberTask, state: Weights, scale: float, max_iter: int, trace: Trace) -> tuple[Weights, float]:
    """Newton in weights and scale; where that would take the scale to 0, fits at smaller and smaller scales.

    The objective's minimum over the weights is convex in the scale, so the sign of its slope there tells the side.
    """
    lowest = task.smallest_band
    for _ in range(min(max_iter, JOINT_TURNS)):
        state, scale, is_done = _newton(task, state, scale, max_iter, trace, free=True)
        if is_done or trace.is_over:
            break
        if can_solve(task) and lowest <= task.smallest_band:
            corner = solve_absolute(task, state)
            if corner.mean_square < 1:
                return _newton(task, corner.state, lowest, max_iter, trace, free=False)[0], lowest
        for _ in range(FALLS):
            state, *_ = _newton(task, state, scale, max_iter, trace, free=False)
            here = task.sums_at(_point(task, state, scale), with_near=False)
            if trace.is_over or here.slopes.squares >= task.gram.sum_weight:
                lowest = max(lowest, scale)
                break
            if scale <= lowest * (1 + CLOSE):
                last = _newton(task, state, scale, max_iter, trace, free=True)
                return last[:2] if last[2] else (state, scale)
            scale = _smaller(scale, lowest, task.smallest_band)
    return state, scale


def _least_scale(task: HuberTask, state: Weights, scale: float) -> float:
    """The better of a scale that fell as far as bands go, and one below all rounding, as of an exact fit."""
    if not task.is_at_zero(scale):
        return scale
    choices = [_point(task, state, s) for s in (scale, EXACT * task.smallest_band)]
    return min(choices, key=lambda at: task.objective(at, task.sums_at(at, with_near=False), True)).scale


def _smaller(scale: float, lowest: float, smallest: float) -> float:
    """The next scale down: a share of it, or between it and one known to be too small."""
    return max(SHRINK * scale, smallest) if lowest <= smallest else max(float(np.sqrt(scale * lowest)), SHRINK * scale)


def _newton(
    task: HuberTask, state: Weights, scale: float, max_iter: int, trace: Trace, free: bool
) -> tuple[Weights, float, bool]:
    """Newton steps until the decrement is rounding: the best state; the first, and False, where the scale vanishes."""
    best = first = (state, scale)
    least, damping = np.inf, 0.0
    stuck = falls = 0
    for _ in range(max_iter):
        if trace.is_over:
            return *(best if least < np.inf else first), True
        at = _point(task, state, scale)
        sums = task.sums_at(at)
        objective = task.objective(at, sums, task.is_joint)
        way = task.newton_step(at, sums, damping, free)
        falls += int(free and -way.scale > (1 - SHRINK) * scale)
        if falls > MOST_FALLS:
            return *first, False
        relative = way.decrement / max(task.gram.sum_weight * objective, np.finfo(float).tiny)
        if relative < least:
            best, least, stuck = (state, scale), relative, 0
        else:
            stuck += 1
        if relative <= NOISE or stuck > _patience(least):
            trace.add(objective, way.decrement / (2 * task.gram.sum_weight), 0.0, scale)
            break
        t = _searched(task, at, way, sums, free)
        trace.add(objective, way.decrement / (2 * task.gram.sum_weight), t, scale)
        damping = 0.1 * damping if t >= GOOD_STEP else max(1e-6, 10 * damping)
        damping = damping if damping >= 1e-8 else 0.0
        state = task.from_solution(task.to_solution(state), t * way.step[_own(task)])
        scale = scale + t * way.scale if free else scale
    else:
        return state, scale, True  # out of steps, each of which was a descent
    return *best, True


def _point(task: HuberTask, state: Weights, scale: float) -> Point:
    return Point(*task.to_scaled(state), scale)


def _patience(least: float) -> int:
    """Most steps without a smaller decrement: few near the rounding floor of the state."""
    return next((steps for bound, steps in PATIENCE if least <= bound), MOST_STUCK)


def _own(task: HuberTask) -> slice[int, None, None]:
    """The system's unknowns among (intercept, weights)."""
    return slice(1 - int(task.fit_intercept), None)


def _searched(task: HuberTask, at: Point, way: Direction, sums: HuberSums, free: bool) -> float:
    """How far to go: all the way where that halves the slope, else the best of a grid. Slopes tell more than values."""
    now = task.gram.sum_weight * task.objective(at, sums, free)
    room, fall = (1 - SHRINK) * at.scale, max(-way.scale, 0.0)
    furthest = room / fall if fall * STEPS[0] > room else STEPS[0]
    if furthest >= 1:
        full_step = _line(task, at, way, np.ones(1), free)
        # Near the end values differ by rounding alone.
        lower = full_step.values[0] <= now * (1 + 1e-14)
        if lower and abs(full_step.slopes[0]) <= GOOD_STEP * way.decrement:
            return 1.0
    steps = np.minimum(STEPS, furthest)
    line = _line(task, at, way, steps, free)
    down = (line.slopes <= 0) | (line.values < now)
    if not down.any():
        return 0.0  # the way is longer than the grid: a more damped one is shorter
    return float(steps[np.argmin(np.where(down, np.abs(line.slopes), np.inf))])


def _line(task: HuberTask, at: Point, way: Direction, steps: Array, free: bool) -> Line:
    moved = partial(_line_of_stretch, rows=task.rows(), at=at, way=way, steps=steps)
    line = task.source.reduce(moved)
    pull, change, total = task.pull(at.scale), way.step[1:], task.gram.sum_weight
    weights = at.weights + steps[:, None] * change
    with np.errstate(over="ignore"):  # next to no pull makes long ways; of those beyond float64 the value is infinite
        values = line.values + (weights * (pull * weights)).sum(axis=1) / 2
    slopes = line.slopes + weights @ (pull * change)
    if free:
        values = values + total * (at.scale + steps * way.scale) / 2
        slopes = slopes + total * way.scale / 2
    return Line(values, slopes)


def _line_of_stretch(stretch: Block, rows: Rows, at: Point, way: Direction, steps: Array) -> Line:
    loss, weight = rows.loss, rows.weights(stretch)
    r, change = rows.residuals(stretch, at), rows.products(stretch, way.step)
    values, slopes = np.zeros(len(steps)), np.zeros(len(steps))
    for k, t in enumerate(steps):
        scale = at.scale + t * way.scale
        moved = r - t * change
        u = loss.slope(moved, scale)
        values[k] = weight @ loss.value(moved, scale)
        slopes[k] = -(weight * u) @ change - way.scale * (weight @ np.square(u)) / 2
    return Line(values, slopes)
