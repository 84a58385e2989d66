"""Cyclic coordinate descent for the lasso and the elastic net, one sweep after the other, for those who want to see it.

    w_j <- argmin over w_j of the objective, the others fixed = soft(z_j' r + |z_j|^2 w_j, l1_j) / (|z_j|^2 + l2_j)

cut to the bounds, r the residuals without column j; after every sweep the primal objective, a dual point and their gap.
`solver="auto"` is far faster: it solves directly on the columns with a weight, in the compiled core.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Array
from certifit.minimise.problem import Record, Run, check_record
from certifit.minimise.steps import Steps
from certifit.models.lasso.certificate import duality_gap
from certifit.models.lasso.columns import ColumnLasso
from certifit.models.lasso.task import GramLasso, LassoTask
from certifit.models.least_squares.normal_equations import Weights
from certifit.runtime import one_blas_thread


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
def solve(task: LassoTask, solver: CoordinateDescent, tol: float, max_iter: int) -> Run[Weights]:
    """Sweeps from no weights until the gap is within the tolerance; row 0 is the model without weights."""
    at: Coordinates = _GramCoordinates(task) if isinstance(task, GramLasso) else _columns_of(task)
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

    def state(self) -> Weights:
        """The weights in the user's units."""
        return self.task.from_scaled(self.weights / self.task.units, self._intercept)


def _columns_of(task: LassoTask) -> _ColumnCoordinates:
    assert isinstance(task, ColumnLasso)
    return _ColumnCoordinates(task)
