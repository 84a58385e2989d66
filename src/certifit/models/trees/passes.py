"""Rows that a fit reads in passes, nothing of which is held row by row: sums, a sample for edges of bins, parts.

Trees on bins ask of the rows which bins their values are in, which rows are equal, and in what order they are summed.
All three are known without the values, and are those of the same rows in memory, so the trees have the same bits.

summary  how many rows there are, how far targets and weights reach
edges    of bins lie between values of the first 200,000 distinct rows in the order of a hash, which one pass collects
parts    the bins of the distinct rows in the order of their hashes (certifit.data.parts), on disk or on the workers
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.data.columns import Array, dense_rows
from certifit.data.parts import Arrays, PartPlan, Parts
from certifit.data.source import Block, Source, tree_sum
from certifit.models.trees.columns import ColumnRules, counted_levels
from certifit.models.trees.rows import SAMPLE_ROWS, counted_rows, rows_with_offset
from certifit.runtime import core, n_threads

PART_ROWS = 1 << 18  # a power of two, at least the rows of a block of `sum_leaves`
ALL_HASHES = 2**64
EXTRA = 1.1  # of the hashes that are expected to do for a sample


@dataclass(frozen=True)
class Summary:
    """Counted rows. mass: the sum of their weights; problem: what a target is not that it must be."""

    n_rows: int
    low: float
    high: float
    most_weight: float
    is_weighted: bool
    mass: float = 0.0
    n_levels: Array | None = None
    problem: str = ""

    def __add__(self, other: Summary) -> Summary:
        if not other.n_rows or not self.n_rows:
            return self if self.n_rows else other
        levels = [part.n_levels for part in (self, other) if part.n_levels is not None]
        return Summary(
            self.n_rows + other.n_rows, min(self.low, other.low), max(self.high, other.high),
            max(self.most_weight, other.most_weight), self.is_weighted, self.mass + other.mass,
            np.max(levels, axis=0) if levels else None, self.problem or other.problem,
        )  # fmt: skip


@dataclass(frozen=True)
class Scale:
    """What targets are measured from and in: taking the centre away, and dividing by a power of two, rounds nothing."""

    centre: float = 0.0
    unit: float = 1.0

    def of(self, y: object) -> Array:
        """Targets as trees read them."""
        numbers = np.ascontiguousarray(y, dtype=np.float64)
        return (numbers - self.centre) / self.unit


@dataclass(frozen=True)
class Moments:
    """Weight, mean and squares about the mean of numbers; those of two sets of rows add."""

    mass: float
    mean: float
    squares: float

    def __add__(self, other: Moments) -> Moments:
        mass = self.mass + other.mass
        if not other.mass or not self.mass:
            return self if self.mass else other
        apart = other.mean - self.mean
        mean = self.mean + apart * (other.mass / mass)
        return Moments(mass, mean, self.squares + other.squares + apart * apart * (self.mass * (other.mass / mass)))


def moments(block: Block, n_classes: int, scale: Scale, weight_unit: float) -> Moments:
    """Of the counted rows of a stretch, in units."""
    rows = counted_rows(block, n_classes)
    if not rows.n_rows:
        return Moments(0.0, 0.0, 0.0)
    y = scale.of(rows.y)
    mass = np.ones(len(y)) if rows.weight is None else np.asarray(rows.weight, dtype=np.float64) / weight_unit
    total = float(mass.sum())
    mean = float((mass * y).sum()) / total
    return Moments(total, mean, float((mass * np.square(y - mean)).sum()))


def moments_of_memory(rows: Block, stretch_rows: int, n_classes: int, scale: Scale, weight_unit: float) -> Moments:
    """The same of rows in memory: added stretch by stretch."""
    plain = Block(np.zeros((rows.n_rows, 0)), rows.y, rows.weight)
    stretches = (plain.part(k, min(k + stretch_rows, rows.n_rows)) for k in range(0, rows.n_rows, stretch_rows))
    return tree_sum(moments(stretch, n_classes, scale, weight_unit) for stretch in stretches)


def _summary(
    stretch: Block, n_classes: int, rules: ColumnRules, names: list[str], check: Callable[[Array, int], None] | None
) -> Summary:
    block = counted_rows(stretch, n_classes)
    if not block.n_rows:
        return Summary(0, math.inf, -math.inf, 0.0, False)
    if block.y is None:
        raise ValueError("A tree needs a target.")
    y = np.asarray(block.y, dtype=np.float64)
    problem = ""
    if check is not None:
        try:
            check(y, stretch.first_row)
        except ValueError as error:
            problem = str(error)
    weight = None if block.weight is None else np.asarray(block.weight, dtype=np.float64)
    return Summary(
        block.n_rows, float(y.min()), float(y.max()), 1.0 if weight is None else float(weight.max()),
        weight is not None, float(len(y)) if weight is None else float(weight.sum()),
        counted_levels(block, rules, names).n_levels, problem,
    )  # fmt: skip


def _hashes(block: Block, y: Array) -> tuple[Array, Array, bool]:
    order, other, is_finite = core.hash_rows(rows_with_offset(block), y, n_threads())
    return order, other, bool(is_finite)


@dataclass(frozen=True)
class _Sample:
    """Rows of the lowest hashes. X and offset: their values."""

    arrays: Arrays
    is_finite: bool


def _sample(stretch: Block, n_classes: int, scale: Scale, last: int) -> _Sample | None:
    block = counted_rows(stretch, n_classes)
    if not block.n_rows:
        return None
    y = scale.of(block.y)
    order, other, is_finite = _hashes(block, y)
    first, _ = core.merge_hashes(order, other, y, None)
    first = first[order[first] <= np.uint64(last)].astype(np.int64)
    rows = block.where(first)
    arrays = {
        "order": order[first], "other": other[first], "y": y[first],
        "X": dense_rows(rows.X).astype(np.float64, copy=False),
    }  # fmt: skip
    if rows.offset is not None:
        arrays["offset"] = np.asarray(rows.offset, dtype=np.float64)
    return _Sample(arrays, is_finite)


def _joined(parts: list[Arrays], most: int) -> Arrays:
    """The first distinct rows of some, in the order of their hashes."""
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    first, _ = core.merge_hashes(rows["order"], rows["other"], rows["y"], None)
    return {name: array[first[:most]] for name, array in rows.items()}


def _rows(
    stretch: Block,
    n_classes: int,
    scale: Scale,
    edges: list[Array],
    n_levels: Array | None,
    most: Array | None,
    weight_unit: float,
    more: Callable[[Block], Array] | None,
) -> Arrays | None:
    """Hashes, targets and bins of the counted rows of a stretch; most: codes at most; more: another array of rows."""
    block = counted_rows(stretch, n_classes)
    if not block.n_rows:
        return None
    y = scale.of(block.y)
    order, other, _ = _hashes(block, y)
    codes = core.bin_rows(block.rows, edges, n_levels, n_threads())
    rows = {"order": order, "other": other, "y": y, "codes": codes if most is None else np.minimum(codes, most)}
    weight = np.ones(len(y)) if block.weight is None else np.asarray(block.weight, dtype=np.float64) / weight_unit
    rows["weight"] = weight
    if block.offset is not None:
        rows["offset"] = np.ascontiguousarray(block.offset, dtype=np.float64)
    if more is not None:
        rows["more"] = more(block)
    if not (weight == np.floor(weight)).all():
        return rows
    # Whole weights add up to the same in any order: copies are merged here, before they are dealt out.
    first, rows["weight"] = core.merge_hashes(order, other, y, weight)
    return {name: array if name == "weight" else array[first] for name, array in rows.items()}


def _distinct(rows: Arrays, unit: float) -> Arrays:
    """Rows of a range of hashes in their order, equal ones merged; y and offset in units."""
    first, weight = core.merge_hashes(rows["order"], rows["other"], rows["y"], rows["weight"])
    out: Arrays = {name: rows[name][first] for name in ("codes", "more") if name in rows}
    out |= {name: (rows[name][first] + 0.0) / unit for name in ("y", "offset") if name in rows}
    return out | {"weight": weight}


class PassedRows:
    """Counted rows of a source that is read in passes. check: raises for targets that are not legal.

    scale: of the targets by which rows are equal and ordered.
    """

    scale = Scale()

    def __init__(
        self, source: Source, n_classes: int, rules: ColumnRules, check: Callable[[Array, int], None] | None
    ) -> None:
        unkept = source.unkept()
        self.source = unkept.resized(source.block_rows, unkept.rows_of_stretch())
        self.n_classes = n_classes
        f = partial(_summary, n_classes=n_classes, rules=rules, names=list(source.names), check=check)
        self.summary = tree_sum(self.source.map(f))
        if not self.n_rows:
            raise ValueError("All weights are zero. A fit needs a row of positive weight.")
        if self.summary.problem:
            raise ValueError(self.summary.problem)

    @property
    def n_rows(self) -> int:
        """Counted rows."""
        return self.summary.n_rows

    def edges(self, max_bins: int, n_levels: Array | None) -> list[Array] | None:
        """The edges of the bins of every column; None where a value is infinite, or a target is not finite."""
        last = min(ALL_HASHES - 1, int(EXTRA * SAMPLE_ROWS / self.n_rows * ALL_HASHES))
        sample = self._sample(last)
        while sample is not None and len(sample["y"]) < SAMPLE_ROWS and last < ALL_HASHES - 1:
            last = min(ALL_HASHES - 1, 4 * last)  # many rows are equal
            sample = self._sample(last)
        if sample is None:
            return None
        rows = Block(sample["X"], None, None, offset=sample.get("offset"))
        if n_levels is not None and rows.offset is not None:
            n_levels = np.append(n_levels, np.uint8(0))
        edges: list[Array] = core.bin_edges(rows_with_offset(rows), sample["y"], None, max_bins, n_levels, n_threads())
        return edges[: self.source.n_features]

    def _sample(self, last: int) -> Arrays | None:
        held: list[Arrays] = []
        size = 0
        for part in self.source.map(partial(_sample, n_classes=self.n_classes, scale=self.scale, last=last)):
            if part is None:
                continue
            if not part.is_finite:
                return None
            held.append(part.arrays)
            size += len(part.arrays["y"])
            if size > 2 * SAMPLE_ROWS:
                held = [_joined(held, SAMPLE_ROWS)]
                size = len(held[0]["y"])
        return _joined(held, SAMPLE_ROWS)

    def parts(
        self,
        edges: list[Array],
        n_levels: Array | None,
        most: Array | None,
        units: tuple[float, float],
        more: Callable[[Block], Array] | None = None,
    ) -> Parts:
        """The distinct rows in parts: `codes`, `y`, `weight`, `offset` and `more`.

        codes: 255 where a value is missing, or at most `most`. units: of y and offset, and of weights.
        """
        unit, weight_unit = units
        f = partial(
            _rows, n_classes=self.n_classes, scale=self.scale, edges=edges, n_levels=n_levels, most=most,
            weight_unit=weight_unit, more=more,
        )  # fmt: skip
        plan = PartPlan(self.n_rows, PART_ROWS, "order", partial(_distinct, unit=unit))
        return self.source.in_parts(f, plan)
