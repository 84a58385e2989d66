"""Pictures of kernels show the numbers that they are made of; both pens draw the same Gram matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_circles

import certifit as cf
from certifit.evaluation.pictures.kernels import LEAST_ROWS, error_table, kept_gram, ordered_gram
from certifit.report.similarity import draw_gram

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def no_figures_stay() -> Any:
    from matplotlib import pyplot

    yield
    pyplot.close("all")


def _curve(n: int = 80) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 6, size=(n, 1))
    return x, np.sin(2 * x[:, 0]) + 0.2 * rng.normal(size=n)


def test_a_gram_matrix_is_ordered_and_its_cells_are_means_of_groups() -> None:
    x, y = _curve(100)
    kernel = cf.kernels.Gaussian(0.5)
    gram = ordered_gram(kernel, x, y)
    order = np.argsort(y, kind="stable")
    groups = np.array_split(order, len(gram.means))
    assert min(map(len, groups)) >= LEAST_ROWS and (np.diff(gram.levels) > 0).all()
    G = kernel.matrix(x)
    for i, j in ((0, 0), (3, 7), (19, 2)):
        assert np.isclose(gram.means[i, j], G[np.ix_(groups[i], groups[j])].mean())
    many = ordered_gram(kernel, np.repeat(x, 60, axis=0), np.repeat(y, 60))
    assert many.means.shape == (40, 40)  # of 6,000 rows some are looked at


def test_classes_of_circles_are_blocks_and_kernel_pca_takes_them_apart() -> None:
    X, c = make_circles(300, factor=0.4, noise=0.05, random_state=0)
    labels = np.array(["inner", "outer"])[1 - c]
    display = cf.GramDisplay.from_kernel(cf.kernels.Gaussian(0.3), X, labels)
    means = display.gram.means
    half = len(means) // 2
    inside, between = means[:half, :half].mean(), means[:half, half:].mean()
    assert inside > 2 * between  # the inner circle is a block
    drawn = cf.FeatureSpaceDisplay.from_estimator(cf.KernelPCA(2, kernel=cf.kernels.Gaussian(0.2)).fit(X), X, labels)
    radius = np.linalg.norm(drawn.scores, axis=1)
    assert radius[labels == "outer"].max() < radius[labels == "inner"].min()  # the denser one has the variance
    assert set(drawn.dots_) == {"inner", "outer"}
    with pytest.raises(ValueError, match="two components"):
        cf.FeatureSpaceDisplay.from_estimator(cf.KernelPCA(1).fit(X), X)
    with pytest.raises(ValueError, match="at most 10 classes"):
        cf.FeatureSpaceDisplay.from_estimator(cf.KernelPCA(2).fit(X), X, np.arange(300))


def test_both_pens_draw_the_rows_that_a_model_keeps() -> None:
    x, y = _curve()
    model = cf.KernelRidge(alpha=1e-3, kernel=cf.kernels.Gaussian(0.5)).fit(x, y)
    display = cf.GramDisplay.from_estimator(model)
    means = kept_gram(model).means
    np.testing.assert_array_equal(display.image_.get_array(), means)
    svg = draw_gram({"similarity": {"means": means.tolist(), "near": 0.5, "far": 0.1}})
    assert svg.count("M") >= means.size and "How alike rows are" in svg
    assert draw_gram({"similarity": None}) == ""
    cf.GramDisplay.from_estimator(cf.KernelLMS(max_iter=5).fit(x, y))
    for other in (cf.KernelPCA(2).fit(x), cf.Ridge().fit(x, y)):
        with pytest.raises(TypeError, match="from_kernel"):
            cf.GramDisplay.from_estimator(other)


def test_fits_of_several_widths_are_those_of_the_model() -> None:
    x, y = _curve()
    estimator = cf.KernelRidge(alpha=1e-3)
    display = cf.WidthDisplay.from_estimator(estimator, x, y, widths=[0.1, 2.0], grid_points=40)
    wide = cf.KernelRidge(alpha=1e-3, kernel=cf.kernels.Gaussian(2.0)).fit(x, y)
    np.testing.assert_allclose(display.lines_[2.0].get_ydata(), wide.predict(display.grid[:, None]))
    bends = {sigma: np.abs(np.diff(curve, 2)).sum() for sigma, curve in display.curves.items()}
    assert bends[0.1] > 2 * bends[2.0]
    assert len(cf.WidthDisplay.from_estimator(estimator, x, y).curves) == 3
    with pytest.raises(ValueError, match="one column"):
        cf.WidthDisplay.from_estimator(estimator, np.hstack([x, x]), y)


def test_the_error_over_alpha_and_width_is_that_of_the_search() -> None:
    x, y = _curve()
    widths, alphas = [0.2, 0.7, 3.0], [1e-6, 1e-3, 1.0]
    grid = {"alpha": alphas, "kernel": [cf.kernels.Gaussian(width) for width in widths]}
    search = cf.CrossValidated(cf.KernelRidge(), grid, cv=3, scoring="neg_mean_squared_error").fit(x, y)
    display = cf.AlphaWidthDisplay.from_search(search)
    table = display.table
    assert table.widths.tolist() == widths and table.alphas.tolist() == alphas
    i, j = table.best
    assert search.best_params_ == {"alpha": alphas[j], "kernel": cf.kernels.Gaussian(widths[i])}
    assert np.isclose(table.errors[i, j], -search.best_score_)
    assert display.best_.get_xydata().tolist() == [[j, i]]
    with pytest.raises(ValueError, match="exactly"):
        error_table({"params": [{"alpha": 1.0}], "mean_test_score": [0.0]})
