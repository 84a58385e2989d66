"""Separation: whether a likelihood has a finite maximum, and whether a hyperplane separates two classes.

Along a receding direction with a score that is not 0 the loss falls for ever: no weights are the best.
It separates completely where every side_i s_i > 0. Either such a direction exists, or positive multipliers with
sum_i multiplier_i side_i a_i = 0 on rows a_i = (x_i, 1) that span all rows (Stiemke; for complete separation any rows
will do: Gordan). Both are found by linear programs on few rows: rows that a direction fails are added until none is
left.

How scores may run off: the rows of a data set as inequalities on a direction of the weights.

The loss of a row lets its score run off to one side, to the other, or to neither: side 1, -1 or 0. A direction of the
weights (and intercept) with scores s_i recedes where side_i s_i >= 0 for all rows, and s_i = 0 for those of side 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from certifit.data.columns import Array, Columns
from certifit.data.picked import rows_where
from certifit.data.source import Block, Source
from certifit.runtime import core, n_threads, one_blas_thread

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


INDEPENDENT = 1e-9  # a column farther than this, relative, from the span of the others is none of their combinations
MOST_ROUNDS = 200
MOST_UNKNOWNS = 4096


@dataclass(frozen=True)
class Found:
    """What a search came to: a direction, or multipliers of rows, or neither.

    kept: the unknowns that no combination of others stands for, where multipliers are the answer.
    """

    direction: Array | None = None
    rows: RowsAt | None = None
    multipliers: Array | None = None
    kept: Array | None = None


@dataclass
class Search:
    """Rows are added to few until these decide."""

    cone: Cone
    complete: bool = False  # whether only complete separation counts
    rows: RowsAt = field(init=False)
    n_zero: float = np.inf  # rows that the last direction left at 0, where it failed none

    @one_blas_thread
    def run(self, candidate: Array | None = None) -> Found:
        """A direction, or multipliers, or neither."""
        if self.cone.size > MOST_UNKNOWNS:
            return Found(candidate)
        at = None
        if candidate is not None and np.isfinite(candidate).all() and candidate.any():
            at = self.cone.at(candidate, self._limit)
            if self._is_answer(at):
                return Found(candidate)
        self.rows = self.cone.spread(2 * self._limit)
        if at is not None:
            self._add(at)
        for _ in range(MOST_ROUNDS):
            result = self._round()
            if result is not None:
                return result
        return Found()

    @property
    def _limit(self) -> int:
        """Rows that are added at a time."""
        return 2 * self.cone.size + 20

    def _round(self) -> Found | None:
        """What the rows so far say; None where more were added."""
        program = Program.of(self.rows)
        strict, multipliers = program.most_separated()
        if not strict.any() or (self.complete and not strict.all()):
            return self._overlap(program, strict, multipliers)
        direction = program.sparsest(strict)
        if direction is None:
            return Found()
        at = self.cone.at(direction, self._limit)
        # Rows at 0 may be strict for another direction: they are added while that makes them fewer.
        before, self.n_zero = self.n_zero, np.inf if at.counts[0] else float(at.counts[1])
        if self.n_zero < before or at.counts[0]:
            return None if self._add(at) else Found(direction, program.rows)
        return Found(direction, program.rows)

    def _is_answer(self, at: RowsAt) -> bool:
        """Whether a direction fails no row, exactly, and is strict for some."""
        _, _, _, wrong, zero, right, unknown = at.counts
        return bool(wrong == 0 and unknown == 0 and right > 0 and not (self.complete and zero))

    def _add(self, at: RowsAt) -> bool:
        """More rows; False where all were there."""
        new = ~np.isin(at.number, self.rows.number)
        self.rows = self.rows.joined(at, new)
        return bool(new.any())

    def _overlap(self, program: Program, strict: Array, multipliers: Array) -> Found | None:
        """Multipliers of rows that no direction parts; None where more rows are needed."""
        kept = program.independent()
        if not self.complete and len(kept) < self.cone.size:
            # A direction that changes no score of these rows may change one of others.
            still = program.null_direction(kept)
            moved = [self.cone.at(direction, self._limit) for direction in (still, -still)]
            if any([self._add(at.picked(at.badness > NEAR_ZERO)) for at in moved]):
                return None
        fewest = program.fewest(~strict)
        if fewest is not None:
            rows = self.rows.picked(fewest[0])
            independent = Program.of(rows).independent()
            if self.complete or len(independent) == len(kept):
                return Found(None, rows, fewest[1], independent)
        return Found(None, self.rows.picked(~strict), multipliers[~strict], kept)


@dataclass(frozen=True)
class Program:
    """The linear programs of some rows, in columns shifted to their middle and scaled by powers of two."""

    rows: RowsAt
    B: Array
    unit: Array
    shift: Array

    @staticmethod
    def of(rows: RowsAt) -> Program:
        """Rows whose last unknown may be an intercept: a column of ones takes up the shifts of the others."""
        A = rows.A
        has_ones = A.shape[1] > 0 and bool((A[:, -1] == 1).all())
        shift = np.median(A, axis=0) if has_ones else np.zeros(A.shape[1])
        shift[-1:] = 0.0
        B = A - shift
        size = np.abs(B).max(axis=0, initial=0.0)
        unit = np.ldexp(1.0, -np.frexp(np.where(size > 0, size, 1.0))[1])
        return Program(rows, B * unit, unit, shift)

    def user(self, scaled: Array) -> Array:
        """A direction of the scaled columns in those of the user."""
        direction = scaled * self.unit
        if self.shift.any():
            direction[-1] -= float(self.shift @ direction)
        return np.asarray(direction)

    def most_separated(self) -> tuple[Array, Array]:
        """Which rows some receding direction makes strict, and multipliers >= 1 of all others (0 for side 0: free).

        maximise sum_i t_i  over direction v, 0 <= t_i <= 1:  side_i b_i'v >= t_i;  b_i'v = 0 for side 0
        """
        side, n = self.rows.side, len(self.rows.side)
        moving, p = np.flatnonzero(side), self.B.shape[1]
        signed = side[moving, None] * self.B[moving]
        cost = np.concatenate([np.zeros(p), -np.ones(len(moving))])
        upper = sp.hstack([sp.csr_array(-signed), sp.eye_array(len(moving))], format="csr")
        held = sp.hstack([sp.csr_array(self.B[side == 0]), sp.csr_array((n - len(moving), len(moving)))], format="csr")
        limits = [(None, None)] * p + [(0.0, 1.0)] * len(moving)
        solved = linear_program(cost, upper, np.zeros(len(moving)), held, np.zeros(n - len(moving)), limits)
        strict, multipliers = np.zeros(n, dtype=bool), np.ones(n)
        if solved is not None:
            strict[moving] = solved.x[p:] > 0.5
            multipliers[moving] = -solved.ineqlin.marginals
            multipliers[side == 0] = solved.eqlin.marginals
        return strict, multipliers

    def sparsest(self, strict: Array) -> Array | None:
        """Of the directions with side_i b_i'v >= 1 for the strict rows, one of least sum of sizes, which has few."""
        side, p = self.rows.side, self.B.shape[1]
        moving = side != 0
        signed = np.where(moving, side, 1.0)[:, None] * self.B
        twice = np.hstack([signed, -signed])
        cost = np.ones(2 * p)
        if self.shift.any() or (self.rows.A[:, -1] == 1).all():
            cost[[p - 1, -1]] = 1e-6  # the intercept is no column
        solved = linear_program(
            cost, -twice[moving], -strict[moving].astype(np.float64), twice[~moving], np.zeros(int((~moving).sum())),
            [(0.0, None)] * (2 * p),
        )  # fmt: skip
        if solved is None:
            return None
        direction = solved.x[:p] - solved.x[p:]
        direction[np.abs(direction) < 1e-9 * np.abs(direction).max()] = 0.0
        return self.user(direction)

    def fewest(self, among: Array) -> tuple[Array, Array] | None:
        """At most (unknowns + 1) of the rows with positive multipliers of sum 1 whose combination vanishes.

        None where there are rows of side 0: these have multipliers of any sign.
        """
        side = self.rows.side
        rows = np.flatnonzero(among)
        if (side[rows] == 0).any():
            return None
        equal = np.vstack([(side[rows, None] * self.B[rows]).T, np.ones(len(rows))])
        right = np.append(np.zeros(self.B.shape[1]), 1.0)
        solved = linear_program(np.zeros(len(rows)), None, None, equal, right, [(0.0, None)] * len(rows))
        if solved is None:
            return None
        positive = solved.x > 1e-9
        chosen = np.zeros(len(side), dtype=bool)
        chosen[rows[positive]] = True
        return chosen, solved.x[positive]

    def independent(self) -> Array:
        """Columns of which the others are combinations, on these rows."""
        if not self.B.size:
            return np.zeros(0, dtype=np.int64)
        size = np.linalg.norm(self.B, axis=0)
        _, r, order = scipy.linalg.qr(self.B / np.where(size > 0, size, 1.0), mode="economic", pivoting=True)
        diagonal = np.abs(np.diagonal(r))
        return np.sort(order[: int((diagonal > INDEPENDENT * max(diagonal[0], INDEPENDENT)).sum())])

    def null_direction(self, kept: Array) -> Array:
        """A direction that changes no score of these rows, of all columns that are combinations of the kept."""
        left = np.setdiff1d(np.arange(self.B.shape[1]), kept)
        scattered = np.cos(1.0 + np.arange(len(left)) ** 2)
        direction = np.zeros(self.B.shape[1])
        direction[left] = scattered
        if len(kept):
            direction[kept] = -np.linalg.lstsq(self.B[:, kept], self.B[:, left] @ scattered, rcond=None)[0]
        return self.user(direction)


def linear_program(cost: Array, upper: Any, upper_right: Any, equal: Any, right: Any, limits: list[Any]) -> Any:
    """The solution of a linear program; None where there is none within the solver's tolerance."""
    from scipy.optimize import linprog  # slow to import, and few fits need it

    solved = linprog(cost, upper, upper_right, equal, right, limits, method="highs-ds")
    return solved if solved.status == 0 else None
