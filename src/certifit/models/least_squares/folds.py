"""Folds of linear models of a number: squared errors, weights and models from sums, none of them refitted.

Candidates that differ only in what their system shares (alpha) take one pass over the rows together.

Fold errors and leave-one-out for fewer rows than columns: every fit from one matrix of products of rows.

With z_i = sqrt(w_i)(x_i - mean of the training rows) and K_ij = z_i'z_j, the weights are sum_i a_i z_i,
(K + lambda I) a = sqrt(w)(y - mean). K = V diag(s) V' serves all penalties of a training set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.linalg

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.models.folds import FoldStates
from certifit.models.least_squares.dual import RowKernel, has_fewer_rows
from certifit.models.least_squares.fold_path import (
    FoldEquations,
    FoldPath,
    fold_path,
    fold_states,
    held_out_of,
    safe_unit,
)
from certifit.models.least_squares.influence import SAFE_RATIO, LeftOut, LeftOutFits, leave_one_out, left_out_fits
from certifit.models.least_squares.normal_equations import Weights
from certifit.runtime import one_blas_thread
from certifit.statistics.gram import refuse_no_weight
from certifit.statistics.loss_sums import HeldOut, about_mean, row_spread
from certifit.statistics.residual import UNIT

SHARP = 1e-6  # of the residuals of validation rows: a bound, mostly a thousand times what is off


@one_blas_thread
def dual_fold_path(
    source: Source,
    rounds: Sequence[Splits],
    alphas: Sequence[float | None],
    fit_intercept: bool,
    standardize: bool = False,
    with_rows: bool = False,
) -> FoldPath | None:
    """The errors of every alpha on every split; None where rows are too nearly dependent for float64.

    standardize: every training set has spreads, and so products of rows, of its own.
    """
    rows = _Products.of(source, fit_intercept, standardize)
    n_splits = sum(splits.n_splits for splits in rounds)
    train, validation = np.zeros((len(alphas), n_splits)), np.zeros((len(alphas), n_splits))
    totals, weights = np.zeros((2, n_splits)), np.zeros((2, n_splits))
    null = np.zeros(n_splits)
    unit, in_units = safe_unit(rows.y_unit)
    held_out: list[HeldOut] = []
    at = 0
    for splits in rounds:
        cells = splits.cells.of(rows.kernel.all_rows)[rows.seen]
        for s in range(splits.n_splits):
            sides = [np.append(times, 0.0)[cells] * rows.weight for times in (splits.train[s], splits.validation[s])]
            for side, name in zip(sides, ("training", "validation"), strict=True):
                refuse_no_weight(float(side.sum()), f"The {name} rows of split {at + 1}")
            residuals = rows.trained_on(sides[0]).residuals(sides, alphas)
            if residuals is None:
                return None
            train[:, at], validation[:, at] = (residuals**2 @ side * unit for side in sides)
            totals[:, at] = [row_spread(rows.y, side) * unit for side in sides]
            weights[:, at] = [side.sum() / rows.weight_scale for side in sides]
            null[at] = float(sides[1] @ rows.about_mean(sides[0]) ** 2) * unit
            if with_rows:
                scales = (rows.y_scale, rows.weight_scale)
                held_out.append(held_out_of(np.flatnonzero(rows.seen), rows.y, sides[1], residuals, scales))
            at += 1
    sides_of_all = (totals[0], totals[1], weights[0], weights[1])
    return FoldPath(train, validation, *sides_of_all, null, in_units, held_out=held_out)


@one_blas_thread
def dual_leave_one_out(source: Source, alphas: Sequence[float | None], fit_intercept: bool) -> LeftOut | None:
    """Exact leave-one-out for rows of equal weight; None for others, or where rows are too nearly dependent.

    Over an orthonormal basis V of the directions the intercept leaves free, the error of row i by the fit to the
    others is a_i / sum_j V_ij^2 / (s_j + lambda), lambda that of n - 1 rows: nothing cancels as lambda goes to 0.
    """
    rows = _Products.of(source, fit_intercept)
    n, w = len(rows.y), rows.weight
    if not (w == w[0]).all():
        return None
    free = scipy.linalg.null_space(np.ones((1, n))) if fit_intercept else np.eye(n)
    values, vectors = scipy.linalg.eigh(free.T @ rows.products @ free)
    basis, values = free @ vectors, np.maximum(values, 0.0)
    right = basis.T @ rows.about_mean(w)
    squares, fourths = np.zeros(len(alphas)), np.zeros(len(alphas))
    for k, alpha in enumerate(alphas):
        penalty = rows.penalty(alpha, (n - 1) * w[0]) / w[0]
        if not values[-1] + penalty <= SAFE_RATIO * (values[0] + penalty):
            return None
        c = values + penalty
        errors = (basis @ (right / c)) / ((basis**2) @ (1.0 / c))
        squares[k], fourths[k] = errors**2 @ w, errors**4 @ w
    scale = rows.weight_scale
    weight = np.full(len(alphas), w.sum() / scale)
    total = row_spread(rows.y, w) / scale
    return LeftOut(squares / scale, fourths / scale, weight, total, n, (), 0, rows.y_scale)


@dataclass(frozen=True)
class _Products:
    """K of rows centred at the mean of all, unweighted; targets and weights scaled."""

    kernel: RowKernel
    products: Array
    y: Array
    weight: Array
    seen: Array

    @staticmethod
    def of(source: Source, fit_intercept: bool, standardize: bool = False) -> _Products:
        kernel = RowKernel(source, fit_intercept, standardize)
        products = kernel.products()
        y = kernel.y * kernel.scaling.y_scale
        every = kernel.all_rows
        seen = np.ones(every.n_rows, dtype=bool) if every.weight is None else every.weight > 0
        return _Products(kernel, products, y, kernel.weight, seen)

    def trained_on(self, side: Array) -> _Products:
        """With columns standardised by the rows of these weights, where columns are standardised."""
        if not self.kernel.standardize:
            return self
        kernel = self.kernel.standardised_by(side)
        return replace(self, kernel=kernel, products=kernel.products())

    @property
    def weight_scale(self) -> float:
        return self.kernel.scaling.weight_scale

    @property
    def y_scale(self) -> float:
        return self.kernel.scaling.y_scale

    @property
    def y_unit(self) -> float:
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            return float(np.float64(1.0) / (np.float64(self.y_scale) ** 2 * self.weight_scale))

    def penalty(self, alpha: float | None, total: float) -> float:
        """lambda = alpha (sum of weights) in scaled units."""
        strength = self.weight_scale if alpha is None else alpha * total
        with np.errstate(over="ignore", under="ignore"):
            unit = 1.0 if self.kernel.standardize else self.kernel.scaling.scale[0]
            return float(min(strength * unit**2, 1e200))

    def about_mean(self, side: Array) -> Array:
        """The target of all rows less its mean over those of these weights; as it is without an intercept."""
        return about_mean(self.y, side) if self.kernel.fit_intercept else self.y

    def residuals(self, sides: Sequence[Array], alphas: Sequence[float | None]) -> Array | None:
        """Residuals of all rows, alphas x rows, of the fits to the rows with the first weights.

        None where they are not known to SHARP. sides: weights of the rows for training and for validation.
        """
        side, train = sides[0], sides[0] > 0
        total, share = float(side.sum()), side[train] / side.sum()
        columns, lengths = self.products[:, train], np.sqrt(np.maximum(np.diagonal(self.products), 0.0))
        roots, away = np.sqrt(side[train]), 0.0
        if self.kernel.fit_intercept:
            across = columns @ share
            columns = columns - across[:, None] - across[train] + share @ across[train]
            away = total * float(share @ across[train])  # what the mean of the training rows has lost of their squares
        values, vectors = scipy.linalg.eigh(roots[:, None] * columns[train] * roots)
        target = self.about_mean(side)
        along = vectors.T @ (roots * target[train])
        first = int(self.kernel.fit_intercept)  # centring leaves the first eigenvalue zero, and no score along it
        beside = vectors[:, :first] @ along[:first]
        values, vectors = np.maximum(values[first:], 0.0), vectors[:, first:]
        strengths = np.array([self.penalty(alpha, total) for alpha in alphas])
        c = values[:, None] + strengths
        if len(c) and not (c[-1] + away <= SAFE_RATIO * c[0]).all():
            return None
        duals = vectors @ (along[first:, None] / c)
        scores = columns @ (roots[:, None] * duals)
        lost = (8 + np.sqrt(self.kernel.source.n_features) / 8) * UNIT * ((roots * lengths[train]) @ np.abs(duals))
        left = target[:, None] - scores
        off, whole = np.sqrt(sides[1] @ np.square(lengths)) * lost, np.sqrt(sides[1] @ np.square(left))
        if not (off <= SHARP * whole).all():
            return None
        left[train] = (strengths * duals + beside[:, None]) / roots[:, None]  # lambda a: nothing cancels
        return np.ascontiguousarray(left.T)


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
