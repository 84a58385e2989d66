"""Folds of logistic regression over many sparse columns, such as words: all training sets of a round at once.

    minimise over w, b:   sum_i v_i [log(1 + e^z_i) - y_i z_i] + alpha/2 sum_j s_j^2 w_j^2,   z_i = offset_i + b + x_i'w

for every split, v its shares of the weights and s 1, or the standard deviations of its training rows. Points of all
splits are the columns of one matrix, so that a product with the rows serves all of them; steps are Newton's by
conjugate gradients, and alphas fall, each fit from the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.models.folds import MOST_BYTES, Candidates, FoldWeights, Grid, RowFolds
from certifit.models.glm.folds import alpha_of, fold_columns, is_auto
from certifit.runtime import one_blas_thread

if TYPE_CHECKING:
    from certifit.models.glm.logistic import LogisticRegression

MOST_PRODUCTS = 1_000_000_000  # entries times fits: beyond, refits of fewer candidates are quicker
DONE, ROUNDING = 1e-9, 1e-16  # fits end where all decrements are so small, of the objectives or at all
FORCING = 0.1  # residual of a Newton system, relative, that its step may have
MOST_STEPS, MOST_PRODUCTS_OF_STEP = 50, 100
ARMIJO, SHORTEST = 1e-4, 1e-10
CONTINUED = 4  # minimisers before it that a fit of a path is begun from
CONSTANT, CANCELLED = 1e-13, 1e-6  # variances of so small a share of the mean square: of none, and of few digits


@one_blas_thread
def sparse_folds(probe: LogisticRegression, source: Source, rounds: Sequence[Splits], grid: Grid) -> RowFolds | None:
    """Fits of alphas to the training rows of all splits of two classes; None where each is to be fitted by itself."""
    is_plain = probe.penalty_factors is None and probe.bounds is None and probe.start is None
    if not (is_plain and float(probe.l1_ratio) == 0 and is_auto(probe)):
        return None
    if not isinstance(grid, Candidates) or any(set(candidate) - {"alpha"} for candidate in grid.settings):
        return None
    mapped = None if not probe.fit_intercept or probe.class_weight is not None else fold_columns(probe, source)
    if mapped is None or not rounds:
        return None
    block = _sparse_rows(mapped)
    alphas = [alpha_of(probe, candidate) for candidate in grid.settings]
    n_fits = len(alphas) * sum(splits.n_splits for splits in rounds)
    if block is None or block.X.nnz * n_fits > MOST_PRODUCTS or 8 * mapped.n_features * n_fits > MOST_BYTES:
        return None
    states = []
    for splits in rounds:
        fits = _round_fits(block, splits, alphas, bool(probe.standardize))
        if fits is None:
            return None
        states.append([[probe.fold_state(fit) for fit in of_alpha] for of_alpha in fits])
    return RowFolds(mapped, rounds, states, {}, is_coded=True)


def _sparse_rows(mapped: Source) -> Block | None:
    """All rows, where they are sparse and can be held."""
    if all(segment[0] != "csr" for segment in mapped.first_block().rows):
        return None
    try:
        block = mapped.gather(MOST_BYTES, keeps_sparse=True)
    except MemoryError:
        return None
    return block if sp.issparse(block.X) and np.isfinite(block.X.data).all() else None


def _round_fits(
    block: Block, splits: Splits, alphas: Sequence[float | None], standardize: bool
) -> list[list[FoldWeights]] | None:
    """Fits by alpha and split; None without a penalty, and where variances cancel."""
    codes: Array = np.asarray(block.y)
    weight = np.ones(len(codes)) if block.weight is None else block.weight
    times = np.hstack([splits.train, np.zeros((splits.n_splits, 1))])[:, splits.cells.of(block)]  # NO_CELL is the last
    weights = (times * np.where(codes >= 0, weight, 0.0)).T
    totals = weights.sum(axis=0)
    strengths = np.array([1 / totals if alpha is None else np.full(splits.n_splits, alpha) for alpha in alphas])
    if not (strengths > 0).all() or not (totals > 0).all():
        return None
    path = SparsePath(sp.csr_array(block.X), codes, weights / totals, block.offset)
    if standardize and not path.standardise():
        return None
    order = np.argsort(-strengths.mean(axis=1), kind="stable")
    fits: list[list[FoldWeights]] = [[] for _ in alphas]
    for at, (coef, intercept) in zip(order.tolist(), path.fits(strengths[order]), strict=True):
        if not np.isfinite(coef).all():
            return None
        fits[at] = [FoldWeights(np.ascontiguousarray(coef[:, s]), float(intercept[s])) for s in range(splits.n_splits)]
    return fits


class SparsePath:
    """Logistic fits of several training sets. A point is (columns + 1) x sets, the intercepts last."""

    def __init__(self, X: Any, codes: Array, shares: Array, offset: Array | None) -> None:
        with_ones = sp.csr_array(sp.hstack([X, np.ones((X.shape[0], 1))], format="csr"))
        self.X, self.transposed = with_ones, sp.csr_array(with_ones.T)
        self.squares = sp.csr_array(self.transposed.multiply(self.transposed))
        self.codes, self.shares = codes.clip(0)[:, None], shares
        self.variances = np.ones((self.X.shape[1], shares.shape[1]))  # none of the intercept is penalised
        self.variances[-1] = 0.0
        self.offset = 0.0 if offset is None else offset[:, None]

    def standardise(self) -> bool:
        """Penalise every weight by the variance of its column in the set, 1 where it does not vary; whether it can."""
        means, squares = (self.transposed @ self.shares)[:-1], (self.squares @ self.shares)[:-1]
        variances = squares - np.square(means)
        is_constant = variances <= CONSTANT * squares
        self.variances[:-1] = np.where(is_constant, 1.0, variances)
        return bool((is_constant | (variances > CANCELLED * squares)).all())

    def fits(self, alphas: Array) -> Iterator[tuple[Array, Array]]:
        """The minimisers along rows of falling alphas, one alpha per set."""
        point = np.zeros((self.X.shape[1], self.shares.shape[1]))
        means = (self.shares * self.codes).sum(axis=0)
        point[-1] = np.log(means) - np.log1p(-means)
        before: list[tuple[Array, Array]] = []  # the last (log alpha, minimiser)
        for alpha in alphas:
            point = self._minimised(point, _continued(before, np.log(alpha)), alpha * self.variances)
            before = [*before[1 - CONTINUED :], (np.log(alpha), point)]
            yield point[:-1], point[-1]

    def _minimised(self, point: Array, guess: Array | None, pull: Array) -> Array:
        """From a point, of each set from a guess where that is better. pull: twice the penalty of a weight's square."""
        scores = self.X @ point + self.offset
        value = self._value(point, scores, pull)
        if guess is not None:
            guessed = self.X @ guess + self.offset
            tried = self._value(guess, guessed, pull)
            is_better = tried < value
            point, scores = np.where(is_better, guess, point), np.where(is_better, guessed, scores)
            value = np.where(is_better, tried, value)
        for _ in range(MOST_STEPS):
            chances = _sigmoid(scores)
            gradient = self.transposed @ (self.shares * (chances - self.codes))
            gradient += pull * point
            step = self._newton_step(gradient, self.shares * chances * (1 - chances), pull)
            decrement = np.einsum("js,js->s", gradient, step)
            is_last = bool((decrement <= DONE * value + ROUNDING).all())
            moving = decrement > 0
            lengths, along = np.where(moving, 1.0, 0.0), self.X @ step
            while True:
                tried = self._value(point - lengths * step, scores - lengths * along, pull)
                too_long = moving & ~(tried <= value - ARMIJO * lengths * decrement)
                if not too_long.any():
                    break
                lengths = np.where(too_long, lengths / 2, lengths)
                lengths[lengths < SHORTEST] = 0.0
                moving &= lengths > 0
            point, scores, value = point - lengths * step, scores - lengths * along, np.where(moving, tried, value)
            if is_last or not moving.any():
                break
        return point

    def _newton_step(self, gradient: Array, curvature: Array, pull: Array) -> Array:
        """H^-1 gradient by conjugate gradients, preconditioned by the diagonal, of every set.

        Vectors are as long as there are words: they are changed in place, since new ones take longer than the products.
        """
        diagonal = self.squares @ curvature
        diagonal += pull
        np.maximum(diagonal, np.finfo(np.float64).tiny, out=diagonal)
        step, residual = np.zeros_like(gradient), gradient.copy()
        better = residual / diagonal
        way, size = better.copy(), np.einsum("js,js->s", residual, better)
        times = np.empty_like(way)  # a number times a vector
        enough = FORCING**2 * size
        for _ in range(MOST_PRODUCTS_OF_STEP):
            scores = self.X @ way
            scores *= curvature
            product = self.transposed @ scores
            product += np.multiply(pull, way, out=times)
            curved = np.einsum("js,js->s", way, product)
            length = np.divide(size, curved, out=np.zeros_like(size), where=(curved > 0) & (size > enough))
            step += np.multiply(length, way, out=times)
            residual -= np.multiply(length, product, out=times)
            np.divide(residual, diagonal, out=better)
            new = np.einsum("js,js->s", residual, better)
            if (new <= enough).all() or not length.any():
                break
            way *= np.divide(new, size, out=np.zeros_like(size), where=size > 0)
            way += better
            size = new
        return step

    def _value(self, point: Array, scores: Array, pull: Array) -> Array:
        losses = np.logaddexp(0.0, scores) - self.codes * scores
        return np.asarray((self.shares * losses).sum(axis=0) + np.einsum("js,js,js->s", pull, point, point) / 2)


def _continued(before: list[tuple[Array, Array]], log_alpha: Array) -> Array | None:
    """The polynomial through the last minimisers as functions of log alpha, at the next one; None of fewer than two."""
    if len(before) < 2:
        return None
    guess = np.zeros_like(before[0][1])
    for i, (at, point) in enumerate(before):
        share = np.ones_like(at)
        for j, (other, _) in enumerate(before):
            if j != i:
                with np.errstate(divide="ignore", invalid="ignore"):
                    share = share * (log_alpha - other) / (at - other)
        guess += share * point
    return guess if np.isfinite(guess).all() else None  # an alpha may be asked for twice


def _sigmoid(z: Array) -> Array:
    small = np.exp(-np.abs(z))  # never overflows
    return np.asarray(np.where(z >= 0, 1.0, small) / (1 + small))
