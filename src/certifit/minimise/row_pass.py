"""One pass over rows, a step after every batch: w -= step_t (mean of l'(y, z) x over the batch + strengths w).

`RowOrder` is the order in which a pass visits the rows of a stretch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np

from certifit.data.columns import Array, Columns
from certifit.data.source import Block, Source
from certifit.mathematics.losses.scores import ScoreLoss
from certifit.minimise.gradient_descent import Schedule, factor_at
from certifit.runtime import core, n_threads
from certifit.statistics.loss_sums import curvature_of

SCHEDULES = ("constant", "inverse", "inverse-root")  # in the order of cpp/stochastic.hpp
SMOOTHNESS = {0: 0.25, 3: 1.0}  # largest l'' of the compiled losses that have one
Intercept = float | Array  # of one score per row, or of several


class ScoresLoss(Protocol):
    """A loss of several scores per row. smoothness: the largest eigenvalue of its second derivatives anywhere."""

    smoothness: float

    def slope(self, y: Array, z: Array) -> Array:
        """The derivative by every score, rows x scores."""


RowLoss = ScoreLoss | ScoresLoss


@dataclass(frozen=True)
class Pace:
    """Step sizes and batches. After t steps: step, step / (1 + decay t), step / sqrt(1 + decay t), or step f(t + 1).

    The last is the schedule of the user's own function f.
    """

    step: float
    schedule: str | Schedule = "constant"
    decay: float = 0.0
    batch_rows: int = 1

    def at(self, t: int) -> float:
        """The size of the step after t steps."""
        if not isinstance(self.schedule, str):
            return self.step * factor_at(self.schedule, t + 1)
        passed = 1 + self.decay * t
        return self.step / {"constant": 1.0, "inverse": passed, "inverse-root": math.sqrt(passed)}[self.schedule]


@dataclass(frozen=True)
class RowState:
    """What is learned so far. sums: of the states after each of the last n_summed steps, where they are averaged.

    One score per row: a weight per column, and a number. Several: weights columns x scores, and an intercept each.
    recorded: weights and intercept after every step, where they are kept.
    """

    weights: Array
    intercept: Intercept
    pace: Pace
    n_steps: int = 0
    sums: Array | None = None
    sum_intercept: Intercept = 0.0
    n_summed: int = 0
    is_finite: bool = True
    recorded: list[Array] | None = None

    def averaged(self) -> tuple[Array, Intercept]:
        """The mean of the summed states; the last state where there are none."""
        if self.sums is None or self.n_summed == 0:
            return self.weights, self.intercept
        return self.sums / self.n_summed, self.sum_intercept / self.n_summed

    def summing(self) -> RowState:
        """The same state with its sums set to 0."""
        return replace(self, sums=np.zeros_like(self.weights), sum_intercept=0.0, n_summed=0)


def one_pass(
    stretch: Block, loss: RowLoss, strengths: Array, fit_intercept: bool, state: RowState, visits: Array | None
) -> RowState:
    """The state after one pass over the rows of a stretch, in the order of `visits` (None: as they stand)."""
    y = target_of(stretch)
    if (
        not isinstance(loss, ScoreLoss)
        or loss.code is None
        or state.recorded is not None
        or not isinstance(state.pace.schedule, str)
    ):
        return _python_pass(stretch, y, loss, strengths, fit_intercept, state, visits)
    weights, intercept, sums, sum_intercept, n_steps, is_finite = core.stochastic_pass(
        stretch.rows,
        y,
        stretch.offset,
        visits,
        strengths,
        fit_intercept,
        loss.code,
        loss.parameter,
        state.pace.batch_rows,
        SCHEDULES.index(state.pace.schedule),
        state.pace.step,
        state.pace.decay,
        state.weights,
        state.intercept,
        state.sums,
        state.sum_intercept,
        state.n_steps,
    )
    n_summed = 0 if sums is None else state.n_summed + n_steps - state.n_steps
    return RowState(weights, intercept, state.pace, n_steps, sums, sum_intercept, n_summed, is_finite)


@np.errstate(over="ignore", invalid="ignore")  # weights that leave the numbers are said to diverge
def _python_pass(
    stretch: Block,
    y: Array,
    loss: RowLoss,
    strengths: Array,
    fit_intercept: bool,
    state: RowState,
    visits: Array | None,
) -> RowState:
    """The same for a loss or a schedule that is written in Python, and for steps that are recorded."""
    X = stretch.X.toarray() if isinstance(stretch.X, Columns) else stretch.X
    order = np.arange(stretch.n_rows) if visits is None else visits
    w, b = state.weights.copy(), state.intercept
    sums = None if state.sums is None else state.sums.copy()
    sum_intercept, n_steps, size = state.sum_intercept, state.n_steps, state.pace.batch_rows
    for begin in range(0, len(order), size):
        rows = order[begin : begin + size]
        x = X[rows]
        z = b + x @ w + (0.0 if stretch.offset is None else stretch.offset[rows])
        slope = loss.slope(y[rows], z)
        if not np.isfinite(slope).all():
            return replace(state, weights=w, intercept=b, n_steps=n_steps, sums=sums, is_finite=False)
        step = state.pace.at(n_steps)
        pull = strengths if w.ndim == 1 else strengths[:, None]
        w = w * (1 - step * pull) - step / len(rows) * (x.T @ slope)
        b = b - step * slope.mean(axis=0) if fit_intercept else b
        n_steps += 1
        if sums is not None:
            sums += w
            sum_intercept = sum_intercept + b
        if state.recorded is not None:
            state.recorded.append(np.append(w, b))
    n_summed = 0 if sums is None else state.n_summed + n_steps - state.n_steps
    b = float(b) if w.ndim == 1 else b
    return RowState(w, b, state.pace, n_steps, sums, sum_intercept, n_summed, recorded=state.recorded)


@dataclass(frozen=True)
class RowFacts:
    """n_visits: of an epoch. curvature: of the steepest row's loss, l'' |(x, 1)|^2; sum_curvature: over the visits."""

    n_visits: float
    curvature: float
    sum_curvature: float

    def __add__(self, other: RowFacts) -> RowFacts:
        steepest = max(self.curvature, other.curvature)
        return RowFacts(self.n_visits + other.n_visits, steepest, self.sum_curvature + other.sum_curvature)

    def of_batch(self, batch_rows: int) -> float:
        """The expected smoothness of a random batch: that of the mean for large ones, of the steepest row for one row.

        Gower and others, "SGD: general analysis and improved rates", ICML 2019; the mean's by its trace.
        """
        mean = self.sum_curvature / max(self.n_visits, 1)
        return mean + (self.curvature - mean) / batch_rows


