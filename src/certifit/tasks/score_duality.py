"""The duality gap of a loss of scores with a penalty and bounds, from the data and the weights alone.

With W the sum of weights, any u in the domain of l* with sum_i w_i u_i = 0, and q = -sum_i w_i x_i u_i / W, the
objective exceeds its minimum by at most

    sum_i w_i [ l(y_i, z_i) + l*(y_i, u_i) - u_i z_i ] / W + sum_j [ h_j(w_j) + h*_j(q_j) - q_j w_j ]

and every bracket is >= 0. Offsets are part of z. The slopes u_i = l'(y_i, z_i) make the brackets of the rows 0; what
they lack is mended so that the price is known without another pass:

    u_i = t l'_i, 0 <= t <= 1    costs at most (1 - t) l(y_i, z_i): a bracket is convex in u, and at u = 0 it is
                                 l(y_i, z_i) - min l <= l(y_i, z_i), since losses are >= 0
    sum_i w_i u_i = 0            the slopes of the heavier sign are shrunk; q_j then moves by at most
                                 |sum_i w_i l'_i| / W times the largest |x_ij|
    q_U = 0 for columns without penalty: u_i = l'_i + l''_i dz_i, dz_i = -x_iU' v, H_UU v = (sum_i w_i x_iU l'_i) / W.
                                 With |l'''| <= M l'' the curvature on the way from l'_i to u_i is at least
                                 l''_i (1 - M |dz_i|), so with m = M max_i |dz_i| < 1 the brackets add up to at most
                                 v'H_UU v [ m + (1 - m) log(1 - m) ] / m^2, and u is in the domain of l*.

A second proof starts from another point: the minimum is at least its objective less its gap. After a Newton step that
is off by squares of what the first is off by.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from certifit.data.columns import Array
from certifit.penalties import ElasticPenalty
from certifit.statistics.curvature import Curvature
from certifit.statistics.oracle import Oracle
from certifit.statistics.residual import EXACT_FIT, MATRIX_ERROR, TINY, UNIT
from certifit.statistics.row_curvature import row_reach
from certifit.tasks.duality import MOST_ROUNDS, MOST_SETTLED, Gap, brackets_of, finite_share
from certifit.tasks.generalised import GeneralisedLinear
from certifit.tasks.quadratic import Kinks, minimiser, without_still

MOST_TERMS = 1000  # columns; for more the entries of the rows are looked at


@dataclass(frozen=True)
class _Point:
    """The sums at a point; reach: bounds on the entries of the columns that rounding is relative to."""

    point: Array
    sums: Oracle
    loss: float
    objective: float
    reach: Array
    score_error: float  # rounding of a score

    @property
    def weights(self) -> Array:
        """Without the intercept."""
        return self.point[:-1]


@dataclass(frozen=True)
class _Dual:
    """u by its q, each known to `error`, and what the brackets of the rows add up to."""

    q: Array
    error: Array
    rows: float


def score_gap(task: GeneralisedLinear, point: Array, enough: float = 0.0) -> Gap:
    """The gap at a point. Further proofs are tried where the first proves less than `enough`, relative."""
    penalty = task.penalty
    if not ((point[:-1] >= penalty.lower) & (point[:-1] <= penalty.upper)).all():
        return Gap(np.inf, 0.0, np.inf, 1.0)
    bears_hessian = len(penalty.l1) <= MOST_SETTLED
    at = _evaluated(task, point, bears_hessian and bool(_must_vanish(penalty).any()))
    gap = _gap_at(task, at)
    if gap.relative <= enough or not bears_hessian or not np.isfinite(at.objective):
        return gap
    if at.sums.hessian is None:
        at = _evaluated(task, point, True)
        gap = _better(gap, _gap_at(task, at))
    if gap.relative <= enough:
        return gap
    return _better(gap, _gap_from(task, at))


def scale_of(task: GeneralisedLinear, objective: float) -> float:
    """What an excess is relative to: the objective, or where it is an exact fit to rounding, a floor below it."""
    floor = EXACT_FIT * task.null_value if objective < 1e-6 else 0.0
    return max(objective, floor, TINY)


def _better(first: Gap, second: Gap) -> Gap:
    return second if second.relative < first.relative else first  # never a NaN


def _evaluated(task: GeneralisedLinear, point: Array, hessian: bool) -> _Point:
    sums = task.sums(point, hessian)
    at = task.of_sums(sums, point)
    objective = at.value + float(task.penalty.l1 @ np.abs(point[:-1]))
    reach = task.largest if sums.largest is None else sums.largest
    if sums.largest is None:  # such a pass takes the shift off its sums
        reach = reach + 2 * np.append(np.abs(task.scaling.shift), 0.0)
    return _Point(point, sums, at.loss, objective, reach, _score_error(task, point, reach))


def _gap_from(task: GeneralisedLinear, at: _Point) -> Gap:
    """The proof from the point that a Newton step leads to."""
    found = task.of_sums(at.sums, at.point)
    assert found.hessian is not None
    matrix = without_still(found.hessian, task.scaling.shift)
    target = minimiser(matrix, found.gradient, at.point, at.objective, Kinks.of(task.penalty))
    there = _evaluated(task, target, bool(_must_vanish(task.penalty).any()))
    gap = _gap_at(task, there)
    rounding = gap.rounding + _objective_error(task, at) + _objective_error(task, there)
    return Gap(
        max(at.objective - there.objective, 0.0) + gap.value, rounding, at.objective, scale_of(task, at.objective)
    )


def _gap_at(task: GeneralisedLinear, at: _Point) -> Gap:
    """The proof from the slopes at a point."""
    gap = Gap(np.inf, 0.0, at.objective, scale_of(task, at.objective))
    if not np.isfinite(at.objective):
        return gap
    none = np.zeros(len(at.weights))
    dual = _dual(task, at) or _Dual(none, none, at.loss)  # u = 0 is legal always
    penalty, w = task.penalty, at.weights
    part = finite_share(penalty, dual.q, dual.error)
    q, error = part * dual.q, part * dual.error
    reach = np.abs(w) + np.abs(penalty.maximiser(q))
    rounding = float(error @ reach) + 2.0**-50 * float(np.abs(q) @ reach)
    value = part * dual.rows + (1 - part) * at.loss + float(brackets_of(penalty, w, q).sum())
    return replace(gap, value=value, rounding=rounding)


def _dual(task: GeneralisedLinear, at: _Point) -> _Dual | None:
    """A feasible point but for the domains of the penalties with l1; None where none is proven."""
    gradient, error = at.sums.gradient[0] / task.sum_weight, _gradient_error(task, at)
    start = _Dual(-gradient[:-1], error[:-1], 0.0)
    must = _must_vanish(task.penalty)
    if must.any():
        return _orthogonal(task, at, gradient, error)
    if not task.fit_intercept:
        return start
    level = abs(float(gradient[-1])) + float(error[-1])
    heavier = (at.sums.slopes / task.sum_weight * (1 - MATRIX_ERROR) + abs(float(gradient[-1])) - float(error[-1])) / 2
    if not level <= heavier:
        return None
    return _Dual(start.q, start.error + level * at.reach[:-1], level / max(heavier, TINY) * at.loss)


def _must_vanish(penalty: ElasticPenalty) -> Array:
    """Columns whose conjugate is finite for one sign of q at most: no penalty, and no bound on a side."""
    is_open = np.isinf(penalty.upper) | np.isinf(penalty.lower)
    return np.asarray((penalty.l1 == 0) & (penalty.l2 == 0) & is_open)


def _orthogonal(task: GeneralisedLinear, at: _Point, gradient: Array, error: Array) -> _Dual | None:
    """The slopes made orthogonal to the columns that demand it; None where that cannot be proven.

    An unpenalised column without an upper bound demands q <= 0, one without a lower bound q >= 0.
    """
    penalty, concordance = task.penalty, task.loss.concordance
    if at.sums.hessian is None or concordance is None:
        return None
    unpenalised = (penalty.l1 == 0) & (penalty.l2 == 0)
    above = np.append(unpenalised & np.isinf(penalty.upper), task.fit_intercept)
    below = np.append(unpenalised & np.isinf(penalty.lower), task.fit_intercept)
    zeroed = above & below
    q, loose, rows = -gradient, error, 0.0
    for _ in range(MOST_ROUNDS):
        if zeroed.any():
            made = _projected(task, at, np.flatnonzero(zeroed), gradient, error)
            if made is None:
                return None
            q, loose, rows = made
        violating = ((above & (q + loose > 0)) | (below & (q - loose < 0))) & ~zeroed
        if not violating.any():
            return _Dual(q[:-1], loose[:-1], rows)
        zeroed = zeroed | violating
    return None


def _projected(
    task: GeneralisedLinear, at: _Point, places: Array, gradient: Array, error: Array
) -> tuple[Array, Array, float] | None:
    """All q after those at some places are made 0, their errors, and the brackets of the rows; None without a proof.

    H is known to MATRIX_ERROR of the roots of its diagonal, and |H_jU v| <= sqrt(H_jj) |v|_(H_UU).
    """
    assert at.sums.hessian is not None
    matrix = at.sums.hessian[0] / task.sum_weight
    roots = np.sqrt(np.maximum(np.diagonal(matrix), 0.0))
    curvature = Curvature(matrix[np.ix_(places, places)])
    loose = len(places) * MATRIX_ERROR * curvature.condition**2 + at.score_error
    if curvature.n_flat or not (roots[places] > 0).all() or not loose < 0.5:
        return None
    inverse = np.sqrt(np.maximum(np.diagonal(curvature.inverse), 0.0)) / np.sqrt(1 - loose)
    v = curvature.solve(gradient[places])
    entry = (MATRIX_ERROR + 4 * len(places) * UNIT) * float(roots[places] @ np.abs(v))  # of H v, over the root
    off = float((error[places] + entry * roots[places]) @ inverse)  # of |v| in the norm of H
    length = float(np.sqrt(max(float(gradient[places] @ v), 0.0) / (1 - loose))) + off
    most = (task.loss.concordance or 0.0) * float(at.reach[places] @ inverse) * length
    if not most < 1:
        return None
    q = -(gradient - matrix[:, places] @ v)
    errors = error + roots * off + entry * roots
    q[places], errors[places] = 0.0, 0.0
    return q, errors, length**2 * _bent(most)


def _bent(m: float) -> float:
    """[ m + (1 - m) log(1 - m) ] / m^2: 1/2 for m = 0, 1 for m = 1, and at most the line between as a bound."""
    return 0.5 + 0.5 * m


def _score_error(task: GeneralisedLinear, point: Array, reach: Array) -> float:
    """Rounding of a score: of its products and their sum. Rows of very many columns have few entries each."""
    n_terms, size = task.size, float(reach @ np.abs(point))
    if n_terms > MOST_TERMS:
        rows = row_reach(task.source, task.scaling, point[:-1])
        if rows.size < size:
            n_terms, size = rows.n_entries + 1, rows.size * (1 + 1e-6) + abs(float(point[-1]))
    return (n_terms + 4) * UNIT * (size + task.largest_offset)


def _gradient_error(task: GeneralisedLinear, at: _Point) -> Array:
    """Rounding of the entries of the gradient."""
    total = task.sum_weight
    slope, curved, moved = at.sums.slopes / total, at.sums.curvatures / total, at.score_error
    each = MATRIX_ERROR * slope + 8 * UNIT * (curved + 1 + abs(task.targets.mean) + slope) + moved * curved
    return np.asarray(at.reach * each + 4 * UNIT * np.abs(at.sums.gradient[0]) / total)


def _objective_error(task: GeneralisedLinear, at: _Point) -> float:
    """Rounding of the objective."""
    return MATRIX_ERROR * at.objective + at.sums.slopes / task.sum_weight * at.score_error
