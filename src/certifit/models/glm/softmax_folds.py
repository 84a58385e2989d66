"""Folds of logistic regression with rows that can be held: of more than two classes, and of more columns than rows.

With z = (x - m) / s, m and s of the training rows, and Z = U S V' their singular values, every optimum of an L2 penalty
is V a: a penalised weight outside the span of the rows only costs. So each training set is rotated once,

    minimise over a, b:   sum_i w_i [log sum_k e^(t_ik) - t_iy] + alpha/2 |a|^2,   t_i = b + a'V'z_i,   sum_i w_i = 1

and the fits of all alphas, each from the one before, have as many columns as there are rows at most. Two classes are
softmax of twice the penalty: their weights are w/2 and -w/2.

An L1 penalty, factors and bounds are those of the columns themselves: there each fit of more than two classes begins at
the one before, on the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Memory, Source
from certifit.minimise.steps import Steps
from certifit.models.discriminant.folds import map_parameters, present
from certifit.models.folds import Candidates, ClassState, Grid, RowFolds, shared_work
from certifit.models.gathered import GatheredRows, ScoreTable, column_spreads
from certifit.models.glm.folds import alpha_of, fold_columns, is_auto, model_like
from certifit.models.glm.l1_solver import ProxNewton
from certifit.models.glm.newton import descend, patience
from certifit.models.glm.softmax_solver import SMALL, RotatedPath
from certifit.runtime import one_blas_thread

if TYPE_CHECKING:
    from certifit.models.glm.logistic import LogisticRegression

# Terms of the scores of all fits: beyond, refits of fewer candidates are quicker. The exponentials of a row cost as
# much as some columns.
MOST_TERMS, COLUMNS_OF_EXPONENTIALS = 500_000_000, 16


@one_blas_thread
def softmax_folds(probe: LogisticRegression, source: Source, rounds: Sequence[Splits], grid: Grid) -> RowFolds | None:
    """Fits of all candidates to the training rows of all splits; None where each is to be fitted by itself.

    probe: a copy that holds classes_. Without rounds: whether there would be any.
    """
    if not isinstance(grid, Candidates) or any(map_parameters(candidate) for candidate in grid.settings):
        return None
    mapped = None if source.view.has_offset or not _is_shared(probe) else fold_columns(probe, source)
    if mapped is None:
        return None
    if not rounds:
        return RowFolds(mapped, [], [], {}, is_coded=True)
    rows = GatheredRows.of(mapped)
    if rows is None or _n_terms(rows, probe, rounds, len(grid.settings)) > MOST_TERMS:
        return None
    states = [_round_states(probe, rows, splits, grid) for splits in rounds]
    whole = [of_round for of_round in states if of_round is not None]
    return RowFolds(rows.numbered(), rounds, whole, {}, is_coded=True) if len(whole) == len(states) else None


def _is_plain(model: LogisticRegression) -> bool:
    """Whether the penalty is one of squares alike for all columns."""
    return model.penalty_factors is None and model.bounds is None and float(model.l1_ratio) == 0


def _is_shared(model: LogisticRegression) -> bool:
    """Whether fits are minima as our own solver finds them; two classes have other folds with other penalties."""
    return model.start is None and is_auto(model) and (_is_plain(model) or len(model.classes_) > 2)


def _n_terms(rows: GatheredRows, model: LogisticRegression, rounds: Sequence[Splits], n_candidates: int) -> int:
    width = min(rows.X.shape) + COLUMNS_OF_EXPONENTIALS
    n_fits = n_candidates * sum(splits.n_splits for splits in rounds)
    return int(len(rows.codes) * width * len(model.classes_) * n_fits)


def _round_states(
    probe: LogisticRegression, rows: GatheredRows, splits: Splits, grid: Candidates
) -> list[list[ClassState | None]] | None:
    """A state of every candidate and split; None where a candidate has no penalty, or numbers leave float64."""
    n_classes = len(probe.classes_)
    states: list[list[ClassState | None]] = [[None] * splits.n_splits for _ in grid.settings]
    for others, members in shared_work(grid.settings, probe.shares):
        model = model_like(probe, others)
        if not _is_shared(model):
            return None
        alphas = [alpha_of(model, grid.settings[place]) for place in members]
        for split, times in enumerate(rows.training_weights(splits)):
            sums = np.bincount(rows.codes.clip(0), times, n_classes)
            places = present(sums, probe.classes_, split)
            if model.class_weight is not None and len(places) < n_classes:
                return None
            weight = times if model.class_weight is None else times * model._factors_of(sums)[rows.codes.clip(0)]
            strengths = np.array([1.0 / weight.sum() if alpha is None else alpha for alpha in alphas])
            tables = _fits(model, rows, weight, places, strengths)
            if tables is None:
                return None
            for place, scores in zip(members, tables, strict=True):
                states[place][split] = ClassState(ScoreTable(scores), places, n_classes)
    return states


def _fits(
    model: LogisticRegression, rows: GatheredRows, weight: Array, places: Array, alphas: Array
) -> list[Array] | None:
    """Scores of all rows by the fits to one training set, in the order of alphas."""
    trained = weight > 0
    if not (alphas > 0).all() or not np.isfinite(alphas).all():
        return None
    if not _is_plain(model):
        return _fits_of_columns(model, rows, weight, places, alphas)
    shares = weight[trained] / weight[trained].sum()
    codes = np.searchsorted(places, rows.codes[trained])
    with np.errstate(over="ignore", invalid="ignore"):
        Z = _standardised(model, rows.X, trained, shares)
    if not np.isfinite(Z).all():
        return None
    _, sizes, V = np.linalg.svd(Z[trained], full_matrices=False)
    Z = Z @ V[sizes > np.finfo(np.float64).eps * sizes.max(initial=0.0)].T
    if model.fit_intercept:
        Z = np.column_stack([Z, np.ones(len(Z))])
    path = RotatedPath(Z[trained], codes, shares, len(places), bool(model.fit_intercept))
    order = np.argsort(-alphas, kind="stable")
    times = 2.0 if len(model.classes_) == 2 else 1.0
    points = dict(zip(order.tolist(), path.fits(times * alphas[order], int(model.max_iter)), strict=True))
    tables = [Z @ points[at] for at in range(len(alphas))]
    return tables if all(np.isfinite(table).all() for table in tables) else None


def _fits_of_columns(
    model: LogisticRegression, rows: GatheredRows, weight: Array, places: Array, alphas: Array
) -> list[Array] | None:
    """The same with any penalty; None where Hessians would be large, or classes are missing."""
    trained = weight > 0
    size = len(places) * (rows.X.shape[1] + 1)
    if size > SMALL or len(places) < len(model.classes_):
        return None
    order = np.argsort(-alphas, kind="stable")
    source = Memory(rows.X[trained], rows.codes[trained].astype(np.float64), weight[trained], rows.names)
    task = model.class_task(source, float(alphas[order[0]]))
    kinked, point, tables = ProxNewton(task.start(), patience(task)), task.start(), {}
    for place in order.tolist():
        at = task.at_strength(float(alphas[place]))
        if at.is_smooth:
            point = descend(at, point, int(model.max_iter), Steps())
        else:
            kinked.descend(at, int(model.max_iter), Steps())
            point = kinked.point
        state = at.to_state(point)
        tables[place] = rows.X @ state.coef.T + state.intercept
    in_order = [tables[place] for place in range(len(alphas))]
    return in_order if all(np.isfinite(table).all() for table in in_order) else None


def _standardised(model: LogisticRegression, X: Array, trained: Array, shares: Array) -> Array:
    """Columns about their means over the training rows, in units in which every weight is penalised alike."""
    Z = X - shares @ X[trained] if model.fit_intercept else X
    if not model.standardize:
        return Z
    spreads = column_spreads(X[trained], shares, bool(model.fit_intercept))
    return np.asarray(Z / np.where(spreads > 0, spreads, 1.0))
