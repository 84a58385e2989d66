"""Trees on bins, trees that split categories by sets of levels, and trees whose answers keep a direction."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from reference import impurity

import certifit as cf

CRITERIA = ("gini", "entropy", "squared_error", "poisson")
EVERY = pytest.mark.parametrize("criterion", CRITERIA)
BOTH = pytest.mark.parametrize("max_bins", [None, 255])


def problem(criterion: str, n: int = 400, seed: int = 0, classes: int = 2) -> tuple[Any, Any, Any]:
    """Rows with a category of 6 levels in the last column and gaps everywhere, a target, and weights."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.normal(size=n).round(1), rng.integers(0, 6, n)]).astype(float)
    effect = np.array([0.0, 2.0, -1.5, 1.0, -2.0, 0.5])[X[:, 2].astype(int)]
    score = X[:, 0] + effect * (1 + X[:, 1]) + 0.5 * rng.normal(size=n)
    X[rng.random(X.shape) < 0.05] = np.nan
    targets = {
        "gini": np.digitize(score, np.quantile(score, np.arange(1, classes) / classes)),
        "entropy": (score > 0).astype(int),
        "squared_error": score,
        "poisson": rng.poisson(np.exp(0.3 * score)).astype(float),
    }
    return X, targets[criterion], rng.integers(1, 4, n).astype(float)


def model_of(criterion: str, **parameters: Any) -> Any:
    cls = cf.DecisionTreeClassifier if criterion in ("gini", "entropy") else cf.DecisionTreeRegressor
    return cls(criterion=criterion, **parameters)


@EVERY
def test_where_every_value_has_its_bin_the_binned_tree_is_the_exact_one(criterion):
    X, y, weight = problem(criterion, n=240)
    exact = model_of(criterion, min_samples_leaf=2).fit(X, y, weight)
    binned = model_of(criterion, min_samples_leaf=2, max_bins=255).fit(X, y, weight)
    assert np.array_equal(exact.apply(X), binned.apply(X))
    assert np.array_equal(exact.tree_.feature, binned.tree_.feature)
    assert np.allclose(exact.tree_.decrease, binned.tree_.decrease, atol=1e-12)
    assert np.array_equal(exact.tree_.values, binned.tree_.values)
    assert exact.certificate_.holds
    assert binned.certificate_.holds


def test_binned_trees_of_many_rows_subtract_histograms_and_are_still_the_best_of_their_bins():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 50, size=(20000, 4)).astype(float)
    y = np.sin(X[:, 0] / 5) + (X[:, 1] > 20) * X[:, 2] / 30 + 0.1 * rng.normal(size=len(X))
    exact, binned = (cf.DecisionTreeRegressor(max_depth=7, max_bins=bins).fit(X, y) for bins in (None, 64))
    assert np.array_equal(exact.apply(X), binned.apply(X))
    classes = np.digitize(y, [-0.5, 0.3, 1.0])
    exact, binned = (cf.DecisionTreeClassifier(max_depth=6, max_bins=bins).fit(X, classes) for bins in (None, 64))
    assert np.array_equal(exact.apply(X), binned.apply(X))


def test_edges_of_bins_are_quantiles():
    X = np.arange(1000.0)[:, None]
    model = cf.DecisionTreeRegressor(max_bins=4, max_depth=2).fit(X, X[:, 0])
    assert sorted(model.tree_.threshold[model.tree_.left > 0]) == [249.5, 499.5, 749.5]


@BOTH
def test_threads_and_the_order_of_rows_change_nothing(max_bins):
    X, y, weight = problem("squared_error", n=9000)
    trees = []
    for threads, order in ((1, slice(None)), (2, slice(None)), (3, np.random.default_rng(1).permutation(len(X)))):
        with cf.threads(threads):
            model = cf.DecisionTreeRegressor(max_bins=max_bins, categorical_features=[2], min_samples_leaf=5)
            trees.append(model.fit(X[order], y[order], weight[order]).tree_)
    for tree in trees[1:]:
        assert np.array_equal(tree.threshold, trees[0].threshold)
        assert np.array_equal(tree.sets, trees[0].sets)
        assert np.array_equal(tree.values, trees[0].values)


@EVERY
@BOTH
def test_the_set_of_levels_is_the_best_of_all_subsets(criterion, max_bins):
    for seed in range(4):
        X, y, weight = problem(criterion, n=80, seed=seed)
        codes, known = X[:, [2]], ~np.isnan(X[:, 2])
        model = model_of(criterion, max_depth=1, max_bins=max_bins, categorical_features=[0]).fit(codes, y, weight)
        best = 0.0
        levels = np.unique(codes[known])
        sides = [np.isin(codes[:, 0], chosen) for k in range(1, 6) for chosen in combinations(levels, k)]
        for side in [*sides, *(side | ~known for side in sides), known]:
            if side.all() or not side.any() or (criterion == "poisson" and not (y[side].any() and y[~side].any())):
                continue
            parts = sum(impurity(criterion, y[s], weight[s]) * weight[s].sum() for s in (side, ~side))
            best = max(best, impurity(criterion, y, weight) - parts / weight.sum())
        assert np.isclose(model.tree_.decrease[0], best, rtol=1e-9)
        assert model.certificate_.holds


