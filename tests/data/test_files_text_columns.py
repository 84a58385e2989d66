"""Columns of text in Parquet, Feather and JSON lines: read as dates or numbers where every filled cell is one."""

import datetime

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import certifit as cf
from certifit.data.files import scan_arrow, scan_json, scan_parquet

DAYS = ["2026-01-31", "2026-02-01", "2026-03-02"]
CASES = {  # cells -> the type they are read as
    "days": (DAYS, "date32[day]"),
    "moments": (["2026-01-31 10:30", "2026-02-01 10:31"], "timestamp[us]"),
    "day first": (["31.01.2026", "1.2.2026"], "timestamp[us]"),
    "times of day": (["14:35", "2:05 pm"], "time64[us]"),
    "dollars": (["$4,217.30", "$1.50"], "double"),
    "fractions": (["1.5", "2.25", "3"], "double"),
    "gaps": (["2026-01-31", "NA", "", None], "date32[day]"),
    "codes": (["12", "7", "3"], "string"),
    "one word": (["2026-01-31", "soon"], "string"),
    "flags": (["true", "false"], "string"),
}


def written(path, cells, is_coded=False):
    column = pa.array(cells, pa.string())
    column = column.dictionary_encode() if is_coded else column
    pq.write_table(pa.table({"x": column, "y": list(range(len(cells)))}), path)
    return path


@pytest.mark.parametrize("is_coded", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_text_is_read_as_what_all_its_cells_are(tmp_path, case, is_coded):
    cells, kind = CASES[case]
    path = written(tmp_path / "rows.parquet", cells, is_coded)
    source = scan_parquet(path, target="y", texts="recognise")
    is_read = kind != "string"
    assert (str(source.schema.field("x").type) == kind) if is_read else "string" in str(source.schema.field("x").type)
    assert any("'x'" in note for note in source.notes) == is_read
    assert "string" in str(scan_parquet(path, target="y").schema.field("x").type)


def test_the_values_are_those_of_the_text(tmp_path):
    path = written(tmp_path / "rows.parquet", ["31.01.2026", "1.2.2026", None])
    source = scan_parquet(path, target="y", texts="recognise")
    values = next(iter(source.stretches())).X.column("x").to_pylist()
    assert values == [datetime.datetime(2026, 1, 31), datetime.datetime(2026, 2, 1), None]


def test_a_late_cell_keeps_the_column_text(tmp_path):
    path = written(tmp_path / "rows.parquet", [DAYS[0]] * 500 + ["never"])
    assert str(scan_parquet(path, target="y", texts="recognise").schema.field("x").type) == "string"


def test_types_come_before_what_is_recognised(tmp_path):
    path = written(tmp_path / "rows.parquet", ["01/02/2026", "03/04/2026"])
    source = scan_parquet(path, target="y", texts="recognise", types={"x": "month-first"})
    assert next(iter(source.stretches())).X.column("x").to_pylist()[0] == datetime.datetime(2026, 1, 2)
    assert (
        str(scan_parquet(path, target="y", texts="recognise", types={"x": "text"}).schema.field("x").type) == "string"
    )


def test_numbers_are_read_as_text_when_asked(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"zip": [8001, 8002], "y": [1.0, 2.0]}), path)
    assert str(scan_parquet(path, target="y", types={"zip": "text"}).schema.field("zip").type) == "string"


@pytest.mark.parametrize(
    ("word", "said"), [("flag", "only columns of text"), ("date", "such as 20260131"), ("day", "must be one of")]
)
def test_a_reading_that_cannot_be_is_refused(tmp_path, word, said):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"zip": [8001, 8002], "y": [1.0, 2.0]}), path)
    with pytest.raises(ValueError, match=f"(?i){said}"):
        scan_parquet(path, target="y", types={"zip": word})


def test_text_that_is_not_what_was_asked_is_refused(tmp_path):
    path = written(tmp_path / "rows.parquet", ["2026-01-31", "soon"])
    with pytest.raises(ValueError, match="it is no date"):
        scan_parquet(path, target="y", types={"x": "date"})


def test_feather_and_json_lines_too(tmp_path):
    table = pa.table({"x": DAYS, "y": [1, 2, 3]})
    pyarrow.feather.write_feather(table, tmp_path / "rows.feather")
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"x": "{day}", "y": {k}}}\n' for k, day in enumerate(DAYS)))
    for scan, name in ((scan_arrow, "rows.feather"), (scan_json, "rows.jsonl")):
        # JSON lines may be read as dates by the parser itself.
        kind = scan(tmp_path / name, target="y", texts="recognise").schema.field("x").type
        assert pa.types.is_temporal(kind)


def test_the_encoder_keeps_the_reading_for_new_rows(tmp_path):
    path = written(tmp_path / "rows.parquet", [f"{d:02}.{m:02}.2026" for m in (1, 2, 3) for d in range(1, 29)])
    encoder = cf.TableEncoder().fit_source(scan_parquet(path, target="y", texts="recognise"))
    assert encoder.readings_ == {"x": "day-first"}
