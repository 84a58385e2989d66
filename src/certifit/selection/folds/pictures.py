"""Folds as a picture: which rows train and which validate, split by split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from certifit.data.columns import Array
from certifit.data.user_input import UserLabels, UserRows, UserTarget, n_samples
from certifit.evaluation.pictures import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def drawn_folds(splitter: Any, X: UserRows, y: UserTarget = None, groups: UserLabels = None) -> Array:
    """Per split and row: how often it trains (repeated draws count), or -1 where it validates."""
    n = n_samples(X)
    splits = list(splitter.split(X, y) if groups is None else splitter.split(X, y, groups))
    times = np.zeros((len(splits), n), dtype=np.int64)
    for k, (training, validation) in enumerate(splits):
        np.add.at(times[k], training, 1)
        times[k, validation] = -1
    return times


class FoldsDisplay:
    """A line per split, a cell per row of the data: training (darker where drawn more than once), validation, neither.

    Parameters
    ----------
    times : of shape (splits, rows): times in training, -1 for validation
    labels : the class of every row, drawn below; None draws none

    Attributes after `plot`: `ax_`, `figure_`, `cells_`, `classes_image_`.
    """

    def __init__(self, times: ArrayLike, labels: UserTarget = None) -> None:
        self.times = np.asarray(times)
        self.labels = None if labels is None else np.unique(np.asarray(labels), return_inverse=True)[1]

    @classmethod
    def from_splitter(
        cls,
        splitter: Any,
        X: UserRows,
        y: UserTarget = None,
        *,
        groups: UserLabels = None,
        show_classes: bool = False,
        ax: Axes | None = None,
    ) -> FoldsDisplay:
        """Draw the splits that `Folds`, `HoldOut`, `Bootstrap` or a splitter of scikit-learn makes of these rows."""
        if show_classes and y is None:
            raise ValueError("show_classes needs y, the class of every row. Got y=None.")
        return cls(drawn_folds(splitter, X, y, groups), y if show_classes else None).plot(ax)

    def plot(self, ax: Axes | None = None) -> FoldsDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "FoldsDisplay")
        from matplotlib.colors import BoundaryNorm, ListedColormap
        from matplotlib.patches import Patch
        from matplotlib.ticker import MaxNLocator

        colours = ["C1", "0.95", "#bcd4ea", "#7fb0d8", "#2f6ea5"]
        norm = BoundaryNorm([-1.5, -0.5, 0.5, 1.5, 2.5, 1e9], 5)
        n_splits = len(self.times)
        self.cells_ = ax.imshow(
            self.times, cmap=ListedColormap(colours), norm=norm, aspect="auto", interpolation="nearest"
        )
        self.classes_image_ = None
        if self.labels is not None:
            extent = (-0.5, len(self.labels) - 0.5, n_splits + 0.9, n_splits - 0.1)
            self.classes_image_ = ax.imshow(
                self.labels[None], cmap="tab10", vmin=0, vmax=9, aspect="auto", extent=extent
            )
            ax.set(ylim=(n_splits + 0.9, -0.5))
        words = [("C1", "validation"), ("#bcd4ea", "training")]
        words += [("#2f6ea5", "training, drawn more than once")] if (self.times > 1).any() else []
        words += [("0.95", "neither")] if (self.times == 0).any() else []
        handles = [Patch(facecolor=colour, edgecolor="0.6", label=word) for colour, word in words]
        ax.legend(handles=handles, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(words))
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set(xlabel="row" if self.labels is None else "row (below: its class)", ylabel="split")
        self.ax_, self.figure_ = ax, ax.figure
        return self
