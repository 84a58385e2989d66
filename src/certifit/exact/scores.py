"""Objectives of a score, in balls: value, slope and curvature at any weights.

P(theta) = sum_i share_i l(y_i, offset_i + a_i'theta) + sum_j l2_j/2 theta_j^2 + sum_j pull_j theta_j

a_i are the columns with a weight, and 1 last where there is an intercept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from certifit.exact import balls
from certifit.exact.balls import Ball, Matrix, ball
from certifit.exact.losses import BallLoss


@dataclass(frozen=True)
class Evaluation:
    """The objective at a point: value, slopes by theta, and second derivatives where asked for."""

    value: Ball
    slope: list[Ball]
    hessian: Matrix | None


@dataclass
class ScoreProblem:
    """A convex objective of weights in balls. scores: the open interval that the loss takes."""

    columns: Matrix
    y: Sequence[float]
    shares: list[Ball]
    offset: list[Ball] | None
    loss: BallLoss
    l2: list[Ball]
    pull: list[Ball]
    scores: tuple[float, float]
    _transposed: Any = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return len(self.l2)

    @property
    def transposed(self) -> Matrix:
        """Columns as rows."""
        if self._transposed is None:
            self._transposed = self.columns.transpose()
        return self._transposed

    def scores_at(self, theta: Sequence[Ball]) -> list[Ball]:
        """offset + a'theta of every row."""
        z = (self.columns * balls.column(theta)).entries() if self.size else [ball(0)] * len(self.shares)
        return z if self.offset is None else [a + b for a, b in zip(z, self.offset, strict=True)]

    def at(self, theta: Sequence[Ball], hessian: bool = False) -> Evaluation | None:
        """The objective at a point or, as balls, all over a box; None where a score may be illegal."""
        z = self.scores_at(theta)
        low, high = self.scores
        is_open = math.isinf(low) and math.isinf(high)
        if not is_open and not all(one > low and one < high for one in z):
            return None
        rows = [self.loss(y, one) for y, one in zip(self.y, z, strict=True)]
        value = balls.dot(self.shares, [row[0] for row in rows])
        value += sum((l2 * t * t / 2 + p * t for l2, p, t in zip(self.l2, self.pull, theta, strict=True)), ball(0))
        slope = self._sums([s * row[1] for s, row in zip(self.shares, rows, strict=True)])
        slope = [s + l2 * t + p for s, l2, p, t in zip(slope, self.l2, self.pull, theta, strict=True)]
        if not balls.is_finite([value, *slope]):
            return None
        matrix = self._hessian([s * row[2] for s, row in zip(self.shares, rows, strict=True)]) if hessian else None
        return Evaluation(value, slope, matrix)

    def slope_of(self, column: Sequence[Ball], theta: Sequence[Ball]) -> Ball:
        """The slope by the weight of a column that has none."""
        z = self.scores_at(theta)
        slopes = [s * self.loss(y, one)[1] for s, y, one in zip(self.shares, self.y, z, strict=True)]
        return balls.dot(column, slopes)

    def _sums(self, rows: list[Ball]) -> list[Ball]:
        found: list[Ball] = (self.transposed * balls.column(rows)).entries() if self.size else []
        return found

    def _hessian(self, curvatures: list[Ball]) -> Matrix:
        return self.transposed * balls.scaled_rows(curvatures, self.columns) + balls.diagonal(self.l2)