@BOTH
def test_more_classes_take_the_best_order_by_the_share_of_a_class(max_bins):
    X, y, _ = problem("gini", n=600, classes=4)
    model = cf.DecisionTreeClassifier(max_bins=max_bins, categorical_features=[2], max_depth=5).fit(X, y)
    plain = cf.DecisionTreeClassifier(max_bins=max_bins, max_depth=5).fit(X, y)
    assert model.certificate_.holds
    assert model.tree_.is_of_levels.any()
    assert model.score(X, y) > plain.score(X, y)


@BOTH
def test_levels_that_the_fit_did_not_see_go_where_missing_values_go(max_bins):
    X, y, _ = problem("squared_error")
    model = cf.DecisionTreeRegressor(max_bins=max_bins, categorical_features=[2], max_depth=4).fit(X, y)
    rows = X[:20].copy()
    answers = []
    for code in (np.nan, 6.0, 200.0, 254.0, 3.5, -1.0, 1e9):
        rows[:, 2] = code
        answers.append(model.predict(rows))
    assert all(np.array_equal(answer, answers[0]) for answer in answers)


def test_a_set_reads_in_words():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([5.0, 1.0, 5.0, 1.0])
    model = cf.DecisionTreeRegressor(categorical_features=["x0"]).fit(X, y)
    assert model.rules() == "if x0 in {1, 3}: 1 (of 2)\nelse: 5 (of 2)"
    assert model.explain([[2.0]]) == ["x0 not in {1, 3}: 5 (of 2)"]
    assert model.history_[0]["levels"] == (1, 3)


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("criterion", ["entropy", "gini", "squared_error", "poisson"])
@BOTH
def test_answers_keep_their_direction(criterion, direction, max_bins):
    X, y, weight = problem(criterion, n=500)
    model = model_of(criterion, max_bins=max_bins, monotonic_cst=[direction, 0, 0], categorical_features=[2])
    model.fit(X, y, weight)
    free = model_of(criterion, max_bins=max_bins, categorical_features=[2]).fit(X, y, weight)
    rows = X[:60].copy()
    answers = {True: [], False: []}
    for x in np.linspace(-3, 3, 25):
        rows[:, 0] = x
        for tree in (model, free):
            said = tree.predict_proba(rows)[:, 1] if hasattr(tree, "classes_") else tree.predict(rows)
            answers[tree is model].append(said)
    assert (direction * np.diff(answers[True], axis=0) >= -1e-12).all()
    assert (direction * np.diff(answers[False], axis=0) < -1e-6).any()
    assert model.certificate_.holds


def test_a_tree_without_a_direction_beats_none_that_the_direction_allows():
    X = np.linspace(0, 1, 200)[:, None]
    y = X[:, 0] ** 2
    free, bound = (cf.DecisionTreeRegressor(max_depth=4, monotonic_cst=cst).fit(X, y) for cst in (None, [1]))
    assert np.array_equal(free.tree_.threshold, bound.tree_.threshold)
    assert cf.DecisionTreeRegressor(monotonic_cst=[-1]).fit(X, y).get_n_leaves() == 1


@BOTH
def test_changed_trees_are_refused(max_bins):
    X, y, _ = problem("squared_error")
    model = cf.DecisionTreeRegressor(
        max_bins=max_bins, categorical_features=[2], monotonic_cst=[1, 0, 0], max_depth=5
    ).fit(X, y)
    tree = model.tree_
    node = int(np.flatnonzero((tree.left > 0) & ~tree.is_of_levels)[0])
    threshold = tree.threshold.copy()
    threshold[node] = np.nextafter(threshold[node], 9)
    values = tree.values.copy()
    values[-1] += 1e-6
    sets = tree.sets.copy()
    sets[0, 0] ^= np.uint64(2)
    changes = {"threshold": threshold, "values": values, "sets": sets, "feature": np.where(tree.left > 0, 1, -1)}
    for name, changed in changes.items():
        model.tree_ = replace(tree, **{name: changed})
        assert not model.certify(X, y).holds, name
    model.tree_ = tree
    assert model.certify(X, y).holds
    model.monotonic_cst = [-1, 0, 0]
    assert not model.certify(X, y).holds


