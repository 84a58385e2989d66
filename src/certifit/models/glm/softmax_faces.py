"""Softmax regression with an L1 penalty or bounds: what a proof by curvature needs, beside columns without a penalty.

As models/glm/l1_certificate.py, column by column: S has the columns with a weight of some class, those without an l1
penalty and those whose slopes are near it. Level are columns without squares, or with weak ones, which are left out at
their price: the objective does not curve along what all classes have in common. There the slopes s of l1 and bounds are
chosen so that their sum over the classes is 0. The slopes of the loss have no sum, so r = g + s has none either, and
what the classes have in common changes nothing in r'd. With p_ik and p_il the least two chances of a row, its scores
move apart by

    |x_i'(d_m - d_n)| <= |d|_H sqrt(W / w_i (1 / p_ik + 1 / p_il))
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block
from certifit.mathematics.penalties import Kinks
from certifit.models.glm.concordance import WEAK
from certifit.models.glm.softmax_task import SoftmaxTask
from certifit.models.glm.task import Evaluated, SomeColumns
from certifit.statistics.factor import Curvature
from certifit.statistics.gram import Scaling
from certifit.statistics.residual import MATRIX_ERROR, TINY
from certifit.statistics.softmax import scores_by_class


def _ends(task: SoftmaxTask, point: Array) -> tuple[Array, Array]:
    """The least and the largest slope of l1 penalty and bounds, entry by entry."""
    kinks = Kinks.of(task.penalty, task.n_classes)
    low = np.where(point <= kinks.lower, -np.inf, np.where(point > 0, kinks.l1, -kinks.l1))
    high = np.where(point >= kinks.upper, np.inf, np.where(point < 0, -kinks.l1, kinks.l1))
    return low.reshape(task.shape), high.reshape(task.shape)


def slack_of(task: SoftmaxTask, point: Array, at: Evaluated) -> Array:
    """How far slopes are from what moves an entry; of entries that can move freely, 0 at most."""
    (low, high), slopes = _ends(task, point), -at.gradient.reshape(task.shape)
    return np.asarray(np.minimum(slopes - low, high - slopes))


def face_curvature(task: SoftmaxTask, point: Array, kept: Array) -> tuple[Curvature, Array]:
    """The Hessian of some columns without weak squares, and which of all are level.

    What is added to level columns along what classes have in common changes nothing: slopes have no part in it.
    """
    columns = kept[kept < task.shape[0] - 1]
    small = SomeColumns(task).taken(columns, task.strengths.alpha)
    part = np.append(columns, task.shape[0] - 1)
    whole = small.curvature(point.reshape(task.shape)[part].ravel())
    curved = np.einsum("ikik->i", whole) / task.n_classes - small.l2
    weak = small.l2 <= WEAK * curved
    at = np.arange(len(part))
    for k in range(task.n_classes):
        whole[at, k, at, k] -= np.where(weak, small.l2, 0.0)
    whole[at[weak], :, at[weak], :] += (curved[weak] / task.n_classes)[:, None, None]
    is_level = np.zeros(task.shape[0], dtype=bool)
    is_level[part[weak]] = True
    size = len(kept) * task.n_classes
    return Curvature(whole[: len(kept), :, : len(kept)].reshape(size, size)), is_level


def face_slopes(task: SoftmaxTask, point: Array, at: Evaluated, is_level: Array) -> tuple[Array, float] | None:
    """g and the slopes of l1 and bounds that make it least, without a sum in level columns; the price of their squares.

    None where there are no such slopes.
    """
    (low, high), w = _ends(task, point), point.reshape(task.shape)
    pull = np.where(is_level, task.l2, 0.0)[:, None] * w
    gradient = at.gradient.reshape(task.shape) - pull
    slopes = np.clip(-gradient, low, high)
    for j in np.flatnonzero(is_level):
        over = math.fsum(slopes[j].tolist())
        room = slopes[j] - low[j] if over > 0 else high[j] - slopes[j]
        if np.isinf(room).any():
            slopes[j, int(np.argmax(room))] -= over
        elif room.sum() >= abs(over):
            slopes[j] -= over * (room / max(room.sum(), TINY))
        else:
            return None
    return gradient + slopes, float(np.sum(pull * w)) / 2 * (1 + MATRIX_ERROR)


def most_curvature(task: SoftmaxTask) -> Array:
    """At least the Hessian's diagonal of every column: p (1 - p) is 1/4 at most."""
    return np.asarray((np.square(task.largest) / 4 + task.l2) * (1 + MATRIX_ERROR))


def reach_by_chances(task: SoftmaxTask, point: Array, moved: float) -> float:
    """The most that the scores of a row move apart per |step|_H: one pass. moved: the rounding of a score."""
    f = partial(_spread_of_run, scaling=task.scaling, point=point.reshape(task.shape))
    most = max(task.source.map(f), default=0.0) * task.sum_weight / task.scaling.weight_scale
    return float(np.sqrt(most) * (1 + 1e-6 + 4 * moved))


def _spread_of_run(run: Block, scaling: Scaling, point: Array) -> float:
    """The largest (1 / p + 1 / p') / w of a run, p and p' the least two chances of a row of weight w."""
    scores, _ = scores_by_class(run, scaling, point)
    scores -= scores.max(axis=1, keepdims=True)
    inverse = np.sort(np.exp(-scores), axis=1)[:, -2:].sum(axis=1) * np.exp(scores).sum(axis=1)
    if run.weight is not None:
        counted = run.weight > 0
        inverse = inverse[counted] / run.weight[counted]
    return float(inverse.max(initial=0.0))