def row_facts(source: Source, loss: RowLoss, fit_intercept: bool, weights: Array, intercept: Intercept) -> RowFacts:
    """One pass: how many rows an epoch visits, and how steep the steepest is at these weights."""
    return source.reduce(
        partial(_facts_of, loss=loss, fit_intercept=fit_intercept, weights=weights, intercept=intercept)
    )


@np.errstate(over="ignore", invalid="ignore")  # rows so steep that float64 ends: steps are 0
def _facts_of(stretch: Block, loss: RowLoss, fit_intercept: bool, weights: Array, intercept: Intercept) -> RowFacts:
    squares = core.row_squares(stretch.rows, n_threads()) + float(fit_intercept)
    weight = np.ones(stretch.n_rows) if stretch.weight is None else stretch.weight
    counted = weight > 0
    if not counted.any():
        return RowFacts(0.0, 0.0, 0.0)
    if not isinstance(loss, ScoreLoss):
        bend = np.full(stretch.n_rows, loss.smoothness)
    elif loss.code in SMOOTHNESS:
        bend = np.full(stretch.n_rows, SMOOTHNESS[loss.code])
    else:
        y = target_of(stretch)
        z = core.scores(stretch.rows, weights, intercept, n_threads()) + (
            0.0 if stretch.offset is None else stretch.offset
        )
        curvature = loss.expected(y, z) if loss.has_curvature else curvature_of(loss, y, z)
        bend = np.maximum(curvature, np.abs(loss.slope(y, z)))
    visits = weight if (weight == np.floor(weight)).all() else weight * (counted.sum() / weight.sum())
    steep = np.where(counted, bend * squares, 0.0)
    return RowFacts(float(visits.sum()), float(steep.max()), float(visits @ steep))


