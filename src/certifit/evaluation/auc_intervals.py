"""Intervals for the area under the ROC curve and for average precision.

DeLong, DeLong and Clarke-Pearson 1988, with m positives and k negatives: V_i is the share of negatives that positive i
beats, U_j the share of positives that beat negative j, equal scores count half. Both have the mean AUC, and

    var AUC = var V / m + var U / k,    variances with m - 1 and k - 1.

The sums behind it are exact integers from one sort. The interval is symmetric in log(AUC / (1 - AUC)), so it stays
inside (0, 1) and covers better near the ends. Perfect separation has variance 0 and says nothing by this formula. There
min(m, k) pairs of distinct rows are independent, and all of them are in the right order: Clopper-Pearson's bound for
them holds for the AUC.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import special

from certifit.data.columns import Array
from certifit.evaluation.intervals import HELD_OUT, Estimate, clopper_pearson, interval_words
from certifit.evaluation.scored_rows import ScoredRows
from certifit.runtime import core, n_threads

Measure = Literal["auc", "average_precision"]
WEIGHTED = (
    "No interval: DeLong's is for rows without weights, and these carry weights. interval='bootstrap' takes weights."
)
TOO_FEW = "No interval: DeLong's needs two rows of each class at least. Got {} positive and {} negative."
CONSTANT = "No interval: DeLong's variance is 0, for every row of a class has the same rank."


@dataclass(frozen=True)
class PlacementSums:
    """Exact sums over m positives and k negatives: t = 2 k V_i and 2 m U_j are integers.

    twice: sum of t, the same over both classes; positive_squares, negative_squares: sums of t^2.
    """

    n_negatives: int
    n_positives: int
    twice: int
    negative_squares: int
    positive_squares: int

    @classmethod
    def of(cls, rows: ScoredRows) -> PlacementSums:
        """One sort."""
        k, m, twice, negative, positive = core.placement_sums(rows.scores, rows.labels, n_threads())
        return cls(k, m, twice, (negative[0] << 64) + negative[1], (positive[0] << 64) + positive[1])

    @property
    def auc(self) -> float:
        """sum of t / (2 m k)."""
        return self.twice / (2 * self.n_positives * self.n_negatives)

    @property
    def variance(self) -> float:
        """DeLong's variance of the AUC; integers up to the one division of each part."""
        m, k = self.n_positives, self.n_negatives
        positives = (m * self.positive_squares - self.twice**2) / (4 * m**2 * k**2 * (m - 1))
        negatives = (k * self.negative_squares - self.twice**2) / (4 * m**2 * k**2 * (k - 1))
        return positives + negatives

    @property
    def is_separated(self) -> bool:
        """True when all positives score above all negatives, or all below."""
        return self.twice in (0, 2 * self.n_positives * self.n_negatives)


def delong(sums: PlacementSums, level: float) -> Estimate:
    """The AUC with DeLong's interval, or with the sentence that says why it has none."""
    m, k, auc = sums.n_positives, sums.n_negatives, sums.auc
    if sums.is_separated:
        return separated(auc, min(m, k), level)
    if min(m, k) < 2:
        return Estimate(auc, level=level, sentence=TOO_FEW.format(m, k))
    variance = sums.variance
    if variance == 0:
        return Estimate(auc, level=level, sentence=CONSTANT)
    other = (2 * m * k - sums.twice) / (2 * m * k)  # 1 - AUC without cancellation
    half = normal_quantile(level) * math.sqrt(variance) / (auc * other)
    centre = math.log(auc) - math.log(other)
    low, high = float(special.expit(centre - half)), float(special.expit(centre + half))
    sentence = f"{interval_words(level, low, high)} (DeLong, on the logit scale): approximate, {HELD_OUT}."
    return Estimate(auc, low, high, level=level, method="DeLong", sentence=sentence)


def separated(auc: float, pairs: int, level: float) -> Estimate:
    """AUC 1 or 0: what `pairs` independent pairs in the same order prove."""
    low, high = clopper_pearson(pairs if auc == 1 else 0, pairs, level)
    sentence = (
        "The scores separate the classes, so DeLong's variance is 0 and resamples do not differ. "
        f"{interval_words(level, low, high)} (Clopper-Pearson for {pairs} independent pairs): "
        f"this coverage or more, {HELD_OUT}."
    )
    return Estimate(auc, low, high, level=level, method="Clopper-Pearson of pairs", sentence=sentence)


def bootstrap(
    rows: ScoredRows, value: float, measure: Measure, level: float, n_resamples: int, random_state: int
) -> Estimate:
    """The value with the percentiles of its replicates."""
    least = math.ceil(2 / (1 - level))
    if not isinstance(n_resamples, int | np.integer) or n_resamples < least:
        raise ValueError(f"n_resamples must be a whole number >= {least} for level {level:g}. Got {n_resamples!r}.")
    values, redrawn = replicates(rows, measure, int(n_resamples), random_state)
    low, high = (float(end) for end in np.quantile(values, [(1 - level) / 2, (1 + level) / 2]))
    if low == high:
        return Estimate(value, level=level, sentence=f"No interval: {n_resamples} resamples all give {low:g}.")
    again = f" {redrawn} resamples with one class only were drawn again." if redrawn else ""
    sentence = (
        f"{interval_words(level, low, high)} (bootstrap, {n_resamples} resamples): approximate, {HELD_OUT}; "
        f"its coverage is not guaranteed.{again}"
    )
    return Estimate(value, low, high, level=level, method="bootstrap percentile", sentence=sentence)


def replicates(rows: ScoredRows, measure: Measure, n_resamples: int, random_state: Any) -> tuple[Array, int]:
    """The measure of every resample, and how many were drawn again because they had one class only.

    Resample b draws the same rows for any scores, so the replicates of two scores are paired.
    """
    if not isinstance(random_state, int | np.integer) or not 0 <= random_state < 2**64:
        raise ValueError(f"random_state must be a whole number from 0 to 2^64 - 1. Got {random_state!r}.")
    values, redrawn = core.bootstrap_ranking(
        rows.scores, rows.labels, rows.weight, measure, n_resamples, int(random_state), n_threads()
    )
    return values, redrawn


def normal_quantile(level: float) -> float:
    """z with P(|Z| <= z) = level."""
    return float(special.ndtri((1 + level) / 2))
