"""The certificate of a generalised linear model: how far its objective can be above the minimum.

By self-concordance (models/glm/concordance.py). R <= M sum_j max_i |x_ij| sqrt((H^-1)_jj) costs no pass; the exact
R = M max_i |(x_i, 1)|_{H^-1} one more. With an L1 penalty or bounds by models/glm/l1_certificate.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np

from certifit.data.columns import Array, dense_rows
from certifit.data.source import Block
from certifit.mathematics.losses.user import Loss
from certifit.models.certificate import EXACT_FIT_CLAIM, Certificate
from certifit.models.glm.concordance import Decrement, NearScores, Related, is_weak, near_scores, related, relative_to
from certifit.models.glm.duality import Base, ScorePoint
from certifit.models.glm.high_precision_certificate import MOST_WORK, LongExcess, LongProblem, LongRows, long_excess
from certifit.models.glm.high_precision_losses import row_loss
from certifit.models.glm.l1_certificate import MOST_COLUMNS, estimate, prove
from certifit.models.glm.separation import sides_of
from certifit.models.glm.separation_certificate import Separation, separation
from certifit.models.glm.task import Evaluated, GlmTask
from certifit.models.lasso.task import Strengths
from certifit.models.least_squares.certificate import certify as certify_squares
from certifit.models.least_squares.normal_equations import Weights
from certifit.runtime import one_blas_thread
from certifit.statistics.factor import Curvature, product_above_0
from certifit.statistics.gram import ColumnSizes
from certifit.statistics.remainders import literal_columns
from certifit.statistics.residual import EXACT_FIT, MATRIX_ERROR, TINY

CLAIM = "relative excess of the objective"
THEOREM = "self-concordance: the curvature at the state bounds the objective below, and proves that a minimum exists"
GAP = "weak duality, or self-concordance with the slopes of the penalty: both bound the objective below"
LOCAL = "the Newton decrement at the state: a local estimate, no proof"
ESTIMATE = "the Newton decrement of a convex objective: an estimate, no proof"
PIECE_ROWS = 4096
FIRM = 1e4  # a condition number that no weak penalty keeps down: it would leave one of 1 / sqrt(WEAK) at least
SEEN = 1e-12  # a bound below this refuses every coefficient whose change can be seen in the objective
FLAT = 1e6  # a condition number of scaled columns from which on "flat" is said


@dataclass(frozen=True)
class GlmCertificate(Certificate):
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


@np.errstate(over="ignore", invalid="ignore")  # what overflows is infinite, and proves nothing
@one_blas_thread
def certify(task: GlmTask, state: Weights, tolerance: float) -> GlmCertificate:
    """How far the objective at the state can be above its minimum."""
    if not task.is_smooth or task.loss.is_piecewise or len(state.coef) > MOST_COLUMNS:
        return _certify_gap(task, state, tolerance)
    bound = bound_at(task, task.to_point(state), tolerance)
    near = bound.related
    is_rounding = near is not None and not near.is_exact and not near.is_apart
    literal = None if near is None or near.is_exact else min(_literal(task, state, near, bound), bound.most)
    value, is_exact_fit, rounding = bound.relative, bound.base.is_exact_fit, bound.rounding
    if literal is not None and (literal <= tolerance or not is_rounding or literal <= value):
        value, literal = literal, None
    separated = None if np.isfinite(value) else _separation(task, state)
    if bound.base.is_exact_fit and not bound.is_local and not (separated is not None and separated.exists):
        # No objective is below 0, whatever the weights: where the value is of the columns kept, literal is of them all.
        value, literal = min(value if literal is None else literal, EXACT_FIT), None
    is_settled = bound.is_local or bound.is_far or (separated is not None and separated.exists)
    # A price of treating columns as exact that is known in float64 needs no more digits.
    asks = not value <= tolerance or (literal is not None and not literal < bound.most)
    if asks and not is_settled:
        long = long_proof(task, state, tolerance)
        if long is not None and (literal is None or not value <= tolerance or long.relative <= tolerance):
            value, literal, is_exact_fit, rounding = long.relative, None, long.is_exact_fit, TINY
        elif long is not None and literal is not None:
            literal = min(literal, long.relative)
    elif not is_settled and literal is None and _is_rough(task, value, bound):
        long = long_proof(task, state, tolerance)
        if long is not None and long.relative < value:
            # Not below what float64 may prove elsewhere: `verify` takes 10 times the value stored.
            value, is_exact_fit, rounding = max(long.relative, SEEN / 10), long.is_exact_fit, TINY
    if _is_constant(task) and row_loss(task.loss) is None and not bound.is_local:
        value, literal = max(value, bound.most), None  # the minimum is 0, and what there is of an objective is rounding
    is_apart = near is not None and near.is_apart
    dependent = _relations(task, state) if near is not None and not is_apart else ()
    return GlmCertificate(
        claim=claim_of(is_exact_fit),
        theorem=(ESTIMATE if task.loss.is_convex else LOCAL) if bound.is_local else THEOREM,
        value=float(value) + TINY,
        tolerance=tolerance,
        rounding=rounding,
        rank=len(state.coef) - len(dependent),
        n_columns=len(state.coef),
        condition=float(f"{bound.condition:.6g}"),
        dependent=dependent,
        names=tuple(["intercept"] * int(task.fit_intercept) + list(task.source.names)),
        literal=literal,
        fault="" if value <= tolerance else _fault(task, value, near, separated, bound),
        is_local=bound.is_local,
        separation=None if np.isfinite(value) else separated,
    )


def _is_rough(task: GlmTask, value: float, bound: CurvatureBound) -> bool:
    """Whether rounding, or columns left out, are most of a bound that would hide a changed coefficient.

    Only for rows so few that the sharp one takes a fraction of a second.
    """
    is_loose = bound.rounding >= value / 2 or bound.related is not None
    return value > SEEN and is_loose and task.targets.n_rows * task.size**2 <= MOST_WORK // 10


@dataclass(frozen=True)
class CurvatureBound:
    """What self-concordance proves at a point. excess: rounding included; price: what weak penalties cost there.

    is_far: the state, not rounding, keeps it above the tolerance, so more bits would not help; related: columns that
    were left out as combinations of others; None where none was.
    """

    base: Base
    excess: float
    price: float
    rounding: float
    condition: float
    n_flat: int
    is_local: bool
    is_far: bool
    related: Related | None = None

    @property
    def most(self) -> float:
        """What no relative excess exceeds: no objective is below 0."""
        return 1.0 if np.isfinite(self.base.scale) else np.inf

    @property
    def relative(self) -> float:
        """The excess, relative."""
        return relative_to(self.excess, self.base.scale)


def bound_at(task: GlmTask, point: Array, tolerance: float, off: float = 0.0) -> CurvatureBound:
    """By the Hessian at the point. off: the most that a score there differs from that of the state."""
    sums = task.sums(point, hessian=True)
    whole = task.of_sums(sums, point)
    assert whole.hessian is not None and sums.largest is not None
    here = ScorePoint(task, point, sums, whole, sums.largest)
    curvature, places, near_copies = Curvature(whole.hessian), np.arange(task.size), None
    weak = is_weak(task.l2, np.diagonal(whole.hessian))
    if curvature.condition <= FIRM:  # the rows settle all directions: weak penalties cost nothing beside them
        weak = np.zeros_like(weak)
    at, price = _without(task, whole, point, weak)
    near = near_scores(task, point)
    price += _price_of(here, off, near)
    assert at.hessian is not None
    if weak.any():
        curvature = Curvature(at.hessian)
    if curvature.n_flat:
        near_copies = related(task.source, ((task.l2 > 0) & ~weak)[:-1], task.fit_intercept)
    if near_copies is not None:
        places = near_copies.kept(task.size)
        curvature = Curvature(at.hessian[np.ix_(places, places)])
        price += _price_of(here, _moved_by(near_copies, here), near)
    concordance = 0.0 if near is None else near.concordance
    decrement = _decrement(here, at, curvature, concordance, places)
    if near is not None and not decrement.excess() <= tolerance * here.scale and decrement.value < np.inf:
        exact = concordance * _exact_reach(task, curvature, places)
        decrement = Decrement(decrement.value, decrement.rounding, min(exact, decrement.reach))
    is_local = bool(near is None or (decrement.q < 1 and not near.covers(decrement.q)))
    excess = price + ((decrement.value + decrement.rounding) ** 2 / 2 if is_local else decrement.excess())
    condition, n_flat = curvature.condition, curvature.n_flat
    is_far = decrement.is_far(tolerance * here.scale) and near_copies is None
    excess = np.inf if np.isnan(excess) else float(excess)  # terms that overflowed prove nothing
    rounding = decrement.allowance(here.scale)
    return CurvatureBound(here.base, excess, price, rounding, condition, n_flat, is_local, is_far, near_copies)


def _moved_by(near: Related, at: ScorePoint) -> float:
    """How far the remainders of the columns left out move a score, at most."""
    unit = near.found.scale[near.found.columns] / at.task.scaling.scale[near.columns]
    return float(near.found.largest / unit @ np.abs(at.point[near.columns]))


def _price_of(at: ScorePoint, moved: float, near: NearScores | None) -> float:
    """What scores that move by m add to the objective, at most: |l'| m + l'' m^2 e^(M m), as far as M is known."""
    if moved == 0:
        return 0.0
    concordance, room = (1.0, np.inf) if near is None else (near.concordance, near.room)
    growth = np.exp(concordance * moved) if moved <= room else np.inf
    return float(at.slope * moved + at.curved * moved * moved * growth)


