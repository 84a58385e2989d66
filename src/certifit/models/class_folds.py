"""Cross-validation of a classifier from sums: one pass for the statistics, one for the scores of all candidates.

A statistic is summed by fold and class. What a training set of folds has is a sum of those, so its closed form needs
no rows; then every row is scored once, by the models of the splits that it validates.

A class that a training set lacks has probability 0 under its model: rows of it that validate are wrong there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certifit.data.cells import ByLabel, Splits
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.statistics.held_out import HeldOut, joined_by_split, numbers_where, validating

MOST_BYTES = 256 << 20  # of sums by fold and class, and of the models of all candidates
LEAST_LOG = float(np.log(np.finfo(np.float64).eps))  # a logarithm of a probability counts as this, as in scikit-learn


def log_posterior(scores: Array) -> Array:
    """scores_k - log sum_j exp(scores_j), row by row."""
    by_class = np.ascontiguousarray(scores.T)  # NumPy is slow along rows of few entries
    away = by_class - by_class.max(axis=0)
    away -= np.log(np.exp(away).sum(axis=0))
    return np.ascontiguousarray(away.T)


def accuracies(log_proba: Array, codes: Array) -> Array:
    """1 where the most probable class is that of the row, else 0."""
    return np.asarray(log_proba.argmax(axis=1) == codes, dtype=np.float64)


def log_scores(log_proba: Array, codes: Array) -> Array:
    """log p(class of the row | x), at least log(2.2e-16)."""
    own = np.where(codes >= 0, log_proba[np.arange(len(codes)), codes.clip(min=0)], -np.inf)
    return np.maximum(own, LEAST_LOG)


RowScore = Callable[[Array, Array], Array]  # (log p(k | x), codes) -> a number a row, whose mean is the score
ROW_SCORES: dict[str | None, RowScore] = {None: accuracies, "accuracy": accuracies, "neg_log_loss": log_scores}


@dataclass(frozen=True)
class FoldModel:
    """A model of a training set, and the places of its classes among all.

    maps: what makes the columns of the model from rows (`columns_of`); None where rows are mapped already.
    """

    model: Any
    places: Array
    n_classes: int
    maps: Any = None

    def log_proba(self, rows: Block, known: dict[int, Block] | None = None) -> Array:
        """log p(k | x), rows x all classes. known: the same rows as other models have mapped them."""
        own = log_posterior(self.model.mapped_scores(self._mapped(rows, {} if known is None else known)))
        if own.shape[1] == self.n_classes:
            return own
        every = np.full((len(own), self.n_classes), -np.inf)
        every[:, self.places] = own
        return every

    def _mapped(self, rows: Block, known: dict[int, Block]) -> Block:
        if self.maps is None:
            return rows
        if id(self.maps) not in known:
            known[id(self.maps)] = replace(rows, X=self.maps.columns_of(rows))
        return known[id(self.maps)]


@dataclass(frozen=True)
class FoldModels:
    """Models of all candidates on the training rows of all splits, and the source of the rows that they read.

    models: round, candidate, split; None where the training rows have no fit. faults: why, by candidate. route: whether
    "statistics" by fold gave all of them, or every split had a pass of its own, "refits".
    """

    source: Source
    rounds: Sequence[Splits]
    models: list[list[list[FoldModel | None]]]
    faults: dict[int, str]
    route: str = "statistics"

    def of_candidate(self, candidate: int) -> FoldModels:
        """The same with one candidate only."""
        faults = {0: self.faults[candidate]} if candidate in self.faults else {}
        models = [[own[candidate]] for own in self.models]
        return FoldModels(self.source, self.rounds, models, faults, self.route)

    def row_scores(self, score: RowScore, with_training: bool = False) -> tuple[Array | None, Array, Array]:
        """(training scores or None, validation scores, weight of the validation rows), candidates x splits.

        Training scores take as many passes over the scores of a row as there are splits.
        """
        tables = []
        for splits, models in zip(self.rounds, self.models, strict=True):
            sets = (splits.validation, splits.train) if with_training else (splits.validation,)
            tables.append(self.source.reduce(_RowScores(models, splits, sets, score)).values)
        table = np.concatenate(tables, axis=2)  # sets x (candidates + 1) x splits; the last row is the weight
        if not (table[:, -1] > 0).all():
            raise ValueError("A split has no rows of positive weight. Use fewer folds.")
        scores = table[:, :-1] / table[:, -1:]
        return scores[1] if with_training else None, scores[0], table[0, -1]

    def held_out(self, scores: Mapping[str, RowScore]) -> list[HeldOut]:
        """Scores of every validation row by every candidate, one entry per split: one pass per round."""
        found: list[HeldOut] = []
        for splits, models in zip(self.rounds, self.models, strict=True):
            found += joined_by_split(list(self.source.map(_HeldOutScores(models, splits, scores))))
        return found

    def validated(self, candidate: int) -> Iterator[tuple[Array, Array, Array | None]]:
        """(codes, log p(k | x), weight) of the validation rows of every split, rounds one after the other."""
        for splits, models in zip(self.rounds, self.models, strict=True):
            parts = list(self.source.map(_Validated(models[candidate], splits)))
            for s in range(splits.n_splits):
                codes, log_proba, weight = zip(*(part[s] for part in parts), strict=True)
                is_weighted = any(one is not None for one in weight)
                yield np.concatenate(codes), np.concatenate(log_proba), np.concatenate(weight) if is_weighted else None


def fold_models(
    model: Any, source: Source, rounds: Sequence[Splits], candidates: Sequence[Mapping[str, Any]]
) -> FoldModels | None:
    """Models of all candidates and splits from sums by fold; None where these do not tell, or would be too large.

    model: a copy that holds classes_. source: y are codes 0 .. K-1. A basis, and a table with gaps, depend on each
    training set.
    """
    mapped = None if any(map_parameters(candidate) for candidate in candidates) else model.fold_columns(source)
    if mapped is None:
        return None
    n_classes, d = len(model.classes_), mapped.n_features
    models: list[list[list[FoldModel | None]]] = []
    faults: dict[int, str] = {}
    for splits in rounds:
        n_cells = splits.cells.n_cells
        n_models = len(candidates) * splits.n_splits * len(rounds)
        if model.statistic_bytes(n_cells * n_classes, d) * (1 + n_models // n_cells) > MOST_BYTES:
            return None
        models.append(_fitted(model, mapped, splits, candidates, faults))
    return FoldModels(mapped, rounds, models, faults)


def map_parameters(candidate: Mapping[str, Any]) -> dict[str, Any]:
    """Those parameters of a candidate that change what becomes of rows before they are summed."""
    return {name: value for name, value in candidate.items() if name.partition("__")[0] in ("basis", "encoder")}


def _fitted(
    model: Any, source: Source, splits: Splits, candidates: Sequence[Mapping[str, Any]], faults: dict[int, str]
) -> list[list[FoldModel | None]]:
    """A model of every candidate (outer) and split (inner)."""
    sums = _FoldSums(source, splits, model.classes_)
    models = []
    for c, candidate in enumerate(candidates):
        own = copy(model).set_params(**candidate)
        own._check_parameters()
        row: list[FoldModel | None] = []
        for s in range(splits.n_splits):
            places, statistic = sums.of(own, s)
            fit = solved(copy(own), model.classes_[places], statistic, source)
            if isinstance(fit, str):
                faults.setdefault(c, f"{fit} (on the training rows of split {s})")
            row.append(None if isinstance(fit, str) else FoldModel(fit, places, len(model.classes_)))
        models.append(row)
    return models


class _FoldSums:
    """Statistics of the training rows of every split, made once for all models that share them."""

    def __init__(self, source: Source, splits: Splits, classes: Array) -> None:
        self.source, self.splits, self.classes = source, splits, classes
        self._parts: dict[Any, Any] = {}
        self._known: dict[Any, tuple[Array, Any]] = {}

    def of(self, model: Any, split: int) -> tuple[Array, Any]:
        """(places of the classes that the training rows have, their statistic)."""
        key = model.sums_key()
        if key not in self._parts:
            self._parts[key] = model.fold_parts(self.source, ByLabel(len(self.classes), self.splits.cells))
        if (key, split) not in self._known:
            times = np.kron(self.splits.train[split], np.eye(len(self.classes)))
            statistic = self._parts[key](times)
            places = present(np.asarray(statistic.weight), self.classes, split)
            if len(places) < len(self.classes):
                statistic = self._parts[key](times[places])
            self._known[key, split] = places, statistic
        return self._known[key, split]


def solved(model: Any, classes: Array, statistic: Any, source: Source) -> Any:
    """The model with the closed form of a statistic; a sentence where there is none, or one that leaves float64."""
    model.classes_ = classes
    try:
        model.solve(statistic, source)
    except ValueError as error:
        return str(error)
    return model


def present(weight: Array, classes: Array, split: int) -> Array:
    """Places of the classes that a training set has; two at least."""
    places = np.flatnonzero(weight > 0)
    if len(places) < 2:
        shown = f"all of class {classes.tolist()[places[0]]!r}" if len(places) else "none"
        raise ValueError(
            f"The training rows of split {split} are {shown}. Use folds that keep the shares of the classes, "
            "Folds(k, stratify=True), or fewer folds; rows of one group should not hold a whole class."
        )
    return places


@dataclass(frozen=True)
class _Sums:
    values: Array

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(self.values + other.values)


@dataclass(frozen=True)
class _RowScores:
    """Sums of w score by set, candidate and split, over the rows of a run. Can be sent to a worker.

    sets: tables of how often split s holds cell c, such as those of the validation rows.
    """

    models: list[list[FoldModel | None]]
    splits: Splits
    sets: tuple[Array, ...]
    score: RowScore

    def __call__(self, run: Block) -> _Sums:
        sums = np.zeros((len(self.sets), len(self.models) + 1, self.splits.n_splits))
        cells = self.splits.cells.of(run)
        for s in range(self.splits.n_splits):
            times = np.array([np.append(table[s], 0.0)[cells] for table in self.sets])  # NO_CELL is the last
            rows, codes, weight = counted_rows_of(run, times)
            if rows is None:
                continue
            sums[:, -1, s] = weight.sum(axis=1)
            known: dict[int, Block] = {}
            for c, models in enumerate(self.models):
                model = models[s]
                sums[:, c, s] = np.nan if model is None else weight @ self.score(model.log_proba(rows, known), codes)
        return _Sums(sums)


@dataclass(frozen=True)
class _HeldOutScores:
    """Scores of the validation rows of a run, one entry per split. Can be sent to a worker."""

    models: list[list[FoldModel | None]]
    splits: Splits
    scores: Mapping[str, RowScore]

    def __call__(self, run: Block) -> list[HeldOut]:
        return [self._of_split(run, s) for s in range(self.splits.n_splits)]

    def _of_split(self, run: Block, split: int) -> HeldOut:
        if run.y is None:
            raise ValueError("The rows carry no labels.")
        seen, weight = validating(run, self.splits, split)
        weight, seen = weight[run.y[seen] >= 0], seen & (run.y >= 0)
        codes = run.y[seen].astype(np.int64)
        values = {name: np.full((len(self.models), len(codes)), np.nan) for name in self.scores}
        known: dict[int, Block] = {}
        rows = block_where(run, seen) if len(codes) else None
        for c, models in enumerate(self.models):
            model = models[split]
            if model is None or rows is None:
                continue
            log_proba = model.log_proba(rows, known)
            for name, score in self.scores.items():
                values[name][c] = score(log_proba, codes)
        return HeldOut(numbers_where(run, seen), weight, codes, values)


@dataclass(frozen=True)
class _Validated:
    """Codes, log p(k | x) and weights of the validation rows of a run, a triple a split. Can be sent to a worker."""

    models: list[FoldModel | None]
    splits: Splits

    def __call__(self, run: Block) -> list[tuple[Array, Array, Array | None]]:
        found = []
        for s, model in enumerate(self.models):
            times = self.splits.validated(run, s)
            rows, codes, weight = counted_rows_of(run, times[None, :])
            if model is None:
                raise ValueError("A candidate without a fit has no predictions.")
            log_proba = np.zeros((0, model.n_classes)) if rows is None else model.log_proba(rows)
            is_plain = run.weight is None and (times <= 1).all()
            found.append((codes, log_proba, None if is_plain else weight[0]))
        return found


def counted_rows_of(run: Block, times: Array) -> tuple[Block | None, Array, Array]:
    """(the rows of a run that count in some set, their codes, their weights by set); None where there are none."""
    if run.y is None:
        raise ValueError("The rows carry no labels.")
    weight = times if run.weight is None else times * run.weight
    seen = (weight > 0).any(axis=0) & (run.y >= 0)
    codes = run.y[seen].astype(np.int64)
    if not len(codes):
        return None, codes, weight[:, seen]
    return block_where(run, seen), codes, weight[:, seen]


def block_where(run: Block, seen: Array) -> Block:
    """Some rows of a run, without their labels."""
    return replace(run if seen.all() else run.where(seen), y=None, weight=None)
