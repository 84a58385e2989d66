"""Bias and variance along a path of candidates, from the sums by cell that cross-validation has made.

The m cells are those of the folds, dealt out at random. A draw takes m cells with repetition, as a bootstrap takes
rows, and fits the sums of what it drew; cells it did not draw tell its error. Over the draws,

    error = noise + bias^2 + variance,   variance = mean over rows x of the variance of the prediction at x,

times m / (m - 1): the spread of m cells about their own mean is that much too small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from certifit.data.cells import ByRow, Cells, Splits
from certifit.data.columns import Array
from certifit.models.folds import Candidate, Candidates
from certifit.models.least_squares.folds import NumberFolds
from certifit.models.least_squares.normal_equations import Weights
from certifit.runtime import one_blas_thread
from certifit.selection.folds.rows import Rows
from certifit.statistics.gram import Gram

FEWEST_CELLS, N_CELLS = 8, 32
MOST_COLUMNS = 120  # fits of many columns to every draw would cost more than the comparison


@dataclass(frozen=True)
class Decomposition:
    """Mean squared error on rows not drawn, and its parts, of every candidate; noise and bias cannot be told apart."""

    candidates: Sequence[Candidate]
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
    cells: Cells | None = None,
    *,
    n_draws: int = 40,
    random_state: int = 0,
) -> Decomposition | None:
    """The decomposition of every candidate; None where sums do not determine the fits, or rows are too few.

    cells: those that folds of the same rows have; None, or fewer than FEWEST_CELLS, deals the rows out anew.
    """
    if cells is None or cells.n_cells < FEWEST_CELLS:
        cells = ByRow(N_CELLS, random_state)
    n_cells, generator = cells.n_cells, np.random.default_rng(random_state)
    times = generator.multinomial(n_cells, np.full(n_cells, 1.0 / n_cells), size=n_draws).astype(np.float64)
    splits = Splits(cells, times, (times == 0).astype(np.float64))
    states = estimator.folds(rows.source, [splits], Candidates(candidates), rows.shared)
    if not isinstance(states, NumberFolds):
        return None
    variance = np.zeros(len(candidates))
    for part in states.parts:
        folds = part.equations
        if folds is None or len(folds.names) > MOST_COLUMNS or folds.least_rows() < len(folds.names) + 2:
            return None
        moments = _moments(folds.total())
        for place in part.places:
            variance[place] = _variance(states.weights(place) or [], *moments)
    path = states.squares()
    if path is None:
        return None
    variance *= n_cells / (n_cells - 1)
    error = path.validation.sum(axis=1) / path.validation_weight.sum()
    return Decomposition(candidates, error, variance, n_draws)


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
