"""Forward and backward selection by sweeps over Gram matrices.

First what every split needs, centred matrices of training and validation rows, made in one pass; then the sweeps, which
read no row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import blas
from sklearn.base import BaseEstimator

from certifit.data.columns import Array
from certifit.models.adapter import learner_of
from certifit.models.folds import Subsets
from certifit.models.least_squares.fold_path import FoldEquations, fold_path, safe_unit, spread
from certifit.models.least_squares.folds import NumberFolds
from certifit.models.least_squares.normal_equations import penalty_units
from certifit.runtime import one_blas_thread
from certifit.selection.folds.rows import Rows
from certifit.selection.folds.splits import UserSplits, rounds_of
from certifit.statistics.gram import Gram


class FoldSystems:
    """Sums over the training and the validation rows of K splits, columns and target about the TRAINING means.

    names: of the d columns. features: (name, places of its columns); the levels of a category go together.
    train (K, d, d), train_y (K, d), train_yy (K,): sums of w (x - m)(x - m)', w (x - m)(y - my), w (y - my)^2; a ridge
    penalty is on the diagonal of train. validation, validation_y, validation_yy: the same over validation rows, without
    a penalty. train_weight, validation_weight (K,): sums of weights. validation_total, train_total (K,): sums of
    w (y - mean)^2 about the mean of their own rows. Columns and target are scaled by powers of two;
    squares times y_unit are in the user's units.
    """

    def __init__(self, folds: FoldEquations, alpha: float | None, features: list[tuple[str, list[int]]]) -> None:
        self._folds, self._alpha = folds, alpha
        self.names, self.features = list(folds.names), features
        d, n_splits = len(self.names), folds.n_splits
        self.train, self.validation = np.zeros((n_splits, d, d)), np.zeros((n_splits, d, d))
        self.train_y, self.validation_y = np.zeros((n_splits, d)), np.zeros((n_splits, d))
        self.train_yy, self.validation_yy = np.zeros(n_splits), np.zeros(n_splits)
        self.train_weight, self.validation_weight = np.zeros(n_splits), np.zeros(n_splits)
        self.train_total, self.validation_total = np.zeros(n_splits), np.zeros(n_splits)
        for k in range(n_splits):
            self._fill(k)

    def _fill(self, k: int) -> None:
        train, validation = self._folds.pair(k)
        s = train.scaling
        self.y_unit, self.in_units = safe_unit(train.y_unit)
        d = train.n_columns
        mean = np.zeros(d + 1)
        if self._folds.fit_intercept:
            mean = train.sums[d, [*range(d), d + 1]] / train.sum_weight
        self.train[k], self.train_y[k], self.train_yy[k] = _about(train, mean)
        self.validation[k], self.validation_y[k], self.validation_yy[k] = _about(validation, mean)
        alpha = s.weight_scale / train.sum_weight if self._alpha is None else self._alpha
        units = penalty_units(train, self._folds.fit_intercept, self._folds.standardize)
        with np.errstate(over="ignore", under="ignore"):
            self.train[k][np.arange(d), np.arange(d)] += alpha * train.sum_weight * units**2
        weights = (gram.sum_weight / s.weight_scale for gram in (train, validation))
        self.train_weight[k], self.validation_weight[k] = weights
        self.train_total[k], self.validation_total[k] = spread(train), spread(validation)

    @one_blas_thread
    def exact(self, columns: Sequence[int], splits: Sequence[int] | None = None) -> tuple[Array, Array]:
        """Squares on the training and the validation rows of the fit to some columns: those of a refit, scaled.

        splits: those wanted, all by default.
        """
        chosen = self._folds.taken(np.sort(np.asarray(columns, dtype=np.int64)), splits)
        path = fold_path(chosen, [self._alpha])
        return path.train[0] / self.y_unit, path.validation[0] / self.y_unit


def fold_systems(
    estimator: BaseEstimator, rows: Rows, cv: UserSplits, groups: Mapping[str, Sequence[int]] | None = None
) -> FoldSystems | None:
    """The systems of an estimator on rows, or None where sums do not determine its fits.

    groups: features of several columns by name; other columns are features of their own. A table's columns go by
    what they were made of.
    """
    if not learner_of(estimator).is_ours:
        return None
    rounds = rounds_of(cv, rows.source, rows.labels, rows.groups)
    states = estimator.folds(rows.source, rounds, Subsets(rows.classes), rows.shared)
    if not isinstance(states, NumberFolds):
        return None
    (part,) = states.parts
    if part.equations is None:
        return None
    return FoldSystems(part.equations, part.alphas[0], _features(part.model, part.equations.names, groups))


def _features(
    model: BaseEstimator, names: Sequence[str], groups: Mapping[str, Sequence[int]] | None
) -> list[tuple[str, list[int]]]:
    if groups is None and model.encoder_ is not None and model.basis_ is None:
        place = {name: j for j, name in enumerate(names)}
        return [(column, [place[name] for name in made]) for column, made in model.encoder_.groups_]
    named = {} if groups is None else {name: list(places) for name, places in groups.items()}
    taken = {j for places in named.values() for j in places}
    alone = [(name, [j]) for j, name in enumerate(names) if j not in taken]
    return sorted([*named.items(), *alone], key=lambda feature: feature[1][0])


def _about(gram: Gram, mean: Array) -> tuple[Array, Array, float]:
    """Sums about given means of the columns and the target, in the units and shifts of the statistic."""
    d = gram.n_columns
    at = np.concatenate([np.arange(d), [d + 1]])
    sums, total = gram.sums[d, at], gram.sum_weight
    about = gram.sums[np.ix_(at, at)] - np.outer(sums, mean) - np.outer(mean, sums) + total * np.outer(mean, mean)
    return about[:d, :d], about[:d, d], max(float(about[d, d]), 0.0)


# ---- sweeps ----------------------------------------------------------------------------------------------------------
# Per fold, with X~ the columns left over after the chosen ones are projected out on the TRAINING rows:
#
#     R = X~'X~ and r = X~'y        over training rows
#     V = X~'X~ and c = X~'res      over validation rows, res the residual of the current fit there
#     e = res'res                   over validation rows
#
# Adding a block B of columns, t = R_BB^-1 r_B:      e - 2 t'c_B + t'V_BB t           and with T = R_BB^-1 R_B.
#     R - R_.B T    r - T'r_B    V - T'V_B. - V_.B T + T'V_BB T    c - V_.B t - T'(c_B - V_BB t)
#
# Dropping a block from a fit of all columns is the same elimination, started at A = R^-1, b = A r, M = A V A,
# h = A (X'res): put (A, b, M, -h) in the place of (R, r, V, c).
#
# A ridge penalty stands on the diagonal of R from the start.

NEAR = 1e-10  # a column whose square left over is a smaller share than this adds nothing
CONSTANT = 1e-12  # a smaller share than this of a column's squares on the training rows: constant there
ROUNDING = 1e-26  # a smaller share than this of the largest column's squares: constant in all rows
REFACTOR = 50  # steps after which rounding is wiped off by starting again from the Gram matrices
INFLATED = 1e6  # variance inflation from which every step of a backward sweep starts again
SHARP = 1e-12  # share of the squares of y that losses of well-conditioned columns are known to
TINY_RIDGE = 1e-9  # share of the diagonal that stands in for the smallest norm where columns are dependent


class Systems(Protocol):
    """What a sweep needs: sums over the rows of K folds about the training means. See `FoldSystems`."""

    @property
    def train(self) -> Array:
        """X'X of the training rows, with the penalty on the diagonal: K x d x d."""

    @property
    def train_y(self) -> Array:
        """X'y of the training rows: K x d."""

    @property
    def train_yy(self) -> Array:
        """y'y of the training rows."""

    @property
    def validation(self) -> Array:
        """X'X of the validation rows."""

    @property
    def validation_y(self) -> Array:
        """X'y of the validation rows."""

    @property
    def validation_yy(self) -> Array:
        """y'y of the validation rows."""


