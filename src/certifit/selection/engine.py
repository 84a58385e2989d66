"""Scores of every candidate on every split: from sums where a model offers its path, by refits where it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils import indexable
from sklearn.utils.validation import column_or_1d, has_fit_parameter

from certifit.data.cells import ByLabel, Splits
from certifit.data.changed import Coded
from certifit.data.columns import Array
from certifit.data.gate import checked_weight, class_source, fit_source, refuse_nonfinite
from certifit.data.source import Block, Memory, Source
from certifit.maps import TableEncoder
from certifit.models.class_folds import ROW_SCORES, FoldModel, FoldModels, counted_rows_of, present
from certifit.runtime import one_blas_thread
from certifit.selection.progress import Bar
from certifit.selection.scoring import sufficient
from certifit.selection.splits import group_numbers, targets

Candidate = Mapping[str, Any]


@dataclass(frozen=True)
class Rows:
    """Training data: a source of rows, and the arrays it came from where there are any."""

    source: Source
    X: Any = None
    y: Any = None
    weight: Array | None = None
    groups: Any = None
    labels: Array | None = None  # of a classifier: the place of every row's class among the classes
    classes: Array | None = None

    @staticmethod
    def of(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Rows:
        """Checked rows. An estimator of another library checks X itself."""
        is_ours = hasattr(estimator, "fold_path") or hasattr(estimator, "class_fold_models")
        if isinstance(X, Source):
            if not is_ours:
                raise TypeError(f"{type(estimator).__name__} cannot read a scan. Give it arrays.")
            if groups is not None:
                raise ValueError("A scan names its groups: scan_csv(..., group='name of the column').")
            scan, classes = _checked(estimator, X, y, sample_weight)
            labels = None if classes is None else targets(scan).astype(np.int64)
            return Rows(scan, labels=labels, classes=classes)
        source, classes = _checked(estimator, X, y, sample_weight) if is_ours else (None, None)
        X, y = indexable(X, y)
        labels = None
        if is_classifier(estimator) and y is not None:
            found, labels = np.unique(column_or_1d(y, warn=True), return_inverse=True)
            classes = found if classes is None else classes
        weight = None if sample_weight is None else checked_weight(sample_weight, n_samples(X))
        source = _numbered(X, y, labels, weight) if source is None else source
        if groups is not None:
            source = _Grouped(source, group_numbers(groups, n_samples(X)))
        return Rows(source, X, y, weight, groups, labels, classes)


def _checked(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Source, Array | None]:
    """The checked rows of one of our models, as its own fit has them, and the classes that y are codes of."""
    if is_classifier(estimator):
        return class_source(clone(estimator), X, y, sample_weight)
    return fit_source(clone(estimator), X, y, sample_weight), None


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


def evaluate(
    estimator: Any,
    rows: Rows,
    rounds: Sequence[Splits],
    candidates: Sequence[Candidate],
    scoring: Any = None,
    *,
    n_jobs: int | None = None,
    label: str = "cross-validation",
    with_training: bool = False,
) -> FoldScores:
    """Scores of every candidate on every split.

    with_training: training scores of classifiers too, which cost as many passes over a row as there are splits; other
    models have them for nothing.
    """
    if hasattr(estimator, "class_fold_models"):
        scores = class_scores(estimator, rows, rounds, candidates, scoring, with_training)
        return _refitted(estimator, rows, rounds, candidates, scoring, n_jobs, label) if scores is None else scores
    score = sufficient(scoring)
    path = None
    if score is not None and hasattr(estimator, "fold_path"):
        path = estimator.fold_path(rows.source, rounds, candidates)
    if path is None or score is None:
        return _refitted(estimator, rows, rounds, candidates, scoring, n_jobs, label)
    refuse_units(path.in_units, scoring)
    train = score(path.train, path.train_total, path.train_weight)
    validation = score(path.validation, path.validation_total, path.validation_weight)
    return FoldScores(train, validation, path.validation_weight, "statistics", path)


def class_scores(
    estimator: Any,
    rows: Rows,
    rounds: Sequence[Splits],
    candidates: Sequence[Candidate],
    scoring: Any,
    with_training: bool = False,
) -> FoldScores | None:
    """Scores of a classifier from sums by fold and class; None where they do not tell. detail: the models."""
    is_named = scoring is None or isinstance(scoring, str)
    is_of_rows = is_named and scoring in ROW_SCORES
    if not is_named or rows.classes is None or (with_training and not is_of_rows):
        return None
    models = estimator.class_fold_models(rows.source, rows.classes, rounds, candidates)
    if models is None:
        return None
    _refuse_faulty(models.faults, len(candidates))
    if is_of_rows:
        train, validation, weight = models.row_scores(ROW_SCORES[scoring], with_training)
    else:
        train, (validation, weight) = (
            None,
            _scored(models, rows.classes, len(candidates), check_scoring(estimator, scoring)),
        )
    return FoldScores(train, validation, weight, "statistics", models, models.faults)


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


def _refuse_faulty(faults: Mapping[int, str], n_candidates: int) -> None:
    if len(faults) == n_candidates:
        raise NoFit(next(iter(faults.values())))


class NoFit(ValueError):
    """No candidate has a fit to the training rows of every split."""


def refuse_units(in_units: bool, scoring: Any) -> None:
    """Raise where squares of y leave float64's range and the score is not a ratio of them."""
    if not in_units and scoring not in (None, "r2"):
        raise ValueError(f"The squares of y leave the range of float64, so {scoring!r} has no value. Rescale y.")


