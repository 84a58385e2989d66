"""Random forests: their trees beside the rows drawn, out-of-bag errors, and certificates beside changed forests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier as TheirClassifier
from sklearn.ensemble import RandomForestRegressor as TheirRegressor

import certifit as cf
from certifit.runtime import core

KINDS = pytest.mark.parametrize("kind", ["two", "three", "number"])


def problem(kind: str, n: int = 120, seed: int = 0, gaps: float = 0.1) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 4, n), rng.normal(size=(n, 2)).round(1)])
    score = X[:, 0] * (X[:, 1] - 1) + X[:, 2] + 0.3 * rng.normal(size=n)
    X[rng.random(X.shape) < gaps] = np.nan
    targets = {"two": score > 0, "three": np.digitize(score, [-1.0, 1.0]), "number": score}
    return X, targets[kind], rng.integers(1, 4, n).astype(float)


def model_of(kind: str, *args: Any, **parameters: Any) -> Any:
    return (cf.RandomForestRegressor if kind == "number" else cf.RandomForestClassifier)(*args, **parameters)


def answers(model: Any, X: Any) -> Any:
    return model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)


def arrays(model: Any) -> list[bytes]:
    return [part.tobytes() for part in vars(model.forest_).values() if part is not None]


@KINDS
def test_weight_two_is_the_row_twice_and_neither_threads_nor_the_order_of_rows_matter(kind, rng):
    X, y, weight = problem(kind)
    model = model_of(kind, 6).fit(X, y, weight)
    rows = rng.permutation(np.repeat(np.arange(len(y)), weight.astype(int)))
    for n_threads in (1, 3):
        with cf.threads(n_threads):
            assert arrays(model_of(kind, 6).fit(X[rows], y[rows])) == arrays(model)
    assert arrays(model_of(kind, 6, random_state=1).fit(X, y, weight)) != arrays(model)


@KINDS
def test_the_unit_of_weights_changes_nothing_and_equal_weights_are_none(kind):
    X, y, weight = problem(kind)
    model = model_of(kind, 40)
    alone, weighted = arrays(model.fit(X, y)), arrays(model.fit(X, y, weight))
    assert arrays(model.fit(X, y, np.full(len(y), 10.0))) == alone
    assert arrays(model.fit(X, y, 1000 * weight)) == weighted
    assert model.fit(X, y, 1e9 * weight).certificate_.holds  # as many draws as rows, whatever they weigh


def test_the_out_of_bag_error_is_over_rows_out_of_bag_often_enough():
    X, y, _ = problem("number", 300)
    few = cf.RandomForestRegressor(12).fit(X, y)
    assert few.oob_error_ is None and "More trees" in few.certificate_.sentences()[1]
    weight = np.where(np.arange(300) < 3, 2.5, 1.0)  # three rows are drawn in nearly every tree
    some = cf.RandomForestRegressor(60).fit(X, y, weight)
    assert some.oob_error_ is not None and 0 < some.certificate_.left_out <= 0.05
    heavy = cf.RandomForestRegressor(60).fit(X, y, np.where(np.arange(300) < 30, 10.0, 1.0))
    assert heavy.oob_error_ is None


@KINDS
def test_many_rows_led_by_ranks_get_the_bits_of_rows_led_by_values(kind):
    X, y, _ = problem(kind, 300)
    model = model_of(kind, 5).fit(X, y)
    many = np.concatenate([problem(kind, 1000, seed)[0] for seed in range(1, 4)])
    assert len(many) * model.forest_.n_trees > len(model.forest_.left)  # from there on ranks lead
    few = np.concatenate([answers(model, many[begin : begin + 50]) for begin in range(0, len(many), 50)])
    assert 50 * model.forest_.n_trees < len(model.forest_.left)
    assert answers(model, many).tobytes() == few.tobytes()


def test_counts_of_two_classes_split_as_sums_of_their_numbers_do():
    """But for the last splits, which take nothing from the impurity but rounding."""
    X, y, weight = problem("two", 3000)
    options = {"max_features": 2, "max_depth": 4}
    for categories in (None, [1]):
        classes = cf.RandomForestClassifier(4, categorical_features=categories, **options).fit(X, y, weight).forest_
        numbers = cf.RandomForestRegressor(4, categorical_features=categories, **options)
        numbers = numbers.fit(X, y.astype(float), weight).forest_
        for name in ("ends", "feature", "left", "threshold", "is_missing_left"):
            assert np.array_equal(getattr(classes, name), getattr(numbers, name)), name
        assert np.allclose(classes.gains, 2 * numbers.gains)


@KINDS
def test_ranks_lead_rows_as_their_values_do(kind):
    X, y, weight = problem(kind)
    model = model_of(kind, 5).fit(X, y, weight)
    task, forest = model._task_on(X, y, sample_weight=weight), model.forest_
    values = forest.values if task.n_classes else forest.values / task.y_unit
    call = (task.block.rows, *task.scaled(), *forest.paths(), values, task.n_classes, task.settings.random_state, 2)
    by_value, by_rank = core.check_forest(*call), core.check_forest(*call, task.edges)
    strange = core.check_forest(*call, [np.array([0.123])] * X.shape[1])  # edges that are no thresholds: by value
    for ranked in (by_rank, strange):
        assert all(np.array_equal(a, b) for a, b in zip(by_value, ranked, strict=True))


@KINDS
def test_the_out_of_bag_error_is_that_of_rows_that_trees_did_not_draw(kind):
    X, y, _ = problem(kind, n=600, seed=1)
    new_X, new_y, _ = problem(kind, n=4000, seed=2)
    model = model_of(kind, 60, min_samples_leaf=3).fit(X, y)
    low, high = model.oob_interval_
    predicted = model.predict(new_X)
    error = np.mean(np.square(predicted - new_y)) if kind == "number" else np.mean(predicted != new_y)
    assert low < model.oob_error_ < high
    assert low - 0.5 * (high - low) < error < high + 0.5 * (high - low)


@KINDS
def test_a_forest_predicts_as_well_as_that_of_scikit_learn(kind):
    X, y, _ = problem(kind, n=1500, seed=3, gaps=0.0)
    new_X, new_y, _ = problem(kind, n=3000, seed=4, gaps=0.0)
    theirs = (TheirRegressor if kind == "number" else TheirClassifier)(40, random_state=0).fit(X, y)
    assert model_of(kind, 40).fit(X, y).score(new_X, new_y) > theirs.score(new_X, new_y) - 0.03


@KINDS
def test_changed_leaves_and_other_rows_are_refused(kind):
    X, y, weight = problem(kind)
    model = model_of(kind, 4, max_depth=3).fit(X, y, weight)
    assert model.certificate_.holds and cf.verify(model, X, y, weight)
    forest = model.forest_
    for place in np.flatnonzero(forest.values):
        changed = forest.values.copy()
        changed.flat[place] *= 1 + 1e-4
        model.forest_ = replace(forest, values=changed)
        assert not cf.verify(model, X, y, weight)
    moved = forest.threshold.copy()
    moved[0] += 1.0
    model.forest_ = replace(forest, threshold=moved)
    assert not cf.verify(model, X, y, weight)
    model.forest_ = forest
    assert not cf.verify(model.set_params(random_state=5), X, y, weight)


def test_where_rows_may_have_been_drawn_in_another_way_a_forest_that_is_not_proven_says_what_to_do(rng):
    X, y = rng.normal(size=(50, 1)), rng.normal(size=50)
    model = cf.RandomForestRegressor(1, max_depth=3).fit(X, y)
    model.random_state = 1  # other draws
    words = str(cf.verify(model, X, y))
    assert "off by" in words and "fit it again" in words


def test_a_tree_of_all_columns_and_bins_splits_where_the_exact_one_does():
    rng = np.random.default_rng(5)
    X = rng.integers(0, 40, size=(300, 3)).astype(float)
    y = X[:, 0] > X[:, 1]
    model = cf.RandomForestClassifier(1, max_features=None, max_depth=1).fit(X, y)
    column, threshold = int(model.forest_.feature[0]), float(model.forest_.threshold[0])
    assert column in (0, 1) and 10 < threshold < 30 and (threshold * 2) % 1 == 0
    assert model.feature_importances_[column] == 1


def test_missing_values_and_values_that_are_infinite():
    X = np.array([[1.0], [2.0], [np.nan], [np.nan]] * 10)
    model = cf.RandomForestClassifier(20).fit(X + np.arange(40)[:, None] * 1e-3, ["a", "a", "b", "b"] * 10)
    assert model.predict([[np.nan], [1.5]]).tolist() == ["b", "a"]
    for rows in ([[np.inf]], [[-np.inf]]):
        with pytest.raises(ValueError, match="infinity: row 0"):
            model.predict(rows)


@KINDS
def test_every_leaf_has_as_many_different_rows_as_asked(kind):
    X, y, _ = problem(kind)
    for least in (1, 10):
        model = model_of(kind, 3, min_samples_leaf=least).fit(X, y)
        sizes = np.diff(model.forest_.ends)
        assert (sizes <= 2 * len(y) / least).all()
    assert np.isfinite(answers(model, X)).all()


@KINDS
def test_a_threshold_that_moves_no_row_that_was_drawn_is_refused_all_the_same(kind):
    X, y, _ = problem(kind)
    model = model_of(kind, 4).fit(X, y)
    forest = model.forest_
    node = int(np.flatnonzero((forest.left > 0) & np.isfinite(forest.threshold))[-1])
    changed = forest.threshold.copy()
    changed[node] = np.nextafter(changed[node], np.inf)
    model.forest_ = replace(forest, threshold=changed)
    certificate = model.certify(X, y)
    assert not certificate.holds
    assert "no edge of a bin" in certificate.sentences()[0]


@pytest.fixture(scope="module", params=["two", "three", "number"])
def of_levels(request) -> tuple[Any, Any, Any]:
    """A forest of single splits on a category whose levels have no order, and its rows."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 9, 400).astype(float)
    side = np.isin(codes, [1, 4, 6, 8])
    y = {"two": side, "three": np.where(side, 2, codes % 2 == 0), "number": side * 3.0}[request.param]
    X = np.column_stack([codes, rng.normal(size=400)])
    X[:5, 0] = np.nan
    depth = 2 if request.param == "three" else 1
    return X, y, model_of(request.param, 8, max_features=None, max_depth=depth, categorical_features=[0]).fit(X, y)


