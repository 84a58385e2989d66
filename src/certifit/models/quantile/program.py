"""The linear program of quantile regression, and an interior point method for it.

    minimise over z   sum_i [ upper_i max(r_i, 0) - lower_i min(r_i, 0) ] - right'z,   r = target - A z
    maximise over v   target'v   over  lower <= v <= upper  and  A'v = right

The two are dual; 0 is inside every box. The rows of A are those of the data, (x_i, 1) with an intercept, and behind
them one row e_j per penalised column: |z_j| is the loss of a row whose target is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from certifit.data.columns import Array
from certifit.minimise.steps import NAN, Steps

STEP = 0.99995  # share of the way to the border of the box that a step takes
CENTRE = 0.1  # of the mean loss: the products x p and s m at the start
EXACT = 1e-18  # share of the loss at 0: a smaller gap is rounding
MOST_FREEDOM = 1e200
LEAST_FREEDOM = 1e-14  # of the largest: rows that move less count alike
NO_RANK = 1e-13  # share of the largest pivot below which a pivot is 0
GOOD = 1e-12  # share of the objective: the gap at which the interior point method ends
LEAST_MOVE = 1e-6  # share of a full step: shorter ones are no progress
FEASIBLE = 1e-14  # of the distance at the start: a dual point this near to its plane gives a bound but for rounding
LOST = 1e-13  # of all targets times their boxes: what the sum of a dual may be off by
SMALL_SHIFT = 1e-15  # share of the diagonal that is added where a matrix is singular to rounding

Matrix: TypeAlias = Any  # a dense array, or CSR of SciPy, which has no types


@dataclass(frozen=True)
class Program:
    """X: rows of the data, dense or CSR; the columns of A are those of X, then 1 with an intercept.

    penalised: the columns that have a row of their own.
    """

    X: Matrix
    has_intercept: bool
    penalised: Array
    target: Array
    lower: Array
    upper: Array

    @property
    def n_rows(self) -> int:
        """Rows of the data."""
        return int(self.X.shape[0])

    @property
    def n_columns(self) -> int:
        """Columns of A."""
        return int(self.X.shape[1]) + int(self.has_intercept)

    def times(self, z: Array) -> Array:
        """A z."""
        d = self.X.shape[1]
        scores = self.X @ z[:d]
        if self.has_intercept:
            scores += z[d]
        return np.concatenate([scores, z[self.penalised]])

    def transposed(self, v: Array) -> Array:
        """A'v."""
        data, penalties = v[: self.n_rows], v[self.n_rows :]
        out = np.zeros(self.n_columns)
        out[: self.X.shape[1]] = data @ self.X if not sp.issparse(self.X) else self.X.T @ data
        out[self.penalised] += penalties
        if self.has_intercept:
            out[-1] = data.sum()
        return out

    def curvature(self, weight: Array) -> Array:
        """A' diag(weight) A."""
        data, d = weight[: self.n_rows], self.X.shape[1]
        out = np.zeros((self.n_columns, self.n_columns))
        if sp.issparse(self.X):
            weighted = sp.csr_array(self.X.multiply(data[:, None]))
            out[:d, :d] = (self.X.T @ weighted).toarray()
        else:
            weighted = self.X * data[:, None]
            out[:d, :d] = self.X.T @ weighted
        if self.has_intercept:
            out[d, :d] = out[:d, d] = np.asarray(weighted.sum(axis=0)).ravel()
            out[d, d] = data.sum()
        out[self.penalised, self.penalised] += weight[self.n_rows :]
        return out

    def dense_rows(self, rows: Array) -> Array:
        """Some rows of the data as a dense array, 1 behind them with an intercept."""
        taken = self.X[rows]
        dense = np.asarray(taken.toarray() if sp.issparse(taken) else taken)
        return np.column_stack([dense, np.ones(len(dense))]) if self.has_intercept else dense

    def part(self, rows: Array, target: Array) -> Program:
        """The program of the rows whose flag is set, with another target."""
        n = self.n_rows
        X, penalised = self.X[rows[:n]], self.penalised[rows[n:]]
        return replace(self, X=X, penalised=penalised, target=target, lower=self.lower[rows], upper=self.upper[rows])

    def loss(self, r: Array) -> float:
        """The primal objective of residuals, without the right-hand side."""
        return float(np.where(r > 0, self.upper, self.lower) @ r)