def target_of(stretch: Block) -> Array:
    """The target of every row."""
    if stretch.y is None:
        raise ValueError("Learning row by row needs a target. Got rows without one.")
    return stretch.y


# ---- the order of rows -----------------------------------------------------------------------------------------------
# Shuffled: rows are first put in the order of a hash of their values, then permuted by the seed, the pass and the
# stretch. So neither the order in which rows came nor their storage changes a visit, and a row of weight 2 is visited
# as two equal rows. Weights: visits are evenly spaced positions on the cumulative weight, one per unit of weight where
# weights are whole numbers, else as many as there are rows with a weight; a row of weight 0 is no row.

MOST_VISITS = 1 << 27  # most visits per stretch; larger whole weights are spread over as many visits as there are rows
KEPT_ROWS = 1 << 25  # rows whose order by hash is kept from one pass to the next: 256 MB
_SHUFFLED_NUMBERS = 1 << 24  # most numbers in a stretch that is shuffled: 128 MB


def wide_stretches(source: Source) -> Source:
    """The same rows in stretches as large as memory allows: rows are shuffled within one, and they keep their order."""
    fitting = max(_SHUFFLED_NUMBERS // max(source.n_features, 1), 1)
    rows = max(source.rows_of_stretch(), 1 << (fitting.bit_length() - 1))
    return source.resized(source.block_rows, rows)


@dataclass
class RowOrder:
    """Visits to rows, pass by pass. by_content=False permutes rows as they stand, not in the order of their hashes."""

    shuffle: bool
    random_state: int
    by_content: bool = True
    _kept: dict[int, Array] = field(default_factory=dict)
    _n_kept: int = 0

    def visits(self, stretch: Block, n_pass: int, n_run: int) -> Array | None:
        """Row numbers of the stretch in the order of their visits; None: as they stand."""
        if not self.shuffle and stretch.weight is None:
            return None
        sorts = self.shuffle and self.by_content
        rows: Array = self._by_hash(stretch, n_run) if sorts else np.arange(stretch.n_rows)
        return self.drawn(rows, stretch.weight, n_pass, n_run)

    def drawn(self, rows: Array, weight: Array | None, n_pass: int, n_run: int) -> Array:
        """The same of rows whose order by hash is known."""
        if not self.shuffle and weight is None:
            return rows
        random = np.random.Generator(np.random.PCG64([self.random_state, n_pass, n_run]))
        start = random.random()  # drawn in any case: the permutation must not depend on whether there are weights
        if weight is not None:
            rows = rows[_positions(weight[rows], start)]
        return rows[random.permutation(len(rows))] if self.shuffle else rows

    def _by_hash(self, stretch: Block, n_run: int) -> Array:
        if n_run in self._kept:
            return self._kept[n_run]
        order = by_hash(hashes_of(stretch))
        if self._n_kept + len(order) <= KEPT_ROWS:
            self._kept[n_run] = order
            self._n_kept += len(order)
        return order


def hashes_of(stretch: Block) -> Array:
    """A hash of the contents of every row: its columns, target and offset."""
    return np.asarray(core.row_hashes(stretch.rows, stretch.y, stretch.offset, n_threads()))


def by_hash(hashes: Array) -> Array:
    """Rows in the order of their hashes; equal rows as they stand."""
    return np.argsort(hashes, kind="stable")


def _positions(weight: Array, start: float) -> Array:
    """Places of the visits: place i comes weight_i n_visits / sum(weight) times, rounded down or up."""
    ends = np.cumsum(weight)
    total, n_visits = float(ends[-1]) if len(ends) else 0.0, int(np.count_nonzero(weight))
    if n_visits == 0:
        return np.zeros(0, dtype=np.int64)
    if total <= MOST_VISITS and (weight == np.floor(weight)).all():
        n_visits, start = int(total), 0.5
    at = np.searchsorted(ends, (np.arange(n_visits) + start) * (total / n_visits), side="right")
    return np.asarray(np.minimum(at, np.flatnonzero(weight)[-1]))
