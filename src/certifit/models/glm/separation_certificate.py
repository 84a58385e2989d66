"""The proof that a likelihood has no finite maximum, or that it has one; that two classes can be separated, or cannot.

Three outcomes: a direction, its signs exact on every row; rows with positive multipliers whose combination vanishes,
the multipliers positive by more than their rounding; or undecided within rounding.

Recession of the softmax loss: a row of class k lets its scores run off where (v_k - v_j)'(x, 1) >= 0 for all j.

A direction is v_1 .. v_(K-1), one after the other; v_0 = 0, since a vector added to all classes changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.data.picked import rows_where
from certifit.data.source import Block, Source
from certifit.models.glm.separation import (
    NEAR_ZERO,
    Cone,
    Found,
    RowsAt,
    ScoreCone,
    Search,
    Sides,
    count_signs,
    picked_rows,
    scattered_order,
    smallest,
)
from certifit.runtime import core, n_threads, one_blas_thread
from certifit.statistics.residual import UNIT

GRID = 2.0**-25  # of the largest entry: differences of such numbers are exact


@dataclass(frozen=True)
class SoftmaxCone:
    """Rows of several classes, y their codes: an inequality for every class that is not the row's own."""

    source: Source
    n_classes: int
    fit_intercept: bool

    @property
    def per_row(self) -> int:
        """Inequalities are numbered row K + class."""
        return self.n_classes

    @property
    def size(self) -> int:
        """Weights and intercepts of all classes but the first."""
        return (self.n_classes - 1) * (self.source.n_features + int(self.fit_intercept))

    def nearest(self, direction: Array) -> Array:
        """The direction on a grid on which differences are exact."""
        unit = GRID * np.ldexp(1.0, np.frexp(np.abs(direction).max(initial=0.0))[1])
        return np.asarray(np.round(direction / unit) * unit)

    def parts(self, direction: Array) -> tuple[Array, Array]:
        """Weights (classes x columns) and intercepts."""
        rest = direction.reshape(self.n_classes - 1, -1)
        whole = np.vstack([np.zeros(rest.shape[1]), rest])
        return (whole[:, :-1], whole[:, -1]) if self.fit_intercept else (whole, np.zeros(self.n_classes))

    def at(self, direction: Array, limit: int) -> RowsAt:
        """The inequalities that a direction fails most."""
        weights, intercepts = self.parts(direction)
        return self.source.reduce(partial(_rows_at, cone=self._facts, V=weights, b=intercepts, limit=limit))

    def spread(self, limit: int) -> RowsAt:
        """Inequalities of rows of every class."""
        return self.source.reduce(partial(_rows_spread, cone=self._facts, limit=limit))

    @property
    def _facts(self) -> tuple[int, bool]:
        return self.n_classes, self.fit_intercept


def _rows_at(run: Block, cone: tuple[int, bool], V: Array, b: Array, limit: int) -> RowsAt:
    n_classes = cone[0]
    worst = None
    for k in range(n_classes):
        rows = _rows_of(run, k)
        if not len(rows):
            continue
        X = Block(rows_where(run.X, _marked(run, rows)), None, None)
        for other in range(n_classes):
            if other == k:
                continue
            sign, ratio = core.exact_signs(X.rows, V[k] - V[other], float(b[k] - b[other]), n_threads())
            counts = count_signs(-ratio, sign, np.abs(sign) < 2, np.ones(len(rows), dtype=bool))
            part = _inequalities(run, cone, rows, -ratio, -ratio >= -NEAR_ZERO, (k, other), counts, limit)
            worst = part if worst is None else worst + part
    return _nothing(run, cone, limit) if worst is None else worst


def _rows_spread(run: Block, cone: tuple[int, bool], limit: int) -> RowsAt:
    total = _nothing(run, cone, limit)
    for k in range(cone[0]):
        rows = _rows_of(run, k)
        bad = -np.argsort(np.argsort(scattered_order(rows + run.first_row))).astype(np.float64)
        for other in range(cone[0]):
            if other != k:
                wanted = np.ones(len(rows), dtype=bool)
                total = total + _inequalities(run, cone, rows, bad, wanted, (k, other), total.counts * 0, limit)
    return total


