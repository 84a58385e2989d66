import csv
import errno
import json
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest

import certifit as cf
from certifit.report import folder

OURS = {"model.certifit", "report.html", "report.json", "coefficients.csv", "MODEL_CARD.md", "pictures"}


def names(path):
    return {entry.name for entry in path.iterdir()}


def contents(path):
    return {entry.relative_to(path).as_posix(): entry.read_bytes() for entry in path.rglob("*") if entry.is_file()}


def test_fit_writes_its_files_and_says_what_it_found(cli, data):
    result = cli("fit", data, "--target", "y", "--out", "out")
    assert result.exit_code == 0
    out = data.parent / "out"
    assert names(out) == OURS
    assert "y from 2 columns, least squares, 120 rows" in result.stdout
    assert "R2" in result.stdout and "p-value" in result.stdout and "converged" in result.stdout
    assert "yes, proven" in result.stdout
    assert "out/report.html" in result.stdout
    assert result.stderr == ""
    assert not [name for name in names(data.parent) if name.startswith(".certifit")]


def test_the_saved_model_is_the_fit(cli, data, saved):
    source = cf.scan_csv(data, target="y")
    model = cf.LinearRegression().fit(source)
    again = cf.load(saved / "model.certifit")
    assert again.coef_.tobytes() == model.coef_.tobytes()
    assert again.target_name_ == "y"
    with open(saved / "coefficients.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == ["intercept", "a", "b"]
    assert [float(row["coefficient"]) for row in rows] == [model.intercept_, *model.coef_]
    assert [float(row["p_value"]) for row in rows] == model.inference_.p_values.tolist()
    context = json.loads((saved / "report.json").read_text())
    assert context["quality"]["r2"] == model.inference_.r_squared


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--model", "ridge", "--cv", "0"], cf.Ridge(standardize=True)),
        (["--model", "ridge", "--alpha", "0.5"], cf.Ridge(alpha=0.5, standardize=True)),
        (["--model", "linear"], cf.LinearRegression()),
        (["--cv", "0"], cf.LinearRegression()),
        (["--degree", "2"], cf.LinearRegression(basis=cf.Polynomial(2))),
        (["--no-intercept"], cf.LinearRegression(fit_intercept=False)),
    ],
)
def test_options_reach_the_model(cli, data, options, expected):
    result = cli("fit", data, "-t", "y", "-o", "out", *options)
    assert result.exit_code == 0, result.output
    model = cf.load(data.parent / "out" / "model.certifit")
    expected.fit(cf.scan_csv(data, target="y"))
    assert model.coef_.tobytes() == expected.coef_.tobytes()
    assert result.stderr == ""


def test_columns_to_leave_out(cli, data):
    path = data.parent / "weighted.csv"
    assert cli("fit", path, "-t", "y", "-o", "out", "--weight", "w", "--drop", "a", "--cv", "0").exit_code == 0
    assert list(cf.load("out/model.certifit").feature_names_in_) == ["b"]
    assert cli("verify", "out/model.certifit", path, "--weight", "w").exit_code == 0


def test_columns_and_weight(cli, data):
    path = data.parent / "weighted.csv"
    assert cli("fit", path, "-t", "y", "-o", "out", "--weight", "w", "--columns", "b, a").exit_code == 0
    model = cf.load(data.parent / "out" / "model.certifit")
    assert list(model.feature_names_in_) == ["b", "a"]
    assert model.data_["sum_weight"] == np.sum(np.arange(120) % 3 + 1)
    assert "--weight w" in (data.parent / "out" / "report.html").read_text()


def test_a_column_name_with_a_comma_can_be_given_in_quotes(cli, tmp_path):
    (tmp_path / "c.csv").write_text('"a,b",c,y\n1,2,3\n2,5,4\n4,1,9\n7,7,7\n')
    assert cli("fit", "c.csv", "-t", "y", "-o", "out", "--columns", '"a,b"').exit_code == 0
    assert list(cf.load(tmp_path / "out" / "model.certifit").feature_names_in_) == ["a,b"]


def test_dependent_columns_are_named_on_the_terminal_and_in_the_report(cli, data):
    result = cli("fit", data.parent / "dependent.csv", "-t", "y", "-o", "out")
    assert result.exit_code == 0
    assert "Warning: 1 column of 3" in result.stdout
    assert "do not determine the coefficients of a, b and d" in " ".join(result.stdout.split())
    assert "leave out one column" in result.stdout
    assert "repeats what others say" in (data.parent / "out" / "report.html").read_text()


