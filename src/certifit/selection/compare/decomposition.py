"""Bias and variance along a path of candidates, from one pass over the rows.

Rows are dealt out to cells at random. A draw takes cells with repetition, as a bootstrap takes rows, and fits the sums
of what it drew; cells it did not draw tell its error. Over the draws,

    error = noise + bias^2 + variance,   variance = mean over rows x of the variance of the prediction at x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from certifit.data.cells import ByRow, Splits
from certifit.data.columns import Array
from certifit.models.folds import Candidate, Candidates
from certifit.models.least_squares.folds import NumberFolds
from certifit.models.least_squares.normal_equations import Weights
from certifit.runtime import one_blas_thread
from certifit.selection.folds.rows import Rows
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
    estimator: BaseEstimator,
    rows: Rows,
    candidates: Sequence[Candidate],
    *,
    n_cells: int = 32,
    n_draws: int = 40,
    random_state: int = 0,
) -> Decomposition | None:
    """The decomposition of every candidate; None where sums do not determine the fits, or rows are too few."""
    generator = np.random.default_rng(random_state)
    times = generator.multinomial(n_cells, np.full(n_cells, 1.0 / n_cells), size=n_draws).astype(np.float64)
    splits = Splits(ByRow(n_cells, random_state), times, (times == 0).astype(np.float64))
    states = estimator.folds(rows.source, [splits], Candidates(candidates), rows.shared)
    if not isinstance(states, NumberFolds):
        return None
    variance = np.zeros(len(candidates))
    for part in states.parts:
        folds = part.equations
        if folds is None or folds.least_rows() < len(folds.names) + 2:
            return None
        moments = _moments(folds.total())
        for place in part.places:
            variance[place] = _variance(states.weights(place) or [], *moments)
    path = states.squares()
    if path is None:
        return None
    return Decomposition(path.validation.sum(axis=1) / path.validation_weight.sum(), variance, n_draws)


def _variance(states: Sequence[Weights], mean: Array, covariance: Array) -> float:
    """Of the predictions of several fits, in the mean over rows of these moments."""
    coef = np.array([state.coef for state in states])
    level = np.array([state.intercept for state in states]) + coef @ mean
    coef -= coef.mean(axis=0)
    spread = np.einsum("bj,jk,bk->b", coef, covariance, coef) + (level - level.mean()) ** 2
    return float(spread.sum() / (len(states) - 1))


def _moments(gram: Gram) -> tuple[Array, Array]:
    """Means and covariances of the columns in the user's units."""
    d, s = gram.n_columns, gram.scaling
    centre = gram.sums[:d, d] / gram.sum_weight
    with np.errstate(over="ignore", under="ignore"):
        covariance = (gram.sums[:d, :d] / gram.sum_weight - np.outer(centre, centre)) / s.scale / s.scale[:, None]
        return (centre + s.shift) / s.scale, covariance
