"""Noise, bias^2 and variance against complexity."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np

from certifit.data.columns import Array
from certifit.evaluation.bias_variance import BiasVariance, bias_variance
from certifit.evaluation.pictures import Band, new_axes

Style = Literal["lines", "stacked"]
_COLOURS = {"noise": "0.6", "bias": "C0", "variance": "C1", "error": "black"}
_WIDE_RANGE = 1e3  # of the largest to the smallest error; beyond it the axis is logarithmic


def drawn_parts(
    bias: Array, variance: Array, noise: float | None = None, bias_name: str = "bias^2"
) -> dict[str, tuple[str, Array]]:
    """(label, values) of each part of the error that is known, the lowest of a stack first."""
    parts = {} if noise is None else {"noise": ("noise", np.full(len(bias), noise))}
    return parts | {"bias": (bias_name.replace("^2", "²"), bias), "variance": ("variance", variance)}


class BiasVarianceDisplay:
    """The parts of the expected squared error against complexity: lines with bands of one standard error, or stacked.

    Parameters
    ----------
    result : what `bias_variance` returns for several models

    Attributes after `plot`: `ax_`, `figure_`, `lines_` (by name; stacked: the areas).
    """

    def __init__(self, result: BiasVariance) -> None:
        if not isinstance(result, BiasVariance):
            raise TypeError(f"Pass the result of bias_variance(...). Got {type(result).__name__}.")
        self.result = result

    @classmethod
    def from_estimator(cls, *data: Any, ax: Any = None, style: Style = "lines", **options: Any) -> BiasVarianceDisplay:
        """Take the error apart and draw. data and options are those of `bias_variance`."""
        return cls(bias_variance(*data, **options)).plot(ax, style=style)

    def plot(self, ax: Any = None, *, style: Style = "lines") -> BiasVarianceDisplay:
        """Draw on `ax`, or on a new figure."""
        if style not in STYLES:
            raise ValueError(f"style must be 'lines' or 'stacked'. Got {style!r}.")
        if len(self.result.complexity) < 2:
            raise ValueError("A picture against complexity needs two models at least. Got one: print its result.")
        ax = new_axes(ax, "BiasVarianceDisplay")
        places = axis_places(ax, self.result.complexity)
        self.lines_ = STYLES[style](self, ax, places)
        ax.set(xlabel=self.result.name, ylabel="mean squared error")
        if style == "lines" and self._is_wide():
            ax.set_yscale("log")
        else:
            ax.set_ylim(bottom=0.0)
        ax.legend(fontsize="small")
        ax.set_title(f"{self.result.n_resamples} {_SAMPLING[self.result.sampling]}", fontsize="medium")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _parts(self) -> dict[str, tuple[str, Array]]:
        """(label, values) of each part that is known, the lowest of a stack first."""
        result = self.result
        return drawn_parts(result.bias_squared, result.variance, result.noise, result.bias_name)

    def _draw_lines(self, ax: Any, places: Array) -> dict[str, Any]:
        result, drawn = self.result, {}
        errors = {"bias": result.bias_standard_error, "variance": result.variance_standard_error}
        for part, (label, values) in self._parts().items():
            (drawn[part],) = ax.plot(places, values, "o-", color=_COLOURS[part], label=label, markersize=4)
            if part in errors:
                band = Band.of(places, values, errors[part])
                ax.fill_between(band.x, np.maximum(band.low, 0.0), band.high, color=_COLOURS[part], alpha=0.2, lw=0)
        label = "sum" if result.noise is not None or not result.has_truth else "sum, without noise"
        (drawn["error"],) = ax.plot(places, result.error, "-", color=_COLOURS["error"], lw=2, label=label)
        if result.test_error is not None:
            (drawn["test_error"],) = ax.plot(
                places, result.test_error, "x", color=_COLOURS["error"], label="error measured on y_test"
            )
        return drawn

    def _draw_stack(self, ax: Any, places: Array) -> dict[str, Any]:
        parts = self._parts()
        heights = [np.maximum(values, 0.0) for _, values in parts.values()]
        colours = [_COLOURS[part] for part in parts]
        areas = ax.stackplot(places, heights, labels=[label for label, _ in parts.values()], colors=colours, alpha=0.7)
        return dict(zip(parts, areas, strict=True))

    def _is_wide(self) -> bool:
        return bool(self.result.error.max() > _WIDE_RANGE * max(self.result.error.min(), 0.0))


STYLES = {"lines": BiasVarianceDisplay._draw_lines, "stacked": BiasVarianceDisplay._draw_stack}
_SAMPLING = {"fresh": "training sets drawn anew", "bootstrap": "bootstrap draws of one training set"}


def axis_places(ax: Any, values: Sequence[Any]) -> Array:
    """Where values stand on the axis: at themselves if they are numbers, else one after the other with their names."""
    if not all(isinstance(value, Real) and not isinstance(value, bool) for value in values):
        names = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in values]
        slanted = sum(map(len, names)) > 60
        ax.set_xticks(range(len(values)), names, rotation=30 if slanted else 0, ha="right" if slanted else "center")
        return np.arange(len(values))
    places = np.array(values, dtype=np.float64)
    if is_geometric(places):
        ax.set_xscale("log")
    elif (places == np.rint(places)).all() and len(places) <= 20:
        ax.set_xticks(places)
    return places


def is_geometric(values: Array) -> bool:
    """Whether positive values span a factor of ten or more in equal ratios, so that a logarithmic axis suits them."""
    if len(values) < 3 or not (values > 0).all() or values.max() < 10 * values.min():
        return False
    steps = np.diff(np.log(values))
    return bool(np.abs(steps - steps.mean()).max() <= 0.05 * abs(steps.mean()))
