"""Classes of rows predicted by models that did not see them, and what is read off them.

Every row counts once: it is predicted by the model of the first split that it validates. Rows that no split validates
(a bootstrap may have some) do not count.

Scores of a classifier of ours by refits that read a source whose y are codes.

A class that the training rows of a split lack has probability 0 there: rows of it that validate are wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

from certifit.data.cells import ByRow, Cells, Splits, mixed
from certifit.data.columns import Array
from certifit.data.source import Block, Memory, Source, tree_sum
from certifit.data.source_wrappers import FewerClasses, Picked
from certifit.data.user_input import UserLabels, UserRows, UserTarget, UserWeights
from certifit.evaluation.metrics.confusion import MOST_CLASSES, ConfusionMatrix
from certifit.evaluation.metrics.errors import Spread
from certifit.evaluation.metrics.intervals import Estimate
from certifit.models.adapter import learner_of
from certifit.models.discriminant.folds import present, trained_classes
from certifit.models.folds import (
    Candidate,
    Candidates,
    ClassState,
    RowFolds,
    RowMetric,
    RowState,
    block_where,
    counted_rows,
)
from certifit.runtime import one_blas_thread, suited_map
from certifit.selection.folds.fold_scores import PredictedClasses, PredictedMargins
from certifit.selection.folds.metrics import (
    METRICS,
    PREDICTED,
    Scorer,
    Scoring,
    accuracies,
    log_scores,
    resentenced,
    row_metric,
)
from certifit.selection.folds.rows import Rows, picked, reading_new_levels, times_of
from certifit.selection.folds.splits import UserSplits, rounds_of, row_count
from certifit.statistics.loss_sums import HeldOut

# (training score, validation score, validation weight), fault, the validation rows where they are kept
Result = tuple[tuple[float, float, float], str, HeldOut | None]


@dataclass(frozen=True)
class RefittedClasses:
    """Scores of a classifier that is fitted to the training rows of a split. Can be sent to a worker.

    trained: `trained_classes` of the splits. has_probabilities: False where scores only rank the classes.
    with_rows: the scores of the validation rows are kept too; with_predictions: their log p(k | x) as well.
    """

    trained: Array
    scoring: Scoring
    has_probabilities: bool = True
    with_rows: bool = False
    with_predictions: bool = False

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
            if self.with_predictions:
                values[PREDICTED] = log_proba[is_seen][None, :]
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


MOST_NUMBERS = 20_000_000  # probabilities that are kept: 160 MB
_SEED = 20  # of the sample of rows


@dataclass(frozen=True, eq=False)
class ClassValidation:
    """Rows and what models made of them that had not seen them.

    classes : the K labels
    codes, log_proba, weight : of every kept row: place of its class, log p(k | x), weight (None: all 1)
    matrix : of all rows; labels are `classes`. Its errors are pooled over folds, so its own methods give no interval
    loss : mean and spread of -log p(class of the row | x) over all rows, p at least 2.2e-16 as in scikit-learn
    n_rows : all rows that were predicted; is_sample : whether the kept ones are a random sample of them
    is_seen : the rows were predicted by a model that was fitted to them
    is_constant : every row of a fold has the same probabilities
    fold : of every kept row, which model predicted it: probabilities of two models are not ranked against each other
    """

    classes: Array
    codes: Array
    log_proba: Array
    weight: Array | None
    matrix: ConfusionMatrix
    loss: Spread
    n_rows: int
    is_sample: bool = False
    is_seen: bool = False
    is_constant: bool = False
    fold: Array | None = None

    def __repr__(self) -> str:
        rates = ", ".join(f"{name} {float(value):.4g}" for name, value in self.metrics().items())
        which = "that the model was fitted to" if self.is_seen else "predicted by models that did not see them"
        return f"ClassValidation of {self.n_rows:,} rows {which}: {rates}\n{self.matrix!r}"

    def metrics(self, level: float = 0.95) -> dict[str, Estimate]:
        """accuracy, log_loss, auc, f1, balanced_accuracy, with approximate intervals.

        auc: share of the pairs of rows of one fold that are in the right order, one-class folds left out, nan for
        leave-one-out (no fold has a pair); of more than two classes the mean of every class against the rest.
        f1: of two classes that of the second; of more, the mean of all.
        """
        return {name: metric(self, level) for name, metric in METRICS.items()}

    def per_class(self, level: float = 0.95) -> Sequence[Candidate]:
        """One row per class: label, rows, precision, recall, fpr, F_beta (beta = 1), with approximate intervals."""
        rows = replace(self.matrix, pooled=False).classes(level)
        return [{name: resentenced(self, value) for name, value in row.items()} for row in rows]

    def proba(self) -> Array:
        """p(k | x) of every kept row."""
        return np.exp(self.log_proba)

    def log_odds(self, code: int) -> Array:
        """log p(k | x) - log p(not k | x) of every kept row: what ranks rows for class `code`."""
        others = np.delete(self.log_proba, code, axis=1)
        most = others.max(axis=1)
        safe = np.where(np.isfinite(most), most, 0.0)
        with np.errstate(divide="ignore"):
            log_others = safe + np.log(np.exp(others - safe[:, None]).sum(axis=1))
        return np.asarray(self.log_proba[:, code] - log_others)

    def labels(self) -> Array:
        """The true class of every kept row."""
        return np.asarray(self.classes[self.codes])


def class_validation(
    model: BaseEstimator,
    X: UserRows,
    y: UserTarget = None,
    *,
    cv: UserSplits = 10,
    sample_weight: UserWeights = None,
    groups: UserLabels = None,
    offset: UserWeights = None,
    exposure: UserWeights = None,
) -> ClassValidation:
    """Predict every row by a model that was not fitted to it.

    model : a classifier, not fitted; of another library with predict_proba, for arrays
    X, y, sample_weight, groups, offset, exposure : as for CrossValidated
    cv : as for CrossValidated; a number of folds keeps the shares of the classes in each

    >>> import numpy as np
    >>> import certifit as cf
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 2)) + y[:, None]
    >>> found = cf.class_validation(cf.GaussianDiscriminant(), X, y)
    >>> round(found.metrics()["accuracy"], 2), found.matrix.n
    (0.79, 200.0)
    """
    if not is_classifier(model):
        raise TypeError(f"class_validation needs a classifier. Got {type(model).__name__}.")
    rows = Rows.of(model, X, y, sample_weight, groups, offset, exposure)
    rounds = rounds_of(cv, rows.source, rows.labels, rows.groups)
    return validated(model, rows, rounds)


@one_blas_thread
def validated(
    model: BaseEstimator, rows: Rows, rounds: Sequence[Splits], states: RowFolds | None = None
) -> ClassValidation:
    """The same on splits that are there; states: of one candidate, where there are any."""
    if not learner_of(model).is_ours:
        return _of_arrays(model, rows, rounds)
    model = reading_new_levels(model, rows.source)
    if states is None:
        offered = model.folds(rows.source, rounds, Candidates([{}], _classes(rows)), rows.shared)
        states = offered if isinstance(offered, RowFolds) else None
    if states is not None:
        return validated_by(rows, states)
    return _collected(_classes(rows), _one_by_one(model, rows, rounds), rows.source, row_count(rows.source))


def validated_by(rows: Rows, folds: RowFolds) -> ClassValidation:
    """The same by states of one candidate that are there."""
    if folds.faults:
        raise ValueError(next(iter(folds.faults.values())))
    every = zip(folds.rounds, folds.states, strict=True)
    jobs = [(splits, [state for state in of_round[0] if state is not None]) for splits, of_round in every]
    return _collected(_classes(rows), jobs, folds.source, row_count(rows.source))


def validated_rows(rows: Rows, rounds: Sequence[Splits], log_proba: Array) -> ClassValidation:
    """The same from what the model of the first split that a row validates has made of it."""
    jobs: list[tuple[Splits, Sequence[RowState]]] = [(splits, ()) for splits in rounds]
    return _collected(_classes(rows), jobs, rows.source, row_count(rows.source), log_proba)


def class_training(
    model: BaseEstimator,
    X: UserRows,
    y: UserTarget = None,
    *,
    sample_weight: UserWeights = None,
    offset: UserWeights = None,
    exposure: UserWeights = None,
) -> ClassValidation:
    """The rows predicted by a fitted classifier of this library, which may have seen them: no interval holds."""
    source = model.labelled(X, y, sample_weight, offset, exposure)
    whole_fit = ClassState(model, np.arange(len(model.classes_)), len(model.classes_), model)
    whole = Splits(ByRow(1, 0), np.ones((1, 1)), np.ones((1, 1)))
    return replace(_collected(model.classes_, [(whole, [whole_fit])], source, row_count(source)), is_seen=True)


def _classes(rows: Rows) -> Array:
    classes = classes_of(rows)
    if len(classes) > MOST_CLASSES:
        raise ValueError(f"y has {len(classes):,} classes, more than the {MOST_CLASSES:,} of a confusion matrix.")
    return classes


def _one_by_one(
    model: BaseEstimator, rows: Rows, rounds: Sequence[Splits]
) -> Iterator[tuple[Splits, list[ClassState]]]:
    """Models that are too large to be held together: a split at a time."""
    for splits in rounds:
        trained = trained_classes(rows.source, len(_classes(rows)), splits)
        for s in range(splits.n_splits):
            fitted = fitted_codes(clone(model), rows, splits, s, present(trained[s], _classes(rows), s))
            yield Splits(splits.cells, splits.train[s : s + 1], splits.validation[s : s + 1]), [fitted]


def _collected(
    classes: Array,
    jobs: Iterable[tuple[Splits, Sequence[RowState]]],
    source: Source,
    n_rows: int,
    known: Array | None = None,
) -> ClassValidation:
    """Every row predicted by the model of the first split that it validates: one pass per round.

    known: what these models predict for every row, where that is known without them.
    """
    share = min(1.0, MOST_NUMBERS / (n_rows * len(classes)))
    if share < 1 and isinstance(source, Memory):
        source = source.resized(
            source.block_rows, source.rows_of_stretch()
        )  # or all probabilities would be held at once
    done: Array | None = None
    parts: list[_Part] = []
    n_models = 0
    for splits, models in jobs:
        predicted = list(source.map(_Predict(models, splits, len(classes), share, done, n_models, known)))
        n_models += splits.n_splits
        parts += [part for part in predicted if part.n_rows]
        is_validated = (splits.validation > 0).any(axis=0)
        if is_validated.all():
            break
        done = np.zeros(n_rows, dtype=bool) if done is None else done
        for part in predicted:
            done[part.first_row : part.first_row + len(part.is_done)] |= part.is_done
        if done.all():
            break
    return _joined(classes, parts, is_sample=share < 1)


def _joined(classes: Array, parts: list[_Part], is_sample: bool) -> ClassValidation:
    if not parts:
        raise ValueError("No row of a known class validates a split.")
    weights = [part.weight for part in parts if part.weight is not None]
    order = np.argsort(np.concatenate([part.number for part in parts]), kind="stable")
    counts = sum(part.counts for part in parts)
    matrix = ConfusionMatrix(tuple(classes.tolist()), np.asarray(counts), bool(weights), pooled=True)
    return ClassValidation(
        classes,
        np.concatenate([part.codes for part in parts])[order],
        np.concatenate([part.log_proba for part in parts])[order],
        np.concatenate(weights)[order] if weights else None,
        matrix,
        tree_sum(part.loss for part in parts),
        sum(part.n_rows for part in parts),
        is_sample,
        fold=np.concatenate([part.fold for part in parts])[order],
    )


@dataclass(frozen=True)
class _Part:
    """What the models made of the rows of a run. number: of the kept rows; is_done: which rows were predicted."""

    first_row: int
    n_rows: int
    is_done: Array
    counts: Array
    loss: Any
    number: Array
    codes: Array
    log_proba: Array
    weight: Array | None
    fold: Array


@dataclass(frozen=True)
class _Predict:
    """Rows of a run predicted by the model of the first split that they validate. Can be sent to a worker."""

    models: Sequence[RowState]
    splits: Splits
    n_classes: int
    share: float
    done: Array | None
    first_model: int = 0
    known: Array | None = None

    def __call__(self, stretch: Block) -> _Part:
        split = self._split_of(stretch)
        codes = np.zeros(0) if stretch.y is None else stretch.y.astype(np.int64)
        log_proba = self._log_proba(stretch, split)
        done = split >= 0
        weight = None if stretch.weight is None else stretch.weight[done]
        truth, guess = codes[done], log_proba[done].argmax(axis=1)
        counts = np.bincount(truth * self.n_classes + guess, weight, minlength=self.n_classes**2)
        losses = -log_scores(truth, log_proba[done])
        kept = done & self._is_kept(stretch)
        return _Part(
            stretch.first_row, int(done.sum()), done, counts.reshape(self.n_classes, -1),
            Spread.of(losses, weight) if len(losses) else None,
            stretch.first_row + np.flatnonzero(kept), codes[kept], log_proba[kept],
            None if stretch.weight is None else stretch.weight[kept], self.first_model + split[kept].astype(np.int64),
        )  # fmt: skip

    def _log_proba(self, stretch: Block, split: Array) -> Array:
        if self.known is not None:
            return self.known[stretch.first_row : stretch.first_row + stretch.n_rows]
        used, log_proba = np.unique(split[split >= 0]).tolist(), np.empty((stretch.n_rows, self.n_classes))
        suited = suited_map(stretch.n_rows)
        parts = suited(lambda s: self.models[s].predicted(block_where(stretch, split == s)), used)
        for s, part in zip(used, parts, strict=True):
            log_proba[split == s] = part
        return log_proba

    def _split_of(self, stretch: Block) -> Array:
        """The split whose model predicts each row; -1 for none."""
        is_validated = self.splits.validation > 0
        first = np.where(is_validated.any(axis=0), is_validated.argmax(axis=0), -1)
        split = np.append(first, -1)[self.splits.cells.of(stretch)]  # NO_CELL is the last
        if stretch.y is not None:
            split[stretch.y < 0] = -1
        if stretch.weight is not None:
            split[stretch.weight <= 0] = -1
        if self.done is not None:
            split[self.done[stretch.first_row : stretch.first_row + stretch.n_rows]] = -1
        return split

    def _is_kept(self, stretch: Block) -> Array:
        """A random sample of rows by their numbers: the same on every engine."""
        if self.share >= 1:
            return np.ones(stretch.n_rows, dtype=bool)
        numbers = np.arange(stretch.first_row, stretch.first_row + stretch.n_rows, dtype=np.uint64)
        return mixed(numbers, _SEED) < np.uint64(self.share * 2.0**64)


def _of_arrays(model: BaseEstimator, rows: Rows, rounds: Sequence[Splits]) -> ClassValidation:
    """The same for an estimator that is given rows of X."""
    classes, labels = _classes(rows), rows.labels
    if labels is None:
        raise ValueError("A classifier needs labels y.")
    n_rows = len(labels)
    log_proba, done = np.full((n_rows, len(classes)), -np.inf), np.zeros(n_rows, dtype=bool)
    is_row = np.ones(n_rows, dtype=bool) if rows.weight is None else rows.weight > 0
    fold, n_models = np.zeros(n_rows, dtype=np.int64), 0
    for splits in rounds:
        for s in range(splits.n_splits):
            train, validation = times_of(rows, splits, s)
            here = (validation > 0) & ~done & is_row
            if not here.any():
                continue
            fitted = picked(rows, train).fitted(clone(model))
            places = np.searchsorted(classes, fitted.classes_)
            held_out = picked(rows, here)
            log_proba[np.ix_(here, places)] = _log_proba(held_out.seen_by(fitted), held_out.X)
            done |= here
            fold[here], n_models = n_models, n_models + 1
    weight = None if rows.weight is None else rows.weight[done]
    codes, predicted = labels[done], log_proba[done]
    counts = np.bincount(codes * len(classes) + predicted.argmax(axis=1), weight, minlength=len(classes) ** 2)
    matrix = ConfusionMatrix(tuple(classes.tolist()), counts.reshape(len(classes), -1), weight is not None, pooled=True)
    return ClassValidation(
        classes,
        codes,
        predicted,
        weight,
        matrix,
        Spread.of(-log_scores(codes, predicted), weight),
        len(codes),
        fold=fold[done],
    )


def _log_proba(model: BaseEstimator, X: UserRows) -> Array:
    if hasattr(model, "predict_log_proba"):
        return np.asarray(model.predict_log_proba(X))
    if not hasattr(model, "predict_proba"):
        raise TypeError(f"{type(model).__name__} has no predict_proba, and a validation of classes needs it.")
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(model.predict_proba(X)))
