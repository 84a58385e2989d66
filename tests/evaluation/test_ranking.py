"""Curves, areas and their intervals: the definitions first, then scikit-learn, then coverage by simulation."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import special, stats
from sklearn import metrics

from certifit.evaluation.metrics.auc_intervals import PlacementSums, replicates
from certifit.evaluation.metrics.ranking import (
    average_precision_score,
    compare_auc,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)
from certifit.evaluation.metrics.rows import scored_rows
from certifit.runtime import threads

SCORES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "tied": lambda rng, n: rng.integers(0, 20, n) / 7,
    "skewed": lambda rng, n: 10 ** rng.uniform(-300, 300, n),
    "constant": lambda rng, n: np.full(n, 0.25),
    "two values": lambda rng, n: rng.choice([-1e300, 1e-300], n),
    "single": lambda rng, n: rng.normal(size=n).astype(np.float32),
}


def rows(rng: Any, name: str, n: int = 3000, share: float = 0.3) -> tuple[Any, Any]:
    y = (rng.random(n) < share).astype(int)
    y[:2] = 0, 1
    scores = SCORES[name](rng, n)
    return y, (scores + y * (name == "normal")).astype(scores.dtype)


# ---- against scikit-learn -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.3, 0.002])
@pytest.mark.parametrize("name", SCORES)
def test_areas_are_those_of_scikit_learn(rng, name, share):
    y, scores = rows(rng, name, share=share)
    weight = rng.random(len(y)) * (rng.random(len(y)) > 0.1)
    weight[:2] = 1.0
    assert roc_auc_score(y, scores) == pytest.approx(metrics.roc_auc_score(y, scores), rel=1e-14)
    assert average_precision_score(y, scores) == pytest.approx(metrics.average_precision_score(y, scores), rel=1e-13)
    weighted = {"sample_weight": weight}
    assert roc_auc_score(y, scores, **weighted) == pytest.approx(
        metrics.roc_auc_score(y, scores, **weighted), rel=1e-12
    )
    assert average_precision_score(y, scores, **weighted) == pytest.approx(
        metrics.average_precision_score(y, scores, **weighted), rel=1e-12
    )


@pytest.mark.parametrize("drop", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("ours", [roc_curve, precision_recall_curve])
def test_curves_are_those_of_scikit_learn(rng, ours, name, weighted, drop):
    y, scores = rows(rng, name, n=500)
    weight = rng.integers(0, 5, len(y)) / 4 if weighted else None  # zeros, and sums that are exact
    if weight is not None:
        weight[:2] = 1.0
    theirs = getattr(metrics, ours.__name__)
    got = ours(y, scores, sample_weight=weight, drop_intermediate=drop)
    wanted = theirs(y, scores, sample_weight=weight, drop_intermediate=drop)
    for a, b in zip(got, wanted, strict=True):
        assert a.shape == b.shape and a.dtype in (b.dtype, np.float64)  # scikit-learn before 1.8: float32 thresholds
        assert a == pytest.approx(b, rel=1e-15 if b.dtype == a.dtype else 1e-6)


@pytest.mark.parametrize(
    "negative, positive, explicit",
    [(0, 1, False), (-1, 1, False), (False, True, False), (1, 2, True), ("ham", "spam", True), ("yes", "no", True)],
)
def test_any_two_labels_will_do(rng, negative, positive, explicit):
    y, scores = rows(rng, "normal", 200)
    named = np.array([positive if value else negative for value in y])
    frames = [named, named.tolist(), pd.Series(named), pl.Series(named.tolist()), pd.Series(named).astype("category")]
    pos_label = {"pos_label": positive} if explicit else {}
    plain = roc_auc_score(y, scores)
    for given in frames:
        assert roc_auc_score(given, scores, **pos_label) == plain
        assert roc_curve(given, scores, **pos_label).tpr.tolist() == roc_curve(y, scores).tpr.tolist()
        assert average_precision_score(given, scores, **pos_label) == average_precision_score(y, scores)
    assert float(roc_auc_score(named, scores)) == pytest.approx(metrics.roc_auc_score(named, scores), rel=1e-14)


def test_labels_that_leave_the_positive_class_open_need_pos_label(rng):
    y = np.where(rng.random(50) < 0.5, "a", "b")
    for curve in (roc_curve, precision_recall_curve):
        with pytest.raises(ValueError, match="labels 'a' and 'b'"):
            curve(y, rng.random(50))
    with pytest.raises(ValueError, match="pos_label must be 'a' or 'b'"):
        average_precision_score(y, rng.random(50))


def test_it_works_as_a_scorer_of_scikit_learn(rng):
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score

    X = rng.normal(size=(200, 3))
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    scorer = metrics.make_scorer(roc_auc_score, response_method="predict_proba")
    ours = cross_val_score(LogisticRegression(), X, y, scoring=scorer)
    assert ours == pytest.approx(cross_val_score(LogisticRegression(), X, y, scoring="roc_auc"), rel=1e-14)


# ---- properties -----------------------------------------------------------------------------------------------------


def test_reversed_scores_have_one_minus_the_area(rng):
    y, scores = rows(rng, "tied")
    assert roc_auc_score(y, -scores) + roc_auc_score(y, scores) == pytest.approx(1, rel=1e-15)


def test_the_area_depends_on_the_order_of_the_scores_alone(rng):
    y, scores = rows(rng, "normal")
    assert roc_auc_score(y, np.exp(scores)) == roc_auc_score(y, scores)


def test_weight_two_is_the_row_twice(rng):
    y, scores = rows(rng, "tied", 400)
    weight = rng.integers(1, 4, 400)
    twice = np.repeat(np.arange(400), weight)
    assert roc_auc_score(y, scores, sample_weight=weight) == pytest.approx(
        float(roc_auc_score(y[twice], scores[twice])), rel=1e-14
    )


@pytest.mark.parametrize("size", [1e-320, 1e300])
def test_the_size_of_weights_does_not_matter(rng, size):
    y, scores = rows(rng, "normal", 300)
    weight = rng.integers(1, 4, 300) * size
    plain = roc_auc_score(y, scores, sample_weight=rng.permutation(weight) * 0 + weight / size)
    assert roc_auc_score(y, scores, sample_weight=weight) == pytest.approx(
        float(plain), rel=1e-4 if size < 1 else 1e-14
    )


def test_infinite_scores_and_both_zeros_are_ranked(rng):
    y = [0, 1, 0, 1, 1, 0]
    scores = [-math.inf, math.inf, 0.0, -0.0, 1.0, -1.0]
    assert roc_auc_score(y, scores) == (2 * 8 + 1) / 18
    assert roc_curve(y, scores, drop_intermediate=False).thresholds.tolist() == [
        math.inf, math.inf, 1.0, 0.0, -1.0, -math.inf
    ]  # fmt: skip


def test_any_number_of_threads_gives_the_same_numbers(rng):
    y, scores = rows(rng, "tied", 20_000)
    found = []
    for n in (1, 3):
        with threads(n):
            estimate = roc_auc_score(y, scores, sample_weight=scores + 1, interval="bootstrap", n_resamples=50)
            found.append((float(estimate), estimate.low, estimate.high))
    assert found[0] == found[1]


# ---- DeLong ---------------------------------------------------------------------------------------------------------


def shares(y: Any, scores: Any) -> tuple[Any, Any]:
    """V_i of the positives and U_j of the negatives by all pairs."""
    gap = np.subtract.outer(scores[y == 1], scores[y == 0])
    wins = (gap > 0) + (gap == 0) / 2
    return wins.mean(axis=1), wins.mean(axis=0)


def variance(V: Any, U: Any) -> float:
    return float(V.var(ddof=1) / len(V) + U.var(ddof=1) / len(U))


@pytest.mark.parametrize("name", ["normal", "tied"])
def test_the_variance_is_that_of_all_pairs(rng, name):
    y, scores = rows(rng, name, 400)
    assert PlacementSums.of(scored_rows(y, scores)).variance == pytest.approx(variance(*shares(y, scores)), rel=1e-12)


def usual_variance(t: float, m: int, k: int) -> float:
    """Hanley and McNeil's, the mean of both classes' roles."""
    both, one = t / (2 - t), 2 * t * t / (1 + t)
    return (t * (1 - t) + (m + k - 2) * ((both + one) / 2 - t * t)) / (m * k)


@pytest.mark.parametrize("name", ["normal", "tied"])
def test_the_ends_solve_the_equation_of_the_score_interval(rng, name):
    y, scores = rows(rng, name, 60)
    estimate = roc_auc_score(y, scores, level=0.9)
    assert estimate.method == "DeLong" and estimate.level == 0.9
    V, U = shares(y, scores)
    m, k = len(V), len(U)
    parts = V.var(ddof=1) / m, U.var(ddof=1) / k
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (m - 1) + parts[1] ** 2 / (k - 1))
    ratio = sum(parts) / usual_variance(float(estimate), m, k)
    share = 15 / (15 + 4 * estimate * (1 - estimate) * min(m, k))
    size = ratio + (max(ratio, 1) - ratio) * share
    for end in (estimate.low, estimate.high):
        half = stats.t.ppf(0.95, freedom) * math.sqrt(size * usual_variance(end, m, k))
        # The quantiles of Student's law have eight digits in SciPy before 1.15.
        assert abs(end - estimate) == pytest.approx(half, rel=1e-7)


def test_turning_scores_or_classes_turns_the_interval(rng):
    y, scores = rows(rng, "tied", 80)
    up, down = roc_auc_score(y, scores), roc_auc_score(y, -scores)
    other = roc_auc_score(1 - y, scores)
    assert (1 - down.high, 1 - down.low) == pytest.approx((up.low, up.high), rel=1e-12)
    assert (other.low, other.high) == pytest.approx((down.low, down.high), rel=1e-12)


def test_five_positives_are_covered_where_the_normal_law_fails():
    """400 sets of 5 positives and 500 negatives at AUC 0.9."""
    shift = special.ndtri(0.9) * math.sqrt(2)
    y = np.repeat([1, 0], [5, 500])
    covered = plain = 0
    for seed in range(400):
        scores = np.random.default_rng([3, seed]).normal(size=505) + shift * y
        found = roc_auc_score(y, scores)
        covered += found.low <= 0.9 <= found.high
        half = 1.96 * math.sqrt(PlacementSums.of(scored_rows(y, scores)).variance)
        plain += abs(float(found) - 0.9) <= half
    assert covered >= 0.94 * 400 and plain <= 0.88 * 400


@pytest.mark.parametrize("auc, m, k", [(0.8, 40, 40), (0.95, 60, 30), (0.5, 25, 100)])
@pytest.mark.slow
def test_delong_covers_as_often_as_it_says(rng, auc, m, k):
    shift = special.ndtri(auc) * math.sqrt(2)  # P(X + shift > Y) = auc for standard normal X, Y
    y = np.repeat([1, 0], [m, k])
    runs = 2000
    estimates = [roc_auc_score(y, rng.normal(size=m + k) + shift * y) for _ in range(runs)]
    covered = np.mean([estimate.low <= auc <= estimate.high for estimate in estimates])
    # four standard errors of the simulation, and 1.5 % for so few rows
    assert covered == pytest.approx(0.95, abs=0.015 + 4 * math.sqrt(0.95 * 0.05 / runs))


def test_separated_classes_get_the_exact_interval_of_pairs():
    y = np.repeat([0, 1], [7, 20])
    up, down = roc_auc_score(y, np.arange(27.0)), roc_auc_score(y, -np.arange(27.0))
    assert (up.low, up.high) == pytest.approx((0.025 ** (1 / 7), 1.0))
    assert (down.low, down.high) == pytest.approx((0.0, 1 - 0.025 ** (1 / 7)))
    assert "variance is 0" in up.sentence
    assert roc_auc_score(y, np.arange(27.0), interval="bootstrap").low == up.low


@pytest.mark.parametrize(
    "options, word",
    [
        ({"sample_weight": [1.0, 2.0, 1.0, 1.0]}, "interval='bootstrap' takes weights"),
        ({"interval": None}, "No interval was asked for"),
    ],
)
def test_no_interval_comes_with_the_reason(options, word):
    estimate = roc_auc_score([0, 0, 1, 1], [1, 3, 2, 4], **options)
    assert estimate.low is None and estimate.high is None and word in estimate.sentence


def test_too_few_rows_and_constant_scores_have_no_interval():
    assert "two rows of each class" in roc_auc_score([0, 1, 0], [1, 2, 3]).sentence
    constant = roc_auc_score([0, 1, 0, 1], [5, 5, 5, 5])
    assert constant == 0.5 and "variance is 0" in constant.sentence


# ---- bootstrap ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_bootstrap_covers_about_as_often_as_it_says(rng):
    shift = special.ndtri(0.8) * math.sqrt(2)
    y = np.repeat([1, 0], [50, 50])
    runs = 600
    estimates = [
        roc_auc_score(y, rng.normal(size=100) + shift * y, interval="bootstrap", n_resamples=400, random_state=run)
        for run in range(runs)
    ]
    covered = np.mean([estimate.low <= 0.8 <= estimate.high for estimate in estimates])
    assert covered == pytest.approx(0.94, abs=0.01 + 4 * math.sqrt(0.95 * 0.05 / runs))


def test_the_bootstrap_agrees_with_delong_for_many_rows(rng):
    y, scores = rows(rng, "normal", 20_000)
    delong, bootstrap = roc_auc_score(y, scores), roc_auc_score(y, scores, interval="bootstrap", n_resamples=2000)
    assert float(delong) == float(bootstrap)
    width = delong.high - delong.low
    assert [bootstrap.low, bootstrap.high] == pytest.approx([delong.low, delong.high], abs=0.1 * width)


@pytest.mark.slow
def test_average_precision_has_a_bootstrap_interval_on_request(rng):
    y, scores = rows(rng, "normal", 2000)
    estimate = average_precision_score(y, scores, interval="bootstrap")
    drawn = [rng.integers(0, 2000, 2000) for _ in range(1000)]
    wanted = np.quantile([metrics.average_precision_score(y[i], scores[i]) for i in drawn], [0.025, 0.975])
    width = wanted[1] - wanted[0]
    assert [estimate.low, estimate.high] == pytest.approx(wanted, abs=0.2 * width)
    assert average_precision_score(y, scores).low is None


def test_the_seed_decides_the_interval(rng):
    y, scores = rows(rng, "normal", 300)
    ends = [roc_auc_score(y, scores, interval="bootstrap", random_state=seed).low for seed in (0, 0, 1)]
    assert ends[0] == ends[1] != ends[2]


def test_resamples_with_one_class_are_drawn_again_and_counted():
    values, redrawn = replicates(scored_rows([0, 1, 0, 0, 0, 1], [1.0, 2, 3, 4, 0, 5]), "auc", 1000, 0)
    assert np.isfinite(values).all() and 30 < redrawn < 300  # (4/6)^6 + (2/6)^6 of 1000 is 89


def test_few_rows_of_a_class_have_no_resampled_interval(rng):
    y = np.repeat([1, 0], [14, 60])
    found = roc_auc_score(y, rng.normal(size=74), interval="bootstrap")
    assert found.low is None and found.sentence.startswith("Too few rows for this interval")
    weight = np.where(y == 1, 1.0, np.arange(74) < 20) + 1e-9  # 60 negatives, but six of them have weight
    found = roc_auc_score(y, rng.normal(size=74), sample_weight=weight, interval="bootstrap")
    assert found.low is None


# ---- comparison -----------------------------------------------------------------------------------------------------


def test_the_difference_has_the_paired_variance(rng):
    y, a = rows(rng, "normal", 300)
    b = a + rng.normal(size=300)
    (V, U), (W, T) = shares(y, a), shares(y, b)
    found = compare_auc(y, a, b)
    assert found.difference == pytest.approx(V.mean() - W.mean(), rel=1e-12)
    assert found.standard_error == pytest.approx(math.sqrt(variance(V - W, U - T)), rel=1e-12)
    assert found.z == pytest.approx(found.difference / found.standard_error)
    gains = (V - W).var(ddof=1) / len(V), (U - T).var(ddof=1) / len(U)
    freedom = sum(gains) ** 2 / (gains[0] ** 2 / (len(V) - 1) + gains[1] ** 2 / (len(U) - 1))
    assert found.p_value == pytest.approx(2 * stats.t.sf(abs(found.z), freedom), rel=1e-9)
    assert float(found.auc_a) == float(roc_auc_score(y, a)) and found.auc_b.low == roc_auc_score(y, b).low
    half = stats.t.ppf(0.975, freedom) * found.standard_error
    assert found.difference.high - found.difference == pytest.approx(half, rel=1e-9)


@pytest.mark.slow
def test_equal_areas_are_told_apart_as_seldom_as_the_level_says(rng):
    y = np.repeat([0, 1], 60)
    runs = 1500
    p = []
    for _ in range(runs):
        signal = y + rng.normal(size=120)
        p.append(compare_auc(y, signal + rng.normal(size=120), signal + rng.normal(size=120)).p_value)
    for level in (0.05, 0.5):
        assert np.mean(np.array(p) < level) == pytest.approx(
            level, abs=0.01 + 4 * math.sqrt(level * (1 - level) / runs)
        )


def test_scores_that_rank_alike_have_no_p_value(rng):
    y, scores = rows(rng, "normal", 100)
    found = compare_auc(y, scores, np.exp(scores))
    assert found.difference == 0 and found.p_value is None and "variance is 0" in found.difference.sentence


# ---- refusals -------------------------------------------------------------------------------------------------------

GOOD = {"y_true": [0, 1, 0, 1], "y_score": [0.1, 0.2, 0.3, 0.4]}


@pytest.mark.parametrize("score", [roc_auc_score, roc_curve, precision_recall_curve, average_precision_score])
@pytest.mark.parametrize(
    "change, error, message",
    [
        ({"y_true": [0, 1, 0]}, ValueError, "y_score has 4 rows but y_true has 3"),
        ({"y_true": [], "y_score": []}, ValueError, "y_true is empty"),
        ({"y_true": [1, 1, 1, 1]}, ValueError, "label 1 only. Ranks need rows of both classes"),
        ({"y_true": [0, 1, 2, 1]}, ValueError, "Row 1 has the third"),
        ({"y_true": ["a", "b", "a", "c"]}, ValueError, "Row 3 has the third"),
        ({"y_true": ["a", None, "a", "b"]}, ValueError, "y_true has no value in row 1"),
        ({"y_true": [0.0, 1.0, math.nan, 1.0]}, ValueError, "y_true has no value in row 2"),
        ({"y_true": [[0, 1], [1, 0]]}, ValueError, "y_true must be 1-D"),
        ({"y_score": np.ones((4, 2))}, ValueError, "2 columns. Pass the scores of one class"),
        ({"y_score": [0.1, 0.2, math.nan, 0.4]}, ValueError, "y_score has no value in row 2"),
        ({"y_score": ["a", "b", "c", "d"]}, TypeError, "y_score must be float32, float64 or whole numbers"),
        ({"y_score": np.ones(4, dtype=complex)}, TypeError, "y_score must be float32"),
        ({"y_score": np.array([2**53 + 1, 0, 1, 2])}, ValueError, "beyond 2\\^53"),
        ({"pos_label": 7}, ValueError, "pos_label must be 0 or 1"),
        ({"sample_weight": [1, 1, 1]}, ValueError, "sample_weight has 3 rows"),
        ({"sample_weight": [1, -1, 1, 1]}, ValueError, "sample_weight must be >= 0. Row 1 is -1"),
        ({"sample_weight": [1, 0, 1, 0]}, ValueError, "Every positive row has weight 0"),
    ],
)
def test_rows_that_cannot_be_ranked_are_named(score, change, error, message):
    with pytest.raises(error, match=message):
        score(**(GOOD | change))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"level": 1.0}, "level must be between 0 and 1"),
        ({"interval": "wald"}, "interval must be 'delong' or 'bootstrap' or None. Got 'wald'"),
        ({"interval": "bootstrap", "n_resamples": 39}, "n_resamples must be a whole number >= 40"),
        ({"interval": "bootstrap", "random_state": -1}, "random_state must be a whole number"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        roc_auc_score(**GOOD, **options)


def test_the_score_that_is_wrong_is_named_in_a_comparison():
    with pytest.raises(ValueError, match="score_b has no value in row 1"):
        compare_auc([0, 1, 0, 1], [1, 2, 3, 4], [1, math.nan, 3, 4])


def test_an_estimate_survives_pickling(rng):
    estimate = roc_auc_score(*rows(rng, "normal", 100))
    back = pickle.loads(pickle.dumps(estimate))
    assert (back, back.low, back.high, back.sentence) == (estimate, estimate.low, estimate.high, estimate.sentence)
