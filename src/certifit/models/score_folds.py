"""Fits of a model of scores to the training rows of all splits at once, for all candidates.

Candidates that differ in alpha alone share a path. Each fit ends where the decrement of the objective is below 1e-18 of
it, so its scores are those of a refit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.maps import Polynomial
from certifit.models.class_folds import map_parameters
from certifit.runtime import core, n_threads
from certifit.solvers.score_folds import common_start, fold_fits
from certifit.statistics.moments import ColumnMoments
from certifit.tasks.generalised import GeneralisedLinear
from certifit.tasks.normal_equations import Weights
from certifit.tasks.score_folds import FoldLosses, fits_in_memory

N_ALPHAS = 50
LEAST_SHARE = 1e-4  # of the alpha that gives no weights, where the penalty has an L1 part


@dataclass(frozen=True)
class FoldWeights:
    """The fit to one training set, for rows that are mapped already. Can be sent to a worker."""

    coef: Array
    intercept: float

    def scores(self, columns: Block) -> Array:
        """z = offset + b + x'w."""
        z: Array = core.scores(columns.rows, self.coef, self.intercept, n_threads())
        return z if columns.offset is None else z + columns.offset

    def mapped_scores(self, columns: Block) -> Array:
        """Scores of two classes: 0 and z."""
        z = self.scores(columns)
        return np.column_stack([np.zeros(len(z)), z])


@dataclass(frozen=True)
class ScoreFits:
    """Fits of every round, candidate and split; source: the mapped rows that they read."""

    source: Source
    fits: list[list[list[FoldWeights]]]


def score_fits(
    model: Any,
    source: Source,
    rounds: Sequence[Splits],
    candidates: Sequence[Mapping[str, Any]],
    training: Callable[[Any, Source, Splits], Splits] | None = None,
) -> ScoreFits | None:
    """Fits of all candidates and splits; None where each is to be fitted by itself.

    training(model, source, splits): the splits with the weights that the model gives to rows.
    Refitted are: other maps for single candidates, gaps whose fills each training set has of its own, a penalised
    polynomial, an L1 penalty, bounds, a solver or a stop of the user's choice, and Hessians that are too large.
    """
    if any(map_parameters(candidate) for candidate in candidates):
        return None
    probe = _like(model, {})
    probe.target_name_ = source.target
    mapped = fold_columns(probe, source)
    if mapped is None:
        return None
    fits: list[list[list[Any]]] = [[[] for _ in candidates] for _ in rounds]
    for own, places in by_path(probe, candidates):
        task = _task(own, mapped)
        alphas = [_alpha(own, candidates[i]) for i in places]
        if not _is_path(own, task, alphas) or not all(fits_in_memory(task.loss, task.size, s) for s in rounds):
            return None
        start = None
        for held, splits in zip(fits, rounds, strict=True):
            folds = FoldLosses(task, splits if training is None else training(own, source, splits))
            table = np.array([1.0 / folds.train_weight if a is None else np.full(folds.n_splits, a) for a in alphas])
            start = common_start(task, table, int(own.max_iter)) if start is None else start
            for i, states in zip(places, fold_fits(folds, table, start, int(own.max_iter)), strict=True):
                held[i] = [_weights(state) for state in states]
    return ScoreFits(mapped, fits)


@dataclass(frozen=True)
class SubsetFolds:
    """What fits of subsets of columns need: the losses of the training sets of a round, and their penalties."""

    folds: FoldLosses
    l2: Array  # splits x (columns + 1)


def subset_folds(
    model: Any,
    source: Source,
    rounds: Sequence[Splits],
    training: Callable[[Any, Source, Splits], Splits] | None = None,
) -> tuple[Any, list[SubsetFolds]] | None:
    """The model with its maps fitted, and every round's losses; None where subsets are to be fitted by themselves."""
    probe = _like(model, {})
    probe.target_name_ = source.target
    mapped = None if probe.basis is not None else fold_columns(probe, source)
    if mapped is None:
        return None
    task, alpha = _task(probe, mapped), _alpha(probe, {})
    if not _is_path(probe, task, [alpha]) or not all(fits_in_memory(task.loss, task.size, s) for s in rounds):
        return None
    found = []
    for splits in rounds:
        folds = FoldLosses(task, splits if training is None else training(probe, source, splits))
        alphas = 1.0 / folds.train_weight if alpha is None else np.full(folds.n_splits, alpha)
        found.append(SubsetFolds(folds, folds.l2(alphas)))
    return probe, found


