"""Categories, gaps and dates from CSV, Parquet and folders, on the command line."""

import csv
import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

import certifit as cf
from certifit.maps import TableEncoder


@pytest.fixture
def table(tmp_path, monkeypatch):
    """The same rows as rows.csv, rows.parquet, and in two files of the folders csv and parquet."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n_rows = 300
    city = rng.choice(["Bern", "Oslo", "Rome"], n_rows)
    x = rng.normal(size=n_rows).round(6)
    y = (2 * x + (city == "Rome") + rng.normal(size=n_rows)).round(6)
    area = [None if k % 60 == 5 else round(float(value), 3) for k, value in enumerate(rng.normal(9, 2, n_rows))]
    whole = pa.table(
        {
            "x": x,
            "city": city,
            "area": area,
            "day": pa.array(np.datetime64("2021-03-01") + rng.integers(0, 500, n_rows)),
            "code": rng.integers(1, 5, n_rows),
            "y": y,
        }
    )
    for place, part in (("rows", whole), ("csv/a", whole[:120]), ("csv/b", whole[120:])):
        Path(place).parent.mkdir(exist_ok=True)
        arrow_csv.write_csv(part, f"{place}.csv")
    Path("parquet/deep").mkdir(parents=True)
    for place, part in (("rows", whole), ("parquet/a", whole[:77]), ("parquet/deep/b", whole[77:])):
        pq.write_table(part, f"{place}.parquet", write_page_checksum=True, row_group_size=50)
    return whole


def context_of(folder):
    return json.loads(Path(folder, "report.json").read_text())


def checks(folder):
    return {one["name"]: one for one in context_of(folder)["checks"]}


SOURCES = (["rows.csv"], ["rows.parquet"], ["csv"], ["parquet"], ["csv/*.csv"], ["csv/a.csv", "csv/b.csv"], ["r.data"])


@pytest.mark.parametrize("paths", SOURCES, ids=" ".join)
def test_every_way_to_give_the_rows_is_the_same_model(cli, table, paths):
    shutil.copy("rows.parquet", "r.data")  # told by its first bytes
    assert cli("fit", "rows.csv", "-t", "y", "-o", "one").exit_code == 0
    result = cli("fit", *paths, "-t", "y", "-o", "two")
    assert result.exit_code == 0, result.output
    assert Path("one/model.certifit").read_bytes() == Path("two/model.certifit").read_bytes()
    result = cli("verify", "two/model.certifit", *paths)
    assert result.exit_code == 0, result.output
    assert "300 rows" in result.stdout


def test_compressed_and_tab_separated_text(cli, table):
    text = Path("rows.csv").read_text()
    Path("rows.csv.gz").write_bytes(gzip.compress(text.encode()))
    Path("rows.tsv").write_text(text.replace(",", "\t"))
    for k, name in enumerate(("rows.csv", "rows.csv.gz", "rows.tsv")):
        assert cli("fit", name, "-t", "y", "-o", f"out{k}").exit_code == 0
    assert len({Path(f"out{k}/model.certifit").read_bytes() for k in range(3)}) == 1


def test_the_report_tells_files_from_files(cli, table):
    cli("fit", "rows.csv", "-t", "y", "-o", "one")
    cli("fit", "parquet", "-t", "y", "-o", "two")
    assert checks("one")["Checksums"]["text"] == "A CSV file has none."
    assert checks("two")["Checksums"]["text"] == "Verified on every pass."
    page = Path("two/report.html").read_text()
    assert "scan_parquet" in page and "certifit verify model.certifit parquet" in page
    cli("fit", "csv/a.csv", "csv/b.csv", "-t", "y", "-o", "three")
    assert "2 files, a.csv to b.csv" in Path("three/report.html").read_text()


def test_gaps_dates_and_categories_are_said_on_the_terminal(cli, table):
    result = cli("fit", "rows.csv", "-t", "y", "-o", "out")
    assert "3 numbers, 1 category, 1 date" in result.stdout
    assert "5 of 300 rows" in result.stdout
    assert "city, 3 levels" in result.stdout


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--reference", "city=Rome"], TableEncoder(reference={"city": "Rome"})),
        (["--reference", "most-frequent"], TableEncoder(reference="most frequent")),
        (["--unseen", "reference"], TableEncoder(unseen="reference")),
        (["--max-levels", "2"], TableEncoder(max_levels=2)),
        (["--min-count", "90"], TableEncoder(min_count=90)),
        (["--categories", "code"], TableEncoder(categories=["code"])),
        (["--categories", "code", "--reference", "code=3"], TableEncoder(categories=["code"], reference={"code": "3"})),
    ],
)
def test_options_reach_the_encoder(cli, table, options, expected):
    result = cli("fit", "rows.csv", "-t", "y", "-o", "out", *options)
    assert result.exit_code == 0, result.output
    model = cf.load("out/model.certifit")
    again = cf.LinearRegression(encoder=expected).fit(cf.scan_csv("rows.csv", target="y"))
    assert model.column_names_ == again.column_names_
    assert model.coef_.tobytes() == again.coef_.tobytes()
    assert model.encoder_.unseen == expected.unseen


def test_a_column_with_an_equals_sign_can_have_a_reference(cli, tmp_path):
    lines = [f"{'uv'[k % 2]},{k * k % 7},{k}" for k in range(20)]
    (tmp_path / "e.csv").write_text("a=b,x,y\n" + "\n".join(lines) + "\n")
    assert cli("fit", "e.csv", "-t", "y", "-o", "out", "--reference", "a=b=v").exit_code == 0
    assert cf.load("out/model.certifit").column_names_ == ["a=b=u", "x"]


def test_bad_rows_stop_with_their_line_or_are_counted(cli, table):
    lines = Path("rows.csv").read_text().splitlines()
    bad = [*lines[:10], "1,2", *lines[10:50], "x,Bern,1,2021-03-01,1,2", *lines[50:]]
    Path("bad.csv").write_text("\n".join(bad) + "\n")
    result = cli("fit", "bad.csv", "-t", "y", "-o", "out")
    assert result.exit_code == 2
    assert "line 11" in result.stderr and "--bad-rows" in result.stderr and "bad_rows" not in result.stderr
    assert cli("fit", "bad.csv", "-t", "y", "-o", "out", "--bad-rows", "1").exit_code == 2
    result = cli("fit", "bad.csv", "-t", "y", "-o", "out", "--bad-rows", "5")
    assert result.exit_code == 0, result.output
    assert "2 bad rows left out" in result.stdout and "line 11" in result.stdout
    assert checks("out")["Bad rows"]["text"] == "2 rows skipped."
    assert context_of("out")["data"]["n_rows"] == 300
    assert "--bad-rows 2" in Path("out/report.html").read_text()
    assert cli("verify", "out/model.certifit", "bad.csv", "--bad-rows", "2").exit_code == 0
    result = cli("predict", "out/model.certifit", "bad.csv", "-o", "p.csv", "--bad-rows", "2")
    assert result.exit_code == 0 and "Skipped 2 bad rows" in result.stderr


def test_signs_for_no_value_and_types_can_be_given(cli, table):
    text = Path("rows.csv").read_text()
    Path("marked.csv").write_text(text.replace(",,", ",?,"))
    assert cli("fit", "marked.csv", "-t", "y", "-o", "one").exit_code == 2
    assert cli("fit", "marked.csv", "-t", "y", "-o", "one", "--na", "?").exit_code == 0
    assert cli("fit", "rows.csv", "-t", "y", "-o", "two").exit_code == 0
    assert Path("one/model.certifit").read_bytes() == Path("two/model.certifit").read_bytes()
    assert cli("fit", "rows.csv", "-t", "y", "-o", "three", "--types", "code=text").exit_code == 0
    assert "code=2" in cf.load("three/model.certifit").column_names_


def predictions(path):
    if str(path).endswith(".parquet"):
        found = pq.read_table(path)
        return found.column_names, np.column_stack([column.to_numpy() for column in found.columns])
    with open(path, newline="") as file:
        head, *lines = csv.reader(file)
    return head, np.array(lines, dtype=float)


@pytest.mark.parametrize("data", ["rows.csv", "rows.parquet", "parquet"])
@pytest.mark.parametrize("out", ["p.csv", "p.parquet", "p.pq"])
@pytest.mark.parametrize("interval", [(), ("--interval", "0.9")])
def test_predictions_of_tables(cli, fitted, table, data, out, interval):
    fitted("rows.csv", "-t", "y")
    result = cli("predict", "out/model.certifit", data, "-o", out, *interval)
    assert result.exit_code == 0, result.output
    assert "Ignored 1 column that the model does not use: y." in result.stderr
    if out.endswith(".pq"):
        out = shutil.copy(out, "copy.parquet")
    head, found = predictions(out)
    model = cf.load("out/model.certifit")
    assert head[0] == "prediction" and len(head) == (3 if interval else 1)
    assert found[:, 0].tolist() == model.predict(table).tolist()
    if interval:
        assert found[:, 1:].tolist() == model.predict_interval(table, 0.9).tolist()


def test_a_few_new_rows_are_read_as_those_of_the_fit(cli, table):
    """Alone, these cells look like other types: whole numbers, an empty column, levels that are numbers."""
    cli("fit", "rows.csv", "-t", "y", "-o", "out", "--types", "code=text")
    Path("new.csv").write_text("code,day,city,area,x\n2,2021-03-01,Oslo,,1\n3,2021-03-02,Rome,,2\n")
    result = cli("predict", "out/model.certifit", "new.csv")
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == 3


def test_a_level_that_the_fit_did_not_see_is_named_with_its_line(cli, table):
    cli("fit", "rows.csv", "-t", "y", "-o", "out")
    lines = Path("rows.csv").read_text().splitlines()
    lines[200] = lines[200].replace("Bern", "Kiel").replace("Oslo", "Kiel").replace("Rome", "Kiel")
    Path("new.csv").write_text("\n".join(lines) + "\n")
    assert "'city' has a level at line 201" in cli("predict", "out/model.certifit", "new.csv", "-o", "p.csv").stderr
    result = cli("predict", "out/model.certifit", "new.csv", "-o", "p.csv", "--show-values")
    assert result.exit_code == 2
    assert "'Kiel' at line 201 of 'new.csv'" in result.stderr and "--unseen reference" in result.stderr
    assert not Path("p.csv").exists()
    assert "at line 201" in cli("verify", "out/model.certifit", "new.csv").stderr
    cli("fit", "rows.csv", "-t", "y", "-o", "lenient", "--unseen", "reference")
    assert cli("predict", "lenient/model.certifit", "new.csv", "-o", "p.csv").exit_code == 0


def test_verify_notices_another_level(cli, table):
    cli("fit", "rows.parquet", "-t", "y", "-o", "out")
    cities = table["city"].to_pylist()
    cities[0] = "Oslo" if cities[0] == "Rome" else "Rome"
    pq.write_table(table.set_column(1, "city", pa.array(cities)), "changed.parquet")
    assert cli("verify", "out/model.certifit", "changed.parquet").exit_code == 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("fit", "csv", "rows.parquet", "-t", "y", "-o", "out"), "files of one format"),
        (("fit", "csv", "-t", "y", "-o", "csv/out"), "lies in 'csv'"),
        (("fit", "csv", "-t", "y", "-o", "csv"), "lies in 'csv'"),
        (("fit", "rows.csv", "-t", "city", "-o", "out", "--task", "quantity"), "not a number"),
        (("fit", "rows.parquet", "-t", "city", "-o", "out", "--model", "ridge"), "must be numbers"),
        (("fit", "rows.csv", "-t", "y", "-o", "out", "--reference", "city=Kiel"), "'Kiel'"),
        (("fit", "cut.parquet", "-t", "y", "-o", "out"), "cut"),
    ],
)
def test_errors_are_one_line(cli, table, args, words):
    Path("cut.parquet").write_bytes(Path("rows.parquet").read_bytes()[:-100])
    result = cli(*args)
    assert result.exit_code == 2, result.output
    assert words in result.stderr and len(result.stderr.splitlines()) == 1
    assert not Path("out").exists()


def test_predictions_do_not_go_into_the_folder_that_is_read(cli, table):
    cli("fit", "csv", "-t", "y", "-o", "out")
    result = cli("predict", "out/model.certifit", "csv", "-o", "csv/p.csv")
    assert result.exit_code == 2 and "lies in 'csv'" in result.stderr


def test_files_of_another_schema_are_named(cli, table):
    Path("csv/c.csv").write_text("x,city,area,y\n1,Bern,2,3\n")
    result = cli("fit", "csv", "-t", "y", "-o", "out")
    assert result.exit_code == 2 and "c.csv" in result.stderr and "day" in result.stderr


def test_leakage_is_warned_of(cli, table):
    arrow_csv.write_csv(table.append_column("paid", pa.array((table["y"].to_numpy() * 1.1).round(5))), "leak.csv")
    result = cli("fit", "leak.csv", "-t", "y", "-o", "out")
    assert result.exit_code == 0
    assert "Suspect: paid may know the answer" in result.stdout
    assert "knows the answer" in Path("out/report.html").read_text()


def test_a_column_without_values_is_not_called_constant(cli, tmp_path):
    cells = [f"{k},,{2 * k + k % 7},1" for k in range(60)]
    (tmp_path / "a.csv").write_text("x,none,y,same\n" + "\n".join(cells) + "\n")
    result = cli("fit", tmp_path / "a.csv", "-t", "y", "--model", "linear", "--cv", "0", "-o", tmp_path / "out")
    assert "same: left out. none: no value in any row, left out." in " ".join(result.output.split())


def test_a_label_of_blanks_is_shown_between_quotes(cli, tmp_path):
    rows = [f"{k},{k % 7},{' ' if k % 6 == 0 else 'yes' if k % 4 else 'no'}" for k in range(90)]
    (tmp_path / "a.csv").write_text("x,z,y\n" + "\n".join(rows) + "\n")
    result = cli("fit", tmp_path / "a.csv", "-t", "y", "--model", "gaussian-nb", "--cv", "3", "-o", tmp_path / "out")
    assert "classes        yes 66.7 %, ' ' 16.7 %, no 16.7 %" in result.output


def test_a_number_that_means_no_value_is_named_on_the_terminal_and_in_the_report(cli, tmp_path):
    cells = [f"{'-999' if k % 6 == 0 else k},{k % 7},{2 * k + k % 7}" for k in range(60)]
    (tmp_path / "a.csv").write_text("x,z,y\n" + "\n".join(cells) + "\n")
    result = cli("fit", tmp_path / "a.csv", "-t", "y", "--model", "linear", "--cv", "0", "-o", tmp_path / "out")
    words = " ".join(result.output.split())
    assert "Column 'x' is -999 in 10 rows, far from its other numbers: read as missing." in words
    assert "To read it as a number: --na keep." in words
    gaps = {f"g{j}": ["" if (k + j) % 5 == 0 else str(k % (3 + j)) for k in range(60)] for j in range(3)}
    rows = [",".join([*(gaps[name][k] for name in gaps), cells[k]]) for k in range(60)]
    (tmp_path / "b.csv").write_text("g0,g1,g2,x,z,y\n" + "\n".join(rows) + "\n")
    among = cli("fit", tmp_path / "b.csv", "-t", "y", "--model", "linear", "--cv", "0", "-o", tmp_path / "more").output
    among = " ".join(among.split())
    assert "46 values of g0, g1, g2 and 1 more" in among
    assert "Column 'x' is -999 in 10 rows, far from its other numbers: read as missing." in among
    assert "is -999 in 10 rows" in (tmp_path / "out" / "report.html").read_text().replace("&#39;", "'")


@pytest.mark.parametrize("name", ["x", "t"])
def test_whole_numbers_beyond_float64_and_times_of_nanoseconds(cli, tmp_path, name):
    """Arrow refuses to round such numbers, and Python has no such times: the report and the folds read both."""
    rng = np.random.default_rng(0)
    steps = rng.integers(0, 10**15, 60)
    column = {"x": 2**53 + 1 + steps, "t": pa.array(17 * 10**17 + 1000 * steps + 1, pa.timestamp("ns"))}[name]
    pq.write_table(pa.table({name: column, "y": steps / 1e14 + rng.normal(size=60)}), tmp_path / "far.parquet")
    result = cli("fit", "far.parquet", "-t", "y", "-o", "out", "--model", "linear", "--cv", "3")
    assert result.exit_code == 0, result.stderr
    assert cli("predict", "out/model.certifit", "far.parquet", "-o", "p.csv").exit_code == 0


def test_a_model_of_an_array_predicts_whole_numbers_beyond_float64(cli, tmp_path):
    X = 2**53 + 1 + np.random.default_rng(0).integers(0, 10**15, (60, 1))
    cf.save(cf.Ridge(standardize=True).fit(X.astype(float), X[:, 0] / 1e14), tmp_path / "model.certifit")
    pq.write_table(pa.table({"x0": X[:, 0]}), tmp_path / "far.parquet")
    result = cli("predict", "model.certifit", "far.parquet")
    assert result.exit_code == 0 and len(result.stdout.splitlines()) == 61


LINES = [f'{{"x": {k}, "g": "abc"}}' for k in range(60_000)]
BAD_LINES = {
    "a text among numbers": ('{"x": "secret"}', "line 50,001 has text as 'x', which is a number in line 1. Mend"),
    "no JSON": ('{"x": secret}', "line 50,001 is no JSON (character 7). Mend that line."),
    "a key twice": ('{"x": 1, "x": 2}', "line 50,001 has 'x' twice"),
    "a number alone": ("3", 'line 50,001 is no JSON object, such as {"a": 1}. Mend'),
    "an array": ('[{"x": 1}]', "line 50,001 begins a JSON array. Give one object per line: jq"),
    "too long": ('{"x": 1, "t": "' + 3_000_000 * "t" + '"}', "line 50,001 is longer than 1,048,576 bytes"),
}


@pytest.mark.parametrize("bad", BAD_LINES)
def test_a_bad_line_of_json_is_named_by_its_number_in_the_file(cli, tmp_path, bad):
    """Arrow counts rows from the beginning of a block."""
    line, words = BAD_LINES[bad]
    (tmp_path / "rows.jsonl").write_text("\n".join([*LINES[:50_000], line, *LINES[50_000:]]))
    result = cli("fit", "rows.jsonl", "-t", "x", "-o", "out")
    assert result.exit_code == 2 and words in result.stderr and "secret" not in result.stderr
    assert "in row" not in result.stderr


def test_values_within_arrays_of_json_are_of_one_type(cli, tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"x": [1], "y": 1}\n{"x": ["a"], "y": 1}\n')
    said = cli("fit", "rows.jsonl", "-t", "y", "-o", "out").stderr
    assert "Column(/x/[]) changed from number to string." in said and "in row" not in said


def test_the_python_lines_read_text_as_the_fit_did(cli, tmp_path):
    """Dates as text in Parquet are dates to the command line, and text to scan_parquet."""
    days = [f"2024-{1 + k % 12:02d}-{1 + k % 28:02d}" for k in range(60)]
    pq.write_table(pa.table({"day": days, "x": np.arange(60.0) ** 2, "y": np.arange(60.0)}), tmp_path / "new.parquet")
    assert cli("fit", "new.parquet", "-t", "y", "-o", "out", "--model", "linear", "--cv", "0").exit_code == 0
    lines = json.loads(Path("out/report.json").read_text())["usage"]["python"]
    result = {}
    program = "\n".join(lines).replace("'model.certifit'", "'out/model.certifit'")
    exec(program.replace("print(cf.verify", "checked = (cf.verify"), result)
    assert result["checked"].holds and len(result["predictions"]) == 60
