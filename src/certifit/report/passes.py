"""What the pictures need of the data, in two passes of constant memory; no row is kept.

First pass (Survey): ranges, quantiles and moments of target, prediction, residual and fitted columns.
Second pass (Shapes): counts on grids whose edges the first pass gave.
Residual = target - prediction. All counts are sums of weights: a row of weight 2 is the row twice.

Quantiles of a stream in small memory.

A value x is counted in bin floor(log|x| / log g) of its sign, so every quantile is right to a relative
(g - 1) / 2, whatever the range and however heavy the tails. Weights add: a row of weight 2 is the row twice.

A share of the rows, drawn by their numbers, so that the same ones are drawn on every engine; for printed ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse
from numpy.typing import NDArray

from certifit.data import columns as seg
from certifit.data.cells import mixed
from certifit.data.columns import Array
from certifit.data.privacy import Rule
from certifit.data.source import Block, Memory, RowError, Source
from certifit.models.adapter import learner_of
from certifit.models.learner import Keeps
from certifit.report.columns import Moments
from certifit.runtime import suited_map

GROWTH = np.log1p(0.005)
# Above |log(5e-324)| / GROWTH, so that the bin of a magnitude is positive and can carry the sign.
SHIFT = 160_000


class Sketch:
    """Counts by logarithmic bin; `add` one array at a time, then `quantile`."""

    def __init__(self) -> None:
        self.bins: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self.mass: Array = np.empty(0, dtype=np.float64)
        self.low = np.inf
        self.high = -np.inf

    def add(self, values: Array, weight: Array | None = None) -> None:
        """Count the values of one block."""
        if weight is not None:
            values, weight = values[weight > 0], weight[weight > 0]
        if values.size == 0:
            return
        self.low = min(self.low, float(values.min()))
        self.high = max(self.high, float(values.max()))
        mass = np.ones(values.size) if weight is None else weight
        bins = np.concatenate([self.bins, _bin(values)])
        # Bins lie within a range of some hundred thousand, so counting all of it beats sorting.
        first = int(bins.min())
        place = bins - first
        size = int(place.max()) + 1
        used = np.flatnonzero(np.bincount(place, minlength=size))
        self.mass = bin_sums(place, np.concatenate([self.mass, mass]), size)[used]
        self.bins = used + first

    def quantile(self, levels: Any) -> Array:
        """Smallest bin whose cumulative share reaches each level, as a value; exact at the two ends."""
        levels = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        if self.bins.size == 0:
            return np.full(levels.shape, np.nan)
        reached = np.cumsum(self.mass)
        place = np.searchsorted(reached, levels * reached[-1] * (1 - 1e-15))
        values = np.clip(_value(self.bins[np.minimum(place, self.bins.size - 1)]), self.low, self.high)
        return np.where(levels <= 0, self.low, np.where(levels >= 1, self.high, values))

    def window(self) -> tuple[float, float]:
        """The range to draw: all, or the middle 99 % and as much again when a few values lie far out."""
        if self.bins.size == 0:
            return 0.0, 1.0
        inner_low, inner_high = self.quantile([0.005, 0.995])
        spread = float(inner_high - inner_low)
        low, high = self.low, self.high
        if spread > 0 and high / 4 - low / 4 > 0.75 * spread:
            low, high = max(low, inner_low - spread / 2), min(high, inner_high + spread / 2)
        if not high > low:
            width = max(abs(low) * 0.1, 1e-300) if low else 1.0
            low, high = low - width, high + width
        return float(low), float(high)


def bin_sums(place: Any, mass: Array, size: int) -> Array:
    """Sum of mass by place, for places in [0, size)."""
    return np.bincount(place, weights=mass, minlength=size).astype(np.float64, copy=False)


def _bin(values: Array) -> NDArray[np.int64]:
    size = np.abs(values)
    with np.errstate(divide="ignore"):
        number = np.floor(np.log(size) / GROWTH)
    number = np.where(size > 0, number + SHIFT, 0.0)
    return (np.sign(values) * number).astype(np.int64)


def _value(bins: NDArray[np.int64]) -> Array:
    with np.errstate(over="ignore"):
        size = np.exp((np.abs(bins) - SHIFT + 0.5) * GROWTH)
    return np.where(bins == 0, 0.0, np.sign(bins) * np.minimum(size, np.finfo(np.float64).max))


# Rows and numbers that are drawn.
MOST_ROWS, MOST_NUMBERS = 20_000, 4_000_000
_SEED = 21


def share_drawn(n_rows: int, n_columns: int) -> float:
    """The share of so many rows of so many numbers that is drawn."""
    return min(1.0, MOST_ROWS / max(n_rows, 1), MOST_NUMBERS / max(n_rows * n_columns, 1))


def drawn_rows(first_row: int, n_rows: int, weight: Array | None, share: float) -> Array:
    """Which rows of a block are drawn; those of weight 0 are not."""
    numbers = np.arange(first_row, first_row + n_rows, dtype=np.uint64)
    kept = (mixed(numbers, _SEED) >> np.uint64(11)) < np.uint64(share * 2.0**53)
    return kept if weight is None else kept & (weight > 0)


@dataclass
class Drawn:
    """Numbers of the drawn rows by place of their column, gaps left out, and their targets."""

    share: float = 1.0
    parts: dict[int, list[Array]] = field(default_factory=dict)
    targets: list[Array] = field(default_factory=list)

    def add(self, first_row: int, columns: Any, y: Array, weight: Array) -> None:
        """Draw from one block; columns: an array, CSR, or the segments of an encoded table."""
        kept = np.flatnonzero(drawn_rows(first_row, len(y), weight, self.share))
        self.targets.append(y[kept])
        if not isinstance(columns, seg.Columns):
            rows = columns[kept]
            self.add_rows(rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows))
            return
        place = 0
        for segment in columns.segments:
            if isinstance(segment, seg.Number) and not isinstance(segment.values, seg.Bits):
                there = kept if segment.valid is None else kept[segment.valid.to_bool(len(y))[kept]]
                self.parts.setdefault(place, []).append(np.asarray(segment.values[there], dtype=np.float64))
            place += segment.n_columns

    def add_rows(self, rows: Array) -> None:
        """Rows of numbers."""
        for place, values in enumerate(np.asarray(rows, dtype=np.float64).T):
            self.parts.setdefault(place, []).append(values)

    def values(self, place: int) -> Array:
        """Of one column."""
        return np.concatenate(self.parts.get(place, [np.zeros(0)]))

    @property
    def target(self) -> Array:
        """Targets of the drawn rows."""
        return np.concatenate([np.zeros(0), *self.targets])


BAND_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
N_RESIDUAL_EDGES = 1200
CELLS = (55, 36)  # of a picture of rows
HIDES = Rule()


def predicted(model: Any, source: Source, known: Sequence[Array] | None = None) -> Iterator[tuple[Block, Array, Array]]:
    """(block, prediction, weight) for every block that has rows. known: predictions that were made before."""
    blocks = (block for block in source.stretches() if block.X.shape[0])
    for k, block in enumerate(blocks):
        if known is not None:
            prediction = known[k]
        else:
            prediction = predict_block(model, source, block.X, block.first_row, block.offset)
        yield block, prediction, _weights(block)


def newly_predicted(predictions: Array, source: Source) -> Iterator[tuple[Block, Array, Array]]:
    """The same from one prediction per row of the source, made without it; a row that has none has weight 0."""
    for block, weight in ((block, _weights(block)) for block in source.stretches() if block.X.shape[0]):
        of_block = predictions[block.first_row : block.first_row + block.X.shape[0]]
        is_known = np.isfinite(of_block)
        yield block, np.where(is_known, of_block, 0.0), np.where(is_known, weight, 0.0)


def _weights(block: Block) -> Array:
    return np.ones(block.X.shape[0]) if block.weight is None else block.weight


def predict_block(model: Any, source: Source, X: Any, first_row: int = 0, offset: Array | None = None) -> Array:
    """Predictions for one block, with the names of its source so that the model can match columns."""
    rows, options = with_offset(source, X, offset)
    try:
        return np.asarray(model.predict(rows, **options), dtype=np.float64)
    except RowError as error:
        raise error.moved(first_row) from None


def named(source: Source, X: Any) -> Any:
    """The rows as the model takes them, with their column names; an array of a table source becomes a table."""
    if isinstance(X, pa.Table):
        return X
    if source.is_table:
        return pa.table({name: X[:, j] for j, name in enumerate(source.names)})
    return Memory(X, None, names=list(source.names) if source.named else None)


def with_offset(source: Source, X: Any, offset: Array | None) -> tuple[Any, dict[str, Any]]:
    """`named` rows, and the options of their prediction; an array carries its offset itself."""
    rows = named(source, X)
    if offset is None:
        return rows, {}
    if isinstance(rows, Memory):
        return Memory.of(replace(rows.block, offset=offset), rows.names if rows.named else None), {}
    return rows, {"offset": offset}


def encoded(model: Any, X: Any) -> Any:
    """The columns that the coefficients belong to, but for a basis; a category has one per level, of trees too."""
    return model.encoder_.uncoded().apply(X) if isinstance(X, pa.Table) else X


def is_curve(model: Any, source: Source) -> bool:
    """Whether the only feature is a number, so that the fit can be drawn over it."""
    if source.n_features != 1:
        return False
    kind = model.encoder_.columns_[0] if source.is_table else None
    return kind is None or (kind.kind == "number" and kind.own_names == [""])


@dataclass
class Seen:
    """What a pass tells of any rows: how many, their weights, their columns as they are coded, numbers of some."""

    n_rows: int = 0
    mass: float = 0.0
    columns: Moments = field(default_factory=Moments)
    drawn: Drawn = field(default_factory=Drawn)


@dataclass(kw_only=True)
class Survey(Seen):
    """First pass. `scale` keeps squares finite: every square is of residual / scale."""

    scale: float
    center: float
    target: Sketch = field(default_factory=Sketch)
    prediction: Sketch = field(default_factory=Sketch)
    residual: Sketch = field(default_factory=Sketch)
    squares: float = 0.0
    absolute: float = 0.0
    total: float = 0.0
    predictions: list[Array] | None = None  # by block, of a model that holds all rows: to make them again costs as much

    def add(self, block: Block, columns: Any, prediction: Array, weight: Array) -> None:
        """Count the rows of one block; `columns` are its rows as they are fitted."""
        y = _target(block)
        residual = y - prediction
        self.n_rows += y.size
        self.mass += float(weight.sum())
        each: list[Callable[[], None]] = [
            partial(self.columns.add, columns, y / self.scale, weight),
            partial(self.target.add, y, weight),
            partial(self.prediction.add, prediction, weight),
            partial(self.residual.add, residual, weight),
            partial(self.drawn.add, block.first_row, columns, y, weight),
        ]
        together(each, len(y))
        unit = residual / self.scale
        with np.errstate(over="ignore"):
            self.squares += float(weight @ unit**2)
            self.total += float(weight @ ((y - self.center) / self.scale) ** 2)
        self.absolute += float(weight @ np.abs(unit))


def together(each: Sequence[Callable[[], None]], n_rows: int) -> None:
    """Call all of them, on several threads where the rows are many."""
    for _ in suited_map(n_rows)(lambda call: call(), each):
        pass


def share_of(model: Any) -> float:
    """The share of the rows of a fit that is drawn."""
    return share_drawn(int(model.data_["n_rows"]), len(model.column_names_))


def survey(model: Any, source: Source, scale: float, center: float) -> Survey:
    """One pass over the data."""
    result = Survey(scale=scale, center=center, drawn=Drawn(share_of(model)))
    kept: list[Array] | None = [] if learner_of(model).keeps is Keeps.ALL_ROWS else None
    for block, prediction, weight in predicted(model, source):
        result.add(block, encoded(model, block.X), prediction, weight)
        if kept is not None:
            kept.append(prediction)
    return replace(result, predictions=kept)


@dataclass
class Grid:
    """Counts on a rectangle of equal cells; what falls outside is counted too."""

    x: tuple[float, float]
    y: tuple[float, float]
    shape: tuple[int, int] = CELLS
    counts: Array = field(init=False)
    outside: float = 0.0

    def __post_init__(self) -> None:
        self.counts = np.zeros(self.shape)

    def add(self, x: Array, y: Array, weight: Array) -> None:
        """Count points."""
        column, row = _cell(x, self.x, self.shape[0]), _cell(y, self.y, self.shape[1])
        inside = (column >= 0) & (row >= 0)
        place = column[inside] * self.shape[1] + row[inside]
        self.counts += np.bincount(place, weights=weight[inside], minlength=self.counts.size).reshape(self.shape)
        self.outside += float(weight[~inside].sum())

    def to_dict(self) -> dict[str, Any]:
        """Only the cells that hold something: [column, row, count]."""
        column, row = np.nonzero(self.counts)
        cells = [[int(i), int(j), float(self.counts[i, j])] for i, j in zip(column, row, strict=True)]
        return {
            "x": list(self.x),
            "y": list(self.y),
            "shape": list(self.shape),
            "cells": cells,
            "outside": self.outside,
        }


def _cell(values: Array, window: tuple[float, float], n_cells: int) -> Any:
    low, high = window
    place = np.floor((values / 2 - low / 2) / (high / 2 - low / 2) * n_cells)
    place = np.where(values == high, n_cells - 1, place)
    return np.where((values >= low) & (values <= high), np.clip(place, 0, n_cells - 1), -1).astype(np.int64)


def new_fit(predictions: Array, source: Source, rule: Rule) -> Grid:
    """Predictions of rows that the fits had not seen against their targets: two passes over the targets."""
    sketches = Sketch(), Sketch()
    for block, prediction, weight in newly_predicted(predictions, source):
        for sketch, values in zip(sketches, (prediction, _target(block)), strict=True):
            sketch.add(values, weight)
    across, up = (rule.window(*sketch.window()) for sketch in sketches)
    grid = Grid(across, up)
    for block, prediction, weight in newly_predicted(predictions, source):
        grid.add(prediction, _target(block), weight)
    return grid


@dataclass
class Bands:
    """Residual counts by (bin of prediction) x (bin of residual), for quantiles along the prediction."""

    cuts: Array
    edges: Array
    counts: Array = field(init=False)
    sums: Array = field(init=False)
    scale: float = 1.0

    def __post_init__(self) -> None:
        self.counts = np.zeros((self.cuts.size + 1, self.edges.size + 1))
        self.sums = np.zeros(self.cuts.size + 1)

    def add(self, prediction: Array, residual: Array, weight: Array) -> None:
        """Count residuals."""
        place = np.searchsorted(self.cuts, prediction, side="right")
        cell = place * self.counts.shape[1] + np.searchsorted(self.edges, residual)
        self.counts += np.bincount(cell, weights=weight, minlength=self.counts.size).reshape(self.counts.shape)
        self.sums += np.bincount(place, weights=weight * (prediction / self.scale), minlength=self.sums.size)

    def to_dict(self) -> dict[str, Any]:
        """Quantiles of the residual where a bin holds rows, at the mean prediction of the bin."""
        mass = self.counts.sum(axis=1)
        values = np.concatenate([self.edges[:1], (self.edges[1:] + self.edges[:-1]) / 2, self.edges[-1:]])
        x, lines = [], []
        for k in np.flatnonzero(mass > 0):
            reached = np.cumsum(self.counts[k]) / mass[k]
            place = np.searchsorted(reached, np.array(BAND_LEVELS) * (1 - 1e-12))
            x.append(float(self.sums[k] / mass[k] * self.scale))
            lines.append([float(v) for v in values[np.minimum(place, values.size - 1)]])
        return {"levels": list(BAND_LEVELS), "x": x, "quantiles": lines, "mass": mass[mass > 0].tolist()}


@dataclass
class Shapes:
    """Second pass."""

    fit: Grid
    spread: Grid
    bands: Bands
    histogram: Array
    histogram_edges: Array
    curve: Grid | None

    def add(self, block: Block, prediction: Array, weight: Array) -> None:
        """Count the rows of one block."""
        y = _target(block)
        residual = y - prediction
        each: list[Callable[[], None]] = [
            partial(self.bands.add, prediction, residual, weight),
            partial(self.fit.add, prediction, y, weight),
            partial(self.spread.add, prediction, residual, weight),
            partial(self._add_bars, residual, weight),
        ]
        if self.curve is not None:
            each.append(partial(self.curve.add, _first_column(block.X), y, weight))
        together(each, len(y))

    def _add_bars(self, residual: Array, weight: Array) -> None:
        edges = self.histogram_edges
        place = _cell(residual, (float(edges[0]), float(edges[-1])), edges.size - 1)
        inside = place >= 0
        self.histogram += np.bincount(place[inside], weights=weight[inside], minlength=edges.size - 1)


def shapes(model: Any, source: Source, seen: Survey, rule: Rule = HIDES) -> Shapes:
    """One more pass, with edges from the first."""
    result = _empty_shapes(seen, is_curve(model, source), rule)
    for block, prediction, weight in predicted(model, source, seen.predictions):
        result.add(block, prediction, weight)
    return result


def _empty_shapes(seen: Survey, has_curve: bool, rule: Rule) -> Shapes:
    sketches = (seen.prediction, seen.target, seen.residual)
    predictions, targets, residuals = (rule.window(*sketch.window()) for sketch in sketches)
    n_bins = int(min(seen.n_rows / 30, 40))
    cuts = np.unique(seen.prediction.quantile(np.arange(1, n_bins) / n_bins)) if n_bins >= 4 else np.empty(0)
    n_bars = int(np.clip(2 * seen.n_rows ** (1 / 3), 7, 61)) | 1
    curve = None
    if has_curve:
        column = Sketch()
        column.add(np.array([seen.columns.low[0], seen.columns.high[0]]))
        curve = Grid(rule.window(*column.window()), targets)
    return Shapes(
        fit=Grid(predictions, targets),
        spread=Grid(predictions, residuals),
        bands=Bands(cuts, _residual_edges(seen.residual), scale=seen.scale),
        histogram=np.zeros(n_bars),
        histogram_edges=np.linspace(*residuals, n_bars + 1),
        curve=curve,
    )


def _residual_edges(residual: Sketch) -> Array:
    """Edges dense near zero and wide in the tails: equal steps of asinh(r / s), s a tenth of a residual."""
    low, high = residual.low, residual.high
    middle = float(np.abs(residual.quantile([0.25, 0.75])).max())
    s = middle / 10 if middle > 0 else max(abs(low), abs(high), 1.0) * 1e-9
    edges = s * np.sinh(np.linspace(np.arcsinh(low / s), np.arcsinh(high / s), N_RESIDUAL_EDGES))
    return np.unique(edges)


def _first_column(X: Any) -> Array:
    """As float64; a gap is NaN, which no picture draws."""
    if isinstance(X, pa.Table):
        column = X.column(0).cast(pa.float64(), safe=False)  # rounded beyond 2^53, as models read it
        return np.asarray(column.to_numpy(), dtype=np.float64)
    column = X[:, [0]]
    dense = column.toarray() if scipy.sparse.issparse(column) else np.asarray(column)
    return np.asarray(dense, dtype=np.float64).ravel()


def _target(block: Block) -> Array:
    if block.y is None:
        raise ValueError("The report needs the target. Scan the file with target=NAME.")
    return np.asarray(block.y, dtype=np.float64)
