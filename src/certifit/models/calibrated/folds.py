"""Calibrated classifiers on all training sets: scores of all copies from the folds of their estimator, and no proofs.

The rows of a training set are encoded and split as in a fit. The estimator shares its work among copies and candidates;
the maps of scores are Newton's method on all candidates and classes together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from certifit.data.cells import Listed, Splits
from certifit.data.columns import Array
from certifit.data.source import Memory, Source
from certifit.models.calibrated.encoded import EncodedRows, encoded_rows
from certifit.models.calibrated.sigmoid import joint_chances, platt_targets, sigmoid_maps
from certifit.models.folds import MOST_BYTES, Candidates, KnownScores, RowFolds, RowState
from certifit.statistics.cell_sums import Store

if TYPE_CHECKING:
    from certifit.models.calibrated.model import Calibrated


def calibrated_folds(
    model: Calibrated, source: Source, rounds: Sequence[Splits], grid: Candidates, shared: Store
) -> RowFolds | None:
    """Chances of all rows by the fits of all candidates; None where the estimator tells no scores of all copies."""
    assert grid.classes is not None
    n_classes, n_fits = len(grid.classes), len(grid.settings) * sum(splits.n_splits for splits in rounds)
    numbers, tables = None, []
    for splits in rounds:
        table: list[list[RowState | None]] = [[] for _ in grid.settings]
        for split in range(splits.n_splits):
            rows = encoded_rows(model.estimator, splits.trained(source, split))
            if 8.0 * len(rows.y) * n_classes * n_fits > MOST_BYTES:
                return None
            every = _chances_of_all(model, rows, grid, shared)
            if every is None:
                return None
            for of_candidate, chances in zip(table, every, strict=True):
                with np.errstate(divide="ignore"):
                    of_candidate.append(KnownScores(np.log(chances)))
            if numbers is None:
                block = (source if rows.encoder is None else source.through(rows.encoder)).gather(keeps_sparse=True)
                numbers = Memory.of(replace(block, X=np.arange(float(block.n_rows))[:, None]))
        tables.append(table)
    return None if numbers is None else RowFolds(numbers, rounds, tables, {}, is_coded=True, route="refits")


def _chances_of_all(model: Calibrated, rows: EncodedRows, grid: Candidates, shared: Store) -> list[Array] | None:
    """p(k | x) of all rows by every candidate, fitted to those of positive weight."""
    n_folds, kind = int(model.cv), rows.distinct.kind  # type: ignore[arg-type]
    try:
        fold_of_kind = model._folds(rows, n_folds)
    except ValueError:
        return None  # a refit says why
    is_trained = kind >= 0
    cells = np.where(is_trained, fold_of_kind[kind], n_folds)
    weight = np.where(is_trained, 1.0 if rows.weight is None else rows.weight, 1.0)
    source = Memory(rows.X, rows.y.astype(np.float64), weight, rows.names)
    copies = _scores_of_copies(model, source, cells, grid, shared)
    if copies is None or grid.classes is None:
        return None
    classes = [1] if len(grid.classes) == 2 else list(range(len(grid.classes)))
    places, mass = np.flatnonzero(is_trained), weight[is_trained]
    targets = np.stack([platt_targets(rows.y[places] == code, mass) for code in classes])
    unseen = [np.stack([scores[cells[places], places, code] for code in classes]) for scores in copies]
    slope, level = sigmoid_maps(np.concatenate(unseen), np.tile(targets, (len(copies), 1)), mass)
    maps = zip(slope.reshape(len(copies), -1), level.reshape(len(copies), -1), strict=True)
    return [joint_chances(expit(s[-1][:, classes] * a + b)) for s, (a, b) in zip(copies, maps, strict=True)]


def _scores_of_copies(
    model: Calibrated, source: Source, cells: Array, grid: Candidates, shared: Store
) -> list[Array] | None:
    """Of every candidate: copies x rows x classes, the copy without each fold, and the one of all that are trained."""
    n_folds = int(model.cv)  # type: ignore[arg-type]
    prefix = "estimator__"
    if not all(name.startswith(prefix) for one in grid.settings for name in one):
        return None
    train = np.hstack([1.0 - np.eye(n_folds + 1, n_folds), np.zeros((n_folds + 1, 1))])
    splits = Splits(Listed(n_folds + 1, cells.astype(np.int32)), train, np.eye(n_folds + 1))
    inner = [{name.removeprefix(prefix): value for name, value in one.items()} for one in grid.settings]
    folds = model.estimator.folds(source, [splits], Candidates(inner, grid.classes), shared)
    if not isinstance(folds, RowFolds) or folds.faults:
        return None
    copies = []
    for states in folds.states[0]:
        known = [state.scores for state in states if isinstance(state, KnownScores)]
        if len(known) <= n_folds:
            return None
        copies.append(np.stack(known))
    return copies
