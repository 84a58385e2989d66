"""The picture of noise, bias^2 and variance shows the numbers of its result."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

import certifit as cf
from certifit.evaluation.bias_variance import bias_variance
from certifit.evaluation.pictures.bias_variance import BiasVarianceDisplay, is_geometric


def f(x):
    return np.sin(3 * x[:, 0])


def sampler(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (40, 1))
    return x, f(x) + 0.3 * rng.normal(size=40)


@pytest.fixture(scope="module")
def result():
    points = np.linspace(-0.9, 0.9, 50)[:, None]
    model = cf.LinearRegression(basis=cf.Polynomial(1))
    options = {"param_name": "basis__degree", "param_range": range(1, 6), "n_resamples": 30, "noise": 0.09}
    return bias_variance(model, None, None, points, f, sampler=sampler, **options)


@pytest.fixture
def axes():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    yield plt.subplots()[1]
    plt.close("all")


@pytest.mark.slow
def test_lines_show_the_parts(result, axes):
    display = BiasVarianceDisplay(result).plot(axes)
    np.testing.assert_allclose(display.lines_["variance"].get_ydata(), result.variance)
    np.testing.assert_allclose(display.lines_["bias"].get_ydata(), result.bias_squared)
    np.testing.assert_allclose(display.lines_["error"].get_ydata(), result.error)
    assert axes.get_xlabel() == "basis__degree"
    assert axes.get_title() == "30 training sets drawn anew"


@pytest.mark.slow
def test_a_stack_is_as_high_as_the_error(result, axes):
    display = BiasVarianceDisplay(result).plot(axes, style="stacked")
    top = max(path.vertices[:, 1].max() for path in display.lines_["variance"].get_paths())
    assert top == pytest.approx(np.max(result.error), rel=1e-3)


def test_a_display_is_made_from_estimators(axes):
    X, y = sampler(0)
    trees = [DecisionTreeRegressor(max_depth=depth, random_state=0) for depth in (1, 3)]
    display = BiasVarianceDisplay.from_estimator(
        trees, X, y, X, f, n_resamples=5, complexity=["stump", "tree"], ax=axes
    )
    assert [text.get_text() for text in axes.get_xticklabels()] == ["stump", "tree"]
    assert display.result.n_resamples == 5


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda result: BiasVarianceDisplay("result"), "Pass the result of bias_variance"),
        (lambda result: BiasVarianceDisplay(result).plot(style="pie"), "'lines' or 'stacked'. Got 'pie'"),
    ],
)
def test_a_display_refuses_what_it_cannot_draw(result, call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call(result)


def test_a_display_without_matplotlib_says_what_to_install(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"BiasVarianceDisplay needs matplotlib: pip install 'certifit\[plot\]'"):
        BiasVarianceDisplay(result).plot()


@pytest.mark.parametrize(
    "values, expected",
    [
        (np.logspace(-3, 2, 6), True),
        ([1, 2, 3, 4], False),
        ([1, 10], False),
        ([0, 1, 10], False),
        ([1, 2, 4, 8, 16], True),
    ],
)
def test_equal_ratios_are_seen(values, expected):
    assert is_geometric(np.array(values, dtype=float)) is expected
