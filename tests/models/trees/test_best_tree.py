"""The best tree: its loss and its bounds beside a search of all trees, and its certificate beside changed trees."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import certifit as cf

Case = tuple[Any, Any, Any, int, int, int]


def case(seed: int) -> Case:
    """Few rows with ties, and at times weights, missing values and a least number of rows of a leaf."""
    rng = np.random.default_rng(seed)
    n, d, n_classes = int(rng.integers(5, 16)), int(rng.integers(1, 4)), int(rng.choice([0, 2, 3]))
    X = rng.integers(0, int(rng.integers(2, 5)), size=(n, d)).astype(float)
    if rng.random() < 0.3:
        X[rng.random(X.shape) < 0.2] = np.nan
    y = rng.integers(0, n_classes, n) if n_classes else rng.normal(size=n).round(1)
    weight = (np.ones(n), rng.integers(1, 4, n).astype(float), rng.random(n) + 0.1)[int(rng.integers(3))]
    return X, y, weight, n_classes, int(rng.integers(1, 4)), int(rng.choice([1, 1, 2, 3]))


def merged(X: Any, y: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Equal rows as one row with the sum of their weights."""
    table = np.column_stack([np.where(np.isnan(X), -9.0, X), y])
    rows, places = np.unique(table, axis=0, return_inverse=True)
    known = np.where(rows[:, :-1] == -9, np.nan, rows[:, :-1])
    return known, rows[:, -1], np.bincount(places.ravel(), weights=weight)


def sides(X: Any) -> list[Any]:
    """Which rows go left, of every split there is."""
    splits = []
    for column in X.T:
        missing, values = np.isnan(column), np.unique(column[~np.isnan(column)])
        splits += [np.where(missing, False, column <= value) for value in values[:-1]]
        if missing.any():
            splits += [np.where(missing, True, column <= value) for value in values[:-1]] + [~missing]
    return splits


def leaf_loss(y: Any, weight: Any, n_classes: int) -> float:
    if n_classes:
        return float(weight.sum() - max(weight[y == k].sum() for k in range(n_classes)))
    return float(weight @ np.square(y - weight @ y / weight.sum()))


def least_loss(y: Any, weight: Any, n_classes: int, splits: list[Any], rows: Any, depth: int, min_rows: int) -> float:
    """Of all trees of a depth, one after the other."""
    best = leaf_loss(y[rows], weight[rows], n_classes) if rows.sum() >= min_rows else np.inf
    if depth:
        for split in splits:
            left, right = rows & split, rows & ~split
            if left.any() and right.any():
                parts = (least_loss(y, weight, n_classes, splits, part, depth - 1, min_rows) for part in (left, right))
                best = min(best, sum(parts))
    return best


def remembered(y: Any, weight: Any, n_classes: int, splits: list[Any], rows: Any, depth: int, known: Any) -> float:
    """The same of deeper trees: no set of rows is looked at twice."""
    key = (rows.tobytes(), depth)
    if key not in known:
        known[key] = leaf_loss(y[rows], weight[rows], n_classes)
        for split in splits if depth else []:
            parts = (rows & split, rows & ~split)
            if parts[0].any() and parts[1].any():
                losses = (remembered(y, weight, n_classes, splits, part, depth - 1, known) for part in parts)
                known[key] = min(known[key], sum(losses))
    return float(known[key])


def tree_of(n_classes: int, **settings: Any) -> Any:
    kind = cf.DecisionTreeClassifier if n_classes else cf.DecisionTreeRegressor
    return kind(search="optimal", **settings)


