"""The certificate of a generalised linear model: how far its objective can be above the minimum.

By self-concordance (certificates/concordance.py). R <= M sum_j max_i |x_ij| sqrt((H^-1)_jj) costs no pass; the exact
R = M max_i |(x_i, 1)|_{H^-1} one more. With an L1 penalty or bounds by certificates/kinked.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from certifit.certificates.certificate import EXACT_FIT_CLAIM, Certificate
from certifit.certificates.concordance import Decrement
from certifit.certificates.flat import is_weak, n_still
from certifit.certificates.kinked import MOST_COLUMNS, estimate, prove
from certifit.certificates.least_squares import certify as certify_squares
from certifit.certificates.near_scores import near_scores
from certifit.certificates.separation import Separation, separation
from certifit.data.columns import Array, Columns
from certifit.data.source import Block
from certifit.losses.user import Loss
from certifit.runtime import one_blas_thread
from certifit.statistics.curvature import Curvature
from certifit.statistics.oracle import Oracle
from certifit.statistics.residual import MATRIX_ERROR, TINY, UNIT
from certifit.tasks.generalised import Evaluated, GeneralisedLinear
from certifit.tasks.normal_equations import Weights
from certifit.tasks.recession import sides_of
from certifit.tasks.score_duality import ScorePoint

CLAIM = "relative excess of the objective"
THEOREM = "self-concordance: the curvature at the state bounds the objective below, and proves that a minimum exists"
GAP = "weak duality, or self-concordance with the slopes of the penalty: both bound the objective below"
LOCAL = "the Newton decrement at the state: a local estimate, no proof"
ESTIMATE = "the Newton decrement of a convex objective: an estimate, no proof"
PIECE_ROWS = 4096
FLAT = 1e6  # a condition number of scaled columns from which on "flat" is said


@dataclass(frozen=True)
class ScoreCertificate(Certificate):
    """The proof that goes with a loss of scores. fault: why there is none; is_local: an estimate near the state.

    separation: the direction that shows that there is no minimum, where one was found; not kept in a file.
    """

    fault: str = ""
    is_local: bool = False
    separation: Separation | None = field(default=None, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types, without the direction."""
        return {name: value for name, value in super().to_dict().items() if name != "separation"}

    def sentences(self) -> list[str]:
        """The certificate in words."""
        if self.fault:
            return [f"NOT certified: {self.fault}", *self._rank_sentences()]
        if self.is_local:
            reached = "Stationary" if self.holds else "NOT stationary"
            where, more = ("nearest ", " There may be better minima elsewhere.") if self.theorem == LOCAL else ("", "")
            first = (
                f"{reached}: the objective is about {self.value:.1e} (relative) above the {where}minimum; asked was "
                f"{self.tolerance:.0e}. This is an estimate, no proof.{more}"
            )
            return [first, *self._rank_sentences()]
        return super().sentences()


@one_blas_thread
def certify(task: GeneralisedLinear, state: Weights, tolerance: float) -> ScoreCertificate:
    """How far the objective at the state can be above its minimum."""
    if not task.is_smooth or len(state.coef) > MOST_COLUMNS:
        return _certify_gap(task, state, tolerance)
    point = task.to_point(state)
    sums = task.sums(point, hessian=True)
    whole = task.of_sums(sums, point)
    assert whole.hessian is not None and sums.largest is not None
    weak = is_weak(task.l2, np.diagonal(whole.hessian))
    at, price = _without(task, whole, point, weak)
    assert at.hessian is not None
    curvature = Curvature(at.hessian)
    near = near_scores(task, point)
    concordance = 0.0 if near is None else near.concordance
    decrement = _decrement(task, point, sums, at, curvature, concordance, (task.l2 > 0) & ~weak)
    base = ScorePoint(task, point, sums, whole, sums.largest).base
    scale = base.scale
    if near is not None and not decrement.excess() <= tolerance * scale and decrement.value < np.inf:
        exact = concordance * _exact_reach(task, curvature)
        decrement = Decrement(decrement.value, decrement.rounding, min(exact, decrement.reach))
    is_local = bool(near is None or (decrement.q < 1 and not near.covers(decrement.q)))
    excess = price + ((decrement.value + decrement.rounding) ** 2 / 2 if is_local else decrement.excess())
    dependent = _relations(task, state) if curvature.n_flat else ()
    found = None if np.isfinite(excess) else _separation(task, state)
    rounding = (decrement.value * decrement.rounding + decrement.rounding**2 / 2) / scale + TINY
    return ScoreCertificate(
        claim=claim_of(base.is_exact_fit),
        theorem=(ESTIMATE if task.loss.is_convex else LOCAL) if is_local else THEOREM,
        value=float(excess / scale) + TINY,
        tolerance=tolerance,
        rounding=float(rounding),
        rank=len(state.coef) - len(dependent),
        n_columns=len(state.coef),
        condition=float(f"{curvature.condition:.6g}"),
        dependent=dependent,
        names=tuple(["intercept"] * int(task.fit_intercept) + list(task.source.names)),
        fault="" if np.isfinite(excess) else fault_of(found, curvature),
        is_local=bool(is_local),
        separation=found,
    )


def claim_of(is_exact_fit: bool) -> str:
    """What the value is relative to."""
    return EXACT_FIT_CLAIM if is_exact_fit else CLAIM


