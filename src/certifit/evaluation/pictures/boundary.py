"""Where classifiers change their minds: the regions of the classes over two columns.

One model, several on the same rows, or one at several steps; a regressor is thresholded.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.evaluation.pictures import new_axes, visible

_MARGIN = 0.08  # of the range of a column, left free on both sides


class BoundaryDisplay:
    """The most probable class over two columns, and the lines between classes.

    Parameters
    ----------
    across, up : the grid's places along the two columns
    margins : of shape (classes, up, across): by how much each class leads the best other one
    classes : labels
    names : of the two columns
    points, labels : rows to draw, and their classes; None draws none
    held : a word on the columns that are not drawn

    Attributes after `plot`: `ax_`, `figure_`, `surface_`, `lines_` (a contour a class; one for two classes), `points_`.
    """

    def __init__(
        self,
        across: Any,
        up: Any,
        margins: Any,
        classes: Any,
        *,
        names: tuple[str, str] = ("x0", "x1"),
        points: Any = None,
        labels: Any = None,
        held: str = "",
    ) -> None:
        self.across, self.up, self.margins = (np.asarray(part, dtype=np.float64) for part in (across, up, margins))
        self.classes = list(classes)
        self.names = names
        self.points = None if points is None else np.asarray(points, dtype=np.float64)
        self.labels = None if labels is None else np.asarray(labels)
        self.held = held

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        columns: tuple[Any, Any] = (0, 1),
        grid_points: int = 200,
        ax: Any = None,
    ) -> BoundaryDisplay:
        """Score a grid over two columns of X, by place or name, and draw; y adds the rows.

        Other columns are held at a value that occurs: the middle one of numbers, else the most frequent.
        """
        check_is_fitted(estimator)
        label = type(estimator).__name__
        if not hasattr(estimator, "classes_"):
            raise TypeError(f"{label} has no classes, so there is no boundary to draw.")
        if not isinstance(grid_points, int | np.integer) or grid_points < 2:
            raise ValueError(f"grid_points must be a whole number >= 2. Got {grid_points!r}.")
        table = _Table(X)
        first, second = table.places(columns)
        across, up = (_spaced(table.numbers(place), int(grid_points)) for place in (first, second))
        grid = np.meshgrid(across, up)
        rows = table.typical({first: grid[0].ravel(), second: grid[1].ravel()})
        margins = _margins(estimator, rows).reshape(len(estimator.classes_), len(up), len(across))
        points = None if y is None else np.column_stack([table.numbers(first), table.numbers(second)])
        if points is not None and len(np.asarray(y)) != len(points):
            raise ValueError(f"y must have a label per row: {len(points)}. Got {len(np.asarray(y))}.")
        names = (table.names[first], table.names[second])
        others = len(table.names) - 2
        held = f"{others} other column{'s' * (others > 1)} held at typical values" if others else ""
        display = cls(
            across,
            up,
            margins,
            estimator.classes_,
            names=names,
            points=points,
            labels=None if y is None else y,
            held=held,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> BoundaryDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "BoundaryDisplay")
        from matplotlib.colors import ListedColormap

        count = len(self.classes)
        colours = [f"C{k % 10}" for k in range(count)]
        self.surface_ = ax.pcolormesh(
            self.across, self.up, self.margins.argmax(axis=0), cmap=ListedColormap(colours), vmin=-0.5,
            vmax=count - 0.5, alpha=0.2, shading="nearest", rasterized=True, linewidth=0,
        )  # fmt: skip
        self.lines_ = []
        for lead in self.margins[1:] if count == 2 else self.margins:
            if lead.min() < 0 < lead.max():
                self.lines_.append(ax.contour(self.across, self.up, lead, [0.0], colors="0.2", linewidths=1.2))
        self.points_ = []
        for k, name in enumerate(self.classes):
            drawn = np.zeros((0, 2)) if self.points is None else self.points[np.asarray(self.labels == name)]
            style = {"color": colours[k], "s": 14, "edgecolor": "white", "linewidth": 0.4, "label": visible(str(name))}
            self.points_.append(ax.scatter(drawn[:, 0], drawn[:, 1], **style))
        ax.set(xlabel=visible(self.names[0]), ylabel=visible(self.names[1]))
        ax.set(xlim=(self.across[0], self.across[-1]), ylim=(self.up[0], self.up[-1]))
        ax.legend(fontsize="small")
        if self.held:
            ax.set_title(self.held, fontsize="small", loc="left")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class _Table:
    """An array or a frame, column by column. A frame stays one, so that a model finds its columns by name."""

    def __init__(self, X: Any) -> None:
        self.rows = X
        if hasattr(X, "iloc"):
            self.names = [str(name) for name in X.columns]
            return
        if hasattr(X, "__arrow_c_stream__"):
            self.rows = pa.table(X)
            self.names = list(self.rows.column_names)
            return
        self.rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
        if self.rows.ndim != 2:
            raise ValueError(f"X must be a table of rows and columns. Got the shape {self.rows.shape}.")
        self.names = [f"x{j}" for j in range(self.rows.shape[1])]

    def places(self, columns: Any) -> list[int]:
        """Places of the two columns to draw."""
        chosen = list(columns) if isinstance(columns, tuple | list) else [columns]
        if len(chosen) != 2 or chosen[0] == chosen[1]:
            raise ValueError(f"columns must be two, by place or name. Got {columns!r}.")
        places = []
        for column in chosen:
            is_place = isinstance(column, int | np.integer) and 0 <= column < len(self.names)
            if not is_place and column not in self.names:
                raise ValueError(f"There is no column {column!r}. The columns are {self.names}.")
            places.append(int(column) if is_place else self.names.index(column))
        return places

    def numbers(self, place: int) -> Array:
        """A column as numbers."""
        try:
            values = np.asarray(self._column(place), dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"Column {self.names[place]!r} is no column of numbers. Draw two that are.") from None
        if not np.isfinite(values).any():
            raise ValueError(f"Column {self.names[place]!r} has no finite number.")
        return values

    def typical(self, drawn: dict[int, Array]) -> Any:
        """Rows with these values in the drawn columns, the others held."""
        n = len(next(iter(drawn.values())))
        held = {j: _typical_row(self._column(j)) for j in range(len(self.names)) if j not in drawn}
        if hasattr(self.rows, "iloc"):
            rows = self.rows.iloc[np.zeros(n, dtype=int)].reset_index(drop=True)
            parts = {j: self.rows.iloc[:, j].iloc[np.full(n, row)].array for j, row in held.items()} | drawn
            return rows.assign(**{str(self.rows.columns[j]): part for j, part in parts.items()})
        if isinstance(self.rows, pa.Table):
            parts = {j: self.rows.column(j).take(np.full(n, row)) for j, row in held.items()} | drawn
            return pa.table({name: parts[j] for j, name in enumerate(self.names)})
        parts = {j: np.full(n, self.rows[row, j]) for j, row in held.items()} | drawn
        return np.column_stack([parts[j] for j in range(len(self.names))]).astype(np.float64)

    def _column(self, place: int) -> Array:
        if hasattr(self.rows, "iloc"):
            return np.asarray(self.rows.iloc[:, place])
        return np.asarray(self.rows.column(place) if isinstance(self.rows, pa.Table) else self.rows[:, place])


def _typical_row(values: Array) -> int:
    """A row with the middle number, or with the most frequent value."""
    if values.dtype.kind in "fiub":
        known = np.flatnonzero(np.isfinite(values))
        if len(known):
            return int(known[np.argsort(values[known], kind="stable")[len(known) // 2]])
    words = [str(value) for value in values]
    return words.index(Counter(words).most_common(1)[0][0])


def _spaced(values: Array, count: int) -> Array:
    """Places from below the least to above the largest."""
    low, high = values[np.isfinite(values)].min(), values[np.isfinite(values)].max()
    room = _MARGIN * ((high - low) or 1.0)
    return np.linspace(low - room, high + room, count)


def _margins(estimator: Any, rows: Any) -> Array:
    """By how much each class leads the best other one, classes x rows."""
    classes = estimator.classes_
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(rows))
    elif hasattr(estimator, "predict_proba"):
        scores = np.asarray(estimator.predict_proba(rows))
    else:
        scores = np.asarray(estimator.predict(rows)[:, None] == np.asarray(classes)[None, :], dtype=np.float64)
    if scores.ndim == 1:
        return np.stack([-scores, scores])
    ordered = np.sort(scores, axis=1)
    best, second = ordered[:, -1:], ordered[:, -2:-1]
    return np.asarray(np.where(scores == best, best - second, scores - best).T)


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