def _inequalities(
    run: Block, cone: tuple[int, bool], rows: Array, bad: Array, wanted: Array, pair: tuple[int, int], counts: Array,
    limit: int,
) -> RowsAt:  # fmt: skip
    """The worst of some rows of one class against another class."""
    (n_classes, fit_intercept), (k, other) = cone, pair
    worst = np.flatnonzero(wanted)
    worst = worst[smallest(-bad[worst], limit)]
    A = picked_rows(run, rows[worst], fit_intercept)
    signed = np.zeros((len(worst), n_classes, A.shape[1]))
    signed[:, k], signed[:, other] = A, -A
    numbers = (rows[worst] + run.first_row) * n_classes + other
    unknowns = signed[:, 1:].reshape(len(worst), (n_classes - 1) * A.shape[1])
    return RowsAt(unknowns, np.ones(len(worst)), numbers, bad[worst], counts, limit)


def _rows_of(run: Block, k: int) -> Array:
    if run.y is None:
        raise ValueError("Separation is a matter of rows with a target. Got rows without one.")
    counted = run.y == k if run.weight is None else (run.y == k) & (run.weight > 0)
    return np.flatnonzero(counted)


def _marked(run: Block, rows: Array) -> Array:
    seen = np.zeros(run.n_rows, dtype=bool)
    seen[rows] = True
    return seen


def _nothing(run: Block, cone: tuple[int, bool], limit: int) -> RowsAt:
    size = (cone[0] - 1) * (run.X.shape[1] + int(cone[1]))
    none = np.zeros(0)
    return RowsAt(np.zeros((0, size)), none, none.astype(np.int64), none, np.zeros(7, dtype=np.int64), limit)


LARGEST_DENOMINATOR = 1000
MOST_ELIMINATED = 32  # rows of an elimination in fractions
NO_MAXIMUM = "No finite maximum of the likelihood exists"
ADVICE = "Add a penalty (alpha > 0), leave {columns} out, merge rare categories, or gather rows that overlap"


@dataclass(frozen=True)
class Separation:
    """What was found out about a set of rows.

    kind: "complete" (every row is strictly on its side), "quasi-complete" (none is on the wrong side, some are
    strictly on theirs), "none" (proven by `rows` and `multipliers`) or "undecided".
    direction: weights of the columns, and `intercept`; for softmax a row per class. columns: the names of those not 0.
    left_out: columns that the proof of "none" treats as combinations of others, as they are to rounding.
    """

    kind: str
    direction: Array | None = None
    intercept: Any = 0.0
    columns: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()
    multipliers: tuple[float, ...] = ()
    n_strict: int = 0
    n_zero: int = 0
    left_out: tuple[str, ...] = ()

    @property
    def exists(self) -> bool:
        """Whether a separating direction is proven."""
        return self.kind in ("complete", "quasi-complete")

    def sentence(self) -> str:
        """The outcome in words."""
        if self.exists:
            return f"{self.claim()} {self.advice()}."
        if self.kind == "none":
            distinct = list(dict.fromkeys(self.rows))  # of several classes a row may come with several multipliers
            rows = ", ".join(map(str, distinct[:12])) + (", ..." if len(distinct) > 12 else "")
            note = f", treating columns {_listed(self.left_out)} as combinations of others" if self.left_out else ""
            some = f"{len(distinct)} of them ({rows})"
            if not any(self.multipliers):
                return f"No direction separates the rows: {some} hold every weight{note}."
            return f"No direction separates the rows: multiples of {some} cancel, each on its side{note}."
        seen = f" A direction in {self._named()} does so as far as float64 tells." if self.columns else ""
        return f"Whether some direction separates the rows is undecided within rounding.{seen}"

    def advice(self) -> str:
        """What to do about a separating direction."""
        columns = self._named() if len(self.columns) <= 3 else "some of these columns"
        return ADVICE.format(columns=columns)

    def claim(self) -> str:
        """The separating direction, and how many rows it moves."""
        assert self.direction is not None
        if self.direction.ndim == 2:
            moved = "separates the classes"
            if self.kind != "complete":
                moved = "separates some rows from other classes, and none wrongly"
            return f"{NO_MAXIMUM}: a direction in {self._named()} {moved} ({self.kind} separation, signs exact)."
        every = "every row" if self.kind == "complete" else f"{self.n_strict:,} row{'s' * (self.n_strict != 1)}"
        rest = "" if self.kind == "complete" else f" and leaves the other {self.n_zero:,} where they are"
        return (
            f"{NO_MAXIMUM}: the direction {self.formula()} moves {every} to the side of "
            f"the target{rest} ({self.kind} separation, signs exact)."
        )

    def formula(self) -> str:
        """The direction of one score as a sum of columns, the largest first."""
        assert self.direction is not None
        order = np.argsort(-np.abs(self.direction), kind="stable")[: min(len(self.columns), 6)]
        names = dict(zip(np.flatnonzero(self.direction), self.columns, strict=True))
        terms = [f"{self.direction[j]:+.6g} {names[j]}" for j in order]
        if self.intercept:
            terms.append(f"{self.intercept:+.6g}")
        return " ".join(terms + (["..."] if len(self.columns) > len(order) else []))

    def _named(self) -> str:
        return _listed(self.columns)


