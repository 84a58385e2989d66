"""Files that strangers bring: each is read with a note, or refused in words that say what to do."""

from __future__ import annotations

import csv
import gzip
import io
import pickle
import tracemalloc
import zipfile
from typing import Any

import pytest

import certifit as cf
from certifit.report.shell import as_options

N_ROWS = 12
ROWS = [[2 * k + 0.5, f"plot {'ab'[k % 2]}", 3 * k + 0.25] for k in range(N_ROWS)]
HEADER = ["x", "place", "y"]


def text(rows: list[list[Any]], header: list[str] | None = HEADER, delimiter: str = ",") -> str:
    lines = io.StringIO()
    csv.writer(lines, delimiter=delimiter, lineterminator="\n").writerows([header, *rows] if header else rows)
    return lines.getvalue()


def read(path: Any, name: str = "x", **options: Any) -> tuple[list[Any], list[str]]:
    """The cells of a column as they are read, and the notes."""
    source = cf.scan_csv(path, target="y", encoding=None, **options)
    return [cell for block in source.stretches() for cell in block.X.column(name).to_pylist()], source.notes


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_wide_text_without_a_mark_is_read_with_a_note(tmp_path, encoding):
    path = tmp_path / "rows.csv"
    path.write_bytes(text(ROWS).encode(encoding))
    cells, notes = read(path)
    assert cells == [row[0] for row in ROWS]
    assert any("UTF-16 text without a byte order mark" in note for note in notes)


def test_names_of_rows_that_the_header_does_not_name_are_a_column(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text([[f"r{k}", *row] for k, row in enumerate(ROWS)]))
    assert read(path)[0] == [row[0] for row in ROWS]
    names, notes = read(path, "row")
    assert names[:2] == ["r0", "r1"]
    assert any("one cell more than its header" in note and "column 'row'" in note for note in notes)


def test_one_row_of_too_many_cells_is_no_name_of_a_row(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text([["more", *row] if k == 0 else row for k, row in enumerate(ROWS)]))
    with pytest.raises(ValueError, match="line 2: 4 cells, but the header has 3"):
        read(path)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Arrow prints that it cannot decode it
def test_a_row_of_too_many_cells_may_have_letters_of_another_encoding(tmp_path):
    path = tmp_path / "rows.csv"
    rows = [[x, "Köln", y] for x, _, y in ROWS]
    path.write_bytes(text([*rows[:4], [1, "Köln", 2, 9], *rows[4:]]).encode("latin1"))
    cells, notes = read(path, "place", bad_rows=1)
    assert cells == ["Köln"] * N_ROWS
    assert any("read as Windows-1252" in note for note in notes) and "line 6: 4 cells" in notes[-1]
    with pytest.raises(ValueError, match="not utf8 text"):
        cf.scan_csv(path, target="y", encoding="utf8")


@pytest.mark.parametrize("form", ["{} kg/ha", "{}€/m²"])
def test_a_unit_may_be_divided_by_another(tmp_path, form):
    path = tmp_path / "rows.csv"
    path.write_text(text([[form.format(row[0]), *row[1:]] for row in ROWS]))
    cells, notes = read(path)
    assert cells == [row[0] for row in ROWS]
    assert any(f"in {form.format('').strip()}" in note for note in notes)


def test_powers_of_ten_have_decimal_commas_too(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text([[f"{row[0]:.3E}".replace(".", ","), *row[1:]] for row in ROWS], delimiter=";"))
    cells, notes = read(path)
    assert cells == [row[0] for row in ROWS]
    assert any("with a decimal comma" in note and ", in " not in note for note in notes)


def test_what_parts_thousands_is_noted(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text([[f"{1000 + row[0]:,.1f}".replace(",", "'"), *row[1:]] for row in ROWS]))
    cells, notes = read(path)
    assert cells == [1000 + row[0] for row in ROWS]
    assert any("an apostrophe parts thousands" in note for note in notes)


@pytest.mark.parametrize(
    "date", ["5 Mar 2024", "05-MAR-24", "March 5, 2024", "05MAR2024", "5. March 2024", "Mar 5 2024"]
)
def test_dates_with_names_of_months_are_dates(tmp_path, date):
    path = tmp_path / "rows.csv"
    path.write_text(text([[date, *row[1:]] for row in ROWS]))
    cells, notes = read(path)
    assert {str(cell) for cell in cells} == {"2024-03-05 00:00:00"}
    assert any("'x' was read as dates, with names of months" in note for note in notes)
    assert read(path, types={"x": "date"})[0] == cells


def test_time_zones_are_noted(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text([[f"2024-03-0{1 + k % 9}T08:00:00+0{1 + k % 2}:00", 1, k] for k in range(N_ROWS)]))
    cells, notes = read(path)
    assert [cell.hour for cell in cells[:2]] == [7, 6]
    assert any("'x' has times of time zones, read in UTC" in note for note in notes)


def test_errors_of_formulas_are_no_values(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text([["#DIV/0!" if k % 3 else row[0], *row[1:]] for k, row in enumerate(ROWS)]))
    assert read(path)[0] == [None if k % 3 else row[0] for k, row in enumerate(ROWS)]


@pytest.mark.parametrize(
    ("end", "n_lines"), [("\n* provisional\nSource: a ministry, 2024\n", 2), ("Total,,144\n", 1), ("Total,9\n", 1)]
)
def test_lines_that_end_a_file_are_named_with_the_way_to_leave_them_out(tmp_path, end, n_lines):
    path = tmp_path / "rows.csv"
    path.write_text(text(ROWS) + end)
    with pytest.raises(ValueError, match=f"a total or footnotes end the file: bad_rows={n_lines} leaves them out"):
        read(path)
    assert read(path, bad_rows=n_lines)[0] == [row[0] for row in ROWS]


