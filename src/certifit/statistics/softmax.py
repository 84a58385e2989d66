"""Sums of the cross-entropy log sum_k e^(z_k) - z_y over rows, with one score z_k = b_k + x'w_k per class.

Columns are scaled and shifted as for the Gram statistic. A point is a (columns + 1) x classes array, intercepts last.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block, Source, tree_sum
from certifit.runtime import FEWER_CLASSES, check_memory, check_work, core, n_threads
from certifit.statistics.gram import Scaling, check_square
from certifit.statistics.loss_sums import hessians_of, scores_of, value_sums
from certifit.statistics.row_curvature import in_large_blocks

# Seconds of one core of 2024, measured. A fit takes some 100 passes over the scores, its proof 4 over pairs of classes.
ENTRY_SECONDS = 100 * 2e-10  # per row, class and column
SCORE_SECONDS = 100 * 7e-9  # per row and class
PAIR_SECONDS = 4 * 4e-10  # per row and pair of classes
SOLVE_SECONDS = 4 * 5e-11  # per cube of the classes


@dataclass(frozen=True)
class Sums:
    """Arrays and numbers that add part by part."""

    parts: tuple[Array, ...]

    def __add__(self, other: Sums) -> Sums:
        return Sums(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))


@dataclass(frozen=True)
class Mixture:
    """A point of the dual: chances after `lift` is added to the scores, times 1 - share, and share times `mix`."""

    lift: Array
    mix: Array
    share: float


def check_size(source: Source, n_classes: int) -> None:
    """Refuse what a fit needs beyond the limit of memory: some ten points, and a square of classes for its proof."""
    k, d = n_classes, source.n_features
    n_bytes = 8.0 * k * ((d + 1) * (10 + n_threads()) + k * (n_threads() + 1))
    what = f"A softmax regression of {k:,} classes on {d:,} columns"
    check_memory(n_bytes, what, FEWER_CLASSES)


def check_time(source: Source, n_classes: int, n_rows: int) -> None:
    """Refuse a fit that is expected to take longer than the limit of work."""
    k, d = n_classes, source.n_features
    per_row = k * (d + 1) * ENTRY_SECONDS + k * SCORE_SECONDS + k**2 * PAIR_SECONDS
    what = f"A softmax regression of {k:,} classes on {d:,} columns and {n_rows:,} rows"
    check_work(n_rows * per_row + k**3 * SOLVE_SECONDS, what, FEWER_CLASSES)


def class_weights(source: Source, n_classes: int) -> tuple[Array, int]:
    """Weight of every class, and the number of rows that have one: one pass over the labels."""
    weights, n_rows = source.reduce(
        partial(_labels_of_stretch, n_classes=n_classes, block_rows=source.block_rows)
    ).parts
    return weights, int(n_rows)


def cross_entropy(source: Source, scaling: Scaling, point: Array) -> tuple[float, Array]:
    """sum_i w_i l_i and its gradient sum_i w_i (x_i, 1)(p_i - e_y)': one pass."""
    value, gradient = _summed(source, partial(_loss_of_stretch, scaling=scaling, point=point))
    return float(value), gradient


