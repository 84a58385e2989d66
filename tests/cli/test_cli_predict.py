import csv
import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import certifit as cf


def read(path):
    with open(path, newline="") as file:
        head, *rows = csv.reader(file)
    return head, np.array(rows, dtype=float)


def test_predictions_are_those_of_the_model_digit_by_digit(cli, data, saved):
    result = cli("predict", saved / "model.certifit", data, "--out", "p.csv")
    assert result.exit_code == 0
    assert "Wrote 120 predictions to p.csv." in result.stderr
    head, rows = read("p.csv")
    model = cf.load(saved / "model.certifit")
    assert head == ["prediction"]
    assert rows[:, 0].tolist() == model.predict(cf.scan_csv(data, columns=["a", "b"])).tolist()


def test_intervals(cli, data, saved):
    assert cli("predict", saved / "model.certifit", data, "-o", "p.csv", "--interval", "0.9", "-q").output == ""
    head, rows = read("p.csv")
    assert head == ["prediction", "lower", "upper"]
    assert (rows[:, 1] < rows[:, 0]).all() and (rows[:, 0] < rows[:, 2]).all()
    actual = read(data)[1][:, 2]
    inside = (rows[:, 1] <= actual) & (actual <= rows[:, 2])
    assert 0.8 < inside.mean() < 0.98


def test_columns_are_found_by_name_and_others_are_named_as_ignored(cli, data, saved):
    cli("predict", saved / "model.certifit", data, "-o", "one.csv")
    result = cli("predict", saved / "model.certifit", data.parent / "shuffled.csv", "-o", "two.csv")
    assert result.exit_code == 0
    assert "Ignored 2 columns that the model does not use: extra and y." in result.stderr
    assert Path("one.csv").read_bytes() == Path("two.csv").read_bytes()


def test_a_missing_column_is_named_with_a_near_one(cli, data, saved):
    Path("new.csv").write_text("A,b\n1,2\n")
    result = cli("predict", saved / "model.certifit", "new.csv", "-o", "p.csv")
    assert result.exit_code == 2
    assert "lacks 1 column of the model: a." in result.stderr
    assert "'A', 'b'" in result.stderr
    assert not Path("p.csv").exists()


def test_standard_output_is_the_default_and_holds_nothing_else(cli, data, saved):
    result = cli("predict", saved / "model.certifit", data)
    lines = result.stdout.splitlines()
    assert lines[0] == "prediction" and len(lines) == 121
    assert all(float(line) is not None for line in lines[1:])


def test_a_model_of_unnamed_columns_takes_them_in_order(cli, data):
    rows = read(data)[1]
    model = cf.LinearRegression().fit(rows[:, :2], rows[:, 2])
    cf.save(model, "unnamed.certifit")
    Path("two.csv").write_text("p,q\n1,2\n3,4\n")
    result = cli("predict", "unnamed.certifit", "two.csv")
    assert result.exit_code == 0
    assert [float(x) for x in result.stdout.split()[1:]] == model.predict([[1.0, 2.0], [3.0, 4.0]]).tolist()
    result = cli("predict", "unnamed.certifit", data)
    assert result.exit_code == 2
    assert "2 columns without names" in result.stderr


def test_an_error_in_a_late_row_leaves_the_old_file(cli, data, saved):
    Path("late.csv").write_text("a,b\n" + "1,2\n" * 500 + "1,oops\n")
    Path("p.csv").write_text("old")
    before = set(os.listdir())
    result = cli("predict", saved / "model.certifit", "late.csv", "-o", "p.csv", "--show-values")
    assert result.exit_code == 2
    assert "oops" in result.stderr
    assert Path("p.csv").read_text() == "old"
    assert set(os.listdir()) == before


def test_the_input_is_never_overwritten(cli, data, saved):
    before = data.read_bytes()
    os.link(data, "other-name.csv")
    for out in ("data.csv", "./data.csv", "other-name.csv", saved / "model.certifit"):
        result = cli("predict", saved / "model.certifit", data, "--out", out)
        assert result.exit_code == 2 and "is read here" in result.stderr
    assert data.read_bytes() == before


def test_a_link_stays_a_link(cli, data, saved):
    Path("real.csv").write_text("old")
    os.symlink("real.csv", "link.csv")
    assert cli("predict", saved / "model.certifit", data, "-o", "link.csv").exit_code == 0
    assert Path("link.csv").is_symlink()
    assert len(read("real.csv")[1]) == 120


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_devices_are_written_not_replaced(cli, data, saved):
    assert cli("predict", saved / "model.certifit", data, "-o", "/dev/null").exit_code == 0
    assert not os.path.isfile("/dev/null")
    result = cli("predict", saved / "model.certifit", data, "-o", "/dev/full")
    assert result.exit_code == 2 and "disk is full" in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--out", "."], "is a folder"),
        (["--out", "no/such/p.csv"], "there is no folder"),
        (["--out", "p.txt"], "neither CSV nor Parquet"),
        (["--interval", "1.5"], "between 0 and 1"),
        (["--interval", "nan"], "between 0 and 1"),
    ],
)
def test_bad_options(cli, data, saved, options, words):
    result = cli("predict", saved / "model.certifit", data, *options)
    assert result.exit_code == 2
    assert words in result.stderr and len(result.stderr.splitlines()) == 1


