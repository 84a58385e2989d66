"""The certificate of a generalised linear model, of one score per row or of several: how far its objective can be
above the minimum.

By self-concordance (models/glm/concordance.py). R <= M sum_j max_i |x_ij| sqrt((H^-1)_jj) costs no pass; the exact
R = M max_i |(x_i, 1)|_{H^-1} one more. Along a line the curvature of softmax changes by no more than e^(largest
difference of two scores' changes): its exact R is max_i max_kl |(e_k - e_l) (x_i, 1)|_{H^-1}. Softmax is proven for
weights whose sum over the classes is 0; what a common part costs is known and added. Where its Hessian is large the
duality gap comes first. With an L1 penalty or bounds by models/glm/l1_certificate.py.
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
from certifit.models.glm.duality import duality_gap
from certifit.models.glm.high_precision_certificate import (
    MOST_WORK,
    LongExcess,
    LongProblem,
    LongRows,
    long_excess,
    long_pulls,
)
from certifit.models.glm.high_precision_losses import row_loss
from certifit.models.glm.l1_certificate import Proof, estimate, most_entries, prove
from certifit.models.glm.points import Base, Point, decrement_of, looseness, point_of
from certifit.models.glm.separation import sides_of
from certifit.models.glm.separation_certificate import Separation, separation, softmax_separation
from certifit.models.glm.softmax_task import GlmOrSoftmaxTask, GlmState, SoftmaxTask
from certifit.models.glm.task import Evaluated, GlmTask
from certifit.models.lasso.certificate import Gap
from certifit.models.least_squares.certificate import certify as certify_squares
from certifit.models.least_squares.normal_equations import Weights
from certifit.runtime import one_blas_thread
from certifit.statistics.factor import Curvature
from certifit.statistics.gram import ColumnSizes
from certifit.statistics.remainders import literal_columns
from certifit.statistics.residual import EXACT_FIT, TINY

CLAIM = "relative excess of the objective"
THEOREM = "self-concordance: the curvature at the state bounds the objective below, and proves that a minimum exists"
GAP = "weak duality, or self-concordance with the slopes of the penalty: both bound the objective below"
LOCAL = "the Newton decrement at the state: a local estimate, no proof"
ESTIMATE = "the Newton decrement of a convex objective: an estimate, no proof"
DUALITY = "weak duality: the dual objective at any feasible point is a lower bound"
SMALL = 600  # entries of a point of several scores for which the Hessian is taken at once
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

    @property
    def is_separated(self) -> bool:
        """Whether a direction shows that there is no minimum."""
        return self.separation is not None and self.separation.exists

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
def certify(task: GlmOrSoftmaxTask, state: GlmState, tolerance: float) -> GlmCertificate:
    """How far the objective at the state can be above its minimum."""
    if not task.is_smooth or task.loss.is_piecewise or task.size > most_entries(task):
        return _certify_gap(task, state, tolerance)
    coef, intercept, common = task.centred(*_parts(state))
    point = task.from_user_units(coef, intercept)
    gap = _gap_first(task, point, common, tolerance)
    if gap is not None and gap.relative <= tolerance:
        return _of_proof(task, state, Proof(gap, np.inf), DUALITY, tolerance)
    bound = bound_at(task, point, tolerance, common)
    if gap is not None and gap.relative < bound.relative:
        return _of_proof(task, state, Proof(gap, bound.condition), DUALITY, tolerance)
    near = bound.related
    literal = None if near is None or near.is_exact else _literal(task, state, near, bound)
    value, is_exact_fit, rounding = bound.relative, bound.base.is_exact_fit, bound.rounding
    if literal is not None and near is not None and (near.is_apart or literal <= max(tolerance, value)):
        value, literal = literal, None
    separated = None if value < bound.most else _separation(task, state)
    is_separated = separated is not None and separated.exists
    if bound.base.is_exact_fit and not bound.is_local and not is_separated:
        # No objective is below 0, whatever the weights: where the value is of the columns kept, literal is of them all.
        value, literal = min(value if literal is None else literal, EXACT_FIT), None
    is_settled = bound.is_local or bound.is_far or is_separated
    asks = bound.is_tilted or not value <= tolerance
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
    if _is_constant(task) and not bound.is_local and not _has_long_loss(task):
        value, literal = max(value, bound.most), None  # the minimum is 0, and what there is of an objective is rounding
    is_apart = near is not None and near.is_apart
    dependent = _relations(task, state) if near is not None and not is_apart else ()
    return GlmCertificate(
        claim=claim_of(is_exact_fit),
        theorem=(ESTIMATE if task.loss.is_convex else LOCAL) if bound.is_local else THEOREM,
        value=float(value) + TINY,
        tolerance=tolerance,
        rounding=rounding,
        rank=task.source.n_features - len(dependent),
        n_columns=task.source.n_features,
        condition=float(f"{bound.condition:.6g}"),
        dependent=dependent,
        names=tuple(["intercept"] * int(task.fit_intercept) + list(task.source.names)),
        literal=None if literal is None else min(literal, bound.most),
        fault="" if value <= tolerance else _fault(task, value, near, separated, bound),
        is_local=bound.is_local,
        separation=separated,
    )


def _parts(state: GlmState) -> tuple[Array, Array]:
    """Weights, scores x columns, and an intercept per score."""
    return np.atleast_2d(state.coef), np.atleast_1d(state.intercept)


def _point(task: GlmOrSoftmaxTask, state: GlmState) -> Array:
    return task.from_user_units(*_parts(state))


def _gap_first(task: GlmOrSoftmaxTask, point: Array, common: float, tolerance: float) -> Gap | None:
    """The duality gap where the Hessian of several scores is large, and a penalty on all columns makes a gap small."""
    if task.n_scores == 1 or task.size <= SMALL or not (task.l2[:-1] > 0).all():
        return None
    at = point_of(task, point, hessian=False, common=common)
    return duality_gap(at, tolerance * at.scale)


def _is_rough(task: GlmOrSoftmaxTask, value: float, bound: CurvatureBound) -> bool:
    """Whether rounding, or columns left out, are most of a bound that would hide a changed coefficient.

    Only for rows so few that the sharp one takes a fraction of a second.
    """
    is_loose = bound.rounding >= value / 2 or bound.related is not None
    return value > SEEN and is_loose and task.n_rows * task.size**2 <= MOST_WORK // 10


@dataclass(frozen=True)
class CurvatureBound:
    """What self-concordance proves at a point. excess: rounding and what weak penalties cost included.

    is_far: the state, not rounding, keeps it above the tolerance, so more bits would not help; related: columns that
    were left out as combinations of others; None where none was. is_tilted: weak penalties count by their tangents,
    and more bits tell what they curve.
    """

    base: Base
    excess: float
    rounding: float
    condition: float
    n_flat: int
    is_local: bool
    is_far: bool
    related: Related | None = None
    is_tilted: bool = False

    @property
    def most(self) -> float:
        """What no relative excess exceeds: no objective is below 0."""
        return 1.0 if np.isfinite(self.base.scale) else np.inf

    @property
    def relative(self) -> float:
        """The excess, relative."""
        return relative_to(self.excess, self.base.scale)


def bound_at(
    task: GlmOrSoftmaxTask, point: Array, tolerance: float, common: float = 0.0, off: float = 0.0
) -> CurvatureBound:
    """By the Hessian at the point. off: the most that a score there differs from that of the state."""
    here = point_of(task, point, hessian=True, common=common)
    whole, rows, near_copies = here.at, np.arange(task.shape[0]), None
    assert whole.hessian is not None
    curvature = Curvature(whole.hessian)
    weak = is_weak(task.l2, np.diagonal(whole.hessian).reshape(task.shape).min(axis=1))
    # Where the rows settle all directions weak penalties cost nothing beside them.
    if curvature.condition <= FIRM and not curvature.n_flat:
        weak = np.zeros_like(weak)
    at, weak_price = _without(task, whole, point, weak)
    near = near_scores(task, point)
    price = _price_of(here, off, near) + common
    assert at.hessian is not None
    if weak.any():
        curvature = Curvature(at.hessian)
    if curvature.n_flat or curvature.condition > FIRM:
        near_copies = related(task, ((task.l2 > 0) & ~weak)[:-1], at.hessian)
    if near_copies is not None:
        rows = near_copies.kept(task.shape[0])
        curvature = Curvature(_of_rows(task, at.hessian, rows))
        price += _price_of(here, _moved_by(near_copies, here), near)
    concordance, aim = 0.0 if near is None else near.concordance, tolerance * here.scale
    decrement = decrement_of(here, _slopes_of(at, task, rows), curvature, concordance, rows)
    is_tilted = False
    if weak.any() and near_copies is None:
        # A penalty is at least its tangent at the point, which tilts the rest and bends it nowhere: the slope of the
        # whole, in the curvature of the rest, proves what no price is paid for. About the mean of the classes the
        # tangent does not change along the directions that change no chance.
        tilted = decrement_of(here, _slopes_of(whole, task, rows), curvature, concordance, rows)
        is_tilted = not decrement.excess() + weak_price < tilted.excess()
        decrement, weak_price = (tilted, 0.0) if is_tilted else (decrement, weak_price)
    if near is not None and not decrement.excess() <= aim and decrement.value < np.inf:
        reach = concordance * _exact_reach(task, curvature, rows)
        reach *= looseness(here, curvature, concordance)
        decrement = Decrement(decrement.value, decrement.rounding, min(reach, decrement.reach))
    is_local = bool(near is None or (decrement.q < 1 and not near.covers(decrement.q)))
    excess = decrement.estimate() if is_local else decrement.excess()
    excess += price + weak_price
    return CurvatureBound(
        base=here.base,
        excess=np.inf if np.isnan(excess) else float(excess),  # terms that overflowed prove nothing
        rounding=decrement.allowance(here.scale),
        condition=curvature.condition,
        n_flat=curvature.n_flat,
        is_local=is_local,
        is_far=decrement.is_far(aim) and near_copies is None,
        related=near_copies,
        is_tilted=is_tilted,
    )


def _slopes_of(at: Evaluated, task: GlmOrSoftmaxTask, rows: Array) -> Array:
    return at.gradient.reshape(task.shape)[rows].ravel()


def _of_rows(task: GlmOrSoftmaxTask, hessian: Array, rows: Array) -> Array:
    """The part of a Hessian that some rows of the point have."""
    places = np.arange(task.size).reshape(task.shape)[rows].ravel()
    return np.asarray(hessian[np.ix_(places, places)])


def _moved_by(near: Related, at: Point) -> float:
    """How far the remainders of the columns left out move a score, at most."""
    unit = near.found.scale[near.found.columns] / at.task.scaling.scale[near.columns]
    return float(near.found.largest / unit @ np.abs(at.point.reshape(at.task.shape)[near.columns]).max(axis=1))


def _price_of(at: Point, moved: float, near: NearScores | None) -> float:
    """What scores that move by m add to the objective, at most: |l'| m + l'' m^2 e^(M m), as far as M is known."""
    if moved == 0:
        return 0.0
    concordance, room = (1.0, np.inf) if near is None else (near.concordance, near.room)
    growth = np.exp(concordance * moved) if moved <= room else np.inf
    apart = moved * min(at.task.n_scores, 2)  # of two scores
    return float(at.slope * moved + at.curved * apart * apart * growth)


