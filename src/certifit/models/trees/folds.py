"""Cross-validation with one fit per training set.

A smaller depth, fewer leaves or more pruning is a part of a tree, and fewer rounds are the beginning of a vote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, overload

from sklearn.base import clone

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.models.folds import (
    EachRow,
    Grid,
    MappedRows,
    Rounds,
    RowFolds,
    RowMaps,
    RowState,
    Subsets,
    candidates_of,
    shared_work,
)

Table = Sequence[Sequence[RowState | None]]  # candidates x splits


class Staged(Protocol):
    """A model whose parameters named in `shares` choose a part of one fit."""

    shares: tuple[str, ...]
    classes_: Array
    _edges: list[Array] | None

    def fold_states(self, source: Source, stages: Sequence[Staged]) -> list[RowState]:
        """What each stage, a copy with other values of `shares`, is after one fit to these rows."""

    def shared_edges(self, source: Source) -> list[Array] | None:
        """Edges of bins that all training sets share, made of all rows; None: each makes its own."""

    def _check_parameters(self) -> None: ...


@dataclass(frozen=True)
class StagedState:
    """Predictions of a part of a fit: a function of mapped columns. Can be sent to a worker."""

    predict: Callable[[Block], Array]
    maps: RowMaps

    def predicted(self, rows: Block, known: MappedRows | None = None) -> Array:
        """E y, or log p(k | x), of rows of the source of the folds."""
        mapped = {} if known is None else known
        if id(self.maps) not in mapped:
            mapped[id(self.maps)] = replace(rows, X=self.maps.columns_of(rows), y=None, weight=None)
        return self.predict(mapped[id(self.maps)])


class FittedWhenRead(Sequence[Table]):
    """States by round; a round is fitted when it is first read."""

    def __init__(self, rounds: Sequence[Splits], fit: Callable[[Splits], Table]) -> None:
        self.rounds, self.fit = rounds, fit
        self.tables: dict[int, Table] = {}

    def __len__(self) -> int:
        return len(self.rounds)

    @overload
    def __getitem__(self, place: int) -> Table: ...
    @overload
    def __getitem__(self, place: slice) -> list[Table]: ...
    def __getitem__(self, place: int | slice) -> Table | list[Table]:
        if isinstance(place, slice):
            return [self[k] for k in range(*place.indices(len(self)))]
        if place >= len(self):
            raise IndexError(place)
        if place not in self.tables:
            self.tables[place] = self.fit(self.rounds[place])
        return self.tables[place]

    def __iter__(self) -> Iterator[Table]:
        return (self[k] for k in range(len(self)))


def staged_folds(model: Staged, source: Source, rounds: Rounds, grid: Grid) -> RowFolds | None:
    """One fit per training set and per values of the other parameters; None where rows or columns are left out."""
    if isinstance(rounds, EachRow) or isinstance(grid, Subsets):
        return None
    candidates = candidates_of(grid)
    known: dict[int, list[Array] | None] = {}  # edges of bins, by group of candidates

    def fitted(splits: Splits) -> Table:
        table: list[list[RowState | None]] = [[None] * splits.n_splits for _ in candidates]
        for group, (others, places) in enumerate(shared_work(candidates, model.shares)):
            for split in range(splits.n_splits):
                whole = clone(model).set_params(**others)
                if grid.classes is not None:
                    whole.classes_ = grid.classes
                if group not in known:
                    known[group] = whole.shared_edges(source)
                whole._edges = known[group]
                stages = [clone(whole).set_params(**candidates[place]) for place in places]
                for stage in stages:
                    stage._check_parameters()
                for place, state in zip(places, whole.fold_states(splits.trained(source, split), stages), strict=True):
                    table[place][split] = state
        return table

    states = FittedWhenRead(rounds, fitted)
    return RowFolds(source, rounds, states, {}, is_coded=grid.classes is not None, route="refits")
