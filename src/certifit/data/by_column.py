"""Sparse matrices that are given by columns: a solver that reads columns takes them as they are."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Array

_ENTRIES = frozenset({"data", "indices", "indptr"})


class RowsByColumn(sp.csr_array):
    """The rows of `by_column`, CSC in canonical form: CSR whose entries are made when they are first asked for."""

    by_column: sp.csc_array

    @classmethod
    def of(cls, by_column: sp.csc_array) -> RowsByColumn:
        """The same matrix by rows."""
        rows = cls(by_column.shape, dtype=by_column.dtype)
        for name in _ENTRIES:
            delattr(rows, name)
        rows.by_column = by_column
        return rows

    def __getattr__(self, name: str) -> Array:
        if name not in _ENTRIES or "by_column" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        rows = self.by_column.tocsr()
        self.data, self.indices, self.indptr = rows.data, rows.indices, rows.indptr
        made: Array = vars(self)[name]
        return made

    @property
    def dtype(self) -> np.dtype[np.float64]:
        """That of the entries."""
        entries: Array = self.data if self.has_rows else self.by_column.data
        kind: np.dtype[np.float64] = entries.dtype
        return kind

    @property
    def has_rows(self) -> bool:
        """Whether the entries have been made."""
        return "data" in vars(self)


def csc(X: sp.csc_array) -> tuple[object, ...]:
    """Sparse columns as the compiled core takes them."""
    return "csc", X.data, X.indices, X.indptr, X.shape[0]
