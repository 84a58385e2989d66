"""Folds of Gaussian classes with more columns than rows, through products of rows.

In units u of the columns (1, or their standard deviations over the training rows) a shrunk covariance is

    S = (1 - s) A'A + s t I,   rows of A: sqrt(share of the row) (x - mean of its class) / u,   t = |A|^2 / columns

whose eigenvectors are those of A'A, at most as many as there are rows, and all vectors orthogonal to them, at s t. One
factor of a training set serves all shrinkages, and no product of columns is made: with A = P L V',

    (x - m)'S^-1(x - m) = sum_i v_i^2 / ((1 - s) l_i^2 + s t) + (|z|^2 - |v|^2) / (s t),   z = (x - m) / u,  v = V'z
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.models.discriminant.closed_form import checked_priors
from certifit.models.discriminant.folds import present
from certifit.models.discriminant.task import MENDED, too_few_rows
from certifit.models.folds import MOST_BYTES, Candidate, ClassState, RowFolds
from certifit.models.gathered import GatheredRows, ScoreTable, column_spreads
from certifit.runtime import one_blas_thread

if TYPE_CHECKING:
    from certifit.models.discriminant.model import GaussianDiscriminant

LEAST_SHRINKAGE = 1e-6  # below, the covariance is singular to float64, and refits say so
SHARES = frozenset({"shrinkage"})


@one_blas_thread
def wide_folds(
    model: GaussianDiscriminant, source: Source, rounds: Sequence[Splits], candidates: Sequence[Candidate]
) -> RowFolds | None:
    """States of all candidates and splits; None where sums by class are to tell. source: mapped rows, y are codes."""
    if any(set(candidate) - SHARES for candidate in candidates):
        return None
    rows = GatheredRows.of(source)
    n_models = len(candidates) * sum(splits.n_splits for splits in rounds)
    if rows is None or 8 * len(rows.codes) * len(model.classes_) * n_models > MOST_BYTES:
        return None
    faults: dict[int, str] = {}
    states = []
    for splits in rounds:
        of_round = _round_states(model, rows, splits, candidates, faults)
        if of_round is None:
            return None
        states.append(of_round)
    return RowFolds(rows.numbered(), rounds, states, faults, is_coded=True)


def _round_states(
    model: GaussianDiscriminant,
    rows: GatheredRows,
    splits: Splits,
    candidates: Sequence[Candidate],
    faults: dict[int, str],
) -> list[list[ClassState | None]] | None:
    shrinkages = [float(candidate.get("shrinkage", model.shrinkage)) for candidate in candidates]
    if any(0 < shrinkage < LEAST_SHRINKAGE for shrinkage in shrinkages):
        return None
    states: list[list[ClassState | None]] = [[None] * splits.n_splits for _ in candidates]
    for split, weight in enumerate(rows.training_weights(splits)):
        places = present(np.bincount(rows.codes.clip(0), weight, len(model.classes_)), model.classes_, split)
        training = WideClasses.of(model, rows, weight, places)
        if training is None:
            return None
        for at, shrinkage in enumerate(shrinkages):
            fault = "" if shrinkage >= LEAST_SHRINKAGE else training.singular()
            if fault is None:
                return None
            if fault and training.mended is None:
                faults.setdefault(at, f"{fault} (on the training rows of split {split})")
                continue
            scores = training.mended.scores(0.0, MENDED) if fault and training.mended else training.scores(shrinkage)
            states[at][split] = ClassState(ScoreTable(scores), places, len(model.classes_))
    return states


@dataclass(frozen=True)
class WideClasses:
    """The classes of one training set, and all rows as they see them.

    squares: l_i^2 of every covariance; within: v_i^2 of every row, by class; outside: |z|^2 - |v|^2; n_columns: those
    that count; n_rows: training rows of every class; rank: of all training rows about their mean; mended: the same in
    units of standard deviations, where variances are added to.
    """

    model: GaussianDiscriminant
    log_priors: Array
    squares: list[Array]
    within: list[Array]
    outside: Array  # rows x classes
    n_columns: int
    n_rows: Array
    rank: int
    mended: WideClasses | None = None

    @staticmethod
    def of(model: GaussianDiscriminant, rows: GatheredRows, weight: Array, places: Array) -> WideClasses | None:
        """None where shares of absent classes are given, a class does not vary, or numbers leave float64."""
        if model.priors is not None and len(places) < len(model.classes_):
            return None
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            training = _Training.of(model, rows, weight, places)
            units = training.spreads if model.standardize else np.zeros_like(training.spreads)
            inverse = 1.0 / np.where(units > 0, units, 1.0)
            classes = training.classes(model, inverse)
            if not all(np.isfinite(square).all() and square.any() for square in classes.squares):
                return None
            if model.singular != "warn":
                return classes
            # A millionth of the variances is in units of the spreads; a column without one is left out.
            spread_units = np.divide(1.0, training.spreads, out=np.zeros_like(inverse), where=training.spreads > 0)
            return replace(classes, mended=training.classes(model, spread_units))

    def singular(self) -> str | None:
        """Why there is no fit without shrinkage; None where columns repeat each other over all rows too."""
        k = None if len(self.squares) == 1 else 0
        n_within = int(self.n_rows.sum() if k is None else self.n_rows[k])
        if self.rank <= n_within - (len(self.n_rows) if k is None else 1):
            return None
        reason, advice = too_few_rows(self.model.classes_, k, n_within, self.n_columns)
        return f"{reason}: the likelihood has no maximum. {advice}"

    def scores(self, shrinkage: float, ridge: float = 0.0) -> Array:
        """log prior_k N(x; m_k, S_k) of all rows, but for what classes share. ridge: added to all eigenvalues of S."""
        every = np.empty_like(self.outside)
        for k in range(len(self.log_priors)):
            squares = self.squares[min(k, len(self.squares) - 1)]
            flat = shrinkage * squares.sum() / self.n_columns + ridge
            values = (1 - shrinkage) * squares + flat
            distance = self.within[k] @ (1 / values) + self.outside[:, k] / flat
            log_det = np.log(values).sum() + (self.n_columns - len(values)) * np.log(flat)
            every[:, k] = self.log_priors[k] - (distance + log_det) / 2
        return every


@dataclass(frozen=True)
class _Training:
    """Training rows, and their means and spreads. codes: places among the classes that are there."""

    rows: GatheredRows
    trained: Array
    codes: Array
    weight: Array
    means: Array
    spreads: Array
    priors: Array

    @staticmethod
    def of(model: GaussianDiscriminant, rows: GatheredRows, weight: Array, places: Array) -> _Training:
        """places: of the classes that have training rows."""
        trained = weight > 0
        codes = np.searchsorted(places, rows.codes[trained])
        of_class = np.eye(len(places))[:, codes] * weight[trained]
        sums = of_class.sum(axis=1)
        means = of_class @ rows.X[trained] / sums[:, None]
        asked = checked_priors("priors", model.priors, model.classes_)
        spreads = column_spreads(rows.X[trained], weight[trained] / sums.sum())
        priors = sums / sums.sum() if asked is None else asked
        return _Training(rows, trained, codes, weight[trained], means, spreads, priors)

    def classes(self, model: GaussianDiscriminant, inverse: Array) -> WideClasses:
        """inverse: 1 / u of every column, 0 for one that does not count."""
        X = self.rows.X[self.trained]
        sums = np.bincount(self.codes, self.weight)
        roots = np.sqrt(self.weight / sums[self.codes])[:, None] * (X - self.means[self.codes]) * inverse
        is_shared = model.covariance == "shared"
        if is_shared:
            factors = [_factor(roots * np.sqrt(self.priors[self.codes])[:, None])]
        else:
            factors = [_factor(roots[self.codes == k]) for k in range(len(sums))]
        within, outside = [], []
        for k, mean in enumerate(self.means):
            z = (self.rows.X - mean) * inverse
            along = np.square(z @ factors[0 if is_shared else k][1].T)
            within.append(along)
            outside.append(np.maximum(np.square(z).sum(axis=1) - along.sum(axis=1), 0.0))
        with np.errstate(divide="ignore"):
            log_priors = np.log(self.priors)
        rank = int(np.linalg.matrix_rank((X - self.weight @ X / self.weight.sum()) * inverse))
        n_rows = np.bincount(self.codes)
        n_columns = int(np.count_nonzero(inverse))
        squares = [factor[0] for factor in factors]
        return WideClasses(model, log_priors, squares, within, np.column_stack(outside), n_columns, n_rows, rank)


def _factor(rows: Array) -> tuple[Array, Array]:
    """(squares of the singular values, right singular vectors) of some rows."""
    _, sizes, vectors = np.linalg.svd(rows, full_matrices=False)
    return np.square(sizes), vectors
