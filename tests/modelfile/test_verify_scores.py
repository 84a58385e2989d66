"""`verify` refuses a nudge of 1e-4 in any weight of a generalised linear model, whatever its penalty and bounds."""

from __future__ import annotations

import numpy as np
import pytest

import certifit as cf

NUDGE = 1e-4
PENALTIES = {
    "none": {"alpha": 0.0},
    "l2": {"alpha": 1e-2},
    "l1": {"alpha": 1e-2, "l1_ratio": 1.0},
    "strong l1": {"alpha": 0.1, "l1_ratio": 1.0},
    "elastic net": {"alpha": 1e-2, "l1_ratio": 0.5},
    "bounds": {"alpha": 0.0, "bounds": (-0.05, 0.3)},
    "l1 and bounds": {"alpha": 1e-2, "l1_ratio": 1.0, "bounds": (-0.05, 0.3)},
}
MODELS = {"logistic": cf.LogisticRegression, "poisson": cf.PoissonRegressor, "gamma": cf.GammaRegressor}


def drawn(name, rng, n=300):
    X = rng.normal(size=(n, 12)) * np.geomspace(0.3, 3.0, 12) + rng.normal(size=12)
    score = (X - X.mean(axis=0)) @ np.where(np.arange(12) % 2, 0.4, -0.2) / np.sqrt(12)
    if name == "logistic":
        return X, (score + rng.logistic(size=n) > 0).astype(int)
    return X, np.exp(score) * rng.gamma(2, size=n) if name == "gamma" else rng.poisson(np.exp(score)).astype(float)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.slow
def test_a_nudge_of_any_weight_is_refused(name, penalty, rng):
    X, y = drawn(name, rng)
    model = MODELS[name](**PENALTIES[penalty]).fit(X, y)
    assert cf.verify(model, X, y)
    coef, low, high = model.coef_.copy(), *PENALTIES[penalty].get("bounds", (-np.inf, np.inf))
    for place in np.flatnonzero(coef):
        moved = coef.copy()
        moved.flat[place] *= 1 + NUDGE if low <= coef.flat[place] * (1 + NUDGE) <= high else 1 - NUDGE
        model.coef_ = moved
        assert not cf.verify(model, X, y), place
    model.coef_, model.intercept_ = coef, model.intercept_ * (1 + NUDGE)
    assert not cf.verify(model, X, y)


@pytest.mark.parametrize("alpha", [0.0, 1e-2])
def test_a_nudge_of_any_weight_of_softmax_is_refused(alpha, rng):
    X, _ = drawn("logistic", rng)
    y = np.digitize(X[:, 1] + rng.logistic(size=len(X)), [-0.5, 0.8])
    model = cf.LogisticRegression(alpha=alpha).fit(X, y)
    assert cf.verify(model, X, y)
    coef = model.coef_.copy()
    for place in range(coef.size):
        model.coef_ = coef.copy()
        model.coef_.flat[place] *= 1 + NUDGE
        assert not cf.verify(model, X, y), place
