"""The certificate of softmax regression: how far its objective can be above the minimum.

Two proofs. With a penalty h on all columns, weak duality: for any chances q_i with sum_i w_i (q_i - e_y) = 0 (the
intercepts), and v_jk = -sum_i w_i x_ij (q_ik - [y_i = k]) / W,

    f - min f <= sum_i w_i KL(q_i, p_i) / W + sum_jk [ h_j(w_jk) + h*_j(v_jk) - v_jk w_jk ]

Every term is >= 0, so nothing cancels. q: the chances at the state with the intercepts that are best, and so small a
share of one distribution for all rows that the sums by class are right to the last digit. With an L1 penalty, a share
1 - t of e_y too, which makes v t v and is in the domain of h*; KL is convex in q, and KL(e_y, p_i) is the loss.

Where the Hessian can be had, self-concordance, as for any generalised linear model: the curvature along a line changes
by no more than e^(largest difference of two scores' changes), so R = max_i max_kl |(e_k - e_l) (x_i, 1)|_{H^-1}. Both
are for weights whose sum over the classes is 0; what a common part costs is known and added.

Beside columns without a penalty an L1 penalty and bounds are proven by curvature too (models/glm/softmax_faces.py).
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block
from certifit.models.glm.certificate import THEOREM, GlmCertificate, claim_of, counted_rows, fault_of
from certifit.models.glm.concordance import Decrement, Related, is_weak, related, relative_to
from certifit.models.glm.duality import Base, Dual, dual_gap, without_penalty
from certifit.models.glm.high_precision_certificate import MOST_WORK, LongExcess, LongProblem, LongRows, long_excess
from certifit.models.glm.l1_certificate import MOST_ROUNDS, NEAR
from certifit.models.glm.separation_certificate import Separation, softmax_separation
from certifit.models.glm.softmax_faces import face_curvature, face_slopes, most_curvature, reach_by_chances, slack_of
from certifit.models.glm.softmax_task import SoftmaxTask, SoftmaxWeights
from certifit.models.glm.task import Evaluated
from certifit.models.least_squares.certificate import certify as certify_squares
from certifit.models.least_squares.normal_equations import Weights
from certifit.runtime import one_blas_thread
from certifit.statistics import softmax as sums
from certifit.statistics.factor import Curvature, product_above_0
from certifit.statistics.gram import ColumnSizes
from certifit.statistics.remainders import literal_columns
from certifit.statistics.residual import EXACT_FIT, MATRIX_ERROR, TINY, UNIT, is_exact_fit
from certifit.statistics.softmax import Mixture

DUALITY = "weak duality: the dual objective at any feasible point is a lower bound"
SMALL = 600  # entries of a point for which the Hessian is taken at once
MOST = 4000  # entries of a point for which a Hessian is taken at all
INTERCEPT_STEPS = 6
SAFETY = 1e-6  # of a divergence, for its logarithms
SHARE_OF_TOL = 1e-3  # of the tolerance that may go to class sums that are not right yet


@np.errstate(over="ignore", invalid="ignore")  # what overflows is infinite, and proves nothing
@one_blas_thread
def certify(task: SoftmaxTask, state: SoftmaxWeights, tolerance: float) -> GlmCertificate:
    """How far the objective at the state can be above its minimum."""
    if not task.is_smooth:
        return _certify_gap(task, state, tolerance)
    point, common = _parted(task, state)
    at = task.evaluate(point)
    base = _base(task, point, at.value + common)
    aim = tolerance * base.scale
    bound, theorem, fault, apart = Bound(np.inf, 0.0), DUALITY, "", None
    if task.alpha > 0 and task.size > SMALL:
        bound = Bound(*_duality_gap(task, point, at, aim))
    if not bound.excess <= aim and task.size <= MOST:
        curved = _by_curvature(task, point, at, aim)
        if not np.isfinite(curved.excess):
            apart = _separation(task, state)
            fault = fault_of(apart, curved.condition, curved.n_flat)
        if curved.excess < bound.excess or curved.related is not None:
            bound, theorem = curved, THEOREM
    elif not np.isfinite(bound.excess):
        fault = (
            f"a proof without a penalty needs the Hessian, of {task.size} x {task.size} entries; at most {MOST} x "
            f"{MOST} are taken. Use alpha > 0, or fewer columns."
        )
    bound = replace(bound, excess=bound.excess + common, is_far=bound.is_far or (apart is not None and apart.exists))
    proof = _in_more_bits(task, state, bound, base, tolerance)
    near = bound.related
    dependent = _relations(task, state) if near is not None and not near.is_apart else ()
    if near is not None and near.is_apart:
        fault = near.fault()
    return GlmCertificate(
        claim=claim_of(proof.is_exact_fit),
        theorem=theorem,
        value=proof.value + TINY,
        tolerance=tolerance,
        rounding=TINY if proof.is_long else relative_to(bound.rounding, base.scale) + TINY,
        rank=state.coef.shape[1] - len(dependent),
        n_columns=state.coef.shape[1],
        condition=float(f"{bound.condition:.6g}"),
        dependent=dependent,
        names=tuple(["intercept"] * int(task.fit_intercept) + list(task.source.names)),
        literal=proof.literal,
        fault="" if proof.value <= tolerance or (np.isfinite(proof.value) and not fault) else fault,
        separation=apart,
    )


def _certify_gap(task: SoftmaxTask, state: SoftmaxWeights, tolerance: float) -> GlmCertificate:
    """With an L1 penalty or bounds."""
    point, penalty = task.to_point(state), task.penalty
    weights, at = point[: -task.n_classes], task.evaluate(point)
    objective = at.value + float(penalty.l1 @ np.abs(weights))
    base = _base(task, point, objective)
    is_legal = bool(((weights >= penalty.lower) & (weights <= penalty.upper)).all())
    bound, theorem, aim = Bound(np.inf, 0.0), DUALITY, tolerance * base.scale
    if is_legal and np.isfinite(objective):
        if not without_penalty(penalty).any():
            bound = Bound(*_duality_gap(task, point, at, aim))
        # Rounding enters a gap once and a proof by curvature squared, which refuses small changes of a weight.
        if task.size <= SMALL or not bound.excess <= aim:
            curved = _on_faces(task, point, at)
            bound, theorem = (curved, THEOREM) if curved.excess < bound.excess else (bound, theorem)
        bound = replace(bound, excess=min(bound.excess, objective * (1 + MATRIX_ERROR)))  # no objective is below 0
    return GlmCertificate(
        claim=claim_of(base.is_exact_fit),
        theorem=theorem,
        value=relative_to(bound.excess, base.scale) + TINY,
        tolerance=tolerance,
        rounding=relative_to(bound.rounding, base.scale) + TINY,
        rank=int(np.count_nonzero(state.coef.any(axis=0))),
        n_columns=state.coef.shape[1],
        condition=_condition(task, point),
        names=tuple(["intercept"] * int(task.fit_intercept) + list(task.source.names)),
    )


def _condition(task: SoftmaxTask, point: Array) -> float:
    """Of the Hessian of the entries with a weight; infinite where it is not made."""
    active = np.flatnonzero(point[: -task.n_classes])
    if task.size > SMALL:
        return np.inf
    return float(f"{Curvature(task.hessian(point)[np.ix_(active, active)]).condition:.6g}") if len(active) else 1.0


def _on_faces(task: SoftmaxTask, point: Array, at: Evaluated) -> Bound:
    """Self-concordance with kinks and bounds; columns that no class gives a weight to are left out while they may."""
    slack = slack_of(task, point, at)
    least = slack.min(axis=1) - NEAR * np.append(task.penalty.l1[:: task.n_classes], 0.0)
    chosen = point.reshape(task.shape).any(axis=1) | (least <= 0)
    chosen[-1] = task.fit_intercept
    for _ in range(MOST_ROUNDS):
        kept = np.flatnonzero(chosen)
        if len(kept) * task.n_classes > MOST:
            break
        curvature, is_level = face_curvature(task, point, kept)
        rest = face_slopes(task, point, at, is_level) if curvature.n_flat == 0 else None
        if rest is None:
            break
        slopes, price = rest
        decrement = _decrement(task, point, replace(at, gradient=slopes.ravel()), curvature, np.inf, kept)
        size = decrement.value + decrement.rounding
        room = slack - _slope_error(task, point, at) - size * np.sqrt(most_curvature(task))[:, None]
        short = ~np.asarray((room >= 0).all(axis=1))
        short[-1] = False
        if not np.isfinite(size) or not (short & ~chosen).any():
            reach = decrement.reach if chosen[:-1].all() else np.inf
            decrement = replace(decrement, reach=min(reach, reach_by_chances(task, point, _moved(task, point))))
            return Bound(decrement.excess() + price, decrement.allowance(1.0), curvature.condition)
        chosen = chosen | short
    return Bound(np.inf, 0.0)


@dataclass(frozen=True)
class Bound:
    """What is proven at a point, rounding included; related: columns left out as combinations of others."""

    excess: float
    rounding: float
    condition: float = 1.0
    n_flat: int = 0
    is_far: bool = False  # the state, not rounding, keeps it above the tolerance
    related: Related | None = None
    is_tilted: bool = False  # weak penalties count by their tangents: more bits tell what they curve


@dataclass(frozen=True)
class Relative:
    """The value of a certificate, what it is relative to, and what treating columns as exact costs."""

    value: float
    is_exact_fit: bool
    literal: float | None = None
    is_long: bool = False  # proven in more bits, where no rounding is left


def _in_more_bits(task: SoftmaxTask, state: SoftmaxWeights, bound: Bound, base: Base, tolerance: float) -> Relative:
    """The bound relative to its base; proven for all weights, in more bits, where columns were left out or it fails."""
    excess = bound.excess
    if base.is_exact_fit and not bound.is_far:
        excess = min(excess, 2 * EXACT_FIT * base.scale)  # no objective is below 0
    value, literal, near = relative_to(excess, base.scale), None, bound.related
    if near is not None and not near.is_exact:
        literal = min(_literal(task, state, near, base), 1.0 if np.isfinite(base.scale) else np.inf)
        if near.is_apart or literal <= max(tolerance, value):
            value, literal = literal, None
    # A price of treating columns as exact that is known in float64 needs no more digits.
    is_told = value <= tolerance and not bound.is_tilted and (literal is None or literal < 1)
    if is_told or bound.is_far:
        return Relative(value, base.is_exact_fit, literal)
    long = long_proof(task, state, tolerance)
    if long is None:
        return Relative(value, base.is_exact_fit, literal)
    if literal is not None and value <= tolerance < long.relative:
        return Relative(value, base.is_exact_fit, min(literal, long.relative))
    return Relative(long.relative, long.is_exact_fit, is_long=True)


def _by_curvature(task: SoftmaxTask, point: Array, at: Evaluated, aim: float) -> Bound:
    """Self-concordance at a point; columns that are combinations of others are left out."""
    rest, price, hessian = _without_weak_penalties(task, point)
    curvature, kept, near = Curvature(hessian), np.arange(task.shape[0]), None
    if curvature.n_flat:
        near = related(task.source, rest.l2[:-1] > 0, task.fit_intercept)
    if near is not None:
        kept = near.kept(task.shape[0])
        whole = hessian.reshape(*task.shape, *task.shape)[kept][:, :, kept]
        curvature = Curvature(whole.reshape(len(kept) * task.n_classes, -1))
        unit = near.found.scale[near.found.columns] / task.scaling.scale[near.columns]
        moved = float(near.found.largest / unit @ np.abs(point.reshape(task.shape)[near.columns]).max(axis=1))
        price += _price_of(at, moved)
    decrement = _decrement(rest, point, at if rest is task else rest.evaluate(point), curvature, aim, kept)
    is_tilted = rest is not task and near is None
    if is_tilted:
        # A penalty is at least its tangent at the point, which tilts the rest and bends it nowhere: the slope of the
        # whole, in the curvature of the rest, proves what no price is paid for. The mean of the classes is 0, so the
        # tangent does not change along the directions that change no chance.
        tilted = _decrement(task, point, at, curvature, aim, kept)
        if tilted.excess() < decrement.excess() + price:
            decrement, price = tilted, 0.0
    rounding = decrement.allowance(1.0)
    is_far = decrement.is_far(aim) and near is None
    return Bound(decrement.excess() + price, rounding, curvature.condition, curvature.n_flat, is_far, near, is_tilted)


def _price_of(at: Evaluated, moved: float) -> float:
    """What scores that move by so much add to the objective: slopes of a row are 2 (1 - p) in sum, at most."""
    return 2 * moved * min(1.0, at.loss) + moved * moved


def _literal(task: SoftmaxTask, state: SoftmaxWeights, near: Related, base: Base) -> float:
    """How far the objective can be above its minimum over all weights, relative; inf where that is not known."""
    if near.found.n_columns < state.coef.shape[1]:
        return np.inf
    rows = literal_columns(task.source, near.found, task.fit_intercept)
    if rows is None:
        return np.inf
    converted = [rows.basis.converted(*pair) for pair in zip(state.coef, state.intercept, strict=True)]
    other = SoftmaxTask(rows.source, task.n_classes, 0.0, task.fit_intercept)
    there = SoftmaxWeights(np.array([one.coef for one in converted]), np.array([one.intercept for one in converted]))
    point, _ = _parted(other, there)
    at, sizes = other.evaluate(point), rows.source.reduce(ColumnSizes.of)
    bound = _by_curvature(other, point, at, 0.0)
    if bound.related is not None:
        return np.inf
    price = _price_of(at, max(one.off_by(sizes.columns) for one in converted))
    price += float(task.l2 @ np.square(task.to_point(state).reshape(task.shape)).sum(axis=1)) / 2
    return relative_to(bound.excess + price, base.scale)


def long_proof(task: SoftmaxTask, state: SoftmaxWeights, tolerance: float) -> LongExcess | None:
    """The same in long decimal numbers, where the data are few; else None."""
    if task.labels[1] * task.size**2 > MOST_WORK:
        return None
    rows, n_columns = LongRows.of(task.source, task.fit_intercept), state.coef.shape[1]
    squares, alpha = [Decimal(1)] * n_columns, Decimal(task.alpha) * (1 - Decimal(task.strengths.l1_ratio))
    if task.standardize and task.alpha > 0:
        squares = rows.squared_spreads(n_columns, task.fit_intercept)
    factors = task.strengths.factors.tolist()
    pulls = [alpha * Decimal(factor) * square for factor, square in zip(factors, squares, strict=True)]
    at, null = state.coef.T, None
    if task.fit_intercept:
        pulls, at, null = [*pulls, Decimal(0)], np.vstack([at, state.intercept]), np.log(task.shares)
    # A vector added to all classes changes no chance: without a penalty the last class needs no weights of its own.
    classes = [range(task.n_classes if pull else task.n_classes - 1) for pull in pulls]
    parameters = tuple((j, k) for j in range(len(pulls)) for k in classes[j])
    problem = LongProblem(rows, None, Decimal(2), tuple(pulls), task.n_classes, parameters)
    return long_excess(problem, at, null, tolerance)


def _parted(task: SoftmaxTask, state: SoftmaxWeights) -> tuple[Array, float]:
    """The point about the mean of the classes, and what that mean costs: it changes no chance, only the penalty."""
    at = task.to_point(state).reshape(task.shape)
    mean = at.mean(axis=1, keepdims=True)
    return (at - mean).ravel(), float(task.n_classes / 2 * (task.l2 @ np.square(mean[:, 0]))) * (1 + 8 * UNIT)


def _base(task: SoftmaxTask, point: Array, objective: float) -> Base:
    """What an excess is relative to: no more than the objective, or at an exact fit to rounding the null model's."""
    # A row's loss is a sum of terms >= 0 that do not cancel; scores that are off change it by twice as much at most,
    # and by no more than that relative to it where the row's own chance is near 1.
    error = MATRIX_ERROR * objective + 2 * _moved(task, point) * min(1.0, objective)
    if is_exact_fit(objective + error, task.null_value):
        return Base(task.null_value, True)
    return Base(max(objective - error, TINY), False)