@dataclass(frozen=True)
class Interior:
    """z and v at the end of a run, and its steps: primal, dual and gap after each.

    freedom: of every row, how freely its v moves at this point: large for rows that the fit meets.
    """

    z: Array
    v: Array
    freedom: Array
    steps: Steps
    is_converged: bool


def chosen_rows(program: Program, freedom: Array) -> Array:
    """As many independent rows as there are columns, those first whose dual weight moves most freely."""
    n, k = program.n_rows, program.n_columns
    order = np.argsort(-freedom, kind="stable")
    fixed = order[:k][order[:k] >= n]
    free = np.setdiff1d(np.arange(k), program.penalised[fixed - n])
    data = order[order < n]
    for count in (4 * k + 50, len(data)):
        taken = data[:count]
        size = np.sqrt(np.maximum(freedom[taken], LEAST_FREEDOM * freedom[taken].max(initial=0.0)))
        rows = size[:, None] * program.dense_rows(taken)[:, free]
        _, triangle, pivots = scipy.linalg.qr(rows.T, mode="economic", pivoting=True, check_finite=False)
        sizes = np.abs(np.diagonal(triangle))
        rank = int(np.count_nonzero(sizes > NO_RANK * sizes.max(initial=0.0)))
        if rank == len(free) or count >= len(data):
            break
    if rank < len(free) and len(program.penalised):
        return _with_more_penalties(program, fixed, free, taken[pivots[:rank]])
    return np.concatenate([fixed, taken[pivots[: len(free)]]])


def _with_more_penalties(program: Program, fixed: Array, free: Array, data: Array) -> Array:
    """Rows that tell too few columns apart, and the penalties of those that they do not."""
    rows = program.dense_rows(data)[:, free]
    if program.has_intercept:  # no penalty stands for it, so it is taken first
        rows[:, -1] *= 1e8
    _, _, pivots = scipy.linalg.qr(rows, mode="economic", pivoting=True, check_finite=False)
    row_of = np.full(program.n_columns, -1)
    row_of[program.penalised] = program.n_rows + np.arange(len(program.penalised))
    return np.concatenate([fixed, row_of[free[pivots[len(data) :]]], data])


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def interior_point(program: Program, right: Array, z: Array, max_iter: int, unit: float = 1.0) -> Interior:
    """Mehrotra's predictor and corrector from z, as Portnoy and Koenker (1997) use them.

    m and p are the parts of the residual, r = m - p, of the sides `upper` and `lower`. unit: what objectives are
    divided by in the rows of the steps.
    """
    r = program.target - program.times(z)
    mu = CENTRE * program.loss(r) / max(len(r), 1)
    x, s = _centred(r, program.upper - program.lower, mu)
    v = np.where(x < s, program.lower + x, program.upper - s)
    m, p = mu / s, mu / x
    steps = Steps()
    off = LOST * float(np.abs(program.target) @ (program.upper - program.lower)) / unit  # by rounding
    steps.add((program.loss(r) - float(right @ z)) / unit, dual=NAN if right.any() else 0.0)  # no loss is negative
    is_converged, slack = False, EXACT * float(np.abs(program.target) @ (program.upper - program.lower))
    n, outside = max(2 * len(r), 1), 1.0  # the share that is left of A'v - right of the start
    for _ in range(max_iter):
        freedom = 1.0 / (m / s + p / x)
        factor = _factor(program.curvature(freedom))
        missing = right - program.transposed(v)
        move = _direction(program, factor, freedom, missing, r, 0.0)
        dm, dp = _sides(m, p, x, s, move[1], 0.0, 0.0)
        mu = float(x @ p + s @ m) / n
        by_box, by_loss = _longest(x, s, move[1]), _longest(m, p, dm, dp)
        after = float((x + by_box * move[1]) @ (p + by_loss * dp) + (s - by_box * move[1]) @ (m + by_loss * dm)) / n
        centre = mu * max(min(after / mu, 1.0), 0.0) ** 3 if mu > 0 else 0.0
        taken = by_box * by_loss  # a corrector for a step that cannot be taken leads astray
        at_lower, at_upper = centre - taken * move[1] * dp, centre + taken * move[1] * dm
        move = _direction(program, factor, freedom, missing, r, at_upper / s - at_lower / x)
        dm, dp = _sides(m, p, x, s, move[1], at_upper, at_lower)
        by_box, by_loss = STEP * _longest(x, s, move[1]), STEP * _longest(m, p, dm, dp)
        if not (np.isfinite(move[0]).all() and max(by_box, by_loss) > LEAST_MOVE):
            break
        z, v = z + by_loss * move[0], v + by_box * move[1]
        x, s = x + by_box * move[1], s - by_box * move[1]
        m, p = m + by_loss * dm, p + by_loss * dp
        r = program.target - program.times(z)
        outside *= 1 - by_box
        primal = program.loss(r) - float(right @ z)
        dual = float(program.target @ v) if outside <= FEASIBLE else 0.0  # no loss is negative
        gap = float(x @ p + s @ m)
        steps.add(primal / unit, dual=dual / unit, step_size=by_loss, rounding=off)
        if steps.is_over:
            break
        if gap <= max(GOOD * abs(primal), slack) or not np.isfinite(gap):
            is_converged = bool(np.isfinite(gap))
            break
    freedom = np.nan_to_num(1.0 / (m / s + p / x), nan=0.0, posinf=MOST_FREEDOM)
    return Interior(z, np.clip(v, program.lower, program.upper), freedom, steps, is_converged)


