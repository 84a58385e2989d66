"""The oracle statistic: a loss of scores z = offset + b + x'w summed over rows, with its gradient and Hessian.

Columns are scaled and shifted as for the Gram statistic; the order of a gradient is (columns, 1).

The oracle statistic of losses in Python, a stretch at a time: derivatives by row in NumPy, their sums compiled.

A loss without a curvature gets differences of its slope. Where a loss is not convex both Hessians are summed, the
true one and the expected one (Fisher's, >= 0); the true one is used where it is positive.

The loss of many training sets at once, one point per set: one pass over the rows for all of them.

`HeldOut` holds the validation rows of a split with what fits to the other rows predicted for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np

from certifit.data.cells import Cells, Splits
from certifit.data.columns import Array
from certifit.data.source import Block, Source, tree_sum
from certifit.runtime import core, n_threads
from certifit.statistics.gram import Scaling, check_square
from certifit.statistics.row_curvature import Loss, in_large_blocks

STEP = 6e-6  # relative step of differences of a slope: the cube root of the rounding unit
FORMULA_ERROR = 2.0**-49  # error of a computed loss, relative to it and to its slope times 1 + |z| + |log y|
SUM_ERROR = 2.0**-40  # relative error of a sum of losses
LITTLE = 0.5  # of scores: as far as slope and curvature tell what a loss is
INDEFINITE = 1e-10  # eigenvalues below minus this share of the largest, in units of unit diagonal, are negative


ByCell = tuple[Array | None, int]  # the cell of each row, and how many cells there are; None: one cell


class RowLoss(Loss, Protocol):
    """A loss of a score with all its formulas: l, its derivatives by z, and the mean of y at a score."""

    @property
    def is_convex(self) -> bool:
        """Whether l'' >= 0 everywhere."""

    @property
    def has_curvature(self) -> bool:
        """Whether l'' has a formula."""

    def curvature(self, y: Array, z: Array) -> Array:
        """l''."""

    def derivatives(self, y: Array, z: Array) -> tuple[Array, Array, Array]:
        """l, l' and l'' at once."""

    def mean(self, z: Array) -> Array:
        """E y at a score."""

    def cancelled(self, mean: float) -> float:
        """The size of what cancels in slopes, for targets of this size."""


@dataclass(frozen=True)
class At:
    """Where a loss is evaluated: weights of scaled, shifted columns and the intercept of those."""

    loss: RowLoss
    scaling: Scaling
    weights: Array
    intercept: float


@dataclass(frozen=True)
class RowDerivatives:
    """Loss and derivatives by row. curvatures: one, or the true and the expected one; none: not asked."""

    values: Array
    slopes: Array
    curved: Array  # l''
    curvatures: tuple[Array, ...]


def scores_of(stretch: Block, scaling: Scaling, weights: Array, intercept: float) -> Array:
    """offset + b + x'w of the rows, in scaled and shifted columns."""
    directions = np.ascontiguousarray(weights[:, None])
    if len(weights):
        z = core.project(stretch.rows, scaling.scale, scaling.shift, directions, n_threads())[:, 0] + intercept
    else:
        z = np.full(stretch.n_rows, intercept)
    return np.asarray(z if stretch.offset is None else z + stretch.offset)


STILL = 2.0**-100  # of the square of a mean: a mean square about it below this share is rounding


def about_mean(y: Array, weight: Array) -> Array:
    """y less its mean over rows of these weights: what the mean is rounded by is taken off too."""
    z = y - float(weight @ y / weight.sum())
    return np.asarray(z - float(weight @ z / weight.sum()))


def row_spread(y: Array, weight: Array) -> float:
    """Sum of w (y - mean)^2: 0 where y does not vary, NaN for a single row, of which R2 has no meaning."""
    counted = y[weight > 0]
    if len(counted) < 2:
        return float("nan")
    return 0.0 if (counted == counted[0]).all() else float(weight @ about_mean(y, weight) ** 2)


