"""Folds of linear models of a number: squared errors, weights and models from sums, none of them refitted.

Candidates that differ only in what their system shares (alpha) take one pass over the rows together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from certifit.data.source import Source
from certifit.models.folds import FoldStates
from certifit.models.least_squares.dual import has_fewer_rows
from certifit.models.least_squares.dual_fold_path import dual_leave_one_out
from certifit.models.least_squares.fold_path import FoldEquations, FoldPath, fold_path, fold_states
from certifit.models.least_squares.influence import LeftOut, LeftOutFits, leave_one_out, left_out_fits
from certifit.models.least_squares.normal_equations import Weights

if TYPE_CHECKING:
    from certifit.models.linear import LinearRegressor

    Linear: TypeAlias = LinearRegressor[Any, Any]


@dataclass(frozen=True)
class NumberPart:
    """Candidates of one system.

    places: of the candidates in the grid. path(with_rows): their squared errors. equations: where the fits are linear
    in the target, and so have weights from sums alone.
    """

    model: Linear
    places: list[int]
    alphas: Sequence[float | None]
    path: Callable[[bool], FoldPath | None]
    equations: FoldEquations | None = None


def least_squares_part(
    model: Linear, places: list[int], alphas: Sequence[float | None], folds: FoldEquations, is_scaled: bool
) -> NumberPart:
    """Ridge paths from sums. is_scaled: columns have the range of their own rows, in which a smallest norm is meant."""
    return NumberPart(model, places, alphas, partial(_path, folds, alphas, is_scaled), folds)


def _path(folds: FoldEquations, alphas: Sequence[float | None], is_scaled: bool, with_rows: bool) -> FoldPath | None:
    path = fold_path(folds, alphas, with_rows)
    return None if is_scaled and path.is_redundant else path


class NumberFolds(FoldStates):
    """Fits of all candidates to the training rows of all splits."""

    def __init__(self, source: Source, parts: Sequence[NumberPart]) -> None:
        self.source, self.parts = source, parts
        first = parts[0].equations
        self.n_summed = 0 if first is None else first.source.n_features

    def squares(self, with_rows: bool = False) -> FoldPath | None:
        """Squared errors of every candidate on every split."""
        paths = []
        for part in self.parts:
            path = part.path(with_rows)
            if path is None:
                return None
            paths.append(path)
        return FoldPath.joined(paths, [place for part in self.parts for place in part.places])

    def weights(self, candidate: int) -> list[Weights] | None:
        """The fit of a candidate to every training set."""
        part = self._part(candidate)
        alpha = part.alphas[part.places.index(candidate)]
        return None if part.equations is None else fold_states(part.equations, alpha)

    def models(self, candidate: int) -> list[Linear] | None:
        """A model for every training set, gaps filled by its means."""
        part, states = self._part(candidate), self.weights(candidate)
        if part.equations is None or states is None:
            return None
        models = []
        for split, state in enumerate(states):
            model = copy(part.model)
            model.coef_, model.intercept_ = state.coef, state.intercept
            model.column_names_, model.n_features_in_ = list(part.equations.names), self.source.n_features
            if model.encoder_ is not None:
                model.encoder_ = model.encoder_.refilled(part.equations.fills(split).tolist())
            if self.source.named:
                model.feature_names_in_ = np.asarray(self.source.names, dtype=object)
            models.append(model)
        return models

    def _part(self, candidate: int) -> NumberPart:
        return next(part for part in self.parts if candidate in part.places)


@dataclass(frozen=True)
class RowPart:
    """Candidates of one system whose rows are left out one at a time."""

    source: Source
    places: list[int]
    alphas: Sequence[float | None]
    fit_intercept: bool


class RowsLeftOut(FoldStates):
    """Fits of least squares and ridge that leave out one row each."""

    def __init__(self, parts: Sequence[RowPart]) -> None:
        self.parts = parts

    def left_out(self) -> LeftOut | None:
        """Errors of every row; None where rows are too nearly dependent."""
        parts = []
        for part in self.parts:
            leave = dual_leave_one_out if has_fewer_rows(part.source) else leave_one_out
            errors = leave(part.source, part.alphas, part.fit_intercept)
            if errors is None:
                return None
            parts.append(errors)
        return LeftOut.joined(parts, [place for part in self.parts for place in part.places])

    def left_out_fits(self) -> LeftOutFits | None:
        """The fits of the first candidate."""
        part = self.parts[0]
        if has_fewer_rows(part.source):
            return None
        return left_out_fits(part.source, part.alphas[0], part.fit_intercept)
