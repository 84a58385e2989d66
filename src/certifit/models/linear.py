"""What every linear model of a number shares: its parameters, its folds and its inference.

First the parameters of a penalty on weights: its strength, factors of single columns, and bounds.
"""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.roles import refuse_unknown
from certifit.data.source import Block, Memory, Source
from certifit.data.user_input import UserRows, UserTarget, UserWeights, refuse_nonfinite
from certifit.inference.least_squares import Inference
from certifit.maps import Polynomial, TableEncoder, encoder_key
from certifit.minimise.problem import Run
from certifit.minimise.steps import time_is_up
from certifit.models.adapter import learner_of
from certifit.models.estimator import StateT, TaskEstimator, TaskT, fitted_basis
from certifit.models.folds import Candidate, EachRow, Grid, Rounds, Subsets, candidates_of, shared_work
from certifit.models.lasso.solver import LassoPath
from certifit.models.lasso.task import Strengths
from certifit.models.learner import Told
from certifit.models.least_squares.dual import has_fewer_rows
from certifit.models.least_squares.fold_path import FoldEquations, Gaps
from certifit.models.least_squares.folds import (
    NumberFolds,
    NumberPart,
    RowPart,
    RowsLeftOut,
    dual_fold_path,
    least_squares_part,
)
from certifit.models.least_squares.inference import InferenceMethods, WeightsT
from certifit.models.parameters import check_number
from certifit.runtime import core, n_threads, one_blas_thread
from certifit.statistics.cell_sums import Store
from certifit.statistics.moments import ColumnMoments

PenaltyFactors: TypeAlias = Mapping[str, float] | ArrayLike | None
Bound: TypeAlias = Literal["increasing", "decreasing"] | tuple[float | None, float | None]
Bounds: TypeAlias = Mapping[str, Bound] | tuple[ArrayLike, ArrayLike] | None
DIRECTIONS = {"increasing": (0.0, np.inf), "decreasing": (-np.inf, 0.0)}


class PenaltyParameters(TaskEstimator[TaskT, StateT]):
    """A model with penalty_factors and bounds, given by column or by the name of one."""

    penalty_factors: PenaltyFactors
    bounds: Bounds

    @one_blas_thread
    def _path(
        self, X: UserRows, y: UserTarget, alphas: ArrayLike | None, n_alphas: int, **roles: UserWeights
    ) -> LassoPath:
        """Solutions along alphas of a copy of this model, which is not kept."""
        model = clone(self)
        model._check_parameters()
        source = model._gate(X, y, **roles)
        model._begin(source)
        chosen = None if alphas is None else checked_alphas(alphas)
        path: LassoPath = model._path_of(model.fit_maps(model._weighted(source)), chosen, n_alphas)
        return path

    @abstractmethod
    def _path_of(self, source: Source, alphas: Array | None, n_alphas: int) -> LassoPath:
        """Solutions on mapped rows along alphas; None is as many as are asked for, from the least without a weight."""

    def _told(self) -> Told:
        has_factors, has_bounds = self.penalty_factors is not None, self.bounds is not None
        return replace(super()._told(), has_factors=has_factors, has_bounds=has_bounds)

    def _strengths(self, names: Sequence[str], alpha: float) -> Strengths:
        lower, upper = self._bounds(names)
        factors = self._factors(names)
        if factors.max(initial=0.0) > sys.float_info.max / max(float(alpha), 1.0):
            raise ValueError(
                f"alpha times the largest of penalty_factors exceeds float64: {alpha:g} times {factors.max():g}."
            )
        return Strengths(float(alpha), self._l1_ratio(), factors, lower, upper)

    def _l1_ratio(self) -> float:
        raise NotImplementedError

    def _factors(self, names: Sequence[str]) -> Array:
        chosen = self.penalty_factors
        if chosen is None:
            return np.ones(len(names))
        if isinstance(chosen, Mapping):
            factors = np.ones(len(names))
            for name, factor in chosen.items():
                check_number(f"penalty_factors[{name!r}]", factor)
                factors[self._places(name, names, "penalty_factors")] = float(factor)
            return factors
        factors = np.asarray(chosen, dtype=np.float64)
        if factors.shape != (len(names),) or not (np.isfinite(factors) & (factors >= 0)).all():
            raise ValueError(f"penalty_factors must be {len(names)} finite numbers >= 0, one per column, or a dict.")
        return factors

    def _bounds(self, names: Sequence[str]) -> tuple[Array, Array]:
        lower, upper = np.full(len(names), -np.inf), np.full(len(names), np.inf)
        if self.bounds is None:
            return lower, upper
        if isinstance(self.bounds, Mapping):
            for name, bound in self.bounds.items():
                places = self._places(name, names, "bounds")
                lower[places], upper[places] = _pair(name, bound)
        else:
            lower, upper = _bound_pair(self.bounds, len(names))
        if not (lower <= 0).all() or not (upper >= 0).all():  # NaN fails too
            j = int(np.flatnonzero(~((lower <= 0) & (upper >= 0)))[0])
            raise ValueError(
                f"The bounds of {names[j]!r} must have 0 between them: a penalty pulls weights to 0. "
                f"Got {lower[j]:g} to {upper[j]:g}."
            )
        return lower, upper

    def _places(self, name: str, names: Sequence[str], what: str) -> list[int]:
        """Places of the columns that a name means: one of them, or all that a table's column became."""
        if name in names:
            return [list(names).index(name)]
        encoder = getattr(self, "encoder_", None)
        groups = {} if encoder is None else dict(encoder.groups_)
        if name in groups:
            return [list(names).index(made) for made in groups[name] if made in names]
        refuse_unknown(name, list(groups) or list(names), f"{what} names a column that is not there: the data")
        raise ValueError(f"{what} names {name!r}, and no column was made of it.")


