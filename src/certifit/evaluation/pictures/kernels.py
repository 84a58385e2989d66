"""Models of kernels: how alike rows are, fits of several widths, directions in feature space, error over two grids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.evaluation.pictures import new_axes, visible
from certifit.mathematics.kernels import Gaussian, Kernel
from certifit.models.adapter import sections_of

MOST_GROUPS = 40
LEAST_ROWS = 5  # of a group, so that no picture shows single rows
MOST_ROWS = 2000  # whose kernel is evaluated
MOST_CLASSES = 10
WIDTHS = (0.25, 1.0, 4.0)  # times the width "scale"


@dataclass(frozen=True)
class OrderedGram:
    """Means of k(x, z) over the rows x of one group and z of another. levels: the mean answer of every group."""

    means: Array
    levels: Array


def ordered_gram(kernel: Kernel, points: Array, answers: Array) -> OrderedGram:
    """Rows in the order of their answers, in groups of 5 or more; of very many rows every second one and so on."""
    order = np.argsort(answers, kind="stable")
    order = order[:: max(1, -(-len(order) // MOST_ROWS))]
    n_groups = max(1, min(MOST_GROUPS, len(order) // LEAST_ROWS))
    sizes = np.array([len(group) for group in np.array_split(order, n_groups)])
    begins = np.cumsum(sizes) - sizes
    matrix = kernel.matrix(np.ascontiguousarray(points[order]))
    sums = np.add.reduceat(np.add.reduceat(matrix, begins, axis=0), begins, axis=1)
    levels = np.add.reduceat(answers[order].astype(np.float64), begins) / sizes
    return OrderedGram(sums / np.outer(sizes, sizes), levels)


class GramDisplay:
    """How alike the rows are to a kernel: the Gram matrix, its rows in the order of a target or of predictions.

    A sharp diagonal: only near rows share what is learned. Blocks: classes. One colour: the width is too large. A cell
    is the mean over two groups of 5 rows or more.

    Parameters
    ----------
    gram : what `ordered_gram` returns
    what : the name of the order

    Attributes after `plot`: `ax_`, `figure_`, `image_`.
    """

    def __init__(self, gram: OrderedGram, what: str = "target") -> None:
        self.gram, self.what = gram, what

    @classmethod
    def from_kernel(cls, kernel: Kernel, X: Any, y: Any, *, ax: Any = None) -> GramDisplay:
        """The matrix of a kernel on rows X, ordered by y: numbers, or labels of classes."""
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be a kernel, such as certifit.kernels.Gaussian(1.0). Got {kernel!r}.")
        points, target = np.ascontiguousarray(X, dtype=np.float64), np.asarray(y)
        if len(points) != len(target):
            raise ValueError(f"X has {len(points)} rows and y has {len(target)}.")
        answers = target if target.dtype.kind in "fiub" else np.unique(target, return_inverse=True)[1]
        return cls(ordered_gram(kernel.resolved(points), points, answers)).plot(ax)

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None) -> GramDisplay:
        """The rows that a fitted KernelRidge or KernelLMS keeps, ordered by what it predicts for them."""
        return cls(kept_gram(model), "prediction").plot(ax)

    def plot(self, ax: Any = None) -> GramDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "GramDisplay")
        self.image_ = ax.imshow(self.gram.means, cmap="viridis", origin="lower", extent=(0, 1, 0, 1), aspect="equal")
        ax.figure.colorbar(self.image_, ax=ax, label="mean of k(x, z)")
        ax.set(xlabel=f"share of the rows, by {self.what}", ylabel=f"share of the rows, by {self.what}")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def kept_gram(model: Any) -> OrderedGram:
    """Of the rows that a fitted model keeps, ordered by its predictions."""
    check_is_fitted(model)
    if "similarity" not in sections_of(model) or model.kernel_ is None:
        raise TypeError(
            f"{type(model).__name__} keeps no rows with one coefficient each, or its kernel was precomputed. "
            "GramDisplay.from_kernel(kernel, X, y) takes any rows."
        )
    kernel, points, dual = model.kernel_, model.X_fit_, model.dual_coef_
    fitted = np.concatenate([kernel.matrix(points[k : k + 512], points) @ dual for k in range(0, len(points), 512)])
    return ordered_gram(kernel, points, fitted)


class WidthDisplay:
    """Fits of one column by Gaussian kernels of several widths: too narrow follows noise, too wide misses the curve.

    Parameters
    ----------
    grid : places on the column
    curves : the predictions there by width
    points : (x, y) of rows
    name : of the column

    Attributes after `plot`: `ax_`, `figure_`, `lines_` by width.
    """

    def __init__(self, grid: Array, curves: Mapping[float, Array], points: tuple[Array, Array], name: str) -> None:
        self.grid, self.curves, self.points, self.name = grid, dict(curves), points, name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        widths: Sequence[float] | None = None,
        grid_points: int = 300,
        ax: Any = None,
    ) -> WidthDisplay:
        """Fit copies of a model with the parameter `kernel` to rows of one column and draw.

        widths: sigma of the Gaussian kernels; default 1/4, 1 and 4 times the width "scale".
        """
        rows, target = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != 1:
            raise ValueError(f"WidthDisplay draws models of one column. X has the shape {rows.shape}.")
        name = str(X.columns[0]) if hasattr(X, "columns") else "x0"
        scale = Gaussian("scale").resolved(rows)
        assert isinstance(scale, Gaussian)
        chosen = [float(width) for width in (widths or [factor * float(scale.sigma) for factor in WIDTHS])]
        grid = np.linspace(rows.min(), rows.max(), int(grid_points))
        fits = {sigma: clone(estimator).set_params(kernel=Gaussian(sigma)).fit(rows, target) for sigma in chosen}
        curves = {sigma: np.asarray(model.predict(grid[:, None])) for sigma, model in fits.items()}
        return cls(grid, curves, (rows[:, 0], target), name).plot(ax)

    def plot(self, ax: Any = None) -> WidthDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "WidthDisplay")
        ax.plot(*self.points, ".", color="0.6", ms=4, zorder=1)
        self.lines_ = {
            sigma: ax.plot(self.grid, curve, lw=1.8, color=f"C{k}", label=f"sigma = {sigma:.3g}")[0]
            for k, (sigma, curve) in enumerate(self.curves.items())
        }
        low, high = self.points[1].min(), self.points[1].max()
        ax.set_ylim(low - 0.15 * (high - low), high + 0.15 * (high - low))
        ax.set(xlabel=visible(self.name), ylabel="prediction")
        ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class FeatureSpaceDisplay:
    """Rows in the first two directions of a kernel PCA, coloured by class: circles come apart.

    Parameters
    ----------
    scores : rows x 2
    labels : a class per row, or None
    shares : of the variance in feature space that the two directions have

    Attributes after `plot`: `ax_`, `figure_`, `dots_` by class.
    """

    def __init__(self, scores: Array, labels: Array | None, shares: Array) -> None:
        self.scores, self.labels, self.shares = scores, labels, shares

    @classmethod
    def from_estimator(cls, model: Any, X: Any, y: Any = None, *, ax: Any = None) -> FeatureSpaceDisplay:
        """Scores of the rows X by a fitted KernelPCA or PCA of two components or more; y: their classes."""
        check_is_fitted(model)
        scores = np.asarray(model.transform(X))
        if scores.ndim != 2 or scores.shape[1] < 2:
            raise ValueError("FeatureSpaceDisplay needs two components or more. Raise n_components.")
        labels = None if y is None else np.asarray(y)
        if labels is not None and len(labels) != len(scores):
            raise ValueError(f"X has {len(scores)} rows and y has {len(labels)}.")
        if labels is not None and len(np.unique(labels)) > MOST_CLASSES:
            raise ValueError(f"y must have at most {MOST_CLASSES} classes. Got {len(np.unique(labels))}.")
        return cls(scores[:, :2], labels, np.asarray(model.explained_variance_ratio_)[:2]).plot(ax)

    def plot(self, ax: Any = None) -> FeatureSpaceDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "FeatureSpaceDisplay")
        kinds = [None] if self.labels is None else np.unique(self.labels).tolist()
        self.dots_ = {}
        for k, kind in enumerate(kinds):
            chosen = slice(None) if self.labels is None else self.labels == kind
            label = None if kind is None else visible(str(kind))
            self.dots_[kind] = ax.plot(*self.scores[chosen].T, ".", color=f"C{k}", ms=5, alpha=0.7, label=label)[0]
        names = [f"direction {k + 1} ({100 * share:.0f} % of the variance)" for k, share in enumerate(self.shares)]
        ax.set(xlabel=names[0], ylabel=names[1])
        if self.labels is not None:
            ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


@dataclass(frozen=True)
class ErrorTable:
    """Mean errors of cross-validation, widths x alphas, and the places of the least."""

    alphas: Array
    widths: Array
    errors: Array
    best: tuple[int, int]


def error_table(results: Mapping[str, Any]) -> ErrorTable:
    """From `cv_results_` of a search over alpha and Gaussian kernels."""
    params = list(results["params"])
    if not params or set(params[0]) != {"alpha", "kernel"}:
        raise ValueError('The search must be over exactly "alpha" and "kernel", each kernel a Gaussian of a number.')
    widths = np.array([getattr(one["kernel"], "sigma", "scale") for one in params], dtype=object)
    if any(not isinstance(width, float | int) for width in widths):
        raise ValueError("Each kernel must be Gaussian(sigma) with a number.")
    alphas = np.array([float(one["alpha"]) for one in params])
    columns, rows = np.unique(alphas), np.unique(widths.astype(np.float64))
    errors = np.full((len(rows), len(columns)), np.nan)
    places = np.searchsorted(rows, widths.astype(np.float64)), np.searchsorted(columns, alphas)
    errors[places] = -np.asarray(results["mean_test_score"], dtype=np.float64)
    best = np.unravel_index(int(np.nanargmin(errors)), errors.shape)
    return ErrorTable(columns, rows, errors, (int(best[0]), int(best[1])))


class AlphaWidthDisplay:
    """The error of cross-validation against alpha and the width of a Gaussian kernel; the ring is the least.

    Parameters
    ----------
    table : what `error_table` returns
    what : the name of the error

    Attributes after `plot`: `ax_`, `figure_`, `image_`, `best_`.
    """

    def __init__(self, table: ErrorTable, what: str = "error") -> None:
        self.table, self.what = table, what

    @classmethod
    def from_search(cls, search: Any, *, ax: Any = None) -> AlphaWidthDisplay:
        """A fitted CrossValidated(KernelRidge(), {"alpha": [...], "kernel": [Gaussian(...), ...]})."""
        check_is_fitted(search)
        scoring = str(getattr(search, "scoring", None) or "")
        return cls(error_table(search.cv_results_), scoring.removeprefix("neg_").replace("_", " ") or "error").plot(ax)

    def plot(self, ax: Any = None) -> AlphaWidthDisplay:
        """Draw on `ax`, or on a new figure."""
        table = self.table
        ax = new_axes(ax, "AlphaWidthDisplay")
        low, high = np.nanmin(table.errors), np.nanmax(table.errors)
        is_wide = low > 0 and high > 20 * low
        shown = np.log10(table.errors) if is_wide else table.errors
        self.image_ = ax.imshow(shown, cmap="viridis_r", origin="lower", aspect="auto")
        for axis, values in ((ax.xaxis, table.alphas), (ax.yaxis, table.widths)):
            places = np.unique(np.linspace(0, len(values) - 1, min(len(values), 6)).astype(int))
            axis.set_ticks(places, [f"{values[place]:.2g}" for place in places])
        ring = {"mfc": "none", "mec": "white", "ms": 12, "mew": 2}
        self.best_ = ax.plot(table.best[1], table.best[0], "o", **ring)[0]
        ax.figure.colorbar(self.image_, ax=ax, label=f"log10 of the {self.what}" if is_wide else self.what)
        ax.set(xlabel="alpha", ylabel="sigma")
        self.ax_, self.figure_ = ax, ax.figure
        return self
