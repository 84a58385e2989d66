"""An interior point method for machines of few rows or few columns: a linear system of that size per step.

With q_t = sign_t (f + b - target_t) of a variable and s_t - t_t = q_t, s and t above 0, the central path is

    a_t s_t = mu,   (C_t - a_t) t_t = mu,   w = sum_t sign_t a_t x_t,   sum_t sign_t a_t = 0 (with an intercept)

Each step is Newton's on these equations, with Mehrotra's choice of mu. Rows are seen by columns; of a kernel these are
the columns of a root of its matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.linalg as sl

from certifit.data.columns import Array
from certifit.models.svm.task import Machine

NEAR = (1e-3, 1e-5, 1e-7)  # of its bound: a multiplier nearer to it is tried to be on it
ROUNDING = 1e-14  # of the objective: products below it are no use


class Features(Protocol):
    """Rows by their columns."""

    @property
    def n_columns(self) -> int:
        """Number of columns."""

    @property
    def n_points(self) -> int:
        """Number of rows."""

    def scores(self, w: Array) -> Array:
        """x'w of the rows."""

    def sums(self, weights: Array, curvatures: Array | None = None) -> tuple[Array, Array]:
        """Sum of weight_i (x_i, 1), and of curvature_i (x_i, 1)(x_i, 1)'."""


@dataclass(frozen=True)
class Products:
    """Rows in as many columns as there are rows, with the products of a matrix. X: those columns and a column of 1."""

    X: Array

    @staticmethod
    def of(matrix: Array) -> Products:
        """Of a matrix that has no eigenvalue below 0 but by rounding."""
        values, vectors = np.linalg.eigh(matrix)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return Products(np.column_stack([root, np.ones(len(root))]))

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1]) - 1

    @property
    def n_points(self) -> int:
        """Number of rows."""
        return len(self.X)

    def scores(self, w: Array) -> Array:
        """x'w of the rows."""
        return np.asarray(self.X[:, :-1] @ w)

    def sums(self, weights: Array, curvatures: Array | None = None) -> tuple[Array, Array]:
        """Sum of weight_i (x_i, 1), and of curvature_i (x_i, 1)(x_i, 1)'."""
        system = np.zeros((0, 0)) if curvatures is None else (self.X.T * curvatures) @ self.X
        return np.asarray(self.X.T @ weights), np.asarray(system)


class CentralPath:
    """Multipliers a, slacks s and t, and weights (w, b) on their way to the optimum of a machine with the hinge."""

    def __init__(self, rows: Features, machine: Machine) -> None:
        self.rows, self.row, self.sign, self.bound = rows, machine.row, machine.sign, machine.bound
        # Targets far from 0, which an intercept takes up, are measured from their middle: multipliers are the same.
        middle = float(np.median(machine.target)) if machine.has_intercept else 0.0
        middle = middle if abs(middle) > machine.unit else 0.0
        self.level = machine.sign * (machine.target - middle)
        self.flag = 1.0 if machine.has_intercept else 0.0
        self.penalised = np.append(np.ones(rows.n_columns), 1.0 - self.flag)
        self.w = np.zeros(rows.n_columns + 1)
        q = -self.level / machine.unit
        self.s = machine.unit * (q + np.sqrt(q * q + 0.36)) / 2
        self.t = self.s - machine.unit * q
        self.a = self.bound * (self.t / (self.s + self.t))  # a bound of 1e200 times a slack of 1e150 is none

    def products(self, v: Array) -> Array:
        """sign_t (x_t, 1)'v."""
        return np.asarray(self.sign * (self.rows.scores(v[:-1])[self.row] + self.flag * v[-1]))

    def sums(self, u: Array, curvatures: Array | None = None) -> tuple[Array, Array]:
        """sum_t u_t sign_t (x_t, 1), and sum_t curvature_t (x_t, 1)(x_t, 1)'."""
        n = self.rows.n_points
        by_row = None if curvatures is None else np.bincount(self.row, curvatures, n)
        total, system = self.rows.sums(np.bincount(self.row, self.sign * u, n), by_row)
        total[-1] *= self.flag
        if curvatures is not None:
            system[-1, :] *= self.flag
            system[:, -1] *= self.flag
        return total, system

    @property
    def mu(self) -> float:
        """The mean product of a multiplier and its slack."""
        return float(self.a @ self.s + (self.bound - self.a) @ self.t) / (2 * len(self.a))

    def is_at_end(self, objective: float) -> bool:
        """Whether what is left of the products is rounding."""
        return self.mu * 2 * len(self.a) < ROUNDING * objective

    @np.errstate(all="ignore")  # what leaves float64 ends the steps
    def step(self) -> bool:
        """One step; False where the system cannot be solved any more."""
        a, s, t, room = self.a, self.s, self.t, self.bound - self.a
        left = self.products(self.w) - self.level - s + t
        free = 1.0 / (s / a + t / room)
        total, system = self.sums(a, free)
        missing = total - self.penalised * self.w
        system[np.diag_indices(len(system))] += self.penalised
        try:
            factor = sl.cho_factor(system)
        except (np.linalg.LinAlgError, ValueError):
            return False

        def solve(first: Array, second: Array) -> tuple[Array, Array, Array, Array]:
            right = first / a - second / room - left
            dw = sl.cho_solve(factor, self.sums(free * right)[0] + missing, check_finite=False)
            da = free * (right - self.products(dw))
            return da, (first - s * da) / a, (second + t * da) / room, dw

        da, ds, dt, _ = solve(-a * s, -room * t)
        k = self._longest(da, ds, dt)
        ahead = float((a + k * da) @ (s + k * ds) + (room - k * da) @ (t + k * dt)) / (2 * len(a))
        if not self.mu > 0:
            return False  # what is left of the gap underflows
        aim = (ahead / self.mu) ** 3 * self.mu
        da, ds, dt, dw = solve(aim - a * s - da * ds, aim - room * t + da * dt)
        if not (np.isfinite(da).all() and np.isfinite(ds).all() and np.isfinite(dt).all()):
            return False
        k = min(1.0, 0.995 * self._longest(da, ds, dt))
        self.a, self.s, self.t, self.w = a + k * da, s + k * ds, t + k * dt, self.w + k * dw
        return bool((self.a > 0).all() and (self.a < self.bound).all() and (self.s > 0).all() and (self.t > 0).all())

    def _longest(self, da: Array, ds: Array, dt: Array) -> float:
        """The longest step, at most 1, that keeps everything above 0."""
        shares = (-da / self.a, da / (self.bound - self.a), -ds / self.s, -dt / self.t)
        return 1.0 / max(1.0, *(float(share.max()) for share in shares))


def rounded(machine: Machine, a: Array, near: float) -> Array:
    """Multipliers that are on a bound where they are nearer to it than a share of it."""
    a = np.where(a < near * machine.bound, 0.0, a)
    return np.where(a > (1 - near) * machine.bound, machine.bound, a)
