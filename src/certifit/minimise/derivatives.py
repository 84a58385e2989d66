"""Derivatives by central differences, and a user's own derivatives checked against them.

df/dx_j ~ (f(x + h e_j) - f(x - h e_j)) / (2 h),  h = cube root of the rounding times max(|x_j|, 1): about ten digits of
a well scaled function. Near the edge of a domain h is made smaller until both sides are inside.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from certifit.data.columns import Array, Numbers

EPS = float(np.finfo(float).eps)
STEP = float(EPS ** (1 / 3))
ROUGH_STEP = float(EPS ** (1 / 4))  # for differences of differences
SHRINKS = 12
MOST_CHECKED = 100  # entries of a long vector that are checked, evenly spread
ALLOWED = 1e-5  # relative error of a derivative that may still be that of the difference

Vector = Callable[[Array], Array]


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
