"""Families of targets against their definitions, SciPy's densities, statsmodels and what R prints."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from scipy.integrate import trapezoid

from certifit.mathematics.families import FAMILIES, LINKS, NegativeBinomial, Tweedie
from certifit.mathematics.families.links import Power
from certifit.mathematics.families.responses import family_of

N = 500
PHI = 0.7
ALL = [*FAMILIES.values(), Tweedie(1.2), Tweedie(1.9), NegativeBinomial(0.3)]
PEERS = {
    "gaussian": sm.families.Gaussian,
    "bernoulli": sm.families.Binomial,
    "poisson": sm.families.Poisson,
    "gamma": sm.families.Gamma,
    "inverse-gaussian": sm.families.InverseGaussian,
    "tweedie": lambda: sm.families.Tweedie(var_power=1.5),
    "negative-binomial": lambda: sm.families.NegativeBinomial(alpha=1.0),
}


def family_id(family):
    return repr(family)


def rows(family, rng):
    """(y, mu) drawn from about the family."""
    mu = rng.gamma(2.0, 2.0, N)
    if family.means == (0.0, 1.0):
        mu = mu / (3 + mu)
        return (rng.random(N) < mu).astype(float), mu
    drawn = {
        "gaussian": lambda: mu + rng.normal(size=N),
        "poisson": lambda: rng.poisson(mu),
        "negative-binomial": lambda: rng.poisson(mu * rng.gamma(1.0, 1.0, N)),
        "tweedie": lambda: np.where(rng.random(N) < 0.3, 0.0, rng.gamma(2.0, mu / 2)),
        "inverse-gaussian": lambda: rng.wald(mu, 3.0),
    }
    return drawn.get(family.name, lambda: rng.gamma(3.0, mu / 3))().astype(float), mu


@pytest.mark.parametrize("family", ALL, ids=family_id)
def test_the_variance_has_its_derivative(family, rng):
    _, mu = rows(family, rng)
    step = 1e-6 * mu
    slope = (family.variance(mu + step) - family.variance(mu - step)) / (2 * step)
    np.testing.assert_allclose(family.variance_slope(mu), slope, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("family", ALL, ids=family_id)
def test_the_slope_of_a_half_deviance_is_the_residual_over_the_variance(family, rng):
    y, mu = rows(family, rng)
    step = 1e-6 * mu
    slope = (family.half_deviance(y, mu + step) - family.half_deviance(y, mu - step)) / (2 * step)
    np.testing.assert_allclose(slope, (mu - y) / family.variance(mu), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("family", ALL, ids=family_id)
def test_a_deviance_is_0_at_the_target_and_positive_elsewhere(family, rng):
    y, mu = rows(family, rng)
    assert (family.deviance(y, mu)[y != mu] > 0).all()
    inside = y[(y > family.means[0]) & (y < family.means[1])]
    np.testing.assert_allclose(family.deviance(inside, inside), 0, atol=1e-14)


@pytest.mark.parametrize("name", ["poisson", "gamma", "negative-binomial", "bernoulli", "gaussian", "inverse-gaussian"])
def test_a_deviance_near_its_least_keeps_its_digits(name):
    family, mu = FAMILIES[name], np.array([0.3])
    for apart in (1e-3, 1e-6, 1e-10):
        y = mu * (1 + apart)
        expected = (y - mu) ** 2 / family.variance(mu)  # and a term of the third order in `apart`
        np.testing.assert_allclose(family.deviance(y, mu), expected, rtol=3 * apart + 1e-14)


@pytest.mark.parametrize("family", ALL, ids=family_id)
def test_means_of_the_table_lie_where_the_links_reach(family):
    assert family.default_link == LINKS[family.links[0]]
    for name in family.links:
        mu = np.array([0.2, 0.7])
        np.testing.assert_allclose(family.link(name).mean(family.link(name).score(mu)), mu, rtol=1e-12)


@pytest.mark.parametrize("name", PEERS)
def test_deviances_variances_and_likelihoods_are_those_of_statsmodels(name, rng):
    family, peer = FAMILIES[name], PEERS[name]()
    y, mu = rows(family, rng)
    weight = rng.uniform(0.5, 2.0, N)
    peer.n = np.ones(N)  # trials, of the binomial
    phi = PHI if family.dispersion is None else 1.0
    np.testing.assert_allclose(family.variance(mu), peer.variance(mu), rtol=1e-12)
    total = peer.deviance(y, mu, freq_weights=weight)
    np.testing.assert_allclose(family.total_deviance(y, mu, weight), total, rtol=1e-10)
    np.testing.assert_allclose(family.log_density(y, mu, phi), peer.loglike_obs(y, mu, scale=phi), rtol=1e-10)
    likelihood = family.log_likelihood(y, mu, weight, phi)
    np.testing.assert_allclose(likelihood, peer.loglike(y, mu, freq_weights=weight, scale=phi), rtol=1e-10)
    by_variance = family.log_likelihood(y, mu, weight, phi, weights="variance")
    np.testing.assert_allclose(by_variance, peer.loglike(y, mu, var_weights=weight, scale=phi), rtol=1e-10)


DENSITIES = {
    "gaussian": lambda y, mu: stats.norm.logpdf(y, mu, np.sqrt(PHI)),
    "bernoulli": stats.bernoulli.logpmf,
    "poisson": stats.poisson.logpmf,
    "gamma": lambda y, mu: stats.gamma.logpdf(y, 1 / PHI, scale=mu * PHI),
    "exponential": lambda y, mu: stats.expon.logpdf(y, scale=mu),
    "inverse-gaussian": lambda y, mu: stats.invgauss.logpdf(y, mu * PHI, scale=1 / PHI),
    "negative-binomial": lambda y, mu: stats.nbinom.logpmf(y, 1.0, 1 / (1 + mu)),
}


@pytest.mark.parametrize("name", DENSITIES)
def test_densities_are_those_of_scipy(name, rng):
    family = FAMILIES[name]
    y, mu = rows(family, rng)
    phi = PHI if family.dispersion is None else 1.0
    np.testing.assert_allclose(family.log_density(y, mu, phi), DENSITIES[name](y, mu), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("power", [1.05, 1.3, 1.5, 1.95])
@pytest.mark.parametrize("phi", [1e-4, 0.05, 1.0, 20.0])
def test_the_tweedie_density_is_that_of_a_poisson_sum_of_gammas(power, phi):
    mu = np.full(4, 3.0)
    y = np.array([0.0, 2.0, 3.0, 3.7])
    rate = mu[0] ** (2 - power) / (phi * (2 - power))
    shape, scale = (2 - power) / (power - 1), phi * (power - 1) * mu[0] ** (power - 1)
    expected = [-rate]
    j = np.arange(1, int(3 * rate) + 200)
    for one in y[1:]:
        terms = stats.poisson.logpmf(j, rate) + stats.gamma.logpdf(one, j * shape, scale=scale)
        expected.append(np.logaddexp.reduce(terms))
    np.testing.assert_allclose(Tweedie(power).log_density(y, mu, phi), expected, rtol=1e-8, atol=1e-9)


def test_the_tweedie_density_and_the_chance_of_0_make_1():
    t = np.linspace(1e-6, 4, 40_001)
    y = t**3  # the density has a pole at 0
    family, mu = Tweedie(1.6), np.full_like(y, 2.0)
    mass = trapezoid(np.exp(family.log_density(y, mu, 1.3)) * 3 * t**2, t)
    none = np.exp(family.log_density(np.zeros(1), np.full(1, 2.0), 1.3))[0]
    assert mass + none == pytest.approx(1, abs=1e-7)


def test_a_binomial_share_with_its_trials_is_the_binomial(rng):
    trials, mu = rng.integers(1, 9, N).astype(float), rng.uniform(0.1, 0.9, N)
    y = rng.binomial(trials.astype(int), mu) / trials
    expected = stats.binom.logpmf(np.round(y * trials), trials, mu).sum()
    assert FAMILIES["binomial"].log_likelihood(y, mu, trials) == pytest.approx(expected, rel=1e-12)
    peer = sm.GLM(np.column_stack([y * trials, trials - y * trials]), np.ones(N), family=sm.families.Binomial()).fit()
    fitted = np.full(N, float(peer.fittedvalues[0]))
    assert FAMILIES["binomial"].log_likelihood(y, fitted, trials) == pytest.approx(peer.llf, rel=1e-10)
    assert FAMILIES["binomial"].total_deviance(y, fitted, trials) == pytest.approx(peer.deviance, rel=1e-10)
    assert FAMILIES["binomial"].null_deviance(y, trials) == pytest.approx(peer.null_deviance, rel=1e-10)


@pytest.mark.parametrize("name", [name for name in PEERS if name != "gaussian"])
def test_sums_of_a_fit_are_those_of_statsmodels(name, rng):
    y, mu = rows(FAMILIES[name], rng)
    family = FAMILIES[name]
    peer = PEERS[name]()
    peer.link = sm.families.links.Logit() if name == "bernoulli" else sm.families.links.Log()
    fit = sm.GLM(y, sm.add_constant(np.log(mu)), family=peer).fit(tol=1e-12)
    fitted = np.asarray(fit.fittedvalues)
    assert family.total_deviance(y, fitted) == pytest.approx(fit.deviance, rel=1e-10)
    assert family.pearson(y, fitted) == pytest.approx(fit.pearson_chi2, rel=1e-10)
    assert family.null_deviance(y) == pytest.approx(fit.null_deviance, rel=1e-8)
    assert family.log_likelihood(y, fitted, dispersion=float(fit.scale)) == pytest.approx(fit.llf, rel=1e-10)


def test_the_gamma_likelihood_at_deviance_over_n_is_that_of_r():
    """Blood clotting times of McCullagh and Nelder, the example of R's glm: coefficients, deviances, AIC as printed."""
    u = np.array([5, 10, 15, 20, 30, 40, 60, 80, 100])
    y = np.array([118.0, 58, 42, 35, 27, 25, 21, 19, 18])
    mu = 1 / (-0.01655438 + 0.01534311 * np.log(u))
    family = FAMILIES["gamma"]
    deviance = family.total_deviance(y, mu)
    assert round(deviance, 5) == 0.01673 and round(family.null_deviance(y), 5) == 3.51283
    aic = -2 * family.log_likelihood(y, mu, dispersion=deviance / len(y)) + 2 * 3  # phi counts
    assert round(aic, 2) == 37.99


