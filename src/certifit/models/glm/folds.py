"""Folds of a model of scores: fits to the training rows of all splits at once, for all candidates.

Candidates that differ in alpha alone share a path. Each fit ends where the decrement of the objective is below 1e-18 of
it, so its scores are those of a refit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.maps import Polynomial
from certifit.models.discriminant.folds import map_parameters
from certifit.models.folds import (
    Candidate,
    Candidates,
    FoldStates,
    FoldWeights,
    Grid,
    RowFolds,
    candidates_of,
    shared_work,
)
from certifit.models.glm.fold_solver import FoldLosses, common_start, fits_in_memory, fold_fits, path_of_each
from certifit.models.glm.l1_solver import is_wide
from certifit.models.glm.softmax_task import GlmOrSoftmaxTask
from certifit.models.glm.task import GlmTask
from certifit.models.least_squares.normal_equations import Weights
from certifit.statistics.moments import ColumnMoments

if TYPE_CHECKING:
    from certifit.models.glm.scores import GlmModel

N_ALPHAS = 50
FEWER_ALPHAS = 15  # of large tables, whose errors hardly change from one of fifty to the next
MANY_CELLS = 10_000_000  # rows times columns: from here on an alpha takes seconds
LEAST_SHARE = 1e-4  # of the alpha that gives no weights, where the penalty has an L1 part


def score_folds(
    model: GlmModel, source: Source, rounds: Sequence[Splits], grid: Grid
) -> RowFolds | ScoreSubsets | None:
    """Fits of a grid; None where each is to be fitted by itself. Without rounds: whether there would be any.

    Refitted are: other maps for single candidates, gaps whose fills each training set has of its own, a penalised
    polynomial, a solver, a start or a stop of the user's choice, and too large Hessians, but those of L1 penalties.
    """
    is_mapped_anew = any(map_parameters(candidate) for candidate in candidates_of(grid))
    probe = model_like(model, {})
    probe.target_name_ = source.target
    mapped = None if is_mapped_anew else fold_columns(probe, source)
    if mapped is None:
        return None
    if not rounds:
        return RowFolds(mapped, [], [], {}, model.is_of_classes)
    if isinstance(grid, Candidates):
        return _candidate_folds(probe, source, mapped, rounds, grid.settings)
    return None if probe.basis is not None else _subset_folds(probe, source, mapped, rounds)


def _candidate_folds(
    probe: GlmModel, source: Source, mapped: Source, rounds: Sequence[Splits], candidates: Sequence[Candidate]
) -> RowFolds | None:
    states: list[list[Any]] = [[[] for _ in candidates] for _ in rounds]
    for others, places in shared_work(candidates, probe.shares):
        tuned = model_like(probe, others)
        task = _task(tuned, mapped)
        alphas = [alpha_of(tuned, candidates[place]) for place in places]
        by_sets = _is_sparse_path(task, alphas)
        if not _is_path(tuned, task) or not all(by_sets or fits_in_memory(task.loss, task.size, s) for s in rounds):
            return None
        start = None
        for of_round, splits in zip(states, rounds, strict=True):
            folds = FoldLosses(task, tuned.training_splits(source, splits))
            table = np.array([1.0 / folds.train_weight if a is None else np.full(folds.n_splits, a) for a in alphas])
            if by_sets:
                path = path_of_each(folds, table, int(tuned.max_iter))
            else:
                start = common_start(task, table, int(tuned.max_iter)) if start is None else start
                path = fold_fits(folds, table, start, int(tuned.max_iter))
            for place, fits in zip(places, path, strict=True):
                of_round[place] = [probe.fold_state(_weights(fit)) for fit in fits]
    return RowFolds(mapped, rounds, states, {}, probe.is_of_classes)


@dataclass(frozen=True)
class SubsetLosses:
    """What fits of subsets of columns need: the losses of the training sets of a round, and their penalties."""

    folds: FoldLosses
    l2: Array  # splits x (columns + 1)


class ScoreSubsets(FoldStates):
    """Losses of all training sets, to fit subsets of the columns. groups: columns made of each column of a table."""

    def __init__(self, model: GlmModel, splits: Sequence[Splits], rounds: list[SubsetLosses]) -> None:
        self._model, self._splits, self.rounds = model, splits, rounds
        self.task: GlmTask = rounds[0].folds.task
        self.groups: dict[str, list[str]] | None = None if model.encoder_ is None else dict(model.encoder_.groups_)

    def states_at(self, subsets: Sequence[Sequence[Array]]) -> RowFolds:
        """States of subsets, each given by the points of every round: splits x (columns + 1)."""
        states = []
        for r, splits in enumerate(self.rounds):
            fits = [[splits.folds.task.to_state(point) for point in points[r]] for points in subsets]
            states.append([[self._model.fold_state(_weights(fit)) for fit in row] for row in fits])
        return RowFolds(self.task.source, self._splits, states, {}, self._model.is_of_classes)


def _subset_folds(probe: GlmModel, source: Source, mapped: Source, rounds: Sequence[Splits]) -> ScoreSubsets | None:
    task, alpha = _task(probe, mapped), alpha_of(probe, {})
    is_smooth = task.at_strength(1.0 if alpha is None else alpha).is_smooth
    if not (is_smooth and _is_path(probe, task)) or not all(fits_in_memory(task.loss, task.size, s) for s in rounds):
        return None
    losses = []
    for splits in rounds:
        folds = FoldLosses(task, probe.training_splits(source, splits))
        alphas = 1.0 / folds.train_weight if alpha is None else np.full(folds.n_splits, alpha)
        losses.append(SubsetLosses(folds, folds.l2(alphas)))
    return ScoreSubsets(probe, rounds, losses)


def fold_columns(model: GlmModel, source: Source) -> Source | None:
    """The columns that all training sets share; None where each has its own. The maps of the model are fitted."""
    model._check_parameters()
    mapped = model.fit_maps(source)
    has_gaps = model.encoder_ is not None and bool(model.encoder_.opened()[1])
    is_scaled = isinstance(model.basis, Polynomial)  # its columns depend on the range of the rows
    return None if has_gaps or is_scaled else mapped


def default_alphas(model: GlmModel, source: Source) -> list[dict[str, Any]]:
    """Fifty values of alpha worth trying, of a ridge penalty on many cells fifteen.

    Ridge: from a millionth of the least curvature of a single weight to a hundred times the greatest, both at no
    weights and from the first rows. With an L1 part: from the least alpha that gives no weights down to 1e-4 of it.
    """
    probe = clone(model)
    probe._check_parameters()
    probe.target_name_ = source.target
    mapped = probe.fit_maps(source)
    task = _task(probe, mapped)
    if float(probe.l1_ratio) > 0:
        return sparse_alphas(task)
    first = mapped.first_block()
    y = np.asarray(first.y)
    offset = np.zeros(len(y)) if first.offset is None else first.offset
    curvature = float(task.loss.curvature(y, np.full(len(y), task.start()[-1]) + offset).mean())
    return ridge_alphas(first, curvature, bool(probe.standardize), task.targets.n_rows)


def ridge_alphas(first: Block, curvature: float, standardize: bool, n_rows: int) -> list[dict[str, Any]]:
    """From a millionth of the least curvature of a weight to a hundred times the greatest.

    first: mapped rows, of n_rows that have a weight.
    """
    spread = ColumnMoments.of(first).variance * curvature
    spread = spread[np.isfinite(spread) & (spread > 0)]
    spread = np.full_like(spread, curvature) if standardize else spread
    low, high = (spread.min(), spread.max()) if len(spread) else (1.0, 1.0)
    n_alphas = FEWER_ALPHAS if n_rows * first.X.shape[1] > MANY_CELLS else N_ALPHAS
    return [{"alpha": float(alpha)} for alpha in np.geomspace(low * 1e-6, high * 1e2, n_alphas)]


def sparse_alphas(task: GlmOrSoftmaxTask) -> list[dict[str, Any]]:
    """From the least alpha at which all penalised weights are 0 down to LEAST_SHARE of it."""
    by_column = np.abs(task.evaluate(task.start()).gradient).reshape(-1, task.n_scores)[:-1].max(axis=1)
    slopes = by_column / task.scaling.scale
    factors = task.strengths.factors * task.spreads
    largest = float(np.divide(slopes, factors, out=np.zeros_like(slopes), where=factors > 0).max(initial=0.0))
    largest = largest / task.strengths.l1_ratio if largest > 0 else 1.0
    return [{"alpha": float(alpha)} for alpha in largest * np.geomspace(1.0, LEAST_SHARE, N_ALPHAS)]


def _task(model: GlmModel, mapped: Source) -> GlmTask:
    task = model._score_task(mapped, 0.0)
    model._check_target(task)
    return task


def _is_path(model: GlmModel, task: GlmTask) -> bool:
    """Whether the fits are minima of a convex objective, as the model's own solver finds them."""
    return task.loss.is_convex and model.start is None and is_auto(model)


def _is_sparse_path(task: GlmTask, alphas: Sequence[float | None]) -> bool:
    """Whether columns are many and every fit leaves most of them out."""
    return all(is_wide(task.at_strength(1.0 if alpha is None else alpha)) for alpha in alphas)


def is_auto(model: GlmModel) -> bool:
    """Whether the model is fitted by its own solver, to the end."""
    return isinstance(model.solver, str) and model.solver == "auto" and float(model.step_tol) == 0


def alpha_of(model: GlmModel, candidate: Candidate) -> float | None:
    """The strength of the penalty of a candidate; None is 1 / sum of weights."""
    tuned = model_like(model, candidate)
    tuned._check_parameters()
    return None if tuned.alpha is None else float(tuned.alpha)


def model_like(model: GlmModel, parameters: Candidate) -> GlmModel:
    """A copy with other parameters and the same fitted maps."""
    tuned: GlmModel = clone(model).set_params(**parameters)
    for name in ("encoder_", "basis_", "target_name_", "classes_"):
        if hasattr(model, name):
            setattr(tuned, name, getattr(model, name))
    return tuned


def _weights(state: Weights) -> FoldWeights:
    return FoldWeights(state.coef, float(state.intercept))
