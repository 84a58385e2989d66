"""HoldOut: which rows are held out, wherever they are read from; and that nothing else sees them."""

from __future__ import annotations

import csv
import json

import numpy as np
import pyarrow as pa
import pytest
import safetensors.numpy
from click.testing import CliRunner

import certifit as cf
from certifit.cli import main
from certifit.data.arrow import ArrowSource
from certifit.selection.folds.splits import rounds_of


@pytest.mark.parametrize("n_rows, share", [(10, 0.2), (101, 0.3), (7, 0.5)])
def test_the_share_is_held_out_and_every_row_is_in_one_part(n_rows, share):
    train, out = next(cf.HoldOut(share).split(np.zeros((n_rows, 1))))
    assert len(out) == int(np.floor(share * n_rows + 0.5))
    assert sorted([*train, *out]) == list(range(n_rows))
    again = next(cf.HoldOut(share).split(np.zeros((n_rows, 1))))[1]
    assert np.array_equal(out, again)


def test_another_seed_is_another_draw():
    X = np.zeros((100, 1))
    assert not np.array_equal(next(cf.HoldOut().split(X))[1], next(cf.HoldOut(random_state=1).split(X))[1])


def test_stratified_parts_have_the_shares_of_the_classes():
    y = np.repeat([0, 1, 2], [50, 30, 20])
    out = next(cf.HoldOut(0.2, stratify=True).split(np.zeros((100, 1)), y))[1]
    assert np.bincount(y[out]).tolist() == [10, 6, 4]


def test_groups_stay_whole_and_the_share_is_near():
    groups = np.arange(200) // 5
    train, out = next(cf.HoldOut(0.25).split(np.zeros((200, 1)), None, groups))
    assert not set(groups[train]) & set(groups[out])
    assert len(out) == 50


@pytest.mark.parametrize("size", [3, 17, 500])
def test_a_scan_in_any_chunks_holds_the_same_rows_out(size):
    X, y = np.random.default_rng(0).normal(size=(90, 2)), np.arange(90.0)
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": y})
    source = ArrowSource(lambda: table.to_batches(size), table.schema, "y", n_rows=90)
    (splits,) = rounds_of(cf.HoldOut(0.3), source)
    cells = np.concatenate(list(source.map(splits.cells.of)))
    assert np.array_equal(np.flatnonzero(cells == 1), next(cf.HoldOut(0.3).split(X))[1])


def test_it_is_a_cv_of_cross_validated_and_of_leaderboards():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X @ [1.0, 2.0, 0.0] + rng.normal(size=80)
    model = cf.CrossValidated(cf.Ridge(), {"alpha": [0.01, 1.0]}, cv=cf.HoldOut(0.25), corrected=True).fit(X, y)
    train, out = next(cf.HoldOut(0.25).split(X))
    expected = cf.Ridge(alpha=model.best_params_["alpha"]).fit(X[train], y[train]).score(X[out], y[out])
    assert model.best_score_ == pytest.approx(expected)
    assert model.corrected_score_.low is not None
    board = cf.leaderboard({"ridge": cf.Ridge()}, X, y, cv=cf.HoldOut(0.25))
    assert board.n_splits == 1


@pytest.mark.parametrize("share", [0, 1, 1.5, True, "half"])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ValueError, match="between 0 and 1"):
        cf.HoldOut(share)


def test_groups_cannot_be_stratified_too():
    with pytest.raises(ValueError, match="groups together"):
        next(cf.HoldOut(0.5, stratify=True).split(np.zeros((4, 1)), [0, 1, 0, 1], [0, 0, 1, 1]))


def written(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


def table(target, changed=()):
    rng = np.random.default_rng(5)
    X, level = rng.normal(size=(120, 2)), rng.choice(["p", "q", "r"], 120)
    noise = rng.normal(size=120)
    y = X[:, 0] + noise
    rows = []
    for i in range(120):
        a, b = (9e3 + i, -7.0) if i in changed else X[i]
        label = y[i] if target == "number" else "yes" if y[i] > 0 else "no"
        rows.append([a, b, "only here" if i in changed else level[i], label])
    return [["a", "b", "level", "y"], *rows]


@pytest.mark.parametrize("target", ["number", "class"])
@pytest.mark.slow
def test_changing_the_rows_set_aside_leaves_every_bit_of_the_model(tmp_path, target):
    labels = [row[-1] for row in table(target)[1:]]
    holdout = cf.HoldOut(0.25, stratify=target == "class")
    out = next(holdout.split(np.zeros((120, 1)), None if target == "number" else labels))[1]
    kind, results = "ridge" if target == "number" else "logistic", []
    for name, changed in (("one", ()), ("two", set(out.tolist()))):
        written(tmp_path / f"{name}.csv", table(target, changed))
        arguments = [
            "fit",
            str(tmp_path / f"{name}.csv"),
            "-t",
            "y",
            "-o",
            str(tmp_path / name),
            "--holdout",
            "0.25",
            "-q",
        ]
        assert CliRunner().invoke(main, [*arguments, "--cv", "3", "--model", kind]).exit_code == 0
        results.append(json.loads((tmp_path / name / "report.json").read_text(encoding="utf-8")))
    first, second = results
    one, two = (safetensors.numpy.load_file(tmp_path / name / "model.certifit") for name in ("one", "two"))
    assert {name: array.tobytes() for name, array in one.items()} == {
        name: array.tobytes() for name, array in two.items()
    }
    assert first["validation"]["rows"] == second["validation"]["rows"]
    assert first["validation"]["choice"] == second["validation"]["choice"]
    assert first["data"]["n_rows"] == 120 - len(out)
    assert first["validation"]["holdout"]["n_rows"] == len(out)
    assert first["validation"]["holdout"]["value"] != second["validation"]["holdout"]["value"]
    assert first["validation"]["sentences"][0].startswith(f"On {len(out)} rows set aside")
    assert first["answer"][0] == first["validation"]["sentences"][0]
    if target == "class":
        assert first["validation"]["holdout"]["method"] == "Clopper-Pearson"


@pytest.mark.slow
def test_groups_and_weights_with_rows_set_aside(tmp_path):
    rows = table("number")
    rows = [[*row, "g" if i == 0 else (i - 1) // 4, "w" if i == 0 else 1 + i % 2] for i, row in enumerate(rows)]
    written(tmp_path / "data.csv", rows)
    arguments = ["fit", str(tmp_path / "data.csv"), "-t", "y", "-o", str(tmp_path / "out"), "--holdout", "0.2", "-q"]
    assert CliRunner().invoke(main, [*arguments, "--group", "g", "--weight", "w", "--cv", "3"]).exit_code == 0
    facts = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))["validation"]["holdout"]
    assert facts["n_rows"] == 24
    groups = np.array([row[-2] for row in rows[1:]])
    out = next(cf.HoldOut(0.2).split(np.zeros((120, 1)), None, groups))[1]
    weight, y = (np.array([float(row[k]) for row in rows[1:]])[out] for k in (-1, 3))
    centre = np.average(y, weights=weight)
    assert facts["baseline"] == pytest.approx(np.sqrt(np.average((y - centre) ** 2, weights=weight)))
