"""Generalised linear models on columns with relations that hold but for rounding: the fit on the columns kept."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import SplineTransformer

import certifit as cf
from certifit.models.glm.separation_certificate import Separation


def design(seed: int, n: int = 600):
    rng = np.random.default_rng(seed)
    x = np.round(rng.beta(2, 4, size=(n, 2)), 3)
    return SplineTransformer().fit_transform(x), 2 * x[:, 0], rng


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("kind", ["poisson", "logistic", "weighted", "float32", "three classes"])
def test_splines_are_fitted_as_without_the_columns_set_aside(kind, number):
    X, score, rng = design(number)
    weight = rng.integers(1, 4, len(X)).astype(float) if kind == "weighted" else None
    y = rng.poisson(np.exp(score)) if kind == "poisson" else (rng.random(len(X)) < 1 / (1 + np.exp(-score))).astype(int)
    y = y + (rng.random(len(X)) < 0.3) if kind == "three classes" else y
    X = X.astype(np.float32) if kind == "float32" else X
    make = cf.PoissonRegressor if kind == "poisson" else cf.LogisticRegression
    model = make(alpha=0).fit(X, y, sample_weight=weight)
    found = model.certificate_
    separation = getattr(found, "separation", None)
    assert found.holds or (isinstance(separation, Separation) and separation.exists)
    if not found.holds:
        return
    assert len(found.dependent) == 2 and "x" in found.dependent[0]
    largest = [int(np.argmax(np.linalg.norm(part, axis=0))) for part in (X[:, :7], X[:, 7:])]
    kept = np.delete(X, [largest[0], 7 + largest[1]], axis=1).astype(float)
    small = make(alpha=0).fit(kept, y, sample_weight=weight)
    expected = small.predict(kept) if kind == "poisson" else small.predict_proba(kept)
    given = model.predict(X) if kind == "poisson" else model.predict_proba(X)
    assert given == pytest.approx(expected, rel=1e-5 if kind == "float32" else 1e-8)
    assert small.certificate_.dependent == ()
