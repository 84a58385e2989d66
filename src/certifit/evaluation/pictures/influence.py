"""Rows that pull a least squares fit: leverage against studentised residual."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.evaluation.pictures import new_axes, spread
from certifit.inference.least_squares import Convention
from certifit.models.adapter import sections_of
from certifit.models.least_squares.influence import Influence

_LEVELS = {0.5: ":", 1.0: "--"}  # Cook's distance -> line style
_MANY = 20_000  # points that are drawn as pixels


def cook_contour(leverage: Any, distance: float, n_coefficients: int, df_resid: float) -> Array:
    """The studentised residual of a row of this leverage and Cook's distance D; nan where no row has it.

    r^2 = D p (1 - h) / h,   t^2 = r^2 (df - 1) / (df - r^2)
    """
    h = np.asarray(leverage, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        square = distance * n_coefficients * (1 - h) / h
        t = np.sqrt(square * (df_resid - 1) / (df_resid - square))
    return np.where(square < df_resid, t, np.nan)


class InfluenceDisplay:
    """Studentised residual against leverage, with contours of Cook's distance 0.5 and 1, the worst rows by number.

    Parameters
    ----------
    influence : what `model.influence(X, y)` returns
    n_coefficients : number of coefficients that the data determine, the intercept included
    df_resid : residual degrees of freedom

    Attributes after `plot`: `ax_`, `figure_`, `points_`, `contours_` (by level), `texts_`, `n_hidden_` (rows without a
    finite number, such as those of leverage 1).
    """

    def __init__(self, influence: Influence, n_coefficients: int, df_resid: float) -> None:
        if not isinstance(influence, Influence):
            raise TypeError(f"Pass what model.influence(X, y) returns. Got {type(influence).__name__}.")
        self.influence = influence
        self.n_coefficients = int(n_coefficients)
        self.df_resid = float(df_resid)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        weights: Convention = "frequency",
        labelled: int = 5,
        ax: Any = None,
    ) -> InfluenceDisplay:
        """Draw the rows that a LinearRegression was fitted to."""
        if "influence" not in sections_of(estimator):
            raise TypeError(f"Influence needs a fitted LinearRegression. Got {estimator!r}.")
        influence = estimator.influence(X, y, sample_weight, weights=weights)
        p = int(estimator.certificate_.rank) + int(estimator.fit_intercept)
        mass = float(estimator.data_["sum_weight"])
        n_obs = mass if weights == "frequency" else int(np.isfinite(influence.leverage).sum())
        return cls(influence, p, n_obs - p).plot(ax, labelled=labelled)

    def plot(self, ax: Any = None, *, labelled: int = 5) -> InfluenceDisplay:
        """Draw on `ax`, or on a new figure. labelled: how many rows get their number, the largest distances first."""
        ax = new_axes(ax, "InfluenceDisplay")
        rows = self.influence
        is_shown = np.isfinite(rows.studentised) & np.isfinite(rows.leverage)
        self.n_hidden_ = int(len(rows) - is_shown.sum())
        h, t = rows.leverage[is_shown], rows.studentised[is_shown]
        self.points_ = ax.scatter(
            h, t, s=14, color="C0", alpha=0.6, lw=0, zorder=2, rasterized=len(h) > _MANY, label=f"{len(h):,} rows"
        )
        right, top = 1.08 * float(h.max(initial=1e-3)), 1.15 * float(np.abs(t).max(initial=3.0))
        ax.axhline(0.0, color="0.6", lw=0.8)
        ax.set(xlim=(0.0, min(right, 1.0)), ylim=(-top, top))
        self.contours_ = {level: self._contour(ax, level, min(right, 1.0)) for level in _LEVELS}
        self._number(ax, labelled)
        hidden = f" ({self.n_hidden_:,} rows have no such number)" if self.n_hidden_ else ""
        ax.set(xlabel=f"leverage{hidden}", ylabel="studentised residual")
        ax.legend(fontsize="small", loc="best")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def residual_at(self, leverage: Any, distance: float) -> Any:
        """`cook_contour` of this fit."""
        return cook_contour(leverage, distance, self.n_coefficients, self.df_resid)

    def _contour(self, ax: Any, level: float, right: float) -> Any:
        h = np.linspace(right / 400, right, 400)
        t = self.residual_at(h, level)
        is_seen = bool((t < ax.get_ylim()[1]).any())  # nan is not
        where = "" if is_seen else " lies beyond"
        (line,) = ax.plot(h, t, _LEVELS[level], color="C3", lw=1, label=f"Cook's distance {level:g}{where}")
        ax.plot(h, -t, _LEVELS[level], color="C3", lw=1)
        return line

    def _number(self, ax: Any, labelled: int) -> None:
        """Numbers of the rows of largest Cook's distance."""
        self.texts_ = []
        if labelled < 1:
            return
        worst = self.influence.most(labelled)
        is_shown = np.isfinite(worst.leverage) & np.isfinite(worst.studentised)
        rows, places, heights = (part[is_shown] for part in (worst.row, worst.leverage, worst.studentised))
        apart = 0.045 * (ax.get_ylim()[1] - ax.get_ylim()[0])
        for row, place, height in zip(rows, places, spread(heights, apart), strict=True):
            look = {"xytext": (5, 0), "textcoords": "offset points", "fontsize": "small", "va": "center"}
            self.texts_.append(ax.annotate(f"{row}", (place, height), **look))