def test_quiet_prints_warnings_only(cli, data):
    assert cli("fit", data, "-t", "y", "-o", "one", "--quiet").output == ""
    result = cli("fit", data.parent / "dependent.csv", "-t", "y", "-o", "two", "--quiet")
    assert result.stdout == ""
    assert result.stderr.startswith("Warning: 1 column of 3")


def test_a_fit_that_is_not_proven_exits_with_1_and_a_red_report(cli, data):
    result = cli("fit", data, "-t", "y", "-o", "out", "--tol", "1e-200")
    assert result.exit_code == 1
    assert "converged      NO" in result.stdout
    assert "did not converge" in result.stdout
    assert 'class="banner" role="alert"' in (data.parent / "out" / "report.html").read_text()


def test_a_second_fit_replaces_the_first_and_says_so(cli, data, saved):
    before = (saved / "model.certifit").read_bytes()
    (saved / "predictions.csv").write_text("mine")
    result = cli("fit", data, "-t", "a", "-o", "out")
    assert result.exit_code == 0
    assert "Replaced the earlier fit in out" in result.stdout
    assert (saved / "model.certifit").read_bytes() != before
    assert (saved / "predictions.csv").read_text() == "mine"
    assert names(saved) == OURS | {"predictions.csv"}


def test_an_empty_folder_is_taken_and_parents_are_made(cli, data):
    (data.parent / "empty").mkdir()
    assert cli("fit", data, "-t", "y", "-o", "empty").exit_code == 0
    assert cli("fit", data, "-t", "y", "-o", "deep/er/est").exit_code == 0
    assert names(data.parent / "deep" / "er" / "est") == OURS


@pytest.mark.parametrize("foreign", ["notes.txt", *sorted(OURS)])
def test_a_folder_of_other_files_is_refused_before_the_fit(cli, data, foreign, monkeypatch):
    out = data.parent / "theirs"
    out.mkdir()
    (out / foreign).write_text("precious")
    monkeypatch.setattr(cf.LinearRegression, "fit", None)
    result = cli("fit", data, "-t", "y", "-o", "theirs")
    assert result.exit_code == 2
    assert foreign in result.stderr
    assert (out / foreign).read_text() == "precious"
    assert names(out) == {foreign}


