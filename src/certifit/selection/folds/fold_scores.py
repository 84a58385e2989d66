"""Scores of every candidate on every split, from what a model offers: sums of squares, or predicted rows.

Errors of predicting the mean of the training rows, on all splits: one pass per round over the targets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from certifit.data.cells import Cells, Splits
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.data.user_input import UserRows
from certifit.models.folds import RowFolds
from certifit.models.least_squares.fold_path import FoldPath
from certifit.selection.folds.metrics import (
    CLASS_SCORES,
    OF_SQUARES,
    PREDICTED,
    Score,
    Scorer,
    Scoring,
    row_errors,
    row_metric,
    row_scores,
    sufficient,
)
from certifit.selection.folds.scorers import NamedScorer
from certifit.statistics.loss_sums import STILL, HeldOut
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
        # What a sum of many is rounded by is taken off: that of a constant is a constant but for its last bits.
        mean += _ratio(np.bincount(cell_of_row, weight * (y - mean[cell_of_row]), n_cells), total)
        return CellMoments(total, mean, np.bincount(cell_of_row, weight * (y - mean[cell_of_row]) ** 2, n_cells))

    def combined(self, times: Array) -> CellMoments:
        """Of all cells together, each counted so many times."""
        weight = times * self.weight
        total = weight.sum(keepdims=True)
        if not total[0] > 0:
            raise ValueError("A split has no rows of positive weight. Use fewer folds.")
        mean = (weight @ self.mean) / total
        squares = (times @ self.squares + weight @ (self.mean - mean) ** 2)[None]
        return CellMoments(total, mean, np.where(squares > STILL * total * mean**2, squares, 0.0))

    def __add__(self, other: CellMoments) -> CellMoments:
        both, step = Merge.of(self.weight, other.weight), other.mean - self.mean
        squares = both.products(self.squares, other.squares, step, step)
        return CellMoments(both.weight, both.mean(self.mean, other.mean), squares)


def _ratio(above: Array, below: Array) -> Array:
    """above / below, 0 where there is nothing."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


@dataclass(frozen=True)
class FoldScores:
    """validation, train: candidates x splits; weight: of the validation rows of a split; route: how they were found.

    train: None where training scores were not asked for and cost more. A candidate that has no fit on some training
    rows has NaN there; faults: why, by candidate.
    """

    train: Array | None
    validation: Array
    weight: Array
    route: str
    faults: Mapping[int, str] = field(default_factory=dict)
    held_out: Sequence[HeldOut] = ()  # "score" of the rows of a split, "accuracy", "predicted"; () where not kept
    path: FoldPath | None = None  # where squares came from sums
    states: RowFolds | None = None  # where rows were predicted by states of all candidates

    @property
    def training(self) -> Array:
        """The training scores, which must have been asked for."""
        if self.train is None:
            raise ValueError("Training scores were not asked for.")
        return self.train

    def predictions(self, candidate: int, n_rows: int) -> Array | None:
        """What fits that did not see a row predict for it: a number, or log p(k | x); None where they were not kept.

        A row that several splits validate has the prediction of the first, one that none does has NaN.
        """
        if not self.held_out or PREDICTED not in self.held_out[0].values:
            return None
        predictions = np.full((n_rows, *self.held_out[0].values[PREDICTED].shape[2:]), np.nan)
        for split in reversed(self.held_out):
            predictions[split.numbers] = split.values[PREDICTED][candidate]
        return predictions

    def of_candidates(self, candidates: Sequence[int]) -> FoldScores:
        """The same of some of the candidates only, without squares from sums."""
        places = list(candidates)
        return replace(
            self,
            train=None if self.train is None else self.train[places],
            validation=self.validation[places],
            faults={place: self.faults[one] for place, one in enumerate(places) if one in self.faults},
            held_out=[
                replace(split, values={name: values[places] for name, values in split.values.items()})
                for split in self.held_out
            ],
            path=None,
            states=None if self.states is None else self.states.of_candidates(places),
        )

    def row_scores(self) -> list[HeldOut]:
        """The scores of the rows of every split, without what was predicted."""
        return [
            replace(split, values={name: values for name, values in split.values.items() if name != PREDICTED})
            for split in self.held_out
        ]


class NoFit(ValueError):
    """No candidate has a fit to the training rows of every split."""


def refuse_faulty(faults: Mapping[int, str], n_candidates: int) -> None:
    """Raise where no candidate is left."""
    if len(faults) == n_candidates:
        raise NoFit(next(iter(faults.values())))


def path_scores(path: FoldPath, train: Array, validation: Array, score: Score) -> FoldScores:
    """Scores of squared errors, candidates x splits, whose totals and weights are those of a path."""
    return FoldScores(
        score(train, path.train_total, path.train_weight),
        score(validation, path.validation_total, path.validation_weight),
        path.validation_weight,
        "statistics",
        path=path,
    )


