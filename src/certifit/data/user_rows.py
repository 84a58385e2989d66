"""Rows of whatever a user passes: arrays, sparse matrices, frames, lists."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from certifit.data.columns import Array


def taken(X: Any, numbers: Array) -> Any:
    """Rows of an array, a sparse matrix, a frame or a list, by number."""
    if hasattr(X, "iloc"):
        return X.iloc[numbers]
    if hasattr(X, "take") and hasattr(X, "schema"):  # pyarrow
        return X.take(numbers)
    if sp.issparse(X):
        return X.tocsr()[numbers]
    if hasattr(X, "shape") or hasattr(X, "__dataframe__"):
        return X[numbers]
    return [X[i] for i in numbers]


def n_samples(X: Any) -> int:
    """Number of rows of an array, frame or list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
