"""Direct solution of least squares by a Cholesky factor, then refined to the rounding floor of the state.

Refinement: w += A^-1 (X'(y - X w) - penalty w) with residuals in twofold precision. One step multiplies the error by
about (condition^2) 2^-53 (float64 factor) or (condition^2) 2^-104 (twofold factor), so one or two are enough.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from certifit.data.columns import Array
from certifit.minimise.problem import Run
from certifit.minimise.steps import Steps
from certifit.models.least_squares.dual import DualLeastSquares
from certifit.models.least_squares.normal_equations import NormalEquations, Weights
from certifit.models.least_squares.task import LeastSquares
from certifit.runtime import one_blas_thread
from certifit.statistics.remainders import Remainders
from certifit.statistics.residual import TINY, is_exact_fit

MAX_REFINEMENTS = 6
MAX_LITERAL_STEPS = 4
HELD = 1e-9  # share of the objective: a state this near to the minimum over all weights is taken for it
FLOOR = 2.0**-54  # relative size of a step that no longer changes a float64


def solve(task: LeastSquares | DualLeastSquares) -> Run[Weights]:
    """The minimiser; of all minimisers the one of smallest norm."""
    if isinstance(task, DualLeastSquares):
        return _solve_rows(task)
    run = _solve_columns(task)
    if task.remainders is None:
        return run
    if _is_blurred(task, task.remainders, run.state):
        run = _solve_columns(task, is_shortest=False)
    return replace(run, state=_over_all_weights(task, task.remainders, run.state))


def _is_blurred(task: LeastSquares, remainders: Remainders, state: Weights) -> bool:
    """Whether the shortest weights make more of relations that hold but for rounding than a proof can bear."""
    size, squares = remainders.share_of(task.to_scaled(state)[0]), task.residual_at(state).squares
    return bool(size * (size + 2 * np.sqrt(squares)) > HELD * squares)


def _over_all_weights(task: LeastSquares, remainders: Remainders, state: Weights) -> Weights:
    """From the minimum over the kept columns to that over all weights, where float64 weights hold it.

    Near-copies can ask for weights of 1e14 whose rounding is larger than what they gain: then the state stays.
    """
    is_apart = bool(remainders.is_apart.any())
    if not (is_apart or task.alpha > 0):
        return state
    system = task.literal if is_apart else task.restricted
    if system is None:
        return state
    best, least, now = state, np.inf, state
    for _ in range(MAX_LITERAL_STEPS):
        at = system.at(now)
        objective, left = system.objective(at.at, now), float(at.gradient @ at.step)
        is_exact = is_exact_fit(task.in_own_units(objective, system), task.null_objective())
        is_held = not is_apart or left <= HELD * objective or is_exact
        if is_held and not objective < least:
            break
        if is_held:
            best, least = now, objective
        with np.errstate(over="ignore", invalid="ignore"):  # near-copies of 1e-150 ask for weights beyond float64
            now = system.moved(now, at.step)
        if not (np.isfinite(now.coef).all() and np.isfinite(now.intercept)):
            break
    return best


def _solve_columns(task: LeastSquares, is_shortest: bool = True) -> Run[Weights]:
    steps = Steps(first=1)
    factor, right = task.factor, task.right_hand_side()
    solution = factor.solve(right)
    state = task.from_solution(solution)
    if len(factor.dependent) and is_shortest:
        state = smallest_norm(task, state)
        solution = task.to_solution(state)
    previous = np.inf
    for _ in range(MAX_REFINEMENTS):
        at = task.residual_at(state)
        gradient = task.gradient(at)
        step = factor.solve(gradient)
        decrement = float(gradient @ step)  # = step' A step = twice the excess of the objective
        # solution' right hand side = solution' A solution, unless the first solve had no digit: then the step is large.
        explained = max(float(solution @ right), FLOOR * decrement, TINY)
        size = np.sqrt(max(decrement, 0.0) / explained)
        _report(steps, at.squares, decrement, size, task.gram.sum_weight, task.gram.scaling.y_scale)
        if not size < previous:
            break  # at the floor: a further step is rounding noise
        state = task.from_solution(solution, step)
        solution = task.to_solution(state)
        # The error shrinks by the same factor each time, so the next step would be about size^2.
        if size * min(size, size / previous) < FLOOR:
            break
        previous = size
    return Run(state, steps.rows)


def _report(steps: Steps, squares: float, gap: float, step: float, sum_weight: float, y_scale: float) -> None:
    """A row of the history: mean half squares and the gap in the user's units, from sums of scaled squares."""
    unit = 2 * sum_weight
    gap = float(max(gap, 0.0) / unit / y_scale / y_scale)
    steps.add(float(squares / unit / y_scale / y_scale), gap, step=float(step))


@one_blas_thread
def smallest_norm(task: NormalEquations, state: Weights) -> Weights:
    """Among w + null_space v, and the intercept that goes with it, the w of smallest norm."""
    directions = task.directions()
    offset = int(task.fit_intercept)
    # Rows in the units of the norm, relative to the largest: what underflows does not matter to it.
    scale = task.penalty_units / task.penalty_units.max()
    solution = task.to_solution(state)
    move, *_ = np.linalg.lstsq(directions[offset:] * scale[:, None], -solution[offset:] * scale, rcond=None)
    return task.from_solution(solution + directions @ move)


def _reachable(task: DualLeastSquares, target: Array) -> Array:
    """The nearest fitted values that follow the relations R among rows: (u, Ru) of least |u - t|^2 + |Ru - t'|^2.

    Rows of very different weight have relations beyond 1e8, whose squares would hide the 1 of I + R'R.
    """
    factor = task.factor
    if not len(factor.dependent):
        return target
    R, out = factor.relations, np.zeros_like(target)
    wanted = np.append(target[factor.kept], target[factor.dependent])
    out[factor.kept] = np.linalg.lstsq(np.vstack([np.eye(len(factor.kept)), R]), wanted, rcond=0.0)[0]
    out[factor.dependent] = R @ out[factor.kept]
    return out


@np.errstate(over="ignore", invalid="ignore")  # weights beyond float64 are refused in words
def _solve_rows(task: DualLeastSquares) -> Run[Weights]:
    steps = Steps(first=1)
    factor, target = task.factor, task.target()
    multipliers = factor.solve(_reachable(task, target))
    weights = task.moved(np.zeros(task.source.n_features), multipliers)
    state = best = task.from_scaled(weights)
    smallest = np.inf
    # What the rounding of the weights alone can make of the residuals.
    floor = FLOOR * float(np.linalg.norm(task.roots) * np.linalg.norm(weights / task.penalty_units))
    for _ in range(MAX_REFINEMENTS):
        r = task.roots * task.residuals(state)
        left = _reachable(task, r - task.strength * multipliers)
        size = float(np.linalg.norm(left) / max(np.linalg.norm(target), np.finfo(float).tiny))
        _report(steps, float(r @ r), float(left @ left), size, task.sum_weight, task.scaling.y_scale)
        if not size < smallest:
            break
        is_over = size > smallest / 4 or float(np.linalg.norm(left)) <= floor
        smallest, best = size, state
        if is_over:
            break
        # The weights are moved by a step, not computed again: their error is then that of the step.
        step = factor.solve(left)
        multipliers, weights = multipliers + step, task.moved(weights, step)
        state = task.from_scaled(weights)
    return Run(best, steps.rows)
