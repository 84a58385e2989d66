"""Derivatives of a function at a point, and a user's own derivatives checked against differences.

df/dx_j ~ (f(x + h e_j) - f(x - h e_j)) / (2 h),  h = cube root of the rounding times max(|x_j|, 1): about ten digits of
a well scaled function. Near the edge of a domain h is made smaller until both sides are inside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from certifit.data.columns import Array, Numbers

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
        found = exact(x)
    except (TypeError, ValueError, ArithmeticError):  # math.exp and the like take no complex numbers
        return False
    size = np.maximum(np.abs(by_differences), np.max(np.abs(by_differences), initial=0.0) * STEP) + STEP
    return found.shape == by_differences.shape and bool((np.abs(found - by_differences) <= TRUSTED * size).all())


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
