"""Ridge paths on all training sets at once, and their errors on training and validation rows, from sums alone.

squares = sum_i w_i (y_i - b - x_i'w)^2 = v'S v with v = (-w, -b, 1) and S the Gram statistic of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.linalg import lapack

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Block
from certifit.models.least_squares.fold_equations import FoldEquations
from certifit.models.least_squares.normal_equations import NormalEquations, Weights
from certifit.models.least_squares.solver import smallest_norm
from certifit.runtime import core, n_threads, one_blas_thread
from certifit.statistics import twofold as tf
from certifit.statistics.factor import PLAIN_CONDITION
from certifit.statistics.fold_oracle import HeldOut, joined_by_split, joined_candidates, numbers_where, validating
from certifit.statistics.gram import Gram, Scaling

ROUNDING = 16 * 2.0**-53  # error of an entry of a float64 Gram matrix, relative to its column norms
DIGITS = 1e-9  # largest relative error of squares

Fits = tuple[Array, Array]  # coefficients, candidates x columns, and intercepts


@dataclass(frozen=True)
class FoldPath:
    """Squares of every (candidate, split) in the user's units, and what scores are made of."""

    train: Array
    validation: Array
    train_total: Array  # of every split: sum of w (y - mean)^2 about the mean of its own rows
    validation_total: Array
    train_weight: Array
    validation_weight: Array
    validation_null: Array  # squares on validation rows of predicting the training mean (0 without an intercept)
    in_units: bool = True  # False: squares leave float64's range in the user's units, and only their ratios count
    is_redundant: bool = False  # some training set does not determine its weights; theirs are of smallest norm
    held_out: Sequence[HeldOut] = ()  # residuals of the validation rows, one entry per split, where they were asked for

    @staticmethod
    def joined(paths: Sequence[FoldPath], places: Sequence[int]) -> FoldPath:
        """Paths of groups of candidates as one, candidate i at the place where `places` names it."""
        order = np.argsort(places)
        train, validation = (
            np.concatenate([getattr(path, name) for path in paths])[order] for name in ("train", "validation")
        )
        held_out = [joined_candidates(parts, order) for parts in zip(*(path.held_out for path in paths), strict=True)]
        return replace(paths[0], train=train, validation=validation, held_out=held_out)


@dataclass(frozen=True)
class Solved:
    """A solution of the system, hi + lo, for shifted and scaled columns."""

    hi: Array
    lo: Array


@one_blas_thread
def fold_path(folds: FoldEquations, alphas: Sequence[float | None], with_rows: bool = False) -> FoldPath:
    """The fits of every alpha to every training set. alpha None means 1 / sum of the training weights.

    with_rows: the residuals of the validation rows too, which takes one more pass.
    """
    shape = (len(alphas), folds.n_splits)
    train, validation = np.zeros(shape), np.zeros(shape)
    totals, weights = np.zeros((2, folds.n_splits)), np.zeros((2, folds.n_splits))
    null, in_units, is_redundant = np.zeros(folds.n_splits), True, False
    fits: list[Fits] = []
    for split in range(folds.n_splits):
        grams = folds.pair(split)
        unit, in_units = safe_unit(grams[0].y_unit)
        solutions = path(folds, split, grams[0], alphas)
        is_redundant |= any(len(equations.factor.dependent) > 0 for equations, _ in solutions)
        train[:, split], validation[:, split] = (row * unit for row in _errors(folds, split, grams, solutions))
        totals[:, split] = [spread(gram) * unit for gram in grams]
        weights[:, split] = [gram.sum_weight / gram.scaling.weight_scale for gram in grams]
        null[split] = about_training_mean(*grams, folds.fit_intercept) * unit
        if with_rows:
            fits.append(_fits_of(folds, split, solutions))
    held_out = held_out_rows(folds, fits) if with_rows else []
    sides = (totals[0], totals[1], weights[0], weights[1])
    return FoldPath(train, validation, *sides, null, in_units, is_redundant, held_out)


def spread(gram: Gram) -> float:
    """Sum of w (y - mean)^2, scaled; NaN for a single row, of which R2 has no meaning."""
    return gram.target_moments()[1] if gram.n_rows > 1 else np.nan


def safe_unit(unit: float) -> tuple[float, bool]:
    """The factor to the user's units, or 1 where it would leave float64's range."""
    is_safe = 1e-280 < unit < 1e280
    return (unit if is_safe else 1.0), is_safe


