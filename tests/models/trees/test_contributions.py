"""Contributions of columns beside Shapley's formula over all subsets, and their sums beside the scores."""

from __future__ import annotations

from itertools import combinations
from math import factorial
from typing import Any

import numpy as np
import pytest

import certifit as cf
from certifit.models.trees.contributions import WeightedTrees


def said(tree: dict[str, Any], known: frozenset[int], row: Any, node: int = 0) -> Any:
    """What a tree says of a row of which only some columns are known: both sides, by weight, where one is not."""
    left = int(tree["left"][node])
    if not left:
        return tree["values"][node]
    j = int(tree["feature"][node])
    if j in known:
        is_left = bool(tree["is_missing_left"][node]) if np.isnan(row[j]) else tree["goes_left"](node, row[j])
        return said(tree, known, row, left if is_left else left + 1)
    weight = tree["weight"]
    sides = [weight[child] * said(tree, known, row, child) for child in (left, left + 1)]
    return (sides[0] + sides[1]) / weight[node]


def shapley(tree: dict[str, Any], row: Any, p: int) -> list[Any]:
    """The formula: means over orders of what a column adds to those before it."""
    out = []
    for j in range(p):
        others = [k for k in range(p) if k != j]
        total = 0.0
        for size in range(p):
            share = factorial(size) * factorial(p - size - 1) / factorial(p)
            for chosen in combinations(others, size):
                known = frozenset(chosen)
                total = total + share * (said(tree, known | {j}, row) - said(tree, known, row))
        out.append(total)
    return out


def trees_of(trees: WeightedTrees) -> list[dict[str, Any]]:
    """Trees as said() reads them."""
    out = []
    for begin, end in zip(trees.ends[:-1], trees.ends[1:], strict=True):
        nodes = slice(int(begin), int(end))
        tree = {
            name: getattr(trees, name)[nodes] for name in ("feature", "left", "is_missing_left", "weight", "values")
        }
        threshold, feature = trees.threshold[nodes], trees.feature[nodes]

        def goes_left(node: int, x: float, threshold: Any = threshold, feature: Any = feature) -> bool:
            if trees.n_levels is None or not trees.n_levels[feature[node]]:
                return bool(x <= threshold[node])
            words = trees.sets[int(threshold[node])]  # type: ignore[index]
            return bool(int(words[int(x) >> 6]) >> (int(x) & 63) & 1)

        out.append(tree | {"goes_left": goes_left})
    return out


def rows_of(rng: Any, n: int = 200) -> tuple[Any, Any]:
    X = rng.normal(size=(n, 4)).round(1)
    X[:, 3] = rng.integers(0, 5, size=n)
    y = X[:, 0] * X[:, 1] + np.array([0.0, 2, -1, 1, 3])[X[:, 3].astype(int)] + (X[:, 2] > 0.5)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


@pytest.mark.parametrize("categories", [None, [3]])
def test_contributions_of_a_tree_are_shapley_values_over_all_subsets(rng, categories):
    X, y = rows_of(rng)
    model = cf.DecisionTreeRegressor(max_depth=6, categorical_features=categories).fit(X, y)
    result, tree = model.contributions(X[:6]), model.tree_
    trees = WeightedTrees(
        np.array([0, tree.n_nodes]), tree.feature, tree.left, tree.threshold, tree.is_missing_left, tree.n_levels,
        tree.sets, tree.weight, tree.values.reshape(-1, 1), 1,
    )  # fmt: skip
    for i in range(6):
        wanted = shapley(trees_of(trees)[0], X[i], 4)
        assert np.allclose(result.values[i], np.ravel(wanted), atol=1e-12)
    assert np.isclose(result.base, float(tree.values.ravel()[0]))
    assert np.allclose(result.base + result.values.sum(axis=1), model.predict(X[:6]))


def test_contributions_of_boosting_add_up_over_trees_and_subsets(rng):
    X, y = rows_of(rng)
    model = cf.GradientBoostingRegressor(3, min_samples_leaf=5, subsample=0.7).fit(X, y)
    result, trees = model.contributions(X[:4]), trees_of(model.boosting_.weighted_trees())
    for i in range(4):
        assert np.allclose(result.values[i], np.ravel(sum(np.array(shapley(tree, X[i], 4)) for tree in trees)))
    assert np.isclose(result.base, model.boosting_.start[0] + sum(said(tree, frozenset(), X[0])[0] for tree in trees))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_and_probabilities_are_base_and_contributions(rng, n_classes):
    X, y = rows_of(rng)
    labels = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    boosted = cf.GradientBoostingClassifier(5).fit(X, labels)
    result = boosted.contributions(X)
    assert np.allclose(result.base + result.values.sum(axis=1), boosted.decision_function(X))
    tree = cf.DecisionTreeClassifier(max_depth=4).fit(X, labels)
    result = tree.contributions(X)
    assert result.values.shape == (len(X), 4, n_classes)
    assert np.allclose(result.base + result.values.sum(axis=1), tree.predict_proba(X))


def test_a_column_that_no_tree_asks_for_contributes_nothing(rng):
    X, y = rows_of(rng)
    X = np.column_stack([X, np.ones(len(X))])
    model = cf.GradientBoostingRegressor(5).fit(X, y)
    result = model.contributions(X)
    assert not result.values[:, 4].any() and result.values[:, 3].any()
    words = result.of_row(0)
    assert "on average" in words and "x4" not in words
