"""Isotonic regression on scores: the best map that never falls."""

from __future__ import annotations

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.maps import UserEncoder
from certifit.minimise.problem import Run
from certifit.models.calibrated.certificate import IsotonicTask, Steps, certify
from certifit.models.certificate import Certificate
from certifit.models.estimator import Regressor


class IsotonicMap(Regressor[IsotonicTask, Steps]):
    """The map of one column that never falls and is nearest to the targets in squares.

    minimise over f that never falls:   sum_i weight_i (y_i - f(x_i))^2 / 2

    certificate:  the duality gap, relative to the objective

    Neighbouring scores whose means fall are pooled until none does. Between scores f is a straight line, beyond them
    constant. Calibrated has one for each class.

    Parameters
    ----------
    tol : float >= 0, default 1e-8
    encoder : as for LinearRegression

    Attributes
    ----------
    thresholds_, values_ : where pools begin and end, and the values of f there
    """

    def __init__(self, *, tol: float = 1e-8, encoder: UserEncoder = None) -> None:
        self.tol = tol
        self.encoder = encoder

    def scores(self, block: Block) -> Array:
        """The map at the rows of a block."""
        return self._state().at(np.asarray(self.columns_of(block), dtype=np.float64).reshape(-1))

    def _task(self, source: Source, is_fitted: bool = False) -> IsotonicTask:
        return IsotonicTask(source)

    def _solve(self, task: IsotonicTask) -> Run[Steps]:
        return Run(pooled(task), [], "")

    def _keep(self, task: IsotonicTask, run: Run[Steps]) -> None:
        self.thresholds_, self.values_ = run.state.thresholds, run.state.values

    def _state(self) -> Steps:
        return Steps(self.thresholds_, self.values_)

    def _certified(self, task: IsotonicTask, state: Steps) -> Certificate:
        return certify(task, state, float(self.tol))


def pooled(task: IsotonicTask) -> Steps:
    """Neighbours whose means fall, pooled until none does: the first and the last score of every pool, and its mean."""
    from scipy.optimize import isotonic_regression  # slow to import, and seldom needed

    begins = np.asarray(isotonic_regression(task.y, weights=task.weight).blocks, dtype=np.int64)
    mass = np.add.reduceat(task.weight, begins[:-1])
    means = np.add.reduceat(task.weight * task.y, begins[:-1]) / mass
    means = np.maximum.accumulate(means)  # rounding of means that are equal
    ends = np.stack([begins[:-1], begins[1:] - 1], axis=1)
    is_there = np.stack([np.ones(len(means), dtype=bool), ends[:, 1] > ends[:, 0]], axis=1)
    return Steps(task.x[ends[is_there]], np.repeat(means[:, None], 2, axis=1)[is_there])