def _literal(task: GlmOrSoftmaxTask, state: GlmState, near: Related, bound: CurvatureBound) -> float:
    """How far the objective can be above its minimum over all weights, relative; inf where that is not known.

    In columns of exactly the same span: those kept and the remainders. Weak penalties only are on the way.
    """
    if near.found.n_columns < task.source.n_features or bound.is_local:
        return np.inf
    rows = literal_columns(task.source, near.found, task.fit_intercept)
    if rows is None:
        return np.inf
    scores = zip(*task.centred(*_parts(state))[:2], strict=True)
    converted = [rows.basis.converted(coef, float(intercept)) for coef, intercept in scores]
    sizes: ColumnSizes = rows.source.reduce(ColumnSizes.of)
    other = task.without_penalty(rows.source)
    coef, intercept = (np.array([getattr(one, part) for one in converted]) for part in ("coef", "intercept"))
    point = other.from_user_units(coef, intercept)
    there = bound_at(other, point, 0.0, off=max(one.off_by(sizes.columns) for one in converted))
    if there.related is not None or there.is_local:
        return np.inf
    price = float(task.pulls @ np.square(_point(task, state))) / 2
    return relative_to(there.excess + price, bound.base.scale)


def _has_long_loss(task: GlmOrSoftmaxTask) -> bool:
    """Whether the loss is written in long decimal numbers."""
    return isinstance(task, SoftmaxTask) or row_loss(task.loss) is not None


