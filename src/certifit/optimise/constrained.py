"""A user's constrained problem: values and derivatives of the objective and of both kinds of constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from certifit.data.columns import Array, Numbers
from certifit.optimise.derivatives import called, check_jacobian, difference_jacobian
from certifit.optimise.function import User, as_numbers, checked_start
from certifit.solvers.problem import norm

Functions = User | Sequence[User]


@dataclass(frozen=True)
class At:
    """Values and derivatives at a point."""

    value: float
    gradient: Array
    g: Array
    g_jacobian: Array
    h: Array
    h_jacobian: Array


class Constrained:
    """minimise f(x) subject to g(x) <= 0 and h(x) = 0, around a point x."""

    def __init__(
        self,
        objective: User,
        x: ArrayLike,
        inequality: Functions | None,
        equality: Functions | None,
        gradient: User | None,
        inequality_jacobian: User | None,
        equality_jacobian: User | None,
    ) -> None:
        start = checked_start(x)
        self.shape, self.x = start.shape, start.ravel()
        self.scale = max(norm(self.x), 1.0)
        self.parts = [
            _Part("objective", objective, gradient, self),
            _Part("inequality", inequality, inequality_jacobian, self),
            _Part("equality", equality, equality_jacobian, self),
        ]
        for part in self.parts:
            part.check(self.x)

    @property
    def has_derivatives(self) -> bool:
        """Whether all derivatives are the user's own."""
        return all(part.own is not None for part in self.parts if part.functions)

    def shaped(self, x: Array) -> Numbers:
        """A flat vector as the user's functions see it."""
        return float(x[0]) if not self.shape else x.reshape(self.shape).copy()

    def at(self, x: Array) -> At:
        """Everything at a point."""
        values = [part.values(x) for part in self.parts]
        slopes = [part.jacobian(x) for part in self.parts]
        return At(float(values[0][0]), slopes[0][0], values[1], slopes[1], values[2], slopes[2])

    def lagrangian(self, x: Array, a: Array, b: Array) -> float:
        """f + a'g + b'h."""
        f, g, h = (part.values(x) for part in self.parts)
        return float(f[0] + a @ g + b @ h)

    def lagrangian_gradient(self, x: Array, a: Array, b: Array) -> Array:
        """Its gradient by x."""
        f, g, h = (part.jacobian(x) for part in self.parts)
        return np.asarray(f[0] + a @ g + b @ h)


class _Part:
    """The objective or one kind of constraints, as a vector function of a flat vector."""

    def __init__(self, name: str, functions: Functions | None, jacobian: User | None, problem: Constrained) -> None:
        if jacobian is not None and functions is None:
            raise ValueError(f"A Jacobian of {name} constraints was given, but no {name} constraints.")
        self.name, self.problem, self.own = name, problem, jacobian
        given = [] if functions is None else [functions] if callable(functions) else list(functions)
        self.functions = given
        self.sizes: list[int] = []
        self.sizes = [len(part) for part in self._parts(problem.x)]

    def values(self, x: Array) -> Array:
        return np.concatenate([np.zeros(0), *self._parts(x)])

    def _parts(self, x: Array) -> list[Array]:
        """What each function gives; NaN in the size it has at the point where it is not defined."""
        shaped = self.problem.shaped(x)
        parts = [as_numbers(called(f, shaped), self.name).ravel() for f in self.functions]
        for k, size in enumerate(self.sizes):
            if len(parts[k]) == 1 and np.isnan(parts[k]).all():
                parts[k] = np.full(size, np.nan)
        return parts

    def jacobian(self, x: Array) -> Array:
        count = len(self.values(x))
        if not count:
            return np.zeros((0, len(x)))
        if self.own is None:
            return difference_jacobian(self.values, x)
        out = as_numbers(called(self.own, self.problem.shaped(x)), f"The Jacobian of {self.name}")
        if out.size != count * len(x):
            raise ValueError(f"The derivatives of {self.name} must be {count} x {len(x)} numbers. Got {out.shape}.")
        return out.reshape(count, len(x))

    def check(self, x: Array) -> None:
        values = self.values(x)
        if not np.isfinite(values).all():
            raise ValueError(f"{self.name} is not finite at x: {values}.")
        if self.name == "objective" and len(values) != 1:
            raise ValueError(f"objective must give one number. Got {len(values)}.")
        if self.own is not None:
            check_jacobian(
                self.values, self.jacobian(x), x, (f"The Jacobian of {self.name}", "entry [{i}, {j}]", self.name)
            )
