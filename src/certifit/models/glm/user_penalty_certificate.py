"""The certificate of a generalised linear model with a penalty of the user's own, alpha C(w).

With a conjugate, by weak duality as in models/glm/duality.py: for slopes u of the losses and q = -X'u / W

    excess <= brackets of the rows + alpha C(w) + alpha C*(q / alpha) - q'w

which holds if C* is the conjugate of C. Where C*(q / alpha) is infinite u is shrunk: c u costs (1 - c) of the loss.
Without one, an estimate: half the squared length r' H^-1 r of what is left of the slopes, H the Hessian of the loss.
r: gradient of loss and penalty, or (w - prox(w - t g)) / t of the proximal step from w.
"""

from __future__ import annotations

import numpy as np

from certifit.data.columns import Array
from certifit.mathematics.losses.user import Loss
from certifit.models.glm.certificate import CLAIM, ESTIMATE, LOCAL, GlmCertificate
from certifit.models.glm.duality import dual_slopes
from certifit.models.glm.points import ScorePoint
from certifit.models.glm.task import GlmTask
from certifit.models.glm.user_penalty import UserPenalty, UserPenaltyProblem
from certifit.models.lasso.certificate import Gap
from certifit.models.least_squares.normal_equations import Weights
from certifit.runtime import one_blas_thread
from certifit.statistics.factor import Curvature
from certifit.statistics.residual import MATRIX_ERROR, TINY

GAP_OF_USER = "weak duality with the conjugate of your penalty: a bound if that is its conjugate"
SHARES = (0.0, *(10.0**-k for k in range(16, 0, -1)))  # by which slopes are shrunk to where the conjugate is finite


@np.errstate(over="ignore", invalid="ignore")  # what overflows is infinite, and proves nothing
@one_blas_thread
def certify(task: GlmTask, state: Weights, tolerance: float) -> GlmCertificate:
    """How far the objective at the state can be above its minimum."""
    user = task.user_penalty
    assert user is not None
    point = task.to_point(state)
    is_proof = user.penalty.has_conjugate and task.loss.is_convex and not isinstance(task.loss, Loss)
    is_convex = task.loss.is_convex and user.penalty.is_convex
    gap = _gap(task, user, state, point) if is_proof and user.penalty.is_convex else None
    fault = user.penalty.refutation
    if gap is not None and gap.value < -gap.rounding:
        fault, gap = f"conjugate of {user.penalty.name} is too small: C(w) + C*(q) < q'w at the fitted weights.", None
    is_local = gap is None
    if gap is None:
        gap = _estimate(task, user, state, point)
    value = np.inf if fault else float(max(gap.value, 0.0) + gap.rounding) / gap.scale + TINY
    return GlmCertificate(
        claim=CLAIM,
        theorem=GAP_OF_USER if not is_local else ESTIMATE if is_convex else LOCAL,
        value=value,
        tolerance=tolerance,
        rounding=float(gap.rounding / gap.scale) + TINY,
        rank=int(np.count_nonzero(state.coef)),
        n_columns=len(state.coef),
        condition=np.inf,
        names=tuple(["intercept"] * int(task.fit_intercept) + list(task.source.names)),
        fault=fault,
        is_local=is_local,
    )


def _gap(task: GlmTask, user: UserPenalty, state: Weights, point: Array) -> Gap:
    at = ScorePoint.of(task, point, hessian=False)
    penalty = user.value(state.coef)
    objective, error = at.objective + penalty, at.objective_error + MATRIX_ERROR * abs(penalty)
    scale = max(objective - error, TINY)
    best = Gap(max(objective, 0.0), error, objective, scale)  # u = 0: losses are not negative, but for rounding
    dual = dual_slopes(at)
    if dual is None:
        return best
    q, errors = dual.q / task.scaling.scale, dual.error / task.scaling.scale
    for shrunk in SHARES:
        share = 1 - shrunk
        conjugate = user.alpha * user.penalty.conjugate(share * q / user.alpha)
        if not np.isfinite(conjugate):
            continue
        terms = (share * dual.rows, shrunk * at.most_loss, penalty, conjugate, -share * float(q @ state.coef))
        reach = 2 * np.abs(state.coef)
        rounding = float(errors @ reach) + 2.0**-50 * sum(map(abs, terms))
        gap = Gap(sum(terms), rounding, objective, scale)
        best = gap if gap.value + gap.rounding < best.value + best.rounding else best
        if gap.value < -gap.rounding:
            return gap
    return best


def _estimate(task: GlmTask, user: UserPenalty, state: Weights, point: Array) -> Gap:
    problem = UserPenaltyProblem(task)
    x = problem.from_point(point)
    loss, gradient, matrix = problem.curvature(x)
    d, w = len(state.coef), state.coef
    if user.penalty.has_prox:
        t = 1.0 / max(float(np.linalg.eigvalsh(matrix[:d, :d])[-1]), np.finfo(float).tiny) if d else 1.0
        gradient[:d] = (w - user.penalty.prox(w - t * gradient[:d], user.alpha * t)) / t
    else:
        gradient[:d] += user.alpha * user.penalty.gradient(w)
    left = float(gradient @ Curvature(matrix).solve(gradient)) / 2
    objective = loss + user.value(w)
    return Gap(max(left, 0.0), 0.0, objective, max(abs(objective), TINY))
