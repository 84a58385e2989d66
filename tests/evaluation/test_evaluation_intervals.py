"""Estimates, Clopper-Pearson, the bootstrap, and the rows they take."""

from __future__ import annotations

import copy
import json
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

from certifit.evaluation.metrics.intervals import (
    Estimate,
    bootstrap_interval,
    clopper_pearson,
    drawn_rows,
    generator,
    share,
)
from certifit.evaluation.metrics.rows import codes, column, numbers, row_weights

LEVELS = (0.5, 0.9, 0.95, 0.999)


def test_an_estimate_is_a_float_everywhere():
    estimate = Estimate(0.25, 0.1, 0.4, method="Clopper-Pearson")
    assert isinstance(estimate, float)
    assert estimate == 0.25 and hash(estimate) == hash(0.25)
    assert json.dumps({"score": estimate}) == '{"score": 0.25}'
    assert np.array([estimate]).dtype == np.float64
    assert str(estimate) == "0.25" and f"{estimate:.1f}" == "0.2"
    assert type(estimate + 1) is float


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_an_estimate_survives_copies(copied):
    estimate = Estimate(0.25, 0.1, 0.4, level=0.9, method="m", sentence="s")
    twin = copied(estimate)
    parts = [(e.low, e.high, e.level, e.method, e.sentence, float(e), repr(e)) for e in (estimate, twin)]
    assert parts[0] == parts[1]


def test_the_repr_shows_the_interval_and_the_method():
    assert repr(Estimate(0.5, 0.25, 0.75, level=0.9, method="M")) == "Estimate(0.5, 90 % interval [0.25, 0.75], M)"
    assert repr(Estimate(0.5)) == "Estimate(0.5, no interval)"


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, math.nan])
def test_a_level_outside_0_and_1_is_refused(level):
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        clopper_pearson(1, 2, level)


def test_half_an_interval_is_refused():
    with pytest.raises(ValueError, match="two ends"):
        Estimate(0.5, 0.1)


