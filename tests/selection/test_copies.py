"""Copies of rows: found by their values alone, wherever the rows are, and kept in one fold on request."""

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from chunks import batches, memory

import certifit as cf
from certifit.data.copies import copies, row_keys
from certifit.data.source import Block, Memory


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(200, 3)).astype(float)
    return X, rng.integers(0, 2, size=200).astype(float)


def test_copies_are_those_of_equal_rows(rows):
    X, y = rows
    whole = np.column_stack([X, y])
    _, first, places = np.unique(whole, axis=0, return_index=True, return_inverse=True)
    found = copies(Memory(X, y))
    assert np.array_equal(found.first, first[places.ravel()])
    assert found.n_copies == 200 - len(first)


def test_any_place_and_any_parts_find_the_same(rows):
    X, y = rows
    expected = copies(Memory(X, y)).first
    table = pa.table({name: X[:, j] for j, name in enumerate("abc")} | {"y": y})
    texts = table.set_column(0, "a", pa.array([f"level {int(v)}" for v in X[:, 0]]))
    sources = [
        memory(X, y, block_rows=7),
        batches(X, y, block_rows=7, cuts=[3, 50]),
        Memory(sp.csr_array(X), y),
        cf.from_arrow(table, target="y"),
        cf.from_arrow(texts, target="y"),
        cf.from_arrow(texts.set_column(0, "a", texts["a"].dictionary_encode()), target="y"),
    ]
    for source in sources:
        assert np.array_equal(copies(source).first, expected)


@pytest.mark.parametrize(
    "kind", [pa.timestamp("ns"), pa.timestamp("ns", "Europe/Berlin"), pa.time64("ns"), pa.duration("ns"), pa.date32()]
)
@pytest.mark.parametrize("is_dictionary", [False, True])
def test_times_are_copies_to_the_last_nanosecond(kind, is_dictionary):
    """Python has no times of nanoseconds."""
    times = pa.array([1701, None, 1702, 1701, None, 0], pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    column = pa.chunked_array([times[:4], times[4:]])
    if is_dictionary and kind != pa.duration("ns"):  # Arrow makes no dictionary of these
        column = column.dictionary_encode()
    source = cf.from_arrow(pa.table({"t": column, "y": [1.0] * 6}), target="y")
    assert copies(source).first.tolist() == [0, 1, 2, 0, 1, 5]


def test_a_gap_and_a_signed_zero_are_equal_to_their_like():
    keys = row_keys(Block(np.array([[0.0, np.nan], [-0.0, np.nan], [0.0, 1.0]]), None, None))
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize("stratify", [False, True])
def test_copies_stay_in_one_fold(rows, stratify):
    X, y = rows
    folds = cf.Folds(4, stratify=stratify, copies="together", repeats=2)
    whole = [tuple(row) for row in np.column_stack([X, y])]
    seen = np.zeros(200)
    for train, validation in folds.split(X, y):
        assert not {whole[i] for i in train} & {whole[i] for i in validation}
        seen[validation] += 1
    assert (seen == 2).all()


def test_rows_of_no_weight_are_in_no_fold(rows):
    X, y = rows
    weight = (np.arange(200) % 5 > 0).astype(float)
    (splits,) = cf.Folds(3, copies="together").rounds(Memory(X, y, weight))
    cells = splits.cells.of(Memory(X, y, weight).block)
    assert np.array_equal(cells >= 0, weight > 0)


def test_few_different_rows_and_groups_are_refused():
    X, y = np.zeros((20, 1)), np.zeros(20)
    with pytest.raises(ValueError, match="3 folds need 3 different rows"):
        list(cf.Folds(3, copies="together").split(X, y))
    with pytest.raises(ValueError, match="either groups or copies"):
        list(cf.Folds(3, copies="together").split(np.arange(20.0)[:, None], y, np.arange(20) % 4))
    with pytest.raises(ValueError, match="copies must be"):
        cf.Folds(3, copies="apart")


def test_wine_quality_has_1177_copies(shared_data):
    source = cf.scan_parquet(shared_data / "wine_quality" / "wine_quality.parquet", target="quality")
    found = copies(source)
    assert (found.n_copies, found.n_rows) == (1177, 6497)


def test_whole_numbers_beyond_2_to_the_53_are_compared_as_models_read_them():
    table = pa.table({"id": [2**53 + 1, 2**53, 2**53 + 8], "y": [1.0, 1.0, 1.0]})
    assert copies(cf.from_arrow(table, target="y")).first.tolist() == [0, 0, 2]
