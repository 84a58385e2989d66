"""Counts and positive targets are recognised; offsets and exposures have columns of their own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import certifit as cf
from certifit.cli import models
from certifit.cli.predict import offset_roles, offsets_there
from certifit.cli.request import Request
from certifit.cli.what_to_fit import settle
from certifit.models.learner import Command
from certifit.models.table import LEARNERS

N = 400


@pytest.fixture
def policies(tmp_path):
    """policies.csv: claims from a and b, proportional to years; cost positive and skewed; o an offset."""
    rng = np.random.default_rng(0)
    a, b, o = rng.normal(size=(3, N)).round(3)
    years = rng.uniform(0.1, 3.0, N).round(3)
    claims = rng.poisson(years * np.exp(0.3 * a - 0.2 * b + o - 1))
    cost = (1000 * np.exp(0.5 * a + rng.normal(size=N))).round(2)
    frame = pd.DataFrame({"a": a, "b": b, "years": years, "o": o, "claims": claims, "cost": cost})
    frame.to_csv(tmp_path / "policies.csv", index=False)
    frame.drop(columns="years").to_csv(tmp_path / "timeless.csv", index=False)
    return frame


def request_of(tmp_path, **given):
    options = {
        "weight": None,
        "group": None,
        "offset": None,
        "exposure": None,
        "columns": None,
        "drop": None,
        "cv": None,
    }
    options |= {"no_intercept": False, "tol": 1e-8, "quiet": True, "texts": None, "ngrams": None}
    options |= {"min_word_count": None, "categories": None, "reference": (), "unseen": "error", "max_levels": 1000}
    options |= {"min_count": 1, "bad_rows": 0, "na": (), "types": None, "delimiter": None, "encoding": "utf8"}
    options |= {"no_header": False, "sheet": None}
    return Request.of(data=[str(tmp_path / "policies.csv")], out=str(tmp_path / "out"), **options | given)


@pytest.fixture
def every_task(monkeypatch):
    """Models for every task, told apart by their names."""
    commands = [
        Command(f"of-{goal}", goal, "", goal, roles=models.OFFSETS) for goal in ("counts", "positive", "classes")
    ]
    takers = {command.name: models.Kind(LEARNERS["ridge"], command) for command in commands}
    kinds = models.KINDS | takers
    monkeypatch.setattr(models, "KINDS", kinds)
    monkeypatch.setattr("certifit.cli.what_to_fit.KINDS", kinds)
    for kind, row in takers.items():
        more = models.COMPARED[row.command.goal] if row.command.goal == "classes" else ()
        monkeypatch.setitem(models.COMPARED, row.command.goal, (kind, *more))
    monkeypatch.setitem(models.GOES_WITH, "exposure", tuple(takers))
    monkeypatch.setitem(models.GOES_WITH, "offset", tuple(takers))


SETTLED = {
    "counts by their skewness": ({"target": "claims"}, "counts", "skewed to the right"),
    "counts by their exposure": ({"target": "claims", "exposure": "years"}, "counts", "has an exposure: counts"),
    "positive": ({"target": "cost"}, "positive", "positive and skewed to the right"),
    "any": ({"target": "a"}, "quantity", None),
}


@pytest.mark.parametrize("case", SETTLED)
def test_the_task_is_recognised_and_said(case, policies, every_task, tmp_path):
    given, task, words = SETTLED[case]
    request = request_of(tmp_path, **given)
    setting = settle(request, models.Choice(), request.data.open(labels=True, **request.roles))
    assert setting.goal == task
    assert setting.kinds == (models.COMPARED["quantity"] if task == "quantity" else (f"of-{task}",))
    assert setting.classes is None
    assert (words is None and not setting.notes) or words in setting.notes[0]
    assert not {"years", "o"}.intersection(given.values()) & set(setting.rows.names)


@pytest.mark.parametrize("task", ["quantity", "counts", "positive"])
def test_the_task_that_is_asked_for_is_not_doubted(task, policies, every_task, tmp_path):
    request = request_of(tmp_path, target="claims")
    choice = models.Choice.of("auto", task)
    setting = settle(request, choice, request.data.open(**request.roles))
    assert (setting.goal, setting.notes) == (task, [])


def test_only_models_that_read_an_offset_are_compared(policies, every_task, tmp_path):
    policies.assign(hit=(policies["claims"] > 0).astype(int)).to_csv(tmp_path / "policies.csv", index=False)
    for offset in (None, "o"):
        request = request_of(tmp_path, target="hit", offset=offset)
        setting = settle(request, models.Choice(), request.data.open(labels=True, **request.roles))
        assert setting.goal == "classes"
        assert (setting.kinds == ("of-classes", "logistic")) == (offset is not None)


@pytest.mark.parametrize("command", ["fit", "select"])
def test_a_model_that_reads_no_exposure_is_refused_in_words(command, cli, policies):
    result = cli(command, "policies.csv", "-t", "claims", "-o", "out", "--model", "linear", "--exposure", "years")
    assert result.exit_code == 2
    assert "--exposure does not go with linear" in result.stderr


FAULTS = {
    "absent": (["--exposure", "year"], "no column 'year'. Did you mean 'years'?"),
    "two parts": (["--exposure", "o", "--offset", "o"], "'o' cannot be the offset and the exposure at once"),
    "the target": (["--offset", "claims"], "'claims' cannot be the target and the offset at once"),
    "a feature": (["--offset", "o", "--columns", "a,o"], "'o' cannot be a feature and the offset at once"),
    "text": (["--exposure", "word"], "line 3: column 'word' is 'long', not a"),
    "a task of no such model": (["--task", "positive", "--model", "lasso"], "--model lasso predicts a quantity"),
    "a class of counts": (
        ["--task", "counts", "--positive", "1"],
        "--positive names one of two classes, and the target is counts",
    ),
}


@pytest.mark.parametrize("command", ["fit", "select"])
@pytest.mark.parametrize("case", FAULTS)
def test_wrong_columns_are_refused_before_the_fit(case, command, cli, policies):
    policies.assign(word=["1", "long", *["2"] * (N - 2)]).to_csv("policies.csv", index=False)
    options, words = FAULTS[case]
    if command == "select" and case in ("a task of no such model", "a class of counts"):
        options, words = ["--task", "positive", "--model", "ridge"], "--model ridge predicts a quantity"
    result = cli(command, "policies.csv", "-t", "claims", "-o", "out", *options, "--show-values")
    assert result.exit_code == 2
    assert words in result.stderr


class Taker:
    """A model that was fitted with an exposure."""

    offset_name_ = None
    exposure_name_ = "years"

    def fit(self, X, y=None, sample_weight=None, offset=None, exposure=None):
        """Not used."""


def test_a_model_file_names_the_columns_of_its_fit(capsys):
    assert offset_roles(Taker(), offset=None, exposure=None) == {"offset": None, "exposure": "years"}
    assert offset_roles(Taker(), offset="o", exposure="none") == {"offset": "o", "exposure": None}
    with pytest.raises(ValueError, match="--exposure: a LinearRegression has none"):
        offset_roles(cf.LinearRegression(), offset=None, exposure="years")
    assert offset_roles(cf.LinearRegression(), offset=None, exposure="none") == {"offset": None, "exposure": None}


def test_a_prediction_says_which_exposure_it_takes(capsys):
    given = {"offset": None, "exposure": None}
    assert offsets_there(Taker(), ["a", "years"], False, **given)["exposure"] == "years"
    assert "column 'years', as in the fit. For exposure 1: a rate, add --exposure none." in capsys.readouterr().err
    assert offsets_there(Taker(), ["a"], False, **given)["exposure"] is None
    assert "there is no column 'years'. Predictions are for exposure 1: a rate." in capsys.readouterr().err
    assert offsets_there(Taker(), ["a"], True, **given)["exposure"] is None
    assert offsets_there(Taker(), ["a"], False, offset=None, exposure="t")["exposure"] == "t"
    assert capsys.readouterr().err == ""


@pytest.fixture
def fitted(policies, tmp_path):
    """A model of claims with an exposure and an offset, saved as model.certifit."""
    scan = cf.scan_csv(tmp_path / "policies.csv", "claims", columns=["a", "b"], exposure="years", offset="o")
    model = cf.PoissonRegressor(alpha=0.0).fit(scan)
    cf.save(model, tmp_path / "model.certifit")
    return model


VERIFIED = {
    "as in the file": ([], 0),
    "named": (["--exposure", "years", "--offset", "o"], 0),
    "without the exposure": (["--exposure", "none"], 1),
    "another exposure": (["--exposure", "cost"], 1),
    "a column that is not there": (["--exposure", "yeras"], 2),
}


@pytest.mark.parametrize("case", VERIFIED)
def test_a_fit_is_proven_with_its_own_offsets_alone(case, cli, fitted):
    options, code = VERIFIED[case]
    result = cli("verify", "model.certifit", "policies.csv", *options)
    assert result.exit_code == code, result.output
    assert ("Did you mean 'years'" in result.stderr) == (code == 2)


def test_a_model_file_keeps_the_names_of_offset_and_exposure(fitted, cli, tmp_path):
    shown = cli("inspect", "model.certifit").stdout
    assert "offset: o" in shown and "exposure: years" in shown
    model = cf.load(tmp_path / "model.certifit")
    assert (model.offset_name_, model.exposure_name_) == ("o", "years")


PREDICTED = {
    "as in the fit": ("policies.csv", [], lambda f: (f["o"], f["years"])),
    "a rate": ("policies.csv", ["--exposure", "none"], lambda f: (f["o"], None)),
    "neither": ("policies.csv", ["--exposure", "none", "--offset", "none"], lambda f: (None, None)),
    "a column that is not there": ("timeless.csv", [], lambda f: (f["o"], None)),
    "other columns": ("policies.csv", ["--exposure", "cost", "--offset", "years"], lambda f: (f["years"], f["cost"])),
}


@pytest.mark.parametrize("case", PREDICTED)
def test_predictions_take_their_offsets_from_columns(case, cli, policies, fitted, tmp_path):
    file, options, offsets = PREDICTED[case]
    result = cli("predict", "model.certifit", file, "-o", "p.csv", *options)
    assert result.exit_code == 0, result.output
    offset, exposure = offsets(policies)
    rows = cf.from_arrow(policies[["a", "b"]])
    rates = np.log(fitted.predict(rows)) + (0 if offset is None else offset)
    truth = np.exp(rates) * (1 if exposure is None else exposure)
    np.testing.assert_allclose(pd.read_csv(tmp_path / "p.csv")["prediction"], truth, rtol=1e-12)
    assert ("Predictions are for exposure 1: a rate." in result.stderr) == (file == "timeless.csv")


@pytest.mark.parametrize("years", [0.0, -1.0])
def test_a_prediction_without_exposure_names_its_line(years, cli, policies, fitted):
    policies.assign(years=[1.0, years, *[1.0] * (N - 2)]).to_csv("policies.csv", index=False)
    result = cli("predict", "model.certifit", "policies.csv", "-o", "p.csv", "--show-values")
    assert result.exit_code == 2
    assert f"Exposure 'years' must be > 0. It is {years:g} at line 3" in result.stderr


def test_the_report_scans_with_the_columns_of_the_fit():
    from certifit.report.model import python_lines

    files = {"paths": ["p.csv"], "scan": "scan_csv", "weight": None, "bad_rows": 0, "model": "m"}
    files |= {"offset": "o", "exposure": "years"}
    context = {"files": files, "model": {"target": "claims"}, "data": {"named": True, "read_as": {}}, "classes": None}
    lines = python_lines(context | {"coefficients": None})
    scanned = "columns=names, offset='o', exposure='years'"
    assert any("model.predict" in line and scanned in line for line in lines)
    assert any("cf.verify" in line and f"target='claims', {scanned}" in line for line in lines)


def test_the_gate_remembers_what_offsets_were_called(policies):
    X, y = policies[["a", "b"]].to_numpy(), policies["claims"]
    model = cf.PoissonRegressor(alpha=0.0)
    assert vars(model.fit(X, y))["exposure_name_"] is None
    model.fit(X, y, exposure=policies["years"], offset=policies["o"].to_numpy())
    assert (model.offset_name_, model.exposure_name_) == ("offset", "years")
    model.fit(cf.from_arrow(policies.drop(columns="cost"), "claims", exposure="years"))
    assert (model.offset_name_, model.exposure_name_) == (None, "years")
    assert cf.LinearRegression().fit(X, y).offset_name_ is None
