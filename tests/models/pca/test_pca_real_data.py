"""Components of real data, from end to end: wide gene data by products of rows, pictures of digits by columns; the same
bits from arrays, CSV, Parquet and Dask, and in a feature space.
"""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.decomposition import PCA as PeerPCA

import certifit as cf
from tests.models.class_places import assert_same_bits, places

# set -> (target, the matrix that is made)
SETS = {"colon": "rows", "leukemia": "rows", "mnist_5k": "columns", "wine_quality": "columns"}
N_ROWS, N_COLUMNS = 1000, 300  # of a set at most, in every place; columns above 256 leave the choice of the matrix open


@pytest.fixture(params=SETS)
def table(request, shared_data):
    files = sorted((shared_data / request.param).rglob("*.parquet"))
    if not files:
        pytest.skip("no Parquet file")
    return request.param, files[0]


def numbers(path):
    table = pq.read_table(path)
    names = [f.name for f in table.schema if str(f.type).startswith(("float", "double", "int", "uint"))]
    return table.select(names)


def test_components_are_those_of_scikit_learn(table):
    name, path = table
    X = numbers(path).slice(0, 2 * N_ROWS).to_pandas().to_numpy(dtype=np.float64)
    ours, theirs = cf.PCA(5).fit(X), PeerPCA(5, svd_solver="full").fit(X)
    assert ours.route_ == SETS[name]
    assert ours.certificate_.holds
    assert np.allclose(ours.explained_variance_, theirs.explained_variance_, rtol=1e-10)
    assert np.allclose(ours.transform(X), theirs.transform(X), atol=1e-7 * np.abs(X).max())
    errors = ((X - ours.inverse_transform(ours.transform(X))) ** 2).sum(axis=1)
    assert np.isclose(errors.mean(), ours.projection_error_, rtol=1e-9)


def test_ninety_nine_percent_from_the_file_are_those_of_memory(table, tmp_path):
    _, path = table
    rows = numbers(path).slice(0, N_ROWS)
    rows = rows.select(rows.column_names[-N_COLUMNS:])
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=37)
    in_memory = cf.PCA(0.99, standardize=True).fit(cf.from_arrow(rows))
    scanned = cf.PCA(0.99, standardize=True).fit(cf.scan_parquet(tmp_path / "rows.parquet"))
    assert np.array_equal(scanned.components_, in_memory.components_)
    assert np.array_equal(scanned.explained_variance_, in_memory.explained_variance_)
    shares = np.cumsum(in_memory.explained_variance_ratio_)
    assert shares[-1] >= 0.99 > shares[-2]
    assert in_memory.certificate_.holds


def test_arrays_csv_parquet_and_dask_have_the_same_bits(table, tmp_path):
    name, path = table
    frame = numbers(path).slice(0, N_ROWS).to_pandas().iloc[:, -N_COLUMNS:]
    known = cf.PCA(8, standardize=True).fit(cf.from_arrow(frame))
    used = frame[known.column_names_]  # a table's constant and repeated columns are set aside
    plain = cf.PCA(8, standardize=True).fit(used.to_numpy(float))
    assert known.route_ == plain.route_ == SETS[name]
    assert np.array_equal(plain.components_, known.components_)
    scores = known.transform(frame)
    for place, source in places(frame, None, tmp_path):
        found = cf.PCA(8, standardize=True).fit(source)
        assert_same_bits(found, known, place)
        assert np.array_equal(found.transform(source), scores), place
        assert found.certify(source).holds, place


@pytest.mark.parametrize("name", ["colon", "leukemia"])
def test_the_rows_of_wide_data_lie_in_the_plane_of_fewer_components_than_rows(name, shared_data):
    X = numbers(shared_data / name / f"{name}.parquet").drop_columns("y").to_pandas().to_numpy(float)
    model = cf.PCA().fit(X)
    assert model.route_ == "rows" and model.n_components_ == len(X) - 1  # centred rows add up to nothing
    assert np.allclose(model.inverse_transform(model.transform(X)), X, rtol=1e-10, atol=1e-10 * np.abs(X).max())
    theirs = PeerPCA(len(X) - 1, svd_solver="full").fit(X)
    assert np.allclose(model.explained_variance_, theirs.explained_variance_, rtol=1e-9)


def test_components_in_the_space_of_all_products_of_wine_are_those_of_the_expanded_table(shared_data, tmp_path):
    """Feature space: the powers and products of eleven columns up to degree 2, from memory and from files."""
    frame = numbers(shared_data / "wine_quality" / "wine_quality.parquet").slice(0, N_ROWS).to_pandas()
    frame = frame.drop(columns=[c for c in ("quality", "color") if c in frame])
    X = frame.to_numpy(float)
    model = cf.PCA(6, standardize=True, basis=cf.Polynomial(2)).fit(X)
    assert model.components_.shape == (6, len(model.column_names_))
    Z = model.basis_.transform(X)
    Z = (Z - Z.mean(axis=0)) / np.where(Z.std(axis=0) > 0, Z.std(axis=0), 1)
    theirs = PeerPCA(6, svd_solver="full").fit(Z)
    assert np.allclose(model.explained_variance_, theirs.explained_variance_, rtol=1e-9)
    assert np.allclose(model.transform(X), theirs.transform(Z), atol=1e-7)
    known = cf.PCA(6, standardize=True, basis=cf.Polynomial(2)).fit(cf.from_arrow(frame))
    for place, source in places(frame, None, tmp_path):
        assert_same_bits(cf.PCA(6, standardize=True, basis=cf.Polynomial(2)).fit(source), known, place)