def test_a_forest_splits_a_category_by_a_set_of_levels(of_levels):
    X, y, model = of_levels
    assert model.certificate_.holds
    assert np.all(np.abs(model.predict(X[5:]) * 1.0 - y[5:]) < 0.5)  # missing rows share a leaf with others
    unseen = np.array([[200.0, 0.0], [np.nan, 0.0]])
    assert np.array_equal(*answers(model, unseen))  # a level that no row has goes where missing values go


def test_changed_sets_of_levels_are_refused_and_files_keep_them(of_levels, tmp_path):
    X, y, model = of_levels
    cf.save(model, tmp_path / "forest.certifit")
    loaded = cf.load(tmp_path / "forest.certifit")
    assert loaded.categorical_features == [0]
    assert np.array_equal(answers(loaded, X), answers(model, X))
    sets = model.forest_.sets.copy()
    sets[0, 0] ^= np.uint64(1 << 4)
    model.forest_ = replace(model.forest_, sets=sets)
    assert not model.certify(X, y).holds


def test_draws_of_parts_are_those_of_all_rows_and_fall_on_rows_in_proportion_to_their_weights():
    n_rows, block, rng = 40_000, 1 << 14, np.random.default_rng(0)
    weight = rng.integers(1, 5, n_rows).astype(np.float64)
    blocks = np.array([weight[k : k + block].sum() for k in range(0, n_rows, block)])
    for weights, of_blocks in ((None, None), (weight, blocks), (weight / 3, blocks / 3)):
        counts = core.forest_block_draws(n_rows, of_blocks, 5, 2)
        assert counts.sum() == n_rows
        shares = np.array([block, block, n_rows - 2 * block]) / n_rows if weights is None else blocks / blocks.sum()
        assert (np.abs(counts - n_rows * shares) < 5 * np.sqrt(n_rows * shares)).all()
        draws = core.forest_draws(n_rows, weights, counts, 0, 5, 2)
        assert draws.sum() == n_rows
        for k in range(3):  # a part of one block makes the same draws
            rows = slice(k * block, (k + 1) * block)
            own = None if weights is None else weights[rows]
            part = core.forest_draws(len(draws[rows]), own, counts[k : k + 1], k, 5, 2)
            assert (part == draws[rows]).all()
        if weights is not None:
            means = np.array([draws[weight == w].mean() for w in (1, 2, 3, 4)])
            assert np.allclose(means / means[0], [1, 2, 3, 4], rtol=0.1)


def test_every_node_draws_its_own_columns():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(4000, 12)).astype(float)
    model = cf.RandomForestRegressor(40, max_features=1, max_depth=2).fit(X, rng.normal(size=4000))
    forest = model.forest_
    roots = forest.feature[forest.ends[:-1]]
    assert len(set(roots.tolist())) > 6  # of 12 columns that are drawn 40 times
    pairs = [forest.feature[begin + forest.left[begin] :][:2] for begin in forest.ends[:-1]]
    assert len({tuple(pair) for pair in pairs}) > 20
