"""The bound of self-concordance: for losses with |l'''| <= M l'' the curvature at a point bounds the objective below.

Along any line the curvature of the objective f changes by no more than a factor e^(M |change of a score|). With g and H
at a point, lambda^2 = g'H^-1 g, |change of a score| <= R/M |step|_H and q = R lambda:

    q < 1  =>  a minimum exists, and f - min f <= [q + (1 - q) log(1 - q)] / R^2 = lambda^2 / 2 (1 + q/3 + ...)

Any larger R or lambda proves as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.statistics.residual import TINY

LEAST_SIZE = float(np.sqrt(TINY))  # its square is no less than TINY
SERIES = 0.1  # below it the bound is summed as a series, where nothing cancels


def relative_to(excess: float, scale: float) -> float:
    """excess / scale, infinite where it overflows or one of them is not known."""
    with np.errstate(all="ignore"):
        found = float(np.float64(excess) / np.float64(scale))
    return found if np.isfinite(scale) and not np.isnan(found) else np.inf


@dataclass(frozen=True)
class Decrement:
    """lambda and R at a state, both at least what they are, and what rounding adds to lambda."""

    value: float
    rounding: float
    reach: float

    @property
    def q(self) -> float:
        """R lambda."""
        return self.reach * (self.value + self.rounding)

    def is_far(self, aim: float) -> bool:
        """Whether the state itself, not rounding, is what keeps the excess above an aim."""
        return bool(np.isfinite(self.value) and self.value > self.rounding and self.value**2 / 2 > aim)

    def allowance(self, scale: float) -> float:
        """What rounding adds to lambda^2 / 2, relative to a scale."""
        if not self.value < np.inf:
            return np.inf
        return relative_to(self.value * self.rounding + self.rounding**2 / 2, scale) + TINY

    def excess(self) -> float:
        """The bound on f - min f; infinite where it proves nothing. Squares below the range of float64 are not 0."""
        size = self.value + self.rounding
        if not self.q < 1:
            return np.inf
        if 0 < size < LEAST_SIZE:
            return TINY
        if self.q < SERIES:  # sum over k >= 2 of q^k / (k (k - 1)), over R^2; what is left after q^12 is below 1e-12
            return size**2 * sum(self.q ** (k - 2) / (k * (k - 1)) for k in range(2, 14)) * (1 + 1e-11)
        return (self.q + (1 - self.q) * float(np.log1p(-self.q))) / self.reach**2
