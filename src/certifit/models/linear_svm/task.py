"""Linear support vector machines on gathered rows: what is minimised, and products with the rows.

    alpha/2 |w|^2 + sum_i s_i cost(1 - y_i (b + x_i'w)),    s_i the weights of the rows, of sum 1

In units of alpha, C_i = s_i / alpha, the dual is

    maximise  sum_i a_i - sum_i C_i cost*(a_i / C_i) - | sum_i y_i a_i x_i |^2 / 2,    sum_i y_i a_i = 0 (with b)

Dense columns are seen less their means where there is an intercept, which then takes the means up; with standardize in
units of their spreads. Weights are told in the units of the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.data.user_input import refuse_nonfinite
from certifit.minimise.problem import Run
from certifit.models.classifier import codes_of
from certifit.models.kernel.task import shares_of
from certifit.models.svm.slack import Slack
from certifit.models.svm.task import Machine, class_machines
from certifit.runtime import FEWER_CLASSES, check_memory, core, n_threads
from certifit.statistics.gram import counted

Rows: TypeAlias = Array | sp.csr_array
MOST_COLUMNS = 1500  # of a system that is factored
BLOCK_ROWS = 1024  # whose sums are added before they join the others
ROWS_PER_COLUMN = 64  # of such a block, where products of columns are summed


@dataclass(frozen=True)
class LinearState:
    """Weights of the columns, a row per machine, and their intercepts."""

    coef: Array
    intercepts: Array


@dataclass(frozen=True)
class LinearRun(Run[LinearState]):
    """A run."""


class LinearTask:
    """Rows in memory, and the machines that are fitted to them, each by itself.

    witness: multipliers of each machine that a solver left for the proof; None where none did. left: the gap of those
    that the proof had to find by itself, in units of alpha.
    """

    def __init__(
        self,
        source: Source,
        n_classes: int,
        alpha: float | None,
        slack: Slack,
        *,
        has_intercept: bool,
        standardize: bool,
        is_centred: bool,
    ) -> None:
        gathered = source.gather(keeps_sparse=True)
        block = counted(gathered)
        n, d = block.n_rows, source.n_features
        check_memory(0.0 if sp.issparse(block.X) else 8.0 * 2 * n * d, f"{n:,} rows of {d:,} columns", "Sample rows.")
        what = f"A linear support vector machine of {n_classes:,} classes on {n:,} rows"
        check_memory(8.0 * 4 * n * (n_classes if n_classes > 2 else 1), what, FEWER_CLASSES)
        X = _plain(block.X)
        if not np.isfinite(X.data if isinstance(X, sp.csr_array) else X).all():
            refuse_nonfinite(source)
        self.n_rows, self.names = gathered.n_rows, source.names
        share, self.sum_weight = shares_of(block)
        self.alpha = 1.0 / self.sum_weight if alpha is None else float(alpha)
        self.has_intercept, self.slack = has_intercept, slack
        is_moved = has_intercept and is_centred and not sp.issparse(X)
        mean, spread = moments(X, share, has_intercept) if is_moved or standardize else (np.zeros(d), np.ones(d))
        self.scale: Array = spread if standardize else np.ones(d)
        self.centre: Array = mean if is_moved else np.zeros(d)
        self.X: Rows = _seen(X, self.centre, self.scale)
        machines = class_machines(codes_of(block), share / self.alpha, n_classes, "one-vs-rest", has_intercept)
        self.machines: tuple[Machine, ...] = tuple(replace(machine, slack=slack) for machine in machines)
        self.witness: list[Array | None] = [None] * len(self.machines)
        self.left = [0.0] * len(self.machines)

    def on(self, X: Array) -> LinearTask:
        """The same machines on other columns of the same rows."""
        other = copy(self)
        other.X = X
        for made_of_rows in ("rows", "squares"):
            other.__dict__.pop(made_of_rows, None)
        return other

    @cached_property
    def rows(self) -> object:
        """The rows as the core takes them."""
        return Block(self.X, None, None).rows

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    @property
    def n_points(self) -> int:
        """Number of rows of positive weight."""
        return int(self.X.shape[0])

    @property
    def names_multipliers(self) -> bool:
        """Whether weights name the multipliers that prove them: squared slacks, by a method that ends at rounding."""
        return self.slack.is_squared and self.n_columns <= MOST_COLUMNS

    @cached_property
    def squares(self) -> Array:
        """|x|^2 of the rows as they are seen."""
        return np.asarray(core.row_squares(self.rows, n_threads()))

    @property
    def most_entries(self) -> int:
        """The most numbers of a row that are not 0."""
        return int(np.diff(self.X.indptr).max(initial=0)) if isinstance(self.X, sp.csr_array) else self.n_columns

    def scores(self, w: Array) -> Array:
        """x'w of the rows."""
        return np.asarray(core.scores(self.rows, np.ascontiguousarray(w), 0.0, n_threads()))

    def sums(self, weights: Array, curvatures: Array | None = None) -> tuple[Array, Array]:
        """Sum of weight_i (x_i, 1), and of curvature_i (x_i, 1)(x_i, 1)'."""
        return _sums(self.rows, self.n_columns, weights, curvatures)

    def total(self, weights: Array) -> Array:
        """Sum of weight_i (x_i, 1) for a solver: of CSR row after row, with more rounding than `sums`."""
        if isinstance(self.X, sp.csr_array):
            return np.append(weights @ self.X, weights.sum())
        return self.sums(weights)[0]

    def square_of(self, rows: Array, curvatures: Array) -> Array:
        """Sum of curvature_i (x_i, 1)(x_i, 1)' over some of the rows."""
        return _sums(Block(self.X[rows], None, None).rows, self.n_columns, np.zeros(len(rows)), curvatures)[1]

    def column_squares(self, curvatures: Array) -> Array:
        """The diagonal of the sum of curvature_i (x_i, 1)(x_i, 1)'."""
        squares = self.X.multiply(self.X) if isinstance(self.X, sp.csr_array) else np.square(self.X)
        return np.append(np.asarray(curvatures @ squares), curvatures.sum())

    def told(self, weights: Sequence[Array], intercepts: Sequence[float]) -> LinearState:
        """Weights of the rows as they are seen, in the units of the columns."""
        coef = np.stack(list(weights)) / self.scale
        return LinearState(coef, np.asarray(intercepts, dtype=np.float64) - coef @ self.centre)

    def seen(self, state: LinearState, p: int) -> tuple[Array, float]:
        """Weights and intercept of a machine for the rows as they are seen."""
        return state.coef[p] * self.scale, float(state.intercepts[p] + state.coef[p] @ self.centre)

    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""
        return {"n_rows": self.n_rows, "sum_weight": self.sum_weight}


