"""One build gives the same components to the bit: threads, chunks, layouts, files, Arrow streams, Dask."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from chunks import batches, memory, random_cuts
from layouts import LAYOUTS, TYPES

import certifit as cf

MODELS = {
    "plain": lambda: cf.PCA(2),
    "all": cf.PCA,
    "share": lambda: cf.PCA(0.9, standardize=True),
    "not centred": lambda: cf.PCA(2, center=False, whiten=True),
    "randomized": lambda: cf.PCA(2, solver="randomized"),
    "polynomial": lambda: cf.PCA(3, basis=cf.Polynomial(2)),
}


def bits(model: Any) -> tuple[bytes, ...]:
    """Everything a fit computes, but for the seconds it took."""
    parts = [model.components_, model.explained_variance_, model.mean_, model.scale_, model.total_variance_]
    parts += [model.certificate_.value, model.certificate_.digits, model.projection_error_, model.noise_variance_]
    return tuple(np.asarray(part, dtype=np.float64).tobytes() for part in parts)


def well(X: Any) -> Any:
    return X


def ill(X: Any) -> Any:
    """Columns so nearly dependent that sums are twofold."""
    return np.column_stack([X[:, :-1], X[:, 0] + 1e-5 * X[:, -1]])


@pytest.mark.parametrize("condition", [well, ill])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
@pytest.mark.slow
def test_threads_and_chunks_do_not_change_a_bit(rng, model, dtype, condition):
    X = condition((rng.normal(size=(700, 4)) * 30 + 10).astype(np.float32 if dtype == "float64" else dtype))
    X, weight = X.astype(dtype), rng.random(700)
    for block_rows, w in ((4, None), (64, weight)):
        found = set()
        for n_threads in (1, 2, 8):
            with cf.threads(n_threads):
                found.add(bits(MODELS[model]().fit(memory(X, None, w, block_rows=block_rows))))
        cut = batches(X, None, w, block_rows=block_rows, cuts=random_cuts(rng, 700))
        found.add(bits(MODELS[model]().fit(cut)))
        assert len(found) == 1


@pytest.mark.parametrize("solver", ["exact", "randomized"])
@pytest.mark.parametrize("n_columns", [6, 40])
def test_sparse_batches_of_any_size_give_the_same_bits(rng, n_columns, solver):
    X = sp.csr_array(np.where(rng.random((2000, n_columns)) < 0.1, rng.normal(size=(2000, n_columns)), 0.0))
    model = cf.PCA(2, solver=solver)
    whole = bits(model.fit(memory(X, None, block_rows=128)))
    assert whole == bits(model.fit(batches(X, block_rows=128, cuts=random_cuts(rng, 2000))))


@pytest.mark.parametrize("shape", [(300, 7), (20, 270)])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("solver", ["exact", "randomized"])
def test_the_layout_does_not_change_a_bit(rng, shape, layout, solver):
    for k, offset in ((1, 3), (3, 3), (2, 1000)):
        X = rng.normal(size=shape) * 10 + offset
        plain, other = (cf.PCA(k, solver=solver).fit(rows) for rows in (X, LAYOUTS[layout](X)))
        assert bits(plain) == bits(other)
        assert np.array_equal(plain.transform(X), other.transform(LAYOUTS[layout](X)))


@pytest.mark.parametrize("dtype", TYPES)
def test_the_type_of_whole_numbers_does_not_change_a_bit(rng, dtype):
    X = rng.integers(0, 100, size=(200, 5))
    plain, other = cf.PCA(2).fit(X.astype(float)), cf.PCA(2).fit(X.astype(dtype))
    assert bits(plain) == bits(other)
    assert np.array_equal(plain.transform(X.astype(float)), other.transform(X.astype(dtype)))


def test_few_rows_give_the_same_bits_for_any_number_of_threads(rng):
    for offset in (0, 100):
        X, found = rng.normal(size=(30, 5000)) + offset, set()
        for n_threads in (1, 2, 8):
            with cf.threads(n_threads):
                found.add(bits(cf.PCA(5).fit(X)))
        found.add(bits(cf.PCA(5).fit(batches(X, block_rows=8, cuts=[3, 11]))))
        assert len(found) == 1


def test_scores_do_not_depend_on_the_rows_around_them(rng):
    X = rng.normal(size=(500, 6))
    model = cf.PCA(5).fit(X)
    expected = model.transform(X)
    for n_threads in (1, 2, 8):
        with cf.threads(n_threads):
            assert np.array_equal(model.transform(X), expected)
    for begin, end in ((0, 1), (3, 70), (499, 500)):
        assert np.array_equal(model.transform(X[begin:end]), expected[begin:end])
    assert np.array_equal(model.transform(batches(X, block_rows=2, cuts=[1, 99])), expected)


def _table(rng: Any) -> pa.Table:
    n = 4000
    return pa.table(
        {
            "a": rng.normal(size=n) * 3,
            "b": pa.array(rng.normal(size=n), mask=rng.random(n) < 0.05),
            "kind": rng.choice(["u", "v", "w"], size=n),
            "c": rng.integers(0, 50, size=n),
            "w": rng.integers(0, 3, size=n),
        }
    )


def _parquet(table: pa.Table, folder: Any) -> Any:
    pq.write_table(table, folder / "rows.parquet", row_group_size=333)
    return cf.scan_parquet(folder / "rows.parquet", weight="w")


def _folder(table: pa.Table, folder: Any) -> Any:
    for k, (begin, end) in enumerate(pairwise([0, 5, 1700, table.num_rows])):
        pq.write_table(table.slice(begin, end - begin), folder / f"{k}.parquet")
    return cf.scan_parquet(folder, weight="w")


def _csv(table: pa.Table, folder: Any) -> Any:
    frame = table.to_pandas()
    frame.to_csv(folder / "rows.csv", index=False)
    return cf.scan_csv(folder / "rows.csv", weight="w")


def _polars(table: pa.Table, folder: Any) -> Any:
    return cf.from_arrow(pytest.importorskip("polars").from_arrow(table), weight="w")


def _dask(table: pa.Table, folder: Any) -> Any:
    dask_frame = pytest.importorskip("dask.dataframe")
    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    parts = [dask_frame.from_pandas(frame.iloc[a:b], npartitions=1) for a, b in pairwise([0, 7, 900, 4000])]
    return cf.from_dask(dask_frame.concat(parts), weight="w")


PLACES = {"parquet": _parquet, "a folder of parquet": _folder, "csv": _csv, "polars": _polars, "dask": _dask}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.slow
def test_every_place_gives_the_bits_of_memory(rng, tmp_path, place, model):
    table = _table(rng)
    in_memory = MODELS[model]().fit(cf.from_arrow(table, weight="w"))
    scan = PLACES[place](table, tmp_path)
    elsewhere = MODELS[model]().fit(scan)
    assert bits(elsewhere) == bits(in_memory)
    assert elsewhere.column_names_ == in_memory.column_names_
    assert np.array_equal(elsewhere.transform(scan), in_memory.transform(table.drop_columns(["w"])))
    assert elsewhere.certify(scan).value == elsewhere.certificate_.value


@pytest.mark.parametrize("solver", ["exact", "randomized"])
def test_a_dask_array_gives_the_bits_of_the_array(rng, solver):
    dask_array = pytest.importorskip("dask.array")
    X = rng.normal(size=(5000, 6)) * 3 + 1
    source = cf.from_dask(dask_array.from_array(X, chunks=(777, 3)))
    assert bits(cf.PCA(2, solver=solver).fit(source)) == bits(cf.PCA(2, solver=solver).fit(X))


def test_a_table_goes_through_its_encoder(rng):
    frame = _table(rng).to_pandas().drop(columns="w")
    weight = rng.integers(0, 3, size=len(frame))
    encoder = cf.TableEncoder(sparse_output=False)
    model = cf.PCA(2, encoder=cf.TableEncoder()).fit(frame, sample_weight=weight)
    dropped = frame[weight > 0]
    columns = encoder.fit_transform(dropped)
    assert model.column_names_ == list(encoder.get_feature_names_out())
    # The fill of a gap is the weighted mean of the others.
    place = model.column_names_.index("b")
    filled = np.average(dropped["b"].dropna(), weights=weight[weight > 0][dropped["b"].notna()])
    columns[dropped["b"].isna(), place] = filled
    plain = cf.PCA(2).fit(columns, sample_weight=weight[weight > 0])
    assert np.allclose(model.components_, plain.components_, rtol=1e-9, atol=1e-12)
    assert model.certify(frame, sample_weight=weight).holds


def test_scores_of_a_scan_are_written_to_a_file(rng, tmp_path):
    table = _table(rng)
    model = cf.PCA(2).fit(cf.from_arrow(table, weight="w"))
    assert model.transform(_parquet(table, tmp_path), out=tmp_path / "scores.parquet") is None
    written = pq.read_table(tmp_path / "scores.parquet")
    assert written.column_names == ["pca0", "pca1"]
    assert np.array_equal(written.to_pandas().to_numpy(), model.transform(table))


def test_a_scan_carries_its_weight(rng):
    with pytest.raises(ValueError, match="weight="):
        cf.PCA().fit(cf.from_arrow(_table(rng)), sample_weight=np.ones(4000))


@pytest.mark.parametrize("shape", [(500, 4), (20, 300)])
@pytest.mark.parametrize("solver", ["exact", "randomized"])
def test_a_missing_value_is_named_by_row_and_column(rng, shape, solver):
    X = rng.normal(size=shape)
    model = cf.PCA(2, solver=solver).fit(X)
    for bad in (np.nan, np.inf):
        X[17, 2] = bad
        with pytest.raises(ValueError, match="row 17, column 'x2'"):
            cf.PCA(2, solver=solver).fit(X)
        for method in (model.transform, model.projection_error):
            with pytest.raises(ValueError, match="row 17, column 'x2'"):
                method(X)
