"""Scores of a classifier on every split: from sums by fold and class, or by refits that read a source.

A class that the training rows of a split lack has probability 0 there: rows of it that validate are wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer

from certifit.data.cells import Splits
from certifit.data.changed import FewerClasses
from certifit.data.columns import Array
from certifit.data.source import Block
from certifit.models.class_folds import ROW_SCORES, FoldModel, FoldModels, RowScore, counted_rows_of, present
from certifit.runtime import one_blas_thread
from certifit.selection.rows import Rows, reading_new_levels
from certifit.statistics.held_out import HeldOut

Candidate = Mapping[str, Any]
# (training score, validation score, validation weight), fault, the validation rows where they are kept
Result = tuple[tuple[float, float, float], str, HeldOut | None]


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
    detail: Any = None  # what the model's path holds beside scores
    faults: Mapping[int, str] = field(default_factory=dict)
    held_out: Sequence[HeldOut] = ()  # of every split "score" of its rows, of classes "accuracy" too; () where not kept

    @property
    def training(self) -> Array:
        """The training scores, which must have been asked for."""
        if self.train is None:
            raise ValueError("Training scores were not asked for.")
        return self.train


@one_blas_thread
def class_scores(
    estimator: Any,
    rows: Rows,
    rounds: Sequence[Splits],
    candidates: Sequence[Candidate],
    scoring: Any,
    with_training: bool = False,
    with_rows: bool = False,
) -> FoldScores | None:
    """Scores of a classifier whose models can be held together; None where they cannot. detail: the models."""
    is_named = scoring is None or isinstance(scoring, str)
    is_of_rows = is_named and scoring in ROW_SCORES
    if not is_named or rows.classes is None or (with_training and not is_of_rows):
        return None
    estimator = reading_new_levels(estimator, rows.source)
    models = estimator.class_fold_models(rows.source, rows.classes, rounds, candidates)
    if models is None:
        return None
    scores = scores_of(models, rows.classes, len(candidates), scoring, with_training)
    return replace(scores, held_out=models.held_out(shown_scores(scoring))) if with_rows and is_of_rows else scores


def shown_scores(scoring: Any) -> dict[str, RowScore]:
    """The row scores that are kept of validation rows."""
    return {"score": ROW_SCORES[scoring], "accuracy": ROW_SCORES["accuracy"]}


def scores_of(
    models: FoldModels, classes: Array, n_candidates: int, scoring: Any, with_training: bool = False
) -> FoldScores:
    """Scores of models of every candidate and split on the validation rows."""
    refuse_faulty(models.faults, n_candidates)
    if scoring in ROW_SCORES:
        train, validation, weight = models.row_scores(ROW_SCORES[scoring], with_training)
    else:
        train, (validation, weight) = None, _scored(models, classes, n_candidates, get_scorer(scoring))
    return FoldScores(train, validation, weight, models.route, models, models.faults)


def _scored(models: FoldModels, classes: Array, n_candidates: int, scorer: Any) -> tuple[Array, Array]:
    """Scores of any kind on the validation rows of every split, and the weight of those."""
    table, weights = [], []
    for c in range(n_candidates):
        if c in models.faults:
            table.append([np.nan] * sum(splits.n_splits for splits in models.rounds))
            continue
        found = list(models.validated(c))
        table.append([_scored_classes(scorer, classes, *one) for one in found])
        weights = [float(len(codes) if weight is None else weight.sum()) for codes, _, weight in found]
    return np.array(table), np.array(weights)


def _scored_classes(scorer: Any, classes: Array, codes: Array, log_proba: Array, weight: Array | None) -> float:
    """A scorer of scikit-learn on predictions that are there already."""
    predicted = _PredictedClasses(classes, log_proba)
    options = {} if weight is None else {"sample_weight": weight}
    return float(scorer(predicted, np.zeros((len(codes), 1)), classes[codes], **options))


def refuse_faulty(faults: Mapping[int, str], n_candidates: int) -> None:
    """Raise where no candidate is left."""
    if len(faults) == n_candidates:
        raise NoFit(next(iter(faults.values())))


class NoFit(ValueError):
    """No candidate has a fit to the training rows of every split."""


@dataclass(frozen=True)
class RefittedClasses:
    """Scores of one of our classifiers, fitted to the training rows of a split of a source whose y are codes.

    trained: `trained_classes` of the splits. Can be sent to a worker.
    """

    trained: Array
    scoring: Any
    with_rows: bool = False

    def __call__(self, model: Any, rows: Rows, splits: Splits, split: int, scorer: Any) -> Result:
        """Of one split; a model that has no fit there has none, and the fault is told."""
        classes = _classes(rows)
        places = present(self.trained[split], classes, split)
        try:
            fitted = fitted_codes(model, rows, splits, split, places)
        except ValueError as error:
            return (np.nan, np.nan, np.nan), f"{error} (on the training rows of split {split})", None
        sets = np.array([splits.train[split], splits.validation[split]])
        parts = list(rows.source.map(partial(_posteriors, fitted, splits.cells, sets)))
        codes, log_proba = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        weights = np.concatenate([part[2] for part in parts], axis=1)
        scores = []
        for weight in weights:
            seen = weight > 0
            truth, found, own = codes[seen], log_proba[seen], weight[seen]
            if self.scoring is None or self.scoring in ROW_SCORES:
                scores.append(float(np.average(ROW_SCORES[self.scoring](found, truth), weights=own)))
            else:
                scores.append(_scored_classes(scorer, classes, truth, found, None if (own == 1).all() else own))
        is_kept = self.with_rows and (self.scoring is None or self.scoring in ROW_SCORES)
        held_out = self._held_out(parts, weights[1]) if is_kept else None
        return (scores[0], scores[1], float(weights[1].sum())), "", held_out

    def _held_out(self, parts: list[tuple[Array, Array, Array, Array]], weight: Array) -> HeldOut:
        codes, log_proba, numbers = (np.concatenate([part[i] for part in parts])[weight > 0] for i in (0, 1, 3))
        values = {name: score(log_proba, codes)[None, :] for name, score in shown_scores(self.scoring).items()}
        return HeldOut(numbers, weight[weight > 0], codes, values)


def _posteriors(fitted: FoldModel, cells: Any, sets: Array, run: Block) -> tuple[Array, Array, Array, Array]:
    """Codes, log p(k | x), weights by set and numbers of the rows that count in some set."""
    times = np.column_stack([sets, np.zeros(len(sets))])[:, cells.of(run)]  # NO_CELL is the last
    rows, codes, weight = counted_rows_of(run, times)
    log_proba = np.zeros((0, fitted.n_classes)) if rows is None else fitted.log_proba(rows)
    counted = (times if run.weight is None else times * run.weight) > 0
    numbers = run.first_row + np.flatnonzero(counted.any(axis=0) & (np.asarray(run.y) >= 0))
    return codes, log_proba, weight, numbers


def _classes(rows: Rows) -> Array:
    if rows.classes is None:
        raise ValueError("A classifier needs labels y.")
    return rows.classes


def fitted_codes(model: Any, rows: Rows, splits: Splits, split: int, places: Array) -> FoldModel:
    """One of our classifiers fitted to the training rows of a split; places: of the classes that these have."""
    classes = _classes(rows)
    source = rows.source if len(places) == len(classes) else FewerClasses(rows.source, places)
    one_blas_thread(model.fit_codes)(splits.trained(source, split), classes[places])
    return FoldModel(model, places, len(classes), model)


class _PredictedClasses(ClassifierMixin, BaseEstimator):
    """Classes and probabilities that are there already, for a scorer."""

    def __init__(self, classes: Array, log_proba: Array) -> None:
        self.classes, self.log_proba = classes, log_proba
        self.classes_ = classes

    def predict(self, X: Any) -> Array:
        """The most probable class."""
        return np.asarray(self.classes[self.log_proba.argmax(axis=1)])

    def predict_proba(self, X: Any) -> Array:
        """The probabilities."""
        return np.exp(self.log_proba)

    def decision_function(self, X: Any) -> Array:
        """Log-odds of two classes, log p(k | x) of more: they rank rows that probabilities round to one."""
        return self.log_proba[:, 1] - self.log_proba[:, 0] if len(self.classes) == 2 else self.log_proba

    def __sklearn_is_fitted__(self) -> bool:
        return True
