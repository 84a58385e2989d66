"""Pictures of trees, of boosting, of importance and of dependence show the numbers that they are made of."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge as TheirRidge

import certifit as cf
from certifit.evaluation.pictures.trees import node_answers, tree_boxes, vote_margins

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def no_figures_stay():
    from matplotlib import pyplot

    yield
    pyplot.close("all")


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + X[:, 1] * (X[:, 2] > 0) + 0.2 * rng.normal(size=n)


def test_boxes_stand_over_the_middle_of_their_children_and_hold_their_shares():
    X, y = rows()
    model = cf.DecisionTreeClassifier(max_depth=5).fit(X, np.digitize(y, [-0.7, 0.7]))
    tree = model.tree_
    boxes = tree_boxes(tree, list(model.column_names_), node_answers(model), 4)
    assert [box.node for box in boxes if box.depth < 4] == list(np.flatnonzero(tree.depths < 4))
    for place, box in enumerate(boxes):
        below = [other for other in boxes if other.parent == place]
        assert len(below) == (2 if tree.left[box.node] and box.depth < 4 else 0)
        assert np.isclose(box.share, tree.weight[box.node] / tree.weight[0])
        assert np.isclose(sum(box.parts), 1)
        if below:
            assert np.isclose(box.x, (below[0].x + below[1].x) / 2)
            assert below[0].x < below[1].x
            assert "≤" in box.question
    ends = sorted(box.x for place, box in enumerate(boxes) if not any(other.parent == place for other in boxes))
    assert ends == list(range(len(ends)))


@pytest.mark.parametrize("is_class", [True, False])
def test_texts_of_a_tree_of_four_levels_do_not_overlap(is_class):
    X, y = rows(600)
    model = cf.DecisionTreeClassifier(max_depth=4) if is_class else cf.DecisionTreeRegressor(max_depth=4)
    display = cf.TreeDisplay.from_estimator(model.fit(X, y > 0 if is_class else y))
    display.figure_.canvas.draw()
    frames = [text.get_window_extent() for text in display.texts_]
    assert len(frames) == len(display.boxes)
    for k, frame in enumerate(frames):
        assert not any(frame.overlaps(other) for other in frames[k + 1 :])


def test_a_tree_of_one_leaf_and_one_of_categories_are_drawn():
    cf.TreeDisplay.from_estimator(cf.DecisionTreeRegressor().fit([[0.0], [0.0]], [1.0, 1.0]))
    X = np.array([[0.0], [1.0], [2.0]])
    display = cf.TreeDisplay.from_estimator(
        cf.DecisionTreeRegressor(categorical_features=[0], max_depth=1).fit(X, [5.0, 1.0, 5.0])
    )
    assert display.boxes[0].question == "x0 in {1}"
    with pytest.raises(TypeError, match="no decision tree"):
        cf.TreeDisplay.from_estimator(cf.LinearRegression().fit(X, [1.0, 2.0, 3.5]))


def test_boosting_is_drawn_under_its_bound_and_margins_are_shares_of_votes():
    X, y = rows()
    model = cf.AdaBoostClassifier(30).fit(X, y > 0)
    display = cf.BoostingDisplay.from_estimator(model, X, y > 0)
    assert (display.error <= display.bound + 1e-12).all()
    assert np.allclose(display.test_error, display.error)
    margins = vote_margins(model, X, y > 0)
    assert np.isclose(margins.min(), model.certificate_.margin)
    assert np.isclose(np.mean(margins <= 0), display.error[-1])
    drawn = cf.MarginDisplay.from_estimator(model, X, y > 0, rounds=(1, 5))
    assert list(drawn.margins) == [1, 5, 30]
    with pytest.raises(TypeError, match="no AdaBoostClassifier"):
        cf.BoostingDisplay.from_estimator(cf.LinearRegression().fit(X, y))


def test_importance_is_the_increase_of_the_loss_and_its_interval_covers():
    X = rows(400)[0]
    model = TheirRidge().fit(X, X[:, 0])
    result = cf.permutation_importance(model, X, X[:, 0])
    # Shuffling x0 of y = x0 adds E (x0 - x0')^2 = 2 var(x0); the others nothing.
    assert result.low[0] < 2 * X[:, 0].var() < result.high[0]
    assert np.allclose(result.values[1:], 0, atol=0.05)
    covered = 0
    for seed in range(60):
        new = np.random.default_rng(seed).normal(size=(150, 3))
        result = cf.permutation_importance(model, new, new[:, 0], n_repeats=2, random_state=seed)
        covered += result.low[0] <= 2 <= result.high[0]
    assert covered > 48


def test_importance_takes_frames_classes_and_weights():
    X, y = rows(200)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = cf.DecisionTreeClassifier(max_depth=4).fit(frame.to_numpy(), y > 0)
    result = cf.permutation_importance(model, X, y > 0, sample_weight=np.where(np.arange(200) < 100, 1.0, 0.0))
    half = cf.permutation_importance(model, X, y > 0)
    assert result.loss != half.loss
    assert "share of wrong classes" in str(result)
    assert len(cf.ImportanceDisplay.from_estimator(model, X, y > 0).bars_) == 3
    with pytest.raises(ValueError, match="n_repeats"):
        cf.permutation_importance(model, X, y > 0, n_repeats=1)


def test_dependence_is_the_mean_of_the_curves_and_of_one_column_the_staircase():
    X, y = rows()
    model = cf.DecisionTreeRegressor(max_depth=4).fit(X, y)
    display = cf.DependenceDisplay.from_estimator(model, X, 0, grid_points=30)
    changed = X[np.unique(np.linspace(0, 299, 50).astype(int))].copy()
    changed[:, 0] = display.grid[7]
    assert np.allclose(display.curves[:, 7], model.predict(changed))
    assert np.allclose(display.mean_.get_ydata(), display.curves.mean(axis=0))
    stairs = cf.DecisionTreeRegressor(max_depth=3).fit(X[:, :1], y)
    display = cf.DependenceDisplay.from_estimator(stairs, X[:, :1], 0, y=y)
    assert len(np.unique(display.curves)) <= 8
    classes = cf.DecisionTreeClassifier(max_depth=3).fit(X, y > 0)
    assert "probability of True" in cf.DependenceDisplay.from_estimator(classes, X, "x1").what
    with pytest.raises(ValueError, match="column must be one of"):
        cf.DependenceDisplay.from_estimator(model, X, "speed")
