"""The baseline of every comparison: the mean of the training rows for every row, or the shares of their classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from certifit.data.cells import Cells, Splits
from certifit.data.columns import Array
from certifit.data.source import Block, Memory, Source, join
from certifit.models.class_folds import FoldModel, FoldModels
from certifit.models.class_refits import trained_classes
from certifit.selection.class_engine import FoldScores, scores_of
from certifit.selection.class_validation import ClassValidation, validated_by
from certifit.selection.rows import Rows
from certifit.solvers.fold_path import FoldPath


class MeanOfTarget(RegressorMixin, BaseEstimator):
    """The mean of y, for rows of a scan; `fold_path` has its errors on all splits from one pass a round."""

    def fit(self, X: Source, y: None = None) -> Self:
        """The mean of the targets of a scan."""
        self.mean_ = float(X.reduce(_one_cell).mean[0])
        return self

    def predict(self, X: Source) -> Array:
        """The mean, once a row."""
        return np.concatenate(list(X.map(partial(_repeated, self.mean_))))

    def fold_path(self, source: Source, rounds: Sequence[Splits], candidates: Sequence[Mapping[str, Any]]) -> FoldPath:
        """Squares about the training mean on training and validation rows."""
        found = []
        for splits in rounds:
            cells = source.reduce(partial(CellMoments.of, cells=splits.cells))
            for train, validation in zip(splits.train, splits.validation, strict=True):
                own, other = cells.combined(train), cells.combined(validation)
                null = other.squares[0] + other.weight[0] * (other.mean[0] - own.mean[0]) ** 2
                found.append((own.squares[0], other.squares[0], own.weight[0], other.weight[0], null))
        columns = (np.array(column) for column in zip(*found, strict=True))
        train_total, validation_total, train_weight, validation_weight, null = columns
        return FoldPath(
            train_total[None, :], null[None, :], train_total, validation_total, train_weight, validation_weight, null
        )


class MeanRate(RegressorMixin, BaseEstimator):
    """The mean of y for each unit of exposure: rate exp(offset) for every row of a scan.

    rate = sum of w y / sum of w exp(offset)
    """

    def fit(self, X: Source, y: None = None) -> Self:
        """The rate of a scan with an offset."""
        total, exposure = X.reduce(_of_exposure)
        if not (exposure > 0 and np.isfinite(exposure)):
            raise ValueError(f"The exposures, exp(offset), sum up to {exposure:g}, so there is no mean rate.")
        self.rate_ = float(total / exposure)
        return self

    def predict(self, X: Source) -> Array:
        """rate exp(offset) of every row."""
        return self.rate_ * np.concatenate(list(X.map(_exposures)))


def _exposures(block: Block) -> Array:
    if block.offset is None:
        raise ValueError("The mean rate needs an offset or exposure.")
    return np.exp(block.offset)


def _of_exposure(block: Block) -> Array:
    if block.y is None:
        raise ValueError("The mean rate needs a target.")
    weight = np.ones(block.n_rows) if block.weight is None else block.weight
    return np.array([weight @ block.y, weight @ _exposures(block)])


@dataclass(frozen=True)
class ClassShares:
    """The shares of the classes among some rows, as the probabilities of every row."""

    log_shares: Array

    def mapped_scores(self, block: Block) -> Array:
        """The logarithms of the shares, once a row."""
        return np.tile(self.log_shares, (block.n_rows, 1))


def class_shares(rows: Rows, rounds: Sequence[Splits], scoring: Any) -> tuple[FoldScores, ClassValidation]:
    """Scores of the training shares on the validation rows of every split, and every row predicted by them."""
    if rows.classes is None:
        raise ValueError("Shares of classes need labels y.")
    lean = replace(rows, source=without_columns(rows.source))
    n_classes = len(rows.classes)
    models: list[list[list[FoldModel | None]]] = []
    for splits in rounds:
        with np.errstate(divide="ignore"):
            trained = trained_classes(lean.source, n_classes, splits)
            logs = np.log(trained / trained.sum(axis=1, keepdims=True))
        models.append([[FoldModel(ClassShares(own), np.arange(n_classes), n_classes) for own in logs]])
    found = FoldModels(lean.source, rounds, models, {})
    scores = scores_of(found, rows.classes, 1, scoring)
    return scores, replace(validated_by(lean, found), is_constant=True)


def without_columns(source: Source) -> Memory:
    """Targets, weights, groups and offsets of all rows, in memory: a pass that reads no more columns than it must."""
    whole = join(list(source.narrow().map(_without_columns)))
    lean = Memory(whole.X, whole.y, whole.weight)
    lean.block = whole
    return lean


def _without_columns(block: Block) -> Block:
    return replace(block, X=np.zeros((block.n_rows, 1), dtype=np.uint8))


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
        own, n_cells = cells.of(block), cells.n_cells
        weight = np.ones(block.n_rows) if block.weight is None else block.weight
        own, weight, y = own[own >= 0], weight[own >= 0], block.y[own >= 0]
        total = np.bincount(own, weight, n_cells)
        mean = _ratio(np.bincount(own, weight * y, n_cells), total)
        return CellMoments(total, mean, np.bincount(own, weight * (y - mean[own]) ** 2, n_cells))

    def combined(self, times: Array) -> CellMoments:
        """Of all cells together, each counted so many times."""
        weight = times * self.weight
        total = weight.sum(keepdims=True)
        if not total[0] > 0:
            raise ValueError("A split has no rows of positive weight. Use fewer folds.")
        mean = (weight @ self.mean) / total
        return CellMoments(total, mean, (times @ self.squares + weight @ (self.mean - mean) ** 2)[None])

    def __add__(self, other: CellMoments) -> CellMoments:
        """Squares add up, and so does n_1 n_2 / (n_1 + n_2) (mean_1 - mean_2)^2."""
        total = self.weight + other.weight
        step = other.mean - self.mean
        share = _ratio(other.weight, total)
        squares = self.squares + other.squares + self.weight * share * step**2
        return CellMoments(total, self.mean + share * step, squares)


@dataclass(frozen=True)
class _One:
    """All rows in one cell."""

    n_cells: int = 1

    def of(self, block: Block) -> Array:
        return np.zeros(block.n_rows, dtype=np.int32)


def _one_cell(block: Block) -> CellMoments:
    return CellMoments.of(block, _One())


def _repeated(mean: float, block: Block) -> Array:
    return np.full(block.n_rows, mean)


def _ratio(above: Array, below: Array) -> Array:
    """above / below, 0 where there is nothing."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)
