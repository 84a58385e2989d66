"""The certificate of kernel ridge regression: the duality gap of the exact problem, from the rows and the state alone.

For any numbers a_i with sum a = 0 (where there is an intercept) no function has an objective below
alpha [ a'y - a'Ga / 2 - alpha/2 sum_i a_i^2 / s_i ]. With e the residuals of the state and f its function, the
difference to the objective of the state is

    sum_i s_i (e_i - alpha a_i / s_i)^2 / 2  +  alpha/2 | sum_i a_i k(x_i, .) - f |^2

where both terms are >= 0. A state that keeps all rows takes a = c but for the sum, so that the second term vanishes
and the first is |y - b - (G + alpha / s) c|^2; one that keeps landmarks takes a = s e / alpha less its mean, so that
the first vanishes. The rounding of the kernel, of the sums and of the residuals is bounded and added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.models.certificate import EXACT_FIT_CLAIM, Certificate, prediction_change
from certifit.models.kernel.task import KernelRidgeTask, KernelState
from certifit.runtime import one_blas_thread
from certifit.statistics.residual import LEAST_SQUARES, TINY, UNIT, is_exact_fit

SAFETY = 1e-12  # of a gap, for the last roundings
TERMS, PIECES = 1024, 256  # of a sum: at most so many, at least so many are added before they join the others


@dataclass(frozen=True)
class KernelCertificate(Certificate):
    """The proof that goes with kernel ridge regression.

    assumption: what the proof rests on where the kernel is not Mercer by construction. refuted: what shows that it is
    not Mercer on these rows; the value is then that of a stationary point.
    """

    assumption: str = ""
    refuted: str = ""

    @property
    def is_local(self) -> bool:
        """True of a stationary point."""
        return bool(self.refuted)

    def sentences(self) -> list[str]:
        """The certificate in words."""
        first = super().sentences()[0]
        if self.refuted:
            head = "Stationary point only" if self.holds else "NOT a stationary point"
            return [
                f"{head}: the equations of the fit are met to {self.value:.1e} of the null model's objective. "
                f"{self.refuted} So nothing is proven about other functions."
            ]
        return [f"{self.assumption}{first[0].lower() if self.assumption else first[0]}{first[1:]}"]


@dataclass(frozen=True)
class _Point:
    """A state on the rows, scaled: values of its function, residuals, and how far rounding can have moved them.

    norm: a bound on |f|^2 = c'Gc, and one from below.
    """

    dual: Array
    fitted: Array
    errors: Array
    off: Array
    norm: tuple[float, float]


@np.errstate(all="ignore")  # far states: what is infinite or not a number proves nothing
@one_blas_thread
def certify(task: KernelRidgeTask, state: KernelState, tolerance: float) -> KernelCertificate:
    """How far the objective at the state can be above the least of all functions."""
    at = _point(task, state)
    gap, rounding = _gap_at_rows(task, at) if task.rows.are(state.points) else _gap_of_function(task, at)
    share, least = task.share, np.maximum(np.abs(at.errors) - at.off, 0.0)
    objective = float(share @ np.square(least)) / 2 + task.alpha / 2 * at.norm[0]
    most = float(share @ np.square(np.abs(at.errors) + at.off)) / 2 + task.alpha / 2 * at.norm[1]
    is_met = not (at.errors.any() or at.dual.any())
    scale, is_exact = (np.inf, True) if is_met else (objective * (1 - SAFETY), False)
    is_refuted = not task.rows.is_proven and not task.rows.tested
    if is_refuted or is_exact_fit(most, task.null):
        scale, is_exact = max(task.null, TINY), True
    if scale < LEAST_SQUARES:
        gap, is_exact = np.inf, False  # squares underflow, with nothing larger that they are relative to
    return KernelCertificate(
        claim=EXACT_FIT_CLAIM if is_exact else "relative excess of the objective",
        theorem="none: the kernel is not Mercer on these rows"
        if is_refuted
        else "weak duality: the dual objective at any feasible point is a lower bound",
        value=gap * (1 + SAFETY) / max(scale, TINY) + TINY,
        tolerance=tolerance,
        rounding=rounding * (1 + SAFETY) / max(scale, TINY) + TINY,
        prediction_change=None if is_refuted else prediction_change(2 * gap, task.y_scale),
        assumption="" if task.rows.is_proven else _assumption(task),
        refuted=str(task.rows.tested) if is_refuted else "",
    )


def _assumption(task: KernelRidgeTask) -> str:
    smallest = task.rows.tested.smallest
    return f"If the kernel is Mercer, which these rows do not refute (smallest eigenvalue {smallest:.1e}): "


def _point(task: KernelRidgeTask, state: KernelState) -> _Point:
    rows, intercept = task.rows, float(state.intercept * task.y_scale)
    dual = rows.seen_of(state.dual) * task.y_scale
    size = _rounded_by(dual)
    fitted = rows.times(state.points, dual[:, None])[:, 0]
    off = rows.error_times(state.points, size)
    # A sum of n terms in pieces of TERMS; |k(x, z)|^2 <= k(x, x) k(z, z).
    unit = (min(len(dual), TERMS) + len(dual) / PIECES + 8) * UNIT
    reach = rows.sizes(rows.points) * float(rows.sizes(state.points) @ size)
    level = task.y - intercept
    errors = level - fitted
    off = off + unit * reach + 2 * UNIT * (np.abs(level) + np.abs(errors))
    return _Point(dual, fitted, errors, off, _norm(task, state, dual, fitted, off))


def _rounded_by(dual: Array) -> Array:
    """What the rounding of multipliers is relative to: those below the normal numbers are rounded like the least."""
    return np.asarray(np.where(dual == 0, 0.0, np.abs(dual) + TINY))


def _norm(task: KernelRidgeTask, state: KernelState, dual: Array, fitted: Array, off: Array) -> tuple[float, float]:
    """Bounds on c'Gc from below and above."""
    if task.rows.are(state.points):
        values, errors = fitted, off
    else:
        values, errors = _at_points(task, state, dual)
    square = float(dual @ values)
    error = float(np.abs(dual) @ errors) + (len(dual) + 4) * UNIT * float(np.abs(dual) @ np.abs(values))
    return max(square - error, 0.0), max(square + error, 0.0)