def test_intervals_of_a_ridge_fit_are_refused_with_the_way_out(cli, data):
    cli("fit", data, "-t", "y", "-o", "ridge", "--model", "ridge")
    result = cli("predict", "ridge/model.certifit", data, "--interval", "0.95")
    assert result.exit_code == 2
    assert "--model linear" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--model", "linear"], "columns repeat each other (twice = 2 a)"),
        (["--model", "regression-tree"], "a DecisionTreeRegressor of 120 rows has no intervals"),
    ],
)
def test_fits_without_intervals_say_why_and_have_those_of_held_out_rows(cli, data, options, why):
    lines = data.read_text().splitlines()
    a = [line.split(",")[lines[0].split(",").index("a")] for line in lines[1:]]
    twice = [f"{line},{2 * float(value)!r}" for line, value in zip(lines[1:], a, strict=True)]
    (data.parent / "twice.csv").write_text("\n".join([f"{lines[0]},twice", *twice]))
    assert cli("fit", "twice.csv", "-t", "y", "-o", "fit", "--cv", "0", *options).exit_code == 0
    result = cli("predict", "fit/model.certifit", "twice.csv", "--interval", "0.9")
    assert result.exit_code == 2 and why in result.stderr and "--fitted-on DATA" in result.stderr
    between = cli("predict", "fit/model.certifit", "twice.csv", "--interval", "0.9", "--fitted-on", "twice.csv")
    assert between.exit_code == 0 and "prediction,lower,upper" in between.stdout


def test_a_closed_pipe_ends_quietly(data, saved):
    (data.parent / "long.csv").write_text("a,b\n" + "1.5,2.5\n" * 200_000)
    command = f"{sys.executable} -m certifit predict out/model.certifit long.csv | head -n 1"
    result = subprocess.run(command, shell=True, cwd=data.parent, capture_output=True, text=True, check=False)
    assert result.stdout == "prediction\n"
    assert result.stderr == ""


def test_an_output_that_cannot_be_written_is_refused_before_a_row_is_read(cli, data, saved, monkeypatch):
    def read_only(path, mode=0o777):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    def unread(*args, **options):
        raise AssertionError("rows were read")

    monkeypatch.setattr(os, "mkdir", read_only)
    monkeypatch.setattr("certifit.cli.paths.Data.open", unread)
    result = cli("predict", saved / "model.certifit", data, "-o", "p.csv")
    assert result.exit_code == 2 and "cannot be written: read-only file system" in result.stderr
    assert not Path("p.csv").exists()


def test_predictions_beyond_float64_are_named(cli, saved, data):
    """They are written as inf, which Python and NumPy read."""
    (data.parent / "far.csv").write_text("a,b\n1,2\n1e308,-1e308\n1e308,-1e308\n")
    for options in ([], ["--interval", "0.9"]):
        result = cli("predict", saved / "model.certifit", "far.csv", "-o", "p.csv", *options)
        assert result.exit_code == 0 and "Warning: invalid" not in result.stderr
        assert (
            "Warning: 2 predictions beyond the range of float64, written as inf, the first at line 3" in result.stderr
        )
        assert np.isinf(read("p.csv")[1][:, 0]).tolist() == [False, True, True]
        assert cli("predict", saved / "model.certifit", "far.csv", "-o", "p.csv", *options, "-q").stderr == ""


def test_columns_are_kept_in_front_of_predictions(cli, saved, data):
    rows = data.read_text().splitlines()
    text = "id,a,b\n" + "".join(f"00{k},{','.join(row.split(',')[:2])}\n" for k, row in enumerate(rows[1:6]))
    (data.parent / "new.csv").write_text(text)
    result = cli("predict", saved / "model.certifit", "new.csv", "--keep", "id,a", "--quiet")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == '"id","a","prediction"' or lines[0] == "id,a,prediction"
    assert [line.split(",")[0].strip('"') for line in lines[1:]] == [f"00{k}" for k in range(5)]
    assert "no column 'key'" in cli("predict", saved / "model.certifit", "new.csv", "--keep", "key").output


def test_a_threshold_of_ones_own_decides_between_two_classes(cli, fitted, tmp_path):
    text = "x,y\n" + "".join(f"{k % 17},{'yes' if (k * 7) % 17 + k % 5 > 10 else 'no'}\n" for k in range(120))
    (tmp_path / "two.csv").write_text(text)
    fitted(tmp_path / "two.csv", "-t", "y", "--model", "logistic", "--cv", "0", out="two")
    model = "two/model.certifit"

    def labels(*options):
        result = cli("predict", model, "two.csv", "--quiet", *options)
        assert result.exit_code == 0, result.output
        return [line.split(",")[0].strip('"') for line in result.stdout.splitlines()[1:]]

    assert set(labels("--threshold", "yes=0")) == {"yes"}
    assert labels("--threshold", "0.5") == labels()
    assert set(labels("--threshold", "no=0")) == {"no"}
    assert "from 0 to 1" in cli("predict", model, "two.csv", "--threshold", "yes=2").output


def test_a_parquet_file_is_scanned_once_however_many_columns_a_model_has(cli, data, saved, monkeypatch):
    from certifit.data.formats import parquet_and_arrow

    head, rows = read(data)
    pq.write_table(pa.table(dict(zip(head, rows.T, strict=True))), "data.parquet")
    footers, own = [], parquet_and_arrow.Footer.__init__

    def counted(self, path):
        footers.append(path)
        own(self, path)

    monkeypatch.setattr(parquet_and_arrow.Footer, "__init__", counted)
    assert cli("predict", saved / "model.certifit", "data.parquet", "-o", "p.csv").exit_code == 0
    assert footers == ["data.parquet"]