def _bound_pair(bounds: tuple[ArrayLike, ArrayLike], d: int) -> tuple[Array, Array]:
    """The lower and the upper bounds of d columns."""
    try:
        lower, upper = (np.array(np.broadcast_to(np.asarray(end, float), d)) for end in bounds)
    except (TypeError, ValueError):
        raise ValueError(
            f"bounds must be a dict {{column: (low, high)}} or a pair (low, high) of numbers or of arrays with "
            f"{d} entries. Got {bounds!r}."
        ) from None
    return lower, upper


def _pair(name: str, bound: Bound) -> tuple[float, float]:
    """(low, high) of what a user gave for a column; None is no bound."""
    try:
        low, high = DIRECTIONS[bound] if isinstance(bound, str) else bound
        return -np.inf if low is None else float(low), np.inf if high is None else float(high)
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f"bounds[{name!r}] must be (low, high), 'increasing' or 'decreasing'. Got {bound!r}."
        ) from None


def alpha_count(n_alphas: int) -> int:
    """How many alphas a path has, checked."""
    if not isinstance(n_alphas, int | np.integer) or isinstance(n_alphas, bool) or n_alphas < 1:
        raise ValueError(f"n_alphas must be a whole number >= 1. Got {n_alphas!r}.")
    return int(n_alphas)


def checked_alphas(alphas: ArrayLike | None) -> Array:
    """The alphas of a path, checked."""
    try:
        chosen = np.array(alphas, dtype=np.float64, ndmin=1)
    except (TypeError, ValueError):
        raise ValueError(f"alphas must be numbers >= 0, in one row. Got {alphas!r}.") from None
    if chosen.ndim != 1 or not len(chosen):
        raise ValueError(f"alphas must be numbers >= 0, in one row, one at least. Got the shape {chosen.shape}.")
    for alpha in chosen:
        check_number("alphas", float(alpha))
    return chosen


def alpha_from_C(C: float, n: float) -> float:
    """The alpha of scikit-learn's C: 1 / (C n), n the number of rows or the sum of their weights.

    LogisticRegression and the SVMs there minimise C times the *sum* of the losses plus half the squared weights; here
    the *mean* loss plus alpha times that. With `class_weight` or `sample_weight` n is the sum of all weights.

    >>> import certifit as cf
    >>> cf.alpha_from_C(C=0.1, n=1000)
    0.01
    """
    for name, value in (("C", C), ("n", n)):
        check_number(name, value)
        if not float(value) > 0:
            raise ValueError(f"{name} must be a number > 0. Got {value!r}.")
    return 1.0 / (float(C) * float(n))


