"""The rows of a certificate as they are: float64 numbers of the mapped columns, in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Array
from certifit.data.source import Source


@dataclass(frozen=True)
class Asked:
    """What a certificate claims of a fit beyond its value.

    aside: columns that the fits it is compared with do not use. claims_exact_fit: the value is relative to the null
    model's objective. is_mended: a millionth of every column's variance was added to the variances of classes.
    is_still: the rows vary by no more than the rounding of their entries, and variances are 0 to that.
    """

    aside: frozenset[int] = frozenset()
    claims_exact_fit: bool = False
    is_mended: bool = False
    is_still: bool = False


PLAIN = Asked()


@dataclass(frozen=True)
class ExactRows:
    """Rows that have a weight: columns (an array or CSR), target or code of a class, weight and offset of every one."""

    X: Any
    y: Array
    weight: Array
    offset: Array
    names: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.weight)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.names)

    def dense(self) -> ExactRows:
        """The same rows with their columns as an array."""
        return replace(self, X=self.X.toarray()) if sp.issparse(self.X) else self

    def of_classes(self) -> ExactRows:
        """The rows whose target is a class."""
        known = self.y >= 0
        if known.all():
            return self
        return replace(self, X=self.X[known], y=self.y[known], weight=self.weight[known], offset=self.offset[known])


def rows_of(source: Source) -> ExactRows:
    """All rows of a source that have a weight, such as those of `mapped_again` of a fitted model."""
    block = source.gather()
    X = block.X.toarray() if hasattr(block.X, "toarray") and not sp.issparse(block.X) else block.X
    n_rows = block.n_rows
    y = np.zeros(n_rows) if block.y is None else np.asarray(block.y, dtype=np.float64)
    weight = np.ones(n_rows) if block.weight is None else np.asarray(block.weight, dtype=np.float64)
    offset = np.zeros(n_rows) if block.offset is None else np.asarray(block.offset, dtype=np.float64)
    kept = weight > 0
    X = sp.csr_array(X, dtype=np.float64) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    return ExactRows(X[kept], y[kept], weight[kept], offset[kept], tuple(source.names))
