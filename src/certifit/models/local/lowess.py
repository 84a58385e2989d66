"""LOWESS: a robust local line through points of one variable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.models.learner import is_number, is_whole
from certifit.runtime import core, n_threads


@dataclass(frozen=True)
class Lowess:
    """x in ascending order, the smoothed values there, the residuals, and the robust weights of the last fit."""

    x: Array
    fitted: Array
    residuals: Array
    robust_weights: Array


def lowess(x: Array, y: Array, frac: float = 2 / 3, iterations: int = 3) -> Lowess:
    """Local lines at every x, of the nearest frac * n rows, tricube weights; then again with less weight on outliers.

    w_i(x) = r_i (1 - (|x_i - x| / h)^3)^3,  h the distance of the farthest of the nearest rows
    r_i = (1 - (e_i / (6 median |e|))^2)^2,  0 where |e_i| is 6 medians or more,  from the residuals e of the fit before

    frac : share of the rows that count at each x, above 0 and at most 1
    iterations : how many times outliers are weighed down, 0 is least squares

    The sums over many rows follow from moments of x in a tree of blocks: O(n log n) per fit, and nothing is
    interpolated between points.

    >>> import numpy as np
    >>> import certifit as cf
    >>> x = np.linspace(0, 6, 200)
    >>> y = np.sin(x)
    >>> y[100] = 50.0
    >>> bool(np.abs(cf.lowess(x, y, frac=0.1).fitted - np.sin(x)).max() < 0.05)
    True
    """
    x, y = (np.asarray(values, dtype=np.float64) for values in (x, y))
    if x.ndim != 1 or y.ndim != 1 or len(x) != len(y) or len(x) == 0:
        raise ValueError(f"x and y must be one column each, of equal length >= 1. Got shapes {x.shape} and {y.shape}.")
    for name, values in (("x", x), ("y", y)):
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ValueError(f"{name} must be finite. Row {row} is not. Leave such rows out.")
    if not is_number(frac) or not 0 < frac <= 1:
        raise ValueError(f"frac must be a number above 0 and at most 1. Got {frac!r}.")
    if not is_whole(iterations) or iterations < 0:
        raise ValueError(f"iterations must be a whole number >= 0. Got {iterations!r}.")
    order = np.argsort(x, kind="stable")
    x, y = np.ascontiguousarray(x[order]), np.ascontiguousarray(y[order])
    scales = [float(np.ldexp(1.0, -int(np.frexp(np.abs(values).max())[1]))) for values in (x, y)]
    k = max(1, int(frac * len(x) + 1e-10))
    fitted, robust = core.lowess(x * scales[0], y * scales[1], k, int(iterations), n_threads())
    fitted = fitted / scales[1]
    return Lowess(x, fitted, y - fitted, robust)
