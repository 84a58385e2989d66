"""Which rows are summed apart: cells depend on the row number, the group and the seed alone."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from chunks import batches, memory, random_cuts

import certifit as cf
from certifit.data.cells import ByRow, GroupSizes, Listed, Splits, group_cells, mixed, patterns
from certifit.data.source import Block, Memory


def block(n_rows: int, first_row: int = 0) -> Block:
    return Block(np.zeros((n_rows, 0)), None, None, first_row)


@pytest.mark.parametrize("n_cells", [2, 3, 10, 12, 37])
def test_every_deal_of_rows_has_each_cell_once(n_cells):
    cells = ByRow(n_cells, 5).of(block(n_cells * 50))
    for deal in cells.reshape(50, n_cells):
        assert sorted(deal) == list(range(n_cells))


def test_a_cell_does_not_depend_on_the_block_it_is_read_in(rng):
    whole = ByRow(7, 3).of(block(1000))
    for _ in range(50):
        first = int(rng.integers(0, 990))
        n_rows = int(rng.integers(0, 1000 - first))
        assert (ByRow(7, 3).of(block(n_rows, first)) == whole[first : first + n_rows]).all()


def test_another_seed_is_another_deal_and_places_are_uniform():
    a, b = (ByRow(10, seed).of(block(20_000)) for seed in (0, 1))
    assert 0.05 < (a == b).mean() < 0.15
    for place in range(10):  # 2,000 deals: each cell is expected 200 times, standard deviation 13
        counts = np.bincount(a[place::10], minlength=10)
        assert (abs(counts - 200) < 80).all()


def test_mixed_bits_are_balanced(seed):
    bits = mixed(np.arange(4096, dtype=np.uint64), seed)
    ones = [(int(((bits >> np.uint64(k)) & np.uint64(1)).sum())) for k in range(64)]
    assert all(abs(count - 2048) < 200 for count in ones)  # six standard deviations


def grouped(rng, n_rows=400, n_groups=60):
    group = mixed(rng.integers(0, n_groups, size=n_rows).astype(np.uint64), 9)
    return Memory.of(Block(np.zeros((n_rows, 1)), np.zeros(n_rows), None, group=group)), group


def test_groups_stay_whole_and_cells_have_like_sizes(rng):
    source, group = grouped(rng)
    cells = group_cells(source, 6, 0).of(source.block)
    assert all(len(set(cells[group == key])) == 1 for key in set(group.tolist()))
    sizes = np.bincount(cells)
    assert sizes.max() - sizes.min() <= max(Counter(group.tolist()).values())


def test_too_few_groups_are_refused(rng):
    source, _ = grouped(rng, n_groups=3)
    with pytest.raises(ValueError, match="5 folds need 5 groups"):
        group_cells(source, 5, 0)


def test_sizes_of_groups_add_up(rng):
    source, _ = grouped(rng)
    parts = GroupSizes.of(source.block.part(0, 150)) + GroupSizes.of(source.block.part(150, 400))
    whole = GroupSizes.of(source.block)
    assert (parts.keys == whole.keys).all() and (parts.counts == whole.counts).all()


def test_any_splits_are_sums_of_cells(rng):
    sets = [(rng.integers(0, 60, size=50), rng.integers(0, 60, size=8)) for _ in range(3)]
    splits = patterns(sets, 60, 1000)
    assert splits is not None
    cells = splits.cells.of(block(60))
    for s, (train, test) in enumerate(sets):
        assert (splits.train[s][cells] == np.bincount(train, minlength=60)).all()
        assert (splits.validation[s][cells] == np.bincount(test, minlength=60)).all()


def test_splits_that_need_too_many_cells_are_left_to_others(rng):
    sets = [(rng.permutation(100)[:50], rng.permutation(100)[:50]) for _ in range(10)]
    assert patterns(sets, 100, 64) is None


def test_a_list_of_cells_for_fewer_rows_is_refused():
    with pytest.raises(ValueError, match="5 rows"):
        Listed(2, np.zeros(5, np.int8)).of(block(6))


def test_the_training_rows_of_a_split_are_those_alone(rng):
    X, y, weight = rng.normal(size=(200, 3)), rng.normal(size=200), rng.integers(1, 4, size=200).astype(float)
    splits = Splits.folds(ByRow(4, 0))
    cells = splits.cells.of(block(200))
    for source in (
        memory(X, y, weight, block_rows=64),
        batches(X, y, weight, block_rows=64, cuts=random_cuts(rng, 200)),
    ):
        got = cf.LinearRegression().fit(splits.trained(source, 2))
        own = cells != 2
        wanted = cf.LinearRegression().fit(X[own], y[own], weight[own])
        assert np.allclose(got.coef_, wanted.coef_, rtol=1e-12)
        assert got.data_["sum_weight"] == pytest.approx(weight[own].sum())


@pytest.mark.parametrize(
    "spoil", ["not", "a training row twice", "a validation row in training", "two folds share a row"]
)
def test_plain_folds_are_seen_only_where_they_are(rng, spoil):
    cells = ByRow(5, 0).of(block(60))
    sets = [(np.flatnonzero(cells != k), np.flatnonzero(cells == k)) for k in range(5)]
    if spoil == "a training row twice":
        sets[2] = (np.append(sets[2][0][1:], sets[2][0][3]), sets[2][1])
    if spoil == "a validation row in training":
        sets[2] = (np.append(sets[2][0][1:], sets[2][1][0]), sets[2][1])
    if spoil == "two folds share a row":
        sets[2] = (sets[2][0], np.append(sets[2][1][1:], sets[1][1][0]))
    splits = patterns(sets, 60, 1000)
    numbers = splits.cells.of(block(60))
    assert splits.cells.n_cells == (5 if spoil == "not" else splits.cells.n_cells)
    for s, (train, test) in enumerate(sets):
        assert (splits.train[s][numbers] == np.bincount(train, minlength=60)).all()
        assert (splits.validation[s][numbers] == np.bincount(test, minlength=60)).all()
