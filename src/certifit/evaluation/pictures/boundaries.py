"""Boundaries of several classifiers on the same rows, or of one at several steps; a regressor is thresholded."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from certifit.data.columns import Array
from certifit.evaluation.pictures import new_axes, visible

_ROOM = 0.08


def leads(model: Any, rows: Array, threshold: float) -> Array:
    """A number per row, 0 on the boundary of a two-class model, or where a regressor predicts the threshold."""
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(rows), dtype=np.float64)
    elif hasattr(model, "predict_proba"):
        scores = np.asarray(model.predict_proba(rows), dtype=np.float64)[:, 1] - 0.5
    else:
        scores = np.asarray(model.predict(rows), dtype=np.float64) - threshold
    if scores.ndim != 1:
        raise ValueError(f"A line between classes needs two of them. Got {scores.shape[1]}.")
    return scores


class BoundariesDisplay:
    """Where each of several models changes its mind, over the two columns of the rows.

    Parameters
    ----------
    across, up : places of the grid
    leads : {name: values of shape (up, across)}; a model's boundary is where they are 0
    points, labels : the rows

    Attributes after `plot`: `ax_`, `figure_`, `lines_`, `points_`.
    """

    def __init__(self, across: Any, up: Any, leads: Mapping[str, Any], points: Any, labels: Any) -> None:
        self.across, self.up = (np.asarray(part, dtype=np.float64) for part in (across, up))
        self.leads = {name: np.asarray(values, dtype=np.float64) for name, values in leads.items()}
        self.points, self.labels = np.asarray(points, dtype=np.float64), np.asarray(labels)

    @classmethod
    def from_estimators(
        cls,
        models: Mapping[str, Any],
        X: Any,
        y: Any,
        *,
        threshold: float = 0.5,
        grid_points: int = 200,
        ax: Any = None,
    ) -> BoundariesDisplay:
        """Draw fitted models of two columns. A regressor's boundary is where its prediction is `threshold`."""
        points = np.asarray(X, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 2:
            raise ValueError(f"Boundaries are drawn over two columns. Got rows of shape {points.shape}.")
        low, high = points.min(axis=0), points.max(axis=0)
        room = _ROOM * np.maximum(high - low, 1e-12)
        across, up = (np.linspace(low[j] - room[j], high[j] + room[j], grid_points) for j in range(2))
        grid = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
        values = {name: leads(model, grid, threshold).reshape(len(up), -1) for name, model in models.items()}
        return cls(across, up, values, points, y).plot(ax)

    @classmethod
    def from_epochs(
        cls, model: Any, X: Any, y: Any, *, epochs: tuple[int, ...] = (1, 2, 4, 8), ax: Any = None
    ) -> BoundariesDisplay:
        """Fit copies of a model of two classes with `max_iter` at each of the epochs: its boundary as it moves."""
        copies = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the early ones are stopped on purpose
            for epoch in epochs:
                copies[f"epoch {epoch}"] = clone(model).set_params(max_iter=epoch).fit(X, y)
        return cls.from_estimators(copies, X, y, ax=ax)

    def plot(self, ax: Any = None) -> BoundariesDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "BoundariesDisplay")
        from matplotlib.lines import Line2D

        kinds = np.unique(self.labels)
        marks = "osD^v"
        self.points_ = [
            ax.scatter(
                *self.points[self.labels == kind].T, s=16, marker=marks[k % 5], color=f"{0.15 + 0.5 * k / len(kinds)}"
            )
            for k, kind in enumerate(kinds)
        ]
        self.lines_, handles = [], []
        for k, (name, values) in enumerate(self.leads.items()):
            if values.min() < 0 < values.max():
                self.lines_.append(ax.contour(self.across, self.up, values, [0.0], colors=f"C{k}", linewidths=1.6))
                handles.append(Line2D([], [], color=f"C{k}", label=visible(name, 30)))
            else:
                handles.append(Line2D([], [], color=f"C{k}", ls=":", label=f"{visible(name, 30)}: none here"))
        for points, kind in zip(self.points_, kinds, strict=True):
            points.set_label(visible(str(kind)))
        ax.set(xlabel="x0", ylabel="x1", xlim=(self.across[0], self.across[-1]), ylim=(self.up[0], self.up[-1]))
        ax.legend(handles=[*handles, *self.points_], fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