def long_proof(task: GlmOrSoftmaxTask, state: GlmState, tolerance: float) -> LongExcess | None:
    """The same in long decimal numbers, where the data are few and the loss is written in them; else None."""
    n_scores, s = task.n_scores, task.strengths
    loss = None if isinstance(task, SoftmaxTask) else row_loss(task.loss)
    is_few = task.n_rows * task.size**2 <= MOST_WORK
    if not is_few or not _has_long_loss(task) or task.loss.concordance is None:
        return None
    rows = LongRows.of(task.source, task.fit_intercept)
    squares = [Decimal(1)] * len(s.factors)
    if task.standardize and s.alpha > 0:
        squares = rows.squared_spreads(len(squares), task.fit_intercept)
    pulls = long_pulls(s.alpha, s.l1_ratio, s.factors, squares)
    at, null = np.atleast_2d(state.coef).T, None
    if task.fit_intercept:
        pulls, at, null = [*pulls, Decimal(0)], np.vstack([at, state.intercept]), task.null_intercepts
    # A vector added to all classes changes no chance: without a penalty the last class needs no weights of its own.
    classes = [range(n_scores if pull or n_scores == 1 else n_scores - 1) for pull in pulls]
    parameters = tuple((j, k) for j in range(len(pulls)) for k in classes[j])
    problem = LongProblem(rows, loss, Decimal(task.loss.concordance), tuple(pulls), n_scores, parameters)
    return long_excess(problem, at, null, tolerance)