class Losses(NamedTuple):
    """Squares of the residuals over validation rows, and squares plus penalty over training rows."""

    validation: Array
    train: Array


class _Sweep:
    """The elimination that both directions share."""

    step = 0.0  # -1: blocks enter the model, +1: blocks leave it

    def __init__(self, systems: Systems) -> None:
        self.systems = systems
        self.resolution = SHARP  # candidates closer than this share of the squares of y count as equal
        self._n_steps = 0

    @property
    def losses(self) -> Losses:
        """Of the current columns; one number per fold."""
        return Losses(np.maximum(self._e, 0.0), np.maximum(self._f, 0.0))

    def candidates(self, blocks: Sequence[Sequence[int]]) -> Losses:
        """Losses after the next step with each block of columns: arrays of blocks x folds."""
        validation = np.empty((len(blocks), len(self._e)))
        train = np.empty_like(validation)
        for size in sorted({len(block) for block in blocks}):
            at = [i for i, block in enumerate(blocks) if len(block) == size]
            places = self._places(np.array([blocks[i] for i in at]).ravel()).reshape(len(at), size)
            validation[at], train[at] = self._single(places[:, 0]) if size == 1 else self._several(places)
        return Losses(np.maximum(validation, 0.0), np.maximum(train, 0.0))

    def _single(self, at: Array) -> Losses:
        squares, r = self._R[:, at, at], self._r[:, at]
        is_new = squares > self._floor[:, at]
        t = np.where(is_new, r, 0.0) / np.where(is_new, squares, 1.0)
        validation = self._e[:, None] + t * (t * self._V[:, at, at] - 2 * self._c[:, at])
        return Losses(validation.T, (self._f[:, None] + self.step * t * r).T)

    def _several(self, places: Array) -> Losses:
        rows, columns = places[:, :, None], places[:, None, :]
        floor, r = self._floor[:, places], self._r[:, places]
        block, is_new = _independent(self._R[:, rows, columns], floor)
        t = np.linalg.solve(block, np.where(is_new, r, 0.0)[..., None])
        curved = (self._V[:, rows, columns] @ t - 2 * self._c[:, places][..., None]) * t
        gain = (t[..., 0] * r).sum(axis=-1)
        return Losses((self._e[:, None] + curved.sum(axis=(-2, -1))).T, (self._f[:, None] + self.step * gain).T)

    def _eliminate(self, places: Array) -> None:
        """Project the columns at `places` out of all others."""
        block, is_new = _independent(self._R[:, places[:, None], places], self._floor[:, places])
        left = np.where(is_new[..., None], self._R[:, places], 0.0)
        r = np.where(is_new, self._r[:, places], 0.0)[..., None]
        T, t = np.linalg.solve(block, left), np.linalg.solve(block, r)
        rows = self._V[:, places]
        square, c = rows[:, :, places], self._c[:, places][..., None]
        self._e += (t * (square @ t - 2 * c)).sum(axis=(1, 2))
        self._f += self.step * (t * r).sum(axis=(1, 2))
        down = T.transpose(0, 2, 1)
        self._c -= (rows.transpose(0, 2, 1) @ t + down @ (c - square @ t))[..., 0]
        self._r -= (down @ r)[..., 0]
        half = rows - square @ T / 2
        _subtract_product(self._R, T, left)
        _subtract_product(self._V, np.concatenate([T, half], axis=1), np.concatenate([half, T], axis=1))

    def _places(self, columns: Sequence[int] | Array) -> Array:
        places: Array = self._place[np.asarray(columns, dtype=np.int64)]
        if (places < 0).any():
            raise ValueError(f"Columns {np.asarray(columns)[places < 0].tolist()} took part in a step before.")
        return places

    def _hold(self, columns: Array) -> None:
        """Say which columns of the systems the arrays hold."""
        self._place = np.full(self.systems.train.shape[1], -1, dtype=np.int64)
        self._place[columns] = np.arange(len(columns))

    _R: Array
    _r: Array
    _V: Array
    _c: Array
    _e: Array
    _f: Array
    _floor: Array
    _place: Array