def _certify_gap(task: GeneralisedLinear, state: Weights, tolerance: float) -> ScoreCertificate:
    """With an L1 penalty or bounds, and where columns are too many for a Hessian."""
    point = task.to_point(state)
    # That a loss of the user's own is convex was not refuted; it is not proven.
    is_local = not task.loss.is_convex or isinstance(task.loss, Loss)
    proof = estimate(task, point) if is_local else prove(task, point, tolerance)
    gap = proof.gap
    return ScoreCertificate(
        claim=claim_of(proof.is_exact_fit),
        theorem=LOCAL if is_local else GAP,
        value=gap.relative,
        tolerance=tolerance,
        rounding=gap.rounding / gap.scale + TINY,
        rank=int(np.count_nonzero(state.coef)),
        n_columns=len(state.coef),
        condition=float(f"{proof.condition:.6g}"),
        names=tuple(["intercept"] * int(task.fit_intercept) + list(task.source.names)),
        is_local=bool(is_local),
    )


def _decrement(
    task: GeneralisedLinear,
    point: Array,
    sums: Oracle,
    at: Evaluated,
    curvature: Curvature,
    concordance: float,
    firm: Array,
) -> Decrement:
    """lambda and the cheap R, with what rounding may have hidden; firm: which entries have a penalty that counts."""
    assert sums.largest is not None and sums.hessian is not None
    largest, size = sums.largest, task.size
    if not task.fit_intercept:
        largest = np.append(largest[:-1], 0.0)
    inverse = np.sqrt(np.maximum(np.diagonal(curvature.inverse), 0.0))
    curved = float(sums.hessian[0][-1, -1]) / task.sum_weight  # the mean of l''
    scores = float(largest @ np.abs(point)) + task.largest_offset
    moved = (size + 4) * UNIT * scores  # of a score
    slope = float(sums.slopes) / task.sum_weight
    error = largest * (
        MATRIX_ERROR * slope + 8 * UNIT * (curved + task.loss.cancelled(task.targets.mean) + slope) + moved * curved
    )
    error = error + 4 * UNIT * (np.abs(at.gradient) + task.l2 * np.abs(point))
    # Entries of H are known to MATRIX_ERROR of the roots of its diagonal: a share of every quadratic form.
    loose = size * MATRIX_ERROR * curvature.condition**2 + moved
    if not (loose < 0.5 and (curvature.n_flat == 0 or curvature.n_flat <= n_still(task.columns, firm[:-1]))):
        return Decrement(np.inf, 0.0, np.inf)
    loose = 1 / np.sqrt(1 - loose)
    value = np.sqrt(max(float(at.gradient @ curvature.solve(at.gradient)), 0.0)) * loose
    return Decrement(float(value), float(error @ inverse) * loose, concordance * float(largest @ inverse) * loose)


def _without(task: GeneralisedLinear, at: Evaluated, point: Array, weak: Array) -> tuple[Evaluated, float]:
    """The objective without weak penalties, and what those cost at the point (certificates/flat.py)."""
    if not weak.any():
        return at, 0.0
    assert at.hessian is not None
    pull = np.where(weak, task.l2, 0.0)
    price = float(pull @ np.square(point)) / 2
    return Evaluated(at.value - price, at.gradient - pull * point, at.hessian - np.diag(pull), at.loss), price


def _exact_reach(task: GeneralisedLinear, curvature: Curvature) -> float:
    """max_i |(x_i, 1)|_{H^-1}: one pass."""
    inverse = curvature.inverse
    values = task.source.map(partial(_reach_of_run, inverse=inverse, task=task.row_units))
    return max(values, default=0.0) * (1 + 1e-6)


def _reach_of_run(run: Block, inverse: Array, task: tuple[Array, Array, bool]) -> float:
    scale, shift, fit_intercept = task
    most = 0.0
    for begin in range(0, run.n_rows, PIECE_ROWS):
        part = run.part(begin, begin + PIECE_ROWS)
        X = part.X.toarray() if isinstance(part.X, Columns) or hasattr(part.X, "toarray") else part.X
        rows = np.asarray(X, dtype=np.float64) * scale - shift
        if part.weight is not None:
            rows = rows[part.weight > 0]
        rows = np.column_stack([rows, np.full(len(rows), float(fit_intercept))])
        most = max(most, float(np.einsum("ij,ij->i", rows @ inverse, rows).max(initial=0.0)))
    return float(np.sqrt(most))


def _relations(task: GeneralisedLinear, state: Weights) -> tuple[str, ...]:
    """One sentence a redundant column: they are those of least squares."""
    return certify_squares(task.columns, state, 1.0).dependent if len(task.columns.factor.dependent) else ()


def _separation(task: GeneralisedLinear, state: Weights) -> Separation | None:
    """What is known of a direction in which the loss falls for ever; None where a penalty or the loss forbids one."""
    sides = sides_of(task.loss)
    if sides is None or task.l2.any():
        return None
    candidate = np.append(state.coef, state.intercept) if task.fit_intercept else state.coef
    return separation(task.source, sides, task.fit_intercept, candidate)


def fault_of(found: Separation | None, curvature: Curvature) -> str:
    """Why no minimum is proven: a direction that shows that there is none, or a flat objective."""
    if found is not None and found.exists:
        return found.sentence()
    if curvature.condition < FLAT and not curvature.n_flat:
        flat = (
            "no minimum is proven: these weights are too far from one for a bound. Let the solver go on (max_iter), or "
            "use solver='auto'."
        )
    else:
        flat = (
            "no minimum is proven: the objective is nearly flat in some direction (condition number "
            f"{curvature.condition:.1e}). Add a penalty (alpha > 0), or leave columns out."
        )
    return flat if found is None else f"{flat} {found.sentence()}"
