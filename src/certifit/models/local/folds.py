"""Folds of local regression: the rows of a training set are prepared once for all widths, and no fit is proven.

Leave-one-out: all widths in one run, from the fits to all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.models.folds import Candidate, EachRow, FoldStates, Rounds, shared_work
from certifit.models.gathered import row_count
from certifit.models.kernel.task import dense_rows
from certifit.models.least_squares.fold_path import FoldPath, held_out_of, safe_unit
from certifit.models.least_squares.influence import LeftOut
from certifit.models.local.solver import choose_tau, fits, left_out, seconds_of
from certifit.models.local.task import LocalForm, LocalTask, scale_of
from certifit.runtime import one_blas_thread
from certifit.statistics.gram import counted, refuse_no_weight
from certifit.statistics.loss_sums import HeldOut, row_spread

if TYPE_CHECKING:
    from certifit.models.local.model import LocallyWeightedRegression


MOST_SECONDS = 300.0  # of one core that folds take together; refits of longer ones are counted, and fewer are made


class LocalFolds(FoldStates):
    """Errors by the fits to other rows. A tau of None is that of least error among the default widths."""

    def __init__(
        self, model: LocallyWeightedRegression, source: Source, settings: Sequence[Candidate], rounds: Rounds
    ) -> None:
        self.model, self.source, self.settings, self.rounds = model, source, settings, rounds

    def seconds(self) -> float:
        """Expected of a fit at every row to every training set, for every candidate; without rounds of ten splits."""
        assert not isinstance(self.rounds, EachRow)
        n_fits = len(self.settings) * (sum(splits.n_splits for splits in self.rounds) or 10)
        return n_fits * seconds_of(row_count(self.source), row_count(self.source), self.source.n_features)

    @one_blas_thread
    def squares(self, with_rows: bool = False) -> FoldPath | None:
        """Squared errors of every candidate on every split."""
        paths, places = [], []
        for others, group in shared_work(self.settings, self.model.shares):
            model = clone(self.model).set_params(**others)
            taus = [self._tau(model, place) for place in group]
            paths.append(self._path(model, taus, with_rows))
            places += group
        return FoldPath.joined(paths, places)

    def _tau(self, model: LocallyWeightedRegression, place: int) -> float | None:
        """Of a candidate; None where each training set chooses it."""
        tau = self.settings[place].get("tau", model.tau)
        clone(model).set_params(tau=tau)._check_parameters()
        return None if tau is None else float(tau)

    def _path(self, model: LocallyWeightedRegression, taus: Sequence[float | None], with_rows: bool) -> FoldPath:
        assert not isinstance(self.rounds, EachRow)
        gathered = self.source.gather()
        block, seen = counted(gathered), np.ones(gathered.n_rows, dtype=bool)
        if gathered.weight is not None:
            seen = np.asarray(gathered.weight) > 0
        X, y = dense_rows(block.X), np.asarray(block.y, dtype=np.float64)
        weight = np.ones(len(y)) if block.weight is None else np.asarray(block.weight, dtype=np.float64)
        scale = scale_of(y)
        unit, in_units = safe_unit(float(np.float64(scale) ** -2))
        y, shape = y * scale, (len(taus), sum(splits.n_splits for splits in self.rounds))
        train, validation = np.zeros(shape), np.zeros(shape)
        totals, weights, null = np.zeros((2, shape[1])), np.zeros((2, shape[1])), np.zeros(shape[1])
        held_out: list[HeldOut] = []
        places = [(splits, split) for splits in self.rounds for split in range(splits.n_splits)]
        for at, (splits, split) in enumerate(places):
            cells, times = splits.cells.of(gathered)[seen], (splits.train[split], splits.validation[split])
            sides = [np.append(side, 0.0)[cells] * weight for side in times]
            for side, name in zip(sides, ("training", "validation"), strict=True):
                refuse_no_weight(float(side.max(initial=0.0)), f"The {name} rows of a split")
            residuals = y - self._predicted(model, splits.trained(self.source, split), taus, X) * scale
            train[:, at], validation[:, at] = (residuals**2 @ side * unit for side in sides)
            totals[:, at] = [row_spread(y, side) * unit for side in sides]
            weights[:, at] = [side.sum() for side in sides]
            null[at] = float(sides[1] @ np.square(y - float(sides[0] @ y) / float(sides[0].sum()))) * unit
            if with_rows:
                held_out.append(held_out_of(np.flatnonzero(seen), y, sides[1], residuals, (scale, 1.0)))
        sides_of_all = (totals[0], totals[1], weights[0], weights[1])
        return FoldPath(train, validation, *sides_of_all, null, in_units, held_out=held_out)

    @staticmethod
    def _predicted(model: LocallyWeightedRegression, training: Source, taus: Sequence[float | None], X: Array) -> Array:
        """Widths x rows: f(x) by the fits to the rows of a training set."""
        form = LocalForm(model.weights, model.terms)
        task = LocalTask(training, form, None, bool(model.standardize))
        widths = [choose_tau(task, task.widths())[0] if tau is None else tau for tau in taus]
        queries, at = task.rows.seen(X), form.columns(X)
        by_width = [fits(task.rows, queries, np.array([tau]), at).prediction for tau in widths]
        return np.concatenate(by_width) / task.rows.y_scale

    @one_blas_thread
    def left_out(self) -> LeftOut | None:
        """Squares of the errors; None where equal rows make leaving out one row another matter."""
        parts, places = [], []
        for others, group in shared_work(self.settings, self.model.shares):
            model = clone(self.model).set_params(**others)
            form = LocalForm(model.weights, model.terms)
            task = LocalTask(self.source, form, None, bool(model.standardize))
            if len(task.y) < 2 or len(task.y) < task.n_rows:
                return None
            asked = [self._tau(model, place) for place in group]
            taus = [choose_tau(task, task.widths())[0] if tau is None else tau for tau in asked]
            errors = left_out(task.rows, np.array(taus))
            w = task.share * task.sum_weight
            squares, fourths = np.square(errors) @ w, np.square(np.square(errors)) @ w
            y = task.rows.y
            total = float(w @ np.square(y - float(task.share @ y)))
            weight = np.full(len(taus), float(w.sum()))
            parts.append(LeftOut(squares, fourths, weight, total, task.n_rows, (), 0, task.rows.y_scale))
            places += group
        return LeftOut.joined(parts, places)
