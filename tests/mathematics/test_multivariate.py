"""The multivariate Gaussian: its formulas against SciPy and against samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import certifit as cf


def gaussian(rng, d=4):
    root = rng.normal(size=(d, d))
    return cf.Gaussian(rng.normal(size=d), root @ root.T + 0.1 * np.eye(d))


def test_densities_are_those_of_scipy(rng):
    p = gaussian(rng)
    X = rng.normal(size=(50, 4))
    peer = multivariate_normal(p.mean, p.covariance)
    np.testing.assert_allclose(p.log_density(X), peer.logpdf(X), rtol=1e-10)
    np.testing.assert_allclose(p.entropy, peer.entropy(), rtol=1e-12)
    np.testing.assert_allclose(p.log_determinant, np.linalg.slogdet(p.covariance)[1], rtol=1e-10)
    np.testing.assert_allclose(p.precision @ p.covariance, np.eye(4), atol=1e-9)


def test_a_joint_density_is_that_of_a_part_times_that_of_the_rest_given_it(rng):
    p = gaussian(rng)
    for x in rng.normal(size=(10, 4)):
        part = p.marginal([2, 0]).log_density(x[[2, 0]])
        rest = p.condition({0: x[0], 2: x[2]}).log_density(x[[1, 3]])
        np.testing.assert_allclose(part + rest, p.log_density(x), rtol=1e-9)


def test_conditioning_is_the_formula_by_inverses(rng):
    p = gaussian(rng)
    a, b, x = [1, 3], [0, 2], np.array([0.3, -1.0])
    S = p.covariance
    gain = S[np.ix_(a, b)] @ np.linalg.inv(S[np.ix_(b, b)])
    given = p.condition({"x0": x[0], "x2": x[1]})
    np.testing.assert_allclose(given.mean, p.mean[a] + gain @ (x - p.mean[b]), rtol=1e-9)
    np.testing.assert_allclose(given.covariance, S[np.ix_(a, a)] - gain @ S[np.ix_(b, a)], rtol=1e-8, atol=1e-10)
    assert given.names == ["x1", "x3"]


def test_samples_have_the_moments_and_repeat_with_the_seed(rng):
    p = gaussian(rng, 3)
    X = p.sample(200_000, seed=1)
    assert np.array_equal(X, p.sample(200_000, seed=1)) and not np.array_equal(X, p.sample(200_000, seed=2))
    roots = np.sqrt(np.diagonal(p.covariance))
    assert (np.abs(X.mean(axis=0) - p.mean) < 5 * roots / np.sqrt(len(X))).all()
    assert (np.abs(np.cov(X.T) - p.covariance) < 5 * np.sqrt(2 / len(X)) * np.outer(roots, roots)).all()


def test_the_mean_log_density_of_a_fit_is_largest_at_its_own_moments(rng):
    X = gaussian(rng, 3).sample(500)
    best = cf.Gaussian(X.mean(axis=0), np.cov(X.T, bias=True)).log_density(X).mean()
    for _ in range(10):
        turn = np.eye(3) + 0.05 * rng.normal(size=(3, 3))
        other = cf.Gaussian(X.mean(axis=0) + 0.05 * rng.normal(size=3), turn @ np.cov(X.T, bias=True) @ turn.T)
        assert other.log_density(X).mean() < best


def test_units_do_not_matter(rng):
    p = gaussian(rng, 3)
    units = np.array([1e-150, 1.0, 1e150])
    scaled = cf.Gaussian(p.mean * units, p.covariance * units * units[:, None])
    x = rng.normal(size=(5, 3))
    np.testing.assert_allclose(scaled.mahalanobis(x * units), p.mahalanobis(x), rtol=1e-9)


@pytest.mark.parametrize(
    "mean, covariance, words",
    [
        ([0, 0], [[1, 2], [2, 1]], "not positive definite.*eigenvalue"),
        ([0, 0], [[1, 0.5], [0.2, 1]], "not symmetric"),
        ([0, 0], [[1, 0], [0, 0]], "variance of 0 at 'x1'"),
        ([0, np.nan], np.eye(2), "finite"),
        ([0, 0, 0], np.eye(2), "d x d"),
    ],
)
def test_what_is_no_gaussian_is_refused_in_words(mean, covariance, words):
    with pytest.raises(ValueError, match=words):
        cf.Gaussian(mean, covariance)


def test_coordinates_are_checked():
    p = cf.Gaussian([0.0, 1.0], np.eye(2))
    for call in (
        lambda: p.marginal([2]),
        lambda: p.marginal([]),
        lambda: p.marginal(["z"]),
        lambda: p.condition({0: 1.0, 1: 2.0}),
    ):
        with pytest.raises(ValueError, match="coordinate"):
            call()


def test_a_gaussian_does_not_change_with_the_arrays_it_was_made_of():
    mean, covariance = np.zeros(2), np.eye(2)
    p = cf.Gaussian(mean, covariance)
    mean += 5
    covariance *= 9
    assert p.mean.tolist() == [0, 0] and p.covariance.tolist() == [[1, 0], [0, 1]]


def test_rows_and_coordinates_of_a_gaussian_are_checked():
    p = cf.Gaussian([0.0, 1.0], np.eye(2))
    assert p.log_density(np.zeros((0, 2))).shape == (0,)
    assert cf.Gaussian(0.0, 1.0).log_density(0.0).shape == (1,)
    with pytest.raises(ValueError, match="rows of 2 coordinates"):
        p.log_density(np.zeros((2, 2, 1)))
    for place in (0.5, True):
        with pytest.raises(TypeError, match="place or a name"):
            p.marginal([place])
