"""A user's function as a problem: scalars, vectors or arrays of any shape in, derivatives given or by differences.

Derivatives of a function at a point, and a user's own derivatives checked against differences.

df/dx_j ~ (f(x + h e_j) - f(x - h e_j)) / (2 h),  h = cube root of the rounding times max(|x_j|, 1): about ten digits of
a well scaled function. Near the edge of a domain h is made smaller until both sides are inside.

Whether a function is convex on points: f((1 - t) x + t y) <= (1 - t) f(x) + t f(y). Points refute, never prove.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from certifit.data.columns import Array, Numbers
from certifit.minimise.problem import Problem

EPS = float(np.finfo(float).eps)
STEP = float(EPS ** (1 / 3))
ROUGH_STEP = float(EPS ** (1 / 4))  # relative step for differences of differences
SHRINKS = 12
MOST_CHECKED = 100  # entries of a long vector that are checked, evenly spread
ALLOWED = 1e-5  # relative error of a derivative that differences may cause

IMAGINARY = 1e-100  # the step of f(x + ih): nothing is subtracted, so it may be as small as it likes
TRUSTED = 1e-6  # relative: a complex step that differs more from differences is of a function that is not analytic

Vector = Callable[[Array], Array]


@dataclass(frozen=True)
class Derivatives:
    """What `derivatives` found. value: f(x). gradient, hessian: of a number. jacobian: of a vector f, a row per entry.

    method: "complex step", to the last digits of f, or "central differences", about ten digits.
    """

    value: Numbers
    gradient: Numbers | None
    hessian: Array | None
    jacobian: Array | None
    method: str


def derivatives(f: Callable[..., ArrayLike], x: ArrayLike) -> Derivatives:
    """First and second derivatives of f at x: a number, a vector or an array of any shape.

    f may give a number (then gradient and Hessian) or an array (then its Jacobian, of the flattened x and f). Where f
    takes complex numbers and is analytic, the imaginary part of f(x + ih) / h is the derivative to rounding; a function
    that is not is seen by its differences, and those are used.

    >>> import certifit as cf
    >>> found = cf.derivatives(lambda x: x[0] ** 2 * x[1] + np.exp(x[1]), [3.0, 0.0])
    >>> found.gradient, found.method
    (array([ 0., 10.]), 'complex step')
    >>> found.hessian.round(6)
    array([[0., 6.],
           [6., 1.]])
    """
    point = np.asarray(x, dtype=np.float64)
    if point.size == 0 or not np.isfinite(point).all():
        raise ValueError(f"x must be finite numbers, at least one. Got {x!r}.")
    shaped = partial(_shaped, shape=point.shape)
    flat = point.ravel()
    value = np.asarray(called(f, shaped(flat)), dtype=np.float64)
    if not np.isfinite(value).all():
        raise ValueError(f"f is not finite at x: {value}.")

    def numbers(v: Array) -> Array:
        return np.asarray(called(f, shaped(v)), dtype=np.float64).ravel()

    def exact(v: Array) -> Array:
        return np.column_stack([_complex_step(f, shaped, v, j) for j in range(len(v))])

    by_differences = difference_jacobian(numbers, flat)
    jacobian, method = by_differences, "central differences"
    if _agrees(exact, flat, by_differences):
        jacobian, method = exact(flat), "complex step"
    if value.ndim:
        return Derivatives(value, None, None, jacobian, method)
    slope = (lambda v: exact(v)[0]) if method == "complex step" else (lambda v: difference_jacobian(numbers, v)[0])
    hessian = difference_jacobian(slope, flat, STEP if method == "complex step" else ROUGH_STEP)
    gradient = float(jacobian[0, 0]) if not point.ndim else jacobian[0].reshape(point.shape)
    return Derivatives(float(value), gradient, (hessian + hessian.T) / 2, None, method)


def _shaped(v: Array, shape: tuple[int, ...]) -> Numbers:
    """A flat vector as the user's function sees it; a number where x is one."""
    return v[0].item() if not shape else v.reshape(shape).copy()