@pytest.mark.filterwarnings("ignore:Not proven")
@pytest.mark.parametrize("seeds", [range(40), range(40, 80)])
@pytest.mark.slow
def test_loss_and_bounds_are_those_of_a_search_of_all_trees(seeds):
    n_open = 0
    for seed in seeds:
        X, y, weight, n_classes, depth, min_rows = case(seed)
        codes = np.unique(y, return_inverse=True)[1] if n_classes else y
        rows, targets, mass = merged(X, codes, weight)
        if len(mass) < min_rows or len(np.unique(y)) < 2:
            continue
        everything = np.ones(len(mass), dtype=bool)
        truth = least_loss(targets, mass, n_classes, sides(rows), everything, depth, min_rows) / mass.sum()
        for max_nodes in (5000, 1, 4):
            model = tree_of(n_classes, max_depth=depth, min_samples_leaf=min_rows, max_nodes=max_nodes)
            proof = model.fit(X, y, weight).certificate_
            assert proof.holds and proof.least_loss <= truth * (1 + 1e-12) + 1e-15, seed
            assert proof.loss >= truth * (1 - 1e-9) - 1e-15, seed
            if max_nodes == 5000:
                assert proof.is_closed and np.isclose(proof.loss, truth, rtol=1e-9, atol=1e-12), seed
            n_open += not proof.is_closed
            n_rows = np.bincount(model.apply(rows), minlength=model.tree_.n_nodes)[model.tree_.is_leaf]
            assert (n_rows >= min_rows).all(), seed
    assert n_open


@pytest.mark.filterwarnings("ignore:Not proven")
@pytest.mark.parametrize("n_classes", [0, 2])
@pytest.mark.slow
def test_at_depth_four_too(n_classes):
    n_closed = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 3, size=(40, 3)).astype(float)
        y = rng.integers(0, 2, 40) if n_classes else rng.normal(size=40).round(1)
        rows, targets, mass = merged(X, y, np.ones(40))
        everything = np.ones(len(mass), dtype=bool)
        truth = remembered(targets, mass, n_classes, sides(rows), everything, 4, {}) / mass.sum()
        for max_nodes in (2000, 3):
            proof = tree_of(n_classes, max_depth=4, max_nodes=max_nodes).fit(X, y).certificate_
            assert proof.holds and proof.least_loss <= truth * (1 + 1e-12) + 1e-15, seed
            assert proof.loss >= truth * (1 - 1e-9) - 1e-15, seed
            if proof.is_closed:
                n_closed += 1
                assert np.isclose(proof.loss, truth, rtol=1e-9, atol=1e-12), seed
    assert n_closed


def table(n_classes: int = 2, n: int = 300, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, 2)), rng.integers(0, 5, n)])
    score = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.5 * rng.normal(size=n)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes)) if n_classes else score
    return X, y, rng.integers(1, 4, n).astype(float)


CLASSES = pytest.mark.parametrize("n_classes", [2, 3, 0])


@CLASSES
def test_weight_two_is_the_row_twice_and_neither_order_nor_threads_matter(n_classes, rng):
    X, y, weight = table(n_classes)
    rows = rng.permutation(np.repeat(np.arange(len(y)), weight.astype(int)))
    first = tree_of(n_classes, max_depth=3).fit(X, y, weight)
    with cf.threads(2):
        second = tree_of(n_classes, max_depth=3).fit(X[rows], y[rows])
    for name in ("feature", "left", "threshold", "is_missing_left"):
        assert np.array_equal(getattr(first.tree_, name), getattr(second.tree_, name))
    assert np.isclose(first.certificate_.least_loss, second.certificate_.least_loss, rtol=1e-9)


@CLASSES
def test_a_greedy_tree_is_compared_with_the_best_on_request(n_classes):
    X, y, weight = table(n_classes)
    X = X.round(1)  # few values: the grid has every threshold
    greedy = (cf.DecisionTreeClassifier if n_classes else cf.DecisionTreeRegressor)(max_depth=2, n_thresholds=254)
    best = tree_of(n_classes, max_depth=2, n_thresholds=254).fit(X, y, weight)
    greedy.fit(X, y, weight)
    assert greedy.certificate_.least_loss is None and "greedy" in str(greedy.certificate_)
    proof = greedy.certify(X, y, weight, against="optimal")
    assert proof.holds and proof.least_loss == best.certificate_.least_loss
    assert proof.loss >= best.certificate_.loss * (1 - 1e-12)
    if n_classes:
        wrong = (greedy.predict(X) != y) @ weight / weight.sum()
    else:
        wrong = np.square(greedy.predict(X) - y) @ weight / weight.sum()
    assert np.isclose(proof.loss, wrong)


