"""Scree and biplot: the numbers drawn are those of the fit."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.decomposition import PCA as PeerPCA
from sklearn.exceptions import NotFittedError

import certifit as cf

mpl.use("Agg")


@pytest.fixture
def rows(rng):
    return rng.normal(size=(300, 6)) * [5, 4, 3, 2, 1, 0] + 2


def test_bars_are_the_shares_and_the_line_their_sums(rows):
    import matplotlib.pyplot as plt

    model = cf.PCA(2).fit(rows)
    shares = 100 * PeerPCA(svd_solver="full").fit(rows).explained_variance_ratio_
    display = cf.ScreeDisplay.from_estimator(model)
    assert np.allclose([bar.get_height() for bar in display.bars_], shares, atol=1e-10)
    assert np.allclose(display.line_.get_ydata(), np.cumsum(shares))
    colours = {bar.get_facecolor() for bar in display.bars_[:2]}, {bar.get_facecolor() for bar in display.bars_[2:]}
    assert all(len(own) == 1 for own in colours) and colours[0] != colours[1]
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert any(text.startswith("2 kept") for text in texts)
    plt.close(display.figure_)


def test_a_share_that_was_asked_for_is_a_level(rows):
    display = cf.ScreeDisplay.from_estimator(cf.PCA(0.9).fit(rows))
    assert display.share == 0.9
    assert any("asked: 90 %" in text.get_text() for text in display.ax_.get_legend().get_texts())
    few = cf.ScreeDisplay.from_estimator(cf.PCA(0.9).fit(rows), max_components=3)
    assert len(few.bars_) == 3 and "3 of 6" in few.ax_.get_xlabel()


def test_components_without_a_matrix_are_drawn_as_far_as_they_are_known(rows):
    display = cf.ScreeDisplay.from_estimator(cf.PCA(2, solver="randomized").fit(rows))
    assert len(display.bars_) == 2


def test_rows_without_spread_have_no_share():
    display = cf.ScreeDisplay.from_estimator(cf.PCA().fit(np.ones((5, 3))))
    assert [bar.get_height() for bar in display.bars_] == [0, 0, 0]


def test_points_are_scores_and_arrows_point_along_the_loadings(rows):
    model = cf.PCA(3).fit(rows)
    display = cf.BiplotDisplay.from_estimator(model, rows, components=(2, 0), max_arrows=4)
    assert np.allclose(display.points_[0].get_offsets(), model.transform(rows)[:, [2, 0]])
    loadings = (model.components_[[2, 0]] * np.sqrt(model.explained_variance_[[2, 0]])[:, None]).T
    assert len(display.arrows_) == 4
    longest = np.argsort(-np.linalg.norm(loadings, axis=1))[:4]
    assert set(display.arrows_) == {f"x{j}" for j in longest}
    for j in longest:
        end = np.array(display.arrows_[f"x{j}"].xy)
        assert abs(end[0] * loadings[j, 1] - end[1] * loadings[j, 0]) <= 1e-9 * np.linalg.norm(end)
        assert end @ loadings[j] > 0
    assert "component 3" in display.ax_.get_xlabel() and "component 1" in display.ax_.get_ylabel()


@pytest.mark.slow
def test_groups_are_colours(rows):
    groups = np.where(rows[:, 0] > 2, "high", "low")
    display = cf.BiplotDisplay.from_estimator(cf.PCA(2).fit(rows), rows, groups=groups)
    assert [len(points.get_offsets()) for points in display.points_] == [np.sum(groups == g) for g in ("high", "low")]


def test_both_draw_on_given_axes(rows):
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2)
    model = cf.PCA(2).fit(rows)
    assert cf.ScreeDisplay.from_estimator(model, ax=left).figure_ is figure
    assert cf.BiplotDisplay.from_estimator(model, rows, ax=right).ax_ is right
    plt.close("all")


def test_what_cannot_be_drawn_is_refused(rows):
    model = cf.PCA(2).fit(rows)
    with pytest.raises(NotFittedError):
        cf.ScreeDisplay.from_estimator(cf.PCA())
    for components in ((0, 0), (0, 2), (0, 1, 2)):
        with pytest.raises(ValueError, match="components must be two"):
            cf.BiplotDisplay.from_estimator(model, rows, components=components)
    with pytest.raises(ValueError, match="groups must have 300"):
        cf.BiplotDisplay.from_estimator(model, rows, groups=[1, 2])
    with pytest.raises(ValueError, match="max_components"):
        cf.ScreeDisplay.from_estimator(model, max_components=0)
    with pytest.raises(ValueError, match="max_arrows"):
        cf.BiplotDisplay.from_estimator(model, rows, max_arrows=-1)
    with pytest.raises(ValueError, match="two columns"):
        cf.BiplotDisplay(np.ones((3, 3)), np.ones((2, 2)), ["a", "b"])
    with pytest.raises(ValueError, match="one per column"):
        cf.BiplotDisplay(np.ones((3, 2)), np.ones((2, 2)), ["a"])
    with pytest.raises(ValueError, match="list of numbers"):
        cf.ScreeDisplay([], 1.0)
