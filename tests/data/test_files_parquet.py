"""Parquet files: the rows in constant memory, damage noticed, files of one schema."""

from __future__ import annotations

import os
import pickle
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from tables import bits, in_memory, table_of_numbers

import certifit as cf
from certifit.cli import main
from certifit.data.files import FileSource, ahead, scan_parquet

TABLE = table_of_numbers()
BITS = bits(in_memory(TABLE))


def rows(source: FileSource) -> pa.Table:
    return pa.Table.from_batches(source.open_batches())


@pytest.mark.parametrize("group", [777, 65_536])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.slow
def test_any_row_groups_give_the_bits_of_the_rows_in_memory(tmp_path, group, compression):
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path, row_group_size=group, compression=compression, write_page_checksum=True)
    source = scan_parquet(path, "y", "w")
    assert (source.n_rows, source.checksummed, source.notes) == (len(TABLE), True, [])
    assert bits(source) == bits(source) == BITS
    assert bits(pickle.loads(pickle.dumps(source))) == BITS


@pytest.mark.parametrize("how", ["folder", "glob", "list"])
def test_many_files_give_the_bits_of_one(tmp_path, how):
    paths = [tmp_path / f"part{k}.parquet" for k in range(4)]
    cuts = [0, 1, 40_000, 40_000, len(TABLE)]  # the third is empty
    for path, begin, end in zip(paths, cuts, cuts[1:], strict=False):
        pq.write_table(TABLE.slice(begin, end - begin), path)
    where: Any = {"folder": tmp_path, "glob": str(tmp_path / "*.parquet"), "list": paths}[how]
    source = scan_parquet(where, "y", "w")
    assert bits(source) == BITS
    assert source.place(0) == f"row 1 of {str(paths[0])!r}"
    assert source.place(40_001) == f"row 2 of {str(paths[3])!r}"


@pytest.mark.parametrize(("mark", "kind"), [
    ("_delta_log/00000000000000000000.json", "Delta"), (".hoodie/hoodie.properties", "Hudi"),
    ("metadata/v2.metadata.json", "Iceberg"), ("metadata/notes.json", None), (None, None),
])  # fmt: skip
def test_a_table_whose_log_tells_which_rows_are_deleted_is_refused(tmp_path, mark, kind):
    """The files of an overwritten Delta table gave 3,034 rows of 1,034, and a certified slope of the wrong sign."""
    folder = tmp_path / "table" / "year=2026"
    folder.mkdir(parents=True)
    pq.write_table(TABLE.slice(0, 99), folder / "part0.parquet")
    if mark is not None:
        (folder.parent / mark).parent.mkdir()
        (folder.parent / mark).touch()
    for where in (folder.parent, folder, str(folder / "*.parquet"), [folder / "part0.parquet"]):
        command = [str(part) for part in (where if isinstance(where, list) else [where])]
        fit = ["fit", *command, "-t", "y", "--model", "linear", "--cv", "0", "-q", "-o", str(tmp_path / "out")]
        said = CliRunner().invoke(main, fit)
        if kind is None:
            assert scan_parquet(where, "y").n_rows == 99 and said.exit_code == 0, said.output
        else:
            words = f"table' is a table of {kind}: its files hold deleted rows too"
            with pytest.raises(ValueError, match=f"{words}.*cf.from_arrow"):
                scan_parquet(where, "y")
            assert said.exit_code == 2 and words in said.output, said.output


def test_only_the_columns_that_are_asked_for_are_read(tmp_path):
    pq.write_table(TABLE, tmp_path / "t.parquet")
    source = scan_parquet(tmp_path / "t.parquet", "y").select(["c", "a"])
    assert next(source.stretches()).X.column_names == ["c", "a"]
    assert next(source._tables(1000)).column_names == ["c", "a", "y"]


def test_a_file_without_checksums_says_so(tmp_path):
    pq.write_table(TABLE, tmp_path / "t.parquet")
    source = scan_parquet(tmp_path / "t.parquet")
    assert not source.checksummed
    assert "no page checksums" in source.notes[0]


