"""The baseline of every comparison: the mean of the training rows for every row, or the shares of their classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _num_samples

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Block, Memory, Source, join
from certifit.data.user_types import UserRows, UserTarget, UserWeights
from certifit.models.discriminant.folds import trained_classes
from certifit.models.fold_rows import ClassState, RowFolds
from certifit.models.metric import Metric
from certifit.selection.folds.class_validation import ClassValidation, validated_by
from certifit.selection.folds.fold_scores import FoldScores, state_scores
from certifit.selection.folds.mean_path import CellMoments
from certifit.selection.folds.metrics import Scoring
from certifit.selection.folds.rows import Rows


class MeanOfTarget(RegressorMixin, BaseEstimator):
    """The mean of y, for rows of a scan."""

    def fit(self, X: Source, y: None = None) -> Self:
        """The mean of the targets of a scan."""
        self.mean_ = float(X.reduce(_one_cell).mean[0])
        return self

    def predict(self, X: Source) -> Array:
        """The mean, once per row."""
        return np.concatenate(list(X.map(partial(_repeated, self.mean_))))


class BestConstant(RegressorMixin, BaseEstimator):
    """The number that is best by a metric, for rows in memory or of a scan."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric

    def fit(self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None) -> Self:
        """The constant of the targets; a scan carries them."""
        if isinstance(X, Source):
            parts = [(run.y, np.ones(run.n_rows) if run.weight is None else run.weight) for run in X.stretches()]
            y, sample_weight = (np.concatenate(column) for column in zip(*parts, strict=True))
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        self.constant_ = self.metric.constant(np.asarray(y, dtype=np.float64), weight)
        return self

    def predict(self, X: UserRows) -> Array:
        """The constant, once per row."""
        if isinstance(X, Source):
            return np.concatenate(list(X.map(partial(_repeated, self.constant_))))
        return np.full(_num_samples(X), self.constant_)


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
        """The logarithms of the shares, once per row."""
        return np.tile(self.log_shares, (block.n_rows, 1))


def class_shares(rows: Rows, rounds: Sequence[Splits], scoring: Scoring) -> tuple[FoldScores, ClassValidation]:
    """Scores of the training shares on the validation rows of every split, and every row predicted by them."""
    if rows.classes is None:
        raise ValueError("Shares of classes need labels y.")
    lean = replace(rows, source=without_columns(rows.source))
    n_classes = len(rows.classes)
    states = []
    for splits in rounds:
        with np.errstate(divide="ignore"):
            trained = trained_classes(lean.source, n_classes, splits)
            logs = np.log(trained / trained.sum(axis=1, keepdims=True))
        states.append([[ClassState(ClassShares(shares), np.arange(n_classes), n_classes) for shares in logs]])
    folds = RowFolds(lean.source, rounds, states, {}, is_coded=True)
    scores = state_scores(folds, rows.classes, 1, scoring)
    return scores, replace(validated_by(lean, folds), is_constant=True)


def without_columns(source: Source) -> Memory:
    """Targets, weights, groups and offsets of all rows, in memory: a pass that reads no more columns than it must."""
    return Memory.of(join(list(source.narrow().map(_without_columns))))


def _without_columns(block: Block) -> Block:
    return replace(block, X=np.zeros((block.n_rows, 1), dtype=np.uint8))


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
