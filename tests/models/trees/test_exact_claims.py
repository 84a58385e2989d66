"""What certificates of trees and their ensembles state, beside sums of fractions: weights far apart, ties, draws."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import certifit as cf

ROUNDING = Fraction(1, 2**50)
FAR = np.array([1e-200, 1e200] * 10)


def weights_of(rng: Any, n: int) -> Any:
    """None, whole, far apart, or such that some vanish in a sum."""
    kinds = (None, rng.integers(1, 4, n).astype(float), 10.0 ** rng.uniform(-140, 140, n), rng.choice([1.0, 1e-16], n))
    return kinds[rng.integers(len(kinds))]


def rows_of(seed: int, of_classes: bool) -> tuple[Any, Any, Any, Any]:
    """Rows with ties, gaps and codes of a category in column 0, targets and weights."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 30))
    X = np.column_stack([rng.integers(0, 4, n), np.round(rng.normal(size=(n, 2)), int(rng.integers(0, 3)))])
    y = (X[:, 1] > 0) ^ (rng.uniform(size=n) < 0.2) if of_classes else rng.normal(size=n) + 100.0 * (seed % 2)
    y = np.asarray(y, dtype=float)
    y[:2] = 0.0, 1.0
    return X, y, weights_of(rng, n), rng


def fractions(numbers: Any) -> list[Fraction]:
    return [Fraction(float(number)) for number in numbers]


def path(state: Any, row: Any) -> list[int]:
    """The nodes on the way of a row."""
    way = [0]
    while state.left[way[-1]]:
        node = way[-1]
        value = row[int(state.feature[node])]
        if math.isnan(value):
            goes_left = bool(state.is_missing_left[node])
        elif state.is_of_levels[node]:
            goes_left = int(value) in state.levels_left(node)
        else:
            goes_left = value <= state.threshold[node]
        way.append(int(state.left[node]) + (not goes_left))
    return way


def changed(model: Any, attribute: str, **arrays: Any) -> Any:
    other = copy.copy(model)
    setattr(other, attribute, replace(getattr(model, attribute), **arrays))
    return other


def nudged(numbers: Any, place: int, by: float) -> Any:
    numbers = np.array(numbers, dtype=float)
    numbers[place] += by
    return numbers


@pytest.mark.parametrize("case", range(12))
@pytest.mark.parametrize("of_classes", [True, False])
def test_numbers_of_a_tree_are_those_of_fractions(of_classes, case):
    X, y, weight, rng = rows_of(case, of_classes)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    kind = cf.DecisionTreeClassifier if of_classes else cf.DecisionTreeRegressor
    bins = 4 if case % 3 == 0 else None
    model = kind(max_depth=3, max_bins=bins, categorical_features=[0] if case % 2 else None).fit(X, y, weight)
    assert model.certificate_.holds
    state, targets = model.tree_, fractions(y)
    mass = [Fraction(1)] * len(y) if weight is None else fractions(weight)
    sums = [[Fraction(0)] * 3 for _ in range(state.n_nodes)]
    for row, w, target in zip(X, mass, targets, strict=True):
        for node in path(state, row):
            sums[node] = [a + b for a, b in zip(sums[node], (w, w * target, w * target**2), strict=True)]
    means = [total / w for w, total, _ in sums]
    unit = Fraction(1) if of_classes else max(abs(target - means[0]) for target in targets)
    spreads = [squares / w - mean**2 for (w, _, squares), mean in zip(sums, means, strict=True)]
    times = 2 if of_classes else 1  # Gini of two classes is twice their variance
    allowed = len(y) * 8 * ROUNDING * (1 + max(abs(target) for target in targets) / unit)
    stored = state.values[:, 1] / state.weight if of_classes else state.values
    for node in range(state.n_nodes):
        assert abs(Fraction(float(state.weight[node])) / sums[node][0] - 1) <= allowed
        assert abs(Fraction(float(stored[node])) - means[node]) <= allowed * unit
        assert abs(Fraction(float(state.impurity[node])) - times * spreads[node]) <= allowed * unit**2
        left = int(state.left[node])
        if left:
            within = sum(sums[child][0] * spreads[child] for child in (left, left + 1))
            decrease = times * (sums[node][0] * spreads[node] - within) / sums[0][0]
            assert abs(Fraction(float(state.decrease[node])) - decrease) <= allowed * unit**2
    of_numbers = np.flatnonzero((state.left > 0) & ~state.is_of_levels & np.isfinite(state.threshold))
    nudges = {"impurity": 1e-6 * float(unit) ** 2, "decrease": 1e-6 * float(unit) ** 2}
    others = [changed(model, "tree_", **{name: nudged(getattr(state, name), 0, by)}) for name, by in nudges.items()]
    if not of_classes:
        others.append(changed(model, "tree_", values=nudged(state.values, -1, 1e-6 * float(unit))))
    for node in of_numbers[:1]:
        up = np.nextafter(state.threshold[node], np.inf) - state.threshold[node]
        others.append(changed(model, "tree_", threshold=nudged(state.threshold, node, up)))
    assert not any(other.certify(X, y, weight).holds for other in others)


