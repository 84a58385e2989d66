"""How much a column alone tells about the class: the share of the uncertainty about it that the column removes.

    share = I(x; y) / H(y),   H(y) = - sum_k p_k log p_k

Of a category or a flag I is that of the counts, less what chance gives: (levels - 1) (classes - 1) / (2 n) nats. Of a
number it is that of x Gaussian within each class, with its class means and variances:

    I = sum_k p_k E_k[ log N_k(x) - log sum_l p_l N_l(x) ]
"""

import numpy as np

from certifit.data.columns import Array
from certifit.statistics.cell_sums import CellMoments

N_NODES = 40
MOST_CLASSES = 100
# A class in which a number does not vary is given this share of its spread over all rows.
_NARROW = 1e-6
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(N_NODES)


def information(places: list[int], is_category: bool, moments: CellMoments) -> float | None:
    """Of a category with these 0/1 columns (and a reference without one), or the largest of these numbers."""
    shares, n_rows = moments.weights / moments.weights.sum(), float(moments.n_rows.sum())
    entropy = _entropy(shares)
    if not places or not entropy > 0 or len(shares) > MOST_CLASSES:
        return None
    if is_category:
        found = _of_levels(moments.means[:, places], shares, n_rows)
    else:
        found = max(_of_column(moments.means[:, j], moments.variances[:, j], shares, n_rows) for j in places)
    return min(max(found / entropy, 0.0), 1.0)


def _of_column(means: Array, variances: Array, shares: Array, n_rows: float) -> float:
    if are_flags(means, variances):
        return _of_levels(means[:, None], shares, n_rows)
    centre = float(shares @ means)
    total = float(shares @ (variances + (means - centre) ** 2))
    if not (total > 0 and np.isfinite(total)):
        return 0.0
    return _of_gaussians((means - centre) / np.sqrt(total), variances / total, shares) - (len(shares) - 1) / n_rows


def are_flags(means: Array, variances: Array) -> bool:
    """Whether only 0 and 1 have such moments, class by class: the variance of a flag is m (1 - m)."""
    is_share = (means >= 0) & (means <= 1)
    return bool((is_share & (np.abs(variances - means * (1 - means)) <= 1e-9)).all())


def _of_levels(means: Array, shares: Array, n_rows: float) -> float:
    """From the share of every level (columns, and the rest) within each class (rows)."""
    within = np.column_stack([means, np.clip(1 - means.sum(axis=1), 0.0, None)])
    joint = within * shares[:, None]
    used = joint.sum(axis=0) > 1e-12
    joint = joint[:, used]
    free = (int(used.sum()) - 1) * (len(shares) - 1)
    return _entropy(shares) + _entropy(joint.sum(axis=0)) - _entropy(joint.ravel()) - free / (2 * n_rows)


def _of_gaussians(means: Array, variances: Array, shares: Array) -> float:
    """By Gauss-Hermite quadrature over every class."""
    sd = np.sqrt(np.maximum(variances, _NARROW**2))
    x = means[:, None] + sd[:, None] * _NODES  # classes x nodes
    z = (x[:, :, None] - means) / sd
    log_density = -0.5 * z * z - np.log(sd)  # classes x nodes x classes
    with np.errstate(divide="ignore"):
        weighted = log_density + np.log(shares)
    top = weighted.max(axis=2)
    mixture = top + np.log(np.exp(weighted - top[:, :, None]).sum(axis=2))
    own = np.take_along_axis(log_density, np.arange(len(means))[:, None, None], axis=2)[:, :, 0]
    return float(shares @ ((own - mixture) @ (_WEIGHTS / _WEIGHTS.sum())))


def _entropy(shares: Array) -> float:
    used = shares[shares > 0]
    return float(-(used * np.log(used)).sum())
