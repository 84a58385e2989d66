"""The certificate of least squares and ridge: sub-optimality, rank, digits per coefficient.

It is computed from the task and the state alone; no solver is imported. With g the gradient at the state and A the
matrix of the system, a quadratic's excess over its minimum is exactly g' A^-1 g / 2, whatever units the columns have.
With fewer rows than columns there is no A to invert; the duality gap |alpha w - X'r/n|^2 / (2 alpha) takes its place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from certifit.data.columns import Array
from certifit.inference.least_squares import Inference
from certifit.models.certificate import EXACT_FIT_CLAIM, Certificate, near_relation, prediction_change
from certifit.models.least_squares.dual import DualLeastSquares
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.least_squares.task import LeastSquares, LiteralSystem
from certifit.runtime import core, one_blas_thread
from certifit.statistics.factor import product_above_0
from certifit.statistics.remainders import MOST_ROUNDINGS
from certifit.statistics.residual import LEAST_SQUARES, MATRIX_ERROR, TINY, Residual, is_exact_fit, twofold_unit

UNIT = 2.0**-53
SAFETY = 1e-12  # share added to a value for the last roundings
MOST_DIGITS = 15.0
MOST_TERMS = 12  # most terms of a relation that is printed
MOST_RELATIONS = 100
LARGEST_DENOMINATOR = 12
LARGEST_NUMERATOR = 10**12
NO_TERM = 1e-9  # coefficient, between columns of size 1, below which a column has no part in a relation
NOISE = 2.0**-80  # coefficient below which an exact relation has no term: they are known to some hundred bits
TRUSTED = 0.25  # relative error of a matrix beyond which its inverse proves nothing


@np.errstate(over="ignore", invalid="ignore")  # far states: what is infinite or not a number proves nothing
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
    exponent = _exponent_of(s.y_scale, s.weight_scale)
    unit = np.float64(2.0**exponent * s.y_scale) ** 2 * s.weight_scale
    mean, about = task.gram.target_moments()
    tss = about if offset else about + mean**2 * task.gram.sum_weight
    residual = task.residual_at(state)
    with np.errstate(all="ignore"):
        inverse = task.raw_inverse * units[:, None] * units * s.weight_scale
        squares = (float(residual.squares / unit), float(tss / unit))
    is_known = np.isfinite(inverse).all() and (inverse.diagonal() > 0).all() and all(map(math.isfinite, squares))
    if not is_known:
        return None
    estimate = np.concatenate([[state.intercept] * offset, state.coef])
    of_weights = (None, np.nan) if n_rows is None else (sum_weight, log_weight)
    return Inference(tuple(names), estimate, inverse, *squares, exponent, n_obs, bool(offset), *of_weights)


def variance_inflation(task: LeastSquares) -> dict[str, float]:
    """(A^-1)_jj times the (centred) sum of squares of every column, from the sums of the rows: any condition."""
    d, sums = task.gram.n_columns, task.gram.sums
    squares = np.diagonal(sums)[:d].copy()
    if task.fit_intercept:
        squares -= sums[:d, d] ** 2 / sums[d, d]
    values = np.diagonal(task.factor.inverse)[int(task.fit_intercept) :] * squares
    return dict(zip(task.source.names, np.maximum(values, 1.0).tolist(), strict=True))


@dataclass(frozen=True)
class _Excess:
    """Bounds on the objective less its minimum, in the task's units.

    computed: without the roundings of the arithmetic; bound: with them; literal: over all weights, where bound is not.
    """

    computed: float
    bound: float
    literal: float | None = None

    def raised(self, more: float) -> _Excess:
        """All of them larger by as much."""
        return _Excess(self.computed + more, self.bound + more, None if self.literal is None else self.literal + more)


def _of_columns(task: LeastSquares, state: Weights, tolerance: float) -> Certificate:
    null = task.null_objective()
    scaled = weights, _ = task.to_scaled(state)
    residual = task.residual_at(state).settled(task.source, state.coef, state.intercept)
    gradient = task.gradient(residual)
    penalty, beyond = task.penalty_of(state, weights)
    # With the largest penalties cut f is smaller everywhere, so f(w) - min f <= cut f(w) - min of it + what was cut.
    raised = residual.raised(residual.squares + penalty)
    excess = _excess(task, state, weights, residual, gradient, raised).raised(beyond)
    objective = residual.squares + penalty + beyond
    scale = residual.scale(objective, null)
    is_exact = is_exact_fit(residual.raised(objective), null) and not residual.is_lost(scale)
    if residual.is_lost(scale) or not (excess.bound < np.inf and scale < np.inf):
        excess, scale = _Excess(0.0, np.inf), 1.0
    rounding = (excess.bound - min(excess.computed, excess.bound)) / scale + TINY
    offset = int(task.fit_intercept)
    certificate = Certificate(
        claim=EXACT_FIT_CLAIM if is_exact else "relative excess of the objective",
        theorem="a quadratic exceeds its minimum by g' A^-1 g / 2",
        value=min(excess.computed, excess.bound) / scale + rounding,
        tolerance=tolerance,
        rounding=rounding,
        rank=task.rank,
        n_columns=task.gram.n_columns,
        condition=task.factor.condition,
        dependent=relations(task),
        names=tuple(["intercept"] * offset + task.source.names),
        digits=tuple(_digits(task, scaled, residual, gradient)),
        literal=None if excess.literal is None else float(excess.literal / scale) + TINY,
        prediction_change=prediction_change(excess.bound / task.gram.sum_weight, task.gram.scaling.y_scale),
    )
    return certificate if certificate.holds else replace(certificate, advice=_advice(task, state, excess.bound))


def _excess(
    task: LeastSquares, state: Weights, weights: Array, residual: Residual, gradient: Array, objective: float
) -> _Excess:
    """Over the kept columns; over all weights where others are nearly their combinations, or penalised besides."""
    if objective == 0:
        return _Excess(0.0, 0.0)
    remainders = task.remainders
    if remainders is None or (task.alpha == 0 and not remainders.is_apart.any()):
        computed = product_above_0(gradient, task.factor.solve(gradient))
        matrix_error = _matrix_error(task)
        root = np.sqrt(computed) * (1 + matrix_error) + _gradient_error(task, residual, weights)
        excess = _Excess(computed, min(float(root**2), objective) if matrix_error < TRUSTED else objective)
    else:
        excess = _excess_over_all(task, task.restricted, state, objective)
    if remainders is None or not remainders.is_rounding.any():
        return excess
    if remainders.is_apart.any():
        return _excess_over_all(task, task.literal, state, objective)
    everything = _excess_over_all(task, task.literal, state, objective)
    # |r|^2 - |r + q|^2 <= 2 |r| |q| for what the remainders make of the state, and q moves the root of the excess.
    size = remainders.share_of(weights)
    bound = (np.sqrt(excess.bound) + size) ** 2 + 2 * np.sqrt(objective) * size
    return _Excess(excess.computed, min(float(bound), objective), max(everything.bound, min(float(bound), objective)))


def _excess_over_all(task: LeastSquares, system: LiteralSystem | None, state: Weights, objective: float) -> _Excess:
    if system is None:  # the minimum is at least 0
        return _Excess(objective, objective)
    at = system.at(state)
    computed = task.in_own_units(product_above_0(at.gradient, at.step), system)
    bound = task.in_own_units(system.excess_bound(at, state), system)
    return _Excess(min(computed, bound), bound)


def _advice(task: LeastSquares, state: Weights, excess: float) -> str:
    """What to do where no float64 is near enough to the best weights: offsets far above the spread."""
    s, total = task.gram.scaling, task.gram.sum_weight
    last = UNIT * abs(state.intercept)  # half a unit in the last place of the intercept
    if not task.fit_intercept or min(abs(last * s.y_scale), 1e150) ** 2 * total < excess / 16:
        return ""
    mean, _ = task.gram.target_moments()
    weights, _ = task.to_scaled(state)
    shares = np.abs(weights * s.shift)
    if abs(mean) >= shares.max(initial=0.0):
        which = f"a constant near {mean / s.y_scale:.0e} from the target"
    else:
        j = int(np.argmax(shares))
        which = f"a constant near {s.shift[j] / s.scale[j]:.0e} from {task.source.names[j]!r}"
    return (
        f"No float64 intercept near {state.intercept:.0e} is closer than {last:.0e} to the best one. Subtract {which}."
    )


def _matrix_error(task: LeastSquares) -> float:
    """How far off sqrt(g' A^-1 g) can be, relative, for a given g.

    Roundings of A count with the square of the condition, roundings of rows by roots of weights with the condition.
    """
    condition = task.factor.condition
    sums = MATRIX_ERROR if task.gram.low is None else 16 * twofold_unit(task.gram.n_rows)
    return condition**2 * sums + 4 * condition * UNIT + SAFETY


def _gradient_error(task: LeastSquares, residual: Residual, weights: Array) -> float:
    """sqrt(e' |A^-1| e) for the error e of the gradient: of twofold sums, a step without a pass, and the penalty."""
    offset = int(task.fit_intercept)
    norms = np.concatenate([[np.sqrt(task.gram.sum_weight)] * offset, task.gram.norms])
    error = residual.rounding[1 - offset :] + residual.unit * np.sqrt(residual.magnitude) * norms
    if task.alpha > 0:
        error[offset:] += np.maximum(MATRIX_ERROR, task.penalty_error) * task.penalty * np.abs(weights)
    length: float = core.error_length(task.factor.inverse, error)
    return length


def _digits(task: LeastSquares, scaled: tuple[Array, float], residual: Residual, gradient: Array) -> Array:
    """-log10 of a bound on the relative error of every coefficient: see the docs, "Digits".

    err = |T| |A^-1| |g| + u (s_j | |X||w| + |y| | + sum_k |A^-1_jk| |x_k| |r|): what the solver left, and the effect of
    half an ulp in every entry of X and y. g has the rounding of its sums and of the penalty. s_j |q| is added for q,
    what a state makes of relations that hold but for rounding: the fit without these columns has none of it.
    """
    offset = int(task.fit_intercept)
    weights, intercept = scaled
    estimate = np.concatenate([[intercept] * offset, weights])
    slope = np.abs(gradient) + residual.rounding[1 - offset :]
    if task.alpha > 0:
        slope[offset:] += task.penalty_error * task.penalty * np.abs(weights)
    norms = np.concatenate([np.zeros(offset), task.gram.norms])
    remainders = task.remainders
    relations = 0.0 if remainders is None else remainders.share_of(weights)  # those that were treated as exact
    digits: Array = core.proven_digits(
        estimate,
        task.factor.inverse,
        task.raw_inverse,
        slope,
        norms,
        task.gram.scaling.shift,
        bool(offset),
        math.sqrt(residual.squares),
        math.sqrt(residual.magnitude),
        relations,
        MOST_DIGITS,
    )
    if remainders is not None:
        digits[~determined(task)] = 0.0
    squares = np.diagonal(task.gram.sums)[: task.gram.n_columns]  # of a column that only light rows have, too small
    if UNIT * task.factor.condition >= 0.01 or ((squares > 0) & (squares < LEAST_SQUARES)).any():
        digits[:] = 0.0
    return digits


def determined(task: LeastSquares) -> Array:
    """Coefficients that all minimisers share: those in no relation among columns; none where a near-copy is apart."""
    remainders, offset = task.remainders, int(task.fit_intercept)
    d = task.gram.n_columns
    if remainders is None:
        return np.ones(offset + d, dtype=bool)
    if remainders.is_apart.any():
        return np.zeros(offset + d, dtype=bool)
    moved = np.zeros(offset + d, dtype=bool)
    moved[offset:][remainders.columns] = True
    moved[offset:] |= (remainders.times[0] != 0).any(axis=0)
    if offset:
        moved[0] = bool((remainders.constants[0] != 0).any())
    return ~moved


@np.errstate(over="ignore", invalid="ignore")  # columns may be so unlike in size that their ratio overflows
def relations(task: LeastSquares) -> tuple[str, ...]:
    """One sentence per column that is a combination of others, or near one: "x3 = x1 + 2 x2"."""
    remainders = task.remainders
    if remainders is None:
        return ()
    names, scale = task.source.names, task.gram.scaling.scale
    out: list[tuple[bool, str]] = []
    for i, j in enumerate(remainders.columns[:MOST_RELATIONS]):
        rounded = MOST_ROUNDINGS * UNIT * remainders.coarseness.max()
        least = NOISE if remainders.is_exact[i] else max(NO_TERM, rounded)
        places = np.flatnonzero(np.abs(remainders.times[0][i]) > least)
        terms = [(names[k], remainders.times[0][i, k] * scale[k] / scale[j]) for k in places]
        constant = remainders.constants[0][i]
        if abs(constant) > least:
            terms.append(("", constant / scale[j]))
        relation = f"{names[j]} = {combination(terms)}"
        is_near = bool(remainders.is_apart[i])
        out.append((not is_near, near_relation(relation, remainders.size[i]) if is_near else relation))
    return tuple(relation for _, relation in sorted(out, key=lambda pair: pair[0]))


def combination(terms: list[tuple[str, float]]) -> str:
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
    if near and near.numerator < LARGEST_NUMERATOR and abs(float(near) - value) <= 1e-10 * value:
        return str(near)
    return f"{value:.6g}"


def _of_rows(task: DualLeastSquares, state: Weights, tolerance: float) -> Certificate:
    null = task.null_objective()
    weights, _ = task.to_scaled(state)
    residual = task.residual_at(state).settled(task.source, state.coef, state.intercept)
    beyond = task.penalty_beyond(state)
    penalty = float(np.sum((np.sqrt(task.strength) * task.penalty_units * weights) ** 2))
    objective = residual.squares + penalty + beyond
    scale = residual.scale(objective, null)
    if task.strength > 0:
        gap = _dual_gap(task, residual, weights, objective, scale)
        theorem = "weak duality: primal - dual, the best of two dual points"
    else:
        is_plain = is_exact_fit(objective, null) and objective <= tolerance * null
        gap = np.inf if is_plain else _fitted_share(task, state)
        theorem = "the residual's share in the span of the columns is its excess"
    gap = float(np.fmin(gap + beyond, residual.raised(objective)))  # the minimum is at least 0
    is_exact = is_exact_fit(residual.raised(objective), null) and not residual.is_lost(scale)
    if residual.is_lost(scale) or not scale < np.inf:
        gap, scale = np.inf, 1.0
    rounding = float(SAFETY * gap / scale) + TINY if gap < np.inf else TINY
    return Certificate(
        claim=EXACT_FIT_CLAIM if is_exact else "relative excess of the objective",
        theorem=theorem,
        value=float(gap / scale) + rounding,
        tolerance=tolerance,
        rounding=rounding,
        rank=task.rank,
        n_columns=task.source.n_features,
        condition=task.factor.condition,
        dependent=(),
        prediction_change=prediction_change(gap / task.sum_weight, task.scaling.y_scale),
    )


def _dual_gap(task: DualLeastSquares, residual: Residual, weights: Array, objective: float, scale: float) -> float:
    """|alpha w - X'r/n|^2 / alpha and the intercept's share, or primal less dual where that proves more."""
    total = task.sum_weight
    sum_error = residual.rounding[0] + residual.unit * np.sqrt(residual.magnitude * total)
    offset = (abs(residual.gradient[0]) + sum_error) ** 2 / total if task.fit_intercept else 0.0  # sum_w mean(r)^2
    # Columns are at most 2 in size, and their mean is off by as much as its rounding.
    error = residual.rounding[1:] + 2 * sum_error + 16 * UNIT * abs(residual.gradient[0])
    error = error + MATRIX_ERROR * task.penalty * np.abs(weights)
    with np.errstate(over="ignore"):
        root = np.sqrt(task.strength) * task.penalty_units
        gap = float((_norm(residual.gradient[1:] / root) + _norm(error / root)) ** 2 + offset)
    if gap > scale * UNIT:
        gap = min(gap, max(objective - _dual_objective(task), 0.0) + SAFETY * objective)
    return gap


def _dual_objective(task: DualLeastSquares) -> float:
    """A lower bound: the dual s (2 a'y - s |a|^2 - |Z'a|^2) at the a that solves its system, less its rounding."""
    target, s = task.target(), task.strength
    a = task.factor.solve(target)
    weights = task.combine(a)
    # Centring rounds by some n u of what was there before: at most 2 and the mean.
    unit = (len(a) + 8) * UNIT * float(task.roots @ np.abs(a))
    # s a and sqrt(s) Z'a have the size of y whatever s is: squares of a itself vanish under a strong penalty.
    scaled, root = s * a, np.sqrt(s)
    error = _norm(root * unit * (2 + np.abs(task.mean)) / task.penalty_units)
    lost = 2 * s * unit * (2 + abs(task.y_mean)) + (2 * _norm(root * weights) + error) * error
    return float(2 * (scaled @ target) - scaled @ scaled - np.sum((root * weights) ** 2) - lost)


@one_blas_thread
def _fitted_share(task: DualLeastSquares, state: Weights) -> float:
    """Squared length of the residual's part that fits can reach, at most: what no exact relation among rows forbids."""
    r = task.roots * task.residuals(state)
    forbidden = task.row_relations() / np.where(task.roots > 0, task.roots, 1.0)
    if not len(forbidden):
        return float(r @ r)
    forbidden = forbidden / np.linalg.norm(forbidden, axis=1)[:, None]
    q, upper = np.linalg.qr(forbidden.T)
    condition = np.linalg.cond(upper)
    left = r - q @ (q.T @ r)
    left = left - q @ (q.T @ left)
    return float((_norm(left) + 4 * len(r) * UNIT * condition * _norm(r)) ** 2)


def _norm(vector: Array) -> float:
    return float(np.linalg.norm(vector))


def _exponent_of(y_scale: float, weight_scale: float) -> int:
    """0 while squares of y times weights stay finite, else the power of two that was taken out of y."""
    power, weights = (-int(np.frexp(scale)[1] - 1) for scale in (y_scale, weight_scale))
    return power if abs(power) > 400 or abs(2 * power + weights) > 800 else 0