def separation(
    source: Source, sides: Sides, fit_intercept: bool, candidate: Array | None = None, complete: bool = False
) -> Separation:
    """Whether a direction of the weights, and of the intercept where there is one, separates the rows.

    sides: how the scores may run off, by target (separation.py). candidate: weights and intercept that may do.
    complete: whether only complete separation counts, so that "none" says that there is no complete one.
    """
    return _judged(ScoreCone(source, sides, fit_intercept), source.names, candidate, complete)


def softmax_separation(
    source: Source, n_classes: int, fit_intercept: bool, candidate: Array | None = None
) -> Separation:
    """The same for a score per class, y the codes of the classes; candidate: classes x (weights, intercept).

    A vector added to all classes changes no probability, so the first class has no weights.
    """
    direction = None if candidate is None else (candidate - candidate[0])[1:].ravel()
    return _judged(SoftmaxCone(source, n_classes, fit_intercept), source.names, direction, False)


@one_blas_thread
def _judged(cone: Cone, names: Sequence[str], candidate: Array | None, complete: bool) -> Separation:
    """A search, and what of it can be proven."""
    search = Search(cone, complete).run(candidate)
    if search.multipliers is not None:
        return _overlapping(cone, search, names, complete)
    if search.direction is None:
        return Separation("undecided")
    if search.rows is None:
        plain = _separating(cone, cone.nearest(_rounded(search.direction)), names)
        if plain.kind == "complete":
            return plain
    proven = None
    for direction in _attempts(search):
        proven = _separating(cone, cone.nearest(direction), names)
        if proven.exists and not (complete and proven.kind != "complete"):
            return proven
    return proven or Separation("undecided")


def _rounded(direction: Array) -> Array:
    """The direction in numbers for people: the largest entry 1, four digits, no roundings of 0."""
    scaled = direction / np.abs(direction).max()
    return np.array([float(f"{entry:.4g}") if abs(entry) > 1e-12 else 0.0 for entry in scaled])


def _attempts(search: Found) -> list[Array]:
    """A direction, and the same in small whole numbers: rows that it must not move are then at 0 exactly."""
    direction = search.direction
    assert direction is not None
    simple = None if search.rows is None else _simple(direction, search.rows)
    return [direction] if simple is None else [simple, direction]


def _separating(cone: Cone, direction: Array, names: Sequence[str]) -> Separation:
    """What a direction does, its signs exact: one pass."""
    at = cone.at(direction, 1)
    _, _, _, wrong, zero, right, unknown = (int(count) for count in at.counts)
    weights, intercept = cone.parts(direction)
    kind = "undecided" if wrong or unknown or not right else ("quasi-complete" if zero else "complete")
    columns = tuple(names[int(j)] for j in np.flatnonzero(np.atleast_2d(weights).any(axis=0)))
    return Separation(kind, weights, intercept, columns, n_strict=right, n_zero=zero)


