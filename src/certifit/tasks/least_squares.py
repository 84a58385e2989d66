"""Least squares with an optional ridge penalty: minimise  sum_i w_i (y_i - b - x_i'w)^2 / (2 sum_i w_i) + alpha/2 |w|^2.

`LeastSquares` works on the d x d Gram matrix of the columns, `DualLeastSquares` on the n x n matrix of the rows
when there are fewer rows than columns. Both give their solver and their certificate the same few things: a factor,
residuals at a state, and the scales that turn one into the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from certifit.data.gate import refuse_nonfinite
from certifit.data.source import Array, Block, Memory, Source, block_rows
from certifit.runtime import core, n_threads
from certifit.statistics import twofold as tf
from certifit.statistics.factor import Factor, System, plain_factor, twofold_factor
from certifit.statistics.gram import Gram, Scaling, gram
from certifit.statistics.residual import Residual, residual

LARGEST_NULL_SPACE = 4_000_000  # entries
COUNT_ABOVE = 256  # with fewer columns the d x d matrix is cheap, and a stream is not read just to count its rows


@dataclass(frozen=True)
class Weights:
    """A state: one weight a column and the intercept, in the user's units."""

    coef: Array
    intercept: float


def least_squares_task(source: Source, alpha: float | None, fit_intercept: bool) -> LeastSquares | DualLeastSquares:
    """The task on columns, or on rows where they are fewer. alpha None means 1 / sum of weights."""
    n_rows = _count_rows(source)
    if n_rows is not None and n_rows < source.n_features:
        return DualLeastSquares(source, alpha, fit_intercept)
    return LeastSquares(source, alpha, fit_intercept)


class LeastSquares:
    """The task on the Gram matrix of the columns."""

    def __init__(self, source: Source, alpha: float | None, fit_intercept: bool) -> None:
        self.source = source
        self.fit_intercept = fit_intercept
        self._alpha = alpha
        self.gram: Gram = gram(source, centred=fit_intercept)

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
        with np.errstate(over="ignore", under="ignore"):
            return np.minimum(strength * self.gram.scaling.scale**2, 1e200)

    @cached_property
    def factor(self) -> Factor:
        """Factor of the system's matrix; from twofold sums where float64 ones cannot bear its condition."""
        plain = plain_factor(self._system())
        if plain is not None:
            return plain
        if self.gram.low is None:
            self.gram = gram(self.source, centred=self.fit_intercept, twofold=True)
        return twofold_factor(self._system())

    def right_hand_side(self) -> Array:
        """sum_i w_i a_i (y_i - y_shift) for the system's columns."""
        return np.asarray(self.gram.sums[self._order(), self.gram.n_columns + 1])

    def residual_at(self, state: Weights) -> Residual:
        """The residual statistic at a state: one pass over the rows."""
        weights, intercept = self.to_scaled(state)
        return residual(self.source, self.gram.scaling, weights, intercept)

    def gradient(self, at: Residual, state: Weights) -> Array:
        """Minus the gradient of the scaled objective for the system's columns (1, x - shift) or x."""
        gradient = at.about(self.gram.scaling.shift)
        gradient[1:] -= self.penalty * self.to_scaled(state)[0]
        return gradient if self.fit_intercept else gradient[1:]

    def to_scaled(self, state: Weights) -> tuple[Array, float]:
        """Weights and intercept for scaled columns and target. Powers of two: exact short of underflow."""
        s = self.gram.scaling
        return state.coef / s.scale * s.y_scale, state.intercept * s.y_scale

    def from_solution(self, solution: Array, low: Array | None = None) -> Weights:
        """The state nearest to a solution of the system, solution + low: intercept first, then weights; all scaled."""
        s, offset = self.gram.scaling, int(self.fit_intercept)
        low = np.zeros_like(solution) if low is None else low
        with np.errstate(over="ignore"):
            coef = (solution + low)[offset:] * s.scale / s.y_scale
        self._refuse_overflow(coef)
        intercept = 0.0
        if offset:
            # b = b' + y_shift - sum_j w_j shift_j: large terms that cancel, so in twofold precision
            hi, lo = tf.dot(solution[1:], s.shift)
            total, rest = tf.two_sum(np.float64(solution[0]), np.float64(s.y_shift))
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

    @property
    def rank(self) -> int:
        """Number of columns that are not combinations of the others (and of the intercept)."""
        return len(self.factor.kept) - int(self.fit_intercept)

    def directions(self) -> Array:
        """Null vectors of the system, one a dependent column: its relation to the kept columns, and -1 for itself."""
        factor = self.factor
        out = np.zeros((len(factor.kept) + len(factor.dependent), len(factor.dependent)))
        out[factor.dependent, np.arange(len(factor.dependent))] = -1.0
        out[factor.kept] = factor.relations.T
        return out

    def null_space(self) -> tuple[Array | None, Array]:
        """Directions of the weights, largest entry 1, and of the intercept, along which no prediction changes."""
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
        s = self.gram.scaling
        mean, about = self.gram.target_moments()
        return _facts(self.gram.n_rows, self.gram.sum_weight, s, mean, about)

    def _order(self) -> Array:
        """The system's columns as places in the Gram statistic."""
        d = self.gram.n_columns
        columns = np.arange(d)
        return np.concatenate([[d], columns]) if self.fit_intercept else columns

    def _system(self) -> System:
        order = self._order()
        matrix = self.gram.sums[np.ix_(order, order)]
        low = None if self.gram.low is None else self.gram.low[np.ix_(order, order)]
        norms = self.gram.norms
        offset = int(self.fit_intercept)
        if offset:
            norms = np.concatenate([[np.sqrt(self.gram.sum_weight)], norms])
        at = np.arange(offset, len(order))
        if low is None:
            matrix[at, at] += self.penalty
        else:
            matrix[at, at], low[at, at] = tf.add(
                (matrix[at, at], low[at, at]), (self.penalty, np.zeros(len(at)))
            )
        return System(matrix, low, norms)

    def _refuse_overflow(self, coef: Array) -> None:
        if np.isfinite(coef).all():
            return
        j = int(np.flatnonzero(~np.isfinite(coef))[0])
        size = 1.0 / self.gram.scaling.scale[j]
        raise ValueError(
            f"The coefficient of feature {self.source.names[j]!r} exceeds the largest float64: its values are about "
            f"{size:.0e}. Multiply the column by 1e200 or so, or leave it out."
        )


