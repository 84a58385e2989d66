"""Lasso and elastic net by coordinate descent and direct solves on the active columns, in the compiled core.

Cyclic coordinate descent for the lasso and the elastic net, one sweep after the other, for those who want to see it.

    w_j <- argmin over w_j of the objective, the others fixed = soft(z_j' r + |z_j|^2 w_j, l1_j) / (|z_j|^2 + l2_j)

cut to the bounds, r the residuals without column j; after every sweep the primal objective, a dual point and their gap.
`solver="auto"` is far faster: it solves directly on the columns with a weight, in the compiled core.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import scipy.sparse as sp

from certifit.data.by_column import csc
from certifit.data.columns import Array
from certifit.minimise.problem import Record, Run, check_record
from certifit.minimise.steps import Steps, is_limited, time_is_up
from certifit.models.lasso.certificate import duality_gap, proven_gap
from certifit.models.lasso.columns import ColumnLasso
from certifit.models.lasso.task import CommonUnits, GramLasso, LassoTask, Strengths
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
    coef: Array  # alphas x columns; of more than two classes alphas x classes x columns
    intercept: Array
    gaps: Array  # relative, as the solver's sums tell
    names: tuple[str, ...]
    sweeps: Array

    @property
    def n_nonzero(self) -> Array:
        """Number of columns with a weight, per alpha."""
        n_alphas, *_, n_columns = self.coef.shape
        return np.asarray(np.count_nonzero(self.coef.reshape(n_alphas, -1, n_columns).any(axis=1), axis=1))


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
        gap = duality_gap(task, state, math.inf) if time_is_up() else proven_gap(task, state, tol)  # one dual point
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
    unit = float(task.scaling.y_scale)
    value, left = (float(number) / unit / unit for number in (objective, gap))
    steps.add(value, left, dual=value - left, step=0.0, iteration=iteration)


def elastic_path(task: LassoTask, alphas: Array, tol: float, max_iter: int) -> LassoPath:
    """Solutions along alphas, any order."""
    order = np.argsort(-alphas, kind="stable")
    states, gaps, sweeps = _core_of(task).path(alphas[order], inner_tolerance(tol), min(max_iter, MOST_SWEEPS))
    back = np.argsort(order)
    coef = np.array([states[place].coef for place in back]).reshape(len(alphas), task.source.n_features)
    intercept = np.array([states[place].intercept for place in back])
    return LassoPath(alphas, coef, intercept, gaps[back], tuple(task.source.names), sweeps[back])


def alpha_max(task: LassoTask) -> float:
    """The least alpha at which every penalised weight is zero."""
    return _core_of(task).alpha_max()


def gram_alpha_max(common: CommonUnits, strengths: Strengths) -> float:
    """The same from products of columns alone."""
    _, ratio, factors, lower, upper = common.path_arguments(strengths, np.ones(1))
    arguments = (*stacked([common]), ratio, factors, lower, upper)
    largest = float(np.asarray(core.gram_alpha_max(*arguments, MOST_SWEEPS, n_threads()))[0])
    return strengths.unscaled(largest, common.units)


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
        return gram_alpha_max(self.task.common, self.task.strengths)


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
        states = []
        for begin, end, intercept in zip(raw["offsets"], raw["offsets"][1:], raw["intercepts"], strict=False):
            places = raw["columns"][begin:end]
            weights = raw["weights"][begin:end] / self.task.units[places]
            states.append(self.task.from_scaled(weights, float(intercept), places))
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
        columns = csc(X) if sp.issparse(X) else ("dense", X)
        return columns, self.task.y, self.weight, self.task.fit_intercept

    def _penalty(self, alphas: Array) -> tuple[Array, float, Array, Array, Array]:
        strengths, ratio, factors, lower, upper = self.task.strengths.scaled(alphas, self.task.penalty_units)
        return strengths, ratio, factors * self.factors, lower, upper


def stacked(systems: Sequence[CommonUnits]) -> tuple[Array, Array, Array]:
    """Systems as the compiled solver takes them."""
    if len(systems) == 1:  # nothing is copied
        only = systems[0]
        return np.ascontiguousarray(only.matrix)[None], np.ascontiguousarray(only.moment)[None], np.array([only.square])
    matrices = np.ascontiguousarray(np.stack([system.matrix for system in systems]))
    moments = np.ascontiguousarray(np.stack([system.moment for system in systems]))
    return matrices, moments, np.array([system.square for system in systems])


def _core_of(task: LassoTask) -> GramCore | ColumnCore:
    if isinstance(task, GramLasso):
        return GramCore(task)
    assert isinstance(task, ColumnLasso)
    return ColumnCore(task)


@dataclass(frozen=True)
class CoordinateDescent:
    """Minimises over one weight after the other, sweep by sweep, in the order of the columns.

    record : None or "weights"
        "weights" keeps the weights after every sweep.

    Needs a penalty that is a sum over columns: the lasso, the elastic net.
    """

    record: Record = None
    needs: ClassVar[frozenset[str]] = frozenset({"coordinates"})

    def __post_init__(self) -> None:
        check_record(self.record)


@one_blas_thread
def solve_by_sweeps(
    task: LassoTask, solver: CoordinateDescent, tol: float, max_iter: int, start: Array | None = None
) -> Run[Weights]:
    """Sweeps until the gap is within the tolerance; row 0 is the start, by default the model without weights."""
    at: Coordinates = _GramCoordinates(task) if isinstance(task, GramLasso) else _columns_of(task)
    if start is not None:
        _begin(task, at, start)
    steps, recorded = Steps(), []
    penalty, squares = at.penalty, at.squares
    before = np.zeros(len(squares))
    for _ in range(max_iter + 1):
        state = at.state()
        if solver.record is not None:
            recorded.append(np.append(state.coef, state.intercept))
        gap = duality_gap(task, state, tol)
        unit = np.float64(task.scaling.y_scale)
        with np.errstate(over="ignore"):
            objective, left = (float(v / unit / unit) for v in (gap.objective, gap.relative * gap.scale))
        steps.add(objective, left, dual=objective - left, step=float(np.linalg.norm(state.coef - before)))
        if gap.relative <= tol or steps.is_over or len(steps.rows) > max_iter:
            break
        before = state.coef
        for j in np.flatnonzero(squares > 0):
            at.move(int(j), _best(at.weights[j], at.slope(int(j)), squares[j], int(j), penalty) - at.weights[j])
        at.balance()
    reason = steps.reason or ("" if gap.relative <= tol else f"It stopped after {max_iter} sweeps. Raise max_iter.")
    return Run(state, steps.rows, reason, np.array(recorded) if recorded else None)


def _begin(task: LassoTask, at: Coordinates, start: Array) -> None:
    """Take weights in the user's units, with the intercept that suits them."""
    outside = np.flatnonzero((start < task.strengths.lower) | (start > task.strengths.upper))
    if len(outside):
        name = task.source.names[int(outside[0])]
        raise ValueError(f"start of {name!r} is {start[outside[0]]:g}, which is outside of its bounds.")
    with np.errstate(over="ignore", invalid="ignore"):
        weights = at.from_user(start)
    if not np.isfinite(weights).all():
        raise ValueError("start must be numbers whose products with the columns are within float64.")
    at.weights[:] = weights
    at.balance()


