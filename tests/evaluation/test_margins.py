"""Margins of linear classifiers."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as TheirLogistic

import certifit as cf

RNG = np.random.default_rng(1)
X = RNG.normal(size=(60, 3))
TWO = np.where(X @ [1.0, -1.0, 0.5] > 0.2, "b", "a")
THREE = np.array(["x", "y", "z"])[np.argmax(X, axis=1)]


@pytest.mark.parametrize("model", [cf.LogisticRegression(0.1), cf.Perceptron(), TheirLogistic()], ids=str)
def test_two_classes_have_the_margins_of_the_formula(model):
    model.fit(X, TWO)
    found = cf.margins(model, X, TWO)
    w, b, y = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]), np.where(TWO == "b", 1.0, -1.0)
    np.testing.assert_allclose(found.functional, y * (X @ w + b), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.geometric, y * (X @ w + b) / np.linalg.norm(w), rtol=1e-12, atol=1e-12)
    assert found.geometric_of_set == found.geometric.min() and found.functional_of_set == found.functional.min()
    assert found.is_separated == bool((model.predict(X) == TWO).all())


@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("factor", [1e-200, 7.0, 1e200])
def test_geometric_margins_do_not_depend_on_the_scale_of_the_weights(labels, factor):
    model = cf.LogisticRegression(0.1).fit(X, labels)
    before = cf.margins(model, X, labels)
    model.coef_, model.intercept_ = model.coef_ * factor, model.intercept_ * factor
    after = cf.margins(model, X, labels)
    np.testing.assert_allclose(after.geometric, before.geometric, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(after.functional, before.functional * factor, rtol=1e-10)


def test_more_classes_have_the_distance_to_the_nearest_boundary():
    model = cf.LogisticRegression(0.1).fit(X, THREE)
    found = cf.margins(model, X, THREE)
    scores = X @ model.coef_.T + model.intercept_
    for i in range(10):
        k = list(model.classes_).index(THREE[i])
        distances = [
            (scores[i, k] - scores[i, j]) / np.linalg.norm(model.coef_[k] - model.coef_[j]) for j in range(3) if j != k
        ]
        assert found.geometric[i] == pytest.approx(min(distances))
        moved = X[i] - 1.001 * min(distances) * _towards(model, k, int(np.argmin(distances)))
        assert model.predict(moved[None])[0] != THREE[i] or found.geometric[i] < 0


def _towards(model, k, place):
    others = [j for j in range(3) if j != k]
    direction = model.coef_[k] - model.coef_[others[place]]
    return direction / np.linalg.norm(direction)


def test_what_has_no_margin_is_refused_in_words():
    model = cf.LogisticRegression(0.1).fit(X, TWO)
    with pytest.raises(ValueError, match="not among the classes"):
        cf.margins(model, X[:3], ["a", "b", "c"])
    with pytest.raises(ValueError, match="2 columns"):
        cf.margins(model, X[:, :2], TWO)
    with pytest.raises(TypeError, match="linear classifiers"):
        cf.margins(cf.GaussianNB().fit(X, TWO), X, TWO)
    model.coef_ = model.coef_ * 0
    with pytest.raises(ValueError, match="no boundary"):
        cf.margins(model, X, TWO)
