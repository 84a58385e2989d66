"""Intervals for the area under the ROC curve and for average precision.

DeLong, DeLong and Clarke-Pearson 1988, with m positives and k negatives: V_i is the share of negatives that positive i
beats, U_j the share of positives that beat negative j, equal scores count half. Both have the mean AUC, and

    var AUC = var V / m + var U / k,    variances with m - 1 and k - 1.

The sums behind it are exact integers from one sort; `RankedArea` makes an interval of them that covers with five rows
per class too. Perfect separation has variance 0 and says nothing by this formula. There min(m, k) pairs of distinct
rows are independent, and all of them are in the right order: Clopper-Pearson's bound for them holds for the AUC.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import special

from certifit.data.columns import Array
from certifit.evaluation.metrics.intervals import (
    HELD_OUT,
    Estimate,
    check_seed,
    clopper_pearson,
    effective_rows,
    interval_words,
)
from certifit.evaluation.metrics.rows import ScoredRows
from certifit.runtime import core, n_threads

Measure = Literal["auc", "average_precision"]
WEIGHTED = (
    "No interval: DeLong's is for rows without weights, and these carry weights. interval='bootstrap' takes weights."
)
TOO_FEW = "No interval: DeLong's needs two rows of each class at least. Got {} positive and {} negative."
FEWEST_RESAMPLED = 15
TOO_FEW_RESAMPLED = (
    "Too few rows for this interval: resampling needs {} of each class, and these are {:.4g} positive and {:.4g} "
    "negative. Without weights interval='delong' needs two."
)
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
        return sum(self._parts)

    @property
    def area(self) -> RankedArea:
        """What the interval of the AUC needs."""
        m, k = self.n_positives, self.n_negatives
        positives, negatives = self._parts
        freedom = satterthwaite(positives, m - 1, negatives, k - 1)
        complement = (2 * m * k - self.twice) / (2 * m * k)  # 1 - AUC without cancellation
        sizes = (1 / (m * k), (m + k - 2) / (2 * m * k), min(m, k))
        return RankedArea(self.auc, complement, positives + negatives, freedom, *sizes)

    @property
    def _parts(self) -> tuple[float, float]:
        """var V / m and var U / k."""
        m, k = self.n_positives, self.n_negatives
        return (
            (m * self.positive_squares - self.twice**2) / (4 * m**2 * k**2 * (m - 1)),
            (k * self.negative_squares - self.twice**2) / (4 * m**2 * k**2 * (k - 1)),
        )

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
    if sums.variance == 0:
        return Estimate(auc, level=level, sentence=CONSTANT)
    low, high = sums.area.interval(level)
    sentence = f"{interval_words(level, low, high)} (DeLong, score interval): approximate, {HELD_OUT}."
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
    """The value with an interval from the variance of its replicates."""
    least = math.ceil(2 / (1 - level))
    if not isinstance(n_resamples, int | np.integer) or n_resamples < least:
        raise ValueError(f"n_resamples must be a whole number >= {least} for level {level:g}. Got {n_resamples!r}.")
    check_seed(random_state)
    sizes = class_sizes(rows)
    if min(sizes) < FEWEST_RESAMPLED:
        return Estimate(value, level=level, sentence=TOO_FEW_RESAMPLED.format(FEWEST_RESAMPLED, *sizes))
    values, redrawn = replicates(rows, measure, int(n_resamples), random_state)
    variance = float(np.var(values, ddof=1))
    if not (variance > 0 and 0 < value < 1):
        return Estimate(value, level=level, sentence=f"No interval: {n_resamples} resamples all give {values[0]:g}.")
    low, high = RESAMPLED[measure](value, variance, sizes, level)
    again = f" {redrawn} resamples with one class only were drawn again." if redrawn else ""
    sentence = (
        f"{interval_words(level, low, high)} (bootstrap, {n_resamples} resamples): approximate, {HELD_OUT}; "
        f"its coverage is not guaranteed.{again}"
    )
    return Estimate(value, low, high, level=level, method="bootstrap", sentence=sentence)


def class_sizes(rows: ScoredRows) -> tuple[float, float]:
    """Rows of both classes; with weights as many of equal weight as are as informative."""
    positive = rows.labels.view(bool)
    weights = (None, None) if rows.weight is None else (rows.weight[positive], rows.weight[~positive])
    return effective_rows(rows.n_positives, weights[0]), effective_rows(rows.n_negatives, weights[1])


def _area_ends(value: float, variance: float, sizes: tuple[float, float], level: float) -> tuple[float, float]:
    m, k = sizes
    pairs = 1 / (m * k)
    rows = (m + k - 2) / 2 * pairs
    return RankedArea(value, 1 - value, variance, min(sizes) - 1, pairs, rows, min(sizes)).interval(level)


def _logit_ends(value: float, variance: float, sizes: tuple[float, float], level: float) -> tuple[float, float]:
    """Symmetric in log(value / (1 - value))."""
    half = student_quantile(level, min(sizes) - 1) * math.sqrt(variance) / (value * (1 - value))
    centre = special.logit(value)
    return float(special.expit(centre - half)), float(special.expit(centre + half))


RESAMPLED = {"auc": _area_ends, "average_precision": _logit_ends}


def replicates(rows: ScoredRows, measure: Measure, n_resamples: int, random_state: Any) -> tuple[Array, int]:
    """The measure of every resample, and how many were drawn again because they had one class only.

    Resample b draws the same rows for any scores, so the replicates of two scores are paired.
    """
    check_seed(random_state)
    values, redrawn = core.bootstrap_ranking(
        rows.scores, rows.labels, rows.weight, measure, n_resamples, int(random_state), n_threads()
    )
    return values, redrawn


def normal_quantile(level: float) -> float:
    """z with P(|Z| <= z) = level."""
    return float(special.ndtri((1 + level) / 2))


# ---- from the variance that areas usually have -----------------------------------------------------------------------
# With m positives and k negatives of exponential scores the variance of an area t is (Hanley and McNeil 1982, both
# classes treated alike, Newcombe 2006)
#
#     H(t) = t (1 - t) (1 + (m + k - 2) / 2 ((1 - t) / (2 - t) + t / (1 + t))) / (m k)
#
# The interval holds every t with (AUC - t)^2 <= q^2 f H(t): a score interval, whose variance moves with t, so it is
# not symmetric and stays inside (0, 1). f = DeLong's variance / H(AUC) sets the size; q is Student's quantile, with
# the degrees of freedom of DeLong's variance (Satterthwaite). Few rows, or an area near 0 or 1, often have an
# estimated variance that is far too small: there f is drawn towards 1 where it is below,
#
#     f + (max(f, 1) - f) 15 / (15 + 4 AUC (1 - AUC) min(m, k)),
#
# which fades as rows grow. 15 is chosen by simulation: `python -m benchmarks.coverage auc`.

FADE = 15.0
_HALVINGS = 200  # halvings of an interval of logarithms of odds: enough for float64


@dataclass(frozen=True)
class RankedArea:
    """An AUC strictly between 0 and 1, and what its interval needs.

    rest: 1 - AUC; variance: estimated; freedom: its degrees of freedom; H(t) = t (1 - t) (pairs + rows g(t)), g the
    bracket of the two fractions; fewest: rows of the smaller class.
    """

    auc: float
    rest: float
    variance: float
    freedom: float
    pairs: float
    rows: float
    fewest: float

    def interval(self, level: float) -> tuple[float, float]:
        """Both ends."""
        usual = self._usual_variance(self.auc, self.rest)
        ratio = self.variance / usual
        share = FADE / (FADE + 4 * self.auc * self.rest * self.fewest)
        size = ratio + (max(ratio, 1.0) - ratio) * share
        limit = student_quantile(level, self.freedom) ** 2 * size
        return self._end(limit, -1.0), self._end(limit, 1.0)

    def _usual_variance(self, area: float, complement: float) -> float:
        return area * complement * (self.pairs + self.rows * (complement / (1 + complement) + area / (1 + area)))

    def _end(self, limit: float, side: float) -> float:
        """The end on one side, by halving the logarithm of its odds."""
        inside, outside = math.log(self.auc) - math.log(self.rest), 745.0 * side
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            area, complement = float(special.expit(middle)), float(special.expit(-middle))
            # The smaller of both keeps its digits near 0 and 1.
            apart = area - self.auc if area < 0.5 else self.rest - complement
            if apart**2 <= limit * self._usual_variance(area, complement):
                inside = middle
            else:
                outside = middle
        return float(special.expit(inside))


def satterthwaite(first: float, first_freedom: float, second: float, second_freedom: float) -> float:
    """Degrees of freedom of the sum of two estimated variances."""
    total = first + second
    return total**2 / (first**2 / first_freedom + second**2 / second_freedom)


def student_quantile(level: float, freedom: float) -> float:
    """t with P(|T| <= t) = level, T of Student's law."""
    return float(-special.stdtrit(freedom, (1 - level) / 2))


def student_p_value(statistic: float, freedom: float) -> float:
    """P(|T| > |statistic|)."""
    return float(2 * special.stdtr(freedom, -abs(statistic)))
