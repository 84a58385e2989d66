"""Kernel ridge regression."""

from __future__ import annotations

from typing import Literal

import numpy as np
from sklearn.base import clone

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.maps import UserEncoder
from certifit.minimise.problem import Run
from certifit.models.estimator import Regressor
from certifit.models.folds import Grid, Rounds, Subsets, shared_work
from certifit.models.kernel.base import KernelModel, UserKernel, kernel_of
from certifit.models.kernel.certificate import KernelCertificate, certify
from certifit.models.kernel.folds import KernelFolds, KernelPart
from certifit.models.kernel.solver import solve
from certifit.models.kernel.task import KernelRidgeTask, KernelState, dense_rows
from certifit.models.start import Start, check_start, start_weights
from certifit.statistics.cell_sums import Store


class KernelRidge(KernelModel[KernelRidgeTask, KernelState], Regressor[KernelRidgeTask, KernelState]):
    """Ridge regression in the space of a kernel; alpha is per row: scikit-learn's KernelRidge(alpha=a) is alpha=a / n.

    minimise over f, b:   sum_i weight_i (y_i - b - f(x_i))^2 / (2 sum_i weight_i)  +  alpha/2 |f|^2

    f = sum_i c_i k(x_i, .), |f|^2 = c'Gc;   (G + alpha sum(weight) / weight) c = y - b with sum c = 0
    certificate:  the duality gap, relative to the objective, which is |y - b - (G + N alpha I) c|^2 / (2N) here

    Up to 2,500 rows by a Cholesky factor, beyond by conjugate gradients that a randomly pivoted Cholesky factor
    preconditions. The fitted model keeps all its rows, or the landmarks.

    Parameters
    ----------
    alpha : float > 0 or None, default None
        Strength of the penalty, on the scale of a mean. None is 1 / sum of weights: the penalty of scikit-learn's
        KernelRidge(alpha=1).
    kernel : None, a kernel, a function or "precomputed", default None
        None is Gaussian("scale"). A function takes two arrays of rows and gives the matrix of both. "precomputed": X is
        the matrix of the kernel; of rows to predict, with those of the fit. A width "scale" comes from the features of
        the rows of the fit.
    fit_intercept : bool, default True
        The intercept is never penalised.
    standardize : bool, default False
        The kernel sees (x - mean) / standard deviation of every column.
    n_landmarks : int or None, default None
        None is the exact model. A number keeps so many rows: the best function of their kernels alone. The certificate
        is then the gap to the exact model.
    indefinite : {"refuse", "allow"}, default "refuse"
        What to do with a kernel that the rows show not to be Mercer. "allow" fits a stationary point, and claims only
        that.
    encoder : as for LinearRegression
    tol : float >= 0, default 1e-8
        Largest relative gap that counts as converged. The fit goes to its rounding floor anyway.
    max_iter : int >= 1, default 1000
        Steps of conjugate gradients.
    max_time : float > 0 or None, default None
        Seconds after which no further step and no proof begins: what is reached is kept, and `certify` proves it.
    start : None, "zero", a whole number >= 0 or an array, default None
        Where conjugate gradients begin, for models of more than 2,500 rows. "zero" and None: at no coefficients; a
        whole number is the seed of standard normal numbers; an array has a number per row of the fit that has weight,
        then the intercept.
    random_state : int >= 0, default 0
        Which rows the preconditioner and the landmarks are made of.

    Attributes
    ----------
    X_fit_ : the rows that are kept, as the kernel sees them; dual_coef_ : their c; intercept_ : b
    kernel_ : the kernel with its width as a number; alpha_ : the alpha used
    certificate_, history_, n_iter_ : the proof, one row per refinement, and their number

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = cf.KernelRidge(alpha=1e-3, kernel=cf.kernels.Gaussian(0.5)).fit(X, np.sin(3 * X[:, 0]))
    >>> model.predict([[1.0]]).round(2), model.certificate_.holds
    (array([0.14]), True)
    """

    shares = ("alpha",)
    certificate_: KernelCertificate
    intercept_: float

    def __init__(
        self,
        alpha: float | None = None,
        *,
        kernel: UserKernel = None,
        fit_intercept: bool = True,
        standardize: bool = False,
        n_landmarks: int | None = None,
        indefinite: Literal["refuse", "allow"] = "refuse",
        encoder: UserEncoder = None,
        tol: float = 1e-8,
        max_iter: int = 1000,
        max_time: float | None = None,
        start: Start = None,
        random_state: int = 0,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.n_landmarks = n_landmarks
        self.indefinite = indefinite
        self.encoder = encoder
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.start = start
        self.random_state = random_state

    def _task(self, source: Source, is_fitted: bool = False) -> KernelRidgeTask:
        asked = None if self.alpha is None else float(self.alpha)
        n_landmarks = None if self.n_landmarks is None else int(self.n_landmarks)
        rows = self._kernel_rows(source, is_fitted)
        return KernelRidgeTask(rows, self.alpha_ if is_fitted else asked, bool(self.fit_intercept), n_landmarks)

    def folds(self, source: Source, rounds: Rounds, grid: Grid, shared: Store) -> KernelFolds | None:
        """Fits to all training sets from one matrix of the kernel, all alphas together.

        A width "scale" is that of all rows; gaps are filled and columns standardised by the rows of each training set.
        None for landmarks, and for kernels that are not known to be Mercer.
        """
        if isinstance(grid, Subsets):
            return None
        parts = []
        for others, places in shared_work(grid.settings, self.shares):
            model = clone(self).set_params(**others)
            model._check_parameters()
            alphas = [model._strength_of(grid.settings[place]) for place in places]
            kernel = kernel_of(model.kernel)
            is_open = kernel is not None and not kernel.is_proven
            if is_open or model.n_landmarks is not None:
                return None
            columns, opened = model._fold_columns(source)
            settings = (bool(model.fit_intercept), bool(model.standardize), int(model.random_state))
            parts.append(KernelPart(columns, opened, kernel, places, alphas, *settings))
        return KernelFolds(parts, rounds)

    def candidates(self, source: Source) -> list[dict[str, float]]:
        """Twenty values of alpha, from what hardly changes the fit to what all but flattens it."""
        kernel, size = kernel_of(self.kernel), 1.0
        if kernel is not None and not self.standardize:
            points = dense_rows(clone(self).fit_maps(source).first_block().X)
            size = float(np.mean(kernel.resolved(points).diagonal(points)))
        size = size if 0 < size < np.inf else 1.0
        return [{"alpha": float(alpha)} for alpha in size * np.logspace(-7, 1, 20)]

    def _solve(self, task: KernelRidgeTask) -> Run[KernelState]:
        self._refuse_refuted(task.rows, allowed=self.indefinite == "allow")
        start = None
        if self.start is not None:
            weights, intercepts = start_weights(self.start, 1, task.rows.n_points, task.fit_intercept)
            start = weights[0] * task.y_scale, float(intercepts[0]) * task.y_scale
        return solve(task, int(self.max_iter), int(self.random_state), start)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_start(self.start)

    def _keep(self, task: KernelRidgeTask, run: Run[KernelState]) -> None:
        self.X_fit_, self.dual_coef_, self.intercept_ = run.state.points, run.state.dual, run.state.intercept
        self._keep_rows(task.rows)
        self.alpha_ = task.alpha
        self.n_iter_ = max(int(self.history_[-1]["iteration"]), 1)

    def _state(self) -> KernelState:
        return KernelState(self.X_fit_, self.dual_coef_, self.intercept_)

    def _certified(self, task: KernelRidgeTask, state: KernelState) -> KernelCertificate:
        return certify(task, state, float(self.tol))

    def scores(self, block: Block) -> Array:
        """b + f(x) for the rows of a block of the source that the model was fitted to."""
        return np.asarray(self._sums(block)[:, 0] + self.intercept_)