# ---- Clopper-Pearson ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n", [1, 2, 3, 10, 37, 200])
@pytest.mark.slow
def test_clopper_pearson_covers_at_least_its_level_for_every_share(n, level):
    """Coverage summed over the binomial, on a grid and just inside and outside every end, where it is least."""
    k = np.arange(n + 1)
    low, high = clopper_pearson(k, np.full(n + 1, n), level)
    ends = np.concatenate([low, high])
    shares = np.concatenate([np.linspace(0, 1, 501), ends * (1 - 1e-9), ends * (1 + 1e-9)])
    for p in np.clip(shares, 0, 1):
        covered = stats.binom.pmf(k, n, p)[(low <= p) & (p <= high)].sum()
        assert covered >= level - 1e-7  # the offset 1e-9 of p moves a tail of 200 rows by less


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n", [1, 5, 100, 10_000, 10**8])
def test_an_end_has_the_stated_tail_beyond_the_count(n, level):
    k = np.unique(np.clip([0, 1, 2, n // 3, n - 2, n - 1, n], 0, n))
    low, high = clopper_pearson(k, np.full(len(k), n), level)
    tail = (1 - level) / 2
    assert stats.binom.sf(k[k > 0] - 1, n, low[k > 0]) == pytest.approx(tail, rel=1e-4)
    assert stats.binom.cdf(k[k < n], n, high[k < n]) == pytest.approx(tail, rel=1e-4)
    assert low[0] == 0 and high[-1] == 1
    assert (low <= k / n).all() and (k / n <= high).all()


@pytest.mark.parametrize("count, n", [(0, 9), (3, 9), (9, 9), (55, 1234)])
def test_clopper_pearson_is_that_of_scipy(count, n):
    theirs = stats.binomtest(count, n).proportion_ci(0.9, method="exact")
    assert clopper_pearson(count, n, 0.9) == pytest.approx((theirs.low, theirs.high), rel=1e-10)


@pytest.mark.parametrize("errors, n", [(-1, 5), (6, 5), (0, 0), (1.5, 5), (1, 10**12), (math.nan, 5)])
def test_counts_that_are_none_are_refused(errors, n):
    with pytest.raises(ValueError, match="whole numbers"):
        clopper_pearson(errors, n)


def test_a_share_with_a_reason_has_no_interval():
    assert share(1, 4).method == "Clopper-Pearson"
    bare = share(1, 4, reason="No interval: weights.")
    assert bare == 0.25 and bare.low is None and bare.sentence == "No interval: weights."


# ---- bootstrap ------------------------------------------------------------------------------------------------------


def test_a_replicate_depends_on_its_number_and_the_seed_alone():
    y = np.sqrt(np.arange(50.0))
    values: dict[int, list[float]] = {}
    for n_resamples in (5, 20):
        seen: list[float] = []
        bootstrap_interval(
            lambda v, seen=seen: seen.append(v.sum()) or v.mean(), y, n_resamples=n_resamples, method="percentile"
        )
        values[n_resamples] = seen[1:]  # the first call is of all rows
    assert values[20][:5] == values[5]
    assert len(set(values[20])) == 20
    assert (drawn_rows(50, generator(3, 7)) == drawn_rows(50, generator(3, 7))).all()
    assert (drawn_rows(50, generator(3, 7)) != drawn_rows(50, generator(4, 7))).any()


@pytest.mark.parametrize("method", ["percentile", "bca", "expanded"])
def test_the_interval_of_a_mean_is_near_its_normal_one(rng, method):
    y = rng.normal(size=4000)
    estimate = bootstrap_interval(np.mean, y, n_resamples=2000, method=method)
    half = 1.96 * y.std() / math.sqrt(len(y))
    assert estimate == y.mean()
    assert (estimate.low, estimate.high) == pytest.approx((y.mean() - half, y.mean() + half), abs=0.15 * half)
    assert "not guaranteed" in estimate.sentence


@pytest.mark.slow
def test_bca_is_that_of_scipy_up_to_chance(rng):
    y = rng.exponential(size=60)
    ours = bootstrap_interval(np.var, y, n_resamples=20_000, method="bca")
    draws = np.random.default_rng(1)
    theirs = stats.bootstrap((y,), np.var, n_resamples=20_000, method="BCa", random_state=draws).confidence_interval
    plain = bootstrap_interval(np.var, y, n_resamples=20_000, method="percentile")
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=0.03)
    assert abs(plain.high - theirs.high) > 3 * abs(ours.high - theirs.high)  # the correction is not the plain interval


def test_expanded_ends_are_those_of_a_wider_level(rng):
    """n = 12: Student's quantile with 11 degrees of freedom, times sqrt(12 / 11), in the place of the normal one."""
    y = rng.exponential(size=12)
    tail = stats.norm.cdf(-math.sqrt(12 / 11) * stats.t.ppf(0.975, 11))
    ours = bootstrap_interval(np.mean, y, n_resamples=500)
    wider = bootstrap_interval(np.mean, y, n_resamples=500, level=1 - 2 * tail, method="bca")
    assert (ours.low, ours.high) == pytest.approx((wider.low, wider.high), rel=1e-9)


def test_the_arrays_are_resampled_together(rng):
    y = rng.normal(size=100)
    estimate = bootstrap_interval(lambda a, b: float(np.abs(a - b).max()), y, pd.Series(y), n_resamples=20)
    assert (float(estimate), estimate.low, estimate.high) == (0.0, 0.0, 0.0)


def test_resamples_without_a_value_are_counted():
    y = np.array([0.0] * 5 + [1.0])
    estimate = bootstrap_interval(lambda v: v.mean() if v.any() else math.nan, y, n_resamples=200)
    lost = int(estimate.sentence.split("guaranteed. ")[1].split()[0])
    assert estimate.low is not None and 20 < lost < 120  # (5/6)^6 of 200 is 67


def test_no_interval_where_the_value_has_none():
    assert bootstrap_interval(lambda v: math.inf, [1.0, 2.0], n_resamples=5).low is None
    assert bootstrap_interval(lambda v: -float(len(set(v))), np.arange(9.0), n_resamples=50, method="bca").low is None


@pytest.mark.parametrize(
    "options, message",
    [
        ({"n_resamples": 1}, "n_resamples must be"),
        ({"random_state": None}, "random_state must be"),
        ({"random_state": -1}, "random_state must be"),
        ({"method": "studentized"}, "method must be 'expanded', 'bca' or 'percentile'"),
    ],
)
def test_options_of_the_bootstrap_that_are_none_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        bootstrap_interval(np.mean, [1.0, 2.0], **options)


# ---- rows -----------------------------------------------------------------------------------------------------------

KINDS = {
    "list": list,
    "tuple": tuple,
    "numpy": np.array,
    "column": lambda v: np.array(v)[:, None],
    "pandas": pd.Series,
    "polars": pl.Series,
    "arrow": pa.array,
    "object": lambda v: np.array(v, dtype=object),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_column_gives_the_same_rows(kind):
    assert numbers(KINDS[kind]([1.5, 2.0, -3.0]), "y").tolist() == [1.5, 2.0, -3.0]
    known, (place,) = codes({"y": column(KINDS[kind](["b", "a", "b"]), "y")})
    assert known == ("a", "b") and place.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 2.0, math.nan],
        ["a", "b", None],
        ["a", "b", math.nan],
        pd.Series([1, 2, None], dtype="Int64"),
        pd.Series(["a", "b", None], dtype="category"),
        pl.Series([1, 2, None]),
        pa.array(["a", "b", None]),
        np.array([1, 2, pd.NA], dtype=object),
        np.array(["2020-01-01", "2020-01-02", "NaT"], dtype="datetime64[D]"),
    ],
    ids=str,
)
def test_a_missing_value_is_named_by_its_row(values):
    with pytest.raises(ValueError, match="y has no value in row 2"):
        column(values, "y")


