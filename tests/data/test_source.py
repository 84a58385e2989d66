"""Blocks, runs and the summation tree: any chunking hands out the same rows and sums in the same order."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from chunks import batches, random_cuts

from certifit.data.source import Batches, Block, Memory, RowError, block_rows, stretch_blocks


@dataclass(frozen=True)
class Order:
    """A statistic that remembers how it was added."""

    text: str

    def __add__(self, other: Order) -> Order:
        return Order(f"({self.text}{other.text})")


@pytest.mark.parametrize("n_columns", [1, 3, 10, 50, 1000, 10**6])
def test_a_block_is_a_power_of_two_of_rows_between_the_limits(n_columns):
    rows = block_rows(n_columns)
    assert rows & (rows - 1) == 0
    assert 1024 <= rows <= 65536
    assert rows == 1024 or rows * n_columns * 8 <= (4 << 20 if n_columns < 256 else 128 << 20)


@pytest.mark.parametrize("n_runs, order", [(1, "0"), (2, "(01)"), (3, "((01)2)"), (5, "(((01)(23))4)")])
def test_runs_are_added_in_a_binary_tree_by_number(n_runs, order):
    source = batches(np.zeros((n_runs, 1)), block_rows=1, cuts=range(1, n_runs))
    source.stretches = lambda: (Block(np.zeros((1, 1)), None, None, i) for i in range(n_runs))
    assert source.reduce(lambda run: Order(str(run.first_row))).text == order


@pytest.mark.parametrize("n_rows", [1, 15, 16, 17, 64, 200])
def test_runs_hold_all_rows_once_and_in_order(rng, n_rows):
    X, y, weight = rng.normal(size=(n_rows, 2)), rng.normal(size=n_rows), rng.random(n_rows)
    source = batches(X, y, weight, block_rows=4, cuts=random_cuts(rng, n_rows))
    runs = list(source.stretches())
    size = 4 * stretch_blocks(3)
    assert [run.first_row for run in runs] == list(range(0, n_rows, size))
    assert [run.n_rows for run in runs] == [min(size, n_rows - begin) for begin in range(0, n_rows, size)]
    assert np.array_equal(np.concatenate([run.X for run in runs]), X)
    assert np.array_equal(np.concatenate([run.y for run in runs]), y)
    assert np.array_equal(np.concatenate([run.weight for run in runs]), weight)


def test_a_source_can_be_read_again(rng):
    source = batches(rng.normal(size=(100, 2)), block_rows=2, cuts=[7, 50])
    first, second = (np.concatenate([run.X for run in source.stretches()]) for _ in range(2))
    assert np.array_equal(first, second)


def test_sparse_batches_are_joined_to_sparse_stretches(rng):
    X = sp.csr_array(rng.integers(0, 2, size=(50, 3)).astype(float))
    source = batches(X, block_rows=4, cuts=[3, 11, 40])
    assert sp.issparse(next(source.stretches()).X)
    assert np.array_equal(source.gather().X.toarray(), X.toarray())


def test_gather_refuses_more_than_its_limit(rng):
    source = batches(rng.normal(size=(100, 4)), block_rows=1, cuts=[50])
    with pytest.raises(MemoryError, match="needs all rows in memory"):
        source.gather(limit_bytes=1000)


def test_memory_makes_no_copy(rng):
    X = rng.normal(size=(30, 2))
    (run,) = Memory(X, None).stretches()
    assert np.shares_memory(run.X, X)


def test_columns_without_names_are_numbered():
    assert Memory(np.zeros((1, 3)), None).names == ["x0", "x1", "x2"]
    assert not Memory(np.zeros((1, 3)), None).named
    assert Memory(np.zeros((1, 1)), None, names=["age"]).named


@pytest.mark.parametrize("rows", [[], [np.zeros((0, 2))]])
def test_no_rows_are_refused_in_words(rows):
    source = Batches(lambda: [Block(X, None, None) for X in rows], ["a", "b"])
    for call in (source.first_block, source.gather, lambda: source.reduce(lambda run: run.X.sum())):
        with pytest.raises(ValueError, match="0 rows"):
            call()


class Double:
    """A map that doubles its rows."""

    def apply(self, X):
        return 2 * X

    def get_feature_names_out(self, input_features=None):
        return [f"2 {name}" for name in input_features]


def test_a_map_sees_every_row_once_and_never_all_at_once(rng):
    X = rng.normal(size=(5000, 300))
    source = Memory(X, None).through(Double())
    runs = list(source.stretches())
    assert np.array_equal(np.concatenate([run.X for run in runs]), 2 * X)
    assert source.names[:2] == ["2 x0", "2 x1"]
    assert len(Memory(rng.normal(size=(40_000, 300)), None).through(Double()).first_block().X) < 40_000


class Refusing:
    """A map that finds fault with the value 150."""

    def apply(self, X):
        for row in np.flatnonzero(X[:, 0] == 150):
            raise RowError("Column 'a' is 150", int(row), ", which is too much.")
        return X

    def get_feature_names_out(self, names=None):
        return ["a"]


def test_an_error_of_a_map_counts_rows_from_the_start_of_the_source():
    X = np.arange(1000.0)[:, None]
    source = batches(X, block_rows=2, cuts=[7, 500]).through(Refusing())
    source.block_rows = 2
    with pytest.raises(ValueError, match=r"Column 'a' is 150 at row 150, which"):
        list(source.stretches())
    error = pickle.loads(pickle.dumps(RowError("x", 3, ".")))
    assert (str(error), str(error.moved(4))) == ("x at row 3.", "x at row 7.")
