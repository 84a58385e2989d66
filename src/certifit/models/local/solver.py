"""Local fits at queries, and the width tau by exact leave-one-out.

Without row i, at the same weights, the prediction of row i is (f_i - l_i y_i) / (1 - l_i), l_i the weight of y_i in its
own fit. Where l_i is nearly 1, or the system is singular, the fit without the row is made instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.minimise.problem import Run
from certifit.minimise.steps import Steps
from certifit.models.local.about import n_left_out
from certifit.models.local.task import LocalRows, LocalState, LocalTask, points_of
from certifit.runtime import announce_work, core, n_threads

SECONDS = 8e-9  # of one row at one query, per term and term
DEAF = 0.1  # seconds that the core may work at one query: it hears of Ctrl-C between them
ALONE = 1e-6  # 1 - l below this: the fit without the row is made


@dataclass(frozen=True)
class Fits:
    """Of every tau and query: f(x), the leverage of a row of weight 1 at x, sum_i l_i^2 / a_i, the rank, coefficients.

    In scaled units of the target and of the weights.
    """

    prediction: Array
    leverage: Array
    norm: Array
    rank: Array
    coefficients: Array


def seconds_of(n_queries: int, n_rows: int, n_terms: int) -> float:
    """Of one core, of the fits at some queries with one width; n_terms: beside the constant."""
    return SECONDS * n_queries * n_rows * (2 + (n_terms + 1) ** 2 / 4)


def fits(
    rows: LocalRows,
    queries: Array,
    taus: Array,
    at: Array | None = None,
    *,
    omitted: Array | None = None,
    norm: bool = False,
    coefficients: bool = False,
) -> Fits:
    """The local fits. queries: in the units of the distances. at: a user's basis there. omitted: a row per query."""
    p, q = rows.n_terms + 1, len(rows.points)
    seconds = len(taus) * seconds_of(len(queries), q, rows.n_terms)
    what, instead = f"{len(taus) * len(queries):,} local fits to {q:,} rows", "Sample rows, or give tau as a number."
    announce_work(seconds, what, instead)
    is_apart = rows.form.kind == "given" or seconds > DEAF * len(queries)
    parts = []
    for tau in np.split(taus, len(taus)) if is_apart else [taus]:
        for some, K in rows.pieces(queries, float(tau[0])):
            out = core.local_fits(
                rows.points,
                rows.y - rows.mean,
                rows.weight,
                rows.columns,
                rows.form.degree,
                np.ascontiguousarray(queries[some]),
                None if at is None else np.ascontiguousarray(at[some]),
                K,
                None if omitted is None else np.ascontiguousarray(omitted[some]),
                rows.form.kind,
                np.ascontiguousarray(tau, dtype=np.float64),
                norm,
                coefficients,
                n_threads(),
            )
            out["rank"] = out["rank"].reshape(out["prediction"].shape)
            parts.append(out)
    shape = (len(taus), len(queries))

    def joined(name: str) -> Array:
        arrays = [part[name] for part in parts]
        return arrays[0] if len(arrays) == 1 else np.concatenate([a.reshape(-1, *a.shape[2:]) for a in arrays])

    deep = joined("coefficients").reshape(*shape, p) if coefficients else np.zeros((*shape, 0))
    if coefficients:
        deep[..., 0] += rows.mean
    names = ("leverage", "norm", "rank")
    leverage, norms, rank = (joined(name).reshape(shape) for name in names)
    return Fits(joined("prediction").reshape(shape) + rows.mean, leverage, norms, rank, deep)


def left_out(rows: LocalRows, taus: Array, weight: Array | None = None, places: Array | None = None) -> Array:
    """Taus x rows: y - prediction of every row by the fit to all others, in scaled units.

    weight: of each row that is left out, where that is not all of it. places: of the rows to leave out; None: all.
    """
    some = np.arange(len(rows.y)) if places is None else places
    y, at = rows.y[some], None if rows.columns is None else rows.columns[some]
    whole = fits(rows, rows.points[some], taus, at)
    lever = whole.leverage * (rows.weight[some] if weight is None else weight)
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = (y - whole.prediction) / (1 - lever)
    for t, tau in enumerate(taus):
        again = np.flatnonzero(~(1 - lever[t] > ALONE) | (whole.rank[t] < rows.n_terms))
        if len(again) == 0 or weight is not None:
            continue
        row = some[again]
        at = None if rows.columns is None else rows.columns[row]
        without = fits(rows, rows.points[row], np.array([tau]), at, omitted=row)
        errors[t, again] = rows.y[row] - without.prediction[0]
    return np.asarray(errors)


def choose_tau(task: LocalTask, taus: Array) -> tuple[float, Array]:
    """The width of least mean squared error by leave-one-out, the widest of equal ones; and the curve of all."""
    if len(task.y) < 2:
        return float(taus[-1]), np.zeros((0, 2))
    curve = width_errors(task.rows, task.share, taus)
    best = len(taus) - 1 - int(np.argmin(curve[::-1, 1]))
    return float(taus[best]), curve


def width_errors(rows: LocalRows, share: Array, taus: Array) -> Array:
    """Widths and their mean squared errors by leave-one-out. share: of every row in the mean.

    Each error is that of the fit to all other rows. Of many rows, some at equal steps in their order are left out.
    """
    places = points_of(len(rows.y), n_left_out(len(rows.y), rows.n_terms + 1))
    weight = share[places] / share[places].sum()
    with np.errstate(over="ignore"):
        means = np.square(left_out(rows, taus, places=places)) @ weight / np.float64(rows.y_scale) ** 2
    return np.column_stack([taus, means])


def noise(rows: LocalRows, some: Array, local: Fits) -> tuple[float, float]:
    """Standard deviation about the curve, and sum of leverages; infinite where no degree of freedom is left.

    local: the fits at some of the rows, which stand for all.
    """
    total = float(rows.weight.sum())
    weight = rows.weight[some] * (total / float(rows.weight[some].sum()))
    lever = float(weight @ local.leverage[0])
    squares = float(weight @ np.square(rows.y[some] - local.prediction[0]))
    free = total / rows.unit - 2 * lever + float(weight @ local.norm[0])
    if not (free > 1e-6 * lever and np.isfinite(free)):
        return float("inf"), lever
    with np.errstate(over="ignore"):
        return float(np.sqrt(squares / rows.unit / free) / rows.y_scale), lever


def solve(task: LocalTask) -> tuple[Run[LocalState], Array, float, float]:
    """The local fits at the training points, the curve of leave-one-out errors where tau was chosen by it; `noise`."""
    curve = np.zeros((0, 2))
    tau = task.tau
    if tau is None:
        tau, curve = choose_tau(task, task.widths())
    rows = task.rows
    some = points_of(len(rows.points))
    at = None if rows.columns is None else rows.columns[some]
    local = fits(rows, rows.points[some], np.array([tau]), at, norm=True, coefficients=True)
    with np.errstate(over="ignore"):
        coefficients = local.coefficients[0] / rows.y_scale
    if not np.isfinite(coefficients).all():
        raise ValueError("Local coefficients leave float64. Divide y by a power of ten, or raise tau.")
    steps = Steps(first=1)
    squares = np.square(rows.y[some] - local.prediction[0])
    with np.errstate(over="ignore", divide="ignore"):  # squares of large targets are infinite
        error = task.share[some] @ squares / task.share[some].sum() / np.float64(rows.y_scale) / rows.y_scale
    steps.add(float(error))
    return Run(task.state(tau, coefficients), steps.rows), curve, *noise(rows, some, local)
