"""Models of a classifier on every split where each training set has its own columns: a basis, the fills of gaps.

The maps are fitted to the training rows of a split, one statistic is summed over them, and all candidates are closed
forms of it: the cost does not grow with the candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from certifit.data.cells import ByLabel, Splits
from certifit.data.changed import FewerClasses
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.models.class_folds import MOST_BYTES, FoldModel, FoldModels, map_parameters, present, solved


def refitted_models(
    model: Any, source: Source, rounds: Sequence[Splits], candidates: Sequence[Mapping[str, Any]]
) -> FoldModels | None:
    """Models of all candidates and splits; None where they would be too large to be held together.

    model: a copy that holds classes_. source: y are codes 0 .. K-1.
    """
    n_splits = sum(splits.n_splits for splits in rounds)
    models: list[list[list[FoldModel | None]]] = []
    faults: dict[int, str] = {}
    for splits in rounds:
        trained = trained_classes(source, len(model.classes_), splits)
        columns: list[list[FoldModel | None]] = []
        for s in range(splits.n_splits):
            split = _Split(model, source, splits, s, present(trained[s], model.classes_, s))
            found = []
            for c, candidate in enumerate(candidates):
                fit = split.fitted(candidate)
                if isinstance(fit, str):
                    faults.setdefault(c, f"{fit} (on the training rows of split {s})")
                elif model.statistic_bytes(len(model.classes_), split.width) * n_splits * len(candidates) > MOST_BYTES:
                    return None
                found.append(None if isinstance(fit, str) else fit)
            columns.append(found)
        models.append([list(row) for row in zip(*columns, strict=True)])
    return FoldModels(source, rounds, models, faults, "refits")


class _Split:
    """The training rows of a split: what is fitted to them once serves all candidates that share it."""

    def __init__(self, model: Any, source: Source, splits: Splits, split: int, places: Array) -> None:
        self.model, self.places = model, places
        rows = source if len(places) == len(model.classes_) else FewerClasses(source, places)
        self.rows = splits.trained(rows, split)
        self.width = 0
        self._maps: dict[str, tuple[Any, Source]] = {}
        self._sums: dict[Any, Any] = {}

    def fitted(self, candidate: Mapping[str, Any]) -> FoldModel | str:
        """The model of a candidate, or why there is none."""
        own = clone(self.model).set_params(**candidate)
        own._check_parameters()
        key = repr(map_parameters(candidate))
        try:
            if key not in self._maps:
                maps = clone(own)
                self._maps[key] = maps, maps.fit_maps(self.rows)
            maps, mapped = self._maps[key]
            self.width = max(self.width, mapped.n_features)
            own.column_names_ = list(mapped.names)
            if (key, own.sums_key()) not in self._sums:
                self._sums[key, own.sums_key()] = own.statistic(mapped, ByLabel(len(self.places)))
        except ValueError as error:
            return str(error)
        fit = solved(own, self.model.classes_[self.places], self._sums[key, own.sums_key()], mapped)
        return fit if isinstance(fit, str) else FoldModel(fit, self.places, len(self.model.classes_), maps)


def trained_classes(source: Source, n_classes: int, splits: Splits) -> Array:
    """Weight of the training rows of every split and class: one pass."""
    held = source.narrow().reduce(partial(_class_weights, ByLabel(n_classes, splits.cells)))
    return np.asarray(splits.train @ held.reshape(splits.cells.n_cells, n_classes))


def _class_weights(cells: ByLabel, run: Block) -> Array:
    own = cells.of(run)
    weight = None if run.weight is None else run.weight[own >= 0]
    return np.bincount(own[own >= 0], weight, cells.n_cells)