def _fault(
    task: GlmOrSoftmaxTask, value: float, near: Related | None, separated: Separation | None, bound: CurvatureBound
) -> str:
    """Why there is no proof; empty where it is that the value is too large."""
    if isinstance(task, GlmTask) and _is_constant(task):
        return (
            f"y is {task.targets.low:g} in every row. The fit is that constant but for rounding, and so is all of its "
            "objective: nothing can be proven relative to it. Predictions are right to rounding."
        )
    is_separated = separated is not None and separated.exists
    if near is not None and near.is_apart and not is_separated:
        return near.fault()
    return "" if np.isfinite(value) and not is_separated else fault_of(separated, bound.condition, bound.n_flat)


def _is_constant(task: GlmOrSoftmaxTask) -> bool:
    """Whether a constant is the best fit, for a target that does not vary: every class has a row."""
    if isinstance(task, SoftmaxTask):
        return False
    return task.targets.low == task.targets.high and not task.source.view.has_offset and task.fit_intercept


def claim_of(is_exact_fit: bool) -> str:
    """What the value is relative to."""
    return EXACT_FIT_CLAIM if is_exact_fit else CLAIM


def _certify_gap(task: GlmOrSoftmaxTask, state: GlmState, tolerance: float) -> GlmCertificate:
    """With an L1 penalty or bounds, and where columns are too many for a Hessian."""
    point = _point(task, state)
    # That a loss of the user's own is convex was not refuted; it is not proven.
    if isinstance(task, GlmTask) and (not task.loss.is_convex or isinstance(task.loss, Loss)):
        return _of_proof(task, state, estimate(task, point), LOCAL, tolerance)
    proof, most, fault = prove(task, point, tolerance), most_entries(task), ""
    if task.n_scores > 1 and task.is_smooth and not proof.gap.relative <= tolerance and not task.l2[:-1].all():
        fault = (
            f"a proof without a penalty needs the Hessian, of {task.size} x {task.size} entries; at most {most} x "
            f"{most} are taken. Use alpha > 0, or fewer columns."
        )
    return _of_proof(task, state, proof, GAP, tolerance, fault)


