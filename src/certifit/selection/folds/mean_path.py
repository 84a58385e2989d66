"""Errors of predicting the mean of the training rows, on all splits: one pass per round over the targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.data.cells import Cells, Splits
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.models.least_squares.fold_path import FoldPath
from certifit.statistics.moments import Merge


def mean_path(source: Source, rounds: Sequence[Splits]) -> FoldPath:
    """Squares about the training mean on the training and validation rows of all splits: one pass per round."""
    sums = []
    for splits in rounds:
        cells = source.reduce(partial(CellMoments.of, cells=splits.cells))
        for times in zip(splits.train, splits.validation, strict=True):
            train, validation = (cells.combined(counts) for counts in times)
            null = validation.squares[0] + validation.weight[0] * (validation.mean[0] - train.mean[0]) ** 2
            sums.append((train.squares[0], validation.squares[0], train.weight[0], validation.weight[0], null))
    columns = (np.array(column) for column in zip(*sums, strict=True))
    train_total, validation_total, train_weight, validation_weight, null = columns
    totals = (train_total, validation_total, train_weight, validation_weight)
    return FoldPath(train_total[None, :], null[None, :], *totals, null)


@dataclass(frozen=True)
class CellMoments:
    """Of every cell: sum of weights w, mean of y, sum of w (y - mean)^2."""

    weight: Array
    mean: Array
    squares: Array

    @staticmethod
    def of(block: Block, cells: Cells) -> CellMoments:
        """Of the rows of one block."""
        if block.y is None:
            raise ValueError("The mean of y needs a target.")
        cell_of_row, n_cells = cells.of(block), cells.n_cells
        weight = np.ones(block.n_rows) if block.weight is None else block.weight
        cell_of_row, weight, y = cell_of_row[cell_of_row >= 0], weight[cell_of_row >= 0], block.y[cell_of_row >= 0]
        total = np.bincount(cell_of_row, weight, n_cells)
        mean = _ratio(np.bincount(cell_of_row, weight * y, n_cells), total)
        return CellMoments(total, mean, np.bincount(cell_of_row, weight * (y - mean[cell_of_row]) ** 2, n_cells))

    def combined(self, times: Array) -> CellMoments:
        """Of all cells together, each counted so many times."""
        weight = times * self.weight
        total = weight.sum(keepdims=True)
        if not total[0] > 0:
            raise ValueError("A split has no rows of positive weight. Use fewer folds.")
        mean = (weight @ self.mean) / total
        return CellMoments(total, mean, (times @ self.squares + weight @ (self.mean - mean) ** 2)[None])

    def __add__(self, other: CellMoments) -> CellMoments:
        both, step = Merge.of(self.weight, other.weight), other.mean - self.mean
        squares = both.products(self.squares, other.squares, step, step)
        return CellMoments(both.weight, both.mean(self.mean, other.mean), squares)


def _ratio(above: Array, below: Array) -> Array:
    """above / below, 0 where there is nothing."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)