@CLASSES
def test_another_tree_and_a_bound_too_high_are_refused(n_classes):
    X, y, weight = table(n_classes)
    model = tree_of(n_classes, max_depth=2).fit(X, y, weight)
    assert cf.verify(model, X, y, weight)
    proof, tree = model.certificate_, model.tree_
    kind = cf.DecisionTreeClassifier if n_classes else cf.DecisionTreeRegressor
    model.tree_ = kind(max_depth=1).fit(X, y, weight).tree_  # right in its numbers, and not the best
    refused = cf.verify(model, X, y, weight)
    assert not refused and "the same search finds a tree" in str(refused.certificate)
    model.tree_, model.certificate_ = tree, replace(proof, least_loss=proof.least_loss * 1.01)
    assert not cf.verify(model, X, y, weight)


def test_grids_have_few_thresholds_or_all():
    X = np.arange(200.0)[:, None]
    y = (X[:, 0] > 100.2).astype(int)
    counts = [
        tree_of(2, max_depth=1, n_thresholds=n)
        .fit(X[:m], y[:m] if m > 150 else X[:m, 0] > 30)
        .certificate_.n_thresholds
        for n, m in ((32, 200), (254, 200), (32, 64), (7, 200))
    ]
    assert counts == [32, 199, 63, 7]


def test_what_the_search_cannot_obey_is_refused_in_words():
    X, y, _ = table()
    for settings, words in (
        ({}, "needs max_depth from 1 to 4"),
        ({"max_depth": 5}, "Got 5"),
        ({"max_depth": 2, "ccp_alpha": 0.1}, "ccp_alpha is of a greedy search"),
        ({"max_depth": 2, "max_leaf_nodes": 3}, "max_leaf_nodes"),
        ({"max_depth": 2, "max_bins": 16}, "max_bins is of a greedy search"),
        ({"max_depth": 2, "categorical_features": [0]}, "categorical_features is of a greedy search"),
        ({"max_depth": 2, "monotonic_cst": {0: 1}}, "monotonic_cst is of a greedy search"),
    ):
        for n_classes in (2, 0):
            with pytest.raises(ValueError, match=words):
                tree_of(n_classes, **settings).fit(X, y)
    with pytest.raises(ValueError, match="criterion='poisson'"):
        tree_of(0, max_depth=2, criterion="poisson").fit(X, y)
    with pytest.raises(ValueError, match="Weights are too far apart"):
        tree_of(2, max_depth=2).fit(X, y, np.where(np.arange(len(y)) == 0, 1e-13, 1.0))
    with pytest.raises(ValueError, match="depths 1 to 4"):
        cf.DecisionTreeClassifier().fit(X, y).certify(X, y, against="optimal")
    with pytest.raises(ValueError, match="against must be 'optimal' or None"):
        cf.DecisionTreeClassifier(max_depth=2).fit(X, y).certify(X, y, against="best")
    with pytest.raises(ValueError, match="not pruned"):
        tree_of(2, max_depth=2).cost_complexity_pruning_path(X, y)


def test_a_bound_on_trees_of_large_leaves_says_so(tmp_path):
    X, y, _ = table(n=60)
    model = tree_of(2, max_depth=2, min_samples_leaf=20).fit(X, y)
    freer = tree_of(2, max_depth=2).fit(X, y)
    assert freer.certificate_.loss < model.certificate_.least_loss  # smaller leaves have a smaller loss
    assert "with at least 20 distinct rows in every leaf, has a" in str(model.certificate_)
    assert "distinct rows" not in str(freer.certificate_)
    cf.save(model, tmp_path / "m.certifit")
    assert str(cf.load(tmp_path / "m.certifit").certificate_) == str(model.certificate_)
    with pytest.raises(ValueError, match="No tree has 4 distinct rows in every leaf"):
        tree_of(2, max_depth=1, min_samples_leaf=4).fit([[0.0], [1.0], [2.0]], [0, 1, 1])


