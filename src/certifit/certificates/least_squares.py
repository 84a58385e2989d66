"""The certificate of least squares and ridge: sub-optimality, rank, digits a coefficient.

It is computed from the task and the state alone; no solver is imported. With g the gradient at the state and A the
matrix of the system, a quadratic's excess over its minimum is exactly g' A^-1 g / 2, whatever units the columns have.
With fewer rows than columns there is no A to invert; the duality gap |alpha w - X'r/n|^2 / (2 alpha) takes its place.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from certifit.certificates.certificate import Certificate, prediction_change
from certifit.certificates.inference import Inference
from certifit.data.columns import Array
from certifit.runtime import one_blas_thread
from certifit.statistics.residual import MATRIX_ERROR, TINY, TWOFOLD_UNIT, Residual
from certifit.tasks.dual_least_squares import DualLeastSquares
from certifit.tasks.least_squares import LeastSquares
from certifit.tasks.normal_equations import Weights

UNIT = 2.0**-53
SAFETY = 1e-12  # of a value, for the last roundings
MOST_DIGITS = 15.0
MOST_TERMS = 12  # of a relation that is spelt out
MOST_RELATIONS = 100
LARGEST_DENOMINATOR = 12


def certify(task: LeastSquares | DualLeastSquares, state: Weights, tolerance: float) -> Certificate:
    """How far the state is from the minimum, which columns are redundant, how many digits are right."""
    return _of_columns(task, state, tolerance) if isinstance(task, LeastSquares) else _of_rows(task, state, tolerance)


def infer(
    task: LeastSquares | DualLeastSquares, state: Weights, n_rows: float | None = None, log_weight: float = np.nan
) -> Inference | None:
    """Standard errors and the like; None under a penalty, for redundant columns or without residual freedom.

    n_rows, log_weight: where weights are inverse variances, the number of rows and the sum of the weights' logarithms.
    """
    if isinstance(task, DualLeastSquares) or task.alpha > 0 or len(task.factor.dependent):
        return None
    s = task.gram.scaling
    offset = int(task.fit_intercept)
    names = ["intercept"] * offset + task.source.names
    sum_weight = task.gram.sum_weight / s.weight_scale
    n_obs = sum_weight if n_rows is None else n_rows
    if not len(names) * (1 + SAFETY) < n_obs < np.inf:  # a sum of weights has roundings
        return None
    units = np.concatenate([np.ones(offset), s.scale])
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        inverse = _raw_inverse(task) * units[:, None] * units[None, :] * s.weight_scale
    mean, about = task.gram.target_moments()
    tss = about if offset else about + mean**2 * task.gram.sum_weight
    if not (np.isfinite(inverse).all() and (np.diagonal(inverse) > 0).all()):
        return None
    residual = task.residual_at(state)
    exponent = _exponent_of(s.y_scale)
    unit = (2.0**exponent * s.y_scale) ** 2 * s.weight_scale
    estimate = np.concatenate([[state.intercept] * offset, state.coef])
    squares = (residual.squares / unit, tss / unit)
    own = (None, np.nan) if n_rows is None else (sum_weight, log_weight)
    return Inference(tuple(names), estimate, inverse, *squares, exponent, n_obs, bool(offset), *own)


def variance_inflation(task: LeastSquares) -> dict[str, float]:
    """(A^-1)_jj times the (centred) sum of squares of every column, from the sums of the rows: any condition."""
    d, sums = task.gram.n_columns, task.gram.sums
    squares = np.diagonal(sums)[:d].copy()
    if task.fit_intercept:
        squares -= sums[:d, d] ** 2 / sums[d, d]
    values = np.diagonal(task.factor.inverse)[int(task.fit_intercept) :] * squares
    return dict(zip(task.source.names, np.maximum(values, 1.0).tolist(), strict=True))


def _of_columns(task: LeastSquares, state: Weights, tolerance: float) -> Certificate:
    residual = task.residual_at(state)
    gradient = task.gradient(residual)
    weights, _ = task.to_scaled(state)
    objective = residual.squares + float(task.penalty @ weights**2)
    scale = residual.scale(objective, _null_objective(task))
    excess = max(float(gradient @ task.factor.solve(gradient)), 0.0)
    bound = (np.sqrt(excess) * (1 + _matrix_error(task)) + _gradient_error(task, residual, weights)) ** 2
    rounding = float((bound - excess) / scale) + TINY
    offset = int(task.fit_intercept)
    return Certificate(
        claim="relative excess of the objective",
        theorem="a quadratic exceeds its minimum by g' A^-1 g / 2",
        value=excess / scale + rounding,
        tolerance=tolerance,
        rounding=rounding,
        rank=task.rank,
        n_columns=task.gram.n_columns,
        condition=task.factor.condition,
        dependent=_relations(task),
        names=tuple(["intercept"] * offset + task.source.names),
        digits=tuple(_digits(task, state, residual, gradient)),
        prediction_change=prediction_change(
            (excess / scale + rounding) * scale / task.gram.sum_weight, task.gram.scaling.y_scale
        ),
    )


def _matrix_error(task: LeastSquares) -> float:
    """How far off sqrt(g' A^-1 g) can be, relative, for a given g.

    Roundings of A count with the square of the condition, roundings of rows by roots of weights with the condition.
    """
    condition = task.factor.condition
    sums = MATRIX_ERROR if task.gram.low is None else 16 * TWOFOLD_UNIT
    return min(condition**2 * sums + 4 * condition * UNIT, 1.0) + SAFETY


def _gradient_error(task: LeastSquares, residual: Residual, weights: Array) -> float:
    """sqrt(e' |A^-1| e) for the error e of the gradient: of twofold sums, of a step without a pass, of sum_w alpha."""
    offset = int(task.fit_intercept)
    norms = np.concatenate([[np.sqrt(task.gram.sum_weight)] * offset, task.gram.norms])
    error = residual.rounding[1 - offset :] + TWOFOLD_UNIT * np.sqrt(residual.magnitude) * norms
    error[offset:] += MATRIX_ERROR * task.penalty * np.abs(weights)
    return float(np.sqrt(error @ (np.abs(task.factor.inverse) @ error)))


def _null_objective(task: LeastSquares) -> float:
    mean, about = task.gram.target_moments()
    return about if task.fit_intercept else about + mean**2 * task.gram.sum_weight


def _raw_inverse(task: LeastSquares) -> Array:
    """A^-1 for the columns (1, x), from that for (1, x - shift): b = b' - sum_j w_j shift_j."""
    inverse = task.factor.inverse
    if not task.fit_intercept or not task.gram.scaling.shift.any():
        return inverse
    back = np.eye(len(inverse))
    back[0, 1:] = -task.gram.scaling.shift
    return np.asarray(back @ inverse @ back.T)


@one_blas_thread
def _digits(task: LeastSquares, state: Weights, residual: Residual, gradient: Array) -> Array:
    """-log10 of a bound on the relative error of every coefficient: see the docs, "Digits".

    err = |T| |A^-1| |g| + u (s_j | |X||w| + |y| | + sum_k |A^-1_jk| |x_k| |r|): what the solver left, and the effect of
    half an ulp in every entry of X and y.
    """
    offset = int(task.fit_intercept)
    weights, intercept = task.to_scaled(state)
    estimate = np.concatenate([[intercept] * offset, weights])
    inverse, raw = task.factor.inverse, _raw_inverse(task)
    left = np.abs(inverse) @ (np.abs(gradient) + residual.rounding[1 - offset :])
    if offset:
        left[0] += np.abs(task.gram.scaling.shift) @ left[1:]
    norms = np.concatenate([np.zeros(offset), task.gram.norms])
    spread = np.sqrt(np.maximum(np.diagonal(raw), 0.0)) * np.sqrt(residual.magnitude)
    tilt = np.abs(raw) @ norms * np.sqrt(residual.squares)
    error = left + UNIT * (spread + tilt + np.abs(estimate))
    with np.errstate(divide="ignore", invalid="ignore"):
        digits = -np.log10(error / np.abs(estimate))
    digits = np.where(np.abs(estimate) > error, np.clip(digits, 0.0, MOST_DIGITS), 0.0)
    digits[~_determined(task)] = 0.0
    if UNIT * task.factor.condition >= 0.01:
        digits[:] = 0.0
    return np.asarray(digits)


def _determined(task: LeastSquares) -> Array:
    """Coefficients that all minimisers share: those in no relation among columns."""
    factor = task.factor
    free = np.ones(len(factor.kept) + len(factor.dependent), dtype=bool)
    free[factor.dependent] = False
    if len(factor.dependent):
        significant = np.abs(relative_relations(task)) > 1e-9
        free[factor.kept[significant.any(axis=0)]] = False
    return free


def relative_relations(task: LeastSquares) -> Array:
    """Relations in units of the columns' norms: sizes that can be compared. The intercept's share is left out."""
    factor = task.factor
    offset = int(task.fit_intercept)
    norms = np.concatenate(
        [[np.sqrt(task.gram.sum_weight)] * offset, np.maximum(task.gram.norms, np.finfo(float).tiny)]
    )
    return np.asarray(factor.relations * norms[factor.kept] / norms[factor.dependent][:, None])


@np.errstate(over="ignore", invalid="ignore")  # columns may be so unlike in size that their ratio overflows
def _relations(task: LeastSquares) -> tuple[str, ...]:
    """One sentence a dependent column: "x3 = x1 + 2 x2"."""
    factor = task.factor
    if not len(factor.dependent):
        return ()
    offset = int(task.fit_intercept)
    scale, shift = task.gram.scaling.scale, task.gram.scaling.shift
    names = task.source.names
    relative = relative_relations(task)
    out = []
    for i, column in enumerate(factor.dependent[:MOST_RELATIONS]):
        j = int(column) - offset
        terms: list[tuple[str, float]] = []
        constant = shift[j] / scale[j]
        for k, kept in enumerate(factor.kept):
            weight = factor.relations[i, k]
            if offset and kept == 0:
                constant += weight / scale[j]
            elif abs(relative[i, k]) > 1e-9:
                m = int(kept) - offset
                terms.append((names[m], weight * scale[m] / scale[j]))
                constant -= weight * shift[m] / scale[j]
        if abs(constant) * scale[j] * np.sqrt(task.gram.sum_weight) > 1e-9 * task.gram.norms[j]:
            terms.append(("", constant))
        out.append(f"{names[j]} = {_combination(terms)}")
    return tuple(out)


def _combination(terms: list[tuple[str, float]]) -> str:
    """ "x1 + 2 x2 - 0.5": small fractions where they are within rounding of the number."""
    if not terms:
        return "0"
    if len(terms) > MOST_TERMS:
        named = [name for name, _ in terms if name]
        return f"a combination of {len(named)} columns: {', '.join(named[:MOST_TERMS])}, ..."
    if not all(np.isfinite(weight) for _, weight in terms):
        return f"a combination of {', '.join(name for name, _ in terms if name) or 'a constant'}"
    text = ""
    for name, weight in terms:
        sign = "-" if weight < 0 else "+"
        number = _number(abs(weight))
        body = number if not name else (name if number == "1" else f"{number} {name}")
        text += (f" {sign} " if text else ("-" if weight < 0 else "")) + body
    return text


def _number(value: float) -> str:
    near = Fraction(value).limit_denominator(LARGEST_DENOMINATOR)
    if near and abs(float(near) - value) <= 1e-10 * value:
        return str(near)
    return f"{value:.6g}"


def _of_rows(task: DualLeastSquares, state: Weights, tolerance: float) -> Certificate:
    residual = task.residual_at(state)
    weights, _ = task.to_scaled(state)
    total = task.sum_weight
    null = float(task.target() @ task.target())
    objective = residual.squares + task.strength * float(weights @ weights)
    scale = residual.scale(objective, null)
    sum_error = residual.rounding[0] + TWOFOLD_UNIT * np.sqrt(residual.magnitude * total)
    offset = (abs(residual.gradient[0]) + sum_error) ** 2 / total if task.fit_intercept else 0.0  # sum_w mean(r)^2
    if task.strength > 0:
        # Columns are at most 2 in size, and their mean is off by as much as its rounding.
        error = residual.rounding[1:] + 2 * sum_error + 16 * UNIT * abs(residual.gradient[0])
        error = error + MATRIX_ERROR * task.strength * np.abs(weights)
        gap = float((_norm(residual.gradient[1:]) + _norm(error)) ** 2) / task.strength + offset
        if gap > scale * UNIT:
            gap = min(gap, max(objective - _dual_objective(task), 0.0) + SAFETY * objective)
        theorem = "weak duality: primal - dual, the best of two dual points"
    else:
        gap = _projected(task, state) + offset
        theorem = "the residual's share in the span of the columns is its excess"
    rounding = float(SAFETY * gap / scale) + TINY
    return Certificate(
        claim="relative excess of the objective",
        theorem=theorem,
        value=float(gap / scale) + rounding,
        tolerance=tolerance,
        rounding=rounding,
        rank=task.rank,
        n_columns=task.source.n_features,
        condition=task.factor.condition,
        dependent=(),
        prediction_change=prediction_change((gap / scale + rounding) * scale / total, task.scaling.y_scale),
    )


def _dual_objective(task: DualLeastSquares) -> float:
    """A lower bound: the dual s (2 a'y - s |a|^2 - |Z'a|^2) at the a that solves its system, less its rounding."""
    target, s = task.target(), task.strength
    a = task.factor.solve(target)
    weights = task.combine(a)
    # Centring rounds by some n u of what was there before: at most 2 and the mean.
    unit = (len(a) + 4) * UNIT * float(task.roots @ np.abs(a))
    error = _norm(unit * (2 + np.abs(task.mean)))
    lost = 2 * unit * (2 + abs(task.y_mean)) + (2 * _norm(weights) + error) * error
    return float(s * (2 * (a @ target) - s * (a @ a) - weights @ weights - lost))


@one_blas_thread
def _projected(task: DualLeastSquares, state: Weights) -> float:
    """Squared length of the residual's projection on the span of the columns.

    Fitted values are free on the rows kept and follow them on the others: (u, Ru), R the relations among rows.
    """
    r = task.roots * task.residuals(state)
    kept, dependent, R = task.factor.kept, task.factor.dependent, task.factor.relations
    u = np.linalg.solve(np.eye(len(kept)) + R.T @ R, r[kept] + R.T @ r[dependent])
    length = np.hypot(_norm(u), _norm(R @ u))
    return float((length + task.relation_error * _norm(r)) ** 2)


def _norm(vector: Array) -> float:
    return float(np.linalg.norm(vector))


def _exponent_of(y_scale: float) -> int:
    """0 while squares of y stay finite, else the power of two that was taken out of y."""
    power = -int(np.frexp(y_scale)[1] - 1)
    return power if abs(power) > 400 else 0
