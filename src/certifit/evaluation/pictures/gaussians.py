"""Ellipses of equal density: of Gaussian distributions, and of the classes of a discriminant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.evaluation.pictures import new_axes, visible


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
