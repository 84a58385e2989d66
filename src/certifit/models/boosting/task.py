"""What boosting is grown on: distinct rows in the order of a hash, their bins, a loss, and how trees are grown.

draws   rows held out and rows of a round are drawn among distinct rows, by numbers that follow from random_state, the
        round and the place in the order of the hash: neither the order of rows nor copies instead of weights matter
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy.special import log_softmax

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.mathematics.losses.scores import Logistic, ScoreLoss
from certifit.models.boosting.losses import FAMILIES, HuberOfResidual, Pinball, best_constant, weighted_quantile
from certifit.models.boosting.state import BoostingState
from certifit.models.trees.columns import ColumnRules
from certifit.models.trees.streamed import StreamedRows, ranked_thresholds, rows_with_offset
from certifit.models.trees.task import BYTES_PER_ROW, LEAST_UNIT, GatheredRows
from certifit.runtime import core, n_threads

Directions = Sequence[int] | Mapping[str, int] | None
MAD = 1.482602218505602  # standard deviations of a normal law in a median absolute deviation
BYTES_PER_SCORE = 48  # of a row: scores, what is added to them, losses, slopes and curvatures
HELD_OUT = 2**62  # the number of the draw of held-out rows, beyond that of any round


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
    """Distinct rows in the order of their hashes. X: as numbers, where they are in memory; codes: bins, cut at edges.

    by_column: codes, a row per column; n_bins: of every column; n_levels: of categories, 0 of other columns.
    """

    X: Array | None
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
        width = n_classes if n_classes > 2 else 1
        rules = ColumnRules(n_levels=settings.categories)
        super().__init__(source, n_classes, rules, BYTES_PER_ROW + BYTES_PER_SCORE * width)
        self.settings, self.family, self._parameters = settings, family, loss
        if not n_classes:
            self._check_target()

    def _check_target(self) -> None:
        y = self.y
        if not np.isfinite(y).all():
            raise ValueError("y must be finite numbers.")
        FAMILIES[self.family].loss(*self._parameters).check_target(y)
        if FAMILIES[self.family].is_log and not y.any():
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

    @property
    def hash_unit(self) -> float:
        """Rows are hashed with y as it is."""
        return 1.0

    @cached_property
    def rows(self) -> DistinctRows:
        """Distinct rows, y and offset in units."""
        if self.streamed is not None:
            return self._streamed_rows(self.streamed)
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

    def _streamed_rows(self, streamed: StreamedRows) -> DistinctRows:
        rows, n_levels = self.distinct, self.columns.n_levels
        edges = streamed.edges(rows, self.settings.max_bins, n_levels)
        n_bins = np.array([len(of_column) + 1 for of_column in edges], dtype=np.uint8)
        if n_levels is not None:
            n_bins = np.where(n_levels > 0, n_levels, n_bins)
        codes = streamed.codes(rows, edges, n_levels)
        for begin in range(0, len(codes), 1 << 16):  # missing values behind the bins
            part = codes[begin : begin + (1 << 16)]
            np.minimum(part, n_bins, out=part)
        offset = np.zeros(rows.n_rows) if streamed.offset is None else streamed.offset[rows.first] + 0.0
        return DistinctRows(
            None, codes, streamed.by_column(codes), n_bins, n_levels, edges,
            rows.y / self.unit, rows.weight, offset / self.unit,
        )  # fmt: skip

    def asked(self, state: BoostingState) -> tuple[Array, BoostingState] | None:
        """Distinct rows and the trees that ask them: values, or ranks among thresholds; None: these are too many."""
        if self.streamed is None:
            assert self.rows.X is not None
            return self.rows.X, state
        inner = state.left > 0
        is_number = inner if state.n_levels is None else inner & (state.n_levels[np.maximum(state.feature, 0)] == 0)
        ranked = ranked_thresholds(state.feature, state.threshold, is_number, self.source.n_features)
        if ranked is None:
            return None
        ranks = self.streamed.codes(self.distinct, ranked.edges, state.n_levels)
        return ranks, replace(state, threshold=ranked.threshold)

    def scores_by(self, state: BoostingState) -> Array:
        """The scores of the distinct rows by earlier rounds."""
        if self.streamed is None:
            assert self.rows.X is not None
            return state.scores(Block(self.rows.X, None, None))[0]
        return np.concatenate(list(self.streamed.each(partial(_scores, state=state))))[self.distinct.first]

    @cached_property
    def loss(self) -> ScoreLoss:
        """The loss of a score, of all families but the softmax of more than two classes."""
        if self.n_classes:
            return Logistic()
        loss = FAMILIES[self.family].loss(*self._parameters)
        if not isinstance(loss, HuberOfResidual):
            return loss
        rows = self.rows
        apart = np.abs(rows.y - weighted_quantile(rows.y, rows.weight, 0.5))
        scale = MAD * weighted_quantile(apart, rows.weight, 0.5)
        return HuberOfResidual(loss.delta * (scale or float(apart.max(initial=0.0)) or 1.0))

    def start(self) -> Array:
        """The best constant score of the rows that are trained on: log shares of more than two classes."""
        rows, trained = self.rows, self.trained
        y, weight = rows.y[trained], rows.weight[trained]
        if self.width > 1:
            shares = np.bincount(y.astype(np.int64), weights=weight, minlength=self.width) / weight.sum()
            logs = np.log(np.maximum(shares, np.finfo(float).tiny))
            return np.asarray(logs - logs.mean())
        if self.n_classes:
            return np.array([np.log(weight @ y) - np.log(weight @ (1 - y))])
        return np.array([best_constant(self.loss, y, weight, rows.offset[trained])])

    def derivatives(self, scores: Array) -> tuple[Array, Array, Array]:
        """The loss of every distinct row; slopes and curvatures times its weight, one array per score of a row."""
        rows = self.rows
        if self.width == 1:
            z = np.ascontiguousarray(scores[:, 0])
            loss = self.loss
            if loss.code is not None:
                value, slope, curvature = core.row_losses(
                    loss.code, loss.parameter, rows.y, z, rows.weight, n_threads()
                )
                return value, slope[None], curvature[None]
            slope, curvature = loss.slope(rows.y, z), loss.curvature(rows.y, z)
            return np.asarray(loss.value(rows.y, z)), (rows.weight * slope)[None], (rows.weight * curvature)[None]
        logs = log_softmax(scores, axis=1)
        place = (np.arange(rows.n_rows), rows.y.astype(np.int64))
        chances = np.exp(logs)
        curvature = chances * (1 - chances)
        value = -logs[place]
        chances[place] -= 1
        return value, np.ascontiguousarray((rows.weight[:, None] * chances).T), (rows.weight[:, None] * curvature).T

    def leaf_values(self, scores: Array, leaves: Array, n_nodes: int, sums: tuple[Array, Array], rows: Array) -> Array:
        """Newton steps of leaves, from sums of slopes and curvatures; of the pinball loss, quantiles of residuals."""
        slope, curvature = sums
        if not isinstance(self.loss, Pinball):
            mass = curvature + self.settings.l2
            return np.where(mass > 0, -slope / np.where(mass > 0, mass, 1.0), 0.0)
        values, residual = np.zeros(n_nodes), (self.rows.y - scores[:, 0])[rows]
        of_leaf, weight = leaves[rows], self.rows.weight[rows]
        for leaf in np.unique(of_leaf):
            in_leaf = of_leaf == leaf
            values[leaf] = weighted_quantile(residual[in_leaf], weight[in_leaf], self.loss.quantile)
        return values

    def _random(self, number: int) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(key=[self.settings.random_state, number]))

    @cached_property
    def trained(self) -> Array:
        """Whether each distinct row is trained on; the others are held out for early stopping."""
        rows, settings = self.rows, self.settings
        is_trained = np.ones(rows.n_rows, dtype=bool)
        if settings.early_stopping:
            order = self._random(HELD_OUT).permutation(rows.n_rows)
            below = np.cumsum(rows.weight[order])
            is_trained[order[below <= settings.validation_fraction * below[-1]]] = False
            if is_trained.all():
                raise ValueError(
                    f"No row is held out of {rows.n_rows} distinct ones at validation_fraction="
                    f"{settings.validation_fraction:g}. Raise it, or set early_stopping=False."
                )
        return is_trained

    @cached_property
    def _all(self) -> tuple[Array, Array]:
        """All rows that are trained on, and all columns."""
        return np.flatnonzero(self.trained).astype(np.uint32), np.arange(self.source.n_features, dtype=np.uint32)

    def drawn(self, number: int) -> tuple[Array, Array]:
        """Rows and columns of a round, ascending."""
        (rows, columns), settings = self._all, self.settings
        if settings.subsample == 1 and settings.max_features == 1:
            return rows, columns
        random, p = self._random(number), len(columns)
        if settings.subsample < 1:
            chosen = rows[random.random(len(rows)) < settings.subsample]
            rows = chosen if len(chosen) else rows
        if settings.max_features < 1:
            columns = np.sort(random.permutation(p)[: max(1, int(settings.max_features * p))]).astype(np.uint32)
        return rows, columns


def _scores(block: Block, state: BoostingState) -> Array:
    return state.scores(replace(block, y=None, weight=None))[0]


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
