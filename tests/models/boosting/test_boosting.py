"""Gradient boosting beside the formulas, beside a peer, and its certificate beside changed trees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

import certifit as cf
from certifit.models.adaboost.about import rounds_tried as stumps_tried
from certifit.models.boosting import derived, rounds
from certifit.models.boosting.about import rounds_tried

FAMILIES = ("gaussian", "poisson", "gamma", "tweedie", "huber", "quantile")


def problem(family: str, n: int = 300, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(1)
    score = 0.5 * X[:, 0] * X[:, 1] + np.sin(X[:, 2])
    draws = {
        "poisson": lambda: rng.poisson(np.exp(score)).astype(float),
        "gamma": lambda: rng.gamma(2, np.exp(score) / 2),
        "tweedie": lambda: np.where(rng.random(n) < 0.3, 0.0, rng.gamma(2, np.exp(score))),
    }
    y = draws[family]() if family in draws else score + 0.3 * rng.normal(size=n)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y, rng.integers(1, 4, n).astype(float)


# Slow formulas: slope and curvature at a score, per family.
SLOPES = {
    "gaussian": lambda y, z: (z - y, np.ones_like(z)),
    "poisson": lambda y, z: (np.exp(z) - y, np.exp(z)),
    "gamma": lambda y, z: (1 - y * np.exp(-z), y * np.exp(-z)),
    "tweedie": lambda y, z: (np.exp(z / 2) - y * np.exp(-z / 2), (np.exp(z / 2) + y * np.exp(-z / 2)) / 2),
}


@pytest.mark.parametrize("family", SLOPES)
def test_leaves_are_newton_steps_of_the_formulas(family):
    X, y, weight = problem(family)
    model = cf.GradientBoostingRegressor(6, family=family, l2=0.7, min_samples_leaf=5).fit(X, y, weight)
    state = model.boosting_
    z = np.full(len(y), state.start[0])
    mean = weight @ y / weight.sum()
    assert np.isclose(state.start[0], mean if family == "gaussian" else np.log(mean))
    for t in range(state.n_rounds):
        slope, curvature = (weight * part for part in SLOPES[family](y, z))
        values = state.value[state.ends[t] : state.ends[t + 1]]
        leaves = np.array([leaf_of(state, t, row) for row in X])
        for leaf in np.unique(leaves):
            rows = leaves == leaf
            assert np.isclose(values[leaf], -0.1 * slope[rows].sum() / (curvature[rows].sum() + 0.7), rtol=1e-9)
        z = z + values[leaves]
    assert np.allclose(model.predict(X), z if family == "gaussian" else np.exp(z))


def leaf_of(state: Any, tree: int, row: Any) -> int:
    """The leaf of a row, node by node."""
    node, first = 0, int(state.ends[tree])
    while state.left[first + node]:
        x, at = row[state.feature[first + node]], first + node
        is_left = bool(state.is_missing_left[at]) if np.isnan(x) else x <= state.threshold[at]
        node = int(state.left[at]) + (0 if is_left else 1)
    return node


def test_the_root_takes_the_split_of_the_largest_gain():
    X, y, weight = problem("gaussian")
    X = np.nan_to_num(X)
    model = cf.GradientBoostingRegressor(1, max_leaf_nodes=2, min_samples_leaf=1).fit(X, y, weight)
    apart = y - weight @ y / weight.sum()
    gains = {}
    for j in range(X.shape[1]):
        for value in np.unique(X[:, j])[:-1]:
            left = X[:, j] <= value
            sides = [(weight[side] @ apart[side]) ** 2 / weight[side].sum() for side in (left, ~left)]
            gains[j, value] = sum(sides)
    assert np.isclose(model.boosting_.gain[0], max(gains.values()))
    j = int(model.boosting_.feature[0])
    below = X[X[:, j] <= model.boosting_.threshold[0], j].max()
    assert np.isclose(gains[j, below], max(gains.values()))


def test_threads_change_no_bit_where_rows_are_summed_in_parts():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 8))
    y = np.sin(X[:, 0]) * X[:, 1] + 1e6 * (X[:, 2] > 3.5) + rng.normal(size=len(X))
    states = []
    for n_threads in (1, 2, 5):
        with cf.threads(n_threads):
            states.append(cf.GradientBoostingRegressor(2, max_leaf_nodes=6).fit(X, y).boosting_)
    for name in ("feature", "left", "threshold", "value", "weight", "gain", "loss"):
        assert all(np.array_equal(getattr(states[0], name), getattr(state, name)) for state in states[1:])


@pytest.mark.parametrize("leaves", [31, 150])  # led by masks of leaves, and parted at every node
def test_ranks_of_values_say_what_values_say(leaves, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 4))
    X[:, 1], X[::5, 2] = rng.integers(0, 9, len(X)), np.nan
    y = rng.poisson(np.exp(0.3 * X[:, 0] * (X[:, 1] % 3) + np.nan_to_num(X[:, 2]) / 2))
    asked = {"family": "poisson", "max_leaf_nodes": leaves, "categorical_features": [1], "early_stopping": True}
    model = cf.GradientBoostingRegressor(4, **asked).fit(X, y)
    assert model.certificate_.holds
    with cf.threads(3):
        assert model.certify(X, y) == model.certificate_
    monkeypatch.setattr(rounds, "_ranked", lambda state, n_columns: None)
    assert model.certify(X, y) == model.certificate_
    monkeypatch.setattr(derived, "MOST_NODES", 1)  # a pass per round
    assert model.certify(X, y) == model.certificate_


@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities_follow_from_scores_and_losses_from_probabilities(n_classes):
    X, score, weight = problem("gaussian")
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    model = cf.GradientBoostingClassifier(8).fit(X, y, weight)
    z = model.decision_function(X)
    chances = np.column_stack([expit(-z), expit(z)]) if n_classes == 2 else softmax(z, axis=1)
    assert np.allclose(model.predict_proba(X), chances)
    staged = list(model.staged_predict_proba(X))
    for row, p in zip(model.history_, staged, strict=True):
        assert np.isclose(row["loss"], log_loss(y, p, sample_weight=weight))
    assert np.allclose(staged[-1], chances) and model.certificate_.holds
    assert np.array_equal(list(model.staged_predict(X))[-1], model.predict(X))


@threadpool_limits.wrap(limits=1)
def test_losses_are_near_those_of_scikit_learn():
    X, score, _ = problem("gaussian", n=1500)
    theirs = HistGradientBoostingRegressor(max_iter=40, early_stopping=False).fit(X, score)
    ours = cf.GradientBoostingRegressor(40).fit(X, score)
    errors = [np.mean(np.square(model.predict(X) - score)) for model in (ours, theirs)]
    assert errors[0] < 1.1 * errors[1]
    y = score > np.median(score)
    chances = [
        model.fit(X, y).predict_proba(X)
        for model in (
            cf.GradientBoostingClassifier(40),
            HistGradientBoostingClassifier(max_iter=40, early_stopping=False),
        )
    ]
    assert log_loss(y, chances[0]) < 1.1 * log_loss(y, chances[1])


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_lowers_its_loss_and_changed_trees_are_refused(family):
    X, y, weight = problem(family)
    model = cf.GradientBoostingRegressor(5, family=family, min_samples_leaf=10, subsample=0.8, max_features=0.7)
    model.fit(X, y, weight)
    losses = [row["loss"] for row in model.history_]
    assert losses == sorted(losses, reverse=True) and losses[-1] < model.certificate_.null_loss
    assert model.certificate_.holds and cf.verify(model, X, y, weight)
    state = model.boosting_
    for name in ("value", "loss", "start"):
        for place in range(0, len(getattr(state, name)), 7):
            changed = getattr(state, name).copy()
            if name == "value" and (state.left[place] or changed[place] == 0):
                continue
            changed[place] *= 1 + 1e-4
            model.boosting_ = replace(state, **{name: changed})
            assert not cf.verify(model, X, y, weight), (name, place)
    model.boosting_ = state
    assert not cf.verify(model, X, y + 1, weight)


def test_weight_two_is_the_row_twice_whatever_is_drawn(rng):
    X, y, weight = problem("poisson")
    rows = rng.permutation(np.repeat(np.arange(len(y)), weight.astype(int)))
    model = cf.GradientBoostingRegressor(
        20, family="poisson", subsample=0.6, max_features=0.5, early_stopping=True, validation_fraction=0.3
    )
    first, second = model.fit(X, y, weight).boosting_, None
    with cf.threads(2):
        second = model.fit(X[rows], y[rows]).boosting_
    for name in ("ends", "feature", "threshold", "value", "held_out"):
        assert np.array_equal(getattr(first, name), getattr(second, name)), name


def test_an_exposure_is_an_offset_of_its_log_and_a_rate_is_predicted_without():
    X, y, _ = problem("poisson")
    exposure = np.random.default_rng(1).uniform(0.2, 2.0, len(y))
    model = cf.GradientBoostingRegressor(10, family="poisson")
    first = model.fit(X, y, exposure=exposure).predict(X, exposure=exposure)
    second = model.fit(X, y, offset=np.log(exposure)).predict(X, offset=np.log(exposure))
    assert np.allclose(first, second) and np.allclose(model.predict(X) * exposure, first)
    assert cf.verify(model, X, y, offset=np.log(exposure)) and not cf.verify(model, X, y)
    assert np.isclose(np.exp(model.boosting_.start[0]), y.sum() / exposure.sum())


@pytest.mark.parametrize("growth", ["leaf", "depth"])
def test_directions_hold_everywhere_and_limits_are_obeyed(growth):
    X, y, _ = problem("gaussian", n=600)
    model = cf.GradientBoostingRegressor(
        30, monotonic_cst=[0, 1, -1], growth=growth, max_depth=4, max_leaf_nodes=9, min_samples_leaf=3
    ).fit(X, y)
    rows = np.nan_to_num(X[:100])
    for j, sign in ((1, 1), (2, -1)):
        for shift in (0.1, 0.5, 3.0):
            moved = rows.copy()
            moved[:, j] += shift
            assert (sign * (model.predict(moved) - model.predict(rows)) >= -1e-12).all()
    assert model.certificate_.holds and max(row["n_leaves"] for row in model.history_) <= 9
    state = model.boosting_
    assert (np.add.reduceat(state.left == 0, state.ends[:-1]) <= 9).all()


def test_early_stopping_keeps_the_rounds_up_to_the_lowest_held_out_loss():
    X, y, _ = problem("gaussian")
    model = cf.GradientBoostingRegressor(
        200, learning_rate=0.5, min_samples_leaf=1, early_stopping=True, n_iter_no_change=4
    ).fit(X, y + np.random.default_rng(0).normal(size=len(y)))
    held_out = [row["held_out_loss"] for row in model.history_]
    assert model.n_iter_ < 200 and held_out[-1] == min(held_out) == model.certificate_.held_out


def test_a_warm_start_goes_on_where_the_last_fit_ended():
    X, y, _ = problem("gamma")
    model = cf.GradientBoostingRegressor(5, family="gamma", warm_start=True, subsample=0.7).fit(X, y)
    model.set_params(n_estimators=12).fit(X, y)
    whole = cf.GradientBoostingRegressor(12, family="gamma", subsample=0.7).fit(X, y)
    assert np.allclose(model.predict(X), whole.predict(X), rtol=1e-12) and model.certificate_.holds
    with pytest.raises(ValueError, match="goes on from 12 rounds"):
        model.set_params(n_estimators=3).fit(X, y)


def test_rounds_are_chosen_from_one_fit_per_fold():
    X, y, _ = problem("gaussian")
    X = np.nan_to_num(X)
    grid = {"n_estimators": [3, 10, 30]}
    chosen = cf.CrossValidated(cf.GradientBoostingRegressor(), grid, cv=3, scoring="neg_mean_squared_error").fit(X, y)
    assert chosen.best_params_["n_estimators"] in (3, 10, 30)
    parts = [cf.GradientBoostingRegressor(n).fit(X, y).predict(X) for n in (3, 30)]
    staged = list(cf.GradientBoostingRegressor(30).fit(X, y).staged_predict(X))
    assert np.allclose(staged[2], parts[0]) and np.allclose(staged[29], parts[1])


def test_what_cannot_be_is_refused_in_words():
    X, y, _ = problem("gaussian")
    with pytest.raises(ValueError, match="must be >= 0 for the Poisson loss"):
        cf.GradientBoostingRegressor(family="poisson").fit(X, y)
    with pytest.raises(ValueError, match="All are 0"):
        cf.GradientBoostingRegressor(family="poisson").fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="monotonic_cst has 2 entries"):
        cf.GradientBoostingRegressor(monotonic_cst=[1, 0]).fit(X, y)
    with pytest.raises(ValueError, match="needs two classes"):
        cf.GradientBoostingClassifier(monotonic_cst=[1, 0, 0]).fit(X, np.digitize(y, [-1, 1]))
    with pytest.raises(ValueError, match="No row is held out"):
        cf.GradientBoostingRegressor(early_stopping=True).fit(X[:5], y[:5])


def levels_problem(seed: int = 0, n: int = 400) -> tuple[Any, Any]:
    """A column of seven levels without an order, a column of numbers, and missing values in both."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, 7, n).astype(float), rng.normal(size=n).round(1)])
    y = np.array([3.0, -2, 0, 5, -2.5, 3.1, 1])[X[:, 0].astype(int)] + X[:, 1] + 0.3 * rng.normal(size=n)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y


