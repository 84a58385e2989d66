"""Rows are named as a person finds them: by the lines of the file, the header counted."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fits import FILES

import certifit as cf
from certifit.data.source import Memory
from certifit.report.context import build
from certifit.report.places import OF_ARRAY, OF_LINES, OF_ROWS, row_places, with_places


def table():
    """40 rows; the row with number 25 is far out, that with number 10 has no target."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=40), rng.normal(size=40)
    x[25], y[25], y[10] = 5.0, 90.0, np.nan
    return x, y


def csv(tmp_path):
    x, y = table()
    cells = [f"{a},{'' if np.isnan(b) else b}" for a, b in zip(x, y, strict=True)]
    (tmp_path / "a.csv").write_text("# a remark\nx,y\n" + "\n".join(cells) + "\n")
    return cf.scan_csv(str(tmp_path / "a.csv"), target="y", missing_target="drop")


def parquet(tmp_path):
    x, y = table()
    pq.write_table(pa.table({"x": x, "y": np.nan_to_num(y)}), tmp_path / "a.parquet")
    return cf.scan_parquet(str(tmp_path / "a.parquet"), target="y")


def array(tmp_path):
    x, y = table()
    return Memory(x[:, None], np.nan_to_num(y), names=["x"])


@pytest.mark.parametrize(
    ("make", "place", "counted"),
    [(csv, "line 28", OF_LINES), (parquet, "row 26", OF_ROWS), (array, "row 25", OF_ARRAY)],
)
@pytest.mark.parametrize("model", [cf.LinearRegression(), cf.HuberRegressor()], ids=["influence", "outliers"])
def test_the_row_that_matters_most_is_named_as_in_the_file(tmp_path, make, place, counted, model):
    source = make(tmp_path)
    context = build(model.fit(source), source, FILES | {"selection": None})
    facts = context["influence"] or context["outliers"]
    assert (facts["rows"][0]["place"], facts["counted"]) == (place, counted)


def test_sentences_of_the_library_name_lines(tmp_path):
    said = with_places(csv(tmp_path), "the fit passes through rows 9, 24 whatever the target there")
    assert said == "the fit passes through line 12, line 28 whatever the target there"


def test_several_files_are_told_apart(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("x,y\n1,2\n2,3\n4,4\n")
    source = cf.scan_csv([str(tmp_path / "a.csv"), str(tmp_path / "b.csv")], target="y")
    assert [place.rpartition("/")[2] for place in row_places(source, [4])] == ["b.csv'"]
    assert row_places(source, [4])[0].startswith("line 3 of ")
