"""An exact proof: two numbers that the value lies between, and how many bits that took; its cost, before it begins.

The rows of a certificate as they are: float64 numbers of the mapped columns, in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.exact.balls import Ball, above, ball, below, precision
from certifit.models.adapter import answer_of, learner_of

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
                result = attempt()
            except NoProof as error:
                return best or nothing_proven(theorem, str(error), bits)
            if result is not None:
                lower, upper = max(below(result.lower), 0.0), max(above(result.upper), 0.0)
                if math.isfinite(upper) and (best is None or upper < best.upper):
                    best = ExactProof(lower, upper, bits, theorem, result.is_exact_fit, result.errors)
        if best is not None and best.is_sharp:
            return best
        bits *= 2
    return best or nothing_proven(theorem, fault, most_bits)


# ---- how long an exact proof takes -----------------------------------------------------------------------------------
# A pass makes X'DX of n rows and p unknowns in balls, at the fewest bits: some microseconds per entry of X and some
# nanoseconds per product of entries. The factors are those of one core of 2024; more bits take longer in proportion.

ENTRY_SECONDS = 6e-6  # made, multiplied and added once per entry of X
PRODUCT_SECONDS = 4e-8  # of two entries of X
SYSTEM_SECONDS = 3e-7  # per p^3 of a system of p unknowns
NEWTON_PASSES = 7  # steps to the minimum, the box around it, the state and the null model
MOST_MINUTES = 10.0


class TooLarge(ValueError):
    """A proof that would take longer than allowed."""


def expected_seconds(model: Any) -> float:
    """What the exact proof of a fitted model should take, from the size of its data."""
    n_rows, p = int(model.data_["n_rows"]), len(model.column_names_) + 1
    learner = learner_of(model)
    n_classes = len(model.classes_) if answer_of(model).is_class else 0
    entries, products = n_rows * p * ENTRY_SECONDS, n_rows * p * p * PRODUCT_SECONDS
    if learner.exact == "counts":
        return entries / 10  # most of them are 0
    if learner.exact == "gaussian":
        return 2 * (entries + products) + n_classes * p**3 * SYSTEM_SECONDS
    if learner.exact == "components":
        return entries + products + 60 * p**3 * SYSTEM_SECONDS
    if n_classes > 2:
        blocks, unknowns = n_classes * (n_classes + 1) / 2, p * n_classes
        return NEWTON_PASSES * (blocks * (entries + products) + unknowns**3 * SYSTEM_SECONDS)
    return NEWTON_PASSES * (entries + products + p**3 * SYSTEM_SECONDS)


def refuse_long(model: Any, most_minutes: float) -> None:
    """Refuse a proof that is expected to take longer than so many minutes."""
    if not most_minutes >= 0:
        raise ValueError(f"most_minutes must be >= 0. Got {most_minutes:g}.")
    minutes = expected_seconds(model) / 60
    enough = max(2 * minutes, 1)
    if minutes > most_minutes:
        raise TooLarge(
            f"An exact proof on {int(model.data_['n_rows']):,} rows and {len(model.column_names_):,} columns is "
            f"expected to take {in_words(60 * minutes)}, and {most_minutes:g} minutes are allowed. Allow more "
            f"(most_minutes={enough:.0f}, --most-minutes on the command line), or verify without an exact proof."
        )


def in_words(seconds: float) -> str:
    """A time as a rough number of seconds, minutes or hours."""
    for unit, size in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"about {seconds / size:.0f} {unit}"
    return f"about {seconds:.0f} seconds" if seconds >= 2 else "about a second"


@dataclass(frozen=True)
class Asked:
    """What a certificate claims of a fit beyond its value.

    aside: columns that the fits it is compared with do not use. claims_exact_fit: the value is relative to the null
    model's objective. is_mended: a millionth of every column's variance was added to the variances of classes.
    is_still: the rows vary by no more than the rounding of their entries, and variances are 0 to that.
    """

    aside: frozenset[int] = frozenset()
    claims_exact_fit: bool = False
    is_mended: bool = False
    is_still: bool = False


PLAIN = Asked()


@dataclass(frozen=True)
class ExactRows:
    """Rows that have a weight: columns (an array or CSR), target or code of a class, weight and offset of every one."""

    X: Any
    y: Array
    weight: Array
    offset: Array
    names: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.weight)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.names)

    def dense(self) -> ExactRows:
        """The same rows with their columns as an array."""
        return replace(self, X=self.X.toarray()) if sp.issparse(self.X) else self

    def of_classes(self) -> ExactRows:
        """The rows whose target is a class."""
        known = self.y >= 0
        if known.all():
            return self
        return replace(self, X=self.X[known], y=self.y[known], weight=self.weight[known], offset=self.offset[known])


def rows_of(source: Source) -> ExactRows:
    """All rows of a source that have a weight, such as those of `mapped_again` of a fitted model."""
    block = source.gather()
    X = block.X.toarray() if hasattr(block.X, "toarray") and not sp.issparse(block.X) else block.X
    n_rows = block.n_rows
    y = np.zeros(n_rows) if block.y is None else np.asarray(block.y, dtype=np.float64)
    weight = np.ones(n_rows) if block.weight is None else np.asarray(block.weight, dtype=np.float64)
    offset = np.zeros(n_rows) if block.offset is None else np.asarray(block.offset, dtype=np.float64)
    kept = weight > 0
    X = sp.csr_array(X, dtype=np.float64) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    return ExactRows(X[kept], y[kept], weight[kept], offset[kept], tuple(source.names))
