"""Lasso and elastic net by coordinate descent and direct solves on the active columns, in the compiled core."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Array
from certifit.runtime import core, n_threads, one_blas_thread
from certifit.solvers.direct import Run
from certifit.solvers.fold_path import FoldPath, safe_unit, spread, squares
from certifit.statistics.gram import Gram
from certifit.tasks.elastic import CommonUnits, ElasticLeastSquares, Strengths, WideElastic
from certifit.tasks.fold_equations import FoldEquations
from certifit.tasks.normal_equations import Weights

INNER_TOL = 1e-12  # relative gap at which the compiled solver stops: its direct solves reach rounding anyway


@dataclass(frozen=True)
class ElasticPath:
    """Solutions along decreasing alphas, in the user's units."""

    alphas: Array
    coef: Array  # alphas x columns
    intercept: Array
    gaps: Array  # relative, as the solver's sums tell


@one_blas_thread
def solve(task: ElasticLeastSquares | WideElastic, max_iter: int) -> Run:
    """The minimiser at the task's alpha."""
    started = time.perf_counter()
    path = elastic_path(task, np.array([task.strengths.alpha]), max_iter)
    state = Weights(path.coef[0], float(path.intercept[0]))
    at = task.residual_at(state)
    unit = 1.0 / task.scaling.y_scale
    history = {
        "iteration": 1,
        "objective": float(at.squares / (2 * task.sum_weight) * unit * unit),
        "gap": float(path.gaps[0]),
        "step": 0.0,
        "seconds": time.perf_counter() - started,
    }
    return Run(state, [history])


def elastic_path(task: ElasticLeastSquares | WideElastic, alphas: Array, max_iter: int) -> ElasticPath:
    """Solutions along alphas, any order."""
    order = np.argsort(-alphas, kind="stable")
    path = (_gram_path if isinstance(task, ElasticLeastSquares) else _wide_path)(task, alphas[order], max_iter)
    back = np.argsort(order)
    return ElasticPath(alphas, path.coef[back], path.intercept[back], path.gaps[back])


def alpha_max(task: ElasticLeastSquares | WideElastic) -> float:
    """The least alpha at which every penalised weight is zero."""
    strengths = task.strengths
    if isinstance(task, ElasticLeastSquares):
        common = CommonUnits.of(task.gram, task.fit_intercept)
        _, ratio, factors, lower, upper = common.path_arguments(strengths, np.ones(1))
        system = _stacked([common])
        found = core.gram_alpha_max(*system, ratio, factors, lower, upper, 100_000, n_threads())
        unit = strengths.l1_ratio * common.l1 + (1 - strengths.l1_ratio) * common.l2
        return float(np.asarray(found)[0]) / unit
    arguments = _wide_arguments(task)
    return float(core.wide_alpha_max(*arguments, n_threads())) / _wide_unit(task)


def _gram_path(task: ElasticLeastSquares, alphas: Array, max_iter: int) -> ElasticPath:
    common = CommonUnits.of(task.gram, task.fit_intercept)
    arguments = common.path_arguments(task.strengths, alphas)
    weights, gaps, *_ = core.gram_lasso_path(*_stacked([common]), *arguments, INNER_TOL, max_iter, n_threads())
    states = [task.from_common(row, common) for row in weights[0]]
    return ElasticPath(
        alphas, np.array([s.coef for s in states]), np.array([s.intercept for s in states]), np.asarray(gaps[0])
    )


def _stacked(systems: Sequence[CommonUnits]) -> tuple[Array, Array, Array]:
    matrices = np.ascontiguousarray(np.stack([system.matrix for system in systems]))
    moments = np.ascontiguousarray(np.stack([system.moment for system in systems]))
    return matrices, moments, np.array([system.square for system in systems])