def test_pruned_and_shorter_trees_keep_their_sets():
    X, y, weight = problem("squared_error")
    whole = cf.DecisionTreeRegressor(categorical_features=[2], min_samples_leaf=3).fit(X, y, weight)
    for stop in ({"max_depth": 3}, {"max_leaf_nodes": 9}, {"ccp_alpha": 0.05}):
        part = cf.DecisionTreeRegressor(categorical_features=[2], min_samples_leaf=3, **stop).fit(X, y, weight)
        assert part.certificate_.holds
        assert 1 < part.get_n_leaves() < whole.get_n_leaves()
        assert len(part.tree_.sets) == part.tree_.is_of_levels.sum()


def test_files_hold_bins_sets_and_directions(tmp_path):
    X, y, _ = problem("squared_error")
    model = cf.DecisionTreeRegressor(max_bins=32, categorical_features=[2], monotonic_cst=[1, 0, 0], max_depth=6).fit(
        X, y
    )
    cf.save(model, tmp_path / "tree.model")
    again = cf.load(tmp_path / "tree.model")
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.get_params() == model.get_params()
    assert again.certify(X, y).holds
    assert cf.verify(tmp_path / "tree.model", X, y).holds


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"categorical_features": [9]}, "which is no column"),
        ({"categorical_features": ["speed"]}, "which is no column"),
        ({"categorical_features": "x0"}, "must list names or numbers"),
        ({"categorical_features": [0]}, "must hold codes"),
        ({"monotonic_cst": [1, 0]}, "for each of the 3 columns"),
        ({"monotonic_cst": [2, 0, 0]}, "one of -1, 0, 1"),
        ({"monotonic_cst": {"x0": 1, "height": 1}}, "names 'height', which is no column"),
        ({"monotonic_cst": [0, 0, 1], "categorical_features": [2]}, "Levels have no order"),
        ({"max_bins": 256}, "max_bins"),
        ({"max_bins": 1}, "max_bins"),
    ],
)
def test_what_is_not_legal_is_refused_in_words(parameters, words):
    X, y, _ = problem("squared_error")
    with pytest.raises((ValueError, TypeError), match=words):
        cf.DecisionTreeRegressor(**parameters).fit(X, y)


def test_directions_need_a_number_or_two_classes():
    X, y, _ = problem("gini", classes=3)
    with pytest.raises(ValueError, match="There are 3 classes"):
        cf.DecisionTreeClassifier(monotonic_cst=[1, 0, 0]).fit(X, y)


def test_folds_share_the_bins_of_all_rows(monkeypatch):
    from certifit.models.trees import task

    X, y, _ = problem("squared_error", n=600)
    calls = []
    original = task.core.bin_edges

    class Counted:
        def __getattr__(self, name: str) -> Any:
            return (lambda *args: calls.append(1) or original(*args)) if name == "bin_edges" else getattr(core, name)

    core = task.core
    monkeypatch.setattr(task, "core", Counted())
    grid = {"max_depth": [2, 3, 5]}
    search = cf.CrossValidated(cf.DecisionTreeRegressor(max_bins=16), grid, cv=5, scoring="neg_mean_squared_error").fit(
        X, y
    )
    monkeypatch.undo()
    assert len(calls) == 2  # once for all folds, once for the certificate of the best
    assert search.best_estimator_.certificate_.holds


def test_categories_of_a_table_are_one_column_of_codes(tmp_path):
    rng = np.random.default_rng(5)
    table = pa.table({"x": rng.normal(size=200), "c": rng.choice([*"uvwxyz", None], 200)})
    y = np.isin(table["c"].to_pylist(), [*"vxz"])
    model = cf.DecisionTreeClassifier(encoder=cf.TableEncoder()).fit(table, y)
    assert model.column_names_ == ["x", "c"]
    assert model.encoder_.coded_ == {"c": ["u", "v", "w", "x", "y", "z", "missing"]}
    assert model.rules() in {
        f"if c in {{{a}}}: {p}\nelse: {q}" for a, p, q in _sides(y, ["u, w, y, missing", "v, x, z"])
    }
    cf.save(model, tmp_path / "tree.certifit")
    loaded = cf.load(tmp_path / "tree.certifit")
    assert np.array_equal(loaded.predict(table), y)
    assert loaded.certify(table, y).holds
    with pytest.raises(ValueError, match="which the fit did not see"):
        loaded.predict(pa.table({"x": [0.0], "c": ["new"]}))
    columns = cf.DecisionTreeClassifier(encoder=cf.TableEncoder(levels="columns")).fit(table, y)
    assert len(columns.column_names_) == 7


def _sides(y: np.ndarray, sets: list[str]) -> list[tuple[str, str, str]]:
    no, yes = (f"{answer} ({n} of {n})" for answer, n in ((False, np.sum(~y)), (True, np.sum(y))))
    return [(sets[0], no, yes), (sets[1], yes, no)]
