"""Ridge paths on all training sets at once, and their errors on training and validation rows, from sums alone.

squares = sum_i w_i (y_i - b - x_i'w)^2 = v'S v with v = (-w, -b, 1) and S the Gram statistic of the rows.

Normal equations of every training set and Gram statistics of every validation set, from one pass over the rows.

A column with gaps is read with the mean of all rows in them, and 1 where one is: x + mean m. What a fit to the
training rows would fill in is x + (mean + delta) m, delta from the same sums: nothing leaks from validation rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from certifit.data.cells import Splits
from certifit.data.columns import Array, dense_rows
from certifit.data.source import Block, Source
from certifit.models.least_squares.normal_equations import (
    GramUnits,
    NormalEquations,
    Weights,
)
from certifit.models.least_squares.ridge_path import along_strengths, penalised
from certifit.models.least_squares.solver import smallest_norm
from certifit.runtime import core, n_threads, one_blas_thread, suited_map
from certifit.statistics import double_double as dd
from certifit.statistics.cell_sums import Store
from certifit.statistics.factor import PLAIN_CONDITION
from certifit.statistics.gram import FAR_SHARE, CellGrams, Gram, Scaling, cell_grams, refuse_no_weight
from certifit.statistics.loss_sums import HeldOut, joined_by_split, joined_candidates, numbers_where, validating
from certifit.statistics.remainders import coarseness_of, some_columns


@dataclass(frozen=True)
class Gaps:
    """Columns with gaps, the columns that mark them, what was filled in, and the columns that a model keeps."""

    columns: Array
    indicators: Array
    fills: Array
    kept: Array


class FoldEquations:
    """The systems of a list of splits. `names` are those of the columns that the model keeps.

    standardize: a penalty is one of weights times the spreads of their columns on the training rows of the split.
    shared: where the sums by cell are found that another model of the same columns has made.
    """

    def __init__(
        self,
        source: Source,
        rounds: Sequence[Splits],
        fit_intercept: bool,
        gaps: Gaps | None = None,
        standardize: bool = False,
        shared: Store | None = None,
    ) -> None:
        self.source, self._shared = source, shared
        self.standardize = standardize
        self.fit_intercept = fit_intercept
        self.gaps = gaps
        self.names = source.names if gaps is None else [source.names[j] for j in gaps.kept]
        self.rounds = list(rounds)
        self._places = [(r, s) for r, splits in enumerate(self.rounds) for s in range(splits.n_splits)]
        self._columns: Array | None = None
        self._kept: tuple[int, bool, tuple[Gram, Gram]] | None = None
        self._sums: dict[tuple[int, bool], CellGrams] = {}

    @property
    def n_splits(self) -> int:
        """Number of splits, all rounds."""
        return len(self._places)

    def pair(self, split: int, twofold: bool = False) -> tuple[Gram, Gram]:
        """Statistics of the training and the validation rows of a split; the last one is kept."""
        if self._kept is None or self._kept[:2] != (split, twofold):
            self._kept = (split, twofold, self._pair(split, twofold))
        return self._kept[2]

    def _pair(self, split: int, twofold: bool) -> tuple[Gram, Gram]:
        number, s = self._places[split]
        splits, cells = self.rounds[number], self._cells(number, twofold)
        train, validation = cells.combined(splits.train[s]), cells.combined(splits.validation[s])
        refuse_no_weight(train.sum_weight, f"The training rows of split {split + 1}")
        refuse_no_weight(validation.sum_weight, f"The validation rows of split {split + 1}")
        pair = (train, validation) if self.gaps is None else self._refilled(train, validation, self.gaps)
        return pair if self._columns is None else (pair[0].taken(self._columns), pair[1].taken(self._columns))

    def total(self, twofold: bool = False) -> Gram:
        """The statistic of all rows of the first round, gaps filled with means of all rows."""
        cells = self._cells(0, twofold)
        total = cells.combined(np.ones(len(cells.sums)))
        return total if self.gaps is None else total.taken(self.gaps.kept)

    def least_rows(self) -> int:
        """Rows of the smallest training set, repeated ones counted once."""
        counts = [
            self._cells(r, False).n_rows[splits.train[s] > 0].sum()
            for r, splits in enumerate(self.rounds)
            for s in range(splits.n_splits)
        ]
        return int(min(counts))

    def taken(self, columns: Array, splits: Sequence[int] | None = None) -> FoldEquations:
        """The systems of some of the columns, and of some of the splits, from the same sums."""
        other = copy(self)
        if splits is not None:
            other._places = [self._places[split] for split in splits]
        other.names = [self.names[j] for j in columns]
        other._columns, other._kept = columns, None
        return other

    def equations(self, split: int, alpha: float | None, train: Gram | None = None) -> NormalEquations:
        """The system of the training rows of a split. alpha None means 1 / sum of their weights."""
        train = self.pair(split)[0] if train is None else train
        resum, rows = (lambda: self.pair(split, True)[0]), partial(self._training_rows, split)
        return NormalEquations(train, alpha, self.fit_intercept, resum, self.names, self.standardize, rows)

    def _training_rows(self, split: int) -> Source:
        """The training rows of a split in the columns of its system."""
        number, s = self._places[split]
        rows, columns = self.rounds[number].trained(self.source, s), self._columns
        if self.gaps is not None:
            known, rows = coarseness_of(rows), rows.through(_Filled(self.gaps, self.fills(split) - self.gaps.fills))
            rows.coarseness = known
            columns = self.gaps.kept if columns is None else self.gaps.kept[columns]
        return rows if columns is None else some_columns(rows, columns)

    def _cells(self, number: int, twofold: bool) -> CellGrams:
        """The sums of a round, made when first asked for."""
        key = (number, twofold)
        if key not in self._sums:
            cells = self.rounds[number].cells
            make = partial(cell_grams, self.source, cells, self.fit_intercept, twofold)
            n_bytes = 8 * (1 + twofold) * cells.n_cells * (self.source.n_features + 2) ** 2
            of_cells = ("cell Grams", self.fit_intercept, twofold)
            self._sums[key] = (
                make() if self._shared is None else self._shared.once((self.source, cells), of_cells, make, n_bytes)
            )
        return self._sums[key]

    def _refilled(self, train: Gram, validation: Gram, gaps: Gaps) -> tuple[Gram, Gram]:
        """Both statistics with gaps filled by means of the training rows."""
        delta = self._deltas(train, gaps)
        pair = (gram.sheared(gaps.columns, gaps.indicators, delta).taken(gaps.kept) for gram in (train, validation))
        return next(pair), next(pair)

    def fills(self, split: int) -> Array:
        """What a fit to the training rows of a split fills in, gap by gap."""
        if self.gaps is None:
            return np.zeros(0)
        number, s = self._places[split]
        train = self._cells(number, False).combined(self.rounds[number].train[s])
        return np.asarray(self.gaps.fills + self._deltas(train, self.gaps))

    def opened(self, split: int, coef: Array) -> Array:
        """Coefficients of the columns of `source` that predict as those of the model's columns, fits x columns, do.

        w_j (x_j + delta_j m_j) = w_j x_j + (w_j delta_j) m_j
        """
        if self.gaps is None:
            return coef
        every = np.zeros((len(coef), self.source.n_features))
        every[:, self.gaps.kept] = coef
        delta = self.fills(split) - self.gaps.fills
        np.add.at(every.T, self.gaps.indicators, (every[:, self.gaps.columns] * delta).T)  # columns may share one
        return every

    def _deltas(self, train: Gram, gaps: Gaps) -> Array:
        """Means of the training rows less what was filled in."""
        d, s, total = train.n_columns, train.scaling, train.sum_weight
        sums = train.sums[:d, d]
        marked = (sums[gaps.indicators] + s.shift[gaps.indicators] * total) / s.scale[gaps.indicators]
        present = total - marked
        # sum of (x - fill) over the rows, of which those with a gap give nothing
        above = (sums[gaps.columns] + s.shift[gaps.columns] * total) / s.scale[gaps.columns] - gaps.fills * total
        return np.divide(above, present, out=np.zeros(len(present)), where=present > 1e-12 * total)


@dataclass(frozen=True)
class _Filled:
    """A map of rows: x + mean m to x + (mean + delta) m, in all columns with gaps."""

    gaps: Gaps
    delta: Array

    def apply(self, X: object) -> Array:
        """The mapped rows."""
        filled = np.array(dense_rows(X))
        filled[:, self.gaps.columns] += filled[:, self.gaps.indicators] * self.delta
        return filled

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> list[str]:
        """Names of the columns."""
        return list(input_features or ())


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
class Solutions:
    """Solutions for shifted and scaled columns, hi + lo, a row per candidate, and the units of each."""

    systems: Sequence[GramUnits]
    hi: Array
    lo: Array
    is_redundant: bool = False  # the rows do not determine the weights of some candidate


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
        told = telling_spreads(folds, split, grams)
        if folds.fit_intercept and grams[0].is_far(FAR_SHARE):  # as beside entries of 1e12 in other rows
            exact = folds.pair(split, twofold=True)
            means = exact[0].means()
            grams = (exact[0].about(means), exact[1].about(means))
        unit, in_units = safe_unit(grams[0].y_unit)
        solutions = path(folds, split, grams[0], alphas)
        is_redundant |= solutions.is_redundant
        train[:, split], validation[:, split] = (row * unit for row in _errors(folds, split, grams, solutions))
        totals[:, split] = [spread(gram) * unit for gram in told]
        weights[:, split] = [gram.sum_weight / gram.scaling.weight_scale for gram in grams]
        null[split] = about_training_mean(*told, folds.fit_intercept) * unit
        if with_rows:
            fits.append(_fits_of(folds, split, solutions))
    held_out = held_out_rows(folds, fits) if with_rows else []
    sides = (totals[0], totals[1], weights[0], weights[1])
    return FoldPath(train, validation, *sides, null, in_units, is_redundant, held_out)


def telling_spreads(folds: FoldEquations, split: int, grams: tuple[Gram, Gram]) -> tuple[Gram, Gram]:
    """Statistics of a split that have digits of the target's spread: twofold sums where it is far from its shift."""
    return folds.pair(split, twofold=True) if any(gram.is_target_far() for gram in grams) else grams


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
        solutions = path(folds, split, folds.pair(split)[0], [alpha])
        states.append(solutions.systems[0].from_solution(solutions.hi[0], solutions.lo[0]))
    return states