def about_training_mean(train: Gram, validation: Gram, fit_intercept: bool) -> float:
    """Sum over validation rows of w (y - training mean)^2, scaled; about 0 without an intercept."""
    mean, about = validation.target_moments()
    centre = train.target_moments()[0] if fit_intercept else 0.0
    return about + validation.sum_weight * (mean - centre) ** 2


@one_blas_thread
def fold_states(folds: FoldEquations, alpha: float | None) -> list[Weights]:
    """The fit to every training set, in the user's units."""
    states = []
    for split in range(folds.n_splits):
        ((equations, solution),) = path(folds, split, folds.pair(split)[0], [alpha])
        states.append(equations.from_solution(solution.hi, solution.lo))
    return states


def path(
    folds: FoldEquations, split: int, train: Gram, alphas: Sequence[float | None]
) -> list[tuple[NormalEquations, Solved]]:
    """Solutions of one training set along alphas."""
    strengths = [1.0 / (train.sum_weight / train.scaling.weight_scale) if a is None else a for a in alphas]
    weakest = folds.equations(split, min(strengths), train)
    if weakest.factor.condition <= PLAIN_CONDITION and weakest.gram.low is None:
        # A penalty only lowers the condition of the scaled matrix, so all others are as safe.
        matrix, right = weakest.unpenalised(), weakest.right_hand_side()
        return [(weakest, _penalised(matrix, right, weakest.diagonal(strength))) for strength in strengths]
    equations = [folds.equations(split, strength, train) for strength in strengths]
    return [(system, solved(system)) for system in equations]


def solved(equations: NormalEquations) -> Solved:
    """The solution of a system, of smallest norm where columns are redundant."""
    hi, lo = equations.factor.solve_pair(*equations.right_hand_pair())
    if not len(equations.factor.dependent):
        return Solved(hi, lo)
    state = smallest_norm(equations, equations.from_solution(hi, lo))
    hi = equations.to_solution(state)
    return Solved(hi, np.zeros_like(hi))


def _penalised(matrix: Array, right: Array, penalty: Array) -> Solved:
    """The solution with a penalty on the diagonal, in float64 and units of near-unit norm."""
    diagonal = np.diagonal(matrix) + penalty
    units = 1.0 / np.sqrt(diagonal)
    scaled = matrix * units
    scaled *= units[:, None]
    np.fill_diagonal(scaled, 1.0)
    # A symmetric matrix is its own transpose: Fortran's order without a copy.
    _, solution, failed = lapack.dposv(scaled.T, right * units, lower=0, overwrite_a=1, overwrite_b=1)
    if failed:
        raise ArithmeticError("a matrix whose condition was checked has no Cholesky factor")
    return Solved(solution * units, np.zeros_like(solution))


def _errors(
    folds: FoldEquations, split: int, grams: tuple[Gram, Gram], solutions: list[tuple[NormalEquations, Solved]]
) -> Array:
    """Squares on training and validation rows of all solutions, scaled; in twofold precision where float64 fails."""
    out = np.zeros((2, len(solutions)))
    is_plain = np.array([equations.gram.low is None for equations, _ in solutions])
    if is_plain.any():
        plain = [solutions[i] for i in np.flatnonzero(is_plain)]
        vectors = np.array([_vector(equations, solution.hi) for equations, solution in plain]).T
        results = [squares(gram, vectors) for gram in grams]
        out[:, is_plain] = [values for values, _ in results]
        is_plain[is_plain] = np.logical_and(*(trusted for _, trusted in results))
    if not is_plain.all():
        exact = folds.pair(split, twofold=True)
        for i in np.flatnonzero(~is_plain):
            hi, lo = _moved_pair(*solutions[i], exact[0])
            out[:, i] = [twofold_squares(gram, hi, lo) for gram in exact]
    return out


def _fits_of(folds: FoldEquations, split: int, solutions: list[tuple[NormalEquations, Solved]]) -> Fits:
    """The solutions of a split for rows in the user's units."""
    offset = int(folds.fit_intercept)
    fits = [
        in_units(
            system.gram.scaling,
            (solution.hi + solution.lo)[offset:],
            solution.hi[0] + solution.lo[0] if offset else None,
        )
        for system, solution in solutions
    ]
    coef, intercepts = (np.array(column) for column in zip(*fits, strict=True))
    return folds.opened(split, coef), intercepts


