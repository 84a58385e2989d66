"""What the command line prints, and what its reports advise, names options of the shell and no parameters of Python."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from certifit import cli
from certifit.cli import words
from certifit.cli.fit import _say_if_long
from certifit.models.table import LEARNERS
from certifit.report.shell import as_options

# Names that no sentence for a person has: parameters of models and of the encoder that are written with an underscore.
PARAMETERS = {name for learner in LEARNERS.values() for name in learner.params if "_" in name}
PARAMETERS |= {"max_levels", "min_count", "bad_rows", "least_fall", "class_weight"}
NAMES = re.compile(rf"(?<![\w-])(?:{'|'.join(sorted(PARAMETERS))})\b")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    cells = [f"a{i},n{i % 40},{'pq'[i % 2]},{rng.normal():.3f},{rng.normal():.3f}" for i in range(120)]
    path = tmp_path_factory.mktemp("shell") / "table.csv"
    path.write_text("id,name,g,x,y\n" + "\n".join(cells) + "\n")
    return path


CASES = {
    "too many levels": ["--model", "linear", "--max-levels", "5"],
    "rare levels": ["--model", "linear", "--min-count", "50"],
    "a network that is stopped": ["--model", "regression-network", "--max-iter", "2"],
    "steps that are not enough": ["--model", "huber", "--max-iter", "1"],
}


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_no_parameter_of_python_is_advised(table, tmp_path, options):
    args = ["fit", str(table), "-t", "y", "--cv", "0", "-o", str(tmp_path / "out"), *options]
    result = CliRunner().invoke(cli.main, args)
    assert result.exit_code in (0, 1), result.output
    assert not NAMES.search(result.output)
    context = json.loads((tmp_path / "out" / "report.json").read_text())
    sentences = [*context["data"]["notes"], *context["certificate"]["sentences"]]
    sentences += [column["reason"] or "" for column in context["data"]["columns"]]
    sentences += [context["certificate"]["remedy"] or "", context["certificate"]["fault"] or ""]
    assert [one for one in sentences if NAMES.search(one)] == []


def test_a_column_that_was_set_aside_names_the_option_that_keeps_it(table, tmp_path):
    args = ["fit", str(table), "-t", "y", "--cv", "0", "-o", str(tmp_path / "out"), *CASES["too many levels"]]
    CliRunner().invoke(cli.main, args)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Raise --max-levels to keep it" in page


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Raise max_iter, or tol to 1e-04.", "Raise --max-iter, or --tol to 1e-04."),
        ("read fewer columns (columns=).", "read fewer columns (--columns)."),
        ("Use copies='anywhere' with groups.", "Use --copies anywhere with groups."),
        ("raise max_iter, or least_fall.", "raise --max-iter."),
        ("types['day'] must be one of 'date'.", "--types day=KIND: KIND must be one of 'date'."),
        ("keep it: types={'day': 'text'}.", "keep it: --types day=text."),
        ("keep it: types={'sale day': 'text'}.", "keep it: --types 'sale day=text'."),
        ("of each; redundant='drop' leaves the last one out.", "of each."),
    ],
)
def test_sentences_of_the_library_become_those_of_the_shell(said, shown):
    assert as_options(said) == shown


def test_iterations_are_refused_for_a_model_without_them(table, tmp_path):
    args = ["fit", str(table), "-t", "g", "--model", "discriminant", "--max-iter", "3", "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(cli.main, args)
    assert result.exit_code == 2 and "--max-iter is of models that take steps" in result.output


def test_help_lists_options_alone():
    assert "DATA...\n" not in CliRunner().invoke(cli.main, ["fit", "--help"]).output.partition("What is fitted")[2]


@pytest.mark.parametrize(
    ("share", "measure", "head"),
    [
        ("R²", "root mean squared error", ["error", "+-", "R2"]),
        ("Explained", "mean Poisson deviance", ["deviance", "+-", "explained"]),
        ("Explained", "mean pinball loss", ["error", "+-", "explained"]),
    ],
)
def test_the_table_of_models_is_headed_by_what_they_were_scored_by(share, measure, head):
    """Whatever model is taken: boosting of counts is scored by the deviance too."""
    row = {"name": "boosting", "is_chosen": True, "params": {}, "error": 1.5, "standard_error": 0.2, "r2": 0.5}
    row["is_baseline"] = False
    facts = {"rows": [row], "share": share, "measure": measure, "group": None, "n_splits": 10}
    context = {"classes": None, "validation": facts, "model": {"target": "n"}, "quality": None, "deviance": None}
    assert words._leaderboard(context)[2].split() == head


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--delimiter", ";"], "--delimiter is for CSV"), (["--na", "?"], "--na is for CSV"),
        (["--no-header"], "--no-header is for CSV"), (["--types", "x=flag"], "--types x=flag"),
    ],
)  # fmt: skip
def test_options_for_csv_are_refused_where_files_carry_their_types(tmp_path, options, said):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"x": 1, "y": 2}\n{"x": 2, "y": 5}\n')
    result = CliRunner().invoke(cli.main, ["fit", str(path), "--target", "y", "--out", str(tmp_path / "o"), *options])
    assert result.exit_code == 2 and said in result.output


def test_a_json_array_is_told_from_json_lines(tmp_path):
    path = tmp_path / "rows.json"
    path.write_text('[{"x": 1, "y": 2}, {"x": 2, "y": 5}]')
    result = CliRunner().invoke(cli.main, ["fit", str(path), "--target", "y"])
    assert result.exit_code == 2 and "is one JSON array" in result.output


def test_without_a_target_the_columns_are_named(tmp_path):
    (tmp_path / "rows.csv").write_text("size,price\n1,2\n2,5\n")
    result = CliRunner().invoke(cli.main, ["fit", str(tmp_path / "rows.csv")])
    assert result.exit_code == 2 and "--target" in result.output and "'size', 'price'" in result.output


@pytest.mark.parametrize(
    ("n_rows", "kind", "says"), [(20_640, "local", True), (2_000, "local", False), (20_640, "auto", False)]
)
def test_a_model_that_takes_minutes_says_so_before_it_begins(n_rows, kind, says, capsys):
    rows = SimpleNamespace(n_rows=n_rows, n_features=9)
    _say_if_long(SimpleNamespace(kind=kind), SimpleNamespace(kinds=["local"], rows=rows))
    said = capsys.readouterr().err
    assert ("local regression on 20,640 rows is expected to take some 2 minutes" in said) == says and bool(said) == says


def test_a_row_of_sums_and_levels_alike_are_told(tmp_path):
    path = tmp_path / "t.csv"
    cells = [f"{['north', 'North', 'south'][i % 3]},{i},{2 * i + i % 2}" for i in range(30)]
    path.write_text("\n".join(["place,x,y", *cells, "Total,435,885"]) + "\n")
    done = CliRunner().invoke(
        cli.main, ["fit", str(path), "-t", "y", "--model", "linear", "--cv", "0", "-o", str(tmp_path / "o")]
    )
    said = " ".join(done.output.split())
    assert "'place': one row is named as sums are (total, mean)" in said and "Total" not in said
    assert "One level differs from another in capitals or spaces alone" in said