def _complex_step(f: Callable[..., ArrayLike], shaped: Callable[[Array], Numbers], v: Array, j: int) -> Array:
    """Im f(v + ih e_j) / h."""
    moved = v.astype(complex)
    moved[j] += 1j * IMAGINARY
    with np.errstate(all="ignore"):
        return np.asarray(np.asarray(f(shaped(moved)), dtype=complex).imag.ravel() / IMAGINARY)


def _agrees(exact: Vector, x: Array, by_differences: Array) -> bool:
    """Whether f takes complex numbers, and its complex steps are its derivatives to what differences tell."""
    try:
        derivative = exact(x)
    except (TypeError, ValueError, ArithmeticError):  # math.exp and the like take no complex numbers
        return False
    size = np.maximum(np.abs(by_differences), np.max(np.abs(by_differences), initial=0.0) * STEP) + STEP
    return derivative.shape == by_differences.shape and bool(
        (np.abs(derivative - by_differences) <= TRUSTED * size).all()
    )


def difference_gradient(f: Callable[[Array], float], x: Array) -> Array:
    """The gradient of f at x, an array of any shape, by central differences."""
    flat = np.asarray(x, dtype=np.float64)
    columns = difference_jacobian(lambda v: np.array([float(f(v.reshape(flat.shape)))]), flat.ravel())
    return np.asarray(columns[0].reshape(flat.shape))


def difference_jacobian(f: Vector, x: Array, step: float = STEP) -> Array:
    """The derivatives of a vector function of a vector, a row per entry of f, by central differences."""
    return np.column_stack([difference(f, x, j, step) for j in range(len(x))])


def difference(f: Vector, x: Array, j: int, step: float) -> Array:
    """The derivative of f by x_j; NaN where f is not finite on both sides however near."""
    h = step * max(abs(float(x[j])), 1.0)
    for _ in range(SHRINKS):
        ahead, behind = x.copy(), x.copy()
        ahead[j] += h
        behind[j] -= h
        upper, lower = f(ahead), f(behind)
        if np.isfinite(upper).all() and np.isfinite(lower).all():
            return np.asarray((upper - lower) / (ahead[j] - behind[j]))
        h /= 8
    return np.full_like(np.asarray(upper, dtype=np.float64), np.nan)


def check_jacobian(
    f: Vector, jacobian: Array, x: Array, names: tuple[str, str, str], step: float = STEP, noise: float = 0.0
) -> None:
    """Refuse derivatives (a row per entry of f) that are not those of f at x, naming the worst entry.

    names: of the derivative, of an entry of it with {i} and {j}, and of f. noise: of the values of f, over rounding.
    """
    noise = noise + 100 * EPS * float(np.max(np.abs(f(x)), initial=0.0))
    worst: tuple[float, int, int, float] = (1.0, 0, 0, 0.0)
    for j in np.unique(np.linspace(0, len(x) - 1, min(len(x), MOST_CHECKED)).astype(int)):
        near, wide = difference(f, x, j, step), difference(f, x, j, 4 * step)
        h = step * max(abs(float(x[j])), 1.0)
        # the error of the difference: how it changes with h, and the noise of f over h
        doubt = np.abs(near - wide) + noise / h
        off = np.abs(near - jacobian[:, j]) / (ALLOWED * np.maximum(np.abs(near), np.abs(jacobian[:, j])) + 10 * doubt)
        i = int(np.argmax(np.where(np.isfinite(off), off, 0.0)))
        if np.isfinite(off[i]) and off[i] > worst[0]:
            worst = (float(off[i]), i, int(j), float(near[i]))
    if worst[0] > 1:
        _, i, j, by_difference = worst
        what, entry, of = names
        raise ValueError(
            f"{what} is not the derivative of {of}: {entry.format(i=i, j=j)} is {jacobian[i, j]:.8g}, and differences "
            f"of {of} give {by_difference:.8g}. Correct it, or leave it out (then differences are used). "
            "check=False skips this."
        )


