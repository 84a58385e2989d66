"""The certificate of a hard margin: no separator has a margin that is larger by more than a share.

With m the least y_i (f(x_i) + b) of the state, f / m and b / m meet every constraint y (f + b) >= 1. For multipliers
a >= 0 with sum_i y_i a_i = 0 (where there is an intercept) and f_a their function, every separator that meets the
constraints has |f|^2 >= (sum_i a_i)^2 / |f_a|^2. So the margin m / |f| of the state is at least a share

    m sum_i a_i / ( |f| |f_a| )

of the largest. Roundings are counted against it. Imports no solver.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from certifit.models.glm.separation_certificate import Separation
from certifit.models.svm.certificate import SAFETY, MarginCertificate, assumption_of, certify, judge_values, row_keys
from certifit.models.svm.task import MarginState, MarginTask
from certifit.runtime import one_blas_thread
from certifit.statistics.residual import TINY, UNIT

CLAIM = "relative shortfall of the margin"
THEOREM = "weak duality: multipliers that cancel bound the margin of every separator"


class NotSeparableError(ValueError):
    """The classes cannot be separated; `separation` has rows and multipliers that prove it, where they are known."""

    def __init__(self, message: str, separation: Separation | None = None) -> None:
        super().__init__(message)
        self.separation = separation


@dataclass(frozen=True)
class HardMarginCertificate(MarginCertificate):
    """The proof that goes with a hard margin.

    margin: m / |f|, of every row at least. radius: the largest |phi(x)| of the rows; is_augmented: of (x, 1), and the
    bound is of a margin of these. bound: on the error, if the distribution has this margin in this radius, with
    probability 0.95. is_soft: the classes could not be separated, and the proof is that of a soft margin.
    """

    margin: float = 0.0
    radius: float = math.inf
    bound: float = 1.0
    is_augmented: bool = False
    is_soft: bool = False

    def sentences(self) -> list[str]:
        """The certificate in words."""
        if self.is_soft or self.fault:
            return super().sentences()
        if not self.holds:
            return [
                f"NOT certified: the largest margin can be up to {self.value:.1e} (relative) larger than the margin "
                f"{self.margin:.6g} of this separator; asked was {self.tolerance:.0e}."
            ]
        space = "of the rows with a 1 added" if self.is_augmented else "of the rows"
        return [
            f"{self.assumption}Converged: every row is on its side with a margin of {self.margin:.6g}, which is proven "
            f"to be within {self.value:.1e} (relative) of the largest possible.",
            f"If the distribution has such a margin {space}, in radius {self.radius:.4g}, then with probability 0.95 "
            f"over the rows the error is at most {self.bound:.2g}. That is a condition, no estimate of the error.",
        ]


def certify_soft(task: MarginTask, state: MarginState, tolerance: float) -> HardMarginCertificate:
    """The proof of a soft margin in place of a hard one."""
    return HardMarginCertificate(**certify(task, state, tolerance).to_dict() | {"is_soft": True})


@np.errstate(all="ignore")
@one_blas_thread
def certify_hard(task: MarginTask, state: MarginState, tolerance: float) -> HardMarginCertificate:
    """How far the margin of the state can be below the largest."""
    (machine,) = task.machines
    at, multipliers, outside = judge_values(task, state, 0, tolerance)
    b = float(state.intercepts[0])
    f, off = at.f[machine.row], at.off[machine.row]
    margins = machine.sign * (f + b)
    least = float((margins - off - 4 * UNIT * (np.abs(f) + abs(b))).min())
    excess = abs(math.fsum((machine.sign * multipliers).tolist())) if machine.has_intercept else 0.0
    reach = float(at.sizes[machine.row].max(initial=0.0))
    size = math.sqrt(at.norm[1]) * (1 + SAFETY)
    of_dual = size + outside.most + excess * (1 + 4 * UNIT) * reach
    total = (float(multipliers.sum()) * (1 - (len(multipliers) + 4) * UNIT)) - excess
    share = least * total / (size * of_dual) if size > 0 and least > 0 else 0.0
    value = (1 - share) if share > 0 else math.inf
    margin = least / size if size > 0 and least > 0 else 0.0
    rounding = (float(off.max(initial=0.0)) / max(least, TINY) + outside.rounding / max(size, TINY)) * 2 + SAFETY
    v = 1 - margins
    violation = np.where(multipliers > 0, np.abs(v), np.maximum(v, 0.0))
    is_zero = multipliers == 0
    radius, augmented = _augmented(task, state, machine.has_intercept, reach, size, least)
    return HardMarginCertificate(
        claim=CLAIM,
        theorem=THEOREM,
        value=max(value, 0.0) + TINY + (SAFETY if share > 0 else 0.0),
        tolerance=tolerance,
        rounding=rounding,
        margin=margin,
        radius=radius,
        bound=margin_bound(radius, augmented, task.rows.n_rows),
        violation=float(violation.max(initial=0.0)),
        n_zero=int(is_zero.sum()),
        n_free=int((~is_zero).sum()),
        is_augmented=machine.has_intercept,
        assumption=assumption_of(task),
    )


def _augmented(
    task: MarginTask, state: MarginState, has_intercept: bool, reach: float, size: float, least: float
) -> tuple[float, float]:
    """Radius and margin of a homogeneous separator: of the rows, or of (x, 1) where there is an intercept."""
    if not has_intercept:
        return reach, max(least, 0.0) / max(size, TINY)
    whole = math.hypot(size, float(state.intercepts[0]))
    return math.hypot(reach, 1.0), max(least, 0.0) / max(whole, TINY)


def margin_bound(radius: float, margin: float, n: int, delta: float = 0.05) -> float:
    """sqrt(4 (radius / margin)^2 / n) + sqrt(2 log(2 / delta) / n), at most 1."""
    if margin <= 0 or n <= 0:
        return 1.0
    return min(1.0, math.sqrt(4 * (radius / margin) ** 2 / n) + math.sqrt(2 * math.log(2 / delta) / n))


def contradiction(task: MarginTask) -> tuple[int, int] | None:
    """Two rows with the same numbers and different classes; their places among rows of positive weight."""
    (machine,) = task.machines
    if task.rows.kernel is None:
        return None
    points, keys = task.rows.points, row_keys(task.rows.points)
    order = np.lexsort((machine.sign, keys))
    near = np.flatnonzero((keys[order][1:] == keys[order][:-1]) & (machine.sign[order][1:] != machine.sign[order][:-1]))
    for place in near.tolist():
        i, j = int(order[place]), int(order[place + 1])
        if np.array_equal(points[i], points[j]):
            return min(i, j), max(i, j)
    return None
