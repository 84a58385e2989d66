"""Softmax regression: one score per class, the loss is the cross-entropy of the classes.

minimise  sum_i w_i [log sum_k e^(z_ik) - z_iy] / sum_i w_i + sum_kj l1_j |w_kj| + l2_j/2 w_kj^2,   z_ik = b_k + x_i'w_k
l1_j, l2_j and bounds are those of models/glm/task.py

All classes are treated alike. Adding one vector to all w_k changes no chance, so weights and intercepts are those
whose sum over the classes is 0: with squares alone the minimum has no others, without a penalty it is what identifies
them. An L1 penalty and bounds decide for themselves.
A point is (weights of scaled, shifted columns; intercepts of those), (columns + 1) x classes, as one vector.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.models.glm.task import Evaluated, GlmTask, ScoreTask
from certifit.models.lasso.task import Strengths
from certifit.models.least_squares.normal_equations import Weights
from certifit.runtime import one_blas_thread
from certifit.statistics import softmax as sums
from certifit.statistics.factor import hold_intercepts
from certifit.statistics.gram import Scaling
from certifit.statistics.residual import UNIT

LITTLE = 1e-8  # of the curvature of a column: what directions common to all classes are given where there are kinks


@dataclass(frozen=True)
class SoftmaxWeights:
    """A state: weights, classes x columns, and an intercept a class, in the user's units."""

    coef: Array
    intercept: Array

    def relative_to(self, reference: int) -> SoftmaxWeights:
        """The same chances with weights and intercept 0 for one class: logarithms of odds against it."""
        return SoftmaxWeights(self.coef - self.coef[reference], self.intercept - self.intercept[reference])


