"""Pictures of ROC and precision-recall curves, with their intervals.

The legend names the area and its interval. The band is pointwise: Clopper-Pearson's interval of the true positive rate
(of the precision) at each threshold, one at a time, for rows without weights. It is no band for the whole curve.
Of scores from folds the ROC curve is the mean of the folds' curves, weighted by their pairs: its area is the AUC of the
legend, and it has no band. What is drawn, by Matplotlib here and as SVG in the report: `drawn_roc`, `drawn_precision`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.evaluation.metrics.intervals import Estimate, clopper_pearson
from certifit.evaluation.metrics.ranking import (
    average_precision_score,
    fold_roc,
    kept_folds,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)
from certifit.evaluation.metrics.rows import plain_one, scored_rows
from certifit.evaluation.pictures import new_axes
from certifit.models.adapter import answer_of
from certifit.models.learner import Answer

_BAND_POINTS = 200

Band = tuple[Array, Array, Array]  # x, low and high end of y
Line = tuple[Array, Array]  # x and y of the points of a line


def drawn_roc(fpr: Array, tpr: Array, most: int | None = None) -> Line:
    """The line from (0, 0) to (1, 1). most: how many of its points are kept, evenly along its length; None is all."""
    return _thinned(fpr, tpr, most)


def drawn_precision(precision: Array, recall: Array, most: int | None = None) -> Line:
    """Recall and precision as steps, whose area is the average precision. most: points of the curve that are kept.

    A step reaches from the recall of one threshold to that of the next at the precision of the latter. The point at
    recall 0 that a precision-recall curve ends with is a convention and belongs to no threshold: it is left out.
    """
    is_threshold = recall > 0
    x, y = _thinned(recall[is_threshold][::-1], precision[is_threshold][::-1], most)
    return np.append(0.0, np.repeat(x, 2)[:-1]), np.repeat(y, 2)


def _thinned(x: Array, y: Array, most: int | None) -> Line:
    """Both ends of a line, and `most` points evenly along its length where there are more."""
    if most is None or len(x) <= most:
        return x, y
    length = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))])
    evenly = np.searchsorted(length, np.linspace(0.0, length[-1], most))
    kept = np.unique(np.concatenate([[0], evenly, [len(x) - 1]]))
    return x[kept], y[kept]


class _OfEstimator:
    """A curve of a fitted classifier."""

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, pos_label: Any = None, name: str | None = None, **options: Any
    ) -> Self:
        """The curve of a fitted classifier: predict_proba where it has one, else decision_function."""
        scores, positive = _response(estimator, X, pos_label)
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(y, scores, pos_label=positive, name=name, **options)

    @classmethod
    @abstractmethod
    def from_predictions(cls, y_true: Any, y_score: Any, **options: Any) -> Self:
        """The curve of given scores."""


@dataclass
class RocCurveDisplay(_OfEstimator):
    """True positive rate against false positive rate.

    fpr, tpr: points of the curve; roc_auc: the area with its interval; band: (fpr, low, high) of tpr at some points, or
    None. After `plot` also line_, ax_ and figure_.
    """

    fpr: Array
    tpr: Array
    roc_auc: Estimate | None = None
    name: str | None = None
    pos_label: Any = None
    band: Band | None = None
    line_: Any = field(default=None, init=False, repr=False)
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    def plot(self, ax: Any = None, *, name: str | None = None, plot_chance_level: bool = True, **line: Any) -> Self:
        """Draw into ax, or into a new figure. `line` goes to ax.plot."""
        self.ax_ = new_axes(ax, type(self).__name__)
        self.figure_ = self.ax_.figure
        label = _label(name or self.name, "AUC", self.roc_auc)
        (self.line_,) = self.ax_.plot(*drawn_roc(self.fpr, self.tpr), **({"label": label} | line))
        _draw_band(self.ax_, self.line_, self.band, self.roc_auc, step=None)
        if plot_chance_level:
            self.ax_.plot([0, 1], [0, 1], linestyle="--", color="grey", linewidth=1, label="Chance (AUC = 0.5)")
        _finish(self.ax_, "False positive rate", "True positive rate", self.pos_label, "lower right")
        return self

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_score: Any,
        *,
        sample_weight: Any = None,
        pos_label: Any = None,
        drop_intermediate: bool = True,
        level: float = 0.95,
        interval: Literal["delong", "bootstrap"] | None = "delong",
        folds: Any = None,
        name: str | None = None,
        ax: Any = None,
        **line: Any,
    ) -> Self:
        """The curve of given scores. `interval` and `folds` as in `roc_auc_score`; `line` goes to `plot`."""
        rows = scored_rows(y_true, y_score, sample_weight, pos_label, plain_one)
        scored: dict[str, Any] = {"y_true": rows.labels, "y_score": rows.scores, "sample_weight": rows.weight}
        if folds is not None:
            row_folds = kept_folds(folds, sample_weight)
            area = roc_auc_score(**scored, folds=row_folds, level=level, interval=interval)
            return cls(*fold_roc(rows, row_folds), area, name, rows.pos_label).plot(ax, **line)
        fpr, tpr, _ = roc_curve(**scored, drop_intermediate=drop_intermediate)
        area = roc_auc_score(**scored, level=level, interval=interval)
        positives = np.full(len(tpr), rows.n_positives)
        band = None if rows.weight is not None else _band(fpr, np.rint(tpr * positives), positives, level)
        return cls(fpr, tpr, area, name, rows.pos_label, band).plot(ax, **line)


@dataclass
class PrecisionRecallDisplay(_OfEstimator):
    """Precision against recall, in steps.

    precision, recall: points of the curve; average_precision: the area of the steps; prevalence: the share of
    positives, which is the precision of chance; band: (recall, low, high) of precision at some points, or None.
    After `plot` also line_, ax_ and figure_.
    """

    precision: Array
    recall: Array
    average_precision: Estimate | None = None
    name: str | None = None
    pos_label: Any = None
    prevalence: float | None = None
    band: Band | None = None
    line_: Any = field(default=None, init=False, repr=False)
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    def plot(self, ax: Any = None, *, name: str | None = None, plot_chance_level: bool = True, **line: Any) -> Self:
        """Draw into ax, or into a new figure. `line` goes to ax.plot."""
        self.ax_ = new_axes(ax, type(self).__name__)
        self.figure_ = self.ax_.figure
        label = _label(name or self.name, "AP", self.average_precision)
        (self.line_,) = self.ax_.plot(*drawn_precision(self.precision, self.recall), **({"label": label} | line))
        _draw_band(self.ax_, self.line_, self.band, self.average_precision, step="post")
        if plot_chance_level and self.prevalence is not None:
            chance = f"Chance (AP = {self.prevalence:.3g})"
            self.ax_.plot([0, 1], [self.prevalence] * 2, linestyle="--", color="grey", linewidth=1, label=chance)
        _finish(self.ax_, "Recall", "Precision", self.pos_label, "best")
        return self

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_score: Any,
        *,
        sample_weight: Any = None,
        pos_label: Any = None,
        drop_intermediate: bool = False,
        level: float = 0.95,
        interval: Literal["bootstrap"] | None = None,
        name: str | None = None,
        ax: Any = None,
        **line: Any,
    ) -> Self:
        """The curve of given scores. `interval` as in `average_precision_score`; `line` goes to `plot`."""
        rows = scored_rows(y_true, y_score, sample_weight, pos_label, plain_one)
        scored: dict[str, Any] = {"y_true": rows.labels, "y_score": rows.scores, "sample_weight": rows.weight}
        precision, recall, _ = precision_recall_curve(**scored, drop_intermediate=drop_intermediate)
        area = average_precision_score(**scored, level=level, interval=interval)
        prevalence = float(np.average(rows.labels, weights=rows.weight))
        band = None
        if rows.weight is None:
            hit = recall > 0  # elsewhere the number of rows called positive is unknown, and may be 0
            true_positives = np.rint(recall[hit] * rows.n_positives)
            band = _band(recall[hit], true_positives, np.rint(true_positives / precision[hit]), level)
        return cls(precision, recall, area, name, rows.pos_label, prevalence, band).plot(ax, **line)


def _response(estimator: Any, X: Any, pos_label: Any) -> tuple[Array, Any]:
    """Scores that grow with the positive class, and that class."""
    check_is_fitted(estimator)
    has_margins = hasattr(estimator, "decision_function")
    is_likely = answer_of(estimator) is Answer.CLASSES
    method = "predict_proba" if is_likely else "decision_function" if has_margins else None
    classes = np.asarray(getattr(estimator, "classes_", [])).tolist()
    if method is None or len(classes) != 2:
        what = f"{len(classes)} classes and {'no such method' if method is None else method}"
        raise ValueError(
            f"A curve needs a classifier of two classes with predict_proba or decision_function. "
            f"{type(estimator).__name__} has {what}. Use from_predictions with scores of your own."
        )
    positive = classes[1] if pos_label is None else pos_label
    if positive not in classes:
        raise ValueError(
            f"pos_label must be {classes[0]!r} or {classes[1]!r}, the classes of the fit. Got {positive!r}."
        )
    place = classes.index(positive)
    scores = np.asarray(getattr(estimator, method)(X))
    if scores.ndim == 2:
        return scores[:, place], positive
    return (scores if place == 1 else -scores), positive


def _band(x: Array, hits: Array, rows: Array, level: float) -> Band:
    """Clopper-Pearson ends of hits / rows, at evenly spaced points of the curve."""
    chosen = np.unique(np.linspace(0, len(x) - 1, min(len(x), _BAND_POINTS)).round().astype(int))
    low, high = clopper_pearson(hits[chosen], rows[chosen], level)
    return x[chosen], low, high


def _draw_band(ax: Any, line: Any, band: Band | None, area: Estimate | None, step: Any) -> None:
    if band is not None:
        level = 0.95 if area is None else area.level
        label = f"{100 * level:g} % at each threshold"
        ax.fill_between(*band, step=step, color=line.get_color(), alpha=0.15, linewidth=0, label=label)


def _label(name: str | None, measure: str, area: Estimate | None) -> str | None:
    """'LogisticRegression: AUC = 0.910', and '95 % DeLong 0.882 to 0.931' in a second line."""
    if area is None:
        return name
    words = f"{measure} = {area:.3f}"
    if area.low is not None:
        words += f"\n{100 * area.level:g} % {area.method} {area.low:.3f} to {area.high:.3f}"
    return f"{name}: {words}" if name else words


def _finish(ax: Any, x: str, y: str, pos_label: Any, place: str) -> None:
    positive = "" if pos_label is None else f" (positive: {pos_label})"
    ax.set(xlabel=x + positive, ylabel=y + positive, xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
    ax.legend(loc=place, fontsize="small")