def test_the_poisson_likelihood_is_that_of_r():
    """Dobson's counts, the example of R's glm: independent margins, 5 parameters."""
    y = np.array([18.0, 17, 15, 20, 10, 20, 25, 13, 12])
    table = y.reshape(3, 3)
    mu = np.outer(table.sum(axis=1), table.sum(axis=0)).ravel() / y.sum()
    family = FAMILIES["poisson"]
    assert round(family.total_deviance(y, mu), 4) == 5.1291 and round(family.null_deviance(y), 4) == 10.5814
    assert round(-2 * family.log_likelihood(y, mu) + 2 * 5, 2) == 56.76


@pytest.mark.parametrize("family", [family for family in ALL if family.name != "binomial"], ids=family_id)
def test_weight_two_is_the_row_twice_and_weight_0_is_none(family, rng):
    y, mu = rows(family, rng)
    weight = rng.integers(0, 4, N).astype(float)
    times = weight.astype(int)
    y2, mu2 = np.repeat(y, times), np.repeat(mu, times)
    assert family.log_likelihood(y, mu, weight) == pytest.approx(family.log_likelihood(y2, mu2), rel=1e-12)
    assert family.total_deviance(y, mu, weight) == pytest.approx(family.total_deviance(y2, mu2), rel=1e-12)
    assert family.null_deviance(y, weight) == pytest.approx(family.null_deviance(y2), rel=1e-12)


