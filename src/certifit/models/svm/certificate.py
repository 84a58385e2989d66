"""The certificate of a support vector machine: the duality gap and the conditions of Karush, Kuhn and Tucker.

Multipliers 0 <= a_t <= C_t with sum_t sign_t a_t = 0 give a lower bound. With v_t = -sign_t (f + b - target_t) of
the state, f its function, and f_a that of the multipliers, objective less bound is, in units of alpha,

    sum_t [ C_t max(0, v_t) - a_t v_t ]  +  | f - f_a |^2 / 2        (of squared slacks see `slack.py`)

where every bracket is >= 0, so that nothing cancels. The multipliers are those of the state, brought into their bounds;
where that or a sum that is not 0 changes them, |f - f_a| is bounded by what was changed. Points of a state are rows
with the same numbers, in whatever order; f is summed again from the points in float64, and its rounding is added. Of
many rows it is summed in float32 first, with a bound on how far each is off: rows that are beyond the margin, or within
it with a = C, by more than that add 0 to the gap whatever f is there. The others are summed again in float64.
Imports no solver.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.mathematics.kernels.algebra import Kernel
from certifit.models.certificate import EXACT_FIT_CLAIM, Certificate
from certifit.models.svm.task import FAINT, Machine, MarginState, MarginTask
from certifit.runtime import one_blas_thread
from certifit.statistics.residual import TINY, UNIT, is_exact_fit

SAFETY = 1e-12  # of a gap, for the last roundings
TERMS, PIECES = 1024, 256  # of a sum: at most so many, at least so many are added before they join the others
BOX = 64 * UNIT  # of C_t, whose sum of weights is rounded
CHEAP = 1e-3  # of what is asked: roundings of f below it need no better bound
SHARP = 0.5
PIECE = 4096  # rows at a time
THEOREM = "weak duality: the dual objective at any feasible point is a lower bound"
CLAIM = "relative excess of the objective"


@dataclass(frozen=True)
class MarginCertificate(Certificate):
    """The proof that goes with a support vector machine; of several, the one that says least.

    violation: the worst of the conditions a = 0: v <= 0; 0 < a < C: v = 0; a = C: v >= 0, v = 1 - y f(x) of classes.
    n_zero, n_free, n_bound: how many multipliers are in each of the three cases, of all machines. assumption: what the
    proof rests on where the kernel is not Mercer by construction.
    """

    violation: float = math.inf
    n_zero: int = 0
    n_free: int = 0
    n_bound: int = 0
    assumption: str = ""

    def sentences(self) -> list[str]:
        """The certificate in words."""
        first = super().sentences()[0]
        if self.fault:
            return [first]
        return [
            f"{self.assumption}{first[0].lower() if self.assumption else first[0]}{first[1:]}",
            f"Worst violation of the conditions of the optimum: {self.violation:.1e}. Multipliers at 0: "
            f"{self.n_zero:,}; between: {self.n_free:,}; at their bound: {self.n_bound:,}.",
        ]


@dataclass(frozen=True)
class Judged:
    """What is proven of one machine, in units of alpha. objective: bounds from below and above."""

    gap: float
    rounding: float
    objective: tuple[float, float]
    violation: float
    cases: tuple[int, int, int]

    @property
    def is_sharp(self) -> bool:
        """Whether the bounds on the objective are near each other."""
        return self.objective[0] >= SHARP * self.objective[1]

    def relative(self, null: float) -> tuple[float, float, bool]:
        """The gap and its rounding relative to the objective; whether they are relative to the null model's."""
        is_exact = is_exact_fit(self.objective[1], null)
        scale = max(null if is_exact else self.objective[0] * (1 - SAFETY), TINY)
        return self.gap * (1 + SAFETY) / scale + TINY, self.rounding * (1 + SAFETY) / scale + TINY, is_exact


@dataclass(frozen=True)
class Values:
    """f of a state at the rows, how far rounding can have moved it, bounds on |f|^2, and roots of k(x, x)."""

    f: Array
    off: Array
    norm: tuple[float, float]
    sizes: Array


@dataclass(frozen=True)
class Outside:
    """What of f multipliers do not make: a bound on its norm, and on how much of it is rounding of what they make.

    unbalanced: how far rounding can have moved the sum of sign_t a_t from 0, beside that of the multipliers themselves.
    """

    most: float
    rounding: float
    unbalanced: float = 0.0

    @property
    def beyond_rounding(self) -> float:
        """What rounding does not explain."""
        return max(self.most - self.rounding, 0.0)


