"""Claims about the way of a perceptron: lengths per epoch under their bound, and the picture of them."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pytest
from matplotlib.figure import Figure

import certifit as cf
from certifit.modelfile.files import from_bytes, to_bytes

XOR = (np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), [0, 0, 1, 1])


@pytest.fixture
def separable(rng):
    X = rng.normal(size=(80, 2))
    return X[np.abs(X.sum(axis=1)) > 0.2], (X.sum(axis=1) > 0)[np.abs(X.sum(axis=1)) > 0.2]


@pytest.mark.parametrize("start", [None, [3.0, -2.0, 5.0]])
@pytest.mark.parametrize("delta", [0.0, 2.0])
def test_the_length_stays_under_what_the_updates_allow(separable, start, delta):
    X, y = separable
    model = cf.Perceptron(delta, start=start).fit(X, y)
    theta, signs = np.zeros(3) if start is None else np.array(start), np.where(y, 1.0, -1.0)
    for row in model.history_:  # the rule by hand
        mistakes = 0
        for example in signs[:, None] * np.column_stack([X, np.ones(len(X))]):
            if theta @ example <= delta:
                theta, mistakes = theta + example, mistakes + 1
        assert row["mistakes"] == mistakes
        assert row["norm"] == pytest.approx(np.linalg.norm(theta), rel=1e-12)
    display = cf.ConvergenceDisplay.from_estimator(model, ax=Figure().subplots())
    np.testing.assert_array_equal(display.line_.get_ydata(), display.norm)
    assert (display.norm <= display.bound * (1 + 1e-12)).all() and display.updates[-1] == model.n_updates_
    assert display.mark_ is None and "Converged" in display.caption


def test_what_cannot_be_parted_shows_the_largest_length_and_the_repeat():
    with pytest.warns(match="NOT converged"):
        model = cf.Perceptron().fit(*XOR)
    display = cf.ConvergenceDisplay.from_estimator(model, ax=Figure().subplots())
    first, last = model.cycle_
    assert display.norm[first] == display.norm[last]
    assert display.bound_line_.get_ydata()[0] == display.norm.max() and np.isnan(display.bound[-1])
    np.testing.assert_array_equal(display.mark_.get_ydata(), display.norm[[first, last]])
    with pytest.raises(ValueError, match="Leave x and y out"):
        cf.ConvergenceDisplay.from_estimator(model, y="objective")


def test_a_file_keeps_the_last_length(separable):
    model = cf.Perceptron().fit(*separable)
    again = from_bytes(to_bytes(model))
    assert again.history_[-1]["norm"] == pytest.approx(model.history_[-1]["norm"], rel=1e-15)
    assert all(np.isnan(row["norm"]) for row in again.history_[:-1])
    cf.ConvergenceDisplay.from_estimator(again, ax=Figure().subplots())


def test_parts_have_lengths_too(separable):
    X, y = separable
    model = cf.Perceptron().partial_fit(X[:20], y[:20], classes=[False, True]).partial_fit(X[20:], y[20:])
    theta = np.append(model.coef_, model.intercept_)
    assert len(model.history_) == 2 and model.history_[-1]["norm"] == pytest.approx(np.linalg.norm(theta))
