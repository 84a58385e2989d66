"""Models of scores: the scikit-learn contract, equivariance, extreme scales, one answer on every source, the course."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import certifit as cf

MODELS = [
    cf.LogisticRegression(),
    cf.LogisticRegression(alpha=0.1, fit_intercept=False),
    cf.LogisticRegression(alpha=0.01, basis=cf.Polynomial(2)),
    cf.PoissonRegressor(),
    cf.GammaRegressor(),
    cf.GLM(),
    cf.GLM("poisson"),
    cf.GLM("gamma", alpha=0.1),
    cf.GLM("negative-binomial", alpha=0.01),
    cf.GLM("gaussian", fit_intercept=False),
]


@parametrize_with_checks(MODELS)
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


def test_fits_without_an_intercept_are_certified(rng):
    X = rng.normal(size=(300, 3))
    y = rng.poisson(np.exp(X @ [0.5, -0.3, 0.1])).astype(float)
    for alpha in (0.0, 0.1):
        model = cf.PoissonRegressor(alpha, fit_intercept=False).fit(X, y)
        assert model.certificate_.holds and model.certificate_.dependent == ()
        gradient = X.T @ (np.exp(X @ model.coef_) - y) / len(y) + alpha * model.coef_
        assert np.abs(gradient).max() < 1e-12


@pytest.mark.parametrize("model", [cf.PoissonRegressor(), cf.GLM("poisson"), cf.GLM("negative-binomial")], ids=str)
def test_counts_of_nothing_but_zero_are_refused_in_words(model, rng):
    with pytest.raises(ValueError, match="y is 0 in every row: the intercept"):
        model.fit(rng.normal(size=(20, 2)), np.zeros(20))


def test_targets_whose_squares_overflow_are_refused_in_words(rng):
    X = rng.normal(size=(40, 2))
    with pytest.raises(ValueError, match="exceeds the largest float64"):
        cf.GLM().fit(X, 1e300 * rng.normal(size=40))
