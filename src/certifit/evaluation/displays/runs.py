"""Several runs side by side: how fast each solver came to its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from certifit.evaluation.displays import new_axes

ACROSS = {"iteration": "iteration", "seconds": "seconds"}
UP = {
    "excess": "objective above the best seen",
    "objective": "objective",
    "gap": "gap",
    "step": "length of the step",
}
LOGARITHMIC = {"excess", "gap", "step"}
EPS = float(np.finfo(float).eps)


class RunsDisplay:
    """The histories of one or more runs: objective above the best of all, objective, gap or step length.

    Parameters
    ----------
    runs : name -> history_, a list of rows with iteration, objective, gap, step, seconds
    best : the minimum where it is known; without it the lowest objective of all runs stands for it

    Attributes after `plot`: `ax_`, `figure_`, `lines_` (name -> line).
    """

    def __init__(self, runs: Mapping[str, Sequence[Mapping[str, float]]], best: float | None = None) -> None:
        self.runs = {name: list(rows) for name, rows in runs.items()}
        self.best = best if best is not None else _lowest(self.runs)

    @classmethod
    def from_runs(
        cls,
        runs: Mapping[str, Any],
        *,
        x: str = "iteration",
        y: str = "excess",
        best: float | None = None,
        ax: Any = None,
    ) -> RunsDisplay:
        """Draw runs by name: fitted models, results of `minimize` or `find_zero`, or histories."""
        return cls({name: _history(name, run) for name, run in runs.items()}, best).plot(ax, x=x, y=y)

    def plot(self, ax: Any = None, *, x: str = "iteration", y: str = "excess") -> RunsDisplay:
        """Draw on `ax`, or on a new figure."""
        for name, given, legal in (("x", x, ACROSS), ("y", y, UP)):
            if given not in legal:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, legal))}. Got {given!r}.")
        ax = new_axes(ax, "RunsDisplay")
        self.lines_ = {}
        for name, rows in self.runs.items():
            places, values = np.array([row[x] for row in rows]), self.values(rows, y)
            style = "o-" if len(rows) <= 60 else "-"
            (self.lines_[name],) = ax.plot(places, values, style, markersize=3.5, lw=1.3, label=name)
        ax.set(xlabel=ACROSS[x], ylabel=UP[y])
        if y in LOGARITHMIC:
            ax.set_yscale("log")
        ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def values(self, rows: Sequence[Mapping[str, float]], y: str) -> Any:
        """The numbers drawn; what a log axis cannot show (0, below 0) is left out."""
        drawn = np.array([row["objective" if y == "excess" else y] for row in rows], dtype=np.float64)
        if y == "excess":
            drawn = drawn - self.best
            drawn[np.abs(drawn) <= EPS * abs(self.best)] = 0.0
        return np.where(drawn > 0, drawn, np.nan) if y in LOGARITHMIC else drawn


def _history(name: str, run: Any) -> Sequence[Mapping[str, float]]:
    rows: Sequence[Mapping[str, float]] = ()
    with suppress(AttributeError):  # what is no run has no steps
        rows = run if isinstance(run, Sequence) else run.history_
    if not isinstance(rows, Sequence) or not rows or not isinstance(rows[0], Mapping):
        raise ValueError(f"Run {name!r} keeps no steps (history_). A fitted certifit model does.")
    return rows


def _lowest(runs: Mapping[str, Sequence[Mapping[str, float]]]) -> float:
    return min((row["objective"] for rows in runs.values() for row in rows), default=0.0)
