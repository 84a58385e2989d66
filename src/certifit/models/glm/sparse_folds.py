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
FORCING = 0.03  # residual of a Newton system, relative, that its step may have
MOST_STEPS, MOST_PRODUCTS_OF_STEP = 50, 100
ARMIJO, SHORTEST = 1e-4, 1e-10
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
        self.X, self.transposed = X, sp.csr_array(X.T)
        self.squares = sp.csr_array(self.transposed.multiply(self.transposed))
        self.codes, self.shares = codes.clip(0)[:, None], shares
        self.variances = np.ones((X.shape[1], shares.shape[1]))
        self.offset = 0.0 if offset is None else offset[:, None]

    def standardise(self) -> bool:
        """Penalise every weight by the variance of its column in the set, 1 where it does not vary; whether it can."""
        means, squares = self.transposed @ self.shares, self.squares @ self.shares
        variances = squares - np.square(means)
        is_constant = variances <= CONSTANT * squares
        self.variances = np.where(is_constant, 1.0, variances)
        return bool((is_constant | (variances > CANCELLED * squares)).all())

    def fits(self, alphas: Array) -> Iterator[tuple[Array, Array]]:
        """The minimisers along rows of falling alphas, one alpha per set."""
        point = np.zeros((self.X.shape[1] + 1, self.shares.shape[1]))
        means = (self.shares * self.codes).sum(axis=0)
        point[-1] = np.log(means) - np.log1p(-means)
        for alpha in alphas:
            point = self._minimised(point, alpha * self.variances)
            yield point[:-1], point[-1]

    def _minimised(self, point: Array, pull: Array) -> Array:
        """pull: twice the penalty of the square of every weight."""
        scores = self._scores(point) + self.offset
        value = self._value(point, scores, pull)
        for _ in range(MOST_STEPS):
            chances = _sigmoid(scores)
            gradient = self._back(self.shares * (chances - self.codes))
            gradient[:-1] += pull * point[:-1]
            step = self._newton_step(gradient, self.shares * chances * (1 - chances), pull)
            decrement = np.einsum("js,js->s", gradient, step)
            moving = decrement > DONE * value + ROUNDING
            if not moving.any():
                break
            lengths, along = np.where(moving, 1.0, 0.0), self._scores(step)
            while True:
                tried = self._value(point - lengths * step, scores - lengths * along, pull)
                too_long = moving & ~(tried <= value - ARMIJO * lengths * decrement)
                if not too_long.any():
                    break
                lengths = np.where(too_long, lengths / 2, lengths)
                lengths[lengths < SHORTEST] = 0.0
                moving &= lengths > 0
            if not moving.any():
                break
            point, scores, value = point - lengths * step, scores - lengths * along, np.where(moving, tried, value)
        return point

    def _newton_step(self, gradient: Array, curvature: Array, pull: Array) -> Array:
        """H^-1 gradient by conjugate gradients, preconditioned by the diagonal, of every set."""
        diagonal = np.vstack([self.squares @ curvature + pull, curvature.sum(axis=0)])
        diagonal = np.maximum(diagonal, np.finfo(np.float64).tiny)
        step, residual = np.zeros_like(gradient), gradient.copy()
        better = residual / diagonal
        way, size = better.copy(), np.einsum("js,js->s", residual, better)
        enough = FORCING**2 * size
        for _ in range(MOST_PRODUCTS_OF_STEP):
            product = self._back(curvature * self._scores(way))
            product[:-1] += pull * way[:-1]
            curved = np.einsum("js,js->s", way, product)
            length = np.divide(size, curved, out=np.zeros_like(size), where=(curved > 0) & (size > enough))
            step += length * way
            residual -= length * product
            better = residual / diagonal
            new = np.einsum("js,js->s", residual, better)
            if (new <= enough).all() or not length.any():
                break
            way = better + np.divide(new, size, out=np.zeros_like(size), where=size > 0) * way
            size = new
        return step

    def _scores(self, point: Array) -> Array:
        return np.asarray(self.X @ point[:-1] + point[-1])

    def _back(self, slopes: Array) -> Array:
        """X' times numbers of the rows, and their sums."""
        return np.vstack([self.transposed @ slopes, slopes.sum(axis=0)])

    def _value(self, point: Array, scores: Array, pull: Array) -> Array:
        losses = np.logaddexp(0.0, scores) - self.codes * scores
        return np.asarray((self.shares * losses).sum(axis=0) + (pull * np.square(point[:-1])).sum(axis=0) / 2)


def _sigmoid(z: Array) -> Array:
    small = np.exp(-np.abs(z))  # never overflows
    return np.asarray(np.where(z >= 0, 1.0, small) / (1 + small))
