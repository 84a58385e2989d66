"""Predictions as one column changes: a fitted curve with its rows, partial dependence; importance of columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.evaluation.importance import Importance, permutation_importance
from certifit.evaluation.pictures import new_axes, visible
from certifit.models.adapter import bands_of

MOST_BARS = 20
MOST_CURVES = 50


class ImportanceDisplay:
    """The importance of columns with intervals, the largest first.

    Parameters
    ----------
    result : what `permutation_importance` returns

    Attributes after `plot`: `ax_`, `figure_`, `bars_`.
    """

    def __init__(self, result: Importance) -> None:
        if not isinstance(result, Importance):
            raise TypeError(f"Pass the result of permutation_importance(...). Got {type(result).__name__}.")
        self.result = result

    @classmethod
    def from_estimator(cls, model: Any, X: Any, y: Any, *, ax: Any = None, **options: Any) -> ImportanceDisplay:
        """Shuffle columns and draw. options are those of `permutation_importance`."""
        return cls(permutation_importance(model, X, y, **options)).plot(ax)

    def plot(self, ax: Any = None) -> ImportanceDisplay:
        """Draw on `ax`, or on a new figure."""
        result = self.result
        order = np.argsort(-result.values, kind="stable")[:MOST_BARS][::-1]
        ax = new_axes(ax, "ImportanceDisplay")
        ends = np.array([result.values[order] - result.low[order], result.high[order] - result.values[order]])
        places = np.arange(len(order))
        self.bars_ = ax.barh(places, result.values[order], xerr=ends, color="C0", ecolor="0.3", height=0.65)
        ax.set_yticks(places, [visible(result.names[j]) for j in order])
        ax.axvline(0.0, color="0.5", lw=1)
        ax.set(xlabel=f"increase of the {result.what} when shuffled")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class DependenceDisplay:
    """What a model predicts for rows as one of their columns changes: a curve per row, and their mean.

    Of a model of one column that is the staircase of a tree. The mean is the partial dependence; where the curves cross
    it, the column acts differently on different rows.

    Parameters
    ----------
    grid : values of the column
    curves : rows x grid
    name : of the column
    what : is predicted
    points : (x, y) of rows, or None

    Attributes after `plot`: `ax_`, `figure_`, `mean_`, `curves_`.
    """

    def __init__(self, grid: Any, curves: Any, name: str, what: str = "prediction", points: Any = None) -> None:
        self.grid, self.curves = np.asarray(grid, dtype=np.float64), np.asarray(curves, dtype=np.float64)
        self.name, self.what, self.points = name, what, points

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        column: int | str,
        *,
        y: Any = None,
        label: Any = None,
        grid_points: int = 200,
        ax: Any = None,
    ) -> DependenceDisplay:
        """Predict up to 50 rows of X with other values of one column, by place or name, and draw.

        label: the class whose probability is drawn; default the last one. y: targets, drawn as points with a model of
        one column.
        """
        check_is_fitted(model)
        if isinstance(X, Source):
            raise TypeError("DependenceDisplay needs rows in memory. Got a scan: give an array or a frame.")
        if not isinstance(grid_points, int | np.integer) or grid_points < 2:
            raise ValueError(f"grid_points must be a whole number >= 2. Got {grid_points!r}.")
        rows = X if hasattr(X, "iloc") else np.asarray(X)
        place, name = _column(rows, column)
        values = np.asarray(rows.iloc[:, place] if hasattr(rows, "iloc") else rows[:, place], dtype=np.float64)
        values = values[np.isfinite(values)]
        grid = np.linspace(values.min(), values.max(), int(grid_points))
        chosen = np.unique(np.linspace(0, len(rows) - 1, min(MOST_CURVES, len(rows))).astype(int))
        is_alone = rows.shape[1] == 1
        curves = np.array(
            [_along(model, rows, place, grid, int(i), label) for i in (chosen[:1] if is_alone else chosen)]
        )
        points = (values, np.asarray(y, dtype=np.float64)) if is_alone and y is not None else None
        what = f"probability of {visible(str(_label(model, label)))}" if hasattr(model, "classes_") else "prediction"
        return cls(grid, curves, name, what, points).plot(ax)

    def plot(self, ax: Any = None) -> DependenceDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "DependenceDisplay")
        if self.points is not None:
            ax.plot(*self.points, ".", color="0.6", ms=4, zorder=1)
        self.curves_ = ax.plot(self.grid, self.curves.T, color="C0", lw=0.6, alpha=0.35) if len(self.curves) > 1 else []
        label = "mean" if len(self.curves) > 1 else self.what
        self.mean_ = ax.plot(self.grid, self.curves.mean(axis=0), color="C3", lw=2, label=label)[0]
        ax.set(xlabel=visible(self.name), ylabel=self.what)
        if len(self.curves) > 1:
            ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _column(rows: Any, column: int | str) -> tuple[int, str]:
    names = (
        [str(name) for name in rows.columns] if hasattr(rows, "columns") else [f"x{j}" for j in range(rows.shape[1])]
    )
    place = names.index(column) if isinstance(column, str) and column in names else column
    if not isinstance(place, int | np.integer) or not 0 <= place < len(names):
        raise ValueError(f"column must be one of {', '.join(names[:10])}, or its place. Got {column!r}.")
    return int(place), names[int(place)]


def _label(model: Any, label: Any) -> Any:
    if label is None:
        return model.classes_[-1]
    if label not in list(model.classes_):
        raise ValueError(f"label must be one of the classes {list(model.classes_)[:10]}. Got {label!r}.")
    return label


def _along(model: Any, rows: Any, place: int, grid: Array, i: int, label: Any) -> Array:
    """Predictions for row i with the values of a grid in one column."""
    if hasattr(rows, "iloc"):
        changed = rows.iloc[[i] * len(grid)].reset_index(drop=True)
        changed[rows.columns[place]] = grid
    else:
        changed = np.repeat(rows[i : i + 1], len(grid), axis=0).astype(np.float64)
        changed[:, place] = grid
    if not hasattr(model, "classes_"):
        return np.asarray(model.predict(changed), dtype=np.float64)
    at = list(model.classes_).index(_label(model, label))
    return np.asarray(model.predict_proba(changed)[:, at], dtype=np.float64)


_ROOM = 0.03  # of the range of x, on both sides


@dataclass(frozen=True)
class FittedCurve:
    """Places along x, predictions there, and the two edges of each band (name -> (low, high))."""

    x: Array
    curve: Array
    bands: dict[str, tuple[Array, Array]]


def drawn_curve(model: Any, x: Array, level: float, n_points: int) -> FittedCurve:
    """The curve of a fitted model on the range of x."""
    room = _ROOM * (np.ptp(x) or 1.0)
    return curve_at(model, np.linspace(x.min() - room, x.max() + room, n_points), level)


def curve_at(model: Any, places: Array, level: float, rows: Any = None) -> FittedCurve:
    """The curve of a fitted model at places along x; one without intervals has no band. rows: the places with names."""
    rows = places[:, None] if rows is None else rows
    bands = {name: (ends[:, 0], ends[:, 1]) for name, ends in bands_of(model, rows, level).items()}
    return FittedCurve(places, np.asarray(model.predict(rows), dtype=np.float64), bands)


class FittedCurveDisplay:
    """Rows of one column, the fitted curve, and its bands: of the mean (narrow) and of a new row (wide).

    Parameters
    ----------
    curve : what `drawn_curve` prepared
    x, y : the rows to draw
    level : of the bands
    names : of the column and the target

    Attributes after `plot`: `ax_`, `figure_`, `line_`, `bands_`, `points_`.
    """

    def __init__(self, curve: FittedCurve, x: Any, y: Any, level: float, names: tuple[str, str] = ("x", "y")) -> None:
        self.curve, self.level, self.names = curve, level, names
        self.x, self.y = (np.asarray(part, dtype=np.float64) for part in (x, y))

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, *, level: float = 0.95, n_points: int = 200, label: str = "fit", ax: Any = None
    ) -> FittedCurveDisplay:
        """Draw a fitted model of one column. Models without intervals are drawn without a band."""
        x = np.asarray(X, dtype=np.float64).reshape(len(np.asarray(X)), -1)
        if x.shape[1] != 1:
            raise ValueError(f"A curve needs rows of one column. Got {x.shape[1]} columns.")
        name = str(X.columns[0]) if hasattr(X, "columns") else "x"
        target = str(getattr(y, "name", None) or "y")
        return cls(drawn_curve(model, x[:, 0], level, n_points), x[:, 0], y, level, (name, target)).plot(
            ax, label=label
        )

    def plot(self, ax: Any = None, *, label: str = "fit") -> FittedCurveDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "FittedCurveDisplay")
        self.points_ = ax.scatter(self.x, self.y, s=12, color="0.45", linewidth=0, zorder=2)
        (self.line_,) = ax.plot(self.curve.x, self.curve.curve, lw=1.8, zorder=3, label=label)
        self.bands_ = [
            ax.fill_between(
                self.curve.x, low, high, color=self.line_.get_color(), alpha=0.16, linewidth=0,
                label=f"{self.level:.0%} band, {name}",
            )
            for name, (low, high) in self.curve.bands.items()
        ]  # fmt: skip
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
