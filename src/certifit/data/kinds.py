"""Kinds of columns that are no numbers and would become some in silence."""

from __future__ import annotations

from typing import Any

import numpy as np


def refuse_kinds(X: Any) -> None:
    """Refuse masks, dates and categories, which would become numbers in silence."""
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError(
            "X is a masked array, whose mask would be lost. Fill it (X.filled(...)) or drop the masked rows."
        )
    dtype = getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "mM":
        raise TypeError(
            f"X has dtype {dtype}: dates and durations are not numbers. Convert them, e.g. to days since a date."
        )
    for name, kind in _column_kinds(X):
        for word, advice in _REFUSED_KINDS.items():
            if word in kind:
                raise TypeError(f"Column {name!r} of X has dtype {kind}. {advice}")


_ENCODE = (
    "Give the model encoder=TableEncoder(), or encode it as numbers first (for example "
    "sklearn.preprocessing.OneHotEncoder)."
)
_DATE = "Give the model encoder=TableEncoder(), or convert it to numbers first, e.g. days since a date."
_REFUSED_KINDS = {
    "categor": _ENCODE,
    "dictionary": _ENCODE,
    "enum": _ENCODE,
    "string": _ENCODE,
    "utf8": _ENCODE,
    "date": _DATE,
    "time": _DATE,
    "duration": _DATE,
}


def _column_kinds(X: Any) -> list[tuple[str, str]]:
    """(name, lower-case dtype) of the columns of a pandas, polars or Arrow table; none for arrays."""
    schema = getattr(X, "schema", None)
    if schema is not None and hasattr(schema, "types"):  # pyarrow
        return [(name, str(kind).lower()) for name, kind in zip(schema.names, schema.types, strict=True)]
    dtypes = getattr(X, "dtypes", None)
    columns = getattr(X, "columns", None)
    if dtypes is None or columns is None:
        return []
    kinds = [str(kind).lower() for kind in dtypes]
    return [(str(name), "string" if kind == "str" else kind) for name, kind in zip(columns, kinds, strict=True)]
