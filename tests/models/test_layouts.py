"""Any storage of the same numbers gives the same fit: types, sparse forms, frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from layouts import LAYOUTS, SPARSE, TYPES, csr, integers

import certifit as cf

NAMES = ["a", "b", "c", "d"]
FRAMES = {
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "pandas of mixed types": lambda X: pd.DataFrame(X, columns=NAMES).astype({"a": "int64", "b": "float32"}),
    "pandas with nullable types": lambda X: pd.DataFrame(X, columns=NAMES).astype("Int64"),
    "pandas on Arrow": lambda X: pd.DataFrame(X, columns=NAMES).astype("float64[pyarrow]"),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "polars of integers": lambda X: pl.DataFrame(X.astype(np.int32), schema=NAMES),
    "Arrow": lambda X: pa.table(dict(zip(NAMES, X.T, strict=True))),
    "Arrow in chunks": lambda X: pa.concat_tables(
        [pa.table(dict(zip(NAMES, part.T, strict=True))) for part in (X[:50], X[50:])]
    ),
}
OTHER_SPARSE = {
    "csc": sp.csc_array, "coo": sp.coo_array, "bsr": sp.bsr_array, "dia": sp.dia_array, "lil": sp.lil_array,
    "dok": sp.dok_array, "matrix": sp.csr_matrix,
}  # fmt: skip


def rows(rng: np.random.Generator, d: int = 4, density: float = 1.0) -> tuple[Any, Any]:
    X = integers(rng, 120, d, density)
    return X, X[:, :4] @ [1.0, -2.0, 3.0, 0.5] + rng.normal(size=120)


def models() -> list[Any]:
    return [cf.LinearRegression(), cf.LinearRegression(fit_intercept=False), cf.Ridge(0.1)]


def assert_same(a: Any, b: Any) -> None:
    assert a.coef_ == pytest.approx(b.coef_, rel=1e-12, abs=1e-14)
    assert a.intercept_ == pytest.approx(b.intercept_, rel=1e-12, abs=1e-13)
    assert a.rank_ == b.rank_


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [*TYPES, "bool", "float16", "longdouble", ">f8", ">i4"])
@pytest.mark.slow
def test_every_type_gives_the_same_fit(rng, dtype, layout):
    X, y = rows(rng)
    X = (X > 50).astype(float) if dtype == "bool" else X
    given = LAYOUTS[layout](X.astype(dtype))
    for model in models():
        expected = model.fit(X, y).predict(X)
        coef = model.coef_
        model.fit(given, y)
        assert model.coef_ == pytest.approx(coef, rel=1e-12)
        assert model.predict(given) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", FRAMES)
def test_every_frame_gives_the_same_fit_and_keeps_its_names(rng, name):
    X, y = rows(rng)
    given = FRAMES[name](X)
    for model, other in zip(models(), models(), strict=True):
        model.fit(given, y)
        assert_same(model, other.fit(X, y))
        assert list(model.feature_names_in_) == NAMES
        assert model.column_names_ == NAMES
        assert model.predict(given) == pytest.approx(other.predict(X), rel=1e-12)


@pytest.mark.parametrize("kind", [list, pd.Series, pl.Series, pa.array, np.float32])
def test_every_kind_of_target_is_taken(rng, kind):
    X, y = rows(rng)
    y = np.round(y)
    assert_same(cf.LinearRegression().fit(X, kind(y)), cf.LinearRegression().fit(X, y))


def test_the_name_of_the_target_is_kept(rng):
    X, y = rows(rng)
    assert cf.LinearRegression().fit(X, pd.Series(y, name="price")).target_name_ == "price"
    assert cf.LinearRegression().fit(X, pl.Series("price", y)).target_name_ == "price"
    assert cf.LinearRegression().fit(X, y).target_name_ == "y"


@pytest.mark.parametrize("d, density", [(4, 0.3), (40, 0.04), (40, 0.5)])
@pytest.mark.parametrize("form", [*SPARSE, *OTHER_SPARSE])
@pytest.mark.slow
def test_every_sparse_form_gives_the_fit_of_the_dense_array(rng, form, d, density):
    X, y = rows(rng, d, density)
    given = (SPARSE | OTHER_SPARSE)[form](X)
    for model, dense in zip(models(), models(), strict=True):
        model.fit(given, y)
        dense.fit(X, y)
        assert model.rank_ == dense.rank_
        assert model.coef_ == pytest.approx(dense.coef_, rel=1e-9, abs=1e-11)
        assert model.predict(given) == pytest.approx(dense.predict(X), rel=1e-9, abs=1e-9)
        assert model.certificate_.holds


def test_both_index_types_of_sparse_rows_give_the_same_bits(rng):
    X, y = rows(rng, 40, 0.05)
    narrow, wide = (cf.LinearRegression().fit(csr(X, index), y) for index in ("int32", "int64"))
    assert np.array_equal(narrow.coef_, wide.coef_)
    assert narrow.intercept_ == wide.intercept_


def test_explicit_zeros_and_empty_rows_change_nothing(rng):
    X, y = rows(rng, 4, 0.4)
    X[5:9] = 0.0
    stored = sp.csr_array(np.where(X == 0, 1e-99, X))
    stored.data[stored.data == 1e-99] = 0.0
    assert_same(cf.LinearRegression().fit(stored, y), cf.LinearRegression().fit(sp.csr_array(X), y))


def test_few_sparse_rows_give_the_fit_of_the_dense_array(rng):
    X, y = integers(rng, 12, 60, 0.2), rng.normal(size=12)
    for model, dense in zip(models(), models(), strict=True):
        model.fit(sp.csr_array(X), y)
        assert model.coef_ == pytest.approx(dense.fit(X, y).coef_, rel=1e-9, abs=1e-11)
