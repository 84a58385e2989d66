"""Naive Bayes: columns that are independent within a class. What all kinds share, and Gaussian columns."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from certifit.certificates.certificate import Certificate
from certifit.certificates.gaussian_classes import certify_gaussian
from certifit.data.cells import ByLabel, Cells
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.data.user_types import UserLabels, UserRows, UserTarget, UserWeights
from certifit.maps import Basis, TableEncoder
from certifit.models.generative_classifier import ClosedT, GenerativeClassifier, SumsT, checked_priors
from certifit.models.task import StateT
from certifit.runtime import core, n_threads
from certifit.solvers.run import Run
from certifit.statistics.cell_sums import CellMoments, cell_moments
from certifit.tasks.gaussian_classes import DiagonalCovariance, GaussianState, Shrinkage


class NaiveBayes(GenerativeClassifier[ClosedT, StateT, SumsT]):
    """A classifier whose statistic adds, so that rows can come in parts."""

    def partial_fit(
        self, X: UserRows, y: UserTarget = None, classes: UserLabels = None, sample_weight: UserWeights = None
    ) -> Self:
        """Add rows to those seen so far: the model is then that of one fit to all of them.

        classes: all labels there will be, in the first call. Columns of a table are read as in the first call.
        """
        return self._partial_fit(X, y, classes=classes, sample_weight=sample_weight)

    def _add(self, source: Source) -> None:
        sums = self._sums if hasattr(self, "certificate_") else None
        self._settle(self._task_from(self._added(source, sums), source))

    @abstractmethod
    def _added(self, source: Source, sums: SumsT | None) -> SumsT:
        """The statistic of these rows and those before."""

    def _keep(self, task: ClosedT, run: Run[StateT]) -> None:
        super()._keep(task, run)
        self._sums = self._sums_of(task)

    @abstractmethod
    def _sums_of(self, task: ClosedT) -> SumsT:
        """The statistic that a task is of."""


class GaussianNB(NaiveBayes[DiagonalCovariance, GaussianState, CellMoments]):
    """Naive Bayes with Gaussian columns: p(x, k) = prior_k prod_j N(x_j; theta_kj, var_kj).

    maximise over priors, theta, var:   sum_i weight_i log p(x_i, y_i);  then var += epsilon

    certificate:  shortfall of the mean log-likelihood, in nats per row, of the variances before epsilon is added

    Parameters
    ----------
    priors : None or one number a class, default None
        None is the classes' shares of the rows.
    var_smoothing : float >= 0, default 1e-9
        epsilon is this share of the largest variance of any column over all rows: weighted ones, and all rows that
        partial_fit has seen, where scikit-learn takes those of the last call, unweighted.
    basis, encoder : as for LinearRegression
    tol : float >= 0, default 1e-8

    Attributes
    ----------
    classes_, class_prior_, class_count_ : of every class
    theta_, var_ : means and variances, classes x columns
    epsilon_ : what was added to every variance
    certificate_ : see above

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> cf.GaussianNB().fit(X, [0, 0, 1, 1]).predict_proba([[0.0]]).round(6)
    array([[0.5, 0.5]])
    """

    def __init__(
        self,
        *,
        priors: ArrayLike | None = None,
        var_smoothing: float = 1e-9,
        basis: Basis | None = None,
        encoder: TableEncoder | None = None,
        tol: float = 1e-8,
    ) -> None:
        self.priors = priors
        self.var_smoothing = var_smoothing
        self.basis = basis
        self.encoder = encoder
        self.tol = tol

    def statistic(self, source: Source, cells: Cells) -> CellMoments:
        """Means and squares about them, by cell."""
        return cell_moments(source, cells)

    def _added(self, source: Source, sums: CellMoments | None) -> CellMoments:
        scaling = None if sums is None else sums.scaling
        own = cell_moments(source, ByLabel(len(self.classes_)), scaling)
        return own if sums is None else sums.merged(own)

    def _sums_of(self, task: DiagonalCovariance) -> CellMoments:
        return task.moments

    def _task_of(self, statistic: CellMoments, source: Source) -> DiagonalCovariance:
        priors = checked_priors("priors", self.priors, self.classes_)
        added = float(self.var_smoothing) * float(statistic.total_variances().max(initial=0.0))
        return DiagonalCovariance(statistic, Shrinkage(), priors, list(source.names), self.classes_, added=added)

    def _store(self, task: DiagonalCovariance, state: GaussianState) -> None:
        self.class_count_, self.class_prior_ = task.moments.weights, state.priors
        self.theta_, self.var_, self.epsilon_ = state.means, state.covariance, task.added
        self.redundant_ = state.redundant

    def _state(self) -> GaussianState:
        with np.errstate(divide="ignore"):
            roots = 1.0 / np.sqrt(self.var_)
        roots[:, list(self.redundant_)] = 0.0
        return GaussianState(self.class_prior_, self.theta_, self.var_, roots[:, None, :], self.redundant_)

    def _certified(self, task: DiagonalCovariance, state: GaussianState) -> Certificate:
        return certify_gaussian(task, state, float(self.tol))

    def _log_joint(self, columns: Block) -> Array:
        state = self._state()
        joint: Array = core.quadratic_scores(columns.rows, self.theta_, state.roots, state.constants(), n_threads())
        return joint
