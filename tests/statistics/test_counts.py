"""Joint counts add, and give the sum over pairs p(x, y) log(p(x, y) / (p(x) p(y)))."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from neighbours import of_counts

from certifit.statistics.cell_sums import JointCounts, counted_pairs, pairs_information

LEVELS: dict[str, list[Any]] = {
    "text": ["a", "b", "", "long text"],
    "numbers": [3, -1, 7, 100],
    "with missing": ["a", None, "b", None],
    "one": ["a"],
}


def rows(rng: np.random.Generator, name: str, n_rows: int = 500) -> tuple[list[Any], Any]:
    levels = LEVELS[name]
    codes = rng.integers(0, len(levels), n_rows)
    return [levels[code] for code in codes], (codes * 0.7 + 2 * rng.random(n_rows)).astype(int).astype(float)


@pytest.mark.parametrize("name", LEVELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_information_is_the_sum_over_pairs(rng, name, weighted):
    x, y = rows(rng, name)
    weight = rng.random(len(x)) if weighted else None
    found = JointCounts.of(pa.array(x), y, weight).information()
    assert found == pytest.approx(of_counts(x, y.tolist(), weight), abs=1e-14)


@pytest.mark.parametrize("name", LEVELS)
def test_counts_of_parts_add_to_the_counts_of_all(rng, name):
    x, y = rows(rng, name)
    kind = pa.array(LEVELS[name]).type
    whole = JointCounts.of(pa.array(x, kind), y)
    cuts = [0, 1, 130, 131, len(x)]
    parts = [JointCounts.of(pa.array(x[a:b], kind), y[a:b]) for a, b in pairwise(cuts)]
    added = parts[0] + parts[1] + (parts[2] + parts[3])
    assert sorted(map(str, added.pairs.to_pylist())) == sorted(map(str, whole.pairs.to_pylist()))
    assert added.information() == whole.information()


def test_missing_is_a_level_of_its_own():
    x, y = ["a", None, "a", None], np.array([0.0, 1.0, 0.0, 1.0])
    counts = JointCounts.of(pa.array(x), y)
    assert counts.information() == pytest.approx(np.log(2), abs=1e-15)
    assert counts.levels.to_pylist() == ["a", None]


def test_weight_two_is_the_row_twice(rng):
    x, y = rows(rng, "text", 60)
    weight = rng.integers(0, 4, 60)
    twice = JointCounts.of(pa.array(np.repeat(x, weight)), np.repeat(y, weight)).information()
    assert JointCounts.of(pa.array(x), y, weight.astype(float)).information() == pytest.approx(twice, abs=1e-15)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_the_unit_of_the_weights_does_not_matter(rng, scale):
    x, y = rows(rng, "text")
    weight = rng.random(len(x))
    expected = JointCounts.of(pa.array(x), y, weight).information()
    assert JointCounts.of(pa.array(x), y, weight * scale).information() == pytest.approx(expected, abs=1e-15)


def test_independent_columns_score_exactly_zero():
    first, second = np.divmod(np.arange(35), 7)
    assert pairs_information(first, second, np.full(35, 3)) == 0.0


def test_the_order_of_rows_does_not_change_a_bit(rng):
    x, y = rows(rng, "numbers", 1000)
    order = rng.permutation(1000)
    again = JointCounts.of(pa.array(np.array(x)[order]), y[order])
    assert again.information() == JointCounts.of(pa.array(x), y).information()


@pytest.mark.parametrize("largest", [3, 10**6])
def test_pairs_are_counted_alike_in_few_and_many_codes(rng, largest):
    a, b = rng.integers(0, 4, 200) * largest, rng.integers(0, 3, 200) * largest
    first, second, sizes = counted_pairs(a, b)
    found = dict(zip(zip(first.tolist(), second.tolist(), strict=True), sizes.tolist(), strict=True))
    expected: dict[Any, int] = {}
    for pair in zip(a.tolist(), b.tolist(), strict=True):
        expected[pair] = expected.get(pair, 0) + 1
    assert found == expected


def test_no_rows_tell_nothing():
    empty = np.zeros(0, dtype=np.int64)
    assert pairs_information(*counted_pairs(empty, empty)) == 0.0
