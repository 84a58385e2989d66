"""Learning row by row: stochastic gradient descent on the rows of a source.

A step:  w -= step_t (mean over a batch of l'(y, z) x  +  strength w),  b alike without the penalty, in the units of the
columns as they are. For the squared loss and single rows it is the rule of Widrow and Hoff (LMS), w += step (y - z) x.
An epoch visits every row once (`RowOrder`); rows are shuffled within a stretch, and stretches keep order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Protocol, cast

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.minimise.gradient_descent import Schedule, rounded_down
from certifit.minimise.problem import Minimised, Problem, Record, Stop, check_record, norm
from certifit.minimise.row_pass import (
    SCHEDULES,
    Intercept,
    Pace,
    RowLoss,
    RowOrder,
    RowState,
    one_pass,
    row_facts,
    wide_stretches,
)
from certifit.minimise.steps import NAN, Steps

ESTIMATED = 0.25  # a gap may be an estimate, off by a factor: go on to this share of tol
FAR_ABOVE = 100.0  # multiple of the first objective above which, after an epoch, a run diverges


class RowProblem(Problem, Protocol):
    """A problem over the rows of a source: mean loss of the scores plus 1/2 sum_j strengths_j w_j^2.

    x: the weights of the source's columns, then the intercept where there is one, in the user's units. A problem of
    several scores per row has their number, n_scores: x is then a table of as many columns, row by row.
    """

    source: Source
    loss: RowLoss
    strengths: Array
    fit_intercept: bool


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent: a step after every batch of rows.

    step : float > 0, or None
        The learning rate. None is 1 / (largest |x|^2 of a row, 1 of the intercept in it, times the largest curvature of
        the loss): no row's step goes beyond that row's own minimum. For batches of B rows that is 1 part of B, and the
        mean |x|^2 the rest. A loss without a largest curvature (Poisson, Gamma, one of your own) takes the larger of
        its curvatures and slopes at the start; curvatures that it does not give are measured by differences.
    schedule : "inverse-root", "inverse", "constant", or a function of the step's number 1, 2, 3, ...
        The step after t steps: step / sqrt(1 + decay t), step / (1 + decay t), step; or step times the function's value
        at t + 1, which must be above 0. A function makes a step cost a call of Python.
    decay : float >= 0, or None
        None is 1 / (steps of an epoch). A schedule that is a function has none.
    batch_rows : int >= 1
        Rows of a batch. Every epoch splits the rows into batches again.
    average : bool
        Hand back the mean of all states after the first epoch (of all, where there is but one).
    shuffle, random_state : order of the visits; the seed is an integer >= 0
        shuffle=False visits rows as they stand.
    record : None or "weights"
        "weights" keeps the weights after every step, a step being a batch. A step then costs a call of Python.
    keep : "last" or "best"
        Which state a run without an end hands back: the last, or that of the epoch whose end has the least objective.
        A run that diverges hands back the best.

    An iteration of `max_iter` is an epoch. Needs the rows: it does not take a user's own function.
    """

    step: float | None = None
    schedule: str | Schedule = "inverse-root"
    decay: float | None = None
    batch_rows: int = 1
    average: bool = False
    shuffle: bool = True
    random_state: int = 0
    record: Record = None
    keep: str = "last"
    needs: ClassVar[frozenset[str]] = frozenset({"rows"})

    def __post_init__(self) -> None:
        if self.step is not None and not 0 < self.step < np.inf:
            raise ValueError(f"step must be a number > 0, or None. Got {self.step!r}.")
        if not callable(self.schedule) and self.schedule not in SCHEDULES:
            legal = ", ".join(map(repr, SCHEDULES))
            raise ValueError(f"schedule must be one of {legal}, or a function of the step. Got {self.schedule!r}.")
        if callable(self.schedule) and self.decay is not None:
            raise ValueError(f"A schedule that is a function has no decay. Got decay={self.decay!r}.")
        check_record(self.record)
        if self.keep not in ("last", "best"):
            raise ValueError(f"keep must be 'last' or 'best'. Got {self.keep!r}.")
        if self.decay is not None and not 0 <= self.decay < np.inf:
            raise ValueError(f"decay must be a number >= 0, or None. Got {self.decay!r}.")
        for name, least in (("batch_rows", 1), ("random_state", 0)):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be an integer >= {least}. Got {value!r}.")

    def minimise(self, problem: Problem, start: Array, stop: Stop) -> Minimised:
        """Epochs from `start` until `stop` says so."""
        if not hasattr(problem, "source"):
            raise TypeError(f"{type(self).__name__} learns from rows, and this problem has none. Use another solver.")
        return _Run(self, cast(RowProblem, problem), start, stop).result()

    def start(
        self, source: Source, loss: RowLoss, fit_intercept: bool, weights: Array, intercept: Intercept
    ) -> RowState:
        """The state before the first step, with step and decay settled: one pass where they are None."""
        step, decay, rows = self.step, self.decay, int(self.batch_rows)
        decays = not callable(self.schedule) and self.schedule != "constant"
        if step is None or (decay is None and decays):
            facts = row_facts(source, loss, fit_intercept, weights, intercept)
            steepest = facts.of_batch(rows)
            # Six digits: a sum in another order of rows gives the same step.
            step = step or (float(f"{1 / steepest:.6g}") if steepest > 0 else 1.0)
            decay = rows / max(facts.n_visits, 1) if decay is None else decay
        return RowState(weights, intercept, Pace(float(step), self.schedule, float(decay or 0.0), rows))


