"""Principal components where neither matrix can be held: the rows are known by products A V, one pass each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.statistics import products
from certifit.statistics.gram import refuse_no_weight
from certifit.statistics.residual import MATRIX_ERROR
from certifit.tasks.components import VarianceTask

FAR = 100.0  # squares about zero by squares about the mean: beyond it rows are centred first


class ProductVariance(VarianceTask):
    """A as a product with directions. Two numbers a column are all that is held."""

    def __init__(self, source: Source, center: bool, standardize: bool, ddof: float) -> None:
        self.source, self.center, self.standardize, self.ddof = source, center, standardize, ddof
        total, scaling = products.moments(source, centred=center)
        refuse_no_weight(total.weight)
        self.n_rows, self._sum = total.n_rows, total.weight
        self.sum_weight = total.weight / scaling.weight_scale
        self._check_weight()
        step = total.sums / total.weight
        spread = np.maximum(total.squares / total.weight - step**2, 0.0)
        about_zero = total.squares / total.weight + scaling.shift**2
        spread[spread <= MATRIX_ERROR * about_zero] = 0.0
        self._set_units(scaling.scale, spread)
        self._scaling = replace(scaling, shift=scaling.shift + step if self.center else np.zeros(len(step)))
        self.mean = self._scaling.shift / scaling.scale
        squares = spread if self.center else spread + (scaling.shift + step) ** 2
        self.total = float(squares @ self._times**2)
        self.error = MATRIX_ERROR * float(about_zero @ self._times**2)
        self._is_near = float(((self._scaling.shift * self._times) ** 2).sum()) <= FAR * self.total
        self.error = self.error if self.total > 0 else 0.0
        self.noise = float(np.sqrt(self.error))
        self._refuse_range()

    def product(self, directions: Array) -> Array:
        """A V: one pass."""
        if self.total == 0:  # rows that do not vary but for rounding
            return np.zeros(directions.shape)
        columns = np.ascontiguousarray(directions)
        return products.product(self.source, self._scaling, self._times, columns, self._is_near) / self._sum

    @property
    def is_refined(self) -> bool:
        """There are no better sums."""
        return True

    @property
    def held(self) -> None:
        """There is no matrix."""
        return

    def _set_units(self, powers: Array, spread: Array) -> None:
        if not self.standardize:
            self.scale, self.unit = np.ones(len(powers)), float(1.0 / powers.min())
            with np.errstate(under="ignore"):
                self._times = powers.min() / powers
            return
        sd = np.sqrt(spread)
        self._times = np.where(sd > 0, 1.0 / np.where(sd > 0, sd, 1.0), 1.0)
        with np.errstate(over="ignore", under="ignore"):
            self.scale = np.where(sd > 0, sd / powers, 1.0)
        self.unit = 1.0
