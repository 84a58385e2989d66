"""Pictures of support vector machines show the numbers that they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.svm import SVC as TheirSVC

import certifit as cf
from certifit.evaluation.pictures.machines import margin_path, pair_steps

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def no_figures_stay() -> Any:
    from matplotlib import pyplot

    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    return X, np.where(X[:, 0] ** 2 + X[:, 1] + 0.4 * rng.normal(size=120) > 0.5, "in", "out")


@pytest.mark.parametrize("make", [cf.SVC, TheirSVC])
def test_the_street_has_edges_at_one_and_rings_round_support_vectors(make: Any, rows: tuple[Any, Any]) -> None:
    X, y = rows
    model = make().fit(X, y)
    display = cf.SupportVectorDisplay.from_estimator(model, X, y, grid_points=60)
    assert display.edges_.levels.tolist() == [-1.0, 1.0]
    rings = np.asarray(display.rings_.get_offsets())
    assert sorted(map(tuple, rings)) == sorted(map(tuple, X[model.support_]))
    path = display.edges_.get_paths()[1].vertices  # of the edge at 1
    assert np.abs(model.decision_function(path) - 1).max() < 0.1  # between places of the grid it is a straight line
    bare = cf.SupportVectorDisplay.from_estimator(model, X, grid_points=20)
    assert bare.support is None


def test_a_street_needs_two_classes_and_the_rows_of_the_fit(rows: tuple[Any, Any]) -> None:
    X, y = rows
    with pytest.raises(TypeError, match="two classes"):
        cf.SupportVectorDisplay.from_estimator(cf.LogisticRegression().fit(X, y), X, y)
    with pytest.raises(ValueError, match="rows of the fit"):
        cf.SupportVectorDisplay.from_estimator(cf.SVC().fit(X, y), X[:5], y[:5])


def test_a_larger_alpha_widens_the_street(rows: tuple[Any, Any]) -> None:
    X, y = rows
    kernel = cf.kernels.Linear()
    search = cf.CrossValidated(cf.SVC(kernel=kernel), {"alpha": [1.0, 0.01, 0.1]}, cv=4).fit(X, y)
    path = margin_path(search, X, y)
    assert path.alphas.tolist() == [0.01, 0.1, 1.0] and (np.diff(path.widths) > 0).all()
    plane = cf.LinearSVC(0.1, loss="hinge").fit(X, y)
    assert path.widths[1] == pytest.approx(1 / np.linalg.norm(plane.coef_), rel=1e-2)
    errors = 1 - search.cv_results_["mean_test_score"]
    assert path.errors.tolist() == [errors[1], errors[2], errors[0]]
    display = cf.AlphaMarginDisplay.from_search(search, X, y)
    assert display.width_.get_ydata().tolist() == path.widths.tolist()
    assert display.lines_["support vectors"].get_ydata().tolist() == path.support.tolist()
    other = cf.CrossValidated(cf.SVC(), {"alpha": [0.1], "fit_intercept": [True]}, cv=4).fit(X, y)
    with pytest.raises(ValueError, match="alpha"):
        cf.AlphaMarginDisplay.from_search(other, X, y)


def test_steps_of_pairs_are_those_of_the_history(rows: tuple[Any, Any]) -> None:
    X, y = rows
    model = cf.SVC(solver="smo").fit(X, y)
    display = cf.SmoDisplay.from_estimator(model)
    assert display.lines_["dual"].get_ydata().tolist() == [row["dual"] for row in model.history_]
    steps = pair_steps(model)
    assert (np.diff(steps.dual) >= -1e-12).all() and (steps.dual <= steps.objective * (1 + 1e-12)).all()
    with pytest.raises(ValueError, match="smo"):
        cf.SmoDisplay.from_estimator(cf.SVC().fit(X, y))
