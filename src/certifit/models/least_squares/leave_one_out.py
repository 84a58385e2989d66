"""Exact leave-one-out errors of least squares and ridge, along a path of alphas, in one or two passes.

Without row i the penalty is lambda_i = alpha (sum of weights - w_i). With A_i = X'WX + lambda_i (all rows, the penalty
of the fit without i), h_i = w_i a_i'A_i^-1 a_i and e_i the residual of that system, the row's error is e_i / (1 - h_i).
A row with h_i = 1 cannot be predicted by the others: it is reported, not divided by zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.models.least_squares.task import LeastSquares
from certifit.runtime import one_blas_thread
from certifit.statistics.gram import Scaling

ALONE = 1e-9  # 1 - h below this: the row's own prediction rests on itself
SAFE_RATIO = 1e7  # largest over smallest eigenvalue, penalty included, that an eigen-decomposition resolves
ROWS = 2048  # rows that are read at a time
SHOWN = 20


@dataclass(frozen=True)
class LeftOut:
    """Of every candidate: sums over rows of w e^2 and w e^4 of the errors e, and what they are relative to.

    alone: numbers of rows that only their own presence determines, first ones; they are in no sum.
    """

    squares: Array
    fourths: Array
    weight: Array
    total: float  # sum of w (y - mean)^2
    n_rows: int
    alone: tuple[int, ...]
    n_alone: int
    y_scale: float = 1.0  # errors are in units of 1 / y_scale

    @staticmethod
    def joined(parts: Sequence[LeftOut], places: Sequence[int]) -> LeftOut:
        """Groups of candidates as one, candidate i at the place where `places` names it."""
        order = np.argsort(places)
        rows = (np.concatenate([getattr(part, name) for part in parts]) for name in ("squares", "fourths", "weight"))
        squares, fourths, weight = (row[order] for row in rows)
        worst = max(parts, key=lambda part: part.n_alone)
        return replace(worst, squares=squares, fourths=fourths, weight=weight)

    def __add__(self, other: LeftOut) -> LeftOut:
        sums = (a + b for a, b in zip(self._sums(), other._sums(), strict=True))
        squares, fourths, weight = sums
        alone = (*self.alone, *other.alone)[:SHOWN]
        counts = (self.n_rows + other.n_rows, alone, self.n_alone + other.n_alone)
        return LeftOut(squares, fourths, weight, self.total, *counts, self.y_scale)

    def _sums(self) -> tuple[Array, Array, Array]:
        return self.squares, self.fourths, self.weight


@one_blas_thread
def leave_one_out(source: Source, alphas: Sequence[float | None], fit_intercept: bool) -> LeftOut:
    """Errors of every alpha; alpha None means 1 / sum of weights of the other rows."""
    weakest, bases = _bases(source, alphas, fit_intercept)
    parts = [source.reduce(partial(_summed, basis=basis)) for basis in bases]
    # Sums are in units of y_scale: they neither over- nor underflow, and their ratios are the user's.
    total = weakest.gram.target_moments()[1] / weakest.gram.scaling.weight_scale
    return replace(LeftOut.joined(parts, range(len(alphas))), total=total, y_scale=weakest.gram.scaling.y_scale)


@one_blas_thread
def left_out_fits(source: Source, alpha: float | None, fit_intercept: bool) -> LeftOutFits:
    """The n fits that leave one row out, for rows in memory of equal weight."""
    _, (basis,) = _bases(source, [alpha], fit_intercept)
    rows = source.gather()
    if rows.weight is not None and not (rows.weight == rows.weight[0]).all():
        raise ValueError("Jackknife+ intervals need rows of equal weight: they count rows. Leave the weights out.")
    errors, _ = _rows(rows, basis)
    weight = basis.scaling.weight_scale * (1.0 if rows.weight is None else float(rows.weight[0]))
    return LeftOutFits(basis, _directions(rows.X, basis), errors[:, 0], weight)


@dataclass(frozen=True)
class LeftOutFits:
    """Fits without row i: w_i = w - A^-1 a_i (weight) e_i with e_i the error of row i by its own such fit."""

    basis: Basis
    directions: Array  # t of every row
    errors: Array  # scaled; NaN where only the row itself tells
    weight: float

    @one_blas_thread
    def interval(self, X: Any, level: float) -> Array:
        """Jackknife+ at new rows: quantiles of (prediction without row i) -+ |error of row i|."""
        n = len(self.errors)
        upper = math.ceil(level * (n + 1))
        sizes = np.where(np.isnan(self.errors), np.inf, np.abs(self.errors)) / self.basis.scaling.y_scale
        step = max(1, 4_000_000 // n)
        ends = []
        for begin in range(0, X.shape[0], step):
            centres = self._predictions(X[begin : begin + step])
            if upper > n:
                ends.append(np.tile([-np.inf, np.inf], (len(centres), 1)))
                continue
            high = np.partition(centres + sizes, upper - 1, axis=1)[:, upper - 1]
            low = np.partition(centres - sizes, n - upper, axis=1)[:, n - upper]
            ends.append(np.column_stack([low, high]))
        return np.concatenate(ends) if ends else np.zeros((0, 2))

    def _predictions(self, X: Any) -> Array:
        """Rows x n: the prediction at every row of X by every fit."""
        basis, s = self.basis, self.basis.scaling
        c = basis.curvatures(basis.alphas[0], np.asarray(self.weight))
        t = _directions(X, basis)
        whole = basis.start + t @ (basis.right / c)
        pull = self.weight * np.nan_to_num(self.errors)
        moved = (basis.level + (t / c) @ self.directions.T) * pull
        return np.asarray((whole[:, None] - moved + s.y_shift) / s.y_scale)


def _directions(X: Any, basis: Basis) -> Array:
    dense = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    return np.asarray((dense * basis.scaling.scale - basis.scaling.shift) @ basis.matrix + basis.origin)


@dataclass(frozen=True)
class Basis:
    """Directions t = (scaled, shifted row) matrix + origin in which the system is diagonal for every penalty.

    h_i = w_i (level + sum_j t_j^2 / c_j), prediction start + sum_j t_j right_j / c_j, with c = base + lambda_i gain and
    lambda_i = alpha (sum of weights - w_i), or weight_scale where alpha is None.
    """

    scaling: Scaling
    matrix: Array
    origin: Array
    base: Array
    gain: Array
    right: Array
    level: float
    start: float
    sum_weight: float
    alphas: tuple[float | None, ...]

    def curvatures(self, alpha: float | None, weight: Array) -> Array:
        """c of every row."""
        penalty = self.scaling.weight_scale if alpha is None else alpha * (self.sum_weight - weight)
        return np.asarray(self.base + np.multiply.outer(penalty, self.gain))


def _bases(source: Source, alphas: Sequence[float | None], fit_intercept: bool) -> tuple[LeastSquares, list[Basis]]:
    weakest = LeastSquares(source, None if None in alphas else min(a for a in alphas if a is not None), fit_intercept)
    shared = _shared_basis(weakest, alphas)
    return weakest, [shared] if shared is not None else [_own_basis(source, a, fit_intercept) for a in alphas]


def _shared_basis(task: LeastSquares, alphas: Sequence[float | None]) -> Basis | None:
    """Eigenvectors of the centred matrix in the user's units: one basis for all alphas, if float64 resolves it."""
    gram, d, s = task.gram, task.gram.n_columns, task.gram.scaling
    if gram.low is not None:
        return None
    total = gram.sum_weight
    mean, y_mean, level = np.zeros(d), 0.0, 0.0
    if task.fit_intercept:
        mean, y_mean, level = gram.sums[:d, d] / total, float(gram.sums[d, d + 1] / total), 1.0 / total
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        size = np.exp2(np.floor(np.log2(s.scale).mean()))
        unit = size / s.scale  # the user's units but for one factor
        matrix = (gram.sums[:d, :d] - total * np.outer(mean, mean)) * unit * unit[:, None]
    if not np.isfinite(matrix).all():
        return None
    values, vectors = scipy.linalg.eigh(matrix)
    penalty = min(s.weight_scale if a is None else a * total for a in alphas) * size**2
    floor = max(float(values[0]), 0.0) + penalty
    if not (floor > 0 and values[-1] + penalty <= SAFE_RATIO * floor):
        return None
    rotation = unit[:, None] * vectors
    right = rotation.T @ (gram.sums[:d, d + 1] - total * mean * y_mean)
    base, gain = np.maximum(values, 0.0), np.full(d, size**2)
    return Basis(s, rotation, -(mean @ rotation), base, gain, right, level, y_mean, total, tuple(alphas))


