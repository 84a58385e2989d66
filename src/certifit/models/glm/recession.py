"""How scores may run off: the rows of a data set as inequalities on a direction of the weights.

The loss of a row lets its score run off to one side, to the other, or to neither: side 1, -1 or 0. A direction of the
weights (and intercept) with scores s_i recedes where side_i s_i >= 0 for all rows, and s_i = 0 for those of side 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Array, Columns
from certifit.data.source import Block, Source, rows_where
from certifit.runtime import core, n_threads

NEAR_ZERO = 1e-9  # a score below this share of the size of its terms is taken for 0 in the search

Sides = Callable[[Array], Array]


def class_sides(y: Array) -> Array:
    """Two classes, y 0 or 1 (logistic, probit, complementary log-log): a share between them holds its score."""
    return np.where(y == 1, 1.0, np.where(y == 0, -1.0, 0.0))


def count_sides(y: Array) -> Array:
    """Counts with a log link (Poisson, Tweedie): only a score of y = 0 may fall."""
    return np.where(y == 0, -1.0, 0.0)


def held_sides(y: Array) -> Array:
    """Losses that rise on both sides (Gamma, squared)."""
    return np.zeros(len(y))


# by family of targets, and by the place of a compiled loss
FAMILY_SIDES: dict[str, Sides] = {
    "bernoulli": class_sides,
    "binomial": class_sides,
    "poisson": count_sides,
    "tweedie": count_sides,
    "negative-binomial": count_sides,
    "gamma": held_sides,
    "exponential": held_sides,
    "gaussian": held_sides,
}
SIDES: dict[int, Sides] = {
    0: class_sides,
    1: count_sides,
    2: held_sides,
    3: held_sides,
    4: count_sides,
    5: count_sides,
}


def sides_of(loss: Any) -> Sides | None:
    """How scores of a loss may run off; None where that is not known, or where not every score is legal."""
    if loss.code is not None:
        return SIDES.get(loss.code)
    name = getattr(getattr(loss, "family", None), "name", "")
    is_free = getattr(getattr(loss, "link", None), "name", "") in ("logit", "probit", "cloglog", "log")
    return FAMILY_SIDES.get(name) if is_free else None


@dataclass(frozen=True)
class RowsAt:
    """Rows a_i of the unknowns with their sides and numbers, the worst first; counts over all rows.

    counts: rows on the wrong side, at 0 and on the right side, to rounding; then the same exactly, and rows unknown.
    """

    A: Array
    side: Array
    number: Array
    badness: Array
    counts: Array
    limit: int

    def __add__(self, other: RowsAt) -> RowsAt:
        both = self.joined(other, np.ones(len(other.side), dtype=bool))
        worst = np.lexsort((both.number, -both.badness))[: self.limit]
        return replace(both.picked(worst), counts=self.counts + other.counts)

    def joined(self, other: RowsAt, wanted: Array) -> RowsAt:
        """These rows, then some of the other."""
        more = other.picked(wanted)
        return RowsAt(
            np.concatenate([self.A, more.A]),
            np.concatenate([self.side, more.side]),
            np.concatenate([self.number, more.number]),
            np.concatenate([self.badness, more.badness]),
            self.counts,
            self.limit,
        )

    def picked(self, rows: Array) -> RowsAt:
        """Some of the rows."""
        return replace(self, A=self.A[rows], side=self.side[rows], number=self.number[rows], badness=self.badness[rows])


class Cone(Protocol):
    """The rows of a data set as inequalities side_i a_i'direction >= 0; `per_row` of them a row, numbered in a row."""

    @property
    def per_row(self) -> int:
        """Inequalities of a row."""

    @property
    def fit_intercept(self) -> bool:
        """Whether there is an intercept."""

    @property
    def size(self) -> int:
        """How many unknowns there are."""

    def at(self, direction: Array, limit: int) -> RowsAt:
        """The rows that fail a direction most, then those at 0, and how many there are: one pass."""

    def spread(self, limit: int) -> RowsAt:
        """Some rows of every kind: one pass."""

    def nearest(self, direction: Array) -> Array:
        """A direction near the given one whose signs `at` tells exactly."""

    def parts(self, direction: Array) -> tuple[Array, Any]:
        """Weights and intercept of a direction: of one score, or classes x columns."""


