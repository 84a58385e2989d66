"""Scores of every candidate on every split: from sums where a model offers its path, by refits where it does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils import indexable
from sklearn.utils.validation import column_or_1d, has_fit_parameter

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.gate import checked_weight, class_source, fit_source, refuse_nonfinite
from certifit.data.source import Block, Memory, Source
from certifit.maps import TableEncoder
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
    labels: Array | None = None  # of a classifier

    @staticmethod
    def of(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Rows:
        """Checked rows. An estimator of another library checks X itself."""
        is_ours = hasattr(estimator, "fold_path") or hasattr(estimator, "fold_scores")
        if isinstance(X, Source):
            if not is_ours:
                raise TypeError(f"{type(estimator).__name__} cannot read a scan. Give it arrays.")
            if groups is not None:
                raise ValueError("A scan names its groups: scan_csv(..., group='name of the column').")
            scan = _checked(estimator, X, y, sample_weight)
            return Rows(scan, labels=targets(scan).astype(np.int64) if is_classifier(estimator) else None)
        source = _checked(estimator, X, y, sample_weight) if is_ours else None
        X, y = indexable(X, y)
        labels = None
        if is_classifier(estimator) and y is not None:
            labels = np.unique(column_or_1d(y, warn=True), return_inverse=True)[1]
        weight = None if sample_weight is None else checked_weight(sample_weight, n_samples(X))
        source = _numbered(X, y, labels, weight) if source is None else source
        if groups is not None:
            source = _Grouped(source, group_numbers(groups, n_samples(X)))
        return Rows(source, X, y, weight, groups, labels)


def _checked(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Source:
    """The checked rows of one of our models, as its own fit has them: labels of a classifier are codes."""
    if is_classifier(estimator):
        return class_source(clone(estimator), X, y, sample_weight)[0]
    return fit_source(clone(estimator), X, y, sample_weight)


@dataclass(frozen=True)
class FoldScores:
    """train, validation: candidates x splits; weight: of the validation rows of a split; route: how they were found."""

    train: Array
    validation: Array
    weight: Array
    route: str
    detail: Any = None  # what the model's path holds beside scores


def evaluate(
    estimator: Any,
    rows: Rows,
    rounds: Sequence[Splits],
    candidates: Sequence[Candidate],
    scoring: Any = None,
    *,
    n_jobs: int | None = None,
    label: str = "cross-validation",
) -> FoldScores:
    """Scores of every candidate on every split."""
    if hasattr(estimator, "fold_scores"):
        return _of_classes(estimator, rows, rounds, candidates, scoring, n_jobs, label)
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


def _of_classes(
    estimator: Any,
    rows: Rows,
    rounds: Sequence[Splits],
    candidates: Sequence[Candidate],
    scoring: Any,
    n_jobs: int | None,
    label: str,
) -> FoldScores:
    """Scores of a classifier. From sums, only validation rows are scored: training scores are NaN."""
    found = estimator.fold_scores(rows.source, rounds, candidates, scoring)
    if found is not None:
        return FoldScores(np.full_like(found.validation, np.nan), found.validation, found.weight, "statistics")
    if rows.X is None:
        raise ValueError(
            f"{type(estimator).__name__} on a scan is cross-validated from sums, for scoring='accuracy' or "
            "'neg_log_loss', without a basis and without gaps in the columns. Give arrays for the rest."
        )
    return _refitted(estimator, rows, rounds, candidates, scoring, n_jobs, label)


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
    if hasattr(estimator, "fold_path") and not rows.source.is_table:
        refuse_nonfinite(rows.source)  # a refit would name the row by its number within a split
    places = [(splits, s) for splits in rounds for s in range(splits.n_splits)]
    work = _in_memory if rows.X is not None else _on_source
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
    table = np.array(results).reshape(len(candidates), len(places), 3)
    return FoldScores(table[:, :, 0], table[:, :, 1], table[0, :, 2], "refits")


def _in_memory(model: Any, rows: Rows, splits: Splits, split: int, scorer: Any) -> tuple[float, float, float]:
    """(training score, validation score, validation weight) of a fit to rows picked from arrays."""
    n_rows = n_samples(rows.X)
    cells = splits.cells.of(rows.source.first_block() if n_rows == 0 else _all(rows.source, n_rows))
    train, validation = (np.append(times, 0.0)[cells] for times in (splits.train[split], splits.validation[split]))
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
    return float(scores[0]), float(scores[1]), total


def _on_source(model: Any, rows: Rows, splits: Splits, split: int, scorer: Any) -> tuple[float, float, float]:
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
    return float(scores[0]), float(scores[1]), float(weight.sum())


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
