"""Pictures of the course: what is drawn is what the mathematics says."""

from __future__ import annotations

import numpy as np
import pytest

import certifit as cf
from certifit.evaluation.pictures.boundary import leads
from certifit.evaluation.pictures.components import drawn_projections, regression_line
from certifit.evaluation.pictures.contours import ball, steps_of
from certifit.evaluation.pictures.dependence import drawn_curve
from certifit.evaluation.pictures.formulas import ellipse
from certifit.selection.pictures import drawn_folds

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


@pytest.fixture
def line(rng):
    x = np.sort(rng.uniform(0, 6, 40))
    return x[:, None], 2 * x + rng.normal(size=40)


@pytest.fixture
def two_classes(rng):
    X = rng.normal(size=(40, 2))
    X[20:] += 4
    return X, np.repeat(["low", "up"], 20)


def test_the_band_of_a_new_row_holds_that_of_the_mean_and_both_hold_the_curve(line):
    curve = drawn_curve(cf.LinearRegression().fit(*line), line[0][:, 0], 0.95, 50)
    (low, high), (inner_low, inner_high) = curve.bands["new row"], curve.bands["mean"]
    assert (low < inner_low).all() and (inner_low < curve.curve).all()
    assert (curve.curve < inner_high).all() and (inner_high < high).all()
    assert drawn_curve(cf.Ridge(1.0).fit(*line), line[0][:, 0], 0.95, 5).bands == {}, "a penalty forbids intervals"


def test_a_curve_needs_one_column(two_classes):
    X, _ = two_classes
    with pytest.raises(ValueError, match=r"one column\. Got 2"):
        cf.FittedCurveDisplay.from_estimator(cf.LinearRegression().fit(X, X[:, 0]), X, X[:, 0])


def test_descent_draws_every_step_of_the_solver():
    def bowl(w):
        return float(w[0] ** 2 + 4 * w[1] ** 2)

    points = steps_of(bowl, [1.0, 1.0], cf.GradientDescent(step=0.1), 5)
    by_hand = [np.array([0.8**k, 0.2**k]) for k in range(6)]
    np.testing.assert_allclose(points, by_hand, atol=1e-7)
    display = cf.DescentDisplay.from_function(
        bowl, [1.0, 1.0], {"a": cf.GradientDescent(step=0.1), "b": "bfgs"}, max_iter=5
    )
    assert len(display.lines_) == 2
    with pytest.raises(ValueError, match="two unknowns"):
        cf.DescentDisplay.from_ways(bowl, {"a": np.zeros((3, 4))})


def test_every_tangent_leads_to_the_next_point_of_newton():
    display = cf.NewtonDisplay.from_function(lambda x: x**3 - 2, 3.0)
    before, after = display.points[:-1], display.points[1:]
    np.testing.assert_allclose(after, before - (before**3 - 2) / (3 * before**2), rtol=1e-9)
    assert display.points[-1] == pytest.approx(2 ** (1 / 3))


def test_formulas_are_drawn_as_they_are():
    losses = cf.LossDisplay.from_losses({"hinge": cf.HingeLoss()}, zero_one=True)
    z = losses.curves.x
    np.testing.assert_allclose(losses.curves.curves["hinge"], np.maximum(0, 1 - z))
    assert losses.curves.curves["0-1"][0] == 1 and losses.curves.curves["0-1"][-1] == 0
    links = cf.LinkDisplay.from_links(["logit"])
    np.testing.assert_allclose(links.curves.curves["logit"], 1 / (1 + np.exp(-links.curves.x)))
    with pytest.raises(ValueError, match=r"among .*'logit'.*Got 'loggit'"):
        cf.LinkDisplay.from_links(["loggit"])
    counts = cf.DensityDisplay.from_distributions([cf.families.Poisson(2.0)], np.arange(40))
    assert sum(counts.curves.curves["Poisson(rate=2)"]) == pytest.approx(1) and counts.curves.is_discrete


def test_an_ellipse_has_one_mahalanobis_distance(rng):
    A = rng.normal(size=(2, 2))
    gaussian = cf.Gaussian([1.0, -2.0], A @ A.T)
    points = ellipse(gaussian.mean, gaussian.covariance, 2.0)
    np.testing.assert_allclose(gaussian.mahalanobis(points), 2.0, rtol=1e-6)


