"""A model that is declared in the table, and nowhere else, goes through every command: here a step function."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Self

import click
import numpy as np
import pandas as pd
import pytest

import certifit.modelfile
from certifit.cli import models
from certifit.cli.fit import run
from certifit.cli.models import own_options
from certifit.cli.predict import predict
from certifit.cli.request import Request
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.minimise.problem import Run
from certifit.models.adapter import learner_of
from certifit.models.certificate import Certificate
from certifit.models.estimator import Regressor
from certifit.models.learner import Answer, Command, Learner, Option, Words, number
from certifit.models.table import LEARNERS

N = 200


@dataclass(frozen=True)
class Sides:
    """Targets of the rows on both sides of a cut of the first column."""

    is_above: Array
    y: Array
    weight: Array

    @staticmethod
    def of(source: Source, at: float) -> Sides:
        block = source.gather()
        X = block.X if isinstance(block.X, np.ndarray) else block.X.toarray()
        weight = np.ones(block.n_rows) if block.weight is None else np.asarray(block.weight, dtype=float)
        return Sides(X[:, 0] > at, np.asarray(block.y, dtype=float), weight)

    def means(self) -> Array:
        sides = (~self.is_above, self.is_above)
        return np.array([np.average(self.y[side], weights=self.weight[side]) for side in sides])

    def loss(self, means: Array) -> float:
        return float(np.average((self.y - means[self.is_above.astype(int)]) ** 2, weights=self.weight))

    def facts(self) -> dict[str, float]:
        mean, sd = np.average(self.y, weights=self.weight), np.std(self.y)
        return {"n_rows": len(self.y), "sum_weight": self.weight.sum(), "target_mean": mean, "target_sd": sd}


class StepRegressor(Regressor):
    """The mean of the target on each side of a cut: a model without coefficients."""

    def __init__(self, at: float = 0.0, *, tol: float = 1e-8, encoder: Any = None) -> None:
        self.at = at
        self.tol = tol
        self.encoder = encoder

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        return self._fit(X, y, sample_weight=sample_weight)

    def predict(self, X: Any, out: Any = None) -> Any:
        return self._predict(X, out)

    def scores(self, block: Block) -> Array:
        X = self.columns_of(block)
        first = (X if isinstance(X, np.ndarray) else X.toarray())[:, 0]
        return self.means_of_sides_[(first > self.at).astype(int)]

    def _task(self, source: Source, is_fitted: bool = False) -> Sides:
        return Sides.of(source, self.at)

    def _solve(self, task: Sides) -> Run[Array]:
        return Run(task.means())

    def _keep(self, task: Sides, run: Run[Array]) -> None:
        self.means_of_sides_, self.data_ = run.state, task.facts()

    def _state(self) -> Array:
        return self.means_of_sides_

    def _certified(self, task: Sides, state: Array) -> Certificate:
        excess = task.loss(state) - task.loss(task.means())
        return Certificate("excess of the objective", "means minimise squares", excess, self.tol, 0.0, None, None, None)


ROW = Learner(
    "step_regressor",
    "models.steps:StepRegressor",
    lambda told: f"minimised: squares, one mean below and one above {told.params['at']:g}",
    Words("a step at {at}", "squared error"),
    {"at": number(0.0, least=-np.inf), "tol": number(1e-8)},
    ("encoder",),
    commands=(
        Command("steps", "step function", "two means", options=(Option("at", "X", "steps: where it steps.", "at"),)),
    ),
)


@pytest.fixture
def steps(monkeypatch):
    """The table of models with one more row; its file is kept in memory, for a row says nothing of files here."""
    files: dict[str, Any] = {}

    def save(model: Any, path: Any) -> None:
        path.write_text("in memory")
        files["model"] = model

    monkeypatch.setattr(StepRegressor, "__module__", "certifit.models.steps")
    monkeypatch.setattr(Learner, "load", lambda learner: StepRegressor)
    monkeypatch.setitem(LEARNERS, ROW.key, ROW)
    monkeypatch.setitem(models.KINDS, "steps", models.Kind(ROW, ROW.commands[0]))
    monkeypatch.setitem(models.GOES_WITH, "at", ("steps",))
    monkeypatch.setattr(certifit.modelfile, "save", save)
    monkeypatch.setattr(certifit.modelfile, "load", lambda path: files["model"])


@pytest.fixture
def data(tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    x, color = rng.normal(size=N).round(3), rng.choice(["red", "blue"], size=N)
    frame = pd.DataFrame({"x": x, "color": color, "y": (3.0 * (x > 0.5) + rng.normal(size=N)).round(3)})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return frame


def test_a_regressor_without_coefficients_is_fitted_validated_reported_and_predicts(steps, data, capsys, tmp_path):
    options = {"weight": None, "group": None, "offset": None, "exposure": None, "columns": None, "drop": None, "cv": 5}
    options |= {"no_intercept": False, "tol": 1e-8, "quiet": False, "texts": None, "ngrams": None}
    options |= {"min_word_count": None, "categories": None, "reference": (), "unseen": "error", "max_levels": 1000}
    options |= {"min_count": 1, "bad_rows": 0, "na": (), "types": None, "delimiter": None, "encoding": "utf8"}
    options |= {"no_header": False, "sheet": None}
    request = Request.of(data=["rows.csv"], out="out", target="y", **options)
    assert run(request, models.Choice.of("steps", at=0.5)) == 0
    context = json.loads((tmp_path / "out/report.json").read_text())
    assert context["model"]["words"] == "a step at 0.5"
    assert context["coefficients"] is None and not (tmp_path / "out/coefficients.csv").exists()
    above = data["x"] > 0.5
    fitted = np.where(above, data["y"][above].mean(), data["y"][~above].mean())
    r2 = 1 - ((data["y"] - fitted) ** 2).sum() / ((data["y"] - data["y"].mean()) ** 2).sum()
    assert context["quality"]["r2"] == pytest.approx(r2)
    assert context["validation"]["rows"][0]["name"] == "step function"
    page = (tmp_path / "out/report.html").read_text()
    assert "a step at 0.5" in page and "Condition number" not in page
    data.drop(columns="y").to_csv("new.csv", index=False)
    assert predict.main(["out/model.certifit", "new.csv", "--out", "p.csv"], standalone_mode=False) == 0
    np.testing.assert_allclose(pd.read_csv("p.csv").iloc[:, -1], fitted)


def test_an_option_that_a_row_brings_has_the_legal_values_of_its_parameter(steps):
    option = click.Command("fit", params=[])
    for decorate in own_options("at"):
        option = decorate(option)
    (parameter,) = option.params
    assert parameter.type.convert("0.5", parameter, None) == 0.5
    with pytest.raises(click.BadParameter, match=r"at must be a finite number\. Got inf\."):
        parameter.type.convert("inf", parameter, None)


def test_what_a_model_is_stands_in_its_row(steps):
    assert learner_of(StepRegressor()) is ROW
    assert learner_of(StepRegressor).answers({}) is Answer.NUMBER
