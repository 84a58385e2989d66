"""Sums of Gaussian kernels in float32 and how far they can be off: `cpp/margin/gaussian_sums.hpp` has the argument."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from certifit.data.columns import Array
from certifit.mathematics.kernels.algebra import UNIT

SHORT_UNIT = 2.0**-24
MOST_SHARE = 0.01  # of a sum that may be lost in float32


def short_share(of_x: Array, of_z: float, n_columns: int, n_terms: int) -> Array | None:
    """What a Gaussian sum in float32 can lose of that of absolute values, for every x; None where it is far off.

    of_x, of_z: squares of prepared rows, and the largest of those that are summed over. n_columns: products that are
    added in float32 one after the other. n_terms: of the sum.
    """
    # Coordinates are rounded twice in float64 before: `Gaussian._shares`.
    exponent = 1.01 * (n_columns / 2 + 7) * SHORT_UNIT * (of_x + of_z)
    share = 1.01 * exponent + (16 + n_terms * UNIT / SHORT_UNIT) * SHORT_UNIT  # expm1(t) <= 1.01 t up to 0.01
    return share if share.max(initial=0.0) <= MOST_SHARE else None


def short_sums(v: Array, share: Array, sums: Callable[[Array, Array], Array]) -> tuple[Array, Array] | None:
    """Sums in float32 with coefficients v, and how far they can be off; None where v cannot be scaled.

    share: what a sum can lose of that of absolute values, so those of either sign are summed apart. sums(a flag per
    coefficient, c): those with the coefficients c >= 0 at the flags.
    """
    largest = float(np.abs(v).max(initial=0.0))
    if not 0 < largest < inf:
        return None
    power = float(np.ldexp(1.0, -int(np.frexp(largest)[1])))
    above, below = (sums(side, np.abs(v[side]) * power) / power for side in (v > 0, v < 0))
    # 1e-37: of coefficients and of values of the kernel that are too small for float32.
    return above - below, np.asarray(1.02 * share * (above + below) + 1e-37 * len(v) * largest)
