"""Lasso and elastic net: least squares whose penalty sets weights to zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from certifit.data.along import Sums
from certifit.data.cells import Splits, has_every_row
from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.data.user_input import UserRows, UserTarget, UserWeights
from certifit.maps import Basis, Polynomial, UserEncoder
from certifit.minimise.minimum import SOLVERS, WORDS, name_of, solver_of
from certifit.minimise.problem import Run
from certifit.models.certificate import Certificate
from certifit.models.folds import EachRow, Rounds
from certifit.models.lasso import certificate as elastic
from certifit.models.lasso import solver as coordinate
from certifit.models.lasso.columns import ColumnLasso, elastic_task, works_on_columns
from certifit.models.lasso.folds import column_fold_path, gram_fold_path, total_units
from certifit.models.lasso.solver import CoordinateDescent, LassoPath, alpha_max, elastic_path, gram_alpha_max
from certifit.models.lasso.task import LassoTask
from certifit.models.least_squares import certificate as least_squares
from certifit.models.least_squares import solver as direct
from certifit.models.least_squares.dual import least_squares_task
from certifit.models.least_squares.fold_path import FoldEquations, FoldPath, Gaps
from certifit.models.least_squares.folds import NumberPart
from certifit.models.least_squares.model import LeastSquaresTask
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.linear import Bounds, LinearRegressor, PenaltyFactors, PenaltyParameters, alpha_count
from certifit.models.start import Start, check_start, start_weights
from certifit.statistics.cell_sums import Store
from certifit.statistics.gram import GramSums

AUTO, COORDINATE = "auto", "coordinate-descent"
LEAST_SHARE = {False: 1e-3, True: 1e-2}  # of the largest alpha; fewer rows than columns are fitted exactly sooner


LassoOrLeastSquares: TypeAlias = LassoTask | LeastSquaresTask


class LassoModel(PenaltyParameters[LassoOrLeastSquares, Weights], LinearRegressor[LassoOrLeastSquares, Weights]):
    """Least squares with an L1 and L2 penalty, factors of single columns and bounds."""

    alpha: float
    standardize: bool
    solver: str | CoordinateDescent
    start: Start
    max_iter: int

    @property
    def n_iter_(self) -> int:
        """Passes over the columns."""
        check_is_fitted(self)
        return max(int(self.history_[-1]["iteration"]), 1)

    def path(
        self,
        X: UserRows,
        y: UserTarget = None,
        sample_weight: UserWeights = None,
        *,
        alphas: ArrayLike | None = None,
        n_alphas: int = 100,
    ) -> LassoPath:
        """Solutions along alphas.

        alphas: by default `n_alphas` of them, evenly spaced on a logarithmic scale, from the least that gives no weight
        down to 1e-3 of it (1e-2 where columns outnumber rows).
        """
        return self._path(X, y, alphas, n_alphas, sample_weight=sample_weight)

    def _path_of(self, source: Source, alphas: Array | None, n_alphas: int) -> LassoPath:
        task = self._elastic_task(source)
        by_columns = isinstance(task, ColumnLasso)
        chosen = _grid(alpha_max(task), alpha_count(n_alphas), by_columns) if alphas is None else alphas
        return elastic_path(task, chosen, float(self.tol), int(self.max_iter))

    def candidates(self, source: Source) -> list[dict[str, float]]:
        """The hundred values of alpha of `path`: one pass."""
        model = clone(self)
        model._check_parameters()
        task = model._elastic_task(model.fit_maps(source))
        return _candidates(alpha_max(task), isinstance(task, ColumnLasso))

    def fold_candidates(self, source: Source, rounds: Rounds, shared: Store) -> list[dict[str, float]]:
        """The same, from sums by cell that the folds need too; one pass where the folds take other columns or rows."""
        model = clone(self)
        columns = model._fold_columns(source, shared)
        if isinstance(rounds, EachRow) or columns is None or self.basis is not None or works_on_columns(columns[0]):
            return self.candidates(source)
        if not has_every_row(rounds[0].cells):
            return self.candidates(source)
        folds = FoldEquations(columns[0], rounds, bool(self.fit_intercept), columns[1], shared=shared)
        units = total_units(folds, bool(self.standardize))
        return _candidates(gram_alpha_max(units, model._strengths(folds.names, 1.0)), False)

    def _leaves_out_rows(self, gaps: Gaps | None) -> bool:
        return False  # the fit is not linear in the target

    def _fold_part(
        self,
        columns: tuple[Source, Gaps | None],
        rounds: Sequence[Splits],
        places: list[int],
        alphas: Sequence[float | None],
        shared: Store,
    ) -> NumberPart | None:
        mapped, gaps = columns
        strengths = [float(alpha or 0.0) for alpha in alphas]
        fit_intercept, standardize = bool(self.fit_intercept), bool(self.standardize)
        stop = (float(self.tol), int(self.max_iter))
        if not works_on_columns(mapped):
            folds = FoldEquations(mapped, rounds, fit_intercept, gaps, shared=shared)
            path = partial(gram_fold_path, folds, self._strengths(folds.names, 1.0), standardize, strengths, stop)
            return NumberPart(self, places, alphas, path)
        # Columns are standardised again for every training set, so an l2 penalty is not a multiple of an l1 penalty.
        is_mixed = standardize and self._l1_ratio() < 1
        if gaps is not None or isinstance(self.basis, Polynomial) or not all(strengths) or is_mixed:
            return None
        task = partial(ColumnLasso, mapped, self._strengths(mapped.names, 1.0), fit_intercept, standardize)
        return NumberPart(self, places, alphas, partial(_column_path, task, rounds, strengths, stop))

    def _first_sums(self) -> Sums | None:
        return GramSums(bool(self.fit_intercept)) if self.basis is None else None

    def _task_at(self, source: Source, alpha: float | None) -> LassoOrLeastSquares:
        strengths = self._strengths(source.names, 1.0 if alpha is None else alpha)
        if strengths.alpha == 0 and self.bounds is None:
            # Sums of least squares bear any condition.
            return least_squares_task(source, 0.0, bool(self.fit_intercept))
        return elastic_task(source, strengths, bool(self.fit_intercept), bool(self.standardize))

    def _elastic_task(self, source: Source) -> LassoTask:
        """The task of a path, at an alpha of 1."""
        strengths = self._strengths(source.names, 1.0)
        return elastic_task(source, strengths, bool(self.fit_intercept), bool(self.standardize))

    def _solve(self, task: LassoOrLeastSquares) -> Run[Weights]:
        sweeps = self._sweeps()
        if isinstance(task, LassoTask):
            if sweeps is not None:
                start = None
                if self.start is not None:
                    start = start_weights(self.start, 1, task.source.n_features, False)[0][0]
                return coordinate.solve_by_sweeps(task, sweeps, float(self.tol), int(self.max_iter), start)
            return coordinate.solve(task, float(self.tol), int(self.max_iter))
        if sweeps is not None:
            raise ValueError(
                "alpha=0 without bounds is least squares, which coordinate descent is not made for. Use solver='auto', "
                "or LinearRegression(solver=...)."
            )
        return direct.solve(task)

    def _sweeps(self) -> CoordinateDescent | None:
        """Coordinate descent where it was asked for; None is the compiled solver."""
        if isinstance(self.solver, CoordinateDescent):
            return self.solver
        return CoordinateDescent() if self.solver == COORDINATE else None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_start(self.start)
        if isinstance(self.solver, CoordinateDescent) or self.solver in (AUTO, COORDINATE):
            if self._sweeps() is None and self.start is not None:
                raise ValueError(
                    "start needs a solver that takes steps: solver='auto' solves directly. Give "
                    f"solver={COORDINATE!r} too."
                )
            return
        known = isinstance(self.solver, str) and self.solver in SOLVERS
        if known or hasattr(self.solver, "minimise"):
            needs = " and ".join(WORDS[need] for need in sorted(solver_of(self.solver).needs))
            raise ValueError(
                f"Solver {name_of(solver_of(self.solver))!r} needs {needs} of a smooth objective, and an L1 penalty "
                f"has a corner at 0. Use solver='auto' or {COORDINATE!r}; for a smooth penalty Ridge(solver=...)."
            )
        raise ValueError(f"solver must be 'auto', {COORDINATE!r} or CoordinateDescent(...). Got {self.solver!r}.")

    def _stated(self) -> dict[str, object]:
        return super()._stated() | {"rank": int(np.count_nonzero(self.coef_))}

    def _certified(self, task: LassoOrLeastSquares, state: Weights) -> Certificate:
        prove: Callable[..., Certificate] = elastic.certify if isinstance(task, LassoTask) else least_squares.certify
        return prove(task, state, float(self.tol))

    def _keep(self, task: LassoOrLeastSquares, run: Run[Weights]) -> None:
        self.coef_, self.intercept_ = run.state.coef, run.state.intercept
        if isinstance(task, LassoTask):
            self.alpha_ = float(task.strengths.alpha)
            self.null_space_, self.null_intercept_ = np.zeros((len(run.state.coef), 0)), np.zeros(0)
        else:
            self.alpha_ = task.alpha
            self.null_space_, self.null_intercept_ = task.null_space()

    def _state(self) -> Weights:
        return Weights(self.coef_, self.intercept_)

    def _l1_ratio(self) -> float:
        return 1.0

    def _penalty_strength(self) -> float | None:
        return float(self.alpha)


class Lasso(LassoModel):
    """Least squares with an L1 penalty: many weights are exactly zero.

    minimise over w, b:   sum_i weight_i (y_i - b - x_i'w)^2 / (2 sum_i weight_i)  +  alpha sum_j f_j |w_j|

    certificate:  the duality gap, relative to the objective

    Parameters
    ----------
    alpha : float >= 0, default 1.0
        Strength of the penalty. At alpha >= max_j |x_j'(y - mean y)| / n every weight is zero.
    fit_intercept : bool, default True
        The intercept is never penalised.
    penalty_factors : dict {column: factor}, array or None, default None
        Factors f_j >= 0 of single columns, 1 where none is named; 0 leaves a column unpenalised.
    bounds : dict {column: (low, high), "increasing" or "decreasing"}, pair of arrays or None, default None
        Bounds on weights, with 0 between them; in a dict None is no bound.
    standardize : bool, default False
        Penalise s_j w_j instead of w_j, s_j the standard deviation of a column (without an intercept, the root mean
        square): the fit of standardised columns, stated in the units of the columns.
    solver : "auto", "coordinate-descent" or CoordinateDescent(record="weights"), default "auto"
        "auto" solves directly on the columns with a weight. Coordinate descent is the textbook's: one weight after the
        other; `history_` has the primal, the dual and their gap after every sweep.
    start : None, "zero", a whole number >= 0 or an array, default None
        Where coordinate descent begins: no weights, standard normal numbers of a seed, or a number per column of the
        fit. The intercept is the best one at every step.
    basis, encoder : as for LinearRegression
    tol : float >= 0, default 1e-8
        Largest relative gap that counts as converged.
    max_iter : int >= 1, default 10000
        Passes over the columns.
    max_time : float > 0 or None, default None
        Seconds after which no further step and no proof begins: what is reached is kept, and `certify` proves it.

    Attributes
    ----------
    coef_, intercept_, alpha_, certificate_, history_ : as for Ridge
    rank_, condition_ : number of columns with a weight, and their condition

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0]])
    >>> cf.Lasso(alpha=0.5).fit(X, [2.0, 4.0, 6.0, 8.0]).coef_.round(12)
    array([1.6, 0. ])
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        penalty_factors: PenaltyFactors = None,
        bounds: Bounds = None,
        standardize: bool = False,
        solver: str | CoordinateDescent = "auto",
        start: Start = None,
        basis: Basis | None = None,
        encoder: UserEncoder = None,
        tol: float = 1e-8,
        max_iter: int = 10_000,
        max_time: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.penalty_factors = penalty_factors
        self.bounds = bounds
        self.standardize = standardize
        self.solver = solver
        self.start = start
        self.basis = basis
        self.encoder = encoder
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time


