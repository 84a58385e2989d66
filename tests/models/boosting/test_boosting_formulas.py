"""Every part of boosting beside its definition: leaves of all losses, order of growth, missing values, draws, folds."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, softmax

import certifit as cf
from certifit.data.source import Block
from certifit.models.boosting import model as boosting_model
from certifit.models.boosting.draws import columns_of_round, rows_of_round
from certifit.models.boosting.losses import RowsToScore, scored
from certifit.runtime import core
from tests.models.boosting.test_boosting import FAMILIES, leaf_of, problem


def quantile_of(values: Any, weight: Any, share: float) -> float:
    """The least of the values that as much of the weight is at or below."""
    reached = [weight[values <= value].sum() >= share * weight.sum() * (1 - 1e-12) for value in np.sort(values)]
    return float(np.sort(values)[np.argmax(reached)])


def huber_delta(y: Any, weight: Any) -> float:
    apart = np.abs(y - quantile_of(y, weight, 0.5))
    return 1.35 * 1.482602218505602 * quantile_of(apart, weight, 0.5)


SLOPES = {
    "gaussian": lambda y, z, delta: (z - y, np.ones_like(z)),
    "poisson": lambda y, z, delta: (np.exp(z) - y, np.exp(z)),
    "gamma": lambda y, z, delta: (1 - y * np.exp(-z), y * np.exp(-z)),
    "tweedie": lambda y, z, delta: (np.exp(z / 2) - y * np.exp(-z / 2), (np.exp(z / 2) + y * np.exp(-z / 2)) / 2),
    "huber": lambda y, z, delta: (np.clip(z - y, -delta, delta), np.ones_like(z)),
}


@pytest.mark.parametrize("family", SLOPES)
def test_start_and_leaves_are_newton_steps_with_an_offset(family):
    X, y, weight = problem(family, n=200)
    offset = np.random.default_rng(1).normal(size=len(y)) / 2
    model = cf.GradientBoostingRegressor(4, family=family, l2=0.7, min_samples_leaf=5)
    state = model.fit(X, y, weight, offset=offset).boosting_
    z, delta = offset + state.start[0], huber_delta(y, weight)
    best = SLOPES[family](y, z, delta)[0] * weight
    assert abs(best.sum()) <= 1e-9 * np.abs(best).sum()  # no other constant has a smaller loss
    for t in range(state.n_rounds):
        slope, curvature = (weight * part for part in SLOPES[family](y, z, delta))
        z = z + check_leaves(state, t, X, newton_step(slope, curvature))
    mean = np.exp(z) if family in ("poisson", "gamma", "tweedie") else z
    assert np.allclose(model.predict(X, offset=offset), mean)


Step = Callable[[Any], float]  # of a leaf, from which rows it has


def newton_step(slope: Any, curvature: Any) -> Step:
    """With l2 = 0.7."""
    return lambda rows: -slope[rows].sum() / (curvature[rows].sum() + 0.7)


def quantile_step(residual: Any, weight: Any) -> Step:
    """The pinball loss of 0.3."""
    return lambda rows: quantile_of(residual[rows], weight[rows], 0.3)


def check_leaves(state: Any, tree: int, X: Any, step: Step) -> Any:
    """Every leaf is a tenth of the step of its rows. What the tree adds to them."""
    values = state.value[state.ends[tree] : state.ends[tree + 1]]
    leaves = np.array([leaf_of(state, tree, row) for row in X])
    for leaf in np.unique(leaves):
        assert np.isclose(values[leaf], 0.1 * step(leaves == leaf), rtol=1e-8, atol=1e-12)
    return values[leaves]


def test_leaves_of_the_pinball_loss_are_quantiles_of_residuals():
    X, y, weight = problem("quantile", n=200)
    state = cf.GradientBoostingRegressor(4, family="quantile", quantile=0.3).fit(X, y, weight).boosting_
    z = np.full(len(y), quantile_of(y, weight, 0.3))
    assert np.isclose(state.start[0], z[0])
    for t in range(state.n_rounds):
        z = z + check_leaves(state, t, X, quantile_step(y - z, weight))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_leaves_of_classes_are_newton_steps_of_the_log_loss(n_classes):
    X, score, weight = problem("gaussian", n=200)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    state = cf.GradientBoostingClassifier(3, l2=0.7).fit(X, y, weight).boosting_
    shares = np.array([weight[y == k].sum() for k in range(n_classes)]) / weight.sum()
    z = np.tile(state.start, (len(y), 1))
    assert np.allclose(softmax(z[0]) if n_classes > 2 else [expit(-z[0, 0]), expit(z[0, 0])], shares)
    for t in range(state.n_rounds):
        p = softmax(z, axis=1) if n_classes > 2 else expit(z)
        z = z.copy()
        for k in range(state.width):
            is_class = y == (k if n_classes > 2 else 1)
            slope, curvature = weight * (p[:, k] - is_class), weight * p[:, k] * (1 - p[:, k])
            z[:, k] += check_leaves(state, t * state.width + k, X, newton_step(slope, curvature))


def test_the_leaf_of_the_largest_gain_is_split_next_or_level_by_level():
    X, y, weight = problem("gaussian", n=500)
    for growth in ("leaf", "depth"):
        model = cf.GradientBoostingRegressor(3, growth=growth, max_leaf_nodes=12, min_samples_leaf=5)
        state = model.fit(X, y, weight).boosting_
        for t in range(state.n_rounds):
            nodes = slice(int(state.ends[t]), int(state.ends[t + 1]))
            left, gain = state.left[nodes], state.gain[nodes]
            assert np.count_nonzero(left) == 11
            waiting, depth, order = {0}, {0: 0}, np.argsort(np.where(left > 0, left, len(left)), kind="stable")[:11]
            for node in order.tolist():  # children are numbered in the order of the splits
                if growth == "leaf":
                    assert gain[node] >= max(gain[other] for other in waiting) * (1 - 1e-9)
                else:
                    split_below = [other for other in waiting if left[other]]
                    assert depth[node] == min(depth[other] for other in split_below)
                children = (int(left[node]), int(left[node]) + 1)
                waiting = waiting - {node} | set(children)
                depth |= dict.fromkeys(children, depth[node] + 1)


def test_missing_values_go_to_the_better_side():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 8, 120).astype(float)
        y = np.sin(x) + 0.3 * rng.normal(size=120)
        is_missing = rng.random(120) < 0.3
        y[is_missing] += rng.choice([-1.5, 1.5])
        x[is_missing] = np.nan
        state = cf.GradientBoostingRegressor(1, max_leaf_nodes=2, min_samples_leaf=1).fit(x[:, None], y).boosting_
        apart, gains = y - y.mean(), {}
        for value in range(8):
            for missing_left in (False, True):
                left = np.where(is_missing, missing_left, x <= value)
                if 0 < left.sum() < len(y):
                    gains[value, missing_left] = sum(apart[s].sum() ** 2 / s.sum() for s in (left, ~left))
        assert np.isclose(state.gain[0], max(gains.values()))
        taken = np.where(is_missing, bool(state.is_missing_left[0]), x <= state.threshold[0])
        assert np.isclose(sum(apart[s].sum() ** 2 / s.sum() for s in (taken, ~taken)), max(gains.values()))


def test_a_round_has_the_rows_and_columns_of_its_draw():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    y = X @ rng.normal(size=6) + X[:, 0] * X[:, 1]
    made = cf.GradientBoostingRegressor(8, subsample=0.6, max_features=0.5, random_state=3).fit(X, y)
    state, used = made.boosting_, []
    for t in range(state.n_rounds):
        nodes = slice(int(state.ends[t]), int(state.ends[t + 1]))
        assert state.weight[nodes][0] == rows_of_round(3, t, 0.6, 400).sum()
        drawn = columns_of_round(3, t, 0.5, 6, 400)
        columns = set(state.feature[nodes][state.left[nodes] > 0].tolist())
        assert len(drawn) == 3 and columns <= set(drawn.tolist())
        used.append(columns)
    assert len(set().union(*used)) == 6  # other columns in other rounds


def test_the_held_out_loss_is_that_of_rows_no_tree_was_grown_on():
    X, y, weight = problem("poisson")
    model = cf.GradientBoostingRegressor(15, family="poisson", early_stopping=True, validation_fraction=0.25)
    state = model.fit(X, y, weight).boosting_
    trained = state.weight[0]
    assert 0.7 < trained / weight.sum() < 0.8
    for t, mean in zip(range(state.n_rounds), model.staged_predict(X), strict=True):
        logs = np.where(y > 0, y * np.log(np.where(y > 0, y, 1) / mean), 0.0)
        whole = weight @ (logs - y + mean)
        both = trained * state.loss[t] + (weight.sum() - trained) * state.held_out[t]
        assert np.isclose(whole, both)


def test_importances_are_shares_of_what_splits_take_from_the_loss():
    X, y, _ = problem("gaussian")
    model = cf.GradientBoostingRegressor(1, learning_rate=1.0, min_samples_leaf=5).fit(X, y)
    state, inner = model.boosting_, model.boosting_.left > 0
    gains = [state.gain[inner & (state.feature == j)].sum() for j in range(3)]
    assert np.allclose(model.feature_importances_, np.array(gains) / sum(gains))
    errors = [np.sum(np.square(y - guess)) for guess in (y.mean(), model.predict(X))]
    assert np.isclose(sum(gains), errors[0] - errors[1])  # one whole Newton step: all that is gained


@pytest.mark.parametrize("kind", [cf.GradientBoostingRegressor, cf.GradientBoostingClassifier])
def test_folds_fit_once_for_all_numbers_of_rounds_and_score_as_refits(kind, monkeypatch):
    X, y, _ = problem("gaussian", n=150)
    X = np.nan_to_num(X)
    is_number = kind is cf.GradientBoostingRegressor
    y = y if is_number else np.digitize(y, [-0.5, 0.5])
    asked = []
    boost = boosting_model.boost

    def counted(task, *before):
        asked.append(task.settings.n_estimators)
        return boost(task, *before)

    monkeypatch.setattr(boosting_model, "boost", counted)
    folds, grid = cf.Folds(3), [2, 7, 12]
    scoring = "neg_mean_squared_error" if is_number else "accuracy"
    chosen = cf.CrossValidated(kind(), {"n_estimators": grid}, cv=folds, scoring=scoring).fit(X, y)
    assert asked == [12, 12, 12, chosen.best_params_["n_estimators"]]
    for n_rounds, stated in zip(grid, chosen.cv_results_["mean_test_score"], strict=True):
        scores = []
        for train, test in folds.split(X, y):
            predicted = kind(n_rounds).fit(X[train], y[train]).predict(X[test])
            scores.append(np.mean(-np.square(predicted - y[test]) if is_number else predicted == y[test]))
        assert np.isclose(stated, np.mean(scores))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_file_of_every_family_predicts_and_is_verified_with_its_exposure(family, tmp_path):
    X, y, weight = problem(family, n=120)
    exposure = np.random.default_rng(2).uniform(0.3, 2.0, len(y))
    asked = {"family": family, "power": 1.3, "quantile": 0.8, "delta": 1.1, "min_samples_leaf": 5}
    model = cf.GradientBoostingRegressor(4, **asked).fit(X, y, weight, exposure=exposure)
    cf.save(model, tmp_path / "m.certifit")
    loaded = cf.load(tmp_path / "m.certifit")
    predicted = loaded.predict(X, exposure=exposure)
    assert np.array_equal(predicted, model.predict(X, exposure=exposure))
    assert np.allclose(predicted, model.predict(X, offset=np.log(exposure)))
    assert cf.verify(tmp_path / "m.certifit", X, y, weight, exposure=exposure).holds
    assert not cf.verify(tmp_path / "m.certifit", X, y, weight).holds


def test_the_dependence_on_a_column_is_one_curve_for_all_rows_where_trees_are_stumps():
    X, y, _ = problem("gaussian")
    X = np.nan_to_num(X)
    stumps = cf.GradientBoostingRegressor(30, max_leaf_nodes=2).fit(X, y)
    curves = cf.DependenceDisplay.from_estimator(stumps, X, 2, grid_points=20).curves
    moved = curves - curves[:, :1]
    assert np.allclose(moved, moved[0]) and np.ptp(moved[0]) > 0.5
    trees = cf.GradientBoostingRegressor(30, max_leaf_nodes=6, min_samples_leaf=5).fit(X, y)
    curves = cf.DependenceDisplay.from_estimator(trees, X, 0, grid_points=20).curves
    assert np.ptp(curves - curves[:, :1], axis=0).max() > 0.1  # y has x0 x1


# Many rows are led by masks of leaves, few from node to node: all of them where leaves or thresholds are too many.
LED = {
    "masks": {},
    "levels": {"categorical_features": [1]},
    "more trees than are masked at once": {"n_estimators": 180, "max_leaf_nodes": 3},  # of three classes
    "many leaves": {"max_leaf_nodes": 90, "min_samples_leaf": 2},
    "many thresholds": {"n_estimators": 40, "min_samples_leaf": 5, "warm_start": True},
}


@pytest.mark.filterwarnings("ignore:NOT certified")  # of the trees of other rows
@pytest.mark.parametrize("asked", LED.values(), ids=LED)
def test_many_rows_at_once_have_the_bits_of_few(asked):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=700), rng.integers(0, 6, 700), rng.normal(size=700).round(1), np.ones(700)])
    score = X[:, 0] * (X[:, 1] % 3) + X[:, 2] + 0.3 * rng.normal(size=700)
    X[::7, 2] = np.nan
    new = X[rng.integers(0, 700, 5000)]
    new[:, 0] = np.where(rng.random(5000) < 0.5, new[:, 0], np.nextafter(new[:, 0], np.inf))
    new[::50, 1] = 9.0  # a level that no row had
    new[::11, 0] = np.nan
    for y in (score, np.digitize(score, [-1.0, 1.0])):
        kind = cf.GradientBoostingRegressor if y is score else cf.GradientBoostingClassifier
        model = kind(**{"n_estimators": 12, **asked}).fit(X, y)
        if model.warm_start:  # bins of other rows
            model.set_params(n_estimators=80).fit(X + np.array([0.01, 0, 0, 0]), y)
            state = model.boosting_
            assert len(np.unique(state.threshold[(state.left > 0) & (state.feature == 0)])) > 254
        answer = model.predict if y is score else model.predict_proba
        few = np.concatenate([answer(part) for part in np.array_split(new, 5)])
        assert np.array_equal(answer(new), few)
        with cf.threads(3):
            assert np.array_equal(answer(new), few)
        bad = new.copy()
        bad[4321, 3] = np.inf  # a column that no tree asks for
        with pytest.raises(ValueError, match="4321"):
            answer(bad)


def test_nodes_that_share_a_child_are_led_from_node_to_node():
    X = np.linspace(0, 1, 4000)[:, None]
    n, rows = 61, Block(X, None, None).rows
    left = np.array([2 * ((k + 1) // 2) + 1 if k < n - 2 else 0 for k in range(n)])  # both of a pair: 2^30 paths
    ends, feature, value = np.array([0, n]), np.zeros(n, dtype=np.int64), np.arange(n, dtype=float)
    tree = (ends, feature, left, np.full(n, 0.5), np.zeros(n, dtype=np.uint8), None, None, value, 1, 0, 1, 1)
    many, _ = core.add_trees(rows, *tree)
    few, _ = core.add_trees(Block(X[:100], None, None).rows, *tree)
    assert np.array_equal(many[:100], few) and set(many.ravel()) <= set(value)


def test_losses_slopes_and_curvatures_of_chances_next_to_1_keep_their_digits():
    scores, y = np.array([[40.0, 1.0, -3.0], [0.0, 80.0, 2.0], [-1.0, -2.0, 30.0]]), np.array([0.0, 2.0, 2.0])
    made = scored(None, RowsToScore(y, np.ones(3)), scores)
    losses = [scored(None, RowsToScore(y, of_row), scores).sums[0, 0] for of_row in np.eye(3)]
    with localcontext(prec=80):
        for row, label, z in zip(range(3), y, scores, strict=True):
            masses = [Decimal(float(score)).exp() for score in z]
            loss = -(masses[int(label)] / sum(masses)).ln()
            assert abs(Decimal(float(losses[row])) / loss - 1) < Decimal("1e-13")
            for k, mass in enumerate(masses):
                others = (sum(masses) - mass) / sum(masses)
                slope = -others if k == label else 1 - others
                assert abs(Decimal(float(made.slopes[k][row])) / slope - 1) < Decimal("1e-13")
                assert abs(Decimal(float(made.curvatures[k][row])) / (others * (1 - others)) - 1) < Decimal("1e-13")
