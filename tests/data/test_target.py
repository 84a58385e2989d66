"""Counts, positive quantities and others are told apart by their values: the rules of certifit.data.target."""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy.stats import skew

import certifit as cf
from certifit.data.target import Shape, goal_of

RNG = np.random.default_rng(0)
CASES = {
    "claims": (RNG.poisson(0.1, 2000), "counts"),
    "visits": (RNG.poisson(RNG.gamma(1.0, 40.0, 2000)), "counts"),
    "rentals from 1 up": (1 + RNG.poisson(RNG.gamma(1.0, 40.0, 2000)), "counts"),
    "counts stored as fractions": (RNG.poisson(1.0, 2000).astype(float), "counts"),
    "symmetric whole numbers": (RNG.integers(0, 100, 2000), "quantity"),
    "grades": (RNG.integers(1, 6, 2000), "quantity"),
    "whole numbers far from 0": (17 + RNG.poisson(RNG.gamma(1.0, 4.0, 2000)), "quantity"),
    "whole prices": ((100_000 * RNG.lognormal(size=2000)).astype(int) + 1000, "positive"),
    "amounts": (RNG.lognormal(size=2000), "positive"),
    "amounts with a 0": (np.append(RNG.lognormal(size=2000), 0.0), "quantity"),
    "amounts with one below 0": (np.append(RNG.lognormal(size=2000), -0.1), "quantity"),
    "skewed on a narrow scale": (100 + RNG.lognormal(size=2000), "quantity"),
    "symmetric and positive": (RNG.uniform(0.01, 1.0, 2000), "quantity"),
    "normal": (RNG.normal(size=2000), "quantity"),
    "two whole numbers": (RNG.integers(0, 2, 2000), "classes"),
    "two whole numbers, rarely 1": (np.append(np.zeros(99), 1), "classes"),
    "one value": (np.zeros(10), "quantity"),
    "years": (pd.to_datetime(["2001-01-01", "2002-01-01", "2003-05-05"]), "quantity"),
}


def scan(y, **roles):
    return cf.from_arrow(pd.DataFrame({"x": np.arange(len(y)), "y": y, "e": 1.5}), "y", **roles)


@pytest.mark.parametrize("case", CASES)
def test_the_values_of_a_target_say_what_it_is(case):
    y, name = CASES[case]
    task = goal_of(scan(y))
    assert task.name == name
    assert task.sentence.startswith("'y' ")
    assert ("--task" in task.sentence) == (name in ("counts", "positive", "classes") or case == "grades")


@pytest.mark.parametrize("case", ["symmetric whole numbers", "two whole numbers", "whole numbers far from 0"])
def test_whole_numbers_with_an_exposure_are_counts(case):
    task = goal_of(scan(CASES[case][0], exposure="e"))
    assert task.name == "counts" and "has an exposure: counts" in task.sentence
    assert ("--task classes" in task.sentence) == (case == "two whole numbers")


@pytest.mark.parametrize("case", ["amounts", "normal", "amounts with one below 0"])
def test_an_exposure_makes_no_counts_of_fractions(case):
    assert goal_of(scan(CASES[case][0], exposure="e")).name == CASES[case][1]


def test_an_offset_makes_no_counts_of_two_classes():
    assert goal_of(scan(CASES["two whole numbers"][0], offset="e")).name == "classes"


def test_every_source_says_the_same(tmp_path):
    table = pd.DataFrame({"x": range(2000), "y": CASES["claims"][0]})
    table.to_csv(tmp_path / "a.csv", index=False)
    sources = (
        cf.from_arrow(table, target="y"),
        cf.scan_csv(tmp_path / "a.csv", target="y"),
        cf.from_dask(dd.from_pandas(table, npartitions=3), target="y"),
    )
    assert len({goal_of(source).sentence for source in sources}) == 1


def test_rows_of_weight_zero_do_not_say_what_the_target_is():
    table = pd.DataFrame({"y": [*CASES["claims"][0], -5.5], "x": 1.0, "w": [*np.ones(2000), 0.0]})
    assert goal_of(cf.from_arrow(table, "y", "w")).name == "counts"


def test_the_skewness_of_parts_is_that_of_all(rng):
    y = rng.lognormal(size=999)
    parts = [Shape.of(cf.from_arrow(pd.DataFrame({"y": part})).first_block().X["y"].chunk(0)) for part in (
        y[:1], y[1:400], y[400:]
    )]  # fmt: skip
    whole = sum(parts, Shape())
    assert whole.skewness == pytest.approx(skew(y), rel=1e-12)
    assert (whole.n, whole.low, whole.high, whole.is_whole) == (999, y.min(), y.max(), False)
    assert whole.mean == pytest.approx(y.mean(), rel=1e-14)


@pytest.mark.parametrize("values", [[3.0] * 4, [1e300, 2e300, 9e300], [1.0, np.inf]])
def test_numbers_without_a_skewness_are_a_quantity(values):
    assert goal_of(scan(values)).name == "quantity"


REAL = {
    "rentals by the hour": ("bike_sharing/bike_sharing.parquet", {"target": "cnt"}, "counts"),
    "claims": ("fremtpl2/freq.parquet", {"target": "ClaimNb", "exposure": "Exposure"}, "counts"),
    "claims, no exposure": ("fremtpl2/freq.parquet", {"target": "ClaimNb"}, "counts"),
    "amounts of claims": ("fremtpl2/sev.parquet", {"target": "ClaimAmount"}, "positive"),
    "prices": ("ames_housing/ames_housing.parquet", {"target": "Sale_Price"}, "positive"),
    "grades of wine": ("wine_quality/wine_quality.parquet", {"target": "quality"}, "quantity"),
    "income": ("adult/adult.parquet", {"target": "income"}, "classes"),
    "credit": ("german_credit/german_credit.parquet", {"target": "class"}, "classes"),
}


@pytest.mark.parametrize("case", REAL)
def test_real_targets_are_what_they_are_known_as(case, shared_data):
    file, roles, name = REAL[case]
    assert goal_of(cf.scan_parquet(shared_data / file, **roles)).name == name