def judge(machine: Machine, multipliers: Array, outside: Outside, at: Values, intercept: float) -> Judged:
    """The gap of f and b with these multipliers. outside: of f, what they do not make as they are."""
    row, sign, bound, slack = machine.row, machine.sign, machine.bound, machine.slack
    f = at.f[row] - machine.target
    v = -sign * (f + intercept)
    off = at.off[row] + 4 * UNIT * (np.abs(at.f[row]) + np.abs(machine.target) + abs(intercept))
    a = np.clip(multipliers, 0.0, slack.most(bound) * (1 - BOX))
    changed = np.abs(multipliers - a)
    removed, cost, share = np.zeros(len(a)), 0.0, 0.0
    if machine.has_intercept:
        removed, cost, share = _unbalanced(machine, a, np.abs(v) + off + slack.met(bound, a), outside.unbalanced)
    sizes = at.sizes[row]
    apart = (outside.most + float((changed + removed) @ sizes)) * (1 + SAFETY)
    square = apart * apart  # infinite where it leaves float64, which a power of Python refuses
    beyond = outside.beyond_rounding + (1 - share) * float(removed @ sizes)

    exact = slack.bracket(bound, a, v)
    terms = np.maximum(slack.bracket(bound, a, v - off), slack.bracket(bound, a, v + off))
    # A product below the smallest normal number may have lost all its bits.
    is_product = (bound > 0) & ((v + off > 0) | (a > 0) & (np.abs(v) + off > 0))
    faint = TINY * np.count_nonzero(is_product & (terms < TINY))
    lost = (len(a) + 4) * UNIT * float(terms.sum()) + faint
    gap = float(terms.sum()) + lost + cost + square / 2
    rounding = float((terms - exact).sum()) + lost + share * cost + (square - beyond * beyond) / 2
    low = at.norm[0] / 2 + float(slack.cost(bound, v - off).sum())
    high = at.norm[1] / 2 + float(slack.cost(bound, v + off).sum()) + faint
    return Judged(max(gap, 0.0), max(rounding, 0.0), (low, high), *_conditions(machine, multipliers, v))


def _unbalanced(machine: Machine, a: Array, most: Array, rounding: float) -> tuple[Array, float, float]:
    """What has to be taken from multipliers of the heavier sign to make the sum 0, and what that costs at most.

    At last the share of it that rounding explains: of the multipliers, and of what they were made from.
    """
    removed = np.zeros(len(a))
    with np.errstate(over="ignore"):
        if not np.isfinite(a.sum()):
            return removed, math.inf, 1.0
    excess = math.fsum((machine.sign * a).tolist())
    if excess == 0:
        return removed, 0.0, 0.0
    share = min((BOX * float(a.sum()) + rounding) / abs(excess), 1.0)
    heavy = np.flatnonzero((machine.sign > 0) == (excess > 0))
    heavy = heavy[np.argsort(-a[heavy], kind="stable")]
    before = np.concatenate([[0.0], np.cumsum(a[heavy])[:-1]])
    removed[heavy] = np.clip(abs(excess) * (1 + 4 * UNIT) - before, 0.0, a[heavy])
    removed *= 1 + (len(heavy) + 8) * UNIT  # for the sums before it
    return removed, float(removed @ most) * (1 + SAFETY), share


def _conditions(machine: Machine, multipliers: Array, v: Array) -> tuple[float, tuple[int, int, int]]:
    """The worst violation of the three cases, and how many multipliers are in each."""
    most = machine.slack.most(machine.bound)
    is_zero = multipliers <= FAINT * np.where(np.isfinite(most), most, 0.0)
    is_full = ~is_zero & (multipliers >= most * (1 - FAINT))
    is_free = ~is_zero & ~is_full
    off = np.where(is_zero, v, np.where(is_full, -v, np.abs(v - machine.slack.met(machine.bound, multipliers))))
    return float(np.maximum(off, 0.0).max(initial=0.0)), (int(is_zero.sum()), int(is_free.sum()), int(is_full.sum()))


# A state on rows


@dataclass(frozen=True)
class Matched:
    """Rows of a task in groups of the same numbers, each named by its first row, and the group of every point.

    A point that is no row has group -1. sizes: roots of k(x, x) of the points.
    """

    group: Array
    of_points: Array
    sizes: Array


@np.errstate(all="ignore")  # far states: what is infinite or not a number proves nothing
@one_blas_thread
def certify(task: MarginTask, state: MarginState, tolerance: float) -> MarginCertificate:
    """How far the objective of any of the machines can be above its least."""
    return joined(
        judge_state(task, state, tolerance), [machine.null for machine in task.machines], tolerance, assumption_of(task)
    )


def judge_state(task: MarginTask, state: MarginState, tolerance: float) -> list[Judged]:
    """What is proven of every machine."""
    matched = _matched(task, state.points)
    if not task.in_float64:
        judged = _judge(task, state, 0, tolerance, matched, is_near=True)
        if judged.is_sharp and judged.relative(task.machines[0].null)[0] <= tolerance:
            return [judged]
    return [_judge(task, state, p, tolerance, matched) for p in range(len(task.machines))]


