"""What all support vector machines share: rows as their kernel sees them, support vectors, and how they are solved."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.minimise.problem import Run
from certifit.models.kernel.base import KernelModel
from certifit.models.svm.certificate import MarginCertificate, certify
from certifit.models.svm.solver import solve
from certifit.models.svm.task import ONE_VS_ONE, MarginRun, MarginState, MarginTask, default_alphas, pairs_of

MEGABYTE = 2.0**20


class MarginModel(KernelModel[MarginTask, MarginState]):
    """A support vector machine. X_fit_: its support vectors, as the kernel sees them; dual_coef_: their multipliers
    times their signs, a column per machine.
    """

    certificate_: MarginCertificate
    tol: float
    max_iter: int
    cache_size: float
    intercepts_: Array

    @property
    def support_vectors_(self) -> Array:
        """The support vectors, as the kernel sees them."""
        check_is_fitted(self)
        return self.X_fit_

    @property
    def support_share_(self) -> float:
        """The share of the rows that are support vectors."""
        check_is_fitted(self)
        return len(self.support_) / float(self.data_["n_rows"])

    def candidates(self, source: Source) -> list[dict[str, float]]:
        """Five values of alpha where the user names none: C from 0.01 to 100 of a row."""
        return default_alphas(source)

    def _solve(self, task: MarginTask) -> Run[MarginState]:
        self._refuse_refuted(task.rows)
        return solve(task, float(self.tol), int(self.max_iter), float(self.cache_size) * MEGABYTE)

    def _keep(self, task: MarginTask, run: Run[MarginState]) -> None:
        state = run.state
        self.X_fit_, self.dual_coef_, self.intercepts_ = state.points, state.dual, state.intercepts
        assert isinstance(run, MarginRun)
        self.support_ = np.flatnonzero(task.rows.seen)[run.support]
        self._keep_rows(task.rows)
        self.alpha_ = task.alpha
        self.n_iter_ = len(self.history_)

    def _state(self) -> MarginState:
        return MarginState(self.X_fit_, self.dual_coef_, self.intercepts_)

    def _certified(self, task: MarginTask, state: MarginState) -> MarginCertificate:
        return certify(task, state, float(self.tol))


def class_scores(z: Array, n_classes: int, multi_class: str) -> Array:
    """A score per class of b + f(x) by every machine."""
    if n_classes == 2:
        return np.column_stack([-z[:, 0], z[:, 0]])
    return voted(z, pairs_of(n_classes), n_classes) if multi_class == ONE_VS_ONE else z


def voted(z: Array, pairs: list[tuple[int, int]], n_classes: int) -> Array:
    """A score per class of machines of two classes each: votes won, and less than half a vote by how clearly."""
    votes, clearly = np.zeros((len(z), n_classes)), np.zeros((len(z), n_classes))
    for p, (first, second) in enumerate(pairs):
        is_second = z[:, p] > 0
        votes[:, first] += ~is_second
        votes[:, second] += is_second
        clearly[:, first] -= z[:, p]
        clearly[:, second] += z[:, p]
    return np.asarray(votes + clearly / (3 * (np.abs(clearly) + 1)))
