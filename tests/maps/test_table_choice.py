"""Which columns are kept, and what is said about the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import certifit as cf
from certifit.data.arrow import ArrowSource
from certifit.data.source import Memory
from certifit.maps.table import TableEncoder

N = 60
X = np.linspace(0.0, 1.0, N) ** 2


def notes(column: Any, name: str = "c", **parameters: Any) -> list[str]:
    """What is said of a column beside a number."""
    encoder = TableEncoder(**parameters).fit(pa.table({name: column, "x": X}))
    return [note for note in encoder.notes_ if repr(name) in note]


@pytest.mark.parametrize(
    "column",
    [[2.5] * N, [7] * N, [True] * N, ["a"] * N, pa.array([3] * N, pa.date32()), [b"a"] * N],
    ids=["float", "int", "flag", "text", "date", "bytes"],
)
def test_constant_columns_are_set_aside(column: Any) -> None:
    (note,) = notes(column)
    assert note.startswith("Column 'c' was set aside: it")


@pytest.mark.parametrize("kind", [pa.null(), pa.float64(), pa.string(), pa.bool_(), pa.timestamp("s")], ids=str)
def test_a_column_without_values_is_set_aside(kind: pa.DataType) -> None:
    assert notes(pa.nulls(N, kind)) == ["Column 'c' was set aside: it holds no value."]


@pytest.mark.parametrize(
    "column",
    [
        [{"a": i} for i in range(N)], [[i] for i in range(N)], [str(i).encode() for i in range(N)],
        pa.array([(i,) for i in range(N)], pa.struct([("a", pa.int64())])),
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes([i] * 16) for i in range(N)], pa.binary(16))),
        pa.array([[("k", i)] for i in range(N)], pa.map_(pa.string(), pa.int64())),
        pa.array([b"a", b"b"] * (N // 2)).dictionary_encode(),
        pa.array([None] * N, pa.list_(pa.int8())),
    ],
    ids=["struct", "list", "binary", "tuple", "uuid", "map", "dictionary of bytes", "null lists"],
)  # fmt: skip
def test_other_types_are_set_aside_and_named(column: Any) -> None:
    (note,) = notes(column)
    assert "is neither number, flag, text nor date" in note


def test_too_many_levels_say_how_many_and_what_to_do() -> None:
    levels = [f"v{i % 40}" for i in range(N)]
    (note,) = notes(levels, max_levels=30)
    assert "it has 40 levels and max_levels is 30. Raise max_levels to keep it, or group" in note
    (note,) = notes(levels, max_levels=40)
    assert "text of 40 levels in 60 rows, too few rows for each" in note
    assert notes([f"v{i % 20}" for i in range(N)], max_levels=40) == []  # three rows for each
    assert "looks like" not in "".join(notes(levels, max_levels=30, min_count=2))


def test_more_levels_than_are_counted_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("certifit.maps.table.encoder._LEAST_CAP", 10)
    (note,) = notes([f"v{i % 40}" for i in range(N)], max_levels=5)
    assert "more than" in note


def test_identifiers_and_free_text_are_set_aside() -> None:
    (note,) = notes([f"id{i}" for i in range(N)])
    assert "it looks like an identifier (60 different texts in 60 rows)" in note
    prose = [f"The quick brown fox number {i % 30} jumps over the lazy dog." for i in range(N)]
    (note,) = notes(prose)
    assert "it is free text" in note and "--texts" in note
    (note,) = notes([f"see you at {i}" for i in range(N)])
    assert "it looks like free text or an identifier (60 different texts in 60 rows)" in note
    few = ["I agree with this statement without any doubt", "I do not agree with this statement at all"]
    assert notes(few * (N // 2)) == []


def test_numbers_that_grow_row_by_row_are_named_and_kept() -> None:
    assert "looks like an identifier" in notes(range(1, N + 1))[0]
    assert "looks like an identifier" in notes([None, *range(N - 1)])[1]
    assert "looks like an identifier" in notes([float(3 * i) for i in range(N)])[0]
    assert notes([i // 2 for i in range(N)]) == []
    assert notes([i + 0.5 for i in range(N)]) == []


def test_dates_in_text_are_named() -> None:
    days = [str(np.datetime64("2020-01-01") + i % 30) for i in range(N)]
    assert "holds dates as text" in notes(days)[0]


GAPS = [None if i % 7 == 0 else float(i * i % 11) for i in range(N)]
TEXT = pa.array([f"v{i % 3}" for i in range(N)])


@pytest.mark.parametrize(
    "a,b",
    [
        (X, X.copy()),
        (list(range(5, 5 + N)), [float(i) for i in range(5, 5 + N)]),
        ([i % 2 == 0 for i in range(N)], [(i + 1) % 2 for i in range(N)]),
        (GAPS, [float("nan") if v is None else v for v in GAPS]),
        (TEXT, TEXT.dictionary_encode()),
        (pa.array(range(N), pa.date32()), pa.array(range(N), pa.date32()).cast(pa.date64())),
    ],
    ids=["float", "int and float", "flag and int", "null and nan", "text and dictionary", "dates"],
)  # fmt: skip
def test_the_later_of_two_equal_columns_is_set_aside(a: Any, b: Any) -> None:
    encoder = TableEncoder().fit(pa.table({"a": a, "b": b}))
    assert "Column 'b' was set aside: it repeats column 'a' in every row." in encoder.notes_
    assert all(name.startswith("a") for name in encoder.get_feature_names_out())


def test_columns_that_differ_in_one_row_or_in_their_gaps_are_not_equal() -> None:
    other = X.copy()
    other[17], other[18] = other[18], other[17]
    zeros = [0.0 if v is None else v for v in GAPS]
    moved = [None if i == 1 else (0.0 if v is None and i == 0 else v) for i, v in enumerate(GAPS)]
    table = pa.table({"a": X, "b": other, "c": GAPS, "d": zeros, "e": moved})
    assert not [note for note in TableEncoder().fit(table).notes_ if "repeats" in note]


def test_equal_gaps_share_one_mark() -> None:
    table = pa.table({"a": GAPS, "b": [None if v is None else -v for v in GAPS]})
    encoder = TableEncoder(sparse_output=False).fit(table)
    assert list(encoder.get_feature_names_out()) == ["a", "a, b missing", "b"]
    assert all("marked in 'a, b missing'" in note for note in encoder.notes_)
    assert encoder.transform(table)[:, 1].tolist() == [float(v is None) for v in GAPS]


def test_no_column_left_is_an_error_with_the_reasons() -> None:
    with pytest.raises(
        ValueError, match=r"No column is left to fit in 3 rows. Column 'a' was set aside: it is constant"
    ):
        TableEncoder().fit(pa.table({"a": [1, 1, 1], "b": pa.nulls(3)}))


def test_columns_are_found_by_name_in_any_order_with_others_beside_them() -> None:
    table = pa.table({"t": ["a", "b", "b"], "x": [1.0, 2.0, None], "k": [1, 1, 1]})
    encoder = TableEncoder().fit(table)
    expected = encoder.apply(table).toarray()
    mixed = table.select(["x", "t"]).append_column("new", [[9, 9, 9]])
    np.testing.assert_array_equal(encoder.apply(mixed).toarray(), expected)
    np.testing.assert_array_equal(encoder.apply(table.to_batches()[0]).toarray(), expected)
    assert list(encoder.get_feature_names_out(mixed.column_names)) == list(encoder.get_feature_names_out())
    with pytest.raises(ValueError, match=r"Columns missing: \['t'\]"):
        encoder.apply(table.select(["x"]))
    with pytest.raises(ValueError, match="more than one column named"):
        encoder.apply(pa.table([table["t"], table["x"], table["x"]], names=["t", "x", "x"]))


@pytest.mark.parametrize(
    "change", [{"x": ["1", "2", "3"]}, {"f": [0, 1, 1]}, {"t": [1.5, 2.5, 1.0]}, {"d": [1, 2, 3]}, {"x": [[1]] * 3}]
)
def test_a_changed_kind_is_named(change: dict[str, Any]) -> None:
    columns = {
        "x": [1, 2, 4], "f": [True, False, False], "t": ["1", "2", "2"], "d": pa.array([1, 2, 40], pa.date32()),
    }  # fmt: skip
    encoder = TableEncoder().fit(pa.table(columns))
    (name,) = change
    with pytest.raises(TypeError, match=f"Column '{name}' (was a .* in the fit and is|is read as levels)"):
        encoder.apply(pa.table({**columns, **change}))


def test_whole_numbers_match_levels_that_were_text() -> None:
    encoder = TableEncoder().fit(pa.table({"t": ["1", "2", "A"]}))
    np.testing.assert_array_equal(encoder.apply(pa.table({"t": [2, 1]})).toarray(), [[1, 0], [0, 0]])


@pytest.mark.parametrize("name", ["x", "f", "t", "d"])
def test_a_column_of_arrow_nulls_is_all_gaps(name: str) -> None:
    columns = {
        "x": [1, 2, None], "f": [True, False, None], "t": ["1", "2", None], "d": pa.array([1, 2, None], pa.date32()),
    }  # fmt: skip
    encoder = TableEncoder().fit(pa.table({name: columns[name]}))
    array = encoder.apply(pa.table({name: pa.nulls(4)})).toarray()
    gap = encoder.apply(pa.table({name: columns[name]})).toarray()[2]
    np.testing.assert_array_equal(array, np.tile(gap, (4, 1)))


def test_no_rows_give_no_rows() -> None:
    encoder = TableEncoder().fit(pa.table({"t": ["a", "b"], "x": [1.0, None]}))
    assert encoder.apply(pa.table({"t": pa.array([], pa.string()), "x": pa.array([], pa.float64())})).shape == (0, 2)


def test_names_out_differ_even_where_the_table_has_such_names() -> None:
    table = pa.table({"x": [1.0, None, 3.0], "x missing": [3, 1, 2], "t": ["a", "b", "a"], "t=b": [2, 5, 1]})
    encoder = TableEncoder().fit(table)
    assert list(encoder.get_feature_names_out()) == ["x", "x missing", "x missing (2)", "t=b", "t=b (2)"]
    assert encoder.groups_[1] == ("x missing", ["x missing (2)"])


def test_weight_two_is_the_row_twice_and_weight_zero_is_no_row() -> None:
    table = pa.table({
        "x": [1.0, 2.0, None, 9.0], "t": ["a", "b", "b", "z"], "u": ["p", "q", "q", "p"], "w": [3.0, 1.0, 1.0, 0.0],
    })  # fmt: skip
    repeated = table.take([0, 0, 0, 1, 2])
    weighted = TableEncoder(reference="most frequent").fit_source(
        ArrowSource(table.to_batches, table.schema, weight="w")
    )
    plain = TableEncoder(reference="most frequent").fit(repeated.drop_columns(["w"]))
    assert weighted.columns_ == plain.columns_
    assert weighted.survey_.n_rows == 3


FRAMES = {
    "pandas": lambda columns: pd.DataFrame(columns, index=range(5, 9)),
    "pandas categorical": lambda columns: pd.DataFrame(columns).astype({"t": "category"}),
    "polars": pl.DataFrame,
    "polars categorical": lambda columns: pl.DataFrame(columns, schema_overrides={"t": pl.Categorical}),
    "polars enum": lambda columns: pl.DataFrame(columns, schema_overrides={"t": pl.Enum(["c", "b", "a"])}),
    "record batch": lambda columns: pa.table(columns).to_batches()[0],
    "stream": lambda columns: pa.table(columns).to_reader(),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
def test_every_frame_gives_the_same_columns(frame: Any) -> None:
    columns = {"x": [1.0, None, 4.0, 2.5], "t": ["b", None, "a", "c"], "n": [1, 5, 3, 3]}
    encoder = TableEncoder().fit(frame(columns))
    expected = TableEncoder().fit(pa.table(columns))
    assert encoder.columns_ == expected.columns_
    assert list(encoder.feature_names_in_) == ["x", "t", "n"]
    np.testing.assert_array_equal(
        encoder.transform(frame(columns)).toarray(), expected.transform(pa.table(columns)).toarray()
    )


@pytest.mark.parametrize(
    "parameters,message",
    [
        ({"reference": "last"}, "reference must be"),
        ({"reference": {"zz": "a"}}, r"not there: \['zz'\]"),
        ({"reference": {"t": "zz"}}, "level 'zz' of column 't', which has the levels 'a', 'b'"),
        ({"reference": {"x": "1"}}, "must name columns of levels. 'x' is a number"),
        ({"categories": ["f"]}, "must name columns of levels. 'f' is a flag"),
        ({"categories": "t"}, "categories must be a list"),
        ({"unseen": "ignore"}, "unseen must be one of 'error', 'reference'. Got 'ignore'"),
        ({"max_levels": 1}, "max_levels must be an integer >= 2"),
        ({"min_count": 0}, "min_count must be a number >= 1"),
        ({"missing": "median"}, "missing must be one of"),
        ({"dates": "keep"}, "dates must be one of"),
        ({"sparse_output": "yes"}, "sparse_output must be one of"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        TableEncoder(**parameters).fit(pa.table({"x": [1.0, 2.0], "t": ["a", "b"], "f": [True, False]}))


def test_only_a_source_of_tables_can_be_surveyed() -> None:
    with pytest.raises(TypeError, match=r"needs a source of Arrow tables\. Got Memory"):
        TableEncoder().fit_source(Memory(np.ones((3, 2)), None))


def test_a_number_that_means_no_value_is_a_gap_where_that_is_asked():
    x = np.r_[np.linspace(0, 50, 60), [-999.0] * 8]
    table = pa.table({"x": x, "z": np.arange(68) % 7})
    kept = TableEncoder(sparse_output=False).fit(table)
    assert kept.get_feature_names_out().tolist() == ["x", "z"]
    assert "'x' is -999 in 8 rows" in kept.notes_[0] and "absent='recognise'" in kept.notes_[0]
    encoder = TableEncoder(absent="recognise", sparse_output=False).fit(table)
    assert encoder.get_feature_names_out().tolist() == ["x", "x missing", "z"]
    assert np.allclose(encoder.transform(table)[60:, :2], [25, 1])
    assert encoder.survey_.columns["x"].missing == 8


@pytest.mark.parametrize("others", [[-1500.0, 0, 5], [-998.0, 3], [0.0]])
def test_a_number_among_its_like_or_in_few_rows_is_no_sign(others):
    rows = 4 if others == [0.0] else 9
    x = np.r_[np.linspace(0, 500, 40), others * 3, [-999.0] * rows]
    encoder = TableEncoder(absent="recognise").fit(pa.table({"x": x}))
    assert encoder.get_feature_names_out().tolist() == ["x"]


@pytest.mark.parametrize("name, is_kept", [("id", False), ("customer_id", False), ("week", True)])
def test_a_column_that_is_called_an_identifier_and_numbers_the_rows_is_set_aside(name, is_kept):
    encoder = TableEncoder().fit(pa.table({name: np.arange(1, 41), "x": np.arange(40) ** 2 % 7}))
    assert (name in encoder.get_feature_names_out()) == is_kept
    assert name in encoder.notes_[0]


def test_whole_numbers_of_few_values_may_be_codes():
    k = np.arange(60)
    table = pa.table({"code": k % 4, "two": k % 2, "many": k, "rare": np.r_[[9, 8], k[2:] % 3], "half": k % 4 / 2})
    assert TableEncoder().codes(ArrowSource(table.to_batches, table.schema)) == {"code": 4}


def test_levels_that_differ_in_capitals_or_spaces_are_named() -> None:
    assert "One level differs" in notes([["yes", "Yes", "no"][i % 3] for i in range(N)])[0]
    assert "2 levels differ" in notes([["yes", "Yes", "no", " no"][i % 4] for i in range(N)])[0]
    assert notes([["yes", "no"][i % 2] for i in range(N)]) == []


def test_a_column_with_a_very_long_text_is_no_category():
    table = pa.table({"x": ["a", "b", "c" * 20_000] * 8, "y": range(24)})
    assert "text of 20,000 characters, too long for a category" in " ".join(cf.TableEncoder().fit(table).notes_)
