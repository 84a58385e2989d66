"""Weighted means, covariances, eigenvalues and divergences in 300 bits and more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx

from tests.hunt.references.convex import ZERO
from tests.hunt.references.numbers import reals, set_bits
from tests.hunt.references.scores import bits_for


class Rows:
    """Rows of positive weight as 300-bit numbers."""

    def __init__(self, X: Any, weights: Any) -> None:
        X = np.asarray(X, dtype=np.float64)
        weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
        self.bits = set_bits(2 * bits_for(X, weights))
        self.used = np.flatnonzero(weights > 0)
        self.X = [reals(X[i]) for i in self.used]
        self.weights = reals(weights[self.used])
        self.n_columns = X.shape[1]

    def spreads(self) -> tuple[arb, list[arb], list[arb]]:
        """Sum of weights, and mean and variance of every column."""
        total = sum(self.weights, ZERO)
        columns = list(zip(*self.X, strict=True))
        mean = [sum((w * x for w, x in zip(self.weights, column, strict=True)), ZERO) / total for column in columns]
        squares = [
            sum((w * (x - m) ** 2 for w, x in zip(self.weights, column, strict=True)), ZERO) / total
            for column, m in zip(columns, mean, strict=True)
        ]
        return total, [m.mid() for m in mean], [s.mid() for s in squares]

    def moments(self, places: Sequence[int] | None = None) -> tuple[arb, list[arb], arb_mat]:
        """Sum of weights, means, and the mean of (x - m)(x - m)' over some of the rows."""
        places = range(len(self.X)) if places is None else places
        total = sum((self.weights[i] for i in places), ZERO)
        d = self.n_columns
        mean = [(sum((self.weights[i] * self.X[i][j] for i in places), ZERO) / total).mid() for j in range(d)]
        away = [[x - m for x, m in zip(self.X[i], mean, strict=True)] for i in places]
        left = arb_mat([[self.weights[i] * a / total for a in row] for i, row in zip(places, away, strict=True)])
        return total, mean, (left.transpose() * arb_mat(away)).mid()


def part_of(matrix: arb_mat, places: Sequence[int]) -> arb_mat:
    """Some rows and the same columns."""
    return arb_mat([[matrix[i, j] for j in places] for i in places])


def given_matrix(values: Any) -> arb_mat:
    """A float64 matrix, exactly."""
    return arb_mat([[arb(float(x)) for x in row] for row in np.asarray(values)])


def gaussian_divergence(best: arb_mat, state: arb_mat) -> arb:
    """[trace M - log det M - d] / 2, M = state^-1 best; infinite where one of them is singular or not positive."""
    d = best.nrows()
    if d == 0:
        return ZERO
    roots = [x if x > 0 else arb(1) for x in (best[i, i] for i in range(d))]
    roots = [x.sqrt() for x in roots]
    A, B = (arb_mat([[m[i, j] / roots[i] / roots[j] for j in range(d)] for i in range(d)]).mid() for m in (best, state))
    little = arb(2) ** (-(2 * ctx.prec) // 3)
    of_best, of_state = A.det().mid(), B.det().mid()
    if not (of_best > little and of_state > little * little) or not _is_positive(B):
        return arb("inf")
    M = B.solve(A)
    return ((M.trace() - d - (of_best / of_state).log()) / 2).mid()


def _is_positive(matrix: arb_mat) -> bool:
    return all(part_of(matrix, range(k)).det().mid() > 0 for k in range(1, matrix.nrows() + 1))


def quadratic_form(matrix: arb_mat, vector: Sequence[arb]) -> arb:
    """v' matrix^-1 v."""
    if not vector:
        return ZERO
    right = arb_mat(len(vector), 1, list(vector))
    return (right.transpose() * matrix.solve(right))[0, 0].mid()


def divergence(best: Sequence[arb], state: Sequence[arb]) -> arb:
    """sum_j p^_j log(p^_j / p_j)."""
    total = ZERO
    for p, q in zip(best, state, strict=True):
        if p > 0:
            total += p * (p / q).log() if q > 0 else arb("inf")
    return total


def eigenvalues(matrix: arb_mat) -> list[arb]:
    """Of a symmetric matrix by Jacobi's rotations, the largest first."""
    d = matrix.nrows()
    A = [[matrix[i, j] for j in range(d)] for i in range(d)]
    little = arb(2) ** (-(3 * ctx.prec) // 4)
    for _ in range(60):
        rotated = False
        for p in range(d - 1):
            for q in range(p + 1, d):
                if abs(A[p][q]) <= little * (abs(A[p][p]) + abs(A[q][q])) or A[p][q] == 0:
                    continue
                rotated = True
                theta = (A[q][q] - A[p][p]) / (2 * A[p][q])
                t = (1 if theta >= 0 else -1) / (abs(theta) + (theta * theta + 1).sqrt())
                c = 1 / (t * t + 1).sqrt()
                _rotate(A, p, q, c.mid(), (t * c).mid())
        if not rotated:
            break
    return sorted((A[i][i] for i in range(d)), reverse=True)


def _rotate(A: list[list[arb]], p: int, q: int, c: arb, s: arb) -> None:
    for row in A:
        row[p], row[q] = (c * row[p] - s * row[q]).mid(), (s * row[p] + c * row[q]).mid()
    A[p], A[q] = (
        [(c * x - s * y).mid() for x, y in zip(A[p], A[q], strict=True)],
        [(s * x + c * y).mid() for x, y in zip(A[p], A[q], strict=True)],
    )
