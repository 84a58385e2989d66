"""What an exact certificate found: two ends that the value lies between, and how many bits that took."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from certifit.exact.balls import Ball, above, ball, below, precision

FEWEST_BITS, MOST_BITS = 192, 12288
SHARP = 1e-3  # relative width of a value that is told
NOTHING = 1e-60  # a value below this is told as an upper end alone
EXACT_FIT = 1e-14  # an objective below this share of the null model's is an exact fit to rounding


class NoProof(Exception):
    """More bits would not help; the message says why."""


@dataclass(frozen=True)
class Bounds:
    """The certificate's value as far as one precision tells it.

    lower, upper: balls; the value is at least the lower end of the first and at most the upper end of the second.
    is_exact_fit: it is relative to the null model's objective.
    errors: at least |w - w*| / |w| of every coefficient, the intercept first; None where w* is not one point.
    """

    lower: Ball
    upper: Ball
    is_exact_fit: bool = False
    errors: tuple[float, ...] | None = None


@dataclass(frozen=True)
class ExactProof:
    """The value of a certificate in the unit of its claim, between lower and upper, both proven.

    bits: the precision that it took. is_exact_fit, errors: as in Bounds.
    literal: where columns are set aside as redundant, both ends of the value for all weights; lower and upper are then
    about the fits without these columns.
    fault: why nothing is proven; the ends are 0 and infinity then.
    """

    lower: float
    upper: float
    bits: int
    theorem: str
    is_exact_fit: bool = False
    errors: tuple[float, ...] | None = None
    literal: tuple[float, float] | None = None
    fault: str = ""

    @property
    def is_sharp(self) -> bool:
        """Whether the two ends tell the same number, or one that is nothing."""
        return self.upper < NOTHING or self.upper - self.lower <= SHARP * self.upper


def nothing_proven(theorem: str, fault: str, bits: int = 0) -> ExactProof:
    """A proof of nothing, and why."""
    return ExactProof(0.0, math.inf, bits, theorem, fault=fault)


def relative(
    gap: tuple[Ball, Ball], objective: Ball, null: Ball | None, claims_exact_fit: bool
) -> tuple[Ball, Ball, bool]:
    """The two ends of a gap over the objective, and False; over the null model's, and True, only for an exact fit.

    An exact fit must be claimed, and its objective be below 1e-14 of the null model's; None: that is not known.
    """
    null = null if claims_exact_fit else None
    if claims_exact_fit and null is None:
        raise NoProof("the least objective of the null model, which an exact fit is relative to, is not found.")
    is_exact_fit = null is not None and bool(objective.mid() < ball(EXACT_FIT) * null.mid())
    scale = null if null is not None and is_exact_fit else objective
    if scale.is_zero():  # no loss is left, and a loss is never negative
        return ball(0), ball(0), is_exact_fit
    lower, upper = (end / scale for end in gap)
    return lower, upper, is_exact_fit


def refined(attempt: Callable[[], Bounds | None], theorem: str, fault: str, most_bits: int = MOST_BITS) -> ExactProof:
    """Twice the bits until both ends tell the same number, or the limit is met; then the best that was found.

    attempt: the bounds at the precision that is set; None where it proves nothing, NoProof where none would.
    fault: what to say where no precision did.
    """
    bits, best = FEWEST_BITS, None
    while bits <= most_bits:
        with precision(bits):
            try:
                found = attempt()
            except NoProof as error:
                return best or nothing_proven(theorem, str(error), bits)
            if found is not None:
                lower, upper = max(below(found.lower), 0.0), max(above(found.upper), 0.0)
                if math.isfinite(upper) and (best is None or upper < best.upper):
                    best = ExactProof(lower, upper, bits, theorem, found.is_exact_fit, found.errors)
        if best is not None and best.is_sharp:
            return best
        bits *= 2
    return best or nothing_proven(theorem, fault, most_bits)
