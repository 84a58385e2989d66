"""What feature selection needs of every split: centred matrices of training and validation rows, made from one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from sklearn.base import BaseEstimator

from certifit.data.columns import Array
from certifit.models.adapter import learner_of
from certifit.models.folds.hook import Subsets
from certifit.models.folds.numbers import NumberFolds
from certifit.runtime import one_blas_thread
from certifit.selection.rows import Rows
from certifit.selection.splits import UserSplits, rounds_of
from certifit.solvers.fold_path import fold_path, safe_unit, spread
from certifit.statistics.gram import Gram
from certifit.tasks.fold_equations import FoldEquations
from certifit.tasks.normal_equations import penalty_units


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
        chosen = self._folds.taken(np.asarray(columns, dtype=np.int64), splits)
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