@pytest.mark.parametrize("covariance", ["shared", "class", "diagonal"])
def test_classes_of_a_discriminant_are_drawn_with_their_covariances(covariance, two_classes):
    display = cf.GaussianDisplay.from_estimator(cf.GaussianDiscriminant(covariance).fit(*two_classes), *two_classes)
    assert set(display.gaussians) == {"low", "up"} and len(display.lines_) == 6


def test_boundaries_are_where_models_change_their_mind(two_classes):
    X, y = two_classes
    models = {
        "logistic": cf.LogisticRegression().fit(X, y),
        "naive": cf.GaussianNB().fit(X, y),
        "squares": cf.LinearRegression().fit(X, y == "up"),
    }
    for model in models.values():
        said = model.predict(X) if model is not models["squares"] else np.where(model.predict(X) > 0.5, "up", "low")
        assert ((leads(model, X, 0.5) > 0) == (said == "up")).all()
    display = cf.BoundariesDisplay.from_estimators(models, X, y)
    assert len(display.lines_) == 3
    assert len(cf.BoundariesDisplay.from_epochs(cf.Perceptron(), X, y, epochs=(1, 5)).leads) == 2


def test_projections_are_at_right_angles_and_regression_is_another_line(rng):
    X = rng.normal(size=(60, 2)) @ np.array([[2.0, 1.0], [0.0, 1.0]])
    pca = cf.PCA(1, ddof=0).fit(X)
    drawn = drawn_projections(pca, X)
    direction = pca.components_[0]
    np.testing.assert_allclose((X - drawn.projected) @ direction, 0, atol=1e-12)
    assert drawn.error == pytest.approx(pca.projection_error_)
    slope, intercept = regression_line(X)
    fit = cf.LinearRegression().fit(X[:, :1], X[:, 1])
    assert (slope, intercept) == pytest.approx((fit.coef_[0], fit.intercept_))
    assert abs(slope - direction[1] / direction[0]) > 0.01
    assert cf.ProjectionDisplay.from_estimator(pca, X, regression=True).regression_line_ is not None


@pytest.mark.parametrize("model", [cf.Ridge(0.5), cf.Lasso(0.2), cf.ElasticNet(0.3, l1_ratio=0.5)])
def test_the_ellipse_touches_the_ball_at_the_solution(model, rng):
    """No point of the ball has a smaller loss than the solution."""
    X = rng.normal(size=(50, 2)) @ np.array([[1.0, 0.5], [0.0, 1.0]])
    y = X @ [1.0, 0.3] + 0.2 * rng.normal(size=50)
    parts = cf.PenaltyDisplay.from_estimator(model.fit(X, y), X, y).parts

    def loss(w):
        return np.einsum("...i,ij,...j->...", w - parts.best, parts.gram, w - parts.best)

    assert loss(parts.ball).min() >= loss(parts.solution) * (1 - 1e-9)
    level = parts.l1_ratio * np.abs(parts.ball).sum(1) + (1 - parts.l1_ratio) * (parts.ball**2).sum(1) / 2
    np.testing.assert_allclose(level, level[0], rtol=1e-9)
    assert ball(np.array([0.0, 1.0]), 1.0).max() == pytest.approx(1.0)


def test_folds_are_drawn_as_they_are(two_classes):
    X, y = two_classes
    times = drawn_folds(cf.Folds(5), X, y)
    assert (np.sum(times == -1, axis=0) == 1).all(), "every row validates once"
    draws = drawn_folds(cf.Bootstrap(3), X)
    assert (np.where(draws > 0, draws, 0).sum(axis=1) == len(X)).all()
    assert cf.FoldsDisplay.from_splitter(cf.Folds(5), X, y, show_classes=True).classes_image_ is not None
    with pytest.raises(ValueError, match="needs y"):
        cf.FoldsDisplay.from_splitter(cf.Folds(5), X, show_classes=True)


def test_a_path_of_fits_has_the_weights_of_every_fit(line):
    X, y = line
    display = cf.PathDisplay.from_fits(cf.Ridge(), X, y, alphas=[0.1, 10.0])
    expected = [cf.Ridge(alpha).fit(X, y).coef_ for alpha in (10.0, 0.1)]
    np.testing.assert_allclose(display.coef, expected)
