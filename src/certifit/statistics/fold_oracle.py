"""The loss of many training sets at once, one point per set: one pass over the rows for all of them.

`HeldOut` holds the validation rows of a split with what fits to the other rows predicted for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from certifit.data.cells import Cells, Splits
from certifit.data.columns import Array
from certifit.data.source import Block, Source, tree_sum
from certifit.runtime import core, n_threads
from certifit.statistics.gram import Scaling
from certifit.statistics.oracle import RowLoss


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
    f = partial(_of_stretch, at=at, block_rows=source.block_rows)
    with np.errstate(over="ignore", invalid="ignore"):
        total: FoldSums = source.reduce(f)
    return total


def _of_stretch(stretch: Block, at: FoldsAt, block_rows: int) -> FoldSums:
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
