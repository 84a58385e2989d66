"""Gaussian discriminant analysis: the formulas, scikit-learn, what is singular, the certificate."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import multivariate_normal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning

import certifit as cf
from certifit.data.labels import coded
from certifit.data.source import Memory
from certifit.models.discriminant.certificate import certify_gaussian
from certifit.models.discriminant.likelihood import divergence

KINDS = ("shared", "class", "diagonal")


def rows(rng, n=400, d=4, k=3):
    y = rng.integers(0, k, n)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=(k, d))[y] + 10 * np.arange(d)
    return X, np.array(["low", "mid", "top", "up"])[y]


def formulas(X, y, w, kind):
    """Priors, means and class covariances, slowly."""
    classes = np.unique(y)
    priors = np.array([w[y == c].sum() for c in classes]) / w.sum()
    means = np.array([np.average(X[y == c], axis=0, weights=w[y == c]) for c in classes])
    away = X - means[np.searchsorted(classes, y)]
    if kind == "shared":
        return priors, means, [(away.T * w) @ away / w.sum()] * len(classes)
    own = [(away[y == c].T * w[y == c]) @ away[y == c] / w[y == c].sum() for c in classes]
    return priors, means, own if kind == "class" else [np.diag(np.diagonal(S)) for S in own]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [2, 4])
def test_the_model_is_the_formula(kind, k, rng):
    X, y = rows(rng, k=k)
    w = rng.integers(0, 4, len(X)).astype(float)
    model = cf.GaussianDiscriminant(kind).fit(X, y, w)
    priors, means, covariances = formulas(X, y, w, kind)
    np.testing.assert_allclose(model.priors_, priors, rtol=1e-14)
    np.testing.assert_allclose(model.means_, means, rtol=1e-12)
    joint = np.array([
        np.log(p) + multivariate_normal(m, S).logpdf(X) for p, m, S in zip(priors, means, covariances, strict=True)
    ]).T  # fmt: skip
    np.testing.assert_allclose(model.predict_joint_log_proba(X), joint, rtol=1e-9, atol=1e-9)
    posterior = np.exp(joint - joint.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), posterior, rtol=1e-8, atol=1e-10)
    codes = np.searchsorted(model.classes_, y)
    total = w @ joint[np.arange(len(X)), codes]
    np.testing.assert_allclose(model.joint_log_likelihood(X, y, w), total, rtol=1e-11)
    assert model.certificate_.holds and model.certificate_.value < 1e-12


def test_no_state_nearby_has_a_larger_likelihood(rng):
    X, y = rows(rng, n=150)
    model = cf.GaussianDiscriminant("class").fit(X, y)
    best = model.joint_log_likelihood(X, y)
    for _ in range(20):
        priors = model.priors_ * np.exp(0.05 * rng.normal(size=3))
        means = model.means_ + 0.05 * rng.normal(size=model.means_.shape)
        total = 0.0
        for k, label in enumerate(model.classes_):
            turn = np.eye(4) + 0.05 * rng.normal(size=(4, 4))
            density = multivariate_normal(means[k], turn @ model.covariance_[k] @ turn.T)
            total += (np.log(priors[k] / priors.sum()) + density.logpdf(X[y == label])).sum()
        assert total < best


@pytest.mark.parametrize("shrinkage", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("priors", [None, [0.2, 0.5, 0.3]])
def test_conventions_are_those_of_scikit_learn(shrinkage, priors, rng):
    X, y = rows(rng)
    shared = cf.GaussianDiscriminant(shrinkage=shrinkage, priors=priors).fit(X, y)
    peer = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage, priors=priors, store_covariance=True).fit(
        X, y
    )
    np.testing.assert_allclose(shared.covariance_, peer.covariance_, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(shared.predict_proba(X), peer.predict_proba(X), atol=1e-8)
    own = cf.GaussianDiscriminant("class", shrinkage=shrinkage, priors=priors).fit(X, y)
    if "shrinkage" in signature(QuadraticDiscriminantAnalysis).parameters:  # from scikit-learn 1.8
        peer = QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=shrinkage, priors=priors).fit(X, y)
        np.testing.assert_allclose(own.predict_proba(X), peer.predict_proba(X), atol=1e-8)


def test_the_boundary_of_two_classes_is_a_line(rng):
    X, y = rows(rng, k=2)
    model = cf.GaussianDiscriminant().fit(X, y)
    assert model.coef_.shape == (1, 4) and model.intercept_.shape == (1,)
    odds = X @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(odds, np.diff(model.predict_joint_log_proba(X), axis=1)[:, 0], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(model.decision_function(X), odds, rtol=1e-9, atol=1e-10)
    # coef = S^-1 (m_1 - m_0), the textbook's
    expected = np.linalg.solve(model.covariance_, model.means_[1] - model.means_[0])
    np.testing.assert_allclose(model.coef_[0], expected, rtol=1e-9)
    assert not hasattr(model.set_params(covariance="class").fit(X, y), "coef_")


def test_weights_are_repetitions_and_sparse_rows_are_rows(rng):
    X, y = rows(rng)
    X = np.where(np.abs(X - X.mean(axis=0)) < 1, 0.0, X)
    w = rng.integers(0, 4, len(X))
    for kind in KINDS:
        weighted = cf.GaussianDiscriminant(kind).fit(X, y, w)
        repeated = cf.GaussianDiscriminant(kind).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
        sparse = cf.GaussianDiscriminant(kind).fit(sp.csr_array(X), y, w)
        for other in (repeated, sparse):
            np.testing.assert_allclose(other.predict_proba(X), weighted.predict_proba(X), atol=1e-10)
        np.testing.assert_allclose(sparse.predict_proba(sp.csr_array(X)), weighted.predict_proba(X), atol=1e-10)


@pytest.mark.parametrize("kind", ["shared", "class"])
def test_columns_that_say_nothing_more_are_named_and_change_nothing(kind, rng):
    X, y = rows(rng)
    wide = np.column_stack([X[:, :2], X[:, 0] - 2 * X[:, 1], X[:, 2:], np.full(len(X), 7.0)])
    model = cf.GaussianDiscriminant(kind).fit(wide, y)
    assert model.certificate_.dependent == ("x2", "x5") and model.certificate_.holds
    np.testing.assert_allclose(
        model.predict_proba(wide), cf.GaussianDiscriminant(kind).fit(X, y).predict_proba(X), atol=1e-9
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_that_is_singular_within_a_class_is_named(kind, rng):
    X, y = rows(rng)
    X = np.column_stack([X, y == "low"]).astype(float)
    with pytest.raises(ValueError, match=r"'x4'.*no maximum.*shrinkage"):
        cf.GaussianDiscriminant(kind, singular="raise").fit(X, y)
    with pytest.warns(ConvergenceWarning, match=r"'x4'.*no maximum.*was added.*shrinkage"):
        model = cf.GaussianDiscriminant(kind).fit(X, y)
    assert model.certificate_.holds and np.isfinite(model.predict_proba(X)).all()
    assert "no maximum without: " in str(model.certificate_) and "'x4'" in str(model.certificate_)
    assert np.array_equal(model.predict(X) == "low", y == "low")
    assert np.isfinite(cf.GaussianDiscriminant(kind, shrinkage=0.1).fit(X, y).predict_proba(X)).all()


def test_fewer_rows_than_columns_are_refused_with_both_numbers(rng):
    with pytest.raises(ValueError, match="has 6 rows for 10 columns"):
        cf.GaussianDiscriminant("class", singular="raise").fit(rng.normal(size=(12, 10)), np.arange(12) % 2)
    with pytest.raises(ValueError, match="have 12 rows for 20 columns"):
        cf.GaussianDiscriminant(singular="raise").fit(rng.normal(size=(12, 20)), np.arange(12) % 2)


def test_near_singular_covariances_keep_their_digits(rng):
    """A column within 1e-7 of another: float64 sums of products would leave no digit of the inverse."""
    z, y = rng.normal(size=(2000, 2)), rng.integers(0, 2, 2000)
    e = rng.normal(size=2000)
    X = np.column_stack([z, z[:, 0] + 1e-7 * (e + y)])
    model = cf.GaussianDiscriminant().fit(X, y)
    apart = np.column_stack([z, (X[:, 2] - X[:, 0]) * 1e7])
    easy = cf.GaussianDiscriminant().fit(apart, y)
    np.testing.assert_allclose(model.predict_proba(X), easy.predict_proba(apart), atol=1e-6)
    assert model.certificate_.holds


@pytest.mark.parametrize("kind", KINDS)
def test_a_nudge_of_any_part_is_noticed(kind, rng):
    X, y = rows(rng)
    model = cf.GaussianDiscriminant(kind).fit(X, y)
    again = model.certify(X, y)
    assert again.value <= model.certificate_.value + model.certificate_.rounding
    for name in ("means_", "covariance_", "priors_"):
        kept = getattr(model, name)
        setattr(model, name, kept * (1 + 1e-4))
        nudged = model.certify(X, y)
        assert nudged.value > 10 * again.value + again.rounding, name
        setattr(model, name, kept)
    model.roots_ = model.roots_ * (1 + 1e-4)
    assert not model.certify(X, y).holds
    if kind == "shared":
        model.roots_ = model.roots_ / (1 + 1e-4)
        model.coef_ = model.coef_ * (1 + 1e-4)
        assert "coef_" in str(model.certify(X, y))


@pytest.mark.parametrize("kind", KINDS)
def test_the_certificate_is_the_shortfall_of_the_likelihood(kind, rng):
    """At perturbed states the divergence equals the fall of the mean log-likelihood: the theorem, checked."""
    X, y = rows(rng)
    codes = coded(y)[1]
    model = cf.GaussianDiscriminant(kind).fit(X, y)
    source = Memory(X, codes)
    task = model._task(source)
    best = model.joint_log_likelihood(X, y) / len(X)
    for size in (1e-1, 1e-2, 1e-3):
        state = model._state()
        means = state.means + size * rng.normal(size=state.means.shape)
        moved = replace(state, means=means)
        other = cf.GaussianDiscriminant(kind).fit(X, y)
        other.means_ = means
        fall = best - other.joint_log_likelihood(X, y) / len(X)
        certificate = certify_gaussian(task, moved, 1e-8)
        np.testing.assert_allclose(certificate.shortfall, fall, rtol=1e-6, atol=1e-11)
        assert certificate.value >= certificate.shortfall


def test_divergence_is_the_sum_of_the_textbook(rng):
    p, q = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))
    np.testing.assert_allclose(divergence(p, q), (p * np.log(p / q)).sum(), rtol=1e-12)
    near = q * (1 + 1e-9 * np.array([1, -1, 1, -1, 0]))
    np.testing.assert_allclose(divergence(near, q), (q * (near / q - 1) ** 2 / 2).sum(), rtol=1e-6)
    assert divergence(np.array([0.5, 0.5]), np.array([1.0, 0.0])) == np.inf
    assert divergence(np.array([1.0, 0.0]), np.array([1.0, 0.0])) == 0


def test_skin_segmentation_with_a_covariance_a_class(shared_data):
    table = pd.read_parquet(shared_data / "skin_segmentation" / "skin_segmentation.parquet")
    X, y = table[["b", "g", "r"]].to_numpy(float), table["y"].to_numpy()
    model = cf.GaussianDiscriminant("class").fit(X, y)
    peer = QuadraticDiscriminantAnalysis().fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-9)
    assert model.score(X, y) > 0.98


def test_mnist_with_one_covariance(shared_data):
    table = pd.read_parquet(shared_data / "mnist_5k" / "mnist_5k.parquet")
    X, y = table.drop(columns="label").to_numpy(float)[:, ::3], table["label"].to_numpy()
    constant = np.ptp(X, axis=0) == 0
    model = cf.GaussianDiscriminant(shrinkage=0.1).fit(X, y)
    peer = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-7)
    plain = cf.GaussianDiscriminant().fit(X, y)
    assert set(plain.certificate_.dependent) >= set(np.array(plain.column_names_)[constant])
    assert plain.score(X, y) > 0.85


def test_adult_from_its_file(shared_data):
    path = shared_data / "adult" / "adult.parquet"
    names = [name for name in pd.read_parquet(path).columns if name not in ("income", "split", "fnlwgt")]
    source = cf.scan_parquet(path, target="income", columns=names)
    model = cf.GaussianDiscriminant().fit(source)
    assert model.certificate_.holds and len(model.classes_) == 2
    assert model.score(source) > 0.83
    assert cf.GaussianNB().fit(source).score(source) > 0.6


def test_parameters_are_checked(rng):
    X, y = rows(rng)
    for parameters, words in (
        ({"covariance": "full"}, "covariance must be one of 'shared'"),
        ({"shrinkage": 1.5}, "shrinkage must be a number from 0 to 1"),
        ({"priors": [0.5, 0.5]}, "one number per class, 3"),
        ({"priors": [0.5, 0.5, 0.5]}, "add up to 1"),
        ({"singular": "ignore"}, "singular must be"),
    ):
        with pytest.raises(ValueError, match=words):
            cf.GaussianDiscriminant(**parameters).fit(X, y)


@pytest.mark.parametrize("far", [1e5, 1e8])
def test_a_class_far_from_all_others_changes_nothing_between_them(far, rng):
    """Scores of linear boundaries about the mean of all are some far^2 there, and cancel."""
    y = np.arange(90) % 3
    X = np.round(rng.normal(size=(90, 3)), 3)  # exact where it is moved by far
    near = y != 1
    model = cf.GaussianDiscriminant().fit(X + far * (y == 1)[:, None], y)
    at_zero = cf.GaussianDiscriminant().fit(X, y)
    assert model.certificate_.holds
    odds = [np.diff(m.predict_log_proba(X[near])[:, [0, 2]], axis=1) for m in (model, at_zero)]
    np.testing.assert_allclose(*odds, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-160, 1e-300, 1e160])
@pytest.mark.parametrize("kind", KINDS)
def test_variances_beyond_float64_are_named_as_such(kind, scale, rng):
    X, y = rows(rng)
    X[:, 1] *= scale
    with pytest.raises(ValueError, match=r"variance of feature 'x1' (is too small|leaves the range)"):
        cf.GaussianDiscriminant(kind).fit(X, y)


def test_shrinkage_that_leaves_the_range_is_no_singular_column(rng):
    X, y = rows(rng, d=2)
    with pytest.raises(ValueError, match="variance of feature 'x0' leaves the range"):
        cf.GaussianDiscriminant(shrinkage=0.5).fit(X * np.array([1e-100, 1e100]), y)


@pytest.mark.parametrize("covariance", ["shared", "class", "diagonal"])
def test_shrinkage_in_standard_deviations_is_that_of_standardised_columns(covariance, rng):
    """As scikit-learn's after a StandardScaler; units of columns change nothing."""
    X, y = rng.normal(size=(90, 4)) @ rng.normal(size=(4, 4)), np.repeat(["a", "b", "c"], 30)
    X = X * [1.0, 1e3, 1e-4, 7.0] + 5.0
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    plain = cf.GaussianDiscriminant(covariance, shrinkage=0.3).fit(scaled, y)
    model = cf.GaussianDiscriminant(covariance, shrinkage=0.3, standardize=True).fit(X, y)
    assert model.certificate_.holds
    np.testing.assert_allclose(model.predict_log_proba(X), plain.predict_log_proba(scaled), rtol=1e-9, atol=1e-9)
    units = np.array([1e150, 1.0, 1e-150, 3.0])
    other = cf.GaussianDiscriminant(covariance, shrinkage=0.3, standardize=True).fit(X * units, y)
    np.testing.assert_allclose(other.predict_log_proba(X * units), model.predict_log_proba(X), rtol=1e-9, atol=1e-9)
    if covariance == "shared":
        peer = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.3).fit(scaled, y)
        np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(scaled), atol=1e-9)


def test_a_class_of_prior_0_is_never_predicted(rng):
    X, y = rng.normal(size=(40, 2)), np.repeat(["a", "b"], 20)
    for covariance in ("shared", "class", "diagonal"):
        for priors, label in (([0, 1], "b"), ([1, 0], "a")):
            model = cf.GaussianDiscriminant(covariance, priors=priors).fit(X, y)
            assert set(model.predict(X)) == {label} and model.predict_proba(X).max(axis=1).tolist() == [1.0] * 40