@pytest.mark.parametrize("case", range(12))
def test_error_bound_and_margin_of_boosted_stumps_are_those_of_fractions(case):
    X, y, weight, _ = rows_of(case, of_classes=True)
    model = cf.AdaBoostClassifier(15, learning_rate=(1.0, 0.5, 2.0)[case % 3]).fit(X, y, weight)
    certificate, vote = model.certificate_, model.vote_
    assert certificate.holds
    alphas = fractions(vote.alpha)
    mass = [Fraction(1)] * len(y) if weight is None else fractions(weight)
    leads = []
    for row, label in zip(X, y, strict=True):
        calls = np.where(row[vote.feature] <= vote.threshold, vote.left, vote.right)
        leads.append(sum(a if call == label else -a for a, call in zip(alphas, calls, strict=True)))
    error = sum(w for w, lead in zip(mass, leads, strict=True) if lead <= 0) / sum(mass)
    assert error <= Fraction(certificate.error) * (1 + 64 * len(y) * ROUNDING)
    assert error <= Fraction(certificate.bound) * (1 + Fraction(1, 10**9))
    margin = min(leads) / sum(alphas)
    assert abs(Fraction(certificate.margin) - margin) <= 64 * 15 * ROUNDING
    assert margin <= Fraction(certificate.best_margin)
    for name, by in (("alpha", 1e-6 * vote.alpha[0]), ("error", 1e-6 * vote.error[0])):
        assert not changed(model, "vote_", **{name: nudged(getattr(vote, name), 0, by)}).certify(X, y, weight).holds


@pytest.mark.parametrize("kind", [cf.DecisionTreeClassifier, cf.AdaBoostClassifier])
def test_weights_that_float64_cannot_add_up_are_named(kind):
    X, y = np.arange(20.0)[:, None] % 7, np.arange(20) % 3 == 0
    with pytest.warns(UserWarning, match="span more powers of ten"):
        model = kind().fit(X, y, FAR)
    assert not model.certificate_.holds
    assert np.isfinite(model.predict_proba(X)).all()


def test_the_least_errors_have_finite_votes():
    X, y = np.arange(5.0)[:, None], np.array([1, 0, 0, 1, 0])
    with pytest.warns(UserWarning, match="span more powers of ten"):
        model = cf.AdaBoostClassifier(3).fit(X, y, np.array([1e-310, 1.0, 1.0, 1e-310, 1.0]))
    assert 0 < model.vote_.error[0] < 1e-309
    assert np.isfinite(model.vote_.alpha).all()


def test_a_leaf_of_a_forest_moved_by_the_last_digits_is_refused():
    X, y, _, _ = rows_of(1, of_classes=False)
    model = cf.RandomForestRegressor(5).fit(X, y)
    other = changed(model, "forest_", values=model.forest_.values + 1e-9 * np.abs(model.forest_.values))
    assert model.certificate_.holds and not other.certify(X, y).holds


@pytest.mark.parametrize("size", [1e-20, 1e3, 1e12, 1e20])
@pytest.mark.parametrize("of_classes", [True, False])
def test_what_rounding_excuses_in_a_forest_does_not_grow_with_weights(of_classes, size):
    X, y, _, rng = rows_of(1, of_classes)
    weight = size * rng.uniform(0.5, 1.0, len(y))
    weight[0] = min(size, 0.5)  # not whole, and at 1e20 the sum of all is: there are as many draws as rows
    kind = cf.RandomForestClassifier if of_classes else cf.RandomForestRegressor
    model = kind(5).fit(X, y, weight)
    other = changed(model, "forest_", values=model.forest_.values * (1 + 1e-9))
    assert model.certificate_.holds and not other.certify(X, y, weight).holds


@pytest.mark.parametrize("l2", [0.0, 0.5])
@pytest.mark.parametrize("size", [None, 1e-300, 1e-40, 1e12, 1e300])
def test_leaves_of_boosting_are_those_of_fractions(size, l2):
    X, y, _, rng = rows_of(3, of_classes=False)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    weight = None if size is None else size * rng.uniform(0.1, 1.0, len(y))
    model = cf.GradientBoostingRegressor(3, min_samples_leaf=2, max_leaf_nodes=4, l2=l2).fit(X, y, weight)
    assert model.certificate_.holds
    state, targets = model.boosting_, fractions(y)
    mass = [Fraction(1)] * len(y) if weight is None else fractions(weight)
    scores = fractions(np.repeat(state.start, len(y)))
    allowed = 64 * len(y) * ROUNDING * max(map(abs, targets))
    for begin, end in pairwise(state.ends.tolist()):
        names = ("left", "feature", "threshold", "is_missing_left")
        tree = SimpleNamespace(**{name: getattr(state, name)[begin:end] for name in names})
        tree.is_of_levels = np.zeros(end - begin, dtype=bool)
        leaves = [path(tree, row)[-1] for row in X]
        for leaf in set(leaves):
            here = [i for i, other in enumerate(leaves) if other == leaf]
            slope = sum(mass[i] * (scores[i] - targets[i]) for i in here)
            step = -Fraction(model.learning_rate) * slope / (sum(mass[i] for i in here) + Fraction(l2))
            assert abs(Fraction(float(state.value[begin + leaf])) - step) <= allowed
        scores = [s + Fraction(float(state.value[begin + leaf])) for s, leaf in zip(scores, leaves, strict=True)]
    leaf = int(np.flatnonzero(state.left == 0)[0])
    other = changed(model, "boosting_", value=nudged(state.value, leaf, 1e-9 * np.abs(y).max()))
    assert not other.certify(X, y, weight).holds


@pytest.mark.parametrize("powers", [2, 4, 5])
def test_decreases_of_light_sides_of_more_classes_are_those_of_their_rows(powers):
    """A running sum of squares of the right side had the rounding of the whole, over the weight of a light side."""
    rng = np.random.default_rng(powers)
    for _ in range(12):
        n = int(rng.integers(20, 60))
        X, y = rng.normal(size=(n, 3)), rng.integers(0, 3, n)
        weight = np.where(rng.random(n) < 0.5, 10.0**-powers, 10.0**powers)
        model = cf.DecisionTreeClassifier(max_depth=5).fit(X, y, weight)
        assert model.certificate_.holds, model.certificate_
