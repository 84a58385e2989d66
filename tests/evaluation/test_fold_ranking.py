"""AUC and ROC curve of scores from several fold models: pairs of one fold, against all pairs one by one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import trapezoid

from certifit.evaluation.metrics.ranking import SHARED_ROWS, fold_effects, fold_pairs, fold_roc, roc_auc_score
from certifit.evaluation.metrics.rows import ScoredRows, each_fold, scored_rows
from certifit.evaluation.pictures.roc_and_precision import RocCurveDisplay


def sample(rng: np.random.Generator, n: int = 80, folds: int = 6) -> tuple[Any, Any, Any, Any]:
    """Labels, scores with ties, folds and weights; fold 9 holds positives alone."""
    y = rng.integers(0, 2, n)
    fold = rng.integers(0, folds, n)
    y[:3], fold[:3] = 1, 9
    return y, rng.integers(0, 6, n) + 2.0 * y + fold, fold, rng.uniform(0.2, 3, n)


def by_pairs(y: Any, scores: Any, fold: Any, weight: Any) -> tuple[float, float]:
    """Weight of the pairs of one fold in the right order, equal scores half, and of all of them."""
    right = total = 0.0
    for i in np.flatnonzero(y == 1):
        for j in np.flatnonzero(y == 0):
            if fold[i] == fold[j]:
                total += weight[i] * weight[j]
                right += weight[i] * weight[j] * ((scores[i] > scores[j]) + (scores[i] == scores[j]) / 2)
    return right, total


@pytest.mark.parametrize("weighted", [False, True])
def test_only_pairs_of_one_fold_count(rng, weighted):
    y, scores, fold, weight = sample(rng)
    right, total = by_pairs(y, scores, fold, weight if weighted else np.ones(len(y)))
    found = roc_auc_score(y, scores, folds=fold, sample_weight=weight if weighted else None)
    assert found == pytest.approx(right / total, rel=1e-12)
    assert "1 folds with rows of one class are left out" in found.sentence
    assert (found.low is None) == weighted


def test_a_row_of_weight_zero_is_no_row(rng):
    y, scores, fold, weight = sample(rng)
    weight[::5] = 0
    kept = weight > 0
    all_rows = roc_auc_score(y, scores, folds=fold, sample_weight=weight)
    assert float(all_rows) == float(roc_auc_score(y[kept], scores[kept], folds=fold[kept], sample_weight=weight[kept]))


def test_one_fold_has_the_plain_area_and_a_wider_interval(rng):
    y, scores, _, _ = sample(rng)
    plain, one = roc_auc_score(y, scores), roc_auc_score(y, scores, folds=np.zeros(len(y)))
    assert float(one) == float(plain)
    assert one.low < plain.low < plain.high < one.high


def test_the_variance_is_that_of_the_placements_about_the_area(rng):
    y, scores, fold, _ = sample(rng)
    found = fold_pairs(scored_rows(y, scores), fold)
    V, U, sizes = [], [], []
    for f in np.unique(fold):
        a, b = scores[(fold == f) & (y == 1)], scores[(fold == f) & (y == 0)]
        if len(a) and len(b):
            wins = (a[:, None] > b) + (a[:, None] == b) / 2
            V, U = [*V, *wins.mean(axis=1)], [*U, *wins.mean(axis=0)]
            sizes.append((len(a), len(b)))
    m, k = np.array(sizes).T
    share = m * k / (m * k).sum()
    s_v = np.sum((np.array(V) - found.auc) ** 2) / (len(V) - 1)
    s_u = np.sum((np.array(U) - found.auc) ** 2) / (len(U) - 1)
    expected = SHARED_ROWS * np.sum(share**2 * (s_v / m + s_u / k))
    assert found.area.variance == pytest.approx(expected, rel=1e-10)


def test_effects_of_rows_are_how_the_area_moves(rng):
    """The positives' effects sum to 0, and each is the change of the area, to first order, with the row's weight."""
    y, scores, fold, _ = sample(rng)
    rows = scored_rows(y, scores)
    found = fold_pairs(rows, fold)
    effects = fold_effects(rows, fold, found)
    step = 1e-6
    for i in (3, 20, 41):
        weight = np.ones(len(y))
        weight[i] += step
        right, total = by_pairs(y, scores, fold, weight)
        assert effects[i] == pytest.approx((right / total - found.auc) / step, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_curve_is_the_mean_of_the_folds_curves_and_has_their_area(rng, weighted):
    y, scores, fold, weight = sample(rng)
    rows = scored_rows(y, scores, weight if weighted else None)
    x, t = fold_roc(rows, fold)
    assert (x[0], t[0], x[-1], t[-1]) == (0.0, 0.0, 1.0, 1.0) and (np.diff(x) >= 0).all() and (np.diff(t) >= 0).all()
    found = roc_auc_score(y, scores, folds=fold, sample_weight=weight if weighted else None)
    assert trapezoid(t, x) == pytest.approx(float(found), rel=1e-10)


def test_the_display_draws_the_curve_of_the_area_it_names(rng):
    pytest.importorskip("matplotlib").use("Agg")
    y, scores, fold, _ = sample(rng)
    drawn = RocCurveDisplay.from_predictions(y, scores, folds=fold)
    assert trapezoid(drawn.tpr, drawn.fpr) == pytest.approx(float(drawn.roc_auc), rel=1e-10)
    assert drawn.band is None and drawn.roc_auc.method == "DeLong within folds"


def test_leave_one_out_has_no_pair_and_says_so(rng):
    y, scores, _, _ = sample(rng)
    found = roc_auc_score(y, scores, folds=np.arange(len(y)))
    assert math.isnan(found) and found.low is None
    assert "leave-one-out has one row in every fold" in found.sentence and "cv=10" in found.sentence


def test_folds_that_do_not_fit_are_refused(rng):
    y, scores, fold, _ = sample(rng)
    with pytest.raises(ValueError, match="folds has 79 rows but the scores have 80"):
        roc_auc_score(y, scores, folds=fold[:-1])
    with pytest.raises(ValueError, match="With folds use 'delong' or None"):
        roc_auc_score(y, scores, folds=fold, interval="bootstrap")


def test_separated_folds_get_the_interval_of_their_independent_pairs():
    y = np.tile([0, 1, 1], 5)
    found = roc_auc_score(y, y + 0.0, folds=np.repeat(np.arange(5), 3))
    assert found == 1 and (found.low, found.high) == pytest.approx((0.025 ** (1 / 5), 1.0))


def test_noise_is_covered_where_all_scores_together_are_not():
    """200 sets of noise, 48 rows in 8 folds without strata: each model knows the share of its own training rows."""
    covered, areas, together = 0, [], []
    for seed in range(200):
        rng = np.random.default_rng([11, seed])
        y, X, fold = rng.permutation(np.repeat([0, 1], 24)), rng.normal(size=(48, 3)), rng.permutation(48) % 8
        scores = np.empty(48)
        for f in range(8):
            train, new = fold != f, fold == f
            slope = X[train].T @ (y[train] - y[train].mean()) / 200
            scores[new] = y[train].mean() + X[new] @ slope
        found = roc_auc_score(y, scores, folds=fold)
        covered += found.low <= 0.5 <= found.high
        areas.append(float(found))
        together.append(float(roc_auc_score(y, scores, interval=None)))
    assert covered >= 0.92 * 200 and abs(np.mean(areas) - 0.5) < 0.02
    assert np.mean(together) < 0.45


@pytest.mark.parametrize("labels", [[3, -1, 3, 7, -1], [True, False, True, True, False], ["b", "a", "b", "b", "c"]])
def test_rows_of_folds_are_in_order_whatever_the_labels(labels):
    folds = np.array(labels)
    rows = ScoredRows(scores=np.arange(5.0), labels=np.ones(5), weight=None, pos_label=1)
    for label, (places, part) in zip(np.unique(folds), each_fold(rows, folds), strict=True):
        assert places.tolist() == np.flatnonzero(folds == label).tolist() == part.scores.tolist()
