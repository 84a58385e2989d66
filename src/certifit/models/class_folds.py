"""Cross-validation of a classifier from sums: one pass for the statistics, one for the scores of all candidates.

A statistic is summed by fold and class. What a training set of folds has is a sum of those, so its closed form needs
no rows; then every row is scored once, by the models of the splits that it validates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.data.cells import ByLabel, Splits
from certifit.data.columns import Array, Columns
from certifit.data.source import Block, Source

MOST_BYTES = 256 << 20  # of sums by fold and class, and of the models of all candidates


@dataclass(frozen=True)
class ClassFoldScores:
    """Scores on the validation rows, candidates x splits, and the weight of those rows."""

    validation: Array
    weight: Array


def log_posterior(scores: Array) -> Array:
    """scores_k - log sum_j exp(scores_j), row by row."""
    by_class = np.ascontiguousarray(scores.T)  # NumPy is slow along rows of few entries
    away = by_class - by_class.max(axis=0)
    away -= np.log(np.exp(away).sum(axis=0))
    return np.ascontiguousarray(away.T)


def _accuracy(log_posterior: Array, codes: Array) -> Array:
    return np.asarray(log_posterior.argmax(axis=1) == codes, dtype=np.float64)


def _log_loss(log_posterior: Array, codes: Array) -> Array:
    own = np.where(codes >= 0, log_posterior[np.arange(len(codes)), codes.clip(min=0)], -np.inf)
    return np.maximum(own, np.log(np.finfo(np.float64).eps))  # as scikit-learn clips probabilities


ROW_SCORES: dict[str | None, Callable[[Array, Array], Array]] = {
    None: _accuracy,
    "accuracy": _accuracy,
    "neg_log_loss": _log_loss,
}


def class_fold_scores(
    model: Any, source: Source, rounds: Sequence[Splits], candidates: Sequence[Mapping[str, Any]], scoring: Any
) -> ClassFoldScores | None:
    """Validation scores of all candidates; None where sums do not determine them, or would be too large.

    source: y are codes 0 .. K-1. A basis, and a table with gaps, depend on each training set; a class that a training
    set lacks is no class of it.
    """
    score = ROW_SCORES.get(scoring) if scoring is None or isinstance(scoring, str) else None
    mapped = None if score is None else model.fold_columns(source)
    if mapped is None or score is None:
        return None
    tables = []
    for splits in rounds:
        fitted = _fitted(model, mapped, splits, candidates)
        if fitted is None:
            return None
        tables.append(mapped.reduce(_RowScores(fitted, splits, score)).values)
    table = np.concatenate(tables, axis=1)  # (candidates + 1) x splits; the last row is the weight
    return ClassFoldScores(table[:-1] / table[-1], table[-1])


def _fitted(model: Any, source: Source, splits: Splits, candidates: Sequence[Mapping[str, Any]]) -> Any:
    """A model of every candidate (outer) and split (inner)."""
    n_classes, d = len(model.classes_), source.n_features
    n_models = len(candidates) * splits.n_splits
    if model.statistic_bytes(splits.cells.n_cells * n_classes, d) * (1 + n_models // splits.cells.n_cells) > MOST_BYTES:
        return None
    cells = ByLabel(n_classes, splits.cells)
    models, sums = [], {}
    for candidate in candidates:
        own = copy(model).set_params(**candidate)
        own._check_parameters()
        if own.sums_key() not in sums:
            sums[own.sums_key()] = own.fold_parts(source, cells)
        parts = sums[own.sums_key()]
        row = []
        for train in splits.train:
            times = np.kron(train, np.eye(n_classes))
            statistic = parts(times)
            if not (np.asarray(statistic.weight) > 0).all():
                return None
            fit = copy(own)
            task = fit._task(statistic, source)
            fit._store(task, task.solve())
            row.append(fit)
        models.append(row)
    return models


@dataclass(frozen=True)
class _Sums:
    values: Array

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(self.values + other.values)


@dataclass(frozen=True)
class _RowScores:
    """Sums of w score by candidate and split, over the validation rows of a run. Can be sent to a worker."""

    models: list[list[Any]]
    splits: Splits
    score: Callable[[Array, Array], Array]

    def __call__(self, run: Block) -> _Sums:
        sums = np.zeros((len(self.models) + 1, self.splits.n_splits))
        for s in range(self.splits.n_splits):
            weight = self.splits.validated(run, s)
            weight = weight if run.weight is None else weight * run.weight
            seen = weight > 0
            if not seen.any() or run.y is None:
                continue
            rows = Block(run.X.taken(seen) if isinstance(run.X, Columns) else run.X[seen], None, None, run.first_row)
            codes = run.y[seen].astype(np.int64)
            sums[-1, s] = weight[seen].sum()
            for c, models in enumerate(self.models):
                sums[c, s] = weight[seen] @ self.score(log_posterior(models[s].mapped_scores(rows)), codes)
        return _Sums(sums)
