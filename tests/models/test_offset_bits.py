"""Counts with an exposure: the same bits in memory, in files and on Dask, and what an exposure must mean."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import certifit as cf

ROLES = {"target": "claims", "weight": "w", "offset": "o", "exposure": "years"}


def table(n_rows: int = 140_003) -> pa.Table:
    """More than two blocks of rows."""
    rng = np.random.default_rng(0)
    a, b, o = rng.normal(size=(3, n_rows)).round(3)
    years = rng.uniform(0.05, 1.0, n_rows).round(3)
    claims = rng.poisson(years * np.exp(0.4 * a - 0.2 * b + 0.3 * o - 1.5))
    kind = np.array(["car", "van", "bus"])[rng.integers(0, 3, n_rows)]
    weight = rng.integers(1, 3, n_rows).astype(float)
    return pa.table({"a": a, "b": b, "kind": kind, "o": 0.3 * o, "years": years, "claims": claims, "w": weight})


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return table()


def dask_frame(rows: pa.Table) -> Any:
    dask, dd = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    frame = rows.to_pandas()
    parts = [dask.delayed(frame.iloc[begin:end]) for begin, end in pairwise([0, 1, 70_000, 70_001, len(frame)])]
    return dd.from_delayed(parts, meta=frame.iloc[:0])


def bits(model: Any) -> tuple[bytes, ...]:
    parts = [model.coef_, model.intercept_, model.certificate_.value, model.data_["target_mean"]]
    parts.append([row["objective"] for row in model.history_])
    return tuple(np.asarray(part, dtype=np.float64).tobytes() for part in parts)


@pytest.mark.parametrize("model", [cf.PoissonRegressor(alpha=0.0), cf.PoissonRegressor(alpha=0.01)])
@pytest.mark.slow
def test_every_source_gives_the_same_bits_with_an_exposure(model, rows, tmp_path):
    pyarrow.csv.write_csv(rows, tmp_path / "rows.csv")
    pyarrow.parquet.write_table(rows, tmp_path / "rows.parquet", row_group_size=9_999)
    sources = {
        "memory": cf.from_arrow(rows, **ROLES),
        "batches": cf.from_arrow(pa.Table.from_batches(rows.to_batches(max_chunksize=777)), **ROLES),
        "csv": cf.scan_csv(tmp_path / "rows.csv", **ROLES),
        "parquet": cf.scan_parquet(tmp_path / "rows.parquet", **ROLES),
        "dask": cf.from_dask(dask_frame(rows), **ROLES),
    }
    found = {name: bits(model.fit(source)) for name, source in sources.items()}
    assert all(own == found["memory"] for own in found.values()), [n for n in found if found[n] != found["memory"]]
    predictions = {name: model.predict(source).tobytes() for name, source in sources.items()}
    assert len(set(predictions.values())) == 1


def test_frames_with_arrays_beside_them_give_the_bits_of_a_scan(rows):
    frame = rows.to_pandas()
    model = cf.PoissonRegressor(alpha=0.0, encoder=cf.TableEncoder())
    X, beside = frame[["a", "b", "kind"]], {"offset": frame["o"], "exposure": frame["years"]}
    own = model.fit(X, frame["claims"], sample_weight=frame["w"], **beside)
    truth = cf.PoissonRegressor(alpha=0.0).fit(cf.from_arrow(rows, **ROLES))
    assert bits(own) == bits(truth)
    np.testing.assert_array_equal(own.predict(X, **beside), truth.predict(cf.from_arrow(rows, **ROLES)))
    np.testing.assert_allclose(own.predict(X, exposure=frame["years"]), own.predict(X) * frame["years"], rtol=1e-14)


def test_a_row_of_twice_the_exposure_is_two_rows_that_share_the_count(rng):
    """The sum of Poisson counts of equal rates is a Poisson count of the sum of the exposures."""
    X = rng.normal(size=(200, 3))
    y, exposure = rng.poisson(2.0, size=(2, 200)).astype(float), rng.uniform(0.5, 2.0, 200)
    apart = cf.PoissonRegressor(alpha=0.0).fit(np.vstack([X, X]), y.ravel(), exposure=np.tile(exposure, 2))
    joined = cf.PoissonRegressor(alpha=0.0).fit(X, y.sum(axis=0), exposure=2 * exposure)
    np.testing.assert_allclose(joined.coef_, apart.coef_, atol=1e-10)
    assert joined.intercept_ == pytest.approx(apart.intercept_, abs=1e-10)


def test_a_constant_offset_moves_the_intercept_alone(rng):
    X, y = rng.normal(size=(100, 2)), rng.poisson(1.5, 100)
    plain, moved = cf.PoissonRegressor(alpha=0.1).fit(X, y), cf.PoissonRegressor(alpha=0.1).fit(X, y, offset=1.25)
    np.testing.assert_allclose(moved.coef_, plain.coef_, atol=1e-9)
    assert moved.intercept_ == pytest.approx(plain.intercept_ - 1.25, abs=1e-9)
    np.testing.assert_allclose(moved.predict(X, offset=1.25), plain.predict(X), rtol=1e-8)