class LinearRegressor(InferenceMethods[TaskT, WeightsT]):
    """A linear model y = b + x'w fitted by least squares, with or without a penalty."""

    fit_intercept: bool
    tol: float
    null_space_: Array | None
    null_intercept_: Array
    shares = ("alpha",)

    def folds(self, source: Source, rounds: Rounds, grid: Grid, shared: Store) -> NumberFolds | RowsLeftOut | None:
        """Fits to all training sets from sums over rows, or from one matrix of products of rows.

        None where each training set has columns of its own: a basis sees the filled values, and a penalised polynomial
        depends on the range of its own rows.
        """
        candidates = candidates_of(grid)
        parts: list[NumberPart] = []
        left_out: list[RowPart] = []
        for others, places in shared_work(candidates, self.shares):
            model = clone(self).set_params(**others)
            if getattr(model, "solver", "auto") != "auto":
                return None  # the steps of a solver are those of each training set
            alphas = model.strengths_of([candidates[place] for place in places])
            columns = model._fold_columns(source, shared)
            if columns is None:
                return None
            if isinstance(rounds, EachRow):
                if not model._leaves_out_rows(columns[1]):
                    return None
                left_out.append(RowPart(columns[0], places, alphas, bool(model.fit_intercept)))
                continue
            part = model._fold_part(columns, rounds, places, alphas, shared)
            if part is None or (isinstance(grid, Subsets) and part.equations is None):
                return None
            parts.append(part)
        return NumberFolds(source, parts) if parts else RowsLeftOut(left_out)

    def _leaves_out_rows(self, gaps: Gaps | None) -> bool:
        """Whether the fit without a row follows from the one to all rows: spreads and fills change with every row."""
        return gaps is None and not self._is_standardised()

    def _fold_part(
        self,
        columns: tuple[Source, Gaps | None],
        rounds: Sequence[Splits],
        places: list[int],
        alphas: Sequence[float | None],
        shared: Store,
    ) -> NumberPart | None:
        """Folds of candidates that differ in alpha alone; None where they are to be refitted."""
        mapped, gaps = columns
        fit_intercept, standardize = bool(self.fit_intercept), self._is_standardised()
        is_polynomial = isinstance(self.basis, Polynomial)
        if not has_fewer_rows(mapped):
            folds = FoldEquations(mapped, rounds, fit_intercept, gaps, standardize, shared)
            return least_squares_part(self, places, alphas, folds, is_polynomial)
        if gaps is not None or is_polynomial:
            return None
        path = partial(dual_fold_path, mapped, rounds, alphas, fit_intercept, standardize)
        return NumberPart(self, places, alphas, path)

    def _fold_columns(self, source: Source, shared: Store) -> tuple[Source, Gaps | None] | None:
        """The columns that sums are made of, with every gap marked; None where each training set has its own."""
        self._check_parameters()
        self.encoder_, self.basis_ = None, None
        opened, gaps = None, None
        if source.is_table:
            made = partial(self._fitted_encoder, source)
            key = encoder_key(self.encoder)
            self.encoder_, opened, gaps = shared.once((source,), ("encoder", key), lambda: _open(made()))
        is_scaled = isinstance(self.basis, Polynomial) and self._penalty_strength() != 0
        if self.basis is not None and (is_scaled or gaps is not None):
            return None
        encoded = source
        if opened is not None:
            encoded = shared.once((source, opened), "encoded columns", partial(source.through, opened))
        if self.basis is not None:
            self.basis_ = fitted_basis(self.basis, encoded)
            encoded = encoded.through(self.basis_)
        return encoded, gaps

    def candidates(self, source: Source) -> list[dict[str, Any]]:
        """Values of the parameters worth trying where the user names none, from the spread of the first rows."""
        if not self._is_tuned():
            return [{}]
        probe = clone(self)
        return self._candidates(ColumnMoments.of(probe.fit_maps(source).first_block()).variance)

    def _is_tuned(self) -> bool:
        """Whether the model has a strength to choose."""
        return "alpha" in self.get_params(deep=False)

    def _candidates(self, variances: Array) -> list[dict[str, Any]]:
        """Candidates for columns of these variances."""
        raise NotImplementedError

    def strengths_of(self, candidates: Sequence[Candidate]) -> list[float | None]:
        """The penalty of this model with every candidate's parameters; None is 1 / sum of weights."""
        model, legal = copy(self), learner_of(self).params  # a clone of every candidate would cost more than its fit
        asked: Candidate = {}  # by the candidate before; what this one does not name is as in this model
        strengths: list[float | None] = []
        for candidate in candidates:
            for name, value in candidate.items():
                if name in legal:
                    legal[name].check(name, value)
                setattr(model, name, value)
            for name in asked.keys() - candidate.keys():
                setattr(model, name, getattr(self, name))
            strengths.append(model._penalty_strength())
            asked = candidate
        return strengths

    def solutions(self, u: ArrayLike) -> tuple[Array, float]:
        """All minimisers: w(u) = coef_ + (I - X^+ X) u with the intercept that goes with them, for any u.

        u has a number per column of the fit. coef_, at u = 0, is the minimiser of smallest norm, X^+ y. X is centred
        where there is an intercept.
        """
        check_is_fitted(self)
        if self.null_space_ is None:
            raise ValueError(f"The null space of {len(self.coef_)} columns was not kept: it is too large.")
        u = np.asarray(u, dtype=np.float64)
        if u.shape != self.coef_.shape:
            raise ValueError(f"u must have {len(self.coef_)} entries, one per column. Got the shape {u.shape}.")
        v = np.linalg.lstsq(self.null_space_, u, rcond=None)[0] if self.null_space_.size else np.zeros(0)
        return self.coef_ + self.null_space_ @ v, float(self.intercept_ + self.null_intercept_ @ v)

    def monomials(self) -> dict[str, float]:
        """Coefficients in powers of the features, for a fit with basis=Polynomial(...)."""
        check_is_fitted(self)
        if not isinstance(self.basis_, Polynomial):
            raise ValueError("monomials() needs basis=Polynomial(degree).")
        return self.basis_.monomials(self.coef_, self.intercept_)

    def _task(self, source: Source, is_fitted: bool = False) -> TaskT:
        return self._task_at(source, self.alpha_ if is_fitted else self._penalty_strength())

    @abstractmethod
    def _task_at(self, source: Source, alpha: float | None) -> TaskT:
        """What is minimised on mapped rows; alpha None is 1 / sum of weights."""

    def scores(self, block: Block) -> Array:
        """b + x'w for the rows of a block of the source that the model was fitted to."""
        if block.X.shape[0] == 0:
            return np.zeros(0)
        columns = replace(block, X=self.columns_of(block), y=None, weight=None)
        scores: Array = core.scores(columns.rows, self.coef_, self.intercept_, n_threads())
        if not np.isfinite(scores).all():
            refuse_nonfinite(Memory(columns.X, None, names=self.column_names_))
        return scores

    def _stated(self) -> dict[str, object]:
        return unproven_columns(self.column_names_, bool(self.fit_intercept))

    def _prove(self, task: TaskT, run: Run[WeightsT]) -> None:
        super()._prove(task, run)
        self.rank_, self.condition_ = self.certificate_.rank, self.certificate_.condition
        self.inference_ = None if time_is_up() else self._inferred(task)

    def _inferred(self, task: TaskT) -> Inference | None:
        """What standard errors come from; None where there are none."""
        return None

    def _penalty_strength(self) -> float | None:
        raise NotImplementedError

    def _is_standardised(self) -> bool:
        """Whether the penalty is one of weights times the standard deviations of their columns."""
        return False

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.basis, Polynomial) and self.basis.form == "chebyshev" and not self.fit_intercept:
            raise ValueError(
                "fit_intercept=False needs basis=Polynomial(degree, form='powers'): Chebyshev columns T2, T4, ... "
                "hold a constant, which would act as an intercept."
            )


def unproven_columns(names: list[str], fit_intercept: bool) -> dict[str, object]:
    """What a certificate without a proof says of the columns of a linear model: their rank was not looked at."""
    of_coefficients = tuple(["intercept"] * int(fit_intercept) + names)
    return {"rank": len(names), "n_columns": len(names), "condition": math.inf, "names": of_coefficients}


def _open(encoder: TableEncoder) -> tuple[TableEncoder, TableEncoder, Gaps | None]:
    """The encoder, the same with every gap marked, and its gaps."""
    opened, gaps, kept = encoder.opened()
    if not gaps:
        return encoder, opened, None
    columns, indicators, fills = (np.array(part) for part in zip(*gaps, strict=True))
    return encoder, opened, Gaps(columns, indicators, fills, np.array(kept))
