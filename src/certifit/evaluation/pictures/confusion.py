"""The confusion matrix as a picture: counts, and the share of each true class."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.evaluation.metrics.confusion import ConfusionMatrix
from certifit.evaluation.pictures import new_axes

_ROOMY = 8  # classes; up to here a cell has room for its count and its share
_LEGIBLE = 20  # beyond it the cells have no room for text


def true_shares(counts: Any, rows: Any) -> Array:
    """Of the rows of each true class, the share that is predicted as each; 0 of a class without rows."""
    total = np.asarray(rows, dtype=np.float64)[:, None]
    return np.asarray(np.asarray(counts) / np.where(total == 0, 1, total))


class ConfusionMatrixDisplay:
    """Counts by truth (rows) and prediction (columns); the shade is the share of the true class.

    Parameters
    ----------
    confusion_matrix : ConfusionMatrix, or a square array of counts
    display_labels : names of the classes; None takes those of the matrix, or 0, 1, ...

    Attributes after `plot`: `ax_`, `figure_`, `im_`, `text_`.
    """

    def __init__(self, confusion_matrix: Any, *, display_labels: Any = None) -> None:
        if not isinstance(confusion_matrix, ConfusionMatrix):
            counts = np.asarray(confusion_matrix)
            if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or not counts.size:
                raise ValueError(f"A confusion matrix is square. Got shape {counts.shape}.")
            confusion_matrix = ConfusionMatrix(tuple(range(len(counts))), counts, counts.dtype.kind == "f")
        names = confusion_matrix.labels if display_labels is None else tuple(display_labels)
        if len(names) != len(confusion_matrix.labels):
            raise ValueError(f"{len(confusion_matrix.labels)} classes need as many display_labels. Got {len(names)}.")
        self.confusion_matrix = confusion_matrix
        self.display_labels = names

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        *,
        labels: Any = None,
        sample_weight: Any = None,
        display_labels: Any = None,
        ax: Any = None,
    ) -> ConfusionMatrixDisplay:
        """Count and draw."""
        matrix = ConfusionMatrix.of(y_true, y_pred, sample_weight, labels)
        return cls(matrix, display_labels=display_labels).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        labels: Any = None,
        sample_weight: Any = None,
        display_labels: Any = None,
        ax: Any = None,
    ) -> ConfusionMatrixDisplay:
        """Predict, count and draw."""
        return cls.from_predictions(
            y, estimator.predict(X), labels=labels, sample_weight=sample_weight, display_labels=display_labels, ax=ax
        )

    def plot(self, ax: Any = None, *, cmap: str = "Blues") -> ConfusionMatrixDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "ConfusionMatrixDisplay")
        counts = self.confusion_matrix.counts
        shares = true_shares(counts, counts.sum(axis=1))
        self.im_ = ax.imshow(shares, cmap=cmap, vmin=0.0, vmax=1.0)
        self.text_ = self._texts(ax, shares) if len(shares) <= _LEGIBLE else None
        ax.figure.colorbar(self.im_, ax=ax, label="share of the true class")
        ticks = np.arange(len(shares))
        ax.set(xticks=ticks, yticks=ticks, xlabel="predicted", ylabel="true")
        names = [str(name) for name in self.display_labels]
        slanted = len(names) > 6 or max(map(len, names)) > 8
        ax.set_xticklabels(names, rotation=45 if slanted else 0, ha="right" if slanted else "center")
        ax.set_yticklabels(names)
        error = self.confusion_matrix.error()
        ends = (
            ", no interval"
            if error.low is None
            else f", {100 * error.level:g} % interval {error.low:.1%} to {error.high:.1%}"
        )
        ax.set_title(f"{error:.1%} wrong{ends}", fontsize="medium")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _texts(self, ax: Any, shares: Any) -> Any:
        """The count of each cell, with few classes over its share; '-' where a true class has no rows."""
        counts, roomy = self.confusion_matrix.counts, len(shares) <= _ROOMY
        rows = counts.sum(axis=1)
        texts = np.empty(shares.shape, dtype=object)
        for (i, j), part in np.ndenumerate(shares):
            text = f"{counts[i, j]:.3g}" if self.confusion_matrix.weighted else f"{counts[i, j]:,}"
            if roomy:
                text += f"\n{part:.0%}" if rows[i] > 0 else "\n-"
            colour = "white" if part > 0.55 else "black"
            size = "medium" if roomy else "x-small"
            texts[i, j] = ax.text(j, i, text, ha="center", va="center", color=colour, fontsize=size)
        return texts
