"""The last step to the optimum of a small machine: the multipliers between their bounds solve a linear system.

Where the multipliers at 0 and at C are those of the optimum, the others and the intercept solve

    f(x_t) + b = target_t  for all t between,    sum_t sign_t a_t = 0

One solution of it is exact to rounding. Where it would leave the bounds, the step ends there and that multiplier stays.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from certifit.data.columns import Array
from certifit.models.svm.task import Machine, MarginTask

MOST_FREE = 512  # multipliers of a system
MOST_VALUES = 4e6  # of the kernel that have to be summed again after a step
MOST_STEPS = 20
FAINT = 1e-13  # of the trace: what rows that nearly repeat others are kept apart by


def can_polish(machine: Machine, a: Array) -> bool:
    """Whether the system is small."""
    n_free = int(((a > 0) & (a < machine.bound)).sum())
    return 0 < n_free <= MOST_FREE and len(a) * float((a > 0).sum()) <= MOST_VALUES


def kernel_among(task: MarginTask, rows_of: Array) -> Array:
    """The matrix of the kernel among some rows of a task."""
    rows = task.rows
    if rows.kernel is None or not rows.is_proven:
        return np.asarray(rows.matrix[np.ix_(rows_of, rows_of)])
    if rows.few_values is not None:
        return np.asarray(rows.few_values[np.ix_(rows_of, rows_of)])
    return np.asarray(rows.kernel.matrix(rows.points[rows_of]))


@np.errstate(all="ignore")  # no room beside no step; multipliers beyond float64 are moved by none
def polished(machine: Machine, local: Array, a: Array, f: Array, among: Callable[[Array], Array]) -> Array:
    """Multipliers after a few such steps. among: the matrix of the kernel among the rows of some variables."""
    a = a.copy()
    free = np.flatnonzero((a > 0) & (a < machine.bound))
    K = among(local[free])
    missing = (machine.target - f[local])[free]
    is_free = np.ones(len(free), dtype=bool)
    for _ in range(MOST_STEPS):
        if not is_free.any():
            break
        sign = machine.sign[free]
        step = _step(K[np.ix_(is_free, is_free)], missing[is_free], float(machine.sign @ a), machine.has_intercept)
        if step is None:
            break
        change = np.zeros(len(free))
        change[is_free] = step
        moved = sign * change
        room = np.where(
            moved > 0, (machine.bound[free] - a[free]) / moved, np.where(moved < 0, -a[free] / moved, np.inf)
        )
        room[~is_free] = np.inf
        share, first = float(room.min()), int(np.argmin(room))
        is_whole = share >= 1
        share = min(share, 1.0)
        a[free] = np.clip(a[free] + share * moved, 0.0, machine.bound[free])
        missing = missing - share * (K @ change)
        if is_whole:
            break
        a[free[first]] = machine.bound[free[first]] if moved[first] > 0 else 0.0
        is_free[first] = False
    return a


@np.errstate(all="ignore")  # a step that is no number is not taken
def _step(K: Array, missing: Array, excess: float, has_intercept: bool) -> Array | None:
    """What to add to sign a of the free multipliers."""
    n = len(K)
    system = np.zeros((n + 1, n + 1)) if has_intercept else K.copy()
    if has_intercept:
        system[:n, :n], system[n, :n], system[:n, n] = K, 1.0, 1.0
    system[np.arange(n), np.arange(n)] += FAINT * max(float(np.trace(K)), 1e-300)
    right = np.append(missing, -excess) if has_intercept else missing
    try:
        solution = np.linalg.solve(system, right)
        solution = solution + np.linalg.solve(system, right - system @ solution)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(solution[:n]) if np.isfinite(solution).all() else None
