"""Newton steps for a loss of scores on many sparse columns: each by coordinate descent on the quadratic model.

The columns lie in memory, so between two looks at all columns no pass over the rows is needed: the scores follow every
step, and a line search costs no more than the rows' losses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Array
from certifit.data.source import Block
from certifit.mathematics.penalties import Kinks
from certifit.minimise.steps import Steps
from certifit.models.glm.chord import ARMIJO, SHORTEST, SURE
from certifit.models.glm.task import GlmTask
from certifit.runtime import core, n_threads

INNER = 0.05  # share of the violation that coordinate descent leaves
MOST_SWEEPS = 1000
IDLE = 3  # steps that do not lower the violation: what is left is rounding


class SparseNewton:
    """A task's rows, some columns of them by column, and the scores at a point of those."""

    def __init__(self, task: GlmTask, columns: Any, rows: Block, point: Array) -> None:
        self.task, self.point = task, point
        X = sp.csc_array(columns, dtype=np.float64)
        scaled = X.data * np.repeat(task.scaling.scale, np.diff(X.indptr))
        self._X = sp.csc_array((scaled, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
        weight = np.ones(len(np.asarray(rows.y))) if rows.weight is None else rows.weight
        seen = weight > 0
        self._seen = None if seen.all() else seen
        self._y = np.asarray(rows.y)
        self._share = weight / weight.sum()
        self._z = np.asarray(self._X @ point[:-1]) + point[-1]
        if rows.offset is not None:
            self._z = self._z + rows.offset
        self._kinks = Kinks.of(task.penalty)
        l1 = self._kinks.l1[:-1]
        self._units = np.append(np.where(l1 > 0, l1, l1.max(initial=0.0) or 1.0), l1.max(initial=0.0) or 1.0)

    def descend(self, max_iter: int, steps: Steps, enough: float) -> None:
        """Steps until no slope is off by more than `enough` of its penalty."""
        least, idle = np.inf, 0
        while len(steps.rows) < max_iter and not steps.is_over:
            slopes, curvatures = self._derivatives()
            gradient = np.append(self._X.T @ slopes, slopes.sum() * self.task.fit_intercept)
            off = float((self._violations(gradient) / self._units).max())
            idle = idle + 1 if off >= 0.9 * least else 0
            least = min(least, off)
            if off <= enough or idle >= IDLE:
                return
            target = self._target(gradient, curvatures, max(INNER * off, enough / 4))
            size = float(np.linalg.norm(target - self.point))
            value = self._value(self.point, self._z)
            steps.add(value, off, step=size)
            if not self._step(target, gradient, value):
                return

    def _derivatives(self) -> tuple[Array, Array]:
        """Slopes and curvatures of the rows, times their shares."""
        found = []
        for f in (self.task.loss.slope, self.task.loss.curvature):
            each = f(self._y, self._z)
            found.append(self._share * (each if self._seen is None else np.where(self._seen, each, 0.0)))
        return found[0], found[1]

    def _violations(self, gradient: Array) -> Array:
        """How far the derivative of the objective is on the wrong side, entry by entry."""
        x, k = self.point, self._kinks
        g = gradient + self.task.l2 * x
        up = np.where(x < k.upper, -g - np.where(x >= 0, k.l1, -k.l1), 0.0)
        down = np.where(x > k.lower, g - np.where(x <= 0, k.l1, -k.l1), 0.0)
        return np.asarray(np.maximum(np.maximum(up, down), 0.0))

    def _target(self, gradient: Array, curvatures: Array, tol: float) -> Array:
        X, k, penalty = self._X, self._kinks, self.task.penalty
        weights, moved, _ = core.weighted_lasso_step(
            ("csc", X.data, X.indices, X.indptr, X.shape[0]),
            np.ascontiguousarray(curvatures),
            np.ascontiguousarray(gradient),
            np.ascontiguousarray(self.point[:-1]),
            np.ascontiguousarray(penalty.l1),
            np.ascontiguousarray(penalty.l2),
            np.ascontiguousarray(penalty.lower),
            np.ascontiguousarray(penalty.upper),
            np.ascontiguousarray(self._units[:-1]),
            self.task.fit_intercept,
            tol,
            MOST_SWEEPS,
            n_threads(),
        )
        return np.asarray(np.clip(np.append(weights, self.point[-1] + moved), k.lower, k.upper))

    def _value(self, point: Array, z: Array) -> float:
        """The objective."""
        with np.errstate(over="ignore", invalid="ignore"):
            each = self.task.loss.value(self._y, z)
            loss = float(self._share @ (each if self._seen is None else np.where(self._seen, each, 0.0)))
        return loss + self._kinks.size(point) + float(self.task.l2 @ point**2) / 2

    def _step(self, target: Array, gradient: Array, value: float) -> bool:
        """To the target, or so much of the way that the objective falls enough; False where none does."""
        step = target - self.point
        change = np.asarray(self._X @ step[:-1]) + step[-1]
        fall = self._kinks.fall(gradient + self.task.l2 * self.point, self.point, target)
        length = 1.0
        while length >= SHORTEST:
            trial, z = (
                (target, self._z + change) if length == 1.0 else (self.point + length * step, self._z + length * change)
            )
            if self._value(trial, z) <= value - ARMIJO * length * fall + SURE * abs(value):
                self.point, self._z = trial, z
                return True
            length /= 2
        return False
