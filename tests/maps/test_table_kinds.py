"""What each kind of column becomes, checked against a plain reading of the table row by row."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from certifit.data.columns import Columns, Number
from certifit.data.picked import FEW_ROWS, PickedTable
from certifit.data.source import Block
from certifit.maps.table import TableEncoder


def encoded(table: pa.Table, **parameters: Any) -> tuple[TableEncoder, dict[str, list[float]]]:
    """The fitted encoder and its columns by name."""
    encoder = TableEncoder(**parameters).fit(table)
    array = encoder.apply(table).toarray()
    names = encoder.get_feature_names_out()
    assert array.shape == (table.num_rows, len(names))
    return encoder, {name: array[:, j].tolist() for j, name in enumerate(names)}


NUMBER_TYPES = [
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.float16(), pa.float32(), pa.float64(), pa.decimal128(10, 2), pa.decimal256(40, 2),
]  # fmt: skip


@pytest.mark.parametrize("kind", NUMBER_TYPES, ids=str)
@pytest.mark.parametrize("has_gap", [False, True])
def test_a_number_keeps_its_values_and_gaps_get_mean_and_mark(kind: pa.DataType, has_gap: bool) -> None:
    values: list[Any] = [1, 2, 4, 9]
    if pa.types.is_float16(kind):
        values = [np.float16(v) for v in values]
    elif pa.types.is_decimal(kind):
        values = [Decimal(v) for v in values]
    column = pa.array([*values, None] if has_gap else values, kind)
    _, columns = encoded(pa.table({"x": column}))
    assert columns["x"] == [1, 2, 4, 9, 4][: len(column)]
    assert columns.get("x missing") == ([0, 0, 0, 0, 1] if has_gap else None)


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.uint16(), pa.float32(), pa.float64()], ids=str)
def test_numbers_are_read_in_place(kind: pa.DataType) -> None:
    table = pa.table({"x": pa.array([5, 7, None, 8, 6], kind)}).slice(1)
    segment = TableEncoder().fit(table).apply(table).segments[0]
    assert isinstance(segment, Number) and isinstance(segment.values, np.ndarray) and segment.valid is not None
    buffers = table["x"].chunk(0).buffers()
    assert segment.values.ctypes.data == buffers[1].address + kind.bit_width // 8
    assert segment.valid.data.ctypes.data == buffers[0].address


def test_nan_is_a_gap_like_null() -> None:
    with_nan = pa.table({"x": pa.array([1.0, float("nan"), 3.0, None])})
    encoder, columns = encoded(with_nan)
    assert columns == {"x": [1, 2, 3, 2], "x missing": [0, 1, 0, 1]}
    assert encoder.notes_ == ["Column 'x' is missing in 2 of 4 rows: filled with the mean 2 and marked in 'x missing'."]


def test_the_fill_is_data_of_the_kind_and_changes_the_column_by_the_gaps_only() -> None:
    table = pa.table({"x": [1.0, None, 5.0, None]})
    encoder = TableEncoder().fit(table)
    number = encoder.apply(table).segments[0]
    assert isinstance(number, Number) and number.fill == encoder.columns_[0].fill == 3.0
    zero_filled = Columns([Number(number.values, number.valid, 0.0)], 4).toarray()
    x, m = encoder.apply(table).toarray().T
    np.testing.assert_array_equal(x, zero_filled[:, 0] + 3.0 * m)


@pytest.mark.parametrize("where", ["fit", "apply"])
def test_infinity_is_refused_with_column_and_row(where: str) -> None:
    good, bad = pa.table({"x": [1.0, 2.0, 3.0]}), pa.table({"x": [1.0, 2.0, float("-inf")]})
    with pytest.raises(ValueError, match=r"Column 'x' is .*inf.* at row 2"):
        TableEncoder().fit(bad) if where == "fit" else TableEncoder().fit(good).apply(bad)


def test_huge_numbers_are_not_infinite() -> None:
    _, columns = encoded(pa.table({"x": [1.7e308, 1.7e308, 1.6e308, None]}))
    assert columns["x"][:3] == [1.7e308, 1.7e308, 1.6e308]
    assert columns["x"][3] == pytest.approx(1.6666666666666667e308)


def test_a_number_with_one_value_beside_its_gaps_leaves_only_the_gaps() -> None:
    _, columns = encoded(pa.table({"x": [3, None, 3], "y": [1, 2, 3]}))
    assert columns == {"x missing": [0, 1, 0], "y": [1, 2, 3]}


def test_flags_are_zero_and_one() -> None:
    _, columns = encoded(pa.table({"f": [True, False, None, True], "g": [False, True, True, True]}))
    assert columns["f"] == [1, 0, pytest.approx(2 / 3), 1]
    assert columns["f missing"] == [0, 0, 1, 0]
    assert columns["g"] == [0, 1, 1, 1]


TEXTS = ["UA", "AA", None, "UA", "DL"]
TEXT_COLUMNS = {
    "string": pa.array(TEXTS),
    "large_string": pa.array(TEXTS, pa.large_string()),
    "string_view": pa.array(TEXTS, pa.string_view()),
    "dictionary int8": pa.array(TEXTS).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())),
    "dictionary uint64": pa.array(TEXTS).dictionary_encode().cast(pa.dictionary(pa.uint64(), pa.large_string())),
    "null among the levels": pa.DictionaryArray.from_arrays(
        pa.array([2, 1, 0, 2, 3]), pa.array([None, "AA", "UA", "DL", "never used"])
    ),
    "run-end encoded": pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3, 4, 5]), pa.array(TEXTS)),
    "one text twice": pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 3, 2]), pa.array(["UA", "AA", "DL", "UA"])),
}


@pytest.mark.parametrize("column", TEXT_COLUMNS.values(), ids=TEXT_COLUMNS.keys())
def test_every_storage_of_text_gives_the_same_levels(column: pa.Array) -> None:
    encoder, columns = encoded(pa.table({"carrier": column}))
    assert columns == {
        "carrier=DL": [0, 0, 0, 0, 1],
        "carrier=UA": [1, 0, 0, 1, 0],
        "carrier missing": [0, 0, 1, 0, 0],
    }
    assert encoder.groups_ == [("carrier", list(columns))]
    for other in TEXT_COLUMNS.values():
        np.testing.assert_array_equal(
            encoder.apply(pa.table({"carrier": other})).toarray(), np.array(list(columns.values())).T
        )


@pytest.mark.parametrize(
    "reference,left", [("first", ["b", "c"]), ("most frequent", ["a", "c"]), ({"t": "c"}, ["a", "b"])]
)
def test_the_reference_level_is_chosen(reference: Any, left: list[str]) -> None:
    table = pa.table({"t": ["a", "b", "b", "c"], "u": ["p", "q", "q", "q"]})
    _, columns = encoded(table, reference=reference)
    assert [name for name in columns if name[0] == "t"] == [f"t={level}" for level in left]
    assert ("u=p" in columns) == (reference == "most frequent")


def test_levels_that_are_numbers_go_by_size() -> None:
    table = pa.table({"zone": [10, 2, 1, 2], "x": [1, 2, 3, 9]})
    _, columns = encoded(table, categories=["zone"])
    assert list(columns) == ["zone=2", "zone=10", "x"]
    _, columns = encoded(pa.Table.from_pandas(pd.DataFrame({"zone": pd.Categorical([10, 2, 1, 2])})))
    assert list(columns) == ["zone=2", "zone=10"]


def test_whole_floats_may_be_categories_and_fractions_may_not() -> None:
    _, columns = encoded(pa.table({"zone": [10.0, 2.0, float("nan"), None, 1.0]}), categories=["zone"])
    assert columns == {"zone=2": [0, 1, 0, 0, 0], "zone=10": [1, 0, 0, 0, 0], "zone missing": [0, 0, 1, 1, 0]}
    with pytest.raises(TypeError, match="'zone' is read as levels, but it holds numbers with a fraction"):
        TableEncoder(categories=["zone"]).fit(pa.table({"zone": [1.5, 2.0]}))


@pytest.mark.parametrize("encode", [lambda x: x, lambda x: x.dictionary_encode()], ids=["text", "dictionary"])
class TestNewLevels:
    seen = pa.array(["a", "b", "b", "a"])
    new = pa.array(["b", "zz", "a"])
    gap = pa.array(["b", None, "a"])

    def test_refused_with_column_level_row_and_what_is_legal(self, encode: Any) -> None:
        encoder = TableEncoder().fit(pa.table({"t": encode(self.seen)}))
        with pytest.raises(
            ValueError, match=r"Column 't' has the level 'zz' at row 1.* 2 levels are 'a', 'b'\. .*unseen="
        ):
            encoder.apply(pa.table({"t": encode(self.new)}))
        with pytest.raises(ValueError, match="Column 't' is missing at row 1, and the fit saw no gap there"):
            encoder.apply(pa.table({"t": encode(self.gap)}))

    def test_count_as_the_reference_when_asked(self, encode: Any) -> None:
        encoder = TableEncoder(unseen="reference").fit(pa.table({"t": encode(self.seen)}))
        for column in (self.new, self.gap):
            assert encoder.apply(pa.table({"t": encode(column)})).toarray().ravel().tolist() == [1, 0, 0]

    def test_count_as_other_where_rare_levels_are_grouped(self, encode: Any) -> None:
        table = pa.table({"t": encode(pa.array(["a", "a", "b", "b", "c", "d"]))})
        encoder = TableEncoder(min_count=2).fit(table)
        assert list(encoder.get_feature_names_out()) == ["t=b", "t=other"]
        assert encoder.apply(table).toarray().tolist() == [[0, 0], [0, 0], [1, 0], [1, 0], [0, 1], [0, 1]]
        assert encoder.apply(pa.table({"t": encode(self.new)})).toarray().tolist() == [[1, 0], [0, 1], [0, 0]]
        assert encoder.notes_ == ["Column 't': 2 rare levels were grouped as 'other'; new levels count as that."]

    def test_an_unused_entry_of_a_dictionary_is_no_level(self, encode: Any) -> None:
        table = pa.table({"t": encode(self.seen)})
        encoder = TableEncoder().fit(table)
        unused = pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array(["a", "b", "zz", None]))
        assert encoder.apply(pa.table({"t": unused})).toarray().ravel().tolist() == [1, 0]


def test_levels_that_a_type_declares_are_the_reference_and_all_others_are_refused() -> None:
    frame = pd.DataFrame({"t": pd.Categorical(["a", "b", "b", "c"])})
    for levels, kept in (("columns", [0, 1, 0]), ("codes", [0, 1, 0])):
        encoder = TableEncoder(levels=levels, sparse_output=False).fit(frame.iloc[:3])
        for again in (encoder, TableEncoder.from_state(*encoder.to_state())):
            assert list(again.get_feature_names_out()) == (["t=b"] if levels == "columns" else ["t"])
            assert again.columns_[0].declared == ("c",)
            for kind in ("category", object):
                assert again.transform(frame.iloc[[0, 1, 3]].astype(kind)).ravel().tolist() == kept
            with pytest.raises(ValueError, match="level 'd' at row 0"):
                again.transform(pd.DataFrame({"t": ["d"]}))


def test_a_level_called_other_keeps_its_name_beside_the_rare_ones() -> None:
    _, columns = encoded(pa.table({"t": ["a", "a", "other", "other", "x"]}), min_count=2)
    assert list(columns) == ["t=other", "t=other (rare)"]


def test_a_named_reference_is_never_grouped() -> None:
    _, columns = encoded(pa.table({"t": ["a", "a", "b", "c", "d"]}), min_count=2, reference={"t": "d"})
    assert columns == {"t=a": [1, 1, 0, 0, 0], "t=other": [0, 0, 1, 1, 0]}


def test_gaps_that_training_did_not_have_follow_the_policy() -> None:
    table, gap = pa.table({"x": [1.0, 3.0], "d": pa.array([0, 1], pa.date32())}), pa.table({"x": [1.0, None]})
    gap = gap.append_column("d", pa.array([None, 1], pa.date32()))
    with pytest.raises(ValueError, match=r"Column 'x' is missing at row 1.*unseen='reference' to read it as the mean"):
        TableEncoder().fit(table).apply(gap)
    lenient = TableEncoder(unseen="reference").fit(table)
    assert lenient.apply(gap).toarray()[1, 0] == 2.0
    assert lenient.apply(gap).toarray()[0, 1] == 0.5


def test_missing_may_be_filled_only_or_refused() -> None:
    table = pa.table({"x": [1.0, None, 5.0], "t": ["a", None, "b"]})
    _, columns = encoded(table, missing="fill")
    assert columns == {"x": [1, 3, 5], "t=b": [0, 0, 1], "t missing": [0, 1, 0]}
    with pytest.raises(ValueError, match=r"Column 'x' is missing in 1 rows, first at row 1"):
        TableEncoder(missing="error").fit(table)


MOMENTS = [dt.datetime(2013, 1, 31, 6, 30), dt.datetime(1969, 12, 31, 18), None, dt.datetime(2024, 2, 29, 0, 0, 1)]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_become_days_month_weekday_hour_with_one_indicator(unit: str) -> None:
    _, columns = encoded(pa.table({"t": pa.array(MOMENTS, pa.timestamp(unit))}))
    there = [moment for moment in MOMENTS if moment is not None]
    expected = {
        "t days": [(moment - dt.datetime(1970, 1, 1)) / dt.timedelta(days=1) for moment in there],
        "t month": [moment.month for moment in there],
        "t weekday": [moment.weekday() for moment in there],
        "t hour": [moment.hour + moment.minute / 60 + moment.second / 3600 for moment in there],
    }
    assert list(columns) == [*expected, "t missing"]
    for name, values in expected.items():
        assert columns[name] == pytest.approx([*values[:2], np.mean(values), values[2]], rel=1e-14)
    assert columns["t missing"] == [0, 0, 1, 0]


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()], ids=str)
def test_dates_have_no_hour_and_constant_parts_are_left_out(kind: pa.DataType) -> None:
    days = [dt.date(2013, 5, 1), dt.date(2013, 5, 7), dt.date(2013, 5, 30)]
    encoder, columns = encoded(pa.table({"d": pa.array(days, kind)}))
    assert columns == {"d days": [(day - dt.date(1970, 1, 1)).days for day in days], "d weekday": [2, 1, 3]}
    assert encoder.notes_ == ["Column 'd' became 'd days', 'd weekday'."]


def test_times_and_durations_become_hours_and_days() -> None:
    table = pa.table(
        {
            "t": pa.array([dt.time(6, 30), dt.time(18), None]),
            "s": pa.array([3600, 7200, 5400], pa.time32("s")),
            "d": pa.array([dt.timedelta(hours=36), dt.timedelta(days=-2), None]),
        }
    )
    _, columns = encoded(table)
    assert columns["t hour"] == [6.5, 18, 12.25]
    assert columns["s hour"] == [1, 2, 1.5]
    assert columns["d days"] == [1.5, -2, -0.25]


def test_dates_with_a_zone_are_read_as_local_time() -> None:
    noon = pa.array([dt.datetime(2020, 7, 1, 12), dt.datetime(2020, 1, 1, 12)], pa.timestamp("s", "UTC"))
    _, columns = encoded(pa.table({"t": noon.cast(pa.timestamp("s", "Europe/Paris"))}))
    assert columns["t hour"] == [14, 13]
    odd = pa.table({"t": noon.cast(pa.timestamp("s", "Mars/Olympus")), "x": [1, 2]})
    assert "time zone" in TableEncoder().fit(odd).notes_[0]


def test_dates_are_dropped_when_asked() -> None:
    table = pa.table({"d": pa.array([0, 400], pa.date32()), "x": [1, 2]})
    encoder, columns = encoded(table, dates="drop")
    assert list(columns) == ["x"]
    assert encoder.notes_ == ["Column 'd' was set aside: it is a date and dates='drop'."]


PLAIN = {
    "x": [1.5, None, 2.0, float("nan"), -7.0],
    "n": [3, 4, 5, 7, 6],
    "f": [True, None, False, True, True],
    "t": ["b", "a", None, "c", "a"],
    "d": [dt.date(2020, 1, 5), None, dt.date(2021, 6, 7), dt.date(2022, 8, 9), dt.date(2020, 1, 5)],
    "s": [dt.datetime(2020, 1, 5, 7), dt.datetime(2020, 2, 5, 9), None, dt.datetime(2021, 1, 5), None],
    "same": ["k"] * 5,
}


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"unseen": "reference", "missing": "fill"},
        {"reference": {"t": "c"}, "min_count": 2, "categories": ["n"], "max_levels": 50, "dates": "drop"},
    ],
)
def test_state_round_trip_gives_the_same_bits(parameters: dict[str, Any]) -> None:
    table = pa.table(PLAIN)
    encoder = TableEncoder(**parameters).fit(table)
    state, arrays = encoder.to_state()
    assert all(array.dtype == np.float64 for array in arrays.values())
    again = TableEncoder.from_state(json.loads(json.dumps(state, allow_nan=False)), arrays)
    assert again.columns_ == encoder.columns_ and again.notes_ == encoder.notes_ and again.groups_ == encoder.groups_
    assert again.to_state()[0] == state
    assert list(again.get_feature_names_out()) == list(encoder.get_feature_names_out())
    assert again.apply(table).toarray().tobytes() == encoder.apply(table).toarray().tobytes()
    keys = {tuple(record) for record in state["columns"]}
    assert len(keys) == 1  # one closed record for every kind


def test_a_state_that_contradicts_itself_is_refused() -> None:
    state, arrays = TableEncoder().fit(pa.table(PLAIN)).to_state()
    with pytest.raises(ValueError, match="fills"):
        TableEncoder.from_state(state, {"fill": arrays["fill"][1:]})
    level = next(record for record in state["columns"] if record["kind"] == "level")
    for change in ({"kind": "tensor"}, {"levels": ["a", "a"]}, {"reference": "zz"}):
        columns = [{**record, **change} if record is level else record for record in state["columns"]]
        with pytest.raises(ValueError, match="'t'"):
            TableEncoder.from_state({**state, "columns": columns}, arrays)


@pytest.mark.parametrize("gaps", ["none", "in rows left out", "in rows picked"])
def test_picked_rows_are_encoded_as_a_table_of_these_rows(gaps: str, rng: np.random.Generator) -> None:
    """Numbers that are read together, some of them whole ones, and columns that are read one by one."""
    n = 40
    keep = np.arange(n) % 3 == 0
    numbers = {f"x{j}": pa.array(rng.normal(size=n)) for j in range(6)} | {"whole": pa.array(rng.integers(0, 99, n))}
    table = pa.table(
        numbers | {"level": rng.choice(["a", "b"], n), "flag": rng.random(n) < 0.5, "z": rng.normal(size=n)}
    )
    encoder = TableEncoder(unseen="reference").fit(table)
    if gaps != "none":
        is_gap = keep if gaps == "in rows picked" else ~keep
        table = table.set_column(2, "x2", pa.array(table["x2"].to_numpy(), mask=is_gap & (rng.random(n) < 0.5)))
    picked = Block(table, None, None).where_read(keep)
    assert isinstance(picked.X, PickedTable)
    assert picked.n_rows == keep.sum() and picked.X.num_columns == table.num_columns
    expected = encoder.apply(table.filter(keep)).toarray()
    assert encoder.apply(picked.X).toarray().tobytes() == expected.tobytes()
    assert picked.X.select(["z"]).equals(table.filter(keep).select(["z"]))
    many = Block(pa.table({"x": np.zeros(FEW_ROWS + 1)}), None, None)
    assert isinstance(many.where_read(np.ones(FEW_ROWS + 1, dtype=bool)).X, pa.Table)
