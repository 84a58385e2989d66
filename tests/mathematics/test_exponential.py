"""The exponential family: densities, moments as derivatives of a, samples, conversions, maximum likelihood."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy import stats

from certifit.mathematics import families
from certifit.mathematics.families import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Exponential,
    ExponentialFamily,
    Gamma,
    Multinomial,
    Normal,
    Poisson,
)

ONES = [
    Bernoulli(0.3),
    Normal(-2.0, 4.0),
    Poisson(3.5),
    Exponential(2.0),
    Gamma(2.5, 0.7),
    Beta(0.5, 3.0),
    Dirichlet([0.5, 2.0, 7.0]),
    Categorical([0.2, 0.3, 0.1, 0.4]),
    Multinomial([0.2, 0.3, 0.5], trials=7),
]
N = 20_000


def rebuilt(p, eta):
    return type(p).from_natural(eta, p.trials) if isinstance(p, Multinomial) else type(p).from_natural(eta)


def pushed(p, i, step):
    """log partition and E T after a step of eta_i."""
    eta = np.array(p.eta, dtype=float)
    if eta.ndim:
        eta[i] += step
    else:
        eta = eta + step
    q = rebuilt(p, eta)
    return q.log_partition, np.asarray(q.statistic_mean)


SCIPY = {
    Bernoulli: lambda p: stats.bernoulli(p.p).logpmf,
    Normal: lambda p: stats.norm(p.mean, math.sqrt(p.variance)).logpdf,
    Poisson: lambda p: stats.poisson(p.rate).logpmf,
    Exponential: lambda p: stats.expon(scale=1 / p.rate).logpdf,
    Gamma: lambda p: stats.gamma(p.shape, scale=1 / p.rate).logpdf,
    Beta: lambda p: stats.beta(p.alpha, p.beta).logpdf,
    Dirichlet: lambda p: lambda y: stats.dirichlet(p.alpha).logpdf(y.T),
    Categorical: lambda p: lambda y: np.log(p.probabilities)[y],
    Multinomial: lambda p: stats.multinomial(p.trials, p.probabilities).logpmf,
}


@pytest.mark.parametrize("p", ONES, ids=repr)
def test_densities_are_those_of_scipy(p):
    y = p.sample(200, seed=3)
    np.testing.assert_allclose(p.log_density(y), SCIPY[type(p)](p)(y), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(p.density(y), np.exp(p.log_density(y)), rtol=1e-15)


@pytest.mark.parametrize("p", ONES, ids=repr)
def test_a_density_is_its_definition(p):
    y = p.sample(50, seed=4)
    product = p.statistic(y) * p.eta if p.is_scalar else p.statistic(y) @ p.eta
    expected = product - p.log_partition + p.log_base(y)
    np.testing.assert_allclose(p.log_density(y), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("p", ONES, ids=repr)
def test_moments_of_t_are_the_derivatives_of_the_log_partition(p):
    step, k = 1e-5, np.size(p.eta)
    for i in range(k):
        (upper, above), (lower, below) = pushed(p, i, step), pushed(p, i, -step)
        slope = np.atleast_1d(p.statistic_mean)[i]
        np.testing.assert_allclose(slope, (upper - lower) / (2 * step), rtol=1e-8, atol=1e-8)
        row = np.reshape(p.statistic_covariance, (k, k))[i]
        np.testing.assert_allclose(row, np.atleast_1d(above - below) / (2 * step), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("p", ONES, ids=repr)
def test_moments_of_t_are_those_of_samples(p, seed):
    """Within six standard errors, which a right formula misses once in 10^9."""
    T = p.statistic(p.sample(N, seed)).reshape(N, -1)
    mean = np.atleast_1d(p.statistic_mean)
    covariance = np.reshape(p.statistic_covariance, (len(mean), len(mean)))
    assert (np.abs(T.mean(axis=0) - mean) <= 6 * np.sqrt(np.diagonal(covariance) / N)).all()
    away = T - mean
    products = away[:, :, None] * away[:, None, :]
    assert (np.abs(products.mean(axis=0) - covariance) <= 6 * products.std(axis=0) / math.sqrt(N) + 1e-12).all()


@pytest.mark.parametrize("p", [p for p in ONES if not isinstance(p, Categorical)], ids=repr)
def test_means_and_variances_of_y_are_those_of_samples(p, seed):
    y = p.sample(N, seed).astype(float)
    assert (np.abs(y.mean(axis=0) - p.mean) <= 6 * np.sqrt(p.variance) / math.sqrt(N)).all()
    squares = (y - p.mean) ** 2
    assert (np.abs(squares.mean(axis=0) - p.variance) <= 6 * squares.std(axis=0) / math.sqrt(N)).all()


def test_a_categorical_counts_its_classes(seed):
    p = Categorical([0.2, 0.3, 0.5])
    shares = np.bincount(p.sample(N, seed)) / N
    assert (np.abs(shares - p.mean) <= 6 * np.sqrt(p.variance / N)).all()


@pytest.mark.parametrize("p", ONES, ids=repr)
def test_natural_and_usual_parameters_are_converted_both_ways(p):
    back = rebuilt(p, p.eta)
    for name in p.usual:
        np.testing.assert_allclose(getattr(back, name), getattr(p, name), rtol=1e-13)
    np.testing.assert_allclose(back.eta, p.eta)
    assert repr(back) == repr(p)


@pytest.mark.parametrize("p", ONES, ids=repr)
def test_the_same_seed_draws_the_same_rows(p):
    assert np.array_equal(p.sample(20, seed=1), p.sample(20, seed=1))
    assert not np.array_equal(p.sample(20, seed=1), p.sample(20, seed=2))
    assert len(p.sample(0)) == 0
    with pytest.raises(ValueError, match=r"whole number >= 0. Got -1"):
        p.sample(-1)


@pytest.mark.parametrize("p", ONES, ids=repr)
def test_maximum_likelihood_matches_the_mean_of_t(p, seed):
    y = p.sample(400, seed)
    weight = np.random.default_rng(seed).integers(0, 3, len(y))
    for w in (None, weight):
        fitted = type(p).fit(y, w)
        T = np.average(p.statistic(y), axis=0, weights=w)
        np.testing.assert_allclose(fitted.statistic_mean, T, rtol=1e-9, atol=1e-9)
    twice = type(p).fit(np.repeat(y, weight, axis=0))
    np.testing.assert_allclose(type(p).fit(y, weight).eta, twice.eta, rtol=1e-9)


@pytest.mark.parametrize("p", ONES, ids=repr)
def test_no_natural_parameter_nearby_is_likelier(p, seed):
    y = p.sample(300, seed)
    best = type(p).fit(y)
    highest = best.log_density(y).sum()
    rng = np.random.default_rng(seed)
    for _ in range(20):
        eta = np.asarray(best.eta) + 0.05 * rng.normal(size=np.shape(best.eta))
        if np.all(type(p)._is_natural(eta)):
            assert rebuilt(best, eta).log_density(y).sum() < highest


@pytest.mark.parametrize("shape", [0.03, 0.1, 30.0, 1e6])
def test_gamma_shapes_from_tiny_to_huge_are_found(shape):
    y = np.random.default_rng(5).gamma(shape, 1.0, 4000)
    fitted = Gamma.fit(y)
    np.testing.assert_allclose(fitted.mean, y.mean(), rtol=1e-7)
    assert fitted.shape == pytest.approx(shape, rel=0.2)


@pytest.mark.parametrize("alpha", [[0.05, 0.1, 0.2], [1e4, 2e4, 3e4]])
def test_dirichlets_flat_and_sharp_are_found(alpha):
    y = Dirichlet(alpha).sample(3000, seed=2)
    y = y[(y > 0).all(axis=1)]
    np.testing.assert_allclose(Dirichlet.fit(y).alpha, alpha, rtol=0.15)


def test_the_bernoulli_is_the_worked_example():
    p = 0.2
    one = Bernoulli(p)
    assert one.eta == pytest.approx(math.log(p / (1 - p)), rel=1e-15)
    assert one.log_partition == pytest.approx(math.log(1 + math.exp(one.eta)), rel=1e-15)
    assert one.log_partition == pytest.approx(-math.log(1 - p), rel=1e-15)
    sigma = 1 / (1 + math.exp(-one.eta))
    assert one.mean == pytest.approx(sigma, rel=1e-15)
    assert one.variance == pytest.approx(sigma * (1 - sigma), rel=1e-15)
    np.testing.assert_allclose(one.density(np.array([0, 1])), [1 - p, p])


@pytest.mark.parametrize("eta", [-700.0, -40.0, 40.0, 700.0])
def test_a_bernoulli_keeps_its_digits_where_p_rounds(eta):
    far = math.exp(-abs(eta))
    likely, unlikely = -math.log1p(far), -math.log1p(far) - abs(eta)
    expected = [unlikely, likely] if eta > 0 else [likely, unlikely]
    one = Bernoulli.from_natural(eta)
    np.testing.assert_allclose(one.log_density(np.array([0, 1])), expected, rtol=1e-15)
    np.testing.assert_allclose(one.variance, far / (1 + far) ** 2, rtol=1e-14)


def test_a_normal_far_from_0_keeps_its_digits():
    p = Normal(1e8, 1.0)
    assert p.log_density(1e8 + 2.0) == pytest.approx(-2 - math.log(2 * math.pi) / 2, rel=1e-12)
    assert Normal.fit(1e8 + np.array([-1.0, 1.0])).variance == 1.0


def test_weights_become_natural_parameters_become_means(rng):
    X, w, b = rng.normal(size=(6, 3)), rng.normal(size=3) / 3, 0.2
    z = X @ w + b
    np.testing.assert_allclose(Bernoulli.from_weights(w, X, b).p, 1 / (1 + np.exp(-z)))
    np.testing.assert_allclose(Poisson.from_weights(w, X, b).rate, np.exp(z))
    normal = Normal.from_weights(w, X, b, variance=2.0)
    np.testing.assert_allclose(normal.mean, z)
    np.testing.assert_allclose(normal.eta, np.column_stack([z / 2, np.full(6, -0.25)]))
    positive = np.abs(X)
    rates = positive @ np.abs(w) + b
    np.testing.assert_allclose(Exponential.from_weights(-np.abs(w), positive, -b).mean, 1 / rates)
    np.testing.assert_allclose(Gamma.from_weights(np.abs(w), positive, b, shape=3.0).mean, 1 / rates)
    one = Bernoulli.from_weights(w, X[0], b)
    assert isinstance(one.p, float) and one.p == pytest.approx(1 / (1 + math.exp(-z[0])))


def test_classes_by_k_less_1_weights_are_softmax(rng):
    X, W, b = rng.normal(size=(6, 3)), rng.normal(size=(4, 3)), rng.normal(size=4)
    exp = np.exp(X @ W.T + b)
    softmax = exp / exp.sum(axis=1, keepdims=True)
    fewer = Categorical.from_weights(W[:-1] - W[-1], X, b[:-1] - b[-1])  # only differences matter
    np.testing.assert_allclose(fewer.probabilities, softmax)
    np.testing.assert_allclose(fewer.log_density(np.arange(6) % 4), np.log(softmax[np.arange(6), np.arange(6) % 4]))


def test_two_classes_are_a_bernoulli_and_two_proportions_a_beta():
    two, one = Categorical([0.3, 0.7]), Bernoulli(0.3)
    np.testing.assert_allclose(two.eta, [one.eta])
    assert two.log_partition == pytest.approx(one.log_partition)
    y = np.array([0.2, 0.6])
    np.testing.assert_allclose(
        Beta(2.0, 3.0).log_density(y), Dirichlet([2.0, 3.0]).log_density(np.column_stack([y, 1 - y]))
    )


@pytest.mark.parametrize("p", ONES[:6], ids=repr)
def test_many_at_once_are_each_alone(p):
    many = type(p).from_natural(np.stack([p.eta, np.asarray(p.eta) * 0.9]))
    second = type(p).from_natural(np.asarray(p.eta) * 0.9)
    for name in ("log_partition", "statistic_mean", "statistic_covariance", "mean", "variance"):
        np.testing.assert_allclose(getattr(many, name)[0], getattr(p, name), rtol=1e-14)
        np.testing.assert_allclose(getattr(many, name)[1], getattr(second, name), rtol=1e-14)
    y = p.sample(2, seed=1)
    np.testing.assert_allclose(many.log_density(y), [p.log_density(y[0]), second.log_density(y[1])], rtol=1e-13)
    assert many.sample(5).shape == (5, 2)


@pytest.mark.parametrize(
    "p, y",
    [
        (Bernoulli(0.3), 2),
        (Bernoulli(0.3), 0.5),
        (Poisson(1.0), -1),
        (Poisson(1.0), 1.5),
        (Exponential(1.0), -0.1),
        (Gamma(2.0, 1.0), 0.0),
        (Gamma(2.0, 1.0), -1.0),
        (Beta(2.0, 2.0), 1.0),
        (Beta(2.0, 2.0), -0.5),
        (Dirichlet([2.0, 2.0]), [0.4, 0.4]),
        (Dirichlet([2.0, 2.0]), [-0.4, 1.4]),
        (Categorical([0.5, 0.5]), 2),
        (Multinomial([0.5, 0.5], 3), [1, 1]),
        (Multinomial([0.5, 0.5], 3), [4, -1]),
    ],
)
def test_what_is_not_possible_has_density_0(p, y):
    assert p.log_density(y) == -np.inf and p.density(y) == 0


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: Bernoulli(1.0), "p must be between 0 and 1, both excluded. Got 1."),
        (lambda: Normal(0.0, 0.0), "variance must be > 0. Got 0."),
        (lambda: Poisson([1.0, np.nan]), "rate must be > 0. Got nan."),
        (lambda: Categorical([0.5, 0.6]), "sum to 1. Got [0.5, 0.6]."),
        (lambda: Dirichlet([1.0]), "at least two numbers"),
        (lambda: Multinomial([0.5, 0.5], 0), "trials must be a whole number >= 1. Got 0."),
        (lambda: Exponential.from_natural(1.0), "not a natural parameter of Exponential: 1.0."),
        (lambda: Normal.from_natural([1.0, 2.0]), "not a natural parameter of Normal: [1.0, 2.0]."),
        (lambda: Normal.from_natural(1.0), "along the last axis"),
        (lambda: Bernoulli.from_weights([1.0], [[1.0, 2.0]]), "Got shapes (1,) of weights and (1, 2) of X."),
        (lambda: Bernoulli.fit([0, 1, 2]), "Bernoulli needs y 0 or 1. Row 2 is 2."),
        (lambda: Bernoulli.fit([1, 1]), "no maximum in Bernoulli. p must be between 0 and 1"),
        (lambda: Normal.fit([2.0, 2.0]), "no maximum in Normal. All y are the same."),
        (lambda: Gamma.fit([2.0, 2.0]), "no maximum in Gamma. All y are the same."),
        (lambda: Beta.fit([0.2, 0.2]), "no maximum in Beta. All y are the same."),
        (lambda: Poisson.fit([0, 0]), "no maximum in Poisson. rate must be > 0"),
        (lambda: Categorical.fit([0, 2, 2]), "no maximum in Categorical."),
        (lambda: Dirichlet.fit([[0.5, 0.5], [0.5, 0.4]]), "sum to 1. Row 1 is [0.5, 0.4]."),
        (lambda: Multinomial.fit([[1, 2], [2, 2]]), "sum to the trials. Row 1 is [2, 2]."),
        (lambda: Poisson.fit([]), "at least one row"),
    ],
)
def test_what_is_not_legal_is_refused_in_words(call, words):
    with pytest.raises(ValueError) as error:
        call()
    assert words in str(error.value)


@pytest.mark.parametrize("p", ONES, ids=repr)
def test_a_distribution_can_be_sent(p):
    assert repr(pickle.loads(pickle.dumps(p))) == repr(p)


def test_every_distribution_of_the_package_is_tested():
    found = {
        kind
        for kind in vars(families).values()
        if isinstance(kind, type) and issubclass(kind, ExponentialFamily) and kind is not ExponentialFamily
    }
    assert found == {type(p) for p in ONES}
