"""Formulas as curves: losses against the margin or the residual, links, densities of distributions.

In two dimensions, ellipses of equal density: of Gaussian distributions, and of the classes of a discriminant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.evaluation.pictures import new_axes, visible
from certifit.mathematics.families import LINKS


@dataclass(frozen=True)
class Curves:
    """Curves over one axis, by name; `is_discrete` marks probabilities of whole numbers."""

    x: Array
    curves: dict[str, Array]
    x_label: str
    y_label: str
    is_discrete: bool = False


class CurvesDisplay:
    """Named curves of formulas over one axis.

    Attributes after `plot`: `ax_`, `figure_`, `lines_`.
    """

    def __init__(self, curves: Curves) -> None:
        self.curves = curves

    def plot(self, ax: Any = None) -> CurvesDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, type(self).__name__)
        look: dict[str, Any] = (
            {"marker": "o", "ms": 4, "lw": 0.8, "ls": ":"} if self.curves.is_discrete else {"lw": 1.8}
        )
        self.lines_ = [
            ax.plot(self.curves.x, curve, label=name, **look)[0] for name, curve in self.curves.curves.items()
        ]
        ax.axhline(0.0, color="0.6", lw=0.6)
        ax.set(xlabel=self.curves.x_label, ylabel=self.curves.y_label)
        ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class LossDisplay(CurvesDisplay):
    """Losses of a row against its score, for one target."""

    @classmethod
    def from_losses(
        cls,
        losses: Mapping[str, Any],
        *,
        y: float = 1.0,
        low: float = -3.0,
        high: float = 3.0,
        most: float = 6.0,
        zero_one: bool = False,
        x_label: str = "score z",
        ax: Any = None,
    ) -> LossDisplay:
        """Draw l(y, z) for scores from low to high; a loss is an object with `value(y, z)`, or a function of (y, z).

        zero_one adds the 0-1 loss of the sign of y z. Values above `most` are cut.
        """
        z = np.linspace(low, high, 301)
        target = np.full_like(z, y)
        curves = {name: np.asarray(getattr(loss, "value", loss)(target, z)) for name, loss in losses.items()}
        if zero_one:
            curves["0-1"] = (y * z <= 0).astype(np.float64)
        cut = {name: np.where(curve > most, np.nan, curve) for name, curve in curves.items()}
        return cls(Curves(z, cut, x_label, "loss")).plot(ax)

    def plot(self, ax: Any = None) -> LossDisplay:
        """Draw on `ax`, or on a new figure."""
        super().plot(ax)
        return self


class LinkDisplay(CurvesDisplay):
    """Responses: the mean against the score, per link."""

    @classmethod
    def from_links(
        cls, links: Sequence[str | Any], *, low: float = -4.0, high: float = 4.0, ax: Any = None
    ) -> LinkDisplay:
        """Draw the inverse links by name (`cf.families.LINKS`) or as objects with `mean(z)`."""
        unknown = [link for link in links if isinstance(link, str) and link not in LINKS]
        if unknown:
            raise ValueError(f"Links must be among {sorted(LINKS)}. Got {unknown[0]!r}.")
        z = np.linspace(low, high, 301)
        named = {str(link): LINKS[link] if isinstance(link, str) else link for link in links}
        with np.errstate(all="ignore"):
            curves = {name: np.asarray(link.mean(z), dtype=np.float64) for name, link in named.items()}
        finite = {name: np.where(np.isfinite(curve), curve, np.nan) for name, curve in curves.items()}
        return cls(Curves(z, finite, "score z", "mean")).plot(ax)

    def plot(self, ax: Any = None) -> LinkDisplay:
        """Draw on `ax`, or on a new figure."""
        super().plot(ax)
        return self


class DensityDisplay(CurvesDisplay):
    """Densities, or probabilities of whole numbers, of distributions side by side."""

    @classmethod
    def from_distributions(
        cls, distributions: Sequence[Any], x: Any, *, names: Sequence[str] | None = None, ax: Any = None
    ) -> DensityDisplay:
        """Draw `exp(log_density(x))` of distributions of one number; x of whole numbers draws probabilities."""
        places = np.asarray(x)
        is_discrete = places.dtype.kind in "iu"
        labels = [repr(p) for p in distributions] if names is None else list(names)
        curves = {
            name: np.exp(np.asarray(p.log_density(places), dtype=np.float64))
            for name, p in zip(labels, distributions, strict=True)
        }
        y_label = "probability" if is_discrete else "density"
        return cls(Curves(places.astype(np.float64), curves, "y", y_label, is_discrete)).plot(ax)

    def plot(self, ax: Any = None) -> DensityDisplay:
        """Draw on `ax`, or on a new figure."""
        super().plot(ax)
        return self


def ellipse(mean: Array, covariance: Array, radius: float, n_points: int = 181) -> Array:
    """Points with (x - mean)' covariance^-1 (x - mean) = radius^2, n_points x 2."""
    angle = np.linspace(0, 2 * np.pi, n_points)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(mean + radius * (root @ circle).T)


