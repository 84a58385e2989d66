"""CSV files: the rows of the file in constant memory, or an error that says where."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import pickle
import sys
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest
from tables import bits, in_memory, table_of_numbers

import certifit as cf
from certifit.data.files import FileSource, scan_csv
from certifit.data.formats import csv_reader, csv_text

GOOD = "a,b,y\n1,2,3\n2,1,4\n3,5,1\n5,1,2\n"
MANY = 60_000  # lines that fill more than one block of the parser


@pytest.fixture
def scan(tmp_path):
    """scan(text, ...) of a file with that text."""

    def scanned(text: str | bytes, name: str = "rows.csv", **options: Any) -> FileSource:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return scan_csv(path, **options)

    return scanned


def rows(source: FileSource) -> pa.Table:
    return pa.concat_tables([run.X for run in source.stretches()])


def types(source: FileSource) -> dict[str, str]:
    return {name: str(source.schema.field(name).type) for name in source.names}


def test_a_file_gives_the_bits_of_its_rows_in_memory(tmp_path):
    table = table_of_numbers()
    arrow_csv.write_csv(table, tmp_path / "t.csv")
    source = scan_csv(tmp_path / "t.csv", "y", "w")
    assert source.n_rows == len(table)
    assert bits(source) == bits(source) == bits(in_memory(table))
    assert bits(pickle.loads(pickle.dumps(source))) == bits(source)


@pytest.mark.parametrize("how", ["folder", "glob", "list", "gz"])
def test_many_files_give_the_bits_of_one(tmp_path, how):
    table = table_of_numbers(20_011)
    pieces = [table.slice(0, 1), table.slice(1, 9000), table.slice(9001)]
    paths = [tmp_path / f"part{k}.csv" for k in range(3)]
    for path, piece in zip(paths, pieces, strict=True):
        arrow_csv.write_csv(piece, path)
        if how == "gz":
            path.with_suffix(".csv.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    where: Any = {"folder": tmp_path, "glob": str(tmp_path / "*.csv"), "list": paths, "gz": tmp_path}[how]
    assert bits(scan_csv(where, "y", "w")) == bits(in_memory(table))


def test_every_float_comes_back_as_it_was_written(scan, rng):
    values = rng.normal(size=200) * 10.0 ** rng.integers(-300, 300, size=200)
    source = scan("a,y\n" + "".join(f"{value!r},1\n" for value in values.tolist()), target="y")
    assert np.array_equal(rows(source)["a"].to_numpy(), values)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_line_ends_quotes_and_a_byte_order_mark_do_not_matter(scan, ending):
    text = "\ufeff" + GOOD.replace("2,1,4", '"2",1,"4"').replace("\n", ending)
    assert rows(scan(text, target="y")).equals(rows(scan(GOOD, target="y")))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_from_the_header(scan, delimiter):
    assert scan(GOOD.replace(",", delimiter)).names == ["a", "b", "y"]


def test_empty_cells_and_the_words_for_nothing_are_missing(scan):
    source = scan("n,t\n1,x\nNA,NA\n,\nNaN,null\n?,?\n", missing=["?"])
    assert rows(source).to_pydict() == {"n": [1, None, None, None, None], "t": ["x", None, None, None, None]}


# name -> (cells of the first rows, cells of the last rows, the type of all)
LATER = {
    "whole, then not": (["1"] * MANY, ["1.5"], "double"),
    "number, then text": (["1"] * 10, ["x", "z", "w"] * 10, "string"),
    "empty, then number": ([""] * MANY, ["2"], "int64"),
    "empty, then text": ([""] * MANY, ["x"], "string"),
    "date, then time": (["2020-01-01"] * MANY, ["2020-01-01 10:30:00.5"], "timestamp"),
    "flag": (["true"] * MANY, ["False"], "bool"),
    "too large for int64": (["1"] * MANY, ["123456789012345678901"], "double"),
    "all empty": ([""] * 5, ["NA"], "null"),
    "text, then number": (["x"] * MANY, ["1"], "string"),
}


@pytest.mark.parametrize("case", LATER)
def test_types_are_those_of_all_rows_not_of_the_first_block(scan, case):
    first, last, kind = LATER[case]
    cells = [*first, *last]
    source = scan("k,a\n" + "".join(f"{k},{cell}\n" for k, cell in enumerate(cells)))
    assert types(source)["a"].partition("[")[0] == kind
    assert (source.n_rows, rows(source).num_rows) == (len(cells), len(cells))


def test_types_can_be_said(scan):
    source = scan(
        "a,b,c,d\n1,2,2020-01-01,true\n3,4,2020-02-01,false\n", types={"a": "text", "b": "number", "c": "date"}
    )
    assert types(source) == {"a": "string", "b": "double", "c": "timestamp[us]", "d": "bool"}


BODY = "".join(f"{i % 97},{i % 89}.125,{i % 31}\n" for i in range(MANY))

# What is wrong -> (text, options, the words of the error)
REFUSED: dict[str, tuple[str | bytes, dict[str, Any], str]] = {
    "unknown target": (GOOD, {"target": "z"}, "no column 'z'.*'a', 'b', 'y'"),
    "unknown feature": (GOOD, {"target": "y", "columns": ["a", "bb"]}, "no column 'bb'. Did you mean 'b'"),
    "unknown type": (GOOD, {"types": {"a": "float"}}, "'number', 'text', 'date', 'flag', .* Got 'float'"),
    "type of an unknown column": (GOOD, {"types": {"z": "text"}}, "no column 'z'"),
    "negative bad_rows": (GOOD, {"bad_rows": -1}, "bad_rows must be"),
    "two columns of one name": ("a,a,y\n1,2,3\n", {}, "more than one column named 'a'"),
    "an empty file": ("", {}, "is empty"),
    "only blank lines": ("\n\n", {}, "is empty"),
    "a header without rows": ("a,b,y\n", {}, "a header and no rows"),
    "a header without an end": ("a,b,y", {}, "a header and no rows"),
    "a short line": (GOOD + "5,1\n", {}, "line 6: 2 cells, but the header has 3: '5,1'"),
    "a long line": (GOOD + "5,1,2,3\n", {}, "line 6: 4 cells, but the header has 3"),
    "far down": (f"a,b,y\n{BODY}1\n", {}, f"line {MANY + 2}: 1 cell,"),
    "after quoted lines": ('a,b,y\n1,"x\n\ny",2\n\n5,1\n', {}, "line 6: 2 cells"),
    "a cut line": (GOOD + "5,", {}, "line 6: 2 cells"),
    "a cut quoted cell": (GOOD + '5,2,"ab', {}, "row at line 6 is not closed"),
    "a quote that is not closed": ('a,b\n1,"x\n' + "2,3\n" * 5, {}, "row at line 2 is not closed"),
    "a quote over a block": ('a,b\n1,"x\n' + "2,3\n" * 500_000, {}, "near line 2 is longer.*quote"),
    "text among numbers": (f"a,b,y\n{BODY}red,1,2\n", {}, f"line {MANY + 2}: column 'a' is 'red', not a whole"),
    "text among numbers early": (f"a,b,y\n1,2,3\nred,1,2\n{BODY}", {}, "line 3: column 'a' is 'red', not a whole"),
    "text where numbers were said": (GOOD + "q,1,2\n", {"types": {"a": "number"}}, "line 6: column 'a' is 'q', not"),
    "no date where dates were said": (GOOD, {"types": {"a": "date"}}, "line 2: column 'a' is '1', not a date such as"),
    "text in the target": (f"a,b,y\n{BODY}5,1,hi\n", {"target": "y"}, f"line {MANY + 2}: column 'y' is 'hi', not a"),
    "bytes that are no text": (b"a,b\n1,x\n2,\xe9\n", {}, "line 3: column 'b' has bytes that are not utf8.*latin1"),
    "a header that is no text": (b"a,\xe9\n1,2\n", {}, "header is not utf8"),
    "UTF-16": (b"\xff\xfea\x00,\x00b\x00\n\x00", {}, "is UTF-16 text. Pass encoding='utf-16', or save it as UTF-8"),
    "UTF-32": ("a,b\n1,2\n".encode("utf-32"), {}, "is UTF-32 text"),
    "no UTF-16": (GOOD, {"encoding": "utf-16"}, "does not begin with the byte order mark of utf-16.*'utf-16-le'"),
    "no UTF-32": (GOOD, {"encoding": "utf_32"}, "does not begin with the byte order mark of utf-32"),
    "odd bytes as UTF-16": ("a,b\n1,23\n", {"encoding": "utf-16-le"}, "is not utf-16-le text. Pass another encoding="),
    "cut UTF-16": (GOOD.encode("utf-16")[:-1], {"encoding": "utf-16"}, "not utf-16 text"),
    "cut UTF-16 far down": (f"a,b,y\n{BODY}".encode("utf-16")[:-1], {"encoding": "utf-16"}, "that are not utf-16 text"),
    "a byte that Windows lacks": (
        b"a,b\n" + b"1,x\n" * 5000 + b"2,\x81\n", {"encoding": "cp1252"}, "line 5002, has bytes that are not cp1252"
    ),
    "a Parquet file": (b"PAR1....PAR1", {}, "Parquet file. Use scan_parquet"),
    "a workbook": (b"PK\x03\x04\x14\x00", {}, "Excel workbook, not CSV. Use scan_excel"),
    "an old workbook": (b"\xd0\xcf\x11\xe0\xa1\xb1", {}, "old Excel workbook, not CSV"),
    "gzip named .csv": (gzip.compress(b"a,b\n1,2\n"), {}, "compressed .gzip., and its name hides it. Rename it"),
    "bzip2 named .csv": (bz2.compress(b"a,b\n1,2\n"), {}, "compressed .bzip2., and its name hides it. Rename it"),
    "xz named .csv": (lzma.compress(b"a,b\n1,2\n"), {}, "compressed .xz.. Unpack it"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_an_error_names_the_line_and_the_column(scan, case):
    text, options, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        scan(text, **options)


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
@pytest.mark.parametrize("end", ["\n", ""])
def test_text_of_any_encoding_is_read_with_its_mark_and_without(scan, codec, end):
    text = f"\u00e9,y\n1,2\n3,4{end}"
    names = {"utf-8": ("utf8", "UTF-8", "utf-8-sig", "U8"), "utf-8-sig": ("utf8", "utf_8", "utf-8-sig")}
    for name in names.get(codec, (codec, codec.upper())):
        source = scan(text.encode(codec), target="y", encoding=name)
        assert source.names == ["\u00e9"] and source.n_rows == 2
        assert bool(source.notes) == (end == "")  # that the last row may be cut
    if codec.endswith("e"):
        marked = ("\ufeff" + text).encode(codec)
        for name in ("utf-16", codec):
            assert scan(marked, target="y", encoding=name).names == ["\u00e9"]


TARGETS = {
    "no target in a row": ("a,y\n1,1\n2,\n", {}, "'y' is empty at line 3 of"),
    "an infinite target": ("a,y\n1,1\n2,inf\n", {}, "'y' is NaN or infinite at line 3"),
    "a negative weight": ("a,y,w\n1,1,1\n2,1,-3\n", {"weight": "w"}, "'w' is negative at line 3 of .*: -3"),
    "an empty weight": ("a,y,w\n1,1,1\n\n2,1,\n", {"weight": "w"}, "'w' is empty at line 4"),
}


@pytest.mark.parametrize("case", TARGETS)
def test_a_bad_target_or_weight_names_its_line(scan, case):
    text, options, words = TARGETS[case]
    with pytest.raises(ValueError, match=words):
        list(scan(text, target="y", **options).stretches())


def test_bad_rows_are_skipped_up_to_the_limit_and_counted(scan):
    text = f"a,b,y\n1,2,3\n4\n{BODY}x,1,2\n7,8,9,10\n5,1,\n"
    source = scan(text, target="y", bad_rows=3)
    assert (source.skipped, source.n_rows) == (3, MANY + 2)
    with pytest.raises(ValueError, match=f"'y' is empty at line {MANY + 6} of"):
        list(source.stretches())
    assert "3 bad rows were skipped" in source.notes[0] and "line 3: 1 cell" in source.notes[0]
    with pytest.raises(ValueError, match="bad_rows=2 are used up"):
        scan(text, target="y", bad_rows=2)


def test_a_bad_cell_of_a_said_type_is_a_bad_row(scan):
    source = scan(GOOD + "q,1,2\n", types={"a": "number"}, bad_rows=1)
    assert (source.skipped, rows(source)["a"].to_pylist()) == (1, [1, 2, 3, 5])


def test_rows_skipped_for_one_column_stay_skipped_when_it_is_not_read(scan):
    source = scan(f"a,b,y\n{BODY}x,1,2\n", bad_rows=1)
    assert rows(source.select(["b"])).num_rows == source.n_rows == MANY


def test_a_cell_of_a_column_that_is_not_used_may_be_anything(scan):
    assert rows(scan(GOOD + "6,red,5\n", target="y", columns=["a"])).num_rows == 5


def test_rows_of_many_columns_are_parsed_many_at_a_time(scan, monkeypatch):
    """A block costs the parser some time per column, whatever it holds; and a row is no longer than a block."""
    monkeypatch.setattr(csv_text, "BLOCK", 1 << 12)
    names = [f"c{j}" for j in range(1_500)]
    lines = [",".join(f"{j + row / 8:.3f}" for j in range(1_500)) for row in range(40)]
    source = scan("\n".join([",".join(names), *lines]) + "\n")
    assert len(lines[0]) > csv_text.BLOCK and source.n_features == 1_500
    assert len(list(source.files.batches(names, 40))) == 1
    assert rows(source).column("c7").to_pylist() == [7 + row / 8 for row in range(40)]


@pytest.mark.parametrize("name", ["ARROW_ID", "BZh", "SQLite", "PKX"])
def test_a_name_that_begins_like_another_format_is_a_name(scan, name):
    assert rows(scan(f"{name},b\n1,2\n".encode())).to_pydict() == {name: [1], "b": [2]}


def test_another_encoding_can_be_said(scan):
    assert rows(scan("a,é\n1,ü\n".encode("latin1"), encoding="latin1")).to_pydict() == {"a": [1], "é": ["ü"]}


def test_a_last_line_that_does_not_end_is_noted(scan):
    assert "may be cut" in scan(GOOD[:-1]).notes[0]
    assert scan(GOOD).notes == []


@pytest.mark.parametrize(
    "second, words",
    [
        ("a,y\n1,2\n", "b.csv' lacks column 'b', unlike '.*a.csv'"),
        ("a,b,c,y\n1,2,3,4\n", "b.csv' has a column 'c'"),
        ("a,b,y\n1,2\n", "b.csv', line 2: 2 cells"),
    ],
)
def test_a_file_unlike_the_first_is_named(tmp_path, second, words):
    (tmp_path / "a.csv").write_text(GOOD)
    (tmp_path / "b.csv").write_text(second)
    with pytest.raises(ValueError, match=words):
        scan_csv(tmp_path)


@pytest.mark.parametrize("trial", range(40))
def test_a_file_cut_anywhere_is_refused_noted_or_whole_rows(scan, trial):
    """A cut between rows cannot be seen; a cut inside the last cell is noted."""
    rng = np.random.default_rng(trial)
    lines = [f'{i},{i}.5,"word ""{i}"", and more",{i}\n' for i in range(200)]
    text = "a,b,t,y\n" + "".join(lines)
    cut = int(rng.integers(1, len(text)))
    try:
        source = scan(text[:cut], target="y")
        found = rows(source)
    except ValueError as error:
        assert "rows.csv" in str(error) or "no column" in str(error)
    else:
        whole = rows(scan(text, "whole.csv", target="y"))
        noted = any("may be cut" in note for note in source.notes)
        assert noted or text[cut - 1] == "\n"
        kept = source.n_rows - noted
        assert found.slice(0, kept).equals(whole.slice(0, kept))


def test_a_cut_compressed_file_is_refused(tmp_path):
    data = gzip.compress(("a,b,y\n" + BODY).encode())
    (tmp_path / "t.csv.gz").write_bytes(data[: len(data) // 2])
    with pytest.raises(ValueError, match=r"t\.csv\.gz"):
        scan_csv(tmp_path / "t.csv.gz")


def test_a_file_that_changes_between_passes_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(GOOD)
    source = scan_csv(path, "y")
    path.write_text(GOOD + "7,7,7\n")
    with pytest.raises(ValueError, match="changed since it was scanned"):
        list(source.stretches())


def test_missing_files_are_named(tmp_path):
    for path, words in [("none.csv", "no file"), ("*.csv", "No file matches"), (".", "has no file that ends in")]:
        with pytest.raises(FileNotFoundError, match=words):
            scan_csv(str(tmp_path / path) if path != "." else tmp_path)
    with pytest.raises(ValueError, match="empty"):
        scan_csv([])


def test_the_line_of_a_row_counts_blank_and_quoted_lines(tmp_path):
    path = Path(tmp_path / "t.csv")
    path.write_text('a,b\n\n1,"x\ny"\n2,z\n')
    source = scan_csv(path)
    assert [source.place(row).split(" of")[0] for row in range(2)] == ["line 3", "line 5"]


def test_the_end_mark_is_no_row_of_the_file(scan):
    source = scan(f"a,b\n1,2\n,,{csv_reader.END}x\n", bad_rows=1)
    assert (source.skipped, source.n_rows) == (1, 1)


def rewritten(path, text):
    """Other bytes of the same size, with the old times put back."""
    before = os.stat(path)
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("kind", ["csv", "svm"])
def test_a_file_rewritten_with_its_size_and_time_restored_is_noticed(tmp_path, kind, monkeypatch):
    path = tmp_path / f"data.{kind}"
    text = {"csv": "x,y\n1,2\n2,3\n4,9\n", "svm": "2 1:1\n3 1:2\n9 1:4\n"}[kind]
    path.write_text(text)
    source = cf.scan_csv(path, target="y") if kind == "csv" else cf.scan_svmlight(path)
    list(source.stretches())
    rewritten(path, text.replace("9", "8"))
    with pytest.raises(ValueError, match="changed since it was scanned"):
        list(source.stretches())
    monkeypatch.setattr("certifit.data.formats.paths._stamp", lambda path: ())  # a disk whose times tell nothing
    source = cf.scan_csv(path, target="y") if kind == "csv" else cf.scan_svmlight(path)
    list(source.stretches())
    rewritten(path, text)
    with pytest.raises(ValueError, match="changed since it was scanned"):
        list(source.stretches())


def test_a_file_that_changes_during_a_pass_is_noticed(tmp_path):
    path = tmp_path / "data.csv"
    text = "x,y\n1,2\n2,3\n4,9\n"
    path.write_text(text)
    runs = cf.scan_csv(path, target="y").files.batches(["x", "y"], 10)
    next(runs)
    rewritten(path, text.replace("9", "8"))
    with pytest.raises(ValueError, match="changed since it was scanned"):
        list(runs)


def test_a_last_line_without_an_end_is_noted_and_one_with_fewer_cells_refused(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x,y\n1,2\n2,3\n4,9")
    assert "its last row may be cut" in cf.scan_csv(path, target="y").notes[0]
    path.write_text("x,y\n1,2\n2,3\n4")
    with pytest.raises(ValueError, match="1 cell, but the header has 2"):
        cf.scan_csv(path, target="y")


def test_out_of_memory_is_no_corrupt_file(tmp_path, monkeypatch):
    path = tmp_path / "data.csv"
    path.write_text("x,y\n1,2\n2,3\n4,9\n")
    source = cf.scan_csv(path, target="y")

    def batches(self):
        raise pa.ArrowMemoryError("malloc of size 64 failed")
        yield

    monkeypatch.setattr("certifit.data.formats.csv_reader.Reader.batches", batches)
    with pytest.raises(MemoryError, match="could not be read: malloc of size 64 failed"):
        list(source.stretches())


def test_whole_numbers_beyond_int64_are_numbers(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x,y\n" + "".join(f"{2**63 + 4096 * i},{i % 7}\n" for i in range(30)))
    model = cf.LinearRegression(encoder=cf.TableEncoder()).fit(cf.scan_csv(path, target="y"))
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("n_rows", [0, 200])
def test_arrow_has_let_go_of_a_file_when_its_pass_is_over(tmp_path, n_rows):
    """Its thread took the interpreter's lock for that later: `certifit verify` of a header without rows was aborted."""
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n" + "".join(f"{k}.5,{k}\n" for k in range(n_rows)))
    text = csv_text.Text.of(str(path), None, None, ())
    for _ in range(300):
        reader = csv_reader.Reader(str(path), text, {"x": pa.float64()}, ["x"], csv_reader.Skipped(0))
        holders = reader.holders
        with reader:
            assert sum(batch.num_rows for batch in reader.batches()) == n_rows
        left = sys.getrefcount(reader.file)  # outside of the assertion, which holds the file too
        assert left <= holders


@pytest.mark.parametrize("bad_row", [1, 2000])  # in the first block, and far down
def test_no_thread_reads_a_file_that_was_refused(tmp_path, monkeypatch, bad_row):
    """A process that ended meanwhile waited for that thread for ever."""
    monkeypatch.setattr(csv_text, "BLOCK", 1 << 10)
    begun, ended = [], []
    readinto = csv_text.Bytes.readinto

    def slowly(self, buffer):
        begun.append(0)
        sleep(0.005)
        n = readinto(self, buffer)
        ended.append(0)
        return n

    path = tmp_path / "rows.csv"
    path.write_text("day,y\n" + "".join(f"{'x' if k == bad_row else '2026-01-31'},{k}\n" for k in range(4000)))
    text = csv_text.Text.of(str(path), None, None, ())
    monkeypatch.setattr(csv_text.Bytes, "readinto", slowly)

    def read():
        with csv_reader.Reader(str(path), text, {"day": pa.date32()}, ["day"], csv_reader.Skipped(0)) as reader:
            list(reader.batches())

    with pytest.raises(pa.ArrowInvalid, match="date32"):
        read()
    n_begun, n_ended = len(begun), len(ended)
    sleep(0.05)
    assert n_begun == n_ended == len(begun)