def derivatives_of(stretch: Block, loss: RowLoss, z: Array, hessian: bool, curved: bool = True) -> RowDerivatives:
    """Of the rows; those of weight 0 have none. curved: whether l'' is wanted; else it is 0."""
    if stretch.y is None:
        raise ValueError("The rows carry no target.")
    counted = None if stretch.weight is None else stretch.weight > 0
    y = stretch.y if counted is None or not counted.any() else np.where(counted, stretch.y, stretch.y[counted][0])
    z = z if counted is None else np.where(counted, z, z[counted][0] if counted.any() else 0.0)
    with np.errstate(all="ignore"):
        if curved and loss.has_curvature:
            values, slopes, second = loss.derivatives(y, z)
        else:
            values, slopes = loss.value(y, z), loss.slope(y, z)
            second = curvature_of(loss, y, z) if curved else np.zeros_like(z)
        curvatures: tuple[Array, ...] = ()
        if hessian:
            curvatures = (second,)
            if not loss.is_convex:
                curvatures = (*curvatures, np.maximum(loss.expected(y, z), 0.0)) if loss.has_curvature else curvatures
    if counted is not None:
        values, slopes, second = (np.where(counted, rows, 0.0) for rows in (values, slopes, second))
    return RowDerivatives(np.asarray(values), np.ascontiguousarray(slopes), second, curvatures)


def curvature_of(loss: RowLoss, y: Array, z: Array) -> Array:
    """l'', by differences of the slope where the loss gives none."""
    if loss.has_curvature:
        return np.asarray(loss.curvature(y, z))
    step = STEP * np.maximum(np.abs(z), 1.0)
    return np.asarray((loss.slope(y, z + step) - loss.slope(y, z - step)) / (2 * step))


def sums_of(
    stretch: Block, scaling: Scaling, slopes: Array, curvatures: Array | None, block_rows: int, by_cell: ByCell
) -> tuple[Array, Array | None, Array | None, float]:
    """Sums of w slope (x, 1) and w curvature (x, 1)(x, 1)'; the largest entries, and the sum of w |slope|."""
    usable = None if curvatures is None else np.where(np.isfinite(curvatures), np.maximum(curvatures, 0.0), 0.0)
    finite = np.where(np.isfinite(slopes), slopes, 0.0)
    settings = (scaling.scale, scaling.shift, scaling.weight_scale, block_rows, n_threads())
    sums: tuple[Array, Array | None, Array | None, float] = core.weighted_sums(
        stretch.rows, finite, usable, stretch.weight, *settings, *by_cell
    )
    return sums


def hessians_of(
    stretch: Block, scaling: Scaling, curvatures: tuple[Array, ...], block_rows: int, by_cell: ByCell
) -> list[Array]:
    """A sum of w curvature (x, 1)(x, 1)' for each; parts below 0 are summed by themselves."""
    nothing = np.zeros(stretch.n_rows)
    hessians = []
    for curvature in curvatures:
        total = sums_of(stretch, scaling, nothing, curvature, block_rows, by_cell)[1]
        assert total is not None
        if (curvature < 0).any():
            below = sums_of(stretch, scaling, nothing, -curvature, block_rows, by_cell)[1]
            assert below is not None
            total = total - below
        hessians.append(total)
    return hessians


def value_sums(stretch: Block, values: Array, weight_scale: float, block_rows: int, by_cell: ByCell) -> Array:
    """Sums of w value: one entry per cell, blocks in the tree of all sums."""
    cells, n_cells = by_cell
    weighted = values * weight_scale if stretch.weight is None else values * (stretch.weight * weight_scale)

    def of_block(begin: int) -> Array:
        part = weighted[begin : begin + block_rows]
        if cells is None:
            return np.array([part.sum()])
        return np.bincount(cells[begin : begin + block_rows], weights=part, minlength=n_cells)[:n_cells]

    return tree_sum(map(of_block, range(0, max(stretch.n_rows, 1), block_rows)))


def careful_loss(source: Source, at: At, score_error: float) -> tuple[float, float]:
    """Bounds on the sum of w l, losses written so that nothing cancels, for scores that are off by score_error.

    Where l is convex in z, l(z + t) >= l(z) + l'(z) t, and it is largest at an end; its formulas are right to some
    roundings of it and of z and log y.
    """
    bounds = source.map(partial(_careful_of_stretch, at=at, score_error=score_error))
    low, high = np.sum(np.asarray(list(bounds)).reshape(-1, 2), axis=0)
    return float(low) * (1 - SUM_ERROR), float(high) * (1 + SUM_ERROR)