def reading_new_levels(estimator: Any, source: Source) -> Any:
    """The estimator for refits: a level that only validation rows have is the reference, as in sums over rows."""
    if not source.is_table or not hasattr(estimator, "encoder"):
        return estimator
    encoder = TableEncoder() if estimator.encoder is None else clone(estimator.encoder)
    return clone(estimator).set_params(encoder=encoder.set_params(unseen="reference"))


def _refitted(
    estimator: Any,
    rows: Rows,
    rounds: Sequence[Splits],
    candidates: Sequence[Candidate],
    scoring: Any,
    n_jobs: int | None,
    label: str,
) -> FoldScores:
    """Every (candidate, split) fitted anew, some at a time."""
    from joblib import Parallel, delayed

    estimator = reading_new_levels(estimator, rows.source)
    scorer = check_scoring(estimator, scoring)
    if (hasattr(estimator, "fold_path") or hasattr(estimator, "class_fold_models")) and not rows.source.is_table:
        refuse_nonfinite(rows.source)  # a refit would name the row by its number within a split
    places = [(splits, s) for splits in rounds for s in range(splits.n_splits)]
    work = _work(estimator, rows, rounds, scoring)
    jobs = [
        delayed(work)(clone(estimator).set_params(**candidate), rows, splits, s, scorer)
        for candidate in candidates
        for splits, s in places
    ]
    results = []
    with Bar(label, len(jobs)) as bar:
        for result in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
            results.append(result)
            bar.advance()
    table = np.array([numbers for numbers, _ in results]).reshape(len(candidates), len(places), 3)
    faults: dict[int, str] = {}
    for at, (_, fault) in enumerate(results):
        if fault:
            faults.setdefault(at // len(places), fault)
    if faults:
        _refuse_faulty(faults, len(candidates))
    weight = np.nan_to_num(table[:, :, 2]).max(axis=0)
    return FoldScores(table[:, :, 0], table[:, :, 1], weight, "refits", faults=faults)


Result = tuple[tuple[float, float, float], str]  # (training score, validation score, validation weight), fault


def _work(estimator: Any, rows: Rows, rounds: Sequence[Splits], scoring: Any) -> Callable[..., Result]:
    """What fits and scores one candidate on one split."""
    if hasattr(estimator, "class_fold_models") and (rows.X is None or scoring is None or isinstance(scoring, str)):
        return _OnClasses({id(splits): trained_classes(rows, splits) for splits in rounds}, scoring)
    return _in_memory if rows.X is not None else _on_source


def _in_memory(model: Any, rows: Rows, splits: Splits, split: int, scorer: Any) -> Result:
    """The scores of a fit to rows picked from arrays."""
    train, validation = times_of(rows, splits, split)
    X, y, weight = picked(rows, train)
    takes_weight = has_fit_parameter(model, "sample_weight")
    if weight is not None and not takes_weight:
        raise ValueError(f"{type(model).__name__} takes no sample_weight. Leave the weights out.")
    model.fit(X, y, **({} if weight is None else {"sample_weight": weight}))
    scores = []
    for part in (train, validation):
        X, y, weight = picked(rows, part)
        scores.append(scorer(model, X, y, **({} if weight is None else {"sample_weight": weight})))
    total = float(validation.sum() if rows.weight is None else validation @ rows.weight)
    return (float(scores[0]), float(scores[1]), total), ""


def times_of(rows: Rows, splits: Splits, split: int) -> tuple[Array, Array]:
    """How often each row of arrays trains and validates a split."""
    n_rows = n_samples(rows.X)
    cells = splits.cells.of(rows.source.first_block() if n_rows == 0 else _all(rows.source, n_rows))
    train, validation = (np.append(times, 0.0)[cells] for times in (splits.train[split], splits.validation[split]))
    return train, validation


def _on_source(model: Any, rows: Rows, splits: Splits, split: int, scorer: Any) -> Result:
    """The same for a scan: rows of the other sets have weight 0."""
    model.fit(splits.trained(rows.source, split))
    y = targets(rows.source)
    predictions = np.asarray(model.predict(rows.source))
    scores, weight = [], np.ones(0)
    for times in (splits.train[split], splits.validation[split]):
        weight = np.concatenate(list(rows.source.map(partial(_weights, splits.cells, times))))
        seen = weight > 0
        scores.append(
            scorer(_Predicted(predictions[seen]), np.zeros((seen.sum(), 1)), y[seen], sample_weight=weight[seen])
        )
    return (float(scores[0]), float(scores[1]), float(weight.sum())), ""


@dataclass(frozen=True)
class _OnClasses:
    """The same for one of our classifiers, on rows whose y are codes. trained: `trained_classes` of every round."""

    trained: dict[int, Array]
    scoring: Any

    def __call__(self, model: Any, rows: Rows, splits: Splits, split: int, scorer: Any) -> Result:
        if rows.classes is None:
            raise ValueError("A classifier needs labels y.")
        try:
            fitted = fitted_codes(model, rows, splits, split, self.trained[id(splits)])
        except ValueError as error:
            return (np.nan, np.nan, np.nan), f"{error} (on the training rows of split {split})"
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
                scores.append(_scored_classes(scorer, rows.classes, truth, found, None if (own == 1).all() else own))
        return (scores[0], scores[1], float(weights[1].sum())), ""


def _posteriors(fitted: FoldModel, cells: Any, sets: Array, run: Block) -> tuple[Array, Array, Array]:
    """Codes, log p(k | x) and weights by set, of the rows that count in some set."""
    times = np.column_stack([sets, np.zeros(len(sets))])[:, cells.of(run)]  # NO_CELL is the last
    rows, codes, weight = counted_rows_of(run, times)
    return codes, np.zeros((0, fitted.n_classes)) if rows is None else fitted.log_proba(rows), weight


def trained_classes(rows: Rows, splits: Splits) -> Array:
    """Weight of the training rows of every split and class: one pass."""
    n_classes = 0 if rows.classes is None else len(rows.classes)
    held = rows.source.reduce(partial(_class_weights, ByLabel(n_classes, splits.cells)))
    return np.asarray(splits.train @ held.reshape(splits.cells.n_cells, n_classes))


def _class_weights(cells: ByLabel, run: Block) -> Array:
    own = cells.of(run)
    weight = None if run.weight is None else run.weight[own >= 0]
    return np.bincount(own[own >= 0], weight, cells.n_cells)


def fitted_codes(model: Any, rows: Rows, splits: Splits, split: int, trained: Array) -> FoldModel:
    """One of our classifiers fitted to the training rows of a split; trained: `trained_classes` of the splits."""
    if rows.classes is None:
        raise ValueError("A classifier needs labels y.")
    places = present(trained[split], rows.classes, split)
    source = rows.source if len(places) == len(rows.classes) else Coded(rows.source, places)
    model._check_parameters()
    one_blas_thread(model.fit_codes)(splits.trained(source, split), rows.classes[places])
    return FoldModel(model, places, len(rows.classes), is_mapped=False)


def _weights(cells: Any, times: Array, block: Block) -> Array:
    own = np.append(times, 0.0)[cells.of(block)]
    return np.asarray(own if block.weight is None else own * block.weight)


class _Predicted(RegressorMixin, BaseEstimator):
    """Predictions that are there already, for a scorer."""

    def __init__(self, predictions: Array) -> None:
        self.predictions = predictions

    def predict(self, X: Any) -> Array:
        """The predictions."""
        return self.predictions

    def __sklearn_is_fitted__(self) -> bool:
        return True


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


def picked(rows: Rows, times: Array) -> tuple[Any, Any, Array | None]:
    """Rows taken as often as `times` says, their targets, their weights."""
    numbers = np.repeat(np.arange(len(times)), times.astype(np.int64))
    weight = None if rows.weight is None else rows.weight[numbers]
    if weight is not None:
        numbers, weight = numbers[weight > 0], weight[weight > 0]  # weight 0 is no row
    y = None if rows.y is None else taken(rows.y, numbers)
    return taken(rows.X, numbers), y, weight


def taken(X: Any, numbers: Array) -> Any:
    """Rows of an array, a sparse matrix, a frame or a list, by number."""
    if hasattr(X, "iloc"):
        return X.iloc[numbers]
    if hasattr(X, "take") and hasattr(X, "schema"):  # pyarrow
        return X.take(numbers)
    if sp.issparse(X):
        return X.tocsr()[numbers]
    if hasattr(X, "shape") or hasattr(X, "__dataframe__"):
        return X[numbers]
    return [X[i] for i in numbers]


def n_samples(X: Any) -> int:
    """Number of rows of an array, frame or list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _numbered(X: Any, y: Any, labels: Array | None, weight: Array | None) -> Source:
    """Row numbers and targets alone, for rows that only the estimator understands."""
    n_rows = n_samples(X)
    if n_rows == 0:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    target = labels if labels is not None or y is None else np.asarray(y)
    if target is not None and (target.ndim != 1 or target.dtype.kind not in "fiub"):
        target = None  # only a splitter that asks for it misses it
    return Memory(np.zeros((n_rows, 1)), None if target is None else target.astype(np.float64), weight)


def _all(source: Source, n_rows: int) -> Block:
    """A block that numbers all rows, with their groups."""
    groups = [run.group for run in source.runs()] if source.first_block().group is not None else []
    group = np.concatenate([one for one in groups if one is not None]) if groups else None
    return Block(np.zeros((n_rows, 0)), None, None, 0, group)


class _Grouped(Memory):
    """Rows in memory with a group each; runs as the source it wraps has them."""

    def __init__(self, inner: Source, group: Array) -> None:
        self.__dict__.update(inner.__dict__)
        self.is_table = inner.is_table
        self._inner, self._group = inner, group

    def runs(self) -> Iterator[Block]:
        """Runs of the inner source, with groups."""
        inner = self._inner if self.run_rows is None else self._inner.resized(self.block_rows, self.run_rows)
        for run in inner.runs():
            yield replace(run, group=self._group[run.first_row : run.first_row + run.n_rows])