def _centred(r: Array, width: Array, mu: float) -> tuple[Array, Array]:
    """Distances x and s of v from both sides of its box, x + s = width, with mu / s - mu / x = r."""
    root = np.hypot(r * width, 2 * mu)
    near = 2 * mu * width / (2 * mu + np.abs(r) * width + root)  # to the side that the residual pulls to
    return np.where(r > 0, width - near, near), np.where(r > 0, near, width - near)


def _factor(matrix: Array) -> tuple[Array, bool]:
    """Cholesky factor, of a matrix with a shifted diagonal where it is singular to rounding."""
    shift = SMALL_SHIFT
    diagonal = np.diagonal(matrix)
    while shift < 1:
        try:
            shifted = matrix + np.diag(shift * diagonal + 1e-300)
            upper: Array = scipy.linalg.cholesky(shifted, check_finite=False)
            return upper, False
        except np.linalg.LinAlgError:
            shift *= 100
    return np.eye(len(matrix)), False


def _direction(
    program: Program, factor: tuple[Array, bool], freedom: Array, missing: Array, r: Array, corrected: Array | float
) -> tuple[Array, Array]:
    """dz and dv of a Newton step: dv = freedom (r - corrected - A dz) with A'dv = missing."""
    wanted = freedom * (r - corrected)
    dz = scipy.linalg.cho_solve(factor, program.transposed(wanted) - missing, check_finite=False)
    return dz, wanted - freedom * program.times(dz)


def _sides(
    m: Array, p: Array, x: Array, s: Array, dv: Array, at_upper: Array | float, at_lower: Array | float
) -> tuple[Array, Array]:
    """Steps of m and p that keep x p and s m on their way to the wanted products."""
    return (at_upper + m * dv) / s - m, (at_lower - p * dv) / x - p


def _longest(a: Array, b: Array, da: Array, db: Array | None = None) -> float:
    """The longest step, 1 at most, that leaves a + t da and b + t db positive; db is -da where none is given."""
    db = -da if db is None else db
    ratio = max(float(np.max(-da / a, initial=0.0)), float(np.max(-db / b, initial=0.0)))
    return 1.0 if ratio <= STEP else 1.0 / ratio
