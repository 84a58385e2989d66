"""One fit per training set gives the scores of a refit for every depth, pruning and number of rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import certifit as cf

GRIDS: dict[str, tuple[Any, dict[str, list[Any]]]] = {
    "depth": (cf.DecisionTreeClassifier(min_samples_leaf=2), {"max_depth": [1, 3, None]}),
    "leaves": (cf.DecisionTreeRegressor(), {"max_leaf_nodes": [2, 5, None]}),
    "pruning": (cf.DecisionTreeRegressor(max_depth=4), {"ccp_alpha": [0.0, 0.05, 0.5], "min_samples_leaf": [1, 4]}),
    "trees of a median": (cf.AdaBoostRegressor(max_depth=2), {"n_estimators": [1, 3, 8]}),
    "rounds": (cf.AdaBoostClassifier(), {"n_estimators": [1, 4, 20], "learning_rate": [0.5, 1.0]}),
}


@pytest.mark.parametrize("name", GRIDS)
def test_stages_have_the_scores_of_refits(name):
    model, grid = GRIDS[name]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)).round(1)
    score = X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=90)
    is_number = not hasattr(model, "predict_proba")
    y = score if is_number else np.where(score > 0, "yes", "no")
    folds = cf.Folds(3)
    scoring = "neg_mean_squared_error" if is_number else "accuracy"
    found = cf.CrossValidated(model, grid, cv=folds, scoring=scoring).fit(X, y)
    assert found.best_estimator_.certificate_.holds
    splits = [(train, test) for train, test in folds.split(X, y)]
    for candidate, stated in zip(found.cv_results_["params"], found.cv_results_["mean_test_score"], strict=True):
        scores = []
        for train, test in splits:
            predicted = clone(model).set_params(**candidate).fit(X[train], y[train]).predict(X[test])
            right = -np.square(predicted - y[test]) if is_number else predicted == y[test]
            scores.append(np.mean(right))
        assert np.isclose(stated, np.mean(scores)), candidate


def test_the_depth_and_the_rounds_are_chosen_without_a_grid():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] * X[:, 1] > 0
    assert cf.CrossValidated(cf.DecisionTreeClassifier(), cv=3).fit(X, y).best_params_["max_depth"] > 1
    assert "n_estimators" in cf.CrossValidated(cf.AdaBoostClassifier(), cv=3).fit(X, X[:, 0] > 0).best_params_
