"""Predicted classes as pictures: the confusion matrix, and calibration.

Confusion: counts, and the share of each true class. Calibration: observed shares with their intervals against the
diagonal, and where the rows lie.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.evaluation.metrics.confusion import ConfusionMatrix
from certifit.evaluation.metrics.probabilities import Calibration, Strategy, calibration
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


_STRIP = 0.12  # height of the strip of counts, as a share of the axes
_THINNEST = 0.005  # width of a bin of one value


def drawn_bins(calibration: Calibration) -> list[dict[str, float]]:
    """The bins that hold rows: count, predicted, observed, low and high; no interval is nan."""
    names = {
        "count": "count",
        "predicted": "mean_prediction",
        "observed": "observed_share",
        "low": "low",
        "high": "high",
    }
    return [{key: row[name] for key, name in names.items()} for row in calibration.table() if row["count"] > 0]


class CalibrationDisplay:
    """Observed share against mean prediction by bin, with Clopper-Pearson bars; bins without rows are hatched.

    Parameters
    ----------
    calibration : result of `calibration`
    name : what the legend calls the model

    Attributes after `plot`: `ax_`, `figure_`, `line_` (the points and their bars), `bars_` (the counts).
    """

    def __init__(self, calibration: Calibration, *, name: str | None = None) -> None:
        if not isinstance(calibration, Calibration):
            raise TypeError(f"Pass the result of calibration(y, p). Got {type(calibration).__name__}.")
        self.calibration = calibration
        self.name = name

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        bins: Any = 10,
        strategy: Strategy = "quantile",
        level: float = 0.95,
        sample_weight: Any = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
    ) -> CalibrationDisplay:
        """Sum by bins and draw."""
        result = calibration(y_true, y_prob, bins, strategy, level, sample_weight=sample_weight, pos_label=pos_label)
        return cls(result, name=name).plot(ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, pos_label: Any = None, name: str | None = None, **options: Any
    ) -> CalibrationDisplay:
        """Predict probabilities, sum by bins and draw; `pos_label` is the second class by default."""
        label = type(estimator).__name__
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(f"{label} has no predict_proba, so there is nothing to calibrate.")
        classes = list(estimator.classes_)
        if len(classes) != 2:
            raise ValueError(f"Calibration is drawn for two classes. {label} has {len(classes)}.")
        positive = classes[1] if pos_label is None else pos_label
        if positive not in classes:
            raise ValueError(f"pos_label={pos_label!r} is not one of the classes {classes}.")
        p = estimator.predict_proba(X)[:, classes.index(positive)]
        return cls.from_predictions(y, p, pos_label=positive, name=name or label, **options)

    def plot(self, ax: Any = None) -> CalibrationDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "CalibrationDisplay")
        result = self.calibration
        bins = drawn_bins(result)
        x, y, low, high = (np.array([row[key] for row in bins]) for key in ("predicted", "observed", "low", "high"))
        ax.plot([0, 1], [0, 1], ":", color="0.4", label="perfectly calibrated")
        label = f"{self.name or 'model'} (expected calibration error {result.expected_calibration_error:.3g})"
        bars = None
        if result.interval is not None:
            bars = np.maximum([y - low, high - y], 0.0)
            label += f"\n{100 * result.level:g} % interval of each bin"
        self.line_ = ax.errorbar(x, y, yerr=bars, fmt="o", markersize=4, capsize=3, color="C0", label=label)
        self._draw_counts(ax)
        ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="mean predicted probability", ylabel="observed share")
        ax.legend(loc="upper left", fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_counts(self, ax: Any) -> None:
        """Bars along the bottom, as high as the bin's rows; empty bins hatched from top to bottom."""
        result = self.calibration
        widths = np.maximum(np.diff(result.edges), _THINNEST)
        height = _STRIP * result.count / result.count.max()
        noun = "weight" if result.weighted else "rows"
        self.bars_ = ax.bar(
            result.edges[:-1], height, widths, align="edge", color="0.85", edgecolor="white", zorder=0,
            label=f"{noun} in each bin (most: {result.count.max():,.6g})",
        )  # fmt: skip
        empty = np.flatnonzero(result.count == 0)
        for place, i in enumerate(empty):
            word = f"no rows ({len(empty)} of {len(widths)} bins)" if place == 0 else None
            ax.axvspan(result.edges[i], result.edges[i + 1], fill=False, hatch="//", edgecolor="0.8", lw=0, label=word)
