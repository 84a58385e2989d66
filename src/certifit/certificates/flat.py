"""Directions along which an objective does not curve, and those along which nothing changes at all.

A certificate may leave out a direction without curvature only if it changes no score and no penalty. Penalties too weak
to be seen in the Hessian are left out of the objective first: they are >= 0, so the minimum is not below that of the
rest, and what they cost at the state is added to the excess.
"""

from __future__ import annotations

import numpy as np

from certifit.certificates.least_squares import relative_relations
from certifit.data.columns import Array
from certifit.tasks.least_squares import LeastSquares

WEAK = 1e-10  # of the curvature of a column
NONE = 1e-9  # of a relation: the column takes no part


def is_weak(l2: Array, curvature: Array) -> Array:
    """Which strengths are > 0 and do not settle what the columns leave open."""
    return np.asarray((l2 > 0) & (l2 <= WEAK * curvature))


def n_still(columns: LeastSquares, firm: Array) -> int:
    """Directions that change no score and no penalty: relations of the columns, without those that firm ones settle."""
    factor = columns.factor
    if not len(factor.dependent) or not firm.any():
        return len(factor.dependent)
    first = int(columns.fit_intercept)
    still = np.zeros((len(factor.dependent), len(firm) + first))
    if len(factor.kept):
        still[:, factor.kept] = -relative_relations(columns)
    still[np.arange(len(still)), factor.dependent] = 1.0
    still[np.abs(still) <= NONE] = 0.0
    return len(still) - int(np.linalg.matrix_rank(still[:, first:][:, firm]))
