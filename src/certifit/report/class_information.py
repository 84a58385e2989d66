"""How much a column alone tells about the class: the share of the uncertainty about it that the column removes.

    share = I(x; y) / H(y),   H(y) = - sum_k p_k log p_k

I is that of the counts by level and class, less what chance gives: (levels - 1) (classes - 1) / (2 n) nats. A number is
cut into levels of about equally many rows, of about equally many distinct values, and between the means of the classes,
on a sample of the rows: a cut can only lose information.
"""

import numpy as np

from certifit.data.columns import Array

N_CUTS = 16
MOST_CLASSES = 100


def of_levels(within: Array, weights: Array, n_rows: float) -> float | None:
    """Of a category, from the share of every level but one (columns) within each class (rows)."""
    within = np.column_stack([within, np.clip(1 - within.sum(axis=1), 0.0, None)])
    return _share(within * weights[:, None], n_rows)


def of_numbers(x: Array, codes: Array, weight: Array | None, n_classes: int) -> float | None:
    """Of a number, from some rows."""
    distinct = np.unique(x)
    levels = np.arange(1, N_CUTS) / N_CUTS
    cuts = np.unique(
        np.concatenate([*(np.quantile(values, levels, method="lower") for values in (x, distinct)), _between(x, codes)])
    )
    place = np.searchsorted(cuts, x)  # a cut belongs to the level below it
    n_levels = len(cuts) + 1
    counts = np.bincount(codes * n_levels + place, weight, minlength=n_classes * n_levels)
    return _share(counts.reshape(n_classes, n_levels).astype(np.float64), len(x))


def _between(x: Array, codes: Array) -> Array:
    """Halfway from each mean of a class to the next."""
    count = np.bincount(codes)
    means = np.sort(np.bincount(codes, x)[count > 0] / count[count > 0])
    return np.asarray(means[1:] / 2 + means[:-1] / 2)


def are_flags(means: Array, variances: Array) -> bool:
    """Whether only 0 and 1 have such moments, class by class: the variance of a flag is m (1 - m)."""
    is_share = (means >= 0) & (means <= 1)
    return bool((is_share & (np.abs(variances - means * (1 - means)) <= 1e-9)).all())


def _share(counts: Array, n_rows: float) -> float | None:
    """I / H of counts, classes x levels; None where there is nothing to know."""
    joint = counts[:, counts.sum(axis=0) > 0] / counts.sum()
    classes, levels = joint.sum(axis=1), joint.sum(axis=0)
    entropy = _entropy(classes)
    if not entropy > 0 or len(classes) > MOST_CLASSES:
        return None
    chance = (len(levels) - 1) * (int((classes > 0).sum()) - 1) / (2 * n_rows)
    information = entropy + _entropy(levels) - _entropy(joint.ravel()) - chance
    return min(max(information / entropy, 0.0), 1.0)


def _entropy(shares: Array) -> float:
    used = shares[shares > 0]
    return float(-(used * np.log(used)).sum())
