"""Cholesky factor of a Gram matrix, in float64 while that keeps eight digits of the inverse, else twofold.

A factor of A = sum_i w_i a_i a_i' + diag(penalty), a = (1, x - shift) or x. The squared condition number enters
every result that comes from a Gram matrix; the twofold sums carry enough bits for it up to condition 1e13.
`Curvature` is the same for a Hessian, whose flat directions are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from certifit.data.columns import Array
from certifit.runtime import core, n_threads, one_blas_thread
from certifit.statistics import double_double as dd

PLAIN_CONDITION = 1e3  # condition^2 * 2^-53 * (growth of a sum) stays below 1e-8
FEW_COLUMNS = 48  # up to which a factor is made in one call of the core: LAPACK's calls cost more than its arithmetic
PLAIN_SHARE = 2.0**-106  # squares about a shift that are a smaller share of those about 0 are beyond float64 sums
DEPENDENT = 2.0**-46  # a column closer than this, relative, to the span of the others is dependent on them
NEAR = 1e-6  # a column closer than this, relative, is looked at: how large are the terms of its combination?
_NONE = np.zeros(0, dtype=np.int64)
_NONE.flags.writeable = False


@dataclass(frozen=True)
class System:
    """A symmetric system: matrix (with its low part when twofold), and the norm that each column's rounding has."""

    matrix: Array
    low: Array | None
    norms: Array

    @staticmethod
    def of(matrix: Array, low: Array | None, penalty: Array, norms: Array) -> System:
        """The system with a penalty added to its diagonal."""
        matrix, low = matrix.copy(), None if low is None else low.copy()
        if low is None:
            matrix.flat[:: len(matrix) + 1] += penalty
        else:
            at = np.arange(len(matrix))
            matrix[at, at], low[at, at] = dd.add((matrix[at, at], low[at, at]), (penalty, np.zeros(len(at))))
        return System(matrix, low, norms)

    @cached_property
    def units(self) -> Array:
        """Powers of two that bring the diagonal near 1."""
        diagonal = self.matrix.diagonal()
        safe = np.where((diagonal > 0) & np.isfinite(diagonal), diagonal, 1.0)
        return np.asarray(np.ldexp(1.0, np.minimum(np.maximum(-(np.frexp(safe)[1] // 2), -500), 500)))

    @cached_property
    def scaled(self) -> Array:
        """The matrix in those units: the change is exact."""
        return self.matrix * self.units[:, None] * self.units[None, :]

    @one_blas_thread
    def by_size(self, first: int) -> Array:
        """An order of the columns: after the first ones always that of which most is left after those before it.

        Columns at its end are combinations of those before with small multiples.
        """
        ahead, left = self.scaled[:first, first:], self.scaled[first:, first:]
        if first:
            left = left - ahead.T @ np.linalg.solve(self.scaled[:first, :first], ahead)
        return np.append(np.arange(first), first - 1 + lapack.dpstrf(left, lower=0)[1])


@dataclass(frozen=True)
class Factor:
    """Solves with the columns that are kept; the others are combinations of them.

    relations[i, k]: dependent column i = sum_k relations[i, k] kept column k; relations_low: what float64 cuts off it.
    """

    kept: Array
    dependent: Array
    relations: Array
    _norm: float = field(repr=False)  # of A on the kept columns, largest column sum, in units of near-unit norm
    _units: Array = field(repr=False)
    _upper: tuple[Array, Array | None] = field(repr=False)
    _condition: float | None = field(default=None, repr=False)  # where it is known already
    relations_low: Array | None = field(default=None, repr=False)

    @cached_property
    def _is_whole(self) -> bool:
        """Whether all columns are kept, in their order."""
        return not len(self.dependent) and bool((np.diff(self.kept) > 0).all())

    @one_blas_thread
    def solve(self, right: Array) -> Array:
        """Solution on the kept columns for a right-hand side given on all columns; zero on the others."""
        if self._is_whole:
            if right.ndim == 1 and len(right) <= FEW_COLUMNS and self._upper[1] is None:
                return _solve_few(self._upper[0], self._units, right)
            return np.asarray((_solve(self._upper, (right.T * self._units).T).T * self._units).T)
        out = np.zeros(right.shape)
        u = self._units[self.kept]
        scaled = (right[self.kept].T * u).T
        out[self.kept] = (_solve(self._upper, scaled).T * u).T
        return out

    @one_blas_thread
    def nearly_related(self, norms: Array, coarseness: Array) -> list[int]:
        """Columns to set aside, one a relation whose remainder may be rounding of its terms; never the first column.

        |e_j| <= 2^-46 (sum_k |C_jk x_k|^2 + |x_j|^2)^(1/2), a term times its column's coarseness: of a sum of 1 the
        share that is least has a remainder far above 2^-46 of itself. The column with the largest term is set aside.
        """
        upper, places, chosen = self._upper[0], np.arange(len(self.kept)), np.zeros(len(self.kept), dtype=bool)
        sizes, coarse = (norms * self._units)[self.kept], coarseness[self.kept]
        is_free = np.ones(len(places), dtype=bool)  # of the columns that are seen to be combinations of others
        near = NEAR * coarse.max(initial=1.0) * sizes
        for j in 1 + np.flatnonzero(np.diagonal(upper)[1:] <= near[1:]):
            left = float(np.linalg.norm(np.append(upper[j, j], upper[:j, j][~is_free[:j]])))
            before = places[:j][is_free[:j]]
            multiples, _ = lapack.dtrtrs(upper[np.ix_(before, before)], upper[before, j])
            terms = np.append(np.abs(multiples), 1.0) * sizes[np.append(before, j)]
            total = DEPENDENT * float(np.linalg.norm(terms * coarse[np.append(before, j)]))
            if left > total:
                continue
            is_free[j] = False
            if not (terms[:-1][chosen[before]] > total).any():  # else it is looked at without those chosen
                chosen[np.append(before, j)[1:][np.argmax(terms[1:])]] = True
        return [int(k) for k in self.kept[chosen]]

    @one_blas_thread
    def solve_pair(self, right: Array, low: Array) -> dd.Pair:
        """`solve` for the right-hand side right + low, with the low part of the solution: zero in float64."""
        hi, lo = np.zeros(right.shape), np.zeros(right.shape)
        if self._upper[1] is None or len(self.kept) == 0:
            return self.solve(right), lo
        u = self._units[self.kept]
        sides = [np.ascontiguousarray((part[self.kept] * u)[:, None]) for part in (right, low)]
        hi_kept, lo_kept = core.twofold_solve(self._upper[0], self._upper[1], *sides, n_threads())
        hi[self.kept], lo[self.kept] = hi_kept[:, 0] * u, lo_kept[:, 0] * u
        return hi, lo

    @cached_property
    def condition(self) -> float:
        """Condition of the design, the root of ||A||_1 ||A^-1||_1 on the kept columns in units of near-unit norm."""
        if self._condition is not None:
            return self._condition
        if len(self.kept) == 0:
            return 1.0
        return float(np.sqrt(self._norm * np.abs(self.scaled_inverse).sum(axis=0).max()))

    @cached_property
    @one_blas_thread
    def scaled_inverse(self) -> Array:
        """Inverse on the kept columns, in units of near-unit norm."""
        inverse = _solve(self._upper, np.eye(len(self.kept)))
        return np.asarray((inverse + inverse.T) / 2)

    @one_blas_thread
    def inverse_root(self) -> Array:
        """R^-1 with A = R'R: one column per kept column, zero in the rows of the others."""
        size = len(self.kept) + len(self.dependent)
        out = np.zeros((size, len(self.kept)))
        if len(self.kept):
            inverse, _ = lapack.dtrtri(self._upper[0], lower=0)
            out[self.kept] = np.triu(inverse) * self._units[self.kept][:, None]
        return out

    @one_blas_thread
    def inverse_root_pair(self) -> dd.Pair:
        """`inverse_root` with its low part, as R^-1 = A^-1 R'; the low part is zero where the factor is in float64."""
        root = self.inverse_root()
        out = (root, np.zeros(root.shape))
        upper, low = self._upper
        if low is None or len(self.kept) == 0:
            return out
        identity = np.eye(len(self.kept))
        inverse, inverse_low = core.twofold_solve(upper, low, identity, np.zeros(identity.shape), n_threads())
        total: dd.Pair = (np.zeros(identity.shape), np.zeros(identity.shape))
        for j, column in enumerate(inverse.T):
            column_pair = (column[:, None], inverse_low[:, [j]])
            total = dd.add(total, dd.multiply(column_pair, (upper[:, j], low[:, j])))
        u = self._units[self.kept][:, None]
        out[0][self.kept], out[1][self.kept] = np.triu(total[0]) * u, np.triu(total[1]) * u
        return out

    @cached_property
    def inverse(self) -> Array:
        """Inverse on the kept columns, zero elsewhere."""
        if self._is_whole:
            return np.ascontiguousarray(self.scaled_inverse * self._units[:, None] * self._units)
        size = len(self.kept) + len(self.dependent)
        out = np.zeros((size, size))
        u = self._units[self.kept]
        out[self.kept[:, None], self.kept] = self.scaled_inverse * u[:, None] * u[None, :]
        return out


def plain_factor(system: System) -> Factor | None:
    """Float64 Cholesky, or None where its condition is beyond what float64 sums can bear."""
    size = len(system.matrix)
    if size <= FEW_COLUMNS:
        made = core.plain_factor(np.ascontiguousarray(system.matrix), system.norms, PLAIN_SHARE)
        if made is None or not made[3] <= PLAIN_CONDITION:
            return None
        upper, inverse, units, condition = made
        factor = Factor(np.arange(size), _NONE, np.zeros((0, size)), np.nan, units, (upper, None), condition)
        factor.__dict__["scaled_inverse"] = inverse
        return factor
    if (system.matrix.diagonal() < PLAIN_SHARE * system.norms**2).any():
        return None
    upper, condition = _plain_cholesky(system.scaled)
    if not condition <= PLAIN_CONDITION:
        return None
    return Factor(np.arange(size), _NONE, np.zeros((0, size)), np.nan, system.units, (upper, None), condition)


def twofold_factor(system: System, order: Array | None = None, aside: Sequence[int] = ()) -> Factor:
    """Twofold Cholesky: columns within rounding of the ones before them are set aside. order: theirs, or this one.

    aside: columns that are set aside whatever is left of them.
    """
    if system.low is None:
        raise ValueError("a twofold factor needs twofold sums")
    order = np.arange(len(system.units)) if order is None else order
    ordered, units = np.ix_(order, order), system.units[order]
    scaled = np.ascontiguousarray(system.scaled[ordered])
    low = np.ascontiguousarray(system.low[ordered] * units[:, None] * units[None, :])
    with np.errstate(over="ignore"):  # what is infinite is dependent
        floor = (DEPENDENT * system.norms[order] * units) ** 2
    floor[np.isin(order, aside)] = np.inf
    kept_list, _, (upper, upper_low) = core.twofold_cholesky(scaled, low, np.ascontiguousarray(floor), n_threads())
    kept = np.asarray(kept_list, dtype=np.int64)
    dependent = np.setdiff1d(np.arange(len(units)), kept)
    square = (np.ascontiguousarray(upper[:, kept]), np.ascontiguousarray(upper_low[:, kept]))
    right = scaled[np.ix_(kept, dependent)], low[np.ix_(kept, dependent)]
    ratios = units[kept][:, None] / units[dependent][None, :]
    relations, cut = ((part * ratios).T for part in _solve_pairs(square, *right))
    norm = np.abs(scaled[np.ix_(kept, kept)]).sum(axis=0).max(initial=0.0)
    return Factor(order[kept], order[dependent], relations, float(norm), system.units, square, relations_low=cut)


@one_blas_thread
def _plain_cholesky(matrix: Array) -> tuple[Array, float]:
    upper, failed = lapack.dpotrf(matrix, lower=0, clean=1)
    if failed or not np.isfinite(upper).all():
        return upper, np.inf
    reciprocal, _ = lapack.dpocon(upper, np.abs(matrix).sum(axis=0).max(), uplo="U")
    return upper, float(1.0 / np.sqrt(reciprocal)) if reciprocal > 0 else np.inf


def _solve_few(upper: Array, units: Array, right: Array) -> Array:
    """The solution for few columns and one right-hand side."""
    solution: Array = core.plain_solve(np.ascontiguousarray(upper), units, np.ascontiguousarray(right))
    return solution


def _solve(upper: tuple[Array, Array | None], right: Array) -> Array:
    if len(right) == 0:
        return right
    if upper[1] is None:
        solution, _ = lapack.dpotrs(upper[0], right, lower=0)
        return np.asarray(solution)
    columns = np.ascontiguousarray(right.reshape(len(right), -1))
    solution = _solve_twofold((upper[0], upper[1]), columns, np.zeros_like(columns))
    return solution.reshape(right.shape)


def _solve_twofold(upper: tuple[Array, Array], right: Array, low: Array) -> Array:
    return _solve_pairs(upper, right, low)[0]


def _solve_pairs(upper: tuple[Array, Array], right: Array, low: Array) -> dd.Pair:
    if right.size == 0:
        return np.zeros(right.shape), np.zeros(right.shape)
    arrays = (np.ascontiguousarray(right), np.ascontiguousarray(low))
    solution: dd.Pair = core.twofold_solve(upper[0], upper[1], *arrays, n_threads())
    return solution


# ---- a Hessian in units of near-unit diagonal, and its inverse -------------------------------------------------------
# Directions whose curvature rounding cannot tell from zero are left out: there is no step along them, and `n_flat`
# says how many there are.

FLAT = 1e-12  # share of the largest eigenvalue, in units of near-unit diagonal, below which curvature is rounding


def product_above_0(a: Array, b: Array) -> float:
    """a'b, which is 0 or above but for its rounding; infinite where float64 does not hold it."""
    product = float(a @ b)
    return max(product, 0.0) if np.isfinite(product) else np.inf


class Curvature:
    """The inverse of a symmetric matrix >= 0 on the directions that curve."""

    _eigen: tuple[Array, Array] | None = None
    _scaled_inverse: Array | None = None  # where it came with the factor
    n_flat = 0
    condition: float

    @one_blas_thread
    def __init__(self, matrix: Array) -> None:
        if 0 < len(matrix) <= FEW_COLUMNS:
            made = core.plain_factor(np.ascontiguousarray(matrix), None, 0.0)
            if made is not None and 1 / made[3] ** 2 > FLAT:
                self._upper, self._scaled_inverse, self._units, self.condition = made
                return
        diagonal = np.diagonal(matrix)
        with np.errstate(all="ignore"):
            self._units = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
            scaled = matrix * self._units * self._units[:, None]
        if not len(matrix) or not np.isfinite(scaled).all():  # beyond float64 no direction is known to curve
            self._units, self._eigen = np.ones(len(matrix)), (np.zeros(0), np.zeros((len(matrix), 0)))
            self.n_flat, self.condition = len(matrix), np.inf if len(matrix) else 1.0
            return
        self._upper, failed = lapack.dpotrf(scaled, lower=0, clean=1)
        norm = np.abs(scaled).sum(axis=0).max(initial=0.0)
        reciprocal = 0.0 if failed else float(lapack.dpocon(self._upper, norm, uplo="U")[0])
        if not reciprocal > FLAT:
            values, vectors = np.linalg.eigh(scaled)
            curved = values > FLAT * values[-1] if len(values) else values > 0
            self._eigen = (values[curved], vectors[:, curved])
            self.n_flat = int(len(values) - curved.sum())
            reciprocal = float(values[curved][0] / values[-1]) if curved.any() else 1.0
        self.condition = float(np.sqrt(1.0 / reciprocal))

    @property
    def size(self) -> int:
        """Of the matrix."""
        return len(self._units)

    @one_blas_thread
    def solve(self, right: Array) -> Array:
        """The matrix's inverse times a vector, or columns of a matrix."""
        if self._eigen is None and right.ndim == 1 and 0 < len(right) <= FEW_COLUMNS:
            return _solve_few(self._upper, self._units, right)
        scaled = (right.T * self._units).T
        if self._eigen is None:
            solution = lapack.dpotrs(self._upper, scaled, lower=0)[0] if len(scaled) else scaled
        else:
            values, vectors = self._eigen
            solution = vectors @ ((vectors.T @ scaled).T / values).T
        return np.asarray((solution.T * self._units).T)

    @cached_property
    @np.errstate(over="ignore", invalid="ignore")
    def inverse(self) -> Array:
        """The inverse, symmetric; infinite where it leaves float64."""
        if self._scaled_inverse is not None:
            return np.asarray(self._scaled_inverse * self._units[:, None] * self._units)
        whole = self.solve(np.eye(len(self._units)))
        return np.asarray((whole + whole.T) / 2)


def hold_intercepts(hessian: Array, n_scores: int) -> None:
    """Where intercepts are 0: no direction is flat, and the gradient along these is 0."""
    hessian[-n_scores:], hessian[:, -n_scores:] = 0.0, 0.0
    places = np.arange(-n_scores, 0)
    hessian[places, places] = 1.0