def _judge(
    task: MarginTask, state: MarginState, p: int, tolerance: float, matched: Matched, *, is_near: bool = False
) -> Judged:
    at, multipliers, outside = judge_values(task, state, p, tolerance, matched, is_near=is_near)
    return judge(task.machines[p], multipliers, outside, at, float(state.intercepts[p]))


def judge_values(
    task: MarginTask,
    state: MarginState,
    p: int,
    tolerance: float,
    matched: Matched | None = None,
    *,
    is_near: bool = False,
) -> tuple[Values, Array, Outside]:
    """f of a machine, the multipliers of its variables, and a bound on what of f they do not make.

    is_near: of the only machine, whose f is in float64 only where the gap hangs on it.
    """
    matched = _matched(task, state.points) if matched is None else matched
    machine, c, b = task.machines[p], task.rows.seen_of(state.dual)[:, p], float(state.intercepts[p])
    bounds = machine.bound[np.isfinite(machine.bound)]
    needed = tolerance / max(float(bounds.sum()), 1.0)

    def made(f: Array) -> tuple[Array, Outside]:
        return _multipliers(machine, c, matched, f, task.sizes, b)

    if is_near:
        f, off = task.near_values(state.points, state.dual, lambda f, off: machine.open_rows(made(f)[0], f, off, b))
    else:
        f, off = task.values(state.points, state.dual)[:, p], np.zeros(task.rows.n_points)
    return _at(task, state.points, c, f, off, matched, needed), *made(f)


def joined(judged: list[Judged], null: list[float], tolerance: float, assumption: str = "") -> MarginCertificate:
    """The certificate of the machine that is least sure; violations and counts are those of all."""
    value, rounding, is_exact = max(one.relative(level) for one, level in zip(judged, null, strict=True))
    zero, free, full = (sum(one.cases[case] for one in judged) for case in range(3))
    return MarginCertificate(
        claim=EXACT_FIT_CLAIM if is_exact else CLAIM,
        theorem=THEOREM,
        value=float(value),
        tolerance=tolerance,
        rounding=float(rounding),
        violation=max(one.violation for one in judged),
        n_zero=zero,
        n_free=free,
        n_bound=full,
        assumption=assumption,
    )


@np.errstate(all="ignore")
@one_blas_thread
def certify_arrays(
    kernel: Kernel, X: Array, machine: Machine, multipliers: Array, intercept: float, tolerance: float
) -> MarginCertificate:
    """The certificate of multipliers and an intercept from anywhere: f = sum_t sign_t a_t k(x_t, .).

    machine: `of_classes(y, np.arange(n), C)` or `of_numbers(y, epsilon, C)`, C_i = weight_i / (alpha sum of weights).
    """
    c = np.bincount(machine.row, machine.sign * multipliers, len(X))
    f = kernel.times(X, X, c[:, None])[:, 0]
    sizes = np.sqrt(np.maximum(kernel.diagonal(X), 0.0))
    off = _rounding(np.abs(c), sizes, sizes) + kernel.error_times(X, X, np.abs(c))
    at = Values(f, off, _norm(c, f, off), sizes)
    return joined([judge(machine, multipliers, Outside(0.0, 0.0), at, intercept)], [machine.null], tolerance)


def assumption_of(task: MarginTask) -> str:
    """What a proof rests on where the kernel is not Mercer by construction."""
    if task.rows.is_proven:
        return ""
    smallest = task.rows.tested.smallest
    return f"If the kernel is Mercer, which these rows do not refute (smallest eigenvalue {smallest:.1e}): "


def _rounding(size: Array, sizes: Array, of_points: Array) -> Array:
    """Of a sum of n terms in pieces of TERMS; |k(x, z)|^2 <= k(x, x) k(z, z)."""
    unit = (min(len(size), TERMS) + len(size) / PIECES + 8) * UNIT
    return np.asarray(unit * sizes * float(of_points @ size))


def _norm(c: Array, f: Array, off: Array) -> tuple[float, float]:
    """Bounds on c'Kc, f = Kc at the points."""
    square, size = float(c @ f), np.abs(c)
    error = float(size @ off) + (len(c) + 4) * UNIT * float(size @ np.abs(f))
    return max(square - error, 0.0), max(square + error, 0.0)


