"""Every family with every link: the optimum and the deviances of statsmodels, proven where the pair is convex."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm

import certifit as cf
from certifit.mathematics.families import FAMILIES
from certifit.mathematics.losses.families import ResponseLoss

N = 600
LINKS = sm.families.links
THEIR_LINKS = {
    "identity": LINKS.Identity,
    "log": LINKS.Log,
    "logit": LINKS.Logit,
    "probit": LINKS.Probit,
    "cloglog": LINKS.CLogLog,
    "inverse": LINKS.InversePower,
    "inverse-squared": LINKS.InverseSquared,
    "sqrt": LINKS.Sqrt,
}
THEIRS = {
    "gaussian": sm.families.Gaussian,
    "bernoulli": sm.families.Binomial,
    "poisson": sm.families.Poisson,
    "gamma": sm.families.Gamma,
    "inverse-gaussian": sm.families.InverseGaussian,
    "tweedie": lambda link: sm.families.Tweedie(link=link, var_power=1.5),
    "negative-binomial": lambda link: sm.families.NegativeBinomial(link=link, alpha=1.0),
}
PAIRS = [(name, link) for name in THEIRS for link in FAMILIES[name].links if (name, link) != ("gaussian", "sqrt")]


def rows(name, link, rng):
    """Targets whose means stay well inside the legal ones."""
    X = rng.uniform(-1, 1, (N, 3))
    is_chance = name == "bernoulli"
    middle = {"log": -1.0 if is_chance else 0.5, "identity": 0.5 if is_chance else 2.0, "logit": 0.0, "probit": 0.0}
    z = middle.get(link, 1.0) + X @ np.array([0.3, -0.2, 0.1]) * (0.5 if is_chance else 1.0)
    mu = FAMILIES[name].link(link).mean(z)
    drawn = {
        "gaussian": lambda: mu + 0.3 * rng.normal(size=N),
        "bernoulli": lambda: (rng.random(N) < mu).astype(float),
        "poisson": lambda: rng.poisson(mu).astype(float),
        "gamma": lambda: rng.gamma(3.0, mu / 3),
        "inverse-gaussian": lambda: rng.wald(mu, 4.0),
        "tweedie": lambda: np.where(rng.random(N) < 0.2, 0.0, rng.gamma(2.0, mu / 2)),
        "negative-binomial": lambda: rng.poisson(mu * rng.gamma(1.0, 1.0, N)).astype(float),
    }
    return X, drawn[name]()


@pytest.mark.parametrize("name, link", PAIRS)
@pytest.mark.filterwarnings("ignore::statsmodels.tools.sm_exceptions.DomainWarning")
def test_the_optimum_is_that_of_statsmodels_and_proven_where_convex(name, link, rng):
    X, y = rows(name, link, rng)
    ours = cf.GLM(name, link).fit(X, y)
    theirs = sm.GLM(y, sm.add_constant(X), family=THEIRS[name](link=THEIR_LINKS[link]())).fit(tol=1e-14, maxiter=500)
    np.testing.assert_allclose(np.append(ours.intercept_, ours.coef_), theirs.params, atol=1e-6)
    fit = ours.inference_
    assert fit.deviance == pytest.approx(theirs.deviance, rel=1e-10)
    assert fit.null_deviance == pytest.approx(theirs.null_deviance, rel=1e-8)
    np.testing.assert_allclose(ours.predict(X), theirs.fittedvalues, rtol=1e-6)
    pair = ResponseLoss(FAMILIES[name], FAMILIES[name].link(link))
    assert ours.certificate_.holds and ours.certificate_.is_local == (not pair.is_convex)


@pytest.mark.parametrize("solver", ["auto", "newton", "bfgs", "lbfgs", "conjugate-gradient"])
def test_a_loss_of_the_users_own_reaches_one_optimum_by_every_solver(solver, rng):
    X = rng.normal(size=(200, 2))
    y = X @ [1.0, -2.0] + rng.standard_t(2, size=200)
    parts = (lambda y, z: np.log(np.cosh(z - y)), lambda y, z: np.tanh(z - y), lambda y, z: 1 - np.tanh(z - y) ** 2)
    model = cf.GLM(cf.Loss(*parts, name="log cosh"), solver=solver, tol=1e-12).fit(X, y)
    residual = y - model.predict(X)
    gradient = np.column_stack([X, np.ones(200)]).T @ np.tanh(-residual) / 200
    np.testing.assert_allclose(gradient, 0, atol=1e-5)
    assert model.certificate_.is_local


def test_a_wrong_slope_stops_a_fit_with_the_point(rng):
    X, y = rng.normal(size=(50, 1)), rng.normal(size=50)
    wrong = cf.Loss(lambda y, z: (z - y) ** 2, lambda y, z: z - y, lambda y, z: np.ones_like(z))
    with pytest.raises(ValueError, match="slope of the loss is not the derivative of value: at y = "):
        cf.GLM(wrong).fit(X, y)


def test_prices_with_the_identity_link_are_as_near_their_optimum_as_thousands_are(rng):
    area = rng.uniform(500, 3000, 300)
    price = 100 * area * rng.gamma(25.0, 1 / 25, 300)
    for y in (price, price / 1e3, price * 100):
        model = cf.GLM("gamma", "identity").fit(area[:, None], y)
        assert model.certificate_.holds and model.certificate_.value < 1e-12
