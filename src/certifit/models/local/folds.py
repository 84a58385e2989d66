"""Leave-one-out of local regression: all widths in one run, from the fits to all rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from certifit.data.source import Source
from certifit.models.folds import Candidate, FoldStates, shared_work
from certifit.models.least_squares.influence import LeftOut
from certifit.models.local.solver import choose_tau, left_out
from certifit.models.local.task import LocalForm, LocalTask
from certifit.runtime import one_blas_thread

if TYPE_CHECKING:
    from certifit.models.local.model import LocallyWeightedRegression


class LocalFolds(FoldStates):
    """Errors of every row by the fits to all others. A tau of None is that of least error among the default widths."""

    def __init__(self, model: LocallyWeightedRegression, source: Source, settings: Sequence[Candidate]) -> None:
        self.model, self.source, self.settings = model, source, settings

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
            taus = []
            for place in group:
                tau = self.settings[place].get("tau", model.tau)
                clone(model).set_params(tau=tau)._check_parameters()
                taus.append(choose_tau(task, task.widths())[0] if tau is None else float(tau))
            errors = left_out(task.rows, np.array(taus))
            w = task.share * task.sum_weight
            squares, fourths = np.square(errors) @ w, np.square(np.square(errors)) @ w
            y = task.rows.y
            total = float(w @ np.square(y - float(task.share @ y)))
            weight = np.full(len(taus), float(w.sum()))
            parts.append(LeftOut(squares, fourths, weight, total, task.n_rows, (), 0, task.rows.y_scale))
            places += group
        return LeftOut.joined(parts, places)
