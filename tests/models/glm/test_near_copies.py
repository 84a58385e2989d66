"""Columns that nearly repeat others: unpenalised fits find what the difference says, as a fit to it does."""

from __future__ import annotations

import numpy as np
import pytest

import certifit as cf


def drawn(rng, kind: str):
    """Rows, a near copy of column 1, what it differs by, scaled to size 1, and three kinds of targets of it."""
    X = np.column_stack([rng.normal(size=400), 20 + 5 * rng.normal(size=400)])
    if kind == "float32":
        copy = X[:, 1].astype(np.float32).astype(float)
    else:
        copy = X[:, 1] + float(kind) * 5 * rng.normal(size=400)
    apart = copy - X[:, 1]
    apart = apart / np.abs(apart).max()
    score = 0.3 * X[:, 0] + 0.02 * X[:, 1] + 0.8 * apart
    y = {
        "bernoulli": (rng.random(400) < 1 / (1 + np.exp(1 - score))).astype(float),
        "poisson": rng.poisson(np.exp(score)).astype(float),
        "gamma": rng.gamma(2.0, np.exp(score)),
    }
    return np.column_stack([X, copy]), np.column_stack([X, apart]), y


@pytest.mark.parametrize("kind", ["1e-6", "1e-8", "float32"])
@pytest.mark.parametrize("family", ["bernoulli", "poisson", "gamma"])
def test_a_near_copy_is_fitted_as_its_difference_is(rng, kind, family):
    X, basis, targets = drawn(rng, kind)
    y = targets[family]
    model, truth = cf.GLM(family).fit(X, y), cf.GLM(family).fit(basis, y)
    assert model.certificate_.holds and model.certificate_.value < 1e-12
    np.testing.assert_allclose(model.predict(X), truth.predict(basis), rtol=1e-6)
    assert model.certify(X, y).holds
    model.coef_ = model.coef_ * [1, 1, 1 + 1e-3 / abs(model.coef_[2])]
    assert not model.certify(X, y).holds


@pytest.mark.parametrize("kind", ["1e-7", "float32"])
def test_classes_of_a_near_copy_too(rng, kind):
    X, basis, targets = drawn(rng, kind)
    y = np.clip(targets["poisson"], 0, 3).astype(int)
    model, truth = cf.LogisticRegression(alpha=0).fit(X, y), cf.LogisticRegression(alpha=0).fit(basis, y)
    assert model.certificate_.holds and model.certificate_.value < 1e-9
    np.testing.assert_allclose(model.predict_proba(X), truth.predict_proba(basis), atol=1e-6)