def state_scores(
    states: RowFolds, classes: Array | None, n_candidates: int, scoring: Scoring, with_training: bool = False
) -> FoldScores:
    """Scores of states of every candidate and split. classes: None for numbers."""
    refuse_faulty(states.faults, n_candidates)
    metric = row_metric(scoring, classes is not None)
    train: Array | None = None
    if metric is None:
        validation, weight = _scored(states, classes, n_candidates, scoring)
    else:
        train, validation, weight = states.row_means(metric, with_training)
        if classes is None:
            train, validation = _of_errors(states, scoring, train, validation, weight)
    return FoldScores(train, validation, weight, states.route, states.faults, states=states)


def _of_errors(
    states: RowFolds, scoring: Scoring, train: Array | None, validation: Array, weight: Array
) -> tuple[Array | None, Array]:
    """Scores of mean errors; totals of R2 and of the root of the mean square come from the targets alone."""
    if scoring not in OF_SQUARES:
        return None if train is None else -train, -validation
    score = sufficient(scoring)
    if score is None:
        raise ValueError(f"{scoring!r} is no function of squares.")
    totals = mean_path(states.source, states.rounds)
    if train is not None:
        train = score(train * totals.train_weight, totals.train_total, totals.train_weight)
    return train, score(validation * weight, totals.validation_total, weight)


def held_out_scores(states: RowFolds, is_classes: bool, scoring: Scoring) -> list[HeldOut]:
    """Row scores of the validation rows of every split; of classes the accuracies too."""
    metric = row_metric(scoring, is_classes)
    if metric is None:
        return []
    if is_classes:
        return states.held_out({"score": metric, "accuracy": CLASS_SCORES["accuracy"]})
    return [_scored_errors(split, scoring) for split in states.held_out({"error": metric, PREDICTED: _prediction})]


def _prediction(_: Array, predicted: Array) -> Array:
    return predicted


def _scored_errors(split: HeldOut, scoring: Scoring) -> HeldOut:
    errors = split.values["error"]
    scores = -errors if row_errors(scoring) else row_scores(scoring, errors, split.y, split.weight)
    return replace(split, values={"score": scores, PREDICTED: split.values[PREDICTED]})


def _scored(states: RowFolds, classes: Array | None, n_candidates: int, scoring: Scoring) -> tuple[Array, Array]:
    """Scores of any kind on the validation rows of every split, and the weight of those."""
    scorer: Scorer = scoring if callable(scoring) else NamedScorer(str(scoring))
    table, weights = [], []
    for c in range(n_candidates):
        if c in states.faults:
            table.append([np.nan] * sum(splits.n_splits for splits in states.rounds))
            continue
        splits = list(states.validated(c))
        table.append([score_of(scorer, classes, *split) for split in splits])
        weights = [float(len(y) if weight is None else weight.sum()) for y, _, weight in splits]
    return np.array(table), np.array(weights)


def score_of(scorer: Scorer, classes: Array | None, y: Array, predicted: Array, weight: Array | None) -> float:
    """A scorer of scikit-learn on predictions that are there already: E y, or log p(k | x) of codes y."""
    options = {} if weight is None else {"sample_weight": weight}
    model = Predicted(predicted) if classes is None else PredictedClasses(classes, predicted)
    truth = y if classes is None else classes[y]
    return float(scorer(model, np.zeros((len(y), 1)), truth, **options))


class Predicted(RegressorMixin, BaseEstimator):
    """Predictions that are there already, for a scorer."""

    def __init__(self, predictions: Array) -> None:
        self.predictions = predictions

    def predict(self, X: UserRows) -> Array:
        """The predictions."""
        return self.predictions

    def __sklearn_is_fitted__(self) -> bool:
        return True


class PredictedMargins(ClassifierMixin, BaseEstimator):
    """Classes and their scores that are there already, for a scorer."""

    def __init__(self, classes: Array, log_proba: Array) -> None:
        self.classes, self.log_proba = classes, log_proba
        self.classes_ = classes

    def predict(self, X: UserRows) -> Array:
        """The most probable class."""
        return np.asarray(self.classes[self.log_proba.argmax(axis=1)])

    def decision_function(self, X: UserRows) -> Array:
        """Log-odds of two classes, log p(k | x) of more: they rank rows that probabilities round to one.

        Those of a class that is certain are the largest float64: scikit-learn takes no infinity.
        """
        scores = self.log_proba[:, 1] - self.log_proba[:, 0] if len(self.classes) == 2 else self.log_proba
        most = np.finfo(np.float64).max
        return np.asarray(scores.clip(-most, most))

    def __sklearn_is_fitted__(self) -> bool:
        return True


class PredictedClasses(PredictedMargins):
    """The same of a model that has probabilities."""

    def predict_proba(self, X: UserRows) -> Array:
        """The probabilities."""
        return np.exp(self.log_proba)
