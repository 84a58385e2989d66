"""A generalised linear model with a penalty of the user's own, alpha C(w): its solver.

C with a prox: Newton's method on the loss; the quadratic model plus alpha C(w) is minimised by accelerated proximal
steps, with the intercept solved for. C with a gradient: a solver of smooth functions, L-BFGS by default.

A vector is (weights in the user's units, the intercept of shifted columns).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.mathematics.penalties import Penalty
from certifit.minimise.minimum import check_needs, solver_of
from certifit.minimise.problem import Problem, Run, Solver, Stop
from certifit.minimise.steps import Steps
from certifit.models.glm.task import GlmTask
from certifit.models.least_squares.normal_equations import Weights

MOST_COLUMNS = 3000  # that a Hessian is made of
MOST_INNER = 20_000  # proximal steps for one quadratic model
SHORT = 1e-14  # of the weights: a proximal step that is rounding
FLOOR = 1e-15  # of the objective: a fall that is rounding
SHORTENED = 40  # times that a step is halved


@dataclass(frozen=True)
class UserPenalty:
    """alpha C(w)."""

    penalty: Penalty
    alpha: float

    def value(self, w: Array) -> float:
        """alpha C(w)."""
        return self.alpha * self.penalty.value(w)


def user_penalty(task: GlmTask, penalty: Penalty, alpha: float) -> UserPenalty:
    """A penalty checked for the columns of a task, or a refusal."""
    if not task.loss.has_curvature:
        raise ValueError(f"{penalty.name} needs a loss with a curvature. Give {task.loss.name} one, curvature=....")
    if task.size > MOST_COLUMNS:
        raise ValueError(f"{penalty.name} is for at most {MOST_COLUMNS} columns, of which a Hessian is made.")
    return UserPenalty(penalty.checked(task.source.n_features), float(alpha))


class UserPenaltyProblem(Problem):
    """The objective as a function of a vector; smooth where the penalty has a gradient."""

    def __init__(self, task: GlmTask) -> None:
        assert task.user_penalty is not None
        self.task, self.penalty, self.size = task, task.user_penalty, task.size - int(not task.fit_intercept)
        self.scale = task.scaling.scale

    def to_point(self, x: Array) -> Array:
        """The point of the task."""
        d = len(self.scale)
        return np.append(x[:d] / self.scale, x[d] if self.task.fit_intercept else 0.0)

    def from_point(self, point: Array) -> Array:
        """Inverse of `to_point`."""
        weights = point[:-1] * self.scale
        return np.append(weights, point[-1]) if self.task.fit_intercept else weights

    def weights(self, x: Array) -> Array:
        """Without the intercept."""
        return np.ascontiguousarray(x[: len(self.scale)])

    def loss(self, x: Array) -> tuple[float, Array]:
        """The mean loss and its gradient: one pass."""
        at = self.task.evaluate(self.to_point(x))
        return at.value, self._in_units(at.gradient)

    def curvature(self, x: Array) -> tuple[float, Array, Array]:
        """The mean loss, its gradient and its Hessian: one pass."""
        at = self.task.evaluate(self.to_point(x), hessian=True)
        assert at.hessian is not None
        half = np.array([self._in_units(row) for row in at.hessian])
        return at.value, self._in_units(at.gradient), np.array([self._in_units(row) for row in half.T])

    def value(self, x: Array) -> float:
        """Loss and penalty."""
        return self.loss(x)[0] + self.penalty.value(self.weights(x))

    def value_gradient(self, x: Array) -> tuple[float, Array]:
        """Loss and penalty, of a penalty with a gradient."""
        value, gradient = self.loss(x)
        w = self.weights(x)
        gradient[: len(w)] += self.penalty.alpha * self.penalty.penalty.gradient(w)
        return value + self.penalty.value(w), gradient

    def hessian(self, x: Array) -> Array:
        """Not known: the penalty has none."""
        raise NotImplementedError

    def _in_units(self, gradient: Array) -> Array:
        weights = gradient[:-1] / self.scale
        return np.append(weights, gradient[-1]) if self.task.fit_intercept else weights


def solve(task: GlmTask, solver: str | Solver, stop: Stop, start: Weights | None) -> Run[Weights]:
    """The minimiser."""
    problem = UserPenaltyProblem(task)
    begin = problem.from_point(task.start() if start is None else task.to_point(start))
    is_auto = isinstance(solver, str) and solver == "auto"
    if problem.penalty.penalty.has_prox and is_auto:
        return _by_prox(problem, begin, stop)
    chosen = solver_of("lbfgs" if is_auto else solver)
    check_needs(chosen, {"gradient"}, "a penalty of your own")
    minimum = chosen.minimise(problem, begin, Stop(min(stop.tol, 1e-12), stop.step_tol, stop.max_iter))
    state = task.to_state(problem.to_point(minimum.x))
    return Run(state, minimum.trace, "" if minimum.converged else minimum.reason)


def _by_prox(problem: UserPenaltyProblem, x: Array, stop: Stop) -> Run[Weights]:
    """Newton's method whose quadratic models have the penalty."""
    steps, value = Steps(), problem.value(x)
    steps.add(value)
    reason = f"{stop.max_iter} iterations (max_iter) were not enough."
    for _ in range(stop.max_iter):
        _, gradient, matrix = problem.curvature(x)
        target = minimiser(problem.penalty, gradient, matrix, x, len(problem.scale))
        fall = _fall(problem, gradient, matrix, x, target)
        if not fall > FLOOR * abs(value):  # beyond what the objective shows: the last step, which squares the error
            x, reason = target, ""
            break
        share, there = 1.0, problem.value(target)
        for _ in range(SHORTENED):
            if there <= value - 1e-4 * share * fall:
                break
            share /= 2
            there = problem.value(x + share * (target - x))
        if not there < value:
            reason = ""
            break
        moved = share * (target - x)
        x, value = x + moved, there
        steps.add(value, max(fall, 0.0), step=float(np.linalg.norm(moved)), step_size=share)
        if steps.is_over:
            break
        if 0 < float(np.linalg.norm(moved)) <= stop.step_tol:
            reason = ""
            break
    state = problem.task.to_state(problem.to_point(x))
    return Run(state, steps.rows, steps.reason or reason)


