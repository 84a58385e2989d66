"""Folds of classifiers whose rows are few enough to be held together: a training set is a weight per row.

What a state says of every row is a table, so states of many columns take no more memory than those of few.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from certifit.data.cells import Splits
from certifit.data.columns import Array, dense_rows
from certifit.data.source import Block, Memory, Source
from certifit.data.user_input import refuse_nonfinite
from certifit.models.folds import MOST_BYTES

FEW_COLUMNS = 50  # below, sums of products of columns are cheap however few the rows are


@dataclass(frozen=True)
class GatheredRows:
    """All rows. X: rows x columns; codes: of the classes, -1 for none; weight: 0 for a row of no class."""

    X: Array
    codes: Array
    weight: Array
    block: Block
    names: list[str]  # of the columns

    @staticmethod
    def of(source: Source) -> GatheredRows | None:
        """The rows of a source whose y are codes; None where they are too many. Refuses entries that are no numbers."""
        try:
            block = source.gather(MOST_BYTES)
        except MemoryError:
            return None
        if block.y is None:
            raise ValueError("The rows carry no labels.")
        if 8 * block.n_rows * source.n_features > MOST_BYTES:  # sparse rows are gathered as they are
            return None
        X = dense_rows(block.X)
        if not np.isfinite(X).all():
            refuse_nonfinite(source)
        codes = block.y.astype(np.int64)
        weight = np.ones(len(codes)) if block.weight is None else block.weight
        return GatheredRows(X, codes, np.where(codes >= 0, weight, 0.0), block, list(source.names))

    def training_weights(self, splits: Splits) -> Array:
        """Weight of every row in the training set of every split: splits x rows."""
        none = np.zeros((splits.n_splits, 1))  # NO_CELL is the last
        return np.asarray(np.hstack([splits.train, none])[:, splits.cells.of(self.block)] * self.weight)

    def numbered(self) -> Source:
        """The same rows with their number as the only column."""
        numbers = np.arange(len(self.codes), dtype=np.float64)[:, None]
        return Memory.of(replace(self.block, X=numbers))


@dataclass(frozen=True)
class ScoreTable:
    """Scores of all rows by the fit to one training set. Rows are known by their number (`GatheredRows.numbered`)."""

    scores: Array  # rows x classes

    def mapped_scores(self, columns: Block) -> Array:
        """Scores of numbered rows."""
        return np.asarray(self.scores[dense_rows(columns.X)[:, 0].astype(np.intp)])


def column_spreads(X: Array, shares: Array, centred: bool = True) -> Array:
    """Standard deviation of every column (root mean square where not centred), 0 for one that does not vary."""
    away = X - shares @ X if centred else X
    spreads = np.sqrt(shares @ np.square(away))
    # A mean is rounded: what varies by no more is constant.
    return np.asarray(np.where(spreads > 8 * np.finfo(np.float64).eps * np.abs(X).max(axis=0), spreads, 0.0))


def is_wide(source: Source) -> bool:
    """Whether there are many columns, and more than rows: then products of rows are fewer than those of columns."""
    return source.n_features > FEW_COLUMNS and row_count(source) < source.n_features


def row_count(source: Source) -> int:
    """The number of rows: one pass, once per source."""
    return int(source.remembered("number of rows", lambda: source.narrow().reduce(_n_rows)))


def _n_rows(stretch: Block) -> int:
    return stretch.n_rows
