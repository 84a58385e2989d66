"""Means and sums of squares of two sets of rows as one, against sums over all rows in exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certifit.data.source import Block
from certifit.statistics.moments import ColumnMoments, Merge


def exact(x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Mean of x, and sum w (x - mean x)(y - mean y)."""
    x, y, weight = ([Fraction(float(value)) for value in values] for values in (x, y, weight))
    total = sum(weight)
    means = [sum(w * value for w, value in zip(weight, values, strict=True)) / total for values in (x, y)]
    pairs = zip(weight, x, y, strict=True)
    return float(means[0]), float(sum(w * (a - means[0]) * (b - means[1]) for w, a, b in pairs))


@pytest.mark.parametrize(("offset", "tolerance"), [(0.0, 1e-12), (1e6, 1e-8)])
def test_merged_moments_are_those_of_all_rows(rng, offset, tolerance):
    x, y, weight = offset + rng.normal(size=50), rng.normal(size=50), rng.integers(1, 5, size=50).astype(float)
    first, second = ((x[rows], y[rows], weight[rows]) for rows in (slice(20), slice(20, None)))
    both = Merge.of(first[2].sum(), second[2].sum())
    x_means, y_means = ([exact(part[k], part[k], part[2])[0] for part in (first, second)] for k in (0, 1))
    x_step, y_step = (np.asarray(means[1] - means[0]) for means in (x_means, y_means))
    squares = [exact(part[0], part[0], part[2])[1] for part in (first, second)]
    products = [exact(*part)[1] for part in (first, second)]
    assert float(both.mean(*x_means)) == pytest.approx(exact(x, x, weight)[0], rel=1e-14, abs=1e-15)
    assert float(both.products(*squares, x_step, x_step)) == pytest.approx(exact(x, x, weight)[1], rel=tolerance)
    assert float(both.products(*products, x_step, y_step)) == pytest.approx(exact(x, y, weight)[1], abs=100 * tolerance)


def test_a_set_without_weight_changes_nothing(rng):
    X = rng.normal(size=(30, 3))
    some = ColumnMoments.of(Block(X, None, None))
    none = ColumnMoments(0.0, np.full(3, 7.0), np.zeros(3))
    for total in (some + none, none + some):
        assert total.weight == 30.0
        np.testing.assert_allclose(total.mean, some.mean, atol=1e-14)  # the mean of no rows, 7, is rounded too
        np.testing.assert_allclose(total.squares, some.squares, rtol=1e-15)


def test_rows_in_several_pieces_have_the_variance_of_all(rng):
    X = 1e6 + rng.normal(size=(10_000, 2))
    np.testing.assert_allclose(ColumnMoments.of(Block(X, None, None)).variance, X.var(axis=0), rtol=1e-9)
