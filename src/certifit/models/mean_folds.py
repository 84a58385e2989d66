"""Cross-validation of a model of means: fits of all candidates and splits at once, errors of the rows they predict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy
from sklearn.base import clone

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.losses.scores import GammaLog, PoissonLog, ScoreLoss
from certifit.models.score_folds import (
    FoldWeights,
    SubsetFolds,
    default_alphas,
    fold_columns,
    score_fits,
    subset_folds,
)
from certifit.statistics.held_out import HeldOut, joined_by_split, numbers_where, validating
from certifit.statistics.row_sums import row_sums

RowError = Callable[[Array, Array], Array]  # (y, E y) -> a number a row


def squared_errors(y: Array, mean: Array) -> Array:
    """(y - E y)^2."""
    return np.asarray(np.square(y - mean))


def absolute_errors(y: Array, mean: Array) -> Array:
    """|y - E y|."""
    return np.asarray(np.abs(y - mean))


def poisson_deviances(y: Array, mean: Array) -> Array:
    """2 (y log(y / E y) - y + E y)."""
    with np.errstate(divide="ignore"):
        return np.asarray(2 * (xlogy(y, y / mean) - y + mean))


def gamma_deviances(y: Array, mean: Array) -> Array:
    """2 (log(E y / y) + y / E y - 1)."""
    return np.asarray(2 * (np.log(mean / y) + y / mean - 1))


ROW_ERRORS: dict[str, RowError] = {
    "neg_mean_squared_error": squared_errors,
    "neg_mean_absolute_error": absolute_errors,
    "neg_mean_poisson_deviance": poisson_deviances,
    "neg_mean_gamma_deviance": gamma_deviances,
}
DEVIANCES: dict[type[ScoreLoss], str] = {
    PoissonLog: "neg_mean_poisson_deviance",
    GammaLog: "neg_mean_gamma_deviance",
}  # what a model is scored by where the user names nothing


@dataclass(frozen=True)
class MeanModels:
    """Fits of every round, candidate and split, and the source of the mapped rows that they read."""

    source: Source
    rounds: Sequence[Splits]
    fits: list[list[list[FoldWeights]]]
    loss: ScoreLoss

    def errors(self, error: RowError, with_training: bool = False) -> tuple[Array | None, Array, Array]:
        """(mean errors on training rows or None, on validation rows, weight of those), candidates x splits.

        Training rows take as many passes over the scores of a row as there are splits.
        """
        tables = []
        for splits, fits in zip(self.rounds, self.fits, strict=True):
            sets = (splits.validation, splits.train) if with_training else (splits.validation,)
            tables.append(self.source.reduce(_RowErrors(fits, splits, sets, self.loss, error, self.source.block_rows)))
        table = np.concatenate(tables, axis=2)  # sets x (candidates + 1) x splits; the last row is the weight
        if not (table[:, -1] > 0).all():
            raise ValueError("A split has no rows of positive weight. Use fewer folds.")
        means = table[:, :-1] / table[:, -1:]
        return means[1] if with_training else None, means[0], table[0, -1]

    def held_out(self, error: RowError) -> list[HeldOut]:
        """Errors of every validation row by every candidate, one entry per split: one pass per round."""
        found: list[HeldOut] = []
        for splits, fits in zip(self.rounds, self.fits, strict=True):
            found += joined_by_split(list(self.source.map(_HeldOutErrors(fits, splits, self.loss, error))))
        return found

    def validated(self, candidate: int) -> Iterator[tuple[Array, Array, Array | None]]:
        """(y, E y, weight) of the validation rows of every split, rounds one after the other."""
        for splits, fits in zip(self.rounds, self.fits, strict=True):
            parts = list(self.source.map(_Validated(fits[candidate], splits, self.loss)))
            for s in range(splits.n_splits):
                y, mean, weight = zip(*(part[s] for part in parts), strict=True)
                is_weighted = any(one is not None for one in weight)
                yield np.concatenate(y), np.concatenate(mean), np.concatenate(weight) if is_weighted else None


class MeanFoldMethods:
    """Methods of a model of means that cross-validation asks for."""

    alpha: Any
    l1_ratio: float
    bounds: Any

    def mean_fold_models(
        self, source: Source, rounds: Sequence[Splits], candidates: Sequence[Mapping[str, Any]]
    ) -> MeanModels | None:
        """Fits of all candidates to the training rows of all splits; None where each is to be fitted by itself."""
        found = score_fits(self, source, rounds, candidates)
        return None if found is None else MeanModels(found.source, rounds, found.fits, self._loss())

    def subset_folds(
        self, source: Source, rounds: Sequence[Splits], classes: Array | None = None
    ) -> tuple[Any, list[SubsetFolds]] | None:
        """What fits of subsets of columns need; None where these are to be fitted by themselves."""
        return subset_folds(self, source, rounds)

    def subset_models(
        self, source: Source, rounds: Sequence[Splits], fits: list[list[list[FoldWeights]]]
    ) -> MeanModels:
        """Fits of subsets as models, for their scores."""
        return MeanModels(source, rounds, fits, self._loss())

    def has_fold_sums(self, source: Source) -> bool:
        """Whether all splits share passes, as far as can be told without one over all rows."""
        return fold_columns(clone(self), source) is not None and float(self.l1_ratio) == 0 and self.bounds is None

    def candidates(self, source: Source) -> list[dict[str, Any]]:
        """Fifty values of alpha where the user names none."""
        return default_alphas(self, source)

    @property
    def default_scoring(self) -> str | None:
        """What the model is scored by where the user names nothing; None is its own score."""
        return DEVIANCES.get(type(self._loss()))

    def _loss(self) -> ScoreLoss:
        raise NotImplementedError


@dataclass(frozen=True)
class _RowErrors:
    """Sums of w error by set, candidate and split, over the rows of a run. Can be sent to a worker."""

    fits: list[list[FoldWeights]]
    splits: Splits
    sets: tuple[Array, ...]
    loss: ScoreLoss
    error: RowError
    block_rows: int

    def __call__(self, run: Block) -> Array:
        sums = np.zeros((len(self.sets), len(self.fits) + 1, self.splits.n_splits))
        cells = self.splits.cells.of(run)
        for s in range(self.splits.n_splits):
            times = np.array([np.append(table[s], 0.0)[cells] for table in self.sets])  # NO_CELL is the last
            weight = times if run.weight is None else times * run.weight
            seen = np.flatnonzero((weight > 0).any(axis=0))
            if not len(seen):
                continue
            rows, weight = _picked(run, seen), weight[:, seen]
            y = np.asarray(rows.y)
            sums[:, -1, s] = row_sums(weight, seen, run.n_rows, self.block_rows)
            for c, fits in enumerate(self.fits):
                with np.errstate(over="ignore", invalid="ignore"):
                    errors = self.error(y, self.loss.mean(fits[s].scores(rows)))
                sums[:, c, s] = row_sums(weight * errors, seen, run.n_rows, self.block_rows)
        return sums


@dataclass(frozen=True)
class _HeldOutErrors:
    """Errors of the validation rows of a run, one entry per split. Can be sent to a worker."""

    fits: list[list[FoldWeights]]
    splits: Splits
    loss: ScoreLoss
    error: RowError

    def __call__(self, run: Block) -> list[HeldOut]:
        found = []
        for s in range(self.splits.n_splits):
            seen, weight = validating(run, self.splits, s)
            rows = _picked(run, np.flatnonzero(seen))
            y, errors = np.asarray(rows.y), np.zeros((len(self.fits), len(weight)))
            for c, fits in enumerate(self.fits):
                if len(weight):
                    with np.errstate(over="ignore", invalid="ignore"):
                        errors[c] = self.error(y, self.loss.mean(fits[s].scores(rows)))
            found.append(HeldOut(numbers_where(run, seen), weight, y, {"error": errors}))
        return found


@dataclass(frozen=True)
class _Validated:
    """y, E y and weights of the validation rows of a run, a triple a split. Can be sent to a worker."""

    fits: list[FoldWeights]
    splits: Splits
    loss: ScoreLoss

    def __call__(self, run: Block) -> list[tuple[Array, Array, Array | None]]:
        found = []
        for s, fit in enumerate(self.fits):
            times = self.splits.validated(run, s)
            weight = times if run.weight is None else times * run.weight
            seen = np.flatnonzero(weight > 0)
            rows = _picked(run, seen)
            mean = self.loss.mean(fit.scores(rows)) if len(seen) else np.zeros(0)
            is_plain = run.weight is None and (times <= 1).all()
            found.append((np.asarray(rows.y), mean, None if is_plain else weight[seen]))
        return found


def _picked(run: Block, seen: Array) -> Block:
    mask = np.zeros(run.n_rows, dtype=bool)
    mask[seen] = True
    return run if len(seen) == run.n_rows else run.where(mask)
