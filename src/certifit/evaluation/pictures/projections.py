"""Rows of two columns and their projections onto the first direction; beside it the line of a regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.evaluation.pictures import new_axes


@dataclass(frozen=True)
class Projections:
    """Rows, where they are projected to, and the mean squared distance."""

    rows: Array
    projected: Array
    error: float


def drawn_projections(model: Any, X: Any) -> Projections:
    """Projections of rows of two columns onto the first direction of a fitted PCA."""
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise ValueError(f"Projections are drawn of rows of two columns. Got the shape {rows.shape}.")
    scores = np.asarray(model.transform(X), dtype=np.float64)
    scores[:, 1:] = 0.0
    projected = np.asarray(model.inverse_transform(scores), dtype=np.float64)
    return Projections(rows, projected, float(np.mean(np.sum((rows - projected) ** 2, axis=1))))


def regression_line(rows: Array) -> tuple[float, float]:
    """Slope and intercept of the least squares of the second column on the first."""
    centred = rows - rows.mean(axis=0)
    slope = float(centred[:, 0] @ centred[:, 1] / (centred[:, 0] @ centred[:, 0]))
    return slope, float(rows[:, 1].mean() - slope * rows[:, 0].mean())


class ProjectionDisplay:
    """Rows, their projections at right angles onto the first direction, and, on request, the regression's line.

    PCA minimises squared distances at right angles to its line, regression those along the target's axis.

    Attributes after `plot`: `ax_`, `figure_`, `points_`, `segments_`, `line_`, `regression_line_`.
    """

    def __init__(self, projections: Projections, regression: bool = False) -> None:
        self.projections, self.regression = projections, regression

    @classmethod
    def from_estimator(cls, model: Any, X: Any, *, regression: bool = False, ax: Any = None) -> ProjectionDisplay:
        """Draw a fitted PCA of two columns; regression adds the least squares of the second column on the first."""
        return cls(drawn_projections(model, X), regression).plot(ax)

    def plot(self, ax: Any = None) -> ProjectionDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "ProjectionDisplay")
        rows, projected = self.projections.rows, self.projections.projected
        self.points_ = ax.scatter(*rows.T, s=16, color="0.35", zorder=3, linewidth=0)
        self.segments_ = [
            ax.plot(*np.stack([row, place]).T, color="C0", lw=0.8, alpha=0.7)[0]
            for row, place in zip(rows, projected, strict=True)
        ]
        ends = projected[np.argsort(projected @ (projected[-1] - projected[0] + 1e-300))][[0, -1]]
        words = f"first direction: mean squared distance {self.projections.error:.3g}"
        (self.line_,) = ax.plot(*ends.T, color="C0", lw=1.8, label=words)
        self.regression_line_ = None
        if self.regression:
            slope, intercept = regression_line(rows)
            x = np.array([rows[:, 0].min(), rows[:, 0].max()])
            (self.regression_line_,) = ax.plot(
                x, slope * x + intercept, color="C1", lw=1.8, label="regression of x1 on x0"
            )
        ax.set(xlabel="x0", ylabel="x1", aspect="equal")
        ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
