"""Components of real data, from end to end: wide gene data by products of rows, pictures of digits by columns."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.decomposition import PCA as PeerPCA

import certifit as cf

# set -> (target, the matrix that is made)
SETS = {"colon": "rows", "leukemia": "rows", "mnist_5k": "columns", "wine_quality": "columns"}


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
    frame = numbers(path).to_pandas()
    X = frame.to_numpy(dtype=np.float64)
    ours, theirs = cf.PCA(5).fit(X), PeerPCA(5, svd_solver="full").fit(X)
    assert ours.route_ == SETS[name]
    assert ours.certificate_.holds
    assert np.allclose(ours.explained_variance_, theirs.explained_variance_, rtol=1e-10)
    assert np.allclose(ours.transform(X), theirs.transform(X), atol=1e-7 * np.abs(X).max())
    errors = ((X - ours.inverse_transform(ours.transform(X))) ** 2).sum(axis=1)
    assert np.isclose(errors.mean(), ours.projection_error_, rtol=1e-9)


def test_ninety_nine_percent_from_the_file_are_those_of_memory(table, tmp_path):
    _, path = table
    rows = numbers(path)
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=37)
    in_memory = cf.PCA(0.99, standardize=True).fit(cf.from_arrow(rows))
    scanned = cf.PCA(0.99, standardize=True).fit(cf.scan_parquet(tmp_path / "rows.parquet"))
    assert np.array_equal(scanned.components_, in_memory.components_)
    assert np.array_equal(scanned.explained_variance_, in_memory.explained_variance_)
    shares = np.cumsum(in_memory.explained_variance_ratio_)
    assert shares[-1] >= 0.99 > shares[-2]
    assert in_memory.certificate_.holds
