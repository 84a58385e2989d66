"""Softmax regression: one score per class, the loss is the cross-entropy of the classes.

minimise  sum_i w_i [log sum_k e^(z_ik) - z_iy] / sum_i w_i + alpha/2 sum_kj s_j^2 w_kj^2,   z_ik = b_k + x_i'w_k
s_j is 1, or the standard deviation of a column (without intercepts, its root mean square)

All classes are treated alike. Adding one vector to all w_k changes no chance, so weights and intercepts are those
whose sum over the classes is 0: with alpha > 0 the minimum has no others, with alpha = 0 it is what identifies them.
A point is (weights of scaled, shifted columns; intercepts of those), (columns + 1) x classes, as one vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.data.user_input import refuse_nonfinite
from certifit.models.glm.task import Evaluated
from certifit.models.least_squares.normal_equations import LARGEST_PENALTY
from certifit.models.least_squares.task import LeastSquares
from certifit.runtime import one_blas_thread
from certifit.statistics import double_double as dd
from certifit.statistics import softmax as sums
from certifit.statistics.gram import ColumnSizes, Scaling
from certifit.statistics.moments import column_spreads


@dataclass(frozen=True)
class SoftmaxWeights:
    """A state: weights, classes x columns, and an intercept a class, in the user's units."""

    coef: Array
    intercept: Array

    def relative_to(self, reference: int) -> SoftmaxWeights:
        """The same chances with weights and intercept 0 for one class: logarithms of odds against it."""
        return SoftmaxWeights(self.coef - self.coef[reference], self.intercept - self.intercept[reference])


