"""Kernel LMS: the model."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.data.user_input import UserRows, UserTarget
from certifit.maps import UserEncoder
from certifit.minimise.problem import Run
from certifit.models.certificate import Certificate
from certifit.models.estimator import Regressor
from certifit.models.kernel.base import KernelModel, UserKernel
from certifit.models.kernel.descent import LmsCertificate, LmsState, LmsTask, certify, solve


class KernelLMS(KernelModel[LmsTask, LmsState], Regressor[LmsTask, LmsState]):
    """Least mean squares in the feature space of a kernel: gradient descent on the squared error, stopped early.

    batch:          beta <- beta + step (y - G beta)
    one at a time:  beta_i <- beta_i + step (y_i - sum_j beta_j k(x_j, x_i)),  row after row

    f = sum_i beta_i k(x_i, .), from beta = 0; the step multiplies the sum over rows, not their mean
    certificate:  the step is below the largest stable one, and the training objective is the one stated

    There is no intercept, and no weights: the order of the rows decides. The fitted model keeps all its rows.

    Parameters
    ----------
    step : float > 0 or None, default None
        None is half of the largest stable step: 1 / lambda_max(G), or 1 / max k(x, x). A step that is not stable is
        refused with the largest one that is.
    kernel : None, a kernel, a function or "precomputed", default None
        As for KernelRidge; a kernel that the rows show not to be Mercer is refused.
    updates : {"batch", "rows"}, default "batch"
        All rows at once, or one at a time in their order.
    standardize : bool, default False
        The kernel sees (x - mean) / standard deviation of every column.
    encoder : as for LinearRegression
    max_iter : int >= 1, default 100
        Passes over the rows.
    max_time : float > 0 or None, default None
        Seconds after which no further step and no proof begins: what is reached is kept, and `certify` proves it.

    Attributes
    ----------
    X_fit_, dual_coef_ : the rows that are kept and beta; step_ : the step used; kernel_ : as for KernelRidge
    certificate_, history_, n_iter_ : the proof, the objective after every pass, and their number

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> model = cf.KernelLMS(kernel=cf.kernels.Gaussian(0.5), max_iter=200).fit(X, np.sin(3 * X[:, 0]))
    >>> abs(model.predict([[1.0]])[0] - np.sin(3.0)) < 0.05, model.certificate_.holds
    (np.True_, True)
    """

    certificate_: LmsCertificate

    def __init__(
        self,
        step: float | None = None,
        *,
        kernel: UserKernel = None,
        updates: Literal["batch", "rows"] = "batch",
        standardize: bool = False,
        encoder: UserEncoder = None,
        max_iter: int = 100,
        max_time: float | None = None,
    ) -> None:
        self.step = step
        self.kernel = kernel
        self.updates = updates
        self.standardize = standardize
        self.encoder = encoder
        self.max_iter = max_iter
        self.max_time = max_time

    def fit(self, X: UserRows, y: UserTarget = None) -> Self:  # type: ignore[override]  # takes no weights
        """Fit to rows X and target y (arrays, sparse matrices, data frames), or to a scan that carries its target."""
        return self._fit(X, y)

    def certify(self, X: UserRows, y: UserTarget = None) -> Certificate:  # type: ignore[override]  # takes no weights
        """The certificate of this model recomputed on data; no solver takes part."""
        return self._certify(X, y)

    def _task(self, source: Source, is_fitted: bool = False) -> LmsTask:
        asked = None if self.step is None else float(self.step)
        return LmsTask(
            self._kernel_rows(source, is_fitted), self.step_ if is_fitted else asked, self.updates == "batch"
        )

    def _solve(self, task: LmsTask) -> Run[LmsState]:
        self._refuse_refuted(task.rows)
        return solve(task, int(self.max_iter))

    def _keep(self, task: LmsTask, run: Run[LmsState]) -> None:
        state = run.state
        self.X_fit_, self.dual_coef_, self.step_ = state.points, state.dual, state.step
        self._keep_rows(task.rows)
        self.n_iter_ = len(self.history_)

    def _state(self) -> LmsState:
        return LmsState(self.X_fit_, self.dual_coef_, self.step_, float(self.history_[-1]["objective"]))

    def _warnings(self, task: LmsTask, run: Run[LmsState]) -> list[str]:
        return super()._warnings(task, run) or [run.reason] * bool(run.reason)  # a stable step proves no minimum

    def _certified(self, task: LmsTask, state: LmsState) -> LmsCertificate:
        return certify(task, state)

    def scores(self, block: Block) -> Array:
        """f(x) for the rows of a block of the source that the model was fitted to."""
        return np.asarray(self._sums(block)[:, 0])