@dataclass(frozen=True)
class ScoreCone:
    """Rows of one score: a_i = (x_i, 1)."""

    source: Source
    sides: Sides
    fit_intercept: bool
    per_row: int = 1

    @property
    def size(self) -> int:
        """Weights, and the intercept last where there is one."""
        return self.source.n_features + int(self.fit_intercept)

    def nearest(self, direction: Array) -> Array:
        """The direction itself."""
        return direction

    def parts(self, direction: Array) -> tuple[Array, float]:
        """Weights and intercept."""
        whole = np.ascontiguousarray(direction)
        return (whole[:-1], float(whole[-1])) if self.fit_intercept else (whole, 0.0)

    def at(self, direction: Array, limit: int) -> RowsAt:
        """The rows that fail a direction most."""
        weights, intercept = self.parts(direction)
        f = partial(_rows_at, cone=(self.sides, self.fit_intercept), w=weights, b=intercept, limit=limit)
        return self.source.reduce(f)

    def spread(self, limit: int) -> RowsAt:
        """Rows of every side, spread over all."""
        return self.source.reduce(partial(_rows_spread, cone=(self.sides, self.fit_intercept), limit=limit))


def _rows_at(run: Block, cone: tuple[Sides, bool], w: Array, b: float, limit: int) -> RowsAt:
    sides, fit_intercept = cone
    side, counted = _sides_of(run, sides)
    sign, ratio = core.exact_signs(run.rows, w, b, n_threads())
    bad = np.where(side == 0, np.abs(ratio), -side * ratio)
    counts = count_signs(bad, np.where(side == 0, -np.abs(sign), side * sign), np.abs(sign) < 2, counted)
    bad = np.where(counted, bad, -np.inf)
    return _picked(run, side, bad, bad >= -NEAR_ZERO, fit_intercept, counts, limit)


def count_signs(bad: Array, exact: Array, known: Array, counted: Array) -> Array:
    """Rows on the wrong side, at 0 and on the right side, to rounding and exactly; and those unknown."""
    known = known & counted
    near = np.abs(bad) <= NEAR_ZERO
    kinds = [bad > NEAR_ZERO, near, bad < -NEAR_ZERO]
    sure = [known & (exact < 0), known & (exact == 0), known & (exact > 0)]
    return np.array([np.count_nonzero(of) for of in [*(kind & counted for kind in kinds), *sure, counted & ~known]])


def _rows_spread(run: Block, cone: tuple[Sides, bool], limit: int) -> RowsAt:
    sides, fit_intercept = cone
    side, counted = _sides_of(run, sides)
    # The n-th row of every side, in a scattered order, before the next of any.
    scattered = scattered_order(run.first_row + np.arange(run.n_rows))
    bad = np.full(run.n_rows, -np.inf)
    for one in (-1.0, 0.0, 1.0):
        rows = np.flatnonzero(counted & (side == one))
        first = rows[smallest(scattered[rows], limit)]
        bad[first] = -(np.arange(len(first)) + scattered[first])
    return _picked(run, side, bad, counted, fit_intercept, np.zeros(7, dtype=np.int64), limit)


def smallest(keys: Array, limit: int) -> Array:
    """Places of the smallest keys in order, equal ones as they stand."""
    if len(keys) > limit:
        among = np.flatnonzero(keys <= np.partition(keys, limit - 1)[limit - 1])
        return np.asarray(among[np.argsort(keys[among], kind="stable")[:limit]])
    return np.argsort(keys, kind="stable")


def _sides_of(run: Block, sides: Sides) -> tuple[Array, Array]:
    """The side of every row, and whether it is one: a row of weight 0 is none."""
    if run.y is None:
        raise ValueError("Separation is a matter of rows with a target. Got rows without one.")
    counted = np.ones(run.n_rows, dtype=bool) if run.weight is None else run.weight > 0
    return sides(run.y), counted


def _picked(
    run: Block, side: Array, bad: Array, wanted: Array, fit_intercept: bool, counts: Array, limit: int
) -> RowsAt:
    """The worst of the wanted rows."""
    worst = np.flatnonzero(wanted & np.isfinite(bad))
    worst = worst[smallest(-bad[worst], limit)]
    A = picked_rows(run, worst, fit_intercept)
    return RowsAt(A, side[worst], run.first_row + worst, bad[worst], counts, limit)


def picked_rows(run: Block, rows: Array, fit_intercept: bool) -> Array:
    """Some rows in a given order as float64, 1 appended for an intercept."""
    seen = np.zeros(run.n_rows, dtype=bool)
    seen[rows] = True
    X = rows_where(run.X, seen)
    X = X.toarray() if isinstance(X, Columns) or sp.issparse(X) else X
    A = np.asarray(X, dtype=np.float64)[np.argsort(np.argsort(rows))]
    return np.column_stack([A, np.ones(len(rows))]) if fit_intercept else A


def scattered_order(numbers: Array) -> Array:
    """A key in [0, 1) a row number: near numbers have far keys."""
    return np.asarray((numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) / 2.0**64)
