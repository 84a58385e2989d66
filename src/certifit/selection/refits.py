"""Subsets of features scored by refits on the rows: for any estimator and any score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.parallel import Parallel, delayed

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.maps import TableEncoder
from certifit.selection.engine import evaluate
from certifit.selection.features import Feature
from certifit.selection.progress import Bar
from certifit.selection.rows import Part, Rows, reading_new_levels
from certifit.selection.scoring import Scoring
from certifit.selection.search import Scores
from certifit.selection.tables import take_columns, take_rows


class RefitSearch:
    """A path by refits, several subsets at once. work(columns): the scores of a subset."""

    def __init__(
        self, features: Sequence[Feature], work: Callable[[list[int]], Scores], n_jobs: int | None, bar: Bar
    ) -> None:
        self.names = [feature.name for feature in features]
        self.notes: list[str] = []
        self._features, self._work, self._n_jobs, self._bar = features, work, n_jobs, bar
        self._known: dict[tuple[int, ...], Scores] = {}

    def scores(self, subsets: Sequence[Sequence[int]]) -> list[Scores]:
        """Of the subsets of a path."""
        return self._scores([tuple(subset) for subset in subsets])

    def best_added(self, chosen: Sequence[int], moves: Sequence[int]) -> int:
        """The best feature to add."""
        return self._best(moves, [tuple(sorted([*chosen, at])) for at in moves])

    def best_dropped(self, chosen: Sequence[int], moves: Sequence[int]) -> int:
        """The best feature to drop."""
        return self._best(moves, [tuple(other for other in chosen if other != at) for at in moves])

    def redundant(self, fixed: Sequence[int]) -> Iterator[int]:
        """None: only the sums of a linear model tell."""
        return iter(())

    def _best(self, moves: Sequence[int], subsets: list[tuple[int, ...]]) -> int:
        means = np.array([validation.mean() for _, validation in self._scores(subsets)])
        if np.isnan(means).all():
            raise ValueError(f"No subset of {len(subsets[0])} features has a score: all are NaN.")
        top = np.nanmax(means)
        return moves[int(np.flatnonzero(means >= top - 1e-12 * abs(top))[0])]

    def _scores(self, subsets: list[tuple[int, ...]]) -> list[Scores]:
        """Of subsets; all that were scored are remembered."""
        new = [subset for subset in subsets if subset not in self._known]
        columns = [sorted(column for at in subset for column in self._features[at].columns) for subset in new]
        jobs = (delayed(self._work)(chosen) for chosen in columns)
        for subset, scores in zip(new, Parallel(n_jobs=self._n_jobs, return_as="generator")(jobs), strict=True):
            self._known[subset] = scores
            self._bar.advance()
        return [self._known[subset] for subset in subsets]


def fold_estimator(estimator: BaseEstimator, source: Source, names: list[str]) -> tuple[BaseEstimator, set[int]]:
    """The estimator for refits on parts of the rows, and the places of the columns that it can use."""
    if not source.is_table or "encoder" not in estimator.get_params(deep=False):
        return estimator, set(range(len(names)))
    estimator = reading_new_levels(estimator, source)
    made = {name for name, _ in clone(estimator.encoder).fit_source(source).groups_}
    return estimator, {column for column, name in enumerate(names) if name in made}


def with_columns(estimator: BaseEstimator, names: Iterable[object]) -> BaseEstimator:
    """A copy of the estimator for some of the columns: its encoder forgets what it was told about the others."""
    estimator = clone(estimator)
    encoder = estimator.get_params(deep=False).get("encoder")
    if isinstance(encoder, TableEncoder):
        kept = {str(name) for name in names}
        encoder.categories = [name for name in encoder.categories if name in kept]
        if isinstance(encoder.reference, dict):
            encoder.reference = {name: level for name, level in encoder.reference.items() if name in kept}
    return estimator


def row_numbers(rounds: Sequence[Splits], source: Source, weight: Array | None) -> list[tuple[Array, Array]]:
    """Numbers of the training and validation rows of every split, a row drawn twice twice; weight 0 is no row."""
    block = Block(np.zeros((sum(run.n_rows for run in source.runs()), 0)), None, None)
    pairs = []
    for splits in rounds:
        cells = splits.cells.of(block)
        for tables in zip(splits.train, splits.validation, strict=True):
            times = (np.append(table, 0).astype(np.int64)[cells] for table in tables)
            train, validation = (np.repeat(np.arange(block.n_rows), one * _counts(weight)) for one in times)
            pairs.append((train, validation))
    return pairs


def _counts(weight: Array | None) -> Array | int:
    return 1 if weight is None else (weight > 0).astype(np.int64)


def score_subset(
    estimator: BaseEstimator,
    rows: Rows,
    pairs: list[tuple[Array, Array]],
    scorer: Callable[..., float],
    columns: list[int],
) -> Scores:
    """Fit on the training rows of every split and score both parts, with only these columns."""
    X = take_columns(rows.X, columns)
    estimator = with_columns(estimator, getattr(X, "columns", ()))
    scores = np.empty((2, len(pairs)))
    for k, pair in enumerate(pairs):
        parts = [Part(*(take_rows(one, numbers) for one in (X, rows.y, rows.weight, rows.offset))) for numbers in pair]
        model = parts[0].fitted(clone(estimator))
        scores[:, k] = [part.scored(model, scorer) for part in parts]
    return scores[0], scores[1]


def score_scan(
    estimator: BaseEstimator,
    rows: Rows,
    rounds: Sequence[Splits],
    scoring: Scoring,
    n_jobs: int | None,
    columns: list[int],
) -> Scores:
    """The same for a scan, whose rows stay where they are."""
    rows = replace(rows, source=take_columns(rows.source, columns))
    estimator = with_columns(estimator, rows.source.names)
    found = evaluate(estimator, rows, rounds, [{}], scoring, n_jobs=n_jobs, with_training=True)
    return found.training[0], found.validation[0]