def _sums(rows: object, n_columns: int, weights: Array, curvatures: Array | None) -> tuple[Array, Array]:
    """Sum of weight_i (x_i, 1), and of curvature_i (x_i, 1)(x_i, 1)', of rows as the core takes them."""
    # A block has a square of sums, which must cost less than its rows.
    block_rows = BLOCK_ROWS if curvatures is None else max(BLOCK_ROWS, ROWS_PER_COLUMN * n_columns)
    units = (np.ones(n_columns), np.zeros(n_columns), 1.0, block_rows, n_threads())
    gradient, hessian, *_ = core.weighted_sums(rows, np.ascontiguousarray(weights), curvatures, None, *units)
    return np.asarray(gradient[0]), np.zeros((0, 0)) if hessian is None else np.asarray(hessian[0])


def best_intercept(machine: Machine, z: Array) -> float:
    """The b at which the sum of costs is least, z = x'w of the rows; the midpoint where there are many."""
    if not machine.has_intercept:
        return 0.0
    if machine.slack.is_squared:
        return _squared_intercept(machine, z)
    kink = machine.sign - z  # where the slack of a row begins or ends
    order = np.argsort(kink, kind="stable")
    mass = np.cumsum(machine.bound[order])
    level = float(machine.bound[machine.sign > 0].sum())
    close = 1e-14 * mass[-1]
    first = min(int(np.searchsorted(mass, level - close)), len(kink) - 1)
    last = min(int(np.searchsorted(mass, level + close, side="right")), len(kink) - 1)
    low, high = kink[order[first]], kink[order[last]]
    return float(low + (high - low) / 2)


