"""Least absolute values with an L2 penalty, by interior points: where Huber's loss goes as its joint scale falls to 0.

minimise over v   delta sum_i w_i |t_i - a_i'v| + sum_j pull_j v_j^2 / 2,   a = (1, x - shift) or x

A residual is p - q with p, q >= 0; its multiplier u lies in [-delta, delta]. At the solution
pull v = sum_i w_i u_i a_i, p (delta - u) = 0 and q (delta + u) = 0; a step of Newton's method on these equations, with
mu in place of 0, needs one factor of a matrix of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from certifit.data.columns import Array, Columns
from certifit.models.huber.task import HuberTask
from certifit.models.least_squares.normal_equations import Weights
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