def _best(w: float, slope: float, square: float, j: int, penalty: Penalties) -> float:
    """The weight that minimises square/2 (v - w)^2 - slope (v - w) + l1 |v| + l2/2 v^2 within the bounds."""
    pull = slope + square * w
    size = abs(pull) - penalty.l1[j]
    best = 0.0 if size <= 0 else float(np.copysign(size, pull)) / (square + penalty.l2[j])
    return float(np.clip(best, penalty.lower[j], penalty.upper[j]))


@dataclass(frozen=True)
class Penalties:
    """Of scaled weights, per column."""

    l1: Array
    l2: Array
    lower: Array
    upper: Array

    @staticmethod
    def of(scaled: tuple[Array, float, Array, Array, Array]) -> Penalties:
        """From what the compiled solver takes."""
        alphas, ratio, factors, lower, upper = scaled
        return Penalties(alphas[0] * ratio * factors, alphas[0] * (1 - ratio) * factors, lower, upper)


class Coordinates(Protocol):
    """Scaled weights, and what a sweep asks of the rows."""

    weights: Array
    penalty: Penalties
    squares: Array

    def slope(self, j: int) -> float:
        """The mean of column j times the residuals."""

    def move(self, j: int, step: float) -> None:
        """Add to the weight of column j."""

    def balance(self) -> None:
        """What is settled after a sweep."""

    def from_user(self, coef: Array) -> Array:
        """Scaled weights of those in the user's units."""

    def state(self) -> Weights:
        """The weights in the user's units."""


