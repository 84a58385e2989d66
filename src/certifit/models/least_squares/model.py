"""Least squares and ridge regression."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.data.along import Sums
from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.inference.least_squares import Inference
from certifit.maps import Basis, UserEncoder
from certifit.minimise.problem import Run, Solver
from certifit.models.certificate import Certificate
from certifit.models.least_squares.certificate import certify, infer
from certifit.models.least_squares.dual import DualLeastSquares, least_squares_task
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.least_squares.solver import solve
from certifit.models.least_squares.task import LeastSquares
from certifit.models.linear import LinearRegressor
from certifit.models.start import AUTO, Start
from certifit.statistics.gram import GramSums

LeastSquaresTask: TypeAlias = LeastSquares | DualLeastSquares


class LeastSquaresRegressor(LinearRegressor[LeastSquaresTask, Weights]):
    """Least squares with or without a ridge penalty: one linear system."""

    solver: str | Solver
    start: Start
    max_iter: int

    @property
    def n_iter_(self) -> int:
        """Steps of the solver; 1 where the equations were solved directly."""
        check_is_fitted(self)
        return max([1, *(int(row["iteration"]) for row in self.history_[-1:])])

    def _first_sums(self) -> Sums | None:
        return GramSums(bool(self.fit_intercept)) if self.basis is None else None

    def _task_at(self, source: Source, alpha: float | None) -> LeastSquaresTask:
        return least_squares_task(source, alpha, bool(self.fit_intercept), self._is_standardised())

    def _solve(self, task: LeastSquaresTask) -> Run[Weights]:
        if self._is_direct():
            return solve(task)
        from certifit.mathematics.losses.scores import Squared
        from certifit.models.glm.chosen_solver import Asked, Objective, by_steps

        alpha, standardize = float(task.alpha), self._is_standardised()
        squares = Objective(task.source, Squared(), alpha, bool(self.fit_intercept), standardize)
        return by_steps(squares, Asked(self.solver, self.start, float(self.tol), int(self.max_iter)))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not self._is_direct() or self.start is not None:
            from certifit.models.glm.chosen_solver import check_asked

            check_asked(self.solver, self.start)

    def _is_direct(self) -> bool:
        """Whether the equations are solved at once: what takes steps is slow to import."""
        return isinstance(self.solver, str) and self.solver == AUTO

    def _keep(self, task: LeastSquaresTask, run: Run[Weights]) -> None:
        self.coef_, self.intercept_ = run.state.coef, run.state.intercept
        self.alpha_ = task.alpha
        self.null_space_, self.null_intercept_ = task.null_space()

    def _state(self) -> Weights:
        return Weights(self.coef_, self.intercept_)

    def _stated(self) -> dict[str, object]:
        return super()._stated() | {"names": ()}

    def _certified(self, task: LeastSquaresTask, state: Weights) -> Certificate:
        return certify(task, state, float(self.tol))

    def _inferred(self, task: LeastSquaresTask) -> Inference | None:
        return infer(task, self._state())


class LinearRegression(LeastSquaresRegressor):
    """Ordinary least squares.

    minimise over w, b:   sum_i weight_i (y_i - b - x_i'w)^2 / (2 sum_i weight_i)

    Redundant columns are found, named in `certificate_`, and the solution of smallest norm is returned.
    certificate:  relative excess of the objective; rank; correct digits of every coefficient

    Parameters
    ----------
    fit_intercept : bool, default True
    solver : "auto", the name of a solver, or an instance such as SGD(step=0.01), default "auto"
        "auto" solves the normal equations. Any other takes steps, and `history_` shows them: "gradient-descent",
        "conjugate-gradient", "bfgs", "lbfgs", "newton", "sgd" (single rows: the rule of Widrow and Hoff, LMS),
        "mini-batch", "averaged-sgd". Those that learn row by row end near the minimum: give tol=1e-3.
    start : None, "zero", a whole number >= 0 or an array, default None
        Where the steps begin: None is no weights and the mean of y, "zero" an intercept of 0 too, a whole number the
        seed of standard normal numbers, an array a number per column, then the intercept. Not with "auto".
    basis : None, Polynomial(degree) or Functions([...]), default None
        Fit in these functions of the features instead of the features.
    encoder : None, "auto" or TableEncoder(...), default None
        How a table's columns become numbers (categories, gaps, dates). Scans of files use TableEncoder() by default; a
        data frame with texts or categories needs one: "auto" is TableEncoder() with its defaults.
    tol : float >= 0, default 1e-8
        Largest relative excess of the objective that counts as converged. "auto" goes to its rounding floor anyway.
    max_iter : int >= 1, default 1000
        Steps of such a solver; epochs of one that learns row by row.
    max_time : float > 0 or None, default None
        Seconds after which such a solver stops where it is.

    Attributes
    ----------
    coef_, intercept_ : the fit
    rank_, condition_ : of the columns (centred with an intercept)
    null_space_ : directions in which the coefficients are not determined; see `solutions`
    certificate_ : how far from the optimum, redundant columns, correct digits
    history_ : one row per iteration
    weights_ : of a solver with record="weights", a row per step, the start first: weights, then the intercept

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> model = cf.LinearRegression().fit(X, [2.0, 4.1, 5.9, 8.0])
    >>> model.coef_.round(12), round(model.intercept_, 12)
    (array([1.98]), 0.05)
    """

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        solver: str | Solver = "auto",
        start: Start = None,
        basis: Basis | None = None,
        encoder: UserEncoder = None,
        tol: float = 1e-8,
        max_iter: int = 1000,
        max_time: float | None = None,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.start = start
        self.basis = basis
        self.encoder = encoder
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time

    def _penalty_strength(self) -> float | None:
        return 0.0


class Ridge(LeastSquaresRegressor):
    """Least squares with an L2 penalty; alpha is per row: scikit-learn's Ridge(alpha=a) is Ridge(alpha=a / n) here.

    minimise over w, b:   sum_i weight_i (y_i - b - x_i'w)^2 / (2 sum_i weight_i)  +  alpha/2 |w|^2

    certificate:  relative excess of the objective, g' A^-1 g / 2 for d <= n; the duality gap for d > n

    Parameters
    ----------
    alpha : float >= 0 or None, default None
        Strength of the penalty, on the scale of a mean. None is 1 / sum of weights: the optimum of scikit-learn's
        Ridge(alpha=1). scikit-learn's alpha is ours times the sum of weights.
    fit_intercept : bool, default True
        The intercept is never penalised.
    standardize : bool, default False
        Penalise s_j w_j instead of w_j, s_j the standard deviation of a column (without an intercept, the root mean
        square): the fit of standardised columns, stated in the units of the columns. Another unit then changes nothing.
    solver, start, basis, encoder, max_iter, max_time : as for LinearRegression
    tol : float >= 0, default 1e-8

    Attributes
    ----------
    alpha_ : the alpha used
    coef_, intercept_, certificate_, history_, weights_, rank_, condition_ : as for LinearRegression

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> cf.Ridge(alpha=0.25).fit(X, [2.0, 4.0, 6.0, 8.0]).coef_.round(12)
    array([1.66666667])
    """

    def __init__(
        self,
        alpha: float | None = None,
        *,
        fit_intercept: bool = True,
        standardize: bool = False,
        solver: str | Solver = "auto",
        start: Start = None,
        basis: Basis | None = None,
        encoder: UserEncoder = None,
        tol: float = 1e-8,
        max_iter: int = 1000,
        max_time: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.solver = solver
        self.start = start
        self.basis = basis
        self.encoder = encoder
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time

    def _penalty_strength(self) -> float | None:
        return None if self.alpha is None else float(self.alpha)

    def _is_standardised(self) -> bool:
        return bool(self.standardize)

    def _candidates(self, variances: Array) -> list[dict[str, Any]]:
        """Fifty values of alpha, from what hardly changes the fit to what all but flattens it."""
        spread = variances[np.isfinite(variances) & (variances > 0)]
        spread = np.ones_like(spread) if self.standardize else spread
        low, high = (spread.min(), spread.max()) if len(spread) else (1.0, 1.0)
        exponents = np.linspace(np.log10(low) - 6, np.log10(high) + 2, 50)
        return [{"alpha": float(10.0**exponent)} for exponent in exponents]
