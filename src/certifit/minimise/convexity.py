"""Whether a function is convex on points: f((1 - t) x + t y) <= (1 - t) f(x) + t f(y). Points refute, never prove."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from certifit.data.columns import Array
from certifit.minimise.derivatives import EPS, called
from certifit.minimise.function import User, as_numbers

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
