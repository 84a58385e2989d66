"""Linear machines of squared slacks on all training sets and all alphas, where rows are few beside the columns.

The best weights are sums of rows, w = sum_i beta_i x_i, so all fits read one matrix of products of rows, G. A whole
step of Newton's method, from the rows A that have slack, solves

    G_AA beta + b + beta / (2 C) = y,    sum_i beta_i = 0 (with b),    beta_i = 0 of the other rows

and is exact once A stays. The machines of all classes and alphas take their steps together. No fit has a certificate,
but each has a duality gap: where one is above tol, or scores are not known to SHARP, every training set is refitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Block, Memory, Source
from certifit.models.classifier import codes_of
from certifit.models.folds import MOST_BYTES, KnownScores, RowFolds, RowState
from certifit.models.linear_svm.task import moments
from certifit.models.svm.base import class_scores
from certifit.runtime import one_blas_thread
from certifit.statistics.residual import UNIT

MOST_ROWS = 500  # of a system that is solved for every machine
MOST_NUMBERS = 1 << 21  # of systems that are solved together: 16 MB
LEAST_STEP = 1e-12
SHARP = 1e-3  # of a score, beside the margin: a bound, mostly a hundred times what is off


@dataclass(frozen=True)
class LinearPart:
    """Candidates that differ in alpha alone. places: theirs in the grid."""

    places: list[int]
    alphas: list[float | None]
    has_intercept: bool
    standardize: bool
    tol: float
    max_iter: int


def linear_folds(
    parts: Sequence[LinearPart], source: Source, rounds: Sequence[Splits], n_classes: int
) -> RowFolds | None:
    """Fits of all candidates to all training sets of few rows; None where one is to be refitted."""
    if not rounds:
        return RowFolds(source, [], [], {}, is_coded=True, route="refits")
    block = source.gather(keeps_sparse=True)
    n_candidates = sum(len(part.places) for part in parts)
    n_scores = block.n_rows * n_classes * n_candidates * sum(splits.n_splits for splits in rounds)
    is_finite = bool(np.isfinite(block.X).all())
    if not is_finite or 8.0 * n_scores > MOST_BYTES or (codes_of(block) < 0).any():
        return None
    tables = []
    for splits in rounds:
        table: list[list[RowState | None]] = [[None] * splits.n_splits for _ in range(n_candidates)]
        for part in parts:
            if not _fill(table, part, block, splits, n_classes):
                return None
        tables.append(table)
    numbers = Memory.of(replace(block, X=np.arange(float(block.n_rows))[:, None]))
    return RowFolds(numbers, rounds, tables, {}, is_coded=True, route="refits")


def are_few(source: Source) -> bool:
    """Whether rows are in memory, dense, and no more than columns."""
    X = source.block.X if isinstance(source, Memory) else None
    return isinstance(X, np.ndarray) and X.dtype.kind in "fiub" and X.shape[0] <= min(X.shape[1], MOST_ROWS)


@np.errstate(all="ignore")  # what overflows has no gap that is small enough, and is refitted
@one_blas_thread
def _fill(table: list[list[RowState | None]], part: LinearPart, block: Block, splits: Splits, n_classes: int) -> bool:
    """Put the fits of some candidates into the table; False where a training set is to be refitted."""
    X, codes = np.asarray(block.X, dtype=np.float64), codes_of(block)
    weight = np.ones(block.n_rows) if block.weight is None else np.asarray(block.weight, dtype=np.float64)
    centred = X - X.mean(axis=0) if part.has_intercept else X  # an intercept takes the means up
    cells = splits.cells.of(block)
    products = None if part.standardize else centred @ centred.T
    for split, times in enumerate(splits.train):
        mass = np.append(times, 0.0)[cells] * weight
        trained = np.flatnonzero(mass > 0)
        if len(np.unique(codes[trained])) < n_classes:
            return False
        G, spread = products, np.ones(X.shape[1])
        if G is None:
            spread = moments(X[trained], mass[trained] / mass.sum(), part.has_intercept)[1]
            seen = centred / spread
            G = seen @ seen.T
        # What a score of weights in the units of the columns is rounded by, beside the length of those of `seen`.
        rounding = (len(spread) + 8) * UNIT * float(np.linalg.norm(np.abs(X).max(axis=0) / spread))
        fits = _fits(part, G, X.shape[1], codes, mass, trained, n_classes, rounding)
        if fits is None:
            return False
        for place, scores in zip(part.places, fits, strict=True):
            table[place][split] = KnownScores(scores)
    return True


def _fits(
    part: LinearPart,
    G: Array,
    n_columns: int,
    codes: Array,
    mass: Array,
    trained: Array,
    n_classes: int,
    rounding: float,
) -> list[Array] | None:
    """Scores of all rows by the fit of every alpha; None where a gap is too large, or scores are not known.

    G: products of rows of so many columns. rounding: of a score beside the length of the weights.
    """
    total = float(mass.sum())
    alphas = np.array([1.0 / total if alpha is None else alpha for alpha in part.alphas])
    classes = np.array([1]) if n_classes == 2 else np.arange(n_classes)
    y = np.tile(np.where(codes[trained] == classes[:, None], 1.0, -1.0), (len(alphas), 1))
    bound = np.repeat(mass[trained] / (total * alphas[:, None]), len(classes), axis=0)
    inner = G[np.ix_(trained, trained)]
    at_once = max(1, MOST_NUMBERS // (len(trained) + 1) ** 2)
    parts = []
    for begin in range(0, len(y), at_once):
        some = slice(begin, begin + at_once)
        machines = Machines(inner, y[some], bound[some], part.has_intercept)
        try:
            machines.solve(part.max_iter)
        except np.linalg.LinAlgError:  # copies of rows beside an alpha that is lost in their squares
            return None
        if not (machines.gaps() <= part.tol).all():
            return None
        scores = machines.beta @ G[trained]
        lengths = np.sqrt(np.maximum((machines.beta * machines.product).sum(axis=1), 0.0))
        off = machines.off(np.diagonal(G), n_columns) + rounding * lengths[:, None]
        if not (off <= SHARP * (1 + np.abs(scores))).all():
            return None
        parts.append(scores + machines.b[:, None])
    z = np.concatenate(parts).reshape(len(alphas), len(classes), -1)
    return [class_scores(of_alpha.T, n_classes, "one-vs-rest") for of_alpha in z]


class Machines:
    """Machines on the same rows: y and bound are machines x rows. beta, b: where they are; z: their scores."""

    def __init__(self, G: Array, y: Array, bound: Array, has_intercept: bool) -> None:
        self.G, self.y, self.bound, self.has_intercept = G, y, bound, has_intercept
        self.beta = np.zeros(y.shape)
        # Every row has slack at w = 0 and the mean of y, where the intercept is best.
        self.b = (bound * y).sum(axis=1) / bound.sum(axis=1) if has_intercept else np.zeros(len(y))
        self.z = np.broadcast_to(self.b[:, None], y.shape).copy()
        self.product = np.zeros(y.shape)  # G beta

    def solve(self, max_iter: int) -> None:
        """Steps of every machine until its objective no longer falls, or the rows with slack stay."""
        going = np.arange(len(self.y))
        active = self.y * self.z < 1
        value = self._values(going, self.beta, self.product, self.z)
        for _ in range(max_iter):
            beta, b = self._newton(going, active)
            step, size_b = beta - self.beta[going], b - self.b[going]
            along = step @ self.G
            size, new = self._searched(going, step, along, along + size_b[:, None], value)
            is_lower = size > 0
            going, size, value = going[is_lower], size[is_lower], new[is_lower]
            step, along, size_b = step[is_lower], along[is_lower], size_b[is_lower]
            self.beta[going] += size[:, None] * step
            self.product[going] += size[:, None] * along
            self.b[going] += size * size_b
            self.z[going] += size[:, None] * (along + size_b[:, None])
            now = self.y[going] * self.z[going] < 1
            is_there = (size == 1) & (now == active[is_lower]).all(axis=1)
            going, value, active = going[~is_there], value[~is_there], now[~is_there]
            if not len(going):
                break

    def gaps(self) -> Array:
        """Objectives less lower bounds, relative to the objectives."""
        every, self.product = np.arange(len(self.y)), self.beta @ self.G  # without the roundings of the steps
        self.z = self.product + self.b[:, None]
        value = self._values(every, self.beta, self.product, self.z)
        a = self.multipliers
        if self.has_intercept:  # the larger side shrinks to the sum of the other
            sides = [np.where(self.y > 0, a, 0.0).sum(axis=1), np.where(self.y < 0, a, 0.0).sum(axis=1)]
            least = np.minimum(*sides)
            shares = [np.divide(least, side, out=np.zeros(len(side)), where=side > 0) for side in sides]
            a = a * np.where(self.y > 0, shares[0][:, None], shares[1][:, None])
        signed = self.y * a
        squares = (signed * (signed @ self.G)).sum(axis=1)
        dual = (a - a**2 / (4 * self.bound)).sum(axis=1) - squares / 2
        gap = np.divide(value - dual, value, out=np.zeros(len(value)), where=value != 0)
        return np.where(np.isnan(gap), np.inf, gap)

    @property
    def multipliers(self) -> Array:
        """The slopes of the slacks."""
        return np.asarray(2 * self.bound * np.maximum(1 - self.y * self.z, 0.0))

    def off(self, squares: Array, n_columns: int) -> Array:
        """How far from the best scores those of rows of these squares can be; infinite where that is not known.

        The slopes at the state are -2 sum_i C_i m_i (x_i, 1) + rest: m_i is what the equations of rows with slack miss
        by, roundings of scores included, as many that are independent; the rest has the betas of other rows, and beside
        b the sum of all. As long as the rows with slack keep it, on the step (d, e) to the best weights and with t^2 =
        sum_i C_i (x_i'd + e)^2 over them,

            |d|^2 + 2 t^2 <= 2 t sqrt(sum_i C_i m_i^2) + |rest'(d, e)|,   |e| <= t / sqrt(C_i) + |x_i| |d| for each
        """
        slack, lengths, roots = 1 - self.y * self.z, np.sqrt(self.G.diagonal()), np.sqrt(self.bound)
        # Of a product of rows that were moved, in sums of eight lanes or more, and of sums of products.
        has_slack, unit = slack > 0, (3 + np.sqrt(n_columns + len(lengths)) / 8) * UNIT
        lost = unit * np.sqrt(self.beta**2 @ lengths**2)[:, None]
        lost_b = 4 * UNIT * (1 + np.abs(self.b))[:, None]
        rounding = lost * lengths + lost_b
        missing = np.abs(self.y * self.multipliers - self.beta) / (2 * self.bound) + rounding
        of_t = 2 * np.sqrt(np.sum(self.bound * np.where(has_slack, missing, 0.0) ** 2, axis=1))
        others = np.where(has_slack, 0.0, np.abs(self.beta))
        of_d, row = others @ lengths, (np.zeros(len(of_t)), np.zeros(len(of_t)))  # 1 / sqrt(C_i) and |x_i| of one row
        if self.has_intercept:
            near = np.where(has_slack, 1 / roots + lengths, np.inf).argmin(axis=1)
            row = 1 / roots[np.arange(len(near)), near], lengths[near]
            of_e = np.abs(self.beta.sum(axis=1)) + others.sum(axis=1) + UNIT * np.abs(self.beta).sum(axis=1)
            of_t, of_d = of_t + of_e * row[0], of_d + of_e * row[1]
        t, d = of_t / 2 + of_d / np.sqrt(8), of_d + of_t / np.sqrt(8)
        is_clear = np.abs(slack) >= 2 * np.where(has_slack, t[:, None] / roots, 0.0) + rounding
        off = (d[:, None] + lost) * np.sqrt(squares) + (t * row[0] + d * row[1])[:, None] + lost_b
        return np.where((is_clear.all(axis=1) & has_slack.any(axis=1))[:, None], off, np.inf)

    def _values(self, going: Array, beta: Array, product: Array, z: Array) -> Array:
        slack = np.maximum(1 - self.y[going] * z, 0.0)
        return np.asarray((beta * product).sum(axis=1) / 2 + (self.bound[going] * slack**2).sum(axis=1))

    def _newton(self, going: Array, active: Array) -> tuple[Array, Array]:
        """beta and b that a whole step leads to; b stays where no row has slack."""
        n_rows = self.y.shape[1]
        side = n_rows + 1 if self.has_intercept else n_rows
        system, right = np.zeros((len(going), side, side)), np.zeros((len(going), side))
        inner, place = system[:, :n_rows, :n_rows], np.arange(n_rows)
        np.multiply(self.G, active[:, None, :], out=inner)
        inner *= active[:, :, None]
        inner[:, place, place] += np.where(active, 0.5 / self.bound[going], 1.0)
        right[:, :n_rows] = np.where(active, self.y[going], 0.0)
        if self.has_intercept:
            system[:, :n_rows, -1] = system[:, -1, :n_rows] = active
            is_alone = ~active.any(axis=1)
            system[:, -1, -1], right[:, -1] = is_alone, np.where(is_alone, self.b[going], 0.0)
        solution = np.linalg.solve(system, right[:, :, None])[:, :, 0]
        return solution[:, :n_rows], solution[:, -1] if self.has_intercept else np.zeros(len(going))

    def _searched(self, going: Array, step: Array, along: Array, change: Array, value: Array) -> tuple[Array, Array]:
        """Of every machine the longest of the steps 1, 1/2, ... that lowers its objective, 0 where none does."""
        size, new = np.ones(len(going)), value
        slope = 2 * self.bound[going] * np.maximum(1 - self.y[going] * self.z[going], 0.0) * self.y[going]
        fall = (slope * change).sum(axis=1) - (self.beta[going] * along).sum(axis=1)
        is_over = np.zeros(len(going), dtype=bool)
        while True:
            beta = self.beta[going] + size[:, None] * step
            product = self.product[going] + size[:, None] * along
            new = self._values(going, beta, product, self.z[going] + size[:, None] * change)
            is_lower = new < value
            is_over |= ~is_lower & (size < 1) & ((size <= LEAST_STEP) | ~(size * fall > UNIT * value))
            if (is_lower | is_over).all():
                return np.where(is_lower, size, 0.0), new
            size = np.where(is_lower | is_over, size, size / 2)
