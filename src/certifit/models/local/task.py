"""Local regression on gathered rows: the rows, what weighs them at a query, and the terms of the local fit.

    minimise over theta:  sum_i a_i K(|x_i - x| / tau) (y_i - theta'phi(x_i))^2        at every query x

Distances are between standardised columns. Equal rows count as one, with the sum of their weights, in the order of
their values: the fit does not depend on the order of the rows, and weight 2 is the row twice. Targets are scaled by a
power of two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.data.user_input import refuse_nonfinite
from certifit.models.kernel.task import Standard, dense_rows
from certifit.runtime import check_memory
from certifit.statistics.gram import counted, refuse_no_weight

WeightFunction = Callable[[Array], Array]  # K of distances / tau
TermFunction = Callable[[Array], Array]  # rows -> columns of a basis
DEGREES = {"constant": 0, "linear": 1, "quadratic": 2}
KINDS = ("gaussian", "tricube")
FARTHEST = 1e150  # of a coordinate: squares of distances must be finite
MOST_POINTS = 1024  # training points at which a fit keeps its coefficients and proves them
NUMBERS_AT_ONCE = 4_000_000  # of a user's weights that are held at a time
WIDTHS = np.geomspace(0.03, 10.0, 14)  # tried by leave-one-out, in units of the spread of the rows


@dataclass(frozen=True)
class LocalState:
    """What a fit keeps: distinct rows, targets and weights, the width, and the coefficients at some of the rows.

    coefficients: of 1 and every term, about each of `points_of` the rows, in the unit of the target; the terms of
    standardised columns.
    """

    rows: Array
    y: Array
    weight: Array
    tau: float
    standard: Standard | None
    coefficients: Array


@dataclass(frozen=True)
class LocalForm:
    """What weighs the rows, and the terms: names, or functions of the user's."""

    weights: str | WeightFunction
    terms: str | TermFunction

    @property
    def kind(self) -> str:
        """The weight as the core knows it."""
        return self.weights if isinstance(self.weights, str) else "given"

    @property
    def degree(self) -> int:
        """Of the polynomial; 0 where there is a basis."""
        return DEGREES[self.terms] if isinstance(self.terms, str) else 0

    def columns(self, X: Array) -> Array | None:
        """A user's basis of rows in their own units; None of a polynomial."""
        if isinstance(self.terms, str):
            return None
        columns = np.asarray(self.terms(X), dtype=np.float64)
        columns = columns[:, None] if columns.ndim == 1 else columns
        if columns.ndim != 2 or len(columns) != len(X) or columns.shape[1] == 0:
            raise ValueError(
                f"terms must give one row of columns per row: ({len(X)}, k) with k >= 1. Got shape {columns.shape}."
            )
        if not np.isfinite(columns).all():
            row = int(np.flatnonzero(~np.isfinite(columns).all(axis=1))[0])
            raise ValueError(f"terms gave a number that is not finite, for row {row} of those it was called with.")
        return np.ascontiguousarray(columns)

    def weights_of(self, distances: Array) -> Array:
        """A user's K of distances / tau."""
        assert not isinstance(self.weights, str)
        K = np.asarray(self.weights(distances), dtype=np.float64)
        if K.shape != distances.shape or not (np.isfinite(K) & (K >= 0)).all():
            raise ValueError(
                "weights must give one finite number >= 0 per distance: an array of the shape that it was called with."
            )
        return np.ascontiguousarray(K)


