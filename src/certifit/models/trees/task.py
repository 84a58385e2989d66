"""What a tree is grown on: gathered rows, a criterion, and the rules by which a node stays a leaf.

gini            1 - sum_k p_k^2                  p_k: shares of the classes in the node
entropy         - sum_k p_k log2 p_k
squared_error   mean of (y - mean)^2
poisson         mean of y log(y / mean): half the mean deviance
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NoReturn, TypeVar

import numpy as np

from certifit.data.columns import Array, Columns
from certifit.data.source import Block, Memory, Source
from certifit.data.user_input import refuse_nonfinite
from certifit.models.trees.columns import NO_RULES, ColumnRules, counted_levels
from certifit.models.trees.optimal import Optimum, SearchGrid, best_tree
from certifit.models.trees.passes import Moments, PassedRows, Scale, moments, moments_of_memory
from certifit.models.trees.rows import counted_rows
from certifit.runtime import check_memory, core, memory_limit, n_threads

POWERS = {"gini": 0, "entropy": 0, "squared_error": 2, "poisson": 1}  # of the unit of y in an impurity
LEAST_UNIT = 2.0**-1000  # of an impurity
LEAST_WEIGHT = 1e-290  # of a row, in units of the weights: float64 holds fewer digits of smaller ones
FAR_WEIGHTS = (
    "the weights of the rows span more powers of ten than float64 can add up beside each other. Give rows whose weight "
    "is nothing beside the others the weight 0."
)
FAR = 2.0**100  # of a weight from 1
CLOSE = 2.0**-10  # numbers that differ by less, relative to their size, are measured from their middle
BYTES_PER_VALUE = 8 + 8 + 4  # of a column in float64, its sorted entries, and those of subtrees

Result = TypeVar("Result")


@dataclass(frozen=True)
class Stops:
    """Rules by which a node stays a leaf. Rows that are equal in every column and in y count once."""

    max_depth: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_impurity_decrease: float = 0.0
    max_leaf_nodes: int | None = None
    ccp_alpha: float = 0.0


@dataclass(frozen=True)
class Splitting:
    """Where splits are looked for. max_bins: None tries every threshold. edges: of bins that are known already."""

    max_bins: int | None = None
    columns: ColumnRules = NO_RULES
    edges: list[Array] | None = None


class GatheredRows:
    """All rows of a fit; rows of weight 0, or without a class, are no rows. n_classes: 0 where y is a number.

    They are in memory. is_passed: where they exceed the memory budget, they are read in passes without anything of a
    single row being held (`passed`). Both give the same bits.
    """

    def __init__(
        self,
        source: Source,
        n_classes: int,
        rules: ColumnRules = NO_RULES,
        is_passed: bool = False,
    ) -> None:
        self.source, self.n_classes = source, n_classes
        rows = gathered_within_budget(source) if is_passed else source.gather()
        self.passed: PassedRows | None = None
        self._block: Block | None = None
        if rows is None:
            self.passed = PassedRows(source, n_classes, rules, self.legal())
            self.columns = replace(rules, n_levels=self.passed.summary.n_levels)
            return
        if rows.y is None:
            raise ValueError("A tree needs a target.")
        self.gathered, self._block = rows, counted_rows(rows, n_classes)
        if self.n_rows == 0:
            raise ValueError("All weights are zero. A fit needs a row of positive weight.")
        size = float(self.n_rows) * source.n_features * BYTES_PER_VALUE
        check_memory(size, f"A tree on {self.n_rows:,} rows of {source.n_features:,} columns", "Sample rows.")
        self.columns = counted_levels(self._block, rules, list(source.names))

    @property
    def block(self) -> Block:
        """All rows, in memory."""
        if self._block is None:
            raise MemoryError(
                f"This needs all rows in memory, and they exceed the limit of {memory_limit() / 2**30:.3g} GiB. Sample "
                "rows, or allow more with certifit.memory(bytes)."
            )
        return self._block

    def each_stretch(self, f: Callable[[Block], Result]) -> Iterable[Result]:
        """f of every stretch in order, of all its rows, wherever they are."""
        if self.passed is not None:
            return self.passed.source.map(f)
        size, n_rows = self.source.unkept().rows_of_stretch(), self.gathered.n_rows
        return (f(self.gathered.part(begin, min(begin + size, n_rows))) for begin in range(0, n_rows, size))

    def legal(self) -> Callable[[Array, int], None] | None:
        """What raises for targets that are not legal, of a stretch of rows and the number of its first."""
        return None

    def refuse(self) -> NoReturn:
        """Raise for what is not finite."""
        if self.passed is not None:
            for _ in self.passed.source.map(partial(refuse_infinite, names=list(self.source.names))):
                pass
        else:
            refuse_infinite(self.block, list(self.source.names))
        raise ValueError("y must be finite numbers.")

    @property
    def n_rows(self) -> int:
        """Rows that count."""
        return self.block.n_rows if self.passed is None else self.passed.n_rows

    @cached_property
    def y(self) -> Array:
        """The target as float64: numbers, or codes of classes."""
        return np.ascontiguousarray(self.block.y, dtype=np.float64)

    @cached_property
    def weight(self) -> Array | None:
        """Weights as float64; None is 1 everywhere."""
        weight = self.block.weight
        return None if weight is None else np.ascontiguousarray(weight, dtype=np.float64)

    @property
    def is_weighted(self) -> bool:
        """Whether rows have weights."""
        return self.weight is not None if self.passed is None else self.passed.summary.is_weighted

    @cached_property
    def y_ends(self) -> tuple[float, float]:
        """The smallest and the largest y."""
        if self.passed is not None:
            return self.passed.summary.low, self.passed.summary.high
        return float(self.y.min()), float(self.y.max())

    @property
    def y_size(self) -> float:
        """The largest |y|."""
        return max(map(abs, self.y_ends))

    @property
    def y_centre(self) -> float:
        """What y is measured from; taking it away rounds nothing."""
        return 0.0

    @property
    def centred(self) -> Array:
        """The target, measured from its centre."""
        return self.y - self.y_centre if self.y_centre else self.y

    @cached_property
    def y_unit(self) -> float:
        """A power of two near the largest |y|; 1 of classes: squares of y / unit neither overflow nor vanish.

        Where all numbers are their centre, of that: its squares are all 0, in any unit within float64.
        """
        if self.n_classes:
            return 1.0
        low, high = self.y_ends
        largest = max(abs(low - self.y_centre), abs(high - self.y_centre))
        if self.y_centre and not largest:
            return float(np.clip(_unit_of(self.y_size), LEAST_UNIT**0.5, LEAST_UNIT**-0.5))
        return _unit_of(largest)

    @cached_property
    def weight_unit(self) -> float:
        """1, which leaves counts whole, or a power of two near the largest weight where that is far from 1."""
        if self.passed is not None:
            unit = _unit_of(self.passed.summary.most_weight) if self.passed.summary.is_weighted else 1.0
        else:
            unit = 1.0 if self.weight is None else _unit(self.weight)
        return 1.0 if 1 / FAR <= unit <= FAR else unit

    def scaled(self) -> tuple[Array, Array | None]:
        """y and weights in their units: exact."""
        return self.centred / self.y_unit, None if self.weight is None else self.weight / self.weight_unit

    @cached_property
    def moments(self) -> Moments:
        """Weight, mean and squares of the targets in their units: sums that rows in passes have too."""
        if self.passed is not None:
            f = partial(moments, n_classes=self.n_classes, scale=self.scale, weight_unit=self.weight_unit)
            return self.passed.source.reduce(f)
        size = self.source.unkept().rows_of_stretch()  # rows that are kept may be one stretch
        return moments_of_memory(self.gathered, size, self.n_classes, self.scale, self.weight_unit)

    @property
    def scale(self) -> Scale:
        """What targets are measured from and in."""
        return Scale(self.y_centre, self.y_unit)

    def facts(self) -> dict[str, float]:
        """Rows, their weight, and mean and standard deviation of a number."""
        if self.passed is not None and self.n_classes:
            return {"n_rows": self.n_rows, "sum_weight": self.passed.summary.mass}
        sums = self.moments
        facts = {"n_rows": self.n_rows, "sum_weight": sums.mass * self.weight_unit}
        if self.n_classes:
            return facts
        spread = math.sqrt(sums.squares / sums.mass) * self.y_unit
        return facts | {"target_mean": sums.mean * self.y_unit + self.y_centre, "target_sd": spread}


class TreeTask(GatheredRows):
    """Rows and how a tree is grown on them. grid: where the best tree is searched for; None: the search is greedy."""

    def __init__(
        self,
        source: Source,
        criterion: str,
        stops: Stops,
        n_classes: int = 0,
        grid: SearchGrid | None = None,
        splitting: Splitting | None = None,
    ) -> None:
        splitting = splitting or Splitting()
        self.criterion, self.stops = criterion, stops
        try:
            super().__init__(source, n_classes, splitting.columns, is_passed=splitting.max_bins is not None)
        except MemoryError as error:
            if splitting.max_bins is not None or grid is not None:
                raise
            raise MemoryError(f"{error} A tree with max_bins=255 reads rows in passes.") from None
        self.is_greedy, self.grid = grid is None, grid or SearchGrid()
        self._optima: dict[int, Optimum] = {}
        self.splitting = replace(splitting, columns=self.columns)
        if n_classes > 2 and self.splitting.columns.has_directions:
            raise ValueError(f"monotonic_cst needs a number or two classes. There are {n_classes} classes.")
        if self.passed is not None:
            self.passed.scale = self.scale
        elif check := self.legal():
            check(self.y, 0)
        if criterion == "poisson" and not self.y_size:
            raise ValueError("criterion='poisson' needs a y above 0. All are 0.")

    def legal(self) -> Callable[[Array, int], None] | None:
        """What raises for targets that are not legal."""
        return None if self.n_classes else partial(_refuse_target, is_poisson=self.criterion == "poisson")

    @cached_property
    def edges(self) -> list[Array] | None:
        """The edges of the bins of every column; None where every threshold is tried."""
        if self.splitting.max_bins is None or self.splitting.edges is not None:
            return self.splitting.edges
        n_levels = self.splitting.columns.n_levels
        if self.passed is not None:
            edges_of_passes = self.passed.edges(int(self.splitting.max_bins), n_levels)
            return self.refuse() if edges_of_passes is None else edges_of_passes
        y, weight = self.scaled()
        edges: list[Array] | None = core.bin_edges(
            self.block.rows, y, weight, int(self.splitting.max_bins), n_levels, n_threads()
        )
        return edges

    @cached_property
    def y_centre(self) -> float:
        """The middle of numbers that lie far from 0 and close together: their squares would lose their digits.

        All are within a factor of two of it, so that differences from it are exact.
        """
        if self.criterion != "squared_error":
            return 0.0
        low, high = self.y_ends
        middle = low / 2 + high / 2
        return middle if high - low < CLOSE * abs(middle) < math.inf else 0.0

    def optimum(self, depth: int) -> Optimum:
        """The best tree of a depth and the least loss of any; searched once."""
        if depth not in self._optima:
            self._optima[depth] = best_tree(self, depth)
        return self._optima[depth]

    @property
    def impurity_unit(self) -> float:
        """What an impurity of y / y_unit, of entropy in nats, is to be multiplied by."""
        if self.criterion == "entropy":
            return 1 / math.log(2)
        with np.errstate(over="ignore"):
            unit = float(np.float64(self.y_unit) ** POWERS[self.criterion])
        if not LEAST_UNIT <= unit <= 1 / LEAST_UNIT:
            raise ValueError("Squares of y leave the range of float64. Multiply or divide y by a power of ten.")
        return unit


def refuse_infinite(block: Block, names: list[str]) -> None:
    """Raise for the first infinity in X; a missing value is none."""
    X = block.X.toarray() if isinstance(block.X, Columns) else block.X
    filled = X.copy()
    values = filled if isinstance(filled, np.ndarray) else filled.data
    values[np.isnan(values)] = 0
    refuse_nonfinite(Memory.of(replace(block, X=filled), names=names))


def gathered_within_budget(source: Source) -> Block | None:
    """All rows, where they and what trees make of them fit the memory budget."""
    try:
        rows = source.gather(int(memory_limit() * 8 / BYTES_PER_VALUE))
    except MemoryError:
        return None
    return rows if float(rows.n_rows) * source.n_features * BYTES_PER_VALUE <= memory_limit() else None


def _refuse_target(y: Array, first_row: int, is_poisson: bool) -> None:
    if not np.isfinite(y).all():
        raise ValueError("y must be finite numbers.")
    negative = np.flatnonzero(y < 0)
    if is_poisson and len(negative):
        row = int(negative[0])
        raise ValueError(f"criterion='poisson' needs y >= 0. Row {first_row + row} is {y[row]:g}.")


def _unit(values: Array) -> float:
    return _unit_of(float(np.abs(values).max(initial=0.0)))


def _unit_of(largest: float) -> float:
    return float(np.ldexp(1.0, int(np.clip(np.frexp(largest)[1] - 1, -1000, 1000)))) if largest > 0 else 1.0
