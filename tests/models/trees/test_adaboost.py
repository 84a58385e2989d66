"""AdaBoost: its stumps beside brute force, its bound, its margins, and its certificate beside changed votes."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import certifit as cf


def problem(n_classes: int = 2, n: int = 60, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 4, n), rng.normal(size=n).round(1)])
    score = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    return X, y, rng.integers(1, 4, n).astype(float)


def stumps(X: Any) -> list[Any]:
    """Whether each row is on the left, for every stump; the last one has all rows there."""
    return [column <= t for column in X.T for t in np.unique(column)]


def least_error(X: Any, y: Any, weight: Any) -> float:
    """Of all stumps, each side called as is best for it."""
    labels = np.unique(y)
    found = []
    for left in stumps(X):
        sides = [[weight[side & (y == label)].sum() for label in labels] for side in (left, ~left)]
        found.append(1 - sum(max(side) for side in sides))
    return min(found)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_every_stump_has_the_least_weighted_error(n_classes, rate):
    X, y, weight = problem(n_classes)
    model = cf.AdaBoostClassifier(12, learning_rate=rate).fit(X, y, weight)
    vote, w = model.vote_, weight / weight.sum()
    for j in range(vote.n_rounds):
        called = np.where(X[:, vote.feature[j]] <= vote.threshold[j], vote.left[j], vote.right[j])
        assert np.isclose(vote.error[j], w[called != y].sum(), rtol=1e-9)
        assert np.isclose(vote.error[j], least_error(X, y, w), rtol=1e-9)
        odds = np.log((1 - vote.error[j]) / vote.error[j]) + np.log(n_classes - 1)
        assert np.isclose(vote.alpha[j], rate * odds)
        w = np.where(called != y, w * np.exp(vote.alpha[j]), w)
        w /= w.sum()


@pytest.mark.parametrize("rate", [1.0, 0.5, 1.7])
def test_the_training_error_is_below_its_bound_in_every_round(rate):
    for seed in range(3):
        X, y, weight = problem(seed=seed)
        model = cf.AdaBoostClassifier(30, learning_rate=rate).fit(X, y, weight)
        for row, predicted in zip(model.history_, model.staged_predict(X), strict=True):
            assert np.isclose(row["training_error"], weight[predicted != y].sum() / weight.sum(), atol=1e-12)
            assert row["training_error"] <= row["bound"] * (1 + 1e-12)
        if rate == 1:
            errors = model.estimator_errors_
            assert np.isclose(model.certificate_.bound, np.prod(2 * np.sqrt(errors * (1 - errors))))
        assert model.certificate_.holds


def best_margin(X: Any, y: Any) -> float:
    """The value of the margin game, by linear programming over all stumps, both signs and constants."""
    columns = np.array([np.where(left, 1.0, -1.0) for left in stumps(X)]).T
    games = (2 * y - 1)[:, None] * np.column_stack([columns, -columns])
    n, m = games.shape
    found = linprog(
        np.append(np.zeros(m), -1.0),
        A_ub=np.column_stack([-games, np.ones(n)]),
        b_ub=np.zeros(n),
        A_eq=[np.append(np.ones(m), 0.0)],
        b_eq=[1.0],
        bounds=[(0, None)] * m + [(None, None)],
    )
    return float(-found.fun)


def test_margins_are_around_the_value_of_the_game():
    for seed in range(2):
        X, y, _ = problem(n=30, seed=seed)
        model = cf.AdaBoostClassifier(200).fit(X, y)
        value, stated = best_margin(X, y), model.certificate_
        assert np.isclose(model.margins(X, y).min(), stated.margin)
        assert stated.margin - 1e-9 <= value <= stated.best_margin + 1e-9
        assert stated.best_margin - stated.margin < 0.2


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weight_two_is_the_row_twice_and_the_order_of_rows_is_nothing(n_classes, rng):
    X, y, weight = problem(n_classes)
    rows = rng.permutation(np.repeat(np.arange(len(y)), weight.astype(int)))
    first, second = (cf.AdaBoostClassifier(15).fit(*rows) for rows in ((X, y, weight), (X[rows], y[rows])))
    assert all(
        np.array_equal(a, b) for a, b in zip(vars(first.vote_).values(), vars(second.vote_).values(), strict=True)
    )


def test_a_stump_without_error_votes_alone_and_chance_ends_the_rounds():
    perfect = cf.AdaBoostClassifier().fit([[1.0], [2.0], [3.0]], ["a", "a", "b"])
    assert perfect.vote_.n_rounds == 1 and perfect.predict([[2.4], [2.6]]).tolist() == ["a", "b"]
    assert perfect.certificate_.holds and perfect.certificate_.best_margin == perfect.certificate_.margin == 1
    chance = cf.AdaBoostClassifier().fit([[1.0], [1.0]], ["a", "b"])
    assert chance.vote_.alpha.tolist() == [0.0] and chance.predict([[1.0]]).tolist() == ["a"]
    assert chance.certificate_.holds and chance.certificate_.bound == 1


def test_probabilities_are_logistic_in_the_vote():
    X, y, _ = problem()
    model = cf.AdaBoostClassifier(9).fit(X, y)
    assert np.allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-model.decision_function(X))))
    assert np.array_equal(model.predict(X), (model.decision_function(X) > 0).astype(int))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_changed_numbers_and_other_rows_are_refused(n_classes):
    X, y, weight = problem(n_classes)
    model = cf.AdaBoostClassifier(8).fit(X, y, weight)
    assert cf.verify(model, X, y, weight)
    vote = model.vote_
    for name in ("threshold", "error", "alpha"):
        for place in np.flatnonzero(np.isfinite(getattr(vote, name))):
            changed = getattr(vote, name).copy()
            changed[place] = changed[place] * (1 + 1e-4) + (changed[place] == 0)
            model.vote_ = replace(vote, **{name: changed})
            assert not cf.verify(model, X, y, weight), (name, place)
    model.vote_ = replace(vote, left=vote.left[::-1].copy(), right=vote.right[::-1].copy())
    if not np.array_equal(vote.left, vote.left[::-1]):
        assert not cf.verify(model, X, y, weight)


def test_missing_values_are_refused_in_words():
    with pytest.raises(ValueError, match="NaN: row 1"):
        cf.AdaBoostClassifier().fit([[1.0], [np.nan]], ["a", "b"])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_training_error_that_is_not_that_of_the_rows_is_refused(n_classes):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 3))
    y = np.digitize(X[:, 0] * X[:, 1] + X[:, 2], np.linspace(-0.5, 0.5, n_classes - 1))
    model = cf.AdaBoostClassifier(8).fit(X, y)
    assert model.certificate_.holds
    for place in (0, 4, 7):
        errors = model.vote_.training_error.copy()
        errors[place] += 1e-6
        changed = copy.copy(model)
        changed.vote_ = replace(model.vote_, training_error=errors)
        assert "training error" in changed.certify(X, y).fault


def long_table(n_classes: int, n: int = 3000) -> tuple[Any, Any, Any]:
    """Columns with many values, few, one that most rows have, runs of equal ones, and one alone."""
    rng = np.random.default_rng(n_classes)
    mostly = np.where(rng.random(n) < 0.9, 0.5, rng.normal(size=n))
    X = np.column_stack([
        rng.normal(size=n), rng.integers(0, 4, n), mostly, rng.normal(size=n).round(1), np.exp(rng.normal(size=n)),
        np.ones(n),
    ])  # fmt: skip
    score = X[:, 0] + X[:, 1] * X[:, 3] + np.log(X[:, 4]) + rng.normal(size=n)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    return X, y, rng.exponential(size=n)


def least_of_sorted(X: Any, y: Any, weight: Any) -> float:
    """The least error of all stumps: what both sides of every cut have beside their heaviest class."""
    of_class = weight[:, None] * (y[:, None] == np.unique(y))
    least = [1 - of_class.sum(axis=0).max()]
    for x in X.T:
        order = np.argsort(x)
        left = of_class[order].cumsum(axis=0)[:-1][np.diff(x[order]) > 0]
        right = of_class.sum(axis=0) - left
        least += (1 - left.max(axis=1) - right.max(axis=1)).tolist()
    return float(min(least))


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_no_stump_of_a_long_table_is_better_and_threads_change_nothing(n_classes):
    X, y, weight = long_table(n_classes)
    fits = []
    for n_threads in (1, 2, 5):
        with cf.threads(n_threads):
            fits.append(cf.AdaBoostClassifier(20).fit(X, y, weight))
    vote, w = fits[0].vote_, weight / weight.sum()
    for j in range(vote.n_rounds):
        called = np.where(X[:, vote.feature[j]] <= vote.threshold[j], vote.left[j], vote.right[j])
        assert np.isclose(vote.error[j], least_of_sorted(X, y, w), rtol=1e-9)
        w = np.where(called != y, w * np.exp(vote.alpha[j]), w)
        w /= w.sum()
    for other in fits[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(vars(vote).values(), vars(other.vote_).values(), strict=True))
        assert other.certificate_ == fits[0].certificate_
    assert fits[0].certificate_.holds


def test_the_best_margin_is_the_least_of_the_largest_edges_of_all_stumps():
    X, y, weight = long_table(2, n=700)
    model = cf.AdaBoostClassifier(9).fit(X, y, weight)
    w, tried = weight / weight.sum(), []
    for called, alpha in zip(stump_calls(model, X), model.vote_.alpha, strict=True):
        tried.append(w)
        w = np.where(called != y, w * np.exp(alpha), w)
        w /= w.sum()
    hardest = tried[int(model.vote_.error.argmax())]
    edges = [1 - 2 * least_of_sorted(X, y, w) for w in (hardest, np.mean(tried, axis=0), np.mean(tried[7:], axis=0))]
    assert min(edges) <= model.certificate_.best_margin <= min(edges) + 1e-11


def stump_calls(model: Any, X: Any) -> list[Any]:
    """What every stump calls the rows."""
    return [np.where(X[:, j] <= t, left, right) for j, t, left, right in model.vote_.stumps()]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_huge_learning_rates_leave_weights_that_are_numbers(n_classes):
    X, y, weight = problem(n_classes)
    model = cf.AdaBoostClassifier(5, learning_rate=1e6).fit(X, y, weight)
    assert np.isfinite(model.vote_.error).all() and np.isfinite(model.vote_.alpha).all()
    assert np.isclose(model.vote_.error[0], least_error(X, y, weight / weight.sum()))
