"""Ridge solutions of one training set for many strengths of the penalty, from its Gram statistic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import lapack

from certifit.data.columns import Array
from certifit.models.least_squares.normal_equations import LARGEST_PENALTY, penalty_units
from certifit.runtime import core
from certifit.statistics.factor import PLAIN_SHARE
from certifit.statistics.gram import Gram

LEAST_TOGETHER = 4  # strengths from which on one tridiagonal reduction costs less than a factor each
MOST_UNLIKE = 16.0  # largest ratio of squared sizes of columns, in units of the penalty, for that reduction


@dataclass(frozen=True)
class Along:
    """Solutions of one training set for many strengths, a row each, and at least the condition of their systems."""

    solutions: Array
    condition: float


def along_strengths(train: Gram, fit_intercept: bool, standardize: bool, strengths: Sequence[float]) -> Along | None:
    """Solutions for many strengths by one reduction of the matrix; None for few, or columns too unlike in size.

    With the intercept eliminated and columns divided by what the penalty counts them in, the matrix of a strength is
    B + lambda I. B = Q T Q' is reduced to a tridiagonal T once; every strength is then a tridiagonal system. Errors
    are relative to the condition of B + lambda I, and more by what centring has taken from the squares of a column.
    """
    is_many = len(strengths) >= LEAST_TOGETHER
    centred = _Centred.of(train, fit_intercept, standardize, max(strengths)) if is_many else None
    if centred is None:
        return None
    d, units = train.n_columns, centred.units
    # A symmetric matrix is its own transpose: Fortran's order without a copy.
    reduced, diagonal, beside, tau, _ = lapack.dsytrd(centred.inner.T, lower=1, lwork=32 * d, overwrite_a=1)
    turn, reflectors = partial(lapack.dormqr, "L", lwork=32 * d), np.asfortranarray(reduced[1:, :-1])
    start = np.append(centred.side[0], turn("T", reflectors, tau, centred.side[1:, None])[0])
    together = core.shifted_solutions(diagonal, beside, start, np.array(strengths) * train.sum_weight)
    if together is None:  # T + lambda I has no factor: rounding of a matrix at the limit of the condition
        return None
    turned, condition = together
    turned[:, 1:] = turn("N", reflectors, tau, turned.T[1:])[0].T
    with np.errstate(over="ignore"):  # a weight that no float64 number is: its state is refused
        weights = turned / units
    if fit_intercept:
        level = train.sums[d, d + 1] / train.sum_weight
        weights = np.column_stack([level - weights @ centred.means, weights])
    return Along(weights, float(np.sqrt(condition / centred.share)))


@dataclass(frozen=True)
class _Centred:
    """A system without its intercept: B and the right-hand side, in the units of the penalty, and means of columns.

    share: the least share of a column's squares about its shift that is left about its mean.
    """

    inner: Array
    side: Array
    means: Array
    units: Array
    share: float

    @staticmethod
    def of(train: Gram, fit_intercept: bool, standardize: bool, strongest: float) -> _Centred | None:
        """None where sums of squares may have lost digits or columns are too unlike in size."""
        sums, d, total = train.sums, train.n_columns, train.sum_weight
        squares = sums.diagonal()[:d]
        is_rough = standardize and fit_intercept and train.has_rough_spreads()
        if d < 2 or is_rough or (squares < PLAIN_SHARE * train.norms**2).any():
            return None
        units = penalty_units(train, fit_intercept, standardize)
        with np.errstate(over="ignore", under="ignore"):
            if not strongest * total * float(units.max()) ** 2 < LARGEST_PENALTY:
                return None
        inner, side, means, share = sums[:d, :d], sums[:d, d + 1], np.zeros(d), 1.0
        with np.errstate(all="ignore"):
            if fit_intercept:  # about the shifts
                means = sums[d, :d] / total
                inner, side = inner - np.outer(means, sums[d, :d]), side - means * sums[d, d + 1]
                share = float((inner.diagonal() / squares).min())
            inner, side = inner / units, side / units
            inner /= units[:, None]
        diagonal = inner.diagonal()
        # Off the diagonal entries are at most the largest on it: what is not finite shows in the sum of all.
        is_alike = diagonal.min() > 0 and diagonal.max() <= MOST_UNLIKE * diagonal.min()
        if not (is_alike and share > 0 and np.isfinite(inner.sum())):
            return None
        return _Centred(inner, side, means, units, share)


def penalised(matrix: Array, right: Array, penalty: Array) -> Array:
    """The solution with a penalty on the diagonal, in float64 and units of near-unit norm."""
    diagonal = np.diagonal(matrix) + penalty
    units = 1.0 / np.sqrt(diagonal)
    scaled = matrix * units
    scaled *= units[:, None]
    np.fill_diagonal(scaled, 1.0)
    # A symmetric matrix is its own transpose: Fortran's order without a copy.
    _, solution, failed = lapack.dposv(scaled.T, right * units, lower=0, overwrite_a=1, overwrite_b=1)
    if failed:
        raise ArithmeticError("a matrix whose condition was checked has no Cholesky factor")
    return np.asarray(solution * units)
