"""Pictures of learning and validation curves show the numbers of their results."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor

import certifit as cf
from certifit.selection.compare.curves import learning_curve
from certifit.selection.pictures import LearningCurveDisplay, ValidationCurveDisplay


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(300, 5)) * [1.0, 10.0, 0.1, 3.0, 1.0] + [0.0, 100.0, 0.0, -5.0, 1.0]
    return X, X @ [1.0, 0.2, 3.0, 0.0, -1.0] + rng.normal(size=300)


@pytest.fixture
def axes():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    yield plt.subplots()[1]
    plt.close("all")


def test_learning_curve_is_drawn_in_bands_of_one_standard_error(rows, axes):
    curve = learning_curve(cf.LinearRegression(), *rows)
    display = LearningCurveDisplay(curve).plot(axes)
    assert display.ax_ is axes
    np.testing.assert_allclose(display.lines_["validation"].get_xydata(), np.c_[curve.sizes, curve.validation_mean])
    corners = display.bands_["validation"].get_paths()[0].vertices[:, 1]
    ends = [curve.validation_mean + sign * curve.validation_standard_error for sign in (-1, 1)]
    assert corners.min() == pytest.approx(np.min(ends))
    assert corners.max() == pytest.approx(np.max(ends))
    assert axes.get_xlabel() == "training rows"
    assert axes.get_ylabel() == "R2"


def test_validation_curve_marks_the_best_and_the_simplest_within_one_standard_error(rng, axes):
    X = rng.normal(size=(60, 15))
    y = X[:, 0] + 2 * rng.normal(size=60)
    options = {"param_name": "alpha", "param_range": np.logspace(-3, 2, 20), "scoring": "neg_mean_squared_error"}
    display = ValidationCurveDisplay.from_estimator(cf.Ridge(), X, y, ax=axes, **options)
    curve = display.curve
    assert axes.get_xscale() == "log"
    assert axes.get_ylabel() == "mean squared error (lower is better)"
    assert (display.lines_["validation"].get_ydata() == -curve.validation_mean).all()
    assert display.lines_["best"].get_xdata()[0] == curve.param_range[curve.best_index]
    at = curve.one_standard_error_index
    assert at == curve.best_index or display.lines_["one_standard_error"].get_xdata()[0] == curve.param_range[at]


def test_values_without_an_order_are_drawn_by_name(rows, axes):
    options = {"param_name": "weights", "param_range": ["uniform", "distance"], "cv": 3}
    ValidationCurveDisplay.from_estimator(KNeighborsRegressor(), *rows, ax=axes, **options)
    assert [text.get_text() for text in axes.get_xticklabels()] == ["uniform", "distance"]


def test_displays_take_only_their_own_result():
    for display in (LearningCurveDisplay, ValidationCurveDisplay):
        with pytest.raises(TypeError, match="Pass the result of"):
            display([1, 2])


def test_a_display_without_matplotlib_says_what_to_install(rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"LearningCurveDisplay needs matplotlib: pip install 'certifit\[plot\]'"):
        LearningCurveDisplay.from_estimator(cf.LinearRegression(), *rows)