class ForwardSweep(_Sweep):
    """Columns enter one block after the other.

    A column that is a combination of the chosen ones on the training rows of a fold changes nothing in that fold.

    start: columns that are in from the start.
    """

    step = -1.0

    def __init__(self, systems: Systems, start: Sequence[int] = ()) -> None:
        super().__init__(systems)
        self.chosen = list(start)
        self._factor()

    def add(self, block: Sequence[int]) -> None:
        """Let the columns of a block in."""
        places = self._places(block)
        self.chosen += block
        self._n_steps += 1
        if self._n_steps % REFACTOR == 0:
            self._factor()
            return
        self._eliminate(places)
        self._place[list(block)] = -1

    def adding_nothing(self) -> Array:
        """Columns not chosen that in every fold are constant or a combination of the chosen ones."""
        nothing: Array = np.less_equal(_diagonal(self._R), self._floor).min(axis=0)
        held = np.flatnonzero(self._place >= 0)
        return np.asarray(held[nothing[self._place[held]]])

    def _factor(self) -> None:
        systems = self.systems
        self._R, self._V = (np.array(G, order="C") for G in (systems.train, systems.validation))
        self._r, self._c = systems.train_y.copy(), systems.validation_y.copy()
        self._f, self._e = systems.train_yy.copy(), systems.validation_yy.copy()
        self._floor = np.maximum(NEAR * _diagonal(systems.train), _constant_below(systems))
        d = systems.train.shape[1]
        self._hold(np.arange(d))
        if not self.chosen:
            return
        self._eliminate(np.asarray(self.chosen))
        left = np.setdiff1d(np.arange(d), self.chosen)
        self._R, self._V = _square(self._R, left), _square(self._V, left)
        self._r, self._c, self._floor = self._r[:, left], self._c[:, left], self._floor[:, left]
        self._hold(left)