def path(folds: FoldEquations, split: int, train: Gram, alphas: Sequence[float | None]) -> Solutions:
    """Solutions of one training set along alphas."""
    strengths = [1.0 / (train.sum_weight / train.scaling.weight_scale) if a is None else a for a in alphas]
    along = along_strengths(train, folds.fit_intercept, folds.standardize, strengths)
    if along is not None and along.condition <= PLAIN_CONDITION:
        units = GramUnits(train, folds.fit_intercept, folds.names)
        return Solutions([units] * len(strengths), along.solutions, np.zeros_like(along.solutions))
    weakest = folds.equations(split, min(strengths), train)
    if weakest.factor.condition <= PLAIN_CONDITION and weakest.gram.low is None:
        # A penalty only lowers the condition of the scaled matrix, so all others are as safe.
        together = None if along is None else along.solutions
        if together is None:
            matrix, right = weakest.unpenalised(), weakest.right_hand_side()
            together = np.array([penalised(matrix, right, weakest.diagonal(strength)) for strength in strengths])
        return Solutions([weakest] * len(strengths), together, np.zeros_like(together))
    systems = [folds.equations(split, strength, train) for strength in strengths]
    hi, lo = (np.array(part) for part in zip(*(solved(system) for system in systems), strict=True))
    return Solutions(systems, hi, lo, any(len(system.factor.dependent) > 0 for system in systems))


