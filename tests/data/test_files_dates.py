"""Dates written as whole numbers and months without a day."""

from __future__ import annotations

from datetime import datetime

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import certifit as cf
from certifit import scan_csv, scan_parquet

DAYS = [20260101 + 100 * month + day for month in range(3) for day in range(0, 28, 5)]


def table(folder, cells, **options):
    path = folder / "rows.csv"
    path.write_text("when,y\n" + "".join(f"{cell},{k}\n" for k, cell in enumerate(cells)))
    source = scan_csv(path, target="y", **options)
    return source, pa.concat_tables([block.X for block in source.stretches()]).column("when")


@pytest.mark.parametrize("cell", ["2026-03", "2026/3", "03/2026", "3-2026", "Mar 2026", "march-2026"])
def test_a_month_is_its_first_day_and_a_note_says_so(tmp_path, cell):
    source, column = table(tmp_path, [cell, "2025-12"])
    assert column.to_pylist() == [datetime(2026, 3, 1), datetime(2025, 12, 1)]
    assert source.readings == {"when": "month"} and "types={'when': 'text'}" in source.notes[0]
    assert table(tmp_path, [cell, "2025-12"], types={"when": "text"})[1].to_pylist() == [cell, "2025-12"]


@pytest.mark.parametrize("cells", [["2026-03", "2026-13"], ["2026-03", "1234-05"], ["2026-03", "x"]])
def test_cells_of_which_one_is_no_month_stay_text(tmp_path, cells):
    assert table(tmp_path, cells)[1].to_pylist() == cells


def test_months_have_no_weekday(tmp_path):
    source, _ = table(tmp_path, [f"{year}-{month:02}" for year in (2024, 2025) for month in range(1, 13)])
    encoder = cf.TableEncoder().fit_source(source)
    assert list(encoder.get_feature_names_out()) == ["when days", "when month"]


def test_whole_numbers_that_all_are_dates_are_read_as_dates(tmp_path):
    source, column = table(tmp_path, DAYS)
    assert [int(f"{day:%Y%m%d}") for day in column.to_pylist()] == DAYS
    assert "types={'when': 'number'}" in source.notes[0]
    assert table(tmp_path, DAYS, types={"when": "number"})[1].to_pylist() == DAYS
    assert table(tmp_path, DAYS[:3], types={"when": "date"})[1].to_pylist() == column.to_pylist()[:3]


@pytest.mark.parametrize(
    "cells", [DAYS[:9], [*DAYS, 20260230], [*DAYS, 99991231], [*DAYS, 20261301], [*DAYS, 20260100]]
)  # few; no such days
def test_other_whole_numbers_stay_numbers(tmp_path, cells):
    assert table(tmp_path, cells)[1].to_pylist() == cells


def test_weights_such_as_dates_stay_numbers(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,y,w\n" + "".join(f"{k},{k},{day}\n" for k, day in enumerate(DAYS)))
    assert pa.types.is_integer(scan_csv(path, target="y", weight="w").schema.field("w").type)


def test_whole_numbers_of_parquet_are_read_as_dates_where_that_is_asked(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"when": DAYS, "codes": [day + 70 for day in DAYS], "y": range(len(DAYS))}), path)
    assert scan_parquet(path, target="y").schema.field("when").type == pa.int64()
    recognised = scan_parquet(path, target="y", texts="recognise")
    assert [str(field.type) for field in recognised.schema] == ["timestamp[us]", "int64", "int64"]
    assert recognised.readings == {"when": "date"}
    kept = scan_parquet(path, target="y", texts="recognise", types={"when": "number"})
    assert kept.schema.field("when").type == pa.int64()


def test_a_frame_keeps_the_numbers_and_a_note_says_what_they_look_like():
    encoder = cf.TableEncoder().fit(pd.DataFrame({"when": DAYS}))
    assert "looks like dates written as 20260131" in encoder.notes_[0]


def test_seasons_are_no_months(tmp_path):
    cells = ["2001-02", "2002-03", "2003-04"]
    source, column = table(tmp_path, cells)
    assert column.to_pylist() == cells and "types={'when': 'month'}" in source.notes[0]
    assert pa.types.is_timestamp(table(tmp_path, [*cells, "2003-05"])[1].type)


def test_a_target_is_no_date(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,y,m\n" + "".join(f"{k},{day},2026-{1 + k % 12:02}\n" for k, day in enumerate(DAYS)))
    assert scan_csv(path, target="y").schema.field("y").type == pa.int64()
    assert scan_csv(path, target="m").schema.field("m").type == pa.string()
    pq.write_table(pa.table({"x": range(len(DAYS)), "y": DAYS}), tmp_path / "rows.parquet")
    source = scan_parquet(tmp_path / "rows.parquet", target="y", texts="recognise")
    assert source.schema.field("y").type == pa.int64()
