import os
import stat
from pathlib import Path

import pytest

from certifit.cli.paths import _standard_input


def one_line(result):
    assert result.exit_code == 2, result.output
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert "Traceback" not in lines[0] and lines[0].startswith("certifit")
    return lines[0]


def test_an_unknown_target_lists_near_names_and_the_columns(cli, tmp_path):
    (tmp_path / "h.csv").write_text("price,area,rooms\n1,2,3\n2,3,5\n")
    line = one_line(cli("fit", "h.csv", "--target", "prise", "--out", "out"))
    assert "Did you mean 'price'" in line and "'rooms'" in line
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,y\n" + 11 * "1,2\n2,3.5\n" + "1,x\n", "line 24: column 'y' is 'x', not a number"),
        ("a,y\n1,\n2,\n", "'y', the target, is missing in every row"),
        ("a,a,y\n1,2,3\n", "more than one column"),
        ("a,y\n1,2\n1\n", "line 3: 1 cell, but the header has 2"),
        ("y\n1\n2\n", "no column beside 'y'"),
        ("a,y\n1,2\n1,inf\n", "infinite at line 3"),
    ],
)
def test_bad_cells_are_named(cli, tmp_path, content, words):
    (tmp_path / "bad.csv").write_text(content)
    assert words in one_line(cli("fit", "bad.csv", "-t", "y", "-o", "out", "--show-values"))
    assert not Path("out").exists()


def test_a_header_without_rows(cli, tmp_path):
    (tmp_path / "head.csv").write_text("a,y\n")
    assert "rows" in one_line(cli("fit", "head.csv", "-t", "y", "-o", "out"))


@pytest.mark.parametrize("target", ["loop.csv", "nowhere.csv"])
def test_a_link_to_nothing_is_told(cli, data, target):
    os.symlink(target, "loop.csv")
    assert "'loop.csv' is a link to nothing" in one_line(cli("fit", "loop.csv", "-t", "y", "-o", "out"))
    assert "loop.csv' is a link to nothing" in one_line(cli("fit", data, "-t", "y", "-o", "loop.csv"))


def test_names_that_no_model_file_has_room_for_are_refused_before_a_row_is_read(cli):
    names = [f"column{k}" for k in range(100_000)]
    Path("wide.csv").write_text(",".join([*names, "y"]) + "\nno row of so many cells\n")
    line = one_line(cli("fit", "wide.csv", "-t", "y", "-o", "out"))
    assert "The names of 100,001 columns take 1," in line and "--columns" in line and not Path("out").exists()


def test_more_columns_than_memory_has_room_for_are_refused_before_a_row_is_read(cli, monkeypatch):
    monkeypatch.setattr("certifit.runtime._quarter_of_memory", lambda: 100_000_000)
    Path("wide.csv").write_text(",".join([*(f"c{k}" for k in range(3_000)), "y"]) + "\nno row of so many cells\n")
    line = one_line(cli("fit", "wide.csv", "-t", "y", "-o", "out"))
    assert "A report on 3,001 columns needs 135 MB of memory, limit 100 MB. Name fewer of them with --columns." in line
    assert "certifit.memory" not in line and not Path("out").exists()


def test_a_file_that_is_no_model_tells_nothing_of_its_bytes(cli, data):
    Path("secret.csv").write_text("Xanadu77,b\n1,2\n")
    line = one_line(cli("inspect", "secret.csv"))
    assert "announces a header" in line and str(int.from_bytes(b"Xanadu77", "little")) not in line


@pytest.mark.parametrize(("weight", "words"), [("0", "No row has a weight above 0"), ("1e308", "or the weights")])
def test_weights_that_make_no_fit_are_named_as_the_reason(cli, data, weight, words):
    lines = [line.split(",") for line in Path(data).read_text().splitlines()]
    Path("weighted.csv").write_text("\n".join(",".join([*c, weight if k else "w"]) for k, c in enumerate(lines)) + "\n")
    assert words in one_line(cli("fit", "weighted.csv", "-t", "y", "-o", "out", "--cv", "3", "--weight", "w"))


@pytest.mark.parametrize("encoding", ["nonsense", "base64", "idna", "punycode", "unicode_escape"])
def test_an_encoding_that_is_none_of_text_is_refused(cli, data, encoding):
    line = one_line(cli("fit", data, "-t", "y", "-o", "out", "--encoding", encoding))
    assert "encoding must be the name of one for text in lines" in line and encoding in line


