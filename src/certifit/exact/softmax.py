"""The exact certificate of softmax regression.

P(W, b) = sum_i share_i [log sum_k e^(z_ik) - z_iy] + sum_jk l2_j/2 w_kj^2,   z_ik = b_k + x_i'w_k

Adding one number to all intercepts, or to all weights of a column without a penalty, changes nothing, so those of the
last class stay as they are and the others are the unknowns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.exact import balls
from certifit.exact.balls import Ball, ball
from certifit.exact.losses import Evaluation
from certifit.exact.minimum import Minimum, NoMinimum, minimum
from certifit.exact.penalised import FLAT, THEOREM, Penalty
from certifit.exact.proof import PLAIN, Asked, Bounds, ExactProof, ExactRows, NoProof, refined, relative


@dataclass
class SoftmaxProblem:
    """The objective of some entries of (classes x columns) weights in balls; the others are held.

    free: places (class, column) of the unknowns. held: all entries, of which those that are free do not count.
    """

    columns: Any
    codes: list[int]
    shares: list[Ball]
    l2: list[Ball]  # of the columns that are penalised, which come first
    held: list[list[Ball]]
    free: list[tuple[int, int]]
    _transposed: Any = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return len(self.free)

    def at(self, theta: list[Ball], hessian: bool = False) -> Evaluation | None:
        """The objective."""
        if self._transposed is None:
            self._transposed = self.columns.transpose()
        weights = [list(row) for row in self.held]
        for (k, j), t in zip(self.free, theta, strict=True):
            weights[k][j] = t
        scores = [(self.columns * balls.column(row)).entries() for row in weights]
        rows = [_cross_entropy(z, code) for z, code in zip(zip(*scores, strict=True), self.codes, strict=True)]
        squares = [s * w * w for row in weights for s, w in zip(self.l2, row, strict=False)]
        value = balls.dot(self.shares, [row[0] for row in rows]) + balls.total(squares) / 2
        chances = list(zip(*(row[1] for row in rows), strict=True))
        slopes = [self._slope(k, chances[k], weights[k]) for k in range(len(weights))]
        slope = [slopes[k][j] for k, j in self.free]
        if not balls.is_finite([value, *slope]):
            return None
        return Evaluation(value, slope, self._hessian(chances) if hessian else None)

    def _slope(self, k: int, chances: Any, weights: list[Ball]) -> list[Ball]:
        left = [s * (p - int(c == k)) for s, p, c in zip(self.shares, chances, self.codes, strict=True)]
        sums = (self._transposed * balls.column(left)).entries()
        pulls = [*self.l2, *[ball(0)] * (len(sums) - len(self.l2))]
        return [s + pull * w for s, pull, w in zip(sums, pulls, weights, strict=True)]

    def _hessian(self, chances: list[Any]) -> Any:
        """Block (k, l): sum_i share_i p_ik ((k = l) - p_il) a_i a_i'."""
        blocks = {}
        classes = sorted({k for k, _ in self.free})
        for k in classes:
            for other in (c for c in classes if c >= k):
                parts = zip(self.shares, chances[k], chances[other], strict=True)
                curved = [s * p * (int(k == other) - q) for s, p, q in parts]
                blocks[k, other] = self._transposed * balls.scaled_rows(curved, self.columns)
        matrix = balls.flint().arb_mat(self.size, self.size)
        for a, (k, i) in enumerate(self.free):
            for b, (other, j) in enumerate(self.free):
                matrix[a, b] = blocks[k, other][i, j] if k <= other else blocks[other, k][j, i]
            if i < len(self.l2):
                matrix[a, a] += self.l2[i]
        return matrix


def _cross_entropy(z: tuple[Ball, ...], code: int) -> tuple[Ball, list[Ball]]:
    """log sum_k e^(z_k) - z_own, and the chances, from the differences to the largest score."""
    top = max(z, key=lambda score: score.mid())
    powers = [(score - top).exp() for score in z]
    whole = balls.total(powers)
    return whole.log() + top - z[code], [power / whole for power in powers]


