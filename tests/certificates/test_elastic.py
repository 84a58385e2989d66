"""The certificate of lasso and elastic net at states whose excess is known in closed form, at the ends of float64."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import certifit as cf


@pytest.mark.parametrize("alpha", [10.0, 0.3])
def test_the_pull_of_a_penalty_counts_where_its_size_in_scaled_units_is_beyond_float64(rng, alpha):
    X = rng.integers(-5, 6, size=(12, 2)) * np.array([1.0, 1e-150])
    y = rng.normal(size=12)
    model = cf.ElasticNet(alpha=alpha, l1_ratio=0.1).fit(X, y)
    assert model.certificate_.holds
    objective = np.mean((y - model.predict(X)) ** 2) / 2
    objective += alpha * (0.1 * np.abs(model.coef_).sum() + 0.45 * model.coef_ @ model.coef_)
    for weight in (1e-12, 1e-6, 1.0):
        other = copy.deepcopy(model)
        other.coef_[1] = weight
        excess = alpha * (0.1 * weight + 0.45 * weight**2)
        true = excess / (objective + excess)
        assert true * (1 - 1e-6) <= other.certify(X, y).value <= 2 * true + 1e-12


@pytest.mark.parametrize("model", [cf.Lasso(alpha=1e-299), cf.ElasticNet(alpha=1e-308, l1_ratio=0.1)])
@pytest.mark.parametrize("target", [1e13, 1.3, 0.0])
def test_a_penalty_that_underflows_is_still_an_excess_where_the_target_does_not_vary(model, target):
    X, y = np.array([[0.0, 0.1, 0.0]]), np.array([target])
    model.fit(X, y)
    assert model.certificate_.holds
    model.coef_[2] = 5e-3
    assert not model.certify(X, y).holds


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("model", [cf.Lasso(alpha=10.0), cf.ElasticNet(alpha=1e-3), cf.LinearRegression(), cf.Ridge()])
def test_states_whose_squares_overflow_are_not_certified_and_warn_of_nothing(rng, model):
    X, y = 1e150 * rng.normal(size=(9, 2)), 1e-150 * rng.normal(size=9)
    model.fit(X, y)
    model.coef_ = np.array([1e-3, -1.0])
    found = model.certify(X, y)
    assert not found.holds and found.value > 0.5