def _moved(task: SoftmaxTask, point: Array) -> float:
    """By how much a score can be off: products and their sum are rounded."""
    weights = np.abs(point.reshape(task.shape)).max(axis=1)
    return (len(weights) + 4) * UNIT * float(task.largest @ weights)


def _duality_gap(task: SoftmaxTask, point: Array, at: Evaluated, aim: float) -> tuple[float, float]:
    """The gap, roundings included, and those alone."""
    total, classes, state = task.sum_weight, task.shares, point.reshape(task.shape)
    lift, off = _best_lift(task, state, at, aim)
    if not np.isfinite(off).all():
        return np.inf, 0.0
    # (1 - s) p + s mix has the sums of the classes for mix = shares - (1 - s) / s off, >= 0 from this s on.
    above = np.maximum(off, 0.0)  # a class that no row has a chance of is off by all of its share, below
    share = float(np.max(above / (classes + above)))
    mix = classes if share == 0 else np.maximum(classes - (1 - share) / share * off, 0.0)
    mix = mix / mix.sum()
    divergence, moments, _ = sums.dual(task.source, task.scaling, state, Mixture(lift, mix, share))
    divergence /= total
    moved = _moved(task, point)
    # Sums by class are off by their rounding: a further share of some mix makes them right.
    left = np.abs(moments[-1] / total) if task.fit_intercept else np.zeros(len(classes))
    slack = float(np.max((left + 4 * MATRIX_ERROR * classes) / classes)) if task.fit_intercept else 0.0
    far = 2 * moved / UNIT / (len(state) + 4) + float(np.ptp(lift)) + np.log(len(classes))  # most of -log p
    rounding = SAFETY * divergence + np.sqrt(2 * divergence) * 2 * moved + 2 * moved**2 + slack * (far + 2)
    rounding += 16 * UNIT * far * UNIT
    error = task.largest[:-1, None] * (2 * classes + left) * (4 * MATRIX_ERROR + slack)
    dual = Dual(-(moments[:-1] / total).ravel(), error.ravel(), divergence + rounding)
    gap, more = dual_gap(task.penalty, state[:-1].ravel(), dual, at.loss * (1 + MATRIX_ERROR) + 2 * moved)
    rounding += more
    return (float(gap + more), float(rounding)) if np.isfinite(gap + more) else (np.inf, 0.0)


