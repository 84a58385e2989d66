"""What a model offers for cross-validation without refits, and the words in which it is asked.

    estimator.folds(source, rounds, grid, shared) -> FoldStates, or None: every split is to be refitted

rounds: lists of splits, or EACH_ROW, which leaves out one row at a time. grid: candidates, or subsets of the columns.
shared: statistics that several models need, made once.

Folds whose errors are read off rows: classes, and means of any distribution.

Every row is scored once, by the states of the splits that it validates. A class that a training set lacks has
probability 0 under its state: rows of it that validate are wrong there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.mathematics.losses.scores import ScoreLoss
from certifit.models.least_squares.fold_path import FoldPath
from certifit.models.least_squares.influence import LeftOut, LeftOutFits
from certifit.models.least_squares.normal_equations import Weights
from certifit.runtime import core, n_threads, suited_map
from certifit.statistics.loss_sums import HeldOut, joined_by_split
from certifit.statistics.moments import row_sums

Candidate = Mapping[str, Any]  # values of parameters, by name
RowMetric = Callable[[Array, Array], Array]  # (y or codes, E y or log p(k | x)) -> a number per row
Validated = tuple[Array, Array, Array | None]  # y or codes, what was predicted, weight (None: all 1)


class EachRow:
    """Splits that validate one row each."""


EACH_ROW = EachRow()
Rounds = Sequence[Splits] | EachRow


@dataclass(frozen=True)
class Candidates:
    """Values of parameters to be tried. classes: those that the y of the rows are codes of."""

    settings: Sequence[Candidate]
    classes: Array | None = None


@dataclass(frozen=True)
class Subsets:
    """Any subsets of the columns, with the parameters that the model has."""

    classes: Array | None = None


Grid = Candidates | Subsets


class FoldStates:
    """Fits to all training sets of a grid. What a kind of model does not have is None: then splits are refitted.

    route: whether "statistics" by cell gave the fits, or every split had a pass of its own, "refits".
    """

    route: str = "statistics"
    n_summed: int = 0  # columns whose products are summed by cell

    def squares(self, with_rows: bool = False) -> FoldPath | None:
        """Squared errors from sums over rows; with_rows: residuals of the validation rows too, at one more pass."""
        return None

    def weights(self, candidate: int) -> list[Weights] | None:
        """The fit of a linear model to every training set."""
        return None

    def models(self, candidate: int) -> list[Any] | None:
        """A model for every training set, to predict with."""
        return None

    def left_out(self) -> LeftOut | None:
        """Errors of every row by the fit to all others."""
        return None

    def left_out_fits(self) -> LeftOutFits | None:
        """The fits that leave out one row, for rows in memory."""
        return None


def shared_work(candidates: Sequence[Candidate], shares: Sequence[str]) -> list[tuple[dict[str, Any], list[int]]]:
    """Candidates grouped by all parameters but those in `shares`: the parameters of each group, and its members."""
    groups: list[tuple[dict[str, Any], list[int]]] = []
    for place, candidate in enumerate(candidates):
        others = {name: value for name, value in candidate.items() if name not in shares}
        members = next((members for known, members in groups if known == others), None)
        groups.append((others, [place])) if members is None else members.append(place)
    return groups


def candidates_of(grid: Grid) -> Sequence[Candidate]:
    """The candidates of a grid; subsets of columns have one, the model as it is."""
    return grid.settings if isinstance(grid, Candidates) else [{}]


MOST_BYTES = 256 << 20  # of sums by fold and class, and of the states of all candidates
NO_ROWS = "A split has no rows of positive weight. Use fewer folds."
MappedRows = dict[int, Block]  # the same rows as the maps of states have mapped them, by the identity of the maps


class RowState(Protocol):
    """The fit to one training set. Can be sent to a worker."""

    def predicted(self, rows: Block, known: MappedRows | None = None) -> Array:
        """E y, or log p(k | x), of rows of the source of the folds. known: what other states made of the same rows."""


class ClassScores(Protocol):
    """What gives every class a score."""

    def mapped_scores(self, columns: Block) -> Array:
        """Scores of rows that are mapped already, rows x classes: log p(k | x), but for what all classes share."""


class RowMaps(Protocol):
    """What makes the columns of a model from rows."""

    def columns_of(self, block: Block) -> object:
        """The mapped columns."""


@dataclass(frozen=True)
class FoldWeights:
    """z = offset + b + x'w for rows that are mapped already. Can be sent to a worker."""

    coef: Array
    intercept: float

    def scores(self, columns: Block) -> Array:
        """z of every row."""
        z: Array = core.scores(columns.rows, self.coef, self.intercept, n_threads())
        return z if columns.offset is None else z + columns.offset

    def mapped_scores(self, columns: Block) -> Array:
        """Scores of two classes: 0 and z."""
        z = self.scores(columns)
        return np.column_stack([np.zeros(len(z)), z])