def _fall(problem: UserPenaltyProblem, gradient: Array, matrix: Array, x: Array, target: Array) -> float:
    """By how much the quadratic model with the penalty falls on the way to a target."""
    step = target - x
    penalties = problem.penalty.value(problem.weights(x)) - problem.penalty.value(problem.weights(target))
    return penalties - float(gradient @ step + step @ (matrix @ step) / 2)


def minimiser(user: UserPenalty, gradient: Array, matrix: Array, x: Array, d: int) -> Array:
    """Where g's + s'Hs/2 + alpha C(w + s_w) is least: accelerated proximal steps, begun anew where they turn back."""
    S, g, h = matrix[:d, :d], gradient[:d], matrix[:d, d:]
    has_intercept = len(x) > d
    if has_intercept:  # the intercept that suits the weights: s_b = -(g_b + h's) / H_bb
        corner = float(matrix[d, d]) or 1.0
        S, g = S - h @ h.T / corner, g - h[:, 0] * gradient[d] / corner
    t = 1.0 / max(float(np.linalg.eigvalsh(S)[-1]), np.finfo(float).tiny) if d else 1.0
    begin = x[:d]
    w = ahead = begin.copy()
    momentum = 1.0
    for _ in range(MOST_INNER if d else 0):
        new = user.penalty.prox(ahead - t * (g + S @ (ahead - begin)), user.alpha * t)
        moved = new - w
        if float(np.linalg.norm(new - ahead)) <= SHORT * float(np.linalg.norm(new) + np.linalg.norm(begin)):
            w = new
            break
        if float((ahead - new) @ moved) > 0:
            momentum, ahead = 1.0, w.copy()
            if not moved.any():
                break
            new = user.penalty.prox(w - t * (g + S @ (w - begin)), user.alpha * t)
            moved = new - w
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        w, ahead, momentum = new, new + (momentum - 1) / following * moved, following
    if not has_intercept:
        return w
    return np.append(w, x[d] - (gradient[d] + float(h[:, 0] @ (w - begin))) / corner)