def test_a_name_that_ends_as_a_compressed_file_is_named_where_it_is_none(cli, tmp_path):
    (tmp_path / "plain.csv.gz").write_text("a,y\n1,2\n2,3\n")
    line = one_line(cli("fit", "plain.csv.gz", "-t", "y", "-o", "out"))
    assert "'plain.csv.gz' is not a readable CSV file" in line and "rename it" in line


def test_files_that_are_not_there_are_guessed(cli, data):
    assert "Did you mean 'data.csv'?" in one_line(cli("fit", "dta.csv", "-t", "y", "-o", "out"))
    assert "is a folder" in one_line(cli("predict", ".", data))
    (data.parent / "none").mkdir()
    assert "has no file that ends in" in one_line(cli("fit", "none", "-t", "y", "-o", "out"))
    assert "No file matches" in one_line(cli("fit", "x*.csv", "-t", "y", "-o", "out"))
    assert "there is no file 'm'" in one_line(cli("predict", "m", data))


def test_a_folder_that_cannot_be_listed_is_no_empty_one(cli, data, monkeypatch):
    """Not of fewer rows either, where the folder lies in another."""
    folder = data.parent / "all"
    (folder / "locked").mkdir(parents=True)
    (folder / "a.csv").write_bytes(data.read_bytes())
    scandir = os.scandir

    def denied(place):
        if Path(os.fspath(place)).name == "locked":
            raise PermissionError(13, "Permission denied", os.fspath(place))
        return scandir(place)

    monkeypatch.setattr(os, "scandir", denied)
    for path in ("all/locked", "all"):
        line = one_line(cli("fit", path, "-t", "y", "-o", "out"))
        assert "Permission denied: 'all/locked'" in line


def test_a_closed_standard_input_is_named(cli, data, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(ValueError, match="standard input is closed"):
        _standard_input()


def test_a_file_of_blanks_has_no_columns(cli, tmp_path):
    (tmp_path / "blank.csv").write_text("   ")
    line = one_line(cli("fit", "blank.csv", "-t", "y", "-o", "out"))
    assert "has no column 'y'. It has no other column." in line


@pytest.mark.parametrize("task", ["auto", "quantity", "classes"])
def test_dates_to_predict_are_refused_with_a_way_out(cli, tmp_path, task):
    (tmp_path / "d.csv").write_text("a,y\n" + "".join(f"{k},2024-01-{k + 1:02d}\n" for k in range(28)))
    line = one_line(cli("fit", "d.csv", "-t", "y", "-o", "out", "--task", task))
    assert "Column 'y' holds dates or times" in line and "Make " in line
    line = one_line(cli("fit", "d.csv", "-t", "y", "-o", "out", "--types", "y=text", "--model", "linear"))
    assert "must be numbers. For labels: --task classes." in line


def test_an_exposure_of_what_is_no_count_says_what_the_target_was_taken_for(cli, tmp_path):
    (tmp_path / "e.csv").write_text("a,e,y\n" + "".join(f"{k},1,{k % 3 - 1}\n" for k in range(40)))
    line = one_line(cli("fit", "e.csv", "-t", "y", "-o", "out", "--exposure", "e"))
    assert "and the target is a quantity" in line


def test_an_empty_file_and_a_pipe(cli, tmp_path):
    (tmp_path / "empty.csv").write_text("")
    assert "is empty" in one_line(cli("fit", "empty.csv", "-t", "y", "-o", "out"))
    os.mkfifo("pipe.csv")
    assert stat.S_ISFIFO(os.stat("pipe.csv").st_mode)
    assert "read more than once" in one_line(cli("fit", "pipe.csv", "-t", "y", "-o", "out"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--alpha", "1"], "--model ridge"),
        (["--model", "ridge", "--alpha", "-1"], "alpha must be"),
        (["--degree", "0"], "--degree"),
        (["--degree", "two"], "--degree"),
        (["--tol", "-1"], "tol must be"),
        (["--columns", "a,zz"], "no column 'zz'"),
        (["--columns", "a,y"], "at once"),
        (["--drop", "a,zz"], "no column 'zz'"),
        (["--drop", "y"], "'y' is the target"),
        (["--drop", "a", "--columns", "b"], "Use one of them"),
        (["--drop", "a,b"], "no column to fit from"),
        (["--weight", "nope"], "no column 'nope'"),
        (["--no-intercept", "--degree", "2"], "--no-intercept"),
        (["--modle", "ridge"], "--model"),
        (["--model", "oak"], "linear"),
        (["--model", "ridge", "--rule", "2se"], "1se"),
        (["--cv", "1"], "2 or more"),
        (["--cv", "-1"], "--cv"),
        (["--group", "nope"], "no column 'nope'"),
        (["--group", "y"], "the target and the group at once"),
        (["--bad-rows", "-1"], "--bad-rows"),
        (["--max-levels", "1"], "--max-levels"),
        (["--min-count", "0"], "--min-count"),
        (["--unseen", "guess"], "reference"),
        (["--reference", "a"], "COLUMN=LEVEL"),
        (["--reference", "zz=1"], "no column 'zz'"),
        (["--reference", "a=1"], "must name columns of levels"),
        (["--categories", "zz"], "zz"),
        (["--types", "a"], "COLUMN=KIND"),
        (["--types", "a=colour"], "--types a=KIND: KIND must be one of 'number'"),
        (["--types", "a=text,a=number"], "--types names 'a' more than once"),
        (["--types", "zz=text"], "no column 'zz'"),
        (["--holdout", "nan"], "--holdout must be a share of the rows"),
        (["--holdout", "0.001"], "--holdout 0.001 of 120 rows leaves none held out"),
    ],
)
def test_bad_options_say_what_is_legal(cli, data, options, words):
    assert words in one_line(cli("fit", data, "-t", "y", "-o", "out", *options))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--features", "0"], "LO:HI"),
        (["--features", "2:1"], "LO <= HI"),
        (["--features", "some"], "parsimonious"),
        (["--features", "3"], "--features 3, but there are 2"),
        (["--features", "1:9"], "--features 1:9, but there are 2"),
        (["--fixed", "zz"], "--fixed: the data has no column 'zz'"),
        (["--fixed", "a,b", "--features", "1"], "2 features are fixed"),
        (["--cv", "0"], "errors on folds"),
        (["--alpha", "1"], "--model ridge"),
        (["--direction", "sideways"], "backward"),
        (["--degree", "2"], "--degree"),
    ],
)
def test_bad_options_of_a_selection_say_what_is_legal(cli, data, options, words):
    assert words in one_line(cli("select", data, "-t", "y", "-o", "out", *options))
    assert not Path("out").exists()