def test_squares_beyond_float64_are_refused_in_words():
    X, y, _ = table(0, n=20)
    with pytest.raises(ValueError, match="Squares of y leave the range"):
        tree_of(0, max_depth=2).fit(X, 1e-155 * y)


def test_xor_is_solved_at_its_root():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    best = tree_of(2, max_depth=2).fit(X, y)
    assert best.score(X, y) > cf.DecisionTreeClassifier(max_depth=2).fit(X, y).score(X, y) + 0.2
    assert set(best.tree_.feature[best.tree_.left > 0]) == {0, 1}


def test_the_bound_of_classes_is_not_above_the_exact_share_and_the_best_tree_is_called_so():
    for seed in range(25):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(20, 300))
        X, y = rng.integers(0, 6, size=(n, 3)).astype(float), rng.integers(0, 3, n)
        model = tree_of(3, max_depth=2).fit(X, y)
        wrong, least = int((model.predict(X) != y).sum()), model.certificate_.least_loss
        assert Fraction(least) <= Fraction(wrong, n) and np.nextafter(least, 1) * n >= wrong * (1 - 1e-15)
        assert "smaller loss than this one, " in str(model.certificate_)
        assert "proven to be the best" in str(model.certificate_)


def exact_least(y: list[Fraction], weight: list[Fraction], splits: list[Any], rows: Any, depth: int) -> Fraction:
    """The least weighted sum of squared errors of a tree of a depth, without rounding."""
    places = np.flatnonzero(rows)
    mass = sum(weight[i] for i in places)
    mean = sum(weight[i] * y[i] for i in places) / mass
    best = sum((weight[i] * (y[i] - mean) ** 2 for i in places), Fraction(0))
    for split in splits if depth else []:
        left, right = rows & split, rows & ~split
        if left.any() and right.any():
            best = min(best, sum(exact_least(y, weight, splits, part, depth - 1) for part in (left, right)))
    return best


@pytest.mark.parametrize("centre", [0.0, 1e8, -3e12])
def test_the_bound_of_squared_errors_is_rounded_outward(centre):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 3, size=(14, 2)).astype(float)
        y, weight = centre + rng.normal(size=14), rng.random(14) + 0.1
        exact = [[Fraction(float(value)) for value in column] for column in (y, weight)]
        truth = exact_least(*exact, sides(X), np.ones(14, dtype=bool), 2) / sum(exact[1])
        proof = tree_of(0, max_depth=2).fit(X, y, weight).certificate_
        assert proof.holds and proof.is_closed and Fraction(proof.least_loss) <= truth
        assert proof.least_loss >= float(truth) - 1e-9 * float(np.square(y - y.mean()).max()) - 1e-12 * abs(centre)


def test_categories_are_split_one_level_against_the_rest():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"kind": rng.choice(list("abcde"), 200), "size": rng.normal(size=200).round(1)})
    y = np.where(frame["kind"] == "c", 2.0, 0.0) + 0.01 * rng.normal(size=200)
    model = tree_of(0, max_depth=1, encoder="auto").fit(frame, y)
    answers = model.predict(frame)
    assert len(np.unique(answers)) == 2 and ((answers > 1) == (frame["kind"] == "c")).all()
    assert model.certificate_.is_closed


def test_a_tree_of_finer_thresholds_is_not_called_the_best_of_the_grid():
    X = np.arange(300.0)[:, None]
    y = np.where(X[:, 0] > 151, 1.0, 0.0)
    greedy = cf.DecisionTreeRegressor(max_depth=1, n_thresholds=3).fit(X, y)
    proof = greedy.certify(X, y, against="optimal")
    assert proof.loss < 1e-20 < proof.least_loss and not proof.is_closed and "finer than the grid" in str(proof)


