"""Log loss, Brier score and calibration: formulas in plain NumPy, scikit-learn to 1e-12."""

from __future__ import annotations

import math
from functools import reduce
from operator import add

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn import metrics
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import cross_val_score

from certifit.evaluation.metrics.errors import MeanLoss
from certifit.evaluation.metrics.probabilities import (
    Calibration,
    brier_score_loss,
    calibration,
    log_loss,
    log_losses,
    positives,
)

LABELS = {
    "numbers": [0, 1],
    "signs": [-1, 1],
    "texts": ["ham", "spam"],
    "three": ["a", "b", "c"],
    "five": [2, 3, 5, 7, 11],
}


def drawn(rng, labels, n=300):
    y = np.array(labels)[rng.integers(0, len(labels), n)]
    p = rng.dirichlet(np.ones(len(labels)), n)
    y[: len(labels)] = labels
    return y, p


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", LABELS)
def test_losses_are_their_formulas_and_those_of_scikit_learn(rng, name, weighted):
    labels = LABELS[name]
    y, p = drawn(rng, labels)
    weight = rng.random(len(y)) if weighted else None
    happened = y[:, None] == np.array(labels)
    plain = np.average(-np.log(p[happened]), weights=weight)
    ours = float(log_loss(y, p, sample_weight=weight))
    assert ours == pytest.approx(plain, rel=1e-13)
    assert ours == pytest.approx(metrics.log_loss(y, p, sample_weight=weight), rel=1e-12)
    squares = np.average(((p - happened) ** 2).sum(axis=1), weights=weight) / (2 if len(labels) == 2 else 1)
    brier = float(brier_score_loss(y, p, sample_weight=weight))
    assert brier == pytest.approx(squares, rel=1e-13)
    assert brier == pytest.approx(metrics.brier_score_loss(y, p, sample_weight=weight, labels=labels), rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["numbers", "signs", "texts"])
def test_one_column_is_the_positive_class(rng, name, weighted):
    labels = LABELS[name]
    y, p = drawn(rng, labels)
    options = {"sample_weight": rng.random(len(y)) if weighted else None}
    assert float(log_loss(y, p[:, 1], **options)) == pytest.approx(metrics.log_loss(y, p[:, 1], **options), rel=1e-12)
    assert float(log_loss(y, p[:, 1], **options)) == pytest.approx(float(log_loss(y, p, **options)), rel=1e-13)
    for label in labels:
        theirs = metrics.brier_score_loss(y, p[:, 1], pos_label=label, **options)
        assert float(brier_score_loss(y, p[:, 1], pos_label=label, **options)) == pytest.approx(theirs, rel=1e-12)
    assert float(brier_score_loss(y, p[:, [1]], pos_label=labels[1])) == float(
        brier_score_loss(y, p[:, 1], pos_label=labels[1])
    )


@pytest.mark.parametrize("scale_by_half", [True, False, "auto"])
@pytest.mark.parametrize("name", ["numbers", "three"])
def test_brier_is_halved_as_in_scikit_learn(rng, name, scale_by_half):
    y, p = drawn(rng, LABELS[name])
    theirs = metrics.brier_score_loss(y, p, labels=LABELS[name], scale_by_half=scale_by_half)
    assert float(brier_score_loss(y, p, scale_by_half=scale_by_half)) == pytest.approx(theirs, rel=1e-12)


def test_the_sum_is_the_mean_times_the_weight(rng):
    y, p = drawn(rng, [0, 1])
    theirs = metrics.log_loss(y, p, normalize=False)
    assert float(log_loss(y, p, normalize=False)) == pytest.approx(theirs, rel=1e-12)


def test_probability_zero_for_what_happened_is_infinite_and_said():
    estimate = log_loss([0, 1, 1, 0], [0.1, 0.0, 0.0, 0.5])
    assert math.isinf(estimate) and estimate.low is None
    assert "row 1 (and 1 more) happened with a predicted probability of 0" in estimate.sentence
    assert math.isinf(log_loss(["a", "b", "c"], [[0, 0.5, 0.5], [0, 1, 0], [0, 0, 1]]))
    assert math.isfinite(log_loss([0, 1, 1], [0.1, 0.0, 0.9], sample_weight=[1, 0, 1]))
    assert float(log_loss([0, 1], [0.0, 1.0])) == 0.0


@pytest.mark.parametrize("columns", [1, 2])
def test_clipping_is_that_of_scikit_learn_when_asked_for(columns):
    y, p = np.array([0, 1, 1, 0]), np.array([0.1, 0.0, 1.0, 1.0])
    given = p if columns == 1 else np.column_stack([1 - p, p])
    clipped = log_loss(y, given, clip=float(np.finfo(float).eps))
    assert float(clipped) == pytest.approx(metrics.log_loss(y, given), rel=1e-12)


def test_tiny_probabilities_keep_their_digits():
    assert float(log_loss([0, 1], [1e-300, 1e-300])) == pytest.approx(-math.log(1e-300) / 2, rel=1e-14)


