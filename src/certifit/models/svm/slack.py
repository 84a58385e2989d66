"""What a slack v costs, and the brackets of the duality gap: hinge and squared hinge.

With multipliers a, bounds C and the conjugate of the cost a bracket is  C cost(v) - a v + C cost*(a / C) >= 0.

    hinge           cost = max(0, v)        0 <= a <= C
    squared hinge   cost = max(0, v)^2      0 <= a,  C cost* = a^2 / (4 C)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array


@dataclass(frozen=True)
class Slack:
    """name: as LinearSVC has it. is_squared: whether slacks are squared."""

    name: str
    is_squared: bool

    def cost(self, bound: Array, v: Array) -> Array:
        """C cost(v)."""
        over = np.maximum(v, 0.0)
        return np.asarray(bound * (over**2 if self.is_squared else over))

    def slope(self, bound: Array, v: Array) -> Array:
        """Its derivative; of a hinge at its kink 0."""
        return np.asarray(2 * bound * np.maximum(v, 0.0) if self.is_squared else np.where(v > 0, bound, 0.0))

    def bracket(self, bound: Array, a: Array, v: Array) -> Array:
        """C cost(v) - a v + C cost*(a / C), convex in v."""
        if not self.is_squared:
            return np.asarray(bound * np.maximum(v, 0.0) - a * v)
        over = np.maximum(v, 0.0)
        return np.asarray(bound * (over - self.met(bound, a)) ** 2 + a * (over - v))

    def met(self, bound: Array, a: Array) -> Array:
        """The slack at which a multiplier between its bounds meets the conditions of the optimum."""
        return np.where(a > 0, a / (2 * bound), 0.0) if self.is_squared else np.zeros(len(a))

    def most(self, bound: Array) -> Array:
        """The largest multipliers."""
        return np.full(len(bound), np.inf) if self.is_squared else bound

    def diagonal(self, bound: Array) -> Array:
        """What the conjugate adds to the second derivatives of the dual."""
        return 0.5 / bound if self.is_squared else np.zeros(len(bound))


HINGE = Slack("hinge", False)
SQUARED_HINGE = Slack("squared_hinge", True)
SLACKS = {slack.name: slack for slack in (HINGE, SQUARED_HINGE)}
