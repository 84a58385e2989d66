"""The limiting model: what a likelihood without a maximum tends to (Geyer 2009; Clarkson, Jennrich 1991).

Rows that a receding direction moves are fitted perfectly in the limit. Of the rows that stay the same is asked again,
until no direction moves any: these have a finite optimum. A coefficient has a limit there iff no direction that moves
none of them changes it (e_j lies in their row space). Of the others, with v over the directions that are 0 on the rows
that stay and recede on all others: +inf iff v_j >= 0 for every v, -inf iff v_j <= 0, else not determined.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block
from certifit.data.source_wrappers import Weighted
from certifit.inference.glm import GlmInference
from certifit.models.glm.separation import NEAR_ZERO, RowsAt, ScoreCone, linear_program, sides_of
from certifit.models.glm.separation_certificate import Separation, separation
from certifit.models.glm.task import GlmTask
from certifit.runtime import core, n_threads, one_blas_thread

ENDS = (
    "+inf, -inf: the coefficient grows without end towards the best likelihood; not determined: the best likelihood "
    "leaves it open. One-sided limits of their profile likelihoods are not computed."
)


@dataclass(frozen=True)
class _Stays:
    """1 for the rows of a stretch whose score a direction leaves at 0, exactly; 0 for those that it moves."""

    weights: Array
    intercept: float

    def __call__(self, stretch: Block) -> Array:
        sign, _ = core.exact_signs(stretch.rows, self.weights, self.intercept, n_threads())
        return np.asarray(sign == 0, dtype=np.float64)


@dataclass(frozen=True)
class LimitingModel:
    """task: of the rows that stay, all columns. n_lost: coefficients fewer that these determine than all rows do."""

    task: GlmTask
    whole: GlmTask

    @property
    def n_lost(self) -> int:
        """The rank of all rows less that of the rows that stay."""
        return len(self.task.columns.factor.dependent) - len(self.whole.columns.factor.dependent)

    def of_all_rows(self, fit: GlmInference) -> GlmInference:
        """The inference of the rows that stay with what belongs to all rows: N, the null deviance, the rank."""
        weight, n_rows = float(self.whole.targets.weight), float(self.whole.n_rows)
        null = 2 * weight * self.whole.evaluate(self.whole.null_point).loss
        moved = (n_rows - fit.n_rows, weight - fit.sum_weight)
        return replace(fit, null_deviance=null, n_rows=n_rows, sum_weight=weight, moved=moved, n_lost=self.n_lost)

    @one_blas_thread
    def ends(self) -> dict[int, float]:
        """+inf, -inf or nan (not determined) of the coefficients without a limit, by their places in the table."""
        basis = self._null_directions()
        sides, first = sides_of(self.task.loss), int(self.task.fit_intercept)
        assert sides is not None
        cone = ScoreCone(self.whole.source, sides, self.task.fit_intercept)
        search = _Ends(cone, basis, cone.spread(self._limit), self._limit)
        places = np.flatnonzero(basis.any(axis=1))
        return {int((place + first) % len(basis)): search.end(int(place)) for place in places}

    @property
    def _limit(self) -> int:
        return 4 * self.task.size + 40

    def _null_directions(self) -> Array:
        """Directions of weights, then the intercept, that move no row that stays: a column each, of size 1."""
        remainders = self.task.columns.remainders
        assert remainders is not None  # a direction moved no row that stays
        lines = -remainders.times[0]
        lines[np.arange(len(lines)), remainders.columns] = 1.0
        lines = lines * remainders.scale
        if self.task.fit_intercept:
            lines = np.column_stack([lines, -remainders.constants[0]])
        return np.asarray(lines.T / np.abs(lines).max(axis=1))


@dataclass
class _Ends:
    """Linear programs on few rows, to which those are added that an answer fails."""

    cone: ScoreCone
    basis: Array
    rows: RowsAt
    limit: int

    def end(self, place: int) -> float:
        """Where the coefficient of a place goes."""
        if not self._falls(place, 1.0):
            return np.inf
        return np.nan if self._falls(place, -1.0) else -np.inf

    def _falls(self, place: int, sign: float) -> bool:
        """Whether some receding direction has sign * v_place < 0."""
        cost = sign * self.basis[place]
        cost = cost / np.abs(cost).max()
        while True:
            size = np.abs(self.rows.A) @ np.abs(self.basis)
            along = -self.rows.side[:, None] * (self.rows.A @ self.basis)
            largest = size.max(axis=1, keepdims=True)
            upper = np.where(np.abs(along) > NEAR_ZERO * size, along / np.where(largest > 0, largest, 1.0), 0.0)
            solved = linear_program(cost, upper, np.zeros(len(upper)), None, None, [(-1.0, 1.0)] * len(cost))
            if solved is None or solved.fun > -NEAR_ZERO:
                return solved is None
            at = self.cone.at(self.basis @ solved.x, self.limit)
            new = ~np.isin(at.number, self.rows.number) & (at.badness > NEAR_ZERO)
            if not new.any():
                return True
            self.rows = self.rows.joined(at, new)


def limiting_model(task: GlmTask, first: Separation) -> LimitingModel:
    """The limiting model of a separated fit; a ValueError where no row stays, or rounding hides which do."""
    sides, source, found = sides_of(task.loss), task.source, first
    while found.exists and found.kind != "complete" and sides is not None:
        assert found.direction is not None
        source = Weighted(source, _Stays(found.direction, float(found.intercept)))
        found = separation(source, sides, task.fit_intercept)
    if found.kind == "complete":
        raise ValueError(f"No summary: in the limit all rows are fitted perfectly, and none stays. {first.sentence()}")
    limit = LimitingModel(task.without_penalty(source), task)
    remainders = limit.task.columns.remainders
    if found.kind != "none" or remainders is None or remainders.is_apart.any():
        raise ValueError(f"No summary: which rows stay in the limit is undecided within rounding. {first.sentence()}")
    return limit