class SoftmaxFit:
    """A stored state of softmax regression, and its rows."""

    def __init__(
        self, rows: ExactRows, penalty: Penalty, fit_intercept: bool, coef: Array, intercept: Array,
        asked: Asked = PLAIN,
    ) -> None:  # fmt: skip
        self.rows, self.penalty, self.fit_intercept = rows, penalty, fit_intercept
        self.alpha = penalty.alpha
        self.aside, self.claims_exact_fit = asked.aside, asked.claims_exact_fit
        self.coef, self.intercept = np.asarray(coef), np.asarray(intercept)
        self.codes = [int(code) for code in rows.y]
        self._kept: list[int] | None = None

    def proof(self) -> ExactProof:
        """The relative excess of the objective at the state, enclosed."""
        return refined(self.bounds, THEOREM, FLAT)

    def bounds(self) -> Bounds | None:
        """What the precision that is set proves."""
        weight = balls.balls(self.rows.weight.tolist())
        whole = balls.total(weight)
        self.shares = [w / whole for w in weight]
        self.l2 = self.penalty.strengths(self.rows, self.fit_intercept)[1]
        every = list(range(self.rows.n_columns))
        state = self._state()
        at = self._problem(every, state, []).at([])
        if at is None:
            return None
        lowest = self._minimum(every, state)
        if not isinstance(lowest, Minimum):
            if self.claims_exact_fit:  # no objective is below 0, whether it has a minimum or falls for ever
                return Bounds(*relative((ball(0), at.value), at.value, self._null(), True))
            if lowest.reason == "far":
                raise NoProof(FLAT)
            return None
        excess = at.value - lowest.value
        return Bounds(*relative((excess, excess), at.value, self._null(), self.claims_exact_fit))

    def _state(self) -> list[list[Ball]]:
        """Weights and, with intercepts, these last, of every class."""
        ones = int(self.fit_intercept)
        return [
            balls.balls([*row, *[b] * ones]) for row, b in zip(self.coef.tolist(), self.intercept.tolist(), strict=True)
        ]

    def _problem(self, places: list[int], held: list[list[Ball]], free: list[tuple[int, int]]) -> SoftmaxProblem:
        ones = np.ones((self.rows.n_rows, int(self.fit_intercept)))
        columns = balls.matrix(np.hstack([self.rows.X[:, places], ones]))
        l2 = [self.l2[j] for j in places]
        return SoftmaxProblem(columns, self.codes, self.shares, l2, held, free)

    def _minimum(self, every: list[int], state: list[list[Ball]]) -> Minimum | NoMinimum:
        places = [j for j in every if j not in self.aside]
        if self._kept is None and not self.aside:
            lowest = self._minimum_on(places, state)
            if isinstance(lowest, Minimum) or lowest.reason != "singular" or self.alpha > 0:
                return lowest
        if self._kept is None:
            ones = np.ones((self.rows.n_rows, int(self.fit_intercept)))
            kept = balls.independent_columns(np.hstack([ones, self.rows.X[:, places]])) - ones.shape[1]
            self._kept = [places[int(k)] for k in kept if k >= 0]
        start = self._projected(self._kept, state)
        return NoMinimum("singular", []) if start is None else self._minimum_on(self._kept, start)

    def _minimum_on(self, places: list[int], start: list[list[Ball]]) -> Minimum | NoMinimum:
        last, n_columns = len(start) - 1, len(places) + int(self.fit_intercept)
        if self.alpha > 0:
            held = start
            pulled = {j for j, place in enumerate(places) if self.penalty.factors[place] > 0}
            free = [(k, j) for k in range(last + 1) for j in range(n_columns) if k < last or j in pulled]
        else:
            held = [[(w - v).mid() for w, v in zip(row, start[-1], strict=True)] for row in start]
            free = [(k, j) for k in range(last) for j in range(n_columns)]
        return minimum(self._problem(places, held, free), [held[k][j] for k, j in free])

    def _projected(self, places: list[int], state: list[list[Ball]]) -> list[list[Ball]] | None:
        """Weights of some columns whose scores are nearest to those of the state."""
        ones = np.ones((self.rows.n_rows, int(self.fit_intercept)))
        wide, every = (balls.matrix(np.hstack([X, ones])) for X in (self.rows.X[:, places], self.rows.X))
        down = wide.transpose()
        products = down * wide
        projected = []
        for row in state:
            weights = balls.solved(products, down * (every * balls.column(row)))
            if weights is None:
                return None
            projected.append([t.mid() for t in weights.entries()])
        return projected

    def _null(self) -> Ball:
        """The least objective without weights: the entropy of the classes' shares."""
        n_classes = len(self.coef)
        if not self.fit_intercept:
            return ball(n_classes).log()
        sums = [
            balls.total([s for s, c in zip(self.shares, self.codes, strict=True) if c == k]) for k in range(n_classes)
        ]
        return -balls.total([s * s.log() for s in sums])
