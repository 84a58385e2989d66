"""The greedy path through subsets of features, and its steps from the Gram matrices of the folds.

Sweeps over the matrices choose the next feature; every subset visited is scored by refits from the same matrices.
Of equal scores the feature of the lowest place is taken. `RefitSearch` refits on the rows, for any estimator and score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.parallel import Parallel, delayed

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.maps import TableEncoder
from certifit.selection.features.features import Feature, Step
from certifit.selection.features.sweeps import (
    SHARP,
    BackwardSweep,
    FoldSystems,
    ForwardSweep,
    Losses,
    Systems,
    dependent_columns,
    parts_of,
)
from certifit.selection.folds.engine import Bar, evaluate
from certifit.selection.folds.metrics import Score, Scoring
from certifit.selection.folds.rows import Part, Rows, reading_new_levels, take_columns, take_rows

Scores = tuple[Array, Array]  # of the training and of the validation rows, one per fold
_STRETCH = 40  # longest part of a path without a refit
_AGREE = 1e-10  # relative difference of losses between a sweep and a refit that counts as none
_LOSSLESS = 1e-8  # share of the squares of y that a redundant feature may change
_SETTLED = 12  # candidates that refits settle between
_SHOWN = 4


class Search(Protocol):
    """Scores of subsets, given as sorted places of features."""

    names: list[str]
    notes: list[str]

    def scores(self, subsets: Sequence[Sequence[int]]) -> list[Scores]:
        """Scores of the subsets of a path, in its order."""

    def best_added(self, chosen: Sequence[int], moves: Sequence[int]) -> int:
        """The feature among `moves` whose addition gives the best mean score."""

    def best_dropped(self, chosen: Sequence[int], moves: Sequence[int]) -> int:
        """The feature among `moves` whose removal gives the best mean score."""

    def redundant(self, fixed: Sequence[int]) -> Iterator[int]:
        """Features to drop before all others, since the rest says all that they say."""


def forward_path(search: Search, fixed: Sequence[int], most: int) -> list[Step]:
    """Add the best feature until there are `most`."""
    chosen = sorted(fixed)
    path: list[tuple[int | None, list[int]]] = [(None, chosen)] if chosen else []
    while len(chosen) < most:
        best = search.best_added(chosen, [at for at in range(len(search.names)) if at not in set(chosen)])
        chosen = sorted([*chosen, best])
        path.append((best, chosen))
    return _steps(search, path)


def backward_path(search: Search, fixed: Sequence[int], fewest: int) -> list[Step]:
    """Drop redundant features, then the one that is missed least, until `fewest` are left."""
    chosen = list(range(len(search.names)))
    path: list[tuple[int | None, list[int]]] = [(None, chosen)]
    redundant = search.redundant(fixed)
    while len(chosen) > fewest:
        worst = next(redundant, None)
        if worst is None:
            worst = search.best_dropped(chosen, [at for at in chosen if at not in set(fixed)])
        chosen = [at for at in chosen if at != worst]
        path.append((worst, chosen))
    return _steps(search, path)


def _steps(search: Search, path: Sequence[tuple[int | None, list[int]]]) -> list[Step]:
    steps = []
    for (change, chosen), scores in zip(path, search.scores([chosen for _, chosen in path]), strict=True):
        names = [search.names[at] for at in chosen]
        bad = np.flatnonzero(~np.isfinite(scores[1]))
        if len(bad):
            raise ValueError(f"Fold {bad[0]} has no finite score with the features {names}: {scores[1][bad[0]]}.")
        steps.append(Step.of(None if change is None else search.names[change], names, *scores))
    return steps


class StatisticsSearch:
    """Scores from the sums of the folds. blocks: the columns of the systems that each feature stands for."""

    def __init__(self, systems: FoldSystems, names: list[str], blocks: list[list[int]], score: Score) -> None:
        self.systems = systems
        self.names = names
        self.blocks = blocks
        self.score = score
        self.notes: list[str] = []
        self._sweep: ForwardSweep | BackwardSweep | None = None
        self._swept: dict[tuple[int, ...], Losses] = {}
        self._noted: set[int] = set()

    def scores(self, subsets: Sequence[Sequence[int]]) -> list[Scores]:
        """Scores of refits. Between two subsets where a sweep agrees with them, the sweep gives the rest.

        What spoils a sweep (nearly dependent columns, folds whose training rows cannot tell columns apart) comes in
        with a column and stays with it; under a penalty the training losses differ everywhere.
        """
        n_folds = len(self.systems.train_yy)
        known = np.full((2, len(subsets), n_folds), np.nan)  # losses on validation and training rows
        swept = np.array([self._swept_losses(subset, n_folds) for subset in subsets]).transpose(1, 0, 2)
        open_parts = [(0, len(subsets) - 1, np.arange(n_folds))]
        while open_parts:
            low, high, folds = open_parts.pop()
            for at in {low, high}:
                missing = folds[np.isnan(known[0, at, folds])]
                if len(missing):
                    train, validation = self.systems.exact(self._columns(subsets[at]), missing.tolist())
                    known[:, at, missing] = validation, train
            agree = _agree(swept[:, low], known[:, low]) & _agree(swept[:, high], known[:, high])
            agree &= ~np.isnan(swept[0, low : high + 1]).any(axis=0) & (high - low <= _STRETCH)
            told = folds[agree[folds]]
            known[:, low + 1 : high, told] = swept[:, low + 1 : high, told]
            disagreeing = folds[~agree[folds]]
            if len(disagreeing) and high - low > 1:
                middle = (low + high) // 2
                open_parts += [(low, middle, disagreeing), (middle, high, disagreeing)]
        return [self._scored(Losses(*known[:, at])) for at in range(len(subsets))]

    def _swept_losses(self, subset: Sequence[int], n_folds: int) -> Array:
        losses = self._swept.get(tuple(subset))
        return np.full((2, n_folds), np.nan) if losses is None else np.array([losses.validation, losses.train])

    def _exact(self, subset: Sequence[int]) -> Losses:
        train, validation = self.systems.exact(self._columns(subset))
        return Losses(validation, train)

    def _scored(self, losses: Losses) -> Scores:
        unit, total, weight = (getattr(self.systems, name) for name in ("y_unit", "train_total", "train_weight"))
        return self.score(losses.train * unit, total * unit, weight), self._score(losses.validation)

    def best_added(self, chosen: Sequence[int], moves: Sequence[int]) -> int:
        """The best feature to add."""
        sweep = self._sweep
        if not isinstance(sweep, ForwardSweep):
            self._sweep = sweep = ForwardSweep(self.systems, self._columns(chosen))
        self._note_nothing_added(sweep, moves)
        best = self._best(sweep, moves, [tuple(sorted([*chosen, at])) for at in moves])
        sweep.add(self.blocks[best])
        self._swept[tuple(sorted([*chosen, best]))] = sweep.losses
        return best

    def best_dropped(self, chosen: Sequence[int], moves: Sequence[int]) -> int:
        """The best feature to drop."""
        sweep = self._sweep
        if not isinstance(sweep, BackwardSweep):
            self._sweep = sweep = BackwardSweep(self.systems, self._columns(chosen))
        best = self._best(sweep, moves, [tuple(other for other in chosen if other != at) for at in moves])
        sweep.drop(self.blocks[best])
        self._swept[tuple(at for at in chosen if at != best)] = sweep.losses
        return best

    def redundant(self, fixed: Sequence[int]) -> Iterator[int]:
        """Features that are combinations of others, the last ones first; each is checked to change no loss."""
        others = [at for at in reversed(range(len(self.blocks))) if at not in set(fixed)]
        order = self._columns([*fixed, *reversed(others)])
        nothing = set(dependent_columns(self.systems, order).tolist())
        left = list(range(len(self.blocks)))
        before = None
        for at in others:
            if not nothing.issuperset(self.blocks[at]):
                continue
            remaining = [other for other in left if other != at]
            before = self._exact(left) if before is None else before
            after = self._exact(remaining)
            if remaining and self._is_equal(before, after):
                left, before = remaining, after
                self._note(at, remaining, "it was dropped first, at no loss")
                yield at

    def _best(
        self, sweep: ForwardSweep | BackwardSweep, moves: Sequence[int], subsets: Sequence[tuple[int, ...]]
    ) -> int:
        """The first of the best. Where a sweep is blurred, refits settle between the few that it cannot tell apart."""
        losses = sweep.candidates([self.blocks[at] for at in moves]).validation
        equal = self._equals(losses, sweep.resolution)
        if 1 < len(equal) <= _SETTLED and sweep.resolution > SHARP:
            settled = np.array([self._exact(subsets[at]).validation for at in equal])
            equal = equal[self._equals(settled, SHARP)]
        return moves[int(equal[0])]

    def _equals(self, losses: Array, resolution: float) -> Array:
        """Places of the best mean score and of those that rounding may have put below it."""
        means = self._score(losses).mean(axis=1)
        top = int(means.argmax())
        worse = self._score(losses[top] + resolution * self.systems.validation_yy).mean()
        return np.flatnonzero(means >= means[top] - abs(means[top] - worse))

    def _score(self, losses: Array) -> Array:
        """Scores of losses on validation rows: folds along the last axis."""
        systems, unit = self.systems, self.systems.y_unit
        return self.score(losses * unit, systems.validation_total * unit, systems.validation_weight)

    def _is_equal(self, before: Losses, after: Losses) -> bool:
        sizes = (self.systems.validation_yy, self.systems.train_yy)
        pairs = zip(before, after, sizes, strict=True)
        return all((np.abs(new - old) <= _LOSSLESS * size).all() for old, new, size in pairs)

    def _note_nothing_added(self, sweep: ForwardSweep, moves: Sequence[int]) -> None:
        nothing = set(sweep.adding_nothing().tolist())
        if not nothing:
            return
        for at in moves:
            if at not in self._noted and nothing.issuperset(self.blocks[at]):
                chosen = [other for other in range(len(self.blocks)) if other not in set(moves)]
                self._note(at, chosen, "it adds nothing")

    def _note(self, at: int, others: Sequence[int], so: str) -> None:
        self._noted.add(at)
        systems: Systems = self.systems
        parts = {part for column in self.blocks[at] for part in parts_of(systems, column, self._columns(others))}
        named = [repr(self.names[other]) for other in others if parts.intersection(self.blocks[other])]
        more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
        what = f"to 5 digits a combination of {', '.join(named[:_SHOWN])}{more}" if named else "constant"
        self.notes.append(f"{self.names[at]!r} is {what} in the training rows of every fold: {so}.")

    def _columns(self, chosen: Sequence[int]) -> list[int]:
        return [column for at in chosen for column in self.blocks[at]]


def _agree(swept: Array, exact: Array) -> Array:
    """Folds in which both losses of a sweep are those of a refit."""
    return np.asarray((np.abs(swept - exact) <= _AGREE * exact).all(axis=0))  # NaN agrees with nothing


# ---- by refits on the rows -------------------------------------------------------------------------------------------


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
    block = Block(np.zeros((sum(stretch.n_rows for stretch in source.stretches()), 0)), None, None)
    pairs = []
    for splits in rounds:
        cells = splits.cells.of(block)
        for tables in zip(splits.train, splits.validation, strict=True):
            times = (np.append(table, 0).astype(np.int64)[cells] for table in tables)
            train, validation = (np.repeat(np.arange(block.n_rows), side * _counts(weight)) for side in times)
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
        parts = [
            Part(*(take_rows(array, numbers) for array in (X, rows.y, rows.weight, rows.offset))) for numbers in pair
        ]
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
    scores = evaluate(estimator, rows, rounds, [{}], scoring, n_jobs=n_jobs, with_training=True)
    return scores.training[0], scores.validation[0]
