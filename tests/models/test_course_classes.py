"""The course's own claims on classes, counts and components, row by row (C8, C9, U1, U2, U3), and its worked example.

Where the lecture notes were wrong, the test is of what is right.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import reference

import certifit as cf


def gaussian_rows(rng, n=120, d=3, k=2):
    y = np.arange(n) % k
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 2 * rng.normal(size=(k, d))[y], y


# ---- C8: Gaussian discriminant analysis -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["shared", "class", "diagonal"])
@pytest.mark.parametrize("k", [2, 3])
def test_priors_means_and_covariances_are_those_of_the_formulas_divided_by_n(kind, k, rng):
    X, y = gaussian_rows(rng, k=k)
    w = rng.integers(0, 4, len(X)).astype(float)
    model = cf.GaussianDiscriminant(kind).fit(X, y, w)
    priors, means, covariances = reference.gaussian_classes(X, y, w, kind)
    assert np.allclose(model.priors_, priors, rtol=1e-14)
    assert np.allclose(model.means_, means, rtol=1e-12, atol=1e-14)
    found = {"shared": [model.covariance_] * k, "class": model.covariance_, "diagonal": map(np.diag, model.covariance_)}
    for own, expected in zip(found[kind], covariances, strict=True):
        assert np.allclose(own, expected, rtol=1e-12, atol=1e-13)
    joint = [
        [
            math.log(p) + reference.gaussian_log_density(x, m, S)
            for p, m, S in zip(priors, means, covariances, strict=True)
        ]
        for x in X
    ]
    assert np.allclose(model.predict_joint_log_proba(X), joint, rtol=1e-10, atol=1e-10)


def test_the_joint_log_likelihood_is_the_sum_over_rows_of_prior_and_density(rng):
    X, y = gaussian_rows(rng)
    model = cf.GaussianDiscriminant("class").fit(X, y)
    densities = [cf.Gaussian(model.means_[k], model.covariance_[k]) for k in (0, 1)]
    total = sum(math.log(model.priors_[k]) + densities[k].log_density([x])[0] for x, k in zip(X, y, strict=True))
    assert math.isclose(model.joint_log_likelihood(X, y), total, rel_tol=1e-12)


def test_at_the_fit_the_likelihood_has_no_slope_in_any_parameter(rng):
    """The closed form is where the derivative vanishes: finite differences over prior, means and shared covariance."""
    y = np.arange(120) % 2
    X = rng.normal(size=(120, 2)) @ [[1.0, 0.3], [0.0, 1.0]] + y[:, None]
    model = cf.GaussianDiscriminant().fit(X, y)
    upper = np.triu_indices(2)

    def mean_log_likelihood(state):
        S = np.zeros((2, 2))
        S[upper] = state[5:]
        S = S + np.triu(S, 1).T
        log_prior = np.log([1 - state[0], state[0]])
        means = state[1:5].reshape(2, 2)
        return np.mean(
            [log_prior[k] + reference.gaussian_log_density(x, means[k], S) for x, k in zip(X, y, strict=True)]
        )

    fitted = np.concatenate([[model.priors_[1]], model.means_.ravel(), model.covariance_[upper]])

    def slopes(state):
        steps = 1e-5 * np.eye(len(state))
        return [(mean_log_likelihood(state + h) - mean_log_likelihood(state - h)) / 2e-5 for h in steps]

    assert np.abs(slopes(fitted)).max() < 1e-6
    assert np.abs(slopes(fitted * 1.1)).max() > 1e-2


def test_one_covariance_makes_the_posterior_logistic_in_a_linear_score(rng):
    """p(1 | x) = 1 / (1 + exp(-(w'x + b))), w = S^-1 (m1 - m0), b = -(m1'S^-1 m1 - m0'S^-1 m0) / 2 + log(p1 / p0)."""
    X, y = gaussian_rows(rng)
    model = cf.GaussianDiscriminant().fit(X, y)
    inverse = np.linalg.inv(model.covariance_)
    m0, m1 = model.means_
    w = inverse @ (m1 - m0)
    b = -(m1 @ inverse @ m1 - m0 @ inverse @ m0) / 2 + math.log(model.priors_[1] / model.priors_[0])
    assert np.allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-(X @ w + b))), rtol=1e-9, atol=1e-12)
    assert np.array_equal(model.predict(X), (X @ w + b > 0).astype(int))
    on_the_boundary = X - np.outer((X @ w + b) / (w @ w), w)
    assert np.allclose(model.predict_proba(on_the_boundary), 0.5, atol=1e-9)


def test_a_covariance_a_class_makes_the_boundary_a_conic():
    """Same means, variances 1 and 4, equal priors: x is of the wider class beyond |x|^2 = (8 / 3) d log 2."""
    corners = np.array(list(product([-1.0, 1.0], repeat=2)))  # covariance I
    X, y = np.vstack([corners, 2 * corners]), [0] * 4 + [1] * 4
    model = cf.GaussianDiscriminant("class").fit(X, y)
    radius = math.sqrt(8 / 3 * 2 * math.log(2))
    angle = np.linspace(0, 2 * np.pi, 13)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    assert (model.predict(0.999 * radius * circle) == 0).all() and (model.predict(1.001 * radius * circle) == 1).all()
    assert np.allclose(model.predict_proba(radius * circle), 0.5, atol=1e-12)


