"""Nearest-neighbour estimates of mutual information against all distances written out; both builds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from neighbours import of_number_and_class, of_two_numbers
from scipy.special import digamma

ROWS = [2, 5, 16, 17, 33, 150, 400]  # leaves of the tree hold 16
NEIGHBOURS = [1, 3, 7]


def psi(n_rows: int) -> Any:
    return digamma(np.arange(1.0, n_rows + 1))


def of_numbers(core: Any, X: Any, y: Any, k: int = 3, threads: int = 2) -> Any:
    return core.information_of_numbers(np.ascontiguousarray(X), y, k, psi(len(y)), threads)


def of_classes(core: Any, X: Any, classes: Any, k: int = 3, threads: int = 2) -> Any:
    codes = np.unique(classes, return_inverse=True)[1].astype(np.int32)
    return core.information_of_numbers_and_classes(
        np.ascontiguousarray(X), codes, int(codes.max()) + 1, k, psi(len(codes)), threads
    )


def some_ties(rng: np.random.Generator, n_rows: int) -> dict[str, Any]:
    """Columns whose distances tie in every way."""
    x = rng.normal(size=n_rows)
    return {
        "no ties": x,
        "whole numbers": np.round(3 * x),
        "decimals": np.round(x, 1),
        "many zeros": np.where(x < 0.3, 0.0, x),
        "two values": (x > 0) * 1.0,
        "a constant": np.full(n_rows, 2.5),
        "equal steps": rng.permutation(n_rows) * 0.1,
        "an outlier": np.where(np.arange(n_rows) == 1, 1e6, x),
        "far from zero": 1e7 + x,
    }


@pytest.mark.parametrize("n_rows", ROWS)
@pytest.mark.parametrize("k", NEIGHBOURS)
@pytest.mark.slow
def test_two_numbers_score_as_the_formula_says_whatever_ties(core, rng, n_rows, k):
    if k >= n_rows:
        pytest.skip("needs more rows than neighbours")
    columns = some_ties(rng, n_rows)
    X = np.array(list(columns.values()))
    targets = some_ties(rng, n_rows)
    for name, y in (targets | {"depends on the first": X[0] + targets["no ties"]}).items():
        scores = of_numbers(core, X, y, k)
        expected = [of_two_numbers(x, y, k) for x in X]
        assert np.allclose(scores, expected, rtol=0, atol=1e-12), (
            name,
            dict(zip(columns, scores - expected, strict=True)),
        )


@pytest.mark.parametrize("n_rows", ROWS)
@pytest.mark.parametrize("k", NEIGHBOURS)
@pytest.mark.parametrize("n_classes", [1, 2, 5, 40])
@pytest.mark.slow
def test_a_number_and_a_class_score_as_the_formula_says_whatever_ties(core, rng, n_rows, k, n_classes):
    columns = some_ties(rng, n_rows)
    X = np.array(list(columns.values()))
    classes = rng.integers(0, n_classes, n_rows)
    scores = of_classes(core, X, classes, min(k, n_rows - 1))
    expected = [of_number_and_class(x, classes, k) for x in X]
    assert np.allclose(scores, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 7])
def test_a_class_and_a_number_are_the_same_with_roles_exchanged(core, rng, n_classes):
    n_rows = 200
    y = rng.normal(size=n_rows)
    codes = rng.integers(0, n_classes, (4, n_rows)).astype(np.int32)
    sizes = np.full(4, n_classes, dtype=np.int64)
    scores = core.information_of_classes_and_number(codes, sizes, y, 3, psi(n_rows), 2)
    one_by_one = [core.information_of_numbers_and_classes(y[None], c, n_classes, 3, psi(n_rows), 1)[0] for c in codes]
    assert np.array_equal(scores, one_by_one)
    assert np.allclose(scores, [of_number_and_class(y, c, 3) for c in codes], rtol=0, atol=1e-12)


@pytest.mark.parametrize("k", [20, 150, 299])
def test_many_neighbours_score_as_the_formula_says(core, rng, k):
    x, y = rng.normal(size=(2, 300))
    classes = rng.integers(0, 2, 300)
    assert of_numbers(core, x[None], x + y, k)[0] == pytest.approx(of_two_numbers(x, x + y, k), abs=1e-12)
    assert of_classes(core, x[None], classes, k)[0] == pytest.approx(of_number_and_class(x, classes, k), abs=1e-12)


def test_neither_the_order_of_rows_nor_the_number_of_threads_changes_a_bit(core, rng):
    n_rows = 500
    X = np.array(list(some_ties(rng, n_rows).values()))
    y, classes = np.round(X[0] + rng.normal(size=n_rows), 1), rng.integers(0, 4, n_rows)
    numbers, levels = of_numbers(core, X, y, 3, 1), of_classes(core, X, classes, 3, 1)
    order = rng.permutation(n_rows)
    for threads in (1, 2, 8):
        assert np.array_equal(of_numbers(core, X[:, order], y[order], 3, threads), numbers)
        assert np.array_equal(of_classes(core, X[:, order], classes[order], 3, threads), levels)


@pytest.mark.parametrize("scale", [2.0**-1000, 1e-300, 1e-5, 7.3, 1e300, -1.0])
def test_scores_do_not_depend_on_units(core, rng, scale):
    X, y = rng.normal(size=(3, 300)), rng.normal(size=300)
    y += X[0]
    assert np.allclose(of_numbers(core, X * scale, y), of_numbers(core, X, y), rtol=0, atol=1e-12)
    assert np.allclose(of_numbers(core, X, y * scale), of_numbers(core, X, y), rtol=0, atol=1e-12)
    classes = y > 0
    assert np.allclose(of_classes(core, X * scale, classes), of_classes(core, X, classes), rtol=0, atol=1e-12)


@pytest.mark.parametrize("unit", [0.1, 0.01, 1 / 3, 1e-7])
def test_decimals_tie_like_whole_numbers(core, rng, unit):
    """0.3 - 0.2 and 0.2 - 0.1 differ in binary."""
    X = rng.integers(0, 60, (3, 300)).astype(float)
    y = np.round(X[0] / 3) + rng.integers(0, 9, 300)
    assert np.allclose(of_numbers(core, X * unit, y), of_numbers(core, X, y), rtol=0, atol=1e-12)
    assert np.allclose(of_classes(core, (X + 1000) * unit, y), of_classes(core, X, y), rtol=0, atol=1e-12)


def test_the_neighbour_on_the_border_is_not_inside(core):
    """z - x <= r compared as x >= z - r would count it: 0.1 + 0.2 > 0.3."""
    x = np.array([0.1, 0.3, 0.30000000000000004, 0.7, 0.9])
    classes = np.array([0, 0, 1, 1, 1])
    assert of_classes(core, x[None], classes, 1)[0] == pytest.approx(of_number_and_class(x, classes, 1), abs=1e-14)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, 0.99])
def test_two_normal_columns_come_near_the_known_value(core, seed, rho):
    """I = -1/2 log(1 - rho^2)."""
    x, z = np.random.default_rng(seed + 1).normal(size=(2, 20_000))
    score = of_numbers(core, x[None], rho * x + np.sqrt(1 - rho * rho) * z)[0]
    assert score == pytest.approx(-0.5 * np.log(1 - rho * rho), abs=0.05)


def test_a_column_with_itself_scores_highest(core, rng):
    X = rng.normal(size=(4, 1000))
    scores = of_numbers(core, X, X[2].copy())
    assert scores.argmax() == 2
    assert scores[2] > 5


X4, Y4, C4 = np.ones((4, 6)), np.arange(6.0), np.zeros(6, dtype=np.int32)
BAD = {
    "target too short": ("information_of_numbers", (X4, Y4[:5], 3, psi(6), 1), "target has 5 entries, needs 6"),
    "psi too short": ("information_of_numbers", (X4, Y4, 3, psi(5), 1), "psi has 5 entries, needs 6"),
    "no neighbour": ("information_of_numbers", (X4, Y4, 0, psi(6), 1), "n_neighbors"),
    "as many neighbours as rows": ("information_of_numbers", (X4, Y4, 6, psi(6), 1), "n_neighbors"),
    "one row": ("information_of_numbers", (X4[:, :1].copy(), Y4[:1], 1, psi(1), 1), "rows"),
    "NaN": ("information_of_numbers", (X4 * np.nan, Y4, 3, psi(6), 1), "finite"),
    "infinite target": ("information_of_numbers", (X4, Y4 + np.inf, 3, psi(6), 1), "finite"),
    "float32": ("information_of_numbers", (X4.astype(np.float32), Y4, 3, psi(6), 1), None),
    "strided": ("information_of_numbers", (np.ones((4, 12))[:, ::2], Y4, 3, psi(6), 1), None),
    "a class too high": ("information_of_numbers_and_classes", (X4, C4 + 2, 2, 3, psi(6), 1), "classes"),
    "a class below zero": ("information_of_numbers_and_classes", (X4, C4 - 1, 2, 3, psi(6), 1), "classes"),
    "more classes than rows": ("information_of_numbers_and_classes", (X4, C4, 7, 3, psi(6), 1), "classes"),
    "int64 classes": ("information_of_numbers_and_classes", (X4, C4.astype(np.int64), 2, 3, psi(6), 1), None),
    "one number of classes for two columns": (
        "information_of_classes_and_number",
        (np.zeros((2, 6), dtype=np.int32), np.ones(1, dtype=np.int64), Y4, 3, psi(6), 1),
        "n_classes has 1 entries, needs 2",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_arrays_that_do_not_fit_are_refused_before_they_are_read(core, name):
    function, arguments, words = BAD[name]
    with pytest.raises((ValueError, TypeError), match=words):
        getattr(core, function)(*arguments)
