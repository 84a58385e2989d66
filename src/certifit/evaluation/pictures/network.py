"""Networks: losses epoch by epoch, and what the hidden units compute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.evaluation.pictures import new_axes, visible
from certifit.models.adapter import sections_of

EPOCHS = {"objective": "objective on the rows of the fit", "held_out": "loss on rows held out"}
MOST_POINTS = 300  # that a line is drawn through
MOST_UNITS = 16
_ROOM = 0.08


@dataclass(frozen=True)
class Epochs:
    """Numbers of epochs, and a line per name of EPOCHS that the history has."""

    epochs: Array
    lines: dict[str, Array]


def drawn_epochs(history: Any) -> Epochs:
    """Losses after every epoch; of very many epochs some at equal steps, the last one among them."""
    rows = [row for row in history if np.isfinite(row.get("objective", np.nan))]
    places = np.unique(np.linspace(0, max(len(rows) - 1, 0), min(len(rows), MOST_POINTS)).astype(int))
    chosen = [rows[place] for place in places] if rows else []
    lines = {name: np.array([float(row.get(key, np.nan)) for row in chosen]) for key, name in EPOCHS.items()}
    known = {name: line for name, line in lines.items() if len(line) and np.isfinite(line).all()}
    return Epochs(np.array([int(row["iteration"]) for row in chosen]), known)


def _refuse_other(model: Any) -> None:
    check_is_fitted(model)
    if "learning" not in sections_of(model):
        raise TypeError(f"{type(model).__name__} is no network. MLPClassifier and MLPRegressor are.")


class EpochsDisplay:
    """The objective of a network after every epoch, and the loss on rows held out where the fit held some out.

    Parameters
    ----------
    runs : {name: Epochs}; several are drawn in colours of their own

    Attributes after `plot`: `ax_`, `figure_`, `lines_` by (run, line).
    """

    def __init__(self, runs: Mapping[str, Epochs]) -> None:
        self.runs = dict(runs)

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None) -> EpochsDisplay:
        """Draw the epochs of a fitted network."""
        return cls.from_estimators({"": model}, ax=ax)

    @classmethod
    def from_estimators(cls, models: Mapping[str, Any], *, ax: Any = None) -> EpochsDisplay:
        """Draw several fitted networks, by name: steps of several sizes, say."""
        for model in models.values():
            _refuse_other(model)
        return cls({name: drawn_epochs(model.history_) for name, model in models.items()}).plot(ax)

    def plot(self, ax: Any = None) -> EpochsDisplay:
        """Draw on `ax`, or on a new figure; on a log scale where losses fall a hundredfold."""
        ax = new_axes(ax, "EpochsDisplay")
        self.lines_ = {}
        for k, (run, drawn) in enumerate(self.runs.items()):
            for name, line in drawn.lines.items():
                is_held = name == EPOCHS["held_out"]
                label = name if not run else f"{visible(run, 30)}{', held out' if is_held else ''}"
                colour = f"C{k}" if run or not is_held else "C1"
                style = "--" if run and is_held else "-"
                self.lines_[run, name] = ax.plot(drawn.epochs, line, style, color=colour, lw=1.6, label=label)[0]
        values = np.concatenate([line for drawn in self.runs.values() for line in drawn.lines.values()] or [np.ones(1)])
        ax.set(xlabel="epoch", ylabel="mean loss")
        if values.min() > 0 and values.max() > 100 * values.min():
            ax.set_yscale("log")
        ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class HiddenUnitsDisplay:
    """What the units of a hidden layer compute over one or two columns: a curve or a shaded plane per unit.

    Parameters
    ----------
    across, up : places of the grid; up is None for one column
    values : units x places; of two columns units x up x across
    weights : from the units to what comes next, units x outputs
    points : rows to draw, or None

    Attributes after `plot`: `axes_`, `figure_`.
    """

    def __init__(self, across: Array, up: Array | None, values: Array, weights: Array, points: Any = None) -> None:
        self.across, self.up, self.values, self.weights, self.points = across, up, values, weights, points

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, *, layer: int = 1, grid_points: int = 120, figure: Any = None
    ) -> HiddenUnitsDisplay:
        """The units of a hidden layer of a fitted network of one or two columns, over the range of the rows X."""
        _refuse_other(model)
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] not in (1, 2):
            raise ValueError(f"Hidden units are drawn over one or two columns. Got rows of shape {rows.shape}.")
        n_hidden = len(model.layer_weights_) - 1
        if not 1 <= layer <= n_hidden:
            raise ValueError(f"layer must be from 1 to {n_hidden}, the hidden layers. Got {layer!r}.")
        low, high = rows.min(axis=0), rows.max(axis=0)
        room = _ROOM * np.maximum(high - low, 1e-12)
        places = [np.linspace(low[j] - room[j], high[j] + room[j], grid_points) for j in range(rows.shape[1])]
        grid = np.stack(np.meshgrid(*places), axis=-1).reshape(-1, len(places))
        values = model.forward(grid)[layer].T
        weights = model.layer_weights_[layer].T
        order = np.argsort(-np.abs(weights).sum(axis=1), kind="stable")[:MOST_UNITS]
        shape = (len(order), *(len(axis) for axis in places[::-1]))
        up = places[1] if len(places) == 2 else None
        return cls(places[0], up, values[order].reshape(shape), weights[order], rows).plot(figure)

    def plot(self, figure: Any = None) -> HiddenUnitsDisplay:
        """Draw on `figure`, or on a new one; of more than 16 units those with the largest weights."""
        if figure is None:
            figure = new_axes(None, "HiddenUnitsDisplay").figure
        figure.clear()
        n = len(self.values)
        if self.up is None:
            axes = np.array([figure.subplots()])
            for k, curve in enumerate(self.values):
                axes[0].plot(self.across, curve, lw=1.3, label=f"unit {k + 1}")
            axes[0].set(xlabel="x0", ylabel="state of the unit")
        else:
            n_wide = int(np.ceil(np.sqrt(n)))
            axes = np.atleast_1d(figure.subplots(-(-n // n_wide), n_wide, sharex=True, sharey=True)).ravel()
            for k, ax in enumerate(axes):
                if k >= n:
                    ax.set_visible(False)
                    continue
                ax.contourf(self.across, self.up, self.values[k], 12, cmap="viridis")
                ax.plot(*self.points.T, ".", color="white", ms=2, alpha=0.6)
                ax.set_title(f"unit {k + 1}", fontsize="small")
        self.axes_, self.figure_ = axes, figure
        return self
