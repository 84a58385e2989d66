"""Numbers of a file that follow from other numbers of it: a file whose numbers contradict each other is refused.

Numbers of one machine differ from another's in their last digits, so equal means to SAME, relative to what was added
up. Products of two matrices are compared along a few random vectors, so that loading costs no more than reading.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from certifit.models.record import Metadata, Problems

SAME = 1e-9  # how nearly numbers that follow from each other must agree
NEAR = 1e-6  # the same of numbers that were summed in other ways
TINY = 1e-300  # below it a float64 has fewer digits
UNIT = 2.0**-53
N_PROBES = 2
LEAST_PIVOT = 1e-4
MOST_FACTORED = 512  # coefficients; beyond it a factor would take longer than the file
DEFAULT_TOLERANCES = (1e-8, 1e-3)  # of tol=None: the second of solvers that step after single rows

Floats = NDArray[np.float64]


def agree(a: Floats | float, b: Floats | float, slack: float = SAME) -> bool:
    """Equal but for rounding."""
    return bool(np.allclose(a, b, rtol=slack, atol=TINY))


def probes(n: int) -> Floats:
    """Vectors that no matrix of a file was made for, shape (n, N_PROBES)."""
    return np.random.default_rng(n).standard_normal((n, N_PROBES))


def tolerance_problems(metadata: Metadata) -> Problems:
    """A certificate that is held against another tolerance than the one that was asked for."""
    stored, asked = metadata["certificate"]["tolerance"], metadata["parameters"].get("tol", 1)  # 1: of a perceptron
    legal = DEFAULT_TOLERANCES if asked is None else (float(asked),)
    return {f"tol {asked!r} asked and {stored!r} in the certificate": stored not in legal}


def alpha_problems(asked: float | None, used: float, sum_weight: float, factors: Floats) -> Problems:
    """A strength of penalty that is not the one asked for: None is 1 / sum of weights times factors of rows."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # 0 times an infinite sum of weights
        ratio = float(np.float64(1.0) / (np.float64(used) * sum_weight))
    is_default = factors.min() * (1 - SAME) <= ratio <= factors.max() * (1 + SAME)
    return {
        f"alpha {asked!r} asked and {used!r} used": asked is not None and asked != used,
        f"alpha {used!r} used, which is not 1 / sum of weights": asked is None
        and not is_default
        and math.isfinite(sum_weight),
    }


def inverse_problems(inverse: Floats, mass: float | None, condition: float) -> Iterator[Problems]:
    """A matrix A of standard errors that is none: A is symmetric, positive, and (A^-1)_00 = mass.

    Its diagonal is known to be above 0. mass: what the rows weigh in A, where A begins with the intercept; None where
    there is none. condition: of the columns; it takes digits of A.
    """
    k, sd = len(inverse), np.sqrt(np.diagonal(inverse))
    slack = SAME + 8 * k * UNIT * condition
    with np.errstate(all="ignore"):
        correlation = inverse / sd[:, None] / sd
        is_symmetric = np.abs(correlation - correlation.T).max(initial=0.0) <= slack
        is_possible = np.abs(correlation).max(initial=0.0) <= 1 + slack
        intercept = None if mass is None else float(1.0 / sd[0] / sd[0] / np.float64(mass))
    yield {
        "a matrix of standard errors that is not symmetric": not is_symmetric,
        "a matrix of standard errors with a correlation beyond 1": not is_possible,
    }
    if k <= MOST_FACTORED and slack < LEAST_PIVOT:
        yield from _pivot_problems(correlation, slack, intercept)


def _pivot_problems(correlation: Floats, slack: float, intercept: float | None) -> Iterator[Problems]:
    """Correlations R that are not positive, or whose intercept, the first, has other than 1 / (R^-1)_00."""
    last = correlation[::-1, ::-1]  # the last pivot is 1 / (R^-1) of the intercept
    pivots, moved = (_pivots(last + size * np.eye(len(last))) for size in (slack, 2 * slack))
    yield {"a matrix of standard errors that is not positive": pivots is None}
    if intercept is None or pivots is None or moved is None or pivots.min() < LEAST_PIVOT:
        return  # columns that nearly repeat others leave it no digits
    off, unsure = abs(pivots[-1] - intercept), 100 * abs(moved[-1] - pivots[-1])
    is_other = off > NEAR * intercept + slack / LEAST_PIVOT + unsure
    yield {"a matrix of standard errors that is not that of the rows' weights": is_other}


def _pivots(matrix: Floats) -> Floats | None:
    """Squares of the diagonal of a Cholesky factor; None where there is none."""
    try:
        return np.asarray(np.diagonal(np.linalg.cholesky(matrix)) ** 2)
    except np.linalg.LinAlgError:
        return None


def is_orthonormal(rows: Floats, off: float) -> bool:
    """Whether V V' = I but for entries of `off`, for the rows of V."""
    u = probes(len(rows))
    with np.errstate(all="ignore"):
        return not (np.abs(rows @ (rows.T @ u) - u) > (off + SAME) * np.abs(u).sum(axis=0)).any()


def are_inverse_roots(roots: Floats, covariance: Floats, is_used: NDArray[np.bool_]) -> bool:
    """Whether T S T' = I in the columns that are used, for every T of `roots` and S of `covariance`.

    Where columns nearly repeat others the product cancels: it is known to SAME of the sum of its terms.
    """
    v = np.where(is_used[:, None], probes(len(is_used)), 0.0)
    with np.errstate(all="ignore"):
        product = roots @ (covariance @ (roots.swapaxes(1, 2) @ v))
        size = np.abs(roots) @ (np.abs(covariance) @ (np.abs(roots).swapaxes(1, 2) @ np.abs(v)))
        return bool((np.abs(product - v) <= SAME * (size + np.abs(v))).all())
