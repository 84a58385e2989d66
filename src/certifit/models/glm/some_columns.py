"""A task on some of its columns, gathered in memory."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import Generic, TypeVar

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Array, Columns
from certifit.data.source import Block, Memory, Source, join
from certifit.models.glm.softmax_task import SoftmaxWeights
from certifit.models.glm.task import GlmTask, ScoreTask
from certifit.models.lasso.task import Strengths
from certifit.models.least_squares.normal_equations import Weights

TaskT = TypeVar("TaskT", bound="ScoreTask[Weights] | ScoreTask[SoftmaxWeights]")


class SomeColumns(Generic[TaskT]):
    """Makes of a task the same with fewer columns."""

    def __init__(self, task: TaskT) -> None:
        self.task = task

    def taken(self, columns: Array, alpha: float) -> TaskT:
        """The task on some columns, in the units of the whole, with an alpha."""
        block = self._block(columns)
        names = [self.task.source.names[j] for j in columns]
        return like(self.task, Memory(block.X, block.y, block.weight, names, block.offset), columns, alpha)

    def sparse(self, columns: Array, alpha: float) -> tuple[GlmTask, sp.csc_array, Block] | None:
        """The units of `taken`, the columns by column and what is beside them; None where rows are not sparse.

        None of several scores too, whose steps are those of a Hessian.
        """
        if self._by_column is None or not isinstance(self.task, GlmTask):
            return None
        X = self._by_column[:, columns]
        return like(self.task, self.task.source, columns, alpha), X, self._only_run

    def _block(self, columns: Array) -> Block:
        if self._by_column is not None:
            X = sp.csr_array(self._by_column[:, columns])
            return replace(self._only_run, X=X)
        return join(list(self.task.source.map(partial(_taken, columns=columns))))

    @cached_property
    def _only_run(self) -> Block:
        assert isinstance(self.task.source, Memory)
        return self.task.source.block

    @cached_property
    def _by_column(self) -> sp.csc_array | None:
        """Sparse rows in memory by column; None for others."""
        source = self.task.source
        if isinstance(source, Memory) and sp.issparse(source.block.X):
            return sp.csc_array(source.block.X)
        return None


def like(task: TaskT, source: Source, columns: Array, alpha: float) -> TaskT:
    """The task on some columns of its rows, which are those of the source."""
    small = type(task).__new__(type(task))
    small.source, small.fit_intercept = source, task.fit_intercept
    small.strengths = _strengths_of(task.strengths, columns, alpha)
    small.standardize, small.__dict__["spreads"] = task.standardize, task.spreads[columns]
    s = task.scaling
    small.scaling = replace(s, scale=s.scale[columns], shift=s.shift[columns])
    small.__dict__.update(task.of_targets())
    return small


def _taken(run: Block, columns: Array) -> Block:
    X = run.X.toarray() if isinstance(run.X, Columns) else run.X
    return replace(
        run, X=np.ascontiguousarray(X[:, columns]) if isinstance(X, np.ndarray) else sp.csr_array(X[:, columns])
    )


def _strengths_of(strengths: Strengths, columns: Array, alpha: float) -> Strengths:
    s = strengths
    return Strengths(alpha, s.l1_ratio, s.factors[columns], s.lower[columns], s.upper[columns])