def _written(path: Path, compression: str = "snappy", **options: Any) -> pa.Table:
    """A file of several pages, row groups and types, with checksums."""
    rng = np.random.default_rng(0)
    n = 2000
    table = pa.table(
        {
            "x": rng.normal(size=n),
            "k": pa.array(rng.integers(0, 50, n), mask=rng.random(n) < 0.1),
            "s": rng.choice(["aa", "b", "ccc"], n),
            "d": [datetime(2020, 1, 1) + timedelta(hours=i) for i in range(n)],
            "b": rng.random(n) < 0.5,
            "y": rng.normal(size=n),
        }
    )
    pages = {"row_group_size": 700, "data_page_size": 1000, "write_batch_size": 100}
    pq.write_table(table, path, compression=compression, write_page_checksum=True, **pages, **options)
    return table


def _outcome(path: Path, table: pa.Table) -> str:
    try:
        found = rows(scan_parquet(path, "y"))
    except ValueError as error:
        assert path.name in str(error)
        return "error"
    expected = table.select([*table.column_names[:-1], "y"])
    return "same" if found.schema.equals(expected.schema) and found.equals(expected) else "different"


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.slow
def test_300_changed_bits_are_all_noticed_or_harmless(tmp_path, compression):
    path = tmp_path / "t.parquet"
    table = _written(path, compression)
    good = path.read_bytes()
    rng = np.random.default_rng(1)
    outcomes = []
    for place in rng.integers(0, 8 * len(good), 300).tolist():
        damaged = bytearray(good)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        outcomes.append(_outcome(path, table))
    assert outcomes.count("different") == 0
    assert outcomes.count("error") >= 285  # the rest is what nobody reads: statistics, padding


@pytest.mark.slow
def test_changed_bits_of_the_footer_are_noticed_or_harmless(tmp_path):
    """The footer carries no checksum, but names, types and counts stand in it twice."""
    path = tmp_path / "t.parquet"
    table = _written(path)
    good = path.read_bytes()
    begin = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
    for place in range(8 * begin, 8 * (begin + 200)):  # names and types of the columns
        damaged = bytearray(good)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        assert _outcome(path, table) != "different", place


@pytest.mark.parametrize("trial", range(40))
def test_a_cut_file_is_refused(tmp_path, trial):
    path = tmp_path / "t.parquet"
    _written(path)
    good = path.read_bytes()
    path.write_bytes(good[: int(np.random.default_rng(trial).integers(0, len(good)))])
    with pytest.raises(ValueError, match=r"t\.parquet' is cut, corrupt or no Parquet file"):
        rows(scan_parquet(path, "y"))


def test_a_page_that_counts_one_value_too_many_is_noticed(tmp_path):
    """The next pages would shift by a row, and every checksum holds."""
    path = tmp_path / "t.parquet"
    table = _written(path)
    good = path.read_bytes()
    outcomes = set()
    for at in range(len(good) - 3):
        if good[at : at + 2] == b"\x1c\x15" and good[at + 2] & 0x80:  # data page header, number of values
            for bit in range(1, 7):
                damaged = bytearray(good)
                damaged[at + 2] ^= 1 << bit
                path.write_bytes(damaged)
                outcomes.add(_outcome(path, table))
    assert outcomes == {"error"}


DRIFT = {
    "a missing column": ({"a": [1.0]}, "b.parquet' lacks column 'y', unlike '.*a.parquet'"),
    "another column": ({"a": [1.0], "y": [1.0], "z": [1]}, "b.parquet' has a column 'z'"),
    "another type": ({"a": ["x"], "y": [1.0]}, "'a' is string in '.*b.parquet' and double in '.*a.parquet'"),
    "another width": ({"a": pa.array([1.0], pa.float32()), "y": [1.0]}, "'a' is float in"),
}


@pytest.mark.parametrize("case", DRIFT)
def test_a_file_unlike_the_first_is_named(tmp_path, case):
    columns, words = DRIFT[case]
    pq.write_table(pa.table({"a": [1.0, 2.0], "y": [1.0, 2.0]}), tmp_path / "a.parquet")
    pq.write_table(pa.table(columns), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=words):
        scan_parquet(tmp_path)


def test_a_column_that_is_empty_in_one_file_takes_the_type_of_the_others(tmp_path):
    pq.write_table(pa.table({"a": pa.nulls(2), "y": [1.0, 2.0]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"y": [3.0], "a": [1.5]}), tmp_path / "b.parquet")
    assert rows(scan_parquet(tmp_path, "y")).to_pydict() == {"a": [None, None, 1.5], "y": [1.0, 2.0, 3.0]}


