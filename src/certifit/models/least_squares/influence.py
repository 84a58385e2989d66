"""Influence of single rows on a least squares fit: leverage, residuals, Cook's distance, DFFITS.

In the frame t = R^-T (1, x - shift), with A = R'R the matrix of the fit, sum_i weight_i t_i t_i' = I. Then

    h_i = |t_i|^2                                leverage
    r_i = e_i / (s sqrt(1 - h_i))                standardised residual, s^2 = RSS / (N - p)
    r_i sqrt((N - p - 1) / (N - p - r_i^2))      studentised residual: s^2 without the row
    r_i^2 h_i / (p (1 - h_i))                    Cook's distance
    studentised sqrt(h_i / (1 - h_i))            DFFITS

With frequency weights the numbers are those of one of the weight_i equal rows; with variance weights those of the row
sqrt(weight_i) (x_i, y_i).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Array
from certifit.data.source import Block
from certifit.inference.least_squares import EPSILON, Convention, Inference
from certifit.inference.summary import data_frame
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.least_squares.task import LeastSquares
from certifit.runtime import core, n_threads, one_blas_thread
from certifit.statistics import twofold
from certifit.statistics.gram import Scaling

if TYPE_CHECKING:
    import pandas

PIECE_BITS = 20  # logarithm to base 2 of the numbers that are read at a time
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
            root, low = twofold.multiply(task.factor.inverse_root_pair(), (size, np.zeros(())))
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
        directions = _scaled(X, self.scaling) @ self.root[first:]
        return np.asarray(directions + self.root[0] if first else directions)

    def _twofold_directions(self, X: Any, low: Array) -> Array:
        s, first = self.scaling, int(self.has_intercept)
        dense = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        x, x_low = twofold.two_sum(dense * s.scale, -s.shift)  # scales are powers of 2
        total: twofold.Pair = (np.zeros((len(dense), len(self.root))), np.zeros((len(dense), len(self.root))))
        for j in range(first, len(self.root)):
            column = (x[:, [j - first]], x_low[:, [j - first]])
            total = twofold.add(total, twofold.multiply(column, (self.root[j], low[j])))
        if first:
            total = twofold.add(total, (self.root[0], low[0]))
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
        return self._taken(np.argsort(-self.cooks_distance, kind="stable")[:k])

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
    return dense * s.scale - s.shift


def _piece_rows(block_rows: int, n_columns: int) -> int:
    """Rows of a piece: a block, or a part of it where a block of wide rows is large; some 8 MB."""
    piece = 1 << max(6, PIECE_BITS - n_columns.bit_length())
    return piece if piece < block_rows and block_rows % piece == 0 else block_rows


def _of_stretch(stretch: Block, frame: Frame, fit: Inference) -> Influence:
    return Influence.joined([_measured(block, frame, fit) for block in frame.pieces(stretch)])


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
