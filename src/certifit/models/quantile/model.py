"""Quantile regression: a linear model of the value that a share of the targets stays below."""

from __future__ import annotations

from certifit.data.source import Source
from certifit.maps import Basis, UserEncoder
from certifit.minimise.problem import Run
from certifit.models.certificate import Certificate
from certifit.models.folds import Grid, Rounds
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.least_squares.robust_covariance import RowFacts
from certifit.models.linear import LinearRegressor
from certifit.models.quantile.certificate import certify
from certifit.models.quantile.solver import solve
from certifit.models.quantile.task import QuantileTask
from certifit.models.start import Start, check_start, start_weights
from certifit.statistics.cell_sums import Store


class QuantileRegressor(LinearRegressor[QuantileTask, Weights]):
    """Linear regression of a quantile: a share `quantile` of the targets lies below it, the others above.

    minimise over w, b:   sum_i weight_i rho(y_i - b - x_i'w) / sum_i weight_i  +  alpha |w|_1

    rho(r) = quantile r if r >= 0 else (quantile - 1) r
    certificate:  the duality gap, relative to the objective, with a dual point that is proven to be feasible

    Without a penalty the fit meets as many rows exactly as it has coefficients. Where several fits are best, as the
    median of an even number of rows, the one with the least sum of squared residuals is taken. Columns that repeat
    others have weight 0. All rows are held in memory.

    Parameters
    ----------
    quantile : float above 0 and below 1, default 0.5
        0.5 is the median: least absolute deviations.
    alpha : float >= 0, default 0
        Strength of the L1 penalty, on the scale of a mean. scikit-learn's default is 1.
    fit_intercept : bool, default True
        The intercept is never penalised.
    standardize : bool, default False
        As for Lasso: the penalty is one of weights times the standard deviations of their columns.
    start : None, "zero", a whole number >= 0 or an array, default None
        Where the interior point method begins. None is least squares, moved to the quantile of its residuals; "zero" no
        weights and no intercept; a whole number the seed of standard normal numbers; an array has a number per column
        of the fit, then the intercept. Columns that repeat others have no weight from the first step on.
    basis, encoder : as for LinearRegression
    tol : float >= 0, default 1e-8
        Largest relative gap that counts as converged. The fit goes to its rounding floor anyway.
    max_iter : int from 1 to 1000000, default 200
        Steps of the interior point method.
    max_time : float > 0 or None, default None
        Seconds after which no further step and no proof begins: what is reached is kept, and `certify` proves it.

    Attributes
    ----------
    coef_, intercept_, alpha_, certificate_, rank_, condition_, null_space_ : as for Ridge
    history_ : primal and dual objective and their gap after every step; row 0 is the start
    n_iter_ : number of steps

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0]])
    >>> y = [2.0, 4.5, 6.0, 7.5, 10.0, 12.0, 140.0]
    >>> model = cf.QuantileRegressor(quantile=0.5).fit(X, y)
    >>> model.coef_.round(4), round(model.intercept_, 4), model.certificate_.holds
    (array([2.]), 0.0, True)
    """

    def __init__(
        self,
        quantile: float = 0.5,
        alpha: float = 0.0,
        *,
        fit_intercept: bool = True,
        standardize: bool = False,
        start: Start = None,
        basis: Basis | None = None,
        encoder: UserEncoder = None,
        tol: float = 1e-8,
        max_iter: int = 200,
        max_time: float | None = None,
    ) -> None:
        self.quantile = quantile
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.start = start
        self.basis = basis
        self.encoder = encoder
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time

    def _task_at(self, source: Source, alpha: float | None) -> QuantileTask:
        quantile, strength = float(self.quantile), float(alpha or 0.0)
        return QuantileTask(source, quantile, strength, bool(self.fit_intercept), bool(self.standardize))

    def _solve(self, task: QuantileTask) -> Run[Weights]:
        start = None
        if self.start is not None:
            weights, intercepts = start_weights(self.start, 1, task.source.n_features, task.fit_intercept)
            start = Weights(weights[0], float(intercepts[0]))
        return solve(task, int(self.max_iter), start)

    def _certified(self, task: QuantileTask, state: Weights) -> Certificate:
        return certify(task, state, float(self.tol))

    def _keep(self, task: QuantileTask, run: Run[Weights]) -> None:
        self.coef_, self.intercept_, self.alpha_ = run.state.coef, run.state.intercept, task.alpha
        self.null_space_, self.null_intercept_ = task.null_space()
        self.n_iter_ = max(int(self.history_[-1]["iteration"]), 1)

    def _state(self) -> Weights:
        return Weights(self.coef_, self.intercept_)

    def _why_no_inference(self, facts: RowFacts | None = None) -> str:
        return (
            "standard errors of a quantile need the density of the noise at it. Use Bootstrap to refit on resampled "
            "rows."
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_start(self.start)

    def _is_determined(self) -> bool:
        return False  # what holds for least squares of these rows says nothing of this fit

    def _is_tuned(self) -> bool:
        return False

    def _is_standardised(self) -> bool:
        return bool(self.standardize)

    def _penalty_strength(self) -> float:
        return float(self.alpha)

    def folds(self, source: Source, rounds: Rounds, grid: Grid, shared: Store) -> None:
        """None: the fit is not linear in the target, so folds are refitted."""
        return None
