"""Kernel ridge regression on gathered rows: what is minimised, the matrix of the kernel, and products with it.

    sum_i a_i (y_i - b - f(x_i))^2 / (2 sum_i a_i)  +  alpha/2 c'Gc,    f = sum_j c_j k(x_j, .),   G_ij = k(x_i, x_j)

In shares s_i = a_i / sum a the minimum solves  (G + alpha / s) c = y - b 1  with  sum_i c_i = 0  where there is an
intercept. Targets are scaled by a power of two to a size near 1.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Array, Columns
from certifit.data.source import Block, Source
from certifit.data.user_input import refuse_nonfinite
from certifit.mathematics.kernels.algebra import Kernel
from certifit.mathematics.kernels.mercer import NO_DIRECTION, MercerTest, matrix_test
from certifit.mathematics.kernels.tiles import multiply
from certifit.runtime import check_memory
from certifit.statistics.gram import counted, refuse_no_weight
from certifit.statistics.residual import UNIT

PRECOMPUTED = "precomputed"
COPIES = 2.5  # of the matrix that an exact fit holds at a time
SHORT = 1e-7  # rounding of a matrix in float32, of its largest eigenvalue
LANDMARKS = "Use n_landmarks=1000, which keeps so many rows, or sample rows."
FEW_POINTS = 300  # whose kernel costs less than the calls that make parts of it


@dataclass(frozen=True)
class KernelState:
    """A function b + sum_j c_j k(x_j, .) by the points that it keeps; of a precomputed kernel there are none."""

    points: Array
    dual: Array
    intercept: float


@dataclass(frozen=True)
class Standard:
    """What the kernel sees of a row: (x - mean) / scale."""

    mean: Array
    scale: Array

    @staticmethod
    def of(X: Array, share: Array) -> Standard:
        """Mean and standard deviation of every column; a constant column keeps its unit."""
        power = np.ldexp(1.0, np.frexp(np.abs(X).max(axis=0, initial=0.0))[1])
        scaled = X / power
        mean = share @ scaled
        spread = np.sqrt(share @ np.square(scaled - mean))
        is_constant = ~(spread > 1e-13 * np.abs(mean)) | ~np.isfinite(spread)
        return Standard(mean * power, np.where(is_constant, 1.0, spread * power))

    def __call__(self, X: Array) -> Array:
        """Standardised rows."""
        return np.ascontiguousarray((X - self.mean) / self.scale)


def apart(stated: Array, wanted: Array) -> float:
    """The largest difference of a column, relative to its largest entry; infinite of other shapes."""
    if stated.shape != wanted.shape:
        return np.inf
    sizes = np.abs(wanted).max(axis=0, initial=0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shares = np.where(stated == wanted, 0.0, np.abs(stated - wanted) / sizes)
    return float(np.nan_to_num(shares, nan=np.inf, posinf=np.inf).max(initial=0.0))


def dense_rows(X: object) -> Array:
    """Rows of any kind as float64."""
    if isinstance(X, Columns):
        return np.ascontiguousarray(X.toarray(), dtype=np.float64)
    return np.ascontiguousarray(sp.csr_array(X).toarray() if sp.issparse(X) else X, dtype=np.float64)


def shares_of(block: Block) -> tuple[Array, float]:
    """The weights of rows as shares of their sum, and that sum."""
    weight = np.ones(block.n_rows) if block.weight is None else np.asarray(block.weight, dtype=np.float64)
    power = float(np.ldexp(1.0, -int(np.frexp(weight.max(initial=0.0))[1])))
    refuse_no_weight(float(weight.max(initial=0.0)))
    total = float((weight * power).sum())
    with np.errstate(over="ignore"):
        return weight * power / total, total / power


class KernelRows:
    """Gathered rows of positive weight as a kernel sees them.

    kernel: None is a precomputed one, whose matrix the rows are. standard: None is the rows as they are; a flag that
    asks for the spreads of these rows.
    """

    def __init__(self, source: Source, kernel: Kernel | None, standard: Standard | bool | None = None) -> None:
        self.gathered: Block = source.gather()
        self.n_rows = self.gathered.n_rows
        self.block: Block = counted(self.gathered)
        weights = self.gathered.weight
        self.seen: Array = np.ones(self.n_rows, dtype=bool) if weights is None else np.asarray(weights) > 0
        n, d = self.block.n_rows, source.n_features
        check_memory(8.0 * 3 * n * d, f"A kernel of {n:,} rows and {d:,} columns", "Sample rows.")
        X = dense_rows(self.block.X)
        if not np.isfinite(X).all():
            refuse_nonfinite(source)
        self.share, self.sum_weight = shares_of(self.block)
        self.names = source.names
        self.standard = Standard.of(X, self.share) if standard is True else standard or None
        if kernel is None:
            self.points = self._square(X)
            self.kernel: Kernel | None = None
        else:
            self.points = X if self.standard is None else self.standard(X)
            self.raw = X  # before it is standardised
            self.kernel = kernel.resolved(self.points, self.share)

    def seen_as(self, points: Array) -> KernelRows:
        """The same rows as a kernel that is proven sees them after other maps."""
        other = copy(self)
        for made in ("matrix", "_values", "few_values"):
            other.__dict__.pop(made, None)
        other.points = points
        return other

    @property
    def n_points(self) -> int:
        """Number of rows of positive weight."""
        return len(self.points)

    def _square(self, X: Array) -> Array:
        if X.shape[1] != self.n_rows:
            raise ValueError(
                f"kernel='precomputed' needs a square matrix, one column per row. Got {self.n_rows} rows and "
                f"{X.shape[1]} columns."
            )
        return np.ascontiguousarray(X[:, self.seen])

    @property
    def is_proven(self) -> bool:
        """Whether the kernel is Mercer by construction."""
        return self.kernel is not None and self.kernel.is_proven

    @cached_property
    def _values(self) -> Array:
        """The matrix as the kernel gives it."""
        n = self.n_points
        check_memory(8.0 * COPIES * n * n, f"An exact fit of a kernel to {n:,} rows", LANDMARKS)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.kernel is None:
                values = self.points
            else:
                values = self.kernel.matrix(self.points, None if self.is_proven else self.points)
        _refuse_infinite(values)
        return values

    @cached_property
    def matrix(self) -> Array:
        """G, symmetric."""
        return self._values if self.is_proven else np.ascontiguousarray((self._values + self._values.T) / 2)

    @cached_property
    def few_values(self) -> Array | None:
        """k among all points, for solvers that sum parts of it many times; None of many points."""
        is_made = self.kernel is not None and self.is_proven and self.n_points <= FEW_POINTS
        return self.kernel.matrix(self.points) if self.kernel is not None and is_made else None

    @cached_property
    def tested(self) -> MercerTest:
        """What the rows say of a kernel that is not proven to be Mercer."""
        is_short = self.kernel is None and _is_of_float32(self._values)
        return matrix_test(self._values, rounded=SHORT if is_short else NO_DIRECTION)

    def times(self, points: Array, V: Array) -> Array:
        """k(rows, points) V, by the matrix that is held or in tiles."""
        if self.are(points) and ("matrix" in self.__dict__ or not self.is_proven):
            return multiply(self.matrix, V)
        assert self.kernel is not None
        return self.kernel.times(self.points, points, V)

    def are(self, points: Array) -> bool:
        """Whether these are the points of a state; those of a precomputed kernel are always taken to be."""
        if self.kernel is None or points is self.points:
            return True
        return points.shape == self.points.shape and np.array_equal(points, self.points)

    def seen_of(self, dual: Array) -> Array:
        """The coefficients of rows of positive weight, of those that a state keeps."""
        return dual[self.seen] if self.kernel is None else dual

    def on_every_row(self, dual: Array) -> Array:
        """Coefficients of a precomputed kernel for all its columns, 0 for rows of weight 0; of others as they are."""
        if self.kernel is not None or self.seen.all():
            return dual
        every = np.zeros((self.n_rows, *dual.shape[1:]))
        every[self.seen] = dual
        return every

    def kept(self) -> Array:
        """The points that a state keeps: the rows, or none of a precomputed kernel."""
        return self.points if self.kernel is not None else np.zeros((0, len(self.names)))

    def error_times(self, points: Array, v: Array) -> Array:
        """A bound on what rounding adds to k(rows, points) v, v >= 0."""
        if self.kernel is None:
            return np.zeros(self.n_points)
        return self.kernel.error_times_by(lambda V: self.times(points, V), self.points, points, v)

    def sizes(self, points: Array) -> Array:
        """Roots of k(x, x): no |k(x, z)| of a Mercer kernel is above the product of both."""
        if self.kernel is None:
            return np.asarray(np.sqrt(np.maximum(np.diagonal(self.matrix), 0.0)))
        with np.errstate(over="ignore", invalid="ignore"):
            squares = self.kernel.diagonal(points)
        _refuse_infinite(squares)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def _refuse_infinite(values: Array) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        is_finite = bool(np.isfinite(values.sum()))  # reads the matrix once, and a finite sum has finite terms
    if not is_finite and not np.isfinite(values).all():
        raise ValueError(
            "The kernel of some rows of X is beyond the largest float64. Use standardize=True, or divide columns by "
            "a power of ten."
        )


def _is_of_float32(values: Array) -> bool:
    """Whether a matrix was computed in float32, whatever holds it now: all its numbers are some of float32, not whole.

    Whole numbers are counted, not rounded.
    """
    with np.errstate(over="ignore", under="ignore"):
        return np.array_equal(values.astype(np.float32), values) and not np.array_equal(np.rint(values), values)


class KernelRidgeTask:
    """Rows, a kernel and a penalty. alpha None is 1 / sum of weights; n_landmarks None is the exact model."""

    def __init__(
        self, rows: KernelRows, alpha: float | None, fit_intercept: bool, n_landmarks: int | None = None
    ) -> None:
        if rows.block.y is None:
            raise ValueError("KernelRidge needs a target.")
        self.rows, self.fit_intercept, self.n_landmarks = rows, fit_intercept, n_landmarks
        self.alpha = 1.0 / rows.sum_weight if alpha is None else alpha
        y = np.asarray(rows.block.y, dtype=np.float64)
        self.y_scale = float(np.ldexp(1.0, -int(np.frexp(np.abs(y).max(initial=0.0))[1])))
        self.y: Array = y * self.y_scale
        self.mean = float(rows.share @ self.y)
        if n_landmarks is not None and n_landmarks > rows.n_points:
            raise ValueError(f"n_landmarks must be at most the number of rows, {rows.n_points}. Got {n_landmarks}.")

    @property
    def share(self) -> Array:
        """Weights of the rows, of sum 1."""
        return self.rows.share

    @property
    def null(self) -> float:
        """The objective of the best constant, or of 0 without an intercept; never above it for rounding."""
        level = self.mean if self.fit_intercept else 0.0
        off = (len(self.y) + 4) * UNIT * float(np.abs(self.y).max()) if self.fit_intercept else 0.0  # of the mean
        return max(float(self.share @ np.square(self.y - level)) * (1 - 1e-12) - off**2, 0.0) / 2

    @property
    def is_constant(self) -> bool:
        """Whether the intercept alone meets every row."""
        return self.fit_intercept and bool((self.y == self.y[0]).all())

    def state(self, points: Array, dual: Array, intercept: float) -> KernelState:
        """A state in the user's units."""
        with np.errstate(over="ignore"):
            coefficients = dual / self.y_scale
        if not np.isfinite(coefficients).all():
            raise ValueError(
                f"Coefficients exceed the largest float64: alpha = {self.alpha:g} is too small for this target. "
                "Raise alpha, or divide y by a power of ten."
            )
        return KernelState(points, self.rows.on_every_row(coefficients), intercept / self.y_scale)

    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""
        spread = float(np.sqrt(self.share @ np.square(self.y - self.mean)))
        return {
            "n_rows": self.rows.n_rows,
            "sum_weight": self.rows.sum_weight,
            "target_mean": self.mean / self.y_scale,
            "target_sd": spread / self.y_scale,
        }
