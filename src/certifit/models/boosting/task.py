"""What boosting is grown on: distinct rows in the order of a hash, their bins, a loss, and how trees are grown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.mathematics.losses.scores import ScoreLoss
from certifit.models.boosting.losses import FAMILIES
from certifit.models.trees.columns import ColumnRules
from certifit.models.trees.rows import rows_with_offset
from certifit.models.trees.task import LEAST_UNIT, GatheredRows
from certifit.runtime import core, n_threads

Directions = Sequence[int] | Mapping[str, int] | None


@dataclass(frozen=True)
class BoostingSettings:
    """How trees are drawn, grown and added."""

    n_estimators: int
    learning_rate: float
    growth: str
    max_depth: int | None
    max_leaf_nodes: int | None
    min_samples_leaf: int
    l2: float
    max_bins: int
    subsample: float
    max_features: float
    directions: tuple[int, ...] | None
    categories: Array | None
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    random_state: int


@dataclass(frozen=True)
class DistinctRows:
    """Distinct rows in the order of their hashes. X: as numbers; codes: bins, cut at edges.

    by_column: codes, a row per column; n_bins: of every column; n_levels: of categories, 0 of other columns.
    """

    X: Array
    codes: Array
    by_column: Array
    n_bins: Array
    n_levels: Array | None
    edges: list[Array]
    y: Array
    weight: Array
    offset: Array

    @property
    def n_rows(self) -> int:
        """Distinct rows."""
        return len(self.y)


class BoostingTask(GatheredRows):
    """Rows, a loss, and how trees are grown on its slopes and curvatures."""

    def __init__(
        self, source: Source, settings: BoostingSettings, family: str, loss: tuple[float, float, float], n_classes: int
    ) -> None:
        rules = ColumnRules(n_levels=settings.categories)
        self.settings, self.family, self.parameters = settings, family, loss
        super().__init__(source, n_classes, rules, is_passed=True)
        l2 = min(settings.l2 / self.weight_unit, float(np.finfo(np.float64).max))  # beside curvatures in that unit
        self.settings = replace(settings, l2=l2)
        if not n_classes:
            self._check_target()

    def legal(self) -> Callable[[Array, int], None] | None:
        """What raises for targets that are not legal."""
        return None if self.n_classes else partial(_check, FAMILIES[self.family].loss(*self.parameters))

    def _check_target(self) -> None:
        if self.passed is None:
            _check(FAMILIES[self.family].loss(*self.parameters), self.y, 0)
        if FAMILIES[self.family].is_log and not self.y_size:
            raise ValueError(f"family={self.family!r} needs a y above 0. All are 0.")
        if not LEAST_UNIT**0.5 <= self.unit <= LEAST_UNIT**-0.5:
            raise ValueError("Squares of y leave the range of float64. Multiply or divide y by a power of ten.")

    @property
    def unit(self) -> float:
        """What scores are measured in: a power of two near the largest |y|, or 1."""
        return self.y_unit if not self.n_classes and FAMILIES[self.family].is_scaled else 1.0

    @property
    def loss_unit(self) -> float:
        """What losses are measured in."""
        return self.unit ** (1 if self.family == "quantile" else 2)

    @property
    def width(self) -> int:
        """Scores of a row."""
        return self.n_classes if self.n_classes > 2 else 1

    @cached_property
    def rows(self) -> DistinctRows:
        """Distinct rows in memory, y and offset in units."""
        block, n_levels = self.block, self.columns.n_levels
        weight = None if self.weight is None else self.weight / self.weight_unit
        has_offset, max_bins = block.offset is not None, self.settings.max_bins
        made = core.boosting_rows(rows_with_offset(block), self.y, weight, has_offset, max_bins, n_levels, n_threads())
        if made is None:
            self.refuse()
        offset = np.zeros(len(made["y"])) if made["offset"] is None else made["offset"]
        return DistinctRows(
            made["X"], made["codes"], np.ascontiguousarray(made["codes"].T), made["n_bins"], n_levels, made["edges"],
            made["y"] / self.unit, made["weight"], offset / self.unit,
        )  # fmt: skip


def _check(loss: ScoreLoss, y: Array, first_row: int) -> None:
    if not np.isfinite(y).all():
        raise ValueError("y must be finite numbers.")
    loss.check_target(y, first_row)


def directions_of(asked: Directions, names: list[str]) -> tuple[int, ...] | None:
    """A direction per column: 1, -1 or 0; None where no column has one."""
    if asked is None:
        return None
    if isinstance(asked, Mapping):
        unknown = [name for name in asked if name not in names]
        if unknown:
            raise ValueError(f"monotonic_cst names {unknown[0]!r}, which is no column.")
        asked = [asked.get(name, 0) for name in names]
    values = list(asked)
    if len(values) != len(names):
        raise ValueError(f"monotonic_cst has {len(values)} entries, and there are {len(names)} columns.")
    if any(value not in (-1, 0, 1) for value in values):
        raise ValueError(f"monotonic_cst must be 1, -1 or 0 per column. Got {values!r}.")
    return tuple(int(value) for value in values) if any(values) else None
