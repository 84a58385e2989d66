"""How well scores rank two classes: ROC curve and its area, precision-recall curve and average precision.

    AUC = P(score of a positive > score of a negative) + P(equal) / 2

All come from one sort of the scores in the compiled core. Without weights the counts are exact integers. They need all
scores at once: ranks of blocks cannot be merged, so collect the scores of files or workers first (8 bytes per row).
The sort takes 10 bytes per row beside them (18 with weights), and up to twice that where most rows share one score.

AUC and ROC curve of scores that come from several models, one for each fold of rows.

Scores of two models are not on one scale: a model whose training rows hold fewer positives gives lower scores, and on
noise the AUC of all scores together comes out below 0.5 (with leave-one-out at 0). So only pairs of one fold count:

    AUC = sum_f (pairs of fold f in the right order) / sum_f m_f k_f = sum_f w_f AUC_f,   w_f = m_f k_f / sum m k

for m_f positives and k_f negatives. Folds with rows of one class have no pair; they are left out and counted. It
estimates the mean AUC of the fold models, weighted in the same way. With V, U the shares of `auc_intervals` within
folds, about the AUC of all folds,

    var AUC = 1.7 sum_f w_f^2 (s_V^2 / m_f + s_U^2 / k_f),   s_V^2 = sum (V - AUC)^2 / (M - 1), and so for U

over the M positives of all folds. 1.7, because fold models share training rows: it is empirical. Without it 0.95
intervals covered 0.84 to 0.95 for discriminant analysis, naive Bayes, logistic and ridge regression, trees and
neighbours, classes of 5 % to 50 % and 3 to 10 folds; `python -m benchmarks.coverage folds` measures what they do with
it. The interval is that of `ranked_area`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from certifit.data.columns import Array
from certifit.evaluation.metrics.auc_intervals import (
    CONSTANT,
    TOO_FEW,
    WEIGHTED,
    PlacementSums,
    RankedArea,
    bootstrap,
    delong,
    satterthwaite,
    separated,
    student_p_value,
    student_quantile,
)
from certifit.evaluation.metrics.intervals import HELD_OUT, Estimate, check_level, interval_words
from certifit.evaluation.metrics.rows import (
    ScoredRows,
    check_lengths,
    column,
    each_fold,
    plain_one,
    score_column,
    scored_rows,
)
from certifit.runtime import core, n_threads

SHARED_ROWS = 1.7  # how much larger the variance is because fold models share training rows; by simulation
OUT_OF_FOLD = (
    "approximate: every row was predicted by a model that did not see it, but these models share training rows"
)
NO_PAIR = (
    "No value: no fold holds rows of both classes, so there is no pair of one model to rank{}. "
    "Use fewer, larger folds that keep the shares of the classes, such as cv=10."
)
LEAVE_ONE_OUT = "; leave-one-out has one row in every fold"
WEIGHTED_FOLDS = "No interval: the rows carry weights."


@dataclass(frozen=True)
class FoldPairs:
    """The pairs of all folds: sums that the AUC and its interval are made of.

    right, pairs: weight of pairs in the right order (equal scores half) and of all; n_left_out: folds without a pair;
    sizes: (m, k) of the other folds; squares: sums of V^2 and U^2, and of V and U, over rows; is_weighted.
    """

    right: float
    pairs: float
    n_left_out: int
    sizes: Array
    squares: tuple[float, float]
    sums: tuple[float, float]
    is_weighted: bool

    @property
    def auc(self) -> float:
        """Share of the pairs in the right order."""
        return self.right / self.pairs

    @property
    def area(self) -> RankedArea:
        """What the interval needs."""
        m, k = self.sizes.T.astype(np.float64)
        share = m * k / (m * k).sum()
        auc, totals = self.auc, (float(m.sum()), float(k.sum()))
        # sum (V - AUC)^2 = sum V^2 - 2 AUC sum V + M AUC^2
        spread = [
            max(square - 2 * auc * total + n * auc**2, 0.0) / (n - 1)
            for square, total, n in zip(self.squares, self.sums, totals, strict=True)
        ]
        parts = [SHARED_ROWS * s * float((share**2 / n).sum()) for s, n in zip(spread, (m, k), strict=True)]
        freedom = satterthwaite(parts[0], totals[0] - 1, parts[1], totals[1] - 1) if sum(parts) > 0 else math.nan
        pairs = SHARED_ROWS * float((share**2 / (m * k)).sum())
        rows = SHARED_ROWS * float((share**2 * (m + k - 2) / (2 * m * k)).sum())
        complement = (self.pairs - self.right) / self.pairs
        return RankedArea(auc, complement, sum(parts), freedom, pairs, rows, min(totals))


def fold_pairs(rows: ScoredRows, folds: Any) -> FoldPairs:
    """One sort for each fold; folds: a label for every row."""
    right = pairs = 0.0
    n_left_out, sizes = 0, []
    squares, sums = np.zeros(2), np.zeros(2)
    for _, part in each_fold(rows, folds):
        m, k = part.n_positives, part.n_negatives
        if m == 0 or k == 0:
            n_left_out += 1
            continue
        sizes.append((m, k))
        if part.weight is not None:
            pair_weight = float(part.weight[part.labels == 1].sum()) * float(part.weight[part.labels == 0].sum())
            right += pair_weight * float(core.weighted_auc(part.scores, part.labels, part.weight, n_threads()))
            pairs += pair_weight
            continue
        placements = PlacementSums.of(part)
        right, pairs = right + placements.twice / 2, pairs + m * k
        squares += placements.positive_squares / (4 * k**2), placements.negative_squares / (4 * m**2)
        sums += placements.twice / (2 * k), placements.twice / (2 * m)
    table = np.array(sizes, dtype=np.int64).reshape(-1, 2)
    both = (float(squares[0]), float(squares[1])), (float(sums[0]), float(sums[1]))
    return FoldPairs(right, pairs, n_left_out, table, *both, rows.weight is not None)


def fold_auc(rows: ScoredRows, folds: Any, level: float) -> Estimate:
    """The AUC of pairs of one fold, with its interval or the sentence that says why there is none."""
    pairs = fold_pairs(rows, folds)
    if pairs.pairs == 0:
        alone = LEAVE_ONE_OUT if pairs.n_left_out == len(rows.labels) else ""
        return Estimate(math.nan, level=level, sentence=NO_PAIR.format(alone))
    left_out = f" {pairs.n_left_out} folds with rows of one class are left out." if pairs.n_left_out else ""
    return _with_interval(pairs, level, left_out)


def _with_interval(pairs: FoldPairs, level: float, left_out: str) -> Estimate:
    if pairs.is_weighted:
        return Estimate(pairs.auc, level=level, sentence=WEIGHTED_FOLDS + left_out)
    m, k = (int(total) for total in pairs.sizes.sum(axis=0))
    if pairs.right in (0.0, pairs.pairs):
        perfect = separated(pairs.auc, int(pairs.sizes.min(axis=1).sum()), level)
        return Estimate(
            pairs.auc,
            perfect.low,
            perfect.high,
            level=level,
            method=perfect.method,
            sentence=perfect.sentence + left_out,
        )
    if min(m, k) < 2:
        return Estimate(pairs.auc, level=level, sentence=TOO_FEW.format(m, k) + left_out)
    area = pairs.area
    if area.variance == 0:
        return Estimate(pairs.auc, level=level, sentence=CONSTANT + left_out)
    low, high = area.interval(level)
    sentence = f"{interval_words(level, low, high)} (DeLong, pairs within folds): {OUT_OF_FOLD}.{left_out}"
    return Estimate(pairs.auc, low, high, level=level, method="DeLong within folds", sentence=sentence)


def fold_effects(rows: ScoredRows, folds: Any, pairs: FoldPairs) -> Array:
    """How much every row moves the AUC: (V - AUC) k_f / pairs for a positive, (U - AUC) m_f / pairs for a negative."""
    effects = np.zeros(len(rows.labels))
    for places, part in each_fold(rows, folds):
        m, k = part.n_positives, part.n_negatives
        if m > 0 and k > 0:
            share = core.placements(part.scores, part.labels, n_threads())
            effects[places] = (share - pairs.auc) * np.where(part.labels == 1, k, m) / pairs.pairs
    return effects


def fold_roc(rows: ScoredRows, folds: Any) -> tuple[Array, Array]:
    """The mean of the folds' ROC curves, weighted by their pairs: tpr(x) = sum_f w_f tpr_f(x) at every fpr x.

    Its area is the AUC of pairs of one fold. It has no thresholds: each model has its own.
    """
    places, steps, slopes = [], [], []
    total = 0.0
    for _, part in each_fold(rows, folds):
        if part.n_positives == 0 or part.n_negatives == 0:
            continue
        _, positives, negatives = core.score_groups(part.scores, part.labels, part.weight, n_threads())
        pair_weight = float(positives.sum()) * float(negatives.sum())
        total += pair_weight
        x = np.concatenate([[0.0], np.cumsum(negatives) / negatives.sum()])
        x[x > 1 - 1e-12] = 1.0  # but for rounding
        rise, run = pair_weight * positives / positives.sum(), negatives / negatives.sum()
        is_step = run == 0
        slope = np.where(is_step, 0.0, rise / np.where(is_step, 1.0, run))
        places += [x[:-1], x[1:]]
        steps += [np.where(is_step, rise, 0.0), np.zeros(len(rise))]
        slopes += [slope, -slope]
    if total == 0:
        raise ValueError(NO_PAIR.format(""))
    return _summed(np.concatenate(places), np.concatenate(steps) / total, np.concatenate(slopes) / total)


def _summed(places: Array, steps: Array, slopes: Array) -> tuple[Array, Array]:
    """The curve that rises by `steps` at places and has slopes that change there: two points a place."""
    x, inverse = np.unique(np.minimum(places, 1.0), return_inverse=True)
    jump, bend = np.bincount(inverse.ravel(), steps), np.cumsum(np.bincount(inverse.ravel(), slopes))
    climbed = np.concatenate([[0.0], np.cumsum(bend[:-1] * np.diff(x))])
    after = np.cumsum(jump) + climbed
    y = np.column_stack([after - jump, after]).ravel()
    y = np.clip(np.maximum.accumulate(y), 0.0, 1.0)
    keep = np.column_stack([np.ones(len(x), dtype=bool), jump > 0]).ravel()
    x, y = np.repeat(x, 2)[keep], y[keep]
    y[-1] = 1.0  # but for rounding
    return x, y


NOT_ASKED = "No interval was asked for."


class RocCurve(NamedTuple):
    """Points of a ROC curve: rows with score >= thresholds[i] are called positive. Unpacks as fpr, tpr, thresholds."""

    fpr: Array
    tpr: Array
    thresholds: Array


class PrecisionRecallCurve(NamedTuple):
    """Points of a precision-recall curve, thresholds ascending. Unpacks as precision, recall, thresholds."""

    precision: Array
    recall: Array
    thresholds: Array


# ---- curves ---------------------------------------------------------------------------------------------------------


def roc_curve(
    y_true: Any, y_score: Any, *, pos_label: Any = None, sample_weight: Any = None, drop_intermediate: bool = True
) -> RocCurve:
    """Share of negatives (fpr) and of positives (tpr) with a score >= threshold, for descending thresholds.

    The arrays are those of scikit-learn's roc_curve: the first point is (0, 0) at infinity, and drop_intermediate
    leaves out points on a line between their neighbours. One class only is an error here; infinite scores are legal.

    >>> fpr, tpr, thresholds = roc_curve([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> fpr.tolist(), tpr.tolist(), thresholds.tolist()
    ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0], [inf, 0.8, 0.4, 0.35, 0.1])
    """
    thresholds, tps, fps = _counts(scored_rows(y_true, y_score, sample_weight, pos_label, plain_one))
    if drop_intermediate and len(fps) > 2:
        corner = np.concatenate([[True], (np.diff(fps, 2) != 0) | (np.diff(tps, 2) != 0), [True]])
        thresholds, tps, fps = thresholds[corner], tps[corner], fps[corner]
    return RocCurve(
        np.concatenate([[0.0], fps / fps[-1]]),
        np.concatenate([[0.0], tps / tps[-1]]),
        np.concatenate([[math.inf], thresholds]),
    )


def precision_recall_curve(
    y_true: Any, y_score: Any, *, pos_label: Any = None, sample_weight: Any = None, drop_intermediate: bool = False
) -> PrecisionRecallCurve:
    """Precision TP / (TP + FP) and recall TP / P of rows with a score >= threshold, for ascending thresholds.

    The arrays are those of scikit-learn's precision_recall_curve: the last point is precision 1, recall 0 without a
    threshold, and drop_intermediate keeps the first and last point of each recall.

    >>> precision, recall, thresholds = precision_recall_curve([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> precision.tolist(), recall.tolist(), thresholds.tolist()
    ([0.5, 0.6666666666666666, 0.5, 1.0, 1.0], [1.0, 1.0, 0.5, 0.5, 0.0], [0.1, 0.35, 0.4, 0.8])
    """
    rows = scored_rows(y_true, y_score, sample_weight, pos_label, plain_one)
    thresholds, tps, fps = _counts(rows)
    if drop_intermediate and len(fps) > 2:
        step = np.diff(tps) != 0
        kept = np.concatenate([[True], step[:-1] | step[1:], [True]])
        thresholds, tps, fps = thresholds[kept], tps[kept], fps[kept]
    return PrecisionRecallCurve(
        np.concatenate([(tps / (tps + fps))[::-1], [1.0]]),
        np.concatenate([(tps / tps[-1])[::-1], [0.0]]),
        thresholds[::-1].astype(rows.scores.dtype),
    )


def _counts(rows: ScoredRows) -> tuple[Array, Array, Array]:
    """The distinct scores, descending, and the weight of positives and of negatives with that score or a higher one."""
    thresholds, positives, negatives = core.score_groups(rows.scores, rows.labels, rows.weight, n_threads())
    return thresholds, np.cumsum(positives), np.cumsum(negatives)


# ---- areas ----------------------------------------------------------------------------------------------------------


def roc_auc_score(
    y_true: Any,
    y_score: Any,
    *,
    pos_label: Any = None,
    sample_weight: Any = None,
    folds: Any = None,
    level: float = 0.95,
    interval: Literal["delong", "bootstrap"] | None = "delong",
    n_resamples: int = 1000,
    random_state: int = 0,
) -> Estimate:
    """AUC = P(score of a positive > score of a negative) + P(equal) / 2, with an interval.

    It is exact: without weights an integer over an integer. pos_label None: the greater of the two labels, as in
    scikit-learn. The scores of all rows are needed at once; areas of blocks cannot be merged.

    interval "delong": a score interval (`ranked_area`), for rows without weights. "bootstrap": from the spread of
    n_resamples resamples; a weight stays with its row; a resample with one class only is drawn again, and the sentence
    says how many were.
    n_resamples and random_state are used by the bootstrap only. Scores that separate the classes get the exact
    interval of independent pairs instead of either: DeLong's variance is 0 there, and so is the bootstrap's.
    Fewer than 2^32 rows.

    folds: a label for every row, where each fold's scores come from a model of its own, as in cross-validation. Only
    pairs of one fold count then, and the interval is that of `fold_ranking`; interval is "delong" or None.

    >>> roc_auc_score([0, 0, 1, 1, 0, 1], [0.1, 0.4, 0.35, 0.8, 0.2, 0.9])
    Estimate(0.8888888888888888, 95 % interval [0.2615, 0.9939], DeLong)
    """
    estimate = _estimate(_AUC_INTERVALS, interval)
    rows = scored_rows(y_true, y_score, sample_weight, pos_label)
    if folds is None:
        return estimate(rows, check_level(level), n_resamples, random_state)
    if interval == "bootstrap":
        raise ValueError("interval='bootstrap' resamples the rows of one model. With folds use 'delong' or None.")
    area = fold_auc(rows, kept_folds(folds, sample_weight), check_level(level))
    return area if interval is not None else Estimate(area, level=level, sentence=NOT_ASKED)


def kept_folds(folds: Any, sample_weight: Any) -> Array:
    """The folds of the rows that weigh something: `scored_rows` leaves the others out."""
    labels = column(folds, "folds")
    return labels if sample_weight is None else labels[np.asarray(column(sample_weight, "sample_weight")) > 0]


def average_precision_score(
    y_true: Any,
    y_score: Any,
    *,
    pos_label: Any = 1,
    sample_weight: Any = None,
    level: float = 0.95,
    interval: Literal["bootstrap"] | None = None,
    n_resamples: int = 1000,
    random_state: int = 0,
) -> Estimate:
    """sum over thresholds of (recall - recall before) * precision: the area of steps, as in scikit-learn.

    interval "bootstrap": from the spread of n_resamples resamples, as for `roc_auc_score`. There is no formula for it.

    >>> average_precision_score([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    Estimate(0.8333333333333333, no interval)
    """
    return _estimate(_PRECISION_INTERVALS, interval)(
        scored_rows(y_true, y_score, sample_weight, pos_label), check_level(level), n_resamples, random_state
    )


IntervalOf = Callable[[ScoredRows, float, int, int], Estimate]


def _estimate(table: dict[str | None, IntervalOf], interval: Any) -> IntervalOf:
    if interval not in table:
        legal = " or ".join(repr(name) for name in table)
        raise ValueError(f"interval must be {legal}. Got {interval!r}.")
    return table[interval]


def _auc(rows: ScoredRows) -> float:
    if rows.weight is None:
        return PlacementSums.of(rows).auc
    return float(core.weighted_auc(rows.scores, rows.labels, rows.weight, n_threads()))


def _auc_alone(rows: ScoredRows, level: float, n_resamples: int, random_state: int) -> Estimate:
    return Estimate(_auc(rows), level=level, sentence=NOT_ASKED)


def _auc_delong(rows: ScoredRows, level: float, n_resamples: int, random_state: int) -> Estimate:
    if rows.weight is not None:
        return Estimate(_auc(rows), level=level, sentence=WEIGHTED)
    return delong(PlacementSums.of(rows), level)


def _auc_bootstrap(rows: ScoredRows, level: float, n_resamples: int, random_state: int) -> Estimate:
    auc = _auc(rows)
    if auc in (0, 1) and rows.weight is None:
        return separated(auc, min(rows.n_positives, rows.n_negatives), level)
    return bootstrap(rows, auc, "auc", level, n_resamples, random_state)


def _average_precision(rows: ScoredRows) -> float:
    _, tps, fps = _counts(rows)
    return float(np.sum(np.diff(tps, prepend=0.0) * (tps / (tps + fps))) / tps[-1])


def _precision_alone(rows: ScoredRows, level: float, n_resamples: int, random_state: int) -> Estimate:
    return Estimate(_average_precision(rows), level=level, sentence=NOT_ASKED)


def _precision_bootstrap(rows: ScoredRows, level: float, n_resamples: int, random_state: int) -> Estimate:
    return bootstrap(rows, _average_precision(rows), "average_precision", level, n_resamples, random_state)


_AUC_INTERVALS: dict[str | None, IntervalOf] = {
    "delong": _auc_delong,
    "bootstrap": _auc_bootstrap,
    None: _auc_alone,
}
_PRECISION_INTERVALS: dict[str | None, IntervalOf] = {"bootstrap": _precision_bootstrap, None: _precision_alone}


# ---- two scores of the same rows ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AucComparison:
    """The areas of two scores of the same rows, and their difference a - b.

    z = difference / standard_error; p_value: of a difference this large or larger in either direction, if both areas
    are equal, by Student's law with the degrees of freedom of the standard error. Both are None where the standard
    error is 0 or unknown; `difference.sentence` says why.
    """

    auc_a: Estimate
    auc_b: Estimate
    difference: Estimate
    standard_error: float | None
    z: float | None
    p_value: float | None


def compare_auc(
    y_true: Any, score_a: Any, score_b: Any, *, pos_label: Any = None, level: float = 0.95
) -> AucComparison:
    """The difference of the areas of two scores of the same rows, by DeLong's paired variance.

    With V_i, U_j the shares of `auc_intervals` under each score, the difference has the variance
    var(V_a - V_b) / m + var(U_a - U_b) / k: rows that both scores rank alike cancel.

    >>> compare_auc([0, 0, 1, 1, 0, 1], [1, 4, 3.5, 8, 2, 9], [1, 5, 2, 3, 4, 6]).difference
    Estimate(0.3333333333333333, 95 % interval [-0.4223, 1], DeLong)
    """
    check_level(level)
    truth, a, b = column(y_true, "y_true"), score_column(score_a, "score_a"), score_column(score_b, "score_b")
    check_lengths({"y_true": truth, "score_a": a, "score_b": b})
    first, second = (scored_rows(truth, scores, pos_label=pos_label) for scores in (a, b))
    gain = _placements(first) - _placements(second)
    positive = first.labels.view(bool)
    sums = [PlacementSums.of(rows) for rows in (first, second)]
    value = (sums[0].twice - sums[1].twice) / (2 * sums[0].n_positives * sums[0].n_negatives)
    area_a, area_b = (delong(each, level) for each in sums)
    error, freedom, reason = _paired_error(gain[positive], gain[~positive])
    if not error:
        return AucComparison(area_a, area_b, Estimate(value, level=level, sentence=reason), error, None, None)
    half, t = student_quantile(level, freedom) * error, value / error
    low, high = max(value - half, -1.0), min(value + half, 1.0)
    sentence = f"{interval_words(level, low, high)} (DeLong, paired): approximate, {HELD_OUT}."
    difference = Estimate(value, low, high, level=level, method="DeLong", sentence=sentence)
    return AucComparison(area_a, area_b, difference, error, t, student_p_value(t, freedom))


def _placements(rows: ScoredRows) -> Array:
    shares: Array = core.placements(rows.scores, rows.labels, n_threads())
    return shares


def _paired_error(positives: Array, negatives: Array) -> tuple[float | None, float, str]:
    """Standard error of the mean gain, its degrees of freedom, and why it is of no use where it is 0 or None."""
    m, k = len(positives), len(negatives)
    if min(m, k) < 2:
        return None, math.nan, TOO_FEW.format(m, k)
    parts = float(np.var(positives, ddof=1)) / m, float(np.var(negatives, ddof=1)) / k
    if sum(parts) == 0:
        return 0.0, math.nan, "No interval: the variance is 0, for the two scores differ alike in every row of a class."
    return math.sqrt(sum(parts)), satterthwaite(parts[0], m - 1, parts[1], k - 1), ""
