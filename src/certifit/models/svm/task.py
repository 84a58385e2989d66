"""Support vector machines on gathered rows: what is minimised, and its dual.

    alpha/2 |f|^2 + sum_i s_i xi_i,    s_i the weights of the rows, of sum 1

A machine has a slack of every variable t: a row, a sign and a target,

    xi_t = max(0, -sign_t (f(x_row) + b - target_t))

Two classes: one variable per row, sign and target y = -1 or 1, so that xi = max(0, 1 - y (f + b)). Numbers: two per
row, sign 1 with target y - epsilon and sign -1 with target y + epsilon. With C_t = s_t / alpha the dual is

    maximise  sum_t sign_t target_t a_t - c'Kc / 2,   0 <= a_t <= C_t,   sum_t sign_t a_t = 0 (with an intercept)

where c_i is the sum of sign_t a_t over the variables of row i, and f = sum_i c_i k(x_i, .).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.mathematics.kernels.basic import Formed
from certifit.minimise.problem import Run
from certifit.models.kernel.task import KernelRows
from certifit.models.svm.slack import HINGE, Slack
from certifit.runtime import FEWER_CLASSES, announce_work, check_memory
from certifit.statistics.moments import target_sums

ONE_VS_ONE, ONE_VS_REST = "one-vs-one", "one-vs-rest"
FAINT = 1e-12  # of C: a multiplier nearer to its bound is on it
MANY_VALUES = 10_000_000  # of the kernel, from which f is summed in float32 first
MOST_ROWS = (
    0.6  # of the rows wanted that are support vectors, from which half of the matrix of these rows is fewer values
)
MACHINE_BYTES, ENTRY_BYTES = 1000.0, 28.0  # what a machine holds, and what it holds per row
MACHINE_SECONDS = 5e-4  # of a machine of some rows


@dataclass(frozen=True)
class MarginState:
    """Functions f_p(x) + b_p by the points that they keep; of a precomputed kernel there are none.

    dual: c of the points, a column per machine.
    """

    points: Array
    dual: Array
    intercepts: Array


@dataclass(frozen=True)
class MarginRun(Run[MarginState]):
    """A run, with the places of the support vectors among the rows of positive weight."""

    support: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


@dataclass(frozen=True)
class Machine:
    """The variables of one machine: the places of their rows, signs, targets, and the bounds C of their multipliers."""

    row: Array
    sign: Array
    target: Array
    bound: Array
    has_intercept: bool
    slack: Slack = HINGE

    @cached_property
    def unit(self) -> float:
        """The size of the targets: 1 of classes."""
        return float(np.abs(self.target - np.median(self.target)).max(initial=0.0)) or 1.0

    @property
    def null(self) -> float:
        """The least sum of costs of any constant, f = 0; without an intercept that of 0."""
        if not self.has_intercept:
            return float(self.slack.cost(self.bound, self.sign * self.target).sum())
        if self.slack.is_squared:  # of classes: between -1 and 1 all rows have slack
            above, below = (float(self.bound[self.sign == side].sum()) for side in (1.0, -1.0))
            return 4 * above * (below / (above + below))
        at = np.unique(self.target)  # the sum is convex and linear between the targets
        low, high = 0, len(at) - 1
        while high - low > 2:
            third = (high - low) // 3
            left, right = low + third, high - third
            low, high = (low, right) if self._slack(at[left]) <= self._slack(at[right]) else (left, high)
        return min(self._slack(level) for level in at[low : high + 1])

    def _slack(self, level: float) -> float:
        return float(self.bound @ np.maximum(-self.sign * (level - self.target), 0.0))

    def open_rows(self, a: Array, f: Array, off: Array, intercept: float) -> Array:
        """Rows where f may be off by so much that what they add to the duality gap is not known: a flag per row."""
        v, by = -self.sign * (f[self.row] + intercept - self.target), off[self.row]
        brackets = [self.slack.bracket(self.bound, a, v + side * by) for side in (-1, 0, 1)]
        is_open = np.maximum(brackets[0], brackets[2]) - brackets[1] > FAINT * self.bound * by
        rows = np.zeros(len(f), dtype=bool)
        rows[self.row[is_open]] = True
        return rows


def of_classes(y: Array, rows: Array, bound: Array, has_intercept: bool = True) -> Machine:
    """A machine of two classes, y = -1 or 1."""
    return Machine(rows.astype(np.uint32), y, y, bound, has_intercept)


def of_numbers(y: Array, epsilon: float, bound: Array, has_intercept: bool = True) -> Machine:
    """A machine of numbers that may be off by epsilon."""
    rows = np.arange(len(y), dtype=np.uint32)
    sign = np.repeat([1.0, -1.0], len(y))
    target = np.concatenate([y - epsilon, y + epsilon])
    return Machine(np.concatenate([rows, rows]), sign, target, np.concatenate([bound, bound]), has_intercept)


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    """Every two classes, the first of them y = -1."""
    return list(combinations(range(n_classes), 2))


def class_machines(codes: Array, bound: Array, n_classes: int, multi_class: str, has_intercept: bool) -> list[Machine]:
    """The machines of two or more classes. Every one has the C of all rows, whatever rows it sees."""
    in_pairs = n_classes == 2 or multi_class == ONE_VS_ONE
    n_machines = n_classes * (n_classes - 1) // 2 if in_pairs else n_classes
    n_entries = len(codes) * (n_classes - 1 if in_pairs else n_classes)  # rows of all machines together
    what = f"A support vector machine of {n_classes:,} classes ({n_machines:,} machines)"
    check_memory(MACHINE_BYTES * n_machines + ENTRY_BYTES * n_entries, what, FEWER_CLASSES)
    if in_pairs:
        announce_work(MACHINE_SECONDS * n_machines, what, FEWER_CLASSES)

    def signs() -> Iterator[tuple[Array, Array]]:
        if in_pairs:
            for first, second in pairs_of(n_classes):
                rows = np.flatnonzero((codes == first) | (codes == second))
                yield rows, np.where(codes[rows] == second, 1.0, -1.0)
        else:
            for one in range(n_classes):
                yield np.arange(len(codes)), np.where(codes == one, 1.0, -1.0)

    return [of_classes(y, rows, bound[rows], has_intercept) for rows, y in signs()]


@dataclass(frozen=True)
class Valued:
    """f of a state at the rows, a column per machine, and how far float32 can have moved it: 0 where in float64."""

    points: Array
    dual: Array
    f: Array
    off: Array


class MarginTask:
    """Rows as a kernel sees them, and the machines that are fitted to them, each by itself.

    alpha: None for a hard margin, whose multipliers have no bound. in_float64: no f is summed in float32.
    """

    def __init__(
        self,
        rows: KernelRows,
        machines: Sequence[Machine],
        alpha: float | None,
        source: Source | None = None,
        *,
        in_float64: bool = False,
    ) -> None:
        self.rows, self.machines, self.alpha, self.source = rows, tuple(machines), alpha, source
        self.in_float64 = in_float64 or alpha is None or len(self.machines) > 1
        self._valued: Valued | None = None
        self._places: tuple[Array, Array] | None = None  # points of a state, and where they are among the rows

    def values(self, points: Array, dual: Array) -> Array:
        """f_p(x_i) of the rows, in float64; those of the last state are remembered."""
        known = self._known(points, dual)
        if known is None or known.off.any():
            known = Valued(points, dual, self._sums(points, dual), np.zeros(self.rows.n_points))
            self._valued = known
        return known.f

    def _sums(self, points: Array, dual: Array, wanted: Array | None = None) -> Array:
        """f of the rows, or of the wanted ones, in float64."""
        rows, kernel = self.rows, self.rows.kernel
        every = np.ones(rows.n_points, dtype=bool) if wanted is None else wanted
        if isinstance(kernel, Formed) and self._places is not None and self._places[0] is points:
            places = self._places[1]
            if np.count_nonzero(every[places]) > MOST_ROWS * np.count_nonzero(every):
                return kernel.times_of_rows(rows.points, points, places, dual, every)
        if wanted is None or kernel is None:
            return np.asarray(rows.times(points, dual))
        return kernel.times(rows.points[wanted], points, dual)

    def near_values(
        self,
        points: Array,
        dual: Array,
        is_needed: Callable[[Array, Array], Array],
        in_float32: Callable[[], tuple[Array, Array] | None] | None = None,
    ) -> tuple[Array, Array]:
        """f of the only machine at the rows, and how far float32 can have moved it.

        is_needed(f, how far it is off): the rows whose f is wanted in float64. All are where the kernel has no sums in
        float32, or the rows are few. in_float32: such sums from elsewhere, where the kernel has none.
        """
        known = self._known(points, dual)
        if known is None:
            known = self._short(points, dual, in_float32)
        if known is None:
            return self.values(points, dual)[:, 0], np.zeros(self.rows.n_points)
        needed = (known.off > 0) & is_needed(known.f[:, 0], known.off)
        if needed.any():
            f = known.f.copy()
            f[needed] = self._sums(points, dual, needed)
            known = Valued(points, dual, f, np.where(needed, 0.0, known.off))
        self._valued = known
        return known.f[:, 0], known.off

    def _known(self, points: Array, dual: Array) -> Valued | None:
        known = self._valued
        return known if known is not None and known.points is points and known.dual is dual else None

    def _short(
        self, points: Array, dual: Array, in_float32: Callable[[], tuple[Array, Array] | None] | None
    ) -> Valued | None:
        rows = self.rows
        if self.in_float64 or rows.kernel is None or rows.n_points * len(points) < MANY_VALUES:
            return None
        sums = rows.kernel.short_times(rows.points, points, dual[:, 0])
        if sums is None and in_float32 is not None:
            sums = in_float32()
        return None if sums is None else Valued(points, dual, sums[0][:, None], sums[1])

    def remembered(self, support: Array, dual: Array) -> tuple[Array, Array]:
        """The points of these places and their coefficients: the arrays of the last values where they are the same."""
        known, places = self._valued, self._places
        if (
            known is not None
            and places is not None
            and known.points is places[0]
            and np.array_equal(places[1], support)
            and np.array_equal(known.dual, dual)
        ):
            return known.points, known.dual
        points = np.ascontiguousarray(self.rows.points[support])
        self._places = points, support
        return points, dual

    @cached_property
    def sizes(self) -> Array:
        """Roots of k(x, x) of the rows."""
        return self.rows.sizes(self.rows.points)

    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""
        return {"n_rows": self.rows.n_rows, "sum_weight": self.rows.sum_weight}


def default_alpha(rows: KernelRows, alpha: float | None) -> float:
    """None is 1 / sum of weights: C = 1 of a row."""
    return 1.0 / rows.sum_weight if alpha is None else float(alpha)


def default_alphas(source: Source) -> list[dict[str, float]]:
    """C = 0.01, 0.1, 1, 10, 100 of a row."""
    total = target_sums(source).weight
    return [{"alpha": 10.0**power / total} for power in (2, 1, 0, -1, -2)]
