"""Which columns are combinations of others, in integers: float64 numbers are integers times powers of two."""

from __future__ import annotations

import numpy as np

from certifit.data.columns import Array


def independent_columns(X: Array) -> list[int]:
    """The first columns that no combination of columns before them gives, exactly: Bareiss's elimination."""
    columns = [_integers(column) for column in np.asarray(X, dtype=np.float64).T]
    chosen: list[int] = []
    last = 1
    for j in range(len(columns)):
        row = next((i for i, entry in enumerate(columns[j]) if entry), None)
        if row is None:
            continue
        chosen.append(j)
        own, pivot = columns[j], columns[j][row]
        for k in range(j + 1, len(columns)):
            factor, other = columns[k][row], columns[k]
            columns[k] = [(entry * pivot - factor * mine) // last for entry, mine in zip(other, own, strict=True)]
        last = pivot
    return chosen


def _integers(column: Array) -> list[int]:
    """A column times a power of two: integers without a common factor of two."""
    ratios = [float(entry).as_integer_ratio() for entry in column]
    denominator = max((below for _, below in ratios), default=1)
    whole = [above * (denominator // below) for above, below in ratios]
    shared = min(((entry & -entry).bit_length() - 1 for entry in whole if entry), default=0)
    return [entry >> shared for entry in whole]
