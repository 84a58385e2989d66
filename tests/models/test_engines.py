"""One model, many places for its rows: the same bits, and the answer of scikit-learn on the expanded table."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge as PeerRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import certifit as cf

# table -> (file, target, columns left out). CERTIFIT_TEST_ROWS=0 takes all rows.
TABLES = {
    "nycflights13": ("nycflights13/flights.parquet", "arr_delay", ["year", "tailnum"]),
    "ames_housing": ("ames_housing/ames_housing.parquet", "Sale_Price", []),
    "california_housing": ("california_housing/california_housing.parquet", "median_house_value", []),
    "kddcup99": ("kddcup99/kddcup99_test.parquet", "count", []),
    "fremtpl2": ("fremtpl2/freq.parquet", "ClaimNb", ["IDpol"]),
}
MODELS = {
    "least squares": cf.LinearRegression,
    "ridge": lambda: cf.Ridge(alpha=1e-3),
    "lasso": lambda: cf.Lasso(alpha=0.01),
}
N_ROWS = int(os.environ.get("CERTIFIT_TEST_ROWS", "12000")) or None


@pytest.fixture(scope="module", params=TABLES)
def table(request: Any, shared_data: Any) -> tuple[pa.Table, str]:
    file, target, left_out = TABLES[request.param]
    paths = [shared_data / file, *sorted((shared_data / file.split("/")[0]).glob("*.parquet"))]
    table = pq.read_table(next(path for path in paths if path.exists()))
    table = table.drop_columns([name for name in left_out if name in table.column_names])
    table = table.filter(pc.is_valid(table[target])).slice(0, N_ROWS)
    # Text, not dictionaries: a CSV has no others.
    for j, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(j, field.name, table[j].cast(pa.string()))
    return table.combine_chunks(), target


def _csv(table: pa.Table, target: str, folder: Any) -> Any:
    arrow_csv.write_csv(table, folder / "rows.csv")
    kinds = {f.name: "text" if pa.types.is_string(f.type) else "number" for f in table.schema}
    return cf.scan_csv(folder / "rows.csv", target=target, types=kinds)


def _parquet(row_group: int) -> Callable[..., Any]:
    def scan(table: pa.Table, target: str, folder: Any) -> Any:
        pq.write_table(table, folder / f"{row_group}.parquet", row_group_size=row_group, write_page_checksum=True)
        return cf.scan_parquet(folder / f"{row_group}.parquet", target=target)

    return scan


def _folder(table: pa.Table, target: str, folder: Any) -> Any:
    (folder / "parts").mkdir()
    cuts = [0, 5, table.num_rows // 3, table.num_rows]
    for k, (begin, end) in enumerate(pairwise(cuts)):
        pq.write_table(table.slice(begin, end - begin), folder / "parts" / f"{k}.parquet")
    return cf.scan_parquet(folder / "parts", target=target)


def _polars(table: pa.Table, target: str, folder: Any) -> Any:
    polars = pytest.importorskip("polars")
    return cf.from_arrow(polars.from_arrow(table), target=target)


def _duckdb(table: pa.Table, target: str, folder: Any) -> Any:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("rows_", table)
    return cf.from_arrow(connection.sql("select * from rows_"), target=target)


def _dask(table: pa.Table, target: str, folder: Any) -> Any:
    dask_frame = pytest.importorskip("dask.dataframe")
    frame = table.to_pandas(types_mapper=__import__("pandas").ArrowDtype)
    cuts = [0, 7, table.num_rows // 5, table.num_rows // 2, table.num_rows]
    parts = [dask_frame.from_pandas(frame.iloc[a:b], npartitions=1) for a, b in pairwise(cuts)]
    return cf.from_dask(dask_frame.concat(parts), target=target)


PLACES = {
    "csv": _csv,
    "parquet in row groups of 777": _parquet(777),
    "parquet in row groups of 65,536": _parquet(65_536),
    "a folder of parquet": _folder,
    "polars": _polars,
    "duckdb": _duckdb,
    "dask in unequal partitions": _dask,
}


@pytest.fixture(scope="module")
def fit_in_memory(table: tuple[pa.Table, str]) -> Callable[[str], Any]:
    """fit_in_memory(model) -> its fit of the rows in memory, made once."""
    rows, target = table
    return cache(lambda model: MODELS[model]().fit(cf.from_arrow(rows, target=target)))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("model", MODELS)
def test_every_place_gives_the_bits_of_memory(table, fit_in_memory, model, place, tmp_path):
    rows, target = table
    in_memory = fit_in_memory(model)
    elsewhere = MODELS[model]().fit(PLACES[place](rows, target, tmp_path))
    assert elsewhere.column_names_ == in_memory.column_names_
    assert np.array_equal(elsewhere.coef_, in_memory.coef_)
    assert elsewhere.intercept_ == in_memory.intercept_
    assert elsewhere.certificate_ == in_memory.certificate_


def test_ridge_is_that_of_scikit_learn_on_the_expanded_table(table):
    rows, target = table
    model = cf.Ridge(alpha=1e-3).fit(cf.from_arrow(rows, target=target))
    assert model.certificate_.holds
    used = [name for name, _ in model.encoder_.groups_]
    frame = rows.select(used).to_pandas()
    text = [name for name in used if pa.types.is_string(rows.schema.field(name).type)]
    numbers = [name for name in used if name not in text]
    # A gap in text is a level of its own; the first of the others is the reference.
    first = [sorted(frame[name].dropna())[0] for name in text]
    frame[text] = frame[text].astype(object).where(frame[text].notna(), "missing!")
    y = rows[target].to_numpy().astype(float)
    expand = make_column_transformer(
        (OneHotEncoder(drop=first or None, sparse_output=False), text),
        (SimpleImputer(add_indicator=True), numbers),
    )
    peer = make_pipeline(expand, PeerRidge(alpha=1e-3 * len(y), solver="svd")).fit(frame, y)
    ours, theirs = model.predict(rows), peer.predict(frame)
    assert np.abs(ours - theirs).max() <= 1e-9 * np.abs(theirs).max()
