"""Errors of predicted numbers: exact fractions and scikit-learn to 1e-12; sizes near the ends of float64."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial, reduce
from operator import add

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import metrics

from certifit.evaluation.metrics.errors import (
    MeanLoss,
    Spread,
    d2_tweedie_score,
    explained_variance_score,
    mean_absolute_error,
    mean_gamma_deviance,
    mean_poisson_deviance,
    mean_squared_error,
    mean_tweedie_deviance,
    r2_score,
    root_mean_squared_error,
    unit_deviance,
)
from certifit.evaluation.metrics.intervals import bootstrap_interval, drawn_rows, generator

SCORES = {
    "mse": (mean_squared_error, metrics.mean_squared_error, {}),
    "rmse": (root_mean_squared_error, metrics.root_mean_squared_error, {}),
    "mae": (mean_absolute_error, metrics.mean_absolute_error, {}),
    "r2": (r2_score, metrics.r2_score, {}),
    "explained": (explained_variance_score, metrics.explained_variance_score, {}),
    "poisson": (mean_poisson_deviance, metrics.mean_poisson_deviance, {}),
    "gamma": (mean_gamma_deviance, metrics.mean_gamma_deviance, {}),
    **{
        f"tweedie {power}": (mean_tweedie_deviance, metrics.mean_tweedie_deviance, {"power": power})
        for power in (-1.5, 0, 1, 1.5, 2, 3, 4.5)
    },
    **{f"d2 {power}": (d2_tweedie_score, metrics.d2_tweedie_score, {"power": power}) for power in (0, 1, 1.5, 2, 3)},
}
SCALE_FREE = ("r2", "explained")


def drawn(rng, n=500):
    y = rng.gamma(2.0, 3.0, n)
    return y, y * rng.gamma(4.0, 0.25, n)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", SCORES)
def test_scores_are_those_of_scikit_learn(rng, name, weighted):
    y, p = drawn(rng)
    ours, theirs, options = SCORES[name]
    weight = rng.random(len(y)) * (rng.random(len(y)) < 0.8) if weighted else None
    expected = theirs(y, p, sample_weight=weight, **options)
    assert float(ours(y, p, sample_weight=weight, **options)) == pytest.approx(expected, rel=1e-12)


def test_poisson_takes_zero_counts_as_scikit_learn_does(rng):
    y, p = rng.poisson(0.7, 300), rng.gamma(2.0, 0.3, 300)
    assert float(mean_poisson_deviance(y, p)) == pytest.approx(metrics.mean_poisson_deviance(y, p), rel=1e-12)
    tweedie = metrics.mean_tweedie_deviance(y, p, power=1.3)
    assert float(mean_tweedie_deviance(y, p, power=1.3)) == pytest.approx(tweedie, rel=1e-12)


def test_squares_and_r2_are_those_of_exact_fractions(rng):
    y = 1e8 + rng.normal(size=60)  # an offset that raw sums of squares would not survive
    p = y + rng.normal(size=60)
    weight = rng.integers(1, 5, 60)
    Y, P, W = ([Fraction(float(v)) for v in values] for values in (y, p, weight))
    total = sum(W)
    mean = sum(w * v for w, v in zip(W, Y, strict=True)) / total
    sse = sum(w * (a - b) ** 2 for w, a, b in zip(W, Y, P, strict=True))
    spread = sum(w * (a - mean) ** 2 for w, a in zip(W, Y, strict=True))
    assert float(mean_squared_error(y, p, sample_weight=weight)) == pytest.approx(float(sse / total), rel=1e-14)
    assert float(r2_score(y, p, sample_weight=weight)) == pytest.approx(float(1 - sse / spread), rel=1e-13)


@pytest.mark.parametrize("name", [n for n in SCORES if n not in ("tweedie 4.5", "tweedie -1.5")])
def test_weight_two_is_the_row_twice(rng, name):
    y, p = drawn(rng, 80)
    weight = rng.integers(0, 3, 80)
    ours, _, options = SCORES[name]
    twice = float(ours(np.repeat(y, weight), np.repeat(p, weight), **options))
    assert float(ours(y, p, sample_weight=weight, **options)) == pytest.approx(twice, rel=1e-13)


@pytest.mark.parametrize("kind", [list, pd.Series, pl.Series])
def test_every_kind_of_column_is_scored(rng, kind):
    y, p = drawn(rng, 20)
    assert float(r2_score(kind(y), kind(p))) == float(r2_score(y, p))
    assert float(mean_squared_error(np.array([0, 255], dtype=np.uint8), np.array([255, 0], dtype=np.uint8))) == 255**2


# ---- sizes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2.0**-1000, 2.0**-600, 2.0**600, 2.0**1000])
@pytest.mark.parametrize("name", SCALE_FREE)
def test_scale_free_scores_survive_any_size(rng, name, size):
    y, p = drawn(rng, 50)
    ours, _, options = SCORES[name]
    assert float(ours(y * size, p * size, **options)) == pytest.approx(float(ours(y, p, **options)), rel=1e-13)


@pytest.mark.parametrize("size", [2.0**-1000, 2.0**1000])
def test_errors_in_units_of_y_survive_any_size(rng, size):
    y, p = drawn(rng, 50)
    for score in (root_mean_squared_error, mean_absolute_error):
        assert float(score(y * size, p * size)) == pytest.approx(float(score(y, p)) * size, rel=1e-13)


def test_differences_beyond_float64_are_scored():
    y, p = np.array([1.7e308, -1.7e308, 1e308]), np.array([-1.7e308, 1.7e308, 1e308])
    assert float(r2_score(y, p)) == pytest.approx(float(r2_score(y / 4, p / 4)), rel=1e-14)
    assert float(explained_variance_score(y, p)) == pytest.approx(
        float(explained_variance_score(y / 4, p / 4)), rel=1e-14
    )
    assert math.isinf(mean_squared_error(y, p)) and "beyond float64" in mean_squared_error(y, p).sentence
    assert float(mean_absolute_error([1e308] * 4, [0.0] * 4)) == pytest.approx(1e308, rel=1e-15)


@pytest.mark.parametrize("power", [1, 2])
def test_deviances_keep_their_digits_near_the_truth(power):
    """d(y, y + e) = e^2 / y^power (1 - ...): the plain formula has no digit left at e = 1e-9 y."""
    y = np.array([3.0])
    for step in (1e-3, 1e-6, 1e-9):
        p = y * (1 + step)
        e = Fraction(float(p[0])) - 3
        u = e / 3 if power == 1 else -e / (3 + e)
        # 2 y (u - log(1 + u)) or 2 (v - log(1 + v)), by the series of the logarithm in exact fractions
        exact = 2 * (3 if power == 1 else 1) * sum((-1) ** k * u**k / k for k in range(2, 12))
        assert unit_deviance(y, p, power)[0] == pytest.approx(float(exact), rel=1e-13)


def test_far_deviances_do_not_overflow():
    assert unit_deviance(np.array([1e-300]), np.array([1e300]), 1)[0] == pytest.approx(2e300, rel=1e-14)
    far = 2 * 1e300 * (math.log(1e300) - math.log(1e-300) - 1)
    assert unit_deviance(np.array([1e300]), np.array([1e-300]), 1)[0] == pytest.approx(far, rel=1e-14)
    assert unit_deviance(np.array([0.0]), np.array([1e-300]), 1)[0] == 2e-300


# ---- what is added --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cuts", [[250], [1, 2, 400], [100, 200, 300, 400]])
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_add_to_the_whole(rng, cuts, weighted):
    values = rng.normal(size=500) * 10.0 ** rng.integers(-3, 4, 500) + 1e5
    weight = rng.random(500) if weighted else None
    parts = np.split(np.arange(500), cuts)
    for kind in (MeanLoss, Spread):
        whole = kind.of(values, weight)
        blocks = [kind.of(values[rows], None if weight is None else weight[rows]) for rows in parts]
        for merged in (reduce(add, blocks), reduce(add, reversed(blocks))):
            assert (merged.mean, merged.weight) == pytest.approx((whole.mean, whole.weight), rel=1e-14)
            assert kind is MeanLoss or merged.squares == pytest.approx(whole.squares, rel=1e-13)


@pytest.mark.parametrize("sizes", [(1e300, 1.0), (1e-300, 0.0), (1e-300, 1e-290), (1e200, 1e300), (0.0, 0.0)])
def test_blocks_of_unlike_size_add(rng, sizes):
    blocks = [rng.normal(size=50) * size for size in sizes]
    merged, whole = reduce(add, map(Spread.of, blocks)), Spread.of(np.concatenate(blocks))
    assert merged.root_mean_square == pytest.approx(whole.root_mean_square, rel=1e-13)
    assert merged.root_mean_square > 0 or not any(sizes)


# ---- edges ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", [r2_score, explained_variance_score])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e300])
def test_constant_y_is_scored_as_stated(score, value):
    y = [value] * 7
    assert float(score(y, y)) == 1.0 and "y is constant" in score(y, y, n_resamples=10).sentence
    assert float(score([7.7, *y], [0.0, *y], sample_weight=[0.0] + [0.3] * 7)) == 1.0  # a row that weighs nothing
    assert float(score(y, [value] * 6 + [value + 1 + value])) == 0.0
    assert math.isnan(score(y, y, force_finite=False))
    assert float(score(y, [value] * 6 + [value + 1 + value], force_finite=False)) == -math.inf


def test_one_row_has_no_r2_and_says_so():
    for score in (r2_score, explained_variance_score, d2_tweedie_score):
        estimate = score([1.0], [1.0])
        assert math.isnan(estimate) and ("one row" in estimate.sentence or "y is constant" in estimate.sentence)
    assert math.isnan(d2_tweedie_score([0.0, 0.0], [1.0, 2.0], power=1))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: mean_poisson_deviance([1.0, -2.0], [1.0, 1.0]), ValueError, "Poisson deviance needs y_true >= 0"),
        (lambda: mean_gamma_deviance([1.0, 0.0], [1.0, 1.0]), ValueError, "needs y_true > 0. Row 1 is 0"),
        (lambda: mean_poisson_deviance([1.0, 2.0], [0.0, 1.0]), ValueError, "needs y_pred > 0. Row 0 is 0"),
        (lambda: mean_tweedie_deviance([1.0], [1.0], power=0.5), ValueError, "no Tweedie family lies between"),
        (lambda: mean_squared_error([1.0, 2.0], [1.0]), ValueError, "y_pred has 1 rows but y_true has 2"),
        (lambda: mean_squared_error([1.0, math.nan], [1.0, 2.0]), ValueError, "y_true has no value in row 1"),
        (lambda: mean_squared_error([], []), ValueError, "y_true is empty"),
        (lambda: mean_squared_error(["a"], ["b"]), TypeError, "y_true must be numbers"),
        (lambda: r2_score([[1.0, 2.0]], [[1.0, 2.0]]), ValueError, "1-D"),
        (lambda: r2_score([1.0, 2.0], [1.0, 2.0], n_resamples=-1), ValueError, "n_resamples must be"),
        (lambda: r2_score([1.0, 2.0], [1.0, 2.0], level=5), ValueError, "level must be"),
    ],
)  # fmt: skip
def test_what_cannot_be_scored_is_refused_with_a_reason(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ---- intervals ------------------------------------------------------------------------------------------------------


def log_error(name, score, y, p, weight):
    """log of what is bounded below by 0: the error, its square, or the share that is not explained."""
    value = float(score(y, p, sample_weight=weight))
    if "r2" in name or "d2" in name or "explained" in name:
        return math.log(1 - value)
    return (2 if name == "rmse" else 1) * math.log(value)


def spread_of(name, score, y, p, weight):
    """Standard error to first order: how the logarithm moves with the weight of each row, by differences."""
    step = 1e-5
    moves = []
    for i in range(len(y)):
        up, down = weight.copy(), weight.copy()
        up[i] *= 1 + step
        down[i] *= 1 - step
        ends = [log_error(name, score, y, p, each) for each in (up, down)]
        moves.append((ends[0] - ends[1]) / (2 * step))
    return math.sqrt(len(y) / (len(y) - 1) * np.sum(np.square(moves)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", SCORES)
@pytest.mark.slow
def test_an_interval_is_the_studentised_bootstrap_of_the_score(rng, name, weighted):
    """Against the score called on rows resampled in the test itself, drawn by the same generator."""
    n = 40
    y, p = drawn(rng, n)
    weight = rng.uniform(0.5, 1, n) if weighted else np.ones(n)
    ours, _, options = SCORES[name]
    score = partial(ours, **options)
    estimate = score(y, p, sample_weight=weight if weighted else None, n_resamples=10, level=0.5, random_state=5)
    centre, spread = log_error(name, score, y, p, weight), spread_of(name, score, y, p, weight)
    t = []
    for b in range(10):
        rows = drawn_rows(n, generator(5, b))
        part = (y[rows], p[rows], weight[rows])
        t.append((log_error(name, score, *part) - centre) / spread_of(name, score, *part))
    counted = weight.sum() ** 2 / (weight**2).sum()
    wide = math.sqrt(counted / (counted - 1)) * spread
    ends = [centre - wide * np.quantile(t, 0.75, method="higher"), centre - wide * np.quantile(t, 0.25, method="lower")]
    found = [log_end(name, end) for end in (estimate.low, estimate.high)]
    assert sorted(found) == pytest.approx(ends, rel=1e-5, abs=1e-5)
    assert "independent" in estimate.sentence and estimate.method == "studentised bootstrap"


def log_end(name, value):
    if "r2" in name or "d2" in name or "explained" in name:
        return math.log(1 - value)
    return (2 if name == "rmse" else 1) * math.log(value)


def test_few_rows_have_no_interval_and_the_sentence_says_so(rng):
    y = rng.normal(size=14)
    found = mean_squared_error(y, np.zeros(14), n_resamples=100)
    assert found.low is None and found.sentence.startswith("Too few rows for this interval: it needs 15")
    weight = np.r_[np.ones(10), np.full(90, 1e-6)]  # a hundred rows, but ten that count
    many = mean_squared_error(rng.normal(size=100), np.zeros(100), sample_weight=weight, n_resamples=100)
    assert many.low is None and "by their weights" in many.sentence
    assert mean_squared_error(np.arange(20.0), np.arange(20.0), n_resamples=100).sentence.endswith("every error is 0.")


def test_an_interval_knows_no_unit(rng):
    y, p = rng.normal(size=(2, 30))
    plain, large = (mean_squared_error(unit * y, unit * p, n_resamples=50) for unit in (1.0, 2.0**500))
    assert (large.low, large.high) == (plain.low * 2.0**1000, plain.high * 2.0**1000)


@pytest.mark.slow
def test_the_interval_covers_where_quantiles_of_resamples_do_not():
    """150 sets of 15 normal errors: 95 % intervals of their mean square."""
    covered = {"studentised": 0, "percentile": 0}
    for seed in range(150):
        errors = np.random.default_rng([7, seed]).normal(size=15)
        found = mean_squared_error(errors, np.zeros(15), n_resamples=199)
        plain = bootstrap_interval(lambda e: np.mean(e**2), errors, n_resamples=199, method="percentile")
        covered["studentised"] += found.low <= 1 <= found.high
        covered["percentile"] += plain.low <= 1 <= plain.high
    assert covered["studentised"] >= 0.92 * 150 and covered["percentile"] <= 0.90 * 150


def test_without_an_interval_the_sentence_says_how_to_get_one():
    assert "n_resamples=1000" in mean_squared_error([1.0, 2.0], [1.0, 3.0]).sentence
