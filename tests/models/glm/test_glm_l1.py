"""Logistic, Poisson and Gamma regression with an L1 penalty, factors and bounds: claims on the models."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import certifit as cf

REGRESSORS = {"poisson": cf.PoissonRegressor, "gamma": cf.GammaRegressor}


def rows(seed: int, n: int = 400, d: int = 8) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, 0.3 + X[:, 0] - 0.5 * X[:, 1] + 0.2 * X[:, 2], rng


def labels(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(len(z)) < 1 / (1 + np.exp(-z)), "yes", "no")


def counts(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.poisson(np.exp(z)).astype(float) + 0.5


def test_weights_are_zero_exactly_and_the_fit_is_certified(seed):
    X, z, rng = rows(seed)
    for model, y in [
        (cf.LogisticRegression(0.05, 1.0), labels(z, rng)),
        (cf.PoissonRegressor(0.2, 1.0), counts(z, rng)),
    ]:
        model.fit(X, y)
        assert 0 < np.count_nonzero(model.coef_) < 8
        assert model.rank_ == np.count_nonzero(model.coef_)
        assert model.certificate_.holds
        assert model.certificate_.value < 1e-9
        assert model.certify(X, y).holds


def test_weight_two_is_the_row_twice_and_weight_zero_no_row(seed):
    X, z, rng = rows(seed)
    y, weight = counts(z, rng), rng.integers(0, 3, size=len(z)).astype(float)
    weighted = cf.PoissonRegressor(0.1, 0.7).fit(X, y, weight)
    repeated = cf.PoissonRegressor(0.1, 0.7).fit(
        np.repeat(X, weight.astype(int), axis=0), np.repeat(y, weight.astype(int))
    )
    assert np.abs(weighted.coef_ - repeated.coef_).max() < 1e-9


def test_sparse_rows_give_the_weights_of_dense_ones(seed):
    X, z, rng = rows(seed)
    X[rng.random(X.shape) < 0.5] = 0.0
    y = labels(z, rng)
    dense, sparse = (cf.LogisticRegression(0.02, 1.0).fit(form(X), y) for form in (np.asarray, sp.csr_array))
    assert np.abs(dense.coef_ - sparse.coef_).max() < 1e-9


def test_bounds_hold_and_factors_leave_columns_unpenalised(seed):
    X, z, rng = rows(seed)
    y = labels(z, rng)
    model = cf.LogisticRegression(0.05, 1.0, bounds={"x0": (0, 0.4), "x1": "increasing"}, penalty_factors={"x7": 0})
    model.fit(X, y)
    coef = model.coef_[0]
    assert coef[0] == 0.4
    assert coef[1] == 0.0
    assert coef[7] != 0.0
    assert model.certificate_.holds


def test_bounds_alone_need_no_penalty(seed):
    X, z, rng = rows(seed)
    model = cf.PoissonRegressor(0.0, bounds=(0.0, np.inf)).fit(X, counts(z, rng))
    assert (model.coef_ >= 0).all()
    assert (model.coef_ == 0).any()
    assert model.certificate_.holds


@pytest.mark.parametrize("kind", REGRESSORS)
def test_an_offset_is_a_column_with_weight_one(kind, seed):
    X, z, rng = rows(seed)
    offset = rng.normal(size=len(z))
    y = counts(z + offset, rng)
    model = REGRESSORS[kind](0.1, 1.0).fit(X, y, offset=offset)
    other = REGRESSORS[kind](0.1, 1.0).fit(X, y, exposure=np.exp(offset))
    assert model.certificate_.holds
    assert np.abs(model.coef_ - other.coef_).max() < 1e-10
    moved = model.predict(X, offset=offset) - y
    assert abs(moved.mean()) < 1e-9 or kind == "gamma"


def test_too_few_iterations_are_told(seed):
    X, z, rng = rows(seed)
    with pytest.warns(ConvergenceWarning, match="NOT certified"):
        cf.LogisticRegression(1e-3, 1.0, max_iter=1).fit(X, labels(z, rng))


def test_a_path_starts_without_weights_and_holds_the_single_fits(seed):
    X, z, rng = rows(seed)
    for model, y in [
        (cf.LogisticRegression(l1_ratio=1.0), labels(z, rng)),
        (cf.PoissonRegressor(l1_ratio=0.5), counts(z, rng)),
        (cf.GammaRegressor(l1_ratio=1.0), counts(z, rng)),
    ]:
        path = model.path(X, y, n_alphas=8)
        assert path.coef.shape == (8, 8)
        assert not path.coef[0].any()
        assert path.coef[1].any()
        alone = type(model)(path.alphas[5], model.l1_ratio).fit(X, y)
        assert np.abs(path.coef[5] - alone.coef_).max() < 1e-5
        given = model.path(X, y, alphas=[0.1])
        assert np.abs(given.coef[0] - np.ravel(type(model)(0.1, model.l1_ratio).fit(X, y).coef_)).max() < 1e-5


def test_a_path_without_an_l1_penalty_needs_alphas(seed):
    X, z, rng = rows(seed)
    y = counts(z, rng)
    with pytest.raises(ValueError, match="alphas must be given for l1_ratio=0"):
        cf.PoissonRegressor().path(X, y)
    path = cf.PoissonRegressor().path(X, y, alphas=[0.3])
    assert np.abs(path.coef[0] - cf.PoissonRegressor(0.3).fit(X, y).coef_).max() < 1e-5


def test_equal_columns_and_separable_rows_are_fitted_without_a_warning(seed):
    X, z, _ = rows(seed)
    X[:, 3] = X[:, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = cf.LogisticRegression(0.01, 1.0).fit(X, z > 0)
    assert model.certificate_.holds


def test_slopes_beyond_the_largest_float64_prove_nothing():
    power = np.arange(7.0)[:, None] / 6
    X, y = 1e-160 * power ** [1, 2, 3, 4], np.array([5.0, 6.0, 6.0, 13.0, 9.0, 9.0, 4.0])
    exposure = np.array([2.1365093278078997, 161770203.216006, 4818.45119727987, 546.99955959550, 2e-4, 7e-6, 3e-3])
    model = cf.PoissonRegressor(1.0, 1.0).fit(X, y, exposure=exposure)
    assert model.certificate_.holds and not model.coef_.any()
    assert model.intercept_ == pytest.approx(np.log(y.sum() / exposure.sum()), rel=1e-12)
    # In units of the columns the penalty is 1e160: its square, which a proof by curvature sums, is infinite.
    model.coef_ = np.array([1.84708175e-10, 1.66280552e-10, -3.66343338e-11, 0.0])
    model.intercept_ = -14.798774664962181
    assert not model.certify(X, y, exposure=exposure).holds
