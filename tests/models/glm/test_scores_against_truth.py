"""Certificates of generalised linear models against 600 bits: never below the true excess, on data that are nasty."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import certifit as cf
from tests.score_truth import Truth

SLACK = 1 + 1e-6
MODELS = {
    "logistic": cf.LogisticRegression,
    "poisson": cf.PoissonRegressor,
    "gamma": cf.GammaRegressor,
    "negative-binomial": lambda alpha: cf.GLM("negative-binomial", alpha=alpha),
}


def target(name, score, rng, size=1.0):
    mean = np.exp(np.clip(score, -3, 3)) * size
    if name == "logistic":
        return (score + rng.logistic(size=len(score)) > 0).astype(float)
    return mean * rng.gamma(2, size=len(mean)) if name == "gamma" else rng.poisson(mean).astype(float)


def fitted(name, X, y, weight=None, alpha=0.0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MODELS[name](alpha=alpha).fit(X, y, weight)


def is_true(certificate, excess):
    """Whether what is printed is true of the numbers given."""
    bound = certificate.value if certificate.literal is None else certificate.literal
    # Beyond float64 the excess is no number; no objective is below 0.
    return certificate.is_exact_fit or not min(excess, 1.0) > bound * SLACK


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("distance", [1e-8, 1e-12, 1e-14, 1e-15, 0.0])
@pytest.mark.slow
def test_a_near_copy_is_never_called_a_copy(name, distance, rng):
    u, v = rng.normal(size=(2, 30))
    X, y = np.column_stack([u, u + distance * v]), target(name, u + v, rng)
    model = fitted(name, X, y)
    excess, _ = Truth(name, X, y).excess(model.coef_, model.intercept_)
    assert is_true(model.certificate_, excess)
    assert distance == 1e-12 or model.certificate_.holds == (distance in (0.0, 1e-8))  # beyond, weights are lost
    if distance == 0.0:
        assert model.certificate_.literal is None
        assert model.rank_ == 1


def test_whole_numbers_that_float64_cannot_tell_apart_are_not_copies(rng):
    a, z = rng.integers(-50, 50, size=(2, 40)).astype(float)
    X, y = np.column_stack([a, a * 2.0**48 + z]), rng.poisson(np.exp(z / 40)).astype(float)
    model = fitted("poisson", X, y)
    excess, _ = Truth("poisson", X, y).excess(model.coef_, model.intercept_)
    assert is_true(model.certificate_, excess)
    assert not model.certificate_.holds
    assert "'x1'" in str(model.certificate_)


def test_a_relation_up_to_rounding_is_named_with_what_it_costs(rng):
    u, v = rng.normal(size=(2, 30))
    X, y = np.column_stack([u, v, u + 2 * v]), target("gamma", u, rng)
    model = fitted("gamma", X, y)
    found = model.certificate_
    excess, _ = Truth("gamma", X, y).excess(model.coef_, model.intercept_)
    assert found.holds
    assert 1e-8 < excess <= found.literal * SLACK
    assert "treating x2 = x0 + 2 x1 as exact" in found.sentences()[0]
    assert "Taken literally" in found.sentences()[0]


def test_many_rows_bound_what_a_relation_up_to_rounding_costs(rng):
    u, v = rng.normal(size=(2, 50_000))
    X = np.column_stack([u, v, u + 2 * v])
    found = fitted("poisson", X, target("poisson", u / 4, rng)).certificate_
    assert found.holds
    assert 0 < found.literal < 1e-3


@pytest.mark.parametrize("light", [1e-8, 1e-14, 1e-100])
def test_a_column_that_varies_in_light_rows_alone_counts(light, rng):
    X, weight = rng.normal(size=(40, 2)), np.ones(40)
    X[6:, 1], weight[:6] = 1.0, light
    y = target("gamma", X[:, 0] / 2, rng)
    model = fitted("gamma", X, y, weight)
    excess, _ = Truth("gamma", X, y, weight).excess(model.coef_, model.intercept_)
    assert is_true(model.certificate_, excess)


@pytest.mark.parametrize("alpha", [1e-30, 1e-20, 1e-12])
@pytest.mark.parametrize("name", ["logistic", "poisson", "gamma"])
def test_a_constant_column_under_a_tiny_penalty_gets_no_weight(name, alpha, rng):
    X = rng.normal(size=(40, 2))
    X[:, 1] = 1e10
    y = target(name, X[:, 0] / 2, rng)
    model = fitted(name, X, y, alpha=alpha)
    excess, _ = Truth(name, X, y, alpha=alpha).excess(model.coef_, model.intercept_)
    assert model.certificate_.holds
    assert excess <= model.certificate_.value * SLACK
    assert abs(np.ravel(model.coef_)[1]) < 1e-20


@pytest.mark.parametrize("size", [1e3, 1e12, 1e15])
@pytest.mark.parametrize("name", ["poisson", "negative-binomial", "gamma"])
@pytest.mark.slow
def test_large_targets_do_not_cancel_in_what_an_excess_is_relative_to(name, size, rng):
    X = rng.normal(size=(30, 2))
    y = target(name, X[:, 0] / 10, rng, size)
    model = fitted(name, X, y)
    truth = Truth(name, X, y)
    for moved in (0.0, 1e-6):
        model.coef_ = model.coef_ + np.array([moved, 0.0])
        excess, _ = truth.excess(model.coef_, model.intercept_)
        found = model.certify(X, y)
        assert excess <= found.value * SLACK
        assert found.holds == (excess <= 1e-8)


def test_targets_that_hardly_vary_have_no_floor_under_their_objective(rng):
    X = rng.normal(size=(30, 2))
    y = np.exp(1e-6 * (X[:, 0] + rng.normal(size=30)))
    model = fitted("gamma", X, y)
    assert model.certificate_.holds
    model.coef_ = model.coef_ + np.array([1e-8, 0.0])
    excess, objective = Truth("gamma", X, y).excess(model.coef_, model.intercept_)
    found = model.certify(X, y)
    assert objective < 1e-11
    assert excess <= found.value <= 1.1 * excess
    assert not found.holds


def test_shares_of_trials_are_measured_by_their_deviance_without_its_entropy(rng):
    X, trials = rng.normal(size=(40, 2)), rng.integers(50, 100, size=40).astype(float)
    y = rng.binomial(trials.astype(int), 1 / (1 + np.exp(-X[:, 0]))) / trials
    model = cf.GLM("binomial").fit(X, y, trials)
    assert model.certificate_.holds
    model.coef_ = model.coef_ + np.array([1e-3, 0.0])
    excess, _ = Truth("logistic", X, y, trials).excess(model.coef_, model.intercept_)
    found = model.certify(X, y, trials)
    assert excess <= found.value <= 1.1 * excess


def nasty(rng):
    """A few rows whose columns have any scale, offset or near-copy, and whose weights are far apart."""
    n, d = int(rng.choice([3, 5, 12, 30])), int(rng.choice([1, 2, 4]))
    X = rng.normal(size=(n, d))
    for j in range(d):
        kind = rng.integers(6)
        if kind == 0:
            X[:, j] *= 10.0 ** rng.uniform(-150, 150)
        elif kind == 1:
            X[:, j] += 10.0 ** rng.uniform(8, 12)
        elif kind == 2 and j:
            X[:, j] = X[:, 0] + 10.0 ** rng.uniform(-15, -8) * rng.normal(size=n)
        elif kind == 3:
            X[:, j] = 10.0 ** rng.uniform(-3, 10)
    weight = 10.0 ** rng.uniform(-8, 0, size=n) * 10.0 ** rng.uniform(-200, 200) if rng.random() < 0.4 else None
    return X, weight, float(rng.choice([0.0, 1e-9, 1e-3])), 10.0 ** rng.choice([0.0, 6.0, 14.0])


@pytest.mark.parametrize("case", range(8))
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.slow
def test_no_certificate_is_below_the_truth_on_nasty_data(name, case):
    rng = np.random.default_rng([14, case])
    X, weight, alpha, size = nasty(rng)
    y = target(name, rng.normal(size=len(X)), rng, size)
    y[:2] = [0.0, 1.0] if name == "logistic" else y[:2] + 1.0
    model = fitted(name, X, y, weight, alpha)
    truth = Truth(name, X, y, weight, model.alpha_)
    excess, _ = truth.excess(model.coef_, model.intercept_)
    assert is_true(model.certificate_, excess)
    model.coef_ = model.coef_ * (1 + 1e-3 * rng.normal(size=model.coef_.shape))
    excess, _ = truth.excess(model.coef_, model.intercept_)
    assert is_true(model.certify(X, y, weight), excess)


@pytest.mark.parametrize("name", ["poisson", "gamma"])
def test_a_penalty_too_weak_to_matter_costs_no_digits_where_the_rows_settle_all_weights(name, rng):
    X = rng.normal(size=(25, 2))
    y = target(name, X @ [0.5, -0.3], rng)
    model = fitted(name, X, y, alpha=1e-12)
    excess, _ = Truth(name, X, y, alpha=1e-12).excess(model.coef_, model.intercept_)
    assert excess <= model.certificate_.value < 1e-15
    model.coef_[1] *= 1 + 1e-4
    assert not cf.verify(model, X, y)


def test_an_objective_lost_to_rounding_is_not_called_the_best_where_the_null_model_has_none(rng):
    # Scores of 0 fit a mean of 1 exactly; weights on a column of 1e-100 make an objective of 1e-208 above that 0.
    X, y = rng.normal(size=(9, 2)) * np.array([1.0, 1e-100]), np.ones(9)
    model = cf.GLM(cf.families.NegativeBinomial(alpha=1.0), fit_intercept=False).fit(X, y)
    assert model.certificate_.holds and not model.coef_.any()
    model.coef_ = np.array([0.0, 1e-4])
    assert not model.certify(X, y).holds