class LocalRows:
    """The kept rows as the fits see them. unit: of weights, a power of two."""

    def __init__(self, state: LocalState, form: LocalForm) -> None:
        self.form, self.standard = form, state.standard
        self.points = self.seen(state.rows)
        self.y_scale = scale_of(state.y)
        self.y: Array = state.y * self.y_scale
        self.unit = scale_of(state.weight)
        self.weight: Array = state.weight * self.unit
        self.mean = float(self.weight @ self.y) / float(self.weight.sum())
        self.columns = form.columns(state.rows)

    @property
    def n_terms(self) -> int:
        """Terms beside the constant."""
        d, degree = self.points.shape[1], self.form.degree
        return self.columns.shape[1] if self.columns is not None else (0, d, d + d * (d + 1) // 2)[degree]

    def seen(self, X: Array) -> Array:
        """Rows in the units of the distances."""
        with np.errstate(over="ignore"):
            points = X if self.standard is None else self.standard(X)
        if len(points) and not (np.abs(points) <= FARTHEST).all():
            raise ValueError(
                "Some rows are so far away that squares of distances leave float64. Divide the columns by a power of "
                "ten, or use standardize=True."
            )
        return np.ascontiguousarray(points)

    def pieces(self, queries: Array, tau: float) -> Iterator[tuple[slice[int, int, None], Array | None]]:
        """Some queries at a time, with a user's weights of all rows; all at once where the core has the weights."""
        if self.form.kind != "given":
            yield slice(0, len(queries)), None
            return
        step = max(1, NUMBERS_AT_ONCE // max(len(self.points), 1))
        for begin in range(0, len(queries), step):
            some = slice(begin, begin + step)
            distances = [np.sqrt(np.square(query - self.points).sum(axis=1)) for query in queries[some]]
            yield some, self.form.weights_of(np.array(distances) / tau)


class LocalTask:
    """Gathered rows, merged. standard: that of a fit, or whether these rows have their own."""

    def __init__(self, source: Source, form: LocalForm, tau: float | None, standard: Standard | bool | None) -> None:
        gathered = source.gather()
        block = counted(gathered)
        n, d = block.n_rows, source.n_features
        check_memory(8.0 * 6 * n * (d + 3), f"Local regression on {n:,} rows and {d:,} columns", "Sample rows.")
        X = dense_rows(block.X)
        if not np.isfinite(X).all():
            refuse_nonfinite(source)
        if block.y is None:
            raise ValueError("LocallyWeightedRegression needs a target.")
        y = np.asarray(block.y, dtype=np.float64)
        weight = np.ones(n) if block.weight is None else np.asarray(block.weight, dtype=np.float64)
        refuse_no_weight(float(weight.max(initial=0.0)))
        self.n_rows, self.names, self.tau, self.form = gathered.n_rows, source.names, tau, form
        self.X, self.y, self.weight, self.group = merged(X, y, weight)
        share = self.weight * scale_of(self.weight)
        self.share: Array = share / share.sum()
        self.standard = Standard.of(self.X, self.share) if standard is True else standard or None

    def state(self, tau: float, coefficients: Array) -> LocalState:
        """What a fit with this width keeps."""
        return LocalState(self.X, self.y, self.weight, tau, self.standard, coefficients)

    @cached_property
    def rows(self) -> LocalRows:
        """The rows as the fits see them."""
        return LocalRows(self.state(1.0, np.zeros((0, 0))), self.form)

    @property
    def sum_weight(self) -> float:
        """Sum of the weights."""
        unit = scale_of(self.weight)
        with np.errstate(over="ignore"):
            return float(np.float64((self.weight * unit).sum()) / unit)

    def widths(self) -> Array:
        """Values of tau worth trying: from a few rows at a query to all of them."""
        spread = np.sqrt(float(np.sum(self.share @ np.square(self.rows.points - self.share @ self.rows.points))))
        return np.asarray(WIDTHS * (spread if 0 < spread < np.inf else 1.0))

    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""
        y = self.rows.y
        mean = float(self.share @ y)
        spread = float(np.sqrt(self.share @ np.square(y - mean)))
        scale = self.rows.y_scale
        return {
            "n_rows": self.n_rows,
            "sum_weight": self.sum_weight,
            "target_mean": mean / scale,
            "target_sd": spread / scale,
        }


def points_of(n_rows: int, most: int = MOST_POINTS) -> Array:
    """Places of the training points whose coefficients are kept: all rows, or some at equal steps in their order."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.asarray(np.linspace(0, n_rows - 1, most).astype(np.int64))


def merged(X: Array, y: Array, weight: Array) -> tuple[Array, Array, Array, Array]:
    """Distinct rows (x, y) in the order of their values, the sums of their weights, and the place of every row."""
    order = np.lexsort((y, *X.T[::-1]))
    rows = np.column_stack([X, y])[order]
    is_new = np.ones(len(rows), dtype=bool)
    is_new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    group = np.cumsum(is_new) - 1
    unit = scale_of(weight)  # sums of huge weights stay finite
    sums = np.zeros(int(group[-1]) + 1)
    np.add.at(sums, group, weight[order] * unit)
    with np.errstate(over="ignore"):
        sums = np.minimum(sums / unit, np.finfo(float).max)
    place = np.empty(len(rows), dtype=np.int64)
    place[order] = group
    kept = rows[is_new]
    return np.ascontiguousarray(kept[:, :-1]), np.ascontiguousarray(kept[:, -1]), sums, place


def scale_of(values: Array) -> float:
    """A power of two that brings the largest of the values near 1."""
    return float(np.ldexp(1.0, -int(np.frexp(np.abs(values).max(initial=0.0))[1])))