@dataclass(frozen=True)
class MeanState:
    """E y = mean(z)."""

    weights: FoldWeights
    loss: ScoreLoss

    def predicted(self, rows: Block, known: MappedRows | None = None) -> Array:
        """E y of rows that are mapped already."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.loss.mean(self.weights.scores(rows))


@dataclass(frozen=True)
class ClassState:
    """A model of classes of a training set, and the places of its classes among all.

    maps: what makes the columns of the model from rows; None where rows are mapped already.
    """

    model: ClassScores
    places: Array
    n_classes: int
    maps: RowMaps | None = None

    def predicted(self, rows: Block, known: MappedRows | None = None) -> Array:
        """log p(k | x), rows x all classes."""
        scores = self.model.mapped_scores(self._mapped(rows, {} if known is None else known))
        log_proba = log_posterior(scores)
        if scores.shape[1] == 2:  # the largest is the class that is meant, by a last bit
            meant = (scores[:, 1] > scores[:, 0]) & (log_proba[:, 0] == log_proba[:, 1])
            log_proba[meant, 1] = np.nextafter(log_proba[meant, 0], 0.0)
        if log_proba.shape[1] == self.n_classes:
            return log_proba
        every = np.full((len(log_proba), self.n_classes), -np.inf)
        every[:, self.places] = log_proba
        return every

    def _mapped(self, rows: Block, known: MappedRows) -> Block:
        if self.maps is None:
            return rows
        if id(self.maps) not in known:
            known[id(self.maps)] = replace(rows, X=self.maps.columns_of(rows))
        return known[id(self.maps)]


def log_posterior(scores: Array) -> Array:
    """scores_k - log sum_j exp(scores_j), row by row."""
    by_class = np.ascontiguousarray(scores.T)  # NumPy is slow along rows of few entries
    away = by_class - by_class.max(axis=0)
    away -= np.log(np.exp(away).sum(axis=0))
    return np.ascontiguousarray(away.T)


@dataclass(frozen=True)
class KnownScores:
    """Scores of every class for all rows by one fit. A row has one column: its number."""

    scores: Array

    def predicted(self, rows: Block, known: MappedRows | None = None) -> Array:
        """Scores as logarithms of chances, of which the order of the classes alone has a meaning."""
        return log_posterior(self.scores[np.asarray(rows.X)[:, 0].astype(np.int64)])


@dataclass(frozen=True)
class RowFolds(FoldStates):
    """States of all candidates on the training rows of all splits, and the source of the rows that they read.

    states: round, candidate, split; None where the training rows have no fit. is_coded: y are codes, -1 for no class.
    """

    source: Source
    rounds: Sequence[Splits]
    states: Sequence[Sequence[Sequence[RowState | None]]]
    faults: Mapping[int, str]
    is_coded: bool
    route: str = "statistics"

    def of_candidates(self, candidates: Sequence[int]) -> RowFolds:
        """The same with some of the candidates only."""
        faults = {place: self.faults[one] for place, one in enumerate(candidates) if one in self.faults}
        return replace(self, states=[[of_round[one] for one in candidates] for of_round in self.states], faults=faults)

    def row_means(self, metric: RowMetric, with_training: bool = False) -> tuple[Array | None, Array, Array]:
        """(training means or None, validation means, weight of the validation rows), candidates x splits.

        Training rows take as many passes over the scores of a row as there are splits.
        """
        tables = []
        for splits, states in zip(self.rounds, self.states, strict=True):
            sets = (splits.validation, splits.train) if with_training else (splits.validation,)
            sums = _RowSums(states, splits, sets, metric, self.is_coded, self.source.block_rows)
            tables.append(self.source.reduce(sums))
        table = np.concatenate(tables, axis=2)  # sets x (candidates + 1) x splits; the last row is the weight
        if not (table[:, -1] > 0).all():
            raise ValueError(NO_ROWS)
        means = table[:, :-1] / table[:, -1:]
        return means[1] if with_training else None, means[0], table[0, -1]

    def held_out(self, metrics: Mapping[str, RowMetric]) -> list[HeldOut]:
        """Numbers of every validation row by every candidate, one entry per split: one pass per round."""
        rows: list[HeldOut] = []
        for splits, states in zip(self.rounds, self.states, strict=True):
            rows += joined_by_split(list(self.source.map(_HeldOutRows(states, splits, metrics, self.is_coded))))
        return rows

    def validated(self, candidate: int) -> Iterator[Validated]:
        """(y or codes, what was predicted, weight) of the validation rows of every split, rounds one after another."""
        for splits, states in zip(self.rounds, self.states, strict=True):
            parts = list(self.source.map(_ValidatedRows(states[candidate], splits, self.is_coded)))
            for split in range(splits.n_splits):
                of_split = [rows for part in parts if (rows := part[split]) is not None]
                if not of_split:
                    raise ValueError(NO_ROWS)
                y, predicted, weights = zip(*of_split, strict=True)
                is_weighted = any(weight is not None for weight in weights)
                every = [
                    np.ones(len(targets)) if weight is None else weight
                    for targets, weight in zip(y, weights, strict=True)
                ]
                yield np.concatenate(y), np.concatenate(predicted), np.concatenate(every) if is_weighted else None


@dataclass(frozen=True)
class CountedRows:
    """Rows of a run that count in some set: their places in it, themselves, their y or codes, their weights by set."""

    seen: Array
    rows: Block
    y: Array
    weight: Array


def counted_rows(stretch: Block, times: Array, is_coded: bool) -> CountedRows | None:
    """times: sets x rows, how often each row counts. None where no row does."""
    if stretch.y is None:
        raise ValueError("The rows carry no labels." if is_coded else "The rows carry no target.")
    weight = times if stretch.weight is None else times * stretch.weight
    is_seen: Array = np.asarray((weight > 0).any(axis=0))
    if is_coded:
        is_seen &= stretch.y >= 0
    places = np.flatnonzero(is_seen)
    if not len(places):
        return None
    y = stretch.y[places].astype(np.int64) if is_coded else stretch.y[places]
    return CountedRows(places, block_where(stretch, is_seen), y, weight[:, places])


def block_where(stretch: Block, is_seen: Array) -> Block:
    """Some rows of a stretch, without their targets."""
    return replace(stretch if is_seen.all() else stretch.where_read(is_seen), y=None, weight=None)


@dataclass(frozen=True)
class _RowSums:
    """Sums of w metric by set, candidate and split, over the rows of a run. Can be sent to a worker.

    sets: tables of how often split s holds cell c, such as those of the validation rows.
    """

    states: Sequence[Sequence[RowState | None]]
    splits: Splits
    sets: tuple[Array, ...]
    metric: RowMetric
    is_coded: bool
    block_rows: int

    def __call__(self, stretch: Block) -> Array:
        cells = self.splits.cells.of(stretch)
        of_split = partial(self._of_split, stretch, cells)
        return np.stack(list(suited_map(stretch.n_rows)(of_split, range(self.splits.n_splits))), axis=-1)

    def _of_split(self, stretch: Block, cells: Array, split: int) -> Array:
        sums = np.zeros((len(self.sets), len(self.states) + 1))
        times = np.array([np.append(table[split], 0.0)[cells] for table in self.sets])  # NO_CELL is the last
        counted = counted_rows(stretch, times, self.is_coded)
        if counted is None:
            return sums
        sums[:, -1] = self._summed(counted, None, stretch)
        known: MappedRows = {}
        for c, states in enumerate(self.states):
            state = states[split]
            if state is None:
                sums[:, c] = np.nan
                continue
            with np.errstate(over="ignore", invalid="ignore"):
                values = self.metric(counted.y, state.predicted(counted.rows, known))
            sums[:, c] = self._summed(counted, values, stretch)
        return sums

    def _summed(self, counted: CountedRows, values: Array | None, stretch: Block) -> Array:
        """Sums of w values by set, of w for None; those of numbers in the tree of all sums, as their totals are."""
        if self.is_coded:
            return np.asarray(counted.weight.sum(axis=1) if values is None else counted.weight @ values)
        summands = counted.weight if values is None else counted.weight * values
        return row_sums(summands, counted.seen, stretch.n_rows, self.block_rows)


@dataclass(frozen=True)
class _HeldOutRows:
    """Numbers of the validation rows of a run, one entry per split. Can be sent to a worker."""

    states: Sequence[Sequence[RowState | None]]
    splits: Splits
    metrics: Mapping[str, RowMetric]
    is_coded: bool

    def __call__(self, stretch: Block) -> list[HeldOut]:
        return list(suited_map(stretch.n_rows)(partial(self._of_split, stretch), range(self.splits.n_splits)))

    def _of_split(self, stretch: Block, split: int) -> HeldOut:
        counted = counted_rows(stretch, self.splits.validated(stretch, split)[None, :], self.is_coded)
        n_rows = 0 if counted is None else len(counted.seen)
        values = {name: np.full((len(self.states), n_rows), np.nan) for name in self.metrics}
        if counted is None:
            return HeldOut(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0), values)
        known: MappedRows = {}
        for c, states in enumerate(self.states):
            state = states[split]
            if state is None:
                continue
            predicted = state.predicted(counted.rows, known)
            for name, metric in self.metrics.items():
                with np.errstate(over="ignore", invalid="ignore"):
                    values[name][c] = metric(counted.y, predicted)
        return HeldOut(stretch.first_row + counted.seen, counted.weight[0], counted.y, values)


@dataclass(frozen=True)
class _ValidatedRows:
    """The validation rows of a run, one entry per split. Can be sent to a worker."""

    states: Sequence[RowState | None]
    splits: Splits
    is_coded: bool

    def __call__(self, stretch: Block) -> list[Validated | None]:
        return [self._of_split(stretch, split, state) for split, state in enumerate(self.states)]

    def _of_split(self, stretch: Block, split: int, state: RowState | None) -> Validated | None:
        if state is None:
            raise ValueError("A candidate without a fit has no predictions.")
        times = self.splits.validated(stretch, split)
        counted = counted_rows(stretch, times[None, :], self.is_coded)
        if counted is None:
            return None
        is_plain = stretch.weight is None and (times <= 1).all()
        return counted.y, state.predicted(counted.rows), None if is_plain else counted.weight[0]