@pytest.mark.parametrize("step", ["save", "render", "coefficient_table"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("existing", [False, True])
def test_an_error_while_writing_leaves_everything_as_it_was(cli, fitted, data, monkeypatch, step, error, existing):
    out = data.parent / "out"
    if existing:
        fitted(data, "-t", "y")
    before = contents(out) if existing else None
    seen = names(data.parent)

    def broken(*args, **options):
        raise error

    where = {"save": "certifit.modelfile.save", "render": "certifit.report.page.render"}
    if step in where:
        monkeypatch.setattr(where[step], broken)
    else:
        monkeypatch.setitem(folder.TABLES, folder.COEFFICIENTS, ("coefficients", broken))
    result = cli("fit", data, "-t", "a", "-o", "out", "--cv", "0")
    assert result.exit_code == (130 if isinstance(error, KeyboardInterrupt) else 2)
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""
    assert names(data.parent) == seen
    if existing:
        assert contents(out) == before


def test_a_full_disk_is_named(cli, data, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = cli("fit", data, "-t", "y", "-o", "out")
    assert result.exit_code == 2
    assert "disk is full" in result.stderr or "No space left" in result.stderr
    assert not (data.parent / "out").exists()


UNWRITABLE = {
    "below a file": ("data.csv/out", "is a file"),
    "a file": ("data.csv", "is a file"),
    "a link to nothing": ("dangling", "is a link to nothing"),
    "below a link to nothing": ("dangling/deep/out", "is a link to nothing"),
    "a name too long": (f"new/{'n' * 300}", "name too long"),
}


def unread(*args, **options):
    raise AssertionError("rows were read")


@pytest.mark.parametrize("case", UNWRITABLE)
@pytest.mark.parametrize("command", [["fit"], ["select"]], ids="".join)
def test_a_place_that_cannot_be_written_is_refused_before_a_row_is_read(cli, data, monkeypatch, command, case):
    out, words = UNWRITABLE[case]
    (data.parent / "dangling").symlink_to(data.parent / "nothing")
    before = names(data.parent)
    monkeypatch.setattr("certifit.cli.paths.Data.open", unread)
    result = cli(*command, data, "-t", "y", "-o", out)
    assert result.exit_code == 2 and words in result.stderr.lower()
    assert names(data.parent) == before


@pytest.mark.parametrize("out", ["new", "new/deep", "there"])
def test_a_disk_that_is_read_only_is_refused_before_a_row_is_read(cli, data, monkeypatch, out):
    (data.parent / "there").mkdir()

    def read_only(path, mode=0o777):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(os, "mkdir", read_only)
    monkeypatch.setattr("certifit.cli.paths.Data.open", unread)
    result = cli("fit", data, "-t", "y", "-o", out)
    assert result.exit_code == 2 and "cannot be written: read-only file system" in result.stderr


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="needs users of their own")
def test_a_folder_without_write_permission_is_refused():
    with tempfile.TemporaryDirectory() as locked:
        os.chmod(locked, 0o555)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)  # whom permissions bind
        try:
            for out in ("out", "deep/out", "."):
                with pytest.raises(ValueError, match="cannot be written: permission denied"):
                    folder.check(Path(locked) / out)
        finally:
            os.seteuid(user)
            os.chmod(locked, 0o755)


def test_hostile_names_are_harmless_on_the_terminal_and_in_every_file(cli, tmp_path):
    hostile = ["=cmd|' /C calc'!A0", "<script>alert(1)</script>", "\x1b[31mred\x1b]0;title\x07"]
    lines = [",".join([*hostile, "y"])]
    rng = np.random.default_rng(0)
    lines += [",".join(map(repr, row)) for row in rng.normal(size=(40, 4)).tolist()]
    (tmp_path / "h.csv").write_text("\n".join(lines))
    result = cli("fit", "h.csv", "-t", "y", "-o", "out")
    assert result.exit_code == 0
    assert "\x1b" not in result.output and "\x07" not in result.output
    out = tmp_path / "out"
    for name in ("report.html", "report.json", "coefficients.csv"):
        assert b"\x1b" not in (out / name).read_bytes()
    assert "<script" not in (out / "report.html").read_text()
    assert "'=cmd" in (out / "coefficients.csv").read_text()


def test_staged_files_appear_together_or_not_at_all(tmp_path):
    target = tmp_path / "new"
    with pytest.raises(RuntimeError), folder.staged(target) as stage:
        (stage / "report.html").write_text("half")
        raise RuntimeError
    assert names(tmp_path) == set()
    with folder.staged(target) as stage:
        (stage / "report.html").write_text("whole")
        assert not target.exists()
    assert names(tmp_path) == {"new"}
    assert (target / "report.html").read_text() == "whole"


def test_a_fit_can_be_moved_and_used_elsewhere(cli, data, saved):
    shutil.move(saved, data.parent / "moved")
    assert cli("verify", "moved/model.certifit", data).exit_code == 0


def test_a_failure_in_the_middle_of_replacing_brings_the_earlier_fit_back(cli, data, saved, monkeypatch):
    (saved / "pictures" / "mine.svg").write_text("mine")
    before, move, moved = contents(saved), os.replace, []

    def breaks(source, target):
        moved.append(target)
        if len(moved) == 4:
            raise OSError(5, "Input/output error")
        move(source, target)

    monkeypatch.setattr(os, "replace", breaks)
    result = cli("fit", data, "-t", "a", "-o", "out", "--model", "ridge", "--cv", "0")
    assert result.exit_code == 2 and len(moved) > 4
    assert contents(saved) == before
    assert not [name for name in names(saved) if name.startswith(".certifit")]


def test_pictures_of_an_earlier_fit_go_and_other_files_beside_them_stay(cli, data):
    assert cli("fit", data, "-t", "y", "-o", "out", "--model", "linear", "--columns", "a").exit_code == 0
    pictures = data.parent / "out" / "pictures"
    (pictures / "mine.svg").write_text("mine")
    assert {"curve.svg", "influence.svg"} <= names(pictures)
    assert cli("fit", data, "-t", "y", "-o", "out", "--model", "ridge", "--cv", "0").exit_code == 0
    assert not {"curve.svg", "influence.svg"} & names(pictures)
    assert (pictures / "mine.svg").read_text() == "mine"


def test_a_picture_of_others_is_refused(cli, data, saved):
    (saved / "pictures" / "fit.svg").write_text("<svg/>")
    result = cli("fit", data, "-t", "y", "-o", "out")
    assert result.exit_code == 2 and "pictures/fit.svg" in result.stderr
    assert (saved / "pictures" / "fit.svg").read_text() == "<svg/>"
