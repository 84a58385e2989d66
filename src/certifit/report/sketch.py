"""Quantiles of a stream in small memory.

A value x is counted in bin floor(log|x| / log g) of its sign, so every quantile is right to a relative
(g - 1) / 2, whatever the range and however heavy the tails. Weights add: a row of weight 2 is the row twice.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

GROWTH = np.log1p(0.005)
# Above |log(5e-324)| / GROWTH, so that the bin of a magnitude is positive and can carry the sign.
SHIFT = 160_000


class Sketch:
    """Counts by logarithmic bin; `add` one array at a time, then `quantile`."""

    def __init__(self) -> None:
        self.bins: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self.mass: Array = np.empty(0, dtype=np.float64)
        self.low = np.inf
        self.high = -np.inf

    def add(self, values: Array, weight: Array | None = None) -> None:
        """Count the values of one block."""
        if weight is not None:
            values, weight = values[weight > 0], weight[weight > 0]
        if values.size == 0:
            return
        self.low = min(self.low, float(values.min()))
        self.high = max(self.high, float(values.max()))
        mass = np.ones(values.size) if weight is None else weight
        bins = np.concatenate([self.bins, _bin(values)])
        # Bins lie within a range of some hundred thousand, so counting all of it beats sorting.
        first = int(bins.min())
        place = bins - first
        size = int(place.max()) + 1
        used = np.flatnonzero(np.bincount(place, minlength=size))
        self.mass = bin_sums(place, np.concatenate([self.mass, mass]), size)[used]
        self.bins = used + first

    def quantile(self, levels: Any) -> Array:
        """Smallest bin whose cumulative share reaches each level, as a value; exact at the two ends."""
        levels = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        if self.bins.size == 0:
            return np.full(levels.shape, np.nan)
        reached = np.cumsum(self.mass)
        place = np.searchsorted(reached, levels * reached[-1] * (1 - 1e-15))
        values = np.clip(_value(self.bins[np.minimum(place, self.bins.size - 1)]), self.low, self.high)
        return np.where(levels <= 0, self.low, np.where(levels >= 1, self.high, values))

    def window(self) -> tuple[float, float]:
        """The range to draw: all, or the middle 99 % and as much again when a few values lie far out."""
        if self.bins.size == 0:
            return 0.0, 1.0
        inner_low, inner_high = self.quantile([0.005, 0.995])
        spread = float(inner_high - inner_low)
        low, high = self.low, self.high
        if spread > 0 and high / 4 - low / 4 > 0.75 * spread:
            low, high = max(low, inner_low - spread / 2), min(high, inner_high + spread / 2)
        if not high > low:
            width = max(abs(low) * 0.1, 1e-300) if low else 1.0
            low, high = low - width, high + width
        return float(low), float(high)


def bin_sums(place: Any, mass: Array, size: int) -> Array:
    """Sum of mass by place, for places in [0, size)."""
    return np.bincount(place, weights=mass, minlength=size).astype(np.float64, copy=False)


def _bin(values: Array) -> NDArray[np.int64]:
    size = np.abs(values)
    with np.errstate(divide="ignore"):
        number = np.floor(np.log(size) / GROWTH)
    number = np.where(size > 0, number + SHIFT, 0.0)
    return (np.sign(values) * number).astype(np.int64)


def _value(bins: NDArray[np.int64]) -> Array:
    with np.errstate(over="ignore"):
        size = np.exp((np.abs(bins) - SHIFT + 0.5) * GROWTH)
    return np.where(bins == 0, 0.0, np.sign(bins) * np.minimum(size, np.finfo(np.float64).max))
