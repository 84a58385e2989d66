"""What a report says of columns where a model has neither coefficients nor splits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from fits import FILES

import certifit as cf
from certifit.data.source import Memory
from certifit.report.context import build
from certifit.report.first_screen import picture_of
from certifit.report.page import render
from certifit.report.sections import drawings


def _flats(n: int = 120) -> Any:
    rng = np.random.default_rng(3)
    area, place = rng.normal(size=n), rng.choice(["centre", "north"], n)
    y = 5 * area + 1.0 * (place == "north") + 0.1 * rng.normal(size=n)
    kind = np.where(y > 0, "dear", "cheap")
    return pa.table({"place": place, "noise": rng.normal(size=n), "area": area, "y": y, "kind": kind})


MODELS = [
    ("y", cf.KernelRidge(alpha=0.01)),
    ("y", cf.LocallyWeightedRegression(tau=2.0)),
    ("y", cf.MLPRegressor((8,), max_iter=50)),
    ("kind", cf.MLPClassifier((8,), max_iter=50)),
    ("kind", cf.SVC(alpha=0.1)),
]


@pytest.mark.parametrize(("target", "model"), MODELS, ids=[type(model).__name__ for _, model in MODELS])
@pytest.mark.filterwarnings("ignore")
def test_the_column_that_decides_moves_predictions_most(target, model):
    table = _flats().drop_columns(["kind" if target == "y" else "y"])
    source = cf.from_arrow(table, target=target)
    context = build(model.fit(source), source, FILES)
    columns = context["shuffled"]["columns"]
    assert columns[0]["name"] == "area" and {row["name"] for row in columns} == {"area", "place", "noise"}
    assert columns[0]["moves"] > 3 * columns[-1]["moves"] >= 0
    assert picture_of(context) == "shuffled" and "What matters most?" in render(context)


def test_the_moves_are_those_of_shuffled_rows():
    X = np.random.default_rng(4).normal(size=(50, 2))
    source = Memory(X, X[:, 0].copy(), names=["a", "b"])
    model = cf.KernelRidge(kernel=cf.kernels.Linear(), alpha=1e-8).fit(source)
    columns = {row["name"]: row["moves"] for row in build(model, source, FILES)["shuffled"]["columns"]}
    dealt = np.random.default_rng(33).permutation(50)
    assert columns["a"] == pytest.approx(np.sqrt(np.mean((X[dealt, 0] - X[:, 0]) ** 2)), rel=1e-3)
    assert columns["b"] < 1e-3


def test_models_that_tell_their_columns_and_single_columns_have_none():
    X = np.random.default_rng(5).normal(size=(40, 2))
    for model, rows in ((cf.LinearRegression(), X), (cf.KernelRidge(alpha=1.0), X[:, :1])):
        source = Memory(rows.copy(), X[:, 0].copy())
        context = build(model.fit(source), source, FILES)
        assert context["shuffled"] is None and "shuffled" not in drawings(context)


def test_a_model_that_answers_the_same_everywhere_says_so_and_has_no_picture():
    source = Memory(np.random.default_rng(6).normal(size=(40, 2)), np.full(40, 7.0))
    context = build(cf.LocallyWeightedRegression(tau=1e6).fit(source), source, FILES)
    context["shuffled"]["columns"] = [row | {"moves": 0.0} for row in context["shuffled"]["columns"]]
    assert "shuffled" not in drawings(context)
