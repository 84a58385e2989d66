"""What the mutual-information filter knows of a target and of kinds of columns, whatever they come in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.special import digamma

from certifit.data.columns import Array
from certifit.runtime import core, n_threads
from certifit.statistics.cell_sums import counted_pairs, pairs_information

Kind = Literal["discrete", "continuous"]

MOST_FEW = 20  # whole numbers with more different values than this are continuous unless they are said to be discrete
_GLANCE = 1024


@dataclass(frozen=True)
class Target:
    """One target of all rows: codes 0 .. n_classes - 1 (int32), or numbers."""

    kind: Kind
    values: Array
    class_sizes: Array  # rows of every class; empty for numbers

    @staticmethod
    def of_classes(y: Array) -> Target:
        """Classes of any type that can be sorted."""
        _, codes, sizes = np.unique(y, return_inverse=True, return_counts=True)
        return Target("discrete", codes.reshape(-1).astype(np.int32), sizes)

    @staticmethod
    def of_numbers(y: Array) -> Target:
        """Finite numbers."""
        return Target("continuous", np.ascontiguousarray(y, dtype=np.float64), np.zeros(0, dtype=np.int64))


@dataclass(frozen=True)
class Estimates:
    """Mutual information of columns with one target, in nats."""

    target: Target
    n_neighbors: int

    def of_numbers(self, columns: Array) -> Array:
        """Of continuous columns: float64, one per row of the C-ordered matrix."""
        n_rows = columns.shape[1]
        scores: Array
        if self.target.kind == "continuous":
            self._refuse_few_rows(n_rows)
            scores = core.information_of_numbers(columns, self.target.values, self.n_neighbors, self._psi, n_threads())
            return scores
        n_classes, k = len(self.target.class_sizes), min(self.n_neighbors, n_rows - 1)
        scores = core.information_of_numbers_and_classes(
            columns, self.target.values, n_classes, k, self._psi, n_threads()
        )
        return scores

    def of_codes(self, columns: Array, n_levels: Sequence[int]) -> Array:
        """Of discrete columns: int32 codes 0 .. n_levels[j] - 1, one column per row of the C-ordered matrix."""
        if self.target.kind == "discrete":
            return np.array([pairs_information(*counted_pairs(codes, self.target.values)) for codes in columns])
        k = min(self.n_neighbors, columns.shape[1] - 1)
        scores: Array = core.information_of_classes_and_number(
            columns, np.array(n_levels, dtype=np.int64), self.target.values, k, self._psi, n_threads()
        )
        return scores

    @cached_property
    def _psi(self) -> Array:
        psi: Array = digamma(np.arange(1.0, len(self.target.values) + 1))
        return psi

    def _refuse_few_rows(self, n_rows: int) -> None:
        if self.n_neighbors >= n_rows:
            raise ValueError(
                f"A continuous column and a continuous target need more rows than n_neighbors={self.n_neighbors}. "
                f"Got n_samples = {n_rows}."
            )


@dataclass(frozen=True)
class Scores:
    """What the filter stores: one entry per feature."""

    scores: Array
    kinds: list[Kind]
    n_levels: list[int]  # 0 for a continuous column
    target_kind: Kind
    class_sizes: Array
    n_rows: int
    has_gaps: bool = False  # a discrete column with missing values

    def notes(self, names: Sequence[str]) -> list[str]:
        """Sentences on what was left out and what to distrust."""
        notes = []
        if (n_single := int((self.class_sizes == 1).sum())) and "continuous" in self.kinds:
            notes.append(
                f"{n_single:,} classes of the target have one row, which has no neighbour of its class: these rows are "
                "left out of the scores of continuous columns."
            )
        for name, n_levels in zip(names, self.n_levels, strict=True):
            if 2 * n_levels > self.n_rows > MOST_FEW:
                notes.append(
                    f"Column {name!r} has {n_levels:,} different values in {self.n_rows:,} rows, like an identifier: "
                    "its score says little."
                )
        return notes


def declared(discrete_features: Any, names: Sequence[str]) -> list[bool | None]:
    """For each column whether its numbers are levels; None: to be found out."""
    n_features = len(names)
    if isinstance(discrete_features, str) and discrete_features == "auto":
        return [None] * n_features
    if isinstance(discrete_features, bool | np.bool_):
        return [bool(discrete_features)] * n_features
    chosen = np.asarray(discrete_features)
    if isinstance(discrete_features, str) or chosen.ndim != 1:
        raise ValueError(
            "discrete_features must be 'auto', True, False, a mask, or a list of places or names of columns. "
            f"Got {discrete_features!r}."
        )
    if chosen.dtype == bool:
        if len(chosen) != n_features:
            raise ValueError(f"discrete_features has {len(chosen)} entries, but X has {n_features} columns.")
        return [bool(is_discrete) for is_discrete in chosen]
    return _of_list(chosen.tolist(), list(names))


def _of_list(chosen: list[Any], names: list[str]) -> list[bool | None]:
    marked: list[bool | None] = [False] * len(names)
    for column in chosen:
        if isinstance(column, str) and column in names:
            marked[names.index(column)] = True
        elif isinstance(column, int) and not isinstance(column, bool) and -len(names) <= column < len(names):
            marked[column] = True
        else:
            raise ValueError(f"discrete_features names the column {column!r}, which X does not have: {names[:20]}.")
    return marked


def few_whole(values: Array) -> Array | None:
    """The different values, if they are few whole numbers."""
    for part in (values[:_GLANCE], values):  # most columns show at once what they are
        if part.dtype.kind == "f" and not (np.rint(part) == part).all():
            return None
        different = np.unique(part)
        if len(different) > MOST_FEW:
            return None
    return different


def enough_rows(n_levels: int, n_rows: int) -> bool:
    """Whether that many values of numbers are levels rather than a short column of numbers."""
    return n_levels <= 2 or (n_levels <= MOST_FEW and 2 * n_levels <= n_rows)


def are_levels(values: Array) -> bool:
    """Whether numbers are read as levels when nothing is said."""
    different = few_whole(values)
    return different is not None and enough_rows(len(different), len(values))


def target_of(y: Array, asked: str) -> Target:
    """y without missing values, as classes or numbers; `asked` is "auto", "discrete" or "continuous"."""
    is_number = y.dtype.kind in "fiu"
    if asked == "continuous" and not is_number and y.dtype.kind != "b":
        raise ValueError(f"target='continuous' needs y to be numbers. Got dtype {y.dtype}.")
    is_discrete = (not is_number or are_levels(y)) if asked == "auto" else asked == "discrete"
    return Target.of_classes(y) if is_discrete else Target.of_numbers(y)
