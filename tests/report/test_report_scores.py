"""Reports of generalised linear models and logistic regression: deviances, rates by group, ratios, warnings."""

import warnings

import numpy as np
import pyarrow as pa
import pytest
from fits import FILES as OF_A_QUANTITY
from scipy import stats
from sklearn.metrics import mean_tweedie_deviance

import certifit as cf
from certifit.data.arrow import ArrowSource
from certifit.data.source import Memory
from certifit.report.context import build
from certifit.report.page import card, render
from certifit.report.validation import validation_facts
from certifit.selection.compare.leaderboard import leaderboard

FILES = OF_A_QUANTITY | {"deciding": "deciding.csv"}
N = 600
NAMES = ["a", "b", "c"]


def rows(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    return rng, X, np.exp(0.4 * X[:, 0] - 0.2 * X[:, 1] + 0.5), rng.uniform(0.1, 3.0, N)


def counts(exposure=True, spread=0.0, seed=0):
    rng, X, rate, years = rows(seed)
    mean = rate * (years if exposure else 1.0)
    y = rng.poisson(mean * (rng.gamma(1 / spread, spread, N) if spread else 1.0)).astype(float)
    offset = np.log(years) if exposure else None
    return X, y, offset


def source_of(X, y, offset=None):
    return Memory(X, y, names=NAMES, offset=offset)


def report(model, source, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model, build(model.fit(source), source, FILES, **more)


def titles(context):
    return " | ".join(notice["title"] for notice in context["warnings"])


def test_groups_of_the_lift_are_those_of_sorted_rates_and_hold_all_rows():
    X, y, offset = counts()
    model, context = report(cf.GLM("poisson"), source_of(X, y, offset))
    lift = context["deviance"]["lift"]
    exposure, mean = np.exp(offset), model.predict(source_of(X, None, offset))
    assert lift["is_rate"] and len(lift["groups"]) == 10
    assert sum(group["rows"] for group in lift["groups"]) == N
    order = np.argsort(mean / exposure, kind="stable")
    first = 0
    for group in lift["groups"]:
        own = order[first : first + int(group["rows"])]
        first += len(own)
        total = exposure[own].sum()
        assert group["exposure"] == pytest.approx(total, rel=1e-12)
        assert group["observed"] == pytest.approx(y[own].sum() / total, rel=1e-12)
        assert group["predicted"] == pytest.approx(mean[own].sum() / total, rel=1e-12)
        half = stats.norm.ppf(0.975) * np.sqrt(((y - mean)[own] ** 2).sum()) / total
        assert group["high"] - group["observed"] == pytest.approx(half, rel=1e-9)
        assert total == pytest.approx(exposure.sum() / 10, rel=0.1)


def test_a_fit_with_p_values_has_the_numbers_of_its_summary():
    X, y, offset = counts()
    source = source_of(X, y, offset)
    model, context = report(cf.GLM("poisson"), source)
    found, fit = context["deviance"], model.summary().inference
    for key in ("deviance", "null_deviance", "aic", "bic", "pearson", "df_resid", "dispersion"):
        assert found[key] == pytest.approx(getattr(fit, key), rel=1e-12), key
    assert found["explained"] == pytest.approx(model.score(source), rel=1e-9)
    table = context["coefficients"]
    robust = model.summary(source, covariance="HC1").inference
    assert table["law"] == "z" and table["ratio"] == "rate ratio" and table["robust"]["kind"] == "HC1"
    assert [row["estimate"] for row in table["rows"]] == pytest.approx(fit.estimate)
    assert [row["t"] for row in table["rows"]] == pytest.approx(fit.t_values)
    assert [row["robust_error"] for row in table["rows"]] == pytest.approx(robust.standard_errors)
    assert [row["ratio"] for row in table["rows"]] == pytest.approx(np.exp(fit.estimate))
    assert [row["ratio_low"] for row in table["rows"]] == pytest.approx(np.exp(fit.confidence_interval()[:, 0]))


@pytest.mark.parametrize(("kind", "power"), [(cf.PoissonRegressor, 1), (cf.GammaRegressor, 2)])
def test_deviances_under_a_penalty_are_those_of_the_rows(kind, power):
    X, y, _ = counts(exposure=False)
    y = y if power == 1 else y + 1.0
    model, context = report(kind(0.1), source_of(X, y))
    own = N * mean_tweedie_deviance(y, model.predict(source_of(X, None)), power=power)
    null = N * mean_tweedie_deviance(y, np.full(N, y.mean()), power=power)
    found = context["deviance"]
    assert found["deviance"] == pytest.approx(own, rel=1e-9)
    assert found["null_deviance"] == pytest.approx(null, rel=1e-6)
    assert found["explained"] == pytest.approx(1 - own / null, rel=1e-6)
    assert "--model " in context["coefficients"]["reason"]


MODELS = {"poisson": cf.GLM("poisson"), "gamma": cf.GLM("gamma", "log"), "penalty": cf.PoissonRegressor(0.1)}


@pytest.mark.parametrize("name", MODELS)
def test_no_word_of_least_squares_is_said_of_a_generalised_linear_model(name):
    X, y, offset = counts()
    y = y + 1.0 if name == "gamma" else y
    _, context = report(MODELS[name], source_of(X, y, offset))
    page = render(context)
    sections = {section["name"] for section in context["sections"]}
    assert {"fit", "coefficients", "proof"} <= sections and "residuals" not in sections
    assert context["quality"] is None and context["pictures"] is None
    names = {figure["name"] for figure in context["figures"]}
    assert "lift" in names and not {"residuals", "histogram", "quantiles", "fit"} & names
    for words in ("R²", "Typical error", "esidual", "least squares,"):
        assert words not in page, words
    assert "Deviance explained" in page and "Deviance explained" in card(context)


def test_counts_that_spread_more_than_poisson_are_noted_and_others_are_not():
    for spread, is_said in ((0.0, False), (2.0, True)):
        X, y, _ = counts(exposure=False, spread=spread)
        model, context = report(cf.GLM("poisson"), source_of(X, y))
        assert ("spreads more than its family says" in titles(context)) == is_said
        fit = model.inference_
        assert context["deviance"]["spread"] == pytest.approx(fit.pearson / fit.df_resid)


def test_all_levels_of_a_category_are_tested_together_by_wald():
    rng, X, rate, _ = rows()
    level = rng.integers(0, 3, N)
    y = rng.poisson(rate * np.exp(0.2 * level)).astype(float)
    table = pa.table({"a": X[:, 0], "level": np.array(["x", "y", "z"])[level], "y": y})
    source = ArrowSource(lambda: table.to_batches(100), table.schema, "y", None, n_rows=N)
    model, context = report(cf.GLM("poisson"), source)
    (group,) = context["coefficients"]["groups"]
    place = [model.inference_.names.index(f"level={own}") for own in "yz"]
    b, V = model.inference_.estimate[place], model.inference_.covariance[np.ix_(place, place)]
    assert group["p"] == pytest.approx(stats.chi2.sf(b @ np.linalg.solve(V, b), 2), rel=1e-6)


def classes(shift=0.0):
    rng, X, _, _ = rows()
    noise = rng.logistic(size=N) if shift == 0 else 0.0
    return X, (X[:, 0] - 0.5 * X[:, 1] + noise > 0).astype(float)


def test_logistic_regression_has_odds_ratios_and_p_values_without_a_penalty():
    X, y = classes()
    model, context = report(cf.LogisticRegression(0.0), source_of(X, y))
    table, fit = context["coefficients"], model.inference_
    assert table["ratio"] == "odds ratio" and table["has_inference"]
    assert [row["p"] for row in table["rows"]] == pytest.approx(fit.p_values)
    assert [row["ratio"] for row in table["rows"]] == pytest.approx(np.exp(fit.estimate))
    assert context["deviance"]["aic"] == pytest.approx(fit.aic) and context["deviance"]["lift"] is None
    sections = [section["name"] for section in context["sections"]]
    assert {"classes", "probabilities", "deciding", "coefficients", "fit"} <= set(sections)
    assert "Odds ratio" in render(context) and "effects" not in {figure["name"] for figure in context["figures"]}


def test_a_penalty_and_three_classes_have_no_p_values_and_are_described():
    X, y = classes()
    _, context = report(cf.LogisticRegression(), source_of(X, y))
    assert "--alpha 0" in context["coefficients"]["reason"] and context["deviance"] is None
    _, context = report(cf.LogisticRegression(), source_of(X, np.digitize(X[:, 0], [-0.5, 0.5]).astype(float)))
    assert context["coefficients"] is None and context["deciding"]["what"] == "odds"
    assert context["deviance"] is None and "Odds ratio" in render(context)


def test_separated_classes_name_their_columns_and_the_way_out():
    X, y = classes(shift=1.0)
    _, context = report(cf.LogisticRegression(0.0), source_of(X, y))
    notice = context["warnings"][0]
    assert notice["level"] == "bad" and "separation" in notice["text"] and "a" in notice["text"]
    assert "penalty" in notice["action"] and not context["certificate"]["holds"]
    assert "no best fit" in context["coefficients"]["reason"]


def test_a_leaderboard_of_counts_tells_deviances_and_the_share_explained():
    X, y, offset = counts()
    source = source_of(X, y, offset)
    models = {"Poisson regression": cf.GLM("poisson"), "Poisson ridge": cf.CrossValidated(cf.PoissonRegressor())}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        board = leaderboard(models, source, cv=3, prefer="Poisson regression")
    facts = validation_facts(board)
    assert facts["measure"] == "mean Poisson deviance" and facts["share"] == "Explained"
    assert facts["rows"][-1]["name"] == "constant rate" and facts["rows"][-1]["r2"] == pytest.approx(0.0)
    own, null = (sum(board.weight * -board[name].fold_scores) for name in ("Poisson regression", "constant rate"))
    chosen = next(row for row in facts["rows"] if row["name"] == "Poisson regression")
    assert chosen["r2"] == pytest.approx(1 - own / null)
    _, context = report(cf.GLM("poisson"), source, validation=facts)
    page = render(context)
    assert "mean Poisson deviance" in page and "constant rate" in page and "R²" not in page
