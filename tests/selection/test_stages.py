"""Training sets that grow inside each other, the same on every engine."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.model_selection import KFold

from certifit.data.cells import ByRow, Splits, group_cells, mixed
from certifit.data.source import Block, Memory
from certifit.selection.folds.splits import Bootstrap, rounds_of
from certifit.selection.folds.stages import Staged, growing, shuffled


def row_sets(splits, source):
    """Training and validation rows of every split, repeats included."""
    cells = splits.cells.of(source.block)
    for s in range(splits.n_splits):
        times = [np.append(part[s], 0)[cells].astype(int) for part in (splits.train, splits.validation)]
        yield tuple(np.repeat(np.arange(len(cells)), t) for t in times)


def cells_of_kind(kind, n_rows, seed):
    source = Memory(np.zeros((n_rows, 1)), np.arange(float(n_rows)))
    if kind == "rows":
        return source, Splits.folds(ByRow(7, seed))
    if kind == "listed":
        return source, rounds_of(KFold(7, shuffle=True, random_state=seed), source)[0]
    if kind == "drawn":
        return source, Bootstrap(1, random_state=seed).rounds(source)[0]
    group = np.random.default_rng(seed).integers(0, 30, n_rows).astype(np.uint64)
    source = Memory.of(Block(source.block.X, source.block.y, None, 0, group), source.names)
    return source, Splits.folds(group_cells(source, 7, seed))


@pytest.mark.parametrize("kind", ["rows", "listed", "drawn", "groups"])
@pytest.mark.parametrize("n_rows", [103, 700])
def test_a_larger_training_set_holds_the_smaller_and_no_validation_row(kind, n_rows, seed):
    source, base = cells_of_kind(kind, n_rows, seed)
    shares = [0.1, 0.35, 0.8]
    (growth,) = growing(base, shares, n_rows, 1, seed)
    sets = list(row_sets(growth.splits, source))
    whole = list(row_sets(base, source))
    counts = growth.n_rows(source, n_rows)
    for split, (train, validation) in enumerate(whole):
        own = [sets[size * base.n_splits + split] for size in range(3)]
        assert [len(one[0]) for one in own] == counts[:, split].tolist()
        assert all((one[1] == validation).all() for one in own)
        chain = [np.empty(0, int), *(one[0] for one in own), train]
        for smaller, larger in pairwise(chain):
            assert set(smaller) <= set(larger)
        assert not set(own[-1][0]) & set(validation)
        np.testing.assert_allclose(counts[:, split], np.multiply(shares, len(train)), atol=2 * np.sqrt(len(train)))
    assert (np.diff(counts, axis=0) > 0).all()


@pytest.mark.parametrize("kind", ["rows", "listed"])
def test_sizes_of_folds_are_met_within_two_rows(kind, seed):
    source, base = cells_of_kind(kind, 700, seed)
    (growth,) = growing(base, [0.1, 0.35, 0.8, 1.0], 700, 1, seed)
    wanted = np.array([0.1, 0.35, 0.8, 1.0])[:, None] * 600
    assert np.abs(growth.n_rows(source, 700) - wanted).max() < 2


def test_rows_of_stages_are_counted_without_reading_them(seed):
    for n_rows in (20, 103, 700, 701):
        cells = Staged(ByRow(10, seed), np.array([3, n_rows // 2]), -(-n_rows // 10) * 10, seed)
        counted = np.bincount(cells.of(Block(np.zeros((n_rows, 0)), None, None)), minlength=cells.n_cells)
        assert (cells.counts(Memory(np.zeros((n_rows, 1)), None), n_rows) == counted).all()


def test_the_stage_of_a_row_does_not_depend_on_its_block(seed):
    cells = Staged(ByRow(10, seed), np.array([200, 500]), 1000, seed)
    whole = cells.of(Block(np.zeros((1000, 0)), None, None))
    parts = [
        cells.of(Block(np.zeros((end - begin, 0)), None, None, begin)) for begin, end in [(0, 7), (7, 501), (501, 1000)]
    ]
    assert (np.concatenate(parts) == whole).all()


@pytest.mark.parametrize("size", [1, 2, 3, 10, 100, 1000, 1025])
def test_a_shuffle_is_a_permutation_and_every_key_has_another(size):
    values = np.arange(size, dtype=np.uint64)
    results = [shuffled(values, size, mixed(np.array([key], dtype=np.uint64), 0)) for key in range(4)]
    assert all((np.sort(one) == values).all() for one in results)
    assert size < 10 or len({tuple(one.tolist()) for one in results}) == 4


def test_every_row_is_equally_likely_to_come_first():
    n_keys, size, first = 20_000, 20, 7
    keys = mixed(np.arange(n_keys, dtype=np.uint64), 7)
    inside = np.array([shuffled(np.full(n_keys, row, dtype=np.uint64), size, keys) < first for row in range(size)])
    share, spread = first / size, np.sqrt(first / size * (1 - first / size) / n_keys)
    assert np.abs(inside.mean(axis=1) - share).max() < 4.5 * spread
    pairs = np.corrcoef(inside)[np.triu_indices(size, 1)]
    assert np.abs(pairs + 1 / (size - 1)).max() < 4.5 / np.sqrt(n_keys)
