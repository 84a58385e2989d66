"""The certificate of lasso and elastic net at states whose excess is known in closed form, at the ends of float64."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import certifit as cf
from tests.hunt.references.numbers import ratio, rational
from tests.hunt.references.quadratic import Kinked


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


@pytest.mark.parametrize("case", [0, 4])
def test_a_nudge_of_a_ten_thousandth_is_refused_where_the_first_dual_point_is_off_by_rounding(case):
    # A slope that rounding puts beyond its l1 strength costs the first dual point 1e-10 to 1e-8 of the objective.
    rng = np.random.default_rng(case)
    u, v, w = rng.normal(size=(3, 33))
    X, y = np.column_stack([u, 1e-8 * v, u + 1e-9 * w]), 0.4 * u + 0.8 * v + rng.normal(size=33)
    model = cf.Lasso(alpha=1e-8, penalty_factors=[0.5, 0.5, 1.0]).fit(X, y)
    assert model.certificate_.value < 1e-13
    l1 = [rational(1e-8) * rational(factor) for factor in (0.5, 0.5, 1.0)]
    truth = Kinked(X, y, None, True, [rational(0.0)] * 3, l1)
    best, is_proven = truth.best(truth.units(model.coef_, model.intercept_))
    assert is_proven
    for j in np.flatnonzero(model.coef_):
        other = copy.deepcopy(model)
        other.coef_[j] *= 1 + 1e-4
        objective = truth.objective(truth.units(other.coef_, other.intercept_))
        assert ratio(objective - best.objective, objective) <= other.certify(X, y).value
        assert not cf.verify(other, X, y)


def test_the_rounding_of_means_is_relative_to_the_spread_of_columns_not_to_their_offset():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(16, 2)) + np.array([0.0, 5e10])
    y = X[:, 1] - 5e10 + rng.normal(size=16)
    model = cf.ElasticNet(alpha=1.0, l1_ratio=0.1).fit(X, y)
    model.coef_[0] += 1e-3
    assert model.coef_.all() and model.certify(X, y).rounding < 1e-8


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bounds", [None, (0.0, np.inf), (-2.0, 3.0)])
def test_no_bound_is_lost_where_weights_of_scaled_columns_are_beyond_float64(rng, bounds):
    """Every |x'(y - mean)| / N is below alpha, in rational numbers: the weights are 0."""
    X, y = rng.integers(-5, 6, size=(28, 3)) * 1e-180, 1e159 * (1 + 1e-9 * rng.normal(size=28))
    values = [rational(v) for v in y]
    mean = sum(values, rational(0)) / 28
    moments = [sum((rational(a) * (b - mean) for a, b in zip(x, values, strict=True)), rational(0)) for x in X.T]
    assert max(abs(m) for m in moments) / 28 < rational(0.03)
    model = cf.Lasso(alpha=0.03, bounds=bounds).fit(X, y)
    assert model.certificate_.holds and not model.coef_.any()


def test_an_l1_part_that_all_but_vanishes_does_not_hang():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 80)), rng.normal(size=30)
    with pytest.warns(ConvergenceWarning):
        model = cf.ElasticNet(0.1, l1_ratio=5e-324, max_iter=1).fit(X, y)
    assert not model.certificate_.holds
