"""Losses of a residual, and their conjugates: what a solver and a duality gap need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array


@dataclass(frozen=True)
class Huber:
    """h(r) = r^2 / 2 for |r| <= delta, delta |r| - delta^2 / 2 beyond.

    With a scale s > 0 the loss is s h(r / s) = sup over |u| <= delta of u r - s u^2 / 2: convex in r and s together.
    """

    delta: float

    def value(self, r: Array, scale: float = 1.0) -> Array:
        """s h(r / s)."""
        size, edge = np.abs(r), self.delta * scale
        near = np.minimum(size, edge)
        return np.asarray(near * (near / scale) / 2 + self.delta * (size - near))

    def slope(self, r: Array, scale: float = 1.0) -> Array:
        """The derivative by r: r / s cut to [-delta, delta]."""
        with np.errstate(over="ignore"):
            return np.clip(r / scale, -self.delta, self.delta)

    def conjugate(self, u: Array, scale: float = 1.0) -> Array:
        """sup over r of u r - s h(r / s): s u^2 / 2 for |u| <= delta, infinite beyond."""
        return np.where(np.abs(u) <= self.delta, scale * np.square(u) / 2, np.inf)

    def is_near(self, r: Array, scale: float = 1.0) -> Array:
        """Rows where the loss is quadratic."""
        return np.asarray(np.abs(r) <= self.delta * scale)

    def excess(self, r: Array, u: Array, scale: float = 1.0) -> Array:
        """s h(r / s) + conjugate(u) - u r >= 0 for |u| <= delta, written so that nothing cancels.

        (r - s u)^2 / (2 s) inside; (delta - u) (r - s (delta + u) / 2) beyond, for r > 0.
        """
        sign = np.where(r < 0, -1.0, 1.0)
        size, side = np.abs(r), u * sign
        apart = size - scale * side
        inside = apart * (apart / scale) / 2
        outside = (self.delta - side) * np.maximum(size - scale * (self.delta + side) / 2, 0.0)
        return np.where(self.is_near(r, scale), inside, np.maximum(outside, 0.0))
