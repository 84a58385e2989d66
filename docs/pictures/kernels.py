"""docs/pictures/kernels.png: fits for several widths, an ordered Gram matrix, kernel PCA of circles, error over a grid.

python docs/pictures/kernels.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import certifit as cf
from certifit import kernels

RNG = np.random.default_rng(0)
WIDTHS = np.logspace(-1.5, 1, 12)
ALPHAS = np.logspace(-7, 0, 15)


def fits(axis: plt.Axes, x: np.ndarray, y: np.ndarray) -> None:
    """A narrow kernel follows the noise, a wide one misses the curve."""
    grid = np.linspace(0, 6, 400)[:, None]
    axis.plot(x, y, ".", color="0.6", markersize=4)
    for sigma in (0.05, 0.5, 5.0):
        model = cf.KernelRidge(1e-4, kernel=kernels.Gaussian(sigma)).fit(x, y)
        axis.plot(grid, model.predict(grid), label=f"sigma = {sigma:g}")
    axis.set_title("fits for three widths, alpha = 0.0001")
    axis.legend(fontsize=7)


def gram(axis: plt.Axes) -> None:
    """Rows in the order of the first component show the groups."""
    points = np.vstack([RNG.normal(centre, 0.4, size=(30, 2)) for centre in ((0, 0), (2, 2), (0, 3))])
    points = points[RNG.permutation(len(points))]
    kernel = kernels.Gaussian(0.8)
    order = np.argsort(cf.KernelPCA(1, kernel=kernel).fit_transform(points)[:, 0])
    axis.imshow(kernel.matrix(points[order]), cmap="viridis")
    axis.set_title("Gram matrix of three groups,\nin the order of the first component")


def circles(axis: plt.Axes) -> None:
    """Two circles that no line parts are apart along a component."""
    angle = RNG.uniform(0, 2 * np.pi, size=300)
    is_outer = np.arange(300) % 2 == 1
    radius = np.where(is_outer, 3.0, 1.0) + 0.1 * RNG.normal(size=300)
    points = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    scores = cf.KernelPCA(2, kernel=kernels.Gaussian(1.0)).fit_transform(points)
    for side, colour in ((False, "tab:blue"), (True, "tab:orange")):
        axis.plot(*scores[is_outer == side].T, ".", color=colour, markersize=4)
    axis.set_title("kernel PCA of two circles")


def errors(axis: plt.Axes, x: np.ndarray, y: np.ndarray) -> None:
    """Every width on all folds and alphas from one matrix."""
    grid = {"alpha": list(ALPHAS), "kernel": [kernels.Gaussian(float(sigma)) for sigma in WIDTHS]}
    search = cf.CrossValidated(cf.KernelRidge(), grid, cv=5, scoring="neg_mean_squared_error").fit(x, y)
    places = {(c["alpha"], c["kernel"].sigma): k for k, c in enumerate(search.cv_results_["params"])}
    squares = -search.cv_results_["mean_test_score"]
    table = [[squares[places[alpha, float(sigma)]] for alpha in ALPHAS] for sigma in WIDTHS]
    shown = axis.pcolormesh(ALPHAS, WIDTHS, np.sqrt(table), cmap="magma_r", vmax=1.0)
    best = search.best_params_
    axis.plot(best["alpha"], best["kernel"].sigma, "w*", markersize=10)
    axis.set(xscale="log", yscale="log", xlabel="alpha", ylabel="sigma", title="error on held-out rows")
    plt.colorbar(shown, ax=axis)


def main() -> None:
    """Draw the four panels."""
    x = np.sort(RNG.uniform(0, 6, size=(120, 1)), axis=0)
    y = np.sin(2 * x[:, 0]) + 0.3 * RNG.normal(size=120)
    figure, axes = plt.subplots(2, 2, figsize=(9, 7.5))
    fits(axes[0, 0], x, y)
    gram(axes[0, 1])
    circles(axes[1, 0])
    errors(axes[1, 1], x, y)
    figure.tight_layout()
    figure.savefig(Path(__file__).with_name("kernels.png"), dpi=80)


if __name__ == "__main__":
    main()
