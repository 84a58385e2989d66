"""What theory says of trees and of ensembles of them: approximation, variance, bias."""

from __future__ import annotations

import numpy as np

import certifit as cf


def truth(X):
    return X.sum(axis=1)


def sampler(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(100, 3))
    return X, truth(X) + 0.3 * rng.normal(size=100)


POINTS = np.random.default_rng(9).uniform(-0.95, 0.95, size=(40, 3))


def parts(models):
    return cf.bias_variance(models, None, None, POINTS, truth, sampler=sampler, noise=0.09, n_resamples=12)


def test_bagging_lowers_variance_and_leaves_bias():
    tree = cf.DecisionTreeRegressor()
    result = parts([tree, cf.BaggingRegressor(tree, 10)])
    assert result.variance[1] < 0.6 * result.variance[0]
    assert result.bias_squared[1] < result.bias_squared[0] + 0.1 * result.variance[0]
    assert result.error[1] < result.error[0]


def test_boosting_lowers_bias():
    result = parts([cf.DecisionTreeRegressor(max_depth=1), cf.AdaBoostRegressor(15, max_depth=1)])
    assert result.bias_squared[1] < 0.7 * result.bias_squared[0]


def test_more_leaves_approximate_a_function_as_well_as_they_can():
    # A function of slope 1 or less on [0, 1] is within 1/(2m) of a staircase of m equal steps; its squared error is
    # 1/(12 m^2) for the identity. Greedy halving reaches it where m is a power of two.
    X = (np.arange(4096)[:, None] + 0.5) / 4096
    for depth in (1, 2, 4, 6):
        model = cf.DecisionTreeRegressor(max_depth=depth).fit(X, X[:, 0])
        residuals = X[:, 0] - model.predict(X)
        assert np.isclose(np.mean(residuals**2), 1 / 12 * (4.0**-depth - 4096.0**-2))
        assert np.abs(residuals).max() < 2.0 ** -(depth + 1)


def test_each_level_lowers_the_error_on_a_smooth_function():
    X = np.random.default_rng(0).uniform(-1, 1, size=(3000, 2))
    y = np.sin(3 * X[:, 0]) * X[:, 1]
    errors = [np.mean((y - cf.DecisionTreeRegressor(max_depth=d).fit(X, y).predict(X)) ** 2) for d in range(1, 9)]
    assert (np.diff(errors) < 0).all()
    assert errors[-1] < 0.1 * errors[0]
