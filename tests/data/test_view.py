"""Which target is read: a number, codes of labels, what is stored, nothing; the same on every source and wrapper."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from tables import Numbers

import certifit as cf
from certifit.data.source import Batches, Block, Memory
from certifit.data.source_wrappers import Picked
from certifit.data.view import Target
from certifit.models.glm import newton

dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")

X = np.arange(24.0).reshape(12, 2)
Y = np.array([3.0, 5.0, 9.0] * 4)
WEIGHT = np.arange(1.0, 13.0)
BLOCK = Block(X, Y, WEIGHT)
TABLE = pa.table({"a": X[:, 0], "b": X[:, 1], "y": Y, "w": WEIGHT})


def csv_file(folder):
    pyarrow.csv.write_csv(TABLE, folder / "rows.csv")
    return cf.scan_csv(folder / "rows.csv", "y", "w")


SOURCES = {
    "memory": lambda folder: Memory(X, Y, WEIGHT),
    "batches": lambda folder: Batches(lambda: (BLOCK.part(k, k + 5) for k in (0, 5, 10)), ["a", "b"]),
    "arrow": lambda folder: cf.from_arrow(TABLE, "y", "w"),
    "csv": csv_file,
    "dask frame": lambda folder: cf.from_dask(dd.from_pandas(TABLE.to_pandas(), npartitions=3), "y", "w"),
    "dask array": lambda folder: cf.from_dask(da.from_array(X, (5, 2)), da.from_array(Y, 4), da.from_array(WEIGHT, 3)),
}  # fmt: skip

WRAPPERS = {
    "alone": lambda source: source,
    "weighted": lambda source: source.weighted(lambda block: np.full(block.n_rows, 2.0)),
    "picked": lambda source: Picked(source, np.arange(12) % 2 == 0),
    "mapped": lambda source: source.through(Numbers()) if source.is_table else source,
}


def column(source, part):
    values = [getattr(run, part) for run in source.stretches()]
    return None if values[0] is None else np.concatenate(values)


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.slow
def test_every_source_reads_the_target_that_its_view_says(source, wrapper, tmp_path):
    rows = WRAPPERS[wrapper](SOURCES[source](tmp_path))
    numbers, weight = column(rows, "y"), column(rows, "weight")
    assert rows.view.target is Target.NUMBER
    codes = rows.reading(Target.CODES, np.array([3, 9]))
    assert codes.view.target is Target.CODES
    np.testing.assert_array_equal(column(codes, "y"), np.select([numbers == 3, numbers == 9], [0.0, 1.0], -1.0))
    bare = rows.reading(Target.NONE)
    assert column(bare, "y") is None and bare.n_features == rows.n_features
    raw = rows.reading(Target.RAW)
    first = next(raw.stretches())
    is_column = isinstance(first.X, pa.Table)
    np.testing.assert_array_equal(first.X.column(0).to_numpy() if is_column else first.y, numbers)
    for other in (codes, bare) if wrapper == "mapped" else (codes, bare, raw):
        np.testing.assert_array_equal(column(other, "weight"), weight)
    np.testing.assert_array_equal(column(codes.reading(Target.NUMBER), "y"), numbers)


@pytest.mark.parametrize("wrapper", ["weighted", "picked"])
def test_a_wrapper_keeps_what_it_changes_when_columns_are_selected(wrapper, tmp_path):
    rows = WRAPPERS[wrapper](SOURCES["csv"](tmp_path))
    for fewer in (rows.select(["b"]), rows.narrow(), rows.kept()):
        np.testing.assert_array_equal(column(fewer, "weight"), column(rows, "weight"))
    assert rows.select(["b"]).names == ["b"] and rows.narrow().names == ["a"]


def test_rows_without_a_target_have_none_to_read():
    for source, words in (
        (cf.from_arrow(TABLE.select(["a"])), "The scan has no target"),
        (cf.from_dask(da.from_array(X, (5, 2))), "The Dask array has no target"),
        (Memory(X, None), "The scan has no target"),
    ):
        assert column(source.reading(Target.CODES, np.array([3, 9])), "y") is None
        with pytest.raises(ValueError, match=words):
            source.reading(Target.RAW)


def test_rows_made_of_a_block_declare_all_that_it_has():
    parts = {"y": Y, "weight": WEIGHT, "group": np.arange(12, dtype=np.uint64), "offset": np.ones(12)}
    source = Memory.of(Block(X, **parts))
    assert source.view.has_offset and source.view.has_target
    for part, values in parts.items():
        np.testing.assert_array_equal(column(source, part), values)
    bare = Memory.of(Block(X, None, None))
    assert not bare.view.has_offset and not bare.view.has_target


def test_a_fit_that_starts_on_a_sample_of_rows_takes_an_exposure(rng):
    n_rows = newton.LEAST_SHARE * newton.FEWEST * 3 + 1
    rows, exposure = rng.normal(size=(n_rows, 2)), rng.uniform(0.5, 2.0, n_rows)
    y = rng.poisson(exposure * np.exp(0.3 * rows[:, 0])).astype(float)
    model = cf.PoissonRegressor(alpha=0.01).fit(rows, y, exposure=exposure)
    assert model.certificate_.holds
