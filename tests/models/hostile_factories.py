"""Our estimators, for `python tests/hostile.py --factories hostile_factories:FACTORIES`."""

from __future__ import annotations

import numpy as np

import certifit as cf

FACTORIES = {
    "LinearRegression": ("reg", cf.LinearRegression),
    "Ridge": ("reg", cf.Ridge),
    "Ridge(0.01)": ("reg", lambda: cf.Ridge(0.01)),
    "Lasso(0.01)": ("reg", lambda: cf.Lasso(0.01)),
    "Lasso(0.01, increasing)": ("reg", lambda: cf.Lasso(0.01, bounds=(0.0, np.inf))),
    "ElasticNet(0.01)": ("reg", lambda: cf.ElasticNet(0.01)),
    "GaussianDiscriminant": ("clf", cf.GaussianDiscriminant),
    "GaussianDiscriminant(class)": ("clf", lambda: cf.GaussianDiscriminant("class", shrinkage=0.1)),
    "GaussianNB": ("clf", cf.GaussianNB),
    "BernoulliNB": ("clf", cf.BernoulliNB),
    "CrossValidated": ("reg", lambda: cf.CrossValidated(cf.Ridge(), {"alpha": [0.01, 0.1]}, cv=3)),
    "CrossValidated(loo)": ("reg", lambda: cf.CrossValidated(cf.Ridge(), {"alpha": [0.01, 0.1]}, cv="loo")),
}