def _careful_of_stretch(stretch: Block, at: At, score_error: float) -> tuple[float, float]:
    z = scores_of(stretch, at.scaling, at.weights, at.intercept)
    losses = derivatives_of(stretch, at.loss, z, hessian=False)
    moved = score_error + FORMULA_ERROR * _sizes(stretch, z)
    with np.errstate(over="ignore", invalid="ignore"):
        off = moved * (np.abs(losses.slopes) + moved * np.abs(losses.curved))
        low = np.maximum(losses.values * (1 - FORMULA_ERROR) - off, 0.0)
        weight = at.scaling.weight_scale * (1.0 if stretch.weight is None else stretch.weight)
        # e^moved: by how much a curvature can grow on the way. Beyond that slopes that have underflowed tell nothing.
        high = losses.values * (1 + FORMULA_ERROR) + np.where(moved <= LITTLE, 2 * off, np.inf)
        if at.loss.is_convex and (moved > LITTLE).any():
            ends = [derivatives_of(stretch, at.loss, z + t * moved, False, curved=False).values for t in (-2, 2)]
            high = np.minimum(high, np.nan_to_num(np.maximum(*ends) * (1 + 2 * FORMULA_ERROR), nan=np.inf))
        high = np.where(weight > 0, high, 0.0)
        return float(np.sum(weight * low)), float(np.sum(weight * high))


def with_slopes(at: At, stretch: Block) -> Block:
    """The stretch with the slopes of a loss for its targets, as float64 tells them."""
    z = scores_of(stretch, at.scaling, at.weights, at.intercept)
    return replace(stretch, y=derivatives_of(stretch, at.loss, z, hessian=False, curved=False).slopes)


def shrunk_slopes(source: Source, at: At, lost: float, score_error: float, is_rounded: bool = False) -> float:
    """At least sum w [l(z) + l*(t l'(z)) - t l'(z) z], 1 - lost <= t <= 1, for scores off by score_error: one pass.

    A bracket is convex in t, l(z) - min l at 0, and 0 at 1. Where |l'''| <= M l'' and k = M lost |l'| / l'' <= 1/2, the
    score whose slope is t l' is no further than -log(1 - k) / M, and the bracket no more than 1.3 lost^2 l'^2 / l''.
    is_rounded: of t u, where u is l' but for the rounding of its formula and l'' score_error: both are lost too.
    """
    f = partial(_shrunk_of_stretch, at=at, lost=lost, score_error=score_error, is_rounded=is_rounded)
    return float(np.sum(list(source.map(f)))) * (1 + SUM_ERROR)


def _shrunk_of_stretch(stretch: Block, at: At, lost: float, score_error: float, is_rounded: bool) -> float:
    z = scores_of(stretch, at.scaling, at.weights, at.intercept)
    losses, concordance = derivatives_of(stretch, at.loss, z, hessian=False), getattr(at.loss, "concordance", None)
    if concordance is None or not concordance * score_error <= LITTLE / 4:
        return np.inf
    with np.errstate(all="ignore"):
        slopes = np.abs(losses.slopes) + 2 * losses.curved * score_error
        whole, rounding = np.maximum(lost * (losses.values + 2 * score_error * slopes), 0.0), np.zeros_like(z)
        if is_rounded:
            rounding = 2 * losses.curved * (score_error + FORMULA_ERROR * _sizes(stretch, z))
            rounding += FORMULA_ERROR * (
                slopes + at.loss.cancelled(float(np.abs(np.asarray(stretch.y)).max(initial=0)))
            )
            whole += np.where(concordance * rounding <= losses.curved / 2, 2 * rounding**2 / losses.curved, np.inf)
        off = lost * slopes + rounding
        second = np.where(concordance * off <= losses.curved / 2, 2 * np.square(off) / losses.curved, np.inf)
        weight = at.scaling.weight_scale * (np.ones_like(z) if stretch.weight is None else stretch.weight)
        return float(np.sum((weight * np.fmin(second, whole))[weight > 0]))


def _sizes(stretch: Block, z: Array) -> Array:
    """What roundings of formulas of y and z are relative to."""
    y = np.abs(np.asarray(stretch.y))
    return np.asarray(1 + np.abs(z) + np.where(y > 0, np.abs(np.log(np.where(y > 0, y, 1.0))), 0.0))


def chosen(pairs: Array) -> Array:
    """Of pairs of true and expected Hessians, shape (2, cells, size, size): the true ones where they are positive."""
    return np.stack([true if _is_positive(true) else expected for true, expected in zip(*pairs, strict=True)])


