"""Support vector regression."""

from __future__ import annotations

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.maps import UserEncoder
from certifit.minimise.problem import Run
from certifit.models.estimator import Regressor
from certifit.models.kernel.base import UserKernel
from certifit.models.svm.base import MarginModel
from certifit.models.svm.task import MarginState, MarginTask, default_alpha, of_numbers


class SVR(MarginModel, Regressor[MarginTask, MarginState]):
    """A function within epsilon of the numbers y, in the feature space of a kernel.

    minimise over f, b:   sum_i weight_i max(0, |y_i - b - f(x_i)| - epsilon) / sum_i weight_i  +  alpha/2 |f|^2

    f = sum_i c_i k(x_i, .),   |c_i| <= C_i = weight_i / (alpha sum of weights),   sum_i c_i = 0
    certificate:  the duality gap, relative to the objective, with the worst violation of the conditions of the optimum

    Rows nearer than epsilon have c_i = 0; the others are the support vectors, which the fitted model keeps.

    Parameters
    ----------
    alpha : float > 0 or None, default None
        Strength of the penalty, on the scale of a mean. None is 1 / sum of weights: scikit-learn's SVR(C=1).
    epsilon : float >= 0, default 0.1
        Errors up to it cost nothing, in the unit of y.
    kernel, fit_intercept, standardize, cache_size, encoder : as for SVC
    tol : float >= 0, default 1e-4
        Largest gap, relative to the objective, that counts as converged.
    max_iter : int >= 1, default 10_000_000
        Most steps of two multipliers.
    max_time : as for SVC

    Attributes
    ----------
    support_vectors_ : the rows that are kept, as the kernel sees them; dual_coef_ : their c_i; support_ : their places
    intercept_ : b; kernel_, alpha_ : as used
    certificate_, history_, n_iter_ : the proof, one row per round, and their number

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = cf.SVR(1e-3, epsilon=0.01, kernel=cf.kernels.Gaussian(0.5)).fit(X, np.sin(3 * X[:, 0]))
    >>> model.predict([[1.0]]).round(2), model.certificate_.holds
    (array([0.13]), True)
    """

    def __init__(
        self,
        alpha: float | None = None,
        *,
        epsilon: float = 0.1,
        kernel: UserKernel = None,
        fit_intercept: bool = True,
        standardize: bool = False,
        cache_size: float = 200.0,
        encoder: UserEncoder = None,
        tol: float = 1e-4,
        max_iter: int = 10_000_000,
        max_time: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.epsilon = epsilon
        self.kernel = kernel
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.cache_size = cache_size
        self.encoder = encoder
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time

    @property
    def intercept_(self) -> float:
        """b."""
        return float(self.intercepts_[0])

    def _task(self, source: Source, is_fitted: bool = False) -> MarginTask:
        rows = self._kernel_rows(source, is_fitted)
        alpha = self.alpha_ if is_fitted else default_alpha(rows, self.alpha)
        assert alpha is not None
        if rows.block.y is None:
            raise ValueError("SVR needs a target.")
        y = np.asarray(rows.block.y, dtype=np.float64)
        machine = of_numbers(y, float(self.epsilon), rows.share / alpha, bool(self.fit_intercept))
        return MarginTask(rows, [machine], alpha, in_float64=is_fitted)

    def _keep(self, task: MarginTask, run: Run[MarginState]) -> None:
        super()._keep(task, run)
        y, share = np.asarray(task.rows.block.y, dtype=np.float64), task.rows.share
        with np.errstate(over="ignore"):
            mean = float(share @ y)
            spread = float(np.sqrt(share @ np.square(y - mean)))
        self.data_ = self.data_ | {"target_mean": mean, "target_sd": spread}

    def scores(self, block: Block) -> Array:
        """b + f(x) for the rows of a block of the source that the model was fitted to."""
        return np.asarray(self._sums(block)[:, 0] + self.intercepts_[0])
