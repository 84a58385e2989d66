"""Errors of lasso and elastic net on every split, every path warm-started: from sums of cells, or from columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.models.lasso.columns import ColumnLasso
from certifit.models.lasso.solver import MOST_SWEEPS, ColumnCore, inner_tolerance, stacked
from certifit.models.lasso.task import CommonUnits, Strengths
from certifit.models.least_squares.fold_path import (
    Fits,
    FoldEquations,
    FoldPath,
    about_training_mean,
    exact_squares,
    held_out_of,
    held_out_rows,
    in_units,
    safe_unit,
    spread,
    squares,
    telling_spreads,
)
from certifit.runtime import core, n_threads, one_blas_thread
from certifit.statistics.gram import Gram, Scaling, refuse_no_weight
from certifit.statistics.loss_sums import HeldOut, row_spread


@one_blas_thread
def gram_fold_path(
    folds: FoldEquations,
    strengths: Strengths,
    standardize: bool,
    alphas: Sequence[float],
    stop: tuple[float, int],
    with_rows: bool = False,
) -> FoldPath:
    """Errors of every alpha on every split, all training sets solved at once from their sums.

    stop: tolerance and passes over the columns. with_rows: residuals of the validation rows too, from one more pass.
    """
    pairs = [_centred(folds, split) for split in range(folds.n_splits)]
    systems = [CommonUnits.of(train, folds.fit_intercept, standardize) for train, _ in pairs]
    order = np.argsort(-np.asarray(alphas), kind="stable")
    weights = _gram_weights(systems, strengths, np.asarray(alphas, dtype=np.float64)[order], _stop(*stop))
    table = _Table(len(alphas), folds.n_splits)
    fits: list[Fits] = []
    for k, (pair, system) in enumerate(zip(pairs, systems, strict=True)):
        unit, table.in_units = safe_unit(pair[0].y_unit)
        vectors = _vectors(pair[0], weights[k] * system.shares, folds.fit_intercept)
        table.errors[:, order, k] = _errors(folds, k, pair, vectors) * unit
        told = telling_spreads(folds, k, pair)
        for side, gram in enumerate(told):
            table.totals[side, k] = spread(gram) * unit
            table.weights[side, k] = gram.sum_weight / gram.scaling.weight_scale
        table.null[k] = about_training_mean(*told, folds.fit_intercept) * unit
        if with_rows:
            fits.append(_fits_of(folds, k, pair[0].scaling, vectors[:, np.argsort(order)]))
    return table.path(held_out_rows(folds, fits) if with_rows else [])


@one_blas_thread
def column_fold_path(
    task: ColumnLasso,
    rounds: Sequence[Splits],
    alphas: Sequence[float],
    stop: tuple[float, int],
    with_rows: bool = False,
) -> FoldPath:
    """Errors of every alpha on every split. A training set is all rows, with weight 0 for those outside."""
    order = np.argsort(-np.asarray(alphas), kind="stable")
    descending = np.asarray(alphas, dtype=np.float64)[order]
    table = _Table(len(alphas), sum(splits.n_splits for splits in rounds))
    every = task.all_rows
    held_out: list[HeldOut] = []
    counts = np.ones(every.n_rows, dtype=bool) if every.weight is None else every.weight > 0
    s = task.scaling
    with np.errstate(over="ignore", divide="ignore"):
        unit, table.in_units = safe_unit(float(np.float64(1.0) / (np.float64(s.y_scale) ** 2 * s.weight_scale)))
    sets = [(splits, k) for splits in rounds for k in range(splits.n_splits)]
    for at, (splits, k) in enumerate(sets):
        cells = splits.cells.of(every)[counts]
        sides = [np.append(times, 0.0)[cells] * task.weight for times in (splits.train[k], splits.validation[k])]
        for side, name in zip(sides, ("training", "validation"), strict=True):
            refuse_no_weight(float(side.sum()), f"The {name} rows of split {at + 1}")
        residuals = _residuals(task, sides[0], descending, _stop(*stop))
        for side, weight in enumerate(sides):
            table.errors[side, order, at] = residuals**2 @ weight * unit
            table.totals[side, at] = row_spread(task.y, weight) * unit
            table.weights[side, at] = weight.sum() / s.weight_scale
        centre = float(sides[0] @ task.y) / sides[0].sum() if task.fit_intercept else 0.0
        table.null[at] = float(sides[1] @ (task.y - centre) ** 2) * unit
        if with_rows:
            scales = (s.y_scale, s.weight_scale)
            held_out.append(held_out_of(np.flatnonzero(counts), task.y, sides[1], residuals[np.argsort(order)], scales))
    return table.path(held_out)


def _centred(folds: FoldEquations, split: int) -> tuple[Gram, Gram]:
    """Statistics of a split, about the means of its training rows where their squares would lose digits."""
    train, validation = folds.pair(split)
    if not (folds.fit_intercept and train.is_far()):
        return train, validation
    train, validation = folds.pair(split, twofold=True)
    means = train.means()
    return train.about(means), validation.about(means)


def total_units(folds: FoldEquations, standardize: bool) -> CommonUnits:
    """Products of the columns over all rows, from the sums of cells that the folds need too."""
    total = folds.total()
    if folds.fit_intercept and total.is_far():
        total = folds.total(twofold=True)
        total = total.about(total.means())
    return CommonUnits.of(total, folds.fit_intercept, standardize)


def _stop(tol: float, max_iter: int) -> tuple[float, int]:
    return inner_tolerance(tol), min(max_iter, MOST_SWEEPS)


def _gram_weights(
    systems: Sequence[CommonUnits], strengths: Strengths, alphas: Array, stop: tuple[float, int]
) -> list[Array]:
    """Weights of every training set along alphas. All at once where their penalties are the same in common units."""
    arguments = [system.path_arguments(strengths, alphas) for system in systems]
    penalties = [np.concatenate([penalty[0], [penalty[1]], *penalty[2:]]) for penalty in arguments]
    if all(np.array_equal(penalty, penalties[0]) for penalty in penalties):
        groups = [(list(systems), arguments[0])]
    else:
        groups = [([system], penalty) for system, penalty in zip(systems, arguments, strict=True)]
    paths = [core.gram_lasso_path(*stacked(some), *penalty, *stop, n_threads())[0] for some, penalty in groups]
    return [np.asarray(weights) for group in paths for weights in group]


class _Table:
    """Errors of (training, validation) rows, and what scores are made of."""

    def __init__(self, n_alphas: int, n_splits: int) -> None:
        self.errors = np.zeros((2, n_alphas, n_splits))
        self.totals, self.weights = np.zeros((2, n_splits)), np.zeros((2, n_splits))
        self.null = np.zeros(n_splits)
        self.in_units = True

    def path(self, held_out: Sequence[HeldOut] = ()) -> FoldPath:
        train, validation = self.errors
        (train_total, validation_total), (train_weight, validation_weight) = self.totals, self.weights
        totals = (train_total, validation_total, train_weight, validation_weight)
        return FoldPath(train, validation, *totals, self.null, self.in_units, held_out=held_out)


def _errors(folds: FoldEquations, split: int, pair: tuple[Gram, Gram], vectors: Array) -> Array:
    """Squares on training and validation rows of every alpha, scaled; in twofold precision where float64 fails."""
    results = [squares(gram, vectors) for gram in pair]
    errors, is_known = np.array([values for values, _ in results]), np.logical_and(*(known for _, known in results))
    if not is_known.all():
        exact = folds.pair(split, twofold=True)
        for a in np.flatnonzero(~is_known).tolist():
            v = np.ascontiguousarray(vectors[:, a])
            errors[:, a] = exact_squares(exact, (v, np.zeros_like(v)), pair[0].scaling)
    return errors


def _fits_of(folds: FoldEquations, split: int, scaling: Scaling, vectors: Array) -> Fits:
    """Fits of a split for rows in the user's units, from v = (-w, -b, 1) of every alpha."""
    fits = [in_units(scaling, -v[:-2], -v[-2] if folds.fit_intercept else None) for v in vectors.T]
    coef, intercepts = (np.array(column) for column in zip(*fits, strict=True))
    return folds.opened(split, coef), intercepts


def _vectors(train: Gram, weights: Array, fit_intercept: bool) -> Array:
    """v = (-w, -b, 1) of every alpha, for scaled columns, b the intercept of shifted ones."""
    d = train.n_columns
    level = np.zeros(len(weights))
    if fit_intercept:
        level = (train.sums[d, d + 1] - weights @ train.sums[:d, d]) / train.sum_weight
    return np.column_stack([-weights, -level, np.ones(len(weights))]).T


def _residuals(task: ColumnLasso, weight: Array, alphas: Array, stop: tuple[float, int]) -> Array:
    """y - b - Xw of all rows for every alpha, fitted to rows of these weights.

    Columns are standardised over all rows; the l1 penalty is meant for those standardised over the rows of the fit.
    """
    factors = task.spreads_of(weight) / task.units if task.standardize else None
    path = ColumnCore(task, np.ascontiguousarray(weight), factors).raw_path(alphas, *stop)
    residuals = np.zeros((len(alphas), len(task.y)))
    for a, (begin, end) in enumerate(zip(path["offsets"], path["offsets"][1:], strict=False)):
        columns = task.columns[:, path["columns"][begin:end]]
        residuals[a] = task.y - path["intercepts"][a] - columns @ path["weights"][begin:end]
    return residuals
