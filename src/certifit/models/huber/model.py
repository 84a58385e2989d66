"""Huber regression: linear regression that outliers do not carry away."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from certifit.data.source import Source
from certifit.maps import Basis, UserEncoder
from certifit.mathematics.losses import Huber
from certifit.minimise.problem import Run, Solver
from certifit.models.certificate import Certificate
from certifit.models.folds import Grid, Rounds
from certifit.models.glm.chosen_solver import Asked, HuberScore, Objective, by_steps, check_asked
from certifit.models.huber.certificate import certify
from certifit.models.huber.solver import solve
from certifit.models.huber.task import HuberTask, HuberWeights, Rule
from certifit.models.huber.wide import huber_task
from certifit.models.learner import Told
from certifit.models.least_squares.robust_covariance import RowFacts
from certifit.models.linear import LinearRegressor
from certifit.models.start import AUTO, Start
from certifit.statistics.cell_sums import Store

MOST_STEPS = 1_000_000


class HuberRegressor(LinearRegressor[HuberTask, HuberWeights]):
    """Linear regression with Huber's loss: squares for small residuals, absolute values for large ones.

    h(z) = z^2/2 if |z| <= delta else delta |z| - delta^2/2,   r_i = y_i - b - x_i'w,   W = sum_i weight_i

    scale a number s, or "mad":  minimise over w, b      sum_i weight_i s^2 h(r_i / s) / W  +  alpha/2 |w|^2
    scale "joint":               minimise over w, b, s   sum_i weight_i s h(r_i / s) / W  +  s/2  +  alpha/2 |w|^2

    It bounds the pull of a large residual, so it helps where targets are wrong (phones, stackloss of R). It does not
    bound that of a row far out in its columns: such rows pull it as hard as they pull least squares, and then have
    small residuals (the giant stars of starsCYG). `LinearRegression().fit(X, y).influence(X, y).leverage` shows them.
    certificate:  the duality gap, relative to the objective; of the joint problem in w, b and s for "joint"; at the
    scale given; for "mad" at the scale found, with the change of the objective to the median of its own residuals

    Parameters
    ----------
    delta : float >= 1e-6, default 1.35
        Residuals beyond delta scales count by their absolute value. With scale="joint" above 1. 1.35 loses 5 % of the
        efficiency of least squares where noise is normal.
    alpha : float >= 0, default 0
        Strength of the L2 penalty, on the scale of a mean.
    scale : "joint", "mad" or a number from 1e-300 to 1e300, default "joint"
        "joint" is scikit-learn's model: its epsilon is delta, its alpha is alpha times the sum of weights. Where nearly
        half of the rows can be met exactly (columns half as many as rows, a weak penalty; a target that is mostly one
        value) its best scale is 0, and the fit that of least absolute values: it is not certified, and says so.
        "mad": the median of |r| / 0.6745, found with the fit in turn from least squares until it does not change, as
        statsmodels' RLM does; two numbers per row are kept in memory for it.
    fit_intercept : bool, default True
        The intercept is never penalised.
    standardize : bool, default False
        As for Ridge: the penalty is one of weights times the standard deviations of their columns.
    solver, start, basis, encoder : as for LinearRegression; a solver that takes steps needs `scale` as a number
    tol : float >= 0, default 1e-8
        Largest relative gap that counts as converged. The fit goes to its rounding floor anyway.
    max_iter : int from 1 to 1000000, default 100
        Newton steps at one scale, or steps of `solver`.
    max_time : float > 0 or None, default None
        Seconds after which no further step and no proof begins: what is reached is kept, and `certify` proves it.

    Attributes
    ----------
    coef_, intercept_, alpha_, certificate_, history_, rank_, condition_, null_space_ : as for Ridge
    n_iter_ : number of Newton steps
    scale_ : the scale of the residuals; unless given at least 2^-44 ("mad") or 2^-200 ("joint") of the target's size

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0]])
    >>> y = [2.1, 3.9, 6.2, 7.8, 10.1, 11.9, 140.0]
    >>> cf.LinearRegression().fit(X, y).coef_.round(4), cf.HuberRegressor(scale=0.1).fit(X, y).coef_.round(4)
    (array([15.4857]), array([2.0154]))
    """

    def __init__(
        self,
        delta: float = 1.35,
        alpha: float = 0.0,
        *,
        scale: Literal["joint", "mad"] | float = "joint",
        fit_intercept: bool = True,
        standardize: bool = False,
        solver: str | Solver = "auto",
        start: Start = None,
        basis: Basis | None = None,
        encoder: UserEncoder = None,
        tol: float = 1e-8,
        max_iter: int = 100,
        max_time: float | None = None,
    ) -> None:
        self.delta = delta
        self.alpha = alpha
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.solver = solver
        self.start = start
        self.basis = basis
        self.encoder = encoder
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time

    def folds(self, source: Source, rounds: Rounds, grid: Grid, shared: Store) -> None:
        """None: the fit is not linear in the target, so folds are refitted."""
        return None

    def _is_tuned(self) -> bool:
        return False

    def _task_at(self, source: Source, alpha: float | None) -> HuberTask:
        rule: Rule = self.scale if isinstance(self.scale, str) else float(self.scale)
        loss, strength = Huber(float(self.delta)), float(alpha or 0.0)
        return huber_task(source, loss, strength, rule, bool(self.fit_intercept), self._is_standardised())

    def _solve(self, task: HuberTask) -> Run[HuberWeights]:
        if isinstance(self.solver, str) and self.solver == AUTO:
            return solve(task, int(self.max_iter))
        scale = float(self.scale)
        loss = HuberScore(float(self.delta) * scale)
        robust = Objective(task.source, loss, float(task.strength), bool(self.fit_intercept), self._is_standardised())
        run = by_steps(robust, Asked(self.solver, self.start, float(self.tol), int(self.max_iter)))
        state = HuberWeights(run.state.coef, run.state.intercept, scale)
        return Run(state, run.history, run.reason, run.weights)

    def _told(self) -> Told:
        return replace(super()._told(), scale=getattr(self, "scale_", None))

    def _state(self) -> HuberWeights:
        return HuberWeights(self.coef_, self.intercept_, self.scale_)

    def _certified(self, task: HuberTask, state: HuberWeights) -> Certificate:
        return certify(task, state, float(self.tol))

    def _keep(self, task: HuberTask, run: Run[HuberWeights]) -> None:
        self.coef_, self.intercept_, self.scale_ = run.state.coef, run.state.intercept, run.state.scale
        self.alpha_ = float(task.strength)
        self.null_space_, self.null_intercept_ = task.null_space()
        self.n_iter_ = len(self.history_)

    def _why_no_inference(self, facts: RowFacts | None = None) -> str:
        return (
            "the standard errors of least squares do not hold for Huber's loss. Use Bootstrap to refit on resampled "
            "rows, or LinearRegression after looking at the outliers."
        )

    def _is_determined(self) -> bool:
        return False  # what holds for least squares of these rows says nothing of this fit

    def _penalty_strength(self) -> float | None:
        return float(self.alpha)

    def _is_standardised(self) -> bool:
        return bool(self.standardize)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_asked(self.solver, self.start)
        if self.solver != AUTO and isinstance(self.scale, str):
            raise ValueError(
                f"solver={self.solver!r} needs an objective that does not change on the way, and scale={self.scale!r} "
                "moves the scale with the fit. Give scale= a number, or use solver='auto'."
            )
        if self.scale == "joint" and not float(self.delta) > 1:
            raise ValueError(f"delta must be above 1 with scale='joint', or the scale falls to 0. Got {self.delta}.")
