"""The duality gap of a loss of scores with a penalty and bounds, from passes without a Hessian.

With W the sum of weights, any u in the domain of l* with sum_i w_i u_i = 0, and q = -sum_i w_i x_i u_i / W, the
objective exceeds its minimum by at most

    sum_i w_i [ l(y_i, z_i) + l*(y_i, u_i) - u_i z_i ] / W + sum_j [ h_j(w_j) + h*_j(q_j) - q_j w_j ]

and every bracket is >= 0. Offsets are part of z. The slopes u_i = l'(y_i, z_i) make the brackets of the rows 0; what
they lack is mended so that the price is known:

    u_i = t l'_i, 0 <= t <= 1    costs at most (1 - t) l(y_i, z_i): a bracket is convex in u, and at u = 0 it is
                                 l(y_i, z_i) - min l <= l(y_i, z_i), since losses are >= 0. Near t = 1 it costs of the
                                 order of (1 - t)^2 l'^2 / l'', which a pass tells (shrunk_slopes): of a weak l1 penalty
                                 rounding of q is a large share, and 1 - t no rounding
    sum_i w_i u_i = 0            the slopes of the heavier sign are shrunk; q_j then moves by at most
                                 |sum_i w_i l'_i| / W times the largest |x_ij|

Columns without penalty and bounds ask for q_j = 0: there u = 0 is all that is tried.

Of softmax u_i = q_i - e_y for chances q_i, and the bracket of a row is KL(q_i, p_i). The slopes are the chances at the
state with the intercepts that are best, and so small a share of one distribution for all rows that the sums by class
are right to the last digit. A share 1 - t of e_y makes u t u; KL is convex in q, and KL(e_y, p_i) is the loss.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.mathematics.penalties import ElasticPenalty
from certifit.models.glm.points import ClassPoint, Point, ScorePoint
from certifit.models.lasso.certificate import Gap
from certifit.statistics import softmax as sums
from certifit.statistics.loss_sums import shrunk_slopes
from certifit.statistics.residual import MATRIX_ERROR, TINY, UNIT
from certifit.statistics.softmax import Mixture

INTERCEPT_STEPS = 6
SAFETY = 1e-6  # of a divergence, for its logarithms
SHARE_OF_TOL = 1e-3  # of the tolerance that may go to class sums that are not right yet


@dataclass(frozen=True)
class Dual:
    """u by its q, each known to `error`, and what the brackets of the rows add up to."""

    q: Array
    error: Array
    rows: float
    rounding: float = 0.0  # of the brackets


def duality_gap(at: Point, aim: float) -> Gap:
    """The gap at a point. aim: an absolute gap that is enough."""
    if not at.is_feasible:
        return Gap(np.inf, 0.0, at.objective, 1.0)
    # u = 0: losses are not negative, but for rounding.
    nothing = Gap(max(at.objective, 0.0), at.objective_error, at.objective, at.scale, at.base.is_exact_fit)
    dual = _dual(at, aim)
    if dual is None:
        return nothing
    return better(nothing, gap_of(at, dual, aim))


def gap_of(at: Point, dual: Dual, aim: float, moved: float = 0.0) -> Gap:
    """What a dual point proves. moved: of slopes as float64 tells them, with score errors and steps so far."""
    share = at.task.penalty.finite_share(dual.q, dual.error)
    brackets, rounding = at.task.penalty.gap(at.weights, share * dual.q, share * dual.error)
    rows = share * dual.rows + (1 - share) * at.most_loss
    if isinstance(at, ScorePoint) and (moved or rows > SHARE_OF_TOL * aim):
        task, lost = at.task, min(rows / max(at.most_loss, TINY), 1.0)
        sums = shrunk_slopes(task.source, task.at(at.point), lost, moved or at.score_error, moved > 0)
        nearer = sums / task.sum_weight + lost * at.value_error
        rows = nearer if moved else min(rows, nearer)
    value = rows + brackets + at.common
    rounding += share * dual.rounding
    return Gap(value, rounding, at.objective, at.scale, at.base.is_exact_fit)


def better(first: Gap, second: Gap) -> Gap:
    """The one that proves more."""
    return second if second.relative < first.relative else first  # never a NaN


def _dual(at: Point, aim: float) -> Dual | None:
    """A feasible point but for the domains of penalties with l1; None where none is known."""
    if without_penalty(at.task.penalty).any():
        return None
    if isinstance(at, ClassPoint):
        return _dual_chances(at, aim)
    assert isinstance(at, ScorePoint)
    return dual_slopes(at)


def without_penalty(penalty: ElasticPenalty) -> Array:
    """Which weights neither a penalty nor a bound on both sides holds: those ask for q_j = 0."""
    is_open = np.isinf(penalty.upper) | np.isinf(penalty.lower)
    return np.asarray((penalty.l1 == 0) & (penalty.l2 == 0) & is_open)


def dual_slopes(at: ScorePoint) -> Dual | None:
    """The slopes of the losses, mended so that they add up to 0 with an intercept; None where they are too far off."""
    return levelled(at, at.sums.gradient[0] / at.task.sum_weight, at.gradient_error)


def levelled(at: ScorePoint, gradient: Array, error: Array, moved: float = 0.0) -> Dual | None:
    """The same of a gradient of the loss, of slopes that differ from those of the losses by `moved` in the mean."""
    if not at.task.fit_intercept:
        return Dual(-gradient[:-1], error[:-1], 0.0)
    level = abs(float(gradient[-1])) + float(error[-1])
    heavier = (at.slope * (1 - MATRIX_ERROR) - moved + abs(float(gradient[-1])) - float(error[-1])) / 2
    if not level <= heavier:
        return None
    return Dual(-gradient[:-1], error[:-1] + level * at.reach[:-1], level / max(heavier, TINY) * at.most_loss)


def _dual_chances(at: ClassPoint, aim: float) -> Dual | None:
    """Chances with the sums of the classes; None where those of the state overflow."""
    task, state = at.task, at.point.reshape(at.task.shape)
    total, classes = task.sum_weight, task.shares
    lift, off = _best_lift(at, aim)
    if not np.isfinite(off).all():
        return None
    # (1 - s) p + s mix has the sums of the classes for mix = shares - (1 - s) / s off, >= 0 from this s on.
    above = np.maximum(off, 0.0)  # a class that no row has a chance of is off by all of its share, below
    share = float(np.max(above / (classes + above)))
    mix = classes if share == 0 else np.maximum(classes - (1 - share) / share * off, 0.0)
    divergence, moments, _ = sums.dual(task.source, task.scaling, state, Mixture(lift, mix / mix.sum(), share))
    divergence /= total
    # The means of |q - [own class]|: chances that differ little from those of the state, in sum, have little more.
    near = min(1.0, at.most_loss + float(np.sqrt(2 * max(divergence, 0.0))) + share)
    left, slack, slopes = np.zeros(len(classes)), 0.0, np.full(len(classes), near)
    if task.fit_intercept:  # sums by class are off by their rounding: a further share of some mix makes them right
        left = np.abs(moments[-1] / total)
        slopes = np.minimum(near, 2 * classes + left)
        slack = float(np.max((left + 2 * MATRIX_ERROR * slopes) / classes))
    moved = at.score_error
    far = 2 * moved / UNIT / (len(state) + 4) + float(np.ptp(lift)) + np.log(len(classes))  # most of -log p
    rounding = SAFETY * divergence + np.sqrt(2 * divergence) * 2 * moved + 2 * moved * moved + slack * (far + 2)
    rounding += 16 * UNIT * far * UNIT
    error = at.reach[:-1, None] * (4 * MATRIX_ERROR * slopes + (3 * classes + left) * slack)
    return Dual(-(moments[:-1] / total).ravel(), error.ravel(), divergence, float(rounding))


def _best_lift(at: ClassPoint, aim: float) -> tuple[Array, Array]:
    """What to add to the intercepts so that the chances sum to the classes' weights, and by what they still do not."""
    task, state = at.task, at.point.reshape(at.task.shape)
    n_classes, total = task.n_classes, task.sum_weight
    lift = np.zeros(n_classes)
    if not task.fit_intercept:
        return lift, lift
    off = at.at.gradient.reshape(task.shape)[-1]
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
