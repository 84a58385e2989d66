"""What every linear model shares: the scikit-learn contract, and `fit` in one place.

fit: gate -> basis -> task -> solve -> certify -> store. A fitted model holds no rows.
"""

from __future__ import annotations

import math
import warnings
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from certifit.certificates.certificate import Certificate
from certifit.certificates.inference import Summary
from certifit.certificates.least_squares import certify, infer
from certifit.data.columns import Array
from certifit.data.files import write_predictions
from certifit.data.gate import fit_source, predict_rows, predict_source, refuse_nonfinite
from certifit.data.source import Block, Memory, RowError, Source
from certifit.maps import Functions, Polynomial, TableEncoder
from certifit.runtime import core, n_threads, one_blas_thread
from certifit.solvers.direct import solve
from certifit.statistics.gram import ColumnRange
from certifit.tasks.dual_least_squares import DualLeastSquares, least_squares_task
from certifit.tasks.least_squares import LeastSquares, Weights


class LinearRegressor(RegressorMixin, BaseEstimator):
    """A linear model y = b + x'w fitted by least squares, with or without a penalty."""

    fit_intercept: bool
    basis: Any
    encoder: Any
    tol: float

    @one_blas_thread
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X and target y (arrays, sparse matrices, data frames), or to a scan that carries its target.

        sample_weight: one number a row; weight 2 is the row twice.
        """
        self._check_parameters()
        source = fit_source(self, X, y, sample_weight)
        self.target_name_ = source.target if isinstance(X, Source) else str(getattr(y, "name", None) or "y")
        self.encoder_ = self._fitted_encoder(source) if source.is_table else None
        self.basis_ = None if self.basis is None else _fitted_basis(self.basis, self._encoded(source))
        task = self._task(source)
        run = solve(task)
        self._store(task, run.state)
        self.history_ = run.history
        self.certificate_ = certify(task, run.state, float(self.tol))
        if not self.certificate_.holds:
            warnings.warn(self.certificate_.sentences()[0], ConvergenceWarning, stacklevel=3)
        return self

    def predict(self, X: Any, out: Any = None) -> Any:
        """b + x'w for every row of an array, a frame or a scan.

        out: a .parquet or .csv file to write them to, in constant memory for a scan; then nothing is returned.
        """
        check_is_fitted(self)
        parts = (
            predict_source(self, X).map(self._scores)
            if isinstance(X, Source)
            else [self._scores(predict_rows(self, X))]
        )
        if out is not None:
            write_predictions(parts, out)
            return None
        whole = list(parts)
        return np.concatenate(whole) if whole else np.zeros(0)

    def predict_interval(
        self, X: Any, level: float = 0.95, kind: Literal["prediction", "confidence"] = "prediction"
    ) -> Array:
        """Lower and upper end for every row: where a new y ("prediction") or its mean ("confidence") lies."""
        check_is_fitted(self)
        if self.inference_ is None:
            raise ValueError(f"No intervals: {self._why_no_inference()}")
        if isinstance(X, Source):
            parts = [self._interval(run, level, kind) for run in predict_source(self, X).runs()]
            return np.concatenate(parts) if parts else np.zeros((0, 2))
        return self._interval(predict_rows(self, X), level, kind)

    def summary(self, level: float = 0.95) -> Summary:
        """Coefficients with standard errors, t, p-values and confidence intervals, and the quality of the fit."""
        check_is_fitted(self)
        if self.inference_ is None:
            raise ValueError(f"No summary: {self._why_no_inference()}")
        notes = [self.objective, *self.certificate_.sentences()]
        return self.inference_.summary(type(self).__name__, self.target_name_, level, notes)

    @one_blas_thread
    def certify(self, X: Any, y: Any = None, sample_weight: Any = None) -> Certificate:
        """The certificate of this model recomputed on data; no solver takes part."""
        check_is_fitted(self)
        probe = clone(self)
        if self.encoder_ is not None and probe.encoder is None:
            probe.encoder = self.encoder_  # a frame is then read as the table that the model was fitted to
        source = fit_source(probe, X, y, sample_weight)
        predict_source(self, source)
        task = least_squares_task(self._mapped(source), self.alpha_, bool(self.fit_intercept))
        return certify(task, Weights(self.coef_, self.intercept_), float(self.tol))

    def solutions(self, v: Any) -> tuple[Array, float]:
        """All minimisers: coef_ + null_space_ v with the intercept that goes with them, for any v."""
        check_is_fitted(self)
        if self.null_space_ is None:
            raise ValueError(f"The null space of {len(self.coef_)} columns was not kept: it is too large.")
        v = np.asarray(v, dtype=np.float64)
        if v.shape != (self.null_space_.shape[1],):
            raise ValueError(f"v must have {self.null_space_.shape[1]} entries, one a redundant column. Got {v.shape}.")
        return self.coef_ + self.null_space_ @ v, float(self.intercept_ + self.null_intercept_ @ v)

    def monomials(self) -> dict[str, float]:
        """Coefficients in powers of the features, for a fit with basis=Polynomial(...)."""
        check_is_fitted(self)
        if not isinstance(self.basis_, Polynomial):
            raise ValueError("monomials() needs basis=Polynomial(degree).")
        return self.basis_.monomials(self.coef_, self.intercept_)

    def _task(self, source: Source) -> LeastSquares | DualLeastSquares:
        return least_squares_task(self._mapped(source), self._penalty_strength(), bool(self.fit_intercept))

    def _mapped(self, source: Source) -> Source:
        source = self._encoded(source)
        return source if self.basis_ is None else source.through(self.basis_)

    def _encoded(self, source: Source) -> Source:
        return source if self.encoder_ is None else source.through(self.encoder_)

    def _columns(self, block: Block) -> Any:
        X = block.X
        try:
            for row_map in (self.encoder_, self.basis_):
                X = X if row_map is None else row_map.apply(X)
        except RowError as error:
            raise error.moved(block.first_row) from None
        return X

    def _fitted_encoder(self, source: Source) -> Any:
        encoder = TableEncoder() if self.encoder is None else clone(self.encoder)
        return encoder.fit_source(source)

    def _scores(self, block: Block) -> Array:
        if block.X.shape[0] == 0:
            return np.zeros(0)
        columns = Block(self._columns(block), None, None, block.first_row)
        scores: Array = core.scores(columns.rows, self.coef_, self.intercept_, n_threads())
        if not np.isfinite(scores).all():
            refuse_nonfinite(Memory(columns.X, None, names=self.column_names_))
        return scores

    def _interval(self, block: Block, level: float, kind: Literal["prediction", "confidence"]) -> Array:
        assert self.inference_ is not None
        columns = self._columns(block)
        columns = np.asarray(columns.toarray() if hasattr(columns, "toarray") else columns, dtype=np.float64)
        if self.fit_intercept:
            columns = np.column_stack([np.ones(len(columns)), columns])
        return self.inference_.interval(columns, self._scores(block), level, kind)

    def _store(self, task: LeastSquares | DualLeastSquares, state: Weights) -> None:
        self.coef_ = state.coef
        self.intercept_ = state.intercept
        self.alpha_ = task.alpha
        self.rank_ = task.rank
        self.condition_ = task.factor.condition
        self.null_space_, self.null_intercept_ = task.null_space()
        self.column_names_ = list(task.source.names)
        self.inference_ = infer(task, state)
        self.data_ = task.facts()

    def _penalty_strength(self) -> float | None:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        check_number("tol", self.tol)
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise TypeError(f"fit_intercept must be True or False. Got {self.fit_intercept!r}.")
        if self.basis is not None and not isinstance(self.basis, Polynomial | Functions):
            raise TypeError(f"basis must be None, Polynomial(degree) or Functions([...]). Got {self.basis!r}.")
        if isinstance(self.basis, Polynomial) and self.basis.form == "chebyshev" and not self.fit_intercept:
            raise ValueError(
                "fit_intercept=False needs basis=Polynomial(degree, form='powers'): Chebyshev columns T2, T4, ... "
                "hold a constant, which would act as an intercept."
            )
        if self.encoder is not None and not isinstance(self.encoder, TableEncoder):
            raise TypeError(f"encoder must be None or TableEncoder(...). Got {self.encoder!r}.")

    def _why_no_inference(self) -> str:
        if self.alpha_ > 0:
            return (
                "standard errors and p-values do not hold under a penalty (the estimates are biased on purpose). "
                "Use LinearRegression for them."
            )
        if self.certificate_.dependent:
            return (
                "the columns are redundant, so single coefficients are not determined: "
                f"{'; '.join(self.certificate_.dependent[:5])}. Drop a column of each relation."
            )
        return (
            f"{self.data_['sum_weight']:g} observations leave no residual degree of freedom for "
            f"{len(self.coef_) + int(self.fit_intercept)} coefficients. Use more rows or fewer columns."
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.basis is None
        return tags


def check_number(name: str, value: Any) -> None:
    """Refuse what is not a finite number >= 0."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number >= 0. Got {value!r}.")
    if not (math.isfinite(float(value)) and float(value) >= 0):
        raise ValueError(f"{name} must be a finite number >= 0. Got {value}.")


def _fitted_basis(basis: Any, source: Source) -> Any:
    """A fitted copy of the basis; a polynomial needs only the range of each column, one pass."""
    basis = clone(basis)
    names = source.names if source.named else None
    if isinstance(basis, Polynomial):
        span = source.reduce(ColumnRange.of)
        if not (np.isfinite(span.lower).all() and np.isfinite(span.upper).all()):
            refuse_nonfinite(source)
        return basis.fit_range(span.lower, span.upper, names=names)
    return basis.fit(source.first_block().X)
