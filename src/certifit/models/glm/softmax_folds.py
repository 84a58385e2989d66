"""Folds of logistic regression with rows that can be held: of more than two classes, and of more columns than rows.

With z = (x - m) / s, m and s of the training rows, and Z = U S V' their singular values, every optimum of an L2 penalty
is V a: a penalised weight outside the span of the rows only costs. So each training set is rotated once,

    minimise over a, b:   sum_i w_i [log sum_k e^(t_ik) - t_iy] + alpha/2 |a|^2,   t_i = b + a'V'z_i,   sum_i w_i = 1

and the fits of all alphas, each from the one before, have as many columns as there are rows at most. Two classes are
softmax of twice the penalty: their weights are w/2 and -w/2.

An L1 penalty, factors and bounds are those of the columns themselves: there each fit of more than two classes begins at
the one before, on the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Memory, Source
from certifit.minimise.steps import Steps
from certifit.models.discriminant.folds import map_parameters, present
from certifit.models.folds import Candidates, ClassState, Grid, RowFolds, shared_work
from certifit.models.gathered import GatheredRows, ScoreTable, column_spreads
from certifit.models.glm.folds import alpha_of, fold_columns, is_auto, model_like
from certifit.models.glm.l1_solver import ProxNewton
from certifit.models.glm.newton import descend
from certifit.models.glm.softmax_solver import CHANGES, MOST_ENTRIES, PATIENT, Changes
from certifit.models.glm.softmax_task import SoftmaxTask, SoftmaxWeights
from certifit.runtime import one_blas_thread

if TYPE_CHECKING:
    from certifit.models.glm.logistic import LogisticRegression

# Terms of the scores of all fits: beyond, refits of fewer candidates are quicker. The exponentials of a row cost as
# much as some columns.
MOST_TERMS, COLUMNS_OF_EXPONENTIALS = 500_000_000, 16
SMALL = 400  # entries of a point for which a Hessian is cheap
DONE, ROUNDING = 1e-14, 1e-16  # a fit ends where its decrement is so small, of the objective or at all
ARMIJO, SHORTEST = 1e-4, 1e-12
MOST_STEPS = 1000  # of one fit


@one_blas_thread
def softmax_folds(probe: LogisticRegression, source: Source, rounds: Sequence[Splits], grid: Grid) -> RowFolds | None:
    """Fits of all candidates to the training rows of all splits; None where each is to be fitted by itself.

    probe: a copy that holds classes_. Without rounds: whether there would be any.
    """
    if not isinstance(grid, Candidates) or any(map_parameters(candidate) for candidate in grid.settings):
        return None
    mapped = None if source.view.has_offset or not _is_shared(probe) else fold_columns(probe, source)
    if mapped is None:
        return None
    if not rounds:
        return RowFolds(mapped, [], [], {}, is_coded=True)
    rows = GatheredRows.of(mapped)
    if rows is None or _n_terms(rows, probe, rounds, len(grid.settings)) > MOST_TERMS:
        return None
    states = [_round_states(probe, rows, splits, grid) for splits in rounds]
    whole = [of_round for of_round in states if of_round is not None]
    return RowFolds(rows.numbered(), rounds, whole, {}, is_coded=True) if len(whole) == len(states) else None


def _is_plain(model: LogisticRegression) -> bool:
    """Whether the penalty is one of squares alike for all columns."""
    return model.penalty_factors is None and model.bounds is None and float(model.l1_ratio) == 0


def _is_shared(model: LogisticRegression) -> bool:
    """Whether fits are minima as our own solver finds them; two classes have other folds with other penalties."""
    return model.start is None and is_auto(model) and (_is_plain(model) or len(model.classes_) > 2)


def _n_terms(rows: GatheredRows, model: LogisticRegression, rounds: Sequence[Splits], n_candidates: int) -> int:
    width = min(rows.X.shape) + COLUMNS_OF_EXPONENTIALS
    n_fits = n_candidates * sum(splits.n_splits for splits in rounds)
    return int(len(rows.codes) * width * len(model.classes_) * n_fits)


def _round_states(
    probe: LogisticRegression, rows: GatheredRows, splits: Splits, grid: Candidates
) -> list[list[ClassState | None]] | None:
    """A state of every candidate and split; None where a candidate has no penalty, or numbers leave float64."""
    n_classes = len(probe.classes_)
    states: list[list[ClassState | None]] = [[None] * splits.n_splits for _ in grid.settings]
    for others, members in shared_work(grid.settings, probe.shares):
        model = model_like(probe, others)
        if not _is_shared(model):
            return None
        alphas = [alpha_of(model, grid.settings[place]) for place in members]
        for split, times in enumerate(rows.training_weights(splits)):
            sums = np.bincount(rows.codes.clip(0), times, n_classes)
            places = present(sums, probe.classes_, split)
            if model.class_weight is not None and len(places) < n_classes:
                return None
            weight = times if model.class_weight is None else times * model._factors_of(sums)[rows.codes.clip(0)]
            strengths = np.array([1.0 / weight.sum() if alpha is None else alpha for alpha in alphas])
            tables = _fits(model, rows, weight, places, strengths)
            if tables is None:
                return None
            for place, scores in zip(members, tables, strict=True):
                states[place][split] = ClassState(ScoreTable(scores), places, n_classes)
    return states


def _fits(
    model: LogisticRegression, rows: GatheredRows, weight: Array, places: Array, alphas: Array
) -> list[Array] | None:
    """Scores of all rows by the fits to one training set, in the order of alphas."""
    trained = weight > 0
    if not (alphas > 0).all() or not np.isfinite(alphas).all():
        return None
    if not _is_plain(model):
        return _fits_of_columns(model, rows, weight, places, alphas)
    shares = weight[trained] / weight[trained].sum()
    codes = np.searchsorted(places, rows.codes[trained])
    with np.errstate(over="ignore", invalid="ignore"):
        Z = _standardised(model, rows.X, trained, shares)
    if not np.isfinite(Z).all():
        return None
    _, sizes, V = np.linalg.svd(Z[trained], full_matrices=False)
    Z = Z @ V[sizes > np.finfo(np.float64).eps * sizes.max(initial=0.0)].T
    if model.fit_intercept:
        Z = np.column_stack([Z, np.ones(len(Z))])
    path = RotatedPath(Z[trained], codes, shares, len(places), bool(model.fit_intercept))
    order = np.argsort(-alphas, kind="stable")
    times = 2.0 if len(model.classes_) == 2 else 1.0
    points = dict(zip(order.tolist(), path.fits(times * alphas[order], int(model.max_iter)), strict=True))
    tables = [Z @ points[at] for at in range(len(alphas))]
    return tables if all(np.isfinite(table).all() for table in tables) else None


def _fits_of_columns(
    model: LogisticRegression, rows: GatheredRows, weight: Array, places: Array, alphas: Array
) -> list[Array] | None:
    """The same with any penalty; None where Hessians would be large, or classes are missing."""
    trained = weight > 0
    size = len(places) * (rows.X.shape[1] + 1)
    if size > MOST_ENTRIES or len(places) < len(model.classes_):
        return None
    order = np.argsort(-alphas, kind="stable")
    source = Memory(rows.X[trained], rows.codes[trained].astype(np.float64), weight[trained], rows.names)
    task = model.class_task(source, float(alphas[order[0]]))
    kinked, point, tables = ProxNewton(task.start(), PATIENT), task.start(), {}
    for place in order.tolist():
        at = task.at_strength(float(alphas[place]))
        if at.is_smooth:
            point = descend(at, point, int(model.max_iter), Steps())
        else:
            kinked.descend(at, int(model.max_iter), Steps())
            point = kinked.point
        state = at.to_state(point)
        tables[place] = rows.X @ state.coef.T + state.intercept
    in_order = [tables[place] for place in range(len(alphas))]
    return in_order if all(np.isfinite(table).all() for table in in_order) else None


FALLING = np.array([1e3, 1e2, 1e1, 1.0])  # times alpha: each fit begins at the one before


@one_blas_thread
def rotated_start(task: SoftmaxTask) -> Array | None:
    """The point of a fit with more columns than rows, but for roundings; None where the rows cannot be held."""
    is_plain = task.is_smooth and task.alpha > 0 and bool((task.strengths.factors == 1).all())
    rows = GatheredRows.of(task.source) if is_plain and task.strengths.l1_ratio == 0 else None
    if rows is None:
        return None
    trained = rows.weight > 0
    X, shares = rows.X[trained], rows.weight[trained] / rows.weight[trained].sum()
    with np.errstate(over="ignore", invalid="ignore"):
        centre = shares @ X if task.fit_intercept else np.zeros(X.shape[1])
        Z = (X - centre) / task.spreads
    if not np.isfinite(Z).all():
        return None
    V = np.linalg.svd(Z, full_matrices=False)[2]
    Z = np.column_stack([Z @ V.T, np.ones(len(Z))] if task.fit_intercept else [Z @ V.T])
    path = RotatedPath(Z, rows.codes[trained], shares, task.n_classes, task.fit_intercept)
    *_, point = path.fits(task.alpha * FALLING, MOST_STEPS)
    with np.errstate(over="ignore", invalid="ignore"):
        coef = point[: len(V)].T @ V / task.spreads
        intercept = point[-1] - coef @ centre if task.fit_intercept else np.zeros(task.n_classes)
        start = task.to_point(SoftmaxWeights(coef, intercept))
    return start if np.isfinite(start).all() else None


def _standardised(model: LogisticRegression, X: Array, trained: Array, shares: Array) -> Array:
    """Columns about their means over the training rows, in units in which every weight is penalised alike."""
    Z = X - shares @ X[trained] if model.fit_intercept else X
    if not model.standardize:
        return Z
    spreads = column_spreads(X[trained], shares, bool(model.fit_intercept))
    return np.asarray(Z / np.where(spreads > 0, spreads, 1.0))


class RotatedPath:
    """Softmax fits of one training set along alphas. A point is columns x classes; the last column may be the 1."""

    def __init__(self, Z: Array, codes: Array, shares: Array, n_classes: int, has_intercept: bool) -> None:
        self.Z, self.codes, self.shares, self.n_classes = Z, codes, shares, n_classes
        self.shape = Z.shape[1], n_classes
        self.penalised = np.ones((Z.shape[1], 1))
        if has_intercept:
            self.penalised[-1] = 0.0
        self.has_intercept = has_intercept
        self._rows = np.arange(len(codes))

    def fits(self, alphas: Array, max_iter: int) -> Iterator[Array]:
        """The minimisers at falling alphas, each found from the one before."""
        point = np.zeros(self.shape[0] * self.n_classes)
        for alpha in alphas:
            point = self._minimised(point, float(alpha), max_iter)
            yield point.reshape(self.shape)

    def _minimised(self, point: Array, alpha: float, max_iter: int) -> Array:
        """Steps of the Hessian at the start (of many entries: at equal chances), corrected by what the gradient did."""
        value, gradient, chances = self._evaluated(point, alpha)
        steps = self._steps(chances, alpha)
        for _ in range(max_iter):
            step = steps.step(gradient)
            decrement = float(gradient @ step)
            if not decrement > DONE * value + ROUNDING:
                break
            length = 1.0
            while length >= SHORTEST:
                trial = point - length * step
                tried = self._evaluated(trial, alpha)
                if tried[0] <= value - ARMIJO * length * decrement:
                    break
                length /= 2
            else:
                break
            steps.learn(trial - point, tried[1] - gradient)
            point, (value, gradient, chances) = trial, tried
        return point

    def _steps(self, chances: Array, alpha: float) -> Changes:
        n_columns, n_classes = self.shape
        if n_columns * n_classes <= SMALL:
            root, fault = dpotrf(self._hessian(chances, alpha), lower=True, overwrite_a=True)
            if not fault:
                return HessianSteps(root)
        return self._equal_chances(alpha)

    def _evaluated(self, point: Array, alpha: float) -> tuple[float, Array, Array]:
        """The objective, its gradient, and the chances of the classes."""
        at = point.reshape(self.shape)
        scores = self.Z @ at
        scores -= scores.max(axis=1, keepdims=True)
        chances = np.exp(scores)
        sums = chances.sum(axis=1)
        losses = np.log(sums) - scores[self._rows, self.codes]
        chances /= sums[:, None]
        slopes = chances.copy()
        slopes[self._rows, self.codes] -= 1.0
        pull = alpha * self.penalised * at
        value = float(self.shares @ losses) + float(np.vdot(pull, at)) / 2
        return value, (self.Z.T @ (self.shares[:, None] * slopes) + pull).ravel(), chances

    def _hessian(self, chances: Array, alpha: float) -> Array:
        """Block (k, l) is sum w p_k (1_kl - p_l) z z'; intercepts common to all classes, of no gradient, are held."""
        n_columns, n_classes = self.shape
        whole = np.empty((n_columns, n_classes, n_columns, n_classes))
        for k in range(n_classes):
            weighted = self.Z.T * (self.shares * chances[:, k])
            for m in range(k, n_classes):
                whole[:, k, :, m] = weighted @ (self.Z * (float(k == m) - chances[:, m : m + 1]))
                whole[:, m, :, k] = whole[:, k, :, m]
        if self.has_intercept:
            whole[-1, :, -1, :] += 1.0 / n_classes**2
        matrix = whole.reshape(n_columns * n_classes, -1)
        matrix[np.diag_indices(len(matrix))] += alpha * np.repeat(self.penalised, n_classes)
        return matrix

    def _equal_chances(self, alpha: float) -> Changes:
        """The diagonal at equal chances: rotated columns are uncorrelated, but for weights of rows that differ."""
        often = (1 - 1 / self.n_classes) / self.n_classes
        diagonal = often * (self.shares @ np.square(self.Z)) + alpha * self.penalised[:, 0]
        return Changes(1 / diagonal, self.shape)


class HessianSteps(Changes):
    """Steps of one Hessian, LL' = H, corrected by the changes of the gradient since."""

    def __init__(self, root: Array) -> None:
        super().__init__(np.empty(0), (0, 0))
        self._root = root

    def first(self, gradient: Array) -> Array:
        """The inverse of the Hessian times a gradient."""
        return np.asarray(dpotrs(self._root, gradient, lower=True)[0])

    def learn(self, move: Array, change: Array) -> None:
        """A move of the point and the change of the gradient. The Hessian tells how long a step is."""
        product = float(move @ change)
        if product > 0:
            self._seen = [*self._seen, (move, change, product)][-CHANGES:]
