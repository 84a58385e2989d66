"""Folds of classifiers with a closed form: sums by class, of cells that all training sets are made of.

Where each training set has its own columns (a basis, the fills of gaps), the maps are fitted to the training rows of
every split and one statistic is summed over them: a pass per split, whatever the number of candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.base import clone

from certifit.data.cells import ByLabel, Splits
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.data.source_wrappers import FewerClasses
from certifit.models.folds import MOST_BYTES, Candidate, ClassState, RowFolds

if TYPE_CHECKING:
    from certifit.models.discriminant.closed_form import GenerativeClassifier

    Model: TypeAlias = GenerativeClassifier[Any, Any, Any]

States = list[list[ClassState | None]]  # candidate, split


def class_folds(
    model: Model, source: Source, rounds: Sequence[Splits], candidates: Sequence[Candidate]
) -> RowFolds | None:
    """States of all candidates and splits; None where they are too large to be held together.

    model: a copy that holds classes_. source: y are codes 0 .. K-1.
    """
    mapped = None if any(map_parameters(candidate) for candidate in candidates) else model.fold_columns(source)
    of_rows = None if mapped is None or not rounds else model.row_folds(mapped, rounds, candidates)
    if of_rows is not None:
        return of_rows
    faults: dict[int, str] = {}
    if mapped is not None and _fits_in_memory(model, mapped, rounds, len(candidates)):
        states = [_from_cells(model, mapped, splits, candidates, faults) for splits in rounds]
        return RowFolds(mapped, rounds, states, faults, is_coded=True)
    refitted: list[States] = []
    n_models = len(candidates) * sum(splits.n_splits for splits in rounds)
    for splits in rounds:
        fold_states = _from_training_rows(model, source, splits, candidates, faults, n_models)
        if fold_states is None:
            return None
        refitted.append(fold_states)
    return RowFolds(source, rounds, refitted, faults, is_coded=True, route="refits")


def _fits_in_memory(model: Model, mapped: Source, rounds: Sequence[Splits], n_candidates: int) -> bool:
    for splits in rounds:
        n_cells = splits.cells.n_cells
        n_models = n_candidates * splits.n_splits * len(rounds)
        n_bytes = model.statistic_bytes(n_cells * len(model.classes_), mapped.n_features)
        if n_bytes * (1 + n_models // n_cells) > MOST_BYTES:
            return False
    return True


def map_parameters(candidate: Candidate) -> dict[str, Any]:
    """Those parameters of a candidate that change what becomes of rows before they are summed."""
    return {name: value for name, value in candidate.items() if name.partition("__")[0] in ("basis", "encoder")}


def _from_cells(
    model: Model,
    source: Source,
    splits: Splits,
    candidates: Sequence[Candidate],
    faults: dict[int, str],
) -> States:
    """A state of every candidate (outer) and split (inner)."""
    sums = _CellSums(source, splits, model.classes_)
    states = []
    for c, candidate in enumerate(candidates):
        tuned = copy(model).set_params(**candidate)
        tuned._check_parameters()
        row: list[ClassState | None] = []
        for s in range(splits.n_splits):
            places, statistic = sums.of(tuned, s)
            fault = _solved(fit := copy(tuned), model.classes_[places], statistic, source)
            if fault:
                faults.setdefault(c, f"{fault} (on the training rows of split {s})")
            row.append(None if fault else ClassState(fit, places, len(model.classes_)))
        states.append(row)
    return states


class _CellSums:
    """Statistics of the training rows of every split, made once for all candidates that share them."""

    def __init__(self, source: Source, splits: Splits, classes: Array) -> None:
        self.source, self.splits, self.classes = source, splits, classes
        self._parts: dict[Hashable, Callable[[Array], Any]] = {}
        self._known: dict[Hashable, tuple[Array, Any]] = {}

    def of(self, model: Model, split: int) -> tuple[Array, Any]:
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


def _solved(model: Model, classes: Array, statistic: Any, source: Source) -> str:
    """Give the model the closed form of a statistic; why there is none, or one that leaves float64."""
    model.classes_ = classes
    try:
        model.solve(statistic, source)
    except ValueError as error:
        return str(error)
    return ""


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


def _from_training_rows(
    model: Model,
    source: Source,
    splits: Splits,
    candidates: Sequence[Candidate],
    faults: dict[int, str],
    n_models: int,
) -> States | None:
    """The same where every training set has its own columns; None where all n_models take too much memory."""
    trained = trained_classes(source, len(model.classes_), splits)
    by_split: list[list[ClassState | None]] = []
    for s in range(splits.n_splits):
        training = _TrainingRows(model, source, splits, s, present(trained[s], model.classes_, s))
        states: list[ClassState | None] = []
        for c, candidate in enumerate(candidates):
            if model.statistic_bytes(len(model.classes_), training.width(candidate)) * n_models > MOST_BYTES:
                return None
            fit = training.fitted(candidate)
            if isinstance(fit, str):
                faults.setdefault(c, f"{fit} (on the training rows of split {s})")
            states.append(None if isinstance(fit, str) else fit)
        by_split.append(states)
    return [list(row) for row in zip(*by_split, strict=True)]


class _TrainingRows:
    """The training rows of a split: what is fitted to them once serves all candidates that share it."""

    def __init__(self, model: Model, source: Source, splits: Splits, split: int, places: Array) -> None:
        self.model, self.places = model, places
        rows = source if len(places) == len(model.classes_) else FewerClasses(source, places)
        self.rows = splits.trained(rows, split)
        self._maps: dict[str, tuple[Model, Source]] = {}
        self._sums: dict[Hashable, Any] = {}

    def width(self, candidate: Mapping[str, Any]) -> int:
        """Columns of the mapped rows, before any sum of so many is made; 0 where the maps have no fit."""
        try:
            return self._mapped(self._tuned(candidate), candidate)[1].n_features
        except ValueError:
            return 0

    def _tuned(self, candidate: Mapping[str, Any]) -> Model:
        tuned: Model = clone(self.model).set_params(**candidate)
        tuned._check_parameters()
        return tuned

    def _mapped(self, tuned: Model, candidate: Mapping[str, Any]) -> tuple[Model, Source]:
        """The model that holds the maps, and the mapped rows."""
        key = repr(map_parameters(candidate))
        if key not in self._maps:
            maps = clone(tuned)
            self._maps[key] = maps, maps.fit_maps(self.rows)
        return self._maps[key]

    def fitted(self, candidate: Mapping[str, Any]) -> ClassState | str:
        """The state of a candidate, or why there is none."""
        tuned = self._tuned(candidate)
        key = repr(map_parameters(candidate))
        try:
            maps, mapped = self._mapped(tuned, candidate)
            tuned.column_names_ = list(mapped.names)
            if (key, tuned.sums_key()) not in self._sums:
                self._sums[key, tuned.sums_key()] = tuned.statistic(mapped, ByLabel(len(self.places)))
        except ValueError as error:
            return str(error)
        fault = _solved(tuned, self.model.classes_[self.places], self._sums[key, tuned.sums_key()], mapped)
        return fault or ClassState(tuned, self.places, len(self.model.classes_), maps)


def trained_classes(source: Source, n_classes: int, splits: Splits) -> Array:
    """Weight of the training rows of every split and class: one pass."""
    held = source.narrow().reduce(partial(_class_weights, ByLabel(n_classes, splits.cells)))
    return np.asarray(splits.train @ held.reshape(splits.cells.n_cells, n_classes))


def _class_weights(cells: ByLabel, stretch: Block) -> Array:
    cell_of_row = cells.of(stretch)
    weight = None if stretch.weight is None else stretch.weight[cell_of_row >= 0]
    return np.bincount(cell_of_row[cell_of_row >= 0], weight, cells.n_cells)
