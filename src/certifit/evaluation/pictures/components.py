"""Principal components in pictures: how much each explains, a plane of rows and columns, rows and their projections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.evaluation.pictures import new_axes
from certifit.models.adapter import learner_of

_MOST_POINTS = 5000  # rows drawn; more are thinned evenly
_LONGEST_NAME = 18  # letters; a longer one is cut
_APART = 0.045  # least distance of two names, of the height of the axes


class ScreeDisplay:
    """The share of the variance that each component explains, as bars, and the sum up to it, as a line.

    Parameters
    ----------
    variances : of the components, the largest first; those dropped after those kept
    total : the variance of all
    n_kept : how many are kept; None is all
    share : a share that was asked for, drawn as a level

    Attributes after `plot`: `ax_`, `figure_`, `bars_`, `line_`.
    """

    def __init__(self, variances: Any, total: float, n_kept: int | None = None, share: float | None = None) -> None:
        self.variances = np.asarray(variances, dtype=np.float64)
        if self.variances.ndim != 1 or not len(self.variances):
            raise ValueError(f"variances must be a list of numbers. Got shape {self.variances.shape}.")
        self.total = float(total)
        self.n_kept = len(self.variances) if n_kept is None else int(n_kept)
        self.share = share

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, max_components: int = 30) -> ScreeDisplay:
        """The picture of a fitted PCA."""
        check_is_fitted(estimator)
        wanted = estimator.n_components
        is_share = wanted is not None and not isinstance(wanted, Integral | str)
        display = cls(
            estimator.spectrum_ if learner_of(estimator).is_ours else estimator.explained_variance_,
            float(estimator.explained_variance_[0] / estimator.explained_variance_ratio_[0])
            if estimator.explained_variance_[0] > 0
            else 0.0,
            int(estimator.n_components_),
            float(wanted) if is_share else None,
        )
        return display.plot(ax, max_components=max_components)

    def plot(self, ax: Any = None, *, max_components: int = 30) -> ScreeDisplay:
        """Draw the first `max_components` on `ax`, or on a new figure."""
        if not isinstance(max_components, Integral) or max_components < 1:
            raise ValueError(f"max_components must be an integer >= 1. Got {max_components!r}.")
        ax = new_axes(ax, "ScreeDisplay")
        shown = min(len(self.variances), int(max_components))
        shares = 100 * self.variances[:shown] / (self.total or 1.0)
        places = np.arange(1, shown + 1)
        kept = places <= self.n_kept
        self.bars_ = ax.bar(places, shares, color=np.where(kept, "C0", "0.8"), width=0.8)
        sums = np.cumsum(shares)
        (self.line_,) = ax.plot(places, sums, "o-", color="black", lw=1.2, markersize=3.5, label="sum up to here")
        self._mark(ax, shown)
        more = self._left_out(shown)
        ax.set(xlabel="component" + more, ylabel="share of the variance (%)", ylim=(0, 105), xlim=(0.3, shown + 0.7))
        step = max(1, -(-shown // 15))
        ax.set_xticks(places[::step])
        ax.legend(loc="center right", fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _mark(self, ax: Any, shown: int) -> None:
        """Labels of kept and dropped bars, and the share asked for."""
        explained = 100 * float(self.variances[: self.n_kept].sum()) / (self.total or 1.0)
        ax.bar([np.nan], [np.nan], color="C0", label=f"{self.n_kept} kept: {explained:.4g} %")
        if self.n_kept < shown:
            ax.bar([np.nan], [np.nan], color="0.8", label=f"dropped: {100 - explained:.3g} %")
            ax.axvline(self.n_kept + 0.5, color="0.4", ls=":", lw=1)
        if self.share is not None:
            ax.axhline(100 * self.share, color="C3", ls="--", lw=1, label=f"asked: {100 * self.share:.4g} %")

    def _left_out(self, shown: int) -> str:
        if shown >= len(self.variances):
            return ""
        return f" (the first {shown} of {len(self.variances)})"


class BiplotDisplay:
    """Rows as points in the plane of two components, columns as arrows from the centre.

    An arrow is the column's loading, direction times standard deviation of the component; all are stretched alike to
    fill the picture. Columns whose arrows point the same way rise together.

    Parameters
    ----------
    scores : (n, 2) places of the rows
    loadings : (d, 2) of the columns
    names : of the columns
    labels : of the axes
    groups : one value per row, drawn in colours; None is one colour

    Attributes after `plot`: `ax_`, `figure_`, `points_`, `arrows_` (by name), `texts_` (by name).
    """

    def __init__(
        self,
        scores: Any,
        loadings: Any,
        names: Sequence[str],
        labels: tuple[str, str] = ("component 1", "component 2"),
        groups: Any = None,
    ) -> None:
        self.scores, self.loadings = np.asarray(scores, dtype=float), np.asarray(loadings, dtype=float)
        for name, values in (("scores", self.scores), ("loadings", self.loadings)):
            if values.ndim != 2 or values.shape[1] != 2:
                raise ValueError(f"{name} must have two columns. Got shape {values.shape}.")
        if len(names) != len(self.loadings):
            raise ValueError(f"names must have {len(self.loadings)} entries, one per column. Got {len(names)}.")
        self.names, self.labels = [str(name) for name in names], labels
        self.groups = None if groups is None else np.asarray(groups)
        if self.groups is not None and self.groups.shape != (len(self.scores),):
            raise ValueError(f"groups must have {len(self.scores)} entries, one per row. Got {self.groups.shape}.")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        components: tuple[int, int] = (0, 1),
        groups: Any = None,
        ax: Any = None,
        max_arrows: int = 12,
    ) -> BiplotDisplay:
        """The rows X scored by a fitted PCA, and its columns. components: two places, from 0."""
        check_is_fitted(estimator)
        at = [int(c) for c in components]
        k = len(estimator.components_)
        if len(at) != 2 or at[0] == at[1] or not all(0 <= c < k for c in at):
            raise ValueError(f"components must be two different places in 0 .. {k - 1}. Got {components!r}.")
        scores = np.asarray(estimator.transform(X), dtype=float)[:, at]
        loadings = (estimator.components_[at] * np.sqrt(estimator.explained_variance_[at])[:, None]).T
        shares = 100 * estimator.explained_variance_ratio_[at]
        labels = [f"component {c + 1} ({share:.3g} % of the variance)" for c, share in zip(at, shares, strict=True)]
        is_ours = learner_of(estimator).is_ours
        names = estimator.column_names_ if is_ours else [f"x{j}" for j in range(len(loadings))]
        return cls(scores, loadings, names, (labels[0], labels[1]), groups).plot(ax, max_arrows=max_arrows)

    def plot(self, ax: Any = None, *, max_arrows: int = 12) -> BiplotDisplay:
        """Draw on `ax`, or on a new figure; of the columns the `max_arrows` with the longest arrows."""
        if not isinstance(max_arrows, Integral) or max_arrows < 0:
            raise ValueError(f"max_arrows must be an integer >= 0. Got {max_arrows!r}.")
        ax = new_axes(ax, "BiplotDisplay")
        self.points_ = self._draw_points(ax)
        ax.axhline(0, color="0.8", lw=0.8, zorder=0)
        ax.axvline(0, color="0.8", lw=0.8, zorder=0)
        self.arrows_, self.texts_ = self._draw_arrows(ax, int(max_arrows))
        ax.set(xlabel=self.labels[0], ylabel=self.labels[1])
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_points(self, ax: Any) -> list[Any]:
        step = -(-len(self.scores) // _MOST_POINTS) or 1
        scores = self.scores[::step]
        style: dict[str, Any] = {"s": 10, "alpha": 0.5, "linewidths": 0, "zorder": 1}
        if self.groups is None:
            return [ax.scatter(*scores.T, color="0.55", **style)]
        groups, drawn = self.groups[::step], []
        for i, value in enumerate(np.unique(groups)):
            group_scores = scores[groups == value]
            drawn.append(ax.scatter(*group_scores.T, color=f"C{i % 10}", label=str(value), **style))
        ax.legend(fontsize="small", markerscale=1.8)
        return drawn

    def _draw_arrows(self, ax: Any, most: int) -> tuple[dict[str, Any], dict[str, Any]]:
        lengths = np.linalg.norm(self.loadings, axis=1)
        chosen = np.argsort(-lengths, kind="stable")[:most]
        chosen = chosen[lengths[chosen] > 0]
        if not len(chosen):
            return {}, {}
        reach = np.abs(self.scores).max(axis=0, initial=0.0)
        longest = np.abs(self.loadings[chosen]).max(axis=0)
        ratios = [float(a / b) for a, b in zip(reach, longest, strict=True) if a > 0 and b > 0]
        ends = self.loadings[chosen] * (0.85 * min(ratios, default=1.0))
        limits = np.maximum(reach, np.abs(ends).max(axis=0)) * 1.3
        limits = np.where(limits > 0, limits, 1.0)
        ax.set(xlim=(-limits[0], limits[0]), ylim=(-limits[1], limits[1]))
        heights = _spaced(ends, 2 * _APART * float(limits[1]))
        arrows, texts = {}, {}
        for j, end, height in zip(chosen, ends, heights, strict=True):
            name, side = self.names[j], "left" if end[0] >= 0 else "right"
            arrow = {"arrowstyle": "-|>", "color": "C3", "lw": 1.3, "shrinkA": 0, "shrinkB": 0}
            arrows[name] = ax.annotate("", xy=end, xytext=(0, 0), arrowprops=arrow, zorder=3)
            place = (end[0] + 0.02 * limits[0] * (1 if side == "left" else -1), height)
            texts[name] = ax.text(
                *place, _short(name), color="C3", ha=side, va="center", fontsize="small", zorder=4,
                bbox={"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 0.5},
            )  # fmt: skip
        return arrows, texts


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _spaced(ends: Array, apart: float) -> Array:
    """Heights of names at the ends of arrows, those of a side pushed upward until they are `apart`."""
    heights = ends[:, 1] * 1.04
    for side in (ends[:, 0] >= 0, ends[:, 0] < 0):
        order = np.flatnonzero(side)[np.argsort(heights[side], kind="stable")]
        middle = float(heights[order].mean()) if len(order) else 0.0
        for below, above in pairwise(order):
            heights[above] = max(heights[above], heights[below] + apart)
        if len(order):
            heights[order] -= max(float(heights[order].mean()) - middle, 0.0)
    return np.asarray(heights)


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
