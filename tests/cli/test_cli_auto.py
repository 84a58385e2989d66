"""What `certifit fit` compares where no model is named, and which model it takes."""

import json

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
    "classes": {"logistic", "discriminant", "gaussian-nb", "tree", "forest", "adaboost", "boosting", "network"},
    "counts": {"poisson", "poisson-ridge", "poisson-boosting"},
    "positive": {"gamma", "gamma-ridge", "gamma-boosting"},
}  # fmt: skip


def table(n_rows=150, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-2, 2, (2, n_rows)).round(3)
    return pd.DataFrame({"a": a, "b": b, "noise": rng.normal(size=n_rows).round(3)})


def chosen(folder):
    context = json.loads((folder / "out" / "report.json").read_text())
    return context["model"]["class"], context


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
    assert "more than one standard error larger" in json.dumps(validation)


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


def test_models_whose_folds_would_be_slow_are_named_and_left_out():
    kinds = models.COMPARED["quantity"]
    choice = Choice()
    assert choice.affordable(kinds, 100, 3) == (kinds, [])
    few, (note,) = choice.affordable(kinds, 100_000, 20)
    assert set(kinds) - set(few) >= {"kernel-ridge", "local", "regression-network"}
    assert "100,000 rows and 20 columns" in note and "--model kernel-ridge" in note
    assert choice.affordable(kinds, 10**9, 1000)[0] == ("linear", "ridge", "lasso")
    asked = Choice.of("kernel-ridge")
    assert asked.affordable(("kernel-ridge",), 10**6, 20) == (("kernel-ridge",), [])