def _at(task: MarginTask, points: Array, c: Array, f: Array, short: Array, matched: Matched, needed: float) -> Values:
    """f at the rows with its rounding: a bound that costs little where it is small next to `needed` times |f|^2.

    short: how far float32 can have moved f.
    """
    rows, size, is_row = task.rows, np.abs(c), matched.of_points >= 0
    at_points = f[matched.of_points] if is_row.all() else _at_points(task, points, c)
    off = short + _rounding(size, task.sizes, matched.sizes)
    if rows.kernel is not None:
        entry = rows.kernel.entry_error(rows.points, points) * float(size.sum())
        is_small = entry <= CHEAP * needed * max(float(c @ at_points), 0.0)
        off = off + (entry if is_small else rows.error_times(points, size))
    of_points = off[matched.of_points]
    if not is_row.all():
        assert rows.kernel is not None
        of_points = rows.kernel.error_times(points, points, size) + _rounding(size, matched.sizes, matched.sizes)
    return Values(f, off, _norm(c, at_points, of_points), task.sizes)


def _at_points(task: MarginTask, points: Array, c: Array) -> Array:
    """f at the points of a state, some of which are no rows."""
    assert task.rows.kernel is not None
    return np.asarray(task.rows.kernel.times(points, points, c[:, None])[:, 0])


def _matched(task: MarginTask, points: Array) -> Matched:
    """Which rows have the same numbers, and which are the points of a state."""
    rows = task.rows
    if rows.kernel is None:
        every = np.arange(rows.n_points)
        return Matched(every, every, task.sizes)
    keys, of_points = row_keys(rows.points), row_keys(points)
    known, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    group = first[inverse.reshape(-1)]
    later = np.flatnonzero(group != np.arange(len(keys)))
    other = later[~_are_same(rows.points, group[later], rows.points, later)]
    group[other] = other
    at = first[np.minimum(np.searchsorted(known, of_points), len(known) - 1)]
    is_row = _are_same(rows.points, at, points, np.arange(len(points)))
    return Matched(group, np.where(is_row, at, -1), rows.sizes(points))


def _are_same(A: Array, of_a: Array, B: Array, of_b: Array) -> Array:
    """Whether these rows of A are those of B, some at a time."""
    cuts = range(0, len(of_a), PIECE)
    parts = [(A[of_a[cut : cut + PIECE]] == B[of_b[cut : cut + PIECE]]).all(axis=1) for cut in cuts]
    return np.concatenate([np.zeros(0, dtype=bool), *parts])


def row_keys(X: Array) -> Array:
    """A number of 64 bits per row, the same for the same numbers."""
    rng = np.random.default_rng(0)
    factors = 2 * rng.integers(1 << 62, size=X.shape[1], dtype=np.uint64) + 1
    keys = np.zeros(len(X), dtype=np.uint64)
    for begin in range(0, len(X), PIECE):
        piece = np.ascontiguousarray(X[begin : begin + PIECE] + 0.0).view(np.uint64)
        mixed = (piece ^ (piece >> np.uint64(29))) * factors
        keys[begin : begin + PIECE] = (mixed ^ (mixed >> np.uint64(32))).sum(axis=1, dtype=np.uint64)
    return keys


def _multipliers(
    machine: Machine, c: Array, matched: Matched, f: Array, sizes: Array, intercept: float
) -> tuple[Array, Outside]:
    """Multipliers of the variables that make the coefficients of the points, and a bound on what is left of f.

    Rows with the same numbers share a coefficient: those of larger slack are filled first.
    """
    is_row, n = matched.of_points >= 0, len(matched.group)
    outside = float(np.abs(c[~is_row]) @ matched.sizes[~is_row])
    total = np.stack(
        [np.bincount(matched.of_points[is_row], np.maximum(side * c[is_row], 0.0), n) for side in (1.0, -1.0)]
    )
    group = matched.group[machine.row]
    is_up = machine.sign > 0
    wanted = np.where(is_up, total[0][group], total[1][group])
    v = -machine.sign * (f[machine.row] + intercept - machine.target)
    order = np.lexsort((-v, is_up, group))
    a = np.zeros(len(group))
    bound = np.where(np.isfinite(machine.bound), machine.bound, wanted)[order]
    a[order] = _filled(wanted[order], bound, 2 * group[order] + is_up[order])
    made = np.stack([np.bincount(group[side], a[side], n) for side in (is_up, ~is_up)])
    summed = np.where(total == made, 0.0, 4 * UNIT * total)
    left = np.where(total == made, 0.0, np.abs(total - made) + summed)
    most = (outside + float(left.sum(axis=0) @ sizes)) * (1 + SAFETY)
    return a, Outside(most, min(BOX * float(total.sum(axis=0) @ sizes), most))


def _filled(wanted: Array, bound: Array, key: Array) -> Array:
    """What each takes of `wanted`, which all of the same key share, the first as much as its bound lets it."""
    is_first = np.concatenate([[True], key[1:] != key[:-1]])
    summed = np.cumsum(bound) - bound
    start = np.maximum.accumulate(np.where(is_first, np.arange(len(key)), 0))
    before = np.where(is_first, 0.0, summed - summed[start])
    return np.asarray(np.clip(wanted - before, 0.0, bound))