def test_a_negative_binomial_of_small_alpha_is_poisson(rng):
    y, mu = rows(FAMILIES["poisson"], rng)
    near, exact = NegativeBinomial(1e-9), FAMILIES["poisson"]
    np.testing.assert_allclose(near.log_density(y, mu), exact.log_density(y, mu), atol=1e-6)
    np.testing.assert_allclose(near.deviance(y, mu), exact.deviance(y, mu), atol=1e-6)


@pytest.mark.parametrize(
    "name, bad, words",
    [
        ("bernoulli", 2.0, "between 0 and 1. Row 12 is 2. For counts use family='poisson'"),
        ("poisson", -1.0, ">= 0. Row 12 is -1. For targets of any sign use family='gaussian'"),
        ("gamma", 0.0, "> 0. Row 12 is 0. Where 0 occurs use family='tweedie'"),
        ("inverse-gaussian", -3.0, "> 0. Row 12 is -3"),
        ("tweedie", -0.5, ">= 0. Row 12 is -0.5"),
        ("negative-binomial", np.inf, ">= 0. Row 12 is inf"),
        ("gaussian", np.nan, "a finite number. Row 12 is nan"),
    ],
)
def test_an_illegal_target_is_refused_with_its_row_and_another_family(name, bad, words):
    y = np.array([1.0, 1.0, bad, 1.0])
    with pytest.raises(ValueError) as error:
        FAMILIES[name].check_target(y, first_row=10, name="'claims'")
    assert str(error.value).startswith(f"Family {name!r} needs 'claims' {words}")
    FAMILIES[name].check_target(np.array([1.0, 0.5]))


@pytest.mark.parametrize("family", ALL, ids=family_id)
def test_a_start_is_a_legal_mean(family, rng):
    y, _ = rows(family, rng)
    start = family.start(y)
    assert ((start > family.means[0]) & (start < family.means[1])).all()


@pytest.mark.parametrize("family", ALL, ids=family_id)
def test_a_family_can_be_sent_and_found(family):
    assert pickle.loads(pickle.dumps(family)) == family and family_of(family) is family
    assert family_of(family.name).name == family.name


def test_parameters_and_names_are_checked():
    with pytest.raises(ValueError, match=r"between 1 and 2. Got 2.5. Its limits are family='poisson'"):
        Tweedie(2.5)
    with pytest.raises(ValueError, match=r"alpha must be > 0. Got 0"):
        NegativeBinomial(0)
    with pytest.raises(ValueError, match=r"family must be one of 'gaussian', .*Got 'cauchy'"):
        family_of("cauchy")
    with pytest.raises(ValueError, match=r"link of family 'poisson' must be one of 'log', .*Got 'logit'"):
        FAMILIES["poisson"].link("logit")
    with pytest.raises(ValueError, match=r'"frequency" or "variance". Got \'other\''):
        FAMILIES["poisson"].log_likelihood(np.ones(2), np.ones(2), np.ones(2), weights="other")
    assert FAMILIES["gamma"].link(Power(-1.0)) == FAMILIES["gamma"].canonical_link
    assert Tweedie(1.5).canonical_link == Power(-0.5) and NegativeBinomial(1.0).canonical_link is None