class DualLeastSquares:
    """The task on the matrix of the rows, K_ij = z_i'z_j with z_i = sqrt(w_i) (x_i - mean): fewer rows than columns."""

    def __init__(self, source: Source, alpha: float | None, fit_intercept: bool) -> None:
        self.source = source
        self.block: Block = source.gather()
        self.fit_intercept = fit_intercept
        if self.block.y is None:
            raise ValueError("least squares needs a target")
        self.y: Array = self.block.y
        n = self.block.n_rows
        self.weight = np.ones(n) if self.block.weight is None else self.block.weight
        self._alpha = alpha
        weight_scale = 2.0 ** (1 - float(np.frexp(self.weight.max())[1]))
        self.relative_weight = self.weight * weight_scale
        self.sum_weight = float(self.relative_weight.sum())
        self.weight_scale = weight_scale
        self.scaling = self._scaling(weight_scale)
        self.mean = self._weighted_mean() if fit_intercept else np.zeros(source.n_features)
        self.y_mean = float(self.relative_weight @ (self.y * self.scaling.y_scale)) / self.sum_weight if fit_intercept else 0.0
        self.kernel = self._summed_kernel(twofold=False)

    @property
    def alpha(self) -> float:
        """Strength of the penalty on the mean scale."""
        return self._alpha if self._alpha is not None else self.weight_scale / self.sum_weight

    @property
    def strength(self) -> float:
        """sum_w alpha in scaled units: what the penalty adds to the diagonal of K."""
        with np.errstate(over="ignore", under="ignore"):
            return float(min(self.alpha * self.sum_weight * float(self.scaling.scale[0]) ** 2, 1e200))

    @property
    def roots(self) -> Array:
        """Square roots of the weights."""
        return np.sqrt(self.relative_weight)

    @cached_property
    def factor(self) -> Factor:
        """Factor of K + sum_w alpha I."""
        plain = plain_factor(self._system())
        if plain is not None:
            return plain
        self.kernel = self._summed_kernel(twofold=True)
        return twofold_factor(self._system())

    def residuals(self, state: Weights) -> Array:
        """r_i = y_i - b - x_i'w, scaled, evaluated in twofold precision."""
        weights, intercept = self.to_scaled(state)
        s = self.scaling
        r: Array = core.residual_rows(self.block.rows, self.y, s.scale, s.y_scale, weights, intercept, n_threads())
        return r

    def residual_at(self, state: Weights) -> Residual:
        """The residual statistic at a state."""
        weights, intercept = self.to_scaled(state)
        return residual(self.source, self.scaling, weights, intercept)

    def combine(self, multipliers: Array) -> Array:
        """sum_i a_i z_i: the weights that multipliers of the rows stand for, scaled."""
        rooted = multipliers * self.roots
        products = self.block.X.T @ (rooted) if sp.issparse(self.block.X) else rooted @ self._plain_rows()
        return np.asarray(products * self.scaling.scale - self.mean * rooted.sum())

    def to_scaled(self, state: Weights) -> tuple[Array, float]:
        """Weights and intercept for scaled columns and target."""
        s = self.scaling
        return state.coef / s.scale * s.y_scale, state.intercept * s.y_scale

    def from_scaled(self, weights: Array) -> Weights:
        """The state with these scaled weights and the intercept that makes the weighted residuals sum to zero."""
        s = self.scaling
        intercept = (self.y_mean - float(self.mean @ weights)) / s.y_scale if self.fit_intercept else 0.0
        return Weights(weights * s.scale / s.y_scale, intercept)

    @property
    def rank(self) -> int:
        """Dimension of the span of the (centred) rows; with a penalty the factor does not tell, and n bounds it."""
        return min(len(self.factor.kept), self.source.n_features)

    def null_space(self) -> tuple[Array | None, Array]:
        """An orthonormal basis of the directions that no row sees, while it is small enough to keep."""
        d = self.source.n_features
        if self.strength > 0:
            return np.zeros((d, 0)), np.zeros(0)
        free = d - self.rank
        if d * free > LARGEST_NULL_SPACE:
            return None, np.zeros(0)
        full, _, _ = scipy.linalg.qr(self._centred(slice(0, d))[self.factor.kept].T, mode="full", pivoting=True)
        directions = full[:, self.rank :]
        return directions, -(self.mean / self.scaling.scale) @ directions

    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""
        y = self.y * self.scaling.y_scale
        mean = float(self.relative_weight @ y) / self.sum_weight
        about = float(self.relative_weight @ (y - mean) ** 2)
        return _facts(self.block.n_rows, self.sum_weight, self.scaling, mean, about)

    def _centred(self, at: slice) -> Array:
        """z for a range of columns."""
        part = self.block.X[:, at]
        dense = part.toarray() if sp.issparse(part) else np.asarray(part, dtype=np.float64)
        return np.asarray((dense * self.scaling.scale[at] - self.mean[at]) * self.roots[:, None])

    def _plain_rows(self) -> Array:
        return np.asarray(self.block.X, dtype=np.float64)

    def _scaling(self, weight_scale: float) -> Scaling:
        """One power of two for all columns: the smallest norm is meant in the user's units."""
        sizes = Scaling.of(self.source, centred=False, exact=False)
        if not (np.isfinite(sizes.scale).all() and np.isfinite(self.y).all()):
            refuse_nonfinite(self.source)
        d = self.source.n_features
        return Scaling(np.full(d, sizes.scale.min()), np.zeros(d), sizes.y_scale, 0.0, weight_scale)

    def _weighted_mean(self) -> Array:
        total = self.relative_weight @ (self.block.X if sp.issparse(self.block.X) else self._plain_rows() * self.scaling.scale)
        if sp.issparse(self.block.X):
            total = total * self.scaling.scale
        return np.asarray(total / self.sum_weight)

    def _summed_kernel(self, twofold: bool) -> tuple[Array, Array | None]:
        """K, summed over runs of columns: the Gram matrix of the transposed, centred rows."""
        n, d = self.block.n_rows, self.source.n_features
        ones, zeros, size = np.ones(n), np.zeros(n), block_rows(n)
        total: tuple[Array, Array | None] | None = None
        for begin in range(0, d, 4 * size):
            z = self._centred(slice(begin, begin + 4 * size))
            sums, low = core.gram(z.T, None, None, ones, zeros, 1.0, 0.0, 1.0, size, twofold, n_threads())
            if total is None:
                total = (sums, low)
            elif low is None:
                total = (total[0] + sums, None)
            else:
                total = tf.add(total, (sums, low))  # type: ignore[arg-type]
        assert total is not None
        if not np.isfinite(total[0]).all():
            refuse_nonfinite(self.source)
        return total[0][:n, :n], None if total[1] is None else total[1][:n, :n]

    def _system(self) -> System:
        matrix, low = (None if part is None else part.copy() for part in self.kernel)
        norms = np.sqrt(np.maximum(np.diagonal(matrix), 0.0) + float(self.mean @ self.mean))
        at = np.arange(len(matrix))
        if low is None:
            matrix[at, at] += self.strength
        else:
            matrix[at, at], low[at, at] = tf.add((matrix[at, at], low[at, at]), (np.full(len(at), self.strength), np.zeros(len(at))))
        return System(matrix, low, norms)


def _facts(n_rows: int, sum_weight: float, s: Scaling, mean: float, about: float) -> dict[str, float]:
    return {
        "n_rows": n_rows,
        "sum_weight": sum_weight / s.weight_scale,
        "target_mean": mean / s.y_scale,
        "target_sd": float(np.sqrt(about / sum_weight)) / s.y_scale,
    }


def _count_rows(source: Source) -> int | None:
    if source.n_features <= COUNT_ABOVE and not isinstance(source, Memory):
        return None
    return sum(run.n_rows for run in source.runs())
