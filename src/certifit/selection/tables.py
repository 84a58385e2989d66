"""Rows and columns of any kind of table: arrays, sparse arrays, frames, sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, get_tags
from sklearn.utils.validation import column_or_1d, validate_data

from certifit.data.columns import Array
from certifit.data.frames import frame_table, is_frame
from certifit.data.gate import canonical, refuse_nonfinite
from certifit.data.kinds import refuse_kinds
from certifit.data.source import Memory, Source


def checked_rows(selector: BaseEstimator, X: Any, y: Any) -> tuple[Any, Any]:
    """Training rows and targets as the estimator takes them; sets n_features_in_ and feature_names_in_."""
    if not is_frame(X):
        X = checked_array(selector, X, y)
    else:
        X = X if hasattr(X, "iloc") or hasattr(X, "get_column") or isinstance(X, pa.Table) else frame_table(X)
        validate_data(selector, X, y, skip_check_array=True)
        if 0 in X.shape:
            raise ValueError(f"Found {X.shape[0]} rows and {X.shape[1]} columns. A fit needs one of each at least.")
    if y is None:
        return X, None
    if not get_tags(selector).target_tags.multi_output:
        y = column_or_1d(y, warn=True)
    y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    check_consistent_length(X, y)
    if y.ndim == 1 and len(y) > 1 and (y == y[0]).all():
        raise ValueError(f"y is constant: {len(y):,} rows with the value {y[0]!r}. No feature can explain it.")
    return X, y


def checked_array(selector: BaseEstimator, X: Any, y: Any = "no_validation", reset: bool = True) -> Any:
    """X as an array or CSR; texts only for an estimator that reads them. y is only looked for."""
    refuse_kinds(X)
    tags = get_tags(selector)
    if reset and y is None and tags.target_tags.required:
        validate_data(selector, X, y)  # its words are the ones that users know
    return validate_data(
        selector, canonical(X), reset=reset, accept_sparse="csr" if tags.input_tags.sparse else False,
        dtype=None if tags.input_tags.string else "numeric", ensure_all_finite=False, ensure_min_samples=int(reset),
    )  # fmt: skip


def refuse_gaps(selector: BaseEstimator, X: Any, names: list[str]) -> None:
    """Name the row and column of the first NaN or infinity, unless the estimator takes them."""
    if get_tags(selector).input_tags.allow_nan:
        return
    if not is_frame(X):
        refuse_nonfinite(Memory(X, None, names=names)) if X.dtype.kind == "f" else None
        return
    for name, column in zip(names, frame_table(X).columns, strict=True):
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            values = column.to_numpy().astype(np.float64, copy=False)[:, None]
            refuse_nonfinite(Memory(values, None, names=[name]))


def take_columns(X: Any, columns: Sequence[int]) -> Any:
    """Some columns of an array, a sparse array, a frame or a source, which stays what it is."""
    columns = list(columns)
    if isinstance(X, Source):
        return X.select([X.names[column] for column in columns])
    if hasattr(X, "iloc"):
        return X.iloc[:, columns]
    return X.select(columns) if isinstance(X, pa.Table) else X[:, columns]


def take_rows(X: Any, rows: Array) -> Any:
    """Some rows of an array, a sparse array or a frame; None stays None."""
    if X is None:
        return None
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X.take(rows) if isinstance(X, pa.Table) else X[rows]