class SoftmaxTask:
    """What solver and certificate need of the rows. Targets are codes of classes; alpha None: 1 / sum of weights."""

    def __init__(
        self, source: Source, n_classes: int, alpha: float | None, fit_intercept: bool, standardize: bool = False
    ) -> None:
        if source.view.has_offset:
            raise ValueError(
                f"An offset adds the same to the scores of all {n_classes} classes, which changes no chance. "
                "Leave it out, or fit two classes."
            )
        self.source, self.n_classes, self.fit_intercept = source, n_classes, fit_intercept
        self._alpha, self.standardize = alpha, standardize
        sums.check_size(source, n_classes)
        self.scaling = self._scaling()

    @cached_property
    def labels(self) -> tuple[Array, int]:
        """Weight of every class, and the number of rows that have one."""
        weights, n_rows = sums.class_weights(self.source, self.n_classes)
        if not (weights > 0).all():
            raise ValueError(f"Class {int(np.argmin(weights))} of {self.n_classes} has no row with a weight.")
        sums.check_time(self.source, self.n_classes, n_rows)
        return weights, n_rows

    @property
    def sum_weight(self) -> float:
        """Sum of weights, scaled."""
        return float(self.labels[0].sum()) * self.scaling.weight_scale

    @property
    def shares(self) -> Array:
        """Share of every class in the weights."""
        return np.asarray(self.labels[0] / self.labels[0].sum())

    @property
    def alpha(self) -> float:
        """Strength of the penalty on the mean scale."""
        return 1.0 / float(self.labels[0].sum()) if self._alpha is None else self._alpha

    @property
    def shape(self) -> tuple[int, int]:
        """Of a point, before it is one vector."""
        return len(self.scaling.scale) + 1, self.n_classes

    @property
    def size(self) -> int:
        """Entries of a point."""
        return self.shape[0] * self.shape[1]

    @cached_property
    def l2(self) -> Array:
        """Strength of the squares of a scaled column's weights, 0 for the intercepts."""
        if self.alpha == 0:
            return np.zeros(self.shape[0])
        with np.errstate(over="ignore", under="ignore"):
            units = self.scaling.scale * self.spreads
            return np.append(np.minimum(self.alpha * units**2, LARGEST_PENALTY), 0.0)

    @cached_property
    def spreads(self) -> Array:
        """s_j, what a weight is multiplied by in the penalty; one pass where columns are standardised."""
        if not self.standardize:
            return np.ones(self.source.n_features)
        return column_spreads(self.source, self.fit_intercept)

    @cached_property
    def null_value(self) -> float:
        """The objective without weights."""
        return float(-self.shares @ np.log(self.shares)) if self.fit_intercept else float(np.log(self.n_classes))

    def start(self) -> Array:
        """No weights; the intercepts of the classes' shares."""
        point = np.zeros(self.shape)
        if self.fit_intercept:
            point[-1] = np.log(self.shares) - np.log(self.shares).mean()
        return point.ravel()

    def evaluate(self, point: Array, hessian: bool = False) -> Evaluated:
        """The objective at a point: one pass; a Hessian costs another, of as many Gram matrices as pairs of classes."""
        at = point.reshape(self.shape)
        summed = sums.cross_entropy(self.source, self.scaling, at)
        if not np.isfinite(summed[0]) and not at[:-1].any():
            self.rescale()
            summed = sums.cross_entropy(self.source, self.scaling, at)
        with np.errstate(over="ignore", invalid="ignore"):
            loss, pull = summed[0] / self.sum_weight, self.l2[:, None] * at
            gradient = summed[1] / self.sum_weight + pull
            value = loss + float(np.sum(pull * at)) / 2
        if not self.fit_intercept:
            gradient[-1] = 0.0
        return Evaluated(value, gradient.ravel(), self.hessian(point) if hessian else None, loss)

    def product(self, point: Array, direction: Array) -> Array:
        """The Hessian times a direction: one pass."""
        way = direction.reshape(self.shape).copy()
        if not self.fit_intercept:
            way[-1] = 0.0
        summed = sums.product(self.source, self.scaling, point.reshape(self.shape), way) / self.sum_weight
        summed += self.l2[:, None] * way
        if not self.fit_intercept:
            summed[-1] = 0.0
        return np.asarray(summed.ravel())

    def hessian(self, point: Array) -> Array:
        """The Hessian, made definite: directions common to all classes, where no gradient points, have curvature too.

        Block (k, l) is -sum w p_k p_l a a' and block (k, k) the sum of the others of its row, taken away.
        """
        n_rows, n_classes = self.shape
        parts = sums.pairs(self.source, self.scaling, point.reshape(self.shape)) / self.sum_weight
        whole = np.zeros((n_rows, n_classes, n_rows, n_classes))
        low, high = np.triu_indices(n_classes, 1)
        for k, j, part in zip(low, high, parts, strict=True):
            whole[:, k, :, j] -= part
            whole[:, j, :, k] -= part
            whole[:, k, :, k] += part
            whole[:, j, :, j] += part
        common = np.einsum("ikjk->ij", whole) / n_classes**2
        common[np.diag_indices(n_rows)] += self.l2 / n_classes
        whole += common[:, None, :, None]
        at = np.arange(n_rows)
        for first in range(n_classes):
            whole[at, first, at, first] += self.l2
        if not self.fit_intercept:  # nothing moves there
            whole[-1] = whole[:, :, -1] = 0.0
            whole[-1, :, -1] = np.eye(n_classes)
        return whole.reshape(self.size, self.size)

    @cached_property
    def columns(self) -> LeastSquares:
        """The columns as least squares sees them: which are combinations of others, and of which."""
        return LeastSquares(self.source, 0.0, self.fit_intercept)

    @cached_property
    def largest(self) -> Array:
        """At least the largest |x scale - shift| of every column, then 1: one pass over the columns."""
        sizes = self.source.reduce(ColumnSizes.of).columns
        return np.append(sizes * self.scaling.scale + np.abs(self.scaling.shift), 1.0)

    @one_blas_thread
    def to_state(self, point: Array) -> SoftmaxWeights:
        """In the user's units, about the mean of the classes."""
        s, at = self.scaling, point.reshape(self.shape)
        at = at - at.mean(axis=1, keepdims=True)
        with np.errstate(over="ignore", under="ignore"):
            coef = at[:-1].T * s.scale
        coef[:, self.l2[:-1] >= LARGEST_PENALTY] = 0.0
        self._refuse_overflow(coef)
        intercept = np.zeros(self.n_classes)
        if self.fit_intercept:  # b = b' - sum_j w_j shift_j: large terms that cancel, so in twofold precision
            for k in range(self.n_classes):
                hi, lo = dd.dot(at[:-1, k], s.shift)
                total, rest = dd.two_sum(np.float64(at[-1, k]), np.float64(-hi))
                intercept[k] = float(total + (rest - lo))
        return SoftmaxWeights(np.ascontiguousarray(coef), intercept)

    def to_point(self, state: SoftmaxWeights) -> Array:
        """Inverse of `to_state`."""
        at = np.zeros(self.shape)
        at[:-1] = (state.coef / self.scaling.scale).T
        for k in range(self.n_classes):
            hi, lo = dd.dot(at[:-1, k], self.scaling.shift)
            at[-1, k] = float(np.float64(state.intercept[k]) + hi + lo)
        return at.ravel()

    def _scaling(self, largest: ColumnSizes | None = None) -> Scaling:
        """Units in which columns are near 1, or smaller where the penalty would be beyond LARGEST_PENALTY."""
        scaling = Scaling.of(self.source, centred=self.fit_intercept, exact=False, largest=largest)
        if self._alpha == 0 or not len(scaling.scale):
            return scaling
        with np.errstate(over="ignore"):
            if (self.alpha * (scaling.scale * self.spreads) ** 2 < LARGEST_PENALTY).all():
                return scaling
            return scaling.within(np.sqrt(LARGEST_PENALTY / self.alpha) / 2 / self.spreads)

    def rescale(self) -> None:
        """Scales from all rows, where those of block 0 overflowed."""
        refuse_nonfinite(self.source)
        largest = self.source.reduce(ColumnSizes.of)
        self.scaling = self._scaling(largest)
        for name in ("l2", "largest"):
            self.__dict__.pop(name, None)

    def facts(self) -> dict[str, float]:
        """What is remembered of the data: codes of classes have a mean and a spread too, as those of two have."""
        weights, n_rows = self.labels
        codes = np.arange(len(weights))
        mean = float(weights @ codes / weights.sum())
        spread = float(np.sqrt(weights @ np.square(codes - mean) / weights.sum()))
        return {"n_rows": n_rows, "sum_weight": float(weights.sum()), "target_mean": mean, "target_sd": spread}

    def _refuse_overflow(self, coef: Array) -> None:
        if np.isfinite(coef).all():
            return
        j = int(np.flatnonzero(~np.isfinite(coef).all(axis=0))[0])
        raise ValueError(
            f"A coefficient of feature {self.source.names[j]!r} exceeds the largest float64: its values are about "
            f"{1.0 / self.scaling.scale[j]:.0e}. Multiply the column by 1e200 or so, or leave it out."
        )
