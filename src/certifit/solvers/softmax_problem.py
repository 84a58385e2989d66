"""Softmax regression as a smooth function of a vector, for the solvers that take any."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.solvers.gradient_descent import GradientDescent
from certifit.solvers.problem import Problem, Stop
from certifit.solvers.run import Run
from certifit.solvers.table import solver_of
from certifit.statistics.curvature import Curvature
from certifit.tasks.softmax import SoftmaxRegression, SoftmaxWeights

MOST_ENTRIES = 1500  # of a point for which a Hessian is taken


class SoftmaxProblem(Problem):
    """The objective in the user's units, or in those of the task; x is (columns + 1) x classes as one vector."""

    def __init__(self, task: SoftmaxRegression, in_user_units: bool) -> None:
        self.task, self.size = task, task.size
        scale, shift = task.scaling.scale, task.scaling.shift
        self._least, self._n_flat = np.inf, self.size  # the least value so far, the fewest flat directions
        self._transform = np.eye(len(scale) + 1)
        if in_user_units:
            self._transform[:-1, :-1] = np.diag(1 / scale)
            self._transform[-1, :-1] = shift / scale

    def start(self) -> Array:
        """No weights; the intercepts of the classes' shares."""
        return np.asarray(np.linalg.solve(self._transform, self.task.start().reshape(self.task.shape)).ravel())

    def to_point(self, x: Array) -> Array:
        """The point of the task."""
        return np.asarray((self._transform @ x.reshape(self.task.shape)).ravel())

    def value_gradient(self, x: Array) -> tuple[float, Array]:
        """The objective and its gradient: one pass."""
        at = self.task.evaluate(self.to_point(x))
        return at.value, np.asarray((self._transform.T @ at.gradient.reshape(self.task.shape)).ravel())

    def hessian(self, x: Array) -> Array:
        """Its Hessian, where it is not too large."""
        if self.size > MOST_ENTRIES:
            raise ValueError(
                f"A Hessian of {self.size} x {self.size} entries is too large. Use solver='auto', 'lbfgs' or "
                "'conjugate-gradient'."
            )
        whole = np.kron(self._transform, np.eye(self.task.n_classes))
        return np.asarray(whole.T @ self.task.hessian(self.to_point(x)) @ whole)

    def gap(self, x: Array, value: float, gradient: Array) -> float | None:
        """Half the Newton decrement where a Hessian is cheap: an estimate."""
        if self.size > MOST_ENTRIES:
            return None
        curvature = Curvature(self.hessian(x))
        self._least, self._n_flat = min(self._least, value), min(self._n_flat, curvature.n_flat)
        if curvature.n_flat > self._n_flat:
            return np.inf  # saturated: nothing is known of what is left along directions that are flat only here
        return max(float(gradient @ curvature.solve(gradient)) / 2, value - self._least)


def minimise(task: SoftmaxRegression, solver: Any, tol: float, max_iter: int, step_tol: float) -> Run[SoftmaxWeights]:
    """The minimiser by a solver of any function."""
    chosen = solver_of(solver)
    problem = SoftmaxProblem(task, isinstance(chosen, GradientDescent))
    found = chosen.minimise(problem, problem.start(), Stop(tol, step_tol, max_iter))
    return Run(task.to_state(problem.to_point(found.x)), found.trace, "" if found.converged else found.reason)
