"""Kernel ridge on all training sets and all alphas without refits.

A training set's matrix is a part of the matrix of all rows (of its own, where columns are standardised by its rows).
Few rows: one eigendecomposition S G S = V L V' serves every alpha. Many: conjugate gradients on all training sets and
alphas together (`fold_systems.py`).
The intercept is removed by the projection I - ss', s the roots of the shares: t is at right angles to s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import scipy.linalg

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.mathematics.kernels.algebra import Kernel
from certifit.mathematics.kernels.tiles import multiply
from certifit.models.folds import EachRow, FoldStates, Rounds
from certifit.models.kernel.fold_systems import AIM, RANK, Columns, FoldSystems, is_short, largest_size
from certifit.models.kernel.solver import ConjugateGradients, pivoted_factor
from certifit.models.kernel.task import KernelRows, Standard, dense_rows
from certifit.models.least_squares.fold_path import FoldPath, held_out_of, safe_unit
from certifit.models.least_squares.influence import LeftOut
from certifit.runtime import check_memory, one_blas_thread
from certifit.statistics.gram import refuse_no_weight
from certifit.statistics.loss_sums import HeldOut, row_spread

MOST_EIGEN = 1500  # rows of a training set whose matrix is decomposed
MOST_LEFT_OUT = 5000  # rows that are left out one at a time
Alphas = Sequence[float | None]


@dataclass(frozen=True)
class OpenColumns:
    """Columns of a table with every gap marked: (place of a column, of its mark, what was filled in); those kept."""

    source: Source
    gaps: Sequence[tuple[int, int, float]]
    kept: Sequence[int]

    @cached_property
    def rows(self) -> Array:
        """All rows."""
        return dense_rows(self.source.gather().X)

    def filled(self, seen: Array, weight: Array) -> Array:
        """The rows that are seen, gaps filled by the means of those of positive weight."""
        X = self.rows[seen]
        for column, mark, fill in self.gaps:
            known = float(weight @ (1.0 - X[:, mark]))
            step = float(weight @ (X[:, column] - fill)) / known if known > 0 else 0.0
            X[:, column] += step * X[:, mark]
        return np.ascontiguousarray(X[:, list(self.kept)])


@dataclass(frozen=True)
class KernelPart:
    """Candidates that differ in alpha alone. places: theirs in the grid. standardize: each training set by its rows.

    opened: where each training set fills gaps by its own means.
    """

    source: Source
    opened: OpenColumns | None
    kernel: Kernel | None
    places: list[int]
    alphas: Alphas
    fit_intercept: bool
    standardize: bool
    seed: int = 0

    @cached_property
    def rows(self) -> KernelRows:
        """All rows; a width that depends on the data is theirs."""
        return KernelRows(self.source, self.kernel, self.standardize)


class KernelFolds(FoldStates):
    """Fits of all candidates to the training rows of all splits."""

    def __init__(self, parts: Sequence[KernelPart], rounds: Rounds) -> None:
        self.parts, self.rounds = parts, rounds

    def squares(self, with_rows: bool = False) -> FoldPath | None:
        """Squared errors of every candidate on every split."""
        assert not isinstance(self.rounds, EachRow)
        paths = [_path(part, self.rounds, with_rows) for part in self.parts]
        return FoldPath.joined(paths, [place for part in self.parts for place in part.places])

    def left_out(self) -> LeftOut | None:
        """Errors of every row by the fit to all others; None for rows of unequal weight."""
        errors = [_left_out(part) for part in self.parts]
        known = [error for error in errors if error is not None]
        if len(known) < len(errors):
            return None
        return LeftOut.joined(known, [place for part in self.parts for place in part.places])


class _Target:
    """The target and the weights of all rows, scaled by powers of two."""

    def __init__(self, rows: KernelRows) -> None:
        y = np.asarray(rows.block.y, dtype=np.float64)
        self.scale = float(np.ldexp(1.0, -int(np.frexp(np.abs(y).max(initial=0.0))[1])))
        self.y, self.weight = y * self.scale, rows.share * rows.sum_weight
        self.unit, self.in_units = safe_unit(float(np.float64(self.scale) ** -2))

    def mean(self, weight: Array) -> float:
        """Mean of the target."""
        return float(weight @ self.y) / float(weight.sum())


@one_blas_thread
def _path(part: KernelPart, rounds: Sequence[Splits], with_rows: bool) -> FoldPath:
    rows, target = part.rows, _Target(part.rows)
    sides = sides_of(part, target.weight, rounds)
    shape = (len(part.alphas), len(sides))
    train, validation = np.zeros(shape), np.zeros(shape)
    totals, weights, null = np.zeros((2, len(sides))), np.zeros((2, len(sides))), np.zeros(len(sides))
    held_out: list[HeldOut] = []
    for at, (pair, residuals) in enumerate(zip(sides, _residuals(part, target, sides), strict=True)):
        train[:, at], validation[:, at] = (residuals**2 @ side * target.unit for side in pair)
        totals[:, at] = [row_spread(target.y, side) * target.unit for side in pair]
        weights[:, at] = [side.sum() for side in pair]
        level = target.mean(pair[0]) if part.fit_intercept else 0.0
        null[at] = float(pair[1] @ np.square(target.y - level)) * target.unit
        if with_rows:
            held_out.append(held_out_of(np.flatnonzero(rows.seen), target.y, pair[1], residuals, (target.scale, 1.0)))
    sides_of_all = (totals[0], totals[1], weights[0], weights[1])
    return FoldPath(train, validation, *sides_of_all, null, target.in_units, held_out=held_out)


def sides_of(part: KernelPart, weight: Array, rounds: Sequence[Splits]) -> list[tuple[Array, Array]]:
    """Weights of all rows in the training and the validation set of every split."""
    sides = []
    for splits in rounds:
        cells = splits.cells.of(part.rows.gathered)[part.rows.seen]
        for times in zip(splits.train, splits.validation, strict=True):
            train, validation = (np.append(side, 0.0)[cells] * weight for side in times)
            for side, name in ((train, "training"), (validation, "validation")):
                refuse_no_weight(float(side.max(initial=0.0)), f"The {name} rows of a split")
            sides.append((train, validation))
    return sides


def _residuals(part: KernelPart, target: _Target, sides: Sequence[tuple[Array, Array]]) -> Iterator[Array]:
    """For every split alphas x rows: y - b - f(x) of all rows by the fits to its training rows."""
    is_own = part.standardize or part.opened is not None  # points of a training set are its own
    groups = [[side] for side in sides] if is_own else [list(sides)]
    for group in groups:
        yield from _of_group(part, target, [train for train, _ in group])


def _of_group(part: KernelPart, target: _Target, weights: Sequence[Array]) -> Iterator[Array]:
    """Residuals by the fits to training sets that see the same points; conjugate gradients for many rows."""
    fits = [_Training.of(part, target, weight) for weight in weights]
    kernel = part.rows.kernel
    fitted: list[Array] | None = None
    if kernel is not None and min(fit.trained.sum() for fit in fits) > MOST_EIGEN:
        fitted = _together(part, kernel, points_of(part, weights[0]), fits)
    for at, (fit, weight) in enumerate(zip(fits, weights, strict=True)):
        values = fitted[at] if fitted is not None else _alone(part, fit, weight)
        shift = fit.share @ (target.y[:, None] - fit.level - values) if part.fit_intercept else 0.0
        yield np.ascontiguousarray((target.y[:, None] - fit.level - shift - values).T)


@dataclass(frozen=True)
class _Training:
    """A training set: which rows, the shares of all rows, the alphas on its scale and the roots times the target."""

    trained: Array
    share: Array
    alphas: Array
    level: float
    right: Array

    @staticmethod
    def of(part: KernelPart, target: _Target, weight: Array) -> _Training:
        share, level = weight / weight.sum(), target.mean(weight) if part.fit_intercept else 0.0
        alphas = np.array([1.0 / weight.sum() if alpha is None else alpha for alpha in part.alphas])
        right = np.sqrt(share) * (target.y - level)
        if part.fit_intercept:
            right = right - np.sqrt(share) * float(np.sqrt(share) @ right)
        return _Training(weight > 0, share, alphas, level, right)


def _together(part: KernelPart, kernel: Kernel, points: Array, fits: Sequence[_Training]) -> list[Array] | None:
    """f of all rows by all fits, rows x alphas each; None where float32 cannot take the steps."""
    check_memory(8.0 * len(points) ** 2, f"Folds of a kernel of {len(points):,} rows", "Sample rows.")
    roots = np.column_stack([np.sqrt(fit.share) for fit in fits])
    size, n_alphas = largest_size(kernel, points), len(part.alphas)
    columns = Columns(np.repeat(np.arange(len(fits)), n_alphas), np.concatenate([fit.alphas for fit in fits]))
    if not is_short(columns.alpha, size):
        return None
    systems = FoldSystems(kernel, points, roots, size, is_centred=part.fit_intercept, seed=part.seed)
    right = np.repeat(np.column_stack([fit.right for fit in fits]), n_alphas, axis=1)
    fitted, is_met = systems.solve(right, columns)
    return np.split(fitted, len(fits), axis=1) if is_met.all() else None


def _alone(part: KernelPart, fit: _Training, weight: Array) -> Array:
    """f of all rows by the fits of one training set for all alphas."""
    rows, trained = part.rows, fit.trained
    share, right = fit.share[trained], fit.right[trained]
    if rows.kernel is None:
        dual = _by_eigenvalues(rows.matrix[np.ix_(trained, trained)], share, right, fit.alphas, part.fit_intercept)
        return multiply(rows.matrix[:, trained], dual)
    points = points_of(part, weight)
    some = np.ascontiguousarray(points[trained])
    check_memory(8.0 * 2.5 * len(some) ** 2, f"Folds of a kernel of {len(points):,} rows", "Sample rows.")
    G = rows.kernel.matrix(some)
    solve = _by_eigenvalues if len(some) <= MOST_EIGEN else partial(_by_gradients, part, some)
    return rows.kernel.times(points, some, solve(G, share, right, fit.alphas, part.fit_intercept))


def points_of(part: KernelPart, weight: Array) -> Array:
    """All rows as a fit to those of positive weight sees them."""
    rows, trained = part.rows, weight > 0
    raw = rows.raw if part.opened is None else part.opened.filled(rows.seen, weight)
    return Standard.of(raw[trained], weight[trained] / weight.sum())(raw) if part.standardize else raw


def _by_eigenvalues(G: Array, share: Array, right: Array, alphas: Array, fit_intercept: bool) -> Array:
    """c of every alpha, in columns."""
    root = np.sqrt(share)
    matrix = G * root[:, None] * root
    if fit_intercept:
        product = matrix @ root
        matrix += float(root @ product) * np.outer(root, root) - np.outer(root, product) - np.outer(product, root)
    values, vectors = scipy.linalg.eigh(matrix, check_finite=False)
    inverse = 1.0 / (np.maximum(values, 0.0)[:, None] + alphas)
    solutions = vectors @ (inverse * (vectors.T @ right)[:, None])
    if fit_intercept:
        solutions -= np.outer(root, root @ solutions)
    return np.asarray(root[:, None] * solutions)


def _by_gradients(
    part: KernelPart, points: Array, G: Array, share: Array, right: Array, alphas: Array, fit_intercept: bool
) -> Array:
    """c of every alpha, in columns, in float64."""
    root, kernel = np.sqrt(share), part.rows.kernel
    assert kernel is not None
    _, F = pivoted_factor(kernel, points, root, min(RANK, len(points) // 4), part.seed)
    if fit_intercept:
        F -= np.outer(root, root @ F)
    system = ConjugateGradients(G, root, F, alphas, AIM, is_centred=fit_intercept)
    return np.asarray(root[:, None] * system.solve(np.repeat(right[:, None], len(alphas), axis=1)))


@one_blas_thread
def _left_out(part: KernelPart) -> LeftOut | None:
    """The error of row i by the fit to the others is t_i / (V 1/(L + lambda) V')_ii, lambda that of n - 1 rows.

    V and L: eigenvectors and eigenvalues of G between the directions that the intercept leaves free.
    """
    rows, target = part.rows, _Target(part.rows)
    n, w = len(target.y), target.weight
    if part.standardize or part.opened is not None or not np.allclose(w, w[0], rtol=1e-12):
        return None
    if n > MOST_LEFT_OUT:
        raise ValueError(
            f"Leaving out one row at a time decomposes the matrix of {n:,} rows, {MOST_LEFT_OUT:,} are the most. Use "
            "folds: cv=10."
        )
    check_memory(8.0 * 5 * n * n, f"Leaving out each of {n:,} rows", "Use folds: cv=10.")
    G = rows.matrix
    centred = G - G.mean(axis=0) - G.mean(axis=1)[:, None] + G.mean() if part.fit_intercept else G
    values, vectors = scipy.linalg.eigh(centred, check_finite=False)
    values = np.maximum(values, 0.0)
    if part.fit_intercept:  # the direction of 1, which has the eigenvalue 0, is not free
        drop = int(np.argmax(np.abs(vectors.sum(axis=0))))
        values, vectors = np.delete(values, drop), np.delete(vectors, drop, axis=1)
    right = vectors.T @ (target.y - target.y.mean() * part.fit_intercept)
    squares, fourths = np.zeros(len(part.alphas)), np.zeros(len(part.alphas))
    for k, alpha in enumerate(part.alphas):
        strength = 1.0 if alpha is None else alpha * (n - 1) * w[0]
        c = values + strength / w[0]
        errors = (vectors @ (right / c)) / (np.square(vectors) @ (1.0 / c))
        squares[k], fourths[k] = errors**2 @ w, errors**4 @ w
    weight = np.full(len(part.alphas), w.sum())
    return LeftOut(squares, fourths, weight, row_spread(target.y, w), n, (), 0, target.scale)