def _is_positive(matrix: Array) -> bool:
    diagonal = np.diagonal(matrix)
    if not (np.isfinite(matrix).all() and (diagonal >= 0).all()):
        return False
    units = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values = np.linalg.eigvalsh(matrix * units * units[:, None])
    return bool(values[0] >= -INDEFINITE * max(values[-1], 0.0))


@dataclass(frozen=True)
class Oracle:
    """sum_i w_i l_i, its gradient, and its Hessian where that was asked for: one entry per cell.

    Of all rows: slopes, the sum of w_i |l'_i|; curvatures, that of w_i l''_i; with a Hessian largest, of every scaled
    and shifted column and 1.
    """

    value: Array
    gradient: Array
    hessian: Array | None
    largest: Array | None
    slopes: float
    curvatures: float

    def __add__(self, other: Oracle) -> Oracle:
        value, gradient = self.value + other.value, self.gradient + other.gradient
        slopes, curvatures = self.slopes + other.slopes, self.curvatures + other.curvatures
        if self.hessian is None or other.hessian is None or self.largest is None or other.largest is None:
            return Oracle(value, gradient, None, None, slopes, curvatures)
        largest = np.maximum(self.largest, other.largest)
        return Oracle(value, gradient, self.hessian + other.hessian, largest, slopes, curvatures)


def oracle(source: Source, at: At, hessian: bool = False, cells: Cells | None = None) -> Oracle:
    """The statistic of a source: one pass."""
    of_stretch = _of_stretch if at.loss.code is not None else _of_stretch_in_python
    if hessian:
        check_square(source, n_cells=1 if cells is None else cells.n_cells)
    blocks = source if hessian else in_large_blocks(source)
    f = partial(of_stretch, at=at, hessian=hessian, cells=cells, block_rows=blocks.block_rows)
    with np.errstate(over="ignore", invalid="ignore"):
        total: Oracle = blocks.reduce(f)
    if total.hessian is not None and total.hessian.ndim == 4:
        total = replace(total, hessian=chosen(total.hessian))
    return total


def _of_stretch(stretch: Block, at: At, hessian: bool, cells: Cells | None, block_rows: int) -> Oracle:
    s = at.scaling
    by_cell: ByCell = (None, 1) if cells is None else (cells.of(stretch), cells.n_cells)
    return Oracle(
        *core.oracle(
            stretch.rows,
            stretch.y,
            stretch.weight,
            stretch.offset,
            s.scale,
            s.shift,
            s.weight_scale,
            at.weights,
            at.intercept,
            at.loss.code,
            at.loss.parameter,
            hessian,
            block_rows,
            n_threads(),
            *by_cell,
        )
    )


def _of_stretch_in_python(stretch: Block, at: At, hessian: bool, cells: Cells | None, block_rows: int) -> Oracle:
    """The same of a loss that is not compiled; with two Hessians, shape (2, cells, size, size), where it needs both."""
    s = at.scaling
    by_cell: ByCell = (None, 1) if cells is None else (cells.of(stretch), cells.n_cells)
    z = scores_of(stretch, s, at.weights, at.intercept)
    losses = derivatives_of(stretch, at.loss, z, hessian)
    value = value_sums(stretch, losses.values, s.weight_scale, block_rows, by_cell)
    first = losses.curvatures[0] if hessian else None
    gradient, matrix, largest, _ = sums_of(stretch, s, losses.slopes, first, block_rows, by_cell)
    slopes, curvatures = (
        float(value_sums(stretch, np.abs(rows), s.weight_scale, block_rows, (None, 1))[0])
        for rows in (losses.slopes, losses.curved)
    )
    if len(losses.curvatures) > 1:
        matrix = np.stack(hessians_of(stretch, s, losses.curvatures, block_rows, by_cell))
    return Oracle(value, gradient, matrix, largest, slopes, curvatures)


@dataclass(frozen=True)
class FoldSums:
    """Of every training set: the sum of the loss and its gradient; of its validation rows: sums of loss and weight."""

    train: Array
    gradient: Array  # (columns + 1) x sets
    validation: Array
    weight: Array

    def __add__(self, other: FoldSums) -> FoldSums:
        return FoldSums(
            self.train + other.train,
            self.gradient + other.gradient,
            self.validation + other.validation,
            self.weight + other.weight,
        )


@dataclass(frozen=True)
class FoldsAt:
    """Where a loss is evaluated: a point per split, (weights of scaled, shifted columns, intercept)."""

    loss: RowLoss
    scaling: Scaling
    splits: Splits
    points: Array  # splits x (columns + 1)


