"""scikit-learn's own checks of an estimator, every one of them, and what cloning and copying must keep."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import certifit as cf

MODELS = [
    cf.LinearRegression(),
    cf.LinearRegression(fit_intercept=False),
    cf.LinearRegression(basis=cf.Polynomial(2)),
    cf.LinearRegression(basis=cf.Polynomial(2, form="powers"), fit_intercept=False),
    cf.Ridge(),
    cf.Ridge(0.0),
    cf.Ridge(0.5, fit_intercept=False),
    cf.Ridge(0.01, basis=cf.Polynomial(2)),
    cf.Ridge(0.1, standardize=True),
    cf.HuberRegressor(),
    cf.HuberRegressor(scale="mad", fit_intercept=False),
    cf.HuberRegressor(1.5, 0.01, scale=1.0, basis=cf.Polynomial(2)),
    cf.Lasso(),
    cf.Lasso(0.1, fit_intercept=False, bounds=(0.0, np.inf)),
    cf.Lasso(0.01, basis=cf.Polynomial(2)),
    cf.ElasticNet(),
    cf.ElasticNet(0.1, 0.9, bounds=(-1.0, 2.0)),
]


@parametrize_with_checks(MODELS)
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, X @ [1.0, -2.0, 0.5] + rng.normal(size=60)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_copies_predict_the_same(model):
    X, y = rows()
    fitted = clone(model).fit(X, y)
    expected = fitted.predict(X)
    for other in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted), clone(fitted).fit(X, y)):
        assert np.array_equal(other.predict(X), expected)
        assert other.certificate_ == fitted.certificate_


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_fitted_model_holds_no_rows(model):
    rng = np.random.default_rng(0)
    small, large = (clone(model).fit(rng.normal(size=(n, 3)), rng.normal(size=n)) for n in (50, 5000))
    assert len(pickle.dumps(large)) < len(pickle.dumps(small)) + 500


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_second_fit_forgets_the_first(model):
    X, y = rows()
    twice = clone(model).fit(X[:, :2] * 7, -y).fit(X, y)
    once = clone(model).fit(X, y)
    assert np.array_equal(twice.coef_, once.coef_)
    assert twice.column_names_ == once.column_names_


def test_a_model_works_in_a_pipeline_and_in_cross_validation():
    X, y = rows()
    scores = cross_val_score(make_pipeline(StandardScaler(), cf.Ridge(0.01)), X, y)
    assert scores.shape == (5,) and scores.mean() > 0.5


def test_what_needs_a_fit_says_so():
    X, _ = rows()
    model = cf.LinearRegression()
    calls = (
        lambda: model.predict(X), lambda: model.predict_interval(X), model.summary, model.monomials,
        lambda: model.solutions([]), lambda: model.certify(X, X[:, 0]),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(NotFittedError):
            call()