class ClassLoss:
    """-log p_y(z), p the softmax of the scores of a row; y is the code of its class."""

    smoothness = 0.5  # diag(p) - pp' has no larger eigenvalue: half of sum_ij p_i p_j (v_i - v_j)^2
    concordance = 2.0  # along a line the curvature changes as fast as two scores move apart, M of each score
    is_convex, is_piecewise = True, False

    def slope(self, y: Array, z: Array) -> Array:
        """p - 1 at the class of the row."""
        chances = np.exp(z - z.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        chances[np.arange(len(y)), y.astype(np.int64)] -= 1.0
        return np.asarray(chances)


class SoftmaxTask(ScoreTask[SoftmaxWeights]):
    """What solver and certificate need of the rows. Targets are codes of classes.

    penalty: strengths; or the alpha of squares, None being 1 / sum of weights.
    """

    loss: ClassLoss = ClassLoss()

    def __init__(
        self,
        source: Source,
        n_classes: int,
        penalty: Strengths | float | None,
        fit_intercept: bool,
        standardize: bool = False,
    ) -> None:
        if source.view.has_offset:
            raise ValueError(
                f"An offset adds the same to the scores of all {n_classes} classes, which changes no chance. "
                "Leave it out, or fit two classes."
            )
        self.source, self.n_scores, self.fit_intercept = source, n_classes, fit_intercept
        self.standardize = standardize
        sums.check_size(source, n_classes)
        self.scaling = Scaling.of(source, centred=fit_intercept, exact=False)
        if not isinstance(penalty, Strengths):
            alpha = 1.0 / float(self.labels[0].sum()) if penalty is None else float(penalty)
            penalty = Strengths.plain(alpha, source.n_features)
        self.penalise(penalty)

    @property
    def n_classes(self) -> int:
        """One score each."""
        return self.n_scores

    @cached_property
    def _labels(self) -> tuple[Array, int]:
        weights, n_rows = sums.class_weights(self.source, self.n_classes)
        sums.check_time(self.source, self.n_classes, n_rows)
        return weights, n_rows

    @property
    def labels(self) -> tuple[Array, int]:
        """Weight of every class, none of which is 0, and the number of rows that have one."""
        weights, n_rows = self._labels
        if not (weights > 0).all():
            raise ValueError(f"Class {int(np.argmin(weights))} of {self.n_classes} has no row with a weight.")
        return weights, n_rows

    @cached_property
    def sum_weight(self) -> float:
        """Sum of weights, scaled."""
        return float(self._labels[0].sum()) * self.scaling.weight_scale

    @property
    def shares(self) -> Array:
        """Share of every class in the weights."""
        return np.asarray(self.labels[0] / self.labels[0].sum())

    @property
    def alpha(self) -> float:
        """Strength of the penalty on the mean scale."""
        return self.strengths.alpha

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
            here = self.with_squares(summed[0] / self.sum_weight, (summed[1] / self.sum_weight).ravel(), None, point)
        return replace(here, hessian=self.hessian(point)) if hessian else here

    def hessian(self, point: Array) -> Array:
        """The Hessian, made definite: directions common to all classes, where no gradient points, curve too."""
        n_classes = self.n_classes
        whole = self.curvature(point)
        common = np.einsum("ikjk->ij", whole) / n_classes**2
        # A kink or a bound pulls that way too: there a little curvature must do, or steps would be short.
        whole += common[:, None, :, None] * (1.0 if self.is_smooth else LITTLE)
        matrix = whole.reshape(self.size, self.size)
        if not self.fit_intercept:
            hold_intercepts(matrix, n_classes)
        return matrix

    def curvature(self, point: Array) -> Array:
        """The Hessian as it is, columns x classes x columns x classes.

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
        at = np.arange(n_rows)
        for first in range(n_classes):
            whole[at, first, at, first] += self.l2
        return whole

    @one_blas_thread
    def to_state(self, point: Array) -> SoftmaxWeights:
        """In the user's units and within the bounds; about the mean of the classes, where neither kink nor bound is."""
        at, limits = point.reshape(self.shape).copy(), self.strengths
        decided = (self.l1_strengths > 0) | np.isfinite(limits.lower) | np.isfinite(limits.upper)
        free = np.append(~decided, True)
        at[free] -= at[free].mean(axis=1, keepdims=True)
        coef, intercept = self.in_user_units(at)
        if decided.any():
            intercept -= intercept.mean()
        return SoftmaxWeights(np.clip(np.ascontiguousarray(coef), limits.lower, limits.upper), intercept)

    def to_point(self, state: SoftmaxWeights) -> Array:
        """Inverse of `to_state`."""
        return self.from_user_units(state.coef, state.intercept)

    def state_of(self, coef: Array, intercept: Array) -> SoftmaxWeights:
        """Weights, classes x columns, and the intercepts."""
        return SoftmaxWeights(coef, intercept)

    def centred(self, coef: Array, intercept: Array) -> tuple[Array, Array, float]:
        """About the means of the classes, and what those cost: they change no chance, only squares.

        In the user's units, where a difference is rounded by its own size: sums with a shift have the rounding of what
        the classes have in common, and another in each class.
        """
        mean = coef.mean(axis=0)
        cost = float(self.n_classes / 2 * (self.l2[:-1] @ np.square(mean / self.scaling.scale))) * (1 + 8 * UNIT)
        return coef - mean, intercept - intercept.mean(), cost

    def without_penalty(self, source: Source) -> SoftmaxTask:
        """The same of other columns of the rows."""
        return SoftmaxTask(source, self.n_classes, 0.0, self.fit_intercept)

    @property
    def n_rows(self) -> int:
        """That have a weight."""
        return self.labels[1]

    @property
    def null_intercepts(self) -> Array:
        """Those of the null model, but for what the classes have in common."""
        return np.log(self.shares)

    def of_targets(self) -> dict[str, object]:
        """The number of classes and their weights."""
        return {"n_scores": self.n_scores, "_labels": self._labels}

    def facts(self) -> dict[str, float]:
        """What is remembered of the data: codes of classes have a mean and a spread too, as those of two have."""
        weights, n_rows = self._labels
        codes = np.arange(len(weights))
        mean = float(weights @ codes / weights.sum())
        spread = float(np.sqrt(weights @ np.square(codes - mean) / weights.sum()))
        return {"n_rows": n_rows, "sum_weight": float(weights.sum()), "target_mean": mean, "target_sd": spread}


GlmOrSoftmaxTask: TypeAlias = GlmTask | SoftmaxTask
GlmState: TypeAlias = Weights | SoftmaxWeights