def fold_oracle(source: Source, at: FoldsAt) -> FoldSums:
    """The sums of all splits: one pass."""
    f = partial(_folds_of_stretch, at=at, block_rows=source.block_rows)
    with np.errstate(over="ignore", invalid="ignore"):
        total: FoldSums = source.reduce(f)
    return total


def _folds_of_stretch(stretch: Block, at: FoldsAt, block_rows: int) -> FoldSums:
    s, splits = at.scaling, at.splits
    return FoldSums(
        *core.fold_oracle(
            stretch.rows,
            stretch.y,
            stretch.weight,
            stretch.offset,
            s.scale,
            s.shift,
            s.weight_scale,
            np.ascontiguousarray(at.points[:, :-1].T),
            np.ascontiguousarray(at.points[:, -1]),
            splits.cells.of(stretch),
            np.ascontiguousarray(splits.train),
            np.ascontiguousarray(splits.validation),
            at.loss.code,
            at.loss.parameter,
            True,
            block_rows,
            n_threads(),
        )
    )


@dataclass(frozen=True)
class CellTargets:
    """Of every cell: sum of weights, and of weights times the target."""

    weight: Array
    first: Array

    def __add__(self, other: CellTargets) -> CellTargets:
        return CellTargets(self.weight + other.weight, self.first + other.first)


def cell_targets(source: Source, cells: Cells) -> CellTargets:
    """One pass over the target; blocks are summed in the tree of all sums, so that any engine gives the same bits."""
    total: CellTargets = source.reduce(partial(_targets_of_stretch, cells=cells, block_rows=source.block_rows))
    return total


def _targets_of_stretch(stretch: Block, cells: Cells, block_rows: int) -> CellTargets:
    if stretch.y is None:
        raise ValueError("The rows carry no target.")
    cell_of_row = cells.of(stretch)
    weight = np.ones(stretch.n_rows) if stretch.weight is None else stretch.weight
    counts = (cell_of_row >= 0) & (weight > 0)
    first = np.where(counts, stretch.y, 0.0) * np.where(counts, weight, 0.0)
    return tree_sum(
        _targets_of_block(
            cell_of_row[part][counts[part]], weight[part][counts[part]], first[part][counts[part]], cells.n_cells
        )
        for part in (slice(begin, begin + block_rows) for begin in range(0, max(stretch.n_rows, 1), block_rows))
    )


def _targets_of_block(cell_of_row: Array, weight: Array, first: Array, n_cells: int) -> CellTargets:
    return CellTargets(np.bincount(cell_of_row, weight, n_cells), np.bincount(cell_of_row, first, n_cells))


# ---- validation rows of a split --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HeldOut:
    """The validation rows of one split, in the order of their numbers.

    numbers : global numbers of the rows
    weight : weight of each row times how often it validates
    y : target of each row, or the place of its class
    values : name -> candidates x rows
    """

    numbers: Array
    weight: Array
    y: Array
    values: Mapping[str, Array]

    @staticmethod
    def joined(parts: Sequence[HeldOut]) -> HeldOut:
        """The rows of consecutive stretches."""
        if len(parts) == 1:
            return parts[0]
        numbers, weight, y = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("numbers", "weight", "y")
        )
        values = {name: np.concatenate([part.values[name] for part in parts], axis=1) for name in parts[0].values}
        return HeldOut(numbers, weight, y, values)


def validating(stretch: Block, splits: Splits, split: int) -> tuple[Array, Array]:
    """(flags of the rows of a stretch that validate a split, their weights times how often they do)."""
    times = splits.validated(stretch, split)
    weight = times if stretch.weight is None else times * stretch.weight
    return weight > 0, weight[weight > 0]


def numbers_where(stretch: Block, keep: Array) -> Array:
    """Global numbers of the flagged rows of a stretch."""
    return stretch.first_row + np.flatnonzero(keep)


def joined_candidates(parts: Sequence[HeldOut], order: Array) -> HeldOut:
    """The same rows of groups of candidates, one after the other in this order."""
    values = {name: np.concatenate([part.values[name] for part in parts])[order] for name in parts[0].values}
    return replace(parts[0], values=values)


def joined_by_split(parts: Sequence[Sequence[HeldOut]]) -> list[HeldOut]:
    """One entry per split, from lists of them stretch by stretch."""
    return [HeldOut.joined(of_split) for of_split in zip(*parts, strict=True)]
