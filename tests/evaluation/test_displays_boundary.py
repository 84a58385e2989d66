"""The regions of a classifier's classes over two columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.naive_bayes import GaussianNB as NaiveBayes
from sklearn.neighbors import RadiusNeighborsClassifier

import certifit as cf

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture
def plane(rng):
    X = rng.uniform(-2, 2, size=(80, 2))
    yield X, np.where(X @ [1.0, -2.0] + 0.3 * rng.normal(size=80) > 0.5, "in", "out")
    matplotlib.pyplot.close("all")


def vertices(display):
    return np.concatenate([path.vertices for line in display.lines_ for path in line.get_paths()])


def test_the_line_of_two_classes_is_where_the_score_is_zero(plane):
    X, y = plane
    model = cf.LogisticRegression().fit(X, y)
    shown = cf.BoundaryDisplay.from_estimator(model, X, y)
    assert len(shown.lines_) == 1
    np.testing.assert_allclose(model.decision_function(vertices(shown)), 0, atol=1e-9)


def test_through_a_basis_the_boundary_is_a_circle(rng):
    X = rng.uniform(-2, 2, size=(400, 2))
    model = cf.LogisticRegression(basis=cf.Polynomial(2)).fit(X, (X**2).sum(axis=1) >= 1)
    radius = np.linalg.norm(vertices(cf.BoundaryDisplay.from_estimator(model, X)), axis=1)
    assert radius.min() > 0.8 and radius.max() < 1.2
    matplotlib.pyplot.close("all")


def test_every_place_is_coloured_by_its_most_probable_class_and_lines_lie_between_two(rng):
    X = rng.normal(size=(150, 2)) + np.repeat([[0, 0], [2, 2], [3, -1]], 50, axis=0)
    model = cf.LogisticRegression().fit(X, np.repeat(["a", "b", "c"], 50))
    shown = cf.BoundaryDisplay.from_estimator(model, X, grid_points=40)
    places = np.column_stack([part.ravel() for part in np.meshgrid(shown.across, shown.up)])
    drawn = model.classes_[np.asarray(shown.surface_.get_array()).ravel().astype(int)]
    np.testing.assert_array_equal(drawn, model.predict(places))
    top = np.sort(model.decision_function(vertices(shown)), axis=1)
    assert (top[:, -1] - top[:, -2]).max() < 0.3  # linear between grid points, but for the kink where three meet
    assert np.median(top[:, -1] - top[:, -2]) < 1e-9
    matplotlib.pyplot.close("all")


def test_other_columns_are_held_at_the_middle_number_and_the_most_frequent_level(plane):
    X, y = plane
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame.insert(1, "level", pd.Categorical(np.where(np.arange(80) % 3 == 0, "rare", "often")))
    frame["c"] = np.arange(80.0)
    model = cf.LogisticRegression(encoder=cf.TableEncoder()).fit(frame, y)
    shown = cf.BoundaryDisplay.from_estimator(model, frame, y, columns=("a", "b"))
    held = pd.DataFrame({"a": vertices(shown)[:, 0], "level": "often", "b": vertices(shown)[:, 1], "c": 40.0})
    np.testing.assert_allclose(model.decision_function(held), 0, atol=1e-9)
    assert "2 other columns" in shown.ax_.get_title(loc="left") and shown.ax_.get_ylabel() == "b"
    table = cf.BoundaryDisplay.from_estimator(model, pa.table(frame), columns=(0, 2))
    np.testing.assert_array_equal(table.margins, shown.margins)


def test_rows_are_drawn_in_the_colour_of_their_class_only_with_their_labels(plane):
    X, y = plane
    model = cf.GaussianDiscriminant().fit(X, y)
    shown = cf.BoundaryDisplay.from_estimator(model, X, y)
    for points, label in zip(shown.points_, model.classes_, strict=True):
        np.testing.assert_array_equal(points.get_offsets(), X[y == label])
    bare = cf.BoundaryDisplay.from_estimator(model, X)
    assert all(len(points.get_offsets()) == 0 for points in bare.points_)


@pytest.mark.parametrize("model", [NaiveBayes(), RadiusNeighborsClassifier(10.0), cf.Perceptron(max_iter=5)])
@pytest.mark.filterwarnings("ignore")
def test_any_classifier_is_drawn(model, plane):
    X, y = plane
    shown = cf.BoundaryDisplay.from_estimator(model.fit(X, y), X, y, grid_points=20)
    assert shown.margins.shape == (2, 20, 20)


def test_what_cannot_be_drawn_is_said(plane):
    X, y = plane
    model = cf.LogisticRegression().fit(X, y)
    draw = cf.BoundaryDisplay.from_estimator
    with pytest.raises(TypeError, match="no classes"):
        draw(cf.Ridge().fit(X, X[:, 0]), X)
    with pytest.raises(ValueError, match="no column 'z'"):
        draw(model, X, columns=(0, "z"))
    with pytest.raises(ValueError, match="must be two"):
        draw(model, X, columns=(0, 0))
    with pytest.raises(ValueError, match="a label per row"):
        draw(model, X, y[:3])
    with pytest.raises(ValueError, match="grid_points"):
        draw(model, X, grid_points=1)
    words = pd.DataFrame({"a": X[:, 0], "b": y})
    with pytest.raises(TypeError, match="no column of numbers"):
        draw(cf.LogisticRegression(encoder=cf.TableEncoder()).fit(words, y), words)
