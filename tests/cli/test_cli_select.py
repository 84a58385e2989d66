"""certifit select: the same selection as the library's, the files, the report."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import certifit as cf
from certifit.maps import TableEncoder
from certifit.report import folder
from certifit.selection.compare.leaderboard_table import RMSE
from certifit.selection.features.wrappers import BackwardSelection, ForwardSelection

FILES = {"model.certifit", "report.html", "report.json", "MODEL_CARD.md", "coefficients.csv", "selection.csv"}
OURS = FILES | {"pictures"}
WRAPPERS = {"forward": ForwardSelection, "backward": BackwardSelection}


@pytest.fixture
def table(tmp_path, monkeypatch):
    """rows.csv: y from x and city; noise, z, code and gaps say nothing."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    n_rows = 150
    city = rng.choice(["Bern", "Oslo", "Rome"], n_rows)
    x, z, noise = rng.normal(size=(3, n_rows)).round(5)
    gaps = ["" if k % 11 == 3 else f"{value:.3f}" for k, value in enumerate(rng.normal(size=n_rows))]
    y = (2 * x + 3 * (city == "Rome") + 0.5 * rng.normal(size=n_rows)).round(5)
    columns = {"z": z, "x": x, "noise": noise, "city": city, "gaps": gaps, "code": rng.integers(1, 4, n_rows)}
    lines = [",".join([*columns, "who", "y"])]
    who = [f"p{k // 3}" for k in range(n_rows)]
    lines += [",".join(map(str, row)) for row in zip(*columns.values(), who, y, strict=True)]
    Path("rows.csv").write_text("\n".join(lines) + "\n")
    return "rows.csv"


def context_of(name="out"):
    return json.loads(Path(name, "report.json").read_text())


@pytest.mark.parametrize(
    ("options", "wanted", "direction"),
    [
        ([], "best", "forward"),
        (["--features", "parsimonious"], "parsimonious", "forward"),
        (["--features", "2"], 2, "forward"),
        (["--direction", "backward", "--features", "1:3"], (1, 3), "backward"),
        (["--direction", "backward", "--features", "best"], "best", "backward"),
    ],
    ids=str,
)
def test_the_selection_is_that_of_the_library(cli, table, options, wanted, direction):
    result = cli("select", table, "-t", "y", "-o", "out", "--group", "who", "--cv", "5", *options)
    assert result.exit_code == 0, result.output
    source = cf.scan_csv(table, target="y", group="who")
    model = cf.LinearRegression(encoder=TableEncoder())
    selector = WRAPPERS[direction](model, wanted, cv=5, scoring=RMSE).fit(source)
    saved = cf.load("out/model.certifit")
    assert list(saved.feature_names_in_) == selector.selected_features_
    assert saved.coef_.tobytes() == selector.estimator_.coef_.tobytes()
    steps = context_of()["selection"]["steps"]
    assert [step["error"] for step in steps] == [-step.mean_score for step in selector.steps_]
    assert {path.name for path in Path("out").iterdir()} == OURS
    assert f"{len(selector.selected_features_)} column" in result.stdout and result.stderr == ""
    assert cli("verify", "out/model.certifit", table).exit_code == 0
    assert cli("predict", "out/model.certifit", table, "-o", "p.csv").exit_code == 0


def test_levels_of_a_category_go_together_and_what_matters_is_found(cli, table):
    result = cli("select", table, "-t", "y", "-o", "out", "--features", "2", "--columns", "z,x,noise,city,gaps,code")
    assert result.exit_code == 0, result.output
    assert context_of()["selection"]["features"] == ["x", "city"]
    assert [name for name in cf.load("out/model.certifit").column_names_] == ["x", "city=Oslo", "city=Rome"]
    assert "2 columns chosen: x and city." in result.stdout


