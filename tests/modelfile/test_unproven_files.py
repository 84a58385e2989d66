"""A fit whose certificate does not hold is saved, loads again, and says both times that it is not proven and why."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from learners import LEARNERS as ROWS
from samples import endless, quietly
from sklearn.base import clone

import certifit as cf
from certifit.models.certificate import Certificate


def separated_counts(n_rows: int = 400) -> tuple[Any, Any]:
    """Counts beside a flag that says whether there are any."""
    q = np.random.default_rng(1)
    x, z = q.normal(size=(2, n_rows))
    counts = q.poisson(np.exp(-1 + 0.3 * x)).astype(float)
    return np.column_stack([x, z, counts > 0]), counts


@cache
def unproven() -> dict[str, Any]:
    """A fit without proof of every model, for every reason that there is."""
    q = np.random.default_rng(0)
    X = q.normal(size=(40, 3))
    y = X @ [1.0, -2.0, 0.5] + q.normal(size=40)
    place, counts = np.arange(40) % 3, q.poisson(1.5, size=(40, 3)).astype(float)
    rows, claims = separated_counts()
    huge = X * [1e150, 1.0, 1e-150]
    fits = {
        "least squares": (cf.LinearRegression(tol=0.0), X, y),
        "least squares of huge columns": (cf.LinearRegression(tol=0.0), huge, 1e150 * y),
        "ridge": (cf.Ridge(0.1, tol=0.0), X, y),
        "lasso": (cf.Lasso(0.01, max_iter=1, tol=0.0), X, y),
        "elastic net": (cf.ElasticNet(0.01, max_iter=1, tol=0.0), X, y),
        "huber": (cf.HuberRegressor(max_iter=1), X, y),
        "huber of huge columns": (cf.HuberRegressor(max_iter=1), huge, 1e150 * y),
        "logistic, complete": (cf.LogisticRegression(0.0), X, X[:, 0] > 0),
        "logistic, quasi-complete": (cf.LogisticRegression(0.0), np.r_[X[:, :1] > 0, [[0]]], [*(X[:, 0] > 0), 1]),
        "logistic, far": (cf.LogisticRegression(0.0, max_iter=1, solver="gradient-descent"), X, y > 0),
        "logistic within bounds": (cf.LogisticRegression(0.0, bounds=(0.0, np.inf)), X, X[:, 0] > 0),
        "softmax": (cf.LogisticRegression(0.0), 100.0 * np.eye(3)[place] + X / 10, place),
        "poisson of separated zeros": (cf.GLM("poisson", "log"), rows, claims),
        "poisson without penalty": (cf.PoissonRegressor(0.0), rows, claims),
        "poisson of huge columns": (cf.GLM("poisson", "log"), rows * [1e150, 1e-150, 1.0], claims),
        "gamma": (cf.GammaRegressor(0.0, max_iter=1, solver="gradient-descent"), X, np.exp(y)),
        "glm, not convex": (cf.GLM("gaussian", "log", max_iter=1, solver="gradient-descent"), X, np.exp(y)),
        "glm of one value": (cf.GLM("gamma", "log"), X, np.full(40, 2.0)),
        "discriminant": (cf.GaussianDiscriminant(tol=0.0), X, place),
        "gaussian naive": (cf.GaussianNB(tol=0.0), X, place),
        "bernoulli naive": (cf.BernoulliNB(tol=0.0), counts, place),
        "multinomial naive": (cf.MultinomialNB(tol=0.0), counts, place),
        "components": (cf.PCA(tol=0.0), X, None),
    }  # fmt: skip
    known = {cf.Perceptron, *(type(model) for model, *_ in fits.values())}
    for key, row in ROWS.items():  # a newcomer with a tolerance
        if type(row.model) not in known and "tol" in row.model.get_params(deep=False):
            fits[key] = (clone(row.model).set_params(tol=0.0), *row.rows())
    found = {name: quietly(model.fit, *data) for name, (model, *data) in fits.items()}
    return found | {"perceptron": endless()}


NAMES = list(unproven())


@pytest.mark.parametrize("name", NAMES)
def test_it_is_saved_and_loads_and_says_why(name, tmp_path):
    model = unproven()[name]
    assert not model.certificate_.holds
    cf.save(model, tmp_path / "m.certifit")
    again = cf.load(tmp_path / "m.certifit")
    assert not again.certificate_.holds
    stored = replace(model.certificate_, prediction_change=None, advice="")  # neither is kept in a file
    assert again.certificate_.sentences()[0] == stored.sentences()[0]
    assert again.certificate_.sentences()[0].upper().startswith("NOT ")


@pytest.mark.parametrize("number", ["value", "rounding", "condition", "literal"])
def test_what_is_not_known_of_a_certificate_is_infinite(number):
    facts = {"value": 1e-9, "rounding": 1e-16, "condition": 1.0, number: math.nan}
    certificate = Certificate("claim", "theorem", tolerance=1e-8, rank=1, n_columns=1, **facts)
    assert getattr(certificate, number) == math.inf
    assert certificate.holds == (number != "value")


def test_a_constant_target_has_no_standard_errors():
    """All of its objective is rounding, so there is nothing that a standard error could be of."""
    model = unproven()["glm of one value"]
    assert model.inference_ is None
    with pytest.raises(ValueError, match="is 2 in every row"):
        model.summary()
