"""Support vector machines by large working sets: rows of the kernel in float32, refreshed in float64.

The core picks the multipliers that violate the conditions of the optimum most, a thousand at a time, takes steps of
two of them on their own matrix, then adds the rows of the kernel of what changed. When it is done f is computed again
in float64: where the gap is still too wide, it continues from there, more exactly; where float32 no longer helps,
in float64.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from certifit.data.columns import Array
from certifit.mathematics.kernels.basic import Formed, Gaussian
from certifit.mathematics.kernels.short import SHORT_UNIT, short_share, short_sums
from certifit.minimise.steps import Steps
from certifit.models.kernel.task import KernelRows
from certifit.models.svm.interior import NEAR, CentralPath, Products, rounded
from certifit.models.svm.polish import can_polish, kernel_among, polished
from certifit.models.svm.task import Machine, MarginRun, MarginState, MarginTask
from certifit.runtime import check_memory, core, n_threads, one_blas_thread

WORKING_SET = 1024
DEPTH = 192  # columns whose products the core adds before they join the others, `cpp/margin/pool.hpp`
CHEAP = 64  # columns: a row of the kernel of so few is made again rather than kept
VIOLATION = 1e-3  # of the conditions, to begin with
CLOSER = 0.25
ENOUGH = 0.5  # of tol: the certificate adds its roundings
PROGRESS = 0.5  # a refresh after which more than this share of the violation is left was of no use
SINGLE = (1e-15, 1e15)  # the largest k(x, x) that float32 is used for
MOST_OFF = 0.1  # that an exponent may be off in float32
LEAST_SINGLE = 1e-4  # a violation that rows in float32 still tell from rounding
MOST_REFRESHES = 60
RISE = 1e-13  # of the dual: less is rounding
MOST_FLAT = 10  # rounds in which the dual rises by rounding only
WINDOW = 100  # rounds over which the rise of the dual is looked at
TOO_SLOW = 1e-6  # of the gap: a dual that rises by less in so many rounds will not close it
SHARPENED = 3  # linear systems at the end
ROUNDING = 1e-14  # a violation that no further system lowers
MOST_SIDE = 1000  # rows of a machine that an interior point method may solve
MANY = 100  # steps per multiplier after which it does
MOST_INSIDE = 100  # steps of that method
INSIDE = 1e-3  # of tol: where it ends


@cache
def _gemm(is_single: bool) -> object:
    from scipy.linalg import cython_blas

    capsules: dict[str, object] = cython_blas.__pyx_capi__
    return capsules["sgemm" if is_single else "dgemm"]


class Pool:
    """Rows of the matrix of a kernel among some rows, as many of them kept as fit into so many bytes.

    Rows of few columns are made as fast as memory is handed out: they are kept only where several fits share them.
    matrix: the whole of it, where it is known.
    """

    def __init__(
        self,
        rows: KernelRows,
        places: Array,
        cache_bytes: float,
        *,
        is_shared: bool = False,
        matrix: Array | None = None,
    ) -> None:
        self._form: tuple[str, float, int] = ("linear", 0.0, 1)
        self._points: Array | None = None
        self._matrix = matrix
        kernel, n = rows.kernel, len(places)
        is_all = n == rows.n_points
        if matrix is None and isinstance(kernel, Formed):
            points = rows.points if is_all else rows.points[places]
            self._form, self._points = kernel.form, kernel.prepared(points, points)[0]
        elif matrix is None:
            self._matrix = rows.matrix if is_all else np.ascontiguousarray(rows.matrix[np.ix_(places, places)])
        self.n, self.cache_bytes, self._is_gaussian = n, cache_bytes, isinstance(kernel, Gaussian)
        self.keeps_rows = is_shared or rows.points.shape[1] > CHEAP
        largest = float(rows.sizes(rows.points).max(initial=0.0)) ** 2
        self.is_single = SINGLE[0] < largest < SINGLE[1] and not self._is_far
        self._pool: object | None = None

    @property
    def _is_far(self) -> bool:
        """Whether a Gaussian of rows so far from 0 has no digits in float32."""
        if not self._is_gaussian or self._points is None:
            return False
        square = float(np.einsum("ij,ij->i", self._points, self._points).max(initial=0.0))
        return not square * (min(self._points.shape[1], DEPTH) + 8) * SHORT_UNIT < MOST_OFF

    def widened(self) -> Pool:
        """The same rows in float64; others that share this pool keep theirs."""
        if not self.is_single:
            return self
        wide = copy(self)
        wide.is_single, wide._pool = False, None
        return wide

    @property
    def _n_kept(self) -> int:
        """How many rows may be kept."""
        row = self.n * (4 if self.is_single else 8)
        return min(int(self.cache_bytes / row), self.n) if self.keeps_rows else 0

    def sums(self, rows: Array, c: Array) -> tuple[Array, Array] | None:
        """f at all rows in float32, and how far each can be off; None where rows of the matrix were not all kept."""
        if self._points is None or not (self._is_gaussian and self.is_single and self._n_kept == self.n):
            return None
        d, squares = self._points.shape[1], np.einsum("ij,ij->i", self._points, self._points)
        share = short_share(squares, float(squares.max(initial=0.0)), min(d, DEPTH) + d // DEPTH + 1, len(c))
        if share is None:
            return None

        def summed(at: Array, part: Array) -> Array:
            return np.asarray(
                core.margin_add(self.pool, rows[at].astype(np.uint32), part, np.zeros(self.n), n_threads())
            )

        return short_sums(c, share, summed)

    @property
    def pool(self) -> object:
        """The rows in the core."""
        if self._pool is None:
            if self._matrix is not None:
                self._pool = core.margin_given_pool(self.is_single, np.ascontiguousarray(self._matrix))
            else:
                row, kept = self.n * (4 if self.is_single else 8), self._n_kept
                check_memory(float(kept) * row, f"A cache of {kept:,} rows of a kernel", "Lower cache_size.")
                self._pool = core.margin_pool(_gemm(self.is_single), self.is_single, *self._form, self._points, kept)
        return self._pool


@dataclass(frozen=True)
class Solved:
    """Multipliers of a machine, f at the rows of its pool, its intercept, and why it did not converge."""

    a: Array
    f: Array
    intercept: float
    reason: str


class Recorder:
    """The steps of all machines of a task, in the unit of the loss; of a hard margin |f|^2 / 2."""

    def __init__(self, alpha: float | None) -> None:
        self.steps = Steps(first=1)
        self.unit = 1.0 if alpha is None else alpha
        self.machine = 0

    def add(self, primal: float, dual: float, violation: float, **more: float) -> None:
        """One more step; an objective that is infinite, of constraints not met yet, is not known."""
        objective = self.unit * primal if np.isfinite(primal) else np.nan
        row = self.steps.add(objective, dual=self.unit * dual, machine=self.machine, violation=violation)
        row.update(more)

    def add_last(self, end: str, gap: float, primal: float, violation: float) -> None:
        """The round of a machine that the core has "solved", which it left to be measured with f summed again."""
        if end == "solved":
            self.add(primal, primal - max(gap, 0.0), violation)


@one_blas_thread
def solve(task: MarginTask, tol: float, max_iter: int, cache_bytes: float) -> MarginRun:
    """The optimum of every machine of a task."""
    record = Recorder(task.alpha)
    solved = []
    for number, machine in enumerate(task.machines, start=1):
        record.machine = number
        solved.append(solve_machine(task, machine, tol, max_iter, cache_bytes, record))
    return run_of(task, solved, record)


def run_of(task: MarginTask, solved: list[Solved], record: Recorder) -> MarginRun:
    """The functions of all machines, by the rows that any of them has a multiplier of."""
    n = task.rows.n_points
    dual = np.stack(
        [np.bincount(m.row, m.sign * one.a, n) for m, one in zip(task.machines, solved, strict=True)], axis=1
    )
    support = np.flatnonzero(dual.any(axis=1))
    intercepts = np.array([one.intercept for one in solved])
    reason = record.steps.reason or next((one.reason for one in solved if one.reason), "")
    history = record.steps.rows
    if task.rows.kernel is None:
        return MarginRun(
            MarginState(task.rows.kept(), task.rows.on_every_row(dual), intercepts), history, reason, None, support
        )
    points, dual = task.remembered(support, np.ascontiguousarray(dual[support]))
    return MarginRun(MarginState(points, dual, intercepts), history, reason, None, support)


@dataclass
class Progress:
    """A machine on the way: multipliers, and f at its rows as far as it is known."""

    a: Array
    f: Array
    violation: float = np.inf
    set: Array = field(default_factory=lambda: np.zeros(0, dtype=np.uint32))


@dataclass
class Rise:
    """How the dual rises from round to round: whether it still does, and fast enough to close the gap."""

    best: float = -np.inf
    before: float = -np.inf  # the best at the start of the window
    n_rounds: int = 0
    n_flat: int = 0
    is_over: bool = False

    def add(self, primal: float, dual: float) -> None:
        """One more round; an objective that is not known yet says nothing of the gap."""
        self.n_rounds += 1
        self.n_flat = 0 if not dual <= self.best + RISE * abs(self.best) else self.n_flat + 1
        self.best = max(self.best, dual)
        self.is_over = self.n_flat > MOST_FLAT
        if self.n_rounds % WINDOW == 0:
            is_slow = np.isfinite(primal) and self.best - self.before < TOO_SLOW * (primal - self.best)
            self.is_over, self.before = self.is_over or bool(is_slow), self.best


def solve_machine(
    task: MarginTask,
    machine: Machine,
    tol: float,
    max_iter: int,
    cache_bytes: float,
    record: Recorder,
    pool: Pool | None = None,
    start: tuple[Array, Array] | None = None,
    *,
    is_exact: bool = True,
) -> Solved:
    """The optimum of one machine.

    pool: of all rows, where machines share one; None is one of the rows of the machine. start: multipliers, and f of
    them at the rows of the pool. is_exact: f is computed again in float64; without it, f has the six digits of the rows
    in float32.
    """
    places, local = np.arange(task.rows.n_points), machine.row
    if pool is None:
        places, local = np.unique(machine.row, return_inverse=True)
        local = local.reshape(-1).astype(np.uint32)
        pool = Pool(task.rows, places, cache_bytes)
    at = Progress(np.zeros(len(local)), np.zeros(len(places))) if start is None else Progress(*start)
    is_bounded = bool(np.isfinite(machine.bound).all())
    can_step = len(places) <= MOST_SIDE and is_bounded
    enough = VIOLATION * machine.unit
    # f of many columns in float64 takes as long as hundreds of rounds: a few more of these spare a second time.
    first = enough * (CLOSER if is_exact and task.rows.points.shape[1] > CHEAP else 1.0)
    closeness, left, reason = first, max_iter, ""
    for _ in range(MOST_REFRESHES):
        end, rise = "pause", Rise()
        while end == "pause" and not record.steps.is_over:
            arrays = (local, machine.sign, machine.target, machine.bound, at.a, at.f, at.set)
            limits = (machine.has_intercept, closeness, left, 1, WORKING_SET, is_exact and is_bounded, n_threads())
            at.a, at.f, trace, end, at.set = core.margin_solve(pool.pool, *arrays, *limits)
            for primal, dual, violation, n_steps in trace.tolist():
                record.add(primal, dual, violation)
                left -= int(n_steps)
                rise.add(primal, dual)
            end = "stalled" if rise.is_over and end == "pause" else end
            if end == "pause" and can_step and max_iter - left > MANY * len(local):
                end = "slow"
        if is_exact or not pool.is_single:
            at.f = refreshed(task, machine, places, at.a, pool if closeness >= first else None)
        gap, primal, violation = measured(machine, local, at.a, at.f)
        record.add_last(end, gap, primal, violation)
        is_close = gap <= ENOUGH * tol * primal
        if record.steps.is_over or (is_close and violation <= max(enough, closeness)):
            break
        if end == "slow" or (can_step and end == "stalled"):
            reason = step_inside(task, machine, places, local, at, tol, record)
            violation = measured(machine, local, at.a, at.f)[2]
            break
        if left <= 0 or end == "limit":
            reason = f"max_iter = {max_iter:,} steps were not enough. Raise max_iter, or alpha, or standardise columns."
            break
        closeness = closeness if is_close else min(closeness, violation) * CLOSER
        is_stuck = not violation <= PROGRESS * at.violation or end == "stalled"
        at.violation = violation
        if is_stuck or (is_exact and closeness < LEAST_SINGLE * machine.unit):
            if is_stuck and not pool.is_single:
                reason = "Rounding in float64 prevents more. Raise alpha, or standardise columns."
                break
            pool = pool.widened()
    if is_exact and not record.steps.is_over:
        sharpen(task, machine, places, local, at, violation)
    return Solved(at.a, at.f, intercept_of(machine, local, at.a, at.f), reason)


def step_inside(
    task: MarginTask, machine: Machine, places: Array, local: Array, at: Progress, tol: float, record: Recorder
) -> str:
    """An interior point method, where pairs take too long; why it did not converge."""
    inside = replace(machine, row=local)
    path = CentralPath(Products.of(kernel_among(task, places)), inside)
    gap, primal, _ = measured(machine, local, at.a, at.f)
    for _ in range(MOST_INSIDE):
        is_open = path.step()
        for near in (0.0, *NEAR[::-1]):  # the widest that the gap allows
            a = rounded(machine, path.a, near)
            f = refreshed(task, machine, places, a)
            new, value, violation = measured(machine, local, a, f)
            if not new <= max(gap, INSIDE * tol * value):
                break
            gap, primal, at.a, at.f = min(gap, new), value, a, f
        record.add(primal, primal - gap, violation)
        if gap <= INSIDE * tol * primal or not is_open or record.steps.is_over:
            break
    return "" if gap <= tol * primal else "Rounding in float64 prevents more. Raise alpha, or standardise columns."


def sharpen(task: MarginTask, machine: Machine, places: Array, local: Array, at: Progress, violation: float) -> None:
    """Steps to the rounding floor where that costs little; kept where the conditions are met better."""
    for _ in range(SHARPENED):
        if violation <= ROUNDING * machine.unit or not can_polish(machine, at.a):
            return
        a = polished(machine, local, at.a, at.f, lambda rows: kernel_among(task, places[rows]))
        f = refreshed(task, machine, places, a)
        before, violation = violation, measured(machine, local, a, f)[2]
        if not violation < before:
            return
        at.a, at.f = a, f


@np.errstate(over="ignore", invalid="ignore")  # multipliers that leave float64 are not taken: the gap is no number
def refreshed(task: MarginTask, machine: Machine, places: Array, a: Array, pool: Pool | None = None) -> Array:
    """f at the rows of a machine, in float64; with a pool of rows only where the certificate will want it so."""
    dual = np.bincount(machine.row, machine.sign * a, task.rows.n_points)[:, None]
    if task.rows.kernel is None:
        return np.asarray(task.rows.times(task.rows.points, dual)[places, 0])
    support = np.flatnonzero(dual)
    if task.rows.few_values is not None:
        return np.asarray(task.rows.few_values[np.ix_(places, support)] @ dual[support, 0])
    points, dual = task.remembered(support, np.ascontiguousarray(dual[support]))
    if len(task.machines) == 1 and len(places) == task.rows.n_points:
        if pool is not None:
            return task.near_values(
                points,
                dual,
                lambda f, off: machine.open_rows(a, f, off, intercept_of(machine, machine.row, a, f)),
                lambda: pool.sums(support, dual[:, 0]),
            )[0]
        return task.values(points, dual)[:, 0]
    return np.asarray(task.rows.kernel.times(task.rows.points[places], points, dual)[:, 0])


def ends(machine: Machine, local: Array, a: Array, f: Array) -> tuple[float, float]:
    """The least F of the multipliers that may rise in sign a, and the largest of those that may fall."""
    F = f[local] - machine.target
    is_up, can_grow, can_shrink = machine.sign > 0, a < machine.bound, a > 0
    rises, falls = np.where(is_up, can_grow, can_shrink), np.where(is_up, can_shrink, can_grow)
    if not machine.has_intercept:
        return min(float(F[rises].min(initial=0.0)), 0.0), max(float(F[falls].max(initial=0.0)), 0.0)
    return float(F[rises].min(initial=np.inf)), float(F[falls].max(initial=-np.inf))


def intercept_of(machine: Machine, local: Array, a: Array, f: Array) -> float:
    """b of the free multipliers; the midpoint of what the conditions allow where there are none."""
    if not machine.has_intercept:
        return 0.0
    is_free = (a > 0) & (a < machine.bound)
    if is_free.any():
        return -float(np.mean((f[local] - machine.target)[is_free]))
    low, high = ends(machine, local, a, f)
    return -(low + high) / 2 if np.isfinite(low) and np.isfinite(high) else -float(np.clip(0.0, high, low))


@np.errstate(over="ignore", invalid="ignore")  # far states: what leaves float64 ends the steps
def measured(machine: Machine, local: Array, a: Array, f: Array) -> tuple[float, float, float]:
    """Gap, objective and violation of the conditions, in units of alpha.

    Without bounds on the multipliers f and b are scaled to meet every constraint, and the multipliers to their best.
    """
    low, high = ends(machine, local, a, f)
    violation = max(high - low, 0.0) if np.isfinite(high - low) else 0.0
    square = float((machine.sign * a) @ f[local])
    if np.isinf(machine.bound).any():
        least = float((machine.sign * (f[local] + intercept_of(machine, local, a, f))).min())
        if not (least > 0 and square > 0):
            return np.inf, 0.0, violation
        primal, total = square / least / least / 2, float(a.sum())
        return primal - total / square * total / 2, primal, violation
    v = -machine.sign * (f[local] - machine.target + intercept_of(machine, local, a, f))
    is_over = v > 0
    slack = float(machine.bound[is_over] @ v[is_over])
    gap = slack - float(a @ v)
    return gap, square / 2 + slack, violation
