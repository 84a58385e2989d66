"""Pairs hi + lo against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import dot, rational

from certifit.statistics import double_double as dd

numbers = st.floats(min_value=-1e100, max_value=1e100, allow_subnormal=False).filter(
    lambda x: x == 0 or abs(x) > 1e-100
)


def exact(pair: Any) -> Fraction:
    return Fraction(float(pair[0])) + Fraction(float(pair[1]))


@given(numbers, numbers)
def test_a_sum_of_two_numbers_loses_nothing(a, b):
    assert exact(dd.two_sum(a, b)) == Fraction(a) + Fraction(b)


@given(numbers, numbers)
def test_a_product_of_two_numbers_loses_nothing(a, b):
    assert exact(dd.two_product(np.float64(a), np.float64(b))) == Fraction(a) * Fraction(b)


def pairs(rng: np.random.Generator, n: int = 200) -> list[tuple[Any, Any]]:
    hi = rng.normal(size=n) * 10.0 ** rng.integers(-8, 9, size=n)
    return [dd.two_sum(h, h * 2.0**-53 * e) for h, e in zip(hi, rng.uniform(-0.5, 0.5, size=n), strict=True)]


@pytest.mark.parametrize("operation, true", [(dd.add, Fraction.__add__), (dd.multiply, Fraction.__mul__)])
def test_sums_and_products_of_pairs_keep_a_hundred_bits(rng, operation, true):
    for a, b in zip(pairs(rng), pairs(rng), strict=True):
        value = true(exact(a), exact(b))
        size = abs(exact(a)) + abs(exact(b)) if operation is dd.add else abs(value)
        assert abs(exact(operation(a, b)) - value) <= Fraction(2.0**-100) * size


def test_a_dot_product_that_cancels_keeps_its_small_rest(rng):
    a, b = rng.normal(size=50), rng.normal(size=50)
    a, b = np.concatenate([a, a, [1.0]]), np.concatenate([b, -b, [2.0**-80]])
    assert exact(dd.dot(a, b)) == pytest.approx(Fraction(2) ** -80, rel=1e-4)
    assert exact(dd.dot(a[:50], b[:50])) == pytest.approx(dot(rational(a[:50]), rational(b[:50])), rel=1e-28)


def test_the_order_of_operations_is_that_of_the_core(rng, core):
    """Runs are added in Python, blocks in the core: the same bits either way."""
    X, one, zero = rng.normal(size=(64, 3)), np.ones(3), np.zeros(3)

    def gram(rows: Any) -> Any:
        return core.gram([("dense", rows)], None, None, one, zero, 1.0, 0.0, 1.0, 32, True, 1)

    whole, parts = gram(X), [gram(X[:32]), gram(X[32:])]
    joined = dd.add(*parts)
    assert np.array_equal(joined[0], whole[0]) and np.array_equal(joined[1], whole[1])
