"""Lasso and elastic net by coordinate descent and direct solves on the active columns, in the compiled core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Array
from certifit.minimise.problem import Run
from certifit.minimise.steps import Steps, is_limited
from certifit.models.lasso.certificate import duality_gap
from certifit.models.lasso.columns import ColumnLasso
from certifit.models.lasso.task import CommonUnits, GramLasso, LassoTask
from certifit.models.least_squares.normal_equations import Weights
from certifit.runtime import core, n_threads, one_blas_thread

INNER_SHARE = 1e-4  # share of the tolerance that the solver goes to: direct solves make the last digits cheap
LEAST_TOL = 1e-15
LEAST_STRENGTH = 1e-200  # least penalty: a smaller one gives the same weights to rounding
MOST_SWEEPS = 2**31 - 1  # what the compiled core counts to


@dataclass(frozen=True)
class LassoPath:
    """Solutions along alphas, in the user's units."""

    alphas: Array
    coef: Array  # alphas x columns
    intercept: Array
    gaps: Array  # relative, as the solver's sums tell
    names: tuple[str, ...]
    sweeps: Array

    @property
    def n_nonzero(self) -> Array:
        """Number of columns with a weight, an alpha."""
        return np.asarray(np.count_nonzero(self.coef, axis=1))


@one_blas_thread
def solve(task: LassoTask, tol: float, max_iter: int) -> Run[Weights]:
    """The minimiser at the task's alpha. Its trace has the model without weights, and the end.

    The compiled solver knows no clock: under a limit of time it is asked for 1, 2, 4, 8, ... sweeps, each time anew.
    """
    steps, alphas = Steps(), np.array([task.strengths.alpha])
    null = task.null_squares() / (2 * task.sum_weight)
    for most in _stages(max_iter) if is_limited() else [max_iter]:
        path = elastic_path(task, alphas, tol, most)
        state, sweeps = Weights(path.coef[0], float(path.intercept[0])), max(int(path.sweeps[0]), 1)
        gap = duality_gap(task, state, tol)
        excess = gap.relative * gap.scale
        if not steps.rows:
            _report(task, steps, 0, null, max(null - gap.objective + excess, 0.0))
        _report(task, steps, max(sweeps, int(steps.rows[-1]["iteration"]) + 1), gap.objective, excess)
        if sweeps < most or gap.relative <= tol or steps.is_over:
            break
    return Run(state, steps.rows, steps.reason)


def _stages(max_iter: int) -> Iterator[int]:
    most = 1
    while most < max_iter:
        yield most
        most *= 2
    yield max_iter


def _report(task: LassoTask, steps: Steps, iteration: int, objective: float, gap: float) -> None:
    unit = np.float64(task.scaling.y_scale)
    with np.errstate(over="ignore"):
        value, left = float(objective / unit / unit), float(gap / unit / unit)
    steps.add(value, left, dual=value - left, step=0.0, iteration=iteration)


def elastic_path(task: LassoTask, alphas: Array, tol: float, max_iter: int) -> LassoPath:
    """Solutions along alphas, any order."""
    order = np.argsort(-alphas, kind="stable")
    states, gaps, sweeps = _core_of(task).path(alphas[order], inner_tolerance(tol), min(max_iter, MOST_SWEEPS))
    back = np.argsort(order)
    coef = np.array([state.coef for state in states]).reshape(len(alphas), task.source.n_features)
    intercept = np.array([state.intercept for state in states])
    return LassoPath(alphas, coef[back], intercept[back], gaps[back], tuple(task.source.names), sweeps[back])


def alpha_max(task: LassoTask) -> float:
    """The least alpha at which every penalised weight is zero."""
    return _core_of(task).alpha_max()


def inner_tolerance(tol: float) -> float:
    """The relative gap at which the compiled solver stops."""
    return max(INNER_SHARE * tol, LEAST_TOL)