class ElasticNet(LassoModel):
    """Least squares with a mix of an L1 and an L2 penalty.

    minimise over w, b:   sum_i weight_i (y_i - b - x_i'w)^2 / (2 sum_i weight_i)
                          + alpha sum_j f_j ( l1_ratio |w_j| + (1 - l1_ratio)/2 w_j^2 )

    certificate:  the duality gap, relative to the objective

    Parameters
    ----------
    alpha : float >= 0, default 1.0
    l1_ratio : float in (0, 1], default 0.5
        Share of the L1 penalty; 1 is the lasso. For 0 use Ridge.
    standardize : bool, default False
        Penalise s_j w_j instead of w_j, as for Lasso: scikit-learn's ElasticNet behind a StandardScaler.
    fit_intercept, penalty_factors, bounds, solver, start, basis, encoder, tol, max_iter, max_time : as for Lasso

    Attributes
    ----------
    coef_, intercept_, alpha_, certificate_, history_, rank_, condition_ : as for Lasso

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0]])
    >>> cf.ElasticNet(alpha=0.5).fit(X, [2.0, 4.0, 6.0, 8.0]).coef_.round(12)
    array([1.5, 0. ])
    """

    def __init__(
        self,
        alpha: float = 1.0,
        l1_ratio: float = 0.5,
        *,
        fit_intercept: bool = True,
        penalty_factors: PenaltyFactors = None,
        bounds: Bounds = None,
        standardize: bool = False,
        solver: str | CoordinateDescent = "auto",
        start: Start = None,
        basis: Basis | None = None,
        encoder: UserEncoder = None,
        tol: float = 1e-8,
        max_iter: int = 10_000,
        max_time: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.penalty_factors = penalty_factors
        self.bounds = bounds
        self.standardize = standardize
        self.solver = solver
        self.start = start
        self.basis = basis
        self.encoder = encoder
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time

    def _l1_ratio(self) -> float:
        return float(self.l1_ratio)


def _column_path(
    make: Callable[[], ColumnLasso],
    rounds: Sequence[Splits],
    alphas: Sequence[float],
    stop: tuple[float, int],
    with_rows: bool,
) -> FoldPath:
    """Errors from the columns, which are gathered when they are wanted."""
    return column_fold_path(make(), rounds, alphas, stop, with_rows)


def _candidates(largest: float, by_columns: bool) -> list[dict[str, float]]:
    return [{"alpha": float(alpha)} for alpha in _grid(largest, 100, by_columns)]


def _grid(largest: float, n_alphas: int, by_columns: bool) -> Array:
    """From the least alpha without a weight downwards."""
    if not largest > 0:
        largest = 1.0  # the target tells nothing about the columns: any penalty gives no weights
    return largest * np.geomspace(1.0, LEAST_SHARE[by_columns], n_alphas)
