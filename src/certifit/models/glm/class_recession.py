"""Recession of the softmax loss: a row of class k lets its scores run off where (v_k - v_j)'(x, 1) >= 0 for all j.

A direction is v_1 .. v_(K-1), one after the other; v_0 = 0, since a vector added to all classes changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block, Source, rows_where
from certifit.models.glm.recession import NEAR_ZERO, RowsAt, count_signs, picked_rows, scattered_order, smallest
from certifit.runtime import core, n_threads

GRID = 2.0**-25  # of the largest entry: differences of such numbers are exact


@dataclass(frozen=True)
class SoftmaxCone:
    """Rows of several classes, y their codes: an inequality for every class that is not the row's own."""

    source: Source
    n_classes: int
    fit_intercept: bool

    @property
    def per_row(self) -> int:
        """Inequalities are numbered row K + class."""
        return self.n_classes

    @property
    def size(self) -> int:
        """Weights and intercepts of all classes but the first."""
        return (self.n_classes - 1) * (self.source.n_features + int(self.fit_intercept))

    def nearest(self, direction: Array) -> Array:
        """The direction on a grid on which differences are exact."""
        unit = GRID * np.ldexp(1.0, np.frexp(np.abs(direction).max(initial=0.0))[1])
        return np.asarray(np.round(direction / unit) * unit)

    def parts(self, direction: Array) -> tuple[Array, Array]:
        """Weights (classes x columns) and intercepts."""
        rest = direction.reshape(self.n_classes - 1, -1)
        whole = np.vstack([np.zeros(rest.shape[1]), rest])
        return (whole[:, :-1], whole[:, -1]) if self.fit_intercept else (whole, np.zeros(self.n_classes))

    def at(self, direction: Array, limit: int) -> RowsAt:
        """The inequalities that a direction fails most."""
        weights, intercepts = self.parts(direction)
        return self.source.reduce(partial(_rows_at, cone=self._facts, V=weights, b=intercepts, limit=limit))

    def spread(self, limit: int) -> RowsAt:
        """Inequalities of rows of every class."""
        return self.source.reduce(partial(_rows_spread, cone=self._facts, limit=limit))

    @property
    def _facts(self) -> tuple[int, bool]:
        return self.n_classes, self.fit_intercept


def _rows_at(run: Block, cone: tuple[int, bool], V: Array, b: Array, limit: int) -> RowsAt:
    n_classes = cone[0]
    found = None
    for own in range(n_classes):
        rows = _rows_of(run, own)
        if not len(rows):
            continue
        X = Block(rows_where(run.X, _marked(run, rows)), None, None)
        for other in range(n_classes):
            if other == own:
                continue
            sign, ratio = core.exact_signs(X.rows, V[own] - V[other], float(b[own] - b[other]), n_threads())
            counts = count_signs(-ratio, sign, np.abs(sign) < 2, np.ones(len(rows), dtype=bool))
            part = _inequalities(run, cone, rows, -ratio, -ratio >= -NEAR_ZERO, (own, other), counts, limit)
            found = part if found is None else found + part
    return _nothing(run, cone, limit) if found is None else found


def _rows_spread(run: Block, cone: tuple[int, bool], limit: int) -> RowsAt:
    found = _nothing(run, cone, limit)
    for own in range(cone[0]):
        rows = _rows_of(run, own)
        bad = -np.argsort(np.argsort(scattered_order(rows + run.first_row))).astype(np.float64)
        for other in range(cone[0]):
            if other != own:
                wanted = np.ones(len(rows), dtype=bool)
                found = found + _inequalities(run, cone, rows, bad, wanted, (own, other), found.counts * 0, limit)
    return found


def _inequalities(
    run: Block, cone: tuple[int, bool], rows: Array, bad: Array, wanted: Array, pair: tuple[int, int], counts: Array,
    limit: int,
) -> RowsAt:  # fmt: skip
    """The worst of some rows of one class against another class."""
    (n_classes, fit_intercept), (own, other) = cone, pair
    worst = np.flatnonzero(wanted)
    worst = worst[smallest(-bad[worst], limit)]
    A = picked_rows(run, rows[worst], fit_intercept)
    signed = np.zeros((len(worst), n_classes, A.shape[1]))
    signed[:, own], signed[:, other] = A, -A
    numbers = (rows[worst] + run.first_row) * n_classes + other
    unknowns = signed[:, 1:].reshape(len(worst), (n_classes - 1) * A.shape[1])
    return RowsAt(unknowns, np.ones(len(worst)), numbers, bad[worst], counts, limit)


def _rows_of(run: Block, own: int) -> Array:
    if run.y is None:
        raise ValueError("Separation is a matter of rows with a target. Got rows without one.")
    counted = run.y == own if run.weight is None else (run.y == own) & (run.weight > 0)
    return np.flatnonzero(counted)


def _marked(run: Block, rows: Array) -> Array:
    seen = np.zeros(run.n_rows, dtype=bool)
    seen[rows] = True
    return seen


def _nothing(run: Block, cone: tuple[int, bool], limit: int) -> RowsAt:
    size = (cone[0] - 1) * (run.X.shape[1] + int(cone[1]))
    none = np.zeros(0)
    return RowsAt(np.zeros((0, size)), none, none.astype(np.int64), none, np.zeros(7, dtype=np.int64), limit)