def _best_lift(task: SoftmaxTask, state: Array, at: Evaluated, aim: float) -> tuple[Array, Array]:
    """What to add to the intercepts so that the chances sum to the classes' weights, and by what they still do not."""
    n_classes, total = task.n_classes, task.sum_weight
    lift = np.zeros(n_classes)
    if not task.fit_intercept:
        return lift, lift
    off = at.gradient.reshape(task.shape)[-1]
    if np.max(np.abs(off) / task.shares) <= SHARE_OF_TOL * aim:
        return lift, off
    best = (float(np.abs(off).max()), lift, off)
    for _ in range(INTERCEPT_STEPS):
        _, moments, curvature = sums.dual(task.source, task.scaling, state, Mixture(lift, task.shares, 0.0))
        off = moments[-1] / total
        size = float(np.abs(off).max())
        if size < best[0]:
            best = (size, lift, off)
        elif lift.any():
            break
        if np.max(np.abs(off) / task.shares) <= SHARE_OF_TOL * aim:
            break
        # Chances do not change with a common lift; 11' makes the matrix definite.
        matrix = curvature / total + np.full((n_classes, n_classes), float(np.trace(curvature)) / total / n_classes)
        lift = lift - np.linalg.lstsq(matrix, off, rcond=None)[0]
    return best[1], best[2]


