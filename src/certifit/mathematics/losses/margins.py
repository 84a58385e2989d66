"""Losses of support vector machines: hinge, squared hinge, and errors beyond epsilon.

The hinge and errors beyond epsilon have kinks, where smooth solvers stall, and a bound from slopes is not tight where
rows lie on one. LinearSVC, SVC and SVR minimise the same losses and prove it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.mathematics.losses.scores import ScoreLoss


class _Margin(ScoreLoss):
    """A loss of 1 - s z, s = 1 for y = 1 and -1 for y = 0."""

    has_conjugate = True
    is_piecewise = True
    legal = "0 or 1"

    def mean(self, z: Array) -> Array:
        """The chance of y = 1, were z the best score of a squared hinge: (1 + z) / 2, from 0 to 1."""
        return np.clip((1 + z) / 2, 0.0, 1.0)

    def score(self, mean: float) -> float:
        """2p - 1."""
        return 2 * float(mean) - 1

    def is_legal(self, y: Array) -> Array:
        """0 or 1."""
        return np.asarray((y == 0) | (y == 1))

    @staticmethod
    def _slack(y: Array, z: Array) -> Array:
        return np.asarray(np.maximum(1 - (2 * y - 1) * z, 0.0))


@dataclass(frozen=True)
class HingeLoss(_Margin):
    """l = max(0, 1 - s z), s = 1 for y = 1 and -1 for y = 0: rows on their side of the margin cost nothing.

    `GLM(HingeLoss(), alpha=0.1, solver=SGD())` steps along it; LinearSVC(0.1, "hinge") has its minimum and the proof.
    """

    name = "the hinge loss"
    has_curvature = False

    def value(self, y: Array, z: Array) -> Array:
        """max(0, 1 - s z)."""
        return self._slack(y, z)

    def slope(self, y: Array, z: Array) -> Array:
        """-s where s z < 1, else 0."""
        return np.where(self._slack(y, z) > 0, 1 - 2 * y, 0.0)

    def curvature(self, y: Array, z: Array) -> Array:
        """There is none."""
        raise NotImplementedError(
            f"{self.name} has no curvature. Use a solver that needs none, as SGD(), or LinearSVC."
        )

    def conjugate(self, y: Array, u: Array) -> Array:
        """-v at v = -s u from 0 to 1."""
        v = (1 - 2 * y) * u
        return np.where((v >= 0) & (v <= 1), -v, np.inf)


@dataclass(frozen=True)
class SquaredHingeLoss(_Margin):
    """l = max(0, 1 - s z)^2, s = 1 for y = 1 and -1 for y = 0.

    `GLM(SquaredHingeLoss(), alpha=alpha)` has the weights of LinearSVC(alpha), C = 1 / (alpha n), as a model of shares.
    """

    name = "the squared hinge loss"

    def value(self, y: Array, z: Array) -> Array:
        """max(0, 1 - s z)^2."""
        return np.asarray(np.square(self._slack(y, z)))

    def slope(self, y: Array, z: Array) -> Array:
        """-2 s max(0, 1 - s z)."""
        return np.asarray((2 - 4 * y) * self._slack(y, z))

    def curvature(self, y: Array, z: Array) -> Array:
        """2 where s z < 1, else 0."""
        return np.where(self._slack(y, z) > 0, 2.0, 0.0)

    def conjugate(self, y: Array, u: Array) -> Array:
        """v^2 / 4 - v at v = -s u >= 0."""
        v = (1 - 2 * y) * u
        return np.where(v >= 0, np.square(v) / 4 - v, np.inf)


@dataclass(frozen=True)
class EpsilonInsensitiveLoss(ScoreLoss):
    """l = max(0, |y - z| - epsilon): errors up to epsilon cost nothing. SVR has its minimum and the proof."""

    epsilon: float = 0.1
    name = "the epsilon-insensitive loss"
    has_conjugate = True
    is_piecewise = True
    has_curvature = False
    legal = "a finite number"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.epsilon) and self.epsilon >= 0):
            raise ValueError(f"epsilon must be a finite number >= 0. Got {self.epsilon!r}.")

    def value(self, y: Array, z: Array) -> Array:
        """max(0, |y - z| - epsilon)."""
        return np.asarray(np.maximum(np.abs(y - z) - self.epsilon, 0.0))

    def slope(self, y: Array, z: Array) -> Array:
        """The sign of z - y where that is beyond epsilon, else 0."""
        return np.where(np.abs(z - y) > self.epsilon, np.sign(z - y), 0.0)

    def curvature(self, y: Array, z: Array) -> Array:
        """There is none."""
        raise NotImplementedError(f"{self.name} has no curvature. Use SVR, or SGD().")

    def mean(self, z: Array) -> Array:
        """The score itself."""
        return np.asarray(z)

    def score(self, mean: float) -> float:
        """The mean itself."""
        return float(mean)

    def conjugate(self, y: Array, u: Array) -> Array:
        """u y + epsilon |u| at |u| <= 1."""
        return np.where(np.abs(u) <= 1, u * y + self.epsilon * np.abs(u), np.inf)

    def is_legal(self, y: Array) -> Array:
        """Every finite number."""
        return np.isfinite(y)