def solved(equations: NormalEquations) -> dd.Pair:
    """The solution of a system, hi + lo, of smallest norm where columns are redundant."""
    hi, lo = equations.factor.solve_pair(*equations.right_hand_pair())
    if not len(equations.factor.dependent):
        return hi, lo
    state = smallest_norm(equations, equations.from_solution(hi, lo))
    hi = equations.to_solution(state)
    return hi, np.zeros_like(hi)


def _errors(folds: FoldEquations, split: int, grams: tuple[Gram, Gram], solutions: Solutions) -> Array:
    """Squares on training and validation rows of all solutions, scaled; in twofold precision where float64 fails."""
    out = np.zeros((2, len(solutions.systems)))
    is_plain = np.array([system.gram.low is None for system in solutions.systems])
    if is_plain.any():
        vectors = _vectors(solutions.hi[is_plain], int(folds.fit_intercept)).T
        results = [squares(gram, vectors) for gram in grams]
        out[:, is_plain] = [values for values, _ in results]
        is_plain[is_plain] = np.logical_and(*(trusted for _, trusted in results))
    if not is_plain.all():
        exact = folds.pair(split, twofold=True)
        for i in np.flatnonzero(~is_plain).tolist():
            gram = solutions.systems[i].gram
            hi, lo = _vectors(np.array([solutions.hi[i], solutions.lo[i]]), int(folds.fit_intercept))
            lo[-1] = 0.0
            out[:, i] = exact_squares(exact, (hi, lo), None if gram.low is not None else gram.scaling)
    return out