def _decrement(
    task: SoftmaxTask, point: Array, at: Evaluated, curvature: Curvature, aim: float, kept: Array
) -> Decrement:
    """lambda and R, both at least what they are, with what rounding may have hidden; kept: columns that may move."""
    moved, n_rows, shape = _moved(task, point), task.shape[0], (len(kept), task.n_classes)
    loose = task.size * MATRIX_ERROR * curvature.condition**2 + 4 * moved
    if curvature.n_flat or not loose < 0.5:
        return Decrement(np.inf, 0.0, np.inf)
    loose = 1 / np.sqrt(1 - loose)
    gradient = at.gradient.reshape(task.shape)[kept].ravel()
    value = np.sqrt(product_above_0(gradient, curvature.solve(gradient))) * loose
    error = _slope_error(task, point, at)
    spread = np.zeros(task.shape)
    spread[kept] = np.sqrt(np.maximum(np.diagonal(curvature.inverse), 0.0)).reshape(shape)
    if not task.fit_intercept:
        error[-1] = spread[-1] = 0.0
    rounding = float(np.sum(error * spread)) * loose
    decrement = Decrement(float(value), rounding, 2 * float(np.max(task.largest @ spread)) * loose)
    if decrement.excess() <= aim:
        return decrement
    inverse = np.zeros((n_rows, task.n_classes, n_rows, task.n_classes))
    inverse[np.ix_(kept, np.arange(shape[1]), kept, np.arange(shape[1]))] = curvature.inverse.reshape(*shape, *shape)
    units = (task.scaling.scale, task.scaling.shift, task.fit_intercept)
    most = max(task.source.map(partial(_reach_of_run, inverse=inverse, units=units)), default=0.0)
    return Decrement(float(value), rounding, min(most * loose * (1 + 1e-6), decrement.reach))


