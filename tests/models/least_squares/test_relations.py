"""Relations that hold but for rounding, in columns as people make them: found, named, and of no harm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from chunks import batches, memory
from sklearn.preprocessing import SplineTransformer

import certifit as cf

N = 400


def splines(rng: np.random.Generator) -> Any:
    """scikit-learn's default bases of three columns with long tails, as of prices: rows of each sum to 1 +- 1 ulp."""
    return SplineTransformer().fit_transform(np.round(rng.lognormal(size=(N, 3)), 2))


def shares(rng: np.random.Generator) -> Any:
    """Parts of a whole, the smallest of them a thousandth."""
    parts = rng.gamma([2.0, 3.0, 4.0, 1.0], size=(N, 4)) * [1, 1, 1, 1e-3]
    return parts / parts.sum(axis=1)[:, None]


def degrees(rng: np.random.Generator) -> Any:
    """Celsius and Fahrenheit, each the nearest float64 but one, beside another column."""
    celsius = np.round(rng.normal(12, 9, N), 1)
    return np.c_[celsius, np.nextafter(9 / 5 * celsius + 32, np.inf), rng.normal(size=N)]


def projection(X: Any, y: Any, weight: Any = None) -> Any:
    """Of y on the columns and 1: in units of their size, directions that only rounding has left out."""
    root = np.ones(len(y)) if weight is None else np.sqrt(weight)
    columns = np.c_[np.ones(len(y)), X]
    scale = np.linalg.norm(columns * root[:, None], axis=0)
    units, sizes, _ = np.linalg.svd(columns * root[:, None] / scale, full_matrices=False)
    units = units[:, sizes > 1e-7 * sizes[0]]
    best = units @ (units.T @ (y * root))
    return (best + units @ (units.T @ (y * root - best))) / root


@pytest.mark.parametrize("make", [splines, shares, degrees])
@pytest.mark.parametrize("kind", ["plain", "weighted", "streamed"])
def test_predictions_are_the_projection_and_every_relation_is_named(make, kind, tmp_path):
    for number in range(6):
        rng = np.random.default_rng(number)
        X, y = make(rng), rng.normal(size=N)
        weight = rng.integers(1, 4, N).astype(float) if kind == "weighted" else None
        model = cf.LinearRegression().fit(X, y, weight)
        found = model.certificate_
        assert found.holds and len(found.dependent) == X.shape[1] - model.rank_ >= (3 if make is splines else 1)
        assert model.predict(X) == pytest.approx(projection(X, y, weight), abs=1e-9)
        if kind == "streamed":
            other = cf.LinearRegression().fit(batches(X, y, block_rows=128, cuts=[7, 300]))
            model = cf.LinearRegression().fit(memory(X, y, block_rows=128))
            assert np.array_equal(other.coef_, model.coef_) and other.intercept_ == model.intercept_
    cf.save(model, tmp_path / "model")
    assert cf.verify(cf.load(tmp_path / "model"), X, y, sample_weight=weight)


def weekdays(rng: np.random.Generator) -> Any:
    """A basis of more columns than there are days: in their order one is 1e7 times others."""
    return SplineTransformer(n_knots=8).fit_transform(np.c_[rng.integers(0, 7, N), rng.normal(size=N)])


def half_single(rng: np.random.Generator) -> Any:
    """Celsius rounded to float32 after Fahrenheit was made of it, beside columns of that type."""
    celsius, others = np.round(rng.normal(12, 9, N), 1), rng.integers(0, 250, size=(N, 3)).astype(np.float32)
    frame = pd.DataFrame({"C": celsius.astype(np.float32), "F": 9 / 5 * celsius + 32})
    return frame.assign(**dict(zip("abc", others.T, strict=True)))


@pytest.mark.parametrize("make", [weekdays, half_single])
def test_a_relation_is_found_in_whatever_order_and_types_its_columns_are(make):
    for number in range(6):
        rng = np.random.default_rng(number)
        X, y = make(rng), rng.normal(size=N)
        model = cf.LinearRegression().fit(X, y)
        assert model.certificate_.holds and len(model.certificate_.dependent) == X.shape[1] - model.rank_ >= 1
        assert model.predict(X) == pytest.approx(projection(np.asarray(X), y), abs=1e-5)


