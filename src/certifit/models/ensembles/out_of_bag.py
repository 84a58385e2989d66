"""The error of a mean of models on rows that some of them did not draw, with its interval."""

from __future__ import annotations

import math

import numpy as np

from certifit.data.columns import Array

Z = 1.959963984540054  # of 95 %


def share_of_errors(is_wrong: Array, weight: Array) -> tuple[float, float, float]:
    """The share of the weight of wrong rows, and Wilson's 95 % interval for it."""
    n = float(weight.sum() / weight.max())
    share = float(weight @ is_wrong / weight.sum())
    middle, width = share + Z**2 / (2 * n), Z * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    return share, max((middle - width) / (1 + Z**2 / n), 0.0), min((middle + width) / (1 + Z**2 / n), 1.0)


def mean_of_squares(residuals: Array, weight: Array) -> tuple[float, float, float]:
    """The mean of squared residuals, and the normal 95 % interval for it."""
    n, shares = float(weight.sum() / weight.max()), weight / weight.sum()
    squares = np.square(residuals)
    mean = float(shares @ squares)
    half = Z * math.sqrt(float(shares @ np.square(squares - mean)) / n)
    return mean, max(mean - half, 0.0), mean + half
