"""Boosted trees in files: nodes that are no trees, and numbers that contradict each other, are refused."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from forge import edited, refuse, with_number

import certifit as cf
from certifit.modelfile.files import from_bytes, to_bytes


@cache
def file_of(kind: str) -> bytes:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    score = X[:, 0] * X[:, 1] + X[:, 2]
    if kind == "classes":
        model = cf.GradientBoostingClassifier(3, min_samples_leaf=5).fit(X, np.digitize(score, [-0.5, 0.5]))
    else:
        model = cf.GradientBoostingRegressor(3, min_samples_leaf=5, monotonic_cst=[0, 0, 1]).fit(X, score)
    return to_bytes(model)


KINDS = pytest.mark.parametrize("kind", ["classes", "numbers"])
FORGED = {
    "a child that is its own parent": ("trees.left", 1, 1),
    "a child beyond the last": ("trees.left", 0, 99),
    "a child far beyond": ("trees.left", 0, 2**62),
    "a negative child": ("trees.left", 0, -1),
    "a leaf where nodes hang": ("trees.left", 0, 0),
    "a column beyond the last": ("trees.feature", 0, 3),
    "a column of 2**62": ("trees.feature", 0, 2**62),
    "a tree that ends before it begins": ("trees.ends", 1, 0),
    "a tree beyond the nodes": ("trees.ends", 1, 2**62),
    "a flag of 2": ("trees.is_missing_left", 0, 2),
    "a gain below 0": ("trees.gain", 0, -1.0),
    "a loss that the certificate does not state": ("trees.loss", -1, 0.123),
    "a direction of 5": ("directions", 0, 5),
    "a direction without a size": ("directions", 0, -(2**63)),
}


@KINDS
@pytest.mark.parametrize("array, place, number", FORGED.values(), ids=FORGED)
def test_what_is_no_boosting_is_refused(kind, array, place, number):
    refuse(with_number(file_of(kind), array, place, number))


@KINDS
@pytest.mark.parametrize("key", ["n_rounds", "n_nodes", "n_scores", "n_held_out"])
def test_other_sizes_than_those_of_the_arrays_are_refused(kind, key):
    model = from_bytes(file_of(kind))
    true = {"n_scores": model.boosting_.width, "n_held_out": 0}
    for number in {0, 1, 2**40} - {true.get(key)}:
        refuse(edited(file_of(kind), key, number))


def test_directions_and_answers_come_back():
    model = from_bytes(file_of("numbers"))
    assert model.monotonic_cst == [0, 0, 1] and len(model.history_) == 3
    assert to_bytes(model) == file_of("numbers")


@cache
def file_of_levels() -> bytes:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 5, 120), rng.normal(size=120)])
    y = np.array([2.0, -1, 0, 4, -2])[X[:, 0].astype(int)] + X[:, 1]
    return to_bytes(cf.GradientBoostingRegressor(3, min_samples_leaf=5, categorical_features=[0]).fit(X, y))


OF_LEVELS = {
    "a set with a level that the category has not": ("trees.sets", 0, 2**40),
    "a category of fewer levels": ("trees.n_levels", 0, 2),
    "no category": ("trees.n_levels", 0, 0),
    "another category": ("trees.n_levels", 1, 3),
    "a set that is not there": ("trees.threshold", 0, 99.0),
    "half a set": ("trees.threshold", 0, 0.5),
    "an infinite set": ("trees.threshold", 0, np.inf),
    "a direction of a category": ("directions", 0, 1),
}


@pytest.mark.parametrize("array, place, number", OF_LEVELS.values(), ids=OF_LEVELS)
def test_sets_that_are_no_sets_of_levels_are_refused(array, place, number):
    model = from_bytes(file_of_levels())
    assert model.boosting_.feature[0] == 0 and to_bytes(model) == file_of_levels()
    refuse(with_number(file_of_levels(), array, place, number))


@pytest.mark.parametrize("number", [0, 1, 2**40])
def test_another_number_of_sets_is_refused(number):
    refuse(edited(file_of_levels(), "n_sets", number))
