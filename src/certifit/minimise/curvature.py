"""The largest and the smallest curvature at a point: the ends of the Hessian's spectrum, from products with it alone.

Lanczos: the Hessian seen in the space of v, H v, H^2 v, ... is a small tridiagonal matrix. Its end eigenvalues reach
those of the Hessian long before power iteration does, and are exact when the space is full.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from itertools import combinations

import numpy as np
from scipy.linalg import eigh_tridiagonal

from certifit.data.columns import Array
from certifit.minimise.problem import Problem, difference_product, norm

MOST_PRODUCTS = 300
EPS = float(np.finfo(float).eps)
SHOWN = 10  # printed digits of the largest stable step
ACCURACY = 1e-10  # relative to the largest curvature in size


def end_curvatures(problem: Problem, x: Array) -> tuple[float, float]:
    """(smallest, largest) eigenvalue of the Hessian at x; NaN where a product is not finite."""
    ends = _ends(problem, x)
    return ends.smallest, ends.largest


def largest_stable_step(problem: Problem, x: Array) -> float:
    """2 / largest curvature at x: gradient descent with a longer step moves away from a minimum there; inf if flat.

    Never above it: the curvature is taken at the upper end of what its error allows, the step cut to SHOWN digits.
    """
    ends = _ends(problem, x)
    if np.isnan(ends.largest):
        return np.nan
    if ends.largest <= 0:
        return np.inf
    size = max(abs(ends.smallest), ends.largest)
    doubt = ends.off + _product_error(problem, x, ends.direction) + 4 * problem.size * EPS * size
    return rounded_down(2 / (ends.largest + doubt), SHOWN) if np.isfinite(doubt) else np.nan


def rounded_down(value: float, digits: int) -> float:
    """The largest number of so many decimal digits that is not above a value > 0."""
    exact = Decimal(value)
    unit = Decimal(1).scaleb(exact.adjusted() + 1 - digits)
    return float(exact.quantize(unit, rounding=ROUND_DOWN))


@dataclass(frozen=True)
class _Ends:
    """Of the spectrum; off: how far `largest` is from an eigenvalue at most, direction: its vector."""

    smallest: float
    largest: float
    off: float
    direction: Array


def _product_error(problem: Problem, x: Array, v: Array) -> float:
    """How uncertain the Hessian times v is: by differences as much as products with other steps differ; else 0."""
    try:
        problem.hessian(x)
    except NotImplementedError:
        products = [difference_product(problem, x, v, times) for times in (1.0, 2.0, 4.0, 8.0)]
        inside = [product for product in products if np.isfinite(product).all()]
        return 4 * max((norm(a - b) for a, b in combinations(inside, 2)), default=np.nan)
    return 0.0


def _ends(problem: Problem, x: Array) -> _Ends:
    d = problem.size
    v = np.random.default_rng(0).normal(size=d)
    basis = [v / norm(v)]
    diagonal: list[float] = []
    beside: list[float] = []
    for k in range(min(d, MOST_PRODUCTS)):
        w = problem.product(x, basis[k])
        if not np.isfinite(w).all():
            return _Ends(np.nan, np.nan, np.nan, basis[0])
        diagonal.append(float(w @ basis[k]))
        for _ in range(2):  # twice: once leaves rounding that grows
            span = np.array(basis)
            w = w - span.T @ (span @ w)
        values, vectors = eigh_tridiagonal(diagonal, beside)
        left, size = norm(w), float(np.max(np.abs(values)))
        # |H u - value u| = left times the last entry of the small eigenvector
        off = left * np.maximum(np.abs(vectors[-1, 0]), np.abs(vectors[-1, -1]))
        if off <= ACCURACY * size or left <= ACCURACY * size:
            break
        beside.append(left)
        basis.append(w / left)
    ritz = np.array(basis[: len(values)]).T @ vectors[:, -1]
    return _Ends(float(values[0]), float(values[-1]), float(left * np.abs(vectors[-1, -1])), ritz)
