"""Columns whose penalty rounding hides, such as nanoseconds since 1970, are proven without it."""

from __future__ import annotations

import numpy as np
import pytest

import certifit as cf


def houses(seed: int, unit: float):
    """Area, year, time of the sale in seconds over `unit`; price."""
    rng = np.random.default_rng(seed)
    seconds = 1.2e9 + 86400.0 * rng.integers(0, 1500, 200)
    area, year = 1500 + 500 * rng.normal(size=200), 1900.0 + rng.integers(0, 100, 200)
    price = 100 * area + 1000 * year + 1e-5 * seconds + 3e4 * rng.normal(size=200)
    return np.column_stack([area, year, seconds / unit]), price


@pytest.mark.parametrize("alpha", [0.01, 1.0, 100.0])
def test_a_penalty_on_nanoseconds_is_proven(alpha):
    X, y = houses(0, 1e-9)
    model = cf.Lasso(alpha).fit(X, y)
    assert model.certificate_.holds
    in_years = cf.Lasso(alpha, penalty_factors=[1.0, 1.0, 0.0]).fit(houses(0, 3e7)[0], y)
    np.testing.assert_allclose(model.predict(X), in_years.predict(houses(0, 3e7)[0]), rtol=1e-6)
    model.coef_ = model.coef_ * [1 + 1e-3, 1, 1]
    assert not model.certify(X, y).holds
