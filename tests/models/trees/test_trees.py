"""Decision trees beside brute force, beside scikit-learn, and their certificates beside changed trees."""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from reference import impurity, split_decreases
from sklearn.tree import DecisionTreeClassifier as TheirClassifier
from sklearn.tree import DecisionTreeRegressor as TheirRegressor

import certifit as cf
from certifit.models.trees.state import TreeState

CRITERIA = ("gini", "entropy", "squared_error", "poisson")
EVERY = pytest.mark.parametrize("criterion", CRITERIA)


def problem(criterion: str, n: int = 60, seed: int = 0, gaps: float = 0.1) -> tuple[Any, Any, Any]:
    """Rows with ties and missing values, a target of the criterion's kind, and weights."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 4, n), rng.normal(size=n).round(1)]).astype(float)
    score = X[:, 0] * (X[:, 1] - 1) + X[:, 2] + 0.5 * rng.normal(size=n)
    X[rng.random(X.shape) < gaps] = np.nan
    targets = {
        "gini": np.digitize(score, [-1.0, 0.5]),
        "entropy": score > 0,
        "squared_error": score,
        "poisson": rng.poisson(np.exp(0.4 * score)).astype(float),
    }
    return X, targets[criterion], rng.integers(1, 4, n).astype(float)


def model_of(criterion: str, **parameters: Any) -> Any:
    is_class = criterion in ("gini", "entropy")
    cls = cf.DecisionTreeClassifier if is_class else cf.DecisionTreeRegressor
    return cls(criterion=criterion, **parameters)


def node_rows(tree: TreeState, leaves: Any) -> list[Any]:
    """The rows of every node."""
    rows = [np.flatnonzero(leaves == node) for node in range(tree.n_nodes)]
    for node in reversed(range(1, tree.n_nodes)):
        parent = tree.parents[node]
        rows[parent] = np.union1d(rows[parent], rows[node])
    return rows


@EVERY
@pytest.mark.parametrize("least", [1, 4])
@pytest.mark.slow
def test_every_split_is_the_best_of_its_node_and_every_leaf_has_none(criterion, least):
    for seed in range(2):
        X, y, weight = problem(criterion, n=35, seed=seed)
        model = model_of(criterion, min_samples_leaf=least).fit(X, y, weight)
        tree = model.tree_
        for node, rows in enumerate(node_rows(tree, model.apply(X))):
            own = impurity(criterion, y[rows], weight[rows])
            assert np.isclose(tree.impurity[node], own, atol=1e-12)
            decreases = split_decreases(criterion, X[rows], y[rows], weight[rows], least)
            best = max(decreases, default=-1.0) * weight[rows].sum() / weight.sum()
            if tree.left[node]:
                assert np.isclose(tree.decrease[node], best, rtol=1e-9, atol=1e-12)
            else:
                assert best < 0 or own <= 1e-12


@EVERY
def test_leaves_hold_shares_or_means(criterion):
    X, y, weight = problem(criterion)
    model = model_of(criterion, max_depth=3).fit(X, y, weight)
    leaves = model.apply(X)
    for leaf in np.unique(leaves):
        rows = leaves == leaf
        if hasattr(model, "classes_"):
            wanted = [weight[rows][y[rows] == label].sum() / weight[rows].sum() for label in model.classes_]
            assert np.allclose(model.predict_proba(X[rows]), wanted)
        else:
            assert np.allclose(model.predict(X[rows]), np.average(y[rows], weights=weight[rows]))


def arrays(model: Any) -> list[bytes]:
    return [np.asarray(part).tobytes() for part in vars(model.tree_).values() if isinstance(part, np.ndarray)][:8]


@EVERY
def test_weight_two_is_the_row_twice_and_the_order_of_rows_is_nothing(criterion, rng):
    X, y, weight = problem(criterion)
    model = model_of(criterion, min_samples_leaf=2).fit(X, y, weight)
    rows = rng.permutation(np.repeat(np.arange(len(y)), weight.astype(int)))
    assert arrays(model_of(criterion, min_samples_leaf=2).fit(X[rows], y[rows])) == arrays(model)


@EVERY
def test_a_large_tree_has_the_bits_of_one_thread(criterion):
    X, y, _ = problem(criterion, n=5000, seed=4, gaps=0.02)
    found = []
    for n_threads in (1, 3):
        with cf.threads(n_threads):
            found.append(arrays(model_of(criterion).fit(X, y)))
    assert found[0] == found[1]


@EVERY
def test_a_monotone_change_of_a_column_changes_thresholds_only(criterion):
    X, y, weight = problem(criterion)
    before = model_of(criterion).fit(X, y, weight)
    after = model_of(criterion).fit(np.arctan(X) * 3 + 5, y, weight)
    assert np.array_equal(before.apply(X), after.apply(np.arctan(X) * 3 + 5))
    assert np.allclose(before.tree_.decrease, after.tree_.decrease, rtol=1e-9)


@pytest.mark.parametrize("max_bins", [None, 50])
def test_the_order_of_columns_changes_their_numbers_only(max_bins, rng):
    X = rng.normal(size=(300, 5))
    y = X[:, 3] * X[:, 1] + np.sin(X[:, 4]) + 0.1 * rng.normal(size=300)
    order = np.array([4, 2, 0, 3, 1])
    options = {"max_depth": 4, "min_samples_leaf": 5, "max_bins": max_bins}  # deep nodes of few rows have ties
    first = cf.DecisionTreeRegressor(**options).fit(X, y).tree_
    second = cf.DecisionTreeRegressor(**options).fit(X[:, order], y).tree_
    splits = first.left > 0
    assert np.array_equal(first.left, second.left) and np.array_equal(first.threshold, second.threshold)
    assert np.array_equal(first.feature[splits], order[second.feature[splits]])


def test_exclusive_or_is_split_where_nothing_decreases():
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    model = cf.DecisionTreeClassifier().fit(X, [0, 1, 1, 0])
    assert model.tree_.decrease[0] == 0 and model.score(X, [0, 1, 1, 0]) == 1
    assert cf.DecisionTreeClassifier(min_impurity_decrease=1e-9).fit(X, [0, 1, 1, 0]).get_n_leaves() == 1


def test_missing_values_alone_can_be_a_split():
    X = np.array([[1.0], [2.0], [np.nan], [np.nan], [3.0]])
    model = cf.DecisionTreeRegressor().fit(X, [1.0, 1.0, 7.0, 7.0, 1.0])
    assert model.predict([[np.nan], [100.0]]).tolist() == [7.0, 1.0]
    assert model.rules() == "if x0 is known: 1 (of 3)\nelse: 7 (of 2)"


def test_missing_values_that_no_row_had_go_where_more_rows_go():
    model = cf.DecisionTreeRegressor(max_depth=1).fit([[1.0], [2.0], [3.0], [9.0]], [0.0, 0.0, 0.0, 5.0])
    assert model.predict([[np.nan]]).tolist() == [0.0]


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_scikit_learn_grows_a_tree_of_the_same_decreases(criterion):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 5)).astype(np.float32).astype(float)
    score = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=3000)
    y = score > 0 if criterion == "gini" else score
    theirs = (TheirClassifier if criterion == "gini" else TheirRegressor)(max_depth=4, random_state=0).fit(X, y)
    ours = model_of(criterion, max_depth=4).fit(X, y)
    assert ours.get_n_leaves() == theirs.get_n_leaves()
    assert np.allclose(ours.feature_importances_, theirs.feature_importances_, rtol=1e-6)
    assert np.array_equal(ours.predict(X), theirs.predict(X)) or np.allclose(ours.predict(X), theirs.predict(X))
    few = type(theirs)(max_leaf_nodes=9, random_state=0).fit(X, y)
    assert np.allclose(model_of(criterion, max_leaf_nodes=9).fit(X, y).feature_importances_, few.feature_importances_)


def subtrees(tree: TreeState) -> list[TreeState]:
    """Every tree that is left when nodes become leaves."""
    inner = np.flatnonzero(tree.left)
    found = []
    for size in range(len(inner) + 1):
        for nodes in combinations(inner.tolist(), size):
            flags = np.zeros(tree.n_nodes, dtype=bool)
            flags[list(nodes)] = True
            found.append(tree.with_leaves(flags))
    return found


def cost(tree: TreeState, alpha: float) -> float:
    leaves = tree.left == 0
    return float((tree.weight * tree.impurity)[leaves].sum() / tree.weight[0] + alpha * tree.n_leaves)


@EVERY
def test_pruning_finds_the_smallest_of_the_best_subtrees(criterion):
    X, y, weight = problem(criterion)
    full = model_of(criterion, max_leaf_nodes=9).fit(X, y, weight)
    path = full.cost_complexity_pruning_path(X, y, weight)
    every = subtrees(full.tree_)
    assert (np.diff(path.ccp_alphas) >= 0).all() and (np.diff(path.n_leaves) < 0).all() and path.n_leaves[-1] == 1
    for low, high in zip(path.ccp_alphas, [*path.ccp_alphas[1:], path.ccp_alphas[-1] * 2 + 1], strict=True):
        alpha = (low + high) / 2
        if not low < alpha < high:
            continue
        found = model_of(criterion, max_leaf_nodes=9, ccp_alpha=alpha).fit(X, y, weight)
        least = min(cost(tree, alpha) for tree in every)
        assert np.isclose(cost(found.tree_, alpha), least, rtol=1e-9)
        assert found.certificate_.holds


@EVERY
@pytest.mark.slow
def test_changed_numbers_and_other_rows_are_refused(criterion):
    X, y, weight = problem(criterion)
    model = model_of(criterion, max_depth=4).fit(X, y, weight)
    assert model.certificate_.holds and cf.verify(model, X, y, weight)
    tree = model.tree_
    for name in ("threshold", "weight", "values", "impurity", "decrease"):
        for place in np.flatnonzero(np.isfinite(getattr(tree, name).ravel()) & (getattr(tree, name).ravel() != 0)):
            changed = getattr(tree, name).copy()
            changed.flat[place] *= 1 + 1e-4
            model.tree_ = replace(tree, **{name: changed})
            assert not cf.verify(model, X, y, weight), (name, place)
    model.tree_ = tree
    other = X.copy()
    other[:, 0] += 0.3
    assert not cf.verify(model, other, y, weight)


def test_a_row_is_led_to_its_leaf_in_words():
    X, y = [[1.0, 5.0], [2.0, 3.0], [8.0, 1.0], [8.0, 7.0]], ["a", "a", "b", "c"]
    model = cf.DecisionTreeClassifier().fit(X, y)
    assert model.explain([[8.5, 2.0]]) == ["x0 > 5 and x1 <= 4: b (1 of 1)"]
    assert model.rules(max_depth=1) == "if x0 <= 5: a (2 of 2)\nelse: b (1 of 2), split further"
    path = model.decision_path(X)
    assert path.shape == (4, 5) and path.sum(axis=1).tolist() == [2, 2, 3, 3]
    assert [step["column"] for step in model.history_] == ["x0", "x1"]
    assert cf.DecisionTreeClassifier().fit([[1.0], [1.0]], ["a", "b"]).predict([[1.0]]).tolist() == ["a"]


@pytest.mark.parametrize(
    "model, y, message",
    [
        (cf.DecisionTreeRegressor(criterion="poisson"), [1.0, -1.0, 2.0], "needs y >= 0. Row 1 is -1"),
        (cf.DecisionTreeRegressor(criterion="poisson"), [0.0, 0.0, 0.0], "needs a y above 0"),
        (cf.DecisionTreeRegressor(), [1e300, -1e300, 0.0], "power of ten"),
        (cf.DecisionTreeRegressor(max_depth=0), [1.0, 2.0, 3.0], "max_depth must be a whole number >= 1 or None"),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_words(model, y, message):
    with pytest.raises(ValueError, match=message):
        model.fit([[1.0], [2.0], [3.0]], y)


def test_an_offset_of_the_target_is_no_excuse_for_a_wrong_weight():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 2))
    y = 1e12 + X[:, 0] + rng.normal(size=40)
    model = cf.DecisionTreeRegressor(max_depth=2).fit(X, y)
    assert model.certificate_.holds
    weight = model.tree_.weight.copy()
    weight[1] *= 1 + 1e-6
    changed = copy.copy(model)
    changed.tree_ = replace(model.tree_, weight=weight)
    assert not changed.certify(X, y).holds


@pytest.mark.parametrize("max_bins", [None, 63])
def test_an_offset_of_y_and_spread_weights_cost_no_split(max_bins, rng):
    X, weight = rng.normal(size=(800, 4)), 10.0 ** rng.uniform(-6, 6, 800)
    far = 1e11 + 2 * X[:, 0] + np.sin(3 * X[:, 1]) + 0.3 * rng.normal(size=800)
    near = far - 1e11  # exact
    trees = [cf.DecisionTreeRegressor(max_depth=4, max_bins=max_bins).fit(X, y, weight).tree_ for y in (near, far)]
    assert np.array_equal(trees[0].feature, trees[1].feature)
    assert np.array_equal(trees[0].threshold, trees[1].threshold)
    assert np.allclose(trees[0].impurity, trees[1].impurity, rtol=1e-9, atol=1e-12)
    assert np.allclose(trees[0].values, trees[1].values - 1e11, atol=1e-4)
