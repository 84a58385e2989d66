"""Least squares, ridge, lasso and elastic net in exact rationals.

    P(w, b) = sum_i weight_i (y_i - b - x_i'w)^2 / (2 W) + sum_j f_j ( l1 |w_j| + l2/2 w_j^2 ),   W = sum_i weight_i

Entries are integers times a power of two per column, so sums of products are sums of integers. In the units of the
integers, 2 W P = v'Hv - 2 c'v + yy + 2 sum_j p_j |v_j| with exact H, c, yy and p; v = (b, w).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat, fmpz, fmpz_mat

from tests.hunt.references.numbers import power, rational, whole

ZERO = fmpq(0)


@dataclass(frozen=True)
class Minimiser:
    """An exact minimiser v, its objective, and which entries every minimiser shares."""

    v: list[fmpq]
    objective: fmpq
    determined: list[bool]


class Squares:
    """The exact problem of rows X (n x d), targets and weights (None: all 1).

    l2, l1: penalties, one float64 for all columns or a list of one rational per column.
    """

    def __init__(
        self, X: Any, y: Any, weights: Any = None, fit_intercept: bool = True, l2: Any = 0.0, l1: Any = 0.0
    ) -> None:
        X = np.asarray(X, dtype=np.float64)
        n, d = X.shape
        self.offset = int(fit_intercept)
        one = np.ones((n, self.offset))
        columns = [whole(column) for column in np.hstack([one, X]).T] + [whole(y)]
        row_weights, _ = whole(np.ones(n) if weights is None else weights)
        self.exponents = [exponent for _, exponent in columns]
        A = fmpz_mat([[column[i] for column, _ in columns] for i in range(n)])
        WA = fmpz_mat([[column[i] * w for column, _ in columns] for i, w in enumerate(row_weights)])
        sums = WA.transpose() * A
        self.size = d + self.offset
        self.sum_weight = fmpq(sum(row_weights, fmpz(0)))
        self.cross = [fmpq(sums[j, self.size]) for j in range(self.size)]
        self.squares = fmpq(sums[self.size, self.size])
        pulls, kinks = ([ZERO] * self.offset + _per_column(penalty, d) for penalty in (l2, l1))
        target = self.exponents[-1]
        self.pulls = [p * self.sum_weight * power(-2 * e) for p, e in zip(pulls, self.exponents[:-1], strict=True)]
        # W p |w_j| for w_j = v_j 2^(e_y - e_j), in units of 2^(2 e_y)
        self.kinks = [p * self.sum_weight * power(-e - target) for p, e in zip(kinks, self.exponents, strict=False)]
        rows = [[fmpq(sums[i, j]) for j in range(self.size)] for i in range(self.size)]
        for j, pull in enumerate(self.pulls):
            rows[j][j] += pull
        self.matrix = rows

    def units(self, coef: Any, intercept: Any) -> list[fmpq]:
        """A state in the units of the integers."""
        values = [intercept] * self.offset + list(np.ravel(coef))
        target = self.exponents[-1]
        return [rational(v) * power(e - target) for v, e in zip(values, self.exponents, strict=False)]

    def objective(self, v: Sequence[fmpq]) -> fmpq:
        """2 W P at a state in these units."""
        image = [_dot(row, v) for row in self.matrix]
        kinks = _dot(self.kinks, [abs(x) for x in v])
        return _dot(v, image) - 2 * _dot(self.cross, v) + self.squares + 2 * kinks

    @cached_property
    def null(self) -> fmpq:
        """2 W P of the best constant, or of 0 without an intercept."""
        if not self.offset:
            return self.squares
        return self.squares - self.cross[0] ** 2 / self.matrix[0][0] if self.matrix[0][0] else self.squares

    def minimiser(self, columns: Sequence[int] | None = None) -> Minimiser:
        """Without kinks: over the weights of some columns of X (None: all), the others 0."""
        return self.restricted(self._places(columns), self.cross)

    def restricted(
        self, places: Sequence[int], cross: Sequence[fmpq], fixed: Sequence[fmpq] | None = None
    ) -> Minimiser:
        """Minimiser of v'Hv - 2 cross'v over the entries at `places`; the others stay at `fixed` (None: 0)."""
        v = [ZERO] * self.size if fixed is None else list(fixed)
        k = len(places)
        if k == 0:
            return Minimiser(v, self.objective(v), [False] * self.size)
        right = [cross[i] - _dot(self.matrix[i], [ZERO if j in places else x for j, x in enumerate(v)]) for i in places]
        table = fmpq_mat([[*(self.matrix[i][j] for j in places), b] for i, b in zip(places, right, strict=True)])
        reduced, rank = table.rref()
        pivots = _pivots(reduced, rank, k)
        free = [j for j in range(k) if j not in pivots]
        determined = [False] * self.size
        for j in free:
            v[places[j]] = ZERO
        for row, j in enumerate(pivots):
            v[places[j]] = reduced[row, k]
            determined[places[j]] = all(reduced[row, f] == 0 for f in free)
        return Minimiser(v, self.objective(v), determined)

    def _places(self, columns: Sequence[int] | None) -> list[int]:
        if columns is None:
            return list(range(self.size))
        return [*range(self.offset), *(self.offset + int(j) for j in columns)]


class Kinked(Squares):
    """The same with kinks and bounds: an active set, and its optimality checked in exact arithmetic."""

    def __init__(self, *args: Any, bounds: tuple[Any, Any] | None = None, **others: Any) -> None:
        super().__init__(*args, **others)
        d = self.size - self.offset
        low, high = (np.broadcast_to(np.asarray(end, float), d) for end in (bounds or (-np.inf, np.inf)))
        self.low, self.high = self._ends(low), self._ends(high)

    def _ends(self, ends: Any) -> list[fmpq | None]:
        found: list[fmpq | None] = [None] * self.offset
        target = self.exponents[-1]
        for end, e in zip(ends, self.exponents[self.offset :], strict=False):
            found.append(rational(end) * power(e - target) if np.isfinite(end) else None)
        return found

    def best(self, start: Sequence[fmpq], most_steps: int = 200) -> tuple[Minimiser, bool]:
        """The minimiser by a primal active set method from `start`, and whether its optimality was proven.

        Within a set of signs the objective is a quadratic: go to its minimiser, or to the first kink or bound on the
        way. At the minimiser of a set, free the entry whose slope pulls hardest away from its kink or bound.
        """
        v = [self._inside(j, x) for j, x in enumerate(start)]
        signs = [self._sign(j, x) for j, x in enumerate(v)]
        for _ in range(most_steps):
            v, is_stopped = self._walked(v, signs)
            if is_stopped:
                continue
            violation, j, sign = self._worst(v, signs)
            if violation == 0:
                return Minimiser(v, self.objective(v), []), True
            signs[j] = sign
        return Minimiser(v, self.objective(v), []), False

    def _inside(self, j: int, x: fmpq) -> fmpq:
        low, high = self.low[j], self.high[j]
        if low is not None and x < low:
            return low
        return high if high is not None and x > high else x

    def _sign(self, j: int, x: fmpq) -> int | None:
        """The side of its kink that an entry moves on; 0 where it is held at the kink or a bound, None without one."""
        if x in (self.low[j], self.high[j]) and x is not None:
            return 0
        if self.kinks[j] == 0:
            return None
        return 0 if x == 0 else (1 if x > 0 else -1)

    def _walked(self, v: list[fmpq], signs: list[int | None]) -> tuple[list[fmpq], bool]:
        places = [j for j, sign in enumerate(signs) if sign != 0]
        cross = [c - self.kinks[j] * (signs[j] or 0) for j, c in enumerate(self.cross)]
        end = self._nearest(v, places, cross)
        share, stop = fmpq(1), None
        for j in places:
            step = end[j] - v[j]
            for wall in self._walls(j, signs[j], step):
                reach = (wall - v[j]) / step
                if reach < share:
                    share, stop = reach, (j, wall)
        out = [x + share * (e - x) for x, e in zip(v, end, strict=True)]
        if stop is None:
            return out, False
        out[stop[0]] = stop[1]
        signs[stop[0]] = 0
        return out, True

    def _nearest(self, v: list[fmpq], places: list[int], cross: list[fmpq]) -> list[fmpq]:
        """A minimiser over `places`; entries that the rows do not determine stay where they are."""
        pivots = self._independent(places)
        held = [x if j not in pivots else ZERO for j, x in enumerate(v)]
        return self.restricted(pivots, cross, held).v

    def _independent(self, places: list[int]) -> list[int]:
        if not places:
            return []
        reduced, rank = fmpq_mat([[self.matrix[i][j] for j in places] for i in places]).rref()
        return [places[j] for j in _pivots(reduced, rank, len(places))]

    def _walls(self, j: int, sign: int | None, step: fmpq) -> list[fmpq]:
        if step == 0:
            return []
        wall = self.high[j] if step > 0 else self.low[j]
        walls = [] if wall is None else [wall]
        if sign is not None and (step > 0) != (sign > 0):
            walls.append(ZERO)
        return walls

    def _worst(self, v: list[fmpq], signs: list[int | None]) -> tuple[fmpq, int, int | None]:
        worst: tuple[fmpq, int, int | None] = (ZERO, -1, None)
        for j, x in enumerate(v):
            slope = _dot(self.matrix[j], v) - self.cross[j]
            scale = self.matrix[j][j] or fmpq(1)
            for sign, away in ((1, -(slope + self.kinks[j])), (-1, slope - self.kinks[j])):
                # moving up from x costs slope + kink where x >= 0, slope - kink where x < 0
                pull = away if self._on(x, sign) else away + 2 * self.kinks[j]
                wall = self.high[j] if sign > 0 else self.low[j]
                if pull <= 0 or (wall is not None and x == wall) or signs[j] != 0:
                    continue
                size = pull * pull / scale
                if size > worst[0]:
                    worst = (size, j, None if self.kinks[j] == 0 else self._new_sign(x, sign))
        return worst

    @staticmethod
    def _on(x: fmpq, sign: int) -> bool:
        """Whether a move in this direction goes away from 0, or starts there."""
        return x == 0 or (x > 0) == (sign > 0)

    @staticmethod
    def _new_sign(x: fmpq, sign: int) -> int:
        return sign if x == 0 else (1 if x > 0 else -1)


def _per_column(penalty: Any, d: int) -> list[fmpq]:
    """One exact number per column, of one float64 or of rationals."""
    return list(penalty) if isinstance(penalty, list) else [rational(penalty)] * d


def _dot(a: Sequence[fmpq], b: Sequence[fmpq]) -> fmpq:
    return sum((x * z for x, z in zip(a, b, strict=True) if x and z), ZERO)


def _pivots(reduced: fmpq_mat, rank: int, k: int) -> list[int]:
    pivots, j = [], 0
    for row in range(rank):
        while j < k and reduced[row, j] == 0:
            j += 1
        if j < k:
            pivots.append(j)
            j += 1
    return pivots