def _of_proof(
    task: GlmOrSoftmaxTask, state: GlmState, proof: Proof, theorem: str, tolerance: float, fault: str = ""
) -> GlmCertificate:
    gap = proof.gap
    return GlmCertificate(
        claim=claim_of(proof.is_exact_fit),
        theorem=theorem,
        value=gap.relative,
        tolerance=tolerance,
        rounding=relative_to(gap.rounding, gap.scale) + TINY,
        rank=int(np.count_nonzero(np.atleast_2d(state.coef).any(axis=0))),
        n_columns=task.source.n_features,
        condition=float(f"{proof.condition:.6g}"),
        names=tuple(["intercept"] * int(task.fit_intercept) + list(task.source.names)),
        fault=fault,
        is_local=theorem == LOCAL,
    )


def _without(task: GlmOrSoftmaxTask, at: Evaluated, point: Array, weak: Array) -> tuple[Evaluated, float]:
    """The objective without weak penalties, and what those cost at the point (models/glm/concordance.py)."""
    if not weak.any():
        return at, 0.0
    assert at.hessian is not None
    pull = np.where(np.repeat(weak, task.n_scores), task.pulls, 0.0)
    price = float(pull @ np.square(point)) / 2
    return Evaluated(at.value - price, at.gradient - pull * point, at.hessian - np.diag(pull), at.loss), price


def _exact_reach(task: GlmOrSoftmaxTask, curvature: Curvature, rows: Array) -> float:
    """max_i |(x_i, 1)|_{H^-1} over the rows of the point that may move, of half of any two scores: one pass."""
    shape, inverse = (len(rows), task.n_scores), np.zeros((*task.shape, *task.shape))
    classes = np.arange(task.n_scores)
    inverse[np.ix_(rows, classes, rows, classes)] = curvature.inverse.reshape(*shape, *shape)
    values = task.source.map(partial(_reach_of_run, inverse=inverse, units=task.row_units))
    return max(values, default=0.0) * (1 + 1e-6)


def _reach_of_run(run: Block, inverse: Array, units: tuple[Array, Array, bool]) -> float:
    """The largest of a run."""
    most = 0.0
    for rows in counted_rows(run, units):
        for form in _forms(inverse):
            most = max(most, float(np.einsum("ij,ij->i", rows @ form, rows).max(initial=0.0)))
    return float(np.sqrt(most))


def _forms(inverse: Array) -> Iterator[Array]:
    """The squared length of a score, or of half the difference of any two."""
    if inverse.shape[1] == 1:
        yield inverse[:, 0, :, 0]
    for k, j in zip(*np.triu_indices(inverse.shape[1], 1), strict=True):
        yield (inverse[:, k, :, k] + inverse[:, j, :, j] - inverse[:, k, :, j] - inverse[:, j, :, k]) / 4


def counted_rows(run: Block, units: tuple[Array, Array, bool]) -> Iterator[Array]:
    """The rows of positive weight in pieces, scaled and shifted, with the constant of an intercept as last column."""
    scale, shift, fit_intercept = units
    for begin in range(0, run.n_rows, PIECE_ROWS):
        part = run.part(begin, begin + PIECE_ROWS)
        rows = dense_rows(part.X) * scale - shift
        if part.weight is not None:
            rows = rows[part.weight > 0]
        yield np.column_stack([rows, np.full(len(rows), float(fit_intercept))])


def _relations(task: GlmOrSoftmaxTask, state: GlmState) -> tuple[str, ...]:
    """One sentence per redundant column: they are those of least squares."""
    if not len(task.columns.factor.dependent):
        return ()
    coef, intercept = _parts(state)
    first = Weights(coef[0], float(intercept[0]))
    return certify_squares(task.columns, first, 1.0).dependent


def _separation(task: GlmOrSoftmaxTask, state: GlmState) -> Separation | None:
    """What is known of a direction in which the loss falls for ever; None where a penalty or the loss forbids one."""
    if task.l2.any() or (task.strengths.alpha * task.strengths.factors).any():
        return None
    coef, intercept = _parts(state)
    candidate = np.column_stack([coef, intercept]) if task.fit_intercept else coef
    if isinstance(task, SoftmaxTask):
        return softmax_separation(task.source, task.n_classes, task.fit_intercept, candidate)
    sides = sides_of(task.loss)
    return None if sides is None else separation(task.source, sides, task.fit_intercept, candidate[0])


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