@pytest.mark.parametrize("cuts", [[10], [1, 100, 299]])
def test_log_losses_of_blocks_add_to_the_whole(rng, cuts):
    y, p = drawn(rng, LABELS["three"])
    weight = rng.random(len(y))
    parts = [MeanLoss.of(log_losses(y[r], p[r], LABELS["three"]), weight[r]) for r in np.split(np.arange(len(y)), cuts)]
    assert reduce(add, parts).mean == pytest.approx(float(log_loss(y, p, sample_weight=weight)), rel=1e-13)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, lambda p: p.tolist(), lambda p: p.astype(np.float32)])
def test_every_kind_of_table_is_scored(rng, frame):
    y, p = drawn(rng, LABELS["three"], 50)
    assert float(log_loss(pd.Series(y), frame(p))) == pytest.approx(float(log_loss(y, p)), rel=1e-5)


def test_an_interval_is_the_bootstrap_of_the_mean(rng):
    y, p = drawn(rng, [0, 1])
    estimate = log_loss(y, p, n_resamples=500)
    losses = -np.log(np.where(y == 1, p[:, 1], p[:, 0]))
    half = 1.96 * losses.std() / math.sqrt(len(y))
    assert estimate.high - estimate.low == pytest.approx(2 * half, rel=0.15)
    assert brier_score_loss(y, p, n_resamples=50).method == "studentised bootstrap"


def test_a_scorer_of_scikit_learn_takes_them(rng):
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    scorer = make_scorer(log_loss, response_method="predict_proba", greater_is_better=False)
    ours = cross_val_score(LogisticRegression(), X, y, scoring=scorer)
    assert ours == pytest.approx(cross_val_score(LogisticRegression(), X, y, scoring="neg_log_loss"), rel=1e-12)


# ---- calibration ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bins", [1, 5, 10, 33])
def test_uniform_bins_are_those_of_scikit_learn(rng, bins):
    p = np.round(rng.beta(2, 3, 400), 2)  # values on the edges
    y = (rng.random(400) < p).astype(int)
    result = calibration(y, p, bins, "uniform")
    share, mean = calibration_curve(y, p, n_bins=bins, strategy="uniform")
    seen = result.count > 0
    assert result.observed_share[seen] == pytest.approx(share, rel=1e-12)
    assert result.mean_prediction[seen] == pytest.approx(mean, rel=1e-12)
    assert result.count.sum() == 400


@pytest.mark.parametrize("n, bins", [(100, 10), (103, 10), (7, 3)])
def test_quantile_bins_hold_equally_many_rows(rng, n, bins):
    p = rng.permutation(np.linspace(0.01, 0.99, n))
    result = calibration(rng.integers(0, 2, n), p, bins)
    assert len(result.count) == bins and result.count.max() - result.count.min() <= 1


def test_equal_predictions_make_fewer_bins():
    result = calibration([0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5], 10)
    assert result.count.tolist() == [4] and result.mean_prediction.tolist() == [0.5]
    ends = calibration([0, 1, 1], [0.0, 1.0, 1.0], 4)
    assert ends.count.tolist() == [1, 2] and ends.mean_prediction.tolist() == [0.0, 1.0]
    assert calibration([0, 1, 1], [0.0, 1.0, 1.0], ends.edges).count.tolist() == [1, 2]


def test_the_table_is_a_loop_over_bins(rng):
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    result = calibration(y, p, 7, "uniform", 0.9)
    error = 0.0
    for row in result.table():
        inside = (p > row["lower"]) & (p <= row["upper"])
        exact = stats.binomtest(int(y[inside].sum()), int(inside.sum())).proportion_ci(0.9, method="exact")
        assert row["count"] == inside.sum()
        assert row["mean_prediction"] == pytest.approx(p[inside].mean(), rel=1e-13)
        assert row["observed_share"] == pytest.approx(y[inside].mean(), rel=1e-13)
        assert (row["low"], row["high"]) == pytest.approx((exact.low, exact.high), rel=1e-9)
        error += inside.mean() * abs(p[inside].mean() - y[inside].mean())
    assert result.expected_calibration_error == pytest.approx(error, rel=1e-12)


def test_an_empty_bin_stays_in_the_table():
    result = calibration([0, 1], [0.1, 0.9], 3, "uniform")
    assert result.count.tolist() == [1, 0, 1]
    row = result.table()[1]
    assert all(math.isnan(row[name]) for name in ("mean_prediction", "observed_share", "low", "high"))
    assert math.isfinite(result.expected_calibration_error)
    assert len(repr(result).splitlines()) == 5


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_weight_two_is_the_row_twice(rng, strategy):
    p = np.round(rng.random(60), 2)
    y, weight = rng.integers(0, 2, 60), rng.integers(0, 3, 60)
    once = calibration(y, p, 6, strategy, sample_weight=weight)
    twice = calibration(np.repeat(y, weight), np.repeat(p, weight), 6, strategy)
    assert (once.edges == twice.edges).all() and (once.count == twice.count).all()
    assert once.observed_share == pytest.approx(twice.observed_share, rel=1e-13, nan_ok=True)


