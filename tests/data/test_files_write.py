"""Predictions are written whole or not at all."""

from __future__ import annotations

import csv
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
from full_disk import disk_of

from certifit.data.files import scan_parquet
from certifit.data.writing import record_batch, write_batches, write_predictions

READ = {"p.parquet": pq.read_table, "p.csv": arrow_csv.read_csv, "P.CSV": arrow_csv.read_csv}


def parts(n_parts: int = 5, fail: BaseException | None = None) -> Iterator[np.ndarray]:
    for k in range(n_parts):
        yield np.random.default_rng(k).normal(size=1000 + k)
    if fail is not None:
        raise fail


@pytest.mark.parametrize("name", READ)
def test_predictions_come_back_as_the_same_numbers(tmp_path, name):
    path = tmp_path / name
    assert write_predictions(parts(), path) == 5010
    table = READ[name](path)
    assert table.column_names == ["prediction"]
    assert np.array_equal(table["prediction"].to_numpy(), np.concatenate(list(parts())))
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_intervals_are_columns(tmp_path):
    path = tmp_path / "p.parquet"
    write_predictions([np.arange(6.0).reshape(2, 3)], path, ["prediction", "lower", "upper"])
    assert pq.read_table(path).to_pydict() == {"prediction": [0, 3], "lower": [1, 4], "upper": [2, 5]}
    assert scan_parquet(path).checksummed


@pytest.mark.parametrize("fail", [ValueError("bad row"), KeyboardInterrupt(), OSError("no such drive")])
@pytest.mark.parametrize("name", READ)
def test_an_error_on_the_way_leaves_what_was_there(tmp_path, name, fail):
    path = tmp_path / name
    path.write_text("before")
    with pytest.raises(type(fail)):
        write_predictions(parts(fail=fail), path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", READ)
def test_a_full_disk_is_said_and_leaves_nothing(tmp_path, name):
    with disk_of(20_000), pytest.raises(OSError, match=f"{name}' could not be written: File too large"):
        write_predictions(parts(200), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_or_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_predictions(parts(), tmp_path)
    with pytest.raises(OSError, match="could not be written: No such file or directory"):
        write_predictions(parts(), tmp_path / "none" / "p.csv")


def test_labels_and_names_in_csv_are_run_by_no_spreadsheet_and_no_terminal(tmp_path):
    """Parquet has them as they are. Numbers stay numbers, and so do labels that are numbers."""
    labels = ["=1+1", "+cmd", "-x", "@sum", "\t=1", "\r=1", "\uff1d1", "\x1b[31m", "\u202e", "-3.5", "plain", None]
    schema = pa.schema([("=p", pa.string()), ("\x1b[31m", pa.float64())])
    batch = record_batch([labels, [-3.5] * len(labels)], schema)
    for name in ("p.csv", "p.parquet"):
        write_batches([batch], tmp_path / name, schema)
    assert pq.read_table(tmp_path / "p.parquet")["=p"].to_pylist() == labels
    data = (tmp_path / "p.csv").read_bytes()
    assert not set(b"\x1b\t\r").intersection(data) and "\u202e" not in data.decode()
    names, *rows = csv.reader(data.decode().splitlines())
    assert names == ["'=p", "\\x1b[31m"]
    shown = [row[0] for row in rows]
    assert shown[:4] == ["'=1+1", "'+cmd", "'-x", "'@sum"] and shown[4:7] == ["\\t=1", "\\r=1", "'\uff1d1"]
    assert shown[7:] == ["\\x1b[31m", "\\u202e", "-3.5", "plain", ""]
    assert {row[1] for row in rows} == {"-3.5"}
