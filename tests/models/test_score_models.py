"""Models of scores: the scikit-learn contract, equivariance, extreme scales, one answer on every source, the course."""

from __future__ import annotations

import numpy as np
from sklearn.utils.estimator_checks import parametrize_with_checks

import certifit as cf

MODELS = [
    cf.LogisticRegression(),
    cf.LogisticRegression(alpha=0.1, fit_intercept=False),
    cf.LogisticRegression(alpha=0.01, basis=cf.Polynomial(2)),
    cf.PoissonRegressor(),
    cf.PoissonRegressor(alpha=0.1, fit_intercept=False),
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
