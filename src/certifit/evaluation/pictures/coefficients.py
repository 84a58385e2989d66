"""Coefficients with their confidence intervals, and their path against the strength of an L1 penalty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from certifit.data.columns import Array
from certifit.evaluation.pictures import new_axes, spread, visible
from certifit.inference.summary import Summary
from certifit.models.adapter import sections_of


class CoefficientDisplay:
    """Every estimate with its confidence interval, one below the other.

    Columns in unlike units have coefficients of unlike size: `relative=True` divides each by its standard error.

    Parameters
    ----------
    names : of the coefficients
    estimate, standard_error, low, high : one number per coefficient
    level : of the intervals

    Attributes after `plot`: `ax_`, `figure_`, `points_`, `bars_`.
    """

    def __init__(
        self, names: Any, estimate: Any, standard_error: Any, low: Any, high: Any, level: float = 0.95, note: str = ""
    ) -> None:
        self.names = [str(name) for name in names]
        self.estimate, self.standard_error, self.low, self.high = (
            np.asarray(part, dtype=np.float64) for part in (estimate, standard_error, low, high)
        )
        self.level = float(level)
        self.note = note

    @classmethod
    def from_summary(
        cls, summary: Summary, *, intercept: bool = False, relative: bool = False, most: int = 30, ax: Any = None
    ) -> CoefficientDisplay:
        """Draw the table that `model.summary()` returns."""
        if not isinstance(summary, Summary):
            raise TypeError(f"Pass what model.summary() returns. Got {type(summary).__name__}.")
        fit = summary.inference
        first = 0 if intercept or not fit.has_intercept else 1
        ends = fit.confidence_interval(summary.level)[first:]
        parts = (fit.names[first:], fit.estimate[first:], fit.standard_errors[first:], ends[:, 0], ends[:, 1])
        note = "" if fit.covariance_type == "nonrobust" else f", {fit.covariance_type}"
        return cls(*parts, summary.level, note).plot(ax, relative=relative, most=most)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        intercept: bool = False,
        relative: bool = False,
        most: int = 30,
        ax: Any = None,
        **options: Any,
    ) -> CoefficientDisplay:
        """Draw the coefficients of a fitted LinearRegression. options (level, weights, ...) are those of `summary`."""
        if "coefficients" not in sections_of(estimator):
            raise TypeError(f"Intervals need a fitted LinearRegression. Got {estimator!r}.")
        summary = estimator.summary(X, y, sample_weight, **options)
        return cls.from_summary(summary, intercept=intercept, relative=relative, most=most, ax=ax)

    def plot(self, ax: Any = None, *, relative: bool = False, most: int = 30) -> CoefficientDisplay:
        """Draw on `ax`, or on a new figure. most: how many are drawn, those of largest |t|, in table order."""
        if most < 1:
            raise ValueError(f"most must be at least 1. Got {most}.")
        ax = new_axes(ax, "CoefficientDisplay")
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.abs(self.estimate / self.standard_error)
        chosen = np.sort(np.argsort(-np.nan_to_num(size, nan=-1.0), kind="stable")[:most])
        with np.errstate(divide="ignore", invalid="ignore"):
            unit = self.standard_error[chosen] if relative else np.ones(len(chosen))
            middle, low, high = (part[chosen] / unit for part in (self.estimate, self.low, self.high))
        places = np.arange(len(chosen))[::-1]
        self.bars_ = ax.hlines(places, low, high, color="C0", lw=2)
        (self.points_,) = ax.plot(middle, places, "o", color="C0", markersize=5)
        ax.axvline(0.0, color="0.4", lw=0.8)
        ax.set_yticks(places, [visible(self.names[j], 30) for j in chosen], fontsize="small")
        ax.set_ylim(-0.7, len(chosen) - 0.3)
        what = "coefficient / standard error" if relative else "coefficient"
        ax.set_xlabel(f"{what}, with {100 * self.level:g} % confidence interval{self.note}")
        left_out = len(self.names) - len(chosen)
        if left_out:
            ax.set_title(f"{len(chosen)} of {len(self.names)} coefficients, those of largest |t|", fontsize="medium")
        if len(chosen) > 10 and ax.figure.axes == [ax]:
            ax.figure.set_figheight(max(ax.figure.get_figheight(), 0.25 * len(chosen) + 1))
        self.ax_, self.figure_ = ax, ax.figure
        return self


# ---- the path of a lasso or an elastic net ---------------------------------------------------------------------------

_COUNTS = 8  # numbers on the top axis


def drawn_path(alphas: Any, values: Any) -> tuple[Array, Array]:
    """alphas > 0, the largest first, and the rows of values that belong to them: the axis is logarithmic."""
    alphas, values = np.asarray(alphas, dtype=np.float64), np.asarray(values, dtype=np.float64)
    order = np.argsort(-alphas, kind="stable")
    order = order[alphas[order] > 0]
    return alphas[order], values[order]


class PathDisplay:
    """Every weight against alpha (falling to the right), names at the ends, number of weights on the top axis.

    Parameters
    ----------
    alphas : strengths > 0, any order
    coef : (alphas, columns)
    names : of the columns
    chosen : an alpha to mark, or None

    Attributes after `plot`: `ax_`, `figure_`, `lines_` (one per column), `counts_` (the top axis), `chosen_line_`,
    `texts_` (names).
    """

    def __init__(self, alphas: Any, coef: Any, names: Sequence[str] | None = None, chosen: float | None = None) -> None:
        self.alphas = np.asarray(alphas, dtype=np.float64)
        self.coef = np.asarray(coef, dtype=np.float64)
        if self.coef.ndim != 2 or self.coef.shape[0] != len(self.alphas) or len(self.alphas) < 2:
            raise ValueError(
                f"coef needs a row for each of two alphas or more. Got {len(self.alphas)} alphas and {self.coef.shape}."
            )
        if not (self.alphas > 0).all():
            raise ValueError("alphas must be above 0: they stand on a logarithmic axis. Leave alpha = 0 out.")
        self.names = [f"x{j}" for j in range(self.coef.shape[1])] if names is None else [str(name) for name in names]
        if len(self.names) != self.coef.shape[1]:
            raise ValueError(f"names must be {self.coef.shape[1]}, one per column. Got {len(self.names)}.")
        self.chosen = chosen

    @classmethod
    def from_path(
        cls,
        path: Any,
        *,
        names: Sequence[str] | None = None,
        chosen: float | None = None,
        ax: Any = None,
        named: int = 8,
    ) -> PathDisplay:
        """Draw what `model.path(X, y)` returns."""
        names = getattr(path, "names", None) if names is None else names
        if np.ndim(path.coef) > 2:
            raise ValueError("This path has a coefficient per class. Draw one: replace(path, coef=path.coef[:, k]).")
        return cls(*drawn_path(path.alphas, path.coef), names, chosen).plot(ax, named=named)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, *, ax: Any = None, named: int = 8
    ) -> PathDisplay:
        """Compute the path of a Lasso or ElasticNet on these rows and draw it; a fitted model's alpha is marked.

        A fitted CrossValidated shows the path of its best estimator, and the alpha that was chosen.
        """
        model = getattr(estimator, "best_estimator_", estimator)
        if "path" not in sections_of(model):
            raise TypeError(f"A path needs a Lasso, an ElasticNet or a CrossValidated of one. Got {estimator!r}.")
        path = model.path(X, y, sample_weight)
        return cls.from_path(path, chosen=model.alpha_, ax=ax, named=named)

    @classmethod
    def from_fits(
        cls, estimator: Any, X: Any, y: Any, *, alphas: Any = None, ax: Any = None, named: int = 8
    ) -> PathDisplay:
        """Fit copies of a model with a coefficient per column (Ridge, say) at every alpha and draw their weights.

        alphas : falling or not; None: 40 values from 1e-4 to 1e2 times the mean variance of the columns
        """
        rows = np.asarray(X, dtype=np.float64)
        if alphas is None:
            alphas = np.geomspace(1e2, 1e-4, 40) * rows.var(axis=0).mean()
        falling = np.sort(np.asarray(alphas, dtype=np.float64))[::-1]
        weights = [np.ravel(clone(estimator).set_params(alpha=float(alpha)).fit(X, y).coef_) for alpha in falling]
        names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
        return cls(falling, np.array(weights), names).plot(ax, named=named)

    def plot(self, ax: Any = None, *, named: int = 8) -> PathDisplay:
        """Draw on `ax`, or on a new figure. named: how many columns are named, those of largest weight at the end."""
        ax = new_axes(ax, "PathDisplay")
        alphas, coef = drawn_path(self.alphas, self.coef)
        largest = [int(j) for j in np.argsort(-np.abs(coef[-1]), kind="stable")[:named] if coef[-1, j] != 0]
        self.lines_ = []
        for j in range(coef.shape[1]):
            look: dict[str, Any] = {"color": "0.75", "lw": 0.8}
            if j in largest:
                look = {"color": f"C{largest.index(j) % 10}", "lw": 1.5, "zorder": 3}
            self.lines_ += ax.plot(alphas, coef[:, j], **look)
        ax.axhline(0.0, color="0.4", lw=0.8)
        ax.set(xscale="log", xlim=(alphas[0], alphas[-1]))  # after xscale: falling to the right
        ax.set(xlabel="alpha (penalty; weaker to the right)", ylabel="weight")
        self._mark(ax)
        self._count(ax, alphas, np.count_nonzero(coef, axis=1))
        self._name(ax, alphas[-1], coef[-1], largest)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _mark(self, ax: Any) -> None:
        self.chosen_line_ = None
        if self.chosen is not None and self.chosen > 0:
            words = f"alpha = {self.chosen:.3g}"
            self.chosen_line_ = ax.axvline(self.chosen, color="0.2", ls=":", lw=1.2, label=words)
            ax.legend(fontsize="small", loc="upper left")

    def _count(self, ax: Any, alphas: Any, counts: Any) -> None:
        """Numbers of nonzero weights above the axis."""
        places = np.unique(np.linspace(0, len(alphas) - 1, _COUNTS).round().astype(int))
        self.counts_ = ax.secondary_xaxis("top")
        self.counts_.set_xticks(alphas[places], [str(counts[place]) for place in places])
        self.counts_.set_xticks([], minor=True)
        self.counts_.set_xlabel("number of columns with a weight", fontsize="small")

    def _name(self, ax: Any, at: float, ends: Any, largest: list[int]) -> None:
        """Names beside the ends of the lines, moved apart."""
        low, high = ax.get_ylim()
        heights = spread([float(ends[j]) for j in largest], 0.045 * (high - low))
        self.texts_ = [
            ax.annotate(
                visible(self.names[j]),
                (at, height),
                xytext=(4, 0),
                textcoords="offset points",
                color=f"C{k % 10}",
                fontsize="small",
                va="center",
                annotation_clip=False,
            )
            for k, (j, height) in enumerate(zip(largest, heights, strict=True))
        ]
