"""Calibration as a picture: observed shares with their intervals against the diagonal, and where the rows lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.evaluation.metrics.probabilities import Calibration, Strategy, calibration
from certifit.evaluation.pictures import new_axes

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
