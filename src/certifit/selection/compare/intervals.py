"""Prediction intervals from held-out errors: CV+ on folds, jackknife+ on every row. No law of the errors is assumed.

With m_k the fit without fold k and R_i = |y_i - m_k(i)(x_i)| the error of row i by the fit that did not see it, the
interval at x goes from the floor(a (n + 1))-th smallest m_k(i)(x) - R_i to the mirrored largest m_k(i)(x) + R_i,
a = 1 - level. Rows drawn like the training rows are covered with a probability of at least 1 - 2 a, about 1 - a in
practice (Barber, Candes, Ramdas and Tibshirani 2021).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Block
from certifit.data.user_input import UserRows, UserTarget, fit_source, n_samples, predict_rows
from certifit.models.adapter import learner_of
from certifit.models.folds import EACH_ROW, Candidates
from certifit.selection.folds.rows import Rows, Shared, picked

KEPT = 100_000  # error sizes kept of a fold
HALVINGS = 80


@dataclass(frozen=True)
class FoldIntervals:
    """A model per split, and of each the sorted sizes of the errors on rows it did not see.

    counts: how many rows every size stands for. Of a fold with more than 100,000 rows some are kept, each standing for
    the smaller ones before it: intervals come out wider, never narrower.
    """

    models: Sequence[BaseEstimator]
    sizes: Sequence[Array]
    counts: Sequence[int]
    n_rows: int

    def at(self, X: UserRows, level: float, **options: Any) -> Array:
        """Lower and upper ends for rows X; options go to the models' predict."""
        _check_level(level)
        centres = np.column_stack([model.predict(X, **options) for model in self.models])
        upper = self._quantile(centres, level)
        lower = -self._quantile(-centres, level)
        return np.column_stack([lower, upper])

    def _quantile(self, centres: Array, level: float) -> Array:
        """The ceil(level (n + 1))-th smallest of centre + size, for every row, by halving."""
        wanted = math.ceil(level * (self.n_rows + 1))
        if wanted > self.n_rows:
            return np.full(len(centres), np.inf)
        largest = max(float(sizes[-1]) for sizes in self.sizes)
        low, high = centres.min(axis=1), centres.max(axis=1) + largest
        low = low - 1e-12 * np.abs(low)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            counted = np.zeros(len(centres), dtype=np.int64)
            for centre, sizes, count in zip(centres.T, self.sizes, self.counts, strict=True):
                counted += np.searchsorted(sizes, middle - centre, side="right") * count
            is_enough = counted >= wanted
            high = np.where(is_enough, middle, high)
            low = np.where(is_enough, low, middle)
        return np.asarray(high)


def fold_intervals(model: BaseEstimator, rows: Rows, rounds: Sequence[Splits]) -> FoldIntervals:
    """A model per split and its errors on held-out rows: from the sums where the model offers that, else by refits."""
    if rows.weight is not None or rows.source.first_block().weight is not None:
        raise ValueError("CV+ intervals need rows of equal weight: they count rows. Leave the weights out.")
    if len(rounds) != 1 or not ((rounds[0].train + rounds[0].validation) == 1).all():
        raise ValueError("CV+ intervals need one round of folds in which every row validates once, e.g. cv=10.")
    splits = rounds[0]
    states = model.folds(rows.source, rounds, Candidates([{}]), rows.shared) if learner_of(model).is_ours else None
    models = None if states is None else states.models(0)
    if models is not None or rows.X is None:
        models = models or [clone(model).fit(splits.trained(rows.source, s)) for s in range(splits.n_splits)]
        parts = list(rows.source.map(partial(_errors_of_run, models=models, splits=splits)))
        errors = [np.concatenate([part[s] for part in parts]) for s in range(splits.n_splits)]
    else:
        models, errors = _refitted(model, rows, splits)
    n_rows = sum(len(one) for one in errors)
    kept = [_kept(np.sort(one)) for one in errors]
    return FoldIntervals(models, [sizes for sizes, _ in kept], [count for _, count in kept], n_rows)


def _refitted(model: BaseEstimator, rows: Rows, splits: Splits) -> tuple[list[BaseEstimator], list[Array]]:
    numbered = Block(np.zeros((n_samples(rows.X), 0)), None, None, 0, rows.source.first_block().group)
    cells = splits.cells.of(numbered)
    models, errors = [], []
    for s in range(splits.n_splits):
        models.append(picked(rows, splits.train[s][cells]).fitted(clone(model)))
        part = picked(rows, splits.validation[s][cells])
        errors.append(np.abs(np.asarray(part.y, dtype=np.float64) - part.seen_by(models[-1]).predict(part.X)))
    return models, errors


def _errors_of_run(run: Block, models: Sequence[BaseEstimator], splits: Splits) -> list[Array]:
    if run.y is None:
        raise ValueError("Intervals need a target.")
    out = []
    for s, model in enumerate(models):
        seen = splits.validated(run, s) > 0
        out.append(np.abs(run.y - model.scores(run))[seen])
    return out


def _kept(sizes: Array) -> tuple[Array, int]:
    step = -(-len(sizes) // KEPT)
    if step == 1:
        return sizes, 1
    # The largest of every whole group, from the top; a rest of the smallest is not counted, which only widens.
    last = np.arange(len(sizes) - 1, step - 2, -step)[::-1]
    return sizes[last], step


def jackknife_plus(estimator: BaseEstimator, X: UserRows, y: UserTarget, X_new: UserRows, level: float = 0.9) -> Array:
    """Lower and upper ends for rows X_new from the n fits that leave one row of (X, y) out, none of them refitted.

    For LinearRegression and Ridge on arrays. Each row's fit follows from the fit to all rows. Costs
    n_rows x n_new numbers of work, n_rows x n_columns of memory.
    """
    _check_level(level)
    model = clone(estimator)
    if not learner_of(model).is_ours:
        raise TypeError(
            f"jackknife_plus needs LinearRegression or Ridge. Got {type(model).__name__}. "
            "For other models use CrossValidated(model, intervals=True)."
        )
    source = fit_source(model, X, y, None)
    states = model.folds(source, EACH_ROW, Candidates([{}]), Shared())
    fits = None if states is None else states.left_out_fits()
    if fits is None:
        raise ValueError(
            "Leaving rows out one by one needs LinearRegression or Ridge, at least as many rows as columns, no missing "
            "values, no penalised polynomial basis and no standardize=True. Use CrossValidated(model, intervals=True)."
        )
    model.fit_maps(source)
    return np.asarray(fits.interval(model.columns_of(predict_rows(model, X_new)), level))


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, e.g. 0.9. Got {level!r}.")