def test_a_category_is_split_into_the_best_of_all_sets_of_levels():
    X, y = levels_problem()
    known = ~np.isnan(X[:, 0])
    X, y = X[known], y[known]
    settings = {"max_leaf_nodes": 2, "min_samples_leaf": 1}
    model = cf.GradientBoostingRegressor(1, categorical_features=[0], **settings).fit(X, y)
    apart = y - y.mean()
    best = 0.0
    for mask in range(1, 2**6):  # the seventh level stays right
        left = np.isin(X[:, 0], [level for level in range(7) if mask >> level & 1])
        best = max(best, sum(apart[side].sum() ** 2 / side.sum() for side in (left, ~left)))
    assert model.boosting_.feature[0] == 0 and np.isclose(model.boosting_.gain[0], best)


def test_names_of_levels_do_not_matter_and_unknown_ones_go_somewhere():
    X, y = levels_problem()
    renamed = X.copy()
    renamed[:, 0] = np.array([4.0, 0, 6, 2, 1, 5, 3])[np.nan_to_num(X[:, 0]).astype(int)]
    renamed[np.isnan(X[:, 0]), 0] = np.nan
    fits = [cf.GradientBoostingRegressor(20, categorical_features=[0]).fit(rows, y) for rows in (X, renamed)]
    assert np.allclose(fits[0].predict(X), fits[1].predict(renamed))
    assert fits[0].certificate_.holds and fits[0].score(X, y) > 0.85
    new = np.array([[9.0, 0.0], [np.nan, 0.0]])  # a level that no row had is led like a missing value
    assert np.array_equal(*fits[0].predict(new)[:, None])


