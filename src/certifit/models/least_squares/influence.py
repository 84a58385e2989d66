"""Influence of single rows on a least squares fit: leverage, residuals, Cook's distance, DFFITS.

In the frame t = R^-T (1, x - shift), with A = R'R the matrix of the fit, sum_i weight_i t_i t_i' = I. Then

    h_i = |t_i|^2                                leverage
    r_i = e_i / (s sqrt(1 - h_i))                standardised residual, s^2 = RSS / (N - p)
    r_i sqrt((N - p - 1) / (N - p - r_i^2))      studentised residual: s^2 without the row
    r_i^2 h_i / (p (1 - h_i))                    Cook's distance
    studentised sqrt(h_i / (1 - h_i))            DFFITS

With frequency weights the numbers are those of one of the weight_i equal rows; with variance weights those of the row
sqrt(weight_i) (x_i, y_i).

Exact leave-one-out errors of least squares and ridge, along a path of alphas, in one or two passes.

Without row i the penalty is lambda_i = alpha (sum of weights - w_i). With A_i = X'WX + lambda_i (all rows, the penalty
of the fit without i), h_i = w_i a_i'A_i^-1 a_i and e_i the residual of that system, the row's error is e_i / (1 - h_i).
A row with h_i = 1 cannot be predicted by the others: it is reported, not divided by zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.inference.least_squares import EPSILON, Convention, Inference
from certifit.inference.summary import data_frame
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.least_squares.task import LeastSquares
from certifit.runtime import core, in_order, n_threads, one_blas_thread
from certifit.statistics import double_double as dd
from certifit.statistics.gram import Scaling

if TYPE_CHECKING:
    import pandas


PIECE_BITS = 17  # logarithm to base 2 of the numbers that are read at a time: they stay in the cache
PLAIN_CONDITION = 1e5  # float64 keeps directions to about 2^-53 times the condition of the columns
ALONE = 1e-9  # 1 - h below this: the fit passes through the row whatever its target


@dataclass(frozen=True)
class SeenRows:
    """Rows in the frame of a fit. An observation is a row (frequency) or sqrt(weight) times it (variance)."""

    directions: Array  # (n, p): t of an observation
    leverage: Array  # (n,): its h
    residual: Array  # (n,): its e, in units of 2**exponent
    times: Array  # (n,): how many observations the row is; 0 for weight 0
    raw: Array  # (n,): y - prediction

    @property
    def complement(self) -> Array:
        """1 - h; nan where only the row itself tells."""
        complement = 1.0 - self.leverage
        return np.where(complement > ALONE, complement, np.nan)


@dataclass(frozen=True)
class Frame:
    """A fit as its rows are seen from: all that `SeenRows` needs; no rows."""

    scaling: Scaling
    root: Array  # (p, p) upper triangular: A^-1 = root root', in scaled units
    low: Array | None  # low part of the root, where the condition asks for it
    state: Weights
    has_intercept: bool
    weights: Convention
    exponent: int
    piece_rows: int  # rows that are seen at a time

    @staticmethod
    def of(task: LeastSquares, state: Weights, fit: Inference) -> Frame:
        """The frame of a task whose columns are independent."""
        size = np.sqrt(task.gram.scaling.weight_scale)
        root, low = task.factor.inverse_root() * size, None
        if task.factor.condition > PLAIN_CONDITION:
            root, low = dd.multiply(task.factor.inverse_root_pair(), (size, np.zeros(())))
        settings = (bool(task.fit_intercept), fit.weights, fit.exponent)
        return Frame(task.gram.scaling, root, low, state, *settings, _piece_rows(task.source.block_rows, len(root)))

    def pieces(self, stretch: Block) -> Iterator[Block]:
        """A stretch cut at the ends of blocks and pieces of them: sums do not depend on the chunks of rows."""
        return (stretch.part(begin, begin + self.piece_rows) for begin in range(0, stretch.n_rows, self.piece_rows))

    @one_blas_thread
    def seen(self, block: Block) -> SeenRows:
        """The rows of a block."""
        if block.y is None:
            raise ValueError("The rows have no target. Pass y, or a scan with target='name of the column'.")
        directions = self._directions(block.X)
        raw = block.y - core.scores(block.rows, self.state.coef, self.state.intercept, n_threads())
        residual = np.ldexp(raw, -self.exponent)
        times = np.ones(len(raw)) if block.weight is None else block.weight
        if self.weights == "variance":
            size = np.sqrt(times)
            directions, residual = directions * size[:, None], residual * size
            times = np.where(times > 0, 1.0, 0.0)
        leverage = np.einsum("ij,ij->i", directions, directions)
        return SeenRows(directions, leverage, residual, times, raw)

    def _directions(self, X: Any) -> Array:
        """(1, x - shift) root: |t_i|^2 <= 1, while the products that cancel in it grow with the condition."""
        if self.low is not None:
            return self._twofold_directions(X, self.low)
        first = int(self.has_intercept)
        directions = np.asarray(_scaled(X, self.scaling) @ self.root[first:])
        if first:
            directions += self.root[0]
        return directions

    def _twofold_directions(self, X: Any, low: Array) -> Array:
        s, first = self.scaling, int(self.has_intercept)
        dense = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        x, x_low = dd.two_sum(dense * s.scale, -s.shift)  # scales are powers of 2
        total: dd.Pair = (np.zeros((len(dense), len(self.root))), np.zeros((len(dense), len(self.root))))
        for j in range(first, len(self.root)):
            column = (x[:, [j - first]], x_low[:, [j - first]])
            total = dd.add(total, dd.multiply(column, (self.root[j], low[j])))
        if first:
            total = dd.add(total, (self.root[0], low[0]))
        return np.asarray(total[0])


@dataclass(frozen=True, eq=False)
class Influence:
    """One number per row in every array; nan where it has no value.

    nan: all numbers of a row of weight 0; what divides by 1 - leverage, where the leverage is 1; what divides by the
    spread of the residuals, at an exact fit; what needs another degree of freedom, where there is none.
    """

    row: Array  # numbers of the rows, from 0
    leverage: Array
    residual: Array  # y - prediction
    standardised: Array
    studentised: Array
    cooks_distance: Array
    dffits: Array

    def __len__(self) -> int:
        return len(self.row)

    def most(self, k: int = 10) -> Influence:
        """The k rows of largest Cook's distance, largest first; ties and nan in the order of the rows."""
        if k < 1:
            raise ValueError(f"k must be at least 1. Got {k}.")
        size = np.where(np.isnan(self.cooks_distance), -np.inf, self.cooks_distance)
        least = np.partition(size, len(size) - k)[len(size) - k] if k < len(size) else -np.inf
        largest = np.flatnonzero(size >= least)  # few, so that not all rows are sorted
        return self._taken(largest[np.argsort(-size[largest], kind="stable")[:k]])

    def to_frame(self) -> pandas.DataFrame:
        """A pandas frame: a row per row, their numbers in the index."""
        names = [field.name for field in fields(self)][1:]
        return data_frame({name: getattr(self, name) for name in names}, self.row.tolist(), names)

    @staticmethod
    def joined(parts: list[Influence]) -> Influence:
        """The rows of all parts, in order."""
        names = [field.name for field in fields(Influence)]
        return Influence(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def _taken(self, places: Array) -> Influence:
        return Influence(*(getattr(self, field.name)[places] for field in fields(self)))


def influence_iter(task: LeastSquares, state: Weights, fit: Inference) -> Iterator[Influence]:
    """The influence of the rows, stretch by stretch, in order: one pass."""
    return iter(task.source.map(partial(_of_stretch, frame=Frame.of(task, state, fit), fit=fit)))


def _scaled(X: Any, s: Scaling) -> Any:
    """x scale - shift; sparse rows are not shifted and stay sparse."""
    if sp.issparse(X) and not s.shift.any():
        return sp.csr_array((X.data * s.scale[X.indices], X.indices, X.indptr), shape=X.shape)
    dense = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    scaled = dense * s.scale
    scaled -= s.shift
    return scaled


def _piece_rows(block_rows: int, n_columns: int) -> int:
    """Rows of a piece: a block, or a part of it where a block of wide rows is large; some 1 MB."""
    piece = 1 << max(6, PIECE_BITS - n_columns.bit_length())
    return piece if piece < block_rows and block_rows % piece == 0 else block_rows


def _of_stretch(stretch: Block, frame: Frame, fit: Inference) -> Influence:
    return Influence.joined(list(in_order(partial(_measured, frame=frame, fit=fit), frame.pieces(stretch))))


def _measured(block: Block, frame: Frame, fit: Inference) -> Influence:
    seen = frame.seen(block)
    df, p = fit.df_resid, len(fit.names)
    absent = np.where(seen.times > 0, 0.0, np.nan)
    spread = np.nan if fit.is_exact else np.sqrt(fit.rss / df)
    with np.errstate(divide="ignore", invalid="ignore"):
        standardised = seen.residual / (spread * np.sqrt(seen.complement)) + absent
        left = df - standardised**2  # RSS without the row, over s^2
        left = np.where(left <= 8 * EPSILON * df, 0.0, left)
        studentised = standardised * np.sqrt((df - 1) / left) if df > 1 else np.full(len(left), np.nan)
        ratio = seen.leverage / seen.complement
        row = np.arange(block.first_row, block.first_row + block.n_rows)
        cooks, dffits = standardised**2 * ratio / p, studentised * np.sqrt(ratio)
    return Influence(row, seen.leverage + absent, seen.raw + absent, standardised, studentised, cooks, dffits)


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
