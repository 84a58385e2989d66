"""Least squares with an optional ridge penalty, on the Gram matrix of the columns.

minimise  sum_i w_i (y_i - b - x_i'w)^2 / (2 sum_i w_i) + alpha/2 |w|^2

A task gives its solver and its certificate the same few things: a factor of the system's matrix, residuals at a
state, and the scales between the user's units and those of the sums. The system's columns are (1, x - shift) with
an intercept and x without; its unknowns are the intercept of shifted columns, first, then the weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.statistics import twofold as tf
from certifit.statistics.factor import Factor, System, plain_factor, twofold_factor
from certifit.statistics.gram import Gram, Scaling, gram
from certifit.statistics.residual import Residual, residual

SMALL_STEP = 1e-8  # relative to the size of predictions: beyond it a residual statistic is summed anew
LARGEST_PENALTY = 1e200  # on a column of size 1
SMALL_CHANGE = 0.1  # relative to the size of residuals: beyond it their squares would be known to fewer digits


@dataclass(frozen=True)
class Weights:
    """A state: one weight a column and the intercept, in the user's units."""

    coef: Array
    intercept: float


class LeastSquares:
    """The task of rows that are at least as many as columns. alpha None means 1 / sum of weights."""

    def __init__(self, source: Source, alpha: float | None, fit_intercept: bool) -> None:
        self.source = source
        self.fit_intercept = fit_intercept
        self._alpha = alpha
        self._last: tuple[Weights, Residual] | None = None
        self.gram: Gram = gram(source, centred=fit_intercept)
        self.factor: Factor = self._factored()

    @property
    def alpha(self) -> float:
        """Strength of the penalty on the mean scale."""
        if self._alpha is not None:
            return self._alpha
        return self.gram.scaling.weight_scale / self.gram.sum_weight

    @property
    def penalty(self) -> Array:
        """What the penalty adds to the diagonal, in scaled units: sum_w alpha (scale_j)^2, kept finite."""
        strength = self.alpha * self.gram.sum_weight
        if strength == 0:
            return np.zeros(self.gram.n_columns)
        with np.errstate(over="ignore", under="ignore"):
            return np.minimum(strength * self.gram.scaling.scale**2, LARGEST_PENALTY)

    @property
    def rank(self) -> int:
        """Number of columns that are not combinations of the others (and of the intercept)."""
        return len(self.factor.kept) - int(self.fit_intercept)

    def right_hand_side(self) -> Array:
        """sum_i w_i a_i (y_i - y_shift) for the system's columns a."""
        return np.asarray(self.gram.sums[self._order(), self.gram.n_columns + 1])

    def residual_at(self, state: Weights) -> Residual:
        """The residual statistic at a state: one pass over the rows, or none for a small step from the last."""
        if self._last is not None:
            old, last = self._last
            step, matrix = self._step(old, state), self._matrix()
            size = float(np.sqrt(np.diagonal(matrix)) @ np.abs(step))
            if size <= min(SMALL_STEP * np.sqrt(last.magnitude), SMALL_CHANGE * np.sqrt(last.squares)):
                return last.moved(step, matrix, self.penalty, self.to_scaled(old)[0])
        weights, intercept = self.to_scaled(state)
        s = self.gram.scaling
        at = residual(self.source, s, weights, intercept, s.shift, self.penalty)
        self._last = (state, at)
        return at

    def gradient(self, at: Residual) -> Array:
        """Minus the gradient of the scaled objective in the system's unknowns."""
        return at.gradient if self.fit_intercept else at.gradient[1:]

    def to_scaled(self, state: Weights) -> tuple[Array, float]:
        """Weights and intercept for scaled columns and target. Powers of two: exact short of underflow."""
        s = self.gram.scaling
        return state.coef / s.scale * s.y_scale, state.intercept * s.y_scale

    def from_solution(self, solution: Array, low: Array | None = None) -> Weights:
        """The state nearest to a solution of the system, solution + low."""
        s, offset = self.gram.scaling, int(self.fit_intercept)
        low = np.zeros_like(solution) if low is None else low
        with np.errstate(over="ignore"):
            coef = (solution + low)[offset:] * s.scale / s.y_scale
        coef[self.penalty >= LARGEST_PENALTY] = 0.0  # within 1 / LARGEST_PENALTY of the minimum, relative
        self._refuse_overflow(coef)
        intercept = 0.0
        if offset:
            # b = b' + y_shift - sum_j w_j shift_j: large terms that cancel, so in twofold precision
            hi, lo = tf.dot(solution[1:], s.shift)
            total, rest = tf.two_sum(solution[0], np.float64(s.y_shift))
            total, more = tf.two_sum(total, np.float64(-hi))
            intercept = float(total + (more + rest - lo + low[0] - float(low[1:] @ s.shift))) / s.y_scale
        return Weights(coef, intercept)

    def to_solution(self, state: Weights) -> Array:
        """Inverse of `from_solution`."""
        s = self.gram.scaling
        weights, intercept = self.to_scaled(state)
        if not self.fit_intercept:
            return weights
        hi, lo = tf.dot(weights, s.shift)
        total, rest = tf.two_sum(np.float64(intercept), np.float64(-s.y_shift))
        return np.concatenate([[float((total + hi) + (rest + lo))], weights])

    def directions(self) -> Array:
        """Null vectors of the system, one a dependent column: its relation to the kept ones, -1 for itself."""
        factor = self.factor
        out = np.zeros((len(factor.kept) + len(factor.dependent), len(factor.dependent)))
        out[factor.dependent, np.arange(len(factor.dependent))] = -1.0
        out[factor.kept] = factor.relations.T
        return out

    def null_space(self) -> tuple[Array | None, Array]:
        """Directions of the weights, largest entry 1, and of the intercept, that change no prediction."""
        s, offset = self.gram.scaling, int(self.fit_intercept)
        moves = self.directions()
        with np.errstate(over="ignore", under="ignore"):
            weights = moves[offset:] * s.scale[:, None]
            intercept = moves[0] - s.shift @ moves[1:] if offset else np.zeros(moves.shape[1])
        largest = np.abs(weights).max(axis=0, initial=0.0)
        unit = np.where(largest > 0, largest, 1.0)
        return np.asarray(weights / unit), np.asarray(intercept / unit)

    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""
        mean, about = self.gram.target_moments()
        return data_facts(self.gram.n_rows, self.gram.sum_weight, self.gram.scaling, mean, about)

    def _factored(self) -> Factor:
        """Factor of the system's matrix; from twofold sums where float64 ones cannot bear its condition."""
        plain = plain_factor(self._system())
        if plain is not None:
            return plain
        self.gram = gram(self.source, centred=self.fit_intercept, twofold=True)
        return twofold_factor(self._system())

    def _system(self) -> System:
        order = self._order()
        places = np.ix_(order, order)
        low = None if self.gram.low is None else self.gram.low[places]
        norms, penalty = self.gram.norms, self.penalty
        if self.fit_intercept:
            norms = np.concatenate([[np.sqrt(self.gram.sum_weight)], norms])
            penalty = np.concatenate([[0.0], penalty])
        return System.of(self.gram.sums[places], low, penalty, norms)

    def _order(self) -> Array:
        """The system's columns as places in the Gram statistic."""
        d = self.gram.n_columns
        columns = np.arange(d)
        return np.concatenate([[d], columns]) if self.fit_intercept else columns

    def _matrix(self) -> Array:
        """sum_i w_i a_i a_i' for a = (1, x - shift), without the penalty."""
        d = self.gram.n_columns
        order = np.concatenate([[d], np.arange(d)])
        return np.asarray(self.gram.sums[np.ix_(order, order)])

    def _step(self, old: Weights, new: Weights) -> Array:
        """new - old for (intercept of shifted columns, weights), scaled: exact differences of near numbers."""
        s = self.gram.scaling
        weights = (new.coef - old.coef) / s.scale * s.y_scale
        intercept = (new.intercept - old.intercept) * s.y_scale + float(weights @ s.shift)
        return np.concatenate([[intercept], weights])

    def _refuse_overflow(self, coef: Array) -> None:
        if np.isfinite(coef).all():
            return
        j = int(np.flatnonzero(~np.isfinite(coef))[0])
        size = 1.0 / self.gram.scaling.scale[j]
        raise ValueError(
            f"The coefficient of feature {self.source.names[j]!r} exceeds the largest float64: its values are "
            f"about {size:.0e}. Multiply the column by 1e200 or so, or leave it out."
        )


def data_facts(n_rows: int, sum_weight: float, s: Scaling, mean: float, about: float) -> dict[str, float]:
    """Number of rows, sum of weights, mean and standard deviation of the target, in the user's units."""
    return {
        "n_rows": n_rows,
        "sum_weight": sum_weight / s.weight_scale,
        "target_mean": mean / s.y_scale,
        "target_sd": float(np.sqrt(about / sum_weight)) / s.y_scale,
    }
