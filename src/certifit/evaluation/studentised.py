"""Studentised bootstrap of a mean, or of a ratio of two means, on the logarithmic scale.

    A = sum w a / sum w,   B = sum w b / sum w (1 where there is no b),   L = log(A / B)
    s^2 = n / (n - 1) sum_i (w_i (a_i / A - b_i / B) / sum w)^2,   the variance of L to first order

A mean squared error is A; R^2 is 1 - A / B with a the squared error and b the square about the mean of y. With L* and
s* of rows drawn with repetition, t* = (L* - L) / s*, and the interval of L goes from L - c s t_high to L - c s t_low,
the quantiles of t*; c^2 = n / (n - 1), for drawn rows spread about the mean of n rows and not about the truth. It
covers far better than quantiles of A* where errors are skew and rows few: `python -m benchmarks.coverage errors`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.evaluation.intervals import check_resamples, drawn_rows, generator

FEWEST = 15  # rows; with fewer the interval of a mean squared error covers less than 93 % where 95 % is meant
TOO_FEW = (
    "Too few rows for this interval: it needs {}, and these are {:.4g}{}. Hold out more rows, or judge the errors one "
    "by one."
)
NO_ERROR = "No interval: every error is 0."
NO_SPREAD = "No interval: every row has the same error."
ONE_SIDED = "No interval: too many resamples have no error at all."

# (columns, weight) -> a, b of every row; b None: 1
Parts = Callable[[tuple[Array, ...], Array | None], tuple[Array, Array | None]]


@dataclass(frozen=True)
class Factors:
    """What A / B is multiplied by at both ends of its interval; reason: why there is none."""

    low: float = math.nan
    high: float = math.nan
    left_out: int = 0
    reason: str = ""


def effective_rows(n_rows: int, weight: Array | None) -> float:
    """n, or (sum w)^2 / sum w^2: how many rows of equal weight are as informative."""
    if weight is None:
        return float(n_rows)
    share = weight / weight.max()
    return float(share.sum() ** 2 / (share**2).sum())


def studentised(
    parts: Parts, columns: tuple[Array, ...], weight: Array | None, n_resamples: int, level: float, random_state: int
) -> Factors:
    """The interval of A / B, relative to it."""
    check_resamples(n_resamples)
    n_rows = len(columns[0])
    counted = effective_rows(n_rows, weight)
    if counted < FEWEST:
        worth = "" if weight is None else " by their weights"
        return Factors(reason=TOO_FEW.format(FEWEST, counted, worth))
    value, spread = _log_ratio(parts, columns, weight)
    if not math.isfinite(value) or not spread > 0:
        return Factors(reason=NO_SPREAD if math.isfinite(value) else NO_ERROR)
    drawn = np.array([
        _log_ratio(parts, *_drawn(columns, weight, generator(random_state, b))) for b in range(n_resamples)
    ])  # fmt: skip
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (drawn[:, 0] - value) / drawn[:, 1]
    t = t[~np.isnan(t)]
    tail = (1 - level) / 2
    wide = math.sqrt(counted / (counted - 1)) * spread
    # Whole places: t may be infinite, and between infinities there is nothing to interpolate.
    high = -wide * np.quantile(t, tail, method="lower") if len(t) else math.inf
    low = -wide * np.quantile(t, 1 - tail, method="higher") if len(t) else -math.inf
    if not (math.isfinite(low) and math.isfinite(high) and low < high < 700):
        return Factors(reason=ONE_SIDED)
    return Factors(math.exp(low), math.exp(high), n_resamples - len(t))


def _drawn(
    columns: tuple[Array, ...], weight: Array | None, rng: np.random.Generator
) -> tuple[tuple[Array, ...], Array | None]:
    rows = drawn_rows(len(columns[0]), rng)
    return tuple(values[rows] for values in columns), None if weight is None else weight[rows]


def _log_ratio(parts: Parts, columns: tuple[Array, ...], weight: Array | None) -> tuple[float, float]:
    """L and s; nan where a mean is 0 or undefined, -inf and nan without an error."""
    n_rows = len(columns[0])
    if weight is not None and not weight.any():
        return math.nan, math.nan
    shares = np.full(n_rows, 1.0 / n_rows) if weight is None else weight / weight.sum()
    a, b = parts(columns, weight)
    top, bottom = float(shares @ a), 1.0 if b is None else float(shares @ b)
    if not (top > 0 and bottom > 0):
        return -math.inf if top == 0 and bottom > 0 else math.nan, math.nan
    effects = shares * (a / top - (1.0 if b is None else b / bottom))
    spread = math.sqrt(n_rows / (n_rows - 1) * float(effects @ effects))
    return math.log(top) - math.log(bottom), spread