class _GramCoordinates:
    """On the products of columns: a move changes all slopes."""

    def __init__(self, task: GramLasso) -> None:
        self.task, common = task, task.common
        self._matrix, self._slopes = common.matrix, common.moment.copy()
        self.penalty = Penalties.of(common.path_arguments(task.strengths, np.array([task.strengths.alpha])))
        self.squares, self.weights = np.diagonal(common.matrix).copy(), np.zeros(len(common.moment))

    def slope(self, j: int) -> float:
        """The mean of column j times the residuals."""
        return float(self._slopes[j])

    def move(self, j: int, step: float) -> None:
        """Add to the weight of column j."""
        if step != 0:
            self.weights[j] += step
            self._slopes -= step * self._matrix[j]

    def balance(self) -> None:
        """The intercept is best at every point: columns are centred. Slopes are summed anew, without old roundings."""
        self._slopes = self.task.common.moment - self._matrix @ self.weights

    def from_user(self, coef: Array) -> Array:
        """Scaled weights of those in the user's units."""
        scaled = self.task.to_scaled(Weights(coef, 0.0))[0]
        shares = self.task.common.shares
        return np.asarray(np.where(shares > 0, scaled / np.where(shares > 0, shares, 1.0), 0.0))

    def state(self) -> Weights:
        """The weights in the user's units."""
        return self.task.from_common(self.weights)


class _ColumnCoordinates:
    """On the columns: a move changes the residuals; the intercept is settled after every sweep."""

    def __init__(self, task: ColumnLasso) -> None:
        self.task, X = task, task.columns
        self._X = X.toarray() if sp.issparse(X) else X
        self._share = task.weight / task.sum_weight
        means = self._share @ self._X if task.fit_intercept else np.zeros(self._X.shape[1])
        self._centred = self._X - means
        self.penalty = Penalties.of(task.strengths.scaled(np.array([task.strengths.alpha]), task.penalty_units))
        self.weights = np.zeros(self._X.shape[1])
        self.squares = self._share @ np.square(self._centred)
        self.balance()

    def slope(self, j: int) -> float:
        """The mean of column j times the residuals."""
        return float(self._centred[:, j] @ (self._share * self._residual))

    def move(self, j: int, step: float) -> None:
        """Add to the weight of column j."""
        if step != 0:
            self.weights[j] += step
            self._residual -= step * self._centred[:, j]

    def balance(self) -> None:
        """Residuals, and the intercept that makes their mean 0."""
        residual = self.task.y - self._X @ self.weights
        self._intercept = float(self._share @ residual) if self.task.fit_intercept else 0.0
        self._residual = residual - self._intercept

    def from_user(self, coef: Array) -> Array:
        """Scaled weights of those in the user's units."""
        s = self.task.scaling
        return np.asarray(coef * s.y_scale / s.scale * self.task.units)

    def state(self) -> Weights:
        """The weights in the user's units."""
        return self.task.from_scaled(self.weights / self.task.units, self._intercept)


def _columns_of(task: LassoTask) -> _ColumnCoordinates:
    assert isinstance(task, ColumnLasso)
    return _ColumnCoordinates(task)