def test_weights_leave_no_interval_and_say_so(rng):
    result = calibration([0, 1, 1], [0.2, 0.7, 0.9], 2, sample_weight=[1.0, 2.0, 0.5])
    assert result.interval is None and result.sentence.startswith("No interval")
    assert math.isnan(result.table()[0]["low"])
    assert "Clopper-Pearson" in calibration([0, 1, 1], [0.2, 0.7, 0.9], 2).sentence


def test_blocks_with_the_same_edges_add(rng):
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    whole = calibration(y, p)
    parts = [calibration(y[r], p[r], whole.edges) for r in np.split(np.arange(300), [20, 150])]
    merged = sum(parts)
    assert isinstance(merged, Calibration)
    for name in ("count", "happened"):
        assert (getattr(merged, name) == getattr(whole, name)).all()
    assert merged.predicted == pytest.approx(whole.predicted, rel=1e-14)
    with pytest.raises(ValueError, match="same bins"):
        _ = whole + calibration(y, p, 3)


def test_a_calibrated_model_is_covered_at_its_level(rng):
    """Of 400 intervals at 90 % at least 90 % hold the truth, three standard errors allowed."""
    held = []
    for _ in range(40):
        p = rng.random(300)
        result = calibration((rng.random(300) < p).astype(int), p, 10, "uniform", 0.9)
        low, high = result.interval
        middle = (result.edges[:-1] + result.edges[1:]) / 2  # P(y = 1 | bin) for uniform p
        held += ((low <= middle) & (middle <= high))[result.count > 0].tolist()
    assert np.mean(held) >= 0.9 - 3 * math.sqrt(0.09 / len(held))


# ---- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: log_loss([0, 1], [0.5, 1.5]), ValueError, r"in \[0, 1\]. Row 1 has 1.5"),
        (lambda: log_loss([0, 1], [[0.5, 0.5], [0.9, 0.3]]), ValueError, "Row 1 adds up to 1.2"),
        (lambda: log_loss([0, 1], [0.5, math.nan]), ValueError, "y_proba has no value in row 1"),
        (lambda: log_loss([0, 1], [[0.5, 0.5], [math.nan, 1.0]]), ValueError, "Row 1 has"),
        (lambda: log_loss([1, 1], [0.5, 0.5]), ValueError, r"1 classes \[1\], but y_proba is for 2. Name all classes"),
        (lambda: log_loss([0, 1, 2], [0.5, 0.5, 0.5]), ValueError, "3 classes"),
        (lambda: log_loss([0, 1], [[0.2, 0.3, 0.5]] * 2), ValueError, "2 classes"),
        (lambda: log_loss(["b", "a"], [[0.5, 0.5]] * 2, labels=["b", "a"]), ValueError, "sorted order"),
        (lambda: log_loss([0, 5], [0.5, 0.5], labels=[0, 1]), ValueError, "Row 1 of y_true is 5"),
        (lambda: log_loss([0, 1], [0.5]), ValueError, "y_proba has 1 rows but y_true has 2"),
        (lambda: log_loss([0, 1], [0.5, 0.5], clip=0.5), ValueError, "clip must be"),
        (lambda: log_loss([], []), ValueError, "y_true is empty"),
        (lambda: log_loss([0, 1], ["x", "y"]), TypeError, "y_proba must be numbers"),
        (lambda: brier_score_loss(["a", "b"], [0.5, 0.5]), ValueError, "Say with pos_label"),
        (lambda: brier_score_loss(["a", "b"], [0.5, 0.5], pos_label="c"), ValueError, "pos_label='c' is not one"),
        (lambda: brier_score_loss([0, 1, 2], [0.5] * 3), ValueError, "3 classes and the probabilities are 1-D"),
        (lambda: brier_score_loss([0, 1], [0.5] * 2, labels=[0, 1]), ValueError, "Use pos_label"),
        (lambda: brier_score_loss([0, 1], [[0.5, 0.5]] * 2, pos_label=1), ValueError, "use labels"),
        (lambda: calibration([0, 1], [0.5, 0.5], 0), ValueError, "bins must be a whole number"),
        (lambda: calibration([0, 1], [0.5, 0.5], [0, 0.5, 0.5, 1]), ValueError, "must rise from 0 to 1"),
        (lambda: calibration([0, 1], [0.5, 0.5], [0, 0.5]), ValueError, "must rise from 0 to 1"),
        (lambda: calibration([0, 1], [0.5, 0.5], strategy="kmeans"), ValueError, "strategy must be"),
        (lambda: calibration([0, 1], [0.5, 0.5], level=0), ValueError, "level must be"),
        (lambda: calibration([0, 1], [0.5, 0.5], sample_weight=[1]), ValueError, "sample_weight has 1 rows"),
    ],
)  # fmt: skip
def test_what_cannot_be_scored_is_refused_with_a_reason(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_one_class_is_enough_for_a_square(rng):
    assert float(brier_score_loss([0, 0], [0.5, 0.0])) == 0.125
    assert positives([0, 0], [0.1, 0.2])[0].tolist() == [0.0, 0.0]
    assert positives(["a", "b"], [0.1, 0.2], "a")[0].tolist() == [1.0, 0.0]
