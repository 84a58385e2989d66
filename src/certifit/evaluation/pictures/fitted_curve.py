"""A fitted curve in one variable: the rows, the predictions, and a band where the model has one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.evaluation.pictures import new_axes
from certifit.models.adapter import bands_of

_ROOM = 0.03  # of the range of x, on both sides


@dataclass(frozen=True)
class FittedCurve:
    """Places along x, predictions there, and the two edges of each band (name -> (low, high))."""

    x: Array
    curve: Array
    bands: dict[str, tuple[Array, Array]]


def drawn_curve(model: Any, x: Array, level: float, n_points: int) -> FittedCurve:
    """The curve of a fitted model on the range of x. A model without intervals has no band."""
    room = _ROOM * (np.ptp(x) or 1.0)
    places = np.linspace(x.min() - room, x.max() + room, n_points)
    rows = places[:, None]
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
