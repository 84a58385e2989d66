"""Locally weighted regression: the model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.special
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.data.source import Block, Memory, Source
from certifit.data.user_input import UserRows, predict_rows, predict_source, refuse_nonfinite
from certifit.maps import UserEncoder
from certifit.minimise.problem import Run
from certifit.models.estimator import Regressor
from certifit.models.folds import Candidates, EachRow, Grid, Rounds
from certifit.models.kernel.task import Standard, dense_rows
from certifit.models.learner import Told
from certifit.models.local.at_query import LocalFit, local_fit
from certifit.models.local.certificate import LocalCertificate, certify, conditions
from certifit.models.local.folds import MOST_SECONDS, LocalFolds
from certifit.models.local.solver import Fits, fits, solve, width_errors
from certifit.models.local.task import (
    DEGREES,
    KINDS,
    WIDTHS,
    LocalForm,
    LocalRows,
    LocalState,
    LocalTask,
    TermFunction,
    WeightFunction,
)
from certifit.statistics.cell_sums import Store


class LocallyWeightedRegression(Regressor[LocalTask, LocalState]):
    """At every query x a least squares fit of its own, in which near rows count more.

    minimise over theta:   sum_i weight_i w_i(x) (y_i - theta'phi(x_i))^2,    f(x) = theta'phi(x)
    w_i(x) = exp(-|x_i - x|^2 / (2 tau^2)),  or (1 - (|x_i - x| / tau)^3)^3 within tau,  or K(|x_i - x| / tau)
    distances and tau in standard deviations of the columns; with standardize=False in the columns' own units

    certificate:  relative residual and condition of the local normal equations, worst over the training points

    A query far from all rows uses exp(-(d_i^2 - min d^2) / (2 tau^2)), the same fit in exact arithmetic; without a row
    of positive weight the nearest rows alone count. Fewer distinct rows than unknowns: the smallest slopes that fit.
    As tau grows the fit becomes that of LinearRegression. The fitted model keeps all rows.

    Parameters
    ----------
    tau : float > 0 or None, default None
        Width of the weights. None: that of least squared error by exact
        leave-one-out among 14 widths, all in one run; curve_ has all errors. Of more than 2,048 distinct rows, 2,048
        are left out in turn, each predicted from all others; down to 256 where columns are many and that takes long.
    weights : {"gaussian", "tricube"} or a function, default "gaussian"
        A function takes an array of distances / tau and gives a number >= 0 for each.
    terms : {"constant", "linear", "quadratic"} or a function, default "linear"
        The local model. A function takes rows and gives the columns of a basis; a constant is always there.
    standardize : bool, default True
        Whether distances are between standardised columns.
    encoder : as for LinearRegression
    tol : float >= 0, default 1e-8
        Largest relative residual of the local equations that counts as solved.

    Attributes
    ----------
    tau_ : the width used; curve_ : tau and the mean squared error by leave-one-out, one row per width tried
    X_fit_, y_fit_, weight_fit_ : the distinct rows that are kept; local_coef_ : coefficients at every one of them,
        or at 1,024 of more; the certificate is about these points
    noise_ : standard deviation of the rows about the curve; degrees_ : effective number of parameters, sum of leverages
    certificate_ : the proof

    >>> import numpy as np
    >>> import certifit as cf
    >>> x = np.linspace(0, 6, 60)
    >>> model = cf.LocallyWeightedRegression().fit(x[:, None], np.sin(x))
    >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 0.01), model.certificate_.holds
    (True, True)
    """

    certificate_: LocalCertificate
    shares = ("tau",)
    tau_: float
    X_fit_: Array
    y_fit_: Array
    weight_fit_: Array
    local_coef_: Array
    curve_: Array
    mean_: Array | None
    scale_: Array | None
    noise_: float
    degrees_: float
    n_iter_ = 1

    def __init__(
        self,
        tau: float | None = None,
        *,
        weights: str | WeightFunction = "gaussian",
        terms: str | TermFunction = "linear",
        standardize: bool = True,
        encoder: UserEncoder = None,
        tol: float = 1e-8,
    ) -> None:
        self.tau = tau
        self.weights = weights
        self.terms = terms
        self.standardize = standardize
        self.encoder = encoder
        self.tol = tol

    # Fit

    def _form(self) -> LocalForm:
        return LocalForm(self.weights, self.terms)

    def _task(self, source: Source, is_fitted: bool = False) -> LocalTask:
        tau = None if self.tau is None else float(self.tau)
        if is_fitted:
            return LocalTask(source, self._form(), self.tau_, self._standard())
        return LocalTask(source, self._form(), tau, bool(self.standardize))

    def _solve(self, task: LocalTask) -> Run[LocalState]:
        run, self.curve_, self.noise_, self.degrees_ = solve(task)
        return run

    def _keep(self, task: LocalTask, run: Run[LocalState]) -> None:
        state = run.state
        self.X_fit_, self.y_fit_, self.weight_fit_ = state.rows, state.y, state.weight
        self.tau_, self.local_coef_ = state.tau, state.coefficients
        self.mean_ = None if state.standard is None else state.standard.mean
        self.scale_ = None if state.standard is None else state.standard.scale
        self.history_ = run.history

    def _state(self) -> LocalState:
        return LocalState(self.X_fit_, self.y_fit_, self.weight_fit_, self.tau_, self._standard(), self.local_coef_)

    def _standard(self) -> Standard | None:
        return None if self.mean_ is None or self.scale_ is None else Standard(self.mean_, self.scale_)

    def _certified(self, task: LocalTask, state: LocalState) -> LocalCertificate:
        return certify(task, state, float(self.tol))

    def _told(self) -> Told:
        return Told(self.get_params(deep=False), vars(self).get("tau_"))

    # Queries

    def _kept(self) -> LocalRows:
        return LocalRows(self._state(), self._form())

    def _columns(self, block: Block) -> Array:
        X = dense_rows(self.columns_of(block))
        if not np.isfinite(X).all():
            refuse_nonfinite(Memory(X, None, names=self.column_names_))
        return X

    def _fits(self, block: Block, *, norm: bool = False) -> tuple[LocalRows, Fits]:
        X, rows = self._columns(block), self._kept()
        at = None if rows.columns is None else rows.form.columns(X)
        return rows, fits(rows, rows.seen(X), np.array([self.tau_]), at, norm=norm)

    def scores(self, block: Block) -> Array:
        """f(x) for the rows of a block of the source that the model was fitted to."""
        if block.X.shape[0] == 0:
            return np.zeros(0)
        rows, at_rows = self._fits(block)
        with np.errstate(over="ignore"):
            return np.asarray(at_rows.prediction[0] / rows.y_scale)

    def local(self, x: UserRows) -> LocalFit:
        """The fit at one query: weights of the kept rows, coefficients with standard errors, rank and condition.

        x: one row, as a list of numbers or as a table with one row.
        """
        check_is_fitted(self)
        rows = np.atleast_2d(x) if isinstance(x, Sequence | np.ndarray) else x
        block = predict_rows(self, rows)
        if block.X.shape[0] != 1:
            raise ValueError(f"local(x) takes one row. Got {block.X.shape[0]}.")
        return local_fit(self._kept(), self._columns(block), self.tau_, self.noise_, self.column_names_)

    def leave_one_out(self) -> Array:
        """Widths and mean squared errors by leave-one-out, one row per width: curve_, or with tau given 14 and its own.

        It takes as many steps as a fit with tau=None.
        """
        check_is_fitted(self)
        if len(self.curve_):
            return self.curve_
        rows = self._kept()
        if len(rows.y) < 2:
            return np.zeros((0, 2))
        share = rows.weight / rows.weight.sum()
        spread = float(np.sqrt((share @ np.square(rows.points - share @ rows.points)).sum()))
        taus = np.unique(np.append(WIDTHS * (spread if 0 < spread < np.inf else 1.0), self.tau_))
        return width_errors(rows, share, taus)

    def conditions(self) -> Array:
        """The condition of the local system at every training point that is proven; infinite where it is singular."""
        check_is_fitted(self)
        return conditions(self._kept(), self._state())

    def predict_band(self, X: UserRows, level: float = 0.95) -> Array:
        """Lower and upper end for every row: a pointwise band for the mean of the fit, f(x) -+ t noise |l(x)|.

        The band is about the expectation of f(x), which is not the curve behind the data: the bias that smoothing makes
        is not corrected. Rows are taken to be independent with equal variance.
        """
        check_is_fitted(self)
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1. Got {level!r}.")
        if not np.isfinite(self.noise_):
            raise ValueError(
                "There is no band: the fit passes through the rows, so their noise is not known. Raise tau."
            )
        if isinstance(X, Source):
            parts = [self._band(stretch, level) for stretch in predict_source(self, X).stretches()]
            return np.concatenate(parts) if parts else np.zeros((0, 2))
        return self._band(predict_rows(self, X), level)

    def _band(self, block: Block, level: float) -> Array:
        if block.X.shape[0] == 0:
            return np.zeros((0, 2))
        rows, at_rows = self._fits(block, norm=True)
        free = max(float(self.data_["sum_weight"]) - self.degrees_, 1.0)
        t = float(scipy.special.stdtrit(free, (1 + level) / 2))
        half = t * self.noise_ * np.sqrt(at_rows.norm[0] * rows.unit)
        centre = at_rows.prediction[0] / rows.y_scale
        return np.column_stack([centre - half, centre + half])

    # Selection

    def folds(self, source: Source, rounds: Rounds, grid: Grid, shared: Store) -> LocalFolds | None:
        """Errors of all widths without refits; None for tables with gaps, and where these take more than some minutes.

        Standard deviations are those of the training rows; of all rows in leave-one-out.
        """
        if not isinstance(grid, Candidates):
            return None
        if source.is_table:
            encoder = self._fitted_encoder(source)
            if encoder.opened()[1]:
                return None
            source = source.through(encoder)
        folds = LocalFolds(self, source, grid.settings, rounds)
        return folds if isinstance(rounds, EachRow) or folds.seconds() <= MOST_SECONDS else None

    def candidates(self, source: Source) -> list[dict[str, float]]:
        """The widths that leave-one-out tries."""
        model = clone(self)
        task = LocalTask(model.fit_maps(source), self._form(), None, bool(self.standardize))
        return [{"tau": float(tau)} for tau in task.widths()]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, legal in (("weights", KINDS), ("terms", tuple(DEGREES))):
            value: object = getattr(self, name)
            if callable(value):
                continue
            words = ", ".join(map(repr, legal))
            if not isinstance(value, str):
                raise TypeError(f"{name} must be one of {words}, or a function. Got {value!r}.")
            if value not in legal:
                raise ValueError(f"{name} must be one of {words}, or a function. Got {value!r}.")
