"""Poisson, Gamma and logistic regression from a file to a report, predictions and a proof."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import certifit as cf

N = 300


@pytest.fixture
def policies(tmp_path):
    """policies.csv: claims proportional to years, cost positive and skewed, late yes or no with o an offset."""
    rng = np.random.default_rng(0)
    a, b, o = rng.normal(size=(3, N)).round(3)
    years = rng.uniform(0.2, 3.0, N).round(3)
    claims = rng.poisson(years * np.exp(0.4 * a - 0.3 * b - 0.5))
    cost = (1000 * np.exp(0.5 * a + 0.6 * rng.normal(size=N))).round(2)
    late = np.where(rng.logistic(size=N) < a + o, "yes", "no")
    frame = pd.DataFrame({"a": a, "b": b, "years": years, "o": o, "claims": claims, "cost": cost, "late": late})
    frame.to_csv(tmp_path / "policies.csv", index=False)
    return frame


def fit(cli, target, *options):
    result = cli("fit", "policies.csv", "-t", target, "-o", "out", "--columns", "a,b", "--cv", "3", *options)
    assert result.exit_code == 0, result.output
    return result.stdout


def context(tmp_path):
    return json.loads((tmp_path / "out" / "report.json").read_text())


def test_counts_with_an_exposure_are_fitted_with_p_values_and_scored_by_deviance(cli, policies, tmp_path):
    shown = fit(cli, "claims", "--exposure", "years")
    assert "Mean Poisson deviance of claims on new rows" in shown and "constant rate" in shown
    assert "R2" not in shown and "typical error" not in shown
    model = cf.GLM("poisson").fit(policies[["a", "b"]], policies["claims"], exposure=policies["years"])
    rows = {row["name"]: row for row in context(tmp_path)["coefficients"]["rows"]}
    assert rows["a"]["estimate"] == pytest.approx(model.coef_[0], rel=1e-6)
    assert rows["a"]["p"] == pytest.approx(model.inference_.p_values[1], rel=1e-4)
    table = pd.read_csv(tmp_path / "out" / "coefficients.csv")
    assert table["ratio"].tolist() == pytest.approx(np.exp(table["coefficient"]).tolist())
    assert cli("verify", "out/model.certifit", "policies.csv", "-q").exit_code == 0
    predicted = cli("predict", "out/model.certifit", "policies.csv", "-q", "--interval", "0.9", "-o", "p.csv")
    assert predicted.exit_code == 0, predicted.output
    found = pd.read_csv(tmp_path / "p.csv")
    ends = model.predict_interval(policies[["a", "b"]], 0.9, exposure=policies["years"])
    assert found["prediction"].to_numpy() == pytest.approx(
        model.predict(policies[["a", "b"]], exposure=policies["years"]), rel=1e-6
    )
    assert found[["lower", "upper"]].to_numpy() == pytest.approx(ends, rel=1e-6)


def test_a_positive_skewed_target_is_fitted_by_gamma_regression(cli, policies, tmp_path):
    shown = fit(cli, "cost")
    assert "Mean Gamma deviance of cost" in shown and "Gamma regression (log link)" in shown
    assert context(tmp_path)["deviance"]["is_estimated"]
    fit(cli, "cost", "--model", "gamma-ridge")
    result = cli("predict", "out/model.certifit", "policies.csv", "--interval", "0.9")
    assert result.exit_code == 2 and "--model gamma" in result.stderr


def test_logistic_regression_is_compared_and_has_probabilities(cli, policies, tmp_path):
    assert "logistic regression" in fit(cli, "late")
    fit(cli, "late", "--model", "logistic", "--alpha", "0", "--offset", "o")
    model = cf.LogisticRegression(0.0).fit(policies[["a", "b"]], policies["late"], offset=policies["o"])
    table = context(tmp_path)["coefficients"]
    assert table["ratio"] == "odds ratio"
    assert [row["p"] for row in table["rows"]] == pytest.approx(model.inference_.p_values, rel=1e-4)
    assert cli("predict", "out/model.certifit", "policies.csv", "-q", "--proba", "-o", "p.csv").exit_code == 0
    wanted = model.predict_proba(policies[["a", "b"]], offset=policies["o"])[:, 1]
    assert pd.read_csv(tmp_path / "p.csv")["p(yes)"].to_numpy() == pytest.approx(wanted, rel=1e-6)
    shown = cli("inspect", "out/model.certifit", "--show-values").stdout
    assert "2: no and yes" in shown and "with standard errors" in shown


def test_classes_that_are_separated_are_refused_with_a_way_out(cli, policies, tmp_path):
    policies.assign(late=np.where(policies["a"] > 0, "yes", "no")).to_csv(tmp_path / "policies.csv", index=False)
    options = ("--columns", "a,b", "--model", "logistic")
    result = cli("fit", "policies.csv", "-t", "late", "-o", "out", "--alpha", "0", "--cv", "0", *options)
    assert result.exit_code == 1
    assert "separation" in result.stdout and "--alpha 0.01" in result.stdout
    assert cli("fit", "policies.csv", "-t", "late", "-o", "out", *options).exit_code == 0


FAULTS = {
    "a penalty without folds": (
        ["claims", "--model", "poisson-ridge", "--cv", "0"],
        "needs folds to choose the penalty",
    ),
    "probabilities of counts": (["claims", "--model", "poisson", "--positive", "1"], "the target is counts"),
    "an exposure of classes": (["late", "--exposure", "years"], "--exposure does not go with"),
    "alpha without a penalty": (["claims", "--model", "poisson", "--alpha", "1"], "--alpha is for --model"),
    "negative numbers": (["a", "--model", "gamma"], "must be"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_what_does_not_go_together_is_refused_in_words(case, cli, policies):
    (target, *options), words = FAULTS[case]
    result = cli("fit", "policies.csv", "-t", target, "-o", "out", *options)
    assert result.exit_code == 2, result.output
    assert words in result.stderr


def test_a_selection_of_counts_is_one_of_poisson_regression(cli, policies, tmp_path):
    result = cli("select", "policies.csv", "-t", "claims", "-o", "out", "--columns", "a,b", "--cv", "3")
    assert result.exit_code == 0, result.output
    assert context(tmp_path)["model"]["kind"] == "GLM"