def test_sets_of_levels_are_stored_staged_and_add_up(tmp_path):
    X, y = levels_problem()
    model = cf.GradientBoostingRegressor(12, categorical_features=[0], subsample=0.8).fit(X, y)
    cf.save(model, tmp_path / "m.certifit")
    loaded = cf.load(tmp_path / "m.certifit")
    assert np.array_equal(loaded.predict(X), model.predict(X)) and loaded.get_params()["categorical_features"] == [0]
    assert cf.verify(tmp_path / "m.certifit", X, y).holds
    assert np.allclose(list(model.staged_predict(X))[-1], model.predict(X))
    part = model.boosting_.part(5)
    assert len(part.sets) < len(model.boosting_.sets)
    why = model.contributions(X)
    assert np.allclose(why.base + why.values.sum(axis=1), model.predict(X))
    first = cf.GradientBoostingRegressor(6, categorical_features=[0], subsample=0.8, warm_start=True).fit(X, y)
    assert np.allclose(first.set_params(n_estimators=12).fit(X, y).predict(X), model.predict(X))


def test_a_changed_set_of_levels_is_refused():
    X, y = levels_problem()
    model = cf.GradientBoostingRegressor(5, categorical_features=[0]).fit(X, y)
    sets = model.boosting_.sets.copy()
    sets[0, 0] ^= np.uint64(0b1001)
    model.boosting_ = replace(model.boosting_, sets=sets)
    assert not model.certify(X, y).holds


def test_what_no_category_can_be_is_refused():
    X, y = levels_problem()
    with pytest.raises(ValueError, match="must hold codes"):
        cf.GradientBoostingRegressor(2, categorical_features=[1]).fit(X, y)
    with pytest.raises(ValueError, match="is a category and has a direction"):
        cf.GradientBoostingRegressor(2, categorical_features=[0], monotonic_cst=[1, 0]).fit(X, y)


def test_folds_try_no_more_rounds_than_there_are_rows():
    assert rounds_tried(30, 5) == (10, 25, 50)
    assert rounds_tried(120, 5) == (10, 25, 50, 100)
    assert rounds_tried(5000, 5)[-1] == 400
    assert rounds_tried(5000, 5, n_trees=40)[-1] == 200  # a tree per class
    assert rounds_tried(10_000_000, 50)[-1] == 200  # where a round takes long
    assert rounds_tried(None, 5)[-1] == 400
    assert stumps_tried(80) == (10, 25, 50)
    assert stumps_tried(None)[-1] == 400
