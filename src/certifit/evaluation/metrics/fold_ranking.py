"""AUC and ROC curve of scores that come from several models, one for each fold of rows.

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
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.evaluation.metrics.auc_intervals import (
    CONSTANT,
    TOO_FEW,
    PlacementSums,
    RankedArea,
    satterthwaite,
    separated,
)
from certifit.evaluation.metrics.intervals import Estimate, interval_words
from certifit.evaluation.metrics.rows import ScoredRows, column
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
WEIGHTED = "No interval: the rows carry weights."


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


def each_fold(rows: ScoredRows, folds: Any) -> Iterator[tuple[Array, ScoredRows]]:
    """Places and rows of every fold, in the order of the folds' labels; of one class or of both."""
    labels = column(folds, "folds")
    if len(labels) != len(rows.labels):
        raise ValueError(f"folds has {len(labels)} rows but the scores have {len(rows.labels)}.")
    place = np.unique(labels, return_inverse=True)[1].ravel()
    order = np.argsort(place, kind="stable")
    ends = np.flatnonzero(np.diff(place[order], prepend=-1, append=place.max(initial=0) + 1))
    for begin, end in pairwise(ends):
        fold_rows = order[begin:end]
        weight = None if rows.weight is None else rows.weight[fold_rows]
        yield fold_rows, replace(rows, scores=rows.scores[fold_rows], labels=rows.labels[fold_rows], weight=weight)


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
        return Estimate(pairs.auc, level=level, sentence=WEIGHTED + left_out)
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
