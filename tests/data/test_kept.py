"""Rows of files are parsed once and encoded once; where they are kept changes no bit."""

import os
import stat
import time
from collections import namedtuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv as arrow_csv

import certifit as cf
from certifit.data import kept
from certifit.data.formats import csv_reader, csv_text
from certifit.data.formats.csv import holding_rows
from certifit.data.formats.parquet_and_arrow import ParquetFiles
from certifit.data.kept import Place, kept_rows
from certifit.data.view import Target
from certifit.maps import TableEncoder

N_ROWS = 9000  # more than one block


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Numbers with gaps, a flag, a category and a date; labels and a weight."""
    rng = np.random.default_rng(3)
    x, gaps = rng.normal(size=(2, N_ROWS)).round(4)
    columns = {
        "x": x,
        "gaps": pa.array(gaps, mask=rng.random(N_ROWS) < 0.1),
        "flag": rng.random(N_ROWS) < 0.4,
        "level": np.array(["red", "green", "blue"])[rng.integers(0, 3, N_ROWS)],
        "day": np.datetime64("2020-01-01") + rng.integers(0, 900, N_ROWS),
        "weight": rng.integers(1, 4, N_ROWS),
        "label": np.where(x + rng.logistic(size=N_ROWS) > 0, "yes", "no"),
    }
    path = tmp_path_factory.mktemp("kept") / "rows.csv"
    arrow_csv.write_csv(pa.table(columns), path)
    return path


@pytest.fixture
def parses(monkeypatch):
    """Paths in the order of the passes that parse them."""
    seen = []
    batches = csv_reader.Reader.batches
    monkeypatch.setattr(csv_reader.Reader, "batches", lambda self: (seen.append(self.path), batches(self))[1])
    return seen


def scan(file, may_spill, budget):
    with cf.memory(budget):
        source = cf.scan_csv(file, target="label", weight="weight").kept(may_spill)
        return source, source.files.fill()


PLACES = {Place.MEMORY: (True, 1e9), Place.DISK: (True, 1e5), Place.FILES: (False, 1e5)}


def test_kept_written_and_reread_rows_give_the_same_bits(file, parses):
    fits = {}
    for place, options in PLACES.items():
        source, where = scan(file, *options)
        assert where is place
        parses.clear()
        with cf.memory(options[1]):  # encoded rows are kept in memory alone
            model = cf.LogisticRegression().fit(source)
        assert bool(parses) == (place is Place.FILES)
        fits[place] = np.append(model.coef_, model.intercept_).tobytes(), model.column_names_
        source.files.close()
    assert fits[Place.MEMORY] == fits[Place.DISK] == fits[Place.FILES]


def test_a_pass_over_some_columns_reads_the_same_from_every_place(file):
    tables = []
    for options in PLACES.values():
        source, _ = scan(file, *options)
        tables.append(pa.Table.from_batches(source.files.batches(["day", "label"], 100)).combine_chunks())
        source.files.close()
    assert tables[0].num_rows == N_ROWS
    assert tables[0].equals(tables[1]) and tables[0].equals(tables[2])


def test_the_temporary_file_has_no_name_and_one_reader(file):
    source, _ = scan(file, *PLACES[Place.DISK])
    temporary = source.files._spill.file
    status = os.fstat(temporary.fileno())
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert status.st_nlink == 0  # whatever ends this process removes it
    assert status.st_size > 1e5
    source.files.close()
    assert temporary.closed


def batches_of(table):
    return [pa.record_batch([[]] * table.num_columns, schema=table.schema), *table.to_batches(max_chunksize=100)]


@pytest.mark.parametrize("expected", [0, 150, 250, 400])
def test_rows_held_are_the_rows_that_came(rng, expected):
    late = np.arange(250) == 220
    table = pa.table(
        {
            "number": rng.normal(size=250),
            "nan": np.where(late, np.nan, 1.0),
            "short": rng.normal(size=250).astype(np.float32),
            "whole": rng.integers(-9, 9, 250).astype(np.int16),
            "gap": pa.array(rng.normal(size=250), mask=late),
            "flag": late,
            "text": rng.choice(["u", "v"], 250),
            "level": pa.array(rng.choice(["u", "v"], 250)).dictionary_encode(),
            "day": np.datetime64("2020-01-01") + rng.integers(0, 900, 250),
        }
    )
    for rows in (kept.Held(expected, 300), kept.Held(expected, 100)):
        for batch in batches_of(table):
            rows.add(batch)
        assert rows.n_rows == 250
        joined = rows.table()
        assert joined.drop_columns("nan").equals(table.drop_columns("nan"))
        assert np.array_equal(joined["nan"], table["nan"], equal_nan=True)
        assert all(column.num_chunks == 1 for column in joined.drop_columns("level").columns)
    rows = kept.Held(expected, 300)
    for batch in batches_of(table):
        rows.add(batch)
    assert pa.Table.from_batches(rows.taken()).drop_columns("nan").equals(table.drop_columns("nan"))


def test_numbers_that_are_held_are_not_copied_again(rng):
    table = pa.table({f"x{j}": rng.normal(size=5000) for j in range(4)})
    rows = kept.Held(5000, 5000)
    for batch in batches_of(table):
        rows.add(batch)
    allocated = pa.total_allocated_bytes()
    joined = rows.table()
    assert pa.total_allocated_bytes() == allocated and joined.equals(table)


@pytest.mark.parametrize("limit, place, n_reads", [(40 * 100 - 1, Place.FILES, 0), (1e4, Place.MEMORY, 1)])
def test_a_parquet_file_that_cannot_fit_is_not_read_to_find_that_out(rng, tmp_path, monkeypatch, limit, place, n_reads):
    table = pa.table({**{f"x{j}": rng.normal(size=100) for j in range(4)}, "text": ["u"] * 100, "y": np.arange(100)})
    pq.write_table(table, tmp_path / "rows.parquet")
    reads, batches = [], ParquetFiles.batches
    monkeypatch.setattr(ParquetFiles, "batches", lambda *given: reads.append(1) or batches(*given))
    with cf.memory(limit):
        source = cf.scan_parquet(tmp_path / "rows.parquet", target="y").kept()
    assert source.files.fill() is place and len(reads) == n_reads
    assert pa.Table.from_batches(source.files.batches(table.column_names, 10)).equals(table)


def test_a_full_disk_is_found_before_anything_is_written(file, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(kept.shutil, "disk_usage", lambda folder: usage(10**6, 10**6, 1000))
    monkeypatch.setattr(kept, "Spill", None)
    source, where = scan(file, *PLACES[Place.DISK])
    assert where is Place.FILES
    assert "GB free" in source.files.note(9) and "TMPDIR" in source.files.note(9)


def test_a_disk_that_fills_up_leaves_no_file_and_the_rows_are_read_anew(file, monkeypatch):
    def full(self, batch):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept.Spill, "add", full)
    source, where = scan(file, *PLACES[Place.DISK])
    assert where is Place.FILES and "No space left" in source.files.note(9)
    assert sum(batch.num_rows for batch in source.files.batches(["x"], 100)) == N_ROWS


@pytest.mark.parametrize("budget, n_encoded", [(1e9, 1), (1e4, 4)])
def test_rows_are_encoded_once_where_they_fit(file, monkeypatch, budget, n_encoded):
    source = scan(file, True, 1e9)[0].reading(Target.NONE)
    encoder = TableEncoder().fit_source(source)
    n_rows = []
    apply = TableEncoder.apply
    monkeypatch.setattr(TableEncoder, "apply", lambda self, X: (n_rows.append(X.num_rows), apply(self, X))[1])
    with cf.memory(budget):
        rows = kept_rows(source.through(encoder))
    passes = [np.concatenate([stretch.X.toarray() for stretch in rows.stretches()]) for _ in range(4)]
    assert sum(n_rows) == n_encoded * N_ROWS
    assert all(np.array_equal(passes[0], again) for again in passes[1:])
    smaller = rows.resized(1024, 2048)
    assert np.array_equal(passes[0], np.concatenate([stretch.X.toarray() for stretch in smaller.stretches()]))


def test_encoded_rows_of_files_are_kept_by_the_third_pass(file, parses):
    source = cf.scan_csv(file, target="label", weight="weight").reading(Target.NONE)
    parses.clear()
    rows = kept_rows(source.through(TableEncoder().fit_source(source)))
    assert len(parses) == 1
    n_parses = []
    for _ in range(5):
        assert sum(stretch.n_rows for stretch in rows.stretches()) == N_ROWS
        n_parses.append(len(parses))
    assert n_parses == [2, 3, 4, 4, 4]


def test_a_pass_that_ends_early_leaves_no_read_behind(file, monkeypatch):
    reads = []
    read = csv_text.Bytes.readinto
    monkeypatch.setattr(csv_text.Bytes, "readinto", lambda self, to: (reads.append(0), read(self, to))[1])
    batches = cf.scan_csv(file, target="label").files.batches(["x"], 100)
    next(batches)
    batches.close()
    n_reads = len(reads)
    time.sleep(0.05)  # a thread of Arrow that reads while the process exits would keep it from ending
    assert len(reads) == n_reads


@pytest.mark.parametrize("n_classes", [2, 3])
def test_numbers_packed_for_short_blocks_give_the_same_bits(n_classes):
    rng = np.random.default_rng(n_classes)
    table = pa.table(
        {
            "a": rng.normal(size=120),
            "b": pa.array(rng.normal(size=120), mask=rng.random(120) < 0.2),
            "level": rng.choice(["u", "v", "w"], 120),
            "c": rng.integers(0, 9, 120),
            "y": rng.integers(0, n_classes, 120),
        }
    )
    model = cf.LogisticRegression(alpha=0.01, standardize=True)
    fits = [model.fit(cf.from_arrow(table, target="y")).coef_.tobytes()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept, "memory_limit", lambda: 1)
        fits.append(model.fit(cf.from_arrow(table, target="y")).coef_.tobytes())
    assert fits[0] == fits[1]


@pytest.mark.parametrize(
    ("cells", "is_parsed_once"),
    [
        (["1", "20", "", "-3"], True),
        (["1.5", "2e3", "nan", ""], True),
        (["u", "v", "", "u"], True),
        (["", "", "", ""], True),
        (["true", "false", "", "true"], True),
        (["007", "12", "", "3"], True),
        (["2020-01-31", "2021-02-01", "", "2020-01-30"], True),
        (["1,5", "2,25", "", "3,5"], False),
        (["31.01.2020", "01.02.2021", "", "30.01.2020"], False),
        ([" 1", "2 ", "3", "4"], False),
    ],
)
def test_rows_held_by_the_look_are_those_that_are_parsed(cells, is_parsed_once, parses, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x;y\n" + "".join(f"{cell};{k}\n" for k, cell in enumerate(cells * 3)))

    def table():
        source = cf.scan_csv(path, target="y", delimiter=";").kept()
        parses_before = len(parses)
        source.files.fill()
        return source.files._table, len(parses) - parses_before

    parsed, n_parses = table()
    assert n_parses == 1
    with holding_rows():
        held, n_parses = table()
    assert n_parses == (0 if is_parsed_once else 1)
    assert held.equals(parsed, check_metadata=True)


def test_the_look_holds_no_more_rows_than_the_memory_limit_allows(file, parses):
    with cf.memory(1e5), holding_rows():
        source = cf.scan_csv(file, target="label").kept(may_spill=True)
    parses.clear()
    assert source.files.fill() is Place.DISK
    assert len(parses) == 1