class GaussianDisplay:
    """Ellipses of Gaussian distributions of two numbers, at 1, 2 and 3 standard deviations.

    Parameters
    ----------
    gaussians : {name: (mean, covariance)}
    radii : Mahalanobis distances of the ellipses
    points, labels : rows to draw; None draws none

    Attributes after `plot`: `ax_`, `figure_`, `lines_`.
    """

    def __init__(
        self,
        gaussians: Mapping[str, Any],
        radii: tuple[float, ...] = (1.0, 2.0, 3.0),
        points: Any = None,
        labels: Any = None,
    ) -> None:
        self.gaussians = {
            name: (np.asarray(mean, dtype=np.float64), np.asarray(covariance, dtype=np.float64))
            for name, (mean, covariance) in gaussians.items()
        }
        for name, (mean, covariance) in self.gaussians.items():
            if mean.shape != (2,) or covariance.shape != (2, 2):
                raise ValueError(f"{name!r} must have 2 numbers. Got a mean of shape {mean.shape}.")
        self.radii, self.points, self.labels = radii, points, labels

    @classmethod
    def from_distributions(cls, gaussians: Mapping[str, Any], *, ax: Any = None) -> GaussianDisplay:
        """Draw `cf.Gaussian` objects of two numbers, by name."""
        return cls({name: (part.mean, part.covariance) for name, part in gaussians.items()}).plot(ax)

    @classmethod
    def from_estimator(cls, model: Any, X: Any, y: Any, *, ax: Any = None) -> GaussianDisplay:
        """Draw the classes of a fitted GaussianDiscriminant of two columns over the rows."""
        covariances = np.asarray(model.covariance_, dtype=np.float64)
        if model.covariance == "diagonal":
            covariances = np.stack([np.diag(variances) for variances in covariances])
        elif covariances.ndim == 2:
            covariances = np.stack([covariances] * len(model.classes_))
        classes = [str(label) for label in model.classes_]
        parts = dict(zip(classes, zip(model.means_, covariances, strict=True), strict=True))
        return cls(parts, points=np.asarray(X, dtype=np.float64), labels=np.asarray(y).astype(str)).plot(ax)

    def plot(self, ax: Any = None) -> GaussianDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "GaussianDisplay")
        self.lines_ = []
        for k, (name, (mean, covariance)) in enumerate(self.gaussians.items()):
            if self.points is not None:
                ax.scatter(*self.points[self.labels == name].T, s=10, color=f"C{k}", alpha=0.5, linewidth=0)
            for radius in self.radii:
                label = visible(name, 30) if radius == self.radii[0] else None
                self.lines_ += ax.plot(*ellipse(mean, covariance, radius).T, color=f"C{k}", lw=1.3, label=label)
            ax.plot(*mean, "+", color=f"C{k}", ms=9)
        ax.set(xlabel="x0", ylabel="x1", aspect="equal")
        ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
