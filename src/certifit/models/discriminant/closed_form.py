"""What models of p(x, k) with a closed form share.

Its sums are by class. Sums by fold and class are those of all training sets, so cross-validation needs no refits.

What tasks share whose optimum is a formula of sums by class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from certifit.data.cells import ByLabel, Cells, Splits
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.data.user_input import UserRows, UserTarget, UserWeights
from certifit.minimise.problem import Run
from certifit.models.classifier import Classifier, codes_of
from certifit.models.discriminant.folds import class_folds
from certifit.models.estimator import StateT
from certifit.models.folds import Candidate, EachRow, Grid, Rounds, RowFolds, Subsets
from certifit.statistics.cell_sums import Store

State = TypeVar("State")


class ClosedForm(ABC, Generic[State]):
    """A likelihood of rows and classes. rows, cells: what was summed, where a certificate may read it again."""

    rows: Source | None = None
    cells: Cells | None = None

    @property
    def mended(self) -> str:
        """What was done where the likelihood has no maximum, and what to do; nothing where it has one."""
        return ""

    @abstractmethod
    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""

    @abstractmethod
    def solve(self) -> State:
        """The state of largest likelihood."""


ClosedT = TypeVar("ClosedT", bound=ClosedForm[Any])
SumsT = TypeVar("SumsT")


class GenerativeClassifier(Classifier[ClosedT, StateT], Generic[ClosedT, StateT, SumsT]):
    """A model of p(x, k) whose parameters are a closed form of sums by class."""

    tol: float
    class_count_: Array

    def predict_joint_log_proba(self, X: UserRows) -> Array:
        """log p(x, k) = log p(k) + log p(x | k)."""
        return self._whole(X, self._joint)

    def joint_log_likelihood(self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None) -> float:
        """sum_i weight_i log p(x_i, y_i), of labelled rows or of a scan that carries its target."""
        check_is_fitted(self)
        return float(self.labelled(X, y, sample_weight).reduce(self._row_likelihoods))

    def folds(self, source: Source, rounds: Rounds, grid: Grid, shared: Store) -> RowFolds | None:
        """Closed forms of sums by cell; where these do not tell, of sums over the training rows of every split."""
        if isinstance(rounds, EachRow) or isinstance(grid, Subsets) or grid.classes is None:
            return None
        probe = clone(self)
        probe._check_parameters()
        probe.classes_ = grid.classes
        return class_folds(probe, source, rounds, grid.settings)

    def fold_columns(self, source: Source) -> Source | None:
        """The columns that sums by fold are made of; None where each training set has its own."""
        if self.basis is not None:
            return None
        mapped = self.fit_maps(source)
        self.column_names_ = list(mapped.names)
        return None if self.encoder_ is not None and self.encoder_.opened()[1] else mapped

    def row_folds(self, mapped: Source, rounds: Sequence[Splits], candidates: Sequence[Candidate]) -> RowFolds | None:
        """Folds that need no sums by cell; None where those are to tell."""
        return None

    def fold_parts(self, source: Source, cells: Cells) -> Callable[[Array], Any]:
        """The statistic of unions of cells, as a function of how often each union (row) holds each cell."""
        sums: Any = self.statistic(source, cells)
        return cast(Callable[[Array], Any], sums.combined)

    def sums_key(self) -> Hashable:
        """What the sums depend on: models of equal keys share them."""
        return None

    def statistic_bytes(self, n_cells: int, n_columns: int) -> int:
        """Size of the statistic of so many cells."""
        return 24 * n_cells * n_columns

    @abstractmethod
    def statistic(self, source: Source, cells: Cells) -> SumsT:
        """Sums of the mapped rows by cell."""

    def solve(self, statistic: SumsT, source: Source) -> None:
        """Store the closed form of a statistic of the classes, without a certificate."""
        task = self._task_from(statistic, source)
        self._store(task, task.solve())

    def _task(self, source: Source, is_fitted: bool = False) -> ClosedT:
        return self._task_from(self.statistic(source, ByLabel(len(self.classes_))), source, source)

    def _task_from(self, statistic: SumsT, source: Source, rows: Source | None = None) -> ClosedT:
        """The task of a statistic of the classes. rows: what it was summed from, where that is at hand."""
        task = self._task_of(statistic, source)
        task.rows, task.cells = rows, ByLabel(len(self.classes_))
        return task

    def _solve(self, task: ClosedT) -> Run[StateT]:
        return Run(task.solve())

    def _keep(self, task: ClosedT, run: Run[StateT]) -> None:
        self._store(task, run.state)

    def _warnings(self, task: ClosedT, run: Run[StateT]) -> list[str]:
        return [task.mended] * bool(task.mended) + super()._warnings(task, run)

    @abstractmethod
    def _task_of(self, statistic: SumsT, source: Source) -> ClosedT:
        """What has a closed form."""

    @abstractmethod
    def _store(self, task: ClosedT, state: StateT) -> None:
        """Set the attributes of a state."""

    @abstractmethod
    def _log_joint(self, columns: Block) -> Array:
        """log p(x, k) of mapped rows."""

    def mapped_scores(self, columns: Block) -> Array:
        """log p(k | x) of mapped rows, but for what is equal for all classes of a row."""
        return self._log_joint(columns)

    def _joint(self, block: Block) -> Array:
        return self._finite(block, self._log_joint)

    def _row_likelihoods(self, block: Block) -> np.float64:
        joint, codes = self._joint(block), codes_of(block)
        of_label = joint[np.arange(len(joint)), codes.clip(min=0)]
        weight = np.ones(len(of_label)) if block.weight is None else block.weight
        return np.float64(weight[codes >= 0] @ of_label[codes >= 0])


def checked_priors(name: str, priors: ArrayLike | None, classes: Array) -> Array | None:
    """One number >= 0 a class, of sum 1; None stays None."""
    if priors is None:
        return None
    values = np.asarray(priors, dtype=np.float64)
    if values.shape != (len(classes),):
        raise ValueError(f"{name} must have one number per class, {len(classes)}. Got shape {values.shape}.")
    if not (np.isfinite(values).all() and (values >= 0).all() and abs(values.sum() - 1) <= 1e-8):
        raise ValueError(f"{name} must be numbers >= 0 that add up to 1. Got {values.tolist()}.")
    return values