# ---- C9: naive Bayes ------------------------------------------------------------------------------------------------

TEXTS = ["buy cheap watches now", "cheap cheap watches", "meeting now", "see you at the meeting", "you buy lunch"]
LABELS = ["spam", "spam", "ham", "ham", "ham"]


def test_text_becomes_binary_indicators_of_a_vocabulary_without_stop_words():
    words = cf.TextBinarizer(stop_words=["at", "the", "you", "see"])
    X = words.fit_transform(TEXTS).toarray()
    assert list(words.get_feature_names_out()) == ["buy", "cheap", "lunch", "meeting", "now", "watches"]
    expected = [[int(word in text.split()) for word in words.get_feature_names_out()] for text in TEXTS]
    assert np.array_equal(X, expected)


@pytest.mark.parametrize("s", [1, 2])
def test_the_bernoulli_posterior_is_the_product_over_the_features(s):
    words = cf.TextBinarizer()
    X = words.fit_transform(TEXTS)
    model = cf.BernoulliNB(s).fit(X, LABELS)
    for x, found in zip(X.toarray(), model.predict_proba(X), strict=True):
        expected = reference.bernoulli_posterior(X.toarray(), LABELS, x, s)
        assert np.allclose(found, [float(expected[k]) for k in model.classes_], rtol=1e-13)


@pytest.mark.parametrize("s", [1, 2])
def test_the_multinomial_posterior_counts_how_often(s):
    words = cf.TextBinarizer(binary=False)
    X = words.fit_transform(TEXTS)
    assert X.max() == 2
    model = cf.MultinomialNB(s).fit(X, LABELS)
    for x, found in zip(X.toarray(), model.predict_proba(X), strict=True):
        expected = reference.multinomial_posterior(X.toarray(), LABELS, x, s)
        assert np.allclose(found, [float(expected[k]) for k in model.classes_], rtol=1e-13)


def test_a_word_that_a_class_never_had_does_not_decide_alone():
    """Without smoothing one such word makes a class impossible, two make all so: 0 / 0. With it (0 + 1) / (n + 2)."""
    words = cf.TextBinarizer()
    X = words.fit_transform(TEXTS)
    model = cf.BernoulliNB().fit(X, LABELS)
    column = words.vocabulary_["cheap"]
    assert math.isclose(math.exp(model.feature_log_prob_[0, column]), 1 / (3 + 2))  # ham: 3 messages, none with it
    both = words.transform(["cheap lunch"])
    assert np.isfinite(model.predict_log_proba(both)).all()
    with pytest.raises(ValueError, match="alpha > 0"):
        cf.BernoulliNB(0.0).fit(X, LABELS)


def test_ten_thousand_words_leave_no_posterior_at_zero_over_zero(rng):
    """The product of ten thousand chances is below every float; its logarithm is not."""
    X = (rng.random((40, 10_000)) < 0.5).astype(float)
    y = np.arange(40) % 2
    model = cf.BernoulliNB().fit(X, y)
    assert np.exp(model.predict_joint_log_proba(X)).max() == 0.0
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1) and model.score(X, y) == 1


def test_gaussian_features_have_a_mean_and_a_variance_a_class(rng):
    X, y = gaussian_rows(rng)
    model = cf.GaussianNB(var_smoothing=0).fit(X, y)
    priors, means, covariances = reference.gaussian_classes(X, y, covariance="diagonal")
    joint = [
        [
            math.log(p) + sum(reference.gaussian_log_density([x[j]], m[j], S[j : j + 1, j : j + 1]) for j in range(3))
            for p, m, S in zip(priors, means, covariances, strict=True)
        ]
        for x in X
    ]
    assert np.allclose(model.predict_joint_log_proba(X), joint, rtol=1e-11)