def _own_basis(source: Source, alpha: float | None, fit_intercept: bool) -> Basis:
    """For one alpha, any condition and scale: A = X'WX + alpha (sum of weights) D = R'R, and D diagonal in R's frame.

    A - alpha w_i D has the eigenvalues 1 - w_i gain_j >= 1 - w_i / (sum of weights): nothing cancels.
    """
    task = LeastSquares(source, alpha, fit_intercept)
    total, offset = task.gram.sum_weight, int(fit_intercept)
    root = task.factor.inverse_root()
    gain = np.zeros(root.shape[1])
    if alpha:
        penalty = np.concatenate([np.zeros(offset), task.penalty]) / total
        inner = root.T @ (penalty[:, None] * root)
        gain, vectors = scipy.linalg.eigh((inner + inner.T) / 2)
        gain, root = np.maximum(gain, 0.0), root @ vectors
    origin = root[0] if offset else np.zeros(root.shape[1])
    right = root.T @ task.right_hand_side()
    scaling = task.gram.scaling
    return Basis(scaling, root[offset:], origin, 1.0 - gain * total, gain, right, 0.0, 0.0, total, (1.0,))


def _summed(stretch: Block, basis: Basis) -> LeftOut:
    pieces = (_of_piece(stretch.part(begin, begin + ROWS), basis) for begin in range(0, stretch.n_rows, ROWS))
    total = next(pieces)
    for piece in pieces:
        total = total + piece
    return total


