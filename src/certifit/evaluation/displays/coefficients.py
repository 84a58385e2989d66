"""Coefficients with their confidence intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.certificates.summary import Summary
from certifit.evaluation.displays import new_axes, visible
from certifit.models.adapter import sections_of


class CoefficientDisplay:
    """Every estimate with its confidence interval, one below the other.

    Columns in unlike units have coefficients of unlike size: `relative=True` divides each by its standard error.

    Parameters
    ----------
    names : of the coefficients
    estimate, standard_error, low, high : one number a coefficient
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
