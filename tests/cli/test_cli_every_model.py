"""Claims: `inspect`, `predict`, `verify` and `select` take every model that a file can hold."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from learners import LEARNERS, OTHERS
from sklearn.base import clone

import certifit as cf
from certifit.cli.select import select

COMPOSITES = ("one against the rest", "bagging of classes", "bagging", "calibrated", "calibrated by steps")
SAVED = LEARNERS | {name: OTHERS[name] for name in COMPOSITES}
SELECTED = [kind for param in select.params if param.name == "model" for kind in param.type.choices]


@pytest.mark.parametrize("name", SAVED)
def test_a_saved_model_is_inspected_predicts_and_is_verified(cli, tmp_path, name):
    row = SAVED[name]
    frame, target = row.frame(40, 3)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X = pd.read_csv(tmp_path / "rows.csv")
        y = None if target is None else X.pop(target)
        model = clone(row.model).fit(X, y)
    cf.save(model, tmp_path / "m.certifit")
    told = cli("inspect", "m.certifit")
    assert told.exit_code == 0, told.output
    assert type(model).__name__ in told.stdout and "it claims" in told.stdout
    told = cli("inspect", "m.certifit", "--json")
    assert json.loads(told.stdout)["model"]["class"] == type(model).__name__
    told = cli("verify", "m.certifit", "rows.csv")
    assert told.exit_code == (0 if model.certificate_.holds else 1), told.output
    told = cli("predict", "m.certifit", "rows.csv", "-o", "predicted.csv")
    if row.kind == "tr":
        assert told.exit_code == 2 and "predicts nothing" in told.output
        return
    assert told.exit_code == 0, told.output
    predicted = pd.read_csv(tmp_path / "predicted.csv")["prediction"].to_numpy()
    expected = np.asarray(model.predict(X))
    assert (predicted == expected).all() if row.kind == "clf" else predicted == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", SELECTED)
def test_what_is_selected_is_inspected_predicts_and_is_verified(cli, tmp_path, kind):
    of = {"poisson": "poisson_regressor", "gamma": "gamma_regressor"}
    is_number = kind in ("auto", "linear", "ridge")
    row = LEARNERS["ridge" if is_number else of.get(kind, "multinomial_nb")]
    frame, _ = row.frame(60, 3)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for command in (
        ("select", "rows.csv", "-t", "y", "-o", "out", "--model", kind, "--cv", "3"),
        ("inspect", "out/model.certifit"),
        ("verify", "out/model.certifit", "rows.csv"),
        ("predict", "out/model.certifit", "rows.csv", "-o", "predicted.csv"),
    ):
        told = cli(*command)
        assert told.exit_code == 0, told.output
