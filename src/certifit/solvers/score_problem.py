"""A generalised linear model as a smooth function of a vector, for the solvers that take any.

x is (weights, intercept where there is one), in the user's units: a step is then the course's, w -= step gradient.
Or in units in which every column has curvature 1 at the start, where conjugate gradients and quasi-Newton methods go
faster.
"""

from __future__ import annotations

import numpy as np

from certifit.data.columns import Array
from certifit.solvers.problem import Problem
from certifit.statistics.curvature import Curvature
from certifit.tasks.generalised import GeneralisedLinear

STALE = 1e-3  # an estimate of the gap that fell by this factor asks for a new Hessian


class ScoreProblem(Problem):
    """The smooth part of a task. strengths: of the squares of the weights, in the user's units."""

    def __init__(self, task: GeneralisedLinear, in_user_units: bool) -> None:
        self.task = task
        self.source, self.loss, self.fit_intercept = task.source, task.loss, task.fit_intercept
        self.size = task.size if task.fit_intercept else task.size - 1
        s = task.strengths
        self.strengths = s.alpha * (1 - s.l1_ratio) * s.factors
        self._transform = self._user_units() if in_user_units else self._unit_curvature()
        self._inverse = np.linalg.inv(self._transform)
        self._curvature: Curvature | None = None
        self._last_gap, self._least = np.inf, np.inf
        self._n_flat = self.size  # the fewest flat directions of a Hessian so far

    def start(self) -> Array:
        """No weights; the intercept that the mean of the target has."""
        return self.from_point(self.task.start())

    def to_point(self, x: Array) -> Array:
        """The point of the task."""
        whole = np.asarray(self._transform @ x)
        return whole if self.fit_intercept else np.append(whole, 0.0)

    def from_point(self, point: Array) -> Array:
        """Inverse of `to_point`."""
        return np.asarray(self._inverse @ point[: self.size])

    def value_gradient(self, x: Array) -> tuple[float, Array]:
        """The objective and its gradient: one pass."""
        at = self.task.evaluate(self.to_point(x))
        return at.value, np.asarray(self._transform.T @ at.gradient[: self.size])

    def hessian(self, x: Array) -> Array:
        """Its Hessian: one pass."""
        at = self.task.evaluate(self.to_point(x), hessian=True)
        assert at.hessian is not None
        return np.asarray(self._transform.T @ at.hessian[: self.size, : self.size] @ self._transform)

    def gap(self, x: Array, value: float, gradient: Array) -> float | None:
        """Half the Newton decrement, from a Hessian that is not far behind: an estimate.

        Infinite where more directions are flat than at the start: nothing is known of what is left along them.
        """
        if self._curvature is None:
            self._refresh(x, gradient)
        assert self._curvature is not None
        found = self._half_decrement(gradient)
        if found < STALE * self._last_gap or np.isinf(found):
            self._refresh(x, gradient)
            found = self._half_decrement(gradient)
        self._least = min(self._least, value)
        return max(found, value - self._least)  # far up, where rows are saturated, a decrement tells little

    def _refresh(self, x: Array, gradient: Array) -> None:
        self._curvature = Curvature(self.hessian(x))
        self._n_flat = min(self._n_flat, self._curvature.n_flat)
        self._last_gap = self._half_decrement(gradient)

    def _half_decrement(self, gradient: Array) -> float:
        assert self._curvature is not None
        if self._curvature.n_flat > self._n_flat:
            return np.inf
        return max(float(gradient @ self._curvature.solve(gradient)), 0.0) / 2

    def _user_units(self) -> Array:
        """point = T x: weights over scale, and the intercept of shifted columns."""
        scale, shift = self.task.scaling.scale, self.task.scaling.shift
        matrix = np.diag(np.append(1 / scale, 1.0))
        matrix[-1, :-1] = shift / scale
        return np.ascontiguousarray(matrix[: self.size, : self.size])

    def _unit_curvature(self) -> Array:
        at = self.task.evaluate(self.task.start(), hessian=True)
        assert at.hessian is not None
        diagonal = np.diagonal(at.hessian)[: self.size]
        return np.diag(1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)))
