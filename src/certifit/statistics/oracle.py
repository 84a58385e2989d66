"""The oracle statistic: a loss of scores z = offset + b + x'w summed over rows, with its gradient and Hessian.

Columns are scaled and shifted as for the Gram statistic; the order of a gradient is (columns, 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from certifit.data.cells import Cells
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.runtime import core, n_threads
from certifit.statistics.gram import Scaling


@dataclass(frozen=True)
class Oracle:
    """sum_i w_i l_i, its gradient, and its Hessian where that was asked for: one entry a cell.

    With a Hessian, of all rows: largest, of every scaled and shifted column and 1; slopes, the sum of w_i |l'_i|.
    """

    value: Array
    gradient: Array
    hessian: Array | None
    largest: Array | None
    slopes: float

    def __add__(self, other: Oracle) -> Oracle:
        value, gradient = self.value + other.value, self.gradient + other.gradient
        if self.hessian is None or other.hessian is None or self.largest is None or other.largest is None:
            return Oracle(value, gradient, None, None, 0.0)
        largest = np.maximum(self.largest, other.largest)
        return Oracle(value, gradient, self.hessian + other.hessian, largest, self.slopes + other.slopes)


class RowLoss(Protocol):
    """A loss that the compiled core knows: its place there, and its parameter."""

    @property
    def code(self) -> int | None:
        """Place among the compiled losses."""

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
    f = partial(_of_run, at=at, hessian=hessian, cells=cells, block_rows=source.block_rows)
    with np.errstate(over="ignore", invalid="ignore"):
        total: Oracle = source.reduce(f)
    return total


def _of_run(run: Block, at: At, hessian: bool, cells: Cells | None, block_rows: int) -> Oracle:
    s = at.scaling
    by_cell: tuple[Any, ...] = (None, 1) if cells is None else (cells.of(run), cells.n_cells)
    return Oracle(
        *core.oracle(
            run.rows,
            run.y,
            run.weight,
            run.offset,
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