@pytest.mark.parametrize(
    "values, error, message",
    [
        ([], ValueError, "y is empty"),
        ([[1, 2], [3, 4]], ValueError, r"1-D, one value per row. Got shape \(2, 2\)"),
        (["1", "2"], TypeError, "y must be numbers"),
        ([1.0, math.inf], ValueError, "y must be finite. Row 1 is inf"),
        ([1j], TypeError, "y must be numbers"),
        (np.ma.array([1.0, 2.0], mask=[0, 1]), TypeError, "masked array"),
    ],
)
def test_what_is_no_column_of_numbers_is_refused(values, error, message):
    with pytest.raises(error, match=message):
        numbers(values, "y")


@pytest.mark.parametrize(
    "weight, message",
    [
        ([1.0, -2.0], "Row 1 is -2"),
        ([0, 0], "zero for every row"),
        ([1.0], "sample_weight has 1 rows but y_true has 2"),
    ],
)
def test_weights_that_are_none_are_refused(weight, message):
    with pytest.raises(ValueError, match=message):
        row_weights(weight, 2)


@pytest.mark.parametrize(
    "values, expected",
    [
        ([3, -1, 3], (-1, 3)),
        (np.array([2**63, 0], dtype=np.uint64), (0, 2**63)),
        ([10**9, 0], (0, 10**9)),
        ([True, False], (False, True)),
        ([1.5, -0.5], (-0.5, 1.5)),
        (np.array(["2021-01-02", "2020-01-01"], dtype="datetime64[ns]"), None),
    ],
)
def test_classes_are_sorted_and_rows_point_at_them(values, expected):
    array = column(values, "y")
    known, (place,) = codes({"y": array})
    assert [known[i] for i in place] == (array.tolist() if expected else list(array))
    assert expected is None or known == expected
    assert list(known) == sorted(known)


def test_texts_and_numbers_do_not_mix():
    with pytest.raises(TypeError, match="Labels of types int, str have no order"):
        codes({"y": column([1, "a"], "y")})


def test_labels_must_be_distinct_and_known():
    with pytest.raises(ValueError, match="distinct"):
        codes({"y": column([1], "y")}, [1, 1])
    with pytest.raises(ValueError, match=r"Row 2 of y is 5, which is not one of the labels \[1, 2\]"):
        codes({"y": column([1, 2, 5], "y")}, [1, 2])
    with pytest.raises(ValueError, match="Row 1 of y is 'c'"):
        codes({"y": column(["a", "c"], "y")}, ["a", "b"])


@pytest.mark.parametrize("kind", ["numpy", "object"])
def test_many_texts_are_found_apart_as_few_are(kind):
    texts = np.random.default_rng(2).choice(["no", "yes", ""], 12_000).tolist()
    known, (place,) = codes({"y": column(KINDS[kind](texts), "y")})
    assert known == ("", "no", "yes") and [known[i] for i in place] == texts
    texts[11_000] = "what"
    with pytest.raises(ValueError, match="Row 11000 of y is 'what'"):
        codes({"y": column(KINDS[kind](texts), "y")}, ["no", "yes", ""])


def test_many_labels_of_two_types_do_not_mix():
    with pytest.raises(TypeError, match="Labels of types int, str have no order"):
        codes({"y": column(np.array([1, "a"] * 6000, dtype=object), "y")})