@pytest.mark.filterwarnings("ignore:Not proven")
def test_the_budget_is_of_nodes_and_no_clock_has_a_say():
    X, y, weight = table(2, n=400)
    assert "max_time" not in tree_of(2).get_params()
    bounds = []
    for max_nodes in (1, 5, 20, 100, 5000):
        proof = tree_of(2, max_depth=3, max_nodes=max_nodes).fit(X, y, weight).certificate_
        bounds.append((proof.least_loss, proof.loss))
    lower, upper = zip(*bounds, strict=True)
    assert list(lower) == sorted(lower) and list(upper) == sorted(upper, reverse=True)
    assert proof.is_closed and lower[0] < upper[-1] <= upper[0]


def test_an_exact_fit_is_closed_and_kept(tmp_path):
    """What is left of the loss is rounding, as far from its bound of 0 as it is large."""
    group = np.arange(12) % 3
    y = np.array([0.1, 0.7, 1.3])[group] * 1e5
    model = tree_of(0, max_depth=2).fit(np.column_stack([group, np.arange(12)]), y, np.linspace(0.1, 0.9, 12))
    proof = model.certificate_
    assert proof.is_closed and 0 < proof.loss < 1e-10 and proof.least_loss == 0
    assert "best" not in proof.sentences()[1] and "rounding of sums" in proof.sentences()[1]
    cf.save(model, tmp_path / "tree.certifit")
    assert cf.load(tmp_path / "tree.certifit").certificate_.is_closed


NUMBERS = (
    [[0.0, 3.0], [2.0, 3.0], [np.nan, np.nan], [2.0, 2.0]],
    [1.05, -0.0867, -1.68, 0.504],
    [1.9e-3, 1.0e-9, 8.3e-12, 8.0e-14],
)
CODES = (
    [[-0.9, 1.8, -1.3], [-0.4, 0.0, 1.9], [-0.6, -0.1, -0.2], [-0.8, 0.6, 0.3], [-0.2, -1.1, -1.4], [0.9, 0.9, -0.8]],
    [0, 2, 0, 1, 0, 1],
    [6.2e-3, 5.0e-8, 2.7e-4, 2.0e-6, 5.9e-9, 4.4e-14],
)


@pytest.mark.filterwarnings("ignore:Not proven")
@pytest.mark.parametrize(("n_classes", "rows"), [(0, NUMBERS), (3, CODES)])
def test_a_better_tree_is_not_denied_where_weights_are_far_apart(n_classes, rows, tmp_path):
    """Sums round by more than light rows weigh: the bound is said, and not that the tree is the best."""
    X, y, weight = (np.array(part) for part in rows)
    depth = 3 if n_classes else 2
    model = tree_of(n_classes, max_depth=depth).fit(X, y, weight)
    proof = model.certificate_
    truth = least_loss(y, weight, n_classes, sides(X), np.ones(len(y), dtype=bool), depth, 1) / weight.sum()
    assert proof.holds and proof.least_loss <= truth
    if proof.loss > truth * (1 + 1e-8):
        assert "best" not in proof.sentences()[1].replace("the best can be", "")
    cf.save(model, tmp_path / "tree.certifit")
    cf.load(tmp_path / "tree.certifit")


@pytest.mark.filterwarnings("ignore:Not proven")
def test_a_loss_of_everything_is_not_closed():
    """Of two rows, one too light to be seen: a split has no loss at all, and none was found."""
    model = tree_of(0, max_depth=1).fit([[0.0], [1.0]], [-3.00000002, -3.0], [0.5, 1.12e-12])
    proof = model.certificate_
    if proof.loss > 0:
        assert not proof.is_closed and proof.least_loss == 0
