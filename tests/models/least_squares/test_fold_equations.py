"""Statistics of training and validation sets against those of the rows themselves, gaps included."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from folding import offered

import certifit as cf
from certifit.data.arrow import from_arrow
from certifit.data.cells import ByRow, Splits
from certifit.data.source import Memory
from certifit.models.least_squares.fold_path import FoldEquations
from certifit.statistics.gram import gram


def unscaled(statistic):
    """S of (x, 1, y) in the user's units."""
    s, d = statistic.scaling, statistic.n_columns
    back = np.eye(d + 2)
    back[d, :d], back[d, d + 1] = s.shift, s.y_shift
    units = np.concatenate([s.scale, [1.0], [s.y_scale]])
    return (back.T @ statistic.sums @ back) / units / units[:, None] / s.weight_scale


@pytest.mark.parametrize("twofold", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_both_sides_of_a_split_are_the_sums_of_their_rows(rng, twofold, fit_intercept):
    X, y, weight = rng.normal(size=(300, 4)) + 3, rng.normal(size=300), rng.uniform(0, 2, size=300)
    splits = Splits.folds(ByRow(5, 1))
    folds = FoldEquations(Memory(X, y, weight), [splits], fit_intercept)
    cells = splits.cells.of(Memory(X, y).block)
    for k in range(5):
        for got, own in zip(folds.pair(k, twofold), (cells != k, cells == k), strict=True):
            wanted = unscaled(gram(Memory(X[own], y[own], weight[own]), centred=False))
            assert np.allclose(unscaled(got), wanted, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("missing", ["indicator", "fill"])
@pytest.mark.parametrize("twofold", [False, True])
def test_gaps_are_filled_with_means_of_the_training_rows(rng, missing, twofold):
    n = 240
    x, z = rng.normal(size=n) * 3 + 1e5, rng.normal(size=n)
    gap = rng.random(n) < 0.2
    y = rng.normal(size=n)
    table = pa.table({"x": pa.array(np.where(gap, np.nan, x), from_pandas=True), "z": z, "y": y})
    model = cf.LinearRegression(encoder=cf.TableEncoder(missing=missing))
    splits = Splits.folds(ByRow(4, 0))
    folds = offered(model, from_arrow(table, target="y"), [splits]).parts[0].equations
    assert folds.names == (["x", "x missing", "z"] if missing == "indicator" else ["x", "z"])
    cells = splits.cells.of(Memory(x[:, None], y).block)
    for k in range(4):
        mean = x[(cells != k) & ~gap].mean()
        columns = [np.where(gap, mean, x), gap.astype(float), z]
        X = np.column_stack(columns if missing == "indicator" else columns[::2])
        for got, own in zip(folds.pair(k, twofold), (cells != k, cells == k), strict=True):
            centred = X[own] - X[own].mean(axis=0)
            d = X.shape[1]
            S = got.sums
            about = (
                (S[:d, :d] - np.outer(S[:d, d], S[:d, d]) / S[d, d]) / got.scaling.scale / got.scaling.scale[:, None]
            )
            assert np.allclose(about / got.scaling.weight_scale, centred.T @ centred, rtol=1e-9, atol=1e-9)
        assert np.allclose(folds.fills(k), [mean], rtol=1e-14)


def test_a_set_without_weight_is_named(rng):
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    splits = Splits.folds(ByRow(4, 0))
    weight = (splits.cells.of(Memory(X, y).block) != 2).astype(float)
    folds = FoldEquations(Memory(X, y, weight), [splits], True)
    with pytest.raises(ValueError, match="validation rows of split 3"):
        folds.pair(2)
