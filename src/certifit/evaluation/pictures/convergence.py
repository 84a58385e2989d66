"""How a fit converged, step by step: the gap or the objective of one run, or of several solvers side by side.

The way of a perceptron: the length of its weights, epoch by epoch, under what its updates allow.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.evaluation.pictures import new_axes
from certifit.models.adapter import learner_of
from certifit.models.certificate import Certificate


class UpdatesDisplay:
    """|(w, b)| against the number k of updates so far, a mark per epoch.

    Where the classes are separated it stays under sqrt(|w_0|^2 + k (R^2 + 2 delta)). Where they are not, the largest
    length that was seen is drawn, and the two epochs that end with the same weights where there are such.

    Parameters
    ----------
    mistakes, norm : one number per epoch; norms that a model file did not keep are NaN
    growth : R^2 + 2 delta; NaN where the classes were not separated
    first_norm : |w_0|
    cycle : (first, last) epoch with the same weights; empty where none was seen. Epoch 0 is the start
    caption : what the certificate says

    Attributes after `plot`: `ax_`, `figure_`, `line_`, `bound_line_`, `mark_` (of a cycle, else None), `caption_`.
    """

    def __init__(
        self,
        mistakes: ArrayLike,
        norm: ArrayLike,
        *,
        growth: float = np.nan,
        first_norm: float = 0.0,
        cycle: tuple[int, ...] = (),
        caption: str = "",
    ) -> None:
        self.updates: Array = np.append(0.0, np.cumsum(np.asarray(mistakes, dtype=np.float64)))
        self.norm: Array = np.append(first_norm, np.asarray(norm, dtype=np.float64))
        self.growth, self.first_norm, self.cycle, self.caption = float(growth), float(first_norm), cycle, caption

    @classmethod
    def of(cls, model: Any) -> UpdatesDisplay:
        """The data of a fitted perceptron."""
        proof = model.certificate_
        first = 0.0 if model.start is None else float(np.linalg.norm(np.asarray(model.start, dtype=np.float64)))
        growth = proof.radius**2 + 2 * float(model.delta) if proof.holds else np.nan
        parts = ([row[key] for row in model.history_] for key in ("mistakes", "norm"))
        return cls(*parts, growth=growth, first_norm=first, cycle=proof.cycle, caption=proof.sentences()[0])

    @property
    def bound(self) -> Array:
        """The most that the length can be after as many updates; NaN where the classes were not separated."""
        return np.sqrt(self.first_norm**2 + self.updates * self.growth)

    def plot(self, ax: Any = None) -> UpdatesDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "UpdatesDisplay")
        (self.line_,) = ax.plot(self.updates, self.norm, "o-", color="C0", markersize=4, label="|(w, b)|")
        if np.isnan(self.growth):
            most = float(np.nanmax(self.norm))
            self.bound_line_ = ax.axhline(most, color="0.4", ls="--", lw=1, label=f"largest seen: {most:.4g}")
        else:
            (self.bound_line_,) = ax.plot(
                self.updates, self.bound, "--", color="0.4", lw=1, label="most after k updates: sqrt(k (R² + 2 delta))"
            )
        self.mark_ = None
        if self.cycle:
            ends = list(self.cycle)
            label = f"epochs {ends[0]} and {ends[1]} end alike"
            (self.mark_,) = ax.plot(self.updates[ends], self.norm[ends], "s", color="C3", label=label)
        ax.set(xlabel="updates", ylabel="length of the weights")
        ax.legend(fontsize="small")
        self.caption_ = ax.set_title("\n".join(textwrap.wrap(self.caption, 78)), fontsize="small", loc="left")
        self.ax_, self.figure_ = ax, ax.figure
        return self


Across = Literal["iteration", "seconds"]
Up = Literal["gap", "objective"]
_ACROSS = {"iteration": "step", "seconds": "seconds"}
_LOWEST = 1e-20  # relative gaps below are the rounding of the rounding, and are drawn here


class ConvergenceDisplay:
    """The relative gap against steps or seconds, with the tolerance as a line and the certificate as a mark.

    The gap is the solver's estimate at each step. The certificate is computed from the data after the last one.

    Parameters
    ----------
    iteration, seconds, objective : one number per step
    gap : one number per step: how far the objective can be above its minimum, relative to the objective
    certificate : of the fit
    caption : what the certificate means, in words

    Attributes after `plot`: `ax_`, `figure_`, `line_`, `tolerance_line_` and `mark_` (of a gap), `caption_`.
    """

    def __init__(
        self, iteration: Any, seconds: Any, objective: Any, gap: Any, certificate: Certificate, caption: str = ""
    ) -> None:
        self.iteration = np.asarray(iteration)
        self.seconds = np.asarray(seconds, dtype=np.float64)
        self.objective = np.asarray(objective, dtype=np.float64)
        self.gap = np.asarray(gap, dtype=np.float64)
        self.certificate = certificate
        self.caption = caption

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, x: Across = "iteration", y: Up = "gap", ax: Any = None
    ) -> ConvergenceDisplay | UpdatesDisplay:
        """Draw the steps of a fitted model, or of the best one of a fitted CrossValidated.

        A perceptron has no objective: the length of its weights is drawn against its updates, without x and y.
        """
        model = getattr(estimator, "best_estimator_", estimator)
        check_is_fitted(model)
        if not learner_of(model).is_ours or not model.history_:
            raise ValueError(
                f"{type(model).__name__} keeps no steps (history_). A certifit model that was fitted does."
            )
        rows: Sequence[Mapping[str, float]] = model.history_
        if "mistakes" in rows[0]:
            if (x, y) != ("iteration", "gap"):
                raise ValueError(f"A perceptron is drawn against its updates. Leave x and y out. Got {x!r} and {y!r}.")
            return UpdatesDisplay.of(model).plot(ax)
        if "gap" not in rows[0]:
            raise ValueError(
                f"The steps of {type(model).__name__} have no objective and no gap to draw: history_ has "
                f"{', '.join(rows[0])}."
            )
        iteration, seconds, objective = ([row[key] for row in rows] for key in ("iteration", "seconds", "objective"))
        shown = cls(
            iteration, seconds, objective, _relative_gaps(model), model.certificate_, explanation(model.certificate_)
        )
        return shown.plot(ax, x=x, y=y)

    @staticmethod
    def from_runs(
        runs: Mapping[str, Any], *, x: str = "iteration", y: str = "excess", best: float | None = None, ax: Any = None
    ) -> RunsDisplay:
        """Draw several runs side by side, by name: fitted models, results of `minimize`, or histories.

        y: "excess" (the objective above `best`, or above the lowest of all), "objective", "gap" or "step".
        """
        return RunsDisplay.from_runs(runs, x=x, y=y, best=best, ax=ax)

    def plot(self, ax: Any = None, *, x: Across = "iteration", y: Up = "gap") -> ConvergenceDisplay:
        """Draw on `ax`, or on a new figure."""
        if x not in _ACROSS:
            raise ValueError(f"x must be 'iteration' or 'seconds'. Got {x!r}.")
        if y not in DRAWN:
            raise ValueError(f"y must be 'gap' or 'objective'. Got {y!r}.")
        ax = new_axes(ax, "ConvergenceDisplay")
        DRAWN[y](self, ax, getattr(self, x))
        ax.set_xlabel(_ACROSS[x])
        if len(self.iteration) == 1:
            ax.set_xlim(0, 2 * getattr(self, x)[0])
        if x == "iteration":
            ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(fontsize="small")
        self.caption_ = ax.set_title("\n".join(textwrap.wrap(self.caption, 78)), fontsize="small", loc="left")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_gap(self, ax: Any, places: Any) -> None:
        tol, value = self.certificate.tolerance, self.certificate.value
        steps, shown = drawn_gaps(places, self.gap, _LOWEST)
        (self.line_,) = ax.plot(steps, shown, "o-", color="C0", markersize=4, label="gap, as the solver went")
        self.tolerance_line_ = ax.axhline(max(tol, _LOWEST), color="0.4", ls="--", lw=1, label=f"asked: tol = {tol:g}")
        colour, words = ("C2", "proven at the end") if self.certificate.holds else ("C3", "NOT certified")
        (self.mark_,) = ax.plot(
            places[-1], max(value, _LOWEST), "*", color=colour, markersize=14, zorder=3, label=f"{words}: {value:.1e}"
        )
        ax.set(yscale="log", ylabel="objective above its minimum, relative")
        low, high = min(*shown, value, tol), max(*shown, value, tol)
        ax.set_ylim(max(low, _LOWEST) / 10, max(high * 10, _LOWEST))

    def _draw_objective(self, ax: Any, places: Any) -> None:
        (self.line_,) = ax.plot(places, self.objective, "o-", color="C0", markersize=4, label="objective")
        least = self.objective[-1] * (1 - min(self.certificate.value, 1.0))
        self.tolerance_line_ = ax.axhline(least, color="0.4", ls="--", lw=1, label="the minimum is proven to be above")
        ax.set_ylabel("objective")


DRAWN = {"gap": ConvergenceDisplay._draw_gap, "objective": ConvergenceDisplay._draw_objective}


def explanation(certificate: Certificate) -> str:
    """The first sentence of a certificate, and how far predictions can be from the best where it is known."""
    words, change = certificate.sentences()[0], certificate.prediction_change
    if not certificate.holds or change is None:  # a fit that is not certified says it in the sentence itself
        return words
    return f"{words} Predictions differ from the best by at most {change:.1e} (root mean square over the rows)."


def drawn_gaps(iterations: Any, gaps: Any, least: float) -> tuple[Array, Array]:
    """Steps whose gap is known, and that gap on a logarithmic axis: what is below `least` is rounding, drawn there."""
    steps = np.asarray(iterations, dtype=np.float64)
    heights = np.array([np.nan if gap is None else gap for gap in gaps], dtype=np.float64)
    is_known = np.isfinite(heights)
    return steps[is_known], np.maximum(heights[is_known], least)


def _relative_gaps(model: Any) -> list[float]:
    """Gaps of the steps relative to the objective."""
    return [row["gap"] / row["objective"] if row["objective"] > 0 else 0.0 for row in model.history_]


# ---- several runs side by side ---------------------------------------------------------------------------------------

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
        for name, choice, legal in (("x", x, ACROSS), ("y", y, UP)):
            if choice not in legal:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, legal))}. Got {choice!r}.")
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
