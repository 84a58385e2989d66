"""`verify` and `predict` on the files that people have, with a model that was fitted to another one of them."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import certifit as cf
from benchmarks.awkward import FILES, _plain
from certifit.cli import main
from certifit.maps import TableEncoder

BY_NAME = {file.name: file for file in FILES}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Models of the plain file and of two that are written otherwise, and the predictions of the first."""
    folder = tmp_path_factory.mktemp("models")
    _plain(folder / "plain.csv")
    for name in ("comma.csv", "day_first.csv"):
        BY_NAME[name].write(folder / name)
    for name in ("plain.csv", "comma.csv", "day_first.csv"):
        model = cf.LinearRegression(encoder=TableEncoder()).fit(cf.scan_csv(folder / name, target="price"))
        cf.save(model, folder / f"{name}.certifit")
    return folder


def predicted(path):
    return np.array(Path(path).read_text().splitlines()[1:], dtype=float)


@pytest.mark.parametrize(
    ("fitted", "read"),
    [
        ("plain.csv", "comma.csv"), ("plain.csv", "wide.csv"), ("plain.csv", "spaces.csv"), ("plain.csv", "folder"),
        ("plain.csv", "book.xlsx"), ("plain.csv", "rows.jsonl"), ("plain.csv", "rows.feather"),
        ("plain.csv", "month_first.csv"),
        ("comma.csv", "plain.csv"), ("comma.csv", "book.xlsx"), ("comma.csv", "rows.jsonl"),
        ("day_first.csv", "plain.csv"), ("day_first.csv", "month_first.csv"), ("day_first.csv", "rows.feather"),
    ],
)  # fmt: skip
def test_rows_written_otherwise_are_the_same_rows(cli, models, tmp_path, fitted, read):
    model = str(models / f"{fitted}.certifit")
    if read in BY_NAME:
        BY_NAME[read].write(tmp_path / read)
    else:
        _plain(tmp_path / read)
    result = cli("verify", model, read)
    assert result.exit_code == 0, result.output
    assert "is the best fit to" in result.stdout and "240 rows" in result.stdout
    result = cli("predict", model, read, "--out", "p.csv")
    assert result.exit_code == 0, result.output
    original = cf.load(model)
    assert predicted("p.csv") == pytest.approx(original.predict(cf.scan_csv(models / fitted, target="price")))


def test_names_of_folders_are_columns_of_new_rows_too(cli, tmp_path):
    BY_NAME["hive"].write(tmp_path / "hive")
    source = cf.scan_parquet(tmp_path / "hive", target="price")
    cf.save(cf.LinearRegression(encoder=TableEncoder()).fit(source), tmp_path / "m.certifit")
    assert cli("verify", "m.certifit", "hive").exit_code == 0
    result = cli("predict", "m.certifit", "hive", "-o", "p.csv")
    assert result.exit_code == 0, result.output
    assert len(predicted("p.csv")) == 240


def test_what_was_made_of_a_file_is_said_by_predict_and_verify_too(cli, models, tmp_path):
    BY_NAME["comments.csv"].write(tmp_path / "comments.csv")
    BY_NAME["gaps.csv"].write(tmp_path / "gaps.csv")
    model = str(models / "plain.csv.certifit")
    said = cli("predict", model, "comments.csv", "-o", "p.csv").stderr
    assert "Note: The first 3 lines of 'comments.csv' are no rows and were left out." in said
    assert "Note" not in cli("predict", model, "comments.csv", "-o", "p.csv", "-q").stderr
    result = cli("verify", model, "gaps.csv")
    assert (
        result.exit_code == 1 and "24 of 240 rows were left out: the target 'price' is missing there" in result.stderr
    )


def test_one_class_of_many_spellings_is_warned_of_first_and_read_as_one_where_asked(cli, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=120).round(2)
    spellings = ["Cured", "cured", "CURED ", "Ill", "ill", "ILL"]
    lines = [f"{value},{spellings[3 * (value > 0) + k % 3]}" for k, value in enumerate(x)]
    (tmp_path / "t.csv").write_text("x,state\n" + "\n".join(lines) + "\n")
    result = cli("fit", "t.csv", "-t", "state", "--model", "gaussian-nb", "-o", "six")
    assert result.stderr.startswith("Warning: Labels differ only by capitals or spaces, so 'state' has 6 classes")
    assert "To read them as one: --types state=lower-case." in result.stderr
    assert result.stdout.startswith("Warning: One class is spelt in several ways in state.")
    page = Path("six/report.html").read_text()
    first_screen = page[page.index("What should I worry about?") :]
    assert "One class is spelt in several ways" in first_screen[:400]
    result = cli("fit", "t.csv", "-t", "state", "--model", "gaussian-nb", "-o", "no_folds", "--cv", "0")
    assert result.stderr.count("Labels differ only by capitals or spaces") == 1
    page = Path("no_folds/report.html").read_text()
    first_screen = page[page.index("What should I worry about?") :]
    assert "One class is spelt in several ways" in first_screen[:400]
    cured = ("--types", "state=lower-case")
    result = cli("fit", "t.csv", "-t", "state", "--model", "gaussian-nb", "-o", "two", *cured)
    assert "spelt" not in result.output and "Labels differ" not in result.output
    assert cf.load("two/model.certifit").classes_.tolist() == ["cured", "ill"]
    assert cli("verify", "two/model.certifit", "t.csv", *cured).exit_code == 0
    result = cli("verify", "two/model.certifit", "t.csv")
    assert result.exit_code == 2 and "If --types was given to the fit, give it here too." in result.stderr


def test_standard_input_is_read_by_every_command_with_rows(models):
    model, rows = str(models / "plain.csv.certifit"), (models / "plain.csv").read_bytes()
    assert CliRunner().invoke(main, ["verify", model, "-"], input=rows).exit_code == 0
    result = CliRunner().invoke(main, ["predict", model, "-", "--out", "-"], input=rows)
    assert result.exit_code == 0 and len(result.stdout.splitlines()) == 241


def test_codes_are_compared_as_quantities_and_as_codes(cli, tmp_path):
    BY_NAME["codes.csv"].write(tmp_path / "codes.csv")
    result = cli("fit", "codes.csv", "-t", "price", "--columns", "area,district", "-o", "out")
    said = " ".join(result.output.split())
    assert "compared both as quantities and as codes (one coefficient per value): 'district' (4 values)" in said
    assert "* least squares on codes" in result.stdout and "district, 4 levels" in result.stdout
    # Predicted against actual is drawn from folds that did not see the row.
    assert json.loads(Path("out/report.json").read_text())["pictures"]["fit"]["is_new"] is True
