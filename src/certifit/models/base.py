"""What every linear model of a number shares: its parameters, its folds and its inference."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from certifit.certificates.inference import Inference
from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.gate import fit_source, refuse_nonfinite
from certifit.data.source import Block, Memory, Source
from certifit.data.user_types import UserRows, UserTarget
from certifit.maps import Polynomial, TableEncoder
from certifit.models.estimator import fitted_basis
from certifit.models.inference import InferenceMethods, WeightsT
from certifit.models.task import TaskT
from certifit.runtime import core, n_threads
from certifit.solvers.dual_fold_path import dual_fold_path, dual_leave_one_out
from certifit.solvers.fold_path import FoldPath, fold_path, fold_states
from certifit.solvers.leave_one_out import LeftOut, LeftOutFits, leave_one_out, left_out_fits
from certifit.solvers.run import Run
from certifit.statistics.moments import ColumnMoments
from certifit.tasks.dual_least_squares import has_fewer_rows
from certifit.tasks.fold_equations import FoldEquations, Gaps


class LinearRegressor(InferenceMethods[TaskT, WeightsT]):
    """A linear model y = b + x'w fitted by least squares, with or without a penalty."""

    fit_intercept: bool
    tol: float
    null_space_: Array | None
    null_intercept_: Array

    def fold_equations(self, source: Source, rounds: Sequence[Splits]) -> FoldEquations | None:
        """The systems of all training sets from one pass a round; None where sums over rows do not determine them.

        A basis sees the filled values, and a penalised polynomial depends on the range of its own rows: those are
        refitted. Fewer rows than columns have no such sums either.
        """
        columns = self._fold_columns(source)
        if columns is None or has_fewer_rows(columns[0]):
            return None
        return FoldEquations(columns[0], rounds, bool(self.fit_intercept), columns[1], self._is_standardised())

    def fold_path(
        self,
        source: Source,
        rounds: Sequence[Splits],
        candidates: Sequence[Mapping[str, Any]],
        with_rows: bool = False,
    ) -> FoldPath | None:
        """Errors of all candidates on all splits without a refit; None where that cannot be.

        Candidates that differ in alpha alone share one pass over the rows, or one matrix of products of rows.
        with_rows: residuals of the validation rows too, at one more pass.
        """
        paths: list[FoldPath | None] = []
        places: list[int] = []
        for model, own in self.by_system(candidates):
            alphas = [model.strength_of(candidates[i]) for i in own]
            paths.append(model._fold_errors(source, rounds, alphas, with_rows))
            places += own
        found = [path for path in paths if path is not None]
        return FoldPath.joined(found, places) if len(found) == len(paths) else None

    def has_fold_sums(self, source: Source) -> bool:
        """Whether folds need no refits, as far as can be told without a pass over the rows."""
        columns = clone(self)._fold_columns(source)
        return columns is not None and not (has_fewer_rows(columns[0]) and columns[1] is not None)

    def leave_one_out(self, source: Source, candidates: Sequence[Mapping[str, Any]]) -> LeftOut | None:
        """Errors of every row predicted by the fit to all others; None where that needs refits."""
        parts: list[LeftOut | None] = []
        places: list[int] = []
        for model, own in self.by_system(candidates):
            alphas = [model.strength_of(candidates[i]) for i in own]
            columns = model._fold_columns(source)
            if columns is None or columns[1] is not None or model._is_standardised():  # spreads change with every row
                return None
            leave = dual_leave_one_out if has_fewer_rows(columns[0]) else leave_one_out
            parts.append(leave(columns[0], alphas, bool(model.fit_intercept)))
            places += own
        found = [part for part in parts if part is not None]
        return LeftOut.joined(found, places) if len(found) == len(parts) else None

    def _fold_errors(
        self, source: Source, rounds: Sequence[Splits], alphas: Sequence[float | None], with_rows: bool = False
    ) -> FoldPath | None:
        columns = self._fold_columns(source)
        if columns is None:
            return None
        mapped, gaps = columns
        is_polynomial = isinstance(self.basis, Polynomial)
        if has_fewer_rows(mapped):
            is_simple = gaps is None and not is_polynomial
            if not is_simple:
                return None
            standardize = self._is_standardised()
            return dual_fold_path(mapped, rounds, alphas, bool(self.fit_intercept), standardize, with_rows)
        folds = FoldEquations(mapped, rounds, bool(self.fit_intercept), gaps, self._is_standardised())
        path = fold_path(folds, alphas, with_rows)
        # A smallest norm is meant in the columns of a training set's own range.
        return None if is_polynomial and path.is_redundant else path

    def _fold_columns(self, source: Source) -> tuple[Source, Gaps | None] | None:
        """The columns that sums are made of, with every gap marked; None where each training set has its own."""
        self._check_parameters()
        self.encoder_ = self._fitted_encoder(source) if source.is_table else None
        opened, gaps = (None, None) if self.encoder_ is None else _open(self.encoder_)
        is_scaled = isinstance(self.basis, Polynomial) and self._penalty_strength() != 0
        if self.basis is not None and (is_scaled or gaps is not None):
            return None
        encoded = source if opened is None else source.through(opened)
        self.basis_ = None if self.basis is None else fitted_basis(self.basis, encoded)
        return (encoded if self.basis_ is None else encoded.through(self.basis_)), gaps

    def fold_models(self, source: Source, rounds: Sequence[Splits]) -> list[Self] | None:
        """A model for every training set, to predict with; None where that needs refits."""
        probe = clone(self)
        folds = probe.fold_equations(source, rounds)
        if folds is None:
            return None
        models = []
        for split, state in enumerate(fold_states(folds, probe._penalty_strength())):
            model = copy(probe)
            model.coef_, model.intercept_ = state.coef, state.intercept
            model.column_names_, model.n_features_in_ = list(folds.names), source.n_features
            if model.encoder_ is not None:
                model.encoder_ = model.encoder_.refilled(folds.fills(split))
            if source.named:
                model.feature_names_in_ = np.asarray(source.names, dtype=object)
            models.append(model)
        return models

    def left_out_fit(self, X: UserRows, y: UserTarget) -> LeftOutFits:
        """The fits that leave one row out, from one fit to all rows in memory."""
        self._check_parameters()
        source = fit_source(self, X, y, None)
        every = self.fold_equations(source, [])
        if every is None or every.gaps is not None or every.standardize:
            raise ValueError(
                "Leaving rows out one by one needs at least as many rows as columns, no missing values, no "
                "penalised polynomial basis and no standardize=True. Use CrossValidated(model, intervals=True)."
            )
        self.coef_, self.intercept_ = np.zeros(len(every.names)), 0.0  # fitted as far as reading rows goes
        return left_out_fits(every.source, self._penalty_strength(), bool(self.fit_intercept))

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

    def by_system(self, candidates: Sequence[Mapping[str, Any]]) -> list[tuple[Self, list[int]]]:
        """Candidates grouped by all but alpha: a model for each group, and its members."""
        groups: list[tuple[dict[str, Any], list[int]]] = []
        for i, candidate in enumerate(candidates):
            rest = {name: value for name, value in candidate.items() if name != "alpha"}
            found = next((own for known, own in groups if known == rest), None)
            groups.append((rest, [i])) if found is None else found.append(i)
        return [(clone(self).set_params(**rest), own) for rest, own in groups]

    def strength_of(self, candidate: Mapping[str, Any]) -> float | None:
        """The penalty of this model with a candidate's parameters; None is 1 / sum of weights."""
        model = copy(self)  # a clone of every candidate would cost more than its fit
        for name, value in candidate.items():
            setattr(model, name, value)
        model._check_parameters()
        strength: float | None = model._penalty_strength()
        return strength

    def solutions(self, v: ArrayLike) -> tuple[Array, float]:
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

    def _prove(self, task: TaskT, run: Run[WeightsT]) -> None:
        super()._prove(task, run)
        self.rank_, self.condition_ = self.certificate_.rank, self.certificate_.condition
        self.inference_ = self._inferred(task)

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


def _open(encoder: TableEncoder) -> tuple[TableEncoder, Gaps | None]:
    """The encoder with every gap marked, and its gaps."""
    opened, gaps, kept = encoder.opened()
    if not gaps:
        return opened, None
    columns, indicators, fills = (np.array(part) for part in zip(*gaps, strict=True))
    return opened, Gaps(columns, indicators, fills, np.array(kept))
