"""A constrained minimum by multipliers: the augmented Lagrangian (Hestenes and Powell 1969, Rockafellar 1973).

minimise f(x)  subject to  g(x) <= 0,  h(x) = 0

    x      <-  argmin over x of  f + b'h + rho/2 |h|^2 + sum_i [max(0, a_i + rho g_i)^2 - a_i^2] / (2 rho)
    b      <-  b + rho h(x),     a  <-  max(0, a + rho g(x)),     rho grows while constraints do not shrink

At the end theta_P, the largest Lagrangian over the multipliers at x, is f(x); theta_D, the smallest over x at the
multipliers, is a lower bound of every feasible value. `check_kkt` judges the end: no word of this solver is taken.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from certifit.data.columns import Array, Numbers
from certifit.minimise.function import Functions, User
from certifit.minimise.kkt import KKT, At, Constrained, check_kkt
from certifit.minimise.newton import BFGS, LBFGS
from certifit.minimise.problem import Problem, Stop, norm
from certifit.minimise.steps import Steps, unreported

MOST_ROUNDS = 100
MOST_STEPS = 2000  # of the smooth solver in one round
MOST_DENSE = 1000  # unknowns up to which BFGS keeps its matrix
GROWTH = 10.0
SHRINK = 0.25  # share to which a round must bring the constraints, or rho grows
LARGEST = 1e12  # of rho relative to its first: beyond it steps follow roundings
ENOUGH = 1e-3  # share of tol to which rounds go on


@dataclass(frozen=True)
class ConstrainedMinimum:
    """What `minimize` found under constraints; `print` shows it in words.

    theta_P = f(x), the largest Lagrangian over the multipliers at a feasible x. theta_D: the smallest over x at the
    multipliers, None where it is not known; never above theta_P of a feasible x. kkt: the judgement of `check_kkt`.
    history_: a row per round of multipliers; infeasibility: the largest violation of a constraint there.
    """

    x: Numbers
    value: float
    inequality_multipliers: Array
    equality_multipliers: Array
    theta_P: float
    theta_D: float | None
    kkt: KKT
    converged: bool
    reason: str
    history_: list[dict[str, float]] = field(repr=False)

    def __str__(self) -> str:
        shown = np.array2string(np.asarray(self.x), precision=8, threshold=20, separator=", ")
        return f"value {self.value:.10g} at x = {shown}. {self.reason}\n{self.kkt}"


@dataclass
class Multipliers:
    """Of the inequalities a >= 0, of the equalities b, and the weight of the squares."""

    a: Array
    b: Array
    rho: float

    def value(self, at: At) -> float:
        """The augmented Lagrangian."""
        shifted = np.maximum(self.a + self.rho * at.g, 0.0)
        squares = float(shifted @ shifted - self.a @ self.a) / (2 * self.rho)
        return at.value + float(self.b @ at.h) + self.rho / 2 * float(at.h @ at.h) + squares

    def moved(self, at: At) -> tuple[Array, Array]:
        """The multipliers of the next round, which make this point stationary for the Lagrangian itself."""
        return np.maximum(self.a + self.rho * at.g, 0.0), self.b + self.rho * at.h


class _Augmented(Problem):
    """The augmented Lagrangian as a smooth function."""

    def __init__(self, problem: Constrained, multipliers: Multipliers) -> None:
        self.problem, self.multipliers, self.size = problem, multipliers, len(problem.x)

    def value_gradient(self, x: Array) -> tuple[float, Array]:
        """At a point; outside the domain of a function the value is not finite."""
        at = self.problem.at(x)
        a, b = self.multipliers.moved(at)
        gradient = at.gradient + a @ at.g_jacobian + b @ at.h_jacobian
        return self.multipliers.value(at), np.asarray(gradient)

    def hessian(self, x: Array) -> Array:
        """Not given: the solvers here need none."""
        raise NotImplementedError


def minimise_constrained(
    f: User,
    x0: ArrayLike,
    inequality: Functions | None,
    equality: Functions | None,
    derivatives: tuple[User | None, User | None, User | None],
    tol: float,
    stop: Stop,
) -> ConstrainedMinimum:
    """Rounds of multipliers from x0 until the conditions of Karush, Kuhn and Tucker hold within tol."""
    problem = Constrained(f, x0, inequality, equality, *derivatives)
    x, at = problem.x, problem.at(problem.x)
    multipliers = Multipliers(np.zeros(len(at.g)), np.zeros(len(at.h)), _first_weight(at))
    steps, first, last = Steps(), multipliers.rho, np.inf
    largest = _violation(at, multipliers.a * 0)
    for _ in range(min(stop.max_iter, MOST_ROUNDS)):
        inner = Stop(0.0, max_iter=MOST_STEPS, max_time=stop.max_time)
        with unreported():
            run = (BFGS() if len(x) <= MOST_DENSE else LBFGS()).minimise(_Augmented(problem, multipliers), x, inner)
        moved, x, at = norm(run.x - x), run.x, problem.at(run.x)
        largest = _violation(at, multipliers.a / multipliers.rho)
        multipliers.a, multipliers.b = multipliers.moved(at)
        slope = at.gradient + multipliers.a @ at.g_jacobian + multipliers.b @ at.h_jacobian
        worst = float(np.max(np.concatenate([at.g, np.abs(at.h), [0.0]])))
        size = norm(slope)
        row = steps.add(at.value, gradient_norm=size, step_size=multipliers.rho, step=moved, infeasibility=worst)
        is_flat = size <= 0.1 * tol * max(norm(at.gradient), 1.0)  # the judge measures with differences
        if (largest <= ENOUGH * tol * problem.scale and is_flat) or steps.is_over or multipliers.rho > LARGEST * first:
            break
        if stop.callback is not None and stop.callback(row, x) is True:
            break
        if stop.max_time is not None and row["seconds"] >= stop.max_time:
            break
        if largest > SHRINK * last:
            multipliers.rho *= GROWTH
        last = largest
    return _judged(problem, x, multipliers, (f, inequality, equality), derivatives, tol, steps)


def _first_weight(at: At) -> float:
    """The weight at which the squares of the violations are worth as much as the value."""
    squares = float(np.sum(np.square(at.h)) + np.sum(np.square(np.maximum(at.g, 0.0))))
    return float(np.clip(2 * max(abs(at.value), 1.0) / squares, 1.0, 1e4)) if squares > 0 else 1.0


def _violation(at: At, slack: Array) -> float:
    """max(|h|, |max(g, -a / rho)|): 0 where constraints hold and multipliers of slack ones are 0."""
    parts = [np.abs(at.h), np.abs(np.maximum(at.g, -slack)), np.zeros(1)]
    return float(np.max(np.concatenate(parts)))


def _judged(
    problem: Constrained,
    x: Array,
    multipliers: Multipliers,
    functions: tuple[User, Functions | None, Functions | None],
    derivatives: tuple[User | None, User | None, User | None],
    tol: float,
    steps: Steps,
) -> ConstrainedMinimum:
    f, inequality, equality = functions
    gradient, of_inequality, of_equality = derivatives
    kkt = check_kkt(
        f,
        problem.shaped(x),
        inequality,
        equality,
        (multipliers.a, multipliers.b),
        gradient=gradient,
        inequality_jacobian=of_inequality,
        equality_jacobian=of_equality,
        tol=tol,
    )
    if kkt.holds:
        reason = f"Converged: the conditions of Karush, Kuhn and Tucker hold within {tol:g}."
    else:
        broken = ", ".join(str(condition.name) for condition in kkt.conditions if not condition.holds)
        reason = f"NOT converged after {len(steps.rows)} rounds of multipliers: {broken} violated."
        reason += f" {steps.reason}" if steps.reason else ""
        reason += " The constraints may contradict each other, or tol may be below what differences can tell."
        warnings.warn(reason, ConvergenceWarning, stacklevel=4)
    return ConstrainedMinimum(
        problem.shaped(x),
        kkt.primal,
        multipliers.a,
        multipliers.b,
        kkt.primal,
        kkt.dual,
        kkt,
        kkt.holds,
        reason,
        steps.rows,
    )
