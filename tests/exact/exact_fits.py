"""Small fits of every model that has an exact certificate, with their data."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import certifit as cf

N_ROWS = 48


@cache
def fits() -> dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """Name -> (fitted model, positional data, offsets by name)."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(N_ROWS, 3))
    weight = rng.integers(0, 4, size=N_ROWS).astype(float)
    z = 0.3 + X @ [0.5, -0.4, 0.1]
    y, positive = z + rng.standard_t(3, size=N_ROWS), rng.gamma(2.0, np.exp(z) / 2)
    counts, share = rng.poisson(np.exp(z)).astype(float), rng.beta(2.0, 2.0, size=N_ROWS)
    two, three = (rng.random(N_ROWS) < 0.5).astype(int), rng.choice(["a", "b", "c"], size=N_ROWS)
    frame = pd.DataFrame({"x": X[:, 0], "kind": rng.choice(["p", "q", "r"], size=N_ROWS)})
    small = np.abs(X) + 0.3
    words = rng.integers(0, 4, size=(N_ROWS, 5)).astype(float)
    beside = {"offset": 0.1 * X[:, 0], "exposure": rng.uniform(0.5, 2.0, size=N_ROWS)}
    encoder, box = cf.TableEncoder(), {"alpha": 0.05, "l1_ratio": 0.5, "bounds": (-0.3, 0.3)}
    cases: dict[str, tuple[Any, ...]] = {
        "least squares": (cf.LinearRegression(), X, y),
        "least squares, weights": (cf.LinearRegression(fit_intercept=False), X, y, weight),
        "least squares, categories": (cf.LinearRegression(encoder=encoder), frame, y),
        "least squares, copies": (cf.LinearRegression(), X[:, [0, 1, 0]], y),
        "ridge": (cf.Ridge(0.3), X, y, weight),
        "ridge, more columns than rows": (cf.Ridge(0.3), X[:2], y[:2]),
        "lasso": (cf.Lasso(0.1), X, y),
        "lasso, copies": (cf.Lasso(0.1), X[:, [0, 1, 0]], y),
        "lasso, standardized": (
            cf.Lasso(0.1, standardize=True, penalty_factors=[0.0, 1.0, 2.0]),
            X,
            y,
            weight,
        ),
        "elastic net in a box": (cf.ElasticNet(0.1, bounds=(-0.2, 0.3)), X, y),
        "huber": (cf.HuberRegressor(), X, y, weight),
        "huber, median scale": (cf.HuberRegressor(scale="mad"), X, y),
        "huber, scale given": (cf.HuberRegressor(alpha=0.1, scale=0.7), X, y),
        "huber, standardized": (cf.HuberRegressor(alpha=0.1, standardize=True), X, y, weight),
        "logistic": (cf.LogisticRegression(class_weight="balanced"), X, two, weight),
        "logistic, l1": (cf.LogisticRegression(0.02, 1.0), X, two),
        "logistic, offset": (cf.LogisticRegression(0.0), X, two, None, {"offset": beside["offset"]}),
        "softmax": (cf.LogisticRegression(), X, three, weight),
        "softmax without a penalty": (cf.LogisticRegression(0.0), X, three),
        "poisson with exposure": (cf.PoissonRegressor(0.1), X, counts, weight, beside),
        "poisson in a box": (cf.PoissonRegressor(**box), X, counts),
        "gamma": (cf.GammaRegressor(0.0), X, positive),
        "gamma, inverse": (cf.GLM("gamma", "inverse"), small, positive),
        "tweedie": (cf.GLM("tweedie"), X, counts * 1.5),
        "negative binomial": (cf.GLM("negative-binomial"), X, counts),
        "probit": (cf.GLM("bernoulli", "probit"), X, two.astype(float)),
        "cloglog": (cf.GLM("binomial", "cloglog"), X, share, weight),
        "poisson, square root": (cf.GLM("poisson", "sqrt"), small, counts + 1),
        "gaussian, elastic net": (cf.GLM("gaussian", alpha=0.05, l1_ratio=0.5), X, y),
        "discriminant": (cf.GaussianDiscriminant(), X, three, weight),
        "discriminant of classes": (cf.GaussianDiscriminant("class", shrinkage=0.1, standardize=True), X, three),
        "discriminant, diagonal": (cf.GaussianDiscriminant("diagonal", priors=[0.2, 0.3, 0.5]), X, three),
        "gaussian naive Bayes": (cf.GaussianNB(var_smoothing=1e-3), X, three, weight),
        "bernoulli naive Bayes": (cf.BernoulliNB(), words, three, weight),
        "multinomial naive Bayes": (cf.MultinomialNB(0.5), words, three),
        "components": (cf.PCA(2), X, None, weight),
        "components, standardized": (cf.PCA(standardize=True), X),
    }
    return {name: _fitted(*case) for name, case in cases.items()}


def _fitted(
    model: Any, X: Any, y: Any = None, weight: Any = None, beside: dict[str, Any] | None = None
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, weight, **(beside or {}))
    return model, (X, y, weight), beside or {}
