"""Are columns independent given the class, as naive Bayes assumes? A test of every pair.

    few levels    G = 2 sum O log(O / E) within every class, E from the class's margins; chi-squared, its degrees summed
    numbers       r of the residuals from the class means; t = r sqrt(m / (1 - r^2)), m = rows - classes - 1

The p-value of all pairs together is the smallest one times their number (Bonferroni): valid however pairs depend.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import special

from certifit.data.columns import Array

MOST_LEVELS = 10  # a column of whole numbers with more is tested as numbers
MOST_COLUMNS = 2000


@dataclass(frozen=True)
class Pair:
    """Two columns, the size of their dependence given the class, and its p-value.

    strength : the correlation given the class; of levels, sqrt(G / rows)
    """

    first: str
    second: str
    strength: float
    p_value: float


@dataclass(frozen=True)
class ConditionalIndependence:
    """p-value of "all columns are independent given the class", and the pairs, the most dependent first."""

    p_value: float
    pairs: list[Pair]
    n_rows: int

    def __str__(self) -> str:
        worst = self.pairs[0]
        refuted = "refuted" if self.p_value < 0.05 else "not refuted"
        count = "1 pair" if len(self.pairs) == 1 else f"{len(self.pairs)} pairs"
        return (
            f"Independence given the class is {refuted} on {self.n_rows} rows: p = {self.p_value:.3g} over "
            f"{count}. Most dependent: {worst.first} and {worst.second} ({worst.strength:.2f})."
        )


def conditional_independence(X: Any, y: Any) -> ConditionalIndependence:
    """Test the assumption of naive Bayes on rows X with classes y.

    Naive Bayes may still classify well where it is refuted: the order of the posteriors can be right though they are
    too sure. The test says whether the probabilities can be trusted.

    >>> import numpy as np
    >>> import certifit as cf
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 400)
    >>> X = y[:, None] + rng.normal(size=(400, 2))
    >>> print(cf.conditional_independence(X, y))  # doctest: +ELLIPSIS
    Independence given the class is not refuted on 400 rows: p = ...
    >>> cf.conditional_independence(np.column_stack([X, X[:, 0] + X[:, 1]]), y).p_value < 1e-6
    True
    """
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    if rows.ndim != 2 or not 2 <= rows.shape[1] <= MOST_COLUMNS:
        raise ValueError(f"X must be rows of 2 to {MOST_COLUMNS} columns. Got the shape {rows.shape}.")
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        raise ValueError(f"X must be finite numbers. Row {bad[0, 0]}, column {bad[0, 1]} is {rows[tuple(bad[0])]}.")
    codes = np.unique(np.asarray(y), return_inverse=True)[1]
    if len(codes) != len(rows):
        raise ValueError(f"y must have a label per row: {len(rows)}. Got {len(codes)}.")
    names = names or [f"x{j}" for j in range(rows.shape[1])]
    levels = [_levels(column) for column in rows.T]
    residuals = _residuals(rows, codes)
    pairs = []
    for i, j in combinations(range(rows.shape[1]), 2):
        if levels[i] is None or levels[j] is None:
            test = _correlation(residuals[:, i], residuals[:, j], codes)
        else:
            test = _g_test(levels[i], levels[j], codes)
        pairs.append(Pair(names[i], names[j], *test))
    pairs.sort(key=lambda pair: (pair.p_value, -abs(pair.strength)))
    return ConditionalIndependence(min(1.0, pairs[0].p_value * len(pairs)), pairs, len(rows))


def _levels(column: Array) -> Array | None:
    values, codes = np.unique(column, return_inverse=True)
    return codes if len(values) <= MOST_LEVELS and (values == np.round(values)).all() else None


def _residuals(rows: Array, codes: Array) -> Array:
    means = np.stack([rows[codes == k].mean(axis=0) for k in range(codes.max() + 1)])
    return np.asarray(rows - means[codes])


def _correlation(a: Array, b: Array, codes: Array) -> tuple[float, float]:
    size = np.sqrt((a @ a) * (b @ b))
    freedom = len(a) - codes.max() - 2
    if size == 0 or freedom < 1:
        return 0.0, 1.0
    r = float(np.clip(a @ b / size, -1.0, 1.0))
    t = abs(r) * np.sqrt(freedom / max(1 - r * r, 1e-300))
    return r, float(2 * special.stdtr(freedom, -t))


def _g_test(a: Any, b: Any, codes: Array) -> tuple[float, float]:
    g, freedom = 0.0, 0
    for k in range(codes.max() + 1):
        table = np.zeros((a.max() + 1, b.max() + 1))
        np.add.at(table, (a[codes == k], b[codes == k]), 1.0)
        table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / max(table.sum(), 1.0)
        g += 2 * float(special.xlogy(table, table / expected).sum())
        freedom += max(table.shape[0] - 1, 0) * max(table.shape[1] - 1, 0)
    g = max(g, 0.0)
    return float(np.sqrt(g / len(codes))), float(special.chdtrc(freedom, g)) if freedom else 1.0