class BackwardSweep(_Sweep):
    """Columns leave one block after the other.

    start: columns of the first fit; None is all. In a fold where they are dependent on the training rows, a tiny ridge
    penalty stands in for the solution of smallest norm, which takes part in no score, only in the choice.
    """

    step = 1.0

    def __init__(self, systems: Systems, start: Sequence[int] | None = None) -> None:
        super().__init__(systems)
        self.kept = list(range(systems.train.shape[1])) if start is None else list(start)
        self._factor()

    def drop(self, block: Sequence[int]) -> None:
        """Let the columns of a block go."""
        places = self._places(block)
        self.kept = [column for column in self.kept if column not in set(block)]
        self._n_steps += 1
        if self._n_steps % REFACTOR == 0 or self._inflation > INFLATED:
            self._factor()
            return
        self._eliminate(places)
        self._place[list(block)] = -1

    def _factor(self) -> None:
        systems, kept = self.systems, np.asarray(self.kept, dtype=np.int64)
        self._hold(kept)
        squares = _diagonal(systems.train)[:, kept]
        varies = squares > _constant_below(systems)[:, kept]
        unit = np.where(varies, 1.0, 0.0) / np.sqrt(np.where(varies, squares, 1.0))
        train, V = (_square(G, kept) * unit[:, :, None] * unit[:, None, :] for G in (systems.train, systems.validation))
        r, v = systems.train_y[:, kept] * unit, systems.validation_y[:, kept] * unit
        block, is_new = _independent(train, np.where(varies, NEAR, 0.0))
        dependent: Array = np.asarray((varies & ~is_new).any(axis=1))
        at = np.arange(len(kept))
        train[:, at, at] += np.where(varies, TINY_RIDGE * dependent[:, None], 1.0)
        A = np.linalg.inv(np.where(dependent[:, None, None], train, block))
        A[:, at, at] *= varies  # a constant column has the coefficient 0
        self._inflation = float(_diagonal(A).max(initial=0.0))
        self.resolution = max(SHARP, 1e-16 * self._inflation)
        b = (A @ r[..., None])[..., 0]
        Vb = (V @ b[..., None])[..., 0]
        self._R, self._r = np.ascontiguousarray(A + A.transpose(0, 2, 1)) / 2, b
        self._V, self._c = np.ascontiguousarray(A @ V @ A), -(A @ (v - Vb)[..., None])[..., 0]
        self._e = systems.validation_yy + ((Vb - 2 * v) * b).sum(axis=1)
        self._f = systems.train_yy - (r * b).sum(axis=1)
        self._floor = np.zeros_like(b)