def _simple(direction: Array, rows: RowsAt) -> Array | None:
    """The direction in whole numbers, where its entries are in small ratios; the intercept from a row at 0."""
    has_ones = bool((rows.A[:, -1] == 1).all())
    weights = direction[:-1] if has_ones else direction
    used = np.flatnonzero(weights)
    if not len(used):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        ratios = weights[used] / np.abs(weights[used]).min()
    whole = _whole(ratios) if np.isfinite(ratios).all() else None  # columns of 1e-300 ask for weights beyond float64
    if whole is None:
        return None
    simple = np.zeros_like(direction)
    simple[used] = whole
    if has_ones:
        size = np.abs(rows.A) @ np.abs(direction)
        at_zero = np.abs(rows.A @ direction) <= 1e-7 * size
        if not at_zero.any():
            return None
        row = rows.A[int(np.argmax(at_zero))]
        simple[-1] = float(
            -sum((Fraction(x) * Fraction(w) for x, w in zip(row[used], whole, strict=True)), Fraction(0))
        )
    return simple


def _whole(ratios: Array) -> list[float] | None:
    """Whole numbers in the same ratios, to 1e-6; None where there are no small ones."""
    near = [Fraction(float(ratio)).limit_denominator(LARGEST_DENOMINATOR) for ratio in ratios]
    if any(abs(float(f) - r) > 1e-6 * abs(r) for f, r in zip(near, ratios, strict=True)):
        return None
    common = math.lcm(*(f.denominator for f in near))
    return [float(f * common) for f in near] if common <= LARGEST_DENOMINATOR**2 else None