def _literal(task: GlmTask, state: Weights, near: Related, bound: CurvatureBound) -> float:
    """How far the objective can be above its minimum over all weights, relative; inf where that is not known.

    In columns of exactly the same span: those kept and the remainders. Weak penalties only are on the way.
    """
    if near.found.n_columns < len(state.coef) or bound.is_local:
        return np.inf
    rows = literal_columns(task.source, near.found, task.fit_intercept)
    if rows is None:
        return np.inf
    converted = rows.basis.converted(state.coef, state.intercept)
    sizes: ColumnSizes = rows.source.reduce(ColumnSizes.of)
    other = GlmTask(rows.source, task.loss, Strengths.plain(0.0, len(converted.coef)), task.fit_intercept)
    point = other.to_point(Weights(converted.coef, converted.intercept))
    there = bound_at(other, point, 0.0, off=converted.off_by(sizes.columns))
    if there.related is not None or there.is_local:
        return np.inf
    return relative_to(there.excess + _weak_price(task, state), bound.base.scale)


def _weak_price(task: GlmTask, state: Weights) -> float:
    return float(task.l2 @ np.square(task.to_point(state))) / 2


def long_proof(task: GlmTask, state: Weights, tolerance: float) -> LongExcess | None:
    """The same in long decimal numbers, where the data are few and the loss is written in them; else None."""
    loss = row_loss(task.loss)
    if loss is None or task.targets.n_rows * task.size**2 > MOST_WORK or task.loss.concordance is None:
        return None
    rows, s = LongRows.of(task.source, task.fit_intercept), task.strengths
    squares = [Decimal(1)] * len(s.factors)
    if task.standardize and s.alpha > 0:
        squares = rows.squared_spreads(len(squares), task.fit_intercept)
    alpha = Decimal(s.alpha) * (1 - Decimal(s.l1_ratio))
    at = state.coef
    pulls = [alpha * Decimal(factor) * square for factor, square in zip(s.factors.tolist(), squares, strict=True)]
    null = None
    if task.fit_intercept:
        at, pulls = np.append(at, state.intercept), [*pulls, Decimal(0)]
        null = np.array([task.loss.score(task.targets.mean) - task.targets.mean_offset])
    parameters = tuple((j, 0) for j in range(len(pulls)))
    problem = LongProblem(rows, loss, Decimal(task.loss.concordance), tuple(pulls), 1, parameters)
    return long_excess(problem, at[:, None], null, tolerance)


