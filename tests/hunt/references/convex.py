"""Minimisers of convex objectives in 300 bits and more: Newton steps on the entries that are free.

    f(v) = smooth(v) + sum_j kinks_j |v_j|,   low_j <= v_j <= high_j

Within a set of signs f is smooth: Newton steps, cut at the first kink or bound. At the minimum of a set the entry that
pulls hardest away from its kink or bound is freed. The value found is that of a legal point, so an excess over it is
true whatever the steps did; `is_converged` says that the Newton decrement vanished as well, so that nothing lies below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from flint import arb, arb_mat, ctx

from tests.hunt.references.numbers import middle

ZERO = arb(0)
MOST_STEPS = 80
MOST_HALVINGS = 60


class Smooth(Protocol):
    """A smooth convex function of a list of 300-bit numbers."""

    size: int

    def value(self, v: list[arb]) -> arb:
        """f(v); not finite outside its domain."""

    def slopes(self, v: list[arb]) -> tuple[list[arb], arb_mat]:
        """Gradient and Hessian."""


@dataclass
class Walls:
    """Kinks and bounds of every entry; None is no bound."""

    kinks: list[arb]
    low: list[arb | None]
    high: list[arb | None]

    @classmethod
    def none(cls, size: int) -> Walls:
        """No kinks, no bounds."""
        return cls([ZERO] * size, [None] * size, [None] * size)


@dataclass
class Found:
    """The best point seen."""

    v: list[arb]
    value: arb
    is_converged: bool


def minimise(
    f: Smooth, start: Sequence[arb], walls: Walls | None = None, rest: arb = ZERO, steps: int = MOST_STEPS
) -> Found:
    """The minimum from a start. rest: an excess that is 0 beside the values of interest; given only where f >= 0."""
    walls = walls or Walls.none(f.size)
    v = [_inside(walls, j, x) for j, x in enumerate(start)]
    signs = [_sign(walls, j, x) for j, x in enumerate(v)]
    value = _whole(f, walls, v)
    if not value.is_finite():
        return Found(v, value, False)
    for count in range(steps):
        if rest > 0 and value <= rest:  # nothing lies below 0
            break
        gradient, hessian = f.slopes(v)
        free = [j for j in range(f.size) if signs[j] != 0]
        pull = [gradient[j] + walls.kinks[j] * (signs[j] or 0) for j in free]
        step = _newton_step(hessian, free, pull)
        if step is None:
            return Found(v, value, False)
        decrement = -_dot(pull, step)
        if decrement < 0:  # no step downhill: the matrix was solved in too few bits
            return Found(v, value, False)
        if not free or decrement <= abs(value) * arb(2) ** (-(2 * ctx.prec) // 5) + rest or _is_still(v, free, step):
            freed = _freed(walls, v, signs, gradient, hessian)
            if not freed:
                return Found(v, value, True)
            continue
        moved = _searched(f, walls, v, signs, free, step, value, decrement, count, rest)
        if moved is None:
            return Found(v, value, False)
        v, value = moved
    return Found(v, value, bool(rest > 0 and value <= rest))


def _is_still(v: list[arb], free: list[int], step: list[arb]) -> bool:
    """Whether the step is rounding."""
    tiny = arb(2) ** (-(4 * ctx.prec) // 5)
    return all(abs(s) <= tiny * abs(v[j]) for j, s in zip(free, step, strict=True))


def _newton_step(hessian: arb_mat, free: list[int], pull: list[arb]) -> list[arb] | None:
    """-(H + a little of its diagonal)^-1 pull: the little moves nothing where H is regular at this precision."""
    if not free:
        return []
    k = len(free)
    little = arb(2) ** (-(2 * ctx.prec) // 3)
    diagonal = [hessian[j, j] for j in free]
    some = max(diagonal, default=ZERO)
    matrix = arb_mat(k, k, [hessian[i, j] for i in free for j in free])
    for place, entry in enumerate(diagonal):
        matrix[place, place] = entry * (1 + little) if entry > 0 else (some * little if some > 0 else arb(1))
    size = [_root(matrix[i, i]) for i in range(k)]
    scaled = arb_mat(k, k, [matrix[i, j] / (size[i] * size[j]) for i in range(k) for j in range(k)]).mid()
    right = arb_mat(k, 1, [-p / s for p, s in zip(pull, size, strict=True)]).mid()
    try:
        with ctx.workprec(2 * ctx.prec):  # the little makes a condition of 2/3 of the bits
            solved = scaled.solve(right)
    except ZeroDivisionError:
        return None
    return [x / s for x, s in zip(middle(solved), size, strict=True)]


def _searched(
    f: Smooth, walls: Walls, v: list[arb], signs: list[int | None], free: list[int], step: list[arb], value: arb,
    decrement: arb, count: int, rest: arb,
) -> tuple[list[arb], arb] | None:  # fmt: skip
    """A point with a lower value along the step; longer steps too where the minimum seems far away."""
    most, stop = _reach(walls, v, signs, free, step)
    share = arb(1) if most is None or most > 1 else most

    def at(share: arb) -> tuple[list[arb], arb]:
        point = list(v)
        for j, s in zip(free, step, strict=True):
            point[j] = (v[j] + share * s).mid()
        return point, _whole(f, walls, point)

    for _ in range(MOST_HALVINGS):
        point, other = at(share)
        if other.is_finite() and other < value - share * decrement / 10000:
            break
        share /= 2
    else:
        return None
    while count >= 3 and share >= 1 and (most is None or 2 * share < most) and (rest <= 0 or other > rest):
        further, lower = at(2 * share)
        if not (lower.is_finite() and (lower < other - (value - other) / 100 or 2 * lower < other)):
            break
        share, point, other = 2 * share, further, lower
    if stop is not None and most is not None and share >= most:
        point[stop[0]] = stop[1]
        signs[stop[0]] = 0
        other = _whole(f, walls, point)
    return point, other


def _reach(
    walls: Walls, v: list[arb], signs: list[int | None], free: list[int], step: list[arb]
) -> tuple[arb | None, tuple[int, arb] | None]:
    """How far the step goes to the first kink or bound, and which that is."""
    most: arb | None = None
    stop: tuple[int, arb] | None = None
    for j, s in zip(free, step, strict=True):
        if s == 0:
            continue
        ends = [walls.high[j] if s > 0 else walls.low[j]]
        if signs[j] is not None and (s > 0) != (signs[j] == 1):
            ends.append(ZERO)
        for end in ends:
            if end is not None:
                reach = ((end - v[j]) / s).mid()
                if most is None or reach < most:
                    most, stop = reach, (j, end)
    return most, stop


def _freed(walls: Walls, v: list[arb], signs: list[int | None], gradient: list[arb], hessian: arb_mat) -> bool:
    """Free the entry whose slope pulls it off its kink or bound hardest; False where there is none."""
    best, chosen = ZERO, None
    for j, x in enumerate(v):
        if signs[j] != 0:
            continue
        scale = hessian[j, j] if hessian[j, j] > 0 else arb(1)
        for sign in (1, -1):
            is_away = x == 0 or (x > 0) == (sign > 0)
            cost = gradient[j] * sign + (walls.kinks[j] if is_away else -walls.kinks[j])
            wall = walls.high[j] if sign > 0 else walls.low[j]
            if cost >= 0 or (wall is not None and x == wall):
                continue
            size = cost * cost / scale
            if size > best:
                best, chosen = size, (j, None if walls.kinks[j] == 0 else (sign if x == 0 else (1 if x > 0 else -1)))
    if chosen is None:
        return False
    signs[chosen[0]] = chosen[1]
    return True


def _whole(f: Smooth, walls: Walls, v: list[arb]) -> arb:
    kinks = [k * abs(x) for k, x in zip(walls.kinks, v, strict=True) if k > 0]
    return (f.value(v) + sum(kinks, ZERO)).mid()


def _inside(walls: Walls, j: int, x: arb) -> arb:
    low, high = walls.low[j], walls.high[j]
    if low is not None and x < low:
        return low
    return high if high is not None and x > high else x


def _sign(walls: Walls, j: int, x: arb) -> int | None:
    if any(end is not None and x == end for end in (walls.low[j], walls.high[j])):
        return 0
    if walls.kinks[j] == 0:
        return None
    return 0 if x == 0 else (1 if x > 0 else -1)


def _dot(a: Sequence[arb], b: Sequence[arb]) -> arb:
    return sum((x * y for x, y in zip(a, b, strict=True)), ZERO).mid()


def _root(x: arb) -> arb:
    return x.sqrt().mid() if x > 0 else arb(1)


def first_converged(candidates: Sequence[Callable[[], Found]]) -> Found:
    """The first that converged, else the lowest."""
    best: Any = None
    for candidate in candidates:
        found = candidate()
        if found.is_converged:
            return found
        if best is None or found.value < best.value:
            best = found
    assert best is not None
    return best
