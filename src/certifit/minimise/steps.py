"""The steps of a fit: the rows that every solver writes, and the watch that a fit keeps over its solvers.

A solver makes `Steps`, adds a row per step, and ends where `is_over` says so; `Run(state, steps.rows, steps.reason)`
takes them to the model, whose `history_` they are. Rows of all solvers have the same columns, NaN where one is not
known; a family may add columns of its own. What a fit asks of its solvers, a time limit and callbacks, is in `Watch`:
`Estimator.fit` sets it, and a solver need not know of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import isnan

import numpy as np

from certifit.data.columns import Array

COLUMNS = ("iteration", "objective", "dual", "gap", "gradient_norm", "step_size", "step", "seconds")
ROUNDING = 1e-12  # of the objective
NAN = float("nan")  # one object for all that is not known, so that rows compare equal
Listener = Callable[[Mapping[str, float]], bool]


@dataclass(frozen=True)
class Watch:
    """What a fit asks of its solvers. deadline: of `time.perf_counter`. listener: is told every row; True stops."""

    deadline: float | None = None
    max_time: float | None = None
    listener: Listener | None = None


_WATCH: ContextVar[Watch] = ContextVar("watch", default=Watch())  # noqa: B039  frozen


def is_limited() -> bool:
    """Whether the fit that is under way has a limit of time."""
    return _WATCH.get().deadline is not None


def is_watched() -> bool:
    """Whether somebody wants to know of every step: a limit of time, a callback, or a line of progress."""
    watch = _WATCH.get()
    return watch.deadline is not None or watch.listener is not None


def time_is_up() -> bool:
    """Whether the fit that is under way has used its time: for loops inside one step."""
    deadline = _WATCH.get().deadline
    return deadline is not None and time.perf_counter() >= deadline


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Solvers inside the `with` block report to this watch; a fit around it keeps its own deadline."""
    outer = _WATCH.get()
    if outer.deadline is not None and (watch.deadline is None or outer.deadline < watch.deadline):
        watch = Watch(outer.deadline, outer.max_time, watch.listener)
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)


@contextmanager
def unreported() -> Iterator[None]:
    """Solvers inside the `with` block tell nobody of their steps: they make a start, or a part, for another solver."""
    outer = _WATCH.get()
    token = _WATCH.set(Watch(outer.deadline, outer.max_time))
    try:
        yield
    finally:
        _WATCH.reset(token)


class Steps:
    """The rows of a solver. first: the number of its first row, 0 where that is the start.

    reason: why it must stop before its end; empty while it may go on. keeps_weights: `add` keeps the weights it is
    given, one array per row.
    """

    __slots__ = ("_first", "_watch", "reason", "rows", "started", "weights")

    def __init__(self, first: int = 0, keeps_weights: bool = False) -> None:
        self.rows: list[dict[str, float]] = []
        self.reason = ""
        self.started = time.perf_counter()
        self.weights: list[Array] | None = [] if keeps_weights else None
        self._first = first
        self._watch = _WATCH.get()

    @property
    def is_over(self) -> bool:
        """Whether the fit's time is up, or a callback asked to stop."""
        return bool(self.reason)

    def add(
        self,
        objective: float = NAN,
        gap: float = NAN,
        *,
        dual: float = NAN,
        gradient_norm: float = NAN,
        step_size: float = NAN,
        step: float = NAN,
        rounding: float = 0.0,
        iteration: int | None = None,
        weights: Array | None = None,
        **more: float,
    ) -> dict[str, float]:
        """One more step.

        dual: a proven lower bound of the minimum; the gap is then objective - dual, else an estimate or NaN. Where it
        is above the objective by no more than rounding (1e-12 of it, or what the solver's sums may be off by), the row
        has the objective; a bound that is further above is false, and stays to be seen. step_size: what the direction
        was multiplied by. step: how far the weights moved. more: columns that the family alone has.
        """
        if not isnan(dual):
            dual = objective if objective < dual <= objective + max(ROUNDING * abs(objective), rounding) else dual
            gap = objective - dual if isnan(gap) else gap
        now = time.perf_counter()
        row = {
            "iteration": self._first + len(self.rows) if iteration is None else iteration,
            "objective": objective,
            "dual": dual,
            "gap": gap,
            "gradient_norm": gradient_norm,
            "step_size": step_size,
            "step": step,
            "seconds": now - self.started,
            **more,
        }
        self.rows.append(row)
        if self.weights is not None and weights is not None:
            self.weights.append(np.array(weights, dtype=np.float64))
        self._look(row, now)
        return row

    def _look(self, row: dict[str, float], now: float) -> None:
        watch = self._watch
        if watch.listener is not None and watch.listener(row) and not self.reason:
            self.reason = "The callback asked to stop."
        if watch.deadline is not None and now >= watch.deadline and not self.reason:
            self.reason = self._time_is_up()

    def _time_is_up(self) -> str:
        return f"Stopped after {self._watch.max_time:g} s (max_time), at step {self._first + len(self.rows) - 1}."


def closed_form_row(seconds: float) -> dict[str, float]:
    """The one row of a fit without steps."""
    return full_row(1, seconds=seconds)


def timed(
    rows: Sequence[Mapping[str, float | str]], told: Sequence[Mapping[str, float]]
) -> list[dict[str, float | str]]:
    """Rows that follow from a state, with the seconds of the steps that were told on the way."""
    seconds: dict[float | str, float] = {row["iteration"]: row["seconds"] for row in told}
    return [{**row, "seconds": seconds.get(row["iteration"], NAN)} for row in rows]


def full_row(iteration: int, **known: float) -> dict[str, float]:
    """A row with all columns, for events that are told after the fit: splits, rounds, rows of a file."""
    return {"iteration": iteration, **{name: known.pop(name, NAN) for name in COLUMNS[1:]}, **known}