def _fault(
    task: GlmTask, value: float, near: Related | None, separated: Separation | None, bound: CurvatureBound
) -> str:
    """Why there is no proof; empty where it is that the value is too large."""
    if _is_constant(task):
        return (
            f"y is {task.targets.low:g} in every row. The fit is that constant but for rounding, and so is all of its "
            "objective: nothing can be proven relative to it. Predictions are right to rounding."
        )
    if near is not None and near.is_apart:
        return near.fault()
    return "" if np.isfinite(value) else fault_of(separated, bound.condition, bound.n_flat)


def _is_constant(task: GlmTask) -> bool:
    """Whether a constant is the best fit, for a target that does not vary."""
    return task.targets.low == task.targets.high and not task.source.view.has_offset and task.fit_intercept


def claim_of(is_exact_fit: bool) -> str:
    """What the value is relative to."""
    return EXACT_FIT_CLAIM if is_exact_fit else CLAIM


def _certify_gap(task: GlmTask, state: Weights, tolerance: float) -> GlmCertificate:
    """With an L1 penalty or bounds, and where columns are too many for a Hessian."""
    point = task.to_point(state)
    # That a loss of the user's own is convex was not refuted; it is not proven.
    is_local = not task.loss.is_convex or isinstance(task.loss, Loss)
    proof = estimate(task, point) if is_local else prove(task, point, tolerance)
    gap = proof.gap
    return GlmCertificate(
        claim=claim_of(proof.is_exact_fit),
        theorem=LOCAL if is_local else GAP,
        value=gap.relative,
        tolerance=tolerance,
        rounding=relative_to(gap.rounding, gap.scale) + TINY,
        rank=int(np.count_nonzero(state.coef)),
        n_columns=len(state.coef),
        condition=float(f"{proof.condition:.6g}"),
        names=tuple(["intercept"] * int(task.fit_intercept) + list(task.source.names)),
        is_local=bool(is_local),
    )


