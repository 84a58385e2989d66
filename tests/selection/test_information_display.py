"""The picture of the filter holds the scores that were found."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from certifit.selection.information.filter import MutualInformationDisplay, MutualInformationFilter


@pytest.fixture
def fitted(rng):
    X = pd.DataFrame(rng.normal(size=(200, 6)), columns=list("abcdef"))
    return MutualInformationFilter(2).fit(X, X["c"] + 0.5 * X["e"])


@pytest.fixture(autouse=True)
def no_window():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    yield
    matplotlib.pyplot.close("all")


def test_bars_are_the_scores_the_best_first(fitted):
    display = MutualInformationDisplay.from_estimator(fitted)
    assert [bar.get_width() for bar in display.bars_] == sorted(fitted.scores_, reverse=True)
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names == [row["feature"] for row in fitted.table_] and names[0] == "c"
    assert len({bar.get_facecolor() for bar in display.bars_[:2]}) == 1
    assert display.bars_[0].get_facecolor() != display.bars_[5].get_facecolor()
    assert "nats" in display.ax_.get_xlabel()


def test_only_the_best_are_drawn_and_the_title_says_so(fitted):
    display = MutualInformationDisplay.from_estimator(fitted, max_features=3)
    assert len(display.bars_) == 3
    assert "best 3 of 6 features" in display.ax_.get_title(loc="left")
    assert display.plot(max_features=6).ax_.get_title(loc="left").count("best") == 0


def test_axes_given_are_used_and_attributes_draw_again(fitted):
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    display = MutualInformationDisplay.from_estimator(fitted, ax=ax)
    assert display.ax_ is ax and display.figure_ is ax.figure
    other = MutualInformationDisplay(
        scores=display.scores, feature_names=display.feature_names, selected=display.selected
    ).plot()
    assert [bar.get_width() for bar in other.bars_] == [bar.get_width() for bar in display.bars_]


def test_from_data_fits_a_filter(rng):
    X = rng.normal(size=(100, 3))
    display = MutualInformationDisplay.from_data(X, X[:, 1], n_features_to_select=1, n_neighbors=5)
    expected = MutualInformationFilter(1, n_neighbors=5).fit(X, X[:, 1])
    assert np.array_equal(display.scores, expected.scores_)
    assert display.selected.tolist() == [False, True, False]


def test_what_cannot_be_drawn_is_refused(fitted):
    with pytest.raises(NotFittedError):
        MutualInformationDisplay.from_estimator(MutualInformationFilter())
    with pytest.raises(ValueError, match="one entry per feature"):
        MutualInformationDisplay(scores=[1.0], feature_names=["a", "b"], selected=[True])
    with pytest.raises(ValueError, match="max_features must be an integer >= 1"):
        MutualInformationDisplay.from_estimator(fitted, max_features=0)


def test_missing_matplotlib_names_the_extra(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"needs matplotlib: pip install 'certifit\[plot\]'"):
        MutualInformationDisplay.from_estimator(fitted)
