"""Directions along which an objective does not curve, and those along which nothing changes at all.

A certificate may leave out a direction without curvature only if it changes no score and no penalty. Penalties too weak
to be seen in the Hessian are left out of the objective first: they are >= 0, so the minimum is not below that of the
rest, and what they cost at the state is added to the excess.

Columns without a penalty that counts are then looked at in more bits (statistics/remainders.py): those that are
combinations of others to the last bit change no score. Others are left out only where it is said what that costs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.statistics.remainders import Remainders, SomeColumns, column_remainders

WEAK = 1e-10  # of the curvature of a column


def is_weak(l2: Array, curvature: Array) -> Array:
    """Which strengths are > 0 and do not settle what the columns leave open."""
    return np.asarray((l2 > 0) & (l2 <= WEAK * curvature))


@dataclass(frozen=True)
class Related:
    """Columns that are nearly combinations of others. columns: their places; found: what is left of them."""

    columns: Array
    found: Remainders
    names: list[str]

    @property
    def is_exact(self) -> bool:
        """Whether all are combinations of others to the last bit."""
        return bool(self.found.is_exact.all())

    @property
    def is_apart(self) -> bool:
        """Whether one differs from a combination by more than the rounding of its entries."""
        return bool(self.found.is_apart.any())

    def kept(self, size: int) -> Array:
        """The entries of a point that are left, the intercept's last."""
        return np.setdiff1d(np.arange(size), self.columns)

    def fault(self) -> str:
        """What is wrong with columns that are apart, and what to do."""
        i = int(np.flatnonzero(self.found.is_apart)[0])
        others = ", ".join(repr(self.names[k]) for k in np.flatnonzero(self.found.times[0][i])[:3]) or "a constant"
        name = self.names[self.found.columns[i]]
        return (
            f"column {name!r} is a combination of {others} but for {max(self.found.size[i], 1e-300):.0e} of its size, "
            "which is more than rounding: what it adds is lost in the rounding of the scores. Replace it by its "
            "difference from that combination, or leave it out."
        )


def related(source: Source, firm: Array, fit_intercept: bool) -> Related | None:
    """Columns that are nearly combinations of others without a penalty that counts; None where there are none."""
    free = np.flatnonzero(~firm)
    if not len(free):
        return None
    if len(free) < len(firm):
        source = source.through(SomeColumns(free))
    found = column_remainders(source, fit_intercept)
    return None if found is None else Related(free[found.columns], found, list(source.names))