def test_a_bad_row_in_the_middle_is_no_footnote(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text([*ROWS, ["lost"], *ROWS]))
    with pytest.raises(ValueError, match="1 cell, but the header has 3") as refusal:
        read(path)
    assert "footnotes" not in str(refusal.value)


@pytest.mark.parametrize(
    ("start", "advice"),
    [
        (b"<!DOCTYPE html><table>", "a web page"),
        (b"\n<HTML><table>", "a web page"),
        (b"<?xml version='1.0'?>", "XML"),
        (b"<stata_dta><header>", "a Stata file"),
        (b"$FL2@(#) SPSS", "an SPSS file"),
        (b"\x93NUMPY\x01\x00", "a NumPy array"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        (pickle.dumps({"a": 1}, protocol=5), "a pickle"),
    ],
)
def test_other_formats_are_named(tmp_path, start, advice):
    path = tmp_path / "rows.csv"
    path.write_bytes(start + b" " * 50)
    with pytest.raises(ValueError, match=f"is {advice}"):
        read(path)


def test_cells_in_single_quotes_are_explained(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("'x','y'\n'1','2'\n")
    with pytest.raises(ValueError, match="single quotes: write double quotes"):
        read(path)


def test_a_category_with_hardly_a_row_for_each_level_is_noted(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text([[f"{k % 40}/100", k % 3, k] for k in range(80)]))
    model = cf.LinearRegression(encoder="auto").fit(cf.scan_csv(path, target="y"))
    notes = [note for note in model.encoder_.notes_ if "too few rows for each" in note]
    assert len(notes) == 1 and "'x' is text of 40 levels in 80 rows" in notes[0]


def test_cells_of_several_values_are_set_aside_with_the_way_to_use_them(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f'{{"z": {k % 5}, "who": {{"age": {k}}}, "tags": ["a"], "y": {k}}}\n' for k in range(9)))
    model = cf.LinearRegression(encoder="auto").fit(cf.scan_json(path, target="y"))
    assert sum("to use them, make a column of each" in note for note in model.encoder_.notes_) == 2


def book(path: Any, **sheets: list[list[Any]]) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.active)
    for name, rows in sheets.items():
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append(row)
    workbook.save(path)


def test_the_first_sheet_with_a_table_is_read_and_the_others_are_named(tmp_path):
    path = tmp_path / "book.xlsx"
    book(path, Notes=[["collected by hand"], ["in spring"]], Data=[HEADER, *ROWS], Empty=[])
    source = cf.scan_excel(path, target="y")
    assert source.n_rows == N_ROWS
    assert f"{str(path)!r} has 3 sheets, and 'Data' was read; sheet= takes another: 'Notes', 'Empty'." in source.notes
    assert "--sheet takes another" in as_options(source.notes[0])
    assert not cf.scan_excel(path, target="y", sheet="Data").notes


def test_a_refusal_names_the_sheet_that_was_read(tmp_path):
    path = tmp_path / "book.xlsx"
    book(path, Prices=[["a", "b"], [1, 2]], Data=[HEADER, *ROWS])
    with pytest.raises(ValueError, match=r"\(sheet 'Prices'; sheet= takes another: 'Data'\) has no column 'y'"):
        cf.scan_excel(path, target="y")


@pytest.mark.parametrize(
    ("inside", "advice"),
    [("a.csv", "a zip archive. Unpack it"), ("mimetype", "an OpenDocument file. Save it as .xlsx")],
)
def test_archives_that_are_no_workbooks_are_named(tmp_path, inside, advice):
    pytest.importorskip("openpyxl")
    path = tmp_path / "book.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(inside, text(ROWS))
    with pytest.raises(ValueError, match=f"is {advice}"):
        cf.scan_excel(path, target="y")


def test_formulas_without_results_are_named(tmp_path):
    path = tmp_path / "book.xlsx"
    book(path, Data=[[*HEADER, "twice"], *([*row, f"=A{k + 2}*2"] for k, row in enumerate(ROWS))])
    note = f"Cell D2 of {str(path)!r} holds a formula without its result, as other cells may"
    assert cf.scan_excel(path, target="y").notes[0].startswith(note)
    with pytest.raises(ValueError, match=r"the target, is missing in every row\. Cell D2 of"):
        cf.scan_excel(path, target="twice", missing_target="drop")


def test_an_empty_sheet_is_no_csv_file(tmp_path):
    path = tmp_path / "book.xlsx"
    book(path, Data=[])
    with pytest.raises(ValueError, match=r"is empty\. A table begins with a line of column names\."):
        cf.scan_excel(path, target="y")


@pytest.mark.parametrize("start", [b"", b"x,y\n1,2\n"])
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(start, ending, tmp_path, monkeypatch):
    """2 GB of zeros, 4 kB on the disk, took 4 GB."""
    monkeypatch.setattr("certifit.data.formats.csv_text.LONGEST_LINE", 1 << 22)
    path = tmp_path / f"t.{ending}"
    with gzip.open(path, "wb", 1) if ending == "csv.gz" else path.open("wb") as file:
        file.write(start + bytes(60 << 20))
    tracemalloc.start()
    with pytest.raises(ValueError, match="has a line longer than 4,194,304 bytes"):
        cf.scan_csv(path, "y")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6
