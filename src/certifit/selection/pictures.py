"""Pictures of cross-validation: which rows train and which validate, and learning and validation curves.

Curves are means over the splits in bands of one standard error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from certifit.data.columns import Array
from certifit.data.user_input import UserLabels, UserRows, UserTarget, n_samples
from certifit.evaluation.pictures import Band, new_axes
from certifit.evaluation.pictures.bias_variance import axis_places, is_geometric
from certifit.selection.compare.curves import LearningCurve, ValidationCurve, learning_curve, validation_curve

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


_WORST_R2 = -1.0  # what lies below is as good as no fit, and would flatten the rest of the picture
_MANY_SIZES = 1e3


class LearningCurveDisplay:
    """Scores against the number of training rows.

    Parameters
    ----------
    curve : what `learning_curve` returns

    Attributes after `plot`: `ax_`, `figure_`, `lines_` and `bands_` ("train", "validation").
    """

    def __init__(self, curve: LearningCurve) -> None:
        if not isinstance(curve, LearningCurve):
            raise TypeError(f"Pass the result of learning_curve(...). Got {type(curve).__name__}.")
        self.curve = curve

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, X: UserRows, y: UserTarget = None, *, ax: Axes | None = None, **options: Any
    ) -> LearningCurveDisplay:
        """Score and draw. options are those of `learning_curve`."""
        return cls(learning_curve(estimator, X, y, **options)).plot(ax)

    def plot(self, ax: Axes | None = None) -> LearningCurveDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "LearningCurveDisplay")
        self.lines_, self.bands_ = _draw(ax, self.curve.sizes, self.curve)
        if is_geometric(self.curve.sizes):
            ax.set_xscale("log")
        ax.set_xlabel("training rows")
        ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class ValidationCurveDisplay:
    """Scores against the values of a parameter, on a logarithmic axis where these go up by equal ratios.

    The best mean score is marked, and the simplest model within one standard error of it where that is known.

    Parameters
    ----------
    curve : what `validation_curve` returns

    Attributes after `plot`: `ax_`, `figure_`, `lines_` ("train", "validation", and "best", "one_standard_error" for
    the marks) and `bands_` ("train", "validation").
    """

    def __init__(self, curve: ValidationCurve) -> None:
        if not isinstance(curve, ValidationCurve):
            raise TypeError(f"Pass the result of validation_curve(...). Got {type(curve).__name__}.")
        self.curve = curve

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, X: UserRows, y: UserTarget = None, *, ax: Axes | None = None, **options: Any
    ) -> ValidationCurveDisplay:
        """Score and draw. options are those of `validation_curve`."""
        return cls(validation_curve(estimator, X, y, **options)).plot(ax)

    def plot(self, ax: Axes | None = None) -> ValidationCurveDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "ValidationCurveDisplay")
        places = axis_places(ax, self.curve.param_range)
        self.lines_, self.bands_ = _draw(ax, places, self.curve)
        self._mark(ax, places)
        ax.set_xlabel(self.curve.param_name)
        ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _mark(self, ax: Axes, places: Array) -> None:
        """A line at the best value, a dashed one at the simplest within one standard error."""
        best, simplest = self.curve.best_index, self.curve.one_standard_error_index
        named = [("best", best, "-", "best"), ("one_standard_error", simplest, "--", "within one standard error")]
        for name, at, style, words in named:
            if at is not None and (name == "best" or at != best):
                label = f"{words}: {_text(self.curve.param_range[at])}"
                self.lines_[name] = ax.axvline(places[at], linestyle=style, color="0.4", lw=1, zorder=0, label=label)


def _draw(ax: Axes, places: Array, curve: LearningCurve | ValidationCurve) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both curves with their bands. A negated error is drawn as the error that it is."""
    is_error = curve.score_name.startswith("neg_")
    sign = -1.0 if is_error else 1.0
    lines, bands = {}, {}
    parts = {
        "train": (curve.train_mean, curve.train_standard_error, "C1", "training rows"),
        "validation": (curve.validation_mean, curve.validation_standard_error, "C0", "validation rows"),
    }
    for name, (mean, error, colour, label) in parts.items():
        (lines[name],) = ax.plot(places, sign * mean, "o-", color=colour, markersize=4, label=label)
        if curve.n_splits > 1:
            band = Band.of(places, sign * mean, error)
            bands[name] = ax.fill_between(band.x, band.low, band.high, color=colour, alpha=0.2, lw=0)
    _fit_axis(ax, curve)
    words = curve.score_name.removeprefix("neg_").replace("_", " ")
    ax.set_ylabel(f"{words} (lower is better)" if is_error else words)
    n = curve.n_splits
    ax.set_title(f"mean of {n} splits ± one standard error" if n > 1 else "one split", fontsize="medium")
    return lines, bands


def _fit_axis(ax: Axes, curve: LearningCurve | ValidationCurve) -> None:
    """An axis that a few very bad scores do not flatten: R2 from -1 on, errors of many sizes on a logarithmic one."""
    scores = np.concatenate([curve.train_mean, curve.validation_mean])
    errors = -curve.validation_mean
    if curve.score_name.lower() == "r2" and (scores < _WORST_R2).any():
        beyond = int((scores < _WORST_R2).sum())
        ax.set_ylim(_WORST_R2, 1.05)
        words = f"{beyond} {'point' if beyond == 1 else 'points'} below"
        ax.text(0.99, 0.01, words, ha="right", va="bottom", transform=ax.transAxes, fontsize="small", color="0.4")
    elif curve.score_name.startswith("neg_") and errors.min() > 0 and errors.max() > _MANY_SIZES * errors.min():
        ax.set_yscale("log")
        ax.set_ylim(bottom=errors.min() / _MANY_SIZES)  # a fit through its training rows has an error of rounding


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
