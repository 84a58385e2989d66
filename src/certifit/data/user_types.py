"""Types of what users pass to fit, predict and certify, and of what they get back.

NumPy, SciPy, pandas, polars and Arrow share no base class. `ArrayLike` is NumPy's name for numbers, nested lists of
them and every object with `__array__`: arrays, series and frames of all these libraries. `data/user_input.py`
checks at run time what a type cannot express: shapes, dates, masks, missing values. `taken` picks rows of any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, Protocol, TypeAlias

import scipy.sparse as sp
from numpy.typing import ArrayLike

from certifit.data.columns import Array
from certifit.data.source import Source


class SparseRows(Protocol):
    """A sparse matrix or array of SciPy, in any format."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def tocsr(self) -> SparseRows:
        """The same entries in compressed rows."""


UserRows: TypeAlias = Source | SparseRows | ArrayLike
"""X: a scan, or rows in memory (array, nested lists, frame, Arrow table, sparse matrix)."""

UserTarget: TypeAlias = ArrayLike | None
"""y: a number or a label per row; None where X is a scan, which has its target, and where a model needs none."""

UserWeights: TypeAlias = ArrayLike | None
"""sample_weight, offset, exposure: a number per row; None is 1, 0 and 1, or what a scan has."""

UserLabels: TypeAlias = ArrayLike | None
"""classes of partial_fit: all labels that there will be; None where an earlier call named them."""

OutPath: TypeAlias = str | PathLike[str] | None
"""out: the .parquet or .csv file that predictions are written to; None returns them."""

Predictions: TypeAlias = Array | Any
"""An array of one row per row of X; None where `out` was given. A caller that gave no `out` need not test for None."""

Parameters: TypeAlias = Mapping[str, Any]
"""Parameters of an estimator by name, as `set_params` takes them: of any type, checked by the table of models."""


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