def _of_piece(part: Block, basis: Basis) -> LeftOut:
    errors, weight = _piece(part, basis)
    is_row = weight > 0
    is_alone = np.isnan(errors) & is_row[:, None]
    if is_alone.any() or not is_row.all():
        errors = np.where(is_row[:, None], np.nan_to_num(errors), 0.0)
    squares = np.square(errors)
    counted = np.where(is_alone, 0.0, weight[:, None])
    alone = part.first_row + np.flatnonzero(is_alone.any(axis=1))
    sums = (weight @ squares, weight @ np.square(squares), counted.sum(axis=0))
    return LeftOut(*sums, 0.0, int(is_row.sum()), tuple(alone[:SHOWN].tolist()), len(alone))


def _rows(stretch: Block, basis: Basis) -> tuple[Array, Array]:
    """Errors rows x alphas, scaled, NaN where a row stands alone, and weights."""
    pieces = [_piece(stretch.part(begin, begin + ROWS), basis) for begin in range(0, stretch.n_rows, ROWS)]
    errors, weights = zip(*pieces, strict=True)
    return np.concatenate(errors), np.concatenate(weights)


def _piece(part: Block, basis: Basis) -> tuple[Array, Array]:
    s, t = basis.scaling, _directions(part.X, basis)
    if part.y is None:
        raise ValueError("leave-one-out needs a target")
    y = part.y * s.y_scale - s.y_shift
    weight = np.ones(len(y)) if part.weight is None else part.weight
    w = weight * s.weight_scale
    is_equal = bool((w == w[0]).all())
    errors = np.empty((len(y), len(basis.alphas)))
    if is_equal:
        c = np.array([basis.curvatures(alpha, w[0]) for alpha in basis.alphas])
        leverage = w[0] * (basis.level + (t * t) @ (1.0 / c).T)
        residual = y[:, None] - basis.start - t @ (basis.right / c).T
        errors[:] = _left(residual, leverage)
    else:
        for a, alpha in enumerate(basis.alphas):
            c = basis.curvatures(alpha, w)
            leverage = w * (basis.level + (t * t / c).sum(axis=1))
            errors[:, a] = _left(y - basis.start - (t * basis.right / c).sum(axis=1), leverage)
    return errors, weight


def _left(residual: Array, leverage: Array) -> Array:
    complement = 1.0 - leverage
    return np.divide(residual, complement, out=np.full_like(complement, np.nan), where=complement > ALONE)
