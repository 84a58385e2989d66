"""The truth about quantile regression, in rationals: every best fit can be had at a vertex, and one is proven."""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat

from tests.hunt.generate import Problem
from tests.hunt.references.numbers import rational
from tests.hunt.references.spreads import root
from tests.hunt.truth import LinearTruth, penalty_units

MOST_PIVOTS = 3000


class QuantileTruth(LinearTruth):
    """The program in rationals: rows (x_i, 1), then one row e_j of both slopes alpha (times its spread) per column."""

    def __init__(self, problem: Problem, model: Any) -> None:
        super().__init__(problem, model)
        weights = np.ones(len(problem.rows)) if problem.weights is None else problem.weights
        used = np.flatnonzero(weights > 0)
        q, self.has_intercept = rational(float(model.quantile)), bool(model.fit_intercept)
        self.rows = [self._row(problem.rows[i]) for i in used]
        self.target = [rational(float(problem.y[i])) for i in used]
        mass = [rational(float(weights[i])) for i in used]
        total = sum(mass, fmpq(0))
        self.upper = [q * m / total for m in mass]
        self.lower = [(q - 1) * m / total for m in mass]
        self.alpha = rational(float(model.alpha_))
        self.size = self.n_columns + int(self.has_intercept)
        spreads = [root(square) for square in penalty_units(problem, self.has_intercept)]
        for j in range(self.n_columns if self.alpha else 0):
            self.rows.append([fmpq(int(k == j)) for k in range(self.size)])
            self.target.append(fmpq(0))
            self.upper.append(self.alpha * spreads[j])
            self.lower.append(-self.alpha * spreads[j])

    def _row(self, x: Any) -> list[fmpq]:
        return [rational(float(v)) for v in x] + [fmpq(1)] * self.has_intercept

    def objective(self, model: Any) -> fmpq:
        """At the state."""
        z = [rational(float(v)) for v in model.coef_] + [rational(float(model.intercept_))] * self.has_intercept
        return self._loss(z)

    def _loss(self, z: list[fmpq]) -> fmpq:
        total = fmpq(0)
        for row, y, up, low in zip(self.rows, self.target, self.upper, self.lower, strict=True):
            r = y - sum((a * b for a, b in zip(row, z, strict=True)), fmpq(0))
            total += (up if r > 0 else low) * r
        return total

    def null(self) -> fmpq:
        """Of the best constant: one of the targets; of 0 without an intercept."""
        zero = [fmpq(0)] * self.n_columns
        if not self.has_intercept:
            return self._loss(zero)
        return min(self._loss([*zero, y]) for y in set(self.target))

    def find_infimum(self, columns: list[int] | None) -> tuple[fmpq, bool]:
        """By the simplex method with Bland's rule on the columns that are independent."""
        places = list(range(self.n_columns)) if columns is None else list(columns)
        places += [self.n_columns] * self.has_intercept
        rows = [[row[k] for k in places] for row in self.rows]
        return Simplex(rows, self.target, self.lower, self.upper).least()


class Simplex:
    """min sum_i upper_i max(r_i, 0) - lower_i min(r_i, 0), r = y - A z, over z.

    Ties are broken as if the target of row i were y_i + e^(i + 1) for an e that is smaller than any number: residuals
    are compared as polynomials of e, so no step is one of length 0 and the method ends.
    """

    def __init__(self, rows: list[list[fmpq]], target: list[fmpq], lower: list[fmpq], upper: list[fmpq]) -> None:
        self.target, self.lower, self.upper = target, lower, upper
        kept = _independent(fmpq_mat(rows).transpose() if rows and rows[0] else None)
        self.rows = [[row[k] for k in kept] for row in rows]
        self.basis = _independent(fmpq_mat(self.rows)) if kept else []

    def least(self) -> tuple[fmpq, bool]:
        """The least loss, and whether it is proven to be."""
        n, k = len(self.rows), len(self.basis)
        if not k:
            return sum((self._loss(i, self.target[i]) for i in range(n)), fmpq(0)), True
        for _ in range(MOST_PIVOTS):
            inverse = fmpq_mat([self.rows[i] for i in self.basis]).inv()
            shares = fmpq_mat(self.rows) * inverse  # row i = sum_b shares_ib row of the basis b
            table = [[shares[i, b] for b in range(k)] for i in range(n)]
            residuals = [self._residual(i, table[i]) for i in range(n)]
            sides = [0 if i in self.basis else _sign(residuals[i]) for i in range(n)]
            dual = [fmpq(0)] * k
            for i in range(n):
                if sides[i]:
                    v = self.upper[i] if sides[i] > 0 else self.lower[i]
                    dual = [old - v * share for old, share in zip(dual, table[i], strict=True)]
            leaving = next((b for b in range(k) if not self._is_inside(b, dual[b])), None)
            if leaving is None:
                return sum((self._loss(i, residuals[i].get(-1, fmpq(0))) for i in range(n)), fmpq(0)), True
            self._pivot(leaving, dual[leaving], table, residuals, sides)
        return fmpq(0), False

    def _is_inside(self, b: int, v: fmpq) -> bool:
        i = self.basis[b]
        return bool(self.lower[i] <= v <= self.upper[i])

    def _residual(self, i: int, shares: list[fmpq]) -> dict[int, fmpq]:
        """By powers of e: -1 for the number itself, j for the perturbation of row j."""
        out = {-1: self.target[i], i: fmpq(1)}
        for b, share in zip(self.basis, shares, strict=True):
            if share:
                out[-1] -= share * self.target[b]
                out[b] = out.get(b, fmpq(0)) - share
        return out

    def _loss(self, i: int, r: fmpq) -> fmpq:
        return (self.upper[i] if r > 0 else self.lower[i]) * r

    def _pivot(
        self, b: int, v: fmpq, table: list[list[fmpq]], residuals: list[dict[int, fmpq]], sides: list[int]
    ) -> None:
        """Leave row b of the basis on the side that lowers the loss, up to where it is least."""
        left = self.basis[b]
        sign = 1 if v > self.upper[left] else -1
        slope = self.upper[left] - v if sign > 0 else v - self.lower[left]
        ahead = []
        for i, side in enumerate(sides):
            rate = sign * table[i][b]  # of the residual, as that of the row left grows by sign
            if side and rate * side < 0:
                ahead.append((_Length({power: -x / rate for power, x in residuals[i].items()}), i, abs(rate)))
        for _, i, rate in sorted(ahead, key=lambda step: step[0]):
            slope += (self.upper[i] - self.lower[i]) * rate
            if slope >= 0:
                self.basis[b] = i
                return
        raise AssertionError("a loss that falls without end")


class _Length:
    """A number with powers of e, in order of size."""

    def __init__(self, parts: dict[int, fmpq]) -> None:
        self.parts = parts

    def __lt__(self, other: _Length) -> bool:
        powers = self.parts.keys() | other.parts.keys()
        return _sign({p: self.parts.get(p, fmpq(0)) - other.parts.get(p, fmpq(0)) for p in powers}) < 0


def _sign(parts: dict[int, fmpq]) -> int:
    """Of the first power that is there."""
    first = next((parts[power] for power in sorted(parts) if parts[power] != 0), fmpq(0))
    return (first > 0) - (first < 0)


def _independent(matrix: fmpq_mat | None) -> list[int]:
    """The first rows that no rows before them make redundant."""
    if matrix is None:
        return []
    reduced, rank = matrix.transpose().rref()
    return [next(j for j in range(reduced.ncols()) if reduced[i, j] != 0) for i in range(rank)]