def pairs(source: Source, scaling: Scaling, point: Array) -> Array:
    """sum_i w_i p_ik p_il (x_i, 1)(x_i, 1)' for all classes k < l: one pass that costs as many Gram matrices."""
    check_square(source, n_cells=point.shape[1] * (point.shape[1] - 1) // 2)
    (total,) = _summed(source, partial(_pairs_of_stretch, scaling=scaling, point=point))
    return np.asarray(total)


def product(source: Source, scaling: Scaling, point: Array, direction: Array) -> Array:
    """sum_i w_i (x_i, 1) (p_i (q_i - p_i'q_i))', q_i the scores of the direction: the Hessian times it, in one pass."""
    (total,) = _summed(source, partial(_product_of_stretch, scaling=scaling, point=point, direction=direction))
    return np.asarray(total)


def dual(source: Source, scaling: Scaling, point: Array, mixture: Mixture) -> tuple[float, Array, Array]:
    """sum_i w_i KL(q_i, p_i), sum_i w_i (x_i, 1)(q_i - e_y)', and the curvature by the lift: one pass."""
    divergence, moments, curvature = _summed(
        source, partial(_dual_of_stretch, scaling=scaling, point=point, mixture=mixture)
    )
    return float(divergence), moments, curvature


def pearson(source: Source, scaling: Scaling, point: Array) -> float:
    """Pearson's sum of w_i sum_k ([y_i = k] - p_ik)^2 / p_ik = w_i (1 / p_iy - 1): one pass."""
    (total,) = _summed(source, partial(_pearson_of_stretch, scaling=scaling, point=point))
    return float(total[0]) / scaling.weight_scale


def slope_squares(source: Source, scaling: Scaling, point: Array, is_frequency: bool) -> Array:
    """sum_i w_i u_ik u_il (x_i, 1)(x_i, 1)', u_ik = p_ik - [y_i = k]; of inverse variances sum w^2: one pass.

    Pairs k <= l of all classes but the first, in order.
    """
    f = partial(_squares_of_stretch, scaling=scaling, point=point, is_frequency=is_frequency)
    (total,) = _summed(source, f)
    return np.asarray(total / scaling.weight_scale)


def columns_matrix(source: Source, scaling: Scaling) -> Array:
    """sum_i w_i (x_i, 1)(x_i, 1)' / sum_i w_i of scaled and shifted columns: one pass."""
    (total,) = _summed(source, partial(_columns_of_stretch, scaling=scaling))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(total / total[-1, -1])


def _summed(source: Source, of_stretch: partial[Sums]) -> tuple[Array, ...]:
    with np.errstate(over="ignore", invalid="ignore"):
        blocks = in_large_blocks(source)
        total: Sums = blocks.reduce(partial(of_stretch, block_rows=blocks.block_rows))
    return total.parts


def _parts(point: Array) -> tuple[Array, Array]:
    return np.ascontiguousarray(point[:-1]), np.ascontiguousarray(point[-1])


def _loss_of_stretch(stretch: Block, scaling: Scaling, point: Array, block_rows: int) -> Sums:
    s = scaling
    units = (s.scale, s.shift, s.weight_scale)
    return Sums(
        core.softmax_oracle(stretch.rows, stretch.y, stretch.weight, *units, *_parts(point), block_rows, n_threads())
    )


def _product_of_stretch(stretch: Block, scaling: Scaling, point: Array, direction: Array, block_rows: int) -> Sums:
    s = scaling
    where = (s.scale, s.shift, s.weight_scale, *_parts(point), *_parts(direction))
    return Sums((core.softmax_product(stretch.rows, stretch.weight, *where, block_rows, n_threads()),))


def _pairs_of_stretch(stretch: Block, scaling: Scaling, point: Array, block_rows: int) -> Sums:
    s = scaling
    units = (s.scale, s.shift, s.weight_scale)
    return Sums((core.softmax_pairs(stretch.rows, stretch.weight, *units, *_parts(point), block_rows, n_threads()),))


def _dual_of_stretch(stretch: Block, scaling: Scaling, point: Array, mixture: Mixture, block_rows: int) -> Sums:
    s, m = scaling, mixture
    units = (s.scale, s.shift, s.weight_scale)
    where = (*_parts(point), m.lift, m.mix, m.share)
    return Sums(core.softmax_dual(stretch.rows, stretch.y, stretch.weight, *units, *where, block_rows, n_threads()))


def scores_by_class(stretch: Block, scaling: Scaling, point: Array) -> tuple[Array, tuple[Array, Array]]:
    """z_ik, and where in it the scores of the rows' own classes are."""
    scores = np.column_stack([scores_of(stretch, scaling, one[:-1], float(one[-1])) for one in point.T])
    return scores, (np.arange(stretch.n_rows), np.asarray(stretch.y).astype(np.int64))


def _pearson_of_stretch(stretch: Block, scaling: Scaling, point: Array, block_rows: int) -> Sums:
    scores, labelled = scores_by_class(stretch, scaling, point)
    odds = np.exp(scores - scores[labelled][:, None])
    odds[labelled] = 0.0
    rows = odds.sum(axis=1)
    rows = rows if stretch.weight is None else np.where(stretch.weight > 0, rows, 0.0)
    return Sums((value_sums(stretch, rows, scaling.weight_scale, block_rows, (None, 1)),))


def _squares_of_stretch(stretch: Block, scaling: Scaling, point: Array, is_frequency: bool, block_rows: int) -> Sums:
    scores, labelled = scores_by_class(stretch, scaling, point)
    slopes = np.exp(scores - scores.max(axis=1, keepdims=True))
    slopes /= slopes.sum(axis=1, keepdims=True)
    slopes[labelled] -= 1.0
    times = 1.0 if is_frequency or stretch.weight is None else stretch.weight
    low, high = np.triu_indices(point.shape[1] - 1)
    squares = tuple(slopes[:, k] * slopes[:, j] * times for k, j in zip(low + 1, high + 1, strict=True))
    return Sums((np.stack([one[0] for one in hessians_of(stretch, scaling, squares, block_rows, (None, 1))]),))


def _columns_of_stretch(stretch: Block, scaling: Scaling, block_rows: int) -> Sums:
    s = scaling
    units = (s.scale, s.shift, 1.0, 0.0, s.weight_scale)
    return Sums((core.gram(stretch.rows, None, stretch.weight, *units, block_rows, False, n_threads())[0],))


def _labels_of_stretch(stretch: Block, n_classes: int, block_rows: int) -> Sums:
    if stretch.y is None:
        raise ValueError("The rows carry no labels.")
    parts = (stretch.part(begin, begin + block_rows) for begin in range(0, max(stretch.n_rows, 1), block_rows))
    return tree_sum(_labels_of_block(part, n_classes) for part in parts)


def _labels_of_block(part: Block, n_classes: int) -> Sums:
    assert part.y is not None
    weight = np.ones(part.n_rows) if part.weight is None else part.weight
    counted = weight > 0
    codes = part.y[counted].astype(np.int64)
    return Sums((np.bincount(codes, weight[counted], minlength=n_classes), np.asarray(np.count_nonzero(counted))))
