"""Scores of a classifier of ours by refits that read a source whose y are codes.

A class that the training rows of a split lack has probability 0 there: rows of it that validate are wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import has_fit_parameter

from certifit.data.cells import Cells, Splits
from certifit.data.changed import FewerClasses, Picked
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.models.discriminant.folds import present
from certifit.models.fold_rows import ClassState, counted_rows
from certifit.models.folds import RowMetric
from certifit.runtime import one_blas_thread
from certifit.selection.folds.fold_scores import PredictedClasses, PredictedMargins
from certifit.selection.folds.metrics import Scorer, Scoring, accuracies, row_metric
from certifit.selection.folds.rows import Rows
from certifit.statistics.fold_oracle import HeldOut

# (training score, validation score, validation weight), fault, the validation rows where they are kept
Result = tuple[tuple[float, float, float], str, HeldOut | None]


@dataclass(frozen=True)
class RefittedClasses:
    """Scores of a classifier that is fitted to the training rows of a split. Can be sent to a worker.

    trained: `trained_classes` of the splits. has_probabilities: False where scores only rank the classes.
    """

    trained: Array
    scoring: Scoring
    has_probabilities: bool = True
    with_rows: bool = False

    def __call__(self, model: BaseEstimator, rows: Rows, splits: Splits, split: int, scorer: Scorer) -> Result:
        """Of one split; a model that has no fit there has no score but a fault."""
        classes = classes_of(rows)
        places = present(self.trained[split], classes, split)
        try:
            fitted = fitted_codes(model, rows, splits, split, places)
        except ValueError as error:
            return (np.nan, np.nan, np.nan), f"{error} (on the training rows of split {split})", None
        sets = np.array([splits.train[split], splits.validation[split]])
        codes, log_proba, weights, numbers = _posteriors(fitted, rows.source, splits.cells, sets)
        scores = [self._score(scorer, classes, codes, log_proba, weight) for weight in weights]
        is_seen = weights[1] > 0
        held_out = None
        metric = self._metric()
        if self.with_rows and metric is not None:
            metrics = {"score": metric, "accuracy": accuracies}
            values = {name: metric(codes[is_seen], log_proba[is_seen])[None, :] for name, metric in metrics.items()}
            held_out = HeldOut(numbers[is_seen], weights[1][is_seen], codes[is_seen], values)
        return (scores[0], scores[1], float(weights[1].sum())), "", held_out

    def _metric(self) -> RowMetric | None:
        """What the score is the mean over rows of, where it is one of what this model tells."""
        metric = row_metric(self.scoring, is_classes=True)
        return metric if self.has_probabilities or metric is accuracies else None

    def _score(self, scorer: Scorer, classes: Array, codes: Array, log_proba: Array, weight: Array) -> float:
        codes, log_proba, weight = codes[weight > 0], log_proba[weight > 0], weight[weight > 0]
        metric = self._metric()
        if metric is not None:
            return float(np.average(metric(codes, log_proba), weights=weight))
        model = (PredictedClasses if self.has_probabilities else PredictedMargins)(classes, log_proba)
        options = {} if (weight == 1).all() else {"sample_weight": weight}
        return float(scorer(model, np.zeros((len(codes), 1)), classes[codes], **options))


def fitted_codes(model: BaseEstimator, rows: Rows, splits: Splits, split: int, places: Array) -> ClassState:
    """A classifier fitted to the training rows of a split; places: of the classes that these have."""
    classes = classes_of(rows)
    source = rows.source if len(places) == len(classes) else FewerClasses(rows.source, places)
    one_blas_thread(model.fit_codes)(_training_rows(model, source, splits, split), classes[places])
    return ClassState(model, places, len(classes), model)


def _training_rows(model: BaseEstimator, source: Source, splits: Splits, split: int) -> Source:
    """The training rows of a split; a model without weights is not shown the others at all."""
    if has_fit_parameter(model, "sample_weight"):
        return splits.trained(source, split)
    if (splits.train[split] > 1).any():
        raise TypeError(f"{type(model).__name__} takes no weights, and a split draws rows more than once. Use folds.")
    flags = np.concatenate(list(source.map(partial(_is_trained, splits.cells, splits.train[split]))))
    return Picked(source, flags)


def _is_trained(cells: Cells, times: Array, stretch: Block) -> Array:
    return np.append(times, 0.0)[cells.of(stretch)] > 0


def _posteriors(fitted: ClassState, source: Source, cells: Cells, sets: Array) -> tuple[Array, Array, Array, Array]:
    """Codes, log p(k | x), weights by set and numbers of the rows that count in some set."""
    parts = [part for part in source.map(partial(_posteriors_of_stretch, fitted, cells, sets)) if part is not None]
    if not parts:
        raise ValueError("A split has no rows of positive weight. Use fewer folds.")
    codes, log_proba, weights, numbers = zip(*parts, strict=True)
    return np.concatenate(codes), np.concatenate(log_proba), np.concatenate(weights, axis=1), np.concatenate(numbers)


def _posteriors_of_stretch(
    fitted: ClassState, cells: Cells, sets: Array, stretch: Block
) -> tuple[Array, Array, Array, Array] | None:
    times = np.column_stack([sets, np.zeros(len(sets))])[:, cells.of(stretch)]  # NO_CELL is the last
    counted = counted_rows(stretch, times, is_coded=True)
    if counted is None:
        return None
    return counted.y, fitted.predicted(counted.rows), counted.weight, stretch.first_row + counted.seen


def classes_of(rows: Rows) -> Array:
    """The classes that the y of the rows are codes of."""
    if rows.classes is None:
        raise ValueError("A classifier needs labels y.")
    return rows.classes