def _slope_error(task: SoftmaxTask, point: Array, at: Evaluated) -> Array:
    """Rounding of slopes: of the sums over the rows, and of the penalty's."""
    error = np.outer(task.largest, 2 * task.shares + np.abs(at.gradient.reshape(task.shape)[-1]))
    error = error * (4 * MATRIX_ERROR + 2 * _moved(task, point))
    error[:-1] += 4 * UNIT * task.penalty.l1.reshape(-1, task.n_classes)
    return np.asarray(error + 4 * UNIT * np.abs(task.l2[:, None] * point.reshape(task.shape)))


def _without_weak_penalties(task: SoftmaxTask, point: Array) -> tuple[SoftmaxTask, float, Array]:
    """The task without weak penalties, what those cost at the point, and its Hessian (models/glm/concordance.py)."""
    hessian = task.hessian(point)
    weak = is_weak(task.l2, np.diagonal(hessian).reshape(task.shape).min(axis=1))
    if not weak.any():
        return task, 0.0, hessian
    rest = copy(task)
    rest.l2 = np.where(weak, 0.0, task.l2)
    price = float((task.l2 - rest.l2) @ np.square(point.reshape(task.shape)).sum(axis=1)) / 2
    return rest, price, rest.hessian(point)


def _relations(task: SoftmaxTask, state: SoftmaxWeights) -> tuple[str, ...]:
    """One sentence per redundant column: they are those of least squares."""
    if not len(task.columns.factor.dependent):
        return ()
    return certify_squares(task.columns, Weights(state.coef[0], float(state.intercept[0])), 1.0).dependent


def _reach_of_run(run: Block, inverse: Array, units: tuple[Array, Array, bool]) -> float:
    low, high = np.triu_indices(inverse.shape[1], 1)
    most = 0.0
    for rows in counted_rows(run, units):
        for k, j in zip(low, high, strict=True):
            form = inverse[:, k, :, k] + inverse[:, j, :, j] - inverse[:, k, :, j] - inverse[:, j, :, k]
            most = max(most, float(np.einsum("ij,ij->i", rows @ form, rows).max(initial=0.0)))
    return float(np.sqrt(most))


def _separation(task: SoftmaxTask, state: SoftmaxWeights) -> Separation | None:
    """What is known of a direction in which the loss falls for ever; None where a penalty forbids one."""
    if task.alpha > 0:
        return None
    candidate = np.column_stack([state.coef, state.intercept]) if task.fit_intercept else state.coef
    return softmax_separation(task.source, task.n_classes, task.fit_intercept, candidate)