class GramCore:
    """The compiled solver on products of columns."""

    def __init__(self, task: GramLasso) -> None:
        self.task = task

    def path(self, alphas: Array, tol: float, max_iter: int) -> tuple[list[Weights], Array, Array]:
        """States, relative gaps and sweeps along decreasing alphas."""
        arguments = self.task.common.path_arguments(self.task.strengths, alphas)
        path = core.gram_lasso_path(*stacked([self.task.common]), *arguments, tol, max_iter, n_threads())
        weights, gaps, _, sweeps, _ = path
        states = [self.task.from_common(row) for row in weights[0]]
        return states, np.asarray(gaps[0]), np.asarray(sweeps[0])

    def alpha_max(self) -> float:
        """The least alpha at which every penalised weight is zero."""
        strengths = self.task.strengths
        _, ratio, factors, lower, upper = self.task.common.path_arguments(strengths, np.ones(1))
        arguments = (*stacked([self.task.common]), ratio, factors, lower, upper)
        largest = float(np.asarray(core.gram_alpha_max(*arguments, MOST_SWEEPS, n_threads()))[0])
        return strengths.unscaled(largest, self.task.common.units)


class ColumnCore:
    """The compiled solver on columns, by working sets.

    weight: of the rows, scaled; those of the task where None. factors: what the penalties of columns are multiplied by.
    """

    def __init__(self, task: ColumnLasso, weight: Array | None = None, factors: Array | None = None) -> None:
        self.task = task
        self.weight = task.weight if weight is None else weight
        self.factors = np.ones(task.source.n_features) if factors is None else factors

    def path(self, alphas: Array, tol: float, max_iter: int) -> tuple[list[Weights], Array, Array]:
        """States, relative gaps and sweeps along decreasing alphas."""
        raw = self.raw_path(alphas, tol, max_iter)
        states, d = [], self.task.source.n_features
        for begin, end, intercept in zip(raw["offsets"], raw["offsets"][1:], raw["intercepts"], strict=False):
            weights = np.zeros(d)
            weights[raw["columns"][begin:end]] = raw["weights"][begin:end]
            states.append(self.task.from_scaled(weights / self.task.units, float(intercept)))
        return states, np.asarray(raw["relative_gaps"]), np.asarray(raw["iterations"])

    def raw_path(self, alphas: Array, tol: float, max_iter: int) -> dict[str, Array]:
        """The compiled solver's answer, in scaled units."""
        if not (alphas > 0).all():
            raise ValueError(
                f"alpha must be above 0 for as many as {self.task.source.n_features} columns and {self.task.n_rows} "
                "rows. Got 0. Without a penalty use LinearRegression."
            )
        strengths, *penalty = self._penalty(alphas)
        scaled = np.maximum(strengths, LEAST_STRENGTH)
        raw = core.wide_lasso_path(*self._rows, scaled, *penalty, tol, max_iter, n_threads())
        return dict(raw)

    def alpha_max(self) -> float:
        """The least alpha at which every penalised weight is zero."""
        _, *penalty = self._penalty(np.ones(1))
        largest = float(core.wide_alpha_max(*self._rows, *penalty, n_threads()))
        return self.task.strengths.unscaled(largest, self.task.penalty_units)

    @property
    def _rows(self) -> tuple[object, ...]:
        X = self.task.columns
        columns = ("csc", X.data, X.indices, X.indptr, X.shape[0]) if sp.issparse(X) else ("dense", X)
        return columns, self.task.y, self.weight, self.task.fit_intercept

    def _penalty(self, alphas: Array) -> tuple[Array, float, Array, Array, Array]:
        strengths, ratio, factors, lower, upper = self.task.strengths.scaled(alphas, self.task.penalty_units)
        return strengths, ratio, factors * self.factors, lower, upper


def stacked(systems: Sequence[CommonUnits]) -> tuple[Array, Array, Array]:
    """Systems as the compiled solver takes them."""
    matrices = np.ascontiguousarray(np.stack([system.matrix for system in systems]))
    moments = np.ascontiguousarray(np.stack([system.moment for system in systems]))
    return matrices, moments, np.array([system.square for system in systems])


def _core_of(task: LassoTask) -> GramCore | ColumnCore:
    if isinstance(task, GramLasso):
        return GramCore(task)
    assert isinstance(task, ColumnLasso)
    return ColumnCore(task)
