"""What `certifit fit` compares where no model is named, and which model it takes."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import certifit as cf
from certifit.cli import models
from certifit.cli.models import Choice
from certifit.models.learner import Simplicity

pytestmark = pytest.mark.compares_all
ALL = {
    "quantity": {"linear", "ridge", "lasso", "regression-tree", "regression-forest", "regression-boosting",
                 "regression-network", "kernel-ridge", "local"},
    "classes": {"logistic", "discriminant", "gaussian-nb", "tree", "forest", "adaboost", "boosting", "network",
                "linear-svm", "svm"},
    "counts": {"poisson", "poisson-ridge", "poisson-boosting"},
    "positive": {"gamma", "gamma-ridge", "gamma-boosting"},
}  # fmt: skip


def table(n_rows=150, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-2, 2, (2, n_rows)).round(3)
    return pd.DataFrame({"a": a, "b": b, "noise": rng.normal(size=n_rows).round(3)})


@pytest.mark.parametrize("goal", ALL)
def test_every_family_is_compared(goal):
    assert ALL[goal] <= set(models.COMPARED[goal])
    simplest = models.KINDS[models.COMPARED[goal][0]].command.simplicity
    assert simplest is (Simplicity.COEFFICIENTS if goal == "classes" else Simplicity.P_VALUES)


def test_a_line_is_taken_where_the_data_are_a_line(cli, tmp_path):
    rows = table()
    rows["y"] = 1 + 2 * rows["a"] - rows["b"] + 0.5 * np.random.default_rng(1).normal(size=len(rows))
    rows.to_csv(tmp_path / "data.csv", index=False)
    result = cli("fit", "data.csv", "-t", "y", "--cv", "4", "--out", "out")
    assert result.exit_code == 0, result.output
    assert isinstance(cf.load(tmp_path / "out" / "model.certifit"), cf.LinearRegression)
    for label in ("random forest", "gradient boosting", "kernel ridge", "local regression", "neural network"):
        assert label in result.output


def test_a_curve_that_no_line_follows_is_left_to_a_model_that_does(cli, tmp_path):
    rows = table(300)
    rows["y"] = np.sin(3 * rows["a"]) * rows["b"] + 0.05 * np.random.default_rng(1).normal(size=len(rows))
    rows.to_csv(tmp_path / "data.csv", index=False)
    result = cli("fit", "data.csv", "-t", "y", "--cv", "4", "--out", "out")
    assert result.exit_code in (0, 1), result.output
    model = cf.load(tmp_path / "out" / "model.certifit")
    assert not isinstance(model, cf.LinearRegression | cf.Ridge | cf.Lasso)
    validation = json.loads((tmp_path / "out" / "report.json").read_text())["validation"]
    assert "is more than one standard error larger" in json.dumps(validation)


def test_counts_with_an_exposure_have_boosting_beside_the_regressions(cli, tmp_path):
    rng = np.random.default_rng(2)
    rows = table(400)
    rows["years"] = rng.uniform(0.2, 2, len(rows)).round(2)
    rows["claims"] = rng.poisson(rows["years"] * np.exp(np.where(rows["a"] * rows["b"] > 0, 1.0, -1.0)))
    rows.to_csv(tmp_path / "data.csv", index=False)
    result = cli("fit", "data.csv", "-t", "claims", "--exposure", "years", "--cv", "4", "--out", "out")
    assert result.exit_code in (0, 1), result.output
    model = cf.load(tmp_path / "out" / "model.certifit")
    assert isinstance(model, cf.GradientBoostingRegressor) and model.family == "poisson"
    again = cli("predict", "out/model.certifit", "data.csv", "--out", "p.csv")
    assert again.exit_code == 0, again.output


def test_two_classes_that_need_both_columns_at_once_are_found(cli, tmp_path):
    rows = table(300)
    rows["y"] = np.where(rows["a"] * rows["b"] > 0, "same", "other")
    rows.to_csv(tmp_path / "data.csv", index=False)
    result = cli("fit", "data.csv", "-t", "y", "--cv", "4", "--out", "out")
    assert result.exit_code in (0, 1), result.output
    model = cf.load(tmp_path / "out" / "model.certifit")
    assert (model.predict(rows[["a", "b", "noise"]]) == rows["y"]).mean() > 0.95


def test_margins_are_compared_by_calibrated_probabilities_and_the_file_says_what_it_keeps(cli, tmp_path, monkeypatch):
    assert "linear-svm" in models.COMPARED["texts"] and "svm" not in models.COMPARED["texts"]
    monkeypatch.setattr(models, "COMPARED", {**models.COMPARED, "classes": ("logistic", "linear-svm", "svm")})
    rows = table(90)
    rows["g"] = np.array(["u", "v", "w"])[np.arange(90) % 3]
    rows.loc[0, "g"] = "rare"  # no row of most training sets
    rows["y"] = np.where(rows["a"] ** 2 + rows["b"] ** 2 > 2, "far", "near")
    rows.to_csv(tmp_path / "data.csv", index=False)
    result = cli("fit", "data.csv", "-t", "y", "--cv", "2", "--out", "out")
    assert result.exit_code == 0, result.output
    context = json.loads((tmp_path / "out" / "report.json").read_text())
    compared = {row["name"]: row for row in context["validation"]["rows"]}
    assert {"support vector machine", "linear support vector machine", "logistic regression"} < compared.keys()
    model = cf.load(tmp_path / "out" / "model.certifit")
    assert isinstance(model, cf.Calibrated) and isinstance(model.estimator, cf.SVC)
    assert "holds rows of the fit, its support vectors" in (tmp_path / "out" / "MODEL_CARD.md").read_text()
    assert "The model keeps support vectors" in (tmp_path / "out" / "report.html").read_text()
    assert "of them or more are, for predictions" in " ".join(cli("inspect", "out/model.certifit").output.split())
    assert cli("verify", "out/model.certifit", "data.csv").exit_code == 0
    assert cli("predict", "out/model.certifit", "data.csv", "--proba", "--out", "p.csv").exit_code == 0
    chances = pd.read_csv(tmp_path / "p.csv")
    assert np.allclose(chances["p(far)"] + chances["p(near)"], 1)
    assert (chances["prediction"] == rows["y"]).mean() > 0.9


def test_machines_that_weights_of_classes_leave_out_are_named():
    (note,) = Choice.of("auto", class_weight="balanced").unweighted_note("classes", False)
    assert "linear support vector machine" in note and "--model linear-svm or --model svm takes the weights" in note
    assert "(no such weights)" in note
    assert Choice.of("auto").unweighted_note("classes", False) == []
    assert Choice.of("logistic", class_weight="balanced").unweighted_note("classes", False) == []


def test_machines_are_compared_where_their_size_allows():
    kinds = models.COMPARED["classes"]
    assert {"svm", "linear-svm"} <= set(Choice().affordable(kinds, 500, 10)[0])
    few, (note,) = Choice().affordable(kinds, 20_000, 20)
    assert "svm" not in few and "linear-svm" in few and "support vector machine" in note
    assert "linear-svm" not in Choice().affordable(kinds, 10**7, 20)[0]


def test_models_whose_folds_would_be_slow_are_named_and_left_out():
    kinds = models.COMPARED["quantity"]
    choice = Choice()
    assert choice.affordable(kinds, 100, 3) == (kinds, [])
    few, (note,) = choice.affordable(kinds, 100_000, 20)
    assert set(kinds) - set(few) >= {"kernel-ridge", "local", "regression-network"}
    assert "100,000 rows and 20 columns" in note and "--model kernel-ridge" in note
    assert choice.affordable(kinds, 10**9, 1000)[0] == ("linear", "ridge", "lasso")
    of_classes = models.COMPARED["classes"]  # a round of boosting has a tree per class
    assert "boosting" in choice.affordable(of_classes, 1000, 20, 8)[0]
    few, (note,) = choice.affordable(of_classes, 1000, 20, 200)
    assert "boosting" not in few and "1,000 rows, 20 columns and 200 classes: gradient boosting" in note
    asked = Choice.of("kernel-ridge")
    assert asked.affordable(("kernel-ridge",), 10**6, 20) == (("kernel-ridge",), [])


def test_the_command_line_stops_models_unless_folds_are_asked_for(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(models, "COMPARED", {**models.COMPARED, "quantity": ("linear", "regression-tree")})
    rows = table(200)
    rows["y"] = 2 * rows["a"] - rows["b"] + 0.5 * np.random.default_rng(1).normal(size=len(rows))
    rows.to_csv(tmp_path / "data.csv", index=False)
    said = {}
    for options in ((), ("--cv", "10")):
        result = cli("fit", "data.csv", "-t", "y", "--out", f"out{len(options)}", *options)
        assert result.exit_code == 0, result.output
        said[options] = (tmp_path / f"out{len(options)}" / "report.html").read_text()
    assert re.search(r"Regression tree was stopped after [24] of 10 folds", said[()])
    assert "To compare all models on all folds, add --cv 10." in said[()]
    assert "was stopped after" not in said["--cv", "10"]