# ---- U1, U2, U3: principal components -------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 0.01, 1e-6])
def test_of_four_points_on_two_lines_the_eigenvalues_are_1_and_epsilon_squared(epsilon):
    """(1, 1), (-1, -1), (e, -e), (-e, e): not 2 and 2 e^2, for the covariance is divided by the four points."""
    X = np.array([[1, 1], [-1, -1], [epsilon, -epsilon], [-epsilon, epsilon]])
    model = cf.PCA(ddof=0).fit(X)
    # a singular value is known to the rounding of the largest: 1 here, and epsilon the smaller
    assert np.allclose(model.explained_variance_, [1, epsilon**2], rtol=1e-14 / epsilon, atol=0)
    assert np.allclose(model.components_[0], [math.sqrt(0.5)] * 2, rtol=1e-14, atol=0)
    assert np.allclose(model.transform(X)[:, 0], [math.sqrt(2), -math.sqrt(2), 0, 0], rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("shape", [(50, 8), (8, 300)])
@pytest.mark.parametrize("form", ["centred", "standardised", "as they are"])
def test_columns_and_rows_give_the_same_components(shape, form, rng):
    """The d x d matrix where rows are more, the N x N one where columns are: u = X'v / |X'v|."""
    X = rng.normal(size=shape) * np.linspace(1, 3, shape[1]) + 1
    Z = X if form == "as they are" else X - X.mean(axis=0)
    Z = Z / Z.std(axis=0) if form == "standardised" else Z
    model = cf.PCA(4, ddof=0, center=form != "as they are", standardize=form == "standardised").fit(X)
    assert model.route_ == ("columns" if shape[0] > shape[1] else "rows")
    for by in (reference.components_by_columns, reference.components_by_rows):
        values, directions = by(Z)
        assert np.allclose(model.explained_variance_, values[:4], rtol=1e-10)
        assert np.allclose(np.abs(np.sum(model.components_ * directions[:4], axis=1)), 1, atol=1e-10)


@pytest.mark.parametrize("shape", [(50, 8), (8, 300)])
def test_directions_are_orthonormal_and_the_projection_error_is_what_was_dropped(shape, rng):
    """The d - m smallest eigenvalues, not d - m - 1 of them."""
    X = rng.normal(size=shape) * np.linspace(1, 3, shape[1])
    values, _ = reference.components_by_rows(X - X.mean(axis=0))
    for m in range(1, 8):
        model = cf.PCA(m, ddof=0).fit(X)
        U = model.components_.T
        assert np.allclose(U.T @ U, np.eye(m), atol=1e-13)
        error = ((X - model.inverse_transform(model.transform(X))) ** 2).sum(axis=1).mean()
        assert math.isclose(error, values[m:].sum(), rel_tol=1e-9, abs_tol=1e-12 * values[0])
        assert math.isclose(model.projection_error_, values[m:].sum(), rel_tol=1e-9, abs_tol=1e-12 * values[0])


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_the_smallest_number_that_keeps_a_share_of_the_variance(share, rng):
    X = rng.normal(size=(200, 12)) * np.linspace(0.1, 3, 12)
    values, _ = reference.components_by_columns(X - X.mean(axis=0))
    kept = next(k for k in range(1, 13) if values[:k].sum() >= share * values.sum())
    assert cf.PCA(share).fit(X).n_components_ == kept


def test_whitened_scores_have_the_identity_as_covariance(rng):
    """X U L^(-1/2) of centred X over eigenvalues that are not 0."""
    X = rng.normal(size=(100, 3)) @ rng.normal(size=(3, 5)) + 5  # rank 3 of 5
    model = cf.PCA(whiten=True, ddof=0).fit(X)
    assert model.n_components_ == 3
    scores = model.transform(X)
    assert np.allclose(scores.T @ scores / len(X), np.eye(3), atol=1e-12)
    by_hand = (X - X.mean(axis=0)) @ model.components_.T / np.sqrt(model.explained_variance_)
    assert np.allclose(scores, by_hand, atol=1e-10)


def test_components_of_a_feature_space_have_a_direction_for_every_function(rng):
    """phi(x) = (x1, x2, x1^2, x1 x2, x2^2), centred: U is 5 x m, not 2 x m. The kernel matrix has its eigenvalues."""
    X = rng.normal(size=(60, 2))
    phi = [
        lambda X: X[:, 0],
        lambda X: X[:, 1],
        lambda X: X[:, 0] ** 2,
        lambda X: X[:, 0] * X[:, 1],
        lambda X: X[:, 1] ** 2,
    ]
    model = cf.PCA(3, ddof=0, basis=cf.Functions(phi)).fit(X)
    assert model.components_.T.shape == (5, 3)
    features = np.column_stack([f(X) for f in phi])
    centre = np.eye(60) - 1 / 60
    values, vectors = np.linalg.eigh(centre @ (features @ features.T) @ centre / 60)
    assert np.allclose(model.explained_variance_, values[::-1][:3], rtol=1e-10)
    scores = vectors[:, ::-1][:, :3] * np.sqrt(60 * values[::-1][:3])
    assert np.allclose(np.abs(model.transform(X)), np.abs(scores), atol=1e-9)


def test_in_a_feature_space_a_ring_and_its_middle_come_apart(rng):
    """No line tells a ring from what it holds; in the plane of the squares a line does."""
    angle, radius = rng.uniform(0, 2 * np.pi, 300), np.repeat([0.3, 2.0], 150)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]) + 0.05 * rng.normal(size=(300, 2))
    outer = radius > 1
    squares = cf.PCA(2, basis=cf.Functions([lambda X: X[:, 0] ** 2, lambda X: X[:, 1] ** 2]))
    scores = squares.fit_transform(X)
    assert cf.GaussianDiscriminant().fit(X, outer).score(X, outer) < 0.7
    assert cf.GaussianDiscriminant().fit(scores, outer).score(scores, outer) == 1