def _overlapping(cone: Cone, search: Found, names: Sequence[str], complete: bool) -> Separation:
    """Rows with multipliers, where they are proven to be positive."""
    rows, multipliers = search.rows, search.multipliers
    assert rows is not None and multipliers is not None and search.kept is not None
    exact = _cancelling_exactly(rows, multipliers)
    unknowns = [*names, "intercept"] if cone.fit_intercept else names
    left = np.setdiff1d(np.arange(rows.A.shape[1]), search.kept)
    left = left[(rows.A[:, left] != 0).any(axis=0)] if len(left) else left
    if not rows.side.any():
        multipliers = np.zeros(len(multipliers))
    if exact is None and len(left):
        # Columns left out as combinations of others may be none, taken literally: multiples that cancel in the kept
        # columns prove nothing of them.
        exact = _solved_exactly(rows, multipliers)
        if exact is None and _remainder(rows, left, search.kept) > (0 if complete else 1):
            return Separation("undecided")
    if exact is not None:
        multipliers, left = exact, left[:0] if complete else left
    elif not _is_positive(rows, multipliers, search.kept):
        return Separation("undecided")
    return Separation(
        "none",
        rows=tuple(int(row) for row in rows.number // cone.per_row),
        multipliers=tuple(float(m) for m in multipliers / np.abs(multipliers).max(initial=1e-300)),
        left_out=tuple(unknowns[int(j) % len(unknowns)] for j in left),
    )


def _cancelling_exactly(rows: RowsAt, multipliers: Array) -> Array | None:
    """Small whole multipliers whose combination is exactly 0 in every column, where the given ones are near such."""
    moving = rows.side != 0
    if len(multipliers) > 200 or not moving.any() or not (multipliers[moving] > 0).all():
        return None
    whole = _whole(multipliers / np.abs(multipliers).min()) if (multipliers != 0).all() else None
    if whole is None:
        return None
    signed = np.where(moving, rows.side, 1.0)[:, None] * rows.A
    for column in signed.T:
        if sum((Fraction(m) * Fraction(a) for m, a in zip(whole, column.tolist(), strict=True)), Fraction(0)) != 0:
            return None
    return np.array(whole)


def _solved_exactly(rows: RowsAt, multipliers: Array) -> Array | None:
    """Positive multipliers near the given ones whose combination is exactly 0 in every column: rational elimination.

    Rows that are no pivots keep the multipliers given; those of the pivots follow from them.
    """
    moving = rows.side != 0
    if len(multipliers) > MOST_ELIMINATED or not moving.any() or not (multipliers[moving] > 0).all():
        return None
    signed = np.where(moving, rows.side, 1.0)[:, None] * rows.A
    equations = [[Fraction(entry) for entry in column] for column in signed.T.tolist()]
    pivots: list[tuple[int, list[Fraction]]] = []
    while equations:
        equation = equations.pop()
        row = max(range(len(equation)), key=lambda i: abs(equation[i]))
        if equation[row] == 0:
            continue
        unit = [entry / equation[row] for entry in equation]
        equations = [_less(other, unit, row) for other in equations]
        pivots = [(at, _less(other, unit, row)) for at, other in pivots] + [(row, unit)]
    solved = [Fraction(m) for m in multipliers.tolist()]
    free = set(range(len(solved))) - {row for row, _ in pivots}
    for row, unit in pivots:
        solved[row] = -sum((unit[i] * solved[i] for i in free), Fraction(0))
    if not all(m > 0 for m, moves in zip(solved, moving, strict=True) if moves):
        return None
    return np.array([float(m) for m in solved])


def _less(equation: list[Fraction], unit: list[Fraction], row: int) -> list[Fraction]:
    """An equation without the unknown of `row`."""
    times = equation[row]
    return equation if times == 0 else [a - times * b for a, b in zip(equation, unit, strict=True)]


def _remainder(rows: RowsAt, left: Array, kept: Array) -> float:
    """Of columns as combinations of the kept ones in small fractions: the largest remainder, as a share of rounding.

    0: such combinations to the last bit on these rows; up to 1: to the rounding of their entries.
    """
    times = np.linalg.lstsq(rows.A[:, kept], rows.A[:, left], rcond=None)[0] if len(kept) else np.zeros((0, len(left)))
    worst = 0.0
    for j, column in zip(left, times.T, strict=True):
        near = [Fraction(float(t)).limit_denominator(LARGEST_DENOMINATOR) for t in column]
        terms = [(int(k), t) for k, t in zip(kept, near, strict=True) if t]
        for row in rows.A:
            parts = [Fraction(float(row[j])), *(-t * Fraction(float(row[k])) for k, t in terms)]
            apart, size = abs(sum(parts, Fraction(0))), sum(map(abs, parts), Fraction(0))
            worst = max(worst, float(apart / size) / (len(parts) * UNIT) if apart else 0.0)
    return worst


def _is_positive(rows: RowsAt, multipliers: Array, kept: Array) -> bool:
    """Whether multipliers near the given ones cancel exactly in the kept columns, and are positive.

    M m = r small and M of full row rank: m - M^+ r cancels, and |M^+ r| <= |r| / (least singular value of M).
    """
    moving = rows.side != 0
    M = (np.where(moving, rows.side, 1.0)[:, None] * rows.A[:, kept]).T
    M = M * _powers_of_two(np.abs(M).max(axis=1, initial=0.0))[:, None]
    unit = _powers_of_two(np.abs(M).max(axis=0, initial=0.0))
    M, m = M * unit, multipliers / unit
    if M.shape[0] == 0:
        return True  # columns of zeros move no score
    if M.shape[1] < M.shape[0]:
        return False
    u, s, vt = np.linalg.svd(M, full_matrices=False)
    least = s[-1] - 64 * max(M.shape) * UNIT * s[0]
    if least <= 0:
        return False
    for _ in range(2):
        m = m - vt.T @ ((u.T @ (M @ m)) / s)
    left = np.abs(M @ m) + (len(m) + 4) * UNIT * (np.abs(M) @ np.abs(m))
    return bool(m[moving].min(initial=np.inf) > float(np.linalg.norm(left)) / least)


def _powers_of_two(size: Array) -> Array:
    return np.ldexp(1.0, -np.frexp(np.where(size > 0, size, 1.0))[1])


def _listed(names: Sequence[str]) -> str:
    shown = [repr(name) for name in names[:6]] + (["..."] if len(names) > 6 else [])
    return ", ".join(shown)