def _decrement(here: ScorePoint, at: Evaluated, curvature: Curvature, concordance: float, places: Array) -> Decrement:
    """lambda and the cheap R, with what rounding may have hidden; places: the entries of the point that may move."""
    task = here.task
    inverse = np.sqrt(np.maximum(np.diagonal(curvature.inverse), 0.0))
    largest = here.reach if task.fit_intercept else np.append(here.reach[:-1], 0.0)
    # Entries of H are known to MATRIX_ERROR of the roots of its diagonal: a share of every quadratic form.
    # A score that is off by e changes l'' by a factor e^(M e).
    loose = len(places) * MATRIX_ERROR * curvature.condition**2 + max(concordance, 1.0) * here.score_error
    if curvature.n_flat or not loose < 0.5:
        return Decrement(np.inf, 0.0, np.inf)
    loose = 1 / np.sqrt(1 - loose)
    gradient = at.gradient[places]
    value = np.sqrt(product_above_0(gradient, curvature.solve(gradient))) * loose
    error, reach = here.gradient_error[places], concordance * float(largest[places] @ inverse)
    error = np.where(largest[places] > 0, error, 0.0)
    return Decrement(float(value), float(error @ inverse) * loose, reach * loose)


def _without(task: GlmTask, at: Evaluated, point: Array, weak: Array) -> tuple[Evaluated, float]:
    """The objective without weak penalties, and what those cost at the point (models/glm/concordance.py)."""
    if not weak.any():
        return at, 0.0
    assert at.hessian is not None
    pull = np.where(weak, task.l2, 0.0)
    price = float(pull @ np.square(point)) / 2
    return Evaluated(at.value - price, at.gradient - pull * point, at.hessian - np.diag(pull), at.loss), price


def _exact_reach(task: GlmTask, curvature: Curvature, places: Array) -> float:
    """max_i |(x_i, 1)|_{H^-1} over the entries that may move: one pass."""
    inverse = np.zeros((task.size, task.size))
    inverse[np.ix_(places, places)] = curvature.inverse
    values = task.source.map(partial(_reach_of_run, inverse=inverse, units=task.row_units))
    return max(values, default=0.0) * (1 + 1e-6)


def _reach_of_run(run: Block, inverse: Array, units: tuple[Array, Array, bool]) -> float:
    lengths = (np.einsum("ij,ij->i", rows @ inverse, rows).max(initial=0.0) for rows in counted_rows(run, units))
    return float(np.sqrt(max(lengths, default=0.0)))


def counted_rows(run: Block, units: tuple[Array, Array, bool]) -> Iterator[Array]:
    """The rows of positive weight in pieces, scaled and shifted, with the constant of an intercept as last column."""
    scale, shift, fit_intercept = units
    for begin in range(0, run.n_rows, PIECE_ROWS):
        part = run.part(begin, begin + PIECE_ROWS)
        rows = dense_rows(part.X) * scale - shift
        if part.weight is not None:
            rows = rows[part.weight > 0]
        yield np.column_stack([rows, np.full(len(rows), float(fit_intercept))])


def _relations(task: GlmTask, state: Weights) -> tuple[str, ...]:
    """One sentence per redundant column: they are those of least squares."""
    return certify_squares(task.columns, state, 1.0).dependent if len(task.columns.factor.dependent) else ()


def _separation(task: GlmTask, state: Weights) -> Separation | None:
    """What is known of a direction in which the loss falls for ever; None where a penalty or the loss forbids one."""
    sides = sides_of(task.loss)
    if sides is None or task.l2.any():
        return None
    candidate = np.append(state.coef, state.intercept) if task.fit_intercept else state.coef
    return separation(task.source, sides, task.fit_intercept, candidate)


def fault_of(separated: Separation | None, condition: float, n_flat: int) -> str:
    """Why no minimum is proven: a direction that shows that there is none, or a flat objective."""
    if separated is not None and separated.exists:
        return separated.sentence()
    if condition < FLAT and not n_flat:
        flat = (
            "no minimum is proven: these weights are too far from one for a bound. Let the solver go on (max_iter), or "
            "use solver='auto'."
        )
    else:
        flat = (
            "no minimum is proven: the objective is nearly flat in some direction (condition number "
            f"{condition:.1e}). Add a penalty (alpha > 0), or leave columns out."
        )
    return flat if separated is None else f"{flat} {separated.sentence()}"
