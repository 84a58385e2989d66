"""How much the columns of a model repeat each other: variance inflation.

R is the matrix of correlations of the columns. The variance of a coefficient of least squares is VIF_j = (R^-1)_jj
times what it would be if column j were uncorrelated with the others; 1 - 1 / VIF_j is the share of the variance of
column j that the others explain. For k columns G that belong together (the levels of a category)

    GVIF = det(R_GG) det((R^-1)_GG),   VIF = GVIF^(1/k)

(Fox and Monette 1992), which does not depend on the reference level, and is the former for k = 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.statistics.gram import centred_gram

SINGULAR = 1e-12  # eigenvalues of R below this share of the largest: the columns determine each other


def correlations(source: Source) -> Array:
    """R of the columns of a source with a numeric target: one pass. NaN for a column that does not vary."""
    gram = centred_gram(source)
    d = gram.n_columns
    means = gram.sums[d, :d] / gram.sum_weight
    products = gram.sums[:d, :d] - np.outer(means, means) * gram.sum_weight
    spreads = np.where(gram.spreads(centred=True) > 0, np.sqrt(np.diagonal(products).clip(min=0.0)), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        R = products / np.outer(spreads, spreads)
    return np.asarray(np.clip(R, -1.0, 1.0))


def variance_inflation(R: Array, groups: Sequence[Sequence[int]]) -> list[float | None]:
    """VIF of every group of columns; None where one of its columns does not vary, or R has no inverse.

    >>> [round(vif, 3) for vif in variance_inflation(np.array([[1.0, 0.9], [0.9, 1.0]]), [[0], [1]])]
    [5.263, 5.263]
    """
    varies = np.flatnonzero(np.isfinite(np.diagonal(R)))
    place = {int(column): k for k, column in enumerate(varies)}
    kept = R[np.ix_(varies, varies)]
    eigenvalues = np.linalg.eigvalsh(kept) if len(kept) else np.ones(1)
    if eigenvalues[0] <= SINGULAR * eigenvalues[-1]:
        return [None] * len(groups)
    inverse = np.linalg.inv(kept)
    inflation: list[float | None] = []
    for group in groups:
        if not len(group) or any(column not in place for column in group):
            inflation.append(None)
            continue
        at = np.ix_(*[[place[column] for column in group]] * 2)
        log = np.linalg.slogdet(kept[at])[1] + np.linalg.slogdet(inverse[at])[1]
        inflation.append(float(np.exp(log / len(group))))
    return inflation
