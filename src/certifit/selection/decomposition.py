"""Bias and variance along a path of candidates, from one pass over the rows.

Rows are dealt out to cells at random. A draw takes cells with repetition, as a bootstrap takes rows, and fits the sums
of what it drew; cells it did not draw tell its error. Over the draws,

    error = noise + bias^2 + variance,   variance = mean over rows x of the variance of the prediction at x.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from certifit.data.cells import ByRow, Splits
from certifit.data.columns import Array
from certifit.runtime import one_blas_thread
from certifit.selection.rows import Rows
from certifit.solvers.fold_path import fold_path, fold_states
from certifit.statistics.gram import Gram


@dataclass(frozen=True)
class Decomposition:
    """Mean squared error on rows not drawn, and its parts, of every candidate; noise and bias cannot be told apart."""

    error: Array
    variance: Array
    n_draws: int

    @property
    def bias_and_noise(self) -> Array:
        """What remains of the error beside the variance."""
        return np.asarray(np.maximum(self.error - self.variance, 0.0))


@one_blas_thread
def decompose(
    estimator: Any,
    rows: Rows,
    candidates: Sequence[Mapping[str, Any]],
    *,
    n_cells: int = 32,
    n_draws: int = 40,
    random_state: int = 0,
) -> Decomposition | None:
    """The decomposition of every candidate; None where sums do not determine the fits, or rows are too few."""
    if not hasattr(estimator, "fold_equations"):
        return None
    generator = np.random.default_rng(random_state)
    times = generator.multinomial(n_cells, np.full(n_cells, 1.0 / n_cells), size=n_draws).astype(np.float64)
    splits = Splits(ByRow(n_cells, random_state), times, (times == 0).astype(np.float64))
    error, variance = np.zeros(len(candidates)), np.zeros(len(candidates))
    for model, own in clone(estimator).by_system(candidates):
        folds = model.fold_equations(rows.source, [splits])
        if folds is None or folds.least_rows() < len(folds.names) + 2:
            return None
        alphas = [model.strength_of(candidates[i]) for i in own]
        path = fold_path(folds, alphas)
        error[own] = path.validation.sum(axis=1) / path.validation_weight.sum()
        mean, covariance = _moments(folds.total())
        for place, alpha in zip(own, alphas, strict=True):
            states = fold_states(folds, alpha)
            coef = np.array([state.coef for state in states])
            level = np.array([state.intercept for state in states]) + coef @ mean
            coef -= coef.mean(axis=0)
            spread = np.einsum("bj,jk,bk->b", coef, covariance, coef) + (level - level.mean()) ** 2
            variance[place] = spread.sum() / (len(states) - 1)
    return Decomposition(error, variance, n_draws)


def _moments(gram: Gram) -> tuple[Array, Array]:
    """Means and covariances of the columns in the user's units."""
    d, s = gram.n_columns, gram.scaling
    centre = gram.sums[:d, d] / gram.sum_weight
    with np.errstate(over="ignore", under="ignore"):
        covariance = (gram.sums[:d, :d] / gram.sum_weight - np.outer(centre, centre)) / s.scale / s.scale[:, None]
        return (centre + s.shift) / s.scale, covariance