def _at_points(task: KernelRidgeTask, state: KernelState, dual: Array) -> tuple[Array, Array]:
    """The function at the points that it is made of, and bounds on the rounding."""
    kernel, points = task.rows.kernel, state.points
    assert kernel is not None
    values = kernel.times(points, points, dual[:, None])[:, 0]
    sizes, size = task.rows.sizes(points), _rounded_by(dual)
    unit = (min(len(dual), TERMS) + len(dual) / PIECES + 8) * UNIT
    return values, kernel.error_times(points, points, size) + unit * sizes * float(sizes @ size)


def _gap_at_rows(task: KernelRidgeTask, at: _Point) -> tuple[float, float]:
    """The gap of a state that keeps every row, and the part of it that is rounding."""
    share, alpha = task.share, task.alpha
    excess = math.fsum(at.dual) if task.fit_intercept else 0.0
    multipliers = at.dual - share * excess
    pull = alpha * multipliers / share
    residual = at.errors - pull
    off = at.off + 4 * UNIT * np.abs(pull)
    sizes = task.rows.sizes(task.rows.points)
    moved = abs(excess) * float(share @ sizes) * (1 + SAFETY) + UNIT * float(np.abs(at.dual) @ sizes)
    apart = alpha / 2 * moved * moved  # infinite where a power would raise
    gap = float(share @ np.square(np.abs(residual) + off)) / 2 + apart
    return gap, float(share @ np.square(off)) + apart


def _gap_of_function(task: KernelRidgeTask, at: _Point) -> tuple[float, float]:
    """The gap of a state whose points are not the rows, with the multipliers that its residuals ask for."""
    rows, share, alpha = task.rows, task.share, task.alpha
    level = float(share @ at.errors) if task.fit_intercept else 0.0
    multipliers = share * (at.errors - level) / alpha
    excess = math.fsum(multipliers) if task.fit_intercept else 0.0
    size = _rounded_by(multipliers)
    values = rows.times(rows.points, multipliers[:, None])[:, 0]
    sizes = rows.sizes(rows.points)
    unit = (min(len(size), TERMS) + len(size) / PIECES + 8) * UNIT
    off = rows.error_times(rows.points, size) + unit * sizes * float(sizes @ size)
    fitted = at.fitted
    inner = float(multipliers @ fitted)
    square = float(multipliers @ values)
    error = float(size @ (off + 2 * at.off)) + 4 * len(size) * UNIT * float(
        size @ (np.abs(values) + 2 * np.abs(fitted))
    )
    apart = max(square - 2 * inner + at.norm[1], 0.0) + error
    apart = math.sqrt(apart) + abs(excess) * float(share @ sizes)
    apart *= apart  # infinite where a power would raise
    residual = at.errors - alpha * multipliers / share
    off_rows = at.off + 4 * UNIT * np.abs(at.errors)
    gap = float(share @ np.square(np.abs(residual) + off_rows)) / 2 + alpha / 2 * apart
    return gap, float(share @ np.square(off_rows)) + alpha / 2 * error
