"""Weights of classes: a factor on the weights of the rows of each class."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import partial
from typing import Literal

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block, Source, tree_sum
from certifit.models.classifier import ScoredClassifier, codes_of
from certifit.models.parameters import check_number
from certifit.models.task import StateT, TaskT

ClassWeight = Mapping[Hashable, float] | Literal["balanced"] | None


class WeightedClasses(ScoredClassifier[TaskT, StateT]):
    """A classifier with class_weight: a dict {label: weight}, "balanced" or None; its factors are class_weight_."""

    class_weight: ClassWeight
    class_weight_: Array | None

    def _begin(self, source: Source) -> None:
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class only, {self.classes_.tolist()}. A classifier needs at least two.")
        self.class_weight_ = self._class_weights(source)

    def _learn(self, source: Source) -> None:
        super()._learn(source)
        if self.class_weight_ is not None:  # the rows' own weights are what a later look at the data compares
            self.data_ = self.data_ | {"sum_weight": class_sums(source, len(self.classes_)).sum()}

    def _weighted(self, source: Source) -> Source:
        """The rows with their weights times those of their classes."""
        factors = self.class_weight_
        return source if factors is None else source.weighted(partial(_of_class, factors=factors))

    def _class_weights(self, source: Source) -> Array | None:
        """A factor a class; None where all are 1."""
        return None if self.class_weight is None else self._factors_of(class_sums(source, len(self.classes_)))

    def _factors_of(self, sums: Array) -> Array:
        """A factor a class; sums: weights of the classes."""
        weights = self.class_weight
        if weights == "balanced":
            return np.asarray(sums.sum() / (len(sums) * sums))
        if not isinstance(weights, Mapping):
            raise ValueError(f"class_weight must be a dict {{label: weight}}, 'balanced' or None. Got {weights!r}.")
        labels = self.classes_.tolist()
        for label, factor in weights.items():
            if label not in labels:
                raise ValueError(f"class_weight names {label!r}, and the classes are {labels}.")
            check_number(f"class_weight[{label!r}]", factor)
        return np.array([float(weights.get(label, 1.0)) for label in labels])


def class_sums(source: Source, n_classes: int) -> Array:
    """Sum of the weights of every class, in the tree of all sums."""
    return np.asarray(source.reduce(partial(_sums_of_run, n_classes=n_classes, block_rows=source.block_rows)))


def _sums_of_run(run: Block, n_classes: int, block_rows: int) -> Array:
    codes = codes_of(run)
    weight = np.ones(len(codes)) if run.weight is None else run.weight
    starts = range(0, max(len(codes), 1), block_rows)
    parts = ((codes[begin : begin + block_rows], weight[begin : begin + block_rows]) for begin in starts)
    return tree_sum(np.bincount(code[code >= 0], own[code >= 0], n_classes) for code, own in parts)


def _of_class(run: Block, factors: Array) -> Array:
    """The factor of every row; 0 for a row without a class."""
    codes = codes_of(run)
    return np.where(codes >= 0, factors[codes], 0.0)