def _squared_intercept(machine: Machine, z: Array) -> float:
    """Where sum_i y_i C_i max(0, 1 - y_i (z_i + b)) is 0: it is piecewise linear and falls."""
    kink = np.sort(machine.sign - z)

    def slope(b: float) -> float:
        return float((machine.sign * machine.bound) @ np.maximum(1 - machine.sign * (z + b), 0.0))

    low, high = 0, len(kink) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if slope(kink[middle]) > 0 else (low, middle)
    left, right = slope(kink[low]), slope(kink[high])
    share = left / (left - right) if left > right else 0.5
    return float(kink[low] + np.clip(share, 0.0, 1.0) * (kink[high] - kink[low]))


def _plain(X: object) -> Rows:
    """Rows of any kind as an array or as CSR."""
    if sp.issparse(X):
        return sp.csr_array(X, dtype=np.float64)
    return np.ascontiguousarray(X, dtype=np.float64)


@np.errstate(all="ignore")
def moments(X: Rows, share: Array, about_mean: bool) -> tuple[Array, Array]:
    """Mean and standard deviation of every column, or the root of its mean square; 1 of a constant one.

    In units of the largest entry, so that no square leaves float64. What is left of the mean, which is rounded beside
    the entries, is taken off too.
    """
    mean = np.asarray(share @ X)
    least, most = _ends(X)
    is_constant = (least == most) if about_mean else (least == 0) & (most == 0)
    power = np.frexp(np.maximum(np.abs(least), np.abs(most)))[1]
    middle = np.ldexp(mean, -power) if about_mean else np.zeros_like(mean)
    square = _squares(X, share, power, middle, about_mean)
    spread = np.ldexp(np.sqrt(square), power)
    return mean, np.where(is_constant | ~np.isfinite(spread) | (spread == 0), 1.0, spread)


def _ends(X: Rows) -> tuple[Array, Array]:
    """The least and the largest entry of every column."""
    if isinstance(X, sp.csr_array):
        return tuple(np.asarray(end.toarray()).ravel() for end in (X.min(axis=0), X.max(axis=0)))  # type: ignore[return-value]
    return X.min(axis=0), X.max(axis=0)


def _squares(X: Rows, share: Array, power: Array, middle: Array, about_mean: bool) -> Array:
    """Mean squares of columns in units of powers of two, about a middle near the mean and then about the mean."""
    if not isinstance(X, sp.csr_array):
        apart = np.ldexp(X, -power) - middle
        apart -= share @ apart if about_mean else 0.0
        return np.asarray(share @ np.square(apart))
    of_entry, columns = np.repeat(share, np.diff(X.indptr)), X.indices

    def summed(values: Array) -> Array:
        return np.bincount(columns, of_entry * values, X.shape[1])

    rest = np.maximum(1 - summed(np.ones(len(columns))), 0.0)  # the share of the entries that are not stored
    apart = np.ldexp(X.data, -power[columns]) - middle[columns]
    off = summed(apart) - rest * middle if about_mean else np.zeros_like(middle)
    squares = summed(np.square(apart - off[columns])) + rest * np.square(middle + off)
    full = np.flatnonzero(2 * np.bincount(columns, minlength=X.shape[1]) > X.shape[0])  # rest would be a rounding
    if len(full):
        squares[full] = _squares(X[:, full].toarray(), share, power[full], middle[full], about_mean)
    return np.asarray(squares)


def _seen(X: Rows, centre: Array, scale: Array) -> Rows:
    """Rows less the centre, in units of the scale; a copy only where they change."""
    is_scaled = bool((scale != 1).any())
    if isinstance(X, sp.csr_array):
        # A product with a diagonal matrix would leave the indices of rows unsorted, which the core does not read.
        return sp.csr_array((X.data / scale[X.indices], X.indices, X.indptr), shape=X.shape) if is_scaled else X
    if is_scaled or centre.any():
        return np.ascontiguousarray((X - centre) / scale)
    return X
