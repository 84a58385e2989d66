"""The largest and the smallest curvature at a point: the ends of the Hessian's spectrum, from products with it alone.

Lanczos: the Hessian seen in the space of v, H v, H^2 v, ... is a small tridiagonal matrix. Its end eigenvalues reach
those of the Hessian long before power iteration does, and are exact when the space is full.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh_tridiagonal

from certifit.data.columns import Array
from certifit.solvers.problem import Problem, norm

MOST_PRODUCTS = 300
ACCURACY = 1e-10  # relative to the largest curvature in size


def end_curvatures(problem: Problem, x: Array) -> tuple[float, float]:
    """(smallest, largest) eigenvalue of the Hessian at x; NaN where a product is not finite."""
    d = problem.size
    v = np.random.default_rng(0).normal(size=d)
    basis = [v / norm(v)]
    diagonal: list[float] = []
    beside: list[float] = []
    for k in range(min(d, MOST_PRODUCTS)):
        w = problem.product(x, basis[k])
        if not np.isfinite(w).all():
            return np.nan, np.nan
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
    return float(values[0]), float(values[-1])


def largest_stable_step(problem: Problem, x: Array) -> float:
    """2 / largest curvature at x: gradient descent with a longer step moves away from a minimum there; inf if flat."""
    largest = end_curvatures(problem, x)[1]
    return 2 / largest if largest > 0 else (np.inf if largest <= 0 else np.nan)
