"""Facts of lines of numbers: range, mean and squares about it, fingerprint."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certifit.maps.table.moments import PIECE, moments, moments_of_columns, row_keys
from certifit.runtime import core


@pytest.mark.parametrize("m", [1, 3, 8, 255, 256, 257, 700])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_mean_and_squares_are_those_of_exact_sums(rng, m, offset):
    X, keys = rng.normal(size=(3, m)) + offset, row_keys(np.arange(m))[None]
    lower, upper, mean, squares, fingerprint = core.number_facts(X, keys)
    assert (lower == X.min(axis=1)).all() and (upper == X.max(axis=1)).all()
    for k, x in enumerate(X):
        exact = sum(map(Fraction, x)) / m
        assert abs(Fraction(mean[k]) - exact) <= m * 2.0**-53 * np.abs(x).mean()
        about = float(sum((Fraction(v) - Fraction(mean[k])) ** 2 for v in x))
        assert squares[k] == pytest.approx(about, rel=m * 2.0**-52)
        words = [int(word) for word in (x + 0.0).view(np.uint64)]
        mixed = [
            ((word >> 32 ^ word) + 0x9E3779B97F4A7C15) * int(key) for word, key in zip(words, keys[0], strict=True)
        ]
        assert int(fingerprint[k]) == sum(mixed) % 2**64


def test_a_mean_of_numbers_whose_sum_overflows_is_still_theirs():
    found = moments(np.full(20, 1.5e308), None, row_keys(np.arange(20)), None)
    assert found.mean == found.lower == found.upper == 1.5e308 and found.squares == 0


def test_a_column_alone_has_the_facts_of_a_column_among_others(rng):
    X, keys = rng.normal(size=(4, PIECE)), row_keys(np.arange(PIECE))
    assert moments_of_columns(X, keys, None) == [moments(x, None, keys, None) for x in X]


def test_zero_and_minus_zero_are_one_number_and_keys_may_differ_by_line():
    keys = row_keys(np.arange(6)).reshape(2, 3)
    plus, minus = (core.number_facts(np.full((2, 3), zero), keys) for zero in (0.0, -0.0))
    assert (plus[4] == minus[4]).all() and plus[4][0] != plus[4][1]
