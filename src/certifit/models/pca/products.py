"""Principal components where neither matrix can be held: the rows are known by products A V, one pass each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.models.pca.task import VarianceTask, are_constant
from certifit.statistics import products
from certifit.statistics.gram import Scaling, refuse_no_weight
from certifit.statistics.residual import MATRIX_ERROR

FAR = 100.0  # ratio of squares about zero to squares about the mean beyond which rows are centred first


class ProductVariance(VarianceTask):
    """A as a product with directions. Two numbers per column are all that is held."""

    def __init__(self, source: Source, center: bool, standardize: bool, ddof: float) -> None:
        self.source, self.center, self.standardize, self.ddof = source, center, standardize, ddof
        total, scaling = products.moments(source, centred=center)
        refuse_no_weight(total.weight)
        constant = self._constant_columns(total, scaling)
        constant_means = ((scaling.shift + total.sums / total.weight) / scaling.scale)[constant]
        total, scaling = _without(constant, total, scaling)
        if center and self._is_far(total, scaling):
            scaling = replace(scaling, shift=scaling.shift + total.sums / total.weight)
            total = products.moments_about(source, scaling)
        self.n_rows, self._sum = total.n_rows, total.weight
        self.sum_weight = total.weight / scaling.weight_scale
        self._check_weight()
        step, about_shift = total.sums / total.weight, total.squares / total.weight
        mean = scaling.shift + step
        spread = np.maximum(about_shift - step**2, 0.0)
        about_zero = spread + mean**2
        if standardize and not center:  # standard deviations are about the mean all the same
            about_shift, spread = self._apart(scaling)
        spread[spread <= MATRIX_ERROR * about_shift] = 0.0
        powers = _powers(scaling)
        self._set_units(powers, spread)
        self._scaling = replace(scaling, shift=mean if self.center else np.zeros(len(mean)))
        self._lack = np.zeros(len(mean))  # what the rounded mean lacks of the rows' own, where rows are centred by it
        self.mean = self._scaling.shift / powers
        self.mean[constant] = constant_means
        squares = self._times**2
        self.total = float((spread if self.center else about_zero) @ squares)
        self._is_near = float((self._scaling.shift**2) @ squares) <= FAR * self.total
        self.error = MATRIX_ERROR * float((about_zero if self._is_near else about_shift) @ squares)
        if standardize:
            used = spread > 0
            self.error += MATRIX_ERROR * float((about_shift[used] / spread[used]).max(initial=0.0)) * self.total
        if self.center and not self._is_near and self.total > 0:
            self._centre_exactly(squares)
        if self.center and self.total <= 2 * self.error and are_constant(source, np.arange(len(mean))).all():
            self.total = self.error = 0.0
        self.noise = float(np.sqrt(self.error))
        self._refuse_range()

    def product(self, directions: Array) -> Array:
        """A V: one pass."""
        if self.total == 0:  # rows that do not vary but for rounding
            return np.zeros(directions.shape)
        columns = np.ascontiguousarray(directions)
        image = products.product(self.source, self._scaling, self._times, columns, self._is_near) / self._sum
        lack = self._lack * self._times
        return image - np.outer(lack, lack @ columns) if lack.any() else image

    def _apart(self, scaling: Scaling) -> tuple[Array, Array]:
        """Squares about a shift near the means, and about the means."""
        first, near = products.moments(self.source, centred=True)
        near = replace(near, shift=near.shift + first.sums / first.weight)
        total = products.moments_about(self.source, near)
        about = total.squares / total.weight * (scaling.scale / near.scale) ** 2
        step = total.sums / total.weight * (scaling.scale / near.scale)
        return about, np.maximum(about - step**2, 0.0)

    def _centre_exactly(self, squares: Array) -> None:
        """A pass about the mean as it is rounded: what it lacks, and variances that lose nothing to it."""
        total = products.moments_about(self.source, self._scaling)
        about = total.squares / total.weight
        self._lack = total.sums / total.weight
        self.total = float((about - self._lack**2) @ squares)
        self.error += MATRIX_ERROR * float(about @ squares)

    @property
    def is_refined(self) -> bool:
        """There are no better sums."""
        return True

    def refine(self) -> None:
        """Nothing is finer than it is."""

    @property
    def held(self) -> None:
        """There is no matrix."""
        return

    def _constant_columns(self, total: products.ScaledMoments, scaling: Scaling) -> Array:
        """Columns that are one number other than 0 in every row, where rows are centred: a pass only if some may be."""
        if not self.center:
            return np.zeros(0, dtype=np.intp)
        step, about_shift = total.sums / total.weight, total.squares / total.weight
        is_still = about_shift - step**2 <= MATRIX_ERROR * about_shift
        columns = np.flatnonzero(is_still & (scaling.shift + step != 0))
        return np.asarray(columns[are_constant(self.source, columns)]) if len(columns) else columns

    def _is_far(self, total: products.ScaledMoments, scaling: Scaling) -> bool:
        """Whether the shifts of the sums are so far from the means that variances cancel."""
        powers = _powers(scaling)
        times = 1.0 if self.standardize else _smallest(powers) / powers
        with np.errstate(under="ignore"):
            step = total.sums / total.weight * times
            return bool(step @ step > FAR * ((total.squares / total.weight * times**2).sum() - step @ step))

    def _set_units(self, powers: Array, spread: Array) -> None:
        if not self.standardize:
            self.scale, self.unit = np.ones(len(powers)), 1.0 / _smallest(powers)
            with np.errstate(under="ignore"):
                self._times = _smallest(powers) / powers
            return
        sd = np.sqrt(spread)
        self._times = np.where(sd > 0, 1.0 / np.where(sd > 0, sd, 1.0), self._constant_times(powers))
        with np.errstate(over="ignore", under="ignore"):
            self.scale = np.where(sd > 0, sd / powers, 1.0)
        self.unit = 1.0


def _without(columns: Array, total: products.ScaledMoments, scaling: Scaling) -> tuple[products.ScaledMoments, Scaling]:
    """Moments and scaling that make these columns 0 in every row: a constant one, centred, has no size and no unit."""
    is_left = np.ones(len(scaling.scale))
    is_left[columns] = 0.0
    scaling = replace(scaling, scale=scaling.scale * is_left, shift=scaling.shift * is_left)
    return replace(total, sums=total.sums * is_left, squares=total.squares * is_left), scaling


def _powers(scaling: Scaling) -> Array:
    """What columns are multiplied by; infinite for those that are made 0, which set no unit."""
    return np.where(scaling.scale > 0, scaling.scale, np.inf)


def _smallest(powers: Array) -> float:
    smallest = float(powers.min())
    return smallest if np.isfinite(smallest) else 1.0
