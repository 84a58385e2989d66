"""The limiting model: what a likelihood without a maximum tends to (Geyer 2009; Clarkson, Jennrich 1991).

Rows that a receding direction moves are fitted perfectly in the limit. Of the rows that stay the same is asked again,
until no direction moves any: these have a finite optimum. A coefficient has a limit there iff no direction that moves
none of them changes it (e_j lies in their row space). Of the others, with v over the directions that are 0 on the rows
that stay and recede on all others: +inf iff v_j >= 0 for every v, -inf iff v_j <= 0, else not determined.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block
from certifit.data.source_wrappers import Weighted
from certifit.inference.glm import GlmInference
from certifit.models.glm.separation import NEAR_ZERO, ScoreCone, linear_program, sides_of
from certifit.models.glm.separation_certificate import Separation, separation
from certifit.models.glm.task import GlmTask
from certifit.runtime import core, n_threads, one_blas_thread

ENDS = (
    "+inf, -inf: the coefficient grows without end towards the best likelihood; not determined: the best likelihood "
    "leaves it open. One-sided limits of their profile likelihoods are not computed."
)


def staying_rows(task: GlmTask, first: Separation) -> GlmTask:
    """A separated task on the rows that stay in the limit; a ValueError where none does, or rounding hides which."""
    sides, source, found = sides_of(task.loss), task.source, first
    while found.exists and found.kind != "complete" and sides is not None:
        source = Weighted(source, partial(_stays, found=found))
        found = separation(source, sides, task.fit_intercept)
    if found.kind == "complete":
        raise ValueError(f"No summary: in the limit all rows are fitted perfectly, and none stays. {first.sentence()}")
    staying = task.without_penalty(source)
    remainders = staying.columns.remainders
    if found.kind != "none" or remainders is None or remainders.is_apart.any():
        raise ValueError(f"No summary: which rows stay in the limit is undecided within rounding. {first.sentence()}")
    return staying


def _stays(stretch: Block, found: Separation) -> Array:
    """1 for the rows whose score a direction leaves at 0, exactly; 0 for those that it moves."""
    sign, _ = core.exact_signs(stretch.rows, found.direction, float(found.intercept), n_threads())
    return np.asarray(sign == 0, dtype=np.float64)


def of_all_rows(fit: GlmInference, staying: GlmTask, whole: GlmTask) -> GlmInference:
    """The inference of the rows that stay with what belongs to all rows: N, the null deviance, the rank."""
    weight, n_rows = float(whole.targets.weight), float(whole.n_rows)
    return replace(
        fit,
        null_deviance=2 * weight * whole.evaluate(whole.null_point).loss,
        n_rows=n_rows,
        sum_weight=weight,
        moved=(n_rows - fit.n_rows, weight - fit.sum_weight),
        n_lost=len(staying.columns.factor.dependent) - len(whole.columns.factor.dependent),
    )


@one_blas_thread
def ends(staying: GlmTask, whole: GlmTask) -> dict[int, float]:
    """+inf, -inf or nan (not determined) of the coefficients without a limit, by their places in the table.

    Linear programs on few rows, to which those are added that an answer fails.
    """
    basis, sides, limit = _null_directions(staying), sides_of(staying.loss), 4 * staying.size + 40
    assert sides is not None
    cone = ScoreCone(whole.source, sides, whole.fit_intercept)
    rows = cone.spread(limit)

    def falls(slope: Array) -> bool:
        """Whether some receding direction v = basis @ z has slope @ z < 0."""
        nonlocal rows
        while True:
            along, size = -rows.side[:, None] * (rows.A @ basis), np.abs(rows.A) @ np.abs(basis)
            upper = (
                np.where(np.abs(along) > NEAR_ZERO * size, along, 0.0) / np.maximum(size.max(axis=1), 1e-300)[:, None]
            )
            cost = slope / np.abs(slope).max()
            solved = linear_program(cost, upper, np.zeros(len(upper)), None, None, [(-1.0, 1.0)] * len(cost))
            if solved is None or solved.fun > -NEAR_ZERO:
                return solved is None
            at = cone.at(basis @ solved.x, limit)
            new = ~np.isin(at.number, rows.number) & (at.badness > NEAR_ZERO)
            if not new.any():
                return True
            rows = rows.joined(at, new)

    out = {}
    for place in np.flatnonzero(basis.any(axis=1)).tolist():
        end = (np.nan if falls(-basis[place]) else -np.inf) if falls(basis[place]) else np.inf
        out[(place + int(whole.fit_intercept)) % len(basis)] = end
    return out


def _null_directions(staying: GlmTask) -> Array:
    """Directions of weights, then the intercept, that move no row that stays: a column each, of size 1."""
    remainders = staying.columns.remainders
    assert remainders is not None  # a direction moved no row that stays
    lines = -remainders.times[0]
    lines[np.arange(len(lines)), remainders.columns] = 1.0
    lines = lines * remainders.scale
    if staying.fit_intercept:
        lines = np.column_stack([lines, -remainders.constants[0]])
    return np.asarray(lines.T / np.abs(lines).max(axis=1))
