"""Trees in files: nodes that are no tree, and numbers that contradict each other, are refused."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from forge import edited, refuse, with_array, with_number

import certifit as cf
from certifit.modelfile.files import from_bytes, to_bytes


@cache
def file_of(kind: str) -> bytes:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    score = X[:, 0] * X[:, 1] + X[:, 2]
    if kind == "classes":
        return to_bytes(cf.DecisionTreeClassifier(max_depth=3).fit(X, np.digitize(score, [-0.5, 0.5])))
    return to_bytes(cf.DecisionTreeRegressor(max_depth=3).fit(X, score, np.arange(60) % 3 + 1.0))


KINDS = pytest.mark.parametrize("kind", ["classes", "numbers"])
NODES = {
    "a child that is its own parent": ("tree.left", 1, 1),
    "a child above its parent": ("tree.left", 2, 1),
    "a child beyond the last": ("tree.left", 0, 99),
    "a child far beyond": ("tree.left", 0, 2**62),
    "a child at the largest integer": ("tree.left", 0, 2**63 - 1),
    "a negative child": ("tree.left", 0, -1),
    "a leaf where nodes hang": ("tree.left", 0, 0),
    "a column beyond the last": ("tree.feature", 0, 3),
    "a negative column": ("tree.feature", 0, -2),
    "a column of 2**62": ("tree.feature", 0, 2**62),
    "a flag of 2": ("tree.is_missing_left", 0, 2),
}


@KINDS
@pytest.mark.parametrize("array, place, number", NODES.values(), ids=NODES)
def test_nodes_that_are_no_tree_are_refused(kind, array, place, number):
    refuse(with_number(file_of(kind), array, place, number))


def test_a_chain_of_a_million_nodes_is_read_in_no_time_or_refused():
    n = 1_000_001
    left = np.zeros(n, dtype=np.int64)
    left[0] = 1
    left[2:-1:2] = np.arange(3, n, 2)
    refuse(edited(with_array(file_of("numbers"), "tree.left", left), "n_nodes", n))


@KINDS
def test_a_number_of_columns_that_nothing_in_the_file_bears_out_is_refused(kind):
    refuse(edited(file_of(kind), "features.count", 2**40))


@KINDS
@pytest.mark.parametrize("array", ["tree.weight", "tree.values", "tree.impurity", "tree.decrease"])
def test_numbers_that_are_not_those_of_the_children_are_refused(kind, array):
    for factor in (1.001, -1.0):
        tree = getattr(from_bytes(file_of(kind)).tree_, array.removeprefix("tree."))
        place = (0,) * tree.ndim
        refuse(with_number(file_of(kind), array, place, float(tree[place]) * factor))


@KINDS
@pytest.mark.parametrize("weight", [0.0, 5e-324, -1.0, 1e308])
def test_a_root_of_another_weight_is_refused_without_a_warning(kind, weight):
    refuse(with_number(file_of(kind), "tree.weight", 0, weight))


STUMPS = {
    "a column beyond the last": ("stumps.feature", 3),
    "a negative column": ("stumps.feature", -1),
    "a class beyond the last": ("stumps.left", 2),
    "a negative class": ("stumps.right", -(2**62)),
    "another error": ("stumps.error", 0.1),
    "an error whose odds are beyond float64": ("stumps.error", 5e-324),
    "another weight": ("stumps.alpha", 0.7),
    "a training error above 1": ("stumps.training_error", 1.5),
}


@pytest.mark.parametrize("array, number", STUMPS.values(), ids=STUMPS)
def test_stumps_that_are_none_are_refused(array, number):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    data = to_bytes(cf.AdaBoostClassifier(6).fit(X, X[:, 0] * X[:, 1] + X[:, 2] > 0))
    refuse(with_number(data, array, 0, number))


FORESTS = {
    **{
        name: (f"forest.{array.removeprefix('tree.')}", place, number) for name, (array, place, number) in NODES.items()
    },
    "a tree without nodes": ("forest.ends", 1, 0),
    "a tree beyond the nodes": ("forest.ends", 1, 2**40),
    "shares that add up to more than 1": ("forest.values", (0, 0), 1.5),
    "a negative gain": ("forest.gains", (0, 0), -1.0),
}


@pytest.mark.parametrize("array, place, number", FORESTS.values(), ids=FORESTS)
def test_nodes_that_are_no_forest_are_refused(array, place, number):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3))
    data = to_bytes(cf.RandomForestClassifier(3, max_depth=3).fit(X, X[:, 0] * X[:, 1] + X[:, 2] > 0))
    refuse(with_number(data, array, place, number))