def _wide_unit(task: WideElastic) -> float:
    """An alpha of the scaled problem is the user's times this; the share of L1 changes with it."""
    s, ratio = task.scaling, task.strengths.l1_ratio
    return float(ratio * s.scale[0] * s.y_scale + (1 - ratio) * s.scale[0] ** 2)


def _wide_arguments(task: WideElastic) -> tuple[object, ...]:
    s, strengths = task.scaling, task.strengths
    ratio = strengths.l1_ratio * s.scale[0] * s.y_scale / _wide_unit(task)
    bounds = (np.ascontiguousarray(b * s.y_scale / s.scale) for b in (strengths.lower, strengths.upper))
    X = task.columns()
    columns = ("csc", X.data, X.indices, X.indptr, X.shape[0]) if sp.issparse(X) else ("dense", X)
    factors = np.ascontiguousarray(strengths.factors)
    return columns, task.y, task.weight, task.fit_intercept, ratio, factors, *bounds


def _wide_path(task: WideElastic, alphas: Array, max_iter: int) -> ElasticPath:
    columns, y, weight, fit_intercept, *rest = _wide_arguments(task)
    scaled = np.ascontiguousarray(alphas * _wide_unit(task))
    found = core.wide_lasso_path(columns, y, weight, fit_intercept, scaled, *rest, INNER_TOL, max_iter, n_threads())
    d = task.source.n_features
    states, gaps = [], []
    for answer in found:
        w = np.zeros(d)
        w[answer["columns"]] = answer["weights"]
        states.append(task.from_scaled(w, answer["intercept"]))
        gaps.append(answer["relative_gap"])
    return ElasticPath(
        alphas, np.array([s.coef for s in states]), np.array([s.intercept for s in states]), np.array(gaps)
    )


@one_blas_thread
def elastic_fold_path(folds: FoldEquations, strengths: Strengths, alphas: Sequence[float], max_iter: int) -> FoldPath:
    """Errors of every alpha on every split, all training sets solved at once from their sums."""
    pairs = [folds.pair(split) for split in range(folds.n_splits)]
    systems = [CommonUnits.of(train, folds.fit_intercept) for train, _ in pairs]
    order = np.argsort(-np.asarray(alphas), kind="stable")
    arguments = systems[0].path_arguments(strengths, np.asarray(alphas, dtype=np.float64)[order])
    weights, *_ = core.gram_lasso_path(*_stacked(systems), *arguments, INNER_TOL, max_iter, n_threads())
    shape = (len(alphas), folds.n_splits)
    train, validation = np.zeros(shape), np.zeros(shape)
    totals, masses, null = np.zeros((2, folds.n_splits)), np.zeros((2, folds.n_splits)), np.zeros(folds.n_splits)
    in_units = True
    for k, (pair, system) in enumerate(zip(pairs, systems, strict=True)):
        unit, in_units = safe_unit(pair[0].y_unit)
        vectors = _vectors(pair[0], np.asarray(weights[k]) * system.columns, folds.fit_intercept)
        train[order, k], validation[order, k] = (squares(gram, vectors)[0] * unit for gram in pair)
        totals[:, k] = [spread(gram) * unit for gram in pair]
        masses[:, k] = [gram.sum_weight / gram.scaling.weight_scale for gram in pair]
        mean, about = pair[1].target_moments()
        centre = pair[0].target_moments()[0] if folds.fit_intercept else 0.0
        null[k] = (about + pair[1].sum_weight * (mean - centre) ** 2) * unit
    return FoldPath(train, validation, totals[0], totals[1], masses[0], masses[1], null, in_units)


def _vectors(train: Gram, weights: Array, fit_intercept: bool) -> Array:
    """v = (-w, -b, 1) of every alpha, for scaled columns, b the intercept of shifted ones."""
    d = train.n_columns
    level = np.zeros(len(weights))
    if fit_intercept:
        level = (train.sums[d, d + 1] - weights @ train.sums[:d, d]) / train.sum_weight
    return np.column_stack([-weights, -level, np.ones(len(weights))]).T
