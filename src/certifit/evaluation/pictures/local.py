"""Local regression: the line at a query with the weights of the rows, curves of several widths, error against tau."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.evaluation.pictures import new_axes
from certifit.models.adapter import sections_of


def drawn_widths(curve: Array, tau: float) -> tuple[Array, Array, int]:
    """Widths, mean squared errors by leave-one-out, and the place of a width tau; those without an error left out."""
    table = np.asarray(curve, dtype=np.float64).reshape(-1, 2)
    table = table[np.isfinite(table).all(axis=1)]
    return table[:, 0], table[:, 1], int(np.argmin(np.abs(table[:, 0] - tau))) if len(table) else -1


def _refuse_other(model: Any) -> None:
    check_is_fitted(model)
    if "widths" not in sections_of(model):
        raise TypeError(f"{type(model).__name__} is no LocallyWeightedRegression.")


class TauDisplay:
    """The error by leave-one-out against the width tau: too narrow follows noise, too wide misses the curve.

    Parameters
    ----------
    taus, errors : one number per width
    chosen : place of the width of the model

    Attributes after `plot`: `ax_`, `figure_`, `line_`.
    """

    def __init__(self, taus: Array, errors: Array, chosen: int) -> None:
        self.taus, self.errors, self.chosen = taus, errors, chosen

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None) -> TauDisplay:
        """Draw the widths that a LocallyWeightedRegression(tau=None) tried, or 14 and its own where tau was given."""
        _refuse_other(model)
        return cls(*drawn_widths(model.leave_one_out(), model.tau_)).plot(ax)

    def plot(self, ax: Any = None) -> TauDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "TauDisplay")
        self.line_ = ax.plot(self.taus, self.errors, "o-", ms=4, lw=1.6)[0]
        ax.plot(self.taus[self.chosen], self.errors[self.chosen], "o", ms=11, mfc="none", color="C3")
        ax.set(xscale="log", xlabel="tau", ylabel="mean squared error, leaving one out")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class LocalFitDisplay:
    """The fit at one query of one column: rows sized by their weights, the local line or parabola, the prediction.

    Parameters
    ----------
    x, y, weights : of the rows that the model keeps
    places, line : the local polynomial
    query, prediction : where the fit is made, and what it predicts
    grid, curve : predictions everywhere

    Attributes after `plot`: `ax_`, `figure_`, `line_`, `points_`.
    """

    def __init__(
        self, rows: tuple[Array, Array, Array], local: tuple[Array, Array], at: tuple[float, float], curve: Any
    ) -> None:
        self.x, self.y, self.weights = rows
        self.places, self.line = local
        self.query, self.prediction = at
        self.grid, self.curve = curve

    @classmethod
    def from_estimator(cls, model: Any, query: float, *, grid_points: int = 200, ax: Any = None) -> LocalFitDisplay:
        """Draw the local fit at a query by a fitted model of one column with constant, linear or quadratic terms."""
        _refuse_other(model)
        if model.X_fit_.shape[1] != 1 or not isinstance(model.terms, str):
            raise ValueError("LocalFitDisplay draws models of one column with constant, linear or quadratic terms.")
        fit = model.local([float(query)])
        x = model.X_fit_[:, 0]
        near = x[fit.weights > 0.01]
        places = np.linspace(min(near.min(), query), max(near.max(), query), 60)
        powers = (places - float(query))[:, None] ** np.arange(len(fit.coefficients))
        grid = np.linspace(x.min(), x.max(), grid_points)
        curve = grid, np.asarray(model.predict(grid[:, None]))
        local, at = (places, powers @ fit.coefficients), (float(query), fit.prediction)
        return cls((x, model.y_fit_, fit.weights), local, at, curve).plot(ax)

    def plot(self, ax: Any = None) -> LocalFitDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "LocalFitDisplay")
        self.points_ = ax.scatter(self.x, self.y, s=6 + 50 * self.weights, color="C0", alpha=0.5, lw=0)
        ax.plot(self.grid, self.curve, color="0.5", lw=1.2, label="all local fits")
        self.line_ = ax.plot(self.places, self.line, color="C3", lw=2, label=f"the fit at {self.query:.3g}")[0]
        ax.plot(self.query, self.prediction, "o", color="C3", ms=7)
        ax.set(xlabel="x", ylabel="y")
        ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class LocalWidthsDisplay:
    """Curves of local fits for several widths: over-fitting and under-fitting by tau.

    Parameters
    ----------
    grid : places on the column
    curves : {tau: predictions there}
    points : (x, y) of rows

    Attributes after `plot`: `ax_`, `figure_`, `lines_` by tau.
    """

    def __init__(self, grid: Array, curves: dict[float, Array], points: tuple[Array, Array]) -> None:
        self.grid, self.curves, self.points = grid, curves, points

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, *, taus: Sequence[float], grid_points: int = 300, ax: Any = None
    ) -> LocalWidthsDisplay:
        """Fit copies of a LocallyWeightedRegression with each tau to rows of one column and draw."""
        rows, target = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != 1:
            raise ValueError(f"LocalWidthsDisplay draws models of one column. X has the shape {rows.shape}.")
        grid = np.linspace(rows.min(), rows.max(), grid_points)
        curves = {
            float(tau): np.asarray(clone(model).set_params(tau=tau).fit(rows, target).predict(grid[:, None]))
            for tau in taus
        }
        return cls(grid, curves, (rows[:, 0], target)).plot(ax)

    def plot(self, ax: Any = None) -> LocalWidthsDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "LocalWidthsDisplay")
        ax.plot(*self.points, ".", color="0.6", ms=4, zorder=1)
        self.lines_ = {
            tau: ax.plot(self.grid, curve, lw=1.8, label=f"tau = {tau:.3g}")[0] for tau, curve in self.curves.items()
        }
        ax.set(xlabel="x", ylabel="prediction")
        ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