def in_units(scaling: Scaling, weights: Array, level: float | None) -> tuple[Array, float]:
    """Weights and intercept for the user's columns, from those of scaled and shifted ones; level None: through 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        coef = weights * scaling.scale / scaling.y_scale
        if level is None:
            return coef, 0.0
        return coef, float((level + scaling.y_shift - weights @ scaling.shift) / scaling.y_scale)


def held_out_rows(folds: FoldEquations, fits: Sequence[Fits]) -> list[HeldOut]:
    """Residuals of the validation rows of every split: one pass per round."""
    held_out: list[HeldOut] = []
    for splits in folds.rounds:
        of_round = fits[len(held_out) : len(held_out) + splits.n_splits]
        held_out += joined_by_split(
            list(folds.source.map(partial(_residuals_of_stretch, splits=splits, fits=of_round)))
        )
    return held_out


def held_out_of(numbers: Array, y: Array, weight: Array, residuals: Array, scales: tuple[float, float]) -> HeldOut:
    """The rows of positive weight, from numbers in scaled units. scales: of the target and of the weights."""
    counts = weight > 0
    of_y, of_weight = scales
    values = {"residual": residuals[:, counts] / of_y}
    return HeldOut(numbers[counts], weight[counts] / of_weight, y[counts] / of_y, values)


def _residuals_of_stretch(stretch: Block, splits: Splits, fits: Sequence[Fits]) -> list[HeldOut]:
    if stretch.y is None:
        raise ValueError("Residuals need a target.")
    held_out = []
    for split, (coef, intercepts) in enumerate(fits):
        keep, weight = validating(stretch, splits, split)
        y = stretch.y[keep]
        scores = np.zeros((0, len(coef)))
        if len(y):
            scores = core.linear_scores(stretch.where(keep).rows, coef, intercepts, n_threads())
        residuals = np.ascontiguousarray((y[:, None] - scores).T)
        held_out.append(HeldOut(numbers_where(stretch, keep), weight, y, {"residual": residuals}))
    return held_out


def _vector(equations: NormalEquations, solution: Array) -> Array:
    """v = (-w, -b, 1) in the order of the Gram statistic (columns, 1, target)."""
    offset = int(equations.fit_intercept)
    intercept = solution[:1] if offset else np.zeros(1)
    return np.concatenate([-solution[offset:], -intercept, [1.0]])


def _moved_pair(equations: NormalEquations, solution: Solved, exact: Gram) -> tf.Pair:
    """v for the scaling of the twofold statistic, whose shifts differ from those of a float64 one."""
    hi, lo = _vector(equations, solution.hi), _vector(equations, solution.lo)
    lo[-1] = 0.0
    if equations.gram.low is not None:
        return hi, lo
    old, new, d = equations.gram.scaling, exact.scaling, exact.n_columns
    if equations.fit_intercept:
        # b + w'(x - old) - y_old = (b - w'(old - new) - (y_old - y_new)) + w'(x - new) - y_new; here -w, -b stand
        change = tf.dot(hi[:d], old.shift - new.shift)
        total = tf.add((hi[d : d + 1], lo[d : d + 1]), (np.array([-change[0]]), np.array([-change[1]])))
        hi[d : d + 1], lo[d : d + 1] = tf.add(total, (np.array([new.y_shift - old.y_shift]), np.zeros(1)))
    return hi, lo


def squares(gram: Gram, vectors: Array) -> tuple[Array, Array]:
    """v'S v of every column of `vectors`, and whether rounding leaves it the wanted digits."""
    values = np.einsum("da,da->a", vectors, gram.sums @ vectors)
    sizes = np.sqrt(np.maximum(np.diagonal(gram.sums), 0.0)) @ np.abs(vectors)
    return np.maximum(values, 0.0), ROUNDING * sizes**2 <= DIGITS * values


def twofold_squares(gram: Gram, hi: Array, lo: Array) -> float:
    """v'S v in twofold precision."""
    assert gram.low is not None
    products = tf.multiply((gram.sums, gram.low), (hi, lo))
    rows = tf.multiply(_sum_rows(products), (hi, lo))
    total = _sum_rows((rows[0][None, :], rows[1][None, :]))
    return max(float(total[0][0]), 0.0)


def _sum_rows(pair: tf.Pair) -> tf.Pair:
    """Sums along the last axis, by halves."""
    hi, lo = pair
    while hi.shape[1] > 1:
        if hi.shape[1] % 2:
            hi, lo = (np.concatenate([part, np.zeros((len(part), 1))], axis=1) for part in (hi, lo))
        half = hi.shape[1] // 2
        hi, lo = tf.add((hi[:, :half], lo[:, :half]), (hi[:, half:], lo[:, half:]))
    return hi[:, 0], lo[:, 0]
