"""The oracle statistic: a loss of scores z = offset + b + x'w summed over rows, with its gradient and Hessian.

Columns are scaled and shifted as for the Gram statistic; the order of a gradient is (columns, 1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np

from certifit.data.cells import Cells
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.runtime import core, n_threads
from certifit.statistics import row_losses
from certifit.statistics.gram import Scaling, check_square
from certifit.statistics.row_curvature import in_large_blocks


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


class RowLoss(row_losses.PythonLoss, Protocol):
    """A loss of a score: its place among the compiled ones and its parameter, or its formulas in Python."""

    @property
    def parameter(self) -> float:
        """Of the compiled formula."""


@dataclass(frozen=True)
class At:
    """Where a loss is evaluated: weights of scaled, shifted columns and the intercept of those."""

    loss: RowLoss
    scaling: Scaling
    weights: Array
    intercept: float


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
        total = replace(total, hessian=row_losses.chosen(total.hessian))
    return total


def _of_stretch(stretch: Block, at: At, hessian: bool, cells: Cells | None, block_rows: int) -> Oracle:
    s = at.scaling
    by_cell: row_losses.ByCell = (None, 1) if cells is None else (cells.of(stretch), cells.n_cells)
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
    by_cell: row_losses.ByCell = (None, 1) if cells is None else (cells.of(stretch), cells.n_cells)
    z = row_losses.scores_of(stretch, s, at.weights, at.intercept)
    losses = row_losses.derivatives_of(stretch, at.loss, z, hessian)
    value = row_losses.value_sums(stretch, losses.values, s.weight_scale, block_rows, by_cell)
    first = losses.curvatures[0] if hessian else None
    gradient, matrix, largest, _ = row_losses.sums_of(stretch, s, losses.slopes, first, block_rows, by_cell)
    slopes, curvatures = (
        float(row_losses.value_sums(stretch, np.abs(rows), s.weight_scale, block_rows, (None, 1))[0])
        for rows in (losses.slopes, losses.curved)
    )
    if len(losses.curvatures) > 1:
        matrix = np.stack(row_losses.hessians_of(stretch, s, losses.curvatures, block_rows, by_cell))
    return Oracle(value, gradient, matrix, largest, slopes, curvatures)
