"""Our estimators, for `python tests/hostile.py --factories hostile_factories:FACTORIES`."""

from __future__ import annotations

import os
import signal
from typing import Any

import numpy as np

import certifit as cf

FACTORIES = {
    "LinearRegression": ("reg", cf.LinearRegression),
    "Ridge": ("reg", cf.Ridge),
    "Ridge(0.01)": ("reg", lambda: cf.Ridge(0.01)),
    "Lasso(0.01)": ("reg", lambda: cf.Lasso(0.01)),
    "Lasso(0.01, increasing)": ("reg", lambda: cf.Lasso(0.01, bounds=(0.0, np.inf))),
    "ElasticNet(0.01)": ("reg", lambda: cf.ElasticNet(0.01)),
    "HuberRegressor": ("reg", cf.HuberRegressor),
    "HuberRegressor(mad)": ("reg", lambda: cf.HuberRegressor(scale="mad")),
    "HuberRegressor(scale=1)": ("reg", lambda: cf.HuberRegressor(alpha=0.01, scale=1.0)),
    "PCA": ("tr", cf.PCA),
    "PCA(2, whiten)": ("tr", lambda: cf.PCA(2, whiten=True)),
    "PCA(standardize)": ("tr", lambda: cf.PCA(standardize=True)),
    "PCA(2, randomized)": ("tr", lambda: cf.PCA(2, solver="randomized")),
    "GaussianDiscriminant": ("clf", cf.GaussianDiscriminant),
    "GaussianDiscriminant(class)": ("clf", lambda: cf.GaussianDiscriminant("class", shrinkage=0.1)),
    "GaussianDiscriminant(diagonal)": ("clf", lambda: cf.GaussianDiscriminant("diagonal")),
    "GaussianNB": ("clf", cf.GaussianNB),
    "BernoulliNB": ("clf", cf.BernoulliNB),
    "MultinomialNB": ("clf", cf.MultinomialNB, {"counts"}),
    "Perceptron": ("clf", cf.Perceptron, {"stochastic"}),  # its fit is defined by the order of the rows
    "Perceptron(shuffled)": ("clf", lambda: cf.Perceptron(order="shuffled"), {"stochastic"}),
    "OneVsRestClassifier(Perceptron)": ("clf", lambda: cf.OneVsRestClassifier(cf.Perceptron()), {"stochastic"}),
    "OneVsRestClassifier(Logistic)": ("clf", lambda: cf.OneVsRestClassifier(cf.LogisticRegression(0.1))),
    "LogisticRegression": ("clf", cf.LogisticRegression),
    "LogisticRegression(alpha=0)": ("clf", lambda: cf.LogisticRegression(alpha=0.0)),
    "PoissonRegressor": ("pois", cf.PoissonRegressor),
    "PoissonRegressor(alpha=0)": ("pois", lambda: cf.PoissonRegressor(0.0)),
    "GLM": ("reg", cf.GLM),
    "GLM(negative-binomial)": ("pois", lambda: cf.GLM("negative-binomial", alpha=0.01)),
    "GLM(poisson, sqrt)": ("pois", lambda: cf.GLM("poisson", "sqrt")),
    "CrossValidated(classes)": (
        "clf",
        lambda: cf.CrossValidated(cf.GaussianDiscriminant(), {"shrinkage": [0, 0.1]}, cv=3),
        {"stochastic"},  # folds go by row number
    ),
    "CrossValidated(lasso path)": ("reg", lambda: cf.CrossValidated(cf.Lasso(), cv=3), {"stochastic"}),
    "OneVsRestClassifier(discriminant)": ("clf", lambda: cf.OneVsRestClassifier(cf.GaussianDiscriminant())),
    "ForwardSelection": ("reg", lambda: cf.ForwardSelection(cf.Ridge(), n_features_to_select=2, cv=3), {"stochastic"}),
    "BackwardSelection": (
        "reg",
        lambda: cf.BackwardSelection(cf.Ridge(), n_features_to_select=2, cv=3),
        {"stochastic"},
    ),
    "MutualInformationFilter": ("tr", lambda: cf.MutualInformationFilter(2), {"categories"}),
    "Polynomial(2)": ("tr", lambda: cf.Polynomial(2)),
    "CrossValidated": ("reg", lambda: cf.CrossValidated(cf.Ridge(), {"alpha": [0.01, 0.1]}, cv=3)),
    "CrossValidated(loo)": ("reg", lambda: cf.CrossValidated(cf.Ridge(), {"alpha": [0.01, 0.1]}, cv="loo")),
}


class Broken(cf.Ridge):
    """Every fault that the battery must notice, chosen by the type of X."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        dtype = getattr(X, "dtype", None)
        if dtype == np.float16:
            os.abort()
        if dtype == np.dtype(bool):
            os.kill(os.getpid(), signal.SIGXCPU)  # what the system sends to a fit that never ends
        if dtype == np.uint8:
            raise KeyError(3)
        super().fit(X, y, sample_weight)
        self.coef_ = self.coef_ * (np.nan if dtype == np.float32 else 2.0 if dtype == np.dtype(">f8") else 1.0)
        return self


ALL = FACTORIES | {"Broken": ("reg", Broken)}