def called(f: Callable[..., ArrayLike], x: Numbers) -> ArrayLike:
    """f(x), with the errors that arithmetic raises outside a domain as NaN, so that a solver turns back there."""
    with np.errstate(all="ignore"):
        try:
            return f(x)
        except ArithmeticError:
            return np.nan
        except ValueError as error:
            if str(error).startswith(OUTSIDE):
                return np.nan
            raise


OUTSIDE = ("math domain error", "expected a positive input", "expected a nonnegative input")  # of the math module


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


SHARES = (0.5, 0.25, 0.75, 0.1, 0.9)  # t
ROUNDINGS = 64  # units of the last place of the largest of the values that a difference may be off by
MOST_POINTS = 500


@dataclass(frozen=True)
class Convexity:
    """What `is_convex` found; `print` shows it in words, and it counts as False where it was refuted.

    x, y, t: two points and the share of the second at which f lies above the chord, by `excess`; None where no pair
    does. n_pairs: tried.
    """

    n_pairs: int
    x: Array | None = None
    y: Array | None = None
    t: float = np.nan
    excess: float = 0.0

    def __bool__(self) -> bool:
        return self.x is None

    def __str__(self) -> str:
        if self.x is None:
            return (
                f"Not refuted: no chord of {self.n_pairs:,} pairs of points lies below the function. That is no proof."
            )
        ends = (np.asarray(self.x), np.asarray(self.y))
        shown = [np.array2string(point, precision=6, threshold=8, separator=", ") for point in ends]
        return (
            f"NOT convex: between x = {shown[0]} and y = {shown[1]}, at (1 - t) x + t y with t = {self.t:g}, the "
            f"function is {self.excess:.6g} above its chord."
        )


def is_convex(f: User, points: ArrayLike) -> Convexity:
    """Refute that f is convex, by the pair of points whose chord lies furthest below f; or say that none does.

    f gives a number, or infinity outside its domain, which must then be convex. points: a row per point; a plain list
    of numbers is points of a function of one number.

    >>> import certifit as cf
    >>> print(cf.is_convex(np.cos, [0.0, 1.0, 2.0]))
    NOT convex: between x = 0. and y = 2., at (1 - t) x + t y with t = 0.5, the function is 0.248376 above its chord.
    >>> bool(cf.is_convex(np.exp, [0.0, 1.0, 2.0]))
    True
    """
    rows = as_numbers(points, "points")
    if rows.ndim == 0 or not 2 <= len(rows) <= MOST_POINTS or not np.isfinite(rows).all():
        raise ValueError(f"points must be 2 to {MOST_POINTS} rows of finite numbers. Got the shape {rows.shape}.")
    values = [_value(f, row) for row in rows]
    worst = Convexity(len(rows) * (len(rows) - 1) // 2)
    for (x, at_x), (y, at_y) in combinations(zip(rows, values, strict=True), 2):
        if np.isinf(at_x) or np.isinf(at_y):  # a chord at infinity lies above everything
            continue
        for t in SHARES:
            between, chord = _value(f, (1 - t) * x + t * y), (1 - t) * at_x + t * at_y
            allowed = ROUNDINGS * EPS * max(abs(at_x), abs(at_y), abs(between) if np.isfinite(between) else 0.0)
            if between - chord > max(allowed, worst.excess):
                worst = Convexity(worst.n_pairs, x, y, t, float(between - chord))
    return worst


def _value(f: User, x: Array) -> float:
    """f at a point, a float where points are numbers; NaN and what arithmetic refuses are outside: infinite."""
    out = as_numbers(called(f, x.item() if x.ndim == 0 else x.copy()), "f")
    if out.size != 1:
        raise ValueError(f"f must give one number. Got the shape {out.shape}.")
    value = float(out.ravel()[0])
    return np.inf if np.isnan(value) else value
