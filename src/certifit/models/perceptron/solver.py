"""Epochs of the perceptron, until one makes no mistake, the weights repeat, or they are proven to have no end.

A separator of wide margin for the perceptron's bound: the hard margin of the augmented examples.

    minimise |w|^2 / 2   subject to   w'a_i >= 1,   a_i = y_i (x_i, 1)

Any separator proves a bound, so nothing here need be trusted: the certificate measures the margin of what comes back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cython_blas

from certifit.data.columns import Array
from certifit.data.source import Block
from certifit.minimise.problem import Run, norm
from certifit.minimise.row_pass import RowOrder, wide_stretches
from certifit.minimise.steps import Steps
from certifit.models.kernel.task import dense_rows
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.perceptron.task import PerceptronTask, signs_of
from certifit.runtime import core, n_threads, one_blas_thread

if TYPE_CHECKING:
    from certifit.models.glm.separation_certificate import Separation


ASKED_AFTER = 100  # epochs with mistakes after which the fit tests whether the classes are separable


@dataclass(frozen=True)
class PerceptronRun(Run[Weights]):
    """The result of the epochs. cycle: the epochs (first, last) whose ends have the same weights; None: no cycle.

    separation: whether the classes can be separated, where that was asked.
    """

    n_updates: int = 0
    cycle: tuple[int, int] | None = None
    separation: Separation | None = None


@dataclass
class Epochs:
    """A run. order: "given", "shuffled", or the numbers of the rows of an epoch."""

    task: PerceptronTask
    order: str | Array
    random_state: int = 0
    steps: Steps = field(default_factory=lambda: Steps(first=1))

    def run(self, max_iter: int, is_hopeless: Callable[[], bool]) -> PerceptronRun:
        """At most max_iter epochs; is_hopeless tells whether no weights can separate the rows."""
        state, n_updates, cycle = self.task.start, 0, None
        ends = {_digest(state): 0}
        is_shuffled = isinstance(self.order, str) and self.order == "shuffled"
        rows = RowOrder(True, self.random_state, by_content=False) if is_shuffled else None
        for epoch in range(1, max_iter + 1):
            state, mistakes = self._epoch(state, epoch, rows)
            n_updates += mistakes
            self.steps.add(mistakes=mistakes, norm=augmented_norm(state))
            if mistakes == 0 or self.steps.is_over:
                break
            if rows is None:  # the same order every time: the same weights are an endless cycle
                first = ends.setdefault(_digest(state), epoch)
                if first < epoch:
                    cycle = (first, epoch)
                    break
            if epoch == ASKED_AFTER and epoch < max_iter and is_hopeless():
                break
        return PerceptronRun(state, self.steps.rows, self.steps.reason, n_updates=n_updates, cycle=cycle)

    def _epoch(self, state: Weights, epoch: int, rows: RowOrder | None) -> tuple[Weights, int]:
        source = self.task.source if rows is None else wide_stretches(self.task.source)
        return source.visit(partial(self._step, epoch, rows), (state, 0))

    def _step(
        self, epoch: int, rows: RowOrder | None, so_far: tuple[Weights, int], number: int, stretch: Block
    ) -> tuple[Weights, int]:
        visits = self._given(stretch) if rows is None else rows.visits(stretch, epoch, number)
        return one_pass(stretch, self.task.delta, self.task.fit_intercept, so_far, visits)

    def _given(self, stretch: Block) -> Array | None:
        if isinstance(self.order, str):
            return None
        if stretch.n_rows <= int(self.order.max(initial=0)):
            raise ValueError(
                f"order names row {int(self.order.max())}, and there are {stretch.n_rows} rows in memory at a time. "
                "Give row numbers for rows in memory only, or order='given' or 'shuffled'."
            )
        return np.asarray(self.order)


def one_pass(
    stretch: Block, delta: float, fit_intercept: bool, so_far: tuple[Weights, int], visits: Array | None
) -> tuple[Weights, int]:
    """(weights, number of mistakes) after one pass over a stretch of rows; so_far: those before it."""
    state, n_mistakes = so_far
    coef, intercept, mistakes, is_finite = core.perceptron_pass(
        stretch.rows, signs_of(stretch), visits, delta, 1.0, fit_intercept, state.coef, state.intercept
    )
    if not is_finite:
        raise OverflowError("The weights leave the range of float64. Divide the columns by their largest sizes.")
    return Weights(coef, intercept), n_mistakes + int(mistakes)


def augmented_norm(state: Weights) -> float:
    """|(w, b)|."""
    return norm(np.append(state.coef, state.intercept))


def _digest(state: Weights) -> bytes:
    numbers = np.append(state.coef, state.intercept) + 0.0  # -0.0 is 0.0
    return hashlib.blake2b(numbers.tobytes(), digest_size=16).digest()


MOST_NUMBERS = 100_000  # rows x columns: beyond it only where it is asked for
MOST_STEPS = 200_000
MOST_ROUNDS = 200
VIOLATION = 1e-9
WORKING_SET = 512


@one_blas_thread
def widest(task: PerceptronTask) -> Weights | None:
    """Weights of a margin near the largest; None where none are found."""
    block = task.source.gather()
    X, sign = dense_rows(block.X), signs_of(block)
    signed = sign[:, None] * (np.column_stack([X, np.ones(len(X))]) if task.fit_intercept else X)
    power = np.ldexp(1.0, -int(np.frexp(np.abs(signed).max(initial=0.0))[1]))
    A = np.ascontiguousarray(signed * power)
    with np.errstate(all="ignore"):
        w = A.T @ _multipliers(A)
        w = w / np.abs(w).max(initial=0.0)
    if not np.isfinite(w).all():
        return None
    return Weights(w[:-1].copy(), float(w[-1])) if task.fit_intercept else Weights(w, 0.0)


def _multipliers(A: Array) -> Array:
    """a >= 0 of the dual: maximise sum_i a_i - |sum_i a_i A_i|^2 / 2; sharpened on its support."""
    n, ones = len(A), np.ones(len(A))
    pool = core.margin_pool(cython_blas.__pyx_capi__["dgemm"], False, "linear", 0.0, 1, A, WORKING_SET)
    none, rows = np.zeros(0, dtype=np.uint32), np.arange(n, dtype=np.uint32)
    a = core.margin_solve(
        pool, rows, ones, ones, np.full(n, np.inf), np.zeros(n), np.zeros(n), none,
        False, VIOLATION, MOST_STEPS, MOST_ROUNDS, WORKING_SET, False, n_threads(),
    )[0]  # fmt: skip
    support = np.flatnonzero(a)
    if 0 < len(support) <= WORKING_SET:
        sharp = np.linalg.lstsq(A[support] @ A[support].T, np.ones(len(support)), rcond=None)[0]
        if np.isfinite(sharp).all() and (sharp >= 0).all():
            a = np.zeros(n)
            a[support] = sharp
    return np.asarray(a)
