"""Means and scatter matrices of every class from one pass: the Gram statistic summed by label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from certifit.data.cells import Cells
from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.statistics import twofold as tf
from certifit.statistics.cell_sums import MOST_CANCELLED
from certifit.statistics.gram import STILL_SHARE, CellGrams, Gram, Scaling, cell_grams


@dataclass(frozen=True)
class ClassScatter:
    """Of every class: sum of weights, mean z, sum of w (z - mean)(z - mean)'; z = x scale - shift.

    total: the Gram statistic of all rows. resum: makes the same from twofold sums.
    Weights are in units of 1 / weight_scale.
    """

    weight: Array  # classes
    away: Array  # classes x columns: mean z
    scatter: Array  # classes x columns x columns
    low: Array | None  # its low part where sums are twofold
    total: Gram
    n_rows: Array
    resum: Callable[[], ClassScatter] | None = field(default=None, compare=False, repr=False)

    @property
    def scaling(self) -> Scaling:
        """Scales and shifts of z."""
        return self.total.scaling

    @property
    def means(self) -> Array:
        """Mean of every class in the user's units."""
        return (self.away + self.scaling.shift) / self.scaling.scale

    @property
    def weights(self) -> Array:
        """Sum of weights of every class in the user's units."""
        return self.weight / self.scaling.weight_scale

    @property
    def norms(self) -> Array:
        """Root mean squares of the scaled columns about 0: what rounding is relative to."""
        return np.asarray(self.total.norms / np.sqrt(self.total.sum_weight))

    def mean_of(self, shares: Array) -> tuple[Array, Array | None]:
        """sum_k shares_k scatter_k / weight_k, and its low part: shares of one class alone, or of all."""
        factors = np.divide(shares, self.weight, out=np.zeros(len(shares)), where=self.weight > 0)
        if self.low is None:
            return np.tensordot(factors, self.scatter, 1), None
        total: tf.Pair = (np.zeros(self.scatter.shape[1:]), np.zeros(self.scatter.shape[1:]))
        for k in np.flatnonzero(shares):
            times = (np.asarray(factors[k]), np.zeros(()))
            total = tf.add(total, tf.multiply((self.scatter[k], self.low[k]), times))
        return total

    def total_covariance(self) -> Array:
        """Of all rows, in the user's units."""
        weight, _, scatter, _ = about_mean(self.total)
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(scatter / weight / self.scaling.scale / self.scaling.scale[:, None])

    def is_cancelled(self) -> bool:
        """Whether class means lie so far from the shift that variances lose more than four digits."""
        d = self.away.shape[1]
        if self.low is not None or d == 0:
            return False
        variance = np.diagonal(self.scatter, axis1=1, axis2=2)
        return bool((self.weight[:, None] * self.away**2 > MOST_CANCELLED * variance).any())

    @staticmethod
    def of(grams: CellGrams, times: Array, resum: Callable[[], ClassScatter] | None = None) -> ClassScatter:
        """Of classes that are unions of cells: class k holds cell c times[k, c] times."""
        parts = [about_mean(grams.combined(cells)) for cells in times]
        weight, away, scatter = (np.array([part[i] for part in parts]) for i in range(3))
        low = None if grams.low is None else np.array([part[3] for part in parts])
        n_rows = (times > 0) @ grams.n_rows
        return ClassScatter(weight, away, scatter, low, grams.combined(times.sum(axis=0)), n_rows, resum)


def class_scatter(source: Source, cells: Cells, twofold: bool = False) -> ClassScatter:
    """Of the cells of a source: one pass."""
    resum = None if twofold else partial(class_scatter, source, cells, twofold=True)
    return ClassScatter.of(class_grams(source, cells, twofold), np.eye(cells.n_cells), resum)


def class_grams(source: Source, cells: Cells, twofold: bool = False) -> CellGrams:
    """The Gram statistic of every cell of labels."""
    return cell_grams(source, cells, centred=True, twofold=twofold)


def about_mean(gram: Gram) -> tuple[float, Array, Array, Array | None]:
    """(weight, mean, scatter, its low part) of z.

    S - s m' - m s' + W m m' is the scatter about m; at the rounded mean it is the scatter about the mean to W ulp^2.
    Of a column whose scatter is rounding of twofold sums, as of one that is constant and not shifted, it is exactly 0.
    """
    d = gram.n_columns
    total, sums, squares = gram.sum_weight, gram.sums[:d, d], gram.sums[:d, :d]
    away = sums / total if total > 0 else np.zeros(d)
    if gram.low is None:
        return total, away, squares - sums[:, None] * away[None, :], None
    zero = np.zeros(d)
    mean = (away, zero)
    pair = (sums, gram.low[:d, d])
    cross = _outer(pair, mean)
    mass = tf.multiply(_outer(mean, mean), (np.asarray(total), np.asarray(gram.low[d, d])))
    out = tf.add((squares, gram.low[:d, :d]), (-cross[0], -cross[1]))
    out = tf.add(out, (-cross[0].T, -cross[1].T))
    scatter, low = tf.add(out, mass)
    is_still = np.diagonal(scatter) <= STILL_SHARE * np.diagonal(squares)
    for part in (scatter, low):
        part[is_still], part[:, is_still] = 0.0, 0.0
    return total, away, scatter, low


def _outer(a: tf.Pair, b: tf.Pair) -> tf.Pair:
    return tf.multiply((a[0][:, None], a[1][:, None]), (b[0][None, :], b[1][None, :]))
