"""Support vector machines on all training sets and all alphas, from one pool of rows of the kernel.

A row of the matrix of the kernel is computed once and serves every training set that has it as a support vector: rows
left out have no multiplier, and f is known at them when a fit is done. From a larger alpha to a smaller one the bounds
C_i grow by one factor; multipliers and f times that factor are where the next fit starts. Gaussian kernels of several
widths are made of the same squared distances, where columns are many and the distances fit into the cache.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Memory
from certifit.mathematics.kernels.basic import Gaussian, squared_distances
from certifit.models.classifier import codes_of
from certifit.models.folds import MOST_BYTES, KnownScores, RowFolds, RowState
from certifit.models.kernel.folds import KernelPart, points_of, sides_of
from certifit.models.kernel.task import KernelRows
from certifit.models.svm.base import class_scores
from certifit.models.svm.solver import Pool, Recorder, Solved, solve_machine
from certifit.models.svm.task import Machine, MarginTask, class_machines
from certifit.runtime import one_blas_thread

MANY_COLUMNS = 1000  # from which distances of rows take longer to make than their exponentials, and than to be read
DISTANCE_BYTES = 20.0  # per two rows: their distance, and the kernel of it in float64 and in float32
FEW_ROWS = 2000  # up to which fits are computed again in float64 and end at rounding, as those of a refit do
Table = list[list[RowState | None]]  # candidates x splits


@dataclass(frozen=True)
class Limits:
    """tol, steps, and bytes of rows that are kept."""

    tol: float
    max_iter: int
    cache_bytes: float


@dataclass(frozen=True)
class MarginPart:
    """Candidates that differ in alpha alone."""

    kernel: KernelPart
    limits: Limits
    multi_class: str
    n_classes: int


def margin_folds(parts: Sequence[MarginPart], rounds: Sequence[Splits]) -> RowFolds | None:
    """Fits of all candidates to all training sets; None where a training set lacks a class, or scores are too many."""
    first = parts[0].kernel
    n_candidates = sum(len(part.kernel.places) for part in parts)
    if not rounds:
        return RowFolds(first.source, [], [], {}, is_coded=True, route="refits")
    n_scores = first.rows.n_rows * parts[0].n_classes * n_candidates * sum(splits.n_splits for splits in rounds)
    if 8.0 * n_scores > MOST_BYTES or (codes_of(first.rows.block) < 0).any():
        return None
    tables: list[Table] = []
    squares = _squares(parts)
    for splits in rounds:
        table: Table = [[None] * splits.n_splits for _ in range(n_candidates)]
        for part in parts:
            if not _fill(table, part, splits, squares):
                return None
        tables.append(table)
    gathered = first.rows.gathered
    numbers = Memory.of(replace(gathered, X=np.arange(float(gathered.n_rows))[:, None]))
    return RowFolds(numbers, rounds, tables, {}, is_coded=True, route="refits")


def _is_own(part: MarginPart) -> bool:
    """Whether the points of a training set are its own."""
    return part.kernel.standardize or part.kernel.opened is not None


def _squares(parts: Sequence[MarginPart]) -> Array | None:
    """Squared distances of the rows, where Gaussian kernels of several widths are made of them."""
    wanted = [part for part in parts if not _is_own(part) and isinstance(part.kernel.rows.kernel, Gaussian)]
    if len(wanted) < 2:
        return None
    points, room = wanted[0].kernel.rows.points, min(part.limits.cache_bytes for part in wanted)
    is_worth = points.shape[1] >= MANY_COLUMNS and DISTANCE_BYTES * len(points) ** 2 <= room
    return squared_distances(points) if is_worth else None


@one_blas_thread
def _fill(table: Table, part: MarginPart, splits: Splits, squares: Array | None) -> bool:
    """Put the fits of some candidates into the table; False where a training set lacks a class."""
    rows = part.kernel.rows
    codes = codes_of(rows.block)
    weights = [train for train, _ in sides_of(part.kernel, rows.share * rows.sum_weight, [splits])]
    if any(len(np.unique(codes[weight > 0])) < part.n_classes for weight in weights):
        return False
    seen, pool, is_own = rows, None, _is_own(part)
    matrix = None
    if squares is not None and not is_own and isinstance(rows.kernel, Gaussian):
        matrix = rows.kernel.of_squares(squares)
    for split, weight in enumerate(weights):
        if is_own:
            seen, pool = rows.seen_as(points_of(part.kernel, weight)), None
        if pool is None:
            every = np.arange(rows.n_points)
            pool = Pool(seen, every, part.limits.cache_bytes, is_shared=True, matrix=matrix)
        for place, scores in zip(part.kernel.places, _fits(part, seen, pool, weight), strict=True):
            of_rows = np.full((rows.n_rows, part.n_classes), np.nan)
            of_rows[rows.seen] = scores
            table[place][split] = KnownScores(of_rows)
    return True


def _fits(part: MarginPart, rows: KernelRows, pool: Pool, weight: Array) -> list[Array]:
    """Scores of all rows by the fits to one training set, from the largest alpha to the smallest."""
    total = float(weight.sum())
    alphas = [1.0 / total if alpha is None else alpha for alpha in part.kernel.alphas]
    trained = np.flatnonzero(weight > 0)
    codes = codes_of(rows.block)[trained]
    fits: list[Array] = [np.zeros(0)] * len(alphas)
    before: list[tuple[Machine, Solved]] = []
    for place in np.argsort(alphas, kind="stable")[::-1].tolist():
        bound = weight[trained] / (alphas[place] * total)
        machines = class_machines(codes, bound, part.n_classes, part.multi_class, part.kernel.fit_intercept)
        machines = [replace(machine, row=trained[machine.row].astype(np.uint32)) for machine in machines]
        task, record = MarginTask(rows, machines, alphas[place]), Recorder(alphas[place])
        after: list[tuple[Machine, Solved]] = []
        for p, machine in enumerate(machines):
            start = _scaled(*before[p], machine) if before else None
            is_exact = rows.n_points <= FEW_ROWS
            solved = solve_machine(task, machine, *_limits(part), record, pool, start, is_exact=is_exact)
            if solved.reason:
                warnings.warn(f"A fit of cross-validation stopped early. {solved.reason}", ConvergenceWarning, 2)
            after.append((machine, solved))
        before = after
        z = np.column_stack([solved.f + solved.intercept for _, solved in after])
        fits[place] = class_scores(z, part.n_classes, part.multi_class)
    return fits


def _limits(part: MarginPart) -> tuple[float, int, float]:
    return part.limits.tol, part.limits.max_iter, part.limits.cache_bytes


def _scaled(machine: Machine, solved: Solved, after: Machine) -> tuple[Array, Array]:
    """Where a fit of wider bounds starts: multipliers at their bounds stay there, and all grow by the same factor."""
    factor = float(after.bound.sum() / machine.bound.sum())
    a = np.where(solved.a >= machine.bound, after.bound, np.minimum(solved.a * factor, after.bound))
    return a, solved.f * factor
