"""The same numbers in other storage: one table of layouts, one of types, one of sparse forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


def _strided(X: Any) -> Any:
    wide = np.full((2 * X.shape[0], 3 * X.shape[1]), 99, dtype=X.dtype)
    wide[1::2, 2::3] = X
    return wide[1::2, 2::3]


def _reversed(X: Any) -> Any:
    return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]


def _read_only(X: Any) -> Any:
    X = X.copy()
    X.flags.writeable = False
    return X


def _wide(X: Any) -> Any:
    """Rows that lie further apart than they are long."""
    return np.column_stack([X, X])[:, : X.shape[1]]


LAYOUTS = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "strided": _strided,
    "negative strides": _reversed,
    "read-only": _read_only,
    "rows apart": _wide,
}

TYPES = ("float64", "float32", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8")


def csr(X: Any, index: str = "int32", dtype: str = "float64") -> Any:
    X = sp.csr_array(np.asarray(X, dtype=dtype))
    return sp.csr_array((X.data, X.indices.astype(index), X.indptr.astype(index)), shape=X.shape)


def _narrow(X: Any) -> Any:
    return csr(X)


def _wide_index(X: Any) -> Any:
    return csr(X, "int64")


def _float32(X: Any) -> Any:
    return csr(X, dtype="float32")


SPARSE = {"int32 indices": _narrow, "int64 indices": _wide_index, "float32": _float32}


def core_rows(X: Any) -> Any:
    """X as the compiled core takes it."""
    return [("csr", X.data, X.indices, X.indptr, X.shape[1])] if sp.issparse(X) else [("dense", X)]


def integers(rng: np.random.Generator, n_rows: int, n_columns: int, density: float = 1.0) -> Any:
    """Whole numbers 0 .. 100: every type of TYPES holds them exactly."""
    X = rng.integers(0, 101, size=(n_rows, n_columns)).astype(np.float64)
    return np.where(rng.random(X.shape) < density, X, 0.0)
