"""Boosted regression trees beside their formulas, beside scikit-learn, and beside changed models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import AdaBoostRegressor as Theirs
from sklearn.tree import DecisionTreeRegressor as TheirTree

import certifit as cf

LOSSES = {"linear": lambda u: u, "square": lambda u: u**2, "exponential": lambda u: 1 - np.exp(-u)}


def rows(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n, 2))
    return X, np.sin(X[:, 0]) * 2 + 0.5 * X[:, 1] + 0.2 * rng.normal(size=n), rng.uniform(0.5, 2, n)


@pytest.mark.parametrize("loss", LOSSES)
def test_rounds_are_those_of_the_formulas(loss):
    X, y, weight = rows()
    model = cf.AdaBoostRegressor(6, loss=loss, max_depth=2, learning_rate=0.7).fit(X, y, weight)
    w, answers, alphas = weight / weight.sum(), [], []
    for j in range(6):
        tree = TheirTree(max_depth=2, random_state=0).fit(X, y, w)
        residuals = np.abs(y - tree.predict(X))
        losses = LOSSES[loss](residuals / residuals.max())
        error = w @ losses
        alphas.append(0.7 * np.log((1 - error) / error))
        answers.append(tree.predict(X))
        assert np.isclose(model.estimator_errors_[j], error)
        assert np.isclose(model.estimator_weights_[j], alphas[j])
        w = w * np.exp(-alphas[j] * (1 - losses))
        w /= w.sum()
    order = np.argsort(np.array(answers).T, axis=1)
    reached = np.cumsum(np.array(alphas)[order], axis=1)
    place = (reached >= reached[:, -1:] / 2).argmax(axis=1)
    medians = np.array(answers).T[np.arange(len(X)), order[np.arange(len(X)), place]]
    assert np.allclose(model.predict(X), medians)
    assert model.certificate_.holds


def test_it_predicts_as_well_as_the_peer():
    X, y, _ = rows(600)
    new, truth, _ = rows(600, seed=1)
    ours = cf.AdaBoostRegressor(50).fit(X, y)
    theirs = Theirs(TheirTree(max_depth=3), n_estimators=50, random_state=0).fit(X, y)
    assert ours.score(new, truth) > theirs.score(new, truth) - 0.02


def test_weights_are_copies_and_the_order_of_rows_does_not_matter():
    X, y, _ = rows(80)
    weight = np.random.default_rng(1).integers(0, 3, 80)
    copies = np.random.default_rng(2).permutation(np.repeat(np.arange(80), weight))
    one, other = cf.AdaBoostRegressor(8).fit(X, y, weight), cf.AdaBoostRegressor(8).fit(X[copies], y[copies])
    assert np.array_equal(one.median_.threshold, other.median_.threshold)
    assert np.array_equal(one.predict(X), other.predict(X))


def test_rounds_end_at_an_exact_tree_and_before_one_no_better_than_chance():
    X = np.arange(8.0)[:, None]
    exact = cf.AdaBoostRegressor(9, max_depth=7).fit(X, X[:, 0] ** 2)
    assert exact.median_.n_rounds == 1
    assert np.array_equal(exact.predict(X), X[:, 0] ** 2)
    assert exact.certificate_.holds
    constant = cf.AdaBoostRegressor(5).fit(np.zeros((6, 1)), [0.0, 1, 0, 1, 0, 1])
    assert constant.median_.n_rounds == 1
    assert np.allclose(constant.predict([[0.0]]), 0.5)
    assert constant.certificate_.holds


def test_stages_are_shorter_fits():
    X, y, _ = rows()
    model = cf.AdaBoostRegressor(7).fit(X, y)
    stages = list(model.staged_predict(X))
    for n in (1, 4, 7):
        assert np.allclose(stages[n - 1], cf.AdaBoostRegressor(n).fit(X, y).predict(X))


def test_changed_models_are_refused():
    X, y, _ = rows()
    model = cf.AdaBoostRegressor(5).fit(X, y)
    state = model.median_
    inner, leaf = int(np.flatnonzero(state.left)[0]), int(np.flatnonzero(state.left == 0)[-1])
    for name, place, change in (
        ("values", leaf, 1e-6),
        ("threshold", inner, 1e-9),
        ("alpha", 2, 1e-6),
        ("error", 3, 1e-7),
    ):
        changed = getattr(state, name).copy()
        changed[place] += change
        model.median_ = replace(state, **{name: changed})
        assert not model.certify(X, y).holds, name
    model.median_ = state
    assert model.certify(X, y).holds


def test_missing_values_and_a_file(tmp_path):
    X, y, weight = rows()
    X[::7, 0] = np.nan
    model = cf.AdaBoostRegressor(5).fit(X, y, weight)
    cf.save(model, tmp_path / "median.model")
    again = cf.load(tmp_path / "median.model")
    assert np.array_equal(again.predict(X), model.predict(X))
    assert [row["alpha"] for row in again.history_] == [row["alpha"] for row in model.history_]
    assert cf.verify(tmp_path / "median.model", X, y, sample_weight=weight).holds