@dataclass(frozen=True)
class MiniBatch(SGD):
    """SGD with batches of 64 rows: fewer steps, each of less noise."""

    batch_rows: int = 64


@dataclass(frozen=True)
class AveragedSGD(SGD):
    """SGD whose states are averaged: the noise of single rows cancels."""

    average: bool = True


@dataclass
class _Run:
    """The epochs of one fit."""

    solver: SGD
    problem: RowProblem
    begin: Array
    stop: Stop
    steps: Steps = field(default_factory=Steps)
    reason: str = ""
    converged: bool = False
    diverged: bool = False

    def __post_init__(self) -> None:
        self.trace, self.n_scores = self.steps.rows, getattr(self.problem, "n_scores", 1)
        self.source = wide_stretches(self.problem.source)
        self.order = RowOrder(self.solver.shuffle, int(self.solver.random_state))
        self.x = np.array(self.begin, dtype=np.float64)
        weights, intercept = self._parts(self.x)
        self.state = self.solver.start(
            self.source, self.problem.loss, self.problem.fit_intercept, weights.copy(), intercept
        )
        if self.solver.average:
            self.state = self.state.summing()
        if self.solver.record is not None:
            self.state = replace(self.state, recorded=[np.append(weights, intercept)])
        self.value, self.gradient = self.problem.value_gradient(self.x)
        self.best = self.x, self.value, self.gradient
        self._record(0.0)

    def result(self) -> Minimised:
        """The result: the last state; where the run did not converge and keep="best", or diverged, the best one."""
        if self.stop.max_iter == 0:
            self.reason = "No epoch was allowed (max_iter=0)."
        for epoch in range(1, self.stop.max_iter + 1):
            self._epoch(epoch)
            if self.reason:
                break
        largest = None
        if not self.converged:
            largest = 2 / self._steepest() if self._steepest() > 0 else np.inf
            self.reason = f"{self.reason} {self._judged(largest)}"
        is_last = self.converged or (self.solver.keep == "last" and not self.diverged)
        x, value, gradient = (self.x, self.value, self.gradient) if is_last else self.best
        return Minimised(x, value, gradient, self.trace, self.reason, self.converged, largest, weights=self._recorded())

    def _recorded(self) -> Array | None:
        """The weights of every step, the start first."""
        if self.state.recorded is None:
            return None
        return np.array(self.state.recorded)[:, : len(self.begin)]

    def _epoch(self, epoch: int) -> None:
        if self.solver.average and epoch == 2:
            self.state = self.state.summing()
        self.state = self.source.visit(partial(self._step, epoch), self.state)
        before, self.x = self.x, self._joined(*self.state.averaged())
        if self.state.is_finite and np.isfinite(self.x).all():
            with np.errstate(over="ignore", invalid="ignore"):
                self.value, self.gradient = self.problem.value_gradient(self.x)
        else:
            self.value = np.inf
        self._judge(epoch, norm(self.x - before) if np.isfinite(self.x).all() else np.inf)

    def _step(self, epoch: int, state: RowState, number: int, stretch: Block) -> RowState:
        if not state.is_finite:
            return state
        visits = self.order.visits(stretch, epoch, number)
        task = self.problem
        return one_pass(stretch, task.loss, task.strengths, task.fit_intercept, state, visits)

    def _judge(self, epoch: int, step: float) -> None:
        first = max(abs(self.trace[0]["objective"]), self.stop.floor)
        if not np.isfinite(self.value) or self.value > FAR_ABOVE * first:
            grown = (
                "left the numbers" if not np.isfinite(self.value) else f"is {self.value / first:.1e} times its first"
            )
            self.diverged = True
            self.reason = f"Diverged in epoch {epoch} at step {self._size():.6g}: the objective {grown}."
            return
        if self.value < self.best[1]:
            self.best = self.x, self.value, self.gradient
        row = self._record(step)
        scale = max(abs(self.value), self.stop.floor)
        known = not np.isnan(row["gap"])
        left = row["gap"] / scale if known and scale > 0 else norm(self.gradient) / max(self.first_norm, 1e-300)
        of = "the gap is {:.1e} of the objective" if known else "the gradient's norm is {:.1e} of its first"
        words = f"{of.format(left)}; asked was {self.stop.tol:g}"
        if left <= (ESTIMATED * self.stop.tol if known else self.stop.tol):
            self.reason, self.converged = f"Converged: {words}.", True
        elif self.stop.step_tol > 0 and step <= self.stop.step_tol:
            self.reason = f"The last epoch moved by {step:.2e}, within step_tol = {self.stop.step_tol:g}."
            self.converged = True
        elif epoch == self.stop.max_iter:
            self.reason = f"Not converged after {epoch} epochs (max_iter): {words}."
        elif self.stop.max_time is not None and row["seconds"] >= self.stop.max_time:
            self.reason = f"Not converged after {row['seconds']:.3g} s (max_time): {words}."
        elif self.steps.is_over:
            self.reason = f"{self.steps.reason} Not converged: {words}."
        if self.stop.callback is not None and self.stop.callback(row, self.x) is True and not self.reason:
            self.reason = "The callback asked to stop."

    def _record(self, step: float) -> dict[str, float]:
        gap = self.problem.gap(self.x, self.value, self.gradient)
        size = norm(self.gradient)
        if not self.trace:
            self.first_norm = size
        return self.steps.add(
            float(self.value),
            NAN if gap is None else float(gap),
            gradient_norm=size,
            step_size=self._size(),
            step=step,
        )

    def _steepest(self) -> float:
        """The largest curvature of a single row's objective, at the best state."""
        weights, intercept = self._parts(self.best[0])
        facts = row_facts(self.source, self.problem.loss, self.problem.fit_intercept, weights, intercept)
        return facts.curvature + float(np.max(self.problem.strengths, initial=0.0))

    def _judged(self, largest: float) -> str:
        size = self._size()
        shown = rounded_down(largest, 6) if 0 < largest < np.inf else largest
        limit = f"2 / (largest curvature of a row's loss) = {shown:.6g}"
        if size >= largest:
            return f"Steps must be below {limit} to be stable for every row. Take at most half of that, or step=None."
        return f"The step, now {size:.6g}, is below the largest that is stable for every row, {limit}."

    def _size(self) -> float:
        return self.state.pace.at(self.state.n_steps)

    def _parts(self, x: Array) -> tuple[Array, Intercept]:
        if self.n_scores > 1:
            table = x.reshape(-1, self.n_scores)
            return (table[:-1], table[-1]) if self.problem.fit_intercept else (table, np.zeros(self.n_scores))
        return (x[:-1], float(x[-1])) if self.problem.fit_intercept else (x, 0.0)

    def _joined(self, weights: Array, intercept: Intercept) -> Array:
        return np.append(weights, intercept) if self.problem.fit_intercept else weights.ravel()