def dependent_columns(systems: Systems, order: Sequence[int]) -> Array:
    """Columns that in every fold are constant or, on the training rows, a combination of columns before them."""
    columns = np.asarray(order, dtype=np.int64)
    floor = np.maximum(NEAR * _diagonal(systems.train), _constant_below(systems))[:, columns]
    _, is_new = _independent(_square(systems.train, columns), floor)
    return np.sort(columns[np.logical_not(is_new.any(axis=0))])


def parts_of(systems: Systems, column: int, others: Sequence[int]) -> list[int]:
    """Which of the other columns make up this one on the training rows of the first fold; none if it is constant."""
    squares = np.diagonal(systems.train[0])
    if not others or squares[column] <= _constant_below(systems)[0, column]:
        return []
    usable = [other for other in others if squares[other] > _constant_below(systems)[0, other]]
    size = np.sqrt(squares[usable])
    matrix = systems.train[0][np.ix_(usable, usable)] / size[:, None] / size
    share = np.linalg.lstsq(matrix, systems.train[0][usable, column] / size, rcond=NEAR)[0]
    return [other for other, part in zip(usable, share, strict=True) if abs(part) > 1e-4 * np.sqrt(squares[column])]


def _constant_below(systems: Systems) -> Array:
    """Squares that are rounding: next to the column's own over all rows, or to those of columns brought to size 1."""
    squares = _diagonal(systems.train)
    rounding = CONSTANT * (squares + _diagonal(systems.validation))
    return np.asarray(np.maximum(rounding, ROUNDING * squares.max(initial=0.0)))


def _diagonal(matrices: Array) -> Array:
    return np.diagonal(matrices, axis1=-2, axis2=-1)


def _square(matrices: Array, at: Array) -> Array:
    return np.ascontiguousarray(matrices[:, at[:, None], at])


def _independent(blocks: Array, floor: Array) -> tuple[Array, Array]:
    """The blocks with 1 on the diagonal and 0 beside it for each column that is no news to those before it."""
    is_new = _diagonal(blocks) > floor
    cut = _cut(blocks, is_new)
    try:
        pivots = _diagonal(np.linalg.cholesky(cut)) ** 2
    except np.linalg.LinAlgError:
        pivots = np.zeros_like(floor)
    if (pivots > floor)[is_new].all():
        return cut, is_new
    is_new = _news(cut, is_new, floor)
    return _cut(blocks, is_new), is_new


def _cut(blocks: Array, is_new: Array) -> Array:
    if is_new.all():
        return blocks
    cut = np.where(is_new[..., :, None] & is_new[..., None, :], blocks, 0.0)
    at = np.arange(blocks.shape[-1])
    cut[..., at, at] += ~is_new
    return cut


def _news(blocks: Array, is_new: Array, floor: Array) -> Array:
    """Column by column: what is left of it after those before it."""
    left, is_new = blocks.copy(), is_new.copy()
    for j in range(blocks.shape[-1]):
        pivot = left[..., j, j]
        is_new[..., j] &= pivot > floor[..., j]
        root = np.sqrt(np.where(is_new[..., j], pivot, 1.0))
        row = np.where(is_new[..., j, None], left[..., j, :], 0.0) / root[..., None]
        left -= row[..., :, None] * row[..., None, :]
    return is_new


def _subtract_product(matrices: Array, left: Array, right: Array) -> None:
    """matrices -= left' right, in place: BLAS takes C-contiguous matrices for their transposes."""
    for matrix, column, other in zip(matrices, left, right, strict=True):
        blas.dgemm(-1.0, other.T, column.T, 1.0, matrix.T, trans_b=1, overwrite_c=1)