def test_the_table_of_steps_has_every_digit_and_marks_the_choice(cli, table):
    cli("select", table, "-t", "y", "-o", "out", "--group", "who", "--cv", "4")
    with open("out/selection.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    selection = context_of()["selection"]
    assert [int(row["n_features"]) for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [float(row["error"]) for row in rows] == [step["error"] for step in selection["steps"]]
    assert [row["chosen"] for row in rows].index("yes") == selection["chosen"]
    assert rows[selection["chosen"]]["features"].split(" | ") == selection["features"]
    assert np.mean([float(rows[0][f"fold_{k}"]) for k in range(1, 5)]) == pytest.approx(float(rows[0]["error"]))


def test_fixed_columns_are_in_from_the_start(cli, table):
    result = cli("select", table, "-t", "y", "-o", "out", "--fixed", "noise,code", "--features", "3", "--group", "who")
    assert result.exit_code == 0, result.output
    assert context_of()["selection"]["features"] == ["x", "noise", "code"]
    assert "fixed columns" in result.stdout


def test_ridge_takes_its_alpha(cli, table):
    options = ["--model", "ridge", "--alpha", "0.2", "--features", "2", "--group", "who"]
    assert cli("select", table, "-t", "y", "-o", "out", *options).exit_code == 0
    assert cf.load("out/model.certifit").alpha_ == 0.2


def test_the_leaderboard_compares_the_choice_with_all_columns_and_warns_of_the_same_folds(cli, table):
    result = cli("select", table, "-t", "y", "-o", "out", "--features", "2", "--group", "who")
    validation = context_of()["validation"]
    assert {row["name"] for row in validation["rows"]} == {"2 chosen columns", "all columns", "mean of y"}
    assert validation["chosen"] == "2 chosen columns"
    assert "The same folds chose the columns" in result.stdout
    assert "The same rows chose the columns" in result.stdout  # p-values look surer than they are


def test_a_fit_after_a_selection_leaves_no_old_table_of_steps(cli, table):
    cli("select", table, "-t", "y", "-o", "out", "--features", "1")
    result = cli("fit", table, "-t", "y", "-o", "out", "--group", "who", "--cv", "0")
    assert "Replaced the earlier fit" in result.stdout
    assert {path.name for path in Path("out").iterdir()} == OURS - {"selection.csv"}


def test_a_table_of_steps_that_is_not_ours_is_refused(cli, table):
    Path("out").mkdir()
    Path("out/selection.csv").write_text("precious")
    result = cli("select", table, "-t", "y", "-o", "out")
    assert result.exit_code == 2 and "selection.csv" in result.stderr
    assert Path("out/selection.csv").read_text() == "precious"


def test_few_rows(cli, tmp_path):
    Path("few.csv").write_text("a,b,y\n1,2,3\n2,1,5\n3,3,4\n")
    result = cli("select", "few.csv", "-t", "y", "-o", "out")
    assert result.exit_code == 2 and "Folds need 4 rows" in result.stderr
    Path("few.csv").write_text("a,b,y\n1,2,3\n2,1,5\n3,3,4\n4,0,9\n5,1,8\n")
    result = cli("select", "few.csv", "-t", "y", "-o", "out")
    assert result.exit_code == 0 and "2 folds instead of 10" in result.stdout


def test_a_selection_that_needs_refits_says_so_first(cli, tmp_path):
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(300)]
    lines = [",".join([*names, "y"]), *(",".join(map(str, row)) for row in rng.normal(size=(8, 301)).round(2))]
    Path("wide.csv").write_text("\n".join(lines))
    fixed = ",".join(names[:299])
    result = cli("select", "wide.csv", "-t", "y", "-o", "out", "--cv", "2", "--features", "299", "--fixed", fixed)
    assert result.exit_code == 0, result.output
    assert "every subset is refitted" in result.stderr
    assert len(context_of()["selection"]["features"]) == 299


def test_hostile_names_are_harmless(cli, tmp_path):
    names = ["=cmd|'!A0", "<script>alert(1)</script>", "\x1b[31mred"]
    rng = np.random.default_rng(0)
    lines = [",".join([*names, "y"]), *(",".join(map(repr, row)) for row in rng.normal(size=(30, 4)).tolist())]
    Path("h.csv").write_text("\n".join(lines))
    result = cli("select", "h.csv", "-t", "y", "-o", "out", "--features", "3", "--cv", "3")
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    for name in ("report.html", "selection.csv", "report.json"):
        assert b"\x1b" not in Path("out", name).read_bytes()
    assert "<script" not in Path("out/report.html").read_text()
    with open("out/selection.csv", newline="") as file:
        assert not any(cell.lstrip()[:1] in ("=", "+", "@") for row in csv.reader(file) for cell in row)


def test_quiet_says_nothing(cli, table):
    assert cli("select", table, "-t", "y", "-o", "out", "--features", "1", "-q", "--group", "who").output == ""


def test_the_folder_knows_its_files():
    assert set(folder.FILES) == FILES | {"deciding.csv"} == set(folder.MARKS)
