"""A generalised linear model on the training rows of every split: sums by cell, and sums of all splits at once.

minimise for every split s   sum_c train[s, c] sum_(i in c) w_i l(y_i, z_i) / W_s + sum_j l2_sj/2 w_j^2
Where columns are standardised, l2_sj has their variances over the training rows of the split.

The Hessian of a training set is a sum of those of the cells: one pass gives those of all splits at a common point.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.losses.scores import ScoreLoss
from certifit.statistics.cell_sums import cell_moments
from certifit.statistics.fold_oracle import CellTargets, FoldsAt, cell_targets, fold_oracle
from certifit.tasks.elastic import Strengths
from certifit.tasks.generalised import GeneralisedLinear
from certifit.tasks.normal_equations import LARGEST_PENALTY

MOST_BYTES = 256 << 20  # of the Hessians of all cells and splits


@dataclass(frozen=True)
class FoldsNear:
    """Losses of all training sets at a common point, their gradients and Hessians; and the Hessians of the cells."""

    losses: Array
    slopes: Array
    hessians: Array
    by_cell: Array


class FoldLosses:
    """Smooth parts of the objectives of all splits; points are those of the task of all rows."""

    def __init__(self, task: GeneralisedLinear, splits: Splits) -> None:
        self.task, self.splits = task, splits

    @property
    def n_splits(self) -> int:
        """Number of training sets."""
        return self.splits.n_splits

    @cached_property
    def _targets(self) -> CellTargets:
        return cell_targets(self.task.source, self.splits.cells)

    @cached_property
    def train_weight(self) -> Array:
        """Sum of weights of every training set."""
        weight = np.asarray(self.splits.train @ self._targets.weight)
        if not (weight > 0).all():
            raise ValueError("A split has no rows of positive weight. Use fewer folds.")
        return weight

    @cached_property
    def has_start(self) -> Array:
        """Whether an intercept alone has a finite best value on a training set."""
        means = self.splits.train @ self._targets.first / self.train_weight
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.array([np.isfinite(self.task.loss.score(float(mean))) for mean in means])

    @cached_property
    def _unit(self) -> Array:
        """What makes a mean of a scaled sum."""
        return 1.0 / (self.train_weight * self.task.scaling.weight_scale)

    def at(self, point: Array) -> FoldsNear:
        """Losses of all training sets at one point, their gradients and Hessians: one pass."""
        by_cell = self.task.sums(point, hessian=True, cells=self.splits.cells)
        if by_cell.hessian is None:
            raise ValueError("The pass gave no Hessian.")
        train = self.splits.train * self._unit[:, None]
        slopes = train @ by_cell.gradient
        if not self.task.fit_intercept:
            slopes[:, -1] = 0.0
        return FoldsNear(train @ by_cell.value, slopes, self._combined(train, by_cell.hessian), by_cell.hessian)

    def validation_slopes(self, points: Array) -> Array:
        """Gradients of the mean losses of the validation rows, each split at its own point: one pass."""
        every = Splits(self.splits.cells, self.splits.validation, self.splits.validation)
        sums = fold_oracle(self.task.source, FoldsAt(self.task.loss, self.task.scaling, every, points))
        return np.asarray((sums.gradient / np.where(sums.weight > 0, sums.weight, 1.0)).T)

    def validation_hessians(self, near: FoldsNear) -> Array:
        """Hessians of the mean losses of the validation rows."""
        weight = self.splits.validation @ self._targets.weight * self.task.scaling.weight_scale
        times = self.splits.validation / np.where(weight > 0, weight, 1.0)[:, None]
        return self._combined(times, near.by_cell)

    def _combined(self, times: Array, by_cell: Array) -> Array:
        held = np.einsum("sc,cij->sij", times, by_cell)
        if not self.task.fit_intercept:
            held[:, -1], held[:, :, -1] = 0.0, 0.0
            held[:, -1, -1] = 1.0  # no step along it, and no flat direction either
        return np.asarray(held)

    def evaluate(self, places: Array, points: Array) -> tuple[Array, Array]:
        """Losses and their gradients of some training sets, each at its own point: one pass."""
        task, every = self.task, self.splits
        splits = Splits(every.cells, every.train[places], every.validation[places])
        sums = fold_oracle(task.source, FoldsAt(task.loss, task.scaling, splits, points))
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = sums.gradient.T * self._unit[places, None]
            if not task.fit_intercept:
                gradient[:, -1] = 0.0
            return sums.train * self._unit[places], gradient

    def l2(self, alphas: Array) -> Array:
        """Strengths of the squares of scaled weights for an alpha a split: splits x (columns + 1)."""
        strengths = self.task.strengths
        with np.errstate(over="ignore", under="ignore"):
            own = alphas[:, None] * (1 - strengths.l1_ratio) * strengths.factors
            strength = np.minimum(own * (self.task.scaling.scale * self._spreads) ** 2, LARGEST_PENALTY)
        return np.column_stack([np.where(own > 0, strength, 0.0), np.zeros(len(alphas))])

    @cached_property
    def _spreads(self) -> Array:
        """What weights are multiplied by in the penalty: splits x columns."""
        if not self.task.standardize:
            return np.ones((self.n_splits, 1))
        by_cell = cell_moments(self.task.source, self.splits.cells)
        return by_cell.combined(self.splits.train).spreads(self.task.fit_intercept)

    def alone(self, split: int, alpha: float) -> GeneralisedLinear:
        """The same training set as a task of its own."""
        return task_of(self.task, self.splits.trained(self.task.source, split), alpha)


def task_of(task: GeneralisedLinear, source: Source, alpha: float) -> GeneralisedLinear:
    """The same model on other rows with another alpha."""
    s = task.strengths
    strengths = Strengths(alpha, s.l1_ratio, s.factors, s.lower, s.upper)
    return GeneralisedLinear(source, task.loss, strengths, task.fit_intercept, task.standardize)


def fits_in_memory(loss: ScoreLoss, n_columns: int, splits: Splits) -> bool:
    """Whether the loss is compiled and convex, and Hessians of all cells and splits are not too large."""
    size = 8 * (splits.cells.n_cells + 2 * splits.n_splits) * (n_columns + 1) ** 2
    return loss.code is not None and loss.is_convex and size <= MOST_BYTES