def single(rng: np.random.Generator) -> Any:
    """The same as float32, in a frame."""
    return pd.DataFrame(degrees(rng), columns=["C", "F", "other"]).astype({"C": np.float32, "F": np.float32})


def splines_with_gaps(rng: np.random.Generator) -> Any:
    """Bases, all missing in some rows, which every training set fills with its own means."""
    bases = pd.DataFrame(splines(rng), columns=list("abcdefghijklmnopqrstu"))
    bases.loc[rng.random(N) < 0.1] = np.nan
    return bases


@pytest.mark.parametrize("make", [splines, shares, degrees, single, splines_with_gaps])
def test_scores_of_folds_are_those_of_refits(make):
    model = cf.LinearRegression(encoder="auto" if make is splines_with_gaps else None)
    for number in range(4):
        rng = np.random.default_rng(number)
        X, y = make(rng), rng.normal(size=N)
        folds = [(np.arange(N) % 4 != k, np.arange(N) % 4 == k) for k in range(4)]
        found = cf.cross_validate(model, X, y, cv=[tuple(map(np.flatnonzero, fold)) for fold in folds])
        scores = [model.fit(X[train], y[train]).score(X[some], y[some]) for train, some in folds]
        assert found.route == "statistics" and found.validation == pytest.approx(scores, rel=1e-6)


@pytest.mark.parametrize("kind", ["array", "frame", "frame of several types", "table"])
def test_columns_of_type_float32_round_as_float32_does(kind):
    rng = np.random.default_rng(0)
    celsius = np.round(rng.normal(12, 9, N), 1)
    other, y = rng.normal(size=N), 0.3 * celsius + rng.normal(size=N)
    single = {"C": celsius.astype(np.float32), "F": (9 / 5 * celsius + 32).astype(np.float32)}
    frame = pd.DataFrame(single | {"other": other})
    frame = frame.astype(np.float32) if kind in ("array", "frame") else frame
    X = frame.to_numpy() if kind == "array" else frame
    model = cf.LinearRegression(encoder="auto" if kind == "table" else None).fit(X, y)
    found = model.certificate_
    assert found.holds and len(found.dependent) == 1 and found.dependent[0].endswith(" + 32")
    assert np.abs(model.coef_).max() < 2
    assert model.predict(X) == pytest.approx(projection(frame[["C", "other"]].to_numpy(float), y), abs=1e-5)
    far = cf.LinearRegression().fit(np.asarray(frame, dtype=np.float64), y)  # the type, not the values, tells
    assert far.certificate_.dependent == ()


def test_whole_numbers_have_no_rounding():
    rng = np.random.default_rng(0)
    start = 1.7e15 + rng.integers(0, 10**6, N)
    end = start + rng.integers(0, 2, N)
    found = cf.LinearRegression().fit(np.c_[start, end], rng.normal(size=N)).certificate_
    assert found.literal is None and "within" in found.dependent[0]


@pytest.mark.filterwarnings("ignore:NOT certified")
def test_a_relation_whose_roundings_the_target_follows_is_none():
    rng = np.random.default_rng(0)
    celsius = np.round(rng.normal(12, 9, N), 1)
    up = rng.integers(0, 2, N)
    X = np.c_[celsius, np.where(up, np.nextafter(1.8 * celsius + 32, np.inf), 1.8 * celsius + 32)]
    found = cf.LinearRegression().fit(X, 10.0 * up + rng.normal(size=N)).certificate_
    assert not found.holds and found.near == found.dependent and "x1 = 9/5 x0 + 32 within" in str(found)


def test_powers_of_a_column_are_no_relation():
    x = np.random.default_rng(0).uniform(-9, -3, 82)
    y = np.sin(x)
    model = cf.LinearRegression().fit(np.vander(x, 11)[:, :-1], y)
    assert model.certificate_.holds and model.certificate_.dependent == ()
