"""One table in every place that rows can live in, and what a fitted classifier or PCA holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import certifit as cf

FITTED = (
    "classes_",
    "class_count_",
    "priors_",
    "means_",
    "covariance_",
    "roots_",
    "coef_",
    "intercept_",
    "theta_",
    "var_",
    "class_prior_",
    "feature_count_",
    "feature_log_prob_",
    "class_log_prior_",
    "mean_",
    "scale_",
    "components_",
    "explained_variance_",
)


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Text in place of dictionaries: a CSV has no others."""
    texts = [name for name in frame if isinstance(frame[name].dtype, pd.CategoricalDtype)]
    return frame.astype(dict.fromkeys(texts, object))


def _csv(frame: pd.DataFrame, target: str | None, folder: Path) -> Any:
    frame.to_csv(folder / "rows.csv", index=False)
    return cf.scan_csv(folder / "rows.csv", target=target)


def _parquet(frame: pd.DataFrame, target: str | None, folder: Path) -> Any:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(table, folder / "rows.parquet", row_group_size=777)
    return cf.scan_parquet(folder / "rows.parquet", target=target)


def _folder(frame: pd.DataFrame, target: str | None, folder: Path) -> Any:
    (folder / "parts").mkdir()
    for k, rows in enumerate(np.array_split(np.arange(len(frame)), [3, len(frame) // 3])):
        frame.iloc[rows].to_parquet(folder / "parts" / f"{k}.parquet", index=False)
    return cf.scan_parquet(folder / "parts", target=target)


def _dask(frame: pd.DataFrame, target: str | None, folder: Path) -> Any:
    dask_frame = pytest.importorskip("dask.dataframe")
    return cf.from_dask(dask_frame.from_pandas(frame, npartitions=7), target=target)


PLACES: dict[str, Callable[..., Any]] = {"csv": _csv, "parquet": _parquet, "a folder": _folder, "dask": _dask}


def places(frame: pd.DataFrame, target: str | None, folder: Path) -> Iterator[tuple[str, Any]]:
    """(place, source) of the same rows, in pieces that fit no block."""
    for place, make in PLACES.items():
        yield place, make(frame, target, folder)


def assert_same_bits(found: Any, known: Any, place: str) -> None:
    """Every fitted number is the same to the last bit."""
    names = [name for name in FITTED if hasattr(known, name)]
    assert names and found.column_names_ == known.column_names_
    for name in names:
        assert np.array_equal(getattr(found, name), getattr(known, name)), (place, name)
    assert found.certificate_ == known.certificate_, place