def test_a_mistyped_command_is_guessed(cli):
    assert "Did you mean 'fit'" in one_line(cli("fti"))


def test_escape_codes_in_a_file_never_reach_the_terminal(cli, tmp_path):
    (tmp_path / "e.csv").write_text("a\x1b[31m,b\n1,2\n")
    result = cli("fit", "e.csv", "-t", "y", "-o", "out")
    assert "\x1b" not in result.output
    result = cli("fit", "e\x1b[31m.csv", "-t", "y", "-o", "out")
    assert "\x1b" not in result.output


def test_help_comes_in_groups_and_lists_every_option_once(cli):
    said = cli("fit", "--help").output
    assert "--help" in said.partition("What is printed:")[2] and "--no-spill" in said.partition("files are read:")[2]
    assert "--no-spill" not in said.partition("Parameters of models:")[2]
    titles = ["What is fitted:", "How good it is on new rows:", "How columns are read:", "How files are read:"]
    titles += ["Models of a quantity:", "Models of counts:", "Models of a positive quantity:", "Models of classes:"]
    assert "\n  poisson *" in said and "Models of" not in cli("select", "--help").output
    assert [said.index(title) for title in titles] == sorted(said.index(title) for title in titles)
    assert said.count("\n  --no-header") == said.count("\n  --holdout") == said.count("\n  --max-depth") == 1


def test_without_out_the_folder_is_named_for_the_target(cli, data):
    result = cli("fit", data, "-t", "y", "--cv", "0", "--model", "linear", "--quiet")
    assert result.exit_code == 0 and (data.parent / "y" / "report.html").exists()


def test_a_file_whose_name_is_no_text_is_refused_in_words(cli):
    os.mkdir("folder")
    with open(b"folder/n\xff.csv", "w") as file:
        file.write("a,y\n1,2\n3,4\n")
    assert "n\\udcff.csv' is not UTF-8 text" in one_line(cli("fit", "folder", "-t", "y", "-o", "out"))