def test_no_rows_no_file_and_unreadable_files_are_refused(tmp_path):
    path = tmp_path / "t.parquet"
    with pytest.raises(FileNotFoundError, match="no file"):
        scan_parquet(path)
    pq.write_table(TABLE.slice(0, 0), path)
    with pytest.raises(ValueError, match="no rows"):
        scan_parquet(path)
    path.write_text("a,b\n1,2\n" * 100)
    with pytest.raises(ValueError, match="no Parquet file"):
        scan_parquet(path)
    if os.geteuid():
        path.chmod(0)
        with pytest.raises(ValueError, match="could not be read"):
            scan_parquet(path)


def test_names_of_folders_are_columns(tmp_path):
    for year in ("2020", "2021"):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(TABLE.slice(0, 3), tmp_path / f"year={year}" / "t.parquet")
    source = scan_parquet(tmp_path)
    assert source.names[-1] == "year"
    years = [value for block in source.stretches() for value in block.X["year"].to_pylist()]
    assert years == [2020] * 3 + [2021] * 3


def test_a_file_that_changes_between_passes_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path)
    source = scan_parquet(path, "y")
    pq.write_table(TABLE.slice(0, 10), path)
    with pytest.raises(ValueError, match="changed since it was scanned"):
        list(source.stretches())


def test_reading_ahead_passes_errors_on_and_stops_with_its_reader():
    made = []

    def numbers() -> Any:
        try:
            for k in range(100):
                if k == 5:
                    raise KeyError("five")
                made.append(k)
                yield k
        finally:
            made.append("closed")

    with pytest.raises(KeyError, match="five"):
        list(ahead(numbers()))
    assert made == [0, 1, 2, 3, 4, "closed"]
    made.clear()
    reader = ahead(numbers())
    assert next(reader) == 0
    reader.close()
    assert made in ([0, "closed"], [0, 1, "closed"])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_categories_are_read_whatever_text_they_are_made_of(tmp_path, kind):
    """pandas writes categories as dictionaries of large text; Parquet gives them back as dictionaries of text."""
    levels = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, None], pa.int8()), pa.array(["a", "b"], kind))
    pq.write_table(pa.table({"level": levels, "y": [1.0, 2.0, 3.0, 4.0]}), tmp_path / "t.parquet")
    assert rows(scan_parquet(tmp_path / "t.parquet", "y"))["level"].to_pylist() == ["a", "b", "a", None]


def test_numbers_in_a_dictionary_are_read(tmp_path):
    column = pa.array([1, 2, 2, 5], pa.int64()).dictionary_encode()
    pq.write_table(pa.table({"x": column, "y": [1.0, 2.0, 2.0, 5.0]}), tmp_path / "data.parquet")
    (run,) = cf.scan_parquet(tmp_path / "data.parquet", target="y").stretches()
    assert run.X.column("x").cast(pa.int64()).to_pylist() == [1, 2, 2, 5]


def test_out_of_memory_is_no_corrupt_parquet_file(tmp_path, monkeypatch):
    pq.write_table(pa.table({"x": [1.0, 2.0], "y": [1.0, 2.0]}), tmp_path / "data.parquet")
    source = cf.scan_parquet(tmp_path / "data.parquet", target="y")

    def no_memory(*args, **options):
        raise pa.ArrowMemoryError("malloc of size 64 failed")

    monkeypatch.setattr("certifit.data.formats.parquet_and_arrow.pq.ParquetFile", no_memory)
    with pytest.raises(MemoryError, match="could not be read: malloc of size 64 failed"):
        list(source.stretches())


@pytest.mark.parametrize("kind", [pa.decimal256(60, 2), pa.uint64()])
def test_decimals_of_256_bits_and_whole_numbers_beyond_int64_are_numbers(tmp_path, kind):
    column = pa.array([2**63 + 4096 * i for i in range(30)], kind)
    pq.write_table(pa.table({"x": column, "y": [float(i % 7) for i in range(30)]}), tmp_path / "data.parquet")
    for target in ("x", "y"):
        source = cf.scan_parquet(tmp_path / "data.parquet", target=target)
        assert np.isfinite(cf.LinearRegression(encoder=cf.TableEncoder()).fit(source).coef_).all()
