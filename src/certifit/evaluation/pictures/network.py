"""Networks: losses epoch by epoch, what the hidden units compute, and how near M units come to a known function.

Units that are learned against units that are drawn:

    f(x) = sum_k c_k cos(a_k'x),   C = sum_k |c_k| |a_k|      (Barron's constant of f)

For every distribution on the unit ball some network of M sigmoidal units has a mean squared error of at most
(2 C)^2 / M, whatever the number of columns (Barron 1993); units added one at a time, the output refitted, reach it.
Features that are drawn before the data are seen do not: their error falls ever more slowly as columns are added.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.evaluation.pictures import new_axes, visible
from certifit.models.adapter import sections_of
from certifit.models.least_squares.model import LinearRegression

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


N_DRAWN = 200  # units that a greedy step begins from the best of
_PLAIN: dict[str, Any] = {
    "activation": "tanh",
    "solver": "lbfgs",
    "alpha": 0.0,
    "standardize": False,
    "dtype": "float64",
}


@dataclass(frozen=True)
class Waves:
    """f(x) = sum_k shares_k cos(directions_k'x)."""

    directions: Array
    shares: Array

    @classmethod
    def drawn(cls, n_columns: int, *, n_waves: int = 2, length: float = 5.0, seed: int = 0) -> Waves:
        """Waves of equal shares whose directions have this length."""
        directions = np.random.default_rng(seed).normal(size=(n_waves, n_columns))
        directions *= length / np.linalg.norm(directions, axis=1, keepdims=True)
        return cls(directions, np.full(n_waves, 1.0 / n_waves))

    def __call__(self, X: Array) -> Array:
        """f of rows."""
        return np.asarray(np.cos(X @ self.directions.T) @ self.shares)

    @property
    def constant(self) -> float:
        """Barron's constant C."""
        return float(np.abs(self.shares) @ np.linalg.norm(self.directions, axis=1))


def in_ball(n_rows: int, n_columns: int, seed: int = 0) -> Array:
    """Rows that are spread evenly over the unit ball."""
    rng = np.random.default_rng([seed, 1])
    X = rng.normal(size=(n_rows, n_columns))
    radius = rng.uniform(size=(n_rows, 1)) ** (1 / n_columns)
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True) * radius)


def _drawn_units(X: Array, n_units: int, length: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Weights and biases of units tanh(w'x + b) whose steps lie within the ball."""
    W = rng.normal(size=(n_units, X.shape[1]))
    W *= length / np.linalg.norm(W, axis=1, keepdims=True)
    return W, rng.uniform(-length, length, size=n_units)


def _error(H: Array, y: Array) -> tuple[float, Array]:
    """Mean squared error of the best sum of a constant and columns, and the residuals."""
    residual = y - LinearRegression().fit(H, y).predict(H)
    return float(np.mean(np.square(residual))), np.asarray(residual)


def greedy_errors(X: Array, y: Array, n_units: int, *, length: float = 5.0, seed: int = 0) -> Array:
    """Errors with 1, 2, ... units: each is fitted to the residuals, then the output layer is refitted."""
    from certifit.models.network.model import MLPRegressor

    rng = np.random.default_rng([seed, 2])  # not the draws that made the function
    H, residual, errors = np.zeros((len(y), 0)), y - y.mean(), []
    for _ in range(n_units):
        W, b = _drawn_units(X, N_DRAWN, length, rng)
        candidates = np.tanh(X @ W.T + b)
        centred = candidates - candidates.mean(axis=0)
        best = int(np.argmax(np.abs(residual @ centred) / np.maximum(np.linalg.norm(centred, axis=0), 1e-300)))
        slope = float(residual @ centred[:, best] / max(np.square(centred[:, best]).sum(), 1e-300))
        start = [(W[[best]], b[[best]]), ([[slope]], [-slope * candidates[:, best].mean()])]
        unit = _quiet(MLPRegressor((1,), start=start, max_iter=40, **_PLAIN), X, residual)
        H = np.column_stack([H, unit.forward(X)[1]])
        error, residual = _error(H, y)
        errors.append(error)
    return np.array(errors)


def trained_errors(X: Array, y: Array, sizes: Sequence[int], *, max_iter: int = 150, seed: int = 0) -> Array:
    """Errors of networks of so many units whose weights are all trained at once."""
    from certifit.models.network.model import MLPRegressor

    models = (MLPRegressor((int(size),), max_iter=max_iter, random_state=seed, **_PLAIN) for size in sizes)
    return np.array([np.mean(np.square(y - _quiet(model, X, y).predict(X))) for model in models])


def random_feature_errors(X: Array, y: Array, sizes: Sequence[int], *, length: float = 5.0, seed: int = 0) -> Array:
    """Errors with units that are drawn once and an output layer that is fitted."""
    W, b = _drawn_units(X, max(sizes), length, np.random.default_rng([seed, 3]))
    H = np.tanh(X @ W.T + b)
    return np.array([_error(H[:, :size], y)[0] for size in sizes])


def _quiet(model: Any, X: Array, y: Array) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a few steps are enough here
        return model.fit(X, y)


class ApproximationDisplay:
    """Mean squared errors against the number of units, and Barron's bound (2 C)^2 / M.

    Parameters
    ----------
    lines : {name: (numbers of units, errors)}
    bound : (2 C)^2, or None

    Attributes after `plot`: `ax_`, `figure_`, `lines_` by name.
    """

    def __init__(self, lines: Mapping[str, tuple[Any, Any]], bound: float | None = None) -> None:
        self.lines, self.bound = dict(lines), bound

    @classmethod
    def from_function(
        cls, waves: Waves, *, n_units: int = 16, n_rows: int = 2000, seed: int = 0, ax: Any = None
    ) -> ApproximationDisplay:
        """Units added greedily, networks trained as a whole, and features drawn at random, on one known function."""
        X = in_ball(n_rows, waves.directions.shape[1], seed)
        y, units = waves(X), np.arange(1, n_units + 1)
        some = units[np.isin(units, 2 ** np.arange(20))]
        lines = {
            "units added greedily": (units, greedy_errors(X, y, n_units, seed=seed)),
            "trained at once": (some, trained_errors(X, y, some.tolist(), seed=seed)),
            "random features": (units, random_feature_errors(X, y, units.tolist(), seed=seed)),
        }
        return cls(lines, (2 * waves.constant) ** 2).plot(ax)

    def plot(self, ax: Any = None) -> ApproximationDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "ApproximationDisplay")
        self.lines_ = {name: ax.loglog(*line, "o-", ms=3, label=name)[0] for name, line in self.lines.items()}
        if self.bound is not None:
            units = np.unique(np.concatenate([np.asarray(line[0], dtype=float) for line in self.lines.values()]))
            ax.loglog(units, self.bound / units, "--", color="0.5", label="Barron's bound $(2C)^2/M$")
        ax.set(xlabel="units M", ylabel="mean squared error")
        ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