def _fits_of(folds: FoldEquations, split: int, solutions: Solutions) -> Fits:
    """The solutions of a split for rows in the user's units."""
    offset = int(folds.fit_intercept)
    fits = [
        in_units(system.gram.scaling, solution[offset:], solution[0] if offset else None)
        for system, solution in zip(solutions.systems, solutions.hi + solutions.lo, strict=True)
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
    residuals = partial(_residuals_of_split, stretch, splits, fits)
    return list(suited_map(stretch.n_rows)(residuals, range(len(fits))))


def _residuals_of_split(stretch: Block, splits: Splits, fits: Sequence[Fits], split: int) -> HeldOut:
    assert stretch.y is not None
    keep, weight = validating(stretch, splits, split)
    y, (coef, intercepts) = stretch.y[keep], fits[split]
    scores = np.zeros((0, len(coef)))
    if len(y):
        scores = core.linear_scores(stretch.where(keep).rows, coef, intercepts, n_threads())
    residuals = np.ascontiguousarray((y[:, None] - scores).T)
    return HeldOut(numbers_where(stretch, keep), weight, y, {"residual": residuals})


def _vectors(solutions: Array, offset: int) -> Array:
    """v = (-w, -b, 1) in the order of the Gram statistic (columns, 1, target), a row per solution."""
    n, d = len(solutions), solutions.shape[1] - offset
    out = np.zeros((n, d + 2))
    out[:, :d] = -solutions[:, offset:]
    if offset:
        out[:, d] = -solutions[:, 0]
    out[:, d + 1] = 1.0
    return out


def exact_squares(exact: tuple[Gram, Gram], v: dd.Pair, scaling: Scaling | None) -> list[float]:
    """v'S v of the training and the validation rows from twofold sums. scaling: of v where it is not that of the sums.

    With an intercept shifts differ:
    b + w'(x - old) - y_old = (b - w'(old - new) - (y_old - y_new)) + w'(x - new) - y_new; in v stand -w and -b
    """
    (hi, lo), new, d = v, exact[0].scaling, exact[0].n_columns
    if scaling is not None and (scaling.y_shift != new.y_shift or (scaling.shift != new.shift).any()):
        hi, lo = hi.copy(), lo.copy()
        change = dd.dot(hi[:d], scaling.shift - new.shift)
        total = dd.add((hi[d : d + 1], lo[d : d + 1]), (np.array([-change[0]]), np.array([-change[1]])))
        hi[d : d + 1], lo[d : d + 1] = dd.add(total, (np.array([new.y_shift - scaling.y_shift]), np.zeros(1)))
    return [twofold_squares(gram, hi, lo) for gram in exact]


def squares(gram: Gram, vectors: Array) -> tuple[Array, Array]:
    """v'S v of every column of `vectors`, and whether rounding leaves it the wanted digits."""
    values = np.einsum("da,da->a", vectors, gram.sums @ vectors)
    sizes = np.sqrt(np.maximum(gram.sums.diagonal(), 0.0)) @ np.abs(vectors)
    return np.maximum(values, 0.0), ROUNDING * sizes**2 <= DIGITS * values


def twofold_squares(gram: Gram, hi: Array, lo: Array) -> float:
    """v'S v in twofold precision."""
    assert gram.low is not None
    products = dd.multiply((gram.sums, gram.low), (hi, lo))
    rows = dd.multiply(_sum_rows(products), (hi, lo))
    total = _sum_rows((rows[0][None, :], rows[1][None, :]))
    return max(float(total[0][0]), 0.0)


def _sum_rows(pair: dd.Pair) -> dd.Pair:
    """Sums along the last axis, by halves."""
    hi, lo = pair
    while hi.shape[1] > 1:
        if hi.shape[1] % 2:
            hi, lo = (np.concatenate([part, np.zeros((len(part), 1))], axis=1) for part in (hi, lo))
        half = hi.shape[1] // 2
        hi, lo = dd.add((hi[:, :half], lo[:, :half]), (hi[:, half:], lo[:, half:]))
    return hi[:, 0], lo[:, 0]
