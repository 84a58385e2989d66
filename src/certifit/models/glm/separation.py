"""Separation: whether a likelihood has a finite maximum, and whether a hyperplane separates two classes.

Along a receding direction (recession.py) with a score that is not 0 the loss falls for ever: no weights are the best.
It separates completely where every side_i s_i > 0. Either such a direction exists, or positive multipliers with
sum_i multiplier_i side_i a_i = 0 on rows a_i = (x_i, 1) that span all rows (Stiemke; for complete separation any rows
will do: Gordan). Both are found by linear programs on few rows: rows that a direction fails are added until none is
left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.optimize import linprog

from certifit.data.columns import Array
from certifit.models.glm.recession import NEAR_ZERO, Cone, RowsAt
from certifit.runtime import one_blas_thread

INDEPENDENT = 1e-9  # a column farther than this, relative, from the span of the others is none of their combinations
MOST_ROUNDS = 200
MOST_UNKNOWNS = 4096


@dataclass(frozen=True)
class Found:
    """What a search came to: a direction, or multipliers of rows, or neither.

    kept: the unknowns that no combination of others stands for, where multipliers are the answer.
    """

    direction: Array | None = None
    rows: RowsAt | None = None
    multipliers: Array | None = None
    kept: Array | None = None


@dataclass
class Search:
    """Rows are added to few until these decide."""

    cone: Cone
    complete: bool = False  # whether only complete separation counts
    rows: RowsAt = field(init=False)
    n_zero: float = np.inf  # rows that the last direction left at 0, where it failed none

    @one_blas_thread
    def run(self, candidate: Array | None = None) -> Found:
        """A direction, or multipliers, or neither."""
        if self.cone.size > MOST_UNKNOWNS:
            return Found(candidate)
        at = None
        if candidate is not None and np.isfinite(candidate).all() and candidate.any():
            at = self.cone.at(candidate, self._limit)
            if self._is_answer(at):
                return Found(candidate)
        self.rows = self.cone.spread(2 * self._limit)
        if at is not None:
            self._add(at)
        for _ in range(MOST_ROUNDS):
            found = self._round()
            if found is not None:
                return found
        return Found()

    @property
    def _limit(self) -> int:
        """Rows that are added at a time."""
        return 2 * self.cone.size + 20

    def _round(self) -> Found | None:
        """What the rows so far say; None where more were added."""
        program = Program.of(self.rows)
        strict, multipliers = program.most_separated()
        if not strict.any() or (self.complete and not strict.all()):
            return self._overlap(program, strict, multipliers)
        direction = program.sparsest(strict)
        if direction is None:
            return Found()
        at = self.cone.at(direction, self._limit)
        # Rows at 0 may be strict for another direction: they are added while that makes them fewer.
        before, self.n_zero = self.n_zero, np.inf if at.counts[0] else float(at.counts[1])
        if self.n_zero < before or at.counts[0]:
            return None if self._add(at) else Found(direction, program.rows)
        return Found(direction, program.rows)

    def _is_answer(self, at: RowsAt) -> bool:
        """Whether a direction fails no row, exactly, and is strict for some."""
        _, _, _, wrong, zero, right, unknown = at.counts
        return bool(wrong == 0 and unknown == 0 and right > 0 and not (self.complete and zero))

    def _add(self, at: RowsAt) -> bool:
        """More rows; False where all were there."""
        new = ~np.isin(at.number, self.rows.number)
        self.rows = self.rows.joined(at, new)
        return bool(new.any())

    def _overlap(self, program: Program, strict: Array, multipliers: Array) -> Found | None:
        """Multipliers of rows that no direction parts; None where more rows are needed."""
        kept = program.independent()
        if not self.complete and len(kept) < self.cone.size:
            # A direction that changes no score of these rows may change one of others.
            still = program.null_direction(kept)
            moved = [self.cone.at(direction, self._limit) for direction in (still, -still)]
            if any([self._add(at.picked(at.badness > NEAR_ZERO)) for at in moved]):
                return None
        fewest = program.fewest(~strict)
        if fewest is not None:
            rows = self.rows.picked(fewest[0])
            own = Program.of(rows).independent()
            if self.complete or len(own) == len(kept):
                return Found(None, rows, fewest[1], own)
        return Found(None, self.rows.picked(~strict), multipliers[~strict], kept)


@dataclass(frozen=True)
class Program:
    """The linear programs of some rows, in columns shifted to their middle and scaled by powers of two."""

    rows: RowsAt
    B: Array
    unit: Array
    shift: Array

    @staticmethod
    def of(rows: RowsAt) -> Program:
        """Rows whose last unknown may be an intercept: a column of ones takes up the shifts of the others."""
        A = rows.A
        has_ones = A.shape[1] > 0 and bool((A[:, -1] == 1).all())
        shift = np.median(A, axis=0) if has_ones else np.zeros(A.shape[1])
        shift[-1:] = 0.0
        B = A - shift
        size = np.abs(B).max(axis=0, initial=0.0)
        unit = np.ldexp(1.0, -np.frexp(np.where(size > 0, size, 1.0))[1])
        return Program(rows, B * unit, unit, shift)

    def user(self, scaled: Array) -> Array:
        """A direction of the scaled columns in those of the user."""
        direction = scaled * self.unit
        if self.shift.any():
            direction[-1] -= float(self.shift @ direction)
        return np.asarray(direction)

    def most_separated(self) -> tuple[Array, Array]:
        """Which rows some receding direction makes strict, and multipliers >= 1 of all others (0 for side 0: free).

        maximise sum_i t_i  over direction v, 0 <= t_i <= 1:  side_i b_i'v >= t_i;  b_i'v = 0 for side 0
        """
        side, n = self.rows.side, len(self.rows.side)
        moving, p = np.flatnonzero(side), self.B.shape[1]
        signed = side[moving, None] * self.B[moving]
        cost = np.concatenate([np.zeros(p), -np.ones(len(moving))])
        upper = sp.hstack([sp.csr_array(-signed), sp.eye_array(len(moving))], format="csr")
        held = sp.hstack([sp.csr_array(self.B[side == 0]), sp.csr_array((n - len(moving), len(moving)))], format="csr")
        limits = [(None, None)] * p + [(0.0, 1.0)] * len(moving)
        solved = _linprog(cost, upper, np.zeros(len(moving)), held, np.zeros(n - len(moving)), limits)
        strict, multipliers = np.zeros(n, dtype=bool), np.ones(n)
        if solved is not None:
            strict[moving] = solved.x[p:] > 0.5
            multipliers[moving] = -solved.ineqlin.marginals
            multipliers[side == 0] = solved.eqlin.marginals
        return strict, multipliers

    def sparsest(self, strict: Array) -> Array | None:
        """Of the directions with side_i b_i'v >= 1 for the strict rows, one of least sum of sizes, which has few."""
        side, p = self.rows.side, self.B.shape[1]
        moving = side != 0
        signed = np.where(moving, side, 1.0)[:, None] * self.B
        twice = np.hstack([signed, -signed])
        cost = np.ones(2 * p)
        if self.shift.any() or (self.rows.A[:, -1] == 1).all():
            cost[[p - 1, -1]] = 1e-6  # the intercept is no column
        solved = _linprog(
            cost, -twice[moving], -strict[moving].astype(np.float64), twice[~moving], np.zeros(int((~moving).sum())),
            [(0.0, None)] * (2 * p),
        )  # fmt: skip
        if solved is None:
            return None
        direction = solved.x[:p] - solved.x[p:]
        direction[np.abs(direction) < 1e-9 * np.abs(direction).max()] = 0.0
        return self.user(direction)

    def fewest(self, among: Array) -> tuple[Array, Array] | None:
        """At most (unknowns + 1) of the rows with positive multipliers of sum 1 whose combination vanishes.

        None where there are rows of side 0: these have multipliers of any sign.
        """
        side = self.rows.side
        rows = np.flatnonzero(among)
        if (side[rows] == 0).any():
            return None
        equal = np.vstack([(side[rows, None] * self.B[rows]).T, np.ones(len(rows))])
        right = np.append(np.zeros(self.B.shape[1]), 1.0)
        solved = _linprog(np.zeros(len(rows)), None, None, equal, right, [(0.0, None)] * len(rows))
        if solved is None:
            return None
        positive = solved.x > 1e-9
        chosen = np.zeros(len(side), dtype=bool)
        chosen[rows[positive]] = True
        return chosen, solved.x[positive]

    def independent(self) -> Array:
        """Columns of which the others are combinations, on these rows."""
        if not self.B.size:
            return np.zeros(0, dtype=np.int64)
        size = np.linalg.norm(self.B, axis=0)
        _, r, order = scipy.linalg.qr(self.B / np.where(size > 0, size, 1.0), mode="economic", pivoting=True)
        diagonal = np.abs(np.diagonal(r))
        return np.sort(order[: int((diagonal > INDEPENDENT * max(diagonal[0], INDEPENDENT)).sum())])

    def null_direction(self, kept: Array) -> Array:
        """A direction that changes no score of these rows, of all columns that are combinations of the kept."""
        left = np.setdiff1d(np.arange(self.B.shape[1]), kept)
        scattered = np.cos(1.0 + np.arange(len(left)) ** 2)
        direction = np.zeros(self.B.shape[1])
        direction[left] = scattered
        if len(kept):
            direction[kept] = -np.linalg.lstsq(self.B[:, kept], self.B[:, left] @ scattered, rcond=None)[0]
        return self.user(direction)


def _linprog(cost: Array, upper: Any, upper_right: Any, equal: Any, right: Any, limits: list[Any]) -> Any:
    """The solution of a linear program; None where there is none within the solver's tolerance."""
    solved = linprog(cost, upper, upper_right, equal, right, limits, method="highs-ds")
    return solved if solved.status == 0 else None
