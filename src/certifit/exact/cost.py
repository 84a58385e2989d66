"""How long an exact proof takes, before it begins.

A pass makes X'DX of n rows and p unknowns in balls, at the fewest bits: some microseconds per entry of X and some
nanoseconds per product of entries. The factors are those of one core of 2024; more bits take longer in proportion.
"""

from __future__ import annotations

from typing import Any

from certifit.models.adapter import answer_of, learner_of

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
    minutes = expected_seconds(model) / 60
    if minutes > most_minutes:
        raise TooLarge(
            f"An exact proof on {int(model.data_['n_rows']):,} rows and {len(model.column_names_):,} columns is "
            f"expected to take {in_words(60 * minutes)}, and {most_minutes:g} minutes are allowed. Allow more "
            f"(most_minutes={2 * minutes:.0f}, --most-minutes on the command line), or verify without an exact proof."
        )


def in_words(seconds: float) -> str:
    """A time as a rough number of seconds, minutes or hours."""
    for unit, size in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"about {seconds / size:.0f} {unit}"
    return f"about {seconds:.0f} seconds" if seconds >= 2 else "about a second"