def by_path(model: Any, candidates: Sequence[Mapping[str, Any]]) -> list[tuple[Any, list[int]]]:
    """Candidates grouped by all but alpha: a model for each group, and its members."""
    groups: list[tuple[dict[str, Any], list[int]]] = []
    for i, candidate in enumerate(candidates):
        rest = {name: value for name, value in candidate.items() if name != "alpha"}
        found = next((own for known, own in groups if known == rest), None)
        groups.append((rest, [i])) if found is None else found.append(i)
    return [(_like(model, rest), own) for rest, own in groups]


def fold_columns(model: Any, source: Source) -> Source | None:
    """The columns that all training sets share; None where each has its own. The maps of the model are fitted."""
    model._check_parameters()
    mapped: Source = model.fit_maps(source)
    has_gaps = model.encoder_ is not None and bool(model.encoder_.opened()[1])
    is_scaled = isinstance(model.basis, Polynomial)  # its columns depend on the range of the rows
    return None if has_gaps or is_scaled else mapped


def default_alphas(model: Any, source: Source) -> list[dict[str, Any]]:
    """Fifty values of alpha worth trying.

    Ridge: from a millionth of the least curvature of a single weight to a hundred times the greatest, both at no
    weights and from the first rows. With an L1 part: from the least alpha that gives no weights down to 1e-4 of it.
    """
    probe = clone(model)
    probe._check_parameters()
    probe.target_name_ = source.target
    mapped = probe.fit_maps(source)
    task = _task(probe, mapped)
    if float(probe.l1_ratio) > 0:
        return [{"alpha": float(alpha)} for alpha in _largest(task) * np.geomspace(1.0, LEAST_SHARE, N_ALPHAS)]
    first = mapped.first_block()
    y = np.asarray(first.y)
    offset = np.zeros(len(y)) if first.offset is None else first.offset
    curvature = float(task.loss.curvature(y, np.full(len(y), task.start()[-1]) + offset).mean())
    return ridge_alphas(first, curvature, bool(probe.standardize))


def ridge_alphas(first: Block, curvature: float, standardize: bool) -> list[dict[str, Any]]:
    """From a millionth of the least curvature of a weight to a hundred times the greatest; first: mapped rows."""
    spread = ColumnMoments.of(first).variance * curvature
    spread = spread[np.isfinite(spread) & (spread > 0)]
    spread = np.full_like(spread, curvature) if standardize else spread
    low, high = (spread.min(), spread.max()) if len(spread) else (1.0, 1.0)
    return [{"alpha": float(alpha)} for alpha in np.geomspace(low * 1e-6, high * 1e2, N_ALPHAS)]


def _largest(task: GeneralisedLinear) -> float:
    """The least alpha at which all penalised weights are 0."""
    slopes = np.abs(task.evaluate(task.start()).gradient[:-1]) / task.scaling.scale
    factors = task.strengths.factors * task.spreads
    largest = float(np.divide(slopes, factors, out=np.zeros_like(slopes), where=factors > 0).max(initial=0.0))
    return largest / task.strengths.l1_ratio if largest > 0 else 1.0


def _task(model: Any, mapped: Source) -> GeneralisedLinear:
    task: GeneralisedLinear = model._score_task(mapped, 0.0)
    model._check_target(task)
    return task


def _is_path(model: Any, task: GeneralisedLinear, alphas: Sequence[float | None]) -> bool:
    """Whether the fits are minima of a smooth objective, as the model's own solver finds them."""
    is_smooth = task.is_smooth and (float(model.l1_ratio) == 0 or all(alpha == 0 for alpha in alphas))
    return is_smooth and isinstance(model.solver, str) and model.solver == "auto" and float(model.step_tol) == 0


def _alpha(model: Any, candidate: Mapping[str, Any]) -> float | None:
    own = _like(model, candidate)
    own._check_parameters()
    return None if own.alpha is None else float(own.alpha)


def _like(model: Any, parameters: Mapping[str, Any]) -> Any:
    """A copy with other parameters and the same fitted maps."""
    own = clone(model).set_params(**parameters)
    for name in ("encoder_", "basis_", "target_name_", "classes_"):
        if hasattr(model, name):
            setattr(own, name, getattr(model, name))
    return own


def _weights(state: Weights) -> FoldWeights:
    return FoldWeights(state.coef, float(state.intercept))
