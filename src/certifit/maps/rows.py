"""What every map does with the rows and the names it is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from certifit.data.columns import Columns, refuse_kinds

Array = NDArray[np.float64]


def validated(estimator: Any, X: Any, *, reset: bool) -> Any:
    """The rows after scikit-learn's checks, names included; NaN is looked for later."""
    refuse_kinds(X)
    refuse_sparse(estimator, X)
    return validate_data(estimator, X, reset=reset, dtype=np.float64, ensure_all_finite=False)


def refuse_sparse(estimator: Any, X: Any) -> None:
    """Refuse a sparse matrix."""
    if issparse(X):
        kind = type(estimator).__name__
        raise TypeError(f"{kind} needs dense X. Got sparse X of shape {X.shape}. Use X.toarray().")


def finite_rows(estimator: Any, block: Any) -> Array:
    """The block as a dense, finite, read-only float64 array of the fitted width."""
    refuse_sparse(estimator, block)
    kind, width = type(estimator).__name__, estimator.n_features_in_
    if isinstance(block, Columns):
        block = block.toarray()
    rows: Array = np.asarray(block, dtype=np.float64).view()
    rows.flags.writeable = False
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ValueError(f"{kind} needs rows of {width} columns. Got shape {rows.shape}.")
    if bad := first_non_finite(rows):
        row, column, value = bad
        name = input_names(estimator, None)[column]
        raise ValueError(f"{kind} needs finite X. Row {row} of column {name!r} is {value}.")
    return rows


def first_non_finite(values: Array) -> tuple[int, int, str] | None:
    """Place and kind of the first NaN or infinity, or None."""
    finite = np.isfinite(values)
    if finite.all():
        return None
    row, column = np.argwhere(~finite)[0].tolist()
    return row, column, "NaN" if np.isnan(values[row, column]) else str(values[row, column])


def set_names(estimator: Any, names: Sequence[str] | None, n_features: int) -> None:
    """Remember the names of the input columns, or forget older ones."""
    if names is not None:
        estimator.feature_names_in_ = np.array(right_length(names, n_features), dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    estimator.n_features_in_ = n_features


def right_length(names: Sequence[str], n_features: int) -> list[str]:
    """The names, which must be one per column."""
    if len(names) != n_features:
        raise ValueError(
            f"input_features should have length equal to number of features ({n_features}), got {len(names)}."
        )
    return [str(name) for name in names]


def input_names(estimator: Any, names: Sequence[str] | None) -> list[str]:
    """Names of the input columns: given, remembered, or x0, x1, ..."""
    known = getattr(estimator, "feature_names_in_", None)
    if names is None:
        n_features: int = estimator.n_features_in_
        return [f"x{j}" for j in range(n_features)] if known is None else [str(name) for name in known]
    if known is not None and list(names) != list(known):
        raise ValueError(f"input_features is not equal to feature_names_in_. Got {list(names)}.")
    return right_length(names, estimator.n_features_in_)
