"""The summary of generalised linear models: R's printed example, statsmodels to 1e-8, and what must be refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from glm_tables import assert_same_table, numbers, peer
from scipy import stats

import certifit as cf
from certifit.mathematics.families.responses import NegativeBinomial, Tweedie

S, L = sm.families, sm.families.links
N = 400


def _score(rng: Any) -> tuple[Any, Any]:
    X = rng.normal(size=(N, 3))
    return X, 0.3 + X @ [0.5, -0.3, 0.1]


def _claims(rng: Any, mu: Any) -> Any:
    return np.array([rng.gamma(1.0, 1.0, k).sum() for k in rng.poisson(mu)])


# name -> family and link, targets of a score, statsmodels' family
CASES: dict[str, tuple[Any, Any, Any, Any]] = {
    "logit": ("bernoulli", None, lambda r, z: r.random(N) < 1 / (1 + np.exp(-z)), S.Binomial()),
    "probit": ("bernoulli", "probit", lambda r, z: r.random(N) < 1 / (1 + np.exp(-z)), S.Binomial(L.Probit())),
    "cloglog": ("bernoulli", "cloglog", lambda r, z: r.random(N) < 1 / (1 + np.exp(-z)), S.Binomial(L.CLogLog())),
    "poisson": ("poisson", None, lambda r, z: r.poisson(np.exp(z)), S.Poisson()),
    "poisson sqrt": ("poisson", "sqrt", lambda r, z: r.poisson((3 + z) ** 2), S.Poisson(L.Sqrt())),
    "poisson identity": ("poisson", "identity", lambda r, z: r.poisson(9 + z), S.Poisson(L.Identity())),
    "gamma": ("gamma", None, lambda r, z: r.gamma(2, np.exp(z) / 2), S.Gamma(L.Log())),
    "gamma inverse": ("gamma", "inverse", lambda r, z: r.gamma(9, 1 / (4 + z) / 9), S.Gamma(L.InversePower())),
    "gamma identity": ("gamma", "identity", lambda r, z: r.gamma(9, (6 + z) / 9), S.Gamma(L.Identity())),
    "gaussian": ("gaussian", None, lambda r, z: z + r.normal(size=N), S.Gaussian()),
    "gaussian log": ("gaussian", "log", lambda r, z: np.exp(z) + 3 + r.normal(size=N), S.Gaussian(L.Log())),
    "inverse gaussian": ("inverse-gaussian", None, lambda r, z: r.wald(np.exp(z), 2.0), S.InverseGaussian(L.Log())),
    "negative binomial": (
        NegativeBinomial(0.7), None, lambda r, z: r.poisson(np.exp(z) * r.gamma(1.4, 0.7, N)),
        S.NegativeBinomial(alpha=0.7),
    ),
    "tweedie": (
        Tweedie(1.6), None, lambda r, z: _claims(r, np.exp(z)), S.Tweedie(var_power=1.6, link=L.Log(), eql=False)
    ),
}  # fmt: skip
ROWS = {"plain": (), "offset": ("offset",), "weights": ("freq",), "variances": ("var",)}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow
def test_the_table_is_that_of_statsmodels(case, rows, rng):
    family, link, target, other = CASES[case]
    X, z = _score(rng)
    y = np.asarray(target(rng, z), dtype=float)
    weight = rng.integers(1, 4, N).astype(float)
    own: dict[str, Any] = {}
    theirs: dict[str, Any] = {}
    if "offset" in ROWS[rows]:
        own["offset"] = theirs["offset"] = 0.1 * rng.normal(size=N)
    if "freq" in ROWS[rows]:
        own["sample_weight"] = theirs["freq_weights"] = weight
    if "var" in ROWS[rows]:
        own["sample_weight"], theirs["var_weights"] = weight / 2, weight / 2
    model = cf.GLM(family, link).fit(X, y, **own)
    rule = {"weights": "variance" if "var" in ROWS[rows] else "frequency", "convention": "statsmodels"}
    assert_same_table(model.summary(X, y, **own, **rule).inference, peer(y, X, other, **theirs))
    stored = model.summary(**rule).inference
    assert np.array_equal(stored.standard_errors, model.summary(X, y, **own, **rule).inference.standard_errors)
    assert model.summary(**rule).inference.aic == pytest.approx(stored.aic, nan_ok=stored.needs_rows)


@pytest.mark.parametrize("rows", ["plain", "offset", "weights"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow
def test_robust_errors_are_those_of_statsmodels(case, rows, rng):
    family, link, target, other = CASES[case]
    X, z = _score(rng)
    y = np.asarray(target(rng, z), dtype=float)
    own: dict[str, Any] = {"offset": 0.1 * rng.normal(size=N)} if rows == "offset" else {}
    theirs = dict(own)
    if rows == "weights":
        own["sample_weight"] = theirs["freq_weights"] = rng.integers(1, 4, N).astype(float)
    fit = cf.GLM(family, link).fit(X, y, **own).summary(X, y, **own, covariance="HC0").inference
    result = peer(y, X, other, "HC0", **theirs)
    assert fit.law == "z" and fit.covariance_type == "HC0"
    assert any("of few they are too small" in sentence for sentence in fit.summary("", "").notes)
    assert np.allclose(fit.standard_errors, result.bse, rtol=1e-8, atol=0)
    assert np.allclose(fit.p_values, result.pvalues, rtol=1e-6, atol=1e-8)
    corrected = cf.GLM(family, link).fit(X, y, **own).summary(X, y, **own, covariance="HC1").inference
    n = fit.n_obs
    assert np.allclose(corrected.covariance, fit.covariance * n / (n - 4), rtol=1e-12, atol=0)


@pytest.mark.parametrize("case", CASES)
def test_intervals_of_the_mean_are_those_of_statsmodels(case, rng):
    family, link, target, other = CASES[case]
    X, z = _score(rng)
    y = np.asarray(target(rng, z), dtype=float)
    offset = 0.1 * rng.normal(size=N)
    model = cf.GLM(family, link).fit(X, y, offset=offset)
    result = peer(y, X, other, offset=offset)
    expected = result.get_prediction(sm.add_constant(X)[:9], offset=offset[:9]).conf_int(alpha=0.1)
    found = model.predict_interval(X[:9], 0.9, offset=offset[:9], convention="statsmodels")
    assert np.allclose(found, np.sort(expected, axis=1), rtol=1e-8, atol=0)
    middle = model.predict(X[:9], offset=offset[:9])
    assert ((found[:, 0] < middle) & (middle < found[:, 1])).all()


def dobson() -> tuple[Any, Any]:
    counts = np.array([18.0, 17.0, 15.0, 20.0, 10.0, 20.0, 25.0, 13.0, 12.0])
    outcome, treatment = np.tile([1, 2, 3], 3), np.repeat([1, 2, 3], 3)
    X = np.column_stack([outcome == 2, outcome == 3, treatment == 2, treatment == 3]).astype(float)
    return X, counts


@pytest.mark.parametrize("model", [cf.GLM("poisson"), cf.PoissonRegressor(alpha=0)], ids=["GLM", "PoissonRegressor"])
def test_the_example_of_r_prints_its_numbers(model):
    fit = model.fit(*dobson()).summary().inference
    assert np.allclose(fit.estimate[:3], [3.045, -0.4543, -0.2930], rtol=0, atol=5e-4)
    assert np.allclose(fit.standard_errors, [0.1709, 0.2022, 0.1927, 0.2000, 0.2000], rtol=0, atol=5e-5)
    assert np.allclose(fit.t_values[:3], [17.815, -2.247, -1.520], rtol=0, atol=5e-4)
    assert np.allclose(fit.p_values[1:3], [0.0246, 0.1285], rtol=0, atol=5e-5)
    assert (round(fit.null_deviance, 4), fit.df_null) == (10.5814, 8)
    assert (round(fit.deviance, 4), fit.df_resid) == (5.1291, 4)
    assert round(fit.aic, 2) == 56.76


def test_r_tests_with_students_law_and_counts_an_estimated_dispersion(rng):
    X, z = _score(rng)
    y = rng.gamma(2, np.exp(z) / 2)
    model = cf.GLM("gamma").fit(X, y)
    fit, other = model.summary().inference, model.summary(convention="statsmodels").inference
    assert (fit.law, other.law) == ("t", "z")
    assert np.allclose(fit.p_values, 2 * stats.t.sf(np.abs(other.t_values), N - 4), rtol=1e-10, atol=0)
    phi = fit.deviance / N  # R: Gamma()$aic puts the mean deviance in
    mu = model.predict(X)
    r_aic = -2 * stats.gamma.logpdf(y, 1 / phi, scale=mu * phi).sum() + 2 + 2 * 4
    assert fit.aic == pytest.approx(r_aic, rel=1e-12)
    assert fit.bic == pytest.approx(r_aic - 10 + 5 * np.log(N), rel=1e-12)
    half = stats.t.ppf(0.975, N - 4) * fit.standard_errors
    assert np.allclose(fit.confidence_interval()[:, 1], fit.estimate + half, rtol=1e-12)


def test_the_gaussian_family_is_least_squares(rng):
    X, z = _score(rng)
    y = z + rng.normal(size=N)
    ours, known = cf.GLM().fit(X, y).summary().inference, cf.LinearRegression().fit(X, y).summary().inference
    assert np.allclose(ours.estimate, known.estimate, rtol=1e-10, atol=1e-12)
    for name in ("standard_errors", "p_values", "log_likelihood"):
        assert np.allclose(getattr(ours, name), getattr(known, name), rtol=1e-9, atol=1e-300)
    assert ours.likelihood_ratio.statistic == pytest.approx(known.f_statistic, rel=1e-9)
    assert ours.likelihood_ratio.p_value == pytest.approx(known.f_pvalue, rel=1e-6)


def test_a_binomial_share_is_that_many_trials(rng):
    X, z = _score(rng)
    trials = rng.integers(1, 9, N).astype(float)
    wins = rng.binomial(trials.astype(int), 1 / (1 + np.exp(-z))).astype(float)
    model = cf.GLM("binomial").fit(X, wins / trials, sample_weight=trials)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = peer(np.column_stack([wins, trials - wins]), X, S.Binomial())
    assert_same_table(model.summary(convention="statsmodels").inference, result)


@pytest.mark.parametrize("how", ["deviance", "pearson", 2.5])
def test_a_dispersion_can_be_asked_for(how, rng):
    X, z = _score(rng)
    y = rng.poisson(np.exp(z) * rng.gamma(1, 1, N)).astype(float)
    fit = cf.GLM("poisson").fit(X, y).summary(dispersion=how, convention="statsmodels").inference
    result = sm.GLM(y, sm.add_constant(X), family=S.Poisson()).fit(
        scale={"deviance": "dev", "pearson": "X2"}.get(how, how), tol=1e-13, tol_criterion="params"
    )
    assert fit.dispersion == pytest.approx(result.scale, rel=1e-9)
    assert np.allclose(fit.standard_errors, result.bse, rtol=1e-8, atol=0)
    assert fit.log_likelihood == pytest.approx(cf.GLM("poisson").fit(X, y).summary().inference.log_likelihood)


def test_weight_two_is_the_row_twice(rng):
    X, z = _score(rng)
    y = rng.gamma(2, np.exp(z) / 2)
    weight = rng.integers(0, 4, N)
    weighted = cf.GLM("gamma").fit(X, y, sample_weight=weight.astype(float)).summary().inference
    again = cf.GLM("gamma").fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).summary().inference
    for name, value in numbers(again).items():
        assert np.allclose(numbers(weighted)[name], value, rtol=1e-9, atol=1e-12), name


def test_nested_models_are_compared_by_their_deviances(rng):
    X, z = _score(rng)
    y = rng.poisson(np.exp(z)).astype(float)
    large = cf.GLM("poisson").fit(X, y).inference_
    small = cf.GLM("poisson").fit(X[:, :1], y).inference_
    found = large.compare(small)
    expected = small.deviance - large.deviance
    assert (found.statistic, found.df) == (pytest.approx(expected), 2)
    assert found.p_value == pytest.approx(stats.chi2.sf(expected, 2), rel=1e-9)
    assert large.likelihood_ratio.statistic == pytest.approx(large.null_deviance - large.deviance)
    with pytest.raises(ValueError, match="other rows"):
        large.compare(cf.GLM("poisson").fit(X[:-1, :1], y[:-1]).inference_)
    with pytest.raises(ValueError, match="some of the columns"):
        small.compare(large)


def test_a_penalty_refuses_the_summary_and_names_the_way_out(rng):
    X, z = _score(rng)
    y = rng.poisson(np.exp(z)).astype(float)
    for model in (cf.PoissonRegressor(), cf.GLM("poisson", alpha=0.1), cf.GammaRegressor(0.1)):
        with pytest.raises(ValueError, match=r"do not hold under a penalty.*alpha=0"):
            model.fit(X, y + 1).summary()
    with pytest.raises(ValueError, match=r"do not hold under a penalty.*alpha=0"):
        cf.LogisticRegression().fit(X, y > 1).summary()
    with pytest.raises(ValueError, match="No intervals"):
        cf.PoissonRegressor().fit(X, y).predict_interval(X)


def test_redundant_columns_are_refused_or_dropped(rng):
    X, z = _score(rng)
    y = rng.poisson(np.exp(z)).astype(float)
    wide = np.column_stack([X, X[:, 0] - X[:, 1]])
    model = cf.GLM("poisson").fit(wide, y)
    with pytest.raises(ValueError, match=r"redundant, so single.*x3 = x0 - x1"):
        model.summary(wide, y, redundant="refuse")
    for redundant in ("mark", "drop"):
        with pytest.raises(ValueError, match=r"redundant \(x3 = x0 - x1\).*Pass the rows"):
            model.summary(redundant=redundant)
    table = model.summary(wide, y, redundant="drop")
    alone = cf.GLM("poisson").fit(X, y).summary().inference
    assert np.allclose(table.inference.estimate, alone.estimate, rtol=1e-8, atol=1e-12)
    assert np.allclose(table.inference.standard_errors, alone.standard_errors, rtol=1e-9)
    assert "dropped" in str(table) and "x3 = x0 - x1" in str(table)


def test_separated_classes_have_no_summary():
    X = np.arange(8.0)[:, None]
    with pytest.warns(Warning):
        model = cf.LogisticRegression(alpha=0).fit(X, X[:, 0] > 3)
    with pytest.raises(ValueError, match="No summary"):
        model.summary()


def test_rows_of_another_fit_are_refused(rng):
    X, z = _score(rng)
    y = rng.poisson(np.exp(z)).astype(float)
    offset = 0.1 * rng.normal(size=N)
    model = cf.GLM("poisson").fit(X, y, offset=offset)
    with pytest.raises(ValueError, match="not those of the fit"):
        model.summary(X[:-1], y[:-1], offset=offset[:-1])
    with pytest.raises(ValueError, match="not those of the fit"):
        model.summary(X, y)
    with pytest.raises(ValueError, match="not those of the fit"):
        model.summary(X[::-1], y, offset=offset)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"convention": "SAS"}, "convention must be one of 'R', 'statsmodels'"),
        ({"dispersion": "none"}, "dispersion must be None, 'pearson', 'deviance' or a number > 0"),
        ({"dispersion": -1.0}, "number > 0. Got -1"),
        ({"covariance": "HC3"}, "covariance must be one of"),
        ({"covariance": "HC0"}, "needs the rows"),
        ({"weights": "some"}, "weights must be one of"),
        ({"level": 1.0}, "level must be between 0 and 1"),
        ({"y": [1.0]}, "comes with X"),
    ],
)
def test_illegal_options_are_refused_in_words(options, words, rng):
    X, z = _score(rng)
    model = cf.GLM("poisson").fit(X, rng.poisson(np.exp(z)).astype(float))
    with pytest.raises(ValueError, match=words):
        model.summary(**options)


def test_logistic_regression_of_labels_is_the_bernoulli_family(rng):
    X, z = _score(rng)
    y = rng.random(N) < 1 / (1 + np.exp(-z))
    labels = np.where(y, "yes", "no")
    offset = 0.1 * rng.normal(size=N)
    model = cf.LogisticRegression(alpha=0).fit(X, labels, offset=offset)
    result = peer(y.astype(float), X, S.Binomial(), offset=offset)
    assert_same_table(model.summary().inference, result)
    assert np.allclose(model.summary(X, labels, offset=offset, covariance="HC0").inference.standard_errors,
                       peer(y.astype(float), X, S.Binomial(), "HC0", offset=offset).bse, rtol=1e-8)  # fmt: skip
    weighted = cf.LogisticRegression(alpha=0, class_weight="balanced").fit(X, labels)
    with pytest.raises(ValueError, match="class_weight"):
        weighted.summary()


def test_the_table_converts_and_shows_itself(rng):
    X, z = _score(rng)
    table = cf.GLM("gamma").fit(X, rng.gamma(2, np.exp(z) / 2)).summary()
    found = table.to_dict()
    assert found["family"] == "gamma" and found["link"] == "log" and found["convention"] == "R"
    assert [row["name"] for row in found["coefficients"]] == ["intercept", "x0", "x1", "x2"]
    assert set(found["coefficients"][0]) == {"name", "estimate", "standard_error", "t", "p", "lower", "upper"}
    assert found["deviance"] == table.inference.deviance
    assert table.to_frame().shape == (4, 6)
    assert "Generalised Linear Model" in table.to_html() and "Student's law" in str(table)


def test_without_an_intercept_the_null_model_is_the_offset(rng):
    X, z = _score(rng)
    y = rng.poisson(np.exp(z)).astype(float)
    offset = 0.1 * rng.normal(size=N)
    fit = cf.GLM("poisson", fit_intercept=False).fit(X, y, offset=offset).summary().inference
    mu = np.exp(offset)
    deviance = 2 * np.sum(np.where(y > 0, y * np.log(np.where(y > 0, y, 1) / mu), 0) - (y - mu))
    assert fit.null_deviance == pytest.approx(deviance, rel=1e-12)
    assert (fit.df_null, fit.names) == (N, ("x0", "x1", "x2"))


def test_no_degree_of_freedom_is_said():
    X = np.array([[0.0], [1.0]])
    model = cf.GLM("gamma").fit(X, [1.0, 2.0])
    with pytest.raises(ValueError, match="no residual degree of freedom"):
        model.summary()
    assert np.isfinite(model.summary(dispersion=1).inference.standard_errors).all()


def test_nothing_of_the_size_of_the_rows_is_kept(rng):
    X, z = _score(rng)
    model = cf.GLM("poisson").fit(X, rng.poisson(np.exp(z)).astype(float))
    sizes = [np.size(value) for value in vars(model.inference_).values() if isinstance(value, np.ndarray)]
    assert max(sizes) <= 16
