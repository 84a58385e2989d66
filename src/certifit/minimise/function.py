"""A user's function as a problem: scalars, vectors or arrays of any shape in, derivatives given or by differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from certifit.data.columns import Array, Numbers
from certifit.minimise.derivatives import EPS, ROUGH_STEP, STEP, called, check_jacobian, difference_jacobian
from certifit.minimise.problem import Problem

User = Callable[..., ArrayLike]  # of x as the user writes it: a number, a vector, an array
Functions = User | Sequence[User]


class UserFunction(Problem):
    """f with its derivatives, as a function of a flat vector.

    The user's functions see x in the shape of x0: a float where x0 is a number.
    """

    def __init__(self, f: User, x0: ArrayLike, gradient: User | None, hessian: User | None) -> None:
        self.start = checked_start(x0)
        self.shape, self.size = self.start.shape, self.start.size
        self.f, self.own_gradient, self.own_hessian = f, gradient, hessian
        self.evaluations = 0

    def shaped(self, x: Array) -> Numbers:
        """A flat vector as the user's functions see it."""
        return float(x[0]) if not self.shape else x.reshape(self.shape).copy()

    def value(self, x: Array) -> float:
        """f(x); NaN outside its domain."""
        self.evaluations += 1
        out = as_numbers(called(self.f, self.shaped(x)), "f")
        if out.size != 1:
            raise ValueError(f"f must give one number. Got shape {out.shape}.")
        return float(out.ravel()[0])

    def gradient(self, x: Array) -> Array:
        """The user's gradient, else central differences."""
        if self.own_gradient is None:
            return np.asarray(difference_jacobian(self._values, x)[0])
        return self._sized(called(self.own_gradient, self.shaped(x)), (self.size,), "gradient")

    def value_gradient(self, x: Array) -> tuple[float, Array]:
        """Both at x."""
        value = self.value(x)
        return value, self.gradient(x) if np.isfinite(value) else np.full(self.size, np.nan)

    def hessian(self, x: Array) -> Array:
        """The user's Hessian."""
        if self.own_hessian is None:
            raise NotImplementedError
        return self._sized(called(self.own_hessian, self.shaped(x)), (self.size, self.size), "hessian")

    def measured_hessian(self, x: Array) -> Array:
        """The user's Hessian, else differences of gradients, made symmetric."""
        if self.own_hessian is not None:
            return self.hessian(x)
        H = difference_jacobian(self.gradient, x, self._second_step())
        return np.asarray((H + H.T) / 2)

    def check(self) -> None:
        """Refuse derivatives that are not those of f at the start."""
        if not np.isfinite(self.value(self.start.ravel())):
            return  # the solver says so
        x = self.start.ravel()
        if self.own_gradient is not None:
            check_jacobian(self._values, self.gradient(x)[None, :], x, ("gradient", "entry {j}", "f"))
        if self.own_hessian is not None:
            of = "f's gradient" if self.own_gradient is None else "gradient"
            noise = 0.0 if self.own_gradient is not None else EPS ** (2 / 3) * abs(self.value(x))
            names = ("hessian", "entry [{i}, {j}]", of)
            check_jacobian(self.gradient, self.hessian(x), x, names, self._second_step(), noise)

    def _values(self, x: Array) -> Array:
        return np.array([self.value(x)])

    def _second_step(self) -> float:
        return ROUGH_STEP if self.own_gradient is None else STEP

    def _sized(self, values: ArrayLike | None, shape: tuple[int, ...], name: str) -> Array:
        out = as_numbers(values, name)
        if out.size == 1 and np.isnan(out).all():
            return np.full(shape, np.nan)
        if out.size != np.prod(shape):
            legal = self.shape if name == "gradient" else shape
            raise ValueError(f"{name} must give an array of shape {legal}. Got {out.shape}.")
        return out.reshape(shape)


def as_numbers(values: ArrayLike | None, name: str) -> Array:
    """What a user's function gave, as floats."""
    if values is None:
        raise TypeError(f"{name} must give numbers. Got None: is there a return?")
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must give numbers. Got {values!r}.") from None


def checked_start(x0: ArrayLike) -> Array:
    """The start as an array of floats, or what is wrong with it."""
    start = np.array(x0)
    if start.dtype.kind not in "biuf":
        raise TypeError(f"The point x must be a number or an array of numbers. Got {x0!r}.")
    start = start.astype(np.float64)
    if start.size == 0:
        raise ValueError("The point x must have at least one number. Got an empty array.")
    if not np.isfinite(start).all():
        raise ValueError(f"The point x must be finite. Entry {int(np.argmin(np.isfinite(start.ravel())))} is not.")
    return start
