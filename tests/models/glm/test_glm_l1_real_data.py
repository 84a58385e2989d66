"""L1 penalties on real data: liblinear, saga and glum end at our objective, and at our coefficients."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import xlogy
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression as PeerLogistic

import certifit as cf


def standardised(table: pd.DataFrame) -> np.ndarray:
    X = pd.get_dummies(table, drop_first=True).to_numpy(float)
    X = X[:, X.std(axis=0) > 0]
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0))


def credits(folder: Any) -> tuple[np.ndarray, np.ndarray]:
    """Loans and whether they were paid back, categories as columns of 0 and 1."""
    table = pd.read_parquet(folder / "german_credit" / "german_credit.parquet")
    return standardised(table.drop(columns="class")), (table["class"] == 1).to_numpy(float)


def bicycles(folder: Any) -> tuple[np.ndarray, np.ndarray]:
    """Bicycles lent in an hour, hours and weather as columns of 0 and 1."""
    table = pd.read_parquet(folder / "bike_sharing" / "bike_sharing.parquet")
    numbers = table[["temp", "atemp", "hum", "windspeed"]]
    kinds = table[["season", "yr", "mnth", "hr", "weekday", "weathersit"]].astype("category")
    return standardised(pd.concat([numbers, kinds], axis=1)), table["cnt"].to_numpy(float)


def mean_logistic(y: Any, z: Any) -> float:
    return float(np.mean(np.logaddexp(0, z) - y * z))


def mean_poisson(y: Any, z: Any) -> float:
    return float(np.mean(np.exp(z) - y - y * z + xlogy(y, y)))


def agrees(ours: Any, theirs: Any, X: Any, y: Any, mean: Any, alpha: float, unique: bool = True) -> None:
    def objective(model: Any) -> float:
        w = np.ravel(model.coef_)
        return mean(y, np.asarray(X @ w) + float(np.ravel(model.intercept_)[0])) + alpha * float(np.abs(w).sum())

    own = objective(ours)
    assert own <= objective(theirs) * (1 + 1e-14)
    assert objective(theirs) <= own * (1 + 1e-10)
    far = np.abs(np.ravel(ours.coef_) - np.ravel(theirs.coef_)).max()
    assert not unique or far <= 1e-6 * max(1.0, np.abs(ours.coef_).max())


@pytest.mark.parametrize("alpha", [0.05, 0.005])
def test_liblinear_ends_at_our_credits(shared_data, alpha):
    X, y = credits(shared_data)
    ours = cf.LogisticRegression(alpha, 1.0, fit_intercept=False).fit(X, y)
    C = 1 / (alpha * len(y))
    theirs = PeerLogistic(C=C, l1_ratio=1.0, solver="liblinear", fit_intercept=False, tol=1e-10, max_iter=100_000).fit(
        X, y
    )
    assert ours.certificate_.holds
    agrees(ours, theirs, X, y, mean_logistic, alpha)


def test_saga_ends_at_our_elastic_net_of_credits(shared_data):
    X, y = credits(shared_data)
    ours = cf.LogisticRegression(0.02, 0.5).fit(X, y)
    theirs = PeerLogistic(C=1 / (0.02 * len(y)), l1_ratio=0.5, solver="saga", tol=1e-10, max_iter=20_000).fit(X, y)
    assert ours.certificate_.holds
    assert np.abs(ours.coef_ - theirs.coef_).max() <= 1e-6
    assert abs(ours.intercept_[0] - theirs.intercept_[0]) <= 1e-6


def test_liblinear_ends_at_our_incomes_of_sparse_rows(shared_data):
    X, y = load_svmlight_file(str(shared_data / "a9a" / "a9a.svm.gz"))
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # what liblinear takes
    ours = cf.LogisticRegression(2e-3, 1.0, fit_intercept=False).fit(X, y)
    C = 1 / (2e-3 * len(y))
    theirs = PeerLogistic(C=C, l1_ratio=1.0, solver="liblinear", fit_intercept=False, tol=1e-9, max_iter=10_000).fit(
        X, y
    )
    assert ours.certificate_.holds
    # Columns of 0 and 1 that add up to 1 leave a choice of coefficients.
    agrees(ours, theirs, X, (y > 0).astype(float), mean_logistic, 2e-3, unique=False)


@pytest.mark.parametrize("alpha", [10.0, 1.0])
def test_glum_ends_at_our_bicycles(shared_data, alpha):
    glum = pytest.importorskip("glum", reason="glum is not installed")
    X, y = bicycles(shared_data)
    ours = cf.PoissonRegressor(alpha, 1.0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it tells of a gradient that no longer falls
        theirs = glum.GeneralizedLinearRegressor(
            family="poisson", link="log", alpha=alpha, l1_ratio=1.0, gradient_tol=1e-8, max_iter=300
        ).fit(X, y)
    assert ours.certificate_.holds
    agrees(ours, theirs, X, y, mean_poisson, alpha)
